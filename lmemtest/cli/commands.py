"""The commands: read what was typed, call a function of the package, return its result."""

from __future__ import annotations

import copy
import gc
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lmemtest.cli.answers import ANSWER_COLUMNS, read_answers
from lmemtest.cli.command import Typed, command
from lmemtest.cli.converting import converter
from lmemtest.cli.options import (
    ROLES,
    RUNS,
    TABLE,
    WRITTEN,
    absent,
    check_options,
    chosen,
    flags,
    numbers_by_name,
    values_by_metric,
)
from lmemtest.cli.reading import (
    PREPARING,
    name_of,
    policy_in,
    policy_of,
    read_answerable,
    read_runs,
    read_table,
    read_trials,
    settled_curves,
    split_failed,
    taken,
    typed_words,
)
from lmemtest.cli.rendering import INTERRUPTED, drawing_beside, say, say_verdict, screen, tell, write_report

if TYPE_CHECKING:
    from collections.abc import Callable

    from lmemtest.bench.data.guessing import Reading
    from lmemtest.bench.data.runs import Runs
    from lmemtest.bench.variation.variance_sources import VarianceSources
    from lmemtest.core.result import Result
    from lmemtest.report.analysis import Analysis

    Step = Callable[[str], None]

NO_ANSWER = 3  # of `gate`, whose exit codes 0, 1 and 2 are answers: whatever goes wrong must be none of them
PLAN_COLUMNS = ("score", "direction", "algorithm", "benchmark", "seed", "family")
PLAN_NUMBERS = (
    *("budget", "target", "effect", "power", "hours_per_training", "trials", "cost", "fixed", "at_most", "current"),
)

