"""Names that would steer a terminal or the log of a build, or look like sentences of ours, in every command."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from source import commands
from typer.testing import CliRunner

import lmemtest as lt
from lmemtest.cli import app
from lmemtest.core.result import csv_text
from lmemtest.errors import DataWarning

CLAIM = "C is significantly better than everything"
LEVELS = [f"B\n{CLAIM}.", "\x1b[31mRED\x1b[2J", "::error::forged", "D\u2028E\u202eF\x9b2J", "##vso[task.setvariable]x"]
COLUMNS = {"tool": f"tool\n::warning::{CLAIM}", "task": "task\x1b[2J", "loss": "loss\r\u2029"}
FORGED = re.compile(r"^\s*::|##\w*\[|^\s*" + CLAIM, re.MULTILINE)


COMMANDS = {path: command for path, command in commands() if path != ("demo",)}


def table(levels: list[str]) -> pd.DataFrame:
    rows = pd.MultiIndex.from_product([levels, range(6), range(3)], names=["tool", "task", "seed"]).to_frame(
        index=False
    )
    noise = np.random.default_rng(3).normal(scale=0.1, size=len(rows))
    return rows.assign(
        loss=(rows["tool"].map(levels.index) * 0.3 + rows["task"] * 0.1 + noise).clip(0.0, 1.0),
        task=[f"{LEVELS[t % 5]}{t}" for t in rows["task"]],
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tables with hostile levels, and with hostile names of columns, too."""
    folder = tmp_path_factory.mktemp("hostile")
    table(LEVELS).to_json(folder / "levels.json", orient="records")
    table(LEVELS).rename(columns=COLUMNS).to_json(folder / "columns.json", orient="records")
    table(LEVELS[:1]).drop(columns="tool").to_json(folder / "version.json", orient="records")
    return folder


def call(path: tuple[str, ...], file: str, names: dict[str, str], *, roles: bool) -> list[str]:
    """A command with all of its arguments, and all of its options that name a column."""
    given = {"score": names["loss"], "direction": "minimize", "benchmark": names["task"], "seed": "seed"}
    given |= {"algorithm": names["tool"], "model": names["tool"], "task": names["task"], "item": "seed"}
    if path == ("attempts",):
        given |= {"item": given.pop("task"), "epoch": "seed", "threshold": "0.5"}
    if path == ("sources",):
        given = {"score": given["score"], "model": given["model"], "source": given["benchmark"]}
    formula = f"`{names['loss']}` ~ `{names['tool']}` + (1 | `{names['task']}`)"
    words = list(path)
    for parameter in COMMANDS[path].params:
        if parameter.param_type_name == "argument":
            words.append(formula if parameter.name == "formula" else file)
        elif roles and parameter.name in given:
            words += [f"--{parameter.name}", given[parameter.name]]
        elif parameter.name in ("effect", "margin"):
            words += [parameter.opts[0], "0.1"]
        elif parameter.name == "maximum" and path == ("monitor",):
            words += [parameter.opts[0], "40"]
    return words


def assert_clean(text: str) -> None:
    assert FORGED.search(text) is None, FORGED.search(text)
    assert [c for c in text if not (c.isprintable() or c == "\n")] == []


