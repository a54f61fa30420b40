"""A table of runs seen once: coarser tables from the finest one, and how often a lazy source is queried."""

from __future__ import annotations

import narwhals as nw
import numpy as np
import pandas as pd
import polars as pl
import pytest

import lmemtest as lt
from lmemtest.bench.data.study import labels
from lmemtest.errors import ArgumentError, DataError
from lmemtest.lmm.cells import aggregate

ROLES = {"score": "loss", "direction": "minimize", "algorithm": "tool"}
ALL = {**ROLES, "benchmark": "task", "seed": "rep", "budget": "epoch", "metafeatures": ("prior", "family", "kind")}


def table(offset: float = 0.0) -> pd.DataFrame:
    """3 tools x 6 tasks x 4 seeds x 3 budgets x 2 priors; a family per tool, a kind per task."""
    rng = np.random.default_rng(1)
    axes = pd.MultiIndex.from_product(
        [["c", "a", "b"], [f"t{i}" for i in range(6)], range(4), [1, 2, 4], ["good", "bad"]],
        names=["tool", "task", "rep", "epoch", "prior"],
    )
    frame = axes.to_frame(index=False)
    frame["family"] = frame["tool"].map({"a": "x", "b": "y", "c": "x"})
    frame["kind"] = np.where(frame["task"].isin(["t0", "t1"]), "tree", "net")
    effect = frame["tool"].map({"a": 0.0, "b": 0.5, "c": 1.0}) / frame["epoch"]
    frame["loss"] = offset + effect + frame["task"].str[1:].astype(int) + rng.normal(size=len(frame))
    return frame


@pytest.mark.parametrize("offset", [0.0, 1e6])
def test_coarser_groups_follow_from_finer_ones(offset):
    frame = table(offset)
    frame.loc[[0, 7, 8, 9, 50], "loss"] = [np.nan, np.inf, np.nan, np.nan, np.nan]
    runs = lt.Runs(frame, **ALL)
    finest = aggregate(runs.frame, ["task", "prior", "rep", "tool", "epoch"], "loss")
    for by in (["tool"], ["tool", "task"], ["epoch", "prior", "tool"], ["rep"], []):
        found, direct = finest.over(by), aggregate(runs.frame, by, "loss")
        pd.testing.assert_frame_equal(found.keys.frame(), direct.keys.frame())
        for name in ("n", "n_bad", "low", "high"):
            np.testing.assert_array_equal(getattr(found, name), getattr(direct, name))
        np.testing.assert_allclose(found.mean, direct.mean, rtol=1e-14)
        np.testing.assert_allclose(found.ss, direct.ss, rtol=1e-9 if offset else 1e-13)


def test_equal_scores_have_no_sum_of_squares_and_their_own_mean():
    frame = table().assign(loss=0.1)
    found = aggregate(lt.Runs(frame, **ALL).frame, ["tool", "task", "rep"], "loss").over(["tool"])
    assert (found.ss == 0.0).all()
    assert (found.mean == 0.1).all()


def test_a_subset_keeps_the_order_of_the_levels_that_are_left():
    frame = table().assign(prior=lambda d: pd.Categorical(d["prior"], ["worst", "bad", "good"]))
    finest = aggregate(lt.Runs(frame, **ALL).frame, ["prior", "task", "tool"], "loss")
    kept = {"tool": ["c", "a"], "prior": ["good"]}
    found = finest.where(kept)
    direct = aggregate(lt.Runs(frame, **ALL).filter(**kept).frame, ["prior", "task", "tool"], "loss")
    pd.testing.assert_frame_equal(found.keys.frame(), direct.keys.frame())
    np.testing.assert_array_equal(found.mean, direct.mean)


