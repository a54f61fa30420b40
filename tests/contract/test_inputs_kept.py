"""No command writes over what it reads, under whatever name; the commands are found, not listed."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from levels import first
from source import commands
from typer.testing import CliRunner

from lmemtest.cli import app
from lmemtest.report.files import CURVE_FILES

CONTENT = "algo,task,seed,loss\nA,t1,1,0.1\nB,t1,1,0.2\n"


def is_input(parameter: Any) -> bool:
    return parameter.name != "output" and (parameter.param_type_name == "argument" or parameter.metavar == "FILE")


WRITING = {path: command for path, command in commands() if any(p.name == "output" for p in command.params)}
CASES = [
    pytest.param(path, parameter.name, id=" ".join([*path, parameter.name]))
    for path, command in WRITING.items()
    for parameter in command.params
    if is_input(parameter)
]


def call(path: tuple[str, ...], attacked: str, target: str, output: str) -> list[str]:
    """A command whose input `attacked` is `target`; every other one that it needs is a file of its own."""
    words = list(path)
    for parameter in WRITING[path].params:
        values = [target] if parameter.name == attacked else ["other.csv"] if is_input(parameter) else ["0.1"]
        if parameter.name == attacked or parameter.required:
            words += values if parameter.param_type_name == "argument" else [parameter.opts[0], *values]
    return [*words, "-o", output]


def test_a_command_that_writes_without_reading_is_the_demo_alone() -> None:
    assert set(WRITING) - {case.values[0] for case in CASES} == {("demo",)}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "other.csv").write_text(CONTENT)
    (tmp_path / "below").mkdir()
    return tmp_path


def refused(words: list[str], kept: Path) -> str:
    """The message, and the file is as it was."""
    found = CliRunner().invoke(app, words)
    assert found.exit_code in (2, 3), found.output
    assert kept.read_text() == CONTENT
    return " ".join(found.output.split())


@pytest.mark.parametrize("links", first([False, True]))
@pytest.mark.parametrize(("path", "attacked"), CASES)
def test_no_input_is_overwritten(folder: Path, path: tuple[str, ...], attacked: str, links: bool) -> None:
    is_folder = any(parameter.metavar == "FOLDER" for parameter in WRITING[path].params if parameter.name == "output")
    name = CURVE_FILES[0] if is_folder else "runs.csv"
    kept = folder / name
    kept.write_text(CONTENT)
    os.symlink(kept, folder / "link.csv")
    os.link(kept, folder / "hard.csv")
    outputs = [".", f"below/..//../{folder.name}"] if is_folder else [name, "link.csv", "hard.csv", f"below/../{name}"]
    ways = [(outputs[0], name), (outputs[0], str(kept))]
    for output, target in [*((output, name) for output in outputs[1:]), (outputs[0], "link.csv")] if links else ways:
        message = refused(call(path, attacked, target, output), kept)
        assert "-o must not be a file that the command reads, but" in message
        assert "Choose another name." in message


@pytest.mark.parametrize("given", ["A=runs.csv", "A,t1=runs.csv", "*.csv", "**/runs.csv", "."])
def test_names_patterns_and_folders_are_inputs(folder: Path, given: str) -> None:
    kept = folder / "runs.csv"
    kept.write_text(CONTENT)
    message = refused(["convert", "optuna", given, "-o", "runs.csv"], kept)
    assert "-o must not be a file that the command reads, but 'runs.csv' is" in message


def test_standard_input_is_an_input(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = folder / "runs.csv"
    kept.write_text(CONTENT)
    with kept.open() as file:
        monkeypatch.setattr("lmemtest.cli.rendering._descriptor", file.fileno)
        message = refused(["rank", "-", "-o", "runs.csv"], kept)
    assert "'runs.csv' is an input, standard input." in message


def test_a_report_that_is_not_asked_for_is_not_written_through_a_link_to_the_runs(folder: Path) -> None:
    kept = folder / "runs.csv"
    kept.write_text(CONTENT)
    os.symlink(kept, folder / "lmemtest-report.html")
    assert "'lmemtest-report.html' is an input, 'runs.csv'." in refused(["report", "runs.csv"], kept)


def test_a_pipe_is_no_file_to_write(folder: Path) -> None:
    kept = folder / "other.csv"
    os.mkfifo(folder / "pipe.csv")
    assert "'pipe.csv' is a pipe or a device" in refused(["rank", "other.csv", "-o", "pipe.csv"], kept)


def test_other_files_of_the_folder_may_be_written(folder: Path) -> None:
    rows = [f"{a},t{t},{s},{0.1 * t + 0.01 * s * t + (a == 'B')}" for a in "AB" for t in range(6) for s in range(3)]
    (folder / "runs.csv").write_text("\n".join(["algo,task,seed,loss", *rows]))
    (folder / "rank.csv").write_text("of an earlier call")
    given = {"score": "loss", "direction": "minimize", "algorithm": "algo", "benchmark": "task", "seed": "seed"}
    roles = [word for role, name in given.items() for word in (f"--{role}", name)]
    found = CliRunner().invoke(app, ["rank", "runs.csv", *roles, "-o", "rank.csv"])
    assert found.exit_code == 0, found.output
    assert (folder / "rank.csv").read_text().startswith("algorithm,mean,")
