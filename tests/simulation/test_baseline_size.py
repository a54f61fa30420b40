"""Scores relative to a baseline: what its noise does to tests that ignore it, and to those that count it."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.stats import binomtest

import lmemtest as lt
from lmemtest.errors import DataWarning

pytestmark = pytest.mark.slow

ROLES = {"score": "loss", "direction": "minimize", "algorithm": "tool", "benchmark": "task", "seed": "rep"}
SEEDS = 10  # runs of the algorithms on each benchmark; the baseline has its own number


def losses(rng, n, benchmarks, runs, sigma, tau, spread):
    """Losses (n, benchmarks, runs) of one algorithm among alike ones: its advantages have sd tau, its runs sigma."""
    own = tau * rng.normal(size=(n, benchmarks, 1))
    return np.exp(own + sigma * spread * rng.normal(size=(n, benchmarks, runs)))


def rate(d):
    """How often a t-test of the rows finds a mean other than 0, at 5 %."""
    t = d.mean(axis=1) / d.std(axis=1, ddof=1) * np.sqrt(d.shape[1])
    return float(np.mean(2 * stats.t.sf(np.abs(t), d.shape[1] - 1) < 0.05))


def sizes(benchmarks, runs, sigma=0.3, tau=0.0, uneven=False, n=4000):
    """Shares of tables in which an algorithm that is like the baseline differs from it, by test."""
    rng = np.random.default_rng(1000 * benchmarks + runs)
    spread = np.exp(0.7 * rng.normal(size=(n, benchmarks, 1))) if uneven else np.ones((n, benchmarks, 1))
    spread = spread / np.sqrt(np.mean(np.square(spread)))
    R = losses(rng, n, benchmarks, runs, sigma, tau, spread)
    A, C = (losses(rng, n, benchmarks, SEEDS, sigma, tau, spread) for _ in range(2))
    r = R.mean(axis=2, keepdims=True)
    a, c = 1 - A / r, 1 - C / r
    return {
        "runs": rate(a.reshape(n, -1)),  # one-sample test of the improvements of all runs
        "benchmarks": rate(a.mean(axis=2)),
        "others": rate(a.mean(axis=2) - c.mean(axis=2)),  # two that are not the baseline
        "log": rate(np.log(A).mean(axis=2) - np.log(R).mean(axis=2)),
    }


@pytest.mark.parametrize(("runs", "least"), [(1, 0.40), (3, 0.25), (10, 0.12)])
@pytest.mark.parametrize("benchmarks", [5, 20])
def test_improvements_of_runs_are_not_independent(benchmarks, runs, least):
    assert sizes(benchmarks, runs, sigma=0.1)["runs"] > least


@pytest.mark.parametrize("uneven", [False, True])
@pytest.mark.parametrize("tau", [0.0, 0.1])
@pytest.mark.parametrize("runs", [1, 3, 10])
@pytest.mark.parametrize("benchmarks", [5, 10, 20])
def test_benchmarks_are(benchmarks, runs, tau, uneven):
    """Within the warning's bound on the bias; differences of others and logarithms always."""
    found, n = sizes(benchmarks, runs, 0.3, tau, uneven), 4000
    for name in ("others", "log"):
        assert binomtest(round(n * found[name]), n, 0.06, alternative="greater").pvalue > 0.001
    if 0.3 / np.sqrt(runs) * np.sqrt(benchmarks) < 0.7:
        assert binomtest(round(n * found["benchmarks"]), n, 0.06, alternative="greater").pvalue > 0.001


def test_a_noisy_baseline_looks_better_than_its_like():
    found = sizes(20, 1, 0.3)
    assert found["benchmarks"] > 0.12  # the mean improvement is -9 %
    assert found["log"] < 0.06


def table(rng, benchmarks, runs, tau, sigma=0.1):
    """R, X, Y and Z, all alike; R with its own number of runs."""
    parts = []
    for tool, own in (("R", runs), ("X", SEEDS), ("Y", SEEDS), ("Z", SEEDS)):
        x = losses(rng, 1, benchmarks, own, sigma, tau, 1.0)[0]
        names = pd.MultiIndex.from_product([range(benchmarks), [tool], range(own)], names=["task", "tool", "rep"])
        parts.append(names.to_frame(index=False).assign(loss=x.ravel()))
    return lt.Runs(pd.concat(parts, ignore_index=True), **ROLES, seed_shared=False)


@pytest.mark.parametrize("seed_shared", [False, True])
def test_the_noise_is_counted_where_the_baseline_has_two_seeds_of_ten(seed_shared):
    """What seeds add, on each benchmark or on all, is in the scores of all; random effects of seeds move all means."""
    rng, n = np.random.default_rng(1), 100
    missed = 0
    for _ in range(n):
        seeds = rng.normal(0, 0.1, (1 if seed_shared else 8, SEEDS)) * np.ones((8, 1))
        parts = []
        for tool, own in (("R", 2), ("X", SEEDS), ("Y", SEEDS)):
            x = np.exp(0.05 * rng.normal(size=(8, 1)) + seeds[:, :own] + 0.1 * rng.normal(size=(8, own)))
            names = pd.MultiIndex.from_product([range(8), [tool], range(own)], names=["task", "tool", "rep"])
            parts.append(names.to_frame(index=False).assign(loss=x.ravel()))
        runs = lt.Runs(pd.concat(parts, ignore_index=True), **ROLES, seed_shared=seed_shared)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            scaled = runs.normalize("baseline", reference="R")
        x = lt.fit_lmm(lt.recommend(scaled).formula, scaled).emmeans("tool").to_frame().set_index("tool").loc["X"]
        missed += not x["ci_low"] <= 0 <= x["ci_high"]
    print(seed_shared, "missed", missed / n)
    assert binomtest(missed, n, 0.07, alternative="greater").pvalue > 0.001


@pytest.mark.parametrize("tau", [0.0, 0.1])
@pytest.mark.parametrize(("benchmarks", "runs"), [(5, 1), (5, 10), (10, 3), (20, 1), (20, 10)])
def test_the_recommended_model_counts_the_noise_of_the_baseline(benchmarks, runs, tau):
    """Intervals of mean improvements hold 1 - exp(tau^2), the mean of shares of alike algorithms."""
    rng, n = np.random.default_rng(7), 200
    missed = differ = 0
    for _ in range(n):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DataWarning)
            scaled = table(rng, benchmarks, runs, tau).normalize("baseline", reference="R")
        means = lt.fit_lmm(lt.recommend(scaled).formula, scaled).emmeans("tool")
        x = means.to_frame().set_index("tool").loc["X"]
        missed += not x["ci_low"] <= 1 - np.exp(tau**2) <= x["ci_high"]
        differ += bool((means.pairs().to_frame()["p_value"] < 0.05).any())
    print(benchmarks, runs, tau, "missed", missed / n, "any pair", differ / n)
    for count in (missed, differ):
        assert binomtest(count, n, 0.07, alternative="greater").pvalue > 0.001
