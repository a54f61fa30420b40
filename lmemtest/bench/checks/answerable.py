"""What a table can answer: which questions, for whom, what blocks the others, and what would unblock them.

Every question has one row: a code for whether it can be answered, a code for what blocks it, and the number of
benchmarks, runs, pairs or seeds that are missing. The words are made from the codes. Nothing is tested here: the
numbers come from the design, and the smallest difference from the scatter of the advantages over benchmarks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.bench.data.blocks import blocks_of
from lmemtest.bench.data.column import direction_of, read_columns
from lmemtest.bench.data.failures import WORDS, columns_of_failures
from lmemtest.bench.data.forms import tidied
from lmemtest.bench.data.guessing import MOST_READINGS, Guess, guess, in_its_form
from lmemtest.bench.data.recognised import EVALUATE, Recognised, recognised
from lmemtest.bench.data.roles import command_of, keywords_of
from lmemtest.bench.data.runs import Runs
from lmemtest.bench.power.power import power
from lmemtest.bench.power.variance_components import VarianceComponents
from lmemtest.core.caller import advice
from lmemtest.core.frames import collected
from lmemtest.core.hints import guided
from lmemtest.core.result import Answer
from lmemtest.core.rounding import tolerance
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import as_frame, check_number
from lmemtest.core.words import format_level, format_number, plural
from lmemtest.errors import LmemtestError

if TYPE_CHECKING:
    from lmemtest.core.arrays import Array

    Row = tuple[str, str, str, Sequence[str], str]  # question, what blocks it, or a part of it, command, what is known

FILE = {"runs": ("FILE",), "table": ("FILE",)}
FEWEST_BENCHMARKS = 6  # with five the smallest two-sided p-value of their signs is 2 / 2^5 = .0625
FEWEST_PAIRS = 29  # to find P(A > B) = .75 at 5 % with 95 % power (Noether 1987)
COLUMNS = [
    *("question", "asks", "answerable", "population", "blocked_by", "n_needed", "unblocks", "known", "function"),
    "command",
]  # fmt: skip
MOST_WORDS = 5  # in place of scores that can be kinds of failures; more are rather another column
_MOST_MEANS = 400  # algorithms times benchmarks, of a model that has a mean for each

# By question: how it is asked, for whom the answer holds, and the function that answers.
OF_RUNS = {
    "like_these": ("Which algorithm is better on benchmarks like these?", "benchmarks like these", "rank"),
    "these": ("Which algorithm is better on exactly these benchmarks?", "runs on these benchmarks", "analyze"),
    "size": ("How many benchmarks would show a smaller difference?", "benchmarks like these", "plan"),
    "runs": ("How often is a run of A better than one of B, P(A > B)?", "benchmarks like these", "outperforming"),
    "budget": ("Does it depend on the budget, and from which on?", "benchmarks like these", "budget_effect"),
    "metafeatures": ("Do metafeatures decide which is better?", "benchmarks like these", "metafeature_effect"),
    "seeds": ("How much do seeds matter?", "benchmarks like these", "variance_sources"),
    "tuning": ("How good is the best of k trials (tuning curves)?", "trials on these benchmarks", "tuning.curves"),
}
OF_ITEMS = {
    "tasks": ("Which model is better on tasks like these?", "tasks like these", "evaluate"),
    "items": ("Which model is better on items like these?", "items of these tasks", "evaluate"),
    "these_items": ("Which model is better on exactly these items?", "attempts at these items", "evaluate"),
}
VOTES = {"votes": ("Which of two do people or judges prefer?", "votes like these", "rate_votes")}

# By code of what blocks a question: what would unblock it; {more} is the number that is missing, with its unit.
UNBLOCKS = {
    "of_items": "these are answers to items: ask by tasks and items",
    "of_export": "read it with its importer first: see the command below",
    "of_votes": "these are votes, which have no scores",
    "roles": "say which columns are the score, its direction and the algorithm",
    "scores": "score every run first: see the findings below",
    "never_met": "run two algorithms on the same benchmarks: none has a benchmark in common",
    "one_benchmark": "{more} that all algorithms ran on",
    "few_benchmarks": "{more}: with fewer than 6 it rests on normal differences alone",
    "no_repeats": "2 runs of each algorithm on each benchmark, with a column of seeds",
    "too_large": "fewer algorithms or benchmarks: keep some with --where",
    "no_scatter": "runs that differ: advantages are the same on all benchmarks",
    "few_pairs": "{more} of runs, to find P = .75 with 95 % power",
    "no_budget": "scores at 2 budgets at least, with a column of budgets",
    "no_seed": "a column of seeds, which links the scores of one run",
    "no_metafeature": "a column that describes runs or benchmarks, as a metafeature",
    "trials": "holds if these are independent trials of a random search, which no column shows",
    "wide": "a row per run with a score in each: no --wide, no --normalize",
    "no_items": "a row per answer: columns of the model, the item and the score",
    "one_task": "{more}, and a column of tasks",
    "few_tasks": "{more}: with fewer than 6 it rests on normal differences alone",
    "no_epochs": "1 more attempt at each item, and a column of epochs",
    "no_votes": "a row per vote: two names, and which of them won",
}


@guided
@one_blas_thread()
def answerable(table: Any, *, effect: float | None = None) -> Answer:
    """Say what a table can answer and for whom, what blocks the rest, and what would unblock it.

    Parameters
    ----------
    table : Runs, dataframe or mapping
        Runs; or a table whose roles are guessed by names and structure, and told. Where several readings are as good,
        the answers are those of the first one, and the others are told. Runs without a score, or with a word in its
        place, count as failed with the worst score of their benchmark, which is told, too.
    effect : float > 0, optional
        Difference of two algorithms that would matter, in units of the score; by default half of the smallest one that
        the table finds now.

    Returns
    -------
    Answer
        Its table has one row per question: ``question`` (a code), ``asks``, ``answerable`` ("yes", "partly", "no"),
        ``population``, ``blocked_by`` (a code, empty where nothing does), ``n_needed`` (how many are missing; missing
        where that is no number), ``unblocks`` (the same in words), ``known`` (what is to be known of an answer) and
        ``function`` (in Python) and ``command`` (on the command line alone). Its values: ``roles`` of the
        runs (empty where they cannot be told), ``others``, a tuple of what other readings have in their place,
        ``failed``, which runs are taken for failed, and ``detectable``, the smallest difference that is found with
        80 % power, ``effect``, the one that is planned for, and ``more``, how many more benchmarks that takes (NaN
        where nothing says so).

    Raises
    ------
    ArgumentError
        If `table` is no table, or `effect` is no positive number.
    DataError
        If scores hold words that are too many to be kinds of failures.

    Notes
    -----
    The smallest difference is that of the analysis of means: with the n benchmarks that all k algorithms ran on, the
    variance of a difference is 2 s2 / n, s2 the mean square of the means' residuals from an additive model on
    (n - 1)(k - 1) degrees of freedom, which supposes equally scattered advantages. Families are the sample where
    `rank` takes them for it. All pairs of algorithms, two-sided 5 % (Tukey).

    References
    ----------
    Noether (1987), doi:10.1080/01621459.1987.10478478, for the number of pairs

    Examples
    --------
    >>> import lmemtest as lt
    >>> runs = lt.datasets.load_hpo_runs().filter(budget=8, prior="good")
    >>> lt.answerable(runs).to_frame()[["question", "answerable", "blocked_by"]].head(5)
         question answerable      blocked_by
    0  like_these        yes
    1       these        yes
    2        size        yes
    3        runs        yes
    4      budget         no       no_budget
    """
    if isinstance(table, Runs):
        return answers_of(table, effect=effect)
    frame = collected(as_frame(table, argument="table")).to_pandas().rename(columns=str)
    export = recognised(frame)
    readings, unread = readings_of(frame, {})
    if not readings.readings or (export is not None and export.tool != EVALUATE):
        return answers_of(None, export=export, frame=frame, effect=effect)
    first = readings.readings[0]
    if first.wide:
        runs = Runs.from_wide(frame, **first.roles, failed=unread or None)
    else:
        tidy = tidied(first.rows(frame), wide=False, score=first.roles["score"], failed=unread)
        runs = Runs(tidy.frame, **{**first.roles, "failed": tidy.roles.get("failed")})
    typed = [*FILE["runs"], *(["--yes"] if readings.sure else first.options({}))]
    words = {"runs": typed, "table": () if first.wide or unread else FILE["table"]}
    return answers_of(runs, export=export, frame=frame, readings=readings, effect=effect, words=words, unread=unread)


def readings_of(frame: pd.DataFrame, given: Mapping[str, Any], *, wide: bool = False) -> tuple[Guess, list[str]]:
    """The readings of a table, and the words in place of scores of the first one, which may stand for failures."""
    readings = guess(frame, given, wide=True) if wide else in_its_form(frame, given)
    texts = [column for column in read_columns(frame).values() if not column.is_numeric]
    scores = {column.name: column for column in texts if column.mostly}
    if not readings.readings and scores:  # a column per algorithm, with words in some of them
        numbers = in_its_form(frame.assign(**{name: column.numbers for name, column in scores.items()}), given)
        readings = numbers if any(reading.wide for reading in numbers.readings) else readings
    first = next(iter(readings.readings), None)
    names = () if first is None else scores if first.wide else (first.roles["score"],)
    words = list(dict.fromkeys(word.strip() for name in names if name in scores for word in scores[name].words))
    return readings, words if len(words) <= MOST_WORDS else []


def _scored(runs: Runs, unread: Sequence[str]) -> tuple[Runs, list[str]]:
    """The runs where each failed one counts the worst score of its benchmark, and what they are taken for failed by.

    `unread` are the words in cells that were taken for failed runs. A column of kinds that tells the runs without a
    score, and no others, is better than their scores: kinds may count differently. Runs without failures, and those of
    which some benchmark has no score at all, stay as they are.
    """
    if not runs.study.groups(()).n_bad.any():
        return runs, []
    for way in [runs.failed] if runs.failed is not None else [*columns_of_failures(runs), *WORDS]:
        try:
            scored = Runs(runs.frame, **{**runs.roles(), "failed": way}).score_failures("worst")
        except LmemtestError:
            continue
        if not scored.study.groups(()).n_bad.any():
            return scored, list(unread) or [way]
    return runs, []


def answers_of(
    runs: Runs | None,
    *,
    export: Recognised | None = None,
    frame: pd.DataFrame | None = None,
    readings: Guess | None = None,
    effect: float | None = None,
    words: Mapping[str, Sequence[str]] = FILE,
    unread: Sequence[str] = (),
) -> Answer:
    """The answer about runs, or about a table of another kind.

    `readings` are those that roles were guessed by. `words` are those of commands after their name: of one that reads
    runs as this one did ("runs"), and of one that takes a table as it stands ("table"; none if it is wide). `unread`
    are words in cells of scores that were taken for failed runs and are not among `words`.
    """
    if effect is not None:
        check_number(effect, "effect", low=0, open="low")
    values: dict[str, Any] = {"detectable": np.nan, "effect": np.nan, "more": np.nan, "roles": {}, "others": ()}
    values["failed"] = ()
    of_items, votes = export is not None and export.tool == EVALUATE, export is not None and export.code == "battles"
    other = "of_items" if of_items else "of_votes" if votes else ""
    missing, unit = {"no_budget": 2, "no_repeats": 1, "no_epochs": 1}, "benchmark"
    if runs is not None and not other:
        scored, failed = _scored(runs, unread)
        new = [part for way in (failed if unread or runs.failed is None else ()) for part in ("--failed", way)]
        options = [*new, *["--score-failures", "worst"] * bool(failed)]
        words = {"runs": [*words["runs"], *options], "table": () if failed else words["table"]}
        rows, more, unit = _of_runs(scored, effect, words, values)
        missing |= more
        values |= {"roles": {**runs.roles(), "failed": None}, "failed": tuple(failed)}
    else:
        rows = _blocked(OF_RUNS, other or ("roles" if export is None else "of_export"))
        rows[-1] = rows[-1] if other or export is not None else _of_trials(frame, words)
    rows += _blocked(OF_ITEMS, other) if votes else _of_items(export, frame, missing)
    rows.append(("votes", "" if votes else "no_votes", "", export.command if votes and export is not None else (), ""))
    texts = {**OF_RUNS, **OF_ITEMS, **VOTES}
    units = {"one_task": "task", "few_tasks": "task", "few_pairs": "pair"}
    records = []
    for question, no, partly, command, known in rows:
        asks, population, function = texts[question]
        code, n = no or partly, missing.get(no or partly)
        unblocks = UNBLOCKS.get(code, "").format(more=_more(n or 0, units.get(code, unit)))
        answer = "no" if no else "partly" if partly else "yes"
        typed = advice("typed", call="", command=["lmemtest", *command]) if command and not no else ""
        records.append((question, asks, answer, population, code, n, unblocks, "" if no else known, function, typed))
    table = pd.DataFrame(records, columns=COLUMNS).astype({"n_needed": "Int64"})
    facts = [f"It looks like {export.what}."] if export is not None else []
    if values["roles"]:
        roles = advice("typed", call=keywords_of(values["roles"]), command=command_of(values["roles"]))
        facts += _on_readings(readings, roles, values)
    if values["failed"]:
        names = repr(failed[0] if len(failed) == 1 else failed)
        how = advice("typed", call=f"failed={names}, then score_failures('worst')", command=options)
        facts.append(f"{scored.notes[-1]} That is said by {how}.")
    return Answer(
        question="answerable",
        title="What this table can answer",
        tables={"answers": table},
        values=values,
        facts=tuple(facts),
        printed=table[["asks", "answerable", "unblocks"]],
    )


def _on_readings(readings: Guess | None, roles: str, values: dict[str, Any]) -> list[str]:
    """What roles were guessed, and what else they may be, which goes to `values`."""
    if readings is None or readings.sure or not readings.readings:
        return [f"Roles{' by names and structure, which options correct' if readings is not None else ''}: {roles}"]
    first, *others = readings.readings
    if first.wide:
        roles = advice("typed", call=first.call("Runs.from_wide(table, {})"), command=first.options({}))
    roles = ", ".join([*first.conditions, roles])
    values["others"] = tuple(reading.new(first.roles) for reading in others)
    instead = [
        advice(
            "typed",
            call=", ".join(filter(None, [*other.conditions, keywords_of(new)])),
            command=other.options(first.roles, wide=True),
        )
        for other, new in zip(others, values["others"], strict=True)
    ]
    n_more = len(instead) + 1 - MOST_READINGS
    more = f"; and {n_more} more" if n_more > 0 else ""
    ends = {name for new in values["others"] for name in new} == {"direction"} and first.where is None
    return [
        f"Reading the table so: {roles}",
        f"Equally plausible: {'; '.join(instead[: MOST_READINGS - 1])}{more}. Only you can say "
        f"{'whether low or high scores are good' if ends else 'which is right'}.",
    ]


def _of_runs(
    runs: Runs, effect: float | None, words: Mapping[str, Sequence[str]], values: dict[str, Any]
) -> tuple[list[Row], dict[str, int], str]:
    """The rows of runs, what is missing by code, and what the sample is one of; sizes go to `values`."""
    study, k, n_benchmarks = runs.study, len(runs.algorithms), runs.study.count(runs.benchmark)
    blocked = "never_met" if study.crossing is not None and study.crossing.none_meet else ""
    try:
        blocks = blocks_of(runs, unit=None if n_benchmarks > 1 else "benchmark")
    except LmemtestError:  # scores are missing, or not at common budgets, which the checks tell
        return _blocked(OF_RUNS, blocked or "scores"), {}, "benchmark"
    n, pairs, unit = int(blocks.complete.sum()), int(blocks.n_runs.min(axis=1).sum()), blocks.unit
    goal, finds, takes = "", "", ""
    if n > 1:
        values |= _sizes(blocks.scores[blocks.complete], effect)
    if np.isfinite(values["effect"]):
        goal = f"{values['effect']:.6g}"
        finds = f"finds differences of {format_number(values['detectable'], 2)} or more with 80 % power"
        takes = f"{_more(values['more'], unit)}, for 80 % power to find a difference of {goal}"
    budgets = runs.levels(runs.budget) if runs.budget else ()
    # the last budget and the first level of each condition, where they vary
    place = [(str(runs.budget), budget) for budget in budgets[1:][-1:]]
    place += [(name, runs.levels(name)[0]) for name in study.conditions]
    at = [part for name, level in place for part in ("--where", f"{name}={format_level(level)}")]
    sample = blocked or "one_benchmark" * (n < 2)
    single, wide = "no_repeats" * bool((blocks.n_runs < 2).all()), "wide" * (not words["table"])
    full = len(blocks.n_runs) == prod(study.count(name) for name in study.instance)
    repeated = n_benchmarks < 2 or (runs.seed is not None and full and bool((blocks.n_runs > 1).all()))
    described = study.conditions or study.kinds or study.properties
    columns = {name: getattr(runs, name) for name in ("score", "direction", "algorithm", "benchmark")}
    of_plan = [*command_of({**columns, "seed": runs.seed, "family": runs.family}), "--effect", goal]
    by_seed = ["--unit", "seed", *command_of({"seed": runs.seed, "budget": runs.budget})] if len(budgets) > 1 else []
    whole, report = words["table"], ["report", *words["runs"]]
    plans = goal and not (single or wide or at)
    rows: list[Row] = [
        ("like_these", sample, "few_benchmarks" * (n < FEWEST_BENCHMARKS), ["rank", *words["runs"]], finds),
        ("these", blocked or single or "no_repeats" * (not repeated) or "too_large" * (k * n_benchmarks > _MOST_MEANS),
         "", [*report, *["--population", "run"] * (n_benchmarks > 1)], ""),
        ("size", sample or "no_scatter" * (not goal), "",
         ["plan", *whole, *of_plan] if plans else ["check", *words["runs"], "--effect", goal], takes),
        ("runs", blocked, "few_pairs" * (pairs < FEWEST_PAIRS),
         ["outperform", *words["runs"], *["--unpaired"] * (runs.seed is None)], ""),
        ("budget", blocked or "no_budget" * (len(budgets) < 2), "no_seed" * (not runs.seed),
         [*report, "--curves", "model"], ""),
        ("metafeatures", sample or "no_metafeature" * (not described), "", report, ""),
        ("seeds", sample or single, "", report, ""),
        ("tuning", wide or single, "trials" * (not (by_seed and runs.seed)),
         ["bands", *whole, *at[2 * bool(by_seed):], *command_of(columns), *by_seed], ""),
    ]  # fmt: skip
    fewer = FEWEST_BENCHMARKS - n
    return rows, {"one_benchmark": fewer, "few_benchmarks": fewer, "few_pairs": FEWEST_PAIRS - pairs}, unit


def _sizes(scores: Array, effect: float | None) -> dict[str, float]:
    """Of means ``(n, k)``: the smallest difference that is found, one to plan for, and how many more blocks it takes.

    Nothing where advantages do not scatter.
    """
    n, k = scores.shape
    rest = scores - scores.mean(axis=0) - scores.mean(axis=1, keepdims=True) + scores.mean()
    if np.ptp(rest) <= tolerance(scores):
        return {}
    sd = float(np.sqrt((rest**2).sum() / ((n - 1) * (k - 1))))
    design: dict[str, Any] = {
        "n_benchmarks": n,
        "n_seeds": 1,
        "n_algorithms": k,
        "test": "means",
        "method": "closed_form",
    }
    components = VarianceComponents(interaction_sd=0.0, residual_sd=sd)  # of a mean, whatever it is made of
    detectable = float(power(components, effect=0.0, **design).detectable().to_frame()["effect"].iloc[0])
    effect = float(f"{detectable / 2.0:.2g}") if effect is None else effect
    needed = power(components, effect=effect, **design).needed().to_frame()["n_benchmarks"].iloc[0]
    return {"detectable": detectable, "effect": effect, "more": np.nan if pd.isna(needed) else max(int(needed) - n, 0)}


def _more(count: float, unit: str) -> str:
    """How many more of something; NaN stands for too many to count."""
    return f"{'over a million' if np.isnan(count) else f'{int(count):,}'} more {unit if count == 1 else plural(unit)}"


def _of_trials(frame: pd.DataFrame | None, words: Mapping[str, Sequence[str]]) -> Row:
    """The row of tuning curves of a table in which nothing is compared: one score whose name says its direction."""
    known = {} if frame is None else in_its_form(frame, {}).known
    columns = {"score": known.get("score"), "direction": direction_of(str(known.get("score")))}
    blocked = "roles" * (None in columns.values() or known.get("algorithm") is not None)
    return "tuning", blocked, "trials", ["bands", *words["table"], *command_of(columns)], ""


def _blocked(questions: Iterable[str], code: str) -> list[Row]:
    """The rows of questions that one thing blocks."""
    return [(question, code, "", (), "") for question in questions]


def _of_items(export: Recognised | None, frame: pd.DataFrame | None, missing: dict[str, int]) -> list[Row]:
    """The rows of answers of models to items; what is missing goes to `missing`."""
    if export is None or export.tool != EVALUATE or frame is None:
        return _blocked(OF_ITEMS, "of_export" if export is not None and export.tool else "no_items")
    task, epoch = (export.options.get(name) for name in ("task", "epoch"))
    n = 1 if task is None else frame[task].nunique()
    missing |= dict.fromkeys(("one_task", "few_tasks"), FEWEST_BENCHMARKS - n)
    return [
        ("tasks", "one_task" * (n < 2), "few_tasks" * (n < FEWEST_BENCHMARKS), export.command, ""),
        ("items", "", "", export.command, ""),
        ("these_items", "no_epochs" * (not epoch), "", export.command, ""),
    ]
