"""Does the budget matter, and alike for all algorithms: verdicts, tests and messages."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pandas as pd
import pytest
from pytest import approx

import lmemtest as lt
from lmemtest.errors import ArgumentError, DataError, UnknownColumnError
from lmemtest.recipes.budgets import fidelity


def make_table(
    *, benchmarks=6, algorithms=3, seeds=4, budgets=4, slopes=0.0, spread=0.3, seed=0, bend=0.0, run_spread=0.0
) -> pd.DataFrame:
    """Scores with a common difficulty, an advantage, and a slope per benchmark and per algorithm on it."""
    rng = np.random.default_rng(seed)
    rows = itertools.product(range(benchmarks), range(algorithms), range(seeds), range(budgets))
    table = pd.DataFrame(list(rows), columns=["task", "algorithm", "seed", "budget"])
    b, a, s, k = (table[c].to_numpy() for c in table)
    own = np.broadcast_to(slopes, algorithms)[a]
    table["loss"] = (
        rng.normal(size=benchmarks)[b]
        + 0.3 * rng.normal(size=(benchmarks, algorithms))[b, a]
        + 0.3 * rng.normal(size=(benchmarks, algorithms, seeds))[b, a, s]
        + k * (own + spread * rng.normal(size=benchmarks)[b] + spread * rng.normal(size=(benchmarks, algorithms))[b, a])
        + k * run_spread * rng.normal(size=(benchmarks, algorithms, seeds))[b, a, s]
        + bend * (k - (budgets - 1) / 2) ** 2
        + 0.2 * rng.normal(size=len(table))
    )
    return table.assign(algorithm="a" + table["algorithm"].astype(str), budget=table["budget"] + 1.0)


def runs_of(table, **roles) -> lt.Runs:
    given = {"benchmark": "task", "seed": "seed", "budget": "budget"} | roles
    return lt.Runs(table, score="loss", direction="minimize", algorithm="algorithm", **given)


def appendix_c(seed: int = 1, *, per_algorithm=False) -> lt.Runs:
    """Figure 18: a budget that loosely moves the mean of every algorithm (of one of them) on several benchmarks."""
    slopes = [0.0, 0.0, -0.3] if per_algorithm else -0.3
    return runs_of(make_table(slopes=slopes, spread=0.03, seed=seed))


def test_a_budget_that_moves_all_algorithms_alike_is_a_simple_effect():
    result = fidelity(appendix_c())
    assert result.verdict == "simple"
    assert result["simple", "fidelity"].p_value < 0.001
    assert result["fidelity", "interaction"].p_value > 0.05
    assert result.sentence.startswith("budget changes loss (F(3, ")
    assert "for different algorithms is not shown" in result.sentence


def test_a_budget_that_moves_one_algorithm_is_an_interaction():
    result = fidelity(appendix_c(per_algorithm=True))
    assert result.verdict == "interaction"
    assert result.sentence.startswith("budget changes loss differently for different algorithms (F(2, ")
    last = result.sentences()[-1]
    assert last.startswith("a2: loss gets better by 0.")
    assert "for one more unit of budget (95 % interval of the change -0." in last


def test_a_budget_without_an_effect_has_none():
    result = fidelity(runs_of(make_table(seed=3)))
    assert result.verdict == "none"
    assert result.sentence.startswith("No effect of budget on loss was found (F(3, ")


def test_all_models_have_one_random_part_with_slopes_of_benchmarks_and_runs():
    formulas = fidelity(appendix_c()).formulas
    random = (
        " + (1 + budget | task) + (1 + budget | task:algorithm) + (1 | task:seed) + (1 + budget | task:algorithm:seed)"
    )
    assert formulas == {
        "simple": f"loss ~ algorithm{random}",
        "fidelity": f"loss ~ algorithm + budget{random}",
        "interaction": f"loss ~ algorithm + budget + algorithm:budget{random}",
    }


def test_the_f_test_of_a_balanced_table_is_the_one_on_slopes():
    """Closed form: least-squares slopes of (benchmark, algorithm), two-way analysis without repetition."""
    table = make_table(slopes=[0.0, 0.2, 0.4], benchmarks=8, run_spread=0.2, seed=2)
    result = fidelity(runs_of(table))
    x = table["budget"] - table["budget"].mean()
    slopes = (table["loss"] * x).groupby([table["task"], table["algorithm"]]).sum().unstack() / (x**2).sum()
    slopes = slopes.to_numpy() * slopes.size
    m, k = slopes.shape
    between = slopes.mean(axis=0)
    residual = slopes - slopes.mean(axis=1, keepdims=True) - between + slopes.mean()
    f = (m * ((between - slopes.mean()) ** 2).sum() / (k - 1)) / ((residual**2).sum() / ((m - 1) * (k - 1)))
    got = result["fidelity", "interaction"]
    assert got.f_ratio == approx(f, rel=1e-6)  # no variance at its boundary
    assert got.df_num == k - 1
    assert result.slopes["estimate"].to_numpy() == approx(between, rel=1e-6)


def test_likelihoods_are_those_of_the_three_models():
    runs = appendix_c()
    result = fidelity(runs)
    for c in result.comparisons:
        null, alternative = (lt.fit_lmm(result.formulas[name], runs, reml=False) for name in (c.null, c.alternative))
        assert c.llf_null == approx(null.llf, abs=1e-4)
        assert c.llf_alternative == approx(alternative.llf, abs=1e-4)
        assert c.statistic == approx(2 * (alternative.llf - null.llf), abs=1e-3)
        assert c.df == alternative.n_params - null.n_params


def test_curves_of_a_complete_table_are_means_of_runs():
    """One row less keeps the rows, with random curves of runs; an advantage that grows is seen either way."""
    table = make_table(slopes=[0.0, 0.5, 1.0], benchmarks=8, spread=0.1, run_spread=0.1, seed=2, budgets=6, seeds=2)
    means, rows = fidelity(runs_of(table), form="spline"), fidelity(runs_of(table.iloc[1:]), form="spline")
    assert "Curves are means over 2 runs of each algorithm and instance." in means.notes
    assert means.n_obs == 8 * 3 * 6
    assert "(1 + bs(budget, df=4) | task:algorithm:seed)" in rows.formulas["simple"]
    assert means.verdict == rows.verdict == "interaction"
    assert means.reference == "kenward-roger"


@pytest.mark.parametrize("form", ["categorical", "spline"])
def test_a_bend_is_found_by_the_forms_that_can_bend(form):
    runs = runs_of(make_table(budgets=6, spread=0.02, bend=0.2, slopes=0.0))
    assert fidelity(runs).verdict == "none"
    result = fidelity(runs, form=form)
    assert result.verdict == "simple"
    assert result["simple", "fidelity"].df == (5 if form == "categorical" else 4)
    assert result.per == "from budget 1 to 6"
    random = "(1 + bs(budget, df=4) | task) + (1 + bs(budget, df=4) | task:algorithm) + (1 | task:budget)"
    assert result.formulas["simple"] == f"loss ~ algorithm + {random}"


def test_means_of_the_categorical_form_are_the_observed_ones_in_a_balanced_table():
    runs = runs_of(make_table(slopes=0.1))
    result = fidelity(runs, form="categorical")
    assert result.curves["mean"].to_numpy() == approx(result.observed["mean"].to_numpy(), rel=1e-6)
    assert (result.curves["ci_low"] < result.curves["mean"]).all()


def test_references_agree_where_there_is_much_data_and_are_named():
    runs = appendix_c()
    found = {name: fidelity(runs, reference=name) for name in ("satterthwaite", "kenward-roger", "chi2")}
    pair = ("fidelity", "interaction")
    assert found["kenward-roger"][pair].p_value == approx(found["satterthwaite"][pair].p_value, abs=0.02)
    assert found["chi2"][pair].p_value == found["chi2"][pair].glrt_p
    assert np.isnan(found["chi2"][pair].f_ratio)
    assert found["kenward-roger"].reference == "kenward-roger"


def test_the_bootstrap_is_reproducible():
    runs = runs_of(make_table(benchmarks=3, seeds=2, budgets=3))
    first, second = (fidelity(runs, reference="bootstrap", n_boot=9, rng=1).to_frame() for _ in range(2))
    pd.testing.assert_frame_equal(first, second)
    assert set(np.round(first["p_value"] * 10, 9)) <= set(range(1, 11))


def test_lines_in_the_manner_of_the_paper_are_printed_on_request(capsys):
    result = fidelity(appendix_c(), verbose=True)
    lines = capsys.readouterr().out.splitlines()
    assert lines == list(result.paper_lines())
    assert re.fullmatch(r"Simple model \(-?[\d.]+\) << Model with budget effect \(-?[\d.]+\)", lines[0])
    assert " == Model with interaction" in lines[4]
    assert lines[6] == f"=> {result.sentence}"


def test_one_benchmark_is_compared_over_runs_with_a_note():
    result = fidelity(runs_of(make_table(benchmarks=1, seeds=8)))
    assert result.clusters == "runs"
    assert (
        result.formulas["simple"] == "loss ~ algorithm + (1 + budget | task:seed) + (1 + budget | task:algorithm:seed)"
    )
    assert any(note.startswith("There is one benchmark") for note in result.notes)


def test_one_seed_on_several_benchmarks_is_enough():
    result = fidelity(runs_of(make_table(seeds=1)))
    assert result.formulas["simple"].endswith("~ algorithm + (1 + budget | task) + (1 + budget | task:algorithm)")


def test_two_algorithms_and_two_budgets_are_enough():
    result = fidelity(runs_of(make_table(algorithms=2, budgets=2, slopes=[0, 2.0])), form="categorical")
    assert result.verdict == "interaction"
    assert result.form == "linear"
    assert "With two budgets form='categorical' is the same as form='linear', which was fitted." in result.notes
    assert "(1 | task:algorithm:seed)" in result.formulas["simple"]


def test_metafeatures_are_instances():
    table = pd.concat([make_table(seed=1).assign(prior="good"), make_table(seed=2).assign(prior="bad")])
    whole = fidelity(runs_of(table, metafeatures=("prior",)), form="categorical")
    assert "Curves are means over the 2 levels of prior." in whole.notes
    result = fidelity(runs_of(table, metafeatures=("prior",)))
    assert "(1 + budget | task:prior:algorithm)" in result.formulas["simple"]
    assert "~ algorithm + (1" in result.formulas["simple"]
    alone = fidelity(runs_of(table.query("task == 0"), metafeatures=("prior",)))
    assert "~ algorithm + prior + algorithm:prior + (1" in alone.formulas["simple"]


def test_another_column_can_be_the_fidelity():
    table = make_table().rename(columns={"budget": "epochs so far"})
    result = fidelity(runs_of(table, budget=None), fidelity_var="epochs so far")
    assert result.budget == "epochs so far"
    assert "+ `epochs so far` +" in result.formulas["fidelity"]


def test_relabelling_and_the_order_of_rows_do_not_matter():
    table = make_table(slopes=[0, 0.1, 0.3])
    first = fidelity(runs_of(table))
    shuffled = table.sample(frac=1.0, random_state=np.random.default_rng(1))
    second = fidelity(runs_of(shuffled.assign(loss=100 + 3 * shuffled["loss"])))
    for a, b in zip(first.comparisons, second.comparisons, strict=True):
        assert a.p_value == approx(b.p_value, rel=1e-4)
    assert second.slopes["estimate"].to_numpy() == approx(3 * first.slopes["estimate"].to_numpy(), rel=1e-4)


def test_different_ranges_of_budgets_are_noted():
    table = make_table(budgets=5).query("~(algorithm == 'a2' and budget > 3)")
    result = fidelity(runs_of(table))
    assert any(
        note.startswith("Algorithms have different ranges of budget (a0: 1 to 5, a1: 1 to 5, a2: 1 to 3)")
        for note in result.notes
    )


def test_what_cannot_be_answered_is_refused_in_words():
    table = make_table()
    cases = [
        (lambda: fidelity(runs_of(table, budget=None)), ArgumentError, "runs has no budget column, so there is no fid"),
        (lambda: fidelity(runs_of(table), fidelity_var="nope"), UnknownColumnError, "fidelity_var names the column"),
        (
            lambda: fidelity(runs_of(table), fidelity_var="seed"),
            ArgumentError,
            "must not be the seed column, got 'seed'",
        ),
        (lambda: fidelity(runs_of(table), form="cubic"), ArgumentError, "form must be 'linear' or 'categorical' or"),
        (lambda: fidelity(runs_of(table), reference="lrt"), ArgumentError, "reference must be 'auto' or"),
        (
            lambda: fidelity(runs_of(table.query("budget == 2"))),
            DataError,
            "one budget only (budget = 2), so its effect",
        ),
        (lambda: fidelity(runs_of(table), form="spline"), ArgumentError, "needs at least 5 budgets, there are 4."),
        (
            lambda: fidelity(runs_of(make_table(budgets=51, seeds=1, benchmarks=2)), form="categorical"),
            ArgumentError,
            "there are 51 budgets, more than 50. Use form='spline'",
        ),
        (
            lambda: fidelity(runs_of(table.assign(budget=pd.Categorical(table["budget"].map("step {:.0f}".format))))),
            ArgumentError,
            "form='linear' needs numbers as budgets, and 'budget' has none. Use form='categorical'.",
        ),
        (
            lambda: fidelity(runs_of(make_table(benchmarks=1, seeds=1))),
            DataError,
            "one benchmark and one run per algorithm, so the course of a run cannot be told from an effect of budget.",
        ),
        (
            lambda: fidelity(runs_of(make_table(benchmarks=1), seed=None)),
            DataError,
            "Which rows belong to one run is not known",
        ),
        (
            lambda: fidelity(runs_of(table.query("algorithm != 'a1' or budget == 1"))),
            DataError,
            "'a1' ran at one budget only",
        ),
        (
            lambda: fidelity(runs_of(table.assign(budget=table["budget"] + 9 * (table["algorithm"] == "a1")))),
            DataError,
            "The budgets of the algorithms do not overlap (a0: 1 to 4, a1: 10 to 13, a2: 1 to 4)",
        ),
        (
            lambda: fidelity(runs_of(table.query("algorithm != 'a1' or budget < 4")), form="categorical"),
            DataError,
            "form='categorical' compares algorithms at every budget, but they share 3 of 4 budgets.",
        ),
        (lambda: fidelity(table), ArgumentError, "runs must be Runs, got DataFrame."),
    ]
    for call, kind, words in cases:
        with pytest.raises(kind, match=re.escape(words)):
            call()


def test_budgets_that_are_words_are_taken_as_categories():
    table = make_table(slopes=0.5, spread=0.05)
    words = ["low", "middle", "high", "full"]
    table["budget"] = pd.Categorical.from_codes(table["budget"].astype(int) - 1, words, ordered=True)
    result = fidelity(runs_of(table), form="categorical")
    assert result.verdict == "simple"
    assert list(result.curves["budget"].unique()) == words


def test_the_table_and_the_text_say_what_was_done():
    result = fidelity(appendix_c())
    frame = result.to_frame()
    assert list(frame.columns) == [
        "null", "alternative", "llf_null", "llf_alternative", "statistic", "df", "glrt_p", "f_ratio", "df_num",
        "df_den", "p_value", "significant",
    ]  # fmt: skip
    text = str(result)
    assert "Verdict: simple" in text
    assert "F-test with Satterthwaite degrees of freedom; glrt_p: chi-squared. Level 5 %" in text
    assert "<table" in result._repr_html_()


# ---------------------------------------------------------------------- scores relative to the benchmark


def slopes_of(runs: lt.Runs) -> np.ndarray:
    """Least-squares slopes over the budget, (benchmarks, algorithms)."""
    table = runs.to_frame()
    x = table["budget"] - table["budget"].mean()
    cells = (table[runs.score] * x).groupby([table["task"], table["algorithm"]]).sum().unstack().to_numpy()
    return cells / (x**2).sum() * cells.size


@pytest.mark.parametrize("how", ["rank", "zscore"])
@pytest.mark.parametrize("algorithms", [2, 4])
def test_scores_relative_to_the_benchmark_are_compared_within_benchmarks(how, algorithms):
    """Closed form: two-way analysis of slopes, where a variance of benchmarks of zero would halve an F of two."""
    table = make_table(algorithms=algorithms, benchmarks=9, seed=4, slopes=np.linspace(0, 0.3, algorithms))
    runs = runs_of(table).normalize(how)
    result = fidelity(runs)
    slopes = slopes_of(runs)
    m, k = slopes.shape
    between = slopes.mean(axis=0)
    error = np.square(slopes - slopes.mean(axis=1, keepdims=True) - between + slopes.mean()).sum() / ((m - 1) * (k - 1))
    got = result["fidelity", "interaction"]
    assert got.f_ratio == approx(m * np.square(between - slopes.mean()).sum() / (k - 1) / error, rel=1e-5)
    assert (got.df_num, got.df_den) == approx((k - 1, (m - 1) * (k - 1)), rel=1e-4)
    assert result["simple", "interaction"].p_value == got.p_value
    assert result.slopes["estimate"].to_numpy() == approx(between, abs=1e-8)
    assert result.slopes["se"].to_numpy() == approx(np.sqrt(error * (1 - 1 / k) / m), rel=1e-5)
    assert "only the share of each algorithm" in result.notes[-1]


@pytest.mark.parametrize("how", ["rank", "zscore"])
def test_a_run_that_is_missing_does_not_bring_the_doubled_f_back(how):
    """Whether the score was made relative before the run was lost or after."""
    table = make_table(algorithms=2, benchmarks=9, seed=4, slopes=[0.0, 0.3])
    complete = fidelity(runs_of(table).normalize(how))["fidelity", "interaction"]
    relative = runs_of(table).normalize(how).to_frame()
    after = lt.Runs(
        relative.drop(index=relative.index[3]),
        score=f"loss_{how}",
        direction="minimize",
        algorithm="algorithm",
        benchmark="task",
        seed="seed",
        budget="budget",
    )
    for runs in (after, runs_of(table.drop(index=3)).normalize(how)):
        got = fidelity(runs)["fidelity", "interaction"]
        assert got.df_den == approx(8, abs=0.5)
        assert got.f_ratio == approx(complete.f_ratio, rel=0.2)


def test_ranks_have_no_effect_of_the_budget_in_common_to_test():
    result = fidelity(runs_of(make_table(slopes=[0.0, 0.5, 0.5])).normalize("rank"))
    common = result["simple", "fidelity"]
    assert (common.statistic, common.df) == (0.0, 0)
    assert np.isnan(common.p_value)
    assert pd.isna(result.to_frame()["significant"].iloc[2])
    assert "Simple model" in result.paper_lines()[0]
    assert " == " in result.paper_lines()[0]
    assert result.verdict == "interaction"
    assert result.formulas["simple"] == result.formulas["fidelity"]


@pytest.mark.parametrize("form", ["spline", "categorical"])
def test_curves_of_ranks_are_compared_within_benchmarks(form):
    runs = runs_of(make_table(budgets=6, benchmarks=12, slopes=[0.0, 0.0, 1.0])).normalize("rank")
    result = fidelity(runs, form=form)
    assert result.verdict == "interaction"
    assert "(1 | task:budget)" not in result.formulas["simple"]
    means = runs.to_frame().groupby(["algorithm", "budget"])["loss_rank"].mean().to_numpy()
    assert result.curves["mean"].to_numpy() == approx(means, abs=0.1 if form == "spline" else 1e-6)


def test_levels_alone_may_be_relative_to_the_benchmark():
    """Scores centred per benchmark over all budgets: the budget still moves their mean."""
    table = make_table(slopes=-0.5, benchmarks=8)
    table["loss"] -= table.groupby("task")["loss"].transform("mean")
    result = fidelity(runs_of(table))
    assert result.verdict == "simple"
    assert "+ task + " in result.formulas["simple"].replace("C(task)", "task")
    assert "(0 + budget | task)" in result.formulas["simple"]
    assert "so the levels of benchmarks are fixed effects" in result.notes[-1]


def test_one_seed_of_ranks_has_no_effect_of_seeds():
    result = fidelity(runs_of(make_table(seeds=1)).normalize("rank"))
    assert "task:seed)" not in result.formulas["simple"]


def test_raw_scores_are_not_taken_for_relative_ones():
    assert "task +" not in fidelity(runs_of(make_table(algorithms=2))).formulas["simple"].replace("C(task)", "task")
