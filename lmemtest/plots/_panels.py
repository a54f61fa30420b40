"""Panels: where small plots of one kind go in a rectangle, and what they share (ticks, words, names beside curves)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.ticker import NullFormatter, NullLocator

from lmemtest.plots import _canvas, _style
from lmemtest.plots._lines import round_numbers

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]

LINE = 1.3  # font sizes from one line of words to the next
SMALL = 0.85  # size of secondary text
_ASPECT = 1.5  # width over height of a panel that reads well
_AIR = 0.6  # font sizes between tick labels
_STEP = 0.25  # points by which fonts shrink until everything fits


@dataclass(frozen=True, slots=True)
class Cell:
    """A rectangle in points, from the lower left corner of the axes."""

    x: float
    y: float
    width: float
    height: float

    def inside(self, left: float, bottom: float, right: float, top: float) -> Cell:
        """What margins leave."""
        return Cell(self.x + left, self.y + bottom, self.width - left - right, self.height - bottom - top)

    def inset(self, ax: Axes, size: tuple[float, float]) -> Axes:
        """New axes at this place within `ax`, which is `size` points."""
        return ax.inset_axes((self.x / size[0], self.y / size[1], self.width / size[0], self.height / size[1]))


def arrange(count: int, area: Cell, fits: Callable[[Cell], bool], *, wide_first: bool = False) -> list[Cell] | None:
    """Cells for `count` panels in the arrangement that looks best; None where no arrangement fits.

    Parameters
    ----------
    count : int
    area : Cell
    fits : callable
        Whether a panel can be drawn in a cell.
    wide_first : bool
        Whether the first panel has a row of its own.
    """
    best, least = None, math.inf
    for rows in _arrangements(count, wide_first):
        cells = _cells(rows, area)[:count]
        if all(fits(cell) for cell in cells):
            ugly = abs(math.log(cells[-1].width / cells[-1].height / _ASPECT)) + (sum(rows) - count) / count
            if ugly < least:
                best, least = cells, ugly
    return best


def _arrangements(count: int, wide_first: bool) -> Iterator[list[int]]:
    """Numbers of panels per row."""
    rest = count - 1 if wide_first and count > 1 else count
    for columns in range(1, rest + 1):
        rows = [columns] * math.ceil(rest / columns)
        yield [1, *rows] if rest < count else rows


def _cells(rows: Sequence[int], area: Cell) -> list[Cell]:
    height = area.height / len(rows)
    return [
        Cell(area.x + i * area.width / n, area.y + area.height - (row + 1) * height, area.width / n, height)
        for row, n in enumerate(rows)
        for i in range(n)
    ]


def fonts() -> Iterator[float]:
    """Font sizes to try, from the largest."""
    size = _style.base_font()
    while size > _style.SMALLEST_FONT:
        yield size
        size -= _STEP
    yield _style.SMALLEST_FONT


class Upright(_style.Ruler):
    """Measures tick labels along a vertical axis, where each takes a line and air around it."""

    def __init__(self, size: float) -> None:
        self.size = size

    def width(self, text: str) -> float:  # noqa: ARG002 - every label is as high as a line
        return 1.8 * self.size


def open_panel(box: Axes, size: float) -> None:
    """Lower and left edge, and no other decoration."""
    _canvas.frame(box, size)
    box.spines["left"].set_visible(True)
    box.tick_params(axis="y", left=True, length=3.0, width=0.8, color=_style.MUTED, labelsize=size)


def set_ticks_upwards(box: Axes, limits: tuple[float, float], room: float, size: float, guides: bool = True) -> None:
    """Round ticks on a vertical axis of `room` points, whose limits may descend, with faint lines across."""
    low, high = min(limits), max(limits)
    ticks = _canvas.choose_ticks(low, high, room, Upright(size), cover=False)
    box.set_yticks(ticks.values, ticks.labels, **_style.text_style(size))
    box.set_ylim(*limits)
    for label in box.get_yticklabels():
        _style.literal(label).set(va="center")
    for value in ticks.values if guides else ():
        box.axhline(value, color=_style.FAINT, linewidth=0.6, linestyle="-", zorder=0.5, label="_guide")


def set_ticks_along(box: Axes, limits: tuple[float, float], room: float, size: float, *, whole: bool = False) -> None:
    """Round ticks on a horizontal axis of `room` points, linear or logarithmic as it is; or only whole numbers."""
    low, high = limits
    ruler = _style.Ruler(box, size)
    if box.get_xscale() == "log":
        values = round_numbers(low, high)
        labels = [f"{value:g}" for value in values]
        where = np.log(values / low) / np.log(high / low) * room
        kept = apart(where, [ruler.width(label) for label in labels], size)
        box.xaxis.set_minor_locator(NullLocator())
        box.xaxis.set_minor_formatter(NullFormatter())
        values, labels = values[kept], [labels[i] for i in kept]
    else:
        ticks = _canvas.choose_ticks(low, high, room, ruler, cover=False, whole=whole)
        values, labels = np.array(ticks.values), list(ticks.labels)
    box.set_xticks(values, labels, **_style.text_style(size))
    box.set_xlim(low, high)


def set_names_along(box: Axes, names: Sequence[str], room: float, size: float) -> None:
    """Names at 0, 1, ... on a horizontal axis of `room` points; as many as do not touch."""
    low, high = box.get_xlim()
    places = np.arange(len(names), dtype=float)
    font = _style.font_for(names)
    ruler = _style.Ruler(box, size, **font)
    kept = apart((places - low) / (high - low) * room, [ruler.width(name) for name in names], size)
    box.set_xticks(places[kept], [names[i] for i in kept], **_style.text_style(size, **font))
    box.set_xlim(low, high)


def apart(where: FloatArray, widths: Sequence[float], size: float) -> list[int]:
    """Every, every second, ... label, so that neighbours do not touch."""
    for stride in range(1, len(where) + 1):
        kept = list(range(0, len(where), stride))
        gaps = [where[b] - where[a] - 0.5 * (widths[a] + widths[b]) for a, b in pairwise(kept)]
        if all(gap >= _AIR * size for gap in gaps):
            return kept
    return [0]


def write(ax: Axes, x: float, y: float, text: str, size: tuple[float, float], style: dict[str, Any]) -> None:
    """Write at a place in points from the lower left corner of `ax`."""
    ax.text(x / size[0], y / size[1], text, transform=ax.transAxes, **style)


def write_foot(ax: Axes, lines: Sequence[str], size: tuple[float, float], font: float) -> None:
    """Lines of small muted words along the lower edge of `ax`."""
    style = _style.text_style(SMALL * font, color=_style.MUTED, ha="left", va="bottom", **_style.font_for(lines))
    for below, line in zip(reversed(range(len(lines))), lines, strict=True):
        write(ax, _canvas.PAD, _canvas.PAD + below * LINE * SMALL * font, line, size, style)


def write_title(box: Axes, text: str, room: float, font: float, *, shorter: str | None = None) -> None:
    """A title at the left: the shorter one, or a cut, where the text takes more than `room` points."""
    style = _style.font_for([text])
    ruler = _style.Ruler(box, font, **style)
    if shorter is not None and ruler.width(text) > room:
        text = shorter
    text = _style.shorten([text], room, ruler)[0]
    box.set_title(text, loc="left", pad=0.5 * font, **_style.text_style(font, **style))
