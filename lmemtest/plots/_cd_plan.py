"""What a critical-difference diagram shows, and where it goes in a rectangle, in points.

A mean has its exact place on the axis and on the bars. Means can be tied or nearly so, and lines that run side by side
need some distance: below the bars each algorithm therefore has a column of its own, to which its line fans out. Only
where dots would cover each other although not all are on the same bars, lines fan out above the bars and the dots are
on the columns, which the foot says.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from lmemtest.core.rounding import in_tie_order
from lmemtest.core.validate import check_flag
from lmemtest.core.words import format_level, listed, suggest
from lmemtest.errors import ArgumentError
from lmemtest.lmm.means.decisions import Decisions
from lmemtest.plots import _canvas, _layout, _names, _style
from lmemtest.plots._given import decided_by, omnibus_text

MOST_GROUPS = 60  # bars; real comparisons have about as many groups as algorithms, or fewer


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """The content of a diagram: everything that does not depend on the size of the axes.

    `means` ascend; `groups` are index tuples into them, of two or more members, and `open` says which hold an undecided
    pair; `sides` is "left" or "right" per algorithm; `missing` names the algorithms without a mean; `undecided` and
    `significant` count pairs. `values` are the means as text and `intervals` their intervals, empty if not asked for.
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
    values: tuple[str, ...] = ()
    intervals: tuple[tuple[float, float], ...] = ()
    level: float | None = None
    highlight: frozenset[int] = frozenset()
    left_only: bool = False
    omnibus: str = ""
    posterior: bool = False
    remark: str = ""  # a last sentence below

    @property
    def sides(self) -> tuple[str, ...]:
        count = len(self.names)
        left = count // 2 if self.direction == "maximize" else (count + 1) // 2
        left = count if self.left_only else left
        return ("left",) * left + ("right",) * (count - left)

    @property
    def rows(self) -> int:
        return len(self.names) if self.left_only else (len(self.names) + 1) // 2

    @property
    def ruler_text(self) -> str:
        return "" if self.differences is None else f"CD {_style.interval(*self.differences)}"

    @property
    def direction_text(self) -> str:
        return {"minimize": f"← {_style.BETTER['minimize']}", "maximize": f"{_style.BETTER['maximize']} →"}.get(
            self.direction or "", ""
        )


def board_of(
    decisions: Decisions,
    *,
    values: bool = False,
    whiskers: bool = False,
    highlight: str | Iterable[str] = (),
    left_only: bool = False,
) -> Board:
    """The content of the diagram of decisions; the options are those of `cd_diagram`."""
    for name, flag in {"values": values, "whiskers": whiskers, "left_only": left_only}.items():
        check_flag(flag, name)
    means = dict(zip(decisions.levels, map(float, decisions.means), strict=True))
    placed = in_tie_order((level for level in means if math.isfinite(means[level])), lambda level: means[level])
    if not placed:
        raise ArgumentError(
            "decisions has no finite mean to draw: "
            f"{', '.join(map(str, means))} cannot be estimated. The notes of the marginal means say why."
        )
    index = {level: position for position, level in enumerate(placed)}
    places = (tuple(sorted(index[level] for level in group if level in index)) for group in decisions.groups)
    groups = tuple(sorted({group for group in places if len(group) > 1}))
    if len(groups) > MOST_GROUPS:
        raise ArgumentError(
            f"cd_diagram draws at most {MOST_GROUPS} groups as bars, and these decisions have {len(groups)}. "
            "Use comparison_matrix_plot or p_value_plot, or compare fewer levels."
        )
    cd = decisions.critical_difference
    where = ", ".join(f"{name} = {format_level(value)}" for name, value in decisions.selected.items())
    undecided = decisions.undecided.loc[placed, placed].to_numpy(dtype=bool)
    significant = decisions.significant.loc[placed, placed].to_numpy(dtype=bool)
    return Board(
        names=tuple(_style.one_line(level) for level in placed),
        means=tuple(means[level] for level in placed),
        groups=groups,
        open=tuple(bool(undecided[np.ix_(group, group)].any()) for group in groups),
        missing=tuple(_style.one_line(level) for level in means if level not in index),
        differences=None
        if cd is None or decisions.out_of_reach or not all(math.isfinite(value) and value > 0 for value in cd)
        else (float(cd[0]), float(cd[1])),
        direction=decisions.direction,
        subject=_subject(decisions) + (f" at {_style.one_line(where)}" if where else ""),
        test=decided_by(decisions),
        undecided=int(undecided.sum()) // 2,
        significant=int(significant.sum()) // 2,
        values=_as_text([means[level] for level in placed]) if values else (),
        intervals=_intervals(decisions, index) if whiskers else (),
        level=decisions.level,
        highlight=frozenset(index[name] for name in _known(highlight, decisions) if name in index),
        left_only=left_only,
        omnibus=omnibus_text(decisions),
        posterior=decisions.posterior,
    )


