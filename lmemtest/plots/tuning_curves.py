"""Tuning curves of many algorithms with their bands, one small panel per benchmark."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.lines import Line2D

from lmemtest.errors import ArgumentError
from lmemtest.plots import _canvas, _style
from lmemtest.plots._lines import round_numbers
from lmemtest.plots._rows import legend_columns
from lmemtest.tuning._arguments import name_of
from lmemtest.tuning.curve_set import GroupCurve, TuningCurves

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]
    BoolArray = NDArray[np.bool_]

PANEL_WIDTH, PANEL_HEIGHT = 165.0, 125.0  # points, in a new figure
ASPECT = 1.3  # width over height of a panel that reads well
# In units of the font size.
TITLE, X_LABELS, GAP, LINE, Y_TITLE, LEGEND_LINE = 1.8, 1.9, 1.2, 1.35, 1.7, 1.5
SMALLEST_PANEL = (8.0, 4.5)
SMALL = 0.85
LOG_RATIO = 25.0  # of the last to the first budget, from which the axis is logarithmic
ROOM = 0.05  # of the range, beyond the curves
DASHES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1.2, 1.2)), (0, (5, 1.5, 1.2, 1.5)))  # 4 and 7 colours are coprime
BAND, CROWDED_BAND, TRIVIAL_BAND = 0.2, 0.1, 0.35  # opacity
CROWDED = 6  # algorithms, from which bands are paler
MARKED = 8  # budgets, up to which they have markers
_AXES = {"trials": "Trials k", "cost": "Cost", "budget": "Budget"}


@dataclass(frozen=True)
class _Look:
    """Colour and dashes of an algorithm."""

    colour: str
    dash: Any


@dataclass(frozen=True)
class _Grid:
    """Places of the panels, in points from the lower left corner."""

    columns: int
    rows: int
    font: float
    left: float
    bottom: float
    top: float  # room for the legend
    width: float  # of a panel
    height: float
    gap: float

    def box(self, index: int, size: tuple[float, float]) -> tuple[float, float, float, float]:
        """Place of a panel as shares of the rectangle."""
        row, column = divmod(index, self.columns)
        x = self.left + column * (self.width + self.gap)
        from_top = self.top + row * (self.height + (TITLE + X_LABELS) * self.font) + TITLE * self.font
        return x / size[0], (size[1] - from_top - self.height) / size[1], self.width / size[0], self.height / size[1]


def tuning_curves_plot(curves: TuningCurves, *, ax: Axes | None = None) -> Axes:
    """Draw the tuning curves of all algorithms, one panel per benchmark.

    Parameters
    ----------
    curves : TuningCurves
        From `lmemtest.tuning.by_benchmark.tuning_curves`.
    ax : Axes, optional
        Where to draw; the panels fill its rectangle, labels included. With None a new figure is made, which grows with
        the number of benchmarks.

    Returns
    -------
    Axes
        It holds the panels, ``ax.child_axes``, one per benchmark in their order. An algorithm has the same colour and
        dashes in all of them; bands are grey where a limit is trivial. Curves and bands are drawn as the steps that
        they are, between the budgets asked for too (curves over seeds stay at a budget's values up to the next). The x
        axis is logarithmic if the budgets of a panel span more than a factor of 25; each panel has its own scale of
        scores.

    Raises
    ------
    ArgumentError
        If `curves` is not the result of `tuning_curves`, or `ax` is too small for readable text.

    Examples
    --------
    >>> from lmemtest.data.datasets import load_hpo_trials
    >>> from lmemtest.plots.tuning_curves import tuning_curves_plot
    >>> from lmemtest.tuning.by_benchmark import tuning_curves
    >>> curves = tuning_curves(load_hpo_trials(), score="valid_loss", direction="minimize", by=["dataset", "model"])
    >>> ax = tuning_curves_plot(curves)
    >>> [panel.get_title() for panel in ax.child_axes]
    ['cancer', 'diabetes', 'digits', 'vote']
    """
    _canvas.check_axes(ax)
    if not isinstance(curves, TuningCurves):
        raise ArgumentError(
            f"curves must be the result of tuning_curves(), got {type(curves).__name__}. "
            "Two searches are drawn by evidence_plot(compare_curves(...))."
        )
    asked = {curve.key: curve for curve in curves.curves}
    curves = replace(curves, curves=tuple(curve.drawn() for curve in curves.curves))
    panels = curves.panels()
    if ax is None:
        ax = _new_axes(curves)
    _canvas.bare(ax)
    size = _canvas.size_in_points(ax)
    looks = {name: _Look(_style.colour(i), DASHES[i % len(DASHES)]) for i, name in enumerate(curves.algorithms)}
    grid, words = _layout(ax, curves, len(panels), size)
    titles = _titles(ax, curves, grid)
    for index, (panel, title) in enumerate(zip(panels, titles, strict=True)):
        box = ax.inset_axes(grid.box(index, size))
        _draw_panel(box, curves, panel, looks, grid, asked)
        if title:
            box.set_title(title, pad=0.45 * grid.font, **_style.text_style(grid.font, **_style.font_for([title])))
            _style.literal(box.title)
    _draw_legend(ax, curves, looks, grid, size)
    _draw_words(ax, curves, grid, words, size)
    return ax


def _new_axes(curves: TuningCurves) -> Axes:
    count = len(curves.benchmarks)
    columns = min(count, int(_canvas.FIGURE_WIDTH * 72 // PANEL_WIDTH))
    columns = -(-count // -(-count // columns))  # as few as need no further row: 4 panels are 2 x 2
    font = _style.base_font()
    width = _canvas.FIGURE_WIDTH * 72 if columns > 2 else max(columns * 1.3 * PANEL_WIDTH + 60, 340)
    panel = PANEL_HEIGHT if columns > 2 else 1.3 * PANEL_HEIGHT
    entries = _legend_lines(curves.algorithms, 0.6 * font, width, font)
    words = math.ceil(0.5 * SMALL * font * len(_caption(curves)) / width)
    height = math.ceil(count / columns) * (panel + (TITLE + X_LABELS - 2.0) * font)
    return _canvas.new_axes(width / 72, (height + (entries * LEGEND_LINE + (words + 2) * LINE) * font) / 72)


def _legend_lines(names: tuple[str, ...], glyph: float, width: float, font: float) -> int:
    columns = legend_columns([len(name) * glyph for name in names], width, font)
    return -(-len(names) // columns)


# ---------------------------------------------------------------------------------------------------- layout


def _caption(curves: TuningCurves) -> str:
    words = curves.describe()
    if any(curve.trivial.any() for curve in curves.curves):
        words += " Grey: a limit is the end of the support and says nothing."
    return words


def _legend_names(ax: Axes, curves: TuningCurves, font: float, width: float) -> tuple[list[str], int]:
    """Names that fit, and the number of columns."""
    names = [_style.one_line(name) for name in curves.algorithms]
    ruler = _style.Ruler(ax, font, **_style.font_for(names))
    most = max(0.45 * width, 10 * font) if len(names) > 1 else width - 5 * font
    short = _style.shorten(names, most - 5 * font, ruler)
    return short, legend_columns([ruler.width(name) for name in short], width - 2 * _canvas.PAD, font)


def _layout(ax: Axes, curves: TuningCurves, n: int, size: tuple[float, float]) -> tuple[_Grid, list[str]]:
    """The grid with the largest font, and the lines of the caption."""
    font = _style.base_font()
    while font >= _style.SMALLEST_FONT:
        small = _style.Ruler(ax, SMALL * font)
        words = _style.wrap(_caption(curves), size[0] - 2 * _canvas.PAD, small)
        names, columns_of_names = _legend_names(ax, curves, font, size[0])
        top = _canvas.PAD + LEGEND_LINE * font * -(-len(names) // columns_of_names)
        top -= 0.0 if any(curves.benchmarks) else 0.8 * TITLE * font  # no titles, so no room for them
        left = _canvas.PAD + Y_TITLE * font
        numbers = _widest_number(ax, curves, small) + 0.7 * font
        bottom = _canvas.PAD + LINE * SMALL * font * len(words) + LINE * font
        gap = numbers + GAP * font
        fitting = []
        for columns in range(1, n + 1):
            rows = math.ceil(n / columns)
            width = (size[0] - left - numbers - _canvas.PAD - GAP * font - gap * (columns - 1)) / columns
            height = (size[1] - bottom - top - rows * (TITLE + X_LABELS) * font) / rows
            if width >= SMALLEST_PANEL[0] * font and height >= SMALLEST_PANEL[1] * font:
                fitting.append(_Grid(columns, rows, font, left + numbers, bottom, top, width, height, gap))
        if fitting:
            return min(fitting, key=lambda grid: _unsightly(grid, n)), words
        font -= 0.5
    raise _canvas.too_small(ax, f"{n} panel{'s' * (n > 1)}", None)


def _unsightly(grid: _Grid, n: int) -> float:
    """How far the panels are from a good shape, and how much of the rectangle stays empty."""
    empty = grid.columns * grid.rows - n
    return abs(math.log(grid.width / grid.height / ASPECT)) + empty / n


def _widest_number(ax: Axes, curves: TuningCurves, ruler: _style.Ruler) -> float:
    """Room for the numbers of the y axes: as wide as they may get."""
    labels: list[str] = []
    upright = _Upright(ax, ruler.size)
    for panel in curves.panels():
        for lines in (4, 8, 16, 32):  # the height of the panels follows from this width
            labels += _canvas.choose_ticks(*_limits(panel), lines * ruler.size, upright, cover=False).labels
    return ruler.widest(labels)


class _Upright(_style.Ruler):
    """Measures numbers that stand above each other: each takes a line, whatever its width."""

    def width(self, text: str) -> float:  # noqa: ARG002
        return 1.2 * self.size


def _titles(ax: Axes, curves: TuningCurves, grid: _Grid) -> list[str]:
    if not any(curves.benchmarks):
        return ["" for _ in curves.benchmarks]
    lines = [_style.one_line(name) for name in curves.benchmarks]
    ruler = _style.Ruler(ax, grid.font, **_style.font_for(lines))
    return _style.shorten(lines, grid.width + 0.5 * grid.gap, ruler)


def _draw_legend(
    ax: Axes, curves: TuningCurves, looks: dict[str, _Look], grid: _Grid, size: tuple[float, float]
) -> None:
    names, columns = _legend_names(ax, curves, grid.font, size[0])
    legend = ax.legend(
        handles=[
            Line2D([], [], color=look.colour, linestyle=look.dash, linewidth=0.2 * grid.font, marker="none")
            for look in looks.values()
        ],
        labels=[str(i) for i in range(len(names))],
        loc="upper left",
        bbox_to_anchor=(_canvas.PAD / size[0], 1.0 - 0.5 * _canvas.PAD / size[1]),
        ncols=columns,
        frameon=False,
        fontsize=grid.font,
        borderpad=0.0,
        borderaxespad=0.0,
        handlelength=1.6,
        handletextpad=0.5,
        columnspacing=1.5,
        labelspacing=0.3,
    )
    for entry, name in zip(legend.get_texts(), names, strict=True):
        # set afterwards, because a label that starts with an underscore would be dropped
        _style.literal(entry).set(text=name, color=_style.INK, **_style.font_for(names))


def _draw_words(ax: Axes, curves: TuningCurves, grid: _Grid, words: list[str], size: tuple[float, float]) -> None:
    small = _style.text_style(SMALL * grid.font, color=_style.MUTED)
    for i, line in enumerate(words):
        y = grid.bottom - LINE * grid.font - (i + 1) * LINE * SMALL * grid.font
        ax.text(_canvas.PAD / size[0], y / size[1], line, transform=ax.transAxes, va="bottom", **small)
    across = grid.left + 0.5 * (size[0] - grid.left)
    ax.text(
        across / size[0],
        (grid.bottom - LINE * grid.font) / size[1],
        _AXES[curves.unit],
        transform=ax.transAxes,
        ha="center",
        va="bottom",
        **_style.text_style(grid.font),
    )
    height = size[1] - grid.bottom - grid.top
    what = f"best {_style.one_line(curves.score)}"
    title = (
        f"{name_of(curves.statistic).capitalize()} {'over seeds of the' if curves.over == 'seed' else 'of the'} {what}"
    )
    ruler = _style.Ruler(ax, grid.font, **_style.font_for([title]))
    shown = next((t for t in (title, what) if ruler.width(t) <= height), None)
    shown = shown or _style.shorten([what], height, ruler)[0]
    ax.text(
        (_canvas.PAD + 0.6 * grid.font) / size[0],
        (grid.bottom + height / 2) / size[1],
        shown,
        transform=ax.transAxes,
        rotation=90,
        ha="center",
        va="center",
        **_style.text_style(grid.font, **_style.font_for([shown])),
    )


# ---------------------------------------------------------------------------------------------------- one panel


def _draw_panel(
    box: Axes,
    curves: TuningCurves,
    panel: tuple[GroupCurve, ...],
    looks: dict[str, _Look],
    grid: _Grid,
    asked: dict[tuple[Any, ...], GroupCurve],
) -> None:
    size = SMALL * grid.font
    _canvas.frame(box, size)
    box.spines["left"].set_visible(True)
    box.tick_params(axis="y", left=True, length=3.0, width=0.8, color=_style.MUTED)
    first, last = _span(curves, panel)
    if first > 0 and last > LOG_RATIO * first:
        box.set_xscale("log")
        box.minorticks_off()
    low, high = _limits(panel)
    steps = curves.over == "seed"
    for curve in panel:
        _draw_curve(box, curve, looks[curve.algorithm], (low, high), grid, len(looks), steps, asked[curve.key])
    box.set_xlim(*_padded(first, last, log=box.get_xscale() == "log"))
    box.set_ylim(low, high)
    _set_ticks(box, grid, whole=curves.unit == "trials")


def _span(curves: TuningCurves, panel: tuple[GroupCurve, ...]) -> tuple[float, float]:
    """First and last budget; trials mean the same everywhere, so all panels share their axis."""
    shared = curves.curves if curves.unit == "trials" else panel
    return min(float(c.grid.min()) for c in shared), max(float(c.grid.max()) for c in shared)


def _padded(first: float, last: float, *, log: bool) -> tuple[float, float]:
    if log:
        return first / (last / first) ** 0.03, last * (last / first) ** 0.03
    pad = 0.03 * (last - first) if last > first else 0.5 * max(abs(last), 1.0)
    return first - pad, last + pad


def _limits(panel: tuple[GroupCurve, ...]) -> tuple[float, float]:
    """The range of all estimates and of the limits that say something."""
    parts = [v for c in panel for v in (c.estimate, c.lower[~c.trivial], c.upper[~c.trivial])]
    values = np.concatenate(parts)
    values = values[np.isfinite(values)]
    if not len(values):
        return 0.0, 1.0
    low, high = float(values.min()), float(values.max())
    spread = high - low if high - low > 1e-12 * max(abs(low), abs(high)) else max(abs(low), 1.0) * 0.1
    return low - ROOM * spread, high + ROOM * spread


def _draw_curve(
    box: Axes,
    curve: GroupCurve,
    look: _Look,
    limits: tuple[float, float],
    grid: _Grid,
    algorithms: int,
    steps: bool,
    asked: GroupCurve,
) -> None:
    order = np.argsort(curve.grid, kind="stable")
    x, known = curve.grid[order], ~curve.trivial[order]
    lower, estimate, upper = (np.clip(v[order], *limits) for v in (curve.lower, curve.estimate, curve.upper))
    opacity = CROWDED_BAND if algorithms > CROWDED else BAND
    for where, colour, alpha in (
        (_with_ends(~known), _style.FAINT, TRIVIAL_BAND),
        (known, look.colour, opacity),
    ):
        if where.any():
            box.fill_between(
                x,
                lower,
                upper,
                where=where.tolist(),
                step="post" if steps else None,
                color=colour,
                alpha=alpha,
                linewidth=0,
                label="_band" if colour == look.colour else "_trivial",
                zorder=2 if colour == look.colour else 1,
            )
    box.plot(
        x,
        estimate,
        color=look.colour,
        linestyle=look.dash,
        linewidth=0.15 * grid.font,
        drawstyle="steps-post" if steps else "default",
        marker="none",
        label="_estimate",
        zorder=3,
    )
    if len(asked.grid) <= MARKED:
        box.plot(
            asked.grid,
            np.clip(asked.estimate, *limits),
            color=look.colour,
            linestyle="none",
            marker="o",
            markersize=0.3 * grid.font,
            label="_asked",
            zorder=3,
        )


def _with_ends(where: BoolArray) -> BoolArray:
    """The points and their neighbours: grey bands reach to the last point of the coloured ones."""
    wide = where.copy()
    wide[1:] |= where[:-1]
    wide[:-1] |= where[1:]
    return wide if where.any() else where


def _set_ticks(box: Axes, grid: _Grid, *, whole: bool) -> None:
    size = SMALL * grid.font
    ruler = _style.Ruler(box, size)
    low, high = box.get_ylim()
    upright = _canvas.choose_ticks(low, high, 0.55 * grid.height, _Upright(box, size), cover=False)
    box.set_yticks(upright.values, upright.labels, **_style.text_style(size))
    for label in box.get_yticklabels():
        _style.literal(label).set(va="center")
    limits = box.get_xlim()
    if box.get_xscale() == "log":
        values = round_numbers(*limits)
        places = np.log(values / limits[0]) / np.log(limits[1] / limits[0]) * grid.width
        labels = [f"{value:g}" for value in values]
    else:
        ticks = _canvas.choose_ticks(*limits, grid.width, ruler, cover=False, whole=whole)
        values, labels = np.array(ticks.values), list(ticks.labels)
        places = (values - limits[0]) / (limits[1] - limits[0]) * grid.width
    kept = _apart(places, [ruler.width(label) for label in labels], grid, size)
    box.set_xticks(values[kept], [labels[i] for i in kept], **_style.text_style(size))
    box.set_xlim(limits)


def _apart(places: FloatArray, widths: list[float], grid: _Grid, size: float) -> list[int]:
    """Labels that neither touch each other nor reach into the next panel."""
    kept: list[int] = []
    for i, (place, width) in enumerate(zip(places, widths, strict=True)):
        inside = place - width / 2 > -0.4 * grid.gap and place + width / 2 < grid.width + 0.4 * GAP * grid.font
        if inside and (not kept or place - width / 2 > places[kept[-1]] + widths[kept[-1]] / 2 + 0.6 * size):
            kept.append(i)
    return kept
