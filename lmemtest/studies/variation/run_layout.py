"""A table of runs as a layout: one score per run, and which sources of variation the table can tell apart."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.data.runs import Runs, require_runs
from lmemtest.errors import ArgumentError, DataError
from lmemtest.inference.intervals.balanced import Factors, Stratum, group_codes, strata_of
from lmemtest.words import format_level

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

# What a column of a layout stands for; a condition is a combination of levels of the metafeatures.
ALGORITHM, BENCHMARK, CONDITION, SEED, RUN = "algorithm", "benchmark", "condition", "seed", "run"
EVERYTHING: Factors = frozenset({ALGORITHM, BENCHMARK, CONDITION, SEED, RUN})
_NOTHING = 1e-20  # of the variance of all runs: rounding


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunLayout:
    """One score per run with its roles, and the random terms that the table identifies.

    Attributes
    ----------
    frame : pandas.DataFrame
        One row per run: algorithm, benchmark, condition, seed (as text; those that exist) and score (the mean over
        the budgets).
    courses : (n_runs, n_budgets) float
        Scores minus the mean of the run; no columns with one budget.
    names : dict of str to str
        Role to the columns of the user.
    terms : tuple of frozenset of str
        Groups of the random terms from coarse to fine; the last one is the run.
    strata, course_strata : dict or None
        Mean squares, where the table is balanced.
    n_algorithms, n_benchmarks, n_conditions, n_budgets : int
    n_seeds : float
        Runs of an algorithm at one instance; the harmonic mean.
    notes : tuple of str
    """

    frame: pd.DataFrame
    courses: Array
    names: dict[str, str]
    terms: tuple[Factors, ...]
    strata: dict[Factors, Stratum] | None
    course_strata: dict[Factors, Stratum] | None
    n_algorithms: int
    n_benchmarks: int
    n_conditions: int
    n_budgets: int
    n_seeds: float
    notes: tuple[str, ...]

    def label(self, factors: Factors) -> str:
        """The columns of a set of factors, joined by colons."""
        if factors == EVERYTHING:
            return "run"
        order = (BENCHMARK, CONDITION, ALGORITHM, SEED)
        return ":".join(self.names[role] for role in order if role in factors)

    @property
    def unit(self) -> str:
        """What runs are repeated on."""
        return "instance" if CONDITION in self.names else "benchmark"


def layout_of(runs: Any, *, task: str) -> RunLayout:
    """The layout of a table of runs.

    Parameters
    ----------
    runs : Runs
        With two or more benchmarks.
    task : str
        For error messages: what is wanted ("the variation is taken apart").

    Raises
    ------
    ArgumentError
        If `runs` is not Runs, names no benchmark, or has one only.
    DataError
        If budgets cannot be averaged.
    """
    _check_runs(runs, task)
    conditions, notes = _conditions(runs)
    keys = [runs.benchmark, *conditions, runs.algorithm, *([runs.seed] if runs.seed else [])]
    scores, table, budgets = _scores(runs, [str(key) for key in keys])
    frame = _roles(runs, table, conditions)
    frame["score"] = scores.mean(axis=1)
    if np.ptp(scores) == 0:
        raise DataError(f"all scores of {runs.score!r} are equal, so there is no variation to take apart.")
    names = {ALGORITHM: runs.algorithm, BENCHMARK: str(runs.benchmark)}
    names |= {CONDITION: ":".join(conditions)} if conditions else {}
    names |= {SEED: runs.seed} if runs.seed else {}
    codes = {factors: group_codes(frame, sorted(factors)) for factors in _sets(names)}
    terms, more = _identified(codes, len(frame), names)
    lattice = {factors: code for factors, code in codes.items() if factors in terms or BENCHMARK not in factors}
    lattice[EVERYTHING] = np.arange(len(frame))
    courses = scores - scores.mean(axis=1, keepdims=True) if budgets > 1 else np.empty((len(frame), 0))
    strata = strata_of(lattice, frame[["score"]].to_numpy())
    if strata is not None and strata[EVERYTHING].mean_square <= _NOTHING * frame["score"].var():
        raise DataError(
            f"nothing is left to chance: runs of one algorithm on one benchmark have the same score, or all algorithms "
            f"have the same score with each seed, so there is no error by which {task}. Keep one run of each, and "
            "look for copies: lmemtest.check_all(runs)."
        )
    per_cell = frame.groupby([role for role in (BENCHMARK, CONDITION, ALGORITHM) if role in frame]).size().to_numpy()
    return RunLayout(
        frame=frame,
        courses=courses,
        names=names,
        terms=(*terms, EVERYTHING),
        strata=strata,
        course_strata=strata_of(lattice, courses) if strata is not None and budgets > 1 else None,
        n_algorithms=frame[ALGORITHM].nunique(),
        n_benchmarks=frame[BENCHMARK].nunique(),
        n_conditions=frame[CONDITION].nunique() if conditions else 1,
        n_budgets=budgets,
        n_seeds=_harmonic_mean(per_cell),
        notes=(*notes, *more),
    )


def _harmonic_mean(counts: NDArray[np.intp]) -> float:
    """Of positive counts: exact where they are equal, which a sum of reciprocals is not."""
    if counts.min() == counts.max():
        return float(counts[0])
    return float(len(counts) / np.sum(1.0 / counts))


def one_score_per_run(runs: Any, *, task: str) -> Runs:
    """The runs with their mean over the budgets as score, on the columns of their roles without the budget.

    Parameters
    ----------
    runs : Runs
        With two or more benchmarks.
    task : str
        For error messages, as in `layout_of`.

    Raises
    ------
    ArgumentError, DataError
        As in `layout_of`.
    """
    _check_runs(runs, task)
    keys = [*runs.instance, runs.algorithm, *([runs.seed] if runs.seed else [])]
    scores, table, _ = _scores(runs, keys)
    frame = table.assign(**{runs.score: scores.mean(axis=1)})
    return Runs(frame, **{**runs.roles(), "budget": None})


def _check_runs(runs: Any, task: str) -> None:
    require_runs(runs)
    if runs.benchmark is None:
        raise ArgumentError(
            f"runs names no benchmark, and {task} by what differs between benchmarks. Name the column: "
            "lmemtest.Runs(table, ..., benchmark=...)."
        )
    levels = runs.levels(runs.benchmark)
    if len(levels) < 2:
        raise ArgumentError(
            f"runs has one benchmark only, {levels[0]!r}, and {task} by what differs between benchmarks. Give at "
            "least two; many more are needed for a sure answer."
        )


def _conditions(runs: Runs) -> tuple[list[str], list[str]]:
    """Metafeatures whose levels change within benchmarks, and a note on the others."""
    if not runs.metafeatures:
        return [], []
    table = runs.study.distinct(runs.instance)
    grouped = table.groupby(runs.benchmark, observed=True)
    within = [name for name in runs.metafeatures if grouped[name].nunique().max() > 1]
    constant = [name for name in runs.metafeatures if name not in within and table[name].nunique() > 1]
    notes = []
    if constant:
        notes.append(
            f"{' and '.join(constant)} never changes within a benchmark, so its variation is part of the benchmarks'."
        )
    return within, notes


def _scores(runs: Runs, keys: list[str]) -> tuple[Array, pd.DataFrame, int]:
    """Scores of every run at every budget, ``(n_runs, n_budgets)``, the runs' keys, and the number of budgets."""
    budgets = runs.levels(runs.budget) if runs.budget else ()
    if len(budgets) < 2:
        table = runs.study.rows(keys)
        return table[[runs.score]].to_numpy(dtype=float), table[keys], 1
    if runs.seed is None:
        raise DataError(
            f"runs has scores at {len(budgets)} budgets but no seed column, so scores of one run cannot be linked. "
            f"Name the column: seed=..., or take one budget: runs.filter({runs.budget}={format_level(budgets[-1])})."
        )
    cells = runs.study.cells([*keys, str(runs.budget)])
    code = group_codes(cells.frame, keys)
    if len(cells.mean) != (int(code.max()) + 1) * len(budgets):
        raise DataError(
            f"not every run has a score at each of the {len(budgets)} budgets, so means over the budgets do not "
            f"compare. Take budgets that all runs reached: runs.filter({runs.budget}=...)."
        )
    scores = cells.mean.reshape(-1, len(budgets))  # cells are sorted by the keys, the budget last
    return scores, cells.frame.iloc[:: len(budgets)][keys].reset_index(drop=True), len(budgets)


