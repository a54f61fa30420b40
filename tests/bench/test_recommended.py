"""The recommended model follows from the design."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

import lmemtest as lt
from lmemtest.bench.modelling.recommend import recommend
from lmemtest.errors import ArgumentError
from lmemtest.lmm.model.spec import ModelSpec


def table(algorithms=3, benchmarks=4, seeds=5, budgets=3, priors=1):
    rows = itertools.product(range(algorithms), range(benchmarks), range(priors), range(seeds), range(budgets))
    frame = pd.DataFrame(list(rows), columns=["algorithm", "task", "prior", "seed", "budget"])
    frame["algorithm"] = "a" + frame["algorithm"].astype(str)
    frame["loss"] = frame["task"] + np.random.default_rng(0).normal(size=len(frame))
    return frame


def runs_of(frame, **roles):
    given = {"score": "loss", "direction": "minimize", "algorithm": "algorithm", "benchmark": "task", "seed": "seed"}
    return lt.Runs(frame, **{**given, "seed_shared": False, **roles})


def test_benchmarks_are_a_sample_and_seeds_pair_the_runs():
    got = recommend(runs_of(table(budgets=1)))
    assert got.formula == "loss ~ algorithm + (1 | task) + (1 | task:algorithm) + (1 | task:seed)"
    assert got.left_out == ()
    assert len(got.terms) == 4


def test_runs_are_clusters_where_there_are_budgets():
    got = recommend(runs_of(table(), budget="budget"), curves="model")
    assert got.formula == (
        "loss ~ algorithm + C(budget) + algorithm:C(budget) + (1 | task) + (1 | task:algorithm) + (1 | task:seed) + "
        "(1 | task:algorithm:seed) + (1 | task:budget) + (1 | task:algorithm:budget)"
    )
    assert any("same 3 budgets" in note for note in got.notes)


def test_metafeatures_make_instances_within_benchmarks():
    got = recommend(runs_of(table(budgets=1, priors=2), metafeatures=["prior"]))
    assert got.formula == (
        "loss ~ algorithm + (1 | task) + (1 | task:algorithm) + (1 | task:prior) + (1 | task:prior:algorithm) "
        "+ (1 | task:prior:seed)"
    )
    assert any("Benchmarks count as the sample" in note for note in got.notes)


def test_a_metafeature_is_a_condition_that_benchmarks_go_through():
    got = recommend(runs_of(table(benchmarks=8, budgets=1, priors=2), metafeatures=["prior"]))
    assert got.formula == (
        "loss ~ algorithm + C(prior) + algorithm:C(prior) + (0 + C(prior) | task) + (0 + C(prior) | task:algorithm) "
        "+ (1 | task:prior:seed)"
    )
    assert got.spec == ModelSpec.parse(got.formula)
    assert "at each level of prior" in got.terms["meaning"].iloc[3]
    fit = lt.fit_lmm(got.formula, table(benchmarks=8, budgets=1, priors=2))
    assert [term.group for term in fit.design.random] == ["task", "task:algorithm", "task:prior:seed"]


@pytest.mark.parametrize(
    ("frame", "roles"),
    [
        (table(benchmarks=5, budgets=1, priors=2), {"metafeatures": ["prior"]}),  # few benchmarks
        (table(benchmarks=8, budgets=1, priors=5), {"metafeatures": ["prior"]}),  # many levels
        (table(benchmarks=8, seeds=1, budgets=1, priors=2), {"metafeatures": ["prior"], "seed": None}),  # single runs
        (
            table(benchmarks=8, seeds=2, budgets=1, priors=2).assign(size=lambda t: t["seed"]),
            {"metafeatures": ["prior", "size"]},
        ),
    ],
)
def test_where_that_is_too_much_instances_differ_to_the_same_degree(frame, roles):
    formula = recommend(runs_of(frame, **roles)).formula
    assert "(1 | task)" in formula
    assert "(0 +" not in formula


def test_a_metafeature_of_the_benchmarks_themselves_is_no_condition():
    frame = table(benchmarks=8, budgets=1).assign(kind=lambda t: t["task"] % 2)
    got = recommend(runs_of(frame, metafeatures=["kind"]))
    assert got.formula.startswith("loss ~ algorithm + (1 | task) + (1 | task:algorithm)")


def test_a_metafeature_that_tells_kinds_of_benchmarks_apart_makes_no_instances():
    """It changes nothing in the model of the metafeature that benchmarks go through; the note's next step works."""
    frame = table(benchmarks=8, budgets=1, priors=2)
    frame["kind"] = "k" + (frame["task"] % 2).astype(str)
    plain, kinds = (recommend(runs_of(frame, metafeatures=m)) for m in (("prior",), ("prior", "kind")))
    assert kinds.formula == plain.formula
    assert kinds.notes[0].startswith("Each benchmark has one level of kind, which tells kinds of benchmarks apart")
    assert kinds.notes[1:] == plain.notes
    odd = runs_of(
        frame.rename(columns={"algorithm": "al go", "kind": "my kind"}), algorithm="al go", metafeatures=("my kind",)
    )
    assert recommend(odd).notes[0].endswith(".recommended().interaction('`al go`', '`my kind`').")
    lt.ModelBuilder(odd.filter(prior=0)).recommended().interaction("`al go`", "`my kind`")
    assert not any("kind" in note for note in recommend(odd.normalize("rank")).notes)  # fixed benchmarks hold the kinds
    own = frame.assign(kind=frame["task"].astype(str))
    assert not any("kind" in note for note in recommend(runs_of(own, metafeatures=("prior", "kind"))).notes)
    only = runs_of(frame[frame["prior"] == 0], metafeatures=("kind",))
    assert recommend(only).formula == "loss ~ algorithm + (1 | task) + (1 | task:algorithm) + (1 | task:seed)"
    asked = lt.ModelBuilder(only).recommended().interaction("algorithm", "kind")
    assert "algorithm:kind" in asked.fit().anova().to_frame()["term"].tolist()


