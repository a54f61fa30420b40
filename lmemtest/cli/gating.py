"""The command that decides whether a new version is worse than the old one, for use in continuous integration.

Its exit codes are its answer: 0 not worse, 1 worse, 2 cannot say. So what ends other commands with 1 or 2, a wrong
option, a wrong table or a failure of the program, ends this one with 3.
"""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

from lmemtest.cli.commands import app
from lmemtest.cli.options import FILES, Json, RawCsv, TableOptions, number, takes
from lmemtest.cli.reading import source_of
from lmemtest.cli.rendering import INTERRUPTED, WRONG_INPUT, progress, session

NO_ANSWER = 3
_UsageError: Any = typer.BadParameter.__mro__[1]  # typer has it from click, or its own copy of it
_NAMES = {name: f"--{name}" for name in ("margin", "metric", "tasks", "allow", "power")} | {
    "max_broken": "--max-broken",
    "new": "NEW",
    "old": "OLD",
}


class Tasks(str, Enum):
    """What the claim is about."""

    like_these = "like-these"
    these = "these"


class _GateCommand(TyperCommand):
    """A command whose errors of usage have an exit code of their own."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        try:
            return super().parse_args(ctx, args)
        except _UsageError as error:
            error.exit_code = NO_ANSWER
            raise


@contextmanager
def _no_false_answer() -> Iterator[None]:
    """Whatever goes wrong is no answer."""
    try:
        yield
    except typer.Exit as stop:
        raise typer.Exit(NO_ANSWER if stop.exit_code == WRONG_INPUT else stop.exit_code) from None
    except _UsageError as error:
        error.exit_code = NO_ANSWER
        raise
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except Exception:
        traceback.print_exc()
        raise typer.Exit(NO_ANSWER) from None


@dataclass(frozen=True, kw_only=True)
class GateOptions(TableOptions):
    """Two tables of runs, and the roles of their columns."""

    table: Annotated[Path, typer.Argument(metavar="NEW", help=f"Runs of the new version: {FILES}")]
    old: Annotated[Path, typer.Argument(metavar="OLD", help="Runs of the old version, with columns of the same names.")]
    margin: Annotated[
        list[str],
        typer.Option(
            "--margin",
            metavar="[NAME=]NUMBER",
            help="Loss that is not acceptable: 0.01, 1%, acc=0.01; may be repeated.",
        ),
    ]
    score: Annotated[list[str] | None, typer.Option("--score", metavar="COLUMN", help="A metric; may be repeated.")] = (
        None
    )
    direction: Annotated[
        list[str] | None,
        typer.Option("--direction", metavar="[NAME=]END", help="minimize or maximize, if names do not say it."),
    ] = None
    benchmark: Annotated[str | None, typer.Option("--benchmark", metavar="COLUMN", help="The tasks. Required.")] = None
    seed: Annotated[
        str | None, typer.Option("--seed", metavar="COLUMN", help="What tells runs, or items, of a task apart.")
    ] = None
    metric: Annotated[
        str | None,
        typer.Option("--metric", metavar="COLUMN", help="Names of metrics, if each has rows of its own."),
    ] = None
    family: Annotated[
        list[str] | None, typer.Option("--family", metavar="COLUMN", help="Groups of tasks, such as suites.")
    ] = None
    ignore: Annotated[
        list[str] | None,
        typer.Option("--ignore", metavar="COLUMN", help="Left without a role on purpose; may be repeated."),
    ] = None
    seed_own: Annotated[
        bool, typer.Option("--seed-own", help="Seeds only number the runs: seed 1 is another one on each task.")
    ] = False

    def roles(self) -> dict[str, Any]:
        """The arguments of `gate`."""
        single = {name: getattr(self, name) for name in ("benchmark", "seed", "metric")}
        several = {name: tuple(getattr(self, name) or ()) for name in ("score", "family", "ignore")}
        by_metric = {name: _by_metric(getattr(self, name) or (), f"--{name}") for name in ("margin", "direction")}
        return {**single, **several, **by_metric, "score": several["score"] or None, "seed_shared": not self.seed_own}

    def read(self, path: Path) -> Any:
        """One of the two tables."""
        labels = [*filter(None, (self.benchmark, self.metric)), *(self.family or ())]
        table = source_of(replace(self, table=path)).read(labels=labels, seeds=[self.seed] if self.seed else [])
        if not self.where:
            return table
        from lmemtest.bench.data.where import rows_where

        return rows_where(table, self.where, {})


def _by_metric(given: list[str] | tuple[()], option: str) -> dict[str, str] | None:
    """What ``NAME=VALUE`` says by name, and what ``VALUE`` says of every other metric."""
    found: dict[str, str] = {}
    for text in given:
        name, sign, value = text.rpartition("=")
        key = name if sign else "*"
        if key in found:
            what = f"{name!r} has" if sign else "all metrics have"
            raise typer.BadParameter(f"{what} two values. Leave one of them out.", param_hint=option)
        found[key] = value
    return found or None


@app.command(name="gate", cls=_GateCommand, short_help="Is a new version worse than the old one?")
@takes(GateOptions)
def gate_versions(
    context: typer.Context,
    given: GateOptions,
    tasks: Annotated[
        Tasks, typer.Option("--tasks", help="like-these: they are a sample; these: no others matter.")
    ] = Tasks.like_these,
    alpha: Annotated[
        float, typer.Option("--alpha", metavar="NUMBER", parser=number, help="Largest probability of a wrong answer.")
    ] = 0.05,
    power: Annotated[
        float,
        typer.Option("--power", metavar="NUMBER", parser=number, help="For the number of tasks that would settle it."),
    ] = 0.8,
    max_broken: Annotated[
        float | None,
        typer.Option(
            "--max-broken",
            metavar="SHARE",
            parser=number,
            help="Also show that no more tasks like these are broken: 0.1 takes 29 tasks.",
        ),
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option(
            "--allow", metavar="WHAT", help="missing: decide without runs that NEW lacks; identical: pass a copy."
        ),
    ] = None,
    json: Json = False,
    raw_csv: RawCsv = False,
    output: Annotated[
        list[Path] | None,
        typer.Option("-o", "--output", metavar="FILE", help="To write: .md, .json, .html, ...; may be repeated."),
    ] = None,
) -> None:
    """Decide whether a new version is worse than the old one, on every metric, over tasks like these.

    The exit code is 0 if it is not worse by the margin or more, 1 if it is worse by more than the margin, 2 if these
    runs cannot say, and 3 if the command or a table is wrong. With -o the answer as a document for a pull request
    (.md), with all digits (.json), as a table or figure.

    \b
    Example:
      lmemtest gate new.csv old.csv --score accuracy --margin 0.01 --benchmark task --seed seed -o gate.md
      lmemtest gate new.csv old.csv --margin accuracy=0.01 --margin loss=2% --benchmark task --tasks these
    """
    with _no_false_answer(), session(context, **_NAMES):
        from lmemtest.report.files import check_report_path

        targets = [check_report_path(path) for path in output or ()]
        roles, (new, old) = given.roles(), (given.read(path) for path in (given.table, given.old))
        with progress() as step:
            step("comparing the versions")
            from lmemtest.bench.gate.gate import gate
            from lmemtest.report.results import json_of

            population = tasks.value.replace("-", " ")
            found = gate(
                new,
                old,
                **roles,
                tasks=population,
                alpha=alpha,
                power=power,
                max_broken=max_broken,
                allow=tuple(allow or ()),
            )
            for target in targets:
                found.save(target, escape=not raw_csv)
            step("")
        typer.echo(json_of(found) if json else found.summary(), nl=not json)
        for target in () if json else targets:
            typer.echo(str(target))
    raise typer.Exit(found.exit_code)
