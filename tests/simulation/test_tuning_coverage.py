"""How often the bands hold: exactly as often as promised for continuous scores, at least as often for any others."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from harness import covers, rate_of
from scipy.stats import binom

from lmemtest import tuning

REPLICATES = 25_000  # the interval of `expected_range` is then narrower than 2 points for every coverage
EXACT = ("ld_highest_density", "ld_equal_tailed", "ks")


def expected_range(coverage: float) -> tuple[float, float]:
    """Where 99.8 % of the observed coverages lie: thirty tests with 99 % each would fail too often."""
    low, high = binom.ppf([0.001, 0.999], REPLICATES, coverage) / REPLICATES
    assert high - low < 0.02
    return float(low), float(high)


def all_k(band, quantile, steps=()):
    """A k at which each possible violation shows: just below the p of a lower limit, just above that of an upper one,
    and on both sides of the steps of the true distribution function."""
    p = np.concatenate(
        [
            band.band_low * (1 - 1e-10),
            band.band_high * (1 + 1e-10),
            np.multiply.outer([1 - 1e-10, 1 + 1e-10], steps).ravel(),
        ]
    )
    floor = 0.0 if band.from_k is None else quantile ** (1 / band.from_k)
    p = np.unique(p[(p > max(floor, 1e-12)) & (p < 1.0)])
    k = np.log(quantile) / np.log(p)
    return k if band.from_k is None else np.maximum(k, band.from_k)


def share_covered(draw, true_quantile, *, n, direction, quantile, steps=(), **options) -> float:
    """Share of samples whose curve holds the true one at all k."""
    band = tuning.band(n, quantile=quantile, **options)
    k = all_k(band, quantile, steps)
    truth = true_quantile(quantile ** (1 / k))
    truth = truth if direction == "maximize" else -truth

    def study(rng):
        scores = draw(rng, n) if direction == "maximize" else -draw(rng, n)
        curve = tuning.curve(scores, direction=direction, k=k, statistic=quantile, **options)
        return np.all(covers(curve, truth, "band"))

    return rate_of(study, REPLICATES, n + len(options))


def continuous(rng, n):
    return rng.exponential(size=n)


def continuous_quantile(p):
    return -np.log1p(-p)


ATOMS = np.arange(1.0, 6.0)
WEIGHTS = np.array([0.1, 0.35, 0.25, 0.2, 0.1])
STEPS = np.cumsum(WEIGHTS)[:-1]


def discrete(rng, n):
    return rng.choice(ATOMS, size=n, p=WEIGHTS)


def discrete_quantile(p, atoms=ATOMS, weights=WEIGHTS):
    return atoms[np.minimum(np.searchsorted(np.cumsum(weights), p, side="left"), 4)]


@pytest.mark.parametrize("method", EXACT)
@pytest.mark.parametrize(
    ("n", "level", "direction", "quantile"),
    [(8, 0.8, "maximize", 0.5), (48, 0.8, "minimize", 0.5), (25, 0.5, "maximize", 0.9), (48, 0.95, "maximize", 0.5)],
)
def test_bands_of_continuous_scores_hold_as_often_as_promised(method, n, level, direction, quantile):
    options = {"direction": direction, "quantile": quantile, "band": method, "level": level}
    got = share_covered(continuous, continuous_quantile, n=n, **options)
    low, high = expected_range(level)
    assert low <= got <= high


@pytest.mark.parametrize("n", [8, 48])
def test_dkw_bands_hold_more_often_as_often_as_computed(n):
    computed = tuning.band(n, band="dkw", level=0.8).coverage()
    got = share_covered(continuous, continuous_quantile, n=n, direction="maximize", quantile=0.5, band="dkw")
    low, high = expected_range(computed)
    assert low <= got <= high
    assert computed > 0.8


@pytest.mark.parametrize("method", EXACT)
@pytest.mark.parametrize(("from_k", "quantile"), [(1, 0.5), (3, 0.5), (1, 0.9)])
def test_bands_from_k_hold_as_often_as_promised(method, from_k, quantile):
    got = share_covered(
        continuous, continuous_quantile, n=48, direction="maximize", quantile=quantile, band=method, from_k=from_k
    )
    low, high = expected_range(0.8)
    assert low <= got <= high


@pytest.mark.parametrize("method", [*EXACT, "dkw"])
@pytest.mark.parametrize(("n", "direction"), [(8, "maximize"), (48, "minimize"), (48, "maximize")])
def test_bands_of_scores_with_five_values_hold_at_least_as_often(method, n, direction):
    draw, quantile, steps = discrete, discrete_quantile, STEPS
    if direction == "minimize":  # -Y is discrete too; its law is that of the atoms in reverse
        draw, steps = lambda rng, size: -discrete(rng, size), np.cumsum(WEIGHTS[::-1])[:-1]
        quantile = partial(discrete_quantile, atoms=-ATOMS[::-1], weights=WEIGHTS[::-1])
    got = share_covered(draw, quantile, n=n, direction=direction, quantile=0.5, steps=steps, band=method)
    assert got >= expected_range(0.8)[0]


def test_bands_from_k_hold_for_scores_with_five_values():
    options = {"direction": "maximize", "quantile": 0.5, "steps": STEPS[STEPS > 0.5], "from_k": 1}
    got = share_covered(discrete, discrete_quantile, n=48, **options)
    assert got >= expected_range(0.8)[0]


@pytest.mark.parametrize("method", [*EXACT, "dkw"])
@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_bands_of_a_mean_hold_at_least_as_often(method, direction):
    k = np.geomspace(0.2, 200, 40)
    truth = k / (k + 1)  # the mean of the largest of k uniform numbers
    truth = truth if direction == "maximize" else 1 - truth

    def study(rng):
        options = {"statistic": "mean", "band": method, "bounds": (0, 1)}
        return np.all(covers(tuning.curve(rng.random(20), direction=direction, k=k, **options), truth, "band"))

    assert rate_of(study, REPLICATES // 5, 17) >= 0.8
