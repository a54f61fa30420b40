"""Means of all cells absorbed: the likelihood of the dense design, without its columns."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from growth import exponent, peak

import lmemtest as lt
from lmemtest.lmm.engine import absorbed
from lmemtest.lmm.engine.absorbed import absorbed_problem
from lmemtest.lmm.engine.optimize import optimise
from lmemtest.lmm.engine.structure import RandomTerm


def table_of(algorithms: int, benchmarks: int, seeds: int, missing: float = 0.0, empty: bool = False) -> pd.DataFrame:
    rng = np.random.default_rng(algorithms * benchmarks * seeds)
    a, b, s = (codes.ravel() for codes in np.indices((algorithms, benchmarks, seeds)))
    y = rng.normal(size=(benchmarks, algorithms))[b, a] + 0.5 * rng.normal(size=(benchmarks, seeds))[b, s]
    y = y + 0.6 * rng.normal(size=(seeds, algorithms))[s, a] + 0.4 * rng.normal(size=len(a))
    kept = (rng.random(len(a)) >= missing) & ~(empty & (a == 0) & (b == 1))
    return pd.DataFrame({"a": a, "b": b, "s": s, "y": y})[kept].reset_index(drop=True)


@pytest.mark.daily(7)
@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize(
    ("missing", "empty", "many"), [(0.0, False, False), (0.0, False, True), (0.25, False, False), (0.2, True, False)]
)
def test_the_likelihoods_are_those_of_the_dense_design(monkeypatch, paired, full, missing, empty, many):
    """`many`: a balanced table is taken seed by seed, as one of many seeds is."""
    if many:
        monkeypatch.setattr(absorbed, "_FEW_OWN", 0)
    table = table_of(3, 6, 8, missing, empty)
    a, b, s, y = (table[name].to_numpy() for name in "absy")
    term = RandomTerm(np.eye(3)[a], s, 8) if full else RandomTerm(np.ones((len(y), 1)), s * 3 + a, 24)
    null = "y ~ a * b" + " + (1 | b:s)" * paired
    for formula, terms in ((null, []), (f"{null} + {'(0 + a | s)' if full else '(1 | s:a)'}", [term])):
        problem, constant = absorbed_problem(y, a, b, s, terms, paired=paired)
        found = optimise(problem)
        dense = lt.fit_lmm(formula, table.astype({"a": str, "b": str, "s": str}))
        assert found.converged
        assert -0.5 * (found.criterion.value + problem.deviance_shift + constant) == pytest.approx(dense.llf, abs=1e-10)
        theta = problem.to_user(found.theta)
        assert theta @ theta == pytest.approx(dense.problem.to_user(dense.optim.theta) @ dense.theta, rel=1e-5)


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_memory_is_linear_in_benchmarks(missing: float) -> None:
    """A dense design has a column per cell, so its memory grows with the square."""

    def test(benchmarks: int) -> lt.SeedEffect:
        runs = lt.Runs(
            table_of(6, benchmarks, 4, missing), score="y", direction="minimize", algorithm="a", benchmark="b", seed="s"
        )
        return lt.seed_effect(runs)

    assert exponent(peak, lambda: test(40), lambda: test(160)) < 1.1
