"""Checks of a table of runs: what each finds, what it leaves alone, and the tree of all of them."""

from __future__ import annotations

import itertools
import math
import re
from itertools import combinations
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from growth import calls, exponent, peak
from pytest import approx
from refusals import refusal, refuses
from scipy import stats
from study import as_runs, make_table

import lmemtest as lt
from lmemtest.bench.checks import similar
from lmemtest.bench.checks.check import CHECKS, RULES, check
from lmemtest.bench.checks.copies import _agreeing, _same_by_seed, copied_runs
from lmemtest.bench.checks.similar import _orders, _upper_p, similar_algorithms, similar_benchmarks
from lmemtest.bench.checks.traces import broken_traces
from lmemtest.bench.data.runs import Runs
from lmemtest.errors import ArgumentError, DataError, DesignError


def table_of(*, benchmarks=4, algorithms=3, seeds=4, budgets=7, rng=0, trace=True) -> pd.DataFrame:
    names = [[f"{letter}{i}" for i in range(n)] for letter, n in (("a", algorithms), ("b", benchmarks))]
    sds = {"benchmark:algorithm": 1.0}
    table = make_table(*names, seeds, range(budgets), sds=sds, rng=rng, benchmark="task")
    if trace:
        falling = table["loss"] - 0.1 * table["budget"]
        table["loss"] = falling.groupby([table["task"], table["algorithm"], table["seed"]]).cummin()
    return table


def copy_rows(table, source: str, **target) -> pd.DataFrame:
    """Overwrite the scores of some runs with those of others, in the same order."""
    (column, level), *_ = target.items()
    out = table.copy()
    out.loc[out[column] == level, "loss"] = table.query(source)["loss"].to_numpy()
    return out


# ---------------------------------------------------------------------- copies


def findings(runs, name):
    """What a check of the tree found."""
    return check(runs, checks=[name])[name].findings


def test_continuous_scores_have_no_copies():
    found = copied_runs(as_runs(table_of()))
    assert found.table.empty
    assert " ".join(found.sentences()) == "None of 48 runs is a copy of another."
    assert findings(as_runs(table_of(budgets=1)), "copies") == ()


def test_an_algorithm_under_two_names_is_found_even_under_other_seeds():
    table = table_of()
    for source in (table, table.assign(seed=table["seed"].where(table["algorithm"] != "a0", table["seed"] + 100))):
        copied = copy_rows(source, "algorithm == 'a0'", algorithm="a2")
        (finding,) = findings(as_runs(copied), "copies")
        assert (finding.kind, finding.severity) == ("copied_algorithms", "warning")
        assert finding.message == "'a2' has the same scores as 'a0' in 16 of 16 runs."


def test_single_scores_count_as_copies_with_the_same_seed_only():
    table = table_of(budgets=1, seeds=6)
    copied = copy_rows(table, "algorithm == 'a0'", algorithm="a2")
    (finding,) = findings(as_runs(copied, budget=None), "copies")
    assert finding.message == "'a2' has the same scores as 'a0' in 24 of 24 runs."
    coarse = table.assign(loss=table["loss"].round(0))
    assert findings(as_runs(coarse, budget=None), "copies") == ()


def test_a_benchmark_under_two_names_is_found():
    copied = copy_rows(table_of(), "task == 'b1'", task="b3")
    (finding,) = findings(as_runs(copied), "copies")
    assert (finding.kind, finding.benchmark) == ("copied_benchmarks", "b3")
    assert finding.message == "'b3' has the same scores as 'b1' in 12 of 12 runs."


def test_a_seed_used_twice_is_found():
    table = table_of(trace=False)
    one = (table["task"] == "b0") & (table["algorithm"] == "a1")
    table.loc[one & (table["seed"] == 3), "loss"] = table.loc[one & (table["seed"] == 1), "loss"].to_numpy()
    found = copied_runs(as_runs(table))
    (finding,) = findings(as_runs(table), "copies")
    assert (finding.kind, finding.benchmark, finding.algorithm) == ("copied_seeds", "b0", "a1")
    assert finding.message == "1 of 4 runs of 'a1' on 'b0' are copies of a run with another seed."
    assert found.to_frame()["share"].to_list() == [0.25]


