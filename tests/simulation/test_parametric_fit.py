"""How often the intervals of parametric fits hold the truth, and how often a right shape is called wrong."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from scipy.stats import binomtest

from lmemtest import tuning
from lmemtest.tuning.fit.bootstrap import bootstrap_fit
from lmemtest.tuning.laws.noisy_quadratic import NoisyQuadraticDistribution
from lmemtest.tuning.laws.quadratic import QuadraticDistribution

fit_quiet = tuning.fit
fit_noisy = partial(tuning.fit, law="noisy_quadratic")

pytestmark = pytest.mark.slow

PROMISED, SLACK = 0.95, 0.02  # the factor of the allowance is rounded; two points below are accepted


def holds_often_enough(held, n):
    return binomtest(int(held), n, PROMISED - SLACK, alternative="less").pvalue > 0.01


def coverage(law, fit, truth, n, samples, **options):
    held = np.zeros(len(truth))
    for seed in range(samples):
        estimates = fit(law.sample(n, rng=seed), direction="minimize", **options).estimates
        held += [e.ci_low <= value <= e.ci_high for e, value in zip(estimates, truth, strict=True)]
    return held


@pytest.mark.parametrize(("n", "c"), [(48, 1), (48, 2), (48, 4), (48, 8), (200, 3)])
def test_intervals_without_noise_hold_the_truth(n, c):
    held = coverage(QuadraticDistribution(0.0, 1.0, c, True), fit_quiet, (0.0, 1.0, c), n, 300)
    assert all(holds_often_enough(count, 300) for count in held), held


@pytest.mark.parametrize(("n", "c", "o"), [(48, 1, 0.05), (48, 2, 0.1), (200, 2, 0.1)])
def test_intervals_with_noise_hold_the_truth(n, c, o):
    law = NoisyQuadraticDistribution(0.0, 1.0, c, o, True)
    held = coverage(law, fit_noisy, (0.0, 1.0, c, o), n, 80)
    assert all(holds_often_enough(count, 80) for count in held), held


def test_intervals_from_the_better_half_hold_the_truth():
    law = QuadraticDistribution(0.0, 1.0, 2, True)
    held = coverage(law, fit_quiet, (0.0, 1.0, 2), 96, 300, limits=(None, 0.5))
    assert all(holds_often_enough(count, 300) for count in held), held


@pytest.mark.parametrize("c", [1, 3])
def test_the_bootstrap_rejects_a_right_shape_as_often_as_promised(c):
    law = QuadraticDistribution(0.0, 1.0, c, True)
    fits = [fit_quiet(law.sample(48, rng=seed), direction="minimize") for seed in range(100)]
    p = np.array([bootstrap_fit(fit, 39, rng=seed).p_value for seed, fit in enumerate(fits)])
    assert binomtest(int(np.sum(p <= 0.1)), 100, 0.1).pvalue > 0.01
    assert binomtest(int(np.sum(p <= 0.5)), 100, 0.5).pvalue > 0.001
    assert sum(fit.p_band < 0.05 for fit in fits) <= 2  # without the bootstrap the test is conservative


@pytest.mark.parametrize("c", [1, 2, 4])
def test_intervals_of_the_median_curve_hold_the_truth(c):
    law, k = QuadraticDistribution(0.0, 1.0, c, True), np.array([1.0, 10.0, 100.0, 1000.0])
    truth, held = np.asarray(law.quantile_curve(k)), np.zeros(4)
    for seed in range(300):
        curve = fit_quiet(law.sample(48, rng=seed), direction="minimize").curve(k)
        held += (curve.ci_low <= truth) & (truth <= curve.ci_high)
    assert all(holds_often_enough(count, 300) for count in held), held
