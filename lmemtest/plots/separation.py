"""The critical-difference diagram of Demšar (2006) on the axis of marginal means, or of mean ranks.

Four things differ from the diagram for ranks. The critical difference has a range, because every pair has
its own standard error. A group that does not differ need not be contiguous: a bar therefore carries a dot at
each member and thins to a dotted line with a hollow circle where it passes an algorithm that does differ. A pair
without a test is undecided: the bar that joins it is dashed and has diamonds. And means can be tied or nearly so: each
algorithm has a dot on the axis at its exact mean, from where its line fans out to a column of its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from lmemtest._rounding import in_tie_order
from lmemtest.errors import ArgumentError
from lmemtest.inference.means.separation import Separation
from lmemtest.plots import _canvas, _layout, _style
from lmemtest.plots.emmeans import decided_by
from lmemtest.words import format_level

# All heights are in units of the font size, so that the diagram scales as a whole.
TITLE = 1.7
HEADER, RULER, TICKS, ROW, BAR, FOOT = 1.7, 1.7, 2.0, 1.75, 0.85, 1.25
COLUMN_GAP = 1.0  # least distance of two lines that run side by side
LARGEST_FAN = 3.0
ELBOW = 0.9  # how far the lines reach beyond the axis, so that an extreme mean has an elbow too
AXIS_SHARE = 0.34  # the least part of the width that belongs to the axis; the labels share the rest
FOOT_FONT = 0.82
_BOLD = 0.85  # of the width that text which is measured as plain may take in bold
_HINTED = 0.96  # text of a saved figure is up to 3 % wider than at the resolution of the screen
WIDEST = 9.5  # inches; long names widen a new figure up to here, then they are cut
MOST_GROUPS = 60  # bars; real comparisons have about as many groups as algorithms, or fewer
LONGEST_RULER = 3.0  # a critical difference beyond this many ranges of the means would squeeze them together


@_canvas.draws(Separation, source="separation()")
def cd_diagram(
    separation: Separation,
    /,
    *,
    ax: Axes | None = None,
    limits: tuple[float, float] | None = None,
    title: str = "",
) -> Axes:
    """Draw which algorithms differ, on the axis of their marginal means.

    Parameters
    ----------
    separation : Separation
        Levels, means, groups and critical difference, from `Estimates.separation`.
    limits : tuple of two floats, optional
        Scores that the axis reaches at least, so that diagrams can be compared; by default the means and the ruler.
    title : str
        A line above the diagram; cut if it is longer than the figure is wide.

    Returns
    -------
    Axes
        The x axis is in units of the score; the y axis in points below the upper edge.

    Raises
    ------
    ArgumentError
        If `separation` is something else, has no mean or more than 60 groups, `limits` are not two ascending numbers,
        or `ax` is too small.

    Notes
    -----
    The better half of the algorithms is listed on the better end of the axis. Algorithms joined by dots on one bar do
    not differ significantly; a hollow circle marks one that the bar passes without joining it. Where at least one
    pair of a bar has no test and is undecided, the bar is dashed and has diamonds; algorithms on no common bar differ
    significantly. The ruler shows the smallest critical difference (thick) and the largest (thin). Names too long for
    the figure are cut in the middle.

    References
    ----------
    Demšar, J. (2006). Statistical comparisons of classifiers over multiple data sets. Journal of Machine
    Learning Research 7, 1-30.

    Examples
    --------
    >>> import pandas as pd
    >>> import lmemtest as lt
    >>> runs = pd.DataFrame({"algorithm": list("ABC") * 4, "task": list("wwwxxxyyyzzz"),
    ...                      "score": [1.0, 2, 4, 2, 3, 5, 4, 4, 7, 5, 7, 8]})
    >>> em = lt.fit_lmm("score ~ algorithm + (1|task)", runs).emmeans("algorithm")
    >>> [text.get_text() for text in em.pairs().separation().plot().texts[-4:-1]]
    ['A', 'B', 'C']
    """
    board = board_of(separation)
    if not isinstance(title, str):
        raise ArgumentError(f"title must be a text, got {title!r}.")
    frame = Frame(limits=_checked_limits(limits), title=_style.one_line(title) if title else "")
    if ax is None:
        width = figure_width([board])
        ax = _canvas.new_axes(width, figure_height(board, width, frame))
    width, height = _canvas.size_in_points(ax)
    for font in _layout.fonts():
        plan = plan_of(ax, board, width, font, frame)
        if plan.height + 2 * _canvas.PAD <= height + 0.5:
            draw_plan(ax, plan, width, height)
            return ax
    raise _canvas.too_small(ax, f"a diagram of {len(board.names)} algorithms", plan.height + 2 * _canvas.PAD)


def _checked_limits(limits: object) -> tuple[float, float] | None:
    if limits is None:
        return None
    try:
        low, high = map(float, limits)  # type: ignore[call-overload]
    except (TypeError, ValueError):
        low = high = math.nan
    if not low < high or math.isinf(low) or math.isinf(high):
        raise ArgumentError(f"limits must be two scores in ascending order, such as (0.0, 1.0), got {limits!r}.")
    return low, high


@dataclass(frozen=True, slots=True, kw_only=True)
class Frame:
    """What a diagram takes over from others beside it.

    `limits` are scores that the axis reaches; `ticks` take the place of its own choice; `zones` are the least widths
    of the labels left and right of the axis, in points; `title` is a line above; without `foot` the text below is left
    out.
    """

    limits: tuple[float, float] | None = None
    ticks: _layout.Ticks | None = None
    zones: tuple[float, float] = (0.0, 0.0)
    title: str = ""
    foot: bool = True


# ------------------------------------------------------------ what is drawn


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """The content of a diagram: everything that does not depend on the size of the axes.

    `means` ascend; `groups` are index tuples into them, of two or more members, and `open` says which hold an undecided
    pair; `sides` is "left" or "right" per algorithm; `missing` names the algorithms without a mean; `undecided` and
    `significant` count pairs.
    """

    names: tuple[str, ...]
    means: tuple[float, ...]
    groups: tuple[tuple[int, ...], ...]
    open: tuple[bool, ...]
    missing: tuple[str, ...]
    differences: tuple[float, float] | None
    direction: str | None
    subject: str
    test: str
    undecided: int
    significant: int

    @property
    def sides(self) -> tuple[str, ...]:
        count = len(self.names)
        left = count // 2 if self.direction == "maximize" else (count + 1) // 2
        return ("left",) * left + ("right",) * (count - left)

    @property
    def rows(self) -> int:
        return (len(self.names) + 1) // 2

    @property
    def ruler_text(self) -> str:
        return "" if self.differences is None else f"CD {_style.interval(*self.differences)}"

    @property
    def direction_text(self) -> str:
        return {"minimize": "← lower is better", "maximize": "higher is better →"}.get(self.direction or "", "")


def board_of(separation: Separation) -> Board:
    means = dict(zip(separation.levels, map(float, separation.means), strict=True))
    placed = in_tie_order((level for level in means if math.isfinite(means[level])), lambda level: means[level])
    if not placed:
        raise ArgumentError(
            "separation has no finite mean to draw: "
            f"{', '.join(map(str, means))} cannot be estimated. The notes of the marginal means say why."
        )
    index = {level: position for position, level in enumerate(placed)}
    found = (tuple(sorted(index[level] for level in group if level in index)) for group in separation.groups)
    groups = tuple(sorted({group for group in found if len(group) > 1}))
    if len(groups) > MOST_GROUPS:
        raise ArgumentError(
            f"cd_diagram draws at most {MOST_GROUPS} groups as bars, and this separation has {len(groups)}. "
            "Use pairs_matrix_plot(pairs), or compare fewer levels."
        )
    cd = separation.critical_difference
    where = ", ".join(f"{name} = {format_level(value)}" for name, value in separation.selected.items())
    subject = f"{separation.statistic[:1].upper()}{separation.statistic[1:]}s of {_style.one_line(separation.score)}"
    undecided = separation.undecided.loc[placed, placed].to_numpy(dtype=bool)
    significant = separation.significant.loc[placed, placed].to_numpy(dtype=bool)
    return Board(
        names=tuple(_style.one_line(level) for level in placed),
        means=tuple(means[level] for level in placed),
        groups=groups,
        open=tuple(bool(undecided[np.ix_(group, group)].any()) for group in groups),
        missing=tuple(_style.one_line(level) for level in means if level not in index),
        differences=None
        if cd is None or not all(math.isfinite(value) and value > 0 for value in cd)
        else (float(cd[0]), float(cd[1])),
        direction=separation.direction,
        subject=subject + (f" at {_style.one_line(where)}" if where else ""),
        test=decided_by(separation),
        undecided=int(undecided.sum()) // 2,
        significant=int(significant.sum()) // 2,
    )


# ------------------------------------------------------------ where it goes


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A board laid out in a rectangle: x and y in points from the upper left corner, downwards negative."""

    board: Board
    font: float
    labels: tuple[str, ...]
    label_font: dict[str, list[str]]
    ticks: _layout.Ticks
    axis: tuple[float, float]  # x of the first and of the last tick
    columns: tuple[float, ...]  # x of the vertical line of each algorithm
    levels: tuple[int, ...]  # which row of bars each group is drawn on
    header_rows: int
    foot: tuple[str, ...]
    title: str
    top: float  # the upper edge of the header
    y_axis: float
    y_bars: float  # the first row of bars
    y_rows: tuple[float, ...]  # the rows of labels
    height: float  # what the diagram needs

    def x(self, value: float) -> float:
        """Return the place of a score on the axis."""
        low, high = self.ticks.values[0], self.ticks.values[-1]
        return self.axis[0] + (value - low) / (high - low) * (self.axis[1] - self.axis[0])

    def score(self, place: float) -> float:
        """Return the score at a place: the inverse of `x`."""
        low, high = self.ticks.values[0], self.ticks.values[-1]
        return low + (place - self.axis[0]) / (self.axis[1] - self.axis[0]) * (high - low)


