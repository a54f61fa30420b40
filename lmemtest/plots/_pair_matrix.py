"""Every pair of algorithms, row against column: numbers of a result or of plain frames, and one set of decisions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from lmemtest.bench.ranking.ranking import Ranking
from lmemtest.core.arrays import Array
from lmemtest.core.words import format_level
from lmemtest.errors import ArgumentError
from lmemtest.lmm.means.comparisons import Comparisons
from lmemtest.lmm.means.decisions import Decisions
from lmemtest.lmm.means.external import external_counts, external_decisions, external_means
from lmemtest.plots._given import as_decisions

ON_RANKS = ("nemenyi", "conover")  # tests whose differences are those of mean ranks
_SOURCE = "a ranking, pairs(), decisions, or means beside a matrix of their decisions"


@dataclass(frozen=True, slots=True, kw_only=True)
class PairMatrix:
    """What is known of the row against the column, ``(k, k)`` each, in the order of the levels; NaN where nothing is.

    Decisions are those of the decisions alone.
    """

    decisions: Decisions
    difference: Array  # row minus column
    p: Array | None  # adjusted p-values
    chance: Array | None  # posterior probability that the row is better
    wins: Array | None
    ties: Array | None
    unit: str  # of the differences: "loss", "mean rank"
    what: str  # "difference of mean ranks"
    direction: str | None  # which differences are good

    @property
    def levels(self) -> tuple[str, ...]:
        return self.decisions.levels


def pair_matrix(
    given: Any, decisions: Any, wins: Any, ties: Any, options: Mapping[str, Any], *, name: str = "comparisons"
) -> PairMatrix:
    """The matrix of a ranking, of comparisons, of decisions, or of means with decisions from anywhere."""
    if isinstance(given, (Ranking, Comparisons, Decisions)):
        if any(value is not None for value in (decisions, wins, ties)) or options:
            raise ArgumentError(f"decisions, wins, ties and options are for means from elsewhere; {name} has its own.")
        return _of_result(given)
    matrix, levels = decisions, external_means(given)[0]  # the order of an array without names
    decisions = as_decisions(given, matrix, options, name=name)
    p, has_p = external_decisions(matrix, levels)
    won = None if wins is None else external_counts(wins, levels, "wins")
    tied = np.zeros(p.shape) if ties is None else external_counts(ties, levels, "ties")
    if won is None and ties is not None:
        raise ArgumentError("ties goes with counts of wins: give wins, too.")
    order = np.ix_(*[[levels.index(level) for level in decisions.levels]] * 2)
    return PairMatrix(
        decisions=decisions,
        difference=_differences(decisions),
        p=p[order] if has_p else None,
        chance=None,
        wins=None if won is None else won[order],
        ties=None if won is None else tied[order],
        unit=_unit(decisions),
        what=f"difference of {decisions.statistic}s",
        direction=decisions.direction,
    )


def _of_result(given: Ranking | Comparisons | Decisions) -> PairMatrix:
    if isinstance(given, Comparisons):
        if given.kind != "pairs":
            raise ArgumentError(f"comparisons must be {_SOURCE}, got comparisons of the kind {given.kind!r}.")
        if given.by:
            group = ", ".join(f"{n}={format_level(v)!r}" for n, v in given.estimates.groups()[0][0].items())
            raise ArgumentError(
                f"A matrix shows one group, but these pairs are in groups by {', '.join(given.by)}. Select one first: "
                f"pairs.select({group})."
            )
        decisions, table = given.decisions(given.alpha), given.table
    elif isinstance(given, Ranking):
        decisions, table = as_decisions(given, None, {}), given.pairs
    else:
        decisions, table = given, pd.DataFrame({"left": [], "right": []})
    fill = _Fill(decisions.levels, table)
    estimated = "estimate" in table
    # what was estimated for a pair may be in units of the score although mean ranks give the order
    scored = given if isinstance(given, Ranking) and estimated and given.test not in ON_RANKS else None
    return PairMatrix(
        decisions=decisions,
        difference=fill("estimate", turned=-1.0) if estimated else _differences(decisions),
        p=fill("p_value") if "p_value" in table else None,
        chance=fill("p_left", other="p_right") if "p_left" in table else None,
        wins=fill("wins", other="losses") if "wins" in table else None,
        ties=fill("ties") if "ties" in table else None,
        unit=_unit(decisions) if scored is None else scored.score,
        what=f"difference of {decisions.statistic}s" if scored is None else "difference",
        direction=decisions.direction if scored is None else scored.direction,
    )


def _unit(decisions: Decisions) -> str:
    """What the differences of the means are measured in."""
    return decisions.statistic if decisions.statistic == "mean rank" else decisions.score


def _differences(decisions: Decisions) -> Array:
    means = np.asarray(decisions.means, dtype=float)
    out = np.asarray(means[:, None] - means[None, :])
    np.fill_diagonal(out, np.nan)
    return out


@dataclass(frozen=True, slots=True)
class _Fill:
    """Columns of a table of pairs as matrices."""

    levels: tuple[str, ...]
    table: pd.DataFrame

    def __call__(self, column: str, *, other: str | None = None, turned: float = 1.0) -> Array:
        """Left against right from `column`; right against left from `other`, or from `column` times `turned`."""
        place = {level: i for i, level in enumerate(self.levels)}
        left, right = (self.table[side].map(place).to_numpy(dtype=np.intp) for side in ("left", "right"))
        out = np.full((len(place),) * 2, np.nan)
        out[left, right] = self.table[column].to_numpy(dtype=float)
        out[right, left] = turned * self.table[other or column].to_numpy(dtype=float)
        return out
