"""`ModelSpec`: a model as objects, equal by meaning, with its formula as text at the rim."""

from __future__ import annotations

import pytest
from refusals import refusal

import lmemtest as lt
from lmemtest.errors import ArgumentError, FormulaError
from lmemtest.lmm.formula import INTERCEPT, Term, parse_bar, parse_bars, parse_term, parse_terms
from lmemtest.lmm.formula.bars import Bar
from lmemtest.lmm.model.spec import ModelSpec


def test_a_formula_is_read_and_written_without_loss() -> None:
    for formula in (
        "y ~ 1",
        "y ~ 0 + a",
        "y ~ a + b + a:b + (1 | g)",
        "log(y) ~ a + offset(log(b)) + (1 + b | g) + diag(a | g:h)",
        "`my score` ~ C(`my col`) + poly(b, 2) + (0 + b | `a group`)",
    ):
        model = ModelSpec.parse(formula)
        assert model.formula == formula
        assert ModelSpec.of(model.parsed) == model


def test_models_are_equal_if_they_mean_the_same() -> None:
    model = ModelSpec.parse("y ~ a * b + (1 + b | g:h)")
    same = ModelSpec.parse("y ~ b + a + b:a + (b | h:g)")
    assert model == same
    assert hash(model) == hash(same)
    for other in ("z ~ a * b + (1 + b | g:h)", "log(y) ~ a * b + (1 + b | g:h)", "y ~ 0 + a * b + (1 + b | g:h)"):
        assert ModelSpec.parse(other) != model
    for other in ("y ~ a + b + (1 + b | g:h)", "y ~ a * b + (b || g:h)", "y ~ a * b + offset(c) + (1 + b | g:h)"):
        assert ModelSpec.parse(other) != model
    assert ModelSpec.parse("y ~ a * b + (1 + b | g:h)", dispersion="a") != model
    assert ModelSpec.parse("y ~ a + diag(a | g)") != ModelSpec.parse("y ~ a + (0 + a | g)")


def test_terms_are_added_once_and_an_intercept_is_a_part_of_wider_random_effects() -> None:
    model = ModelSpec.parse("y ~ a")
    assert model.with_term("a * b", "b:a").formula == "y ~ a + b + a:b"
    assert model.with_term("(1 | g)", "(1 | h/g)").formula == "y ~ a + (1 | g) + (1 | h) + (1 | h:g)"
    wide = model.with_term("(1 | g)", "(1 + b | g)")
    assert wide.formula == "y ~ a + (1 + b | g)"
    assert wide.with_term("(1 | g)") is not wide
    assert wide.with_term("(1 | g)") == wide
    assert model.with_term("(0 + b | g)", "(1 | g)").formula == "y ~ a + (0 + b | g) + (1 | g)"
    assert model.with_term(parse_term("c"), parse_bar("(1 | g)")) == ModelSpec.parse("y ~ a + c + (1 | g)")


def test_models_are_composed_of_columns_with_any_name() -> None:
    model = ModelSpec(response="my score").with_crossed("my col", Term.levels("b"), parse_term("c:d"))
    assert model.formula == (
        "`my score` ~ `my col` + C(b) + c:d + `my col`:C(b) + `my col`:c:d + C(b):c:d + `my col`:C(b):c:d"
    )
    assert model.with_crossed("my col", Term.levels("b")) == model
    assert ModelSpec(response="y").with_random("g h", "s").with_slope("x", "s", "g h").formula == (
        "y ~ 1 + (1 + x | `g h`:s)"
    )
    assert Term.of(Term.of("a", "b"), "b", "c") == parse_term("a:b:c")
    assert Term.of() == INTERCEPT


def test_a_slope_joins_the_intercept_of_its_groups() -> None:
    model = ModelSpec.parse("y ~ a + (1 | g:h) + (0 + b | g)")
    assert model.with_slope("b", "h", "g").formula == "y ~ a + (1 + b | g:h) + (0 + b | g)"
    assert model.with_slope("b", "h", "g").with_slope("c", "g", "h").bars[0] == parse_bar("(1 + b + c | g:h)")
    assert model.with_slope("b", "h", "g").with_slope("b", "g", "h") == model.with_slope("b", "h", "g")
    assert model.with_slope("c", "g").bars[2] == parse_bar("(1 + c | g)")


