"""Intervals of the probability P that a run of A is better than one of B, ties counted half.

Counts are wins, ties and losses of A, ``(3, ...)``: n pairs hold w wins, t ties and l losses, and P is estimated by
(w + t / 2) / n.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import special

from lmemtest.core.proportions import clopper_pearson, wilson, worth_in_pairs
from lmemtest.core.resampling import drawn_interval
from lmemtest.core.rounding import below
from lmemtest.lmm.distributions.student import df_of_sum, t_quantile

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from lmemtest.core.arrays import Array, Index, Mask


PAIRED = ("score", "exact", "percentile", "bca")
UNPAIRED = ("score", "logit", "percentile")
FEW = 5  # pairs, below which four wins of four would be significant by the score interval, and the exact one is taken
_HALVINGS = 60  # an interval of length 1 to the last digit


def counts_of(signs: ArrayLike) -> Array:
    """Counts of the signs of the differences, 1 where A is better, in the last axis."""
    s = np.asarray(signs)
    return np.stack([(s == sign).sum(axis=-1) for sign in (1, 0, -1)]).astype(float)


def share(counts: Array) -> Array:
    """Probability that A is better, ties one half; NaN of no pairs."""
    with np.errstate(invalid="ignore"):
        return np.asarray((counts[0] + 0.5 * counts[1]) / counts.sum(axis=0))


def score_interval(counts: Array, level: float = 0.95) -> tuple[Array, Array]:
    """Both ends of the score interval: all P that the score test with the ties as nuisance does not reject.

    It is Tango's interval of the difference 2 P - 1 of paired proportions, and Wilson's without ties.
    """
    z, n, estimate = float(special.ndtri(0.5 * (1.0 + level))), counts.sum(axis=0), share(counts)
    if not counts[1].any():
        return wilson(estimate, n, z)
    ends = []
    for end in (0.0, 1.0):
        inside, outside = estimate.copy(), np.full_like(estimate, end)
        for _ in range(_HALVINGS):
            middle = 0.5 * (inside + outside)
            kept = n * (estimate - middle) ** 2 <= z * z * _variance_at(counts, middle)
            inside, outside = np.where(kept, middle, inside), np.where(kept, outside, middle)
        ends.append(np.where(estimate == end, end, inside))
    return ends[0], ends[1]


def _variance_at(counts: Array, probability: Array) -> Array:
    """Variance of one win, tie or loss where P is given and the share of ties is the likeliest (Tango 1998)."""
    (win, _, loss), n, shift = counts, counts.sum(axis=0), 2.0 * probability - 1.0
    b = -win - loss + (2.0 * n - win + loss) * shift
    c = -loss * shift * (1.0 - shift)
    lost = (np.sqrt(np.maximum(b * b - 8.0 * n * c, 0.0)) - b) / (4.0 * n)
    return np.asarray(0.25 * (2.0 * lost + shift * (1.0 - shift)))


def exact_interval(counts: Array, level: float = 0.95) -> tuple[Array, Array]:
    """Both ends of Clopper and Pearson's interval at w + t / 2: exact without ties, conservative with them.

    Of all scores in [0, 1] with mean P, zeros and ones vary most.
    """
    return clopper_pearson(counts[0] + 0.5 * counts[1], counts.sum(axis=0), level)


def usual_interval(counts: Array, level: float = 0.95) -> tuple[Array, Array]:
    """Both ends of the score interval, of the exact one for fewer than five pairs."""
    few = counts.sum(axis=0) < FEW
    score, exact = score_interval(counts, level), exact_interval(counts, level)
    return np.where(few, exact[0], score[0]), np.where(few, exact[1], score[1])


def paired_interval(
    counts: Array, method: str, level: float, n_draws: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Both ends by any method of `PAIRED`, of one table of counts; pairs drawn again are multinomial counts."""
    if method in ("score", "exact"):
        low, high = (score_interval if method == "score" else exact_interval)(counts, level)
        return float(low), float(high)
    estimate, n = share(counts).reshape(1), int(counts.sum())
    draws = (rng.multinomial(n, counts / n, size=n_draws) @ [1.0, 0.5, 0.0] / n)[:, None]
    points = np.repeat([1.0, 0.5, 0.0], counts.astype(int))
    without = (points.sum() - points)[:, None] / (n - 1) if n > 1 else None
    low, high = drawn_interval(draws, estimate, method, level, without)[:, 0]
    return float(low), float(high)


# ---------------------------------------------------------------------------------------------------- not paired


def most_pairs(signs: NDArray[Any]) -> Array:
    """Independent pairs that the runs would be worth if both had one distribution, with the ties that were seen.

    The variance is that of the Mann-Whitney statistic, ``(N + 1) / (12 n m)`` of N = n + m runs, less its share
    ``sum (t^3 - t) / (N^3 - N)`` for groups of t tied runs; where all are tied there is none, and ties are
    ignored. Ties within one algorithm that no run of the other shares are not seen in the signs.
    """
    n, m = signs.shape[-2:]
    total = float(n + m)
    tied = signs == 0
    of_left, of_right = tied.sum(axis=-1), tied.sum(axis=-2)  # with how many of the other algorithm a run is tied
    free = np.ones(tied.shape[:-2])
    some = tied.any(axis=(-2, -1))
    tied, of_left, of_right = tied[some], of_left[some], of_right[some]
    group_left = of_left + (tied * of_right[..., None, :]).max(axis=-1)
    group_right = of_right + (tied * of_left[..., None]).max(axis=-2)
    groups = np.maximum(np.concatenate([group_left, group_right], axis=-1), 1)
    free[some] = 1.0 - (groups**2 - 1).sum(axis=-1) / (total**3 - total)
    return np.asarray(worth_in_pairs(n, m) / np.where(below(0.0, free), free, 1.0))


