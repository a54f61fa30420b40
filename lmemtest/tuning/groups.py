"""A table of trials or runs, cut into one group for each algorithm on each benchmark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import pandas as pd

from lmemtest.core.arrays import Array
from lmemtest.core.validate import as_frame, check_columns
from lmemtest.core.words import listed
from lmemtest.errors import ArgumentError, DataError
from lmemtest.tuning.checks import check_direction

BY = ("benchmark", "algorithm")
# Columns of the result: a column of the table cannot have their names.
RESERVED = ("k", "n_scores", "cost", "budget", "estimate", "band_low", "band_high", "trivial", "evidence", "better")
SHOWN = 3  # groups that a message names

# One algorithm on one benchmark: the values of the columns `by`, its rows in the order of the table, its scores.
Group = tuple[tuple[Any, ...], pd.DataFrame, Array]


def group_name(by: Sequence[str], key: tuple[Any, ...]) -> str:
    """A group in words.

    >>> group_name(("task", "tool"), ("digits", "RS"))
    'task=digits, tool=RS'
    """
    return ", ".join(f"{column}={value}" for column, value in zip(by, key, strict=True))


@contextmanager
def errors_of(name: str) -> Iterator[None]:
    """Put the name of a group in front of what is wrong with its scores."""
    try:
        yield
    except DataError as error:
        raise DataError(f"{name}: {error}") from None


def find_roles(
    trials: Any,
    *,
    score: str | None,
    direction: str | None,
    by: str | Sequence[str] | None,
    cost: str | None,
    seed: str | None,
    budget: str | None,
    unit: str,
) -> dict[str, Any]:
    """Which columns are what, and the direction: as given, completed by those of a `Runs`."""
    of_runs = trials.roles() if hasattr(trials, "roles") and hasattr(trials, "instance") else {}
    score = of_runs.get("score") if score is None else score
    if score is None:
        raise ArgumentError("score must be given: the column that was measured, for instance score='loss'.")
    direction = _direction(direction, score, of_runs)
    if by is None:
        by = (*trials.instance, trials.algorithm) if of_runs else BY
    keys = tuple(by) if isinstance(by, (tuple, list)) else (by,)
    if not keys:
        raise ArgumentError("by must name at least the column of the algorithm, got none.")
    columns = {"score": (score,), "by": keys, "cost": (cost,), "seed": (seed,), "budget": (budget,)}
    for argument, names in columns.items():
        wrong = [name for name in names if name is not None and not isinstance(name, str)]
        if wrong:
            raise ArgumentError(f"{argument} must be the name of a column, got {wrong[0]!r}.")
    repeated = [name for name in dict.fromkeys(keys) if keys.count(name) > 1]
    if repeated:
        raise ArgumentError(f"by must name different columns, got {repeated[0]!r} twice.")
    taken = [name for name in keys if name in RESERVED]
    if taken:
        raise ArgumentError(
            f"by names the column {taken[0]!r}, which is the name of a column of the result. Rename it in the table."
        )
    budget = of_runs.get("budget") if budget is None else budget
    if unit == "seed":
        seed = of_runs.get("seed") if seed is None else seed  # curves over trials have no use for it
        missing = [name for name, column in (("seed", seed), ("budget", budget)) if column is None]
        if missing:
            raise ArgumentError(
                f"unit='seed' needs {' and '.join(missing)}: the columns of the repetitions and of the budget at which "
                "a score was reached, for instance seed='seed', budget='budget'."
            )
    return {"score": score, "direction": direction, "by": keys, "cost": cost, "seed": seed, "budget": budget}


def _direction(direction: str | None, score: str, of_runs: dict[str, Any]) -> str:
    """The direction as given, or that of the `Runs`, which it must not contradict."""
    theirs = of_runs.get("direction")
    direction = check_direction(theirs if direction is None else direction)
    if theirs is not None and direction != theirs and score == of_runs.get("score"):
        raise ArgumentError(
            f"direction={direction!r} contradicts the runs, whose score {score!r} is to be {theirs}d. Leave direction "
            f"out, or make the runs again with direction={direction!r}."
        )
    return direction


def read_groups(trials: Any, roles: dict[str, Any], unit: str) -> tuple[list[Group], tuple[str, ...]]:
    """The groups, sorted by benchmark, then algorithm, and the names of the algorithms.

    Both are sorted, or in the order of the categories if these are declared.
    """
    from lmemtest.core.codes import group_codes
    from lmemtest.core.frames import check_numeric, collected

    table = as_frame(trials, argument="trials")
    available = table.collect_schema().names()
    columns = {argument: roles[argument] for argument in ("score", "by", "cost", "seed", "budget")}
    score, by, _, _, budget = columns.values()
    for argument, names in columns.items():
        if names is not None:
            check_columns(names, available, argument=argument)
    if score in by:
        raise ArgumentError(f"score and by name the same column, {score!r}.")
    for argument in ("score", "cost", "budget")[: 3 if unit == "seed" else 2]:
        if columns[argument] is not None:
            check_numeric(table, columns[argument], argument=argument)
    used = dict.fromkeys(name for name in (score, *by, roles["cost"], roles["seed"], budget) if name is not None)
    frame = collected(table.select(list(used))).to_pandas().reset_index(drop=True)
    if frame.empty:
        raise DataError("trials must have at least 1 row, got none.")
    scores = floats(frame[score])
    index, keys = group_codes([frame[name] for name in by], len(frame))
    order = np.argsort(index, kind="stable")
    cuts = np.searchsorted(index[order], np.arange(1, keys.size))
    levels = keys.frame().itertuples(index=False, name=None)
    groups = [(key, frame.iloc[rows], scores[rows]) for key, rows in zip(levels, np.split(order, cuts), strict=True)]
    broken = [
        f"{np.isnan(values).sum():,} of {len(values):,} at {group_name(by, key)}"
        for key, _, values in groups
        if np.isnan(values).any()
    ]
    if broken:
        raise DataError(
            f"The score {score!r} is missing (NaN) in {named_groups(broken)}. Score a failed run as the worst "
            "value that can occur, or for quantile curves as infinitely bad: dropping it would make the search look "
            "better than it was."
        )
    budgets = sorted(frame[budget].unique(), key=str) if budget is not None and unit != "seed" else []
    if len(budgets) > 1:  # scores of several budgets are not draws of one distribution
        raise DataError(
            f"Scores at {len(budgets)} budgets are mixed ({budget!r}: {listed(budgets, most=5)}), but a tuning "
            "curve is of scores at one budget. Keep one of them, for instance with runs.filter(), or use unit='seed' "
            "for the course of an optimiser over its budget."
        )
    return groups, tuple(dict.fromkeys(str(level) for level in keys.levels[-1]))


def floats(column: pd.Series[Any]) -> Array:
    """A numeric column as floats, with NaN for what is missing."""
    return column.to_numpy(dtype=np.float64, na_value=np.nan)


def named_groups(names: Sequence[str]) -> str:
    """Some groups by name, and how many more there are.

    >>> named_groups(["a", "b", "c", "d", "e"])
    'a; b; c; and 2 more'
    """
    more = f"; and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return "; ".join(names[:SHOWN]) + more
