"""Order, decisions and printed digits do not hang on the last bits of a number."""

from __future__ import annotations

import ast

import numpy as np
import pandas as pd
import pytest
from source import nodes

import lmemtest as lt
from lmemtest.core.rounding import at_most, below, in_tie_order, tie_order, written
from lmemtest.core.table import ResultTable
from lmemtest.core.words import format_number, format_p

ULPS = [0.0, 1e-16, -1e-16, 3e-15, -3e-15]


@pytest.mark.parametrize("noise", ULPS)
def test_equal_values_keep_the_order_given(noise: float) -> None:
    assert tie_order([0.3, 0.3 + noise, 0.1]) == [2, 0, 1]
    assert tie_order([0.3, 0.3 + noise, 0.1], descending=True) == [0, 1, 2]
    assert in_tie_order("ba", {"a": 1.0, "b": 1.0 + noise}.__getitem__) == ["b", "a"]


def test_missing_values_come_last_and_keep_their_order() -> None:
    assert tie_order([np.nan, 2.0, np.nan, 1.0]) == [3, 1, 0, 2]
    assert tie_order([np.nan, 2.0, np.nan, 1.0], descending=True) == [1, 3, 0, 2]
    assert tie_order([]) == []


def test_what_is_small_beside_the_errors_is_a_tie() -> None:
    assert tie_order([1.0 + 1e-10, 1.0]) == [1, 0]
    assert tie_order([1.0 + 1e-10, 1.0], errors=[0.1, 0.1]) == [0, 1]


@pytest.mark.parametrize("noise", ULPS)
def test_a_p_value_at_the_level_is_not_below_it(noise: float) -> None:
    assert not below(0.05 + noise, 0.05)
    assert at_most(0.05 + noise, 0.05)
    assert below(np.array([0.04, 0.05 + noise, np.nan]), 0.05).tolist() == [True, False, False]


@pytest.mark.parametrize("noise", ULPS)
@pytest.mark.parametrize(("x", "spec", "want"), [(0.905, ".2f", "0.91"), (2.5, ".0f", "3"), (-0.0125, ".2g", "-0.013")])
def test_halves_go_away_from_zero(x: float, spec: str, want: str, noise: float) -> None:
    assert written(x + noise, spec) == want


@pytest.mark.parametrize("noise", ULPS)
def test_numbers_and_p_values_are_written_alike(noise: float) -> None:
    assert format_number(0.12345 + noise) == "0.1235"
    assert format_number(1.0 + noise) == "1.000"
    assert format_p(0.0125 + noise) == "0.013"
    assert format_p(0.001 + noise) == "0.001"
    assert format_p(0.0495 + noise) == "0.0495"


@pytest.mark.parametrize("level", [0.1, 0.05, 0.01])
@pytest.mark.parametrize("gap", [4e-4, 1e-4, 3e-6, 3e-8, 3e-10])
def test_a_written_p_value_lies_on_the_side_of_the_level_that_the_decision_says(level: float, gap: float) -> None:
    for p in (level - gap, level + gap):
        assert below(float(format_p(p)), level) == below(p, level)
        assert float(format_p(p)) != level
    for noise in ULPS:
        assert format_p(level + noise) == f"{level:.3f}"


@pytest.mark.parametrize("level", [0.2, 0.02, 0.025, 0.001, 0.0005, 1 / 3])
@pytest.mark.parametrize("gap", [4e-4, 1e-4, 3e-6, 3e-8, 3e-10])
def test_a_p_value_beside_the_level_in_use_is_written_on_its_side(level: float, gap: float) -> None:
    for p in (level - gap, level + gap):
        text = format_p(p, level=level)
        bound = float(text.removeprefix("<"))
        assert (bound <= level if text.startswith("<") else below(bound, level)) == below(p, level)
    assert {format_p(level + noise, level=level) for noise in ULPS} == {format_p(level, level=level)}
    assert format_p(0.0203) == "0.020"  # at another level, three decimals do


@pytest.mark.parametrize("noise", ULPS)
def test_a_column_is_written_alike(noise: float) -> None:
    for values, want in [
        ([0.1 + noise, 0.2], ["0.1", "0.2"]),
        ([1.0 + noise, 0.5], ["1.0", "0.5"]),
        ([3.0 + noise, 2.0], ["3", "2"]),
        ([noise, 1.0], ["0", "1"]),
        ([1e9, noise], ["1.000e+09", "0"]),
    ]:
        lines = ResultTable("", pd.DataFrame({"x": values})).to_text().splitlines()
        assert [line.strip() for line in lines[2:]] == want


def test_levels_with_equal_means_are_in_the_order_of_the_levels() -> None:
    """Scores in tenths whose means are equal, but not in the last bits."""
    scores = {
        "b": [0.1, 0.2, 0.3, 0.7],
        "a": [0.7, 0.3, 0.2, 0.1],
        "c": [0.3, 0.7, 0.1, 0.2],
        "d": [5.1, 5.2, 5.3, 5.4],
    }
    rows = [(name, i, y) for name, values in scores.items() for i, y in enumerate(values)]
    table = pd.DataFrame(rows, columns=["tool", "task", "loss"])
    for direction, want in (("minimize", "abcd"), ("maximize", "dabc")):
        for factor in (1.0, 1.1, 0.7, 1 / 3, 1e-3):
            runs = lt.Runs(
                table.assign(loss=factor * table["loss"]), score="loss", algorithm="tool", benchmark="task",
                direction=direction,
            )  # fmt: skip
            fit = lt.fit_lmm("loss ~ tool", runs)
            assert "".join(fit.emmeans("tool").pairs().decisions().levels) == want


@pytest.mark.parametrize("name", ["argsort", "sort_values"])
def test_every_sort_that_may_have_ties_is_stable(name: str) -> None:
    """The default sort goes by the vector instructions of the processor, and with it the order of ties."""
    for path, call in nodes(ast.Call):
        if not isinstance(call.func, ast.Attribute) or call.func.attr != name:
            continue
        by = call.args[0] if call.args else None
        if name == "sort_values" and isinstance(by, (ast.List, ast.ListComp)):
            continue  # by several columns it is stable
        assert any(word.arg == "kind" for word in call.keywords), f"{path.name}:{call.lineno}: kind='stable'"
