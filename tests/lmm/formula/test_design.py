"""Rows for new data, wrong tables, and the cost."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from refusals import refusal, refuses

from lmemtest.errors import ArgumentError, DataError, FormulaError, UnknownColumnError
from lmemtest.lmm.formula import build_design, parse_formula

CELLS = pd.DataFrame(
    {
        "algorithm": ["HB", "PB", "RS"] * 4,
        "benchmark": ["m"] * 6 + ["n"] * 6,
        "seed": [0, 0, 0, 1, 1, 1] * 2,
        "budget": np.repeat([1.0, 2, 4, 8], 3),
    }
)
ONES = np.ones(len(CELLS))


def build(formula: str, cells: pd.DataFrame = CELLS):
    return build_design(parse_formula(formula), cells, np.ones(len(cells)))


@pytest.mark.parametrize(
    "formula",
    [
        "y ~ algorithm * budget + (1 | benchmark)",
        "y ~ C(seed, contr.sum) + poly(budget, 2):algorithm",
        "y ~ C(algorithm, levels=['RS', 'HB', 'PB'])",
        "y ~ 0 + (1|seed)",
    ],
)
def test_rows_of_the_cells_are_x(formula):
    design = build(formula)
    np.testing.assert_array_equal(design.rows(CELLS), design.X)


def test_rows_keep_the_coding_when_new_data_lack_levels_or_have_other_types():
    design = build("y ~ algorithm * C(seed)")
    new = pd.DataFrame({"algorithm": pd.Categorical(["RS"], ["RS", "HB"]), "seed": [1.0], "spare": ["?"]})
    assert dict(zip(design.x_names, design.rows(new)[0], strict=True)) == {
        "Intercept": 1,
        "algorithm[T.PB]": 0,
        "algorithm[T.RS]": 1,
        "C(seed)[T.1]": 1,
        "algorithm[T.PB]:C(seed)[T.1]": 0,
        "algorithm[T.RS]:C(seed)[T.1]": 1,
    }


def test_no_rows_give_an_empty_matrix():
    design = build("y ~ algorithm*budget + (1|seed)")
    assert design.rows(CELLS.iloc[:0]).shape == (0, 6)


def test_unknown_level_is_named():
    assert refusal(lambda: build("y ~ algorithm").rows(pd.DataFrame({"algorithm": ["HB", "TPE"]})), DataError) == (
        "column 'algorithm' has the level 'TPE', which the fit has not seen. Levels: HB, PB, RS.\n"
        "    y ~ algorithm\n"
        "        ^^^^^^^^^"
    )


def test_missing_column_of_new_data_is_named():
    refuses(UnknownColumnError, "formula uses 'budget'", build("y ~ budget").rows, CELLS.drop(columns="budget"))


def test_random_rows_place_known_groups_and_mark_new_ones():
    design = build("y ~ (budget | benchmark:seed) + (1 | algorithm)")
    new = pd.DataFrame(
        {
            "benchmark": ["n", "m", "z", "m", None],
            "seed": [0, 1, 0, 7, 0],
            "budget": [3.0, 1, 1, 1, 1],
            "algorithm": ["PB", "?", "RS", "HB", "HB"],
        }
    )
    basis, codes = design.random_rows(0, new)
    assert basis[0].tolist() == [1.0, 3.0]
    assert [design.random[0].levels[code] if code >= 0 else None for code in codes] == ["n:0", "m:1", None, None, None]
    assert design.random_rows(1, new)[1].tolist() == [1, -1, 2, 0, 0]


def test_random_rows_of_the_cells_are_the_design():
    design = build("y ~ (algorithm | benchmark:seed:budget)")
    basis, codes = design.random_rows(0, CELLS)
    np.testing.assert_array_equal(basis, design.random[0].basis)
    np.testing.assert_array_equal(codes, design.random[0].codes)


def test_combination_that_did_not_occur_is_a_new_group():
    cells = pd.DataFrame({"a": ["p", "q"], "b": ["r", "s"]})
    design = build("y ~ (1|a:b)", cells)
    assert design.random_rows(0, pd.DataFrame({"a": ["p", "q"], "b": ["s", "s"]}))[1].tolist() == [-1, 1]


def test_random_term_index_is_checked():
    refuses(ArgumentError, r"term_index must be from 0 to 0, .* got 1", build("y ~ (1|seed)").random_rows, 1, CELLS)


FILL = "drop these rows or fill them before the fit."
UNUSABLE = [
    ("budget", [np.nan, 1.0], f"column 'budget' has 1 missing value; {FILL}"),
    ("algorithm", [None, None], f"column 'algorithm' has 2 missing values; {FILL}"),
    (
        "algorithm",
        ["a", 1],
        "'algorithm' mixes values that cannot be ordered (int, str); make it one type, for example with .astype(str).",
    ),
    ("algorithm", [[1], [2]], "'algorithm' holds values that cannot be levels; make it text or numbers."),
    (
        "budget",
        pd.to_datetime(["2020-01-01", "2020-01-02"]),
        "'budget' holds dates or durations; add it to the table as a number or as text.",
    ),
    ("budget", [1j, 2.0], "'budget' holds complex numbers; a formula takes real ones."),
    (
        "budget",
        [np.inf, 1.0],
        "budget is not a finite number in 1 of 2 rows of the table (first where budget = inf); change the "
        "expression or drop these rows.",
    ),
]


@pytest.mark.parametrize(("column", "values", "message"), UNUSABLE)
def test_columns_that_cannot_be_used_are_explained(column, values, message):
    cells = pd.DataFrame({"algorithm": ["a", "b"], "budget": [1.0, 2.0]}).astype({"algorithm": object})
    cells[column] = pd.Series(values, dtype=None if column == "budget" else object)
    assert refusal(lambda: build("y ~ algorithm + budget", cells), DataError).split("\n")[0] == message


def test_doubled_column_names_are_refused():
    cells = pd.DataFrame([[1.0, 2.0]], columns=["x", "x"])
    refuses(DataError, "the table has 2 columns named 'x'; rename all but one", build, "y ~ x", cells)


def test_values_are_checked_after_functions():
    assert refusal(lambda: build("y ~ log(budget - 1)"), DataError) == (
        "log(budget - 1) is not a finite number in 3 of 12 rows of the table (first where budget = 1); "
        "change the expression or drop these rows.\n"
        "    y ~ log(budget - 1)\n"
        "        ^^^^^^^^^^^^^^^"
    )


@pytest.mark.parametrize("counts", [np.ones(3), np.zeros(12), np.full(12, np.nan), np.ones((12, 1))])
def test_counts_are_checked(counts):
    refuses(ArgumentError, "counts must", build_design, parse_formula("y ~ budget"), CELLS, counts)


def test_an_empty_table_is_refused():
    refuses(DataError, "the table has no rows", build, "y ~ budget", CELLS.iloc[:0])


def test_text_as_a_number_is_refused_with_its_place():
    assert refusal(lambda: build("y ~ budget + (scale(algorithm) | benchmark)"), FormulaError) == (
        "'algorithm' (position 21) is used as a number but holds text; use it as a factor, "
        "without a function, or give a numeric column.\n"
        "    y ~ budget + (scale(algorithm) | benchmark)\n"
        "                        ^^^^^^^^^"
    )


def test_the_table_is_not_changed():
    before = CELLS.copy(deep=True)
    build("y ~ algorithm*scale(budget) + (poly(budget, 2) | benchmark/seed)")
    pd.testing.assert_frame_equal(CELLS, before)


def test_the_index_of_the_table_does_not_matter():
    shuffled = CELLS.set_index(pd.Index([5] * len(CELLS)))
    formula = "y ~ algorithm*scale(budget) + (poly(budget, 2) | benchmark/seed)"
    np.testing.assert_array_equal(build(formula, shuffled).X, build(formula).X)


def test_a_design_can_be_pickled():
    design = build("y ~ algorithm*bs(budget, df=3) + (budget | benchmark/seed)")
    again = pickle.loads(pickle.dumps(design))
    np.testing.assert_array_equal(again.rows(CELLS), design.X)
    assert again.parsed == design.parsed


def test_a_design_with_some_of_its_terms_is_that_of_the_shorter_formula():
    cells = pd.DataFrame({"a": list("uvuvuvuv"), "g": list("ppqqrrss"), "s": [1, 2, 3, 4] * 2})
    text = "y ~ a + (1 | g) + (a | s) + (1 | g:s)"
    found = build_design(parse_formula(text), cells, np.ones(8)).with_terms([0, 2])
    want = build_design(parse_formula("y ~ a + (1 | g) + (1 | g:s)"), cells, np.ones(8))
    assert found.parsed.bars == want.parsed.bars
    assert found.parsed.text == "y ~ a + (1 | g) + (1 | g:s)"
    np.testing.assert_array_equal(found.X, want.X)
    for one, other in zip(found.random, want.random, strict=True):
        assert (one.label, one.levels) == (other.label, other.levels)
        np.testing.assert_array_equal(one.codes, other.codes)
        np.testing.assert_array_equal(one.basis, other.basis)
    codes = found.random_rows(1, cells)[1]  # of new data, by its place among the terms that are left
    np.testing.assert_array_equal(codes, want.random[1].codes)
