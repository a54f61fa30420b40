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
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import pandas as pd
from pandas.api.types import infer_dtype, is_bool_dtype, is_datetime64_any_dtype, is_numeric_dtype

from lmemtest.bench.data.runs import Runs
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
from lmemtest.core.validate import check_columns
from lmemtest.core.words import listed
from lmemtest.errors import DataError, DataWarning

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
    """The columns of a table, how they were found, and the steps of the search.

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

    frame: pd.DataFrame
    function: str
    algorithm: str
    loss: str
    columns: dict[str, Any]
    metafeatures: list[str]
    guessed: dict[str, str] = field(default_factory=dict)
    loose: list[str] = field(default_factory=list)
    candidates: list[str] = field(default_factory=list)  # columns that rows can be grouped by

    def runs(self) -> Runs:
        """The table with these roles."""
        names: dict[str, Any] = {"score": self.loss, "direction": "minimize", "algorithm": self.algorithm}
        return Runs(self.frame, metafeatures=tuple(self.metafeatures), **names, **self.columns)

    def keys(self) -> list[str]:
        """The algorithm and all columns that have a role."""
        return [self.algorithm, *(name for name in self.columns.values() if name is not None), *self.metafeatures]

    def free(self) -> list[str]:
        """Columns that have no role yet."""
        return [name for name in self.candidates if name not in self.keys()]

    def telling_apart(self, names: list[str]) -> list[str]:
        """Those of the columns that divide the rows further than the roles and all before them."""
        return telling_apart(self.frame, self.keys(), names)

    def shared(self, names: list[str]) -> list[str]:
        """Those of the columns of which all algorithms have the same values."""
        return [name for name in names if same_values(self.frame, self.algorithm, name)]

    def joins_budgets(self, name: str) -> bool:
        """Whether a seed comes back at the other budgets of its run."""
        budget = self.columns["budget"]
        if budget is None or self.frame[budget].nunique() < 2:
            return True
        run = [key for key in [*self.keys(), name] if key != budget]
        return groups(self.frame, run) < groups(self.frame, [*run, budget])

    def find_by_name(self, role: str) -> None:
        """Budgets must be numbers, and seeds come back, unless they have the package's own name."""
        names = [name for name in self.free() if _plain(name) in NAMES[role]]
        names.sort(key=lambda name: (name != OWN[role], NAMES[role].index(_plain(name))))
        fits: dict[str, Callable[[str], bool]] = {
            "benchmark": lambda _: True,
            "budget": lambda name: is_numeric_dtype(self.frame[name]) and not is_bool_dtype(self.frame[name]),
            "seed": self.joins_budgets,
        }
        names = [name for name in names if name == OWN[role] or fits[role](name)]
        varying = [name for name in names if self.frame[name].nunique() > 1]
        for found in (varying or names)[:1]:
            self.columns[role] = found
            if found != OWN[role] and varying:
                self.guessed[found] = role

    def find_labels(self) -> None:
        """Labels are metafeatures, or the benchmark if there is none yet and only one can be it."""
        frame = self.frame
        labels = [name for name in self.free() if _is_label(frame[name]) and _plain(name) not in NAMES["seed"]]
        labels.sort(key=lambda name: (name != PRIOR, -frame[name].nunique()))  # the finest before those it contains
        by_value = {name: frame.groupby(name, observed=True)[self.algorithm] for name in labels}
        # names of runs and the like occur with one algorithm each
        found = self.telling_apart([name for name in labels if (by_value[name].nunique() > 1).any()])
        others = [name for name in found if name != PRIOR]
        if self.columns["benchmark"] is None and others:
            if len(others) > 1:
                raise DataError(
                    f"no column has the name of a benchmark, and {listed(map(repr, others))} could each be it. Name "
                    f"it: {self.function}(..., benchmark_var=...)."
                )
            self.columns["benchmark"] = others[0]
            self.guessed[others[0]] = "benchmark"
            found, others = [name for name in found if name == PRIOR], []
        self.metafeatures += found
        self.guessed |= dict.fromkeys(others, "metafeature")

    def find_seed(self) -> None:
        """The column of whole numbers that alone makes all rows different.

        One of which all algorithms have the same goes first: the others may be numbers of rows. Several that do so only
        together are a seed and something else.
        """
        frame = self.frame
        if self.columns["seed"] is not None or groups(frame, self.keys()) == len(frame):
            return
        whole = [name for name in self.free() if _is_number(frame[name])]
        whole = [name for name in whole if (pd.to_numeric(frame[name]) % 1 == 0).all()]
        whole.sort(key=lambda name: -frame[name].nunique())
        shared = self.telling_apart(self.shared(whole))
        if len(shared) > 1:
            budget = "" if self.columns["budget"] else ", and the budget with fidelity_var= if one of them is that"
            raise DataError(
                f"no column has the name of a seed, and {listed(map(repr, shared))} distinguish rows only together. "
                f"Name the seed, {self.function}(..., seed_var=...){budget}."
            )
        for name in shared or self.telling_apart(whole):
            if groups(frame, [*self.keys(), name]) == len(frame) and self.joins_budgets(name):
                self.columns["seed"] = name
                self.guessed[name] = "seed"
                return

    def find_numbers(self) -> None:
        """Numbers of which all algorithms have the same are metafeatures; others are measurements, or budgets."""
        numbers = [name for name in self.free() if _is_number(self.frame[name]) and _plain(name) not in NAMES["seed"]]
        shared = self.shared(numbers)
        found = self.telling_apart(shared)
        self.metafeatures += found
        self.guessed |= dict.fromkeys(found, "metafeature")
        if self.columns["seed"] is not None and self.columns["budget"] is None:
            self.loose = self.telling_apart([name for name in numbers if name not in shared])


