"""Some of the rows: of runs, with the same roles (`Runs.filter`, `drop_missing`, `drop_duplicates`), and of a table.

Conditions on rows as text, such as ``prior=good`` or ``epoch<=27``, are compared by type, never evaluated.

Runs as traces over the budget: the best score so far, and the score that a run has at a budget.
Everything is an expression over the rows of one run that the table's own engine evaluates, so lazy tables stay lazy.
"""

from __future__ import annotations

import numbers
import operator
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

import narwhals as nw
import numpy as np

from lmemtest.bench.data.failures import count_failures, failed_rows
from lmemtest.bench.data.normalise import new_column
from lmemtest.bench.data.requirements import SINGLE_ROLES
from lmemtest.core.caller import named
from lmemtest.core.frames import collected, supported
from lmemtest.core.validate import check_choice, check_columns, free_name, real
from lmemtest.core.words import joined, listed, suggest
from lmemtest.errors import ArgumentError, DataError, UnknownColumnError

if TYPE_CHECKING:
    import pandas as pd

    from lmemtest.bench.data.runs import Runs

    AnyFrame = nw.DataFrame[Any] | nw.LazyFrame[Any]


def filter(runs: Runs, /, **conditions: Any) -> Runs:
    """The runs with the given values.

    Parameters
    ----------
    **conditions
        ``column=value`` or ``column=[value, value]``; for a name with spaces, ``**{"my column": value}``. A role
        ("algorithm", "benchmark", "family", "seed", "budget", "score") stands for its column, unless a column has
        that name or there are several of the role.

    Returns
    -------
    Runs
        With the same roles.

    Raises
    ------
    UnknownColumnError
        If a name is not a column.
    DataError
        If a value does not occur, or nothing that can be compared is left.
    """
    wanted = levels_named(runs, conditions, "filter")
    frame, known = _with_values(runs, wanted), runs.study.seen(wanted)
    one = runs.algorithm in wanted  # asked for: looked at, not compared
    if known:
        found = runs.restricted(frame, [groups.where(wanted) for groups in known], several=not one)
    else:
        found = runs._with(frame, several=not one)
    return found.following(runs, lambda runs: runs.filter(**wanted))


def _with_values(runs: Runs, wanted: Mapping[str, Sequence[Any]]) -> AnyFrame:
    """The rows that have one of the values wanted of each column."""
    frame = runs.frame
    if not frame.implementation.is_pandas() or isinstance(frame, nw.LazyFrame):
        for column, values in wanted.items():
            frame = frame.filter(nw.col(column).is_in(values))
        return frame
    table = frame.to_native()  # its rows are taken once
    kept = []
    for column, values in wanted.items():
        if runs.study.seen((column,)):  # variants of one table ask for its columns again and again
            codes, levels = runs.study.of_rows(column)
            among = set(values)
            kept.append(np.array([level in among for level in levels], dtype=bool)[codes])
        else:
            kept.append(table[column].isin(values).to_numpy())
    return nw.from_native(table[np.logical_and.reduce(kept)], eager_only=True) if kept else frame


def levels_named(runs: Runs, conditions: Mapping[str, Any], argument: str) -> dict[str, list[Any]]:
    """The values that are named of each column, itself named by its role or as it is; each of them occurs."""
    columns = runs.columns
    roles = {role: getattr(runs, role) for role in SINGLE_ROLES if role not in columns and getattr(runs, role)}
    if len(runs.family) == 1 and "family" not in columns:
        roles["family"] = runs.family[0]
    by_column = {roles.get(name, name): named for name, named in conditions.items()}
    check_columns(tuple(by_column), columns, argument=argument)
    wanted = dict[str, list[Any]]()
    for column, given in by_column.items():
        several = isinstance(given, (Sequence, set, frozenset)) or (hasattr(given, "__array__") and given.ndim == 1)
        values = list(given) if several and not isinstance(given, str) else [given]
        values = [value.item() if hasattr(value, "item") else value for value in values]  # numpy's scalars
        levels = runs.levels(column)
        for value in values:
            if value not in set(levels):
                raise DataError(
                    f"{argument}: {value!r} does not occur in the column {column!r}. "
                    f"Its values: {listed(map(repr, levels))}.{suggest(str(value), map(str, levels))}"
                )
        wanted[column] = values
    return wanted