def _subject(decisions: Decisions) -> str:
    """What the means are of."""
    what = f"{decisions.statistic[:1].upper()}{decisions.statistic[1:]}s"
    score = _style.one_line(decisions.score)
    return f"{what} {score.removeprefix('rank ')}" if score.startswith("rank by ") else f"{what} of {score}"


def _as_text(means: list[float]) -> tuple[str, ...]:
    """Means with equal decimals: three digits of their range."""
    spread = means[-1] - means[0]
    size = max(map(abs, means))
    places = _style.decimals(spread, 3) if spread > 1e-9 * size else _style.decimals(size, 4)
    return tuple(_style.fixed(mean, places) for mean in means)


def _intervals(decisions: Decisions, index: Mapping[str, int]) -> tuple[tuple[float, float], ...]:
    if decisions.ci_low is None or decisions.ci_high is None:
        raise ArgumentError(
            "whiskers asks for intervals of the means, and these decisions have none. Give means with the columns "
            "ci_low and ci_high, or leave whiskers out."
        )
    ends = dict(zip(decisions.levels, zip(decisions.ci_low, decisions.ci_high, strict=True), strict=True))
    return tuple(ends[level] for level in index)


def _known(highlight: Any, decisions: Decisions) -> tuple[str, ...]:
    """The names to highlight, each of a level."""
    one = isinstance(highlight, str) or not isinstance(highlight, Iterable) or getattr(highlight, "ndim", None) == 0
    names = (highlight,) if one else tuple(highlight)
    names = tuple(map(format_level, names))
    for name in names:
        if name not in decisions.levels:
            raise ArgumentError(
                f"highlight names {name!r}, which is not one of {listed(decisions.levels)}."
                f"{suggest(name, decisions.levels)}"
            )
    return names


