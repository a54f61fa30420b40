"""What is drawn of decisions, their words, and the conversion of everything that holds or makes them."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from lmemtest.bench.ranking.ranking import Ranking
from lmemtest.core.arrays import Array
from lmemtest.core.hints import Guided
from lmemtest.core.options import ADJUSTMENT_NAMES, ERROR_NAMES
from lmemtest.core.words import format_level, listed, p_text, suggest
from lmemtest.errors import ArgumentError
from lmemtest.lmm.means.comparisons import Comparisons
from lmemtest.lmm.means.decisions import Decisions
from lmemtest.lmm.means.given import given_counts, given_decisions, given_means
from lmemtest.plots import _style

_OPTIONS = tuple(inspect.signature(Decisions.of).parameters)[2:]


def as_decisions(given: Any, decisions: Any, options: Mapping[str, Any], *, name: str = "decisions") -> Decisions:
    """The one conversion: what is drawn sees a `Decisions` only.

    Whatever holds one is taken for it: an analysis, an evaluation, or comparisons and means, which make it when asked.
    """
    if not isinstance(given, (Decisions, Ranking)) and isinstance(given, Guided) and hasattr(given, "decisions"):
        given = given.decisions() if callable(given.decisions) else given.decisions
    if isinstance(given, (Decisions, Ranking)):
        if decisions is not None or options:
            what = "decisions" if decisions is not None else next(iter(options))
            raise ArgumentError(f"{what} is for means from elsewhere; {name} holds its own decisions. Leave it out.")
        return given if isinstance(given, Decisions) else _of_ranking(given)
    if decisions is None:
        raise ArgumentError(
            f"{name} must be the result of decisions() or rank(), or means beside a matrix of their decisions, got "
            f"{type(given).__name__}."
        )
    for option in options:
        if option not in _OPTIONS:
            raise ArgumentError(f"There is no option {option!r} beside {listed(_OPTIONS)}.{suggest(option, _OPTIONS)}")
    return Decisions.of(given, decisions, **options)


def _of_ranking(ranking: Ranking) -> Decisions:
    """The decisions of a ranking, with the intervals of its means, and what made them where these are no tests."""
    found = ranking.decisions
    if ranking.method == "bayesian":
        above = f"posterior probability above {1.0 - ranking.alpha:g}"
        found = replace(found, posterior=True, test=f"{found.test}, {above}", adjust="", alpha=math.nan)
    table = ranking.table.set_index("algorithm").reindex(list(found.levels))
    if found.ci_low is None and "mean" in table and found.statistic != "mean rank":
        low, high = (tuple(table[end].astype(float)) for end in ("ci_low", "ci_high"))
        found = replace(found, ci_low=low, ci_high=high, level=1.0 - ranking.alpha)
    return found


def checked_limits(limits: object) -> tuple[float, float] | None:
    """Two scores in ascending order, or None."""
    if limits is None:
        return None
    try:
        low, high = map(float, limits)  # type: ignore[call-overload]
    except (TypeError, ValueError):
        low = high = math.nan
    if not low < high or math.isinf(low) or math.isinf(high):
        raise ArgumentError(f"limits must be two scores in ascending order, such as (0.0, 1.0), got {limits!r}.")
    return low, high


READINGS = {"minimize": " (lower is better)", "maximize": " (higher is better)"}
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
    matrix, levels = decisions, given_means(given)[0]  # the order of an array without names
    decisions = as_decisions(given, matrix, options, name=name)
    p, has_p = given_decisions(matrix, levels)
    won = None if wins is None else given_counts(wins, levels, "wins")
    tied = np.zeros(p.shape) if ties is None else given_counts(ties, levels, "ties")
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


def decided_by(decisions: Decisions, *, level: bool = True) -> str:
    """Test, standard errors, adjustment and maybe level of the decisions of decisions, as far as they are known."""
    adjustment = adjustment_name(decisions.adjust) if decisions.adjust else ""
    named = decisions.test.lower()
    if adjustment.lower() in named or (decisions.adjust == "tukey" and "nemenyi" in named):  # which is Tukey's of ranks
        adjustment = ""
    alpha = f"α = {decisions.alpha:.3g}" if level and not math.isnan(decisions.alpha) else ""
    errors = ERROR_NAMES.get(decisions.errors)
    parts = [
        _style.one_line(decisions.test) if decisions.test else "",
        _style.nobreak(adjustment),
        f"{errors} standard errors" if errors else "",
        _style.nobreak(alpha),
    ]
    return ", ".join(part for part in parts if part) or "as given"


def omnibus_text(decisions: Decisions) -> str:
    """A warning if a test of all levels together is not significant, else nothing."""
    if decisions.omnibus_p is None or decisions.omnibus_significant:
        return ""
    return f"Omnibus test: not significant, {p_text(decisions.omnibus_p)}."


def adjustment_name(name: str) -> str:
    """The name of an adjustment by itself: what is in brackets is left to tables."""
    return "unadjusted" if name == "none" else ADJUSTMENT_NAMES.get(name, name).partition(" (")[0]
