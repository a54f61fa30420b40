"""One score per run: what a curve over the budget counts.

The scores of one run at several budgets are one curve. Counted row by row they make the course of the curve an error,
and every seed look like many; so a curve is reduced to one number before runs are compared. All runs of an instance are
reduced over the same budgets, those that all of them reached.
"""

from __future__ import annotations

import numbers
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from lmemtest.bench.data.normalise import new_column
from lmemtest.core.caller import advice
from lmemtest.core.codes import group_codes
from lmemtest.core.frames import MOST_CELLS, as_float
from lmemtest.core.options import CURVES
from lmemtest.core.validate import check_choice
from lmemtest.core.words import counted, format_level, listed
from lmemtest.errors import DataError
from lmemtest.lmm.cells import of_failures

if TYPE_CHECKING:
    from lmemtest.bench.data.runs import Runs
    from lmemtest.core.arrays import Array, Index, Mask
    from lmemtest.core.codes import Keys


__all__ = ["Course", "Curve", "per_run"]

# Of the range of the budgets on an instance: a run that ends so much before the longest one ends early.
_EARLY = 0.1
# Of the budgets between the latest beginning and the earliest end: from here on runs share a grid.
_SHARED = 0.5


class Curve(NamedTuple):
    """How the score of each run was made of its scores over the budget."""

    how: str  # one of `CURVES`
    score: str  # the score at each budget
    budget: str
    n: tuple[int, int]  # budgets that count: the fewest and the most of an instance
    last: str | None  # the last of them, where it is the same on all instances
    first: str | None  # and the first
    others: bool  # whether scores at other budgets were left out
    n_runs: int
    n_early: int  # runs that end long before the longest one of their instance
    earliest: str  # the last budget of the first of them
    longest: str  # the last budget of all
    by_steps: bool  # of "area": whether a score holds until the next one, as the best so far does

    @property
    def what(self) -> str:
        """What is averaged and compared, after "mean": "loss over epoch", "last loss"."""
        return f"{self.how} {self.score}" if self.how in ("last", "best") else f"{self.score} over {self.budget}"

    @property
    def sentence(self) -> str:
        """What each run counts with."""
        low, high = self.n
        if self.how == "area":
            span = f" from {self.first} to {self.last}" if None not in (self.first, self.last) else ""
            rule = "each score holds until the next one" if self.by_steps else "straight lines between its scores"
            text = f"its mean over {self.budget}{span}, the area under its curve ({rule}) divided by the length."
            return f"Each run counts once, with {text}"
        where = f"{self.budget} {self.last}" if self.last is not None else f"the last {self.budget} of all runs there"
        if self.how == "last":
            return f"Each run counts once, with its last score, at {where}."
        if self.how == "best":
            return f"Each run counts once, with its best score up to {where}."
        if low == high == 1:
            text = f"Each run counts once, with its score at one {self.budget}."
        else:
            number = f"{low:,}" if low == high else f"{low:,} to {high:,}"
            text = f"Each run counts once, with its mean over {number} values of {self.budget}."
        return text + " Others, which some runs of the instance do not have, were left out." * self.others

    @property
    def early(self) -> str:
        """Runs that end early, and what follows for the others; empty where there are none."""
        if not self.n_early:
            return ""
        end = "ends" if self.n_early == 1 else "end"
        first = "at" if self.n_early == 1 else "the first at"
        return (
            f"{self.n_early:,} of {counted(self.n_runs, 'run')} {end} early, {first} {self.budget} {self.earliest} of "
            f"{self.longest}, and what the other runs of the same instance did after that does not count. If they "
            "failed there, leave them out or say what a failed run counts."
        )


