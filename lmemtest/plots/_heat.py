"""Matrices: numbers as colours, from or around zero, with the numbers in the cells where they fit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import ListedColormap, Normalize
from numpy.typing import NDArray

from lmemtest.core.arrays import Array
from lmemtest.plots import _canvas, _layout, _names, _style
from lmemtest.plots._layout import LINE, SMALL, TICK_PAD, Cell

# Sizes of a new figure in units of the font size.
CELL_WIDTH, CELL_HEIGHT = 5.2, 2.6  # room for a difference with a p-value below it
TIGHT_CELL = 1.25
CELL_LINE = 1.3  # height of a line of a cell
WIDEST, HIGHEST = 9.5, _canvas.PAGE_HEIGHT  # inches, unless labels would be unreadable
AROUND = (12.0, 8.0)  # beside and above the cells, at the least
LABEL_SHARE, HEAD_SHARE = 0.3, 0.4  # the most of width and height that row and column labels may take
SAFE = 0.96  # of the width for the note, which hinting makes wider at some resolutions
BAR_WIDTH, BAR_GAP = 0.9, 1.2  # the colour scale
BAR_ABOVE = 3.2  # font sizes of a colour scale above the map, with its numbers
NARROW = 4.5 * 72.0  # points of width, below which the colour scale is above the map
LEAST_NUMBER, LEAST_NEW = 4.5, 6.0  # points in axes of the user and in a new figure; smaller numbers are left out
BOLD, DOT = "Bold: ", "Dot: "  # how emphasised cells are marked: the second, which is not wider, without numbers
PALE = "#f2f2f2"
DARKEST = 0.82  # share of the colour map that is used: its ends are too dark to tell apart


Texts = Sequence[Sequence[str]]
Lines = dict[tuple[int, int], list[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Heat:
    """Content of a heat map."""

    rows: Sequence[str]
    columns: Sequence[str]
    values: Array  # (r, c); NaN is shown as a dash
    scale_label: str  # beside the colour scale
    note: Sequence[str] = ()  # sentences below the map, each from a new line; empty ones are left out
    shown: NDArray[np.bool_] | None = None  # which cells exist; None for all
    coloured: NDArray[np.bool_] | None = None  # cells with a colour, the others are pale; None for those with a value
    bold: NDArray[np.bool_] | None = None  # cells whose number is emphasised; a dot marks them where numbers do not fit
    emphasis: str = ""  # what that says: the note begins with it if there are such cells
    reading: str = ""  # what the numbers are: the note ends with it if there are numbers
    layers: tuple[Texts, ...] = ()  # more texts per cell, below its number
    head_share: float = HEAD_SHARE  # the most of the height that column labels may take
    all_numbers: bool = False  # axes of the user must have room for the numbers; elsewhere small cells go without
    # "low is blue" or "high is blue" with orange around the centre, or "from zero" in shades of blue
    palette: str = "low is blue"
    centre: float = 0.0  # where orange and blue meet
    most: float | None = None  # from there to the ends of the colour scale; None for the largest value
    decimals: int | None = None  # of the numbers; None for three digits of the largest
    of: Literal["", "pairs", "columns"] = ""  # whether algorithms are on both sides, or are the columns

    @property
    def exists(self) -> NDArray[np.bool_]:
        return np.ones(self.values.shape, dtype=bool) if self.shown is None else self.shown

    @property
    def painted(self) -> NDArray[np.bool_]:
        painted = np.isfinite(self.values) & self.exists
        return painted if self.coloured is None else painted & self.coloured

    @property
    def texts(self) -> Iterator[Lines]:
        """Lines of each cell: the number with all layers, with fewer of them, and the last layer alone."""
        finite = np.abs(self.values[self.exists & np.isfinite(self.values)])
        largest = float(finite.max()) if finite.size else 0.0
        decimals = _style.decimals(largest, 3) if self.decimals is None else self.decimals
        numbers = [[_style.fixed(float(value), decimals) for value in line] for line in self.values]
        if decimals == 0 and self.decimals is None:  # beside hundreds a difference of 0.6 is not none
            few = np.argwhere((np.abs(self.values) < 9.95) & (self.values != 0.0))
            for row, column in few.tolist():
                numbers[row][column] = _style.fixed(float(self.values[row, column]), 1)
        choices = [(numbers, *self.layers[i:]) for i in range(max(len(self.layers), 1))]
        choices += [self.layers[-1:]] if self.layers and not self.all_numbers else []
        for layers in choices:
            yield {
                (int(row), int(column)): [text for layer in layers if (text := layer[row][column])]
                for row, column in np.argwhere(self.exists)
            }

    @property
    def ends(self) -> tuple[float, float]:
        """Of the colour scale."""
        finite = np.abs(self.values[self.exists & np.isfinite(self.values)] - self.centre)
        most = self.most or (float(finite.max()) if finite.size else 0.0) or 1.0
        return (self.centre if self.palette == "from zero" else self.centre - most, self.centre + most)

    @property
    def mappable(self) -> ScalarMappable:
        """The colours; one of a single hue goes without the darkest end of its map."""
        if self.palette == "from zero":
            samples = mpl.colormaps[_style.SEQUENTIAL](np.linspace(0.15, DARKEST, 255))
        else:
            samples = _style.DIVERGING(np.linspace(0.0, 1.0, 255))
        colours = ListedColormap(samples[::-1] if self.palette == "high is blue" else samples)
        return ScalarMappable(Normalize(*self.ends), colours)


def grid(
    ax: Axes,
    rows: Sequence[str],
    columns: Sequence[str],
    what: str,
    *,
    beside: tuple[float, float],
    note: Sequence[str] = (),
    lead: str = "",
    above: float = 0.2,
    head_share: float = HEAD_SHARE,
    tight: tuple[float, float] = (TIGHT_CELL, TIGHT_CELL),
    least: tuple[float, float] = (0.0, 0.0),
    label_share: float = LABEL_SHARE,
) -> tuple[float, Cell, tuple[float, float], list[list[str]]]:
    """The largest font with which cells have `tight` font sizes and `least` points; the place of all, width and height
    of one, and the lines of each part of the note.

    The axes have labels and the note, after a `lead`, when this returns, and no cells. In font sizes, `beside` is the
    room left and right of the matrix and its labels, `above` that above it. Column labels are upright where they are
    too wide for a cell.
    """
    size = _canvas.size_in_points(ax)
    rows, columns = [[_style.one_line(name) for name in names] for names in (rows, columns)]
    sizes = [*_layout.fonts_and_lines()]
    for font, lines, squeezed in [*((*one, False) for one in sizes), (sizes[-1][0], 1, True)]:
        ruler = _style.Ruler(ax, font, **_style.font_for(rows))
        label_room = label_share * size[0]
        if squeezed:  # names give way to their numbers before cells get too small
            rest = size[0] - 2.0 * _canvas.PAD - TICK_PAD - (beside[0] + beside[1] + tight[0] * len(columns)) * font
            label_room = min(label_room, rest / _layout.FOLDED)
        labels, key = _names.fitted(rows, label_room, ruler, lines)
        left = _canvas.PAD + beside[0] * font + _layout.FOLDED * ruler.widest(labels) + TICK_PAD
        right = _canvas.PAD + beside[1] * font
        inner = max(size[0] - left - right, 1.0)
        across = _style.Ruler(ax, font, **_style.font_for(columns))
        each = inner / max(len(columns), 1)
        level = _levelled(columns, each - 0.6 * font, across, lines)
        flat = level is not None
        head_room = head_share * size[1]
        cut = [name for name in rows if key and _names.wrapped(name, label_room, ruler, lines) is None]
        numbers = {name: number for number, name in enumerate(cut, 1)}
        heads, more = (level, []) if level else _names.fitted(columns, head_room, across, lines, 1 + len(key), numbers)
        if set(columns) == set(rows) and (key or more):
            labels, key, heads = _numbered(rows, columns, label_room, ruler, lines)
            more = []
            left = _canvas.PAD + beside[0] * font + _layout.FOLDED * ruler.widest(labels) + TICK_PAD
            inner = max(size[0] - left - right, 1.0)
            flat = across.widest(heads) + 0.6 * font <= inner / len(heads)
        more = [text for text in more if text not in key]
        note_texts = [*note, *filter(None, [" ".join([*key, *more])])]
        widest = across.widest(heads)
        small = _style.Ruler(ax, SMALL * font, **_style.font_for(note_texts))
        leads = [lead] + [""] * len(note_texts)
        room = SAFE * (inner if _canvas.is_laid_out(ax) else size[0] - 2.0 * _canvas.PAD)
        parts = [_style.wrap(text, room, small, first) for text, first in zip(note_texts, leads, strict=False)]
        words = "\n".join(line for part in parts for line in part)
        high = LINE * font * (1 + max((head.count("\n") for head in heads), default=0))
        bottom = _canvas.PAD + TICK_PAD + (high if flat else widest)
        bottom += 0.8 * font + small.height(lead + words) if words else 0.0
        top = _canvas.PAD + above * font
        place = Cell(left, bottom, inner, max(size[1] - bottom - top, 1.0))
        cell = place.width / max(len(columns), 1), place.height / max(len(rows), 1)
        folds = [LINE * font * any("\n" in name for name in names) for names in (() if flat else heads, labels)]
        needed = [max(a * font + fold, b) for a, b, fold in zip(tight, least, folds, strict=True)]
        if cell[0] >= needed[0] - 1e-6 and cell[1] >= needed[1] - 1e-6:
            break
    else:  # row labels grow with the width up to a share
        rest = needed[0] * len(columns) + left + right - ruler.widest(labels)
        width = min(rest + ruler.widest(rows), rest / (1.0 - label_share))
        raise _canvas.too_small(ax, what, needed[1] * len(rows) + bottom + top, width)
    _canvas.leave_margins(ax, left, bottom, right, top)
    _layout.open_panel(ax, font, edges=())
    ax.set_aspect("auto")
    ax.set_xlim(-0.5, len(columns) - 0.5)
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.set_yticks(range(len(labels)), labels)
    ax.set_xticks(range(len(heads)), heads)
    for ticks, names, where in (
        (ax.get_yticklabels(), rows, {"va": "center"}),
        (ax.get_xticklabels(), columns, {"va": "top", "ha": "center", "rotation": 0 if flat else 90}),
    ):
        style: dict[str, Any] = {
            "fontsize": font,
            "color": _style.INK,
            "linespacing": 1.05,
            **_style.font_for(names),
            **where,
        }
        for tick in ticks:
            _style.literal(tick).set(**style)
    style = _style.text_style(SMALL * font, color=_style.MUTED, **_style.font_for([words]))
    if not _canvas.is_laid_out(ax):  # from the left, as captions of other figures
        style |= {"ha": "left", "x": (_canvas.PAD - left) / inner}
    ax.set_xlabel(lead + words, **style, labelpad=0.5 * font)
    return font, place, cell, parts


def _levelled(names: Sequence[str], room: float, ruler: _style.Ruler, lines: int) -> list[str] | None:
    """Names below their columns as they are read, on up to two lines of `room` points; None where these do not hold all
    of them, or would break words."""
    level = []
    for name in names:
        text = _names.wrapped(name, room, ruler, min(lines, 2))
        if text is None:
            return None
        end = text.find("\n")
        if end >= 0 and text.replace("\n", " ") != name and text[end - 1] not in _names.SIGNS:
            return None
        level.append(text)
    return level


def _numbered(
    rows: Sequence[str], columns: Sequence[str], room: float, ruler: _style.Ruler, lines: int
) -> tuple[list[str], list[str], list[str]]:
    """Names with numbers for the rows, on so many lines of `room` points, the key to those that are cut, and the
    numbers for the columns, which are the same names."""
    numbers = {name: number for number, name in enumerate(rows, 1)}
    rest = room - ruler.width(f" [{len(rows)}]")
    whole = {name: _names.wrapped(name, rest, ruler, max(lines, 1)) for name in rows}
    long = [name for name, text in whole.items() if text is None]
    cut, key = _names.fitted(long, rest, ruler, numbers=numbers)
    short = {name: f"{text} [{numbers[name]}]" for name, text in whole.items()} | dict(zip(long, cut, strict=True))
    labels = [short[name] for name in rows]
    return labels, key, [f"[{numbers[name]}]" for name in columns]


def draw_heat(heat: Heat, ax: Axes | None, *, left: float = 0.0) -> tuple[Axes, float, Cell]:
    """Draw `heat` in `ax` or a new figure, with room left of it, in font sizes; return axes, font and place."""
    if ax is None:
        ax = _canvas.new_axes(*figure_size(heat))
    width, height = _canvas.size_in_points(ax)
    numbers = _style.Ruler(ax, 1.0 * SMALL * 10.0)
    _, labels = _layout.choose_ticks(*heat.ends, 10.0 * height, numbers, cover=False)
    wide = numbers.widest(labels) / 10.0  # per font size
    base = _style.Ruler(ax, 10.0, **_style.font_for([heat.scale_label]))
    narrow = width < NARROW and left == 0.0
    along = width if narrow else height
    lines = _style.wrap(heat.scale_label, 10.0 * (along - 2.0 * _canvas.PAD) / _style.base_font(), base)
    label = base.height("\n".join(lines)) / 10.0
    scale = 0.0 if narrow else BAR_GAP + BAR_WIDTH + wide
    needed = heat.all_numbers and _canvas.least_font() < _canvas.READABLE
    wanted = _per_point(ax, heat, list(heat.texts)[-1]) if needed else (0.0, 0.0)
    least = (least_number() * wanted[0], least_number() * wanted[1])
    what = f"a map of {len(heat.rows)} x {len(heat.columns)} cells"
    room: dict[str, Any] = {"beside": (left, scale + 1.1 + label), "above": 0.5}
    if narrow:
        room = {"beside": (left, 0.5), "above": label + BAR_ABOVE}
    room["head_share"] = heat.head_share
    emphasised = np.argwhere(heat.bold) if heat.emphasis and heat.bold is not None else np.empty((0, 2), dtype=np.intp)
    first, *rest = heat.note or [""]
    if len(emphasised):
        first = f"{heat.emphasis} {first}"
    note, lead = [text for text in (first, *rest, heat.reading) if text], BOLD * (len(emphasised) > 0)
    font, place, cell, parts = grid(ax, heat.rows, heat.columns, what, note=note, lead=lead, least=least, **room)
    edges = np.arange(len(heat.columns) + 1) - 0.5, np.arange(len(heat.rows) + 1) - 0.5
    style: dict[str, Any] = {"edgecolors": "white", "linewidth": 0.8}
    pale = np.ma.masked_where(~heat.exists, np.zeros(heat.values.shape))
    ax.pcolormesh(*edges, pale, cmap=ListedColormap([PALE]), label="_pale", **style)
    painted = np.ma.masked_where(~heat.painted, heat.values)
    ax.pcolormesh(*edges, painted, cmap=heat.mappable.cmap, norm=Normalize(*heat.ends), label="_cells", **style)
    _veil(ax, heat)
    if narrow:
        _draw_scale_above(ax, heat, font, place, lines)
    else:
        _draw_scale(ax, heat, font, place, lines)
    if _draw_numbers(ax, heat, font, cell):
        return ax, font, place
    if heat.reading:
        del parts[len(note) - 1]
    words = "\n".join(line for part in parts for line in part)
    ax.xaxis.label.set_text(lead + words)
    if len(emphasised):  # dots mark cells where numbers do not fit
        row, column = emphasised.T
        inks, dot = (
            _style.ink_on(heat.mappable.to_rgba(heat.values)[..., :3])[row, column].tolist(),
            min(0.5 * font, 0.4 * min(cell)),
        )
        ax.scatter(column, row, s=dot**2, c=inks, linewidths=0, label="_emphasised", zorder=3)
        ax.xaxis.label.set_text(DOT + words)
    return ax, font, place


def _veil(ax: Axes, heat: Heat) -> None:
    """Cells that belong to two algorithms, or columns of one, and their labels, as parts of the figure."""
    for ticks, names in ((ax.get_yticklabels(), heat.rows), (ax.get_xticklabels(), heat.columns)):
        for tick, name in zip(ticks, names, strict=True):
            tick.set_gid(_style.part(name))
    if heat.of == "pairs":
        for row, column in np.argwhere(heat.exists).tolist():
            _style.veil(ax, (column - 0.5, row - 0.5), 1.0, 1.0, heat.rows[row], heat.columns[column])
    for column, name in enumerate(heat.columns if heat.of == "columns" else ()):
        _style.veil(ax, (column - 0.5, -0.5), 1.0, float(len(heat.rows)), name)


def least_number() -> float:
    """Points of the numbers in cells, at the least."""
    return LEAST_NUMBER if _canvas.least_font() < _canvas.READABLE else LEAST_NEW


def figure_size(heat: Heat) -> tuple[float, float]:
    """Inches of a new figure."""
    font = _style.base_font()
    glyph = 0.62 * font  # a generous mean width
    labels, heads = (
        min(max(map(len, names), default=1) * glyph, LABEL_SHARE * WIDEST * 72) for names in (heat.rows, heat.columns)
    )
    cell, lines = CELL_WIDTH * font, 1 + len(heat.layers)
    width = labels + max(len(heat.columns), 2) * cell + 8 * font
    height = len(heat.rows) * max(CELL_HEIGHT, CELL_LINE * lines + 0.3) * font
    height += (heads if heads > cell else font) + 5 * font
    readable = min(_canvas.READABLE, font)
    least = [
        (TIGHT_CELL * count + around) * readable / 72
        for count, around in zip((len(heat.columns), len(heat.rows)), AROUND, strict=True)
    ]
    width = _canvas.figure_width(min(max(width / 72, 4.5), max(WIDEST, least[0])))
    height += (BAR_ABOVE + 1.5 * LINE) * font * (72 * width < NARROW)
    return width, min(max(height / 72, 1.8), max(HIGHEST, least[1]))


def _draw_scale(ax: Axes, heat: Heat, font: float, place: Cell, lines: Sequence[str]) -> None:
    """The colour scale as a narrow axes at the right, of fixed width whatever the size of the map."""
    box = ax.get_window_extent()  # which a layout engine has not made smaller yet
    width, height = (points * 72 / ax.figure.figure.dpi for points in box.size)
    scale = ax.inset_axes((1.0 + BAR_GAP * font / width, 0.0, BAR_WIDTH * font / width, 1.0))
    ax.figure.colorbar(heat.mappable, cax=scale).outline.set_visible(False)  # type: ignore[operator]
    _layout.open_panel(scale, SMALL * font, edges=())
    ticks, labels = _layout.choose_ticks(*heat.ends, height, _style.Ruler(ax, font), cover=False, upwards=True)
    scale.set_yticks(ticks, labels, **_style.text_style(SMALL * font))
    scale.set_xticks([])
    sides: dict[str, bool] = {"left": False, "labelleft": False, "right": True, "labelright": True}
    scale.tick_params(axis="y", length=2.0, width=0.6, **sides)
    names = _style.font_for(lines)
    scale.set_ylabel("\n".join(lines), **_style.text_style(font, **names))
    # the label may be longer than the scale: it is centred on it as far as the figure has room
    half = max(map(_style.Ruler(ax, font, **names).width, lines)) / 2.0
    low, high = half - place.y + _canvas.PAD, height + 0.5 * font - half
    scale.yaxis.label.set_y(min(max(height / 2.0, low), high) / height)


def _draw_scale_above(ax: Axes, heat: Heat, font: float, place: Cell, lines: Sequence[str]) -> None:
    """The colour scale as a flat axes above the map, numbers below it and its label above."""
    height = 0.7 * font / place.height
    scale = ax.inset_axes((0.0, 1.0 + 2.0 * font / place.height, 1.0, height))
    ax.figure.colorbar(heat.mappable, cax=scale, orientation="horizontal").outline.set_visible(False)  # type: ignore[operator]
    _layout.open_panel(scale, SMALL * font, edges=())
    ruler, axis = _style.Ruler(ax, font), _layout.Axis(limits=heat.ends)
    ticks, labels = _layout.choose_ticks(*heat.ends, place.width, ruler, cover=False)
    half = np.array([ruler.width(label) for label in labels]) / 2.0
    at = place.x + axis.share(ticks) * place.width
    kept = np.flatnonzero((at >= half) & (at + half <= place.x + place.width + 0.5 * font + _canvas.PAD))
    scale.set_xticks([ticks[i] for i in kept], [labels[i] for i in kept], **_style.text_style(SMALL * font))
    scale.set_yticks([])
    scale.tick_params(axis="x", length=2.0, width=0.6, bottom=True)
    text = "\n".join(lines)
    words: dict[str, Any] = {"xycoords": scale.transAxes, "textcoords": "offset points", "ha": "right", "va": "bottom"}
    words |= _style.text_style(font, **_style.font_for(lines))
    scale.annotate(text, (1.0, 1.0), xytext=(0.0, 0.25 * font), linespacing=1.15, **words)


def _draw_numbers(ax: Axes, heat: Heat, most: float, cell: tuple[float, float]) -> bool:
    """Write number and layers, or fewer of them, or nothing: the most that fits all cells; return whether any."""
    for cells in heat.texts:
        width, height = _per_point(ax, heat, cells)
        font = min(0.9 * most, cell[0] / width, cell[1] / height)
        if font >= least_number():
            break
    else:
        return False
    painted, inks = heat.painted, _style.ink_on(heat.mappable.to_rgba(heat.values)[..., :3])
    for (row, column), lines in cells.items():
        bold = heat.bold is not None and bool(heat.bold[row, column])
        ink = inks[row, column] if painted[row, column] else _style.MUTED
        style = _style.text_style(font, color=ink, fontweight="bold" if bold else "normal")
        ax.text(column, row, "\n".join(lines), ha="center", va="center", linespacing=1.15, **style)
    return True


def _per_point(ax: Axes, heat: Heat, cells: Lines) -> tuple[float, float]:
    """Width and height that the widest and highest text of a cell take per point of its font, with margins."""
    ruler = _style.Ruler(ax, 10.0, fontweight="normal" if heat.bold is None else "bold")
    widest = ruler.widest([text for lines in cells.values() for text in lines]) / ruler.size
    return widest + 0.5, CELL_LINE * max(map(len, cells.values()), default=0) + 0.1
