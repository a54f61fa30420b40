"""The command for evaluations of models by items of tasks."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from lmemtest.cli.commands import app
from lmemtest.cli.options import FILES, Direction, Errors, Json, Output, TableOptions, number, takes
from lmemtest.cli.reading import name_of, source_of
from lmemtest.cli.rendering import progress, session, write_result

_NAMES = {name: f"--{name}" for name in ("model", "item", "task", "epoch", "judge", "family", "cluster", "power")}


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
        str | None, typer.Option("--item", metavar="COLUMN", help="Questions, prompts or instances. Required.")
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
    direction: Annotated[Direction, typer.Option("--direction", help="Which scores are good.")] = Direction.maximize


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
      lmemtest evaluate answers.csv --model model --task task --item id --score score --epoch epoch -o out.html
    """
    with session(context, path="ANSWERS", **_NAMES):
        from lmemtest.errors import ArgumentError
        from lmemtest.report.files import check_report_path
        from lmemtest.words import listed

        target = None if output is None else check_report_path(output)
        columns = given.model or []
        roles: dict[str, Any] = {
            name: getattr(given, name) for name in ("item", "task", "epoch", "judge", "family", "cluster")
        }
        labels = [name for name in roles.values() if name is not None]
        table = source_of(given).read(labels=labels + columns * (len(columns) == 1))
        needed = ("model", "item") if len(columns) > 1 else ("model", "item", "score")
        missing = [f"--{name}" for name in needed if not getattr(given, name)]
        if missing:
            raise ArgumentError(
                f"{listed(missing)} must be given. Columns of {name_of(given)}: {listed(table.columns)}."
            )
        if given.where:
            from lmemtest.data.where import rows_where

            table = rows_where(table, given.where, {})
        with progress() as step:
            step("comparing models")
            from lmemtest.studies.evaluation.evaluation import evaluate

            found = evaluate(
                table,
                model=columns[0] if len(columns) == 1 else columns,
                **roles,
                score=given.score,
                direction=given.direction.value,
                adjust=adjust,
                se=se,
                alpha=alpha,
                power=power,
            )
            write_result(found, target, step, json=json)
