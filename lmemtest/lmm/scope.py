"""What a table with a design tells the models of it; a plain dataframe has nothing to tell.

`lmm` knows columns and no benchmarks. A table that knows more, such as `lmemtest.Runs`, has an attribute `scope` that
answers by column: which factor is compared and which end of the response is better, which rows are independent of each
other, how means are to be averaged. This protocol is all that `lmm` asks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from numpy.typing import NDArray

    from lmemtest.lmm.cells import Groups, Transform
    from lmemtest.lmm.score_kind import ScoreKind

__all__ = ["Scope", "scope_of"]


class Scope(Protocol):
    """What is known of the columns of a table beyond their values."""

    # ------------------------------------------------------------------ columns

    @property
    def response(self) -> str:
        """The column of the response."""

    @property
    def direction(self) -> str:
        """Which end of it is better, "minimize" or "maximize"."""

    @property
    def compared(self) -> str:
        """The factor whose levels are compared."""

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

    def clusters(self, terms: Iterable[set[str]]) -> tuple[str, ...] | None:
        """The columns of the units that are independent of each other in a model with these random terms."""

    def default_weights(self, averaged: Sequence[str]) -> str | None:
        """How to average over these columns; None for equal weights."""

    def check_weights(self, weights: str) -> None:
        """Refuse "benchmark" and "family" where the table lacks what they count."""

    def amounts(self, weights: str, factors: Sequence[str]) -> tuple[pd.DataFrame, NDArray[np.float64]]:
        """Rows with levels of the factors, and how much each counts."""

    def met(self, levels: Sequence[Any]) -> NDArray[np.bool_] | None:
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

    def scatter_of_repeats(self, response: str, transform: Callable[[Any], Any] | None) -> pd.DataFrame:
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
