"""Sources of variation with their intervals, and the reliability of a ranking over the number of benchmarks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from lmemtest.bench.variation.ranking_reliability import TARGETS, RankingReliability
from lmemtest.bench.variation.variance_sources import VarianceSources
from lmemtest.core.result import Answer
from lmemtest.core.rounding import written
from lmemtest.core.validate import check_choice
from lmemtest.core.words import counted, format_level, format_number, percent
from lmemtest.errors import ArgumentError
from lmemtest.plots import _canvas, _rows, _style
from lmemtest.plots._layout import Axis
from lmemtest.plots._lines import Curve, Level, Lines, Panel, axis_around, draw_lines, looks

VALUES = ("relative", "share", "sd")
_ENDS = {"relative": ("relative_low", "relative_high"), "share": ("share_low", "share_high")}
_MOST_LANES = 6  # studies side by side in the row of a source; of more, each has a row
_FARTHEST = 2.0  # of the largest estimate: where longer whiskers are cut


@_canvas.draws(VarianceSources, source="variance_sources()")
def variance_sources_plot(
    sources: VarianceSources,
    /,
    *,
    leave_out: str | Sequence[str] = (),
    values: str | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw each source with its interval; of trainings one colour per algorithm and benchmark.

    Parameters
    ----------
    sources : VarianceSources
        From `lmemtest.variance_sources`.
    leave_out : str or sequence of str
        Sources that are not drawn; one that is much larger than all others hides them. Of runs a line below says how
        large they are.
    values : {"relative", "share", "sd"}, optional
        Standard deviations, which are all that is drawn of runs; of trainings also shares of the sum, and (by default,
        where there is a source in ``relative_to``) variances over that of this source, on a square-root scale, where
        lengths are ratios of standard deviations.

    Returns
    -------
    Axes
        One row per source, in the order of the table, of runs with its share of the variance at the right; with more
        than six studies of trainings one row per source and study.

    Raises
    ------
    ArgumentError
        If `sources` are something else, one is unknown, all are left out, the values are not there, or `ax` is too
        small.

    References
    ----------
    Bouthillier et al. (2021), Accounting for variance in machine learning benchmarks, MLSys 3, figure 1

    Examples
    --------
    >>> import lmemtest as lt
    >>> found = lt.variance_sources(lt.datasets.load_hpo_runs().filter(budget=8, prior="good"))
    >>> [label.get_text() for label in found.plot(leave_out="benchmark").get_yticklabels()]
    ['algorithm', 'benchmark:algorithm', 'benchmark:seed', 'run']

    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> table = {"data": [*range(30), *[0] * 29], "init": [*[0] * 30, *range(1, 30)], "accuracy": rng.normal(size=59)}
    >>> ax = lt.variance_sources(table, score="accuracy", sources=["data", "init"]).plot()
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['data', 'init']
    """
    names = [leave_out] if isinstance(leave_out, str) else list(leave_out)
    table = sources.sources
    for name in names:
        check_choice(name, "leave_out", tuple(dict.fromkeys(table["source"])))
    hidden = table["source"].isin(names)
    if hidden.all():
        raise ArgumentError("leave_out names all sources, so nothing is left to draw. Keep at least one.")
    if sources.of != "runs":
        return _rows.draw_rows(_of_trainings(sources, table[~hidden], values), ax)
    if values is not None and check_choice(values, "values", VALUES) != "sd":
        raise ArgumentError(f"values={values!r} is for sources of trainings; of runs values='sd' is drawn.")
    return _rows.draw_rows(_of_runs(sources, table[~hidden], table[hidden]), ax)


def _of_runs(sources: VarianceSources, table: pd.DataFrame, hidden: pd.DataFrame) -> _rows.Rows:
    label = _label(sources, "sd")
    if table["ci_high"].isna().any():
        label += "; without whiskers: no interval"
    if len(hidden):
        parts = [
            f"{_style.one_line(row['source'])} ({format_number(row['sd'], 3)}, {_style.nobreak(percent(row['share']))})"
            for row in hidden.to_dict("records")
        ]
        label += f"\nNot drawn: {', '.join(parts)}"
    return _rows.Rows(
        labels=table["source"].tolist(),
        series=(_rows.Series.of(table, np.arange(len(table)), centre="sd"),),
        axis_label=label,
        aside=tuple(map(percent, table["share"])),
        aside_title="share",
        reference=0.0,
    )


