"""What is wrong in autorank 1.3.0, each with its value and ours."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from pytest import approx
from scipy import stats

from lmemtest.compat.autorank import autorank, create_report, latex_report, latex_table
from lmemtest.compat.autorank._util import get_sorted_rank_groups
from lmemtest.compat.autorank.decisions import decisions, differ
from lmemtest.compat.autorank.latex import latex_report_text, latex_table_text
from lmemtest.compat.autorank.report import report_text


def cohen_d(x, y):
    return (x.mean() - y.mean()) / np.sqrt((x.var() + y.var()) / 2)


def test_the_default_order_is_best_first(ours, theirs, table):
    """Theirs is worst first, so that effect sizes are against the worst."""
    old, data = theirs("friedman")["rankdf"], table("skewed")
    assert (old.index[0], old["meanrank"].iloc[0]) == ("pop_1", 5.2)
    assert ours("friedman").rankdf["meanrank"].tolist() == sorted(old["meanrank"])
    assert ours("friedman").rankdf.index[0] == data.median().idxmax() == "pop_4"
    old, new = theirs("t")["rankdf"]["effect_size"], ours("t").rankdf["effect_size"]
    best, other = table("two_normal")["pop_1"], table("two_normal")["pop_0"]
    assert old.to_dict() == approx({"pop_0": 0.0, "pop_1": cohen_d(other, best)})
    assert new.to_dict() == approx({"pop_1": 0.0, "pop_0": cohen_d(best, other)})


def test_p_values_of_shapiro_belong_to_their_population(ours, theirs, table):
    """Theirs are in an order that is neither that of the columns nor that of the rows: the report names others."""
    stored, result = theirs("friedman"), ours("friedman")
    true = {name: stats.shapiro(column).pvalue for name, column in table("skewed").items()}
    old = dict(zip(stored["rankdf"].index, stored["pvals_shapiro"], strict=True))
    assert old != approx(true)
    assert list(old.values()) != approx(list(true.values()))
    assert dict(zip(result.rankdf.index, result.pvals_shapiro, strict=True)) == approx(true)
    not_normal = {name for name, p in true.items() if p < 0.05 / 6}
    assert not_normal == {"pop_1", "pop_3", "pop_4"}
    assert set(stored["report"]["named"]) != not_normal
    said = report_text(result).splitlines()[1]
    assert {name for name in true if f"{name} (p" in said} == not_normal


def test_two_means_differ_by_more_than_both_half_widths(ours, theirs, peer):
    """Theirs calls a pair significant whose intervals overlap, and whose adjusted p-value is above alpha."""
    _, names, groups = theirs("anova")["groups"]
    assert [names[first : last + 1] for first, last in groups] == [["pop_4", "pop_0"]]
    unpaired = peer["defects"]["unpaired Tukey"]["normal"]
    assert {pair: p for pair, p in unpaired.items() if p > 0.09} == approx(
        {"pop_0 - pop_4": 0.7333, "pop_1 - pop_4": 0.0961, "pop_2 - pop_3": 0.0995}, abs=1e-4
    )
    result = ours("anova")
    half = (result.rankdf["ci_upper"] - result.rankdf["ci_lower"]) / 2
    for (i, a), (j, b) in itertools.combinations(enumerate(result.rankdf.index), 2):
        apart = abs(result.rankdf["mean"][a] - result.rankdf["mean"][b])
        assert differ(result)[i, j] == (apart > half[a] + half[b])


def test_tukey_obeys_alpha(ours, theirs):
    """Their intervals are those of 5 % whatever alpha is."""
    ends = ["ci_lower", "ci_upper"]
    old = [theirs(case)["rankdf"][ends].to_numpy() for case in ("anova", "anova, low alpha")]
    assert old[0] == approx(old[1])
    new = [np.ptp(ours(case).rankdf[ends].to_numpy()[0]) for case in ("anova", "anova, low alpha")]
    assert new[1] / new[0] == approx(
        stats.studentized_range.ppf(0.99, 5, 116) / stats.studentized_range.ppf(0.95, 5, 116), rel=1e-5
    )


def test_tukey_uses_the_pairing(ours, theirs, peer, table):
    """Rows differ more than populations: theirs, for independent samples, finds nothing after the ANOVA rejects."""
    assert theirs("blocks")["pvalue"] < 1e-5
    assert theirs("blocks")["groups"][2] == [[0, 2]]
    assert min(peer["defects"]["unpaired Tukey"]["blocks"].values()) > 0.9
    result, data = ours("blocks"), table("blocks")
    assert list(result.rankdf.index) == ["pop_2", "pop_1", "pop_0"]
    assert get_sorted_rank_groups(result, False)[2] == [(1, 2)]
    p = {pair: stats.ttest_rel(data[pair[0]], data[pair[1]]).pvalue for pair in itertools.combinations(data, 2)}
    assert p[("pop_0", "pop_1")] > 0.05  # by itself, too; the others are significant even times three
    assert 3 * max(p[("pop_0", "pop_2")], p[("pop_1", "pop_2")]) < 2e-3


@pytest.mark.parametrize(("case", "name"), [("wilcoxon", "two_skewed"), ("wilcoxon of normal", "two_normal")])
def test_wilcoxon_is_two_sided(case, name, ours, theirs, table):
    """Theirs is one-sided in the direction that the data show, so that 5 % are nearly 10 %."""
    data = table(name)
    two = stats.wilcoxon(*data.to_numpy().T, method="exact" if name == "two_normal" else "auto").pvalue
    assert theirs(case)["pvalue"] == approx(two / 2, rel=1e-6)
    assert ours(case).pvalue == approx(two, rel=0.02)  # SciPy is normal where there are zeros or ties, ours is exact
    if name == "two_normal":
        assert ours(case).pvalue == approx(two, rel=1e-10)


def coverage(data, low, high):
    """Exact, of the order statistics that an interval consists of: P(x_(r) < median < x_(s)) = P(r <= B < s)."""
    ordered = np.sort(data)
    r, s = np.searchsorted(ordered, low) + 1, np.searchsorted(ordered, high) + 1
    return stats.binom.cdf(s - 1, len(data), 0.5) - stats.binom.cdf(r - 1, len(data), 0.5)


def test_intervals_of_medians_have_their_level(ours, theirs, table):
    """Theirs take sqrt(n / 2) for the standard deviation of a binomial count, which is sqrt(n) / 2."""
    data, level = table("skewed"), 1 - 0.05 / 6
    old, new = theirs("friedman")["rankdf"], ours("friedman").rankdf
    name = "pop_2"  # without ties at its ends
    assert coverage(data[name], *old.loc[name, ["ci_lower", "ci_upper"]].astype(float)) > 0.9998
    found = coverage(data[name], *new.loc[name, ["ci_lower", "ci_upper"]])
    assert found >= level
    tighter = np.sort(data[name])[[*np.searchsorted(np.sort(data[name]), new.loc[name, ["ci_lower", "ci_upper"]])]]
    assert found - 2 * stats.binom.pmf(np.searchsorted(np.sort(data[name]), tighter[0]) + 1, 40, 0.5) < level


def test_bayesian_intervals_are_adjusted_once(ours, theirs, table):
    """Theirs divide alpha by the number of populations twice."""
    data = table("normal")
    n, k = data.shape
    for frame, divisor in ((theirs("bayesian, normal")["rankdf"], k * k), (ours("bayesian, normal").rankdf, k)):
        half = stats.t.isf(0.05 / divisor / 2, n - 1) * data.sem()
        assert frame["ci_upper"].to_dict() == approx((data.mean() + half).to_dict())


def test_the_interval_is_that_of_the_centre(ours, theirs, table):
    """Where the test is forced, theirs put an interval of the mean beside a median, and the reverse."""
    data = table("normal")
    half = stats.t.isf(0.005, len(data) - 1) * data.sem()
    old, new = theirs("ranks of normal")["rankdf"], ours("ranks of normal").rankdf
    assert "median" in old
    assert old["ci_upper"].to_dict() == approx((data.mean() + half).to_dict())
    assert all(new["ci_upper"][name] in set(data[name]) for name in data)
    data = table("two_skewed")
    half = stats.t.isf(0.0125, len(data) - 1) * data.sem()
    old, new = theirs("t of skewed"), ours("t of skewed")
    assert old["rankdf"]["ci_upper"].to_dict() != approx((data.mean() + half).to_dict())
    assert new.rankdf["ci_upper"].to_dict() == approx((data.mean() + half).to_dict())
    assert (old["effect_size"], new.effect_size) == ("akinshin_gamma", "cohen_d")  # of means


def test_missing_cells_are_refused(peer, table):
    """Theirs ranks, with a p-value of NaN and a mean of ranks over fewer rows."""
    assert peer["defects"]["nan"][0] is None
    assert peer["defects"]["nan"][1]["data"]["meanrank"][3] == approx(3.371795)
    assert "We reject the null hypothesis (p=nan)" in peer["defects"]["report of nan"]["phrases"]
    data = table("skewed")
    data.iloc[3, 2] = np.nan
    with pytest.raises(ValueError, match=r"1 of 240 are missing or infinite \(in column 'pop_2', for instance\)"):
        autorank(data)


def test_effect_sizes_above_are_written_for_any_result(ours, peer, capsys):
    """Theirs stops if the result is not significant."""
    assert peer["defects"]["latex_table(above)"] == "ValueError: list.remove(x): x not in list"
    for relation in ("best", "above", "both"):
        latex_table(ours("ties"), effect_size_relation=relation, posterior_relation=relation)
        latex_table(ours("friedman"), effect_size_relation=relation)
    assert capsys.readouterr().out.count(r"\end{table}") == 6
    above = latex_table_text(ours("friedman"), effect_size_relation="above")
    sizes = [line.split(" & ")[5].replace("$-$", "-") for line in above.splitlines()[6:12]]
    assert list(map(float, sizes)) == approx(ours("friedman").rankdf["effect_size_above"].tolist(), abs=6e-4)


def test_without_a_spread_there_is_no_effect_size(peer):
    """Theirs: "large"."""
    stored = peer["defects"]["mad 0"]
    old = pd.DataFrame(stored["rankdf"]["data"], index=stored["rankdf"]["index"])
    assert np.isnan(old.loc["pop_4", "effect_size_above"])
    assert old.loc["pop_4", "magnitude_above"] == "large"
    new = autorank(pd.DataFrame(stored["data"])).rankdf
    assert new["mad"].tolist()[:2] == [0.0, 0.0]
    assert np.isnan(new["effect_size"].iloc[1])
    assert new["magnitude"].tolist() == ["negligible", "undefined", "large"]


def test_labels_may_be_numbers(peer, table, capsys):
    """Their report stops."""
    assert peer["defects"]["report of numbered columns"].startswith("TypeError")
    data = table("skewed").set_axis([3, 1, 4, 15, 9, 26], axis=1)
    result = autorank(data, plot_order=[26, 9, 15, 4, 1, 3])
    create_report(result)
    assert "; 4, 26 and 3; " in capsys.readouterr().out
    latex_report(result, generate_plots=False)
    assert result.rankdf.index.tolist()[0] == 9
    bayesian = autorank(data, approach="bayesian", nsamples=100, random_state=1)
    create_report(bayesian)
    assert "9 is decided to be larger than" in capsys.readouterr().out


@pytest.mark.parametrize("approach", ["frequentist", "bayesian"])
def test_labels_may_be_repeated_or_in_any_script(approach, table):
    labels = ["метод", "方法", "a", "a", "é", ("tuple", 1)]
    result = autorank(table("skewed").set_axis(pd.Index(labels, tupleize_cols=False), axis=1), approach=approach,
                      nsamples=100, random_state=1)  # fmt: skip
    plain = autorank(table("skewed"), approach=approach, nsamples=100, random_state=1)
    numbers = [name for name, column in plain.rankdf.items() if column.dtype == float]
    assert result.rankdf[numbers].to_numpy() == approx(plain.rankdf[numbers].to_numpy(), nan_ok=True)
    assert "a (2)" in report_text(result)


def test_names_are_escaped_in_latex(peer, table):
    assert "x & y (p=" in peer["defects"]["latex of special names"]["phrases"]
    data = table("skewed").set_axis(["50%", "a_b", "x & y", "c#", "{d}", "e"], axis=1)
    result = autorank(data)
    text = latex_report_text(result)
    for name in (r"50\%", r"a\_b", r"x \& y", r"c\#", r"\{d\}"):
        assert text.count(name) >= 3, name
    body = [line for line in text.splitlines() if "tabular" not in line and "&" in line]
    assert {line.count("&") - line.count(r"\&") for line in body if line.endswith(r"\\")} == {6}
    assert all(line.endswith(r"\\") or line.count("&") == line.count(r"\&") for line in body)


def test_probabilities_without_a_rope(peer, table):
    stored = peer["defects"]["rope 0"]["rankdf"]["data"]
    result = autorank(table("skewed"), approach="bayesian", rope=0.0, nsamples=500, random_state=1)
    assert result.rankdf["p_equal"].tolist()[1:] == stored["p_equal"][1:] == [0.0] * 5


def test_the_threshold_of_the_posterior_is_one_minus_alpha(ours, theirs):
    assert "the posterior probability is at least alpha=0.050" in theirs("bayesian")["report"]["phrases"]
    assert "whose probability is at least 1 - alpha = 0.95" in report_text(ours("bayesian"))


ACCEPTED = ("we assume", "are equal,", "all normal.", "homoscedastic", "assume that", "no difference in", "is normal")


@pytest.mark.parametrize(
    "case", ["anova", "friedman", "ties", "t", "wilcoxon", "few", "blocks", "bayesian", "t of skewed"]
)
def test_no_null_hypothesis_is_accepted(case, ours, theirs):
    """Theirs: "Therefore, we assume that there is no statistically significant difference between the median"."""
    old, new = theirs(case)["report"]["phrases"], report_text(ours(case))
    assert set(ACCEPTED) & set(old)
    assert [words for words in ACCEPTED if words in new] == []
    if ours(case).pvalue is not None and ours(case).pvalue >= 0.05:
        assert "which is not evidence that there is none" in new


def test_nothing_is_printed(peer, table, capsys):
    assert "magnitude_above" in peer["defects"]["printed"]["phrases"]
    autorank(table("normal"), force_mode="parametric")
    assert capsys.readouterr().out == ""
    autorank(table("normal"), verbose=True)
    assert capsys.readouterr().out.count("\n") == 7


def test_equal_columns_are_no_difference(table, peer):
    """Their p-value of the t-test is NaN, which they take for significant; the signed-rank test has no rank left."""
    p, report = peer["defects"]["equal columns"]
    assert p is None
    assert "is significantly larger than the mean value of" in report["phrases"]
    data = table("two_normal").assign(pop_1=lambda frame: frame["pop_0"])
    for mode in ("parametric", "nonparametric"):
        result = autorank(data, force_mode=mode)
        assert result.pvalue == 1.0
        assert "which is not evidence that there is none" in report_text(result)
    result = autorank(data.assign(pop_2=lambda frame: frame["pop_0"]), force_mode="parametric")
    assert result.pvalue == 1.0
    assert get_sorted_rank_groups(result, False)[2] == [(0, 2)]
    assert decisions(result).groups == (("pop_0", "pop_1", "pop_2"),)


def test_a_constant_is_not_normal():
    """scipy's p-value of a constant is 1, which Autorank reads as "normal"."""
    data = pd.DataFrame({"A": [0.9, 0.8, 0.7, 0.95, 0.6, 0.85], "B": [0.5] * 6})
    with pytest.warns(UserWarning, match="range zero"):
        assert stats.shapiro(data["B"]).pvalue == 1.0
    result = autorank(data)
    assert np.isnan(result.pvals_shapiro[list(result.rankdf.index).index("B")])
    assert (result.all_normal, result.homogeneity_test, result.omnibus) == (False, "levene", "wilcoxon")
