"""False differences of `analyze` where benchmarks share advantages in families that nobody named, and the warning."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

import lmemtest as lt

pytestmark = pytest.mark.slow

N = 120


def rates(families: int, tasks: int, share: float) -> tuple[float, float, float]:
    """Shares of tables of equal algorithms: with a false difference; with the warning; with the first and not both."""
    found = []
    for k in range(N):
        rng = np.random.default_rng([k, families])
        of_families = np.repeat(rng.normal(size=(families, 3)), tasks, axis=0)
        y = np.sqrt(share) * of_families + np.sqrt(1.0 - share) * rng.normal(size=(families * tasks, 3))
        b, a = np.indices(y.shape).reshape(2, -1)
        names = [f"space{i // tasks}-t{i % tasks}" for i in b]
        table = pd.DataFrame({"task": names, "tool": [f"a{i}" for i in a], "score": y.ravel()})
        runs = lt.Runs(table, score="score", direction="maximize", algorithm="tool", benchmark="task")
        analysis = lt.analyze(runs)
        false, warned = bool(analysis.decisions.significant.to_numpy().any()), analysis.undeclared.shows
        found.append((false, warned, false and not warned))
    return tuple(np.mean(found, axis=0))


@pytest.mark.parametrize(("families", "tasks"), [(5, 4), (16, 5)])
def test_names_without_families_behind_them_are_rarely_warned_about(families, tasks):
    for rate in rates(families, tasks, 0.0)[:2]:
        assert binomtest(round(N * rate), N, 0.05, alternative="greater").pvalue > 0.001


@pytest.mark.parametrize(("families", "tasks", "share"), [(5, 4, 0.5), (16, 5, 0.3)])
def test_families_that_make_false_differences_are_warned_about(families, tasks, share):
    false, warned, silent = rates(families, tasks, share)
    assert false > 0.1
    assert warned > 0.7
    assert binomtest(round(N * silent), N, 0.05, alternative="greater").pvalue > 0.001
