"""Critical-difference diagrams at several horizons, on one scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest._validate import check_choice
from lmemtest.errors import ArgumentError
from lmemtest.plots import _canvas, _style
from lmemtest.plots.critical_difference import (
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
from lmemtest.studies.budget.horizons import Horizon, Horizons

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LAYOUTS = ("stacked", "beside")
# Means that move between horizons by more than this many times their range at one would all be squeezed together.
_MOST_MOVEMENT = 3.0
_GAP = 0.8  # between stacked diagrams, in font sizes
_BESIDE = 5.0  # inches of a diagram beside others: the text width would make a figure of 28 inches of four


def horizons_plot(result: Horizons, *, axes: Sequence[Axes] | None = None, layout: str = "stacked") -> tuple[Axes, ...]:
    """Draw which algorithms differ at each horizon, all diagrams on one scale.

    Parameters
    ----------
    result : Horizons
        From `lmemtest.horizons`.
    axes : sequence of Axes, optional
        Where to draw, one per horizon; each diagram fills its rectangle. With None a new figure is made, whose size
        grows with the algorithms and the horizons.
    layout : {"stacked", "beside"}
        Of a new figure: diagrams one below the other, or side by side.

    Returns
    -------
    tuple of Axes
        One per horizon, as those of `cd_diagram`.

    Raises
    ------
    ArgumentError
        If `result` is not the result of `horizons`, `axes` are not one per horizon, or one is too small for readable
        text.

    Notes
    -----
    A length is the same difference of scores in all diagrams of the same width. The axes also start at the same score,
    so that a mean can be followed from one to the next, unless means move so far between horizons that those at one
    would be squeezed together; then each has its own start, and the first diagram's title says so.

    Rulers are critical differences at the level of the horizon, its share of that of the whole.

    Examples
    --------
    >>> import lmemtest as lt
    >>> from lmemtest.plots.horizons import horizons_plot
    >>> from lmemtest.studies.budget.horizons import horizons
    >>> runs = lt.datasets.load_hpo_runs().filter(algorithm=["HB", "RS", "TPE"], prior="good")
    >>> axes = horizons_plot(horizons(runs, [8, 32]))
    >>> [ax.texts[-1].get_text().startswith("Marginal means of loss") for ax in axes]
    [True, True]
    """
    if not isinstance(result, Horizons):
        raise ArgumentError(f"result must be the result of horizons(), got {type(result).__name__}.")
    check_choice(layout, "layout", LAYOUTS)
    boards = [board_of(horizon.separation) for horizon in result.horizons]
    titles = [_title(result, horizon) for horizon in result.horizons]
    drawn = _new_axes(boards, titles, layout) if axes is None else _checked_axes(axes, len(boards))
    plans = _largest_plans(drawn, boards, titles)
    tallest = max(plan.height for plan in plans)
    for ax, plan in zip(drawn, plans, strict=True):
        width, height = _canvas.size_in_points(ax)
        # diagrams are centred in their axes, so equal heights align their upper edges
        draw_plan(ax, replace(plan, height=max(plan.height, min(tallest, height - 2 * _canvas.PAD))), width, height)
    return tuple(drawn)


def _title(result: Horizons, horizon: Horizon) -> str:
    where = f"{result.budget} {horizon.label}"
    return _style.one_line(f"{where} (mean)" if horizon.is_window else where)


def _checked_axes(axes: object, count: int) -> list[Axes]:
    given: list[Any] = list(np.ravel(np.array(axes, dtype=object)))
    for ax in given:
        if ax is None:
            raise ArgumentError("axes holds None. Pass one Axes per horizon, or axes=None for a new figure.")
        _canvas.check_axes(ax)
    if len(given) != count:
        raise ArgumentError(
            f"axes must hold one Axes per horizon, {count}, got {len(given)}. Use fig.subplots({count}), or axes=None."
        )
    return given


def _new_axes(boards: Sequence[Board], titles: Sequence[str], layout: str) -> list[Axes]:
    """Axes of a new figure, each as high as its diagram needs."""
    font = _style.base_font()
    width = figure_width(boards) if layout == "stacked" else _BESIDE
    with _canvas.detached_figures():
        scratch = [_canvas.new_axes(width, _canvas.FIGURE_WIDTH) for _ in boards]
        plans = _plans(scratch, boards, titles, font)
    heights = [(plan.height + 2 * _canvas.PAD) / 72 for plan in plans]
    if layout == "beside":
        first = _canvas.new_axes(width * len(boards), max(heights))
        places = [(i / len(boards), 0.0, 1 / len(boards), 1.0) for i in range(len(boards))]
    else:
        gap = _GAP * font / 72
        total = sum(heights) + gap * (len(heights) - 1)
        first = _canvas.new_axes(width, total)
        tops = [total - sum(heights[:i]) - gap * i for i in range(len(heights))]
        places = [(0.0, (top - height) / total, 1.0, height / total) for top, height in zip(tops, heights, strict=True)]
    figure = first.figure.figure
    first.set_position(places[0])
    return [first, *(figure.add_axes(place) for place in places[1:])]


# ---------------------------------------------------------------------- one scale


def _largest_plans(axes: Sequence[Axes], boards: Sequence[Board], titles: Sequence[str]) -> list[Plan]:
    """Plans with the largest common font, up to the default, that fits all axes."""
    font = _style.base_font()
    least = min(_style.SMALLEST_FONT, font)
    heights = [_canvas.size_in_points(ax)[1] for ax in axes]
    while True:
        plans = _plans(axes, boards, titles, font)
        need = [plan.height + 2 * _canvas.PAD for plan in plans]
        worst = int(np.argmax(np.subtract(need, heights)))
        if need[worst] <= heights[worst] + 0.5:
            return plans
        if font <= least:
            what = f"a diagram of {len(boards[worst].names)} algorithms"
            raise _canvas.too_small(axes[worst], what, need[worst])
        font = max(min(font - 0.25, 1.03 * font * heights[worst] / need[worst]), least)


def _plans(axes: Sequence[Axes], boards: Sequence[Board], titles: Sequence[str], font: float) -> list[Plan]:
    """Lay out all boards with one font, labels as wide in each, and ticks of one scale."""
    widths = [_canvas.size_in_points(ax)[0] for ax in axes]
    zones = _zones(axes, boards, widths, font)
    low, high = zip(*map(axis_range, boards), strict=True)
    span = max(b - a for a, b in zip(low, high, strict=True))
    together = max(high) - min(low) <= _MOST_MOVEMENT * span
    frames = [Frame(limits=(min(low), max(high)), zones=zones) for _ in boards]
    if not together:
        middles = [(a + b) / 2 for a, b in zip(low, high, strict=True)]
        room = min(widths) - zones[0] - zones[1] - 2 * _canvas.PAD
        ticks = _own_starts(middles, span, room, _style.Ruler(axes[int(np.argmin(widths))], font))
        frames = [replace(frame, limits=None, ticks=own) for frame, own in zip(frames, ticks, strict=True)]
    shown = _shown_titles(axes, titles, widths, font, together)
    frames = [replace(frame, title=title) for frame, title in zip(frames, shown, strict=True)]
    plans = [
        plan_of(ax, board, width, font, frame)
        for ax, board, width, frame in zip(axes, boards, widths, frames, strict=True)
    ]
    repeated = [plan.foot == plans[-1].foot for plan in plans[:-1]]
    return [
        plan_of(ax, board, width, font, replace(frame, foot=False)) if again else plan
        for ax, board, width, frame, plan, again in zip(
            axes, boards, widths, frames, plans, [*repeated, False], strict=True
        )
    ]


def _zones(axes: Sequence[Axes], boards: Sequence[Board], widths: Sequence[float], font: float) -> tuple[float, float]:
    """Room for labels that makes the axes of diagrams of one width the same."""
    if max(widths) - min(widths) > 1.0:
        return (0.0, 0.0)
    found = [
        label_zones(board, width, _style.Ruler(ax, font, **_style.font_for(board.names)))[1]
        for ax, board, width in zip(axes, boards, widths, strict=True)
    ]
    return max(left for left, _ in found), max(right for _, right in found)


def _own_starts(middles: Sequence[float], span: float, room: float, ruler: _style.Ruler) -> list[_canvas.Ticks]:
    """Ticks of the same step and number around each middle, whose labels do not touch."""
    base = _canvas.choose_ticks(0.0, span, max(room, ruler.size), ruler, cover=True).values
    step = base[1] - base[0]
    while True:
        count = math.ceil(span / step * (1 - 1e-9)) + 1
        ticks = []
        for middle in middles:
            first = round((middle - count * step / 2) / step)
            values = tuple(float((first + i) * step) for i in range(count + 1))
            ticks.append(_canvas.Ticks(values, tuple(_style.tick_labels(values))))
        widest = max(ruler.width(label) for tick in ticks for label in tick.labels)
        if count == 2 or widest + ruler.size / 2 <= room / count:
            return ticks
        step *= 2


def _shown_titles(
    axes: Sequence[Axes], titles: Sequence[str], widths: Sequence[float], font: float, together: bool
) -> list[str]:
    shown = []
    for i, (ax, title, width) in enumerate(zip(axes, titles, widths, strict=True)):
        full = title if together or i else f"{title} – same scale, own start each"
        ruler = _style.Ruler(ax, font, **_style.font_for((full,)))
        room = 0.85 * (width - 2 * _canvas.PAD)  # bold text is wider than measured
        shown.append(_style.shorten([full], room, ruler)[0] if ruler.width(full) > room else full)
    return shown
