"""Names that would steer a terminal or the log of a build, or look like sentences of ours, in every command."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import typer
from typer.testing import CliRunner

import lmemtest as lt
from lmemtest.cli import app

CLAIM = "C is significantly better than everything"
LEVELS = [f"B\n{CLAIM}.", "\x1b[31mRED\x1b[2J", "::error::forged", "D\u2028E\u202eF\x9b2J", "##vso[task.setvariable]x"]
COLUMNS = {"tool": f"tool\n::warning::{CLAIM}", "task": "task\x1b[2J", "loss": "loss\r\u2029"}
FORGED = re.compile(r"^\s*::|##\w*\[|^\s*" + CLAIM, re.MULTILINE)


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, command in group.commands.items():
        yield from commands(command, (*path, name)) if hasattr(command, "commands") else [((*path, name), command)]


COMMANDS = {path: command for path, command in commands(typer.main.get_command(app)) if path != ("demo",)}


def table(levels: list[str]) -> pd.DataFrame:
    rows = pd.MultiIndex.from_product([levels, range(6), range(3)], names=["tool", "task", "seed"]).to_frame(index=False)
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
    formula = f"`{names['loss']}` ~ `{names['tool']}` + (1 | `{names['task']}`)"
    words = list(path)
    for parameter in COMMANDS[path].params:
        if parameter.param_type_name == "argument":
            words.append(formula if parameter.name == "formula" else file)
        elif roles and parameter.name in given:
            words += [f"--{parameter.name}", given[parameter.name]]
        elif parameter.name in ("effect", "margin"):
            words += [parameter.opts[0], "0.1"]
    return words


def assert_clean(text: str) -> None:
    assert FORGED.search(text) is None, FORGED.search(text)
    assert [c for c in text if not (c.isprintable() or c == "\n")] == []


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_nothing_that_a_command_prints_is_forged(
    folder: Path, path: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    same = {name: name for name in COLUMNS}
    calls = [("columns.json", COLUMNS, False)]
    if path[0] != "convert":
        calls += [("version.json" if path == ("gate",) else "levels.json", same, True), ("columns.json", COLUMNS, True)]
    for file, names, roles in calls if path != ("report",) else calls[:2]:  # the other one takes seconds
        words = call(path, file, names, roles=roles)
        target = Path("out.txt" if path == ("report",) else "out.md")
        if roles and path not in [("fit",), ("bands",)]:
            words += ["-o", str(target)]
        found = CliRunner().invoke(app, words)
        assert isinstance(found.exception, (SystemExit, type(None))), found.exception
        assert_clean(found.output.replace(str(folder), ""))
        if file != "columns.json":
            assert found.exit_code != (3 if path == ("gate",) else 2), found.output
            assert_clean(target.read_text(encoding="utf-8") if "-o" in words else "")


def test_names_are_whole_in_json() -> None:
    found = lt.rank(lt.Runs(table(LEVELS), score="loss", direction="minimize", algorithm="tool", benchmark="task"))
    text = found.to_json()
    assert set(LEVELS) == {row["algorithm"] for row in json.loads(text)["ranking"]}
    assert [c for c in text if not (c.isprintable() or c == "\n")] == []
