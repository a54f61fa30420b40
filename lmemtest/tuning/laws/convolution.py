r"""A power law on [0, 1] plus normal noise: probabilities by quadrature of positive terms.

``Z = X + s N`` with ``P(X <= x) = x^h`` on [0, 1], ``h = c / 2``, and N standard normal. With ``u`` running over the
noise, ``x = z + s u``, and phi, Phi the normal density and distribution function,

    f(z)     = h  int x^(h-1) phi(u) du
    F(z)     = Phi((z - 1) / s) + int x^h phi(u) du                       =: Phi((z - 1) / s) + J(z)
    1 - F(z) = Phi(-z / s) + int (1 - x^h) phi(u) du

over 0 <= x <= 1. Every term is positive, so nothing cancels and both tails keep their digits. The integrands are
log-concave up to a power of x; each is integrated over the window in which it is above exp(-45) of its largest value,
by 48 Gauss nodes: Gauss-Jacobi with weight x^(h-1) where the window reaches x = 0, Gauss-Legendre elsewhere. A normal
density over 19 standard deviations needs about 45 nodes for double precision (its Chebyshev coefficients fall like
exp(-n^2 / 180)).
"""

from __future__ import annotations

import math

import numpy as np
from scipy import special

from lmemtest.core.arrays import Array, Mask
from lmemtest.core.quadrature import gauss_rule, power_rule

NODES = 48
_DROP = 45.0  # exp(-45) = 3e-20, below the last digit
_REACH = math.sqrt(2.0 * _DROP)
_NEAR_ZERO = 0.03  # share of the peak below which the left end of a window is taken as zero
_NEWTON = 6
_WIDE_ENOUGH = 1.5 * _DROP  # a window that is 22 % too wide still has nodes enough
_LOG_ROOT_2PI = 0.5 * math.log(2.0 * math.pi)
_WIDE = 0.05  # noise from which one rule over [0, 1] resolves Phi((x - z) / s)
_HIGH = math.log(0.8)
_TINY = 1e-300

Moments = tuple[Array, Array, Array]


def _peak(z: Array, s: float, p: float) -> Array:
    """Noise u at the largest value of ``x^p phi(u)`` over 0 <= x <= 1 (of phi alone for p <= 0)."""
    if p <= 0.0:
        free = np.maximum(0.0, -z / s)
    else:
        root = np.hypot(z, 2.0 * s * math.sqrt(p))
        free = np.where(z >= 0.0, 2.0 * p * s / (root + z), (root - z) / (2.0 * s))
    return np.minimum(free, (1.0 - z) / s)


def _end(z: Array, s: float, p: float, start: Array, peak: Array, at_peak: Array) -> Array:
    """Where the logarithm of ``x^p phi(u)`` is `_DROP` below its peak, from a `start` beyond that point.

    The drop is convex, so Newton's method approaches from outside and the window is never too narrow.
    """
    u = start
    for _ in range(_NEWTON):
        x = np.maximum(z + s * u, _TINY)
        drop = 0.5 * (u - peak) * (u + peak) - p * np.log(x / at_peak)
        far = drop > _WIDE_ENOUGH
        if not far.any():
            break
        slope = np.where(far, u - p * s / x, 1.0)
        u = np.where(far & (slope != 0.0), u - (drop - _DROP) / slope, u)
    return u


def _right_end(z: Array, s: float, p: float) -> Array:
    peak = _peak(z, s, p)
    at_peak = np.maximum(z + s * peak, _TINY)
    return np.minimum(_end(z, s, p, peak + _REACH, peak, at_peak), (1.0 - z) / s)


def _left_end(z: Array, s: float, p: float) -> tuple[Array, Mask]:
    """The left end of the window, and whether it is x = 0."""
    p = max(p, 0.0)
    peak = _peak(z, s, p)
    at_peak = np.maximum(z + s * peak, _TINY)
    start = np.maximum(peak - _REACH, (_NEAR_ZERO * at_peak - z) / s)
    x = np.maximum(z + s * start, _TINY)
    drop = 0.5 * (start - peak) * (start + peak) - p * np.log(x / at_peak)
    zero = (drop < 0.999 * _DROP) | (x <= _TINY)
    return np.where(zero, -z / s, _end(z, s, p, start, peak, at_peak)), zero


def moments(z: Array, s: float, c: float) -> Moments:
    """A log-scale, and ``int x^(h-1) phi(u) du`` and ``int x^h phi(u) du`` divided by its exponential: what is behind
    density, distribution function and their derivatives.

    At scores `z` (m,) and noise `s` > 0, shares of the range, for `c` > 0 hyperparameters.
    """
    h = 0.5 * c
    left, zero = _left_end(z, s, h - 1.0)
    right = _right_end(z, s, h)
    log_scale, low, high = np.empty_like(z), np.empty_like(z), np.empty_like(z)
    for rows, from_zero in ((zero, True), (~zero, False)):
        if rows.any():
            part = _jacobi_sum if from_zero else _legendre_sum
            log_scale[rows], low[rows], high[rows] = part(z[rows], s, h, left[rows], right[rows])
    return log_scale, low, high


