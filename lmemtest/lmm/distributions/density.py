"""Kernel densities for figures, with a bandwidth that keeps two clusters apart."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from lmemtest.core.arrays import Array


BINS = 1024
_VISIBLE = 50.0  # a range has about this many bandwidths that a figure can show


def sheather_jones(x: Array) -> float:
    """The bandwidth of Sheather and Jones, by solving their equation; NaN where it has no solution.

    It estimates the curvature of the density instead of taking the normal one's, which is why it does not smear two
    modes into one as rules of thumb do (doi:10.1111/j.2517-6161.1991.tb01857.x).

    >>> two = np.concatenate([np.linspace(-1, 1, 25), np.linspace(9, 11, 25)])
    >>> bool(sheather_jones(two) < 0.3 * rule_of_thumb(two))
    True
    """
    from scipy.optimize import brentq

    n, spread = len(x), _spread(x)
    if n < 2 or not spread > 0:
        return math.nan
    distance, pairs = _pairs(x)

    def curvature(h: float) -> float:
        z = (distance / h) ** 2
        total = 2.0 * pairs @ (np.exp(-0.5 * z) * (z * z - 6.0 * z + 3.0)) + 3.0 * n
        return float(total / (n * (n - 1) * h**5 * math.sqrt(2.0 * math.pi)))

    def third(h: float) -> float:
        z = (distance / h) ** 2
        total = 2.0 * pairs @ (np.exp(-0.5 * z) * (z**3 - 15.0 * z * z + 45.0 * z - 15.0)) - 15.0 * n
        return float(-total / (n * (n - 1) * h**7 * math.sqrt(2.0 * math.pi)))

    ratio = curvature(1.24 * spread * n ** (-1 / 7)) / third(1.23 * spread * n ** (-1 / 9))
    if not ratio > 0:
        return math.nan

    def excess(h: float) -> float:
        rough = curvature(1.357 * ratio ** (1 / 7) * h ** (5 / 7))
        return (1.0 / (2.0 * math.sqrt(math.pi) * n * rough)) ** 0.2 - h if rough > 0 else math.inf

    high = 2.0 * spread * n**-0.2  # the best bandwidth for the smoothest of all densities is 1.144 of this unit
    low = max(0.01 * high, np.ptp(x) / BINS)
    if not (low < high and math.isfinite(excess(low)) and excess(low) > 0 > excess(high)):
        return math.nan
    return float(brentq(excess, low, high, xtol=1e-6 * high))


def rule_of_thumb(x: Array) -> float:
    """Silverman's rule: 0.9 n^(-1/5) times the smaller of the standard deviation and the quartile distance / 1.349."""
    return 0.9 * _spread(x) * len(x) ** -0.2


def drawn_bandwidth(x: Array) -> float:
    """The bandwidth for a figure: Sheather and Jones, else the rule of thumb; at least 1/50 of the range.

    Half of the scores may be one number, and a density of that has no best bandwidth; the limit is what can be seen.
    """
    best = sheather_jones(x)
    if math.isnan(best):
        best = rule_of_thumb(x)
    return max(best, float(np.ptp(x)) / _VISIBLE)


def density(x: Array, grid: Array, bandwidth: float) -> Array:
    """The kernel density at the points of `grid`."""
    if len(x) > BINS:
        low, step, counts = _binned(x, float(x.min()), float(x.max()))
        centres = low + step * np.arange(BINS)
    else:
        centres, counts = np.asarray(x, dtype=float), np.ones(len(x))
    kernels = np.exp(-0.5 * ((grid[:, None] - centres) / bandwidth) ** 2)
    return kernels @ counts / (len(x) * bandwidth * math.sqrt(2.0 * math.pi))


def count_modes(heights: Array) -> int:
    """The number of maxima of a density over a grid, ends included; a plateau is one.

    >>> count_modes(np.array([0.0, 1.0, 0.5, 1.0, 0.0])), count_modes(np.array([1.0, 1.0, 0.5, 0.2]))
    (2, 1)
    """
    slope = np.sign(np.diff(heights))
    slope = np.concatenate([[1.0], slope[slope != 0], [-1.0]])
    return int(((slope[:-1] > 0) & (slope[1:] < 0)).sum())


def _spread(x: Array) -> float:
    """The smaller of two estimates of the standard deviation; the other where the middle half is one number."""
    sd = float(np.std(x, ddof=1))
    quartiles = float(np.subtract(*np.quantile(x, [0.75, 0.25]))) / 1.349
    return min(sd, quartiles) if quartiles > 0 else sd


def _pairs(x: Array) -> tuple[Array, Array]:
    """Distances between the values, in bins, and the number of pairs at each; a value with itself is no pair."""
    step = float(np.ptp(x)) / (BINS - 1)
    counts = np.bincount(np.round((x - x.min()) / step).astype(np.intp), minlength=BINS).astype(float)
    product = np.fft.irfft(np.abs(np.fft.rfft(counts, 2 * BINS)) ** 2, 2 * BINS)[:BINS].round()
    product[0] = (product[0] - len(x)) / 2.0
    return step * np.arange(BINS, dtype=float), np.asarray(product, dtype=float)


def _binned(x: Array, low: float, high: float) -> tuple[float, float, Array]:
    """Weights on a grid: each value is shared between its two neighbours."""
    step = (high - low) / (BINS - 1)
    place = (x - low) / step
    left = np.clip(place.astype(np.intp), 0, BINS - 2)
    share = place - left
    counts = np.bincount(left, weights=1.0 - share, minlength=BINS)
    counts = counts + np.bincount(left + 1, weights=share, minlength=BINS)
    return low, step, np.asarray(counts, dtype=float)
