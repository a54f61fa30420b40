"""Exact coverage of intervals of P(A > B) from pairs: sums over all wins, ties and losses, nothing is simulated."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import special

from lmemtest.bench.outperforming.intervals import exact_interval, score_interval, share
from lmemtest.core.rounding import below

Array = NDArray[np.float64]


def tables(n: int, *, with_ties: bool = True) -> Array:
    """All wins, ties and losses of n pairs."""
    if not with_ties:
        won = np.arange(n + 1)
        return np.array([won, np.zeros(n + 1), n - won], dtype=float)
    win, tie = (grid.ravel() for grid in np.mgrid[: n + 1, : n + 1])
    possible = win + tie <= n
    win, tie = win[possible], tie[possible]
    return np.array([win, tie, n - win - tie], dtype=float)


def chances(counts: Array, probability: float, ties: float) -> Array:
    """Multinomial probability of each table where P and the share of ties are given."""
    of_win = probability - 0.5 * ties
    of_each = (of_win, ties, 1.0 - ties - of_win)
    logs = special.gammaln(counts.sum(axis=0) + 1.0)
    for count, chance in zip(counts, of_each, strict=True):
        logs = logs + special.xlogy(count, max(chance, 0.0)) - special.gammaln(count + 1.0)
    return np.asarray(np.exp(logs))


def ends_of(counts: Array, method: str, level: float = 0.95) -> tuple[Array, Array]:
    """Both ends of the intervals of many tables; bootstrap intervals with all draws instead of some."""
    if method in ("score", "exact"):
        return (score_interval if method == "score" else exact_interval)(counts, level)
    n = int(counts[:, 0].sum())
    # The sum of n draws of 0, 1, 2 is the n-th power of their generating function.
    shares = counts[::-1].T / n
    mass = np.fft.irfft(np.fft.rfft(shares, 2 * n + 1, axis=1) ** n, 2 * n + 1, axis=1)
    below_or_at = np.cumsum(np.clip(mass, 0.0, None), axis=1)
    if method == "percentile":
        at = np.tile([0.5 * (1.0 - level), 0.5 * (1.0 + level)], (len(shares), 1))
    else:
        at = _bca_shares_of(counts, below_or_at, mass, level)
    ends = [(~(below_or_at >= at[:, [i]] * (1.0 - 1e-9))).sum(axis=1) / (2.0 * n) for i in range(2)]
    return ends[0], ends[1]


def _bca_shares_of(counts: Array, below_or_at: Array, mass: Array, level: float) -> Array:
    """Shares of all draws at which the corrected intervals end, ``(tables, 2)``."""
    own = (2.0 * counts[0] + counts[1]).astype(int)
    rows = np.arange(len(own))
    z0 = special.ndtri(below_or_at[rows, own] - 0.5 * mass[rows, own])
    centred = np.array([1.0, 0.5, 0.0])[:, None] - share(counts)
    square, cube = (counts * centred**2).sum(axis=0), (counts * centred**3).sum(axis=0)
    skewness = np.divide(cube, 6.0 * square**1.5, out=np.zeros_like(cube), where=square > 0.0)
    out = []
    for end in (0.5 * (1.0 - level), 0.5 * (1.0 + level)):
        z = z0 + special.ndtri(end)
        out.append(special.ndtr(z0 + z / (1.0 - skewness * z)))
    known = square > 0.0
    return np.where(known[:, None], np.stack(out, axis=1), 0.5)  # all draws are alike


def coverage(n: int, probability: float, ties: float, method: str, level: float = 0.95) -> float:
    """How often the interval of n pairs holds P, exactly.

    Examples
    --------
    >>> round(coverage(10, 0.75, 0.0, "exact"), 4), round(coverage(10, 0.75, 0.0, "percentile"), 4)
    (0.9803, 0.924)
    """
    counts = tables(n)
    low, high = ends_of(counts, method, level)
    holds = ~(below(probability, low) | below(high, probability))
    return float(chances(counts, probability, ties) @ holds)
