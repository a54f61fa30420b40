"""Tail probabilities and quantiles of Student's t, normal where the degrees of freedom are infinite."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import special

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    FloatArray = NDArray[np.float64]


def two_sided_p(t_ratio: ArrayLike, df: ArrayLike) -> FloatArray:
    """Two-sided p-value of a t ratio, normal where `df` is infinite.

    Parameters
    ----------
    t_ratio : array_like of float
    df : array_like of float, > 0

    Returns
    -------
    (broadcast shape) float array

    Examples
    --------
    >>> two_sided_p([2.0, 2.0], [10, float("inf")]).round(4)
    array([0.0734, 0.0455])
    """
    t, nu = np.broadcast_arrays(np.asarray(t_ratio, dtype=float), np.asarray(df, dtype=float))
    finite = np.isfinite(nu)
    tail = np.where(finite, special.stdtr(np.where(finite, nu, 1.0), -np.abs(t)), special.ndtr(-np.abs(t)))
    return np.where(np.isnan(nu), np.nan, 2.0 * tail)


def upper_tail(t_ratio: ArrayLike, df: ArrayLike) -> FloatArray:
    """One-sided p-value of a t ratio, P(T > t), normal where `df` is infinite.

    Parameters
    ----------
    t_ratio : array_like of float
    df : array_like of float, > 0

    Returns
    -------
    (broadcast shape) float array
        NaN where `t_ratio` is.

    Examples
    --------
    >>> upper_tail([2.0, -2.0], 10).round(4)
    array([0.0367, 0.9633])
    """
    t, nu = np.broadcast_arrays(np.asarray(t_ratio, dtype=float), np.asarray(df, dtype=float))
    finite = np.isfinite(nu)
    return np.where(finite, special.stdtr(np.where(finite, nu, 1.0), -t), special.ndtr(-t))


def t_quantile(tail: ArrayLike, df: ArrayLike) -> FloatArray:
    """Quantile of the t distribution that leaves `tail` above it, normal where `df` is infinite.

    Parameters
    ----------
    tail : array_like of float in (0, 1)
    df : array_like of float, > 0

    Returns
    -------
    (broadcast shape) float array

    Examples
    --------
    >>> t_quantile(0.025, [10, float("inf")]).round(4)
    array([2.2281, 1.96  ])
    """
    a, nu = np.broadcast_arrays(np.asarray(tail, dtype=float), np.asarray(df, dtype=float))
    finite = np.isfinite(nu)
    value = np.where(finite, special.stdtrit(np.where(finite, nu, 1.0), a), special.ndtri(a))
    return np.where(np.isnan(nu), np.nan, -value)
