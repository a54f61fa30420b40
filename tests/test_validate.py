"""Argument checks name the argument, the rule, the value and the next step."""

from __future__ import annotations

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from refusals import refusal

from lmemtest.core import validate as v
from lmemtest.errors import ArgumentError, DataError, UnknownColumnError


def test_choice_lists_its_options_and_suggests() -> None:
    assert v.check_choice("b", "x", ("a", "b")) == "b"
    for bad, end in (("minimise", "got 'minimise'. Did you mean 'minimize'?"), (None, "got None.")):
        said = refusal(lambda bad=bad: v.check_choice(bad, "direction", ("minimize", "maximize")), ArgumentError)
        assert said == f"direction must be 'minimize' or 'maximize', {end}"


@pytest.mark.parametrize("bad", [0, 1, -0.1, 1.5, float("nan"), float("inf"), "0.5", None, True, 1j])
def test_fraction_refuses(bad: object) -> None:
    with pytest.raises(ArgumentError, match="level must be a number between 0 and 1"):
        v.check_fraction(bad, "level")


def test_fraction_understands_percent() -> None:
    assert v.check_fraction(np.float64(0.5), "level") == 0.5
    said = refusal(lambda: v.check_fraction(95, "level"), ArgumentError)
    assert said == "level must be a number between 0 and 1 (both excluded), got 95. Write 0.95?"


@pytest.mark.parametrize("good", [3, 3.0, np.int32(3), np.float32(3)])
def test_positive_int_accepts_whole_numbers(good: object) -> None:
    got = v.check_positive_int(good, "k")
    assert got == 3
    assert type(got) is int


@pytest.mark.parametrize("bad", [0, -1, 2.5, float("nan"), float("inf"), "3", None, True, np.bool_(True), 1j])
def test_positive_int_refuses(bad: object) -> None:
    with pytest.raises(ArgumentError, match="k must be a whole number of at least 1, got"):
        v.check_positive_int(bad, "k")


@pytest.mark.parametrize("bad", ["ML", "false", 1, 0, -1, 1.0, float("nan"), None, [], np.array([True, False])])
def test_flag_takes_a_boolean_only(bad: object) -> None:
    with pytest.raises(ArgumentError, match="reml must be True or False, got"):
        v.check_flag(bad, "reml")


@pytest.mark.parametrize("good", [True, False, np.True_, np.False_])
def test_flag_accepts_booleans(good: object) -> None:
    assert v.check_flag(good, "reml") is bool(good)


def test_counts_that_no_machine_could_hold_are_refused() -> None:
    assert v.check_positive_int(10**7, "n") == 10**7
    said = refusal(lambda: v.check_positive_int(10**12, "n"), ArgumentError)
    assert said == "n must be a whole number of at most 10,000,000, got 1,000,000,000,000."
    with pytest.raises(ArgumentError, match="at most 5, got 6"):
        v.check_positive_int(6, "n", maximum=5)


@pytest.mark.parametrize("bad", [3, True, None, 0.5, b"x", {}, {"seed": 1}])
def test_columns_must_be_named(bad: object) -> None:
    with pytest.raises(ArgumentError, match="by must name columns by strings, got"):
        v.check_columns(bad, ["seed"], argument="by")  # type: ignore[arg-type]


def test_positive_int_minimum() -> None:
    assert v.check_positive_int(0, "k", minimum=0) == 0
    with pytest.raises(ArgumentError, match="at least 5, got 4"):
        v.check_positive_int(4, "k", 5)


def test_columns_suggests_the_nearest_name() -> None:
    columns = ["algorithm", "benchmark", "seed"]
    assert v.check_columns(["seed", "algorithm"], columns, argument="by") == ("seed", "algorithm")
    assert refusal(lambda: v.check_columns("algoritm", columns, argument="algorithm"), UnknownColumnError) == (
        "algorithm names the column 'algoritm', which is not in the data. "
        "Columns: algorithm, benchmark, seed. Did you mean 'algorithm'?"
    )
    with pytest.raises(UnknownColumnError, match="Did you mean 'seed'"):
        v.check_columns(["Seed "], columns, argument="by")
    said = refusal(lambda: v.check_columns("zzz", [f"c{i}" for i in range(30)], argument="by"), UnknownColumnError)
    assert "... (30 in all)." in said
    assert "Did you mean" not in said


def test_columns_must_be_named_by_strings() -> None:
    with pytest.raises(ArgumentError, match="by must name columns by strings, got 0 of type int"):
        v.check_columns([0], [0, 1], argument="by")