# All heights are in units of the font size, so that the diagram scales as a whole.
TITLE = 1.7
HEADER, RULER, TICKS, WHISKER, ROW, BAR, FOOT = 1.7, 1.7, 2.0, 0.7, 1.75, 0.85, _layout.LINE * _layout.SMALL
COLUMN_GAP = 1.0  # least distance of two lines that run side by side
DOT_GAP = 0.6  # least distance of dots on a bar that do not cover each other
LARGEST_FAN = 3.0
ELBOW = 0.9  # how far the lines reach beyond the axis, so that an extreme mean has an elbow too
AXIS_SHARE = 0.34  # the least part of the width that belongs to the axis; the labels share the rest ...
BESIDE_VALUES = 0.24  # ... and with values beside them they need more: an axis says less than its values
FOOT_FONT = _layout.SMALL
MOST_LINES, FEW_ROWS = 3, 4  # of a name where rows are few
VALUE_GAP = 0.7  # between a value and its name
_BOLD = 0.85  # of the width that text which is measured as plain may take in bold
_HINTED = 0.93  # small text of a saved figure is up to 7 % wider than at the resolution of the screen
WIDEST = 9.5  # inches; long names widen a new figure up to here, then they are wrapped
LONGEST_RULER = 3.0  # a critical difference beyond this many ranges of the means would squeeze them together


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A board laid out in a rectangle: x and y in points from the upper left corner, downwards negative."""

    board: Board
    font: float
    labels: tuple[str, ...]
    ticks: tuple[float, ...]
    tick_labels: list[str]
    axis: tuple[float, float]  # x of the first and of the last tick
    columns: tuple[float, ...]  # x of the vertical line of each algorithm
    dots: tuple[float, ...]  # x of each algorithm on the bars: its exact place, or its column
    lanes: tuple[int, ...]  # which row of whiskers each interval is drawn on
    levels: tuple[int, ...]  # which row of bars each group is drawn on
    header_rows: int
    ruler: tuple[str, float]  # the words of the critical difference, and the x of their outer end
    value_width: float  # of the widest of the values beside the names
    marks: tuple[str, ...]  # lines below the diagram that must not be overlooked, then the others
    foot: tuple[str, ...]
    sentences: tuple[str, ...]  # of the foot
    title: str
    top: float  # the upper edge of the header
    y_axis: float
    y_fan: float  # where lines leave their means for their columns
    y_columns: float  # where they reach these
    y_bars: float  # the first row of bars
    y_rows: tuple[float, ...]  # the rows of labels
    y_foot: float  # the upper edge of the lines below
    height: float  # what the diagram needs

    def x(self, value: float) -> float:
        """Return the place of a score on the axis."""
        low, high = self.ticks[0], self.ticks[-1]
        return self.axis[0] + (value - low) / (high - low) * (self.axis[1] - self.axis[0])

    def score(self, place: float) -> float:
        """Return the score at a place: the inverse of `x`."""
        low, high = self.ticks[0], self.ticks[-1]
        return low + (place - self.axis[0]) / (self.axis[1] - self.axis[0]) * (high - low)


def figure_height(board: Board, width: float, font: float, **frame: Any) -> float:
    """Return the inches that a diagram of `width` inches needs."""
    plan = plan_of(_canvas.scratch_axes(), board, width * 72, font, **frame)
    return (plan.height + 2 * _canvas.PAD) / 72


def fonts_for(boards: Sequence[Board], width: float) -> list[float]:
    """Font sizes of a new figure of `width` inches, from the largest with which every name is on one line; where there
    is none, from the largest with which every name is whole."""
    ax, fonts = _canvas.scratch_axes(width), list(_layout.fonts())
    most_lines = []
    for font in fonts:
        rulers = [_style.Ruler(ax, font, **_style.font_for(board.names)) for board in boards]
        zones = [label_zones(board, 72 * width, ruler) for board, ruler in zip(boards, rulers, strict=True)]
        lines = max(1 + label.count("\n") for labels, _, _ in zones for label in labels)
        most_lines.append(math.inf if any(key for _, key, _ in zones) else lines)
        if lines == 1 and most_lines[-1] == 1:
            break
    whole = [count == 1 for count in most_lines], [count < math.inf for count in most_lines]
    return next((fonts[good.index(True) :] for good in whole if any(good)), fonts)


def figure_width(boards: Sequence[Board]) -> float:
    """Return the inches that a new figure needs for the names of its diagrams."""
    names = [name for board in boards for name in board.names]
    font = _style.base_font()
    ruler = _style.Ruler(_canvas.scratch_axes(), font, **_style.font_for(names))
    beside = max(_value_width(board, ruler) for board in boards)
    sides = 1 if all(board.left_only for board in boards) else 2
    wanted = (sides * (ruler.widest(names) + beside) + 4 * font) / (1 - AXIS_SHARE) / 72
    return _canvas.figure_width(min(max(_canvas.FIGURE_WIDTH, wanted), WIDEST))


def plan_of(
    ax: Axes,
    board: Board,
    width: float,
    font: float,
    *,
    limits: tuple[float, float] | None = None,
    ticks: tuple[tuple[float, ...], list[str]] | None = None,
    zones: tuple[float, float] = (0.0, 0.0),
    title: str = "",
    without: frozenset[str] = frozenset(),
    numbers: Mapping[str, int] = MappingProxyType({}),
) -> Plan:
    """Lay a board out in `width` points with a font of `font` points.

    `limits` are scores that the axis reaches; `title` is a line above. What a diagram takes over from others beside it:
    `ticks` with their labels in place of its own choice, the least widths of the `zones` of labels left and right of
    the axis, in points, sentences `without` which its foot is, because they are below others, and the `numbers` that
    names have there.
    """
    extra = _style.font_for((*board.names, *board.missing, title))
    ruler = _style.Ruler(ax, font, **extra)
    labels, key, label_bounds = label_zones(board, width, ruler, numbers)
    zones = (max(label_bounds[0], zones[0]), max(label_bounds[1], zones[1]))
    low, high = axis_range(board)
    if limits is not None:
        low, high = min(low, limits[0]), max(high, limits[1])
    axis = (_canvas.PAD + zones[0], width - _canvas.PAD - zones[1])
    if axis[1] - axis[0] < 6 * font:
        raise _canvas.too_small(ax, "a critical-difference diagram")
    plain = _style.Ruler(ax, font)
    places, names = ticks or _layout.choose_ticks(low, high, axis[1] - axis[0], plain, cover=True)
    first, last = plain.width(names[0]) / 2, plain.width(names[-1]) / 2
    axis = (max(axis[0], _canvas.PAD + first), min(axis[1], width - _canvas.PAD - last))
    start = places[0]
    scale = (axis[1] - axis[0]) / (places[-1] - start)
    exact = [axis[0] + (mean - start) * scale for mean in board.means]
    columns = _layout.spread(exact, COLUMN_GAP * font, axis)
    apart = _hides_members(board, exact, font)
    dots = columns if apart else tuple(exact)
    levels = stack([(dots[group[0]], dots[group[-1]]) for group in board.groups], 1.2 * font)
    whiskers = zip(board.intervals, board.means, strict=False)  # an interval that is missing takes no room
    ends = [(low, high) if low <= high else (mean, mean) for (low, high), mean in whiskers]
    lanes = stack([(axis[0] + (low - start) * scale, axis[0] + (high - start) * scale) for low, high in ends], font)
    shift = max(abs(a - b) for a, b in zip(exact, columns, strict=True))
    moved = shift > 0.5
    fan = min(max(0.6 * shift, 0.6 * font), LARGEST_FAN * font) if moved else 0.6 * font
    words = board.ruler_text
    if board.differences is not None and board.differences[1] * scale > (axis[1] - axis[0]) * (1.0 + 1e-9):
        words += " (beyond the axis)"
    taken = _canvas.PAD + ruler.width(words)  # words that are longer than the axis keep inside of the figure
    outer = min(axis[0], width - taken) if board.direction == "maximize" else max(axis[1], taken)
    header_rows = _header_rows(board, axis, scale, ruler, words)
    title_lines = _style.wrap(title, _BOLD * (width - 2 * _canvas.PAD), ruler) if title else []
    top = -_canvas.PAD - (TITLE + _layout.LINE * (len(title_lines) - 1)) * font * bool(title)
    y_axis = top - (HEADER * header_rows + (RULER - HEADER * 0.6) * bool(board.differences) + TICKS) * font
    y_free = y_axis - (WHISKER * (max(lanes) + 1) + 0.3) * font if lanes else y_axis
    bars = BAR * (max(levels) + 1) * font if levels else 0.0
    if apart or not levels:
        y_fan, y_columns = y_free, y_free - fan
        y_bars = y_columns - 0.5 * font
        y_first = y_bars - bars - 0.6 * font
    else:
        y_bars = y_free - 1.1 * font
        y_fan = y_bars - bars + 0.2 * font
        y_columns = y_fan - fan * moved
        y_first = y_columns - 0.8 * font
    small = _style.Ruler(ax, FOOT_FONT * font, **extra)
    marks = _lines([board.omnibus] * bool(board.omnibus), _BOLD * width, small)
    sentences = [text for text in (*_foot(board, apart=apart and moved), *key) if text not in without]
    foot = _lines([" ".join(sentences)], width, small)
    folded = _layout.LINE * max(label.count("\n") for label in labels)
    pitch = ROW + folded
    y_rows = tuple(y_first - row * pitch * font for row in range(board.rows))
    return Plan(
        board=board,
        font=font,
        labels=tuple(labels),
        ticks=places,
        tick_labels=names,
        axis=axis,
        columns=columns,
        dots=dots,
        lanes=lanes,
        levels=levels,
        header_rows=header_rows,
        ruler=(words, outer),
        value_width=_value_width(board, ruler),
        marks=marks,
        foot=foot,
        sentences=tuple(sentences),
        title="\n".join(title_lines),
        top=top,
        y_axis=y_axis,
        y_fan=y_fan,
        y_columns=y_columns,
        y_bars=y_bars,
        y_rows=y_rows,
        y_foot=y_rows[-1] - (1.0 + folded / 2.0) * font,
        height=-y_rows[-1] + (1.0 + folded / 2.0 + FOOT * len(marks + foot)) * font,
    )


def _hides_members(board: Board, exact: Sequence[float], font: float) -> bool:
    """Whether dots at the exact means would hide who is on a bar: covered by others' dots, or on a bar of no length."""
    for group in board.groups:
        close = np.diff(exact) < DOT_GAP * font
        member = np.isin(np.arange(len(exact)), group)
        if exact[group[-1]] - exact[group[0]] < COLUMN_GAP * font or (close & (member[1:] != member[:-1])).any():
            return True
    return False


