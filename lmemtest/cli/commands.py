"""The commands: parse, call, write."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from lmemtest.cli.inputs import UNASKED
from lmemtest.cli.options import (
    Adjustment,
    Band,
    Curves,
    Dispersion,
    Errors,
    Json,
    Output,
    RankingMethod,
    RawCsv,
    RunOptions,
    TableOptions,
    TrialOptions,
    Unit,
    budgets,
    check_options,
    number,
    statistic_of,
    takes,
)
from lmemtest.cli.reading import read_runs, read_trials, settled_curves, source_of
from lmemtest.cli.rendering import INTERRUPTED, TYPED, progress, say, session, write_report, write_result


class _Group(TyperGroup):
    """Commands that know what was typed, for advice that can be copied."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        ctx.meta[TYPED] = ["lmemtest", *args]
        return super().parse_args(ctx, args)


app = typer.Typer(
    name="lmemtest",
    cls=_Group,
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


@app.command(short_help="Compare algorithms and write a report.")
@takes(RunOptions)
def report(
    context: typer.Context,
    given: RunOptions,
    formula: Annotated[
        str | None, typer.Option("--formula", help="A model of your own instead of the recommended one.")
    ] = None,
    population: Annotated[
        str | None,
        typer.Option("--population", metavar="ROLE", help="Claims about new ones of this role: family or benchmark."),
    ] = None,
    curves: Curves = None,
    dispersion: Dispersion = None,
    alpha: Annotated[
        float,
        typer.Option("--alpha", metavar="NUMBER", parser=number, help="Significance level for all pairs together."),
    ] = 0.05,
    adjust: Annotated[
        str | None,
        typer.Option(
            "--adjust", metavar="METHOD", help="For the number of pairs: stepdown (default), tukey, holm, none, ..."
        ),
    ] = None,
    se: Errors = None,
    ddf: Annotated[
        str, typer.Option("--ddf", metavar="METHOD", help="Degrees of freedom: satterthwaite, kenward-roger, ...")
    ] = "satterthwaite",
    json: Json = False,
    raw_csv: RawCsv = False,
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
    with session(context):
        from lmemtest.report.files import check_report_path

        target = None if json and output is None else check_report_path(output or UNASKED["report"])
        check_options(alpha, adjust, ddf, given, curves)
        runs = read_runs(given, settle=True, own_model=formula is not None)
        curves = curves if formula is not None else settled_curves(runs, curves, given.yes)
        with progress() as step:
            from lmemtest.report.analysis import analyze

            analysis = analyze(
                runs,
                formula=formula,
                population=population,
                curves=curves,
                dispersion=dispersion,
                alpha=alpha,
                adjust=adjust,
                se=se,
                ddf=ddf,
                progress=step,
            )
            write_report(analysis, target, step, json=json, raw_csv=raw_csv)


@app.command(short_help="Write the report of the bundled runs.")
def demo(context: typer.Context, output: Output = None) -> None:
    """Write the report of the bundled runs: six hyperparameter optimisers on 20 benchmarks.

    The answer is printed in a few sentences; the last line is the path of the report.

    \b
    Example:
      lmemtest demo -o demo.html
    """
    with session(context):
        from lmemtest.report.files import check_report_path

        target = check_report_path(output or UNASKED["demo"])
        with progress() as step:
            step("reading the table")
            from lmemtest.bench.data.datasets import load_hpo_runs
            from lmemtest.report.analysis import analyze

            write_report(analyze(load_hpo_runs(), progress=step), target, step)


@app.command(short_help="Look for what can spoil a comparison.")
@takes(RunOptions)
def check(
    context: typer.Context,
    given: RunOptions,
    whole: Annotated[bool, typer.Option("--all", help="Print every finding, not the first of each kind.")] = False,
    json: Json = False,
    raw_csv: RawCsv = False,
    output: Output = None,
) -> None:
    """Look for what can spoil a comparison: columns without a role, missing, duplicate, tied or unpaired runs, scales.

    The exit code is 1 if there are errors that stop a fit, and 0 otherwise. At most 60 lines are printed; with --all,
    or in a file with -o, there is every finding.

    \b
    Example:
      lmemtest check runs.csv --score loss --direction minimize --algorithm tool --benchmark task --seed seed
    """
    with session(context):
        from lmemtest.report.files import check_report_path

        target = None if output is None else check_report_path(output)
        check_options(None, None, None, given)
        runs = read_runs(given, settle=given.yes)
        with progress() as step:
            found = runs.check(progress=step)
            if target is not None:
                found.save(target, escape=not raw_csv)
        findings = found.to_frame("findings")
        typer.echo(findings.to_json(orient="records", indent=2) if json else found.summary(whole=whole))
        if target is not None:
            typer.echo(str(target))
        if any(finding.severity == "error" for finding in found.findings):
            raise typer.Exit(1)


@app.command(name="rank", short_help="Rank algorithms by a mixed model or by classical tests.")
@takes(RunOptions)
def rank_runs(
    context: typer.Context,
    given: RunOptions,
    method: Annotated[
        RankingMethod, typer.Option("--method", help="lmem: mixed model; all: several side by side.")
    ] = RankingMethod.lmem,
    test: Annotated[
        str,
        typer.Option("--test", metavar="NAME", help="t, tukey, nemenyi, conover, wilcoxon; signed_rank, hierarchical."),
    ] = "auto",
    control: Annotated[
        str | None, typer.Option("--control", metavar="NAME", help="Compare all others with this algorithm only.")
    ] = None,
    alpha: Annotated[
        float,
        typer.Option("--alpha", metavar="NUMBER", parser=number, help="Significance level for all pairs together."),
    ] = 0.05,
    adjust: Annotated[
        str | None, typer.Option("--adjust", metavar="METHOD", help="For the number of pairs: holm, shaffer, ...")
    ] = None,
    se: Errors = None,
    rope: Annotated[
        float,
        typer.Option(
            "--rope", metavar="NUMBER", parser=number, help="Bayesian: what does not matter, in units of the score."
        ),
    ] = 0.0,
    curves: Curves = None,
    json: Json = False,
    raw_csv: RawCsv = False,
    output: Output = None,
) -> None:
    """Rank the algorithms of a table and say which of them differ; with -o as a document, table or figure.

    Every benchmark counts once, however many seeds it has. The ranking is printed with its pairs in sentences.

    \b
    Example:
      lmemtest rank accuracies.csv --wide --direction maximize --method frequentist
      lmemtest rank runs.csv --score loss --direction minimize --algorithm tool --benchmark task --seed seed -o rank.tex
    """
    with session(context):
        from lmemtest.report.files import check_report_path

        target = None if output is None else check_report_path(output)
        check_options(alpha, None, None, given, curves)
        runs = read_runs(given, settle=True)
        curves = settled_curves(runs, curves, given.yes)
        with progress() as step:
            step("ranking")
            from lmemtest.bench.ranking.rank import rank

            options: dict[str, Any] = {"test": test, "control": control, "alpha": alpha, "adjust": adjust, "se": se}
            found = rank(runs, method.value, **options, curves=curves, rope=rope, rng=0)
            write_result(found, target, step, json=json, raw_csv=raw_csv)


@app.command(short_help="How often one algorithm is better than another.")
@takes(RunOptions)
def outperform(
    context: typer.Context,
    given: RunOptions,
    only: Annotated[
        list[str] | None,
        typer.Option("--only", metavar="NAME", help="Compare these algorithms only; give it twice or more."),
    ] = None,
    control: Annotated[
        str | None, typer.Option("--control", metavar="NAME", help="Compare this algorithm with all others.")
    ] = None,
    unpaired: Annotated[
        bool, typer.Option("--unpaired", help="Compare all runs with all, not those of the same seed.")
    ] = False,
    gamma: Annotated[
        float,
        typer.Option("--gamma", metavar="NUMBER", parser=number, help="Probability from which an advantage matters."),
    ] = 0.75,
    alpha: Annotated[
        float,
        typer.Option("--alpha", metavar="NUMBER", parser=number, help="Significance level for all pairs together."),
    ] = 0.05,
    method: Annotated[
        str, typer.Option("--method", metavar="NAME", help="Of the intervals over benchmarks: mixed, percentile.")
    ] = "auto",
    json: Json = False,
    raw_csv: RawCsv = False,
    output: Output = None,
) -> None:
    """Say how often a run of one algorithm is better than a run of another, and whether that is often enough to matter.

    Runs are paired by their seed on each benchmark. All pairs of algorithms are compared, with intervals for all of
    them together; the better one of a pair comes first. With -o as a document, table or figure.

    \b
    Example:
      lmemtest outperform runs.csv --score loss --direction minimize --algorithm tool --benchmark task --seed seed
      lmemtest outperform runs.csv --yes --only HB --only RS --gamma 0.8 -o outperform.html
    """
    with session(context):
        from lmemtest.report.files import check_report_path

        target = None if output is None else check_report_path(output)
        check_options(alpha, None, None, given)
        from lmemtest.bench.outperforming.verdict import check_gamma

        check_gamma(gamma)
        runs = read_runs(given, settle=True)
        with progress() as step:
            step("comparing runs")
            from lmemtest.bench.outperforming.outperforming import outperforming

            found = outperforming(
                runs,
                paired=not unpaired,
                gamma=gamma,
                alpha=alpha,
                algorithms=None if only is None else tuple(only),
                control=control,
                method=method,
                rng=0,
            )
            write_result(found, target, step, json=json, raw_csv=raw_csv)


@app.command(short_help="Fit one mixed model and print it.")
@takes(TableOptions)
def fit(
    context: typer.Context,
    given: TableOptions,
    formula: Annotated[str, typer.Argument(metavar="FORMULA", help="As in lme4; quote it for the shell.")],
    ml: Annotated[bool, typer.Option("--ml", help="Maximum likelihood instead of restricted (REML).")] = False,
    dispersion: Dispersion = None,
) -> None:
    """Fit one mixed model and print its fixed effects and variance components.

    \b
    Example:
      lmemtest fit runs.csv "loss ~ tool + (1 | task) + (1 | task:tool)"
    """
    with session(context):
        source = source_of(given)
        with progress() as step:
            step("reading the table")
            from lmemtest.bench.data.where import rows_where
            from lmemtest.lmm.formula.bars import parse_formula

            groups = [column for bar in parse_formula(formula).bars for column in bar.groups]
            groups += [dispersion] if dispersion is not None else []
            data = source.read(labels=list(dict.fromkeys(groups)))
            data = rows_where(data, given.where, {}) if given.where else data
            step("fitting the model")
            from lmemtest.lmm.model import fit_lmm

            fitted = fit_lmm(formula, data, reml=not ml, dispersion=dispersion)
        typer.echo(fitted.summary())


@app.command(short_help="Tuning curves with confidence bands.")
@takes(TrialOptions)
def bands(
    context: typer.Context,
    given: TrialOptions,
    statistic: Annotated[str, typer.Option("--statistic", help="median, mean, or a quantile such as 0.9.")] = "median",
    level: Annotated[
        float,
        typer.Option("--level", metavar="NUMBER", parser=number, help="Probability that a band holds."),
    ] = 0.8,
    band: Annotated[Band, typer.Option("--band", help="Shape of the bands.")] = Band.ld_highest_density,
    k_max: Annotated[int | None, typer.Option("--k-max", metavar="K", help="Last number of trials.")] = None,
    bounds: Annotated[
        tuple[float, float] | None, typer.Option("--bounds", metavar="LOW HIGH", help="Scores that can occur.")
    ] = None,
    cost: Annotated[str | None, typer.Option("--cost", metavar="COLUMN", help="Cost of a trial.")] = None,
    adjust: Annotated[Adjustment, typer.Option("--adjust", help="Of the level, over benchmarks.")] = Adjustment.none,
    unit: Annotated[Unit, typer.Option("--unit", help="seed: for adaptive optimisers.")] = Unit.trials,
    pointwise: Annotated[
        bool, typer.Option("--pointwise", help="With --unit seed: limits for each budget by itself.")
    ] = False,
    raw_csv: RawCsv = False,
    output: Annotated[
        Path, typer.Option("-o", "--output", metavar="FOLDER", help="Folder for the files; may be a new one.")
    ] = Path("lmemtest-bands"),
) -> None:
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
    with session(context, path="TRIALS"):
        from lmemtest.report.files import check_folder

        check_folder(output)
        data, by = read_trials(given)
        with progress() as step:
            step("estimating the curves")
            from lmemtest.report.curves import headline, save_curves
            from lmemtest.tuning import curves

            found = curves(
                data,
                score=given.score,
                direction=given.direction,
                by=by,
                level=level,
                band=band.value,
                k=budgets(k_max, cost, unit.value),
                statistic=statistic_of(statistic),
                cost=cost,
                bounds=bounds,
                adjust=adjust.value,
                unit=unit.value,
                seed=given.seed,
                budget=given.budget,
                simultaneous=not pointwise,
            )
            paths = save_curves(found, output, progress=step, escape=not raw_csv)
            step("")
        for sentence in headline(found):
            say(sentence)
        for path in paths:
            typer.echo(str(path))
