"""Scores made comparable: definitions by hand, directions, invariances, lazy tables, refusals."""

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

from lmemtest.bench.data.normalise import METHODS, OF_ALL
from lmemtest.bench.data.runs import Runs
from lmemtest.errors import ArgumentError, DataError, DataWarning, UnknownColumnError


def table(seed=0, n=240):
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "tool": rng.choice(list("ABC"), n),
            "task": rng.choice(list("wxyz"), n),
            "epoch": rng.integers(1, 4, n),
            "loss": np.round(rng.random(n), 1) + 0.1,  # rounding makes ties
            "id": np.arange(n),
        }
    )


def make(frame, direction="minimize", **roles):
    roles = {"benchmark": "task", "budget": "epoch", **roles}
    return Runs(frame, score="loss", direction=direction, algorithm="tool", **roles)


def scores(runs):
    return runs.to_frame().sort_values("id")[runs.score].to_numpy()


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_definitions(direction):
    frame = table()
    runs, groups = make(frame, direction), frame.groupby(["task", "epoch"])["loss"]
    lower = direction == "minimize"
    x = frame["loss"]
    width = groups.transform("max") - groups.transform("min")
    regret = x - groups.transform("min") if lower else groups.transform("max") - x
    want = {
        "minmax": (x - groups.transform("min")) / width,
        "normalized_regret": regret / width,
        "rank": groups.rank(method="average", ascending=lower),
        "zscore": (x - groups.transform("mean")) / groups.transform("std"),
        "log": np.log(x),
        "regret": regret,
    }
    assert tuple(want) == METHODS
    for method, values in want.items():
        got = runs.normalize(method)
        np.testing.assert_allclose(scores(got), values, rtol=1e-12, atol=1e-12)
        assert got.score == f"loss_{method}"
        assert got.direction == ("minimize" if "regret" in method or method == "rank" else direction)
        assert {**got.roles(), "score": 0, "direction": 0} == {**runs.roles(), "score": 0, "direction": 0}


def test_nothing_is_overwritten():
    frame = table()
    before = frame.copy()
    runs = make(frame)
    out = runs.normalize("zscore")
    pd.testing.assert_frame_equal(frame, before)
    assert runs.score == "loss"
    np.testing.assert_array_equal(out.to_frame()["loss"], frame["loss"])
    with pytest.raises(ArgumentError, match="has a column 'id' already, and nothing is overwritten"):
        runs.normalize("rank", name="id")
    twice = out.normalize("rank", name="again")
    assert (twice.score, twice.direction) == ("again", "minimize")
    with pytest.raises(ArgumentError, match="has a column 'loss_zscore' already"):
        Runs(out.frame, **{**out.roles(), "score": "loss"}).normalize("zscore")


def test_the_best_has_regret_zero_and_rank_one_in_both_directions():
    frame = pd.DataFrame({"tool": list("ABC"), "task": "t", "loss": [0.1, 0.5, 0.9], "id": range(3)})
    low, high = (make(frame, d, budget=None) for d in ("minimize", "maximize"))
    np.testing.assert_allclose(scores(low.normalize("regret")), [0, 0.4, 0.8])
    np.testing.assert_allclose(scores(high.normalize("regret")), [0.8, 0.4, 0])
    np.testing.assert_allclose(scores(low.normalize("normalized_regret")), [0, 0.5, 1])
    np.testing.assert_allclose(scores(high.normalize("normalized_regret")), [1, 0.5, 0])
    assert scores(low.normalize("rank")).tolist() == [1, 2, 3]
    assert scores(high.normalize("rank")).tolist() == [3, 2, 1]


def test_invariances():
    frame = table(1)
    moved = frame.assign(loss=3 * frame["loss"] + frame["task"].map(dict(zip("wxyz", range(4), strict=True))))
    for method in OF_ALL:
        np.testing.assert_allclose(
            scores(make(moved).normalize(method)), scores(make(frame).normalize(method)), atol=1e-12
        )
    regrets = (scores(make(f).normalize("regret")) for f in (moved, frame))
    np.testing.assert_allclose(next(regrets), 3 * next(regrets), atol=1e-12)


def test_the_default_takes_the_unit_of_every_benchmark_out():
    frame = table(1)
    unit = frame["task"].map({"w": 1.0, "x": 1e2, "y": 1e4, "z": 1e6})
    assert make(frame).normalize().score == "loss_minmax"
    np.testing.assert_allclose(
        scores(make(frame.assign(loss=unit * frame["loss"])).normalize()), scores(make(frame).normalize()), atol=1e-12
    )


