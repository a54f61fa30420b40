"""Scores relative to a baseline or to the best known: definitions by hand, invariances, backends, noise, refusals."""

from __future__ import annotations

import warnings

import numpy as np
import pandas as pd
import pytest
from pytest import approx

import lmemtest as lt
from lmemtest.errors import ArgumentError, DataError, DataWarning, UnknownColumnError
from tests.bench.data.test_backends import KINDS

TASKS = ["w", "x", "y", "z"]


def table(sigma=0.05, seeds=4):
    """3 tools x 4 tasks x seeds; losses of different scale, and columns of references."""
    rng = np.random.default_rng(3)
    frame = pd.MultiIndex.from_product([TASKS, ["forest", "net", "tree"], range(seeds)], names=["task", "tool", "rep"])
    frame = frame.to_frame(index=False)
    unit = frame["task"].map(dict(zip(TASKS, [1.0, 10.0, 100.0, 1000.0], strict=True)))
    loss = unit * (2 + (frame["tool"] == "tree")) * np.exp(rng.normal(0, sigma, len(frame)))
    return frame.assign(loss=loss, human=0.5 * unit, id=np.arange(len(frame)))


def make(frame, direction="minimize", **roles):
    return lt.Runs(frame, score="loss", direction=direction, algorithm="tool", benchmark="task", seed="rep", **roles)


def scores(runs):
    return runs.to_frame().sort_values("id")[runs.score].to_numpy()


def means(frame, tool):
    """The mean of a tool on the task of each row."""
    return frame["task"].map(frame[frame["tool"] == tool].groupby("task")["loss"].mean()).to_numpy()


def test_definitions():
    frame = table()
    runs, x, r, h = make(frame), frame["loss"].to_numpy(), means(frame, "tree"), frame["human"].to_numpy()
    other = make(frame, "maximize")
    low = dict(frame.groupby("task")["loss"].min())
    b = frame["task"].map(low).to_numpy()
    high = frame["task"].map(frame.groupby("task")["loss"].max() * 2).to_numpy()
    cases = [
        (runs.normalize("baseline", reference="tree"), 1 - x / r, "maximize"),
        (other.normalize("baseline", reference="forest"), x / means(frame, "forest") - 1, "maximize"),
        (runs.normalize("baseline", reference="tree", target="human"), (x - r) / (h - r), "maximize"),
        (runs.normalize("baseline", reference="tree", target="net"), (x - r) / (means(frame, "net") - r), "maximize"),
        (runs.normalize("baseline", reference=1e4, target=0), 1 - x / 1e4, "maximize"),
        (runs.normalize("gap", best_known=low), x / b - 1, "minimize"),
        (other.normalize("gap", best_known=dict(zip(frame["task"], high, strict=True))), 1 - x / high, "minimize"),
        (runs.normalize("improvability", best_known=low), 1 - b / x, "minimize"),
    ]
    for got, want, direction in cases:
        np.testing.assert_allclose(scores(got), want, rtol=1e-12, atol=1e-12)
        assert got.direction == direction
        assert got.columns == (*frame.columns, got.score)


def test_the_unit_of_a_benchmark_does_not_matter_and_no_other_algorithm_does():
    frame = table()
    unit = frame["task"].map(dict(zip(TASKS, [7.0, 0.1, 3.0, 1e-6], strict=True)))
    want = scores(make(frame).normalize("baseline", reference="tree"))
    moved = frame.assign(loss=unit * frame["loss"])
    np.testing.assert_allclose(scores(make(moved).normalize("baseline", reference="tree")), want, atol=1e-12)
    two = frame[frame["tool"] != "net"]
    kept = (frame["tool"] != "net").to_numpy()
    np.testing.assert_allclose(scores(make(two).normalize("baseline", reference="tree")), want[kept], atol=1e-12)
    shifted = make(frame.assign(loss=5 - 3 * frame["loss"]), "maximize")  # a target takes shifts out, too
    np.testing.assert_allclose(
        scores(shifted.normalize("baseline", reference="tree", target="net")),
        scores(make(frame).normalize("baseline", reference="tree", target="net")),
        atol=1e-9,
    )


