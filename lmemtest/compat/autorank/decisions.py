"""Which populations of a result differ: one matrix, from which groups, reports and figures follow.

A `RankResult` has no p-values of pairs, but all that decides about them: the critical difference of mean ranks
(Nemenyi), intervals of means that do or do not overlap (Tukey), the p-value of two populations, or the decisions
themselves. So results built by hand are read like those of `autorank`.
"""

from __future__ import annotations

import numbers
import warnings
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.compat.autorank.result import RankResult
from lmemtest.core.rounding import below, tie_order, tolerance, written
from lmemtest.core.words import format_level, p_text
from lmemtest.errors import ArgumentError
from lmemtest.lmm.means.decisions import Decisions

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from lmemtest.core.arrays import Array, Mask

TESTS = {"ttest": "paired t-test", "wilcoxon": "Wilcoxon signed-rank test"}
TESTS_OF_PAIRS = {"nemenyi": "Nemenyi", "tukeyhsd": "Tukey HSD", "lmem": "mixed model, Tukey", "bayes": "signed-rank"}
# What a diagram says of the better end, as drawn and as drawn in a mirror.
BETTER_END = {
    "minimize": ("← lower is better", "lower is better →"),
    "maximize": ("higher is better →", "← higher is better"),
}
OPPOSITE: dict[str, Any] = {"left": "right", "right": "left", "center": "center"}
OF_A = {"larger": 1, "equal": 2, "smaller": 3}  # what the decision about B says of A: smaller, equivalent, larger


# ---------------------------------------------------------------------- decisions


def is_significant(result: RankResult) -> bool:
    """Whether the test of all populations rejects."""
    return bool(result.pvalue is not None and below(result.pvalue, result.alpha))


def differ(result: RankResult) -> Mask:
    """Pairs of rows of `rankdf` that differ significantly (Bayesian: decided to be smaller or larger)."""
    table = result.rankdf
    k = len(table)
    if result.decision_matrix is not None:
        return np.asarray(result.decision_matrix.isin(["smaller", "larger"]).to_numpy())
    if result.cd is None and k == 2:
        return ~np.eye(2, dtype=bool) & is_significant(result)
    values = centres(result).to_numpy(dtype=float)
    half = np.full(k, float(result.cd) / 2.0) if result.cd is not None else _widths(result) / 2.0
    distance = np.abs(values[:, None] - values)
    return np.asarray(distance > half[:, None] + half + tolerance(values))  # at the limit is not beyond it


def _widths(result: RankResult) -> Array:
    return (result.rankdf["ci_upper"] - result.rankdf["ci_lower"]).to_numpy(dtype=float)


def centres(result: RankResult) -> pd.Series:
    """By what the populations are compared: mean ranks if there is a critical difference of ranks, else means.

    Mean ranks, too, where there are no means (Wilcoxon), and medians where there are neither (Bayesian).
    """
    names = ("meanrank",) if result.cd is not None else ("mean", "meanrank", "median")
    for name in names:
        if name in result.rankdf.columns:
            return result.rankdf[name]
    raise ArgumentError(f"result.rankdf must have the column {' or '.join(map(repr, names))}.")


class SortedRanks(pd.Series):  # type: ignore[type-arg]
    """Ranks by name, and by position too: callers of Autorank write ``ranks[0]``, which pandas 3 reads as a name."""

    @property
    def _constructor(self) -> type[SortedRanks]:
        return SortedRanks

    def __getitem__(self, key: Any) -> Any:
        by_position = isinstance(key, numbers.Integral) and not isinstance(key, bool) and key not in self.index
        return self.iloc[int(key)] if by_position else super().__getitem__(key)


