"""Benchmarks that nobody called families: what groups them, and whether advantages are shared within the groups."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import lmemtest as lt
from lmemtest.bench.modelling.adequacy import name_groups
from lmemtest.lmm.hypotheses.mean_vectors import between_groups

FAMILIES, TASKS = 5, 4


def runs_of(share: float, *, named: bool = True, seed: int = 3, roles: dict | None = None) -> lt.Runs:
    """Three equal algorithms; `share` of the variance of their advantages lies between families."""
    rng = np.random.default_rng(seed)
    of_families = np.repeat(rng.normal(size=(FAMILIES, 3)), TASKS, axis=0)
    y = np.sqrt(share) * of_families + np.sqrt(1.0 - share) * rng.normal(size=(FAMILIES * TASKS, 3))
    b, a = np.indices(y.shape).reshape(2, -1)
    table = pd.DataFrame(
        {
            "task": [f"space{i // TASKS}-t{i % TASKS}" if named else f"t{i}" for i in b],
            "suite": [f"s{i // TASKS}" for i in b],
            "tool": [f"a{i}" for i in a],
            "score": y.ravel(),
        }
    )
    table = table.drop(columns="suite") if named else table
    return lt.Runs(
        table,
        score="score",
        direction="maximize",
        algorithm="tool",
        benchmark="task",
        **({} if roles is None else roles),
    )


def test_one_column_is_the_analysis_of_variance():
    x = np.random.default_rng(1).normal(size=23)
    group = np.array([0] * 4 + [1] * 9 + [2] * 10)
    want = stats.f_oneway(*(x[group == g] for g in range(3)))
    got = between_groups(x[:, None], group)
    assert (got.f_ratio, got.p_value) == pytest.approx((want.statistic, want.pvalue), rel=1e-10)


def test_the_test_of_groups_keeps_its_level_with_an_erratic_algorithm():
    rng, n, group = np.random.default_rng(2), 2000, np.repeat(np.arange(FAMILIES), TASKS)
    for sds in (np.ones(4), np.array([5.0, 1.0, 1.0, 1.0])):
        y = rng.normal(size=(n, FAMILIES * TASKS, 4)) * sds
        y -= y.mean(axis=2, keepdims=True)
        rate = np.mean([between_groups(table, group).p_value < 0.05 for table in y])
        assert rate <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / n)


@pytest.mark.parametrize("named", [True, False], ids=["by names", "by a column"])
def test_shared_advantages_are_said_beside_the_answer(named):
    runs = runs_of(0.8, named=named)
    analysis = lt.analyze(runs)
    found = analysis.undeclared
    assert (found.column, found.n_families, found.shows) == (None if named else "suite", 5, True)
    table = runs.frame.to_native()
    families = table["task"].map(found.families.set_index("benchmark")["family"])
    table = table.assign(f=families).drop(columns="suite", errors="ignore")
    declared = lt.analyze(lt.Runs(table, **{**runs.roles(), "family": "f"}))
    assert found.significant == int(np.triu(declared.decisions.significant.to_numpy()).sum())
    assert "Mind the families: the " in analysis.headline()
    assert f"With these groups as the sample {found.significant} of 3 pairs differ" in analysis.headline()
    assert declared.undeclared is None


def test_groups_that_share_nothing_are_not_spoken_of():
    analysis = lt.analyze(runs_of(0.0))
    assert not analysis.undeclared.shows
    assert "families" not in analysis.headline()
    assert lt.analyze(runs_of(0.8, named=False, roles={"ignore": "suite"})).undeclared.shows  # left out, but not unseen


def test_names_that_make_no_groups():
    assert name_groups(["LC-126026", "LC-167190", "LC-168910", "LC-189906"]) is None  # one group
    assert name_groups(["ant-v4", "hopper-v4", "walker-v4", "cheetah-v2"]) is None
    assert name_groups(["mnist_train", "mnist_test", "cifar_train", "cifar_test"]) == [
        "mnist",
        "mnist",
        "cifar",
        "cifar",
    ]
    assert name_groups(["adult", "bank-marketing", "car", "jungle-chess"]) is None
