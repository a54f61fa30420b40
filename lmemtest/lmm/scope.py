"""What a table with a design tells the models of it; a plain dataframe has nothing to tell.

`lmm` knows columns and no benchmarks. A table that knows more, such as `lmemtest.Runs`, has an attribute `scope` that
answers by column: which factor is compared and which end of the response is better, which rows are independent of each
other, how means are to be averaged, what kind of score the response is. This protocol is all that `lmm` asks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

if TYPE_CHECKING:
    import pandas as pd

    from lmemtest.core.arrays import Array, Mask
    from lmemtest.lmm.cells import Groups, Transform


Kind = Literal["two-valued", "ranks", "capped", "min-max", "proportion", "percent", "count", "positive", "general"]
EQUAL_BY_NATURE: tuple[Kind, ...] = ("two-valued", "ranks", "count")  # two algorithms often have the same score

_PENALTY = 2.0  # a limit this far above the next score is a penalty: PAR2 is the smallest that is in use
_ROUNDING = 1e-9


# ----------------------------------------------------------------------------------------------------- kinds of scores


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
    logarithm : bool
        Whether scores are logarithms, so that what is twice as large is larger by log 2.
    """

    kind: Kind
    evidence: str
    low: float
    high: float
    capped: tuple[tuple[Any, int, float], ...] = ()
    below: float = float("nan")
    logarithm: bool = False

    def times(self, factor: float, score: float) -> float:
        """The score of what is so many times as large."""
        return score + math.log(factor) if self.logarithm else factor * score

    @property
    def penalised(self) -> bool:
        """Whether runs at the limit got a penalty, as in PAR2 and PAR10: no other score comes near theirs."""
        return self.kind == "capped" and self.high >= self.times(_PENALTY, self.below)

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


# -------------------------------------------------------------------------------------------------------- the protocol


class Scope(Protocol):
    """What is known of the columns of a table beyond their values."""

    # ------------------------------------------------------------------ columns

    @property
    def response(self) -> str:
        """The column of the response."""

    @property
    def measured(self) -> str:
        """What it is in words, where its name does not say it."""

    @property
    def direction(self) -> str:
        """Which end of it is better, "minimize" or "maximize"."""

    @property
    def compared(self) -> str:
        """The factor whose levels are compared."""

    @property
    def roster(self) -> tuple[str, ...]:
        """Its levels by name in the whole table, of which this one may be a part, in their order."""

    @property
    def cluster(self) -> str | None:
        """The column whose levels are independent of each other."""

    @property
    def repeat(self) -> str | None:
        """The column that numbers repetitions."""

    # ------------------------------------------------------------------ the table

    def check_response(self, name: str) -> None:
        """Refuse a response that is not one of this table but of one that is made of it."""

    def summarised(self, keys: tuple[str, ...], response: str, transform: Transform | None) -> Groups | None:
        """The response by some columns, as far as it is known; None where the table has to be asked."""

    def require_unchanged(self, groups: Groups) -> None:
        """Refuse an answer of a table that has changed since it was first asked."""

    def refuse(self, groups: Groups) -> None:
        """Refuse groups with missing or infinite responses, in words of the table."""

    def table(self, columns: Sequence[str]) -> pd.DataFrame | None:
        """The single rows by some columns, the response among them; None where the table has to be asked."""

    # ------------------------------------------------------------------ means

    def clusters(self, terms: Iterable[set[str]], fixed: Iterable[set[str]]) -> tuple[str, ...] | None:
        """The columns of the units that are independent of each other in a model with these random and fixed terms."""

    def default_weights(self, averaged: Sequence[str]) -> str | None:
        """How to average over these columns; None for equal weights."""

    def check_weights(self, weights: str) -> None:
        """Refuse "benchmark" and "family" where the table lacks what they count."""

    def amounts(self, weights: str, factors: Sequence[str]) -> tuple[pd.DataFrame, Array]:
        """Rows with levels of the factors, and how much each counts."""

    def met(self, levels: Sequence[Any]) -> Mask | None:
        """Which two of the levels that are compared can be compared within a cluster; None where all can."""

    @property
    def reference(self) -> Any:
        """The level from which responses are differences, so that its own is 0 by definition; None without."""

    def zero_at(self, factors: Sequence[str], numeric: Sequence[str], limit: float) -> set[tuple[Any, ...]]:
        """Combinations of factors at which the reference is 0, but for `limit`, wherever it was measured."""

    # ------------------------------------------------------------------ diagnostics

    @property
    def kind(self) -> ScoreKind:
        """What kind of score the response is."""

    def one_scale(self) -> str:
        """How clusters are put on one scale, with what is left of their differences; empty where nothing does it."""

    def scatter_of_repeats(self, transform: Callable[[Any], Any] | None) -> pd.DataFrame:
        """Scatter between repetitions by cluster: ``benchmark``, ``residual_sd``, ``df``."""

    @property
    def place(self) -> set[str]:
        """The columns of the cells that are repeated."""

    @property
    def along(self) -> set[str]:
        """The column along which a repetition has several rows, where all have the same ones."""


def scope_of(data: Any) -> Scope | None:
    """What a table tells of its columns; None of a plain dataframe."""
    return data.scope if hasattr(type(data), "scope") else None  # of the class: a dataframe may have such a column
