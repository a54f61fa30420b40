"""Any column name works in backticks, nothing is ever run, and the canonical text reads back."""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from lmemtest.core.codes import in_order
from lmemtest.errors import LmemtestError
from lmemtest.lmm.formula import build_design, parse_formula
from lmemtest.lmm.formula.tokens import quote_name, tokenize

HOSTILE = [
    "__import__('os').abort()",
    "exit()",
    "{1/0}",
    "a:b",
    "x|y",
    "(1|g)",
    "my col",
    "a[0]",
    'it\'s "quoted"',
    "back`tick",
    "``",
    "größe",
    "算法",
    "😀",
    "e\u0301",
    "lambda",
    "None",
    "Intercept",
    "v0",
    "C",
    "log(x)",
    "~",
    "0",
    "1",
    "",
    " ",
    "a\nb",
    "a\\b",
    "@",
    "%s {0}",
]
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(HOSTILE)


@settings(max_examples=150, deadline=None)
@given(TEXTS)
@example("`")
def test_a_quoted_name_reads_back(name):
    assert [(t.kind, t.value) for t in tokenize(quote_name(name))] == [("name", name), ("end", "")]


@settings(max_examples=100, deadline=None)
@given(st.lists(TEXTS, min_size=4, max_size=4, unique=True), TEXTS, TEXTS)
def test_any_column_names_and_contents_work_everywhere(names, level, other):
    assume(level != other)
    response, number, factor, group = names
    cells = pd.DataFrame(
        {number: [1.0, 2.0, 4.0, 3.0], factor: [level, other] * 2, group: [level, level, other, other]}
    )
    q = quote_name
    text = f"{q(response)} ~ {q(number)}*{q(factor)} + log({q(number)}) + ({q(number)} | {q(group)})"
    parsed = parse_formula(text)
    design = build_design(parsed, cells, np.ones(4))
    first, second = in_order([level, other])
    assert parsed.response == response
    assert parsed.columns == (number, factor, group)
    assert len(set(design.x_names)) == 5
    assert design.terms[1][0] == number
    assert design.terms[2][0] == factor
    assert design.factors == {factor: (first, second)}
    assert design.random[0].levels == (first, second)
    np.testing.assert_array_equal(design.X[:, 1], cells[number])
    np.testing.assert_array_equal(design.X[:, 2], cells[factor] == second)
    again = parse_formula(str(parsed))
    assert (str(again), again.fixed, again.columns) == (str(parsed), parsed.fixed, parsed.columns)


def test_output_shows_the_names_of_the_user():
    cells = pd.DataFrame({"my col": [1.0, 2.0, 3.0], "größe [m]": list("abc"), "`": [3.0, 1.0, 2.0]})
    parsed = parse_formula("`the y` ~ `my col`*`größe [m]` + log(`my col`) + ```` + (`my col` | `größe [m]`)")
    design = build_design(parsed, cells, np.ones(3))
    assert design.x_names == (
        "Intercept",
        "my col",
        "größe [m][T.b]",
        "größe [m][T.c]",
        "log(`my col`)",
        "`",
        "my col:größe [m][T.b]",
        "my col:größe [m][T.c]",
    )
    assert design.random[0].names == ("Intercept", "my col")
    assert design.random[0].label == "(1 + `my col` | `größe [m]`)"


