"""The layout of figures in points: fonts to try, panels, axes with their ticks, titles, and words around them.

A figure is planned before it is drawn: for fonts from the largest to the smallest, is there room for every text and for
panels that can be read? The first plan that fits is drawn, and nothing is moved afterwards.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator, NullFormatter, NullLocator
from numpy.typing import ArrayLike

from lmemtest.core.arrays import Array
from lmemtest.plots import _canvas, _names, _style

LINE = 1.3  # font sizes from one line of words to the next
SMALL = 0.85  # size of secondary text
KEY_LINE = 1.5  # small font sizes of a line of a legend
TICKS, WORDS, TITLE = 1.8, 1.5, 0.7  # room for numbers below an axis, its name, and a title beside its lines
TICK_PAD = 3.0  # points from ticks to their labels
LEAD = 1.2  # font sizes from the axes to names beside curves
PAD = 0.04  # of the range of an axis, beyond what is drawn
MINUS = " − "
_ASPECT = 1.4  # width over height of a panel that reads well
_AIR = 0.6  # font sizes between tick labels
FOLDED = 1.05  # of the width of parts of names, which hinting makes wider at some resolutions
_STEP = 0.25  # points by which fonts shrink until everything fits
_FEW_NAMES = 6  # of a legend: of more, none takes more than half a line
_MOST_TICKS = 9
MOST_LABELLED = 12  # budgets that are ticks by themselves; more would not be round numbers


@dataclass(frozen=True, slots=True)
class Cell:
    """A rectangle in points, from the lower left corner of the axes."""

    x: float
    y: float
    width: float
    height: float

    @property
    def top(self) -> float:
        return self.y + self.height

    def inside(self, left: float, bottom: float, right: float, top: float) -> Cell:
        """What margins leave."""
        return Cell(self.x + left, self.y + bottom, self.width - left - right, self.height - bottom - top)

    def inset(self, ax: Axes, size: tuple[float, float]) -> Axes:
        """New axes at this place within `ax`, which is `size` points."""
        return ax.inset_axes((self.x / size[0], self.y / size[1], self.width / size[0], self.height / size[1]))


def fonts() -> Iterator[float]:
    """Font sizes to try, from the largest."""
    size = _style.base_font()
    least = min(_canvas.least_font(), size)
    while size > least:
        yield size
        size -= _STEP
    yield least


def fonts_and_lines(most: int = 2) -> Iterator[tuple[float, int]]:
    """Font sizes, and on how many lines names may be; in axes of the user names are shortened where that fails."""
    yield from ((font, lines) for font in fonts() for lines in range(most, 0, -1))
    if _canvas.least_font() < _canvas.READABLE:
        yield from ((font, 0) for font in fonts())


# ---------------------------------------------------------------------------------------------------- panels


def arrange(
    count: int, area: Cell, inside: Callable[[Cell], Cell | None], *, wide_first: bool = False
) -> tuple[list[Cell], float] | None:
    """Places of `count` panels in the arrangement that looks best, and how bad it looks; None where none fits.

    `inside` is the place of a panel in a cell, None if it cannot be drawn there; with `wide_first` the first panel has
    a row of its own.
    """
    best, least = None, math.inf
    rest = count - 1 if wide_first and count > 1 else count
    for columns in range(1, rest + 1):
        rows = [1] * (rest < count) + [columns] * math.ceil(rest / columns)
        height = area.height / len(rows)
        cells = [
            Cell(area.x + i * area.width / n, area.top - (row + 1) * height, area.width / n, height)
            for row, n in enumerate(rows)
            for i in range(n)
        ][:count]
        places = [place for place in map(inside, cells) if place is not None]
        if len(places) == count:
            ugly = abs(math.log(places[-1].width / places[-1].height / _ASPECT)) + (sum(rows) - count) / count
            if ugly < least:
                best, least = places, ugly
    return None if best is None else (best, least)


def titles_within(
    titles: Sequence[tuple[str, ...]], room: float, lines: int, ruler: _style.Ruler, first: int = 1
) -> tuple[list[str], list[str]]:
    """Titles of one line, or up to two, of `room` points, the names of a difference each on one; and the key."""
    names = [MINUS.join(parts) for parts in titles]
    if ruler.widest(names) <= room:
        return names, []
    if not any(len(parts) > 1 for parts in titles):
        return _names.fitted(names, room / FOLDED, ruler, lines, first)
    between = f"\n{MINUS.strip()} " if lines == 2 else MINUS
    beside = ruler.width(between.split("\n")[-1])
    each = room - beside if lines == 2 else (room - beside) / 2.0
    parts = list(dict.fromkeys(part for title in titles for part in title))
    short, key = _names.fitted(parts, each, ruler, first=first)
    label = dict(zip(parts, short, strict=True))
    return [
        whole if ruler.width(whole) <= room else between.join(label[part] for part in title)
        for whole, title in zip(names, titles, strict=True)
    ], key


# ---------------------------------------------------------------------------------------------------- axes


def choose_ticks(
    low: float,
    high: float,
    room: float,
    ruler: _style.Ruler,
    *,
    cover: bool,
    whole: bool = False,
    upwards: bool = False,
) -> tuple[tuple[float, ...], list[str]]:
    """Round ticks for an axis of `room` points, which enclose the range (`cover`) or lie inside it, and their labels.

    With `whole` the axis counts something, and only whole numbers are ticks; along an axis `upwards` each label takes a
    line with air around it.
    """
    slack = 1e-9 * (high - low)
    for bins in range(_MOST_TICKS, 0, -1):
        locator = MaxNLocator(nbins=bins, steps=[1, 2, 2.5, 5, 10], min_n_ticks=2 if bins > 1 else 1, integer=whole)
        values = np.asarray(locator.tick_values(low, high), dtype=float)
        if whole:  # the locator gives up whole numbers where the range holds too few of them
            values = np.unique(values.round())
        if cover:
            below, above = np.flatnonzero(values <= low + slack), np.flatnonzero(values >= high - slack)
            values = values[below[-1] if below.size else 0 : above[0] + 1 if above.size else None]
        else:
            values = values[(values >= low - slack) & (values <= high + slack)]
        if values.size == 0:
            break
        labels = _style.tick_labels(values.tolist())
        start, end = min(low, values[0]), max(high, values[-1])
        places = (values - start) / (end - start) * room
        half = np.array(_extents(labels, ruler, upwards=upwards)) / 2.0
        if ((places - half)[1:] - (places + half)[:-1] > ruler.size / 2).all():
            return tuple(values.tolist()), labels
    middle = (low + high) / 2.0
    nearest = float(np.round(middle))
    ends = (float(low), float(high)) if cover else (nearest if whole and low <= nearest <= high else middle,)
    return ends, _style.tick_labels(ends)


def _extents(labels: Sequence[str], ruler: _style.Ruler, *, upwards: bool) -> list[float]:
    """Points that labels take along their axis."""
    return [1.8 * ruler.size if upwards else ruler.width(label) for label in labels]


def all_whole(values: ArrayLike) -> bool:
    """Tell whether `values` (budgets, say) are counts, so that ticks between whole numbers would name nothing.

    >>> all_whole([1, 3, 9.0]), all_whole([0.5, 1.0])
    (True, False)
    """
    numbers = np.asarray(values, dtype=float)
    return bool((numbers == np.round(numbers)).all())


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Axis:
    """An axis: from its first end to its last (which may be the smaller one), and where its ticks are."""

    limits: tuple[float, float]
    log: bool = False
    root: bool = False  # lengths are square roots: small and large ratios of variances can be read on one axis
    # values to label, as many as do not touch and the last for sure; None for round numbers
    ticks: Array | None = None
    labels: tuple[str, ...] = ()  # of `ticks`; empty for the numbers themselves
    small: Array | None = None  # where ticks without labels are
    whole: bool = False  # round numbers are whole, because the axis counts something
    every: bool = False  # all labels must be shown

    @classmethod
    def around(cls, values: Array, *, log: bool = False, pad: float = PAD, **options: Any) -> Axis:
        """From the smallest of the finite values to the largest, and a little more."""
        values = values[np.isfinite(values)]
        low, high = (float(values.min()), float(values.max())) if len(values) else (0.0, 1.0)
        if log and high > low:
            return cls(limits=(low / (high / low) ** pad, high * (high / low) ** pad), log=True, **options)
        spread = high - low if high - low > 1e-12 * max(abs(low), abs(high)) else 0.1 * max(abs(low), 1.0) / pad
        return cls(limits=(low - pad * spread, high + pad * spread), **options)

    @classmethod
    def of_names(cls, names: Sequence[Any]) -> tuple[Axis, Array]:
        """An axis of names, and their places."""
        places = np.arange(len(names), dtype=float)
        return cls.around(places, ticks=places, labels=tuple(map(_style.one_line, names))), places

    def share(self, values: Any) -> Any:
        """Places of values as shares of the axis."""
        low, high = self.limits
        at = np.asarray(values, dtype=float)
        if self.root:
            low, high, at = (signed_root(value) for value in (low, high, at))
        return np.log(at / low) / np.log(high / low) if self.log else (at - low) / (high - low)

    def ticked(self, room: float, ruler: _style.Ruler, *, upwards: bool = False) -> tuple[Array, list[str]]:
        """Ticks on `room` points with labels that do not touch."""
        low, high = sorted(self.limits)
        values, labels = self.ticks, list(self.labels)
        if values is None and self.root:
            ends = float(signed_root(low)), float(signed_root(high))
            ticks, _ = choose_ticks(*ends, room, ruler, cover=False, upwards=upwards)
            values = signed_square(np.array(ticks)).round(12)
        elif values is None and not self.log:
            ticks, labels = choose_ticks(low, high, room, ruler, cover=False, whole=self.whole, upwards=upwards)
            values = np.array(ticks)
            if len(values) < 2 and not self.whole:  # one number is no scale: the farthest two round ones
                farthest = np.array(MaxNLocator(nbins=5, steps=[1, 2, 5, 10]).tick_values(low, high))
                inside = farthest[(farthest >= low) & (farthest <= high)][[0, -1]] if len(farthest) else farthest
                names = _style.tick_labels(inside.tolist())
                widest = max(_extents(names, ruler, upwards=upwards), default=0.0)
                if abs(float(np.ptp(self.share(inside)))) * room >= 0.75 * widest > 0.0:
                    return inside, names
            return values, labels
        if values is None:
            values = round_numbers(low, high)
            if len(values) < 2:  # there are none between 21 and 49
                few, _ = choose_ticks(low, high, room, ruler, cover=False, whole=self.whole, upwards=upwards)
                values = np.array(few) if self.small is None else self.small
        labels = labels or [f"{value:g}" for value in values]
        where = np.abs(self.share(values)) * room
        kept = apart(where, _extents(labels, ruler, upwards=upwards), ruler.size)
        if self.every and upwards:
            kept = list(range(len(labels)))
        return values[kept], [labels[i] for i in kept]


def signed_root(values: Any) -> Any:
    """Square root that keeps the sign."""
    return np.sign(values) * np.sqrt(np.abs(values))


def signed_square(values: Any) -> Any:
    """Its inverse."""
    return np.sign(values) * np.square(values)


def round_numbers(low: float, high: float) -> Array:
    """1, 2, 5, 10, ... between two limits: only powers of ten where these are many."""
    decades = 10.0 ** np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
    values = (decades[:, None] * np.array([1.0, 2.0, 5.0])).ravel()
    values = values[(values >= low) & (values <= high)]
    powers = decades[(decades >= low) & (decades <= high)]
    return powers if len(powers) > 3 else values


def apart(where: Array, widths: Sequence[float], size: float) -> list[int]:
    """Every, every second, ... label from the last, so that neighbours do not touch."""
    for stride in range(1, len(where) + 1):
        kept = list(range(len(where) - 1, -1, -stride))[::-1]
        gaps = [abs(where[b] - where[a]) - 0.5 * (widths[a] + widths[b]) for a, b in pairwise(kept)]
        if all(gap >= _AIR * size for gap in gaps):
            return kept
    return [len(where) - 1]


def open_panel(box: Axes, size: float, *, edges: Sequence[str] = ("bottom", "left")) -> None:
    """Some edges, with ticks where they are, and no other decoration, whatever the user's style sheet says."""
    box.set_facecolor("none")
    box.grid(False)
    box.margins(0)
    for side, spine in box.spines.items():
        spine.set_visible(side in edges)
        spine.set(color=_style.MUTED, linewidth=0.8)
    box.tick_params(which="minor", bottom=False, top=False, left=False, right=False)
    style: dict[str, Any] = {"color": _style.MUTED, "labelcolor": _style.INK, "labelsize": size, "width": 0.8}
    ends: dict[str, Any] = {"top": False, "right": False, "labeltop": False, "labelright": False, "labelbottom": True}
    box.tick_params(direction="out", pad=TICK_PAD, labelleft=True, **ends, **style)
    box.tick_params(axis="x", bottom="bottom" in edges, length=3.0 * ("bottom" in edges))
    box.tick_params(axis="y", left="left" in edges, length=3.0 * ("left" in edges))


