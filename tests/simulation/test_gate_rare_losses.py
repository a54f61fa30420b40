"""How often the gate lets a version pass that is worse by the margin through few tasks, or few runs that fail.

Every study is judged by `lt.gate`. For docs/gate.md: ``python tests/simulation/test_gate_rare_losses.py 300``.
"""

from __future__ import annotations

import sys
import time
import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

import lmemtest as lt
from lmemtest._replicates import replicate

MARGIN, N_SEEDS = 0.02, 3


@dataclass(frozen=True, kw_only=True)
class Design:
    """How the new version differs on `n_tasks`; its mean is worse by the margin."""

    n_tasks: int
    law: str = "normal"  # of the differences of tasks
    broken: float = 0.0  # share of tasks that lose 0.3
    fails: float = 0.0  # share of the new version's runs that count 0


def differences(rng: np.random.Generator, design: Design, shape: int) -> np.ndarray:
    """Differences of tasks with mean -MARGIN; standard deviation of 0.02 where they are skewed."""
    if design.law == "exponential":
        return -MARGIN * rng.exponential(size=shape)
    if design.law == "log-normal":  # of logarithms with standard deviation 1
        return -MARGIN * np.exp(rng.normal(size=shape) - 0.5)
    return 0.005 * rng.normal(size=shape) + 0.3 * design.broken - MARGIN - 0.3 * (rng.random(shape) < design.broken)


def drawn(rng: np.random.Generator, design: Design) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The new and the old version."""
    n = design.n_tasks
    level = rng.uniform(0.6, 0.9, n)
    keys = pd.MultiIndex.from_product([range(n), range(N_SEEDS)], names=["task", "seed"]).to_frame(index=False)
    gain = differences(rng, design, n)
    if design.fails:  # the loss by failures is part of the margin; runs that do not fail make up for it
        gain = gain + MARGIN + (0.75 * design.fails - MARGIN) / (1 - design.fails)
    new, old = (x[:, None] + 0.01 * rng.normal(size=(n, N_SEEDS)) for x in (level + gain, level))
    new = np.where(rng.random(new.shape) < design.fails, 0.0, new)
    return keys.assign(accuracy=new.ravel()), keys.assign(accuracy=old.ravel())


def decision(rng: np.random.Generator, design: Design, max_broken: float | None) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        new, old = drawn(rng, design)
        return lt.gate(
            new, old, margin=MARGIN, score="accuracy", benchmark="task", seed="seed", max_broken=max_broken
        ).exit_code


def rates(n: int, design: Design, max_broken: float | None = None, *, rng: int = 1) -> np.ndarray:
    """Shares of the exit codes 0 (let through), 1 (blocked) and 2."""
    codes = [code for code in replicate(lambda g: decision(g, design, max_broken), n, rng=rng) if isinstance(code, int)]
    assert len(codes) == n
    return np.bincount(codes, minlength=3) / n


@pytest.mark.level(3)
@pytest.mark.parametrize("n_tasks", [12, 30])
def test_whatever_breaks_a_tenth_of_the_tasks_seldom_passes_where_that_was_asked_for(n_tasks):
    found = rates(200, Design(n_tasks=n_tasks, broken=0.1), 0.1)
    assert found[0] * 200 <= binom.ppf(0.999, 200, 0.05)


@pytest.mark.level(3)
def test_without_asking_it_passes_as_often_as_no_task_of_the_sample_is_broken():
    found = rates(200, Design(n_tasks=12, broken=0.1))
    assert binom.ppf(0.001, 200, 0.9**12) <= found[0] * 200 <= binom.ppf(0.999, 200, 0.9**12)


@pytest.mark.level(3)
@pytest.mark.parametrize("n_tasks", [30, 100])
def test_visible_skew_seldom_lets_a_version_at_the_margin_pass(n_tasks):
    found = rates(200, Design(n_tasks=n_tasks, law="log-normal"))
    assert found[0] * 200 <= binom.ppf(0.999, 200, 0.08)  # 15 and 11 % by the t-test alone


DESIGNS = [
    *(Design(n_tasks=n, broken=0.1) for n in (12, 30, 100)),
    *(Design(n_tasks=n, law=law) for law in ("log-normal", "exponential", "normal") for n in (12, 30, 100)),
    *(Design(n_tasks=n, fails=0.025) for n in (25, 40)),
]

if __name__ == "__main__":
    for design in DESIGNS[int(sys.argv[2]) if len(sys.argv) > 2 else 0 :]:
        start = time.process_time()
        shares = [rates(int(sys.argv[1]), design, max_broken) for max_broken in (None, 0.1)]
        print(design, *(f"{100 * x[0]:.1f} / {100 * x[1]:.1f}" for x in shares), f"{time.process_time() - start:.0f} s")
