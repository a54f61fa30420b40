"""Figures of a diagnosis: quantiles, residuals against predictions, scales, all of them on one page, and influence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from lmemtest.core.result import Answer
from lmemtest.core.rounding import tie_order
from lmemtest.core.validate import check_choice
from lmemtest.core.verdicts import SEVERITIES
from lmemtest.errors import ArgumentError
from lmemtest.lmm.diagnostics.diagnose import Diagnosis
from lmemtest.lmm.diagnostics.influence import SURPRISING
from lmemtest.lmm.diagnostics.scale import FITTED, extremes
from lmemtest.plots import _canvas, _rows, _style
from lmemtest.plots._layout import Axis, Cell
from lmemtest.plots._lines import Curve, Level, Lines, Panel, axis_around, draw_lines

MOST_LEVELS = 14  # rows of a scale plot on the page of all checks
MOST_EFFECTS = 3  # quantile plots of random effects there
MOST_VECTORS = 2_000  # more markers than this become pixels in a vector file
PANEL = 130.0  # points of a panel in a new figure
SIDE_BY_SIDE = 5.0  # inches from which two parts of a page are beside each other
COLOURS = {"skipped": _style.MUTED, "fine": _style.ACCENT, "note": _style.PALETTE[4], "warning": _style.WARM}


@_canvas.draws(Diagnosis, source="diagnose()")
def qq_plot(diagnosis: Diagnosis, /, *, ax: Axes | None = None) -> Axes:
    """Draw the quantiles of the residuals and of every random effect against normal ones.

    Parameters
    ----------
    diagnosis : Diagnosis
        From `LmmFit.diagnose`.

    Returns
    -------
    Axes
        It holds the panels, ``ax.child_axes``: the residuals, then the random effects that could be judged. The band
        holds all quantiles of 95 % of the tables drawn from the fit.

    Examples
    --------
    >>> import lmemtest as lt
    >>> fit = lt.fit_lmm("loss ~ algorithm + (1|benchmark)", lt.datasets.load_hpo_runs().filter(budget=4))
    >>> ax = lt.plots.qq_plot(fit.diagnose(influence=False, rng=1))
    >>> [panel.get_title(loc="left") for panel in ax.child_axes]
    ['residuals: note', 'benchmark: note']
    """
    return draw_lines(_quantiles(_judged(diagnosis)), ax, height=PANEL)


@_canvas.draws(Diagnosis, source="diagnose()")
def residuals_plot(diagnosis: Diagnosis, /, *, ax: Axes | None = None) -> Axes:
    """Draw the standardised residuals against the predictions.

    Parameters
    ----------
    diagnosis : Diagnosis
        From `LmmFit.diagnose`.

    Returns
    -------
    Axes
        It holds the panel, ``ax.child_axes[0]``, with lines at 0 and at three standard deviations. A fan is a scale
        that grows with the score, a bow a missing term.
    """
    return draw_lines(_residuals(diagnosis), ax)


@_canvas.draws(Diagnosis, source="diagnose()")
def scale_plot(diagnosis: Diagnosis, /, column: str | None = None, *, ax: Axes | None = None) -> Axes:
    """Draw the residual standard deviation of each level of a column.

    Parameters
    ----------
    diagnosis : Diagnosis
        From `LmmFit.diagnose`.
    column : str, optional
        A column of ``diagnosis.scale``; by default the one whose levels differ most.

    Returns
    -------
    Axes
        One row per level, the noisiest on top: its residual standard deviation over the one that the model gives it, on
        a logarithmic axis, with a 95 % interval.

    Raises
    ------
    ArgumentError
        If `diagnosis` is something else, has no such column, or `ax` is too small.
    """
    scales = {scale.column: scale for scale in diagnosis.scale}
    if not scales:
        raise ArgumentError("diagnosis compares no scales: no column of the model has 2 to 200 levels.")
    if column is None:
        column = _by_severity(list(scales.values()))[0].column
    check_choice(column, "column", tuple(scales))
    return _rows.draw_rows(_scale_rows(scales[column], len(scales[column].table)), ax)


@_canvas.draws(Diagnosis, source="diagnose()")
def diagnosis_plot(diagnosis: Diagnosis, /, *, ax: Axes | None = None) -> Axes:
    """Draw a diagnosis on one page: quantiles and residuals, random effects, and the scales that differ most.

    Parameters
    ----------
    diagnosis : Diagnosis
        From `LmmFit.diagnose`.

    Returns
    -------
    Axes
        The parts are the axes that follow it in ``ax.figure.axes``. Titles carry the severities. Of random effects and
        columns the worst are shown: up to three and two, or one in a narrow figure.
    """
    residuals, *effects = _judged(diagnosis)
    effects = sorted(effects, key=lambda shape: SEVERITIES.index(shape.severity))[:MOST_EFFECTS]
    across = _canvas.figure_width()
    narrow = ax is None and across < SIDE_BY_SIDE
    scales = _by_severity([scale for scale in diagnosis.scale if scale.column != FITTED])[: 1 if narrow else 2]
    # inches, columns, and what is side by side in them
    rows: list[tuple[float, int, list[Lines | _rows.Rows]]] = [
        (3.1, 2, [_quantiles([residuals]), _residuals(diagnosis)])
    ]
    if effects:
        rows.append((2.5, 1 if len(effects) > 1 else 2, [_quantiles(effects)]))
    if scales:
        high = 1.3 + 0.24 * max(min(len(scale.table), MOST_LEVELS) for scale in scales)
        rows.append((high, 2, [_scale_rows(scale, MOST_LEVELS) for scale in scales]))
    if narrow:
        rows = [
            (0.5 + 1.6 * len(part.panels) if isinstance(part, Lines) else inches, 1, [part])
            for inches, _, parts in rows
            for part in parts
        ]
    total = sum(inches for inches, _, _ in rows)
    if ax is None:
        ax = _canvas.new_axes(across, total)
    _canvas.size_in_points(ax)  # lets a layout engine run before the rectangle is read
    _canvas.bare(ax)
    to_figure = ax.figure.transSubfigure.inverted()
    (x0, y0), (x1, y1) = to_figure.transform(ax.get_window_extent().corners()[[0, 3]])
    top = y1
    for inches, columns, parts in rows:
        height, width = (y1 - y0) * inches / total, (x1 - x0) / columns
        top -= height
        for i, part in enumerate(parts):
            box = ax.figure.add_axes((x0 + i * width, max(top, 0.0), width, height))
            draw_lines(part, box) if isinstance(part, Lines) else _rows.draw_rows(part, box)
    return ax


def _judged(diagnosis: Diagnosis) -> list[Answer]:
    """The residuals, and what else was judged."""
    first, *rest = diagnosis.normality.shapes
    return [first, *(shape for shape in rest if np.isfinite(shape.p_value))]


def _by_severity(scales: list[Answer]) -> list[Answer]:
    return sorted(scales, key=lambda s: (SEVERITIES.index(s.severity), -np.nan_to_num(s.ratio, posinf=np.inf)))


def _scale_rows(scale: Answer, most: int) -> _rows.Rows:
    """Levels as rows, the noisiest on top; of more than `most` the noisiest and the quietest."""
    ratio = scale.table["relative_sd"].to_numpy(dtype=float)
    order = np.array(tie_order(ratio, descending=True), dtype=np.intp)
    if len(order) > most:
        order = order[np.isin(order, extremes(ratio, most))]
    some = f"\nThe noisiest and quietest {len(order)} of {len(ratio)} levels" if len(order) < len(ratio) else ""
    values = scale.table[["relative_sd", "ci_low", "ci_high"]]
    table = values.where(np.isfinite(values) & (values > 0.0)).iloc[order]  # what a logarithmic axis has a place for
    row = np.arange(len(table), dtype=np.intp)
    return _rows.Rows(
        labels=scale.table["level"].iloc[order].tolist(),
        series=(_rows.Series.of(table, row, centre="relative_sd", colour=COLOURS[scale.severity]),),
        reference=1.0,
        log=True,
        axis_label=f"Residual SD over that of the model, log scale{some}",
        title=f"scale by {scale.column}",
        title_end=f": {scale.severity}",
    )


def _quantiles(shapes: Sequence[Answer]) -> Lines:
    panels = []
    for shape in shapes:
        theoretical, sample, low, high = shape.table.to_numpy().T
        band: dict[str, Any] = {"low": low, "high": high, "opacity": 1.0, "label": "", "front": 1}
        curves = [Curve(x=theoretical, y=sample, colour=_style.FAINT, **band)]
        x = Axis.around(theoretical, pad=0.05)
        ends = np.array(x.limits)
        curves.append(Curve(x=ends, y=ends, colour=_style.MUTED, width=0.09, label="_reference", clip=True))
        name = _style.one_line(shape.subject.removeprefix("effects of "))
        draw = _dots(theoretical, sample, COLOURS[shape.severity])
        title = (f"{name}: {shape.severity}",)
        panels.append(Panel(x=x, y=axis_around(curves[:1]), curves=tuple(curves), title=title, draw=draw))
    words: dict[str, Any] = {"x_label": "Normal quantile", "y_label": ("Value, in SD",), "guides": False}
    return Lines(what="a panel of quantiles", panels=tuple(panels), **words)


def _residuals(diagnosis: Diagnosis) -> Lines:
    z, fitted = diagnosis.residuals, diagnosis.fitted
    panel = Panel(
        x=Axis.around(fitted, pad=0.05),
        y=Axis.around(np.append(z, [-3.0, 3.0]), pad=0.05),
        levels=tuple(Level(at=at, colour=_style.MUTED, dash="--" if at else "-") for at in (-3.0, 0.0, 3.0)),
        title=("residuals against predictions",),
        draw=_dots(fitted, z, _style.ACCENT),
    )
    words: dict[str, Any] = {"x_label": "Prediction", "y_label": ("Residual, in SD",), "guides": False}
    return Lines(what="a panel of residuals", panels=(panel,), **words)


def _dots(x: NDArray[np.float64], y: NDArray[np.float64], colour: str) -> Callable[[Axes, Cell, float], None]:
    """Draws points, so many of them as pixels."""
    many = len(x) >= MOST_VECTORS

    def draw(box: Axes, place: Cell, font: float) -> None:  # noqa: ARG001
        style: dict[str, Any] = {"alpha": 0.35 if many else 0.9, "markersize": (0.15 if many else 0.32) * font}
        style |= {"linestyle": "none", "marker": "o", "markeredgewidth": 0, "rasterized": many, "zorder": 2}
        box.plot(x, y, color=colour, label="_points", **style)

    return draw


_LOOKS = (
    ("changes a decision", {"colour": _style.WARM, "marker": "D"}),
    ("stands out", {"colour": _style.INK, "marker": "s"}),
    ("neither", {"colour": _style.ACCENT, "marker": "o"}),
)


@_canvas.draws("influence", source="influence()")
def influence_plot(result: Answer, /, *, ax: Axes | None = None) -> Axes:
    """Draw the Cook's distance of each level, the largest first.

    Parameters
    ----------
    result : Answer
        From `LmmFit.influence`.

    Returns
    -------
    Axes
        A row per level, sorted; levels that cannot be left out come first. Beside each row the largest shift of a
        comparison, in standard errors. Colour and shape tell levels without which a decision changes, and levels that
        stand out more than chance explains, from the others. Of more than 60 levels the first 60 are shown, and those
        that are marked.

    Examples
    --------
    >>> import lmemtest as lt
    >>> table = {"loss": [1., 2, 1, 3, 2, 2, 3, 4, 4, 6, 5, 17], "tool": ["A", "B"] * 6, "task": list("aabbccddeeff")}
    >>> ax = lt.fit_lmm("loss ~ tool + (1 | task)", table).influence("task").plot()
    >>> ax.get_yticklabels()[0].get_text()
    'f'
    """
    table = result.table.sort_values("cooks_distance", ascending=False, na_position="first", kind="stable")
    changes, outlying = table["n_changed"].to_numpy() > 0, table["chance_p"].to_numpy() < SURPRISING
    marked = changes | outlying
    keep = (np.arange(len(table)) < _rows.MOST_ROWS) | marked
    left_over = int(np.count_nonzero(~keep))
    table, changes, marked = table[keep].assign(none=0.0), changes[keep], marked[keep]
    masks = (changes, marked & ~changes, ~marked)
    kinds = [(name, mask, look) for (name, look), mask in zip(_LOOKS, masks, strict=True)]
    columns = {"centre": "cooks_distance", "ends": ("none", "cooks_distance")}
    series = _rows.Series.kinds(table, np.arange(len(table)), kinds, **columns)
    labels = [str(level) for level in table["level"]]
    aside = ["" if np.isnan(shift) else _style.fixed(abs(float(shift)), 2) for shift in table["largest_shift"]]
    if left_over:
        labels.append(f"and {left_over:,} with less")
    content = _rows.Rows(
        labels=labels,
        series=series,
        headers=frozenset([len(table)] * bool(left_over)),
        aside=tuple(aside),
        aside_title="largest shift (SE)" if any(aside) else "",
        axis_label=f"Cook's distance without one {result.group}",
        reference=0.0,
        legend=len(series) > 1,
    )
    return _rows.draw_rows(content, ax)
