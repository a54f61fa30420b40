"""Scores at a budget or over a window of budgets: one number per run, and how it came about.

`keys` has one row per run, `points` the scores of the runs over their budgets (`Study.curves`), and `common` says of
each budget, in rising order, whether all runs have a score there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from lmemtest.bench.checks.traces import broken_traces
from lmemtest.core.validate import is_finite, several
from lmemtest.core.words import format_level, listed
from lmemtest.errors import ArgumentError, DataError

if TYPE_CHECKING:
    from lmemtest.bench.data.runs import Runs
    from lmemtest.core.arrays import Array, Index, Mask


# Differences between each two horizons are fitted, 28 models at eight. More horizons are a curve.
MOST_HORIZONS = 8
_DEFAULT_HORIZONS = 4
_MOST_STEPS = 50  # budgets of a window at which curves are read off where runs have different ones
_REORDERED = "Horizons are in the order of their last budgets; a window comes after the horizons that lie in it."
_NOTHING_IN_COMMON = (
    "No budget is common to all runs, and the scores are not best-so-far curves (some get worse, or the seed is not "
    "known), so that the last score before a budget could stand in. Add scores at common budgets, or take the "
    "running best of each run over {budget}."
)


class Place(NamedTuple):
    """A budget, or a window of budgets with both ends."""

    start: float
    end: float

    @property
    def is_window(self) -> bool:
        return self.start != self.end

    @property
    def label(self) -> str:
        return "-".join(map(format_level, self if self.is_window else self[:1]))

    def holds(self, budgets: Array) -> Mask:
        """Which budgets lie in it."""
        return np.asarray((budgets >= self.start) & (budgets <= self.end))

    def within(self, other: Place) -> bool:
        """Whether it is a part of another one, so that a change between them says little beside the others."""
        return self.start >= other.start and self.end <= other.end

    def overlaps(self, other: Place) -> bool:
        """Whether they share a part of the range, so that none is later than the other."""
        return max(self.start, other.start) <= min(self.end, other.end)


def run_curves(runs: Runs) -> tuple[pd.DataFrame, pd.DataFrame, pd.Series[bool]]:
    """The runs, the points of their curves, and whether all have a score at each budget."""
    budget = runs.study.require("budget", "there are no horizons")
    dtype = runs.frame.collect_schema()[budget]
    if not dtype.is_numeric():
        raise ArgumentError(
            f"anytime(runs).at() needs numbers as budgets, but the column {budget!r} has type {dtype}. Convert it, for "
            "example to seconds or to the number of the step."
        )
    seed = () if runs.seed is None else (runs.seed,)
    keys, points = runs.study.curves([*runs.instance, *runs.family, runs.algorithm, *seed])
    points["budget"] = points["budget"].astype(float)
    return keys, points, points.groupby("budget").size() == len(keys)


def one_score(runs: Runs, keys: pd.DataFrame, scores: Array, name: str) -> Runs:
    """A table with one row per run and the given score, with the roles of the runs but for the budget."""
    roles = {**runs.roles(), "score": name, "budget": None, "failed": None, "ignore": ()}
    return type(runs)(keys.assign(**{name: scores}), **roles)


def rows_at(runs: Runs, budgets: Sequence[float]) -> Runs:
    """The rows at some budgets, as the column has them, whole numbers or not."""
    column, wanted = str(runs.budget), set(budgets)
    return runs.filter(**{column: [level for level in runs.levels(column) if float(level) in wanted]})


def last_points(points: pd.DataFrame, budgets: Iterable[float]) -> Index:
    """``(budgets, runs)``: the last point of each run at or before each budget, -1 for none."""
    run, budget = points["run"].to_numpy(), points["budget"].to_numpy()
    size = np.bincount(run)
    reached = np.stack([np.bincount(run[budget <= wanted], minlength=len(size)) for wanted in budgets])
    return np.where(reached > 0, np.cumsum(size) - size + reached - 1, -1)


def _is_trace(runs: Runs) -> bool:
    """Whether the runs are best-so-far curves, so that a score holds until the next one."""
    if runs.seed is None:
        return False
    broken = broken_traces(runs)
    return bool(broken.best_so_far) and not broken.n_broken


def _all_started(points: pd.DataFrame) -> float:
    """The budget from which on all runs have a score at or before."""
    return float(points.groupby("run")["budget"].min().max())


def _name_of(keys: pd.DataFrame, run: Any) -> str:
    """A run in words."""
    return ", ".join(f"{column} {format_level(level)}" for column, level in keys.iloc[int(run)].items())


# ------------------------------------------------------------------ which horizons


def places_of(
    horizons: Any, runs: Runs, points: pd.DataFrame, common: pd.Series[bool]
) -> tuple[list[Place], list[str]]:
    """The horizons asked for, in the order of their ends; without any, up to four spread over the range."""
    if horizons is None:
        return [Place(b, b) for b in _spread(runs, points, common)], []
    items = [horizons] if is_finite(horizons) else horizons
    if isinstance(items, str) or not several(items) or not (isinstance(items, Sequence) or hasattr(items, "__array__")):
        raise ArgumentError(f"budgets must be a list of budgets or of windows (first, last), got {horizons!r}.")
    places = [_place(item) for item in items]
    if not places:
        raise ArgumentError("budgets is empty. Give budgets such as [5, 10, 15], or None for a choice of them.")
    if len(places) > MOST_HORIZONS:
        raise ArgumentError(
            f"budgets names {len(places)} horizons, more than {MOST_HORIZONS}. Choose fewer, or windows that hold "
            "several budgets."
        )
    budgets = common.index.to_numpy()
    low, high = budgets[[0, -1]]
    for place in places:
        if places.count(place) > 1:
            raise ArgumentError(f"budgets names the horizon {place.label} twice. Name each once.")
        if place.is_window and not place.holds(budgets).any():
            raise ArgumentError(
                f"budgets: no run has a score in the window {place.label}. Values of {runs.budget} near it: "
                f"{_nearest(budgets, place)}."
            )
        if not place.is_window and not low <= place.start <= high:
            raise ArgumentError(
                f"budgets: {place.label} is outside the range of {runs.budget}, {format_level(low)} to "
                f"{format_level(high)}."
            )
    # Of two horizons of which none holds the other, the one that ends first has also started first.
    ordered = sorted(places, key=lambda place: (place.end, -place.start))
    notes = [_REORDERED] if ordered != places else []
    shared = [
        f"{one.label} and {other.label}"
        for one, other in combinations(ordered, 2)
        if (one.holds(budgets) & other.holds(budgets)).any()
    ]
    if shared:
        notes.append(
            f"These horizons share budgets: {listed(shared, most=4)}. Their results depend on each other more than "
            "those of others; the adjustment allows for any dependence."
        )
    return ordered, notes


def _place(item: Any) -> Place:
    if is_finite(item):
        return Place(float(item), float(item))
    pair = not isinstance(item, str) and hasattr(item, "__len__") and len(item) == 2
    if not pair or not all(map(is_finite, item)):
        raise ArgumentError(f"budgets must hold budgets (numbers) or windows (first, last), got {item!r}.")
    place = Place(*map(float, item))
    if not place.start < place.end:
        instead = "" if place.is_window else f" Write {place.label} for the scores at that budget."
        raise ArgumentError(f"a window (first, last) of budgets must have first < last, got {item!r}.{instead}")
    return place


def _spread(runs: Runs, points: pd.DataFrame, common: pd.Series[bool]) -> list[float]:
    """Up to four budgets at the quarters of the range, on the scale on which the budgets are most evenly spaced."""
    budgets = common.index.to_numpy()
    if len(budgets) < 2:
        raise DataError(
            f"There is one budget only ({runs.budget} = {format_level(budgets[0])}), so there are no horizons to "
            "compare. Add scores at other budgets, or name this one: budgets=[...]."
        )
    usable = budgets[common]
    if not len(usable) and _is_trace(runs):
        usable = budgets[budgets >= _all_started(points)]
    if not len(usable):
        raise DataError(_NOTHING_IN_COMMON.format(budget=runs.budget))
    if len(usable) <= _DEFAULT_HORIZONS:
        return usable.tolist()
    x = usable
    if usable[0] > 0:
        plain, ratio = np.diff(usable), np.diff(np.log(usable))
        x = np.log(usable) if ratio.std() / ratio.mean() < plain.std() / plain.mean() else usable
    wanted = x[0] + np.arange(1, _DEFAULT_HORIZONS + 1) / _DEFAULT_HORIZONS * (x[-1] - x[0])
    return usable[np.unique(np.abs(x[:, None] - wanted).argmin(axis=0))].tolist()


def _nearest(budgets: Array, place: Place) -> str:
    """The three budgets that are nearest to a place."""
    return listed(map(format_level, np.sort(budgets[np.argsort(np.abs(budgets - place.start), kind="stable")[:3]])))


# ------------------------------------------------------------------ the scores there


def scores_at(
    place: Place, runs: Runs, keys: pd.DataFrame, points: pd.DataFrame, common: pd.Series[bool]
) -> tuple[Array, tuple[float, ...], bool, str]:
    """Reduce every run to its score at a budget, or to its mean over a window.

    The scores in the order of `keys`, the budgets that they are of, whether all runs have scores of their own at these
    (else curves were read off as steps), and a note on it, empty where there is nothing to say.
    """
    budgets = common.index.to_numpy()
    inside = place.holds(budgets)
    used = inside & common.to_numpy()
    left_out = budgets[inside & ~used]
    if used.sum() < (2 if len(left_out) else 1):
        if not _is_trace(runs):
            raise DataError(_lacking(place, runs, keys, points, common))
        return _as_steps(place, runs, keys, points, budgets[inside])
    note = ""
    if len(left_out):
        note = (
            f"Over {place.label} the mean is of the {int(used.sum())} values of {runs.budget} that all runs have; "
            f"left out: {listed(map(format_level, left_out), most=6)}."
        )
    elif place.is_window and used.sum() == 1:
        note = f"The window {place.label} has one budget, {format_level(budgets[used][0])}."
    there = points[points["budget"].isin(budgets[used])]
    total = np.bincount(there["run"], weights=there["score"], minlength=len(keys))
    return total / used.sum(), tuple(budgets[used].tolist()), True, note


def _as_steps(
    place: Place, runs: Runs, keys: pd.DataFrame, points: pd.DataFrame, inside: Array
) -> tuple[Array, tuple[float, ...], bool, str]:
    """Read the curves off as steps: the last score at or before each budget."""
    budgets = np.unique([place.start, *inside]) if place.is_window else np.array([place.start])
    if len(budgets) > _MOST_STEPS:
        budgets = np.linspace(place.start, place.end, _MOST_STEPS)
    last = last_points(points, [*budgets, np.inf])
    without = np.flatnonzero((last[:-1] < 0).any(axis=0))
    start, end, n = format_level(place.start), format_level(place.end), f"{len(keys):,}"
    if len(without):
        raise DataError(
            f"{len(without):,} of {n} runs have no score at or before {runs.budget} = {start} "
            f"({_name_of(keys, without[0])}). All have one from {format_level(_all_started(points))} on."
        )
    budget, score = points["budget"].to_numpy(), points["score"].to_numpy()
    carried = int((budget[last[-2]] < budgets[-1]).sum())
    over = int((budget[last[-1]] < place.end).sum())
    note = (
        f"At {place.label} not all runs have scores of their own; they are best-so-far curves, so the last score "
        f"before counts ({carried:,} of {n} runs at {end})."
    )
    if over:
        note += (
            f" {over:,} runs ended before {end}: what they would have reached by then is not known, which may favour "
            "the others."
        )
    return score[last[:-1]].mean(axis=0), tuple(budgets.tolist()), False, note


def _lacking(place: Place, runs: Runs, keys: pd.DataFrame, points: pd.DataFrame, common: pd.Series[bool]) -> str:
    """Why runs cannot be compared at a horizon, and where they can be."""
    if not common.any():
        return _NOTHING_IN_COMMON.format(budget=runs.budget)
    name = runs.budget
    lacking = np.setdiff1d(np.arange(len(keys)), points["run"][place.holds(points["budget"].to_numpy())])
    where = f"over {place.label} of {name}" if place.is_window else f"at {name} = {place.label}"
    what = (
        f"{len(lacking):,} of {len(keys):,} runs have no score {where} ({_name_of(keys, lacking[0])})"
        if len(lacking)
        else f"The runs do not have two values of {name} in common {where}"
    )
    return (
        f"{what}, and the scores are not best-so-far curves, so that the last one before could stand in. Values that "
        f"all runs have, near it: {_nearest(common.index[common].to_numpy(), place)}."
    )