def test_runs_that_coincide_on_a_coarse_score_now_and_then_are_none():
    table = table_of(seeds=20)
    assert findings(as_runs(table.assign(loss=(2 * table["loss"]).round() / 2)), "copies") == ()


def test_an_algorithm_that_ignores_a_metafeature_is_a_note():
    good, bad = table_of(rng=1).assign(prior="good"), table_of(rng=2).assign(prior="bad")
    bad.loc[bad["algorithm"] == "a1", "loss"] = good.loc[good["algorithm"] == "a1", "loss"].to_numpy()
    (finding,) = findings(as_runs(pd.concat([good, bad]), metafeatures=("prior",)), "copies")
    assert (finding.severity, finding.kind, finding.algorithm) == ("note", "copied_levels", "a1")
    assert finding.message == "'a1' has the same runs at 'bad' and 'good' of prior (16 of 16)."


def test_priorband_has_one_set_of_runs_for_algorithms_without_a_prior(data_dir):
    table = pd.read_parquet(data_dir / "priorband.parquet")
    runs = as_runs(table, score="value", budget="used_fidelity")
    found = findings(runs, "copies")
    assert [(f.kind, f.algorithm) for f in found] == [("copied_levels", "HB"), ("copied_levels", "RS")]
    assert verdict(broken_traces(runs)) == (True, 0)


# ---------------------------------------------------------------------- curves


def verdict(found):
    """Whether the score is the best so far, and how many curves get worse all the same."""
    return found.best_so_far, found.n_broken


def test_best_so_far_curves_are_fine():
    found = broken_traces(as_runs(table_of()))
    assert verdict(found) == (True, 0)
    assert findings(as_runs(table_of()), "curves") == ()
    assert found.table["runs"].sum() == 48
    turned = table_of().assign(loss=lambda t: -t["loss"])
    assert verdict(broken_traces(as_runs(turned, "maximize"))) == (True, 0)
    assert verdict(broken_traces(as_runs(turned))) == (False, 0)


def test_a_run_that_gets_worse_among_curves_that_never_do_is_broken():
    table = table_of()
    one = (table["task"] == "b2") & (table["algorithm"] == "a1") & (table["seed"] == 0) & (table["budget"] == 6)
    table.loc[one, "loss"] += 20.0
    found = broken_traces(as_runs(table))
    assert verdict(found) == (True, 1)
    assert found.examples[0].startswith("a1 on b2, seed 0: worse by ")
    assert found.examples[0].endswith(" at budget 6")
    assert found.table.query("worse > 0")[["benchmark", "algorithm", "worse"]].to_numpy().tolist() == [["b2", "a1", 1]]
    assert findings(as_runs(table), "curves")[0].severity == "warning"


def test_scores_of_each_budget_by_itself_are_no_traces():
    found = broken_traces(as_runs(table_of(trace=False)))
    assert verdict(found) == (False, 0)
    assert [f.severity for f in findings(as_runs(table_of(trace=False)), "curves")] == ["note"]
    assert verdict(broken_traces(as_runs(table_of(budgets=2)))) == (None, 0)
    with pytest.raises(ArgumentError, match=re.escape("runs has no budget column, so there are no curves.")):
        broken_traces(as_runs(table_of(budgets=1), budget=None))


# ---------------------------------------------------------------------- algorithms and benchmarks that are alike


def test_equivalent_algorithms_are_named_with_the_test_of_equivalence():
    table = table_of(seeds=60, budgets=1)
    table["loss"] = np.random.default_rng(1).normal(size=len(table)) + 2.0 * (table["algorithm"] == "a2")
    runs = as_runs(table, budget=None)
    found = similar_algorithms(runs, margin=0.6)
    assert found.table.loc[found.table["equivalent"], ["left", "right"]].to_numpy().tolist() == [["a0", "a1"]]
    assert found.run_sd == approx(1.0, abs=0.05)
    fit = lt.fit_lmm(found.formula, runs)
    by_hand = fit.emmeans("algorithm").pairs().equivalence(found.margin).to_frame()
    assert found.table["p_value"].to_numpy() == approx(by_hand["p_value"].to_numpy())
    assert " ".join(found.sentences()).startswith("a0 and a1 perform alike: they differ by less than 0.")
    pd.testing.assert_frame_equal(similar_algorithms(runs, margin=0.6, model=fit).table, found.table)


