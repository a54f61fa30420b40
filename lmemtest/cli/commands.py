"""The command line: the commands of the other modules, and what is printed of the package itself."""

from __future__ import annotations

import copy
import gc
import sys
from typing import Annotated

import typer

from lmemtest.cli import analysing, answers, planning  # noqa: F401 - their commands, in the order of the help
from lmemtest.cli.command import app
from lmemtest.cli.converting import converter
from lmemtest.cli.rendering import INTERRUPTED

app.add_typer(converter, short_help="Convert the output of another tool to a table of runs.")


def main() -> None:
    """Run the command line; the entry point of the console script."""
    gc.set_threshold(50_000, 20, 100)  # a command ends soon: looking for garbage took a tenth of the time of a report
    try:
        _typed()(prog_name="lmemtest")
    except KeyboardInterrupt:  # before a command has begun
        raise SystemExit(INTERRUPTED) from None


def _typed() -> typer.Typer:
    """The command line with the command that was typed alone, if it is one: to build all takes 30 ms at each start."""
    commands = [known for known in app.registered_commands if [known.name] == sys.argv[1:2]]
    if not commands:
        return app
    alone = copy.copy(app)
    alone.registered_commands, alone.registered_groups = commands, []
    return alone


def _version(context: typer.Context, wanted: bool) -> None:
    """Print versions; `--verbose`, which is processed before, adds what numbers depend on."""
    if not wanted:
        return
    import importlib

    typer.echo(f"lmemtest {importlib.import_module('lmemtest').__version__}")
    if context.params.get("verbose"):
        from lmemtest.core.environment import environment

        for name, value in list(environment().items())[1:]:
            typer.echo(f"{name:<14} {value}")
    raise typer.Exit


@app.callback()
def _root(
    verbose: Annotated[
        bool, typer.Option("--verbose", is_eager=True, help="With --version: also packages, BLAS and processors.")
    ] = False,
    _: Annotated[bool, typer.Option("--version", callback=_version, help="Print the version and exit.")] = False,
) -> None:
    """Which of these algorithms is really better, on which benchmarks, and how certain is that?

    Mixed-effects significance testing of benchmark runs: from a table to a ranking and a report.

    \b
    Example:
      lmemtest demo
      lmemtest report runs.csv --score loss --direction minimize --algorithm tool --benchmark task -o out.html
    """
    if verbose:
        raise typer.BadParameter("--verbose needs --version: lmemtest --version --verbose.")
