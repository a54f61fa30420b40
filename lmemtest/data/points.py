"""A table of runs as coded points, one per instance, seed, algorithm and budget, and what can be counted on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
import pandas as pd

from lmemtest.data.cells import combine_codes, first_rows

if TYPE_CHECKING:
    from lmemtest.data.runs import Runs

__all__ = [
    "Points",
    "cells_frame",
    "collect_points",
    "count_distinct",
    "effect_scales",
    "extra_rows",
    "grid_shape",
    "missing_points",
    "occurring",
    "overview",
    "residual_scales",
    "seed_groups",
    "seeds_run",
]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Points:
    """One entry per instance, seed, algorithm and budget that occurs, sorted in this order.

    Codes count from 0; a role that is not given has the single level 0.
    """

    runs: Runs
    instance: np.ndarray
    seed: np.ndarray
    algorithm: np.ndarray
    budget: np.ndarray
    run: np.ndarray  # of instance, seed and algorithm together
    cell: np.ndarray  # of benchmark and algorithm together
    benchmark_of: np.ndarray  # the benchmark of every instance
    benchmarks: tuple[Any, ...]
    seeds: tuple[Any, ...]
    algorithms: tuple[Any, ...]
    budgets: tuple[Any, ...]
    n: np.ndarray  # rows
    valid: np.ndarray  # rows with a finite score
    mean: np.ndarray
    ss: np.ndarray
    low: np.ndarray
    high: np.ndarray
    regular: bool  # budgets come from a common grid

    @property
    def n_cells(self) -> int:
        return len(self.benchmarks) * len(self.algorithms)

    def where(self, cell: int) -> tuple[Any, Any]:
        """The benchmark (None if there is no such column) and the algorithm of a cell."""
        benchmark, algorithm = divmod(int(cell), len(self.algorithms))
        return self.benchmarks[benchmark], self.algorithms[algorithm]

    def by_instance(self, values: np.ndarray) -> np.ndarray:
        """Sum a (instances, algorithms) array to (benchmarks, algorithms), flat."""
        out = np.zeros((len(self.benchmarks), len(self.algorithms)), dtype=values.dtype)
        np.add.at(out, self.benchmark_of, values)
        return out.ravel()


def collect_points(runs: Runs) -> Points:
    names = [*runs.instance, *([runs.seed] if runs.seed else []), runs.algorithm]
    names += [runs.budget] if runs.budget else []
    groups = runs.study.groups(names)
    size = len(groups.n)
    by_name = dict(zip(names, zip(groups.keys.codes, groups.keys.levels, strict=True), strict=True))

    def coded(column: str | None) -> tuple[np.ndarray, tuple[Any, ...]]:
        if column is None:
            return np.zeros(size, dtype=np.int64), (None,)
        codes, levels = by_name[column]
        return codes, tuple(pd.Series(levels).tolist())

    instance = combine_codes([(by_name[name][0], len(by_name[name][1])) for name in runs.instance], size)
    first = first_rows(instance, int(instance.max()) + 1)
    benchmark, benchmarks = coded(runs.benchmark)
    seed, seeds = coded(runs.seed)
    algorithm, algorithms = coded(runs.algorithm)
    budget, budgets = coded(runs.budget)
    run = (instance * len(seeds) + seed) * len(algorithms) + algorithm
    return Points(
        runs=runs,
        instance=instance,
        seed=seed,
        algorithm=algorithm,
        budget=budget,
        run=run,
        cell=benchmark * len(algorithms) + algorithm,
        benchmark_of=benchmark[first],
        benchmarks=benchmarks,
        seeds=seeds,
        algorithms=algorithms,
        budgets=budgets,
        n=groups.n,
        valid=groups.n - groups.n_bad,
        mean=groups.mean,
        ss=groups.ss,
        low=groups.low,
        high=groups.high,
        regular=_on_a_grid(instance, budget, run, len(first), len(budgets)),
    )


def _on_a_grid(instance: np.ndarray, budget: np.ndarray, run: np.ndarray, n: int, n_budgets: int) -> bool:
    """Whether some run of most instances has at least half of the budgets that occur on its instance."""
    different = count_distinct(instance, budget, n, n_budgets)
    starts = np.flatnonzero(np.diff(run, prepend=-1))  # points are sorted by run, then by budget
    longest = np.zeros(n, dtype=np.int64)
    np.maximum.at(longest, instance[starts], np.diff(starts, append=len(run)))
    return bool(np.mean(different <= 2 * longest) >= 0.5)


def count_distinct(group: np.ndarray, value: np.ndarray, n_groups: int, n_values: int) -> np.ndarray:
    """The number of different values in every group."""
    pairs = occurring(group * np.int64(n_values) + value, n_groups * n_values)
    return np.bincount(pairs // n_values, minlength=n_groups)


def occurring(key: np.ndarray, size: int) -> np.ndarray:
    """The keys below `size` that occur, each once, in any order."""
    if size > 4 * len(key) + 1024:
        return pd.unique(key)
    present = np.zeros(size, dtype=bool)
    present[key] = True
    return np.flatnonzero(present)


def _pooled(group: np.ndarray, size: int, points: Points) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Count, mean and sum of squares of all finite scores of each group of points."""
    good = points.valid > 0
    group, n, mean = group[good], points.valid[good], points.mean[good]
    total = np.bincount(group, weights=n, minlength=size)
    with np.errstate(invalid="ignore"):
        centre = np.bincount(group, weights=n * mean, minlength=size) / total
    spread = points.ss[good] + n * (mean - centre[group]) ** 2
    return total, centre, np.bincount(group, weights=spread, minlength=size)