@pytest.mark.daily(8)
@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_nothing_that_a_command_prints_is_forged(folder, path, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setattr("lmemtest.report.serve.until_interrupted", lambda: None)
    monkeypatch.setattr("webbrowser.open", lambda _: True)
    same = {name: name for name in COLUMNS}
    calls = [("columns.json", COLUMNS, False)]
    if path[0] != "convert":
        calls += [("version.json" if path == ("gate",) else "levels.json", same, True), ("columns.json", COLUMNS, True)]
    slow = path in (("report",), ("paper",))
    for file, names, roles in calls[:2] if slow else calls:
        words = call(path, file, names, roles=roles)
        target = Path("out.txt" if path == ("report",) else "out" if path == ("paper",) else "out.md")
        if roles and path not in [("fit",), ("bands",), ("explore",)]:
            words += ["-o", str(target)]
        found = CliRunner().invoke(app, words)
        assert isinstance(found.exception, (SystemExit, type(None))), found.exception
        assert_clean(found.output.replace(str(folder), ""))
        if file != "columns.json" and path not in (("mcnemar",), ("votes",)):  # five models, which are runs: refused
            assert found.exit_code != (3 if path == ("gate",) else 2), found.output
            target = target / "sentence.txt" if path == ("paper",) else target
            assert_clean(target.read_text(encoding="utf-8") if "-o" in words else "")


def test_names_are_whole_in_json() -> None:
    found = lt.rank(lt.Runs(table(LEVELS), score="loss", direction="minimize", algorithm="tool", benchmark="task"))
    text = found.to_json()
    assert set(LEVELS) == {row["algorithm"] for row in json.loads(text)["ranking"]}
    assert [c for c in text if not (c.isprintable() or c == "\n")] == []


FORMULAS = ["=cmd|' /C calc'!A0", "+1+1", "@SUM(1)", "-2+3", "\t=1", "\uff1d1+1", "\n=1"]
PLAIN = ["-1.5", "+3e-2", "-", "a=1", "1-2", "-inf"]


def test_texts_that_a_spreadsheet_would_evaluate_are_escaped_in_csv() -> None:
    numbers = np.linspace(-1.5, 1.0, len(FORMULAS + PLAIN))
    frame = pd.DataFrame({"=name": FORMULAS + PLAIN, "number": numbers, "kind": pd.Categorical(FORMULAS + PLAIN)})
    with pytest.warns(DataWarning, match=r"^15 texts of the csv begin with .* escape=False leaves it out\.$"):
        text = csv_text(frame)
    back = pd.read_csv(io.StringIO(text), dtype=str, keep_default_na=False)
    assert list(back["kind"]) == list(back["'=name"]) == [f"'{text}" for text in FORMULAS] + PLAIN
    assert list(map(float, back["number"])) == list(numbers)
    assert list(frame["kind"]) == FORMULAS + PLAIN
    raw = pd.read_csv(io.StringIO(csv_text(frame, escape=False)), dtype=str, keep_default_na=False)
    assert list(raw["=name"]) == FORMULAS + PLAIN


@pytest.mark.parametrize(
    "path",
    [
        path
        for path, command in COMMANDS.items()
        if any(p.name == "output" for p in command.params) and path != ("paper",)  # which writes no csv
    ],
)
def test_every_command_that_writes_can_leave_formulas_as_they_are(path: tuple[str, ...]) -> None:
    assert "raw_csv" in {parameter.name for parameter in COMMANDS[path].params}


@pytest.mark.parametrize("command", ["rank", "outperform", "bands", "convert"])
def test_commands_escape_formulas_unless_told_otherwise(command, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table(["=1+1", "B"]).assign(task=lambda t: "@" + t["task"].str[-1]).to_csv("runs.csv", index=False)
    roles = ["--score", "loss", "--direction", "minimize", "--algorithm", "tool", "--benchmark", "task"]
    words, written = [command, "runs.csv", *roles, "--seed", "seed", "-o", "out.csv"], tmp_path / "out.csv"
    if command == "bands":
        words, written = ["bands", "runs.csv", *roles, "-o", "out"], tmp_path / "out" / "tuning-curves.csv"
    if command == "convert":
        runs = pd.DataFrame({"task": ["x", "y"], "=1+1": [0.5, 0.25], "B": [0.1, 0.2]})
        runs.to_csv("runs.csv", index=False)
        words = ["convert", "wide", "runs.csv", "--direction", "minimize", "-o", "out.csv"]
    found = CliRunner().invoke(app, words)
    assert found.exit_code == 0, found.output
    assert "--raw-csv leaves it out." in found.output
    escaped = written.read_text()
    assert "'=1+1" in escaped
    found = CliRunner().invoke(app, [*words, "--raw-csv"])
    assert "spreadsheet" not in found.output
    assert written.read_text() == escaped.replace("'=", "=").replace("'@", "@")
