"""The command line: parse, call, write.

Results go to standard output, plain where it is not a terminal; progress, warnings and errors go to standard error.
Exit codes: 0 done, 1 `check` found errors in the table, 2 the input or the command is wrong,
141 the reader of the output has gone.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

if TYPE_CHECKING:
    import pandas as pd

    from lmemtest.data.readers import Source
    from lmemtest.data.runs import Runs
    from lmemtest.report.analysis import Analysis

WRONG_INPUT = 2
ONE_ALGORITHM = "algorithm"  # column of a table of trials in which nothing is compared
NEEDED = ("score", "direction", "algorithm")
READER_GONE = 141  # what a shell reports of a program that a closed pipe ends
INTERVAL = 10.0  # seconds between the lines of progress where standard error is no terminal

WORDS = "lmemtest.words"


class _Group(TyperGroup):
    """Commands that know what was typed, for advice that can be copied."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.meta[WORDS] = ["lmemtest", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    name="lmemtest",
    cls=_Group,
    no_args_is_help=True,
    rich_markup_mode=None,  # plain help, also where it is piped
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


class Band(str, Enum):
    """Shapes of a confidence band."""

    ld_highest_density = "ld_highest_density"
    ld_equal_tailed = "ld_equal_tailed"
    ks = "ks"
    dkw = "dkw"


class Over(str, Enum):
    """What is independent: the trials of a random search, or the seeds of an optimiser."""

    trials = "trials"
    seed = "seed"


class Adjustment(str, Enum):
    """Adjustment of the confidence for the number of benchmarks."""

    none = "none"
    bonferroni = "bonferroni"
    sidak = "sidak"


class Direction(str, Enum):
    """Which scores are good."""

    minimize = "minimize"
    maximize = "maximize"


FILES = "csv, tsv, txt, xlsx, json, jsonl, parquet or feather, perhaps packed (.gz, .bz2, .xz, .zip); - for stdin."


def _number(text: str) -> float:
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
    float, typer.Option("--alpha", metavar="NUMBER", parser=_number, help="Significance level for all pairs together.")
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
            *("ddf", "dispersion", "formula", "statistic", "confidence", "bounds", "cost", "over"),
        )
    },
}


def main() -> None:
    """Run the command line; the entry point of the console script."""
    app(prog_name="lmemtest")


def _version(wanted: bool) -> None:
    if wanted:
        import importlib

        typer.echo(f"lmemtest {importlib.import_module('lmemtest').__version__}")
        raise typer.Exit


