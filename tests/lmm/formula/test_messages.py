"""What cannot be read is refused with the rule, the value, the next step and the place."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from refusals import refusal, refuses

from lmemtest.core.sanitize import point
from lmemtest.errors import ArgumentError, DataError, FormulaError, LmemtestError, UnknownColumnError
from lmemtest.lmm.formula import build_design, parse_formula, refuse_unknown

CELLS = pd.DataFrame({"algorithm": list("abab"), "benchmark": list("uuvv"), "budget": [1, 2, 3, 4]})
ALLOWED = "log, log2, log10, log1p, exp, sqrt, abs, square, pow, I, C, center, scale, poly, bs, ns"
ROWWISE = "log, log2, log10, log1p, exp, sqrt, abs, square"


def message(formula: str, kind: type[LmemtestError] = FormulaError) -> str:
    with pytest.raises(kind) as caught:
        build_design(parse_formula(formula), CELLS, np.ones(4))
    return str(caught.value)


# formula, sentence, the part under the carets (its start is found from "«")
REFUSED = [
    ("value«»", "a formula has two sides: write 'response ~ terms'."),
    ("«~» algorithm", "the left side is empty; write the response column before '~'."),
    ("value «~»", "the right side is empty; write 'response ~ 1' for a mean only."),
    ("value «~»  ", "the right side is empty; write 'response ~ 1' for a mean only."),
    ("value ~ «.»", "'.' is not supported; name the columns, for example y ~ algorithm + (1 | benchmark)."),
    ("value ~ a «~» b", "a formula has one '~', between the response and the terms; remove this one."),
    ("value ~ (1 «|»)", "no grouping column stands after '|'; write (1 | group)."),
    ("value ~ (algorithm «||»)", "no grouping column stands after '||'; write (algorithm || group)."),
    ("value ~ «(»1|benchmark", "'(' is never closed; add ')'."),
    ("value ~ (1«|»", "no grouping column stands after '|'; write (1 | group)."),
    ("value ~ «(»1|(a:b)", "'(' is never closed; add ')'."),
    (
        "value ~ (1|" + ":".join(f"g{i}" for i in range(21)) + "«)»",
        "more than 20 columns or levels of nesting in one group; leave some out.",
    ),
    ("value ~ log«(»budget", "'(' is never closed; add ')'."),
    ("value ~ (1|benchmark)«)»", "')' closes a bracket that was never opened; remove it."),
    ("value ~ 1«|»benchmark", "a random-effect term stands in its own brackets and has one '|': write (1 | group)."),
    (
        "value ~ (1|budget«|»benchmark)",
        "a random-effect term stands in its own brackets and has one '|': write (1 | group).",
    ),
    ("value ~ («|»benchmark)", "nothing stands before '|'; write (1 | group) for a random intercept."),
    ("value ~ «(0|benchmark)»", "nothing varies in this term; write (1 | group) for a random intercept."),
    (
        "value ~ («benchmark»|benchmark)",
        "'benchmark' is a group of this term and cannot vary within itself; remove it.",
    ),
    (
        "value ~ (1 | budget) + «(1|budget/benchmark)»",
        "the random-effect term (1 | budget) is in the formula twice; remove one.",
    ),
    ("value ~ (1|a:b) + «(1|b:a)»", "the random-effect term (1 | b:a) is in the formula twice; remove one."),
    (
        "value ~ (1|a«+»b)",
        "'+' cannot join groups; write one term per group, (1 | a) + (1 | b), or join columns with ':' or '/'.",
    ),
    (
        "value ~ (1|«log»(budget))",
        "'log(...)' cannot be a group; groups are columns, and every column (numbers too) is taken as a factor there.",
    ),
    ("value ~ (1|«1»)", "a grouping column is expected here, for example (1 | benchmark)."),
    (
        "value ~ algorithm * «(1|benchmark)»",
        "a random-effect term can only be added; join it to the other terms with '+'.",
    ),
    (
        "value ~ algorithm - «(1|benchmark)»",
        "a random-effect term can only be added; join it to the other terms with '+'.",
    ),
    ("value ~ («(1|benchmark)»|budget)", "a random-effect term cannot stand inside another one."),
    ("value ~ «value» + 1", "the response 'value' cannot also stand on the right side; remove it there."),
    ("log(value) ~ (1|«value»)", "the response 'value' cannot also stand on the right side; remove it there."),
    (
        "value ~ «2»*budget",
        "the number 2 cannot be a term; only 1 and 0 (the intercept) can. Write arithmetic as I(...).",
    ),
    (
        "value ~ «budget^2»",
        "a power of one term is that term again; write the square of a column as I(budget**2) or poly(budget, 2).",
    ),
    ("value ~ (a + b)^«budget»", "the exponent of a term is a whole number from 1, for example (a + b + c)**2."),
    ("«value ~ (a + b + c)^99»", "the formula stands for more than 5000 terms."),
    (
        "value ~ («1» + budget)*algorithm",
        "1 (the intercept) stands as a term of its own, outside brackets; take it out.",
    ),
    ("value ~ «0»:budget", "0 (the intercept) stands as a term of its own, outside brackets; take it out."),
    (
        "«value ~ a:b:c:d:e:f:g:h:i»",
        "an interaction has more than 8 columns; leave some out or join them in the table.",
    ),
    ("«value ~ " + "*".join("abcdefghijklm") + "»", "the formula stands for more than 5000 terms."),
    (
        "value ~ algorithm «budget»",
        "an operator is missing before 'budget'; join terms with '+', or put a name that contains spaces in backticks.",
    ),
    ("value ~ «'algorithm'»", "a text cannot be a term; column names take no quotes or stand in backticks."),
    (
        "value ~ «`»algorithm",
        "a backtick opens a column name that is never closed; write the name between two backticks.",
    ),
    ("value ~ algorithm +«»", "the formula ends too early; a column or term is missing here."),
    ("value ~ algorithm + «*» b", "'*' cannot stand here; a column, term or operator is expected."),
    ("value ~ («)»", "the brackets are empty; put a term between them."),
    ("value ~ a «%»in% b", "'%' is not an operator here; write nesting as a/b or an interaction as a:b."),
    (
        "value ~ «@»x",
        "'@' has no meaning in a formula; put a column whose name contains it in backticks, like `my@column`.",
    ),
    ("value ~ " + "(" * 50 + "«(»" + "a", "brackets are nested deeper than 50; simplify the formula."),
    (
        "«value + 1» ~ budget",
        f"the response is one column or a function of one column ({ROWWISE}); add anything else to the table "
        "as a column.",
    ),
    ("«scale»(value) ~ budget", f"function 'scale' is not allowed for the response; allowed: {ROWWISE}."),
    # functions and their options
    ("value ~ «eval»('1')", f"function 'eval' is not allowed. Allowed: {ALLOWED}."),
    ("value ~ «__import__»('os')", f"function '__import__' is not allowed. Allowed: {ALLOWED}."),
    ("value ~ I(«open»(budget))", f"function 'open' is not allowed. Allowed: {ALLOWED}."),
    ("value ~ «np.log»(budget)", f"function 'np.log' is not allowed. Allowed: {ALLOWED}. Did you mean 'log'?"),
    (
        "value ~ seed:«offset»(budget)",
        f"function 'offset' is not allowed. Allowed: {ALLOWED}. Offset(...) is added as a term of its own in the fixed "
        "part, as in y ~ a + offset(x).",
    ),
    ("value ~ «{»budget + 1}", "'{...}' (Python code in a formula) is not allowed; write arithmetic as I(...)."),
    ("value ~ «lambda» x: x", "'lambda' is Python code, which formulas do not run; remove it."),
    ("value ~ a «if» b", "'if' is Python code, which formulas do not run; remove it."),
    ("value ~ «[»x for x in budget]", '\'[...]\' is only allowed as an option, such as levels=["b", "a"]; remove it.'),
    ("value ~ log(budget)«.»real", "'.' after a bracket is attribute access, which formulas do not run; remove it."),
    ("value ~ «log(budget, 2)»", "log() takes 1 argument without a name."),
    ("value ~ «pow(budget)»", "pow() takes 2 arguments without a name."),
    ("value ~ «I(1 + 2)»", "I(1 + 2) uses no column, so it is the same in every row."),
    ("value ~ log(«'a'»)", "'a' is not a number; arithmetic takes columns and numbers."),
    (
        "value ~ log(«poly(budget, 2)»)",
        "poly(...) gives several columns and cannot stand inside another function; make it a term.",
    ),
    ("value ~ log(«C(algorithm)»)", "C(...) makes a factor, which no other function takes."),
    ("value ~ «C(budget + 1)»", "C() takes a column first, for example C(algorithm, contr.sum)."),
    ("value ~ poly(budget, degre=«2»)", "poly() takes degree, raw; argument 'degre' is unknown."),
    ("value ~ poly(budget, 2, degree=«2»)", "poly() takes degree, raw; argument 'degree' is given twice."),
    (
        "value ~ poly(budget, degree=«benchmark»)",
        "benchmark is not a constant; options are numbers, texts, True, False or lists of these.",
    ),
    ("value ~ center(budget, «1»)", "center() takes no options; there is one argument too many."),
    ("value ~ poly(budget, degree=2, «3»)", "an argument without a name cannot follow one with a name."),
    ("value ~ bs(budget, df=3, «df»=4)", "argument 'df' is given twice."),
    ("value ~ «poly(budget, 0)»", "the degree of poly() is a whole number from 1, not 0."),
    ("value ~ «bs(budget, df=2)»", "df= of bs() is a whole number from the degree (3), not 2."),
    ("value ~ «ns(budget, df=0)»", "df= of ns() is a whole number from 1, not 0."),
    ("value ~ «ns(budget, df=4, knots=[2])»", "ns() takes df= or knots=, not both."),
    ("value ~ «bs(budget, df=4, knots=[2])»", "bs() takes df= or knots=, not both."),
    (
        "value ~ C(algorithm, «contr.some»)",
        "unknown contrast contr.some. Contrasts: contr.treatment, contr.SAS, contr.sum, contr.helmert, "
        "contr.diff, contr.poly, Treatment, Sum, Helmert, Diff, Poly. Did you mean 'contr.sum'?",
    ),
    ("value ~ C(algorithm, levels=«'a'»)", 'levels= takes a list, for example levels=["b", "a"].'),
    ("value ~ «C(algorithm, contr.sum, base='a')»", "contr.sum has no base level; remove base=."),
]


@pytest.mark.parametrize(("marked", "sentence"), REFUSED)
def test_refused_formulas_say_why_and_where(marked, sentence):
    start = marked.index("«")
    length = marked.index("»") - start - 1
    formula = marked.replace("«", "").replace("»", "")
    assert message(formula) == f"{sentence}\n    {formula}\n    {' ' * start}{'^' * max(length, 1)}"


MISFITS = [
    ("C(algorithm, base='q')", "the base level 'q' is not in the data. Levels: a, b."),
    ("C(algorithm, levels=['a'])", "levels= does not list 'b'; list every level of 'algorithm' once: a, b."),
    (
        "C(algorithm, levels=['a', 'b', 'a'])",
        "levels= lists a level twice; list every level of 'algorithm' once: a, b.",
    ),
    (
        "C(algorithm, contr.poly(scores=[1, 2, 3]))",
        "contrast 'poly' with these options does not fit 2 levels; change them.",
    ),
    ("poly(budget, 4)", "poly() of degree 4 needs more than 4 distinct values, and budget has 4; lower the degree."),
    (
        "scale(I(budget*0))",
        "scale(I(budget * 0)) divides by zero: I(budget * 0) is the same in every row; remove the term.",
    ),
    ("bs(budget, knots=[9])", "bs() needs lower bound < knots < upper bound; the bounds are 1 and 4."),
]


@pytest.mark.parametrize(("term", "first"), MISFITS)
def test_options_that_do_not_fit_the_data_are_explained(term, first):
    assert message(f"value ~ {term}", DataError).split("\n")[0] == first


def test_knots_on_the_boundary_are_refused():
    cells = pd.DataFrame({"x": [1.0, 2.0, 3.0]})
    with pytest.raises(DataError, match=r"a knot of bs\(x, df=5\) falls on its boundary; give knots="):
        build_design(parse_formula("y ~ bs(x, df=5)"), cells, np.array([1, 1, 100]))


def test_unknown_column_is_named_with_its_place_and_the_nearest_one():
    assert message("value ~ algoritm + (1 | benchmark)", UnknownColumnError) == (
        "formula uses 'algoritm' (position 9), not in data. Columns: algorithm, benchmark, budget. "
        "Did you mean 'algorithm'?\n"
        "    value ~ algoritm + (1 | benchmark)\n"
        "            ^^^^^^^^"
    )
    assert message("value ~ algorithm + (1 | `bench mark`)", UnknownColumnError) == (
        "formula uses 'bench mark' (position 26), not in data. Columns: algorithm, benchmark, budget. "
        "Did you mean 'benchmark'?\n"
        "    value ~ algorithm + (1 | `bench mark`)\n"
        "                             ^^^^^^^^^^^^"
    )


def test_columns_can_be_checked_before_there_are_cells():
    parsed = parse_formula("log(Value) ~ algorithm + (1 | benchmark)")
    refuse_unknown(parsed, ["Value", "algorithm", "benchmark"])
    assert refusal(lambda: refuse_unknown(parsed, ["value", "algorithm", "benchmark"]), UnknownColumnError) == (
        "formula uses 'Value' (position 5), not in data. Columns: value, algorithm, benchmark. "
        "Did you mean 'value'?\n"
        "    log(Value) ~ algorithm + (1 | benchmark)\n"
        "        ^^^^^"
    )


def test_long_column_lists_are_cut():
    assert "c17, c18, ... (100 in all)." in refusal(
        lambda: refuse_unknown(parse_formula("y ~ q"), ["y", *(f"c{i}" for i in range(99))]), UnknownColumnError
    )


def test_carets_stand_under_wide_characters_and_broken_lines():
    assert point("m", "算法 ~ x", 5, 6) == "m\n    算法 ~ x\n           ^"
    assert point("m", "y ~\n\tx", 5, 6) == "m\n    y ~  x\n         ^"


@pytest.mark.parametrize("nothing", ["", "   "])
def test_an_empty_formula_is_refused(nothing):
    refuses(FormulaError, "the formula is empty; write 'response ~ terms'", parse_formula, nothing)


def test_a_formula_is_text():
    refuses(ArgumentError, "formula must be text like 'score ~ algorithm'; got list", parse_formula, ["y ~ x"])
