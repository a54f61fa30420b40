"""The scores of two versions as one table: from two tables, or from runs of two algorithms."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np
import pandas as pd

from lmemtest.bench.data.failures import count_failures, masked
from lmemtest.bench.data.roles import direction_of, role_of, unnamed_columns
from lmemtest.bench.data.runs import Runs
from lmemtest.core.caller import advice, named, quoted
from lmemtest.core.frames import collected
from lmemtest.core.levels import in_order
from lmemtest.core.validate import as_frame, check_column, check_columns, check_direction, check_names
from lmemtest.core.words import counted, format_level, joined, listed, suggest
from lmemtest.errors import ArgumentError, DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

NEW, OLD = "new", "old"
EVERY = "*"  # the key of a mapping for every metric that it does not name


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions:
    """Rows of both versions.

    Attributes
    ----------
    table : pandas.DataFrame
        The columns of the roles, and those of the scores.
    new, old : object
        The two levels of the column of versions.
    roles : dict
        Arguments of `Runs`, without score and direction; "algorithm" is the column of versions.
    score : tuple of str
        The columns of scores; one if `metric` says whose they are.
    metric : str or None
        Column with the name of the metric.
    metrics : tuple of str
        Their names.
    failed : bool
        Whether runs say of themselves that they failed.
    notes : tuple of str
        What was done to the runs before.
    scored : frozenset
        The tasks with failed runs that a policy gave a score.
    n_failed : int or None
        Failed runs of the new version; None where nothing says which failed.
    n_runs : int
        Runs of the new version, failed ones included; 0 where rows are no runs.
    """

    table: pd.DataFrame
    new: Any
    old: Any
    roles: Mapping[str, Any]
    score: tuple[str, ...]
    metric: str | None
    metrics: tuple[str, ...]
    failed: bool = False
    notes: tuple[str, ...] = ()
    scored: frozenset[Any] = frozenset()
    n_failed: int | None = None
    n_runs: int = 0

    @property
    def version(self) -> str:
        """The column of versions."""
        return str(self.roles["algorithm"])

    @property
    def keys(self) -> list[str]:
        """What tells the rows of one version and metric apart."""
        single = [self.roles["benchmark"], self.roles["seed"], self.roles["budget"]]
        return [*filter(None, single), *self.roles["family"], *self.roles["metafeatures"]]

    def label(self, version: Any) -> str:
        """A version in a sentence: the name of its algorithm, or which of the two tables it is."""
        return format_level(version) if self._of_runs else f"the {version} version"

    @property
    def subject(self) -> str:
        """The new version at the beginning of a sentence."""
        return self.label(self.new) if self._of_runs else "The new version"

    @property
    def _of_runs(self) -> bool:
        return self.metric is None and not (self.new == NEW and self.old == OLD)

    def scores(self, name: str) -> pd.DataFrame:
        """The rows of a metric: the columns of the roles and "score"."""
        rows = self.table if self.metric is None else self.table[self.table[self.metric] == name]
        column = name if self.metric is None else self.score[0]
        out = rows[[self.version, *self.keys]].copy()
        out["score"] = pd.to_numeric(rows[column], errors="coerce").to_numpy(dtype=float)
        return out


def of_runs(runs: Runs, old: Any, given: Mapping[str, Any]) -> Versions:
    """The two algorithms of runs, the old one by its name."""
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
    roles = {name: value for name, value in runs.roles().items() if name not in ("score", "direction")}
    return Versions(
        table=collected(masked(runs)).to_pandas().copy(),
        new=labels[after],
        old=labels[before],
        roles=roles | {"ignore": (), "failed": None},
        score=(runs.score,),
        metric=None,
        metrics=(runs.score,),
        failed=runs.failed is not None,
        notes=runs.notes,
        scored=_scored(runs),
        **_failed_runs(runs, labels[after]),
    )


def _failed_runs(runs: Runs, new: Any) -> dict[str, Any]:
    """Failed runs and runs of the new version."""
    if runs.budget is not None:  # rows are scores of a run at its budgets
        return {}
    source = runs if runs.failures is None else runs.failures.source
    names, failed, rows = count_failures(source, [runs.algorithm])
    at = list(names[runs.algorithm]).index(new)
    return {"n_failed": int(failed[at]) if source.failed is not None else None, "n_runs": int(rows[at])}


def _scored(runs: Runs) -> frozenset[Any]:
    if runs.failures is None or runs.failures.policy == "drop" or runs.benchmark is None:
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
) -> Versions:
    """Two tables with the same columns; `hinted` are metrics that other arguments name."""
    given = {NEW: _pandas(new, NEW), OLD: _pandas(old, OLD)}
    shared = [name for name in given[OLD].columns if name in given[NEW].columns]
    if benchmark is None:
        raise ArgumentError(_no_benchmark(shared))
    families, ignored = (
        check_names(() if family is None else family, named("family")),
        check_names(ignore, named("ignore")),
    )
    scores = check_names(() if score is None else score, named("score"))
    hinted = [name for name in hinted if name != EVERY]
    if not scores and metric is None:
        scores = tuple(hinted)
    if metric is not None and len(scores) != 1:
        what = listed(map(repr, scores)) if scores else "none"
        raise ArgumentError(
            f"{named('score')} must be the one column with the scores of all metrics where {named('metric')} names the "
            f"column of metrics, got {what}. Columns: {listed(shared)}."
        )
    if not scores:
        raise ArgumentError(_no_score(given[OLD], [benchmark, seed, *families, *ignored]))
    single = {"benchmark": benchmark, "seed": seed, "metric": metric}
    for name, table in given.items():
        for role, column in single.items():
            if column is not None:
                _known(table, name, column, role)
        for role, columns in (("family", families), ("score", scores), ("ignore", ignored)):
            _known(table, name, columns, role)
    used = [*(column for column in single.values() if column is not None), *families, *scores]
    twice = [column for column in used if used.count(column) > 1]
    if twice:
        raise ArgumentError(f"the column {twice[0]!r} has two roles. Give each role a column of its own.")
    version = next(name for name in ("version", "version of code", "version (new, old)") if name not in shared)
    others = [name for name in shared if name not in (*used, *ignored)]
    table = pd.concat(
        [given[name][[*used, *others]].assign(**{version: name}) for name in (OLD, NEW)], ignore_index=True
    )
    for column in filter(None, (benchmark, seed, *families, metric)):
        table[column] = _as_text(table[column], column)
    for column in scores:
        if not pd.api.types.is_numeric_dtype(table[column].dtype):
            _refuse_words(given, column)
    roles: dict[str, Any] = {
        "algorithm": version,
        "benchmark": benchmark,
        "seed": seed,
        "budget": None,
        "family": families,
    }
    roles |= {"metafeatures": (), "ignore": (), "seed_shared": seed_shared}
    metrics = scores if metric is None else tuple(in_order(table[metric].unique()))
    found = Versions(table=table, new=NEW, old=OLD, roles=roles, score=scores, metric=metric, metrics=metrics)
    _refuse_unnamed(found, others)
    return found


def refuse_repeated(found: Versions) -> None:
    """Refuse several rows of one run and metric, which would count as independent."""
    if found.roles["seed"] is None:
        return
    keys = [found.version, *found.keys, *([found.metric] if found.metric else [])]
    repeated = found.table.duplicated(keys)
    if repeated.any():
        row = found.table.loc[repeated, keys].iloc[0]
        n = int(repeated.sum())
        where = ", ".join(f"{name} = {format_level(value)}" for name, value in row.items())
        raise DataError(
            f"{counted(n, 'row')} repeat{'s' * (n == 1)} a run that is there already, such as {where}, and would count "
            f"as independent. Average the rows of a run first, or name the column in which they differ as "
            f"{named('seed')}."
        )


def common_rows(versions: Versions, name: str) -> tuple[pd.DataFrame, list[str], list[str]]:
    """The rows of a metric on tasks of both versions, what the new version lacks, and notes."""
    rows = versions.scores(name)
    task, seed = versions.roles["benchmark"], versions.roles["seed"]
    new, old = (rows[rows[versions.version] == label] for label in (versions.new, versions.old))
    if task is None:
        return (rows if len(new) and len(old) else rows[:0]), [], []
    tasks = {which: set(own[task]) for which, own in ((NEW, new), (OLD, old))}
    common = tasks[NEW] & tasks[OLD]
    missing = [f"{task} {place}" for place in in_order(map(format_level, tasks[OLD] - tasks[NEW]))]
    only = tasks[NEW] - tasks[OLD]
    notes = [f"Left out, without scores of {versions.label(versions.old)}: {task} {place_names(only)}."] if only else []
    kept = rows[rows[task].isin(common)]
    if seed is not None:  # a run of the old version whose seed the new one has on other tasks only
        runs = kept.pivot_table("score", [task, seed], versions.version, aggfunc="size", observed=True)
        if versions.new in runs and versions.old in runs:
            known, alone = set(new[seed]), runs.index[runs[versions.new].isna()]
            missing += [
                f"{task} {format_level(place)} with {seed} {format_level(label)}"
                for place, label in alone
                if label in known
            ]
    return kept, missing, notes


def direction_for(name: str, direction: str | Mapping[str, str] | None) -> str:
    """The direction of a metric: as given, or what its name says."""
    given = direction.get(name, direction.get(EVERY)) if isinstance(direction, Mapping) else direction
    if given is not None:
        return check_direction(given)
    found = direction_of(name)
    if found is not None:
        return found
    wanted = advice("metric_direction", name=name)
    raise ArgumentError(f"whether a high or a low {name!r} is good is not known from its name. Say so: {wanted}.")


def place_names(places: Iterable[Any]) -> str:
    """Tasks in a sentence, in their order."""
    return joined(in_order(map(format_level, places)))


def finite(rows: pd.DataFrame) -> NDArray[np.bool_]:
    """Which rows hold a score."""
    return np.isfinite(rows["score"].to_numpy())


def _pandas(table: Any, argument: str) -> pd.DataFrame:
    frame = collected(as_frame(table, argument=argument).lazy()).to_pandas()
    if not len(frame):
        raise DataError(f"{argument} has no rows; both versions need scores.")
    return frame


def _known(table: pd.DataFrame, which: str, columns: Any, role: str) -> None:
    argument = f"{named(role)} ({which})"
    if isinstance(columns, tuple):
        check_columns(columns, table.columns, argument=argument)
    else:
        check_column(columns, table.columns, argument=argument)


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


def _no_benchmark(columns: list[str]) -> str:
    likely = [name for name in columns if role_of(name) == "benchmark"]
    hint = f" By its name: {likely[0]}." if len(likely) == 1 else ""
    return f"{named('benchmark')} must name the column of the tasks. Columns: {listed(columns)}.{hint}"


def _no_score(table: pd.DataFrame, taken: list[Any]) -> str:
    numbers = [str(name) for name in table.select_dtypes("number").columns if name not in taken]
    likely = [name for name in numbers if direction_of(name) is not None]
    hint = f" By their names: {joined(likely)}." if likely else ""
    return f"{named('score')} must name the columns of the metrics. Columns of numbers: {listed(numbers)}.{hint}"


def _refuse_unnamed(found: Versions, others: list[str]) -> None:
    """Refuse columns without a role that structure the rows: rows would pass for independent that are not."""
    if not others:
        return
    name = found.metrics[0]
    rows = found.scores(name)
    rows = rows.join(found.table[others])
    if rows[found.version].nunique() < 2:
        return
    runs = Runs(rows, score="score", direction="minimize", **found.roles)
    columns = unnamed_columns(runs)
    if columns:
        names = [column.name for column in columns]
        said = " and ".join(column.in_words() for column in columns)
        role = columns[0].role if columns[0].role in ("seed", "benchmark") else "seed"
        ignored = " ".join(f"--ignore {quoted(name)}" for name in names)
        ignore = advice("typed", call=f"ignore={names!r}", command=ignored)
        raise ArgumentError(
            f"the column{'s' * (len(names) > 1)} {said} {'have' if len(names) > 1 else 'has'} no role, but rows that "
            f"are alike in all named columns differ there: they would count as independent. Give it a role: "
            f"{advice('value', name=role, value=names[0])}, or leave it out on purpose: {ignore}."
        )