@app.callback()
def _root(
    _: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    """Which of these algorithms is really better, on what, and how sure are we?

    Mixed-effects significance testing of benchmark runs: a table in, a ranking and a report out.

    \b
    Example:
      lmemtest demo
      lmemtest report runs.csv --score loss --direction minimize --algorithm tool --benchmark task -o out.html
    """


@app.command(short_help="Compare algorithms and write a report.")
def report(
    context: typer.Context,
    table: Table,
    score: Score = None,
    direction: Way = None,
    algorithm: Algorithm = None,
    benchmark: Benchmark = None,
    seed: Seed = None,
    budget: Budget = None,
    metafeature: Metafeatures = None,
    ignore: Ignore = None,
    seed_own: SeedOwn = False,
    yes: Yes = False,
    wide: Wide = False,
    where: Conditions = None,
    drop_missing: DropMissing = False,
    best_so_far: BestSoFar = False,
    at_budget: AtBudget = None,
    normalize: Normalize = None,
    formula: Formula = None,
    dispersion: Dispersion = None,
    alpha: Alpha = 0.05,
    adjust: Adjust = None,
    ddf: Ddf = "satterthwaite",
    sep: Sep = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    json: Json = False,
    output: Output = None,
) -> None:
    """Compare the algorithms of a table and write a report, by default as one HTML file.

    The answer is printed in a few sentences; the last line is the path of the report. An existing file is replaced by
    a complete one only. With --json and without -o no file is written.

    Roles that are not given are guessed from names and structure and shown: on a terminal you are asked, and --yes
    takes them.

    \b
    Example:
      lmemtest report runs.parquet --score value --direction minimize --algorithm algorithm \\
        --benchmark benchmark --seed seed --budget used_fidelity --metafeature prior -o report.html
      lmemtest report results.xlsx --wide --direction maximize
      lmemtest report runs.csv --yes
    """
    with _session(context):
        target = None if json and output is None else _checked(output or Path("lmemtest-report.html"))
        _check_options(alpha, adjust, ddf, normalize)
        reading = _Reading(
            table, sep, decimal, encoding, where, drop_missing, normalize, wide, best_so_far, tuple(at_budget or ())
        )
        roles = _roles(score, direction, algorithm, benchmark, seed, budget, metafeature, ignore, seed_own)
        runs = reading.runs(roles, yes, settle=True, own_model=formula is not None)
        with _progress() as step:
            from lmemtest.report.analysis import analyze

            analysis = analyze(
                runs, formula=formula, dispersion=dispersion, alpha=alpha, adjust=adjust, ddf=ddf, progress=step
            )
            _write_report(analysis, target, step, json=json)


@app.command(short_help="Write the report of the bundled runs.")
def demo(context: typer.Context, output: Output = None) -> None:
    """Write the report of the bundled runs: six hyperparameter optimisers on 20 benchmarks.

    The answer is printed in a few sentences; the last line is the path of the report.

    \b
    Example:
      lmemtest demo -o demo.html
    """
    with _session(context):
        target = _checked(output or Path("lmemtest-demo.html"))
        with _progress() as step:
            step("reading the table")
            from lmemtest.data.datasets import load_hpo_runs
            from lmemtest.report.analysis import analyze

            _write_report(analyze(load_hpo_runs(), progress=step), target, step)


@app.command(short_help="Look for what can spoil a comparison.")
def check(
    context: typer.Context,
    table: Table,
    score: Score = None,
    direction: Way = None,
    algorithm: Algorithm = None,
    benchmark: Benchmark = None,
    seed: Seed = None,
    budget: Budget = None,
    metafeature: Metafeatures = None,
    ignore: Ignore = None,
    seed_own: SeedOwn = False,
    yes: Yes = False,
    wide: Wide = False,
    where: Conditions = None,
    drop_missing: DropMissing = False,
    best_so_far: BestSoFar = False,
    at_budget: AtBudget = None,
    normalize: Normalize = None,
    sep: Sep = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    json: Json = False,
) -> None:
    """Look for what can spoil a comparison: columns without a role, missing, duplicate, tied or unpaired runs, scales.

    The exit code is 1 if there are errors that stop a fit, and 0 otherwise.

    \b
    Example:
      lmemtest check runs.csv --score loss --direction minimize --algorithm tool --benchmark task --seed seed
    """
    with _session(context):
        _check_options(None, None, None, normalize)
        reading = _Reading(
            table, sep, decimal, encoding, where, drop_missing, normalize, wide, best_so_far, tuple(at_budget or ())
        )
        roles = _roles(score, direction, algorithm, benchmark, seed, budget, metafeature, ignore, seed_own)
        found = reading.runs(roles, yes, settle=yes).check()
        typer.echo(found.to_frame().to_json(orient="records", indent=2) if json else found.summary())
        if any(finding.severity == "error" for finding in found.findings):
            raise typer.Exit(1)


@app.command(short_help="Fit one mixed model and print it.")
def fit(
    context: typer.Context,
    table: Table,
    formula: Annotated[str, typer.Argument(metavar="FORMULA", help="As in lme4; quote it for the shell.")],
    ml: Annotated[bool, typer.Option("--ml", help="Maximum likelihood instead of restricted (REML).")] = False,
    dispersion: Dispersion = None,
    where: Conditions = None,
    sep: Sep = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
) -> None:
    """Fit one mixed model and print its fixed effects and variance components.

    \b
    Example:
      lmemtest fit runs.csv "loss ~ tool + (1 | task) + (1 | task:tool)"
    """
    with _session(context):
        source = _Reading(table, sep, decimal, encoding, where).source()
        with _progress() as step:
            step("reading the table")
            from lmemtest.data.where import rows_where
            from lmemtest.formula.bars import parse_formula

            groups = [column for bar in parse_formula(formula).bars for column in bar.groups]
            groups += [dispersion] if dispersion is not None else []
            data = source.read(labels=list(dict.fromkeys(groups)))
            data = rows_where(data, where, {}) if where else data
            step("fitting the model")
            from lmemtest.model import fit_lmm

            fitted = fit_lmm(formula, data, reml=not ml, dispersion=dispersion)
        typer.echo(fitted.summary())


@app.command(short_help="Tuning curves with confidence bands.")
def bands(
    context: typer.Context,
    table: Trials,
    score: Score = None,
    direction: Way = None,
    algorithm: Compared = None,
    benchmark: Benchmark = None,
    statistic: Annotated[str, typer.Option("--statistic", help="median, mean, or a quantile such as 0.9.")] = "median",
    confidence: Annotated[
        float,
        typer.Option("--confidence", metavar="NUMBER", parser=_number, help="Probability that a band holds."),
    ] = 0.8,
    method: Annotated[Band, typer.Option("--method", help="Shape of the bands.")] = Band.ld_highest_density,
    k_max: Annotated[int | None, typer.Option("--k-max", metavar="K", help="Last number of trials.")] = None,
    bounds: Annotated[
        tuple[float, float] | None, typer.Option("--bounds", metavar="LOW HIGH", help="Scores that can occur.")
    ] = None,
    cost: Annotated[str | None, typer.Option("--cost", metavar="COLUMN", help="Cost of a trial.")] = None,
    adjust: Annotated[Adjustment, typer.Option("--adjust", help="Of confidence, over benchmarks.")] = Adjustment.none,
    over: Annotated[Over, typer.Option("--over", help="seed: for adaptive optimisers.")] = Over.trials,
    seed: Seed = None,
    budget: Budget = None,
    pointwise: Annotated[
        bool, typer.Option("--pointwise", help="With --over seed: limits for each budget by itself.")
    ] = False,
    where: Conditions = None,
    sep: Sep = None,
    decimal: Decimal = None,
    encoding: Encoding = None,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FOLDER", help="Folder for the files; may be a new one.")
    ] = Path("lmemtest-bands"),
) -> None:
    """Estimate how good the best of k trials is, for each algorithm on each benchmark, with confidence bands.

    Trials must be independent: random search. For adaptive optimisers give --over seed with --seed and --budget. The
    table and the figures are written into the folder, replacing files of an earlier call; the answer is printed in a
    few sentences, and the paths at the end.

    \b
    Example:
      lmemtest bands trials.csv --score loss --direction minimize --benchmark task --algorithm model -o bands
      lmemtest bands runs.csv --score loss --direction minimize --benchmark task --algorithm optimizer \\
        --over seed --seed seed --budget epochs -o bands
    """
    with _session(context, path="TRIALS"):
        from lmemtest.report.files import check_folder

        check_folder(output)
        way = direction.value if direction else None
        reading = _Reading(table, sep, decimal, encoding, where)
        data, by = _read_trials(reading, {"score": score, "direction": way}, algorithm, benchmark, seed)
        with _progress() as step:
            step("estimating the curves")
            from lmemtest.report.curves import headline, save_curves
            from lmemtest.tuning.by_benchmark import tuning_curves

            curves = tuning_curves(
                data,
                score=score,
                direction=way,
                by=by,
                confidence=confidence,
                band=method.value,
                k=_budgets(k_max, cost, over),
                statistic=_statistic(statistic),
                cost=cost,
                bounds=bounds,
                adjust=adjust.value,
                over=over.value,
                seed=seed,
                budget=budget,
                simultaneous=not pointwise,
            )
            paths = save_curves(curves, output, progress=step)
            step("")
        for sentence in headline(curves):
            typer.echo(sentence)
        for path in paths:
            typer.echo(str(path))


