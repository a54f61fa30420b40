"""A table of trials or runs, cut into one group for each algorithm on each benchmark."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest._validate import as_frame, check_columns
from lmemtest.errors import ArgumentError, DataError
from lmemtest.tuning._checks import check_direction
from lmemtest.words import listed

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]

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
    for argument, names in (
        ("score", (score,)),
        ("by", keys),
        ("cost", (cost,)),
        ("seed", (seed,)),
        ("budget", (budget,)),
    ):
        wrong = [name for name in names if name is not None and not isinstance(name, str)]
        if wrong:
            raise ArgumentError(f"{argument} must be the name of a column, got {wrong[0]!r}.")
    _check_names(keys)
    named_seed, seed = seed, known.get("seed") if seed is None else seed
    budget = known.get("budget") if budget is None else budget
    if unit == "seed":
        missing = [name for name, column in (("seed", seed), ("budget", budget)) if column is None]
        if missing:
            raise ArgumentError(
                f"unit='seed' needs {' and '.join(missing)}: the columns of the repetitions and of the budget at which "
                "a score was reached, for instance seed='seed', budget='budget'."
            )
    else:
        seed = named_seed  # only looked up: curves over trials have no use for it
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


def _check_names(by: tuple[str, ...]) -> None:
    repeated = [name for name in dict.fromkeys(by) if by.count(name) > 1]
    if repeated:
        raise ArgumentError(f"by must name different columns, got {repeated[0]!r} twice.")
    taken = [name for name in by if name in RESERVED]
    if taken:
        raise ArgumentError(
            f"by names the column {taken[0]!r}, which is the name of a column of the result. Rename it in the table."
        )


def read_groups(trials: Any, roles: Roles, unit: str) -> tuple[list[Group], tuple[str, ...]]:
    """The groups, sorted by benchmark, then algorithm, and the names of the algorithms.

    Both are sorted, or in the order of the categories if these are declared.
    """
    import narwhals as nw

    from lmemtest.data.cells import check_numeric, group_codes

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
    frame = (kept.collect() if isinstance(kept, nw.LazyFrame) else kept).to_pandas().reset_index(drop=True)
    if frame.empty:
        raise DataError("trials must have at least 1 row, got none.")
    index, keys = group_codes([frame[name] for name in roles.by], len(frame))
    levels = list(keys.frame().itertuples(index=False, name=None))
    order = np.argsort(index, kind="stable")
    cuts = np.searchsorted(index[order], np.arange(1, keys.size))
    groups = [
        Group(key=key, name=roles.name(key), frame=frame.iloc[rows])
        for key, rows in zip(levels, np.split(order, cuts), strict=True)
    ]
    _check_scores(groups, roles)
    if unit != "seed":
        _refuse_budgets(groups, roles)
    return groups, tuple(dict.fromkeys(str(level) for level in keys.levels[-1]))


def floats(column: pd.Series[Any]) -> FloatArray:
    """A numeric column as floats, with NaN for what is missing."""
    return column.to_numpy(dtype=np.float64, na_value=np.nan)


def named_groups(names: Sequence[str]) -> str:
    """Some groups by name, and how many more there are.

    >>> named_groups(["a", "b", "c", "d", "e"])
    'a; b; c; and 2 more'
    """
    more = f"; and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return "; ".join(names[:SHOWN]) + more


def _check_scores(groups: list[Group], roles: Roles) -> None:
    """Refuse missing scores, naming the groups that have some."""
    broken = []
    for group in groups:
        missing = int(np.isnan(floats(group.frame[roles.score])).sum())
        if missing:
            broken.append(f"{missing:,} of {len(group.frame):,} at {group.name}")
    if broken:
        raise DataError(
            f"The score {roles.score!r} is missing (NaN) in {named_groups(broken)}. Score a failed run as the worst "
            "value that can occur, or for quantile curves as infinitely bad: dropping it would make the search look "
            "better than it was."
        )


def _refuse_budgets(groups: list[Group], roles: Roles) -> None:
    """Scores of several budgets are no draws of one distribution."""
    if roles.budget is None:
        return
    budgets = sorted({value for group in groups for value in group.frame[roles.budget].unique()}, key=str)
    if len(budgets) > 1:
        raise DataError(
            f"Scores at {len(budgets)} budgets are mixed ({roles.budget!r}: {listed(budgets, most=5)}), but a tuning "
            "curve is of scores at one budget. Keep one of them, for instance with runs.filter(), or use unit='seed' "
            "for the course of an optimiser over its budget."
        )
