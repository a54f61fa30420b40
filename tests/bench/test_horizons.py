"""Comparisons at several horizons: the same numbers as single analyses, lme4 and closed forms; honest about changes."""

from __future__ import annotations

import itertools
import re
from functools import partial

import numpy as np
import pandas as pd
import pytest
from levels import first
from pytest import approx
from refusals import refusal, refuses
from scipy import stats
from study import as_runs, make_table

import lmemtest as lt
from lmemtest.bench.budget.horizons import best_sentence, share_level
from lmemtest.compat.significance_analysis import horizon_pairs
from lmemtest.errors import ArgumentError, DataError
from lmemtest.lmm.means.decisions import decisions_of


def horizons(runs, budgets=None, **options):
    return lt.anytime(runs).at(budgets, **options)


def table_of(
    *, benchmarks=8, algorithms=3, seeds=4, budgets=(1, 2, 4, 8), spread=0.5, drift=0.0, run=0.3, noise=0.2, rng=0
) -> pd.DataFrame:
    """Advantages per benchmark that are shared by budgets, runs that are shared by budgets, a drift of the last one."""
    sds = {"benchmark": 1.0, "benchmark:algorithm": spread, "benchmark:algorithm:budget": 0.5 * spread}
    sds["benchmark:algorithm:seed"] = run
    names = [f"a{i}" for i in range(algorithms)]
    table = make_table(names, range(benchmarks), seeds, budgets, sds=sds, noise=noise, rng=rng, benchmark="task")
    table["loss"] += drift * pd.factorize(table["budget"])[0] * (table["algorithm"] == names[-1])
    return table


runs_of = partial(as_runs, seed_shared=False)  # seeds only number the repetitions


def best_so_far(table: pd.DataFrame) -> pd.DataFrame:
    keys = ["task", "algorithm", "seed"]
    ordered = table.sort_values([*keys, "budget"])
    return ordered.assign(loss=ordered.groupby(keys)["loss"].cummin())


def paired_t(table: pd.DataFrame, left: str, right: str) -> stats._result_classes.TtestResult:
    means = table.groupby(["task", "algorithm"])["loss"].mean().unstack()
    return stats.ttest_rel(means[left], means[right])


# ---------------------------------------------------------------------- single horizons


def test_a_single_horizon_is_the_recommended_analysis_of_the_filtered_runs():
    runs = runs_of(table_of())
    found = horizons(runs, [2, 8], across="none")
    for budget in (2, 8):
        part = runs.filter(budget=budget)
        fit = lt.fit_lmm(lt.recommend(part).formula, part)
        want = fit.emmeans("algorithm").pairs()
        got = found.horizons[str(budget)]
        assert (got.formula, got.fit.llf) == (fit.formula, fit.llf)
        pd.testing.assert_frame_equal(got.pairs.to_frame(), want.to_frame(), check_exact=True)
        pd.testing.assert_frame_equal(got.pairs.estimates.to_frame(), fit.emmeans("algorithm").to_frame())
        assert got.decisions.letters == want.decisions().letters
    raw = horizons(runs, [1, 8], adjust="none", across="none").to_frame()
    np.testing.assert_allclose(raw["p_raw"], raw["p_value"], rtol=1e-12)


def test_metafeatures_are_conditions_at_every_horizon():
    runs = lt.datasets.load_hpo_runs().filter(algorithm=["HB", "RS"])
    found = horizons(runs, [4, (8, 32)])
    assert found.horizons["4"].formula == lt.recommend(runs.filter(budget=4)).formula
    assert "(0 + prior | benchmark:algorithm)" in found.horizons["8-32"].formula
    assert "(0 + prior | benchmark:algorithm)" in found.change_formula


# ---------------------------------------------------------------------- lme4


@pytest.fixture
def lme4(reference):
    stored = reference("horizons")
    rows = itertools.product(
        [f"b{i}" for i in range(1, 9)], ["BO", "HB", "RS"], [f"s{i}" for i in range(1, 5)], [1, 2, 4]
    )
    table = pd.DataFrame(list(rows), columns=["task", "algorithm", "seed", "budget"])
    return runs_of(table.assign(loss=np.ravel(stored["scores"]))), stored["cases"]


