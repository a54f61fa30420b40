"""Every option of the command line: what it takes, its help, and what it is called in Python.

One table, `OPTIONS`. A command names its options (`command`); where one reads otherwise in a command, its row is called
``command.option``. Values that are not given are not passed on, so that defaults are those of the functions in Python,
and `--help` reads them there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import typer

POLICIES = "How failed runs count: worst, baseline=NAME, a number, drop, retry."
FILES = (
    "csv, tsv, txt, xlsx, md, tex, json, jsonl, parquet or feather, or compressed (.gz, .bz2, .xz, .zip); - for stdin."
)
TYPED = "lmemtest.core.words"  # where the context of a command keeps what was typed


def number(text: str) -> float:
    """A number, or an error that shows what was given."""
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a number.") from None


def number_or_text(text: str) -> float | str:
    """What was typed as a number, where it is one."""
    try:
        return float(text)
    except ValueError:
        return text


def numbers_by_name(arguments: list[str] | None, option: str) -> dict[str, float]:
    """What ``NAME=NUMBER`` says, by name."""
    numbers: dict[str, float] = {}
    for text in arguments or []:
        name, sign, value = text.rpartition("=")
        if not sign or not name:
            raise typer.BadParameter(f"{text!r} is not NAME=NUMBER, such as data=3.", param_hint=flags(option)[0])
        if name in numbers:
            raise typer.BadParameter(f"{name!r} has two numbers. Leave one of them out.", param_hint=flags(option)[0])
        numbers[name] = number(value)
    return numbers


def values_by_metric(arguments: list[str] | tuple[()], option: str) -> dict[str, str] | None:
    """What ``NAME=VALUE`` says by name, and what ``VALUE`` says of every other metric."""
    by_metric: dict[str, str] = {}
    for text in arguments:
        name, sign, value = text.rpartition("=")
        key = name if sign else "*"
        if key in by_metric:
            what = f"{name!r} has" if sign else "all metrics have"
            raise typer.BadParameter(f"{what} two values. Leave one of them out.", param_hint=option)
        by_metric[key] = value
    return by_metric or None


def direction(text: str) -> str:
    """Which scores are good, in Optuna's words."""
    from lmemtest.core.validate import check_direction
    from lmemtest.errors import ArgumentError

    try:
        return check_direction(text)
    except ArgumentError as error:
        raise typer.BadParameter(str(error)) from None


_KEPT = ("first", "last", "mean")
_SHAPES = ("ld_highest_density", "ld_equal_tailed", "ks", "dkw")
_EACH = "may be repeated."

