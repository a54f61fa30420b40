"""Whether a comparison differs between two horizons: contrasts of contrasts, by the runs' own changes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.model import fit_lmm
from lmemtest.studies.budget.horizon_scores import Curves, HorizonScores
from lmemtest.studies.budget.horizon_tests import Family, families_of, is_shown
from lmemtest.studies.modelling.recommend import recommend
from lmemtest.words import format_number, format_p

if TYPE_CHECKING:
    from lmemtest.data.runs import Runs
    from lmemtest.model import LmmFit

COLUMNS = (
    "earlier",
    "later",
    "left",
    "right",
    "estimate_earlier",
    "estimate_later",
    "change",
    "se",
    "df",
    "p_value",
    "p_adjusted",
    "significant",
    "ci_low",
    "ci_high",
    "pattern",
)
_EXAMPLES = 3  # of pairs that differ at one horizon only: more would bury the changes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Changes:
    """Changes of all pairwise differences between each two horizons.

    Attributes
    ----------
    table : pandas.DataFrame
        One row per pair of horizons and pair of algorithms, with the columns `COLUMNS`.
    formula : str or None
        Of the first change of a run; None if there is nothing to fit.
    notes : tuple of str
    """

    table: pd.DataFrame
    formula: str | None
    notes: tuple[str, ...] = ()


def scored_runs(curves: Curves, scores: np.ndarray, name: str) -> Runs:
    """A table with one row per run and the given score, with the roles of the runs but for the budget."""
    runs = curves.runs
    roles = {**runs.roles(), "score": name, "budget": None}
    return type(runs)(curves.keys.assign(**{name: scores}), **roles)


def compare_changes(
    curves: Curves,
    at: Sequence[HorizonScores],
    comparisons: Sequence[pd.DataFrame],
    *,
    adjust: str | None,
    across: str,
    alpha: float,
    ddf: str,
) -> Changes:
    """Test the change of each pairwise difference between each two horizons of which none is a part of the other.

    Parameters
    ----------
    curves : Curves
    at : sequence of HorizonScores
    comparisons : sequence of pandas.DataFrame
        The table of pairs at each horizon.
    adjust, across, alpha, ddf
        As in `families_of`; the families are the pairs of horizons.

    Returns
    -------
    Changes
    """
    places = [(i, j) for i, j in combinations(range(len(at)), 2) if not _one_in_the_other(at[i], at[j])]
    if not places:
        return Changes(table=pd.DataFrame(columns=list(COLUMNS)), formula=None)
    moving: list[tuple[int, int]] = []
    notes: list[str] = []
    for i, j in places:
        change = at[j].scores - at[i].scores
        flat = np.ptp(change) <= 1e-12 * max(np.abs(at[i].scores).max(), np.abs(at[j].scores).max())
        if flat:
            notes.append(_flat_note(at[i], at[j]))
        else:
            moving.append((i, j))
    fits = [_fit(curves, at[j].scores - at[i].scores) for i, j in moving]
    families = families_of(fits, curves.runs.algorithm, adjust=adjust, across=across, alpha=alpha, ddf=ddf)
    found = dict(zip(moving, families, strict=True))
    parts = [_rows((i, j), at, comparisons, found.get((i, j))) for i, j in places]
    return Changes(
        table=pd.concat(parts, ignore_index=True),
        formula=fits[0].formula if fits else None,
        notes=tuple(notes),
    )


def overlapping(places: Sequence[tuple[str, float, float]]) -> frozenset[tuple[str, str]]:
    """Labels of horizons that overlap, so that none is later than the other.

    Parameters
    ----------
    places : sequence of (label, start, end)

    Returns
    -------
    frozenset of tuple of str
        In the order of `places`.
    """
    return frozenset(
        (first[0], second[0])
        for first, second in combinations(places, 2)
        if max(first[1], second[1]) <= min(first[2], second[2])
    )


def _flat_note(first: HorizonScores, second: HorizonScores) -> str:
    if overlapping([(one.label, one.start, one.end) for one in (first, second)]):
        what = f"All runs differ by the same amount between {first.label} and {second.label}"
    else:
        what = f"All runs change by the same amount from {first.label} to {second.label}"
    return f"{what}: no test is needed."


def _one_in_the_other(first: HorizonScores, second: HorizonScores) -> bool:
    """Whether a horizon is a part of another one, which says little beside the other changes."""
    inside = first.start >= second.start and first.end <= second.end
    return inside or (second.start >= first.start and second.end <= first.end)


def _fit(curves: Curves, change: np.ndarray) -> LmmFit:
    """The recommended model of the changes themselves: benchmarks may differ less in them than in the scores."""
    name = f"{curves.runs.score}_change"
    while name in curves.keys.columns:
        name += "_"
    table = scored_runs(curves, change, name)
    return fit_lmm(recommend(table).formula, table)


def _rows(
    place: tuple[int, int],
    at: Sequence[HorizonScores],
    comparisons: Sequence[pd.DataFrame],
    family: Family | None,
) -> pd.DataFrame:
    early, late = (comparisons[i] for i in place)
    if family is None:
        frame = early[["left", "right"]].assign(
            **dict.fromkeys(("estimate", "se", "ci_low", "ci_high"), 0.0),
            **dict.fromkeys(("df", "p_value", "p_adjusted"), np.nan),
            significant=pd.array([False] * len(early), dtype="boolean"),  # the same scores: there is no change to test
        )
    else:
        frame = family.table()
    frame = frame.rename(columns={"estimate": "change"}).assign(
        earlier=at[place[0]].label,
        later=at[place[1]].label,
        estimate_earlier=early["estimate"].to_numpy(),
        estimate_later=late["estimate"].to_numpy(),
    )
    shown = zip(map(is_shown, early["significant"]), map(is_shown, late["significant"]), strict=True)
    frame["pattern"] = [_pattern(row, *both) for row, both in zip(frame.to_dict("records"), shown, strict=True)]
    return frame[list(COLUMNS)]


def _pattern(row: dict[Any, Any], early: bool, late: bool) -> str:
    """What a change means for the comparison; "reverses" only if both signs are certain."""
    if not is_shown(row["significant"]):
        return "not shown"
    before, after = row["estimate_earlier"], row["estimate_later"]
    if before * after < 0:
        return "reverses" if early and late else "changes"
    return "grows" if abs(after) > abs(before) else "shrinks"


# ---------------------------------------------------------------------- in words


def change_sentences(
    changes: pd.DataFrame,
    comparisons: pd.DataFrame,
    direction: str,
    overlaps: frozenset[tuple[str, str]] = frozenset(),
) -> tuple[str, ...]:
    """What changes between horizons, and which contrasts between horizons must not be read as changes.

    Parameters
    ----------
    changes : pandas.DataFrame
        ``Changes.table``.
    comparisons : pandas.DataFrame
        Pairs at all horizons, with a column ``horizon``.
    direction : {"minimize", "maximize"}
    overlaps : frozenset of tuple of str
        From `overlapping`: of these nothing is said about before and after.

    Returns
    -------
    tuple of str
    """
    if not len(changes):
        return ()
    verdicts = {
        (row["horizon"], row["left"], row["right"]): _verdict(row, direction) for row in comparisons.to_dict("records")
    }
    changed, only_one, silent = [], [], 0
    for row in changes.to_dict("records"):
        early = verdicts[row["earlier"], row["left"], row["right"]]
        late = verdicts[row["later"], row["left"], row["right"]]
        if is_shown(row["significant"]):
            apart = (row["earlier"], row["later"]) not in overlaps
            changed.append(_changed(row, early, late, direction, in_time=apart))
        elif (early is None) != (late is None):
            only_one.append(_not_a_change(row, early, late))
        else:
            silent += 1
    out = [*changed, *only_one[:_EXAMPLES]]
    if len(only_one) > _EXAMPLES:
        out.append(f"The same holds for {len(only_one) - _EXAMPLES} more pairs that differ at one horizon only.")
    if silent:
        start = "For the other" if out else "For all"
        which = f"{start} {silent} comparisons" if silent > 1 else f"For {'one other' if out else 'the one'} comparison"
        out.append(f"{which} of two algorithms at two horizons no change is shown.")
    return tuple(out)


def _verdict(row: dict[Any, Any], direction: str) -> str | None:
    """The better of a pair at one horizon, None if no difference is shown."""
    if not is_shown(row["significant"]):
        return None
    left_better = (row["estimate"] < 0) == (direction == "minimize")
    return str(row["left"] if left_better else row["right"])


def _changed(row: dict[Any, Any], early: str | None, late: str | None, direction: str, *, in_time: bool) -> str:
    gains = (row["change"] < 0) == (direction == "minimize")
    winner, loser = (row["left"], row["right"]) if gains else (row["right"], row["left"])
    sign = np.sign(row["change"])
    low, high = sorted((sign * row["ci_low"], sign * row["ci_high"]))
    what = (
        f"From {row['earlier']} to {row['later']} {winner} gains on {loser}"
        if in_time
        else f"Over {row['later']} {winner} does better against {loser} than over {row['earlier']}, which overlaps it,"
    )
    return (
        f"{what} by {format_number(abs(row['change']))} "
        f"(interval {format_number(low)} to {format_number(high)}, {_p(row['p_adjusted'])}): "
        f"{_before_and_after(row, early, late)}"
    )


def _before_and_after(row: dict[Any, Any], early: str | None, late: str | None) -> str:
    if early is None and late is None:
        return "neither is shown to be better at either."
    if early == late:
        return f"{early} is better at both."
    if early is not None and late is not None:
        return f"{early} is better at {row['earlier']}, {late} at {row['later']}."
    where, other = (row["earlier"], row["later"]) if early is not None else (row["later"], row["earlier"])
    return f"{early or late} is better at {where}, no difference is shown at {other}."


def _not_a_change(row: dict[Any, Any], early: str | None, late: str | None) -> str:
    where, other = (row["earlier"], row["later"]) if early is not None else (row["later"], row["earlier"])
    better = early or late
    rest = row["right"] if better == row["left"] else row["left"]
    return (
        f"{better} is better than {rest} at {where} and not shown to be at {other}, but the difference does not change "
        f"significantly ({_p(row['p_adjusted'])}): this does not show that it depends on the budget."
    )


def _p(p: float) -> str:
    text = format_p(p)
    return f"p{text}" if text.startswith("<") else f"p={text}"