def get_sorted_rank_groups(result: RankResult, reverse: bool) -> tuple[SortedRanks, list[Any], list[tuple[int, int]]]:
    """Mean ranks (means without a critical difference) best first, names, and groups without a significant difference.

    A group is a pair of positions, first and last, and stands for all between them: the longest stretches of two or
    more in which no pair differs significantly. With one critical difference for all pairs these are all groups there
    are. With several, populations that do not differ may have one between them that does; such a group is no stretch
    and is not listed, so that no range claims too much: the matrix of decisions has it. With `reverse` the worst is
    first.
    """
    values, (order, _) = centres(result), _best_first(result)
    order = order[::-1] if reverse else order
    return SortedRanks(values.iloc[order]), list(values.index[order]), stretches(differ(result)[np.ix_(order, order)])


def _best_first(result: RankResult) -> tuple[list[int], str]:
    """Rows of `rankdf` by what is compared, and its better end: that of the rows at its top."""
    values = centres(result)
    heights = values.to_numpy(dtype=float)
    trend = float(np.dot(np.arange(len(values)) - (len(values) - 1) / 2.0, heights))
    ascending, descending = tie_order(heights), tie_order(heights, descending=True)
    if values.name == "meanrank" or trend >= 0.0 or ascending == descending:
        return ascending, "minimize"
    return descending, "maximize"


def stretches(apart: Mask) -> list[tuple[int, int]]:
    """First and last position of the longest stretches of two or more without a pair that is apart.

    >>> stretches(np.array([[0, 0, 1], [0, 0, 0], [1, 0, 0]], dtype=bool))
    [(0, 1), (1, 2)]
    """
    longest: list[tuple[int, int]] = []
    for first in range(len(apart)):
        last = first
        while last + 1 < len(apart) and not apart[first : last + 1, last + 1].any():
            last += 1
        if last > first and (not longest or last > longest[-1][1]):
            longest.append((first, last))
    return longest


def decisions(result: RankResult) -> Decisions:
    """The decisions of a result as this package draws and groups them, with names as text, each once."""
    values, names = centres(result), distinct(result.rankdf.index)
    critical: Any = None if result.cd is None else float(result.cd)
    if result.cd is None and result.posthoc == "tukeyhsd" and _widths(result).min() > 0.0:
        critical = (float(_widths(result).min()), float(_widths(result).max()))
    return Decisions.of(
        dict(zip(names, values.astype(float).tolist(), strict=True)),
        pd.DataFrame(differ(result), index=names, columns=names),
        direction=_best_first(result)[1],
        alpha=result.alpha,
        critical_difference=critical,
        statistic="mean rank" if values.name == "meanrank" else str(values.name),
        score="the populations",
        test=TESTS_OF_PAIRS.get(result.posthoc or "", TESTS.get(result.omnibus, "")),
        omnibus_p=None if result.pvalue is None or np.isnan(result.pvalue) else float(result.pvalue),
    )


def distinct(labels: pd.Index) -> list[str]:
    """Labels as text, each once.

    >>> distinct(pd.Index(["A", 1, "A"]))
    ['A', '1', 'A (2)']
    """
    names = pd.Series([format_level(label) for label in labels], dtype=object)
    before = names.groupby(names).cumcount()
    return [name if count == 0 else f"{name} ({count + 1})" for name, count in zip(names, before, strict=True)]


# ---------------------------------------------------------------------- figures


def plot_stats(result: RankResult, *, allow_insignificant: bool, ax: Axes | None, width: float | None) -> Axes:
    """Means with intervals where means are compared by one variance, else the diagram."""
    if result.omnibus == "bayes":
        raise ArgumentError(
            "plot_stats draws frequentist results, and this is Bayesian. Use plot_posterior_maps(result)."
        )
    if not (allow_insignificant or is_significant(result)):
        raise ArgumentError(
            f"result is not significant (p = {result.pvalue}, alpha = {result.alpha:g}), so a figure of differences "
            "could mislead. To draw it all the same, pass allow_insignificant=True."
        )
    if ax is not None and width is not None:
        warnings.warn("width is not used, because ax says where to draw.", stacklevel=3)
    if result.omnibus == "ttest" or result.posthoc == "tukeyhsd":
        return ci_plot(result, True, ax, width)
    return cd_diagram(result, _best_first(result)[1] == "minimize", ax, width)  # with the best at the right


