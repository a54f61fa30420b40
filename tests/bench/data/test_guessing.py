"""Roles of tables as people have them: guessed by names and structure, the same in Python and at the command line."""

from __future__ import annotations

import re
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from ordinary_tables import (
    NAMES,
    TABLES,
    Table,
    copied,
    cross_validation,
    families,
    long,
    printed,
    ranks,
    two_metrics,
    wide,
)

import lmemtest as lt
from lmemtest.bench.data.guessing import guess
from lmemtest.bench.data.runs import as_runs
from lmemtest.bench.evaluation.evaluated import Evaluation
from lmemtest.errors import ArgumentError, DataError


@pytest.mark.parametrize("name", TABLES)
def test_a_table_has_the_reading_that_is_right_or_shows_all_that_may_be(name: str) -> None:
    table = TABLES[name]()
    found = guess(table.frame)
    assert found.readings, found
    first = found.readings[0]
    assert first.wide == table.wide
    known = {role: value for role, value in table.roles.items() if role not in table.open}
    assert {role: first.roles.get(role) for role in known} == known
    assert found.sure == (not table.open)
    for role in table.open:
        assert len({reading.roles[role] for reading in found.readings}) == 2
    assert {text.split("'")[1] for text in found.left_out} == set(table.left_out)


def first_step(table: Any, **roles: Any) -> lt.Runs:
    """What `analyze` makes of its arguments."""
    return as_runs(table, roles, "analyze")


@pytest.mark.parametrize("name", TABLES)
def test_every_call_that_an_error_shows_runs(name: str) -> None:
    """`lt.analyze(df)` answers with whole calls, in the names of the table."""
    table = TABLES[name]()
    with pytest.raises(ArgumentError) as error:
        lt.analyze(table.frame)
    calls = re.findall(r"^  (lmemtest\..*)$", str(error.value), flags=re.MULTILINE)
    assert sum("analyze" in call for call in calls) == len(guess(table.frame).readings)
    for call in calls:
        functions = SimpleNamespace(analyze=first_step, Runs=lt.Runs, evaluate=lt.evaluate)
        found = eval(call, {"lmemtest": functions, "df": table.frame, "table": table.frame})
        assert isinstance(found, (lt.Runs, Evaluation))


def test_other_functions_show_the_call_with_their_own_name() -> None:
    table = long("others").frame
    roles = "df, score='f1', direction='maximize', algorithm='clf', benchmark='data', seed='run'"
    for function, call in (
        (lt.check, f"lmemtest.check(lmemtest.Runs({roles}))"),
        (lt.rank, f"lmemtest.rank({roles})"),
        (lt.recommend, f"lmemtest.Runs({roles})"),
    ):
        with pytest.raises(ArgumentError) as error:
            function(table)
        assert f"By names and structure:\n  {call}" in str(error.value)
    with pytest.raises(ArgumentError, match=r"lmemtest\.rank\(df, direction='maximize'\)"):
        lt.rank(wide().frame)
    battles = pd.DataFrame(
        {"model_a": list("ABAB") * 5, "model_b": list("BACC") * 5, "winner": ["model_a", "tie"] * 10}
    )
    with pytest.raises(
        ArgumentError, match=r"It looks like battles(.|\n)*lmemtest\.rate_votes\(table, model_a='model_a'"
    ):
        lt.analyze(battles)


def test_given_roles_are_kept_and_the_others_guessed() -> None:
    table = families("suite").frame
    found = guess(table, {"family": ("suite",)}).readings[0]
    assert (found.roles["benchmark"], found.roles["seed"], found.roles["family"]) == ("task", "seed", ("suite",))
    with pytest.raises(ArgumentError, match="needs direction=: is a low or a high score good"):
        lt.analyze(two_metrics().frame, score="test_error", algorithm="optimizer")
    with pytest.raises(ArgumentError) as error:
        lt.analyze(two_metrics().frame, algorithm="optimizer", ignore=["seed"])
    assert "seed=" not in str(error.value)
    assert str(error.value).count("budget='epochs', ignore=['seed'])") == 2


@pytest.mark.parametrize("share", [0.0, 0.2])
@pytest.mark.parametrize("names", NAMES)
def test_missing_and_shuffled_rows_change_no_reading(names: str, share: float) -> None:
    table = long(names)
    rng = np.random.default_rng(8)
    frame = table.frame[rng.random(len(table.frame)) >= share].iloc[:, rng.permutation(4)]
    frame = frame.sample(frac=1.0, random_state=np.random.RandomState(1))
    assert table.roles.items() <= guess(frame).readings[0].roles.items()


