"""Relative ranks: the numbers of pandas and scipy, what counts as a comparison, and what cannot be ranked."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from pytest import approx
from refusals import refusal
from scipy import stats
from study import as_runs, make_table

import lmemtest as lt
from lmemtest.errors import ArgumentError, DataError, UnknownColumnError


def relative_ranks(runs, **options):
    return lt.anytime(runs).ranks(**options)


def table_of(*, benchmarks=4, priors=("bad", "good"), seeds=5, budgets=(1, 2, 4), digits=12) -> pd.DataFrame:
    names = ["a0", "a1", "a2"], [f"b{i}" for i in range(benchmarks)]
    options = {"sds": {}, "shift": [0.0, 0.4, 0.8], "benchmark": "task", "rng": 0}
    table = make_table(*names, seeds, budgets, priors=priors, **options)
    return table.assign(loss=table["loss"].round(digits))


def with_ranks(table, ascending=True) -> pd.DataFrame:
    groups = table.groupby(["task", "prior", "seed", "budget"])
    return table.assign(rank=groups["loss"].rank(ascending=ascending))


def at(result, panel="all") -> pd.DataFrame:
    table = result.table if result.by is None else result.table[result.table[result.by] == panel]
    return table.set_index(["algorithm", "budget"])


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
@pytest.mark.parametrize("digits", [12, 0])
def test_ranks_and_both_intervals_are_those_of_pandas_and_scipy(direction, digits):
    table = table_of(digits=digits)  # without digits there are many ties
    ranked = with_ranks(table, ascending=direction == "minimize")
    runs = as_runs(table, direction=direction)
    for over, unit in (("benchmarks", "task"), ("seeds", "seed")):
        means = ranked.groupby(["algorithm", "budget", unit])["rank"].mean()
        want = means.groupby(level=[0, 1]).agg(["mean", "sem", "count"])
        got = at(relative_ranks(runs, unit=over, alpha=0.1))
        assert got["rank"].to_numpy() == approx(want["mean"].to_numpy())
        assert got["se"].to_numpy() == approx(want["sem"].to_numpy(), abs=1e-12)
        assert (got["n"] == want["count"]).all()
        half = stats.t.ppf(0.95, want["count"] - 1) * want["sem"]
        assert got["ci_low"].to_numpy() == approx((want["mean"] - half).clip(lower=1).to_numpy())
        assert got["ci_high"].to_numpy() == approx((want["mean"] + half).clip(upper=3).to_numpy())


def test_panels_are_the_same_analysis_of_the_parts():
    table = table_of()
    whole = relative_ranks(as_runs(table), by="prior")
    assert whole.panels == ("all", "bad", "good")
    assert " ".join(whole.to_frame()) == "prior algorithm budget rank se ci_low ci_high n"
    pd.testing.assert_frame_equal(at(whole).drop(columns="prior"), at(relative_ranks(as_runs(table))))
    for level in ("bad", "good"):
        part = relative_ranks(as_runs(table[table["prior"] == level]))
        pd.testing.assert_frame_equal(at(whole, level).drop(columns="prior"), at(part))


def test_instances_of_a_benchmark_are_averaged_first():
    """b0 has two instances and b1 one: each benchmark counts one half."""
    rows = [("a", "b0", "bad", 0.0), ("c", "b0", "bad", 1.0), ("a", "b0", "good", 0.0), ("c", "b0", "good", 1.0)]
    rows += [("a", "b1", "bad", 1.0), ("c", "b1", "bad", 0.0)]
    table = pd.DataFrame(rows, columns=["algorithm", "task", "prior", "loss"])
    got = relative_ranks(as_runs(table, seed=None, budget=None))
    assert got.to_frame()["rank"].tolist() == [1.5, 1.5]
    assert got.to_frame()["n"].tolist() == [2, 2]


def test_ranks_add_up_and_do_not_change_with_a_monotone_score():
    table = table_of(digits=0)
    first = relative_ranks(as_runs(table)).to_frame()
    assert first.groupby("budget")["rank"].sum().tolist() == approx([6.0] * 3)
    second = relative_ranks(as_runs(table.assign(loss=np.exp(table["loss"])))).to_frame()
    pd.testing.assert_frame_equal(first, second)
    shuffled = table.sample(frac=1, random_state=np.random.default_rng(1))
    pd.testing.assert_frame_equal(first, relative_ranks(as_runs(shuffled)).to_frame())
    pd.testing.assert_frame_equal(first, relative_ranks(as_runs(pl.from_pandas(shuffled).lazy())).to_frame())


def test_priorband_ranks_are_its_own_column(data_dir):
    table = pd.read_parquet(data_dir / "priorband.parquet")
    runs = as_runs(table, score="value", budget="used_fidelity")
    result = relative_ranks(runs, by="prior", unit="seeds")
    seeds = table.groupby(["prior", "algorithm", "used_fidelity", "seed"])["rel_rank"].mean()
    want = seeds.groupby(level=[0, 1, 2]).agg(["mean", "sem"])
    got = result.to_frame().set_index(["prior", "algorithm", "budget"]).loc[want.index]
    assert got["rank"].to_numpy() == approx(want["mean"].to_numpy())
    assert got["se"].to_numpy() == approx(want["sem"].to_numpy(), abs=1e-12)
    said = relative_ranks(runs, by="prior").sentences()[2]
    assert said.startswith("prior bad: PB has the best observed rank from used_fidelity 12 on (before: HB);")


# ---------------------------------------------------------------------- budgets


def test_only_budgets_that_all_runs_have_are_ranked():
    table = table_of()
    short = table[~((table["algorithm"] == "a1") & (table["budget"] == 2) & (table["task"] == "b3"))]
    got = relative_ranks(as_runs(short))
    assert got.budgets == (1, 4)
    assert got.notes[0] == (
        "Ranks are at the 2 values of budget that all runs have; 1 other was left out (budgets=[...] ranks at any, "
        "by each run's last score up to them)."
    )


def test_given_budgets_take_the_last_score_up_to_them():
    table = table_of()
    own = table["algorithm"].map({"a0": 0.0, "a1": 0.25, "a2": 0.5})
    apart = table.assign(budget=table["budget"] + own)
    assert refusal(lambda: relative_ranks(as_runs(apart))) == (
        "the runs have no value of 'budget' in common, so there is no budget at which all algorithms can be ranked. "
        "Name budgets: anytime(runs).ranks(budgets=[...]) takes the last score of each run up to them."
    )
    got = relative_ranks(as_runs(apart), budgets=[9, 1.5, 2.3, 3.0])
    assert got.budgets == (1.5, 2.3, 3.0, 9.0)
    at_one, at_two, at_four = (table[table["budget"] == budget] for budget in (1, 2, 4))
    mixed = pd.concat([at_two[at_two["algorithm"] != "a2"], at_one[at_one["algorithm"] == "a2"]])
    for budget, part in ((1.5, at_one), (2.3, mixed), (3.0, at_two), (9.0, at_four)):
        want = with_ranks(part.assign(budget=0)).groupby("algorithm")["rank"].mean()
        rows = got.to_frame()[lambda t, budget=budget: t["budget"] == budget]
        assert rows["rank"].to_numpy() == approx(want.to_numpy())
    assert got.notes[:2] == (
        "At each budget every run has its last score so far, which suits scores of the best so far.",
        "Some runs end at 4; beyond it they keep their last score.",
    )


def test_without_a_budget_there_is_one_rank_per_algorithm():
    table = table_of(budgets=(1,)).drop(columns="budget")
    got = relative_ranks(as_runs(table, budget=None), by="prior")
    assert got.budgets == (None,)
    assert len(got.to_frame()) == 9
    assert "budget" not in got.to_table().frame
    assert re.match(r"All instances: a0 has the best observed rank \(mean rank 1\.\d\d\); its 95 % interval is (not )?"
                    r"clear of all others\.$", got.sentences()[0])  # fmt: skip
    with pytest.raises(ArgumentError, match=r"^budgets needs runs with a budget: Runs\(\.\.\., budget=\.\.\.\)\.$"):
        relative_ranks(as_runs(table, budget=None), budgets=[1])


# ---------------------------------------------------------------------- samples


def test_one_benchmark_leaves_the_seeds():
    table = table_of(benchmarks=1)
    got = relative_ranks(as_runs(table))
    assert (got.unit, got.n_benchmarks, got.n_seeds) == ("seeds", 1, 5)
    assert "There is one benchmark only, so the intervals are over seeds." in got.notes
    assert refusal(lambda: relative_ranks(as_runs(table), unit="benchmarks"), ArgumentError) == (
        "unit='benchmarks' needs at least 2 benchmarks, but there is one. Use unit='seeds': intervals for exactly "
        "these benchmarks."
    )
    split = relative_ranks(as_runs(table_of()), by="task")
    assert split.unit == "seeds"
    assert "There is one benchmark only in b0, b1, b2, b3, so the intervals are over seeds." in split.notes


def test_one_benchmark_with_one_seed_is_refused():
    rest = (
        "at least 2 seeds that all instances have, but there are fewer. Name the column of the seeds, "
        "Runs(..., seed=...), or add runs with other seeds."
    )
    assert refusal(lambda: relative_ranks(as_runs(table_of(benchmarks=1, seeds=1))), ArgumentError) == (
        f"one benchmark leaves the seeds as the sample, which needs {rest}"
    )
    assert refusal(lambda: relative_ranks(as_runs(table_of(), seed=None), unit="seeds"), ArgumentError) == (
        f"unit='seeds' needs {rest}"
    )


def test_without_seeds_repeated_rows_are_averaged():
    table = table_of()
    got = relative_ranks(as_runs(table, seed=None)).to_frame()
    means = table.groupby(["algorithm", "task", "prior", "budget"], as_index=False)["loss"].mean().assign(seed=0)
    want = with_ranks(means).groupby(["algorithm", "budget"])["rank"].mean()
    assert got["rank"].to_numpy() == approx(want.to_numpy())
    assert relative_ranks(as_runs(table, seed=None)).notes[0] == (
        "Repeated rows of an algorithm on an instance (no column of seeds is named) were averaged before they were "
        "ranked."
    )


def test_seeds_that_some_instances_lack_are_left_out_of_seed_means():
    table = table_of()
    table = table[~((table["task"] == "b0") & (table["seed"] == 4))]
    got = relative_ranks(as_runs(table), unit="seeds")
    assert (got.to_frame()["n"] == 4).all()
    assert "Seeds that some instances do not have were left out." in got.notes
    kept = with_ranks(table[table["seed"] < 4])
    assert at(got)["rank"].to_numpy() == approx(kept.groupby(["algorithm", "budget"])["rank"].mean().to_numpy())


# ---------------------------------------------------------------------- gaps


def test_gaps_and_unpaired_seeds_are_refused_and_single_gaps_are_left_out():
    table = table_of()
    lost = as_runs(table.assign(loss=table["loss"].where(table.index != 3)))
    assert refusal(lambda: relative_ranks(lost)).startswith("1 of 360 rows has a score that is missing or infinite")
    never = as_runs(table.query("not (algorithm == 'a2' and task == 'b1' and prior == 'good')"))
    assert refusal(lambda: relative_ranks(never)) == (
        "'a2' has no run on b1 / good (1 such gaps in all), so ranks there would be among fewer algorithms. Filter the "
        "runs to algorithms or benchmarks without gaps; runs.check() lists them."
    )
    unpaired = table.assign(seed=table["seed"] + 10 * (table["algorithm"] == "a1"))
    assert refusal(lambda: relative_ranks(as_runs(unpaired)), DataError) == (
        "no 'seed' was run by all 3 algorithms on b0 / bad, b0 / good, b1 / bad, b1 / good, b2 / bad, ... (8 in all), "
        "so their runs cannot be ranked against each other. Give runs that belong together the same seed, or leave the "
        "seeds out: Runs(..., seed=None) ranks the means."
    )
    gap = table[~((table["algorithm"] == "a1") & (table["task"] == "b0") & (table["seed"] == 2))]
    got = relative_ranks(as_runs(gap))
    assert got.notes[0] == "2 pairs of instance and seed that some algorithm does not have were left out."
    assert got.budgets == (1, 2, 4)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"budgets": [0.5, 2]}, ArgumentError, "budgets must not be below 1, where the last of the runs begins, got "
         "0.5: before its first score a run has no rank."),
        ({"budgets": []}, ArgumentError, "budgets must be one or more finite numbers, got []."),
        ({"budgets": ["x"]}, ArgumentError, "budgets must be numbers, got ['x']."),
        ({"budgets": [np.inf]}, ArgumentError, "budgets must be one or more finite numbers, got [inf]."),
        ({"by": "priors"}, UnknownColumnError, "by names the column 'priors', which is not in the data. Columns: "
         "task, prior, algorithm, seed, budget, loss. Did you mean 'prior'?"),
        ({"by": "seed"}, ArgumentError, "by must name a column that describes instances, such as a metafeature, got "
         "'seed', which is the score, the algorithm, the seed or the budget."),
        ({"unit": "runs"}, ArgumentError, "unit must be 'families' or 'benchmarks' or 'seeds', got 'runs'."),
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused(arguments, error, message):
    assert refusal(lambda: relative_ranks(as_runs(table_of()), **arguments), error) == message


def test_a_column_that_changes_within_instances_cannot_split_them():
    table = table_of()
    table["half"] = table["seed"] % 2
    assert refusal(lambda: relative_ranks(as_runs(table), by="half"), ArgumentError) == (
        "by must name a column that is constant within each instance (task:prior), but 'half' changes there. If it "
        "describes the circumstances of a run, name it in Runs(..., metafeatures=('half',))."
    )
    table["family"] = table["task"].str[1].astype(int) // 2
    family = relative_ranks(as_runs(table), by="family")
    assert (family.panels, family.unit) == (("all", "0", "1"), "benchmarks")


# ---------------------------------------------------------------------- words


def two_courses(first, second, spread=0.0) -> lt.Runs:
    """Two algorithms whose order at each budget is given."""
    rows = []
    for task, budget in itertools.product(range(6), range(len(first))):
        noise = spread * (-1) ** task
        rows += [("a", task, budget, first[budget] + noise), ("c", task, budget, second[budget])]
    table = pd.DataFrame(rows, columns=["algorithm", "task", "budget", "loss"])
    return as_runs(table, seed=None, metafeatures=())


@pytest.mark.parametrize(
    ("runs", "sentence"),
    [
        (two_courses([0, 0, 0], [1, 1, 1]),
         "a has the best observed rank at all 3 budgets; its 95 % interval is clear of all others at all of these 3 "
         "budgets."),
        (two_courses([1, 0, 0], [0, 1, 1]),
         "a has the best observed rank from budget 1 on (before: c); its 95 % interval is clear of all others at all "
         "of these 2 budgets."),
        (two_courses([1, 1, 0], [0, 0, 1]),
         "a has the best observed rank at the last budget only (before: c); its 95 % interval is clear of all others "
         "there."),
        (two_courses([0, 0], [0, 0], spread=1.0),
         "a and c have the best observed rank at all 2 budgets."),
    ],
)  # fmt: skip
def test_sentences_say_who_leads_from_where(runs, sentence):
    assert relative_ranks(runs).sentences() == (sentence,)


def test_the_table_shows_some_budgets_and_all_notes():
    result = relative_ranks(as_runs(table_of(budgets=range(1, 25))), by="prior")
    shown = result.to_table()
    assert sorted(set(shown.frame["budget"])) == [1, 7, 13, 18, 24]
    assert shown.notes[0] == "5 of 24 budgets; all are in to_frame()."
    assert shown.notes[-2].startswith("Ranks are among these 3 algorithms:")
    assert "Intervals: 95 % t intervals over benchmarks: mean ranks to expect" in result.summary()
    assert result.leaders.columns.tolist() == ["prior", "budget", "best", "rank", "apart"]
