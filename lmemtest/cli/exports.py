"""Files that another tool wrote, at the door of the commands: named for what they are, and read if the user agrees."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import typer

from lmemtest.cli.rendering import say, tell
from lmemtest.core.caller import shell_line

if TYPE_CHECKING:
    from pathlib import Path

    from lmemtest.bench.data.recognised import Recognised
    from lmemtest.bench.data.runs import Runs

EVALUATE = "evaluate"
NESTED = {".eval", ".json", ".jsonl", ".ndjson"}  # files that may hold more than a table
_IMPORTS = ("metric", "filter", "duplicates", "names", "objective", "study", "parameter")  # arguments of importers


def export_in(path: Path) -> Recognised | None:
    """What a json file or a log is, if it is no table of runs; nothing slow is imported for other files."""
    if not NESTED & {suffix.lower() for suffix in path.suffixes}:
        return None
    from lmemtest.bench.data.recognised import recognised_file

    return recognised_file(path)


def runs_of_export(export: Recognised, shown: str, yes: bool) -> Runs:
    """The runs of a file that another tool wrote, if the user agrees to the command that reads it."""
    from lmemtest.core.caller import on_command_line
    from lmemtest.errors import ArgumentError

    message = export.in_words(shown)
    if not export.command or export.lacking:
        raise ArgumentError(message)
    if not yes and not confirmed(message, "Read it so and go on?"):
        raise ArgumentError(f"{message}\n--yes does this and goes on without asking.")
    if yes:
        tell(message)
    with on_command_line(("lmemtest", *export.command), {name: f"--{name}" for name in (*_IMPORTS, *export.options)}):
        runs = export.runs()
    for note in runs.notes:
        say(note, err=True)
    return runs


def confirmed(message: str, question: str) -> bool:
    """Whether the user says yes to a message on a terminal; elsewhere nobody is asked."""
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    tell(message)
    return typer.confirm(question, default=True, err=True)


def taken(options: list[str], yes: bool) -> bool:
    """Whether suggested options are to be taken: by --yes, or by an answer on a terminal."""
    if yes:
        say(f"taking {shell_line(options)}", err=True)
        return True
    return confirmed(f"By names and structure of the columns:\n  {shell_line(options)}", "Take these?")


def say_if_answers(table: Any, path: Path, shown: str, score: str | None) -> None:
    """Name the command that is made for answers of models to items, if a table holds them."""
    from lmemtest.bench.data.recognised import answers_in

    found = answers_in(table, str(path), score)
    if found is not None:
        tell(found.in_words(shown))