def test_a_grouping_column_is_noticed_whatever_its_name() -> None:
    """With families D is not distinguishable from its neighbours as it is without: the check and the guess say so."""
    for name in ("suite", "subject", "zz"):
        table = families(name)
        runs = lt.Runs(table.frame, **{**table.roles, "family": None})
        (note,) = [f for f in runs.check(rules_only=True).findings if f.kind == "families"]
        assert note.message.startswith(f"The 5 values of '{name}' group the 20 tasks.")
        assert guess(table.frame).readings[0].roles["family"] == (name,)


def test_a_measured_time_is_no_budget_and_logged_ones_are() -> None:
    table = cross_validation().frame
    runs = lt.Runs(table, score="accuracy", direction="maximize", algorithm="clf", benchmark="data")
    assert lt.Runs(table, **lt.Runs(table, **guess(table).readings[0].roles).roles()).budget is None
    assert "fit_time" not in runs.check(rules_only=True).findings[0].message
    rng = np.random.default_rng(9)
    log = pd.DataFrame([(a, t, s) for a in "AB" for t in "uvw" for s in range(3)], columns=["method", "task", "seed"])
    log = log.merge(pd.DataFrame({"k": range(8)}), how="cross")
    log = log.assign(time=rng.uniform(size=len(log)), loss=rng.uniform(size=len(log)))
    log["time"] = log.groupby(["method", "task", "seed"])["time"].cumsum().round(2)  # every run at times of its own
    assert log["time"].nunique() > 0.75 * len(log)
    assert guess(log.drop(columns="k")).readings[0].roles["budget"] == "time"


def test_ranks_are_recognised_long_and_wide() -> None:
    frame = ranks().frame
    assert guess(frame).reasons == ("The cells of every row are ranks from 1 on, of which low ones are good.",)
    tall = frame.melt("dataset", var_name="method", value_name="value")
    found = guess(tall)
    assert (found.sure, found.readings[0].roles["direction"]) == (True, "minimize")
    assert "The values of 'value' are ranks" in found.reasons[0]


def test_nested_cells_lists_and_odd_columns_are_passed_over() -> None:
    table = long()
    frame = table.frame.assign(tags=[["x"]] * len(table.frame), info=[{"a": 1}] * len(table.frame), empty=np.nan)
    found = guess(frame)
    assert table.roles.items() <= found.readings[0].roles.items()
    assert found.left_out == ("'tags'", "'info'", "'empty'")
    assert guess(frame[["tags", "info"]]).readings == ()
    assert guess(pd.DataFrame({"x": [1.0, 2.0]})).lacking


def test_an_answer_begins_with_the_number_of_copies() -> None:
    table = copied()
    headline = lt.analyze(table.frame, **table.roles).headline()
    assert headline.startswith(
        "60 of 240 rows are copies of others. Copies make the result look more certain than it is: drop "
    )
    reruns = table.frame.assign(test_acc=table.frame["test_acc"] + np.arange(len(table.frame)) * 1e-6)
    headline = lt.analyze(reruns, **table.roles).headline()
    assert headline.startswith("60 of 240 rows repeat another run with a different score.")


def test_check_prints_sixty_lines_at_most() -> None:
    rng = np.random.default_rng(10)
    rows = [(m, f"q{i}", int(rng.random() < 0.5)) for m in ("A", "B", "C") for i in range(400) if rng.random() < 0.9]
    runs = lt.Runs(pd.DataFrame(rows, columns=["model", "item", "correct"]), score="correct", direction="max",
                   algorithm="model", benchmark="item")  # fmt: skip
    text = runs.check().summary()
    assert len(text.splitlines()) <= 60
    assert max(map(len, text.splitlines())) <= 600
    assert "of 400 benchmarks (q0, q1, ... (" in text
    whole = runs.check(rules_only=True).summary(whole=True)
    assert len(whole.splitlines()) > 60
    assert "... and " not in whole


def test_a_wider_standard_error_explains_who_cannot_be_distinguished() -> None:
    """The third is farther behind than the second, and not distinguishable from the first."""
    rng = np.random.default_rng(0)
    rows = []
    for task in range(8):
        rows += [("A", task, 0.0), ("B", task, 1.0 + rng.normal(0.0, 0.1)), ("C", task, 1.5 + rng.normal(0.0, 4.0))]
    runs = lt.Runs(pd.DataFrame(rows, columns=["tool", "task", "loss"]), score="loss", direction="minimize",
                   algorithm="tool", benchmark="task")  # fmt: skip
    analysis = lt.analyze(runs)
    table = analysis.pairs.to_frame().set_index(["left", "right"])["se"]
    text = analysis.headline()
    assert "not distinguishable from C" in text
    sizes = re.search(
        r"Over C the lead is larger, [\d.]+, but so is its standard error \(([\d.]+), over B ([\d.]+)\)", text
    )
    assert sizes is not None
    assert [float(size) for size in sizes.groups()] == pytest.approx([table["A", "C"], table["A", "B"]], rel=0.1)


