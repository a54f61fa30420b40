"""Runs as traces over the budget: the best score so far, and the score that a run has at a budget.

Everything is an expression over the rows of one run that the table's own engine evaluates, so lazy tables stay lazy.
"""

from __future__ import annotations

import numbers
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from lmemtest.bench.data.failures import count_failures, failed_rows
from lmemtest.bench.data.normalise import new_column
from lmemtest.core.frames import collected, supported
from lmemtest.core.validate import real
from lmemtest.errors import ArgumentError, DataError

if TYPE_CHECKING:
    from lmemtest.bench.data.runs import Runs

    AnyFrame = nw.DataFrame[Any] | nw.LazyFrame[Any]

__all__ = ["at_budgets", "best_so_far", "check_budgets", "checked_budgets", "last_rows"]


def best_so_far(runs: Runs, name: str | None) -> Runs:
    """`Runs.best_so_far`: the definition is there."""
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
    return made if runs.failed is None else _with_note_on_failures(runs, made)


def _with_note_on_failures(runs: Runs, made: Runs) -> Runs:
    from lmemtest.bench.data.runs import with_notes

    _, failed, rows = count_failures(runs)
    if not failed.any():
        return made
    return with_notes(
        made,
        [
            f"{failed.sum():,} of {rows.sum():,} scores failed and do not count in the best so far: the best score "
            "before stands there, and only what has none before it has failed."
        ],
    )


def at_budgets(runs: Runs, budgets: Iterable[float]) -> Runs:
    """`Runs.at_budgets`: the definition is there."""
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
    return type(runs)(last_rows(runs.frame, keys, budget, wanted), **runs.roles())


def last_rows(frame: Any, keys: Sequence[str], budget: str, wanted: Iterable[float]) -> Any:
    """For every wanted budget the last rows of each run at or before it, with the wanted budget in their place."""
    kind, wanted = frame.collect_schema()[budget], [float(value) for value in wanted]
    whole = kind.is_integer() and all(value.is_integer() for value in wanted)
    parts, latest = [], "latest"
    while latest in frame.collect_schema().names():
        latest += "_"
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
