"""Every way of eliminating the random effects gives the same criterion, derivatives and modes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from growth import exponent, peak
from levels import half
from pytest import approx

from lmemtest.lmm.engine import ddf, optimize, products, residual, span, structure
from lmemtest.lmm.engine import problem as problems
from lmemtest.lmm.engine import sweep as sweeps
from lmemtest.lmm.engine import theta as th
from lmemtest.lmm.engine.cross import PartedCross
from lmemtest.lmm.engine.ddf import curvature
from lmemtest.lmm.engine.hessian import average_information, hessian
from lmemtest.lmm.engine.kenward_roger import kenward_roger
from lmemtest.lmm.engine.optimize import moment_start, optimise
from lmemtest.lmm.engine.prediction import log_scale_slopes
from lmemtest.lmm.engine.problem import Problem, absent_terms, build_problem, zero_slopes
from lmemtest.lmm.engine.products import rotated
from lmemtest.lmm.engine.profile import Constrained, Target
from lmemtest.lmm.engine.structure import RandomTerm, candidates
from lmemtest.lmm.engine.sweep import conditional_modes

ALGORITHMS, BENCHMARKS, SEEDS = 4, 6, 3


def design(kind: str, *, balanced: bool, strata: bool = False, reml: bool = True) -> dict:
    """Algorithms x benchmarks x seeds, with what is nested in benchmarks and what crosses them."""
    rng = np.random.default_rng(len(kind))
    a, b, s = (i.ravel() for i in np.indices((ALGORITHMS, BENCHMARKS, SEEDS)))
    if not balanced:
        kept = np.sort(rng.permutation(len(a))[:60])
        a, b, s = a[kept], b[kept], s[kept]
        s = np.where(b == 0, 0, s)  # a benchmark with one seed
    size = len(a)
    one, x = np.ones((size, 1)), a[:, None] - 1.5
    slope = np.hstack([one, x])
    benchmark, pair, seed = RandomTerm(one, b, BENCHMARKS), (a + ALGORITHMS * b), (s + SEEDS * b)
    nested = [benchmark, RandomTerm(one, pair, ALGORITHMS * BENCHMARKS), RandomTerm(one, seed, SEEDS * BENCHMARKS)]
    terms = {
        "nested": nested,
        "without benchmarks": nested[1:],
        "slopes": [RandomTerm(slope, b, BENCHMARKS), *nested[1:]],
        "slopes of seeds": [benchmark, nested[1], RandomTerm(slope, seed, SEEDS * BENCHMARKS)],
        "variances": [benchmark, nested[1], RandomTerm(slope, seed, SEEDS * BENCHMARKS, diagonal=True)],
        "border": [*nested, RandomTerm(one, s, SEEDS), RandomTerm(one, s + SEEDS * a, SEEDS * ALGORITHMS)],
        "covariate": nested,
        "no fixed part": nested,
        "crossed": [benchmark, RandomTerm(one, s, SEEDS)],
        "families": [RandomTerm(one, b // 2, 3), RandomTerm(one, a + ALGORITHMS * (b // 2), 3 * ALGORITHMS), *nested],
    }[kind]
    X = np.hstack([one, np.eye(ALGORITHMS)[a][:, 1:]])
    if kind == "covariate":
        X = np.column_stack([X, b**2.0])
    if kind == "no fixed part":
        X = np.empty((size, 0))
    n = np.full(size, 2.0) if balanced else rng.integers(1, 4, size).astype(float)
    return {
        "terms": terms,
        "X": X,
        "y": rng.normal(size=size) + rng.normal(size=BENCHMARKS)[b] + rng.normal(size=SEEDS * BENCHMARKS)[seed],
        "n": n,
        "weight": np.ones(size) if balanced else rng.uniform(0.5, 2.0, size),
        "ss": rng.uniform(0.1, 1.0, size) * (n > 1),
        "reml": reml,
        "stratum": a % 2 if strata else None,
    }


def every_way(monkeypatch: pytest.MonkeyPatch, data: dict) -> list[Problem]:
    """The problem by each of the ways that could be chosen, the chain first."""
    monkeypatch.setattr(structure, "_CHEAP", -1.0)
    found = list(candidates(data["terms"], data["X"].shape[1], data["n"] * data["weight"]))
    out = []
    for i in range(len(found)):

        def ith(terms, p, omega, i=i):
            return list(candidates(terms, p, omega))[i][1]()

        monkeypatch.setattr(products, "choose", ith)
        monkeypatch.setattr(problems, "choose", ith)
        out.append(build_problem(**data))
    return out


KINDS = [
    "nested",
    "covariate",
    "no fixed part",
    "without benchmarks",
    "slopes",
    "slopes of seeds",
    "variances",
    "border",
    "crossed",
    "families",
]


@pytest.mark.daily(17)
@pytest.mark.parametrize(
    ("kind", "balanced", "strata", "boundary"), half(KINDS, [False, True], [False, True], [False, True])
)
def test_every_elimination_gives_the_same_numbers(monkeypatch, kind, balanced, strata, boundary):
    data = design(kind, balanced=balanced, strata=strata, reml=not boundary)
    chain, *others = every_way(monkeypatch, data)
    if not strata:
        others += [problem.reduced for problem in others]
    assert others
    x = np.random.default_rng(1).normal(size=chain.n_free)
    x[0] *= not boundary
    at = chain.evaluate(x)
    gradients, g = chain.derivatives(x, at)
    H, information = hessian(chain, x, at), average_information(chain, x, at, gradients, g)
    modes = chain.system.by_level(conditional_modes(at.system, at.sweep, at.v), chain.n_levels)
    for other in others:
        there = other.evaluate(x)
        assert there.value == approx(at.value, rel=1e-13)
        assert there.b == approx(at.b, rel=1e-9, abs=1e-12)
        ours, g_ours = other.derivatives(x, there)
        assert g_ours == approx(g, rel=1e-9, abs=1e-9)
        np.testing.assert_allclose(hessian(other, x, there), H, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(average_information(other, x, there, ours, g_ours), information, atol=1e-9)
        np.testing.assert_allclose(moment_start(other), moment_start(chain), rtol=1e-9)
        if all(stage.S is None for stage in other.system.chain):  # levels put into one have no modes of their own
            found = other.system.by_level(conditional_modes(there.system, there.sweep, there.v), other.n_levels)
            for u, want in zip(found, modes, strict=True):
                np.testing.assert_allclose(u, want, rtol=1e-9, atol=1e-11)
            assert log_scale_slopes(other, x, there) == approx(log_scale_slopes(chain, x, at), rel=1e-9, abs=1e-12)


@pytest.mark.daily(7)
@pytest.mark.parametrize("balanced", [False, True])
@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "no fixed part"])
def test_kenward_and_roger_s_covariance_is_the_same_by_every_elimination(monkeypatch, kind, balanced):
    chain, *others = every_way(monkeypatch, design(kind, balanced=balanced))
    optimum = optimise(chain, restarts=0)
    want = kenward_roger(chain, optimum)
    for other in others:
        got = kenward_roger(other, replace(optimum, criterion=other.evaluate(optimum.theta)))
        np.testing.assert_allclose(got.W, want.W, rtol=1e-8, atol=1e-8 * np.abs(want.W).max())
        np.testing.assert_allclose(got.d_cov, want.d_cov, rtol=1e-8, atol=1e-9 * np.abs(want.d_cov).max())
        np.testing.assert_allclose(got.adjusted, want.adjusted, rtol=1e-8, atol=1e-9 * want.adjusted.max())


@pytest.mark.parametrize("border", [False, True])
def test_means_of_algorithms_in_families_meet_those_of_their_family_alone(monkeypatch, border):
    """Columns of their own, of which a benchmark has those of its family, change no number."""
    data = design("border" if border else "nested", balanced=False)
    del data["stratum"]
    a, family = np.argmax(data["X"][:, 1:], axis=1) + data["X"][:, 1:].any(axis=1), data["terms"][0].codes // 2
    mean = a + ALGORITHMS * family
    cell_means = np.eye(3 * ALGORITHMS)
    cell_means[:, 0] = 1.0  # neither orthogonal nor sparse
    data |= {"X": cell_means, "rows": mean}
    plain = build_problem(**data)
    monkeypatch.setattr(span, "_MANY", 0)
    monkeypatch.setattr(products, "_SPARSE_FROM", 0)
    monkeypatch.setattr(products, "prefer_sparse", lambda *_: False)
    made = build_problem(**data)
    assert {type(stage.V) for stage in made.system.chain} == {PartedCross}
    x = np.random.default_rng(3).uniform(0.2, 1.5, made.n_free)
    at, want = made.evaluate(x), plain.evaluate(x)
    assert at.value + made.deviance_shift == approx(want.value + plain.deviance_shift, rel=1e-13)
    np.testing.assert_allclose(made.derivatives(x, at)[1], plain.derivatives(x, want)[1], rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(hessian(made, x, at), hessian(plain, x, want), rtol=1e-9, atol=1e-9)
    (b, U), (b_want, U_want) = made.fixed_effects(at), plain.fixed_effects(want)
    np.testing.assert_allclose(b, b_want, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(U @ U.T, U_want @ U_want.T, rtol=1e-9, atol=1e-10)
    optimum = optimise(made)
    got = curvature(made, optimum)
    other = curvature(plain, replace(optimum, criterion=plain.evaluate(optimum.theta)))
    np.testing.assert_allclose(got.d_cov, other.d_cov, rtol=1e-7, atol=1e-9 * np.abs(other.d_cov).max())
    found, wanted = (
        kenward_roger(made, optimum),
        kenward_roger(plain, replace(optimum, criterion=plain.evaluate(optimum.theta))),
    )
    np.testing.assert_allclose(found.adjusted, wanted.adjusted, rtol=1e-8, atol=1e-9 * wanted.adjusted.max())
    left, right = np.triu_indices(4, 1)
    L = (np.eye(3 * ALGORITHMS)[left] - np.eye(3 * ALGORITHMS)[right])[:4]
    want_df = got.satterthwaite(L)
    monkeypatch.setattr(ddf, "_MANY", 0)  # a few functions by derivatives of their own
    derived = []
    counted = replace(got, slopes=lambda targets: derived.append(targets.shape[1]) or got.slopes(targets))
    assert counted.satterthwaite(L) == approx(want_df, rel=1e-10)
    assert derived == [3]  # the fourth, of the second and the third mean, is the difference of the first two


def test_benchmarks_that_are_alike_are_factored_once():
    data = design("nested", balanced=True)
    made = build_problem(**data)
    (stage,) = made.system.chain
    assert (stage.block.q, stage.block.K) == (BENCHMARKS, 1 + ALGORITHMS + SEEDS)
    assert stage.A.shape == (1, stage.block.K, stage.block.K)
    assert made.reduced.system.chain[0].V.values.shape[0] == 1
    data["weight"] = data["weight"].copy()
    data["weight"][0] = 2.0  # one run counts more: no two parts need be alike
    assert build_problem(**data).system.chain[-1].copies == 1


@pytest.mark.parametrize("strata", [False, True])
@pytest.mark.parametrize("cells", [False, True])
@pytest.mark.parametrize("kind", ["slopes", "slopes of seeds"])
def test_turned_columns_have_the_same_criterion(kind, cells, strata):
    data = design(kind, balanced=False, strata=strata)
    made = build_problem(**(with_cells(data, equal=True) if cells else data))
    x = made.point(np.random.default_rng(5).uniform(0.2, 1.5, made.n_theta))
    angle = 0.7
    two = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    axes = [two if shape.k == 2 else np.eye(shape.k) for shape in made.shapes]
    factors = [th.lower_root(U.T @ L) for U, L in zip(axes, made.unpack(x), strict=True)]
    turned, there = made.turned(axes).searched, made.moved(x, factors)
    assert turned.evaluate(there).value == approx(made.searched.evaluate(x).value, rel=1e-12)
    assert [R.T @ R for R in turned.R] == [approx(R.T @ R) for R in made.R]


def test_a_singular_covariance_of_many_effects_is_found_in_few_evaluations():
    """Curves of 6 columns of which few directions vary: 60 evaluations on columns as they are."""
    rng = np.random.default_rng(0)
    a, b = (np.indices((4, 12, 30))[i].ravel() for i in (0, 1))
    kept = rng.random(len(a)) > 0.2
    a, b = a[kept], b[kept]
    t = rng.random(len(a))
    basis = np.column_stack([t**power for power in range(6)])
    terms = [RandomTerm(basis, b, 12), RandomTerm(basis, a + 4 * b, 48)]
    y = rng.normal(size=12)[b] + 0.3 * rng.normal(size=48)[a + 4 * b] * t + 0.5 * rng.normal(size=len(a))
    one = np.ones(len(a))
    made = build_problem(terms, basis, y, n=one, weight=one, ss=0.0 * one, reml=True)
    found = optimise(made, restarts=0)
    assert found.converged
    assert found.at_boundary
    assert found.evaluations < 40
    more = optimise(made, restarts=3)
    assert found.criterion.value == approx(more.criterion.value, abs=1e-8)


def without_shared_seeds(seed: int) -> dict:
    """A table with gaps whose seeds have the same names on every benchmark, and no effect there."""
    rng = np.random.default_rng(seed)
    a, b, s = (i.ravel() for i in np.indices((4, 12, 6)))
    kept = rng.random(len(a)) > 0.2
    a, b, s = a[kept], b[kept], s[kept]
    one = np.ones((len(a), 1))
    codes = [(b, 12), (a + 4 * b, 48), (s + 6 * b, 72), (s, 6), (s + 6 * a, 24)]
    terms = [RandomTerm(one, c, n) for c, n in codes]
    sds = (1.0, 0.5, 0.3)
    y = a + rng.normal(size=len(a))
    y = y + sum(sd * rng.normal(size=t.n_levels)[t.codes] for sd, t in zip(sds, terms, strict=False))
    X = np.hstack([one, np.eye(4)[a][:, 1:]])
    return {"terms": terms, "X": X, "y": y, "n": one[:, 0], "weight": one[:, 0], "ss": 0.0 * a, "reml": True}


def test_terms_without_variance_are_left_out_and_nothing_else_changes(monkeypatch):
    """The optimum, its certificate, and the curvature are those of an elimination of all terms."""
    monkeypatch.setattr(optimize, "CHEAP_FLOPS", 0.0)
    monkeypatch.setattr(ddf, "CHEAP_FLOPS", 0.0)
    monkeypatch.setattr(optimize, "_MUCH_LESS", np.inf)
    left_out = exact = 0
    for seed in range(8):
        made = build_problem(**without_shared_seeds(seed))
        found = optimise(made)
        absent = absent_terms(made, found.theta)
        if not absent:
            continue
        left_out += 1
        rest = made.without(absent)
        there = th.pack([L for i, L in enumerate(made.unpack(found.theta)) if i not in absent], rest.shapes)
        slopes = zero_slopes(made, absent, rest, rest.evaluate(there))
        gradients, _ = made.derivatives(found.theta, made.evaluate(found.theta))
        if slopes is not None:  # none where a term that crosses the rest has a variance
            exact += 1
            assert slopes == approx([gradients[i][0, 0] for i in absent], rel=1e-9)
        got = curvature(made, found)
        with monkeypatch.context() as patched:
            for module in (optimize, ddf):
                patched.setattr(module, "absent_terms", lambda *_: ())
            want, plain = optimise(made), curvature(made, found)
        assert found.criterion.value == approx(want.criterion.value, abs=1e-8)
        assert found.theta == approx(want.theta, abs=1e-4)
        assert found.converged
        assert found.at_boundary
        for name in ("hessian", "d_cov", "cov", "d_log_scale"):
            np.testing.assert_allclose(getattr(got, name), getattr(plain, name), rtol=1e-7, atol=1e-9)
    assert left_out >= 4
    assert exact >= 2


def slopes_without_benchmarks(benchmarks: int) -> Callable[[], Any]:
    """The slope of a variance of benchmarks in a table with gaps, whose other variances belong to benchmarks."""
    rng = np.random.default_rng(0)
    a, b, s = (i.ravel() for i in np.indices((4, benchmarks, 3)))
    kept = rng.random(len(a)) > 0.1
    a, b, s = a[kept], b[kept], s[kept]
    one = np.ones((len(a), 1))
    terms = [RandomTerm(one, c, int(c.max()) + 1) for c in (b, a + 4 * b, s + 3 * b)]
    n = one[:, 0]
    made = build_problem(terms, np.eye(4)[a], rng.normal(size=len(a)), n=n, weight=n, ss=0.0 * n, reml=True)
    rest = made.without((0,))
    at = rest.evaluate(np.array([0.3, 0.2]))
    assert not rest.system.tail
    return lambda: zero_slopes(made, (0,), rest, at)


def test_slopes_of_variances_that_are_zero_take_the_memory_of_the_cells():
    few, many = slopes_without_benchmarks(100), slopes_without_benchmarks(400)
    assert exponent(peak, few, many) < 1.4  # 2 with a column of every benchmark for each


def test_families_that_are_alike_and_too_large_go_after_their_benchmarks(monkeypatch):
    """In whole families the products would not fit into memory; without another way 600 seeds were crossed."""
    monkeypatch.setattr(structure, "_MAX_ELEMENTS", 1e4)
    monkeypatch.setattr(structure, "_CHEAP", 0.0)
    a, b, s = (i.ravel() for i in np.indices((4, 200, 3)))
    f, one = b // 20, np.ones((len(a), 1))
    terms = [RandomTerm(one, c, int(c.max()) + 1) for c in (f, a + 4 * f, b, a + 4 * b, s + 3 * b)]
    chain, tail = structure.choose(terms, 4, one[:, 0])
    assert not tail
    assert [(block.q, len(block.members)) for block in chain] == [(200, 3), (10, 2)]


def test_seeds_that_cross_families_are_taken_out_together_and_leave_the_families_with_their_benchmarks():
    """Of seven factors none by itself leaves independent parts, but two do; benchmarks go before their families."""
    present = np.random.default_rng(0).random(6 * 60 * 3) > 0.2
    a, b, s = (i.ravel()[present] for i in np.indices((6, 60, 3)))
    f, one = b // 10, np.ones((len(a), 1))
    codes = [f, a + 6 * f, b, a + 6 * b, s + 3 * b, s, s + 3 * a]
    terms = [RandomTerm(one, c, int(c.max()) + 1) for c in codes]
    chain, tail = structure.choose(terms, 6, one[:, 0])
    assert [block.q for block in tail] == [3, 18]
    assert [(block.q, len(block.members)) for block in chain] == [(60, 3), (6, 2)]


def test_a_covariate_of_the_benchmarks_leaves_one_factor_but_no_rotation():
    made = build_problem(**design("covariate", balanced=True))
    assert made.system.chain[0].copies == BENCHMARKS
    assert rotated(made.system) is made.system


def with_cells(data: dict, *, equal: bool, place: int = 1) -> dict:
    """The design with an intercept of each cell, which has two rows or (not ``equal``) one to three."""
    size = len(data["y"])
    cells = RandomTerm(np.full((size, 1), 3.0), np.arange(size), size)
    n = data["n"] if equal else np.random.default_rng(5).integers(1, 4, size).astype(float)
    return {
        **data,
        "n": n,
        "ss": data["ss"] * (n > 1),
        "terms": [*data["terms"][:place], cells, *data["terms"][place:]],
    }


@pytest.fixture
def _few_cells(monkeypatch):
    """Intercepts are absorbed in small designs too."""
    monkeypatch.setattr(residual, "MANY_CELLS", 0)


@pytest.mark.daily(11)
@pytest.mark.usefixtures("_few_cells")
@pytest.mark.parametrize("equal", [True, False])
@pytest.mark.parametrize("reml", [False, True])
@pytest.mark.parametrize("kind", ["nested", "no fixed part", "slopes", "variances", "border", "crossed"])
def test_intercepts_of_cells_are_absorbed_exactly(kind, reml, equal):
    made = build_problem(**with_cells(design(kind, balanced=True, reml=reml), equal=equal))
    plain, searched = replace(made, leaf=None), made.searched
    assert made.leaf is not None
    assert len(made.leaf.weights) == (1 if equal else 3)
    rng = np.random.default_rng(2)
    places = np.concatenate([np.full(shape.n_theta, i) for i, shape in enumerate(made.shapes)])
    points = [rng.normal(size=made.n_free) for _ in range(3)]
    points[1][places == 1] = 0.0
    points[2][places == 0] = 0.0
    for x in points:
        at, there = plain.evaluate(x), searched.evaluate(x)
        assert there.value == approx(at.value, rel=1e-13)
        assert there.b == approx(at.b, rel=1e-9, abs=1e-12)
        want, g = plain.derivatives(x, at)
        found, g_there = searched.derivatives(x, there)
        assert g_there == approx(g, rel=1e-9, abs=1e-9)
        for G, G_want in zip(found, want, strict=True):
            np.testing.assert_allclose(G, G_want, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(hessian(made, x, made.evaluate(x)), hessian(plain, x, at), rtol=1e-9, atol=1e-9)


@pytest.mark.usefixtures("_few_cells")
@pytest.mark.parametrize("equal", [True, False])
@pytest.mark.parametrize("kind", ["nested", "slopes"])
def test_a_search_without_the_intercepts_of_cells_finds_the_same_estimates(kind, equal):
    data = with_cells(design(kind, balanced=True), equal=equal)
    data["y"] = data["y"] + 2.0 * np.random.default_rng(3).normal(size=len(data["y"]))
    made = build_problem(**data)
    made.__dict__["anova"] = None
    plain = replace(made, leaf=None)
    found, want = optimise(made), optimise(plain)
    assert found.converged
    np.testing.assert_allclose(found.theta, want.theta, rtol=1e-6, atol=1e-6)
    assert found.criterion.value == approx(want.criterion.value, rel=1e-13)
    assert found.criterion.system is made.system
    # what follows from the criterion, at the same point
    want = replace(found, criterion=plain.evaluate(found.theta))
    for name in ("r2", "b", "RX"):
        np.testing.assert_allclose(getattr(found.criterion, name), getattr(want.criterion, name), rtol=1e-9, atol=1e-12)
    ours, theirs = curvature(made, found), curvature(plain, want)
    for name in ("hessian", "d_cov", "d_log_scale"):
        got, expected = getattr(ours, name), getattr(theirs, name)
        np.testing.assert_allclose(got, expected, rtol=1e-8, atol=1e-9 * np.abs(expected).max())


@pytest.mark.usefixtures("_few_cells")
@pytest.mark.parametrize("equal", [True, False])
@pytest.mark.parametrize("kind", ["nested", "slopes", "border"])
def test_a_held_parameter_has_the_same_criterion_without_the_intercepts_of_cells(kind, equal):
    made = build_problem(**with_cells(design(kind, balanced=True), equal=equal))
    plain, rng = replace(made, leaf=None), np.random.default_rng(7)
    x = made.point(rng.uniform(0.2, 1.0, made.n_theta))
    row = np.arange(1.0, ALGORITHMS + 1)
    targets = [(Target("sd", 1, (0,)), True), (Target("sd", 0, (0,)), False), (Target("residual sd"), True)]
    for target, reml in [*targets, (Target("linear", row=row), False)]:
        ours, theirs = Constrained(made, target, reml=reml), Constrained(plain, target, reml=reml)
        u, phi = theirs.at_fit(x, plain.evaluate(x))
        u, phi = 1.1 * u, phi + 0.1 * rng.normal(size=len(phi))
        got, want = ours.evaluate(u, phi), theirs.evaluate(u, phi)
        assert got.value == approx(want.value, rel=1e-12)
        got, want = ours.slopes(got), theirs.slopes(want)
        assert got[0] == approx(want[0], rel=1e-9, abs=1e-8)
        np.testing.assert_allclose(got[1], want[1], rtol=1e-9, atol=1e-8)
        for G, G_want in zip(got[2], want[2], strict=True):
            np.testing.assert_allclose(G, G_want, rtol=1e-9, atol=1e-8)


@pytest.mark.parametrize("change", ["few cells", "many weights", "held", "strata", "one row"])
def test_intercepts_are_absorbed_only_where_that_is_exact_and_pays(change, monkeypatch):
    data = with_cells(design("nested", balanced=True, strata=change == "strata"), equal=True)
    size = len(data["y"])
    if change == "few cells":
        data["weight"] = np.append(2.0, data["weight"][1:])
    if change == "many weights":
        monkeypatch.setattr(residual, "MANY_CELLS", 0)
        data["weight"] = np.linspace(1.0, 2.0, size)
    if change == "one row":
        data["ss"] = np.zeros(size)
    made = build_problem(**data, residual_variance=1.0 if change == "held" else None)
    assert made.leaf is None
    assert made.searched is made.reduced


def test_products_over_the_levels_below_a_level_are_the_same_one_by_one_and_in_a_loop(monkeypatch):
    made = build_problem(**design("nested", balanced=False))
    stage = made.system.chain[0]
    (j,) = stage.E
    rng = np.random.default_rng(8)
    q, above = len(stage.parent[j]), len(made.system.chain[j].A)
    left, right, of_parents = rng.normal(size=(q, 2, 3)), rng.normal(size=(q, 2, 4)), rng.normal(size=(above, 3, 4))
    for pays in (0, np.inf):
        monkeypatch.setattr(sweeps, "WORTH_A_LOOP", pays)
        summed = sum(
            np.eye(above)[p][:, None, None] * (a.T @ b) for p, a, b in zip(stage.parent[j], left, right, strict=True)
        )
        assert sweeps.products_in_parents(stage, j, left, right) == approx(summed, abs=1e-12)
        each = [a @ of_parents[p] for p, a in zip(stage.parent[j], left, strict=True)]
        assert sweeps.times_parents(stage, j, left, of_parents) == approx(np.array(each), abs=1e-12)


@pytest.mark.daily(2)
@pytest.mark.parametrize("strata", [False, True])
@pytest.mark.parametrize("kind", ["nested", "slopes of seeds", "families"])
def test_second_derivatives_are_the_same_one_by_one_and_in_a_loop(monkeypatch, kind, strata):
    made = every_way(monkeypatch, design(kind, balanced=False, strata=strata))
    x, found = np.random.default_rng(3).normal(size=made[0].n_free), []
    for pays in (0, np.inf):
        monkeypatch.setattr(sweeps, "WORTH_A_LOOP", pays)
        found.append([hessian(way, x, way.evaluate(x)) for way in made])
    for one_by_one, in_a_loop in zip(*found, strict=True):
        np.testing.assert_allclose(in_a_loop, one_by_one, rtol=1e-10, atol=1e-10)


def test_items_of_few_tasks_are_led_though_products_of_each_would_not_fit(monkeypatch):
    """Of 1,000,000 answers to 50,000 items these are 350 MB, and whole tasks have as many items as columns."""
    monkeypatch.setattr(structure, "_MAX_OUTER", 4e4)
    t, i, m = (index.ravel() for index in np.indices((10, 60, 10)))
    one = np.ones((len(t), 1))
    terms = [RandomTerm(one, c, int(c.max()) + 1) for c in (t, i + 60 * t, m + 10 * t)]
    chain, tail = structure.choose(terms, 10, np.random.default_rng(1).uniform(0.5, 2.0, len(t)))
    assert not tail
    assert [(block.q, block.K) for block in chain] == [(600, 1), (10, 11)]


def test_a_coarse_search_ends_earlier_and_near():
    made = build_problem(**design("nested", balanced=False))
    fine, coarse = optimise(made, restarts=0), optimise(made, restarts=0, coarse=1e-2)
    assert coarse.evaluations < fine.evaluations
    assert 0.0 <= coarse.criterion.value - fine.criterion.value < 1e-2