def roles_in(call: str) -> dict[str, Any]:
    """The arguments of a call of `Runs`."""
    found: dict[str, Any] = eval(f"dict({call.partition('df, ')[2].rstrip(')')})")
    return found


@pytest.mark.parametrize("make", [long, cross_validation, families])
def test_python_and_the_command_line_show_the_same_roles(make: Callable[[], Table]) -> None:
    from lmemtest.core.caller import on_command_line

    found = guess(make().frame)
    python = found.told({}, "lmemtest.Runs(df, {})").splitlines()[1]
    with on_command_line(["lmemtest", "report", "f.csv"]):
        line = found.told({}, "").splitlines()[1]
    options = line.split()[3:]
    said: dict[str, list[str]] = {}
    for option, value in zip(options[::2], options[1::2], strict=True):
        said.setdefault(option[2:], []).append(value)
    flat = {name: value if isinstance(value, list) else [value] for name, value in roles_in(python).items()}
    assert said == flat


def test_a_table_as_papers_print_it_is_read_with_the_direction_alone() -> None:
    frame = printed().frame
    with pytest.raises(ArgumentError, match=r"\n  lmemtest\.analyze\(df, direction='maximize'\)\n"):
        lt.analyze(frame)
    runs = first_step(frame, direction="maximize")
    numbers = frame.set_index("dataset").map(lambda cell: float(cell.split()[0]))
    wanted = lt.Runs.from_wide(numbers.reset_index(), direction="maximize")
    pd.testing.assert_frame_equal(runs.to_frame(), wanted.to_frame(), check_dtype=False)


def test_levels_of_columns_that_were_pivoted_are_not_lost() -> None:
    """Seeds in the columns are no algorithms; a level with the name of the score alone is left out."""
    frame = long().frame
    pivot = frame.pivot_table(index="dataset", columns=["method", "seed"], values="test_acc")
    message = r"The columns have 2 levels \(method, seed\).* to the rows: df\.stack\('seed'\)\.reset_index\(\)\."
    for call in (lt.analyze, lt.Runs.from_wide):
        with pytest.raises(DataError, match=message):
            call(pivot, direction="maximize")
    back = pivot.stack("seed").reset_index()
    assert set(first_step(back, direction="maximize", seed="seed").algorithms) == set(frame["method"])
    alone = frame.pivot_table(index=["dataset", "seed"], columns="method", values=["test_acc"])
    assert len(lt.Runs.from_wide(alone, seed="seed", direction="maximize").algorithms) == frame["method"].nunique()


@pytest.mark.parametrize(("table", "step"), [("runs.csv", "lmemtest.read_runs"), (np.eye(3), "pandas.DataFrame")])
def test_what_is_no_table_is_told_how_to_become_one(table: Any, step: str) -> None:
    with pytest.raises(ArgumentError, match=step):
        lt.analyze(table)


@pytest.mark.parametrize(
    "index", [None, pd.Index(["a", "b"], name="task"), pd.MultiIndex.from_product([["a"], [1, 2]])]
)
def test_a_series_with_a_direction_is_no_table(index: Any) -> None:
    with pytest.raises(ArgumentError, match=r"frame must be a dataframe .* got pandas\..*Series"):
        lt.analyze(pd.Series([1.0, 2.0], index=index), direction="minimize")


def test_a_wide_table_with_a_column_twice_says_which() -> None:
    wide = pd.DataFrame([[1.0, 2.0, 3.0]] * 4, columns=["HB", "RS", "HB"])
    with pytest.raises(DataError, match=r"frame has more than one column named 'HB'"):
        lt.analyze(wide, direction="minimize")


def test_a_dict_with_a_row_for_each_score_is_read_as_its_dataframe() -> None:
    table = pd.DataFrame({"algo": list("AB") * 4, "task": list("ppqqrrss"), "loss": np.arange(8.0)})
    for given in (table, table.to_dict("list")):
        with pytest.raises(ArgumentError, match=r"lmemtest\.analyze\(df, score='loss', .*algorithm='algo'"):
            lt.analyze(given, direction="minimize")


def test_columns_of_runs_whose_rows_have_no_names_are_not_read_as_algorithms() -> None:
    frame = pd.DataFrame({"step": range(6), "ppo-s0": np.arange(6.0), "sac-s0": np.arange(6.0)})
    with pytest.raises(ArgumentError, match="No column has the names of the benchmarks"):
        lt.analyze(frame)
