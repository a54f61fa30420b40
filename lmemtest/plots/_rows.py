"""Dot-and-whisker rows: one label per row, one or more series of estimates with intervals beside it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.lines import Line2D

from lmemtest._caller import in_words_of
from lmemtest.plots import _canvas, _fitting, _layout, _style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

# Heights in units of the font size.
ROW, SERIES = 0.95, 0.8  # a row is ROW + SERIES per series high in a new figure ...
TIGHT_ROW, TIGHT_SERIES = 1.2, 0.45  # ... and at least the larger of these in axes of the user
AXIS_HEIGHT, LINE, LEGEND_LINE = 1.9, 1.25, 1.6
LABEL_SHARE = 0.45  # the most of the width that row labels may take
MARGIN = 0.04  # of the range, on both ends of the x axis
SMALL = 0.85  # size of secondary text
MINUS = " − "
MOST_ROWS = 60  # of a page in the usual font; of more rows a figure draws those that say most


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Estimates of one colour and shape.

    Attributes
    ----------
    name : str
        The legend entry; empty for none.
    row : (m,) int
        The row of each estimate.
    centre, low, high : (m,) float
        Estimate and interval; NaN is not drawn.
    colour, marker : str
    hollow : bool
        Whether the marker has a white face.
    offset : int
        The lane within the row, 0 to `Rows.lanes` - 1 from the top.
    """

    name: str
    row: NDArray[np.intp]
    centre: NDArray[np.float64]
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    colour: str = _style.ACCENT
    marker: str = "o"
    hollow: bool = False
    offset: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Content of a row plot.

    Attributes
    ----------
    labels : tuple of tuple of str
        One per row, from the top: a name, or two names to be written as a difference.
    series : tuple of Series
    axis_label : str
        A line break in it starts a new sentence.
    lanes : int
        How many estimates lie side by side in a row.
    headers : frozenset of int
        Rows that are headings and hold no estimates.
    aside : tuple of str
        A text right of each row, or empty.
    aside_title : str
    reference : float or None
        Where a vertical line marks "no difference".
    legend : bool
    """

    labels: tuple[tuple[str, ...], ...]
    series: tuple[Series, ...]
    axis_label: str
    lanes: int = 1
    headers: frozenset[int] = frozenset()
    aside: tuple[str, ...] = ()
    aside_title: str = ""
    reference: float | None = None
    legend: bool = False

    def y(self, row: float, offset: int) -> float:
        """Return the height of a lane: rows are 1 apart, downwards."""
        step = 0.8 / self.lanes
        return row + (offset - (self.lanes - 1) / 2) * step


@dataclass(frozen=True, slots=True)
class Shown:
    """Which of many rows are drawn, and where.

    Attributes
    ----------
    kept : (m,) int
        Positions of the rows that are drawn.
    place : (m,) int
        Their rows in the figure.
    left_out : int
    """

    kept: NDArray[np.intp]
    place: NDArray[np.intp]
    left_out: int

    @classmethod
    def ends(cls, count: int, most: int) -> Shown:
        """Of `count` sorted rows the first and the last, `most` in all, around a row that counts the others."""
        everything = np.arange(count, dtype=np.intp)
        if count <= most:
            return cls(everything, everything, 0)
        first = most // 2
        kept = np.concatenate([everything[:first], everything[count - (most - first) :]])
        return cls(kept, np.arange(most, dtype=np.intp) + (np.arange(most) >= first), count - most)

    @classmethod
    def largest(cls, size: NDArray[np.float64], most: int) -> Shown:
        """The rows of the largest `size`, `most` in all, in their order; NaN is smaller than everything."""
        order = np.argsort(-np.nan_to_num(size, nan=-np.inf, posinf=np.inf), kind="stable")
        kept = np.sort(order[:most])
        return cls(kept, np.arange(len(kept), dtype=np.intp), len(size) - len(kept))

    @property
    def headers(self) -> frozenset[int]:
        """The row that is no row of the table, if there is one."""
        moved = np.flatnonzero(self.place != np.arange(len(self.place)))
        return frozenset(moved[:1].tolist())

    def labels(self, names: Sequence[str]) -> tuple[tuple[str, ...], ...]:
        """Labels of the rows of the figure, from those of all rows."""
        labels = [(names[i],) for i in self.kept]
        for row in self.headers:
            labels.insert(row, (f"… {self.left_out:,} more …",))
        return tuple(labels)

    def sentence(self, what: str) -> str:
        """What is left out, as a line to add to others; empty if all rows are drawn."""
        if not self.left_out:
            return ""
        total = len(self.kept) + self.left_out
        every = in_words_of(python=f"; most={total} draws all", command_line="")
        return f"\n{self.left_out:,} of {total:,} {what} are left out{every}."


def draw_rows(rows: Rows, ax: Axes | None) -> Axes:
    """Draw `rows` in `ax` or a new figure, and return the axes."""
    if ax is None:
        ax = _canvas.new_axes(_canvas.FIGURE_WIDTH, _height(rows) / 72)
    width, height = _canvas.size_in_points(ax)
    slot = ax.get_window_extent().frozen()
    size = _font(rows, ax, width, height)
    _canvas.frame(ax, size)
    limits = _limits(rows)
    ax.set_xlim(*limits)
    ax.set_ylim(len(rows.labels) - 0.5, -0.5)
    _draw_guides(ax, rows)
    for series in rows.series:
        _draw_series(ax, rows, series, size)
    _draw_missing(ax, rows, size)
    taken = _label_rows(ax, rows, width, size)
    _draw_aside(ax, rows, size)
    _label_axis(ax, rows, width - taken, size)
    _canvas.set_number_ticks(ax, *limits, size)
    _fitting.fit_inside(ax, slot)
    if rows.legend and any(series.name for series in rows.series):
        _draw_legend(ax, rows, size)
        _fitting.fit_inside(ax, slot)
    _canvas.set_number_ticks(ax, *limits, size)  # the axis is shorter now, so fewer labels may fit
    _fitting.fit_inside(ax, slot)
    return ax


def _height(rows: Rows) -> float:
    """Return the height in points of a new figure: with air, as far as a page holds it; then rows get thinner."""
    width = _canvas.FIGURE_WIDTH * 72
    airy = _needed(rows, _style.base_font(), width, tight=False)
    least = _needed(rows, min(_canvas.READABLE, _style.base_font()), width, tight=True)
    return min(airy, max(least, _canvas.PAGE_HEIGHT * 72))


def _needed(rows: Rows, font: float, width: float, *, tight: bool) -> float:
    """Return the height in points that the rows need at a font size."""
    pitch = max(TIGHT_ROW, TIGHT_SERIES * rows.lanes) if tight else ROW + SERIES * rows.lanes
    text_lines = math.ceil(0.62 * len(rows.axis_label) * font / width)  # 0.62: a generous mean width of a glyph
    entries = [len(series.name) + 5 for series in rows.series]
    legend = math.ceil(0.75 * sum(entries) * font / (0.6 * width)) if rows.legend else 0
    extra = AXIS_HEIGHT + LINE * text_lines + LEGEND_LINE * legend + LINE * bool(rows.aside_title)
    return (pitch * len(rows.labels) + extra) * font + 2 * _canvas.PAD


def _font(rows: Rows, ax: Axes, width: float, height: float) -> float:
    font = _style.base_font()
    while (needed := _needed(rows, font, width, tight=True)) > height + 1e-6:  # rounding must not cost a font size
        if font <= _style.SMALLEST_FONT:
            raise _canvas.too_small(ax, f"a plot of {len(rows.labels)} rows", needed)
        font = max(font - 0.25, _style.SMALLEST_FONT)
    return font


def _limits(rows: Rows) -> tuple[float, float]:
    parts = [values for series in rows.series for values in (series.centre, series.low, series.high)]
    values = np.concatenate(parts) if parts else np.zeros(0)
    values = values[np.isfinite(values)]
    if rows.reference is not None:
        values = np.append(values, rows.reference)
    if values.size == 0:
        return 0.0, 1.0
    low, high = float(values.min()), float(values.max())
    spread = high - low
    if spread <= 1e-12 * max(abs(low), abs(high)):
        spread = max(abs(low), 1e-300) if low else 1.0
    return low - MARGIN * spread, high + MARGIN * spread


def _draw_guides(ax: Axes, rows: Rows) -> None:
    """Draw a line behind each row, or between rows that hold several estimates."""
    shift = 0.5 if rows.lanes > 1 else 0.0
    for row in range(len(rows.labels) - (rows.lanes > 1)):
        if row not in rows.headers:
            ax.axhline(row + shift, color=_style.FAINT, linewidth=0.6, linestyle="-", zorder=0.5, label="_guide")
    if rows.reference is not None:
        ax.axvline(rows.reference, color=_style.INK, linewidth=0.8, linestyle="-", zorder=1, label="_reference")


def _draw_series(ax: Axes, rows: Rows, series: Series, size: float) -> None:
    y = np.array([rows.y(row, series.offset) for row in series.row], dtype=float)
    for height, low, high in zip(y, series.low, series.high, strict=True):
        if math.isfinite(low) and math.isfinite(high):
            ax.plot(
                [low, high],
                [height, height],
                color=series.colour,
                linewidth=0.16 * size,
                linestyle="-",
                marker="none",
                solid_capstyle="butt",
                label="_interval",
                zorder=2,
            )
    face = "white" if series.hollow else series.colour
    ax.plot(
        series.centre,
        y,
        linestyle="none",
        marker=series.marker,
        markersize=0.6 * size,
        color=series.colour,
        markerfacecolor=face,
        markeredgecolor=series.colour,
        markeredgewidth=0.12 * size,
        label="_estimates",
        clip_on=False,
        zorder=3,
    )


def _draw_missing(ax: Axes, rows: Rows, size: float) -> None:
    """Say in the row why it is empty, so that a missing estimate is not taken for a forgotten one."""
    for series in rows.series:
        for row in series.row[~np.isfinite(series.centre)]:
            style = _style.text_style(SMALL * size, color=series.colour if rows.lanes > 1 else _style.MUTED)
            fits = size * (ROW + SERIES * rows.lanes) * 0.8 / rows.lanes >= SMALL * size
            if fits:
                ax.text(
                    0.01,
                    rows.y(row, series.offset),
                    "not estimable",
                    transform=ax.get_yaxis_transform(),
                    ha="left",
                    va="center_baseline",
                    **style,
                )


def _label_rows(ax: Axes, rows: Rows, width: float, size: float) -> float:
    """Write the row labels and return the width of the widest in points."""
    names = list(dict.fromkeys(name for parts in rows.labels for name in parts))
    font = _style.font_for(names)
    ruler = _style.Ruler(ax, size, **font)
    most = max((len(parts) for parts in rows.labels), default=1)
    room = (LABEL_SHARE * width - (most - 1) * ruler.width(MINUS)) / most
    short = dict(zip(names, _style.shorten(names, room, ruler), strict=True))
    labels = [MINUS.join(short[name] for name in parts) for parts in rows.labels]
    ax.set_yticks(range(len(labels)), labels)
    for row, tick in enumerate(ax.get_yticklabels()):
        heading = row in rows.headers
        _style.literal(tick).set(fontsize=size, color=_style.MUTED if heading else _style.INK, va="center", **font)
    return ruler.widest(labels)


def _draw_aside(ax: Axes, rows: Rows, size: float) -> None:
    transform = ax.get_yaxis_transform()
    style = _style.text_style(SMALL * size, color=_style.MUTED)
    for row, text in enumerate(rows.aside):
        if text:
            ax.annotate(
                text,
                (1.0, row),
                xycoords=transform,
                xytext=(0.8 * size, 0),
                textcoords="offset points",
                ha="left",
                va="center",
                annotation_clip=False,
                **style,
            )
    if rows.aside_title:
        ax.annotate(
            rows.aside_title,
            (1.0, 1.0),
            xycoords="axes fraction",
            xytext=(0.8 * size, 0.2 * size),
            textcoords="offset points",
            ha="left",
            va="bottom",
            annotation_clip=False,
            **style,
        )


def _label_axis(ax: Axes, rows: Rows, room: float, size: float) -> None:
    """Write the axis label below the axis, broken to the width beside the row labels."""
    ruler = _style.Ruler(ax, size)
    aside = _style.Ruler(ax, SMALL * size).widest([*rows.aside, rows.aside_title])
    room -= aside + 3 * size
    lines = [line for part in rows.axis_label.split("\n") for line in _style.wrap(part, room, ruler)]
    ax.set_xlabel("\n".join(lines), **_style.text_style(size), labelpad=0.4 * size)


def _draw_legend(ax: Axes, rows: Rows, size: float) -> None:
    width = ax.get_window_extent().width * 72 / ax.figure.figure.dpi
    named = [series for series in rows.series if series.name]
    names = [series.name for series in named]
    ruler = _style.Ruler(ax, size, **_style.font_for(names))
    names = _style.shorten(names, max(width - 4 * size, 4 * size), ruler)
    columns = _layout.legend_columns([ruler.width(name) for name in names], width, size)
    handles = [_handle(series, size) for series in named]
    place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0.0, 1.0), "borderaxespad": 0.5}
    _layout.draw_legend(ax, handles, names, columns, size, **place)


def _handle(series: Series, size: float) -> Line2D:
    face = "white" if series.hollow else series.colour
    return Line2D(
        [],
        [],
        color=series.colour,
        marker=series.marker,
        markersize=0.6 * size,
        linewidth=0.16 * size,
        linestyle="-",
        markerfacecolor=face,
        markeredgecolor=series.colour,
        markeredgewidth=0.12 * size,
    )