def set_along(
    box: Axes, axis: Axis, room: float, size: float, *, spill: tuple[float, float] = (99.0, 99.0), labels: bool = True
) -> None:
    """Ticks on the horizontal axis of `room` points; labels reach at most `spill` points beyond its ends."""
    if axis.log:
        box.set_xscale("log")
    elif axis.root:
        box.set_xscale("function", functions=(signed_root, signed_square))
    box.xaxis.set_minor_locator(NullLocator())
    box.xaxis.set_minor_formatter(NullFormatter())
    font = _style.font_for(axis.labels)
    ruler = _style.Ruler(box, size, **font)
    values, words = axis.ticked(room, ruler)
    place = axis.share(values) * room
    half = np.array([ruler.width(word) for word in words]) / 2.0
    kept = np.flatnonzero((place - half >= -spill[0]) & (place + half <= room + spill[1]))
    box.set_xticks(values[kept], [words[i] if labels else "" for i in kept], **_style.text_style(size, **font))
    box.tick_params(axis="x", which="major", length=0.4 * size, pad=0.3 * size)
    if axis.small is not None:
        box.set_xticks(axis.small, minor=True)
        short = {"length": 0.25 * size, "width": 0.6, "color": _style.MUTED, "direction": "out"}
        box.tick_params(axis="x", which="minor", bottom=True, **short)
    box.set_xlim(*axis.limits)


