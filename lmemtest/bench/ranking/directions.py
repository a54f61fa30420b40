r"""Which of two algorithms a draw of the Bayesian signed-rank test favours, without a ROPE, for all pairs at once.

The larger of two advantages decides the sign of their sum. So with the weights in ascending order of the size of the
advantage, T_i the mass of the first i of them and s_i the sign of the i-th (that of the prior, at zero, is 0),

    P(left) - P(right) = sum_i s_i (T_i^2 - T_{i-1}^2) = sum_i (s_i - s_{i+1}) T_i^2,

and only masses before a change of sign count. Advantages of one size and opposite signs cancel: the mean of two orders,
with all positive ones first and with all of them last.

Only the sign of the sum is needed. It is taken from single precision, and from double where the first does not tell.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.core.arrays import Array, Index, Mask


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


@dataclass(frozen=True, eq=False)
class Directions:
    """The sums of squares of some pairs.

    Attributes
    ----------
    order : (orders, pairs, 1 + blocks) int
        Rows of the weights in ascending order of the advantages.
    coefficients : (orders, pairs, 1 + blocks) float
        Of the squares of their cumulative masses.
    n_rows : (pairs,) int
        Rows of the weights that a pair has.
    """

    order: Index
    coefficients: Array
    n_rows: Index

    @classmethod
    def of(cls, advantages: Array, tie: float) -> Directions:
        """Of pairs that `has_direction`; advantages are ``(pairs, blocks)``, NaN where one of the two has no score."""
        group = np.empty((len(advantages), advantages.shape[1] + 1), dtype=np.intp)
        size, sorted_group = _groups(advantages, tie)
        z = _with_prior(advantages)
        np.put_along_axis(group, np.argsort(np.abs(z), axis=1, kind="stable"), sorted_group, axis=1)
        sign = np.where(np.isnan(z) | (group == 0), 0.0, np.sign(z))
        orders = np.stack([np.lexsort((sign, group)), np.lexsort((-sign, group))])
        signs = np.take_along_axis(np.broadcast_to(sign, orders.shape), orders, axis=2)
        if (signs[0] == signs[1]).all():
            orders, signs = orders[:1], signs[:1]
        after = np.concatenate([signs[:, :, 1:], np.zeros((*signs.shape[:2], 1))], axis=2)
        return cls(orders, (signs - after) / len(orders), np.isfinite(size).sum(axis=1))

    def left(self, weights: Array, tie: float) -> Array:
        """In how many draws the left is favoured, ties one half, ``(pairs,)``; weights are ``(1 + blocks, draws)``.

        Probabilities that differ by at most `tie` are equal.
        """
        moves = (self.coefficients != 0.0).any(axis=(0, 2))
        found = np.where(moves, 0.0, 0.5 * weights.shape[1])
        single = (np.rint(weights / (weights.sum(axis=0) * _UNIT)) * _UNIT).astype(np.float32)
        parts = self._by_set if self._shared else self._by_pair
        # Coefficients alternate, and are 2 at most: a half unit of each weight counts four times, and rounding of a
        # square and of the sum up to it twice each.
        error = 8.0 * _UNIT * len(weights)
        for pairs, draws, difference in parts(single):
            larger = (difference > error).astype(np.float32)
            found[pairs] += np.where(moves[pairs], larger @ np.ones(larger.shape[1], dtype=np.float32), 0.0)
            near = np.abs(difference) <= error
            near[~moves[pairs]] = False
            pair, draw = np.divmod(np.flatnonzero(near), near.shape[1])
            np.add.at(found, pairs.start + pair, self._exactly(pairs.start + pair, weights[:, draws][:, draw].T, tie))
        return found

    def _exactly(self, pair: Index, weights: Array, tie: float) -> Array:
        """1 where the left is favoured, 0.5 where none is, else 0; `weights` has a row for each of the pairs."""
        mass = [np.take_along_axis(weights, order[pair], axis=1).cumsum(axis=1) for order in self.order]
        total = np.take_along_axis(mass[0], self.n_rows[pair, None] - 1, axis=1)[:, 0]
        difference = sum((c[pair] * T**2).sum(axis=1) for c, T in zip(self.coefficients, mass, strict=True)) / total**2
        return np.where(np.abs(difference) <= tie, 0.5, difference > 0.0)

    @property
    def _shared(self) -> bool:
        """Whether there are fewer sets of blocks than masses of pairs."""
        n = self.order.shape[2] - 1
        return n <= _MOST_BLOCKS and self.order.size > 2**n

    @cached_property
    def _of_sets(self) -> list[tuple[slice, sp.csr_array]]:
        """Coefficients of the squared mass of every set of blocks, numbered by its bits, ``(pairs, sets)`` in parts."""
        bits = np.concatenate([[0], 2 ** np.arange(self.order.shape[2] - 1)])
        which = bits[self.order].cumsum(axis=2)
        version, pair, place = np.nonzero(self.coefficients)
        at = version, pair, place
        shape = (self.order.shape[1], 2 * int(bits[-1]))
        whole = sp.csr_array((self.coefficients[at].astype(np.float32), (pair, which[at])), shape=shape)
        return [(slice(i, i + _PAIRS), whole[i : i + _PAIRS]) for i in range(0, shape[0], _PAIRS)]

    def _by_set(self, weights: NDArray[np.float32]) -> Iterator[tuple[slice, slice, NDArray[np.float32]]]:
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
            for pairs, coefficients in self._of_sets:
                yield pairs, slice(start, start + step), coefficients @ mass

    def _by_pair(self, weights: NDArray[np.float32]) -> Iterator[tuple[slice, slice, NDArray[np.float32]]]:
        """The differences from the masses of each pair."""
        step = max(1, _OF_PAIRS // weights.shape[1])
        coefficients = self.coefficients.astype(np.float32)
        for start in range(0, self.order.shape[1], step):
            at = slice(start, start + step)
            shape = (len(self.n_rows[at]), weights.shape[1])
            difference = np.zeros(shape, dtype=np.float32)
            for order, coefficient in zip(self.order[:, at], coefficients[:, at], strict=True):
                mass, term = np.zeros(shape, dtype=np.float32), np.empty(shape, dtype=np.float32)
                for row, c in zip(order.T, coefficient.T, strict=True):
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
