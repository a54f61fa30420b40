"""Scores that are relative to the benchmark: ranks, z-scores, shares of a range."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy.special import fdtr

if TYPE_CHECKING:
    import pandas as pd

    from lmemtest.data.runs import Runs

# Of means that differ by so little, where difficulties do vary independently of advantages.
_CHANCE = 0.05


def relative_to(runs: Runs) -> tuple[str, ...]:
    """What scores are relative to: columns of benchmarks (instances) whose difficulty would have a negative variance.

    Empty where benchmarks differ in their means, as raw scores do, or where there is one benchmark.
    """
    instance = runs.study.instance
    if not runs.study.several_benchmarks:
        return ()
    from lmemtest.data.compress import compress

    cells = compress(runs, by=[*instance, runs.algorithm], score=runs.score)
    means = cells.frame.assign(score=cells.mean)
    conditions = list(runs.study.conditions)
    if conditions:  # what a condition does to an algorithm everywhere is no difficulty of benchmarks
        means["score"] -= means.groupby([*conditions, runs.algorithm], observed=True)["score"].transform("mean")
    relative = any(
        _varies_less_than_by_chance(means.pivot_table("score", list(places), runs.algorithm, observed=True))
        for places in dict.fromkeys([instance[:1], instance])
    )
    return instance if relative else ()


def _varies_less_than_by_chance(scores: pd.DataFrame) -> bool:
    """Whether the means of the rows differ less than independent deviations within rows would make them (F-test)."""
    y = scores.dropna().to_numpy()
    n, k = y.shape
    if n < 3 or k < 2:
        return False
    centre = y.mean(axis=1)
    around = y - centre[:, None] - (y - centre[:, None]).mean(axis=0)
    within = np.square(around).sum() / ((n - 1) * (k - 1))
    return bool(within > 0 and fdtr(n - 1, (n - 1) * (k - 1), k * centre.var(ddof=1) / within) < _CHANCE)
