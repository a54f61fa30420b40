"""How well algorithms do over blocks: measures that are functions of weighted sums over the blocks.

With weights of one they are the estimates; random weights, of the blocks or of the runs within them, show how the
measures would vary.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lmemtest.studies.ranking.bradley_terry import ELO, ratings

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.studies.ranking.blocks import Blocks

    Array = NDArray[np.float64]

MEASURES = ("elo", "win_rate", "mean_rank", "p_best", "gap_closed")
CENTRE = 1000.0  # rating of the reference
_LEAST_WEIGHT = 1e-6  # of a virtual block: less is nothing, and would make the equations of a fit singular
_CHUNK = 4_000_000  # numbers at a time


@dataclass(frozen=True, slots=True, eq=False)
class Standings:
    """Weighted sums over blocks, for any number of weightings: leading axes.

    Attributes
    ----------
    wins, games : (..., k, k) float
        Comparisons that the row won of the column (ties one half), and all of them.
    complete : (...) float
        Blocks on which all algorithms ran; only these are in the sums that follow.
    ranks, firsts : (..., k) float
        1 best, ties the mean of theirs; first places, ties split.
    uneven : (...) float
        Complete blocks on which not all algorithms tie.
    gaps : (..., k) float
        ``(score - worst) / (best - worst)``, on uneven blocks.
    """

    wins: Array
    games: Array
    complete: Array
    ranks: Array
    firsts: Array
    uneven: Array
    gaps: Array

    @classmethod
    def of(cls, sums: Array, k: int) -> Standings:
        """From sums of the rows of `tallies`."""
        ends = np.cumsum([k * k, k * k, 1, k, k, 1])
        wins, games, complete, ranks, firsts, uneven, gaps = np.split(sums, ends, axis=-1)
        square = (*sums.shape[:-1], k, k)
        return cls(
            wins=wins.reshape(square),
            games=games.reshape(square),
            complete=complete[..., 0],
            ranks=ranks,
            firsts=firsts,
            uneven=uneven[..., 0],
            gaps=gaps,
        )

    def measures(self, reference: int | None) -> dict[str, Array]:
        """Each of `MEASURES`, ``(..., k)``; NaN where no block has all algorithms."""
        theta = ratings(self.wins)  # of mean zero
        zero = 0.0 if reference is None else theta[..., reference, None]
        with np.errstate(invalid="ignore"):
            return {
                "elo": CENTRE + ELO * (theta - zero),
                "win_rate": self.wins.sum(axis=-1) / self.games.sum(axis=-1),
                "mean_rank": self.ranks / self.complete[..., None],
                "p_best": self.firsts / self.complete[..., None],
                "gap_closed": self.gaps / self.uneven[..., None],
            }


def tallies(gains: Array, ties: Array) -> Array:
    """What each block adds to `Standings`, flat: ``(..., n, 2 k^2 + 3 k + 2)``.

    `gains` are scores of which more is better, ``(..., n, k)``; those of a block that differ by no more than its number
    in `ties` are tied.
    """
    k = gains.shape[-1]
    difference = gains[..., :, None] - gains[..., None, :]
    others = ~np.eye(k, dtype=bool)
    games = np.isfinite(difference) & others
    tie = ties[:, None, None]
    wins = np.where(games, (difference > tie) + 0.5 * (np.abs(difference) <= tie), 0.0)
    complete = np.isfinite(gains).all(axis=-1, keepdims=True)
    ranks = np.where(complete, k - wins.sum(axis=-1), 0.0)
    best, worst = gains.max(axis=-1, keepdims=True), gains.min(axis=-1, keepdims=True)
    first = complete & (gains >= best - ties[:, None])
    uneven = complete & (best - worst > ties[:, None])
    gaps = np.divide(gains - worst, best - worst, out=np.zeros(gains.shape), where=np.broadcast_to(uneven, gains.shape))
    flat = (*gains.shape[:-1], k * k)
    parts = [
        wins.reshape(flat),
        games.reshape(flat),
        complete,
        ranks,
        first / np.maximum(first.sum(-1, keepdims=True), 1),
    ]
    return np.concatenate([*parts, uneven, gaps], axis=-1)


def drawn_over_blocks(records: Array, k: int, n_draws: int, rng: np.random.Generator) -> Iterator[Standings]:
    """Standings with random weights of the blocks, whose `tallies` are given, some draws at a time.

    Weights are exponential, which is Rubin's Bayesian bootstrap. Two virtual blocks, with the algorithms in a random
    order and in the reverse order, have weights with the gamma distribution of shape 1/2; so for two algorithms the
    share of wins w of n has the distribution Beta(w + 1/2, n - w + 1/2).
    """
    for size in _sizes(n_draws, records.shape[1]):
        order = rng.permuted(np.tile(np.arange(float(k)), (size, 1)), axis=1)
        virtual = tallies(np.stack([order, -order], axis=1), np.zeros(2))
        weights = rng.exponential(size=(size, len(records)))
        their = np.maximum(rng.gamma(0.5, size=(size, 2, 1)), _LEAST_WEIGHT)
        yield Standings.of(weights @ records + (their * virtual).sum(axis=1), k)


def drawn_over_runs(blocks: Blocks, ties: Array, n_draws: int, rng: np.random.Generator) -> Iterator[Standings]:
    """Standings with random weights of the runs of each algorithm on each instance, some draws at a time.

    Deviations of a weighted mean of r runs have (r - 1) / (r + 1) times the estimated variance of a mean, and are
    stretched by the root of the inverse.
    """
    k, n_runs = len(blocks.algorithms), blocks.n_runs
    ran = np.isfinite(blocks.runs)
    deviations = np.where(ran, blocks.runs - blocks.means[:, :, None], 0.0)
    stretch = np.sqrt((n_runs + 1.0) / np.maximum(n_runs - 1.0, 1.0))
    order = np.argsort(blocks.block, kind="stable")
    instances = np.bincount(blocks.block)
    starts = np.cumsum(instances) - instances
    sign = 1.0 if blocks.direction == "maximize" else -1.0
    for size in _sizes(n_draws, max(blocks.runs.size, len(instances) * (2 * k * k + 3 * k + 2))):
        weights = rng.exponential(size=(size, *blocks.runs.shape)) * ran
        total = np.maximum(weights.sum(axis=3), np.finfo(float).tiny)
        means = blocks.means + stretch * np.einsum("dmkr,mkr->dmk", weights, deviations) / total
        scores = np.add.reduceat(means[:, order], starts, axis=1) / instances[:, None]
        yield Standings.of(tallies(sign * scores, ties).sum(axis=1), k)


def _sizes(n_draws: int, numbers: int) -> Iterator[int]:
    """Numbers of draws to make at a time, each of so many numbers."""
    most = max(_CHUNK // numbers, 1)
    for start in range(0, n_draws, most):
        yield min(most, n_draws - start)
