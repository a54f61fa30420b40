"""Scores at a budget or over a window of budgets: one number per run, and how it came about."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.data.cells import group_numbers
from lmemtest.errors import ArgumentError, DataError
from lmemtest.studies.checks.traces import broken_traces
from lmemtest.words import format_level, listed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.data.runs import Runs

    Array = NDArray[np.float64]
    Index = NDArray[np.intp]

# Differences between each two horizons are fitted, 28 models at eight. More horizons are a curve.
MOST_HORIZONS = 8
_DEFAULT_HORIZONS = 4
_MOST_STEPS = 50  # budgets of a window at which curves are read off where runs have different ones
_NEAREST = 3  # budgets that an error offers
_REORDERED = "Horizons are in the order of their last budgets; a window comes after the horizons that lie in it."


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Curves:
    """The scores of runs over their budgets.

    Attributes
    ----------
    runs : Runs
    keys : pandas.DataFrame
        One row per run: instance, algorithm and, where there is one, seed.
    run, budget : (n,) int
        Which run and which of `budgets` each point belongs to; sorted by run, then by budget.
    score : (n,) float
        Mean of the rows of each point.
    budgets : (k,) float
        Ascending.
    """

    runs: Runs
    keys: pd.DataFrame
    run: Index
    budget: Index
    score: Array
    budgets: Array

    @property
    def n_runs(self) -> int:
        """Number of runs."""
        return len(self.keys)

    @property
    def common(self) -> NDArray[np.bool_]:
        """(k,) bool: budgets at which all runs have a score."""
        return np.bincount(self.budget, minlength=len(self.budgets)) == self.n_runs

    def is_trace(self) -> bool:
        """Whether the runs are best-so-far curves, so that a score holds until the next one."""
        return self.runs.seed is not None and broken_traces(self.runs).verdict == "trace"

    def first_common_step(self) -> float:
        """The budget from which on all runs have a score at or before."""
        first = np.full(self.n_runs, len(self.budgets), dtype=np.intp)
        np.minimum.at(first, self.run, self.budget)
        return float(self.budgets[first.max()])

    def last_at(self, budget: float) -> Index:
        """(n_runs,) int: the last point of each run at or before a budget, -1 for none."""
        out = np.full(self.n_runs, -1, dtype=np.intp)
        reached = np.flatnonzero(self.budgets[self.budget] <= budget)
        np.maximum.at(out, self.run[reached], reached)
        return out

    def name_of(self, run: int) -> str:
        """A run in words."""
        row = self.keys.iloc[run]
        return ", ".join(f"{column} {format_level(row[column])}" for column in self.keys.columns)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HorizonScores:
    """One score per run at a horizon.

    Attributes
    ----------
    start, end : float
        The first and the last budget; equal at a single budget.
    scores : (n_runs,) float
        In the order of ``Curves.keys``.
    budgets : tuple of float
        Budgets whose scores were used.
    exact : bool
        Whether all runs have a score at each of `budgets`; else curves were read off as steps.
    notes : tuple of str
        What was left out or carried forward.
    """

    start: float
    end: float
    scores: Array
    budgets: tuple[float, ...]
    exact: bool
    notes: tuple[str, ...] = ()

    @property
    def label(self) -> str:
        """The budget, or the two ends of the window."""
        return place_label((self.start, self.end))

    def within(self, other: HorizonScores) -> bool:
        """Whether it is a part of another one, so that a change between them says little beside the others."""
        return self.start >= other.start and self.end <= other.end

    def overlaps(self, other: HorizonScores) -> bool:
        """Whether they share budgets, so that none is later than the other."""
        return max(self.start, other.start) <= min(self.end, other.end)


def scored_runs(curves: Curves, scores: np.ndarray, name: str) -> Runs:
    """A table with one row per run and the given score, with the roles of the runs but for the budget."""
    runs = curves.runs
    roles = {**runs.roles(), "score": name, "budget": None}
    return type(runs)(curves.keys.assign(**{name: scores}), **roles)


def place_label(place: tuple[float, float]) -> str:
    """The budget, or the two ends of the window, as text."""
    start, end = map(format_level, place)
    return start if place[0] == place[1] else f"{start}-{end}"


def collect_curves(runs: Runs) -> Curves:
    """Collect the scores of all runs."""
    budget = runs.study.require("budget", "there are no horizons")
    dtype = runs.frame.collect_schema()[budget]
    if not dtype.is_numeric():
        raise ArgumentError(
            f"horizons needs numbers as budgets, but the column {budget!r} has type {dtype}. Convert it, for "
            "example to seconds or to the number of the step."
        )
    keys = [*runs.instance, runs.algorithm, *([runs.seed] if runs.seed else [])]
    cells = runs.study.cells([*keys, budget])
    run = group_numbers(cells.frame, keys)
    budgets, code = np.unique(cells.frame[budget].to_numpy(dtype=float), return_inverse=True)
    first = np.unique(run, return_index=True)[1]
    order = np.lexsort((code, run))
    return Curves(
        runs=runs,
        keys=cells.frame[keys].iloc[first].reset_index(drop=True),
        run=run[order],
        budget=code[order].astype(np.intp),
        score=np.asarray(cells.mean, dtype=float)[order],
        budgets=budgets,
    )


# ---------------------------------------------------------------------- which horizons


def checked_places(curves: Curves, given: Any) -> tuple[list[tuple[float, float]], list[str]]:
    """The horizons asked for, in the order of their ends; without any, up to four spread over the range."""
    if given is None:
        return [(b, b) for b in _spread(curves)], []
    places = [_place(item) for item in _items(given)]
    if not places:
        raise ArgumentError("budgets is empty. Give budgets such as [5, 10, 15], or None for a choice of them.")
    if len(places) > MOST_HORIZONS:
        raise ArgumentError(
            f"budgets names {len(places)} horizons, more than {MOST_HORIZONS}. Choose fewer, or windows that hold "
            "several budgets."
        )
    for place in places:
        if places.count(place) > 1:
            raise ArgumentError(f"budgets names the horizon {place_label(place)} twice. Name each once.")
        _check_inside(curves, place)
    # Of two horizons of which none holds the other, the one that ends first has also started first.
    ordered = sorted(places, key=lambda place: (place[1], -place[0]))
    notes = [_REORDERED] if ordered != places else []
    return ordered, notes + _overlaps(curves, ordered)


def _items(given: Any) -> list[Any]:
    if _is_number(given):
        return [given]
    if isinstance(given, str) or not (isinstance(given, Sequence) or hasattr(given, "__array__")):
        raise ArgumentError(f"budgets must be a list of budgets or of windows (first, last), got {given!r}.")
    return list(given)


def _place(item: Any) -> tuple[float, float]:
    if _is_number(item):
        return float(item), float(item)
    pair = not isinstance(item, str) and hasattr(item, "__len__") and len(item) == 2
    if not pair or not all(map(_is_number, item)):
        raise ArgumentError(f"budgets must hold budgets (numbers) or windows (first, last), got {item!r}.")
    start, end = map(float, item)
    if not start < end:
        instead = f" Write {format_level(start)} for the scores at that budget." if start == end else ""
        raise ArgumentError(f"a window (first, last) of budgets must have first < last, got {item!r}.{instead}")
    return start, end


def _is_number(value: Any) -> bool:
    known = isinstance(value, numbers.Real) and not isinstance(value, (bool, np.bool_))
    return known and bool(np.isfinite(float(value)))


def _check_inside(curves: Curves, place: tuple[float, float]) -> None:
    low, high = curves.budgets[[0, -1]]
    name, label = curves.runs.budget, place_label(place)
    if place[0] == place[1]:
        if not low <= place[0] <= high:
            raise ArgumentError(
                f"budgets: {label} is outside the range of {name}, {format_level(low)} to {format_level(high)}."
            )
        return
    inside = (curves.budgets >= place[0]) & (curves.budgets <= place[1])
    if not inside.any():
        raise ArgumentError(
            f"budgets: no run has a score in the window {label}. Values of {name} near it: "
            f"{_nearest(curves.budgets, place[0])}."
        )


def _nearest(budgets: Array, place: float) -> str:
    nearest = budgets[np.argsort(np.abs(budgets - place), kind="stable")[:_NEAREST]]
    return listed(map(format_level, np.sort(nearest)))


def _overlaps(curves: Curves, places: list[tuple[float, float]]) -> list[str]:
    shared = []
    for i, (start, end) in enumerate(places):
        for other in places[i + 1 :]:
            both = (curves.budgets >= max(start, other[0])) & (curves.budgets <= min(end, other[1]))
            if both.any():
                shared.append(f"{place_label((start, end))} and {place_label(other)}")
    if not shared:
        return []
    return [
        f"These horizons share budgets: {listed(shared, most=4)}. Their results depend on each other more than those "
        "of others; the adjustment allows for any dependence."
    ]


def _spread(curves: Curves) -> list[float]:
    """Up to four budgets at the quarters of the range, on the scale on which the budgets are most evenly spaced."""
    if len(curves.budgets) < 2:
        raise DataError(
            f"There is one budget only ({curves.runs.budget} = {format_level(curves.budgets[0])}), so there are no "
            "horizons to compare. Bring scores at other budgets, or name this one: budgets=[...]."
        )
    usable = curves.budgets[curves.common]
    if not len(usable) and curves.is_trace():
        usable = curves.budgets[curves.budgets >= curves.first_common_step()]
    if not len(usable):
        raise DataError(_not_common(curves))
    if len(usable) <= _DEFAULT_HORIZONS:
        return [float(b) for b in usable]
    x = np.log(usable) if _looks_geometric(usable) else usable
    wanted = x[0] + np.arange(1, _DEFAULT_HORIZONS + 1) / _DEFAULT_HORIZONS * (x[-1] - x[0])
    return [float(usable[i]) for i in np.unique(np.abs(x[:, None] - wanted).argmin(axis=0))]


def _looks_geometric(budgets: Array) -> bool:
    if budgets[0] <= 0 or len(budgets) < 3:
        return False
    plain, ratio = np.diff(budgets), np.diff(np.log(budgets))
    return bool(ratio.std() / ratio.mean() < plain.std() / plain.mean())


def _not_common(curves: Curves) -> str:
    return (
        "No budget is common to all runs, and the scores are not best-so-far curves (some get worse, or the seed is "
        "not known), so that the last score before a budget could stand in. Bring scores at common budgets, or take "
        f"the running best of each run over {curves.runs.budget}."
    )


# ---------------------------------------------------------------------- the scores there


def scores_at(curves: Curves, place: tuple[float, float]) -> HorizonScores:
    """Reduce every run to its score at a budget, or to its mean over a window."""
    inside = (curves.budgets >= place[0]) & (curves.budgets <= place[1])
    common = inside & curves.common
    needed = 1 if place[0] == place[1] else min(2, int(inside.sum()))
    if inside.any() and (common.sum() >= needed) and (common == inside)[inside].all():
        return _exact(curves, place, common, [])
    if common.sum() >= max(needed, 2):
        left_out = [format_level(b) for b in curves.budgets[inside & ~common]]
        note = (
            f"Over {place_label(place)} the mean is of the {int(common.sum())} values of {curves.runs.budget} that all "
            f"runs have; left out: {listed(left_out, most=6)}."
        )
        return _exact(curves, place, common, [note])
    if not curves.is_trace():
        raise DataError(_lacking(curves, place))
    return _as_steps(curves, place, inside)


def _exact(curves: Curves, place: tuple[float, float], used: NDArray[np.bool_], notes: list[str]) -> HorizonScores:
    points = used[curves.budget]
    total = np.bincount(curves.run[points], weights=curves.score[points], minlength=curves.n_runs)
    if place[0] != place[1] and used.sum() == 1:
        only = format_level(curves.budgets[used][0])
        notes = [*notes, f"The window {place_label(place)} has one budget, {only}."]
    return HorizonScores(
        start=place[0],
        end=place[1],
        scores=total / used.sum(),
        budgets=tuple(curves.budgets[used].tolist()),
        exact=True,
        notes=tuple(notes),
    )


def _as_steps(curves: Curves, place: tuple[float, float], inside: NDArray[np.bool_]) -> HorizonScores:
    """Read the curves off as steps: the last score at or before each budget."""
    budgets = np.unique([place[0], *curves.budgets[inside]]) if place[0] != place[1] else np.array([place[0]])
    if len(budgets) > _MOST_STEPS:
        budgets = np.linspace(place[0], place[1], _MOST_STEPS)
    last = np.stack([curves.last_at(budget) for budget in budgets])
    without = np.flatnonzero((last < 0).any(axis=0))
    if len(without):
        raise DataError(
            f"{len(without):,} of {curves.n_runs:,} runs have no score at or before {curves.runs.budget} = "
            f"{format_level(place[0])} ({curves.name_of(int(without[0]))}). All have one from "
            f"{format_level(curves.first_common_step())} on."
        )
    carried = int((curves.budgets[curves.budget[last[-1]]] < budgets[-1]).sum())
    ended = np.full(curves.n_runs, -1, dtype=np.intp)
    np.maximum.at(ended, curves.run, curves.budget)
    over = int((curves.budgets[ended] < place[1]).sum())
    note = (
        f"At {place_label(place)} not all runs have scores of their own; they are best-so-far curves, so the last "
        f"score before counts ({carried:,} of {curves.n_runs:,} runs at {format_level(place[1])})."
    )
    if over:
        note += (
            f" {over:,} runs ended before {format_level(place[1])}: what they would have reached by then is not known, "
            "which may favour the others."
        )
    return HorizonScores(
        start=place[0],
        end=place[1],
        scores=curves.score[last].mean(axis=0),
        budgets=tuple(budgets.tolist()),
        exact=False,
        notes=(note,),
    )


def _lacking(curves: Curves, place: tuple[float, float]) -> str:
    """Why runs cannot be compared at a horizon, and where they can be."""
    usable = curves.budgets[curves.common]
    if not len(usable):
        return _not_common(curves)
    inside = (curves.budgets >= place[0]) & (curves.budgets <= place[1])
    have = np.bincount(np.unique(curves.run[inside[curves.budget]]), minlength=curves.n_runs)
    lacking = np.flatnonzero(have == 0)
    name = curves.runs.budget
    where = f"at {name} = {place_label(place)}" if place[0] == place[1] else f"over {place_label(place)} of {name}"
    what = (
        f"{len(lacking):,} of {curves.n_runs:,} runs have no score {where} ({curves.name_of(int(lacking[0]))})"
        if len(lacking)
        else f"The runs do not have two values of {name} in common {where}"
    )
    return (
        f"{what}, and the scores are not best-so-far curves, so that the last one before could stand in. Values that "
        f"all runs have, near it: {_nearest(usable, place[0])}."
    )
