"""Which populations of a result differ: one matrix, from which groups, reports and diagrams follow.

A `RankResult` has no p-values of pairs, but all that decides about them: the critical difference of mean ranks
(Nemenyi), intervals of means that do or do not overlap (Tukey), the p-value of two populations, or the decisions
themselves. So results built by hand are read like those of `autorank`.
"""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.compat.autorank.result import RankResult
from lmemtest.core.rounding import below, tie_order, tolerance
from lmemtest.core.words import format_level
from lmemtest.errors import ArgumentError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.lmm.means.decisions import Decisions

    Array = NDArray[np.float64]

POSTHOC_NAMES = {"nemenyi": "Nemenyi", "tukeyhsd": "Tukey HSD", "lmem": "mixed model, Tukey", "bayes": "signed-rank"}
OMNIBUS_NAMES = {"ttest": "paired t-test", "wilcoxon": "Wilcoxon signed-rank test"}


def differ(result: RankResult) -> NDArray[np.bool_]:
    """Pairs of rows of `rankdf` that differ significantly (Bayesian: decided to be smaller or larger)."""
    table = result.rankdf
    k = len(table)
    if result.decision_matrix is not None:
        return np.asarray(result.decision_matrix.isin(["smaller", "larger"]).to_numpy())
    if result.cd is not None:
        values, widths = table["meanrank"].to_numpy(dtype=float), np.full((k, k), float(result.cd))
    elif k == 2:
        return ~np.eye(2, dtype=bool) & bool(result.pvalue is not None and below(result.pvalue, result.alpha))
    else:
        values = centres(result).to_numpy(dtype=float)
        half = (table["ci_upper"] - table["ci_lower"]).to_numpy(dtype=float) / 2.0
        widths = half[:, None] + half
    distance = np.abs(values[:, None] - values)
    return np.asarray(distance > widths + tolerance(values))  # at the critical difference is not beyond it


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
    values = centres(result)
    order = best_first(result)
    apart = differ(result)[np.ix_(order, order)]
    if reverse:
        order, apart = order[::-1], apart[::-1, ::-1]
    return SortedRanks(values.iloc[order]), [values.index[i] for i in order], stretches(apart)


def best_first(result: RankResult) -> list[int]:
    """Rows of `rankdf` by what is compared, in the direction in which its rows are sorted."""
    values = centres(result).to_numpy(dtype=float)
    if centres(result).name == "meanrank":
        return tie_order(values)
    trend = float(np.dot(np.arange(len(values)) - (len(values) - 1) / 2.0, values))
    return tie_order(values, descending=trend < 0.0)


def stretches(apart: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """First and last position of the longest stretches of two or more without a pair that is apart.

    >>> stretches(np.array([[0, 0, 1], [0, 0, 0], [1, 0, 0]], dtype=bool))
    [(0, 1), (1, 2)]
    """
    found: list[tuple[int, int]] = []
    for first in range(len(apart)):
        last = first
        while last + 1 < len(apart) and not apart[first : last + 1, last + 1].any():
            last += 1
        if last > first and (not found or last > found[-1][1]):
            found.append((first, last))
    return found


def decisions(result: RankResult) -> Decisions:
    """The decisions of a result as this package draws and groups them, with names as text, each once."""
    from lmemtest.lmm.means.decisions import Decisions

    values = centres(result)
    names = distinct(result.rankdf.index)
    on_ranks = values.name == "meanrank"
    descending = best_first(result) != tie_order(values.to_numpy(dtype=float))
    return Decisions.of(
        dict(zip(names, values.to_numpy(dtype=float).tolist(), strict=True)),
        pd.DataFrame(differ(result), index=names, columns=names),
        direction="minimize" if on_ranks or not descending else "maximize",
        alpha=result.alpha,
        critical_difference=critical_difference(result),
        statistic="mean rank" if on_ranks else str(values.name),
        score="the populations",
        test=POSTHOC_NAMES.get(result.posthoc or "", OMNIBUS_NAMES.get(result.omnibus, "")),
        omnibus_p=None if result.pvalue is None or np.isnan(result.pvalue) else float(result.pvalue),
    )


def critical_difference(result: RankResult) -> float | tuple[float, float] | None:
    """Of mean ranks, or of means from their intervals; None where decisions have another source."""
    if result.cd is not None:
        return float(result.cd)
    if result.posthoc != "tukeyhsd":
        return None
    widths = (result.rankdf["ci_upper"] - result.rankdf["ci_lower"]).to_numpy(dtype=float)
    return (float(widths.min()), float(widths.max())) if widths.min() > 0.0 else None


def distinct(labels: pd.Index) -> list[str]:
    """Labels as text, each once.

    >>> distinct(pd.Index(["A", 1, "A"]))
    ['A', '1', 'A (2)']
    """
    seen: dict[str, int] = {}
    names = []
    for label in labels:
        text = format_level(label)
        seen[text] = seen.get(text, 0) + 1
        names.append(text if seen[text] == 1 else f"{text} ({seen[text]})")
    return names
