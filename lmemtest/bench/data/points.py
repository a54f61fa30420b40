"""What can be counted on the points of a study: its scores by instance, seed, algorithm and budget."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
import pandas as pd

from lmemtest.core.frames import collected
from lmemtest.core.words import counted

if TYPE_CHECKING:
    from lmemtest.bench.data.study import Study


def n_cells(study: Study) -> int:
    """How many pairs of a benchmark and an algorithm there are."""
    return len(study.names("benchmark")) * len(study.names("algorithm"))


def shape_of(study: Study) -> tuple[int, int]:
    """Numbers of instances and of algorithms."""
    return len(study.benchmark_of), len(study.names("algorithm"))


def place_of(study: Study, cell: int) -> tuple[Any, Any]:
    """The benchmark (None if there is no such column) and the algorithm of a cell."""
    benchmark, algorithm = divmod(int(cell), len(study.names("algorithm")))
    return study.names("benchmark")[benchmark], study.names("algorithm")[algorithm]


def by_cell(study: Study, values: np.ndarray) -> np.ndarray:
    """Sum a (instances, algorithms) array to (benchmarks, algorithms), flat."""
    out = np.zeros((len(study.names("benchmark")), len(study.names("algorithm"))), dtype=values.dtype)
    np.add.at(out, study.benchmark_of, values)
    return out.ravel()


def range_of(study: Study, role: str) -> tuple[np.ndarray, np.ndarray]:
    """The lowest and the highest score by the codes of a role or of "cell"; infinite where there is none."""
    points, group, size = study.points, study.code(role), n_cells(study) if role == "cell" else len(study.names(role))
    low, high, good = np.full(size, np.inf), np.full(size, -np.inf), points.valid > 0
    np.minimum.at(low, group[good], points.low[good])
    np.maximum.at(high, group[good], points.high[good])
    return low, high


def seeds_run(study: Study) -> np.ndarray:
    """(instances, algorithms): the number of seeds that an algorithm ran."""
    n_instances, n_algorithms = shape = shape_of(study)
    pair = study.code("instance") * n_algorithms + study.code("algorithm")
    return count_distinct(study, pair, "seed", n_instances * n_algorithms).reshape(shape)


def seed_groups(study: Study) -> tuple[np.ndarray, np.ndarray]:
    """Algorithms that are linked by common seeds, on every instance; both (instances, algorithms).

    The first algorithm of the group that each belongs to, and the number of seeds of that group, 0 without runs.
    """
    n_instances, n_algorithms = shape = shape_of(study)
    n_seeds = len(study.names("seed"))
    runs = occurring(study.code("run"), n_instances * n_seeds * n_algorithms)
    slot, slots = pd.factorize(runs // n_algorithms)  # instance and seed
    instance, algorithm = slots // n_seeds, runs % n_algorithms
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
    size[seeds_run(study).ravel() == 0] = 0
    return label.reshape(shape), size.reshape(shape)


def missing(study: Study) -> np.ndarray:
    """(instances, algorithms): combinations of seed and budget of the instance that are not there."""
    ran, size = seeds_run(study), seed_groups(study)[1]
    expected = np.where(ran > 0, size, size.max(axis=1, keepdims=True))
    return lacking(study, expected) if study.regular else expected - ran


def lacking(study: Study, runs: np.ndarray) -> np.ndarray:
    """(instances, algorithms): points that so many runs would have more, with a score at each budget there."""
    n_instances, n_algorithms = shape = shape_of(study)
    budgets = count_distinct(study, study.code("instance"), "budget", n_instances)
    pair = study.code("instance") * n_algorithms + study.code("algorithm")
    return runs * budgets[:, None] - np.bincount(pair, minlength=runs.size).reshape(shape)


def extra_rows(study: Study) -> np.ndarray:
    """By cell the rows beyond the first of a run at a budget; without seeds they are repetitions, not duplicates."""
    if study.runs.seed is None:
        return np.zeros(n_cells(study), dtype=int)
    return np.bincount(study.code("cell"), weights=study.points.n - 1, minlength=n_cells(study)).astype(int)


# ---------------------------------------------------------------------- tables


def cell_table(study: Study) -> pd.DataFrame:
    """One row per benchmark and algorithm, as `RunsCheck.cells` says."""
    cell, size = study.code("cell"), n_cells(study)
    total, mean, ss = pooled(study, cell, size)
    with np.errstate(invalid="ignore", divide="ignore"):
        sd = np.sqrt(np.where(total > 1, ss / (total - 1), np.nan))
    n = np.bincount(cell, weights=study.points.n, minlength=size).astype(int)
    places = [place_of(study, i) for i in range(size)]
    return pd.DataFrame(
        {
            "benchmark": pd.Series([benchmark for benchmark, _ in places], dtype=dtype_of(study.names("benchmark"))),
            "algorithm": [algorithm for _, algorithm in places],
            "n": n,
            "seeds": count_distinct(study, cell, "seed", size) if study.runs.seed else 0,
            "budgets": count_distinct(study, cell, "budget", size) if study.runs.budget else 0,
            "missing": by_cell(study, missing(study)),
            "duplicates": extra_rows(study),
            "non_finite": n - total.astype(int),
            "distinct": _distinct_scores(study),
            "mean": mean,
            "sd": sd,
        }
    )


def _distinct_scores(study: Study) -> np.ndarray:
    points, cell, size = study.points, study.code("cell"), n_cells(study)
    if np.any(points.low < points.high):  # several scores in a point: only the rows know how many differ
        return _distinct_scores_of_rows(study)
    good = points.valid > 0
    cell, mean = cell[good], points.mean[good]
    order = np.lexsort((mean, cell))
    cell, mean = cell[order], mean[order]
    first = np.ones(len(cell), dtype=bool)
    first[1:] = (cell[1:] != cell[:-1]) | (mean[1:] != mean[:-1])
    return np.bincount(cell[first], minlength=size)


def _distinct_scores_of_rows(study: Study) -> np.ndarray:
    """One more query: (benchmark, algorithm, score) that occur; a score counts where it is finite."""
    runs = study.runs
    roles = ("benchmark", "algorithm") if runs.benchmark else ("algorithm",)
    columns = [nw.col(getattr(runs, role)).alias(f"key_{role}") for role in roles]
    y = nw.col(runs.score).cast(nw.Float64)
    table = runs.frame.select(*columns, y.alias("y"))
    table = table.filter(nw.col("y").is_finite().fill_null(False))
    table = table.group_by(*(f"key_{role}" for role in roles)).agg(nw.col("y").n_unique().alias("distinct"))
    frame = collected(table).to_pandas()
    cell = np.zeros(len(frame))
    for role in roles:
        place = {level: i for i, level in enumerate(study.names(role))}
        cell = cell * len(place) + [place[level] for level in frame[f"key_{role}"]]
    out = np.zeros(n_cells(study), dtype=int)
    out[cell.astype(np.intp)] = frame["distinct"]
    return out


def pooled(study: Study, group: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Count, mean and sum of squares of all finite scores of each group of points."""
    points = study.points
    good = points.valid > 0
    group, n, mean = group[good], points.valid[good], points.mean[good]
    total = np.bincount(group, weights=n, minlength=size)
    with np.errstate(invalid="ignore"):
        centre = np.bincount(group, weights=n * mean, minlength=size) / total
    spread = points.ss[good] + n * (mean - centre[group]) ** 2
    return total, centre, np.bincount(group, weights=spread, minlength=size)


