"""The classical tests: against scipy, statsmodels, enumeration and published values."""

import itertools
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from rankings import AGAINST, OF_PAIRS, SHAPES, TESTS, WITH_GAPS, ranking
from scipy import stats
from study import as_runs, blocks_of_scores

import lmemtest as lt
from lmemtest.bench.data.blocks import blocks_of
from lmemtest.bench.ranking import bradley_terry, classical
from lmemtest.bench.ranking.bradley_terry import estimable, likeliest, linked, ratings, with_virtual_ties
from lmemtest.bench.ranking.stability import stability_of
from lmemtest.errors import DesignError
from lmemtest.lmm.means.decisions import decisions_of

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
    return blocks_of(lt.Runs.from_wide(pd.DataFrame(x, columns=list("abcdef")[: x.shape[1]]), direction=direction))


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


@pytest.mark.parametrize("levels", [0, 10**7, 10**9])
def test_paired_t_keeps_its_digits_however_much_benchmarks_vary(levels):
    rng = np.random.default_rng(4)
    scores = rng.integers(0, 64, size=(7, 3)) / 64.0 + levels * rng.permutation(7)[:, None]  # exact as doubles
    blocks = wide(scores)
    pairs = classical.block_estimates(blocks, "t", 0.05).pairs(adjust="none").to_frame()
    for (i, j), t in zip(itertools.combinations(range(3), 2), pairs["t_ratio"], strict=True):
        d = [Fraction(a) - Fraction(b) for a, b in scores[:, [i, j]].tolist()]
        mean = sum(d) / 7
        square = mean**2 * 42 / sum((x - mean) ** 2 for x in d)  # of t
        assert t == pytest.approx(np.sign(float(mean)) * float(square) ** 0.5, rel=1e-14 * max(levels, 100))
    means = classical.block_estimates(blocks, "t", 0.05)
    assert means.estimate == pytest.approx(scores.mean(axis=0), rel=1e-12)
    assert means.se == pytest.approx(stats.sem(scores, axis=0), rel=1e-12)  # with the levels of the benchmarks


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


# ---------------------------------------------------------------------- blocks


def table(rows):
    return pd.DataFrame(rows, columns=["tool", "task", "prior", "seed", "loss"])


def test_instances_count_equally_whatever_their_number_of_runs():
    rows = [("A", "x", "good", s, 1.0) for s in range(5)] + [("A", "x", "bad", 0, 4.0), ("A", "y", "good", 0, 7.0)]
    rows += [("B", task, prior, 0, 2.0) for task, prior in [("x", "good"), ("x", "bad"), ("y", "good")]]
    blocks = blocks_of(as_runs(table(rows), benchmark="task", seed="seed", metafeatures=["prior"]))
    assert blocks.names == ("x", "y")
    assert blocks.unit == "benchmark"
    assert blocks.instances == ("x / bad", "x / good", "y / good")
    assert blocks.block.tolist() == [0, 0, 1]
    assert blocks.scores.tolist() == [[2.5, 2.0], [7.0, 2.0]]
    assert blocks.gains.tolist() == [[-2.5, -2.0], [-7.0, -2.0]]
    assert blocks.n_runs.tolist() == [[1, 1], [5, 1], [1, 1]]


def test_runs_of_a_cell_are_in_the_order_of_their_seeds():
    rows = [("A", "x", "good", s, 10.0 * s) for s in (3, 1)] + [("B", "x", "good", s, s) for s in (1, 3, 2)]
    rows += [(tool, "y", "good", 1, 0.0) for tool in "AB"]
    blocks = blocks_of(as_runs(table(rows), benchmark="task", seed="seed", ignore=["prior"]))
    np.testing.assert_array_equal(blocks.runs[0], [[10.0, 30.0, np.nan], [1.0, 2.0, 3.0]])
    assert blocks.seeds[0].tolist() == [[0, 2, -1], [0, 1, 2]]
    kept = blocks.of(["B"]).where(np.array([False, True]))
    assert kept.seeds.tolist() == [[[0, -1, -1]]]


def test_a_missing_instance_leaves_its_block_incomplete():
    rows = [(tool, task, prior, 0, 1.0) for tool in "AB" for task in "xy" for prior in ("good", "bad")]
    blocks = blocks_of(as_runs(table(rows[:-1]), benchmark="task", metafeatures=["prior"], ignore=["seed"]))
    assert blocks.complete.tolist() == [True, False]
    assert np.isnan(blocks.scores[1, 1])
    assert blocks.where(blocks.complete).names == ("x",)
    assert blocks.of(["A"]).complete.all()


