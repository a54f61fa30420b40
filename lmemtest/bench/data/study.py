"""A table of runs seen once: what every question asks of it is answered from one group-by of the source.

The finest table that roles can tell apart has one entry per instance, seed, algorithm and budget, with count, mean and
sum of squares of its scores. Every coarser table follows from it exactly, so a lazy table is queried once and a table
in memory is coded once, however many questions are asked. Where that table would be too large to hold, each table that
is asked for is a query of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import product
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
import pandas as pd

from lmemtest.bench.data.failures import failure_indicator, refuse_failures
from lmemtest.core.caller import advice
from lmemtest.core.codes import column_codes, combine_codes, first_rows, group_codes, group_means, occurring, starts_of
from lmemtest.core.frames import MOST_CELLS, NoRows, TooManyCells, collected, distinct_values
from lmemtest.core.options import CURVES
from lmemtest.core.words import format_level, listed
from lmemtest.errors import ArgumentError, DataError, DesignError, UnknownColumnError
from lmemtest.lmm.cells import Cells, Groups, aggregate, cells_of, compress, refuse_scores, transformed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.bench.data.requirements import Crossing, Sampled
    from lmemtest.bench.data.runs import Runs
    from lmemtest.core.arrays import Array, Index, Mask
    from lmemtest.lmm.cells import Transform
    from lmemtest.lmm.scope import ScoreKind

BETWEEN = " / "  # in the label of an instance
MOST_POINTS = 1_000_000  # scores of runs at budgets that are looked at where all are more than MOST_CELLS
ONLY_INSTANCE = "all runs"  # its label where no column tells instances apart


class Study:
    """What a table of runs holds, by its roles: ``runs.study``. It is not read before something is asked.

    Columns without a role are queried when they are asked for.
    """

    def __init__(self, runs: Runs, seen: Iterable[Groups] = ()) -> None:
        self.runs = runs
        self.note = ""  # what it does not hold
        self._codes: dict[str, NDArray[np.int64]] = {}
        self._names: dict[str, tuple[Any, ...]] = {}
        self._of_rows: dict[str, tuple[NDArray[np.int64], tuple[Any, ...]]] = {}
        self._counts: dict[frozenset[str], int] = {}
        self._seen: dict[frozenset[str], Groups] = {frozenset(groups.keys.names): groups for groups in seen}

    # ------------------------------------------------------------------ cells

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns with a role, from coarse to fine; not the score."""
        runs = self.runs
        named = (runs.benchmark, *runs.family, *runs.metafeatures, runs.seed, runs.algorithm, runs.budget)
        return tuple(name for name in named if name is not None)

    def groups(self, by: Iterable[str]) -> Groups:
        """Scores by the combinations of some columns that occur, in the order of their levels; bad scores counted."""
        by = tuple(dict.fromkeys(by))
        wanted = frozenset(by)
        source = self._holding(wanted)
        if source is None:
            source = self._asked(self._to_ask(by))
        if source.keys.names == by:
            return source
        groups = source.over(by)
        self._seen.setdefault(wanted, groups)
        return groups

    def by_run(self) -> Groups | None:
        """The scores by run, over its budgets; None where there are none or too many to hold."""
        try:
            return self._asked(self._of_runs)
        except (NoRows, TooManyCells):
            return None

    def seen(self, columns: Iterable[str] = ()) -> list[Groups]:
        """The tables that were seen and tell all runs and these columns apart."""
        wanted = frozenset((*self._of_runs, *columns))
        return [groups for names, groups in self._seen.items() if wanted <= names]

    @property
    def _of_runs(self) -> tuple[str, ...]:
        return tuple(name for name in self.columns if name != self.runs.budget)

    def _asked(self, by: tuple[str, ...]) -> Groups:
        """The answer of the table itself."""
        groups = aggregate(self.runs.frame, by, self.runs.score)
        self.require_unchanged(groups)
        self._seen[frozenset(by)] = groups
        return groups

    def require_unchanged(self, groups: Groups) -> None:
        """Refuse an answer of a lazy table with other rows or levels than the answers before it had."""
        if not self.runs.is_lazy or not self._seen:
            return
        self._require(int(groups.n.sum()), {name: _occurring(groups, name) for name in groups.keys.names})

    def require_table(self, table: pd.DataFrame) -> None:
        """The same of all rows of a lazy table, with some of its columns."""
        if self.runs.is_lazy and self._seen:
            seen = set().union(*self._seen)
            self._require(len(table), {name: set(table[name].unique().tolist()) for name in table if name in seen})

    def _require(self, n_rows: int, levels: Mapping[str, set[Any]]) -> None:
        before = int(next(iter(self._seen.values())).n.sum())
        if n_rows != before:
            raise self._changed(f"it had {before:,} rows and has {n_rows:,} now")
        for column, new in levels.items():
            seen = next((groups for names, groups in self._seen.items() if column in names), None)
            old = new if seen is None else _occurring(seen, column)
            for had, which in ((f"{column!r} had no", new - old), (f"{column!r} had", old - new)):
                if which:
                    raise self._changed(f"{had} {listed(map(format_level, sorted(which, key=str)), most=3)}")

    def _changed(self, how: str) -> DataError:
        backend = self.runs.frame.implementation.name.lower()
        return DataError(
            f"The {backend} table has changed since these runs were made: {how}. Answers from before and after would "
            "mix two tables. Make new runs of it, or of a copy in memory."
        )

    def _holding(self, wanted: frozenset[str]) -> Groups | None:
        """The smallest table that was seen and tells all of these columns apart."""
        able = [groups for names, groups in self._seen.items() if wanted <= names]
        return min(able, key=lambda groups: len(groups.n), default=None)

    def _to_ask(self, by: tuple[str, ...]) -> tuple[str, ...]:
        """By which columns to group, where nothing that was seen tells these apart: as many as can be held."""
        wanted, of_runs = set(by), set(self._of_runs)
        if not wanted <= set(self.columns):
            return by
        if self.runs.n_rows > MOST_CELLS and wanted <= of_runs and not self.runs.is_lazy:
            return self._of_runs  # a lazy table was asked for them first
        return self.columns if self._holds_the_finest else by

    @cached_property
    def _holds_the_finest(self) -> bool:
        runs = self.runs
        if runs.n_rows <= MOST_CELLS:
            return True
        by_run = self._holding(frozenset(self._of_runs))
        if by_run is None and not runs.is_lazy:
            by_run = self._asked(self._of_runs)
        if by_run is None or runs.budget is None:
            return by_run is not None
        budgets = self._holding(frozenset({runs.budget})) or self._asked((runs.budget,))
        return bool(by_run.keys.size * budgets.keys.size <= MOST_CELLS)

    @cached_property
    def detailed(self) -> Study:
        """The study that can tell runs and budgets apart: this one, or that of the runs at a few budgets.

        Where the finest table is too large to hold, what needs single scores of the runs looks at budgets at equal
        steps from the first to the last, as many as make a million scores; its `note` says so.
        """
        runs, budget = self.runs, self.runs.budget
        if budget is None or self._holds_the_finest:
            return self
        by_run, levels = self._holding(frozenset(self._of_runs)), pd.Series(self.levels(budget))
        n_kept = MOST_POINTS // by_run.keys.size if by_run is not None else 0
        if n_kept < 2:
            return self
        kept = levels[np.unique(np.linspace(0, len(levels) - 1, n_kept).round().astype(int))].tolist()
        frame = runs.frame.filter(nw.col(budget).is_in(kept))
        few = runs.restricted(frame, [aggregate(frame, self.columns, runs.score)]).study
        few.note = (
            f"All scores of these {runs.n_rows:,} rows are too many to hold, so what looks at single scores saw those "
            f"at {len(kept):,} of {len(levels):,} values of {budget!r}: {listed(map(format_level, kept), most=3)}."
        )
        return few

    # ------------------------------------------------------------------ points

    @cached_property
    def points(self) -> Groups:
        """The scores by instance, seed, algorithm and budget, sorted in this order; ask `detailed` for them."""
        runs = self.runs
        names = (*runs.instance, runs.seed, runs.algorithm, runs.budget)
        return self.groups(name for name in names if name is not None)

    def code(self, role: str) -> NDArray[np.int64]:
        """Of each point the code of its "benchmark", "seed", "algorithm" or "budget", 0 where the role is not given; of
        its "instance", its "run" (of instance, seed and algorithm) or its "cell" (of benchmark and algorithm)."""
        if role not in self._codes:
            self._codes[role] = self._coded(role)
        return self._codes[role]

    def _coded(self, role: str) -> NDArray[np.int64]:
        keys, n_algorithms = self.points.keys, len(self.names("algorithm"))
        if role == "instance":
            coded = [(keys.codes[i], len(keys.levels[i])) for i in map(keys.names.index, self.runs.instance)]
            return combine_codes(coded, keys.size)
        if role == "run":
            slot = self.code("instance") * len(self.names("seed")) + self.code("seed")
            return slot * n_algorithms + self.code("algorithm")
        if role == "cell":
            return self.code("benchmark") * n_algorithms + self.code("algorithm")
        column = getattr(self.runs, role)
        return np.zeros(keys.size, dtype=np.int64) if column is None else keys.codes[keys.names.index(column)]

    def names(self, role: str) -> tuple[Any, ...]:
        """What the codes of a role stand for; (None,) where it is not given."""
        if role not in self._names:
            keys, column = self.points.keys, getattr(self.runs, role)
            levels = (None,) if column is None else pd.Series(keys.levels[keys.names.index(column)]).tolist()
            self._names[role] = tuple(levels)
        return self._names[role]

    def of_rows(self, column: str) -> tuple[NDArray[np.int64], tuple[Any, ...]]:
        """Of each row of a table of pandas the code of its value, and what the codes stand for; none is missing."""
        if column not in self._of_rows:
            codes, levels = column_codes(self.runs.frame.to_native()[column])
            self._of_rows[column] = codes, tuple(pd.Series(levels).tolist())
        return self._of_rows[column]

    @cached_property
    def benchmark_of(self) -> NDArray[np.int64]:
        """The code of the benchmark of every instance."""
        instance = self.code("instance")
        return self.code("benchmark")[first_rows(instance, int(instance.max()) + 1)]

    @cached_property
    def common(self) -> Mask:
        """Which points are at budgets that all runs of their instance have."""
        run, instance = self.code("run"), self.code("instance")
        n_runs = np.bincount(instance[np.flatnonzero(np.diff(run, prepend=-1))])
        place = combine_codes([(instance, len(n_runs)), (self.code("budget"), len(self.names("budget")))], len(run))
        return np.asarray(np.bincount(place)[place] == n_runs[instance])

    def with_scores(self, scores: Array) -> Study:
        """The same points with one other score each; those that are not finite are as if missing."""
        points, finite = self.points, np.isfinite(scores)
        scores = np.where(finite, scores, np.nan)
        n_bad = np.where(finite, points.n_bad, points.n)
        return Study(
            self.runs, [replace(points, n_bad=n_bad, mean=scores, above=np.zeros(len(scores)), low=scores, high=scores)]
        )

    def with_values(self, function: Callable[[Any], Any]) -> Study:
        """The study of a function of the score; scores without a value, such as log(0), are as if missing."""
        with np.errstate(all="ignore"):
            if (self.points.n > 1).any():  # rows within a point are not known
                frame = self.runs.to_frame()
                frame[self.runs.score] = function(frame[self.runs.score].to_numpy(dtype=float))
                return type(self.runs)(frame, **self.runs.roles()).study
            return self.with_scores(function(self.points.mean))

    # ------------------------------------------------------------------ what can be counted on the points

    @property
    def n_cells(self) -> int:
        """How many pairs of a benchmark and an algorithm there are."""
        return len(self.names("benchmark")) * len(self.names("algorithm"))

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of instances and of algorithms."""
        return len(self.benchmark_of), len(self.names("algorithm"))

    @cached_property
    def places(self) -> tuple[tuple[Any, Any], ...]:
        """The benchmark (None if there is no such column) and the algorithm of each cell."""
        return tuple(product(self.names("benchmark"), self.names("algorithm")))

    def by_cell(self, values: NDArray[Any]) -> NDArray[Any]:
        """Sum a (instances, algorithms) array to (benchmarks, algorithms), flat."""
        out = np.zeros((len(self.names("benchmark")), len(self.names("algorithm"))), dtype=values.dtype)
        np.add.at(out, self.benchmark_of, values)
        return out.ravel()

    def score_range(self, role: str) -> tuple[NDArray[Any], NDArray[Any]]:
        """The lowest and the highest score by the codes of a role or of "cell"; infinite where there is none."""
        points, group, size = self.points, self.code(role), self.n_cells if role == "cell" else len(self.names(role))
        low, high, good = np.full(size, np.inf), np.full(size, -np.inf), points.valid > 0
        np.minimum.at(low, group[good], points.low[good])
        np.maximum.at(high, group[good], points.high[good])
        return low, high

    @cached_property
    def run_starts(self) -> tuple[Index, Index]:
        """Where each run begins among the points, which are sorted by run, then by budget; and how many it has."""
        return starts_of(self.code("run"))

    def count_distinct(
        self, group: NDArray[Any], role: str, n_groups: int, rows: NDArray[Any] | slice = slice(None)
    ) -> NDArray[Any]:
        """The number of different levels of a role in every group of points, or of some of them."""
        n_levels = len(self.names(role))
        pairs = occurring((group * np.int64(n_levels) + self.code(role))[rows], n_groups * n_levels)
        return np.bincount(pairs // n_levels, minlength=n_groups)

    def pooled(self, group: NDArray[Any], size: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any]]:
        """Count, mean and sum of squares of all finite scores of each group of points."""
        points = self.points
        good = points.valid > 0
        group, n, mean = group[good], points.valid[good], points.mean[good]
        total = np.bincount(group, weights=n, minlength=size)
        with np.errstate(invalid="ignore"):
            centre = np.bincount(group, weights=n * mean, minlength=size) / total
        spread = points.ss[good] + n * (mean - centre[group]) ** 2
        return total, centre, np.bincount(group, weights=spread, minlength=size)

    @cached_property
    def regular(self) -> bool:
        """Whether some run of most instances has at least half of the budgets that occur on its instance."""
        instance, n = self.code("instance"), len(self.benchmark_of)
        different = self.count_distinct(instance, "budget", n)
        starts, length = self.run_starts
        longest = np.zeros(n, dtype=np.int64)
        np.maximum.at(longest, instance[starts], length)
        return bool(np.mean(different <= 2 * longest) >= 0.5)

    # ------------------------------------------------------------------ tables

    def cells(self, by: Iterable[str], transform: Transform | None = None) -> Cells:
        """Scores by the combinations of some columns, of single rows if they are transformed; failed runs, missing and
        infinite scores are refused."""
        if transform is not None:
            return compress(self.runs, tuple(by), score=self.runs.score, transform=transform)
        groups = self.groups(by)
        self.refuse(groups)
        return cells_of(groups, self.runs.frame, self.runs.score)

    def require_scores(self) -> None:
        """Refuse failed runs, missing and infinite scores, as `cells` does."""
        self.refuse(self.groups(()))

    def refuse(self, groups: Groups) -> None:
        """Refuse groups of the scores with failed runs, missing and infinite scores."""
        if groups.n_bad.any():
            refuse_failures(self.runs)
            refuse_scores(groups, self.runs.frame, self.runs.score)

    @cached_property
    def failures(self) -> Runs:
        """The runs with 1 as the score of those that failed, and 0 as that of the others."""
        return failure_indicator(self.runs)

    def rows(self, columns: Sequence[str]) -> pd.DataFrame:
        """The single scores with some columns with roles, in the order of their levels, then of the score."""
        names = tuple(dict.fromkeys(columns))
        finest = self.groups(self.columns)
        self.refuse(finest)
        if (finest.ss == 0).all():  # equal scores in each cell: the table is known
            keys = finest.keys.only(names)
            coded = [(codes, len(levels)) for codes, levels in zip(keys.codes, keys.levels, strict=True)]
            if len(names) < len(finest.keys.names):  # some cells differ in their scores alone
                coded.append(_codes(pd.Series(finest.mean)))
            order = np.argsort(combine_codes(coded, keys.size), kind="stable")
            cell = np.repeat(order, finest.n[order].astype(np.intp))
            keys = replace(keys, codes=tuple(codes[cell] for codes in keys.codes), size=len(cell))
            return keys.frame().assign(**{self.runs.score: finest.mean[cell]})
        table = collected(self.runs.frame.select(*names, self.runs.score)).to_pandas()
        self.require_table(table)
        table = table.assign(**{self.runs.score: table[self.runs.score].astype(float)})
        order = combine_codes([_codes(table[name]) for name in (*names, self.runs.score)], len(table))
        return table.iloc[np.argsort(order, kind="stable")].reset_index(drop=True)

    def average(self, role: str) -> Runs:
        """The runs with the mean over a role: each of its levels counts once, however many rows it has.

        `role` is "seed", "budget", "benchmark" or a metafeature. The result has one row per combination of the other
        columns with a role, in the order of their levels, and not that role.
        """
        (column,) = self._axis(role) or (None,)
        cells = self.cells(self.columns)
        kept = [name for name in self.columns if name != column]
        means = group_means(cells.frame.assign(**{self.runs.score: cells.mean}), kept, self.runs.score)[0]
        roles: dict[str, Any] = {name: None if named == column else named for name, named in self.runs.roles().items()}
        roles |= {"metafeatures": tuple(name for name in self.runs.metafeatures if name != column), "ignore": ()}
        roles["failed"] = None
        roles["family"] = () if roles["benchmark"] is None else self.runs.family
        return type(self.runs)(means, **roles).remembering(roster=self.runs.roster)

    def array(self, *axes: str) -> tuple[Array, dict[str, tuple[Any, ...]]]:
        """Mean scores as a dense array, one axis for each name, and what stands along each axis; NaN where nothing ran.

        An axis is a role ("family": all of its columns), a column with a role, "instance", or "run" (instance,
        algorithm and seed); of length 1 for a role that no column has. The mean is over all rows of what has no axis;
        `average` gives levels equal weight.
        """
        columns = {axis: self._axis(axis) for axis in axes}
        cells = self.cells([name for names in columns.values() for name in names])
        codes, levels = [], {}
        for axis, names in columns.items():
            code, keys = group_codes([cells.frame[name] for name in names], len(cells.n))
            codes.append(code)
            of_axis = (None,) if not names else keys.levels[0] if len(names) == 1 else labels(keys.frame(), names)
            levels[axis] = tuple(pd.Series(of_axis).tolist())
        scores = np.full([len(of_axis) for of_axis in levels.values()], np.nan)
        scores[tuple(codes)] = cells.mean
        return scores, levels

    def curves(self, by: Sequence[str]) -> tuple[pd.DataFrame, pd.DataFrame]:
        """The runs over the budget: one row for each combination of some columns, and the points of their curves.

        A point has ``run`` (its row in the first table), ``budget`` (0 where the runs have none) and ``score``, the
        mean of its rows; points are in the order of runs, then of budgets.
        """
        names, budget = list(dict.fromkeys(by)), self.runs.budget
        cells = self.cells([*names, *([] if budget is None else [budget])])
        run = cells.groups(names)
        points = {"run": run, "budget": 0 if budget is None else cells.frame[budget], "score": cells.mean}
        first = first_rows(run, int(run.max(initial=-1)) + 1)
        return cells.frame[names].iloc[first].reset_index(drop=True), pd.DataFrame(points)

    def _axis(self, name: str) -> tuple[str, ...]:
        """The columns behind a role; none for a role that is not given."""
        if name in ("family", "instance", "run"):
            return tuple(getattr(self.runs if name == "family" else self, name))
        column = getattr(self.runs, name) if name in ("benchmark", "algorithm", "seed", "budget") else name
        return () if column is None else (column,)

    def one_score_per_run(self) -> tuple[pd.DataFrame, tuple[str, ...]]:
        """The observations that may count as independent: each run with its mean over budgets; and what was averaged.

        The scores of one run at several budgets are one curve, and counted one by one they would make every seed and
        every benchmark look important. The mean is over the budgets that all runs of an instance have; without any, the
        runs are refused. Without a budget column repeated rows of a run are kept apart. One row per run: ``instance``
        (its label), ``benchmark``, ``family`` (where families are the sample) and ``seed`` (None without such a
        column), ``algorithm``, ``score``.
        """
        table, notes = self._one_score_per_run
        return table.copy(), notes

    @cached_property
    def _one_score_per_run(self) -> tuple[pd.DataFrame, tuple[str, ...]]:
        from lmemtest.bench.data.per_run import observations

        return observations(self.runs)

    # ------------------------------------------------------------------ what occurs

    def levels(self, column: str) -> tuple[Any, ...]:
        """The distinct values of a column, in the order in which results show them."""
        if column not in self.columns or not (self.runs.is_lazy or self._holding(frozenset({column}))):
            return distinct_values(self.runs.frame, column)
        return tuple(self.groups([column]).keys.levels[0].tolist())

    def distinct(self, columns: Iterable[str]) -> pd.DataFrame:
        """The combinations of some columns that occur, one row each, in the order of their levels."""
        return self.groups(columns).keys.frame()

    def count(self, *columns: str | None) -> int:
        """How many combinations of some columns occur; one of none, and None stands for a role that is not given."""
        named = tuple(dict.fromkeys(name for name in columns if name is not None))
        wanted = frozenset(named)
        if named and wanted not in self._counts:
            source = self._holding(wanted) or self.groups(named)
            self._counts[wanted] = int(source.keys.only(named).numbered().max()) + 1
        return self._counts[wanted] if named else 1

    @cached_property
    def scored_alike(self) -> bool:
        """Whether every run has a score at every budget."""
        study, runs = self.detailed, self.count(*self.run)
        every = study.count(*self.run, self.runs.budget) == study.count(self.runs.budget) * runs
        return every and (study is self or self.runs.n_rows >= self.count(self.runs.budget) * runs)

    @cached_property
    def curve(self) -> str | None:
        """What a curve over the budget counts by default; None where each run has one score, or none can be made."""
        from lmemtest.bench.data.per_run import curve_of

        return curve_of(self.runs)

    @cached_property
    def crossing(self) -> Crossing | None:
        """How many benchmarks each two algorithms have in common; None without benchmarks."""
        from lmemtest.bench.data.requirements import crossing

        return crossing(self.runs)

    # ------------------------------------------------------------------ what metafeatures describe

    @cached_property
    def properties(self) -> tuple[str, ...]:
        """Metafeatures of the algorithms: one value on each, but not one on all.

        No two algorithms can be compared at one of their values and no algorithm between two, so they make no
        instances of a benchmark and no conditions of a comparison.
        """
        algorithm, metafeatures = self.runs.algorithm, self.runs.metafeatures
        return tuple(m for m in metafeatures if self.count(m) > 1 and self.count(algorithm, m) == self.count(algorithm))

    @cached_property
    def without_properties(self) -> Runs:
        """The runs without metafeatures that tell kinds of algorithms apart."""
        kept = tuple(name for name in self.runs.metafeatures if name not in self.properties)
        return self.runs if kept == self.runs.metafeatures else self.runs.with_metafeatures(*kept)

    @cached_property
    def conditions(self) -> tuple[str, ...]:
        """Metafeatures with several levels on some benchmark; without benchmarks, all that vary."""
        benchmark = self.runs.benchmark
        whole = self.count(benchmark)
        others = (m for m in self.runs.metafeatures if m not in self.properties)
        return tuple(m for m in others if self.count(benchmark, m) > whole)

    @cached_property
    def kinds(self) -> tuple[str, ...]:
        """Metafeatures of the benchmarks: they vary, but not within a benchmark."""
        varying = (*self.conditions, *self.properties)
        return tuple(m for m in self.runs.metafeatures if m not in varying and self.count(m) > 1)

    @cached_property
    def instance(self) -> tuple[str, ...]:
        """What tells the instances apart: the benchmark, and the families and metafeatures that vary within one."""
        return (*((self.runs.benchmark,) if self.runs.benchmark else ()), *self.crossed, *self.conditions)

    @cached_property
    def families(self) -> tuple[tuple[str, ...], ...]:
        """The groups of benchmarks from coarse to fine, each by its columns: those that are several, hold several
        benchmarks somewhere, and are more than the groups before them.
        """
        family, groups, last = self.runs.family, list[tuple[str, ...]](), 1
        instances = self.count(self.runs.benchmark, *self.crossed)
        for depth in range(1, len(family) + 1):
            size = self.count(*family[:depth])
            if last < size < instances:
                groups.append(family[:depth])
                last = size
        return tuple(groups)

    @cached_property
    def crossed(self) -> tuple[str, ...]:
        """Families of which some benchmark is in several."""
        benchmark = self.runs.benchmark
        return tuple(name for name in self.runs.family if self.count(benchmark, name) > self.count(benchmark))

    @cached_property
    def relative_to(self) -> tuple[str, ...]:
        """Columns of benchmarks, or of instances, whose difficulties have no variance; none where they have."""
        from lmemtest.bench.data.normalise import relative_to

        return relative_to(self.runs)

    @cached_property
    def sampled(self) -> Sampled:
        """What the runs are a sample of: families where there are enough of them, else benchmarks."""
        from lmemtest.bench.data.requirements import sampled

        return sampled(self.runs)

    @property
    def run(self) -> tuple[str, ...]:
        """What tells the runs apart: instance, algorithm and seed."""
        return (*self.instance, self.runs.algorithm, *((self.runs.seed,) if self.runs.seed else ()))

    @property
    def measured(self) -> str:
        """What the scores are in words: of curves that were reduced, "last loss" or "loss over epoch"."""
        curve = self.runs.curve
        return self.runs.score if curve is None or self.runs.scale is not None else curve.what

    @property
    def several_benchmarks(self) -> bool:
        """Whether a mean over benchmarks is one over several."""
        return self.count(self.runs.benchmark) > 1

    @property
    def seeds_cross(self) -> bool:
        """Whether some seed occurs on several benchmarks, and may be the same thing there."""
        benchmark, seed = self.runs.benchmark, self.runs.seed
        if benchmark is None or seed is None or not self.runs.seed_shared:
            return False
        return self.count(benchmark, seed) > self.count(seed)

    # ------------------------------------------------------------------ what a model asks: `lmemtest.lmm.scope.Scope`

    @property
    def response(self) -> str:
        """The column of the scores."""
        return self.runs.score

    @property
    def direction(self) -> str:
        """Which end of the score is better."""
        return self.runs.direction

    @property
    def compared(self) -> str:
        """The algorithms are compared."""
        return self.runs.algorithm

    @property
    def roster(self) -> tuple[str, ...]:
        """The algorithms of the whole table."""
        return self.runs.roster

    @property
    def cluster(self) -> str | None:
        """Benchmarks are independent of each other."""
        return self.runs.benchmark

    @property
    def repeat(self) -> str | None:
        """Seeds number repetitions."""
        return self.runs.seed

    def check_response(self, name: str) -> None:
        """Refuse to fit a model of one score per run to the rows of the curves."""
        runs, how = self.runs, name.removeprefix(f"{self.runs.score}_").rstrip("_")
        if runs.budget is None or name in runs.columns or not name.startswith(f"{runs.score}_") or how not in CURVES:
            return
        raise UnknownColumnError(
            f"formula models {name!r}, one score per run, and these runs have scores at several values of "
            f"{runs.budget!r}. Fit it to recommend(runs).runs, which is runs.per_run({how!r})."
        )

    def summarised(self, keys: tuple[str, ...], response: str, transform: Transform | None) -> Groups | None:
        """Scores by some columns with roles, or of a function of single ones; None where the table has to be asked."""
        if response != self.runs.score or not set(keys) <= set(self.columns):
            return None
        if transform is None:
            return self.groups(keys)
        finest = self.groups(self.columns)
        if (finest.n > 1).any():  # a transformed mean is not the mean of transformed scores
            return None
        y = transformed(finest.mean, transform)
        return replace(finest, mean=y, above=np.zeros(len(y)), low=y, high=y).over(keys)

    def table(self, columns: Sequence[str]) -> pd.DataFrame | None:
        """The rows by some columns with roles; None where others are among them."""
        if not {*columns} <= {*self.columns, self.runs.score}:
            return None
        return self.rows([name for name in columns if name != self.runs.score])

    def clusters(self, terms: Iterable[set[str]], fixed: Iterable[set[str]]) -> tuple[str, ...] | None:
        """The coarsest families between which advantages of algorithms vary in the model, else the benchmarks.

        Where each benchmark has means of its own, the runs with one seed on a benchmark; None without seeds.
        """
        terms, runs = list(terms), self.runs
        if runs.benchmark is None:
            return None
        if any({runs.benchmark, runs.algorithm} <= term for term in fixed):
            return None if runs.seed is None else (*self.instance, runs.seed)
        return next((family for family in self.families if {*family, runs.algorithm} in terms), (runs.benchmark,))

    def default_weights(self, averaged: Sequence[str]) -> str | None:
        """Means over families count each benchmark alike."""
        return "benchmark" if set(self.runs.family) & set(averaged) else None

    def check_weights(self, weights: str) -> None:
        """Refuse weights by what these runs do not name."""
        if weights == "benchmark" and self.runs.benchmark is None:
            raise ArgumentError(
                "weights='benchmark' needs runs with a benchmark, to count them: Runs(..., benchmark=...)."
            )
        if weights == "family" and not self.families:
            raise ArgumentError(
                "weights='family' needs runs with families that hold several benchmarks: Runs(..., family=...)."
            )

    def amounts(self, weights: str, factors: Sequence[str]) -> tuple[pd.DataFrame, Array]:
        """Benchmarks with levels of the factors; each counts 1, or its share of its family."""
        instances = list(dict.fromkeys([str(self.runs.benchmark), *self.crossed]))
        frame = self.distinct([*instances, *self.runs.family, *factors])
        share = 1.0 / frame.groupby(instances, observed=True)[instances[0]].transform("size").to_numpy(dtype=float)
        if weights == "family":
            finest = [frame[name] for name in self.families[-1]]
            share /= frame.assign(share=share).groupby(finest, observed=True)["share"].transform("sum").to_numpy()
        return frame, share

    def met(self, levels: Sequence[Any]) -> Mask | None:
        """Which two algorithms ran on a common benchmark; None where all did, or without benchmarks."""
        crossing = self.crossing
        return None if crossing is None or not crossing.apart else crossing.meet(list(levels))

    @property
    def reference(self) -> Any:
        """The baseline of improvements, whose own score is 0 by definition; None without."""
        return None if self.runs.scale is None else self.runs.scale.baseline

    @property
    def has_baseline(self) -> bool:
        """Whether an algorithm of the table is what scores are relative to."""
        return self.runs.scale is not None and self.reference in self.runs.algorithms

    def zero_at(self, factors: Sequence[str], numeric: Sequence[str], limit: float) -> set[tuple[Any, ...]]:
        """Cells of factors in which the baseline's mean is 0 on each benchmark, at each value of numeric columns."""
        scale: Any = self.runs.scale
        columns = [*scale.by, *factors, *numeric]
        if not all(name in self.runs.columns for name in columns):
            return set()
        groups = self.groups([*columns, self.runs.algorithm])
        frame = groups.keys.frame()
        baseline = (frame[self.runs.algorithm] == scale.baseline).to_numpy()
        cells = [frame.loc[baseline, name] for name in factors]
        at = list(zip(*cells, strict=True)) if cells else [()] * int(baseline.sum())
        zero = np.abs(groups.mean[baseline]) <= limit
        return set(at) - {cell for cell, is_zero in zip(at, zero, strict=True) if not is_zero}

    @cached_property
    def kind(self) -> ScoreKind:
        """What kind of score these are."""
        from lmemtest.bench.data.scales import score_kind

        return score_kind(self.detailed)

    @cached_property
    def remedies(self) -> tuple[tuple[str, float], ...]:
        """The normalisations that bring benchmarks to one scale, and the ratio of scales after each; of `detailed`."""
        from lmemtest.bench.data.scales import remedies

        return remedies(self, self.kind)

    def one_scale(self) -> str:
        """The normalisation that brings benchmarks to one scale, and how much it does; empty where none does."""
        from lmemtest.bench.data.scales import on_one_scale

        return on_one_scale(self.detailed)

    def scatter_of_repeats(self, transform: Callable[[Any], Any] | None) -> pd.DataFrame:
        """Scatter between seeds by benchmark, of a function of the score where the model has one."""
        from lmemtest.bench.data.scales import residual_scales

        return residual_scales(self.detailed if transform is None else self.detailed.with_values(transform))

    @property
    def place(self) -> set[str]:
        """What is repeated with other seeds: an algorithm on an instance."""
        return {self.runs.algorithm, *self.runs.instance}

    @property
    def along(self) -> set[str]:
        """The budget, where every run has the same ones."""
        return {self.runs.budget} if self.runs.budget and self.detailed.regular else set()

    # ------------------------------------------------------------------ what a question requires

    def require_algorithms(self) -> None:
        """Refuse runs of one algorithm."""
        column, algorithms = self.runs.algorithm, self.runs.algorithms
        if len(algorithms) < 2:
            raise DataError(
                f"The column {column!r} holds one algorithm only, {algorithms[0]!r}; comparing needs two or more. Were "
                f"the others filtered out, or is another column the algorithm? Columns: {listed(self.runs.columns)}."
            )

    def require_crossing(self) -> None:
        """Refuse runs in which no two algorithms have a benchmark in common, with the reason and the next step."""
        self.require_algorithms()
        met = self.crossing
        if met is not None and met.none_meet:
            raise DesignError(f"The algorithms cannot be compared: {met.reason()}. {met.advice()}")

    def require(self, role: str, so: str) -> str:
        """The column of a role ("benchmark", "seed", "budget"); an ArgumentError says what follows without it."""
        column = getattr(self.runs, role)
        if column is None:
            name = advice("role", role=role)
            raise ArgumentError(
                f"runs has no {role} column, so {so}. Name it: {name}. Columns: {listed(self.runs.columns)}."
            )
        return str(column)


