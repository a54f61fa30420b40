"""Resampling schemes, and the classical functions that several questions share, beside SciPy and statsmodels."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.descriptivestats import sign_test as sign_test_of_statsmodels
from statsmodels.stats.multitest import fdrcorrection

from lmemtest.core.proportions import quantile_places, sign_test
from lmemtest.core.resampling import (
    batches,
    dealt,
    drawn_again,
    drawn_interval,
    exchanged_within,
    p_of_draws,
    random_signs,
    sign_patterns,
)
from lmemtest.core.rounding import mean_ranks, tied_codes
from lmemtest.lmm.distributions.student import df_of_sum, variance_interval
from lmemtest.lmm.hypotheses.variance_tests import equal_variances
from lmemtest.lmm.means.adjust import adjust_raw


def test_batches_make_all_draws_and_fit_the_memory():
    sizes = list(batches(1000, 7, 100))
    assert sum(sizes) == 1000
    assert max(sizes) * 7 <= 100
    assert list(batches(3, 1000, 100)) == [1, 1, 1]  # one draw must fit


def test_units_are_drawn_with_replacement_and_signs_are_fair():
    rng = np.random.default_rng(1)
    counts = np.bincount(drawn_again(5, 4000, rng).ravel())
    assert stats.chisquare(counts).pvalue > 0.001
    signs = random_signs(3, 4000, rng)
    assert set(signs.ravel()) == {-1.0, 1.0}
    assert stats.binomtest(int((signs > 0).sum()), signs.size).pvalue > 0.001


def test_all_patterns_of_signs_are_the_permutations_within_pairs():
    signs, exact = sign_patterns(5, 16, None)
    assert exact
    assert len({tuple(row) for row in np.vstack([signs, -signs])}) == 32
    d = np.array([0.3, -0.1, 0.8, 0.5, 0.4])
    p = p_of_draws(float((np.abs(signs @ d) >= abs(d.sum()) - 1e-12).sum()), len(signs), exact=True)
    assert p == pytest.approx(stats.permutation_test((d,), np.sum, permutation_type="samples").pvalue)


def test_every_order_of_labels_and_of_a_block_is_equally_likely():
    rng = np.random.default_rng(2)
    places = {order: i for i, order in enumerate(permutations((1.0, 2.0, 3.0)))}
    rows = dealt(np.array([1.0, 2.0, 3.0]), 6000, rng)
    assert stats.chisquare(np.bincount([places[tuple(row)] for row in rows], minlength=6)).pvalue > 0.001
    table = np.array([[1.0, np.nan, 2.0, 3.0], [7.0, 7.0, np.nan, np.nan]])
    drawn = exchanged_within(table, 6000, rng)
    assert (np.isnan(drawn) == np.isnan(table)).all()
    assert (drawn[:, 1, :2] == 7.0).all()
    assert stats.chisquare(np.bincount([places[tuple(row)] for row in drawn[:, 0, [0, 2, 3]]])).pvalue > 0.001


def test_the_share_of_draws_is_never_zero_unless_all_were_counted():
    assert p_of_draws(0, 999) == 0.001
    assert p_of_draws(np.array([0.0, 4.0]), 4, exact=True).tolist() == [0.0, 1.0]


@pytest.mark.parametrize("method", ["percentile", "basic"])
def test_intervals_of_draws_are_their_quantiles(method):
    draws = np.random.default_rng(3).gamma(2.0, size=(399, 2))
    low, high = np.quantile(draws, [0.05, 0.95], axis=0, method="weibull")
    want = [low, high] if method == "percentile" else [4.0 - high, 4.0 - low]
    np.testing.assert_allclose(drawn_interval(draws, np.full(2, 2.0), method, 0.9), want, rtol=1e-12)


def test_sign_tests_are_those_of_scipy_and_statsmodels():
    wins, losses = np.array([9, 0, 3, 6]), np.array([1, 4, 3, 0])
    pairs = list(zip(wins.tolist(), losses.tolist(), strict=True))
    want = [stats.binomtest(w, w + lost, alternative="greater").pvalue for w, lost in pairs]
    np.testing.assert_allclose(sign_test(wins, losses), want, rtol=1e-12)
    signs = np.repeat([1.0, -1.0], [9, 1])
    assert 2.0 * sign_test(9, 1) == pytest.approx(sign_test_of_statsmodels(signs)[1], rel=1e-12)


@pytest.mark.parametrize(("n", "quantile", "level"), [(10, 0.5, 0.95), (25, 0.5, 0.8), (9, 0.25, 0.7), (5, 0.5, 0.95)])
def test_order_statistics_enclose_a_quantile(n, quantile, level):
    below = stats.binom(n, quantile)
    lower, upper, coverage = quantile_places(n, quantile, level)
    tail = 0.5 * (1.0 - level)
    assert below.cdf(lower - 1) <= tail < below.cdf(lower)
    assert below.sf(upper - 1) <= tail < below.sf(upper - 2)
    assert coverage == pytest.approx(below.cdf(upper - 1) - below.cdf(lower - 1), rel=1e-12)


def test_ranks_share_ties_as_scipy_does_and_rounding_is_a_tie():
    x = np.random.default_rng(4).integers(0, 4, (20, 7)).astype(float)
    np.testing.assert_array_equal(mean_ranks(tied_codes(x, np.full(20, 1e-9))), stats.rankdata(x, axis=1))
    assert mean_ranks(tied_codes(np.array([[0.3, 0.1 + 0.2]]), np.array([1e-12]))).tolist() == [[1.5, 1.5]]


def test_degrees_of_freedom_of_two_variances_are_welchs():
    x, y = np.random.default_rng(5).normal(size=9), 3.0 * np.random.default_rng(6).normal(size=6)
    parts = [x.var(ddof=1) / 9, y.var(ddof=1) / 6]
    assert df_of_sum(parts, [8, 5]) == pytest.approx(stats.ttest_ind(x, y, equal_var=False).df, rel=1e-12)


def test_the_interval_of_a_variance_is_chi_squared():
    low, high = variance_interval([12.0, 2.0], [5.0, np.inf], 0.9)
    np.testing.assert_allclose(low, [60.0 / stats.chi2(5).ppf(0.95), 2.0], rtol=1e-12)
    np.testing.assert_allclose(high, [60.0 / stats.chi2(5).ppf(0.05), 2.0], rtol=1e-12)


@pytest.mark.parametrize("test", ["bartlett", "levene"])
def test_equal_variances_are_tested_by_scipy(test):
    x = np.random.default_rng(7).normal(size=(12, 3)) * [1.0, 2.0, 4.0]
    want = getattr(stats, test)(*x.T)
    assert equal_variances(x, test) == pytest.approx((want.statistic, want.pvalue), rel=1e-12)


def test_false_discovery_rates_are_those_of_statsmodels_and_what_has_no_p_value_counts():
    p = np.array([0.01, np.nan, 0.04, 0.02, 0.9])
    want = fdrcorrection([0.01, 0.04, 0.02, 0.9, 1.0, 1.0])[1]
    got = adjust_raw(p, "fdr", 6)
    np.testing.assert_allclose(got[[0, 2, 3, 4]], want[:4], rtol=1e-12)
    assert np.isnan(got[1])