def test_alikeness_needs_repeated_runs_and_a_sensible_margin():
    single = as_runs(table_of(seeds=1, budgets=1), budget=None)
    with pytest.raises(DesignError, match=re.escape("no run was repeated, so there is no standard deviation of a run")):
        similar_algorithms(single)
    for margin in (0.0, -1.0, float("nan"), True, "x"):
        with pytest.raises(ArgumentError, match=r"margin must be a finite number above 0, got .*: a number of stand"):
            similar_algorithms(single, margin=margin)


def test_the_chance_level_of_a_rank_correlation_is_that_of_all_orders():
    for k in (3, 5, 6):
        rho = [stats.spearmanr(range(k), order).statistic for order in itertools.permutations(range(k))]
        assert _orders(k) == approx(np.sort(rho), abs=1e-12)
        assert _upper_p(np.array([1.0]), k)[0] == approx(1 / math.factorial(k))
        assert _upper_p(np.array([-1.0]), k)[0] == 1.0
    assert _upper_p(np.array([0.7]), 12)[0] == approx(stats.t.sf(0.7 * np.sqrt(10 / (1 - 0.49)), 10))


def test_benchmarks_that_share_their_deviations_are_found():
    rng = np.random.default_rng(4)
    advantage = rng.normal(size=(6, 8))
    advantage[4] = advantage[1] + 0.02 * rng.normal(size=8)
    table = table_of(benchmarks=6, algorithms=8, seeds=3, budgets=1)
    b, a = (table[c].str[1:].astype(int).to_numpy() for c in ("task", "algorithm"))
    table["loss"] = advantage[b, a] + 3.0 * rng.normal(size=8)[a] + 0.02 * rng.normal(size=len(table))
    found = similar_benchmarks(as_runs(table, budget=None))
    assert found.table.loc[found.table["alike"], ["left", "right"]].to_numpy().tolist() == [["b1", "b4"]]
    assert " ".join(found.sentences()).startswith(
        "b1 and b4 order the algorithms alike beyond the common order (rank correlation"
    )
    assert found.smallest_p == approx(15 / math.factorial(8))


@pytest.mark.parametrize("algorithms", [5, 9])
def test_of_many_benchmarks_the_table_keeps_the_most_alike(monkeypatch, algorithms):
    """The first rows of the whole table by their p-values, whatever is in memory at a time: exact tests and t."""
    rng = np.random.default_rng(algorithms)
    table = table_of(benchmarks=30, algorithms=algorithms, seeds=1, budgets=1)
    table["loss"] = rng.normal(size=len(table))
    runs = as_runs(table, budget=None)
    whole = similar_benchmarks(runs)
    assert len(whole.table) == whole.n_pairs == 435
    ranks = whole.deviations.rank().corr().to_numpy()
    assert whole.table["rho"].to_numpy() == approx(ranks[np.triu_indices(30, 1)], abs=1e-12)
    assert whole.table[["left", "right"]].to_numpy().tolist() == [
        list(pair) for pair in itertools.combinations(whole.deviations.columns, 2)
    ]
    monkeypatch.setattr(similar, "_MOST_PAIRS", 50)
    for numbers in (1, 100, 1_000_000):
        monkeypatch.setattr(similar, "_AT_ONCE", numbers)
        part = similar_benchmarks(runs)
        largest = (-whole.table["rho"].round(9)).sort_values(kind="stable").index[:50]  # of equal ones the first
        best = whole.table.loc[sorted(largest)].reset_index(drop=True)
        pd.testing.assert_frame_equal(part.table, best, rtol=1e-12)
        assert (part.n_pairs, part.smallest_p, part.facts) == (whole.n_pairs, whole.smallest_p, whole.facts)
        assert part.sentences() == whole.sentences()
        assert part.notes == ("The table has the 50 pairs with the largest correlations of 435; p-values count all.",)


