"""Figures of a diagnosis: quantiles, residuals against predictions, scales, and all of them on one page."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lmemtest._validate import check_choice
from lmemtest.errors import ArgumentError
from lmemtest.inference.diagnostics.check import DECISIONS
from lmemtest.inference.diagnostics.diagnose import Diagnosis
from lmemtest.inference.diagnostics.scale import FITTED, ScaleByLevel
from lmemtest.plots import _canvas, _fitting, _rows, _style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from numpy.typing import NDArray

    from lmemtest.inference.diagnostics.normality import Shape

    Array = NDArray[np.float64]

MOST_LEVELS = 14  # rows of a scale plot on the page of all checks
MOST_EFFECTS = 3  # quantile plots of random effects there
MOST_VECTORS = 2_000  # more markers than this become pixels in a vector file
PANEL = 2.35  # inches, the height of a panel in a new figure
COLUMNS = 3
# A panel is at least this many font sizes wide and high.
SMALLEST_PANEL = (13.0, 14.0)
MARGIN = 0.05
TITLE = 1.8  # font sizes that a title is high
COLOURS = {"not judged": _style.MUTED, "fine": _style.ACCENT, "look": _style.PALETTE[4], "act": _style.WARM}


def qq_plot(diagnosis: Diagnosis, *, ax: Axes | None = None) -> Axes:
    """Draw the quantiles of the residuals and of every random effect against normal ones.

    Parameters
    ----------
    diagnosis : Diagnosis
        From `lmemtest.inference.diagnostics.diagnose`.
    ax : Axes, optional
        Where to draw; the panels fill its rectangle. With None a new figure is made, which grows with their number.

    Returns
    -------
    Axes
        The panels are the axes that follow it in ``ax.figure.axes``: the residuals, then the random effects that could
        be judged. The band holds all quantiles of 95 % of the tables drawn from the fit.

    Raises
    ------
    ArgumentError
        If `diagnosis` is not the result of `diagnose`, or `ax` is too small for readable text.

    Examples
    --------
    >>> import lmemtest as lt
    >>> from lmemtest.inference.diagnostics import diagnose
    >>> from lmemtest.plots.diagnostics import qq_plot
    >>> runs = lt.datasets.load_hpo_runs().filter(budget=4)
    >>> ax = qq_plot(diagnose(lt.fit_lmm("loss ~ algorithm + (1|benchmark)", runs), influence=False, rng=1))
    >>> [panel.get_title(loc="right") for panel in ax.figure.axes[1:]]
    ['residuals: look', 'benchmark: look']
    """
    _check(diagnosis, ax)
    shapes = _judged(diagnosis)
    columns = min(len(shapes), COLUMNS)
    rows = -(-len(shapes) // columns)
    if ax is None:
        width = _canvas.FIGURE_WIDTH if columns > 1 else 0.5 * _canvas.FIGURE_WIDTH
        ax = _canvas.new_axes(width, PANEL * rows)
    heights = [1.0 / rows] * rows
    places = [(i // columns, i % columns, columns) for i in range(len(shapes))]
    for panel, shape in zip(_panels(ax, heights, places), shapes, strict=True):
        _draw_quantiles(panel, shape)
    return ax


def residuals_plot(diagnosis: Diagnosis, *, ax: Axes | None = None) -> Axes:
    """Draw the standardised residuals against the predictions.

    Parameters
    ----------
    diagnosis : Diagnosis
        From `diagnose`.
    ax : Axes, optional
        Where to draw; the plot fills its rectangle, labels included. With None a new figure is made.

    Returns
    -------
    Axes
        Lines at 0 and at three standard deviations. A fan is a scale that grows with the score, a bow a missing term.

    Raises
    ------
    ArgumentError
        If `diagnosis` is not the result of `diagnose`, or `ax` is too small for readable text.
    """
    _check(diagnosis, ax)
    if ax is None:
        ax = _canvas.new_axes(0.7 * _canvas.FIGURE_WIDTH, 1.4 * PANEL)
    _draw_residuals(ax, diagnosis)
    return ax


def scale_plot(diagnosis: Diagnosis, column: str | None = None, *, ax: Axes | None = None) -> Axes:
    """Draw the residual standard deviation of each level of a column.

    Parameters
    ----------
    diagnosis : Diagnosis
        From `diagnose`.
    column : str, optional
        A column of ``diagnosis.scale``; by default the one whose levels differ most.
    ax : Axes, optional
        Where to draw; the plot fills its rectangle, labels included. With None a new figure is made.

    Returns
    -------
    Axes
        One row per level, from the top: its residual standard deviation over the one that the model gives it, in
        doublings (the logarithm to base 2), with a 95 % interval. 1 is twice as much, -1 half.

    Raises
    ------
    ArgumentError
        If `diagnosis` is not the result of `diagnose`, has no such column, or `ax` is too small for readable text.
    """
    _check(diagnosis, ax)
    known = {scale.column: scale for scale in diagnosis.scale}
    if not known:
        raise ArgumentError("diagnosis compares no scales: no column of the model has 2 to 200 levels.")
    if column is None:
        column = _by_decision(list(known.values()))[0].column
    check_choice(column, "column", tuple(known))
    return _draw_scale(known[column], len(known[column].levels), ax)


def diagnosis_plot(diagnosis: Diagnosis, *, ax: Axes | None = None) -> Axes:
    """Draw a diagnosis on one page: quantiles and residuals, random effects, and the scales that differ most.

    Parameters
    ----------
    diagnosis : Diagnosis
        From `diagnose`.
    ax : Axes, optional
        Where to draw; the panels fill its rectangle. With None a new figure is made.

    Returns
    -------
    Axes
        The panels are the axes that follow it in ``ax.figure.axes``. Titles carry the decisions. Of random effects
        and columns the worst are shown: up to three and two.

    Raises
    ------
    ArgumentError
        If `diagnosis` is not the result of `diagnose`, or `ax` is too small for readable text.
    """
    _check(diagnosis, ax)
    residuals, *effects = _judged(diagnosis)
    effects = sorted(effects, key=lambda s: -DECISIONS.index(s.decision))[:MOST_EFFECTS]
    scales = _by_decision([s for s in diagnosis.scale if s.column != FITTED])[:2]
    inches = [1.25 * PANEL]
    places = [(0, 0, 2), (0, 1, 2)]
    if effects:
        places += [(len(inches), i, max(len(effects), 2)) for i in range(len(effects))]
        inches.append(PANEL)
    if scales:
        places += [(len(inches), i, 2) for i in range(len(scales))]
        inches.append(1.3 + 0.24 * max(min(len(s.levels), MOST_LEVELS) for s in scales))
    if ax is None:
        ax = _canvas.new_axes(_canvas.FIGURE_WIDTH, sum(inches))
    panels = iter(_panels(ax, [height / sum(inches) for height in inches], places))
    _draw_quantiles(next(panels), residuals)
    _draw_residuals(next(panels), diagnosis)
    for shape in effects:
        _draw_quantiles(next(panels), shape)
    for scale in scales:
        _draw_scale(scale, MOST_LEVELS, next(panels))
    return ax


# ---------------------------------------------------------------------- what is shown


def _check(diagnosis: object, ax: object) -> None:
    _canvas.check_axes(ax)
    if not isinstance(diagnosis, Diagnosis):
        raise ArgumentError(f"diagnosis must be the result of diagnose(), got {type(diagnosis).__name__}.")


def _judged(diagnosis: Diagnosis) -> list[Shape]:
    """The residuals, and what else was judged."""
    first, *rest = diagnosis.normality.shapes
    return [first, *(shape for shape in rest if shape.judged)]


def _by_decision(scales: list[ScaleByLevel]) -> list[ScaleByLevel]:
    return sorted(scales, key=lambda s: (-DECISIONS.index(s.decision), -np.nan_to_num(s.ratio, posinf=np.inf)))


def _scale_rows(scale: ScaleByLevel, most: int) -> _rows.Rows:
    """Levels as rows; of more than `most` the noisiest and the quietest, in their order."""
    with np.errstate(divide="ignore", invalid="ignore"):
        centre, low, high = (np.log2(values) for values in (scale.sd, scale.ci_low, scale.ci_high))
    kept = np.arange(len(scale.levels))
    if len(kept) > most:
        kept = scale.extremes(most)
    finite = np.isfinite(centre)
    some = f"\n({len(kept)} of {len(finite)} levels, noisiest and quietest)" if len(kept) < len(finite) else ""
    return _rows.Rows(
        labels=tuple((_style.one_line(scale.levels[i]),) for i in kept),
        series=(
            _rows.Series(
                name="",
                row=np.arange(len(kept), dtype=np.intp),
                centre=np.where(finite, centre, np.nan)[kept],
                low=low[kept],
                high=high[kept],
                colour=COLOURS[scale.decision],
            ),
        ),
        reference=0.0,
        axis_label=f"SD over the model's, in doublings{some}",
    )


# ---------------------------------------------------------------------- panels


def _panels(ax: Axes, heights: Sequence[float], places: Sequence[tuple[int, int, int]]) -> list[Axes]:
    """New axes in the rectangle of `ax`: (row, column, columns of the row) with rows of these heights."""
    _canvas.size_in_points(ax)  # lets a layout engine run before the rectangle is read
    _canvas.bare(ax)
    to_figure = ax.figure.transSubfigure.inverted()
    (x0, y0), (x1, y1) = to_figure.transform(ax.get_window_extent().corners()[[0, 3]])
    tops = 1.0 - np.concatenate([[0.0], np.cumsum(heights)])
    panels = []
    for row, column, columns in places:
        width = (x1 - x0) / columns
        bottom = y0 + (y1 - y0) * max(tops[row + 1], 0.0)
        panels.append(ax.figure.add_axes((x0 + column * width, bottom, width, (y1 - y0) * heights[row])))
    return panels


@dataclass(frozen=True, slots=True, kw_only=True)
class _Plane:
    """Two number axes with their words."""

    x: tuple[float, float]
    y: tuple[float, float]
    x_label: str
    y_label: str
    title: str


def _open(ax: Axes, plane: _Plane) -> float:
    """Prepare a panel and return its font size."""
    width, height = _canvas.size_in_points(ax)
    size = min(_style.base_font(), width / SMALLEST_PANEL[0], height / SMALLEST_PANEL[1])
    if size < _style.SMALLEST_FONT:
        raise _canvas.too_small(ax, "a panel", SMALLEST_PANEL[1] * _style.SMALLEST_FONT)
    _canvas.frame(ax, size)
    ax.spines["left"].set_visible(True)
    ax.tick_params(axis="y", left=True, length=3.5, width=0.8, color=_style.MUTED, labelsize=size)
    ax.set_xlim(*plane.x)
    ax.set_ylim(*plane.y)
    return size


def _close(ax: Axes, plane: _Plane, size: float) -> None:
    """Words and ticks, inside the rectangle that the panel had."""
    slot = ax.get_window_extent().frozen()
    width, height = _canvas.size_in_points(ax)
    ruler = _style.Ruler(ax, size)
    ax.set_xlabel("\n".join(_style.wrap(plane.x_label, width - 4 * size, ruler)), **_style.text_style(size))
    ax.set_ylabel(_style.shorten([plane.y_label], height - 4.5 * size, ruler)[0], **_style.text_style(size))
    _title(ax, plane.title, width - 2 * _canvas.PAD, size)
    for _ in range(2):  # ticks take room, and a shorter axis has fewer of them
        _canvas.set_number_ticks(ax, *plane.x, size)
        _number_ticks_upwards(ax, plane.y, size)
        _fitting.fit_inside(ax, slot)


def _number_ticks_upwards(ax: Axes, limits: tuple[float, float], size: float) -> None:
    ax.set_ylim(*limits)
    room = ax.get_window_extent().height * 72 / ax.figure.figure.dpi
    ticks = _canvas.choose_ticks(*limits, room, _style.Ruler(ax, size), cover=False)
    ax.set_yticks(ticks.values, ticks.labels, **_style.text_style(size))


def _limits(*values: Array) -> tuple[float, float]:
    low, high = float(min(v.min() for v in values)), float(max(v.max() for v in values))
    spread = high - low or max(abs(low), 1.0)
    return low - MARGIN * spread, high + MARGIN * spread


def _draw_scale(scale: ScaleByLevel, most: int, ax: Axes | None) -> Axes:
    """Rows with a title."""
    slot = None
    if ax is not None:
        _canvas.size_in_points(ax)
        slot = ax.get_window_extent().frozen()
        _lower_top(ax, TITLE * _style.base_font())
    ax = _rows.draw_rows(_scale_rows(scale, most), ax)
    slot = ax.figure.bbox.frozen() if slot is None else slot
    size = float(ax.xaxis.label.get_fontsize())
    room = slot.width * 72 / ax.figure.figure.dpi - 2 * _canvas.PAD
    _title(ax, f"scale by {_style.one_line(scale.column)}: {scale.decision}", room, size)
    _fitting.fit_inside(ax, slot)
    _canvas.set_number_ticks(ax, *ax.get_xlim(), size)
    return ax


def _lower_top(ax: Axes, points: float) -> None:
    """Leave room for a title above rows that fill their rectangle."""
    figure = ax.figure.figure
    if figure.get_layout_engine() is None:
        box = ax.get_position()
        share = points / 72 / figure.get_size_inches()[1]
        ax.set_position((box.x0, box.y0, box.width, max(box.height - share, 0.1 * box.height)))


def _title(ax: Axes, text: str, room: float, size: float) -> None:
    """A title that keeps the decision after its colon, however long the name before it."""
    font = _style.font_for([text])
    ruler = _style.Ruler(ax, size, **font)
    name, mark, decision = text.rpartition(":")
    end = mark + decision
    short = _style.shorten([name], room - ruler.width(end), ruler)[0] + end if mark else text
    ax.set_title(short, loc="right", pad=0.4 * size, **_style.text_style(size, **font))


def _draw_quantiles(ax: Axes, shape: Shape) -> None:
    plane = _Plane(
        x=_limits(shape.theoretical),
        y=_limits(shape.sample, shape.low, shape.high),
        x_label="Normal quantile",
        y_label="Value, in SD",
        title=f"{_style.one_line(shape.subject.removeprefix('effects of '))}: {shape.decision}",
    )
    size = _open(ax, plane)
    ax.fill_between(
        shape.theoretical, shape.low, shape.high, color=_style.FAINT, linewidth=0, zorder=0.5, label="_band"
    )
    ends = np.array(plane.x)
    ax.plot(ends, ends, color=_style.MUTED, linewidth=0.8, linestyle="-", marker="none", zorder=1, label="_reference")
    _points(ax, shape.theoretical, shape.sample, COLOURS[shape.decision], 0.32 * size)
    _close(ax, plane, size)


def _draw_residuals(ax: Axes, diagnosis: Diagnosis) -> None:
    z, fitted = diagnosis.residuals, diagnosis.fitted
    plane = _Plane(
        x=_limits(fitted),
        y=_limits(z, np.array([-3.0, 3.0])),
        x_label="Prediction",
        y_label="Residual, in SD",
        title="residuals against predictions",
    )
    size = _open(ax, plane)
    for height in (-3.0, 0.0, 3.0):
        style = "-" if height == 0 else "--"
        ax.axhline(height, color=_style.MUTED, linewidth=0.8, linestyle=style, zorder=1, label="_reference")
    _points(ax, fitted, z, _style.ACCENT, 0.32 * size if len(z) < MOST_VECTORS else 0.15 * size)
    _close(ax, plane, size)


def _points(ax: Axes, x: Array, y: Array, colour: str, size: float) -> None:
    ax.plot(
        x,
        y,
        linestyle="none",
        marker="o",
        markersize=size,
        color=colour,
        markeredgewidth=0,
        alpha=0.9 if len(x) < MOST_VECTORS else 0.35,
        rasterized=len(x) >= MOST_VECTORS,
        label="_points",
        zorder=2,
    )
