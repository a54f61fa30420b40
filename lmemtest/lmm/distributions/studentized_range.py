r"""The studentized range: the distribution behind Tukey's comparisons of all pairs.

Notation: ``k`` means are compared, ``df`` are the degrees of freedom of the standard error, ``q`` is a
studentized range. For k independent standard normals the range exceeds w with probability

    S_k(w) = k int phi(z) {Phi(z)^(k-1) - [Phi(z) - Phi(z - w)]^(k-1)} dz,

and the studentized range exceeds q with probability ``int f_df(s) S_k(q s) ds``, where s is distributed as
``sqrt(chi2(df) / df)`` (Copenhaver & Holland 1988). Both integrands are positive, so the upper tail is
computed directly and keeps its relative accuracy at p = 1e-12, where 1 minus the lower tail would be noise.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from lmemtest.errors import ArgumentError
from lmemtest.lmm.distributions.student import t_quantile
from lmemtest.lmm.distributions.studentize import TailTable, log_tail_and_slope, solve_tail, tabulate

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from lmemtest.core.arrays import Array


def ptukey(q: ArrayLike, k: ArrayLike, df: ArrayLike, *, upper: bool = False) -> Array:
    """Distribution function of the studentized range, or the probability of a larger one with `upper`.

    `q`, `k` >= 2 means and `df` > 0 (``inf``: known standard error) are broadcast; negative `q` have probability 0, NaN
    gives NaN. The relative error of the upper tail is below 1e-12 for k up to 60 and df from 0.5 to infinity, and below
    1e-10 for k up to 300. R's ptukey stops at about 1e-6 for many means and is off by 1e-4 to 1e-2 in the tails below 5
    df.

    Copenhaver & Holland (1988), J. Stat. Comput. Simul. 30, 1-15, doi:10.1080/00949658808811082

    >>> ptukey(3.5, 3, 20, upper=True).round(8).item()
    0.05589185
    """
    q_all, k_all, df_all = np.broadcast_arrays(
        np.asarray(q, dtype=float), np.asarray(k, dtype=float), np.asarray(df, dtype=float)
    )
    _check_k_and_df(k_all, df_all)
    log_sf, _ = _log_upper_tail(q_all.ravel(), k_all.ravel(), df_all.ravel())
    tail = np.exp(log_sf) if upper else -np.expm1(log_sf)
    return tail.reshape(q_all.shape)


def qtukey(p: ArrayLike, k: ArrayLike, df: ArrayLike, *, upper: bool = False) -> Array:
    """Quantile function of the studentized range; with `upper`, `p` is the upper tail, accurate where it is very small.

    One pair of means bounds the quantile from below, the Bonferroni inequality from above; all elements are then solved
    together in log q and the logit of the tail. 0 for an empty and ``inf`` for a full lower tail.

    >>> qtukey(0.95, 3, 20).round(6).item()
    3.577935
    """
    p_all, k_all, df_all = np.broadcast_arrays(
        np.asarray(p, dtype=float), np.asarray(k, dtype=float), np.asarray(df, dtype=float)
    )
    _check_k_and_df(k_all, df_all)
    if np.any((p_all < 0) | (p_all > 1)):
        bad = p_all[(p_all < 0) | (p_all > 1)].flat[0]
        raise ArgumentError(f"p must be a probability in [0, 1], got {bad:g}.")
    shape = p_all.shape
    p_flat, k_flat, df_flat = p_all.ravel(), k_all.ravel(), df_all.ravel()
    out = np.full(p_flat.shape, np.nan)
    lower_empty, lower_full = (p_flat == 1, p_flat == 0) if upper else (p_flat == 0, p_flat == 1)
    known = ~(np.isnan(p_flat) | np.isnan(k_flat) | np.isnan(df_flat))
    out[known & lower_empty] = 0.0
    out[known & lower_full] = np.inf
    solve = known & ~lower_empty & ~lower_full
    if solve.any():
        rows = np.stack([p_flat, k_flat, df_flat])[:, solve]
        (p_row, k_row, df_row), where = np.unique(rows, axis=1, return_inverse=True)
        if len(p_row) == 1:  # one design asks again and again
            out[solve] = _single_quantile(float(p_row[0]), float(k_row[0]), float(df_row[0]), upper)
        else:
            out[solve] = _solve_quantile(p_row, k_row, df_row, upper)[where.ravel()]
    return out.reshape(shape)


def _check_k_and_df(k: Array, df: Array) -> None:
    if np.any(k < 2):
        raise ArgumentError(f"k, the number of means compared, must be at least 2, got {k[k < 2].flat[0]:g}.")
    if np.any(df <= 0):
        raise ArgumentError(f"df must be positive, got {df[df <= 0].flat[0]:g}.")


def _log_upper_tail(q: Array, k: Array, df: Array, *, slopes: bool = False) -> tuple[Array, Array]:
    """Log P(Q > q) and its derivative in log q, elementwise for one-dimensional arguments of equal length."""
    out = np.full((2, *q.shape), np.nan)
    for means in np.unique(k[~np.isnan(k)]):
        part = k == means
        out[:, part] = log_tail_and_slope(q[part], df[part], _range_table(float(means)), slopes=slopes)
    return out[0], out[1]


@lru_cache(maxsize=64)
def _range_table(k: float) -> TailTable:
    return tabulate(lambda w: _log_range_survival(w, k))


def _log_range_survival(w: Array, k: float) -> Array:
    """Log S_k(w) by the trapezoidal rule, which converges geometrically on Gaussian-tailed integrands.

    The integrand is at most k^2 phi(z) Phi(z - w), centred at w/2 with unit-scale tails, moved up by
    at most sqrt(2 log k); 8 units below and 9.5 above leave less than 1e-17 of it.
    """
    step = 0.1
    z = w[:, None] / 2.0 + np.arange(-8.0, 9.5, step)
    log_phi = special.log_ndtr(z)
    ratio = np.minimum(np.exp(special.log_ndtr(z - w[:, None]) - log_phi), 1.0 - 1e-16)
    with np.errstate(divide="ignore"):  # underflowed ratios add nothing
        log_excess = np.log(-np.expm1((k - 1.0) * np.log1p(-ratio)))
    exponent = -0.5 * z**2 + (k - 1.0) * log_phi + log_excess
    top = exponent.max(axis=1)
    total = np.exp(exponent - top[:, None]).sum(axis=1)
    return np.minimum(0.0, np.log(total) + top + np.log(k * step / np.sqrt(2.0 * np.pi)))


@lru_cache(maxsize=256)
def _single_quantile(p: float, k: float, df: float, upper: bool) -> float:
    return float(_solve_quantile(np.array([p]), np.array([k]), np.array([df]), upper)[0])


def _solve_quantile(p: Array, k: Array, df: Array, upper: bool) -> Array:
    """Quantiles inside the one-pair and Bonferroni bounds."""
    tail = p if upper else 1.0 - p
    target = special.logit(tail) if upper else -special.logit(p)

    def range_of(one_sided: Array) -> Array:
        t = t_quantile(np.maximum(one_sided, np.finfo(float).tiny), df)
        return np.sqrt(2.0) * np.maximum(t, 1e-12)

    low, high = range_of(tail / 2.0) * (1.0 - 1e-9), range_of(tail / (k * (k - 1.0))) * (1.0 + 1e-9)
    return solve_tail(lambda q: _log_upper_tail(q, k, df, slopes=True), target, low, high)
