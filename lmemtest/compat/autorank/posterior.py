"""The posterior of a pair of populations, in the form of baycomp's, whose objects Autorank returns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest.bench.ranking.signed_rank import outcome_draws, signed_rank
from lmemtest.core.rounding import tolerance
from lmemtest.core.validate import resolve_rng

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Index = NDArray[np.intp]


@dataclass(frozen=True, eq=False, kw_only=True)
class Posterior:
    """The Bayesian signed-rank test of one pair.

    Attributes
    ----------
    chances : tuple of float
        How probable it is that each of three outcomes is the most probable one: left larger, practically equivalent,
        right larger.
    advantages : (n,) float
        Left minus right on the samples.
    rope, tie : float
        Differences that do not matter, and differences that are rounding.
    n_draws, seed : int
        From which `sample` is made.
    names : tuple of str
    """

    chances: tuple[float, ...]
    advantages: Array = field(repr=False)
    rope: float
    tie: float
    n_draws: int
    seed: int
    names: tuple[str, str]

    def probs(self, with_rope: bool = True) -> tuple[float, ...]:
        """`chances`, or those of left and right alone, which are NaN if all draws are of equivalence."""
        if with_rope:
            return self.chances
        left, _, right = self.chances
        decided = left + right if left + right > 0.0 else float("nan")
        return left / decided, right / decided

    @cached_property
    def sample(self) -> Array:
        """Draws of the probabilities of the three outcomes, ``(n_draws, 3)``."""
        generator = np.random.default_rng(self.seed)
        pair = self.advantages[None], np.array([self.rope])
        draws = outcome_draws(*pair, n_draws=self.n_draws, rng=generator, tie=self.tie)
        return np.concatenate([part[0].T for part in draws])

    def plot(self, names: tuple[str, str] | None = None) -> Figure:
        """A histogram of the draws, or a triangle if practical equivalence is among the outcomes."""
        from lmemtest.plots._posterior_draws import draw_posterior

        return draw_posterior(self.sample, self.chances, names or self.names).figure.figure


def posteriors(
    x: Array, left: Index, right: Index, rope: Array, n_draws: int, rng: Any, names: Sequence[str]
) -> list[Posterior]:
    """The posteriors of pairs of columns, each with its own ROPE; all of them share their weights."""
    seed = int(resolve_rng(rng).integers(2**63))
    advantages, tie = (x[:, left] - x[:, right]).T, tolerance(x)
    chances = signed_rank(advantages, rope, n_draws=n_draws, rng=np.random.default_rng(seed), tie=tie)
    return [
        Posterior(
            chances=tuple(map(float, row)),
            advantages=z,
            rope=float(r),
            tie=tie,
            n_draws=n_draws,
            seed=seed,
            names=(names[i], names[j]),
        )
        for row, z, r, i, j in zip(chances, advantages, rope, left, right, strict=True)
    ]
