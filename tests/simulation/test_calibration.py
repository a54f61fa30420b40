"""Realised error rates: the audit of the PriorBand table, and the size and coverage of the bootstrap."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from harness import about, at_least, at_most, rate_of
from study import as_runs, table_of_scores

import lmemtest as lt
from lmemtest.bench.checks.audit import audit
from lmemtest.lmm.intervals.bootstrap import bootstrap


@pytest.fixture(scope="module")
def priorband(data_dir):
    return pd.read_parquet(data_dir / "priorband.parquet")


def runs_of(table, score="value", metafeatures=("prior",)):
    return as_runs(table, score=score, budget="used_fidelity", metafeatures=metafeatures)


def two_algorithms(table, budget=None):
    part = table[table["algorithm"].isin(["HB", "PB"])]
    return part if budget is None else part[part["used_fidelity"] == budget]


@pytest.mark.parametrize("score", ["normalized_regret", "value"])
@pytest.mark.parametrize("budget", [None, 10.0])
def test_rows_counted_as_independent_reject_ten_times_too_often(priorband, score, budget):
    naive = audit(runs_of(two_algorithms(priorband, budget), score), n_draws=150, unit="instance", rng=1).rates.iloc[0]
    low, high = (0.75, 0.90) if budget is None else (0.40, 0.60)  # 82 and 48 to 53 % in 2,000 exchanges
    assert at_least(naive.rejected / naive.n_draws, naive.n_draws, low)
    assert at_most(naive.rejected / naive.n_draws, naive.n_draws, high)


def test_one_algorithm_against_itself_is_significant_in_a_third_of_the_splits(priorband):
    """RS ignores the prior, so a run is a seed on a benchmark, with all its budgets and both priors."""
    naive, recommended = audit(runs_of(priorband, metafeatures=()), n_draws=200, placebo="RS", rng=1).rates.itertuples()
    assert about(naive.rejected / naive.n_draws, naive.n_draws, 0.34)
    assert recommended.rejected / recommended.n_draws < 0.05


@pytest.mark.parametrize("unit", ["benchmark", "instance"])
@pytest.mark.parametrize("budget", [None, 10.0])
def test_the_recommended_model_keeps_its_level_whatever_is_exchanged(priorband, budget, unit):
    runs = runs_of(two_algorithms(priorband, budget), "normalized_regret")
    recommended = audit(runs, n_draws=2000, unit=unit, rng=1, n_jobs=2).rates.iloc[1]
    assert recommended.failed == 0
    assert 0.035 <= recommended.rate <= 0.065


@pytest.mark.parametrize("unit", ["benchmark", "instance"])
def test_on_raw_scores_three_benchmarks_decide_and_the_recommended_model_is_careful(priorband, unit):
    """The paired t-test over the 12 benchmark means, which is exact for normal ones, never rejects there."""
    part = two_algorithms(priorband, 10.0)
    recommended = audit(runs_of(part), n_draws=200, unit=unit, rng=1, n_jobs=2).rates.iloc[1]
    assert recommended.rate <= 0.065
    means = part.groupby(["benchmark", "algorithm"], observed=True)["value"].mean().unstack()
    gaps = (means["HB"] - means["PB"]).to_numpy()
    signs = np.array(list(itertools.product([-1.0, 1.0], repeat=12)))
    flipped = signs * gaps
    t = flipped.mean(axis=1) / (flipped.std(axis=1, ddof=1) / np.sqrt(12))
    assert np.abs(t).max() < 2.2010  # the 97.5 % point with 11 degrees of freedom


def null_blocks(rng, levels=5):
    """Three equal algorithms on each block."""
    scores = rng.normal(size=levels)[:, None] + rng.normal(size=(levels, 3))
    return table_of_scores(scores, "block algorithm", "y")


def test_the_bootstrap_likelihood_ratio_keeps_its_level_with_five_blocks_where_chi2_does_not():
    def study(rng):
        table = null_blocks(rng)
        fits = [lt.fit_lmm(f"y ~ {f} + (1|block)", table, reml=False, restarts=0) for f in ("1", "algorithm")]
        resampled = lt.glrt(*fits, "bootstrap", n_draws=59, rng=rng)  # 60 * 0.05 is whole
        return lt.glrt(*fits).p_value <= 0.05, resampled.p_value <= 0.05

    plain, resampled = rate_of(study, 200, 11)
    assert about(resampled, 200)
    assert not at_most(plain, 200, p=0.01)


def test_percentile_intervals_of_a_difference_cover_it():
    def study(rng):
        fit = lt.fit_lmm("y ~ algorithm + (1|block)", null_blocks(rng, levels=12), restarts=0)
        got = bootstrap(fit, lambda f: f.params.iloc[1], 99, alpha=0.1, rng=rng)
        return got.ci_low[0] <= 0 <= got.ci_high[0]

    assert about(rate_of(study, 200, 12), 200, 0.89)  # z, not t: 22 degrees of freedom cost one point of 90
