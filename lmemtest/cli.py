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
READER_GONE = 141  # what a shell reports of a program that a closed pipe ends

app = typer.Typer(
    name="lmemtest",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # plain help, also where it is piped
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


class Direction(str, Enum):
    """Which scores are good."""

    minimize = "minimize"
    maximize = "maximize"


Table = Annotated[Path, typer.Argument(metavar="RUNS", help="Table of runs: .parquet, .csv, .csv.gz, .jsonl or .json.")]
Score = Annotated[str | None, typer.Option("--score", metavar="COLUMN", help="Numeric column to compare. Required.")]
Way = Annotated[Direction | None, typer.Option("--direction", help="Which scores are good. Required.")]
Algorithm = Annotated[str | None, typer.Option("--algorithm", metavar="COLUMN", help="What is compared. Required.")]
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


# ------------------------------------------------------------------------------------------------------ helpers


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
        from lmemtest._validate import listed
        from lmemtest.errors import ArgumentError

        columns = listed(read_table(table).columns)
        needed = " and ".join(", ".join(missing).rsplit(", ", 1))
        raise ArgumentError(f"{needed} must be given. Columns of {table.name}: {columns}.")
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
    """A line on a terminal's standard error that says what is being done; nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console

    with Console(stderr=True).status("starting") as status:

        def step(text: str) -> None:
            if text:
                status.update(f"{text} ...")
            else:
                status.stop()

        yield step
