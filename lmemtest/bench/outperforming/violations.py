"""Violation ratio of two samples: how much is missing to one being better at every quantile, bounded and tested.

Samples are gains, of which more is better, and ascending. Both quantile functions are constant between the multiples
of 1/n and of 1/m, so that integrals over them are sums over these pieces.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import combinations, combinations_with_replacement
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import gammaln

from lmemtest.core.resampling import batches, dealt, drawn_again, p_of_draws, sign_patterns
from lmemtest.core.rounding import tolerance

if TYPE_CHECKING:
    from lmemtest.core.arrays import Array, Index

    Pieces = tuple[Array, Index, Index]
    _Drawn = tuple[Index, Index, Array]  # pairs of samples by their numbers in `_draws_of`, and probabilities

_AT_ONCE = 200_000  # scores in memory: more do not fit the cache


def pieces_of(n: int, m: int) -> Pieces:
    """Where the quantile functions of samples of n and m are constant: widths, and the order statistics there.

    In whole multiples of 1 / (n m), so that no rounding moves a jump.
    """
    ends = np.unique(np.concatenate([np.arange(n + 1) * m, np.arange(m + 1) * n]))
    return np.diff(ends) / (n * m), ends[:-1] // m, ends[:-1] // n


def _signed_squares(left: Array, right: Array, pieces: Pieces) -> Array:
    """Squared distances of the quantiles, ``(..., pieces)``, negative where left is worse."""
    width, at_left, at_right = pieces
    alike = len(width) == left.shape[-1] == right.shape[-1]
    distance = left - right if alike else left[..., at_left] - right[..., at_right]
    return np.asarray(distance * np.abs(distance))


def violation_ratio(left: Array, right: Array, pieces: Pieces) -> Array:
    """Share of the squared distance where left is worse; one half if there is no distance.

    ``(..., n)`` and ``(..., m)`` ascending gains.

    >>> float(violation_ratio(np.array([0.0, 3.0]), np.array([1.0, 1.0]), pieces_of(2, 2)))  # 1 of 1 + 4
    0.2
    """
    squares = _signed_squares(left, right, pieces)
    net, total = squares @ pieces[0], np.abs(squares) @ pieces[0]
    return np.asarray(0.5 - 0.5 * np.divide(net, total, out=np.zeros_like(total), where=total > 0.0))


def _smallest(values: Array, count: int) -> Array:
    """The smallest `count` of the values, in any order."""
    return np.partition(values, count - 1)[:count] if len(values) > count else values


def _n_below(places: Index) -> Array:
    """Of samples drawn from n, ascending places ``(samples, n)``: how many have no place above theirs, with itself."""
    n = places.shape[1]
    ways = np.eye(1, n).repeat(len(places), axis=0)  # by the last place
    for i in range(n):
        ways = np.cumsum(ways, axis=1) * (np.arange(n) <= places[:, [i]])
    return np.asarray(ways.sum(axis=1))


def _with_ties(samples: Sequence[Array]) -> list[Array]:
    """Samples in which scores that differ by rounding alone are equal."""
    pooled = np.concatenate(list(samples))
    order = np.argsort(pooled, kind="stable")
    first = np.concatenate([[True], np.diff(pooled[order]) > tolerance(pooled)])
    pooled[order] = pooled[order][np.flatnonzero(first)[np.cumsum(first) - 1]]
    return np.split(pooled, np.cumsum([len(sample) for sample in samples])[:-1])


@dataclass(frozen=True, slots=True)
class Comparer:
    """Compares samples at the level `alpha` of one claim, with `n_draws` bootstrap draws and permutations.

    Independent samples are drawn and permuted by themselves; `paired` ones, of equal length and in the order of their
    pairs, together, and permuted within pairs.
    """

    alpha: float
    n_draws: int
    paired: bool
    _exchanges: dict[tuple[int, int], tuple[Index, Index, bool]] = field(default_factory=dict)
    _multisets: dict[int, tuple[Index, Array]] = field(default_factory=dict)
    _most: dict[tuple[int, int], tuple[_Drawn, _Drawn]] = field(default_factory=dict)

    def violations(self, samples: Sequence[Array], rng: np.random.Generator) -> tuple[Array, Array, Array]:
        """Of every ordered pair of samples of gains, left by right, ``(k, k)``: ratio, its upper bound, p-value.

        NaN if unknown.
        """
        samples, k = _with_ties(samples), len(samples)
        ratio, bound, p = np.full((3, k, k), np.nan)
        ordered = [np.sort(sample) for sample in samples]
        pairs = [(x, y) for x, y in combinations(range(k), 2) if min(len(samples[x]), len(samples[y])) > 1]
        pieces = {(x, y): pieces_of(len(samples[x]), len(samples[y])) for x, y in combinations(range(k), 2)}
        for x, y in pieces:
            ratio[x, y] = violation_ratio(ordered[x], ordered[y], pieces[x, y])
            ratio[y, x] = 1.0 - ratio[x, y]
        drawn_pairs: list[tuple[int, int]] = []
        counted: dict[tuple[int, int], list[tuple[int, int]]] = defaultdict(list)
        for x, y in pairs:
            sizes = len(samples[x]), len(samples[y])
            (counted[sizes] if self.enumerates(*sizes) else drawn_pairs).append((x, y))
        for of_sizes in counted.values():
            first, second = np.array(of_sizes).T
            sides = (np.array([ordered[i] for i in side]) for side in (first, second))
            bound[first, second], bound[second, first] = self._enumerated(*sides)
        beyond = self.n_draws + 1 - math.ceil((self.n_draws + 1) * (1.0 - self.alpha) - 1e-9)
        ends: dict[tuple[int, int], tuple[Array, Array]] = dict.fromkeys(drawn_pairs, (np.empty(0), np.empty(0)))
        for drawn in self._drawn(samples, rng) if drawn_pairs else ():
            for (x, y), (least, most) in ends.items():
                values = violation_ratio(drawn[x], drawn[y], pieces[x, y])
                ends[x, y] = _smallest(np.append(least, values), beyond), -_smallest(-np.append(most, values), beyond)
        for (x, y), (least, most) in ends.items():
            bound[x, y], bound[y, x] = most.min(), 1.0 - least.max()
        for x, y in pairs:
            p[x, y], p[y, x] = self._tested(samples[x], samples[y], pieces[x, y], rng)
        return ratio, bound, p

    def enumerates(self, n: int, m: int) -> bool:
        """Whether all samples that can be drawn from two of these sizes are fewer than the draws."""
        return not self.paired and math.comb(2 * n - 1, n) * math.comb(2 * m - 1, m) <= self.n_draws

    def work(self, sizes: Sequence[int]) -> float:
        """Distances of quantiles in the bounds of samples of these sizes."""
        work = 0.0
        for n, m in combinations(sizes, 2):
            draws = math.comb(2 * n - 1, n) * math.comb(2 * m - 1, m) if self.enumerates(n, m) else self.n_draws
            work += draws * (n if n == m else n + m)
        return work

    def _enumerated(self, left: Array, right: Array) -> tuple[Array, Array]:
        """The bounds of the bootstrap of ``(pairs, n)`` and ``(pairs, m)`` without drawing, ``(pairs,)`` each.

        All samples that can be drawn, each with its probability: the smallest ratio with at most the probability
        `alpha` beyond it, and one minus the largest.
        """
        n, m = left.shape[1], right.shape[1]
        out = np.empty((2, len(left)))
        at_x, at_y = self._draws_of(n)[0], self._draws_of(m)[0]
        for side, (of_x, of_y, p) in enumerate(self._extremes(n, m)):
            step = max(1, _AT_ONCE // len(p))
            for start in range(0, len(left), step):
                part = slice(start, start + step)
                x, y = left[part], right[part]
                net, total = np.zeros((2, len(x), len(p)))
                for width, i, j in zip(*pieces_of(n, m), strict=True):
                    distance = x[:, at_x[of_x, i]] - y[:, at_y[of_y, j]]
                    square = width * distance * distance
                    total += square
                    net += np.copysign(square, distance, out=square)
                ratio = 0.5 - 0.5 * np.divide(net, total, out=np.zeros_like(total), where=total > 0.0)
                order = np.argsort(ratio if side else -ratio, axis=1, kind="stable")
                last = np.argmax(np.cumsum(p[order], axis=1) > self.alpha * (1.0 + 1e-9), axis=1)
                bound = np.take_along_axis(ratio, np.take_along_axis(order, last[:, None], axis=1), axis=1)[:, 0]
                out[side, part] = 1.0 - bound if side else bound
        return out[0], out[1]

    def _extremes(self, n: int, m: int) -> tuple[_Drawn, _Drawn]:
        """Numbers and probabilities of the pairs of samples that can have the largest ratios, and the smallest.

        The ratio of a pair is exceeded, or met, by those of all with lower places in left and higher ones in right.
        So many as `count` have more than the probability `alpha`, and what so many others exceed is not among them.
        """
        if (n, m) not in self._most:
            (at_x, p_x), (at_y, p_y) = self._draws_of(n), self._draws_of(m)
            count = math.floor(self.alpha / (p_x.min() * p_y.min())) + 2
            extremes = []
            for x, y in ((at_x, m - 1 - at_y[:, ::-1]), (n - 1 - at_x[:, ::-1], at_y)):
                i, j = np.nonzero(_n_below(x)[:, None] * _n_below(y) <= count)
                extremes.append((i, j, p_x[i] * p_y[j]))
            self._most[n, m] = extremes[0], extremes[1]
        return self._most[n, m]

    def _draws_of(self, n: int) -> tuple[Index, Array]:
        """Places of the values in all samples that can be drawn from n, ascending, and their probabilities."""
        if n not in self._multisets:
            chosen = np.array(list(combinations_with_replacement(range(n), n)))
            times = (chosen[:, :, None] == np.arange(n)).sum(axis=1)
            self._multisets[n] = chosen, np.exp(gammaln(n + 1.0) - gammaln(times + 1.0).sum(axis=1) - n * math.log(n))
        return self._multisets[n]

    def smallest_p(self, n: int, m: int) -> float:
        """The smallest p-value that a test of samples of these sizes can have."""
        count = 2**n if self.paired else math.comb(n + m, n)
        return 1.0 / min(count, self.n_draws + 1)

    def _drawn(self, samples: Sequence[Array], rng: np.random.Generator) -> Iterator[list[Array]]:
        """Samples drawn again, ascending, some draws at a time, each ``(draws, n)``."""
        for batch in batches(self.n_draws, max(map(len, samples)), _AT_ONCE):
            if self.paired:
                index = drawn_again(len(samples[0]), batch, rng)
                yield [np.sort(sample[index], axis=1) for sample in samples]
            else:
                yield [np.sort(sample)[np.sort(drawn_again(len(sample), batch, rng), axis=1)] for sample in samples]

    def _tested(self, left: Array, right: Array, pieces: Pieces, rng: np.random.Generator) -> tuple[float, float]:
        """p-values of the permutation test that both have one distribution, against left and against right better."""
        n, m = len(left), len(right)
        if (n, m) not in self._exchanges:
            self._exchanges[n, m] = self._exchange(n, m, rng)
        a, b, exact = self._exchanges[n, m]
        pooled = np.concatenate([left, right])
        if not self.paired:
            pooled = np.sort(pooled)
        net = np.empty(len(a))
        step = max(1, _AT_ONCE // (n + m))
        for start in range(0, len(a), step):
            x, y = pooled[a[start : start + step]], pooled[b[start : start + step]]
            if self.paired:
                x, y = np.sort(x, axis=1), np.sort(y, axis=1)
            net[start : start + step] = _signed_squares(x, y, pieces) @ pieces[0]
        observed = float(_signed_squares(np.sort(left), np.sort(right), pieces) @ pieces[0])
        slack = tolerance(net)
        better, worse = (net >= observed - slack).sum(), (net <= observed + slack).sum()
        return p_of_draws(float(better), len(net), exact=exact), p_of_draws(float(worse), len(net), exact=exact)

    def _exchange(self, n: int, m: int, rng: np.random.Generator) -> tuple[Index, Index, bool]:
        """Places in the pooled sample that left and right get, ascending, and whether these are all there are."""
        if self.paired:
            signs, exact = sign_patterns(n + 1, self.n_draws, rng)  # of all patterns the first sign is a plus
            turned, place = signs[:, 1:] < 0.0, np.arange(n)
            return np.where(turned, place + n, place), np.where(turned, place, place + n), exact
        exact = math.comb(n + m, n) <= self.n_draws
        if exact:
            chosen = np.array(list(combinations(range(n + m), n)))
            mine = np.zeros((len(chosen), n + m), dtype=bool)
            np.put_along_axis(mine, chosen, values=True, axis=1)
        else:
            mine = dealt(np.arange(n + m) < n, self.n_draws, rng)
        return np.nonzero(mine)[1].reshape(-1, n), np.nonzero(~mine)[1].reshape(-1, m), exact
