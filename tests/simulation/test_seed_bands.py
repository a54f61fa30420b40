"""How often limits over seeds hold, where the best-so-far scores of a seed depend on each other."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from lmemtest import tuning
from lmemtest.tuning.seed_bands import quantile_ranks

pytestmark = pytest.mark.slow

EXACT, AT_LEAST = 25_000, 5_000  # replicates; the interval of the first is narrower than 2 points
CHUNK = 1_000
BUDGETS = np.array([1, 2, 4, 8, 16])


def paths(rng: np.random.Generator, seeds: int, *, discrete: bool) -> np.ndarray:
    """Best so far of searches that learn: the better the best score, the better the next candidates."""
    best = rng.exponential(size=seeds)
    out = [best]
    for _ in range(BUDGETS[-1] - 1):
        best = np.minimum(best, best * rng.exponential(1.2, seeds))
        out.append(best)
    found = np.array(out).T[:, BUDGETS - 1]
    return np.ceil(8 * found) / 8 if discrete else found


def truth(quantile: float, *, discrete: bool) -> np.ndarray:
    """Quantiles of 10^6 seeds, or exactly on their grid."""
    many = paths(np.random.default_rng(99), 1_000_000, discrete=discrete)
    return np.quantile(many, quantile, axis=0, method="inverted_cdf")


def held(
    seeds: int, quantile: float, level: float, *, simultaneous: bool, replicates: int, discrete: bool = False
) -> np.ndarray:
    """Which limits held, (replicates, budgets); replicates are the algorithms of a table."""
    rng, true = np.random.default_rng(seeds), truth(quantile, discrete=discrete)
    rows = []
    for _ in range(replicates // CHUNK):
        frame = pd.DataFrame(
            {
                "tool": np.repeat(np.arange(CHUNK), seeds * len(BUDGETS)),
                "seed": np.tile(np.repeat(np.arange(seeds), len(BUDGETS)), CHUNK),
                "budget": np.tile(BUDGETS, CHUNK * seeds),
                "loss": paths(rng, CHUNK * seeds, discrete=discrete).ravel(),
            }
        )
        found = tuning.curves(
            frame,
            score="loss",
            direction="minimize",
            by="tool",
            statistic=quantile,
            level=level,
            unit="seed",
            seed="seed",
            budget="budget",
            simultaneous=simultaneous,
        )
        rows += [(curve.band_low <= true) & (true <= curve.band_high) for curve in found.curves]
    return np.array(rows)


@pytest.mark.parametrize(("seeds", "quantile", "level"), [(10, 0.5, 0.8), (25, 0.5, 0.95), (25, 0.75, 0.8)])
def test_pointwise_limits_hold_exactly_as_often_as_the_binomial_law_says(seeds, quantile, level):
    exact = quantile_ranks(seeds, quantile, level=level)[3]
    got = held(seeds, quantile, level, simultaneous=False, replicates=EXACT).mean(axis=0)
    low, high = binom.ppf([0.0005, 0.9995], EXACT, exact) / EXACT
    assert high - low < 0.02
    assert ((got >= low) & (got <= high)).all(), (got, exact)


@pytest.mark.parametrize(("seeds", "level"), [(10, 0.8), (25, 0.95)])
@pytest.mark.parametrize("discrete", [False, True])
def test_simultaneous_limits_hold_at_all_budgets_at_once(seeds, level, discrete):
    got = held(seeds, 0.5, level, simultaneous=True, replicates=AT_LEAST, discrete=discrete).all(axis=1).sum()
    assert got >= binom.ppf(0.001, AT_LEAST, level), got / AT_LEAST


def test_pointwise_limits_of_discrete_scores_hold_at_least_as_often():
    exact = quantile_ranks(25, 0.5, level=0.8)[3]
    got = held(25, 0.5, 0.8, simultaneous=False, replicates=AT_LEAST, discrete=True).sum(axis=0)
    assert (got >= binom.ppf(0.001, AT_LEAST, exact)).all()
