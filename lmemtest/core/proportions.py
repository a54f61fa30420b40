r"""Intervals of a probability from successes in n trials, of any shape, and of a mean of values between two bounds.

The sign test and the order statistics that hold a quantile refer to the same binomial distribution.

Shares that were rounded are taken as well.

*Bounded values.* x_1, ..., x_n are independent, whatever their distribution, b is the upper bound, (D_1, ..., D_{n+1})
uniform on the simplex. The upper limit at level 1 - a is the (1 - a) quantile of D_1 x_1 + ... + D_n x_n + D_{n+1} b
(Gaffke); the lower limit by reflection. With all values at the lower bound it is the exact binomial limit, 1 - a^(1/n)
of the range. With D_i = G_i / sum G for independent exponentials G_i,

    P(sum D_i x_i <= t) = P(sum G_i (x_i - t) <= 0),

a sum of weighted exponentials, whose distribution is one integral (Imhof).
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from lmemtest.errors import ArgumentError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from lmemtest.core.arrays import Array


_PRECISION = 1e-10  # of a limit, as a share of the range
_AT_LEVEL = 1e-12  # relative rounding of a binomial probability that is at the level
_ROUNDING = 1e-9  # successes that a rate times n may be off by, where there were none or nothing else


def clopper_pearson(count: ArrayLike, n: ArrayLike, level: float) -> tuple[Array, Array]:
    """Both ends of Clopper and Pearson's exact interval; each alone is a limit at confidence ``(1 + level) / 2``.

    Parameters
    ----------
    count, n : array_like of float
        Successes, and trials; they need not be whole (a tie is half a success).
    level : float
        Between 0 and 1.

    Returns
    -------
    tuple of array
        The lower and the upper end.

    References
    ----------
    Clopper & Pearson (1934), doi:10.1093/biomet/26.4.404

    Examples
    --------
    >>> low, high = clopper_pearson([0, 5], 10, 0.95)
    >>> low.round(4), high.round(4)
    (array([0.    , 0.1871]), array([0.3085, 0.8129]))
    """
    return _beta_interval(count, n, level, prior=0.0)


def jeffreys(count: ArrayLike, n: ArrayLike, level: float) -> tuple[Array, Array]:
    """Both ends of Jeffreys' interval, those of the posterior; no successes or nothing else: to 0 or 1.

    References
    ----------
    Brown, Cai & DasGupta (2001), doi:10.1214/ss/1009213286

    Examples
    --------
    >>> low, high = jeffreys([0, 5], 10, 0.95)
    >>> low.round(4), high.round(4)
    (array([0.    , 0.2235]), array([0.2172, 0.7765]))
    """
    return _beta_interval(count, n, level, prior=0.5)


def _beta_interval(count: ArrayLike, n: ArrayLike, level: float, *, prior: float) -> tuple[Array, Array]:
    """Posterior quantiles: the lower one after Beta(prior, 1 - prior), the upper one after Beta(1 - prior, prior)."""
    x, n = np.asarray(count, dtype=float), np.asarray(n, dtype=float)
    tail, more = 0.5 * (1.0 - level), 1.0 - prior
    none, all_of_them = x < _ROUNDING, x > n - _ROUNDING
    low = special.betaincinv(np.where(none, 1.0, x) + prior, n - x + more, tail)
    high = special.betaincinv(x + more, np.where(all_of_them, 1.0, n - x) + prior, 1.0 - tail)
    return np.where(none, 0.0, low), np.where(all_of_them, 1.0, high)


def wilson(estimate: ArrayLike, size: ArrayLike, quantile: ArrayLike) -> tuple[Array, Array]:
    """Both ends of Wilson's interval of estimates that tell as much as `size` independent wins and losses.

    It holds all P with ``(estimate - P)^2 <= quantile^2 P (1 - P) / size``.
    """
    p, z2 = np.asarray(estimate, dtype=float), np.square(quantile) / np.asarray(size, dtype=float)
    half = np.sqrt(z2 * (p * (1.0 - p) + 0.25 * z2))
    low, high = ((p + 0.5 * z2 + side * half) / (1.0 + z2) for side in (-1.0, 1.0))
    return np.maximum(low, 0.0), np.minimum(high, 1.0)


# -------------------------------------------------------------------------------------- probabilities that are known


def sign_test(win: ArrayLike, loss: ArrayLike) -> Array:
    """Exact one-sided p-values of "A is more often better": at least as many wins of the pairs that are not tied.

    Examples
    --------
    >>> sign_test([5, 4], [0, 1])
    array([0.03125, 0.1875 ])
    """
    w, decided = np.asarray(win, dtype=float), np.asarray(win, dtype=float) + np.asarray(loss, dtype=float)
    return np.where(w > 0, special.betainc(np.maximum(w, 1.0), decided - w + 1.0, 0.5), 1.0)


def worth_in_pairs(n: int, m: int) -> float:
    """Independent pairs that n and m runs are worth if both have one distribution and no ties: 3 n m / (n + m + 1)."""
    return 3.0 * n * m / (n + m + 1.0)


def quantile_places(n: int, quantile: float, level: float, inner: int | None = None) -> tuple[int, int, float]:
    """Which order statistics of n values enclose a quantile with this probability at least, half of the rest outside.

    Numbers from 1 of the lower and the upper one (0 and n + 1: none is far enough out), and the coverage of the two;
    with `inner` they enclose the order statistic of that number too. The coverage is exact for a continuous
    distribution and a lower bound for others: with B binomial(n, quantile), the quantile lies below the value number r
    with probability at most P(B <= r - 1), and above the value number s with probability at most P(B >= s).

    Thompson (1936), On confidence ranges for the median, doi:10.1214/aoms/1177732502

    Examples
    --------
    >>> quantile_places(10, 0.5, 0.95)
    (2, 9, 0.978515...)
    """
    tail = 0.5 * (1.0 - level) * (1.0 + _AT_LEVEL)
    below = np.concatenate([[0.0], special.bdtr(np.arange(n), n, quantile)])  # P(B <= r - 1), r = 0, ..., n
    above = np.concatenate([special.bdtrc(np.arange(n), n, quantile), [0.0]])  # P(B >= s), s = 1, ..., n + 1
    lower, upper = int(np.flatnonzero(below <= tail)[-1]), int(np.flatnonzero(above <= tail)[0]) + 1
    if inner is not None:
        lower, upper = min(lower, inner), max(upper, inner)
    return lower, upper, max(float(1.0 - below[lower] - above[upper - 1]), 0.0)


# ---------------------------------------------------------------------------------------- values between two bounds


def bounded_mean_interval(
    values: Array, level: float = 0.95, *, low: float = 0.0, high: float = 1.0
) -> tuple[float, float]:
    """Both ends of the equal-tailed interval for the mean of the distribution that the values are a sample of.

    Parameters
    ----------
    values : (n,) float
        Independent and of one distribution, between `low` and `high`; two or more.
    level : float in (0, 1)
        Confidence level.
    low, high : float
        Bounds of what can occur.

    Returns
    -------
    tuple of float

    Raises
    ------
    ArgumentError
        If a value is outside the bounds.

    Notes
    -----
    No distribution is known for which it covers the mean less often than it says; that there is none is a conjecture.
    It is wide where nothing was seen near one of the bounds: after n zeros the upper limit is 1 - (a/2)^(1/n).

    References
    ----------
    Gaffke (2005), Three test statistics for a nonparametric one-sided hypothesis on the mean of a nonnegative variable,
    Mathematical Methods of Statistics 14, 451-467; Learned-Miller & Thomas (2019), arXiv:1905.06208; Imhof (1961),
    doi:10.1093/biomet/48.3-4.419

    Examples
    --------
    >>> low, high = bounded_mean_interval(np.zeros(10))
    >>> low, round(high, 6), round(1 - 0.025 ** (1 / 10), 6)
    (0.0, 0.308497, 0.308497)
    """
    x = (np.asarray(values, dtype=float) - low) / (high - low)
    if not (x.min() >= 0.0 and x.max() <= 1.0):
        raise ArgumentError(f"values must be between {low:g} and {high:g}, got {min(values):g} to {max(values):g}.")
    tail = 0.5 * (1.0 - level)
    ends = 1.0 - _upper(1.0 - x, tail), _upper(x, tail)
    return low + (high - low) * ends[0], low + (high - low) * ends[1]


def bounded_mean_test(values: Array, mean: float, *, low: float = 0.0, high: float = 1.0) -> tuple[float, float]:
    """P-values of "the mean is at most this one" and "at least this one": where limits of the interval reach it.

    Parameters
    ----------
    values : (n,) float
        As for `bounded_mean_interval`.
    mean : float
        Between `low` and `high`, both excluded.
    low, high : float
        Bounds of what can occur.

    Returns
    -------
    tuple of float
        A one-sided limit at confidence 1 - p is `mean`. Of zeros and ones they are those of the exact binomial test.

    Examples
    --------
    >>> at_most, at_least = bounded_mean_test(np.ones(10), 0.8)
    >>> round(at_most, 6), round(0.8**10, 6), at_least
    (0.107374, 0.107374, 1.0)
    """
    x, t = (np.asarray(values, dtype=float) - low) / (high - low), (mean - low) / (high - low)
    p_values = []
    for side, border in ((1.0 - x, 1.0 - t), (x, t)):
        points, counts = np.unique(np.append(side, 1.0), return_counts=True)
        p_values.append(1.0 - _chance(points - border, counts) if points[0] < border else 1.0)
    return min(1.0, max(0.0, p_values[0])), min(1.0, max(0.0, p_values[1]))


def _upper(x: Array, tail: float) -> float:
    """The upper limit of a mean in [0, 1]."""
    from scipy.optimize import brentq

    points, counts = np.unique(np.append(x, 1.0), return_counts=True)
    if len(points) == 1:  # all values are at the bound
        return 1.0
    if len(points) == 2 and counts[1] == 1:  # t = x + D (1 - x), where D is beta(1, n)
        return float(points[0] + (1.0 - points[0]) * (1.0 - tail ** (1.0 / len(x))))
    lowest = float(points[0])
    return float(brentq(lambda t: _chance(points - t, counts) - (1.0 - tail), lowest + 1e-12, 1.0, xtol=_PRECISION))


def _chance(weights: Array, counts: NDArray[np.int_]) -> float:
    """P(sum of weights times gamma variables of these shapes <= 0)."""
    if weights.max() <= 0.0:
        return 1.0
    scaled = weights / np.abs(weights).max()
    node, weight = _rule()
    u = node / (1.0 - node)
    angle = (counts * np.arctan(np.outer(u, scaled))).sum(axis=1)
    damping = (0.5 * counts * np.log1p(np.outer(u, scaled) ** 2)).sum(axis=1)
    integral = (weight / (1.0 - node) ** 2 * np.sin(angle) * np.exp(-damping) / u).sum()
    return 0.5 - float(integral) / np.pi


@cache
def _rule() -> tuple[Array, Array]:
    """Nodes and weights of a Gauss-Legendre rule on (0, 1)."""
    node, weight = np.polynomial.legendre.leggauss(400)
    return 0.5 * (node + 1.0), 0.5 * weight
