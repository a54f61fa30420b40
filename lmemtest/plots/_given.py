"""What is drawn of decisions, their words, and the conversion of everything that holds or makes them."""

from __future__ import annotations

import inspect
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from lmemtest.bench.ranking.ranking import Ranking
from lmemtest.core.arrays import Array
from lmemtest.core.hints import Guided
from lmemtest.core.options import ADJUSTMENT_NAMES, ERROR_NAMES
from lmemtest.core.words import format_level, listed, p_text, rank_span, suggest
from lmemtest.errors import ArgumentError
from lmemtest.lmm.means.comparisons import Comparisons, intervals_of
from lmemtest.lmm.means.decisions import Decisions
from lmemtest.lmm.means.external import external_counts, external_decisions, external_means
from lmemtest.plots import _style

_OPTIONS = tuple(inspect.signature(Decisions.of).parameters)[2:]


def as_decisions(subject: Any, decisions: Any, options: Mapping[str, Any], *, name: str = "decisions") -> Decisions:
    """The one conversion: what is drawn sees a `Decisions` only.

    Whatever holds one is taken for it: an analysis, an evaluation, or comparisons and means, which make it when asked.
    """
    if not isinstance(subject, (Decisions, Ranking)) and isinstance(subject, Guided) and hasattr(subject, "decisions"):
        subject = subject.decisions() if callable(subject.decisions) else subject.decisions
    if isinstance(subject, (Decisions, Ranking)):
        if decisions is not None or options:
            what = "decisions" if decisions is not None else next(iter(options))
            raise ArgumentError(f"{what} is for means from elsewhere; {name} holds its own decisions. Leave it out.")
        return subject if isinstance(subject, Decisions) else _of_ranking(subject)
    if decisions is None:
        raise ArgumentError(
            f"{name} must be the result of decisions() or rank(), or means beside a matrix of their decisions, got "
            f"{type(subject).__name__}."
        )
    for option in options:
        if option not in _OPTIONS:
            raise ArgumentError(f"There is no option {option!r} beside {listed(_OPTIONS)}.{suggest(option, _OPTIONS)}")
    return Decisions.of(subject, decisions, **options)


def _of_ranking(ranking: Ranking) -> Decisions:
    """The decisions of a ranking, with the intervals of its means, and what made them where these are no tests."""
    decisions = ranking.decisions
    if ranking.method == "bayesian":
        above = f"posterior probability above {1.0 - ranking.alpha:g}"
        decisions = replace(decisions, posterior=True, test=f"{decisions.test}, {above}", adjust="", alpha=math.nan)
    table = ranking.table.set_index("algorithm").reindex(list(decisions.levels))
    if decisions.ci_low is None and "mean" in table and decisions.statistic != "mean rank":
        low, high = (tuple(table[end].astype(float)) for end in ("ci_low", "ci_high"))
        decisions = replace(decisions, ci_low=low, ci_high=high, level=1.0 - ranking.alpha)
    return decisions


def aside(decisions: Decisions, levels: Sequence[str], what: str) -> tuple[tuple[str, ...], str]:
    """What stands beside the levels of a figure, and how it is read: letters of a few levels, ranks of many.

    `what` are the levels, at the beginning of a sentence.
    """
    if decisions.lettered:
        verb = "no difference is decided" if decisions.posterior else "no significant difference"
        return tuple(decisions.letters[level] for level in levels), f"{what} that share a letter: {verb}"
    place = {level: i for i, level in enumerate(decisions.levels)}
    ends = [(decisions.rank_low[place[level]], decisions.rank_high[place[level]]) for level in levels]
    return tuple(rank_span(*pair) for pair in ends), "At the right: the ranks that the tests leave possible"


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


READINGS = {direction: f" ({words})" for direction, words in _style.BETTER.items()}
ON_RANKS = ("nemenyi", "conover")  # tests whose differences are those of mean ranks
_SOURCE = "a ranking, pairs(), decisions, or means beside a matrix of their decisions"


