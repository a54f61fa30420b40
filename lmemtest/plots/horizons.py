"""Critical-difference diagrams at several horizons, on one scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from matplotlib.axes import Axes

from lmemtest._validate import check_choice
from lmemtest.plots import _canvas, _layout, _style
from lmemtest.plots.separation import (
    Board,
    Frame,
    Plan,
    axis_range,
    board_of,
    draw_plan,
    figure_width,
    label_zones,
    plan_of,
)
from lmemtest.studies.budget.horizons import Horizons

LAYOUTS = ("stacked", "beside")
# Means that move between horizons by more than this many times their range at one would all be squeezed together.
_MOST_MOVEMENT = 3.0
_GAP = 0.8  # between stacked diagrams, in font sizes
_BESIDE = 5.0  # inches of a diagram beside others: the text width would make a figure of 28 inches of four


@_canvas.draws(Horizons, source="horizons()")
def horizons_plot(result: Horizons, /, *, layout: str = "stacked", ax: Axes | None = None) -> Axes:
    """Draw which algorithms differ at each horizon, all diagrams on one scale.

    Parameters
    ----------
    result : Horizons
        From `lmemtest.horizons`.
    layout : {"stacked", "beside"}
        Diagrams one below the other, or side by side.

    Returns
    -------
    Axes
        It holds the diagrams, ``ax.child_axes``, one per horizon, as those of `cd_diagram`.

    Notes
    -----
    A length is the same difference of scores in all diagrams. The axes also start at the same score, so that a mean can
    be followed from one to the next, unless means move so far between horizons that those at one would be squeezed
    together; then each has its own start, and the first diagram's title says so.

    Rulers are critical differences at the level of the horizon, its share of that of the whole.

    Examples
    --------
    >>> import lmemtest as lt
    >>> runs = lt.datasets.load_hpo_runs().filter(algorithm=["HB", "RS", "TPE"], prior="good")
    >>> ax = lt.horizons(runs, [8, 32]).plot()
    >>> [diagram.texts[0].get_text() for diagram in ax.child_axes]
    ['0.164', '0.164']
    """
    check_choice(layout, "layout", LAYOUTS)
    boards = [board_of(horizon.separation) for horizon in result.horizons]
    where = [f"{result.budget} {horizon.label}{' (mean)' * horizon.place.is_window}" for horizon in result.horizons]
    titles = [_style.one_line(title) for title in where]
    stacked = layout == "stacked"
    count = len(boards)
    if ax is None:
        inches = figure_width(boards) if stacked else _BESIDE
        font = _style.base_font()
        needs = _needs(_plans(_canvas.scratch_axes(inches), boards, titles, 72 * inches, font))
        high = sum(needs) + _GAP * font * (count - 1) if stacked else max(needs)
        ax = _canvas.new_axes(inches if stacked else inches * count, high / 72)
    _canvas.bare(ax)
    size = _canvas.size_in_points(ax)
    width = size[0] if stacked else size[0] / count
    for font in _layout.fonts():
        plans = _plans(ax, boards, titles, width, font)
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


def _plans(ax: Axes, boards: Sequence[Board], titles: Sequence[str], width: float, font: float) -> list[Plan]:
    """Lay out all boards with one font, labels as wide in each, and ticks of one scale."""
    rulers = [_style.Ruler(ax, font, **_style.font_for(board.names)) for board in boards]
    own = [label_zones(board, width, ruler)[1] for board, ruler in zip(boards, rulers, strict=True)]
    left, right = (max(zone[side] for zone in own) for side in (0, 1))
    low, high = zip(*map(axis_range, boards), strict=True)
    span = max(b - a for a, b in zip(low, high, strict=True))
    titles = list(titles)
    frame = Frame(limits=(min(low), max(high)), zones=(left, right))
    frames = [frame] * len(boards)
    if max(high) - min(low) > _MOST_MOVEMENT * span:
        titles[0] += " – same scale, own start each"
        middles = [(a + b) / 2 for a, b in zip(low, high, strict=True)]
        room = width - left - right - 2 * _canvas.PAD
        ticks = _own_starts(middles, span, room, _style.Ruler(ax, font))
        frames = [replace(frame, limits=None, ticks=own) for own in ticks]
    frames = [replace(frame, title=title) for frame, title in zip(frames, titles, strict=True)]
    plans = [plan_of(ax, board, width, font, frame) for board, frame in zip(boards, frames, strict=True)]
    return (
        [  # what the last one says below need not be said above
            plan_of(ax, board, width, font, replace(frame, foot=False)) if plan.foot == plans[-1].foot else plan
            for board, frame, plan in zip(boards[:-1], frames, plans, strict=False)
        ]
        + plans[-1:]
    )


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
