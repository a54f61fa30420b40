"""A planned critical-difference diagram as marks, and drawn into axes.

Four things differ from the diagram for ranks. The critical difference has a range, because every pair has
its own standard error. A group that does not differ need not be contiguous: a bar therefore carries a dot at
each member and thins to a dotted line with a hollow circle where it passes an algorithm that does differ. A pair
without a test is undecided: the bar that joins it is dashed and has diamonds. And means can be tied or nearly so: each
algorithm has a dot on the axis and on its bars at its exact mean, and its line fans out to a column of its own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import Any

from matplotlib.axes import Axes

from lmemtest.plots import _canvas, _style
from lmemtest.plots._cd_plan import BAR, ELBOW, FOOT, FOOT_FONT, HEADER, VALUE_GAP, WHISKER, Plan

EMPHASIS = _style.as_text(_style.WARM)  # of text
Mark = tuple[str, Sequence[float], Sequence[float], dict[str, Any]]


def draw_plan(ax: Axes, plan: Plan, width: float, height: float) -> None:
    """Draw a plan into axes of `width` x `height` points, whose x is the score."""
    _canvas.bare(ax)
    ax.set_xscale("linear")
    ax.set_yscale("linear")
    ax.set_xlim(plan.score(0.0), plan.score(width))
    spare = height - (plan.height + 2 * _canvas.PAD)
    ax.set_ylim(spare / 2 - height, spare / 2)
    kinds: dict[str, Callable[..., None]] = {"line": _line, "dots": _dots, "text": _text}
    for kind, places, heights, style in marks(plan):
        kinds[kind](ax, [plan.score(place) for place in places], heights, **style)


def _line(
    ax: Axes,
    scores: Sequence[float],
    heights: Sequence[float],
    *,
    label: str,
    width: float,
    colour: str = _style.INK,
    dash: tuple[float, float] | None = None,
    above: int = 2,
    round_joins: bool = False,
    part: str = "",
) -> None:
    style: dict[str, Any] = {"color": colour, "linewidth": width, "marker": "none", "zorder": above}
    style |= {"gid": _style.part(part)} if part else {}
    style["linestyle"] = "-" if dash is None else (0, dash)
    if round_joins:
        style["solid_joinstyle"] = "round"
    if label == "_cd min":
        style["solid_capstyle"] = "butt"
    ax.plot(scores, heights, clip_on=False, label=label, **style)


def _dots(
    ax: Axes,
    scores: Sequence[float],
    heights: Sequence[float],
    *,
    label: str,
    size: float,
    colour: str = _style.INK,
    shape: str = "o",
    rim: float = 0.0,
    face: str | None = None,
    above: int = 6,
    exact: Sequence[float] | None = None,
) -> None:
    style: dict[str, Any] = {"linestyle": "none", "marker": shape, "markersize": size, "markeredgewidth": rim}
    style |= {"color": colour, "markerfacecolor": colour if face is None else face, "zorder": above}
    ax.plot(scores if exact is None else exact, heights, label=label, clip_on=False, **style)


def _text(
    ax: Axes,
    scores: Sequence[float],
    heights: Sequence[float],
    *,
    text: str,
    size: float,
    ha: str,
    va: str,
    colour: str = _style.INK,
    bold: bool = False,
    part: str = "",
) -> None:
    fonts = _style.font_for([text])
    weight = "bold" if bold and not fonts else "normal"  # fonts of other scripts have no bold letters
    style = _style.text_style(size, color=colour, fontweight=weight, ha=ha, va=va, **fonts)
    ax.text(scores[0], heights[0], text, gid=_style.part(part) if part else None, **style)


def marks(plan: Plan) -> Iterator[Mark]:
    """All that is drawn of a plan: what it is, places and heights in points from the upper left corner, and its style.

    Widths and sizes are in points, too. A "line" goes through its points; `dash` holds on and off, in widths of the
    line; `label` says what it is; the higher `above`, the later. "dots" are circles ("o") or diamonds ("D"), filled
    with `face`; the rim of width `rim` has the colour; `exact` are the scores of dots whose places round them. A "text"
    is shown literally. `part` is whose line or text it is.
    """
    yield from _axis(plan)
    yield from _header(plan)
    yield from _whiskers(plan)
    yield from _elbows(plan)
    yield from _bars(plan)
    for line, text in enumerate(plan.marks + plan.foot):
        y = plan.y_foot - FOOT * (line + 0.5) * plan.font
        marked = line < len(plan.marks)
        colour = EMPHASIS if marked else _style.MUTED
        size = FOOT_FONT * plan.font
        yield _words(_canvas.PAD, y, text, size, "left", "center", colour=colour, bold=marked)


def _words(place: float, height: float, text: str, size: float, ha: str, va: str, **style: Any) -> Mark:
    return "text", [place], [height], {"text": text, "size": size, "ha": ha, "va": va, **style}


def _axis(plan: Plan) -> Iterator[Mark]:
    y, font = plan.y_axis, plan.font
    yield "line", plan.axis, (y, y), {"label": "_axis", "width": 0.12 * font}
    for value, label in zip(plan.ticks, plan.tick_labels, strict=True):
        x = plan.x(value)
        yield "line", (x, x), (y, y + 0.45 * font), {"label": "_tick", "width": 0.12 * font}
        yield _words(x, y + 0.65 * font, label, font, "center", "bottom")


def _header(plan: Plan) -> Iterator[Mark]:
    board, font = plan.board, plan.font
    at_left = board.direction != "maximize"
    top = plan.top
    if plan.title:
        yield _words(_canvas.PAD, -_canvas.PAD, plan.title, font, "left", "top", bold=True)
    if text := board.direction_text:
        side = "left" if at_left else "right"
        yield _words(plan.axis[0 if at_left else 1], top, text, font, side, "top", colour=_style.MUTED)
    if board.differences is not None:
        yield from _ruler(plan, top - HEADER * font * (plan.header_rows - 1), from_right=at_left)


def _ruler(plan: Plan, top: float, *, from_right: bool) -> Iterator[Mark]:
    """The critical difference at the worse end of the axis, where the direction is not written."""
    board, font = plan.board, plan.font
    assert board.differences is not None
    scale = plan.x(plan.ticks[0] + board.differences[1]) - plan.axis[0]
    longest = min(scale, plan.axis[1] - plan.axis[0])
    shortest = longest * board.differences[0] / board.differences[1]
    start, sign = (plan.axis[1], -1.0) if from_right else (plan.axis[0], 1.0)
    text, outer = plan.ruler
    yield _words(outer, top, text, font, "right" if from_right else "left", "top")
    if text != board.ruler_text:  # beyond the axis
        return
    y, cap = top - 1.75 * font, 0.3 * font
    yield "line", (start, start + sign * longest), (y, y), {"label": "_cd max", "width": 0.1 * font}
    yield "line", (start, start + sign * shortest), (y, y), {"label": "_cd min", "width": 0.26 * font}
    for place in (start, start + sign * shortest, start + sign * longest):
        yield "line", (place, place), (y - cap, y + cap), {"label": "_cd cap", "width": 0.12 * font}


def _whiskers(plan: Plan) -> Iterator[Mark]:
    """The interval of each mean in a lane below the axis."""
    font = plan.font
    for index, ((low, high), lane) in enumerate(zip(plan.board.intervals, plan.lanes, strict=True)):
        y = plan.y_axis - (WHISKER * (lane + 0.5) + 0.3) * font
        colour = _style.WARM if index in plan.board.highlight else _style.NEUTRAL
        if math.isfinite(low) and math.isfinite(high):
            ends = plan.x(low), plan.x(high)
            yield "line", ends, (y, y), {"label": "_whisker", "width": 0.22 * font, "colour": colour, "above": 3}
            yield "dots", [plan.x(plan.board.means[index])], [y], {"label": "_centre", "size": 0.45 * font, "above": 4}


def _elbows(plan: Plan) -> Iterator[Mark]:
    """Mean, fan, column, row, label; the outermost algorithm takes the top row, so no lines cross."""
    board, font = plan.board, plan.font
    count = len(board.names)
    for index, (name, mean, side) in enumerate(zip(plan.labels, board.means, board.sides, strict=True)):
        row = index if side == "left" else count - 1 - index
        y, column = plan.y_rows[row], plan.columns[index]
        outwards = -1.0 if side == "left" else 1.0
        end = plan.axis[0 if side == "left" else 1] + outwards * ELBOW * font
        places = [plan.x(mean), plan.x(mean), column, column, end]
        heights = [plan.y_axis, plan.y_fan, plan.y_columns, y, y]
        if plan.y_fan == plan.y_axis:
            del places[0], heights[0]
        chosen = index in board.highlight
        line = _style.WARM if chosen else _style.MUTED
        yield (
            "line",
            places,
            heights,
            {"label": "_elbow", "colour": line, "width": 0.09 * font * (1 + chosen), "round_joins": True}
            | {"part": board.names[index]},
        )
        label_at = end + outwards * 0.3 * font
        anchor = "right" if side == "left" else "left"
        ink = EMPHASIS if chosen else _style.INK
        if board.values:
            value_at = label_at + outwards * (plan.value_width - VALUE_GAP * font) * (side == "right")
            yield _words(value_at, y, board.values[index], font, "right", "center", colour=_style.MUTED)
            label_at += outwards * plan.value_width
        yield _words(label_at, y, name, font, anchor, "center", colour=ink, bold=chosen, part=board.names[index])
    yield (
        "dots",
        list(map(plan.x, board.means)),
        [plan.y_axis] * count,
        {"label": "_means", "size": 0.5 * font, "above": 4, "exact": board.means},
    )


def _bars(plan: Plan) -> Iterator[Mark]:
    font = plan.font
    for group, is_open, level in zip(plan.board.groups, plan.board.open, plan.levels, strict=True):
        colour = _style.MUTED if is_open else _style.ACCENT
        y = plan.y_bars - BAR * font * level
        for left, right in pairwise(group):
            ends = (plan.dots[left], plan.dots[right])
            if right != left + 1:
                label, width, dash = "_bar gap", 0.12 * font, (1.0, 1.5)
            elif is_open:
                label, width, dash = "_open bar", 0.16 * font, (4.0, 2.0)
            else:
                label, width, dash = "_bar", 0.3 * font, None
            yield "line", ends, (y, y), {"label": label, "width": width, "colour": colour, "dash": dash, "above": 5}
        passed = [index for index in range(group[0], group[-1]) if index not in group]
        rim, members = 0.09 * font, [plan.dots[i] for i in group]
        shape, size = ("D", 0.42 * font) if is_open else ("o", 0.52 * font)
        yield (
            "dots",
            members,
            [y] * len(group),
            {"label": "_group", "size": size, "colour": colour, "shape": shape, "rim": rim},
        )
        if passed:
            places = [plan.dots[i] for i in passed]
            hollow: dict[str, Any] = {"size": 0.42 * font, "colour": _style.MUTED, "rim": rim, "face": "white"}
            yield "dots", places, [y] * len(passed), {"label": "_passed", **hollow}
