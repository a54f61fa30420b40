"""Means of benchmarks that are a sample: the mixed model of wins, and benchmarks whose own variances are given.

Wins of n_b runs on benchmark b are ``y = mu + u_b + e`` with variances ``gamma s2`` and ``s2``. With the weights
``q_b = n_b / (1 + gamma n_b)`` of the benchmarks' means ``y_b``, their sum ``Q``, squares ``within`` benchmarks and
``m`` runs less one,

    mu = sum q_b y_b / Q,    R = within + sum q_b (y_b - mu)^2,    s2 = R / m,    Var(mu) = s2 / Q,

and gamma minimises the criterion of REML, ``m log R + sum log(1 + gamma n_b) + log Q``. Rows of arrays are models of
their own, ``n`` and ``y`` by benchmark; a benchmark that is not there has no runs.
"""

from __future__ import annotations

import numpy as np

from lmemtest.core.arrays import Array

_HALVINGS = 60
_RATIOS = np.geomspace(1e-6, 1e6, 49)  # of gamma times the mean number of runs: tried first, so that no optimum is lost


def _at(gamma: Array, n: Array, y: Array, within: Array) -> tuple[Array, Array, Array, Array]:
    """``q``, ``Q``, ``y - mu``, and ``R``."""
    q = n / (1.0 + gamma[:, None] * n)
    Q = q.sum(axis=1)
    apart = y - ((q * y).sum(axis=1) / Q)[:, None]
    return q, Q, apart, within + (q * apart**2).sum(axis=1)


def criterion(gamma: Array, n: Array, y: Array, within: Array) -> Array:
    """What the best gamma minimises."""
    _, Q, _, R = _at(gamma, n, y, within)
    m = n.sum(axis=1) - 1.0
    return np.asarray(m * np.log(R) + np.log1p(gamma[:, None] * n).sum(axis=1) + np.log(Q))


def slope(gamma: Array, n: Array, y: Array, within: Array) -> Array:
    """Its slope."""
    q, Q, apart, R = _at(gamma, n, y, within)
    m = n.sum(axis=1) - 1.0
    return np.asarray(-m * ((q * apart) ** 2).sum(axis=1) / R + Q - (q**2).sum(axis=1) / Q)


def best_gamma(n: Array, y: Array, within: Array) -> Array:
    """Beside the best of some values, where the slope has no sign."""
    there = (n > 0.0).sum(axis=1)
    tried = np.concatenate([[0.0], _RATIOS])[:, None] * there / n.sum(axis=1)
    best = np.argmin([criterion(gamma, n, y, within) for gamma in tried], axis=0)
    each = np.arange(len(best))
    low, high = tried[np.maximum(best - 1, 0), each], tried[np.minimum(best + 1, len(tried) - 1), each]
    high = np.where((best == 0) & (slope(low, n, y, within) >= 0.0), 0.0, high)
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high)
        falls = slope(middle, n, y, within) < 0.0
        low, high = np.where(falls, middle, low), np.where(falls, high, middle)
    return high


def mean_of_wins(n: Array, y: Array, within: Array) -> tuple[Array, Array, Array]:
    """``mu``, its variance and Satterthwaite's degrees of freedom.

    With ``h`` the slope of ``log Var(mu)`` and ``H`` the curvature of the criterion they are ``1 / (h^2 / H + 1 / m)``,
    and ``m`` where gamma is zero.
    """
    gamma, m = best_gamma(n, y, within), n.sum(axis=1) - 1.0
    q, Q, apart, R = _at(gamma, n, y, within)
    A, B, S, C, T = ((q**power * apart**of).sum(axis=1) for power, of in ((2, 0), (2, 1), (2, 2), (3, 2), (3, 0)))
    h = A / Q - S / R
    H = m * (2.0 * (C - B**2 / Q) / R - (S / R) ** 2) - A + 2.0 * T / Q - (A / Q) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        df = np.where(gamma > 0.0, 1.0 / (h**2 / H + 1.0 / m), m)
    return y[:, 0] - apart[:, 0], R / (m * Q), df


def mean_of(each: Array, within: Array) -> tuple[Array, Array]:
    """Mean of the benchmarks' probabilities and its variance, where that within each of them is given.

    The variance between benchmarks solves ``sum (each - mean)^2 / (between + within) = N - 1`` (Paule & Mandel 1982),
    and each benchmark has the weight ``1 / (between + within)``. Benchmarks are in the last axis; NaN is none.
    """
    there = np.isfinite(each)
    least = there.sum(axis=-1) - 1.0

    def weighted(between: Array) -> tuple[Array, Array, Array]:
        weight = np.where(there, 1.0 / np.maximum(between[..., None] + within, 1e-300), 0.0)
        total = weight.sum(axis=-1)
        middle = np.where(there, weight * each, 0.0).sum(axis=-1) / total
        return weight, total, middle

    low, high = np.zeros(least.shape), np.nanvar(each, axis=-1, ddof=1)  # with the upper end the sum is N - 1 at most
    for _ in range(_HALVINGS):
        between = 0.5 * (low + high)
        weight, _, middle = weighted(between)
        excess = np.where(there, weight * (each - middle[..., None]) ** 2, 0.0).sum(axis=-1) > least
        low, high = np.where(excess, between, low), np.where(excess, high, between)
    _, total, middle = weighted(high)
    return middle, 1.0 / total
