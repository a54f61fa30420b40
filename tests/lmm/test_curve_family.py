"""The largest |t| over curves: against closed forms where curves are points, and against brute force where not."""

from __future__ import annotations

import numpy as np
import pytest
from pytest import approx

from lmemtest.lmm.distributions.largest_t import DrawnLargestT, largest_over_curves
from lmemtest.lmm.distributions.student import t_quantile
from lmemtest.lmm.distributions.studentized_range import qtukey
from lmemtest.lmm.means.adjust import critical_values
from lmemtest.lmm.means.empirical_bayes import pair_ratios

DRAWS = 40_000


def law(rows, cov, df, seed=1, defined=None):
    defined = np.ones(rows.shape[:2], dtype=bool) if defined is None else defined
    return largest_over_curves(rows, cov, df, n_draws=DRAWS, rng=np.random.default_rng(seed), defined=defined)


@pytest.mark.parametrize("df", [3.0, 11.0, 95.0])
def test_one_point_is_students_t(df):
    found = law(np.ones((1, 1, 1)), np.array([[2.5]]), df)
    for level in (0.8, 0.95):
        assert found.isf(1 - level, df) == approx(t_quantile((1 - level) / 2, df), rel=0.03)


@pytest.mark.parametrize(("k", "df"), [(3, 8.0), (6, 40.0)])
def test_all_pairs_at_one_point_are_tukeys_range(k, df):
    first, second = np.triu_indices(k, 1)
    rows = (np.eye(k)[first] - np.eye(k)[second])[:, None, :]
    assert law(rows, np.eye(k), df).isf(0.05, df) == approx(qtukey(0.95, k, df) / np.sqrt(2), rel=0.02)


def test_points_of_one_direction_share_numerator_and_variance():
    """A curve that is a multiple of one coefficient has one t ratio, however many points it is read at."""
    rows = np.linspace(0.5, 2.0, 15)[None, :, None]
    assert law(rows, np.array([[1.0]]), 7.0).isf(0.05, 7.0) == approx(t_quantile(0.025, 7.0), rel=0.02)


@pytest.mark.parametrize("units", [4, 9, 30])
def test_unrelated_points_are_independent_t_tests(units):
    """Means of independent points, each with its own variance: the largest of m independent |t|."""
    m, df = 5, float(units - 1)
    found = law(np.eye(m)[None], np.eye(m), df)
    assert found.isf(0.05, df) == approx(t_quantile((1 - 0.95 ** (1 / m)) / 2, df), rel=0.03)


def test_smooth_curves_against_brute_force():
    """Samples of random curves: mean over its estimated error, the largest over the points."""
    x = np.linspace(0, 1, 12)
    cov = np.minimum.outer(x + 0.1, x + 0.1)
    units, rng = 8, np.random.default_rng(0)
    sample = rng.standard_normal((20_000, units, len(x))) @ np.linalg.cholesky(cov).T
    t = sample.mean(axis=1) / (sample.std(axis=1, ddof=1) / np.sqrt(units))
    wanted = np.quantile(np.abs(t).max(axis=1), 0.95)
    assert law(np.eye(len(x))[None], cov / units, units - 1.0).isf(0.05, units - 1.0) == approx(wanted, rel=0.02)


def test_what_is_not_defined_does_not_count():
    rows = np.eye(6)[None]
    defined = np.array([[True, False, False, False, False, False]])
    assert law(rows, np.eye(6), 20.0, defined=defined).isf(0.05, 20.0) == approx(t_quantile(0.025, 20.0), rel=0.02)


def test_p_values_count_the_draws_and_are_never_zero():
    found = law(np.ones((1, 1, 1)), np.eye(1), 10.0)
    p = found.sf(np.array([0.0, -found.isf(0.05, 10.0), 1e6, np.nan]), 10.0)
    assert p[0] == approx(1.0)
    assert p[1] == approx(0.05, abs=1e-4)
    assert p[2] == approx(1 / (DRAWS + 1))
    assert np.isnan(p[3])


def test_normal_scores_at_one_point_are_the_first_step_of_the_step_down_adjustment():
    first, second = np.triu_indices(4, 1)
    found = law((np.eye(4)[first] - np.eye(4)[second])[:, None, :], np.eye(4), np.inf)
    df = np.array([5.0, 11.0, 33.0])
    critical = found.isf(0.05, df)
    assert critical == approx(critical_values(df, method="stepdown", n_tests=6, n_means=4, alpha=0.05), rel=0.02)
    assert found.sf(critical, df) == approx(0.05, abs=1e-3)


def test_an_erratic_algorithm_makes_no_differences():
    """300 null tables, 12 benchmarks x 4 algorithms x 5 budgets, the last with five times the sd."""
    rng = np.random.default_rng(3)
    first, second = np.triu_indices(4, 1)
    z = rng.normal(size=(4000, 4, 5)).cumsum(axis=2) / np.sqrt(np.arange(1, 6))
    scores = DrawnLargestT(np.sort((np.ptp(z, axis=1) / np.sqrt(2.0)).max(axis=1)), np.inf)
    false = {"moderated": 0, "common": 0}
    for _ in range(300):
        y = rng.normal(size=(12, 4, 5)).cumsum(axis=2) * np.array([1.0, 1.0, 1.0, 5.0])[:, None]
        e = y - y.mean(axis=0)
        _, ratio, df = pair_ratios(e, 11.0, 33.0)
        common = ((e[:, first] - e[:, second]) ** 2).mean(axis=(0, 1)) / 11.0
        t = np.abs((y[:, first] - y[:, second]).mean(axis=0)) / np.sqrt(common)
        false["common"] += (t > scores.isf(0.05, 33.0)).any()
        false["moderated"] += (t / np.sqrt(ratio) > scores.isf(0.05, df)).any()
    assert false["moderated"] <= 27  # 5 % of 300 and 3.2 standard deviations
    assert false["common"] > 30  # twice the nominal 5 %
