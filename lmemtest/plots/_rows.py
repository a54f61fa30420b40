"""Dot-and-whisker rows: one label per row, and beside it estimates with intervals, in one column or in several."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from lmemtest.core.arrays import Array, Index
from lmemtest.plots import _canvas, _layout, _names, _style
from lmemtest.plots._layout import KEY_LINE, LINE, MINUS, SMALL, TICK_PAD, TICKS, TITLE, Axis, Cell

Kind = tuple[str, Any, dict[str, Any]]  # of rows: its name, which rows are of it, and its look
# Heights in units of the font size.
ROW, SERIES = 0.95, 0.8  # a row is ROW + SERIES per series high in a new figure ...
TIGHT_ROW, TIGHT_SERIES = 1.2, 0.45  # ... and at least the larger of these in axes of the user
LABEL_SHARE = 0.45  # the most of the width that row labels may take
MARGIN = 0.04  # of the range, on both ends of the x axis
MOST_LINES = 3  # of a label
MOST_ROWS = 60  # of a page in the usual font; of more rows a figure draws those that say most


@dataclass(frozen=True, slots=True, kw_only=True)
class Series:
    """Estimates of one colour and shape, with intervals where there are any; NaN is not drawn.

    `offset` is the lane within the row, 0 to `Rows.lanes` - 1 from the top.
    """

    row: Index
    centre: Array
    low: Array | None = None
    high: Array | None = None
    name: str = ""
    colour: str = _style.ACCENT
    marker: str = "o"
    hollow: bool = False
    offset: int = 0

    @classmethod
    def of(
        cls,
        table: pd.DataFrame,
        row: Index,
        *,
        centre: str = "estimate",
        ends: tuple[str, str] | None = ("ci_low", "ci_high"),
        scale: float = 1.0,
        **look: Any,
    ) -> Series:
        """Of a table with a column of estimates, and two of the ends of their intervals."""
        low, high = (None, None) if ends is None else (scale * table[end].to_numpy(dtype=float) for end in ends)
        return cls(row=row, centre=scale * table[centre].to_numpy(dtype=float), low=low, high=high, **look)

    @classmethod
    def kinds(cls, table: pd.DataFrame, row: Index, kinds: Iterable[Kind], **columns: Any) -> tuple[Series, ...]:
        """One for each kind of row that there is."""
        return tuple(
            cls.of(table[mask], row[mask], name=name, **look, **columns) for name, mask, look in kinds if mask.any()
        )

    def spans(self) -> list[tuple[float, float, float]]:
        """Row, start and end of each interval."""
        if self.low is None or self.high is None:
            return []
        finite = np.isfinite(self.low) & np.isfinite(self.high)
        return list(zip(self.row[finite], self.low[finite], self.high[finite], strict=True))


@dataclass(frozen=True, slots=True, kw_only=True)
class Rows:
    """Content of a row plot."""

    labels: Sequence[str | tuple[str, ...]]  # from the top: a name, or two names to be written with `between`
    series: tuple[Series, ...]
    axis_label: str  # what follows a line break is a sentence of the caption
    between: str = MINUS
    lanes: int = 1  # how many estimates lie side by side in a row
    headers: frozenset[int] = frozenset()  # rows that are headings and hold no estimates
    aside: tuple[str, ...] = ()  # a text right of each row, or empty; `aside_title` above these texts
    aside_title: str = ""
    title: str = ""  # above everything; `title_end` stays, however long the name before it
    title_end: str = ""
    reference: float | None = None  # where a vertical line marks "no difference"
    threshold: float | None = None  # where a dashed one marks what matters
    limits: tuple[float, float] | None = None  # of the horizontal axis; None for those of the estimates
    root: bool = False  # whether its lengths are square roots, with limits that are given
    log: bool = False  # whether equal lengths are equal ratios
    whole: bool = False  # the axis counts something
    legend: bool = False

    def y(self, row: Any, offset: int) -> Any:
        """Return the height of a lane: rows are 1 apart, downwards."""
        return row + (offset - (self.lanes - 1) / 2) * 0.8 / self.lanes

    def axis(self) -> Axis:
        """The horizontal axis, with all estimates and the reference."""
        if self.limits is not None:
            return Axis(limits=self.limits, root=self.root)
        parts = [part for one in self.series for part in (one.centre, one.low, one.high) if part is not None]
        lines = [math.nan if line is None else line for line in (self.reference, self.threshold)]
        values = np.concatenate([*parts, lines])
        values = values[np.isfinite(values)]
        if values.size == 0:
            return Axis(limits=(0.0, 1.0))
        if self.log:
            return Axis.around(values, log=True, pad=MARGIN)
        low, high = float(values.min()), float(values.max())
        spread = high - low
        if spread <= 1e-12 * max(abs(low), abs(high)):
            spread = max(abs(low), 1e-300) if low else 1.0
        return Axis(limits=(low - MARGIN * spread, high + MARGIN * spread), whole=self.whole)


@dataclass(frozen=True, slots=True)
class Shown:
    """Which of many rows are drawn (`kept`), their rows in the figure (`place`), and how many are left out."""

    kept: Index
    place: Index
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
    def largest(cls, size: Array, most: int) -> Shown:
        """The rows of the largest `size`, `most` in all, in their order; NaN is smaller than everything."""
        order = np.argsort(-np.nan_to_num(size, nan=-np.inf, posinf=np.inf), kind="stable")
        kept = np.sort(order[:most])
        return cls(kept, np.arange(len(kept), dtype=np.intp), len(size) - len(kept))

    @property
    def headers(self) -> frozenset[int]:
        """The row that is no row of the table, if there is one."""
        moved = np.flatnonzero(self.place != np.arange(len(self.place)))
        return frozenset(moved[:1].tolist())

    def labels(self, names: Iterable[Any]) -> list[Any]:
        """Labels of the rows of the figure, from those of all rows."""
        names = list(names)
        labels = [names[i] if isinstance(names[i], tuple) else str(names[i]) for i in self.kept]
        for row in self.headers:
            labels.insert(row, f"… {self.left_out:,} more …")
        return labels

    def sentence(self, what: str) -> str:
        """What is left out, as a line to add to others; empty if all rows are drawn."""
        if not self.left_out:
            return ""
        return f"\n{self.left_out:,} of {len(self.kept) + self.left_out:,} {what} are left out."


def draw_rows(rows: Rows, ax: Axes | None, *, width: float | None = None) -> Axes:
    """Draw `rows` in `ax` or a new figure of some inches, and return the axes."""
    if ax is None:
        inches = _canvas.figure_width() if width is None else width
        ax = _canvas.new_axes(inches, _new_height(rows, inches) / 72)
    across, height = _canvas.size_in_points(ax)
    for font, lines in _layout.fonts_and_lines(MOST_LINES):
        labels, words, caption, title, key, margins = _texts(ax, rows, across, font, lines)
        need = _height(rows, labels, font, margins, tight=True)
        if need <= height + 1e-6:  # rounding must not cost a font size
            break
    else:
        raise _canvas.too_small(ax, f"a plot of {len(rows.labels)} rows", need)
    left, _, right, _ = margins
    _canvas.leave_margins(ax, *margins)
    _draw_panel(ax, rows, labels, font, font, across - left - right, (left, right))
    for at, text in enumerate(rows.aside):
        _annotate(ax, text, (1.0, at), (0.8 * font, 0.0), font, coords=ax.get_yaxis_transform(), va="center")
    _annotate(ax, rows.aside_title, (1.0, 1.0), (0.8 * font, 0.2 * font), font, coords="axes fraction", va="bottom")
    fonts = _style.font_for([words])
    half, inner = _style.Ruler(ax, font, **fonts).width(words) / 2.0, across - left - right
    middle = max(min(inner / 2.0, inner + right - _canvas.PAD - half), half + _canvas.PAD - left)
    ax.set_xlabel(words, x=middle / inner, **_style.text_style(font, **fonts), labelpad=0.4 * font)
    corner = _canvas.PAD - left, _canvas.PAD - margins[1]
    _annotate(ax, caption, (0.0, 0.0), corner, font, coords="axes fraction", va="bottom")
    if title:
        ax.set_title(title, loc="left", pad=0.4 * font, **_style.text_style(font, **_style.font_for([title])))
    if key[0]:
        named = [series for series in rows.series if series.name]
        handles = [Line2D([], [], **_look(series, font)) for series in named]
        names, columns, start = key
        place: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (start / inner, 1.0), "borderaxespad": 0.5}
        _layout.draw_legend(ax, handles, names, columns, SMALL * font, of=[series.name for series in named], **place)
    return ax


def _texts(
    ax: Axes, rows: Rows, width: float, font: float, most_lines: int = MOST_LINES
) -> tuple[list[str], str, str, str, tuple[list[str], int, float], tuple[float, float, float, float]]:
    """At a font size: labels of some lines, name of the axis, caption, title, of the legend names, columns and where it
    begins, and the room around the rows: left, below, right, above."""
    parts = [(one,) if isinstance(one, str) else one for one in rows.labels]
    blank = {row for row in rows.headers if not rows.labels[row]}  # a heading that goes on
    parts = [("",) if row in blank else tuple(map(_style.one_line, one)) for row, one in enumerate(parts)]
    names = list(dict.fromkeys(name for one in parts for name in one))
    ruler = _style.Ruler(ax, font, **_style.font_for(names))
    labels, key_words = _labels(parts, names, rows.between, LABEL_SHARE * width, ruler, most_lines)
    aside = _style.Ruler(ax, SMALL * font).widest([*rows.aside, rows.aside_title])
    slack = _layout.FOLDED if any("\n" in label or "…" in label for label in labels) else 1.0
    left = _canvas.PAD + slack * ruler.widest(labels) + TICK_PAD
    right = _canvas.PAD + (aside + 0.8 * font if aside else 0.5 * font)
    inner = width - left - right
    entries = [_style.one_line(one.name) for one in rows.series if one.name and rows.legend]
    small = _style.Ruler(ax, SMALL * font, **_style.font_for(entries))
    key, columns, lines, more = _layout.legend_rows(entries, inner, small, 1 + len(key_words))
    start = 0.0
    if any("\n" in text or "…" in text for text in key):  # above the labels, too
        start = _canvas.PAD - left
        key, columns, lines, more = _layout.legend_rows(entries, inner - start, small, 1 + len(key_words))
    name, *sentences = rows.axis_label.split("\n")
    sentences = [f"{part[:1].upper()}{part[1:].rstrip('.')}." for part in sentences if part]
    sentences += filter(None, [" ".join([*key_words, *more])])
    plain = _style.Ruler(ax, font, **_style.font_for([name]))
    words = "\n".join(_style.wrap(name, width - 2.0 * _canvas.PAD, plain))
    fine = _style.Ruler(ax, SMALL * font, **_style.font_for(sentences))
    caption = [line for part in sentences for line in _style.wrap(part, width - 2.0 * _canvas.PAD, fine)]
    title = ""
    if rows.title:
        name = _style.one_line(rows.title)
        bold = _style.Ruler(ax, font, **_style.font_for([name]))
        room = width - left - _canvas.PAD - bold.width(rows.title_end)
        title = "\n".join(_style.wrap(name, room, bold)) + rows.title_end
    bottom = _canvas.PAD + 2.0 * TICK_PAD + 1.9 * font + plain.height(words)
    bottom += fine.height("\n".join(caption)) + 0.2 * font if caption else 0.0
    legend = (KEY_LINE * lines + 0.6) * SMALL * font if lines else 0.0
    above = max(legend, LINE * SMALL * font * bool(rows.aside_title)) + (
        TITLE + LINE * (1 + title.count("\n"))
    ) * font * bool(title)
    room_around = left, bottom, right, _canvas.PAD + above
    return labels, words, "\n".join(caption), title, (key, columns, start), room_around


def _labels(
    parts: Sequence[tuple[str, ...]], names: Sequence[str], between: str, room: float, ruler: _style.Ruler, lines: int
) -> tuple[list[str], list[str]]:
    """Names, or two with a sign `between` them, on so many lines of `room` points; and the key to shortened ones."""
    whole = [between.join(one) for one in parts]
    if ruler.widest(whole) <= room:
        return whole, []
    if max(map(len, parts)) == 1:
        return _names.fitted(whole, room, ruler, lines)
    sign = f"{between.strip()} "
    each = room - ruler.width(sign) if lines > 1 else (room - ruler.width(between)) / 2.0
    short, key = _names.fitted(names, each, ruler)
    label = dict(zip(names, short, strict=True))
    apart = f"\n{sign}" if lines > 1 else between
    labels = [apart.join(label[name] for name in one) for one in parts]
    return [one if ruler.width(one) <= room else other for one, other in zip(whole, labels, strict=True)], key


def _height(
    rows: Rows, labels: Sequence[str], font: float, margins: tuple[float, float, float, float], *, tight: bool
) -> float:
    """Points that the rows need with everything around them."""
    pitch = max(TIGHT_ROW, TIGHT_SERIES * rows.lanes) if tight else ROW + SERIES * rows.lanes
    pitch = max(pitch, LINE * max((label.count("\n") for label in labels), default=0) + TIGHT_ROW)
    return pitch * font * len(rows.labels) + margins[1] + margins[3]


def _new_height(rows: Rows, inches: float) -> float:
    """The points of a new figure: with air, as far as a page holds it; then rows get thinner."""
    ax, width, page = _canvas.scratch_axes(inches), 72.0 * inches, 72.0 * _canvas.PAGE_HEIGHT
    font = _style.base_font()
    texts = _texts(ax, rows, width, font)
    airy = _height(rows, texts[0], font, texts[-1], tight=False)
    if airy <= page:
        return airy
    small = min(_canvas.READABLE, font)
    texts = _texts(ax, rows, width, small, 1)
    return min(airy, max(_height(rows, texts[0], small, texts[-1], tight=True), page))


def _draw_panel(
    box: Axes,
    rows: Rows,
    labels: Sequence[str],
    font: float,
    numbers: float,
    room: float,
    spill: tuple[float, float],
) -> None:
    """Axis with numbers of a size, labels, and in the rows guides and series."""
    _layout.open_panel(box, numbers, edges=("bottom",))
    _layout.set_along(box, rows.axis(), room, numbers, spill=spill)
    box.set_ylim(len(labels) - 0.5, -0.5)
    box.set_yticks(range(len(labels)), labels)
    names = _style.font_for(labels)
    for row, tick in enumerate(box.get_yticklabels()):
        colour = _style.MUTED if row in rows.headers else _style.INK
        _style.literal(tick).set(fontsize=font, color=colour, va="center", linespacing=1.05, **names)
        names_of = name if isinstance(name := rows.labels[row], tuple) else (str(name),)
        if labels[row] and row not in rows.headers:
            tick.set_gid(_style.part(*names_of))
            _style.veil(box, (0.0, row - 0.5), 1.0, 1.0, *names_of, transform=box.get_yaxis_transform())
    shift = 0.5 if rows.lanes > 1 else 0.0  # a line behind each row, or between rows that hold several estimates
    for row in range(len(rows.labels) - (rows.lanes > 1)):
        if row not in rows.headers:
            box.axhline(row + shift, color=_style.FAINT, linewidth=0.6, linestyle="-", zorder=0.5, label="_guide")
    if rows.reference is not None:
        box.axvline(rows.reference, color=_style.INK, linewidth=0.8, linestyle="-", zorder=1, label="_reference")
    if rows.threshold is not None:
        box.axvline(rows.threshold, color=_style.MUTED, linewidth=0.8, linestyle="--", zorder=1, label="_threshold")
    for series in rows.series:
        _draw_series(box, rows, series, font)


def _look(series: Series, size: float) -> dict[str, Any]:
    """How a series looks, in the legend and beside the rows."""
    edge = {"markeredgecolor": series.colour, "markeredgewidth": 0.12 * size, "markersize": 0.6 * size}
    face = "white" if series.hollow else series.colour
    return {"color": series.colour, "marker": series.marker, "markerfacecolor": face, "linewidth": 0.16 * size} | edge


def _draw_series(ax: Axes, rows: Rows, series: Series, size: float) -> None:
    gid = _style.part(series.name) if series.name else None
    for row, low, high in series.spans():
        line: dict[str, Any] = {"linewidth": 0.16 * size, "linestyle": "-", "marker": "none", "zorder": 2}
        ends = [rows.y(row, series.offset)] * 2
        ax.plot([low, high], ends, color=series.colour, solid_capstyle="butt", label="_interval", gid=gid, **line)
    dots: dict[str, Any] = {"linestyle": "none", "label": "_estimates", "clip_on": False, "zorder": 3}
    ax.plot(series.centre, rows.y(series.row, series.offset), gid=gid, **dots, **_look(series, size))
    fits = size * (ROW + SERIES * rows.lanes) * 0.8 / rows.lanes >= SMALL * size
    style = _style.text_style(SMALL * size, color=series.colour if rows.lanes > 1 else _style.MUTED)
    # said in the row, so that a missing estimate is not taken for a forgotten one
    for row in series.row[~np.isfinite(series.centre)] if fits else ():
        place: dict[str, Any] = {"transform": ax.get_yaxis_transform(), "ha": "left", "va": "center_baseline"}
        ax.text(0.01, rows.y(row, series.offset), "not estimable", **place, **style)


def _annotate(
    ax: Axes, text: str, at: tuple[float, float], shift: tuple[float, float], size: float, *, coords: Any, va: str
) -> None:
    if text:
        style = _style.text_style(SMALL * size, color=_style.MUTED, **_style.font_for([text]))
        place: dict[str, Any] = {"xycoords": coords, "textcoords": "offset points", "annotation_clip": False}
        ax.annotate(text, at, xytext=shift, ha="left", va=va, **place, **style)


_NARROWEST = 5.0  # font sizes of a column
_GAP = 1.2  # font sizes between columns
_SLACK = 1.1  # of the width of names, which hinting makes wider at low resolutions


def draw_columns(columns: Sequence[Rows], foot: Sequence[str], ax: Axes | None) -> Axes:
    """Draw columns with the same labels, a title above each, and sentences below all; they are ``ax.child_axes``."""
    count, fonts = len(columns[0].labels), list(_layout.fonts())
    if ax is None:  # with the largest font that leaves the most names whole
        inches = _canvas.figure_width()
        scratch = _canvas.scratch_axes(inches)
        cut: list[int] = []
        for font in fonts:
            *_, keyed = _columns_texts(scratch, columns, foot, 72.0 * inches, font)
            cut.append(keyed)
            if not keyed:
                break
        fonts = fonts[cut.index(min(cut)) :]
        font = fonts[0]
        *_, bottom, top, _ = _columns_texts(scratch, columns, foot, 72.0 * inches, font)
        room = 72.0 * _canvas.PAGE_HEIGHT - bottom - top
        pitch = max(min((ROW + SERIES) * font, room / count), TIGHT_ROW * _canvas.READABLE)
        ax = _canvas.new_axes(inches, (pitch * count + bottom + top) / 72)
    _canvas.bare(ax)
    size = _canvas.size_in_points(ax)
    for font in fonts:
        labels, titles, lines, left, width, bottom, top, _ = _columns_texts(ax, columns, foot, size[0], font)
        need, fits = TIGHT_ROW * font * count + bottom + top, width >= _NARROWEST * font
        if fits and need <= size[1] + 1e-6:
            break
    else:
        what = f"a plot of {count} rows in {len(columns)} columns"
        raise _canvas.too_small(ax, what, need if fits else None)
    for i, rows in enumerate(columns):
        place = Cell(left + i * (width + _GAP * font), bottom, width, size[1] - bottom - top)
        box = place.inset(ax, size)
        spill = (0.5 * _GAP * font, 0.5 * _GAP * font)
        _draw_panel(box, rows, labels if i == 0 else [""] * count, font, SMALL * font, width, spill)
        _style.literal(box.set_title(titles[i], loc="left", pad=0.5 * font, **_style.text_style(font)))
    words = _style.text_style(SMALL * font, color=_style.MUTED, ha="left", va="bottom", **_style.font_for(lines))
    for row, line in enumerate(reversed(lines)):
        y = (_canvas.PAD + row * LINE * SMALL * font) / size[1]
        ax.text(_canvas.PAD / size[0], y, line, transform=ax.transAxes, **words)
    return ax


def _columns_texts(
    ax: Axes, columns: Sequence[Rows], foot: Sequence[str], width: float, font: float
) -> tuple[list[str], list[str], list[str], float, float, float, float, int]:
    """At a font size: labels, titles, lines below; points left of the first column, of a column, below and above; and
    how many names are cut."""
    names = [_style.one_line(label) for label in columns[0].labels]
    ruler = _style.Ruler(ax, font, **_style.font_for(names))
    beside = 2.0 * _canvas.PAD + TICK_PAD + (0.5 - _GAP) * font
    rest = width - beside - len(columns) * (_NARROWEST + _GAP) * font
    labels, key = _names.fitted(names, min(LABEL_SHARE * width, max(rest / _SLACK, 4.0 * font)), ruler)
    left = _canvas.PAD + _SLACK * ruler.widest(labels) + TICK_PAD
    inner = width - left - _canvas.PAD - 0.5 * font
    each = max((inner - (len(columns) - 1) * _GAP * font) / len(columns), 0.0)
    plain = _style.Ruler(ax, font)
    above = [(rows.title,) for rows in columns]
    titles, more = _layout.titles_within(above, each + 0.5 * _GAP * font, 2, plain, 1 + len(key))
    small = _style.Ruler(ax, SMALL * font)
    lines = [
        part for text in (*foot, *key, *more) for part in _style.wrap(text, 0.95 * (width - 2 * _canvas.PAD), small)
    ]
    top = _canvas.PAD + (TITLE + LINE * (1 + any("\n" in title for title in titles))) * font
    bottom = _canvas.PAD + LINE * SMALL * font * len(lines) + TICKS * font
    return labels, titles, lines, left, each, bottom, top, len(key) + len(more)


def intervals(level: float, *, simultaneous: bool) -> str:
    """Intervals in words: simultaneous ones, or each on its own."""
    percent = _style.nobreak(f"{100 * level:g} %")
    return f"Simultaneous {percent} intervals" if simultaneous else f"Individual {percent} intervals"
