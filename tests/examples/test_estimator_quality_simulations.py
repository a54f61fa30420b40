"""Coverage of the intervals of estimators of a mean score, and the variance of real estimates against the formula."""

from __future__ import annotations

import numpy as np
import pytest
from harness import covers, rate_of
from numpy.testing import assert_allclose
from paper_figures.estimator_quality import quality_from_components, quality_from_scores, variance_of_mean
from paper_figures.estimators import fixed_tuning_estimator, ideal_estimator

pytestmark = pytest.mark.level(3)

VARIANCES = {"tuning": 1.0, "data": 4.0, "init": 2.0}


@pytest.mark.parametrize(("m", "n"), [(20, 50), (5, 10)])
@pytest.mark.parametrize("rho", [0.0, 0.1, 0.5, 0.9])
def test_coverage_of_intervals_of_the_correlation_and_of_the_standard_error(m, n, rho):
    """1,000 studies: that of rho is exact, that of the standard error approximate between k = 1 and k = n."""
    k = np.array([1, 2, n // 2, n])
    truth = np.sqrt(variance_of_mean(1.0, rho, k))

    def study(rng):
        scores = rng.normal(scale=rho**0.5, size=(m, 1)) + rng.normal(scale=(1 - rho) ** 0.5, size=(m, n))
        found = quality_from_scores({"x": scores})
        return [covers(found.estimators.iloc[0], rho, "rho"), *covers(found.curves.iloc[k - 1], truth)]

    held = rate_of(study, 1000, round(10 * rho) + m)
    print(m, n, rho, held)
    assert np.all(np.abs(held - 0.95) < [0.025, 0.04, 0.04, 0.04, 0.025])


@pytest.mark.parametrize(("m", "N"), [(20, 60), (5, 60), (5, 10)])
def test_coverage_of_the_interval_of_the_bias(m, N):
    """1,000 studies with rho = 0.5, 10 scores of each realisation and a bias of one standard deviation."""

    def study(rng):
        scores = 1.0 + 0.5**0.5 * (rng.normal(size=(m, 1)) + rng.normal(size=(m, 10)))
        return covers(quality_from_scores({"x": scores}, ideal=rng.normal(size=N)).estimators.iloc[-1], 1.0, "bias")

    assert abs(rate_of(study, 1000, m + N) - 0.95) < 0.025


def effect(seeds, name):
    """A normal number with the variance of its source, by the seed of its source alone."""
    return VARIANCES[name] ** 0.5 * np.random.default_rng(seeds[name]).normal()


def pipeline(hyperparameters, seeds):
    return hyperparameters + effect(seeds, "data") + effect(seeds, "init")


def tuner(_, seeds):
    return effect(seeds, "tuning")


@pytest.mark.parametrize("new", ["all", "data", "init", None])
def test_estimates_have_the_variance_of_the_formula(new):
    """1,000 estimates from k = 5 repetitions: the ideal estimator, and fixed tuning with each subset of new seeds."""
    options = {"sources": ["data", "init"]} | ({} if new is None else {"randomize": new})
    estimator = ideal_estimator if new is None else fixed_tuning_estimator
    means = [estimator(pipeline, tuner, 5, rng=seed, **options).mean for seed in range(1000)]
    table = quality_from_components(VARIANCES, k=5).curves.set_index(["estimator", "k"])["variance"]
    want = table[("ideal" if new is None else f"fixed tuning, {new} new", 5)]
    print(new, np.var(means, ddof=1), want)
    assert_allclose(np.var(means, ddof=1), want, rtol=4 * np.sqrt(2 / 999))
