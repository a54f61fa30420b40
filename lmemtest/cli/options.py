"""The options of the command line: their types, their help, and what each is called in Python."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

POLICIES = "What failed runs count: worst, baseline=NAME, a number, drop."
FILES = "csv, tsv, txt, xlsx, md, json, jsonl, parquet or feather, perhaps packed (.gz, .bz2, .xz, .zip); - for stdin."


def number(text: str) -> float:
    """A number, or an error that shows what was given."""
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a number.") from None


def direction(text: str) -> str:
    """Which scores are good, in Optuna's words."""
    from lmemtest.core.validate import check_direction
    from lmemtest.errors import ArgumentError

    try:
        return check_direction(text)
    except ArgumentError as error:
        raise typer.BadParameter(str(error)) from None


# minimize or maximize, also as min, max, lower or higher
Direction = Annotated[
    str | None,
    typer.Option("--direction", metavar="minimize|maximize", parser=direction, help="Which scores are good."),
]


class Methods(str, Enum):
    """Where the algorithms of a wide table are."""

    columns = "columns"
    rows = "rows"


class Kept(str, Enum):
    """What is kept of several rows of one run."""

    first = "first"
    last = "last"
    mean = "mean"


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


Output = Annotated[
    Path | None,
    typer.Option("-o", "--output", metavar="FILE", help="To write: .html, .md, .txt, .tex, .csv, .json or .png."),
]
RawCsv = Annotated[
    bool,
    typer.Option("--raw-csv", help="In csv, leave texts that a spreadsheet would evaluate (=1+1) without apostrophe."),
]
Json = Annotated[bool, typer.Option("--json", help="Print the results as json instead of sentences.")]
Errors = Annotated[
    str | None,
    typer.Option("--se", metavar="NAME", help="Standard errors of differences: moderated (default) or model."),
]
Dispersion = Annotated[
    str | None,
    typer.Option("--dispersion", metavar="COLUMN", help="A residual variance for each level, such as the benchmark."),
]


Curves = Annotated[
    str | None,
    typer.Option(
        "--curves", metavar="HOW", help="What scores over a budget count per run: mean, last, best, area; or model."
    ),
]


class RankingMethod(str, Enum):
    """Ways to rank."""

    lmem = "lmem"
    frequentist = "frequentist"
    bayesian = "bayesian"
    all = "all"


@dataclass(frozen=True, kw_only=True)
class TableOptions:
    """A table, which of its rows are used, and how its file is read."""

    table: Annotated[Path, typer.Argument(metavar="RUNS", help=f"Table of runs: {FILES}")]
    where: Annotated[
        list[str] | None,
        typer.Option(
            "--where", metavar="CONDITION", help="Rows to keep: 'column=value', 'epoch<=27'; may be repeated."
        ),
    ] = None
    sheet: Annotated[
        str | None,
        typer.Option("--sheet", metavar="NAME", help="Of several in a file: its name, or its number from 1."),
    ] = None
    sep: Annotated[
        str | None, typer.Option("--sep", metavar="CHAR", help="What separates fields, if it is unclear.")
    ] = None
    decimal: Annotated[str | None, typer.Option("--decimal", metavar="CHAR", help="Decimal sign: . or ,")] = None
    encoding: Annotated[
        str | None, typer.Option("--encoding", metavar="NAME", help="Of the text, such as latin-1.")
    ] = None


@dataclass(frozen=True, kw_only=True)
class RoleOptions(TableOptions):
    """Columns with a role."""

    score: Annotated[
        str | None, typer.Option("--score", metavar="COLUMN", help="Numeric column to compare. Required.")
    ] = None
    direction: Direction = None
    algorithm: Annotated[
        str | None, typer.Option("--algorithm", metavar="COLUMN", help="What is compared. Required.")
    ] = None
    benchmark: Annotated[
        str | None, typer.Option("--benchmark", metavar="COLUMN", help="Tasks on which it was run.")
    ] = None
    budget: Annotated[
        str | None, typer.Option("--budget", metavar="COLUMN", help="Budget at which a score was taken.")
    ] = None