def test_a_term_of_single_rows_is_left_to_the_residual():
    got = recommend(runs_of(table(seeds=1, budgets=1), seed=None))
    assert got.formula == "loss ~ algorithm + (1 | task)"
    assert "cannot be distinguished from the residual" in got.left_out[0]


def test_a_term_with_the_groups_of_another_is_left_out():
    got = recommend(runs_of(table(seeds=1), budget="budget"), curves="model")
    assert "its groups are those of (1 | task)" in got.left_out[0]


def test_one_benchmark_is_said_to_be_one_benchmark():
    got = recommend(runs_of(table(benchmarks=1, budgets=1)))
    assert got.formula == "loss ~ algorithm + (1 | task:seed)"
    assert "says nothing about other benchmarks" in got.notes[0]


def test_metafeatures_of_one_benchmark_are_fixed_not_a_sample():
    got = recommend(runs_of(table(benchmarks=1, budgets=1, priors=2), metafeatures=["prior"]))
    assert got.formula == "loss ~ algorithm + C(prior) + algorithm:C(prior) + (1 | task:prior:seed)"
    assert "says nothing about other benchmarks" in got.notes[0]


def test_numbers_as_names_of_algorithms_are_no_slope():
    frame = table(budgets=1)
    frame["algorithm"] = frame["algorithm"].str[1:].astype(int)
    runs = runs_of(frame)
    fit = lt.fit_lmm(recommend(runs).formula, runs)
    assert recommend(runs).formula.startswith("loss ~ C(algorithm) + ")
    assert len(fit.emmeans("algorithm").to_frame()) == 3


def test_uneven_budgets_get_a_mean_each():
    frame = table()
    runs = runs_of(frame[(frame["budget"] < 2) | (frame["seed"] > 1)], budget="budget")
    assert "C(budget)" in recommend(runs, curves="model").formula