def test_deviations_are_the_blups_up_to_a_factor_in_a_balanced_table():
    table = table_of(benchmarks=5, algorithms=4, seeds=6, budgets=1)
    runs = as_runs(table, budget=None)
    deviations = similar_benchmarks(runs).deviations
    assert deviations.sum(axis=1).to_numpy() == approx(np.zeros(4), abs=1e-12)
    means = table.groupby(["algorithm", "task"])["loss"].mean().unstack()
    fit = lt.fit_lmm("loss ~ algorithm + (1|task) + (1|task:algorithm)", runs)
    blups = fit.conditional_modes("task:algorithm")
    values = blups.to_numpy(dtype=float).ravel().reshape(5, 4).T
    centred = means - means.mean()
    expected = centred.sub(centred.mean(axis=1), axis=0).to_numpy()
    ratio = (values - values.mean(axis=0)) / expected
    assert ratio == approx(np.full((4, 5), ratio.mean()), rel=1e-3)


def test_few_algorithms_cannot_show_that_benchmarks_are_alike():
    found = similar_benchmarks(as_runs(table_of()))
    assert not found.table["alike"].any()
    assert " ".join(found.sentences()) == (
        "With 3 algorithms no two of 4 benchmarks can be shown to be alike: the smallest possible p-value is 1.000."
    )
    with pytest.raises(DesignError, match=re.escape("which needs 3 or more; there are 2. Add more benchmarks.")):
        similar_benchmarks(as_runs(table_of(benchmarks=2)))
    refuses(DesignError, "There are two algorithms only", similar_benchmarks, as_runs(table_of(algorithms=2)))


# ---------------------------------------------------------------------- the tree


@pytest.fixture(scope="module")
def sound():
    return check(as_runs(table_of(benchmarks=6, algorithms=4, seeds=6, budgets=4)), rng=1)


def test_a_sound_table_has_nothing_to_fix(sound):
    assert sound.ok
    assert sound.sentences()[0] == (
        "Nothing was found that has to be fixed; 1 of 17 checks could not be made (similar benchmarks)."
    )
    assert tuple(o.check for o in sound.outcomes) == CHECKS
    assert {o.severity for o in sound.outcomes if math.isnan(o.level)} <= {"fine", "note"}
    assert sound["budget"].result.decision in ("none", "simple", "interaction")
    assert sound["copies"].result.n_runs == 144
    with pytest.raises(KeyError, match="no check 'seed'; there are: scores, roles, kind, names"):
        sound["seed"]
    whole = check(as_runs(table_of(benchmarks=6, algorithms=7, seeds=6, budgets=4)), rng=1)
    assert (whole.left_out, whole.sentences()) == ((), ("Nothing has to be fixed before an analysis.",))


def test_two_rows_cannot_be_checked():
    report = check(lt.Runs({"tool": ["A", "B"], "loss": [1.0, 2.0]}, score="loss", direction="minimize",
                               algorithm="tool"))  # fmt: skip
    assert not report.to_fix
    assert not report.ok
    assert len(report.left_out) == 12
    assert all(outcome.severity == "skipped" for outcome in report.tests)
    assert " ".join(report.sentences()) == (
        "Almost nothing could be checked, so it means little that no fault was found: 12 of 17 checks could not be "
        "made (coverage, duplicates, copies, constant, curves, similar algorithms, ... (12 in all)), among them all 5 "
        "tests. They need repeated runs of each algorithm on each benchmark, Runs(..., seed=...); three benchmarks or "
        "more, Runs(..., benchmark=...); scores at several budgets if the budget matters, Runs(..., budget=...)."
    )
    assert " ".join(report.sentences()) in str(report)


