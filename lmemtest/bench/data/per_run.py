"""One score per run: what a curve over the budget counts.

The scores of one run at several budgets are one curve. Counted row by row they make the course of the curve an error,
and every seed look like many; so a curve is reduced to one number before runs are compared. All runs of an instance are
reduced over the same budgets, those that all of them reached.
"""

from __future__ import annotations

import numbers
from functools import partial
from typing import TYPE_CHECKING, Literal, NamedTuple

import numpy as np
import pandas as pd

from lmemtest.bench.data.budget_mix import are_single_trials
from lmemtest.bench.data.failures import refuse_failures
from lmemtest.bench.data.normalise import new_column
from lmemtest.bench.data.study import ONLY_INSTANCE, labels
from lmemtest.core.caller import advice, named, setting
from lmemtest.core.codes import first_rows, group_means
from lmemtest.core.frames import MOST_CELLS
from lmemtest.core.options import CURVE_CHOICES, CURVES
from lmemtest.core.validate import check_choice
from lmemtest.core.words import counted, format_level, listed
from lmemtest.errors import ArgumentError, DataError
from lmemtest.lmm.cells import of_failures

if TYPE_CHECKING:
    from lmemtest.bench.data.runs import Runs
    from lmemtest.core.arrays import Array, Index, Mask


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


def share_budgets(runs: Runs) -> bool:
    """Whether the runs of every instance have most budgets in common, as far as they overlap."""
    common = _n_budgets(runs, runs.study.detailed.common)
    return bool((common > 0).all() and (common >= _SHARED * _n_budgets(runs, _inside(runs))).all())


def overlap(runs: Runs) -> bool:
    """Whether the runs of every instance have a range of budgets in common, in numbers."""
    begin, end = _ends(runs)
    return _in_numbers(runs) and bool((begin < end).all())


def _ends(runs: Runs) -> tuple[Index, Index]:
    """Per instance the latest first and the earliest last budget of its runs, as codes."""
    study = runs.study.detailed
    budget, (starts, sizes) = study.code("budget"), study.run_starts
    home, n = study.code("instance")[starts], len(study.benchmark_of)
    begin, end = np.zeros(n, dtype=np.intp), np.full(n, len(study.names("budget")))
    np.maximum.at(begin, home, budget[starts])
    np.minimum.at(end, home, budget[starts + sizes - 1])
    return begin, end


def _inside(runs: Runs) -> Mask:
    """Scores between the latest beginning and the earliest end on the instance."""
    study, (begin, end) = runs.study.detailed, _ends(runs)
    budget, instance = study.code("budget"), study.code("instance")
    return np.asarray((budget >= begin[instance]) & (budget <= end[instance]))


def _n_budgets(runs: Runs, rows: Mask) -> Index:
    """Per instance the number of different budgets of some scores."""
    study = runs.study.detailed
    return study.count_distinct(study.code("instance"), "budget", len(study.benchmark_of), rows)


def _in_numbers(runs: Runs) -> bool:
    return all(isinstance(level, numbers.Real) for level in runs.study.detailed.names("budget"))


def _by_steps(runs: Runs) -> bool:
    """Whether a score holds until the next one: logs of the best so far, at times of their own, never get worse."""
    if share_budgets(runs):
        return False
    points, run = runs.study.detailed.points, runs.study.detailed.code("run")
    step = np.diff(points.mean)[np.diff(run) == 0]
    return bool(np.all(step <= 0) if runs.direction == "minimize" else np.all(step >= 0))


# ---------------------------------------------------------------------- reduced


def _reduced(runs: Runs, how: str) -> Array:
    """The score of each run, in the order of the columns that tell runs apart."""
    study, (begin, end) = runs.study.detailed, _ends(runs)
    starts, sizes = study.run_starts
    points, reached = study.points, study.code("budget") <= end[study.code("instance")]
    if how == "mean":
        _refuse_apart(runs, _n_budgets(runs, study.common) == 0)
        _refuse_bad(runs, study.common, how)
        n = np.add.reduceat(study.common.astype(float), starts)
        return np.asarray(np.add.reduceat(np.where(study.common, points.mean, 0.0), starts) / n)
    if how == "area":
        return _area(runs)
    _refuse_apart(runs, begin > end)
    if how == "last":
        at = starts + np.add.reduceat(reached.astype(np.intp), starts) - 1
        _refuse_bad(runs, np.isin(np.arange(len(reached)), at), how)
        return points.mean[at]
    minimize = runs.direction == "minimize"
    with np.errstate(invalid="ignore"):
        valid = reached & np.isfinite(points.low)
        scores = np.where(valid, points.low, np.inf) if minimize else np.where(valid, points.high, -np.inf)
    best = np.asarray((np.minimum if minimize else np.maximum).reduceat(scores, starts))
    _refuse_bad(runs, np.repeat(~np.isfinite(best), sizes), how)
    return best


