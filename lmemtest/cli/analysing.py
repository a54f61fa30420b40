"""The commands about runs of algorithms: read what was typed, call a function of the package, return its result."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import typer

from lmemtest.cli.command import command
from lmemtest.cli.options import ROLES, RUNS, check_options, chosen, number_or_text
from lmemtest.cli.reading import (
    PREPARING,
    name_of,
    read_answerable,
    read_runs,
    read_table,
    read_trials,
    settled_curves,
    split_failed,
    typed_words,
)
from lmemtest.cli.rendering import Step, drawing_beside, say, say_verdict, screen, tell, write_report

if TYPE_CHECKING:
    from lmemtest.bench.data.guessing import Reading
    from lmemtest.bench.data.runs import Runs
    from lmemtest.core.result import Result
    from lmemtest.report.analysis import Analysis


@command(
    "report",
    "RUNS MODEL PLANNED variants WRITTEN",
    "Compare algorithms and write a report.",
    calls="report.analysis:analyze",
)
def report(arguments: SimpleNamespace, step: Step) -> None:
    """Compare the algorithms of a table and write a report, by default as one HTML file.

    The answer is printed in a few sentences; the last line is the path of the report. An existing file is replaced
    only when the new one is complete. With --json and without -o no file is written.

    Missing roles are guessed from names and structure and shown: on a terminal you are asked, elsewhere --yes accepts
    them.

    \b
    Example:
      lmemtest report runs.parquet --score value --direction minimize --algorithm algorithm \\
        --benchmark benchmark --seed seed --budget used_fidelity --metafeature prior -o report.html
      lmemtest report results.xlsx --wide --direction maximize
      lmemtest report runs.csv --yes
    """
    with drawing_beside(arguments.paths):
        runs = _compared(arguments, step)
        write_report(_analysed(runs, arguments, step), arguments, step)


def _compared(arguments: SimpleNamespace, step: Step) -> Runs:
    """The table, with what had to be asked."""
    check_options(arguments)
    runs = read_runs(arguments, settle=True, own_model=arguments.formula is not None)
    arguments.curves = (
        arguments.curves if arguments.formula is not None else settled_curves(runs, arguments.curves, arguments.yes)
    )
    step("analysing")
    return runs


def _analysed(runs: Runs, arguments: SimpleNamespace, step: Step) -> Analysis:
    from lmemtest.report.analysis import analyze

    options = chosen(arguments, "MODEL PLANNED variants")
    if options.get("looked", "").isdecimal():
        options["looked"] = int(options["looked"])
    return analyze(runs, **options, progress=step)


@command(
    "paper",
    "RUNS MODEL PLANNED overwrite output",
    "Figures, tables and sentences for a paper.",
    calls="report.analysis:analyze",
)
def paper(arguments: SimpleNamespace, step: Step) -> None:
    """Write the pieces of a paper into a folder: figures, tables, results and methods in words, and references.

    Each is a separate file for \\input in LaTeX; article.tex combines them, and supplement.tex has two pages on
    model, checks and limits. Files of an earlier call are replaced, unless they were edited since. The answer is
    printed in a few sentences, with the paths at the end.

    \b
    Example:
      lmemtest paper runs.csv --score loss --direction minimize --algorithm tool --benchmark task --seed seed -o paper
      lmemtest paper runs.csv --yes -o paper
    """
    import dataclasses

    from lmemtest.core.caller import command_with
    from lmemtest.report.files import check_paper_folder

    folder = check_paper_folder(arguments.output or Path("lmemtest-paper"), overwrite=arguments.overwrite)
    analysis = dataclasses.replace(_analysed(_compared(arguments, step), arguments, step), call=command_with(()))
    paths = analysis.save_paper(folder, overwrite=arguments.overwrite, progress=step)
    step("")
    say_verdict(analysis)
    for path in paths:
        typer.echo(str(path))


@command(
    "explore",
    "RUNS MODEL no_browser",
    "Vary the analysis in a browser.",
    calls="bench.robustness.variant:variant",
)
def explore(arguments: SimpleNamespace, step: Step) -> None:
    """Open a page on which the analysis can be varied: benchmarks, algorithms, scales, options, roles.

    Only this computer can open it; it ends with Ctrl-C or the terminal. The options are the plan, whose verdict stays
    visible; variants are exploratory, and are counted. The page shows the code of each variant.

    \b
    Example:
      lmemtest explore runs.csv --yes
      lmemtest explore runs.csv --score loss --direction minimize --algorithm tool --benchmark task --alpha 0.01
    """
    check_options(arguments)
    doubts: list[Reading] = []
    runs = read_runs(arguments, settle=True, own_model=arguments.formula is not None, doubts=doubts)
    plan = chosen(arguments, "MODEL")
    step("analysing")
    from lmemtest.core.caller import shell_line
    from lmemtest.report.explore import explorer
    from lmemtest.report.serve import serving, until_interrupted

    typed = typed_words(arguments, (name for name in RUNS if name not in ("table", "yes", *ROLES)))
    prepared = bool(typed_words(arguments, (name for name in PREPARING if name not in ("wide", "failed"))))
    prepared = prepared or bool(split_failed(arguments.failed)[1])
    source = {"path": str(arguments.table), "typed": typed, "line": shell_line, "prepared": prepared, "doubts": doubts}
    ask = explorer(runs, plan=plan, source=source)
    planned = ask("answer", "")
    step("")
    if "error" in planned:
        tell(f"The plan has no answer; correct it on the page. {planned['error']}")
    with serving(ask, f"Algorithms by {runs.score}") as address:
        typer.echo(address)
        say("Only this computer can open it. Ctrl-C ends it.", err=True)
        if not arguments.no_browser:
            import webbrowser

            webbrowser.open(address)
        until_interrupted()


@command(
    "demo",
    "output",
    "Write the report of the bundled runs.",
    needed=(),
)
def demo(arguments: SimpleNamespace, step: Step) -> None:
    """Write the report of the bundled runs: six hyperparameter optimisers on 20 benchmarks.

    The answer is printed in a few sentences; the last line is the path of the report.

    \b
    Example:
      lmemtest demo -o demo.html
    """
    with drawing_beside(arguments.paths):
        step("reading the table")
        from lmemtest.bench.data.datasets import load_hpo_runs
        from lmemtest.report.analysis import analyze

        write_report(analyze(load_hpo_runs(), progress=step), arguments, step)


@command(
    "check",
    "RUNS effect whole WRITTEN",
    "What can these runs answer, and what are their problems?",
)
def check(arguments: SimpleNamespace, step: Step) -> None:
    """Say what a table can answer, for which population and with which command; then check for problems.

    The first screen has a line per question, with what blocks it and how many benchmarks, runs or seeds would unblock
    it. Missing roles are guessed by names and structure, and shown; where several readings are equally plausible, the
    screen shows the first one, and there are no findings. Runs without a score count as failed in its commands.
    Findings are columns without a role, missing, duplicate, tied or unpaired runs, and scales. The exit code is 1 if
    errors prevent a fit, 2 if the columns do not determine the roles, and 0 otherwise. At most 60 lines of findings
    are printed; --all, or a file with -o, has every finding.

    \b
    Example:
      lmemtest check runs.csv
      lmemtest check runs.csv --score loss --direction minimize --algorithm tool --benchmark task --seed seed
      lmemtest check runs.csv --effect 0.02
    """
    check_options(arguments)
    answers, runs, refusal = read_answerable(arguments, step)
    if not arguments.json:
        step("")
        typer.echo(f"{screen(answers, name_of(arguments))}\n")
    if runs is None and answers.answers["answerable"].eq("no").all():
        raise refusal
    checks = None if runs is None else runs.check(progress=step)
    step("")
    if arguments.json:
        from lmemtest.report.files import json_text, records

        reading = {"reading": answers.facts} | {name: answers.values[name] for name in ("roles", "others", "failed")}
        findings = [] if checks is None else records(checks.to_frame("findings"))
        typer.echo(json_text({**reading, "answers": records(answers.answers), "findings": findings}), nl=False)
    if checks is None:
        tell(f"There are no findings: {refusal}")
        arguments.exit_code = 2 * bool(answers.others)
        return
    if not arguments.json:
        typer.echo(checks.summary(whole=arguments.whole))
    for path in arguments.paths:
        checks.save(path, escape=not arguments.raw_csv)
        if not arguments.json:
            typer.echo(str(path))
    arguments.exit_code = int(any(finding.severity == "error" for finding in checks.findings))


@command(
    "rank",
    "RUNS method test control alpha adjust vcov rope curves WRITTEN",
    "Rank algorithms by a mixed model or by classical tests.",
    calls="bench.ranking.rank:rank",
)
def rank(arguments: SimpleNamespace, step: Step) -> Result:
    """Rank the algorithms of a table and say which differ; with -o as a document, table or figure.

    Every benchmark counts once, however many seeds it has. The ranking is printed with its pairs in sentences.

    \b
    Example:
      lmemtest rank accuracies.csv --wide --direction maximize --method frequentist
      lmemtest rank runs.csv --score loss --direction minimize --algorithm tool --benchmark task --seed seed -o rank.tex
    """
    check_options(arguments)
    runs = read_runs(arguments, settle=True)
    arguments.curves = settled_curves(runs, arguments.curves, arguments.yes)
    step("ranking")
    from lmemtest.bench.ranking.rank import rank

    return rank(runs, **chosen(arguments, "method test control alpha adjust vcov rope curves"), rng=0)


@command(
    "outperform",
    "RUNS only control unpaired gamma alpha method WRITTEN",
    "How often a run of one algorithm beats a run of another.",
    calls="bench.outperforming.outperforming:outperforming",
)
def outperform(arguments: SimpleNamespace, step: Step) -> Result:
    """Estimate how often a run of one algorithm beats a run of another, and whether that is often enough to matter.

    Runs are paired by their seed on each benchmark. All pairs of algorithms are compared, with simultaneous
    intervals; the better one of a pair comes first. With -o as a document, table or figure.

    \b
    Example:
      lmemtest outperform runs.csv --score loss --direction minimize --algorithm tool --benchmark task --seed seed
      lmemtest outperform runs.csv --yes --only HB --only RS --gamma 0.8 -o outperform.html
    """
    check_options(arguments)
    if arguments.gamma is not None:
        from lmemtest.bench.outperforming.verdict import check_gamma

        check_gamma(arguments.gamma)
    runs = read_runs(arguments, settle=True)
    step("comparing runs")
    from lmemtest.bench.outperforming.outperforming import outperforming

    algorithms = None if arguments.only is None else tuple(arguments.only)
    options = chosen(arguments, "control gamma alpha method")
    return outperforming(runs, algorithms=algorithms, paired=not arguments.unpaired, **options, rng=0)


@command(
    "fit",
    "TABLE formula ml dispersion",
    "Fit one mixed model and print it.",
    needed=("table", "formula"),
)
def fit(arguments: SimpleNamespace, step: Step) -> None:
    """Fit one mixed model and print its fixed effects and variance components.

    \b
    Example:
      lmemtest fit runs.csv "loss ~ tool + (1 | task) + (1 | task:tool)"
    """
    step("reading the table")
    from lmemtest.lmm.formula.bars import parse_formula

    groups = [column for bar in parse_formula(arguments.formula).bars for column in bar.groups]
    groups += [arguments.dispersion] if arguments.dispersion is not None else []
    data = read_table(arguments, labels=list(dict.fromkeys(groups)))
    step("fitting the model")
    from lmemtest.lmm.model import fit_lmm

    fitted = fit_lmm(arguments.formula, data, reml=not arguments.ml, dispersion=arguments.dispersion)
    step("")
    typer.echo(fitted.summary())


@command(
    "bands",
    "TABLE score direction algorithm benchmark budget seed statistic level band k_max bounds cost adjust unit "
    "pointwise raw_csv output",
    "Tuning curves with confidence bands.",
    calls="tuning:curves",
)
def bands(arguments: SimpleNamespace, step: Step) -> None:
    """Estimate how good the best of k trials is, for each algorithm on each benchmark, with confidence bands.

    Trials must be independent: random search. For adaptive optimisers use --unit seed with --seed and --budget. The
    table and the figures are written into the folder, replacing files of an earlier call; the answer is printed in a
    few sentences, with the paths at the end.

    \b
    Example:
      lmemtest bands trials.csv --score loss --direction minimize --benchmark task --algorithm model -o bands
      lmemtest bands runs.csv --score loss --direction minimize --benchmark task --algorithm optimizer \\
        --unit seed --seed seed --budget epochs -o bands
    """
    from lmemtest.report.files import check_folder

    folder = arguments.output or Path("lmemtest-bands")
    check_folder(folder)
    data, by = read_trials(arguments)
    step("estimating the curves")
    from lmemtest.report.curves import headline, save_curves
    from lmemtest.tuning import curves

    options = chosen(arguments, "score direction level band cost bounds adjust unit seed budget")
    if arguments.statistic is not None:
        options["statistic"] = number_or_text(arguments.statistic)
    result = curves(data, by=by, k=_budgets(arguments), simultaneous=not arguments.pointwise, **options)
    paths = save_curves(result, folder, progress=step, escape=not arguments.raw_csv)
    step("")
    for sentence in headline(result):
        say(sentence)
    for path in paths:
        typer.echo(str(path))


def _budgets(arguments: SimpleNamespace) -> list[float] | None:
    """The numbers of trials up to the last one, evenly on the log scale if there are many."""
    if arguments.k_max is None:
        return None
    from lmemtest.core.validate import check_positive_int
    from lmemtest.errors import ArgumentError

    check_positive_int(arguments.k_max, "--k-max")
    if arguments.cost is not None or arguments.unit == "seed":
        other = "--cost" if arguments.cost is not None else "--unit seed"
        raise ArgumentError(f"--k-max counts trials, but with {other} budgets are no trials. Leave it out.")
    from lmemtest.tuning.checks import whole_budgets
    from lmemtest.tuning.curve import MOST_POINTS

    return whole_budgets(arguments.k_max, MOST_POINTS).tolist()
