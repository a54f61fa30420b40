"""The test of a given law: its statistic by definition, its p-value against enumeration, bands, scipy and draws."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from pytest import approx
from scipy import optimize, stats

from lmemtest import tuning
from lmemtest.errors import ArgumentError, DataError
from lmemtest.tuning.band import TESTS, goodness_of_fit
from lmemtest.tuning.distribution import EmpiricalDistribution
from lmemtest.tuning.laws.kernel_density import kernel_density
from lmemtest.tuning.order_statistics import equal_tailed_intervals, highest_density_intervals, shares_outside

LD = TESTS[:2]
UNIFORM = stats.uniform(0, 1)


def test_the_coverage_function_inverts_the_intervals():
    for n, level in itertools.product([2, 3, 8, 48, 1000], [0.9, 0.2, 1e-5]):
        rank = np.arange(1, n + 1)
        for method, make in zip(LD, (highest_density_intervals, equal_tailed_intervals), strict=True):
            low, high = make(n, level)
            assert shares_outside(low[1:], rank[1:], n, method) == approx(np.full(n - 1, level), rel=1e-9)
            assert shares_outside(high[:-1], rank[:-1], n, method) == approx(np.full(n - 1, level), rel=1e-9)


def test_the_coverage_of_highest_density_is_that_of_equal_densities():
    """Appendix C.2 by a root finder of its own; and opda 0.8.0's beta_highest_density_coverage(2, 4, [0.1, 0.6])."""
    n, i = 5, 2
    law = stats.beta(i, n + 1 - i)
    for p in (0.02, 0.1, 0.6, 0.9):
        mode = (i - 1) / (n - 1)
        side = (mode, 1.0) if p < mode else (0.0, mode)
        other = optimize.brentq(lambda x, p=p: law.pdf(x) - law.pdf(p), *side, xtol=1e-15)
        inside = abs(law.cdf(p) - law.cdf(other))
        assert 1 - shares_outside([p], [i], n, LD[0])[0] == approx(inside, abs=1e-12)
    assert 1 - shares_outside([0.1, 0.6], [i, i], n, LD[0]) == approx([0.67428211, 0.89529281], abs=1e-8)
    assert shares_outside([0.3], [1], 1, LD[0])[0] == approx(0.6)  # one score: central intervals, as in the bands


def test_a_law_is_rejected_where_the_band_leaves_it_out():
    for method, level in itertools.product(TESTS, [0.5, 0.8, 0.95]):
        rng, band = np.random.default_rng(3), tuning.band(12, band=method, level=level)
        outcomes = set()
        for _ in range(60):
            y = np.sort(rng.random(12) ** rng.choice([1.0, 1.6]))
            inside = bool(np.all((band.band_low[1:] <= y) & (y <= band.band_high[:-1])))
            outcomes.add(inside)
            assert (goodness_of_fit(y, UNIFORM, band=method).p_value > 1 - level) == inside
        assert outcomes == {True, False}


def test_the_statistic_is_equation_10():
    y = np.random.default_rng(4).random(9)
    found = goodness_of_fit(y, UNIFORM)
    outside = shares_outside(np.sort(y), np.arange(1, 10), 9, LD[0])
    assert found.statistic == approx(1 - outside.min())
    assert found.at == np.sort(y)[np.argmin(outside)]


def test_kolmogorov_and_smirnov_are_those_of_scipy():
    for seed in range(6):
        y = np.random.default_rng(seed).normal(0.2, 1.0, 15)
        found, want = goodness_of_fit(y, stats.norm, band="ks"), stats.kstest(y, "norm", method="exact")
        assert (found.statistic, found.p_value) == (approx(want.statistic), approx(want.pvalue, rel=1e-6))
        assert found.at == want.statistic_location


@pytest.mark.parametrize("method", TESTS)
def test_p_values_of_a_true_law_are_uniform_and_of_a_discrete_one_larger(method):
    rng = np.random.default_rng(5)
    law = kernel_density([0.2, 0.5, 0.6], bandwidth=0.1)
    p = [goodness_of_fit(law.sample(20, rng=rng), law, band=method).p_value for _ in range(400)]
    assert stats.kstest(p, "uniform").pvalue > 0.001
    dice = EmpiricalDistribution(np.arange(1.0, 7.0))
    p = np.array([goodness_of_fit(dice.sample(20, rng=rng), dice, band=method).p_value for _ in range(300)])
    for level in (0.05, 0.2, 0.5):
        assert (p <= level).mean() <= level


def test_other_laws_are_seen_at_their_ends():
    """A thousandth of runs that fail: L_n sees them, D_n does not."""
    y = np.append(stats.norm.ppf((np.arange(300) + 0.5) / 300), [-5.0, -4.9])
    found = goodness_of_fit(y, stats.norm)
    assert found.p_value < 0.01
    assert found.at in (-5.0, -4.9)
    assert goodness_of_fit(y, stats.norm, band="ks").p_value > 0.5
    assert found.sentences()[0].startswith("The scores are not draws from this law (p = 0.006)")
    assert "Nothing in these scores speaks against this law" in goodness_of_fit([0.2, 0.7], UNIFORM).summary()
    assert goodness_of_fit([5.0, 6.0], UNIFORM).p_value == 0.0
    assert list(found.to_frame().columns) == ["statistic", "p_value", "at", "n_scores"]


def test_what_is_no_law_is_refused():
    with pytest.raises(ArgumentError, match=r"^law must have a cdf, such as kernel_density\(...\)"):
        goodness_of_fit([0.2], "normal")

    class Wrong:
        def cdf(self, y):
            return -y

    with pytest.raises(ArgumentError, match=r"^law.cdf must give a rising probability between 0 and 1"):
        goodness_of_fit([0.2, 0.4], Wrong())
    with pytest.raises(ArgumentError, match=r"^band must be 'ld_highest_density' or 'ld_equal_tailed' or 'ks'"):
        goodness_of_fit([0.2], UNIFORM, band="dkw")
    with pytest.raises(DataError, match=r"^scores must not be missing"):
        goodness_of_fit([0.2, np.nan], UNIFORM)
