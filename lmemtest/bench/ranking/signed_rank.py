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
counts, which `directions_of` has for all pairs at once.

References
----------
Benavoli, Corani, Demšar & Zaffalon (2017), Time for a change: a tutorial for comparing multiple classifiers through
Bayesian analysis, Journal of Machine Learning Research 18(77), 1-36;
Benavoli, Mangili, Corani, Zaffalon & Ruggeri (2014), A Bayesian Wilcoxon signed-rank test based on the Dirichlet
process, Proceedings of Machine Learning Research 32(2), 1026-1034

Which of two algorithms a draw of the Bayesian signed-rank test favours, without a ROPE, for all pairs at once.
The larger of two advantages decides the sign of their sum. So with the weights in ascending order of the size of the
advantage, T_i the mass of the first i of them and s_i the sign of the i-th (that of the prior, at zero, is 0),

    P(left) - P(right) = sum_i s_i (T_i^2 - T_{i-1}^2) = sum_i (s_i - s_{i+1}) T_i^2,

and only masses before a change of sign count. Advantages of one size and opposite signs cancel: the mean of two orders,
with all positive ones first and with all of them last.

Only the sign of the sum is needed. It is taken from single precision, and from double where the first does not tell.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from lmemtest.core.replicates import progress_bar

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.core.arrays import Array, Index, Mask


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
    in_favour_of_left = directions_of(advantages[by_direction], tie)
    pairs = [(i, outcomes_of(advantages[i], rope[i], tie)) for i in np.flatnonzero(~by_direction)]
    with progress_bar(n_draws, None, "Signed ranks") as show:
        for weights in _together(_gamma_weights(advantages.shape[1], n_draws, rng)):
            left = in_favour_of_left(weights, _TIE)
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


# ------------------------------------------------------------------------------------------- directions, without a ROPE


_UNIT = 2.0**-23  # of weights: sums of them below 2 are exact in single precision
_MOST_BLOCKS = 15  # masses of all sets of so many blocks, shared by the pairs, are cheaper than those of each pair
_OF_SETS = 2**20  # masses of sets at a time: 4 MB
_PAIRS = 2**12  # whose differences are held at a time
_OF_PAIRS = 2**15  # masses of pairs at a time: 128 kB, which stay in the cache of a processor


def has_direction(advantages: Array, tie: float) -> Mask:
    """Which pairs have advantages that are equal in size, or clearly not, ``(pairs,)``."""
    size, group = _groups(advantages, tie)
    widest = np.where(group == 0, 0.5 * tie, tie)  # zeros are added to each other
    start = np.maximum.accumulate(np.where(np.diff(group, axis=1, prepend=-1) > 0, size, 0.0), axis=1)
    return np.asarray((~(size - start > widest)).all(axis=1))


def directions_of(advantages: Array, tie: float) -> Callable[[Array, float], Array]:
    """Of pairs that `has_direction`: a function of weights to the draws in which the left is favoured.

    Advantages are ``(pairs, blocks)``, NaN where one of the two has no score. The function takes weights ``(1 + blocks,
    draws)`` and by how much probabilities differ that are equal, and counts draws, ties one half, ``(pairs,)``.
    """
    group = np.empty((len(advantages), advantages.shape[1] + 1), dtype=np.intp)
    size, sorted_group = _groups(advantages, tie)
    z = _with_prior(advantages)
    np.put_along_axis(group, np.argsort(np.abs(z), axis=1, kind="stable"), sorted_group, axis=1)
    sign = np.where(np.isnan(z) | (group == 0), 0.0, np.sign(z))
    # rows of the weights in ascending order of the advantages, and coefficients of the squares of cumulative masses
    order = np.stack([np.lexsort((sign, group)), np.lexsort((-sign, group))])  # (orders, pairs, 1 + blocks)
    signs = np.take_along_axis(np.broadcast_to(sign, order.shape), order, axis=2)
    if (signs[0] == signs[1]).all():
        order, signs = order[:1], signs[:1]
    after = np.concatenate([signs[:, :, 1:], np.zeros((*signs.shape[:2], 1))], axis=2)
    coefficients, n_rows = (signs - after) / len(order), np.isfinite(size).sum(axis=1)
    moves = (coefficients != 0.0).any(axis=(0, 2))
    n = order.shape[2] - 1
    # where there are fewer sets of blocks than masses of pairs, the masses of all sets
    by_set = _coefficients_of_sets(order, coefficients) if n <= _MOST_BLOCKS and order.size > 2**n else None

    def exactly(pair: Index, weights: Array, equal: float) -> Array:
        """1 where the left is favoured, 0.5 where none is, else 0; `weights` has a row for each of the pairs."""
        mass = [np.take_along_axis(weights, one[pair], axis=1).cumsum(axis=1) for one in order]
        total = np.take_along_axis(mass[0], n_rows[pair, None] - 1, axis=1)[:, 0]
        difference = sum((c[pair] * T**2).sum(axis=1) for c, T in zip(coefficients, mass, strict=True)) / total**2
        return np.where(np.abs(difference) <= equal, 0.5, difference > 0.0)

    def left(weights: Array, equal: float) -> Array:
        found = np.where(moves, 0.0, 0.5 * weights.shape[1])
        single = (np.rint(weights / (weights.sum(axis=0) * _UNIT)) * _UNIT).astype(np.float32)
        parts = _by_pair(single, order, coefficients) if by_set is None else _by_set(single, by_set)
        # Coefficients alternate, and are 2 at most: a half unit of each weight counts four times, and rounding of a
        # square and of the sum up to it twice each.
        error = 8.0 * _UNIT * len(weights)
        for pairs, draws, difference in parts:
            larger = (difference > error).astype(np.float32)
            found[pairs] += np.where(moves[pairs], larger @ np.ones(larger.shape[1], dtype=np.float32), 0.0)
            near = np.abs(difference) <= error
            near[~moves[pairs]] = False
            pair, draw = np.divmod(np.flatnonzero(near), near.shape[1])
            np.add.at(found, pairs.start + pair, exactly(pairs.start + pair, weights[:, draws][:, draw].T, equal))
        return found

    return left


