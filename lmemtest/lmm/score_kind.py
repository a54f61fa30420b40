"""What kind of score a response is: right or wrong, ranks, times with a limit, shares, counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

if TYPE_CHECKING:
    from lmemtest.core.arrays import Array


__all__ = ["EQUAL_BY_NATURE", "Kind", "ScoreKind", "two_valued"]

Kind = Literal["two-valued", "ranks", "capped", "min-max", "proportion", "percent", "count", "positive", "general"]
EQUAL_BY_NATURE: tuple[Kind, ...] = ("two-valued", "ranks", "count")  # two algorithms often have the same score

_PENALTY = 2.0  # a limit this far above the next score is a penalty: PAR2 is the smallest that is in use
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreKind:
    """The kind of the scores of a table, and how it is seen.

    Attributes
    ----------
    kind : {"two-valued", "ranks", "capped", "min-max", "proportion", "percent", "count", "positive", "general"}
        Two different values; ranks within groups; a limit that several scores of several benchmarks equal; from 0 to 1
        on every benchmark; within 0 and 1; within 0 and 100 by name; whole numbers that repeat each other; positive
        over more than two powers of ten; none of these.
    evidence : str
        What was seen, in a sentence.
    low, high : float
        The smallest and the largest finite score; NaN without any.
    capped : tuple of (algorithm, rows, share)
        Scores at the limit of every algorithm, the largest share first; empty if there is no limit.
    below : float
        The largest score below the limit; NaN if there is no limit.
    """

    kind: Kind
    evidence: str
    low: float
    high: float
    capped: tuple[tuple[Any, int, float], ...] = ()
    below: float = float("nan")

    @property
    def penalised(self) -> bool:
        """Whether runs at the limit got a penalty, as in PAR2 and PAR10: no other score comes near theirs."""
        return self.kind == "capped" and self.high >= _PENALTY * self.below

    @property
    def equal_by_nature(self) -> bool:
        """Whether equal scores of two algorithms are what this kind of score brings."""
        return self.kind in EQUAL_BY_NATURE


def two_valued(n: Array, mean: Array, ss: Array, low: float, high: float) -> bool:
    """Whether every score behind counts, means and sums of squares is one of two values.

    A group of n scores has a sum of squares of at most n (mean - low)(high - mean), and this one only if all are ends.
    """
    if not high > low:
        return False
    m = (np.asarray(mean, dtype=float) - low) / (high - low)
    largest = n * m * (1.0 - m)
    return bool((np.abs(ss / (high - low) ** 2 - largest) <= _ROUNDING * n).all())
