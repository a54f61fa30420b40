r"""Maximum product of spacings, for ties and censored scores, and its maxima under both quadratic laws.

Scores are oriented so that smaller is better (convex). The sorted distinct scores e_1 < ... < e_m, with the limits
beyond which scores are only counted, cut the line into buckets of probability p_0, ..., p_m, and

    M = sum_i N_i log p_i.

Each score lies half in the bucket below it and half in the bucket above it; a counted score lies in the bucket beyond
its limit; half a score more lies at each end. Without ties and limits every N_i is 1: the product of spacings. M is
bounded, because no p_i exceeds 1, where a likelihood is not: the density is infinite at the best score for c < 2. The
halves make M the same for -y with the ends exchanged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import special

from lmemtest.core.arrays import Array, Index
from lmemtest.tuning.laws import convolution
from lmemtest.tuning.laws.noisy_quadratic import standard_quantile

Box = tuple[float, float]
Peak = tuple[float, tuple[float, float, float]]  # a maximum of M at one c, and a, b, o there
Slope = tuple[float, Array, Array]  # M with its gradient and the scoring matrix, in a, b and log o

FARTHEST = 1e3  # the best score lies at most so many ranges of the scores below the smallest one
_CLOSEST = 1e-10  # share of the range of the scores
_ROUNDING = 16.0 * np.finfo(float).eps
_SAME = 1024.0 * np.finfo(float).eps  # of the largest score: scores that are closer are one, computed in two ways
_GRID, _ZOOM, _ZOOMS = 160, 33, 5
_NOISES = (0.03, 0.2, 0.8)  # starts, as shares of the range b - a
_QUIET_NOISE, _NORMAL_WIDTH = 0.01, 0.3  # a little noise for a law without; a little range for one of noise only
_LEAST_NOISE = 1e-4  # share of the range of the scores; less is compared with none
_NARROWEST = 1e-3  # b - a, as a share of the range of the scores
_ITERATIONS = 60
_PINS = 1e4  # scores that hold a quantile: M is 1e-4 of its squared slope off
_HIGHEST = 300.0  # its square is still a number
_ENOUGH = 1e-7  # a step that promises less than this of M ends the search; intervals need 1e-3
_TABLE = 96
_FEW, _MANY = 400, 10  # buckets that a maximum is looked for with, where there are ten times as many
_CLOSE = 20.0  # a maximum so much lower with few buckets is not the highest with all
_ONE = 0.01  # two maxima that differ by less are one


@dataclass(frozen=True, slots=True, eq=False)
class Spacings:
    """Edges of the buckets, ``(m,)`` ascending, and what lies in them, ``(m + 1,)``."""

    edges: Array
    weights: Array

    @property
    def total(self) -> float:
        """Scores, and one more."""
        return float(self.weights.sum())

    @property
    def span(self) -> float:
        """Range of the edges."""
        return float(self.edges[-1] - self.edges[0])

    @property
    def closest(self) -> float:
        """The smallest distance of an end from the edges that is tried: not less than their rounding."""
        return max(_CLOSEST * self.span, _ROUNDING * float(np.abs(self.edges[[0, -1]]).max()))

    @property
    def shares(self) -> Array:
        """Estimated probability below each edge, ``(m,)``."""
        return np.asarray(np.cumsum(self.weights)[:-1] / self.total)


def rounding_of(scores: Array) -> float:
    """How far apart finite scores may be that differ by rounding only."""
    return _SAME * float(np.abs(scores).max(initial=0.0))


def distinct(exact: Array) -> tuple[Array, Index]:
    """The different ones of some scores, sorted, and how often each occurs.

    Scores that differ by rounding count as the same, and have the middle of their range: a law that moves its
    probability by the last bit of a score has a bucket between them that is empty in double precision.
    """
    exact = np.sort(exact)
    first = np.flatnonzero(np.concatenate([[True], np.diff(exact) > rounding_of(exact)])[: len(exact)])
    counts = np.diff(np.append(first, len(exact)))
    low, high = exact[first], exact[first + counts - 1]
    return np.where(low == high, low, 0.5 * low + 0.5 * high), counts


def spacings(exact: Array, lower: float, n_lower: int, upper: float, n_upper: int) -> Spacings:
    """Buckets of scores: `exact` ones, and numbers of those at or beyond a limit."""
    edges, counts = distinct(exact)
    halves = 0.5 * counts
    weights = np.concatenate([halves, [0.0]]) + np.concatenate([[0.0], halves])
    weights[[0, -1]] += 0.5
    # A limit splits the bucket at its end; what lay in there is on the inner side, but for half a score.
    if n_lower:
        edges, weights = np.append(lower, edges), np.append(n_lower + 0.5, weights)
        weights[1] -= 0.5
    if n_upper:
        edges, weights = np.append(edges, upper), np.append(weights, n_upper + 0.5)
        weights[-2] -= 0.5
    return Spacings(edges, weights)


def within(data: Spacings, low: float, high: float) -> Spacings:
    """The buckets of a law between `low` and `high`: a score at such an end lies in the bucket inside of it."""
    edges, weights = data.edges, data.weights
    near = rounding_of(edges)
    if abs(edges[0] - low) <= near:
        edges, weights = edges[1:], np.concatenate([[weights[0] + weights[1]], weights[2:]])
    if abs(edges[-1] - high) <= near:
        edges, weights = edges[:-1], np.concatenate([weights[:-2], [weights[-2] + weights[-1]]])
    return Spacings(edges, weights)


def thinned(data: Spacings) -> Spacings:
    """Neighbouring buckets put together until few are left, or the same: what is lost of M hardly moves its maxima."""
    size = len(data.edges) // _FEW
    if size < _MANY:
        return data
    last = np.arange(size, len(data.edges) - size // 2, size)
    return Spacings(data.edges[last - 1], np.add.reduceat(data.weights, np.append(0, last)))


# ---------------------------------------------------------------------- without noise


def _log_ratio(gap: Array) -> Array:
    """``log(1 - exp(gap))`` for ``gap < 0``."""
    with np.errstate(divide="ignore"):
        return np.asarray(np.log(-np.expm1(gap)))


def quiet_value(data: Spacings, h: float, a: Array, b: tuple[float | Array, float | Array]) -> tuple[Array, Array]:
    """M maximised over b within its box, and that b, for each `a`, ``(g,)``.

    With ``r = ((e_m - a) / (b - a))^h``, the probability below the last edge, M is a function of a plus
    ``(W - N_m) log r + N_m log(1 - r)``, which has its maximum at ``r = 1 - N_m / W``.
    """
    distance = data.edges - a[:, None]
    logs = h * np.log(distance)
    inner = logs[:, 1:] - logs[:, -1:] + _log_ratio(logs[:, :-1] - logs[:, 1:])
    last, total = float(data.weights[-1]), data.total
    value = data.weights[0] * (logs[:, 0] - logs[:, -1]) + inner @ data.weights[1:-1]
    reach = distance[:, -1]
    best = np.clip(a + reach * (1.0 - last / total) ** (-1.0 / h), b[0], b[1])
    with np.errstate(divide="ignore", invalid="ignore"):
        log_r = h * np.log(reach / (best - a))
        value = value + (total - last) * log_r + last * _log_ratio(log_r)
    return np.where(np.isnan(value), -np.inf, value), best


def quiet_peak(data: Spacings, c: float, a: Box, b: Box) -> Peak:
    """The maximum without noise: a grid over the logarithm of the distance of a from the first edge, refined."""
    first, h = float(data.edges[0]), 0.5 * c
    low = math.log(max(first - a[1], data.closest))
    high = math.log(min(max(first - a[0], data.closest), FARTHEST * data.span))
    ends, points = (low, max(low, high)), _GRID
    for _ in range(_ZOOMS + 1):
        grid = np.linspace(ends[0], ends[1], points)
        value, other = quiet_value(data, h, first - np.exp(grid), b)
        top = int(np.argmax(value))
        ends, points = (grid[max(top - 1, 0)], grid[min(top + 1, len(grid) - 1)]), _ZOOM
    at = float(np.clip(first - math.exp(grid[top]), a[0], a[1]))  # rounding must not carry it out of its box
    return float(value[top]), (at, float(other[top]), 0.0)


# ---------------------------------------------------------------------- with noise


_NOWHERE = -math.inf, np.zeros(3), np.eye(3)


def noisy_value(data: Spacings, c: float, at: Array) -> Slope:
    """M at ``(a, b, log o)`` with its derivatives.

    With f and J as in `convolution`, ``z = (y - a) / (b - a)`` and ``s = o / (b - a)``,

        dF/da = (h J - f) / (b - a),    dF/db = -h J / (b - a),    dF/d log o = h J - z f.
    """
    a, b, log_o = at
    width, h = b - a, 0.5 * c
    if not width > 0.0:
        return _NOWHERE
    s, z = math.exp(log_o) / width, (data.edges - a) / width
    if not 1e-7 < s < 1e5:
        return _NOWHERE
    log_scale, low, high = moments = convolution.moments(z, s, c)
    below = convolution.log_below(z, s, c, moments)
    above = convolution.log_above(z, s, c, below)
    log_p = _log_probabilities(below, above)
    if not np.isfinite(log_p).all():
        return _NOWHERE
    f, hj = h * low, h * high
    slopes = np.column_stack([(hj - f) / width, -hj / width, hj - z * f])
    # Divided by the probability before it underflows: their ratio is that of a density to a probability.
    relative = np.zeros((len(log_p), 3))
    relative[:-1] = slopes * np.exp(np.minimum(log_scale - log_p[:-1], _HIGHEST))[:, None]
    relative[1:] -= slopes * np.exp(np.minimum(log_scale - log_p[1:], _HIGHEST))[:, None]
    weighted = relative * data.weights[:, None]
    return float(data.weights @ log_p), weighted.sum(axis=0), relative.T @ weighted


def _log_probabilities(below: Array, above: Array) -> Array:
    """Logarithms of the probabilities of the buckets, from the tail in which each loses fewer digits."""
    below = np.concatenate([[-np.inf], below, [0.0]])
    above = np.concatenate([[0.0], above, [-np.inf]])
    with np.errstate(invalid="ignore"):
        lower = below[1:] + _log_ratio(np.minimum(below[:-1] - below[1:], 0.0))
        upper = above[:-1] + _log_ratio(np.minimum(above[1:] - above[:-1], 0.0))
    return np.where(below[1:] < above[:-1], lower, upper)


def bounds(data: Spacings, a: Box, b: Box, o: Box) -> tuple[Array, Array]:
    """Lower and upper ends of a, b and log o within which noisy laws are searched, in the units of the scores."""
    span = data.span
    first, last = float(data.edges[0]), float(data.edges[-1])
    floor, roof = math.log(_LEAST_NOISE * span), math.log(FARTHEST * span)
    log_o = [math.log(end) if end > 0.0 else -math.inf for end in o]
    low = [max(a[0], first - FARTHEST * span), max(b[0], first - span), min(max(log_o[0], floor), roof)]
    high = [min(a[1], last + span), min(b[1], last + FARTHEST * span), max(min(log_o[1], roof), low[2])]
    return np.array(low), np.array(high)


def climb(
    data: Spacings,
    c: float,
    start: Array,
    box: tuple[Array, Array],
    fixed: int | None = None,
    point: Spacings | None = None,
) -> tuple[float, Array]:
    """A local maximum of M from `start` by damped scoring within a box; one parameter or one quantile may be held."""

    low, high = box

    def slope(at: Array) -> Slope:
        here = noisy_value(data, c, at)
        if point is None or here[0] == -math.inf:
            return here
        value, gradient, information = noisy_value(point, c, at)
        return here[0] + value, here[1] + gradient, here[2] + information

    at = np.clip(start, low, high)
    (value, gradient, information), damping = slope(at), 1e-3
    for _ in range(_ITERATIONS):
        if value == -math.inf:
            break
        stuck = ((at <= low) & (gradient < 0.0)) | ((at >= high) & (gradient > 0.0))
        if fixed is not None:
            stuck[fixed] = True
        free = np.flatnonzero(~stuck)
        if not len(free):
            break
        uphill, matrix = gradient[free], information[np.ix_(free, free)]
        diagonal = np.maximum(np.diag(matrix), 1e-12)
        for _ in range(12):
            step = np.linalg.solve(matrix + damping * np.diag(diagonal), uphill)
            if free[-1] == 2:  # noise by a factor of at most 7.4 at once
                step = step * min(1.0, 2.0 / max(abs(step[-1]), 1e-300))
            new = at.copy()
            new[free] = np.clip(at[free] + step, low[free], high[free])
            there = slope(new) if new[1] - new[0] > _NARROWEST * data.span else _NOWHERE
            if there[0] > value:
                break
            damping *= 6.0
        else:
            break
        promised = float(uphill @ (new - at)[free])
        at, (value, gradient, information), damping = new, there, max(damping / 10.0, 1e-9)
        if promised < _ENOUGH:
            break
    return value, at


def pinned(value: float, p: float) -> Spacings:
    """So many scores on either side of `value` that M has its peak where the probability below it is `p`.

    Their part of M is largest, `pinned_top`, there; a probability that is off by a share d costs `_PINS` d^2 / 2.
    """
    total = _PINS / min(p, 1.0 - p)
    return Spacings(np.array([value]), total * np.array([p, 1.0 - p]))


def pinned_top(p: float) -> float:
    """The largest value of the part of M that belongs to `pinned`."""
    total = _PINS / min(p, 1.0 - p)
    return float(total * (p * math.log(p) + (1.0 - p) * math.log1p(-p)))


def quiet_held(data: Spacings, c: float, a: Box, b: Box, value: float, p: float) -> float:
    """The maximum without noise over the laws whose quantile at `p` is `value`."""
    first, last, h = float(data.edges[0]), float(data.edges[-1]), 0.5 * c
    share = p ** (1.0 / h)
    # a = value - share w and b = a + w; the narrowest w leaves the edges just inside
    narrowest = max((last - value) / (1.0 - share), (value - first) / share, 0.0)

    def held(excess: Array) -> Array:
        width = narrowest + excess
        at = value - share * width
        other = at + width
        allowed = (at >= a[0]) & (at <= a[1]) & (other >= b[0]) & (other <= b[1]) & (at < first) & (other > last)
        out = np.full(len(at), -np.inf)
        if allowed.any():
            out[allowed], _ = quiet_value(data, h, at[allowed], (other[allowed], other[allowed]))
        return out

    ends, points = (math.log(data.closest), math.log(FARTHEST * data.span)), _GRID
    for _ in range(_ZOOMS + 1):
        grid = np.linspace(ends[0], ends[1], points)
        values = held(np.exp(grid))
        top = int(np.argmax(values))
        ends, points = (grid[max(top - 1, 0)], grid[min(top + 1, len(grid) - 1)]), _ZOOM
    return float(values[top])


@lru_cache(maxsize=256)
def _table(c: float, s: float) -> tuple[Array, Array]:
    """Quantiles of the standardised law at a fixed set of probabilities."""
    p = special.ndtr(np.linspace(-4.5, 4.5, _TABLE))
    low = p <= 0.5
    z = np.concatenate(
        [standard_quantile(p[low], s, c, above=False), standard_quantile(1.0 - p[~low], s, c, above=True)]
    )
    return p, z


def _start(data: Spacings, c: float, s: float) -> Array:
    """a, b and log o from a regression of the edges on the quantiles of a law with noise `s`."""
    z = np.interp(data.shares, *_table(c, s))
    spread = z - z.mean()
    width = max(float(spread @ data.edges / (spread @ spread)), 0.01 * data.span)
    a = float(data.edges.mean() - width * z.mean())
    return np.array([a, a + width, math.log(s * width)])


def _normal_start(data: Spacings, c: float) -> Array:
    """Nearly all noise: a regression of the edges on normal quantiles."""
    z = special.ndtri(data.shares)
    spread = z - z.mean()
    o = max(float(spread @ data.edges / (spread @ spread)), 0.01 * data.span)
    centre, width = float(data.edges.mean() - o * z.mean()), _NORMAL_WIDTH * o
    a = centre - width * c / (c + 2.0)
    return np.array([a, a + width, math.log(o)])


def noisy_peak(
    data: Spacings, c: float, box: tuple[Array, Array], quiet: Peak, more: tuple[Array, ...] = ()
) -> tuple[float, Array]:
    """The highest of three maxima: from the peak without noise, from nearly all noise, and from the best in between."""
    few = thinned(data)
    _, (a, b, _) = quiet
    ends = [np.array([a, b, math.log(_QUIET_NOISE * (b - a))]), _normal_start(data, c)]
    between = [*(_start(data, c, s) for s in _NOISES), *more]
    values = [noisy_value(few, c, np.clip(start, *box))[0] for start in between]
    peaks = [climb(few, c, start, box) for start in (between[int(np.argmax(values))], *ends)]
    if few is not data:  # from there on with all buckets: one start of each maximum that may be the highest
        peaks.sort(key=lambda pair: -pair[0])
        starts = [
            at
            for i, (value, at) in enumerate(peaks)
            if value >= peaks[0][0] - _CLOSE and all(other - value > _ONE for other, _ in peaks[:i])
        ]
        peaks = [climb(data, c, at, box) for at in starts]
    return max(peaks, key=lambda pair: pair[0])