def test_few_tests_are_said_to_be_few():
    report = check(as_runs(table_of(seeds=1, trace=False)), rng=1)
    assert report.ok
    assert " ".join(report.sentences()).startswith(
        "Little could be checked, so it means little that no fault was found: 5 of 17 "
    )
    assert "among them 4 of the 5 tests. They need repeated runs of each algorithm on each bench" in " ".join(
        report.sentences()
    )
    assert "Test at alpha = 0.05: budget; the other checks are rules. It gives a false alarm in up to 5 %" in (
        report.summary()
    )
    unnamed = check(as_runs(table_of(trace=False), seed=None), checks=["ties", "scales", "seeds"])
    assert unnamed.needs == ("a column that distinguishes the runs, Runs(..., seed=...)",)


def test_what_was_found_does_not_hide_what_was_not_looked_for():
    table = table_of(seeds=1, trace=False)
    report = check(as_runs(pd.concat([table, table.iloc[[5]]], ignore_index=True)), rng=1)
    assert " ".join(report.sentences()).startswith("Fix first: duplicates. ")
    assert "Other faults may be there: 5 of 17 checks could not be made (similar algorithms" in " ".join(
        report.sentences()
    )


@pytest.mark.parametrize(
    ("name", "table", "roles", "why"),
    [
        ("duplicates", table_of(budgets=1), {"seed": None, "budget": None}, "the runs have no seed column, so a row"),
        ("constant", table_of(budgets=1, seeds=1), {"budget": None}, "no algorithm has two scores on a benchmark"),
        ("scales", table_of(benchmarks=1), {}, "there are no two benchmarks, so there are no scales to compare."),
        ("copies", table_of(budgets=1, seeds=1, benchmarks=1), {"budget": None},
         "Copies cannot be distinguished from ties"),
        ("bounds", table_of(budgets=1, seeds=1), {"budget": None}, "Fewer than 20 single scores are known"),
    ],
)  # fmt: skip
def test_a_rule_without_anything_to_look_at_is_not_fine(name, table, roles, why):
    outcome = check(as_runs(table, **roles), checks=[name])[name]
    assert outcome.severity == "skipped"
    assert why in outcome.found[0]


def test_benchmarks_without_a_test_are_noted():
    table = table_of(budgets=1)
    table["loss"] += 10.0 * (table["algorithm"] == "a2")
    table.loc[table["task"] == "b0", "loss"] = 1.0
    outcome = check(as_runs(table, budget=None), checks="information")
    assert outcome["information"].severity == "note"
    assert outcome["information"].found[0].endswith("b0 could not be tested, so nothing is known there.")


def test_the_tree_shows_every_check_under_its_stage(sound):
    lines = str(sound).splitlines()
    assert lines[0].startswith("Checks: 576 rows: 4 algorithms, 6 benchmarks")
    stages = ["table", "runs", "algorithms", "benchmarks", "effects"]
    assert [line for line in lines if re.fullmatch(r"[a-z]+", line)] == stages
    for name in CHECKS:
        assert sum(bool(re.match(rf"[├└]── {name}  ", line)) for line in lines) == 1


def test_what_comes_first_is_fixed_first():
    table = copy_rows(table_of(), "algorithm == 'a0'", algorithm="a2")
    table.loc[0, "loss"] = table.loc[0, "loss"] - 50
    table = pd.concat([table, table.iloc[[5]]], ignore_index=True)
    report = check(as_runs(table), rules_only=True)
    assert [o.check for o in report.to_fix] == ["duplicates", "copies", "curves", "scales"]
    assert " ".join(report.sentences()).startswith(
        "Fix first: duplicates. 1 row of 'a0' on 'b0' is a copy of another: algorithm, task, seed, budget and"
    )
    assert " ".join(report.sentences()).endswith("Then check again; after it come: copies, curves, scales.")
    frame = report.to_frame()
    assert frame["priority"].dropna().to_list() == [1, 2, 3, 4]
    assert frame["check"].iloc[:3].to_list() == ["duplicates", "copies", "curves"]


def test_errors_come_before_warnings_and_stop_what_needs_scores():
    table = pd.concat([table_of(), table_of().iloc[[5]]], ignore_index=True)
    table.loc[3, "loss"] = np.nan
    report = check(as_runs(table))
    assert [o.check for o in report.to_fix] == ["scores", "duplicates"]
    assert report["budget"].severity == "skipped"
    assert report["budget"].found == ("Left out: the scores have to be complete first.",)
    assert "No statistical test was made." in str(report)