# What it takes (a list may be repeated, a tuple of texts are the choices), what stands for it in a help, and the help.
OPTIONS: dict[str, tuple[Any, str, str]] = {
    # the table
    "table": (Path, "RUNS", f"Table of runs: {FILES}"),
    "where": ([str], "CONDITION", f"Rows to keep: 'column=value', 'epoch<=27'; {_EACH}"),
    "sheet": (str, "NAME", "Which of several sheets or tables: its name, or its number from 1."),
    "sep": (str, "CHAR", "Separator of fields, if unclear."),
    "decimal": (str, "CHAR", "Decimal mark: . or ,"),
    "encoding": (str, "NAME", "Encoding of the text, such as latin-1."),
    # its roles
    "score": (str, "COLUMN", "Numeric column to compare. Required."),
    "direction": (direction, "minimize|maximize", "Whether low or high scores are good."),
    "algorithm": (str, "COLUMN", "Algorithms to compare. Required."),
    "benchmark": (str, "COLUMN", "Tasks on which they ran."),
    "budget": (str, "COLUMN", "Budget at which the score was taken."),
    "seed": ([str], "COLUMN", "Column of repetitions; repeat the option for several (repeat, fold)."),
    "metafeature": ([str], "COLUMN", f"Setting of a run that is not compared; {_EACH}"),
    "family": ([str], "COLUMN", "Groups of benchmarks, such as suites; repeat from coarse to fine."),
    "ignore": ([str], "COLUMN", f"Column without a role, on purpose; {_EACH}"),
    "seed_own": (bool, "", "Seeds merely number repetitions: seed 1 differs between benchmarks."),
    "yes": (bool, "", "Accept the roles that names and structure suggest."),
    "wide": (bool, "", "A column per algorithm, a row per benchmark."),
    "methods": (("columns", "rows"), "", "Where a wide table has its algorithms, if names do not show it."),
    # its scores
    "failed": (
        [str],
        "COLUMN",
        f"Failed runs: a column, missing, nonfinite, or a word such as TIMEOUT; or KIND=POLICY; {_EACH}",
    ),
    "drop_duplicates": (_KEPT, "", "Keep one row of each run: the first, the last, or the mean score."),
    "score_failures": (str, "POLICY", POLICIES),
    "drop_missing": (bool, "", "Drop rows without a finite score; only if failing is uninformative."),
    "best_so_far": (bool, "", "Compare the best score up to each budget, if rows are single trials."),
    "at_budget": ([float], "BUDGET", f"Compare the last score up to this budget; {_EACH}"),
    "normalize": (str, "METHOD", "Compare normalised scores: rank, minmax, baseline, ..."),
    "reference": (str, "NAME", "Baseline of --normalize: an algorithm, a number or a column."),
    "target": (str, "NAME", "Algorithm, number or column that counts as 1 (the baseline: 0)."),
    "best_known": (str, "NAME", "Best known value, for --normalize gap or improvability."),
    "variants": (("none", "few", "all"), "", "Alternative analyses of the same runs in the report."),
    "curves": (str, "HOW", "One score per run over its budgets: mean, last, best, area; or model."),
    # the analysis
    "formula": (str, "", "Your own model instead of the recommended one."),
    "population": (str, "ROLE", "Claims are about a new family, benchmark or run."),
    "dispersion": (str, "COLUMN", "A residual variance for each level, such as the benchmark."),
    "alpha": (float, "NUMBER", "Family-wise significance level."),
    "adjust": (str, "METHOD", "Adjustment for multiple comparisons: stepdown (default), tukey, holm, none, ..."),
    "vcov": (str, "NAME", "Standard errors of differences: moderated (default) or model."),
    "ddf": (str, "METHOD", "Degrees of freedom: satterthwaite, kenward-roger, ..."),
    "ml": (bool, "", "Maximum likelihood instead of restricted (REML)."),
    "fit.formula": (str, "FORMULA", "As in lme4; quote it for the shell."),
    "whole": (bool, "", "Print every finding, not only the first of each kind."),
    "method": (("lmem", "frequentist", "bayesian", "all"), "", "lmem: mixed model; all: several side by side."),
    "test": (str, "NAME", "t, tukey, nemenyi, conover, wilcoxon; signed_rank, hierarchical."),
    "control": (str, "NAME", "Compare all others with this algorithm only."),
    "rope": (float, "NUMBER", "Bayesian: the largest negligible difference, in units of the score."),
    # of runs with runs
    "only": ([str], "NAME", "Compare these algorithms only; give it twice or more."),
    "outperform.control": (str, "NAME", "Compare this algorithm with all others."),
    "unpaired": (bool, "", "Compare all runs with all, not only those with the same seed."),
    "gamma": (float, "NUMBER", "Probability from which an advantage matters."),
    "outperform.method": (str, "NAME", "Method of intervals over benchmarks: mixed, percentile."),
    # tuning curves
    "bands.table": (Path, "TRIALS", f"Table of trials: {FILES}"),
    "bands.algorithm": (str, "COLUMN", "Algorithms to compare, if any."),
    "bands.seed": (str, "COLUMN", "Column of repetitions."),
    "statistic": (str, "", "median, mean, or a quantile such as 0.9."),
    "level": (float, "NUMBER", "Confidence level of a band."),
    "band": (_SHAPES, "", "Shape of the bands."),
    "k_max": (int, "K", "Last number of trials."),
    "bounds": (tuple[float, float], "LOW HIGH", "Range of possible scores."),
    "cost": (str, "COLUMN", "Cost of a trial."),
    "bands.adjust": (("none", "bonferroni", "sidak"), "", "Adjustment of the level over benchmarks."),
    "unit": (("trials", "seed"), "", "Sample: trials of a random search, or seeds of an adaptive optimiser."),
    "pointwise": (bool, "", "With --unit seed: pointwise limits, not simultaneous over budgets."),
    "bands.output": (Path, "FOLDER", "Folder for the files; may be a new one."),
    # evaluations
    "evaluate.table": (Path, "ANSWERS", f"Table with a row per answer: {FILES}"),
    "model": ([str], "COLUMN", "Column of the models; or repeat it with one column of scores each. Required."),
    "item": (str, "COLUMN", "Questions, prompts or instances; default: rows, if models have columns."),
    "task": (str, "COLUMN", "Tasks that the items belong to; default: a single task."),
    "mcnemar.table": (Path, "ANSWERS", f"Table with a row per answer: {FILES}"),
    "mcnemar.score": (str, "COLUMN", "Scores of 0 and 1."),
    "mcnemar.alpha": (float, "NUMBER", "Significance level."),
    "evaluate.score": (str, "COLUMN", "Scores of 0 and 1, or between."),
    "epoch": (str, "COLUMN", "Numbers of repeated attempts at an item."),
    "judge": (str, "COLUMN", "Who scored the answer."),
    "evaluate.family": (str, "COLUMN", "Suites that the tasks belong to."),
    "cluster": (str, "COLUMN", "Passages or conversations shared by items of a task."),
    "min_score": (float, "NUMBER", "Lowest score of the scale, such as 1."),
    "max_score": (float, "NUMBER", "Highest score of the scale, such as 10."),
    "evaluate.method": (("linear", "binomial", "auto"), "", "Model of accuracies for tasks like these."),
    "evaluate.scale": (("accuracy", "odds"), "", "odds: compare by odds, for accuracies near 1 or 0 on few tasks."),
    "evaluate.drop_duplicates": (_KEPT, "", "Keep one row of each answer: the first, the last, or the mean score."),
    "evaluate.failed": ([str], "COLUMN", f"Failed answers: a column, or missing; or KIND=POLICY; {_EACH}"),
    "evaluate.score_failures": (str, "POLICY", "How failed answers count: worst, a score, drop, retry."),
    "evaluate.power": (float, "NUMBER", "Power for the smallest detectable difference."),
    # votes on pairs
    "votes.table": (Path, "VOTES", f"Table with a row per vote: {FILES}"),
    "model_a": (str, "COLUMN", "Model shown first."),
    "model_b": (str, "COLUMN", "The other model."),
    "winner": (str, "COLUMN", "Who won: model_a, model_b, tie, a name, 1 (the first), 0 or 0.5."),
    "voter": (str, "COLUMN", "Who voted."),
    "prompt": (str, "COLUMN", "What was voted on."),
    "outcome": ([str], "VALUE=SIDE", f"Meaning of a value of the winner: x=a, x=b or x=tie; {_EACH}"),
    "style": ([str], "COLUMN", f"Difference in style (first minus second) to adjust for; {_EACH}"),
    "no_position": (bool, "", "Do not adjust for an advantage of the model shown first."),
    "votes.adjust": (str, "METHOD", "Adjustment for multiple comparisons: holm (default), stepdown, tukey, none, ..."),
    # repeated attempts
    "attempts.table": (Path, "ANSWERS", f"Table with a row per attempt: {FILES}"),
    "attempts.score": (str, "COLUMN", "Scores of 0 and 1."),
    "attempts.family": (str, "COLUMN", "Suites that the tasks belong to."),
    "attempts.drop_duplicates": (_KEPT, "", "Keep one row of each answer: the first, the last, or the mean score."),
    "attempts.k": ([int], "K", f"Number of attempts; {_EACH}"),
    "threshold": (float, "NUMBER", "Lowest score that counts as right."),
    "attempts.cost": (
        [str],
        "STAGE=NUMBER",
        f"Cost of an attempt, or of an item without its attempts: item=20; {_EACH}",
    ),
    # a plan
    "plan.table": (Path, "RUNS", f"Table of runs: {FILES}"),
    "plan.score": (str, "COLUMN", "Numeric column of the table."),
    "plan.algorithm": (str, "COLUMN", "Algorithms to compare."),
    "plan.seed": ([str], "COLUMN", f"Column of repetitions; {_EACH}"),
    "source": ([str], "COLUMN", f"Seeds of a source of variation (a variance study); {_EACH}"),
    "sd": ([str], "NAME=NUMBER", f"Standard deviation of a source: 'tuning=0.4'; {_EACH}"),
    "plan.adjust": (str, "METHOD", "Adjustment for multiple comparisons: tukey (default), sidak, bonferroni, none."),
    "plan.budget": (float, "NUMBER", "Total cost."),
    "plan.target": (float, "NUMBER", "Required standard error."),
    "effect": (float, "NUMBER", "Difference to detect."),
    "power": (float, "NUMBER", "Probability of detecting it."),
    "hours_per_training": (float, "NUMBER", "Cost of a training, in any unit."),
    "trials": (int, "T", "Trainings of one tuning run."),
    "plan.cost": ([str], "STAGE=NUMBER", f"Cost of a split, ... without its trainings; {_EACH}"),
    "fixed": ([str], "STAGE=NUMBER", f"Fixed numbers; {_EACH}"),
    "at_most": ([str], "STAGE=NUMBER", f"Upper limits; {_EACH}"),
    "current": ([str], "STAGE=NUMBER", f"Current design, for comparison; {_EACH}"),
    "stage": ([str], "NAME", f"Stages from coarse to fine; {_EACH}"),
    "shared": ([str], "NAME", f"Sources that both algorithms share; {_EACH}"),
    "algorithms": (int, "N", "Number of algorithms to compare; 1 for the mean of one."),
    # sources of variation
    "sources.table": (Path, "SCORES", f"Table with a row per score or training: {FILES}"),
    "sources.score": (str, "COLUMN", "Numeric column of the table. Required."),
    "sources.algorithm": (str, "COLUMN", "Pipelines, each studied separately."),
    "sources.benchmark": (str, "COLUMN", "Data sets, each studied separately."),
    "sources.model": (str, "COLUMN", "Models: decompose the variance of their differences."),
    "sources.source": ([str], "COLUMN", f"Items, prompts, judges, or seeds of a source; {_EACH}"),
    "relative_to": (str, "COLUMN", "Source whose variance is the unit of the others."),
    "project": (bool, "", "Predict the effect of more of each source, and the best design for a cost."),
    "sources.current": ([str], "SOURCE=NUMBER", f"Current design; default: that of the table; {_EACH}"),
    "sources.budget": (float, "NUMBER", "Total cost; default: the cost of the current design."),
    "sources.cost": ([str], "SOURCE=NUMBER", f"Cost of a unit: item=2, item:prompt=1, score=0.1; {_EACH}"),
    "sources.at_most": ([str], "SOURCE=NUMBER", f"Upper limits; {_EACH}"),
    "sources.alpha": (float, "NUMBER", "One minus the confidence level of each interval."),
    # looks
    "maximum": (int, "N", "Benchmarks at the end, planned before the first look; looks come when they like up to it."),
    "monitor.maximum": (int, "N", "Benchmarks (or seeds) at the end, planned before the first look."),
    "looks": ([int], "N", f"Benchmarks at a planned look, the last at the end; {_EACH}"),
    "looked": (str, "N|FILE", "Number of unplanned looks so far; or the ledger of monitor."),
    "monitor.looks": ([int], "N", "A look every N of them; repeat it for looks at these numbers."),
    "monitor.unit": (("benchmark", "seed"), "", "Unit that is added; with seeds the claim is about these benchmarks."),
    "goal": (("all", "best"), "", "Stop when all pairs are decided, or when one is better than all others."),
    "monitor.method": (
        ("spending", "evalue"),
        "",
        "Alpha spending up to a maximum; or e-values, without a planned end.",
    ),
    "spending": (("obrien_fleming", "pocock"), "", "Spend little alpha early and nearly all at the end; or evenly."),
    "monitor.alpha": (float, "NUMBER", "Largest probability of any false difference in the whole study."),
    "futility": (float, "NUMBER", "Predicted power below which a study cannot be decided."),
    "ledger": (Path, "FILE", "Record of the looks; created at the first one, never rewritten."),
    "extension": (bool, "", "Test the data beyond the plan at the level that the looks left."),
    # a gate
    "gate.table": (Path, "NEW", f"Runs of the new version: {FILES}"),
    "old": (Path, "OLD", "Runs of the old version, with columns of the same names."),
    "margin": ([str], "[NAME=]NUMBER", f"Smallest unacceptable loss: 0.01, 1%, acc=0.01; {_EACH}"),
    "gate.policy": (Path, "FILE", "Rules in TOML: metrics in tiers, margins, bars, required tasks."),
    "gate.maximum": (int, "N", "Tasks at the end, planned before the first look; looks come when they like up to it."),
    "gate.looks": ([int], "N", f"Tasks at a planned look, the last at the end; {_EACH}"),
    "gate.method": (("evalue",), "", "e-values: valid at every look as tasks are added, without a plan."),
    "gate.ledger": (Path, "FILE", "Ledger of e-values: records looks, one file for each version."),
    "gate.score": ([str], "COLUMN", f"A metric; {_EACH}"),
    "gate.direction": ([str], "[NAME=]END", "minimize or maximize, if names do not show it."),
    "gate.benchmark": (str, "COLUMN", "The tasks. Required."),
    "gate.seed": (str, "COLUMN", "Column of the runs, or items, of a task."),
    "metric": (str, "COLUMN", "Names of metrics, if each has separate rows."),
    "gate.family": ([str], "COLUMN", "Groups of tasks, such as suites."),
    "gate.seed_own": (bool, "", "Seeds merely number the runs: seed 1 differs between tasks."),
    "tasks": (("like-these", "these"), "", "like-these: tasks are a sample; these: claims are about these tasks only."),
    "gate.alpha": (float, "NUMBER", "Largest probability of a wrong answer; default: 0.05."),
    "gate.power": (float, "NUMBER", "Power for the number of tasks that would settle it; default: 0.8."),
    "max_broken": (
        float,
        "SHARE",
        "Also show that at most this share of tasks like these is broken: 0.1 needs 29 tasks.",
    ),
    "allow": ([str], "WHAT", "missing: decide without runs that NEW lacks; identical: pass a copy."),
    "markdown": (Path, "FILE", "Write the summary for a pull request, .md."),
    "gate.output": ([Path], "FILE", f"Write .md, .json, .html, ...; {_EACH}"),
    # exports of other tools
    "files": ([str], "FILE...", "Files, folders or patterns such as 'runs/*.csv'."),
    "convert.score": (str, "COLUMN", "The score, or the metric of a chart."),
    "convert.algorithm": (str, "COLUMN", "Algorithms to compare."),
    "convert.benchmark": (str, "COLUMN", "Tasks, or the names of the rows."),
    "convert.seed": (str, "COLUMN", "Column of repetitions."),
    "convert.metafeature": ([str], "COLUMN", "Setting of a run that is not compared."),
    "convert.only": ([str], "COLUMN", "A column of scores; may be repeated. All others by default."),
    "names": (str, "PATTERN", "Pattern of names: '{algorithm}_{benchmark}_{seed}'."),
    "study": (str, "COLUMN", "Names of the studies in one table; default: study or study_name."),
    "convert.metric": (str, "NAME", "Which of several metrics."),
    "objective": (str, "NAME", "Which of several objectives: its number from 0, or its name."),
    "parameter": (str, "NAME", "Compare the values of this parameter instead of candidates."),
    "filter": (str, "NAME", "Which of several filters of the answers."),
    "evals": (str, "FILE", "Output of evals_df, for samples without their model and task."),
    "duplicates": (str, "last", "Keep the last of several attempts at one run."),
    "averaged": (int, "COUNT", "Number of runs behind each mean."),
    "first": (int, "COUNT", "Budget of the first score of a curve: 1, or 0."),
    "game": ([str], "NAME", "Names of the columns of scores, in order; repeat it."),
    "frame": ([float], "NUMBER", "Budgets of the curves, in order; repeat it."),
    "single_trials": (bool, "", "Scores of single trials instead of the best so far."),
    "convert.output": (Path, "FILE", "Write .csv or .parquet."),
    # the explorer
    "no_browser": (bool, "", "Print the address without opening a browser."),
    # what is written
    "json": (bool, "", "Print the results as json instead of sentences."),
    "raw_csv": (bool, "", "Write csv without apostrophes before texts that spreadsheets evaluate (=1+1)."),
    "paper.output": (Path, "FOLDER", "Folder for the files; may be a new one."),
    "overwrite": (bool, "", "Also replace files that were edited since, or not written by lmemtest."),
    "output": ([Path], "FILE", f"Write .html, .md, .txt, .tex, .csv, .json or .png; {_EACH}"),
}
_POSITIONAL = ("table", "old", "files", "fit.formula")
_FLAGS = {
    "yes": ("--yes", "-y"),
    "output": ("--output", "-o"),
    "whole": ("--all",),
    "min_score": ("--min",),
    "max_score": ("--max",),
}

