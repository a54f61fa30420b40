"""Line plots: a figure module says which curves, bands, panels and words there are, and the drawing is here.

The axes that are given hold the panels, ``ax.child_axes``, from the top left; legend, foot and the names of the shared
axes belong to the axes themselves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.transforms import ScaledTranslation

from lmemtest.core.arrays import Array, Mask
from lmemtest.core.rounding import tie_order
from lmemtest.core.validate import check_choice
from lmemtest.errors import ArgumentError
from lmemtest.plots import _canvas, _layout, _names, _style
from lmemtest.plots._layout import KEY_LINE, LEAD, LINE, SMALL, TICKS, TITLE, WORDS, Axis, Cell

MOST_BANDS = 5  # more bands over each other are mud
LOG_RATIO = 25.0  # of the last to the first budget, from which an axis is logarithmic
Y_SCALES = ("auto", "linear", "log")
LOG_SCORES = 5.0  # of the largest mean to the smallest, from which an axis of losses is logarithmic
LOG_AXIS = ", log scale"
# A filled piece of a row of a strip: from where to where, its look, a word in it.
Span = tuple[float, float, dict[str, Any], str]
_DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (5, 1.5, 1.2, 1.5)))  # 4 and 7 colours are coprime
_WIDEST_NAME, _WIDEST_LABEL = 0.3, 0.4  # of the width of a panel with its names, or with labels of its rows
_MOST_MARKERS, _FEW_MARKERS = 30, 15  # points with a marker each; of more points so many have one
_DODGE, _MOST_DODGE = 0.4, 0.15  # between curves side by side: font sizes, and share of the distance between points
_LEAST_WHOLE = 6.5  # points: below it larger titles without their middle are the lesser evil
_CUT = 0.7  # what cut titles cost, beside the logarithm of a bad aspect and twice the share that is cut
_FEW, _NARROWEST = 3, (2.2, 1.6)  # inches of one of few panels in a new figure, and of one of more
_PANEL, _ALONE = 105.0, 215.0  # points of a panel in a new figure: one of several, or the only one
_ROW, _FILLED, _GAP = 1.4, 0.62, 0.9  # of a strip: small font sizes of a row, share that is filled, fonts above it
_SAFE = 0.95  # of the width for lines of small text, which hinting makes up to 8 % wider at other resolutions
_WORDS_WIDE, _WORDS_HIGH = 0.15, 0.08  # of a panel: about what the words of a level take
_TRIVIAL = 0.35  # opacity of the grey where a band says nothing


def looks(places: Iterable[int], *, dashed: bool = False) -> list[dict[str, Any]]:
    """Colours and dashes: all colours in full lines, then dashed, ...; or `dashed` from the second on, for legends."""
    turns = [(i, i if dashed else i // len(_style.PALETTE)) for i in places]
    return [{"colour": _style.colour(i), "dash": _DASHES[turn % len(_DASHES)]} for i, turn in turns]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Curve:
    """A curve with its band."""

    x: Array  # (n,), like y and the band; NaN leaves a gap
    y: Array
    low: Array | None = None  # the band: an area, or a bar at each x with `bars`
    high: Array | None = None
    known: Mask | None = None  # where the band says something; elsewhere it is grey
    name: str = ""  # beside its right end or in the legend; empty for none
    whose: str = ""  # part it is, where it has no name
    colour: str = _style.ACCENT
    dash: Any = "-"
    marker: str = "none"
    size: float = 0.42  # of markers and `width` of the line, in font sizes; no line with a width of 0
    width: float = 0.16
    opacity: float = 0.18  # of the band
    bars: bool = False
    outlined: bool = False  # the band
    step: bool = False  # values hold up to the next x
    clip: bool = False  # the curve goes on beyond the panel
    label: str = "_curve"  # of the artists, as `band_label`; without a label no line is drawn
    band_label: str = "_band"
    front: int = 3  # what is drawn later

    @classmethod
    def of(
        cls,
        table: pd.DataFrame,
        x: Array,
        y: str,
        ends: tuple[str, str] | None = ("ci_low", "ci_high"),
        *,
        scale: float = 1.0,
        **style: Any,
    ) -> Curve:
        """Of a table with a column of values, and two of the ends of their band."""
        low, high = (None, None) if ends is None else (scale * table[end].to_numpy(dtype=float) for end in ends)
        return cls(x=x, y=scale * table[y].to_numpy(dtype=float), low=low, high=high, **style)

    def points(self) -> list[Array]:
        """All values that the panel must show."""
        if self.low is None or self.high is None:
            return [self.y]
        drawn = np.ones(len(self.x), dtype=bool) if self.known is None else self.known
        return [self.y, self.low[drawn], self.high[drawn]]

    def handle(self, font: float) -> Artist:
        """The entry of a legend."""
        if not self.label:
            return Patch(facecolor=self.colour, alpha=self.opacity, linewidth=0.0)
        line: Any = "none" if self.width == 0 else self.dash
        return Line2D(
            [], [], color=self.colour, linestyle=line, linewidth=max(self.width, 0.18) * font,
            marker=self.marker, markersize=self.size * font,
        )  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Level:
    """A line across the panel, with words above it at the left, or at the right where curves are in the way."""

    at: float
    words: str = ""
    colour: str = _style.INK
    dash: Any = "--"
    width: float = 0.09
    label: str = "_reference"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Panel:
    """What is in a panel; `title` in parts is a difference, and `draw` adds what is not a curve.

    `lanes` is the room below and above the values, in font sizes; `missing` says why there are no curves.
    """

    x: Axis
    y: Axis
    curves: tuple[Curve, ...] = ()
    levels: tuple[Level, ...] = ()
    title: tuple[str, ...] = ()
    lanes: tuple[float, float] = (0.0, 0.0)
    draw: Callable[[Axes, Cell, float], None] | None = None
    missing: str = ""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Lines:
    """Content of a line plot."""

    what: str  # for the message of axes that are too small
    panels: tuple[Panel, ...]
    x_label: str
    y_label: tuple[str, ...]  # from the longest to the shortest: the first that fits is written
    foot: str = ""  # below everything
    beside: bool = False  # whether curves are named beside their ends, else in a legend
    # further entries of the legend, with what makes their handle from a font size
    key: tuple[tuple[str, Callable[[float], Artist]], ...] = ()
    # rows below the only panel, over the same axis: name, its colour, pieces; and what stands in a row without any
    strip: tuple[tuple[str, str, tuple[Span, ...]], ...] = ()
    empty: str = ""
    shared: bool = False  # whether panels have the same vertical axis, so that only the first of a row has numbers
    guides: bool = True
    wide_first: bool = False  # whether the first panel has a row of its own
    dodge: bool = False  # whether curves stand side by side, so that their bars do not cover each other
    smallest: tuple[float, float] = (8.0, 4.5)  # of a panel, in font sizes

    def names(self) -> list[str]:
        """Names at the right."""
        curves = [curve.name for panel in self.panels for curve in panel.curves if self.beside]
        return list(dict.fromkeys(name for name in (*curves, *(name for name, *_ in self.strip)) if name))

    def most_names(self) -> int:
        return max(sum(bool(curve.name) for curve in panel.curves) for panel in self.panels) if self.beside else 0

    def entries(self) -> list[tuple[str, Callable[[float], Artist]]]:
        """Of the legend: every curve that has a name, once, and what else there is."""
        curves = {c.name: c.handle for panel in self.panels for c in panel.curves if c.name and not self.beside}
        return [*curves.items(), *self.key]


@dataclass(frozen=True, slots=True)
class _Plan:
    """The largest font that fits, and the places that follow."""

    lines: Lines
    font: float
    places: list[Cell]  # of the axes of each panel
    margins: tuple[float, float]  # left and right of each
    titles: list[str]
    names: dict[str, str]  # as they are written
    rows: dict[str, str]  # labels of a vertical axis of names, as they are written
    foot: list[str]
    words: tuple[list[str], list[str]]  # lines of the names of the horizontal and of the vertical axis
    key: tuple[list[str], int]  # names and columns of the legend
    area: Cell  # all panels with their margins
    strip: Cell | None
    lost: float  # share of the titles that is cut
    key_words: tuple[str, ...]  # what stands for names that are cut


def axis_around(curves: Sequence[Curve], **options: Any) -> Axis:
    """The vertical axis that holds curves, and their bands where these say something."""
    return Axis.around(np.concatenate([values for curve in curves for values in curve.points()]), **options)


def far_apart(curves: Sequence[Curve], ratio: float) -> bool:
    """Tell whether all that is drawn is above zero, and the largest value of a curve `ratio` times the smallest."""
    values = np.concatenate([points for curve in curves for points in curve.points()])
    means = np.concatenate([curve.y for curve in curves])
    means = means[np.isfinite(means)]
    return bool((values[np.isfinite(values)] > 0.0).all() and len(means) and means.max() >= ratio * means.min())


def on_log(curves: Sequence[Curve], direction: str, y_scale: str = "auto") -> bool:
    """Tell whether scores have a logarithmic axis: as asked for, or where a linear one would hide who is near the best.

    "auto" is logarithmic for losses that are `LOG_SCORES` apart or more, and above zero with their bands.
    """
    if check_choice(y_scale, "y_scale", Y_SCALES) == "log" and not far_apart(curves, 1.0):
        raise ArgumentError("y_scale='log' needs means and bands above zero. Use y_scale='linear'.")
    return y_scale == "log" or (y_scale == "auto" and direction == "minimize" and far_apart(curves, LOG_SCORES))


def mean_of(score: str, direction: str, *, log: bool = False) -> tuple[str, ...]:
    """The name of an axis of mean scores, from the longest to the shortest."""
    better = _style.BETTER[direction] + LOG_AXIS * log
    return f"Mean {score} ({better})", f"{score} ({better})", better


def spans_much(x: Array) -> bool:
    """Tell whether budgets span so much that their axis is logarithmic."""
    return bool(x.max() > LOG_RATIO * x.min() > 0.0)


def draw_lines(lines: Lines, ax: Axes | None, *, or_else: Lines | None = None, height: float | None = None) -> Axes:
    """Draw `lines`, `or_else` where they do not fit, in `ax` or in a new figure with panels of `height` points."""
    contents = (lines,) if or_else is None else (lines, or_else)
    if ax is None:
        ax = _canvas.new_axes(*_new_size(lines, height))
    _canvas.bare(ax)
    size = _canvas.size_in_points(ax)
    plan = _plan(ax, contents, size)
    lines = plan.lines
    small = SMALL * plan.font
    first_column = min(place.x for place in plan.places)
    for index, (panel, place) in enumerate(zip(lines.panels, plan.places, strict=True)):
        box = place.inset(ax, size)
        _layout.open_panel(box, small)
        spill = (plan.margins[0] or small, plan.margins[1] - 0.3 * small)
        _layout.set_along(box, panel.x, place.width, small, spill=spill, labels=plan.strip is None)
        y = _with_lanes(box, plan, panel, place, numbers=not lines.shared or place.x == first_column)
        for level in panel.levels:
            _draw_level(box, level, plan.font, right=_crossed_at_left(panel, level))
        shifts = _dodges(panel, place, plan.font) if lines.dodge else [0.0] * len(panel.curves)
        for curve, shift in zip(panel.curves, shifts, strict=True):
            whose = curve.name or curve.whose
            _draw_curve(box, curve, y, plan.font, shift, _style.part(*((whose,) if whose else panel.title)))
        if panel.draw is not None:
            panel.draw(box, place, plan.font)
        if panel.missing:
            box.set_xticks([])
            style = _style.text_style(small, color=_style.MUTED, ha="center", va="center")
            box.text(0.5, 0.5, panel.missing, transform=box.transAxes, **style)
        if lines.beside:
            _name_ends(box, panel, y, plan, place)
        if panel.title:
            style = _style.text_style(plan.font, linespacing=1.1, **_style.font_for([plan.titles[index]]))
            title = _style.literal(box.set_title(plan.titles[index], loc="left", pad=0.5 * plan.font, **style))
            title.set_gid(_style.part(*panel.title))
    if plan.strip is not None:
        _draw_strip(plan.strip.inset(ax, size), lines, plan, plan.strip)
    _write_words(ax, lines, plan, size)
    return ax


# ---------------------------------------------------------------------------------------------------- layout


def _new_size(lines: Lines, height: float | None) -> tuple[float, float]:
    """Inches of a new figure."""
    inches = _canvas.figure_width()
    font = _style.base_font()
    count = len(lines.panels) - (lines.wide_first and len(lines.panels) > 1)
    columns = min(count if count < 2 else 2 if count in (2, 4) else 3, max(int(inches / _NARROWEST[count > _FEW]), 1))
    rows = math.ceil(count / columns) + (count < len(lines.panels))
    panel = height or (_ALONE if len(lines.panels) == 1 else _PANEL)
    panel = max(panel, LINE * SMALL * font * lines.most_names())
    longest = max((len(_layout.MINUS.join(panel.title)) for panel in lines.panels), default=0)
    titles = (longest > 0) + (0.58 * longest * font > inches * 72 / columns)
    width = inches * 72
    ax, room = _canvas.scratch_axes(inches), width - 2 * _canvas.PAD
    entries = [_style.one_line(name) for name, _ in lines.entries()]
    ruler = _style.Ruler(ax, SMALL * font, **_style.font_for(entries))
    *_, key, cut = _layout.legend_rows(entries, room, ruler)
    beside = [_style.one_line(name) for name in lines.names()]
    cut += _names.fitted(beside, _WIDEST_NAME * room, _style.Ruler(ax, SMALL * font, **_style.font_for(beside)))[1]
    words_below = " ".join([lines.foot, *cut]).strip()
    foot = len(_style.wrap(words_below, _SAFE * room, ruler)) if words_below else 0
    words = LINE * SMALL * foot + KEY_LINE * SMALL * key + WORDS + 0.5
    strip = _ROW * SMALL * len(lines.strip) + _GAP * bool(lines.strip)
    head = TITLE * bool(titles) + LINE * titles + TICKS
    return inches, (rows * (panel + head * font) + (words + strip) * font + 3 * _canvas.PAD) / 72


def _plan(ax: Axes, contents: Sequence[Lines], size: tuple[float, float]) -> _Plan:
    """The plan with the largest font that leaves titles whole; else the largest."""
    with_cuts = None
    for font in _layout.fonts():
        if with_cuts is not None and font < _LEAST_WHOLE:
            break
        for lines in contents:
            plan = _plan_with(ax, lines, size, font)
            if plan is not None and plan.key_words:  # the key takes room, in which other names may fit
                plan = _plan_with(ax, lines, size, font, plan.key_words)
            if plan is not None and not plan.lost:
                return plan
            with_cuts = with_cuts or plan
    if with_cuts is None:
        raise _canvas.too_small(ax, contents[0].what)
    return with_cuts


def _plan_with(
    ax: Axes, lines: Lines, size: tuple[float, float], font: float, key_words: tuple[str, ...] = ()
) -> _Plan | None:
    small = _style.Ruler(ax, SMALL * font)
    room = size[0] - 2 * _canvas.PAD
    small_words = " ".join(filter(None, (_style.one_line(lines.foot) if lines.foot else "", *key_words)))
    foot = _style.wrap(small_words, _SAFE * room, small) if small_words else []
    entries = [_style.one_line(name) for name, _ in lines.entries()]
    ruler = _style.Ruler(ax, SMALL * font, **_style.font_for(entries))
    key_names, columns, key_rows, of_legend = _layout.legend_rows(entries, room, ruler)
    x_label = _style.one_line(lines.x_label) if lines.x_label else ""
    x_words = _style.wrap(x_label, room, _style.Ruler(ax, font, **_style.font_for([x_label])))
    below = _canvas.PAD + LINE * SMALL * font * len(foot) + 0.5 * _canvas.PAD
    below += (WORDS + LINE * (len(x_words) - 1)) * font if x_words else 0.0
    strip = _ROW * SMALL * font * len(lines.strip)
    above = _canvas.PAD + KEY_LINE * SMALL * font * key_rows
    y_labels = [_style.one_line(text) for text in lines.y_label]
    y_ruler = _style.Ruler(ax, font, **_style.font_for(y_labels))
    upwards = max(size[1] - below - above - font, font)
    y_label = next((text for text in y_labels if y_ruler.width(text) <= upwards), y_labels[-1])
    y_words = _style.wrap(y_label, upwards, y_ruler)
    x = _canvas.PAD + (WORDS + LINE * (len(y_words) - 1)) * font
    numbers = 0.0
    if lines.shared:  # which numbers there are depends on the height, which the arrangement decides
        heights = [(size[1] - below) / rows for rows in range(1, 3 * len(lines.panels) + 1)]
        numbers = max(_layout.room_for_numbers(lines.panels[0].y, height, small) for height in heights)
    lift = below + (strip + _GAP * font if lines.strip else 0.0)
    area = Cell(x + numbers, lift, size[0] - _canvas.PAD - x - numbers, size[1] - lift - above)
    names = lines.names()
    labels = {name: _style.one_line(name) for name in names}
    wide = _style.Ruler(ax, SMALL * font, **_style.font_for(list(labels.values())))
    titles = [tuple(map(_style.one_line, panel.title)) for panel in lines.panels]
    title_ruler = _style.Ruler(ax, font, **_style.font_for([part for parts in titles for part in parts]))
    has_titles = any(titles)

    def margins(cell: Cell, head: float) -> tuple[float, float, float, float]:
        lanes = max(sum(panel.lanes) for panel in lines.panels) * font
        inner = max(cell.height - (TICKS + head) * font - lanes, 1.0)
        left = 0.0 if lines.shared else max(_layout.room_for_numbers(p.y, inner, small) for p in lines.panels)
        if any(panel.y.every for panel in lines.panels):
            left = min(left, _WIDEST_LABEL * cell.width)
        gap = (1.6 if len(lines.panels) > 1 else 1.1) * font  # half a number at the end of the axis
        right = min(wide.widest(list(labels.values())), _WIDEST_NAME * cell.width) + LEAD * font if names else gap
        return left, TICKS * font, right, head * font

    best: tuple[float, _Plan] | None = None
    edges: dict[Cell, tuple[float, float]] = {}
    for title_lines in (1, 2) if has_titles else (0,):
        head = TITLE + LINE * title_lines if has_titles else 0.5

        def inside(cell: Cell, head: float = head) -> Cell | None:
            left, below_it, right, above_it = margins(cell, head)
            inner = cell.inside(left, below_it, right, above_it)
            edges[inner] = (left, right)
            least = max(lines.smallest[1] * font, LINE * SMALL * font * lines.most_names())
            if inner.width < lines.smallest[0] * font or inner.height < least:
                return None
            words = [p.x for p in lines.panels if p.x.every]
            return inner if all(len(x.ticked(inner.width, small)[1]) == len(x.labels) for x in words) else None

        layout = _layout.arrange(len(lines.panels), area, inside, wide_first=lines.wide_first)
        if layout is None:
            continue
        places, ugly = layout
        place = places[-1]  # of which there may be several in a row
        left, right = edges[place]
        written = [""] * len(places)
        of_titles: list[str] = []
        if has_titles:
            narrow = place.width + 0.8 * right
            written, of_titles = _layout.titles_within(titles, narrow, title_lines, title_ruler, 1 + len(of_legend))
        whole = sum(len(_layout.MINUS.join(parts)) for parts in titles)
        cut = sum("…" in text and "…" not in "".join(parts) for text, parts in zip(written, titles, strict=True))
        lost = max(1.0 - sum(len(text.replace("…", "")) for text in written) / whole, 1e-9) if cut else 0.0
        cost = ugly + (_CUT + 2.0 * lost if lost else 0.0)
        if best is not None and cost >= best[0]:
            continue
        begin = 1 + len(of_legend) + len(of_titles)
        room_beside = right - LEAD * font + 0.01
        if wide.widest(list(labels.values())) > room_beside:
            room_beside /= _layout.FOLDED
        short, of_names = _names.fitted(list(labels.values()), room_beside, wide, first=begin)
        names_shown = dict(zip(names, short, strict=True))
        rows_named = list(dict.fromkeys(label for panel in lines.panels if panel.y.every for label in panel.y.labels))
        row_ruler = _style.Ruler(ax, SMALL * font, **_style.font_for(rows_named))
        row_names, of_rows = _names.fitted(rows_named, left - 0.9 * row_ruler.size, row_ruler, 2, begin + len(of_names))
        rows_shown = dict(zip(rows_named, row_names, strict=True))
        rows = Cell(place.x, below + TICKS * font, place.width, strip) if lines.strip else None
        key = (key_names, columns)
        explained = (*of_legend, *of_titles, *of_names, *of_rows)
        margin, words = (left, right), (x_words, y_words)
        best = (
            cost,
            _Plan(
                lines,
                font,
                places,
                margin,
                written,
                names_shown,
                rows_shown,
                foot,
                words,
                key,
                area,
                rows,
                lost,
                explained,
            ),
        )
    return None if best is None else best[1]


def _with_lanes(box: Axes, plan: _Plan, panel: Panel, place: Cell, *, numbers: bool) -> Axis:
    """Ticks on the vertical axis, whose limits leave lanes below and above the values."""
    bottom, top = (lane * plan.font for lane in panel.lanes)
    room = place.height - bottom - top
    shown = replace(panel.y, labels=tuple(plan.rows[label] for label in panel.y.labels)) if panel.y.every else panel.y
    _layout.set_upwards(box, shown, room, SMALL * plan.font, guides=plan.lines.guides, labels=numbers)
    unit = (panel.y.limits[1] - panel.y.limits[0]) / room
    y = replace(panel.y, limits=(panel.y.limits[0] - bottom * unit, panel.y.limits[1] + top * unit))
    box.set_ylim(*y.limits)
    return y


def _dodges(panel: Panel, place: Cell, font: float) -> list[float]:
    """Points by which curves are moved sideways."""
    values = panel.x.share(np.unique(np.concatenate([curve.x for curve in panel.curves]))) * place.width
    count = len(panel.curves)
    gap = float(np.diff(values).min()) if len(values) > 1 and count > 1 else math.inf
    step = min(_DODGE * font, _MOST_DODGE * gap / max(count - 1, 1))
    return [(i - 0.5 * (count - 1)) * step for i in range(count)]


# ---------------------------------------------------------------------------------------------------- drawing


def _crossed_at_left(panel: Panel, level: Level) -> bool:
    """Whether curves are in the way of the words of a level at its left end, and fewer of them at its right."""
    low, high = panel.y.limits
    near = [0, 0]
    for curve in panel.curves:
        at, away = panel.x.share(curve.x), (curve.y - level.at) / (high - low)
        close = (away > -0.02) & (away < _WORDS_HIGH)
        rises = np.flatnonzero(np.diff(np.sign(away), append=np.sign(away[-1:])) != 0.0)  # between two points
        for end, there in enumerate((at <= _WORDS_WIDE, at >= 1.0 - _WORDS_WIDE)):
            near[end] += bool((close & there).any() or there[rises].any())
    return near[1] < near[0]


def _draw_level(box: Axes, level: Level, font: float, *, right: bool) -> None:
    style = {"color": level.colour, "linewidth": level.width * font, "linestyle": level.dash}
    box.axhline(level.at, zorder=1, label=level.label, **style)
    if level.words:
        place: dict[str, Any] = {"xycoords": box.get_yaxis_transform(), "textcoords": "offset points"}
        words = _style.text_style(SMALL * font, color=_style.MUTED, ha="right" if right else "left", va="bottom")
        shift = ((-0.3 if right else 0.3) * font, 0.15 * font)
        box.annotate(level.words, (float(right), level.at), xytext=shift, **place, **words)


def _draw_curve(box: Axes, curve: Curve, y: Axis, font: float, shift: float, part: str) -> None:
    moved = box.transData + ScaledTranslation(shift / 72, 0.0, box.figure.dpi_scale_trans) if shift else box.transData
    if curve.low is not None and curve.high is not None:
        _draw_band(box, curve, [curve.low, curve.high], y, font, moved, part)
    count = len(curve.x)
    if curve.label == "" or count == 0:
        return
    few = np.unique(np.linspace(0, count - 1, min(count, _FEW_MARKERS)).round().astype(np.intp))
    box.plot(
        curve.x,
        curve.y,
        color=curve.colour,
        linestyle=curve.dash if curve.width else "none",
        linewidth=curve.width * font,
        drawstyle="steps-post" if curve.step else "default",
        marker=curve.marker,
        markevery=few.tolist() if curve.width and count > _MOST_MARKERS else None,
        markersize=curve.size * font,
        markeredgewidth=0.0,
        transform=moved,
        clip_on=curve.clip,
        label=curve.label,
        gid=part,
        zorder=curve.front,
    )


def _draw_band(box: Axes, curve: Curve, band: list[Array], y: Axis, font: float, moved: Any, part: str) -> None:
    """Coloured where the band says something, grey elsewhere up to the last coloured point; or bars."""
    bottom, top = sorted(y.limits)
    low, high = (np.clip(end, 2 * bottom - top, 2 * top - bottom) for end in band)
    colour, drawn = curve.colour, curve.known
    if curve.bars:
        for x, start, end in zip(curve.x, low, high, strict=True):
            if math.isfinite(start) and math.isfinite(end):
                bar: dict[str, Any] = {"linewidth": 0.16 * font, "linestyle": "-", "marker": "none", "zorder": 2}
                bar |= {"solid_capstyle": "butt", "alpha": curve.opacity, "transform": moved, "gid": part}
                box.plot([x, x], [start, end], color=colour, label=curve.band_label, **bar)
        return
    drawn = np.ones(len(curve.x), dtype=bool) if drawn is None else drawn
    grey = ~drawn
    grey[1:] |= ~drawn[:-1]
    grey[:-1] |= ~drawn[1:]
    for where, paint, opacity, label in (
        (grey, _style.FAINT, _TRIVIAL, "_trivial"),
        (drawn, colour, curve.opacity, curve.band_label),
    ):
        if where.any():
            step: Any = "post" if curve.step else None
            area = box.fill_between(curve.x, low, high, where=where.tolist(), step=step, color=paint, alpha=opacity)
            area.set(linewidth=0.0, label=label, gid=part, zorder=2 if label == curve.band_label else 1)
    for limit in (low, high) if curve.outlined else ():
        edge = {"color": colour, "linestyle": curve.dash, "linewidth": 0.09 * font, "gid": part}
        box.plot(curve.x, np.where(drawn, limit, np.nan), label="_limit", zorder=2, **edge)


def _name_ends(box: Axes, panel: Panel, y: Axis, plan: _Plan, place: Cell) -> None:
    """Names beside the right edge, in the order of the ends of their curves, each with a line from its end."""
    size = SMALL * plan.font
    named = [curve for curve in panel.curves if curve.name]
    ends = []
    for curve in named:
        finite = np.flatnonzero(np.isfinite(curve.y))
        last = finite[-1] if len(finite) else -1
        ends.append((float(panel.x.share(curve.x[last])), float(y.share(curve.y[last])) if len(finite) else 0.0))
    order = tie_order([end[1] for end in ends])
    top = place.height - 0.5 * LINE * size * bool(panel.title)  # below a title, which may be wider than the panel
    heights = _layout.spread([ends[i][1] * place.height for i in order], LINE * size, (0.0, top))
    font = _style.font_for(list(plan.names.values()))
    farthest = max((end[0] for end in ends), default=1.0)
    edge = 1.0 + 0.8 * LEAD * size / place.width
    for i, height in zip(order, heights, strict=True):
        style = _style.text_style(size, color=_style.as_text(named[i].colour), ha="left", va="center", **font)
        part = _style.part(named[i].name)
        text, at = plan.names[named[i].name], edge + 0.2 * size / place.width
        box.text(at, height / place.height, text, transform=box.transAxes, gid=part, **style)
        (start, level), target = ends[i], height / place.height
        early = start < farthest - 1e-9  # straight to the edge first: a slanted line would look like a curve
        box.plot(
            [start, farthest, edge] if early else [start, edge],
            [level, level, target] if early else [level, target],
            transform=box.transAxes,
            color=named[i].colour,
            linewidth=0.06 * size,
            linestyle=(0, (1.0, 3.0)) if early else "-",
            marker="none",
            clip_on=False,
            label="_lead",
            gid=part,
        )


def _draw_strip(box: Axes, lines: Lines, plan: _Plan, place: Cell) -> None:
    """Rows of pieces over the axis of the panel above."""
    size = SMALL * plan.font
    axis, count = lines.panels[0].x, len(lines.strip)
    _layout.open_panel(box, size, edges=("bottom",))
    box.set_yticks([])
    _layout.set_along(box, axis, place.width, size, spill=(plan.margins[0], plan.margins[1] - 0.3 * size))
    box.set_ylim(count, 0.0)
    font = _style.font_for(list(plan.names.values()))
    for row, (name, colour, spans) in enumerate(lines.strip):
        middle = row + 0.5
        box.axhline(middle, color=_style.FAINT, linewidth=0.06 * plan.font, zorder=0.5, label="_guide")
        for start, end, fill, word in spans:
            height = (middle - _FILLED / 2.0, middle + _FILLED / 2.0) if count > 1 else (0.0, 1.0)
            style: dict[str, Any] = {"linewidth": 0.0, "gid": _style.part(name)} | fill
            box.fill_between([start, end], *height, zorder=2, **style)
            low, high = axis.share([start, end])
            ruler = _style.Ruler(box, size)
            if word and ruler.width(word) <= 0.9 * (high - low) * place.width:
                ground = _style.over_white(fill.get("color", fill.get("facecolor", colour)), fill.get("alpha", 1.0))
                words = _style.text_style(size, color=str(_style.ink_on(ground)), ha="center", va="center")
                box.text((low + high) / 2.0, 1.0 - middle / count, word, transform=box.transAxes, **words)
        if lines.empty and not spans:
            words = _style.text_style(size, color=_style.MUTED, ha="center", va="center", backgroundcolor="white")
            box.text(0.5, 1.0 - middle / count, lines.empty, transform=box.transAxes, **words)
        if name:
            x = 1.0 + (0.8 * LEAD + 0.2) * size / place.width
            words = _style.text_style(size, color=_style.as_text(colour), ha="left", va="center", **font)
            box.text(x, 1.0 - middle / count, plan.names[name], transform=box.transAxes, gid=_style.part(name), **words)


def _write_words(ax: Axes, lines: Lines, plan: _Plan, size: tuple[float, float]) -> None:
    """The foot, the names of the axes, and the legend."""
    font, pad = plan.font, _canvas.PAD

    def write(x: float, y: float, text: str, size_of_text: float, **style: Any) -> None:
        style = _style.text_style(size_of_text, **_style.font_for([text]), **style)
        ax.text(x / size[0], y / size[1], text, transform=ax.transAxes, **style)

    for row, line in enumerate(plan.foot, 1 - len(plan.foot)):
        y = pad - row * LINE * SMALL * font
        write(pad, y, line, SMALL * font, color=_style.MUTED, ha="left", va="bottom")
    bottom = pad + LINE * SMALL * font * len(plan.foot) + 0.2 * font
    x_words, y_words = plan.words
    if x_words:  # centred below the panels, as far as the figure has room
        half = _style.Ruler(ax, font, **_style.font_for(x_words)).widest(x_words) / 2.0
        middle = (min(p.x for p in plan.places) + max(p.x + p.width for p in plan.places)) / 2.0
        middle = max(min(middle, size[0] - pad - half), pad + half)
        write(middle, bottom, "\n".join(x_words), font, ha="center", va="bottom", linespacing=1.15)
    half = _style.Ruler(ax, font, **_style.font_for(y_words)).widest(y_words) / 2.0
    low, high = min(place.y for place in plan.places), max(place.top for place in plan.places)
    if 2.0 * half > high - low:
        low, high = (bottom + font if plan.foot else pad), plan.area.top
    write(pad + 0.6 * font * len(y_words), (low + high) / 2.0, "\n".join(y_words), font,
          ha="center", va="center", rotation=90, linespacing=1.15)  # fmt: skip
    if entries := lines.entries():
        place: dict[str, Any] = {"loc": "upper left", "borderaxespad": 0.0}
        place |= {"bbox_to_anchor": (pad / size[0], 1.0 - 0.7 * pad / size[1])}
        handles = [make(SMALL * font) for _, make in entries]
        _layout.draw_legend(ax, handles, *plan.key, SMALL * font, of=[name for name, _ in entries], **place)
