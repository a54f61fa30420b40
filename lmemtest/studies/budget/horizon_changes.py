"""Whether a comparison differs between two horizons: contrasts of contrasts, by the runs' own changes."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.model import fit_lmm
from lmemtest.studies.budget.horizon_scores import Curves, HorizonScores, scored_runs
from lmemtest.studies.budget.horizon_tests import Family, families_of, is_shown
from lmemtest.studies.modelling.recommend import recommend
from lmemtest.words import format_number, p_text

if TYPE_CHECKING:
    from lmemtest.model import LmmFit

COLUMNS = [
    *("earlier", "later", "left", "right", "estimate_earlier", "estimate_later", "change", "se", "df"),
    *("p_value", "p_adjusted", "significant", "ci_low", "ci_high", "pattern"),
]
_EXAMPLES = 3  # of pairs that differ at one horizon only: more would bury the changes


def compare_changes(
    curves: Curves,
    at: Sequence[HorizonScores],
    comparisons: Sequence[pd.DataFrame],
    *,
    adjust: str | None,
    across: str,
    alpha: float,
    ddf: str,
) -> tuple[pd.DataFrame, str | None, list[str]]:
    """Test the change of each pairwise difference between each two horizons of which none is a part of the other.

    The table with `COLUMNS`, the formula of the first change of a run (None if there is nothing to fit), and notes.
    """
    places = [(i, j) for i, j in combinations(range(len(at)), 2) if not (at[i].within(at[j]) or at[j].within(at[i]))]
    if not places:
        return pd.DataFrame(columns=COLUMNS), None, []
    moving: list[tuple[int, int]] = []
    notes: list[str] = []
    for i, j in places:
        change = at[j].scores - at[i].scores
        flat = np.ptp(change) <= 1e-12 * max(np.abs(at[i].scores).max(), np.abs(at[j].scores).max())
        if flat:
            what = "differ by the same amount between" if at[i].overlaps(at[j]) else "change by the same amount from"
            link = "and" if at[i].overlaps(at[j]) else "to"
            notes.append(f"All runs {what} {at[i].label} {link} {at[j].label}: no test is needed.")
        else:
            moving.append((i, j))
    fits = [_fit(curves, at[j].scores - at[i].scores) for i, j in moving]
    families = families_of(fits, curves.runs.algorithm, adjust=adjust, across=across, alpha=alpha, ddf=ddf)
    found = dict(zip(moving, families, strict=True))
    parts = [_rows((i, j), at, comparisons, found.get((i, j))) for i, j in places]
    return pd.concat(parts, ignore_index=True), fits[0].formula if fits else None, notes


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
    return frame[COLUMNS]


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
    """What changes between horizons, and which contrasts between horizons must not be read as changes."""
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
        f"(interval {format_number(low)} to {format_number(high)}, {p_text(row['p_adjusted'])}): "
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
        f"significantly ({p_text(row['p_adjusted'])}): this does not show that it depends on the budget."
    )
