"""Held variance parameters: one elimination gives what dense algebra gives, for all columns and all weights."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from pytest import approx

from lmemtest.lmm.engine.held import Held
from lmemtest.lmm.engine.structure import RandomTerm

BENCHMARKS, ALGORITHMS, SEEDS = 4, 3, 5


def term(codes, basis, diagonal=False):
    codes = np.unique(codes, return_inverse=True)[1]
    return RandomTerm(basis=basis, codes=codes, n_levels=codes.max() + 1, diagonal=diagonal)


def held(name, rng):
    """A benchmark suite in which some cells are missing, with terms by name; weights differ between cells."""
    cells = np.array(list(np.ndindex(BENCHMARKS, ALGORITHMS, SEEDS)))
    b, a, s = np.delete(cells, [0, 7, 33], axis=0).T
    one, x = np.ones((len(b), 1)), rng.normal(size=(len(b), 1))
    run = np.arange(len(b))[::-1]
    terms = {
        "nested": [(b, one), (10 * b + a, one), (10 * b + s, one)],
        "crossed": [(b, one), (s, np.hstack([one, x])), (a, one)],
        "run": [(b, one), (run, one), (10 * b + s, np.hstack([one, x]))],
        "slope of runs": [(run, np.hstack([one, x])), (s, one), (run, x)],
        "run alone": [(run, one)],
    }[name]
    built = tuple(term(codes, basis) for codes, basis in terms)
    factors = tuple(np.tril(rng.uniform(0.2, 2.0, size=(t.k, t.k))) for t in built)
    return Held(built, factors, rng.integers(1, 9, size=len(b)) * 0.5)


@pytest.mark.parametrize("name", ["nested", "crossed", "run", "slope of runs", "run alone"])
def test_all_columns_share_one_elimination(name):
    rng = np.random.default_rng(3)
    random = held(name, rng)
    n, D = len(random.omega), rng.normal(size=(len(random.omega), 4)) + 2.0
    modes, residual = random.take(D)
    # dense: V^-1 D, its modes Sigma Z'V^-1 D term by term, and what they leave
    Z = [np.zeros((n, t.n_levels, t.k)) for t in random.terms]
    V = np.diag(1.0 / random.omega)
    for z, t, L in zip(Z, random.terms, random.factors, strict=True):
        z[np.arange(n), t.codes] = t.basis
        V += np.einsum("ilk,km,jlm->ij", z, L @ L.T, z)
    solved = np.linalg.solve(V, D)
    for u, z, L in zip(modes, Z, random.factors, strict=True):
        assert u == approx(np.einsum("km,ilm,ic->lkc", L @ L.T, z, solved), abs=1e-12)
    assert residual == approx(solved / random.omega[:, None], abs=1e-12)
    # column by column, and in another process, which eliminates anew
    again = pickle.loads(pickle.dumps(random))
    assert set(vars(again)) == {"terms", "factors", "omega"}
    modes_of_one, residual_of_one = again.take(D[:, 2:3])
    assert residual_of_one == approx(residual[:, 2:3], abs=1e-13)
    for u, v in zip(modes_of_one, modes, strict=True):
        assert u == approx(v[:, :, 2:3], abs=1e-13)


def test_without_random_effects_all_is_left():
    D = np.arange(6.0).reshape(3, 2)
    assert Held((), (), np.array([1.0, 2.0, 3.0])).take(D)[1] == approx(D)


def test_columns_are_not_changed():
    rng = np.random.default_rng(5)
    random = held("run", rng)
    D = rng.normal(size=(len(random.omega), 2))
    before = D.copy()
    random.take(D)
    assert np.array_equal(D, before)
