"""Curves over a budget: the axis they share, how they look, cells of a strip, and names beside their right ends."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.ticker import NullFormatter

from lmemtest.plots import _canvas, _panels, _style
from lmemtest.plots._lines import round_numbers
from lmemtest.plots._panels import LINE, Cell
from lmemtest.plots._spacing import spread_downwards

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]
    BoolArray = NDArray[np.bool_]

PAD = 0.04  # of the range, beyond the curves
LEAD = 1.2  # font sizes from the axes to the names
MOST_MARKERS = 30  # budgets with a marker each
_MOST_LABELLED = 12  # budgets that are ticks by themselves; more would not be round numbers
_CELL = 0.36  # of the distance to the nearest neighbour, on either side of a budget that stands for itself
_FEWEST_TICKS = 2
_DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (5, 1.5, 1.2, 1.5)))


@dataclass(frozen=True, slots=True)
class Look:
    """Colour and dashes of a curve."""

    colour: str
    dash: Any


def looks(count: int) -> list[Look]:
    """Looks that differ: all colours in full lines, then dashed, dotted, ..."""
    rounds = [_DASHES[i // len(_style.PALETTE) % len(_DASHES)] for i in range(count)]
    return [Look(_style.colour(i), dash) for i, dash in enumerate(rounds)]


@dataclass(frozen=True, slots=True)
class BudgetAxis:
    """Where budgets are on the x axis.

    Attributes
    ----------
    points : (n,) float
        Where curves are known.
    observed : (m,) float
    log : bool
    joined : bool
        Whether curves say something between the points.
    """

    points: FloatArray
    observed: FloatArray
    log: bool
    joined: bool

    @property
    def limits(self) -> tuple[float, float]:
        low, high = self.places(self.points[[0, -1]])
        pad = PAD * (high - low)
        first, last = self.budgets(np.array([low - pad, high + pad]))
        return float(first), float(last)

    def places(self, budgets: FloatArray) -> FloatArray:
        """Where budgets are, in units in which the axis is even."""
        return np.log(budgets) if self.log else np.asarray(budgets, dtype=float)

    def budgets(self, places: FloatArray) -> FloatArray:
        return np.exp(places) if self.log else np.asarray(places, dtype=float)

    def share(self, budget: float) -> float:
        """Place of a budget as a share of the axis with its limits."""
        low, high, at = self.places(np.array([*self.limits, budget]))
        return float((at - low) / (high - low))

    def cells(self) -> FloatArray:
        """``(n, 2)`` budgets from which to which each point counts: up to the middle between neighbours where curves
        are joined, else a piece around each point with gaps between them."""
        x = self.places(self.points)
        gaps = np.diff(x)
        if self.joined:
            middles = x[:-1] + gaps / 2.0
            edges = np.column_stack([np.append(x[0], middles), np.append(middles, x[-1])])
        else:
            half = _CELL * np.minimum(np.append(gaps[0], gaps), np.append(gaps, gaps[-1]))
            half[[0, -1]] = np.minimum(half[[0, -1]], PAD * (x[-1] - x[0]))  # within the axis
            edges = np.column_stack([x - half, x + half])
        return self.budgets(edges)

    def spans(self, mask: BoolArray) -> list[tuple[float, float]]:
        """Budgets from which to which `mask` holds: one span per run of points if they are joined, else per point."""
        edges = self.cells()
        if not self.joined:
            return [(float(a), float(b)) for a, b in edges[mask]]
        turns = np.flatnonzero(np.diff(np.concatenate([[False], mask, [False]]).astype(np.int8)))
        return [(float(edges[a, 0]), float(edges[b - 1, 1])) for a, b in zip(turns[::2], turns[1::2], strict=True)]


def set_budget_axis(box: Axes, axis: BudgetAxis, room: float, size: float, *, labels: bool = True) -> None:
    """Ticks on the x axis of `room` points: a small one at each observed budget, numbers where they do not touch."""
    if axis.log:
        box.set_xscale("log")
        box.xaxis.set_minor_formatter(NullFormatter())
    low, high = axis.limits
    ruler = _style.Ruler(box, size)
    values, names = _numbers(axis, room, ruler)
    where = np.array([axis.share(value) * room for value in values])
    kept = _panels.apart(where, [ruler.width(name) for name in names], size)
    box.set_xticks(values[kept], [names[i] if labels else "" for i in kept], **_style.text_style(size))
    box.set_xticks(axis.observed, minor=True)
    box.tick_params(axis="x", which="major", length=0.4 * size, pad=0.3 * size)
    short = {"length": 0.25 * size, "width": 0.6, "color": _style.MUTED, "direction": "out"}
    box.tick_params(axis="x", which="minor", bottom=True, **short)
    box.set_xlim(low, high)


def _numbers(axis: BudgetAxis, room: float, ruler: _style.Ruler) -> tuple[FloatArray, list[str]]:
    """Candidates for labelled ticks: the budgets themselves if they are few, else round numbers."""
    low, high = axis.limits
    if len(axis.observed) > _MOST_LABELLED:
        if not axis.log:
            whole = _canvas.all_whole(axis.observed)
            ticks = _canvas.choose_ticks(low, high, room, ruler, cover=False, whole=whole)
            return np.array(ticks.values), list(ticks.labels)
        values = round_numbers(low, high)
        if len(values) >= _FEWEST_TICKS:  # there are none between 21 and 49
            return values, [f"{value:g}" for value in values]
    return axis.observed, [f"{value:g}" for value in axis.observed]


def name_ends(
    box: Axes,
    axis: BudgetAxis,
    ends: Sequence[tuple[float, float]],
    names: Sequence[str],
    colours: Sequence[str],
    place: Cell,
    limits: tuple[float, float],
    size: float,
) -> None:
    """Names beside the right edge, in the order of the ends of their curves, each with a line from its end.

    Parameters
    ----------
    box : Axes
    axis : BudgetAxis
    ends : sequence of (budget, value)
        Last points of the curves.
    names, colours : sequence of str
    place : Cell
        Of `box`.
    limits : (lower, upper)
        Values at the lower and the upper edge.
    size : float
        Of the font.
    """
    wanted = [(value - limits[0]) / (limits[1] - limits[0]) * place.height for _, value in ends]
    order = sorted(range(len(names)), key=lambda i: -wanted[i])
    heights = spread_downwards([wanted[i] for i in order], LINE * size, place.height)
    font = _style.font_for(names)
    end = 1.0 + 0.8 * LEAD * size / place.width
    last = axis.share(float(axis.points[-1]))
    for i, height in zip(order, heights, strict=True):
        box.text(
            end + 0.2 * size / place.width,
            height / place.height,
            names[i],
            transform=box.transAxes,
            ha="left",
            va="center",
            **_style.text_style(size, color=colours[i], **font),
        )
        start, level = axis.share(ends[i][0]), wanted[i] / place.height
        early = start < last - 1e-9  # straight to the edge first: a slanted line through the panel looks like a curve
        box.plot(
            [start, last, end] if early else [start, end],
            [level, level, height / place.height] if early else [level, height / place.height],
            transform=box.transAxes,
            color=colours[i],
            linewidth=0.06 * size,
            linestyle=(0, (1.0, 3.0)) if early else "-",
            marker="none",
            clip_on=False,
            label="_lead",
        )


def last_point(points: FloatArray, values: FloatArray) -> tuple[float, float]:
    """Budget and value where a curve ends."""
    last = int(np.flatnonzero(np.isfinite(values))[-1])
    return float(points[last]), float(values[last])


def padded(values: FloatArray) -> tuple[float, float]:
    """The range of the finite values and a little more."""
    values = values[np.isfinite(values)]
    low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
    pad = PAD * ((high - low) or abs(high) or 1.0)
    return low - pad, high + pad


def room_for_numbers(limits: tuple[float, float], room: float, ruler: _style.Ruler) -> float:
    """Width of the tick labels of a vertical axis of `room` points, with the ticks."""
    labels = _canvas.choose_ticks(min(limits), max(limits), room, _panels.Upright(ruler.size), cover=False).labels
    return ruler.widest(labels) + 0.9 * ruler.size


def write_upwards(
    ax: Axes, texts: Sequence[str], x: float, span: tuple[float, float], size: tuple[float, float], font: float
) -> None:
    """Write the first of `texts` that fits between two heights along a vertical axis; the last one is cut."""
    room = span[1] - span[0]
    style = _style.font_for(texts)
    ruler = _style.Ruler(ax, font, **style)
    shown = next((text for text in texts if ruler.width(text) <= room), None)
    shown = shown or _style.shorten([texts[-1]], room, ruler)[0]
    upright = _style.text_style(font, ha="center", va="center", rotation=90, **style)
    _panels.write(ax, x, (span[0] + span[1]) / 2.0, shown, size, upright)


def write_below(ax: Axes, text: str, middle: float, bottom: float, size: tuple[float, float], font: float) -> None:
    """Write the name of a horizontal axis around `middle`, cut to what fits."""
    style = _style.font_for([text])
    room = 2.0 * min(middle, size[0] - middle) - 2.0 * font
    shown = _style.shorten([text], room, _style.Ruler(ax, font, **style))[0]
    _panels.write(ax, middle, bottom, shown, size, _style.text_style(font, ha="center", va="bottom", **style))