@dataclass(frozen=True, kw_only=True)
class TrialOptions(RoleOptions):
    """A table of trials."""

    table: Annotated[Path, typer.Argument(metavar="TRIALS", help=f"Table of trials: {FILES}")]
    algorithm: Annotated[
        str | None, typer.Option("--algorithm", metavar="COLUMN", help="What is compared, if anything.")
    ] = None
    seed: Annotated[
        str | None, typer.Option("--seed", metavar="COLUMN", help="Column that tells repetitions apart.")
    ] = None


@dataclass(frozen=True, kw_only=True)
class RunOptions(RoleOptions):
    """A table of runs, and what is done to its scores."""

    seed: Annotated[
        list[str] | None,
        typer.Option(
            "--seed", metavar="COLUMN", help="What tells repetitions apart; several (repeat, fold) by repeating it."
        ),
    ] = None
    metafeature: Annotated[
        list[str] | None,
        typer.Option("--metafeature", metavar="COLUMN", help="What describes a run's circumstances; may be repeated."),
    ] = None
    family: Annotated[
        list[str] | None,
        typer.Option(
            "--family", metavar="COLUMN", help="Groups of benchmarks, such as suites; repeated from coarse to fine."
        ),
    ] = None
    ignore: Annotated[
        list[str] | None,
        typer.Option("--ignore", metavar="COLUMN", help="Left without a role on purpose; may be repeated."),
    ] = None
    seed_own: Annotated[
        bool,
        typer.Option("--seed-own", help="Seeds only number the repetitions: seed 1 is another one on each benchmark."),
    ] = False
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Take the roles that names and structure suggest.")] = False
    wide: Annotated[bool, typer.Option("--wide", help="A column per algorithm, a row per benchmark.")] = False
    methods: Annotated[
        Methods | None,
        typer.Option("--methods", help="Where the algorithms of a wide table are, if its names do not say it."),
    ] = None
    failed: Annotated[
        list[str] | None,
        typer.Option(
            "--failed",
            metavar="COLUMN",
            help="Which runs failed: a column, missing or nonfinite scores, or a word like TIMEOUT; may be repeated.",
        ),
    ] = None
    drop_duplicates: Annotated[
        Kept | None,
        typer.Option("--drop-duplicates", help="Keep one row of each run: the first, the last, or the mean score."),
    ] = None
    score_failures: Annotated[
        str | None,
        typer.Option(
            "--score-failures",
            metavar="POLICY",
            help=POLICIES,
        ),
    ] = None
    drop_missing: Annotated[
        bool, typer.Option("--drop-missing", help="Leave out rows without a finite score, if failing says nothing.")
    ] = False
    best_so_far: Annotated[
        bool,
        typer.Option("--best-so-far", help="Compare the best score up to each budget, where rows are single trials."),
    ] = False
    at_budget: Annotated[
        list[float] | None,
        typer.Option(
            "--at-budget", metavar="BUDGET", help="Compare the last scores up to this budget; may be repeated."
        ),
    ] = None
    normalize: Annotated[
        str | None,
        typer.Option("--normalize", metavar="METHOD", help="Compare normalised scores: rank, minmax, baseline, ..."),
    ] = None
    reference: Annotated[
        str | None,
        typer.Option(
            "--reference", metavar="NAME", help="Baseline of --normalize: an algorithm, a number or a column."
        ),
    ] = None
    target: Annotated[
        str | None, typer.Option("--target", metavar="NAME", help="What counts as 1, if the baseline counts as 0.")
    ] = None
    best_known: Annotated[
        str | None,
        typer.Option("--best-known", metavar="NAME", help="Best value, for --normalize gap or improvability."),
    ] = None

    @property
    def anchors(self) -> dict[str, str | None]:
        """What scores are to be relative to."""
        return {"reference": self.reference, "target": self.target, "best_known": self.best_known}

    def roles(self) -> dict[str, Any]:
        """The arguments of `Runs`; which runs failed is known when the columns are."""
        same = {name: getattr(self, name) for name in ("score", "algorithm", "benchmark", "budget")}
        seeds = tuple(self.seed or ())
        same["seed"] = seeds if len(seeds) > 1 else next(iter(seeds), None)  # type: ignore[assignment]
        several = {"family": self.family, "metafeatures": self.metafeature, "ignore": self.ignore}
        lists = {name: tuple(columns or ()) for name, columns in several.items()}
        return {**same, **lists, "direction": self.direction, "seed_shared": not self.seed_own, "failed": None}


