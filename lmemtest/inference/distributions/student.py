"""Tails and quantiles of Student's t, normal where the degrees of freedom are infinite; exact intervals of shares."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import special

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    FloatArray = NDArray[np.float64]


def upper_tail(t_ratio: ArrayLike, df: ArrayLike) -> FloatArray:
    """One-sided p-value of a t ratio, P(T > t); NaN where an argument is.

    >>> upper_tail([2.0, -2.0], 10).round(4)
    array([0.0367, 0.9633])
    """
    return np.asarray(special.stdtr(df, -np.asarray(t_ratio, dtype=float)))


def two_sided_p(t_ratio: ArrayLike, df: ArrayLike) -> FloatArray:
    """Two-sided p-value of a t ratio.

    >>> two_sided_p([2.0, 2.0], [10, float("inf")]).round(4)
    array([0.0734, 0.0455])
    """
    return 2.0 * upper_tail(np.abs(t_ratio), df)


def t_quantile(tail: ArrayLike, df: ArrayLike) -> FloatArray:
    """Quantile of the t distribution that leaves `tail` above it.

    >>> t_quantile(0.025, [10, float("inf")]).round(4)
    array([2.2281, 1.96  ])
    """
    a, nu = np.asarray(tail, dtype=float), np.asarray(df, dtype=float)
    infinite = np.isposinf(nu)
    return -np.where(infinite, special.ndtri(a), special.stdtrit(np.where(infinite, 1.0, nu), a))


def binomial_interval(count: int, n: int, level: float = 0.95) -> tuple[float, float]:
    """The exact interval of a probability from `count` of `n` (Clopper & Pearson 1934, doi:10.1093/biomet/26.4.404).

    >>> tuple(round(x, 4) for x in binomial_interval(0, 10))
    (0.0, 0.3085)
    """
    tail = 0.5 * (1.0 - level)
    low = float(special.betaincinv(count, n - count + 1, tail)) if count else 0.0
    high = float(special.betaincinv(count + 1, n - count, 1.0 - tail)) if count < n else 1.0
    return low, high
