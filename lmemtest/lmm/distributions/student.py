"""Tails and quantiles of Student's t, normal at infinite df; df and intervals of variances; noncentralities."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from lmemtest.core.quadrature import gauss_rule

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from lmemtest.core.arrays import Array


_NODES = 48  # of the Gauss rule in the noncentral t: probabilities to 1e-13
_REACH = 8.5  # standard deviations beyond which the normal distribution holds less than 1e-17


def upper_tail(t_ratio: ArrayLike, df: ArrayLike) -> Array:
    """One-sided p-value of a t ratio, P(T > t); NaN where an argument is.

    >>> upper_tail([2.0, -2.0], 10).round(4)
    array([0.0367, 0.9633])
    """
    return np.asarray(special.stdtr(df, -np.asarray(t_ratio, dtype=float)))


def two_sided_p(t_ratio: ArrayLike, df: ArrayLike) -> Array:
    """Two-sided p-value of a t ratio.

    >>> two_sided_p([2.0, 2.0], [10, float("inf")]).round(4)
    array([0.0734, 0.0455])
    """
    return 2.0 * upper_tail(np.abs(t_ratio), df)


def t_quantile(tail: ArrayLike, df: ArrayLike) -> Array:
    """Quantile of the t distribution that leaves `tail` above it.

    >>> t_quantile(0.025, [10, float("inf")]).round(4)
    array([2.2281, 1.96  ])
    """
    a, nu = np.asarray(tail, dtype=float), np.asarray(df, dtype=float)
    infinite = np.isposinf(nu)
    return -np.where(infinite, special.ndtri(a), special.stdtrit(np.where(infinite, 1.0, nu), a))


def df_of_sum(variances: ArrayLike, df: ArrayLike) -> Array:
    """Degrees of freedom of a sum of independent variances, those of the first axis: ``(sum v)^2 / sum(v^2 / df)``.

    NaN where all are zero. Of two means with variances of their own they are Welch's.

    Satterthwaite (1946), doi:10.2307/3002019; Welch (1947), doi:10.1093/biomet/34.1-2.28

    Examples
    --------
    >>> float(df_of_sum([1.0, 1.0], [4.0, 9.0]).round(3))
    11.077
    """
    v, nu = np.asarray(variances, dtype=float), np.asarray(df, dtype=float)
    nu = nu.reshape(nu.shape + (1,) * (v.ndim - nu.ndim))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(v.sum(axis=0) ** 2 / (v**2 / nu).sum(axis=0))


def variance_interval(value: ArrayLike, df: ArrayLike, level: float) -> tuple[Array, Array]:
    """Both ends of the chi-squared interval of a variance with so many degrees of freedom; of infinitely many, itself.

    Examples
    --------
    >>> low, high = variance_interval(12.0, 5, 0.95)
    >>> low.round(3), high.round(3)
    (np.float64(4.676), np.float64(72.184))
    """
    v, nu = np.asarray(value, dtype=float), np.asarray(df, dtype=float)
    infinite = np.isposinf(nu)
    finite = np.where(infinite, 1.0, nu)
    low, high = (
        np.where(infinite, v, v * finite / special.chdtri(finite, tail))
        for tail in (0.5 - level / 2.0, 0.5 + level / 2.0)
    )
    return low, high


def noncentrality_interval(
    f: float, df_num: float, df_den: float, level: float, *, positive: bool = True
) -> tuple[float, float]:
    """Interval of the noncentrality of an F ratio; over `df_num`, that of signal over noise of fixed means.

    The lower limit is the noncentrality at which so large a ratio has probability ``(1 - level) / 2`` (Steiger 2004,
    doi:10.1037/1082-989X.9.2.164). The same for the upper limit and so small a ratio (``positive=False``) is exact but
    has no solution where the ratio is smaller than chance alone makes it: the interval is [0, 0] there, a certainty
    that such luck cannot give. With `positive` the upper limit is the noncentrality at which so small a ratio is
    ``(1 - level) / 2`` times as probable *as without any effect* (Read 2002, doi:10.1088/0954-3899/28/10/313). It is at
    least the other limit, so the interval keeps its level; it is the same one for large ratios, and
    ``-2 log((1 - level) / 2)`` for the smallest, whatever the degrees of freedom.

    >>> tuple(round(x, 3) for x in noncentrality_interval(3.0, 3, 76, 0.95))
    (0.0, 22.675)
    >>> tuple(round(x, 3) for x in noncentrality_interval(0.0, 3, 76, 0.95))
    (0.0, 7.378)
    >>> noncentrality_interval(0.0, 3, 76, 0.95, positive=False)
    (0.0, 0.0)
    """
    from scipy.optimize import brentq

    tail = 0.5 * (1.0 - level)
    without = float(special.fdtr(df_num, df_den, f))  # probability of so small a ratio without any effect
    if positive and without < np.finfo(float).tiny:
        return 0.0, -2.0 * float(np.log(tail))  # what exp(-nc / 2), the ratio of the densities at zero, says

    def limit(target: float) -> float:
        if without <= target:
            return 0.0
        high = 1.0 + df_num * f
        while special.ncfdtr(df_num, df_den, high, f) > target:
            high *= 2.0
        return float(brentq(lambda nc: special.ncfdtr(df_num, df_den, nc, f) - target, 0.0, high))

    return limit(1.0 - tail), limit(tail * without if positive else tail)


def t_noncentrality_interval(t_ratio: ArrayLike, df: ArrayLike, level: float = 0.95) -> tuple[Array, Array]:
    """Intervals of the noncentralities of t ratios with df >= 1; NaN where a ratio or its df is not finite.

    The limits are the noncentralities at which so large a ratio, and so small a one, has probability
    ``(1 - level) / 2`` (Steiger & Fouladi 1997). Over the root of the sample size it is that of a standardised mean.

    >>> low, high = t_noncentrality_interval([2.0, -2.0], 10)
    >>> low.round(4), high.round(4)
    (array([-0.1835, -4.1011]), array([4.1011, 0.1835]))
    """
    t, nu = np.broadcast_arrays(np.asarray(t_ratio, dtype=float), np.asarray(df, dtype=float))
    tail = 0.5 * (1.0 - level)
    low, high = np.full(t.shape, np.nan), np.full(t.shape, np.nan)
    at = np.isfinite(t) & np.isfinite(nu)
    low[at] = _noncentrality(t[at], nu[at], tail)
    high[at] = -_noncentrality(-t[at], nu[at], tail)
    return low, high


def _noncentrality(t: Array, df: Array, tail: float) -> Array:
    """The noncentrality at which P(T > t) = tail: Newton steps on the probit scale, where P is nearly a line.

    With T = (Z + nc) / S, the normal Z and the chi S both beyond their quantiles bound the solution.
    """
    size = np.abs(t)
    above = np.where(t >= 0.0, tail, 1.0 - tail)  # P(T > |t|) at the noncentrality of the sign of t
    half, rest = 0.5 * df, 0.5 * (1.0 - above)
    low = size * np.sqrt(special.gammaincinv(half, 0.5 * above) / half) + special.ndtri(0.5 * above)
    high = size * np.sqrt(special.gammainccinv(half, rest) / half) - special.ndtri(rest)
    wanted = -special.ndtri(above)
    nc = np.clip(size - wanted * np.sqrt(1.0 + size**2 / (2.0 * df)), low, high)
    settled = np.zeros(nc.shape, dtype=bool)  # and left alone, so that no interval depends on the others
    for _ in range(100):
        below, slope = _noncentral_t(size, df, nc)
        z = special.ndtri(below)
        low, high = np.where(z > wanted, nc, low), np.where(z < wanted, nc, high)
        new = nc - (z - wanted) * np.exp(-0.5 * z * z) / np.sqrt(2.0 * np.pi) / slope
        new = np.where(settled, nc, np.where((low <= new) & (new <= high), new, 0.5 * (low + high)))
        step, nc = np.abs(new - nc), new
        settled |= step <= 1e-7 * (1.0 + np.abs(nc))  # the error is of the order of its square
        if settled.all():
            break
    return np.where(t >= 0.0, nc, -nc)


def _noncentral_t(t: Array, df: Array, nc: Array) -> tuple[Array, Array]:
    """P((Z + nc) / S <= t) for t >= 0 and its slope in nc; S the root of a chi-square over its df, Z normal.

    The mean of P(Z <= t s - nc) over s, by a Gauss rule where neither factor is zero or one. Nodes are squared, since
    the density of s has a root at zero where df is not whole.
    """
    h = 0.5 * df
    first, last = (np.sqrt(inverse(h, 1e-17) / h) for inverse in (special.gammaincinv, special.gammainccinv))
    with np.errstate(divide="ignore"):
        scale = 1.0 / t
    begin = np.clip((nc - _REACH) * scale, first, last)
    end = np.clip((nc + _REACH) * scale, first, last)
    root, weight = gauss_rule(_NODES)
    s = begin[..., None] + (end - begin)[..., None] * root**2
    constant = np.log(4.0 * (end - begin)) + h * np.log(h) - special.gammaln(h)
    log_density = constant[..., None] + (df - 1.0)[..., None] * np.log(s) - h[..., None] * s**2
    mass = np.exp(log_density) * root * weight
    z = t[..., None] * s - nc[..., None]
    below = (mass * special.ndtr(z)).sum(axis=-1) + special.gammaincc(h, h * end**2)
    return below, -(mass * np.exp(-0.5 * z * z)).sum(axis=-1) / np.sqrt(2.0 * np.pi)
