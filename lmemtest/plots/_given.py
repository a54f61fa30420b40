"""What is drawn of decisions: a `Decisions`, that of a ranking, or means beside a matrix from any other test."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from lmemtest.bench.ranking.ranking import Ranking
from lmemtest.core.hints import Guided
from lmemtest.core.words import listed, rank_span, suggest
from lmemtest.errors import ArgumentError
from lmemtest.lmm.means.decisions import Decisions

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


def aside(decisions: Decisions, levels: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """What stands beside the levels of a figure, and how it is read: letters of a few levels, ranks of many."""
    if decisions.lettered:
        verb = "no difference is decided" if decisions.posterior else "no significant difference"
        return tuple(decisions.letters[level] for level in levels), f"that share a letter: {verb}"
    place = {level: i for i, level in enumerate(decisions.levels)}
    ends = [(decisions.rank_low[place[level]], decisions.rank_high[place[level]]) for level in levels]
    return tuple(rank_span(*pair) for pair in ends), "at the right: the ranks that are left open"


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