def _jacobi_sum(z: Array, s: float, h: float, _: Array, right: Array) -> tuple[Array, ...]:
    t, weight = power_rule(NODES, h - 1.0)
    end = np.maximum(z + s * right, _TINY)
    u = (end / s)[:, None] * t - (z / s)[:, None]
    top = -0.5 * np.clip(0.0, u[:, 0], u[:, -1]) ** 2  # of phi between the nodes
    u *= u
    u *= -0.5
    u -= top[:, None]
    sums = np.exp(u, out=u) @ np.column_stack([weight, weight * t])
    # dx = s du, and x^(h-1) dx = end^h t^(h-1) dt
    log_scale = top + h * np.log(end) - math.log(s) - _LOG_ROOT_2PI
    return log_scale, sums[:, 0], end * sums[:, 1]


def _legendre_sum(z: Array, s: float, h: float, left: Array, right: Array) -> tuple[Array, ...]:
    t, weight = gauss_rule(NODES)
    width = right - left
    u = left[:, None] + width[:, None] * t
    x = np.clip(z[:, None] + s * u, _TINY, 1.0)
    u *= u
    u *= -0.5
    if h != 1.0:
        u += (h - 1.0) * np.log(x)
    top = u.max(axis=1)
    u -= top[:, None]
    terms = np.exp(u, out=u)
    low = terms @ weight
    terms *= x
    return top - _LOG_ROOT_2PI, width * low, width * (terms @ weight)


def _log(x: Array) -> Array:
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(x))


def log_density(z: Array, s: float, c: float) -> Array:
    """``log f(z)`` of the standardised law, ``(m,)``."""
    log_scale, low, _ = moments(z, s, c)
    return math.log(0.5 * c) + log_scale + _log(low)


def log_below(z: Array, s: float, c: float, got: Moments | None = None) -> Array:
    """``log F(z)``, ``(m,)``, at most 0."""
    log_scale, _, high = moments(z, s, c) if got is None else got
    return np.minimum(np.logaddexp(special.log_ndtr((z - 1.0) / s), log_scale + _log(high)), 0.0)


def log_above(z: Array, s: float, c: float, below: Array | None = None) -> Array:
    """``log (1 - F(z))``, ``(m,)``, with full relative accuracy in the upper tail."""
    below = log_below(z, s, c) if below is None else below
    with np.errstate(divide="ignore"):
        out = np.asarray(np.log(-np.expm1(below)))
    rows = below > _HIGH  # above it the difference loses digits
    if rows.any():
        out[rows] = _log_above_directly(z[rows], s, c, out[rows])
    return out


def _log_above_directly(z: Array, s: float, c: float, difference: Array) -> Array:
    h = 0.5 * c
    # With v = 1 - x, 1 - x^h lies between v and h v, so the window of v phi(u) serves.
    left, zero = _left_end(1.0 - z, s, 1.0)
    left = np.where(zero, (z - 1.0) / s, left)
    right = _right_end(1.0 - z, s, 1.0)
    inside = 1.0 - z + s * right < 0.9  # away from x = 0, where x^h is not smooth
    out = difference.copy()
    if inside.any():
        out[inside] = _log_above_by_parts(z[inside], s, h, left[inside], right[inside])
    if s >= _WIDE and not inside.all():
        out[~inside] = _log_above_wide(z[~inside], s, h)
    return out


def _log_above_by_parts(z: Array, s: float, h: float, left: Array, right: Array) -> Array:
    t, weight = gauss_rule(NODES)
    width = right - left
    u = left[:, None] + width[:, None] * t
    v = np.clip((1.0 - z)[:, None] + s * u, _TINY, 1.0 - 1e-16)
    exponent = np.log(-np.expm1(h * np.log1p(-v))) - 0.5 * u * u
    top = exponent.max(axis=1)
    total = (np.exp(exponent - top[:, None]) * weight).sum(axis=1) * width
    return np.logaddexp(special.log_ndtr(-z / s), top - _LOG_ROOT_2PI + _log(total))


def _log_above_wide(z: Array, s: float, h: float) -> Array:
    """``int h x^(h-1) Phi((x - z) / s) dx`` by one rule over [0, 1]."""
    t, weight = power_rule(NODES, h - 1.0)
    if z.max() < 1.0 + 30.0 * s:  # nothing underflows
        return np.asarray(np.log(h * (special.ndtr((t - z[:, None]) / s) @ weight)))
    exponent = special.log_ndtr((t - z[:, None]) / s)
    top = exponent.max(axis=1)
    return top + np.log(h * (np.exp(exponent - top[:, None]) @ weight))