def as_runs(data: Any, function: str, *, algorithm: str, loss: str, **given: str | None) -> Runs:
    """Give the columns of a table their roles; `given` are benchmark, budget and seed, None to be looked for.

    Warns with `DataWarning` if a role was guessed, and says how to name it.
    """
    frame = to_table(data)
    given = {role: given.get(role) for role in OWN}
    named = [algorithm, loss, *(name for name in given.values() if name is not None)]
    check_columns(named, frame.columns, argument="data")
    roles = find_roles(frame, function, algorithm=algorithm, loss=loss, given=given)
    warn(roles, [ARGUMENTS[role] for role in given if given[role] is None], level=4)
    return roles.runs()


def find_roles(
    frame: pd.DataFrame,
    function: str,
    *,
    algorithm: str,
    loss: str,
    given: Mapping[str, str | None],
    metafeatures: Iterable[str] = (),
) -> Roles:
    """Find the roles that arguments leave open, by the rule above, or raise `DataError` where several columns fit."""
    roles = Roles(frame, function, algorithm, loss, dict(given), list(metafeatures))
    free = [name for name in frame.columns if name not in (loss, *roles.keys())]
    roles.candidates = [name for name in free if _can_be_grouped(frame[name])]
    for role in NAMES:
        if roles.columns[role] is None:
            roles.find_by_name(role)
    roles.find_labels()
    roles.find_seed()
    roles.find_numbers()
    return roles


def warn(roles: Roles, arguments: list[str], *, level: int) -> None:
    """Say which columns were taken for what, and the way to say otherwise."""
    if roles.guessed:
        found = ", ".join(f"{name!r} for the {role}" for name, role in roles.guessed.items())
        how = ", ".join(f"{name}=..." for name in arguments)
        warnings.warn(
            f"no argument says what some columns are, so {roles.function} takes {found}. If that is wrong, name the "
            f"columns, {roles.function}(..., {how}), or leave those out of the table that play no part.",
            DataWarning,
            stacklevel=level,
        )
    if roles.loose:
        warnings.warn(
            f"rows of one run ({roles.columns['seed']}) differ in {listed(map(repr, roles.loose))}, and each of them "
            "counts as a run of its own. If they are one run at several budgets, name that column: "
            f"{roles.function}(..., fidelity_var=...).",
            DataWarning,
            stacklevel=level,
        )


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


def _is_label(column: pd.Series) -> bool:
    return not _is_number(column) and not is_datetime64_any_dtype(column)