def figure_height(board: Board, width: float, frame: Frame) -> float:
    """Return the inches that a diagram of `width` inches needs, with the default font."""
    plan = plan_of(_canvas.scratch_axes(), board, width * 72, _style.base_font(), frame)
    return (plan.height + 2 * _canvas.PAD) / 72


def figure_width(boards: Sequence[Board]) -> float:
    """Return the inches that a new figure needs for the names of its diagrams."""
    names = [name for board in boards for name in board.names]
    font = _style.base_font()
    ruler = _style.Ruler(_canvas.scratch_axes(), font, **_style.font_for(names))
    wanted = (2 * ruler.widest(names) + 4 * font) / (1 - AXIS_SHARE) / 72
    return min(max(_canvas.FIGURE_WIDTH, wanted), WIDEST)


def plan_of(ax: Axes, board: Board, width: float, font: float, frame: Frame) -> Plan:
    """Lay a board out in `width` points with a font of `font` points."""
    extra = _style.font_for((*board.names, *board.missing, frame.title))
    ruler = _style.Ruler(ax, font, **extra)
    labels, own = label_zones(board, width, ruler)
    zones = (max(own[0], frame.zones[0]), max(own[1], frame.zones[1]))
    axis, ticks = _axis(ax, board, width, zones, font, frame)
    scale = (axis[1] - axis[0]) / (ticks.values[-1] - ticks.values[0])
    exact = [axis[0] + (mean - ticks.values[0]) * scale for mean in board.means]
    columns = _layout.spread(exact, COLUMN_GAP * font, axis)
    levels = _stack([(columns[group[0]], columns[group[-1]]) for group in board.groups], 1.2 * font)
    shift = max(abs(a - b) for a, b in zip(exact, columns, strict=True))
    fan = min(max(0.6 * shift, 0.6 * font), LARGEST_FAN * font) if shift > 0.5 else 0.6 * font
    header_rows = _header_rows(board, axis, scale, ruler)
    top = -_canvas.PAD - TITLE * font * bool(frame.title)
    y_axis = top - (HEADER * header_rows + (RULER - HEADER * 0.6) * bool(board.differences) + TICKS) * font
    y_bars = y_axis - fan - 0.5 * font
    bars = BAR * (max(levels) + 1) if levels else 0.0
    y_first = y_bars - (bars + 0.6) * font
    foot = _foot(board, width, _style.Ruler(ax, FOOT_FONT * font, **extra)) if frame.foot else ()
    y_rows = tuple(y_first - row * ROW * font for row in range(board.rows))
    return Plan(
        board=board,
        font=font,
        labels=tuple(labels),
        label_font=extra,
        ticks=ticks,
        axis=axis,
        columns=columns,
        levels=levels,
        header_rows=header_rows,
        foot=foot,
        title=_style.shorten([frame.title], _BOLD * (width - 2 * _canvas.PAD), ruler)[0],
        top=top,
        y_axis=y_axis,
        y_bars=y_bars,
        y_rows=y_rows,
        height=-y_rows[-1] + (1.0 + FOOT * len(foot)) * font,
    )


