"""Formulas: lme4's random-effect syntax, a fixed part, and the matrices they give on a table."""

from __future__ import annotations

from lmemtest.formula.bars import Bar, ParsedFormula, parse_formula
from lmemtest.formula.design import Design, RandomDesign, build_design

__all__ = ["Bar", "Design", "ParsedFormula", "RandomDesign", "build_design", "parse_formula"]