def _area(runs: Runs) -> Array:
    """The area under the curve of each run from the latest beginning to the earliest end, divided by its length."""
    study, (begin, end) = runs.study.detailed, _ends(runs)
    if not _in_numbers(runs):
        raise DataError(
            f"an area needs a budget in numbers, but {runs.budget!r} holds {study.names('budget')[0]!r}. Take the "
            "mean, the last or the best score."
        )
    _refuse_apart(runs, begin >= end)
    budget, instance, mean = study.code("budget"), study.code("instance"), study.points.mean
    _refuse_bad(runs, budget <= end[instance], "area")
    starts, sizes = study.run_starts
    run, t = np.repeat(np.arange(len(starts)), sizes), np.array(study.names("budget"), dtype=float)
    at, low, high = t[budget], t[begin][instance], t[end][instance]
    left = np.maximum(at[:-1], low[:-1])
    length = np.where(np.diff(run) == 0, np.minimum(at[1:], high[:-1]) - left, 0.0)
    used = length > 0
    height = mean[:-1].copy()
    if not _by_steps(runs):
        span = np.where(used, np.diff(at), 1.0)
        height += np.diff(mean) * (left + length / 2.0 - at[:-1]) / span
    area = np.bincount(run[:-1][used], (length * height)[used], minlength=len(starts))
    return np.asarray(area / (high - low)[starts])


def _refuse_apart(runs: Runs, apart: Mask) -> None:
    """Refuse instances whose runs have no budget in common."""
    if not apart.any():
        return
    study = runs.study.detailed
    names = [ONLY_INSTANCE]
    if columns := runs.study.instance:
        first = first_rows(study.code("instance"), len(apart))
        names = list(dict.fromkeys(labels(study.points.keys.frame().iloc[first[apart]], columns)))
    raise DataError(
        f"the runs of {listed(names)} have no budget in common, so one score per run would compare different "
        "budgets. Filter the runs to budgets that all of them reached: "
        f"{advice('some_values', column=runs.budget)}."
    )


def _refuse_bad(runs: Runs, rows: Mask, how: str) -> None:
    """Refuse scores that are missing or infinite among those that count."""
    study = runs.study.detailed
    bad = rows & (study.points.n_bad > 0)
    if not bad.any():
        return
    refuse_failures(runs)
    starts, _ = study.run_starts
    lacking = int(np.logical_or.reduceat(bad, starts).sum())
    who = study.groups(study.columns).keys.frame().iloc[int(np.flatnonzero(bad)[0])]
    where = ", ".join(f"{name} {format_level(level)}" for name, level in who.items())
    best = advice("value", name="curves", value="best")
    other = "" if how == "best" else f", or take the best score of each run, which passes over them: {best}"
    raise DataError(
        f"{lacking:,} of {counted(len(starts), 'run')} {'has' if lacking == 1 else 'have'} a score that is "
        f"missing or infinite (first: {where}), so the {how} of such a curve would be over other budgets than that "
        f"of the others. If the runs failed there, say what they count{of_failures()}. If nothing went wrong, "
        f"{advice('drop_missing')} compares at the budgets that all runs have{other}."
    )


def _described(runs: Runs, how: str) -> Curve:
    """What was done, in numbers."""
    study, (begin, end) = runs.study.detailed, _ends(runs)
    levels, budget, (starts, sizes) = study.names("budget"), study.code("budget"), study.run_starts
    counts = _n_budgets(runs, study.common if how == "mean" else _inside(runs))
    at_end, home = budget[starts + sizes - 1], study.code("instance")[starts]
    longest, smallest = np.zeros(len(begin), dtype=np.intp), np.full(len(begin), len(levels) - 1)
    np.maximum.at(longest, home, at_end)
    np.minimum.at(smallest, home, budget[starts])
    t = np.array(levels if _in_numbers(runs) else range(len(levels)), dtype=float)
    early = t[longest[home]] - t[at_end] > _EARLY * (t[longest] - t[smallest])[home]
    soonest = int(np.where(early, at_end, len(levels)).argmin())
    first, last = (format_level(levels[ends[0]]) if (ends == ends[0]).all() else None for ends in (begin, end))
    return Curve(
        how=how,
        score=runs.score,
        budget=str(runs.budget),
        n=(int(counts.min()), int(counts.max())),
        first=first,
        last=last,
        others=not bool(study.common.all()),
        n_runs=len(starts),
        n_early=int(early.sum()),
        earliest=format_level(levels[at_end[soonest]]),
        longest=format_level(levels[longest[home[soonest]]]),
        by_steps=_by_steps(runs),
    )