# ------------------------------------------------------------------------------------------------------ helpers


@dataclass(frozen=True, slots=True)
class _Reading:
    """A table of the command line, how its file is read, and what is done to its rows."""

    path: Path
    sep: str | None
    decimal: str | None
    encoding: str | None
    where: list[str] | None
    drop_missing: bool = False
    normalize: str | None = None
    wide: bool = False
    best_so_far: bool = False
    at_budgets: tuple[float, ...] = ()

    @property
    def name(self) -> str:
        """The file in messages."""
        return "standard input" if str(self.path) == "-" else self.path.name

    def source(self) -> Source:
        """The content of the file; whether it can be read is known before anything slow is imported."""
        from lmemtest.data.readers import open_table

        return open_table(str(self.path), sep=self.sep, decimal=self.decimal, encoding=self.encoding)

    def table(self, source: Source, roles: dict[str, Any]) -> pd.DataFrame:
        """The rows that are asked for."""
        labels = [name for name in (roles["algorithm"], roles["benchmark"], *roles["metafeatures"]) if name]
        table = source.read(labels=labels, seeds=[roles["seed"]] if roles["seed"] else [])
        if not self.where:
            return table
        from lmemtest.data.where import rows_where

        return rows_where(table, self.where, roles)

    def runs(self, roles: dict[str, Any], yes: bool, *, settle: bool, own_model: bool = False) -> Runs:
        """The runs; roles that are missing are guessed and taken once they are agreed to.

        With `settle`, so are those of columns that structure the rows, and without agreement they are refused.
        """
        source = self.source()
        from lmemtest.data.runs import Runs

        if self.wide:
            return self.prepared(self.from_wide(source, roles))
        table = self.table(source, roles)
        if any(roles[name] is None for name in NEEDED):
            roles = self.guessed(table, roles, yes)
            table = self.table(source, roles)
        runs = Runs(table, **roles)
        if settle:
            from lmemtest.data.roles import options_of, refuse_unnamed, unnamed_columns, with_roles

            columns = unnamed_columns(runs)
            if columns and _agreed(options_of(columns), yes):
                roles = with_roles(runs, columns)
                runs = Runs(self.table(source, roles), **roles)
            elif columns and not own_model:  # what a model of one's own uses is known to `analyze`
                refuse_unnamed(runs)
        return self.prepared(runs)

    def guessed(self, table: pd.DataFrame, roles: dict[str, Any], yes: bool) -> dict[str, Any]:
        """The roles with those that names and structure suggest, if the user agrees."""
        from lmemtest._caller import command_with
        from lmemtest.data.roles import guess_roles
        from lmemtest.errors import ArgumentError
        from lmemtest.words import listed

        found = guess_roles(table, roles)
        options = _new_options(roles, found)
        lacking = [name for name in NEEDED if found[name] is None]
        if not lacking and _agreed(options, yes):
            return found
        missing = " and ".join(", ".join(f"--{name}" for name in NEEDED if roles[name] is None).rsplit(", ", 1))
        message = f"{missing} must be given. Columns of {self.name}: {listed(table.columns)}."
        if not lacking:
            raise ArgumentError(
                f"{message} By names and structure:\n  {command_with(options)}\n--yes takes these roles without asking."
            )
        numbers = table.select_dtypes("number").shape[1]
        if "algorithm" in lacking and numbers > 1 and table.shape[1] - numbers <= 1:
            message += " If each algorithm has a column of its own, give --wide."
        if options:
            ends = {"direction": "minimize|maximize"}
            rest = " ".join(f"--{name} {ends.get(name, 'COLUMN')}" for name in lacking)
            message += f" As far as names tell:\n  {command_with(options)} {rest}"
        raise ArgumentError(message)

    def from_wide(self, source: Source, roles: dict[str, Any]) -> Runs:
        """Runs of a table with a column per algorithm."""
        from lmemtest.data.runs import Runs
        from lmemtest.errors import ArgumentError

        if roles["direction"] is None:
            raise ArgumentError("--direction must be given: whether a low or a high score is good.")
        new = {name: roles[name] for name in ("score", "algorithm") if roles[name] is not None}
        table = self.table(source, {**roles, "algorithm": None})
        names = ("direction", "benchmark", "seed", "budget", "metafeatures", "seed_shared")
        given = {name: roles[name] for name in names}
        return Runs.from_wide(table.drop(columns=[n for n in roles["ignore"] if n in table]), **given, **new)

    def prepared(self, runs: Runs) -> Runs:
        """Without missing scores, as the best so far, at budgets and normalised, as asked."""
        if self.drop_missing:
            whole, runs = runs.n_rows, runs.drop_missing()
            if whole > runs.n_rows:
                typer.echo(f"left out: {whole - runs.n_rows:,} of {whole:,} rows without a finite score", err=True)
        runs = runs.best_so_far() if self.best_so_far else runs
        runs = runs.at_budgets(self.at_budgets) if self.at_budgets else runs
        return runs if self.normalize is None else runs.normalize(self.normalize)