@pytest.mark.parametrize(
    ("case", "budgets", "effect"),
    [("single", [2], "averaged"), ("averaged", [(1, 4)], "averaged"), ("fixed", [(1, 4)], "fixed"),
     ("random", [(1, 4)], "random")],
)  # fmt: skip
def test_pairs_agree_with_lme4_and_emmeans(lme4, case, budgets, effect):
    runs, cases = lme4
    want = pd.DataFrame(cases[case]["pairs"])
    got = horizons(runs, budgets, windows=effect, adjust="tukey", vcov="model").to_frame()
    assert not cases[case]["is_singular"]
    assert got[["left", "right"]].to_numpy().tolist() == want[["left", "right"]].to_numpy().tolist()
    np.testing.assert_allclose(got["estimate"], want["estimate"], rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(got["se"], want["se"], rtol=2e-5)  # theta of two optimisers
    np.testing.assert_allclose(got["df"], want["df"], rtol=5e-4)
    np.testing.assert_allclose(got["p_raw"], want["p_value"], rtol=5e-4)
    np.testing.assert_allclose(got["p_value"], want["p_tukey"], rtol=1e-3)


def test_changes_and_the_papers_model_agree_with_lme4_and_emmeans(lme4):
    runs, cases = lme4
    want = pd.DataFrame(cases["change"]["pairs"])
    got = horizons(runs, [1, 4], adjust="tukey", vcov="model").changes
    np.testing.assert_allclose(got["change"], want["estimate"], rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(got["se"], want["se"], rtol=2e-5)
    np.testing.assert_allclose(got["df"], want["df"], rtol=5e-4)
    np.testing.assert_allclose(got["p_value"], want["p_tukey"], rtol=1e-3)
    want, got = pd.DataFrame(cases["paper"]["pairs"]), horizon_pairs(runs, [(1, 4)])
    np.testing.assert_allclose(got["paper_se"], want["se"], rtol=2e-5)
    np.testing.assert_allclose(got["paper_p_value"], want["p_tukey"], rtol=1e-3)
    assert (got["paper_se"] < got["se"]).all()


# ---------------------------------------------------------------------- closed forms


@pytest.mark.daily(4)
@pytest.mark.parametrize("effect", ["averaged", "fixed", "random"])
@pytest.mark.parametrize(
    ("sizes", "roles"),
    [({"run": 1.0}, {}), ({"seeds": 1}, {}), ({}, {"seed": None})],
    ids=["seeds", "one", "no column"],
)
def test_a_window_of_two_algorithms_is_the_paired_t_test_of_benchmark_means(effect, sizes, roles):
    table = table_of(algorithms=2, spread=1.0, **sizes)
    found = horizons(runs_of(table, **roles), [1, (2, 8)], windows=effect)
    row = found.to_frame().iloc[1]
    want = paired_t(table[table["budget"] >= 2], "a0", "a1")
    assert row["estimate"] / row["se"] == approx(want.statistic, rel=1e-5)
    assert row["df"] == approx(7, rel=1e-3)
    assert row["p_raw"] == approx(want.pvalue, rel=1e-3)
    assert found.changes["p_value"].notna().tolist() == [True]


def test_a_change_of_two_algorithms_is_the_paired_t_test_of_the_changes_of_benchmark_means():
    table = table_of(algorithms=2, spread=1.0, drift=0.2)
    row = horizons(runs_of(table), [1, 8]).changes.iloc[0]
    want = change_t(table, "loss", 1, 8)
    assert row["change"] / row["se"] == approx(want.statistic, rel=1e-5)
    assert row["p_value"] == approx(want.pvalue, rel=1e-3)
    assert row["change"] == approx(row["estimate_later"] - row["estimate_earlier"], rel=1e-9)


def test_two_windows_change_by_the_difference_of_their_means():
    found = horizons(runs_of(table_of()), [(1, 2), (4, 8)])
    changes = found.changes
    first, second = (found.horizons[window].pairs.to_frame()["estimate"] for window in ("1-2", "4-8"))
    np.testing.assert_allclose(changes["change"], second - first, rtol=1e-8, atol=1e-10)


# ---------------------------------------------------------------------- the error over horizons


def decisions_by_steps(p_values, alpha):
    """The procedure as it is told: test at alpha over the families left; drop a family with all pairs significant."""
    left = set(range(len(p_values)))
    level = {}
    while True:
        share = alpha / max(len(left), 1)
        done = {i for i in left if np.all(np.asarray(p_values[i]) < share)}
        for i in left:
            level[i] = share
        if not done:
            return [np.asarray(p) < level[i] for i, p in enumerate(p_values)]
        left -= done


def test_the_level_is_shared_as_told():
    rng = np.random.default_rng(2)
    for _ in range(500):
        sizes = rng.integers(1, 4, size=rng.integers(1, 5))
        p_values = [rng.uniform(size=size) ** 4 for size in sizes]
        alpha = float(rng.choice([0.01, 0.05, 0.2]))
        adjusted, levels = share_level(p_values, alpha, "holm")
        want = decisions_by_steps(p_values, alpha)
        for p, adj, level, decided in zip(p_values, adjusted, levels, want, strict=True):
            np.testing.assert_array_equal(adj < alpha, decided)
            np.testing.assert_array_equal(p < level, decided)
            assert (adj >= p).all()


def test_one_pair_per_horizon_is_holms_procedure():
    p = np.array([0.03, 0.01, 0.5, 0.012])
    adjusted, _ = share_level([[value] for value in p], 0.05, "holm")
    np.testing.assert_allclose(np.ravel(adjusted), [0.06, 0.04, 0.5, 0.04], rtol=1e-12)


def test_pairs_without_a_test_stop_nobody():
    adjusted, levels = share_level([[np.nan, 0.001], [np.nan], [0.04]], 0.05, "holm")
    assert np.isnan(adjusted[0][0])
    assert adjusted[0][1] == approx(0.002)
    assert (adjusted[2][0], levels[2]) == (approx(0.04), 0.05)


def test_table_and_diagrams_decide_alike_and_intervals_follow():
    found = horizons(runs_of(table_of(algorithms=4, drift=1.0, rng=5)), [1, 2, 8])
    frame = found.to_frame()
    assert 0 < frame["significant"].sum() < len(frame)
    np.testing.assert_array_equal(frame["significant"], frame["p_value"] < 0.05)
    np.testing.assert_array_equal(frame["significant"], (frame["ci_low"] > 0) | (frame["ci_high"] < 0))
    for horizon in found.horizons.values():
        part = frame[frame["horizon"] == horizon.label]
        decided = [horizon.decisions.significant.loc[a, b] for a, b in zip(part["left"], part["right"], strict=True)]
        assert part["significant"].tolist() == decided
        assert horizon.decisions.alpha >= 0.05 / 3 * (1 - 1e-12)


# ---------------------------------------------------------------------- which horizons


@pytest.mark.parametrize(
    ("budgets", "labels"),
    [(range(1, 25), "7 12 18 24"), ((1, 2, 3, 4, 6, 8, 12, 16, 24, 32), "2 6 12 32"), ((0.5, 3), "0.5 3")],
)
def test_the_default_is_spread_over_the_range_on_the_scale_of_the_budgets(budgets, labels):
    assert horizons(runs_of(table_of(budgets=budgets, benchmarks=4, seeds=2))).labels == tuple(labels.split())


def test_horizons_are_put_in_the_order_of_their_ends():
    found = horizons(runs_of(table_of()), [(4, 8), 8, (1, 2), 1])
    assert found.labels == ("1", "1-2", "8", "4-8")
    reordered = "Horizons are in the order of their last budgets; a window comes after the horizons that lie in it."
    assert reordered in found.notes
    assert found.horizons["1-2"].budgets == (1.0, 2.0)
    shared = "These horizons share budgets: 1 and 1-2, 8 and 4-8. Their results depend on each other more than those "
    assert any(note.startswith(shared) for note in found.notes)
    ordered = horizons(runs_of(table_of()), [1, 2, 4, (1, 4), 8])
    assert ordered.labels == ("1", "2", "4", "1-4", "8")
    assert reordered not in ordered.notes
    single = horizons(runs_of(table_of()), 4)
    assert (single.labels, len(single.changes), single.change_formula) == (("4",), 0, None)


@pytest.mark.parametrize("given", [[(2, 4), 8, 1], [8, 1, (2, 4)], [(2, 4), (1, 8), 8, (4, 8), 1, (1, 2)]])
def test_no_change_goes_back_in_time(given):
    found = horizons(runs_of(table_of(drift=0.5)), given)
    starts = {horizon.label: horizon.place.start for horizon in found.horizons.values()}
    ends = {horizon.label: horizon.place.end for horizon in found.horizons.values()}
    for row in found.changes[["earlier", "later"]].drop_duplicates().to_dict("records"):
        assert starts[row["earlier"]] < starts[row["later"]]
        assert ends[row["earlier"]] < ends[row["later"]]
    told = [re.match(r"From (\S+) to (\S+) ", text) for text in found.sentences()]
    assert any(told)
    assert all(ends[match[1]] < starts[match[2]] for match in told if match)


def test_a_part_of_a_window_is_not_compared_with_it():
    changes = horizons(runs_of(table_of(algorithms=2)), [1, 4, (2, 8)]).changes
    assert changes[["earlier", "later"]].to_numpy().tolist() == [["1", "4"], ["1", "2-8"]]


@pytest.mark.parametrize(
    ("budgets", "message"),
    [
        ("5", "budgets must be a list of budgets or of windows (first, last), got '5'."),
        ([], "budgets is empty. Give budgets such as [5, 10, 15], or None for a choice of them."),
        (["a"], "budgets must hold budgets (numbers) or windows (first, last), got 'a'."),
        ([True], "budgets must hold budgets (numbers) or windows (first, last), got True."),
        ([(1, 2, 3)], "budgets must hold budgets (numbers) or windows (first, last), got (1, 2, 3)."),
        ([(1, None)], "budgets must hold budgets (numbers) or windows (first, last), got (1, None)."),
        ([(4, 1)], "a window (first, last) of budgets must have first < last, got (4, 1)."),
        ([(4, 4)], "a window (first, last) of budgets must have first < last, got (4, 4). Write 4 for the scores at "
         "that budget."),
        ([1, 4, 1.0], "budgets names the horizon 1 twice. Name each once."),
        ([9], "budgets: 9 is outside the range of budget, 1 to 8."),
        ([(2.5, 3.5)], "budgets: no run has a score in the window 2.5-3.5. Values of budget near it: 1, 2, 4."),
        (list(range(9)), "budgets names 9 horizons, more than 8. Choose fewer, or windows that hold several budgets."),
    ],
)  # fmt: skip
def test_horizons_that_make_no_sense_are_refused(budgets, message):
    assert refusal(lambda: horizons(runs_of(table_of()), budgets), ArgumentError) == message


def test_a_window_with_one_budget_says_so():
    found = horizons(runs_of(table_of()), [(3, 5), 8])
    assert "The window 3-5 has one budget, 4." in found.notes
    want = horizons(runs_of(table_of()), [4, 8]).horizons["4"]
    pd.testing.assert_frame_equal(found.horizons["3-5"].pairs.to_frame(), want.pairs.to_frame())


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"windows": "smooth"}, "windows must be 'averaged' or 'fixed' or 'random', got 'smooth'."),
        ({"adjust": "fdr"},
         "adjust must be 'stepdown' or 'singlestep' or 'tukey' or 'holm' or 'sidak' or 'bonferroni' or 'none', got "
         "'fdr'."),
        ({"across": "tukey"}, "across must be 'holm' or 'none', got 'tukey'."),
    ]
)  # fmt: skip
def test_unknown_options_are_refused(options, message):
    assert refusal(lambda: horizons(runs_of(table_of()), [1, 8], **options), ArgumentError) == message


