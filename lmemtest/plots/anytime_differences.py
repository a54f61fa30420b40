"""Differences of mean curves over the budget with their simultaneous bands, one panel per pair."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.ticker import MaxNLocator

from lmemtest.errors import ArgumentError
from lmemtest.plots import _canvas, _panels, _style
from lmemtest.plots._curves import (
    MOST_MARKERS,
    BudgetAxis,
    padded,
    room_for_numbers,
    set_budget_axis,
    write_below,
    write_upwards,
)
from lmemtest.plots._panels import LINE, SMALL, Cell
from lmemtest.plots.anytime import (
    ALONE,
    TICKS,
    WORDS,
    budget_axis,
    check_names,
    require_anytime,
    sure_words,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from lmemtest.studies.budget.anytime import Anytime

    FloatArray = NDArray[np.float64]

_MOST_PANELS = 6
_FEWEST_TICKS = 2
_HEIGHT = 2.0  # inches of a panel in a new figure
_SMALLEST = (8.0, 4.0)  # of the curve in a panel, in font sizes
_TITLE, _LANE, _BAR, _GAP = 2.0, 1.2, 0.5, 1.2  # in font sizes
_LEFT, _RIGHT = _style.ACCENT, _style.WARM  # the colour of the algorithm that is better


@dataclass(frozen=True, slots=True)
class _Pair:
    """What is drawn of a pair; `better` is 1 where the first is shown to be better, -1 where the second is."""

    left: str
    right: str
    estimate: FloatArray
    low: FloatArray
    high: FloatArray
    better: NDArray[np.int8]
    stretches: tuple[tuple[float, float, str], ...]  # budgets from which to which, colour


@dataclass(frozen=True, slots=True)
class _Plan:
    """The largest font that fits, and the places that follow."""

    font: float
    cells: list[Cell]
    left: float  # room for numbers, in the first column
    foot: list[str]

    def place(self, cell: Cell) -> Cell:
        """The axes in a cell."""
        return cell.inside(0.0, TICKS * self.font, _GAP * self.font, _TITLE * self.font)


def anytime_differences_plot(
    result: Anytime, *, pairs: Sequence[tuple[str, str]] | None = None, ax: Axes | None = None
) -> Axes:
    """Draw the differences of pairs of algorithms over the budget.

    Parameters
    ----------
    result : Anytime
        From `lmemtest.studies.budget.anytime.anytime`.
    pairs : sequence of (str, str), optional
        Names of the algorithms of each panel, first minus second. With None all pairs, or the six with the largest
        ``|t|`` at a budget where there are more.
    ax : Axes, optional
        Where to draw; the plot fills its rectangle, labels included. With None a new figure is made, which grows with
        the number of pairs.

    Returns
    -------
    Axes
        It holds the panels, ``ax.child_axes``, with the same scales. Bands hold for all pairs (also those that are not
        drawn) and all budgets at once. Where a difference is shown the curve is thick and coloured, and a bar at the
        foot of the panel marks the stretch: blue where the first of the pair is better, orange where the second is.

    Raises
    ------
    ArgumentError
        If `result` is not the result of `anytime`, `pairs` are no pairs of its algorithms, or `ax` is too small for
        readable text.

    Examples
    --------
    >>> import lmemtest as lt
    >>> from lmemtest.plots.anytime_differences import anytime_differences_plot
    >>> from lmemtest.studies.budget.anytime import anytime
    >>> runs = lt.datasets.load_hpo_runs().filter(algorithm=["RS", "HB"], prior="good").normalize("rank")
    >>> ax = anytime_differences_plot(anytime(runs))
    >>> [panel.get_title(loc="left") for panel in ax.child_axes]
    ['HB − RS']
    """
    _canvas.check_axes(ax)
    require_anytime(result)
    shown = [_pair(result, *names) for names in _chosen(result, pairs)]
    if ax is None:
        ax = _canvas.new_axes(_canvas.FIGURE_WIDTH, _new_height(len(shown)))
    _canvas.bare(ax)
    size = _canvas.size_in_points(ax)
    span = padded(np.concatenate([[0.0], *(values for pair in shown for values in (pair.low, pair.high))]))
    plan = _plan(ax, result, shown, pairs is None, span, size)
    axis = budget_axis(result)
    for pair, cell in zip(shown, plan.cells, strict=True):
        place = plan.place(cell)
        box = place.inset(ax, size)
        _panels.open_panel(box, SMALL * plan.font)
        set_budget_axis(box, axis, place.width, SMALL * plan.font)
        limits = _set_heights(box, span, place, plan.font, numbers=cell.x == plan.cells[0].x)
        _draw(box, pair, axis, plan.font)
        _mark(box, result, pair, axis, place, limits, plan.font)
        _write_title(box, pair, place.width, plan.font)
    _write_words(ax, result, plan, size)
    return ax


# ------------------------------------------------------------------------------------------------- pairs


def _chosen(result: Anytime, pairs: Sequence[tuple[str, str]] | None) -> list[tuple[str, str]]:
    if pairs is None:
        table = result.differences
        largest = table["t_ratio"].abs().groupby([table["left"], table["right"]], sort=False).max()
        kept = largest.nlargest(_MOST_PANELS).index if len(largest) > _MOST_PANELS else largest.index
        return [(str(left), str(right)) for left, right in kept]
    rule = "pairs must hold pairs of names, such as [('A', 'B')]"
    if isinstance(pairs, str) or not isinstance(pairs, Sequence):
        raise ArgumentError(f"{rule}, got {pairs!r}.")
    if len(pairs) == 0:
        raise ArgumentError(f"{rule}, got none. pairs=None draws those that differ most.")
    chosen = []
    for pair in pairs:
        if isinstance(pair, str) or not isinstance(pair, Sequence) or len(pair) != 2:
            raise ArgumentError(f"{rule}, got {pair!r}.")
        check_names(pair, result, "pairs")
        if pair[0] == pair[1]:
            raise ArgumentError(f"pairs must hold pairs of different algorithms, got {tuple(pair)!r}.")
        chosen.append((pair[0], pair[1]))
    return chosen


def _pair(result: Anytime, left: str, right: str) -> _Pair:
    first, second = result.algorithms.index(left), result.algorithms.index(right)
    sign = 1.0 if first < second else -1.0
    names = (left, right) if first < second else (right, left)
    table = result.differences
    rows = table[(table["left"] == names[0]) & (table["right"] == names[1])]
    low, high = (sign * rows[column].to_numpy(dtype=float) for column in ("band_low", "band_high"))
    found = result.stretches
    stretches = tuple(
        (float(row["budget_from"]), float(row["budget_to"]), _LEFT if row["better"] == left else _RIGHT)
        for row in found[found["better"].isin(names) & found["worse"].isin(names)].to_dict("records")
    )
    return _Pair(
        left=left,
        right=right,
        estimate=sign * rows["estimate"].to_numpy(dtype=float),
        low=np.minimum(low, high),
        high=np.maximum(low, high),
        better=result.decisions[first, second],
        stretches=stretches,
    )


# ------------------------------------------------------------------------------------------------- layout


def _new_height(count: int) -> float:
    columns = 1 if count == 1 else 3 if count == 3 or count > _MOST_PANELS else 2
    return math.ceil(count / columns) * _HEIGHT * (1.7 if columns == 1 else 1.0) + 5.0 * _style.base_font() / 72


def _plan(
    ax: Axes,
    result: Anytime,
    shown: Sequence[_Pair],
    selected: bool,
    span: tuple[float, float],
    size: tuple[float, float],
) -> _Plan:
    for font in _panels.fonts():
        small = _style.Ruler(ax, SMALL * font)
        foot = _style.wrap(_foot(result, len(shown), selected), size[0] - 2 * _canvas.PAD, small)
        below = 2 * _canvas.PAD + LINE * SMALL * font * len(foot) + WORDS * font
        # which numbers there are depends on the height of the panels, which the arrangement decides
        left = max(room_for_numbers(span, (size[1] - below) / lines, small) for lines in range(1, 3 * len(shown) + 1))
        x = _canvas.PAD + WORDS * font + left
        area = Cell(x, below, size[0] - _canvas.PAD - x, size[1] - below - _canvas.PAD)
        wide = (_SMALLEST[0] + _GAP) * font
        tall = (_SMALLEST[1] + TICKS + _TITLE + _LANE * 2 + _BAR) * font
        cells = _panels.arrange(
            len(shown),
            area,
            lambda cell, wide=wide, tall=tall: cell.width >= wide and cell.height >= tall,  # type: ignore[misc]
        )
        if cells is not None:
            return _Plan(font, cells, left, foot)
    raise _canvas.too_small(ax, f"a plot of {len(shown)} pair{'s' * (len(shown) > 1)}")


def _foot(result: Anytime, count: int, selected: bool) -> str:
    every = len(result.algorithms) * (len(result.algorithms) - 1) // 2
    sure = sure_words(result, f"{every} pairs" if every > 1 else None)
    words = [f"Bands: {sure}. Coloured, with a bar at the foot: shown to be better."]
    if selected and count < every:
        words.append(f"Shown: the {count} pairs with the largest |t| at a budget; pairs=[...] draws others.")
    if result.columns is None:
        words.append(ALONE)
    return " ".join(words)


def _set_heights(
    box: Axes, span: tuple[float, float], place: Cell, font: float, *, numbers: bool
) -> tuple[float, float]:
    """Limits that leave a lane for words above the curve and one for words and bars below it."""
    top, bottom = _LANE * font, (_LANE + _BAR) * font
    unit = (span[1] - span[0]) / (place.height - top - bottom)
    _panels.set_ticks_upwards(box, span, place.height - top - bottom, SMALL * font)
    if len(box.get_yticks()) < _FEWEST_TICKS:
        _add_tick(box, span, SMALL * font, unit)
    limits = (span[0] - bottom * unit, span[1] + top * unit)
    box.set_ylim(*limits)
    if not numbers:
        box.tick_params(axis="y", labelleft=False)
    return limits


def _add_tick(box: Axes, span: tuple[float, float], size: float, unit: float) -> None:
    """Zero and the farthest round number, where a panel is too low for evenly spaced ticks: without it no scale."""
    round_ = MaxNLocator(nbins=5, steps=[1, 2, 5, 10]).tick_values(*span)
    farthest = max((float(v) for v in round_ if span[0] <= v <= span[1]), key=abs, default=0.0)
    if abs(farthest) >= LINE * size * unit:
        values = sorted((0.0, farthest))
        box.set_yticks(values, _style.tick_labels(values), **_style.text_style(size))
        box.axhline(farthest, color=_style.FAINT, linewidth=0.6, linestyle="-", zorder=0.5, label="_guide")


# ------------------------------------------------------------------------------------------------- drawing


def _draw(box: Axes, pair: _Pair, axis: BudgetAxis, font: float) -> None:
    box.axhline(0.0, color=_style.INK, linewidth=0.09 * font, linestyle="-", zorder=1.5, label="_zero")
    if axis.joined:
        area = box.fill_between(axis.points, pair.low, pair.high, color=_style.FAINT, alpha=0.7, linewidth=0.0)
        area.set_label("_band")
        width = 0.1
    else:
        colours = [_colour(verdict) for verdict in pair.better]
        box.vlines(axis.points, pair.low, pair.high, colors=colours, linewidth=0.09 * font, label="_band", zorder=2)
        width = 0.05
    line: dict[str, Any] = {"linestyle": "-", "marker": "none", "zorder": 3}
    box.plot(axis.points, pair.estimate, color=_style.NEUTRAL, linewidth=width * font, label="_difference", **line)
    if axis.joined:
        places = axis.places(axis.points)
        for start, end, colour in pair.stretches:
            inside = axis.points[(axis.points > start) & (axis.points < end)]
            x = np.array([start, *inside, end])
            y = np.interp(axis.places(x), places, pair.estimate)
            box.plot(x, y, color=colour, linewidth=0.26 * font, label="_shown", **{**line, "zorder": 4})
        return
    size = (0.5 if len(axis.points) <= MOST_MARKERS else 0.25) * font
    for verdict in (0, 1, -1):
        here = pair.better == verdict
        box.plot(
            axis.points[here],
            pair.estimate[here],
            color=_colour(verdict),
            linestyle="none",
            marker="o",
            markersize=size,
            markeredgewidth=0.0,
            label="_shown" if verdict else "_not_shown",
            zorder=4,
        )


def _colour(verdict: int) -> str:
    return {1: _LEFT, -1: _RIGHT, 0: _style.NEUTRAL}[int(verdict)]


def _mark(
    box: Axes, result: Anytime, pair: _Pair, axis: BudgetAxis, place: Cell, limits: tuple[float, float], font: float
) -> None:
    """Bars at the foot where somebody is shown to be better, and which side is whose."""
    bars = pair.stretches
    if not axis.joined:
        bars = tuple((a, b, _colour(v)) for v in (1, -1) for a, b in axis.spans(pair.better == v))
    unit = (limits[1] - limits[0]) / place.height
    for start, end, colour in bars:
        box.fill_between(
            [start, end], limits[0], limits[0] + _BAR * font * unit, color=colour, linewidth=0.0, label="_bar", zorder=3
        )
    size = SMALL * font
    names = [_style.one_line(pair.left), _style.one_line(pair.right)]
    style = _style.font_for(names)
    ruler = _style.Ruler(box, size, **style)
    below, above = (
        f"{name} better" for name in _style.shorten(names, place.width - ruler.width(" better") - font, ruler)
    )
    colours = (_LEFT, _RIGHT)
    if result.direction == "maximize":  # a difference above zero favours the first
        below, above, colours = above, below, colours[::-1]
    x = 0.4 * font / place.width
    for text, colour, y, side in (
        (below, colours[0], (_BAR + 0.1) * font / place.height, "bottom"),
        (above, colours[1], 1.0, "top"),
    ):
        box.text(
            x, y, text, transform=box.transAxes, **_style.text_style(size, color=colour, ha="left", va=side, **style)
        )


def _write_title(box: Axes, pair: _Pair, room: float, font: float) -> None:
    names = [_style.one_line(pair.left), _style.one_line(pair.right)]
    ruler = _style.Ruler(box, font, **_style.font_for(names))
    half = (room - ruler.width(" − ")) / 2.0
    spare = max((half - ruler.width(name) for name in names), default=0.0)  # a short name leaves room to the other
    short = _style.shorten(names, half + max(spare, 0.0), ruler)
    _panels.write_title(box, " − ".join(short), room, font)


def _write_words(ax: Axes, result: Anytime, plan: _Plan, size: tuple[float, float]) -> None:
    _panels.write_foot(ax, plan.foot, size, plan.font)
    first = plan.cells[0]
    bottom = 2 * _canvas.PAD + LINE * SMALL * plan.font * len(plan.foot)
    middle = (first.x + size[0] - _canvas.PAD) / 2.0
    write_below(ax, _style.one_line(result.budget), middle, bottom - 0.1 * plan.font, size, plan.font)
    score = _style.one_line(result.score)
    texts = (f"Difference of mean {score}", f"Difference of {score}", "Difference")
    span = (bottom + WORDS * plan.font, size[1] - _canvas.PAD)
    write_upwards(ax, texts, _canvas.PAD + 0.6 * plan.font, span, size, plan.font)