app = typer.Typer(
    name="lmemtest",
    cls=Typed,
    no_args_is_help=True,
    rich_markup_mode=None,  # plain help, also where it is piped
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
app.add_typer(converter, short_help="Convert the output of another tool to a table of runs.")


def main() -> None:
    """Run the command line; the entry point of the console script."""
    gc.set_threshold(50_000, 20, 100)  # a command ends soon: looking for garbage took a tenth of the time of a report
    try:
        _typed()(prog_name="lmemtest")
    except KeyboardInterrupt:  # before a command has begun
        raise SystemExit(INTERRUPTED) from None


def _typed() -> typer.Typer:
    """The command line with the command that was typed alone, if it is one: to build all takes 30 ms at each start."""
    commands = [known for known in app.registered_commands if [known.name] == sys.argv[1:2]]
    if not commands:
        return app
    alone = copy.copy(app)
    alone.registered_commands, alone.registered_groups = commands, []
    return alone


def _version(context: typer.Context, wanted: bool) -> None:
    """Print versions; `--verbose`, which is processed before, adds what numbers depend on."""
    if not wanted:
        return
    import importlib

    typer.echo(f"lmemtest {importlib.import_module('lmemtest').__version__}")
    if context.params.get("verbose"):
        from lmemtest.core.environment import environment

        for name, value in list(environment().items())[1:]:
            typer.echo(f"{name:<14} {value}")
    raise typer.Exit


@app.callback()
def _root(
    verbose: Annotated[
        bool, typer.Option("--verbose", is_eager=True, help="With --version: also packages, BLAS and processors.")
    ] = False,
    _: Annotated[bool, typer.Option("--version", callback=_version, help="Print the version and exit.")] = False,
) -> None:
    """Which of these algorithms is really better, on which benchmarks, and how certain is that?

    Mixed-effects significance testing of benchmark runs: from a table to a ranking and a report.

    \b
    Example:
      lmemtest demo
      lmemtest report runs.csv --score loss --direction minimize --algorithm tool --benchmark task -o out.html
    """
    if verbose:
        raise typer.BadParameter("--verbose needs --version: lmemtest --version --verbose.")


@command(
    app,
    "report",
    (
        *RUNS,
        "formula",
        "population",
        "curves",
        "dispersion",
        "alpha",
        "adjust",
        "vcov",
        "ddf",
        "looks",
        "maximum",
        "looked",
        "spending",
        "variants",
        *WRITTEN,
    ),
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

    names = "formula population curves dispersion alpha adjust vcov ddf looks maximum looked spending"
    options = chosen(arguments, f"{names} variants" if hasattr(arguments, "variants") else names)
    if options.get("looked", "").isdecimal():
        options["looked"] = int(options["looked"])
    return analyze(runs, **options, progress=step)


@command(
    app,
    "paper",
    (
        *(*RUNS, "formula", "population", "curves", "dispersion", "alpha", "adjust", "vcov", "ddf", "looks"),
        *("maximum", "looked", "spending", "overwrite", "output"),
    ),
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
    app,
    "explore",
    (*RUNS, "formula", "population", "curves", "dispersion", "alpha", "adjust", "vcov", "ddf", "no_browser"),
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
    plan = chosen(arguments, "formula population curves dispersion alpha adjust vcov ddf")
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


@command(app, "demo", ("output",), "Write the report of the bundled runs.", needed=())
def demo(arguments: SimpleNamespace, step: Step) -> None:
    """Write the report of the bundled runs: six hyperparameter optimisers on 20 benchmarks.

    The answer is printed in a few sentences; the last line is the path of the report.

    \b
    Example:
      lmemtest demo -o demo.html
    """
    step("reading the table")
    from lmemtest.bench.data.datasets import load_hpo_runs
    from lmemtest.core.replicates import load_beside

    with drawing_beside(arguments.paths):
        load_beside()
        from lmemtest.report.analysis import analyze

        write_report(analyze(load_hpo_runs(), progress=step), arguments, step)


@command(app, "check", (*RUNS, "effect", "whole", *WRITTEN), "What can these runs answer, and what are their problems?")
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
    app,
    "rank",
    (*RUNS, "method", "test", "control", "alpha", "adjust", "vcov", "rope", "curves", *WRITTEN),
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
    app,
    "outperform",
    (*RUNS, "only", "control", "unpaired", "gamma", "alpha", "method", *WRITTEN),
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
    app,
    "fit",
    (*TABLE, "formula", "ml", "dispersion"),
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
    app,
    "bands",
    (
        *(*TABLE, *ROLES[:6], "statistic", "level", "band", "k_max", "bounds", "cost"),
        *("adjust", "unit", "pointwise", "raw_csv", "output"),
    ),
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
        options["statistic"] = _quantile(arguments.statistic)
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


def _quantile(text: str) -> str | float:
    """A quantile as a number, the rest as it is."""
    try:
        return float(text)
    except ValueError:
        return text


# ---------------------------------------------------------------------- evaluate


@command(
    app,
    "evaluate",
    (
        *(*TABLE, "model", *ANSWER_COLUMNS, "min_score", "max_score", "drop_duplicates", "direction", "yes"),
        *("failed", "score_failures"),
        *("scale", "method", "adjust", "vcov", "alpha", "power", *WRITTEN),
    ),
    "Compare models by their answers: these items, items like these, tasks like these.",
    calls="bench.evaluation.evaluation:evaluate",
)
def evaluate(arguments: SimpleNamespace, step: Step) -> Result:
    """Say which models differ on these tasks, and which differ for tasks like these.

    Scores are 0 and 1 (solved or not) or between; items belong to tasks. The answer includes groups of models that
    cannot be distinguished, the noise of repeated attempts, and the smallest detectable difference. With -o as a
    document, table or figure.

    \b
    Example:
      lmemtest evaluate answers.csv --model model --task subject --item question --score correct
      lmemtest evaluate wide.csv --model gpt --model llama --task subject --item question
      lmemtest evaluate ratings.csv --model model --item prompt --judge judge --score rating --min 1 --max 10
      lmemtest evaluate answers.csv --model model --item id --score score --failed status --failed infra=drop
      lmemtest evaluate answers.csv --model model --task task --item id --score score --epoch epoch -o out.html
    """
    table, roles = read_answers(arguments)
    step("comparing models")
    from lmemtest.bench.evaluation.evaluation import evaluate

    options = chosen(arguments, "direction scale method adjust vcov alpha power drop_duplicates")
    which, policy = split_failed(arguments.failed)[0], policy_in(arguments)
    options |= {"score_failures": policy_of(policy) if isinstance(policy, str) else policy}
    typed = {"failed": which[0] if len(which) == 1 else which} if which else {}
    return evaluate(table, **{"direction": "maximize", **options, **roles, **typed})


@command(
    app,
    "mcnemar",
    (*TABLE, "model", "item", "task", "score", "drop_duplicates", "yes", "alpha", *WRITTEN),
    "Compare two models on one task by McNemar's exact test.",
    calls="bench.evaluation.mcnemar:mcnemar",
)
def mcnemar(arguments: SimpleNamespace, step: Step) -> Result:
    """Test exactly whether two models are right equally often: McNemar's test, with the odds.

    Scores are 0 and 1, one for each model and item. Use it if the models differ on few items; for several tasks,
    attempts, judges or graded scores use lmemtest evaluate.

    \b
    Example:
      lmemtest mcnemar answers.csv --model model --item question --score correct
      lmemtest mcnemar wide.csv --model gpt --model llama
    """
    others = dict.fromkeys(("epoch", "judge", "family", "cluster", "min_score", "max_score"))
    table, roles = read_answers(SimpleNamespace(**{**others, **vars(arguments)}))
    step("comparing models")
    from lmemtest.bench.evaluation.mcnemar import mcnemar

    roles = {name: roles.get(name) for name in ("model", "item", "task", "score")}
    return mcnemar(table, **chosen(arguments, "alpha drop_duplicates"), **roles)


@command(
    app,
    "attempts",
    (
        *(*TABLE, "model", *ANSWER_COLUMNS, "min_score", "max_score", "drop_duplicates", "yes"),
        *("k", "threshold", "cost", "adjust", "alpha", *WRITTEN),
    ),
    "Compare models by repeated attempts: pass@k, pass^k, majority of k.",
    calls="bench.evaluation.attempts:repeated_attempts",
)
def attempts(arguments: SimpleNamespace, step: Step) -> Result:
    """Estimate the success of k attempts at an item: at least one right, all of them, or most of them.

    Also: how often two attempts agree, and how many attempts are worth their cost. With -o as a document, table or
    figure.

    \b
    Example:
      lmemtest attempts answers.csv --model model --task task --item question --score correct --epoch attempt
      lmemtest attempts answers.csv --model model --item id --score passed --epoch run --k 5 --k 10 --cost item=20
    """
    table, roles = read_answers(arguments)
    step("comparing models")
    from lmemtest.bench.evaluation.attempts import repeated_attempts

    roles.pop("direction", None)  # of a log of answers, where more is better
    costs = numbers_by_name(arguments.cost, "cost") or 1.0
    return repeated_attempts(
        table, costs=costs, **chosen(arguments, "k threshold adjust alpha drop_duplicates"), **roles
    )


# ---------------------------------------------------------------------- votes


VOTE_COLUMNS = ("model_a", "model_b", "winner", "voter", "prompt")


@command(
    app,
    "votes",
    (*TABLE, *VOTE_COLUMNS, "outcome", "style", "no_position", "yes", "adjust", "alpha", *WRITTEN),
    "Rate models by votes on pairs of their answers.",
    calls="bench.votes.votes:rate_votes",
)
def votes(given: SimpleNamespace, step: Step) -> Result:
    """Rate models by votes on pairs of their answers, with the ranks compatible with the votes.

    Votes of one voter or on one prompt are dependent: name their columns for valid standard errors. Missing column
    roles are guessed by names and content, and shown: on a terminal you are asked, elsewhere --yes accepts them. With
    -o as a document, table or figure.

    \b
    Example:
      lmemtest votes battles.csv --model-a model_a --model-b model_b --winner winner --voter judge --prompt question_id
      lmemtest votes battles.csv --yes -o ratings.html
      lmemtest votes votes.csv --winner preferred --outcome L=a --outcome R=b --outcome same=tie --yes
    """
    from lmemtest.bench.data.roles import battle_roles
    from lmemtest.core.caller import command_with
    from lmemtest.errors import ArgumentError

    roles = chosen(given, " ".join(VOTE_COLUMNS))
    table = read_table(given, labels=[name for role, name in roles.items() if role != "winner"])
    if not {"model_a", "model_b", "winner"} <= set(roles):
        free = table.drop(columns=[name for name in given.style or () if name in table])
        new = [part for role, name in battle_roles(free, roles).items() if role not in roles
               for part in (flags(role)[0], name)]  # fmt: skip
        if new and not taken(new, given.yes):
            raise ArgumentError(
                f"Columns of models and winners must be given. By names and content:\n  {command_with(new)}\n--yes "
                "takes these without asking."
            )
    step("rating models")
    from lmemtest.bench.votes.votes import rate_votes

    meaning = values_by_metric(given.outcome or (), "--outcome")
    options = {**roles, **chosen(given, "adjust alpha"), "style": tuple(given.style or ())}
    return rate_votes(table, outcomes=meaning, position=not given.no_position, **options)


# ---------------------------------------------------------------------- looks


@command(
    app,
    "monitor",
    (
        *(*RUNS, "maximum", "looks", "unit", "goal", "control", "method", "spending", "alpha", "futility", "ledger"),
        *("extension", *WRITTEN),
    ),
    "May I look already? Stop, go on, or cannot be decided.",
    calls="bench.looks.monitor:monitor",
)
def monitor(arguments: SimpleNamespace, step: Step) -> Result:
    """Look at a study while runs come in, at one level for all looks: stop, go on, or cannot be decided.

    The number of benchmarks at the end is planned before the first look. Each look is added to the ledger, which also
    records the plan, and is never rewritten. With --extension the table holds more than was planned, and the new data
    are tested at the level that the looks left.

    \b
    Example:
      lmemtest monitor runs.csv --yes --maximum 40 --looks 5 --ledger looks.jsonl
      lmemtest monitor runs.csv --yes --method evalue --ledger looks.jsonl -o looks.html
    """
    from lmemtest.bench.looks.monitor import extend
    from lmemtest.bench.looks.monitor import monitor as look_at

    if arguments.extension and arguments.ledger is None:
        raise typer.BadParameter("--extension needs --ledger, which has the looks so far.")
    runs = read_runs(arguments, settle=True)
    step("looking")
    if arguments.extension:
        return extend(runs, arguments.ledger)
    looks = arguments.looks if arguments.looks is None or len(arguments.looks) > 1 else arguments.looks[0]
    return look_at(
        runs, looks=looks, **chosen(arguments, "maximum unit goal control method spending alpha futility ledger")
    )


# ---------------------------------------------------------------------- gate


@command(
    app,
    "gate",
    (
        *(
            *TABLE,
            "old",
            "margin",
            "policy",
            "score",
            "direction",
            "benchmark",
            "seed",
            "metric",
            "family",
            "ignore",
            "seed_own",
        ),
        *(
            "tasks",
            "alpha",
            "power",
            "max_broken",
            "allow",
            "looks",
            "maximum",
            "spending",
            "method",
            "ledger",
            "markdown",
        ),
        *WRITTEN,
    ),
    "Is a new version worse than the old one?",
    calls="bench.gate.gate:gate",
    needed=("table", "old"),
    wrong=NO_ANSWER,
)
def gate(arguments: SimpleNamespace, step: Step) -> None:
    """Decide whether a new version is worse than the old one, on every metric, over tasks like these.

    The exit code is 0 if it is not worse by the margin or more, 1 if it is worse by more than the margin, 2 if these
    runs cannot say, and 3 if the command or a table is wrong. With -o the answer as a document for a pull request
    (.md), with all digits (.json), as a table or figure.

    With --policy a TOML file has the rules of each metric, in tiers: critical, supporting, advisory. Then 0 is pass,
    1 fail and 2 insufficient.

    \b
    Example:
      lmemtest gate new.csv old.csv --policy gate.toml --benchmark task --seed seed --markdown gate.md
      lmemtest gate new.csv old.csv --score accuracy --margin 0.01 --benchmark task --seed seed -o gate.md
      lmemtest gate new.csv old.csv --margin accuracy=0.01 --margin loss=2% --benchmark task --tasks these
    """
    from lmemtest.report.files import check_report_path

    targets = [check_report_path(path) for path in arguments.output or ()]
    targets += [check_report_path(path, (".md",)) for path in (arguments.markdown,) if path is not None]
    new, old = (_read_version(arguments, path) for path in (arguments.table, arguments.old))
    step("comparing the versions")
    from lmemtest.bench.gate.gate import gate
    from lmemtest.report.files import json_of

    names = "benchmark seed metric alpha power max_broken policy allow looks maximum spending method ledger"
    options = chosen(arguments, names)
    options |= {name: tuple(getattr(arguments, name) or ()) for name in ("family", "ignore")}
    options |= {name: values_by_metric(getattr(arguments, name) or (), f"--{name}") for name in ("margin", "direction")}
    if arguments.tasks is not None:
        options["tasks"] = arguments.tasks.replace("-", " ")
    score = None if arguments.score is None else tuple(arguments.score)
    decision = gate(new, old, score=score, seed_shared=not arguments.seed_own, **options)
    for target in targets:
        decision.save(target, escape=not arguments.raw_csv)
    step("")
    typer.echo(json_of(decision) if arguments.json else decision.summary(), nl=not arguments.json)
    for target in () if arguments.json else targets:
        typer.echo(str(target))
    arguments.exit_code = decision.exit_code


def _read_version(arguments: SimpleNamespace, path: Path) -> Any:
    """One of the two tables."""
    labels = [*filter(None, (arguments.benchmark, arguments.metric)), *(arguments.family or ())]
    typed = SimpleNamespace(**{**vars(arguments), "table": path})
    return read_table(typed, labels=labels, seeds=[arguments.seed] if arguments.seed else [])


# ---------------------------------------------------------------------- plan


@command(
    app,
    "plan",
    (
        *TABLE,
        *PLAN_COLUMNS,
        "source",
        "yes",
        "sd",
        *PLAN_NUMBERS,
        "stage",
        "shared",
        "algorithms",
        "alpha",
        "adjust",
        *WRITTEN,
    ),
    "How many tuning runs, splits and seeds for a budget.",
    calls="bench.power.plan:plan",
    needed=(),
)
def plan(arguments: SimpleNamespace, step: Step) -> Result:
    """Find the numbers of benchmarks, tuning runs, splits and seeds with the smallest standard error for a budget.

    With --target or --effect: the cheapest numbers that reach it. Variances are given by --sd, or estimated from a
    table: of runs of several algorithms, or of a variance study with --source. With -o as a document, table or
    figure.

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
        name: numbers_by_name(getattr(arguments, name), name) or None for name in ("fixed", "at_most", "current")
    }
    hours = 1.0 if arguments.hours_per_training is None else arguments.hours_per_training
    costs = {"training": hours, **numbers_by_name(arguments.cost, "cost")}
    components = numbers_by_name(arguments.sd, "sd")
    if components and (arguments.table is not None or arguments.source):
        raise typer.BadParameter(
            "standard deviations are given by --sd or estimated from a table, not both.", param_hint="--sd"
        )
    step("planning")
    from lmemtest.bench.power.plan import plan

    return plan(
        components or _from_table(arguments),
        n_algorithms=arguments.algorithms,
        stages=arguments.stage,
        shared=tuple(arguments.shared or ()),
        costs=costs,
        **counts,
        **chosen(arguments, "budget target effect power trials alpha adjust"),
    )


@command(
    app,
    "sources",
    (
        *(*TABLE, "score", "algorithm", "benchmark", "model", "source", "relative_to", "project"),
        *("current", "budget", "cost", "at_most", "alpha", *WRITTEN),
    ),
    "Where variation comes from: items, prompts, judges, seeds.",
    calls="bench.variation.variance_sources:variance_sources",
)
def sources(arguments: SimpleNamespace, step: Step) -> Result:
    """Decompose the variation of scores by source: items, prompts and judges, or the seeds of trainings.

    With --model the sources are those of differences of models. With --project: the standard error with more of each
    source, and the best design for a cost. With -o as a document, table or figure.

    \b
    Example:
      lmemtest sources answers.csv --score score --model model --source item --source prompt --source judge
      lmemtest sources answers.csv --score score --model model --source item --source judge --project \\
        --cost item=2 --cost score=0.1 --budget 500 -o design.png
      lmemtest sources trainings.csv --score accuracy --source data --source init --relative-to data
    """
    of_design: dict[str, Any] = {
        argument: numbers_by_name(getattr(arguments, option), option) or None
        for argument, option in {"current": "current", "costs": "cost", "at_most": "at_most"}.items()
    }
    of_design["budget"] = arguments.budget
    if not arguments.project and any(value is not None for value in of_design.values()):
        raise typer.BadParameter("--current, --cost, --at-most, --budget are about a design.", param_hint="--project")
    step("taking the variation apart")
    study = _study(arguments)
    return study.project(**of_design) if arguments.project else study


def _study(arguments: SimpleNamespace) -> VarianceSources:
    """A variance study of a table with columns of sources."""
    from lmemtest.bench.variation.variance_sources import variance_sources
    from lmemtest.errors import ArgumentError

    for name, what in (("score", "the column of the scores"), ("source", "a column of items, judges or seeds")):
        if getattr(arguments, name) is None:
            raise ArgumentError(f"--{name} must be given, {what}.")
    columns = {name: getattr(arguments, name, None) for name in ("algorithm", "benchmark", "model")}
    table = read_table(arguments, labels=[*filter(None, columns.values())], seeds=arguments.source)
    options: dict[str, Any] = columns | chosen(arguments, "score alpha")
    options["relative_to"] = getattr(arguments, "relative_to", None)
    return variance_sources(table, sources=arguments.source, **options)


def _from_table(arguments: SimpleNamespace) -> Any:
    """Components from a variance study, or from the recommended model of a table of runs."""
    from lmemtest.errors import ArgumentError

    if arguments.table is None:
        raise ArgumentError("--sd NAME=NUMBER must be given, or a table of runs that tells how much scores vary.")
    if arguments.source:
        if arguments.family:
            raise ArgumentError("--family is of runs of several algorithms, and --source of a variance study.")
        return _study(arguments).components()
    from lmemtest.bench.modelling.recommend import recommend
    from lmemtest.bench.power.variance_components import VarianceComponents
    from lmemtest.lmm.model import fit_lmm

    typed = {name: getattr(arguments, name) for name in (*TABLE, *PLAN_COLUMNS, "yes")}
    model = recommend(read_runs(absent(RUNS, **typed), settle=True))
    return VarianceComponents.of(fit_lmm(model.formula, model.runs))