def label_zones(board: Board, width: float, ruler: _style.Ruler) -> tuple[list[str], tuple[float, float]]:
    """Return the labels, cut where they must be, and the width of the zones left and right of the axis."""
    gap = (ELBOW + 0.5) * ruler.size
    room = width - 2 * _canvas.PAD
    share = max((1 - AXIS_SHARE) * room / 2 - gap, 3 * ruler.size)
    sides = board.sides

    def widest(names: Sequence[str]) -> list[float]:
        sided = [[n for n, s in zip(names, sides, strict=True) if s == side] for side in ("left", "right")]
        return [ruler.widest(part) / _HINTED for part in sided]

    spare = [max(share - needed, 0.0) for needed in widest(board.names)]  # one side may use what the other leaves
    limits = {"left": share + spare[1], "right": share + spare[0]}
    labels = _style.shorten(board.names, [_HINTED * limits[side] for side in sides], ruler)
    zones = widest(labels)
    return labels, (zones[0] + gap, zones[1] + gap)


def _axis(
    ax: Axes, board: Board, width: float, zones: tuple[float, float], font: float, frame: Frame
) -> tuple[tuple[float, float], _layout.Ticks]:
    low, high = axis_range(board)
    if frame.limits is not None:
        low, high = min(low, frame.limits[0]), max(high, frame.limits[1])
    axis = (_canvas.PAD + zones[0], width - _canvas.PAD - zones[1])
    if axis[1] - axis[0] < 6 * font:
        raise _canvas.too_small(ax, "a critical-difference diagram")
    ruler = _style.Ruler(ax, font)
    ticks = frame.ticks or _layout.choose_ticks(low, high, axis[1] - axis[0], ruler, cover=True)
    first, last = ruler.width(ticks.labels[0]) / 2, ruler.width(ticks.labels[-1]) / 2
    axis = (max(axis[0], _canvas.PAD + first), min(axis[1], width - _canvas.PAD - last))
    return axis, ticks