def _of_trainings(study: VarianceSources, table: pd.DataFrame, values: str | None) -> _rows.Rows:
    with_unit = study.relative_to is not None and bool(study.sources["relative"].notna().any())
    quantity = ("relative" if with_unit else "share") if values is None else check_choice(values, "values", VALUES)
    if quantity == "relative" and not with_unit:
        raise ArgumentError(
            "values='relative' needs a source that is the unit: variance_sources(..., relative_to=...)."
        )
    studies = table[[*study.by]].map(format_level).agg(" on ".join, axis=1) if study.by else ""
    table = table.assign(study=studies)
    names, sources = list(dict.fromkeys(table["study"])), list(dict.fromkeys(table["source"]))
    lanes = len(names) if len(names) <= _MOST_LANES else 1
    if lanes < len(names):
        labels = [label for source in sources for label in (source, *names)]
        at = {(s, n): (i * (len(names) + 1) + j) for i, s in enumerate(sources) for j, n in enumerate(names, 1)}
        headers = frozenset(i * (len(names) + 1) for i in range(len(sources)))
    else:
        labels = sources
        at = {(s, n): i for i, s in enumerate(sources) for n in names}
        headers = frozenset()
    low, high = _ENDS.get(quantity, ("ci_low", "ci_high"))
    most = float(np.nanmax([table[quantity].max(), float(quantity == "relative"), 1e-300]))
    limit = min(float(np.nanmax([table[high].max(), most])), _FARTHEST * most)
    cut = bool((table[high] > limit).any())
    table[high] = np.minimum(table[high], 2.0 * limit)  # an end may be infinite
    root = quantity == "relative"  # one source can vary a hundred times as much as another
    margin = _rows.MARGIN**2 if root else _rows.MARGIN
    series = []
    for i, name in enumerate(names):
        rows = table[table["study"] == name]
        place = np.array([at[source, name] for source in rows["source"]], dtype=np.intp)
        look: dict[str, Any] = {"colour": _style.colour(i), "marker": _style.marker(i), "name": name, "offset": i}
        series.append(_rows.Series.of(rows, place, centre=quantity, ends=(low, high), **(look if lanes > 1 else {})))
    return _rows.Rows(
        labels=labels,
        series=tuple(series),
        axis_label=_label(study, quantity) + "; those that reach the right edge go on" * cut,
        lanes=lanes,
        headers=headers,
        reference=1.0 if quantity == "relative" else 0.0,
        limits=(-margin * limit, (1.0 if cut else 1.0 + _rows.MARGIN) * limit),
        root=root,
        legend=lanes > 1,
    )


def _label(sources: VarianceSources, quantity: str) -> str:
    score, level = _style.one_line(sources.score), _style.nobreak(f"{100 * (1.0 - sources.alpha):.4g} %")
    text = {
        "relative": f"Variance of {score} over that of {sources.relative_to} (square-root scale)",
        "share": f"Share of the variance of {score}",
        "sd": f"Standard deviation of {score}",
    }[quantity]
    return f"{text}\nIndividual {level} intervals"


_POINTS = 200


