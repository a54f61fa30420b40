"""Which column is what: the arguments first, then names, then what is left to tell rows apart.

The package fits its models to all rows of a table and never asks which of them belong to one run. The checks here must
know. A role that no argument gives is looked for in this order:

1. the name that the package uses: ``benchmark``, ``seed``, ``used_fidelity``, and ``prior`` for a metafeature;
2. other usual names of the same thing (`NAMES`);
3. if no column is named like a seed, the column of whole numbers that alone makes all rows different is the seed;
4. any other column that tells rows apart, with values that algorithms have in common, is a metafeature.

Only an argument or its name makes a column the budget: a seed that is taken for it leaves one run per algorithm.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
from pandas.api.types import infer_dtype, is_bool_dtype, is_datetime64_any_dtype, is_numeric_dtype

from lmemtest._validate import check_columns
from lmemtest.compat.significance_analysis.messages import ARGUMENTS
from lmemtest.compat.significance_analysis.tables import (
    BENCHMARK,
    BUDGET,
    SEED,
    groups,
    same_values,
    telling_apart,
    to_table,
)
from lmemtest.data.runs import Runs
from lmemtest.errors import DataError, DataWarning
from lmemtest.words import listed

PRIOR = "prior"

_BENCHMARK = ("benchmark", "task", "dataset", "problem", "instance", "function")
# Compared as `_plain` writes them. The first that a table has, and that varies, is taken.
NAMES: Mapping[str, tuple[str, ...]] = {
    "benchmark": (*_BENCHMARK, *(f"{name}name" for name in _BENCHMARK), *(f"{name}id" for name in _BENCHMARK)),
    "budget": (
        *("usedfidelity", "fidelity", "budget", "epoch", "iter", "iteration", "step"),
        *("evaluation", "eval", "nevaluation", "neval"),
    ),
    "seed": (
        *("seed", "seedid", "randomseed", "randomstate"),
        *("rep", "repeat", "repetition", "replicate", "replication", "run", "runid"),
    ),
}
OWN = {"benchmark": BENCHMARK, "budget": BUDGET, "seed": SEED}


@dataclass(slots=True)
class Roles:
    """The columns of a table, and how they were found.

    Attributes
    ----------
    columns : dict
        ``benchmark``, ``budget`` and ``seed``: a column or None.
    metafeatures : list of str
    guessed : dict
        Columns whose role neither an argument nor the package's own name gave, with that role.
    loose : list of str
        Columns of numbers that tell rows of one run apart, but whose values the algorithms do not share.
    """

    columns: dict[str, Any]
    metafeatures: list[str]
    guessed: dict[str, str] = field(default_factory=dict)
    loose: list[str] = field(default_factory=list)

    def runs(self, frame: pd.DataFrame, algorithm: str, loss: str) -> Runs:
        """The table with these roles."""
        names: dict[str, Any] = {"score": loss, "direction": "minimize", "algorithm": algorithm, **self.columns}
        return Runs(frame, metafeatures=tuple(self.metafeatures), **names)

    def conditions(self) -> list[str]:
        """All columns that have a role."""
        return [*(name for name in self.columns.values() if name is not None), *self.metafeatures]


def as_runs(data: Any, function: str, *, algorithm: str, loss: str, **given: str | None) -> Runs:
    """Give the columns of a table their roles; `given` are benchmark, budget and seed, None to be looked for.

    Warns
    -----
    DataWarning
        If a role was guessed, with the way to say otherwise.
    """
    frame = to_table(data)
    given = {role: given.get(role) for role in OWN}
    named = [algorithm, loss, *(name for name in given.values() if name is not None)]
    check_columns(named, frame.columns, argument="data")
    roles = find_roles(frame, function, algorithm=algorithm, loss=loss, given=given)
    warn(roles, function, [ARGUMENTS[role] for role in given if given[role] is None], level=4)
    return roles.runs(frame, algorithm, loss)


def find_roles(
    frame: pd.DataFrame,
    function: str,
    *,
    algorithm: str,
    loss: str,
    given: Mapping[str, str | None],
    metafeatures: Iterable[str] = (),
) -> Roles:
    """Find the roles that arguments leave open, by the rule above.

    Raises
    ------
    DataError
        If no column is named like a benchmark or seed and several columns could be it.
    """
    roles = Roles(dict(given), list(metafeatures))
    free = [name for name in frame.columns if name not in (algorithm, loss, *roles.conditions())]
    free = [name for name in free if _can_be_grouped(frame[name])]
    for role in NAMES:
        if roles.columns[role] is None:
            _find_by_name(frame, role, roles, algorithm, free)
    _find_labels(frame, roles, algorithm, function, _without(free, roles))
    _find_seed(frame, roles, algorithm, function, _without(free, roles))
    _find_numbers(frame, roles, algorithm, _without(free, roles))
    return roles


def warn(roles: Roles, function: str, arguments: list[str], *, level: int) -> None:
    """Say which columns were taken for what, and the way to say otherwise."""
    if roles.guessed:
        found = ", ".join(f"{name!r} for the {role}" for name, role in roles.guessed.items())
        how = ", ".join(f"{name}=..." for name in arguments)
        warnings.warn(
            f"no argument says what some columns are, so {function} takes {found}. If that is wrong, name the columns, "
            f"{function}(..., {how}), or leave those out of the table that play no part.",
            DataWarning,
            stacklevel=level,
        )
    if roles.loose:
        warnings.warn(
            f"rows of one run ({roles.columns['seed']}) differ in {listed(map(repr, roles.loose))}, and each of them "
            f"counts as a run of its own. If they are one run at several budgets, name that column: {function}(..., "
            "fidelity_var=...).",
            DataWarning,
            stacklevel=level,
        )


# ---------------------------------------------------------------------- the steps


def _find_by_name(frame: pd.DataFrame, role: str, roles: Roles, algorithm: str, free: list[str]) -> None:
    keys = [algorithm, *roles.conditions()]
    names = [name for name in _without(free, roles) if _plain(name) in NAMES[role]]
    names.sort(key=lambda name: (name != OWN[role], NAMES[role].index(_plain(name))))
    names = [name for name in names if name == OWN[role] or _fits(frame, name, role, roles, keys)]
    if not names:
        return
    varying = [name for name in names if frame[name].nunique() > 1]
    found = (varying or names)[0]
    roles.columns[role] = found
    if found != OWN[role] and varying:
        roles.guessed[found] = role


def _fits(frame: pd.DataFrame, name: str, role: str, roles: Roles, keys: list[str]) -> bool:
    """Budgets are numbers; a seed comes back at the other budgets of its run."""
    if role == "budget":
        return is_numeric_dtype(frame[name]) and not is_bool_dtype(frame[name])
    return role != "seed" or _joins_budgets(frame, name, roles, keys)


def _joins_budgets(frame: pd.DataFrame, name: str, roles: Roles, keys: list[str]) -> bool:
    budget = roles.columns["budget"]
    if budget is None or frame[budget].nunique() < 2:
        return True
    run = [key for key in [*keys, name] if key != budget]
    return groups(frame, run) < groups(frame, [*run, budget])


def _find_labels(frame: pd.DataFrame, roles: Roles, algorithm: str, function: str, free: list[str]) -> None:
    """Labels are metafeatures, or the benchmark if there is none yet and only one can be it."""
    labels = [name for name in free if _is_label(frame[name]) and _plain(name) not in NAMES["seed"]]
    labels.sort(key=lambda name: (name != PRIOR, -frame[name].nunique()))  # the finest before those it contains
    labels = [name for name in labels if _shared_between(frame, name, algorithm)]
    found = telling_apart(frame, [algorithm, *roles.conditions()], labels)
    others = [name for name in found if name != PRIOR]
    if roles.columns["benchmark"] is None and others:
        if len(others) > 1:
            raise DataError(
                f"no column has the name of a benchmark, and {listed(map(repr, others))} could each be it. Name it: "
                f"{function}(..., benchmark_var=...)."
            )
        roles.columns["benchmark"] = others[0]
        roles.guessed[others[0]] = "benchmark"
        found = [name for name in found if name == PRIOR]
        others = []
    roles.metafeatures += found
    roles.guessed |= dict.fromkeys(others, "metafeature")


def _find_seed(frame: pd.DataFrame, roles: Roles, algorithm: str, function: str, free: list[str]) -> None:
    """The column of whole numbers that alone makes all rows different.

    One of which all algorithms have the same goes first: the others may be numbers of rows. Several that do so only
    together are a seed and something else.
    """
    keys = [algorithm, *roles.conditions()]
    if roles.columns["seed"] is not None or groups(frame, keys) == len(frame):
        return
    whole = sorted((name for name in free if _is_whole(frame[name])), key=lambda name: -frame[name].nunique())
    shared = telling_apart(frame, keys, [name for name in whole if same_values(frame, algorithm, name)])
    if len(shared) > 1:
        budget = "" if roles.columns["budget"] else ", and the budget with fidelity_var= if one of them is that"
        raise DataError(
            f"no column has the name of a seed, and {listed(map(repr, shared))} tell rows apart only together. Name "
            f"the seed, {function}(..., seed_var=...){budget}."
        )
    for name in shared or telling_apart(frame, keys, whole):
        if groups(frame, [*keys, name]) == len(frame) and _joins_budgets(frame, name, roles, keys):
            roles.columns["seed"] = name
            roles.guessed[name] = "seed"
            return


def _find_numbers(frame: pd.DataFrame, roles: Roles, algorithm: str, free: list[str]) -> None:
    """Numbers of which all algorithms have the same are metafeatures; others are measurements, or budgets."""
    numbers = [name for name in free if _is_number(frame[name]) and _plain(name) not in NAMES["seed"]]
    shared = [name for name in numbers if same_values(frame, algorithm, name)]
    found = telling_apart(frame, [algorithm, *roles.conditions()], shared)
    roles.metafeatures += found
    roles.guessed |= dict.fromkeys(found, "metafeature")
    if roles.columns["seed"] is not None and roles.columns["budget"] is None:
        rest = [name for name in numbers if name not in shared]
        roles.loose = telling_apart(frame, [algorithm, *roles.conditions()], rest)


# ---------------------------------------------------------------------- what a column is


def _without(free: list[str], roles: Roles) -> list[str]:
    return [name for name in free if name not in roles.conditions()]


def _plain(name: Any) -> str:
    """A name without case, spaces, hyphens, underscores and the s of a plural."""
    return re.sub(r"[\s_-]+", "", str(name)).lower().removesuffix("s")


def _can_be_grouped(column: pd.Series) -> bool:
    try:
        column.nunique()
    except TypeError:  # lists and dicts have no hash
        return False
    return True


def _is_number(column: pd.Series) -> bool:
    """Numbers, also as text or objects: the validator makes objects of seeds."""
    if column.dtype == object or isinstance(column.dtype, pd.StringDtype):
        return infer_dtype(column) != "boolean" and bool(pd.to_numeric(column, errors="coerce").notna().all())
    return is_numeric_dtype(column) and not is_bool_dtype(column)


def _is_whole(column: pd.Series) -> bool:
    return _is_number(column) and bool((pd.to_numeric(column) % 1 == 0).all())


def _is_label(column: pd.Series) -> bool:
    return not _is_number(column) and not is_datetime64_any_dtype(column)


def _shared_between(frame: pd.DataFrame, name: str, algorithm: str) -> bool:
    """Whether some value occurs with several algorithms; names of runs and the like do not."""
    return bool((frame.groupby(name, observed=True)[algorithm].nunique() > 1).any())