def test_odd_column_names_survive_the_formula():
    frame = table(budgets=1).rename(columns={"task": "my task (v2)", "loss": "final loss"})
    runs = runs_of(frame, score="final loss", benchmark="my task (v2)")
    fit = lt.fit_lmm(recommend(runs).formula, runs)
    assert fit.nobs == len(frame)


def test_every_recommended_model_can_be_fitted():
    for budgets, seeds, priors in itertools.product((1, 3), (1, 4), (1, 2)):
        runs = runs_of(
            table(seeds=seeds, budgets=budgets, priors=priors), budget="budget", metafeatures=["prior"][: priors - 1]
        )
        for model in (recommend(runs), recommend(runs, curves="model")):
            assert lt.fit_lmm(model.formula, model.runs).converged


def test_what_is_not_runs_is_named():
    with pytest.raises(ArgumentError, match="runs must be Runs, got DataFrame"):
        recommend(table())


@pytest.mark.parametrize("how", ["rank", "zscore"])
@pytest.mark.parametrize("algorithms", [2, 4])
def test_scores_relative_to_the_benchmark_are_compared_within_benchmarks(how, algorithms):
    """Closed form: two-way analysis of benchmark means, which a benchmark variance of zero would make too sure."""
    frame = table(algorithms=algorithms, benchmarks=9, budgets=1)
    advantage = np.random.default_rng(1).normal(size=(9, algorithms))
    frame["loss"] += 2 * advantage[frame["task"], frame["algorithm"].str[1:].astype(int)]
    runs = runs_of(frame).normalize(how)
    got = recommend(runs)
    assert got.formula == f"loss_{how} ~ algorithm + C(task) + (1 | task:algorithm) + (1 | task:seed)"
    assert "what one algorithm gains there others lose" in got.summary()
    pair = lt.fit_lmm(got.formula, runs).emmeans("algorithm").pairs().to_frame().iloc[0]
    y = runs.to_frame().groupby(["task", "algorithm"])[runs.score].mean().unstack().to_numpy()
    around = y - y.mean(axis=1, keepdims=True) - y.mean(axis=0) + y.mean()
    df = 8 * (algorithms - 1)
    assert pair["estimate"] == pytest.approx(y[:, 0].mean() - y[:, 1].mean(), rel=1e-8)
    assert pair["se"] == pytest.approx(np.sqrt(2 * (around**2).sum() / df / 9), rel=1e-5)
    assert pair["df"] == pytest.approx(df, rel=1e-4)


def test_one_seed_of_relative_scores_has_no_luck_of_its_own():
    """With fixed effects of benchmarks, the groups of (1 | task:seed) have their means already."""
    frame = table(algorithms=4, benchmarks=9, seeds=1, budgets=1)
    frame["loss"] = frame["loss"] - frame.groupby("task")["loss"].transform("mean")
    got = recommend(runs_of(frame))
    assert got.formula == "loss ~ algorithm + C(task)"
    assert any("(1 | task:seed): its groups are those of task, whose effects are fixed." in t for t in got.left_out)
    fit = lt.fit_lmm(got.formula, frame)
    pair = fit.emmeans("algorithm").pairs().to_frame().iloc[0]
    assert pair["df"] == pytest.approx(24)


def test_relative_scores_at_the_levels_of_a_metafeature():
    frame = table(benchmarks=8, budgets=1, priors=2)
    advantage = np.random.default_rng(1).normal(size=(8, 3))
    frame["loss"] += 2 * advantage[frame["task"], frame["algorithm"].str[1:].astype(int)] + 5 * frame["prior"]
    runs = runs_of(frame, metafeatures=("prior",))
    assert "(0 + C(prior) | task) +" in recommend(runs).formula
    assert "+ C(task) * C(prior) + (0 + C(prior) | task:algorithm)" in recommend(runs.normalize("rank")).formula
    both = recommend(runs.normalize("rank", by=["task"]))
    assert "+ C(task) * C(prior) + (0 + C(prior) | task:algorithm)" in both.formula