def label_zones(
    board: Board, width: float, ruler: _style.Ruler, numbers: Mapping[str, int] = MappingProxyType({})
) -> tuple[list[str], list[str], tuple[float, float]]:
    """Return the labels, on two or three lines where they must be, the key to shortened ones, which may have `numbers`
    already, and the width of the zones left and right of the axis."""
    gap = (ELBOW + 0.5) * ruler.size + _value_width(board, ruler)
    room = width - 2 * _canvas.PAD
    of_axis = BESIDE_VALUES if board.values else AXIS_SHARE
    share = max((1 - of_axis) * room / 2 - gap, 3 * ruler.size)
    sides = board.sides
    plain = [_HINTED * (_BOLD if i in board.highlight else 1.0) for i in range(len(board.names))]  # of the room

    def widest(names: Sequence[str]) -> list[float]:
        taken = [ruler.width(name) / part for name, part in zip(names, plain, strict=True)]
        sided = [[w for w, s in zip(taken, sides, strict=True) if s == side] for side in ("left", "right")]
        return [max(part, default=0.0) for part in sided]

    spare = [max(share - needed, 0.0) for needed in widest(board.names)]  # one side may use what the other leaves
    spare[1] += gap * board.left_only
    limits = {"left": share + spare[1], "right": share + spare[0]}
    rooms = [part * limits[side] for part, side in zip(plain, sides, strict=True)]
    lines = MOST_LINES if board.rows <= FEW_ROWS else 2
    labels, key = _names.fitted(board.names, rooms, ruler, lines, numbers=numbers)
    zones = widest(labels)
    return labels, key, (zones[0] + gap, zones[1] + gap * ("right" in sides))