def test_a_beginning_is_enough_for_a_suggestion() -> None:
    assert v.suggest("min", ("minimize", "maximize")) == " Did you mean 'minimize'?"
    assert v.suggest("algo", ["seed", "algorithm"]) == " Did you mean 'algorithm'?"
    assert v.suggest("m", ("minimize", "maximize")) == ""


def test_rng_is_used_as_it_is_or_seeded() -> None:
    generator = np.random.default_rng(1)
    assert v.resolve_rng(generator) is generator
    assert v.resolve_rng(np.int64(3)).integers(10**9) == np.random.default_rng(3).integers(10**9)
    assert v.resolve_rng(None).integers(10**9) != v.resolve_rng(None).integers(10**9)
    for bad in (-1, 1.5, "7", True):
        with pytest.raises(ArgumentError, match="rng must be a seed"):
            v.resolve_rng(bad)  # type: ignore[arg-type]
    with pytest.raises(ArgumentError, match="legacy generator: pass numpy"):
        v.resolve_rng(np.random.RandomState(1))  # type: ignore[arg-type]


def test_frames_of_every_kind_are_wrapped() -> None:
    table = {"a": [1, 2], "b c": ["x", "y"]}
    polars = pl.DataFrame(table)
    connection = duckdb.connect()
    relation = connection.from_arrow(pa.table(table))
    for data in (table, pd.DataFrame(table), polars, polars.lazy(), pa.table(table), relation):
        assert v.as_frame(data).collect_schema().names() == ["a", "b c"]


@pytest.mark.parametrize(
    "bad", [[1, 2], np.zeros((2, 2)), pd.Series([1]), pl.Series([1]), 3, None, "runs.csv"], ids=repr
)
def test_what_is_not_a_table_is_refused(bad: object) -> None:
    with pytest.raises(ArgumentError, match=r"data must be a dataframe \(pandas, polars, .*, got "):
        v.as_frame(bad)


def test_a_path_gets_advice() -> None:
    with pytest.raises(ArgumentError, match="To read a file, use lmemtest"):
        v.as_frame("runs.csv")


def test_repeated_names_are_refused() -> None:
    frame = pd.DataFrame([[1, 2, 3]], columns=["a", "b", "a"])
    arrow = pa.table([[1], [2]], names=["a", "a"])
    for data in (frame, arrow):
        assert refusal(lambda data=data: v.as_frame(data), DataError) == (
            "data has more than one column named 'a'; every name must occur once. Rename or drop the copies."
        )


def test_ragged_mapping_is_refused() -> None:
    with pytest.raises(DataError, match="the columns of the dict do not form a table"):
        v.as_frame({"a": [1, 2], "b": [1]})


@pytest.mark.parametrize(
    ("limits", "inside", "outside", "rule"),
    [
        ({}, [-1e300, 0], [np.inf, -np.inf, 10**400], "a finite number"),
        ({"low": 0}, [0, 1e300], [-1e-300, np.inf], "a finite number of at least 0"),
        ({"low": 0, "open": "low"}, [1e-300], [0, np.inf], "a finite number above 0"),
        ({"low": 0, "high": np.inf}, [0, np.inf, 10**400], [-1], "a number of at least 0"),
        ({"high": 2}, [-1e300, 2], [2.5, -np.inf], "a finite number of at most 2"),
        ({"low": -1, "high": 1, "open": "high"}, [-1, 0.5], [1, -1.5], "a number of at least -1 and below 1"),
        ({"low": 0, "high": 0.5, "open": "low"}, [0.5], [0, 0.6], "a number above 0 and at most 0.5"),
        ({"low": 0, "high": 1, "open": "both"}, [0.5], [0, 1], "a number above 0 and below 1"),
    ],
)
def test_a_number_lies_between_its_limits(limits: dict, inside: list, outside: list, rule: str) -> None:
    for value in [*inside, *map(np.float64, (x for x in inside if x != 10**400))]:
        got = v.check_number(value, "x", **limits)
        assert type(got) is float
        assert got == value or value == 10**400
    for value in [*outside, np.nan, "1", None, True, np.True_, 1j, [1.0]]:
        said = refusal(lambda value=value: v.check_number(value, "x", **limits), ArgumentError)
        assert said == f"x must be {rule}, got {value!r}."


def test_the_message_says_what_the_number_is() -> None:
    assert refusal(
        lambda: v.check_number(-1, "rope", low=0, meaning="the largest difference that does not matter"), ArgumentError
    ) == ("rope must be a finite number of at least 0, got -1: the largest difference that does not matter.")