# ---------------------------------------------------------------------- budgets that differ


def test_the_last_score_of_a_best_so_far_curve_counts():
    table = best_so_far(table_of(budgets=(1, 2, 3, 4, 5, 6)))
    thinned = table[(table["algorithm"] != "a1") | table["budget"].isin([1, 3, 6])]
    found = horizons(runs_of(thinned), [3, 5])
    held = table.assign(loss=table["loss"].where(table["algorithm"] != "a1"))
    at_three = table[(table["algorithm"] == "a1") & (table["budget"] == 3)].set_index(["task", "seed"])["loss"]
    part = held[held["budget"] == 5].copy()
    missing = part["loss"].isna().to_numpy()
    part.loc[missing, "loss"] = [at_three[task, seed] for task, seed in part.loc[missing, ["task", "seed"]].to_numpy()]
    want = horizons(runs_of(part), 5)
    np.testing.assert_allclose(found.horizons["5"].pairs.table["se"], want.horizons["5"].pairs.table["se"], rtol=1e-8)
    note = (
        "At 5 not all runs have scores of their own; they are best-so-far curves, so the last score before counts (32 "
        "of 96 runs at 5)."
    )
    assert note in found.notes


def test_runs_that_ended_early_are_counted():
    table = best_so_far(table_of(budgets=(1, 2, 3, 4)))
    ended = table[(table["seed"] > 0) | (table["budget"] <= 3)]
    found = horizons(runs_of(ended), [4, (3, 4)], windows="fixed")
    assert any("24 runs ended before 4: what they would have reached" in note for note in found.notes)
    assert found.horizons["3-4"].budgets == (3.0, 4.0)
    note = "At 3-4 windows='averaged' was used, since not all runs have scores at its budgets."
    assert note in found.horizons["3-4"].notes


