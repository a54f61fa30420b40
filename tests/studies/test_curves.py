"""The table of mean curves: when means over runs and conditions take the place of the rows, and nothing is lost."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from pytest import approx

import lmemtest as lt
from lmemtest.errors import ArgumentError
from lmemtest.studies.budget.curves import curve_model


def table(seed=0, *, benchmarks=20, priors=("bad", "good"), seeds=4) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    rows = itertools.product(range(benchmarks), priors, ["A", "B", "C"], range(seeds), [1, 2, 4])
    t = pd.DataFrame(list(rows), columns=["task", "prior", "algo", "seed", "budget"])
    b, a = t["task"].to_numpy(), pd.factorize(t["algo"])[0]
    t["loss"] = rng.normal(size=benchmarks)[b] + rng.normal(size=(benchmarks, 3))[b, a] + rng.normal(size=len(t))
    return t.assign(task=[f"t{i:02d}" for i in b])


def runs_of(frame, **roles) -> lt.Runs:
    given = {"benchmark": "task", "seed": "seed", "budget": "budget", "metafeatures": ["prior"]} | roles
    return lt.Runs(frame, score="loss", direction="minimize", algorithm="algo", **given)


def model_of(runs, **options):
    return curve_model(runs, **{"scale": "auto", "columns": 1, "average": True} | options)


def test_means_give_the_same_comparison_as_the_rows():
    runs = runs_of(table())
    means = model_of(runs)
    formula = "loss ~ algo + (1 | task) + (1 | task:algo)"
    by_rows = lt.fit_lmm(formula, runs).emmeans("algo", vcov="model").pairs().to_frame()
    averaged = means.frame.groupby(["task", "algo"])["loss"].mean().reset_index()
    by_means = lt.fit_lmm("loss ~ algo + (1 | task)", averaged).emmeans("algo").pairs().to_frame()
    for column in ("estimate", "se", "df"):
        assert by_rows[column].to_numpy() == approx(by_means[column].to_numpy(), rel=1e-4)
    assert means.notes == (
        "Curves are means over 4 runs of each algorithm and instance.",
        "Curves are means over the 2 levels of prior.",
    )
    assert len(means.frame) == 20 * 3 * 3
    assert (set(means.frame.columns), means.conditions) == ({"task", "algo", "budget", "loss"}, ())


def test_a_missing_run_keeps_the_rows():
    frame = table().drop(index=range(3))
    model = model_of(runs_of(frame))
    assert len(model.frame) == len(frame)
    assert model.notes[0].startswith("Runs differ in number or in their budgets")


def test_a_condition_that_some_benchmarks_lack_is_not_averaged():
    frame = table().query("task != 't03' or prior == 'good'")
    model = model_of(runs_of(frame))
    assert model.conditions == ("prior",)
    assert "seed" not in model.frame


def test_repeated_rows_of_a_run_are_their_mean():
    frame = pd.concat([table(), table().assign(loss=lambda t: t["loss"] + 2)])
    model = model_of(runs_of(frame), average=False)
    assert model.frame["loss"].mean() == approx(table()["loss"].mean() + 1)
    assert len(model.frame) == len(table())


def test_kinds_of_benchmarks_are_no_conditions_and_one_benchmark_keeps_them():
    frame = table().assign(kind=lambda t: np.where(t["task"] < "t10", "x", "y"))
    model = model_of(runs_of(frame, metafeatures=["kind", "prior"]), average=False)
    assert model.conditions == ("prior",)
    one = model_of(runs_of(frame.query("task == 't00'")))
    assert one.conditions == ("prior",)
    assert one.notes == ()


def test_the_budget_is_needed():
    with pytest.raises(ArgumentError, match=r"^runs has no budget column, so there are no curves\. Name it: Runs"):
        model_of(runs_of(table(), budget=None))
