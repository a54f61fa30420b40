"""Every command that the command line prints can be run: in errors, in advice, after an export."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from ordinary_tables import TABLES, Table, with_words
from study import make_table

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
    text = text.replace(" \\\n    ", " ")  # long ones go on
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


@pytest.mark.daily(2)
@pytest.mark.parametrize(
    ("name", "command"),
    [
        *((name, "rank") for name in COMMON),
        ("undirected", "check"),
        pytest.param("wide", "check", marks=pytest.mark.level(2)),
    ],
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


def frames() -> dict[str, pd.DataFrame]:
    """A small table of each form."""
    rng = np.random.default_rng(1)
    items = pd.DataFrame(rng.integers(0, 2, (30, 2)), columns=["gpt", "llama"]).assign(subject=np.arange(30) % 6)
    names = {"algorithm": "tool", "benchmark": "my task`s\x1b[31m'b", "loss": "loss $x"}
    return {
        "seeds": make_table(2, 7, 3),
        "two scores": make_table(2, 7, 3).assign(regret=lambda t: t["loss"] / 2.0),
        "two scores, gaps": make_table(2, 7, 3).assign(
            regret=lambda t: t["loss"].where(t.index % 9 > 0), loss=lambda t: t["regret"] / 2.0
        ),
        "undirected": TABLES["undirected"]().frame,
        "undirected, wide": TABLES["wide"]().frame,
        "words": with_words().frame,
        "words, wide": TABLES["wide"]().frame.astype({"SVM": object}).assign(
            SVM=lambda t: t["SVM"].where(t.index != 3, "TIMEOUT")
        ),
        "kinds": make_table(3, 8, 3).assign(
            status=lambda t: np.where(t.index % 13 == 0, "out of memory", "ok"),
            loss=lambda t: t["loss"].where(t["status"] == "ok"),
        ),
        "one seed": make_table(3, 8, 1),
        "one benchmark": make_table(3, 1, 6),
        "curves": make_table(2, 6, 3, budgets=[1, 3, 9], priors=2),
        "many": make_table([f"a{i:03d}" for i in range(300)], 6, 2),
        "folds": make_table(2, 6, 4, rng=2).assign(repeat=lambda t: t["seed"] // 2, fold=lambda t: t["seed"] % 2)
        .drop(columns="seed"),
        "trials": pd.DataFrame({"lr": rng.uniform(size=20), "loss": rng.uniform(size=20)}),
        "0/1": items,
        "attempts": pd.DataFrame({"correct": rng.integers(0, 2, 120), "item": np.repeat(np.arange(30), 4)}).assign(
            subject=lambda t: t["item"] % 6, model=["A", "B"] * 60, epoch=[0, 0, 1, 1] * 30
        ),
        "battles": pd.DataFrame({"left": [*"ABC"] * 9, "right": [*"BCA"] * 9}).assign(
            winner=np.resize(["left", "tie", "right", "right"], 27)
        ),
        "hostile": make_table(["=1+1", "\x1b[2J", "C"], 7, 2).rename(columns=names),
    }  # fmt: skip


@pytest.mark.level(2)
@pytest.mark.parametrize("form", [*frames()])
def test_what_a_table_can_answer_is_one_screen_and_each_of_its_commands_runs(run, form):
    frames()[form].to_csv("runs.csv", index=False)
    outcome = run("check", "runs.csv")
    lines = outcome.out.split("\n\n")[0].split("\n")
    assert len(lines) <= 40
    assert max(map(len, lines)) <= (80 if form != "hostile" else 120)  # where one word is longer
    assert "\x1b" not in outcome.out
    joined = "\n".join(lines).replace(" \\\n    ", " ")
    commands = [words_of(line) for line in dict.fromkeys(re.findall(r"^  lmemtest (.*)$", joined, re.MULTILINE))]
    assert len(commands) >= {"trials": 1, "0/1": 1, "attempts": 1, "battles": 1}.get(form, 2)
    for command in commands * (form != "many"):  # of 300 algorithms an analysis takes minutes
        answered = run(*command, *["--json"] * (command[0] in ("report", "evaluate")))
        assert answered.code == 0 or (command[0] == "check" and answered.code == 1), (command, answered.err)


def words_of(command: str) -> list[str]:
    """The words of a command as bash reads them."""
    out = subprocess.run(["bash", "-c", f"printf '%s\\0' {command}"], capture_output=True, check=True).stdout
    return out.decode().split("\0")[:-1]


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