def overview(study: Study) -> str:
    """The size of the table in a sentence."""
    runs, sampled = study.runs, study.runs.study.sampled
    counts = [(len(study.names("algorithm")), "algorithm")]
    if runs.benchmark is not None:
        counts.append((len(study.names("benchmark")), "benchmark"))
    family = sampled.column if sampled.noun == "family" else None
    if family is None and runs.study.families:
        family = runs.study.families[-1][-1]
    if family is not None:
        counts.append((runs.study.count(family), "family"))
    if len(runs.instance) > 1:
        counts.append((len(study.benchmark_of), "instance"))
    counts += [(len(study.names(role)), role) for role in ("seed", "budget") if getattr(runs, role) is not None]
    size = ", ".join(counted(count, word) for count, word in counts)
    return f"{int(study.points.n.sum()):,} rows: {size}; {_balance(study)}. {study.note}".rstrip()


def _balance(study: Study) -> str:
    points = study.points
    complete = points.n.min() == points.n.max() and not missing(study).any()
    if not complete or len(np.unique(seeds_run(study))) != 1:
        return "not balanced"
    bad = int(points.n_bad.sum())
    if bad:
        return f"balanced, but {bad:,} score{'s are' if bad > 1 else ' is'} missing or infinite"
    return "complete and balanced" if study.regular else "not balanced: runs have few budgets in common"


def on_a_grid(study: Study) -> bool:
    """Whether some run of most instances has at least half of the budgets that occur on its instance."""
    instance, n = study.code("instance"), len(study.benchmark_of)
    different = count_distinct(study, instance, "budget", n)
    starts, length = starts_of(study.code("run"))
    longest = np.zeros(n, dtype=np.int64)
    np.maximum.at(longest, instance[starts], length)
    return bool(np.mean(different <= 2 * longest) >= 0.5)


def starts_of(run: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where each run begins among points, which are sorted by run, then by budget; and how many it has."""
    starts = np.flatnonzero(np.diff(run, prepend=-1))
    return starts, np.diff(starts, append=len(run))


def count_distinct(
    study: Study, group: np.ndarray, role: str, n_groups: int, rows: np.ndarray | slice = slice(None)
) -> np.ndarray:
    """The number of different levels of a role in every group of points, or of some of them."""
    n_levels = len(study.names(role))
    pairs = occurring((group * np.int64(n_levels) + study.code(role))[rows], n_groups * n_levels)
    return np.bincount(pairs // n_levels, minlength=n_groups)


def occurring(key: np.ndarray, size: int) -> np.ndarray:
    """The keys below `size` that occur, each once, in any order."""
    if size > 4 * len(key) + 1024:
        return pd.unique(key)
    present = np.zeros(size, dtype=bool)
    present[key] = True
    return np.flatnonzero(present)


def dtype_of(levels: tuple[Any, ...]) -> Any:
    """That of a column of these levels; object where there is no such column."""
    return object if levels == (None,) else None