def drop_missing(runs: Runs) -> Runs:
    """The runs whose score is finite.

    Only right where a missing score has nothing to do with the algorithm: a failed run is a worst score,
    and without it the algorithm looks better than it is. With failed runs it is ``score_failures("drop")``.

    Returns
    -------
    Runs
        With the same roles; `notes` say how many were left out.
    """
    finite = nw.col(runs.score).cast(nw.Float64).is_finite().fill_null(False)
    if runs.failed is not None:
        return runs.score_failures("drop").drop_missing()
    found = runs._with(runs.frame.filter(finite)).following(runs, type(runs).drop_missing)
    if found.n_rows < runs.n_rows:
        left_out = (
            f"{runs.n_rows - found.n_rows:,} of {runs.n_rows:,} rows without a finite score were left out, which "
            "is right only if they are missing for reasons that have nothing to do with the algorithm."
        )
        return found.remembering(notes=[*found.notes, left_out])
    return found


def drop_duplicates(runs: Runs, keep: Literal["first", "last", "mean"]) -> Runs:
    """The runs with one row for each of them.

    Rows of the same algorithm, benchmark, family, seed, budget and metafeatures, as far as these have columns, are
    one run that was written or made again. Without a column of seeds these are all rows of an algorithm on a
    benchmark: name the seed first if there is one.

    Parameters
    ----------
    keep : {"first", "last", "mean"}
        Which row is kept, in the order of the table; or the first one with the mean of the scores.

    Returns
    -------
    Runs
        With the same roles; `notes` say how many rows were copies and how many had other scores.

    Raises
    ------
    ArgumentError
        If `keep` is none of these, or the table is lazy and so has no order.
    DataError
        For means, if some rows of a run failed and others have a score.

    Examples
    --------
    >>> from lmemtest import Runs
    >>> table = {"tool": ["HB", "RS", "RS"], "task": ["a", "a", "a"], "loss": [0.1, 0.2, 0.4]}
    >>> runs = Runs(table, score="loss", direction="minimize", algorithm="tool", benchmark="task")
    >>> runs.drop_duplicates("mean").to_frame()["loss"].round(6).tolist()
    [0.1, 0.3]
    """
    check_choice(keep, "drop_duplicates", ("first", "last", "mean"))
    if runs.is_lazy:
        raise ArgumentError(
            f"{named('drop_duplicates')} needs a table in memory: the rows of a lazy one have no order."
        )
    keys = [name for name in (runs.algorithm, runs.benchmark, *runs.family, runs.seed, runs.budget) if name]
    keys += runs.metafeatures
    score = nw.col(runs.score).cast(nw.Float64)
    frame = runs.frame
    if keep == "mean":
        finite = score.is_finite().fill_null(False).cast(nw.Float64)
        share = frame.select(finite.mean().over(*keys).alias("share"))["share"].to_numpy()
        if ((share > 0.0) & (share < 1.0)).any():
            raise DataError(
                f"{named('drop_duplicates')}={keep!r} needs the scores of all rows of a run, and some have none "
                "(failed or missing). Keep 'first' or 'last', or say before what a failure counts."
            )
        frame = frame.with_columns(score.mean().over(*keys).alias(runs.score))
    which = "last" if keep == "last" else "first"
    found = runs._with(frame.unique(keys, keep=which, maintain_order=True))
    more = runs.n_rows - found.n_rows
    found = found.following(runs, partial(type(runs).drop_duplicates, keep=keep))
    if not more:
        return found
    copies = runs.n_rows - len(runs.frame.unique([*keys, runs.score]))
    parts = [f"{n:,} {what}" for n, what in ((copies, "exact copies"), (more - copies, "with other scores")) if n]
    kept = "the mean of its scores" if keep == "mean" else f"its {keep} row"
    note = f"{more:,} of {runs.n_rows:,} rows repeat a run (the same {joined(keys)}): {' and '.join(parts)}. "
    note += f"Of each such run {kept} was kept."
    return found.remembering(notes=dict.fromkeys((*runs.notes, *found.notes, note)))


# ------------------------------------------------------------------------------------------------- conditions as text