def test_budgets_that_not_all_runs_have_are_left_out_of_a_window():
    table = table_of(budgets=(1, 2, 3, 4))
    thinned = table[(table["algorithm"] != "a1") | (table["budget"] != 3)]
    found = horizons(runs_of(thinned), [(1, 4)])
    want = horizons(runs_of(table[table["budget"] != 3]), [(1, 4)])
    pd.testing.assert_frame_equal(found.to_frame(), want.to_frame())
    assert "Over 1-4 the mean is of the 3 values of budget that all runs have; left out: 3." in found.notes


@pytest.mark.parametrize(
    ("curves", "lacking", "budgets", "message"),
    [
        (False, [3], [1, 3], "no score at budget = 3 (task 0, algorithm a1, seed 0), and the scores are not "
         "best-so-far curves, so that the last one before could stand in. Values that all runs have, near it: 1, 2, "
         "4."),
        (False, [2, 3], [(2, 3)], "no score over 2-3 of budget (task 0, algorithm a1, seed 0), and the scores are not "
         "best-so-far curves, so that the last one before could stand in. Values that all runs have, near it: 1, 4."),
        (True, [1], [1, 4], "no score at or before budget = 1 (task 0, algorithm a1, seed 0). All have one from 2 on."),
    ],
)  # fmt: skip
def test_scores_that_are_missing_at_a_horizon_are_refused_with_the_nearest(curves, lacking, budgets, message):
    table = table_of(budgets=(1, 2, 3, 4))
    table = best_so_far(table) if curves else table
    thinned = table[(table["algorithm"] != "a1") | ~table["budget"].isin(lacking)]
    refuses(DataError, f"^32 of 96 runs have {re.escape(message)}$", horizons, runs_of(thinned), budgets)


