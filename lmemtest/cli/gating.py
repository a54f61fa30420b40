"""The command that decides whether a new version is worse than the old one, for use in continuous integration.

Its exit codes are its answer: 0 not worse, 1 worse, 2 cannot say. So what ends other commands with 1 or 2, a wrong
option, a wrong table or a failure of the program, ends this one with 3.
"""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import typer

from lmemtest.cli.command import Command, command
from lmemtest.cli.commands import app
from lmemtest.cli.options import TABLE, WRITTEN, chosen
from lmemtest.cli.reading import read_table
from lmemtest.cli.rendering import INTERRUPTED, WRONG_INPUT

if TYPE_CHECKING:
    from pathlib import Path

NO_ANSWER = 3
_UsageError: Any = typer.BadParameter.__mro__[1]  # typer has it from click, or its own copy of it


class _GateCommand(Command):
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


@command(
    app,
    "gate",
    (
        *(*TABLE, "old", "margin", "score", "direction", "benchmark", "seed", "metric", "family", "ignore", "seed_own"),
        *("tasks", "alpha", "power", "max_broken", "allow", *WRITTEN),
    ),
    "Is a new version worse than the old one?",
    calls="bench.gate.gate:gate",
    needed=("table", "old", "margin"),
    kind=_GateCommand,
    around=_no_false_answer,
)
def gate(given: SimpleNamespace, step: Callable[[str], None]) -> None:
    """Decide whether a new version is worse than the old one, on every metric, over tasks like these.

    The exit code is 0 if it is not worse by the margin or more, 1 if it is worse by more than the margin, 2 if these
    runs cannot say, and 3 if the command or a table is wrong. With -o the answer as a document for a pull request
    (.md), with all digits (.json), as a table or figure.

    \b
    Example:
      lmemtest gate new.csv old.csv --score accuracy --margin 0.01 --benchmark task --seed seed -o gate.md
      lmemtest gate new.csv old.csv --margin accuracy=0.01 --margin loss=2% --benchmark task --tasks these
    """
    from lmemtest.report.files import check_report_path

    targets = [check_report_path(path) for path in given.output or ()]
    new, old = (_read(given, path) for path in (given.table, given.old))
    step("comparing the versions")
    from lmemtest.bench.gate.gate import gate
    from lmemtest.report.results import json_of

    options = chosen(given, "benchmark seed metric alpha power max_broken")
    options |= {name: tuple(getattr(given, name) or ()) for name in ("family", "ignore", "allow")}
    options |= {name: _by_metric(getattr(given, name) or (), f"--{name}") for name in ("margin", "direction")}
    if given.tasks is not None:
        options["tasks"] = given.tasks.replace("-", " ")
    score = None if given.score is None else tuple(given.score)
    decision = gate(new, old, score=score, seed_shared=not given.seed_own, **options)
    for target in targets:
        decision.save(target, escape=not given.raw_csv)
    step("")
    typer.echo(json_of(decision) if given.json else decision.summary(), nl=not given.json)
    for target in () if given.json else targets:
        typer.echo(str(target))
    given.exit_code = decision.exit_code


def _read(given: SimpleNamespace, path: Path) -> Any:
    """One of the two tables."""
    labels = [*filter(None, (given.benchmark, given.metric)), *(given.family or ())]
    typed = SimpleNamespace(**{**vars(given), "table": path})
    return read_table(typed, labels=labels, seeds=[given.seed] if given.seed else [])


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
