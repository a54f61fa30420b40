"""Intervals of a probability from successes in n trials, of any shape; shares that were rounded are taken as well."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import special

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from lmemtest.core.arrays import Array


__all__ = ["clopper_pearson", "jeffreys", "wilson"]

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
