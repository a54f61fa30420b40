"""The matrix of all pairwise comparisons: difference, wins and p-value, each row against each column."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from lmemtest.bench.ranking.ranking import Ranking
from lmemtest.core.arrays import Array
from lmemtest.core.rounding import below
from lmemtest.core.words import format_p
from lmemtest.lmm.means.comparisons import Comparisons
from lmemtest.lmm.means.decisions import Decisions
from lmemtest.plots import _canvas, _heat, _style
from lmemtest.plots._pair_matrix import PairMatrix, pair_matrix
from lmemtest.plots.emmeans import decided_by, omnibus_text
from lmemtest.plots.pairs import UNTESTED


def comparison_matrix_plot(
    comparisons: Ranking | Comparisons | Decisions | Mapping[Any, float] | Any,
    decisions: Any = None,
    /,
    *,
    wins: Any = None,
    ties: Any = None,
    ax: Axes | None = None,
    **options: Any,
) -> Axes:
    """Draw all pairwise comparisons: in each cell the row against the column.

    Parameters
    ----------
    comparisons : Ranking, Comparisons, Decisions, or means
        From `rank`, `Estimates.pairs` or `decisions`; or means of any other analysis as `Decisions.of` takes them,
        beside their `decisions`.
    decisions : pandas.DataFrame or array, optional
        Where means are given: adjusted p-values, or booleans that are True where a difference is significant.
    wins, ties : pandas.DataFrame or array, optional
        Where means are given: on how many benchmarks the row was better than the column, and the same.
    ax : Axes, optional
        Where to draw, labels included; by default a new figure, as large as its content.
    **options
        Where means are given, those of `Decisions.of`: ``direction``, ``alpha``, ``score``, ``statistic``, ``test``.

    Returns
    -------
    Axes
        Algorithms are in the order of the ranking, best first; cell (x, y) is row y against column x.

    Raises
    ------
    ArgumentError
        If an argument is something else, or `ax` is too small for the numbers.

    Notes
    -----
    A cell holds the difference, row minus column; wins, ties and losses of the row; and the adjusted p-value, or the
    posterior probability that the row is better. Its colour is the difference, blue where the row is better. It is bold
    where the difference is significant, and this is read from the one matrix of decisions: the order of the algorithms
    and the direction of the score cannot change it. Where cells are small, the difference and the p-value remain.

    Examples
    --------
    >>> import pandas as pd
    >>> import lmemtest as lt
    >>> names = ["A", "B", "C"]
    >>> p = pd.DataFrame([[1, 0.04, 0.001], [0.04, 1, 0.3], [0.001, 0.3, 1]], names, names)
    >>> ax = lt.plots.comparison_matrix_plot({"A": 0.91, "B": 0.84, "C": 0.82}, p, direction="maximize")
    >>> [text.get_text() for text in ax.texts if text.get_fontweight() == "bold"][0]
    '0.0700\\n0.040'
    """
    _canvas.check_axes(ax)
    matrix = pair_matrix(comparisons, decisions, wins, ties, options)
    k = len(matrix.levels)
    heat = _heat.Heat(
        rows=matrix.levels,
        columns=matrix.levels,
        values=matrix.difference,
        shown=~np.eye(k, dtype=bool),
        bold=matrix.decisions.significant.to_numpy(dtype=bool),
        layers=tuple(_layers(matrix)),
        all_numbers=True,
        head_share=_heat.LABEL_SHARE,
        palette="high is blue" if matrix.direction == "maximize" else "low is blue",
        scale_label=f"Row − column ({_style.one_line(matrix.unit)})",
        note=_note(matrix),
    )
    return _heat.draw_heat(heat, ax)[0]


def _layers(matrix: PairMatrix) -> list[_heat.Texts]:
    """Texts below the differences: outcomes, then p-values or probabilities."""
    found: list[_heat.Texts] = []
    if matrix.wins is not None and matrix.ties is not None:
        outcomes = zip(matrix.wins, matrix.ties, matrix.wins.T, strict=True)
        found.append([list(map(_outcome, *lines)) for lines in outcomes])
    undecided = matrix.decisions.undecided.to_numpy(dtype=bool)
    if matrix.p is not None:
        found.append(_texts(matrix.p, undecided, format_p))
    elif matrix.chance is not None:
        found.append(_texts(matrix.chance, undecided, _probability))
    elif undecided.any():
        found.append([[UNTESTED if cell else "" for cell in line] for line in undecided])
    return found


def _outcome(wins: float, ties: float, losses: float) -> str:
    return "" if np.isnan(wins) else f"{wins:.0f}/{ties:.0f}/{losses:.0f}"


def _texts(values: Array, undecided: NDArray[np.bool_], write: Callable[[float], str]) -> list[list[str]]:
    return [
        [UNTESTED if untested else write(value) for value, untested in zip(line, missing, strict=True)]
        for line, missing in zip(values, undecided, strict=True)
    ]


def _probability(p: float) -> str:
    """A probability that is honest at both ends: draws are no proof of 0 or 1."""
    return ">0.999" if below(1.0 - p, 0.001) else format_p(p)


def _note(matrix: PairMatrix) -> str:
    """What a cell holds, and which are bold."""
    decisions = matrix.decisions
    parts = [f"{matrix.what}, row − column"]
    if matrix.wins is not None:
        parts.append(_style.nobreak("wins/ties/losses") + " of the row")
    if matrix.p is not None:
        parts.append(_style.nobreak("p-value"))
    elif matrix.chance is not None:
        parts.append("probability that the row is better")
    said = f"Cells: {'; '.join(parts)}."
    word = "decided" if decisions.posterior else "significant"
    some = decisions.significant.to_numpy(dtype=bool).any()
    said += f" {f'Bold: {word}' if some else f'No pair is {word}'} ({decided_by(decisions)})."
    if matrix.direction is not None:
        said += " Blue: the row is better."
    count, missing = len(matrix.levels), int(decisions.undecided.to_numpy().sum()) // 2
    if missing:
        verb = "has" if missing == 1 else "have"
        said += f" {missing} of {count * (count - 1) // 2} pairs {verb} no test: undecided."
    return f"{said} {omnibus_text(decisions)}".strip()
