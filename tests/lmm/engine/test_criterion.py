"""The criterion against dense matrices, its gradient and curvature against finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from pytest import approx

from lmemtest.errors import DesignError
from lmemtest.lmm.engine import products
from lmemtest.lmm.engine import theta as th
from lmemtest.lmm.engine.cross import DenseCross, SparseCross
from lmemtest.lmm.engine.hessian import average_information
from lmemtest.lmm.engine.optimize import optimise
from lmemtest.lmm.engine.problem import build_problem
from lmemtest.lmm.engine.span import independent_columns
from lmemtest.lmm.engine.structure import RandomTerm, group_terms, split_chain


def tables(n_cells: int = 400):
    """Runs in seeds in benchmarks, crossed with algorithms and one more factor; slopes on some of them."""
    rng = np.random.default_rng(0)
    run = rng.integers(0, 60, n_cells)
    run[:60] = np.arange(60)
    seed, algorithm, other = run // 3, rng.integers(0, 7, n_cells), rng.integers(0, 5, n_cells)
    benchmark = seed // 4
    x = rng.normal(size=n_cells)
    one = np.ones((n_cells, 1))
    slope = np.column_stack([one, x])
    terms = [
        RandomTerm(one, run, 60),
        RandomTerm(slope, seed, 20),
        RandomTerm(np.eye(3)[rng.integers(0, 3, n_cells)], seed, 20, diagonal=True),
        RandomTerm(x[:, None] ** 2, benchmark, 5),
        RandomTerm(one, benchmark, 5),
        RandomTerm(slope, algorithm, 7),
        RandomTerm(one, other, 5),
    ]
    X = np.column_stack([one, x, rng.normal(size=n_cells)])
    n = rng.integers(1, 4, n_cells).astype(float)
    return {
        "terms": terms,
        "X": X,
        "y": rng.normal(size=n_cells) + rng.normal(size=60)[run],
        "n": n,
        "weight": rng.uniform(0.5, 2, n_cells),
        "ss": rng.uniform(0, 1, n_cells) * (n > 1),
    }


def problem(monkeypatch, sparse: bool, reml: bool):
    data = tables()
    if sparse:
        monkeypatch.setattr(products, "_SPARSE_FROM", 0)
        monkeypatch.setattr(products, "prefer_sparse", lambda *_: True)
    made = build_problem(
        data["terms"], data["X"], data["y"], n=data["n"], weight=data["weight"], ss=data["ss"], reml=reml
    )
    kinds = {type(stage.V) for stage in made.system.chain}
    assert kinds == {SparseCross if sparse else DenseCross}
    return data, made


def theta_of(made):
    theta = np.random.default_rng(1).normal(size=made.n_theta) * 0.5
    theta[0] = 0.0  # on the boundary on purpose
    return theta


def dense_answer(data, factors, reml):
    """The textbook: build V, invert it."""
    omega = data["n"] * data["weight"]
    V = np.diag(1 / omega)
    for term, L in zip(data["terms"], factors, strict=True):
        V += (term.basis @ L @ L.T @ term.basis.T) * (term.codes[:, None] == term.codes)
    inverse = np.linalg.inv(V)
    X, y = data["X"], data["y"]
    XX = X.T @ inverse @ X
    b = np.linalg.solve(XX, X.T @ inverse @ y)
    r2 = (y - X @ b) @ inverse @ (y - X @ b) + data["weight"] @ data["ss"]
    rows = data["n"].sum()
    m = rows - X.shape[1] * reml
    logdet = np.linalg.slogdet(V)[1] + np.log(omega).sum() + reml * np.linalg.slogdet(XX)[1]
    deviance = logdet + m * (1 + np.log(2 * np.pi * r2 / m)) - data["n"] @ np.log(data["weight"])
    return deviance, b, np.linalg.inv(XX) * r2 / m


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("reml", [False, True])
def test_criterion_and_estimates_equal_the_dense_formula(monkeypatch, sparse, reml):
    data, made = problem(monkeypatch, sparse, reml)
    theta = theta_of(made)
    at = made.evaluate(theta)
    deviance, b, cov = dense_answer(data, th.to_user(th.unpack(theta, made.shapes), made.R), reml)
    ours, U = made.fixed_effects(at)
    assert at.value + made.deviance_shift == approx(deviance, rel=1e-12)
    assert ours == approx(b, rel=1e-10)
    assert at.sigma2 * made.y_scale**2 * (U @ U.T) == approx(cov, rel=1e-9)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("reml", [False, True])
def test_gradient_equals_finite_differences_at_the_boundary_too(monkeypatch, sparse, reml):
    _, made = problem(monkeypatch, sparse, reml)
    theta = theta_of(made)
    step = 1e-5
    numeric = [
        (made.evaluate(theta + step * e).value - made.evaluate(theta - step * e).value) / (2 * step)
        for e in np.eye(made.n_theta)
    ]
    assert made.derivatives(theta, made.evaluate(theta))[1] == approx(np.array(numeric), rel=1e-6, abs=1e-5)


@pytest.mark.parametrize("sparse", [False, True])
def test_average_information_does_not_depend_on_the_storage(monkeypatch, sparse):
    _, dense = problem(monkeypatch, sparse=False, reml=True)
    theta = theta_of(dense)
    at = dense.evaluate(theta)
    want = average_information(dense, theta, at, *dense.derivatives(theta, at))
    _, made = problem(monkeypatch, sparse, reml=True)
    at = made.evaluate(theta)
    got = average_information(made, theta, at, *made.derivatives(theta, at))
    assert got == approx(want, rel=1e-9, abs=1e-8)


def test_average_information_is_close_to_the_hessian_at_the_truth():
    rng = np.random.default_rng(5)
    n = 20_000
    g, h = rng.integers(0, 400, n), rng.integers(0, 300, n)
    x = rng.normal(size=n)
    basis = np.column_stack([np.ones(n), x])
    y = (basis * rng.normal(size=(400, 2))[g]).sum(1) + rng.normal(size=300)[h] + rng.normal(size=n)
    one = np.ones(n)
    made = build_problem(
        [RandomTerm(basis, g, 400), RandomTerm(one[:, None], h, 300)],
        basis,
        y,
        n=one,
        weight=one,
        ss=0 * one,
        reml=True,
    )
    theta = np.array([1.0, 0.0, 1.0, 1.0])
    at = made.evaluate(theta)
    information = average_information(made, theta, at, *made.derivatives(theta, at))
    step = 1e-4
    hessian = np.array(
        [
            made.derivatives(theta + step * e, made.evaluate(theta + step * e))[1]
            - made.derivatives(theta - step * e, made.evaluate(theta - step * e))[1]
            for e in np.eye(4)
        ]
    ) / (2 * step)
    scale = np.sqrt(np.outer(hessian.diagonal(), hessian.diagonal()))
    assert np.abs(information - hessian).max() / scale.max() < 0.15  # its error is one of sampling


def test_the_finest_block_leads_although_a_coarser_one_has_more_columns():
    seed = np.repeat(np.arange(40), 6)
    levels = RandomTerm(np.eye(6)[np.tile(np.arange(6), 40)], seed // 5, 8, diagonal=True)
    chain, tail = split_chain(group_terms([levels, RandomTerm(np.ones((240, 1)), seed, 40)]))
    assert [(block.q, block.K) for block in chain] == [(40, 1), (8, 6)]
    assert tail == ()


def test_nested_factors_form_a_chain_and_crossed_ones_the_tail():
    chain, tail = split_chain(group_terms(tables()["terms"]))
    assert [b.q for b in chain] == [60, 20, 5]
    assert [b.q for b in tail] == [7, 5]
    assert [b.K for b in chain] == [1, 5, 2]  # terms of the same groups share one block


def test_a_factor_with_100_000_levels_needs_no_square_matrix():
    import tracemalloc

    rng = np.random.default_rng(3)
    q = 100_000
    run = np.repeat(np.arange(q), 2)
    seed, algorithm = run // 2, rng.integers(0, 40, 2 * q)
    one = np.ones((2 * q, 1))
    tracemalloc.start()
    made = build_problem(
        [RandomTerm(one, run, q), RandomTerm(one, seed, q // 2), RandomTerm(one, algorithm, 40)],
        one,
        rng.normal(size=2 * q),
        n=one[:, 0],
        weight=one[:, 0],
        ss=0 * one[:, 0],
        reml=True,
    )
    theta = np.array([1.0, 0.5, 0.2])
    made.derivatives(theta, made.evaluate(theta))[1]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1e9  # the square matrix would be 8e10 bytes


def test_two_huge_crossed_factors_are_refused_with_their_size():
    rng = np.random.default_rng(4)
    n, q = 60_000, 25_000
    one = np.ones((n, 1))
    terms = [RandomTerm(one, np.append(np.arange(q), rng.integers(0, q, n - q)), q) for _ in range(2)]
    terms[1] = RandomTerm(one, rng.permutation(terms[1].codes), q)
    with pytest.raises(DesignError, match="25000, 25000 levels need a dense matrix of 25,000 columns"):
        optimise(
            build_problem(terms, one, rng.normal(size=n), n=one[:, 0], weight=one[:, 0], ss=0 * one[:, 0], reml=True)
        )


def test_the_latest_dependent_column_is_the_one_to_go():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(50, 4))
    X[:, 2] = X[:, 0] - 2 * X[:, 1]
    X = np.column_stack([X, np.zeros(50)])
    assert independent_columns(X, np.ones(50)).tolist() == [0, 1, 3]


@pytest.mark.parametrize("L", [np.array([[2.0, 0], [1.0, 3.0]]), np.array([[2.0, 0], [-1.0, 0.0]])])
def test_whitening_and_back_is_the_identity(L):
    R = np.array([[3.0, 5.0], [0.0, 0.5]])
    back = th.to_user(th.to_white([L], [R]), [R])[0]
    assert back @ back.T == approx(L @ L.T, abs=1e-12)
    assert (back.diagonal() >= 0).all()
