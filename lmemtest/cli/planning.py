"""The commands before and while runs are made: looks at them, a gate for new versions, plans, sources of variation."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import typer

from lmemtest.cli.command import command
from lmemtest.cli.options import ROLES, RUNS, TABLE, absent, chosen, numbers_by_name, values_by_metric
from lmemtest.cli.reading import read_runs, read_table
from lmemtest.cli.rendering import Step

if TYPE_CHECKING:
    from lmemtest.bench.variation.variance_sources import VarianceSources
    from lmemtest.core.result import Result

NO_ANSWER = 3  # of `gate`, whose exit codes 0, 1 and 2 are answers: whatever goes wrong must be none of them


@command(
    "monitor",
    "RUNS maximum looks unit goal control method spending alpha futility ledger extension WRITTEN",
    "May I look already? Stop, go on, or cannot be decided.",
    calls="bench.looks.monitor:monitor",
)
def monitor(arguments: SimpleNamespace, step: Step) -> Result:
    """Look at a study while runs come in, at one level for all looks: stop, go on, or cannot be decided.

    The number of benchmarks at the end is planned before the first look. Each look is added to the ledger, which also
    records the plan, and is never rewritten. With --extension the table holds more than was planned, and the new data
    are tested at the level that the looks left.

    \b
    Example:
      lmemtest monitor runs.csv --yes --maximum 40 --looks 5 --ledger looks.jsonl
      lmemtest monitor runs.csv --yes --method evalue --ledger looks.jsonl -o looks.html
    """
    from lmemtest.bench.looks.monitor import extend
    from lmemtest.bench.looks.monitor import monitor as look_at

    if arguments.extension and arguments.ledger is None:
        raise typer.BadParameter("--extension needs --ledger, which has the looks so far.")
    runs = read_runs(arguments, settle=True)
    step("looking")
    if arguments.extension:
        return extend(runs, arguments.ledger)
    looks = arguments.looks if arguments.looks is None or len(arguments.looks) > 1 else arguments.looks[0]
    return look_at(
        runs, looks=looks, **chosen(arguments, "maximum unit goal control method spending alpha futility ledger")
    )


@command(
    "gate",
    "TABLE old margin policy score direction benchmark seed metric family ignore seed_own tasks alpha power "
    "max_broken allow looks maximum spending method ledger markdown WRITTEN",
    "Is a new version worse than the old one?",
    calls="bench.gate.gate:gate",
    needed=("table", "old"),
    wrong=NO_ANSWER,
)
def gate(arguments: SimpleNamespace, step: Step) -> None:
    """Decide whether a new version is worse than the old one, on every metric, over tasks like these.

    The exit code is 0 if it is not worse by the margin or more, 1 if it is worse by more than the margin, 2 if these
    runs cannot say, and 3 if the command or a table is wrong. With -o the answer as a document for a pull request
    (.md), with all digits (.json), as a table or figure.

    With --policy a TOML file has the rules of each metric, in tiers: critical, supporting, advisory. Then 0 is pass,
    1 fail and 2 insufficient.

    \b
    Example:
      lmemtest gate new.csv old.csv --policy gate.toml --benchmark task --seed seed --markdown gate.md
      lmemtest gate new.csv old.csv --score accuracy --margin 0.01 --benchmark task --seed seed -o gate.md
      lmemtest gate new.csv old.csv --margin accuracy=0.01 --margin loss=2% --benchmark task --tasks these
    """
    from lmemtest.report.files import check_report_path

    targets = [check_report_path(path) for path in arguments.output or ()]
    targets += [check_report_path(path, (".md",)) for path in (arguments.markdown,) if path is not None]
    new, old = (_read_version(arguments, path) for path in (arguments.table, arguments.old))
    step("comparing the versions")
    from lmemtest.bench.gate.gate import gate
    from lmemtest.report.files import json_of

    names = "benchmark seed metric alpha power max_broken policy allow looks maximum spending method ledger"
    options = chosen(arguments, names)
    options |= {name: tuple(getattr(arguments, name) or ()) for name in ("family", "ignore")}
    options |= {name: values_by_metric(getattr(arguments, name) or (), f"--{name}") for name in ("margin", "direction")}
    if arguments.tasks is not None:
        options["tasks"] = arguments.tasks.replace("-", " ")
    score = None if arguments.score is None else tuple(arguments.score)
    decision = gate(new, old, score=score, seed_shared=not arguments.seed_own, **options)
    for target in targets:
        decision.save(target, escape=not arguments.raw_csv)
    step("")
    typer.echo(json_of(decision) if arguments.json else decision.summary(), nl=not arguments.json)
    for target in () if arguments.json else targets:
        typer.echo(str(target))
    arguments.exit_code = decision.exit_code


def _read_version(arguments: SimpleNamespace, path: Path) -> Any:
    """One of the two tables."""
    labels = [*filter(None, (arguments.benchmark, arguments.metric)), *(arguments.family or ())]
    typed = SimpleNamespace(**{**vars(arguments), "table": path})
    return read_table(typed, labels=labels, seeds=[arguments.seed] if arguments.seed else [])


@command(
    "plan",
    "TABLE score direction algorithm benchmark seed family source yes sd budget target effect power "
    "hours_per_training trials cost fixed at_most current stage shared algorithms alpha adjust WRITTEN",
    "How many tuning runs, splits and seeds for a budget.",
    calls="bench.power.plan:plan",
    needed=(),
)
def plan(arguments: SimpleNamespace, step: Step) -> Result:
    """Find the numbers of benchmarks, tuning runs, splits and seeds with the smallest standard error for a budget.

    With --target or --effect: the cheapest numbers that reach it. Variances are given by --sd, or estimated from a
    table: of runs of several algorithms, or of a variance study with --source. With -o as a document, table or
    figure.

    \b
    Example:
      lmemtest plan --sd tuning=0.4 --sd data=0.9 --sd seed=0.3 --trials 50 --budget 1000 --hours-per-training 0.5
      lmemtest plan --sd tuning=0.4 --sd data=0.9 --sd seed=0.3 --trials 50 --current seed=3
      lmemtest plan runs.csv --score loss --direction minimize --algorithm tool --benchmark task --seed seed \\
        --budget 400
      lmemtest plan runs.csv --score loss --direction minimize --algorithm tool --benchmark task --seed seed \\
        --family suite --effect 0.02 --cost family=20 --cost benchmark=5
    """
    counts: dict[str, Any] = {
        name: numbers_by_name(getattr(arguments, name), name) or None for name in ("fixed", "at_most", "current")
    }
    hours = 1.0 if arguments.hours_per_training is None else arguments.hours_per_training
    costs = {"training": hours, **numbers_by_name(arguments.cost, "cost")}
    components = numbers_by_name(arguments.sd, "sd")
    if components and (arguments.table is not None or arguments.source):
        raise typer.BadParameter(
            "standard deviations are given by --sd or estimated from a table, not both.", param_hint="--sd"
        )
    step("planning")
    from lmemtest.bench.power.plan import plan

    return plan(
        components or _from_table(arguments),
        n_algorithms=arguments.algorithms,
        stages=arguments.stage,
        shared=tuple(arguments.shared or ()),
        costs=costs,
        **counts,
        **chosen(arguments, "budget target effect power trials alpha adjust"),
    )


@command(
    "sources",
    "TABLE score algorithm benchmark model source relative_to project current budget cost at_most alpha WRITTEN",
    "Where variation comes from: items, prompts, judges, seeds.",
    calls="bench.variation.variance_sources:variance_sources",
)
def sources(arguments: SimpleNamespace, step: Step) -> Result:
    """Decompose the variation of scores by source: items, prompts and judges, or the seeds of trainings.

    With --model the sources are those of differences of models. With --project: the standard error with more of each
    source, and the best design for a cost. With -o as a document, table or figure.

    \b
    Example:
      lmemtest sources answers.csv --score score --model model --source item --source prompt --source judge
      lmemtest sources answers.csv --score score --model model --source item --source judge --project \\
        --cost item=2 --cost score=0.1 --budget 500 -o design.png
      lmemtest sources trainings.csv --score accuracy --source data --source init --relative-to data
    """
    of_design: dict[str, Any] = {
        argument: numbers_by_name(getattr(arguments, option), option) or None
        for argument, option in {"current": "current", "costs": "cost", "at_most": "at_most"}.items()
    }
    of_design["budget"] = arguments.budget
    if not arguments.project and any(value is not None for value in of_design.values()):
        raise typer.BadParameter("--current, --cost, --at-most, --budget are about a design.", param_hint="--project")
    step("taking the variation apart")
    study = _study(arguments)
    return study.project(**of_design) if arguments.project else study


def _study(arguments: SimpleNamespace) -> VarianceSources:
    """A variance study of a table with columns of sources."""
    from lmemtest.bench.variation.variance_sources import variance_sources
    from lmemtest.errors import ArgumentError

    for name, what in (("score", "the column of the scores"), ("source", "a column of items, judges or seeds")):
        if getattr(arguments, name) is None:
            raise ArgumentError(f"--{name} must be given, {what}.")
    columns = {name: getattr(arguments, name, None) for name in ("algorithm", "benchmark", "model")}
    table = read_table(arguments, labels=[*filter(None, columns.values())], seeds=arguments.source)
    options: dict[str, Any] = columns | chosen(arguments, "score alpha")
    options["relative_to"] = getattr(arguments, "relative_to", None)
    return variance_sources(table, sources=arguments.source, **options)


def _from_table(arguments: SimpleNamespace) -> Any:
    """Components from a variance study, or from the recommended model of a table of runs."""
    from lmemtest.errors import ArgumentError

    if arguments.table is None:
        raise ArgumentError("--sd NAME=NUMBER must be given, or a table of runs that tells how much scores vary.")
    if arguments.source:
        if arguments.family:
            raise ArgumentError("--family is of runs of several algorithms, and --source of a variance study.")
        return _study(arguments).components()
    from lmemtest.bench.modelling.recommend import recommend
    from lmemtest.bench.power.variance_components import VarianceComponents
    from lmemtest.lmm.model import fit_lmm

    typed = {
        name: value for name, value in vars(arguments).items() if name in (*TABLE, *ROLES, "yes") and name != "budget"
    }
    model = recommend(read_runs(absent(RUNS, **typed), settle=True))
    return VarianceComponents.of(fit_lmm(model.formula, model.runs))
