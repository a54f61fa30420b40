"""Axes that shrink until their labels fit, with room for text that is wider at another resolution."""

from __future__ import annotations

from typing import TYPE_CHECKING

from matplotlib.transforms import Bbox

from lmemtest.plots import _canvas, _style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axes._base import _AxesBase
    from matplotlib.transforms import BboxBase

_STEPS = 3
_PIXEL = 0.1


def fit_inside(ax: Axes, slot: Bbox) -> None:
    """Shrink `ax` so that it and its labels lie in `slot` (display units).

    Text is hinted to whole pixels, so long labels can be wider at 70 dots per inch than at 100, and would be cut at the
    edge of the figure: there is room for labels that are a little longer than measured. A figure with a layout engine
    does all this by itself, and moving its axes would fight with it.
    """
    if _canvas.has_layout_engine(ax.figure.figure):
        return
    for _ in range(_STEPS):  # tick labels move with the size, so one step is not always enough
        tight = ax.get_tightbbox()
        if tight is None:  # an invisible axes has no extent
            return
        if not _moved(ax, tight, slot):
            break
    if ax.child_axes:
        _fit_scales(ax, slot)


def _moved(ax: Axes, tight: BboxBase, slot: Bbox) -> bool:
    """Move `ax`, whose labels reach as far as `tight`, if it has to be moved."""
    pad, box = _canvas.PAD * ax.figure.figure.dpi / 72, ax.get_window_extent()
    upright = 1.0 if ax.child_axes else _style.HINTING_SLACK  # labels of colour scales do not go with the height
    left = max(slot.x0 + pad + _style.HINTING_SLACK * (box.x0 - tight.x0), slot.x0)
    right = min(slot.x1 - pad - _style.HINTING_SLACK * (tight.x1 - box.x1), slot.x1)
    bottom = max(slot.y0 + pad + upright * (box.y0 - tight.y0), slot.y0)
    top = min(slot.y1 - pad - upright * (tight.y1 - box.y1), slot.y1)
    if right - left < 2 * pad or top - bottom < 2 * pad:
        raise _canvas.too_small(ax, "its labels")
    far = max(abs(left - box.x0), abs(right - box.x1), abs(bottom - box.y0), abs(top - box.y1)) > _PIXEL
    if far:
        _canvas.place_axes(ax, left, bottom, right, top)
    return far


def _fit_scales(ax: Axes, slot: Bbox) -> None:
    """Leave room below and above `ax` but for the labels of its colour scales, and keep these inside."""
    pad, box, tight = _canvas.PAD * ax.figure.figure.dpi / 72, ax.get_window_extent(), _without_scales(ax)
    bottom = max(slot.y0 + pad + _style.HINTING_SLACK * (box.y0 - tight.y0), box.y0)
    top = min(slot.y1 - pad - _style.HINTING_SLACK * (tight.y1 - box.y1), box.y1)
    if top > bottom:
        _canvas.place_axes(ax, box.x0, bottom, box.x1, top)
    ax.get_tightbbox()  # moves the colour scales along
    for scale in ax.child_axes:
        _keep_inside(scale, slot.y0 + pad, slot.y1 - pad)


def _without_scales(ax: Axes) -> Bbox:
    """The extent of `ax` without the labels of its colour scales, whose length does not go with its height."""
    labels = [scale.yaxis.label for scale in ax.child_axes]
    for label in labels:
        label.set_visible(False)
    tight = ax.get_tightbbox()
    for label in labels:
        label.set_visible(True)
    return tight if tight is not None else Bbox.null()


def _keep_inside(scale: _AxesBase, low: float, high: float) -> None:
    """Move the upright label of a colour scale, which may be longer than the scale, between two heights."""
    label, box = scale.yaxis.label, scale.get_window_extent()
    half = _style.HINTING_SLACK * label.get_window_extent().height / 2
    middle = (box.y0 + box.y1) / 2
    wanted = min(max(middle, low + half), high - half)
    if wanted != middle and box.height > 0:
        label.set_y((wanted - box.y0) / box.height)