def cells_frame(points: Points) -> pd.DataFrame:
    cell, size = points.cell, points.n_cells
    total, mean, ss = _pooled(cell, size, points)
    with np.errstate(invalid="ignore", divide="ignore"):
        sd = np.sqrt(np.where(total > 1, ss / (total - 1), np.nan))
    n = np.bincount(cell, weights=points.n, minlength=size).astype(int)
    named = [points.where(i) for i in range(size)]
    missing = missing_points(points)
    return pd.DataFrame(
        {
            "benchmark": pd.Series([benchmark for benchmark, _ in named], dtype=_dtype(points.benchmarks)),
            "algorithm": [algorithm for _, algorithm in named],
            "n": n,
            "seeds": count_distinct(cell, points.seed, size, len(points.seeds)) if points.runs.seed else 0,
            "budgets": count_distinct(cell, points.budget, size, len(points.budgets)) if points.runs.budget else 0,
            "missing": points.by_instance(missing),
            "duplicates": extra_rows(points),
            "non_finite": n - total.astype(int),
            "distinct": _distinct_scores(points),
            "mean": mean,
            "sd": sd,
        }
    )


def _dtype(levels: tuple[Any, ...]) -> Any:
    return object if levels == (None,) else None


def _distinct_scores(points: Points) -> np.ndarray:
    cell, size = points.cell, points.n_cells
    if np.any(points.low < points.high):  # several scores in a point: only the rows know how many differ
        return _distinct_scores_of_rows(points.runs, points)
    good = points.valid > 0
    cell, mean = cell[good], points.mean[good]
    order = np.argsort(cell.astype(np.uint16) if size < 2**16 else cell, kind="stable")
    parts = np.split(mean[order], np.cumsum(np.bincount(cell, minlength=size))[:-1])
    return np.array([len(np.unique(part)) for part in parts])


def _distinct_scores_of_rows(runs: Runs, points: Points) -> np.ndarray:
    """One more query: (benchmark, algorithm, score) that occur; a score counts where it is finite."""
    names = {"algorithm": runs.algorithm, **({"benchmark": runs.benchmark} if runs.benchmark else {})}
    columns = [nw.col(column).alias(f"key_{name}") for name, column in names.items()]
    y = nw.col(runs.score).cast(nw.Float64)
    table = runs.frame.select(*columns, y.alias("y"))
    table = table.filter(nw.col("y").is_finite().fill_null(False))
    table = table.group_by(*(f"key_{name}" for name in names)).agg(nw.col("y").n_unique().alias("distinct"))
    frame = (table.collect() if isinstance(table, nw.LazyFrame) else table).to_pandas()
    at_algorithm = {level: i for i, level in enumerate(points.algorithms)}
    at_benchmark = {level: i for i, level in enumerate(points.benchmarks)}
    out = np.zeros((len(points.benchmarks), len(points.algorithms)), dtype=int)
    benchmarks = frame["key_benchmark"] if runs.benchmark else [None] * len(frame)
    for benchmark, algorithm, count in zip(benchmarks, frame["key_algorithm"], frame["distinct"], strict=True):
        out[at_benchmark[benchmark], at_algorithm[algorithm]] = count
    return out.ravel()


