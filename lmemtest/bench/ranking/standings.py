"""How well algorithms do over blocks: measures that are functions of weighted sums over the blocks.

With weights of one they are the estimates; random weights, of the blocks or of the runs within them, show how the
measures would vary.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest.bench.ranking.bradley_terry import ELO, likeliest, ratings

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.bench.data.blocks import Blocks
    from lmemtest.core.arrays import Array


MEASURES = ("elo", "win_rate", "mean_rank", "p_best", "gap_closed")
CENTRE = 1000.0  # rating of the reference
_LEAST_WEIGHT = 1e-6  # of a virtual block: less is nothing, and would make the equations of a fit singular
_CHUNK = 4_000_000  # numbers at a time


# The axis of the blocks in each field of `Standings`
_BLOCKS = {"won": -2, "lost": -2, "complete": -1, "ranks": -2, "firsts": -2, "uneven": -1, "gaps": -2}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Standings:
    """What blocks contribute: one by one (axis n), or weighted sums over them; any number of leading axes.

    Attributes
    ----------
    won, lost : (..., [n,] k) float
        Comparisons with another algorithm, ties one half.
    complete : (..., [n]) float
        Blocks on which all algorithms ran; only these are in the fields that follow.
    ranks, firsts : (..., [n,] k) float
        1 best, ties the mean of theirs; first places, ties split.
    uneven : (..., [n]) float
        Complete blocks on which not all algorithms tie.
    gaps : (..., [n,] k) float
        ``(score - worst) / (best - worst)``, on uneven blocks.
    """

    won: NDArray[Any]
    lost: NDArray[Any]
    complete: NDArray[Any]
    ranks: NDArray[Any]
    firsts: NDArray[Any]
    uneven: NDArray[Any]
    gaps: Array

    @classmethod
    def on_blocks(cls, gains: Array, ties: Array, wins: NDArray[Any]) -> Standings:
        """Of each block, from scores of which more is better, ``(..., n, k)``, and their `wins_on_blocks`."""
        k = gains.shape[-1]
        complete = np.asarray(np.isfinite(gains).all(axis=-1, keepdims=True))
        best, worst = gains.max(axis=-1, keepdims=True), gains.min(axis=-1, keepdims=True)
        first = complete & (gains >= best - ties[:, None])
        uneven = complete & (best - worst > ties[:, None])
        gaps = (gains - worst) / np.where(uneven, best - worst, 1.0)
        won = wins.sum(axis=-1, dtype=float)
        return cls(
            won=won,
            lost=wins.sum(axis=-2, dtype=float),
            complete=complete[..., 0],
            ranks=np.where(complete, k - won, 0.0),
            firsts=first / np.maximum(first.sum(axis=-1, keepdims=True), 1),
            uneven=uneven[..., 0],
            gaps=np.where(uneven, gaps, 0.0),
        )

    @classmethod
    def in_order(cls, order: NDArray[Any]) -> Standings:
        """Of blocks on which the algorithms have the places 0 (worst), 1, ..., k - 1."""
        most = order.shape[-1] - 1.0
        one = np.ones(order.shape[:-1])
        return cls(
            won=order,
            lost=most - order,
            complete=one,
            ranks=most + 1.0 - order,
            firsts=(order == most).astype(float),
            uneven=one,
            gaps=order / most,
        )

    def total(self) -> Standings:
        """Sums over the blocks, each with weight one."""
        return Standings(**{name: getattr(self, name).sum(axis=axis, dtype=float) for name, axis in _BLOCKS.items()})

    def weighted(self, weights: Array) -> Standings:
        """Sums over the blocks, ``(n, ...)``, with weights ``(n_draws, n)``."""
        return Standings(**{name: np.tensordot(weights, getattr(self, name).astype(float), axes=1) for name in _BLOCKS})

    def measures(self, theta: Array, reference: int | None) -> dict[str, Array]:
        """Each of `MEASURES` from sums and their ratings, ``(..., k)``; NaN where no block has all algorithms."""
        zero = 0.0 if reference is None else theta[..., reference, None]
        with np.errstate(invalid="ignore"):
            return {
                "elo": CENTRE + ELO * (theta - zero),  # theta has mean zero
                "win_rate": self.won / (self.won + self.lost),
                "mean_rank": self.ranks / self.complete[..., None],
                "p_best": self.firsts / self.complete[..., None],
                "gap_closed": self.gaps / self.uneven[..., None],
            }


def wins_on_blocks(gains: Array, ties: Array) -> NDArray[Any]:
    """Wins of row over column on each block, ties one half, ``(..., n, k, k)``, from gains ``(..., n, k)``.

    Scores of a block that differ by no more than its number in `ties`, ``(n,)``, are tied.
    """
    k = gains.shape[-1]
    row, column, tie = gains[..., :, None], gains[..., None, :], ties[:, None, None]
    wins = (row > column + tie).astype(np.float32)
    wins += row >= column - tie  # NaN is neither
    wins *= 0.5
    wins[..., range(k), range(k)] = 0.0
    return wins


def drawn_over_blocks(
    each: Standings, games: NDArray[Any], start: Array, n_draws: int, rng: np.random.Generator
) -> Iterator[tuple[Standings, Array]]:
    """Sums of the standings on blocks with random weights, and their ratings, some draws at a time.

    `games` of the pairs on each block are ``(n, k, k)``, or ``(n, 1, 1)`` of ones where no score is missing; the search
    for the ratings begins at `start`. Weights are exponential, which is Rubin's Bayesian bootstrap. Two virtual blocks,
    with the algorithms in a random order and in the reverse order, have weights with the gamma distribution of shape
    1/2; so for two algorithms the share of wins w of n has the distribution Beta(w + 1/2, n - w + 1/2).
    """
    n, k = each.won.shape
    games = games.astype(float)
    for size in _sizes(n_draws, k * k):
        order = rng.permuted(np.tile(np.arange(float(k)), (size, 1)), axis=1)
        virtual = Standings.in_order(np.stack([order, k - 1.0 - order], axis=1))
        of_blocks = rng.exponential(size=(size, n))
        real = each.weighted(of_blocks)
        weights = np.maximum(rng.gamma(0.5, size=(size, 2)), _LEAST_WEIGHT)
        sums = Standings(
            **{
                name: getattr(real, name) + np.einsum("db,db...->d...", weights, getattr(virtual, name))
                for name in _BLOCKS
            }
        )
        met = np.tensordot(of_blocks, games, axes=1) + weights.sum(axis=1)[:, None, None]
        yield sums, likeliest(sums.won, sums.lost, met, start)


def drawn_over_runs(
    blocks: Blocks, ties: Array, n_draws: int, rng: np.random.Generator
) -> Iterator[tuple[Standings, Array]]:
    """Standings with random weights of the runs on each instance, and their ratings, some draws at a time.

    Runs of several algorithms with the same seed on an instance have the same weight, so what they share cancels in
    every draw as it does in the scores. Deviations of a weighted mean of r runs have (r - 1) / (r + 1) times the
    estimated variance of a mean, and are stretched by the root of the inverse.
    """
    k, n_runs = len(blocks.algorithms), blocks.n_runs
    ran = np.isfinite(blocks.runs)
    deviations = np.where(ran, blocks.runs - blocks.means[:, :, None], 0.0)
    stretch = np.sqrt((n_runs + 1.0) / np.maximum(n_runs - 1.0, 1.0))
    weighed = np.arange(blocks.runs.size).reshape(blocks.runs.shape)  # which weight a run has
    if blocks.seeds is not None:
        instance = np.arange(len(blocks.runs))[:, None, None]
        keys = instance * (int(blocks.seeds.max()) + 2) + blocks.seeds
        weighed = np.unique(keys, return_inverse=True)[1].reshape(blocks.runs.shape)
    order = np.argsort(blocks.block, kind="stable")
    instances = np.bincount(blocks.block)
    starts = np.cumsum(instances) - instances
    sign = 1.0 if blocks.direction == "maximize" else -1.0
    for size in _sizes(n_draws, max(blocks.runs.size, len(instances) * k * k)):
        weights = rng.exponential(size=(size, weighed.max() + 1))[:, weighed] * ran
        total = np.maximum(weights.sum(axis=3), np.finfo(float).tiny)
        means = blocks.means + stretch * np.einsum("dmkr,mkr->dmk", weights, deviations) / total
        scores = np.add.reduceat(means[:, order], starts, axis=1) / instances[:, None]
        wins = wins_on_blocks(sign * scores, ties)
        yield Standings.on_blocks(sign * scores, ties, wins).total(), ratings(wins.sum(axis=-3, dtype=float))


def _sizes(n_draws: int, numbers: int) -> Iterator[int]:
    """Numbers of draws to make at a time, each of so many numbers."""
    most = max(_CHUNK // numbers, 1)
    for start in range(0, n_draws, most):
        yield min(most, n_draws - start)
