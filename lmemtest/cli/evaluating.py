"""The command for evaluations of models by items of tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lmemtest.cli.command import command
from lmemtest.cli.commands import app
from lmemtest.cli.exports import EVALUATE, export_in, runs_of_export, taken
from lmemtest.cli.options import TABLE, WRITTEN, chosen, flags
from lmemtest.cli.reading import name_of, read_table

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import SimpleNamespace

    import pandas as pd

    from lmemtest.bench.data.recognised import Recognised
    from lmemtest.core.result import Result

COLUMNS = ("item", "task", "score", "epoch", "judge", "family", "cluster")


@command(
    app,
    "evaluate",
    (
        *(*TABLE, "model", *COLUMNS, "min_score", "max_score", "drop_duplicates", "direction", "yes"),
        *("adjust", "se", "alpha", "power", *WRITTEN),
    ),
    "Compare models by the items of tasks: these tasks, and tasks like these.",
    calls="bench.evaluation.evaluation:evaluate",
)
def evaluate(given: SimpleNamespace, step: Callable[[str], None]) -> Result:
    """Say which models differ on these tasks, and which differ for tasks like these.

    Scores are 0 and 1 (solved or not) or between; items belong to tasks. Also: models that cannot be distinguished,
    what repeated attempts alone change, and the smallest difference that such an evaluation finds. With -o as a
    document, table or figure.

    \b
    Example:
      lmemtest evaluate answers.csv --model model --task subject --item question --score correct
      lmemtest evaluate wide.csv --model gpt --model llama --task subject --item question
      lmemtest evaluate ratings.csv --model model --item prompt --judge judge --score rating --min 1 --max 10
      lmemtest evaluate answers.csv --model model --task task --item id --score score --epoch epoch -o out.html
    """
    table, roles = _read(given)
    step("comparing models")
    from lmemtest.bench.evaluation.evaluation import evaluate

    options = chosen(given, "direction adjust se alpha power drop_duplicates")
    return evaluate(table, **{"direction": "maximize", **options, **roles})


def _roles(given: SimpleNamespace) -> dict[str, Any]:
    """The arguments of `evaluate` about columns."""
    columns = given.model or []
    scale = {"min_score": 0.0, "max_score": 1.0} | chosen(given, "min_score max_score")
    return {
        "model": columns[0] if len(columns) == 1 else columns or None,
        **{name: getattr(given, name) for name in COLUMNS},
        **(scale if tuple(scale.values()) != (0.0, 1.0) else {}),
    }


def _lacking(given: SimpleNamespace) -> list[str]:
    """The options that are needed; rows are items where each model has a column."""
    needed = ("model",) if len(given.model or []) > 1 else ("model", "item", "score")
    return [f"--{name}" for name in needed if not getattr(given, name)]


def _rows(given: SimpleNamespace, roles: dict[str, Any]) -> pd.DataFrame:
    """The rows that are asked for."""
    labels = [roles.get(name) for name in (*COLUMNS, "model") if name != "score"]
    return read_table(given, labels=[name for name in labels if isinstance(name, str)])


def _of_export(given: SimpleNamespace, export: Recognised) -> tuple[Any, dict[str, Any]]:
    """The answers in a file of a tool that evaluates models, if the user agrees to read it so."""
    from lmemtest.cli.converting import ANSWERS, TOOLS
    from lmemtest.errors import ArgumentError

    if export.tool not in TOOLS or TOOLS[export.tool].items is None:
        raise ArgumentError(export.in_words(name_of(given)))
    runs = runs_of_export(export, name_of(given), given.yes)
    if runs.failed is not None:
        raise ArgumentError("Answers without a score: convert them first, --score-failures 0 counts them as wrong.")
    epoch = dict(zip(["epoch"], runs.ignore, strict=False))
    roles = {name: getattr(runs, role) for name, role in ANSWERS.items()}
    return runs.to_frame(), {**roles, "score": runs.score, **epoch, "direction": runs.direction}


def _option_of(name: str, value: Any) -> list[str]:
    """An argument as an option, repeated for several columns."""
    values = value if isinstance(value, list) else [value]
    return [part for one in values for part in (flags(name)[0], f"{one:g}" if isinstance(one, float) else str(one))]


def _read(given: SimpleNamespace) -> tuple[Any, dict[str, Any]]:
    """The table and the arguments of `evaluate`; those that are missing are suggested and agreed to."""
    from lmemtest.bench.data.roles import answer_roles
    from lmemtest.core.caller import command_with
    from lmemtest.core.words import listed
    from lmemtest.errors import ArgumentError

    roles = _roles(given)
    export = export_in(given.table) if _lacking(given) else None
    if export is None:
        table = _rows(given, roles)
        if not _lacking(given):
            return table, roles
        from lmemtest.bench.data.recognised import recognised

        export = recognised(table, str(given.table))
    if export is not None and export.tool != EVALUATE:
        return _of_export(given, export)
    message = f"{listed(_lacking(given))} must be given. Columns of {name_of(given)}: {listed(table.columns)}."
    found = answer_roles(table, roles)
    if found is None:
        raise ArgumentError(message)
    new = [part for name, value in found.items() if value != roles.get(name) for part in _option_of(name, value)]
    if not taken(new, given.yes):
        raise ArgumentError(
            f"{message} By names and structure:\n  {command_with(new)}\n--yes takes these roles without asking."
        )
    return _rows(given, found), found