# What an argument in Python is called here, where that is not its own name.
IN_PYTHON = {
    "path": "table",
    "metafeatures": "metafeature",
    "seed_shared": "seed_own",
    "policy": "score_failures",
    "n_algorithms": "algorithms",
    "algorithms": "only",
    "components": "sd",
    "costs": "cost",
    "frames": "frame",
    "games": "game",
    "new": "table",
    "outcomes": "outcome",
    "position": "no_position",
    "sources": "source",
    "stages": "stage",
}

# Options that commands have together, by a word in capitals.
GROUPS = {
    "FILE": "where sheet sep decimal encoding",  # the last ones in a help
    "TABLE": "table FILE",
    "ROLES": "score direction algorithm benchmark budget seed metafeature family ignore seed_own",
    "PREPARING": "wide failed drop_duplicates score_failures drop_missing best_so_far at_budget normalize",
    "RUNS": "table ROLES yes wide methods PREPARING reference target best_known FILE",
    "MODEL": "formula population curves dispersion alpha adjust vcov ddf",
    "PLANNED": "looks maximum looked spending",
    "ANSWERS": "item task score epoch judge family cluster",
    "VOTES": "model_a model_b winner voter prompt",
    "WRITTEN": "json raw_csv output",
}


def options_of(words: str) -> tuple[str, ...]:
    """The names of options, with those of the groups among them, each once.

    >>> options_of("TABLE formula ml where")
    ('table', 'where', 'sheet', 'sep', 'decimal', 'encoding', 'formula', 'ml')
    """
    names = (options_of(GROUPS[word]) if word in GROUPS else (word,) for word in words.split())
    return tuple(dict.fromkeys(name for group in names for name in group))


