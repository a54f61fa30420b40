"""False differences and coverage where every run is a curve over the budget, by the default of `recommend`.

`python tests/simulation/test_curves_size.py [TABLES]` prints the tables of docs/horizons.md: three kinds of curves with
equal algorithms, and the power on one benchmark beside the t-test of the means of the curves.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest, ttest_ind

import lmemtest as lt

pytestmark = pytest.mark.level(3)
KINDS = ("random walk", "shared seeds", "best so far")
GAINS = {"random walk": 1.0, "shared seeds": 0.7, "best so far": 0.15}  # for the power
DESIGNS = ((1, 3), (1, 10), (2, 5), (3, 3), (6, 3), (12, 3))  # benchmarks, seeds
STEPS, TOOLS = 20, 3


def curves(
    rng: np.random.Generator, kind: str, benchmarks: int, seeds: int, tools: int = TOOLS, gain: float = 0.0
) -> pd.DataFrame:
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
    b, a, s, k = (axis.ravel() for axis in np.indices(shape))
    names = {"task": np.char.add("t", b.astype(str)), "tool": np.array(list("ABCDEF"))[a], "seed": s, "step": t[k]}
    return pd.DataFrame({**names, "loss": y.ravel()})


def runs_of(table: pd.DataFrame) -> lt.Runs:
    roles = {"score": "loss", "direction": "minimize", "algorithm": "tool", "benchmark": "task"}
    return lt.Runs(table, seed="seed", budget="step", seed_shared=False, **roles)


def compared(table: pd.DataFrame) -> Any:
    """All pairs by the recommended model."""
    model = lt.recommend(runs_of(table))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return lt.fit_lmm(model.formula, model.runs).emmeans("tool").pairs()


def rates(kind: str, benchmarks: int, seeds: int, n: int) -> tuple[int, int, float]:
    """Tables with any false pair, tables whose intervals all hold zero, and the share of single intervals that do."""
    rng = np.random.default_rng([KINDS.index(kind), benchmarks, seeds])
    found, all_hold, single = 0, 0, []
    for _ in range(n):
        pairs = compared(curves(rng, kind, benchmarks, seeds))
        frame = pairs.to_frame()
        alone = pairs.estimates.pairs(adjust="none").to_frame()
        found += bool((frame["p_value"] < 0.05).any())
        all_hold += bool(((frame["ci_low"] <= 0) & (frame["ci_high"] >= 0)).all())
        single.append(((alone["ci_low"] <= 0) & (alone["ci_high"] >= 0)).mean())
    return found, all_hold, float(np.mean(single))


def power(kind: str, seeds: int, gain: float, n: int) -> tuple[int, int]:
    """Tables of two tools on one benchmark in which the model, and the t-test of curve means, find the difference."""
    rng = np.random.default_rng([9, KINDS.index(kind), seeds])
    model = t_test = 0
    for _ in range(n):
        table = curves(rng, kind, 1, seeds, tools=2, gain=gain)
        model += bool((compared(table).to_frame()["p_value"] < 0.05).any())
        means = table.groupby(["tool", "seed"])["loss"].mean()
        t_test += bool(ttest_ind(means["A"], means["B"]).pvalue < 0.05)
    return model, t_test


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("benchmarks", "seeds"), [(1, 3), (2, 3), (3, 10), (6, 3)])
def test_equal_curves_are_called_different_in_five_percent(kind, benchmarks, seeds):
    n = 100
    found, *_ = rates(kind, benchmarks, seeds, n)
    assert binomtest(found, n, 0.07, alternative="greater").pvalue > 0.001


def test_curves_on_one_benchmark_have_the_power_of_their_means():
    model, t_test = power("random walk", 5, 0.8, 200)
    assert t_test > 60  # the design has power
    assert model >= t_test - 20


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 300
    print("| curves | benchmarks | seeds | any false pair | all intervals hold | single intervals |")
    for kind in KINDS:
        for benchmarks, seeds in DESIGNS:
            found, held, single = rates(kind, benchmarks, seeds, n)
            shares = " | ".join(f"{100 * share:.1f}" for share in (found / n, held / n, single))
            print(f"| {kind} | {benchmarks} | {seeds} | {shares} |", flush=True)
    print("| curves | seeds | the default | t-test of curve means |")
    for kind in KINDS:
        for seeds, gain in ((3, 0.8), (5, 0.6), (10, 0.4)):
            model, t_test = power(kind, seeds, GAINS[kind] * gain, n)
            print(f"| {kind} | {seeds} | {100 * model / n:.1f} | {100 * t_test / n:.1f} |", flush=True)


if __name__ == "__main__":
    main()