def test_a_term_is_dropped_by_what_it_means() -> None:
    model = ModelSpec.parse("y ~ a * b + (1 + b | g:h) + (1 | s)")
    assert model.without("b:a", "(b | h:g)").formula == "y ~ a + b + (1 | s)"
    assert "b:a" in model
    assert "(1 | g:h)" not in model
    assert refusal(lambda: model.without("(1 | g:h)"), ArgumentError) == (
        "the model has no term '(1 | g:h)' to drop. Its terms: a, b, a:b, (1 + b | g:h), (1 | s)."
    )


def test_columns_are_those_of_the_formula_and_of_the_dispersion() -> None:
    model = ModelSpec.parse("y ~ a + offset(c) + (1 + b | g:h)", dispersion="d")
    assert model.columns == ("a", "c", "b", "g", "h", "d")
    assert model.fixed_columns == {"a"}
    assert model.grouped_by(["h", "g"]) == model.bars
    assert str(model) == "y ~ a + offset(c) + (1 + b | g:h), residual variance by d"


def test_a_model_fits_itself() -> None:
    runs = lt.datasets.load_hpo_runs().filter(prior="good")
    model = ModelSpec.parse("loss ~ algorithm + (1 | benchmark)", dispersion="algorithm")
    assert model.fit(runs).llf == lt.fit_lmm(model.formula, runs, dispersion="algorithm").llf


def test_a_term_is_a_product_of_factors_in_any_order() -> None:
    term = parse_term("a:C(b, levels=[2, 1]):`my col`")
    assert term.columns == ("a", "b", "my col")
    assert term == parse_term("`my col`:a:C(b, levels=[2, 1])")
    assert term != parse_term("a:b:`my col`")
    assert [margin.label for margin in parse_term("a:b:c").margins] == ["a", "b", "c", "a:b", "a:c", "b:c"]
    assert [term.is_plain for term in parse_terms("a + C(a) + a:b")] == [True, False, False]
    assert parse_term("1").label == "1"
    assert [term.label for term in parse_terms("a * b - a")] == ["b", "a:b"]


def test_a_bar_is_what_varies_between_groups() -> None:
    bar = parse_bar("(b + a:b | h:g)")
    assert bar == Bar.of(("g", "h"), bar.effects)
    assert str(Bar.of(("g", "my col"), bar.slopes)) == "(0 + b + a:b | g:`my col`)"
    assert bar.columns == ("b", "a", "h", "g")
    assert bar.has_intercept
    assert [str(bar) for bar in parse_bars("(b || g/h)")] == ["(1 | g)", "(0 + b | g)", "(1 | g:h)", "(0 + b | g:h)"]
    assert parse_bar("(1 | g:h)").within(bar)
    assert not parse_bar("(1 | g)").within(bar)
    assert not bar.within(parse_bar("(1 | g:h)"))


@pytest.mark.parametrize(
    ("read", "text", "message"),
    [
        (parse_term, "a * b", "'a * b' stands for 3 terms where one fixed term is expected."),
        (parse_term, "(1 | g)", "'(1 | g)' stands for 2 terms where one fixed term is expected."),
        (parse_bar, "(b || g)", "'(b || g)' stands for 2 random effects where one is expected."),
        (parse_bar, "a", "'a' stands for 0 random effects where one is expected."),
        (parse_term, "y ~ a",
         "a formula has one '~', between the response and the terms; remove this one.\n    y ~ a\n      ^"),
        (parse_terms, "a + offset(b)",
         "offset(...) is a known part of the mean: no term that has an effect. Give it in a whole formula."
         "\n    a + offset(b)\n        ^^^^^^^^^"),
    ],
)  # fmt: skip
def test_what_is_not_one_term_is_refused(read, text, message):
    assert refusal(lambda: read(text), FormulaError) == message
