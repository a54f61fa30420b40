"""Partial pooling against adaptive quadrature, limits in closed form, and invariance."""

from __future__ import annotations

import numpy as np
import pytest
from pytest import approx
from scipy import integrate, stats

from lmemtest.lmm.intervals.partial_pooling import pool

SCHOOLS = np.array([28.0, 8, -3, 7, -1, 1, 18, 12]), np.array([15.0, 10, 16, 11, 9, 11, 10, 18]) ** 2


def conditional(c, w, sd):
    """Restricted likelihood, conditional means and variances by matrices: theta given c at one sd."""
    V = np.diag(w + sd**2)
    one = np.ones((len(c), 1))
    inverse = np.linalg.inv(V)
    phi = 1.0 / (one.T @ inverse @ one).item()
    mu = phi * (one.T @ inverse @ c).item()
    P = inverse - phi * inverse @ one @ one.T @ inverse
    density = np.exp(-0.5 * (c @ P @ c)) * np.sqrt(phi / np.linalg.det(V))
    mean = c - w * (P @ c)
    return density, mean, w - w**2 * P.diagonal(), mu


def integrated(c, w, function):
    """Average of a function of sd over its weights: flat in the variance from four quantities on."""
    power = 1 if len(c) >= 4 else 0

    def over(f):
        g = lambda s: f(s / (1 - s)) * (s / (1 - s)) ** power / (1 - s) ** 2  # noqa: E731
        return integrate.quad(lambda s: g(s), 0, 1, points=[0.5, 0.9, 0.95], limit=400, epsabs=0, epsrel=1e-11)[0]

    return over(lambda sd: conditional(c, w, sd)[0] * function(sd)) / over(lambda sd: conditional(c, w, sd)[0])


@pytest.mark.parametrize("m", [8, 3])
def test_means_probabilities_and_variances_are_those_of_adaptive_quadrature(m):
    c, w = SCHOOLS[0][:m], SCHOOLS[1][:m]
    values = pool(c, w)[0]
    for i in range(m):
        mean = integrated(c, w, lambda sd, i=i: conditional(c, w, sd)[1][i])
        below = integrated(
            c, w, lambda sd, i=i: stats.norm.cdf(3.0, conditional(c, w, sd)[1][i], conditional(c, w, sd)[2][i] ** 0.5)
        )
        square = integrated(c, w, lambda sd, i=i: conditional(c, w, sd)[2][i] + conditional(c, w, sd)[1][i] ** 2)
        assert values.mean[i] == approx(mean, rel=1e-6)
        assert values.cdf(3.0)[i] == approx(below, rel=1e-6)
        assert values.sd[i] == approx(np.sqrt(square - mean**2), rel=1e-6)


def test_deviations_are_from_the_mean_of_the_population():
    c, w = SCHOOLS
    deviations = pool(c, w)[1]
    want = [integrated(c, w, lambda sd, i=i: conditional(c, w, sd)[1][i] - conditional(c, w, sd)[3]) for i in range(8)]
    assert deviations.mean == approx(want, rel=1e-6)
    assert (deviations.p_value() > 0.3).all()


def test_quantiles_invert_the_distribution_and_p_values_keep_their_digits():
    values, _, _ = pool(*SCHOOLS, df=5)
    for p in (1e-6, 0.025, 0.5, 0.975):
        assert values.cdf(values.quantile(p)) == approx(np.full(8, p), rel=1e-8)
    sure = pool(SCHOOLS[0] + 200.0, SCHOOLS[1])[0]
    assert ((sure.p_value() > 0) & (sure.p_value() < 1e-20)).all()
    assert sure.p_value() == approx(2 * sure.cdf(0.0))


def test_estimates_that_are_far_apart_are_left_alone():
    values, _, own_share = pool([0.0, 1e4, -2e4, 3e4, 7e3], np.ones(5), df=4)
    assert own_share == approx(np.ones(5), abs=1e-6)
    assert values.quantile(0.975) - values.mean == approx(np.full(5, stats.t.ppf(0.975, 4)), rel=1e-4)


def test_equal_estimates_are_their_mean():
    values, deviations, _ = pool(np.full(6, 2.5), [1.0, 2, 3, 4, 5, 6])
    assert values.mean == approx(np.full(6, 2.5))
    assert deviations.mean == approx(np.zeros(6), abs=1e-12)
    assert deviations.p_value() == approx(np.ones(6))
    assert (values.sd < np.sqrt([1.0, 2, 3, 4, 5, 6])).all()


def test_units_and_order_do_not_matter():
    c, w = SCHOOLS
    order = np.array([3, 1, 7, 0, 2, 6, 5, 4])
    one, other = pool(c, w, df=7), pool((1e-3 * c - 4.0)[order], 1e-6 * w[order], df=7)
    assert other[0].mean == approx((1e-3 * one[0].mean - 4.0)[order])
    assert other[0].quantile(0.01) == approx((1e-3 * one[0].quantile(0.01) - 4.0)[order])
    assert other[2] == approx(one[2][order])


def test_errors_of_very_different_size_leave_the_integral_exact():
    """One error, or all of them, next to nothing: what is known of the spread stays what it was."""
    c, w = np.array([2.0, 1.2, 3.1, 0.4, 2.6, 1.9]), np.full(6, 0.1)
    shares = []
    for small in (1e-4, 1e-8, 1e-12, 1e-20):
        w[0] = small
        shares.append(pool(c, w)[2])
        if small > 1e-5:
            assert shares[0][1] == approx(integrated(c, w, lambda sd: sd**2 / (sd**2 + 0.1)), rel=1e-6)
    for share in shares[1:]:
        assert share == approx(shares[0], abs=1e-3)
    found = [pool(c, np.full(6, error**2))[1] for error in (1e-3, 1e-5, 1e-7)]
    for deviations in found[1:]:
        assert deviations.sd == approx(found[0].sd, rel=1e-4)
        assert deviations.p_value() == approx(found[0].p_value(), rel=1e-3)


def test_many_estimates_have_a_narrow_peak():
    rng = np.random.default_rng(1)
    _, _, own_share = pool(2.0 * rng.normal(size=3000) + rng.normal(size=3000), np.ones(3000))
    assert own_share == approx(np.full(3000, 0.8), abs=0.02)


def test_two_estimates_are_refused():
    with pytest.raises(ValueError, match="pooling needs at least 3 estimates, got 2"):
        pool([1.0, 2.0], [1.0, 1.0])
