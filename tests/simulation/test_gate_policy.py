"""Policies of the gate: a version that should not pass seldom does, and one at the border is seldom failed.

For the rows of docs/developers/validation.md: ``python tests/simulation/test_gate_policy.py 1000``.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from harness import at_least, at_most, printed, rate_of, spawned
from study import table_of_scores

import lmemtest as lt

MARGIN, SHARE = 0.01, 0.8
ROLES = {"benchmark": "task", "seed": "seed"}


@dataclass(frozen=True, kw_only=True)
class Design:
    """Losses of metrics by tier, in margins; and of a critical bar the share of runs that reach it, if there is one."""

    critical: tuple[float, ...] = ()
    supporting: tuple[float, ...] = ()
    failures: int = 1
    correlation: float = 0.0
    share: float | None = None
    tasks: str = "like these"
    n_tasks: int = 10
    n_seeds: int = 1
    unequal: bool = False  # noise, from task to task


DESIGNS = {
    "3 critical, 1 at the margin": Design(critical=(1, -1, -1)),
    "3 critical, all at the margin, correlation 0.9": Design(critical=(1, 1, 1), correlation=0.9),
    "4 supporting, 2 block, 2 at the margin": Design(supporting=(1, 1, -1, -1), failures=2),
    "4 supporting, 2 block, 3 at the margin": Design(supporting=(1, 1, 1, -1), failures=2),
    "the same, correlation 0.9, unequal noise": Design(
        supporting=(1, 1, -1, -1), failures=2, correlation=0.9, unequal=True
    ),
    "2 critical, 1 at the margin, 3 supporting, 2 block": Design(critical=(1, -1), supporting=(1, -1, -1), failures=2),
    "a bar at its share, 10 tasks with 5 runs, these": Design(share=SHARE, tasks="these", n_seeds=5),
    "a bar at its share, 40 tasks with 1 run": Design(share=SHARE, n_tasks=40, n_seeds=1),
    "a bar at its share, 20 tasks with 5 runs": Design(share=SHARE, n_tasks=20, n_seeds=5),
    "a bar at its share, and 2 critical that are better": Design(critical=(-1, -1), share=SHARE, n_tasks=30),
}


def drawn(rng: np.random.Generator, design: Design) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Both versions; metrics correlate in their noise and in their advantages on tasks."""
    losses = np.array([*design.critical, *design.supporting]) * MARGIN
    shape = (design.n_tasks, design.n_seeds)
    both = table_of_scores(np.zeros((2, *shape)), "version task seed", score="zero")
    noise = 0.01 * (np.exp(rng.normal(0.0, 0.7, (design.n_tasks, 1, 1))) if design.unequal else 1.0)

    def draws(*size: int) -> np.ndarray:
        shared, own = rng.normal(size=(*size, 1)), rng.normal(size=(*size, len(losses)))
        return np.asarray(np.sqrt(design.correlation) * shared + np.sqrt(1.0 - design.correlation) * own)

    level = rng.uniform(0.5, 0.9, (design.n_tasks, 1, 1)) + 0.01 * draws(*shape)
    advantage = 0.008 * (design.tasks != "these")  # versions that are equal are so on each of these tasks
    scores = np.array(
        [level - times * losses + advantage * draws(design.n_tasks, 1) + noise * draws(*shape) for times in (1.0, 0.0)]
    )
    for k in range(len(losses)):
        both[f"m{k}"] = scores[..., k].ravel()
    if design.share is not None:  # of tasks with chances of their own; of these tasks their mean is the share
        chance = rng.beta(4.0 * design.share, 4.0 * (1.0 - design.share), (2, design.n_tasks, 1))
        if design.tasks == "these":
            chance = design.share + np.linspace(-0.2, 0.2, design.n_tasks)[:, None] * np.ones((2, 1, 1))
        both["solved"] = (rng.random((2, *shape)) < chance).astype(float).ravel()
    both = both.drop(columns="zero")
    return tuple(both[both["version"] == k].drop(columns="version") for k in (0, 1))  # type: ignore[return-value]


def policy_of(design: Design) -> dict[str, Any]:
    n = len(design.critical)
    critical: dict[str, Any] = {f"m{k}": {"margin": MARGIN} for k in range(n)}
    if design.share is not None:
        critical["solved"] = {"bar": 1, "share": SHARE}
    supporting = {f"m{k + n}": {"margin": MARGIN} for k in range(len(design.supporting))}
    return {
        "tasks": design.tasks,
        "direction": "maximize",
        "critical": critical,
        **({"supporting": supporting, "supporting_failures": design.failures} if supporting else {}),
    }


def rates(n: int, design: Design) -> np.ndarray:
    """Shares of the exit codes 0 (pass), 1 (fail) and 2 (insufficient)."""
    policy = policy_of(design)

    def study(rng: np.random.Generator) -> np.ndarray:
        return lt.gate(*drawn(rng, design), policy=policy, **ROLES).exit_code == np.arange(3)

    return rate_of(study, n, spawned(1))


def settled(n: int, first: Design, rng: int = 2) -> dict[str, float]:
    """How often equal versions pass with as many tasks as a first study of 12 tasks said."""
    policy = policy_of(first) | {"alpha": 0.05}

    def study(rng: np.random.Generator) -> dict[str, float]:
        answer = lt.gate(*drawn(rng, first), policy=policy, **ROLES)
        size = int(answer.metrics["n_needed"].max())
        size, runs = (first.n_tasks, size) if first.tasks == "these" else (size, first.n_seeds)
        passes = lt.gate(*drawn(rng, replace(first, n_tasks=size, n_seeds=runs)), policy=policy, **ROLES).exit_code == 0
        return {"passes": passes, "passes, was open": passes if answer.exit_code == 2 else np.nan}

    return dict(rate_of(study, n, spawned(rng)))


FIRST = {
    "6 tasks": Design(critical=(0.0,), n_tasks=6),
    "12 tasks": Design(critical=(0.0,), n_tasks=12),
    "12 tasks, unequal noise": Design(critical=(0.0,), n_tasks=12, unequal=True),
    "12 tasks, 2 critical metrics": Design(critical=(0.0, 0.0), n_tasks=12),
    "30 tasks": Design(critical=(0.0,), n_tasks=30),
    "3 runs on 4 tasks, which are these": Design(critical=(0.0,), n_tasks=4, n_seeds=3, tasks="these"),
}


@pytest.mark.parametrize("name", [name for name in DESIGNS if "correlation" in name or "bar" in name])
@pytest.mark.slow
def test_a_version_that_should_not_pass_seldom_does(name):
    for share in rates(200, DESIGNS[name])[:2]:
        assert at_most(share, 200)


@pytest.mark.slow
def test_as_many_tasks_as_were_said_have_the_power():
    rates = settled(300, FIRST["12 tasks"])
    assert at_least(rates["passes"], 300, 0.8)


if __name__ == "__main__":
    printed(rates, {name: (int(sys.argv[1]), DESIGNS[name]) for name in sys.argv[2:] or DESIGNS})
    for name, design in FIRST.items():
        print(name, settled(int(sys.argv[1]), design))
