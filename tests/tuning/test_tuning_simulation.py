"""Kernel densities against quadrature and draws; simulated coverage against exact coverage."""

from __future__ import annotations

import math

import numpy as np
import pytest
from pytest import approx
from scipy import integrate, stats

from lmemtest import tuning
from lmemtest.errors import ArgumentError, DataError
from lmemtest.tuning.distribution import EmpiricalDistribution
from lmemtest.tuning.laws.kernel_density import kernel_density
from lmemtest.tuning.laws.quadratic import QuadraticDistribution
from lmemtest.tuning.simulate import simulate_bootstrap_coverage, simulate_coverage

POINTS = np.random.default_rng(8).beta(5, 2, 40)
INF = math.inf
SETTINGS = [((0.0, 1.0), 0.05), ((0.0, 1.0), 0.6), ((-INF, 1.0), 0.05), ((0.0, INF), 0.1), ((-INF, INF), 0.05)]


def message(call) -> str:
    with pytest.raises((ArgumentError, DataError)) as caught:
        call()
    return str(caught.value)


# ------------------------------------------------------------------------------------------------------ densities


def test_density_distribution_and_quantiles_agree():
    for bounds, bandwidth in SETTINGS:
        law = kernel_density(POINTS, bandwidth=bandwidth, bounds=bounds)
        low, high = max(bounds[0], -1.5), min(bounds[1], 2.5)
        for y in (0.2, 0.7, 0.97):
            area = integrate.quad(lambda x, law=law: float(law.pdf(x)), low, y, limit=400, points=[0.5 * (low + y)])[0]
            assert float(law.cdf(y)) == approx(area, abs=1e-9)
        assert law.cdf([low, high]) == approx([0.0, 1.0], abs=1e-12)
        assert law.pdf([bounds[0] - 1.0, bounds[1] + 1.0]) == approx([0.0, 0.0])
        p = np.array([1e-9, 0.01, 0.3, 0.5, 0.9, 1.0 - 1e-9])
        assert law.cdf(law.ppf(p)) == approx(p, abs=1e-14)
        assert law.sf(law.isf(p)) == approx(p, abs=1e-14)
        assert law.ppf([0.0, 1.0]).tolist() == list(bounds)
        assert law.isf([0.0, 1.0]).tolist() == list(bounds[::-1])


def test_draws_have_the_distribution():
    for bounds, bandwidth in SETTINGS:
        law = kernel_density(POINTS, bandwidth=bandwidth, bounds=bounds)
        drawn = law.sample((5000, 4), rng=3)
        assert drawn.shape == (5000, 4)
        assert bounds[0] <= drawn.min() <= drawn.max() <= bounds[1]
        assert stats.kstest(drawn.ravel(), law.cdf).pvalue > 0.001
        for direction, best in (("maximize", drawn.max(axis=1)), ("minimize", drawn.min(axis=1))):
            error = 4 * best.std() / math.sqrt(len(best))
            assert law.mean_curve(4, direction=direction)[0] == approx(best.mean(), abs=error)
            below = np.mean(best <= law.quantile_curve(4, direction=direction, q=0.3)[0])
            assert below == approx(0.3, abs=4 * math.sqrt(0.21 / len(best)))


def test_one_kernel_is_the_normal_law():
    law = kernel_density([0.0], bandwidth=1.0)
    assert law.ppf([0.1, 0.975]) == approx(stats.norm.ppf([0.1, 0.975]), rel=1e-12)
    # expected largest of 1, 2, 3 normal scores in closed form
    assert law.mean_curve([1, 2, 3], direction="maximize") == approx(
        [0.0, 1 / math.sqrt(math.pi), 1.5 / math.sqrt(math.pi)], abs=1e-13
    )
    assert law.quantile_curve(1e12, direction="maximize") == approx(
        stats.norm.isf(-math.expm1(math.log(0.5) / 1e12)), rel=1e-10
    )


def test_reflection_keeps_the_mass_at_the_bound():
    half = kernel_density([0.0], bandwidth=1.0, bounds=(0.0, INF))
    assert half.pdf(0.5) == approx(stats.halfnorm.pdf(0.5), rel=1e-13)
    flat = kernel_density([0.3], bandwidth=5.0, bounds=(0.0, 1.0))  # wide kernels fold into the uniform law
    assert flat.pdf([0.1, 0.9]) == approx([1.0, 1.0], abs=1e-12)


def test_a_density_says_what_it_is_and_refuses_what_it_cannot_use():
    assert repr(kernel_density([0.2, 0.4], bandwidth=0.1, bounds=(0, 1))) == (
        "KernelDensity(2 points, bandwidth 0.1, bounds 0 to 1)"
    )
    assert message(lambda: kernel_density([0.2], bandwidth=0)) == (
        "bandwidth must be positive and finite, in units of the score, got 0."
    )
    assert message(lambda: kernel_density([0.0, 1.0], bandwidth=1e-6)) == (
        "bandwidth must be at least a 20,000th of the range of the scores, 5e-05, got 1e-06. "
        "A smaller one is the sample itself: resample the scores instead."
    )
    assert message(lambda: kernel_density([0.0, -INF], bandwidth=1)) == (
        "scores must be finite for a kernel density. Give a failed run the worst score that can occur."
    )
    assert "bounds must enclose all scores" in message(lambda: kernel_density([2.0], bandwidth=1, bounds=(0, 1)))
    assert message(lambda: kernel_density([0.2], bandwidth=1).ppf(1.5)) == "p must lie between 0 and 1, got 1.5."


