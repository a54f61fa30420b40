r"""Studentized range distribution and the adjustment of p-values and intervals for many comparisons.

Notation: ``k`` means are compared, ``df`` are the degrees of freedom of the standard error, ``q`` is a
studentized range. For k independent standard normals the range exceeds w with probability

    S_k(w) = k int phi(z) {Phi(z)^(k-1) - [Phi(z) - Phi(z - w)]^(k-1)} dz,

and the studentized range exceeds q with probability ``int f_df(s) S_k(q s) ds``, where s is distributed as
``sqrt(chi2(df) / df)`` (Copenhaver & Holland 1988). Both integrands are positive, so the upper tail is
computed directly and keeps its relative accuracy at p = 1e-12, where 1 minus the lower tail would be noise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from lmemtest._validate import check_choice, check_fraction
from lmemtest.errors import ArgumentError

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    FloatArray = NDArray[np.float64]

ADJUSTMENTS = ("tukey", "holm", "sidak", "bonferroni", "fdr", "none")
ADJUSTMENT_NAMES = {
    "tukey": "Tukey",
    "holm": "Holm",
    "sidak": "Sidak",
    "bonferroni": "Bonferroni",
    "fdr": "Benjamini-Hochberg",
    "none": "no",
}  # as they read before "adjustment"

_RANGE_END = 56.0  # S_k(w) < k^2 exp(-w^2 / 4) is below the smallest double from w = 55 on
# panels for log S_k: narrow where it bends, wide where it is nearly -w^2 / 4
_PANEL_EDGES = np.concatenate([np.linspace(0.0, 12.0, 17), np.linspace(16.0, _RANGE_END, 11)])
_DEGREE = 17
_NODES_SMALL_DF, _NODES = 96, 40  # Gauss-Legendre nodes on each side of the mode, for df below 10 and from 10
_CROWDING = 2  # nodes are crowded at the mode, where S_k bends sharply if k is large and df is small
_DROP = 40.0  # the outer integral ends where its integrand is exp(-40) = 4e-18 of the maximum
_DF_IS_INFINITE = 1e11  # the distribution differs from the limit by a multiple of 1 / df


def ptukey(q: ArrayLike, k: ArrayLike, df: ArrayLike, *, upper: bool = False) -> FloatArray:
    """Distribution function of the studentized range.

    Parameters
    ----------
    q : array_like of float
        Studentized range, any shape; negative values have probability 0, NaN gives NaN.
    k : array_like of int, >= 2
        Number of means compared; broadcast against `q`.
    df : array_like of float, > 0
        Degrees of freedom, need not be integers, ``inf`` for a known standard error; broadcast against `q`.
    upper : bool, default False
        Return the probability of a larger range (the p-value), computed directly.

    Returns
    -------
    (broadcast shape) float array
        Probabilities in [0, 1], NaN where an argument is NaN.

    Raises
    ------
    ArgumentError
        If a `k` is below 2 or a `df` is not positive.

    Notes
    -----
    All elements are integrated at once, by Gauss-Legendre quadrature in log s on both sides of the mode of
    each integrand. The relative error of the upper tail is below 1e-12 for k up to 60 and df from 0.5 to
    infinity, and below 1e-10 for k up to 300. R's ptukey stops at about 1e-6 for many means and is off by
    1e-4 to 1e-2 in the tails below 5 df.

    References
    ----------
    Copenhaver & Holland (1988), J. Stat. Comput. Simul. 30, 1-15, doi:10.1080/00949658808811082

    Examples
    --------
    >>> ptukey(3.5, 3, 20, upper=True).round(8).item()
    0.05589185
    """
    q_all, k_all, df_all = np.broadcast_arrays(
        np.asarray(q, dtype=float), np.asarray(k, dtype=float), np.asarray(df, dtype=float)
    )
    _check_k_and_df(k_all, df_all)
    log_sf = _log_upper_tail(q_all.ravel(), k_all.ravel(), df_all.ravel())
    tail = np.exp(log_sf) if upper else -np.expm1(log_sf)
    return tail.reshape(q_all.shape)


def qtukey(p: ArrayLike, k: ArrayLike, df: ArrayLike, *, upper: bool = False) -> FloatArray:
    """Quantile function of the studentized range.

    Parameters
    ----------
    p : array_like of float in [0, 1]
        Probability of a smaller range, or of a larger one with ``upper=True``.
    k, df : array_like
        As in `ptukey`.
    upper : bool, default False
        Read `p` as the upper tail; keeps accuracy for very small tails.

    Returns
    -------
    (broadcast shape) float array
        Quantiles, 0 for an empty and ``inf`` for a full lower tail.

    Raises
    ------
    ArgumentError
        If a `p` is outside [0, 1], a `k` is below 2 or a `df` is not positive.

    Notes
    -----
    One pair of means bounds the quantile from below, the Bonferroni inequality from above; all elements are
    then solved together in log q and the logit of the tail, by secant steps kept inside their brackets.

    Examples
    --------
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
        out[solve] = _solve_quantile(p_row, k_row, df_row, upper)[where.ravel()]
    return out.reshape(shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjusted:
    """Adjusted p-values and the critical values of the simultaneous intervals.

    Attributes
    ----------
    pvalue : (m,) float
        Adjusted two-sided p-values, NaN where the t ratio is NaN.
    critical : (m,) float
        The interval of row i is ``estimate[i] +- critical[i] * se[i]``.
    method : str
        Adjustment of the p-values that was applied.
    interval_method : str
        Adjustment behind `critical`.
    n_tests : int
        Number of comparisons in the family.
    notes : tuple of str
        What was replaced and why; empty if nothing was.
    """

    pvalue: FloatArray
    critical: FloatArray
    method: str
    interval_method: str
    n_tests: int
    notes: tuple[str, ...] = ()


def adjust(
    t_ratio: ArrayLike,
    df: ArrayLike,
    *,
    method: str = "tukey",
    n_means: int | None = None,
    level: float = 0.95,
) -> Adjusted:
    """Adjust the two-sided p-values and the intervals of one family of t ratios.

    Parameters
    ----------
    t_ratio : (m,) array_like of float
        Estimate over standard error; NaN rows have no p-value but count as tests, since they were asked for.
    df : array_like of float, > 0
        Degrees of freedom per row (or one for all), ``inf`` for normal tests.
    method : {"tukey", "holm", "sidak", "bonferroni", "fdr", "none"}
        "tukey" refers sqrt(2) |t| to the studentized range of `n_means` means; "fdr" is Benjamini-Hochberg.
    n_means : int, optional
        Number of means whose pairwise differences are the family. Without it "tukey" does not fit the family
        and is replaced by "sidak", with a note.
    level : float in (0, 1), default 0.95
        Simultaneous confidence level.

    Returns
    -------
    Adjusted
        "holm" and "fdr" have no simultaneous intervals: theirs are Bonferroni intervals, with a note.

    Raises
    ------
    ArgumentError
        If `method` is unknown or `level` is not strictly between 0 and 1.

    References
    ----------
    Holm (1979), Scand. J. Stat. 6, 65-70; Benjamini & Hochberg (1995), doi:10.1111/j.2517-6161.1995.tb02031.x

    Examples
    --------
    >>> adjust([2.5, 1.0, 3.1], 20, method="holm").pvalue.round(4)
    array([0.0425, 0.3293, 0.0169])
    """
    check_choice(method, "adjust", ADJUSTMENTS)
    check_fraction(level, "level")
    t, nu = np.broadcast_arrays(np.asarray(t_ratio, dtype=float), np.asarray(df, dtype=float))
    m = t.size
    notes: list[str] = []
    if method == "tukey" and n_means is None:
        method = "sidak"
        notes.append(
            "The Tukey adjustment fits only all pairwise differences of a set of means; "
            "the Sidak adjustment was used instead."
        )
    interval_method = method
    if method in ("holm", "fdr"):
        interval_method = "bonferroni"
        notes.append(
            f"The {ADJUSTMENT_NAMES[method]} adjustment has no simultaneous confidence intervals; "
            "the intervals shown are Bonferroni intervals and may disagree with the p-values."
        )
    if method == "tukey":
        pvalue = ptukey(np.sqrt(2.0) * np.abs(t), n_means or 2, nu, upper=True)
    else:
        pvalue = _adjust_raw(two_sided_p(t, nu), method, m)
    return Adjusted(
        pvalue=pvalue,
        critical=critical_values(nu, method=interval_method, n_means=n_means, n_tests=m, level=level),
        method=method,
        interval_method=interval_method,
        n_tests=m,
        notes=tuple(notes),
    )


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


def critical_values(
    df: ArrayLike, *, method: str, n_tests: int, level: float, n_means: int | None = None
) -> FloatArray:
    """Half width of a simultaneous interval in standard errors.

    Parameters
    ----------
    df : array_like of float, > 0
    method : {"tukey", "sidak", "bonferroni", "none"}
    n_tests : int
        Size of the family; ignored by "tukey" and "none".
    level : float in (0, 1)
    n_means : int, optional
        Number of means; needed by "tukey".

    Returns
    -------
    (shape of df) float array

    Examples
    --------
    >>> critical_values([20.0], method="tukey", n_tests=3, n_means=3, level=0.95).round(4)
    array([2.53])
    """
    nu = np.asarray(df, dtype=float)
    alpha = 1.0 - level
    if method == "tukey":
        return qtukey(alpha, n_means or 2, nu, upper=True) / np.sqrt(2.0)
    count = max(n_tests, 1)
    per_test = {
        "none": alpha,
        "bonferroni": alpha / count,
        "sidak": float(-np.expm1(np.log1p(-alpha) / count)),
    }[method]
    return t_quantile(per_test / 2.0, nu)


def _adjust_raw(pvalue: FloatArray, method: str, m: int) -> FloatArray:
    """Adjust unadjusted p-values of `m` tests; NaN stays NaN."""
    if method == "none":
        return pvalue
    if method == "bonferroni":
        return np.minimum(1.0, m * pvalue)
    if method == "sidak":
        with np.errstate(divide="ignore"):  # log1p(-1) = -inf: an adjusted p-value of exactly 1
            return -np.expm1(m * np.log1p(-pvalue))
    out = np.full(pvalue.shape, np.nan)
    known = np.flatnonzero(~np.isnan(pvalue))
    order = known[np.argsort(pvalue[known], kind="stable")]
    rank = np.arange(1, len(known) + 1)
    if method == "holm":
        out[order] = np.minimum(1.0, np.maximum.accumulate((m - rank + 1) * pvalue[order]))
    else:
        out[order] = np.minimum(1.0, np.minimum.accumulate((m / rank * pvalue[order])[::-1])[::-1])
    return out


# ---------------------------------------------------------------------- the studentized range, in logs


def _check_k_and_df(k: FloatArray, df: FloatArray) -> None:
    if np.any(k < 2):
        raise ArgumentError(f"k, the number of means compared, must be at least 2, got {k[k < 2].flat[0]:g}.")
    if np.any(df <= 0):
        raise ArgumentError(f"df must be positive, got {df[df <= 0].flat[0]:g}.")


def _log_upper_tail(q: FloatArray, k: FloatArray, df: FloatArray) -> FloatArray:
    """Log P(Q > q) elementwise for one-dimensional arguments of equal length."""
    out = np.full(q.shape, np.nan)
    known = ~(np.isnan(q) | np.isnan(k) | np.isnan(df))
    out[known & (q <= 0)] = 0.0
    out[known & np.isposinf(q)] = -np.inf
    solve = known & (q > 0) & np.isfinite(q)
    for means in np.unique(k[solve]):
        log_s, elasticity = _range_tables(float(means))
        limit = solve & (k == means) & (df >= _DF_IS_INFINITE)
        out[limit] = log_s(q[limit])
        for low, high, nodes in ((0.0, 10.0, _NODES_SMALL_DF), (10.0, _DF_IS_INFINITE, _NODES)):
            part = solve & (k == means) & (df >= low) & (df < high)
            if part.any():
                out[part] = _integrate_over_scale(q[part], df[part], log_s, elasticity, nodes)
    return np.minimum(out, 0.0)


def _integrate_over_scale(
    q: FloatArray, df: FloatArray, log_s: Callable[..., Any], elasticity: Callable[..., Any], n_nodes: int
) -> FloatArray:
    """Log of the integral of exp(a(u)), u = log s, a = df (u - expm1(2u) / 2) + log S_k(q e^u) + constant.

    a is concave, and the slope of log S_k(q e^u) steepens at least as fast as e^u. So the drop from the mode
    is at least df (L - 1 + e^-L) on the left and df (e^R - 1 - R) on the right whatever q and k are, and the
    ends of the integral follow from df alone.
    """
    mode = _mode_of_log_scale(q, df, elasticity)
    left, right = _drop_lengths(_DROP / df)
    x, weight = _legendre(n_nodes)
    unit = (x + 1.0) / 2.0
    near, scale = unit**_CROWDING, _CROWDING * unit ** (_CROWDING - 1) * weight / 2.0
    u = np.concatenate([mode[:, None] - left[:, None] * near, mode[:, None] + right[:, None] * near], axis=1)
    w = np.concatenate([left[:, None] * scale, right[:, None] * scale], axis=1)
    exponent = df[:, None] * (u - np.expm1(2.0 * u) / 2.0) + log_s(q[:, None] * np.exp(u))
    top = exponent.max(axis=1)
    safe = np.where(np.isfinite(top), top, 0.0)
    total = np.sum(w * np.exp(exponent - safe[:, None]), axis=1)
    with np.errstate(divide="ignore"):  # an underflowed tail is log 0
        return np.log(total) + safe + _log_normaliser(df)


def _mode_of_log_scale(q: FloatArray, df: FloatArray, elasticity: Callable[..., Any]) -> FloatArray:
    """Root in u of df (1 - e^(2u)) = -d log S(q e^u) / du, by bisection; s <= 1 and q s within the table."""
    high = np.minimum(0.0, np.log(_RANGE_END / q))
    low = np.minimum(high, np.minimum(-1.0, np.log(1e-3 / q)))
    for _ in range(34):
        mid = (low + high) / 2.0
        rising = -df * np.expm1(2.0 * mid) > elasticity(q * np.exp(mid))
        low = np.where(rising, mid, low)
        high = np.where(rising, high, mid)
    return (low + high) / 2.0


def _drop_lengths(c: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Solve L - 1 + e^-L = c and e^R - 1 - R = c by Newton steps from above, where both are convex."""
    left = np.sqrt(2.0 * c) + c
    right = np.minimum(np.sqrt(2.0 * c), np.log1p(2.0 * c) + 1.0)
    for _ in range(8):
        left = left - (left + np.expm1(-left) - c) / -np.expm1(-left)
        right = right - (np.expm1(right) - right - c) / np.expm1(right)
    return left, right


def _log_normaliser(df: FloatArray) -> FloatArray:
    """Log of 2 (df/2)^(df/2) e^(-df/2) / Gamma(df/2), without cancellation at large df."""
    x = df / 2.0
    large = x >= 15.0
    y = np.where(large, x, 15.0)
    stirling = 1.0 / (12.0 * y) - 1.0 / (360.0 * y**3) + 1.0 / (1260.0 * y**5) - 1.0 / (1680.0 * y**7)
    z = np.where(large, 1.0, x)
    direct = np.log(2.0) + z * np.log(z) - z - special.gammaln(z)
    return np.where(large, 0.5 * np.log(2.0 * y / np.pi) - stirling, direct)


@lru_cache(maxsize=8)
def _legendre(n: int) -> tuple[FloatArray, FloatArray]:
    return np.polynomial.legendre.leggauss(n)


@lru_cache(maxsize=64)
def _range_tables(k: float) -> tuple[Callable[..., Any], Callable[..., Any]]:
    """Log S_k(w) and its elasticity -d log S_k / d log w as piecewise Chebyshev interpolants on [0, 56]."""
    starts, widths = _PANEL_EDGES[:-1], np.diff(_PANEL_EDGES)
    nodes = np.cos(np.pi * (np.arange(_DEGREE + 1) + 0.5) / (_DEGREE + 1))
    w = starts[:, None] + (nodes[None, :] + 1.0) / 2.0 * widths[:, None]
    values = _log_range_survival(w.ravel(), k).reshape(w.shape)
    basis = np.polynomial.chebyshev.chebvander(nodes, _DEGREE)
    coefficients = np.linalg.solve(basis, values.T)
    slopes = np.polynomial.chebyshev.chebder(coefficients) * (2.0 / widths)

    def interpolate(table: FloatArray, at: FloatArray) -> FloatArray:
        panel = np.clip(np.searchsorted(_PANEL_EDGES, at, side="right") - 1, 0, len(starts) - 1)
        local = 2.0 * (at - starts[panel]) / widths[panel] - 1.0
        return np.polynomial.chebyshev.chebval(local, table[:, panel], tensor=False)

    def log_s(at: FloatArray) -> FloatArray:
        return np.where(at < _RANGE_END, interpolate(coefficients, np.minimum(at, _RANGE_END)), -np.inf)

    def elasticity(at: FloatArray) -> FloatArray:
        inside = np.minimum(at, _RANGE_END)
        return -inside * interpolate(slopes, inside)

    return log_s, elasticity


def _log_range_survival(w: FloatArray, k: float) -> FloatArray:
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


def _solve_quantile(p: FloatArray, k: FloatArray, df: FloatArray, upper: bool) -> FloatArray:
    """Solve logit P(Q > q) = logit(tail) in x = log q inside the one-pair and Bonferroni bounds."""
    tail = p if upper else 1.0 - p
    target = special.logit(tail) if upper else -special.logit(p)

    def excess(x: FloatArray) -> FloatArray:
        log_sf = _log_upper_tail(np.exp(x), k, df)
        with np.errstate(divide="ignore"):  # a full tail has logit inf
            return log_sf - np.log(-np.expm1(log_sf)) - target

    def log_range(one_sided: FloatArray) -> FloatArray:
        t = t_quantile(np.maximum(one_sided, np.finfo(float).tiny), df)
        return np.log(np.sqrt(2.0) * np.maximum(t, 1e-12))

    low, high = log_range(tail / 2.0) - 1e-9, log_range(tail / (k * (k - 1.0))) + 1e-9
    x_old, f_old = low, excess(low)
    x, f = high, excess(high)
    for _ in range(80):
        low, high = np.where(f > 0, np.maximum(low, x), low), np.where(f > 0, high, np.minimum(high, x))
        with np.errstate(invalid="ignore", divide="ignore"):
            step = -f * (x - x_old) / (f - f_old)
        secant = np.isfinite(f) & np.isfinite(f_old) & (x + step >= low) & (x + step <= high)
        step = np.where(secant, step, (low + high) / 2.0 - x)
        step = np.where((f == 0) | (np.abs(x - x_old) <= 1e-11), 0.0, step)
        if not step.any():
            break
        x_old, f_old, x = x, f, x + step
        f = excess(x)
    return np.exp(x)