_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "!=": operator.ne,
    "<": operator.lt,
    ">": operator.gt,
}
_SIGN = re.compile(r"<=|>=|!=|=|<|>")


def rows_where(table: pd.DataFrame, conditions: Sequence[str], roles: Mapping[str, Any]) -> pd.DataFrame:
    """The rows that meet all conditions, each a column or role, one of ``= != < <= > >=`` and a value.

    Several ``column=value`` on one column mean any of the values.

    >>> import pandas as pd
    >>> table = pd.DataFrame({"prior": ["good", "bad", "good"], "epoch": [1, 1, 27]})
    >>> rows_where(table, ["prior=good", "epoch<27"], {})
      prior  epoch
    0  good      1
    """
    import numpy as np

    keep = np.ones(len(table), dtype=bool)
    wanted: dict[str, list[Any]] = {}  # any of these
    for condition in conditions:
        column, sign, value = _parts(condition, table, roles)
        typed = _typed(table[column], value, condition)
        if sign == "=":
            wanted.setdefault(column, []).append(typed)
            continue
        values = _comparable(table[column])
        keep &= (_COMPARE[sign](values, typed) & values.notna()).to_numpy(dtype=bool)
    for column, allowed in wanted.items():
        levels = _comparable(table[column])
        for value in allowed:
            if not (levels == value).any():
                known = [str(level) for level in levels.dropna().unique()]
                raise DataError(
                    f"{named('where')}: {str(value)!r} does not occur in the column {column!r}. "
                    f"Its values: {listed(map(repr, known))}.{suggest(str(value), known)}"
                )
        keep &= levels.isin(allowed).to_numpy(dtype=bool)
    if not keep.any():
        raise DataError(f"{named('where')}: no row meets all of {listed(map(repr, conditions))}.")
    return table[keep].reset_index(drop=True)


def _parts(condition: str, table: pd.DataFrame, roles: Mapping[str, Any]) -> tuple[str, str, str]:
    """Column, sign and value; a sign within the name of a column belongs to the name."""
    columns = [str(name) for name in table.columns]
    first = _SIGN.search(condition)
    if first is None:
        raise ArgumentError(
            f"{named('where')} must be a condition such as 'column=value' or 'epoch<=27', got {condition!r}."
        )
    for found in _SIGN.finditer(condition):
        name = condition[: found.start()].strip()
        if name in columns:
            return name, found.group(), condition[found.end() :].strip()
    name = condition[: first.start()].strip()
    if isinstance(roles.get(name), str):
        return roles[name], first.group(), condition[first.end() :].strip()
    raise UnknownColumnError(
        f"{named('where')} names the column {name!r}, which is not in the data. Columns: {listed(columns)}."
        f"{suggest(name, columns)}"
    )


def _typed(column: pd.Series[Any], value: str, condition: str) -> Any:
    """The value as the column holds its own."""
    import pandas as pd

    kind = column.dtype
    try:
        if pd.api.types.is_bool_dtype(kind):
            return {"true": True, "false": False, "1": True, "0": False}[value.lower()]
        if pd.api.types.is_numeric_dtype(kind):
            whole = pd.api.types.is_integer_dtype(kind) and re.fullmatch(r"[+-]?[0-9]+", value)
            return int(value) if whole else float(value)
        if pd.api.types.is_datetime64_any_dtype(kind):
            return pd.Timestamp(value)
    except (ValueError, KeyError):
        example = column.head(1).tolist()[0]
        raise DataError(
            f"{named('where')}: the column {str(column.name)!r} has type {kind} (for example {example!r}), and "
            f"{value!r} in {condition!r} is no such value."
        ) from None
    return value


def _comparable(column: pd.Series[Any]) -> pd.Series[Any]:
    """Numbers, dates and truth values as they are, everything else as text."""
    import pandas as pd

    types = pd.api.types
    kind = column.dtype
    if types.is_numeric_dtype(kind) or types.is_bool_dtype(kind) or types.is_datetime64_any_dtype(kind):
        return column
    return column.map(str, na_action="ignore").astype(object)


# ----------------------------------------------------------------------------------------------- traces over the budget


