"""What to know of runs before they are compared: false positives, seeds, benchmarks that say something, failures."""

from __future__ import annotations

from typing import Any

import numpy as np
from matplotlib.axes import Axes

from lmemtest.bench.checks.audit import RECOMMENDED
from lmemtest.bench.failures.failure_rates import POPULATIONS
from lmemtest.core.options import ADJUSTMENT_NAMES
from lmemtest.core.result import Answer
from lmemtest.core.validate import check_positive_int
from lmemtest.core.words import format_level
from lmemtest.plots import _canvas, _rows, _style


@_canvas.draws("audit", source="audit()")
def audit_plot(audit: Answer, /, *, ax: Axes | None = None) -> Axes:
    """Draw the false-positive rates of an audit with their intervals.

    Parameters
    ----------
    audit : Answer
        From `lmemtest.audit`.

    Returns
    -------
    Axes
        The x axis is in percent, with a line at the nominal level; row i, from the top, is the i-th unit.

    Examples
    --------
    >>> import lmemtest as lt
    >>> runs = lt.datasets.load_hpo_runs().filter(budget=4, algorithm=["RS", "HB"])
    >>> ax = lt.audit(runs, n_draws=4, unit="benchmark", rng=1).plot()
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['exchange by benchmark']
    """
    units = list(audit.exchanged)
    models = audit.rates["model"].unique().tolist()
    series = []
    for offset, model in enumerate(models):
        rates = audit.rates[audit.rates["model"] == model]
        centre, low, high = 100.0 * rates[["rate", "ci_low", "ci_high"]].to_numpy().T
        good = model == RECOMMENDED
        series.append(
            _rows.Series(
                name=f"{model} model",
                row=np.array([units.index(unit) for unit in rates["unit"]], dtype=np.intp),
                centre=centre,
                low=low,
                high=high,
                colour=_style.ACCENT if good else _style.WARM,
                marker=_style.marker(0 if good else 1),
                offset=offset,
            )
        )
    content = _rows.Rows(
        labels=[f"exchange by {unit}" for unit in units],
        series=tuple(series),
        lanes=len(models),
        legend=True,
        reference=100.0 * audit.alpha,
        axis_label="Tables with a significant difference where there is none, % (95 % interval)\n"
        f"The line marks the nominal {100.0 * audit.alpha:g} %.",
    )
    return _rows.draw_rows(content, ax)


@_canvas.draws("seed_effect", source="seed_effect()")
def seed_effect_plot(result: Answer, /, *, ax: Axes | None = None) -> Axes:
    """Draw the mean score of every seed, beside the range that chance explains.

    Parameters
    ----------
    result : Answer
        From `lmemtest.seed_effect`.

    Returns
    -------
    Axes
        Row i, from the top, is the i-th algorithm: one marker per seed, orange where the seeds of the algorithm decide
        part of its score; below them the range that holds 95 % of the seeds if only chance decides.

    Examples
    --------
    >>> import lmemtest as lt
    >>> ax = lt.seed_effect(lt.datasets.load_hpo_runs().filter(budget=8, prior="good")).plot()
    >>> [label.get_text() for label in ax.get_yticklabels()][:3]
    ['HB', 'HB+prior', 'RS']
    """
    names = list(result.table["algorithm"])
    means = result.seed_means
    row = means["algorithm"].map({name: i for i, name in enumerate(names)}).to_numpy(dtype=np.intp)
    affected = means["algorithm"].isin(result.affected).to_numpy()
    kinds: tuple[_rows.Kind, ...] = (
        ("seeds", ~affected, {"hollow": True}),
        ("seeds of an algorithm with an effect", affected, {"colour": _style.WARM, "marker": "d", "hollow": True}),
    )
    chance = result.chance_range.to_numpy()
    explained = _rows.Series(
        name="95 % of the seeds by chance alone",
        row=np.arange(len(names)),
        centre=np.zeros(len(names)),
        low=-chance,
        high=chance,
        colour=_style.NEUTRAL,
        marker="|",
        offset=1,
    )
    unit = "standard deviations" if result.standardized else "units of the score"
    content = _rows.Rows(
        labels=names,
        series=(*_rows.Series.kinds(means, row, kinds, centre="mean", ends=None), explained),
        lanes=2,
        legend=True,
        reference=0.0,
        axis_label=f"Mean score of a seed minus that of the algorithm, in {unit}",
    )
    return _rows.draw_rows(content, ax)


