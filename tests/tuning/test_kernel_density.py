"""Kernel densities against quadrature and draws."""

from __future__ import annotations

import math

import numpy as np
from pytest import approx
from refusals import refusal
from scipy import integrate, stats

from lmemtest.tuning.laws.kernel_density import kernel_density

POINTS = np.random.default_rng(8).beta(5, 2, 40)
INF = math.inf
SETTINGS = [((0.0, 1.0), 0.05), ((0.0, 1.0), 0.6), ((-INF, 1.0), 0.05), ((0.0, INF), 0.1), ((-INF, INF), 0.05)]


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
    assert refusal(lambda: kernel_density([0.2], bandwidth=0)) == (
        "bandwidth must be a finite number above 0, got 0: a width in units of the score."
    )
    assert refusal(lambda: kernel_density([0.0, 1.0], bandwidth=1e-6)) == (
        "bandwidth must be at least a 20,000th of the range of the scores, 5e-05, got 1e-06. "
        "A smaller one is the sample itself: resample the scores instead."
    )
    assert refusal(lambda: kernel_density([0.0, -INF], bandwidth=1)) == (
        "scores must be finite for a kernel density. Give a failed run the worst score that can occur."
    )
    assert "bounds must enclose all scores" in refusal(lambda: kernel_density([2.0], bandwidth=1, bounds=(0, 1)))
    assert refusal(lambda: kernel_density([0.2], bandwidth=1).ppf(1.5)) == "p must lie between 0 and 1, got 1.5."
