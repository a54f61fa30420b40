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
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

if TYPE_CHECKING:
    from lmemtest.data.runs import Runs
    from lmemtest.report.analysis import Analysis

WRONG_INPUT = 2
ONE_ALGORITHM = "algorithm"  # column of a table of trials in which nothing is compared
READER_GONE = 141  # what a shell reports of a program that a closed pipe ends
INTERVAL = 10.0  # seconds between the lines of progress where standard error is no terminal

app = typer.Typer(
    name="lmemtest",
    no_args_is_help=True,
    add_completion=False,
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


Table = Annotated[Path, typer.Argument(metavar="RUNS", help="Table of runs: .parquet, .csv, .csv.gz, .jsonl or .json.")]
Trials = Annotated[
    Path, typer.Argument(metavar="TRIALS", help="Table of trials: .parquet, .csv, .csv.gz, .jsonl or .json.")
]
Score = Annotated[str | None, typer.Option("--score", metavar="COLUMN", help="Numeric column to compare. Required.")]
Way = Annotated[Direction | None, typer.Option("--direction", help="Which scores are good. Required.")]
Algorithm = Annotated[str | None, typer.Option("--algorithm", metavar="COLUMN", help="What is compared. Required.")]
Compared = Annotated[str | None, typer.Option("--algorithm", metavar="COLUMN", help="What is compared, if anything.")]
Benchmark = Annotated[str | None, typer.Option("--benchmark", metavar="COLUMN", help="Tasks on which it was run.")]
Seed = Annotated[str | None, typer.Option("--seed", metavar="COLUMN", help="Column that tells repetitions apart.")]
Budget = Annotated[str | None, typer.Option("--budget", metavar="COLUMN", help="Budget at which a score was taken.")]
Metafeatures = Annotated[
    list[str] | None,
    typer.Option("--metafeature", metavar="COLUMN", help="What describes a run's circumstances; may be repeated."),
]
Output = Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="Report to write, ending in .html.")]
Alpha = Annotated[float, typer.Option("--alpha", help="Significance level for all pairs together.")]
Dispersion = Annotated[
    str | None,
    typer.Option("--dispersion", metavar="COLUMN", help="A residual variance for each level, such as the benchmark."),
]
Formula = Annotated[str | None, typer.Option("--formula", help="A model of your own instead of the recommended one.")]


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
    table: Table,
    score: Score = None,
    direction: Way = None,
    algorithm: Algorithm = None,
    benchmark: Benchmark = None,
    seed: Seed = None,
    budget: Budget = None,
    metafeature: Metafeatures = None,
    formula: Formula = None,
    dispersion: Dispersion = None,
    alpha: Alpha = 0.05,
    output: Output = Path("lmemtest-report.html"),
) -> None:
    """Compare the algorithms of a table and write a report as one HTML file.

    The answer is printed in a few sentences; the last line is the path of the report. An existing file is replaced by
    a complete one only.

    \b
    Example:
      lmemtest report runs.parquet --score value --direction minimize --algorithm algorithm \\
        --benchmark benchmark --seed seed --budget used_fidelity --metafeature prior -o report.html
    """
    with _errors():
        from lmemtest.report.analysis import check_report_path

        check_report_path(output)
        with _progress() as step:
            step("reading the table")
            roles = _roles(score, direction, algorithm, benchmark, seed, budget, metafeature)
            _write_report(_read(table, roles), output, step, formula=formula, dispersion=dispersion, alpha=alpha)


@app.command(short_help="Write the report of the bundled runs.")
def demo(output: Output = Path("lmemtest-demo.html")) -> None:
    """Write the report of the bundled runs: six hyperparameter optimisers on 20 benchmarks.

    The answer is printed in a few sentences; the last line is the path of the report.

    \b
    Example:
      lmemtest demo -o demo.html
    """
    with _errors():
        from lmemtest.report.analysis import check_report_path

        check_report_path(output)
        with _progress() as step:
            step("reading the table")
            from lmemtest.data.datasets import load_hpo_runs

            _write_report(load_hpo_runs(), output, step)


@app.command(short_help="Look for what can spoil a comparison.")
def check(
    table: Table,
    score: Score = None,
    direction: Way = None,
    algorithm: Algorithm = None,
    benchmark: Benchmark = None,
    seed: Seed = None,
    budget: Budget = None,
    metafeature: Metafeatures = None,
) -> None:
    """Look for what can spoil a comparison: missing, duplicate, tied or unpaired runs, unequal scales.

    The exit code is 1 if there are errors that stop a fit, and 0 otherwise.

    \b
    Example:
      lmemtest check runs.csv --score loss --direction minimize --algorithm tool --benchmark task --seed seed
    """
    with _errors():
        roles = _roles(score, direction, algorithm, benchmark, seed, budget, metafeature)
        found = _read(table, roles).check()
        typer.echo(found.summary())
        if any(finding.severity == "error" for finding in found.findings):
            raise typer.Exit(1)


