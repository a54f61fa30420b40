"""The fixed part before a fit: with distinct rows, as with the rows of all cells."""

import numpy as np
import pandas as pd
import pytest

from lmemtest.core.codes import Keys
from lmemtest.lmm.engine.span import fixed_part, independent_columns
from lmemtest.lmm.formula import build_design, parse_formula


def test_distinct_rows_give_the_least_squares_of_all_cells():
    rng = np.random.default_rng(5)
    X = np.column_stack([np.ones(6), np.eye(6)[:, 1:], np.arange(6.0)])  # the last column depends on the others
    rows, omega = rng.integers(0, 5, 400), rng.uniform(0.5, 3, 400)  # and the sixth row does not occur
    y = 1e6 + 1e-3 * rng.normal(size=400)
    kept, Q, row, RX, _, residual = fixed_part(X, rows, y, omega)
    kept_of_all, *_, residual_of_all = fixed_part(X[rows], None, y, omega)
    assert kept.tolist() == kept_of_all.tolist() == [0, 1, 2, 3, 4]
    Q = Q[row]
    np.testing.assert_allclose(Q @ RX, X[rows][:, kept], atol=1e-12)
    np.testing.assert_allclose((Q * omega[:, None]).T @ Q, np.eye(5), atol=1e-12)
    # the residual keeps what the scores have of the noise: 1e-3 of 1e6
    expected = y - np.array([np.average(y[rows == i], weights=omega[rows == i]) for i in range(5)])[rows]
    np.testing.assert_allclose(residual, expected, atol=1e-8)
    np.testing.assert_allclose(residual_of_all, expected, atol=1e-8)


def test_the_later_of_dependent_columns_goes_however_many_there_are():
    rng = np.random.default_rng(6)
    base = rng.normal(size=(30, 3)) * [1.0, 1e8, 1e-8]
    X = np.column_stack(
        [base[:, :2], base[:, 0] + base[:, 1], np.zeros(30), base[:, 2], base @ rng.normal(size=(3, 9))]
    )
    assert independent_columns(X, np.ones(30)).tolist() == [0, 1, 4]
    assert independent_columns(rng.normal(size=(4, 7)), np.ones(4)).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("formula", ["y ~ f * x + (1|g)", "y ~ poly(x, 2) + C(h) + (1|g)", "y ~ 0 + f:h + (1|g)"])
def test_known_codes_and_distinct_rows_make_the_same_design(formula):
    table = pd.DataFrame(
        {"f": list("bbaa") * 6, "x": [1.0, 2.5, 4.0, 1.0] * 6, "h": [3, 3, 1] * 8, "g": list("uuvvww") * 4}
    )
    found = [np.unique(table[name].to_numpy(), return_inverse=True) for name in table]
    codes, levels = tuple(codes for _, codes in found), tuple(pd.Index(values) for values, _ in found)
    keys = Keys(names=tuple(table.columns), codes=codes, levels=levels, size=24)
    parsed = parse_formula(formula)
    found, plain = build_design(parsed, keys, np.ones(24)), build_design(parsed, table, np.ones(24))
    np.testing.assert_array_equal(found.X, plain.X)
    np.testing.assert_array_equal(found.X, found.rows(table))
    np.testing.assert_array_equal(found.X, plain.rows(keys))
    assert len(np.unique(found.distinct, axis=0)) == len(found.distinct) < 24
    assert found.random[0].codes.tolist() == plain.random[0].codes.tolist()
