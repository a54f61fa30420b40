"""Relative ranks over the budget: one line with a band per algorithm, rank 1 on top."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lmemtest._rounding import written
from lmemtest.errors import ArgumentError
from lmemtest.plots import _canvas, _panels, _rows, _style
from lmemtest.plots._curves import looks
from lmemtest.plots._panels import LINE, SMALL, Cell
from lmemtest.plots._spacing import spread_downwards
from lmemtest.studies.budget.relative_ranks import RelativeRanks

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]

_HEIGHT = 2.5  # inches of a panel in a new figure with few algorithms
_MOST_BANDS = 6  # more bands over each other are mud
_MOST_POINTS = 15  # markers on a line
_PAD = 0.04  # of the range
_LEAD = 1.2  # font sizes from the axes to the names
_WIDEST_NAME = 0.3  # of the width of a panel
# In font sizes: the least size of a panel, and the room for tick labels, title and the words of an axis.
_SMALLEST, _TICKS, _TITLE, _WORDS = (7.0, 4.5), 1.8, 2.0, 1.5
_LOG_RATIO = 5.0  # budgets that span less look alike on both scales
TITLE = "Mean rank (1 = best)"


@dataclass(frozen=True, slots=True)
class _Budgets:
    """Where the budgets are on the x axis."""

    x: FloatArray
    names: tuple[str, ...]  # of budgets that are no numbers
    log: bool

    @property
    def limits(self) -> tuple[float, float]:
        low, high = float(self.x[0]), float(self.x[-1])
        if self.log:
            return low / (high / low) ** _PAD, high * (high / low) ** _PAD
        return low - _PAD * (high - low), high + _PAD * (high - low)


@dataclass(frozen=True, slots=True)
class _Plan:
    """The largest font that fits, and the places that follow."""

    font: float
    cells: list[Cell]
    names: list[str]
    left: float  # margins of every panel
    right: float
    foot: list[str]


def relative_ranks_plot(result: RelativeRanks, *, ax: Axes | None = None) -> Axes:
    """Draw the mean ranks of the algorithms over the budget.

    Parameters
    ----------
    result : RelativeRanks
        From `lmemtest.studies.budget.relative_ranks.relative_ranks`.
    ax : Axes, optional
        Where to draw; the plot fills its rectangle, labels included. With None a new figure is made, which grows with
        the number of panels and algorithms.

    Returns
    -------
    Axes
        It holds the panels, ``ax.child_axes``: all instances, then the levels of ``by``. Bands are the intervals of
        the result, left out with more than six algorithms; the foot says what they mean. Lines of the same colour
        differ in their dashes. Names are beside the last budget. The x axis is logarithmic where that spaces the
        budgets more evenly. With a single budget, or none, the intervals are drawn as rows in `ax` itself.

    Raises
    ------
    ArgumentError
        If `result` is not that of `relative_ranks`, or `ax` is too small for readable text.

    Examples
    --------
    >>> import lmemtest as lt
    >>> from lmemtest.plots.relative_ranks import relative_ranks_plot
    >>> from lmemtest.studies.budget.relative_ranks import relative_ranks
    >>> runs = lt.datasets.load_hpo_runs().filter(algorithm=["RS", "HB", "HB+prior"])
    >>> ax = relative_ranks_plot(relative_ranks(runs, by="prior"))
    >>> [panel.get_title(loc="left") for panel in ax.child_axes]
    ['All instances', 'prior: bad', 'prior: good']
    """
    _canvas.check_axes(ax)
    if not isinstance(result, RelativeRanks):
        raise ArgumentError(f"result must be that of relative_ranks(), got {type(result).__name__}.")
    if len(result.budgets) == 1:
        return _rows.draw_rows(_as_rows(result), ax)
    if ax is None:
        ax = _canvas.new_axes(_canvas.FIGURE_WIDTH, _new_height(result))
    _canvas.bare(ax)
    size = _canvas.size_in_points(ax)
    plan = _plan(ax, result, size)
    budgets, limits = _budgets(result), _rank_limits(result)
    for name, cell in zip(result.panels, plan.cells, strict=True):
        top = _TITLE * plan.font if result.by is not None else 0.5 * plan.font
        place = cell.inside(plan.left, _TICKS * plan.font, plan.right, top)
        box = place.inset(ax, size)
        _panels.open_panel(box, SMALL * plan.font)
        if budgets.log:
            box.set_xscale("log")
        _draw_lines(box, result, result.panel(name), budgets, plan.font)
        _set_axes(box, budgets, limits, place, SMALL * plan.font)
        _name_lines(box, result, result.panel(name), plan, place, limits)
        if result.by is not None:
            room = place.width + plan.right
            _panels.write_title(box, _title(result, name), room, plan.font, shorter=_style.one_line(name))
    _write_words(ax, result, plan, size)
    return ax


def _title(result: RelativeRanks, name: str) -> str:
    if name == result.panels[0]:
        return "All instances"
    return f"{_style.one_line(result.by)}: {_style.one_line(name)}"


# ------------------------------------------------------------------------------------------------- layout


def _new_height(result: RelativeRanks) -> float:
    """Inches: each panel has a line per algorithm."""
    panel = max(_HEIGHT, (LINE * len(result.algorithms) + _TICKS + _TITLE + 1.0) * _style.base_font() / 72)
    levels = len(result.panels) - 1
    rows = 1 + math.ceil(levels / (2 if levels < 5 else 3)) if levels else 1
    if rows == 1:
        panel *= 1.3 if panel == _HEIGHT else 1.0
    return panel * rows + 6.0 * _style.base_font() / 72


def _plan(ax: Axes, result: RelativeRanks, size: tuple[float, float]) -> _Plan:
    names = [_style.one_line(name) for name in result.algorithms]
    for font in _panels.fonts():
        small = _style.Ruler(ax, SMALL * font)
        foot = _style.wrap(_foot(result), size[0] - 2 * _canvas.PAD, small)
        below = 2 * _canvas.PAD + LINE * SMALL * font * len(foot) + _WORDS * font
        area = Cell(_canvas.PAD + _WORDS * font, below, size[0] - 2 * _canvas.PAD - _WORDS * font, size[1] - below)
        left = small.widest([written(len(names), ".2f")]) + 0.9 * font  # ticks of a narrow range have two decimals
        top = _TITLE if result.by is not None else 0.5
        tall = max(_SMALLEST[1], LINE * SMALL * (len(names) - 1) + 1.0) + top + _TICKS
        wide = (_SMALLEST[0] * font + left + _LEAD * font) / (1.0 - _WIDEST_NAME)
        cells = _panels.arrange(
            len(result.panels),
            area.inside(0.0, 0.0, 0.0, _canvas.PAD),
            lambda cell, wide=wide, tall=tall * font: cell.width >= wide and cell.height >= tall,  # type: ignore[misc]
            wide_first=True,
        )
        if cells is not None:
            ruler = _style.Ruler(ax, SMALL * font, **_style.font_for(names))
            short = _style.shorten(names, _WIDEST_NAME * min(cell.width for cell in cells) - _LEAD * font, ruler)
            return _Plan(font, cells, short, left, ruler.widest(short) + _LEAD * font, foot)
    raise _canvas.too_small(ax, f"a plot of {len(names)} algorithms in {len(result.panels)} panel(s)")


def _foot(result: RelativeRanks) -> str:
    if len(result.algorithms) > _MOST_BANDS:
        return f"{result.band} Bands are left out with more than {_MOST_BANDS} algorithms; the table has them."
    return f"Bands: {result.band}"


def _budgets(result: RelativeRanks) -> _Budgets:
    values = result.budgets
    if not all(isinstance(value, (int, float, np.number)) for value in values):
        return _Budgets(np.arange(len(values), dtype=float), tuple(map(_style.one_line, values)), False)
    x = np.array(values, dtype=float)
    log = bool(x[0] > 0 and x[-1] > _LOG_RATIO * x[0])
    if log and len(x) > 2:
        log = _unevenness(np.log(x)) < _unevenness(x)
    return _Budgets(x, (), log)


def _unevenness(x: FloatArray) -> float:
    steps = np.diff(x)
    return float(np.std(steps) / np.mean(steps))


def _rank_limits(result: RelativeRanks) -> tuple[float, float]:
    """From the lower edge to the upper one: rank 1 is on top."""
    columns = ["rank"] if len(result.algorithms) > _MOST_BANDS else ["rank", "ci_low", "ci_high"]
    values = result.table[columns].to_numpy(dtype=float)
    low, high = float(np.nanmin(values)), float(np.nanmax(values))
    pad = _PAD * (high - low or 1.0)
    return high + pad, low - pad


# ------------------------------------------------------------------------------------------------- drawing


def _course(result: RelativeRanks, table: pd.DataFrame, index: int, column: str) -> FloatArray:
    """The values of one algorithm over the budgets."""
    n = len(result.budgets)
    return table[column].to_numpy(dtype=float)[index * n : (index + 1) * n]


def _draw_lines(box: Axes, result: RelativeRanks, table: pd.DataFrame, budgets: _Budgets, font: float) -> None:
    n = len(budgets.x)
    kept = np.unique(np.linspace(0, n - 1, min(n, _MOST_POINTS)).round().astype(np.intp))
    for i, look in enumerate(looks(len(result.algorithms))):
        low, rank, high = (_course(result, table, i, column) for column in ("ci_low", "rank", "ci_high"))
        if len(result.algorithms) <= _MOST_BANDS:
            area = box.fill_between(budgets.x, low, high, color=look.colour, alpha=0.18, linewidth=0.0)
            area.set_label("_interval")
        box.plot(
            budgets.x,
            rank,
            color=look.colour,
            linewidth=0.16 * font,
            linestyle=look.dash,
            marker=_style.marker(i),
            markevery=kept.tolist(),
            markersize=0.4 * font,
            markeredgewidth=0.0,
            label="_rank",
            zorder=3,
            clip_on=False,
        )


def _set_axes(box: Axes, budgets: _Budgets, limits: tuple[float, float], place: Cell, size: float) -> None:
    box.set_xlim(*budgets.limits)
    if budgets.names:
        _panels.set_names_along(box, budgets.names, place.width, size)
    else:
        _panels.set_ticks_along(box, budgets.limits, place.width, size, whole=_canvas.all_whole(budgets.x))
    _panels.set_ticks_upwards(box, limits, place.height, size)


def _name_lines(
    box: Axes, result: RelativeRanks, table: pd.DataFrame, plan: _Plan, place: Cell, limits: tuple[float, float]
) -> None:
    """Names beside the last budget, from the best down, with a line from the end of each course."""
    size = SMALL * plan.font
    last = [_course(result, table, i, "rank")[-1] for i in range(len(plan.names))]
    wanted = [(value - limits[0]) / (limits[1] - limits[0]) * place.height for value in last]
    order = sorted(range(len(last)), key=lambda i: -wanted[i])
    heights = spread_downwards([wanted[i] for i in order], LINE * size, place.height)
    style = _style.font_for(plan.names)
    for i, height in zip(order, heights, strict=True):
        end = 1.0 + 0.8 * _LEAD * plan.font / place.width
        box.text(
            end + 0.15 * size / place.width,
            height / place.height,
            plan.names[i],
            transform=box.transAxes,
            ha="left",
            va="center",
            **_style.text_style(size, color=_style.colour(i), **style),
        )
        start = (1.0 - _PAD / (1.0 + 2.0 * _PAD), wanted[i] / place.height)
        box.plot(
            [start[0], end],
            [start[1], height / place.height],
            transform=box.transAxes,
            color=_style.colour(i),
            linewidth=0.06 * size,
            linestyle="-",
            marker="none",
            clip_on=False,
            label="_lead",
        )


def _write_words(ax: Axes, result: RelativeRanks, plan: _Plan, size: tuple[float, float]) -> None:
    _panels.write_foot(ax, plan.foot, size, plan.font)
    bottom = 2 * _canvas.PAD + LINE * SMALL * plan.font * len(plan.foot)
    budget = _style.one_line(result.budget)
    font = _style.font_for([budget])
    name = _style.shorten([budget], size[0] - 4 * plan.font, _style.Ruler(ax, plan.font, **font))[0]
    across = 0.5 * (_canvas.PAD + _WORDS * plan.font + plan.left + size[0] - plan.right)
    style = _style.text_style(plan.font, ha="center", va="bottom", **font)
    _panels.write(ax, across, bottom - 0.2 * plan.font, name, size, style)
    room = size[1] - bottom - _WORDS * plan.font
    title = TITLE if _style.Ruler(ax, plan.font).width(TITLE) <= room else "Rank"
    style = _style.text_style(plan.font, ha="center", va="center", rotation=90)
    _panels.write(ax, _canvas.PAD + 0.6 * plan.font, size[1] - 0.5 * room, title, size, style)


def _as_rows(result: RelativeRanks) -> _rows.Rows:
    """One budget: intervals side by side."""
    labels: list[tuple[str, ...]] = []
    headers: list[int] = []
    where: list[int] = []
    for name in result.panels:
        if result.by is not None:
            headers.append(len(labels))
            labels.append((_title(result, name),))
        for algorithm in result.algorithms:
            where.append(len(labels))
            labels.append((_style.one_line(algorithm),))
    series = _rows.Series(
        name="",
        row=np.array(where, dtype=np.intp),
        centre=result.table["rank"].to_numpy(dtype=float),
        low=result.table["ci_low"].to_numpy(dtype=float),
        high=result.table["ci_high"].to_numpy(dtype=float),
    )
    return _rows.Rows(
        labels=tuple(labels), series=(series,), headers=frozenset(headers), axis_label=f"{TITLE}\n{result.band}"
    )