def test_seeds_of_one_benchmark_are_the_blocks():
    rows = [(tool, "x", "good", seed, float(seed)) for tool in "AB" for seed in range(3)]
    blocks = blocks_of(as_runs(table(rows), benchmark="task", seed="seed", ignore=["prior"]))
    assert blocks.unit == "seed"
    assert blocks.names == ("0", "1", "2")
    assert blocks.scores.tolist() == [[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]]
    assert "says nothing about others" in blocks.notes[-1]


def test_runs_without_blocks_are_refused():
    rows = [(tool, "x", "good", seed, float(seed)) for tool in "AB" for seed in range(3)]
    with pytest.raises(DesignError, match="several seeds of one benchmark"):
        blocks_of(as_runs(table(rows), benchmark="task", ignore=["prior", "seed"]))


# ---------------------------------------------------------------------- stability


def blocks(scores, unit="benchmark"):
    found = blocks_of_scores(scores, names=tuple("uvwxyz"[: len(scores)]), unit=unit)
    return found.of(found.algorithms[::-1])  # best first


def by_wins(part, *, share=None, control=None):
    """A pair differs if one of the two is ahead on a share of the blocks, by default all."""
    k = len(part.algorithms)
    left, right = np.triu_indices(k, 1)
    ahead = (part.gains[:, left] > part.gains[:, right]).mean(axis=0)
    decided = np.maximum(ahead, 1.0 - ahead) >= (1.0 if share is None else share(k))
    names = np.array(part.algorithms)
    tests = pd.DataFrame({"left": names[left], "right": names[right], "p_value": np.where(decided, 0.0, 1.0)})
    if control is not None:
        if control not in part.algorithms:
            raise DesignError(f"{control} is not there.")
        tests = tests[(tests["left"] == control) | (tests["right"] == control)]
    return decisions_of(
        levels=part.algorithms,
        means=part.scores.mean(axis=0),
        se=np.full(k, np.nan),
        tests=tests,
        half_widths=np.full(1, np.nan),
        alpha=0.05,
        direction="maximize",
        adjust="none",
        ddf="asymptotic",
        score="accuracy",
    ).among(part.algorithms)


# C before B before A, but for block w, where A is before B
SCORES_OF_STABILITY = [[1, 2, 9], [1, 2, 8], [2, 1, 7], [1, 2, 8], [1, 2, 9]]


def test_the_one_block_that_changes_a_decision_is_named():
    found = stability_of(by_wins, blocks(SCORES_OF_STABILITY))
    table = found.to_frame().set_index(["left", "right"])
    assert table.index.tolist() == [("C", "B"), ("C", "A"), ("B", "A")]
    assert table["decision"].tolist() == ["C better", "C better", "not significant"]
    assert table["changed_by_blocks"].tolist() == [(), (), ("w",)]
    assert table["share_unchanged_blocks"].tolist() == [1.0, 1.0, 0.8]
    assert table["n_changed_blocks"].tolist() == [0, 0, 1]
    assert table["share_unchanged_algorithms"].tolist() == [1.0, 1.0, 1.0]
    assert found.to_frame("changes").to_dict("records") == [
        {
            "left_out": "benchmark",
            "name": "w",
            "left": "B",
            "right": "A",
            "decision": "not significant",
            "without": "B better",
        }
    ]
    assert found.sentences() == (
        "The decision between B and A (not significant) changes when benchmark w leaves the study; the other 2 stay.",
        "All 3 decisions stay the same whichever of the 3 algorithms leaves the study.",
    )


def test_leaving_algorithms_change_the_rest_and_are_not_asked_about_themselves():
    """Of fewer algorithms a smaller share of wins is enough: B and A differ as soon as C is out, and only then."""
    found = stability_of(lambda part: by_wins(part, share=lambda k: {3: 0.95, 2: 0.75}[k]), blocks(SCORES_OF_STABILITY))
    table = found.to_frame().set_index(["left", "right"])
    assert table["changed_by_algorithms"].tolist() == [(), (), ("C",)]
    assert table["share_unchanged_algorithms"].tolist() == [1.0, 1.0, 0.0]  # each pair is in one smaller study
    assert found.sentences()[-1] == (
        "The decision between B and A (not significant) changes when algorithm C leaves the study; the other 2 stay."
    )


