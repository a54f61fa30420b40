"""Estimators of a mean score: standard error over the number of scores, and what the mean squared error is made of."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from lmemtest.bench.estimators.quality import EstimatorQuality
from lmemtest.core.rounding import written
from lmemtest.core.words import counted
from lmemtest.plots import _canvas, _rows
from lmemtest.plots._columns import draw_columns
from lmemtest.plots._layout import Axis
from lmemtest.plots._lines import MOST_BANDS, Curve, Lines, Panel, draw_lines, looks, spans_much


@_canvas.draws(EstimatorQuality, source="quality_from_components() or quality_from_scores()")
def estimator_quality_plot(quality: EstimatorQuality, /, *, ax: Axes | None = None) -> Axes:
    """Draw the standard error of the mean of k scores, one curve per estimator.

    Parameters
    ----------
    quality : EstimatorQuality
        From `quality_from_components` or `quality_from_scores`.

    Returns
    -------
    Axes
        It holds the panel, ``ax.child_axes[0]``: k on the x axis, logarithmic if there are many, and the standard
        error on the y axis. Bands are intervals where the numbers come from scores. A legend names the curves.

    Examples
    --------
    >>> from lmemtest.bench.estimators.quality import quality_from_components
    >>> ax = quality_from_components({"tuning": 1.0, "data": 4.0, "init": 1.0}, k=50).plot()
    >>> [text.get_text() for text in ax.get_legend().get_texts()][:2]
    ['ideal', 'fixed tuning, all new']
    """
    table = quality.to_frame("curves")
    names = list(dict.fromkeys(table["estimator"]))
    known = table["ci_low"].notna().any() and len(names) <= MOST_BANDS
    curves = []
    for name, look in zip(names, looks(len(names), dashed=True), strict=True):
        rows = table[table["estimator"] == name]
        ends = ("ci_low", "ci_high") if known else None
        x = rows["k"].to_numpy(dtype=float)
        curves.append(Curve.of(rows, x, "standard_error", ends, name=name, look=look, label="_standard_error"))
    k = np.unique(table["k"].to_numpy(dtype=float))
    bands = f"Bands: {written(100.0 * quality.level, '.4g')} % intervals, each by itself. " if known else ""
    y = Axis.around(np.concatenate([[0.0], *(values for curve in curves for values in curve.points())]))
    lines = Lines(
        what=f"a plot of {counted(len(names), 'estimator')}",
        panels=(Panel(x=Axis.around(k, log=spans_much(k), pad=0.02, whole=True), y=y, curves=tuple(curves)),),
        x_label="Scores k of the mean",
        y_label=("Standard error of the mean of k scores", "Standard error"),
        foot=f"{bands}Where a curve is flat, more such scores add nothing.",
    )
    return draw_lines(lines, ax)


@_canvas.draws(EstimatorQuality, source="quality_from_components() or quality_from_scores()")
def estimator_decomposition_plot(quality: EstimatorQuality, /, *, ax: Axes | None = None) -> Axes:
    """Draw bias, standard error, correlation of two scores and root mean squared error, a column for each.

    Parameters
    ----------
    quality : EstimatorQuality
        From `quality_from_components` or `quality_from_scores`.

    Returns
    -------
    Axes
        It holds the columns, ``ax.child_axes``, each with a scale of its own that includes zero; from components, which
        know of no bias, standard error and correlation only. Rows are those of
        ``quality.to_frame("decomposition")``: one score of the ideal estimator, then each estimator with its largest k.

    Examples
    --------
    >>> from lmemtest.bench.estimators.quality import quality_from_components
    >>> ax = estimator_decomposition_plot(quality_from_components({"tuning": 1.0, "data": 4.0, "init": 1.0}, k=50))
    >>> [box.get_title(loc="left") for box in ax.child_axes]
    ['Standard error', 'Correlation']
    """
    table = quality.to_frame("decomposition")
    labels = [f"{name}, k = {k}" for name, k in zip(table["estimator"], table["k"], strict=True)]
    place = np.arange(len(labels), dtype=np.intp)
    titles = {"standard_error": "Standard error", "rho": "Correlation"}
    if quality.origin == "scores":  # components know of no bias
        titles = {"bias": "Bias", **titles, "rmse": "Root MSE"}
    columns = []
    for name, title in titles.items():
        ends = None if name == "rmse" else (f"{name}_low", f"{name}_high")
        series = (_rows.Series.of(table, place, centre=name, ends=ends),)
        columns.append(_rows.Rows(labels=labels, series=series, axis_label="", title=title, reference=0.0))
    known = table["standard_error_low"].notna().any()
    bands = f" Lines: {written(100.0 * quality.level, '.4g')} % intervals, each by itself." if known else ""
    error = " Mean squared error (MSE): bias² + standard error²." if "rmse" in titles else ""
    return draw_columns(columns, f"Standard error: of the mean of k scores.{error}{bands}", ax)
