"""Sanity checks fire at their level where there is nothing to find, and their intervals cover."""

from __future__ import annotations

import numpy as np
import pytest
from harness import about, at_least, at_most, covers, rate_of
from scipy.stats import ncf
from study import as_runs, runs_of_scores, table_of_scores

from lmemtest.bench.checks.benchmark_information import benchmark_information
from lmemtest.bench.checks.seed_effect import seed_effect
from lmemtest.lmm.distributions.student import noncentrality_interval


def test_seed_check_with_repeated_runs_of_one_benchmark():
    def study(rng):  # each seed three times
        table = table_of_scores(rng.normal(size=(3, 8, 3)), "algorithm seed again").drop(columns="again")
        return bool(seed_effect(as_runs(table)).significant)

    assert about(rate_of(study, 400, 1), 400)


@pytest.mark.parametrize("n_seeds", [3, 10])
def test_seed_check_over_benchmarks_of_any_unit_with_paired_skewed_scores(n_seeds):
    """Pairing by seed within a benchmark, units from 1 to 1,000 and a lognormal law are no seed effect."""

    def study(rng):
        scores = np.exp(0.5 * (rng.normal(size=(6, 1, n_seeds)) + rng.normal(size=(6, 3, n_seeds))))
        return bool(seed_effect(runs_of_scores(scores * np.logspace(0, 3, 6)[:, None, None])).significant)

    assert about(rate_of(study, 250, 2), 250)


def test_seed_check_finds_what_is_there():
    """One algorithm of three owes a third of its variance to the seed."""

    def study(rng):
        scores = rng.normal(size=(8, 3, 15))
        scores[:, 1] += np.sqrt(0.5) * rng.normal(size=15)
        return seed_effect(runs_of_scores(scores)).affected == ("B",)

    assert rate_of(study, 50, 3) >= 0.8


@pytest.mark.parametrize("sd", [(1.0, 1.0, 1.0, 1.0), (4.0, 1.0, 1.0, 1.0)])
def test_benchmark_check_keeps_its_level_with_equal_and_unequal_variances(sd):
    def study(rng):
        scores = rng.normal(size=(4, 4, 10)) * np.array(sd)[:, None, None]
        return bool(benchmark_information(runs_of_scores(scores)).informative)

    assert about(rate_of(study, 400, 4), 400)


def test_intervals_of_share_and_variance_cover():
    """Far from zero the share's interval is exact; that of the variance takes the residual variance as known."""
    means = np.array([0.0, 0.5, 1.0])
    noncentral = 10 * float(np.sum((means - means.mean()) ** 2))

    def study(rng):
        scores = rng.normal(size=(2, 3, 10)) + means[:, None]
        row = benchmark_information(runs_of_scores(scores), rank_benchmarks=True).table.iloc[0]
        return (covers(row, noncentral / (noncentral + 30), "share"), covers(row, np.var(means, ddof=1), "variance"))

    share, variance = rate_of(study, 300, 5)
    assert about(share, 300, 0.95)
    assert variance > 0.92


@pytest.mark.parametrize("df", [(1, 8), (2, 27), (7, 72)])
@pytest.mark.parametrize("effect", [1e-6, 0.5, 2.0, 6.0, 15.0])
def test_intervals_of_small_effects_cover_and_never_claim_certainty(df, effect):
    """At least the level, and at most 98 %: so much does an upper limit above zero cost."""
    n = 2000
    ratios = ncf.rvs(*df, effect, size=n, random_state=np.random.default_rng(6))
    low, high = np.array([noncentrality_interval(f, *df, 0.95) for f in ratios]).T
    held = ((low <= effect) & (effect <= high)).mean()
    assert high.min() > 7.3
    assert at_least(held, n)
    assert at_most(held, n, 0.98)