def test_several_changes_have_a_headline():
    scores = [[1, 2, 3], [1, 2, 3], [3, 2, 1], [1, 2, 3]]
    found = stability_of(by_wins, blocks(scores, unit="seed"))
    assert found.sentences()[0] == "3 of 3 decisions change when one of the 4 seeds leaves the study."
    assert len(found.sentences()) == 5
    assert found.to_frame("changes")["left_out"].tolist() == ["seed"] * 3


def test_pairs_without_a_test_are_left_out_and_a_missing_control_is_noted():
    found = stability_of(lambda part: by_wins(part, control="C"), blocks(SCORES_OF_STABILITY))
    assert found.to_frame()[["left", "right"]].to_numpy().tolist() == [["C", "B"], ["C", "A"]]
    assert found.notes == ("Without algorithm C there is no ranking, so it counts for nothing here: C is not there.",)
    assert (found.n_blocks, found.n_algorithms) == (5, 2)


def test_two_algorithms_have_one_decision_and_nothing_to_leave_out_but_blocks():
    found = stability_of(by_wins, blocks(np.array(SCORES_OF_STABILITY)[[0, 1, 3], 1:]))
    assert found.sentences() == ("The decision stays the same whichever of the 3 benchmarks leaves the study.",)
    assert np.isnan(found.to_frame()["share_unchanged_algorithms"].iloc[0])
    assert "100 %" in found.summary()


def test_given_decisions_are_the_whole_study():
    data = blocks(SCORES_OF_STABILITY)
    calls = []

    def counted(part):
        calls.append(part.names)
        return by_wins(part)

    stability_of(counted, data, by_wins(data))
    assert len(calls) == 8


def test_refusals():
    with pytest.raises(DesignError, match="takes at least 2 algorithms and 3 benchmarks, got 3 and 2"):
        stability_of(by_wins, blocks(SCORES_OF_STABILITY[:2]))


# ---------------------------------------------------------------------- bradley terry


# American League of 1987, wins of row over column: Agresti (2002), Categorical Data Analysis, table 10.10
BASEBALL = np.array(
    [
        [0, 7, 9, 7, 7, 9, 11],
        [6, 0, 7, 5, 11, 9, 9],
        [4, 6, 0, 7, 7, 8, 12],
        [6, 8, 6, 0, 6, 7, 10],
        [6, 2, 6, 7, 0, 7, 12],
        [4, 4, 5, 6, 6, 0, 6],
        [2, 4, 1, 3, 1, 7, 0],
    ],
    dtype=float,
)
PUBLISHED = (1.581, 1.436, 1.294, 1.248, 1.108, 0.684, 0.0)  # over the last team


def test_published_ratings_of_baseball_teams():
    theta = ratings(BASEBALL)
    assert_allclose(theta - theta[-1], PUBLISHED, atol=5e-4)
    assert theta.sum() == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("adjust", [None, "holm", "fdr", "sidak", "none"])
@pytest.mark.parametrize("test", ["conover", "moderated", "t", "tukey", "nemenyi"])
def test_intervals_exclude_zero_exactly_where_the_adjusted_p_value_is_significant(test, adjust):
    """Each pair has the interval of the step at which it was decided, also where ranks are tied."""
    decided = []
    for rng in range(6):
        scores = np.random.default_rng(rng).normal(size=(9, 4)).round(0) + 0.7 * np.arange(4)
        table = {name: scores[:, i].tolist() for i, name in enumerate("ABCD")}
        pairs = lt.rank(table, "frequentist", test=test, adjust=adjust, direction="maximize").pairs
        outside = (pairs["ci_low"] > 0.0) | (pairs["ci_high"] < 0.0)
        assert outside.tolist() == (pairs["p_value"] < 0.05).tolist()
        decided += outside.tolist()
    assert 0 < sum(decided) < len(decided)


@pytest.mark.parametrize("index", range(4))
def test_ratings_agree_with_the_logistic_regression_of_r(reference, index):
    """Plain, with ties as half a win, with pairs that met less often, and 25 algorithms."""
    table = reference("bradley_terry")["tables"][index]
    theta = ratings(np.array(table["wins"]))
    assert_allclose(theta - theta[-1], table["theta"], rtol=1e-9, atol=1e-9)


def test_many_tables_at_once_are_the_tables_one_by_one():
    rng = np.random.default_rng(1)
    wins = rng.integers(0, 4, size=(3, 5, 4, 4)).astype(float)
    one_by_one = [ratings(table) for table in wins.reshape(-1, 4, 4)]
    assert_allclose(ratings(wins).reshape(-1, 4), one_by_one, atol=1e-9)