class UStatistic(NamedTuple):
    """Shares of all pairs of runs that A wins, with the sums of squares of their analysis of variance, of any shape."""

    n: Array
    m: Array
    estimate: Array
    left: Array  # of the shares that each run of A wins, about the estimate
    right: Array  # of the shares that are won of each run of B
    rest: Array  # of single pairs, which neither run explains
    most: Array  # of `most_pairs`

    @classmethod
    def of(cls, signs: NDArray[Any]) -> UStatistic:
        """From the signs of all differences, ``(..., n, m)``; sums are those of whole numbers."""
        n, m = signs.shape[-2:]
        by_left, by_right = (signs.sum(axis=axis, dtype=np.int64) for axis in (-1, -2))
        total, different = by_left.sum(axis=-1), np.count_nonzero(signs, axis=(-2, -1))
        left, right = n * (by_left**2).sum(axis=-1), m * (by_right**2).sum(axis=-1)
        rest = n * m * different - left - right + total**2
        return cls(
            n=np.full(total.shape, float(n)),
            m=np.full(total.shape, float(m)),
            estimate=0.5 + 0.5 * total / (n * m),
            left=(left - total**2) / (4.0 * n * m**2),
            right=(right - total**2) / (4.0 * m * n**2),
            rest=rest / (4.0 * n * m),
            most=most_pairs(signs),
        )

    def turned(self, these: Mask) -> UStatistic:
        """The same with the sides of some exchanged."""
        sides = (self.m, self.n, 1.0 - self.estimate, self.right, self.left, self.rest, self.most)
        return UStatistic(*(np.where(these, other, same) for other, same in zip(sides, self, strict=True)))

    def of_pairs(self, pairs: Index) -> UStatistic:
        """Those of some rows."""
        return UStatistic(*(part[pairs] for part in self))

    @property
    def _parts(self) -> tuple[Array, Array]:
        """What either sample adds to the variance; NaN of a sample of one run, which has none."""
        with np.errstate(invalid="ignore"):
            return self.left / (self.n * (self.n - 1.0)), self.right / (self.m * (self.m - 1.0))

    @property
    def variance(self) -> Array:
        """DeLong's variance."""
        first, second = self._parts
        return first + second

    @property
    def df(self) -> Array:
        """Welch's degrees of freedom."""
        freedom = np.stack([self.n - 1.0, self.m - 1.0])
        return np.where(self.variance > 0.0, df_of_sum(np.stack(self._parts), freedom), self.n + self.m - 2.0)

    def score_interval(self, level: float) -> tuple[Array, Array]:
        """Wilson's interval of the number of pairs that DeLong's variance amounts to, but of `most` at most.

        Where one sample is nearly or wholly above the other that variance is too small or zero, and the bound is what
        gives the interval a length.
        """
        with np.errstate(invalid="ignore", divide="ignore"):
            worth = np.where(self.variance == 0.0, np.inf, self.estimate * (1.0 - self.estimate) / self.variance)
        df, which = np.unique(self.df, return_inverse=True)  # quantiles take longer than all the rest
        quantile = t_quantile(0.5 * (1.0 - level), df)[which.reshape(np.shape(self.estimate))]
        return wilson(self.estimate, np.minimum(worth, self.most), quantile)

    def logit_interval(self, level: float) -> tuple[Array, Array]:
        """Both ends on the logit scale; the score interval where the variance is zero, of which a logit has none."""
        if self.variance == 0.0:
            return self.score_interval(level)
        slope = self.estimate * (1.0 - self.estimate)
        half = t_quantile(0.5 * (1.0 - level), self.df) * np.sqrt(self.variance) / slope
        centre = special.logit(self.estimate)
        return special.expit(centre - half), special.expit(centre + half)


def unpaired_interval(
    signs: Array, method: str, level: float, n_draws: int, rng: np.random.Generator
) -> tuple[float, float]:
    """Both ends by any method of `UNPAIRED`, of the signs of all differences."""
    if method == "percentile":
        draws, estimate = draw_unpaired(signs, n_draws, rng)[:, None], np.array([0.5 + 0.5 * signs.mean()])
        low, high = drawn_interval(draws, estimate, method, level)[:, 0]
    else:
        runs = UStatistic.of(signs)
        low, high = (runs.score_interval if method == "score" else runs.logit_interval)(level)
    return float(low), float(high)


def draw_unpaired(signs: Array, n_draws: int, rng: np.random.Generator) -> Array:
    """P in samples drawn again, ``(n_draws,)``: how often each run was drawn is multinomial."""
    n, m = signs.shape
    left = rng.multinomial(n, np.full(n, 1.0 / n), size=n_draws) / n
    right = rng.multinomial(m, np.full(m, 1.0 / m), size=n_draws) / m
    return np.asarray(0.5 + 0.5 * np.einsum("dj,dj->d", left @ signs, right))
