"""The commands: read what was typed, call a function of the package, return its result."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from lmemtest.cli.command import Typed, command
from lmemtest.cli.options import ROLES, RUNS, TABLE, WRITTEN, check_options, chosen
from lmemtest.cli.reading import read_runs, read_table, read_trials, settled_curves
from lmemtest.cli.rendering import INTERRUPTED, say, write_report

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import SimpleNamespace

    from lmemtest.core.result import Result

    Step = Callable[[str], None]

app = typer.Typer(
    name="lmemtest",
    cls=Typed,
    no_args_is_help=True,
    rich_markup_mode=None,  # plain help, also where it is piped
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def main() -> None:
    """Run the command line; the entry point of the console script."""
    try:
        app(prog_name="lmemtest")
    except KeyboardInterrupt:  # before a command has begun
        raise SystemExit(INTERRUPTED) from None


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


@command(
    app,
    "report",
    (*RUNS, "formula", "population", "curves", "dispersion", "alpha", "adjust", "vcov", "ddf", *WRITTEN),
    "Compare algorithms and write a report.",
    calls="report.analysis:analyze",
)
def report(given: SimpleNamespace, step: Step) -> None:
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
    check_options(given)
    runs = read_runs(given, settle=True, own_model=given.formula is not None)
    given.curves = given.curves if given.formula is not None else settled_curves(runs, given.curves, given.yes)
    step("analysing")
    from lmemtest.report.analysis import analyze

    options = chosen(given, "formula population curves dispersion alpha adjust vcov ddf")
    write_report(analyze(runs, **options, progress=step), given, step)


@command(app, "demo", ("output",), "Write the report of the bundled runs.", needed=())
def demo(given: SimpleNamespace, step: Step) -> None:
    """Write the report of the bundled runs: six hyperparameter optimisers on 20 benchmarks.

    The answer is printed in a few sentences; the last line is the path of the report.

    \b
    Example:
      lmemtest demo -o demo.html
    """
    step("reading the table")
    from lmemtest.bench.data.datasets import load_hpo_runs
    from lmemtest.report.analysis import analyze

    write_report(analyze(load_hpo_runs(), progress=step), given, step)


@command(app, "check", (*RUNS, "whole", *WRITTEN), "Look for what can spoil a comparison.")
def check(given: SimpleNamespace, step: Step) -> None:
    """Look for what can spoil a comparison: columns without a role, missing, duplicate, tied or unpaired runs, scales.

    The exit code is 1 if there are errors that stop a fit, and 0 otherwise. At most 60 lines are printed; with --all,
    or in a file with -o, there is every finding.

    \b
    Example:
      lmemtest check runs.csv --score loss --direction minimize --algorithm tool --benchmark task --seed seed
    """
    check_options(given)
    checks = read_runs(given, settle=given.yes).check(progress=step)
    if given.path is not None:
        checks.save(given.path, escape=not given.raw_csv)
    step("")
    findings = checks.to_frame("findings")
    typer.echo(findings.to_json(orient="records", indent=2) if given.json else checks.summary(whole=given.whole))
    if given.path is not None:
        typer.echo(str(given.path))
    given.exit_code = int(any(finding.severity == "error" for finding in checks.findings))


@command(
    app,
    "rank",
    (*RUNS, "method", "test", "control", "alpha", "adjust", "vcov", "rope", "curves", *WRITTEN),
    "Rank algorithms by a mixed model or by classical tests.",
    calls="bench.ranking.rank:rank",
)
def rank(given: SimpleNamespace, step: Step) -> Result:
    """Rank the algorithms of a table and say which of them differ; with -o as a document, table or figure.

    Every benchmark counts once, however many seeds it has. The ranking is printed with its pairs in sentences.

    \b
    Example:
      lmemtest rank accuracies.csv --wide --direction maximize --method frequentist
      lmemtest rank runs.csv --score loss --direction minimize --algorithm tool --benchmark task --seed seed -o rank.tex
    """
    check_options(given)
    runs = read_runs(given, settle=True)
    given.curves = settled_curves(runs, given.curves, given.yes)
    step("ranking")
    from lmemtest.bench.ranking.rank import rank

    return rank(runs, **chosen(given, "method test control alpha adjust vcov rope curves"), rng=0)


@command(
    app,
    "outperform",
    (*RUNS, "only", "control", "unpaired", "gamma", "alpha", "method", *WRITTEN),
    "How often one algorithm is better than another.",
    calls="bench.outperforming.outperforming:outperforming",
)
def outperform(given: SimpleNamespace, step: Step) -> Result:
    """Say how often a run of one algorithm is better than a run of another, and whether that is often enough to matter.

    Runs are paired by their seed on each benchmark. All pairs of algorithms are compared, with intervals for all of
    them together; the better one of a pair comes first. With -o as a document, table or figure.

    \b
    Example:
      lmemtest outperform runs.csv --score loss --direction minimize --algorithm tool --benchmark task --seed seed
      lmemtest outperform runs.csv --yes --only HB --only RS --gamma 0.8 -o outperform.html
    """
    check_options(given)
    if given.gamma is not None:
        from lmemtest.bench.outperforming.verdict import check_gamma

        check_gamma(given.gamma)
    runs = read_runs(given, settle=True)
    step("comparing runs")
    from lmemtest.bench.outperforming.outperforming import outperforming

    algorithms = None if given.only is None else tuple(given.only)
    options = chosen(given, "control gamma alpha method")
    return outperforming(runs, algorithms=algorithms, paired=not given.unpaired, **options, rng=0)


@command(
    app,
    "fit",
    (*TABLE, "formula", "ml", "dispersion"),
    "Fit one mixed model and print it.",
    needed=("table", "formula"),
)
def fit(given: SimpleNamespace, step: Step) -> None:
    """Fit one mixed model and print its fixed effects and variance components.

    \b
    Example:
      lmemtest fit runs.csv "loss ~ tool + (1 | task) + (1 | task:tool)"
    """
    step("reading the table")
    from lmemtest.lmm.formula.bars import parse_formula

    groups = [column for bar in parse_formula(given.formula).bars for column in bar.groups]
    groups += [given.dispersion] if given.dispersion is not None else []
    data = read_table(given, labels=list(dict.fromkeys(groups)))
    step("fitting the model")
    from lmemtest.lmm.model import fit_lmm

    fitted = fit_lmm(given.formula, data, reml=not given.ml, dispersion=given.dispersion)
    step("")
    typer.echo(fitted.summary())


@command(
    app,
    "bands",
    (
        *(*TABLE, *ROLES[:6], "statistic", "level", "band", "k_max", "bounds", "cost"),
        *("adjust", "unit", "pointwise", "raw_csv", "output"),
    ),
    "Tuning curves with confidence bands.",
    calls="tuning:curves",
)
def bands(given: SimpleNamespace, step: Step) -> None:
    """Estimate how good the best of k trials is, for each algorithm on each benchmark, with confidence bands.

    Trials must be independent: random search. For adaptive optimisers give --unit seed with --seed and --budget. The
    table and the figures are written into the folder, replacing files of an earlier call; the answer is printed in a
    few sentences, and the paths at the end.

    \b
    Example:
      lmemtest bands trials.csv --score loss --direction minimize --benchmark task --algorithm model -o bands
      lmemtest bands runs.csv --score loss --direction minimize --benchmark task --algorithm optimizer \\
        --unit seed --seed seed --budget epochs -o bands
    """
    from lmemtest.report.files import check_folder

    folder = given.output or Path("lmemtest-bands")
    check_folder(folder)
    data, by = read_trials(given)
    step("estimating the curves")
    from lmemtest.report.curves import headline, save_curves
    from lmemtest.tuning import curves

    options = chosen(given, "score direction level band cost bounds adjust unit seed budget")
    if given.statistic is not None:
        options["statistic"] = _quantile(given.statistic)
    found = curves(data, by=by, k=_budgets(given), simultaneous=not given.pointwise, **options)
    paths = save_curves(found, folder, progress=step, escape=not given.raw_csv)
    step("")
    for sentence in headline(found):
        say(sentence)
    for path in paths:
        typer.echo(str(path))


def _budgets(given: SimpleNamespace) -> list[float] | None:
    """The numbers of trials up to the last one, evenly on the log scale if there are many."""
    if given.k_max is None:
        return None
    from lmemtest.core.validate import check_positive_int
    from lmemtest.errors import ArgumentError

    check_positive_int(given.k_max, "--k-max")
    if given.cost is not None or given.unit == "seed":
        other = "--cost" if given.cost is not None else "--unit seed"
        raise ArgumentError(f"--k-max counts trials, but with {other} budgets are no trials. Leave it out.")
    from lmemtest.tuning.checks import whole_budgets
    from lmemtest.tuning.curve import MOST_POINTS

    return whole_budgets(given.k_max, MOST_POINTS).tolist()


def _quantile(text: str) -> str | float:
    """A quantile as a number, the rest as it is."""
    try:
        return float(text)
    except ValueError:
        return text
