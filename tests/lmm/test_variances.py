"""Tests of variances: of several, as SciPy has it from the samples; the exact F-test and interval of one ratio."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from pytest import approx
from refusals import refusal
from scipy import stats
from scipy.optimize import brentq
from scipy.stats import binomtest

import lmemtest as lt
from lmemtest.errors import DesignError
from lmemtest.lmm.hypotheses.variance_tests import _ratio_at, bartlett, variance_ratio

# --------------------------------------------------------------------------------------------------- several variances


@pytest.mark.parametrize("sizes", [(10, 15, 8), (2, 2), (3, 40, 2, 7, 7)])
@pytest.mark.parametrize("unit", [1e-30, 1.0, 1e30])
def test_bartletts_p_value_is_that_of_scipy(sizes, unit):
    rng = np.random.default_rng(1)
    samples = [unit * (i + 1.0) * rng.normal(size=n) for i, n in enumerate(sizes)]
    squares = np.array([((x - x.mean()) ** 2).sum() for x in samples])
    want = stats.bartlett(*(x / unit for x in samples)).pvalue
    assert bartlett(squares, np.array(sizes) - 1.0) == approx(want, rel=1e-10)


def test_equal_variances_have_no_evidence_against_them():
    assert bartlett(np.full(7, 0.3), np.full(7, 3.0)) == 1.0


# ----------------------------------------------------------------------------------------------------------- one ratio


def table(rng, n_groups=12, n_blocks=5, sd=0.5):
    groups, blocks = np.repeat(np.arange(n_groups), n_blocks), np.tile(np.arange(n_blocks), n_groups)
    y = rng.normal(size=len(groups)) + blocks + sd * rng.normal(size=n_groups)[groups]
    return y, blocks, groups


def test_balanced_p_value_is_that_of_the_exact_restricted_likelihood_ratio():
    y, blocks, groups = table(np.random.default_rng(1))
    frame = pd.DataFrame({"y": y, "b": blocks.astype(str), "g": groups})
    want = lt.glrt(lt.fit_lmm("y ~ b", frame), lt.fit_lmm("y ~ b + (1 | g)", frame), "exact")
    assert variance_ratio(y, blocks, groups).p_value == pytest.approx(want.p_value, rel=1e-8)


def test_ratio_of_a_balanced_table_is_the_reml_estimate():
    y, blocks, groups = table(np.random.default_rng(2), sd=1.5)
    fit = lt.fit_lmm("y ~ b + (1 | g)", pd.DataFrame({"y": y, "b": blocks.astype(str), "g": groups}))
    got = variance_ratio(y, blocks, groups)
    assert got.ratio == pytest.approx(fit.theta[0] ** 2, rel=1e-5)  # the optimiser stops at 1e-8 of the criterion
    assert got.ratio_low < got.ratio < got.ratio_high


def test_statistic_is_the_f_ratio_of_the_analysis_of_variance_with_groups_last():
    """Closed form by least squares, in an unbalanced table."""
    rng = np.random.default_rng(3)
    y, blocks, groups = table(rng)
    keep = rng.random(len(y)) < 0.7
    y, blocks, groups = y[keep], blocks[keep], groups[keep]
    X = np.eye(5)[blocks]
    Z = np.hstack([X, np.eye(12)[groups]])
    rss = [float(y @ (y - M @ np.linalg.lstsq(M, y, rcond=None)[0])) for M in (X, Z)]
    ranks = [np.linalg.matrix_rank(M) for M in (X, Z)]
    want = (rss[0] - rss[1]) / (ranks[1] - ranks[0]) / (rss[1] / (len(y) - ranks[1]))
    got = variance_ratio(y, blocks, groups)
    assert got.statistic == pytest.approx(want, rel=1e-9)
    assert (got.df_num, got.df_den) == (ranks[1] - ranks[0], len(y) - ranks[1])


def test_separate_parts_give_what_the_whole_gives():
    y, blocks, groups = table(np.random.default_rng(4))
    part = groups % 3
    blocks = blocks * 3 + part
    assert variance_ratio(y, blocks, groups, parts=part).p_value == pytest.approx(
        variance_ratio(y, blocks, groups).p_value, rel=1e-9
    )


@pytest.mark.parametrize("depth", [1e-8, 1e-3, 0.9])
def test_the_ratio_of_a_value_of_f_is_the_root_that_bisection_finds(depth):
    rng = np.random.default_rng(2)
    mu, squares = 10.0 ** rng.uniform(-3, 4, 30), rng.chisquare(1, 30)

    def beyond(ratio):
        return (squares / (1.0 + ratio * mu)).sum() - depth * squares.sum()

    want = brentq(beyond, 0.0, 1.0 / (depth * mu.min()), xtol=1e-300, rtol=1e-13)
    assert _ratio_at(depth * squares.sum(), squares, mu) == approx(want, rel=1e-11)


def test_interval_covers_in_an_unbalanced_table():
    rng = np.random.default_rng(5)
    _, blocks, groups = table(rng)
    keep = rng.random(len(blocks)) < 0.7
    blocks, groups = blocks[keep], groups[keep]
    hits = 0
    for _ in range(1000):
        y = rng.normal(size=len(groups)) + rng.normal(size=12)[groups] * 0.7
        got = variance_ratio(y, blocks, groups, alpha=0.1)
        hits += got.ratio_low <= 0.49 <= got.ratio_high
    assert binomtest(hits, 1000, 0.9).pvalue > 0.001


def test_scaled_scores_of_three_seeds_keep_their_level():
    """Without the reduced degrees of freedom 14 % are rejected."""
    rng = np.random.default_rng(6)
    groups, blocks = np.repeat(np.arange(3), 2), np.tile(np.arange(2), 3)
    hits = 0
    for _ in range(2000):
        y = rng.normal(size=(3, 2))
        y = (y - y.mean(axis=0)) / y.std(axis=0, ddof=1)
        hits += variance_ratio(y.ravel(), blocks, groups, scaled=True).p_value < 0.05
    assert 0.03 < hits / 2000 < 0.07


def test_scores_that_do_not_vary_have_no_p_value():
    got = variance_ratio(np.ones(6), np.zeros(6, dtype=int), np.repeat(np.arange(3), 2))
    assert np.isnan(got.p_value)
    assert np.isnan(got.share)


def test_groups_that_explain_everything_have_p_zero():
    got = variance_ratio(np.repeat([1.0, 2.0, 5.0], 2), np.zeros(6, dtype=int), np.repeat(np.arange(3), 2))
    assert (got.p_value, got.share, got.share_interval) == (0.0, 1.0, (1.0, 1.0))


def test_groups_that_never_come_back_are_refused():
    message = (
        "6 groups in 2 blocks of 6 rows leave 4 degrees of freedom between groups and 0 for chance; a test needs one "
        "of each. Add groups that occur in several blocks, or repeated rows."
    )
    assert refusal(lambda: variance_ratio(np.arange(6.0), np.repeat([0, 1], 3), np.arange(6)), DesignError) == message


@pytest.mark.parametrize("times", [1, 2])
def test_many_groups_of_one_size_are_decomposed_by_the_rank_of_the_blocks(monkeypatch, times):
    rng = np.random.default_rng(times)
    blocks = np.tile(np.repeat(np.arange(6), times), 150)
    groups = np.repeat(np.arange(150), 6 * times)
    kept = rng.permuted(np.tile(np.arange(6 * times) < 4 * times, (150, 1)), axis=1).ravel()  # groups in 4 of 6 blocks
    y = rng.normal(size=len(groups)) + rng.normal(size=150)[groups]
    for chosen in (np.ones(len(y), dtype=bool), kept):
        with monkeypatch.context() as patched:
            by_rank = variance_ratio(y[chosen], blocks[chosen], groups[chosen])
            patched.setattr("lmemtest.lmm.hypotheses.variance_tests._MANY_GROUPS", 1_000)
            whole = variance_ratio(y[chosen], blocks[chosen], groups[chosen])
        for name in ("statistic", "df_num", "df_den", "p_value", "ratio", "ratio_low", "ratio_high"):
            assert getattr(by_rank, name) == pytest.approx(getattr(whole, name), rel=1e-10)
