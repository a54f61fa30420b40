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

POLICIES = "What failed runs count: worst, baseline=NAME, a number, drop, retry."
FILES = "csv, tsv, txt, xlsx, md, json, jsonl, parquet or feather, perhaps packed (.gz, .bz2, .xz, .zip); - for stdin."
TYPED = "lmemtest.core.words"  # where the context of a command keeps what was typed


def number(text: str) -> float:
    """A number, or an error that shows what was given."""
    try:
        return float(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not a number.") from None


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
    "sheet": (str, "NAME", "Of several in a file: its name, or its number from 1."),
    "sep": (str, "CHAR", "What separates fields, if it is unclear."),
    "decimal": (str, "CHAR", "Decimal sign: . or ,"),
    "encoding": (str, "NAME", "Of the text, such as latin-1."),
    # its roles
    "score": (str, "COLUMN", "Numeric column to compare. Required."),
    "direction": (direction, "minimize|maximize", "Which scores are good."),
    "algorithm": (str, "COLUMN", "What is compared. Required."),
    "benchmark": (str, "COLUMN", "Tasks on which it was run."),
    "budget": (str, "COLUMN", "Budget at which a score was taken."),
    "seed": ([str], "COLUMN", "What identifies repetitions; several (repeat, fold) by repeating it."),
    "metafeature": ([str], "COLUMN", f"What describes a run's circumstances; {_EACH}"),
    "family": ([str], "COLUMN", "Groups of benchmarks, such as suites; repeated from coarse to fine."),
    "ignore": ([str], "COLUMN", f"Left without a role on purpose; {_EACH}"),
    "seed_own": (bool, "", "Seeds only number the repetitions: seed 1 is another one on each benchmark."),
    "yes": (bool, "", "Take the roles that names and structure suggest."),
    "wide": (bool, "", "A column per algorithm, a row per benchmark."),
    "methods": (("columns", "rows"), "", "Where the algorithms of a wide table are, if its names do not say it."),
    # its scores
    "failed": (
        [str],
        "COLUMN",
        f"Which runs failed: a column, missing or nonfinite scores, or a word like TIMEOUT; KIND=POLICY; {_EACH}",
    ),
    "drop_duplicates": (_KEPT, "", "Keep one row of each run: the first, the last, or the mean score."),
    "score_failures": (str, "POLICY", POLICIES),
    "drop_missing": (bool, "", "Leave out rows without a finite score, if failing says nothing."),
    "best_so_far": (bool, "", "Compare the best score up to each budget, where rows are single trials."),
    "at_budget": ([float], "BUDGET", f"Compare the last scores up to this budget; {_EACH}"),
    "normalize": (str, "METHOD", "Compare normalised scores: rank, minmax, baseline, ..."),
    "reference": (str, "NAME", "Baseline of --normalize: an algorithm, a number or a column."),
    "target": (str, "NAME", "What counts as 1, if the baseline counts as 0."),
    "best_known": (str, "NAME", "Best value, for --normalize gap or improvability."),
    "variants": (("none", "few", "all"), "", "Other analyses of the same runs in the report."),
    "curves": (str, "HOW", "What scores over a budget count per run: mean, last, best, area; or model."),
    # the analysis
    "formula": (str, "", "A model of your own instead of the recommended one."),
    "population": (str, "ROLE", "Claims about new ones of this role: family, benchmark or run."),
    "dispersion": (str, "COLUMN", "A residual variance for each level, such as the benchmark."),
    "alpha": (float, "NUMBER", "Significance level for all pairs together."),
    "adjust": (str, "METHOD", "For the number of pairs: stepdown (default), tukey, holm, none, ..."),
    "vcov": (str, "NAME", "Standard errors of differences: moderated (default) or model."),
    "ddf": (str, "METHOD", "Degrees of freedom: satterthwaite, kenward-roger, ..."),
    "ml": (bool, "", "Maximum likelihood instead of restricted (REML)."),
    "fit.formula": (str, "FORMULA", "As in lme4; quote it for the shell."),
    "whole": (bool, "", "Print every finding, not the first of each kind."),
    "method": (("lmem", "frequentist", "bayesian", "all"), "", "lmem: mixed model; all: several side by side."),
    "test": (str, "NAME", "t, tukey, nemenyi, conover, wilcoxon; signed_rank, hierarchical."),
    "control": (str, "NAME", "Compare all others with this algorithm only."),
    "rope": (float, "NUMBER", "Bayesian: what does not matter, in units of the score."),
    # of runs with runs
    "only": ([str], "NAME", "Compare these algorithms only; give it twice or more."),
    "outperform.control": (str, "NAME", "Compare this algorithm with all others."),
    "unpaired": (bool, "", "Compare all runs with all, not those of the same seed."),
    "gamma": (float, "NUMBER", "Probability from which an advantage matters."),
    "outperform.method": (str, "NAME", "Of the intervals over benchmarks: mixed, percentile."),
    # tuning curves
    "bands.table": (Path, "TRIALS", f"Table of trials: {FILES}"),
    "bands.algorithm": (str, "COLUMN", "What is compared, if anything."),
    "bands.seed": (str, "COLUMN", "Column that identifies repetitions."),
    "statistic": (str, "", "median, mean, or a quantile such as 0.9."),
    "level": (float, "NUMBER", "Probability that a band holds."),
    "band": (_SHAPES, "", "Shape of the bands."),
    "k_max": (int, "K", "Last number of trials."),
    "bounds": (tuple[float, float], "LOW HIGH", "Scores that can occur."),
    "cost": (str, "COLUMN", "Cost of a trial."),
    "bands.adjust": (("none", "bonferroni", "sidak"), "", "Of the level, over benchmarks."),
    "unit": (("trials", "seed"), "", "seed: for adaptive optimisers."),
    "pointwise": (bool, "", "With --unit seed: limits for each budget by itself."),
    "bands.output": (Path, "FOLDER", "Folder for the files; may be a new one."),
    # evaluations
    "evaluate.table": (Path, "ANSWERS", f"Table with a row per answer: {FILES}"),
    "model": ([str], "COLUMN", "Column of the models; or repeated, a column of scores for each. Required."),
    "item": (str, "COLUMN", "Questions, prompts or instances; rows, if models have columns."),
    "task": (str, "COLUMN", "Tasks that the items belong to; one without it."),
    "mcnemar.table": (Path, "ANSWERS", f"Table with a row per answer: {FILES}"),
    "mcnemar.score": (str, "COLUMN", "Scores of 0 and 1."),
    "mcnemar.alpha": (float, "NUMBER", "Significance level."),
    "evaluate.score": (str, "COLUMN", "Scores of 0 and 1, or between."),
    "epoch": (str, "COLUMN", "Numbers of repeated attempts at an item."),
    "judge": (str, "COLUMN", "Who scored the answer."),
    "evaluate.family": (str, "COLUMN", "Suites that the tasks belong to."),
    "cluster": (str, "COLUMN", "Passages or conversations that items of a task share."),
    "min_score": (float, "NUMBER", "Lowest score of the scale, such as 1."),
    "max_score": (float, "NUMBER", "Highest score of the scale, such as 10."),
    "evaluate.method": (("linear", "binomial", "auto"), "", "Model of accuracies for tasks like these."),
    "evaluate.scale": (("accuracy", "odds"), "", "odds: compare by odds, for accuracies near 1 or 0 on few tasks."),
    "evaluate.drop_duplicates": (_KEPT, "", "Keep one row of each answer: the first, the last, or the mean score."),
    "evaluate.failed": ([str], "COLUMN", f"Which answers failed: a column, or missing; and KIND=POLICY; {_EACH}"),
    "evaluate.score_failures": (str, "POLICY", "What failed answers count: worst, a score, drop, retry."),
    "evaluate.power": (float, "NUMBER", "For the smallest difference that is found."),
    # votes on pairs
    "votes.table": (Path, "VOTES", f"Table with a row per vote: {FILES}"),
    "model_a": (str, "COLUMN", "Model shown first."),
    "model_b": (str, "COLUMN", "The other model."),
    "winner": (str, "COLUMN", "Who won: model_a, model_b, tie, a name, 1 (the first), 0 or 0.5."),
    "voter": (str, "COLUMN", "Who voted."),
    "prompt": (str, "COLUMN", "What the vote was on."),
    "outcome": ([str], "VALUE=SIDE", f"What a value of the winner means: x=a, x=b or x=tie; {_EACH}"),
    "style": ([str], "COLUMN", f"Difference of the answers, first less second, to allow for; {_EACH}"),
    "no_position": (bool, "", "Do not allow for an advantage of the model shown first."),
    "votes.adjust": (str, "METHOD", "For the number of pairs: holm (default), stepdown, tukey, none, ..."),
    # repeated attempts
    "attempts.table": (Path, "ANSWERS", f"Table with a row per attempt: {FILES}"),
    "attempts.score": (str, "COLUMN", "Scores of 0 and 1."),
    "attempts.family": (str, "COLUMN", "Suites that the tasks belong to."),
    "attempts.drop_duplicates": (_KEPT, "", "Keep one row of each answer: the first, the last, or the mean score."),
    "attempts.k": ([int], "K", f"A number of attempts; {_EACH}"),
    "threshold": (float, "NUMBER", "The score from which on an attempt is right."),
    "attempts.cost": ([str], "STAGE=NUMBER", f"Of an attempt, or what an item costs besides: item=20; {_EACH}"),
    # a plan
    "plan.table": (Path, "RUNS", f"Table of runs: {FILES}"),
    "plan.score": (str, "COLUMN", "Numeric column of the table."),
    "plan.algorithm": (str, "COLUMN", "What is compared."),
    "plan.seed": ([str], "COLUMN", f"What identifies repetitions; {_EACH}"),
    "source": ([str], "COLUMN", f"Seeds of a source of variation (a variance study); {_EACH}"),
    "sd": ([str], "NAME=NUMBER", f"Standard deviation of a source: 'tuning=0.4'; {_EACH}"),
    "plan.adjust": (str, "METHOD", "For the number of pairs: tukey (default), sidak, bonferroni, none."),
    "plan.budget": (float, "NUMBER", "What may be spent in all."),
    "plan.target": (float, "NUMBER", "Standard error to be reached."),
    "effect": (float, "NUMBER", "Difference that is to be found."),
    "power": (float, "NUMBER", "Probability to find it."),
    "hours_per_training": (float, "NUMBER", "Cost of a training, in any unit."),
    "trials": (int, "T", "Trainings of one tuning run."),
    "plan.cost": ([str], "STAGE=NUMBER", f"What a split, ... costs besides its trainings; {_EACH}"),
    "fixed": ([str], "STAGE=NUMBER", f"Given numbers; {_EACH}"),
    "at_most": ([str], "STAGE=NUMBER", f"Largest numbers; {_EACH}"),
    "current": ([str], "STAGE=NUMBER", f"The design in use, to compare with; {_EACH}"),
    "stage": ([str], "NAME", f"Stages from coarse to fine; {_EACH}"),
    "shared": ([str], "NAME", f"Sources that both algorithms share; {_EACH}"),
    "algorithms": (int, "N", "How many are compared; 1 for the mean of one."),
    # sources of variation
    "sources.table": (Path, "SCORES", f"Table with a row per score or training: {FILES}"),
    "sources.score": (str, "COLUMN", "Numeric column of the table. Required."),
    "sources.algorithm": (str, "COLUMN", "Pipelines, each a study of its own."),
    "sources.benchmark": (str, "COLUMN", "Data sets, each a study of its own."),
    "sources.model": (str, "COLUMN", "Models: the sources are those of their differences."),
    "sources.source": ([str], "COLUMN", f"Items, prompts, judges, or seeds of a source; {_EACH}"),
    "relative_to": (str, "COLUMN", "Source whose variance is the unit of the others."),
    "project": (bool, "", "What more of each source would change, and the best design for a cost."),
    "sources.current": ([str], "SOURCE=NUMBER", f"The design in use; by default that of the table; {_EACH}"),
    "sources.budget": (float, "NUMBER", "What may be spent; by default the cost of the design in use."),
    "sources.cost": ([str], "SOURCE=NUMBER", f"Of a unit: item=2, item:prompt=1, score=0.1; {_EACH}"),
    "sources.at_most": ([str], "SOURCE=NUMBER", f"Largest numbers; {_EACH}"),
    "sources.alpha": (float, "NUMBER", "One less the level of each interval."),
    # looks
    "maximum": (int, "N", "Benchmarks (or seeds) at the end, planned before the first look."),
    "looks": ([int], "N", f"Benchmarks at a planned look, the last at the end; {_EACH}"),
    "looked": (str, "N|FILE", "How often the table was looked at so far, without a plan; or the ledger of monitor."),
    "monitor.looks": ([int], "N", "A look every N of them; or repeated, at these numbers."),
    "monitor.unit": (("benchmark", "seed"), "", "What is added; with seeds the claim is about these benchmarks."),
    "goal": (("all", "best"), "", "Stop when all pairs are decided, or when one is better than all others."),
    "monitor.method": (("spending", "evalue"), "", "Alpha spending up to a maximum; or e-values, which have no end."),
    "spending": (("obrien_fleming", "pocock"), "", "Little early and nearly all at the end; or evenly."),
    "monitor.alpha": (float, "NUMBER", "Largest probability of any false difference in the whole study."),
    "futility": (float, "NUMBER", "Predicted power below which a study cannot be decided."),
    "ledger": (Path, "FILE", "Where looks are noted; made at the first one, never rewritten."),
    "extension": (bool, "", "Test what is beyond the plan at the level that the looks left."),
    # a gate
    "gate.table": (Path, "NEW", f"Runs of the new version: {FILES}"),
    "old": (Path, "OLD", "Runs of the old version, with columns of the same names."),
    "margin": ([str], "[NAME=]NUMBER", f"Loss that is not acceptable: 0.01, 1%, acc=0.01; {_EACH}"),
    "gate.policy": (Path, "FILE", "Rules in TOML: metrics in tiers, margins, bars, required tasks."),
    "gate.looks": ([int], "N", f"Tasks at a planned look, the last at the end; {_EACH}"),
    "gate.method": (("evalue",), "", "Without a plan, at every look as tasks are added: e-values."),
    "gate.ledger": (Path, "FILE", "Of e-values: where looks are noted, one file for each version."),
    "gate.score": ([str], "COLUMN", f"A metric; {_EACH}"),
    "gate.direction": ([str], "[NAME=]END", "minimize or maximize, if names do not say it."),
    "gate.benchmark": (str, "COLUMN", "The tasks. Required."),
    "gate.seed": (str, "COLUMN", "What tells runs, or items, of a task apart."),
    "metric": (str, "COLUMN", "Names of metrics, if each has rows of its own."),
    "gate.family": ([str], "COLUMN", "Groups of tasks, such as suites."),
    "gate.seed_own": (bool, "", "Seeds only number the runs: seed 1 is another one on each task."),
    "tasks": (("like-these", "these"), "", "like-these: they are a sample; these: no others matter."),
    "gate.alpha": (float, "NUMBER", "Largest probability of a wrong answer; by default 0.05."),
    "gate.power": (float, "NUMBER", "For the number of tasks that would settle it; by default 0.8."),
    "max_broken": (float, "SHARE", "Also show that no more tasks like these are broken: 0.1 takes 29 tasks."),
    "allow": ([str], "WHAT", "missing: decide without runs that NEW lacks; identical: pass a copy."),
    "markdown": (Path, "FILE", "To write: the summary for a pull request, .md."),
    "gate.output": ([Path], "FILE", f"To write: .md, .json, .html, ...; {_EACH}"),
    # exports of other tools
    "files": ([str], "FILE...", "Files, folders or patterns such as 'runs/*.csv'."),
    "convert.score": (str, "COLUMN", "The score, or the metric of a chart."),
    "convert.algorithm": (str, "COLUMN", "What is compared."),
    "convert.benchmark": (str, "COLUMN", "Tasks, or the names of the rows."),
    "convert.seed": (str, "COLUMN", "What identifies repetitions."),
    "convert.metafeature": ([str], "COLUMN", "What describes a run's circumstances."),
    "convert.only": ([str], "COLUMN", "A column of scores; may be repeated. All others by default."),
    "names": (str, "PATTERN", "What names are made of: '{algorithm}_{benchmark}_{seed}'."),
    "study": (str, "COLUMN", "Names of the studies in one table; by default study or study_name."),
    "convert.metric": (str, "NAME", "Which of several metrics."),
    "objective": (str, "NAME", "Which of several objectives: its number from 0, or its name."),
    "parameter": (str, "NAME", "Compare the values of this parameter instead of candidates."),
    "filter": (str, "NAME", "Which of several filters of the answers."),
    "evals": (str, "FILE", "What evals_df returns, for samples without their model and task."),
    "duplicates": (str, "last", "Of several attempts at one run keep the last one."),
    "averaged": (int, "COUNT", "How many runs each number is the mean of."),
    "first": (int, "COUNT", "The budget of the first score of a curve: 1, or 0."),
    "game": ([str], "NAME", "The name of a column of scores, in their order; repeated."),
    "frame": ([float], "NUMBER", "The budgets of curves, in their order; repeated."),
    "single_trials": (bool, "", "Scores of single trials instead of the best one so far."),
    "convert.output": (Path, "FILE", "To write: .csv or .parquet."),
    # the explorer
    "no_browser": (bool, "", "Print the address, and open no browser."),
    # what is written
    "json": (bool, "", "Print the results as json instead of sentences."),
    "raw_csv": (bool, "", "In csv, leave texts that a spreadsheet would evaluate (=1+1) without apostrophe."),
    "paper.output": (Path, "FOLDER", "Folder for the files; may be a new one."),
    "overwrite": (bool, "", "Replace files that were changed since, or that others wrote."),
    "output": (Path, "FILE", "To write: .html, .md, .txt, .tex, .csv, .json or .png."),
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

FILE = ("where", "sheet", "sep", "decimal", "encoding")  # the last options in a help
ROLES = (
    "score",
    "direction",
    "algorithm",
    "benchmark",
    "budget",
    "seed",
    "metafeature",
    "family",
    "ignore",
    "seed_own",
)
TABLE = ("table", *FILE)
RUNS = (
    *("table", *ROLES, "yes", "wide", "methods", "failed", "drop_duplicates", "score_failures", "drop_missing"),
    *("best_so_far", "at_budget", "normalize", "reference", "target", "best_known", *FILE),
)
WRITTEN = ("json", "raw_csv", "output")


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
    """Of some options those that were given, as arguments of a function."""
    return {name: getattr(arguments, name) for name in names.split() if getattr(arguments, name) is not None}


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