def test_times_that_no_two_runs_share_make_no_groups():
    frame = table(7).assign(epoch=lambda t: t["id"] + 0.5)
    with pytest.warns(DataWarning, match="Few runs share a value of 'epoch', so scores are normalised within 'task'"):
        got = scores(make(frame).normalize("rank"))
    np.testing.assert_array_equal(got, frame.groupby("task")["loss"].rank())
    shared = make(frame.assign(epoch=lambda t: t["id"] % 3))
    assert (scores(shared.normalize("rank")) != got).any()  # and no warning, which would be an error here


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("kind", ["polars", "lazy polars", "duckdb", "pyarrow"])
def test_every_kind_of_table_gives_the_same(method, kind):
    frame = table(2)
    eager = pl.from_pandas(frame)
    native = {
        "polars": lambda: eager,
        "lazy polars": eager.lazy,
        "duckdb": lambda: duckdb.from_df(frame),
        "pyarrow": eager.to_arrow,
    }[kind]()
    runs = make(native, "maximize")
    got = runs.normalize(method)
    assert got.is_lazy == runs.is_lazy
    np.testing.assert_allclose(scores(got), scores(make(frame, "maximize").normalize(method)), rtol=1e-10, atol=1e-10)


def test_groups_are_roles_or_columns():
    frame = table(3).assign(task=lambda t: t["task"])
    runs = make(frame)
    by_task = frame["loss"] - frame.groupby("task")["loss"].transform("min")
    np.testing.assert_allclose(scores(runs.normalize("regret", by="benchmark")), by_task)
    np.testing.assert_allclose(scores(runs.normalize("regret", by=["task"])), by_task)
    np.testing.assert_allclose(scores(make(frame, budget=None).normalize("regret")), by_task)  # no budget to group by
    with pytest.raises(UnknownColumnError, match=r"by names 'tsak', which is neither a role .* Did you mean 'task'\?"):
        runs.normalize(by="tsak")
    with pytest.raises(ArgumentError, match="the runs have none of 'benchmark', 'budget'"):
        make(frame, benchmark=None, budget=None).normalize()
    with pytest.raises(ArgumentError, match="by must not name the score, got 'loss'"):
        runs.normalize(by="loss")


@pytest.mark.parametrize(
    ("method", "value"), [("regret", 0.0), ("normalized_regret", 0.0), ("rank", 2.0), ("zscore", 0.0), ("minmax", 0.5)]
)
def test_groups_of_equal_scores_get_a_neutral_value_and_a_warning(method, value):
    frame = pd.DataFrame(
        {"tool": list("ABC") * 2, "task": list("tttuuu"), "loss": [0.3, 0.3, 0.3, 1.0, 2.0, 3.0], "id": range(6)}
    )
    with pytest.warns(DataWarning, match="All scores are equal in 1 of 2 groups of task: they get"):
        got = scores(make(frame, budget=None).normalize(method))
    assert got[:3].tolist() == [value] * 3
    assert np.isfinite(got).all()


def test_whole_numbers_are_scores_too():
    frame = table(4).assign(loss=lambda t: (10 * t["loss"]).round().astype(int))
    assert scores(make(frame).normalize("zscore")).dtype == np.float64


def test_missing_and_infinite_scores_are_refused_but_failed_runs_can_be_ranked_last():
    frame = table(5)
    frame.loc[[3, 4], "loss"] = [np.nan, np.inf]
    for method in ("regret", "normalized_regret", "zscore", "minmax", "log"):
        with pytest.raises(DataError, match=f"2 scores in 'loss' are missing or infinite, so '{method}' has no value"):
            make(frame).normalize(method)
    with pytest.raises(DataError, match="1 scores in 'loss' are missing, so 'rank' has no value"):
        make(frame).normalize("rank")
    frame.loc[3, "loss"] = 0.5
    ranks = make(frame).normalize("rank").to_frame()
    same = (ranks["task"] == ranks["task"][4]) & (ranks["epoch"] == ranks["epoch"][4])
    assert ranks["loss_rank"][4] == same.sum()


def test_log_refuses_scores_that_are_not_positive_with_advice():
    frame = table(6)
    frame.loc[0, "loss"] = -0.25
    with pytest.raises(DataError, match=r"needs positive scores, but the lowest of 'loss' is -0\.25\. Use 'rank' or"):
        make(frame).normalize("log")


def test_unknown_methods_list_the_options():
    with pytest.raises(ArgumentError, match=r"method must be 'minmax' or .*, got 'ranks'\. Did you mean 'rank'\?"):
        make(table()).normalize("ranks")
    with pytest.raises(ArgumentError, match="name must be the name of a new column, got ''"):
        make(table()).normalize("rank", name="")