def cd_diagram(result: RankResult, reverse: bool, ax: Axes | None, width: float | None) -> Axes:
    """The critical-difference diagram; with `reverse` high values, of ranks the worst, are on the left."""
    return diagram(decisions(result), reverse, ax, width)


def diagram(decisions: Decisions, reverse: bool, ax: Axes | None, width: float | None) -> Axes:
    """A diagram, maybe in a mirror: texts keep to the side of their anchor, and the arrow shows where it did."""
    from lmemtest.plots.cd_diagrams import axes_of_width, cd_diagram

    if ax is None and width is not None:
        ax = axes_of_width(decisions, width)
    ax = cd_diagram(decisions, ax=ax)
    if reverse:
        ax.invert_xaxis()
        drawn, mirrored = BETTER_END.get(decisions.direction or "", ("", ""))
        for text in ax.texts:
            text.set_horizontalalignment(OPPOSITE[text.get_horizontalalignment()])
            if text.get_text() == drawn:
                text.set_text(mirrored)
    return ax


def ci_plot(result: RankResult, reverse: bool, ax: Axes | None, width: float | None) -> Axes:
    """Means with their intervals in the order of `plot_order` or `rankdf`, with `reverse` from the top."""
    from lmemtest.plots.posterior import draw_intervals

    table, names = result.rankdf, distinct(result.rankdf.index)
    order = result.plot_order
    rows = np.arange(len(table)) if order is None else table.index.get_indexer(pd.Index(order))
    rows = rows if reverse else rows[::-1]
    centre = "mean" if "mean" in table.columns else "median"
    letters = decisions(result).letters if result.posthoc == "tukeyhsd" else {}
    return draw_intervals(
        table.iloc[rows].rename(columns={centre: "estimate", "ci_lower": "ci_low", "ci_upper": "ci_high"}),
        [names[row] for row in rows],
        label=_axis_label(result, centre.capitalize()),
        letters=tuple(letters[names[row]] for row in rows) if letters else (),
        ax=ax,
        width=width,
    )


def _axis_label(result: RankResult, centre: str) -> str:
    """What the intervals are, and what tells whether populations differ."""
    if result.posthoc == "tukeyhsd":
        return (
            f"{centre} with comparison interval: two that do not overlap, and share no letter, differ "
            f"significantly (Tukey HSD, alpha = {written(result.alpha, '.3g')})."
        )
    label = f"{centre}, {written(100.0 * (1.0 - result.alpha / len(result.rankdf)), '.4g')} % CI"
    if result.pvalue is None:
        return label
    test = TESTS.get(result.omnibus, result.omnibus).capitalize()
    return f"{label}\n{test}: {p_text(result.pvalue)}; overlap of the intervals is no test."


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
    from lmemtest.plots.posterior import draw_posterior_maps

    k = len(result.posterior_matrix)
    probabilities, decided = np.full((3, k, k), np.nan), np.zeros((k, k), dtype=np.intp)
    chances, decisions = (m.to_numpy(dtype=object) for m in (result.posterior_matrix, result.decision_matrix))
    for i, j in combinations(range(k), 2):
        probabilities[:, i, j] = chances[i, j][::-1]  # there of B beside A
        decided[i, j] = OF_A.get(decisions[i, j], 0)
    look: dict[str, Any] = {"width": width, "cmaps": cmaps, "annot_colors": annot_colors, "axes": axes}
    return draw_posterior_maps(distinct(result.posterior_matrix.index), probabilities, decided, **look)


def save(result: RankResult, folder: str, prefix: str) -> str | None:
    """The figure of a report as a PDF file; its path, or None for a result that has none."""
    from lmemtest.plots import detached_figures

    if result.omnibus == "bayes" or not is_significant(result):
        return None
    path = f"{folder}{'' if not folder or folder.endswith('/') else '/'}{prefix}stat_results.pdf"
    with detached_figures():
        ax = plot_stats(result, allow_insignificant=False, ax=None, width=None)
        ax.figure.figure.savefig(path)
    return path
