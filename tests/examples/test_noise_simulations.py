"""How often the test of the test set's noise rejects, what the test of normality rejects, and what kurtosis costs."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from harness import rate_of
from paper_figures.binomial_noise import dispersion_p_value
from paper_figures.source_normality import coverage_by_kurtosis
from scipy import stats

from lmemtest.lmm.intervals.variances import SampleVariance

pytestmark = pytest.mark.level(3)


def test_size_of_the_test_of_overdispersion():
    rng = np.random.default_rng(5)
    for n, p, k in itertools.product((50, 1000), (0.5, 0.9, 0.98), (10, 50)):

        def study(rng, n=n, p=p, k=k):
            y = rng.binomial(n, p, size=k) / n
            return dispersion_p_value(y, n) < 0.05 if 0 < y.mean() < 1 else np.nan

        rejected = rate_of(study, 1000, rng)
        print(f"binomial n={n} p={p} k={k}: {rejected:.3f}")
        assert rejected < 0.08


def test_the_test_of_normality_rejects_any_grid():
    """Shares of right answers of 50 items are close to normal, and are rejected as soon as there are many of them."""
    rng, rates = np.random.default_rng(6), {}
    for items, n in itertools.product((50, 500, 5000), (20, 50, 200)):

        def study(rng, items=items, n=n):
            return stats.shapiro(rng.binomial(items, 0.8, size=n) / items).pvalue < 0.05

        rates[items, n] = rate_of(study, 500, rng)
        print(f"Shapiro-Wilk, {items} items, {n} scores: {rates[items, n]:.3f}")
    assert rates[50, 200] > 0.5
    assert rates[5000, 50] < 0.1


LAWS = {  # of variance 1, with their excess kurtosis
    "exponential": (lambda rng, n: rng.exponential(size=n), 6.0),
    "uniform": (lambda rng, n: rng.uniform(0.0, 12**0.5, size=n), -1.2),
}


@pytest.mark.parametrize("name", LAWS)
def test_the_coverage_that_is_told_from_the_kurtosis(name):
    """Against simulated chi-squared intervals of 2,000 values."""
    draw, excess = LAWS[name]

    def study(rng):
        interval = SampleVariance.of([draw(rng, 2000)], 0.95, "chi-squared")
        return interval.low <= 1.0 <= interval.high

    assert abs(rate_of(study, 1000, 7) - coverage_by_kurtosis(excess)) < 0.05