FAST = ("polars", "lazy polars", "pyarrow")


@pytest.mark.parametrize("kind", [k if k in FAST else pytest.param(k, marks=pytest.mark.level(2)) for k in KINDS])
def test_every_kind_of_table_gives_the_same_and_lazy_ones_stay_lazy(kind):
    frame = table()
    known = dict(frame.groupby("task")["loss"].min())
    runs, want = make(KINDS[kind](frame)), make(frame)
    for method, given in (
        ("baseline", {"reference": "tree"}),
        ("baseline", {"reference": "tree", "target": "human"}),
        ("gap", {"best_known": known}),
    ):
        got = runs.normalize(method, **given)
        assert got.is_lazy == runs.is_lazy
        np.testing.assert_allclose(scores(got), scores(want.normalize(method, **given)), rtol=1e-10, atol=1e-10)


def test_groups_are_benchmark_and_budget_unless_asked_otherwise():
    frame = pd.concat([table().assign(epoch=epoch, loss=lambda t: t["loss"] / t["epoch"]) for epoch in (1, 3)])
    frame["id"] = np.arange(len(frame))
    runs = make(frame, budget="epoch")
    at_each = runs.normalize("baseline", reference="tree")
    own = frame[frame["tool"] == "tree"].groupby(["task", "epoch"])["loss"].mean()
    r = own.loc[list(zip(frame["task"], frame["epoch"], strict=True))].to_numpy()
    np.testing.assert_allclose(scores(at_each), 1 - frame["loss"] / r, atol=1e-12)
    over_all = runs.normalize("baseline", by="benchmark", reference="tree", name="all")
    np.testing.assert_allclose(scores(over_all), 1 - frame["loss"] / means(frame, "tree"), atol=1e-12)
    assert over_all.scale.anchors.noise is None  # budgets are no repetitions


def test_noise_is_the_relative_error_of_the_baselines_means():
    frame = table()
    noise = make(frame).normalize("baseline", reference="tree").scale.anchors.noise
    own = frame[frame["tool"] == "tree"].groupby("task")["loss"]
    error = own.std() / 2 / own.mean()
    assert noise.error == approx(np.sqrt(np.mean(error**2)), rel=1e-9)
    assert (noise.runs, noise.where, noise.borrowed) == (4, error.idxmax(), False)
    assert noise.largest == approx(error.max(), rel=1e-9)
    once = frame[(frame["tool"] != "tree") | (frame["rep"] == 0)]
    alone = make(once).normalize("baseline", reference="tree").scale.anchors.noise
    others = once[once["tool"] != "tree"].groupby(["task", "tool"])["loss"]
    assert (alone.runs, alone.borrowed) == (1, True)
    assert alone.error == approx(np.sqrt(((others.std() / others.mean()) ** 2).mean()), rel=1e-9)
    assert make(frame).normalize("baseline", reference=1e4).scale.anchors.noise is None


def test_a_baseline_so_noisy_that_shares_are_biased_is_a_warning_with_the_bias():
    frame = table(sigma=1.2, seeds=2)
    with pytest.warns(DataWarning, match=r"The means of tree are noisy: .* lowers the mean improvement of every other"):
        got = make(frame).normalize("baseline", reference="tree")
    noise = got.scale.anchors.noise
    with pytest.warns(DataWarning, match=f"by about {100 * noise.error**2:.2g} percentage points"):
        make(frame).normalize("baseline", reference="tree")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        make(table()).normalize("baseline", reference="tree")


