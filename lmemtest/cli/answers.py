"""From a file and the options to answers of models to items; what is missing is suggested and agreed to."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from lmemtest.bench.importers.register import ANSWERS, IMPORTERS
from lmemtest.cli.options import chosen, flags
from lmemtest.cli.reading import EVALUATE, export_in, name_of, read_table, runs_of_export, taken

if TYPE_CHECKING:
    import pandas as pd

    from lmemtest.bench.data.recognised import Recognised

ANSWER_COLUMNS = ("item", "task", "score", "epoch", "judge", "family", "cluster")


def _answer_roles(arguments: SimpleNamespace) -> dict[str, Any]:
    """The arguments of `evaluate` about columns."""
    columns = arguments.model or []
    scale = {"min_score": 0.0, "max_score": 1.0} | chosen(arguments, "min_score max_score")
    return {
        "model": columns[0] if len(columns) == 1 else columns or None,
        **{name: getattr(arguments, name) for name in ANSWER_COLUMNS},
        **(scale if tuple(scale.values()) != (0.0, 1.0) else {}),
    }


def _lacking(arguments: SimpleNamespace) -> list[str]:
    """The options that are needed; rows are items where each model has a column."""
    needed = ("model",) if len(arguments.model or []) > 1 else ("model", "item", "score")
    return [f"--{name}" for name in needed if not getattr(arguments, name)]


def _answer_rows(arguments: SimpleNamespace, roles: dict[str, Any]) -> pd.DataFrame:
    """The rows that are asked for."""
    labels = [roles.get(name) for name in (*ANSWER_COLUMNS, "model") if name != "score"]
    return read_table(arguments, labels=[name for name in labels if isinstance(name, str)])


def _answers_of_export(arguments: SimpleNamespace, export: Recognised) -> tuple[Any, dict[str, Any]]:
    """The answers in a file of a tool that evaluates models, if the user agrees to read it so."""
    from lmemtest.bench.data.failures import counted_kinds, has_kinds
    from lmemtest.errors import ArgumentError

    if export.tool not in IMPORTERS or IMPORTERS[export.tool].items is None:
        raise ArgumentError(export.in_words(name_of(arguments)))
    runs = runs_of_export(export, name_of(arguments), arguments.yes)
    failed = {} if runs.failed is None else {"failed": runs.failed if has_kinds(runs) else "missing"}
    if failed and not (vars(arguments).get("failed") or vars(arguments).get("score_failures")):
        kinds = f" ({counted_kinds(runs)})" * has_kinds(runs)
        here = (
            "--score-failures 0 (or drop), or --failed KIND=0 for each kind; or "
            if hasattr(arguments, "failed")
            else ""
        )
        raise ArgumentError(
            f"Some answers have no score{kinds}. Say what they count: {here}lmemtest convert {export.tool} FILE "
            "--score-failures 0, and then this with the table that it writes."
        )
    epoch = dict(zip(["epoch"], runs.ignore, strict=False))
    roles = {name: getattr(runs, role) for name, role in ANSWERS.items()}
    return runs.to_frame(), {**roles, "score": runs.score, **epoch, **failed, "direction": runs.direction}


def _option_of(name: str, value: Any) -> list[str]:
    """An argument as an option, repeated for several columns."""
    values = value if isinstance(value, list) else [value]
    return [part for one in values for part in (flags(name)[0], f"{one:g}" if isinstance(one, float) else str(one))]


def read_answers(arguments: SimpleNamespace) -> tuple[Any, dict[str, Any]]:
    """The table and the arguments of `evaluate`; those that are missing are suggested and agreed to."""
    from lmemtest.bench.data.roles import answer_roles
    from lmemtest.core.caller import command_with
    from lmemtest.core.words import listed
    from lmemtest.errors import ArgumentError

    roles = _answer_roles(arguments)
    export = export_in(arguments.table) if _lacking(arguments) else None
    if export is None:
        table = _answer_rows(arguments, roles)
        if not _lacking(arguments):
            return table, roles
        from lmemtest.bench.data.recognised import recognised

        export = recognised(table, str(arguments.table))
    if export is not None and export.tool != EVALUATE:
        return _answers_of_export(arguments, export)
    message = f"{listed(_lacking(arguments))} must be given. Columns of {name_of(arguments)}: {listed(table.columns)}."
    answers = answer_roles(table, roles)
    if answers is None:
        raise ArgumentError(f"{message} What else this table can answer: lmemtest check {name_of(arguments)}.")
    new = [part for name, value in answers.items() if value != roles.get(name) for part in _option_of(name, value)]
    if not taken(new, arguments.yes):
        raise ArgumentError(
            f"{message} By names and structure:\n  {command_with(new)}\n--yes takes these roles without asking."
        )
    return _answer_rows(arguments, answers), answers