_OF_FILES = ("where", "sheet", "sep", "decimal", "encoding")  # the last options in a help


def takes(group: type[TableOptions]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A command whose second argument is a group of options, each of them an option of the command line."""
    hints = get_type_hints(group, include_extras=True)
    shared = [(field.name, field.default) for field in fields(group)]

    def decorated(command: Callable[..., None]) -> Callable[..., None]:
        def call(context: typer.Context, **options: Any) -> None:
            given = {name: options.pop(name) for name, _ in shared}
            command(context, group(**given), **options)

        found = [inspect.Parameter("context", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)]
        for name, default in shared:
            default = inspect.Parameter.empty if default is MISSING else default
            found.append(
                inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hints[name])
            )
        own = list(inspect.signature(command, eval_str=True).parameters.values())[2:]
        found += [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in own]
        parameters = sorted(found, key=lambda parameter: parameter.name in _OF_FILES)
        call.__name__, call.__doc__ = command.__name__, command.__doc__
        call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        call.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return call

    return decorated


# What an argument in Python is called here.
OPTIONS = {
    "path": "RUNS",
    "metafeatures": "--metafeature",
    "seed_shared": "--seed-own",
    "algorithms": "--only",
    "policy": "--score-failures",
    "best_known": "--best-known",
    "drop_duplicates": "--drop-duplicates",
    **{
        name: f"--{name}"
        for name in (
            *("score", "direction", "algorithm", "benchmark", "seed", "budget", "ignore", "where", "alpha", "adjust"),
            *(
                "family",
                "ddf",
                "dispersion",
                "formula",
                "population",
                "curves",
                "statistic",
                "level",
                "band",
                "bounds",
                "cost",
                "unit",
            ),
            *("method", "test", "control", "rope", "gamma", "failed", "reference", "target", "sheet", "methods"),
            *("sep", "decimal", "encoding"),
        )
    },
}


def check_options(
    alpha: float | None, adjust: str | None, ddf: str | None, given: RunOptions, curves: str | None = None
) -> None:
    """What can be wrong without a table, before anything slow is imported."""
    from lmemtest.core.options import CURVE_CHOICES, DDF_METHODS, REPORT_ADJUSTMENTS
    from lmemtest.core.validate import check_choice, check_fraction

    if alpha is not None:
        check_fraction(alpha, "alpha")
    if adjust is not None:
        check_choice(adjust, "adjust", REPORT_ADJUSTMENTS)
    if ddf is not None:
        check_choice(ddf, "ddf", DDF_METHODS)
    if curves is not None:
        check_choice(curves, "--curves", CURVE_CHOICES)
    if given.normalize is not None:
        from lmemtest.bench.data.baseline import check_anchors
        from lmemtest.bench.data.normalise import ALL_METHODS

        check_choice(given.normalize, "--normalize", ALL_METHODS)
        check_anchors(given.normalize, given.anchors)
        return
    lonely = [name for name, value in given.anchors.items() if value is not None]
    if lonely:
        from lmemtest.errors import ArgumentError

        method = "gap" if lonely[0] == "best_known" else "baseline"
        raise ArgumentError(f"{OPTIONS[lonely[0]]} is used by --normalize only. Add --normalize {method}.")


def budgets(k_max: int | None, cost: str | None, unit: str) -> list[float] | None:
    """The numbers of trials up to the last one, evenly on the log scale if there are many."""
    if k_max is None:
        return None
    from lmemtest.core.validate import check_positive_int
    from lmemtest.errors import ArgumentError

    check_positive_int(k_max, "--k-max")
    if cost is not None or unit == "seed":
        other = "--cost" if cost is not None else "--unit seed"
        raise ArgumentError(f"--k-max counts trials, but with {other} budgets are no trials. Leave it out.")
    from lmemtest.tuning.checks import whole_budgets
    from lmemtest.tuning.curve import MOST_POINTS

    return whole_budgets(k_max, MOST_POINTS).tolist()


def statistic_of(text: str) -> str | float:
    """A quantile as a number, the rest as it is."""
    try:
        return float(text)
    except ValueError:
        return text