# ------------------------------------------------------------------------------------------------------ coverage


@pytest.mark.parametrize("method", ["ld_highest_density", "ks", "dkw"])
def test_simulated_coverage_is_the_exact_one(method):
    """The bands' exact coverage is known from crossing probabilities; a curve holds when its cdf band does."""
    law = QuadraticDistribution(0.0, 1.0, 3)
    exact = [tuning.band(10, band=method, level=c).coverage() for c in (0.5, 0.9)]
    rates = [
        simulate_coverage(law, 10, level=(0.5, 0.9), band=method, n_draws=1500, rng=5, **options).rate
        for options in ({"target": "cdf"}, {"target": "median"}, {"target": 0.8, "direction": "minimize"})
    ]
    for rate in rates:
        assert np.array_equal(rate, rates[0])  # the same draws: the same events
        assert rate == approx(exact, abs=4 * 0.5 / math.sqrt(1500))


def test_coverage_from_k_is_exact_and_that_of_means_conservative():
    law = QuadraticDistribution(0.0, 1.0, 2)
    found = simulate_coverage(law, 8, level=0.8, from_k=1, n_draws=1500, rng=6)
    assert found.rate[0] == approx(0.8, abs=4 * 0.4 / math.sqrt(1500))
    assert found.notes == ("For k >= 1.",)
    mean = simulate_coverage(law, 8, target="mean", bounds=(0, 1), level=0.8, n_draws=200, rng=6)
    assert mean.rate[0] > 0.85


def test_ties_make_the_band_conservative():
    law = EmpiricalDistribution([0.0, 1.0, 1.0, 2.0, 3.0])
    found = simulate_coverage(law, 30, target="cdf", level=0.8, n_draws=600, rng=2)
    assert found.rate[0] > 0.85


def test_clopper_pearson_ends_are_the_defining_ones():
    law = QuadraticDistribution(0.0, 1.0, 2)
    found = simulate_coverage(law, 3, level=(0.5, 0.999999), n_draws=200, rng=6)
    low, high = found.interval()
    assert stats.binom.sf(found.covered[0] - 1, 200, low[0]) == approx(0.005, rel=1e-8)
    assert stats.binom.cdf(found.covered[0], 200, high[0]) == approx(0.005, rel=1e-8)
    assert (found.covered[1], high[1]) == (200, 1.0)
    assert list(found.to_frame().columns) == ["nominal", "coverage", "ci_low", "ci_high"]
    assert "Coverage: median tuning curve, maximize, everywhere at once" in found.summary()


def test_the_bootstrap_covers_at_first_and_then_fails():
    law = kernel_density([0.0], bandwidth=1.0)
    for direction in ("maximize", "minimize"):
        found = simulate_bootstrap_coverage(
            law, 30, k=[1, 30], direction=direction, n_draws=400, n_resamples=300, rng=4, estimator="u"
        )
        assert found.rate[0] > 0.88
        assert 0.35 < found.rate[1] < 0.55
    assert list(found.to_frame().columns) == ["k", "nominal", "coverage", "ci_low", "ci_high"]


def test_simulations_are_reproducible_whatever_the_processes():
    law = QuadraticDistribution(0.0, 1.0, 2)
    runs = [simulate_coverage(law, 5, n_draws=60, rng=9, n_jobs=jobs).covered.tolist() for jobs in (1, 2)]
    assert runs[0] == runs[1]


def test_bad_arguments_of_simulations_are_refused():
    law = QuadraticDistribution(0.0, 1.0, 2)
    assert message(lambda: simulate_coverage(law, 5, target="max")) == (
        "target must be 'cdf', 'median', 'mean' or a quantile between 0 and 1 such as 0.9, got 'max'."
    )
    assert message(lambda: simulate_coverage(law, 5, target="cdf", from_k=1)) == (
        "from_k is for tuning curves: leave it out for target='cdf'."
    )
    assert "level must be a number between 0 and 1" in message(lambda: simulate_coverage(law, 5, level=80))
    assert "estimator must be" in message(lambda: simulate_bootstrap_coverage(law, 5, k=1, estimator="x"))
    assert message(lambda: simulate_coverage(law, 5, target="mean", n_draws=2)) == (
        "target='mean' needs bounds=(low, high), the smallest and the largest score of the law."
    )
    assert message(lambda: simulate_coverage(law, 5, n_draws=2, bounds=(0.9, 1.0))).startswith(
        "2 of 2 simulations failed, the first with DataError: bounds must enclose all scores"
    )
