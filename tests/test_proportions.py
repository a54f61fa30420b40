"""Intervals of a probability: those of SciPy and statsmodels, one count at a time or all of them at once."""

import numpy as np
import pytest
from pytest import approx
from scipy.stats import beta, binom, binomtest
from statsmodels.stats.proportion import proportion_confint

from lmemtest.core.proportions import clopper_pearson, jeffreys, wilson

COUNTS, TRIALS = np.array([0, 0, 1, 3, 10, 39, 40, 1]), np.array([1, 40, 40, 10, 10, 40, 40, 1])


@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_clopper_and_pearsons_and_jeffreys_are_those_of_statsmodels(level):
    for interval, method in ((clopper_pearson, "beta"), (jeffreys, "jeffreys")):
        want = np.array([proportion_confint(x, n, 1.0 - level, method) for x, n in zip(COUNTS, TRIALS, strict=True)])
        if method == "jeffreys":  # theirs does not reach the end of what never or always happened
            want[COUNTS == 0, 0], want[COUNTS == TRIALS, 1] = 0.0, 1.0
        assert np.transpose(interval(COUNTS, TRIALS, level)) == approx(want, rel=1e-10)


@pytest.mark.parametrize("count", range(9))
def test_one_count_is_clopper_and_pearsons_of_scipy(count):
    want = binomtest(count, 8).proportion_ci(method="exact")
    assert clopper_pearson(count, 8, 0.95) == approx((want.low, want.high), rel=1e-10)


def test_each_end_is_a_limit_by_itself():
    low, high = clopper_pearson(3, 20, 0.9)
    assert binom.cdf(3, 20, high) == approx(0.05, rel=1e-10)
    assert binom.sf(2, 20, low) == approx(0.05, rel=1e-10)


def test_halves_are_counts_and_rounding_is_none():
    low, high = clopper_pearson(2.5, 7, 0.95)
    assert (low, high) == approx((beta.ppf(0.025, 2.5, 5.5), beta.ppf(0.975, 3.5, 4.5)), rel=1e-10)
    for interval in (clopper_pearson, jeffreys):
        assert interval(-1e-12, 7, 0.95)[0] == 0.0
        assert interval(7.0 + 1e-12, 7, 0.95)[1] == 1.0
        assert np.isfinite(interval([-1e-12, 7.0 + 1e-12], 7, 0.95)).all()


@pytest.mark.parametrize("n", [1, 12])
def test_wilsons_is_that_of_scipy(n):
    for count in range(n + 1):
        want = binomtest(count, n).proportion_ci(method="wilson")
        assert wilson(count / n, n, 1.959963984540054) == approx((want.low, want.high), rel=1e-10, abs=1e-15)
