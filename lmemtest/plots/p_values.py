"""The p-values of all pairs in classes, as a map."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.patches import Patch
from numpy.typing import NDArray

from lmemtest.bench.ranking.ranking import Ranking
from lmemtest.core.rounding import below
from lmemtest.errors import ArgumentError
from lmemtest.lmm.means.comparisons import Comparisons
from lmemtest.lmm.means.decisions import Decisions
from lmemtest.plots import _canvas, _heat, _layout, _style
from lmemtest.plots._pair_matrix import PairMatrix, pair_matrix
from lmemtest.plots.emmeans import decided_by, omnibus_text

LEVELS = (0.001, 0.01, 0.05)
_SHADES = ("#08519c", "#4292c6", "#9ecae1", "#eeeeee", "#ffffff")
_NAMES = (*(f"p < {level:g}" for level in LEVELS), "p ≥ 0.05", "undecided")
_FLAGS = ("significant", "not significant", "undecided")
_CELL = 1.9  # font sizes of a cell in a new figure
_GAP = 1.2  # between the map and its legend


def p_value_plot(
    comparisons: Ranking | Comparisons | Decisions | Mapping[Any, float] | Any,
    decisions: Any = None,
    /,
    *,
    ax: Axes | None = None,
    **options: Any,
) -> Axes:
    """Draw the p-values of all pairs as a map of classes, for many algorithms.

    Parameters
    ----------
    comparisons : Ranking, Comparisons, Decisions, or means
        As in `comparison_matrix_plot`; of decisions, which has no p-values, the decisions are drawn.
    decisions : pandas.DataFrame or array, optional
        Where means are given: adjusted p-values, or booleans that are True where a difference is significant.
    ax : Axes, optional
        Where to draw, labels included; by default a new figure, as large as its content.
    **options
        Where means are given, those of `Decisions.of`.

    Returns
    -------
    Axes
        Algorithms are in the order of the ranking, best first, on both axes.

    Raises
    ------
    ArgumentError
        If an argument is something else, there are posterior probabilities in place of p-values, or `ax` is too small.

    Notes
    -----
    The classes are those of papers, p < 0.001, 0.01, 0.05. The decisions are made at the level of the analysis, and a
    dot marks the pairs that are significant by it: with alpha = 0.01 a p-value of 0.03 has a colour and no dot.

    Examples
    --------
    >>> import pandas as pd
    >>> import lmemtest as lt
    >>> names = ["A", "B", "C"]
    >>> p = pd.DataFrame([[1, 0.04, 0.001], [0.04, 1, 0.3], [0.001, 0.3, 1]], names, names)
    >>> ax = lt.plots.p_value_plot({"A": 0.91, "B": 0.84, "C": 0.82}, p, direction="maximize")
    >>> [text.get_text() for text in ax.get_legend().get_texts()]
    ['p < 0.01', 'p < 0.05', 'p ≥ 0.05']
    """
    _canvas.check_axes(ax)
    matrix = pair_matrix(comparisons, decisions, None, None, options)
    if matrix.p is None and matrix.chance is not None:
        raise ArgumentError(
            "comparisons has posterior probabilities and no p-values. Use comparison_matrix_plot, which writes them."
        )
    code, names = _classes(matrix)
    present = sorted(set(code[~np.eye(len(code), dtype=bool)].tolist()))
    font = _style.base_font()
    ruler = _style.Ruler(_canvas.scratch_axes(), font)
    key = _GAP + 2.6 + ruler.widest(names) / font  # in font sizes: a gap, the patches, the words
    k = len(matrix.levels)
    if ax is None:
        ax = _canvas.new_axes(*_figure_size(matrix.levels, key))
    decided = matrix.decisions.significant.to_numpy(dtype=bool)
    dotted = bool((decided != (code < names.index("not significant" if matrix.p is None else "p ≥ 0.05"))).any())
    room: dict[str, Any] = {"beside": (0.0, key, key), "above": 0.5, "head_share": _heat.LABEL_SHARE}
    what = f"a map of {k} x {k} cells"
    plan = _heat.grid(ax, matrix.levels, matrix.levels, what, note=_note(matrix, dotted=dotted), **room)
    edges = np.arange(k + 1) - 0.5
    shades = _SHADES if matrix.p is not None else (_SHADES[1], *_SHADES[-2:])
    cells = np.ma.masked_where(np.eye(k, dtype=bool), code)
    look: dict[str, Any] = {"edgecolors": "white", "linewidth": 0.8, "label": "_cells"}
    ax.pcolormesh(edges, edges, cells, cmap=ListedColormap(shades), vmin=-0.5, vmax=len(shades) - 0.5, **look)
    across = 0.18 * min(plan.cell)
    marks: dict[str, Any] = {"linestyle": "none", "marker": "o", "clip_on": False}
    if dotted:
        row, column = np.nonzero(decided)
        ax.plot(column, row, color="white", markeredgecolor=_style.INK, markersize=2 * across, label="_dots", **marks)
    row, column = np.nonzero(matrix.decisions.undecided.to_numpy(dtype=bool))
    marks["marker"] = "x"
    ax.plot(column, row, color=_style.NEUTRAL, markersize=1.6 * across, label="_undecided", **marks)
    handles = [Patch(facecolor=shades[i], edgecolor=_style.FAINT, linewidth=0.6) for i in present]
    place = {"loc": "upper left", "bbox_to_anchor": (1.0 + _GAP * plan.font / plan.inner[0], 1.0), "borderaxespad": 0.0}
    _layout.draw_legend(ax, handles, [names[i] for i in present], 1, plan.font, **place)
    return ax


def _classes(matrix: PairMatrix) -> tuple[NDArray[np.intp], tuple[str, ...]]:
    """The class of each pair, and what the classes are called."""
    decisions = matrix.decisions
    undecided = decisions.undecided.to_numpy(dtype=bool)
    if matrix.p is None:
        significant = decisions.significant.to_numpy(dtype=bool)
        return np.where(undecided, 2, np.where(significant, 0, 1)), _FLAGS
    reached = sum(below(matrix.p, level).astype(np.intp) for level in LEVELS)
    return np.where(undecided, len(LEVELS) + 1, len(LEVELS) - reached), _NAMES


def _note(matrix: PairMatrix, *, dotted: bool) -> str:
    decisions = matrix.decisions
    what = "Dots" if dotted else "Blue"
    said = [f"{what}: significant difference ({decided_by(decisions)})."]
    if decisions.undecided.any(axis=None):
        said.append("Crosses: no test, undecided.")
    return " ".join([*said, omnibus_text(decisions)]).strip()


def _figure_size(names: tuple[str, ...], key: float) -> tuple[float, float]:
    """Inches of a new figure."""
    font = _style.base_font()
    labels = min(max(map(len, names)) * 0.62 * font, _heat.LABEL_SHARE * _heat.WIDEST * 72)
    cells = len(names) * min(max(_CELL, 12.0 / len(names)), 3.0 * _CELL) * font
    width, height = labels + cells + (key + 2.0) * font, cells + labels + 4.0 * font
    return min(max(width / 72, 4.0), _heat.WIDEST), min(max(height / 72, 2.0), _heat.HIGHEST)
