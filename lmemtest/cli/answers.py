"""The commands about answers of models to items, and votes on them; missing roles are suggested and agreed to."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from lmemtest.bench.importers.register import ANSWERS, IMPORTERS
from lmemtest.cli.command import command
from lmemtest.cli.options import chosen, flags, number_or_text, numbers_by_name, options_of, values_by_metric
from lmemtest.cli.reading import (
    EVALUATE,
    export_in,
    name_of,
    policy_in,
    read_table,
    runs_of_export,
    split_failed,
    taken,
)
from lmemtest.cli.rendering import Step

if TYPE_CHECKING:
    import pandas as pd

    from lmemtest.bench.data.recognised import Recognised
    from lmemtest.core.result import Result

ANSWER_COLUMNS = options_of("ANSWERS")


def _answer_roles(arguments: SimpleNamespace) -> dict[str, Any]:
    """The arguments of `evaluate` about columns."""
    columns = arguments.model or []
    scale = {"min_score": 0.0, "max_score": 1.0} | chosen(arguments, "min_score max_score")
    return {
        "model": columns[0] if len(columns) == 1 else columns or None,
        **{name: getattr(arguments, name, None) for name in ANSWER_COLUMNS},
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
    from lmemtest.bench.data.forms import is_wide
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
    if answers is None and is_wide(table):
        raise ArgumentError(
            f"{name_of(arguments)} holds scores of methods on data sets, and no answers to items. Compare the methods: "
            f"lmemtest report {name_of(arguments)}."
        )
    if answers is None:
        raise ArgumentError(f"{message} What else this table can answer: lmemtest check {name_of(arguments)}.")
    new = [part for name, value in answers.items() if value != roles.get(name) for part in _option_of(name, value)]
    if not taken(new, arguments.yes):
        raise ArgumentError(
            f"{message} By names and structure:\n  {command_with(new)}\n--yes takes these roles without asking."
        )
    return _answer_rows(arguments, answers), answers


@command(
    "evaluate",
    "TABLE model ANSWERS min_score max_score drop_duplicates direction yes failed score_failures scale "
    "method adjust vcov alpha power WRITTEN",
    "Compare models by their answers: these items, items like these, tasks like these.",
    calls="bench.evaluation.evaluate:evaluate",
)
def evaluate(arguments: SimpleNamespace, step: Step) -> Result:
    """Say which models differ on these tasks, and which differ for tasks like these.

    Scores are 0 and 1 (solved or not) or between; items belong to tasks. The answer includes groups of models that
    cannot be distinguished, the noise of repeated attempts, and the smallest detectable difference. With -o as a
    document, table or figure.

    \b
    Example:
      lmemtest evaluate answers.csv --model model --task subject --item question --score correct
      lmemtest evaluate wide.csv --model gpt --model llama --task subject --item question
      lmemtest evaluate ratings.csv --model model --item prompt --judge judge --score rating --min 1 --max 10
      lmemtest evaluate answers.csv --model model --item id --score score --failed status --failed infra=drop
      lmemtest evaluate answers.csv --model model --task task --item id --score score --epoch epoch -o out.html
    """
    table, roles = read_answers(arguments)
    step("comparing models")
    from lmemtest.bench.evaluation.evaluate import evaluate

    options = chosen(arguments, "direction scale method adjust vcov alpha power drop_duplicates")
    which, policy = split_failed(arguments.failed)[0], policy_in(arguments)
    options |= {"score_failures": number_or_text(policy) if isinstance(policy, str) else policy}
    typed = {"failed": which[0] if len(which) == 1 else which} if which else {}
    return evaluate(table, **{"direction": "maximize", **options, **roles, **typed})


@command(
    "mcnemar",
    "TABLE model item task score drop_duplicates yes alpha WRITTEN",
    "Compare two models on one task by McNemar's exact test.",
    calls="bench.evaluation.mcnemar:mcnemar",
)
def mcnemar(arguments: SimpleNamespace, step: Step) -> Result:
    """Test exactly whether two models are right equally often: McNemar's test, with the odds.

    Scores are 0 and 1, one for each model and item. Use it if the models differ on few items; for several tasks,
    attempts, judges or graded scores use lmemtest evaluate.

    \b
    Example:
      lmemtest mcnemar answers.csv --model model --item question --score correct
      lmemtest mcnemar wide.csv --model gpt --model llama
    """
    table, roles = read_answers(arguments)
    step("comparing models")
    from lmemtest.bench.evaluation.mcnemar import mcnemar

    roles = {name: roles.get(name) for name in ("model", "item", "task", "score")}
    return mcnemar(table, **chosen(arguments, "alpha drop_duplicates"), **roles)


@command(
    "attempts",
    "TABLE model ANSWERS min_score max_score drop_duplicates yes k threshold cost adjust alpha WRITTEN",
    "Compare models by repeated attempts: pass@k, pass^k, majority of k.",
    calls="bench.evaluation.attempts:repeated_attempts",
)
def attempts(arguments: SimpleNamespace, step: Step) -> Result:
    """Estimate the success of k attempts at an item: at least one right, all of them, or most of them.

    Also: how often two attempts agree, and how many attempts are worth their cost. With -o as a document, table or
    figure.

    \b
    Example:
      lmemtest attempts answers.csv --model model --task task --item question --score correct --epoch attempt
      lmemtest attempts answers.csv --model model --item id --score passed --epoch run --k 5 --k 10 --cost item=20
    """
    table, roles = read_answers(arguments)
    step("comparing models")
    from lmemtest.bench.evaluation.attempts import repeated_attempts

    roles.pop("direction", None)  # of a log of answers, where more is better
    costs = numbers_by_name(arguments.cost, "cost") or 1.0
    return repeated_attempts(
        table, costs=costs, **chosen(arguments, "k threshold adjust alpha drop_duplicates"), **roles
    )


@command(
    "votes",
    "TABLE VOTES outcome style no_position yes adjust alpha WRITTEN",
    "Rate models by votes on pairs of their answers.",
    calls="bench.votes.votes:rate_votes",
)
def votes(arguments: SimpleNamespace, step: Step) -> Result:
    """Rate models by votes on pairs of their answers, with the ranks compatible with the votes.

    Votes of one voter or on one prompt are dependent: name their columns for valid standard errors. Missing column
    roles are guessed by names and content, and shown: on a terminal you are asked, elsewhere --yes accepts them. With
    -o as a document, table or figure.

    \b
    Example:
      lmemtest votes battles.csv --model-a model_a --model-b model_b --winner winner --voter judge --prompt question_id
      lmemtest votes battles.csv --yes -o ratings.html
      lmemtest votes votes.csv --winner preferred --outcome L=a --outcome R=b --outcome same=tie --yes
    """
    from lmemtest.bench.data.roles import battle_roles
    from lmemtest.core.caller import command_with
    from lmemtest.errors import ArgumentError

    roles = chosen(arguments, "VOTES")
    table = read_table(arguments, labels=[name for role, name in roles.items() if role != "winner"])
    if not {"model_a", "model_b", "winner"} <= set(roles):
        free = table.drop(columns=[name for name in arguments.style or () if name in table])
        new = [part for role, name in battle_roles(free, roles).items() if role not in roles
               for part in (flags(role)[0], name)]  # fmt: skip
        if new and not taken(new, arguments.yes):
            raise ArgumentError(
                f"Columns of models and winners must be given. By names and content:\n  {command_with(new)}\n--yes "
                "takes these without asking."
            )
    step("rating models")
    from lmemtest.bench.votes.votes import rate_votes

    meaning = values_by_metric(arguments.outcome or (), "--outcome")
    options = {**roles, **chosen(arguments, "adjust alpha"), "style": tuple(arguments.style or ())}
    return rate_votes(table, outcomes=meaning, position=not arguments.no_position, **options)