FILE, TABLE, ROLES, RUNS = (options_of(name) for name in ("FILE", "TABLE", "ROLES", "RUNS"))


def row(place: str, option: str) -> str:
    """The row of an option in a command: its own, that of its group, or the one of all."""
    return next(key for key in (f"{place}.{option}", f"{place.split()[0]}.{option}", option) if key in OPTIONS)


def flags(option: str) -> tuple[str, ...]:
    """How an option is written."""
    return _FLAGS.get(option, (f"--{option.replace('_', '-')}",))


def is_positional(place: str, option: str) -> bool:
    return option in _POSITIONAL or row(place, option) in _POSITIONAL


def names_in(place: str, options: Collection[str]) -> dict[str, str]:
    """What the arguments in Python are called in a command."""
    columns = {
        option: OPTIONS[row(place, option)][1] if is_positional(place, option) else flags(option)[0]
        for option in (*RUNS, *options)
    }
    columns |= {
        argument: columns[option]
        for argument, option in IN_PYTHON.items()
        if option in columns and argument not in options
    }
    return columns | ({"path": "FILE"} if "files" in options else {})


def absent(options: Iterable[str], **arguments: Any) -> SimpleNamespace:
    """What was typed, as if nothing but this was."""
    return SimpleNamespace(**{name: False if OPTIONS[name][0] is bool else None for name in options} | arguments)