@pytest.mark.parametrize(
    ("text", "canonical"),
    [
        ("y~x", "y ~ x"),
        ("y ~ (x|g)", "y ~ 1 + (1 + x | g)"),
        ("log( y )~a*b+(0+x||g)", "log(y) ~ a * b + (0 + x | g)"),
        ("y~(1|a/b)+z", "y ~ z + (1 | a) + (1 | a:b)"),
        ("y~-1+x+C(f,contr.treatment(base='b'))", "y ~ -1 + x + C(f, contr.treatment(base='b'))"),
        ("y~(a+b)^2-a:b + ((1|g))", "y ~ (a + b)**2 - a:b + (1 | g)"),
        ("y~I(x^2+ -1)+poly(x,2,raw=True)", "y ~ I(x ** 2 + -1) + poly(x, 2, raw=True)"),
        ("`y` ~ `a b`:`c`", "y ~ `a b`:c"),
        ("y ~ x + (-1 + x | g)", "y ~ x + (-1 + x | g)"),
        ('y ~ C(f, base="it\'s \\\\")', "y ~ C(f, base='it\\'s \\\\')"),
        ("y ~ (poly(x, 2) || g)", "y ~ 1 + (1 | g) + (0 + poly(x, 2) | g)"),
    ],
)
def test_canonical_text(text, canonical):
    parsed = parse_formula(text)
    assert str(parsed) == canonical
    again = parse_formula(canonical)
    assert str(again) == canonical
    assert (again.response, again.response_function, again.fixed) == (
        parsed.response,
        parsed.response_function,
        parsed.fixed,
    )
    assert [(bar.left, bar.groups) for bar in again.bars] == [(bar.left, bar.groups) for bar in parsed.bars]


def test_parts_of_a_formula():
    parsed = parse_formula("log1p(`the score`) ~ a + scale(b):a + (c | d:e)")
    assert (parsed.response, parsed.response_function) == ("the score", "log1p")
    assert parsed.response_transform is np.log1p
    assert parsed.fixed == "a + scale(b):a"
    assert parsed.columns == ("a", "b", "c", "d", "e")
    assert parse_formula("y ~ 1").response_transform is None


PIECES = st.sampled_from(
    [*"y~+-*/:^()|xf102[],=.{`@ß \n", "||", "**", "'t'", "log(", "C(f", "poly(x, 2)", "(1|g)", "`a b`", "exec"]
)


@settings(max_examples=400, deadline=None)
@given(st.lists(PIECES, max_size=14).map("".join))
def test_any_text_is_read_or_refused_and_never_crashes(text):
    cells = pd.DataFrame({"x": [1.0, 2.0, 3.0], "f": list("aab"), "a b": [0.0, 2.0, 5.0], "g": list("uvv")})
    try:
        design = build_design(parse_formula(text), cells, np.ones(3))
    except LmemtestError:
        return
    assert design.X.shape == (3, len(design.x_names))
    assert len(set(design.x_names)) == len(design.x_names)


@pytest.mark.parametrize("size", [10, 60, 1500])
def test_long_formulas_are_read_or_refused_without_running_out_of_stack(size):
    for text in (
        "y ~ " + " + ".join(f"x{i}" for i in range(size)),
        "y ~ " + ":".join(f"x{i}" for i in range(size)),
        "y ~ I(" + "+".join(["x"] * size) + ")",
        "y ~ I(" + "-" * size + "x)",
        "y ~ I(" + "**".join(["x"] * size) + ")",
        "y ~ " + "log(" * size + "x" + ")" * size,
        "y ~ (1|" + "(" * size + "g" + ")" * size + ")",
        "y ~ (1|" + "/".join(f"g{i}" for i in range(size)) + ")",
    ):
        try:
            parse_formula(text)
        except LmemtestError as error:
            assert len(str(error)) > 0  # noqa: PT017 - a refusal is as good as a formula here


def test_nothing_of_names_or_contents_is_compiled_or_run():
    """Python's audit hooks see every compile and exec; none may carry the marker."""
    marker = "marker_that_no_code_has"
    hostile = f"__import__('builtins').print({marker!r})"
    cells = pd.DataFrame({hostile: [1.0, 2.0, 4.0], "f": [hostile, f"{{{marker}}}", f"I({marker})"]})
    seen = []

    def hook(event: str, arguments: tuple) -> None:
        if event in ("compile", "exec") and listening and marker in repr(arguments):
            seen.append((event, arguments))

    listening = True
    sys.addaudithook(hook)
    try:
        q = f"`{hostile}`"
        build_design(parse_formula(f"y ~ {q}*f + C(f, contr.sum) + scale({q}) + ({q} | f)"), cells, np.ones(3))
    finally:
        listening = False  # a hook cannot be removed
    assert seen == []
