"""Pairwise tests in several families, a family per horizon, and the error over all of them.

Within a family p-values are adjusted for its pairs. Over families the level is shared as by Holm (1979): each of H
families is tested at alpha / H; one whose pairs are all significant hands its share on, so that the others are tested
at alpha / (H - 1), and so forth. As long as no true null hypothesis is rejected, the m families that hold one keep
their shares, so each is tested at alpha / m at most, and the chance of a false discovery in any of them is at most
alpha, whatever the dependence between families.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest._rounding import below, tolerance
from lmemtest.inference.distributions.student import two_sided_p
from lmemtest.inference.means.comparisons import Comparisons
from lmemtest.inference.means.contrasts import pairs
from lmemtest.inference.means.emmeans import emmeans
from lmemtest.inference.means.separation import Separation, separation
from lmemtest.words import listed

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from lmemtest.model import LmmFit

    Array = NDArray[np.float64]

ACROSS = ("holm", "none")
# Adjustments within a horizon that control the error of the whole family without random numbers.
WITHIN = ("stepdown", "tukey", "holm", "sidak", "bonferroni", "none")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Family:
    """The comparisons of one fit.

    Attributes
    ----------
    pairs : Comparisons
        P-values adjusted within the family; intervals at the level that the family is tested at.
    separation : Separation
        Decisions at `alpha`.
    alpha : float
        The level of this family.
    p_adjusted : (m,) float
        Adjusted within the family and over families: significant below the level of the whole.
    """

    pairs: Comparisons
    separation: Separation
    alpha: float
    p_adjusted: Array

    def table(self) -> pd.DataFrame:
        """One row per pair: left, right, estimate, se, df, p_value (of this test alone), p_adjusted, significant
        (missing without a test), ci_low, ci_high."""
        frame = self.pairs.to_frame()
        alone = two_sided_p(frame["t_ratio"].to_numpy(dtype=float), frame["df"].to_numpy(dtype=float))
        decision = self.separation.decision
        significant = [decision.loc[a, b] for a, b in zip(frame["left"], frame["right"], strict=True)]
        frame = frame.assign(p_value=alone, p_adjusted=self.p_adjusted, significant=significant)
        frame = frame.astype({"significant": "boolean"})
        columns = ["left", "right", "estimate", "se", "df", "p_value", "p_adjusted", "significant", "ci_low", "ci_high"]
        return frame[columns]


def families_of(
    fits: Sequence[LmmFit], algorithm: str, *, adjust: str | None, across: str, alpha: float, ddf: str
) -> list[Family]:
    """Compare the algorithms in each fit, with the error over all of them under control."""
    found = [pairs(emmeans(fit, algorithm, ddf=ddf), adjust=adjust, level=1.0 - alpha) for fit in fits]
    p_values = [result.table["p_value"].to_numpy(dtype=float) for result in found]
    adjusted, levels = share_level(p_values, alpha, across)
    return [_family(result, p, level) for result, p, level in zip(found, adjusted, levels, strict=True)]


def _family(found: Comparisons, p_adjusted: Array, alpha: float) -> Family:
    if found.level != 1.0 - alpha:
        half = found.half_widths(1.0 - alpha)
        estimate = found.table["estimate"]
        table = found.table.assign(ci_low=estimate - half, ci_high=estimate + half)
        found = replace(found, table=table, level=1.0 - alpha)
    return Family(pairs=found, separation=separation(found, alpha=alpha), alpha=alpha, p_adjusted=p_adjusted)


def is_shown(decision: Any) -> bool:
    """Whether a decision is a difference: one that is missing, without a test, is not."""
    return decision is True or (isinstance(decision, np.bool_) and bool(decision))


def leaders(found: Separation) -> tuple[str, ...]:
    """The levels that share the best mean: one, but for ties up to rounding."""
    means = np.array(found.means)
    rounding = tolerance(means, found.se)
    best = found.levels[0]
    tied = [
        name
        for name, distance in zip(found.levels, np.abs(means - means[0]), strict=True)
        if name == best or (distance <= rounding and not found.significant.loc[best, name])  # a tie needs no test
    ]
    return tuple(sorted(tied))


def best_sentence(found: Separation, where: str) -> str:
    """Who has the best mean, which others cannot be told from it, and which were not tested against it."""
    best = leaders(found)
    others = [name for name in found.levels if name not in best]
    start = f"{where} {listed(best[:-1], most=8)} and {best[-1]} share" if len(best) > 1 else f"{where} {best[0]} has"
    start += " the best mean"
    if not others:
        return f"{start}."
    alike = (~found.decision.loc[list(best), others]).fillna(False).astype(bool)
    untested = found.undecided.loc[list(best), others]
    ties = [name for name in others if alike[name].any()]
    silent = [name for name in others if untested[name].any() and name not in ties]
    if not silent and not ties:
        return f"{start}, significantly better than {'the other' if len(others) == 1 else 'all others'}."
    if not silent and len(ties) == len(others) and alike.all(axis=None):
        return f"{start}, not significantly different from {'the other' if len(others) == 1 else 'any other'}."
    parts = [start]
    if ties:
        whom = "it" if len(best) == 1 else "them" if alike[ties].all(axis=None) else "at least one of them"
        parts.append(f"not significantly different from {whom}: {listed(ties, most=8)}")
    if silent:
        whom = "it" if len(best) == 1 else "them" if untested[silent].all(axis=None) else "at least one of them"
        parts.append(f"no test against {whom} is possible for {listed(silent, most=8)}")
    return f"{'; '.join(parts)}."


def share_level(p_values: Sequence[Any], alpha: float, across: str) -> tuple[list[Array], list[float]]:
    """Adjusted p-values over families, and the level at which each family is tested.

    >>> adjusted, levels = share_level([[0.01, 0.02], [0.03, 0.4]], 0.05, "holm")
    >>> [p.tolist() for p in adjusted], levels
    ([[0.02, 0.04], [0.04, 0.4]], [0.025, 0.05])
    """
    given = [np.asarray(p, dtype=float) for p in p_values]
    if across == "none":
        return given, [alpha] * len(given)
    n = len(given)
    largest = np.array([np.max(p[~np.isnan(p)], initial=0.0) for p in given])  # a family without tests stops nobody
    order = np.argsort(largest, kind="stable")
    divisors = n - np.arange(n)
    # the level from which on the first j families are significant as a whole and hand on their shares
    handed_on = np.concatenate([[0.0], np.maximum.accumulate(divisors * largest[order])])
    done = int(np.sum(below(handed_on[1:], alpha)))
    adjusted: list[Array] = [np.empty(0)] * n
    levels = [0.0] * n
    for position, family in enumerate(order):
        steps = np.arange(position + 1)
        candidates = np.maximum(divisors[steps, None] * given[family], handed_on[steps, None])
        adjusted[family] = np.minimum(1.0, candidates.min(axis=0))
        levels[family] = float(alpha / divisors[min(position, done)])
    return adjusted, levels
