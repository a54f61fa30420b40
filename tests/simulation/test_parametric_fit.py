"""How often the intervals of parametric fits hold the truth, and how often a right shape is called wrong."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from harness import about, at_least, covers, rate_of

from lmemtest import tuning
from lmemtest.tuning.fit.fit import bootstrap_fit
from lmemtest.tuning.laws.noisy_quadratic import NoisyQuadraticDistribution
from lmemtest.tuning.laws.quadratic import QuadraticDistribution

fit_quiet = tuning.fit
fit_noisy = partial(tuning.fit, law="noisy_quadratic")

PROMISED, SLACK = 0.95, 0.02  # the factor of the allowance is rounded; two points below are accepted


def hold(law, fit, truth, n, samples, **options):
    """Whether the interval of each parameter holds the truth often enough."""

    def study(rng):
        estimates = fit(law.sample(n, rng=rng), direction="minimize", **options).estimates
        return [covers(e, value) for e, value in zip(estimates, truth, strict=True)]

    return enough(rate_of(study, samples, lambda k: k), samples)


def enough(shares, n):
    return all(at_least(share, n, PROMISED - SLACK, p=0.01) for share in shares)


@pytest.mark.parametrize(("n", "c"), [(48, 1), (48, 2), (48, 4), (48, 8), (200, 3)])
def test_intervals_without_noise_hold_the_truth(n, c):
    assert hold(QuadraticDistribution(0.0, 1.0, c, True), fit_quiet, (0.0, 1.0, c), n, 300)


@pytest.mark.parametrize(("n", "c", "o"), [(48, 1, 0.05), (48, 2, 0.1), (200, 2, 0.1)])
def test_intervals_with_noise_hold_the_truth(n, c, o):
    law = NoisyQuadraticDistribution(0.0, 1.0, c, o, True)
    assert hold(law, fit_noisy, (0.0, 1.0, c, o), n, 80)


def test_intervals_from_the_better_half_hold_the_truth():
    law = QuadraticDistribution(0.0, 1.0, 2, True)
    assert hold(law, fit_quiet, (0.0, 1.0, 2), 96, 300, limits=(None, 0.5))


@pytest.mark.parametrize("c", [1, 3])
def test_the_bootstrap_rejects_a_right_shape_as_often_as_promised(c):
    law = QuadraticDistribution(0.0, 1.0, c, True)
    fits = [fit_quiet(law.sample(48, rng=seed), direction="minimize") for seed in range(100)]
    p = np.array([bootstrap_fit(fit, 39, rng=seed).p_value for seed, fit in enumerate(fits)])
    assert about(np.mean(p <= 0.1), 100, 0.1, p=0.01)
    assert about(np.mean(p <= 0.5), 100, 0.5)
    assert sum(fit.p_band < 0.05 for fit in fits) <= 2  # without the bootstrap the test is conservative


@pytest.mark.parametrize("c", [1, 2, 4])
def test_intervals_of_the_median_curve_hold_the_truth(c):
    law, k = QuadraticDistribution(0.0, 1.0, c, True), np.array([1.0, 10.0, 100.0, 1000.0])
    truth = np.asarray(law.quantile_curve(k))
    assert enough(rate_of(lambda rng: covers(fit_quiet(law.sample(48, rng=rng), direction="minimize").curve(k), truth),
                          300, lambda seed: seed), 300)  # fmt: skip