def _new_options(given: dict[str, Any], found: dict[str, Any]) -> list[str]:
    """What was guessed, as options."""
    options: list[str] = []
    for name in ("score", "direction", "algorithm", "benchmark", "seed", "budget"):
        if given[name] is None and found[name] is not None:
            options += [f"--{name}", found[name]]
    for name, option in (("metafeatures", "--metafeature"), ("ignore", "--ignore")):
        options += [part for column in found[name] if column not in given[name] for part in (option, column)]
    return options


def _agreed(options: list[str], yes: bool) -> bool:
    """Whether these roles are to be taken: by --yes, or by an answer on a terminal; they are shown in both cases."""
    if yes:
        typer.echo(f"taking {shlex.join(options)}", err=True)
        return True
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        return False
    typer.echo("By names and structure of the columns:", err=True)
    for option, column in zip(options[::2], options[1::2], strict=True):
        typer.echo(f"  {option:<14} {column}", err=True)
    return typer.confirm("Take these?", default=True, err=True)


def _check_options(alpha: float | None, adjust: str | None, ddf: str | None, normalize: str | None) -> None:
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


def _checked(output: Path) -> Path:
    from lmemtest.report.files import check_report_path

    return check_report_path(output)


def _read_trials(
    reading: _Reading, roles: dict[str, str | None], algorithm: str | None, benchmark: str | None, seed: str | None
) -> tuple[Any, list[str]]:
    """The table of trials with the columns that tell curves apart; without an algorithm all trials are of one."""
    from lmemtest.errors import ArgumentError

    by = [name for name in (benchmark, algorithm) if name is not None]
    named = {"algorithm": algorithm, "benchmark": benchmark, "metafeatures": (), "seed": seed}
    data = reading.table(reading.source(), named)
    missing = [f"--{name}" for name, value in roles.items() if value is None]
    if missing:
        _ask_for(missing, reading.name, data.columns)
    if algorithm is not None:
        return data, by
    if ONE_ALGORITHM in data.columns:
        raise ArgumentError(
            f"--algorithm must be given, because {reading.name} has a column {ONE_ALGORITHM!r}. To take its levels "
            "together, remove the column."
        )
    return data.assign(**{ONE_ALGORITHM: "all trials"}), [*by, ONE_ALGORITHM]


