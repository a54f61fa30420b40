"""The dip test: its table of quantiles, its size for laws with one mode, its power, and why it is not Silverman's."""

from __future__ import annotations

import numpy as np
import pytest
from harness import about, rate_of

from lmemtest.lmm.distributions.modes import _QUANTILES, _TAIL, count_modes, density, dip, dip_p_value

ONE_MODE = {
    "normal": lambda rng, n: rng.normal(size=n),
    "exponential": lambda rng, n: rng.exponential(size=n),
    "lognormal": lambda rng, n: rng.lognormal(size=n),
    "t with 3 df": lambda rng, n: rng.standard_t(3, size=n),
    "best of 30": lambda rng, n: rng.beta(1, 30, size=n),
}


def rejected(law, n, repeats, rng):
    return rate_of(lambda rng: dip_p_value(dip(law(rng, n)), n) <= 0.05, repeats, rng)


@pytest.mark.parametrize("n", [20, 100, 1000])
def test_the_table_holds_the_quantiles_of_uniform_samples(n):
    """How the table was made, with fewer samples: `numpy.random.default_rng(n)`, quantiles of sqrt(n) dip."""
    rng = np.random.default_rng(n + 1)
    repeats = 20_000 if n < 1000 else 5_000
    values = np.sqrt(n) * np.array([dip(rng.random(n)) for _ in range(repeats)])
    for tail, quantile in zip(_TAIL[:7], _QUANTILES[n][:7], strict=True):
        assert about((values > quantile).mean(), repeats, tail, 1e-4)


@pytest.mark.parametrize("n", [30, 70, 400])
def test_the_size_is_five_percent_between_the_rows_of_the_table(n):
    assert about(rejected(lambda rng, n: rng.random(n), n, 4000, 1), 4000)


@pytest.mark.parametrize("name", ONE_MODE)
def test_the_size_is_below_one_percent_for_laws_that_are_not_flat(name):
    """Measured with 3,000 samples of 50: 0.2 to 0.6 %."""
    assert rejected(ONE_MODE[name], 50, 2000, 2) <= 0.015


def test_two_normal_clusters_are_found():
    """Measured, 5 % level: four standard deviations apart 45 % at n = 50 and 97 % at n = 200."""
    rng = np.random.default_rng(3)
    clusters = lambda rng, n: rng.normal(size=n) + 4 * (rng.random(n) < 0.5)  # noqa: E731
    shares = [rejected(clusters, n, 500, rng) for n in (50, 200)]
    assert shares == pytest.approx([0.45, 0.97], abs=0.07)


def test_silvermans_test_calls_skewed_scores_bimodal():
    """The critical bandwidth of a long tail is the gap before its last scores: no sign of two clusters.

    The p-value is the share of smoothed bootstrap samples with several modes at the critical bandwidth.
    """

    def study(rng, boot=60):
        x = rng.lognormal(size=50)
        grid = np.linspace(x.min(), x.max(), 400)
        low, high = 1e-3 * np.ptp(x), 0.5 * np.ptp(x)
        for _ in range(20):
            middle = np.sqrt(low * high)
            low, high = (middle, high) if count_modes(density(x, grid, middle)) > 1 else (low, middle)
        several = 0
        for _ in range(boot):
            y = rng.choice(x, len(x)) + high * rng.normal(size=len(x))
            y = x.mean() + (y - x.mean()) / np.sqrt(1 + high**2 / x.var())
            several += count_modes(density(y, np.linspace(y.min(), y.max(), 400), high)) > 1
        return (1 + several) / (boot + 1) <= 0.05

    assert rate_of(study, 40, 4) > 0.2
