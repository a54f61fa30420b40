"""Shrunken differences between algorithms on each benchmark: a map of all, or one comparison with its intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lmemtest._rounding import tie_order
from lmemtest._validate import check_choice, check_positive_int
from lmemtest.errors import ArgumentError
from lmemtest.plots import _canvas, _heat, _rows, _style
from lmemtest.studies.benchmark.benchmark_effects import BenchmarkEffects
from lmemtest.studies.benchmark.comparisons import MEAN

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from pandas import DataFrame

KINDS = ("heatmap", "caterpillar")


def shrunken_effects_plot(
    effects: BenchmarkEffects,
    *,
    kind: str = "heatmap",
    comparison: str | None = None,
    most: int = _rows.MOST_ROWS,
    ax: Axes | None = None,
) -> Axes:
    """Draw what the model expects of each algorithm on each benchmark.

    Parameters
    ----------
    effects : BenchmarkEffects
        From `lmemtest.benchmark_effects`.
    kind : {"heatmap", "caterpillar"}
        All comparisons as colours, bold where the interval excludes zero; or one comparison, sorted, with intervals,
        the observed differences and the overall one.
    comparison : str, optional
        For the caterpillar: an algorithm (its deviation from the mean), or "A - B" for a pair; the first by default.
    most : int, >= 2
        Rows. Of more benchmarks, the map has those with the largest effects, in their order, and the caterpillar both
        ends; a line says how many were left out.
    ax : Axes, optional
        Where to draw; a new figure with None.

    Returns
    -------
    Axes
        The map has benchmark i of those drawn, from the top, at y = i and comparison j at x = j.

    Raises
    ------
    ArgumentError
        If `effects` is not a result of `benchmark_effects`, an option is unknown, or `ax` is too small.

    Examples
    --------
    >>> import lmemtest as lt
    >>> from lmemtest.plots.shrinkage import shrunken_effects_plot
    >>> from lmemtest.studies.benchmark.benchmark_effects import benchmark_effects
    >>> runs = lt.datasets.load_hpo_runs().filter(budget=8, prior="good", algorithm=["RS", "HB"])
    >>> ax = shrunken_effects_plot(benchmark_effects(runs, contrast="pairs"), kind="caterpillar")
    >>> ax.get_yticklabels()[0].get_text()
    'boosting-diabetes'
    """
    _canvas.check_axes(ax)
    if not isinstance(effects, BenchmarkEffects):
        raise ArgumentError(f"effects must be the result of benchmark_effects(), got {type(effects).__name__}.")
    check_choice(kind, "kind", KINDS)
    most = check_positive_int(most, "most", minimum=2)
    names = {_name(*pair): pair for pair in effects.comparisons}
    comparison = next(iter(names)) if comparison is None else comparison
    check_choice(comparison, "comparison", tuple(names))
    if kind == "heatmap":
        return _heat.draw_heat(_map(effects, tuple(names), most), ax)
    left, right = names[comparison]
    table = effects.table
    part = table[(table["algorithm"] == left) & (table["versus"] == right)]
    ax = _rows.draw_rows(_content(effects, part.iloc[tie_order(part["estimate"])], comparison, most), ax)
    overall = float(part["overall"].mean())
    ax.axvline(overall, color=_style.MUTED, linewidth=0.8, linestyle="--", zorder=1, label="_overall")
    return ax


def _name(left: str, right: str) -> str:
    return left if right == MEAN else f"{left} - {right}"


def _better(effects: BenchmarkEffects) -> str:
    return "negative is better" if effects.direction == "minimize" else "positive is better"


def _map(effects: BenchmarkEffects, names: tuple[str, ...], most: int) -> _heat.Heat:
    table = effects.table
    units = list(dict.fromkeys(table["benchmark"]))
    shape = (len(names), len(units))  # the table runs over comparisons, then over benchmarks
    values = table["estimate"].to_numpy(dtype=float).reshape(shape).T
    clear = ((table["ci_low"] > 0) | (table["ci_high"] < 0)).to_numpy().reshape(shape).T
    seen = ~table["extrapolated"].to_numpy().reshape(shape).T
    shown = _rows.Shown.largest(np.fmax.reduce(np.abs(values), axis=1), most)
    values, clear, seen = values[shown.kept], clear[shown.kept], seen[shown.kept]
    what = "Deviation from the mean" if effects.contrast == "mean" else "Difference"
    held = "are simultaneous over the rows" if effects.simultaneous else "hold one by one"
    level = _style.nobreak(f"{100 * effects.level:g} %")
    return _heat.Heat(
        rows=tuple(_style.one_line(units[i]) for i in shown.kept),
        columns=tuple(_style.one_line(name) for name in names),
        values=values,
        shown=np.ones(values.shape, dtype=bool),
        coloured=np.isfinite(values) & seen,
        bold=clear & seen,
        palette="high is blue" if effects.direction == "maximize" else "low is blue",
        scale_label=f"{what}, shrunken ({_better(effects)})",
        note=f"Bold: zero is outside the {level} interval; the intervals of a column {held}."
        + ("" if seen.all() else " Grey: extrapolated, some algorithm was not run there.")
        + shown.sentence("benchmarks, those with smaller effects,"),
    )


def _content(effects: BenchmarkEffects, rows: DataFrame, comparison: str, most: int) -> _rows.Rows:
    shown = _rows.Shown.ends(len(rows), most)
    labels = shown.labels([_style.one_line(str(name)) for name in rows["benchmark"]])
    rows = rows.take(shown.kept.tolist())
    values = {name: rows[name].to_numpy(dtype=float) for name in ("estimate", "ci_low", "ci_high", "observed")}
    clear = (values["ci_low"] > 0) | (values["ci_high"] < 0)
    nothing = np.full(len(rows), np.nan)
    place = shown.place
    seen = np.isfinite(values["observed"])
    guessed = rows["extrapolated"].to_numpy()
    series = [
        _rows.Series(
            name="observed",
            row=place[seen],
            centre=values["observed"][seen],
            low=nothing[seen],
            high=nothing[seen],
            colour=_style.NEUTRAL,
            marker="|",
        )
    ]
    kinds = (
        ("shrunken, differs from zero", clear & ~guessed, True),
        ("shrunken, may be zero", ~clear & ~guessed, False),
        ("extrapolated (not run there)", guessed, False),
    )
    for name, mask, solid in kinds:
        if mask.any():
            series.append(
                _rows.Series(
                    name=name,
                    row=place[mask],
                    centre=values["estimate"][mask],
                    low=values["ci_low"][mask],
                    high=values["ci_high"][mask],
                    colour=_style.ACCENT if solid else _style.MUTED,
                    hollow=not solid,
                    marker=_style.marker(2 if name.startswith("extrapolated") else 0),
                )
            )
    level = _style.nobreak(f"{100 * effects.level:g} %")
    held = f"{'simultaneous ' * effects.simultaneous}intervals{', one by one' * (not effects.simultaneous)}"
    what = f"{_style.one_line(comparison)}{' minus the mean' if effects.contrast == 'mean' else ''}"
    return _rows.Rows(
        labels=labels,
        headers=shown.headers,
        series=tuple(series),
        axis_label=f"{what} ({_better(effects)})\n{level} {held}; dashed: overall"
        + shown.sentence("benchmarks, those in the middle,"),
        reference=0.0,
        legend=True,
    )
