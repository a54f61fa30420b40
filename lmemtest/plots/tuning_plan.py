"""The reach of tuning curves over the number of scores, one line per plan."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from lmemtest.errors import ArgumentError
from lmemtest.plots import _canvas, _fitting, _rows, _style
from lmemtest.tuning.planner import TuningPlan

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_HEIGHT = 4.0  # inches of a new figure
_LINES = 9.0  # of text that axes must be high, and one for each entry of the legend
_PAD = 0.05  # of the range, beyond the largest value
_MOST_MARKERS = 25  # points of a line; more of them are a curve


def tuning_plan_plot(plans: TuningPlan | Iterable[TuningPlan], *, ax: Axes | None = None) -> Axes:
    """Draw up to which k tuning curves have two limits, over the number of scores.

    Parameters
    ----------
    plans : TuningPlan or iterable of TuningPlan
        From `lmemtest.tuning.planner.plan_tuning`: one line each, for instance for several confidences or methods.
    ax : Axes, optional
        Where to draw; the plot fills its rectangle, labels included. With None a new figure is made.

    Returns
    -------
    Axes
        The x axis has the number of scores, the y axis `k_max`; the points are those of the plans.

    Raises
    ------
    ArgumentError
        If `plans` are not results of `plan_tuning`, a reach is infinite, or `ax` is too small for readable text.

    Examples
    --------
    >>> from lmemtest.plots.tuning_plan import tuning_plan_plot
    >>> from lmemtest.tuning.planner import plan_tuning
    >>> ax = tuning_plan_plot([plan_tuning(n=range(5, 100, 5), confidence=c) for c in (0.8, 0.95)])
    >>> [text.get_text() for text in ax.get_legend().get_texts()][1]
    '95 % LD band of highest-density intervals, median'
    """
    _canvas.check_axes(ax)
    plans = _checked(plans)
    if ax is None:
        ax = _canvas.new_axes(_canvas.FIGURE_WIDTH, _HEIGHT)
    _, height = _canvas.size_in_points(ax)
    slot = ax.get_window_extent().frozen()
    size = _font(ax, height, len(plans))
    _canvas.frame(ax, size)
    lines = [_series(plan, place) for place, plan in enumerate(plans)]
    ax.set_xlim(0.0, (1.0 + _PAD) * max(line.row.max() for line in lines))
    ax.set_ylim(0.0, (1.0 + _PAD) * max(max(line.centre.max() for line in lines), 1.0))
    for line in lines:
        _draw(ax, line, size)
    _set_ticks(ax, size)
    _label(ax, plans, size)
    _fitting.fit_inside(ax, slot)
    if len(plans) > 1:
        _rows.draw_legend(ax, _rows.Rows(labels=(), series=tuple(lines), axis_label=""), size)
        _fitting.fit_inside(ax, slot)
    _set_ticks(ax, size)  # the axes are smaller now
    _fitting.fit_inside(ax, slot)
    return ax


def _checked(plans: TuningPlan | Iterable[TuningPlan]) -> list[TuningPlan]:
    given = [plans] if isinstance(plans, TuningPlan) or not isinstance(plans, Iterable) else list(plans)
    for plan in given:
        if not isinstance(plan, TuningPlan):
            raise ArgumentError(f"plans must be results of plan_tuning(), got {type(plan).__name__}.")
    if not given:
        raise ArgumentError("plans must hold at least one result of plan_tuning(), got none.")
    return given


def _series(plan: TuningPlan, place: int) -> _rows.Series:
    order = np.argsort(plan.n, kind="stable")
    reach = plan.k_max[order]
    return _rows.Series(
        name=plan.describe(),
        row=plan.n[order],
        centre=reach,
        low=reach,
        high=reach,
        colour=_style.colour(place),
        marker=_style.marker(place),
    )


def _font(ax: Axes, height: float, count: int) -> float:
    lines = _LINES + 1.5 * (count if count > 1 else 0)
    size = min(_style.base_font(), (height - 2 * _canvas.PAD) / lines)
    if size < _style.SMALLEST_FONT:
        needed = lines * _style.SMALLEST_FONT + 2 * _canvas.PAD
        raise _canvas.too_small(ax, f"a plot of {count} plan{'s' * (count > 1)}", needed)
    return size


def _draw(ax: Axes, line: _rows.Series, size: float) -> None:
    ax.plot(
        line.row,
        line.centre,
        color=line.colour,
        linewidth=0.16 * size,
        linestyle="-",
        marker=line.marker if len(line.row) <= _MOST_MARKERS else "none",
        markersize=0.5 * size,
        clip_on=False,
        label="_plan",
        zorder=3,
    )


def _set_ticks(ax: Axes, size: float) -> None:
    """Round whole numbers on both axes, which count scores, with lines across at those of the reach."""
    _canvas.set_number_ticks(ax, *ax.get_xlim(), size, whole=True)
    low, high = ax.get_ylim()
    room = ax.get_window_extent().height * 72 / ax.figure.figure.dpi
    # stacked numbers need the height of a line each, whatever their width
    most = max(int(room / (2.5 * size)), 2)
    ticks = _canvas.choose_ticks(low, high, room, _style.Ruler(ax, size), cover=False, whole=True)
    keep = slice(None, None, -(-len(ticks.values) // most))
    ax.set_yticks(ticks.values[keep], ticks.labels[keep], **_style.text_style(size))
    for line in [line for line in ax.lines if line.get_label() == "_guide"]:
        line.remove()
    for tick in ticks.values[keep]:
        if tick > low:
            ax.axhline(tick, color=_style.FAINT, linewidth=0.6, linestyle="-", zorder=0.5, label="_guide")


def _label(ax: Axes, plans: list[TuningPlan], size: float) -> None:
    ruler = _style.Ruler(ax, size)
    box = ax.get_window_extent()
    dpi = ax.figure.figure.dpi
    across = ["Scores of a random search"]
    if len(plans) == 1:
        across.append(_style.nobreak(plans[0].describe()))
    room = box.width * 72 / dpi - 5.0 * size
    lines = [part for text in across for part in _style.wrap(text, room, ruler)]
    ax.set_xlabel("\n".join(lines), **_style.text_style(size), labelpad=0.4 * size)
    upright = _style.wrap("Largest k with two limits", box.height * 72 / dpi - 4.0 * size, ruler)
    ax.set_ylabel("\n".join(upright), **_style.text_style(size), labelpad=0.4 * size)
