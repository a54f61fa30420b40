"""How often limits over seeds hold, where the best-so-far scores of a seed depend on each other."""

from __future__ import annotations

import numpy as np
import pytest
from harness import about, answers_of, at_least, covers
from study import table_of_scores

from lmemtest import tuning
from lmemtest.tuning.curves import quantile_ranks

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
    true = truth(quantile, discrete=discrete)

    def study(rng: np.random.Generator) -> np.ndarray:
        scores = paths(rng, CHUNK * seeds, discrete=discrete).reshape(CHUNK, seeds, len(BUDGETS))
        found = tuning.curves(
            table_of_scores(scores, "tool seed budget", budget=BUDGETS),
            score="score",
            direction="minimize",
            by="tool",
            statistic=quantile,
            level=level,
            unit="seed",
            seed="seed",
            budget="budget",
            simultaneous=simultaneous,
        )
        return np.array([covers(curve, true, "band") for curve in found.curves])

    return np.concatenate(answers_of(study, replicates // CHUNK, seeds))


@pytest.mark.parametrize(("seeds", "quantile", "level"), [(10, 0.5, 0.8), (25, 0.5, 0.95), (25, 0.75, 0.8)])
def test_pointwise_limits_hold_exactly_as_often_as_the_binomial_law_says(seeds, quantile, level):
    exact = quantile_ranks(seeds, quantile, level=level)[3]
    got = held(seeds, quantile, level, simultaneous=False, replicates=EXACT).mean(axis=0)
    for share in got:
        assert about(share, EXACT, exact), (share, exact)


@pytest.mark.parametrize(("seeds", "level"), [(10, 0.8), (25, 0.95)])
@pytest.mark.parametrize("discrete", [False, True])
def test_simultaneous_limits_hold_at_all_budgets_at_once(seeds, level, discrete):
    got = held(seeds, 0.5, level, simultaneous=True, replicates=AT_LEAST, discrete=discrete).all(axis=1)
    assert at_least(got.mean(), AT_LEAST, level)


def test_pointwise_limits_of_discrete_scores_hold_at_least_as_often():
    exact = quantile_ranks(25, 0.5, level=0.8)[3]
    for share in held(25, 0.5, 0.8, simultaneous=False, replicates=AT_LEAST, discrete=True).mean(axis=0):
        assert at_least(share, AT_LEAST, exact)