def _ask_for(missing: list[str], name: str, columns: Any) -> NoReturn:
    from lmemtest.errors import ArgumentError
    from lmemtest.words import listed

    needed = " and ".join(", ".join(missing).rsplit(", ", 1))
    raise ArgumentError(f"{needed} must be given. Columns of {name}: {listed(columns)}.")


def _budgets(k_max: int | None, cost: str | None, over: Over) -> list[float] | None:
    """The numbers of trials up to the last one, evenly on the log scale if there are many."""
    if k_max is None:
        return None
    from lmemtest._validate import check_positive_int
    from lmemtest.errors import ArgumentError

    check_positive_int(k_max, "--k-max")
    if cost is not None or over is Over.seed:
        other = "--cost" if cost is not None else "--over seed"
        raise ArgumentError(f"--k-max counts trials, but with {other} budgets are no trials. Leave it out.")
    import numpy as np

    from lmemtest.tuning.curves import MOST_POINTS

    few = k_max <= MOST_POINTS
    points = np.arange(1.0, k_max + 1.0) if few else np.unique(np.geomspace(1.0, k_max, MOST_POINTS).round())
    return [float(point) for point in points]


def _statistic(text: str) -> str | float:
    """A quantile as a number, the rest as it is."""
    try:
        return float(text)
    except ValueError:
        return text


