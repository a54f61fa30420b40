"""Algorithms that fail alike are found alike, and intervals of failure rates hold what they say they hold."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from harness import answers_of, at_least, at_most, differs, each, rate_of, tukey_differs
from scipy.stats import rankdata
from study import as_runs, make_scores, runs_of_scores, table_of_scores

import lmemtest as lt
from lmemtest.bench.failures.counts import alike_p_values
from lmemtest.bench.robustness.policies import _scored
from lmemtest.bench.robustness.variants import compared
from lmemtest.core.proportions import bounded_mean_interval


def drawn(rng: np.random.Generator, benchmarks: int, rate: float, own: bool) -> tuple[np.ndarray, np.ndarray]:
    """Scores and failures of three algorithms that are and fail alike, ``(benchmarks, algorithms, seeds)``.

    Runs fail with one chance, or with one of its own for each algorithm on each benchmark.
    """
    shape = (benchmarks, 3, 5)
    score = rng.normal(size=shape[:1])[:, None, None] + 0.3 * rng.normal(size=shape[:2])[..., None]
    score = score + 0.2 * rng.normal(size=shape)
    chance = rng.beta(0.3, 0.3 * (1 - rate) / rate, size=shape[:2])[..., None] if own else rate
    return score, rng.random(shape) < chance


def alike(rng: np.random.Generator, benchmarks: int, rate: float, *, own: bool) -> lt.Runs:
    """The same as runs."""
    score, failed = drawn(rng, benchmarks, rate, own)
    return runs_of_scores(score, failed=failed)


def share_found(benchmarks: int, rate: float, own: bool, tables: int) -> np.ndarray:
    """How often some pair differs, where failed runs have the worst score, or the last rank."""

    def study(rng: np.random.Generator) -> list[bool]:
        failed = np.ones((1, 1, 1), dtype=bool)
        while failed.all(axis=(1, 2)).any():
            score, failed = drawn(rng, benchmarks, rate, own)
        worst = np.where(failed, -np.inf, score).max(axis=(1, 2), keepdims=True)
        ranks = rankdata(np.where(failed, worst + 1, score).reshape(benchmarks, -1), axis=1)
        return [tukey_differs(np.where(failed, worst, score)), tukey_differs(ranks.reshape(score.shape))]

    return rate_of(study, tables, [1, benchmarks, int(1000 * rate), own])


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("rate", [0.01, 0.05, 0.1, 0.3])
@pytest.mark.parametrize("benchmarks", [5, 10, 20])
def test_algorithms_that_fail_alike_are_found_alike(benchmarks: int, rate: float, own: bool) -> None:
    for share in share_found(benchmarks, rate, own, 2000):
        assert at_most(share, 2000, 0.06)


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize(("benchmarks", "rate"), [(5, 0.3), (10, 0.05)])
def test_the_recommended_path_finds_no_more(benchmarks: int, rate: float, own: bool) -> None:
    def study(rng: np.random.Generator) -> bool:
        runs = alike(rng, benchmarks, rate, own=own)
        return differs(compared(_scored(runs, runs, "worst", None), {"alpha": 0.05})[-1])

    answers = np.array(answers_of(study, 100, [4, benchmarks, int(1000 * rate), own], refused=np.nan), dtype=float)
    known = answers[np.isfinite(answers)]  # the others cannot be scored: no run of a benchmark has a score
    assert len(known) > 80
    assert at_most(known.mean(), len(known), 0.06)


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize(("benchmarks", "rate"), [(5, 0.1), (10, 0.05), (20, 0.01), (20, 0.3)])
def test_failure_rates_that_are_alike_are_found_alike(benchmarks: int, rate: float, own: bool) -> None:
    """Over further benchmarks always; on these ones where the chance is one on each."""

    def study(rng: np.random.Generator) -> dict[str, bool]:
        pairs = lt.failure_rates(alike(rng, benchmarks, rate, own=own), rng=rng).pairs
        return {name: differs(pairs[pairs["population"] == name]) for name in ("run", "benchmark")}

    found = rate_of(study, 300, [2, benchmarks, int(1000 * rate), own])
    assert at_most(found["benchmark"], 300)
    assert own or at_most(found["run"], 300)


def together(rng: np.random.Generator, shape: tuple[int, ...], rate: float, cause: str) -> np.ndarray:
    """Failed runs of algorithms that fail alike: all that share a cause, or none."""
    kept = {"each run": (1, 1, 1), "algorithm": (1, 1, 0), "seed of a benchmark": (1, 0, 1), "seed": (0, 0, 1)}[cause]
    drawn = rng.random([n if own else 1 for n, own in zip(shape, kept, strict=True)])
    return np.broadcast_to(drawn < rate, shape)


@pytest.mark.parametrize("cause", ["each run", "algorithm", "seed of a benchmark", "seed"])
@pytest.mark.parametrize("many", [2, 3, 6])
@pytest.mark.parametrize("benchmarks", [5, 10, 20])
def test_failing_depends_on_no_algorithm_whatever_fails_together(cause: str, many: int, benchmarks: int) -> None:
    """On further benchmarks always; on these ones unless the runs of an algorithm on a benchmark fail together."""
    rng, tables = np.random.default_rng([5, many, benchmarks]), 300
    shape = (benchmarks, many, 5)
    failed = [together(rng, shape, rate, cause).sum(axis=2) for rate in (0.05, 0.3) for _ in range(tables)]
    found = share_dependent(failed, np.full((benchmarks, many), 5))
    assert at_most(found["benchmark"], 2 * tables)
    assert found["run"] > 0.2 if cause == "algorithm" else at_most(found["run"], 2 * tables)


def share_dependent(failed: list[np.ndarray], runs: np.ndarray) -> dict[str, float]:
    """In how many tables failing is found to depend on the algorithm, by population."""
    found = pd.DataFrame([alike_p_values(table, runs) for table in failed]) < 0.05
    return {str(name): float(share) for name, share in found.mean().items()}


@pytest.mark.parametrize("first", [5, 20])
@pytest.mark.parametrize("of_algorithm", [False, True])
@pytest.mark.parametrize(("benchmarks", "rate"), [(5, 0.3), (10, 0.05), (20, 0.3)])
def test_nor_if_benchmarks_or_algorithms_on_them_have_chances_of_their_own(benchmarks, rate, of_algorithm, first):
    """Also where one algorithm has four times as many runs."""
    rng, tables = np.random.default_rng([6, benchmarks, first]), 300
    runs = np.full((benchmarks, 3), 5)
    runs[:, 0] = first
    shape = (benchmarks, 3 if of_algorithm else 1)
    failed = [
        rng.binomial(runs, np.broadcast_to(rng.beta(0.3, 0.3 * (1 - rate) / rate, shape), runs.shape))
        for _ in range(tables)
    ]
    assert at_most(share_dependent(failed, runs)["benchmark"], tables, 0.055)


def test_a_seed_of_an_algorithm_that_fails_on_all_benchmarks_is_counted_as_many() -> None:
    """What no exchange within benchmarks can see; the note of `failure_rates` names such seeds."""
    rng, runs = np.random.default_rng(7), np.full((10, 3), 5)
    failed = [np.broadcast_to((rng.random((3, 5)) < 0.3).sum(axis=1), runs.shape) for _ in range(300)]
    assert min(share_dependent(failed, runs).values()) > 0.5


@pytest.mark.parametrize("benchmarks", [5, 20])
@pytest.mark.parametrize("rate", [0.01, 0.1, 0.5])
def test_intervals_of_rates_hold_for_further_benchmarks(benchmarks: int, rate: float) -> None:
    """Rates of benchmarks from a beta distribution with much mass at zero, five seeds each."""
    rng = np.random.default_rng([3, benchmarks, int(1000 * rate)])
    tables = 2000
    own = rng.beta(0.3, 0.3 * (1 - rate) / rate, size=(tables, benchmarks))
    shares = rng.binomial(5, own) / 5
    assert at_least(np.mean([low <= rate <= high for low, high in map(bounded_mean_interval, shares)]), tables)


@pytest.mark.parametrize("benchmarks", [10, 20, 30])
def test_equal_rates_are_not_equal_ways_to_fail(benchmarks):
    """Not a size: one algorithm fails with all seeds on a tenth of the benchmarks, the others one by one as often."""

    def study(rng: np.random.Generator) -> bool:
        failed = rng.binomial(5, 0.1, size=(benchmarks, 4))
        failed[:, 0] = 5 * (rng.random(benchmarks) < 0.1)
        return alike_p_values(failed, np.full_like(failed, 5))["benchmark"] < 0.05

    assert 0.05 < rate_of(study, 1000, each(benchmarks)) < 0.15


def kinds_left_out(rng: np.random.Generator, rate: float, by_score: bool) -> bool:
    """Whether the first of three alike algorithms differs, where its jobs are lost at a rate of its own.

    The other two lose 5 %. Jobs are lost by chance, or the worse half of the runs nine times as often.
    """
    score = make_scores(
        rng, {"benchmark": 10, "algorithm": 3, "seed": 5}, {"benchmark": 1.0, "benchmark:algorithm": 0.2}
    )
    chance = np.broadcast_to(np.array([rate, 0.05, 0.05])[None, :, None], score.shape)
    if by_score:  # high scores are bad
        worse = score > np.median(score, axis=(1, 2), keepdims=True)
        chance = np.where(worse, 1.8, 0.2) * chance
    kinds = np.where(rng.random(score.shape) < chance, "infra", np.where(rng.random(score.shape) < 0.05, "slow", "ok"))
    table = table_of_scores(score).assign(status=kinds.ravel())
    runs = as_runs(table, failed="status", seed_shared=False).score_failures({"infra": "drop", "slow": "worst"})
    p = compared(runs, {"alpha": 0.05})[-1].to_frame()
    first = (p[["left", "right"]] == runs.algorithms[0]).any(axis=1)
    return bool((p.loc[first, "p_value"] < 0.05).any())


@pytest.mark.parametrize(
    ("rate", "by_score", "low", "high"), [(0.05, False, 0.0, 0.06), (0.3, False, 0.0, 0.06), (0.3, True, 0.06, 1.0)]
)
def test_a_kind_that_is_left_out_does_harm_where_it_depends_on_the_score(rate, by_score, low, high):
    share = rate_of(lambda rng: kinds_left_out(rng, rate, by_score), 600, [11, int(100 * rate), by_score])
    assert at_most(share, 600, high)
    assert at_least(share, 600, low)