def per_run(runs: Runs, curve: Literal["mean", "last", "best", "area"] = "mean", *, name: str | None = None) -> Runs:
    """The runs with one score each, for its scores over the budget.

    The scores of a run at several budgets are one curve: counted row by row they make its course an error, and
    every seed look like many. Models compare runs, so `recommend`, `analyze` and `rank` reduce curves this way.

    Parameters
    ----------
    curve : {"mean", "last", "best", "area"}
        What a run counts with, x being its scores at budgets t, each up to the last budget that all runs of the
        instance reached:

        ======  =========================================================================================
        curve   score of the run
        ======  =========================================================================================
        mean    the mean of x over the budgets that all runs of the instance have
        last    x at the last of the budgets
        best    the lowest or highest x, by the direction; a missing one does not count
        area    the area under x over t from the latest beginning to the earliest end, divided by its
                length: a mean over the budget, whatever the steps. Straight lines between scores; where runs
                have budgets of their own and none gets worse (logs of the best so far) each score holds
                until the next one.
        ======  =========================================================================================
    name : str, optional
        Name of the new column of scores, by default ``<score>_<curve>``.

    Returns
    -------
    Runs
        One row per run with the columns that have a role, without the budget. `curve` holds what was done, and
        `notes` say it, with runs that end early. A lazy table is queried once.

    Raises
    ------
    ArgumentError
        If the curve is unknown, or the name is taken.
    DataError
        If the runs have no budget, those of an instance have none in common, or a score that counts is missing.

    Notes
    -----
    A run is what one algorithm did on one instance with one seed. Without seeds the rows of an algorithm on an
    instance are taken for one run. Several rows of a run at one budget count with their mean ("best": their best).

    Examples
    --------
    >>> from lmemtest import Runs
    >>> table = {"tool": ["A"] * 3 + ["B"] * 3, "epoch": [1, 2, 3] * 2, "loss": [0.5, 0.3, 0.4, 0.6, 0.6, 0.3]}
    >>> runs = Runs(table, score="loss", direction="minimize", algorithm="tool", budget="epoch")
    >>> [runs.per_run(curve).to_frame().iloc[:, -1].round(3).tolist() for curve in ("mean", "last", "best", "area")]
    [[0.4, 0.5], [0.4, 0.3], [0.3, 0.3], [0.375, 0.525]]
    """
    how = check_choice(curve, "curve", CURVES)
    if runs.budget is None:
        raise DataError(
            "per_run needs the column of the budget (epochs, steps, seconds) at which each score was taken: "
            "Runs(..., budget=...)."
        )
    # a model of the reduced score must not fit the rows of the table
    score = new_column(runs, name, f"{runs.score}_{how}")
    frame, done, notes = one_score_each(runs, how, score)
    scale = runs.scale
    if scale is not None:  # the score that it was made of goes along
        roles = {**runs.roles(), "score": scale.score, "direction": scale.direction}
        raw = new_column(runs, None, f"{scale.score}_{how}")
        frame[raw] = _reduced(type(runs)(runs.frame, **roles), how)
        scale = scale._replace(score=raw)
    roles = {**runs.roles(), "score": score, "budget": None, "ignore": (), "failed": None}
    made = type(runs)(frame, **roles).remembering(curve=done, scale=scale, notes=notes)
    return made.following(runs, partial(per_run, curve=curve, name=name))


def one_score_each(runs: Runs, how: str, score: str) -> tuple[pd.DataFrame, Curve, tuple[str, ...]]:
    """The runs with one number for each curve in a column `score`, how it was made, and what a reader must know."""
    study = runs.study.detailed
    columns = [column for column in study.columns if column != runs.budget]
    values, note = _reduced(runs, how), study.note
    if note and how == "mean":  # too large to hold, but a mean over rows is the same with as many at every budget
        n_points = runs.study.count(*columns) * runs.study.count(runs.budget)
        if runs.n_rows == n_points > MOST_CELLS and runs.study.scored_alike:
            values, note = runs.study.groups(columns).mean, ""
    done = _described(runs, how)
    frame = study.groups(columns).keys.frame().assign(**{score: values})
    return frame, done, tuple(filter(None, (done.sentence, done.early, note)))