def test_without_any_common_budget_there_is_no_comparison():
    table = table_of(budgets=(1, 2, 3, 4))
    own = table.assign(budget=table["budget"] + (table["algorithm"] == "a1") * 0.5)
    message = (
        "No budget is common to all runs, and the scores are not best-so-far curves (some get worse, or the seed is "
        "not known), so that the last score before a budget could stand in. Add scores at common budgets, or take "
        "the running best of each run over budget."
    )
    for budgets in (None, [2]):
        refuses(DataError, f"^{re.escape(message)}$", horizons, runs_of(own), budgets)
    curves = horizons(runs_of(best_so_far(own)))
    assert curves.labels == ("2", "3", "3.5", "4.5")


# ---------------------------------------------------------------------- thin designs


def test_one_budget_is_no_horizon():
    table = table_of(budgets=(4,))
    assert refusal(lambda: horizons(runs_of(table)), DataError) == (
        "There is one budget only (budget = 4), so there are no horizons to compare. Add scores at other budgets, or "
        "name this one: budgets=[...]."
    )
    assert horizons(runs_of(table), [4]).labels == ("4",)


def test_a_budget_column_of_numbers_is_needed():
    assert refusal(lambda: horizons(runs_of(table_of(), budget=None)), ArgumentError) == (
        "runs has no budget column, so there are no horizons. Name it: Runs(..., budget=...). "
        "Columns: task, algorithm, seed, budget, loss."
    )
    table = table_of()
    table["budget"] = pd.Categorical(table["budget"].astype(str), ordered=True)
    message = "anytime(runs).at() needs numbers as budgets, but the column 'budget' has type "
    refuses(ArgumentError, f"^{re.escape(message)}", horizons, runs_of(table))


@pytest.mark.parametrize("roles", [{}, {"benchmark": None}])
def test_with_one_benchmark_the_runs_are_the_sample(roles):
    found = horizons(runs_of(table_of(benchmarks=1, seeds=10), **roles), [1, (2, 8)])
    formula = found.horizons["1"].formula
    assert formula == "loss ~ algorithm + (1 | seed)" if roles else "loss ~ algorithm + (1 | task:seed)"
    assert any("says nothing about other benchmarks" in note for note in found.notes)
    assert found.to_frame()["p_value"].notna().all()


def test_one_benchmark_and_one_run_each_is_too_little():
    assert refusal(lambda: horizons(runs_of(table_of(benchmarks=1, seeds=1))), DataError) == (
        "There is one benchmark and one run per algorithm, so a difference cannot be distinguished from chance. Add "
        "more seeds (they show what holds on this benchmark) or more benchmarks."
    )
    assert refusal(lambda: horizons(runs_of(table_of(benchmarks=1), seed=None)), DataError) == (
        "Which rows belong to one run is not known, and with one benchmark the runs are the sample. Name the seed "
        "column: Runs(table, ..., seed=...)."
    )


