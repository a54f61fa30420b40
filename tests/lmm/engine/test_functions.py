"""Linear functions by the numbers that are not zero are those of the matrix."""

import numpy as np
import pytest
import scipy.sparse as sp

from lmemtest.lmm.engine import functions
from lmemtest.lmm.engine.functions import Functions


@pytest.fixture(params=["few numbers", "many"])
def L(request):
    """Rows with two numbers, with one, with none, and for "many" a row with all."""
    L = np.zeros((6, 8))
    L[0, [1, 4]], L[1, 3], L[3, [0, 7]], L[5, [0, 2]] = [1.0, -1.0], 2.0, [-0.5, 3.0], [1.0, 1e-12]
    if request.param == "many":
        L[4] = np.arange(1.0, 9.0)
    return L


def test_they_are_the_matrix(L):
    rng = np.random.default_rng(0)
    M, b = rng.normal(size=(8, 3)), rng.normal(size=(2, 8))
    V = rng.normal(size=(2, 8, 8))
    V += V.transpose(0, 2, 1)
    rows = Functions.of(L)
    np.testing.assert_array_equal(rows.L, L)
    np.testing.assert_array_equal(rows.csr.toarray(), L)
    np.testing.assert_array_equal(rows.only(np.array([0, 3, 4])).L, L[:, [0, 3, 4]])
    np.testing.assert_array_equal(rows.rounded(1e-9).L, np.where(L == 1e-12, 0.0, L))
    np.testing.assert_array_equal(rows.largest(), np.abs(L).max(axis=1))
    np.testing.assert_allclose(rows.at(b), b @ L.T, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(rows.times(M), L @ M, rtol=1e-13, atol=1e-14)
    np.testing.assert_allclose(rows.quadratic_forms(V), np.einsum("ri,mij,rj->mr", L, V, L), rtol=1e-12, atol=1e-13)


def test_functions_of_functions_are_products_however_many_there_are(L, monkeypatch):
    back = sp.random_array((8, 5), density=0.4, rng=np.random.default_rng(0)).toarray()
    at_once = Functions.of(L).then(back)
    monkeypatch.setattr(functions, "_FEW", 0)
    sparse = Functions.of(L).then(back)
    np.testing.assert_allclose(at_once.L, L @ back, rtol=1e-14)
    np.testing.assert_allclose(sparse.L, L @ back, rtol=1e-14)


def test_equal_numbers_of_a_difference_leave_nothing(monkeypatch):
    means = np.array([[1.0, 0.1, 0.0], [1.0, 0.1, 1.0], [1.0, 0.1, 0.0]])
    for few in (1e5, 0):
        monkeypatch.setattr(functions, "_FEW", few)
        apart = Functions.differences(np.array([0, 0]), np.array([1, 2]), 3).then(means)
        np.testing.assert_array_equal(apart.L, [[0.0, 0.0, -1.0], [0.0, 0.0, 0.0]])
        assert apart.most == 1


def test_rows_that_are_not_defined_stay_so(L):
    L[2, 3] = np.nan
    rows = Functions.of(L)
    assert rows.most == Functions.of(np.nan_to_num(L)).most
    np.testing.assert_array_equal(rows.finite, [True, True, False, True, True, True])
    assert np.isnan(rows.at(np.ones(8))[2])
