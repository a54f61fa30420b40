"""Single runs drawn again, by benchmark: the stratified bootstrap of scores of algorithms on benchmarks.

Every benchmark counts the same, whatever its number of runs: a run has the weight 1 / (benchmarks x its runs), and
instances of one benchmark share the weight of it equally. A draw is what it leaves of these weights, so every measure
is one function of scores and weights, whether of the runs, of a draw, or of what is left without one run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from lmemtest.bench.data.blocks import Blocks, blocks_of
from lmemtest.bench.data.normalise import UNITLESS
from lmemtest.bench.data.runs import as_runs
from lmemtest.core.arrays import Array, Index, Mask
from lmemtest.core.resampling import batches, drawn_again, drawn_interval
from lmemtest.core.rounding import tolerance
from lmemtest.core.validate import check_fraction, check_positive_int
from lmemtest.core.words import listed, percent
from lmemtest.errors import DesignError

UNITS = ("runs", "benchmarks")
DRAWN = ("n-1", "n")
_NOTHING = 1e-9  # of the weight
_AT_ONCE = 100_000  # runs in memory: more do not fit the cache


Statistic = Callable[[Array, Array, Array], Array]  # of `scores`, `weights` and `means`, see `Resampling.weighted`


def cumulative(weights: Array) -> Array:
    """Weight of the scores before each, and of all, ``(draws, runs + 1)``."""
    out = np.zeros((len(weights), weights.shape[1] + 1))
    np.cumsum(weights, axis=1, out=out[:, 1:])
    return out


def beyond(taus: Array, scores: Array, weights: Array, direction: str) -> Array:
    """Weight of the scores that are better than each of `taus`, ``(draws, taus)``."""
    slack, mass = tolerance(scores), cumulative(weights)
    if direction == "maximize":
        place = np.searchsorted(scores, taus + slack, side="right")
        return np.clip(mass[:, -1:] - mass[:, place], 0.0, 1.0)
    return np.clip(mass[:, np.searchsorted(scores, taus - slack, side="left")], 0.0, 1.0)


def blocks_beyond(taus: Array, scores: Array, means: Array, direction: str) -> Array:
    """Share of the blocks whose mean is better than each of `taus`, ``(draws, taus)``."""
    slack = tolerance(scores)
    if direction == "maximize":
        return np.array([(row > taus[:, None] + slack).mean(axis=1) for row in means])
    return np.array([(row < taus[:, None] - slack).mean(axis=1) for row in means])


@dataclass(frozen=True, eq=False)
class Resampling:
    """Draws of the runs of some blocks.

    `unit` "runs" keeps the benchmarks and draws runs within each instance; "benchmarks" draws blocks (benchmarks, or
    families with their benchmarks), the same for all algorithms, and runs within each of them. Of the unit one fewer is
    drawn than there is (`drawn` "n-1"), or as many ("n"); what is alone stands for itself.
    """

    blocks: Blocks
    unit: str
    drawn: str
    n_draws: int
    seed: int

    @cached_property
    def members(self) -> Index:
        """Instances of each block, ``(blocks, instances)``; -1 behind the last."""
        size = np.bincount(self.blocks.block)
        order = np.argsort(self.blocks.block, kind="stable")
        place = np.arange(len(order)) - np.repeat(np.cumsum(size) - size, size)
        out = np.full((len(size), int(size.max())), -1, dtype=np.intp)
        out[self.blocks.block[order], place] = order
        return out

    @cached_property
    def share(self) -> Array:
        """Weight of each instance in the mean of its block, ``(m,)``."""
        size = np.bincount(self.blocks.block)
        return np.asarray(1.0 / size[self.blocks.block])

    def of(self, statistic: Statistic, algorithm: int) -> tuple[Array, Array, Iterator[tuple[Index, Array]]]:
        """A statistic of the runs of an algorithm as they are, ``(k,)``, in the draws, ``(n_draws, k)``, and without
        each unit in turn, some at a time, with the stratum of each.

        It is a function of their `scores`, ``(runs,)`` and ascending, the `weights` of these, ``(draws, runs)`` with
        sums of 1, and the `means` of the blocks, ``(draws, blocks)``.
        """
        observed = statistic(*self.observed(algorithm))[0]
        draws = np.concatenate([statistic(*weighted) for weighted in self.draws(algorithm)])
        return observed, draws, ((stratum, statistic(*weighted)) for stratum, weighted in self.left_out(algorithm))

    def observed(self, algorithm: int) -> tuple[Array, Array, Array]:
        """Scores, weights and means of the runs as they are."""
        scores, instance, _ = self._pool(algorithm)
        n = self.blocks.n_runs[:, algorithm]
        weights = (self.share / n)[instance] / len(self.members)
        return scores, weights[None], self.blocks.scores[None, :, algorithm]

    def draws(self, algorithm: int) -> Iterator[tuple[Array, Array, Array]]:
        """Scores, weights and means of the draws, some draws at a time."""
        scores, _, place = self._pool(algorithm)
        for chosen, run, weight in self.picks(algorithm):
            count = len(chosen)
            at = place[chosen[..., None], run]
            flat = at + (np.arange(count) * len(scores))[:, None, None, None]
            weights = np.zeros(count * len(scores))
            weights += np.bincount(flat.ravel(), weights=weight.ravel(), minlength=len(weights))
            means = np.einsum("dbsr,dbsr->db", scores[at], weight) * chosen.shape[1]
            yield scores, weights.reshape(count, -1), means

    def picks(self, algorithm: int) -> Iterator[tuple[Index, Index, Array]]:
        """Some draws at a time: instances in blocks, the runs of an algorithm drawn there, and their weights.

        ``(draws, blocks, instances)``, and twice ``(draws, blocks, instances, runs)``; the weight is 0 where a block
        has no such instance, or where no such run is drawn.
        """
        n, most = self.blocks.n_runs[:, algorithm], self.blocks.runs.shape[2]
        count = len(self.members)
        of_blocks = np.random.default_rng([self.seed, 0])
        of_runs = np.random.default_rng([self.seed, 1 + algorithm])
        fewer = self.unit == "runs" and self.drawn == "n-1"
        many = np.maximum(n - fewer, 1)
        each = np.where(np.arange(most) < many[:, None], (self.share / many)[:, None], 0.0)  # (m, runs)
        for size in batches(self.n_draws, self.members.size * most, _AT_ONCE):
            if self.unit == "runs":
                chosen = np.broadcast_to(self.members, (size, *self.members.shape))
            else:
                kept = max(count - (self.drawn == "n-1"), 1)
                chosen = self.members[drawn_again(count, size, of_blocks, kept)]
            run = (of_runs.random((*chosen.shape, most)) * n[chosen][..., None]).astype(np.intp)
            weight = each[chosen] / chosen.shape[1]
            if self.members.shape[1] > 1:
                weight[chosen < 0] = 0.0
            yield chosen, run, weight

    def kept(self, algorithm: int, cut: float) -> Mask:
        """Which blocks have a run between the lowest and the highest share `cut` of an algorithm's weight."""
        _, instance, _ = self._pool(algorithm)
        mass = cumulative(self.observed(algorithm)[1])[0]
        inside = (mass[1:] > cut + _NOTHING) & (mass[:-1] < 1.0 - cut - _NOTHING)
        return np.bincount(self.blocks.block[instance[inside]], minlength=len(self.members)) > 0

    def left_out(self, algorithm: int) -> Iterator[tuple[Index, tuple[Array, Array, Array]]]:
        """The strata of some units at a time, and scores, weights and means without each of them."""
        instance = self._pool(algorithm)[1]
        scores, full, block_means = self.observed(algorithm)
        block, count = self.blocks.block[instance], len(self.members)
        if self.unit == "benchmarks":
            for gone in range(count if count > 1 else 0):
                weights = np.where(block == gone, 0.0, full * count / (count - 1))
                yield np.zeros(1, dtype=np.intp), (scores, weights, np.delete(block_means, gone, axis=1))
            return
        n, mean = self.blocks.n_runs[:, algorithm], self.blocks.means[:, algorithm]
        units = np.flatnonzero(n[instance] > 1)
        step = max(1, _AT_ONCE // len(scores))
        for left in np.split(units, np.arange(step, len(units), step)):
            strata = instance[left]
            others = n[strata] - 1
            weights = np.where(instance == strata[:, None], ((others + 1) / others)[:, None], 1.0) * full
            weights[np.arange(len(left)), left] = 0.0
            means = np.repeat(block_means, len(left), axis=0)
            means[np.arange(len(left)), block[left]] += self.share[strata] * (mean[strata] - scores[left]) / others
            yield strata, (scores, weights, means)

    def _pool(self, algorithm: int) -> tuple[Array, Index, Index]:
        """All scores of an algorithm in ascending order, their instances, and where the run of an instance is there."""
        runs = self.blocks.runs[:, algorithm]
        instance, run = np.nonzero(np.isfinite(runs))
        order = np.argsort(runs[instance, run], kind="stable")
        instance, run = instance[order], run[order]
        place = np.zeros(runs.shape, dtype=np.intp)
        place[instance, run] = np.arange(len(order))
        return runs[instance, run], instance, place


def complete_blocks(data: Any, roles: Mapping[str, Any], function: str, sample: str = "runs") -> tuple[Blocks, bool]:
    """The runs of every algorithm on every instance, and whether their scores have no unit; gaps are refused.

    `data` and its `roles` are what `as_runs` takes for a `function`. With benchmarks as the `sample` the blocks are
    families, where there are enough of these.
    """
    runs = as_runs(data, roles, function)
    blocks = blocks_of(runs, unit="benchmark")
    gaps = np.argwhere(blocks.n_runs == 0)
    if len(gaps):
        named = [f"{blocks.algorithms[a]} on {blocks.instances[i]}" for i, a in gaps]
        raise DesignError(
            f"every algorithm must have run on every benchmark, and there is no run of {listed(named, 5)}. Filter the "
            "runs to algorithms or benchmarks without gaps; runs.check() lists them."
        )
    if sample == "benchmarks" and runs.study.families:
        blocks = blocks_of(runs)
    return blocks, runs.scale is not None and runs.scale.method in UNITLESS


def check_units(blocks: Blocks, unit: str) -> None:
    """Refuse to draw units of which there is one."""
    if unit == "runs" and (blocks.n_runs == 1).all():
        raise DesignError(
            "every algorithm has one run on each benchmark, so there are no runs to draw from. Use "
            "resample='benchmarks', for intervals about benchmarks like these, or repeat the runs with other seeds."
        )
    if unit == "benchmarks" and len(blocks.names) == 1:
        raise DesignError("there is one benchmark, so there are no benchmarks to draw from. Use resample='runs'.")


def check_draws(n_draws: Any, alpha: Any) -> tuple[int, float]:
    """The number of draws, which is to reach beyond both ends of an interval, and the level."""
    level = 1.0 - check_fraction(alpha, "alpha")
    return check_positive_int(n_draws, "n_draws", minimum=math.ceil(2.0 / (1.0 - level) - 1e-6) - 1), level


def intervals(
    draws: Array, estimate: Array, jackknife: Iterable[tuple[Index, Array]], method: str, level: float
) -> Array:
    """Both ends of the intervals of k statistics, ``(2, k)``; the `jackknife` with its strata is for "bca"."""
    if method != "bca":
        return drawn_interval(draws, estimate, method, level)
    strata, values = map(np.concatenate, zip(*jackknife, strict=True))
    return drawn_interval(draws, estimate, method, level, values, np.unique(strata, return_inverse=True)[1])


def band_of(resampling: Resampling, method: str, level: float) -> str:
    """What an interval from these draws means, for the foot of a figure."""
    blocks, kind = resampling.blocks, "BCa" if method == "bca" else method
    size = f"{percent(level)} {kind} intervals from {resampling.n_draws:,} draws of"
    if resampling.unit == "runs":
        those = "this benchmark" if len(blocks.names) == 1 else f"these {blocks.said()}"
        return f"{size} the runs: what other runs would give on {those}, and nothing about others."
    within = "" if blocks.unit == "benchmark" else " with their benchmarks"
    return f"{size} {blocks.said()}{within} and the runs on them: what to expect on other {blocks.units} of this kind."
