"""Random-effect terms mean what lme4 says they mean."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from lmemtest.lmm.formula import build_design, parse_formula

CELLS = pd.DataFrame(
    [(f, g, h, x, z) for f in "abc" for g in "uvwz" for h in "mn" for x, z in ((0.5, 1.0), (2.0, -1.0), (4.5, 0.25))],
    columns=["f", "g", "h", "x", "z"],
)
I = "Intercept"  # noqa: E741


def random_terms(formula: str) -> list[tuple[str, tuple[str, ...]]]:
    design = build_design(parse_formula(formula), CELLS, np.ones(len(CELLS)))
    return [(term.group, term.names) for term in design.random]


# The right sides are `lFormula(...)$reTrms$cnms` of lme4 1.1-31 on this design, in our names and order.
@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        ("y ~ x + (1|g)", [("g", (I,))]),
        ("y ~ x + (x|g)", [("g", (I, "x"))]),
        ("y ~ (1 + x | g)", [("g", (I, "x"))]),
        ("y ~ (0+x|g)", [("g", ("x",))]),
        ("y ~ (-1 + x|g)", [("g", ("x",))]),
        ("y ~ (x - 1|g)", [("g", ("x",))]),
        ("y ~ (x||g)", [("g", (I,)), ("g", ("x",))]),
        ("y ~ (0 + x||g)", [("g", ("x",))]),
        ("y ~ (1||g)", [("g", (I,))]),
        ("y ~ (f|g)", [("g", (I, "f[T.b]", "f[T.c]"))]),
        ("y ~ (0+f|g)", [("g", ("f[a]", "f[b]", "f[c]"))]),
        ("y ~ (f||g)", [("g", (I,)), ("g", ("f[a]", "f[b]", "f[c]"))]),
        ("y ~ (1 + f||g)", [("g", (I,)), ("g", ("f[a]", "f[b]", "f[c]"))]),
        ("y ~ (0 + f||g)", [("g", ("f[a]", "f[b]", "f[c]"))]),
        ("y ~ (x*z||g)", [("g", (I,)), ("g", ("x",)), ("g", ("z",)), ("g", ("x:z",))]),
        ("y ~ (f:x||g)", [("g", (I,)), ("g", ("f[a]:x", "f[b]:x", "f[c]:x"))]),
        ("y ~ (1|g/h)", [("g", (I,)), ("g:h", (I,))]),
        ("y ~ (1|g:h)", [("g:h", (I,))]),
        ("y ~ (1|(g:h))", [("g:h", (I,))]),
        ("y ~ (1|g/h/f)", [("g", (I,)), ("g:h", (I,)), ("g:h:f", (I,))]),
        ("y ~ (1|(g/h)/f)", [("g", (I,)), ("g:h", (I,)), ("g:h:f", (I,))]),
        ("y ~ (1|g/(h:f))", [("g", (I,)), ("g:h:f", (I,))]),
        ("y ~ (1|g:h/f)", [("g:h", (I,)), ("g:h:f", (I,))]),
        ("y ~ (1|g:(h/f))", [("g:h", (I,)), ("g:h:f", (I,))]),
        ("y ~ (x + f||g/h)", [("g", (I,)), ("g", ("x",)), ("g", ("f[a]", "f[b]", "f[c]")), ("g:h", (I,)),
         ("g:h", ("x",)), ("g:h", ("f[a]", "f[b]", "f[c]"))]),
        ("y ~ (f*h|g)", [("g", (I, "f[T.b]", "f[T.c]", "h[T.n]", "f[T.b]:h[T.n]", "f[T.c]:h[T.n]"))]),
        ("y ~ (f:x|g)", [("g", (I, "f[a]:x", "f[b]:x", "f[c]:x"))]),
        ("y ~ (0+f:h|g)", [("g", ("f[a]:h[m]", "f[b]:h[m]", "f[c]:h[m]", "f[a]:h[n]", "f[b]:h[n]", "f[c]:h[n]"))]),
        ("y ~ (-1+f*x|g)", [("g", ("f[a]", "f[b]", "f[c]", "x", "f[T.b]:x", "f[T.c]:x"))]),
        ("y ~ (1|g) + (0+x|g)", [("g", (I,)), ("g", ("x",))]),
        ("y ~ (1|g) + x + (1|h)", [("g", (I,)), ("h", (I,))]),
        ("y ~ ((1|g) + (1|h)) + x", [("g", (I,)), ("h", (I,))]),
        ("y ~ (log(x)|g)", [("g", (I, "log(x)"))]),
        ("y ~ (poly(x, 2)|g)", [("g", (I, "poly(x, 2)[1]", "poly(x, 2)[2]"))]),
        ("y ~ (C(f, contr.sum)|g)", [("g", (I, "C(f, contr.sum)[S.a]", "C(f, contr.sum)[S.b]"))]),
        ("y ~ (1|x)", [("x", (I,))]),
    ],
)  # fmt: skip
def test_random_terms_expand_as_in_lme4(formula, expected):
    assert random_terms(formula) == expected


def test_labels_state_the_intercept_and_split_double_bars():
    design = build_design(parse_formula("y ~ (f|g) + (0+x|h) + (x||g:h)"), CELLS, np.ones(len(CELLS)))
    assert [term.label for term in design.random] == ["(1 + f | g)", "(0 + x | h)", "(1 | g:h)", "(0 + x | g:h)"]


def test_bars_remember_their_text_and_place():
    bars = parse_formula("y ~ x + (x || g/h)").bars
    assert [(bar.left, bar.groups) for bar in bars] == [
        ("1", ("g",)),
        ("0 + x", ("g",)),
        ("1", ("g", "h")),
        ("0 + x", ("g", "h")),
    ]
    assert {(bar.start, bar.end) for bar in bars} == {(8, 18)}


def test_basis_of_a_factor_slope_is_its_dummies():
    design = build_design(parse_formula("y ~ (0+f|g)"), CELLS, np.ones(len(CELLS)))
    expected = (CELLS.f.to_numpy()[:, None] == np.array(["a", "b", "c"])).astype(float)
    np.testing.assert_array_equal(design.random[0].basis, expected)


def test_interaction_groups_hold_only_the_combinations_that_occur_in_factor_order():
    cells = pd.DataFrame({"a": ["p", "q", "q", "p"], "b": [10, 2, 10, 10], "c": ["z", "z", "y", "y"]})
    term = build_design(parse_formula("y ~ (1|a:b:c)"), cells, np.ones(4)).random[0]
    assert term.levels == ("p:10:y", "p:10:z", "q:2:z", "q:10:y")
    assert term.codes.tolist() == [1, 2, 3, 0]
    assert term.codes.dtype == np.intp


@pytest.mark.parametrize(
    ("values", "levels", "codes"),
    [
        ([10, 9, 100, 9], ("9", "10", "100"), [1, 0, 2, 0]),
        ([2.0, 0.5, 2.0, 1.0], ("0.5", "1", "2"), [2, 0, 2, 1]),
        ([True, False, True, True], ("False", "True"), [1, 0, 1, 1]),
        (["b", "B", "a", "10"], ("10", "B", "a", "b"), [3, 1, 2, 0]),
        (pd.Categorical(["lo", "hi", "lo", "hi"], ["lo", "mid", "hi"]), ("lo", "hi"), [0, 1, 0, 1]),
        (pd.Categorical(["lo", "hi", "lo", "hi"], ["lo", "hi"], ordered=True), ("lo", "hi"), [0, 1, 0, 1]),
        (pd.array([3, 1, 3, 2], dtype="Int64"), ("1", "2", "3"), [2, 0, 2, 1]),
        (pd.array(["u", "t", "u", "t"], dtype="string"), ("t", "u"), [1, 0, 1, 0]),
    ],
)
def test_levels_are_sorted_by_value_or_in_category_order(values, levels, codes):
    term = build_design(parse_formula("y ~ (1|g)"), pd.DataFrame({"g": values}), np.ones(4)).random[0]
    assert term.levels == levels
    assert term.codes.tolist() == codes


def test_colliding_labels_of_different_groups_stay_apart():
    cells = pd.DataFrame({"a": ["p:q", "p"], "b": ["r", "q:r"]})
    term = build_design(parse_formula("y ~ (1|a:b)"), cells, np.ones(2)).random[0]
    assert term.levels == ("p:q:r", "p:q:r (2)")
    assert term.codes.tolist() == [1, 0]


def test_many_levels_are_sorted_instead_of_tabulated():
    n = 3000
    cells = pd.DataFrame({"a": np.arange(n)[::-1], "b": np.arange(n)})
    term = build_design(parse_formula("y ~ (1|a:b)"), cells, np.ones(n)).random[0]
    assert len(term.levels) == n
    assert term.levels[0] == f"0:{n - 1}"
    assert term.codes.tolist() == list(range(n))[::-1]
