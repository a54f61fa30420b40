"""The scores of two versions as runs of two algorithms: from two tables, or from runs that have two."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

import numpy as np
import pandas as pd

from lmemtest.bench.data.column import direction_of, role_of
from lmemtest.bench.data.failures import count_failures
from lmemtest.bench.data.roles import unnamed_columns
from lmemtest.bench.data.runs import Runs
from lmemtest.core.arrays import Mask
from lmemtest.core.caller import advice, named
from lmemtest.core.codes import in_order
from lmemtest.core.frames import collected
from lmemtest.core.validate import as_frame, check_column, check_columns, check_direction, check_names
from lmemtest.core.words import counted, format_level, joined, listed, suggest
from lmemtest.errors import ArgumentError, DataError

NEW, OLD = "new", "old"
TWO_TABLES = {NEW: "the new version", OLD: "the old version"}  # what the versions of two tables are called
EVERY = "*"  # the key of a mapping for every metric that it does not name


def keys_of(runs: Runs) -> list[str]:
    """What tells the rows of one version and metric apart."""
    return [*filter(None, (runs.benchmark, runs.seed, runs.budget)), *runs.family, *runs.metafeatures]


def rows_of(table: pd.DataFrame, runs: Runs, name: str, metric: str | None) -> pd.DataFrame:
    """The rows of a metric: the version, what tells rows apart, and "score"."""
    rows = table if metric is None else table[table[metric] == name]
    scores = pd.to_numeric(rows[name if metric is None else runs.score], errors="coerce").to_numpy(dtype=float)
    return rows[[runs.algorithm, *keys_of(runs)]].assign(score=scores)


def runs_of(rows: pd.DataFrame, runs: Runs) -> Runs:
    """The rows of a metric as runs."""
    roles = {"score": "score", "direction": "maximize", "ignore": (), "failed": None}
    return Runs(rows, **{**runs.roles(), **roles})


def of_each(rows: pd.DataFrame, runs: Runs, names: Mapping[Any, str]) -> list[pd.DataFrame]:
    """The rows of the new and of the old version."""
    return [rows[rows[runs.algorithm] == version] for version in names]


def names_of(runs: Runs, old: Any, given: Mapping[str, Any]) -> dict[Any, str]:
    """The new and the old algorithm of runs, the old one by its name; and what they are called."""
    extra = [name for name, value in given.items() if value not in (None, (), True)]
    if extra:
        raise ArgumentError(f"{extra[0]} must be left out where new is a Runs, which knows its columns.")
    labels = {format_level(level): level for level in runs.algorithms}
    if len(labels) != 2:
        raise ArgumentError(
            f"new must hold two algorithms, the new version and the old one, got {len(labels)}: {listed(labels)}. "
            f"Keep two: runs.filter({runs.algorithm}=[new, old])."
        )
    if not isinstance(old, (str, int, float)) or format_level(old) not in labels:
        hint = suggest(str(old), labels)
        raise ArgumentError(
            f"old must be the algorithm that is the old version, {' or '.join(map(repr, labels))}, got {old!r}.{hint}"
        )
    before = format_level(old)
    after = next(label for label in labels if label != before)
    names = {labels[after]: after, labels[before]: before}
    return TWO_TABLES if [*names] == [*TWO_TABLES] else names


def failed_runs(runs: Runs, new: Any) -> tuple[int | None, int]:
    """Failed runs of the new version, None where nothing says which failed; and its runs, failed ones included."""
    if runs.budget is not None:  # rows are scores of a run at its budgets
        return None, 0
    source = runs if runs.failures is None else runs.failures.source
    names, failed, rows = count_failures(source, [runs.algorithm])
    at = list(names[runs.algorithm]).index(new)
    return int(failed[at]) if source.failed is not None else None, int(rows[at])


def scored_tasks(runs: Runs) -> frozenset[Any]:
    """The tasks with failed runs that a policy gave a score."""
    if runs.failures is None or runs.failures.policy in ("drop", "retry") or runs.benchmark is None:
        return frozenset()
    names, failed, _ = count_failures(runs.failures.source, [runs.benchmark])
    return frozenset(names[runs.benchmark][failed > 0])


def of_tables(
    new: Any,
    old: Any,
    *,
    score: Iterable[str] | None,
    metric: str | None,
    benchmark: str | None,
    seed: str | None,
    family: Iterable[str] | None,
    ignore: Iterable[str],
    seed_shared: bool,
    hinted: Iterable[str],
    hinting: str,
) -> tuple[Runs, tuple[str, ...]]:
    """Two tables with the same columns as runs, and the names of the metrics; `hinted` are names in `hinting`."""
    given = {NEW: _pandas(new, NEW), OLD: _pandas(old, OLD)}
    shared = [name for name in given[OLD].columns if name in given[NEW].columns]
    if benchmark is None:
        likely = [name for name in shared if role_of(name) == "benchmark"]
        hint = f" By its name: {likely[0]}." if len(likely) == 1 else ""
        raise ArgumentError(f"{named('benchmark')} must name the column of the tasks. Columns: {listed(shared)}.{hint}")
    families = check_names(() if family is None else family, named("family"))
    ignored = check_names(ignore, named("ignore"))
    scores = check_names(() if score is None else score, named("score"))
    if not scores and metric is None:
        scores = tuple(name for name in hinted if name != EVERY)
    if metric is not None and len(scores) != 1:
        what = listed(map(repr, scores)) if scores else "none"
        raise ArgumentError(
            f"{named('score')} must be the one column with the scores of all metrics where {named('metric')} names the "
            f"column of metrics, got {what}. Columns: {listed(shared)}."
        )
    if not scores:
        taken = (benchmark, seed, *families, *ignored)
        numbers = [str(name) for name in given[OLD].select_dtypes("number").columns if name not in taken]
        likely = [name for name in numbers if direction_of(name) is not None]
        hint = f" By their names: {joined(likely)}." if likely else ""
        raise ArgumentError(
            f"{named('score')} must name the columns of the metrics. Columns of numbers: {listed(numbers)}.{hint}"
        )
    single = {"benchmark": benchmark, "seed": seed, "metric": metric}
    for which, table in given.items():
        for role, column in single.items():
            if column is not None:
                check_column(column, table.columns, argument=f"{named(role)} ({which})")
        for role, columns in (("family", families), ("score", scores), ("ignore", ignored)):
            source = hinting if role == "score" and score is None else role
            check_columns(columns, table.columns, argument=f"{named(source)} ({which})")
    names = [*filter(None, single.values()), *families]
    used = [*names, *scores]
    twice = [column for column in used if used.count(column) > 1]
    if twice:
        raise ArgumentError(f"the column {twice[0]!r} has two roles. Give each role its own column.")
    version = next(name for name in ("version", "version of code", "version (new, old)") if name not in shared)
    others = [name for name in shared if name not in (*used, *ignored)]
    table = pd.concat(
        [given[name][[*used, *others]].assign(**{version: name}) for name in (OLD, NEW)], ignore_index=True
    )
    for column in names:
        table[column] = _as_text(table[column], column)
    for column in scores:
        if not pd.api.types.is_numeric_dtype(table[column].dtype):
            _refuse_words(given, column)
        table[column] = pd.to_numeric(table[column], errors="coerce").to_numpy(dtype=float)
    runs = Runs(
        table,
        score=scores[0],
        direction="maximize",
        algorithm=version,
        benchmark=benchmark,
        seed=seed,
        family=families,
        seed_shared=seed_shared,
        ignore=(*filter(None, [metric]), *scores[1:]),
    )
    metrics = scores if metric is None else tuple(in_order(table[metric].unique()))
    _refuse_unnamed(rows_of(table, runs, metrics[0], metric).join(table[others]), runs)
    return runs, metrics


def refuse_repeated(table: pd.DataFrame, runs: Runs, metric: str | None) -> None:
    """Refuse several rows of one run and metric, which would count as independent."""
    if runs.seed is None:
        return
    keys = [runs.algorithm, *keys_of(runs), *filter(None, [metric])]
    repeated = table.duplicated(keys)
    if repeated.any():
        row = table.loc[repeated, keys].iloc[0]
        n = int(repeated.sum())
        where = ", ".join(f"{name} = {format_level(value)}" for name, value in row.items())
        raise DataError(
            f"{counted(n, 'row')} repeat{'s' * (n == 1)} a run that is there already, such as {where}, and would count "
            f"as independent. Average the rows of a run first, or name the column in which they differ as "
            f"{named('seed')}."
        )


def common_rows(rows: pd.DataFrame, runs: Runs, names: Mapping[Any, str]) -> tuple[pd.DataFrame, list[str], list[str]]:
    """The rows of a metric on tasks of both versions, what the new version lacks, and notes."""
    task, seed = runs.benchmark, runs.seed
    new, old = of_each(rows, runs, names)
    if task is None:
        return (rows if len(new) and len(old) else rows[:0]), [], []
    of_new, of_old = set(new[task]), set(old[task])
    missing = [f"{task} {place}" for place in in_order(map(format_level, of_old - of_new))]
    label, only = [*names.values()][1], of_new - of_old
    notes = [f"Left out, without scores of {label}: {task} {place_names(only)}."] if only else []
    kept = rows[rows[task].isin(of_new & of_old)]
    if seed is not None:  # a run of the old version whose seed the new one has on other tasks only
        count = kept.pivot_table("score", [task, seed], runs.algorithm, aggfunc="size", observed=True)
        if set(names) <= set(count):
            seeds = set(new[seed])
            missing += [
                f"{task} {format_level(place)} with {seed} {format_level(number)}"
                for place, number in count.index[count[next(iter(names))].isna()]
                if number in seeds
            ]
    return kept, missing, notes


def direction_for(name: str, direction: str | Mapping[str, str] | None) -> str:
    """The direction of a metric: as given, or what its name says."""
    given = direction.get(name, direction.get(EVERY)) if isinstance(direction, Mapping) else direction
    if given is not None:
        return check_direction(given)
    by_name = direction_of(name)
    if by_name is not None:
        return by_name
    wanted = advice("metric_direction", name=name)
    raise ArgumentError(f"whether a high or a low {name!r} is good is not known from its name. Say so: {wanted}.")


def place_names(places: Iterable[Any]) -> str:
    """Tasks in a sentence, in their order."""
    return joined(in_order(map(format_level, places)))


def finite(rows: pd.DataFrame) -> Mask:
    """Which rows hold a score."""
    return np.isfinite(rows["score"].to_numpy())


def _pandas(table: Any, argument: str) -> pd.DataFrame:
    frame = collected(as_frame(table, argument=argument).lazy()).to_pandas()
    if not len(frame):
        raise DataError(f"{argument} has no rows; both versions need scores.")
    return frame


def _refuse_words(given: Mapping[str, pd.DataFrame], column: str) -> NoReturn:
    """A column that holds no numbers in one of the tables: one of its entries, and what to do."""
    numeric = pd.api.types.is_numeric_dtype
    which = next((name for name in given if not numeric(given[name][column].dtype)), NEW)  # two kinds of numbers
    values = given[which][column].dropna()
    words = values[pd.to_numeric(values, errors="coerce").isna()]
    example = f", for example {words.iloc[0]!r}" if len(words) else ""
    raise DataError(
        f"{named('score')} names {column!r}, which must hold numbers in both tables, but that of the {which} "
        f"version holds other values{example}. A failed run needs a score, such as the worst that is possible: write "
        "it into the table."
    )


def _as_text(column: pd.Series[Any], name: str) -> pd.Series[Any]:
    """Names that mean the same in both tables, where one holds 1 and the other "1"."""
    if column.isna().any():
        lost = int(column.isna().sum())
        rows, they = ("row has", "it belongs") if lost == 1 else ("rows have", "they belong")
        raise DataError(f"{lost:,} {rows} no {name!r}. Name what {they} to, or drop such rows.")
    codes, levels = pd.factorize(column)
    return pd.Series(np.array([format_level(level) for level in levels], dtype=object)[codes], index=column.index)


def _refuse_unnamed(rows: pd.DataFrame, runs: Runs) -> None:
    """Refuse columns without a role that structure the rows: rows would pass for independent that are not."""
    if rows.shape[1] == len(keys_of(runs)) + 2 or rows[runs.algorithm].nunique() < 2:
        return
    columns = unnamed_columns(runs_of(rows, runs))
    if columns:
        names = [column.name for column in columns]
        said = " and ".join(column.in_words() for column in columns)
        role = columns[0].role if columns[0].role in ("seed", "benchmark") else "seed"
        ignored = [part for name in names for part in ("--ignore", name)]
        ignore = advice("typed", call=f"ignore={names!r}", command=ignored)
        raise ArgumentError(
            f"the column{'s' * (len(names) > 1)} {said} {'have' if len(names) > 1 else 'has'} no role, but rows that "
            f"are alike in all named columns differ there: they would count as independent. Give it a role: "
            f"{advice('value', name=role, value=names[0])}, or leave it out on purpose: {ignore}."
        )