def test_a_reference_without_a_value_somewhere_is_refused_by_name():
    frame = table()
    runs = make(frame[(frame["tool"] != "tree") | (frame["task"] != "x")])
    with pytest.raises(
        DataError, match=r"tree has no score in 1 of 4 groups of task: x, so .*reference=\{benchmark: v"
    ):
        runs.normalize("baseline", reference="tree")
    with pytest.raises(DataError, match=r"has no value in 3 of 4 groups of task: x, y, z"):
        runs.normalize("gap", best_known={"w": 0.1})
    with pytest.raises(DataError, match=r"one value in each group of task, but the column 'rep' has 4 on w"):
        runs.normalize("baseline", reference="rep")
    with pytest.raises(DataError, match="'task', which holds no numbers"):
        runs.normalize("baseline", reference="task")


def test_references_that_shares_have_no_meaning_for_are_refused():
    frame = table()
    with pytest.raises(
        DataError, match=r"must be positive, but the mean of tree is -.* Say what counts as 1 with target="
    ):
        make(frame.assign(loss=-frame["loss"])).normalize("baseline", reference="tree")
    zero = frame.assign(loss=frame["loss"].where(frame["task"] != "y", 0.0))
    with pytest.raises(DataError, match=r"must be positive, but the mean of tree is 0 on y"):
        make(zero).normalize("baseline", reference="tree")
    numbered = frame.assign(tool=frame["tool"].map({name: i for i, name in enumerate(frame["tool"].unique())}))
    with pytest.raises(ArgumentError, match=r"reference=1 is a number, and the name of an algorithm.* write '1', for"):
        make(numbered).normalize("baseline", reference=1)
    assert make(numbered).normalize("baseline", reference="1").scale.anchors.noise is not None
    with pytest.raises(DataError, match="must be positive, but it is 0 on w"):
        make(frame).normalize("baseline", reference=0)
    below = frame.assign(loss=frame["loss"].where(frame["id"] != 0, -1.0))
    with pytest.raises(DataError, match=r"scores from 0 on only, but the lowest of 'loss' on w is -1"):
        make(below).normalize("baseline", reference="tree")
    with pytest.raises(DataError, match=r"target .* must be better than reference .* it is not on w, x, y, z"):
        make(frame).normalize("baseline", reference="forest", target="tree")
    with pytest.raises(
        DataError, match=r"best_known must be at least as good .* 1 group of task has better ones: z \("
    ):
        make(frame).normalize("gap", best_known={"w": 0.1, "x": 0.1, "y": 0.1, "z": 1e6})
    with pytest.raises(DataError, match=r"which is 0 on w\. Use method='improvability'"):
        make(frame).normalize("gap", best_known=0)
    with pytest.raises(DataError, match=r"Improvability is a share of an error, which is to be minimised"):
        make(frame, "maximize").normalize("improvability", best_known=1e6)


def test_arguments():
    runs = make(table())
    with pytest.raises(UnknownColumnError, match=r"got 'treee'\. Algorithms: forest, .* Did you mean 'tree'\?"):
        runs.normalize("baseline", reference="treee")
    with pytest.raises(ArgumentError, match=r"method='baseline' needs reference: an algorithm, a column, a number or"):
        runs.normalize("baseline")
    with pytest.raises(ArgumentError, match=r"reference is not an argument of method='rank'\. Leave it out\."):
        runs.normalize("rank", reference="tree")
    with pytest.raises(ArgumentError, match=r"reference must be finite and below 1e\+100, got nan"):
        runs.normalize("baseline", reference=float("nan"))
    with pytest.raises(ArgumentError, match="best_known must hold finite numbers, got 'low'"):
        runs.normalize("gap", best_known={**dict.fromkeys("wxy", 0.1), "z": "low"})
    both = make(table().assign(tree=1.0))
    with pytest.raises(ArgumentError, match="names 'tree', which is both an algorithm and a column"):
        both.normalize("baseline", reference="tree")


def test_scores_that_depend_on_all_algorithms_say_so():
    runs = make(table())
    for method in ("minmax", "rank", "zscore", "normalized_regret"):
        (note,) = runs.normalize(method).notes
        assert "depend on which algorithms take part" in note
        assert "robustness(runs, of='algorithms')" in note
    assert runs.normalize("baseline", reference="tree").notes == runs.normalize("log").notes == ()
