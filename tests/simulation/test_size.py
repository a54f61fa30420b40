"""How often true null hypotheses are rejected: the recommended model keeps its level, the naive one does not."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest
from study import make_study

import lmemtest as lt

pytestmark = pytest.mark.slow


def null_table(rng: np.random.Generator, benchmarks: int = 12, algorithms: int = 3, seeds: int = 8) -> pd.DataFrame:
    """Algorithms of equal mean whose advantage differs from benchmark to benchmark."""
    counts = {"benchmark": benchmarks, "algorithm": algorithms, "seed": seeds}
    table = make_study(rng, counts, {"benchmark": 1.0, "benchmark:algorithm": 0.4, "benchmark:seed": 0.5})
    return table.assign(algorithm=table["algorithm"].map("a{}".format))


def rejections(make_formula, n: int = 1000) -> int:
    """Tables in which some pair differs at 5 %, Tukey-adjusted."""
    rng = np.random.default_rng(20)
    count = 0
    for _ in range(n):
        runs = lt.Runs(
            null_table(rng),
            score="loss",
            direction="minimize",
            algorithm="algorithm",
            benchmark="benchmark",
            seed="seed",
        )
        fit = lt.fit_lmm(make_formula(runs), runs, restarts=0)
        count += bool((fit.emmeans("algorithm").pairs().to_frame()["p_value"] < 0.05).any())
    return count


def test_the_recommended_model_keeps_its_level():
    count = rejections(lambda runs: lt.recommend(runs).formula)
    assert binomtest(count, 1000, 0.05).pvalue > 0.001


def test_rows_counted_as_independent_find_differences_that_are_not_there():
    count = rejections(lambda _: "loss ~ algorithm + (1 | benchmark)", n=200)
    assert binomtest(count, 200, 0.05, alternative="greater").pvalue < 0.001


def test_confidence_intervals_of_a_difference_cover_it():
    rng = np.random.default_rng(3)
    covered = 0
    for _ in range(1000):
        fit = lt.fit_lmm(
            "loss ~ algorithm + (1|benchmark) + (1|benchmark:algorithm) + (1|benchmark:seed)",
            null_table(rng),
            restarts=0,
        )
        pair = fit.emmeans("algorithm").pairs(adjust="none").to_frame().iloc[0]
        covered += pair["ci_low"] <= 0 <= pair["ci_high"]
    assert binomtest(covered, 1000, 0.95).pvalue > 0.001


def test_instances_of_a_benchmark_are_not_more_benchmarks():
    rng = np.random.default_rng(8)
    rejected = {"recommended": 0, "instances": 0}
    for _ in range(300):
        table = null_table(rng, benchmarks=10, algorithms=2, seeds=10)
        advantage = pd.Series(rng.normal(size=20)).reindex(table["benchmark"] * 2 + (table["algorithm"] == "a1"))
        table["loss"] += advantage.to_numpy()
        table["prior"] = np.where(table["seed"] % 2, "good", "bad")
        roles = {"score": "loss", "direction": "minimize", "algorithm": "algorithm", "benchmark": "benchmark"}
        runs = lt.Runs(table, **roles, seed="seed", metafeatures=["prior"])
        models = {
            "recommended": lt.recommend(runs).formula,
            "instances": "loss ~ algorithm + (1|benchmark:prior) + (1|benchmark:prior:algorithm)",
        }
        for name, formula in models.items():
            fit = lt.fit_lmm(formula, runs, restarts=0)
            rejected[name] += bool(fit.emmeans("algorithm").pairs().to_frame()["p_value"].iloc[0] < 0.05)
    assert binomtest(rejected["recommended"], 300, 0.05).pvalue > 0.001
    assert binomtest(rejected["instances"], 300, 0.05, alternative="greater").pvalue < 0.001
