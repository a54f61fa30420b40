"""Runs made of logs: against a loop over the rows, on every kind of table; rules, notes and refusals."""

from __future__ import annotations

import importlib
import re
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from levels import half
from refusals import refuses

import lmemtest as lt
from lmemtest.errors import ArgumentError, DataError, UnknownColumnError


def of_dask(frame: pd.DataFrame) -> Any:
    """Of two partitions, in another order; what takes long to import is imported by the tests that use it."""
    import dask.dataframe as dd

    return dd.concat([dd.from_pandas(frame[i::2].reset_index(drop=True), npartitions=1) for i in (0, 1)])


pytestmark = pytest.mark.filterwarnings("ignore:The 'future.infer_string' option is deprecated")
KINDS = {
    "polars": pl.from_pandas,
    "lazy": lambda f: pl.from_pandas(f).lazy(),
    "pyarrow": pa.Table.from_pandas,
    "duckdb": duckdb.from_df,
    "ibis": lambda f: importlib.import_module("ibis").memtable(f),
    "dask": of_dask,
}
RUN = ["algorithm", "benchmark", "seed"]


def logs(seed: int = 0, *, most: int = 12, direction: str = "minimize") -> pd.DataFrame:
    """Searches of some evaluations each: unsorted, with tied times, repeated rows and failures, of any length."""
    rng = np.random.default_rng(seed)
    parts = []
    for i, (algorithm, benchmark, number) in enumerate((a, b, s) for a in "AB" for b in "xy" for s in (0, 1)):
        n = int(rng.integers(2, most + 1))
        run = pd.DataFrame({"algorithm": algorithm, "benchmark": benchmark, "seed": number, "limit": 30.0}, range(n))
        run["seconds"] = rng.integers(0, 20, n) / 2.0
        run["epochs"] = rng.integers(1, 28, n) / 10.0
        run["loss"] = rng.normal(size=n).round(1) + i
        run.loc[rng.random(n) < 0.3, "loss"] = rng.choice([np.nan, np.inf, -np.inf])
        run.loc[run.index[-1], "loss"] = float(i)
        parts.append(run)
    table = pd.concat(parts)
    table["loss"] *= 1.0 if direction == "minimize" else -1.0
    table = pd.concat([table, table.sample(frac=0.2, random_state=seed)])
    return table.sample(frac=1.0, random_state=seed).reset_index(drop=True)


def make(table, *, direction="minimize", **options):
    options = {"time": "seconds", "run": RUN, "grid": [2, 5.5, 12], "before": "missing"} | options
    return lt.trajectories(table, score="loss", direction=direction, **options)


def looped(table: pd.DataFrame, grid, *, direction="minimize", cost=None, full=None) -> dict[tuple, float]:
    """The definition, one row after the other."""
    out = {}
    for key, run in table.groupby(RUN):
        spent = []
        for row in run.itertuples():
            paid = run.loc[run["seconds"] <= row.seconds, cost].sum() if cost else row.seconds
            spent.append(paid / full[key[1]] if full else paid)
        for budget in grid:
            best = np.nan
            for when, score in zip(spent, run["loss"], strict=True):
                if when <= budget * (1 + 1e-9) and np.isfinite(score):
                    best = score if np.isnan(best) else (min if direction == "minimize" else max)(best, score)
            out[(*key, budget)] = best
    return out


def found(runs: lt.Runs) -> dict[tuple, float]:
    return runs.to_frame().set_index([*RUN, runs.budget])[runs.score].to_dict()


def assert_same(got: dict, want: dict) -> None:
    assert got.keys() == want.keys()
    np.testing.assert_array_equal([got[key] for key in want], list(want.values()))


# ------------------------------------------------------------------ against the definition


