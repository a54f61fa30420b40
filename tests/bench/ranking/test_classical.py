"""The classical tests: against scipy, statsmodels, enumeration and published values."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import lmemtest as lt
from lmemtest.bench.data.blocks import blocks_of
from lmemtest.bench.ranking import classical
from lmemtest.errors import DesignError

RNG = np.random.default_rng(20)
SCORES = RNG.normal(size=(12, 4)) + RNG.normal(size=(12, 1))
TIED = RNG.integers(0, 4, size=(9, 4)).astype(float)

# Assembly times of Skillings & Mack (1981), blocks x methods; R's Skillings.Mack prints 15.493, p 0.00144.
NAN = np.nan
ASSEMBLY = [[3.2, 4.1, 3.8, 4.2], [3.1, 3.9, 3.4, 4.0], [4.3, 3.5, 4.6, 4.8], [3.5, 3.6, 3.9, 4.0],
            [3.6, 4.2, 3.7, 3.9], [4.5, 4.7, 3.7, NAN], [NAN, 4.2, 3.4, NAN], [4.3, 4.6, 4.4, 4.9],
            [3.5, NAN, 3.7, 3.9]]  # fmt: skip

# Table 5 of Demšar (2006): quantiles of the studentised range over the root of two, alpha = 0.05, by algorithms.
CRITICAL = [(2, 1.960), (3, 2.343), (4, 2.569), (5, 2.728), (10, 3.164)]


def wide(x, direction="maximize"):
    return blocks_of(lt.Runs.from_wide(pd.DataFrame(x, columns=list("abcd")[: x.shape[1]]), direction=direction))


def test_ranks_are_scipys_and_rounding_ties():
    assert classical.ranked(TIED).tolist() == stats.rankdata(TIED, axis=1).tolist()
    noisy = TIED * (1.0 + 1e-15 * RNG.normal(size=TIED.shape))
    assert classical.ranked(noisy).tolist() == classical.ranked(TIED).tolist()


def test_friedmans_f_is_that_of_iman_and_davenport():
    for x in (SCORES, TIED):
        n, k = x.shape
        chi2 = stats.friedmanchisquare(*x.T).statistic
        found = classical.friedman(classical.ranked(x), 0.05)
        f = (n - 1) * chi2 / (n * (k - 1) - chi2)
        assert found.statistic == pytest.approx(f, rel=1e-12)
        assert found.p_value == pytest.approx(stats.f.sf(f, k - 1, (k - 1) * (n - 1)), rel=1e-10)


def test_friedmans_p_is_never_below_that_of_one_order_throughout():
    found = classical.friedman(np.array([[1.0, 2.0, 3.0]] * 2), 0.05)
    assert found.p_value == pytest.approx(1 / 6)


def test_equal_columns_show_nothing_but_rounding():
    x = np.repeat(SCORES[:, :1], 3, axis=1) * [1.0, 1.0 + 1e-15, 1.0 - 1e-15]
    assert classical.repeated_measures_anova(x, 0.05).p_value == 1.0


def test_analysis_of_variance_is_that_of_statsmodels():
    from statsmodels.stats.anova import AnovaRM

    long = pd.DataFrame(SCORES).stack().reset_index()
    long.columns = ["block", "algorithm", "y"]
    table = AnovaRM(long, "y", "block", within=["algorithm"]).fit().anova_table
    found = classical.repeated_measures_anova(SCORES, 0.05)
    assert found.statistic == pytest.approx(table["F Value"].iat[0], rel=1e-10)
    assert found.p_value == pytest.approx(table["Pr > F"].iat[0], rel=1e-9)


def test_skillings_and_mack_by_their_published_value():
    found = classical.skillings_mack(np.array(ASSEMBLY), 0.05)
    assert found.statistic == pytest.approx(15.493, abs=5e-4)
    assert found.p_value == pytest.approx(0.00144, abs=5e-6)


def test_skillings_and_mack_of_complete_blocks_is_friedman_with_ties_too():
    for x in (SCORES, TIED):
        found = classical.skillings_mack(x, 0.05)
        assert found.statistic == pytest.approx(stats.friedmanchisquare(*x.T).statistic, rel=1e-10)


def test_skillings_and_mack_refuses_groups_that_never_met():
    x = np.full((4, 4), np.nan)
    x[:2, :2], x[2:, 2:] = RNG.normal(size=(2, 2)), RNG.normal(size=(2, 2))
    with pytest.raises(DesignError, match="without a common block"):
        classical.skillings_mack(x, 0.05)


@pytest.mark.parametrize("n", [5, 13, 50])
def test_signed_ranks_are_scipys_exact_ones(n):
    d = RNG.normal(0.2, size=n)
    assert classical.wilcoxon(d)[1] == pytest.approx(stats.wilcoxon(d, method="exact").pvalue, rel=1e-10)


def test_signed_ranks_with_ties_are_those_of_all_sign_changes():
    d = np.array([1.0, 1.0, -2.0, 3.0, 3.0, -1.0, 2.0, 0.0, 5.0])
    ranks = stats.rankdata(np.abs(d[d != 0]))
    sums = np.array([ranks[list(signs)].sum() for signs in map(np.array, itertools.product([False, True], repeat=8))])
    positive = ranks[d[d != 0] > 0].sum()
    expected = min(1.0, 2 * np.mean(sums <= min(positive, ranks.sum() - positive)))
    assert classical.wilcoxon(d) == (positive, pytest.approx(expected))
    assert classical.wilcoxon(np.zeros(4)) == (0.0, 1.0)


def test_signed_ranks_of_many_blocks_are_normal():
    d = np.round(RNG.normal(0.1, size=80), 1)
    d = d[d != 0]
    expected = stats.wilcoxon(d, method="approx", correction=False).pvalue
    assert classical.wilcoxon(d)[1] == pytest.approx(expected, rel=1e-10)


def test_the_interval_of_the_shift_is_that_of_r():
    d = np.array([0.3, 1.2, -0.4, 2.1, 0.9, 1.5, 3.0, 0.6, -0.1])
    assert classical.shift_intervals(d[None], np.array([0.95]))[0] == pytest.approx(
        (0.9, 0.10, 1.95)
    )  # wilcox.test(d, conf.int = TRUE)
    assert classical.shift_intervals(d[None, :3], np.array([0.95]))[0, 1:].tolist() == [-np.inf, np.inf]


def test_median_intervals_hold_their_level_exactly():
    for n in (6, 10, 25):
        low, high = classical.median_interval(np.arange(1.0, n + 1.0), 0.95)
        inside = stats.binom.cdf(high - 1, n, 0.5) - stats.binom.cdf(low - 1, n, 0.5)
        narrower = stats.binom.cdf(high - 2, n, 0.5) - stats.binom.cdf(low, n, 0.5)
        assert inside >= 0.95 > narrower
    assert classical.median_interval(np.arange(5.0), 0.95) == (-np.inf, np.inf)


def test_estimates_of_each_test_have_its_covariance():
    blocks = wide(SCORES)
    paired = classical.block_estimates(blocks, "t", 0.05).pairs(adjust="none").to_frame()
    expected = [stats.ttest_rel(SCORES[:, i], SCORES[:, j]).pvalue for i, j in itertools.combinations(range(4), 2)]
    assert paired["p_value"].to_numpy() == pytest.approx(np.array(expected), rel=1e-10)
    nemenyi = classical.block_estimates(blocks, "nemenyi", 0.05).pairs(adjust="tukey")
    q = stats.studentized_range.ppf(0.95, 4, np.inf) * np.sqrt(4 * 5 / (12 * 12))
    assert nemenyi.half_widths(0.05) == pytest.approx(np.full(6, q), rel=1e-6)
    conover = classical.block_estimates(blocks, "conover", 0.05)
    ranks = stats.rankdata(-SCORES, axis=1)
    # Conover (1999): residual mean square of the ranks from A, the sum of squares, and the squared rank sums
    squares, sums = np.square(ranks).sum(), np.square(ranks.sum(axis=0)).sum()
    assert conover.V[0, 0] * 12 == pytest.approx((squares - sums / 12) / (11 * 3), rel=1e-10)


@pytest.mark.parametrize(("k", "q"), CRITICAL)
def test_critical_differences_of_mean_ranks_are_those_of_demsar(k, q):
    blocks = blocks_of(lt.Runs.from_wide(pd.DataFrame(RNG.normal(size=(14, k))).add_prefix("a"), direction="minimize"))
    half = classical.block_estimates(blocks, "nemenyi", 0.05).pairs(adjust="tukey").half_widths(0.05)
    assert half == pytest.approx(np.full(len(half), q * np.sqrt(k * (k + 1) / (6 * 14))), rel=3e-4)


def test_signed_rank_pairs_use_the_blocks_that_both_have():
    x = SCORES.copy()
    x[0, 0] = np.nan
    table = pd.DataFrame(x, columns=list("abcd")).assign(task=range(12)).melt("task").dropna()
    blocks = blocks_of(lt.Runs(table, score="value", direction="maximize", algorithm="variable", benchmark="task"))
    found = classical.wilcoxon_pairs(blocks, adjust="none", alpha=0.05)
    assert found["p_value"].iat[0] == pytest.approx(stats.wilcoxon(x[1:, 0] - x[1:, 1]).pvalue)
    assert found["p_value"].iat[5] == pytest.approx(stats.wilcoxon(x[:, 2] - x[:, 3]).pvalue)
    against = classical.wilcoxon_pairs(blocks, adjust="holm", alpha=0.05, control=1)
    assert against["right"].tolist() == ["b"] * 3
    assert (against["p_value"] >= against["p_raw"]).all()


def test_assumptions_are_scipys_tests():
    table, normal, homogeneous = classical.assumptions_of(SCORES, tuple("abcd"), 0.05)
    assert table["p_value"].iat[1] == stats.shapiro(SCORES[:, 1]).pvalue
    assert (normal, homogeneous, table["test"].iat[-1]) == (True, True, "Bartlett")
    skewed = np.exp(3 * SCORES)
    table, normal, _ = classical.assumptions_of(skewed, tuple("abcd"), 0.05)
    assert (normal, table["test"].iat[-1]) == (False, "Levene")
    assert classical.assumptions_of(np.ones((6, 2)), ("a", "b"), 0.05)[1:] == (False, True)
