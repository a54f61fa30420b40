"""Algorithms that fail alike are found alike, and intervals of failure rates hold what they say they hold."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom, rankdata

import lmemtest as lt
from lmemtest.bench.failures.counts import alike_p_values
from lmemtest.bench.robustness.failures import _pairs, _scored
from lmemtest.lmm.distributions.studentized_range import ptukey
from lmemtest.lmm.intervals.bounded_mean import bounded_mean_interval

pytestmark = pytest.mark.level(3)
ALGORITHMS = ["A", "B", "C"]


def drawn(rng: np.random.Generator, benchmarks: int, rate: float, own: bool) -> tuple[np.ndarray, np.ndarray]:
    """Scores and failures of three algorithms that are and fail alike, ``(benchmarks, algorithms, seeds)``.

    Runs fail with one chance, or with one of its own for each algorithm on each benchmark.
    """
    shape = (benchmarks, len(ALGORITHMS), 5)
    score = rng.normal(size=shape[:1])[:, None, None] + 0.3 * rng.normal(size=shape[:2])[..., None]
    score = score + 0.2 * rng.normal(size=shape)
    chance = rng.beta(0.3, 0.3 * (1 - rate) / rate, size=shape[:2])[..., None] if own else rate
    return score, rng.random(shape) < chance


def alike(rng: np.random.Generator, benchmarks: int, rate: float, *, own: bool) -> lt.Runs:
    """The same as runs."""
    score, failed = drawn(rng, benchmarks, rate, own)
    shape = score.shape
    b, a, s = np.indices(shape)
    table = {"task": b.ravel(), "tool": np.array(ALGORITHMS)[a.ravel()], "seed": s.ravel(), "loss": score.ravel(),
             "failed": failed.ravel()}  # fmt: skip
    return lt.Runs(
        pd.DataFrame(table), score="loss", direction="minimize", algorithm="tool", benchmark="task", seed="seed",
        failed="failed",
    )  # fmt: skip


def found_by(runs: lt.Runs, policy: str, alpha: float = 0.05) -> bool | None:
    """Whether the usual path finds any difference; None where the policy cannot be applied."""
    try:
        scored = _scored(runs, runs, policy, None)
    except lt.errors.DataError:
        return None
    return bool((_pairs(scored, alpha).to_frame()["p_value"] < alpha).any())


def some_pair_differs(Y: np.ndarray) -> bool:
    """Tukey's test over benchmark means: that of the recommended model of a balanced table."""
    means = Y.mean(axis=2)
    benchmarks, k = means.shape
    rest = means - means.mean(axis=1, keepdims=True) - means.mean(axis=0) + means.mean()
    df = (benchmarks - 1) * (k - 1)
    error = np.sqrt((rest**2).sum() / df / benchmarks)
    return bool(ptukey(np.ptp(means.mean(axis=0)) / error, k, df, upper=True) < 0.05)


def share_found(benchmarks: int, rate: float, own: bool, tables: int) -> dict[str, float]:
    """How often some pair differs, where failed runs have the worst score, or the last rank."""
    rng = np.random.default_rng([1, benchmarks, int(1000 * rate), own])
    found: dict[str, list[bool]] = {"worst": [], "rank": []}
    while len(found["worst"]) < tables:
        score, failed = drawn(rng, benchmarks, rate, own)
        if failed.all(axis=(1, 2)).any():
            continue
        worst = np.where(failed, -np.inf, score).max(axis=(1, 2), keepdims=True)
        found["worst"].append(some_pair_differs(np.where(failed, worst, score)))
        ranks = rankdata(np.where(failed, worst + 1, score).reshape(benchmarks, -1), axis=1)
        found["rank"].append(some_pair_differs(ranks.reshape(score.shape)))
    return {policy: float(np.mean(one)) for policy, one in found.items()}


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize("rate", [0.01, 0.05, 0.1, 0.3])
@pytest.mark.parametrize("benchmarks", [5, 10, 20])
def test_algorithms_that_fail_alike_are_found_alike(benchmarks: int, rate: float, own: bool) -> None:
    tables = 2000
    for share in share_found(benchmarks, rate, own, tables).values():
        assert share * tables <= binom.ppf(0.999, tables, 0.06)


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize(("benchmarks", "rate"), [(5, 0.3), (10, 0.05)])
def test_the_recommended_path_finds_no_more(benchmarks: int, rate: float, own: bool) -> None:
    rng = np.random.default_rng([4, benchmarks, int(1000 * rate), own])
    found = [found_by(alike(rng, benchmarks, rate, own=own), "worst") for _ in range(100)]
    known = [one for one in found if one is not None]
    assert len(known) > 80
    assert sum(known) <= binom.ppf(0.999, len(known), 0.06)