@app.command(short_help="Fit one mixed model and print it.")
def fit(
    table: Table,
    formula: Annotated[str, typer.Argument(metavar="FORMULA", help="As in lme4; quote it for the shell.")],
    ml: Annotated[bool, typer.Option("--ml", help="Maximum likelihood instead of restricted (REML).")] = False,
    dispersion: Dispersion = None,
) -> None:
    """Fit one mixed model and print its fixed effects and variance components.

    \b
    Example:
      lmemtest fit runs.csv "loss ~ tool + (1 | task) + (1 | task:tool)"
    """
    with _errors():
        with _progress() as step:
            step("reading the table")
            from lmemtest.data.readers import read_table
            from lmemtest.formula.bars import parse_formula
            from lmemtest.model import fit_lmm

            groups = [column for bar in parse_formula(formula).bars for column in bar.groups]
            groups += [dispersion] if dispersion is not None else []
            data = read_table(table, labels=list(dict.fromkeys(groups)))
            step("fitting the model")
            fitted = fit_lmm(formula, data, reml=not ml, dispersion=dispersion)
        typer.echo(fitted.summary())


@app.command(short_help="Tuning curves with confidence bands.")
def bands(
    table: Trials,
    score: Score = None,
    direction: Way = None,
    algorithm: Compared = None,
    benchmark: Benchmark = None,
    statistic: Annotated[str, typer.Option("--statistic", help="median, mean, or a quantile such as 0.9.")] = "median",
    confidence: Annotated[float, typer.Option("--confidence", help="Probability that a band holds.")] = 0.8,
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
    with _errors():
        from lmemtest.report.curves import check_folder, headline, save_curves

        check_folder(output)
        with _progress() as step:
            step("reading the table")
            way = direction.value if direction else None
            data, by = _read_trials(table, {"score": score, "direction": way}, algorithm, benchmark, seed)
            step("estimating the curves")
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


def _read_trials(
    table: Path, roles: dict[str, str | None], algorithm: str | None, benchmark: str | None, seed: str | None
) -> tuple[Any, list[str]]:
    """The table of trials with the columns that tell curves apart; without an algorithm all trials are of one."""
    from lmemtest.data.readers import read_table
    from lmemtest.errors import ArgumentError

    by = [name for name in (benchmark, algorithm) if name is not None]
    data = read_table(table, labels=by, seeds=[seed] if seed else [])
    missing = [f"--{name}" for name, value in roles.items() if value is None]
    if missing:
        _ask_for(missing, table, data.columns)
    if algorithm is not None:
        return data, by
    if ONE_ALGORITHM in data.columns:
        raise ArgumentError(
            f"--algorithm must be given, because {table.name} has a column {ONE_ALGORITHM!r}. To take its levels "
            "together, remove the column."
        )
    return data.assign(**{ONE_ALGORITHM: "all trials"}), [*by, ONE_ALGORITHM]


def _ask_for(missing: list[str], table: Path, columns: Any) -> NoReturn:
    from lmemtest._validate import listed
    from lmemtest.errors import ArgumentError

    needed = " and ".join(", ".join(missing).rsplit(", ", 1))
    raise ArgumentError(f"{needed} must be given. Columns of {table.name}: {listed(columns)}.")


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
) -> dict[str, Any]:
    return {
        "score": score,
        "direction": direction.value if direction else None,
        "algorithm": algorithm,
        "benchmark": benchmark,
        "seed": seed,
        "budget": budget,
        "metafeatures": tuple(metafeature or ()),
    }


def _read(table: Path, roles: dict[str, Any]) -> Runs:
    """The table with its roles; a role that is needed and not given is asked for beside the columns that there are."""
    from lmemtest.data.readers import read_runs, read_table

    missing = [f"--{name}" for name in ("score", "direction", "algorithm") if roles[name] is None]
    if missing:
        _ask_for(missing, table, read_table(table).columns)
    return read_runs(table, **roles)


def _write_report(
    runs: Runs,
    output: Path,
    step: Callable[[str], None],
    *,
    formula: str | None = None,
    dispersion: str | None = None,
    alpha: float = 0.05,
) -> None:
    import dataclasses

    from lmemtest.report.analysis import analyze
    from lmemtest.report.document import plain
    from lmemtest.report.wording import headline

    analysis: Analysis = analyze(runs, formula=formula, dispersion=dispersion, alpha=alpha, progress=step)
    call = shlex.join(["lmemtest", *sys.argv[1:]])
    path = dataclasses.replace(analysis, call=call).save(output, progress=step)
    step("")
    for sentence in headline(analysis):
        typer.echo(plain(sentence))
    typer.echo(str(path))


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
