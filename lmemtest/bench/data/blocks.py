"""Scores of algorithms on blocks: what a ranking counts as one paired observation each.

A block is a benchmark: all its runs, whatever their number, give one score per algorithm. Runs that share a benchmark
are not independent, and counted one by one they would make differences significant that other benchmarks do not show.
Where benchmarks come in families, and there are enough of them, a block is a family, for the same reason. With a single
benchmark the seeds that all algorithms ran with are the blocks, and what follows holds for it alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest.bench.data.study import ONLY_INSTANCE, labels
from lmemtest.core.codes import group_codes
from lmemtest.core.validate import check_magnitude
from lmemtest.core.words import counted, format_level, plural
from lmemtest.errors import DesignError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.bench.data.runs import Runs
    from lmemtest.core.arrays import Array, Index, Mask


@dataclass(frozen=True, kw_only=True, eq=False)
class Blocks:
    """Runs of every algorithm on every instance, the instances in blocks.

    Attributes
    ----------
    algorithms : (k,) tuple of str
        In the order of their levels.
    runs : (m, k, r) float
        Scores of the single runs on an instance; NaN behind the last run of an algorithm.
    instances : (m,) tuple of str
        A benchmark at levels of the metafeatures that vary within it.
    block : (m,) int
        The block that each instance belongs to.
    names : (n,) tuple of str
        Of the blocks.
    unit : {"family", "benchmark", "seed"}
        What the blocks are.
    score, direction : str
    notes : tuple of str
    seeds : (m, k, r) int or None
        Number of the seed of each run, in ascending order, -1 behind the last; None without a column of seeds.
    family : (m,) str or None
        The family of each instance; None where families are not the sample.
    roster : tuple of str
        `Runs.roster`.
    """

    algorithms: tuple[str, ...]
    runs: Array
    instances: tuple[str, ...]
    block: Index
    names: tuple[str, ...]
    unit: str
    score: str
    direction: str
    notes: tuple[str, ...] = ()
    seeds: Index | None = None
    family: NDArray[np.object_] | None = None
    roster: tuple[str, ...] = ()

    @cached_property
    def n_runs(self) -> Index:
        """Runs by instance and algorithm, ``(m, k)``."""
        return np.isfinite(self.runs).sum(axis=2)

    @property
    def noun(self) -> str:
        """What a score is of: a run, or a result where nothing shows runs (one score each, without a seed)."""
        return "result" if self.seeds is None and self.n_runs.max() == 1 else "run"

    @cached_property
    def means(self) -> Array:
        """Mean scores by instance and algorithm, ``(m, k)``; NaN where nothing ran."""
        total = np.nansum(self.runs, axis=2)
        return np.divide(total, self.n_runs, out=np.full(total.shape, np.nan), where=self.n_runs > 0)

    @cached_property
    def scores(self) -> Array:
        """Mean scores by block and algorithm, ``(n, k)``: instances count equally; NaN where one of them is missing."""
        size = np.bincount(self.block, minlength=len(self.names))
        sums = np.zeros((len(self.names), len(self.algorithms)))
        np.add.at(sums, self.block, self.means)
        return sums / size[:, None]

    @property
    def gains(self) -> Array:
        """`scores` with the sign for which more is better."""
        return self.scores if self.direction == "maximize" else -self.scores

    @property
    def run_gains(self) -> Array:
        """`runs` with the sign for which more is better."""
        return self.runs if self.direction == "maximize" else -self.runs

    @property
    def starts(self) -> Index:
        """The first instance of each block, where the instances are in their order, ``(n,)``."""
        return np.flatnonzero(np.diff(self.block, prepend=-1))

    def within_families(self) -> Blocks:
        """A block is a benchmark in one of its families, with all instances there; in the order of the families."""
        family = np.zeros(len(self.block)) if self.family is None else self.family.astype(str)
        order = np.lexsort((self.block, family))
        block, number = self.block[order], np.unique(family[order], return_inverse=True)[1]
        new = np.diff(block, prepend=-1).astype(bool) | np.diff(number, prepend=-1).astype(bool)
        return replace(self.on(order), block=np.cumsum(new) - 1, names=tuple(self.names[i] for i in block[new]))

    @property
    def complete(self) -> Mask:
        """Which blocks have a score of every algorithm, ``(n,)``."""
        return np.asarray(np.isfinite(self.scores).all(axis=1))

    def of(self, algorithms: Sequence[str]) -> Blocks:
        """The blocks with some of the algorithms, in this order."""
        place = {name: i for i, name in enumerate(self.algorithms)}
        at = [place[name] for name in algorithms]
        seeds = None if self.seeds is None else self.seeds[:, at]
        return replace(self, algorithms=tuple(algorithms), runs=self.runs[:, at], seeds=seeds)

    def where(self, kept: Mask) -> Blocks:
        """Some of the blocks, ``(n,)``."""
        names = tuple(name for name, keep in zip(self.names, kept, strict=True) if keep)
        found = self.on(kept[self.block])
        return replace(found, block=(np.cumsum(kept) - 1)[found.block], names=names)

    def on(self, kept: Mask | Index) -> Blocks:
        """The blocks with some of their instances, by a mask ``(m,)`` or by their numbers."""
        return replace(
            self,
            runs=self.runs[kept],
            instances=tuple(self.instances[i] for i in np.arange(len(self.instances))[kept]),
            block=self.block[kept],
            seeds=None if self.seeds is None else self.seeds[kept],
            family=None if self.family is None else self.family[kept],
        )

    @property
    def units(self) -> str:
        """What the blocks are, in the plural."""
        return plural(self.unit)

    def said(self) -> str:
        """How many there are, for notes: "20 benchmarks"."""
        return counted(len(self.names), self.unit)


def blocks_of(runs: Runs, *, unit: str | None = None) -> Blocks:
    """The blocks of a table of runs, each run with one score.

    Scores at several budgets are averaged per run, over the budgets that all runs of an instance have. With
    `unit` "benchmark" a single benchmark is one block, and its seeds are the runs of it; what the runs are a sample of
    is then for the caller to say. Within a family benchmarks that some algorithm lacks are left out, as long as others
    are there.
    """
    runs.study.require_scores()
    table, notes = runs.study.one_score_per_run()
    check_magnitude(table["score"].to_numpy(), 1e-100)
    several = table["benchmark"].nunique() > 1
    if runs.benchmark is None:
        table["benchmark"] = ONLY_INSTANCE
    if not several and unit is None and runs.seed is None:
        raise DesignError(
            "a ranking compares algorithms on the same blocks, several benchmarks or several seeds of one benchmark; "
            f"these runs have {'one benchmark' if runs.benchmark else 'no benchmark'} and no seed column. Name it: "
            "Runs(table, ..., benchmark=..., seed=...)."
        )
    sample, asked = runs.study.sampled, unit == "benchmark"
    unit = unit or (sample.noun if several else "seed")
    own, instances = group_codes([table[name] for name in ["instance", unit]], len(table))
    name, blocks = group_codes([table[unit]], len(table))
    code, algorithms = group_codes([table["algorithm"]], len(table))
    block = np.zeros(instances.size, dtype=np.intp)
    block[own] = name
    family = None
    if sample.noun == "family":
        family = np.empty(instances.size, dtype=object)
        family[own] = labels(table, ["family"])
    named = labels(instances.frame(), ["instance", "seed"] if unit == "seed" else ["instance"])
    if not several:
        blocks_are = " its seeds are the blocks, and" if unit == "seed" else ""
        notes = (*notes, f"One benchmark only:{blocks_are} what follows says nothing about others.")
    if unit == sample.noun and not asked:
        notes = (*notes, *sample.notes, *sample.weights)
    seed = None if runs.seed is None else group_codes([table["seed"]], len(table))[0]
    order = np.arange(len(table)) if seed is None else np.argsort(seed, kind="stable")
    cell, shape = (own * algorithms.size + code)[order], (instances.size, algorithms.size)
    found = Blocks(
        algorithms=tuple(format_level(level) for level in algorithms.levels[0]),
        runs=padded(table["score"].to_numpy()[order], cell, shape, np.nan),
        instances=tuple(named.tolist()),
        block=block,
        names=tuple(format_level(level) for level in blocks.levels[0]),
        unit=unit,
        score=runs.study.measured,
        direction=runs.direction,
        notes=notes,
        seeds=None if seed is None else padded(seed[order], cell, shape, -1),
        family=family,
        roster=runs.roster,
    )
    return _with_common_benchmarks(found) if unit == "family" else found


def _with_common_benchmarks(blocks: Blocks) -> Blocks:
    """Families with the benchmarks that every algorithm ran on, where there are any."""
    whole = (blocks.n_runs > 0).all(axis=1)
    kept = whole | ~np.isin(blocks.block, blocks.block[whole])
    if kept.all():
        return blocks
    lost = int((~kept).sum())
    lacks, are = ("lacks", "is") if lost == 1 else ("lack", "are")
    note = f"{counted(lost, 'benchmark')} {lacks} an algorithm and {are} left out of the means of the families."
    return replace(blocks.on(kept), notes=(*blocks.notes, note))


def padded(values: NDArray[Any], cell: Index, shape: tuple[int, int], filler: float) -> NDArray[Any]:
    """Values by their cell, side by side in the last axis in the order given; a filler behind the last of a cell."""
    counts = np.bincount(cell, minlength=shape[0] * shape[1])
    out = np.full((len(counts), int(counts.max())), filler, dtype=values.dtype)
    if out.shape[1] == 1:
        out[cell, 0] = values
        return out.reshape(*shape, -1)
    order = np.argsort(cell, kind="stable")
    place = np.arange(len(cell)) - np.repeat(np.cumsum(counts) - counts, counts)
    out[cell[order], place] = values[order]
    return out.reshape(*shape, -1)
