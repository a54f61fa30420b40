"""Relative ranks: the numbers of pandas and scipy, what counts as a comparison, and what cannot be ranked."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pandas as pd
import polars as pl
import pytest
from pytest import approx
from scipy import stats

import lmemtest as lt
from lmemtest.errors import ArgumentError, DataError, UnknownColumnError


def relative_ranks(runs, **options):
    return lt.anytime(runs).ranks(**options)


def make_table(
    *, algorithms=3, benchmarks=4, priors=("bad", "good"), seeds=5, budgets=(1, 2, 4), seed=0, digits=None
) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    rows = itertools.product(range(algorithms), range(benchmarks), priors, range(seeds), budgets)
    table = pd.DataFrame(list(rows), columns=["algorithm", "task", "prior", "seed", "budget"])
    loss = rng.normal(size=len(table)) + 0.4 * table["algorithm"]
    table["loss"] = loss if digits is None else loss.round(digits)
    names = {"algorithm": "a" + table["algorithm"].astype(str), "task": "b" + table["task"].astype(str)}
    return table.assign(**names)


def runs_of(table, **roles) -> lt.Runs:
    given = {"benchmark": "task", "seed": "seed", "budget": "budget", "metafeatures": ("prior",)} | roles
    return lt.Runs(table, score="loss", **({"direction": "minimize", "algorithm": "algorithm"} | given))


def with_ranks(table, ascending=True) -> pd.DataFrame:
    groups = table.groupby(["task", "prior", "seed", "budget"])
    return table.assign(rank=groups["loss"].rank(ascending=ascending))


def at(result, panel="all") -> pd.DataFrame:
    table = result.table if result.by is None else result.table[result.table[result.by] == panel]
    return table.set_index(["algorithm", "budget"])


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
@pytest.mark.parametrize("digits", [None, 0])
def test_ranks_and_both_intervals_are_those_of_pandas_and_scipy(direction, digits):
    table = make_table(digits=digits)  # without digits there are many ties
    ranked = with_ranks(table, ascending=direction == "minimize")
    runs = runs_of(table, direction=direction)
    for over, unit in (("benchmarks", "task"), ("seeds", "seed")):
        means = ranked.groupby(["algorithm", "budget", unit])["rank"].mean()
        want = means.groupby(level=[0, 1]).agg(["mean", "sem", "count"])
        got = at(relative_ranks(runs, unit=over, level=0.9))
        assert got["rank"].to_numpy() == approx(want["mean"].to_numpy())
        assert got["se"].to_numpy() == approx(want["sem"].to_numpy(), abs=1e-12)
        assert (got["n"] == want["count"]).all()
        half = stats.t.ppf(0.95, want["count"] - 1) * want["sem"]
        assert got["ci_low"].to_numpy() == approx((want["mean"] - half).clip(lower=1).to_numpy())
        assert got["ci_high"].to_numpy() == approx((want["mean"] + half).clip(upper=3).to_numpy())


def test_panels_are_the_same_analysis_of_the_parts():
    table = make_table()
    whole = relative_ranks(runs_of(table), by="prior")
    assert whole.panels == ("all", "bad", "good")
    assert list(whole.to_frame().columns) == [
        "prior", "algorithm", "budget", "rank", "se", "ci_low", "ci_high", "n",
    ]  # fmt: skip
    pd.testing.assert_frame_equal(at(whole).drop(columns="prior"), at(relative_ranks(runs_of(table))))
    for level in ("bad", "good"):
        part = relative_ranks(runs_of(table[table["prior"] == level]))
        pd.testing.assert_frame_equal(at(whole, level).drop(columns="prior"), at(part))


def test_instances_of_a_benchmark_are_averaged_first():
    """b0 has two instances and b1 one: each benchmark counts one half."""
    rows = [("a", "b0", "bad", 0.0), ("c", "b0", "bad", 1.0), ("a", "b0", "good", 0.0), ("c", "b0", "good", 1.0)]
    rows += [("a", "b1", "bad", 1.0), ("c", "b1", "bad", 0.0)]
    table = pd.DataFrame(rows, columns=["algorithm", "task", "prior", "loss"])
    got = relative_ranks(runs_of(table, seed=None, budget=None))
    assert got.to_frame()["rank"].tolist() == [1.5, 1.5]
    assert got.to_frame()["n"].tolist() == [2, 2]


def test_ranks_add_up_and_do_not_change_with_a_monotone_score():
    table = make_table(digits=0)
    first = relative_ranks(runs_of(table)).to_frame()
    assert first.groupby("budget")["rank"].sum().tolist() == approx([6.0] * 3)
    second = relative_ranks(runs_of(table.assign(loss=np.exp(table["loss"])))).to_frame()
    pd.testing.assert_frame_equal(first, second)
    shuffled = table.sample(frac=1, random_state=np.random.default_rng(1))
    pd.testing.assert_frame_equal(first, relative_ranks(runs_of(shuffled)).to_frame())
    pd.testing.assert_frame_equal(first, relative_ranks(runs_of(pl.from_pandas(shuffled).lazy())).to_frame())


def test_priorband_ranks_are_its_own_column(data_dir):
    table = pd.read_parquet(data_dir / "priorband.parquet")
    runs = lt.Runs(
        table, score="value", direction="minimize", algorithm="algorithm", benchmark="benchmark", seed="seed",
        budget="used_fidelity", metafeatures=("prior",),
    )  # fmt: skip
    result = relative_ranks(runs, by="prior", unit="seeds")
    seeds = table.groupby(["prior", "algorithm", "used_fidelity", "seed"])["rel_rank"].mean()
    want = seeds.groupby(level=[0, 1, 2]).agg(["mean", "sem"])
    got = result.to_frame().set_index(["prior", "algorithm", "budget"]).loc[want.index]
    assert got["rank"].to_numpy() == approx(want["mean"].to_numpy())
    assert got["se"].to_numpy() == approx(want["sem"].to_numpy(), abs=1e-12)
    assert (
        relative_ranks(runs, by="prior")
        .sentences()[2]
        .startswith("prior bad: PB has the best observed rank from used_fidelity 12 on (before: HB);")
    )


# ---------------------------------------------------------------------- budgets


def test_only_budgets_that_all_runs_have_are_ranked():
    table = make_table()
    short = table[~((table["algorithm"] == "a1") & (table["budget"] == 2) & (table["task"] == "b3"))]
    got = relative_ranks(runs_of(short))
    assert got.budgets == (1, 4)
    assert got.notes[0] == (
        "Ranks are at the 2 values of budget that all runs have; 1 other was left out (budgets=[...] ranks at any, "
        "by each run's last score up to them)."
    )


def test_given_budgets_take_the_last_score_up_to_them():
    table = make_table()
    own = table["algorithm"].map({"a0": 0.0, "a1": 0.25, "a2": 0.5})
    apart = table.assign(budget=table["budget"] + own)
    got = relative_ranks(runs_of(apart), budgets=[9, 1.5, 2.3, 3.0])
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


def test_budgets_without_anything_in_common_are_refused():
    table = make_table()
    table["budget"] = table["budget"] + table["algorithm"].map({"a0": 0.0, "a1": 0.25, "a2": 0.5})
    message = (
        "the runs have no value of 'budget' in common, so there is no budget at which all algorithms can be ranked. "
        "Name budgets: anytime(runs).ranks(budgets=[...]) takes the last score of each run up to them."
    )
    with pytest.raises(DataError, match=f"^{re.escape(message)}$"):
        relative_ranks(runs_of(table))


@pytest.mark.parametrize(
    ("budgets", "message"),
    [
        ([0.5, 2], "budgets must not be below 1, where the last of the runs begins, got 0.5: before its first score a "
                   "run has no rank."),
        ([], "budgets must be one or more finite numbers, got []."),
        (["x"], "budgets must be numbers, got ['x']."),
        ([np.inf], "budgets must be one or more finite numbers, got [inf]."),
    ],
)  # fmt: skip
def test_wrong_budgets_are_refused(budgets, message):
    with pytest.raises(ArgumentError, match=f"^{re.escape(message)}$"):
        relative_ranks(runs_of(make_table()), budgets=budgets)


def test_without_a_budget_there_is_one_rank_per_algorithm():
    table = make_table(budgets=(1,)).drop(columns="budget")
    got = relative_ranks(runs_of(table, budget=None), by="prior")
    assert got.budgets == (None,)
    assert len(got.to_frame()) == 9
    assert "budget" not in got.to_table().frame
    assert re.match(r"All instances: a0 has the best observed rank \(mean rank 1\.\d\d\); its 95 % interval is (not )?"
                    r"clear of all others\.$", got.sentences()[0])  # fmt: skip
    with pytest.raises(ArgumentError, match=r"^budgets needs runs with a budget: Runs\(\.\.\., budget=\.\.\.\)\.$"):
        relative_ranks(runs_of(table, budget=None), budgets=[1])


# ---------------------------------------------------------------------- samples


def test_one_benchmark_leaves_the_seeds():
    table = make_table(benchmarks=1)
    got = relative_ranks(runs_of(table))
    assert (got.unit, got.n_benchmarks, got.n_seeds) == ("seeds", 1, 5)
    assert "There is one benchmark only, so the intervals are over seeds." in got.notes
    message = (
        "unit='benchmarks' needs at least 2 benchmarks, but there is one. Use unit='seeds': intervals for exactly "
        "these benchmarks."
    )
    with pytest.raises(ArgumentError, match=f"^{re.escape(message)}$"):
        relative_ranks(runs_of(table), unit="benchmarks")
    split = relative_ranks(runs_of(make_table()), by="task")
    assert split.unit == "seeds"
    assert "There is one benchmark only in b0, b1, b2, b3, so the intervals are over seeds." in split.notes


def test_one_benchmark_with_one_seed_is_refused():
    message = (
        "one benchmark leaves the seeds as the sample, which needs at least 2 seeds that all instances have, but there "
        "are fewer. Name the column of the seeds, Runs(..., seed=...), or add runs with other seeds."
    )
    with pytest.raises(ArgumentError, match=f"^{re.escape(message)}$"):
        relative_ranks(runs_of(make_table(benchmarks=1, seeds=1)))
    message = message.replace("one benchmark leaves the seeds as the sample, which needs", "unit='seeds' needs")
    with pytest.raises(ArgumentError, match=f"^{re.escape(message)}$"):
        relative_ranks(runs_of(make_table(), seed=None), unit="seeds")


def test_without_seeds_repeated_rows_are_averaged():
    table = make_table()
    got = relative_ranks(runs_of(table, seed=None)).to_frame()
    means = table.groupby(["algorithm", "task", "prior", "budget"], as_index=False)["loss"].mean().assign(seed=0)
    want = with_ranks(means).groupby(["algorithm", "budget"])["rank"].mean()
    assert got["rank"].to_numpy() == approx(want.to_numpy())
    assert relative_ranks(runs_of(table, seed=None)).notes[0] == (
        "Repeated rows of an algorithm on an instance (no column of seeds is named) were averaged before they were "
        "ranked."
    )


def test_seeds_that_some_instances_lack_are_left_out_of_seed_means():
    table = make_table()
    table = table[~((table["task"] == "b0") & (table["seed"] == 4))]
    got = relative_ranks(runs_of(table), unit="seeds")
    assert (got.to_frame()["n"] == 4).all()
    assert "Seeds that some instances do not have were left out." in got.notes
    kept = with_ranks(table[table["seed"] < 4])
    assert at(got)["rank"].to_numpy() == approx(kept.groupby(["algorithm", "budget"])["rank"].mean().to_numpy())


# ---------------------------------------------------------------------- gaps


def test_an_algorithm_without_runs_on_an_instance_is_named():
    table = make_table()
    table = table[~((table["algorithm"] == "a2") & (table["task"] == "b1") & (table["prior"] == "good"))]
    message = (
        "'a2' has no run on b1 / good (1 such gaps in all), so ranks there would be among fewer algorithms. Filter the "
        "runs to algorithms or benchmarks without gaps; runs.check() lists them."
    )
    with pytest.raises(DataError, match=f"^{re.escape(message)}$"):
        relative_ranks(runs_of(table))


def test_unpaired_seeds_are_refused_and_single_gaps_are_left_out():
    table = make_table()
    unpaired = table.assign(seed=table["seed"] + 10 * (table["algorithm"] == "a1"))
    message = (
        "no 'seed' was run by all 3 algorithms on b0 / bad, b0 / good, b1 / bad, b1 / good, b2 / bad, ... (8 in all), "
        "so their runs cannot be ranked against each other. Give runs that belong together the same seed, or leave the "
        "seeds out: Runs(..., seed=None) ranks the means."
    )
    with pytest.raises(DataError, match=f"^{re.escape(message)}$"):
        relative_ranks(runs_of(unpaired))
    gap = table[~((table["algorithm"] == "a1") & (table["task"] == "b0") & (table["seed"] == 2))]
    got = relative_ranks(runs_of(gap))
    assert got.notes[0] == "2 pairs of instance and seed that some algorithm does not have were left out."
    assert got.budgets == (1, 2, 4)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"by": "priors"}, UnknownColumnError, "by names the column 'priors', which is not in the data. Columns: "
         "algorithm, task, prior, seed, budget, loss. Did you mean 'prior'?"),
        ({"by": "seed"}, ArgumentError, "by must name a column that describes instances, such as a metafeature, got "
         "'seed', which is the score, the algorithm, the seed or the budget."),
        ({"unit": "runs"}, ArgumentError, "unit must be 'families' or 'benchmarks' or 'seeds', got 'runs'."),
        ({"level": 95}, ArgumentError, "level must be a number between 0 and 1 (both excluded), got 95. Write 0.95?"),
    ],
)  # fmt: skip
def test_wrong_arguments_are_refused(arguments, error, message):
    with pytest.raises(error, match=f"^{re.escape(message)}$"):
        relative_ranks(runs_of(make_table()), **arguments)


def test_a_column_that_changes_within_instances_cannot_split_them():
    table = make_table()
    table["half"] = table["seed"] % 2
    message = (
        "by must name a column that is constant within each instance (task:prior), but 'half' changes there. If it "
        "describes the circumstances of a run, name it in Runs(..., metafeatures=('half',))."
    )
    with pytest.raises(ArgumentError, match=f"^{re.escape(message)}$"):
        relative_ranks(runs_of(table), by="half")
    family = relative_ranks(
        runs_of(table.assign(family=table["task"].map(lambda name: int(name[1]) // 2))), by="family"
    )
    assert family.panels == ("all", "0", "1")
    assert family.unit == "benchmarks"


def test_missing_scores_and_other_tables_are_refused():
    table = make_table()
    table.loc[3, "loss"] = np.nan
    with pytest.raises(DataError, match=r"^1 of 360 rows has a score that is missing or infinite"):
        relative_ranks(runs_of(table))
    with pytest.raises(ArgumentError, match=r"^runs must be Runs, got DataFrame\."):
        relative_ranks(table)


# ---------------------------------------------------------------------- words


def two_courses(first, second, spread=0.0) -> lt.Runs:
    """Two algorithms whose order at each budget is given."""
    rows = []
    for task, budget in itertools.product(range(6), range(len(first))):
        noise = spread * (-1) ** task
        rows += [("a", task, budget, first[budget] + noise), ("c", task, budget, second[budget])]
    table = pd.DataFrame(rows, columns=["algorithm", "task", "budget", "loss"])
    return runs_of(table, seed=None, metafeatures=())


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
    result = relative_ranks(runs_of(make_table(budgets=range(1, 25))), by="prior")
    shown = result.to_table()
    assert sorted(set(shown.frame["budget"])) == [1, 7, 13, 18, 24]
    assert shown.notes[0] == "5 of 24 budgets; all are in to_frame()."
    assert shown.notes[-2].startswith("Ranks are among these 3 algorithms:")
    assert "Intervals: 95 % t intervals over benchmarks: mean ranks to expect" in result.summary()
    assert result.leaders.columns.tolist() == ["prior", "budget", "best", "rank", "apart"]
