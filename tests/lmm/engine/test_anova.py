"""Balanced designs: the criterion of mean squares is that of the elimination, and what it solves is the optimum."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from levels import half
from pytest import approx

from lmemtest.lmm.engine.ddf import curvature
from lmemtest.lmm.engine.hessian import hessian
from lmemtest.lmm.engine.optimize import optimise
from lmemtest.lmm.engine.problem import Problem, build_problem
from lmemtest.lmm.engine.profile import Constrained, Target
from lmemtest.lmm.engine.profile_path import follow
from lmemtest.lmm.engine.structure import RandomTerm

ALGORITHMS, BENCHMARKS, SEEDS = 3, 7, 4


def design(kind: str, *, sd: tuple[float, ...] = (1.0, 0.5, 0.3), reml: bool = True, seed: int = 1) -> dict:
    """Algorithms x benchmarks x seeds with benchmarks, benchmark:algorithm and benchmark:seed as random effects."""
    rng = np.random.default_rng(seed)
    a, b, s = (i.ravel() for i in np.indices((ALGORITHMS, BENCHMARKS, SEEDS)))
    one, size = np.ones((len(a), 1)), len(a)
    terms = [
        RandomTerm(one, b, BENCHMARKS),
        RandomTerm(one, a + ALGORITHMS * b, ALGORITHMS * BENCHMARKS),
        RandomTerm(one, s + SEEDS * b, SEEDS * BENCHMARKS),
    ]
    crossed = [RandomTerm(one, s, SEEDS), RandomTerm(one, a + ALGORITHMS * s, ALGORITHMS * SEEDS)]
    if kind.startswith("crossed"):  # seeds with the same names on every benchmark
        terms, sd = [*terms[: 3 if kind == "crossed and nested" else 2], *crossed], (*sd, 0.6, 0.4)
    y = a + sum(v * rng.normal(size=t.n_levels)[t.codes] for v, t in zip(sd, terms, strict=False))
    X = np.hstack([one, np.eye(ALGORITHMS)[a][:, 1:]])
    if kind == "covariate":
        X = np.column_stack([X, b**2.0])
    if kind == "slope in seeds":  # its columns leave the span of X
        X = np.column_stack([X, rng.normal(size=SEEDS * BENCHMARKS)[s + SEEDS * b]])
    if kind == "cells":
        terms = [*terms, RandomTerm(one, np.arange(size), size)]
        y = y + 0.8 * rng.normal(size=size)
    if kind == "Latin square":  # of seven rows, columns and treatments; what is unequal is proportional
        row, column = (i.ravel() for i in np.indices((7, 7)))
        treatment, size = (row + column) % 7, 49
        terms = [RandomTerm(np.ones((size, 1)), codes, 7) for codes in (row, column)]
        X, y = np.eye(7)[treatment], treatment + rng.normal(size=7)[row] + rng.normal(size=7)[column]
    n = np.full(size, 2.0)
    if kind in ("unbalanced", "crossed, unbalanced"):
        n[::5] = 3.0
    if kind == "one term":
        terms = terms[1:2]
    if kind == "no fixed part":
        X = np.empty((size, 0))
    noise = rng.normal(size=size) / np.sqrt(n)
    data = {"X": X, "y": y + noise, "n": n, "weight": np.ones(size), "reml": reml, "ss": rng.chisquare(n - 1.0)}
    if kind.startswith("by benchmark"):  # a mean of every cell in columns that overlap, and residual variances
        size = ALGORITHMS * BENCHMARKS
        spread = {"y": y + (1.0 + b) * noise, "ss": (1.0 + b) ** 2 * data["ss"]}
        data |= {"X": np.tril(np.ones((size, size))), "rows": a + ALGORITHMS * b, "stratum": b, **spread}
        terms = terms[2:] if kind == "by benchmark" else []
    return {**data, "terms": terms}


def eliminated(data: dict) -> Problem:
    """The problem, kept from its mean squares."""
    return replace(build_problem(**data), anova=None)


BALANCED = ["nested", "covariate", "cells", "one term", "crossed", "crossed and nested", "Latin square"]
APART = ["by benchmark", "by benchmark, no random effects"]


@pytest.mark.parametrize("reml", [True, False])
@pytest.mark.parametrize("kind", [*BALANCED, *APART, "no fixed part"])
def test_criterion_and_derivatives_are_those_of_the_elimination(kind, reml):
    made = build_problem(**design(kind, reml=reml))
    x = np.random.default_rng(2).uniform(0.1, 2.0, made.n_free)
    x[0] = 0.0 if made.n_theta else x[0]  # at the boundary too
    at, of_squares = made.evaluate(x), made.anova.evaluate(x)
    assert of_squares.value == approx(at.value, rel=1e-12)
    assert of_squares.r2 == approx(at.r2, rel=1e-12)
    assert of_squares.total == approx(at.total, rel=1e-12)
    gradients, g, H = made.anova.derivatives(x, of_squares)
    want, want_g = made.derivatives(x, at)
    np.testing.assert_allclose(np.ravel(gradients), np.ravel(want), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(g, want_g, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(H, hessian(made, x, at), rtol=1e-9, atol=1e-9)


@pytest.mark.daily(3)
@pytest.mark.parametrize(("reml", "kind"), half([True, False], [*BALANCED, "no fixed part"]))
def test_profiles_are_those_of_the_elimination_and_need_none(kind, reml, monkeypatch):
    """The deviance with a standard deviation held, its gradient, and the interval."""
    data = design(kind, reml=reml)
    made, plain = build_problem(**data), eliminated(data)
    x = optimise(made).theta
    found = {}
    for problem in (plain, made):
        for target in (Target("sd", 0, (0,)), Target("residual sd")):
            held = Constrained(problem, target, reml=reml)
            u, phi = held.at_fit(x, made.evaluate(x))
            at = held.evaluate(1.1 * u, phi + 0.1)
            in_u, in_phi, in_free = held.slopes(at)
            path = follow(problem, x, made.evaluate(x), target, cut=1.5, reml=reml)
            free = [np.ravel(part) for part in in_free]
            got = np.concatenate([[at.value, in_u], in_phi, *free])
            found.setdefault(target.kind, []).append((got, [path.low, path.high]))
        monkeypatch.setattr("lmemtest.lmm.engine.profile.sweep", None)
    for (want, interval), (got, of_squares) in found.values():
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(of_squares, interval, rtol=1e-8)


@pytest.mark.parametrize("kind", [*BALANCED, *APART])
def test_curvature_is_that_of_the_elimination(kind):
    data = design(kind)
    made, plain = build_problem(**data), eliminated(data)
    found = optimise(made)
    got, want = curvature(made, found), curvature(plain, found)
    for name in ("hessian", "d_cov", "d_log_scale"):
        np.testing.assert_allclose(getattr(got, name), getattr(want, name), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("kind", ["unbalanced", "crossed, unbalanced", "slope in seeds"])
def test_designs_without_common_eigenspaces_are_eliminated(kind):
    assert build_problem(**design(kind)).anova is None


def test_a_held_residual_variance_and_strata_that_share_effects_are_eliminated():
    data, apart = design("nested"), design("by benchmark")
    assert build_problem(**data, residual_variance=1.0).anova is None
    assert build_problem(**data, stratum=np.arange(len(data["y"])) % 2).anova is None
    seeds = replace(apart["terms"][0], codes=apart["terms"][0].codes % SEEDS, n_levels=SEEDS)
    assert build_problem(**apart).anova is not None
    assert build_problem(**apart | {"terms": [seeds]}).anova is None  # a level on several benchmarks
    assert build_problem(**apart | {"stratum": apart["stratum"] // 2}).anova is not None  # unions of benchmarks
    assert build_problem(**apart | {"stratum": apart["rows"] % 2}).anova is None
    assert build_problem(**apart | {"X": apart["X"][:, :-1]}).anova is None  # fewer columns than means


@pytest.mark.parametrize("reml", [True, False])
def test_means_and_variances_of_strata_without_random_effects_are_those_of_each(reml):
    data = design("by benchmark, no random effects", reml=reml)
    made = build_problem(**data)
    found = optimise(made)
    assert (found.converged, found.evaluations, found.message) == (True, 1, "solved in closed form")
    n, b, rows = data["n"], data["stratum"], data["rows"]
    mean = np.bincount(rows, n * data["y"]) / np.bincount(rows, n)
    squares = np.bincount(b, n * (data["y"] - mean[rows]) ** 2 + data["ss"])
    variance = squares / (np.bincount(b, n) - (ALGORITHMS if reml else 0))
    np.testing.assert_allclose(made.residual_variances(found.theta, found.criterion), variance, rtol=1e-12)
    estimates, U = made.fixed_effects(found.criterion)
    np.testing.assert_allclose(np.cumsum(estimates), mean, rtol=1e-12)
    L = data["X"]
    errors = np.repeat(variance, ALGORITHMS) / np.bincount(rows, n)
    scale = found.criterion.sigma2 * made.y_scale**2
    np.testing.assert_allclose(scale * ((L @ U) ** 2).sum(axis=1), errors, rtol=1e-12)
    df = curvature(made, found).satterthwaite(L)  # of a mean on one benchmark those of its variance
    np.testing.assert_allclose(df, np.bincount(b, n)[0] - (ALGORITHMS if reml else 0), rtol=1e-9)


def test_lines_are_those_of_the_textbook():
    """Expected mean squares and degrees of freedom of the two-way layout within benchmarks, by hand."""
    made = build_problem(**design("nested"))
    lines = dict(zip(made.anova.df.astype(int).tolist(), made.anova.sizes, strict=True))
    a, b, s = ALGORITHMS, BENCHMARKS, SEEDS
    wanted = {
        b - 1: [2 * a * s, 2 * s, 2 * a],
        (b - 1) * (a - 1): [0, 2 * s, 0],
        b * (s - 1): [0, 0, 2 * a],
        2 * a * b * s - a - (b - 1) - (b - 1) * (a - 1) - b * (s - 1): [0, 0, 0],
    }
    assert lines.keys() == wanted.keys()
    for df, sizes in wanted.items():
        np.testing.assert_allclose(lines[df], sizes, atol=1e-10)


@pytest.mark.parametrize("reml", [True, False])
def test_the_optimum_of_strata_is_that_of_the_elimination(reml):
    data = design("by benchmark", reml=reml)
    made, plain = build_problem(**data), eliminated(data)
    found, want = optimise(made), optimise(plain)
    assert (found.converged, found.agreeing) == (True, 3)
    assert found.criterion.value == approx(want.criterion.value, rel=1e-12)
    np.testing.assert_allclose(found.theta, want.theta, atol=1e-6)
    for got, wanted in zip(made.fixed_effects(found.criterion), plain.fixed_effects(want.criterion), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-6, atol=1e-8)
    of_modes = found.criterion.scores(), plain.evaluate(found.theta).scores()  # the elimination, when asked for
    np.testing.assert_allclose(of_modes[0][0], of_modes[1][0], rtol=1e-9, atol=1e-10)


def test_what_the_mean_squares_give_is_the_best_of_three_searches():
    solved = 0
    for seed in range(5):
        data = design("nested", sd=(1.0, 0.4, 0.2) if seed % 2 else (0.3, 0.3, 0.1), seed=seed, reml=seed % 3 > 0)
        found, want = optimise(build_problem(**data)), optimise(eliminated(data))
        assert found.converged
        assert found.criterion.value == approx(want.criterion.value, rel=1e-12)
        np.testing.assert_allclose(found.theta, want.theta, atol=1e-5)
        closed = found.message == "solved in closed form"
        assert closed == (found.evaluations == 1)
        assert closed == (not found.at_boundary)
        solved += closed
    assert 1 <= solved <= 4  # both cases occur
