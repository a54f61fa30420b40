"""How many modes has a sample: kernel densities for figures, and Hartigan's dip with its test.

*Density.* The bandwidth keeps two clusters apart.

*Dip.* The largest vertical distance between the empirical distribution function F_n and the closest distribution
function with one mode, which is convex up to the mode and concave from there on. Hartigan (1985) finds it from the
greatest convex minorant of the lower corners (x_i, i - 1) and the least concave majorant of the upper corners (x_i, i)
of n F_n: the modal interval shrinks to where the two are farthest apart, until what lies outside of it deviates more.
"""

from __future__ import annotations

import math

import numpy as np

from lmemtest.core.arrays import Array, Index

BINS = 1024
_VISIBLE = 50.0  # a range has about this many bandwidths that a figure can show
# sqrt(n) times the dip of n uniform values that is exceeded with these probabilities; 60,000 (n = 1000) to 200,000
# simulated samples each, made by tests/simulation/test_dip.py. From 1000 on it changes by less than 1 %.
_TAIL = (0.5, 0.3, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 0.0005, 0.0002)
_QUANTILES = {
    20: (0.32781, 0.36843, 0.3949, 0.43474, 0.47007, 0.51088, 0.53904, 0.56472, 0.59651, 0.6163, 0.64066, 0.66743),
    50: (0.34554, 0.38723, 0.41546, 0.45803, 0.49618, 0.54047, 0.57152, 0.60012, 0.63571, 0.65901, 0.68053, 0.71441),
    100: (0.35541, 0.39892, 0.42819, 0.47191, 0.51064, 0.55747, 0.59206, 0.62152, 0.65785, 0.68346, 0.71386, 0.74238),
    200: (0.36168, 0.40586, 0.43612, 0.48067, 0.52171, 0.5701, 0.60272, 0.63597, 0.67511, 0.70017, 0.72953, 0.76354),
    1000: (0.37144, 0.41667, 0.44751, 0.49478, 0.53493, 0.58474, 0.61907, 0.65017, 0.69338, 0.72183, 0.74937, 0.77337),
}


# ---------------------------------------------------------------------------------------------------- kernel densities


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


# ------------------------------------------------------------------------------------------------------------- the dip


def dip(x: Array) -> float:
    """The dip of a sample of n values, from 1 / (2 n) to 1 / 4.

    References
    ----------
    Hartigan & Hartigan (1985), doi:10.1214/aos/1176346577; Hartigan (1985), doi:10.2307/2347485

    Examples
    --------
    >>> round(dip(np.linspace(0, 1, 20)), 3), round(dip(np.r_[np.linspace(0, 1, 10), np.linspace(9, 10, 10)]), 3)
    (0.025, 0.222)
    """
    x = np.sort(np.asarray(x, dtype=float))
    n = len(x)
    largest = 1.0  # in units of 1 / (2 n)
    if x[0] == x[-1]:
        return largest / (2 * n)
    values = x.tolist()
    before, after = _minorant(values), _majorant(values)
    low, high = 0, n - 1
    while True:
        convex, concave = _path(before, high, low)[::-1], _path(after, low, high)
        gap, new_low, new_high = _widest(x, convex, concave)
        if gap <= largest:
            break
        left = _below(x, convex[: int(np.searchsorted(convex, new_low)) + 1])
        right = _below(-x[::-1], n - 1 - concave[int(np.searchsorted(concave, new_high)) :][::-1])
        largest = max(largest, left, right)
        if (new_low, new_high) == (low, high):
            break
        low, high = new_low, new_high
    return largest / (2 * n)


def dip_p_value(distance: float, n: int) -> float:
    """Probability of a dip of at least `distance` among `n` uniform values.

    The uniform law has the largest dips of all laws with one mode, in large samples (Hartigan & Hartigan 1985), so this
    is an upper limit for the others. Simulated quantiles are interpolated: between sample sizes in 1 / sqrt(n), between
    probabilities by their logarithm in the square of the dip, which is also how the tail goes on beyond 0.0002.

    Examples
    --------
    >>> round(dip_p_value(0.49618 / 50**0.5, 50), 3), dip_p_value(0.2, 50) < 1e-6
    (0.05, True)
    """
    sizes = sorted(_QUANTILES, reverse=True)
    table = np.array([_QUANTILES[size] for size in sizes])
    root = 1.0 / math.sqrt(min(max(n, sizes[-1]), sizes[0]))
    quantile = np.array([np.interp(root, 1.0 / np.sqrt(sizes), column) for column in table.T]) ** 2
    value, logs = n * distance**2, np.log(_TAIL)
    if value <= quantile[0]:  # more than one half: nobody needs to know how much
        return float(1.0 - 0.5 * value / quantile[0])
    if value >= quantile[-1]:
        slope = (logs[-1] - logs[-5]) / (quantile[-1] - quantile[-5])
        return float(math.exp(logs[-1] + slope * (value - quantile[-1])))
    return float(math.exp(np.interp(value, quantile, logs)))


def _minorant(x: list[float]) -> list[int]:
    """For each point the knot before it, on the greatest convex minorant of all points up to it."""
    knots = [0] * len(x)
    for j in range(1, len(x)):
        k = j - 1
        while k > 0:
            m = knots[k]
            if (x[j] - x[k]) * (k - m) < (x[k] - x[m]) * (j - k):
                break
            k = m
        knots[j] = k
    return knots


def _majorant(x: list[float]) -> list[int]:
    """For each point the knot after it, on the least concave majorant of all points from it on: a reflection."""
    last = len(x) - 1
    return [last - k for k in _minorant([-value for value in x[::-1]])[::-1]]


def _path(knots: list[int], start: int, stop: int) -> Index:
    out = [start]
    while out[-1] != stop:
        out.append(max(knots[out[-1]], stop) if stop < start else min(knots[out[-1]], stop))
    return np.array(out, dtype=np.intp)


def _widest(x: Array, convex: Index, concave: Index) -> tuple[float, int, int]:
    """The largest distance from the minorant to the majorant, and the modal interval there."""
    at_convex = np.interp(x[convex], x[concave], concave + 1.0) - convex
    at_concave = concave + 1.0 - np.interp(x[concave], x[convex], convex)
    i, j = int(np.argmax(at_convex)), int(np.argmax(at_concave))
    if at_convex[i] > at_concave[j]:
        low = int(convex[i])
        return float(at_convex[i]), low, int(concave[np.searchsorted(concave, low)])
    high = int(concave[j])
    return float(at_concave[j]), int(convex[np.searchsorted(convex, high, side="right") - 1]), high


def _below(x: Array, convex: Index) -> float:
    """How far the steps rise above the convex part; of the reflection, how far they fall below the concave one."""
    if len(convex) < 2:
        return 0.0
    inner = np.arange(convex[0], convex[-1] + 1)
    return float((inner + 1.0 - np.interp(x[inner], x[convex], convex)).max())
