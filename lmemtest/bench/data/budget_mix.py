"""What a mean over the rows of a run is a mean over: the same budgets for all algorithms, or unlike things.

Two ways to fail. Rows of different algorithms lie at different budgets of one instance (logs by wall clock that stop at
different times): then the means compare budgets. Or rows are single trials of a search, where the mean over trials says
little about the best that was found.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import fdtrc

from lmemtest.core.caller import advice
from lmemtest.core.codes import starts_of

if TYPE_CHECKING:
    from lmemtest.bench.data.runs import Runs
    from lmemtest.bench.data.study import Study

# Shifts of an algorithm's budgets within their ranks on an instance, from 0 to 1: below it they do not matter; and
# above it they do where nothing is repeated that could tell a shift from chance.
_SHIFT, _CLEAR_SHIFT = 0.05, 0.15
_CHANCE = 0.001  # runs drawn alike look so unlike more rarely than this
# Squared steps over squared deviations within runs: 2 for independent scores, near 0 for curves.
_ROUGH, _ROUGH_NAMED = 1.0, 0.25
_FEWEST_TRIALS = 8
_OFTEN = 0.8  # of the runs get worse somewhere
_COUNTS_TRIALS = re.compile(r"trial|eval|number|config|sample|candidate", re.IGNORECASE)
_TRAINS = re.compile(r"epoch|step|frame|time|sec|hour|minute|fidelity|size|token", re.IGNORECASE)


def common_budgets_advice(runs: Runs) -> str:
    """What to do about scores at different budgets."""
    if not runs.frame.collect_schema()[str(runs.budget)].is_numeric():
        return "Compare at common budgets: for each run and budget, take the last score up to it."
    return "Compare at budgets that all runs reached: " + advice("reached_budgets")


def trials_advice() -> str:
    """What to do about scores of single trials."""
    best = advice("best_so_far")
    return f"Compare the best so far: {best}; or, if the mean over trials is what you want, give one mean per run."


def budgets_shared(study: Study) -> bool:
    """Whether all runs on one instance were scored at the same budgets."""
    n_instances, _ = study.shape
    cells = len(np.unique(study.code("instance").astype(np.int64) * len(study.names("budget")) + study.code("budget")))
    runs = np.bincount(study.code("instance")[study.run_starts[0]], minlength=n_instances)
    here = np.bincount(study.code("instance"), minlength=n_instances)
    budgets = here / runs
    return bool(np.all(budgets == np.round(budgets)) and budgets.sum() == cells)


def budgets_unlike(study: Study) -> bool:
    """Whether algorithms were scored at different budgets on the same instance, beyond chance and to an extent.

    Three numbers describe the budgets of a run, in ranks among the rows of its instance (0 to 1): their mean, their
    mean distance from the middle, and the last. An analysis of variance within instances compares algorithms by each.
    """
    if budgets_shared(study):
        return False
    u = _ranks(study)
    starts, size = study.run_starts
    last = u[starts + size - 1]
    group = study.code("instance")[starts] * len(study.names("algorithm")) + study.code("algorithm")[starts]
    instance = study.code("instance")[starts]
    for value in (np.add.reduceat(u, starts) / size, np.add.reduceat(np.abs(u - 0.5), starts) / size, last):
        if _differ(value, group, instance, study.code("algorithm")[starts]):
            return True
    return False


def _ranks(study: Study) -> np.ndarray:
    """Mid-ranks of the budgets among the rows of their instance, from 0 to 1."""
    n_budgets = len(study.names("budget"))
    key = study.code("instance").astype(np.int64) * n_budgets + study.code("budget")
    keys, at = np.unique(key, return_inverse=True)
    rows = np.bincount(at, weights=study.points.n)
    instance = keys // n_budgets
    total = np.bincount(instance, weights=rows)
    before = np.cumsum(rows) - rows
    before -= (np.cumsum(total) - total)[instance]
    return np.asarray(((before + rows / 2) / total[instance])[at])


def _differ(value: np.ndarray, group: np.ndarray, instance: np.ndarray, algorithm: np.ndarray) -> bool:
    """Whether the cells of an instance differ in a number of their runs, beyond chance and to an extent."""
    _, at = np.unique(group, return_inverse=True)
    n = np.bincount(at)
    mean = np.bincount(at, weights=value) / n
    where = np.zeros(len(n), dtype=np.intp)
    where[at] = instance
    centre = np.bincount(where, weights=n * mean) / np.maximum(np.bincount(where, weights=n), 1)
    between = float(np.sum(n * (mean - centre[where]) ** 2))
    df = len(n) - len(np.unique(where))
    if df == 0:
        return False
    within, df_within = float(np.sum((value - mean[at]) ** 2)), len(value) - len(n)
    shift = float(np.sqrt(between / len(value)))
    if shift <= _SHIFT:
        return False
    if df_within == 0:  # algorithms may still differ in the same way on all instances
        away = value - centre[instance]
        rows = np.bincount(algorithm)
        mean = np.bincount(algorithm, weights=away) / np.maximum(rows, 1)
        df, df_within = int((rows > 0).sum()) - 1, df - int((rows > 0).sum()) + 1
        between, within = float(np.sum(rows * mean**2)), float(np.sum((away - mean[algorithm]) ** 2))
        if shift > _CLEAR_SHIFT or df_within <= 0:
            return shift > _CLEAR_SHIFT
    return within <= 0 or bool(fdtrc(df, df_within, between / df / (within / df_within)) < _CHANCE)


def are_single_trials(study: Study) -> bool:
    """Whether rows look like the trials of a search: numbered from 0 or 1, and neither curves nor bests so far."""
    levels, name = study.names("budget"), str(study.runs.budget)
    if study.runs.budget is None or not study.regular or _TRAINS.search(name) or not _numbered(levels):
        return False
    good = study.points.valid > 0
    run, y = study.code("run")[good], study.points.mean[good]
    starts, size = starts_of(run)
    centre = np.repeat(np.add.reduceat(y, starts) / size, size)
    deviations = float(np.sum((y - centre) ** 2 * np.repeat(size / np.maximum(size - 1, 1), size)))
    inside = np.diff(run) == 0
    step = np.diff(y)[inside]
    pairs = float(np.sum(step**2)) * float(np.sum(size)) / max(float(np.sum(size - 1)), 1.0)
    worse = step > 0 if study.runs.direction == "minimize" else step < 0
    often = len(np.unique(run[1:][inside][worse])) >= _OFTEN * len(starts)
    rough = _ROUGH_NAMED if _COUNTS_TRIALS.search(name) else _ROUGH
    return bool(often and deviations > 0 and pairs / deviations > rough)


def _numbered(levels: tuple[Any, ...]) -> bool:
    """Whole numbers from 0 or 1 on, without gaps."""
    try:
        values = np.asarray(levels, dtype=float)
    except (TypeError, ValueError):
        return False
    return len(values) >= _FEWEST_TRIALS and values[0] in (0.0, 1.0) and bool(np.all(np.diff(values) == 1.0))