@_canvas.draws(RankingReliability, source="ranking_reliability()")
def ranking_reliability_plot(result: RankingReliability, /, *, ax: Axes | None = None) -> Axes:
    """Draw how the reliability of the ranking grows with benchmarks and seeds.

    Parameters
    ----------
    result : RankingReliability
        From `lmemtest.ranking_reliability`.

    Returns
    -------
    Axes
        It holds the panel, ``ax.child_axes[0]``: a line for each number of seeds of the table, named at its right end;
        the study itself as a dot with its interval; dashed lines at 0.8 and 0.9. Where families are the sample, they
        are counted instead of benchmarks, with a line for each number of benchmarks of a family, too.

    Examples
    --------
    >>> import lmemtest as lt
    >>> found = lt.ranking_reliability(lt.datasets.load_hpo_runs().filter(budget=8, prior="good"))
    >>> [text.get_text() for text in found.plot().child_axes[0].texts]
    ['0.8', '0.9', '1 seed', '25 seeds']
    """
    here = float(result.n_families or result.n_benchmarks)
    counted_by = "n_families" if result.family else "n_benchmarks"
    most = float(max(result.table[counted_by].max(), here))
    x = np.linspace(1.0, most, _POINTS)
    each = result.table["n_benchmarks"].astype(float) if result.family else result.table["n_seeds"] * 0.0  # of a family
    sizes = list(dict.fromkeys(zip(each, result.table["n_seeds"].astype(float), strict=True)))
    every = dict(zip(sizes, looks(range(len(sizes))), strict=True))
    several, m = each.nunique() > 1, float(each.iloc[0])
    curves = [
        Curve(
            name=", ".join([_number(m, "benchmark")] * several + [_number(n, "seed")]),
            x=x,
            y=np.array([result.at(m, n, f) if result.family else result.at(f, n) for f in x]),
            **look,
            width=0.14,
        )
        for (m, n), look in every.items()
    ]
    study = Curve(
        x=np.array([here]),
        y=np.array([result.reliability]),
        low=np.array([result.ci_low]),
        high=np.array([result.ci_high]),
        bars=True,
        opacity=1.0,
        **every.get((result.n_benchmarks_each if result.family else 0.0, result.n_seeds), {"colour": _style.INK}),
        marker="o",
        size=0.6,
        width=0.0,
        label="_study",
        band_label="_interval",
        front=4,
    )
    panel = Panel(
        x=Axis(limits=(0.0, 1.02 * most), whole=True),
        y=Axis(limits=(0.0, 1.0)),
        curves=(*curves, study),
        levels=tuple(Level(at=target, words=f"{target:g}") for target in TARGETS),
    )
    lines = Lines(
        what=f"a plot of {counted(len(curves), 'line')}",
        panels=(panel,),
        beside=True,
        x_label="Families" if result.family else "Benchmarks",
        y_label=("Reliability of the ranking", "Reliability"),
        foot=f"Dot: this study with its {_style.nobreak(f'{100 * (1.0 - result.alpha):g} %')} interval."
        + f" {_number(m, 'benchmark')} in each family{' (harmonic mean)' * bool(m % 1)}." * bool(m and not several),
    )
    return draw_lines(lines, ax)


def _number(n: float, noun: str) -> str:
    return f"{written(n, '.4g')} {noun}{'s' * (n != 1)}"


@_canvas.draws("project", source="variance_sources().project()")
def projection_plot(plan: Answer, /, *, ax: Axes | None = None) -> Axes:
    """Draw the standard error over the cost: with more of each source alone, and of the best designs.

    Parameters
    ----------
    plan : Answer
        From `lmemtest.variance_sources`, its ``.project()``.

    Returns
    -------
    Axes
        It holds the panel, ``ax.child_axes[0]``. Each line begins at the current design and goes on with more of one
        source; a line that is flat soon is one that buys little. The line below them is that of the best designs, with
        the interval of their standard error shaded. The axis of the cost is logarithmic.

    Examples
    --------
    >>> import numpy as np, pandas as pd
    >>> import lmemtest as lt
    >>> rng, shape = np.random.default_rng(2), (3, 20, 4)
    >>> at = np.indices(shape).reshape(3, -1)
    >>> score = 0.2 * rng.normal(size=shape[:2])[:, :, None] + 0.1 * rng.normal(size=shape)
    >>> table = pd.DataFrame({"model": at[0], "item": at[1], "judge": at[2], "score": score.ravel()})
    >>> study = lt.variance_sources(table, score="score", sources=["item", "judge"], model="model")
    >>> sorted(text.get_text() for text in study.project().plot().child_axes[0].texts)
    ['best', 'item', 'judge']
    """
    table, names = plan.paths, list(plan.best)
    curves = []
    for i, (name, look) in enumerate(zip(names, looks(range(len(names))), strict=True)):
        rows = table[table["path"] == name]
        style: dict[str, Any] = {"marker": _style.marker(i), "label": "_more", **look}
        curves.append(Curve.of(rows, rows["cost"].to_numpy(dtype=float), "standard_error", None, name=name, **style))
    best = table[table["path"] == "best"]
    known = bool(np.isfinite(best["ci_high"]).all())
    curves.append(
        Curve.of(
            best,
            best["cost"].to_numpy(dtype=float),
            "standard_error",
            ("ci_low", "ci_high") if known else None,
            name="best",
            colour=_style.INK,
            opacity=0.12,
            label="_best",
            band_label="_interval",
            front=4,
        )
    )
    x = np.concatenate([curve.x for curve in curves])
    band = f", with its {percent(1.0 - plan.alpha)} interval" * known
    of = "a difference" if plan.of == "differences" else "a mean"
    lines = Lines(
        what=f"a plot of {counted(len(curves), 'line')}",
        panels=(Panel(x=Axis.around(x, log=True), y=axis_around(curves), curves=tuple(curves)),),
        beside=True,
        x_label="Cost",
        y_label=(f"Standard error of {of} of {plan.score}", "Standard error"),
        foot=f"More of one source than now, and the best design for the cost{band}.",
    )
    return draw_lines(lines, ax)