def best_so_far(runs: Runs, *, name: str | None = None) -> Runs:
    """The runs with the best score up to each budget, in a new column.

    For tables with one row per trial, such as an Optuna study with the number of the trial as budget: there the
    mean over rows is one over trials, and says little about the best that was found.

    Parameters
    ----------
    name : str, optional
        Name of the new column, by default ``<score>_best_so_far``, with underlines where the table has that.

    Returns
    -------
    Runs
        With the new column as the score, and all else as before. A lazy table stays lazy.

    Raises
    ------
    ArgumentError
        If the table has `name` already.
    DataError
        If the runs have no budget.

    Notes
    -----
    A run is what one algorithm did on one instance with one seed; without seeds the repeated rows of an algorithm
    on an instance are taken for one run. Rows of one run at one budget share the best of them. A missing score
    (a failed trial) does not count: the best before it stands, and until there is one the value is missing.

    Examples
    --------
    >>> from lmemtest import Runs
    >>> table = {"tool": ["A"] * 3 + ["B"] * 3, "trial": [1, 2, 3] * 2, "loss": [0.5, 0.7, 0.2, 0.6, 0.4, 0.9]}
    >>> runs = Runs(table, score="loss", direction="minimize", algorithm="tool", budget="trial")
    >>> runs.best_so_far().to_frame()["loss_best_so_far"].tolist()
    [0.5, 0.5, 0.2, 0.6, 0.4, 0.4]
    """
    budget, column = _needs_budget(runs, "best_so_far"), new_column(runs, name, f"{runs.score}_best_so_far")
    keys = run_columns(runs)
    x = nw.col(runs.score).cast(nw.Float64)
    worst = float("inf") if runs.direction == "minimize" else float("-inf")
    there = ~(x.is_null() | x.is_nan().fill_null(True) | failed_rows(runs))
    frame = runs.frame.with_columns(nw.when(there).then(x).otherwise(nw.lit(worst)).alias(column))
    if frame.implementation.is_pyarrow():  # it has no running minima within groups
        frame = frame.with_columns(_running_by_pandas(frame, keys, budget, column, runs.direction))
    else:
        running = nw.col(column).cum_min() if runs.direction == "minimize" else nw.col(column).cum_max()
        with supported("best_so_far", frame):
            frame = frame.with_columns(running.over(*keys, order_by=budget).alias(column))
    # rows at one budget of one run share the best of them
    at_once = nw.col(column).min() if runs.direction == "minimize" else nw.col(column).max()
    frame = frame.with_columns(at_once.over(*keys, budget).alias(column))
    none_yet = nw.col(column) == nw.lit(worst)
    frame = frame.with_columns(nw.when(~none_yet).then(nw.col(column)).alias(column))
    # a trial that failed does not count: a run fails where none of its trials has a score yet
    made = type(runs)(frame, **{**runs.roles(), "score": column, "failed": runs.failed and "missing"})
    if runs.failed is not None:
        _, failed, rows = count_failures(runs)
        note = (
            f"{failed.sum():,} of {rows.sum():,} scores failed and do not count in the best so far: the best score "
            "before stands there, and only what has none before it has failed."
        )
        made.remembering(notes=(note,) * bool(failed.any()))
    return made.following(runs, lambda runs: runs.best_so_far(name=name))


