"""False differences of `analyze` where benchmarks share advantages in families that nobody named, and the warning."""

from __future__ import annotations

import numpy as np
import pytest
from harness import at_most, each, rate_of
from study import runs_of_scores

import lmemtest as lt

N = 120


def rates(families: int, tasks: int, share: float) -> np.ndarray:
    """Shares of tables of equal algorithms: with a false difference; with the warning; with the first and not both."""
    names = [f"space{i}-t{j}" for i in range(families) for j in range(tasks)]

    def study(rng: np.random.Generator) -> tuple[bool, bool, bool]:
        of_families = np.repeat(rng.normal(size=(families, 3)), tasks, axis=0)
        y = np.sqrt(share) * of_families + np.sqrt(1.0 - share) * rng.normal(size=(families * tasks, 3))
        analysis = lt.analyze(runs_of_scores(y, "benchmark algorithm", direction="maximize", benchmark=names))
        false, warned = bool(analysis.decisions.significant.to_numpy().any()), analysis.undeclared.shows
        return false, warned, false and not warned

    return rate_of(study, N, each(families))


@pytest.mark.parametrize(("families", "tasks"), [(5, 4), (16, 5)])
def test_names_without_families_behind_them_are_rarely_warned_about(families, tasks):
    for rate in rates(families, tasks, 0.0)[:2]:
        assert at_most(rate, N)


@pytest.mark.parametrize(("families", "tasks", "share"), [(5, 4, 0.5), (16, 5, 0.3)])
def test_families_that_make_false_differences_are_warned_about(families, tasks, share):
    false, warned, silent = rates(families, tasks, share)
    assert false > 0.1
    assert warned > 0.7
    assert at_most(silent, N)