@settings(max_examples=6, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    grid=st.lists(st.floats(0, 40, width=16), min_size=1, max_size=5, unique=True),
    direction=st.sampled_from(["minimize", "maximize"]),
)
def test_the_best_so_far_at_each_budget_is_that_of_a_loop(seed, grid, direction):
    table = logs(seed, most=5, direction=direction)
    before, want = table.copy(), looped(table, sorted(grid), direction=direction)
    twice = pd.concat([table, table]).sample(frac=1.0, random_state=2)  # order and copies of rows do not matter
    for rows in (table, twice):
        assert_same(found(make(rows, direction=direction, grid=grid)), want)
    pd.testing.assert_frame_equal(table, before)


@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 10**6))
def test_costs_are_paid_in_the_order_of_times_and_ties_together(seed):
    table, grid = logs(seed, most=6), [0.3, 1.0, 2.7, 9.0]
    runs = make(table, cost="epochs", grid=grid)
    assert_same(found(runs), looped(table, grid, cost="epochs"))
    assert runs.budget == "epochs_total"


@pytest.mark.parametrize(("rule", "over_runs"), [("longest", "max"), ("shortest", "min")])
def test_budgets_are_fractions_of_a_run_on_each_benchmark(rule, over_runs):
    table, grid = logs(3), [0.25, 0.5, 1.0]
    ends = table.groupby(["benchmark", "algorithm", "seed"])["seconds"].max().groupby("benchmark").agg(over_runs)
    runs = make(table, full_budget=rule, grid=grid)
    assert runs.budget == "seconds_fraction"
    assert_same(found(runs), looped(table, grid, full=ends.to_dict()))
    given = make(table.assign(full=table["benchmark"].map(ends)), full_budget="full", grid=grid)
    assert_same(found(given), found(runs))


OPTIONS = [{"cost": "epochs"}, {"full_budget": "shortest", "end": "limit", "grid": "log"}]


@pytest.mark.daily(3)
@pytest.mark.parametrize(("options", "kind"), half(OPTIONS, KINDS))
def test_every_kind_of_table_gives_the_same_runs(kind, options):
    table = logs(7, most=12)
    table["seconds"] += 1.0
    if kind == "dask" and "cost" in options:
        with pytest.raises(ArgumentError, match="cost needs running totals within runs, which Dask has not"):
            make(KINDS[kind](table), **options)
        return
    with importlib.import_module("dask").config.set(scheduler="synchronous"):
        want, got = make(table, **options), make(KINDS[kind](table), **options)
    assert (got.roles(), got.notes) == (want.roles(), want.notes)
    left, right = (runs.to_frame() for runs in (got, want))
    pd.testing.assert_frame_equal(left, right, check_dtype=False, rtol=1e-12, atol=0)


def test_families_have_their_role_and_tell_runs_apart():
    table = logs().assign(suite="s", space=lambda t: "of " + t["benchmark"])
    found = make(table, run=[*RUN, "space"], family=["suite", "space"])
    assert (found.family, found.metafeatures) == (("suite", "space"), ())
    plain = make(table)
    pd.testing.assert_frame_equal(found.to_frame().drop(columns=["suite", "space"]), plain.to_frame())
    crossed = pd.concat([logs().assign(space=space, loss=lambda t, k=k: t["loss"] + k) for k, space in enumerate("uv")])
    both = make(crossed, family="space")
    assert both.study.crossed == ("space",)
    assert both.n_rows == 2 * plain.n_rows


# ------------------------------------------------------------------ what comes out


def small(**columns) -> pd.DataFrame:
    table = {"algorithm": list("AAABB"), "seconds": [1, 4, 9, 2, 8], "loss": [5.0, 3.0, 4.0, 6.0, 1.0]}
    return pd.DataFrame({**table, **columns})


