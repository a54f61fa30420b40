"""The commands: read what was typed, call a function of the package, return its result."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lmemtest.cli.command import Typed, command
from lmemtest.cli.converting import ANSWERS, TOOLS, converter
from lmemtest.cli.options import ROLES, RUNS, TABLE, WRITTEN, absent, check_options, chosen, flags, number
from lmemtest.cli.reading import (
    EVALUATE,
    export_in,
    name_of,
    read_runs,
    read_table,
    read_trials,
    runs_of_export,
    settled_curves,
    taken,
)
from lmemtest.cli.rendering import INTERRUPTED, say, write_report

if TYPE_CHECKING:
    from collections.abc import Callable

    import pandas as pd

    from lmemtest.bench.data.recognised import Recognised
    from lmemtest.core.result import Result

    Step = Callable[[str], None]

NO_ANSWER = 3  # of `gate`, whose exit codes 0, 1 and 2 are answers: whatever goes wrong must be none of them
ANSWER_COLUMNS = ("item", "task", "score", "epoch", "judge", "family", "cluster")
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
app.add_typer(converter, short_help="Make a table of runs of what another tool wrote.")


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


# ---------------------------------------------------------------------- evaluate


@command(
    app,
    "evaluate",
    (
        *(*TABLE, "model", *ANSWER_COLUMNS, "min_score", "max_score", "drop_duplicates", "direction", "yes"),
        *("adjust", "vcov", "alpha", "power", *WRITTEN),
    ),
    "Compare models by the items of tasks: these items, items like these, and tasks like these.",
    calls="bench.evaluation.evaluation:evaluate",
)
def evaluate(given: SimpleNamespace, step: Step) -> Result:
    """Say which models differ on these tasks, and which differ for tasks like these.

    Scores are 0 and 1 (solved or not) or between; items belong to tasks. Also: models that cannot be distinguished,
    what repeated attempts alone change, and the smallest difference that such an evaluation finds. With -o as a
    document, table or figure.

    \b
    Example:
      lmemtest evaluate answers.csv --model model --task subject --item question --score correct
      lmemtest evaluate wide.csv --model gpt --model llama --task subject --item question
      lmemtest evaluate ratings.csv --model model --item prompt --judge judge --score rating --min 1 --max 10
      lmemtest evaluate answers.csv --model model --task task --item id --score score --epoch epoch -o out.html
    """
    table, roles = _read_answers(given)
    step("comparing models")
    from lmemtest.bench.evaluation.evaluation import evaluate

    options = chosen(given, "direction adjust vcov alpha power drop_duplicates")
    return evaluate(table, **{"direction": "maximize", **options, **roles})


@command(
    app,
    "attempts",
    (
        *(*TABLE, "model", *ANSWER_COLUMNS, "min_score", "max_score", "drop_duplicates", "yes"),
        *("k", "threshold", "cost", "adjust", "alpha", *WRITTEN),
    ),
    "Compare models by repeated attempts: pass@k, pass^k, the majority of k.",
    calls="bench.evaluation.attempts:repeated_attempts",
)
def attempts(given: SimpleNamespace, step: Step) -> Result:
    """Say what k attempts of a model at an item reach: at least one right, all of them, or most of them.

    Also: how often two attempts agree, and how many attempts are worth their cost. With -o as a document, table or
    figure.

    \b
    Example:
      lmemtest attempts answers.csv --model model --task task --item question --score correct --epoch attempt
      lmemtest attempts answers.csv --model model --item id --score passed --epoch run --k 5 --k 10 --cost item=20
    """
    table, roles = _read_answers(given)
    step("comparing models")
    from lmemtest.bench.evaluation.attempts import repeated_attempts

    roles.pop("direction", None)  # of a log of answers, where more is better
    costs = _numbers_by_name(given.cost, "cost") or 1.0
    return repeated_attempts(table, costs=costs, **chosen(given, "k threshold adjust alpha drop_duplicates"), **roles)


def _answer_roles(given: SimpleNamespace) -> dict[str, Any]:
    """The arguments of `evaluate` about columns."""
    columns = given.model or []
    scale = {"min_score": 0.0, "max_score": 1.0} | chosen(given, "min_score max_score")
    return {
        "model": columns[0] if len(columns) == 1 else columns or None,
        **{name: getattr(given, name) for name in ANSWER_COLUMNS},
        **(scale if tuple(scale.values()) != (0.0, 1.0) else {}),
    }


def _lacking(given: SimpleNamespace) -> list[str]:
    """The options that are needed; rows are items where each model has a column."""
    needed = ("model",) if len(given.model or []) > 1 else ("model", "item", "score")
    return [f"--{name}" for name in needed if not getattr(given, name)]


def _answer_rows(given: SimpleNamespace, roles: dict[str, Any]) -> pd.DataFrame:
    """The rows that are asked for."""
    labels = [roles.get(name) for name in (*ANSWER_COLUMNS, "model") if name != "score"]
    return read_table(given, labels=[name for name in labels if isinstance(name, str)])


def _answers_of_export(given: SimpleNamespace, export: Recognised) -> tuple[Any, dict[str, Any]]:
    """The answers in a file of a tool that evaluates models, if the user agrees to read it so."""
    from lmemtest.errors import ArgumentError

    if export.tool not in TOOLS or TOOLS[export.tool].items is None:
        raise ArgumentError(export.in_words(name_of(given)))
    runs = runs_of_export(export, name_of(given), given.yes)
    if runs.failed is not None:
        raise ArgumentError("Answers without a score: convert them first, --score-failures 0 counts them as wrong.")
    epoch = dict(zip(["epoch"], runs.ignore, strict=False))
    roles = {name: getattr(runs, role) for name, role in ANSWERS.items()}
    return runs.to_frame(), {**roles, "score": runs.score, **epoch, "direction": runs.direction}


def _option_of(name: str, value: Any) -> list[str]:
    """An argument as an option, repeated for several columns."""
    values = value if isinstance(value, list) else [value]
    return [part for one in values for part in (flags(name)[0], f"{one:g}" if isinstance(one, float) else str(one))]


def _read_answers(given: SimpleNamespace) -> tuple[Any, dict[str, Any]]:
    """The table and the arguments of `evaluate`; those that are missing are suggested and agreed to."""
    from lmemtest.bench.data.roles import answer_roles
    from lmemtest.core.caller import command_with
    from lmemtest.core.words import listed
    from lmemtest.errors import ArgumentError

    roles = _answer_roles(given)
    export = export_in(given.table) if _lacking(given) else None
    if export is None:
        table = _answer_rows(given, roles)
        if not _lacking(given):
            return table, roles
        from lmemtest.bench.data.recognised import recognised

        export = recognised(table, str(given.table))
    if export is not None and export.tool != EVALUATE:
        return _answers_of_export(given, export)
    message = f"{listed(_lacking(given))} must be given. Columns of {name_of(given)}: {listed(table.columns)}."
    found = answer_roles(table, roles)
    if found is None:
        raise ArgumentError(message)
    new = [part for name, value in found.items() if value != roles.get(name) for part in _option_of(name, value)]
    if not taken(new, given.yes):
        raise ArgumentError(
            f"{message} By names and structure:\n  {command_with(new)}\n--yes takes these roles without asking."
        )
    return _answer_rows(given, found), found


# ---------------------------------------------------------------------- gate


@command(
    app,
    "gate",
    (
        *(*TABLE, "old", "margin", "score", "direction", "benchmark", "seed", "metric", "family", "ignore", "seed_own"),
        *("tasks", "alpha", "power", "max_broken", "allow", *WRITTEN),
    ),
    "Is a new version worse than the old one?",
    calls="bench.gate.gate:gate",
    needed=("table", "old", "margin"),
    wrong=NO_ANSWER,
)
def gate(given: SimpleNamespace, step: Step) -> None:
    """Decide whether a new version is worse than the old one, on every metric, over tasks like these.

    The exit code is 0 if it is not worse by the margin or more, 1 if it is worse by more than the margin, 2 if these
    runs cannot say, and 3 if the command or a table is wrong. With -o the answer as a document for a pull request
    (.md), with all digits (.json), as a table or figure.

    \b
    Example:
      lmemtest gate new.csv old.csv --score accuracy --margin 0.01 --benchmark task --seed seed -o gate.md
      lmemtest gate new.csv old.csv --margin accuracy=0.01 --margin loss=2% --benchmark task --tasks these
    """
    from lmemtest.report.files import check_report_path

    targets = [check_report_path(path) for path in given.output or ()]
    new, old = (_read_version(given, path) for path in (given.table, given.old))
    step("comparing the versions")
    from lmemtest.bench.gate.gate import gate
    from lmemtest.report.files import json_of

    options = chosen(given, "benchmark seed metric alpha power max_broken")
    options |= {name: tuple(getattr(given, name) or ()) for name in ("family", "ignore", "allow")}
    options |= {name: _by_metric(getattr(given, name) or (), f"--{name}") for name in ("margin", "direction")}
    if given.tasks is not None:
        options["tasks"] = given.tasks.replace("-", " ")
    score = None if given.score is None else tuple(given.score)
    decision = gate(new, old, score=score, seed_shared=not given.seed_own, **options)
    for target in targets:
        decision.save(target, escape=not given.raw_csv)
    step("")
    typer.echo(json_of(decision) if given.json else decision.summary(), nl=not given.json)
    for target in () if given.json else targets:
        typer.echo(str(target))
    given.exit_code = decision.exit_code


def _read_version(given: SimpleNamespace, path: Path) -> Any:
    """One of the two tables."""
    labels = [*filter(None, (given.benchmark, given.metric)), *(given.family or ())]
    typed = SimpleNamespace(**{**vars(given), "table": path})
    return read_table(typed, labels=labels, seeds=[given.seed] if given.seed else [])


def _by_metric(given: list[str] | tuple[()], option: str) -> dict[str, str] | None:
    """What ``NAME=VALUE`` says by name, and what ``VALUE`` says of every other metric."""
    found: dict[str, str] = {}
    for text in given:
        name, sign, value = text.rpartition("=")
        key = name if sign else "*"
        if key in found:
            what = f"{name!r} has" if sign else "all metrics have"
            raise typer.BadParameter(f"{what} two values. Leave one of them out.", param_hint=option)
        found[key] = value
    return found or None


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
def plan(given: SimpleNamespace, step: Step) -> Result:
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
        name: _numbers_by_name(getattr(given, name), name) or None for name in ("fixed", "at_most", "current")
    }
    hours = 1.0 if given.hours_per_training is None else given.hours_per_training
    costs = {"training": hours, **_numbers_by_name(given.cost, "cost")}
    components = _numbers_by_name(given.sd, "sd")
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


def _numbers_by_name(given: list[str] | None, option: str) -> dict[str, float]:
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

    typed = {name: getattr(given, name) for name in (*TABLE, *PLAN_COLUMNS, "yes")}
    model = recommend(read_runs(absent(RUNS, **typed), settle=True))
    return VarianceComponents.of(fit_lmm(model.formula, model.runs))
