"""Does the budget matter, and alike for all algorithms: verdicts, tests and messages."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pytest
from pytest import approx
from scipy import stats
from study import as_runs, make_table

import lmemtest as lt
from lmemtest.bench.budget.budget_effect import budget_effect
from lmemtest.bench.budget.budget_model import FORMS
from lmemtest.core.words import format_number, format_p
from lmemtest.errors import ArgumentError, DataError, UnknownColumnError


def table_of(
    *, benchmarks=6, algorithms=3, seeds=4, budgets=4, slopes=0.0, spread=0.3, seed=3, bend=0.0, run_spread=0.0
) -> pd.DataFrame:
    """Scores with a common difficulty, an advantage, and a slope per benchmark and per algorithm on it."""
    sizes = [f"a{i}" for i in range(algorithms)], range(benchmarks), seeds, np.arange(1.0, budgets + 1.0)
    options = {"rng": np.random.default_rng(seed), "benchmark": "task"}
    sds = {"benchmark": 1.0, "benchmark:algorithm": 0.3, "benchmark:algorithm:seed": 0.3}
    table = make_table(*sizes, sds=sds, noise=0.2, **options)
    sds = {"benchmark": spread, "benchmark:algorithm": spread, "benchmark:algorithm:seed": run_spread}
    slope = make_table(*sizes, sds=sds, noise=0.0, shift=np.broadcast_to(slopes, algorithms), **options)["loss"]
    k = table["budget"] - 1.0
    return table.assign(loss=table["loss"] + k * slope + bend * (k - (budgets - 1) / 2) ** 2)


def appendix_c(slopes: Sequence[float] | float) -> lt.Runs:
    """Figure 18: a budget that loosely moves the mean of every algorithm (of one of them) on several benchmarks."""
    return as_runs(table_of(slopes=slopes, spread=0.03, seed=1))


def in_steps(t):
    return t.assign(budget=pd.Categorical(t["budget"].map("step {:.0f}".format)))


@pytest.mark.parametrize(
    ("make", "options", "kind", "words"),
    [
        (lambda t: as_runs(t, budget=None), {}, ArgumentError, "runs has no budget column, so it has no effect"),
        (as_runs, {"budget": "nope"}, UnknownColumnError, "budget names the column"),
        (as_runs, {"budget": "seed"}, ArgumentError, "must not be the seed column, got 'seed'"),
        (as_runs, {"form": "cubic"}, ArgumentError, "form must be 'auto' or 'linear' or 'log' or"),
        (lambda t: as_runs(t.assign(budget=t["budget"] - 1)), {"form": "log"}, ArgumentError,
         "form='log' needs budgets above 0, the lowest budget is 0. Use form='linear'."),
        (lambda t: as_runs(t.query("budget == 2")), {}, DataError, "one budget only (budget = 2), so its effect"),
        (as_runs, {"form": "spline"}, ArgumentError, "needs at least 5 budgets, there are 4."),
        (lambda _: as_runs(table_of(budgets=51, seeds=1, benchmarks=2)), {"form": "categorical"}, ArgumentError,
         "there are 51 budgets, more than 50. Use form='spline'"),
        (lambda t: as_runs(in_steps(t)), {"form": "linear"}, ArgumentError,
         "form='linear' needs numbers as budgets, and 'budget' has none. Use form='categorical'."),
        (lambda _: as_runs(table_of(benchmarks=1, seeds=1)), {}, DataError,
         "so the curve of a run cannot be distinguished from an effect of budget."),
        (lambda _: as_runs(table_of(benchmarks=1), seed=None), {}, DataError,
         "Which rows belong to one run is not known"),
        (lambda t: as_runs(t.query("algorithm != 'a1' or budget == 1")), {}, DataError, "'a1' ran at one budget only"),
        (lambda t: as_runs(t.assign(budget=t["budget"] + 9 * (t["algorithm"] == "a1"))), {}, DataError,
         "The budgets of the algorithms do not overlap (a0: 1 to 4, a1: 10 to 13, a2: 1 to 4)"),
        (lambda t: as_runs(t.query("algorithm != 'a1' or budget < 4")), {"form": "categorical"}, DataError,
         "form='categorical' compares algorithms at every budget, but they share 3 of 4 budgets."),
    ],
)  # fmt: skip
def test_what_cannot_be_answered_is_refused_in_words(make, options, kind, words):
    with pytest.raises(kind, match=re.escape(words)):
        budget_effect(make(table_of()), **options)


def test_budgets_that_are_words_are_taken_as_categories():
    table = table_of(slopes=0.5, spread=0.05)
    words = ["low", "middle", "high", "full"]
    table["budget"] = pd.Categorical.from_codes(table["budget"].astype(int) - 1, words, ordered=True)
    result = budget_effect(as_runs(table), form="categorical")
    assert result.decision == "simple"
    assert list(result.curves["budget"].unique()) == words


# ---------------------------------------------------------------------- scores relative to the benchmark


def slopes_of(runs: lt.Runs) -> np.ndarray:
    """Least-squares slopes over the budget, (benchmarks, algorithms)."""
    table = runs.to_frame()
    x = table["budget"] - table["budget"].mean()
    cells = (table[runs.score] * x).groupby([table["task"], table["algorithm"]]).sum().unstack().to_numpy()
    return cells / (x**2).sum() * cells.size


# ---------------------------------------------------------------------- verdicts


def test_a_budget_that_moves_all_algorithms_alike_is_a_simple_effect():
    result = budget_effect(appendix_c(-0.3))
    assert result.decision == "simple"
    assert result.effect.p_value < 0.001
    assert result.interaction.p_value > 0.05
    (text, *_) = result.sentences()
    assert text.startswith("budget changes loss (mean: F(1, 5) = ")
    assert "direction: better on 6 of 6 benchmarks, too few to test" in text
    assert "no difference between algorithms in this effect was shown (mean: F(" in text
    assert "over the whole range their changes may differ by up to 0." in text
    frame = result.to_frame()
    assert " ".join(frame) == (
        "question f_ratio df_num df_den mean_p better worse agreement direction_p n uses_direction p_raw p_value "
        "significant"
    )
    assert frame["question"].tolist() == ["effect", "interaction", "lack of fit"]
    for words in ("Decision: simple", "direction_p: exact test of their direction", "p_value: Holm, level 5 %"):
        assert words in str(result)
    assert budget_effect(as_runs(table_of(seeds=1, slopes=-2.0))).decision == "simple"  # one seed is enough
    assert budget_effect(as_runs(table_of(seeds=1, slopes=-2.0), seed=None)).decision == "simple"
    centred = table_of(slopes=-0.5, benchmarks=8)  # levels alone may be relative to the benchmark
    centred["loss"] -= centred.groupby("task")["loss"].transform("mean")
    assert budget_effect(as_runs(centred)).decision == "simple"


def test_a_budget_that_moves_one_algorithm_is_an_interaction():
    result = budget_effect(appendix_c([0.0, 0.0, -0.3]))
    assert result.decision == "interaction"
    assert result.sentences()[0].startswith("budget changes loss differently for different algorithms (mean: F(")
    assert result.sentences()[1].startswith("The mean of the algorithms changes with budget (mean: F(1, 5) = ")
    last = result.sentences()[-1]
    assert last.startswith("a2: loss gets better by 0.")
    assert "for one more unit of budget (95 % interval of the change -0." in last


def test_what_was_not_shown_is_said_with_what_is_not_excluded():
    result = budget_effect(
        as_runs(table_of(seed=3).rename(columns={"budget": "epochs so far"})), budget="epochs so far"
    )
    assert (result.decision, result.budget) == ("none", "epochs so far")
    (text, *_) = result.sentences()
    assert text.startswith("No effect of epochs so far on loss was shown (mean: F(1, 5) = ")
    low, high = result.change_low, result.change_high
    assert low < 0 < high
    words = f"changes of the mean by {format_number(low)} to {format_number(high)} between epochs so far 1 and 4"
    assert f"{words} are not excluded (97.5 % interval)." in text
    assert "No difference between algorithms was shown either" in text
    assert "no effect" not in text
    two_large = table_of(benchmarks=12, spread=0.05)  # slopes around zero on ten benchmarks, large ones on two
    two_large["loss"] += np.where(two_large["task"] < 2, 5.0, 0.0) * two_large["budget"]
    result = budget_effect(as_runs(two_large))
    assert result.effect.mean_p > 0.05
    assert result.decision == "none"


def test_the_verdict_does_not_depend_on_the_scales_of_benchmarks():
    """A budget that helps on twelve of twelve benchmarks, three of which have a unit a thousand times as large."""
    table = table_of(benchmarks=12, slopes=[-0.5, -0.5, -1.5], spread=0.1)
    unit = np.where(table["task"] < 3, 1000.0 * (1 + table["task"]) ** 2, 1.0)
    plain, mixed = (budget_effect(as_runs(t)) for t in (table, table.assign(loss=table["loss"] * unit)))
    assert plain.decision == mixed.decision == "interaction"
    for question in ("effect", "interaction"):
        assert mixed.values[question].direction_p == plain.values[question].direction_p == approx(2.0**-11)
        assert mixed.values[question].agreement == approx(plain.values[question].agreement, rel=1e-9)
        assert mixed.values[question].mean_p > 0.05 > plain.values[question].mean_p
    assert (mixed.effect.better, mixed.effect.worse) == (12, 0)
    deciding = mixed.interaction.deciding
    assert deciding <= 3
    assert (
        f"Only the direction shows it: {deciding} of 12 benchmarks hold 90 % of the squared eff" in mixed.sentences()[0]
    )
    assert mixed.sentences()[0].endswith("On one scale the mean counts all of them: runs.normalize(by='benchmark').")
    on_one_scale = budget_effect(as_runs(table.assign(loss=table["loss"] * unit)).normalize(by="benchmark"))
    assert on_one_scale.interaction.mean_p < 0.05
    assert on_one_scale.interaction.deciding > 2 * mixed.interaction.deciding
    assert "Only the direction" not in plain.sentences()[0]


def test_all_forms_give_one_verdict_on_scores_of_unlike_scales():
    table = table_of(benchmarks=12, budgets=8, slopes=[-0.5, -0.5, -1.5], spread=0.1)
    table["loss"] *= np.where(table["task"] < 3, 1000.0, 1.0)
    assert {budget_effect(as_runs(table), form=form).decision for form in FORMS} == {"interaction"}


@pytest.mark.parametrize("benchmarks", [2, 5, 7])
def test_with_few_benchmarks_means_decide_alone_and_it_is_said(benchmarks):
    table = table_of(benchmarks=benchmarks, slopes=-1.0, spread=0.5)
    table["loss"] *= np.where(table["task"] == 0, 1000.0, 1.0)
    result = budget_effect(as_runs(table))
    test = result.effect
    assert not test.uses_direction
    assert test.p_raw == test.mean_p
    smallest = format_p(2.0 ** (1 - benchmarks))
    said = f"directions on them cannot have a p-value below {smallest}, so means decide alone; 8 benchmarks would do."
    assert any(said in note for note in result.notes)
    if result.decision == "none" and test.better == benchmarks:
        said = f"It gets better on all {benchmarks} benchmarks, which are too few to generalise from."
        assert said in result.sentences()[0]


def test_the_parts_of_the_level_are_bonferroni_and_holm():
    result = budget_effect(as_runs(table_of(benchmarks=12, slopes=[0.0, 0.1, 0.2], seed=5)))
    effect, different = result.effect, result.interaction
    for test in (effect, different):
        assert test.p_raw == approx(min(1.0, 2.0 * min(test.mean_p, test.direction_p)))
    first, second = sorted((effect, different), key=lambda test: test.p_raw)
    assert first.p_value == approx(min(1.0, 2.0 * first.p_raw))
    assert second.p_value == approx(max(first.p_value, second.p_raw))


# ---------------------------------------------------------------------- witnesses


@pytest.mark.parametrize("algorithms", [2, 3])
def test_f_ratios_and_changes_are_those_of_the_mixed_model(algorithms):
    """Random levels and slopes of benchmarks, of algorithms on them and of runs; balanced, no variance at zero."""
    from lmemtest.lmm.means.f_tests import f_test

    slopes = np.linspace(0.0, 0.4, algorithms)
    runs = as_runs(table_of(slopes=slopes, benchmarks=9, run_spread=0.2, seed=5, algorithms=algorithms))
    random = (
        "(1 + budget | task) + (1 + budget | task:algorithm) + (1 | task:seed) + (1 + budget | task:algorithm:seed)"
    )
    fit = lt.fit_lmm(f"loss ~ algorithm * budget + {random}", runs)
    names = list(fit.params.index)
    crossed = np.eye(len(names))[[":" in name for name in names]]
    want = f_test(fit, crossed, ddf="kenward-roger")
    mean = np.array([[1.0 if n == "budget" else 1.0 / algorithms if ":" in n else 0.0 for n in names]])
    common = f_test(fit, mean, ddf="kenward-roger")
    result = budget_effect(runs)
    assert result.interaction.f_ratio == approx(want.f_ratio, rel=1e-6)
    assert result.effect.f_ratio == approx(common.f_ratio, rel=1e-6)
    assert result.effect.mean_p == approx(common.p_value, rel=1e-5)
    if algorithms == 2:  # with more, the mixed model takes for granted what Box's degrees of freedom pay for
        assert result.interaction.mean_p == approx(want.p_value, rel=1e-5)
    own = np.array([fit.params["budget"], *(fit.params["budget"] + fit.params[[":" in name for name in names]])])
    assert result.slopes["estimate"].to_numpy() == approx(own, rel=1e-6, abs=1e-8)


def test_directions_of_two_algorithms_are_sign_tests():
    runs = as_runs(table_of(benchmarks=11, algorithms=2, slopes=[0.1, 0.4], seed=1))
    result, slopes = budget_effect(runs), slopes_of(runs)
    larger, worse = int((slopes[:, 0] > slopes[:, 1]).sum()), int((slopes.mean(axis=1) > 0).sum())
    assert result.interaction.direction_p == approx(stats.binomtest(larger, 11).pvalue)
    assert result.effect.direction_p == approx(stats.binomtest(worse, 11).pvalue)
    assert result.effect.worse == worse


def test_changes_have_the_intervals_of_the_benchmarks_slopes():
    table = table_of(benchmarks=9, slopes=0.2)
    result, slopes = budget_effect(as_runs(table)), slopes_of(as_runs(table))
    half = stats.t.ppf(0.975, 8) * slopes.std(axis=0, ddof=1) / 3
    assert result.slopes["estimate"].to_numpy() == approx(slopes.mean(axis=0), rel=1e-9)
    assert (result.slopes["ci_high"] - result.slopes["estimate"]).to_numpy() == approx(half, rel=1e-9)
    mean = 3 * slopes.mean(axis=1)
    assert result.change_level == 1.0 - 0.05 / 4  # two questions, two tests of each
    critical = stats.t.ppf(1.0 - 0.05 / 8, 8)
    assert result.change_high == approx(mean.mean() + critical * mean.std(ddof=1) / 3, rel=1e-9)
    means = budget_effect(as_runs(table), form="categorical")
    assert means.curves["mean"].to_numpy() == approx(means.observed["mean"].to_numpy(), rel=1e-9)
    cells = table.groupby(["algorithm", "budget", "task"])["loss"].mean().unstack().to_numpy()
    half = stats.t.ppf(0.975, 8) * cells.std(axis=1, ddof=1) / 3
    assert (means.curves["ci_high"] - means.curves["mean"]).to_numpy() == approx(half, rel=1e-9)


def test_missing_rows_leave_the_courses_within_runs():
    """Without its first budgets a bad run would look good at the others; within runs it does not."""
    table = table_of(slopes=-0.5, spread=0.0, benchmarks=4)
    table.loc[(table["seed"] == 1), "loss"] += 50.0
    part = table[~((table["seed"] == 1) & (table["budget"] > 2))]
    for form in ("linear", "categorical"):
        whole, less = budget_effect(as_runs(table), form=form), budget_effect(as_runs(part), form=form)
        assert less.slopes["estimate"].to_numpy() == approx(whole.slopes["estimate"].to_numpy(), abs=0.2)
        assert less.decision == whole.decision == "simple"


def test_algorithms_that_lack_a_benchmark_are_compared_where_they_ran():
    table = table_of(slopes=[0.0, 0.0, -1.0], spread=0.1, benchmarks=9)
    patchy = table.query("not (task == 0 and algorithm == 'a1') and not (task == 4 and algorithm == 'a2')")
    result = budget_effect(as_runs(patchy))
    assert result.decision == "interaction"
    assert result.interaction.n == 9
    curves = budget_effect(as_runs(patchy), form="categorical")
    assert curves.decision == "interaction"
    assert curves.interaction.n == 7
    assert any(note.startswith("2 of 9 benchmarks lack an algorithm, or budgets that form='c") for note in curves.notes)
    slopes = slopes_of(as_runs(table))
    slopes[0, 1] = slopes[4, 2] = np.nan
    assert result.slopes["estimate"].to_numpy() == approx(np.nanmean(slopes, axis=0), rel=1e-9)


def test_metafeatures_are_averaged_within_benchmarks():
    table = pd.concat([table_of(seed=1).assign(prior="good"), table_of(seed=2).assign(prior="bad")])
    result = budget_effect(as_runs(table, metafeatures=("prior",)))
    assert result.effect.n == 6
    parts = [slopes_of(as_runs(part)) for _, part in table.groupby("prior")]
    assert result.slopes["estimate"].to_numpy() == approx(np.mean(parts, axis=0).mean(axis=0), rel=1e-9)
    alone = budget_effect(as_runs(table.query("task == 0"), metafeatures=("prior",)))
    assert (alone.sample, alone.effect.n, alone.effect.df_den) == ("runs", 8, 6)


# ---------------------------------------------------------------------- forms


@pytest.mark.parametrize("budgets", [(1, 2, 4, 8, 16), (1, 2, 3, 4, 5), (0, 1, 10, 100, 1000), (5, 40, 45, 50, 55)])
def test_the_line_is_over_the_logarithm_where_budgets_span_a_factor_of_eight(budgets):
    table = table_of(budgets=5)
    table["budget"] = np.array(budgets, dtype=float)[table["budget"].astype(int) - 1]
    result = budget_effect(as_runs(table))
    log = min(budgets) > 0 and max(budgets) / min(budgets) >= 8
    assert result.form == ("log" if log else "linear")
    assert result.per == ("for twice the budget" if log else "for one more unit of budget")
    same = budget_effect(as_runs(table), form=result.form)
    pd.testing.assert_frame_equal(same.to_frame(), result.to_frame())


def test_a_line_over_the_logarithm_is_a_line_over_a_column_with_it():
    table = table_of(budgets=5, slopes=[0.0, 0.2, 0.4])
    table["budget"] = 2.0 ** table["budget"]
    result = budget_effect(as_runs(table))
    other = budget_effect(as_runs(table.assign(budget=np.log2(table["budget"]))), form="linear")
    pd.testing.assert_frame_equal(result.to_frame(), other.to_frame(), rtol=1e-9)
    assert result.slopes["estimate"].to_numpy() == approx(other.slopes["estimate"].to_numpy(), rel=1e-9)


@pytest.mark.parametrize("form", ["categorical", "spline"])
def test_a_bend_is_found_by_the_forms_that_can_bend(form):
    runs = as_runs(table_of(budgets=6, spread=0.02, bend=0.2, slopes=0.0))
    line = budget_effect(runs, form="linear")
    assert line.decision == "none"
    assert "But a straight line over budget does not describe the mean scores" in line.sentences()[0]
    assert line.sentences()[0].endswith("; form='categorical' looks for more than a trend.")
    result = budget_effect(runs, form=form)
    assert result.decision == "simple"
    assert result.per == "from budget 1 to 6"


def test_a_line_that_the_means_contradict_is_not_drawn_without_a_word():
    table = table_of(budgets=8, spread=0.05, benchmarks=9, slopes=0.0)
    floor = np.array([1.0, 0.6, 0.1])[table["algorithm"].str[1].astype(int)]
    table["loss"] += (
        floor + np.exp(2.0 - table["budget"]) * np.array([0.2, 0.5, 3.0])[table["algorithm"].str[1].astype(int)]
    )
    result, line = budget_effect(as_runs(table)), budget_effect(as_runs(table), form="linear")
    assert not result.fits
    assert result.lack_of_fit.p_value < 0.001
    assert (result.form, result.drawn, result.per) == ("log", "categorical", "from budget 1 to 8")
    assert result.curves["mean"].to_numpy() == approx(result.observed["mean"].to_numpy(), rel=1e-9)
    assert result.sentences()[-1].startswith(
        "A straight line over the logarithm of budget does not describe the mean scores (lack of fit, mean: F("
    )
    assert result.sentences()[-1].endswith(
        "so curves and changes are those of a mean for every budget; the decision is about the trend."
    )
    assert (line.form, line.drawn) == ("linear", "linear")
    assert line.sentences()[-1].endswith("form='categorical' looks for more than a trend.")


def test_an_order_that_the_line_turns_round_is_said():
    """Two algorithms that are alike but for the start: the line puts the late one ahead at the end."""
    table = table_of(budgets=8, spread=0.0, benchmarks=9, algorithms=2, slopes=0.0)
    table["loss"] += np.where(table["algorithm"] == "a1", 0.5 + 8.0 * (table["budget"] == 1), 0.0)
    result = budget_effect(as_runs(table), form="linear")
    said = "At budget 8 the fitted curves put a1 ahead of a0, and the observed means a0 ahead of a1."
    assert said in result.notes
    assert said not in budget_effect(as_runs(table)).notes


def test_lines_are_not_contradicted_by_lines():
    """Benchmarks with lines of their own and noise: the test of fit is uniform under it, and exact lines pass."""
    exact = table_of(budgets=5, seeds=1, benchmarks=9, slopes=0.3)
    exact["loss"] = exact["task"] * 1.0 + exact["budget"] * (exact["task"] + 1.0)
    exact["loss"] += np.where(exact["algorithm"] == "a1", 0.1, 0.0) * exact["budget"] * exact["task"]
    result = budget_effect(as_runs(exact), form="linear")
    assert result.lack_of_fit.p_raw == 1.0
    assert result.fits


def test_every_budget_of_its_own_is_compared_with_a_smooth_curve():
    """Wall-clock times: no run shares a budget with another."""
    rng = np.random.default_rng(1)
    table = table_of(budgets=12, benchmarks=9, slopes=0.0, seeds=2, spread=0.02)
    table["budget"] += rng.uniform(0, 0.9, size=len(table))
    straight = budget_effect(as_runs(table), form="linear")
    assert straight.fits
    table["loss"] += 3.0 * np.exp(-table["budget"])
    bent = budget_effect(as_runs(table), form="auto")
    assert (bent.form, bent.drawn) == ("log", "spline") if not bent.fits else ("log", "log")
    assert not budget_effect(as_runs(table), form="linear").fits
    assert len(bent.observed) == 0
    assert len(bent.curves) == 3 * 25


# ---------------------------------------------------------------------- samples and scores of other kinds


def test_one_benchmark_and_ranges_that_differ_are_noted():
    result = budget_effect(as_runs(table_of(benchmarks=1, seeds=8)))
    assert (result.sample, result.effect.n, result.effect.df_den) == ("runs", 8, 7)
    assert any(note.startswith("There is one benchmark") for note in result.notes)
    apart = budget_effect(as_runs(table_of(budgets=5).query("~(algorithm == 'a2' and budget > 3)")))
    words = "Algorithms have different ranges of budget (a0: 1 to 5, a1: 1 to 5, a2: 1 to 3)"
    assert any(note.startswith(words) for note in apart.notes)


def test_runs_without_common_seeds_are_independent():
    table = table_of(benchmarks=1, seeds=8, slopes=[0.0, 0.0, 2.0])
    table["seed"] += 100 * table["algorithm"].str[1].astype(int)
    result = budget_effect(as_runs(table))
    assert result.interaction.df_den == approx(21)
    assert result.decision == "interaction"
    with pytest.raises(DataError, match="Only 0 of 24 runs have a curve of every algorithm"):
        budget_effect(as_runs(table), form="categorical")


def test_two_algorithms_and_two_budgets_are_enough():
    result = budget_effect(as_runs(table_of(algorithms=2, budgets=2, slopes=[0, 2.0])), form="categorical")
    assert result.decision == "interaction"
    assert result.form == "linear"
    assert "With two budgets form='categorical' is the same as form='linear', which was fitted." in result.notes
    assert result.lack_of_fit is None


def test_effects_without_variation_have_no_verdict():
    table = table_of(seeds=2, benchmarks=4)
    table["loss"] = table["budget"] * 2.0
    with pytest.raises(DataError, match="The effect of budget is the same on all 4 benchmarks to the last digit"):
        budget_effect(as_runs(table))
    with pytest.raises(DataError, match="No score changes with budget: it is the same at every budget"):
        budget_effect(as_runs(table.assign(loss=table["task"] * 1.1)))
    same = table_of(algorithms=2, seeds=2)
    same["loss"] = same.groupby(["task", "seed", "budget"])["loss"].transform("first")
    copies = budget_effect(as_runs(same))
    assert copies.interaction.p_raw == 1.0
    assert copies.difference == 0.0


@pytest.mark.parametrize("how", ["rank", "zscore"])
@pytest.mark.parametrize("algorithms", [2, 4])
def test_scores_relative_to_the_benchmark_are_compared_within_benchmarks(how, algorithms):
    """Closed form: two-way analysis of slopes."""
    table = table_of(algorithms=algorithms, benchmarks=9, seed=5, slopes=np.linspace(0, 0.3, algorithms))
    runs = as_runs(table).normalize(how)
    result = budget_effect(runs)
    slopes = slopes_of(runs)
    m, k = slopes.shape
    between = slopes.mean(axis=0)
    error = np.square(slopes - slopes.mean(axis=1, keepdims=True) - between + slopes.mean()).sum() / ((m - 1) * (k - 1))
    got = result.interaction
    assert got.f_ratio == approx(m * np.square(between - slopes.mean()).sum() / (k - 1) / error, rel=1e-9)
    assert got.df_den == approx((m - 1) * got.df_num)
    assert got.df_num <= k - 1
    assert result.effect is None
    assert np.isnan(result.change)
    assert got.p_value == got.p_raw
    assert result.slopes["estimate"].to_numpy() == approx(between, abs=1e-8)
    assert any("only the share of each algorithm" in note for note in result.notes)


@pytest.mark.parametrize("how", ["rank", "zscore"])
def test_a_run_that_is_missing_does_not_make_ranks_raw_scores(how):
    """Whether the score was made relative before the run was lost or after."""
    table = table_of(algorithms=2, benchmarks=9, seed=4, slopes=[0.0, 0.3])
    complete = budget_effect(as_runs(table).normalize(how)).interaction
    relative = as_runs(table).normalize(how).to_frame()
    after = as_runs(relative.drop(index=relative.index[3]), score=f"loss_{how}")
    for runs in (after, as_runs(table.drop(index=3)).normalize(how)):
        result = budget_effect(runs)
        assert result.effect is None
        assert result.interaction.f_ratio == approx(complete.f_ratio, rel=0.2)


@pytest.mark.parametrize("form", ["spline", "categorical"])
def test_curves_of_ranks_are_compared_within_benchmarks(form):
    runs = as_runs(table_of(budgets=6, benchmarks=12, slopes=[0.0, 0.0, 1.0])).normalize("rank")
    result = budget_effect(runs, form=form)
    assert result.decision == "interaction"
    assert result.sentences()[0].startswith("budget changes loss_rank differently")
    means = runs.to_frame().groupby(["algorithm", "budget"])["loss_rank"].mean()
    curve = result.curves.set_index(["algorithm", "budget"])["mean"]
    shared = curve.index.intersection(means.index)
    assert curve[shared].to_numpy() == approx(means[shared].to_numpy(), abs=0.2 if form == "spline" else 1e-9)
