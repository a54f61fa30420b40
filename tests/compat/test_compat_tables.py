"""Validation and autorank's shape: copies instead of changes, rows that belong together."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from pytest import approx
from refusals import refuses

from lmemtest.compat.significance_analysis import convert_to_autorank, dataframe_validator
from lmemtest.errors import ArgumentError, DataError, DataWarning, UnknownColumnError


def test_the_validator_returns_what_the_peer_returns(peer, table, capsys):
    stored = peer["conversions"]["validator"]
    frame, columns = dataframe_validator(table("seeded"))
    assert columns == stored["columns"]
    assert {name: str(dtype) for name, dtype in frame.dtypes.items()} == stored["dtypes"]
    assert capsys.readouterr().out == stored["printed"]


def test_the_validator_changes_a_copy(peer, table):
    assert peer["conversions"]["validator"]["same_object"] is True
    given = table("seeded")
    before = given.copy()
    frame, _ = dataframe_validator(given, verbose=False)
    pd.testing.assert_frame_equal(given, before)
    assert frame is not given


def test_further_columns_and_types(capsys):
    given = pd.DataFrame({"a": ["x", "y"], "l": np.array([1, 2], dtype=np.float32), "n": [1, 2], "t": ["p", "q"]})
    frame, columns = dataframe_validator(given, algorithm_var="a", loss_var="l", first="n", second="t")
    assert columns == ["a", "l", "n", "t"]
    assert [str(dtype) for dtype in frame.dtypes] == ["object", "float64", "float64", "object"]
    assert capsys.readouterr().out == "Converted column l to float.\n"
    with pytest.raises(UnknownColumnError, match="extra_vars names the column 'z', which is not in the data"):
        dataframe_validator(given, more="z")


def test_text_among_numbers_is_said_aloud():
    given = pd.DataFrame({"algorithm": ["x", "y"], "value": ["1.5", "crash"]})
    text = (
        "the column 'value' holds something that is not a number (could not convert string to float: 'crash'), so it "
        "stays as it is. Correct its values, or name the column of numbers."
    )
    with pytest.warns(DataWarning, match=f"^{re.escape(text)}$"):
        frame, columns = dataframe_validator(given)
    assert columns == ["algorithm"]
    assert frame["value"].tolist() == ["1.5", "crash"]


def test_what_is_no_table_is_refused():
    refuses(ArgumentError, "data must be a dataframe", dataframe_validator, "results.parquet")


# ---------------------------------------------------------------- autorank


def test_ordered_tables_convert_as_the_peers(peer, table, frame_of):
    ours = convert_to_autorank(table("seeded"))
    theirs = frame_of(peer["conversions"]["autorank"])
    assert list(ours.columns) == list(theirs.columns)
    assert isinstance(ours.index, pd.RangeIndex)
    np.testing.assert_array_equal(ours.to_numpy(), theirs.to_numpy())


def test_rows_hold_scores_under_the_same_conditions(peer, table, frame_of):
    """Peer: by position, so the order of the rows decides which scores are compared."""
    order = peer["conversions"]["autorank_shuffled_order"]
    shuffled = table("seeded").iloc[order]
    pairs = {tuple(row) for row in convert_to_autorank(table("seeded"))[["PB", "HB", "RS"]].to_numpy()}
    ours = {tuple(row) for row in convert_to_autorank(shuffled)[["PB", "HB", "RS"]].to_numpy()}
    theirs = {tuple(row) for row in frame_of(peer["conversions"]["autorank_shuffled"])[["PB", "HB", "RS"]].to_numpy()}
    assert ours == pairs
    assert len(theirs & pairs) <= 2


def test_what_an_algorithm_lacks_is_missing(table):
    frame = table("seeded")
    ours = convert_to_autorank(frame.drop(index=frame.index[(frame["algorithm"] == "RS") & (frame["seed"] == 3)]))
    assert ours.isna().sum().to_dict() == {"PB": 0, "HB": 0, "RS": 4}
    complete = convert_to_autorank(frame)
    assert ours.dropna().to_numpy() == approx(complete[ours["RS"].notna()].to_numpy())


def test_repeats_are_paired_in_their_order():
    frame = pd.DataFrame({"algorithm": list("AABB"), "benchmark": ["x"] * 4, "value": [1.0, 2.0, 3.0, 4.0]})
    assert convert_to_autorank(frame).to_numpy().tolist() == [[-1.0, -3.0], [-2.0, -4.0]]


def test_measurements_do_not_tell_rows_apart(table):
    frame = table("seeded").assign(runtime=lambda t: t["value"] * 3 + 0.123)
    pd.testing.assert_frame_equal(convert_to_autorank(frame), convert_to_autorank(table("seeded")))


def test_budgets_may_be_words(table):
    frame = table("seeded").assign(used_fidelity="low")
    both = pd.concat([frame, frame.assign(used_fidelity="high", value=lambda t: t["value"] + 1.0)])
    ours = {tuple(row) for row in convert_to_autorank(both).to_numpy()}
    assert ours == {tuple(row) for part in (frame, frame.assign(value=lambda t: t["value"] + 1.0))
                    for row in convert_to_autorank(part).to_numpy()}  # fmt: skip


def test_nothing_to_match_rows_by():
    frame = pd.DataFrame({"algorithm": list("AAB"), "value": [1.0, 2.0, 3.0]})
    text = (
        "the algorithms have different numbers of rows (1 to 2) and no column says which of them belong together. Add "
        "the columns of benchmark and seed."
    )
    refuses(DataError, f"^{re.escape(text)}$", convert_to_autorank, frame)
    refuses(DataError, "The column 'algorithm' holds one algorithm only, 'A'", convert_to_autorank, frame[:2])
    refuses(UnknownColumnError, "data names the column 'loss'", convert_to_autorank, frame, value_variable="loss")