def _coefficients_of_sets(order: Index, coefficients: Array) -> list[tuple[slice, sp.csr_array]]:
    """Coefficients of the squared mass of every set of blocks, numbered by its bits, ``(pairs, sets)`` in parts."""
    bits = np.concatenate([[0], 2 ** np.arange(order.shape[2] - 1)])
    which = bits[order].cumsum(axis=2)
    version, pair, place = np.nonzero(coefficients)
    at = version, pair, place
    shape = (order.shape[1], 2 * int(bits[-1]))
    whole = sp.csr_array((coefficients[at].astype(np.float32), (pair, which[at])), shape=shape)
    return [(slice(i, i + _PAIRS), whole[i : i + _PAIRS]) for i in range(0, shape[0], _PAIRS)]


def _by_set(
    weights: NDArray[np.float32], of_sets: list[tuple[slice, sp.csr_array]]
) -> Iterator[tuple[slice, slice, NDArray[np.float32]]]:
    """The differences from the masses of all sets of blocks."""
    n_sets = 2 ** (len(weights) - 1)
    step = max(1, _OF_SETS // n_sets)
    for start in range(0, weights.shape[1], step):
        w = np.ascontiguousarray(weights[:, start : start + step])
        mass = np.empty((n_sets, w.shape[1]), dtype=np.float32)
        mass[0] = w[0]
        for i, row in enumerate(w[1:]):
            np.add(mass[: 2**i], row, out=mass[2**i : 2 ** (i + 1)])
        mass *= mass
        for pairs, coefficients in of_sets:
            yield pairs, slice(start, start + step), coefficients @ mass


def _by_pair(
    weights: NDArray[np.float32], order: Index, coefficients: Array
) -> Iterator[tuple[slice, slice, NDArray[np.float32]]]:
    """The differences from the masses of each pair."""
    step = max(1, _OF_PAIRS // weights.shape[1])
    for start in range(0, order.shape[1], step):
        at = slice(start, start + step)
        shape = (len(order[0, at]), weights.shape[1])
        difference = np.zeros(shape, dtype=np.float32)
        for rows, coefficient in zip(order[:, at], coefficients[:, at].astype(np.float32), strict=True):
            mass, term = np.zeros(shape, dtype=np.float32), np.empty(shape, dtype=np.float32)
            for row, c in zip(rows.T, coefficient.T, strict=True):
                mass += np.take(weights, row, axis=0, out=term, mode="clip")
                np.multiply(mass, mass, out=term)
                term *= c[:, None]
                difference += term
        yield at, slice(None), difference


def _with_prior(advantages: Array) -> Array:
    return np.concatenate([np.zeros((len(advantages), 1)), advantages], axis=1)


def _groups(advantages: Array, tie: float) -> tuple[Array, Index]:
    """Sizes of the advantages and of the prior's zero in ascending order, NaN last, and which of them are equal."""
    size = np.sort(np.abs(_with_prior(advantages)), axis=1)
    return size, (~(np.diff(size, axis=1, prepend=0.0) <= tie)).cumsum(axis=1)
