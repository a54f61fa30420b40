"""How the algorithms differ on each benchmark."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lmemtest._validate import check_positive_int
from lmemtest.errors import ArgumentError, UnknownColumnError
from lmemtest.plots import _canvas, _heat, _rows, _style
from lmemtest.words import format_level

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

COLUMNS = ("benchmark", "algorithm", "effect", "ci_low", "ci_high")
KINDS = ("auto", "intervals", "heatmap")
DIRECTIONS = ("minimize", "maximize")
MOST_ALGORITHMS, MOST_EFFECTS = 5, 80  # beyond these, dots and whiskers are a thicket and "auto" draws the map


def benchmark_effects_plot(
    table: pd.DataFrame,
    *,
    direction: str | None = None,
    kind: str = "auto",
    most: int = _rows.MOST_ROWS,
    ax: Axes | None = None,
) -> Axes:
    """Draw each algorithm's deviation from the mean of each benchmark.

    Parameters
    ----------
    table : pandas.DataFrame
        One row per benchmark and algorithm with columns benchmark, algorithm, effect, ci_low, ci_high; both
        factors keep the order in which they appear. Missing rows and NaN are shown as missing.
    direction : {"minimize", "maximize"}, optional
        Which sign is better; the axis says so, and the map is blue there.
    kind : {"auto", "intervals", "heatmap"}
        Dots with intervals, one row per benchmark, or a map of the effects. "auto" draws intervals for up to
        five algorithms and 80 effects.
    most : int, >= 2
        Rows; of more benchmarks, those with the largest effects are drawn, in their order, and a line says how many
        were left out.
    ax : Axes, optional
        Where to draw; the plot fills its rectangle, labels included. With None a new figure is made, whose
        size grows with the table.

    Returns
    -------
    Axes
        Benchmark i of those drawn, from the top, is at y = i; in the map algorithm j is at x = j.

    Raises
    ------
    UnknownColumnError
        If a column is missing.
    ArgumentError
        If an option is unknown, the table is empty, a benchmark has two rows for an algorithm, or `ax` is too
        small.

    Notes
    -----
    Numbers in the map are bold where the interval excludes zero. The plot shows the effects as they are
    given: whether they are shrunken, and at which level the intervals are, belongs into the caption.

    Examples
    --------
    >>> import pandas as pd
    >>> import lmemtest as lt
    >>> table = pd.DataFrame({"benchmark": ["adult", "adult", "digits", "digits"], "algorithm": list("ABAB"),
    ...                       "effect": [-1.0, 1, 0.2, -0.2], "ci_low": [-1.5, 0.5, -0.4, -0.8],
    ...                       "ci_high": [-0.5, 1.5, 0.8, 0.4]})
    >>> ax = lt.plots.benchmark_effects_plot(table, direction="minimize")
    >>> ax.get_xlabel()
    "Deviation from the benchmark's mean (negative is better)"
    """
    _canvas.check_axes(ax)
    _check_table(table)
    _check_option("kind", kind, KINDS)
    if direction is not None:
        _check_option("direction", direction, DIRECTIONS)
    algorithms = list(dict.fromkeys(table["algorithm"]))
    few = len(algorithms) <= MOST_ALGORITHMS and len(table) <= MOST_EFFECTS
    table, left_out = _largest(table, check_positive_int(most, "most", minimum=2))
    if kind == "intervals" or (kind == "auto" and few):
        return _rows.draw_rows(_intervals(table, algorithms, _label(direction) + left_out), ax)
    return _heat.draw_heat(_map(table, algorithms, direction, left_out), ax)


def _largest(table: pd.DataFrame, most: int) -> tuple[pd.DataFrame, str]:
    """The rows of the benchmarks with the largest effects, and a line about the others."""
    benchmarks = list(dict.fromkeys(table["benchmark"]))
    place = table["benchmark"].map({name: row for row, name in enumerate(benchmarks)}).to_numpy()
    size = np.full(len(benchmarks), -np.inf)
    np.fmax.at(size, place, np.abs(table["effect"].to_numpy(dtype=float)))
    shown = _rows.Shown.largest(size, most)
    return table[np.isin(place, shown.kept)], shown.sentence("benchmarks, those with smaller effects,")


def _check_option(name: str, value: object, options: tuple[str, ...]) -> None:
    if value not in options:
        raise ArgumentError(f"{name} must be one of {', '.join(options)}, got {value!r}.")


def _check_table(table: pd.DataFrame) -> None:
    import pandas as pd

    if not isinstance(table, pd.DataFrame):
        raise ArgumentError(f"table must be a pandas DataFrame with the columns {', '.join(COLUMNS)}, got {table!r}.")
    missing = [name for name in COLUMNS if name not in table.columns]
    if missing:
        found = ", ".join(map(str, table.columns))
        raise UnknownColumnError(f"table must have the columns {', '.join(COLUMNS)}; {missing[0]!r} is not in {found}.")
    if table.empty:
        raise ArgumentError("table must have at least one row, got none.")
    repeated = table.duplicated(["benchmark", "algorithm"])
    if repeated.any():
        first = table[repeated].iloc[0]
        message = (
            f"table must have one row per benchmark and algorithm, got several for "
            f"{first['benchmark']!r} and {first['algorithm']!r}. Aggregate them first."
        )
        raise ArgumentError(message)


def _label(direction: str | None) -> str:
    reading = {"minimize": " (negative is better)", "maximize": " (positive is better)"}
    return "Deviation from the benchmark's mean" + reading.get(direction or "", "")


def _names(values: list[object]) -> tuple[str, ...]:
    return tuple(_style.one_line(format_level(value)) for value in values)


def _intervals(table: pd.DataFrame, algorithms: list[object], label: str) -> _rows.Rows:
    benchmarks = list(dict.fromkeys(table["benchmark"]))
    place = {benchmark: row for row, benchmark in enumerate(benchmarks)}
    series = []
    for index, (algorithm, name) in enumerate(zip(algorithms, _names(algorithms), strict=True)):
        part = table[table["algorithm"] == algorithm]
        series.append(
            _rows.Series(
                name=name,
                row=part["benchmark"].map(place).to_numpy(dtype=np.intp),
                centre=part["effect"].to_numpy(dtype=float),
                low=part["ci_low"].to_numpy(dtype=float),
                high=part["ci_high"].to_numpy(dtype=float),
                colour=_style.colour(index),
                marker=_style.marker(index),
                offset=index,
            )
        )
    return _rows.Rows(
        labels=tuple((name,) for name in _names(benchmarks)),
        series=tuple(series),
        lanes=len(algorithms),
        legend=True,
        reference=0.0,
        axis_label=label,
    )


def _map(table: pd.DataFrame, algorithms: list[object], direction: str | None, left_out: str) -> _heat.Heat:
    benchmarks = list(dict.fromkeys(table["benchmark"]))
    shape = (len(benchmarks), len(algorithms))
    row = table["benchmark"].map({name: at for at, name in enumerate(benchmarks)}).to_numpy()
    column = table["algorithm"].map({name: at for at, name in enumerate(algorithms)}).to_numpy()
    effect, excludes = np.full(shape, np.nan), np.zeros(shape, dtype=bool)
    effect[row, column] = table["effect"].to_numpy(dtype=float)
    excludes[row, column] = ((table["ci_low"] > 0) | (table["ci_high"] < 0)).to_numpy()
    return _heat.Heat(
        rows=_names(benchmarks),
        columns=_names(algorithms),
        values=effect,
        shown=np.ones(shape, dtype=bool),
        coloured=np.isfinite(effect),
        bold=excludes,
        palette="high is blue" if direction == "maximize" else "low is blue",
        scale_label=_label(direction),
        note=("Bold: the interval excludes zero." if table["ci_low"].notna().any() else "") + left_out,
    )
