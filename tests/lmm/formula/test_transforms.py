"""Stateful transforms: R's values, cells equal to rows, and the same coding for new data."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from lmemtest.lmm.formula import build_design, parse_formula
from lmemtest.lmm.formula.transforms import row_quantiles

X = np.array([1, 2.5, 3, 4.7, 8, 9.1, 12])
COUNTS = np.array([1.0, 2, 3, 1, 4, 2, 3])
NEW = pd.DataFrame({"x": [0.0, 5.0, 15.0]})

# R 4.2: x <- rep(X, COUNTS); values at the distinct X, then predict() at 0, 5, 15, column by column.
R_VALUES = {
    "poly(x, 3)": (
        """
        -0.382942399120244 -0.280710835395151 -0.246633647486787 -0.130771208598348 0.0941382315968563
        0.169108044995258 0.366755734863771 0.452785311859181 0.101706748087409 0.00824218254031123
        -0.221416872630488 -0.278458857567928 -0.183434600243233 0.340398715911244 -0.671747583789617
        0.0956842750542677 0.232282136625208 0.3631851259347 -0.117526847917312 -0.253658163081421
        0.132590405234282
        """,
        """
        -0.451096774936972 -0.110324895853329 0.571218862313956 0.745741743649097 -0.247807967763945
        1.29933596593399 -1.54227980563262 0.344954026035936 2.67486160904161
        """,
    ),
    "bs(x, df=5)": (
        """
        0 0.657206632653061 0.510204081632653 0.146681632653061 0 0 0
        0 0.305252782931354 0.437847866419295 0.578991671820243 0.161616161616162 0.0615883838383839 0
        0 0.0219155844155844 0.0519480519480519 0.262195831329165 0.529741863075196 0.394602202581369 0
        0 0 0 0.0121308641975309 0.308641975308642 0.523012538580247 0
        0 0 0 0 0 0.020796875 1
        """,
        """
        -2.63520408163265 0.110204081632653 0 0.26669758812616 0.56310039167182 -0.0681818181818182
        -0.00649350649350649 0.306942440275774 1.08901515151515 0 0.0197530864197531
        -5.38020833333333 0 0 5.359375
        """,
    ),
    "bs(x, knots=[3.5, 8], degree=2)": (
        """
        0 0.711428571428572 0.731428571428572 0.345714285714286 0 0 0
        0 0.128571428571429 0.228571428571429 0.616638655462185 0.470588235294118 0.247352941176471 0
        0 0 0 0.0376470588235294 0.529411764705882 0.677022058823529 0
        0 0 0 0 0 0.075625 1
        """,
        None,
    ),
    "scale(x)": (
        """
        -1.48312953434942 -1.08718839058539 -0.955208009330715 -0.506474713064818 0.364595803216041
        0.654952641976328 1.42043885325345
        """,
        None,
    ),
    "scale(x, center=False)": (
        """
        0.127952305539945 0.319880763849862 0.383856916619835 0.601375836037741 1.02361844431956
        1.1643659804135 1.53542766647934
        """,
        None,
    ),
}


def numbers(text: str) -> list[float]:
    return [float(word) for word in text.split()]


@pytest.mark.parametrize("term", list(R_VALUES))
def test_transforms_equal_those_of_r_on_the_rows(term):
    design = build_design(parse_formula(f"y ~ 0 + {term}"), pd.DataFrame({"x": X}), COUNTS)
    fitted, predicted = R_VALUES[term]
    np.testing.assert_allclose(design.X.T.ravel(), numbers(fitted), rtol=1e-12, atol=1e-14)
    if predicted is not None:
        np.testing.assert_allclose(design.rows(NEW).T.ravel(), numbers(predicted), rtol=1e-11, atol=1e-13)


STATEFUL = [
    "center(x)",
    "scale(x)",
    "scale(x, scale=False)",
    "scale(log(x))",
    "log(scale(x) + 10)",
    "poly(x, 4)",
    "poly(log(x), 2)",
    "bs(x, df=6)",
    "bs(x, df=4, degree=1)",
    "bs(x)",
]


@settings(max_examples=25, deadline=None)
@given(st.lists(st.integers(1, 9), min_size=8, max_size=20), st.integers(0, 2**32 - 1), st.sampled_from([0.0, 1e3]))
def test_cells_with_counts_equal_repeated_rows(counts, seed, offset):
    x = offset + np.random.default_rng(seed).permutation(np.arange(1, len(counts) + 1) ** 1.5)
    cells = pd.DataFrame({"x": x, "g": ["a", "b"] * (len(counts) // 2) + ["a"] * (len(counts) % 2)})
    repeat = np.repeat(np.arange(len(counts)), counts)
    parsed = parse_formula(f"y ~ {' + '.join(STATEFUL[:-3])} + (scale(x) | g)")
    on_cells = build_design(parsed, cells, np.array(counts))
    on_rows = build_design(parsed, cells.iloc[repeat], np.ones(len(repeat)))
    np.testing.assert_allclose(on_cells.X[repeat], on_rows.X, rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(on_cells.random[0].basis[repeat], on_rows.random[0].basis, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("term", STATEFUL)
def test_new_data_use_the_state_of_the_fit(term):
    cells = pd.DataFrame({"x": X})
    design = build_design(parse_formula(f"y ~ {term}"), cells, COUNTS)
    np.testing.assert_array_equal(design.rows(cells.iloc[[4, 1]]), design.X[[4, 1]])


def test_polynomials_are_orthonormal_over_rows():
    design = build_design(parse_formula("y ~ poly(x, 5)"), pd.DataFrame({"x": X * 1e3 + 1e5}), COUNTS)
    gram = design.X.T @ (COUNTS[:, None] * design.X)
    np.testing.assert_allclose(gram, np.diag([COUNTS.sum(), 1, 1, 1, 1, 1]), atol=1e-9)


def test_raw_polynomials_are_powers():
    design = build_design(parse_formula("y ~ poly(x, 2, raw=True)"), pd.DataFrame({"x": X}), COUNTS)
    np.testing.assert_array_equal(design.X[:, 1:], np.column_stack([X, X**2]))


def test_splines_sum_to_one_with_their_first_column():
    design = build_design(parse_formula("y ~ bs(x, df=5)"), pd.DataFrame({"x": X}), COUNTS)
    total = design.X[:, 1:].sum(axis=1)
    assert np.all(total <= 1 + 1e-12)
    np.testing.assert_allclose(total[X >= 3], 1, atol=1e-12)  # the first column ends at the first inner knot


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(-50, 50), st.integers(1, 6)), min_size=1, max_size=12, unique_by=lambda p: p[0]))
def test_weighted_quantiles_are_those_of_the_rows(pairs):
    values = np.array([float(v) for v, _ in pairs])
    counts = np.array([float(c) for _, c in pairs])
    shares = np.array([0.0, 0.1, 1 / 3, 0.5, 2 / 3, 0.9, 1.0])
    rows = np.repeat(values, counts.astype(int))
    np.testing.assert_allclose(row_quantiles(values, counts, shares), np.quantile(rows, shares), atol=1e-9)


@pytest.mark.parametrize(
    ("term", "function"),
    [
        ("log(x)", np.log),
        ("log2(x)", np.log2),
        ("log10(x)", np.log10),
        ("log1p(x)", np.log1p),
        ("exp(x)", np.exp),
        ("sqrt(x)", np.sqrt),
        ("abs(x)", np.abs),
        ("square(x)", np.square),
        ("pow(x, 3)", lambda x: x**3),
        ("I(x^2 + 1)", lambda x: x**2 + 1),
        ("I(2 * (x - 1) / 4)", lambda x: 2 * (x - 1) / 4),
        ("I(-x ** 2)", lambda x: -(x**2)),
        ("I(2 - 1 - x)", lambda x: 2 - 1 - x),
        ("I(2**-x)", lambda x: 2.0**-x),
        ("log(1 + x/2)", lambda x: np.log(1 + x / 2)),
    ],
)
def test_rowwise_functions_are_numpys(term, function):
    design = build_design(parse_formula(f"y ~ 0 + {term}"), pd.DataFrame({"x": X}), COUNTS)
    np.testing.assert_allclose(design.X[:, 0], function(X), rtol=1e-15)  # numpy 1 and 2 differ in the last bit


def test_bool_counts_as_zero_and_one_in_arithmetic():
    table = pd.DataFrame({"b": [True, False], "x": [1.0, 2.0]})
    design = build_design(parse_formula("y ~ 0 + I(b * x)"), table, np.ones(2))
    assert design.X[:, 0].tolist() == [1.0, 0.0]


def test_natural_splines_are_those_of_r_and_lines_beyond_the_bounds(reference):
    for want in reference("formulas")["bases"]:
        design = build_design(parse_formula(f"y ~ {want['term']}"), pd.DataFrame({"x": X}), COUNTS)
        got = design.rows(pd.DataFrame({"x": want["x"]}))[:, 1:]
        np.testing.assert_allclose(got, want["values"], rtol=1e-10, atol=1e-12)
    beyond = design.rows(pd.DataFrame({"x": [12.0, 13.0, 14.0]}))
    np.testing.assert_allclose(np.diff(beyond, n=2, axis=0), 0.0, atol=1e-12)


def test_natural_splines_are_straight_at_their_bounds():
    design = build_design(parse_formula("y ~ ns(x, knots=[3, 7])"), pd.DataFrame({"x": X}), COUNTS)
    ends = np.array([1.0, 12.0])
    bent = [np.diff(design.slopes(pd.DataFrame({"x": end + np.array([-1e-6, 1e-6])}), "x"), axis=0) for end in ends]
    np.testing.assert_allclose(bent, 0.0, atol=1e-10)
