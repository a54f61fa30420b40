"""Families of benchmarks: the role, and what the study makes of it."""

from __future__ import annotations

from itertools import product
from typing import Any

import pandas as pd
import pytest
from refusals import refusal

import lmemtest as lt
from lmemtest.errors import ArgumentError, DataError, UnknownColumnError

ROLES: dict[str, Any] = {
    "score": "loss", "direction": "minimize", "algorithm": "tool", "benchmark": "task", "seed": "seed"
}  # fmt: skip


def table(*, crossed: bool) -> pd.DataFrame:
    """Three spaces in two suites, two tasks each, with the same names in every space or with names of their own."""
    spaces = (("small", "svm"), ("small", "tree"), ("large", "net"))
    rows = [
        (suite, space, f"t{task}" if crossed else f"{space}-{task}", tool, seed)
        for (suite, space), task, tool, seed in product(spaces, range(2), "AB", range(2))
    ]
    frame = pd.DataFrame(rows, columns=["suite", "space", "task", "tool", "seed"])
    return frame.assign(loss=range(len(frame)))


def test_nested_families_leave_benchmarks_as_the_instances() -> None:
    runs = lt.Runs(table(crossed=False), family="space", **ROLES)
    assert runs.family == ("space",)
    assert runs.instance == ("task",)
    assert runs.study.crossed == ()
    assert runs.study.families == (("space",),)
    assert lt.Runs(runs.frame, **runs.roles()).family == ("space",)
    assert runs.filter(family=["svm", "net"]).levels("task") == ("net-0", "net-1", "svm-0", "svm-1")


def test_a_benchmark_in_several_families_is_an_instance_in_each() -> None:
    runs = lt.Runs(table(crossed=True), family="space", **ROLES)
    assert runs.instance == ("task", "space")
    assert runs.study.count(*runs.instance) == 6


def test_levels_of_families_are_those_that_say_something() -> None:
    frame = table(crossed=False).assign(everything="all", own=lambda t: "x" + t["task"])
    runs = lt.Runs(frame, family=["everything", "suite", "space", "own"], **ROLES)
    assert runs.study.families == (("everything", "suite"), ("everything", "suite", "space"))
    assert lt.Runs(frame, family="everything", **ROLES).study.families == ()
    assert lt.Runs(frame, family="own", **ROLES).study.families == ()


def test_a_lazy_table_is_still_queried_once() -> None:
    pl = pytest.importorskip("polars")
    runs = lt.Runs(pl.from_pandas(table(crossed=True)).lazy(), family="space", **ROLES)
    assert runs.study.crossed == ("space",)


def test_wide_tables_have_families() -> None:
    wide = {"task": ["a", "b"], "space": ["x", "y"], "HB": [0.1, 0.3], "RS": [0.2, 0.5]}
    runs = lt.Runs.from_wide(wide, direction="minimize", benchmark="task", family="space")
    assert runs.family == ("space",)
    assert runs.algorithms == ("HB", "RS")


def test_wrong_families_are_refused() -> None:
    frame = table(crossed=False)
    with pytest.raises(UnknownColumnError, match="family names the column 'sapce'"):
        lt.Runs(frame, family="sapce", **ROLES)
    with pytest.raises(ArgumentError, match="family and benchmark both name the column 'task'"):
        lt.Runs(frame, family="task", **ROLES)
    with pytest.raises(DataError, match=r"spaces are parts of suites: .* round, family=\['suite', 'space'\]\.$"):
        lt.Runs(frame, family=["space", "suite"], **ROLES)
    frame["size"] = frame["task"].str[-1]
    assert refusal(lambda: lt.Runs(frame, family=["size", "space"], **ROLES), DataError) == (
        "family must go from coarse to fine, and 3 of 3 spaces are in several sizes, such as 'net'. If only their "
        "names are the same, give them names of their own: df['space'] = df['size'].astype(str) + '-' + "
        "df['space'].astype(str). If they do lie across the sizes, name one of the two columns as the family."
    )
    with pytest.raises(ArgumentError, match="no column of benchmarks is named"):
        lt.Runs(frame, family="space", **{**ROLES, "benchmark": None})


def test_the_builder_reads_the_role() -> None:
    runs = lt.Runs(table(crossed=False), family="space", **ROLES)
    assert lt.ModelBuilder(runs).random("family").formula() == "loss ~ tool + (1 | space)"
    runs = lt.Runs(table(crossed=False), family=["suite", "space"], **ROLES)
    with pytest.raises(ArgumentError, match="these runs have several: suite, space"):
        lt.ModelBuilder(runs).random("family")


def test_runs_of_one_data_set_in_two_families_are_no_copies() -> None:
    runs = lt.Runs(table(crossed=True), family="space", **ROLES)
    assert not [finding for finding in runs.check(rules_only=True).findings if finding.kind == "copied_runs"]


def test_ranks_are_made_within_each_family_of_a_benchmark() -> None:
    crossed = lt.Runs(table(crossed=True), family="space", **ROLES).normalize("rank")
    assert crossed.scale is not None
    assert crossed.scale.by == ("task", "space")
    assert crossed.frame.to_native()["loss_rank"].max() == 4
    nested = lt.Runs(table(crossed=False), family="space", **ROLES).normalize("rank")
    assert nested.scale is not None
    assert nested.scale.by == ("task",)
