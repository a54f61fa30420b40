"""Measures that summarise weighted runs: interquartile mean, median of benchmarks, mean, optimality gap."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from lmemtest.bench.data.blocks import Blocks
    from lmemtest.bench.ranking.resampling import Weighted
    from lmemtest.core.arrays import Array


MEASURES = {
    "iqm": "interquartile mean",
    "median": "median of the benchmarks",
    "mean": "mean",
    "optimality_gap": "optimality gap",
}


@dataclass(frozen=True, slots=True)
class Measures:
    """Some measures, by their names; `threshold` is that of the optimality gap."""

    names: Sequence[str]
    threshold: float
    direction: str

    def of(self, weighted: Weighted, cut: float) -> Array:
        """The measures of each draw, ``(draws, measures)``; `cut` is that of the algorithm."""
        return np.column_stack([self._one(name, weighted, cut) for name in self.names])

    def _one(self, name: str, weighted: Weighted, cut: float) -> Array:
        scores = weighted.scores
        if name == "iqm":
            kept = np.diff(np.clip(weighted.cumulative, cut, 1.0 - cut), axis=1)
            return np.asarray(kept @ scores / (1.0 - 2.0 * cut))
        if name == "median":
            return np.asarray(np.median(weighted.means, axis=1))
        if name == "mean":
            return np.asarray(weighted.weights @ scores)
        short = scores - self.threshold if self.direction == "minimize" else self.threshold - scores
        return np.asarray(weighted.weights @ np.maximum(short, 0.0))

    def better(self, name: str) -> str:
        """Which end of a measure is better."""
        return "minimize" if name == "optimality_gap" else self.direction


def middle(blocks: Blocks, algorithm: int) -> float:
    """The weight that the interquartile mean drops at each end: a quarter, in whole runs.

    Of runs of different weights, in units of their greatest common divisor: as if runs were repeated until all
    benchmarks have as many.
    """
    instances = np.bincount(blocks.block)[blocks.block]
    units = len(blocks.names) * math.lcm(*(instances * blocks.n_runs[:, algorithm]).tolist())
    return units // 4 / units