def set_upwards(
    box: Axes,
    axis: Axis,
    room: float,
    size: float,
    *,
    guides: bool = True,
    labels: bool = True,
) -> None:
    """Ticks on the vertical axis of `room` points, with faint lines."""
    if axis.log:
        box.set_yscale("log")
        box.yaxis.set_minor_locator(NullLocator())
    font = _style.font_for(axis.labels)
    ruler = _style.Ruler(box, size, **font)
    values, words = axis.ticked(room, ruler, upwards=True)
    box.set_yticks(values, words if labels else [""] * len(words), **_style.text_style(size, **font))
    box.set_ylim(*axis.limits)
    for label in box.get_yticklabels():
        _style.literal(label).set(va="center", linespacing=1.05)
    for value in values if guides else ():
        box.axhline(value, color=_style.FAINT, linewidth=0.6, linestyle="-", zorder=0.5, label="_guide")


def room_for_numbers(axis: Axis, room: float, ruler: _style.Ruler) -> float:
    """Width of the tick labels of a vertical axis of `room` points, with the ticks."""
    return ruler.widest(axis.ticked(room, ruler, upwards=True)[1]) + 0.9 * ruler.size


# ---------------------------------------------------------------------------------------------------- legends


def legend_columns(widths: Sequence[float], room: float, size: float) -> int:
    """Return the most columns that fit; matplotlib fills them one after another, the first ones longest."""
    for columns in range(len(widths), 1, -1):
        stacked = [float(max(part)) for part in np.array_split(np.asarray(widths), columns)]
        if sum(stacked) + (columns * 2.3 + (columns - 1) * 1.5) * size <= room:
            return -(-len(widths) // -(-len(widths) // columns))  # the fewest of as many rows
    return 1


def legend_rows(
    names: Sequence[str], room: float, ruler: _style.Ruler, first: int = 1
) -> tuple[list[str], int, int, list[str]]:
    """Names of a legend as far as they fit, its columns and its rows, and the key to names that do not."""
    half = 0.45 if len(names) > _FEW_NAMES else 1.0
    names, key = _names.fitted(names, max(half * room - 4 * ruler.size, 4 * ruler.size), ruler, 2, first)
    columns = legend_columns([ruler.width(name) for name in names], room, ruler.size)
    rows = -(-len(names) // columns) if names else 0
    return names, columns, rows + min(rows, sum("\n" in name for name in names)), key


def draw_legend(
    ax: Axes,
    handles: Sequence[Artist],
    names: Sequence[str],
    columns: int,
    size: float,
    *,
    of: Sequence[str] = (),
    **place: Any,
) -> None:
    """A legend without frame, whose entries are parts `of` something, and have its name or what is written for it.

    Names are set afterwards, because one that starts with an underscore would be dropped.
    """
    legend = ax.legend(
        handles=handles,
        labels=[str(i) for i in range(len(names))],
        ncols=columns,
        frameon=False,
        fontsize=size,
        borderpad=0.0,
        handlelength=1.6,
        handleheight=0.7,
        handletextpad=0.5,
        columnspacing=1.5,
        labelspacing=0.35,
        **place,
    )
    for entry, name in zip(legend.get_texts(), names, strict=True):
        _style.literal(entry).set(text=name, color=_style.INK, **_style.font_for(names))
    for whole, entry, handle in zip(of, legend.get_texts(), legend.legend_handles, strict=False):
        for artist in filter(None, (entry, handle)):
            artist.set_gid(_style.part(whole))


# ---------------------------------------------------------------------------------------------------- beside points


def spread(places: Sequence[float], gap: float, limits: tuple[float, float]) -> tuple[float, ...]:
    """Move ascending places as little as possible (in squares) so that neighbours are `gap` apart.

    With z = place - index * gap this is isotonic regression: pool adjacent violators, then clip. Where the limits do
    not hold all places, the gap gives way.

    >>> spread([20.0, 89.0, 90.0], 5.0, (0.0, 100.0)), spread([100.0, 100.0], 5.0, (0.0, 100.0))
    ((20.0, 87.0, 92.0), (95.0, 100.0))
    """
    count = len(places)
    gap = min(gap, (limits[1] - limits[0]) / max(count - 1, 1))
    pools: list[list[float]] = []  # (mean, size)
    for index, place in enumerate(places):
        pools.append([place - index * gap, 1])
        while len(pools) > 1 and pools[-2][0] >= pools[-1][0]:
            mean, size = pools.pop()
            total = pools[-1][1] + size
            pools[-1] = [(pools[-1][0] * pools[-1][1] + mean * size) / total, total]
    pooled = np.repeat([pool[0] for pool in pools], [int(pool[1]) for pool in pools])
    clipped = np.clip(pooled, limits[0], limits[1] - (count - 1) * gap)
    return tuple((clipped + gap * np.arange(count)).tolist())
