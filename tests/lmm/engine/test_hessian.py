"""The exact Hessian against differences of the exact gradient, and degrees of freedom against closed forms."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from levels import half

import lmemtest as lt
from lmemtest.core.arrays import Array
from lmemtest.lmm.engine import products
from lmemtest.lmm.engine.cross import DenseCross, SparseCross
from lmemtest.lmm.engine.hessian import hessian
from lmemtest.lmm.engine.problem import Problem, build_problem
from lmemtest.lmm.engine.structure import RandomTerm

ROWS = 300


def terms(kind: str) -> list[RandomTerm]:
    """Runs in seeds in benchmarks, crossed with algorithms; slopes on some of them."""
    rng = np.random.default_rng(0)
    run = rng.integers(0, 40, ROWS)
    run[:40] = np.arange(40)
    seed, algorithm, other = run // 2, rng.integers(0, 6, ROWS), rng.integers(0, 5, ROWS)
    one, x = np.ones((ROWS, 1)), rng.normal(size=(ROWS, 1))
    slope = np.hstack([one, x])
    nested = [
        RandomTerm(one, run, 40),
        RandomTerm(slope, seed, 20),
        RandomTerm(x**2, seed // 4, 5),
        RandomTerm(one, seed // 4, 5),
    ]
    crossed = [RandomTerm(slope, algorithm, 6), RandomTerm(one, other, 5)]
    # four levels of one nest: an outer level has two kinds of inner ones
    deep = [
        RandomTerm(slope, run, 40),
        RandomTerm(one, seed, 20),
        RandomTerm(slope, seed // 2, 10),
        RandomTerm(slope, seed // 4, 5),
    ]
    levels = np.eye(3)[rng.integers(0, 3, ROWS)]
    variances = [
        RandomTerm(levels, seed, 20, diagonal=True),
        RandomTerm(one, seed, 20),
        RandomTerm(one, run, 40),
        *crossed,
    ]
    return {"nested": nested, "crossed": crossed, "both": nested + crossed, "deep": deep, "variances": variances}[kind]


def made(kind: str, *, reml: bool, strata: bool, held: float | None = None) -> Problem:
    rng = np.random.default_rng(1)
    n = rng.integers(1, 4, ROWS).astype(float)
    return build_problem(
        terms(kind),
        np.column_stack([np.ones(ROWS), rng.normal(size=(ROWS, 2))]),
        rng.normal(size=ROWS) + np.arange(ROWS) % 7,
        n=n,
        weight=rng.uniform(0.5, 2.0, ROWS),
        ss=rng.uniform(0.0, 1.0, ROWS) * (n > 1),
        reml=reml,
        stratum=np.arange(ROWS) % 3 if strata else None,
        residual_variance=held,
    )


def differences(problem: Problem, x: Array, step: float = 5e-4) -> Array:
    """Central differences of the gradient of fourth order."""

    def g(at: Array) -> Array:
        return problem.derivatives(at, problem.evaluate(at))[1]

    weights = ((1, 2 / 3), (2, -1 / 12))
    rows = [sum(w * (g(x + k * step * e) - g(x - k * step * e)) for k, w in weights) for e in np.eye(len(x))]
    return np.array(rows) / step


BOTH = (False, True)


@pytest.mark.daily(17)
@pytest.mark.parametrize(
    ("boundary", "kind", "reml", "strata", "sparse"),
    half(BOTH, ["nested", "crossed", "both", "deep", "variances"], BOTH, BOTH, BOTH),
)
def test_the_hessian_is_the_derivative_of_the_gradient(monkeypatch, boundary, kind, reml, strata, sparse):
    if sparse:
        monkeypatch.setattr(products, "_SPARSE_FROM", 0)
        monkeypatch.setattr(products, "prefer_sparse", lambda *_: True)
    problem = made(kind, reml=reml, strata=strata)
    if sparse and kind not in ("nested", "deep"):  # without crossed factors there is nothing that could be sparse
        assert {type(stage.V) for stage in problem.system.chain} == {SparseCross}
    elif not sparse:
        assert {type(stage.V) for stage in problem.system.chain} <= {DenseCross}
    x = np.random.default_rng(2).normal(size=problem.n_free) * 0.5
    x[0] *= not boundary
    got, want = hessian(problem, x, problem.evaluate(x)), differences(problem, x)
    size = np.sqrt(np.abs(want.diagonal()))
    np.testing.assert_allclose(got, want, rtol=1e-7, atol=1e-8 * np.outer(size, size).max())


@pytest.mark.parametrize("reml", [False, True])
@pytest.mark.parametrize("strata", [False, True])
def test_gradient_and_hessian_are_exact_where_the_residual_variance_is_held(reml, strata):
    problem = made("both", reml=reml, strata=strata, held=2.0)
    x = np.random.default_rng(3).normal(size=problem.n_free) * 0.5
    at = problem.evaluate(x)
    assert problem.residual_variances(x, at)[0] == pytest.approx(2.0)
    step = 1e-4
    values = [[problem.evaluate(x + s * step * e).value for s in (1.0, -1.0)] for e in np.eye(len(x))]
    slopes = np.array([(up - down) / (2 * step) for up, down in values])
    np.testing.assert_allclose(problem.derivatives(x, at)[1], slopes, rtol=1e-6, atol=1e-5)
    H = differences(problem, x)
    np.testing.assert_allclose(hessian(problem, x, at), H, rtol=1e-7, atol=1e-8 * np.abs(H).max())


def test_a_model_without_random_effects_has_no_hessian():
    problem = build_problem(
        [], np.ones((5, 1)), np.arange(5.0), n=np.ones(5), weight=np.ones(5), ss=np.zeros(5), reml=True
    )
    assert hessian(problem, np.empty(0), problem.evaluate(np.empty(0))).shape == (0, 0)


def one_way(groups: int, runs: int, ratio: float) -> pd.DataFrame:
    """A balanced table of groups whose means scatter ``ratio`` times as much as their runs."""
    rng = np.random.default_rng(4)
    group = np.repeat(np.arange(groups), runs)
    return pd.DataFrame({"g": group, "y": ratio * rng.normal(size=groups)[group] + rng.normal(size=len(group))})


@pytest.mark.parametrize("ratio", [0.5, 3.0, 30.0, 300.0])
@pytest.mark.parametrize(("groups", "runs"), [(8, 5), (20, 60)])
def test_the_df_of_a_group_s_mean_are_those_of_the_closed_form(groups, runs, ratio):
    table = one_way(groups, runs, ratio)
    found = lt.fit_lmm("y ~ 1 + (1 | g)", table).prediction_intervals(pd.DataFrame({"g": [0]}))
    by_group = table.groupby("g")["y"]
    within, between = float(by_group.var().mean()), runs * float(by_group.mean().var())
    # the error variance as a function of the two mean squares, which are independent
    share = 1.0 - 1.0 / groups
    variance = within / runs * (1.0 / groups + share * (1.0 - within / between))
    d_within = (1.0 / groups + share * (1.0 - 2.0 * within / between)) / runs
    d_between = share * within**2 / between**2 / runs
    spread = d_within**2 * within**2 / (groups * (runs - 1)) + d_between**2 * between**2 / (groups - 1)
    assert found["se"][0] == pytest.approx(np.sqrt(variance), rel=1e-8)
    assert found["df"][0] == pytest.approx(variance**2 / spread, rel=1e-7)


@pytest.mark.parametrize(("algorithms", "benchmarks"), [(3, 8), (30, 36)])
def test_the_df_of_a_difference_in_a_balanced_table_are_those_of_its_mean_square(algorithms, benchmarks):
    rng = np.random.default_rng(5)
    table = pd.MultiIndex.from_product([range(algorithms), range(benchmarks), range(3)], names=["a", "b", "s"])
    table = table.to_frame(index=False).astype({"a": str})
    own = rng.normal(size=(algorithms, benchmarks))
    table["y"] = own[table["a"].astype(int), table["b"]] + 30.0 * rng.normal(size=benchmarks)[table["b"]]
    table["y"] += rng.normal(size=len(table))
    fit = lt.fit_lmm("y ~ a + (1 | b) + (1 | a:b)", table)
    first = np.eye(algorithms)[[1]]
    assert fit.df(first) == pytest.approx([(algorithms - 1) * (benchmarks - 1)], rel=1e-7)
