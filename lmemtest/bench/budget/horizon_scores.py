"""Scores at a budget or over a window of budgets: one number per run, and how it came about."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from lmemtest.bench.checks.traces import broken_traces
from lmemtest.core.codes import group_numbers
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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HorizonScores:
    """One score per run at a horizon, in the order of ``RunCurves.keys``.

    If not `exact`, some run has no score at one of the `budgets`, and curves were read off as steps.
    """

    place: Place
    scores: Array
    budgets: tuple[float, ...]
    exact: bool
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunCurves:
    """The scores of runs over their budgets.

    `keys` has one row per run: instance, algorithm and, where there is one, seed. `run` and `budget` say which run and
    which of the ascending `budgets` each point belongs to, sorted in this order, `score` its mean, and `common` at
    which budgets all runs have a score.
    """

    runs: Runs
    keys: pd.DataFrame
    run: Index
    budget: Index
    score: Array
    budgets: Array
    common: Mask

    @classmethod
    def of(cls, runs: Runs) -> RunCurves:
        """Collect the scores of all runs."""
        budget = runs.study.require("budget", "there are no horizons")
        dtype = runs.frame.collect_schema()[budget]
        if not dtype.is_numeric():
            raise ArgumentError(
                f"horizons needs numbers as budgets, but the column {budget!r} has type {dtype}. Convert it, for "
                "example to seconds or to the number of the step."
            )
        own = [*runs.instance, *runs.family, runs.algorithm, *([runs.seed] if runs.seed else [])]
        names = list(dict.fromkeys(own))
        cells = runs.study.cells([*names, budget])
        run = group_numbers(cells.frame, names)
        budgets, code = np.unique(cells.frame[budget].to_numpy(dtype=float), return_inverse=True)
        first = np.unique(run, return_index=True)[1]
        order = np.lexsort((code, run))
        return cls(
            runs=runs,
            keys=cells.frame[names].iloc[first].reset_index(drop=True),
            run=run[order],
            budget=code[order].astype(np.intp),
            score=np.asarray(cells.mean, dtype=float)[order],
            budgets=budgets,
            common=np.bincount(code, minlength=len(budgets)) == len(first),
        )

    @property
    def n_runs(self) -> int:
        return len(self.keys)

    def table(self, scores: Array, name: str) -> Runs:
        """A table with one row per run and the given score, with the roles of the runs but for the budget."""
        roles = {**self.runs.roles(), "score": name, "budget": None, "failed": None, "ignore": ()}
        return type(self.runs)(self.keys.assign(**{name: scores}), **roles)

    def rows_at(self, budgets: Sequence[float]) -> Runs:
        """The rows at some budgets, as the column has them, whole numbers or not."""
        column, wanted = str(self.runs.budget), set(budgets)
        return self.runs.filter(**{column: [level for level in self.runs.levels(column) if float(level) in wanted]})

    def is_trace(self) -> bool:
        """Whether the runs are best-so-far curves, so that a score holds until the next one."""
        return self.runs.seed is not None and broken_traces(self.runs).decision == "trace"

    def all_started(self) -> float:
        """The budget from which on all runs have a score at or before."""
        return float(self.budgets[self.budget[np.unique(self.run, return_index=True)[1]].max()])

    def last_at(self, budget: float) -> Index:
        """(n_runs,) int: the last point of each run at or before a budget, -1 for none."""
        out = np.full(self.n_runs, -1, dtype=np.intp)
        reached = np.flatnonzero(self.budgets[self.budget] <= budget)
        np.maximum.at(out, self.run[reached], reached)
        return out

    def name_of(self, run: int) -> str:
        """A run in words."""
        return ", ".join(f"{column} {format_level(level)}" for column, level in self.keys.iloc[run].items())

    # ------------------------------------------------------------------ which horizons

    def places(self, given: Any) -> tuple[list[Place], list[str]]:
        """The horizons asked for, in the order of their ends; without any, up to four spread over the range."""
        if given is None:
            return [Place(b, b) for b in self._spread()], []
        items = [given] if is_finite(given) else given
        if (
            isinstance(items, str)
            or not several(items)
            or not (isinstance(items, Sequence) or hasattr(items, "__array__"))
        ):
            raise ArgumentError(f"budgets must be a list of budgets or of windows (first, last), got {given!r}.")
        places = [_place(item) for item in items]
        if not places:
            raise ArgumentError("budgets is empty. Give budgets such as [5, 10, 15], or None for a choice of them.")
        if len(places) > MOST_HORIZONS:
            raise ArgumentError(
                f"budgets names {len(places)} horizons, more than {MOST_HORIZONS}. Choose fewer, or windows that hold "
                "several budgets."
            )
        low, high = self.budgets[[0, -1]]
        for place in places:
            if places.count(place) > 1:
                raise ArgumentError(f"budgets names the horizon {place.label} twice. Name each once.")
            if place.is_window and not place.holds(self.budgets).any():
                raise ArgumentError(
                    f"budgets: no run has a score in the window {place.label}. Values of {self.runs.budget} near it: "
                    f"{_nearest(self.budgets, place)}."
                )
            if not place.is_window and not low <= place.start <= high:
                raise ArgumentError(
                    f"budgets: {place.label} is outside the range of {self.runs.budget}, {format_level(low)} to "
                    f"{format_level(high)}."
                )
        # Of two horizons of which none holds the other, the one that ends first has also started first.
        ordered = sorted(places, key=lambda place: (place.end, -place.start))
        notes = [_REORDERED] if ordered != places else []
        shared = [
            f"{one.label} and {other.label}"
            for one, other in combinations(ordered, 2)
            if (one.holds(self.budgets) & other.holds(self.budgets)).any()
        ]
        if shared:
            notes.append(
                f"These horizons share budgets: {listed(shared, most=4)}. Their results depend on each other more than "
                "those of others; the adjustment allows for any dependence."
            )
        return ordered, notes

    def _spread(self) -> list[float]:
        """Up to four budgets at the quarters of the range, on the scale on which the budgets are most evenly spaced."""
        if len(self.budgets) < 2:
            raise DataError(
                f"There is one budget only ({self.runs.budget} = {format_level(self.budgets[0])}), so there are no "
                "horizons to compare. Bring scores at other budgets, or name this one: budgets=[...]."
            )
        usable = self.budgets[self.common]
        if not len(usable) and self.is_trace():
            usable = self.budgets[self.budgets >= self.all_started()]
        if not len(usable):
            raise DataError(self._nothing_in_common)
        if len(usable) <= _DEFAULT_HORIZONS:
            return usable.tolist()
        x = usable
        if usable[0] > 0:
            plain, ratio = np.diff(usable), np.diff(np.log(usable))
            x = np.log(usable) if ratio.std() / ratio.mean() < plain.std() / plain.mean() else usable
        wanted = x[0] + np.arange(1, _DEFAULT_HORIZONS + 1) / _DEFAULT_HORIZONS * (x[-1] - x[0])
        return usable[np.unique(np.abs(x[:, None] - wanted).argmin(axis=0))].tolist()

    # ------------------------------------------------------------------ the scores there

    def at(self, place: Place) -> HorizonScores:
        """Reduce every run to its score at a budget, or to its mean over a window."""
        inside = place.holds(self.budgets)
        used = inside & self.common
        left_out = self.budgets[inside & ~used]
        if used.sum() < (2 if len(left_out) else 1):
            if not self.is_trace():
                raise DataError(self._lacking(place, inside))
            return self._as_steps(place, inside)
        notes = []
        if len(left_out):
            notes.append(
                f"Over {place.label} the mean is of the {int(used.sum())} values of {self.runs.budget} that all runs "
                f"have; left out: {listed(map(format_level, left_out), most=6)}."
            )
        if place.is_window and used.sum() == 1:
            notes.append(f"The window {place.label} has one budget, {format_level(self.budgets[used][0])}.")
        points = used[self.budget]
        total = np.bincount(self.run[points], weights=self.score[points], minlength=self.n_runs)
        return HorizonScores(
            place=place,
            scores=total / used.sum(),
            budgets=tuple(self.budgets[used].tolist()),
            exact=True,
            notes=tuple(notes),
        )

    def _as_steps(self, place: Place, inside: Mask) -> HorizonScores:
        """Read the curves off as steps: the last score at or before each budget."""
        budgets = np.unique([place.start, *self.budgets[inside]]) if place.is_window else np.array([place.start])
        if len(budgets) > _MOST_STEPS:
            budgets = np.linspace(place.start, place.end, _MOST_STEPS)
        last = np.stack([self.last_at(budget) for budget in budgets])
        without = np.flatnonzero((last < 0).any(axis=0))
        start, end, n = format_level(place.start), format_level(place.end), f"{self.n_runs:,}"
        if len(without):
            raise DataError(
                f"{len(without):,} of {n} runs have no score at or before {self.runs.budget} = {start} "
                f"({self.name_of(int(without[0]))}). All have one from {format_level(self.all_started())} on."
            )
        carried = int((self.budgets[self.budget[last[-1]]] < budgets[-1]).sum())
        over = int((self.budgets[self.budget[self.last_at(np.inf)]] < place.end).sum())
        note = (
            f"At {place.label} not all runs have scores of their own; they are best-so-far curves, so the last "
            f"score before counts ({carried:,} of {n} runs at {end})."
        )
        if over:
            note += (
                f" {over:,} runs ended before {end}: what they would have reached by then is not known, which may "
                "favour the others."
            )
        scores = self.score[last].mean(axis=0)
        return HorizonScores(place=place, scores=scores, budgets=tuple(budgets.tolist()), exact=False, notes=(note,))

    @property
    def _nothing_in_common(self) -> str:
        return (
            "No budget is common to all runs, and the scores are not best-so-far curves (some get worse, or the seed "
            "is not known), so that the last score before a budget could stand in. Bring scores at common budgets, or "
            f"take the running best of each run over {self.runs.budget}."
        )

    def _lacking(self, place: Place, inside: Mask) -> str:
        """Why runs cannot be compared at a horizon, and where they can be."""
        if not self.common.any():
            return self._nothing_in_common
        name = self.runs.budget
        lacking = np.setdiff1d(np.arange(self.n_runs), self.run[inside[self.budget]])
        where = f"over {place.label} of {name}" if place.is_window else f"at {name} = {place.label}"
        what = (
            f"{len(lacking):,} of {self.n_runs:,} runs have no score {where} ({self.name_of(int(lacking[0]))})"
            if len(lacking)
            else f"The runs do not have two values of {name} in common {where}"
        )
        return (
            f"{what}, and the scores are not best-so-far curves, so that the last one before could stand in. Values "
            f"that all runs have, near it: {_nearest(self.budgets[self.common], place)}."
        )


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


def _nearest(budgets: Array, place: Place) -> str:
    """The three budgets that are nearest to a place."""
    return listed(map(format_level, np.sort(budgets[np.argsort(np.abs(budgets - place.start), kind="stable")[:3]])))