def axis_range(board: Board) -> tuple[float, float]:
    """Return the range of the axis: all means, and the ruler unless it would squeeze them together."""
    low, high = board.means[0], board.means[-1]
    spread = high - low
    tiny = 1e-9 * max(abs(low), abs(high))
    if board.differences is not None and (spread <= tiny or board.differences[1] <= LONGEST_RULER * spread):
        spread = max(spread, board.differences[1])
    elif spread <= tiny:
        spread = max(0.1 * abs(low), tiny) or 1.0
    middle = (low + high) / 2
    return middle - spread / 2, middle + spread / 2


def _stack(spans: Sequence[tuple[float, float]], gap: float) -> tuple[int, ...]:
    """Return for each span, taken from left to right, the first level where it does not touch another."""
    ends: list[float] = []
    levels = [0] * len(spans)
    for index in sorted(range(len(spans)), key=lambda i: spans[i]):
        start, end = spans[index]
        level = next((at for at, last in enumerate(ends) if start - last >= gap), len(ends))
        ends[level : level + 1] = [end]
        levels[index] = level
    return tuple(levels)


def _header_rows(board: Board, axis: tuple[float, float], scale: float, ruler: _style.Ruler) -> int:
    """Return how many lines the texts above the axis take; direction and ruler share one if they can."""
    left, right = board.direction_text, board.ruler_text
    if not left or not right:
        return int(bool(left or right))
    taken = max(ruler.width(right), min(board.differences[1] * scale, axis[1] - axis[0]) if board.differences else 0)
    return 1 if ruler.width(left) + taken + 2 * ruler.size <= axis[1] - axis[0] else 2