def chosen(arguments: SimpleNamespace, names: str) -> dict[str, Any]:
    """Of some options of a command those that were typed, as arguments of a function."""
    typed = ((name, getattr(arguments, name, None)) for name in options_of(names))
    return {name: value for name, value in typed if value is not None}


def check_options(arguments: SimpleNamespace) -> None:
    """What can be wrong without a table, before anything slow is imported."""
    from lmemtest.core.options import CURVE_CHOICES, DDF_METHODS, REPORT_ADJUSTMENTS
    from lmemtest.core.validate import check_choice, check_fraction

    typed: Mapping[str, Any] = vars(arguments)
    if typed.get("alpha") is not None:
        check_fraction(arguments.alpha, "alpha")
    for name, choices in (("ddf", DDF_METHODS), ("curves", CURVE_CHOICES)):
        if typed.get(name) is not None:
            check_choice(typed[name], name if name == "ddf" else f"--{name}", choices)
    if typed.get("adjust") is not None and "ddf" in typed:
        check_choice(arguments.adjust, "adjust", REPORT_ADJUSTMENTS)
    if arguments.normalize is not None:
        from lmemtest.bench.data.baseline import check_anchors
        from lmemtest.bench.data.normalise import ALL_METHODS

        check_choice(arguments.normalize, "--normalize", ALL_METHODS)
        check_anchors(arguments.normalize, anchors(arguments))
        return
    lonely = [name for name, value in anchors(arguments).items() if value is not None]
    if lonely:
        from lmemtest.errors import ArgumentError

        method = "gap" if lonely[0] == "best_known" else "baseline"
        raise ArgumentError(f"{flags(lonely[0])[0]} is used by --normalize only. Add --normalize {method}.")


def anchors(arguments: SimpleNamespace) -> dict[str, str | None]:
    """What scores are to be relative to."""
    return {name: getattr(arguments, name) for name in ("reference", "target", "best_known")}


def roles_of(arguments: SimpleNamespace) -> dict[str, Any]:
    """The arguments of `Runs`; which runs failed is known when the columns are."""
    single = {name: getattr(arguments, name) for name in ("score", "direction", "algorithm", "benchmark", "budget")}
    several = {name: tuple(getattr(arguments, name) or ()) for name in ("family", "seed", "ignore")}
    seeds = several.pop("seed")
    seed = seeds if len(seeds) > 1 else next(iter(seeds), None)
    metafeatures = tuple(arguments.metafeature or ())
    shared = not arguments.seed_own
    return {**single, **several, "seed": seed, "metafeatures": metafeatures, "seed_shared": shared, "failed": None}
