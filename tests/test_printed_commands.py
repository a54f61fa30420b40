"""Every command that the command line prints can be run: in errors, in advice, after an export."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from ordinary_tables import TABLES, Table, with_words

FILES = Path(__file__).parent / "bench" / "data" / "files"
# A command that is wrong, other than by a choice that only the user can make and a table that decides nothing.
WRONG = re.compile(r"Usage:|No such (option|command)|must be given|must be '|names? the column|is not a number")


COMMON = (
    *("long, german names", "nameless", "cross-validation", "curves", "two metrics", "undirected", "families, zz"),
    *("few groups", "wide", "ranks", "one benchmark", "copied"),
)


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def printed(text: str) -> list[list[str]]:
    """The commands in a text: on lines of their own, or up to the end of the sentence."""
    lines = re.findall(r"^  lmemtest (.*)$", text, flags=re.MULTILINE)
    within = re.findall(
        r"\S.*?\blmemtest ((?:report|check|rank|convert|evaluate) .*?)(?: \(or |\. |\.?$)", text, re.MULTILINE
    )
    return [shlex.split(line) for line in dict.fromkeys([*lines, *within])]


def follow(run: Callable[..., Any], *arguments: str, depth: int = 3) -> list[list[str]]:
    """The commands that a command prints and those that these print; none may be wrong."""
    outcome = run(*arguments)
    found = printed(outcome.err + outcome.out * ("--json" not in arguments))
    if outcome.code != 0 and not found:
        assert not WRONG.search(outcome.err), (arguments, outcome.err)
    if depth:
        for command in found:
            if command[0] == "convert" and "-o" not in command:
                command = [*command, "-o", "converted.csv"]
            if command[0] == "report" and "-o" not in command:
                command = [*command, "--json"]  # no page, no figures
            follow(run, *command, depth=depth - 1)
    return found


@pytest.mark.parametrize(
    ("name", "command"), [*((name, "rank") for name in COMMON), *((name, "check") for name in ("undirected", "wide"))]
)
def test_what_a_command_prints_about_an_ordinary_table_runs(run: Callable[..., Any], name: str, command: str) -> None:
    table: Table = TABLES[name]()
    table.frame.to_csv("runs.csv", index=False)
    yes = run(command, "runs.csv", "--yes")
    if table.open:
        assert yes.code == 2
        assert "taking" not in yes.err
    else:
        assert yes.code == 0, yes.err
        left_out = [name for name in table.left_out if f"'{name}'" in yes.err]
        assert yes.err.startswith("taking --")
        assert left_out == list(table.left_out)
    commands = follow(run, command, "runs.csv")
    assert len(commands) >= 1 + bool(table.open)


def test_words_for_failures_are_asked_for_with_all_that_is_known(run: Callable[..., Any]) -> None:
    with_words().frame.to_csv("runs.csv", index=False)
    first = run("rank", "runs.csv", "--yes")
    assert first.code == 2
    ((*command,),) = printed(first.err)
    assert command == ["rank", "runs.csv", "--yes", "--failed", "crash"]
    assert "--score-failures" in run(*command).err
    last = run(*command, "--score-failures", "worst")
    assert last.code == 0, last.err
    assert (
        "taking --score test_acc --direction maximize --algorithm method --benchmark dataset --seed seed\n" in last.err
    )


@pytest.mark.parametrize("name", ["amlb_results.csv", "mlflow_runs.csv", "sklearn_cv_results.csv", "wandb_chart.csv"])
def test_what_is_printed_about_an_export_runs(run: Callable[..., Any], name: str) -> None:
    Path(name).write_bytes((FILES / name).read_bytes())
    assert any(command[0] == "convert" for command in follow(run, "rank", name, depth=2))


def test_several_seeds_on_the_command_line_are_one(run: Callable[..., Any]) -> None:
    """The last one silently won."""
    table = TABLES["cross-validation"]()
    table.frame.to_csv("runs.csv", index=False)
    roles = ("--score", "accuracy", "--direction", "higher", "--algorithm", "clf", "--benchmark", "data")
    outcome = run("check", "runs.csv", *roles, "--seed", "repeat", "--seed", "fold")
    assert "216 rows: 3 algorithms, 6 benchmarks, 12 seeds; complete and balanced." in outcome.out
    refused = run("rank", "runs.csv", *roles, "--seed", "repeat")
    assert "--seed repeat --seed fold" in refused.err
    wrong = run("check", "runs.csv", *roles[:2], "--direction", "better")
    assert wrong.code == 2
    assert "'minimize' or 'maximize', got 'better'" in " ".join(wrong.err.split()).replace("│ ", "")
