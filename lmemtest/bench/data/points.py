"""A table of runs as coded points, one per instance, seed, algorithm and budget, and what can be counted on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
import pandas as pd

from lmemtest.core.codes import combine_codes, first_rows
from lmemtest.core.frames import collected
from lmemtest.core.words import counted

if TYPE_CHECKING:
    from lmemtest.bench.data.runs import Runs

__all__ = ["Points", "count_distinct", "occurring", "starts_of"]


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

    @classmethod
    def of(cls, runs: Runs) -> Points:
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
        return cls(
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

    # ------------------------------------------------------------------ what there is

    @property
    def n_cells(self) -> int:
        return len(self.benchmarks) * len(self.algorithms)

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of instances and of algorithms."""
        return len(self.benchmark_of), len(self.algorithms)

    def where(self, cell: int) -> tuple[Any, Any]:
        """The benchmark (None if there is no such column) and the algorithm of a cell."""
        benchmark, algorithm = divmod(int(cell), len(self.algorithms))
        return self.benchmarks[benchmark], self.algorithms[algorithm]

    def by_instance(self, values: np.ndarray) -> np.ndarray:
        """Sum a (instances, algorithms) array to (benchmarks, algorithms), flat."""
        out = np.zeros((len(self.benchmarks), len(self.algorithms)), dtype=values.dtype)
        np.add.at(out, self.benchmark_of, values)
        return out.ravel()

    def range_of(self, group: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
        """The lowest and the highest score of each group of points; infinite where there is none."""
        low, high, good = np.full(size, np.inf), np.full(size, -np.inf), self.valid > 0
        np.minimum.at(low, group[good], self.low[good])
        np.maximum.at(high, group[good], self.high[good])
        return low, high

    @property
    def seeds_run(self) -> np.ndarray:
        """(instances, algorithms): the number of seeds that an algorithm ran."""
        n_instances, n_algorithms = self.shape
        pair = self.instance * n_algorithms + self.algorithm
        return count_distinct(pair, self.seed, n_instances * n_algorithms, len(self.seeds)).reshape(self.shape)

    def seed_groups(self) -> tuple[np.ndarray, np.ndarray]:
        """Algorithms that are linked by common seeds, on every instance; both (instances, algorithms).

        The first algorithm of the group that each belongs to, and the number of seeds of that group, 0 without runs.
        """
        n_instances, n_algorithms = shape = self.shape
        runs = occurring(self.run, n_instances * len(self.seeds) * n_algorithms)
        slot, slots = pd.factorize(runs // n_algorithms)  # instance and seed
        instance, algorithm = slots // len(self.seeds), runs % n_algorithms
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
        size[self.seeds_run.ravel() == 0] = 0
        return label.reshape(shape), size.reshape(shape)

    @property
    def missing(self) -> np.ndarray:
        """(instances, algorithms): combinations of seed and budget of the instance that are not there."""
        ran, size = self.seeds_run, self.seed_groups()[1]
        expected = np.where(ran > 0, size, size.max(axis=1, keepdims=True))
        return self.lacking(expected) if self.regular else expected - ran

    def lacking(self, runs: np.ndarray) -> np.ndarray:
        """(instances, algorithms): points that so many runs would have more, with a score at each budget there."""
        n_instances, n_algorithms = self.shape
        budgets = count_distinct(self.instance, self.budget, n_instances, len(self.budgets))
        pair = self.instance * n_algorithms + self.algorithm
        return runs * budgets[:, None] - np.bincount(pair, minlength=runs.size).reshape(self.shape)

    @property
    def extra_rows(self) -> np.ndarray:
        """Rows beyond the first of a run at a budget; without seeds they are repetitions, not duplicates."""
        if self.runs.seed is None:
            return np.zeros(self.n_cells, dtype=int)
        return np.bincount(self.cell, weights=self.n - 1, minlength=self.n_cells).astype(int)

    # ------------------------------------------------------------------ tables

    def cells(self) -> pd.DataFrame:
        """One row per benchmark and algorithm, as `RunsCheck.cells` says."""
        cell, size = self.cell, self.n_cells
        total, mean, ss = self._pooled(cell, size)
        with np.errstate(invalid="ignore", divide="ignore"):
            sd = np.sqrt(np.where(total > 1, ss / (total - 1), np.nan))
        n = np.bincount(cell, weights=self.n, minlength=size).astype(int)
        named = [self.where(i) for i in range(size)]
        return pd.DataFrame(
            {
                "benchmark": pd.Series([benchmark for benchmark, _ in named], dtype=_dtype(self.benchmarks)),
                "algorithm": [algorithm for _, algorithm in named],
                "n": n,
                "seeds": count_distinct(cell, self.seed, size, len(self.seeds)) if self.runs.seed else 0,
                "budgets": count_distinct(cell, self.budget, size, len(self.budgets)) if self.runs.budget else 0,
                "missing": self.by_instance(self.missing),
                "duplicates": self.extra_rows,
                "non_finite": n - total.astype(int),
                "distinct": self._distinct_scores(),
                "mean": mean,
                "sd": sd,
            }
        )

    def _distinct_scores(self) -> np.ndarray:
        cell, size = self.cell, self.n_cells
        if np.any(self.low < self.high):  # several scores in a point: only the rows know how many differ
            return self._distinct_scores_of_rows()
        good = self.valid > 0
        cell, mean = cell[good], self.mean[good]
        order = np.argsort(cell.astype(np.uint16) if size < 2**16 else cell, kind="stable")
        parts = np.split(mean[order], np.cumsum(np.bincount(cell, minlength=size))[:-1])
        return np.array([len(np.unique(part)) for part in parts])

    def _distinct_scores_of_rows(self) -> np.ndarray:
        """One more query: (benchmark, algorithm, score) that occur; a score counts where it is finite."""
        runs = self.runs
        names = {"algorithm": runs.algorithm, **({"benchmark": runs.benchmark} if runs.benchmark else {})}
        columns = [nw.col(column).alias(f"key_{name}") for name, column in names.items()]
        y = nw.col(runs.score).cast(nw.Float64)
        table = runs.frame.select(*columns, y.alias("y"))
        table = table.filter(nw.col("y").is_finite().fill_null(False))
        table = table.group_by(*(f"key_{name}" for name in names)).agg(nw.col("y").n_unique().alias("distinct"))
        frame = collected(table).to_pandas()
        at_algorithm = {level: i for i, level in enumerate(self.algorithms)}
        at_benchmark = {level: i for i, level in enumerate(self.benchmarks)}
        out = np.zeros((len(self.benchmarks), len(self.algorithms)), dtype=int)
        benchmarks = frame["key_benchmark"] if runs.benchmark else [None] * len(frame)
        for benchmark, algorithm, count in zip(benchmarks, frame["key_algorithm"], frame["distinct"], strict=True):
            out[at_benchmark[benchmark], at_algorithm[algorithm]] = count
        return out.ravel()

    def effect_scales(self) -> pd.DataFrame:
        """The spread between algorithms, by their means, on the same instance and, on a grid, at the same budget."""
        per_instance = len(self.budgets) if self.regular else 1
        place = self.instance * per_instance + (self.budget if self.regular else 0)
        good = self.valid > 0
        pair = place[good] * len(self.algorithms) + self.algorithm[good]
        codes, pairs = pd.factorize(pair)
        with np.errstate(invalid="ignore"):
            mean = np.bincount(codes, weights=self.mean[good]) / np.bincount(codes)
        spots, where = pd.factorize(pairs // len(self.algorithms))
        n = np.bincount(spots)
        centre = np.bincount(spots, weights=mean) / n
        ss = np.bincount(spots, weights=(mean - centre[spots]) ** 2)
        benchmark = self.benchmark_of[where // per_instance]
        return self._scales(benchmark, n - 1, ss, "sd")

    def residual_scales(self) -> pd.DataFrame:
        """The spread of scores that the seeds cause: within algorithm, instance and, on a grid, budget."""
        group = self.instance * len(self.algorithms) + self.algorithm
        benchmark_of_group = np.repeat(self.benchmark_of, len(self.algorithms))
        if self.regular:
            group = group * len(self.budgets) + self.budget
            benchmark_of_group = np.repeat(benchmark_of_group, len(self.budgets))
        total, _, ss = self._pooled(group, len(benchmark_of_group))
        return self._scales(benchmark_of_group, np.maximum(total - 1, 0), ss, "residual_sd")

    def _scales(self, benchmark: np.ndarray, df: np.ndarray, ss: np.ndarray, name: str) -> pd.DataFrame:
        """Pooled SD per benchmark, from the degrees of freedom and sums of squares of groups of scores."""
        size = len(self.benchmarks)
        total = np.bincount(benchmark, weights=df, minlength=size)
        with np.errstate(invalid="ignore", divide="ignore"):
            variance = np.bincount(benchmark, weights=ss, minlength=size) / total
        levels = pd.Series(self.benchmarks, dtype=_dtype(self.benchmarks))
        return pd.DataFrame({"benchmark": levels, name: np.sqrt(variance), "df": total.astype(int)})

    def _pooled(self, group: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Count, mean and sum of squares of all finite scores of each group of points."""
        good = self.valid > 0
        group, n, mean = group[good], self.valid[good], self.mean[good]
        total = np.bincount(group, weights=n, minlength=size)
        with np.errstate(invalid="ignore"):
            centre = np.bincount(group, weights=n * mean, minlength=size) / total
        spread = self.ss[good] + n * (mean - centre[group]) ** 2
        return total, centre, np.bincount(group, weights=spread, minlength=size)

    def overview(self) -> str:
        """The size of the table in a sentence."""
        runs = self.runs
        counts = [(len(self.algorithms), "algorithm"), (len(self.benchmarks), "benchmark")]
        if runs.benchmark is None:
            counts.pop()
        families = runs.study.sampled.column if runs.study.sampled.noun == "family" else None
        if families is None and runs.study.families:
            families = runs.study.families[-1][-1]
        if families is not None:
            counts.append((runs.study.count(families), "family"))
        if len(runs.instance) > 1:
            counts.append((len(self.benchmark_of), "instance"))
        counts += [(len(self.seeds), "seed")] if runs.seed else []
        counts += [(len(self.budgets), "budget")] if runs.budget else []
        size = ", ".join(counted(count, word) for count, word in counts)
        return f"{int(self.n.sum()):,} rows: {size}; {self._balance()}. {runs.study.note}".rstrip()

    def _balance(self) -> str:
        complete = self.n.min() == self.n.max() and not self.missing.any()
        if not complete or len(np.unique(self.seeds_run)) != 1:
            return "not balanced"
        bad = int((self.n - self.valid).sum())
        if bad:
            return f"balanced, but {bad:,} score{'s are' if bad > 1 else ' is'} missing or infinite"
        return "complete and balanced" if self.regular else "not balanced: runs have few budgets in common"


def _on_a_grid(instance: np.ndarray, budget: np.ndarray, run: np.ndarray, n: int, n_budgets: int) -> bool:
    """Whether some run of most instances has at least half of the budgets that occur on its instance."""
    different = count_distinct(instance, budget, n, n_budgets)
    starts, length = starts_of(run)
    longest = np.zeros(n, dtype=np.int64)
    np.maximum.at(longest, instance[starts], length)
    return bool(np.mean(different <= 2 * longest) >= 0.5)


def starts_of(run: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where each run begins among points, which are sorted by run, then by budget; and how many it has."""
    starts = np.flatnonzero(np.diff(run, prepend=-1))
    return starts, np.diff(starts, append=len(run))


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


def _dtype(levels: tuple[Any, ...]) -> Any:
    return object if levels == (None,) else None
