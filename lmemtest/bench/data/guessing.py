"""What the columns of a table are, by their names and by how they lay out its rows: one guesser for Python and the
command line.

Names go first. Where they say nothing, structure does: a column whose values are crossed evenly with those of others
lays out the table, one that is constant on each benchmark and has fewer values groups them, numbers that runs share are
budgets. Where two readings are as good, both are shown and none is taken.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import narwhals as nw
import pandas as pd

from lmemtest.bench.data.column import (
    SCORE_NAMES,
    Column,
    direction_of,
    mean_columns,
    read_columns,
    role_of,
    runs_in_names,
    words_of,
)
from lmemtest.bench.data.failures import WELL
from lmemtest.bench.data.requirements import FEWEST_FAMILIES
from lmemtest.bench.data.roles import (
    MANY,
    answer_roles,
    command_of,
    is_solved_or_not,
    keywords_of,
    unnamed_columns,
    with_roles,
)
from lmemtest.core.caller import advice
from lmemtest.core.frames import collected
from lmemtest.core.options import NEEDED
from lmemtest.core.validate import as_frame, free_name
from lmemtest.core.words import counted, joined, listed, plural
from lmemtest.errors import ArgumentError, LmemtestError

if TYPE_CHECKING:
    from lmemtest.bench.data.runs import Runs

SINGLE = (*NEEDED, "benchmark", "seed", "budget")
SEVERAL = ("family", "metafeatures", "ignore")
MOST_READINGS = 4  # that are shown
MOST_KINDS = 10  # of failures in one column
NUMBERS = 0.5  # of the cells of a column of text are numbers, where it may hold scores
_SUCCESSES = frozenset({"c", "correct", "hits", "passed", "passes", "solved", "successes"})  # last words of counts
_TRIALS = frozenset({"n", "trial", "attempts", "questions", "samples", "total", "trials", "tries"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """The arguments of `Runs`, or of `Runs.from_wide` where `wide`; and `when`, what must hold for this reading.

    `where` are a column and its value in the rows that are read, where rows of several scores are in one column.
    """

    roles: dict[str, Any]
    wide: bool = False
    when: str = ""
    where: tuple[str, str] | None = None

    def rows(self, table: pd.DataFrame) -> pd.DataFrame:
        """The rows that are read."""
        return table if self.where is None else table[table[self.where[0]] == self.where[1]]

    @property
    def conditions(self) -> list[str]:
        """Which rows are read, as the command line has it."""
        return [] if self.where is None else ["=".join(self.where)]

    def new(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """The roles beside those that were given."""
        found = {}
        for name, value in self.roles.items():
            before = given.get(name)
            if isinstance(value, tuple) and name in SEVERAL:
                value = tuple(column for column in value if column not in (before or ()))
            elif value == before:
                continue
            if value not in (None, ()):
                found[name] = value
        return found

    def options(self, given: Mapping[str, Any], *, wide: bool = False) -> list[str]:
        """What is new, as options of the command line."""
        where = [part for condition in self.conditions for part in ("--where", condition)]
        return [*where, *(["--wide"] if self.wide and not wide else []), *command_of(self.new(given))]

    def call(self, function: str) -> str:
        """The call of a function of Python whose arguments are ``{}``."""
        if self.where is not None:
            rows = "df[df[{!r}] == {!r}]".format(*self.where).replace("{", "{{").replace("}", "}}")
            function = function.replace("(df, ", f"({rows}, ")
        return function.format(keywords_of(self.roles))


@dataclass(frozen=True, slots=True, kw_only=True)
class Guess:
    """The readings of a table.

    Attributes
    ----------
    readings : tuple of Reading
        One, if names and structure leave no choice; several that are as good, the likelier first; none if nothing can
        be said of a role that is needed.
    lacking : tuple of str
        Roles that are needed and for which there is no candidate.
    known : dict
        The roles that are known all the same.
    reasons : tuple of str
        Why a column has its role, where its name does not say it.
    left_out : tuple of str
        Columns without a role in the first reading, with what they do to the rows.
    """

    readings: tuple[Reading, ...]
    lacking: tuple[str, ...] = ()
    known: dict[str, Any] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def sure(self) -> bool:
        """Whether there is one reading."""
        return len(self.readings) == 1

    def passes_over(self, score: str | None) -> bool:
        """Whether every reading has another score than this one, such as the time that an answer took."""
        return score is not None and all(reading.roles.get("score") != score for reading in self.readings)

    def taken(self, options: str) -> list[str]:
        """What is taken, as it is typed, why, and what is left out, a line each."""
        lines = [f"taking {options}", *(f"  {reason}" for reason in self.reasons)]
        return [*lines, *([f"left out: {', '.join(self.left_out)}"] if self.left_out else [])]

    def told(self, given: Mapping[str, Any], function: str, *, wide: bool = False) -> str:
        """The readings as calls of a function of Python (with ``{}`` for its arguments), or as commands."""
        lines, first = list[str](), next(iter(self.readings), None)
        for reading in self.readings[:MOST_READINGS]:
            line = advice(
                "again",
                call=reading.call(function if not reading.wide else _of_wide(function)),
                command=reading.options(given, wide=wide),
            )
            lines += [f"{reading.when[:1].upper()}{reading.when[1:]}:" if reading.when else "", f"  {line}"]
        if first is not None and self.sure:
            lines[0] = "By names and structure:"
        elif first is not None:
            n, unlike = len(self.readings), {name for reading in self.readings for name in reading.new(first.roles)}
            shown = f" The first {MOST_READINGS}:" if n > MOST_READINGS else ""
            if unlike == {"direction"} and first.where is None:
                lines.insert(0, "Only you can say whether low or high scores are good.")
            else:
                lines.insert(0, f"{n} readings are equally plausible; choose one.{shown}")
        if first is None and self.known:
            lines += ["No column has the names of the benchmarks."] if self.lacking == ("benchmark",) else []
            known = advice("typed", call=keywords_of(self.known), command=" ".join(command_of(self.known)))
            lines.append(f"What is known: {known}")
        lines += [*self.reasons]
        lines += [f"Left out: {', '.join(self.left_out)}."] if self.left_out else []
        return "\n".join(filter(None, lines))


def _of_wide(function: str) -> str:
    """The same call for a table with a column per algorithm."""
    return function.replace("Runs(", "Runs.from_wide(")


def guess(table: Any, given: Mapping[str, Any] | None = None, *, wide: bool = False) -> Guess:
    """Complete the arguments of `Runs` from names and structure.

    `given` are roles that are known, of which none is changed; `wide` that every algorithm has a column.

    >>> table = pd.DataFrame({"tool": ["A", "B"] * 4, "task": list("uuuuvvvv"), "rep": [0, 0, 1, 1] * 2,
    ...                       "loss": [0.1, 0.2, 0.15, 0.1, 0.4, 0.3, 0.2, 0.1], "host": ["x"] * 8})
    >>> found = guess(table)
    >>> {role: name for role, name in found.readings[0].roles.items() if name}
    {'score': 'loss', 'direction': 'minimize', 'algorithm': 'tool', 'benchmark': 'task', 'seed': 'rep'}
    >>> found.left_out
    ("'host'",)
    """
    frame = _as_pandas(table)
    roles: dict[str, Any] = {**dict.fromkeys(SINGLE), **dict.fromkeys(SEVERAL, ()), **(given or {})}
    columns = read_columns(frame)
    if wide or (roles["score"] is None and roles["algorithm"] is None and _looks_wide(frame, columns, roles)):
        return _of_columns(frame, columns, roles)
    free = [column for name, column in columns.items() if name not in _named(roles) and not column.is_nested]
    scores = [roles["score"]] if roles["score"] is not None else _scores(free)
    rest = [column for column in free if column.name not in scores]
    algorithms, reason = ([roles["algorithm"]], "") if roles["algorithm"] is not None else _algorithms(frame, rest)
    found = [_with_structure(frame, columns, roles, algorithm, scores) for algorithm in algorithms]
    found = [_of_answers(frame, roles, scores, *structure) for structure in found]
    of_text = [columns[name] for name in found[0][0]["metafeatures"] if not columns[name].is_numeric] if found else []
    parts = (c.name for c in of_text if c.role == "choice" or _divides(frame, c.name, algorithms[0]))
    choice = next(parts, None)
    if choice is not None and choice not in roles["metafeatures"] and scores:
        return _of_choices(frame, roles, choice)
    refused = _runs_in_names(columns, rest, algorithms, scores)
    refused = refused or (_counts_of_unequal_trials(frame, columns, scores) if roles["score"] is None else ())
    if refused or not scores or not algorithms:
        known = found[0][0] if found else {**roles, "score": next(iter(scores), None)}
        lacking = tuple(name for name, columns in (("score", scores), ("algorithm", algorithms)) if not columns)
        said = {name: known[name] for name in known if known[name] not in (None, ()) and known[name] != roles.get(name)}
        said = {name: value for name, value in said.items() if name != "seed_shared"}
        return Guess(readings=(), lacking=lacking, known={} if refused else said, reasons=refused)
    readings, reasons = list[Reading](), [reason] if reason and len(algorithms) == 1 else []
    for (structure, _), score in itertools.product(found, scores):
        direction = roles["direction"] or direction_of(score)
        if direction is None and columns[score].role == "budget":
            direction = "minimize"
            reasons.append(f"{score!r} differs from run to run: taken as what a run cost.")
        if direction is None and _are_ranks(frame, {**structure, "score": score}):
            direction = "minimize"
            reasons.append(f"The values of {score!r} are ranks from 1 on, of which low ones are good.")
        which = [f"{structure['algorithm']!r} is what is compared"] if len(algorithms) > 1 else []
        which += [f"{score!r} is the score"] if len(scores) > 1 else []
        for end in [direction] if direction is not None else ["maximize", "minimize"]:
            ends = [f"a {'high' if end == 'maximize' else 'low'} {score!r} is good"] if direction is None else []
            when = f"if {' and '.join([*which, *ends])}" if which or ends else ""
            readings.append(Reading(roles={**structure, "score": score, "direction": end}, when=when))
    reasons += found[0][1] if len(found) == 1 else []
    reasons += [
        f"{name!r} holds texts such as {str(columns[name].values.dropna().iloc[0])!r}: a metafeature. As numbers alone "
        "it would be the budget."
        for name in found[0][0]["metafeatures"]
        if columns[name].role == "budget" and columns[name].is_text
    ]
    return Guess(
        readings=tuple(readings),
        reasons=tuple(dict.fromkeys(reasons)),
        left_out=left_out(frame, readings[0].roles, scores),
    )


def _divides(table: pd.DataFrame, part: str, algorithm: str) -> bool:
    """Whether a table holds several comparisons: each part has algorithms of its own, and at most one is in all."""
    within = [set(names.dropna()) for _, names in table.groupby(part, observed=True)[algorithm]]
    return len(within) > 1 and min(map(len, within)) > 1 and len(set.intersection(*within)) < 2


def _of_choices(table: pd.DataFrame, roles: Mapping[str, Any], choice: str) -> Guess:
    """The readings of the rows of each score, or part of the data, that a column names."""
    readings = list[Reading]()
    said = "{!r} of {!r} is the score" if role_of(choice) == "choice" else "the comparison is within {!r} of {!r}"
    for value in map(str, table[choice].dropna().unique()):
        part = Reading(roles={}, where=(choice, value))
        given = {**roles, "direction": roles["direction"] or direction_of(value)}
        for reading in guess(part.rows(table).drop(columns=choice), given).readings:
            more = reading.when.replace("if ", " and ", 1)
            readings.append(replace(reading, where=part.where, when=f"if {said.format(value, choice)}{more}"))
    return Guess(readings=tuple(readings), lacking=() if readings else ("score",))


def _runs_in_names(
    columns: Mapping[str, Column], free: Sequence[Column], algorithms: Sequence[str], scores: Sequence[str]
) -> tuple[str, ...]:
    """Why a table has no reading whose names of columns or algorithms number runs, and what makes it one that has."""
    stems: dict[str, list[str]] = {}
    for name in scores:
        stems.setdefault(re.sub(r"\d+", "", name), []).append(name)
    stem, numbered = max(stems.items(), key=lambda item: len(item[1]), default=("", []))
    words, numbers = words_of(stem), sorted(int("".join(re.findall(r"\d+", name)) or 0) for name in numbered)
    in_turn = numbers == [n + min(numbers) for n in range(len(numbers))]  # unlike recall@1, 3 and 10
    if len(numbered) > 2 and (in_turn or not words):
        index = [column.name for column in free if not column.name.startswith("Unnamed:")]
        new = next((word for word in words if role_of(word) in ("seed", "budget")), "run" if words else "step")
        number = "" if words else f".astype({{{new!r}: float}})"
        return (
            f"The names {listed(map(repr, numbered), most=2)} differ in a number alone: scores of several runs or "
            f"steps. Give each a row, then call again:\n  df = df.melt({index}, var_name={new!r}, "
            f"value_name='score'){number}",
        )
    suspects = [columns[name] for name in algorithms] or [column for column in free if not column.is_numeric]
    told = (runs_in_names(column.values.dropna().unique(), column.name) for column in suspects if not column.is_nested)
    return next(((one,) for one in told if one), ())


def _counts_of_unequal_trials(
    table: pd.DataFrame, columns: Mapping[str, Column], scores: Sequence[str]
) -> tuple[str, ...]:
    """Why counts of successes are no score where the numbers of trials differ, and what makes them one."""

    def named(names: Iterable[str], words: frozenset[str]) -> list[str]:
        return [name for name in names if columns[name].measures and {*words_of(name)[-1:]} & words]

    for trials, count in itertools.product(named(columns, _TRIALS), named(scores, _SUCCESSES)):
        both = table[[count, trials]].dropna()
        whole = bool((both % 1 == 0).all(axis=None) and both[count].between(0, both[trials]).all())
        if whole and both[trials].nunique() > 1:
            share = "share" if "share" not in table else f"share_of_{trials}"
            return (
                f"{count!r} looks like successes among {trials!r}, which differs between rows, so counts are not "
                f"comparable. {advice('shares', share=share, count=count, trials=trials)}",
            )
    return ()


def _as_pandas(table: Any) -> pd.DataFrame:
    """The table in memory, with names of text."""
    if isinstance(table, pd.DataFrame):
        from lmemtest.bench.data.column import with_names

        unlevelled = not isinstance(table.columns, pd.MultiIndex)
        return table.rename(columns=str) if unlevelled and table.index.names == [None] else with_names(table)
    return collected(as_frame(table, argument="table")).to_pandas()


def _named(roles: Mapping[str, Any]) -> set[str]:
    """The columns that have a role."""
    names = [value for name, value in roles.items() if name not in ("direction", "seed_shared")]
    return {
        part for value in names for part in ([value] if isinstance(value, str) else value or ()) if part is not True
    }


# ---------------------------------------------------------------------------------------------------------- the score


def _scores(free: Sequence[Column]) -> list[str]:
    """The columns of numbers that may be the score: by names that say which end is good, names of scores, any number.

    Spreads and numbers of runs beside a mean are none. Texts most of which are numbers, such as those with a word for a
    failed run, count where their name is a score's.
    """
    numeric = [column for column in free if column.measures]
    _, spare = mean_columns(numeric)
    numeric = [column for column in numeric if column.name not in spare]
    texts = [column for column in free if not column.is_numeric and _mostly_numbers(column)]
    for good in (
        lambda column: column.direction is not None and column.role is None,
        lambda column: bool(column.words_of_name & SCORE_NAMES),
        lambda column: column.direction is not None,
    ):
        found = [column.name for column in (*numeric, *texts) if good(column)]
        if found:
            return found
    plain = [column for column in numeric if column.role is None and column.n_levels > 2]
    if all(column.n_levels < MANY for column in plain):  # settings, beside answers, or a cost that differs by run
        if sum(column.is_true_or_false for column in free) > 1:
            return []
        costs = [c for c in numeric if c.role == "budget" and 2 * c.n_levels > c.values.notna().sum() > MANY]
        plain = costs if len(costs) == 1 else plain
    return [column.name for column in plain or [column for column in texts if column.role is None]]


def _mostly_numbers(column: Column) -> bool:
    """Whether most cells are numbers, perhaps with a sign of per cent."""
    cells, values = pd.factorize(column.values.dropna().astype(str))
    numbers = pd.to_numeric(pd.Series(values).str.strip(" %\u00a0").str.replace(",", "."), errors="coerce")
    return bool(len(cells) and numbers.notna().to_numpy()[cells].mean() > NUMBERS)


def _are_ranks(table: pd.DataFrame, roles: Mapping[str, Any]) -> bool:
    """Whether the scores of every benchmark are the ranks 1 to n."""
    from lmemtest.bench.data.runs import Runs

    try:
        return _of_ranks(Runs(table, **{**roles, "direction": "minimize"}))
    except LmemtestError:  # told when the runs are made in earnest
        return False


def _of_ranks(runs: Runs) -> bool:
    return runs.study.kind.kind == "ranks"


# ----------------------------------------------------------------------------------------------------- what is compared


def _algorithms(table: pd.DataFrame, free: Sequence[Column]) -> tuple[list[str], str]:
    """The columns that may hold what is compared, the likelier first; and why, where a name does not say it.

    A name says it; a model is one where nothing is called an algorithm. Else it is a column of text that is neither
    told by another one, as a suite is by its tasks, nor constant, nor different in every row.
    """
    named = [column for column in free if column.role == "algorithm" and column.n_levels > 1]
    if len(named) > 1:
        best = [column for column in named if {"algorithm", "algo", "alg"} & column.words_of_name]
        named = best if len(best) == 1 else named
    if named:
        return _untold(table, [column.name for column in named]), ""
    whole = [c for c in free if not c.values.isna().any() and 1 < c.n_levels <= len(table) / 2]
    open_ = [column for column in whole if column.role is None and not _mostly_numbers(column)]
    text, names = [column.name for column in open_ if not column.is_numeric], [column.name for column in whole]
    found = _untold(table, text) or [
        column.name for column in open_ if column.measures and _is_crossed(table, column.name, names)
    ]
    found.sort(key=lambda name: table[name].nunique())
    if len(found) != 1:
        return found, ""
    kind = "only column of text" if text else "only column"
    return found, f"{found[0]!r} is the {kind} that lays out the rows and whose name says no other role."


def _untold(table: pd.DataFrame, names: Sequence[str]) -> list[str]:
    """The columns that lay out rows by themselves: others neither decide their values nor are decided by several."""
    sizes = {name: table[name].nunique() for name in names}
    decides = {(a, b) for a, b in itertools.permutations(names, 2) if len(table[[a, b]].drop_duplicates()) == sizes[a]}
    ids = {a for a in names if sum((a, b) in decides and sizes[b] < sizes[a] for b in names) > 1}
    kept = [name for name in names if name not in ids]
    return [
        b
        for i, b in enumerate(kept)
        if not any((a, b) in decides and (sizes[a] > sizes[b] or a in kept[:i]) for a in kept if a != b)
    ]


def _is_crossed(table: pd.DataFrame, name: str, others: Iterable[str]) -> bool:
    """Whether every value of a column meets every value of some other one."""
    return any(
        len(table[[name, other]].drop_duplicates()) == table[name].nunique() * table[other].nunique()
        for other in others
        if other != name
    )


# ----------------------------------------------------------------------------------------------- what lays out the rows


def _with_structure(
    table: pd.DataFrame, columns: Mapping[str, Column], roles: dict[str, Any], algorithm: str, scores: Sequence[str]
) -> tuple[dict[str, Any], list[str]]:
    """The roles with benchmark, families, seed, budget and metafeatures by names and structure, and the reasons.

    Scores play no part, so that they may still hold words.
    """
    from lmemtest.bench.data.runs import Runs

    found = {**roles, "algorithm": algorithm}
    score = free_name("score", table.columns)
    asked = {**found, "score": score, "direction": "minimize", "failed": None}
    if found["benchmark"] is None:  # a family waits until its benchmarks are known
        asked["family"] = ()
    hidden = {*scores, *(set(found["family"] or ()) if found["benchmark"] is None else ())}
    kept = [name for name, column in columns.items() if name not in hidden and not column.is_nested]
    try:
        runs = Runs(table[kept].assign(**{score: 0.0}), **asked)
        unnamed = unnamed_columns(runs)
    except LmemtestError:  # told when the runs are made in earnest
        return found, []
    structure = with_roles(runs, unnamed)
    found |= {name: structure[name] for name in ("benchmark", "seed", "budget", "metafeatures")}
    reasons = [
        f"{column.name!r} has {column.n_values:,} values that lay out the rows: taken as "
        f"{'a metafeature' if column.role == 'metafeatures' else f'the {column.role}'}."
        for column in unnamed
        if not column.by_name
    ]
    course = _best_so_far(table, columns, found, scores)
    if course is not None:
        found |= {"budget": course, "seed": _without(found["seed"], course)}
        reasons.append(f"No score gets worse along {course!r} within a run: taken as the budget.")
    if found["benchmark"] is not None and not found["family"]:
        taken = {*_named(found), *scores}
        families = _families(table, str(found["benchmark"]), [columns[name] for name in kept if name not in taken])
        if families:
            found["family"] = families
            verb = "groups" if len(families) == 1 else "group"
            reasons.append(f"{joined(map(repr, families))} {verb} the {plural(str(found['benchmark']))}: families.")
    return found, reasons


def _of_answers(
    table: pd.DataFrame, given: Mapping[str, Any], scores: Sequence[str], structure: dict[str, Any], reasons: list[str]
) -> tuple[dict[str, Any], list[str]]:
    """The same, where models answered the items of tasks: then tasks are the benchmarks, on which items repeat."""
    if len(scores) != 1 or given["benchmark"] is not None or not is_solved_or_not(table[scores[0]]):
        return structure, reasons
    answers = answer_roles(table) or {}
    item, task = answers.get("item"), answers.get("task")
    asked = {"model": structure["algorithm"], "score": scores[0]}
    told = (structure["benchmark"], structure["seed"]) in ((item, None), (task, item))
    if item is None or task is None or not told or not asked.items() <= answers.items():
        return structure, reasons
    rest = {name: tuple(n for n in structure[name] if n != task) for name in ("family", "metafeatures")}
    reason = f"{item!r} names the items of each {task!r}: tasks are the benchmarks, and items what repeats on them."
    return {**structure, **rest, "benchmark": task, "seed": item}, [reason]


def _best_so_far(
    table: pd.DataFrame, columns: Mapping[str, Column], roles: Mapping[str, Any], scores: Sequence[str]
) -> str | None:
    """The number among several columns of seeds, such as that of a trial, along which runs have their best so far."""
    seeds = roles["seed"]
    numbers = [name for name in seeds if columns[name].measures] if isinstance(seeds, (list, tuple)) else []
    if roles["budget"] is not None or len(scores) != 1 or not numbers or not columns[scores[0]].measures:
        return None
    for name in numbers:
        run = [key for key in (roles["algorithm"], roles["benchmark"], *roles["metafeatures"]) if key is not None]
        run += [seed for seed in seeds if seed != name]
        ordered = table.sort_values([*run, name], kind="stable")
        steps = ordered.groupby(run, observed=True, sort=False)[scores[0]].diff().dropna()
        if (steps != 0).any() and ((steps >= 0).all() or (steps <= 0).all()) and len(steps) >= len(table) / 2:
            return name
    return None


def _without(seeds: Sequence[str], name: str) -> str | list[str]:
    kept = [seed for seed in seeds if seed != name]
    return kept[0] if len(kept) == 1 else kept


def _groups(table: pd.DataFrame, benchmark: str, columns: Iterable[Column]) -> list[str]:
    """The columns of text that are constant on each benchmark and have at most half as many values."""
    n = table[benchmark].nunique()
    found = []
    for column in columns:
        if column.is_numeric or column.values.isna().any() or not 1 < column.n_levels <= n / 2:
            continue
        if len(table[[benchmark, column.name]].drop_duplicates()) == n:
            found.append(column.name)
    return found


def _families(table: pd.DataFrame, benchmark: str, columns: Iterable[Column]) -> tuple[str, ...]:
    """The columns that group benchmarks into enough groups to be a sample, from coarse to fine."""
    groups = _groups(table, benchmark, [column for column in columns if column.role != "choice"])
    sizes = {name: table[name].nunique() for name in groups}
    chain: list[str] = []
    for name in sorted((name for name in groups if sizes[name] >= FEWEST_FAMILIES), key=lambda name: -sizes[name]):
        nested = not chain or len(table[[chain[0], name]].drop_duplicates()) == sizes[chain[0]]
        if nested and (not chain or sizes[name] < sizes[chain[0]]):
            chain.insert(0, name)
    return tuple(chain)


def left_out(table: pd.DataFrame, roles: Mapping[str, Any], scores: Sequence[str] = ()) -> tuple[str, ...]:
    """The columns without a role, but for those that may be the score; what they do to the rows, or say of them."""
    free = [column for name, column in read_columns(table).items() if name not in (*_named(roles), *scores)]
    benchmark = roles["benchmark"]
    groups = (
        _groups(table, benchmark, [column for column in free if not column.is_nested]) if benchmark in table else []
    )
    told = {
        name: f" (groups the {counted(table[benchmark].nunique(), 'value')} of {benchmark!r} into "
        f"{table[name].nunique():,})"
        for name in groups
    }
    for column in free:
        named_kinds = not column.is_numeric and not column.is_nested
        kinds: list[Any] = column.values.dropna().unique().tolist() if named_kinds else []
        bad = [kind for kind in kinds if str(kind).lower() not in WELL]
        if len(bad) < len(kinds) <= MOST_KINDS and bad:
            told[column.name] = f" (seems to say which runs failed: failed={column.name!r})"
    return tuple(f"{column.name!r}{told.get(column.name, '')}" for column in free)


# --------------------------------------------------------------------------------------------- a column per algorithm


def _looks_wide(table: pd.DataFrame, columns: Mapping[str, Column], roles: Mapping[str, Any]) -> bool:
    """Whether every algorithm has a column: nothing but scores beside the columns that name the rows."""
    free = [column for name, column in columns.items() if name not in _named(roles)]
    labels = [column for column in free if not column.is_numeric or column.role in ("benchmark", "seed", "budget")]
    labels += [columns[name] for name in _named(roles) if name in columns]
    scores = [column for column in free if column not in labels and not column.name.startswith("Unnamed:")]
    if len(scores) < 2 or len(labels) > 2 or any(column.direction or column.role == "choice" for column in scores):
        return False
    methods = any(column.role == "algorithm" for column in labels)
    if any(column.words_of_name & (SCORE_NAMES if methods else SCORE_NAMES - {"y"}) for column in scores):
        return False
    texts = [column for column in labels if not column.is_numeric]
    if _settings(scores) and not any(column.role == "benchmark" for column in labels) and not texts:
        return False
    return len(texts) <= 1 and not (labels and table.duplicated([column.name for column in labels]).any())


def _settings(scores: Iterable[Column]) -> list[str]:
    """The columns of other numbers beside several of true and false, which are no scores of one kind with these."""
    columns = list(scores)
    answers = sum(column.is_true_or_false for column in columns)
    return (
        [column.name for column in columns if column.measures and not column.is_right_or_wrong] if answers > 1 else []
    )


def _of_columns(table: pd.DataFrame, columns: Mapping[str, Column], roles: dict[str, Any]) -> Guess:
    """The readings of a table with a column per algorithm."""
    from lmemtest.bench.data.runs import Runs

    reasons: tuple[str, ...]
    free = [column for name, column in columns.items() if name not in _named(roles)]
    found = {name: value for name, value in roles.items() if value not in (None, ()) and name != "ignore"}
    # where rows have names, HumanEval and MT-Bench are scores: only whole numbers number runs, steps or benchmarks
    named_once = any(c.is_text and not c.is_nested and c.values.is_unique for c in free)
    for role in ("benchmark", "seed", "budget"):
        said = [column for column in free if column.role == role and (column.counts or not named_once)]
        if role not in found and len(said) == 1 and (role != "benchmark" or said[0].is_numeric):
            found[role] = said[0].name
    settings = tuple(_settings(column for column in free if column.name not in found.values()))
    if settings:
        found["metafeatures"] = (*found.get("metafeatures", ()), *settings)
    if ("budget" in found or "seed" in found) and not any(
        not column.is_numeric or column.role == "benchmark" for column in free
    ):
        one_each = (
            f"Each algorithm has one curve over {found.get('budget')!r} and no second run: nothing says how far curves "
            "of runs differ by chance. Add runs on other benchmarks or with other seeds, with a column that names them."
        )
        reasons = () if "seed" in found else (one_each,)
        return Guess(readings=(), lacking=("benchmark",), known=found, reasons=reasons)
    reasons = ()
    scores = [column.name for column in free if column.measures and column.name not in (*found.values(), *settings)]
    told = runs_in_names(scores, others=[column.name for column in free if column.name not in scores])
    if told:
        return Guess(readings=(), lacking=("algorithm",), reasons=(told,))
    ends = [roles["direction"]] if roles["direction"] is not None else ["maximize", "minimize"]
    if len(ends) > 1:
        try:
            known = {name: value for name, value in found.items() if name != "direction"}
            runs = Runs.from_wide(table.drop(columns=list(roles["ignore"])), direction="minimize", **known)
            if _of_ranks(runs):
                ends, reasons = (
                    ["minimize"],
                    ("The cells of every row are ranks from 1 on, of which low ones are good.",),
                )
        except LmemtestError:  # told when the runs are made in earnest
            pass
    when = {"maximize": "if high scores are good", "minimize": "if low scores are good"}
    readings = [
        Reading(roles={**found, "direction": end}, wide=True, when=when[end] if ends[1:] else "") for end in ends
    ]
    return Guess(readings=tuple(readings), reasons=reasons)


# ------------------------------------------------------------------------------------------------------------ refusals


def with_guess(error: ArgumentError) -> ArgumentError:
    """The error of a call without the roles that are needed, with the whole call as names and structure suggest it."""
    assert error.lacks_roles is not None
    table, given, call = error.lacks_roles
    message = str(error)
    if not (hasattr(table, "columns") or isinstance(table, Mapping)):
        read = isinstance(table, (str, os.PathLike))
        step = "Read the file: lmemtest.read_runs(path, ...)" if read else "Make it a dataframe: pandas.DataFrame(...)"
        return ArgumentError(f"{message} {step}.")
    if isinstance(nw.from_native(table, pass_through=True), nw.LazyFrame):
        return ArgumentError(f"{message} Columns: {listed(as_frame(table).collect_schema().names())}.")
    from lmemtest.bench.data.recognised import recognised

    frame = _as_pandas(table)
    message += f" Columns: {listed(frame.columns)}."
    mark = next((mark for mark in ";\t|" if mark in str(frame.columns[0])), None) if frame.shape[1] == 1 else None
    if mark is not None:
        return ArgumentError(
            f"{message} This one column holds whole lines of a file: read it with pandas.read_csv(path, sep={mark!r}), "
            "or with lmemtest.read_runs(path, ...), which finds the separator itself."
        )
    known = recognised(frame) if not given else None
    if known is not None:
        message += f" {known.in_words('It')}"
    if known is not None and known.tool != "evaluate":
        return ArgumentError(message)
    found = in_its_form(frame, given)
    if known is not None and found.passes_over(known.options.get("score")):
        return ArgumentError(message)
    told = found.told(given, call)
    if getattr(getattr(table, "index", None), "names", [None]) != [None]:  # its levels are columns of the frame alone
        told = told.replace("df.melt(", "df.reset_index().melt(")
    return ArgumentError(f"{message} {told}".rstrip())


def in_its_form(frame: pd.DataFrame, given: Mapping[str, Any]) -> Guess:
    """The readings of a table in one of the forms in which people have them."""
    from lmemtest.bench.data.forms import tidied

    words: tuple[str, ...] = ()
    try:
        tidy = tidied(frame)
    except LmemtestError:
        words = _words_among_scores(frame)
        try:
            tidy, given = tidied(frame, failed=words), {**given, "failed": words}
        except LmemtestError:  # told when the runs are made in earnest
            return guess(frame, given)
    found = guess(frame, given) if tidy.methods is None else guess(tidy.frame, given, wide=True)
    if not words:
        return found
    told = f"Among the scores stand{'s' if len(words) == 1 else ''} {joined(map(repr, words))}: taken as failed runs."
    return replace(found, reasons=(*found.reasons, told))


def _words_among_scores(table: pd.DataFrame) -> tuple[str, ...]:
    """The words in columns of text that hold more numbers than words."""
    texts = [column for column in read_columns(table).values() if not column.is_numeric and not column.is_nested]
    return tuple(dict.fromkeys(word.strip() for column in texts if column.mostly for word in column.words))
