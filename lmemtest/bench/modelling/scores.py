"""What the scores of runs are: what a curve over the budget counts, and whether they are relative to the benchmark.

Relative scores are ranks, z-scores, shares of a range or of a baseline.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import fdtr

from lmemtest.bench.checks.budget_mix import are_single_trials
from lmemtest.bench.data.per_run import Course
from lmemtest.core.caller import named
from lmemtest.core.options import CURVE_CHOICES
from lmemtest.core.validate import check_choice
from lmemtest.core.words import counted, percent
from lmemtest.errors import ArgumentError
from lmemtest.lmm.cells import compress

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.bench.data.runs import Runs

# Benchmarks with a fixed effect each in a model of relative scores beside that of the scores as measured: time and
# memory grow with the cube of their number, and of more a random effect takes its place.
MOST_FIXED = 100
# Of means that differ by so little, where difficulties do vary independently of advantages.
_CHANCE = 0.05


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
    course = Course.of(runs)
    if not course.several:
        return None
    if are_single_trials(runs.study.detailed):
        return "best"
    if course.on_a_grid:
        return "mean"
    return "area" if course.overlap else None


def reduced(runs: Runs, curves: str | None = None) -> Runs:
    """The runs with one score each; as they are where `curves` is "model", or nothing is to be reduced."""
    if curves is not None:
        check_choice(curves, "curves", CURVE_CHOICES)
    if curves == "model":
        return runs
    if curves is None:
        how = curve_of(runs)
        return runs if how is None else runs.per_run(how)  # type: ignore[arg-type]
    if runs.budget is None:
        if runs.curve is not None and runs.curve.how == curves:
            return runs
        done = f"they were reduced already ({runs.curve.how})" if runs.curve else "these have none"
        raise ArgumentError(
            f"{named('curves')} says what the scores of a run over its budget count, so it needs runs with a budget, "
            f"and {done}. Name the column of the budget, or leave {named('curves')} out."
        )
    return runs.per_run(curves)  # type: ignore[arg-type]


def relative_to(runs: Runs) -> tuple[str, ...]:
    """What scores are relative to: columns of benchmarks (instances) whose difficulty would have a negative variance.

    Empty where benchmarks differ in their means, as raw scores do, or where there is one benchmark. Scores relative to
    a baseline that is among the algorithms have its chance deviations in common on each benchmark, with the sign
    reversed: within benchmarks they cancel.
    """
    instance = runs.study.instance
    if not runs.study.several_benchmarks:
        return ()
    if has_baseline(runs):
        return instance
    cells = compress(runs, by=[*instance, runs.algorithm], score=runs.score)
    means = cells.frame.assign(score=cells.mean)
    conditions = list(runs.study.conditions)
    if conditions:  # what a condition does to an algorithm everywhere is no difficulty of benchmarks
        means["score"] -= means.groupby([*conditions, runs.algorithm], observed=True)["score"].transform("mean")
    relative = any(
        vary_less_than_by_chance(
            means.pivot_table("score", list(places), runs.algorithm, observed=True).dropna().to_numpy()
        )
        for places in dict.fromkeys([instance[:1], instance])
    )
    return instance if relative else ()


def has_baseline(runs: Runs) -> bool:
    """Whether an algorithm of the table is what scores are relative to."""
    return runs.scale is not None and runs.scale.baseline in runs.algorithms


def of_baseline(runs: Runs) -> list[str]:
    """What scores relative to an algorithm share, and how much of it is chance."""
    anchors = runs.scale.anchors if runs.scale is not None else None
    if anchors is None:
        return []
    baseline, noise = anchors.reference, anchors.noise
    notes = [
        f"Scores are relative to the mean of {baseline}, whose chance deviations all scores of a benchmark share: "
        f"algorithms are compared within benchmarks, where they cancel, and the runs of {baseline} stay in the model, "
        "where they count."
    ]
    if noise is not None and np.isfinite(noise.error):
        what = "it" if not anchors.target else f"its distance from {anchors.target}"
        alike = ", if its runs scatter as those of the others" * noise.borrowed
        notes.append(
            f"The mean of {baseline} on a benchmark rests on {counted(noise.runs, 'run')} or more; "
            f"its standard error is {percent(noise.error)} of {what} (root mean square over benchmarks{alike})."
        )
    return notes


def vary_less_than_by_chance(y: NDArray[np.float64]) -> bool:
    """Whether the means of the rows differ less than independent deviations within rows would make them (F-test)."""
    n, k = y.shape
    if n < 3 or k < 2:
        return False
    centre = y.mean(axis=1)
    around = y - centre[:, None] - (y - centre[:, None]).mean(axis=0)
    within = np.square(around).sum() / ((n - 1) * (k - 1))
    return bool(within > 0 and fdtr(n - 1, (n - 1) * (k - 1), k * centre.var(ddof=1) / within) < _CHANCE)
