"""Scores that are relative to the benchmark: ranks, z-scores, shares of a range or of a baseline."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import fdtr

from lmemtest.core.words import counted, percent

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.bench.data.runs import Runs

# Benchmarks with a fixed effect each in a model of relative scores beside that of the scores as measured: time and
# memory grow with the cube of their number, and of more a random effect takes its place.
MOST_FIXED = 100
# Of means that differ by so little, where difficulties do vary independently of advantages.
_CHANCE = 0.05


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
    from lmemtest.lmm.cells import compress

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