def test_runs_that_stand_still_have_no_change():
    table = table_of(budgets=(1, 2))
    still = table.assign(loss=table.groupby(["task", "algorithm", "seed"])["loss"].transform("first"))
    found = horizons(runs_of(still), [1, 2])
    assert found.changes["p_value"].isna().all()
    assert not found.changes["significant"].any()
    assert "All runs change by the same amount from 1 to 2: no test is needed." in found.notes


def test_numbers_as_names_and_odd_columns_are_factors():
    table = table_of(algorithms=3).rename(columns={"budget": "time (s)", "algorithm": "my tool"})
    table["my tool"] = table["my tool"].str[1:].astype(int)
    runs = lt.Runs(
        table, score="loss", direction="maximize", algorithm="my tool", benchmark="task", seed="seed", budget="time (s)"
    )
    for effect in ("averaged", "fixed", "random"):
        found = horizons(runs, [1, (2, 8)], windows=effect)
        assert found.to_frame()["left"].tolist()[:3] == ["0", "0", "1"]
    assert len(horizon_pairs(runs, [1, (2, 8)])) == 6


def test_too_many_budgets_have_no_effect_each():
    table = table_of(benchmarks=3, algorithms=2, seeds=2, budgets=tuple(range(60)))
    assert refusal(lambda: horizons(runs_of(table), [(0, 59)], windows="fixed"), ArgumentError) == (
        "windows='fixed' has one effect per budget, and there are 60 in 0-59, more than 50. Use "
        "windows='averaged', or a narrower window."
    )


# ---------------------------------------------------------------------- words


def test_a_reversal_is_told_as_one():
    table = table_of(spread=0.1, algorithms=2)
    table["loss"] += np.where(table["algorithm"] == "a0", 1.0, 0.0) * np.where(table["budget"] < 4, -1.0, 1.0)
    found = horizons(runs_of(table), [1, 8])
    assert found.changes["pattern"].tolist() == ["reverses"]
    first, second, third = found.sentences()
    assert first == "At 1 a0 has the best mean, significantly better than the other."
    assert second == "At 8 a1 has the best mean, significantly better than the other."
    assert re.fullmatch(r"From 1 to 8 a1 gains on a0 by 1\.939 \(interval .* to .*, p < 0\.001\): "
                        r"a0 is better at 1, a1 at 8\.", third)  # fmt: skip


def test_the_direction_decides_who_gains():
    table = table_of(spread=0.1, algorithms=2, drift=1.0)
    words = {d: horizons(runs_of(table, direction=d), [1, 8]).sentences()[-1] for d in ("minimize", "maximize")}
    assert words["minimize"].startswith("From 1 to 8 a0 gains on a1 by ")
    assert words["maximize"].startswith("From 1 to 8 a1 gains on a0 by ")


def test_a_window_between_two_budgets_is_between_them_in_the_sentences():
    table = table_of(spread=0.1, algorithms=2, budgets=(1, 3, 9, 27, 81), drift=-1.0)
    sentences = horizons(runs_of(table), [(3, 27), 81, 1]).sentences()
    starts = ["At 1 ", "Over 3-27 ", "At 81 ", *(f"From {way} a1 gains on a0 by " for way in
              ("1 to 3-27", "1 to 81", "3-27 to 81"))]  # fmt: skip
    assert [text.startswith(start) for text, start in zip(sentences, starts, strict=True)] == [True] * 6


def test_windows_that_overlap_are_not_before_and_after():
    table = table_of(spread=0.1, algorithms=2, drift=-1.0)
    for windows in ([(1, 4), (2, 8)], [(4, 8), (1, 4)]):
        found = horizons(runs_of(table), windows)
        first, second = found.labels
        text = found.sentences()[-1]
        assert text.startswith(f"Over {second} a1 does better against a0 than over {first}, which overlaps it, by ")
    apart = horizons(runs_of(table), [(4, 8), (1, 2)]).sentences()[-1]
    assert apart.startswith("From 1-2 to 4-8 a1 gains on a0 by ")


def test_windows_that_overlap_and_have_the_same_scores_do_not_change_in_time():
    found = horizons(runs_of(table_of(algorithms=2)), [(1.5, 2.5), (1.8, 3)])
    assert "All runs differ by the same amount between 1.5-2.5 and 1.8-3: no test is needed." in found.notes