@pytest.mark.parametrize("own", [False, True])
@pytest.mark.parametrize(("benchmarks", "rate"), [(5, 0.1), (10, 0.05), (20, 0.01), (20, 0.3)])
def test_failure_rates_that_are_alike_are_found_alike(benchmarks: int, rate: float, own: bool) -> None:
    """Over further benchmarks always; on these ones where the chance is one on each."""
    rng = np.random.default_rng([2, benchmarks, int(1000 * rate), own])
    found = {"run": 0, "benchmark": 0}
    tables = 300
    for _ in range(tables):
        rates = lt.failure_rates(alike(rng, benchmarks, rate, own=own), rng=rng)
        for name in found:
            found[name] += bool((rates.pairs.loc[rates.pairs["population"] == name, "p_value"] < 0.05).any())
    assert found["benchmark"] <= binom.ppf(0.999, tables, 0.05)
    if not own:
        assert found["run"] <= binom.ppf(0.999, tables, 0.05)


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
    most = binom.ppf(0.999, 2 * tables, 0.05) / (2 * tables)
    assert found["benchmark"] <= most
    if cause == "algorithm":
        assert found["run"] > 0.2
    else:
        assert found["run"] <= most


def share_dependent(failed: list[np.ndarray], runs: np.ndarray) -> dict[str, float]:
    """In how many tables failing is found to depend on the algorithm, by population."""
    found = pd.DataFrame([alike_p_values(table, runs) for table in failed]) < 0.05
    return {str(name): float(share) for name, share in found.mean().items()}


@pytest.mark.parametrize("first", [5, 20])
@pytest.mark.parametrize("of_algorithm", [False, True])
@pytest.mark.parametrize(("benchmarks", "rate"), [(5, 0.3), (10, 0.05), (20, 0.3)])
def test_nor_if_benchmarks_or_algorithms_on_them_have_chances_of_their_own(
    benchmarks: int, rate: float, of_algorithm: bool, first: int
) -> None:
    """Also where one algorithm has four times as many runs."""
    rng, tables = np.random.default_rng([6, benchmarks, first]), 300
    runs = np.full((benchmarks, 3), 5)
    runs[:, 0] = first
    shape = (benchmarks, 3 if of_algorithm else 1)
    failed = [
        rng.binomial(runs, np.broadcast_to(rng.beta(0.3, 0.3 * (1 - rate) / rate, shape), runs.shape))
        for _ in range(tables)
    ]
    assert share_dependent(failed, runs)["benchmark"] * tables <= binom.ppf(0.999, tables, 0.055)


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
    held = sum(low <= rate <= high for low, high in map(bounded_mean_interval, shares))
    assert held >= binom.ppf(0.001, tables, 0.95)


@pytest.mark.parametrize("benchmarks", [10, 20, 30])
def test_equal_rates_are_not_equal_ways_to_fail(benchmarks):
    """Not a size: one algorithm fails with all seeds on a tenth of the benchmarks, the others one by one as often."""
    found = 0
    for k in range(1000):
        rng = np.random.default_rng([k, benchmarks])
        failed = rng.binomial(5, 0.1, size=(benchmarks, 4))
        failed[:, 0] = 5 * (rng.random(benchmarks) < 0.1)
        found += alike_p_values(failed, np.full_like(failed, 5))["benchmark"] < 0.05
    print(f"{benchmarks} benchmarks: {found / 10} %")
    assert 50 < found < 150
