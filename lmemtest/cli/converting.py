"""The commands that make tables of runs of what other tools write, one for each row of the register of importers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from lmemtest.bench.importers.register import IMPORTERS, Importer
from lmemtest.cli.command import command
from lmemtest.cli.options import IN_PYTHON, POLICIES
from lmemtest.cli.reading import without_failures
from lmemtest.cli.rendering import Step, say
from lmemtest.core.caller import shell_line
from lmemtest.core.environment import extra_package

if TYPE_CHECKING:
    from types import SimpleNamespace

    from lmemtest.bench.data.runs import Runs

WRITTEN = Path("lmemtest-runs.csv")
SUFFIXES = (".csv", ".parquet")


converter = typer.Typer(
    name="convert",
    help="Convert the output of another tool to a table of runs.\n\n"
    "The interpretation of its columns is printed, and then the command that compares the runs.",
    no_args_is_help=True,
    rich_markup_mode=None,
)


def _add(name: str, tool: Importer) -> None:
    """The command of a tool."""

    def convert(arguments: SimpleNamespace, step: Step) -> None:
        from lmemtest.report.files import check_report_path, write_atomically

        output = arguments.output or WRITTEN
        target = check_report_path(output, SUFFIXES)
        if target.suffix.lower() == ".parquet":
            extra_package("pyarrow", extra="parquet", purpose=f"write {output}", otherwise="Or write .csv.")
        step("reading")
        runs = _imported(name, tool, arguments)
        runs = runs if arguments.score_failures is None else without_failures(arguments.score_failures, runs)
        step("writing")
        write_atomically(target, _content(runs, target.suffix.lower(), arguments.raw_csv))
        step("")
        for line in (*runs.notes, *_next(runs, output, tool)):
            say(line)

    named = " A file may be given by name: NAME=FILE, or NAME,NAME=FILE." if tool.by_name else ""
    convert.__doc__ = (
        f"Make a table of runs of {tool.reads}.\n\n"
        f"The interpretation of its columns is printed, and then the command that compares the runs.{named}"
    )
    options = f"files {' '.join(map(option_of, tool.options))} score_failures raw_csv output"
    command(name, options, f"{tool.reads}.", needed=("files",), group=converter)(convert)


def option_of(argument: str) -> str:
    """The option of an argument of an importer."""
    return "single_trials" if argument == "best_so_far" else IN_PYTHON.get(argument, argument)


for _name, _tool in IMPORTERS.items():
    _add(_name, _tool)


def _imported(name: str, tool: Importer, arguments: SimpleNamespace) -> Runs:
    from lmemtest.bench import importers

    typed = {argument: getattr(arguments, option_of(argument)) for argument in tool.options}
    options = {argument: value for argument, value in typed.items() if value is not None}
    if "best_so_far" in options:
        options["best_so_far"] = not options["best_so_far"]  # --single-trials
    runs: Runs = getattr(importers, name)(
        _by_name(arguments.files) if tool.by_name else _alone(arguments.files), **options
    )
    return runs


def _by_name(files: list[str]) -> Any:
    """The files by name, if they have names."""
    from lmemtest.errors import ArgumentError

    by_name: dict[Any, list[str]] = {}
    for text in files:
        name, sign, file = text.partition("=")
        if sign and name and "/" not in name and not Path(text).exists():
            by_name.setdefault(tuple(name.split(",")), []).append(file)
        else:
            by_name.setdefault((), []).append(text)
    if () not in by_name:
        return {names if len(names) > 1 else names[0]: _alone(parts) for names, parts in by_name.items()}
    if len(by_name) > 1:
        raise ArgumentError(f"FILE must have a name for all or none, but {by_name[()][0]!r} has none. Give NAME=FILE.")
    return _alone(by_name[()])


def _alone(files: list[str]) -> Any:
    return files[0] if len(files) == 1 else files


def _content(runs: Runs, suffix: str, raw_csv: bool) -> str | bytes:
    table = runs.to_frame()
    if suffix == ".csv":
        from lmemtest.core.result import csv_text

        return csv_text(table, escape=not raw_csv)
    import io

    buffer = io.BytesIO()
    table.to_parquet(buffer, index=False)
    return buffer.getvalue()


def _next(runs: Runs, output: Path, tool: Importer) -> list[str]:
    """What to call with the table; what failed runs count is a choice that the command must hold."""
    from lmemtest.bench.data.failures import has_kinds
    from lmemtest.bench.data.roles import command_of

    roles = runs.roles()
    policy = ["--score-failures", "worst"] if runs.failed is not None else []
    commands = [["lmemtest", "report", str(output), *command_of(roles), *policy]]
    line = [f"{runs.n_rows:,} rows in {output}. Compare them:"]
    if policy:
        each = " --failed KIND=POLICY gives each kind its own." * has_kinds(runs)
        line.append(f"({POLICIES} worst is one choice.{each})")
    if tool.items is not None:
        taken = {option: str(roles[role]) for option, role in tool.items.items() if roles.get(role)}
        taken |= {"score": runs.score, "direction": str(runs.direction)}
        taken |= dict(zip(["epoch"], runs.ignore, strict=False))
        taken |= {"failed": str(runs.failed) if has_kinds(runs) else "missing"} if policy else {}
        options = [part for option, value in taken.items() for part in (f"--{option}", value)]
        commands.insert(0, ["lmemtest", "evaluate", str(output), *options, *policy])
    return [*line, *(f"  {shell_line(command)}" for command in commands)]