@pytest.mark.daily(2)
@pytest.mark.parametrize(
    ("table", "roles", "skipped"),
    [
        (table_of(seeds=1), {}, {"seeds", "information"}),
        (table_of(benchmarks=1), {}, {"similar benchmarks", "seeds"}),
        (table_of(algorithms=2), {}, {"similar benchmarks"}),
        (table_of(budgets=1), {"budget": None}, {"budget", "curves"}),
        (table_of(budgets=1, seeds=1, benchmarks=1), {"budget": None, "benchmark": None}, {"budget", "seeds"}),
    ],
)
def test_small_tables_are_checked_as_far_as_they_go(table, roles, skipped):
    report = check(as_runs(table, **roles))
    left_out = {o.check: o.found[0] for o in report.outcomes if o.severity == "skipped"}
    assert skipped <= set(left_out)
    assert all(len(text) > 40 for text in left_out.values())


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"checks": ["score"]}, "checks must be 'scores'"), ({"checks": []}, "checks is empty"),
        ({"progress": "bar"}, "progress must be a function of the name of each step, or None, got 'bar'"),
    ],
)  # fmt: skip
def test_options_are_checked(options, words):
    assert refusal(lambda: check(as_runs(table_of()), **options)).startswith(words)


def test_runs_have_the_check_as_a_method_and_tell_its_progress():
    runs, steps = as_runs(table_of()), []
    found, same = runs.check(rules_only=True), check(runs, checks=RULES, progress=steps.append)
    assert found.summary() == same.summary()
    pd.testing.assert_frame_equal(found.to_frame(), same.to_frame())
    pd.testing.assert_frame_equal(found.to_frame("cells"), found.cells)
    assert steps == [f"checking {outcome.check}" for outcome in same.outcomes]


@pytest.mark.parametrize("benchmarks", [3, 12])
def test_curves_and_the_budget_speak_with_one_voice(benchmarks):
    """Best-so-far curves on scales of their own: none gets worse, and the budget check does not call that nothing."""
    table = table_of(benchmarks=benchmarks, seeds=3, rng=2)
    table["loss"] = (table["loss"] - table["loss"].min()) * 10000.0 ** (table["task"].str[1:].astype(int) % 3)
    report = check(as_runs(table), checks=["curves", "budget"])
    assert report["curves"].found[0].startswith("None of ")
    budget = report["budget"]
    assert budget.severity == "note"
    if benchmarks == 12:
        assert budget.result.effect.mean_p > 0.04
        assert budget.found[0].startswith("budget changes loss")
        assert "better on 12 of 12 benchmarks" in budget.found[0]
    else:
        assert "It gets better on all 3 benchmarks, which are too few" in budget.found[0]


# ---------------------------------------------------------------------- copies


def runs_of(algorithms: int, benchmarks: int, seeds: int, *, metafeatures: int = 0, items: bool = False) -> lt.Runs:
    rng = np.random.default_rng(0)
    a, b, s = (codes.ravel() for codes in np.indices((algorithms, benchmarks, seeds)))
    score = rng.normal(size=len(a))
    table = pd.DataFrame({"a": a, "b": b, "s": s, "y": (score > 0.5).astype(float) if items else score})
    names = [f"m{i}" for i in range(metafeatures)]
    table[names] = np.stack([100 + 37 * b + i for i in range(metafeatures)], axis=1) if names else None
    roles: dict[str, Any] = {"algorithm": "a", "benchmark": "b", "seed": "s", "metafeatures": names}
    return lt.Runs(table, score="y", direction="minimize", **roles)


def pair_by_pair(level: Any, slot: Any, curve: Any, share: float) -> list[tuple[int, int, int, int]]:
    """The rule, for every two levels."""
    wide = pd.DataFrame({"level": level, "slot": slot, "curve": curve}).pivot(
        index="slot", columns="level", values="curve"
    )
    out = []
    for left, right in combinations(sorted(wide), 2):
        both = wide[[left, right]].dropna()
        same = both[left] == both[right]
        if same.sum() >= share * len(both) and both[left][same].nunique() >= 5:
            out.append((left, right, len(both), int(same.sum())))
    return out


