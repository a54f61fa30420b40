"""Lines with bands in one frame: what the figures of two searches and of single results share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.lines import Line2D

from lmemtest.plots import _canvas, _fitting, _style
from lmemtest.plots._rows import legend_columns

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.transforms import Bbox
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]

_HEIGHT = 4.2  # inches of a new figure
_LINES = 13.0  # lines of text that axes must be high
_LOG_RATIO = 25.0  # of the last to the first budget, from which the axis is logarithmic
STRIP = 0.075  # of the height: a strip at the foot
_BAND, _TRIVIAL_BAND = 0.22, 0.08  # opacity
_MARKED = 12  # budgets, up to which they have markers
_ROOM = 0.05  # of the range of the y axis, above and below
_ABREAST = 3  # names of a legend that share a line even if they must be cut for it


@dataclass(frozen=True, slots=True, eq=False)
class Line:
    """A curve with a band, known so finely that lines between its budgets are true."""

    name: str
    grid: FloatArray
    lower: FloatArray
    estimate: FloatArray
    upper: FloatArray
    known: NDArray[np.bool_]  # where the band says something
    colour: str
    style: Any = "-"
    marked: tuple[FloatArray, FloatArray] | None = None  # budgets that were asked for, and the estimate there
    outlined: bool = False  # where bands lie on top of each other


def begin(ax: Axes | None) -> tuple[Axes, float, Bbox]:
    """Axes, font size, and the rectangle that the plot must keep to."""
    if ax is None:
        ax = _canvas.new_axes(_canvas.FIGURE_WIDTH, _HEIGHT)
    _, height = _canvas.size_in_points(ax)
    size = min(_style.base_font(), (height - 2 * _canvas.PAD) / _LINES)
    if size < _style.SMALLEST_FONT:
        raise _canvas.too_small(ax, "a plot of curves", _LINES * _style.SMALLEST_FONT + 2 * _canvas.PAD)
    return ax, size, ax.get_window_extent().frozen()


def panel(
    ax: Axes,
    grid: FloatArray,
    lines: list[Line],
    size: float,
    *,
    limits: tuple[float, float] | None = None,
    strip: bool = False,
    log: bool = True,
) -> None:
    """Axes for budgets with the lines on them; logarithmic, if allowed, where budgets span a factor of 25."""
    _canvas.frame(ax, size)
    ax.spines["left"].set_visible(True)
    if log and grid[-1] > _LOG_RATIO * grid[0] > 0.0:
        ax.set_xscale("log")
        ax.minorticks_off()
    low, high = _limits(lines) if limits is None else limits
    ax.set_ylim(low - (STRIP / (1 - STRIP)) * (high - low) * strip, high)
    ax.set_xlim(*_x_limits(ax, grid))
    for line in lines:
        _draw_band(ax, line, low, high)
        look: dict[str, Any] = {"color": line.colour, "zorder": 3, "clip_on": False}
        ax.plot(
            line.grid,
            np.clip(line.estimate, low, high),
            linestyle=line.style,
            linewidth=0.16 * size,
            marker="none",
            label="_estimate",
            **look,
        )
        if line.marked is not None and len(line.marked[0]) <= _MARKED:
            at, values = line.marked[0], np.clip(line.marked[1], low, high)
            ax.plot(at, values, linestyle="none", marker="o", markersize=0.35 * size, label="_asked", **look)


def _draw_band(ax: Axes, line: Line, low: float, high: float) -> None:
    """Full colour where the band says something, pale where a limit is trivial; neighbours overlap at one budget."""
    lower, upper = np.clip(line.lower, low, high), np.clip(line.upper, low, high)
    if line.outlined:
        for limit in (lower, upper):
            shown = np.where(line.known, limit, np.nan)
            ax.plot(line.grid, shown, color=line.colour, linestyle=line.style, linewidth=0.8, label="_limit", zorder=2)
    pale = ~line.known
    pale_with_ends = pale | np.roll(pale, 1) * (np.arange(len(pale)) > 0) | np.roll(pale, -1) * _not_last(pale)
    for where, opacity in ((line.known, _BAND), (pale_with_ends, _TRIVIAL_BAND)):
        if where.any():
            ax.fill_between(
                line.grid,
                lower,
                upper,
                where=where,
                color=line.colour,
                alpha=opacity,
                linewidth=0,
                label="_band",
                zorder=2,
            )


def _not_last(values: NDArray[np.bool_]) -> NDArray[np.bool_]:
    return np.asarray(np.arange(len(values)) < len(values) - 1)


def _limits(lines: list[Line]) -> tuple[float, float]:
    """The range of all estimates and of the limits that say something."""
    values = np.concatenate(
        [v for line in lines for v in (line.estimate, line.lower[line.known], line.upper[line.known])]
    )
    values = values[np.isfinite(values)]
    if not len(values):
        return 0.0, 1.0
    low, high = float(values.min()), float(values.max())
    spread = high - low if high - low > 1e-12 * max(abs(low), abs(high)) else max(abs(low), 1.0) * 0.1
    return low - _ROOM * spread, high + _ROOM * spread


def _x_limits(ax: Axes, grid: FloatArray) -> tuple[float, float]:
    first, last = float(grid[0]), float(grid[-1])
    if ax.get_xscale() == "log":
        return first / (last / first) ** 0.02, last * (last / first) ** 0.02
    pad = 0.03 * (last - first) if last > first else 0.5 * last
    return first - pad, last + pad


def finish(
    ax: Axes, words: tuple[str, str, str], lines: list[Line], size: float, slot: Bbox, *, whole: bool = False
) -> None:
    """Axis labels, ticks and legend; ticks again after each step that moves the axes."""
    x_label, y_label, note = words
    ruler = _style.Ruler(ax, 0.85 * size)
    room = slot.width * 72 / ax.figure.figure.dpi - 7 * size
    below = _style.wrap(_style.one_line(note), room, ruler)
    style = _style.text_style(0.95 * size, **_style.font_for([x_label, *below]))
    ax.set_xlabel("\n".join([x_label, *below]), **style, labelpad=0.4 * size)
    height = ax.get_window_extent().height * 72 / ax.figure.figure.dpi - (4.0 + 1.2 * len(below)) * size
    tall = _style.wrap(y_label, max(height, 8 * size), _style.Ruler(ax, size))
    ax.set_ylabel("\n".join(tall), **_style.text_style(size, **_style.font_for(tall)), labelpad=0.4 * size)
    _set_ticks(ax, size, whole=whole)
    _draw_legend(ax, lines, size)
    for _ in range(2):
        _fitting.fit_inside(ax, slot)
        _set_ticks(ax, size, whole=whole)
    _fitting.fit_inside(ax, slot)


def _draw_legend(ax: Axes, lines: list[Line], size: float) -> None:
    if not lines:
        return
    names = [_style.one_line(line.name) for line in lines]
    font = _style.font_for(names)
    width = ax.get_window_extent().width * 72 / ax.figure.figure.dpi
    ruler = _style.Ruler(ax, size, **font)
    names = _style.shorten(names, max(0.7 * width / min(len(names), _ABREAST) - 4 * size, 6 * size), ruler)
    columns = legend_columns([ruler.width(name) + 0.5 * size for name in names], width, size)
    legend = ax.legend(
        handles=[
            Line2D([], [], color=line.colour, linestyle=line.style, linewidth=0.2 * size, marker="none")
            for line in lines
        ],
        labels=[str(i) for i in range(len(names))],
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        ncols=columns,
        frameon=False,
        fontsize=size,
        borderpad=0.0,
        borderaxespad=0.5,
        handlelength=2.2,
        handletextpad=0.5,
        columnspacing=1.5,
    )
    for entry, name in zip(legend.get_texts(), names, strict=True):
        _style.literal(entry).set(text=name, color=_style.INK, **font)


def _set_ticks(ax: Axes, size: float, *, whole: bool) -> None:
    box = ax.get_window_extent()
    dpi = ax.figure.figure.dpi
    ruler = _style.Ruler(ax, size)
    low, high = ax.get_ylim()
    foot = low + STRIP * (high - low)  # no number beside the strip
    shown = _canvas.choose_ticks(foot if _has_strip(ax) else low, high, box.height * 72 / dpi, ruler, cover=False)
    ax.set_yticks(shown.values, shown.labels, **_style.text_style(size))
    for label in ax.get_yticklabels():
        _style.literal(label).set(va="center")
    limits = ax.get_xlim()
    if ax.get_xscale() != "log":
        _canvas.set_number_ticks(ax, *limits, size, whole=whole)
        return
    values = round_numbers(*limits)
    room = box.width * 72 / dpi
    place = np.log(values / limits[0]) / np.log(limits[1] / limits[0]) * room
    labels = [f"{value:g}" for value in values]
    kept: list[int] = []
    for i in range(len(values)):
        apart = place[i] - place[kept[-1]] if kept else np.inf
        if apart > size + 0.5 * (ruler.width(labels[i]) + (ruler.width(labels[kept[-1]]) if kept else 0.0)):
            kept.append(i)
    ax.set_xticks(values[kept], [labels[i] for i in kept], **_style.text_style(size))
    ax.set_xlim(limits)


def _has_strip(ax: Axes) -> bool:
    return any(line.get_label() == "_guide" for line in ax.lines)


def round_numbers(low: float, high: float) -> FloatArray:
    """1, 2, 5, 10, ... between two limits."""
    decades = 10.0 ** np.arange(np.floor(np.log10(low)), np.ceil(np.log10(high)) + 1)
    values = (decades[:, None] * np.array([1.0, 2.0, 5.0])).ravel()
    return values[(values >= low) & (values <= high)]