@_canvas.draws("benchmark_information", source="benchmark_information()")
def benchmark_information_plot(result: Answer, /, *, max_rows: int = _rows.MOST_ROWS, ax: Axes | None = None) -> Axes:
    """Draw how much of the variance between runs the algorithms explain on each benchmark.

    Parameters
    ----------
    result : Answer
        From `lmemtest.benchmark_information`.
    max_rows : int, >= 2
        Of more benchmarks, those with the largest and the smallest shares are drawn, and a row and the axis label say
        how many were left out.

    Returns
    -------
    Axes
        One row per benchmark, by share from the top; the x axis is in percent.

    Raises
    ------
    ArgumentError
        If `result` is something else, `max_rows` is below two, or `ax` is too small.

    Examples
    --------
    >>> import lmemtest as lt
    >>> runs = lt.datasets.load_hpo_runs().filter(budget=8, prior="good")
    >>> lt.benchmark_information(runs).plot().get_yticklabels()[0].get_text()
    'sgd-cancer'
    """
    max_rows = check_positive_int(max_rows, "max_rows", minimum=2)
    table = result.table.sort_values("share", ascending=False, kind="stable", ignore_index=True)
    drawn = _rows.Shown.ends(len(table), max_rows)
    labels = drawn.labels(table["benchmark"])
    table = table.take(drawn.kept.tolist())
    differing, none = (
        (table["informative"] == value).to_numpy(dtype=bool, na_value=False) for value in (True, False)
    )  # missing: no test was possible
    grey = {"colour": _style.NEUTRAL, "marker": _style.marker(1), "hollow": True}
    kinds: tuple[_rows.Kind, ...] = (("algorithms differ", differing, {}), ("no difference found", none, grey))
    columns = {"centre": "share", "ends": ("share_low", "share_high"), "scale": 100.0}
    series = _rows.Series.kinds(table, drawn.place, kinds, **columns)
    label = f"Variance between runs that algorithms explain, % ({100.0 * (1.0 - result.alpha):g} % interval)"
    if len(series) > 1:
        label += f"\nColours: Welch's F-test, {ADJUSTMENT_NAMES[result.adjust]} adjustment, level {result.alpha:g}."
    content = _rows.Rows(
        labels=labels,
        series=series,
        headers=drawn.headers,
        legend=len(series) > 1,
        reference=0.0,
        axis_label=label + drawn.sentence("benchmarks, those in the middle,"),
    )
    return _rows.draw_rows(content, ax)


@_canvas.draws("failure_rates", source="failure_rates()")
def failure_rates_plot(rates: Answer, /, *, ax: Axes | None = None) -> Axes:
    """Draw the share of runs that failed, for each algorithm with its intervals.

    Parameters
    ----------
    rates : Answer
        From `lmemtest.failure_rates`.

    Returns
    -------
    Axes
        One row per algorithm, the least often failing on top; failed runs and runs are written at the right.

    Examples
    --------
    >>> import lmemtest as lt
    >>> table = {"tool": ["A", "B"] * 20, "task": [f"t{i // 8}" for i in range(40)]}
    >>> table["loss"] = [0.1 * i if i % 8 else None for i in range(40)]
    >>> roles = {"score": "loss", "direction": "minimize", "algorithm": "tool", "benchmark": "task"}
    >>> runs = lt.Runs(table, failed="missing", **roles)
    >>> ax = lt.failure_rates(runs).plot()
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['B', 'A']
    """
    table = rates.table
    names = list(dict.fromkeys(table["algorithm"]))
    populations = [name for name in POPULATIONS if (table["population"] == name).any()]
    place = {name: row for row, name in enumerate(names)}
    series = []
    for i, population in enumerate(populations):
        rows = table[table["population"] == population]
        row = np.array([place[name] for name in rows["algorithm"]], dtype=np.intp)
        look: dict[str, Any] = {"name": POPULATIONS[population], "colour": _style.colour(i), "offset": i}
        series.append(_rows.Series.of(rows, row, centre="rate", scale=100.0, marker=_style.marker(i), **look))
    runs = table[table["population"] == "run"]
    level = _style.nobreak(f"{100 * (1.0 - rates.alpha):.4g} %")
    most = 100.0 * float(np.nanmax(table["ci_high"]))
    content = _rows.Rows(
        labels=[format_level(name) for name in names],
        series=tuple(series),
        axis_label=f"Runs that fail (%), with individual {level} intervals",
        lanes=len(populations),
        aside=tuple(f"{k:,} of {n:,}" for k, n in zip(runs["n_failed"], runs["n_runs"], strict=True)),
        limits=(-_rows.MARGIN * most, (1.0 + _rows.MARGIN) * most),
        legend=len(populations) > 1,
    )
    return _rows.draw_rows(content, ax)
