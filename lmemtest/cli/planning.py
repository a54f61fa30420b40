"""The command that plans a study: components from options or from a table of runs, then `plan`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from lmemtest.cli.command import command
from lmemtest.cli.commands import app
from lmemtest.cli.options import RUNS, TABLE, WRITTEN, absent, chosen, flags, number
from lmemtest.cli.reading import read_runs, read_table

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import SimpleNamespace

    from lmemtest.core.result import Result

COLUMNS = ("score", "direction", "algorithm", "benchmark", "seed", "family")
NUMBERS = ("budget", "target", "effect", "power", "hours_per_training", "trials", "cost", "fixed", "at_most", "current")


@command(
    app,
    "plan",
    (*TABLE, *COLUMNS, "source", "yes", "sd", *NUMBERS, "stage", "shared", "algorithms", "alpha", "adjust", *WRITTEN),
    "How many tuning runs, splits and seeds for a budget.",
    calls="bench.power.plan:plan",
    needed=(),
)
def plan(given: SimpleNamespace, step: Callable[[str], None]) -> Result:
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
    counts: dict[str, Any] = {
        name: _pairs(getattr(given, name), name) or None for name in ("fixed", "at_most", "current")
    }
    hours = 1.0 if given.hours_per_training is None else given.hours_per_training
    costs = {"training": hours, **_pairs(given.cost, "cost")}
    components = _pairs(given.sd, "sd")
    if components and (given.table is not None or given.source):
        raise typer.BadParameter(
            "standard deviations are given by --sd or estimated from a table, not both.", param_hint="--sd"
        )
    step("planning")
    from lmemtest.bench.power.plan import plan

    return plan(
        components or _from_table(given),
        n_algorithms=given.algorithms,
        stages=given.stage,
        shared=tuple(given.shared or ()),
        costs=costs,
        **counts,
        **chosen(given, "budget target effect power trials alpha adjust"),
    )


def _pairs(given: list[str] | None, option: str) -> dict[str, float]:
    """What ``NAME=NUMBER`` says, by name."""
    found: dict[str, float] = {}
    for text in given or []:
        name, sign, value = text.rpartition("=")
        if not sign or not name:
            raise typer.BadParameter(f"{text!r} is not NAME=NUMBER, such as data=3.", param_hint=flags(option)[0])
        if name in found:
            raise typer.BadParameter(f"{name!r} has two numbers. Leave one of them out.", param_hint=flags(option)[0])
        found[name] = number(value)
    return found


def _from_table(given: SimpleNamespace) -> Any:
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
        labels = [name for name in (given.algorithm, given.benchmark) if name is not None]
        table = read_table(given, labels=labels, seeds=given.source)
        roles = {"algorithm": given.algorithm, "benchmark": given.benchmark}
        return variance_sources(table, score=given.score, sources=given.source, **roles).components()
    from lmemtest.bench.modelling.recommend import recommend
    from lmemtest.bench.power.components import VarianceComponents
    from lmemtest.lmm.model import fit_lmm

    typed = {name: getattr(given, name) for name in (*TABLE, *COLUMNS, "yes")}
    model = recommend(read_runs(absent(RUNS, **typed), settle=True))
    return VarianceComponents.of(fit_lmm(model.formula, model.runs))
