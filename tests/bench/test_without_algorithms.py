"""Which comparisons change when an algorithm is left out: by hand, on the raw score, relative to a baseline."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest
from pytest import approx

import lmemtest as lt
from lmemtest.errors import ArgumentError, DesignError

without_each = partial(lt.robustness, of="algorithms")
ROLES = {"score": "loss", "direction": "minimize", "algorithm": "tool", "benchmark": "task"}


def irrelevant(noise=0.0):
    """Z is between X and Y where X wins, and last where Y does: with Z the mean rank of X is ahead, without it Y's."""
    rng = np.random.default_rng(1)
    rows = [(0.1, 0.3, 0.2)] * 4 + [(0.2, 0.1, 0.3)] * 6
    tasks = np.repeat([f"t{i}" for i in range(len(rows))], 3)
    frame = pd.DataFrame({"task": tasks, "tool": list("XYZ") * len(rows), "loss": np.concatenate(rows)})
    return lt.Runs(frame.assign(loss=frame["loss"] + noise * rng.random(len(frame))), **ROLES)


def test_a_rank_reversal_is_found_and_told_and_other_scores_keep_their_order():
    runs = irrelevant(noise=0.01)
    found = without_each(runs, reference="Y")
    ranks = runs.to_frame().assign(rank=runs.to_frame().groupby("task")["loss"].rank())
    mean = ranks.groupby("tool")["rank"].mean()
    assert mean["X"] < mean["Y"]  # 1.6 and 1.8
    frame = found.to_frame().set_index(["score", "left_out"])
    assert frame.loc[("loss_rank", "Z"), ["order_changed", "leader", "leader_before"]].tolist() == [1, "Y", "X"]
    assert frame.loc["loss", "order_changed"].sum() == frame.loc["loss_baseline", "order_changed"].sum() == 0
    assert "Y" not in frame.loc["loss_baseline"].index
    assert "Without Y there is no loss_baseline, so it was not left out." in found.notes
    *overviews, last = found.sentences()
    assert overviews[0].startswith("By mean loss_rank, leaving out one other algorithm changes the order of 1 pair and")
    assert overviews[1].startswith("By mean loss, leaving out one other algorithm changes neither the order of a pair")
    change = found.to_frame("changes").iloc[0]
    two = runs.filter(tool=["X", "Y"]).normalize("rank")
    pairs = lt.fit_lmm("loss_rank ~ tool + C(task)", two).emmeans("tool").pairs(adjust="none").to_frame()
    assert change["p_after"] == approx(pairs["p_value"][0], rel=1e-6)
    assert last.startswith("Without Z, Y is ahead of X by mean loss_rank (p = ")


@pytest.mark.level(2)
def test_runs_that_are_normalised_keep_their_method_and_name():
    scaled = irrelevant(0.01).normalize("minmax", name="unit")
    assert without_each(scaled).scores == ("unit", "loss")
    relative = irrelevant(0.01).normalize("baseline", reference="Z")
    found = without_each(relative)
    assert found.scores == ("loss_baseline", "loss")
    assert set(found.table.loc[found.table["score"] == "loss_baseline", "left_out"]) == {"X", "Y"}


@pytest.mark.level(2)
def test_processes_and_lazy_tables_change_nothing():
    import polars as pl

    runs = irrelevant(0.01)
    want = without_each(runs, reference="Y")
    lazy = lt.Runs(pl.from_pandas(runs.to_frame()).lazy(), **ROLES)
    for found in (
        without_each(runs, reference="Y", n_jobs=2),
        without_each(lazy, reference="Y"),
    ):
        pd.testing.assert_frame_equal(found.table, want.table)
        pd.testing.assert_frame_equal(found.changes, want.changes)


def test_refusals():
    with pytest.raises(DesignError, match=r"three algorithms or more, as one is left out and two are compared, got 2"):
        without_each(irrelevant().filter(tool=["X", "Y"]))
    with pytest.raises(ArgumentError, match=r"variants='gap' needs the best known values: give runs that have them"):
        without_each(irrelevant(), variants="gap")
    with pytest.raises(ArgumentError, match=r"method='baseline' needs reference"):
        without_each(irrelevant(), variants="baseline")
    with pytest.raises(ArgumentError, match=r"reference must be finite and below 1e\+100, got 1e\+308"):
        without_each(irrelevant(), reference=1e308)
