"""Probability of improvement: that a run of one algorithm is better than a run of another on the same benchmark."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from lmemtest.bench.ranking.resampling import Resampling, band_of, intervals
from lmemtest.core.result import Result, result
from lmemtest.core.rounding import tolerance, written
from lmemtest.core.words import percent

if TYPE_CHECKING:
    import pandas as pd

    from lmemtest.bench.data.blocks import Blocks
    from lmemtest.core.arrays import Array, Index


@result
class Improvement(Result):
    """Probabilities that a run of one algorithm is better than one of another.

    Attributes
    ----------
    table : pandas.DataFrame
        One row per pair: ``left``, ``right``, ``probability`` that a run of left is better than one of right on the
        same benchmark, ties one half, averaged over the benchmarks (where families were drawn, over the means by
        family); ``ci_low``, ``ci_high``.
    algorithms : tuple of str
    resampling : Resampling
        What was drawn again.
    method : {"percentile", "basic", "bca"}
    level : float
    score, direction : str
    notes : tuple of str
    """

    figure: ClassVar[str | None] = "improvement_plot"
    formats = dict.fromkeys(["probability", "ci_low", "ci_high"], ".3f")

    table: pd.DataFrame
    algorithms: tuple[str, ...]
    resampling: Resampling
    method: str
    level: float
    score: str
    direction: str
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """Of which score."""
        return f"Probability of improvement in {self.score}"

    @property
    def facts(self) -> tuple[str, ...]:
        """What the intervals mean."""
        return (self.band,)

    @property
    def band(self) -> str:
        """What the intervals mean, for the foot of a figure."""
        return band_of(self.resampling, self.method, self.level)

    def matrix(self) -> pd.DataFrame:
        """Probability that the row is better than the column; one half on the diagonal."""
        import pandas as pd

        out = pd.DataFrame(0.5, index=list(self.algorithms), columns=list(self.algorithms))
        for left, right, p in zip(*(self.table[name] for name in ("left", "right", "probability")), strict=True):
            out.loc[left, right], out.loc[right, left] = p, 1.0 - p
        return out

    def sentences(self) -> tuple[str, ...]:
        """One sentence per pair, from the side that is more often better."""
        out = []
        where = " of families like these" if self.resampling.blocks.unit == "family" else ""
        columns = (self.table[name].tolist() for name in ("left", "right", "probability", "ci_low", "ci_high"))
        for left, right, p, low, high in zip(*columns, strict=True):
            if p < 0.5:
                left, right, p, low, high = right, left, 1.0 - p, 1.0 - high, 1.0 - low
            ends = f"{percent(self.level)} interval {written(low, '.2f')} to {written(high, '.2f')}"
            out.append(
                f"A run of {left} is better than one of {right} on the same benchmark{where} with probability "
                f"{written(p, '.2f')} ({ends})."
            )
        return tuple(out)


def improvement(resampling: Resampling, *, method: str, level: float) -> Improvement:
    """The probabilities of `AggregateScores.improvement`."""
    import pandas as pd

    blocks = resampling.blocks
    k = len(blocks.algorithms)
    by_instance = np.array([_Duels(blocks, i).mean for i in range(len(blocks.runs))])  # (m, k, k)
    by_block = np.zeros((len(blocks.names), k, k))
    np.add.at(by_block, blocks.block, by_instance * resampling.share[:, None, None])
    observed = by_block.mean(axis=0)
    draws = np.concatenate(list(_drawn(resampling)))
    rows = []
    for x, y in combinations(range(k), 2):
        without = _left_out(resampling, by_instance[:, x, y], by_block[:, x, y], x, y) if method == "bca" else []
        ends = intervals(draws[:, x, y, None], observed[None, x, y], without, method, level)
        low, high = np.clip(ends[:, 0], 0.0, 1.0)
        rows.append((blocks.algorithms[x], blocks.algorithms[y], float(observed[x, y]), float(low), float(high)))
    return Improvement(
        table=pd.DataFrame(rows, columns=["left", "right", "probability", "ci_low", "ci_high"]),
        algorithms=blocks.algorithms,
        resampling=resampling,
        method=method,
        level=level,
        score=blocks.score,
        direction=blocks.direction,
        notes=blocks.notes,
    )


class _Duels:
    """All runs on an instance against each other: 1 where the first is better, one half for ties."""

    def __init__(self, blocks: Blocks, instance: int) -> None:
        runs = blocks.runs[instance]
        gain = (runs if blocks.direction == "maximize" else -runs).ravel()
        difference = gain[:, None] - gain
        difference[np.abs(difference) <= tolerance(runs)] = 0.0
        k, r = runs.shape
        self.known = np.isfinite(runs)
        self.won = np.nan_to_num(0.5 + 0.5 * np.sign(difference)).reshape(k, r, k * r)
        # share of the runs of each algorithm than which a run is better, (k, r, k), and its mean over runs
        self.by_run = self.won.reshape(k, r, k, r).sum(axis=3) / self.known.sum(axis=1)
        self.mean = self.by_run.sum(axis=1) / self.known.sum(axis=1)[:, None]


def _drawn(resampling: Resampling) -> Iterator[Array]:
    """The probabilities in the draws, some draws at a time, ``(draws, k, k)``."""
    blocks = resampling.blocks
    m, k, r = blocks.runs.shape
    won = [_Duels(blocks, i).won for i in range(m)]
    for parts in zip(*(resampling.picks(a) for a in range(k)), strict=True):
        chosen = parts[0][0]
        size, where = chosen.size, chosen.ravel()
        share = np.zeros((size, k, r))  # of each run in its algorithm's runs at a place
        for a, (_, run, weight) in enumerate(parts):
            at = (np.arange(size) * r)[:, None] + run.reshape(size, r)
            counts = np.bincount(at.ravel(), weights=weight.ravel(), minlength=size * r).reshape(size, r)
            total = counts.sum(axis=1)
            share[:, a] = np.divide(counts, total[:, None], out=np.zeros_like(counts), where=total[:, None] > 0)
        draw, out = np.repeat(np.arange(len(chosen)), size // len(chosen)), np.zeros((len(chosen), k, k))
        for i in range(m):
            rows = np.flatnonzero(where == i)
            found = np.empty((len(rows), k, k))
            for a in range(k):
                found[:, a] = ((share[rows, a] @ won[i][a]) * share[rows].reshape(-1, k * r)).reshape(-1, k, r).sum(2)
            np.add.at(out, draw[rows], found * resampling.share[i] / chosen.shape[1])
        yield out


def _left_out(resampling: Resampling, by_instance: Array, by_block: Array, x: int, y: int) -> list[tuple[Index, Array]]:
    """The probability without each unit in turn, with the sample of that unit: it is linear in each sample."""
    blocks, count = resampling.blocks, len(by_block)
    if resampling.unit == "benchmarks":
        left = (by_block.sum() - by_block) / (count - 1)
        return [(np.zeros(count, dtype=np.intp), left[:, None])]
    out = []
    for i, p in enumerate(by_instance):
        duels = _Duels(blocks, i)
        sides = duels.by_run[x, duels.known[x], y], 1.0 - duels.by_run[y, duels.known[y], x]
        for side, own in enumerate(sides):
            if len(own) > 1:
                left = by_block.mean() + resampling.share[i] / count * (p - own) / (len(own) - 1)
                out.append((np.full(len(own), 2 * i + side, dtype=np.intp), left[:, None]))
    return out
