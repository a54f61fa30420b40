"""What a report says about its sample, the terms that a model lacks, zero variances, budgets and metafeatures."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pytest import approx

import lmemtest as lt
from lmemtest.bench.benchmark.observed_advantages import cautious_check
from lmemtest.bench.modelling.adequacy import budget_use, missing_terms, of_advantages, sample_of
from lmemtest.core.words import percent
from lmemtest.report import first_screen, wording
from lmemtest.report.analysis import Analysis, analyze
from lmemtest.report.document import plain

Make = Callable[..., Any]


def words(analysis: Analysis) -> str:
    return " ".join(analysis.to_text().split())


@pytest.fixture(scope="module")
def curves(table: Make) -> pd.DataFrame:
    """Runs at three budgets, each score with an error of its own."""
    rng = np.random.default_rng(2)
    return pd.concat(
        [table().assign(budget=b, loss=lambda d, b=b: d["loss"] - b + rng.normal(0, 0.2, len(d))) for b in (1, 2, 3)],
        ignore_index=True,
    )


@pytest.fixture(scope="module")
def instances(table: Make) -> pd.DataFrame:
    """Two instances of each benchmark, on which the best algorithm is another one."""
    good, bad = table(spread=0.05, seeds=2), table(("C", "B", "A"), spread=0.05, seeds=2)
    return pd.concat([good.assign(prior="good"), bad.assign(prior="bad")], ignore_index=True)


# ------------------------------------------------------------------------------------------- terms that are lacking


def test_a_model_without_runs_and_interactions_holds_no_error_rate(curves: pd.DataFrame, as_runs: Make) -> None:
    analysis = analyze(as_runs(curves, budget="budget"), formula="loss ~ tool + (1 | task)")
    lacks = (
        "the model lacks (1 | task:tool) and (1 | task:tool:seed), so its p-values count correlated rows as "
        "independent and are too small: the chance of false differences is not controlled at 5 %."
    )
    assert lacks in analysis.headline()
    assert "the chance of any false difference" not in words(analysis)
    assert words(analysis).count(lacks[1:]) == 3  # headline, model, limitations


def test_a_finer_term_that_is_lacking_takes_the_guarantee_away(curves: pd.DataFrame, as_runs: Make) -> None:
    analysis = analyze(as_runs(curves, budget="budget"), formula="loss ~ tool + (1 | task) + (1 | task:tool)")
    assert (
        "the model lacks (1 | task:tool:seed), so it counts correlated rows as independent: its p-values can be too "
        "small, and the nominal 5 % error rate is not guaranteed."
    ) in analysis.headline()
    assert analysis.sample.varies


@pytest.mark.parametrize(
    ("formula", "missing"),
    [
        ("loss ~ tool + (1 | task) + (1 | task:tool) + (1 | task:seed)", ()),
        ("loss ~ tool + (1 | task/tool)", ()),
        ("loss ~ tool + (1 + tool | task)", ()),
        ("loss ~ tool * task + (1 | task:seed)", ()),
        ("loss ~ tool + (1 | cell)", ()),
        ("loss ~ tool + task + (1 | seed)", ("(1 | task:tool)",)),
        ("loss ~ tool + (1 + seed | task)", ("(1 | task:tool)",)),
    ],
)
def test_counterparts_of_a_term_count(formula: str, missing: tuple[str, ...], table: Make, as_runs: Make) -> None:
    frame = table().assign(cell=lambda d: d["task"] + d["tool"])
    runs = as_runs(frame)
    fit = lt.fit_lmm(formula, runs)
    found = missing_terms(fit, runs, lt.recommend(runs).spec.bars)
    assert tuple(map(str, found)) == missing
    assert found[:1] == tuple(of_advantages(runs, lt.recommend(runs).spec.bars)[: len(missing)])


def test_the_recommended_model_lacks_nothing(three: Analysis) -> None:
    assert three.missing == ()
    assert "Terms that" not in three.to_text()
    assert "the chance of any false difference among all pairs is nominally 5 %" in three.headline()


def test_the_level_carries_its_conditions(three: Analysis) -> None:
    tukey = analyze(three.runs, adjust="tukey", vcov="model")
    assert (
        "among all pairs is controlled at 5 %, if all algorithms vary to the same degree between benchmarks"
        in tukey.headline()
    )
    assert "; all algorithms were assumed to vary to the same degree between benchmarks. Differences" in words(tukey)
    text = words(three)
    assert "if all algorithms vary alike" not in text
    assert "; levels of task were assumed independent. Differences" in text
    assert "The level of 5 % is nominal: in simulations from 6 benchmarks on" in text


def test_capitals_of_names_survive_at_the_start_of_a_sentence(table: Make, as_runs: Make) -> None:
    runs = as_runs(table().rename(columns={"task": "Task"}), benchmark="Task")
    assert "The model lacks (1 | Task:tool), so" in words(analyze(runs, formula="loss ~ tool + (1 | Task)"))


# ---------------------------------------------------------------------------------------------------- the sample


@pytest.mark.parametrize(
    ("terms", "noun", "size", "varies"),
    [
        ("(1 | task) + (1 | task:tool) + (1 | task:prior) + (1 | task:prior:tool)", "benchmark", 8, True),
        ("(1 + tool | task)", "benchmark", 8, True),
        ("(1 | task:prior) + (1 | task:prior:tool)", "instance", 16, True),
        ("(1 | task:prior)", "benchmark", 8, False),
        ("(1 | prior:tool)", "benchmark", 8, False),
    ],
)
def test_the_sample_follows_from_the_fitted_terms(terms, noun, size, varies, instances, as_runs):
    runs = as_runs(instances, metafeatures=("prior",))
    sample = sample_of(lt.fit_lmm(f"loss ~ tool + {terms}", runs), runs)
    assert (sample.noun, sample.size, sample.varies) == (noun, size, varies)


def test_the_residual_of_single_rows_is_the_variation_of_the_instances(instances: pd.DataFrame, as_runs: Make) -> None:
    runs = as_runs(instances[instances["seed"] == 0].drop(columns="seed"), seed=None, metafeatures=("prior",))
    assert sample_of(lt.fit_lmm("loss ~ tool + (1 | task:prior)", runs), runs).noun == "instance"
    both = sample_of(lt.fit_lmm("loss ~ tool + (1 | task:prior) + (1 | task:tool)", runs), runs)
    assert (both.noun, both.varies) == ("benchmark", True)
    single = runs.filter(prior="good")
    alone = sample_of(lt.fit_lmm("loss ~ tool + (1 | task)", single), single)
    assert (alone.noun, alone.size, alone.varies, alone.zero) == ("benchmark", 8, True, False)
    assert np.isnan(alone.variance)
    assert "it says nothing about new ones" not in analyze(single).headline()


def test_instances_as_the_sample_come_with_a_caution(instances: pd.DataFrame, as_runs: Make) -> None:
    formula = "loss ~ tool + (1 | task:prior) + (1 | task:prior:tool) + (1 | task:prior:seed)"
    analysis = analyze(as_runs(instances, metafeatures=("prior",)), formula=formula)
    assert "the average over instances like the 16 studied here" in analysis.headline()
    assert "its p-values count instances of one benchmark as independent" in analysis.headline()
    assert "the effective sample is then closer to 8 than to 16" in words(analysis)


def test_benchmarks_as_the_sample_keep_instances_apart(instances: pd.DataFrame, as_runs: Make) -> None:
    formula = (
        "loss ~ tool + (1 | task) + (1 | task:tool) + (1 | task:prior) + (1 | task:prior:tool) + (1 | task:prior:seed)"
    )
    analysis = analyze(as_runs(instances, metafeatures=("prior",)), formula=formula)
    assert "the average over benchmarks like the 8 studied here" in analysis.headline()
    assert "do not add to the size of the sample, which is 8 benchmarks." in words(analysis)
    meanings = analysis.components["meaning"].tolist()
    assert meanings[:4] == [
        "difficulty of the benchmarks (shared by all algorithms)",
        "advantages of algorithms that change from benchmark to benchmark",
        "difficulty of the instances of a benchmark (shared by all algorithms)",
        "advantages of algorithms that change from instance to instance of a benchmark",
    ]


def test_a_winner_that_depends_on_a_metafeature_is_in_the_headline(instances, table, as_runs):
    reversed_ = analyze(as_runs(instances, metafeatures=("prior",)))
    assert reversed_.interactions["prior"].result in reversed_.headline()
    assert re.search(
        r"The comparison depends on prior \(interaction with the algorithm: F\(2, [0-9.]+\) = [0-9.]+, p < 0.001\): "
        r"the best observed mean belongs most often to C with prior = bad and A with prior = good\.",
        reversed_.headline(),
    )
    same = pd.concat([table().assign(prior=p, loss=lambda d, p=p: d["loss"] + len(p)) for p in ("good", "bad")])
    same["loss"] += np.random.default_rng(0).normal(0, 0.01, len(same))
    assert "depends on prior" not in analyze(as_runs(same, metafeatures=("prior",))).headline()


# ------------------------------------------------------------------------------------------- variances that are zero


@pytest.fixture(scope="module")
def zero(table: Make, as_runs: Make) -> Analysis:
    """Four benchmarks, on which advantages differ less than chance makes them: the same twice."""
    frame = table(("A", "B", "C"), ("t0", "t1", "t2", "t3"), seeds=5)
    rng = np.random.default_rng(3)
    frame["loss"] = frame["tool"].map({"A": 0.0, "B": 0.0, "C": 2.0}) + rng.normal(size=len(frame))
    cell = frame.groupby(["task", "tool"])["loss"].transform("mean")
    frame["loss"] += 0.7 * (frame.groupby("tool")["loss"].transform("mean") - cell)
    return analyze(as_runs(frame))


def test_few_benchmarks_without_variation_are_a_reservation(zero: Analysis) -> None:
    assert zero.sample.zero
    assert zero.sample.variance == approx(0.0, abs=1e-8)
    assert (
        "Few benchmarks: the variance of advantages between the 4 benchmarks is estimated as zero, so the "
        "test rests on the rows rather than on the number of benchmarks and tends to be too optimistic; a cautious "
        "check over benchmark means confirms that "
    ) in zero.headline()
    assert "the chance of any false difference among all pairs is nominally 5 %" in zero.headline()
    assert "costs nothing" not in words(zero)
    assert "too small to be distinguished from zero in these data; this does not show that it is zero" in words(zero)
    assert "A cautious check over benchmark means" in words(zero)


@pytest.mark.parametrize(
    ("gap", "spread", "verdict"),
    [
        (0.9, 0.9, "does not confirm that A is better than B."),
        (0.3, 0.0, "finds A better than B, which the model does not: claim no difference."),
        (0.3, 0.9, "finds no algorithm worse than A either."),
    ],
)
def test_the_cautious_check_has_the_last_word(gap, spread, verdict, table, as_runs):
    frame = table(("A", "B"), ("t0", "t1", "t2", "t3"), seeds=6)
    wave = frame["task"].map({"t0": -1.0, "t1": 1.0, "t2": -1.0, "t3": 1.0})
    frame["loss"] = 1e-3 * wave + np.where(frame["seed"] % 2, 1.2, -1.2)
    frame["loss"] *= np.where(frame["tool"] == "A", 1.0, -1.0)  # seeds go opposite ways: large residuals
    frame.loc[frame["tool"] == "B", "loss"] += gap + 0.6 * spread * wave
    analysis = analyze(as_runs(frame), adjust="tukey", vcov="model")  # by default the df are those of the benchmarks
    assert analysis.sample.zero
    assert f"a cautious check over benchmark means {verdict}" in analysis.headline()
    lost = "does not confirm" in verdict
    assert wording.unconfirmed(analysis) == ["B"] * lost
    first = " ".join(plain(text) for text in first_screen.verdict(analysis))
    assert ("A cautious check does not confirm that A is better than B: claim no difference there." in first) == lost


def test_many_benchmarks_or_some_variation_need_no_cautious_check(three: Analysis, table: Make, as_runs: Make) -> None:
    assert not three.sample.zero
    frame = table(("A", "B"), [f"t{i}" for i in range(12)])
    frame["loss"] = np.random.default_rng(1).normal(size=len(frame))
    cell = frame.groupby(["task", "tool"])["loss"].transform("mean")
    frame["loss"] += 0.7 * (frame.groupby("tool")["loss"].transform("mean") - cell)
    many = analyze(as_runs(frame))
    assert many.sample.zero
    for analysis in (three, many):
        assert wording.cautious(analysis) is None
        assert "cautious" not in analysis.to_text()


def test_the_cautious_check_is_the_paired_t_test_over_benchmark_means(zero: Analysis) -> None:
    from scipy.stats import ttest_rel

    assert zero.effects is not None
    means = zero.runs.to_frame().pivot_table(index="task", columns="tool", values="loss")
    check = cautious_check(zero.effects, "A").to_frame().set_index("algorithm")
    raw = [ttest_rel(means["A"], means[name]) for name in ("B", "C")]
    assert check["t_ratio"].to_numpy() == approx([test.statistic for test in raw], rel=1e-9)
    assert check["df"].tolist() == [3, 3]
    low, high = sorted(test.pvalue for test in raw)
    assert sorted(check["p_value"]) == approx(sorted([2 * low, max(2 * low, high)]), rel=1e-9)


def test_the_cautious_check_has_one_number_per_benchmark(instances: pd.DataFrame, as_runs: Make) -> None:
    runs = as_runs(instances, metafeatures=("prior",))
    effects = lt.analyze(runs, formula="loss ~ tool + (1 | task) + (1 | task:tool)").effects
    means = instances.pivot_table(index="task", columns="tool", values="loss")
    row = cautious_check(effects, "A").to_frame().iloc[0]
    gaps = means["A"] - means["B"]
    assert (row["n_benchmarks"], row["df"]) == (8, 7)
    assert (row["difference"], row["se"]) == (approx(gaps.mean()), approx(gaps.std() / np.sqrt(8)))


def test_the_cautious_check_survives_gaps(table: Make, as_runs: Make) -> None:
    frame = table(("A", "B", "C"), ("x", "y", "z"))
    frame = frame[(frame["tool"] != "C") | (frame["task"] == "x")]
    frame = frame[(frame["tool"] != "A") | (frame["task"] != "z")]
    effects = analyze(as_runs(frame), formula="loss ~ tool + (1 | task)").effects
    check = cautious_check(effects, "A").to_frame().set_index("algorithm")
    assert check["n_benchmarks"].to_dict() == {"B": 2, "C": 1}
    assert check["p_value"].notna().to_dict() == {"B": True, "C": False}


def test_the_rates_that_the_diagnostics_quote_are_those_of_the_design() -> None:
    from scipy.stats import t

    rng = np.random.default_rng(1)
    cells = rng.normal(0.0, np.sqrt(0.3), (40_000, 4, 2))
    scores = cells[..., None] + rng.normal(size=(40_000, 4, 2, 5))
    means = scores.mean(axis=-1)
    gaps = means[..., 0] - means[..., 1]
    between = 5 * gaps.var(axis=1, ddof=1) / 2
    within = ((scores - means[..., None]) ** 2).sum(axis=(1, 2, 3)) / 32
    zero = between < within
    error = np.where(zero, (3 * between + 32 * within) / 35, between)
    found = np.abs(gaps.mean(axis=1)) / np.sqrt(error / 10) > t.ppf(0.975, np.where(zero, 35, 3))
    assert found[zero].mean() == approx(0.20, abs=0.015)
    assert found.mean() == approx(0.055, abs=0.006)


# ------------------------------------------------------------------------------------------------------- budgets


@pytest.fixture(scope="module")
def continuous(table: Make) -> Make:
    """`continuous(start)` has runs at random budgets, of which those of C begin at `start`."""

    def make(start: float) -> pd.DataFrame:
        rng = np.random.default_rng(4)
        frame = pd.concat([table() for _ in range(3)], ignore_index=True)
        frame["budget"] = rng.uniform(1, 50, len(frame)) + np.where(frame["tool"] == "C", start, 0.0)
        frame["loss"] += rng.normal(0, 0.2, len(frame))
        return frame

    return make


def test_no_algorithm_is_best_where_budgets_differ_and_the_model_is_blind(continuous: Make, as_runs: Make) -> None:
    text = analyze(as_runs(continuous(30.0), budget="budget")).headline()
    assert text.startswith(
        "The means cannot be compared as they stand: A has the lowest mean loss, but the algorithms were scored at "
        "different budgets (A "
    )
    assert " is the best" not in text
    assert "is better than" not in text


def test_a_budget_in_the_model_lifts_the_caution(continuous: Make, as_runs: Make) -> None:
    formula = "loss ~ tool + budget + (1 | task) + (1 | task:tool) + (1 | task:tool:seed)"
    analysis = analyze(as_runs(continuous(30.0), budget="budget"), formula=formula)
    assert analysis.headline().startswith("A is the best of the 3 algorithms")
    assert "The model adjusts for 288 budgets by a curve" in words(analysis)
    assert "averaged with equal weight" not in words(analysis)


def test_random_budgets_from_one_range_are_a_reservation_only(continuous: Make, as_runs: Make) -> None:
    analysis = analyze(as_runs(continuous(0.0), budget="budget"))
    assert analysis.headline().startswith("A is the best of the 3 algorithms")
    assert "Different budgets: runs were scored at different budgets (288 distinct values)" in analysis.headline()
    assert "Scatter: standard deviation of the scores within algorithm. It includes how scores" in words(analysis)


def test_budgets_on_a_grid_are_neither(curves: pd.DataFrame, as_runs: Make) -> None:
    analysis = analyze(as_runs(curves, budget="budget"))
    assert "Different budgets" not in analysis.headline()
    assert "Each run counts once, with its mean over 3 values of budget." in words(analysis)
    assert "standard deviation of the scores of the runs within algorithm." in words(analysis)
    own = analyze(as_runs(curves, budget="budget"), formula="loss ~ tool + (1 | task/tool)")
    assert "Scores at 3 budgets are averaged with equal weight for each row" in words(own)
    assert "standard deviation of the scores within algorithm and budget." in words(own)


def test_an_effect_of_the_budget_gives_each_budget_the_same_weight(curves: pd.DataFrame, as_runs: Make) -> None:
    frame = curves[~((curves["tool"] == "C") & (curves["budget"] == 3))]
    analysis = analyze(as_runs(frame, budget="budget"), curves="model")
    assert "C(budget)" in analysis.formula
    assert "averaged with equal weight for each budget, as each has its own mean in the model" in words(analysis)
    assert "equal weight for each row" not in words(analysis)
    assert analysis.headline().startswith("32 scores at some budgets are missing, of C. If runs stopped early, ")
    assert " A is the best of the 3 algorithms" in analysis.headline()
    blind = analyze(as_runs(frame, budget="budget"), formula="loss ~ tool + (1 | task) + (1 | task:tool)")
    assert "(A 1 to 3, B 1 to 3 and C 1 to 2) and the model has no term for the budget" in blind.headline()


def test_runs_without_budgets_have_one(three: Analysis) -> None:
    use = budget_use(three.fit, three.runs)
    assert (use.n, use.role, use.shared, use.differ, len(use.ranges)) == (1, "none", True, False, 0)
    assert "Budgets." not in three.to_text()


# -------------------------------------------------------------------------------------------- what is estimable


def test_differences_are_compared_where_the_means_are_not_estimable(table: Make, as_runs: Make) -> None:
    frame = table().assign(kind=lambda d: np.where(d["seed"] % 2 == 0, "even", "odd"))
    frame = frame[~((frame["task"] == "task0") & (frame["kind"] == "odd"))]
    analysis = analyze(as_runs(frame, direction="maximize"), formula="loss ~ tool + task * kind + (1 | task:tool)")
    assert np.isnan(analysis.decisions.means).all()
    assert analysis.headline().startswith("C is the best of the 3 algorithms: its mean loss is the highest")
    assert "over the runner-up, B, is" in analysis.headline()
    shown = analysis.to_frame()
    assert shown["algorithm"].tolist() == ["C", "B", "A"]
    assert shown["worse_than_best"].tolist() == [False, True, True]
    assert "cannot be compared" not in analysis.headline()


def test_algorithms_that_cannot_be_compared_are_named(table: Make, as_runs: Make) -> None:
    frame = table().assign(kind=lambda d: np.where(d["seed"] % 2 == 0, "even", "odd"))
    frame = frame[~((frame["tool"] == "B") & (frame["kind"] == "odd"))]
    text = analyze(as_runs(frame), formula="loss ~ tool * kind + (1 | task) + (1 | task:tool)").headline()
    assert " A is better than C: " in text
    assert "The data do not identify how B compares with these." in text


# --------------------------------------------------------------------------------------- two algorithms, one start


@pytest.fixture(scope="module")
def two(table: Make, as_runs: Make) -> Analysis:
    return analyze(as_runs(table(("A", "B"))))


def test_mirror_images_count_once(two: Analysis, three: Analysis) -> None:
    assert two.effects is not None
    assert three.effects is not None
    frame = two.effects.to_frame()
    outside = (frame["ci_low"] > 0) | (frame["ci_high"] < 0)
    assert (len(frame), two.effects.intervals, two.effects.clear) == (16, 8, outside.sum() // 2)
    assert "of 8 intervals at 95 % less than 1 would exclude zero by chance alone" in words(two)
    assert three.effects.intervals == 24
    assert "of 24 intervals at 95 % about 1 would exclude zero" in words(three)


def test_one_difference_is_not_a_family(two: Analysis) -> None:
    text = words(two)
    methods = text[text.index("Ready for a paper") : text.index("What the claim covers -")]
    assert (
        "Their difference was tested by a t-test, with the larger of the model's standard error and the one from the "
        "CR2 variance of the differences over the 8 levels of task (Pustejovsky & Tipton 2018), with Satterthwaite "
        "degrees of freedom (Kuznetsova et al. 2017), and is called significant if its p-value is below 0.05."
    ) in methods
    for word in ("pairwise", "adjusted", "cliques", "Piepho", "Tukey"):
        assert word not in methods
    assert "The difference is significant at 5 % (Satterthwaite degrees of freedom)." in text


def test_unadjusted_p_values_are_not_called_adjusted(three: Analysis) -> None:
    text = words(analyze(three.runs, adjust="none"))
    assert "Differences with a p-value below 0.05" in text
    assert "Differences with an adjusted p-value below 0.05" in words(three)


def test_unadjusted_differences_have_variances_of_their_own_and_are_not_called_moderated(three: Analysis) -> None:
    own = analyze(three.runs, adjust="none")
    assert (own.pairs.errors, three.pairs.errors) == ("own", "moderated")
    assert "shrunk by empirical Bayes" in words(three)
    text = words(own)
    assert "shrunk by empirical Bayes" not in text
    assert "each with the CR2 variance of its difference over the 8 levels of task" in text
    assert "Every difference is judged by its own scatter over the benchmarks alone" in text


def test_one_start_is_not_an_agreement(three: Analysis) -> None:
    one = dataclasses.replace(three, fit=lt.fit_lmm(three.formula, three.runs, restarts=0))
    assert one.fit.optim.restarts == 0 < three.fit.optim.restarts
    assert "It was found from one starting point, without restarts; " in words(one)
    assert "starts agree" not in words(one)
    starts = three.fit.optim.restarts + 1
    assert f"{starts} of {starts} starts agree" in words(three)
    closed = dataclasses.replace(three, fit=lt.fit_lmm("loss ~ tool", three.runs))
    assert "Certificate: solved in closed form; 1 evaluation" in words(closed)


def test_the_share_of_the_largest_deviations_is_that_of_their_squares(table: Make, as_runs: Make) -> None:
    frame = table()
    wild = frame["task"] == "task0"
    frame.loc[wild, "loss"] = 5 + 40 * (frame.loc[wild, "loss"] - 5)
    analysis = analyze(as_runs(frame))
    assert analysis.effects is not None
    table_ = analysis.effects.to_frame()
    from_mean = table_["effect"] - table_.groupby("algorithm")["effect"].transform("mean")
    squares = (from_mean**2).groupby(table_["benchmark"]).sum()
    share = percent(squares.max() / squares.sum())
    text = f"the one of 8 benchmarks with the largest deviations holds {share} of the sum of squared deviations"
    assert f"{text}, so few benchmarks decide the average." in analysis.headline()
    assert "dominated" not in words(analysis)


def test_intervals_of_ranks_are_not_said_to_hold_the_difficulty_of_benchmarks(table: Make, as_runs: Make) -> None:
    runs = as_runs(table())
    assert "most of its width comes from the difficulty of the benchmarks" in words(analyze(runs))
    assert "An interval shows where one mean may lie. Whether two means differ" in words(
        analyze(runs.normalize("rank"))
    )