def _foot(board: Board, width: float, ruler: _style.Ruler) -> tuple[str, ...]:
    sentences = [f"{board.subject}."]
    pairs = len(board.names) * (len(board.names) - 1) // 2
    if not all(board.open):
        sentences.append(f"Dots on one bar: no significant difference ({board.test}).")
    elif board.significant:
        which = "Algorithms on no common bar differ" if board.groups else "All pairs differ"
        sentences.append(f"{which} significantly ({board.test}).")
    if board.undecided == pairs > 0:
        sentences.append("No pair has a test: nothing is decided.")
    elif board.undecided:
        verb = "has no test and is" if board.undecided == 1 else "have no test and are"
        sentences.append(f"Diamonds: {board.undecided} of {pairs} pairs {verb} undecided.")
    if any(group[-1] - group[0] >= len(group) for group in board.groups):
        sentences.append("Hollow: the bar passes an algorithm that it does not join.")
    lines = [" ".join(sentences)]
    if board.missing:
        lines += [f"Mean not estimable: {', '.join(board.missing)}."]
    room = _HINTED * (width - 2 * _canvas.PAD)
    return tuple(part for line in lines for part in _style.wrap(line, room, ruler))


# ------------------------------------------------------------ drawing


def draw_plan(ax: Axes, plan: Plan, width: float, height: float) -> None:
    """Draw a plan into axes of `width` x `height` points."""
    _canvas.bare(ax)
    ax.set_xscale("linear")
    ax.set_yscale("linear")
    ax.set_xlim(plan.score(0.0), plan.score(width))
    spare = height - (plan.height + 2 * _canvas.PAD)
    ax.set_ylim(spare / 2 - height, spare / 2)
    _draw_axis(ax, plan)
    _draw_header(ax, plan)
    _draw_elbows(ax, plan)
    _draw_bars(ax, plan)
    style = _style.text_style(FOOT_FONT * plan.font, color=_style.MUTED, **plan.label_font)
    for line, text in enumerate(plan.foot):
        y = plan.y_rows[-1] - (1.0 + FOOT * (line + 0.5)) * plan.font
        ax.text(plan.score(_canvas.PAD), y, text, ha="left", va="center", **style)


def _line(ax: Axes, places: Sequence[float], heights: Sequence[float], plan: Plan, **style: Any) -> None:
    line: dict[str, Any] = {"color": _style.INK, "linewidth": 0.09 * plan.font, "marker": "none", "linestyle": "-"}
    ax.plot([plan.score(place) for place in places], heights, clip_on=False, **(line | style))


def _draw_axis(ax: Axes, plan: Plan) -> None:
    y, font = plan.y_axis, plan.font
    _line(ax, plan.axis, (y, y), plan, label="_axis", linewidth=0.12 * font)
    for value, label in zip(plan.ticks.values, plan.ticks.labels, strict=True):
        _line(ax, (plan.x(value),) * 2, (y, y + 0.45 * font), plan, label="_tick", linewidth=0.12 * font)
        ax.text(value, y + 0.65 * font, label, ha="center", va="bottom", **_style.text_style(font))


def _draw_header(ax: Axes, plan: Plan) -> None:
    board, font = plan.board, plan.font
    at_left = board.direction != "maximize"
    top = plan.top
    if plan.title:
        style = _style.text_style(font, fontweight="bold", **plan.label_font)
        ax.text(plan.score(_canvas.PAD), -_canvas.PAD, plan.title, ha="left", va="top", **style)
    if text := board.direction_text:
        x = plan.ticks.values[0] if at_left else plan.ticks.values[-1]
        side = "left" if at_left else "right"
        ax.text(x, top, text, ha=side, va="top", **_style.text_style(font, color=_style.MUTED))
    if board.differences is not None:
        _draw_ruler(ax, plan, top - HEADER * font * (plan.header_rows - 1), from_right=at_left)