def test_what_metafeatures_describe():
    study = lt.Runs(table(), **ALL).study
    assert study.properties == ("family",)
    assert study.conditions == ("prior",)
    assert study.kinds == ("kind",)
    assert study.instance == ("task", "prior")
    assert study.run == ("task", "prior", "tool", "rep")
    assert study.count("task", "prior") == 12
    assert study.count(None) == study.count() == 1
    assert study.several_benchmarks


def test_the_label_of_an_instance_writes_levels_as_results_do():
    frame = pd.DataFrame({"task": ["a", "a"], "prior": [1.0, 0.25], "n": [3, 4]})
    assert labels(frame, ["task", "prior", "n"]).tolist() == ["a / 1 / 3", "a / 0.25 / 4"]


def test_a_role_that_is_missing_is_refused_with_the_way_to_name_it():
    study = lt.Runs(table(), **ROLES).study
    with pytest.raises(
        ArgumentError, match=r"runs has no budget column, so there are no curves\. Name it: Runs\(\.\.\."
    ):
        study.require("budget", "there are no curves")
    assert lt.Runs(table(), **ALL).study.require("budget", "there are no curves") == "epoch"


@pytest.mark.parametrize("repeated", [False, True])
def test_rows_are_those_of_the_table(repeated):
    frame = pd.concat([table(), table().assign(loss=lambda d: d["loss"] + 1.0)]) if repeated else table()
    found = lt.Runs(frame, **ALL).study.rows(["tool", "task"])
    expected = frame[["tool", "task", "loss"]].sort_values(["tool", "task", "loss"], ignore_index=True)
    pd.testing.assert_frame_equal(found, expected)


def test_missing_scores_are_refused_by_cells_and_rows():
    runs = lt.Runs(table().assign(loss=lambda d: d["loss"].where(d.index != 3)), **ALL)
    for ask in (lambda: runs.study.cells(["tool"]), lambda: runs.study.rows(["tool"]), runs.study.require_scores):
        with pytest.raises(DataError, match="1 of 432 rows has a score that is missing or infinite"):
            ask()


def test_an_average_over_a_role_counts_each_level_once():
    frame = table()
    lacking = pd.concat([frame.iloc[5:], frame.iloc[[20]]])  # some seeds lack budgets, a row stands twice
    runs = lt.Runs(lacking, **ALL)
    once = lacking.groupby(["task", "prior", "family", "kind", "tool", "epoch", "rep"], as_index=False)["loss"].mean()
    for role, gone in (("seed", "rep"), ("prior", "prior")):
        found = runs.study.average(role)
        kept = list(found.study.columns)
        assert gone not in found.columns
        assert set(kept) == set(once.columns) - {gone, "loss"}
        expected = once.groupby(kept, as_index=False)["loss"].mean()
        pd.testing.assert_frame_equal(found.to_frame(), expected, check_dtype=False)
    assert runs.study.average("seed").seed is None
    assert runs.study.average("prior").metafeatures == ("family", "kind")
    assert len(lt.Runs(frame, **ROLES).study.average("seed").to_frame()) == 3  # no such role: one row per algorithm


def test_scores_as_an_array_have_an_axis_per_name():
    frame = table()
    runs = lt.Runs(frame[(frame["tool"] != "b") | (frame["task"] != "t3")], **ALL)
    scores, levels = runs.study.array("benchmark", "algorithm", "seed")
    assert levels == {"benchmark": tuple(f"t{i}" for i in range(6)), "algorithm": ("a", "b", "c"), "seed": (0, 1, 2, 3)}
    assert scores.shape == (6, 3, 4)
    assert np.isnan(scores[3, 1]).all()
    assert np.isnan(scores).sum() == 4
    part = frame[(frame["task"] == "t2") & (frame["tool"] == "c") & (frame["rep"] == 1)]
    assert scores[2, 2, 1] == pytest.approx(part["loss"].mean())
    scores, levels = runs.study.array("instance", "algorithm")
    assert levels["instance"][:3] == ("t0 / bad", "t0 / good", "t1 / bad")
    assert scores.shape == (12, 3)
    assert np.isnan(scores).sum() == 2
    scores, levels = lt.Runs(frame, **ROLES).study.array("seed", "algorithm")
    assert levels["seed"] == (None,)
    assert scores.shape == (1, 3)


