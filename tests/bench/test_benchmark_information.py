"""Benchmark information: the paper's synthetic case, Welch's test, intervals, and what cannot be tested."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from refusals import refusal
from scipy import stats
from study import as_runs

import lmemtest as lt
from lmemtest.bench.checks.benchmark_information import benchmark_information
from lmemtest.errors import ArgumentError, DataError, DesignError
from lmemtest.lmm.distributions.student import noncentrality_interval

MEANS = {"B-0": (1.0, 1.0, 1.0), "B-1": (1.0, 1.2, 1.4), "B-2": (0.5, 1.0, 1.5)}


def appendix_c(rng, n=30, sd=0.3):
    """Figure 16: on B-0 all algorithms are alike, on B-1 and B-2 they differ, on B-2 the most."""
    rows = [
        (f"A-{a}", name, seed, rng.normal(mean, sd))
        for name, means in MEANS.items()
        for a, mean in enumerate(means)
        for seed in range(n)
    ]
    return pd.DataFrame(rows, columns=["algorithm", "benchmark", "seed", "loss"])


def test_appendix_c_finds_the_uninformative_benchmark_and_the_order():
    result = benchmark_information(as_runs(appendix_c(np.random.default_rng(1))), rank_benchmarks=True)
    assert result.informative == ("B-1", "B-2")
    assert result.uninformative == ("B-0",)
    assert result.ranking["benchmark"].tolist() == ["B-2", "B-1", "B-0"]
    assert result.table["best"].tolist()[1:] == ["A-0", "A-0"]
    true = {name: np.var(means, ddof=1) for name, means in MEANS.items()}
    for row in result.table.itertuples():
        assert row.variance_low <= true[row.benchmark] <= row.variance_high
    assert " ".join(result.sentences()) == (
        "Algorithms differ on 2 of 3 benchmarks (Welch's F-test per benchmark, Holm adjustment, alpha = 0.05). No "
        "difference was found on B-0, which is not proof that there is none: algorithms may still explain "
        "up to 8 % of the variance between runs there."
    )


def test_p_values_are_those_of_statsmodels():
    from statsmodels.stats.oneway import anova_oneway

    table = appendix_c(np.random.default_rng(2), n=7)
    result = benchmark_information(as_runs(table)).table.set_index("benchmark")
    for name, part in table.groupby("benchmark"):
        want = anova_oneway(part["loss"], part["algorithm"], use_var="unequal", welch_correction=True)
        assert result.loc[name, "f_ratio"] == pytest.approx(want.statistic, rel=1e-9)
        assert result.loc[name, "df_den"] == pytest.approx(want.df_denom, rel=1e-9)
        assert result.loc[name, "p_raw"] == pytest.approx(want.pvalue, rel=1e-9)


def test_two_algorithms_give_welchs_t_test():
    table = appendix_c(np.random.default_rng(3), n=6).query("algorithm != 'A-2'")
    result = benchmark_information(as_runs(table), adjust="none").table.set_index("benchmark")
    part = table[table["benchmark"] == "B-1"]
    a, b = (part.loc[part["algorithm"] == name, "loss"] for name in ("A-0", "A-1"))
    assert result.loc["B-1", "p_raw"] == pytest.approx(stats.ttest_ind(a, b, equal_var=False).pvalue, rel=1e-9)


def test_variance_is_the_reml_estimate_of_the_diagonal_of_equation_11():
    table = appendix_c(np.random.default_rng(4))
    result = benchmark_information(as_runs(table), rank_benchmarks=True).table.set_index("benchmark")
    fit = lt.fit_lmm("loss ~ 1 + (1 | algorithm)", table[table["benchmark"] == "B-2"])
    assert result.loc["B-2", "variance"] == pytest.approx(fit.varcorr["variance"].iloc[0], rel=1e-4)


def test_noncentrality_interval_inverts_scipys_distribution():
    low, high = noncentrality_interval(5.0, 2, 40, 0.9)
    assert stats.ncf.cdf(5.0, 2, 40, low) == pytest.approx(0.95, abs=1e-8)
    assert stats.ncf.cdf(5.0, 2, 40, high) / stats.f.cdf(5.0, 2, 40) == pytest.approx(0.05, abs=1e-8)
    _, far = noncentrality_interval(60.0, 2, 40, 0.9)  # chance alone never gets there: Steiger's limit
    assert stats.ncf.cdf(60.0, 2, 40, far) == pytest.approx(0.05, abs=1e-8)


@pytest.mark.parametrize("df", [(1, 4), (2, 40), (19, 20)])
@pytest.mark.parametrize("f", [0.0, 1e-200, 1e-9])
def test_the_smallest_ratio_leaves_minus_two_log_of_the_tail(df, f):
    """Near zero the noncentral density is exp(-nc / 2) times the central one."""
    assert noncentrality_interval(f, *df, 0.95) == pytest.approx((0.0, -2.0 * np.log(0.025)), rel=1e-6)


def test_the_upper_limit_never_falls_below_that_and_rises_with_the_ratio():
    limits = np.array([noncentrality_interval(f, 3, 36, 0.95) for f in np.linspace(0.0, 6.0, 61)])
    assert (np.diff(limits[:, 1]) > 0).all()
    assert (limits[:, 0] < limits[:, 1]).all()


def test_means_closer_than_chance_puts_them_are_no_certainty():
    """The F-ratio is 0.0001, of which the inverted test made the interval [0, 0]."""
    scores = np.array([-1.0, 0.0, 1.0])
    rows = [(f"A{a}", "b", s, y + 0.005 * a) for a in range(3) for s, y in enumerate(np.tile(scores, 10))]
    table = pd.DataFrame(rows, columns=["algorithm", "benchmark", "seed", "loss"])
    result = benchmark_information(as_runs(table), rank_benchmarks=True)
    row = result.table.iloc[0]
    between, within = 30 * 0.005**2, table.groupby("algorithm")["loss"].var().mean()
    f = between / within
    assert stats.f.cdf(f, 2, 87) < 0.025
    high = -2.0 * np.log(0.025)
    assert (row["share"], row["share_low"]) == (0.0, 0.0)
    assert row["share_high"] == pytest.approx(high / (high + 90), rel=1e-3)
    assert row["variance"] < 0.0 == row["variance_low"]
    assert row["variance_high"] == pytest.approx(high * within / 60, rel=1e-3)
    assert "algorithms may still explain up to 8 % of the variance between runs there." in " ".join(result.sentences())


def test_share_has_no_unit():
    table = appendix_c(np.random.default_rng(5))
    scaled = table.assign(loss=table["loss"] * np.where(table["benchmark"] == "B-1", 1000.0, 1.0))
    one, two = (benchmark_information(as_runs(t), rank_benchmarks=True) for t in (table, scaled))
    np.testing.assert_allclose(one.table["share"], two.table["share"], rtol=1e-9)
    assert two.ranking["benchmark"].iloc[0] == "B-1"
    assert any("so this ranking is one of units" in note for note in two.notes)
    assert not any("so this ranking is one of units" in note for note in one.notes)


def test_budgets_of_a_run_count_once():
    table = appendix_c(np.random.default_rng(6))
    curves = pd.concat([table.assign(budget=b, loss=table["loss"] + 1.0 / b) for b in (1, 2, 4)])
    one, two = benchmark_information(as_runs(table)), benchmark_information(as_runs(curves))
    np.testing.assert_allclose(one.table["p_raw"], two.table["p_raw"], rtol=1e-9)


def test_metafeatures_are_tested_apart_or_averaged():
    table = appendix_c(np.random.default_rng(7))
    sign = table["algorithm"].str[-1].astype(float) - 1.0
    both = pd.concat([table.assign(prior="bad", loss=table["loss"] + sign), table.assign(prior="good")])
    both.loc[both["prior"] == "good", "loss"] -= sign.to_numpy()
    apart = benchmark_information(as_runs(both, metafeatures=("prior",)))
    assert apart.table["benchmark"].tolist()[:2] == ["B-0 / bad", "B-0 / good"]
    assert set(apart.informative) >= {"B-0 / bad", "B-0 / good"}
    mean = benchmark_information(as_runs(both, metafeatures=("prior",)), by="benchmark")
    assert mean.uninformative == ("B-0",)  # opposite differences cancel in the mean
    with pytest.raises(ArgumentError, match="no seed column, so by='benchmark' cannot average over metafeatures"):
        benchmark_information(as_runs(both, metafeatures=("prior",), seed=None), by="benchmark")


def test_means_over_different_levels_are_refused():
    table = appendix_c(np.random.default_rng(7), n=3)
    both = pd.concat([table.assign(prior="bad"), table[table["algorithm"] != "A-0"].assign(prior="good")])
    assert refusal(
        lambda: benchmark_information(as_runs(both, metafeatures=("prior",)), by="benchmark"), DataError
    ) == (
        "by='benchmark' averages over metafeatures, but 9 runs lack some level, for example A-0 with seed 0 on B-0; "
        "their means would not compare. Use by='instance', or filter to levels that all runs have."
    )


def test_an_algorithm_without_variation_uses_the_classical_test():
    table = appendix_c(np.random.default_rng(8))
    table.loc[(table["algorithm"] == "A-0") & (table["benchmark"] == "B-1"), "loss"] = 1.0
    result = benchmark_information(as_runs(table))
    part = table[table["benchmark"] == "B-1"]
    want = stats.f_oneway(*(g["loss"] for _, g in part.groupby("algorithm")))
    assert result.table.set_index("benchmark").loc["B-1", "p_raw"] == pytest.approx(want.pvalue, rel=1e-9)
    assert (
        "B-1: some algorithm's score does not vary there, so the classical F-test was used, which pools variances."
    ) in result.notes


def test_constant_benchmarks_and_single_runs_are_named():
    table = appendix_c(np.random.default_rng(9), n=5)
    table.loc[table["benchmark"] == "B-0", "loss"] = 0.25
    once = (table["benchmark"] == "B-1") & (table["algorithm"] == "A-2") & (table["seed"] > 0)
    result = benchmark_information(as_runs(table[~once]))
    assert "B-0: all runs have the same score, so it says nothing about the algorithms." in result.notes
    assert "B-1: A-2 ran once there and took no part in the test." in result.notes
    assert np.isnan(result.table["p_raw"].iloc[0])


def test_no_test_is_no_answer():
    table = appendix_c(np.random.default_rng(9))
    table.loc[table["benchmark"] == "B-0", "loss"] = 0.25
    result = benchmark_information(as_runs(table))
    assert result.table["informative"].dtype == "boolean"
    assert result.table["informative"].isna().tolist() == [True, False, False]
    assert (result.informative, result.uninformative, result.untested) == (("B-1", "B-2"), (), ("B-0",))
    assert " ".join(result.sentences()) == (
        "Algorithms differ on all 2 tested benchmarks (Welch's F-test per benchmark, Holm adjustment, alpha = 0.05). "
        "B-0 could not be tested, so nothing is known there."
    )
    row = next(line for line in result.summary().splitlines() if line.startswith("B-0"))
    assert "False" not in row


def test_single_runs_everywhere_are_refused():
    table = appendix_c(np.random.default_rng(10), n=1).query("benchmark != 'B-2'")
    with pytest.raises(DesignError) as error:
        benchmark_information(as_runs(table))
    why = "fewer than two algorithms ran there more than once, so chance cannot be judged."
    assert str(error.value) == (
        f"no benchmark can be tested: B-0 and B-1: {why} Add repeated runs (seeds) of the algorithms on the same "
        "benchmark."
    )


def test_one_benchmark_without_a_column_works():
    table = appendix_c(np.random.default_rng(11)).query("benchmark == 'B-2'").drop(columns="benchmark")
    assert benchmark_information(as_runs(table)).informative == ("all runs",)


def test_ranking_must_be_asked_for():
    with pytest.raises(AttributeError) as error:
        benchmark_information(as_runs(appendix_c(np.random.default_rng(12)))).ranking  # noqa: B018
    assert str(error.value) == (
        "benchmark_information has no 'ranking'. Write lmemtest.benchmark_information(runs, rank_benchmarks=True)."
    )


@pytest.mark.parametrize("categories", [["A", "B", "C"], ["A", "C", "B"]])
@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_equal_means_share_the_first_place_whatever_the_order_of_categories(categories, direction):
    losses = {"A": [2.0, 2.4], "B": [0.1, 0.5], "C": [0.2, 0.4]}  # means that differ by rounding alone
    rows = [(a, "b", s, y) for a, ys in losses.items() for s, y in enumerate(ys)]
    table = pd.DataFrame(rows, columns=["algorithm", "benchmark", "seed", "loss"])
    table["loss"] *= 1.0 if direction == "minimize" else -1.0
    table["algorithm"] = pd.Categorical(table["algorithm"], categories)
    found = benchmark_information(as_runs(table, direction=direction)).table
    assert found["best"].tolist() == ["B and C"]


def test_few_runs_of_many_algorithms_are_warned_of():
    rng = np.random.default_rng(13)
    rows = [(f"A{a}", "b", s, rng.normal()) for a in range(8) for s in range(3)]
    table = pd.DataFrame(rows, columns=["algorithm", "benchmark", "seed", "loss"])
    assert any("There are only 3 runs per algorithm" in note for note in benchmark_information(as_runs(table)).notes)


def test_all_benchmarks_of_the_paper_are_informative(data_dir):
    """Figure 3 of the paper; its raw table has one row per budget, ours one per run."""
    table = pd.read_parquet(data_dir / "priorband.parquet")
    runs = as_runs(table, score="value", budget="used_fidelity", metafeatures=("prior",))
    result = benchmark_information(runs)
    assert len(result.informative) == len(result.table) == 24