def _roles(runs: Runs, table: pd.DataFrame, conditions: list[str]) -> pd.DataFrame:
    def text(columns: list[str]) -> list[str]:
        parts = [[format_level(value) for value in table[name]] for name in columns]
        return [" · ".join(row) for row in zip(*parts, strict=True)]

    roles = {ALGORITHM: [runs.algorithm], BENCHMARK: [str(runs.benchmark)]}
    roles |= {CONDITION: conditions} if conditions else {}
    roles |= {SEED: [runs.seed]} if runs.seed else {}
    return pd.DataFrame({role: text(columns) for role, columns in roles.items()})


def _sets(names: dict[str, str]) -> list[Factors]:
    """Sets of factors that may have means of their own, from coarse to fine."""
    base = [frozenset[str](), frozenset({ALGORITHM})]
    if CONDITION in names:
        base += [frozenset({CONDITION}), frozenset({ALGORITHM, CONDITION})]
    random = [factors | {BENCHMARK} for factors in base]
    seeds = [frozenset({BENCHMARK, *({CONDITION} & names.keys()), SEED})] if SEED in names else []
    return [*base, *random, *seeds]


def _identified(
    codes: dict[Factors, NDArray[np.intp]], n_rows: int, names: dict[str, str]
) -> tuple[list[Factors], list[str]]:
    """Random terms whose groups are no single rows and no copies of another term's groups."""
    counts = {factors: int(code.max()) + 1 for factors, code in codes.items()}
    kept: list[Factors] = []
    notes = []
    for factors in sorted((f for f in codes if BENCHMARK in f), key=lambda f: (SEED in f, len(f), ALGORITHM in f)):
        if counts[factors] >= n_rows:
            what = "runs with the same seed share nothing" if SEED in factors else "there is one run in each"
            columns = ":".join(names[role] for role in (BENCHMARK, CONDITION, ALGORITHM, SEED) if role in factors)
            notes.append(f"{columns}: {what}, so it cannot be told apart from the runs and is part of their variation.")
        elif not any(inner < factors and counts[inner] == counts[factors] for inner in kept):
            kept.append(factors)
    return kept, notes
