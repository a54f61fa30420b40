"""Small designs against a dense likelihood: its best optimum is found, and refused where it has no limit."""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable
from io import StringIO

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

import lmemtest as lt
from lmemtest.lmm.cells import compress
from lmemtest.lmm.engine import theta as th
from lmemtest.lmm.engine.span import independent_columns, no_residual, unbounded
from lmemtest.lmm.formula import build_design, parse_formula
from lmemtest.lmm.formula.design import Design

FORMULAS = (
    "loss ~ algo + (1 | task)",
    "loss ~ algo + (1 | task) + (1 | seed)",
    "loss ~ algo + (x | task)",
    "loss ~ algo + (x || task)",
    "loss ~ algo * x + (1 | task)",
    "loss ~ algo + x + (1 | task) + (1 | task:algo)",
    "loss ~ algo + (1 | task) + (0 + x | seed)",
    "loss ~ x + (1 | task) + (1 | algo)",
    "loss ~ algo + (x | task) + (1 | seed)",
)


def drawn(rng: np.random.Generator, most: int = 72) -> pd.DataFrame:
    """A table of 4 to 72 rows, half of them with gaps."""
    while True:
        sizes = rng.integers([2, 2, 1], [4, 7, 5])
        rows = pd.MultiIndex.from_product([range(k) for k in sizes], names=["algo", "task", "seed"])
        frame = rows.to_frame(index=False)
        if rng.random() < 0.5:
            frame = frame[rng.random(len(frame)) < rng.uniform(0.4, 0.95)]
        if 4 <= len(frame) <= most and (frame.nunique() > 1).all():
            break
    frame = frame.assign(x=rng.normal(size=len(frame)), loss=rng.normal(size=len(frame)))
    frame["loss"] += rng.choice([0.0, 0.3, 1.0, 3.0]) * rng.normal(size=7)[frame["task"]]
    frame["loss"] += rng.choice([0.0, 1.0]) * rng.normal(size=7)[frame["task"]] * frame["x"]
    return frame.astype({"algo": str, "task": str, "seed": str}).reset_index(drop=True)


def design_of(formula: str, frame: pd.DataFrame) -> tuple[Design, np.ndarray, np.ndarray]:
    """The design with a cell for every row, its scores, and independent columns of X."""
    parsed = parse_formula(formula)
    cells = compress(frame.assign(row=range(len(frame))), by=[*parsed.columns, "row"], score="loss")
    design = build_design(parsed, cells.columns, cells.n)
    return design, cells.mean, design.X[:, independent_columns(design.X, cells.n)]


def columns(design: Design) -> list[np.ndarray]:
    """Z of each term, ``(rows, levels, effects)``."""
    found = []
    for term in design.random:
        Z = np.zeros((len(term.codes), term.n_levels, len(term.names)))
        Z[np.arange(len(Z)), term.codes] = term.basis
        found.append(Z)
    return found


def rank(*parts: np.ndarray) -> int:
    return int(np.linalg.matrix_rank(np.hstack([part.reshape(len(part), -1) for part in parts]), tol=1e-8))


def deviance_of(formula: str, frame: pd.DataFrame, *, reml: bool) -> tuple[Callable[[np.ndarray], float], int]:
    """The profiled deviance by dense matrices of all rows, and its number of parameters."""
    design, y, X = design_of(formula, frame)
    Zs, shapes = columns(design), [term.shape for term in design.engine_terms]
    n, p = X.shape
    m = n - p if reml else n

    def deviance(theta: np.ndarray) -> float:
        V = np.eye(n)
        for L, Z in zip(th.unpack(theta, shapes), Zs, strict=True):
            ZL = (Z @ L).reshape(n, -1)
            V += ZL @ ZL.T
        C = np.linalg.cholesky(V)
        Q, R = np.linalg.qr(np.linalg.solve(C, X))
        rest = np.linalg.solve(C, y)
        rest -= Q @ (Q.T @ rest)
        found = 2.0 * np.log(np.diag(C)).sum() + m * (1.0 + np.log(2.0 * np.pi * (rest @ rest) / m))
        return float(found + reml * 2.0 * np.log(np.abs(np.diag(R))).sum())

    return deviance, sum(shape.n_theta for shape in shapes)


def least(deviance: Callable[[np.ndarray], float], k: int) -> float:
    """The least deviance over starts with all variances and with one at a time."""
    starts = [np.full(k, 0.3), *(np.where(np.arange(k) == j, 2.0, 0.02) for j in range(k))]
    options = {"ftol": 1e-13, "gtol": 1e-8}
    bounds = [(-1e3, 1e3)] * k
    return min(minimize(deviance, s, method="L-BFGS-B", bounds=bounds, options=options).fun for s in starts)