def test_runs_are_ready_for_every_question():
    table = logs(1, most=30).rename(columns={"algorithm": "tool", "benchmark": "task"})
    table["prior"] = "good"
    runs = lt.trajectories(
        table, time="seconds", score="loss", direction="minimize", run=["prior", "tool", "task", "seed"],
        algorithm="tool", benchmark="task", seed_shared=False, before="worst", grid=[3, 6, 9],
    )  # fmt: skip
    assert (runs.algorithm, runs.benchmark, runs.seed, runs.budget) == ("tool", "task", "seed", "seconds")
    assert (runs.score, runs.metafeatures, runs.ignore) == ("loss_best_so_far", ("prior",), ("carried",))
    assert (runs.seed_shared, runs.n_rows) == (False, 2 * 2 * 2 * 3)
    kinds = {finding.kind for finding in runs.check(rules_only=True).findings}
    assert not kinds & {"not_best_so_far", "broken_trace", "single_trials", "no_role", "duplicates"}
    regret = runs.normalize("normalized_regret", by="benchmark").to_frame()["loss_best_so_far_normalized_regret"]
    assert (regret.min(), regret.max()) == (0.0, 1.0)


def test_the_grid_by_itself_is_where_every_run_has_a_score():
    table = small(algorithm=list("AAABB"), seconds=[1.0, 4.0, 9.0, 2.0, 8.0])
    runs = make(table, run="algorithm", grid="log", n_points=3)
    assert runs.levels("seconds") == (2.0, 4.0, 8.0)
    assert make(table, run="algorithm", grid="linear", n_points=4).levels("seconds") == (2.0, 4.0, 6.0, 8.0)
    assert make(small(), run="algorithm", grid="log", n_points=20).levels("seconds") == (2, 3, 4, 5, 6, 7, 8)
    assert runs.notes[0] == (
        "The 3 budgets are where every run has a score and goes on: B has its first score at 2, and B ends first, at 8."
    )
    assert "B ends first, at 8." in runs.summary()
    assert not runs.to_frame()["carried"].any()


@pytest.mark.parametrize(
    ("before", "first", "note"),
    [
        ("drop", [], "the rows before it are left out"),
        ("missing", [np.nan], "it is missing before"),
        ("worst", [6.0], "they have the worst score of all evaluations on their benchmark before it"),
        (7, [7.0], "they have 7 before it"),
    ],
)
def test_what_stands_before_the_first_score(before, first, note):
    runs = make(small(), run="algorithm", grid=[1, 8], before=before)
    frame = runs.to_frame()
    np.testing.assert_array_equal(frame.loc[frame["algorithm"] == "B", runs.score], [*first, 1.0])
    assert runs.notes == (f"1 of 2 runs have their first score after a budget of 1: {note}.",
                          "1 of 5 evaluations lie after the last budget and do not count.")[::-1]  # fmt: skip


@pytest.mark.parametrize(
    ("after", "last", "note"),
    [
        ("carry", [3.0, 1.0], "there they keep their last score (the column carried says where)"),
        ("drop", [], "the rows after it are left out"),
        ("missing", [np.nan, np.nan], "their score is missing there"),
    ],
)
def test_what_stands_after_the_end(after, last, note):
    runs = make(small(), run="algorithm", grid=[8, 20], after=after)
    frame = runs.to_frame()
    np.testing.assert_array_equal(frame.loc[frame["seconds"] == 20, runs.score], last)
    assert runs.notes == (
        f"2 of 2 runs end before a budget of 20, first B at 8: {note}. A run ends with its last evaluation; if it went "
        "on without one, name its end, end=...",
    )
    assert frame["carried"].tolist() == ([False, True, False, True] if after == "carry" else [False] * len(frame))


@pytest.mark.parametrize("end", [20, "limit"])
def test_up_to_its_end_a_run_keeps_its_score_without_a_word(end):
    runs = make(small(limit=20), run="algorithm", grid=[8, 20], after="refuse", end=end)
    assert runs.notes == ()
    assert runs.to_frame()[runs.score].tolist() == [3.0, 3.0, 1.0, 1.0]