def with_copy(table, offset=0.0):
    copy = table.query("algorithm == 'a0'").assign(algorithm="a0copy")
    copy["seed"] = copy["seed"].max() - copy["seed"]  # the sums of the runs round in another order
    return pd.concat([table, copy], ignore_index=True).assign(loss=lambda t: t["loss"] + offset)


@pytest.mark.parametrize("offset", first([0.1, 0.0, 1000.0, 1e6]))
def test_a_copy_shares_the_best_mean_at_every_horizon(offset):
    table = table_of(algorithms=2, spread=0.1)
    table["loss"] += 3.0 * table["algorithm"].eq("a1")
    found = horizons(runs_of(with_copy(table, offset)), [1, 2, 8, (2, 8)])
    rest = "a0 and a0copy share the best mean, significantly better than the other."
    for horizon in found.horizons.values():
        assert horizon.sentences()[0] == f"{'Over' if horizon.place.is_window else 'At'} {horizon.label} {rest}"


def decided(p_values):
    """Means of which the first two are equal up to rounding, with the p-values of pairs."""
    return decisions_of(
        levels=["b", "a", "c", "d"],
        means=[1.0, 1.0 + 1e-13, 2.0, 3.0],
        se=[0.1, 0.3, 0.1, 0.1],
        tests=pd.DataFrame([(*pair, p) for pair, p in p_values.items()], columns=["left", "right", "p_value"]),
        half_widths=[],
        alpha=0.05,
        direction="minimize",
        adjust="tukey",
        ddf="satterthwaite",
        score="loss",
    )


BETTER = {("b", "c"): 0.0, ("b", "d"): 0.0, ("a", "c"): 0.0, ("a", "d"): 0.0, ("a", "b"): 1.0}


@pytest.mark.parametrize(
    ("p_values", "rest"),
    [
        (BETTER, ", significantly better than all others."),
        (BETTER | {("a", "d"): 1.0}, "; not significantly different from at least one of them: d."),
        (BETTER | {("a", "c"): 1.0, ("a", "d"): 1.0}, "; not significantly different from at least one of them: c, d."),
        (BETTER | {("a", "c"): 1.0, ("b", "c"): 1.0}, "; not significantly different from them: c."),
        (dict.fromkeys(BETTER, 1.0), ", not significantly different from any other."),
        ({("a", "c"): 0.0, ("b", "c"): 0.0}, "; no test against them is possible for d."),
        ({("a", "c"): 0.0}, "; no test against at least one of them is possible for c, d."),
        ({("a", "c"): 0.0, ("a", "d"): 0.5, ("b", "c"): np.nan}, "; not significantly different from at least one of "
         "them: d; no test against at least one of them is possible for c."),
        ({}, "; no test against them is possible for c, d."),
    ],
)  # fmt: skip
def test_others_beside_a_shared_best_mean_are_told_apart(p_values, rest):
    assert best_sentence(decided(p_values), "At 8") == f"At 8 a and b share the best mean{rest}"


def test_a_decision_is_missing_where_there_is_no_test():
    table = table_of(algorithms=3)
    found = horizons(runs_of(table.assign(loss=table["loss"].where(table["algorithm"] != "a0", 1.0))), [4, 8])
    pairs, changes = found.to_frame(), found.changes
    assert pairs["significant"].dtype == "boolean"
    assert (pairs["significant"].isna() == pairs["p_value"].isna()).all()
    assert ((changes["pattern"] == "not shown") == ~changes["significant"].fillna(False)).all()


def test_small_differences_that_are_no_rounding_are_no_tie():
    table = table_of(algorithms=2, spread=0.1)
    for size in (1e-6, 1e-3):
        shifted = table.assign(loss=table["loss"] * size + 1.0)
        assert " has the best mean, " in horizons(runs_of(shifted), [8]).horizons["8"].sentences()[0]


def test_a_symmetric_tie_of_two_is_shared():
    table = table_of(algorithms=2, benchmarks=8)
    other = table.assign(task=(table["task"] + 4) % 8 + 8, algorithm=table["algorithm"].map({"a0": "a1", "a1": "a0"}))
    found = horizons(runs_of(pd.concat([table, other], ignore_index=True)), [1, 8])
    for budget, horizon in found.horizons.items():
        assert horizon.sentences()[0] == f"At {budget} a0 and a1 share the best mean."


