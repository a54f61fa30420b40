"""The fixed part is formulaic's: same columns, same names, same order; formulaic itself is the witness."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from formulaic import model_matrix
from hypothesis import given, settings
from hypothesis import strategies as st

from lmemtest.lmm.formula import build_design, parse_formula

GENERATOR = np.random.default_rng(11)
N = 60
TABLE = pd.DataFrame(
    {
        "f": GENERATOR.choice(list("abc"), N),
        "g": GENERATOR.choice(["u", "v"], N),
        "h": GENERATOR.choice(["k1", "k2", "k3", "k4"], N),
        "x": GENERATOR.uniform(0.5, 3.0, N),
        "z": GENERATOR.normal(size=N),
        "s": GENERATOR.integers(1, 4, N),
    }
).astype({"f": object, "g": object, "h": object})  # formulaic 1.1 does not know the str columns of pandas 3


def design_of(right: str, table: pd.DataFrame = TABLE):
    return build_design(parse_formula(f"y ~ {right}"), table, np.ones(len(table)))


def assert_as_formulaic(right: str) -> None:
    got, want = design_of(right), model_matrix(right, TABLE)
    assert got.x_names == tuple(want.columns)
    np.testing.assert_allclose(got.X, want.to_numpy(dtype=float), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize(
    "right",
    [
        "1",
        "0",
        "x",
        "f",
        "0 + f",
        "-1 + f",
        "f - 1",
        "x*f",
        "f*x",
        "f:x",
        "f + f:x",
        "x + f:x",
        "f:g",
        "f + f:g",
        "g + f:g",
        "f*g*h",
        "f*g*x",
        "0 + f:g",
        "0 + f + g",
        "0 + x:f + f",
        "f/g",
        "f/x",
        "(f + g)/x",
        "(f + g + x)**2",
        "(f + g + x)^3 - f:g",
        "f*g - f",
        "f*g - g - 1",
        "x:z:f + z",
        "f:g:h",
        "f + g:h + x",
        "I(x**2) + I(x + z) + I(-x)",
        "log(x) + exp(z):f",
        "log(x + 1)*g",
        "center(x) + scale(z)",
        "poly(x, 3)",
        "poly(x, degree=2)*f",
        "bs(x, df=5)",
        "bs(x, df=4, degree=2):g",
        "C(s)",
        "C(s)*x",
        "C(f, contr.sum)",
        "C(f, contr.sum)*g",
        "0 + C(f, contr.sum)",
        "C(f, contr.helmert)*C(g, contr.sum)",
        "C(h, contr.poly)",
        "C(h, contr.diff)",
        "C(h, contr.SAS)",
        "C(f, contr.treatment(base='b'))",
        'C(f, contr.treatment("c"))*x',
        'C(f, Treatment("b"))',
        "C(f, levels=['c', 'a', 'b'])",
        "C(f, contr.helmert(reverse=False))",
    ],
)
def test_columns_are_those_of_formulaic(right):
    assert_as_formulaic(right)


ATOMS = st.sampled_from(["f", "g", "h", "x", "z", "C(f, contr.sum)", "log(x)", "poly(z, 2)"])
TERMS = st.lists(ATOMS, min_size=1, max_size=3, unique=True).map(":".join)


@settings(max_examples=80, deadline=None)
@given(st.lists(TERMS, min_size=1, max_size=5), st.sampled_from(["", "0 + ", "1 + "]))
def test_any_sum_of_interactions_gives_formulaics_columns(terms, start):
    assert_as_formulaic(start + " + ".join(terms))


@settings(max_examples=40, deadline=None)
@given(st.lists(TERMS, min_size=1, max_size=4))
def test_the_written_terms_span_the_same_space_as_full_dummies(terms):
    """Every product of dummies of a term lies in the column space, and there is no column too many."""
    design = design_of(" + ".join(terms))
    blocks = [np.ones((N, 1))]
    for term in terms:
        block = np.ones((N, 1))
        for atom in term.split(":"):
            part = design_of(f"0 + {atom}").X
            block = (block[:, :, None] * part[:, None, :]).reshape(N, -1)
        blocks.append(block)
    everything = np.hstack(blocks)
    rank = np.linalg.matrix_rank(everything)
    assert np.linalg.matrix_rank(design.X) == rank
    assert np.linalg.matrix_rank(np.hstack([design.X, everything])) == rank


def test_one_slope_per_algorithm():
    design = design_of("f + f:x")
    assert design.x_names == ("Intercept", "f[T.b]", "f[T.c]", "f[a]:x", "f[b]:x", "f[c]:x")
    assert np.linalg.matrix_rank(design.X) == 6


def test_terms_name_the_columns_they_own():
    assert design_of("f*x + C(g)").terms == (
        ("Intercept", slice(0, 1)),
        ("f", slice(1, 3)),
        ("x", slice(3, 4)),
        ("C(g)", slice(4, 5)),
        ("f:x", slice(5, 7)),
    )


def test_bool_is_a_factor():
    table = pd.DataFrame({"flag": [True, False, True], "x": [1.0, 2.0, 4.0]})
    design = design_of("flag*x", table)
    assert design.x_names == ("Intercept", "flag[T.True]", "x", "flag[T.True]:x")
    assert design.factors == {"flag": (False, True)}


def test_category_order_decides_the_reference_level_and_unused_ones_go():
    table = pd.DataFrame({"f": pd.Categorical(["b", "a", "b"], ["c", "b", "a"])})
    design = design_of("f", table)
    assert design.x_names == ("Intercept", "f[T.a]")
    assert design.factors == {"f": ("b", "a")}


def test_one_level_gives_no_contrast_columns():
    table = pd.DataFrame({"f": ["a", "a"], "x": [1.0, 2.0]})
    assert design_of("f*x", table).x_names == ("Intercept", "x")
    assert design_of("C(f, contr.sum)", table).x_names == ("Intercept",)
    assert design_of("0 + f", table).x_names == ("f[a]",)


def test_no_fixed_part():
    design = build_design(parse_formula("y ~ 0 + (1|f)"), TABLE, np.ones(N))
    assert design.X.shape == (N, 0)
    assert design.x_names == ()
    assert design.terms == ()


def test_ordinary_regression_has_no_random_terms():
    design = design_of("x")
    assert design.random == ()
    assert design.x_names == ("Intercept", "x")


def test_factors_and_numbers_of_the_fixed_part():
    counts = np.arange(1.0, N + 1)
    design = build_design(parse_formula("y ~ g*log(x) + C(s) + scale(z) + (h|f)"), TABLE, counts)
    assert design.factors == {"g": ("u", "v"), "s": (1, 2, 3)}
    assert design.numeric == {
        "x": pytest.approx(np.average(TABLE.x, weights=counts), rel=1e-14),
        "z": pytest.approx(np.average(TABLE.z, weights=counts), rel=1e-14),
    }


def test_equal_names_of_different_columns_stay_apart():
    table = pd.DataFrame({"a": [1.0, 2.0, 3.0], "b": [2.0, 1.0, 0.0], "a:b": [0.0, 0.0, 1.0]})
    design = design_of("a*b + `a:b`", table)
    assert design.x_names == ("Intercept", "a", "b", "a:b", "a:b (2)")
    np.testing.assert_array_equal(design.X[:, 3:], [[0, 2], [0, 2], [1, 0]])