def effect_scales(points: Points) -> pd.DataFrame:
    """The spread between algorithms on the same instance and, on a grid, at the same budget, of their mean scores."""
    per_instance = len(points.budgets) if points.regular else 1
    place = points.instance * per_instance + (points.budget if points.regular else 0)
    good = points.valid > 0
    pair = place[good] * len(points.algorithms) + points.algorithm[good]
    codes, pairs = pd.factorize(pair)
    with np.errstate(invalid="ignore"):
        mean = np.bincount(codes, weights=points.mean[good]) / np.bincount(codes)
    spots, where = pd.factorize(pairs // len(points.algorithms))
    n = np.bincount(spots)
    centre = np.bincount(spots, weights=mean) / n
    ss = np.bincount(spots, weights=(mean - centre[spots]) ** 2)
    benchmark = points.benchmark_of[where // per_instance]
    return _scales(points, benchmark, n - 1, ss, "sd")


def _scales(points: Points, benchmark: np.ndarray, df: np.ndarray, ss: np.ndarray, name: str) -> pd.DataFrame:
    """Pooled SD per benchmark, from the degrees of freedom and sums of squares of groups of scores."""
    size = len(points.benchmarks)
    total = np.bincount(benchmark, weights=df, minlength=size)
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = np.bincount(benchmark, weights=ss, minlength=size) / total
    levels = pd.Series(points.benchmarks, dtype=_dtype(points.benchmarks))
    return pd.DataFrame({"benchmark": levels, name: np.sqrt(variance), "df": total.astype(int)})


def residual_scales(points: Points) -> pd.DataFrame:
    """The spread of scores that the seeds cause: within algorithm, instance and, on a grid, budget."""
    group = points.instance * len(points.algorithms) + points.algorithm
    benchmark_of_group = np.repeat(points.benchmark_of, len(points.algorithms))
    if points.regular:
        group = group * len(points.budgets) + points.budget
        benchmark_of_group = np.repeat(benchmark_of_group, len(points.budgets))
    total, _, ss = _pooled(group, len(benchmark_of_group), points)
    return _scales(points, benchmark_of_group, np.maximum(total - 1, 0), ss, "residual_sd")


def overview(points: Points) -> str:
    runs = points.runs
    counts = [(len(points.algorithms), "algorithm"), (len(points.benchmarks), "benchmark")]
    if runs.benchmark is None:
        counts.pop()
    if runs.metafeatures:
        counts.append((len(points.benchmark_of), "instance"))
    counts += [(len(points.seeds), "seed")] if runs.seed else []
    counts += [(len(points.budgets), "budget")] if runs.budget else []
    size = ", ".join(f"{count:,} {word}{'s' * (count != 1)}" for count, word in counts)
    return f"{int(points.n.sum()):,} rows: {size}; {_balance(points)}."


def _balance(points: Points) -> str:
    complete = points.n.min() == points.n.max() and not missing_points(points).any()
    if not complete or len(np.unique(seeds_run(points))) != 1:
        return "not balanced"
    bad = int((points.n - points.valid).sum())
    if bad:
        return f"balanced, but {bad:,} score{'s are' if bad > 1 else ' is'} missing or infinite"
    return "complete and balanced" if points.regular else "not balanced: runs have few budgets in common"


def grid_shape(points: Points) -> tuple[int, int]:
    return len(points.benchmark_of), len(points.algorithms)


def seeds_run(points: Points) -> np.ndarray:
    """(instances, algorithms): the number of seeds that an algorithm ran."""
    shape = grid_shape(points)
    pair = points.instance * shape[1] + points.algorithm
    return count_distinct(pair, points.seed, shape[0] * shape[1], len(points.seeds)).reshape(shape)


def seed_groups(points: Points) -> tuple[np.ndarray, np.ndarray]:
    """Algorithms that are linked by common seeds, on every instance.

    Returns
    -------
    group : ndarray
        (instances, algorithms); the first algorithm of the group that this one belongs to.
    size : ndarray
        (instances, algorithms); the number of different seeds of that group, 0 for an algorithm without runs.
    """
    n_instances, n_algorithms = shape = grid_shape(points)
    runs = occurring(points.run, n_instances * len(points.seeds) * n_algorithms)
    slot, slots = pd.factorize(runs // n_algorithms)  # instance and seed
    instance, algorithm = slots // len(points.seeds), runs % n_algorithms
    member = instance[slot] * n_algorithms + algorithm
    label = np.tile(np.arange(n_algorithms), n_instances)
    while True:  # the lowest label wanders along common seeds, at most as often as there are algorithms
        lowest = np.full(len(slots), n_algorithms)
        np.minimum.at(lowest, slot, label[member])
        spread = label.copy()
        np.minimum.at(spread, member, lowest[slot])
        if np.array_equal(spread, label):
            break
        label = spread
    seeds = np.bincount(instance * n_algorithms + lowest, minlength=label.size)
    size = seeds[np.repeat(np.arange(n_instances), n_algorithms) * n_algorithms + label]
    size[seeds_run(points).ravel() == 0] = 0
    return label.reshape(shape), size.reshape(shape)


def missing_points(points: Points) -> np.ndarray:
    """(instances, algorithms): combinations of seed and budget of the instance that are not there."""
    shape = grid_shape(points)
    pair = points.instance * shape[1] + points.algorithm
    ran = seeds_run(points)
    _, size = seed_groups(points)
    expected = np.where(ran > 0, size, size.max(axis=1, keepdims=True))
    if not points.regular:
        return expected - ran
    budgets = count_distinct(points.instance, points.budget, shape[0], len(points.budgets))
    there = np.bincount(pair, minlength=shape[0] * shape[1]).reshape(shape)
    return expected * budgets[:, None] - there


def extra_rows(points: Points) -> np.ndarray:
    """Rows beyond the first of a run at a budget; without seeds they are repetitions, not duplicates."""
    if points.runs.seed is None:
        return np.zeros(points.n_cells, dtype=int)
    return np.bincount(points.cell, weights=points.n - 1, minlength=points.n_cells).astype(int)
