"""The best so far, and scores at budgets: against loops over the rows, on every kind of table."""

from __future__ import annotations

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from lmemtest.bench.data.runs import Runs
from lmemtest.errors import ArgumentError, DataError

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
    with pytest.raises(ArgumentError, match=message):
        make(table()).at_budgets(budgets)


def test_helpers_need_a_budget_and_a_new_name():
    runs = make(table(), budget=None)
    with pytest.raises(DataError, match="best_so_far needs the column of the budget"):
        runs.best_so_far()
    with pytest.raises(DataError, match="at_budgets needs the column of the budget"):
        runs.at_budgets([1])
    with pytest.raises(ArgumentError, match="a column 'loss' already"):
        make(table()).best_so_far(name="loss")
