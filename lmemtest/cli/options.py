"""The options of the command line: their types, their help, and what each is called in Python."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

NEEDED = ("score", "direction", "algorithm")
FILES = "csv, tsv, txt, xlsx, json, jsonl, parquet or feather, perhaps packed (.gz, .bz2, .xz, .zip); - for stdin."


class Band(str, Enum):
    """Shapes of a confidence band."""

    ld_highest_density = "ld_highest_density"
    ld_equal_tailed = "ld_equal_tailed"
    ks = "ks"
    dkw = "dkw"


class Unit(str, Enum):
    """What is independent: the trials of a random search, or the seeds of an optimiser."""

    trials = "trials"
    seed = "seed"


class Adjustment(str, Enum):
    """Adjustment of the level for the number of benchmarks."""

    none = "none"
    bonferroni = "bonferroni"
    sidak = "sidak"


class Direction(str, Enum):
    """Which scores are good."""

    minimize = "minimize"
    maximize = "maximize"


def number(text: str) -> float:
    """A number, or an error that shows what was given."""
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a number.") from None


Table = Annotated[Path, typer.Argument(metavar="RUNS", help=f"Table of runs: {FILES}")]
Trials = Annotated[Path, typer.Argument(metavar="TRIALS", help=f"Table of trials: {FILES}")]
Score = Annotated[str | None, typer.Option("--score", metavar="COLUMN", help="Numeric column to compare. Required.")]
Way = Annotated[Direction | None, typer.Option("--direction", help="Which scores are good. Required.")]
Algorithm = Annotated[str | None, typer.Option("--algorithm", metavar="COLUMN", help="What is compared. Required.")]
Compared = Annotated[str | None, typer.Option("--algorithm", metavar="COLUMN", help="What is compared, if anything.")]
Benchmark = Annotated[str | None, typer.Option("--benchmark", metavar="COLUMN", help="Tasks on which it was run.")]
Seed = Annotated[str | None, typer.Option("--seed", metavar="COLUMN", help="Column that tells repetitions apart.")]
SeedOwn = Annotated[
    bool, typer.Option("--seed-own", help="Seeds only number the repetitions: seed 1 is another one on each benchmark.")
]
Budget = Annotated[str | None, typer.Option("--budget", metavar="COLUMN", help="Budget at which a score was taken.")]
Metafeatures = Annotated[
    list[str] | None,
    typer.Option("--metafeature", metavar="COLUMN", help="What describes a run's circumstances; may be repeated."),
]
Ignore = Annotated[
    list[str] | None,
    typer.Option("--ignore", metavar="COLUMN", help="Left without a role on purpose; may be repeated."),
]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Take the roles that names and structure suggest.")]
Wide = Annotated[bool, typer.Option("--wide", help="A column per algorithm, a row per benchmark.")]
Conditions = Annotated[
    list[str] | None,
    typer.Option("--where", metavar="CONDITION", help="Rows to keep: 'column=value', 'epoch<=27'; may be repeated."),
]
DropMissing = Annotated[
    bool, typer.Option("--drop-missing", help="Leave out rows without a finite score, if failing says nothing.")
]
Normalize = Annotated[
    str | None, typer.Option("--normalize", metavar="METHOD", help="Compare normalised scores: rank, minmax, ...")
]
BestSoFar = Annotated[
    bool, typer.Option("--best-so-far", help="Compare the best score up to each budget, where rows are single trials.")
]
AtBudget = Annotated[
    list[float] | None,
    typer.Option("--at-budget", metavar="BUDGET", help="Compare the last scores up to this budget; may be repeated."),
]
Sep = Annotated[str | None, typer.Option("--sep", metavar="CHAR", help="What separates fields, if it is unclear.")]
Decimal = Annotated[str | None, typer.Option("--decimal", metavar="CHAR", help="Decimal sign: . or ,")]
Encoding = Annotated[str | None, typer.Option("--encoding", metavar="NAME", help="Of the text, such as latin-1.")]
Output = Annotated[
    Path | None,
    typer.Option("-o", "--output", metavar="FILE", help="To write: .html, .md, .txt, .tex, .csv, .json or .png."),
]
Json = Annotated[bool, typer.Option("--json", help="Print the results as json instead of sentences.")]
Alpha = Annotated[
    float, typer.Option("--alpha", metavar="NUMBER", parser=number, help="Significance level for all pairs together.")
]
Adjust = Annotated[
    str | None,
    typer.Option(
        "--adjust", metavar="METHOD", help="For the number of pairs: stepdown (default), tukey, holm, none, ..."
    ),
]
Ddf = Annotated[
    str, typer.Option("--ddf", metavar="METHOD", help="Degrees of freedom: satterthwaite, kenward-roger, ...")
]
Dispersion = Annotated[
    str | None,
    typer.Option("--dispersion", metavar="COLUMN", help="A residual variance for each level, such as the benchmark."),
]
Formula = Annotated[str | None, typer.Option("--formula", help="A model of your own instead of the recommended one.")]

# What an argument in Python is called here.
OPTIONS = {
    "path": "RUNS",
    "metafeatures": "--metafeature",
    "seed_shared": "--seed-own",
    **{
        name: f"--{name}"
        for name in (
            *("score", "direction", "algorithm", "benchmark", "seed", "budget", "ignore", "where", "alpha", "adjust"),
            *("ddf", "dispersion", "formula", "statistic", "level", "band", "bounds", "cost", "unit"),
        )
    },
}


def roles_of(
    score: str | None,
    direction: Direction | None,
    algorithm: str | None,
    benchmark: str | None,
    seed: str | None,
    budget: str | None,
    metafeature: list[str] | None,
    ignore: list[str] | None,
    seed_own: bool,
) -> dict[str, Any]:
    return {
        "score": score,
        "direction": direction.value if direction else None,
        "algorithm": algorithm,
        "benchmark": benchmark,
        "seed": seed,
        "budget": budget,
        "metafeatures": tuple(metafeature or ()),
        "ignore": tuple(ignore or ()),
        "seed_shared": not seed_own,
    }


def check_options(alpha: float | None, adjust: str | None, ddf: str | None, normalize: str | None) -> None:
    """What can be wrong without a table, before anything slow is imported."""
    from lmemtest._options import DDF_METHODS, REPORT_ADJUSTMENTS
    from lmemtest._validate import check_choice, check_fraction

    if alpha is not None:
        check_fraction(alpha, "alpha")
    if adjust is not None:
        check_choice(adjust, "adjust", REPORT_ADJUSTMENTS)
    if ddf is not None:
        check_choice(ddf, "ddf", DDF_METHODS)
    if normalize is not None:
        from lmemtest.data.normalise import METHODS

        check_choice(normalize, "--normalize", METHODS)


def budgets(k_max: int | None, cost: str | None, unit: Unit) -> list[float] | None:
    """The numbers of trials up to the last one, evenly on the log scale if there are many."""
    if k_max is None:
        return None
    from lmemtest._validate import check_positive_int
    from lmemtest.errors import ArgumentError

    check_positive_int(k_max, "--k-max")
    if cost is not None or unit is Unit.seed:
        other = "--cost" if cost is not None else "--unit seed"
        raise ArgumentError(f"--k-max counts trials, but with {other} budgets are no trials. Leave it out.")
    import numpy as np

    from lmemtest.tuning.curve import MOST_POINTS

    few = k_max <= MOST_POINTS
    points = np.arange(1.0, k_max + 1.0) if few else np.unique(np.geomspace(1.0, k_max, MOST_POINTS).round())
    return [float(point) for point in points]


def statistic_of(text: str) -> str | float:
    """A quantile as a number, the rest as it is."""
    try:
        return float(text)
    except ValueError:
        return text