def _draw_ruler(ax: Axes, plan: Plan, top: float, *, from_right: bool) -> None:
    """Draw the critical difference at the worse end of the axis, where the direction is not written."""
    board, font = plan.board, plan.font
    assert board.differences is not None
    scale = plan.x(plan.ticks.values[0] + board.differences[1]) - plan.axis[0]
    longest = min(scale, plan.axis[1] - plan.axis[0])
    shortest = longest * board.differences[0] / board.differences[1]
    start, sign = (plan.axis[1], -1.0) if from_right else (plan.axis[0], 1.0)
    text = board.ruler_text
    fits = scale <= longest * (1 + 1e-9)
    if not fits:
        text += " (beyond the axis)"
    side = "right" if from_right else "left"
    ax.text(plan.score(start), top, text, ha=side, va="top", **_style.text_style(font))
    if not fits:
        return
    y, cap = top - 1.75 * font, 0.3 * font
    _line(ax, (start, start + sign * longest), (y, y), plan, label="_cd max", linewidth=0.1 * font)
    thick = {"linewidth": 0.26 * font, "solid_capstyle": "butt"}
    _line(ax, (start, start + sign * shortest), (y, y), plan, label="_cd min", **thick)
    for place in (start, start + sign * shortest, start + sign * longest):
        _line(ax, (place, place), (y - cap, y + cap), plan, label="_cd cap", linewidth=0.12 * font)


def _draw_elbows(ax: Axes, plan: Plan) -> None:
    """Draw mean, fan, column, row, label; the outermost algorithm takes the top row, so no lines cross."""
    board, font = plan.board, plan.font
    count = len(board.names)
    for index, (name, mean, side) in enumerate(zip(plan.labels, board.means, board.sides, strict=True)):
        row = index if side == "left" else count - 1 - index
        y, column = plan.y_rows[row], plan.columns[index]
        end = plan.axis[0] - ELBOW * font if side == "left" else plan.axis[1] + ELBOW * font
        places = (plan.x(mean), column, column, end)
        heights = (plan.y_axis, plan.y_bars + 0.5 * font, y, y)
        _line(ax, places, heights, plan, label="_elbow", color=_style.MUTED, solid_joinstyle="round")
        label_at = end - 0.3 * font if side == "left" else end + 0.3 * font
        style = _style.text_style(font, **plan.label_font)
        ax.text(plan.score(label_at), y, name, ha="right" if side == "left" else "left", va="center", **style)
    dots: dict[str, Any] = {"linestyle": "none", "marker": "o", "markersize": 0.5 * font, "markeredgewidth": 0}
    ax.plot(board.means, [plan.y_axis] * count, color=_style.INK, label="_means", clip_on=False, zorder=4, **dots)


def _draw_bars(ax: Axes, plan: Plan) -> None:
    font = plan.font
    for group, is_open, level in zip(plan.board.groups, plan.board.open, plan.levels, strict=True):
        colour = _style.MUTED if is_open else _style.ACCENT
        y = plan.y_bars - BAR * font * level
        for left, right in pairwise(group):
            places = (plan.columns[left], plan.columns[right])
            whole = right == left + 1
            style: dict[str, Any] = {"linewidth": 0.12 * font, "linestyle": (0, (1, 1.5))}
            if whole:
                style = {"linewidth": 0.16 * font, "linestyle": (0, (4, 2))} if is_open else {"linewidth": 0.3 * font}
            label = ("_open bar" if is_open else "_bar") if whole else "_bar gap"
            _line(ax, places, (y, y), plan, color=colour, label=label, zorder=5, **style)
        passed = [index for index in range(group[0], group[-1]) if index not in group]
        edge = {"linestyle": "none", "markeredgewidth": 0.09 * font, "zorder": 6}
        shape = {"marker": "D", "markersize": 0.42 * font} if is_open else {"marker": "o", "markersize": 0.52 * font}
        _line(
            ax, [plan.columns[i] for i in group], [y] * len(group), plan, label="_group", color=colour, **shape, **edge
        )
        if passed:
            hollow = {"marker": "o", "markersize": 0.42 * font, "markerfacecolor": "white", "color": _style.MUTED}
            _line(ax, [plan.columns[i] for i in passed], [y] * len(passed), plan, label="_passed", **hollow, **edge)