def observations(runs: Runs) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """The runs with one score each, by what they are; `Study.one_score_per_run` has the columns."""
    study = runs.study
    family = study.sampled.column if study.sampled.noun == "family" else None
    named = (*runs.instance, family, runs.algorithm, runs.seed)
    keys = list(dict.fromkeys(name for name in named if name is not None))
    notes: tuple[str, ...] = ()
    if runs.budget is None:
        table = study.rows(keys)
    else:
        means, _, notes = one_score_each(runs, "mean", runs.score)
        table = group_means(means, keys, runs.score)[0]
        notes += () if runs.failures is None else (runs.failures.note,)
    instance = labels(table, study.instance) if study.instance else np.full(len(table), ONLY_INSTANCE, dtype=object)
    of_role = {"benchmark": runs.benchmark, "family": family, "algorithm": runs.algorithm, "seed": runs.seed}
    columns = {role: None if name is None else table[name].to_numpy() for role, name in of_role.items()}
    return pd.DataFrame({"instance": instance, **columns, "score": table[runs.score].to_numpy(dtype=float)}), notes


def curve_of(runs: Runs) -> str | None:
    """What a curve counts by default; None where each run has one score, or runs share no range of budgets.

    Single trials of a search count with their best: their mean says little about what was found. Everything else counts
    with its mean over the budgets that all runs have, and where they have few in common with the area under the curve,
    which is the mean over the budget whatever the steps.

    Examples
    --------
    >>> import lmemtest as lt
    >>> curve_of(lt.datasets.load_hpo_runs()), curve_of(lt.datasets.load_hpo_runs().filter(budget=8))
    ('mean', None)
    """
    if runs.budget is None or runs.study.count(runs.budget) < 2:
        return None
    if not (np.diff(runs.study.detailed.code("run")) == 0).any():  # no run has scores at several budgets
        return None
    if are_single_trials(runs.study.detailed):
        return "best"
    if share_budgets(runs):
        return "mean"
    return "area" if overlap(runs) else None


def reduced(runs: Runs, curves: str | None = None, dispersion: str | None = None) -> Runs:
    """The runs with one score each; as they are where `curves` is "model", nothing is to be reduced, or residual
    variances belong to a column `dispersion` that one score per run has not, unless a curve is asked for."""
    if curves is not None:
        check_choice(curves, "curves", CURVE_CHOICES)
    lost = dispersion is not None and dispersion not in {*runs.study.columns} - {runs.budget}
    if lost and curves is None and runs.budget is not None:
        return runs
    how = runs.study.curve if curves is None else None if curves == "model" else curves
    if how is not None and runs.budget is None and (runs.curve is None or runs.curve.how != how):
        done = f"they were reduced already ({runs.curve.how})" if runs.curve else "these have none"
        raise ArgumentError(
            f"{named('curves')} says what the scores of a run over its budget count, so it needs runs with a budget, "
            f"and {done}. Name the column of the budget, or leave {named('curves')} out."
        )
    one_each = runs if how is None or runs.budget is None else runs.per_run(how)  # type: ignore[arg-type]
    if lost and one_each.curve is not None:
        raise ArgumentError(
            f"{setting('dispersion', dispersion)} is no column of one score per run. Give it a role, or "
            f"{setting('curves', 'model')}, which keeps the scores at each budget."
        )
    return one_each


def mean_over_budgets(runs: Runs) -> Runs:
    """The runs with their mean over the budgets as score, without the budget, where every run has every budget."""
    keys = [name for name in runs.study.columns if name != runs.budget]
    if linked_budgets(runs, keys) > 1:
        return runs.study.average("budget")
    means = type(runs)(runs.study.rows(keys), **{**runs.roles(), "budget": None, "failed": None, "ignore": ()})
    return means.remembering(roster=runs.roster)


def linked_budgets(runs: Runs, keys: list[str]) -> int:
    """How many budgets every run has; refused where the scores of a run at several cannot be averaged."""
    budgets = runs.levels(runs.budget) if runs.budget else ()
    if len(budgets) < 2:
        return 1
    if runs.seed is None:
        raise DataError(
            f"runs has scores at {len(budgets)} budgets but no seed column, so scores of one run cannot be linked. "
            f"Name the column: seed=..., or take one budget: runs.filter({runs.budget}={format_level(budgets[-1])})."
        )
    if runs.study.count(*keys, runs.budget) != runs.study.count(*keys) * len(budgets):
        raise DataError(
            f"not every run has a score at each of the {len(budgets)} budgets, so means over the budgets do not "
            f"compare. Take budgets that all runs reached: runs.filter({runs.budget}=...)."
        )
    return len(budgets)
