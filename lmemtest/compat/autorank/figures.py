"""The figures of a result, drawn by this package from its one matrix of decisions."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.compat.autorank.decisions import decisions, distinct
from lmemtest.compat.autorank.result import RankResult
from lmemtest.core.rounding import below, written
from lmemtest.core.words import p_text
from lmemtest.errors import ArgumentError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

OF_A = {"larger": 1, "equal": 2, "smaller": 3}  # what the decision about B says of A: smaller, equivalent, larger


def plot_stats(result: RankResult, *, allow_insignificant: bool, ax: Axes | None, width: float | None) -> Axes:
    """Means with intervals where means are compared by one variance, else the diagram."""
    if result.omnibus == "bayes":
        raise ArgumentError(
            "plot_stats draws frequentist results, and this is Bayesian. Use plot_posterior_maps(result)."
        )
    if not allow_insignificant and not (result.pvalue is not None and below(result.pvalue, result.alpha)):
        raise ArgumentError(
            f"result is not significant (p = {result.pvalue}, alpha = {result.alpha:g}), so a figure of differences "
            "could mislead. To draw it all the same, pass allow_insignificant=True."
        )
    if ax is not None and width is not None:
        warnings.warn("width is not used, because ax says where to draw.", stacklevel=3)
    if result.omnibus == "ttest" or result.posthoc == "tukeyhsd":
        return ci_plot(result, True, ax, width)
    best_at_right = decisions(result).direction == "minimize"
    return cd_diagram(result, best_at_right, ax, width)


def cd_diagram(result: RankResult, reverse: bool, ax: Axes | None, width: float | None) -> Axes:
    """The critical-difference diagram; with `reverse` high values, of ranks the worst, are on the left."""
    from lmemtest import plots

    ax = plots.cd_diagram(decisions(result), ax=_axes_of_width(result, width) if ax is None else ax)
    if reverse:
        _turn(ax)
    return ax


def _axes_of_width(result: RankResult, width: float | None) -> Axes | None:
    """New axes of a width, and as high as the diagram needs there; None for the width that the names need."""
    if width is None:
        return None
    from lmemtest.plots._canvas import new_axes
    from lmemtest.plots._cd_board import board_of
    from lmemtest.plots._cd_plan import Frame, figure_height

    return new_axes(width, figure_height(board_of(decisions(result)), width, Frame()))


def _turn(ax: Axes) -> None:
    """Mirror a diagram: texts keep to the side of their anchor that they were on, and the arrow shows where it did."""
    ax.invert_xaxis()
    other: dict[str, Any] = {"left": "right", "right": "left", "center": "center"}
    for text in ax.texts:
        text.set_horizontalalignment(other[text.get_horizontalalignment()])
        words = text.get_text()
        if words.startswith("← "):
            text.set_text(f"{words[2:]} →")
        elif words.endswith(" →"):
            text.set_text(f"← {words[:-2]}")


def ci_plot(result: RankResult, reverse: bool, ax: Axes | None, width: float | None) -> Axes:
    """Means with their intervals in the order of `plot_order` or `rankdf`, with `reverse` from the top."""
    from lmemtest.plots._rows import Rows, Series, draw_rows

    table = result.rankdf
    rows = np.arange(len(table))
    if result.plot_order is not None:
        rows = table.index.get_indexer(pd.Index(result.plot_order))
    rows = rows if reverse else rows[::-1]
    centre = "mean" if "mean" in table.columns else "median"
    names = distinct(table.index)
    letters = decisions(result).letters if result.posthoc == "tukeyhsd" else {}
    series = Series.of(
        table.iloc[rows], np.arange(len(rows), dtype=np.intp), centre=centre, ends=("ci_lower", "ci_upper")
    )
    content = Rows(
        labels=[names[row] for row in rows],
        series=(series,),
        axis_label=_axis_label(result, centre),
        aside=tuple(letters[names[row]] for row in rows) if letters else (),
    )
    return draw_rows(content, ax, width=width)


def _axis_label(result: RankResult, centre: str) -> str:
    """What the intervals are, and what tells whether populations differ."""
    if result.posthoc == "tukeyhsd":
        alpha = written(result.alpha, ".3g")
        return (
            f"{centre.capitalize()} with comparison interval: two that do not overlap, and share no letter, differ "
            f"significantly (Tukey HSD, alpha = {alpha})."
        )
    level = written(100.0 * (1.0 - result.alpha / len(result.rankdf)), ".4g")
    test = {"ttest": "paired t-test", "wilcoxon": "Wilcoxon signed-rank test"}.get(result.omnibus, result.omnibus)
    overlap = (
        ""
        if result.pvalue is None
        else f"\n{test.capitalize()}: {p_text(result.pvalue)}; overlap of the intervals is no test."
    )
    return f"{centre.capitalize()}, {level} % CI{overlap}"


def posterior_maps(
    result: RankResult,
    *,
    width: float,
    cmaps: list[Any] | None,
    annot_colors: list[Any] | None,
    axes: list[Axes] | None = None,
) -> list[Axes]:
    """Probabilities that the population of the row, A, is smaller than that of the column, B, equivalent, larger."""
    if result.omnibus != "bayes" or result.posterior_matrix is None or result.decision_matrix is None:
        raise ArgumentError(
            "plot_posterior_maps draws Bayesian results, and this is not one. Use autorank(data, approach='bayesian')."
        )
    from lmemtest.plots._autorank_maps import draw_posterior_maps

    k = len(result.posterior_matrix)
    chances, decided = (matrix.to_numpy(dtype=object) for matrix in (result.posterior_matrix, result.decision_matrix))
    probabilities, decisions = np.full((3, k, k), np.nan), np.zeros((k, k), dtype=np.intp)
    for i in range(k):
        for j in range(i + 1, k):
            smaller, equal, larger = chances[i, j]  # B beside A
            probabilities[:, i, j] = larger, equal, smaller
            decisions[i, j] = OF_A.get(decided[i, j], 0)
    names = distinct(result.posterior_matrix.index)
    return draw_posterior_maps(
        names, probabilities, decisions, width=width, cmaps=cmaps, annot_colors=annot_colors, axes=axes
    )


def save(result: RankResult, folder: str, prefix: str) -> str | None:
    """The figure of a report as a PDF file; its path, or None for a result that has none."""
    from lmemtest.plots import detached_figures

    if result.omnibus == "bayes" or result.pvalue is None or not below(result.pvalue, result.alpha):
        return None
    path = f"{folder}{'' if not folder or folder.endswith('/') else '/'}{prefix}stat_results.pdf"
    with detached_figures():
        ax = plot_stats(result, allow_insignificant=False, ax=None, width=None)
        ax.figure.figure.savefig(path)
    return path
