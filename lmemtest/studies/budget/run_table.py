"""A table of runs by role, and its means over runs and conditions where the table is complete.

Comparisons over benchmarks depend on the runs through the means of each algorithm on each benchmark alone, if every
benchmark has the same number of runs of every algorithm under the same conditions at the same budgets. So these means
may take the place of the runs: a table of thousands of rows becomes one of hundreds and nothing is lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from lmemtest.data.cells import group_means, group_numbers
from lmemtest.data.runs import Runs, require_runs

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class RunTable:
    """Scores with columns by role.

    Attributes
    ----------
    frame : pandas.DataFrame
        One row per distinct combination of the roles, with the mean score; algorithms are text.
    rows : (n,) int
        Rows of the user's table behind each of them.
    score, algorithm, benchmark, seed, budget : str or None
    conditions : tuple of str
        Metafeatures that vary: within benchmarks, where there are several.
    """

    frame: pd.DataFrame
    rows: NDArray[np.intp]
    score: str
    algorithm: str
    benchmark: str | None
    conditions: tuple[str, ...]
    seed: str | None
    budget: str

    @property
    def instance(self) -> tuple[str, ...]:
        return (*((self.benchmark,) if self.benchmark else ()), *self.conditions)

    @property
    def run(self) -> tuple[str, ...]:
        return (*self.instance, self.algorithm, *((self.seed,) if self.seed else ()))

    @property
    def generalises(self) -> bool:
        return self.benchmark is not None and self.frame[self.benchmark].nunique() > 1

    def count(self, columns: tuple[str, ...]) -> int:
        return len(self.frame[list(dict.fromkeys(columns))].drop_duplicates())

    def averaged(self, column: str) -> RunTable:
        """Means over the values of a column."""
        keys = [c for c in (*self.instance, self.algorithm, self.seed, self.budget) if c is not None and c != column]
        frame, _ = group_means(self.frame, keys, self.score)
        left = tuple(c for c in self.conditions if c != column)
        seed = None if column == self.seed else self.seed
        rows = np.bincount(group_numbers(self.frame, keys), weights=self.rows)
        return RunTable(frame, rows, self.score, self.algorithm, self.benchmark, left, seed, self.budget)


def run_table(runs: Runs) -> RunTable:
    """One row per algorithm, instance, seed and budget."""
    require_runs(runs)
    study = runs.study
    budget = study.require("budget", "there are no curves")
    conditions = study.instance[runs.benchmark is not None :]
    cells = study.cells([*study.run, budget])
    frame = cells.frame.assign(**{runs.score: np.asarray(cells.mean)})
    names = [str(name) for name in runs.algorithms]
    frame[runs.algorithm] = pd.Categorical(frame[runs.algorithm].astype(str), names)  # as text, in the order of levels
    rows = np.asarray(cells.n, dtype=np.intp)
    return RunTable(frame, rows, runs.score, runs.algorithm, runs.benchmark, conditions, runs.seed, budget)


def benchmark_means(roles: RunTable) -> tuple[RunTable, tuple[str, ...]]:
    """Means over runs and conditions, if every algorithm has the same ones on every benchmark."""
    if not roles.generalises:
        return roles, ()
    notes = []
    budgets = roles.count((roles.budget,))
    if roles.seed is not None:
        sizes = roles.frame.groupby([*roles.instance, roles.algorithm], observed=True).size().to_numpy()
        runs = roles.frame.groupby(list(roles.run), observed=True).size().to_numpy()
        if (runs != budgets).any() or (sizes != sizes[0]).any():
            notes.append(
                "Runs differ in number or in their budgets, so rows are fitted as they are and each run has a random "
                "curve of its own."
            )
            return roles, tuple(notes)
        notes.append(f"Curves are means over {sizes[0] // budgets} runs of each algorithm and instance.")
        roles = roles.averaged(roles.seed)
    places = roles.count((str(roles.benchmark), roles.algorithm))
    for condition in roles.conditions:
        levels = roles.count((condition,))
        everywhere = roles.count((str(roles.benchmark), roles.algorithm, condition)) == levels * places
        if everywhere and len(roles.frame) == roles.count((*roles.instance, roles.algorithm)) * budgets:
            notes.append(f"Curves are means over the {levels} levels of {condition}.")
            roles = roles.averaged(condition)
    return roles, tuple(notes)
