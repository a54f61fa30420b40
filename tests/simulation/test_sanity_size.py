"""Sanity checks fire at their level where there is nothing to find, and their intervals cover."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest, ncf

import lmemtest as lt
from lmemtest.bench.checks.benchmark_information import benchmark_information
from lmemtest.bench.checks.seed_effect import seed_effect
from lmemtest.lmm.distributions.student import noncentrality_interval

pytestmark = pytest.mark.slow


def runs_of(scores, direction="minimize"):
    """(benchmark, algorithm, seed, repeat) scores as runs."""
    index = np.indices(scores.shape).reshape(4, -1)
    table = pd.DataFrame({"b": index[0], "a": index[1], "s": index[2], "y": scores.ravel()})
    table = table.assign(b="b" + table["b"].astype(str), a="a" + table["a"].astype(str))
    several = scores.shape[0] > 1
    return lt.Runs(table, score="y", direction=direction, algorithm="a", benchmark="b" if several else None, seed="s")


def level_kept(hits, n, nominal=0.05):
    return binomtest(hits, n, nominal).pvalue > 0.001


def fired(result):
    return bool(result.significant)


def test_seed_check_with_repeated_runs_of_one_benchmark():
    rng = np.random.default_rng(1)
    hits = sum(fired(seed_effect(runs_of(rng.normal(size=(1, 3, 8, 3))))) for _ in range(400))
    assert level_kept(hits, 400)


@pytest.mark.parametrize("n_seeds", [3, 10])
def test_seed_check_over_benchmarks_of_any_unit_with_paired_skewed_scores(n_seeds):
    """Pairing by seed within a benchmark, units from 1 to 1,000 and a lognormal law are no seed effect."""
    rng = np.random.default_rng(2)
    hits, n = 0, 250
    for _ in range(n):
        luck = rng.normal(size=(6, 1, n_seeds, 1))
        scores = np.exp(0.5 * (luck + rng.normal(size=(6, 3, n_seeds, 1))))
        hits += fired(seed_effect(runs_of(scores * np.logspace(0, 3, 6)[:, None, None, None])))
    assert level_kept(hits, n)


def test_seed_check_finds_what_is_there():
    """One algorithm of three owes a third of its variance to the seed."""
    rng = np.random.default_rng(3)
    found = 0
    for _ in range(50):
        scores = rng.normal(size=(8, 3, 15, 1))
        scores[:, 1] += np.sqrt(0.5) * rng.normal(size=(15, 1))
        found += seed_effect(runs_of(scores)).affected == ("a1",)
    assert found >= 40


@pytest.mark.parametrize("sd", [(1.0, 1.0, 1.0, 1.0), (4.0, 1.0, 1.0, 1.0)])
def test_benchmark_check_keeps_its_level_with_equal_and_unequal_variances(sd):
    rng = np.random.default_rng(4)
    n = 400
    spread = np.array(sd)[:, None, None]
    hits = sum(
        bool(benchmark_information(runs_of(rng.normal(size=(4, 4, 10, 1)) * spread)).informative) for _ in range(n)
    )
    assert level_kept(hits, n)


def test_intervals_of_share_and_variance_cover():
    """Far from zero the share's interval is exact; that of the variance takes the residual variance as known."""
    rng = np.random.default_rng(5)
    means = np.array([0.0, 0.5, 1.0])
    share, variance, n = 0, 0, 300
    noncentral = 10 * float(np.sum((means - means.mean()) ** 2))
    true_share = noncentral / (noncentral + 30)
    for _ in range(n):
        scores = rng.normal(size=(2, 3, 10, 1)) + means[:, None, None]
        row = benchmark_information(runs_of(scores), rank_benchmarks=True).table.iloc[0]
        share += row["share_low"] <= true_share <= row["share_high"]
        variance += row["variance_low"] <= np.var(means, ddof=1) <= row["variance_high"]
    assert level_kept(share, n, 0.95)
    assert variance / n > 0.92


@pytest.mark.parametrize("df", [(1, 8), (2, 27), (7, 72)])
@pytest.mark.parametrize("effect", [1e-6, 0.5, 2.0, 6.0, 15.0])
def test_intervals_of_small_effects_cover_and_never_claim_certainty(df, effect):
    """At least the level, and at most 98 %: so much does an upper limit above zero cost."""
    n = 2000
    ratios = ncf.rvs(*df, effect, size=n, random_state=np.random.default_rng(6))
    low, high = np.array([noncentrality_interval(f, *df, 0.95) for f in ratios]).T
    hits = int(((low <= effect) & (effect <= high)).sum())
    assert high.min() > 7.3
    assert binomtest(hits, n, 0.95, alternative="less").pvalue > 0.001
    assert binomtest(hits, n, 0.98, alternative="greater").pvalue > 0.001