@pytest.mark.level(2)
def test_no_dense_optimum_of_a_small_design_is_better_than_the_fit() -> None:
    rng, fitted, worse = np.random.default_rng(11), 0, []
    for i in range(27):
        formula, frame, reml = FORMULAS[i % 9], drawn(rng), bool(i // 9 % 2)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error", lt.errors.ConvergenceWarning)
                fit = lt.fit_lmm(formula, frame, reml=reml)
        except lt.errors.DesignError:
            continue
        fitted += 1
        best = least(*deviance_of(formula, frame, reml=reml))
        if -2.0 * fit.llf > best + 1e-5:
            worse.append((i, formula, reml, -2.0 * fit.llf - best))
    assert fitted > 18
    assert worse == []


def test_effects_that_reach_every_row_are_those_of_full_rank() -> None:
    rng, saturated = np.random.default_rng(5), 0
    for i in range(54):
        formula, frame = FORMULAS[i % 9], drawn(rng, most=14)
        design, _, _ = design_of(formula, frame)
        full = rank(design.X, *columns(design)) == len(frame)
        assert no_residual(design.distinct, design.engine_terms, np.ones(len(frame)), design.row) == full, formula
        saturated += full
    assert 5 < saturated < 50


@pytest.mark.parametrize("formula", FORMULAS[1:])
def test_the_likelihood_is_unbounded_where_the_dense_one_falls_without_limit(formula: str) -> None:
    """Within a hundred times the bounds on standard deviations the least deviance is lower by ``2 log 100`` or more."""
    rng, seen = np.random.default_rng(3), 0
    while seen < 1:
        frame = drawn(rng, most=12)
        design, _, X = design_of(formula, frame)
        if rank(X, *columns(design)) < len(frame) or X.shape[1] >= len(frame):
            continue
        seen += 1
        for reml in (False, True):
            deviance, k = deviance_of(formula, frame, reml=reml)
            rays = np.vstack([rng.uniform(-1.0, 1.0, size=(4, k)), np.eye(k)])
            near, at = min((_lowest(deviance, 1e3, ray) for ray in rays), key=lambda found: found[0])
            far, _ = min((_lowest(deviance, 1e5, ray) for ray in [*rays, at / 1e3]), key=lambda found: found[0])
            told = unbounded(design.X, design.engine_terms, reml=reml)
            if formula != FORMULAS[-1]:
                assert told == (near - far > 4.0), (near, far)
            else:  # correlated effects beside others: without limit for some scores, not for all
                assert told or not near - far > 4.0, (near, far)


def _lowest(deviance: Callable[[np.ndarray], float], bound: float, ray: np.ndarray) -> tuple[float, np.ndarray]:
    """The least deviance within a bound, and where: from a tenth of the way to it, and on its edge."""
    found = [(deviance(bound * ray), bound * ray)]
    try:
        end = minimize(deviance, 0.1 * bound * ray, method="L-BFGS-B", bounds=[(-bound, bound)] * len(ray))
        found.append((float(end.fun), end.x))
    except np.linalg.LinAlgError:  # V of a line search is beyond rounding
        pass
    return min(found, key=lambda one: one[0])


TWO_OPTIMA = pd.read_csv(
    StringIO(
        """algo,task,x,loss
A0,t0,2.7265697653734735,-0.53759780325198181
A0,t1,0.71731070779032113,1.2390900374421852
A0,t2,-1.0266250041122411,-1.9944692367147683
A0,t3,0.22802226727287397,-1.4459713785359107
A0,t4,0.66531225121339832,0.52129330054959455
A0,t5,-0.1218114727838837,-1.7167551184337875
A1,t0,1.5445662238941877,0.62738061636846953
A1,t1,0.36191242668674994,1.1699950741924077
A1,t2,0.35766215653923539,-0.3597994624056865
A1,t3,0.17895022879467454,0.88916241357836778
A1,t4,0.093990261128138616,-0.12609839211276702
A1,t5,0.24401390978899556,-0.8574573854908647
"""
    )
)


def test_the_better_of_two_optima_has_the_slope_alone() -> None:
    """From all variances at once the search ends at a deviance of 32.159, and from there no variance wants to grow."""
    fit = lt.fit_lmm("loss ~ algo + (x || task)", TWO_OPTIMA)
    assert -2.0 * fit.llf == pytest.approx(least(*deviance_of("loss ~ algo + (x || task)", TWO_OPTIMA, reml=True)))
    assert -2.0 * fit.llf == pytest.approx(30.70957, abs=1e-5)
    assert fit.notes[0] == (
        "The fixed effects and (1 | task), (0 + x | task) together fit every one of the 12 rows exactly: only the "
        "shape of the random effects distinguishes the residual variance from theirs, and standard errors rest on the "
        "model. Add repeated runs, or a simpler random part."
    )


def test_a_likelihood_without_limit_is_refused() -> None:
    frame = TWO_OPTIMA.iloc[[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]].assign(task=list("aabbccddee"))
    frame["algo"] = ["A", "B", "C"] * 3 + ["A"]
    message = (
        "The fixed effects and (1 | task) together fit every one of the 10 rows exactly, and the likelihood grows "
        "without limit as the residual variance goes to zero, so there is nothing to judge differences by. Leave out "
        "a random effect or a fixed one, or add repeated runs."
    )
    with pytest.raises(lt.errors.DesignError, match=f"^{re.escape(message)}$"):
        lt.fit_lmm("loss ~ algo * x + (1 | task)", frame, reml=False)


def test_a_large_table_is_judged_by_sparse_columns() -> None:
    """Pairs of rows with a task; one of them has a seed of its own, the other one shares it with fifty pairs."""
    row = np.arange(4_000)
    frame = pd.DataFrame({"task": row // 2, "seed": np.where(row % 2, row, row // 100 * 2), "loss": np.sin(row)})
    frame["algo"] = np.where(row % 3 == 0, "A", "B")
    both_shared = frame.assign(seed=frame["seed"].where(row != 1_001, frame["seed"][1_000]))
    both_shared.loc[1_001, "algo"] = both_shared.loc[1_000, "algo"]  # two rows with the same effects
    for table, reached in ((frame, True), (both_shared, False)):
        design, _, _ = design_of("loss ~ algo + (1 | task) + (1 | seed)", table)
        assert no_residual(design.distinct, design.engine_terms, np.ones(len(row)), design.row) == reached