@dataclass(frozen=True, kw_only=True)
class Course:
    """The scores of all runs, sorted by run and budget, with codes of the instance, the run and the budget."""

    runs: Runs
    keys: Keys  # of the runs
    run: Index
    instance: Index
    budget: Index
    levels: pd.Series[Any]  # the budgets in rising order
    mean: Array
    low: Array
    high: Array
    bad: Mask
    note: str

    @classmethod
    def of(cls, runs: Runs) -> Course:
        """The course of runs with a budget."""
        budget = str(runs.budget)
        study = runs.study.detailed
        columns = [name for name in study.columns if name != budget]
        groups = study.groups([*columns, budget])
        frame, size = groups.keys.frame(), len(groups.n)
        run, keys = group_codes([frame[name] for name in columns], size)
        instance = group_codes([frame[name] for name in runs.instance], size)[0]
        value, values = group_codes([frame[budget]], size)
        order = np.lexsort((value, run))
        own = {"run": run, "instance": instance, "budget": value}
        scores = {"mean": groups.mean, "low": groups.low, "high": groups.high, "bad": groups.n_bad > 0}
        return cls(
            runs=runs,
            keys=keys,
            levels=pd.Series(values.levels[0]),
            note=study.note,
            **{name: codes[order] for name, codes in {**own, **scores}.items()},
        )

    @cached_property
    def starts(self) -> Index:
        """Where each run begins."""
        return np.flatnonzero(np.diff(self.run, prepend=-1))

    @cached_property
    def sizes(self) -> Index:
        """How many budgets each run has."""
        return np.diff(np.append(self.starts, len(self.run)))

    @cached_property
    def home(self) -> Index:
        """The instance of each run."""
        return self.instance[self.starts]

    @cached_property
    def n_instances(self) -> int:
        """How many instances there are."""
        return int(self.home.max()) + 1

    @cached_property
    def ends(self) -> tuple[Index, Index]:
        """Per instance the latest first and the earliest last budget of its runs, as codes."""
        first, last = self.budget[self.starts], self.budget[self.starts + self.sizes - 1]
        begin, end = np.zeros(self.n_instances, dtype=np.intp), np.full(self.n_instances, len(self.levels))
        np.maximum.at(begin, self.home, first)
        np.minimum.at(end, self.home, last)
        return begin, end

    @cached_property
    def common(self) -> Mask:
        """Scores at budgets that all runs of the instance have."""
        place = self.instance.astype(np.int64) * len(self.levels) + self.budget
        _, at, n = np.unique(place, return_inverse=True, return_counts=True)
        return np.asarray(n[at.ravel()] == np.bincount(self.home)[self.instance])

    @cached_property
    def inside(self) -> Mask:
        """Scores between the latest beginning and the earliest end on the instance."""
        begin, end = self.ends
        return (self.budget >= begin[self.instance]) & (self.budget <= end[self.instance])

    def distinct(self, rows: Mask) -> Index:
        """Per instance the number of different budgets of some rows."""
        place = self.instance[rows].astype(np.int64) * len(self.levels) + self.budget[rows]
        return np.bincount(np.unique(place) // len(self.levels), minlength=self.n_instances)

    @property
    def several(self) -> bool:
        """Whether some run has scores at several budgets."""
        return bool((self.sizes > 1).any())

    @property
    def on_a_grid(self) -> bool:
        """Whether the runs of every instance have most budgets in common, as far as they overlap."""
        common = self.distinct(self.common)
        return bool((common > 0).all() and (common >= _SHARED * self.distinct(self.inside)).all())

    @cached_property
    def numeric(self) -> bool:
        """Whether budgets are numbers."""
        return all(isinstance(level, numbers.Real) for level in self.levels.tolist())

    @property
    def overlap(self) -> bool:
        """Whether the runs of every instance have a range of budgets in common."""
        begin, end = self.ends
        return self.numeric and bool((begin < end).all())

    @cached_property
    def by_steps(self) -> bool:
        """Whether a score holds until the next one: logs of the best so far, at times of their own, never get worse."""
        if self.on_a_grid:
            return False
        step = np.diff(self.mean)[np.diff(self.run) == 0]
        return bool(np.all(step <= 0) if self.runs.direction == "minimize" else np.all(step >= 0))

    # ------------------------------------------------------------------ reduced

    def reduced(self, how: str) -> Array:
        """The score of each run."""
        begin, end = self.ends
        if how == "mean":
            self._refuse_apart(self.distinct(self.common) == 0)
            self._refuse_bad(self.common, how)
            n = np.add.reduceat(self.common.astype(float), self.starts)
            return np.asarray(np.add.reduceat(np.where(self.common, self.mean, 0.0), self.starts) / n)
        if how == "area":
            return self._area()
        self._refuse_apart(begin > end)
        reached = self.budget <= end[self.instance]
        if how == "last":
            at = self.starts + np.add.reduceat(reached.astype(np.intp), self.starts) - 1
            rows = np.zeros(len(self.run), dtype=bool)
            rows[at] = True
            self._refuse_bad(rows, how)
            return self.mean[at]
        minimize = self.runs.direction == "minimize"
        worst = np.inf if minimize else -np.inf
        pick = np.minimum if minimize else np.maximum
        with np.errstate(invalid="ignore"):
            best = np.where(reached & np.isfinite(self.low), self.low if minimize else self.high, worst)
        found = np.asarray(pick.reduceat(best, self.starts))
        self._refuse_bad(np.repeat(~np.isfinite(found), self.sizes), how)
        return found

    def _area(self) -> Array:
        if not self.numeric:
            raise DataError(
                f"an area needs a budget in numbers, but {self.runs.budget!r} holds {self.levels.iloc[0]!r}. Take the "
                "mean, the last or the best score."
            )
        begin, end = self.ends
        self._refuse_apart(begin >= end)
        self._refuse_bad(self.budget <= end[self.instance], "area")
        t = as_float(self.levels)
        at, low, high = t[self.budget], t[begin][self.instance], t[end][self.instance]
        left = np.maximum(at[:-1], low[:-1])
        length = np.where(np.diff(self.run) == 0, np.minimum(at[1:], high[:-1]) - left, 0.0)
        used = length > 0
        height = self.mean[:-1].copy()
        if not self.by_steps:
            span = np.where(used, np.diff(at), 1.0)
            height += np.diff(self.mean) * (left + length / 2.0 - at[:-1]) / span
        area = np.bincount(self.run[:-1][used], (length * height)[used], minlength=self.keys.size)
        return np.asarray(area / (high - low)[self.starts])

    def _refuse_apart(self, apart: Mask) -> None:
        """Refuse instances whose runs have no budget in common."""
        if not apart.any():
            return
        from lmemtest.bench.data.study import ONLY_INSTANCE, labels

        names = [ONLY_INSTANCE]
        if shown := self.runs.study.instance:
            names = list(dict.fromkeys(labels(self.keys.frame(), shown)[apart[self.home]]))
        raise DataError(
            f"the runs of {listed(names)} have no budget in common, so one score per run would compare different "
            f"budgets. Filter the runs to budgets that all of them reached: runs.filter({self.runs.budget}=[...])."
        )

    def _refuse_bad(self, rows: Mask, how: str) -> None:
        """Refuse scores that are missing or infinite among those that count."""
        if not (rows & self.bad).any():
            return
        from lmemtest.bench.data.failures import refuse_failures

        refuse_failures(self.runs)
        lacking = int(np.logical_or.reduceat(rows & self.bad, self.starts).sum())
        at = int(np.flatnonzero(rows & self.bad)[0])
        who = self.keys.frame().iloc[self.run[at]]
        where = ", ".join(f"{name} {format_level(level)}" for name, level in who.items())
        where += f", {self.runs.budget} {format_level(self.levels.iloc[self.budget[at]])}"
        best = advice("value", name="curves", value="best")
        other = "" if how == "best" else f", or take the best score of each run, which passes over them: {best}"
        raise DataError(
            f"{lacking:,} of {counted(len(self.starts), 'run')} {'has' if lacking == 1 else 'have'} a score that is "
            f"missing or infinite (first: {where}), so the {how} of such a curve would be over other budgets than that "
            f"of the others. If the runs failed there, say what they count{of_failures()}. If nothing went wrong, "
            f"{advice('drop_missing')} compares at the budgets that all runs have{other}."
        )

    def described(self, how: str) -> Curve:
        """What was done, in numbers."""
        begin, end = self.ends
        counts = self.distinct(self.common if how == "mean" else self.inside)
        first, last = np.unique(begin), np.unique(end)
        at_end = self.budget[self.starts + self.sizes - 1]
        longest, smallest = np.zeros(self.n_instances, dtype=np.intp), np.full(self.n_instances, len(self.levels) - 1)
        np.maximum.at(longest, self.home, at_end)
        np.minimum.at(smallest, self.home, self.budget[self.starts])
        t = as_float(self.levels) if self.numeric else np.arange(len(self.levels), dtype=float)
        lacking, span = t[longest[self.home]] - t[at_end], (t[longest] - t[smallest])[self.home]
        early = lacking > _EARLY * span
        soonest = int(np.where(early, at_end, len(self.levels)).argmin())

        def name(codes: Index) -> str | None:
            return format_level(self.levels.iloc[codes[0]]) if len(codes) == 1 else None

        return Curve(
            how=how,
            score=self.runs.score,
            budget=str(self.runs.budget),
            n=(int(counts.min()), int(counts.max())),
            first=name(first),
            last=name(last),
            others=not bool(self.common.all()),
            n_runs=len(self.starts),
            n_early=int(early.sum()),
            earliest=format_level(self.levels.iloc[at_end[soonest]]),
            longest=format_level(self.levels.iloc[longest[self.home[soonest]]]),
            by_steps=self.by_steps,
        )


def per_run(runs: Runs, how: str, name: str | None = None) -> Runs:
    """`Runs.per_run`: the definition is there."""
    from lmemtest.bench.data.runs import with_curve, with_notes

    check_choice(how, "curve", CURVES)
    if runs.budget is None:
        raise DataError(
            "per_run needs the column of the budget (epochs, steps, seconds) at which each score was taken: "
            "Runs(..., budget=...)."
        )
    score = _free(runs, f"{runs.score}_{how}") if name is None else new_column(runs, name, name)
    course = Course.of(runs)
    values, note = course.reduced(how), course.note
    if note and how == "mean" and _balanced(runs):  # too large to hold, but then a mean over rows is the same
        by_run = runs.study.groups([str(key) for key in course.keys.names])
        values, note = by_run.mean, ""
    curve = course.described(how)
    frame, scale = course.keys.frame().assign(**{score: values}), runs.scale
    if scale is not None:  # the score that it was made of goes along
        own = {**runs.roles(), "score": scale.score, "direction": scale.direction}
        raw = _free(runs, f"{scale.score}_{how}")
        frame[raw] = Course.of(type(runs)(runs.frame, **own)).reduced(how)
        scale = scale._replace(score=raw)
    roles = {**runs.roles(), "score": score, "budget": None, "ignore": (), "failed": None}
    made = with_curve(type(runs)(frame, **roles), curve, scale)
    return with_notes(made, [*filter(None, (curve.sentence, curve.early, note))])


def _free(runs: Runs, name: str) -> str:
    """A name that no column of the table has: a model of the reduced score must not fit the rows of the table."""
    while name in runs.columns:
        name += "_"
    return name


def _balanced(runs: Runs) -> bool:
    """Whether every run has equally many rows at every budget."""
    study = runs.study
    columns = [name for name in study.columns if name != runs.budget]
    n = study.count(*columns) * study.count(runs.budget)
    return runs.n_rows == n > MOST_CELLS and study.scored_alike