def test_significant_here_and_not_there_is_no_change():
    table = table_of(spread=0.6, algorithms=2, benchmarks=10, rng=3)
    wide = table["budget"].eq(8) & table["algorithm"].eq("a1")
    noise = np.random.default_rng(1).normal(size=10)
    noise = (noise - noise.mean())[table["task"]]
    table["loss"] += 0.9 * table["algorithm"].eq("a1") + 6.0 * noise * wide
    found = horizons(runs_of(table), [1, 8])
    assert found.to_frame()["significant"].tolist() == [True, False]
    assert found.changes["pattern"].tolist() == ["not shown"]
    last = found.sentences()[-1]
    assert last.startswith("a0 is better than a1 at 1 and not shown to be at 8, but the difference does not change ")
    assert last.endswith(": this does not show that it depends on the budget.")


def test_many_pairs_are_summed_up():
    sentences = horizons(runs_of(table_of(algorithms=6, spread=0.05)), [1, 2, 8]).sentences()
    assert len(sentences) < 12
    assert re.fullmatch(r"No change is shown for (all|the other) \d+ comparisons of two algorithms at two horizons\.",
                        sentences[-1])  # fmt: skip


def test_the_text_says_what_was_done():
    found = horizons(runs_of(table_of()), [1, (2, 8)])
    assert found.summary().startswith("Pairwise differences of loss at 2 horizons of budget")
    assert "step-down (Tukey and Shaffer) adjustment for the pairs of a horizon, Holm's sharing of" in found.summary()
    alone = horizons(runs_of(table_of()), [1, 8], across="none").summary()
    assert "none over horizons: the error rate applies to each horizon separately" in alone
    assert found.horizons["1"].summary().startswith("Pairwise differences at 1")


# ---------------------------------------------------------------------- scores relative to the benchmark


def change_t(table: pd.DataFrame, score: str, early, late) -> stats._result_classes.TtestResult:
    means = table.groupby(["task", "algorithm", "budget"])[score].mean().unstack()
    change = (means[late] - means[early]).unstack()
    return stats.ttest_rel(change["a0"], change["a1"])


def test_ranks_of_two_algorithms_have_the_paired_test_at_every_horizon_and_of_every_change():
    """What one gains the other loses: a benchmark variance of zero would make the errors too small by 29 %."""
    runs = runs_of(table_of(algorithms=2, benchmarks=10, noise=0.6)).normalize("rank")
    found = horizons(runs, [1, 8])
    table = runs.to_frame().rename(columns={"loss_rank": "rank"})
    for budget in (1, 8):
        part = table[table["budget"] == budget].assign(loss=lambda t: t["rank"])
        assert "C(task)" in found.horizons[str(budget)].formula
        got = found.horizons[str(budget)].pairs.to_frame()["t_ratio"][0]
        assert got == approx(paired_t(part, "a0", "a1").statistic, rel=1e-5)
    row = found.changes.iloc[0]
    assert "C(task)" in found.change_formula
    assert abs(row["change"] / row["se"]) == approx(abs(change_t(table, "rank", 1, 8).statistic), rel=1e-5)


def test_changes_that_mirror_each_other_are_judged_by_themselves():
    """Difficulties differ in the scores but cancel in the changes, so the model of the scores is not theirs."""
    table = table_of(algorithms=2, benchmarks=12, budgets=(1, 8), spread=0.2, run=0.1, noise=0.05)
    sign = np.where(table["algorithm"] == "a0", 1.0, -1.0)
    table["loss"] += sign * np.random.default_rng(5).normal(size=12)[table["task"]] * (table["budget"] == 8)
    found = horizons(runs_of(table), [1, 8])
    assert "(1 | task) +" in found.horizons["1"].formula
    assert "C(task)" in found.change_formula
    row = found.changes.iloc[0]
    assert abs(row["change"] / row["se"]) == approx(abs(change_t(table, "loss", 1, 8).statistic), rel=1e-5)


@pytest.mark.parametrize("across", ["holm", "none"])
@pytest.mark.parametrize("adjust", first([None, "holm", "bonferroni"]))
def test_intervals_exclude_zero_exactly_where_a_pair_is_significant(adjust, across):
    found = horizons(lt.datasets.load_hpo_runs().filter(prior="bad"), [2, 8, 32], adjust=adjust, across=across)
    for table in (found.to_frame(), found.changes):
        outside = (table["ci_low"] > 0) | (table["ci_high"] < 0)
        tested = table["significant"].notna()
        assert (outside == table["significant"].fillna(False).astype(bool))[tested].all()
        assert 0 < outside.sum() < len(outside)
