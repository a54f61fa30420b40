"""Where autorank 1.3.0 is right, the numbers are the same; where it is wrong, see test_autorank_defects."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from pytest import approx
from scipy import stats

from lmemtest.compat.autorank import autorank
from lmemtest.compat.autorank._util import get_sorted_rank_groups, rank_multiple_nonparametric, test_normality
from lmemtest.compat.autorank.decisions import decisions, differ
from lmemtest.lmm.distributions.studentized_range import ptukey
from lmemtest.lmm.hypotheses.variance_tests import equal_variances

CLASSICAL = [
    "anova", "anova, low alpha", "anova, low is good", "anova, order of the plot", "ranks of normal",
    "unequal variances", "unequal variances, low is good", "friedman", "friedman, low is good", "friedman, cliff",
    "means of skewed", "ties", "ties, low is good", "t", "t, low is good", "wilcoxon", "wilcoxon of normal",
    "t of skewed", "few", "blocks",
]  # fmt: skip
BAYESIAN = ("bayesian", "bayesian, normal", "bayesian, absolute", "bayesian, low is good")
RANKS = ("ranks of normal", "unequal variances", "friedman", "friedman, low is good", "ties", "ties, low is good")
TUKEY = ("anova", "anova, low alpha", "means of skewed", "few", "blocks")
SAME = {"rel": 1e-10, "abs": 1e-12}


def by_population(ours: pd.DataFrame, theirs: pd.DataFrame, names: tuple[str, ...]) -> None:
    """Columns of two tables by their labels."""
    for name in names:
        assert ours[name].to_dict() == approx(theirs[name].to_dict(), **SAME), name


@pytest.mark.parametrize("case", [*CLASSICAL, *BAYESIAN])
def test_the_same_is_done_and_reported(case, ours, theirs, peer):
    result, stored = ours(case), theirs(case)
    for name in ("omnibus", "posthoc", "all_normal", "homoscedastic", "homogeneity_test", "num_samples", "alpha",
                 "force_mode", "plot_order", "rope", "rope_mode"):  # fmt: skip
        assert getattr(result, name) == stored[name], name
    assert result.alpha_normality == approx(stored["alpha_normality"], **SAME)
    assert result.pval_homogeneity == (None if case in BAYESIAN else approx(stored["pval_homogeneity"], **SAME))
    assert list(result.rankdf.columns) == list(stored["rankdf"].columns)
    assert sorted(result.rankdf.index) == sorted(stored["rankdf"].index)
    by_column = dict(zip(peer["tables"][peer["cases"][case]["table"]], stored["shapiro by column"], strict=True))
    assert dict(zip(result.rankdf.index, result.pvals_shapiro, strict=True)) == approx(by_column, **SAME)


@pytest.mark.parametrize("case", [*CLASSICAL, *BAYESIAN])
def test_numbers_are_numbers(case, ours, theirs):
    """There most columns have the type object."""
    words = {"magnitude", "magnitude_above", "decision", "decision_above"}
    kinds = {name: column.dtype == float for name, column in ours(case).rankdf.items()}
    assert kinds == {name: name not in words for name in theirs(case)["rankdf"]}


@pytest.mark.parametrize("case", CLASSICAL)
def test_ranks_centres_spreads_and_p_values(case, ours, theirs):
    result, stored = ours(case), theirs(case)
    centre = ("mean", "std") if "mean" in stored["rankdf"] else ("median", "mad")
    by_population(result.rankdf, stored["rankdf"], ("meanrank", *centre))
    if "wilcoxon" not in case:
        assert result.pvalue == approx(stored["pvalue"], rel=1e-10)


@pytest.mark.parametrize("case", BAYESIAN)
def test_a_posterior_differs_by_its_draws(case, ours, theirs):
    result, stored = ours(case), theirs(case)
    assert list(result.rankdf.index) == list(stored["rankdf"].index)
    centre = ("mean", "std") if "mean" in stored["rankdf"] else ("median", "mad")
    by_population(result.rankdf, stored["rankdf"], (*centre, "effect_size", "effect_size_above"))
    assert result.rankdf["magnitude"].tolist() == stored["rankdf"]["magnitude"].tolist()
    names, close = (
        list(result.rankdf.index),
        {"abs": 0.025},
    )  # five standard errors of the difference of 20,000 draws each
    for (i, a), (j, b) in itertools.combinations(enumerate(names), 2):
        chances = stored["posterior_matrix"]["data"][b][i]
        assert result.posterior_matrix.loc[a, b] == approx(tuple(chances), **close)
        if max(chances) > 0.98 or max(chances) < 0.92:
            assert result.decision_matrix.loc[a, b] == stored["decision_matrix"]["data"][b][i]
            assert result.decision_matrix.loc[b, a] == stored["decision_matrix"]["data"][a][j]
    for name in ("p_equal", "p_smaller", "p_equal_above", "p_smaller_above"):
        assert result.rankdf[name].tolist() == approx(stored["rankdf"][name].tolist(), nan_ok=True, **close)
    assert result.decision_matrix.shape == result.posterior_matrix.shape == result.sample_matrix.shape
    assert result.posterior_matrix.isna().equals(pd.DataFrame(np.tril(np.ones(result.posterior_matrix.shape, bool)),
                                                              result.rankdf.index, result.rankdf.index))  # fmt: skip


def test_draws_are_made_again_when_they_are_asked_for(ours):
    result = ours("bayesian, low is good")
    posterior = result.sample_matrix.iloc[0, 1]
    assert posterior.sample.shape == (20000, 3)
    assert posterior.sample.sum(axis=1) == approx(1.0)
    most = np.bincount(posterior.sample.argmax(axis=1), minlength=3) / 20000
    assert tuple(most) == approx(posterior.probs(), abs=1e-12)
    assert posterior.probs() == result.posterior_matrix.iloc[0, 1]
    left, _, right = posterior.probs()
    assert posterior.probs(with_rope=False) == approx((left / (left + right), right / (left + right)))


@pytest.mark.parametrize("case", [case for case in CLASSICAL if "low is good" in case or case == "friedman, cliff"])
def test_effect_sizes_are_against_the_best(case, ours, theirs):
    """There, too, where low is good."""
    result, stored = ours(case), theirs(case)["rankdf"]
    assert result.rankdf.index[0] == stored.index[0]
    by_population(result.rankdf, stored, ("effect_size",))
    assert result.rankdf["magnitude"].to_dict() == stored["magnitude"].to_dict()
    if list(result.rankdf.index) == list(stored.index):
        by_population(result.rankdf, stored, ("effect_size_above",))
        assert result.rankdf["magnitude_above"].tolist() == stored["magnitude_above"].tolist()


@pytest.mark.parametrize("case", ["unequal variances", "t", "t, low is good"])
def test_intervals_of_means_are_simultaneous(case, ours, theirs):
    by_population(ours(case).rankdf, theirs(case)["rankdf"], ("ci_lower", "ci_upper"))


@pytest.mark.parametrize("case", RANKS)
def test_the_critical_difference_is_a_quantile(case, ours, theirs):
    result = ours(case)
    k, n = len(result.rankdf), result.num_samples
    assert result.cd == approx(theirs(case)["cd"], rel=1e-4)  # from an approximation there
    q = result.cd / np.sqrt(k * (k + 1) / (12 * n))
    assert float(ptukey(q, k, np.inf, upper=True)) == approx(result.alpha, rel=1e-10)


@pytest.mark.parametrize("case", RANKS)
@pytest.mark.parametrize("reverse", [False, True])
def test_groups_of_ranks_hold_the_same_names(case, reverse, ours, theirs):
    ranks, names, groups = get_sorted_rank_groups(ours(case), reverse)
    stored_ranks, stored_names, stored_groups = theirs(case)[f"groups{' reversed' if reverse else ''}"]
    assert isinstance(ranks, pd.Series)
    assert ranks.tolist() == approx(sorted(stored_ranks, reverse=reverse))
    assert list(ranks.index) == names

    def held(names, groups):
        return {frozenset(names[first : last + 1]) for first, last in groups}

    assert held(names, groups) == held(stored_names, stored_groups)


@pytest.mark.parametrize("case", TUKEY)
def test_tukey_decides_by_the_error_of_the_repeated_measures(case, ours, peer):
    """The error is what least squares leave after rows and columns."""
    result = ours(case)
    data = pd.DataFrame(peer["tables"][peer["cases"][case]["table"]])
    n, k = data.shape
    df = (n - 1) * (k - 1)
    design = np.hstack([np.kron(np.eye(n), np.ones((k, 1))), np.kron(np.ones((n, 1)), np.eye(k))])
    rest = data.to_numpy().ravel() - design @ np.linalg.lstsq(design, data.to_numpy().ravel())[0]
    error = rest @ rest / df
    half = np.sqrt(error / n)
    order = list(result.rankdf.index)
    apart = differ(result)
    for i, j in itertools.combinations(range(k), 2):
        distance = abs(data[order[i]].mean() - data[order[j]].mean())
        p = float(ptukey(distance / half, k, df, upper=True))
        assert apart[i, j] == (p < result.alpha)
    widths = (result.rankdf["ci_upper"] - result.rankdf["ci_lower"]).to_numpy()
    assert ptukey(widths / half, k, df, upper=True) == approx([result.alpha] * k, rel=1e-7)


@pytest.mark.parametrize(("test", "function"), [("bartlett", stats.bartlett), ("levene", stats.levene)])
def test_equal_variances_are_tested_as_scipy_does(test, function):
    rng = np.random.default_rng(6)
    for n, k in ((5, 2), (12, 3), (40, 7)):
        x = rng.normal(size=(n, k)) * rng.uniform(0.5, 2.0, k) + rng.normal(size=k)
        assert equal_variances(x, test)[1] == approx(function(*x.T).pvalue, rel=1e-10)
    halves = np.repeat([[0.0, 0.0], [1.0, 1.0]], 4, axis=0)
    assert equal_variances(halves, "levene")[1] == 1.0
    assert equal_variances(halves * [1.0, 2.0], "levene")[1] == 0.0
    assert np.isnan(equal_variances(np.ones((5, 2)), "levene")[1])


def test_the_median_lies_in_its_interval_with_at_least_the_level(ours, table):
    """Order statistics r and n + 1 - r hold the median with probability 1 - 2 P(B < r), B binomial."""
    result = ours("friedman")
    data, each = table("skewed"), 0.05 / 6
    for name, row in result.rankdf.iterrows():
        ordered = np.sort(data[name])
        r = int(np.searchsorted(ordered, row["ci_lower"], side="right"))
        assert row["ci_upper"] in ordered[[-r, -r - 1]]
    chance = 1.0 - 2.0 * stats.binom.cdf(np.arange(20), 40, 0.5)  # of leaving out r = 0, 1, ... at each end
    r = int(np.flatnonzero(chance >= 1.0 - each).max()) + 1
    expected = {name: (np.sort(data[name])[r - 1], np.sort(data[name])[-r]) for name in data}
    found = dict(zip(result.rankdf.index, result.rankdf[["ci_lower", "ci_upper"]].itertuples(index=False), strict=True))
    assert {name: tuple(ends) for name, ends in found.items()} == expected


def test_few_rows_have_no_finite_interval(table):
    result = autorank(table("skewed").iloc[:6], force_mode="nonparametric")
    assert np.isneginf(result.rankdf["ci_lower"]).all()
    assert np.isposinf(result.rankdf["ci_upper"]).all()


@pytest.mark.parametrize("approach", ["frequentist", "bayesian"])
@pytest.mark.parametrize("name", ["normal", "skewed", "two_normal", "two_skewed"])
def test_nothing_depends_on_the_order_of_columns_or_on_which_end_is_good(approach, name, table):
    data = table(name)
    options = {"approach": approach, "nsamples": 200, "random_state": 3}
    result = autorank(data, **options)
    shuffled = autorank(data[data.columns[::-1]], **options)
    pd.testing.assert_frame_equal(shuffled.rankdf, result.rankdf, rtol=1e-9)
    assert shuffled.pvals_shapiro == approx(result.pvals_shapiro)
    turned = autorank(-data, order="ascending", **options)
    assert turned.pvalue == approx(result.pvalue)
    assert list(turned.rankdf.index) == list(result.rankdf.index)
    assert turned.rankdf["effect_size"].tolist() == approx((-result.rankdf["effect_size"]).tolist())
    assert decisions(turned).groups == decisions(result).groups
    scaled = autorank(1000.0 * data + 5.0, **options)
    pd.testing.assert_series_equal(scaled.rankdf["effect_size"], result.rankdf["effect_size"], rtol=1e-7)


def test_draws_follow_the_random_state(table):
    options = {"approach": "bayesian", "nsamples": 100}
    first, again, other = (autorank(table("skewed"), random_state=seed, **options) for seed in (1, 1, 2))
    assert first.posterior_matrix.equals(again.posterior_matrix)
    assert not first.posterior_matrix.equals(other.posterior_matrix)


def test_groups_that_are_no_range_are_not_listed(ours):
    """A matrix of decisions may join two and not what is between them."""
    result = ours("friedman")
    names = list(result.rankdf.index[:3])
    cells = [["", "larger", "inconclusive"], ["smaller", "", "inconclusive"], ["inconclusive", "inconclusive", ""]]
    mixed = result._replace(
        rankdf=result.rankdf.iloc[:3], decision_matrix=pd.DataFrame(cells, index=names, columns=names), cd=None
    )
    assert get_sorted_rank_groups(mixed, False)[2] == [(1, 2)]
    assert decisions(mixed).groups == ((names[0], names[2]), (names[1], names[2]))


def test_the_private_functions_return_what_others_read(table, theirs):
    data = table("skewed")
    all_normal, p_values = test_normality(data, 0.05 / 6, False)
    assert not all_normal
    assert p_values == approx(theirs("friedman")["shapiro by column"], **SAME)
    found = rank_multiple_nonparametric(data, 0.05, False, all_normal, "ascending", None, None, None)
    assert found._fields == ("rankdf", "pvalue", "cd", "omnibus", "posthoc", "effect_size", "reorder_pos")
    assert list(data.columns[found.reorder_pos]) == list(found.rankdf.index)
    assert found.pvalue == approx(theirs("friedman")["pvalue"], rel=1e-10)
    assert (found.omnibus, found.posthoc, found.effect_size) == ("friedman", "nemenyi", "akinshin_gamma")