def _roles(
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


def _write_report(analysis: Analysis, target: Path | None, step: Callable[[str], None], *, json: bool = False) -> None:
    import dataclasses

    from lmemtest._caller import command_with

    analysis = dataclasses.replace(analysis, call=command_with(()))
    path = None if target is None else analysis.save(target, progress=step)
    step("")
    if json:
        typer.echo(analysis.to_json(), nl=False)
        return
    from lmemtest.report.document import plain
    from lmemtest.report.wording import headline

    for sentence in headline(analysis):
        typer.echo(plain(sentence))
    typer.echo(str(path))


@contextmanager
def _session(context: typer.Context, **names: str) -> Iterator[None]:
    """A command: its errors as messages, its advice in options."""
    from lmemtest._caller import on_command_line

    with on_command_line(context.meta.get(WORDS, ["lmemtest"]), {**OPTIONS, **names}), _errors():
        yield


@contextmanager
def _errors() -> Iterator[None]:
    """One message instead of a traceback where the input is wrong; warnings as messages."""
    import warnings

    from lmemtest.errors import LmemtestError, LmemtestWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", LmemtestWarning)
        try:
            yield
        except LmemtestError as error:
            _fail(str(error))
        except BrokenPipeError:
            _stop_writing()
        except OSError as error:
            _fail(_os_message(error))
        finally:
            for warning in caught:
                typer.echo(f"warning: {warning.message}", err=True)


def _stop_writing() -> NoReturn:
    """The reader has gone (``| head``): stop in silence, also when Python flushes the rest at its end."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    raise typer.Exit(READER_GONE)


def _os_message(error: OSError) -> str:
    if error.strerror and error.filename is not None:
        return f"{error.strerror}: {str(error.filename)!r}"
    return str(error)


def _fail(message: str) -> NoReturn:
    typer.echo(f"error: {message}", err=True)
    raise typer.Exit(WRONG_INPUT)


@contextmanager
def _progress() -> Iterator[Callable[[str], None]]:
    """What is being done, on standard error: a status on a terminal, elsewhere a line now and then."""
    with _status() if sys.stderr.isatty() else _lines() as step:
        yield step


@contextmanager
def _status() -> Iterator[Callable[[str], None]]:
    from rich.console import Console

    with Console(stderr=True).status("starting") as status:

        def step(text: str) -> None:
            if text:
                status.update(f"{text} ...")
            else:
                status.stop()

        yield step


@contextmanager
def _lines() -> Iterator[Callable[[str], None]]:
    """The step at hand every `INTERVAL` seconds, so that a log shows life and a short command stays silent."""
    import threading
    import time

    done, start, current = threading.Event(), time.monotonic(), "starting"

    def step(text: str) -> None:
        nonlocal current
        current = text
        if not text:
            done.set()

    def tell() -> None:
        while not done.wait(INTERVAL):
            typer.echo(f"{current} ... ({time.monotonic() - start:.0f} s)", err=True)

    teller = threading.Thread(target=tell, daemon=True)
    teller.start()
    try:
        yield step
    finally:
        done.set()
        teller.join()