def test_failed_evaluations_and_shared_times_are_told():
    table = small(loss=[5.0, np.nan, 4.0, np.inf, 1.0], seconds=[1, 4, 4, 2, 8], epochs=1.0)
    runs = make(table, run="algorithm", cost="epochs", grid=[3])
    assert runs.to_frame()[runs.score].tolist() == [4.0, 1.0]
    assert runs.notes == (
        "2 of 5 evaluations have no score: they improve nothing.",
        "1 evaluation shares its time with another one of its run, and the costs of all count. If rows are repeated by "
        "mistake, drop the copies.",
        "1 of 2 runs end before a budget of 3, first B at 2: there they keep their last score (the column carried says "
        "where). A run ends with its last evaluation; if it went on without one, name its end, end=...",
    )


# ------------------------------------------------------------------ refusals


@pytest.mark.parametrize(
    ("columns", "options", "error", "message"),
    [
        ({}, {"run": "seconds"}, ArgumentError, "algorithm must name the column of what is compared"),
        ({}, {"run": "tool"}, UnknownColumnError, "run names the column 'tool'"),
        ({}, {"time": "loss"}, ArgumentError, "score and time both name the column 'loss'"),
        ({"seconds": [1, 4, 9, -2, 8]}, {}, DataError, "1 of 5 rows of the logs have no time in 'seconds'"),
        ({"seconds": [1, 4, 9, np.nan, 8]}, {}, DataError, "Budgets count from the start of a run"),
        ({"seconds": pd.date_range("2026-01-01", periods=5)}, {}, DataError, "time must be a numeric column"),
        ({"c": [1, 2, None, 4, 5.0]}, {"cost": "c"}, DataError, "1 of 5 rows of the logs have no cost in 'c'"),
        ({"c": [9, 9, 8, 9, 9]}, {"end": "c"}, DataError, "end must have one value per run, but A has 8 and 9"),
        ({}, {"end": 8}, DataError, "1 of 2 runs have evaluations after their end: A ends at 8, and its last is at 9"),
        ({}, {"end": 0}, ArgumentError, "end must be a finite number above 0, got 0: a budget at which runs end, or"),
        ({}, {"full_budget": "longest"}, ArgumentError, "full_budget needs the column of the benchmarks"),
        ({}, {"grid": [-1, 2]}, ArgumentError, "grid must not be negative"),
        ({}, {"grid": "logs"}, ArgumentError, "grid must be 'log' or 'linear'"),
        ({}, {"grid": [np.nan]}, ArgumentError, "grid must be one or more finite numbers"),
        ({}, {"grid": "log", "n_points": 1}, ArgumentError, "n_points must be a whole number of at least 2"),
        ({"seconds": [0, 4, 9, 0, 8]}, {"grid": "log"}, ArgumentError, "grid='log' cannot begin at 0"),
        ({"seconds": [1, 2, 3, 4, 8]}, {"grid": "log"}, DataError, "there is no range of budgets in which all"),
        ({"loss": np.nan}, {"grid": "log"}, DataError, "no evaluation in the logs has a score"),
        ({}, {"before": "none"}, ArgumentError, "before must be 'drop', 'missing', 'worst', 'refuse' or a"),
        ({}, {"before": "drop", "grid": [1]}, DataError, "1 of 2 runs have no score at any budget up to 1: the "
         "first of B is at 2"),
        ({}, {"before": "refuse", "grid": [1, 2]}, DataError, "1 of 2 runs have no score yet at a budget of 1: B "
         "begins at 2"),
        ({}, {"after": "refuse", "grid": [20]}, DataError, "2 of 2 runs end before a budget of 20, first B at 8"),
        ({}, {"after": "drop", "grid": [20]}, DataError, "all runs end before the first budget, 20"),
        ({"algorithm": "A"}, {}, DataError, "holds one algorithm only"),
        ({"algorithm": ["A", "B", None, "A", "B"]}, {}, DataError, "has 1 missing value"),
    ],
)  # fmt: skip
def test_refusals_say_what_to_do(columns, options, error, message):
    refuses(error, re.escape(message), make, small(**columns), **{"run": "algorithm", **options})
    refuses(DataError, "logs has no rows", make, small().head(0), run="algorithm")
