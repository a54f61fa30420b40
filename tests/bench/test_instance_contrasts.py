"""Mean outcomes of all instances: errors of repeating the runs, and Games-Howell over all pairs."""

from __future__ import annotations

import numpy as np
import pytest
from pytest import approx
from scipy import stats

from lmemtest.bench.benchmark.outcomes import instance_contrasts


def made(rng, effects, *, seeds=40, budgets=1, correlation=0.9):
    """Runs at one level each of two benchmarks and more, with an advantage of the first algorithm."""
    m = len(effects)
    shared = rng.normal(size=(m, 1, 2, seeds, 1)) * np.sqrt(correlation)
    scores = shared + rng.normal(size=(m, 1, 2, seeds, budgets)) * np.sqrt(1.0 - correlation)
    scores[:, :, 0] -= np.asarray(effects)[:, None, None, None]
    return scores, {"benchmark": tuple(f"b{i}" for i in range(m)), "level": ("x",)}


@pytest.mark.parametrize("test", ["two-sample", "paired"])
def test_errors_are_those_of_a_noncentral_t(test):
    """At one budget the outcome of repeated runs is that of a t-test whose noncentrality is the observed t."""
    n, seeds = 4000, 40
    losses, axes = made(np.random.default_rng(5), [0.0, 0.3, 0.55], seeds=seeds)
    found, _ = instance_contrasts(losses, axes, test=test, n_draws=n, rng=np.random.default_rng(0))
    for i, row in enumerate(found.to_dict("records")):
        first, second = losses[i, 0, 0, :, 0], losses[i, 0, 1, :, 0]
        result = (stats.ttest_rel if test == "paired" else stats.ttest_ind)(second, first)
        df = seeds - 1 if test == "paired" else 2 * seeds - 2
        critical = stats.t.ppf(0.975, df)
        better, worse = stats.nct.sf(critical, df, result.statistic), stats.nct.cdf(-critical, df, result.statistic)
        variance = better + worse - (better - worse) ** 2
        assert row["df"] == df
        assert row["outcome"] == np.sign(result.statistic) * (result.pvalue < 0.05)
        assert row["se"] == approx(np.sqrt(variance + 1.0 / (n + 1.0)), abs=0.04)


def test_certain_outcomes_have_the_error_of_what_was_not_seen():
    """All tables agree, and yet the error is not zero: 999 tables do not show that a thousandth would."""
    losses, axes = made(np.random.default_rng(1), [9.0, -9.0], budgets=3)
    instances, pairs = instance_contrasts(losses, axes, n_draws=999, rng=np.random.default_rng(0))
    assert instances["outcome"].tolist() == [1.0, -1.0]
    assert instances["se"].tolist() == approx([np.sqrt(1e-3)] * 2)
    row = pairs.iloc[0]
    assert (row["contrast"], row["se"]) == approx((2.0, np.sqrt(4e-3)))
    assert row["p_value"] < 1e-6


def test_pairs_are_those_of_games_and_howell():
    losses, axes = made(np.random.default_rng(3), [0.0, 0.4, 0.8, 2.0], budgets=4)
    instances, frame = instance_contrasts(losses, axes, rng=np.random.default_rng(0))
    k = len(instances)
    assert len(frame) == 6
    p = stats.studentized_range.sf(np.sqrt(2.0) * np.abs(frame["contrast"] / frame["se"]), k, frame["df"])
    assert frame["p_value"].tolist() == approx(p.tolist(), abs=1e-7)
    variance = instances["se"].to_numpy() ** 2
    i, j = frame["left"].to_numpy(), frame["right"].to_numpy()
    welch = (variance[i] + variance[j]) ** 2 / (variance[i] ** 2 / 78 + variance[j] ** 2 / 78)
    assert frame["df"].tolist() == approx(welch.tolist())
    excludes = (frame["ci_low"] > 0) | (frame["ci_high"] < 0)
    assert (excludes == (frame["p_value"] < 0.05)).all()


def test_budgets_of_the_same_runs_add_nothing():
    """Copies of a budget leave the errors as they are; budgets taken as a sample would shrink them by their root."""
    one = made(np.random.default_rng(8), [0.3, 0.5], correlation=1.0)
    many = made(np.random.default_rng(8), [0.3, 0.5], correlation=1.0, budgets=16)
    ours, theirs = (instance_contrasts(*p, n_draws=499, rng=np.random.default_rng(0))[1] for p in (one, many))
    assert ours["se"].tolist() == approx(theirs["se"].tolist())
