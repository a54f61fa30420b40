"""The gate where tasks come in families, runs share seeds, or runs failed: a version at the margin seldom passes.

For the rows of docs/developers/validation.md: ``python tests/simulation/test_gate_designs.py 200``.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from harness import at_most, printed, rate_of, spawned
from study import runs_of_scores

import lmemtest as lt

MARGIN = 0.01


@dataclass(frozen=True, kw_only=True)
class Design:
    """Tasks, runs, and what versions do not share; standard deviations."""

    families: tuple[int, ...] = ()  # tasks of each
    n_tasks: int = 10
    n_seeds: int = 3
    of_family: float = 0.0  # advantages of versions that change between families
    of_task: float = 0.008
    of_seed: float = 0.0  # luck of a version with a seed, on all tasks
    fails: tuple[float, float] = (0.0, 0.0)  # shares of the runs of the new and the old version
    policy: Any = "worst"


DESIGNS = {
    "8 families of 1 to 5 tasks": Design(families=(1, 1, 2, 2, 3, 4, 5, 5), of_family=0.008),
    "6 families of 1 to 8 tasks": Design(families=(1, 1, 2, 3, 5, 8), of_family=0.008),
    "8 families, no advantages on them": Design(families=(1, 1, 2, 2, 3, 4, 5, 5)),
    "4 families, which are these": Design(families=(1, 2, 3, 4)),
    "3 shared seeds": Design(of_seed=0.005, n_seeds=3),
    "5 shared seeds": Design(of_seed=0.005, n_seeds=5),
    "5 shared seeds, no luck": Design(n_seeds=5),
    "1 of 20 runs fails, worst of the task": Design(fails=(0.05, 0.05)),
    "1 of 20 runs fails, counts 0": Design(fails=(0.05, 0.05), policy=0.0),
    "1 of 20 new runs fails, counts 0": Design(fails=(0.05, 0.0), policy=0.0, n_tasks=20),
    "1 of 20 runs fails, left out": Design(fails=(0.05, 0.05), policy="drop"),
}


def drawn(rng: np.random.Generator, design: Design) -> lt.Runs:
    """Runs of a version that is worse by the margin, failures counted by the policy."""
    sizes = np.array(design.families or [1] * design.n_tasks)
    family, n_seeds = np.repeat(np.arange(len(sizes)), sizes), design.n_seeds
    T, (lost, lost_old) = len(family), design.fails
    level = rng.uniform(0.5, 0.9, T)[:, None] + rng.normal(0, 0.01, (T, n_seeds))
    level = level + rng.normal(0, 0.01, n_seeds)
    if design.policy == 0.0:  # the mean of a version is (1 - share) of that of its runs, 0.7 for the old one
        gain = (0.7 * (1 - lost_old) - MARGIN) / (1 - lost) - 0.7
    else:
        gain = -MARGIN if design.policy == "drop" else -MARGIN / (1 - lost)
    scores = []
    for shift, share in ((gain, lost), (0.0, lost_old)):
        y = level + shift + rng.normal(0, design.of_family, len(sizes))[family][:, None]
        y = y + rng.normal(0, design.of_task, (T, 1)) + rng.normal(0, design.of_seed, n_seeds)
        y = y + rng.normal(0, 0.01, (T, n_seeds))
        scores.append(np.where(rng.random(y.shape) < share, np.nan, y))
    columns: dict[str, Any] = {"family": family[:, None]} if design.families else {}
    y = np.array(scores)
    runs = runs_of_scores(y, "algorithm benchmark seed", direction="maximize", **columns)
    return runs.score_failures(design.policy) if np.isnan(y).any() else runs


def rates(n: int, design: Design) -> np.ndarray:
    """Shares of the exit codes 0 (let through), 1 (blocked) and 2; B is the old version."""

    def study(rng: np.random.Generator) -> np.ndarray:
        return lt.gate(drawn(rng, design), "B", margin=MARGIN, allow="missing").exit_code == np.arange(3)

    return rate_of(study, n, spawned(1))


@pytest.mark.parametrize("name", ["8 families of 1 to 5 tasks", "5 shared seeds", "1 of 20 new runs fails, counts 0"])
def test_a_version_at_the_margin_seldom_passes_and_is_seldom_blocked(name):
    for share in rates(200, DESIGNS[name])[:2]:
        assert at_most(share, 200, 0.07)


if __name__ == "__main__":
    printed(rates, {name: (int(sys.argv[1]), DESIGNS[name]) for name in sys.argv[2:] or DESIGNS})
