"""Formulas: lme4's random-effect syntax, a fixed part, and the matrices they give on a table."""

from __future__ import annotations

from lmemtest.lmm.formula.bars import (
    Bar,
    ParsedFormula,
    parse_bar,
    parse_bars,
    parse_formula,
    parse_right,
    parse_term,
    parse_terms,
)
from lmemtest.lmm.formula.columns import refuse_unknown
from lmemtest.lmm.formula.design import Design, RandomDesign, build_design
from lmemtest.lmm.formula.terms import INTERCEPT, Term

__all__ = [
    "INTERCEPT",
    "Bar",
    "Design",
    "ParsedFormula",
    "RandomDesign",
    "Term",
    "build_design",
    "parse_bar",
    "parse_bars",
    "parse_formula",
    "parse_right",
    "parse_term",
    "parse_terms",
    "refuse_unknown",
]