def test_each_run_has_one_score_over_the_budgets_of_its_instance():
    frame = table()
    late = (frame["epoch"] == 4) & (frame["task"] == "t0") & (frame["rep"] == 2)
    scores, notes = lt.Runs(frame[~late], **ALL).study.one_score_per_run()
    assert len(scores) == 3 * 6 * 4 * 2
    common = frame[(frame["epoch"] < 4) | (frame["task"] != "t0")]
    expected = common.groupby(["task", "prior", "tool", "rep"])["loss"].mean().to_numpy()
    found = scores.sort_values(["instance", "algorithm", "seed"])
    np.testing.assert_allclose(found["score"], expected, rtol=1e-12)
    assert scores["benchmark"].tolist() == scores["instance"].str.split(" / ").str[0].tolist()
    assert notes == (
        "Each run counts once, with its mean over 2 to 3 values of epoch. Others, which some runs of the instance do "
        "not have, were left out.",
        "6 of 144 runs end early, the first at epoch 2 of 4, and what the other runs of the same instance did after "
        "that does not count. If they failed there, leave them out or say what a failed run counts.",
    )
    alone = lt.Runs(frame, **ROLES).study.one_score_per_run()[0]  # nothing tells runs apart: rows stay rows
    assert set(alone["instance"]) == {"all runs"}
    assert len(alone) == len(frame)
    assert alone["seed"].isna().all()


# ------------------------------------------------------------------ queries of a lazy source

QUESTIONS = {
    "recommend": lt.recommend,
    "explain": lambda runs: lt.ModelBuilder(runs).recommended().explain(),
    "check": lt.check,
    "rules": lambda runs: runs.check(rules_only=True),
    "analyze": lt.analyze,
    "horizons": lambda runs: lt.anytime(runs).at(),
    "anytime": lambda runs: lt.anytime(runs).curves,
    "budget_effect": lt.budget_effect,
    "seed_effect": lt.seed_effect,
    "benchmark_information": lt.benchmark_information,
    "benchmark_effects": lt.benchmark_effects,
    "variance_sources": lt.variance_sources,
    "relative_ranks": lambda runs: lt.anytime(runs).ranks(),
    "ranking_reliability": lt.ranking_reliability,
}
MOST_QUERIES = 3


def lazy(backend: str, frame: pd.DataFrame):
    if backend == "polars":
        return pl.from_pandas(frame).lazy()
    import duckdb

    return duckdb.from_df(frame)


@pytest.mark.parametrize("backend", ["polars", "duckdb"])
def test_a_question_runs_the_query_of_a_lazy_table_at_most_three_times(backend, monkeypatch):
    queries, collect = [], nw.LazyFrame.collect
    monkeypatch.setattr(nw.LazyFrame, "collect", lambda self, *a, **k: queries.append(1) or collect(self, *a, **k))
    found = {}
    for name, ask in QUESTIONS.items():
        runs = lt.Runs(lazy(backend, table().drop(columns=["family", "kind"])), **{**ALL, "metafeatures": ("prior",)})
        assert len(queries) <= 2  # that the roles fit the table
        queries.clear()
        ask(runs)
        found[name] = len(queries)
        queries.clear()
    assert {name: n for name, n in found.items() if not 1 <= n <= MOST_QUERIES} == {}


def test_one_score_per_run_says_how_curves_and_failed_runs_were_scored():
    frame = table()
    frame.loc[0, "loss"] = np.nan
    failing = lt.Runs(frame, **ALL, failed="missing").score_failures("worst")
    notes = failing.study.one_score_per_run()[1]
    assert notes == failing.per_run("mean").notes
    assert notes[-1].startswith("1 failed score of ")
