"""A table of trials or runs, cut into one group for each algorithm on each benchmark."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from lmemtest.core.arrays import Array
from lmemtest.core.validate import as_frame, check_columns
from lmemtest.core.words import listed
from lmemtest.errors import ArgumentError, DataError
from lmemtest.tuning._checks import check_direction
from lmemtest.tuning.costs import BudgetCurve

BY = ("benchmark", "algorithm")
# Columns of the result: a column of the table cannot have their names.
RESERVED = ("k", "n_scores", "cost", "budget", "estimate", "band_low", "band_high", "trivial", "evidence", "better")
SHOWN = 3  # groups that a message names


@dataclass(frozen=True, slots=True, kw_only=True)
class Roles:
    """Which columns are what."""

    score: str
    direction: str
    by: tuple[str, ...]
    cost: str | None = None
    seed: str | None = None
    budget: str | None = None

    @property
    def columns(self) -> list[str]:
        """All columns that are read, each once."""
        given = [self.score, *self.by, self.cost, self.seed, self.budget]
        return list(dict.fromkeys(name for name in given if name is not None))

    def name(self, key: tuple[Any, ...]) -> str:
        """A group in words.

        >>> Roles(score="loss", direction="minimize", by=("task", "tool")).name(("digits", "RS"))
        'task=digits, tool=RS'
        """
        return ", ".join(f"{column}={value}" for column, value in zip(self.by, key, strict=True))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Group:
    """The rows of one algorithm on one benchmark, in the order of the table."""

    key: tuple[Any, ...]
    name: str
    frame: pd.DataFrame
    scores: Array

    @contextmanager
    def named(self) -> Iterator[None]:
        """Put the name of the group in front of what is wrong with its scores."""
        try:
            yield
        except DataError as error:
            raise DataError(f"{self.name}: {error}") from None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class GroupCurve(BudgetCurve):
    """The curve of one algorithm on one benchmark, read at budgets.

    Attributes
    ----------
    key : tuple
        Values of the columns `by`: those of the benchmark, then the algorithm, whose `name` it is in words.
    level : float
        Of this band, after adjustments. Over seeds: at each budget.
    scores, costs : (n,) float
        What the curve was made from, in the order of the table; None for curves over seeds, or without costs.
    """

    key: tuple[Any, ...]
    level: float
    scores: Array | None = field(default=None, repr=False)
    costs: Any = field(default=None, repr=False)

    @property
    def benchmark(self) -> str:
        """The benchmark in words; empty if there is no such column."""
        return ", ".join(str(value) for value in self.key[:-1])

    @property
    def algorithm(self) -> str:
        """The algorithm in words."""
        return self.name

    @property
    def reach(self) -> float:
        """The last budget of the grid at which neither limit is trivial; NaN if there is none."""
        return float(self.grid[~self.trivial].max()) if not self.trivial.all() else np.nan


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
) -> Roles:
    """The roles as given, completed by those of a `Runs`."""
    known = trials.roles() if hasattr(trials, "roles") and hasattr(trials, "instance") else {}
    score = known.get("score") if score is None else score
    if score is None:
        raise ArgumentError("score must be given: the column that was measured, for instance score='loss'.")
    direction = _direction(direction, score, known)
    if by is None:
        by = (*trials.instance, trials.algorithm) if known else BY
    keys = tuple(by) if isinstance(by, (tuple, list)) else (by,)
    if not keys:
        raise ArgumentError("by must name at least the column of the algorithm, got none.")
    given = {"score": (score,), "by": keys, "cost": (cost,), "seed": (seed,), "budget": (budget,)}
    for argument, names in given.items():
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
    budget = known.get("budget") if budget is None else budget
    if unit == "seed":
        seed = known.get("seed") if seed is None else seed  # curves over trials have no use for it
        missing = [name for name, column in (("seed", seed), ("budget", budget)) if column is None]
        if missing:
            raise ArgumentError(
                f"unit='seed' needs {' and '.join(missing)}: the columns of the repetitions and of the budget at which "
                "a score was reached, for instance seed='seed', budget='budget'."
            )
    return Roles(score=score, direction=direction, by=keys, cost=cost, seed=seed, budget=budget)


def _direction(direction: str | None, score: str, known: dict[str, Any]) -> str:
    """The direction as given, or that of the `Runs`, which it must not contradict."""
    own = known.get("direction")
    given = check_direction(own if direction is None else direction)
    if own is not None and given != own and score == known.get("score"):
        raise ArgumentError(
            f"direction={given!r} contradicts the runs, whose score {score!r} is to be {own}d. Leave direction out, or "
            f"make the runs again with direction={given!r}."
        )
    return given


def read_groups(trials: Any, roles: Roles, unit: str) -> tuple[list[Group], tuple[str, ...]]:
    """The groups, sorted by benchmark, then algorithm, and the names of the algorithms.

    Both are sorted, or in the order of the categories if these are declared.
    """

    from lmemtest.core.codes import group_codes
    from lmemtest.core.frames import collected
    from lmemtest.core.numeric import check_numeric

    table = as_frame(trials, argument="trials")
    available = table.collect_schema().names()
    named = {"score": roles.score, "by": roles.by, "cost": roles.cost, "seed": roles.seed, "budget": roles.budget}
    for argument, names in named.items():
        if names is not None:
            check_columns(names, available, argument=argument)
    if roles.score in roles.by:
        raise ArgumentError(f"score and by name the same column, {roles.score!r}.")
    for argument, name in (("score", roles.score), ("cost", roles.cost), ("budget", roles.budget)):
        if name is not None and (argument != "budget" or unit == "seed"):
            check_numeric(table, name, argument=argument)
    kept = table.select(roles.columns)
    frame = collected(kept).to_pandas().reset_index(drop=True)
    if frame.empty:
        raise DataError("trials must have at least 1 row, got none.")
    scores = floats(frame[roles.score])
    index, keys = group_codes([frame[name] for name in roles.by], len(frame))
    order = np.argsort(index, kind="stable")
    cuts = np.searchsorted(index[order], np.arange(1, keys.size))
    levels = keys.frame().itertuples(index=False, name=None)
    groups = [
        Group(key=key, name=roles.name(key), frame=frame.iloc[rows], scores=scores[rows])
        for key, rows in zip(levels, np.split(order, cuts), strict=True)
    ]
    missing = [(int(np.isnan(group.scores).sum()), group) for group in groups]
    broken = [f"{count:,} of {len(group.scores):,} at {group.name}" for count, group in missing if count]
    if broken:
        raise DataError(
            f"The score {roles.score!r} is missing (NaN) in {named_groups(broken)}. Score a failed run as the worst "
            "value that can occur, or for quantile curves as infinitely bad: dropping it would make the search look "
            "better than it was."
        )
    budgets = sorted(frame[roles.budget].unique(), key=str) if roles.budget is not None and unit != "seed" else []
    if len(budgets) > 1:  # scores of several budgets are not draws of one distribution
        raise DataError(
            f"Scores at {len(budgets)} budgets are mixed ({roles.budget!r}: {listed(budgets, most=5)}), but a tuning "
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
