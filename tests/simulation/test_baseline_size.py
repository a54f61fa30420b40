"""Scores relative to a baseline: what its noise does to tests that ignore it, and to those that count it."""

from __future__ import annotations

import numpy as np
import pytest
from harness import at_most, covers, differs, rate_of
from scipy import stats
from study import runs_of_scores

import lmemtest as lt

SEEDS = 10  # runs of the algorithms on each benchmark; the baseline, A, has its own number


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
    found = sizes(benchmarks, runs, 0.3, tau, uneven)
    assert at_most(found["others"], 4000, 0.06)
    assert at_most(found["log"], 4000, 0.06)
    if 0.3 / np.sqrt(runs) * np.sqrt(benchmarks) < 0.7:
        assert at_most(found["benchmarks"], 4000, 0.06)


def test_a_noisy_baseline_looks_better_than_its_like():
    found = sizes(20, 1, 0.3)
    assert found["benchmarks"] > 0.12  # the mean improvement is -9 %
    assert found["log"] < 0.06


def improvements(parts, **options):
    """Means of improvements on A, by the recommended model; (benchmarks, runs) losses of each algorithm."""
    scores = np.full((len(parts), len(parts[0]), SEEDS), np.nan)
    for row, losses_of_one in zip(scores, parts, strict=True):
        row[:, : losses_of_one.shape[1]] = losses_of_one
    runs = runs_of_scores(scores, "algorithm benchmark seed", kept=np.isfinite(scores), **options)
    scaled = runs.normalize("baseline", reference="A")
    means = lt.fit_lmm(lt.recommend(scaled).formula, scaled).emmeans("algorithm")
    return means, means.to_frame().set_index("algorithm").loc["B"]


@pytest.mark.parametrize("seed_shared", [False, True])
def test_the_noise_is_counted_where_the_baseline_has_two_seeds_of_ten(seed_shared):
    """What seeds add, on each benchmark or on all, is in the scores of all; random effects of seeds move all means."""

    def study(rng):
        seeds = rng.normal(0, 0.1, (1 if seed_shared else 8, SEEDS)) * np.ones((8, 1))
        parts = [
            np.exp(0.05 * rng.normal(size=(8, 1)) + seeds[:, :own] + 0.1 * rng.normal(size=(8, own)))
            for own in (2, SEEDS, SEEDS)
        ]
        return not covers(improvements(parts, seed_shared=seed_shared)[1], 0)

    assert at_most(rate_of(study, 100, 1), 100, 0.07)


@pytest.mark.parametrize("tau", [0.0, 0.1])
@pytest.mark.parametrize(("benchmarks", "runs"), [(5, 1), (5, 10), (10, 3), (20, 1), (20, 10)])
def test_the_recommended_model_counts_the_noise_of_the_baseline(benchmarks, runs, tau):
    """Intervals of mean improvements hold 1 - exp(tau^2), the mean of shares of alike algorithms; any pair differs."""

    def study(rng):
        parts = [losses(rng, 1, benchmarks, own, 0.1, tau, 1.0)[0] for own in (runs, SEEDS, SEEDS, SEEDS)]
        means, row = improvements(parts, seed_shared=False)
        return not covers(row, 1 - np.exp(tau**2)), differs(means.pairs())

    missed, differ = rate_of(study, 200, 7)
    assert at_most(missed, 200, 0.07)
    assert at_most(differ, 200, 0.07)
