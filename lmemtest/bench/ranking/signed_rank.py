r"""Bayesian signed-rank test of paired scores, for all pairs of algorithms at once.

The distribution of the advantage of one algorithm over another on a benchmark, ``z``, is unknown; its prior is a
Dirichlet process of strength s = 1/2 at zero. After n benchmarks it is the weighted sample ``z_0 = 0, z_1, ..., z_n``
with weights ``w ~ Dirichlet(1/2, 1, ..., 1)``. For two benchmarks drawn from it, with r half the width of the region of
practical equivalence (ROPE),

    P(left)  = sum_ij w_i w_j [z_i + z_j >  2 r]        (the mean advantage of the two is above r)
    P(right) = sum_ij w_i w_j [z_i + z_j < -2 r]
    P(equal) = 1 - P(left) - P(right),

where a sum at the limit counts one half on each side of it. As w is uncertain, so are these three; the answer of the
test is how probable it is that each is the largest of them.

With z in descending order, those z_j which exceed ``2 r - z_i`` are the first c_i, so the double sum is a single one of
cumulative weights: O(n) per draw rather than O(n^2). Weights are standard gamma variables divided by their sum; a pair
without some of the benchmarks uses those of the others, which are Dirichlet, too. All pairs share them: the answer does
not depend on the order of algorithms, and exchanging two mirrors it. Without a ROPE only the sign of P(left) - P(right)
counts, which `Directions` has for all pairs at once.

References
----------
Benavoli, Corani, Demšar & Zaffalon (2017), Time for a change: a tutorial for comparing multiple classifiers through
Bayesian analysis, Journal of Machine Learning Research 18(77), 1-36;
Benavoli, Mangili, Corani, Zaffalon & Ruggeri (2014), A Bayesian Wilcoxon signed-rank test based on the Dirichlet
process, Proceedings of Machine Learning Research 32(2), 1026-1034
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from lmemtest.bench.ranking.directions import Directions, has_direction
from lmemtest.core.replicates import progress_bar

if TYPE_CHECKING:
    from lmemtest.core.arrays import Array, Index


PRIOR = 0.5  # strength of the prior in benchmarks, all of it at zero
_DRAWN = 2**14  # weights that are drawn at a time: other numbers of them would be other draws
_TOGETHER = 2**17  # weights that are used at a time: 1 MB
_TIE = 1e-12  # probabilities that differ by less are equal but for rounding


def signed_rank(advantages: Array, rope: Array, *, n_draws: int, rng: np.random.Generator, tie: float = 0.0) -> Array:
    """Posterior probabilities that left better, equivalent and right better is the most probable outcome.

    `advantages` (pairs, blocks) of left over right, NaN where one of them has no score; `rope` (pairs,) >= 0; sums that
    differ by at most `tie` are equal. Returns (pairs, 3). A pair without blocks knows the prior only:

    >>> z = np.array([[0.3, 0.1, 0.4, 0.2, -0.1], [0.0, 0.0, 0.0, 0.0, 0.0], [np.nan] * 5])
    >>> signed_rank(z, np.zeros(3), n_draws=10_000, rng=np.random.default_rng(0)).round(2)
    array([[0.98, 0.  , 0.02],
           [0.5 , 0.  , 0.5 ],
           [0.5 , 0.  , 0.5 ]])
    """
    out = np.zeros((len(advantages), 3))
    by_direction = (rope == 0.0) & has_direction(advantages, tie)
    directions = Directions.of(advantages[by_direction], tie)
    pairs = [(i, outcomes_of(advantages[i], rope[i], tie)) for i in np.flatnonzero(~by_direction)]
    with progress_bar(n_draws, None, "Signed ranks") as show:
        for weights in _together(_gamma_weights(advantages.shape[1], n_draws, rng)):
            left = directions.left(weights, _TIE)
            out[by_direction] += np.stack([left, np.zeros(len(left)), weights.shape[1] - left], axis=1)
            for i, outcomes in pairs:
                chances = outcomes(weights)
                largest = chances >= chances.max(axis=0) - _TIE
                out[i] += (largest / largest.sum(axis=0)).sum(axis=1)
            show(weights.shape[1])
    return out / n_draws


def outcome_draws(
    advantages: Array, rope: Array, *, n_draws: int, rng: np.random.Generator, tie: float = 0.0
) -> Iterator[Array]:
    """Draws of the probabilities of left better, equivalent and right better: (pairs, 3, draws), some at a time."""
    pairs = [outcomes_of(z, r, tie) for z, r in zip(advantages, rope, strict=True)]
    for weights in _gamma_weights(advantages.shape[1], n_draws, rng):
        yield np.stack([outcomes(weights) for outcomes in pairs])


def _gamma_weights(n: int, n_draws: int, rng: np.random.Generator) -> Iterator[Array]:
    """Weights before they are divided by their sum, (1 + n, draws) at a time: of the prior, then of the blocks."""
    size = max(1, _DRAWN // (n + 1))
    for start in range(0, n_draws, size):
        count = min(size, n_draws - start)
        yield np.concatenate([rng.standard_gamma(PRIOR, (1, count)), rng.standard_exponential((n, count))])


def _together(parts: Iterator[Array]) -> Iterator[Array]:
    """The same draws, more of them at a time where there are many blocks."""
    held: list[Array] = []
    for part in parts:
        held.append(part)
        if len(held) * part.size >= _TOGETHER or len(held) * part.shape[1] >= _TOGETHER // 128:
            yield np.concatenate(held, axis=1)
            held = []
    if held:
        yield np.concatenate(held, axis=1)


def outcomes_of(advantages: Array, rope: float, tie: float) -> Callable[[Array], Array]:
    """Of one pair: weights to probabilities of left better, equivalent and right better, ``(3, draws)``."""
    z = np.concatenate([[0.0], advantages])
    order = np.argsort(-z, kind="stable")[: int(np.isfinite(z).sum())]  # descending, NaN last
    ascending = z[order][::-1]

    def beyond(limit: float) -> tuple[Index, Index | None]:
        """Numbers of z_j whose sum with z_i is above the limit; those at it too, where any is."""
        least = limit - z[order]
        strictly = len(order) - np.searchsorted(ascending, least + tie, side="right")
        at = len(order) - np.searchsorted(ascending, least - tie, side="left")
        return strictly, None if np.array_equal(strictly, at) else at

    limits = [beyond(2.0 * rope), *([beyond(-2.0 * rope)] if rope > 0 else [])]

    def outcomes(weights: Array) -> Array:
        w = weights[order]
        mass = np.zeros((len(w) + 1, w.shape[1]))  # of the first j
        for before, row, after in zip(mass[:-1], w, mass[1:], strict=True):  # numpy's own cumsum walks along columns
            np.add(before, row, out=after)
        above = [_double_sum(w, mass, *limit) / mass[-1] ** 2 for limit in limits]
        upper, lower = above[0], 1.0 - above[-1]
        return np.stack([upper, 1.0 - upper - lower if rope > 0 else np.zeros(len(upper)), lower])

    return outcomes


def _double_sum(w: Array, mass: Array, strictly: Index, at: Index | None) -> Array:
    """Sum of w_i w_j over the pairs strictly beyond a limit, and half of that over those at it."""
    found: Array = np.einsum("id,id->d", w, mass[strictly])
    if at is None:
        return found
    tied = np.flatnonzero(at != strictly)
    return found + 0.5 * np.einsum("id,id->d", w[tied], mass[at[tied]] - mass[strictly[tied]])