@pytest.mark.parametrize("share", [0.5, 0.9])
def test_pairs_that_share_curves_are_those_of_a_comparison_pair_by_pair(share: float) -> None:
    found = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n_levels, n_slots = int(rng.integers(2, 9)), int(rng.integers(5, 30))
        wide = rng.integers(0, rng.choice([3, 12, 400]), (n_levels, n_slots))
        copied = rng.random(n_slots) < rng.choice([0.6, 0.95, 1.0])
        wide[-1, copied] = wide[0, copied]
        level, slot = np.nonzero(rng.random(wide.shape) < rng.choice([0.8, 1.0]))
        want = pair_by_pair(level, slot, wide[level, slot], share)
        assert sorted(_same_by_seed(level, slot, wide[level, slot], share)) == want
        found += len(want)
    assert found > 10


@pytest.mark.parametrize("scale", [1, 10**6])  # both precisions of the sums
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_rows_that_agree_are_those_of_a_comparison_pair_by_pair(missing: float, scale: int) -> None:
    rng = np.random.default_rng(1)
    codes = scale * rng.integers(0, 2, (40, 6))
    codes[rng.random(codes.shape) < missing] = -1
    want = [
        (i, j)
        for i, j in combinations(range(40), 2)
        if all(x == y or min(x, y) < 0 for x, y in zip(codes[i], codes[j], strict=True))
    ]
    assert sorted(_agreeing(codes)) == want
    assert want


@pytest.mark.parametrize(
    "shape",
    [{"benchmarks": 50, "seeds": 2, "metafeatures": 1}, {"benchmarks": 200, "seeds": 1, "items": True}],
    ids=["metafeature", "items"],
)
def test_the_work_is_linear_in_benchmarks(shape: dict[str, Any]) -> None:
    small, large = runs_of(5, **shape), runs_of(5, **shape | {"benchmarks": 4 * shape["benchmarks"]})
    for measure in (calls, peak):
        assert exponent(measure, lambda: copied_runs(small), lambda: copied_runs(large)) < 1.1


def test_a_metafeature_that_an_algorithm_ignores_is_found_among_many() -> None:
    """One of 300 levels repeats another's runs on the same benchmarks."""
    rng = np.random.default_rng(2)
    b, m = (codes.ravel() for codes in np.indices((8, 300)))
    score = rng.normal(size=(8, 300))
    score[:, 250] = score[:, 17]
    table = pd.DataFrame({"a": "x", "b": b, "m": m, "y": score.ravel()})
    table = pd.concat([table, table.assign(a="z", y=rng.normal(size=len(table)))])
    runs = lt.Runs(table, score="y", direction="minimize", algorithm="a", benchmark="b", metafeatures=["m"])
    rows = copied_runs(runs).table
    assert rows.values.tolist() == [["metafeature", "17", "250", "x", 8, 8, 1.0]]


# ---------------------------------------------------------------------- trace


KINDS = {
    "pandas": lambda f: f,
    "polars": pl.from_pandas,
    "lazy": lambda f: pl.from_pandas(f).lazy(),
    "pyarrow": pa.Table.from_pandas,
    "duckdb": duckdb.from_df,
}


def table(*, failed=True) -> pd.DataFrame:
    """Runs in any order, one of their budgets twice, with failed trials that may come first."""
    rng = np.random.default_rng(0)
    cells = [(a, t, s, b) for a in "AB" for t in "xy" for s in range(3) for b in (1, 2, 2, 5, 9)]
    frame = pd.DataFrame(cells, columns=["tool", "task", "seed", "trial"])
    frame["loss"] = rng.normal(size=len(frame)).round(1)  # with ties
    if failed:
        frame.loc[[0, 7, 12, 40], "loss"] = np.nan
    frame["latest"] = frame["id"] = np.arange(len(frame))
    return frame.sample(frac=1.0, random_state=1).reset_index(drop=True)


