"""The command for evaluations of models by items of tasks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lmemtest.cli.commands import app
from lmemtest.cli.exports import EVALUATE, export_in, runs_of_export, taken
from lmemtest.cli.options import FILES, Direction, Errors, Json, Kept, Output, RawCsv, TableOptions, number, takes
from lmemtest.cli.reading import name_of, source_of
from lmemtest.cli.rendering import progress, session, write_result

if TYPE_CHECKING:
    import pandas as pd

    from lmemtest.bench.data.recognised import Recognised

_NAMES = {name: f"--{name}" for name in ("model", "item", "task", "epoch", "judge", "family", "cluster", "power")}
_NAMES |= {"min_score": "--min", "max_score": "--max"}


@dataclass(frozen=True, kw_only=True)
class EvaluationOptions(TableOptions):
    """A table of answers and the roles of its columns."""

    table: Annotated[Path, typer.Argument(metavar="ANSWERS", help=f"Table with a row per answer: {FILES}")]
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            metavar="COLUMN",
            help="Column of the models; or repeated, a column of scores for each. Required.",
        ),
    ] = None
    item: Annotated[
        str | None,
        typer.Option("--item", metavar="COLUMN", help="Questions, prompts or instances; rows, if models have columns."),
    ] = None
    task: Annotated[
        str | None, typer.Option("--task", metavar="COLUMN", help="Tasks that the items belong to; one without it.")
    ] = None
    score: Annotated[str | None, typer.Option("--score", metavar="COLUMN", help="Scores of 0 and 1, or between.")] = (
        None
    )
    epoch: Annotated[
        str | None, typer.Option("--epoch", metavar="COLUMN", help="Numbers of repeated attempts at an item.")
    ] = None
    judge: Annotated[str | None, typer.Option("--judge", metavar="COLUMN", help="Who scored the answer.")] = None
    family: Annotated[
        str | None, typer.Option("--family", metavar="COLUMN", help="Suites that the tasks belong to.")
    ] = None
    cluster: Annotated[
        str | None,
        typer.Option("--cluster", metavar="COLUMN", help="Passages or conversations that items of a task share."),
    ] = None
    min_score: Annotated[
        float, typer.Option("--min", metavar="NUMBER", parser=number, help="Lowest score of the scale, such as 1.")
    ] = 0.0
    max_score: Annotated[
        float, typer.Option("--max", metavar="NUMBER", parser=number, help="Highest score of the scale, such as 10.")
    ] = 1.0
    drop_duplicates: Annotated[
        Kept | None,
        typer.Option("--drop-duplicates", help="Keep one row of each answer: the first, the last, or the mean score."),
    ] = None
    direction: Direction = "maximize"
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Take the roles that names and structure suggest.")] = False

    def given(self) -> dict[str, Any]:
        """The arguments of `evaluate` about columns."""
        columns = self.model or []
        roles = {name: getattr(self, name) for name in ("item", "task", "score", "epoch", "judge", "family", "cluster")}
        scale = {"min_score": self.min_score, "max_score": self.max_score} if self.has_scale else {}
        return {"model": columns[0] if len(columns) == 1 else columns or None, **roles, **scale}

    @property
    def has_scale(self) -> bool:
        """Whether the ends of the scores were given."""
        return (self.min_score, self.max_score) != (0.0, 1.0)

    @property
    def lacking(self) -> list[str]:
        """The options that are needed; rows are items where each model has a column."""
        needed = ("model",) if len(self.model or []) > 1 else ("model", "item", "score")
        return [f"--{name}" for name in needed if not getattr(self, name)]


def _rows(given: EvaluationOptions, roles: dict[str, Any]) -> pd.DataFrame:
    """The rows that are asked for."""
    names = (
        "item",
        "task",
        "epoch",
        "judge",
        "family",
        "cluster",
        *(["model"] if isinstance(roles["model"], str) else []),
    )
    table = source_of(given).read(labels=[roles[name] for name in names if roles.get(name) is not None])
    if not given.where:
        return table
    from lmemtest.bench.data.where import rows_where

    return rows_where(table, given.where, {})


def _of_export(given: EvaluationOptions, export: Recognised) -> tuple[Any, dict[str, Any]]:
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
    option = {"min_score": "--min", "max_score": "--max"}.get(name, f"--{name}")
    values = value if isinstance(value, list) else [value]
    return [part for one in values for part in (option, f"{one:g}" if isinstance(one, float) else str(one))]


def _read(given: EvaluationOptions) -> tuple[Any, dict[str, Any]]:
    """The table and the arguments of `evaluate`; those that are missing are suggested and agreed to."""
    from lmemtest.bench.data.answer_roles import answer_roles
    from lmemtest.core.caller import command_with
    from lmemtest.core.words import listed
    from lmemtest.errors import ArgumentError

    roles = given.given()
    export = export_in(given.table) if given.lacking else None
    if export is None:
        table = _rows(given, roles)
        if not given.lacking:
            return table, roles
        from lmemtest.bench.data.recognised import recognised

        export = recognised(table, str(given.table))
    if export is not None and export.tool != EVALUATE:
        return _of_export(given, export)
    message = f"{listed(given.lacking)} must be given. Columns of {name_of(given)}: {listed(table.columns)}."
    found = answer_roles(table, roles)
    if found is None:
        raise ArgumentError(message)
    new = [part for name, value in found.items() if value != roles.get(name) for part in _option_of(name, value)]
    if not taken(new, given.yes):
        raise ArgumentError(
            f"{message} By names and structure:\n  {command_with(new)}\n--yes takes these roles without asking."
        )
    return _rows(given, found), found


@app.command(name="evaluate", short_help="Compare models by the items of tasks: these tasks, and tasks like these.")
@takes(EvaluationOptions)
def evaluate_models(
    context: typer.Context,
    given: EvaluationOptions,
    adjust: Annotated[
        str | None,
        typer.Option("--adjust", metavar="METHOD", help="For the number of pairs: stepdown, tukey, holm, ..."),
    ] = None,
    se: Errors = None,
    alpha: Annotated[
        float,
        typer.Option("--alpha", metavar="NUMBER", parser=number, help="Significance level for all pairs together."),
    ] = 0.05,
    power: Annotated[
        float,
        typer.Option("--power", metavar="NUMBER", parser=number, help="For the smallest difference that is found."),
    ] = 0.8,
    json: Json = False,
    raw_csv: RawCsv = False,
    output: Output = None,
) -> None:
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
    with session(context, path="ANSWERS", **_NAMES):
        from lmemtest.report.files import check_report_path

        target = None if output is None else check_report_path(output)
        table, roles = _read(given)
        with progress() as step:
            step("comparing models")
            from lmemtest.bench.evaluation.evaluation import evaluate

            found = evaluate(
                table,
                **{"direction": given.direction or "maximize", **roles},
                adjust=adjust,
                se=se,
                alpha=alpha,
                power=power,
                drop_duplicates=given.drop_duplicates.value if given.drop_duplicates else None,
            )
            write_result(found, target, step, json=json, raw_csv=raw_csv)