def pair_matrix(
    subject: Any, decisions: Any, wins: Any, ties: Any, options: Mapping[str, Any], *, name: str = "comparisons"
) -> tuple[Decisions, dict[str, Array], tuple[str, str, str | None]]:
    """Of a ranking, of comparisons, of decisions, or of means with decisions from anywhere: the decisions; the row
    against the column, ``(k, k)`` each; unit and name of the differences, and their direction.

    The matrices, in the order of the levels and NaN where nothing is known, are "difference" (row minus column), and as
    far as there are any the adjusted p-values "p", the posterior probability that the row is better "chance", and
    counts of "wins" and "ties".
    """
    if isinstance(subject, (Ranking, Comparisons, Decisions)):
        if any(value is not None for value in (decisions, wins, ties)) or options:
            raise ArgumentError(f"decisions, wins, ties and options are for means from elsewhere; {name} has its own.")
        return _of_result(subject)
    matrix, levels = decisions, external_means(subject)[0]  # the order of an array without names
    decisions = as_decisions(subject, matrix, options, name=name)
    p, has_p = external_decisions(matrix, levels)
    order = np.ix_(*[[levels.index(level) for level in decisions.levels]] * 2)
    cells = {"difference": _differences(decisions)}
    if has_p:
        cells["p"] = p[order]
    if wins is not None:
        cells["wins"] = external_counts(wins, levels, "wins")[order]
        cells["ties"] = np.zeros(p.shape) if ties is None else external_counts(ties, levels, "ties")[order]
    elif ties is not None:
        raise ArgumentError("ties needs counts of wins: give wins, too.")
    return decisions, cells, (_unit(decisions), f"difference of {decisions.statistic}s", decisions.direction)


def _of_result(
    subject: Ranking | Comparisons | Decisions,
) -> tuple[Decisions, dict[str, Array], tuple[str, str, str | None]]:
    if isinstance(subject, Comparisons):
        if subject.kind != "pairs":
            raise ArgumentError(f"comparisons must be {_SOURCE}, got comparisons of the kind {subject.kind!r}.")
        if subject.by:
            raise ArgumentError(
                f"A matrix shows one group, but these pairs are in groups by {', '.join(subject.by)}. Select one "
                f"first: pairs.select({first_group(subject)})."
            )
        decisions, table = subject.decisions(subject.alpha), subject.table
    elif isinstance(subject, Ranking):
        decisions, table = as_decisions(subject, None, {}), subject.pairs
    else:
        decisions, table = subject, pd.DataFrame({"left": [], "right": []})
    place = {level: i for i, level in enumerate(decisions.levels)}
    left, right = (table[side].map(place).to_numpy(dtype=np.intp) for side in ("left", "right"))
    cells = {} if "estimate" in table else {"difference": _differences(decisions)}
    # left against right from one column; right against left from another, or with the sign turned
    for name, one, other, sign in (
        ("difference", "estimate", "estimate", -1.0),
        ("p", "p_value", "p_value", 1.0),
        ("chance", "p_left", "p_right", 1.0),
        ("wins", "wins", "losses", 1.0),
        ("ties", "ties", "ties", 1.0),
    ):
        if one in table:
            cells[name] = np.full((len(place),) * 2, np.nan)
            cells[name][left, right] = table[one].to_numpy(dtype=float)
            cells[name][right, left] = sign * table[other].to_numpy(dtype=float)
    # what was estimated for a pair may be in units of the score although mean ranks give the order
    if isinstance(subject, Ranking) and "estimate" in table and subject.test not in ON_RANKS:
        return decisions, cells, (subject.score, "difference", subject.direction)
    return decisions, cells, (_unit(decisions), f"difference of {decisions.statistic}s", decisions.direction)


def first_group(pairs: Comparisons) -> str:
    """How to select the first of several groups."""
    return ", ".join(f"{name}={format_level(value)!r}" for name, value in pairs.estimates.groups()[0][0].items())


def _unit(decisions: Decisions) -> str:
    """What the differences of the means are measured in."""
    return decisions.statistic if decisions.statistic == "mean rank" else decisions.score


def _differences(decisions: Decisions) -> Array:
    means = np.asarray(decisions.means, dtype=float)
    out = np.asarray(means[:, None] - means[None, :])
    np.fill_diagonal(out, np.nan)
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


def interval_words(kind: str, level: float, *, several: bool) -> str:
    """What the intervals of differences are, with a percentage that no line parts."""
    return intervals_of(kind, level, several=several).replace(" %", "\u00a0%")


def adjustment_name(name: str) -> str:
    """The name of an adjustment by itself: what is in brackets is left to tables."""
    return "unadjusted" if name == "none" else ADJUSTMENT_NAMES.get(name, name).partition(" (")[0]
