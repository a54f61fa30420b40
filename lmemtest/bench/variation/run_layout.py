"""One score per run, and the sources of variation that a table of runs identifies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.bench.data.requirements import check_algorithms
from lmemtest.bench.data.runs import Runs, require_runs
from lmemtest.bench.data.sampled import FEWEST_FAMILIES, of_these_families
from lmemtest.bench.data.study import labels
from lmemtest.core.words import format_level
from lmemtest.errors import ArgumentError, DataError
from lmemtest.lmm.intervals.balanced import Factors, Stratum, group_codes, strata_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.core.arrays import Array


# What a column of a layout stands for; a condition is a combination of levels of the metafeatures.
ALGORITHM, BENCHMARK, CONDITION, SEED, RUN = "algorithm", "benchmark", "condition", "seed", "run"
FAMILIES = tuple(f"family{i}" for i in range(1, 10))  # from coarse to fine; nobody has ten levels of them
EVERYTHING: Factors = frozenset({ALGORITHM, BENCHMARK, CONDITION, SEED, RUN, *FAMILIES})
_NOTHING = 1e-20  # of the variance of all runs: rounding


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RunLayout:
    """One score per run with its roles, and the random terms that the table identifies.

    ``frame`` has one row per run: family1, ..., algorithm, benchmark, condition, seed (labels; those that exist) and
    score (the mean over the budgets); ``curves`` the scores at each budget minus that mean, ``(n_runs, n_budgets)``;
    ``columns`` those of the user for each role. ``terms`` are the groups of the random terms from coarse to fine, the
    last one the run; ``strata`` and ``curve_strata`` their mean squares, where the table is balanced.
    """

    frame: pd.DataFrame
    curves: Array
    columns: dict[str, list[str]]
    terms: tuple[Factors, ...]
    strata: dict[Factors, Stratum] | None
    curve_strata: dict[Factors, Stratum] | None
    notes: tuple[str, ...]
    crosses_families: bool = False  # whether a benchmark is in several families that are a sample

    @property
    def n_budgets(self) -> int:
        """Budgets of every run."""
        return self.curves.shape[1]

    @property
    def n_conditions(self) -> int:
        """Conditions, one without metafeatures."""
        return self.frame[CONDITION].nunique() if CONDITION in self.frame else 1

    @property
    def n_seeds(self) -> float:
        """Runs of an algorithm at one instance; the harmonic mean."""
        cell = [role for role in (*FAMILIES, BENCHMARK, CONDITION, ALGORITHM) if role in self.frame]
        counts = self.frame.groupby(cell, observed=True).size().to_numpy()
        if counts.min() == counts.max():  # exact, which a sum of reciprocals is not
            return float(counts[0])
        return float(len(counts) / np.sum(1.0 / counts))

    @property
    def sizes(self) -> dict[str, Any]:
        """Size of the study, for the results."""
        n_algorithms, n_benchmarks = (self.frame[role].nunique() for role in (ALGORITHM, BENCHMARK))
        return {"n_algorithms": n_algorithms, "n_benchmarks": n_benchmarks, "n_seeds": self.n_seeds}

    @property
    def families(self) -> tuple[str, ...]:
        """The roles of families that are a sample, from coarse to fine; () where benchmarks are."""
        return tuple(role for role in FAMILIES if role in self.columns)

    @property
    def n_families(self) -> int | None:
        """How many there are of the coarsest families; None where benchmarks are the sample."""
        return self.frame[FAMILIES[0]].nunique() if self.families else None

    @property
    def n_places(self) -> int | None:
        """Benchmarks, counted once for each of the families that they are in; None where benchmarks are the sample."""
        return self.frame[[*self.families, BENCHMARK]].drop_duplicates().shape[0] if self.families else None

    @property
    def unit(self) -> str:
        """What runs are repeated on."""
        return "instance" if CONDITION in self.columns else "benchmark"

    def label(self, factors: Factors) -> str:
        """The columns of a set of factors, joined by colons."""
        return "run" if factors == EVERYTHING else _label(self.columns, factors, crossed=self.crosses_families)


def layout_of(runs: Any, *, task: str, families: bool = False) -> RunLayout:
    """The layout of a table of runs; `task` says in errors what is wanted ("the variation is taken apart").

    With `families` those of which there are enough to be a sample are random, with the benchmarks within them.

    Raises
    ------
    ArgumentError
        If `runs` is not Runs, names no benchmark, or has one only.
    DataError
        If budgets cannot be averaged.
    """
    study = require_benchmarks(runs, task).study
    levels = _sampled_families(runs) if families else {}
    used = [name for names in levels.values() for name in names]
    crossed = [name for name in study.crossed if families and name not in used]
    conditions, notes = _conditions(runs, crossed)
    of_runs = {ALGORITHM: [runs.algorithm], BENCHMARK: [runs.benchmark], CONDITION: conditions, SEED: [runs.seed]}
    columns = {role: names for role, names in (levels | of_runs).items() if names and names[0]}
    keys = [name for role in (*FAMILIES, BENCHMARK, CONDITION, ALGORITHM, SEED) for name in columns.get(role, [])]
    budgets = _linked_budgets(runs, keys)
    if len(budgets) > 1:
        cells = study.cells([*keys, runs.budget])  # sorted by the keys, the budget last
        scores = cells.mean.reshape(-1, len(budgets))
        table = cells.frame.iloc[:: len(budgets)].reset_index(drop=True)
    else:
        table = study.rows(keys)
        scores = table[[runs.score]].to_numpy(dtype=float)
    if np.ptp(scores) == 0:
        raise DataError(f"all scores of {runs.score!r} are equal, so there is no variation to take apart.")
    frame = pd.DataFrame({role: labels(table, names) for role, names in columns.items()})
    frame["score"] = scores.mean(axis=1)
    base = [frozenset[str](), frozenset({ALGORITHM})]
    if conditions:
        base += [frozenset({CONDITION}), frozenset({ALGORITHM, CONDITION})]
    several = bool(levels) and bool(study.crossed)  # families of a benchmark
    places = [frozenset(list(levels)[: i + 1]) for i in range(len(levels))]
    places += [frozenset({BENCHMARK})] * (several or not levels) + [frozenset({BENCHMARK, *levels})] * bool(levels)
    sets = [*base, *(factors | place for place in places for factors in base)]
    sets += [places[-1] | {SEED, *({CONDITION} & columns.keys())}] * (SEED in columns)
    codes = {factors: group_codes(frame, sorted(factors)) for factors in sets}
    terms, more = _identified(codes, len(frame), columns, crossed=several)
    lattice = {factors: code for factors, code in codes.items() if factors in terms or factors in base}
    lattice[EVERYTHING] = np.arange(len(frame))
    curves = scores - scores.mean(axis=1, keepdims=True)
    # where benchmarks and families cross, no mean square alone is the error of the algorithms' means
    strata = None if several else strata_of(lattice, frame[["score"]].to_numpy())
    if strata is not None and strata[EVERYTHING].mean_square <= _NOTHING * frame["score"].var():
        raise DataError(
            f"nothing is left to chance: runs of one algorithm on one benchmark have the same score, or all algorithms "
            f"have the same score with each seed, so there is no error by which {task}. Keep one run of each, and "
            "look for copies: lmemtest.check(runs)."
        )
    return RunLayout(
        frame=frame,
        curves=curves,
        columns=columns,
        terms=(*terms, EVERYTHING),
        strata=strata,
        curve_strata=strata_of(lattice, curves) if strata is not None and len(budgets) > 1 else None,
        notes=(*(study.sampled.notes[:1] if families else of_these_families(runs)), *notes, *more),
        crosses_families=several,
    )


def one_score_per_run(runs: Any, *, task: str) -> Runs:
    """The runs with their mean over the budgets as score, without the budget; refusals as in `layout_of`."""
    study = require_benchmarks(runs, task).study
    keys = [name for name in study.columns if name != runs.budget]
    if len(_linked_budgets(runs, keys)) > 1:
        return study.average("budget")
    return Runs(study.rows(keys), **{**runs.roles(), "budget": None, "failed": None, "ignore": ()})


def require_benchmarks(runs: Any, task: str) -> Runs:
    """The runs, if they are of two algorithms and of two benchmarks or more."""
    require_runs(runs)
    check_algorithms(runs)
    benchmark = runs.study.require("benchmark", f"nothing says what differs between benchmarks, by which {task}")
    levels = runs.levels(benchmark)
    if len(levels) < 2:
        raise ArgumentError(
            f"runs has one benchmark only, {levels[0]!r}, and {task} by what differs between benchmarks. Give at "
            "least two; many more are needed for a sure answer."
        )
    return runs


def _linked_budgets(runs: Runs, keys: list[str]) -> tuple[Any, ...]:
    """The budgets of the table; refused where the scores of a run at several cannot be averaged."""
    budgets = runs.levels(runs.budget) if runs.budget else ()
    if len(budgets) < 2:
        return (None,)
    if runs.seed is None:
        raise DataError(
            f"runs has scores at {len(budgets)} budgets but no seed column, so scores of one run cannot be linked. "
            f"Name the column: seed=..., or take one budget: runs.filter({runs.budget}={format_level(budgets[-1])})."
        )
    if runs.study.count(*keys, runs.budget) != runs.study.count(*keys) * len(budgets):
        raise DataError(
            f"not every run has a score at each of the {len(budgets)} budgets, so means over the budgets do not "
            f"compare. Take budgets that all runs reached: runs.filter({runs.budget}=...)."
        )
    return budgets


def _sampled_families(runs: Runs) -> dict[str, list[str]]:
    """Columns of each level of families from coarse to fine, from the first on of which there are enough."""
    found: dict[str, list[str]] = {}
    for columns in runs.study.families:
        if found or runs.study.count(columns[-1]) >= FEWEST_FAMILIES:
            known = [name for names in found.values() for name in names]
            found[FAMILIES[len(found)]] = [name for name in columns if name not in known]
    return found


def _conditions(runs: Runs, crossed: list[str]) -> tuple[list[str], list[str]]:
    """Families and metafeatures whose levels change within benchmarks, and a note on the others."""
    count = runs.study.count
    within = [name for name in runs.metafeatures if count(runs.benchmark, name) > count(runs.benchmark)]
    constant = [name for name in runs.metafeatures if name not in within and count(name) > 1]
    if not constant:
        return [*crossed, *within], []
    never = f"{' and '.join(constant)} never changes within a benchmark"
    return [*crossed, *within], [f"{never}, so its variation is part of the benchmarks'."]


def _label(columns: dict[str, list[str]], factors: Factors, *, crossed: bool) -> str:
    """Names of columns; a benchmark tells its family unless it is in several."""
    told = BENCHMARK in factors and not crossed
    order = (*(() if told else FAMILIES), BENCHMARK, CONDITION, ALGORITHM, SEED)
    return ":".join(name for role in order if role in factors for name in columns[role])


def _identified(
    codes: dict[Factors, NDArray[np.intp]], n_rows: int, columns: dict[str, list[str]], *, crossed: bool
) -> tuple[list[Factors], list[str]]:
    """Random terms whose groups are no single rows and no copies of another term's groups."""
    counts = {factors: int(code.max()) + 1 for factors, code in codes.items()}
    kept: list[Factors] = []
    notes = []
    random = [factors for factors in codes if factors & {BENCHMARK, *FAMILIES}]
    for factors in sorted(random, key=lambda f: (SEED in f, BENCHMARK in f, len(f), ALGORITHM in f)):
        if counts[factors] >= n_rows:
            what = "runs with the same seed share nothing" if SEED in factors else "there is one run in each"
            notes.append(
                f"{_label(columns, factors, crossed=crossed)}: {what}, so it cannot be distinguished from the "
                "runs and is part of their variation."
            )
        elif not any(inner < factors and counts[inner] == counts[factors] for inner in kept):
            kept.append(factors)
    return kept, notes
