r"""The studentized range, the distribution behind Tukey's comparisons of all pairs, and other studentised tails.

*Studentised statistics.* W has a known tail ``S(w) = P(W > w)`` for W >= 0 and s^2 = chi2(df) / df is independent, with
``f_df`` the density of s. Then

    P(W / s > q) = int f_df(s) S(q s) ds.

log S is tabulated once as a piecewise Chebyshev interpolant; all q and df are then integrated together, by
Gauss-Legendre quadrature in log s on both sides of the mode. Both factors are positive, so the tail is computed
directly and keeps its relative accuracy at 1e-12, where 1 minus the lower tail would be noise. The mode only divides
the integral, so that a linear interpolant of the slope of log S is enough to find it.

*The range.* ``k`` means are compared, ``df`` are the degrees of freedom of the standard error, ``q`` is a studentized
range. For k independent standard normals the range exceeds w with probability

    S_k(w) = k int phi(z) {Phi(z)^(k-1) - [Phi(z) - Phi(z - w)]^(k-1)} dz

(Copenhaver & Holland 1988).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from lmemtest.core.quadrature import gauss_rule
from lmemtest.errors import ArgumentError
from lmemtest.lmm.distributions.student import t_quantile

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from lmemtest.core.arrays import Array, Index


_TABLE_END = 56.0  # no tail that is used here reaches the smallest double later: k^2 exp(-w^2 / 4) does at w = 55
# panels for log S: narrow where it bends, wide where it is nearly -w^2 / 4
_NARROW, _WIDE, _WIDE_FROM = 0.75, 4.0, 12.0
_PANEL_EDGES = np.concatenate([np.arange(0.0, _WIDE_FROM, _NARROW), np.arange(_WIDE_FROM, _TABLE_END + 1.0, _WIDE)])
_DEGREE = 17
_NODES_SMALL_DF, _NODES = 96, 40  # Gauss-Legendre nodes on each side of the mode, for df below 10 and from 10
_CROWDING = 2  # nodes are crowded at the mode, where S_k bends sharply if k is large and df is small
_DROP = 40.0  # the outer integral ends where its integrand is exp(-40) = 4e-18 of the maximum
_DF_IS_INFINITE = 1e11  # the distribution differs from the limit by a multiple of 1 / df
_SLOPE_STEP = 1.0 / 64.0  # of the grid on which the slope of log S is kept
_MODE_ERROR = 0.03  # of the last but one step to the mode, in widths of the integrand
_CHUNK = 128  # integrals at once: what they need stays in the cache


LogTail = tuple[Callable[["Array"], "Array"], Callable[["Array"], tuple["Array", "Array"]]]  # see `tabulate`


# --------------------------------------------------------------------------------------------------- studentised tails


def tabulate(log_survival: Callable[[Array], Array]) -> LogTail:
    """Tabulate log S, finite and smooth on [0, 56], as piecewise Chebyshev interpolants.

    Log S(w), -inf beyond the end of the table, and -d log S / d log w with its derivative, roughly.

    >>> log_s, _ = tabulate(lambda w: np.log(2) + special.log_ndtr(-w))
    >>> log_s(np.array([1.96])).round(4)
    array([-2.9958])
    """
    starts, widths = _PANEL_EDGES[:-1], np.diff(_PANEL_EDGES)
    nodes = np.cos(np.pi * (np.arange(_DEGREE + 1) + 0.5) / (_DEGREE + 1))
    w = starts[:, None] + (nodes[None, :] + 1.0) / 2.0 * widths[:, None]
    values = log_survival(w.ravel()).reshape(w.shape)
    chebyshev = np.linalg.solve(np.polynomial.chebyshev.chebvander(nodes, _DEGREE), values.T)
    # coefficients fall by more than (1 + sqrt 2) from one to the next, so powers lose no digits
    powers = _to_powers() @ chebyshev

    def log_s(at: Array) -> Array:
        panel, local = _place(np.minimum(at, _TABLE_END))
        rows = powers.take(panel, axis=1)
        value = rows[-1]
        for row in rows[-2::-1]:
            value *= local
            value += row
        return np.where(at < _TABLE_END, value, -np.inf)

    grid = np.arange(0.0, _TABLE_END, _SLOPE_STEP)
    panel, local = _place(grid)
    first, second = (
        np.polynomial.chebyshev.chebval(
            local, (np.polynomial.chebyshev.chebder(chebyshev, order) * (2.0 / widths) ** order)[:, panel], tensor=False
        )
        for order in (1, 2)
    )
    slope, steepening = -grid * first, -grid * (first + grid * second)

    def elasticity(at: Array) -> tuple[Array, Array]:
        place = np.minimum(at, grid[-2]) / _SLOPE_STEP
        cell = place.astype(np.intp)
        share = place - cell
        return tuple(
            (1.0 - share) * values.take(cell) + share * values.take(cell + 1) for values in (slope, steepening)
        )

    return log_s, elasticity


def _place(at: Array) -> tuple[Index, Array]:
    """The panel of each point, and where it is there, from -1 to 1."""
    wide_before = _WIDE_FROM / _NARROW - _WIDE_FROM / _WIDE
    panel = np.minimum(at / _NARROW, wide_before + at / _WIDE).astype(np.intp)
    panel = np.minimum(panel, len(_PANEL_EDGES) - 2)
    start, half = _PANEL_EDGES[:-1], np.diff(_PANEL_EDGES) / 2.0
    return panel, (at - start.take(panel)) / half.take(panel) - 1.0


@lru_cache(maxsize=1)
def _to_powers() -> Array:
    """Coefficients of powers from those of Chebyshev polynomials, ``(degree + 1, degree + 1)``."""
    out = np.zeros((_DEGREE + 1, _DEGREE + 1))
    for j, row in enumerate(np.eye(_DEGREE + 1)):
        powers = np.polynomial.chebyshev.cheb2poly(row)
        out[: len(powers), j] = powers
    return out


def log_upper_tail(q: Array, df: Array, table: LogTail) -> Array:
    """Log P(W / s > q), elementwise; 0 where q <= 0, NaN where an argument is; ``df`` may be infinite (s = 1).

    >>> table = tabulate(lambda w: np.log(2) + special.log_ndtr(-w))
    >>> np.exp(log_upper_tail(np.array([2.228139]), np.array([10.0]), table)).round(6)
    array([0.05])
    """
    return log_tail_and_slope(q, df, table, slopes=False)[0]


def log_tail_and_slope(q: Array, df: Array, table: LogTail, *, slopes: bool = True) -> tuple[Array, Array]:
    """Log P(W / s > q) and, to three digits, its derivative in log q: NaN without `slopes` and where q <= 0."""
    log_s, elasticity = table
    out, slope = np.full(q.shape, np.nan), np.full(q.shape, np.nan)
    finite = ~(np.isnan(q) | np.isnan(df))
    out[finite & (q <= 0)] = 0.0
    out[finite & np.isposinf(q)] = -np.inf
    solve = finite & (q > 0) & np.isfinite(q)
    limit = solve & (df >= _DF_IS_INFINITE)
    if limit.any():
        out[limit], slope[limit] = log_s(q[limit]), -elasticity(q[limit])[0]
    for low, high, nodes in ((0.0, 10.0, _NODES_SMALL_DF), (10.0, _DF_IS_INFINITE, _NODES)):
        part = np.flatnonzero(solve & (df >= low) & (df < high))
        for start in range(0, len(part), _CHUNK):
            rows = part[start : start + _CHUNK]
            out[rows], slope[rows] = _integrate_over_scale(q[rows], df[rows], table, nodes, slopes)
    return np.minimum(out, 0.0), slope


def solve_tail(
    log_tail: Callable[[Array], tuple[Array, Array | None]],
    target: Array,
    low: Array,
    high: Array,
) -> Array:
    """Solve logit(tail(x)) = target elementwise for a falling tail, in log x between `low` and `high`.

    `log_tail` returns the logarithm and its derivative in log x, for Newton's steps, or None, for secant steps.

    >>> one = np.ones(1)
    >>> normal = lambda x: (np.log(2) + special.log_ndtr(-x), None)
    >>> solve_tail(normal, special.logit(0.05 * one), one, 3 * one).round(4)
    array([1.96])
    """

    def excess(x: Array) -> tuple[Array, Array | None]:
        log_sf, slope = log_tail(np.exp(x))
        with np.errstate(divide="ignore", invalid="ignore"):  # a full tail has logit inf
            upper = -np.expm1(log_sf)
            return log_sf - np.log(upper) - target, None if slope is None else slope / upper

    low, high = np.log(low), np.log(high)
    x, (f, slope) = high, excess(high)
    x_old, f_old = low, excess(low)[0] if slope is None else f
    close = 1e-11 if slope is None else 1e-9  # of a step; Newton's next one is about its square
    settled = np.zeros(len(x), dtype=bool)
    for _ in range(80):
        low, high = np.where(f > 0, np.maximum(low, x), low), np.where(f > 0, high, np.minimum(high, x))
        with np.errstate(invalid="ignore", divide="ignore"):
            step = -f / (slope if slope is not None else (f - f_old) / (x - x_old))
        inside = np.isfinite(step) & np.isfinite(f) & (x + step >= low) & (x + step <= high)
        step = np.where(inside, step, (low + high) / 2.0 - x)
        step = np.where((f == 0) | settled, 0.0, step)
        x_old, f_old, x = x, f, x + step
        settled |= (np.abs(step) <= close) & inside
        if not step.any() or settled.all():
            break
        f, slope = excess(x)
    return np.exp(x)


def _integrate_over_scale(
    q: Array, df: Array, table: LogTail, n_nodes: int, slopes: bool
) -> tuple[Array, Array | float]:
    """Log of the integral of exp(a(u)), u = log s, a = df (u - expm1(2u) / 2) + log S(q e^u) + constant; its slope.

    a is concave, and the slope of log S(q e^u) steepens at least as fast as e^u. So the drop from the mode
    is at least df (L - 1 + e^-L) on the left and df (e^R - 1 - R) on the right whatever q and k are, and the
    ends of the integral follow from df alone.
    """
    log_s, elasticity = table
    mode = _mode_of_log_scale(q, df, elasticity)
    left, right = _drop_lengths(_DROP / df)
    unit, weight = gauss_rule(n_nodes)
    near, scale = unit**_CROWDING, _CROWDING * unit ** (_CROWDING - 1) * weight
    u = np.concatenate([mode[:, None] - left[:, None] * near, mode[:, None] + right[:, None] * near], axis=1)
    w = np.concatenate([left[:, None] * scale, right[:, None] * scale], axis=1)
    at = q[:, None] * np.exp(u)
    exponent = df[:, None] * (u - np.expm1(2.0 * u) / 2.0) + log_s(at)
    top = exponent.max(axis=1)
    safe = np.where(np.isfinite(top), top, 0.0)
    shares = w * np.exp(exponent - safe[:, None])
    total = shares.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):  # an underflowed tail is log 0
        slope = -np.einsum("ij,ij->i", shares, elasticity(at)[0]) / total if slopes else np.nan
        return np.log(total) + safe + _log_normaliser(df), slope


def _mode_of_log_scale(q: Array, df: Array, elasticity: Callable[[Array], tuple[Array, Array]]) -> Array:
    """Root in u of df (1 - e^(2u)) = -d log S(q e^u) / du, by Newton's method; s <= 1 and q s within the table.

    Steps that leave the bracket halve it. A normal tail, S = exp(-w^2 / 4), has its root at the start.
    """
    high = np.minimum(0.0, np.log(_TABLE_END / q))
    low = np.minimum(high, np.minimum(-1.0, np.log(1e-3 / q)))
    u = np.clip(-0.5 * np.log1p(q**2 / (2.0 * df)), low, high)
    for _ in range(60):
        s = np.exp(u)
        slope, steepening = elasticity(q * s)
        excess, curvature = df * (1.0 - s) * (1.0 + s) - slope, 2.0 * df * s**2 + steepening
        above = excess > 0
        low, high = np.where(above, u, low), np.where(above, high, u)
        step = excess / curvature
        following = u + step
        u = np.where((following >= low) & (following <= high), following, (low + high) / 2.0)
        if (step**2 * curvature).max() < _MODE_ERROR**2:
            break
    return u


def _drop_lengths(c: Array) -> tuple[Array, Array]:
    """Solve L - 1 + e^-L = c and e^R - 1 - R = c by Newton steps from above, where both are convex."""
    left = np.sqrt(2.0 * c) + c
    right = np.minimum(np.sqrt(2.0 * c), np.log1p(2.0 * c) + 1.0)
    for _ in range(5):
        left = left - (left + np.expm1(-left) - c) / -np.expm1(-left)
        right = right - (np.expm1(right) - right - c) / np.expm1(right)
    return left, right


def _log_normaliser(df: Array) -> Array:
    """Log of 2 (df/2)^(df/2) e^(-df/2) / Gamma(df/2), without cancellation at large df."""
    x = df / 2.0
    large = x >= 15.0
    y = np.where(large, x, 15.0)
    stirling = 1.0 / (12.0 * y) - 1.0 / (360.0 * y**3) + 1.0 / (1260.0 * y**5) - 1.0 / (1680.0 * y**7)
    z = np.where(large, 1.0, x)
    direct = np.log(2.0) + z * np.log(z) - z - special.gammaln(z)
    return np.where(large, 0.5 * np.log(2.0 * y / np.pi) - stirling, direct)


# ----------------------------------------------------------------------------------------------------------- the range


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
    finite = ~(np.isnan(p_flat) | np.isnan(k_flat) | np.isnan(df_flat))
    out[finite & lower_empty] = 0.0
    out[finite & lower_full] = np.inf
    solve = finite & ~lower_empty & ~lower_full
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
def _range_table(k: float) -> LogTail:
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
