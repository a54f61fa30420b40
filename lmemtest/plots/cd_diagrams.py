"""Several critical-difference diagrams in one figure, on one scale: data sets, budgets, or tests."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from matplotlib.axes import Axes

from lmemtest.bench.ranking.ranking import Ranking
from lmemtest.core.validate import check_choice, check_flag
from lmemtest.errors import ArgumentError
from lmemtest.lmm.means.decisions import Decisions
from lmemtest.plots import _canvas, _layout, _style
from lmemtest.plots._cd_board import Board, board_of
from lmemtest.plots._cd_draw import draw_plan
from lmemtest.plots._cd_plan import Frame, Plan, axis_range, figure_width, label_zones, plan_of
from lmemtest.plots._given import as_decisions

LAYOUTS = ("stacked", "beside")
# Means that move between diagrams by more than this many times their range in one would all be squeezed together.
_MOST_MOVEMENT = 3.0
_GAP = 0.8  # between stacked diagrams, in font sizes
_BESIDE = 5.0  # inches of a diagram beside others: the text width would make a figure of 28 inches of four


def cd_diagrams(
    panels: Mapping[Any, Decisions | Ranking],
    /,
    *,
    share_axis: bool = True,
    layout: str = "stacked",
    values: bool = False,
    whiskers: bool = False,
    highlight: str | Iterable[str] = (),
    left_only: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """Draw several diagrams in one figure: data sets, budgets, or the same runs by several tests.

    Parameters
    ----------
    panels : mapping of str to Decisions or Ranking
        The diagrams by their titles, in this order.
    share_axis : bool
        Whether a length is the same difference in all diagrams. Means of different scores cannot share an axis.
    layout : {"stacked", "beside"}
        Diagrams one below the other, or side by side.
    values, whiskers, highlight, left_only
        As in `cd_diagram`; a name to highlight must be in one diagram at least.
    ax : Axes, optional
        Where to draw, labels included; by default a new figure, as large as its content.

    Returns
    -------
    Axes
        It holds the diagrams, ``ax.child_axes``, each as that of `cd_diagram`.

    Raises
    ------
    ArgumentError
        If `panels` is something else, scores that share an axis differ, or `ax` is too small.

    Notes
    -----
    Axes that are shared also start at the same score, so that a mean can be followed from one to the next, unless means
    move so far between diagrams that those of one would be squeezed together; then each has its own start, and the
    first title says so.

    Examples
    --------
    >>> import pandas as pd
    >>> import lmemtest as lt
    >>> p = pd.DataFrame([[1, 0.04], [0.04, 1]], ["A", "B"], ["A", "B"])
    >>> from lmemtest.lmm.means.decisions import Decisions
    >>> found = {name: Decisions.of({"A": a, "B": 2.0}, p) for name, a in {"small": 1.0, "large": 1.4}.items()}
    >>> len(lt.plots.cd_diagrams(found).child_axes)
    2
    """
    _canvas.check_axes(ax)
    check_flag(share_axis, "share_axis")
    if not isinstance(panels, Mapping) or not panels:
        raise ArgumentError(
            "panels must be a dict with decisions or ranking for each title, got "
            f"{'an empty one' if isinstance(panels, Mapping) else type(panels).__name__}."
        )
    found = {
        _style.one_line(title): as_decisions(one, None, {}, name=f"panels[{title!r}]") for title, one in panels.items()
    }
    names = (highlight,) if isinstance(highlight, str) else tuple(highlight)
    known = {level for one in found.values() for level in one.levels}
    boards = [
        board_of(
            one,
            values=values,
            whiskers=whiskers,
            highlight=[name for name in names if name in one.levels or name not in known],
            left_only=left_only,
        )
        for one in found.values()
    ]
    scales = {(one.score, one.statistic) for one in found.values()}
    if share_axis and len(scales) > 1:
        several = ", ".join(f"{statistic} of {score}" for score, statistic in sorted(scales))
        raise ArgumentError(f"Diagrams of different means cannot share an axis: {several}. Pass share_axis=False.")
    return draw_boards(boards, list(found), layout, ax, share_axis=share_axis)


def draw_boards(
    boards: Sequence[Board], titles: Sequence[str], layout: str, ax: Axes | None, *, share_axis: bool = True
) -> Axes:
    """Draw diagrams below or beside each other, with one font."""
    check_choice(layout, "layout", LAYOUTS)
    stacked = layout == "stacked"
    count = len(boards)
    if ax is None:
        inches = figure_width(boards) if stacked else _BESIDE
        font = _style.base_font()
        needs = _needs(_plans(_canvas.scratch_axes(inches), boards, titles, 72 * inches, font, share_axis))
        high = sum(needs) + _GAP * font * (count - 1) if stacked else max(needs)
        ax = _canvas.new_axes(inches if stacked else inches * count, high / 72)
    _canvas.bare(ax)
    size = _canvas.size_in_points(ax)
    width = size[0] if stacked else size[0] / count
    for font in _layout.fonts():
        plans = _plans(ax, boards, titles, width, font, share_axis)
        needs = _needs(plans)
        spare = size[1] - (sum(needs) + _GAP * font * (count - 1) if stacked else max(needs))
        if spare >= -0.5:
            break
    else:
        what = f"{count} diagrams of {max(len(board.names) for board in boards)} algorithms"
        raise _canvas.too_small(ax, what, size[1] - spare)
    top = size[1]
    for i, (plan, need) in enumerate(zip(plans, needs, strict=True)):
        if stacked:
            height = need + spare / count
            cell = _layout.Cell(0.0, top - height, width, height)
            top -= height + _GAP * font
        else:  # a diagram is centred in its axes, so equal heights align the upper edges
            cell = _layout.Cell(i * width, 0.0, width, size[1])
            plan = replace(plan, height=max(needs) - 2 * _canvas.PAD)
        draw_plan(cell.inset(ax, size), plan, cell.width, cell.height)
    return ax


def _needs(plans: Sequence[Plan]) -> list[float]:
    return [plan.height + 2 * _canvas.PAD for plan in plans]


def _plans(
    ax: Axes, boards: Sequence[Board], titles: Sequence[str], width: float, font: float, share_axis: bool
) -> list[Plan]:
    """Lay out all boards with one font, labels as wide in each, and ticks of one scale if they share it."""
    rulers = [_style.Ruler(ax, font, **_style.font_for(board.names)) for board in boards]
    own = [label_zones(board, width, ruler)[1] for board, ruler in zip(boards, rulers, strict=True)]
    left, right = (max(zone[side] for zone in own) for side in (0, 1))
    titles = list(titles)
    frames = [Frame(zones=(left, right))] * len(boards)
    if share_axis:
        low, high = zip(*map(axis_range, boards), strict=True)
        span = max(b - a for a, b in zip(low, high, strict=True))
        if max(high) - min(low) > _MOST_MOVEMENT * span:
            titles[0] += " – same scale, own start each"
            middles = [(a + b) / 2 for a, b in zip(low, high, strict=True)]
            room = width - left - right - 2 * _canvas.PAD
            ticks = _own_starts(middles, span, room, _style.Ruler(ax, font))
            frames = [replace(frame, ticks=own) for frame, own in zip(frames, ticks, strict=True)]
        else:
            frames = [replace(frame, limits=(min(low), max(high))) for frame in frames]
    frames = [replace(frame, title=title) for frame, title in zip(frames, titles, strict=True)]
    plans: list[Plan] = []
    said: set[str] = set()  # what a later one says below need not be said above
    for board, frame in zip(reversed(boards), reversed(frames), strict=True):
        plans.append(plan_of(ax, board, width, font, replace(frame, said=frozenset(said))))
        said.update(plans[-1].said)
    return plans[::-1]


def _own_starts(middles: Sequence[float], span: float, room: float, ruler: _style.Ruler) -> list[_layout.Ticks]:
    """Ticks of the same step and number around each middle, whose labels do not touch."""
    base = _layout.choose_ticks(0.0, span, max(room, ruler.size), ruler, cover=True).values
    step = base[1] - base[0]
    while True:
        count = math.ceil(span / step * (1 - 1e-9)) + 1
        ticks = []
        for middle in middles:
            first = round((middle - count * step / 2) / step)
            values = tuple(float((first + i) * step) for i in range(count + 1))
            ticks.append(_layout.Ticks(values, tuple(_style.tick_labels(values))))
        widest = max(ruler.width(label) for tick in ticks for label in tick.labels)
        if count == 2 or widest + ruler.size / 2 <= room / count:
            return ticks
        step *= 2
