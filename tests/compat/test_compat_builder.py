"""The builder of the paper's figures: the functions behind its methods, and decisions that are always printed."""

from __future__ import annotations

import pandas as pd
import pytest

import lmemtest as lt
from lmemtest.compat.significance_analysis import (
    benchmark_information_check,
    dataframe_validator,
    fidelity_check,
    metafeature_analysis,
    model,
    model_builder,
    seed_dependency_check,
)
from lmemtest.errors import ArgumentError


def test_methods_are_the_functions(table, capsys):
    frame = table("real")
    builder = model_builder(frame)
    assert builder.test_seed_dependency() == seed_dependency_check(frame)
    assert builder.test_benchmark_information() == benchmark_information_check(frame)
    assert builder.test_fidelity() == fidelity_check(frame)
    ours, theirs = (
        builder.test_benchmark_information(rank_benchmarks=True),
        benchmark_information_check(frame, rank_benchmarks=True),
    )
    pd.testing.assert_frame_equal(ours[1], theirs[1])
    for left, right in zip(
        builder.metafeature_analysis(("PB", "HB"), "prior"),
        metafeature_analysis(frame, ("PB", "HB"), "prior"),
        strict=True,
    ):
        pd.testing.assert_frame_equal(left, right)
    formula = "value ~ algorithm + (1|benchmark)"
    assert builder.model(formula).logLike == model(formula, frame).logLike
    printed = [line for line in capsys.readouterr().out.splitlines() if line.startswith("=> Benchmark")]
    assert printed == 4 * printed[: frame["benchmark"].nunique()]


def test_decisions_are_printed_without_their_tests(table, capsys):
    """Figure 3 of the paper has verbose=False and prints decisions; before there was no builder of a table at all."""
    frame = table("real")
    builder = model_builder(frame)
    builder.test_seed_dependency(verbose=False)
    builder.test_benchmark_information(verbose=False)
    builder.test_fidelity(fidelity_var="used_fidelity", verbose=False)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + frame["benchmark"].nunique() + 1
    assert all(line.startswith("=> ") for line in lines)
    seed_dependency_check(frame, verbose=False)
    assert capsys.readouterr().out == ""
    builder.test_seed_dependency()
    assert capsys.readouterr().out.startswith("Simple model (")


def test_other_names_and_what_the_validator_returns(table):
    names = {"algorithm": "tool", "benchmark": "task", "value": "loss", "used_fidelity": "epochs"}
    columns = {"algorithm_var": "tool", "benchmark_var": "task", "loss_var": "loss", "fidelity_var": "epochs"}
    frame = dataframe_validator(table("real"), verbose=False)
    renamed = model_builder(table("real").rename(columns=names), **columns)
    assert renamed.test_fidelity(verbose=False) == model_builder(frame).test_fidelity(verbose=False)


def test_a_table_is_needed_and_the_other_builder_needs_runs():
    with pytest.raises(ArgumentError):
        model_builder(3)
    with pytest.raises(ArgumentError):
        lt.ModelBuilder(pd.DataFrame({"algorithm": ["A"], "value": [1.0]}))