def _value_width(board: Board, ruler: _style.Ruler) -> float:
    """Width of the values beside the names, with what is between them."""
    return ruler.widest(board.values) + VALUE_GAP * ruler.size if board.values else 0.0


def axis_range(board: Board) -> tuple[float, float]:
    """Return the range of the axis: all means, and the ruler unless it would squeeze them together."""
    ends = [*board.means, *(end for pair in board.intervals for end in pair if math.isfinite(end))]
    low, high = min(ends), max(ends)
    spread = high - low
    tiny = 1e-9 * max(abs(low), abs(high))
    if board.differences is not None and (spread <= tiny or board.differences[1] <= LONGEST_RULER * spread):
        spread = max(spread, board.differences[1])
    elif spread <= tiny:
        spread = max(0.1 * abs(low), tiny) or 1.0
    middle = (low + high) / 2
    return middle - spread / 2, middle + spread / 2


def stack(spans: Sequence[tuple[float, float]], gap: float) -> tuple[int, ...]:
    """Return for each span, taken from left to right, the first level where it does not touch another."""
    ends: list[float] = []
    levels = [0] * len(spans)
    for index in sorted(range(len(spans)), key=lambda i: spans[i]):
        start, end = spans[index]
        level = next((at for at, last in enumerate(ends) if start - last >= gap), len(ends))
        ends[level : level + 1] = [end]
        levels[index] = level
    return tuple(levels)


def _header_rows(board: Board, axis: tuple[float, float], scale: float, ruler: _style.Ruler, right: str) -> int:
    """Return how many lines the texts above the axis take; direction and ruler share one if they can."""
    left = board.direction_text
    if not left or not right:
        return int(bool(left or right))
    taken = max(ruler.width(right), min(board.differences[1] * scale, axis[1] - axis[0]) if board.differences else 0)
    return 1 if ruler.width(left) + taken + 2 * ruler.size <= axis[1] - axis[0] else 2


def _foot(board: Board, *, apart: bool) -> list[str]:
    """Sentences about what the diagram shows and how to read it; `apart` if dots are on columns and not at means."""
    sentences = [f"{board.subject}."]
    pairs = len(board.names) * (len(board.names) - 1) // 2
    if not all(board.open):
        none = "no difference is decided" if board.posterior else "no significant difference"
        sentences.append(f"Dots on one bar: {none} ({board.test}).")
    elif board.significant:
        which = "Algorithms on no common bar differ" if board.groups else "All pairs differ"
        sentences.append(f"{which} {'decidedly' if board.posterior else 'significantly'} ({board.test}).")
    if board.undecided == pairs > 0:
        sentences.append("No pair has a test: nothing is decided.")
    elif board.undecided:
        verb = "has no test and is" if board.undecided == 1 else "have no test and are"
        sentences.append(f"Diamonds: {board.undecided} of {pairs} pairs {verb} undecided.")
    if any(group[-1] - group[0] >= len(group) for group in board.groups):
        sentences.append("Hollow: the bar passes an algorithm that it does not join.")
    if apart:
        sentences.append("Close means stand apart below the axis, which has their values.")
    if board.direction is None:
        sentences.append("Whether lower or higher is better is not known.")
    if board.intervals:
        level = "" if board.level is None else _style.nobreak(f"{100 * board.level:g} % ")
        sentences.append(f"Whiskers: individual {level}intervals of the means; the bars show which differ.")
    if board.missing:
        sentences.append(f"Mean not estimable: {', '.join(board.missing)}.")
    return [*sentences, board.remark] if board.remark else sentences


def _lines(texts: Sequence[str], width: float, ruler: _style.Ruler) -> tuple[str, ...]:
    room = _HINTED * (width - 2 * _canvas.PAD)
    return tuple(part for text in texts for part in _style.wrap(text, room, ruler))