def at_budgets(runs: Runs, budgets: Iterable[float]) -> Runs:
    """The score of every run at given budgets: its last one at or before each.

    For runs that were scored at times of their own, such as logs by wall clock: only at common budgets can
    algorithms be compared.

    Parameters
    ----------
    budgets : iterable of float
        Where to read the runs off.

    Returns
    -------
    Runs
        One row per run and budget, with all columns and the wanted budget in the column of budgets. A lazy table
        stays lazy.

    Raises
    ------
    ArgumentError
        If a budget is below the first of some run, which has no score there yet.
    DataError
        If the runs have no budget.

    Notes
    -----
    A run that ends before a budget keeps its last score, which suits scores of the best so far (see
    `best_so_far`); of a run with several rows at its last budget all are kept, and `check` reports them.

    Examples
    --------
    >>> from lmemtest import Runs
    >>> table = {"tool": ["A", "A", "B", "B"], "seconds": [1.0, 7.5, 2.0, 4.0], "loss": [0.5, 0.2, 0.6, 0.4]}
    >>> runs = Runs(table, score="loss", direction="minimize", algorithm="tool", budget="seconds")
    >>> runs.at_budgets([5]).to_frame()["loss"].tolist()
    [0.5, 0.4]
    """
    budgets = list(budgets) if isinstance(budgets, Iterable) and not isinstance(budgets, str) else budgets
    budget = _needs_budget(runs, "at_budgets")
    wanted = checked_budgets(runs, budgets)
    keys = run_columns(runs)
    columns = {name: f"key{i}" for i, name in enumerate(keys)}  # names of our own: those of the table may clash
    named = runs.frame.lazy().select(*(nw.col(old).alias(new) for old, new in columns.items()), budget=budget)
    first = collected(named.group_by(*columns.values()).agg(nw.col("budget").min().alias("first")))
    latest = float(first["first"].max())
    if wanted[0] < latest:
        raise ArgumentError(
            f"budgets must not be below {latest:g}, where the last of the runs begins, got {wanted[0]:g}: before its "
            "first score a run has none. Begin there, or leave out the runs that begin late."
        )
    made = type(runs)(last_rows(runs.frame, keys, budget, wanted), **runs.roles())
    return made.following(runs, lambda runs: runs.at_budgets(budgets))


def last_rows(frame: Any, keys: Sequence[str], budget: str, wanted: Iterable[float]) -> Any:
    """For every wanted budget the last rows of each run at or before it, with the wanted budget in their place."""
    kind, wanted = frame.collect_schema()[budget], [float(value) for value in wanted]
    whole = kind.is_integer() and all(value.is_integer() for value in wanted)
    parts, latest = [], free_name("latest", frame.collect_schema().names())
    for value in wanted:
        reached = frame.filter(nw.col(budget) <= value)
        last = reached.with_columns(nw.col(budget).max().over(*keys).alias(latest))
        last = last.filter(nw.col(budget) == nw.col(latest)).drop(latest)
        at = nw.lit(int(value)).cast(kind) if whole else nw.lit(value).cast(nw.Float64)
        parts.append(last.with_columns(at.alias(budget)))
    return nw.concat(parts, how="vertical")


def checked_budgets(runs: Runs, budgets: Iterable[float]) -> np.ndarray:
    """Wanted budgets, each once, in rising order."""
    if runs.budget is None:
        raise ArgumentError("budgets needs runs with a budget: Runs(..., budget=...).")
    values = check_budgets(budgets)
    levels = runs.levels(runs.budget)
    if not all(isinstance(level, numbers.Real) for level in levels):
        raise ArgumentError(f"budgets needs a budget in numbers, but {runs.budget!r} holds {levels[0]!r}.")
    return values


def check_budgets(budgets: Iterable[float], argument: str = "budgets") -> np.ndarray:
    """Finite numbers, each once, in rising order."""
    if isinstance(budgets, (str, bytes)):
        raise ArgumentError(f"{argument} must be numbers, got {budgets!r}.")
    try:
        values = np.unique(real(list(budgets)))
    except (TypeError, ValueError):
        raise ArgumentError(f"{argument} must be numbers, got {budgets!r}.") from None
    if not len(values) or not np.isfinite(values).all():
        raise ArgumentError(f"{argument} must be one or more finite numbers, got {budgets!r}.")
    return values


def run_columns(runs: Runs) -> list[str]:
    """The columns that tell runs apart."""
    return [*runs.instance, runs.algorithm, *([runs.seed] if runs.seed else [])]


def _needs_budget(runs: Runs, method: str) -> str:
    if runs.budget is None:
        raise DataError(
            f"{method} needs the column of the budget (iterations, trials, seconds) at which each score was taken: "
            "Runs(..., budget=...)."
        )
    return runs.budget


def _running_by_pandas(frame: Any, keys: list[str], budget: str, column: str, direction: str) -> Any:
    table = frame.select(*keys, budget, column).to_pandas().sort_values(budget, kind="stable")
    groups = table.groupby(keys, observed=True)[column]
    running = (groups.cummin() if direction == "minimize" else groups.cummax()).sort_index()
    return nw.new_series(column, running.to_numpy(dtype=float), nw.Float64(), backend=frame.implementation)