def labels(frame: pd.DataFrame, columns: Sequence[str]) -> NDArray[np.object_]:
    """The label of each row by some columns, as in "task1 / high"; every label of an instance is made here.

    >>> labels(pd.DataFrame({"task": ["a", "b"], "prior": [1.0, 2.5]}), ["task", "prior"]).tolist()
    ['a / 1', 'b / 2.5']
    """
    coded = [pd.factorize(frame[name]) for name in columns]
    index = combine_codes([(codes, len(levels)) for codes, levels in coded], len(frame))
    first = first_rows(index, int(index.max(initial=-1)) + 1)
    parts = [np.array([format_level(level) for level in levels], dtype=object)[codes[first]] for codes, levels in coded]
    return np.array([BETWEEN.join(row) for row in zip(*parts, strict=True)], dtype=object)[index]


def _occurring(groups: Groups, column: str) -> set[Any]:
    """The levels of a column that some group has."""
    i = groups.keys.names.index(column)
    return set(pd.Series(groups.keys.levels[i])[np.unique(groups.keys.codes[i])].tolist())


def _codes(column: pd.Series[Any]) -> tuple[np.ndarray, int]:
    codes, levels = column_codes(column)
    return codes, len(levels)


def dtype_of(levels: tuple[Any, ...]) -> Any:
    """That of a column of these levels; object where there is no such column."""
    return object if levels == (None,) else None