def test_the_gradient_is_zero_also_for_tables_that_are_almost_separated():
    rng = np.random.default_rng(2)
    order = np.triu(np.ones((8, 8)), 1)
    wins = 20 * order + 10.0 ** rng.uniform(-7, -1, size=(50, 1, 1)) * order.T
    theta = ratings(wins)
    chance = 1 / (1 + np.exp(theta[:, None, :] - theta[:, :, None]))
    games = wins + wins.swapaxes(1, 2)
    assert np.ptp(theta, axis=1).max() > 15
    assert_allclose((games * chance).sum(axis=2), wins.sum(axis=2), atol=1e-9)


def test_who_won_everything_gets_virtual_ties_and_finite_ratings():
    wins = np.array([[0.0, 3, 3], [0, 0, 2], [0, 1, 0]])
    assert not estimable(wins)
    assert estimable(wins[1:, 1:])
    assert_allclose(ratings(wins), ratings(with_virtual_ties(wins)))
    two = ratings(np.array([[0.0, 6], [0, 0]]))
    assert two[0] - two[1] == pytest.approx(np.log(6.5 / 0.5))


def test_chains_of_wins_decide_what_is_estimable():
    """A beats B beats C beats A: everybody is above everybody else by a chain; without C's win nobody is above A."""
    wins = np.array([[0.0, 1, 0], [0, 0, 1], [1, 0, 0]])
    assert estimable(wins)
    assert_allclose(ratings(wins), 0.0, atol=1e-12)
    wins[2, 0] = 0.0
    assert not estimable(wins)


def test_links_go_through_others():
    games = np.zeros((4, 4))
    games[0, 1] = games[1, 0] = games[1, 2] = games[2, 1] = 1
    assert linked(games).tolist() == [True, True, True, False]


def tables_of(rounds, k, seed):
    """Wins in rounds of all against all with random weights, so that every pair has the same number of games."""
    rng = np.random.default_rng(seed)
    strength = np.linspace(0.0, 2.0, k) + rng.normal(size=(rounds, k))
    ahead = (strength[:, :, None] > strength[:, None, :]).astype(float)
    ahead += 0.05 * ~np.eye(k, dtype=bool)
    return np.tensordot(rng.exponential(size=(3, rounds)), ahead, axes=1)


@pytest.mark.parametrize("k", [5, 120])
def test_wins_of_each_and_games_of_pairs_tell_the_ratings(k):
    """Few algorithms with equations solved, many by conjugate gradients, from any start."""
    wins = tables_of(9, k, 1)
    won, lost, games = wins.sum(axis=2), wins.sum(axis=1), wins + wins.swapaxes(1, 2)
    want = np.stack([ratings(table) for table in wins])
    for start in (np.zeros(k), want[0]):
        assert_allclose(likeliest(won, lost, games, start), want, atol=1e-10)
        assert_allclose(likeliest(won, lost, games[:, :1, 1:2], start), want, atol=1e-10)


def test_tables_of_many_algorithms_need_one_inverse_and_no_equations(monkeypatch):
    wins = tables_of(9, 120, 2)
    monkeypatch.setattr(bradley_terry.np.linalg, "solve", None)
    found = likeliest(wins.sum(axis=2), wins.sum(axis=1), wins + wins.swapaxes(1, 2), np.zeros(120))
    assert np.isfinite(found).all()


def test_a_table_unlike_the_others_is_solved(monkeypatch):
    """Where conjugate gradients do not get there in a few products."""
    wins = tables_of(9, 120, 3)
    monkeypatch.setattr(bradley_terry, "_MOST_PRODUCTS", 1)
    found = likeliest(wins.sum(axis=2), wins.sum(axis=1), wins + wins.swapaxes(1, 2), np.zeros(120))
    assert_allclose(found, [ratings(table) for table in wins], atol=1e-10)


def test_ratings_whose_odds_overflow_are_found():
    """A ladder on which the lower beats the next one once in 1e9 games: 640 logits from end to end."""
    k = 32
    wins = np.zeros((k, k))
    wins[range(k - 1), range(1, k)], wins[range(1, k), range(k - 1)] = 1.0, 1e-9
    assert_allclose(-np.diff(ratings(wins)), np.log(1e9), rtol=1e-8)


# ----------------------------------------------------------------------------------------------------- moderated errors


