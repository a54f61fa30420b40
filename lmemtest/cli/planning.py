"""The command that plans a study: components from options or from a table of runs, then `plan`."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from lmemtest.cli.commands import app
from lmemtest.cli.options import FILES, Direction, Json, Output, RawCsv, RunOptions, TableOptions, number, takes
from lmemtest.cli.reading import read_runs, source_of
from lmemtest.cli.rendering import progress, session, write_result

# What an argument of `plan` is called here.
_NAMES = {
    **{name: f"--{name}" for name in ("target", "effect", "trials", "fixed", "current", "shared", "power")},
    "stages": "--stage",
    "at_most": "--at-most",
    "n_algorithms": "--algorithms",
    "costs": "--cost",
    "components": "--sd",
    "sources": "--source",
}


_Table = Annotated[Path | None, typer.Argument(metavar="RUNS", help=f"Table of runs: {FILES}")]


@dataclass(frozen=True, kw_only=True)
class PlanOptions(TableOptions):
    """A table of runs, if standard deviations are not given, and the roles of its columns."""

    table: _Table = None  # type: ignore[assignment]
    score: Annotated[str | None, typer.Option("--score", metavar="COLUMN", help="Numeric column of the table.")] = None
    direction: Direction = None
    algorithm: Annotated[str | None, typer.Option("--algorithm", metavar="COLUMN", help="What is compared.")] = None
    benchmark: Annotated[
        str | None, typer.Option("--benchmark", metavar="COLUMN", help="Tasks on which it was run.")
    ] = None
    seed: Annotated[
        list[str] | None,
        typer.Option("--seed", metavar="COLUMN", help="What tells repetitions apart; may be repeated."),
    ] = None
    family: Annotated[
        list[str] | None,
        typer.Option(
            "--family", metavar="COLUMN", help="Groups of benchmarks, such as suites; repeated from coarse to fine."
        ),
    ] = None
    source: Annotated[
        list[str] | None,
        typer.Option(
            "--source", metavar="COLUMN", help="Seeds of a source of variation (a variance study); may be repeated."
        ),
    ] = None
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Take the roles that names and structure suggest.")] = False


def _pairs(given: list[str] | None, option: str) -> dict[str, float]:
    """What ``NAME=NUMBER`` says, by name."""
    found: dict[str, float] = {}
    for text in given or []:
        name, sign, value = text.rpartition("=")
        if not sign or not name:
            raise typer.BadParameter(f"{text!r} is not NAME=NUMBER, such as data=3.", param_hint=option)
        if name in found:
            raise typer.BadParameter(f"{name!r} has two numbers. Leave one of them out.", param_hint=option)
        found[name] = number(value)
    return found


@app.command(name="plan", short_help="How many tuning runs, splits and seeds for a budget.")
@takes(PlanOptions)
def plan_study(
    context: typer.Context,
    given: PlanOptions,
    sd: Annotated[
        list[str] | None,
        typer.Option(
            "--sd", metavar="NAME=NUMBER", help="Standard deviation of a source: 'tuning=0.4'; may be repeated."
        ),
    ] = None,
    budget: Annotated[
        float | None, typer.Option("--budget", metavar="NUMBER", parser=number, help="What may be spent in all.")
    ] = None,
    target: Annotated[
        float | None, typer.Option("--target", metavar="NUMBER", parser=number, help="Standard error to be reached.")
    ] = None,
    effect: Annotated[
        float | None,
        typer.Option("--effect", metavar="NUMBER", parser=number, help="Difference that is to be found."),
    ] = None,
    power: Annotated[
        float, typer.Option("--power", metavar="NUMBER", parser=number, help="Probability to find it.")
    ] = 0.8,
    hours_per_training: Annotated[
        float,
        typer.Option("--hours-per-training", metavar="NUMBER", parser=number, help="Cost of a training, in any unit."),
    ] = 1.0,
    trials: Annotated[int | None, typer.Option("--trials", metavar="T", help="Trainings of one tuning run.")] = None,
    cost: Annotated[
        list[str] | None,
        typer.Option(
            "--cost", metavar="STAGE=NUMBER", help="What a split, ... costs besides its trainings; may be repeated."
        ),
    ] = None,
    fixed: Annotated[
        list[str] | None, typer.Option("--fixed", metavar="STAGE=NUMBER", help="Given numbers; may be repeated.")
    ] = None,
    at_most: Annotated[
        list[str] | None, typer.Option("--at-most", metavar="STAGE=NUMBER", help="Largest numbers; may be repeated.")
    ] = None,
    current: Annotated[
        list[str] | None,
        typer.Option("--current", metavar="STAGE=NUMBER", help="The design in use, to compare with; may be repeated."),
    ] = None,
    stage: Annotated[
        list[str] | None, typer.Option("--stage", metavar="NAME", help="Stages from coarse to fine; may be repeated.")
    ] = None,
    shared: Annotated[
        list[str] | None,
        typer.Option("--shared", metavar="NAME", help="Sources that both algorithms share; may be repeated."),
    ] = None,
    algorithms: Annotated[
        int | None, typer.Option("--algorithms", metavar="N", help="How many are compared; 1 for the mean of one.")
    ] = None,
    json: Json = False,
    raw_csv: RawCsv = False,
    output: Output = None,
) -> None:
    """Find the numbers of benchmarks, tuning runs, splits and seeds with the smallest standard error for a budget.

    Or, with --target or --effect, those that reach it at the least cost. How much scores vary is given by --sd, or
    estimated from a table: of runs of several algorithms, or of a variance study with --source. With -o as a document,
    table or figure.

    \b
    Example:
      lmemtest plan --sd tuning=0.4 --sd data=0.9 --sd seed=0.3 --trials 50 --budget 1000 --hours-per-training 0.5
      lmemtest plan --sd tuning=0.4 --sd data=0.9 --sd seed=0.3 --trials 50 --current seed=3
      lmemtest plan runs.csv --score loss --direction minimize --algorithm tool --benchmark task --seed seed \\
        --budget 400
      lmemtest plan runs.csv --score loss --direction minimize --algorithm tool --benchmark task --seed seed \\
        --family suite --effect 0.02 --cost family=20 --cost benchmark=5
    """
    with session(context, **_NAMES):
        from lmemtest.report.files import check_report_path

        goal = None if output is None else check_report_path(output)
        limits = {"fixed": fixed, "at_most": at_most, "current": current}
        counts: dict[str, Any] = {name: _pairs(values, _NAMES[name]) or None for name, values in limits.items()}
        costs = {"training": hours_per_training, **_pairs(cost, "--cost")}
        components = _pairs(sd, "--sd")
        if components and (given.table is not None or given.source):
            raise typer.BadParameter(
                "standard deviations are given by --sd or estimated from a table, not both.", param_hint="--sd"
            )
        with progress() as step:
            step("planning")
            from lmemtest.bench.power.plan import plan

            found = plan(
                components or _from_table(given),
                budget=budget,
                target=target,
                effect=effect,
                power=power,
                n_algorithms=algorithms,
                stages=stage,
                shared=tuple(shared or ()),
                costs=costs,
                trials=trials,
                **counts,
            )
            write_result(found, goal, step, json=json, raw_csv=raw_csv)


def _from_table(given: PlanOptions) -> Any:
    """Components from a variance study, or from the recommended model of a table of runs."""
    from lmemtest.errors import ArgumentError

    if given.table is None:
        raise ArgumentError("--sd NAME=NUMBER must be given, or a table of runs that tells how much scores vary.")
    if given.source:
        from lmemtest.bench.variation.variance_sources import variance_sources

        if given.score is None:
            raise ArgumentError("--score must be given, the column of the scores.")
        if given.family:
            raise ArgumentError("--family is of runs of several algorithms, and --source of a variance study.")
        names = [name for name in (given.algorithm, given.benchmark) if name is not None]
        table = source_of(given).read(labels=names, seeds=list(given.source))
        if given.where:
            from lmemtest.bench.data.where import rows_where

            table = rows_where(table, given.where, {})
        study = variance_sources(
            table, score=given.score, sources=given.source, algorithm=given.algorithm, benchmark=given.benchmark
        )
        return study.components()
    from lmemtest.bench.modelling.recommend import recommend
    from lmemtest.bench.power.components import VarianceComponents
    from lmemtest.lmm.model import fit_lmm

    roles = ("score", "direction", "algorithm", "benchmark", "seed", "family")
    columns = {name: getattr(given, name) for name in roles}
    files = {name: getattr(given, name) for name in ("where", "sep", "decimal", "encoding", "yes")}
    runs = read_runs(RunOptions(table=given.table, **columns, **files), settle=True)
    model = recommend(runs)
    return VarianceComponents.of(fit_lmm(model.formula, model.runs))