def make(frame, direction="minimize", **roles):
    given = {"algorithm": "tool", "benchmark": "task", "seed": "seed", "budget": "trial", **roles}
    return Runs(frame, score="loss", direction=direction, **given)


@pytest.mark.daily(3)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_the_best_so_far_is_that_of_a_loop(kind, direction):
    frame = table()
    want = {}
    for row in frame.itertuples():
        run = frame[(frame["tool"] == row.tool) & (frame["task"] == row.task) & (frame["seed"] == row.seed)]
        seen = run.loc[run["trial"] <= row.trial, "loss"].dropna()
        want[row.id] = (min if direction == "minimize" else max)(seen, default=np.nan)
    runs = make(KINDS[kind](frame), direction).best_so_far()
    assert runs.is_lazy == (kind in ("lazy", "duckdb"))
    assert (runs.score, runs.direction) == ("loss_best_so_far", direction)
    got = runs.to_frame().set_index("id")
    np.testing.assert_array_equal(got["loss_best_so_far"].to_numpy(float), [want[i] for i in got.index])
    np.testing.assert_array_equal(got["loss"].to_numpy(float), frame.set_index("id")["loss"][got.index])


@pytest.mark.daily(2)
@pytest.mark.parametrize("kind", KINDS)
def test_scores_at_budgets_are_the_last_ones_up_to_them(kind):
    frame, wanted = table(failed=False), (2.0, 4.0, 5.0, 30.0)
    want = set()
    for budget in wanted:
        for _, run in frame.groupby(["tool", "task", "seed"]):
            reached = run[run["trial"] <= budget]
            want |= {(budget, i) for i in reached.loc[reached["trial"] == reached["trial"].max(), "id"]}
    runs = make(KINDS[kind](frame)).at_budgets(wanted)
    assert runs.is_lazy == (kind in ("lazy", "duckdb"))
    got = runs.to_frame()
    assert len(got) == len(want)
    assert set(zip(got["trial"].astype(float), got["id"], strict=True)) == want
    assert list(got.columns) == list(frame.columns)
    original = frame.set_index("id")["loss"]
    np.testing.assert_array_equal(got["loss"], original[got["id"]])


def test_runs_without_seeds_are_told_apart_by_algorithm_and_instance():
    frame = table(failed=False).drop_duplicates(["tool", "task", "trial"])
    got = make(frame, seed=None).best_so_far().to_frame().sort_values(["tool", "task", "trial"])
    want = got.groupby(["tool", "task"])["loss"].cummin()
    np.testing.assert_array_equal(got["loss_best_so_far"], want)


def test_the_best_so_far_makes_no_row_worse_and_keeps_what_is_a_trace():
    runs = make(table(failed=False).drop_duplicates(["tool", "task", "seed", "trial"])).best_so_far()
    again = runs.best_so_far(name="again").to_frame()
    np.testing.assert_array_equal(again["again"], again["loss_best_so_far"])
    assert "not_best_so_far" not in {finding.kind for finding in runs.check(rules_only=True).findings}


def test_a_budget_before_the_first_score_of_a_run_is_refused():
    frame = table()
    frame = frame[~((frame["tool"] == "B") & (frame["trial"] < 5))]
    with pytest.raises(ArgumentError, match="budgets must not be below 5, where the last of the runs begins, got 2"):
        make(frame).at_budgets([2, 9])
    assert make(frame).at_budgets([5]).n_rows == 12


@pytest.mark.parametrize(("budgets", "message"), [([], "one or more"), ([np.nan], "finite"), ("ab", "numbers")])
def test_budgets_are_numbers(budgets, message):
    refuses(ArgumentError, message, make(table()).at_budgets, budgets)


def test_helpers_need_a_budget_and_a_new_name():
    runs = make(table(), budget=None)
    refuses(DataError, "best_so_far needs the column of the budget", runs.best_so_far)
    refuses(DataError, "at_budgets needs the column of the budget", runs.at_budgets, [1])
    refuses(ArgumentError, "a column 'loss' already", make(table()).best_so_far, name="loss")
