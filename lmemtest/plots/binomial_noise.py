"""Standard deviations over data splits beside the binomial ones, over the size of the test set."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.axes import Axes

from lmemtest.bench.variation.binomial_noise import BinomialNoise
from lmemtest.core.words import counted
from lmemtest.plots import _canvas, _style
from lmemtest.plots._layout import Axis, FloatArray
from lmemtest.plots._lines import Curve, Lines, Panel, draw_lines, looks

_APART = 1.06  # from the size of the test set of a point to where the next of the same size is drawn


@_canvas.draws(BinomialNoise, source="binomial_noise()")
def binomial_noise_plot(noise: BinomialNoise, /, *, ax: Axes | None = None) -> Axes:
    """Draw what the size of the test set explains of the standard deviation over data splits.

    Parameters
    ----------
    noise : BinomialNoise
        From `binomial_noise`.

    Returns
    -------
    Axes
        It holds the panel, ``ax.child_axes[0]``: a curve of the binomial standard deviation over the number of test
        items for each sample, and a point with its interval for what was observed.

    References
    ----------
    Bouthillier et al. (2021), Accounting for variance in machine learning benchmarks, MLSys 3, figure 2

    Examples
    --------
    >>> from lmemtest.bench.variation.binomial_noise import binomial_noise
    >>> ax = binomial_noise([0.90, 0.93, 0.88, 0.91, 0.86, 0.92], 100).plot()
    >>> [line.get_label() for line in ax.child_axes[0].lines][-3:]
    ['_binomial', '_band', '_observed']
    """
    table = noise.table
    names = table["name"].tolist()
    curves = []
    for i, (name, look) in enumerate(zip(names, looks(len(names)), strict=True)):
        line = noise.curves[noise.curves["name"] == name]
        dotted = replace(look, dash=(0, (1.2, 1.2)))
        curves.append(Curve.of(line, _sizes(line), "binomial_sd", None, look=dotted, label="_binomial"))
        row = table.iloc[[i]]
        style: dict[str, Any] = {"marker": _style.marker(i), "size": 0.55, "width": 0.0, "bars": True, "opacity": 0.8}
        style |= {"look": look, "label": "_observed", "name": name if len(names) > 1 else ""}
        curves.append(Curve.of(row, _sizes(row) * _APART ** _side(table, i), "sd", **style))
    sizes = _sizes(noise.curves)
    moved = " Points of equal sizes stand side by side." if table["n_test"].duplicated().any() else ""
    y = Axis.around(np.concatenate([values for curve in curves for values in curve.points()]))
    lines = Lines(
        what=f"a plot of {counted(len(names), 'sample')}",
        panels=(Panel(x=Axis.around(sizes, log=True, pad=0.02, whole=True), y=y, curves=tuple(curves)),),
        x_label="Items of the test set",
        y_label=("Standard deviation of the score", "Standard deviation", "SD"),
        foot=(
            "Dotted: binomial, sqrt(mean (1 - mean) / items). Points: observed over data splits, with "
            f"{100 * noise.level:.4g} % intervals, each by itself.{moved}"
        ),
    )
    return draw_lines(lines, ax)


def _sizes(table: pd.DataFrame) -> FloatArray:
    return table["n_test"].to_numpy(dtype=float)


def _side(table: pd.DataFrame, index: int) -> float:
    """Steps from the middle of the points with the same size."""
    alike = np.flatnonzero(_sizes(table) == _sizes(table)[index]).tolist()
    return float(alike.index(index) - 0.5 * (len(alike) - 1))
