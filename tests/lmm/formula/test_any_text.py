"""Whatever is typed as a formula is read or refused in the words of the package, never with a raw error."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from refusals import refuses

from lmemtest.errors import FormulaError, UnknownColumnError
from lmemtest.lmm.formula import parse_formula

PIECES = [
    *("y", "~", "a", "b", "g", "`a`", "``", "`b b`", "1", "0", "2", "3.5", "1e999", "'t'", '"q', "True", "None", "."),
    *("(", ")", "[", "]", ",", "=", "+", "-", "*", "/", "**", "^", ":", "|", "||", " ", "\n", "%", "{", "²", "٣"),
    *("log(", "C(", "I(", "(1|", "(a||", "poly(b,", "C(a,", "levels=", "[", "degree=", "99999", "9" * 30, "9" * 5000),
]


def read(text: str) -> None:
    """What is read is the same formula when it is written out and read again; a refusal is one of the package."""
    try:
        written = str(parse_formula(text))
    except (FormulaError, UnknownColumnError):
        return
    assert str(parse_formula(written)) == written


@settings(deadline=None, max_examples=400)
@given(st.sampled_from(["", "y ~ ", "y ~ a + ", "log(y) ~ "]), st.lists(st.sampled_from(PIECES), max_size=12))
@example("y ~ ", ["log("])
@example("y ~ a + ", ["C("])
@example("y ~ ", ["C(a,"])
@example("y ~ (a + b)", ["**", "9" * 5000])
def test_pieces_of_formulas_in_any_order(start: str, pieces: list[str]) -> None:
    read(start + "".join(pieces))


@settings(deadline=None, max_examples=200)
@given(st.text(max_size=30))
def test_any_text(text: str) -> None:
    read(text)
    read(f"y ~ {text}")


def test_every_beginning_of_a_formula() -> None:
    text = "log(y) ~ a*poly(b, 2) + C(a, levels=['x', 'y']) + I(b**2 - 1) + (1 + a||g/`h h`) + (a + b)**2"
    for end in range(len(text) + 1):
        read(text[:end])


@pytest.mark.parametrize("text", ["y ~ log(", "y ~ a + C(", "y ~ I(", "y ~ C(a,", "y ~ poly(a"])
def test_a_function_that_is_never_closed(text: str) -> None:
    with pytest.raises(FormulaError) as error:
        parse_formula(text)
    message, formula, carets = str(error.value).splitlines()
    assert "'(' is never closed; add ')'." in message
    assert formula[carets.index("^")] == "("


def test_a_list_that_is_never_closed() -> None:
    for text in ("y ~ C(a, levels=[", "y ~ C(a, levels=['b',"):
        refuses(FormulaError, r"'\[' is never closed; add '\]'\.", parse_formula, text)


def test_an_exponent_without_end() -> None:
    refuses(FormulaError, "the exponent is too large", parse_formula, "y ~ (a + b)**" + "9" * 5000)
