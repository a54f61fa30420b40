"""A matrix of numbers as colours, from or around zero, with the numbers in the cells where they fit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import matplotlib as mpl
import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.colors import ListedColormap, Normalize, to_rgb

from lmemtest.plots import _canvas, _fitting, _style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.transforms import Bbox
    from numpy.typing import ArrayLike, NDArray

# Sizes of a new figure in units of the font size.
CELL_WIDTH, CELL_HEIGHT = 5.2, 2.6  # room for a difference with a p-value below it
TIGHT_CELL = 1.25
WIDEST, HIGHEST = 9.5, _canvas.PAGE_HEIGHT  # inches, unless labels would be unreadable
AROUND = (12.0, 8.0)  # beside and above the cells, at the least
LABEL_SHARE, HEAD_SHARE = 0.3, 0.4  # the most of width and height that row and column labels may take
BAR_WIDTH, BAR_GAP = 0.9, 1.2  # the colour scale
LEAST_NUMBER = 4.5  # points; smaller numbers in cells cannot be read and are left out
PALE = "#f2f2f2"
DARKEST = 0.82  # share of the colour map that is used: its ends are too dark to tell apart


@dataclass(frozen=True, slots=True, kw_only=True)
class Heat:
    """Content of a heat map.

    Attributes
    ----------
    rows, columns : tuple of str
    values : (r, c) float
        NaN is shown as a dash.
    shown : (r, c) bool
        Which cells exist.
    coloured : (r, c) bool
        Cells with a colour; the others are pale.
    bold : (r, c) bool or None
        Cells whose number is emphasised.
    details : tuple of tuple of str
        A second text per cell, or empty.
    palette : {"low is blue", "high is blue", "from zero"}
        Red and blue around zero, or shades of blue for numbers that are not negative.
    scale_label, note : str
        Texts beside the colour scale and below the map; a line break in the note starts a new sentence.
    """

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    values: NDArray[np.float64]
    shown: NDArray[np.bool_]
    coloured: NDArray[np.bool_]
    scale_label: str
    note: str
    bold: NDArray[np.bool_] | None = None
    details: tuple[tuple[str, ...], ...] = ()
    palette: str = "low is blue"


def draw_heat(heat: Heat, ax: Axes | None) -> Axes:
    """Draw `heat` in `ax` or a new figure, and return the axes."""
    if ax is None:
        ax = _canvas.new_axes(*figure_size(heat))
    width, height = _canvas.size_in_points(ax)
    slot = ax.get_window_extent().frozen()
    size = _font(heat, ax, width, height)
    mappable, ends = _draw_cells(ax, heat)
    _frame(ax)
    _label_rows(ax, heat, width, size)
    _label_columns(ax, heat, height, size)
    _label_below(ax, heat, width, size)
    _draw_scale(ax, heat, mappable, ends, size)
    _fitting.fit_inside(ax, slot)
    _fit_column_labels(ax, heat, slot, size)
    _draw_numbers(ax, heat, mappable, size)
    return ax


def figure_size(heat: Heat) -> tuple[float, float]:
    font = _style.base_font()
    glyph = 0.62 * font  # a generous mean width
    labels = min(max(map(len, heat.rows), default=1) * glyph, LABEL_SHARE * WIDEST * 72)
    heads = min(max(map(len, heat.columns), default=1) * glyph, LABEL_SHARE * WIDEST * 72)
    cell = CELL_WIDTH * font
    width = labels + max(len(heat.columns), 2) * cell + 8 * font
    tall = heads if heads > cell else font
    height = len(heat.rows) * CELL_HEIGHT * font + tall + 5 * font
    least = [points / 72 for points in _least(heat, min(_canvas.READABLE, font))]
    width = min(max(width / 72, 4.5), max(WIDEST, least[0]))
    return width, min(max(height / 72, 1.8), max(HIGHEST, least[1]))


def _least(heat: Heat, font: float) -> tuple[float, float]:
    """Width and height in points at which row and column labels of a font do not touch."""
    wide = (TIGHT_CELL * len(heat.columns) + AROUND[0]) * font
    return wide, (TIGHT_CELL * len(heat.rows) + AROUND[1]) * font


def _font(heat: Heat, ax: Axes, width: float, height: float) -> float:
    """Return the largest label size at which row and column labels do not touch."""
    font = _style.base_font()
    while True:
        wide, high = _least(heat, font)
        if high <= height + 1e-6 and wide <= width + 1e-6:  # rounding must not cost a font size
            return font
        if font <= _style.SMALLEST_FONT:
            raise _canvas.too_small(ax, f"a map of {len(heat.rows)} x {len(heat.columns)} cells", high)
        font = max(font - 0.25, _style.SMALLEST_FONT)


def _colours(heat: Heat) -> ListedColormap:
    """Return the colour map without its darkest end or ends."""
    if heat.palette == "from zero":
        return ListedColormap(mpl.colormaps[_style.SEQUENTIAL](np.linspace(0.15, DARKEST, 255)))
    ends = (1 - DARKEST) / 2, 1 - (1 - DARKEST) / 2
    samples = mpl.colormaps[_style.DIVERGING](np.linspace(*ends, 255))
    return ListedColormap(samples if heat.palette == "low is blue" else samples[::-1])


def _draw_cells(ax: Axes, heat: Heat) -> tuple[ScalarMappable, tuple[float, float]]:
    """Draw the cells; return the colour scale and its ends."""
    finite = heat.values[heat.shown & np.isfinite(heat.values)]
    most = (float(np.abs(finite).max()) if finite.size else 0.0) or 1.0
    ends = (0.0 if heat.palette == "from zero" else -most, most)
    norm = Normalize(*ends)
    colours = _colours(heat)
    edges = np.arange(len(heat.columns) + 1) - 0.5, np.arange(len(heat.rows) + 1) - 0.5
    pale = np.ma.masked_where(~heat.shown, np.zeros(heat.values.shape))
    ax.pcolormesh(*edges, pale, cmap=ListedColormap([PALE]), edgecolors="white", linewidth=0.8, label="_pale")
    visible = heat.shown & heat.coloured & np.isfinite(heat.values)
    ax.pcolormesh(
        *edges,
        np.ma.masked_where(~visible, heat.values),
        cmap=colours,
        norm=norm,
        edgecolors="white",
        linewidth=0.8,
        label="_cells",
    )
    return ScalarMappable(norm, colours), ends


def _frame(ax: Axes) -> None:
    ax.grid(False)
    ax.set_facecolor("none")
    ax.set_aspect("auto")
    for spine in ax.spines.values():
        spine.set_visible(False)
    ax.tick_params(
        which="both",
        length=0,
        top=False,
        bottom=False,
        left=False,
        right=False,
        labeltop=False,
        labelbottom=True,
        labelleft=True,
        labelright=False,
    )


def _label_rows(ax: Axes, heat: Heat, width: float, size: float) -> None:
    font = _style.font_for(heat.rows)
    labels = _style.shorten(heat.rows, LABEL_SHARE * width, _style.Ruler(ax, size, **font))
    ax.set_ylim(len(heat.rows) - 0.5, -0.5)
    ax.set_yticks(range(len(labels)), labels)
    for tick in ax.get_yticklabels():
        _style.literal(tick).set(fontsize=size, color=_style.INK, va="center", **font)


def _label_columns(ax: Axes, heat: Heat, height: float, size: float) -> None:
    """Write the column labels upright below the map; `_fit_column_labels` lays them flat if they fit."""
    font = _style.font_for(heat.columns)
    labels = _style.shorten(heat.columns, HEAD_SHARE * height, _style.Ruler(ax, size, **font))
    ax.set_xlim(-0.5, len(heat.columns) - 0.5)
    ax.set_xticks(range(len(labels)), labels)
    for tick in ax.get_xticklabels():
        _style.literal(tick).set(fontsize=size, color=_style.INK, rotation=90, ha="center", va="top", **font)


def _fit_column_labels(ax: Axes, heat: Heat, slot: Bbox, size: float) -> None:
    cell = _cell(ax, heat)[0]
    ruler = _style.Ruler(ax, size, **_style.font_for(heat.columns))
    if ruler.widest([tick.get_text() for tick in ax.get_xticklabels()]) + 0.6 * size > cell:
        return
    for tick in ax.get_xticklabels():
        tick.set_rotation(0)
    _fitting.fit_inside(ax, slot)


def _cell(ax: Axes, heat: Heat) -> tuple[float, float]:
    box = ax.get_window_extent()
    points = 72 / ax.figure.figure.dpi
    return box.width * points / max(len(heat.columns), 1), box.height * points / max(len(heat.rows), 1)


def _label_below(ax: Axes, heat: Heat, width: float, size: float) -> None:
    small = 0.85 * size
    taken = min(_style.Ruler(ax, size).widest(heat.rows), LABEL_SHARE * width)
    room = max(width - taken - 8 * size, 0.4 * width)
    ruler = _style.Ruler(ax, small)
    lines = [line for part in heat.note.split("\n") for line in _style.wrap(part, room, ruler)]
    style = _style.text_style(small, color=_style.MUTED, **_style.font_for(lines))
    ax.set_xlabel("\n".join(lines), **style, labelpad=0.5 * size)


def _draw_scale(ax: Axes, heat: Heat, mappable: ScalarMappable, ends: tuple[float, float], size: float) -> None:
    """Draw the colour scale as a narrow axes at the right, of fixed width whatever the size of the map."""
    box = ax.get_window_extent()
    points = 72 / ax.figure.figure.dpi
    unit = size / (box.width * points)
    scale = ax.inset_axes((1 + BAR_GAP * unit, 0.0, BAR_WIDTH * unit, 1.0))
    bar = ax.figure.colorbar(mappable, cax=scale)
    bar.outline.set_visible(False)
    ruler = _style.Ruler(ax, size)
    room = box.height * points / 2  # upright labels need about a line each; half leaves air
    ticks = _canvas.choose_ticks(*ends, room, ruler, cover=False)
    scale.set_yticks(ticks.values, ticks.labels, **_style.text_style(0.85 * size))
    scale.tick_params(
        which="both",
        length=2,
        width=0.6,
        color=_style.MUTED,
        right=True,
        labelright=True,
        left=False,
        labelleft=False,
    )
    scale.minorticks_off()
    lines = _style.wrap(heat.scale_label, box.height * points * 0.8, ruler)
    scale.set_ylabel("\n".join(lines), **_style.text_style(size, **_style.font_for(lines)))


def _draw_numbers(ax: Axes, heat: Heat, mappable: ScalarMappable, size: float) -> None:
    """Write number and detail, or the detail alone, or nothing: whichever fits all cells."""
    numbers = _numbers(heat)
    choices = [(numbers, heat.details), (heat.details,)] if heat.details else [(numbers,)]
    shown = [(int(row), int(column)) for row, column in zip(*np.nonzero(heat.shown), strict=True)]
    for lines in choices:
        texts = {(row, column): [line[row][column] for line in lines] for row, column in shown}
        font = _number_font(ax, heat, [text for cell in texts.values() for text in cell], len(lines), size)
        if font >= LEAST_NUMBER:
            break
    else:
        return
    for (row, column), cell in texts.items():
        bold = heat.bold is not None and bool(heat.bold[row, column])
        ink = _ink(mappable, heat.values[row, column]) if heat.coloured[row, column] else _style.MUTED
        style = _style.text_style(font, color=ink, fontweight="bold" if bold else "normal")
        ax.text(column, row, "\n".join(cell), ha="center", va="center", linespacing=1.15, **style)


def _ink(mappable: ScalarMappable, value: float) -> str:
    """Return the text colour with the better contrast on the cell of `value`, as the eye sees it (APCA's powers)."""
    ground, ink = (_luminance(colour) for colour in (mappable.to_rgba(np.array([value]))[0, :3], to_rgb(_style.INK)))
    return "white" if 1.0 - ground**0.65 > ground**0.56 - ink**0.57 else _style.INK


def _luminance(colour: ArrayLike) -> float:
    """Light of an sRGB colour, from 0 to 1."""
    return float(np.dot((0.2126, 0.7152, 0.0722), np.asarray(colour, dtype=float) ** 2.4))


def _numbers(heat: Heat) -> tuple[tuple[str, ...], ...]:
    """Return all numbers with the same decimals: three significant digits of the largest."""
    finite = np.abs(heat.values[heat.shown & np.isfinite(heat.values)])
    decimals = _style.decimals(float(finite.max()) if finite.size else 0.0, 3)
    return tuple(tuple(_style.fixed(float(value), decimals) for value in line) for line in heat.values)


def _number_font(ax: Axes, heat: Heat, texts: list[str], lines: int, size: float) -> float:
    """Return the largest font, at most nine tenths of the labels', that fits the cells."""
    width, height = _cell(ax, heat)
    bold = "bold" if heat.bold is not None else "normal"
    per_point = _style.Ruler(ax, size, fontweight=bold).widest(texts) / size
    return min(0.9 * size, width / (per_point + 0.5), height / (1.3 * lines + 0.1))
