"""How often true null hypotheses are rejected: the recommended model keeps its level, the naive one does not."""

from __future__ import annotations

import numpy as np
from harness import about, at_most, covers, differs, rate_of
from study import make_scores, runs_of_scores

import lmemtest as lt

AXES = "benchmark algorithm seed"


def null_scores(rng: np.random.Generator, *counts: int) -> np.ndarray:
    """Algorithms of equal mean whose advantage differs from benchmark to benchmark."""
    sds = {"benchmark": 1.0, "benchmark:algorithm": 0.4, "benchmark:seed": 0.5}
    return make_scores(rng, dict(zip(AXES.split(), counts, strict=True)), sds)


def rejects(runs: lt.Runs, formula: str) -> bool:
    """Whether some pair differs at 5 %."""
    return differs(lt.fit_lmm(formula, runs, restarts=0).emmeans("algorithm").pairs())


def rejections(formula_of, n: int) -> float:
    def study(rng):
        runs = runs_of_scores(null_scores(rng, 12, 3, 8))
        return rejects(runs, formula_of(runs))

    return rate_of(study, n, 20)


def test_the_recommended_model_keeps_its_level():
    assert about(rejections(lambda runs: lt.recommend(runs).formula, 1000), 1000)


def test_rows_counted_as_independent_find_differences_that_are_not_there():
    assert not at_most(rejections(lambda _: "score ~ algorithm + (1 | benchmark)", 200), 200)


def test_confidence_intervals_of_a_difference_cover_it():
    formula = "score ~ algorithm + (1|benchmark) + (1|benchmark:algorithm) + (1|benchmark:seed)"

    def study(rng):
        fit = lt.fit_lmm(formula, runs_of_scores(null_scores(rng, 12, 3, 8)).to_frame(), restarts=0)
        return covers(fit.emmeans("algorithm").pairs(adjust="none").to_frame().iloc[0], 0)

    assert about(rate_of(study, 1000, 3), 1000, 0.95)


def test_instances_of_a_benchmark_are_not_more_benchmarks():
    prior = np.array(["bad", "good"])[np.arange(10) % 2]

    def study(rng):
        runs = runs_of_scores(null_scores(rng, 10, 2, 10) + rng.normal(size=(10, 2, 1)), prior=prior)
        naive = "score ~ algorithm + (1|benchmark:prior) + (1|benchmark:prior:algorithm)"
        return rejects(runs, lt.recommend(runs).formula), rejects(runs, naive)

    recommended, instances = rate_of(study, 300, 8)
    assert about(recommended, 300)
    assert not at_most(instances, 300)
