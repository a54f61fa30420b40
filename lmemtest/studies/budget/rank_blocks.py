"""Ranks of the algorithms within every instance, seed and budget: the blocks that relative ranks average.

Only complete comparisons count. A pair of instance and seed takes part if all algorithms ran there, and a budget if all
of these runs have it; else the mean over budgets would also show which runs come and go.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
import pandas as pd

from lmemtest._validate import check_column
from lmemtest.data.cells import group_numbers
from lmemtest.data.compress import compress
from lmemtest.data.trace import checked_budgets, last_rows
from lmemtest.errors import ArgumentError, DataError
from lmemtest.words import listed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.data.runs import Runs

    FloatArray = NDArray[np.float64]
    IntArray = NDArray[np.intp]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RankedRuns:
    """Ranks of complete comparisons.

    Attributes
    ----------
    ranks : (n_pairs, n_budgets, n_algorithms) float
        1 is best; ties share the mean of their ranks. A pair is an instance with a seed.
    instance, seed, benchmark : (n_pairs,) int
        Codes.
    group : (n_pairs,) int or None
        Level of the column that splits the instances.
    benchmark_of : (n_instances,) int
    seeds, groups, algorithms, budgets : tuple
        Levels behind the codes, and along the axes.
    has_seeds : bool
    notes : tuple of str
    """

    ranks: FloatArray
    instance: IntArray
    seed: IntArray
    benchmark: IntArray
    group: IntArray | None
    benchmark_of: IntArray
    seeds: tuple[Any, ...]
    groups: tuple[Any, ...]
    algorithms: tuple[Any, ...]
    budgets: tuple[Any, ...]
    has_seeds: bool
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Coded:
    """One row per instance, seed, algorithm and budget."""

    runs: Runs
    frame: pd.DataFrame
    instance: IntArray
    seed: IntArray
    algorithm: IntArray
    budget: IntArray
    score: FloatArray
    algorithms: tuple[Any, ...]
    seeds: tuple[Any, ...]
    budgets: tuple[Any, ...]

    def names(self, instances: np.ndarray) -> list[str]:
        """Instances in words."""
        columns = list(self.runs.instance)
        if not columns:
            return ["the table"]
        first = np.unique(self.instance, return_index=True)[1]
        rows = self.frame.iloc[first[instances]][columns].astype(str)
        return [" / ".join(row) for row in rows.itertuples(index=False)]


def ranked_runs(runs: Runs, *, by: str | None, budgets: Iterable[float] | None) -> RankedRuns:
    """Rank the algorithms within every instance, seed and budget.

    Parameters
    ----------
    runs : Runs
    by : str or None
        A column that is constant within instances.
    budgets : iterable of float or None
        Budgets at which every run has the score of its last row so far; None for those that all runs have.

    Returns
    -------
    RankedRuns

    Raises
    ------
    ArgumentError, DataError
        See `relative_ranks`.
    """
    _check_by(runs, by)
    coded, notes = _coded(runs, by)
    pair, pairs, more = _complete_pairs(coded)
    notes += more
    if budgets is None:
        scores, levels, more = _at_common_budgets(coded, pair, len(pairs))
    else:
        scores, levels, more = _at_given_budgets(coded, pair, len(pairs), checked_budgets(runs, budgets))
    notes += more
    instance, seed = np.divmod(pairs, len(coded.seeds))
    first = np.unique(coded.instance, return_index=True)[1]
    benchmark_of, group_of, groups = _levels_of(coded.frame.iloc[first], runs.benchmark, by)
    return RankedRuns(
        ranks=mean_ranks(scores if runs.direction == "minimize" else -scores),
        instance=instance,
        seed=seed,
        benchmark=benchmark_of[instance],
        group=None if by is None else group_of[instance],
        benchmark_of=benchmark_of,
        seeds=tuple(coded.seeds[i] for i in np.unique(seed)),
        groups=groups,
        algorithms=coded.algorithms,
        budgets=levels,
        has_seeds=runs.seed is not None,
        notes=notes,
    )


def mean_ranks(values: FloatArray) -> FloatArray:
    """Ranks along the last axis, 1 for the lowest; ties share the mean of their ranks.

    >>> mean_ranks(np.array([[0.5, 0.1, 0.5]]))
    array([[2.5, 1. , 2.5]])
    """
    ranks = np.full(values.shape, 0.5)
    for i in range(values.shape[-1]):  # one algorithm at a time keeps memory at the size of the table
        other = values[..., i : i + 1]
        ranks += (other < values) + 0.5 * (other == values)
    return ranks


def _check_by(runs: Runs, by: str | None) -> None:
    if by is None:
        return
    check_column(by, runs.columns, argument="by")
    if by in (runs.score, runs.algorithm, runs.seed, runs.budget):
        raise ArgumentError(
            f"by must name a column that describes instances, such as a metafeature, got {by!r}, which is the score, "
            "the algorithm, the seed or the budget."
        )


def _coded(runs: Runs, by: str | None) -> tuple[_Coded, tuple[str, ...]]:
    extra = [by] if by is not None and by not in runs.instance else []
    keys = [*runs.instance, *extra, *(name for name in (runs.seed, runs.algorithm, runs.budget) if name)]
    cells = compress(runs, by=keys, score=runs.score)
    frame = cells.frame
    instance, _ = _codes(frame, list(runs.instance))
    if extra:
        _check_constant(runs, frame, instance, extra[0])
    notes: tuple[str, ...] = ()
    if cells.n_rows > len(frame):
        what = "" if runs.seed else " (no column of seeds is named)"
        notes = (f"Repeated rows of an algorithm on an instance{what} were averaged before they were ranked.",)
    seed, seeds = _codes(frame, [runs.seed] if runs.seed else [])
    algorithm, algorithms = _codes(frame, [runs.algorithm])
    budget, levels = _codes(frame, [runs.budget] if runs.budget else [])
    return (
        _Coded(
            runs=runs,
            frame=frame,
            instance=instance,
            seed=seed,
            algorithm=algorithm,
            budget=budget,
            score=cells.mean,
            algorithms=algorithms,
            seeds=seeds,
            budgets=levels,
        ),
        notes,
    )


def _codes(frame: pd.DataFrame, columns: list[str]) -> tuple[IntArray, tuple[Any, ...]]:
    """Codes in sorted order, and the level of each (of the first column)."""
    if not columns:
        return np.zeros(len(frame), dtype=np.intp), (None,)
    codes = group_numbers(frame, columns)
    first = np.unique(codes, return_index=True)[1]
    return codes, tuple(frame[columns[0]].iloc[first].tolist())


def _check_constant(runs: Runs, frame: pd.DataFrame, instance: IntArray, by: str) -> None:
    level, _ = _codes(frame, [by])
    pairs = np.unique(np.stack([instance, level]), axis=1)
    if pairs.shape[1] > len(np.unique(instance)):
        raise ArgumentError(
            f"by must name a column that is constant within each instance ({':'.join(runs.instance)}), but {by!r} "
            f"changes there. If it describes the circumstances of a run, name it in Runs(..., metafeatures=({by!r},))."
        )


def _complete_pairs(coded: _Coded) -> tuple[IntArray, IntArray, tuple[str, ...]]:
    """The pair of instance and seed of every row (-1 where it is incomplete), and the complete pairs."""
    k = len(coded.algorithms)
    pair = coded.instance * len(coded.seeds) + coded.seed
    size = (int(coded.instance.max()) + 1) * len(coded.seeds)
    there = np.zeros((size, k), dtype=bool)
    there[pair, coded.algorithm] = True
    _check_every_algorithm(coded, there)
    complete = np.flatnonzero(there.all(axis=1))
    instances = np.arange(int(coded.instance.max()) + 1)
    without = np.setdiff1d(instances, complete // len(coded.seeds))
    if len(without):
        raise DataError(
            f"no {coded.runs.seed!r} was run by all {k} algorithms on {listed(coded.names(without), 5)}, so their runs "
            "cannot be ranked against each other. Give runs that belong together the same seed, or leave the seeds "
            "out: Runs(..., seed=None) ranks the means."
        )
    dropped = int(there.any(axis=1).sum()) - len(complete)
    notes: tuple[str, ...] = ()
    if dropped:
        notes = (f"{dropped:,} pairs of instance and seed that some algorithm does not have were left out.",)
    number = np.full(size, -1, dtype=np.intp)
    number[complete] = np.arange(len(complete))
    return number[pair], complete, notes


def _check_every_algorithm(coded: _Coded, there: np.ndarray) -> None:
    ran = there.reshape(-1, len(coded.seeds), there.shape[1]).any(axis=1)
    if ran.all():
        return
    instance, algorithm = np.argwhere(~ran)[0]
    missing = coded.algorithms[algorithm]
    name = coded.names(np.array([instance]))[0]
    raise DataError(
        f"{missing!r} has no run on {name} ({int((~ran).sum()):,} such gaps in all), so ranks there would be among "
        "fewer algorithms. Filter the runs to algorithms or benchmarks without gaps; runs.check() lists them."
    )


def _at_common_budgets(coded: _Coded, pair: IntArray, n: int) -> tuple[FloatArray, tuple[Any, ...], tuple[str, ...]]:
    """(pairs, budgets, algorithms) scores at the budgets that all runs have."""
    k, column = len(coded.algorithms), coded.runs.budget
    inside = pair >= 0
    counts = np.bincount(coded.budget[inside], minlength=len(coded.budgets))
    common = np.flatnonzero(counts == n * k)
    if not len(common):
        raise DataError(
            f"the runs have no value of {column!r} in common, so there is no budget at which all algorithms can be "
            "ranked. Name budgets: relative_ranks(runs, budgets=[...]) takes the last score of each run up to them."
        )
    position = np.full(len(coded.budgets), -1, dtype=np.intp)
    position[common] = np.arange(len(common))
    rows = inside & (position[coded.budget] >= 0)
    scores = np.empty((n, len(common), k))
    scores[pair[rows], position[coded.budget[rows]], coded.algorithm[rows]] = coded.score[rows]
    notes: tuple[str, ...] = ()
    if len(common) < len(coded.budgets):
        left = len(coded.budgets) - len(common)
        others = f"{left:,} other{'s were' if left > 1 else ' was'}"
        notes = (
            f"Ranks are at the {len(common):,} values of {column} that all runs have; {others} left out "
            "(budgets=[...] ranks at any, by each run's last score up to them).",
        )
    return scores, tuple(coded.budgets[i] for i in common), notes


def _at_given_budgets(
    coded: _Coded, pair: IntArray, n: int, wanted: FloatArray
) -> tuple[FloatArray, tuple[Any, ...], tuple[str, ...]]:
    """The last score of every run at or before each budget."""
    k, inside = len(coded.algorithms), pair >= 0
    values = np.asarray(coded.budgets, dtype=float)
    rows = pd.DataFrame(
        {"run": pair * k + coded.algorithm, "budget": values[coded.budget], "score": coded.score}, copy=False
    )[inside]
    first, end = rows.groupby("run")["budget"].agg(["min", "max"]).to_numpy().T
    if wanted[0] < first.max():
        raise ArgumentError(
            f"budgets must not be below {first.max():g}, where the last of the runs begins, got {wanted[0]:g}: before "
            "its first score a run has no rank."
        )
    reached = nw.to_native(last_rows(nw.from_native(rows), ["run"], "budget", wanted))
    at = np.searchsorted(wanted, reached["budget"].to_numpy())
    run, algorithm = np.divmod(reached["run"].to_numpy(), k)
    scores = np.empty((n, len(wanted), k))
    scores[run, at, algorithm] = reached["score"].to_numpy()
    notes: tuple[str, ...] = (
        f"At each {coded.runs.budget} every run has its last score so far, which suits scores of the best so far.",
    )
    if wanted[-1] > end.min():
        notes += (f"Some runs end at {end.min():g}; beyond it they keep their last score.",)
    return scores, tuple(wanted.tolist()), notes


def _levels_of(
    first: pd.DataFrame, benchmark: str | None, by: str | None
) -> tuple[IntArray, IntArray, tuple[Any, ...]]:
    """The benchmark and the group of each instance, and the groups."""
    benchmark_of, _ = _codes(first, [benchmark] if benchmark else [])
    group_of, groups = _codes(first, [by] if by else [])
    return benchmark_of, group_of, groups