@pytest.mark.daily(5)
@pytest.mark.parametrize("of_blocks", [2.0, 50.0, 0.0], ids=["blocks vary", "blocks vary much", "blocks are alike"])
@pytest.mark.parametrize(("n", "k"), [(3, 2), (3, 5), (8, 3), (15, 6)])
def test_moderated_means_of_a_complete_table_are_those_of_the_fitted_model(n: int, k: int, of_blocks: float) -> None:
    """Closed form of the mixed model, at the boundary too, with CR2 of its fit."""
    rng, names = np.random.default_rng(n * k), list("abcdef")[:k]
    spread = np.arange(k) - (k - 1.0) / 2.0  # means by block that are all the same where blocks are to be alike
    x = rng.normal(size=(n, k)) * np.where(np.arange(k) == 1, 4.0, 1.0)
    x += of_blocks * rng.normal(size=(n, 1)) if of_blocks else spread - x.mean(axis=1, keepdims=True)
    means = classical.block_estimates(wide(x), "moderated", 0.05)
    rows = {"score": x.ravel(), "algorithm": names * n, "benchmark": np.repeat(np.arange(n), k)}
    fit = lt.fit_lmm("score ~ algorithm + (1 | benchmark)", pd.DataFrame(rows))
    model = replace(lt.emmeans(fit, "algorithm", vcov=fit.moderated("benchmark")), direction="maximize")
    assert bool(fit.singular_terms) == (not of_blocks)
    assert means.notes == model.notes
    for asked in (lambda of: of, lambda of: of.pairs(), lambda of: of.against("a"), lambda of: of.best()):
        found, want = (asked(of).to_frame().select_dtypes("number").to_numpy() for of in (means, model))
        assert_allclose(found, want, rtol=1e-9, atol=1e-9 * np.abs(x).max())


def test_a_pair_that_differs_by_the_same_on_every_block_has_the_variance_that_the_others_have() -> None:
    x = np.random.default_rng(3).normal(size=(9, 4))
    x[:, 1] = x[:, 0] + 2.0
    rows = {"score": x.ravel(), "algorithm": list("abcd") * 9, "benchmark": np.repeat(np.arange(9), 4)}
    fit = lt.fit_lmm("score ~ algorithm + (1 | benchmark)", pd.DataFrame(rows))
    model = lt.emmeans(fit, "algorithm", vcov=fit.moderated("benchmark")).pairs().to_frame()
    found = classical.block_estimates(wide(x), "moderated", 0.05).pairs().to_frame()
    assert_allclose(found[["se", "df", "p_value"]], model[["se", "df", "p_value"]], rtol=1e-9)


# ---------------------------------------------------------------------- the closed forms of the simulations


@pytest.mark.daily(2)
@pytest.mark.parametrize("test", OF_PAIRS)
def test_the_closed_form_is_what_the_package_decides(test):
    rng = np.random.default_rng(5)
    for shape in ("normal", "20 items"):
        x = SHAPES[shape](rng, (3, 8, 3)) + np.array([0.0, 0.0, 0.5 if shape == "normal" else 0.15])
        for table, expected in zip(x, TESTS[test](x), strict=True):
            assert bool(len(ranking(table, test).decided)) == expected


@pytest.mark.daily(1)
@pytest.mark.parametrize("test", AGAINST)
def test_the_same_with_a_control(test):
    x = SHAPES["normal"](np.random.default_rng(3), (5, 9, 3)) + np.array([0.0, 0.5, 0.9])
    said = AGAINST[test](x)
    assert 0 < said.sum() < len(x)
    for table, expected in zip(x, said, strict=True):
        assert bool(len(ranking(table, test, control="a0").decided)) == expected


def test_the_same_with_missing_cells():
    rng = np.random.default_rng(5)
    x = SHAPES["normal"](rng, (4, 12, 3)) + np.array([0.0, 0.6, 1.2])
    x[rng.random(x.shape) < 0.1] = np.nan
    said = {name: test(x) for name, test in WITH_GAPS.items()}
    assert all(0 < of.sum() < len(x) for of in said.values())
    for i, table in enumerate(x):
        long = pd.DataFrame(table, columns=list("abc")).assign(task=range(12)).melt("task").dropna()
        runs = lt.Runs(long, score="value", direction="maximize", algorithm="variable", benchmark="task")
        found = lt.rank(runs, "frequentist")
        assert found.omnibus.significant == said["Skillings-Mack"][i]
        assert bool(len(found.decided)) == said["wilcoxon"][i]
