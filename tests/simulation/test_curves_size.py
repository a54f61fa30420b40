"""False differences and coverage where every run is a curve over the budget, by the default of `recommend`.

`python tests/simulation/test_curves_size.py [TABLES]` prints the tables of docs/developers/anytime.md: three kinds of
curves with equal algorithms, and the power on one benchmark beside the t-test of the means of the curves.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
from harness import at_most, covers, differs, printed, rate_of
from scipy.stats import ttest_ind
from study import runs_of_scores

import lmemtest as lt

KINDS = ("random walk", "shared seeds", "best so far")
GAINS = {"random walk": 1.0, "shared seeds": 0.7, "best so far": 0.15}  # for the power
DESIGNS = ((1, 3), (1, 10), (2, 5), (3, 3), (6, 3), (12, 3))  # benchmarks, seeds
STEPS, TOOLS = 20, 3


def curves(
    rng: np.random.Generator, kind: str, benchmarks: int, seeds: int, tools: int = TOOLS, gain: float = 0.0
) -> np.ndarray:
    """Curves that fall towards a level; the last tool is lower by `gain`, apart from advantages on each benchmark."""
    t = np.arange(1, STEPS + 1)
    shape = (benchmarks, tools, seeds, STEPS)
    level = rng.normal(size=(benchmarks, 1, 1, 1)) + 0.3 * (benchmarks > 1) * rng.normal(size=(benchmarks, tools, 1, 1))
    course = 3.0 * np.exp(-t / rng.uniform(3, 9, size=(benchmarks, 1, 1, 1)))
    if kind == "random walk":
        noise = 0.1 * rng.normal(size=shape).cumsum(axis=-1) + 0.2 * rng.normal(size=(*shape[:-1], 1))
    elif kind == "shared seeds":  # a split of the data is the same for all tools on a benchmark
        noise = 0.3 * rng.normal(size=(benchmarks, 1, seeds, 1)) + 0.2 * rng.normal(size=(*shape[:-1], 1))
        noise = noise + 0.2 * rng.normal(size=shape)
    else:
        course, noise = np.zeros(1), np.minimum.accumulate(rng.exponential(size=shape), axis=-1)
    y = level + course + noise
    y[:, -1] -= gain
    return y


def compared(scores: np.ndarray) -> Any:
    """All pairs by the recommended model."""
    runs = runs_of_scores(scores, "benchmark algorithm seed budget", budget=1 + np.arange(STEPS), seed_shared=False)
    model = lt.recommend(runs)
    return lt.fit_lmm(model.formula, model.runs).emmeans("algorithm").pairs()


def rates(kind: str, benchmarks: int, seeds: int, n: int) -> np.ndarray:
    """Tables with any false pair, tables whose intervals all hold zero, and the share of single intervals that do."""

    def study(rng: np.random.Generator) -> tuple[bool, bool, float]:
        pairs = compared(curves(rng, kind, benchmarks, seeds))
        alone = pairs.estimates.pairs(adjust="none").to_frame()
        return differs(pairs), covers(pairs.to_frame(), 0).all(), covers(alone, 0).mean()

    return rate_of(study, n, [KINDS.index(kind), benchmarks, seeds])


def power(kind: str, seeds: int, gain: float, n: int) -> np.ndarray:
    """Tables of two tools on one benchmark in which the model, and the t-test of curve means, find the difference."""

    def study(rng: np.random.Generator) -> tuple[bool, bool]:
        scores = curves(rng, kind, 1, seeds, tools=2, gain=gain)
        return differs(compared(scores)), ttest_ind(*scores[0].mean(axis=-1)).pvalue < 0.05

    return rate_of(study, n, [9, KINDS.index(kind), seeds])


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("benchmarks", "seeds"), [(1, 3), (2, 3), (3, 10), (6, 3)])
def test_equal_curves_are_called_different_in_five_percent(kind, benchmarks, seeds):
    assert at_most(rates(kind, benchmarks, seeds, 100)[0], 100, 0.07)


def test_curves_on_one_benchmark_have_the_power_of_their_means():
    model, t_test = power("random walk", 5, 0.8, 200)
    assert t_test > 0.30  # the design has power
    assert model >= t_test - 0.10


if __name__ == "__main__":
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    print("curves, benchmarks, seeds, tables: any false pair, all intervals hold, single intervals")
    printed(rates, [(kind, *design, n) for kind in KINDS for design in DESIGNS])
    print("curves, seeds, gain, tables: the default, t-test of curve means")
    printed(power, [(kind, s, GAINS[kind] * g, n) for kind in KINDS for s, g in ((3, 0.8), (5, 0.6), (10, 0.4))])
