"""Order statistics of n uniform numbers: intervals for each, and the exact probability that all keep to theirs.

If Y_1, ..., Y_n are independent with a continuous distribution function F, then U_(i) = F(Y_(i)) is the i-th order
statistic of n uniform numbers, with law Beta(i, n + 1 - i). A simultaneous band for F is a list of intervals
l_i <= U_(i) <= u_i, and its level is the probability that all hold at once.

Counting points instead of numbers makes that probability cheap. N(t) = #{U <= t} is a Poisson process of rate n given
N(1) = n, and the intervals hold if and only if #{u_j <= t} <= N(t) <= #{l_j < t} at all limits t: a walk along the
sorted limits with one convolution per step. All terms are non-negative and of order one, so nothing cancels and nothing
underflows, and a step is as wide as the corridor, about sqrt(n).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from lmemtest.core.arrays import Array, Mask
from lmemtest.core.validate import check_choice, check_fraction, check_number, check_positive_int
from lmemtest.errors import ArgumentError

BANDS = ("ld_highest_density", "ld_equal_tailed", "ks", "dkw")
_CERTAIN = 1e-12
_BISECTIONS = 80
MOST_CALIBRATED = 100_000  # scores; a calibration takes about 3 s of processor time for 10,000 and 90 s for these

# A Poisson count exceeds lambda + 10 sqrt(lambda) + 20 with probability below 1e-20 for every lambda.
_SPREAD, _MORE = 10.0, 20


def crossing_probability(lower: ArrayLike, upper: ArrayLike) -> float:
    """Probability that every order statistic of n uniform numbers lies in its interval, P(lower_i <= U_(i) <= upper_i).

    Limits outside of [0, 1] are none, and they need not be sorted: one of an order statistic also holds for the ones
    beyond it. With the sorted distinct limits t_1 < t_2 < ..., the vector P(N(t) = c, no violation up to t) is
    convolved with the Poisson law of rate n (t_m - t_(m-1)) and cut to the counts that t_m allows; the probability of
    N(1) = n is divided by its unconditional value n^n e^-n / n!. The error is of the order of the machine precision
    times n, the cost about n^1.5 for intervals of width n^-0.5.

    Khmaladze & Shinjikashvili (2001), Adv. Appl. Probab. 33, 702-716, doi:10.1239/aap/1005091361;
    Moscovich & Nadler (2017), Stat. Probab. Lett. 123, 177-182, doi:10.1016/j.spl.2016.11.027

    >>> round(crossing_probability([0.0, 0.5], [0.5, 1.0]), 12)  # one number in each half
    0.5
    """
    low, high = _corridor(lower, upper)
    n = len(low)
    times = np.unique(np.concatenate([low, high]))
    times = times[(times > 0.0) & (times < 1.0)]
    least = np.searchsorted(high, times, side="right")  # N(u_i) >= i
    most = np.searchsorted(low, times, side="left")  # N(l_i) < i, almost surely
    if np.any(low > high) or np.any(least > most):
        return 0.0
    counts = np.arange(n + 1.0)
    log_factorial = special.gammaln(counts + 1.0)

    def poisson(rate: float, terms: int) -> Array:
        terms = min(terms, int(rate + _SPREAD * np.sqrt(rate)) + _MORE)
        return np.exp(counts[:terms] * np.log(rate) - rate - log_factorial[:terms])

    state, first, before = np.ones(1), 0, 0.0
    steps = zip(times.tolist(), least.tolist(), most.tolist(), strict=True)
    for time, lowest, highest in steps:
        law = poisson(n * (time - before), highest - first + 1)
        state = np.convolve(state, law)[lowest - first : highest - first + 1]
        if len(state) < highest - lowest + 1:  # counts that are out of reach in this step
            highest = lowest + len(state) - 1
            if highest < lowest:
                return 0.0
        first, before = lowest, time
    law = np.zeros(n - first + 1)
    last = poisson(n * (1.0 - before), n - first + 1)
    law[: len(last)] = last
    reached = state @ law[n - first - np.arange(len(state))]
    whole = np.exp(n * np.log(n) - n - log_factorial[n])
    return float(min(reached / whole, 1.0))


def _corridor(lower: ArrayLike, upper: ArrayLike) -> tuple[Array, Array]:
    """The limits in [0, 1] and sorted: U_(i) >= U_(i-1) >= l_(i-1), and U_(i) <= U_(i+1) <= u_(i+1)."""
    low, high = np.asarray(lower, dtype=np.float64), np.asarray(upper, dtype=np.float64)
    if low.ndim != 1 or low.shape != high.shape or not len(low):
        raise ArgumentError(
            f"lower and upper must be lists of one length, a limit for each order statistic, got shapes {low.shape} "
            f"and {high.shape}."
        )
    if np.isnan(low).any() or np.isnan(high).any():
        raise ArgumentError("lower and upper must not hold NaN; write 0 and 1 where there is no limit.")
    if np.any(low >= 1.0) or np.any(high <= 0.0):
        return np.ones_like(low), np.zeros_like(high)  # almost surely not kept
    low = np.maximum.accumulate(np.maximum(low, 0.0))
    high = np.minimum.accumulate(np.minimum(high, 1.0)[::-1])[::-1]
    return low, high


# ---------------------------------------------------------------------------------- intervals of order statistics


def equal_tailed_intervals(n: int, alpha: float) -> tuple[Array, Array]:
    """Lower and upper limits, (n,) each, of all order statistics that leave out `alpha` / 2 of their law at either end.

    >>> low, high = equal_tailed_intervals(3, 0.1)
    >>> low.round(3), high.round(3)
    (array([0.017, 0.135, 0.368]), array([0.632, 0.865, 0.983]))
    """
    n, alpha = check_positive_int(n, "n_scores"), check_number(alpha, "alpha", low=0, high=1)
    rank = np.arange(1.0, n + 1.0)
    low = special.betaincinv(rank, n + 1.0 - rank, 0.5 * alpha)
    return low, 1.0 - low[::-1]


def highest_density_intervals(n: int, alpha: float) -> tuple[Array, Array]:
    """The shortest intervals of all order statistics that leave out `alpha` of their law in all.

    The density is the same at both limits, except for the first and the last order statistic, whose intervals begin at
    0 and end at 1. The law of the only order statistic of one score is uniform: its central interval is returned. With
    `alpha` = 1 the intervals are the modes (i - 1) / (n - 1).

    >>> low, high = highest_density_intervals(3, 0.1)
    >>> low.round(3), high.round(3)
    (array([0.   , 0.135, 0.464]), array([0.536, 0.865, 1.   ]))
    """
    n, alpha = check_positive_int(n, "n_scores"), check_number(alpha, "alpha", low=0, high=1)
    if n == 1 or alpha == 0.0:
        return np.full(n, 0.5 * alpha), np.full(n, 1.0 - 0.5 * alpha)
    if alpha == 1.0:
        mode = np.arange(n) / (n - 1.0)
        return mode, mode.copy()
    low, high = np.zeros(n), np.ones(n)
    low[-1] = alpha ** (1.0 / n)
    high[0] = -np.expm1(np.log(alpha) / n)
    half = (n - 2) // 2  # order statistics 2, 3, ... below the middle one; the others by symmetry
    below = np.arange(2.0, half + 2.0)
    low[1 : half + 1], high[1 : half + 1] = _highest_density(below, n + 1.0 - below, alpha)
    if n % 2:
        middle = (n - 1) // 2
        low[middle] = special.betaincinv(middle + 1.0, middle + 1.0, 0.5 * alpha)
        high[middle] = 1.0 - low[middle]
    low[n - half - 1 : n - 1] = 1.0 - high[half:0:-1]
    high[n - half - 1 : n - 1] = 1.0 - low[half:0:-1]
    return low, high


def _highest_density(a: Array, b: Array, alpha: float) -> tuple[Array, Array]:
    """Highest-density intervals of Beta(a, b) for 1 < a < b, all at once.

    The unknown is t, the logarithm of the share below the interval. The log-density at the lower limit minus that at
    the upper one grows with t, about linearly far below the root; skewness to the right keeps the share under
    alpha / 2. Newton's steps that leave the bracket are replaced by bisection.
    """
    t = np.full(len(a), np.log(0.5 * alpha))
    start, end = np.full(len(a), -745.0), t.copy()  # exp(-745) is the smallest number above 0
    active = np.arange(len(a))
    log_beta = special.betaln(a, b)
    for _ in range(200):
        if not len(active):
            break
        p, q, now = a[active], b[active], t[active]
        share = np.exp(now)
        low, high = special.betaincinv(p, q, share), special.betainccinv(p, q, alpha - share)
        log_low, log_high = ((p - 1.0) * np.log(x) + (q - 1.0) * np.log1p(-x) for x in (low, high))
        gap = log_low - log_high
        rise, fall = ((p - 1.0) / x - (q - 1.0) / (1.0 - x) for x in (low, high))
        slope = share * (rise * np.exp(log_beta[active] - log_low) - fall * np.exp(log_beta[active] - log_high))
        start[active] = np.where(gap < 0.0, now, start[active])
        end[active] = np.where(gap > 0.0, now, end[active])
        with np.errstate(divide="ignore", invalid="ignore"):  # where densities underflow, bisection takes over
            step = np.where(gap == 0.0, now, now - gap / slope)
        inside = (step >= start[active]) & (step <= end[active])
        following = np.where(inside, step, 0.5 * (start[active] + end[active]))
        t[active] = following
        # The limits depend on t weakly: 1e-11 in t is far below 1e-12 in a limit.
        active = active[np.abs(following - now) > 1e-11]
    share = np.exp(t)
    return special.betaincinv(a, b, share), special.betainccinv(a, b, alpha - share)


def shares_outside(p: ArrayLike, rank: ArrayLike, n: int, band: str) -> Array:
    """Share of the law of each order statistic outside of its smallest interval that holds `p`, as a sum of tails.

    `rank` is the number, from 1, of the order statistic of n uniforms that each `p` is compared with. Equal tails:
    2 min(G(p), 1 - G(p)). Highest density: p is one end, and the other one has the same density (Lourie, Cho & He 2024,
    appendix C.2).

    >>> shares_outside([0.5, 0.9], [2, 2], 3, "ld_highest_density").round(3)  # the mode, and far from it
    array([1.   , 0.056])
    """
    check_choice(band, "band", BANDS[:2])
    n = check_positive_int(n, "n_scores")
    p, i = np.broadcast_arrays(np.asarray(p, dtype=np.float64), np.asarray(rank, dtype=np.float64))
    a, b = i, n + 1.0 - i
    below, above = special.betainc(a, b, p), special.betaincc(a, b, p)
    if band == "ld_equal_tailed" or n == 1:
        return np.asarray(2.0 * np.minimum(below, above))
    mode = (a - 1.0) / (n - 1.0)
    is_low = p < mode
    other = _same_density(p, a, b, np.where(is_low, mode, 0.0), np.where(is_low, 1.0, mode), rising=~is_low)
    return np.asarray(np.where(is_low, below + special.betaincc(a, b, other), special.betainc(a, b, other) + above))


def _same_density(p: Array, a: Array, b: Array, low: Array, high: Array, *, rising: Mask) -> Array:
    """Where Beta(a, b) has the density of `p` on the other side of its mode, by bisection; an end if nowhere."""

    def log_density(x: Array) -> Array:
        return special.xlogy(a - 1.0, x) + special.xlog1py(b - 1.0, -x)

    target = log_density(p)
    for _ in range(_BISECTIONS):
        x = 0.5 * (low + high)
        too_dense = log_density(x) > target
        go_down = too_dense == rising
        low, high = np.where(go_down, low, x), np.where(go_down, x, high)
    return np.asarray(0.5 * (low + high))


def outside_probability(n: int, band: str, value: float) -> float:
    """Exact probability that some order statistic leaves its interval of a band, see `intervals`."""
    if band.startswith("ld_") and value < _CERTAIN:
        return n * value  # an upper bound for the probability, and it settles the matter
    return float(min(1.0, max(0.0, 1.0 - crossing_probability(*intervals(n, band, value)))))


def constant_width_intervals(n: int, half_width: float) -> tuple[Array, Array]:
    """Intervals under which F is nowhere further than `half_width` from the share of scores up to there."""
    n = check_positive_int(n, "n_scores")
    steps = np.arange(n + 1) / n
    return np.maximum(steps[1:] - half_width, 0.0), np.minimum(steps[:-1] + half_width, 1.0)


def dkw_half_width(n: int, level: float) -> float:
    """Half-width, at most 1, of the band of Dvoretzky, Kiefer and Wolfowitz (Massart 1990, doi:10.1214/aop/1176990746).

    >>> round(dkw_half_width(48, 0.8), 6)
    0.154872
    """
    n, level = check_positive_int(n, "n_scores"), check_fraction(level, "level")
    return float(min(np.sqrt(np.log(2.0 / (1.0 - level)) / (2.0 * n)), 1.0))


def intervals(n: int, band: str, value: float) -> tuple[Array, Array]:
    """The intervals of a band: `value` is alpha' of an LD band, the half-width of "ks" and "dkw"."""
    check_choice(band, "band", BANDS)
    if band == "ld_highest_density":
        return highest_density_intervals(n, value)
    return equal_tailed_intervals(n, value) if band == "ld_equal_tailed" else constant_width_intervals(n, value)


# ------------------------------------------------------------------------------------------------ calibration


def critical_value(n_scores: int, *, band: str = "ld_highest_density", level: float = 0.8) -> float:
    """What makes the intervals of a band hold at once with probability `level` (at least, for "dkw").

    LD bands: the level alpha', the share of each order statistic's law that lies outside of its interval; it lies
    between (1 - level) / n and 1 - level, and the root is found in log alpha' from exact probabilities, so no
    simulation is involved. "ks" and "dkw": the half-width.

    Learned-Miller & DeStefano (2008), IEEE Trans. Inf. Theory 54, 5223-5230;
    Lourie, Cho & He (2024), NAACL, doi:10.18653/v1/2024.naacl-long.189

    >>> round(critical_value(48), 11)
    0.01690463661
    """
    check_choice(band, "band", BANDS)
    return calibrate(check_size(n_scores, band), band, check_fraction(level, "level"), 0.0)[0]


def check_size(n: Any, band: str) -> int:
    """A number of scores for which a band can be calibrated."""
    if band == "dkw":
        return check_positive_int(n, "n_scores")
    whole = check_positive_int(n, "n_scores", maximum=np.iinfo(np.int64).max)
    if whole > MOST_CALIBRATED:
        raise ArgumentError(
            f"n_scores must be at most {MOST_CALIBRATED:,} scores for band={band!r}, whose calibration is exact, got "
            f"{whole:,}. Use band='dkw', which has a closed form, or a random part of the scores."
        )
    return whole


@lru_cache(maxsize=4096)
def calibrate(n: int, band: str, level: float, floor: float) -> tuple[float, int]:
    """Critical value for what lies above `floor` in F, and the number of lower limits left out for it.

    A curve for k >= from_k reads F at probabilities p >= floor = q^(1/from_k) only. There a lower limit l_i < floor is
    never read, and an upper limit u_i < floor binds as floor does. Leaving the first m lower limits out changes the
    critical value, which changes the limits; m is the smallest number for which all limits that remain are at least
    `floor`. For each m the root is exact, so the level is too.
    """
    if band == "dkw":
        return dkw_half_width(n, level), 0
    everything = _solve(n, band, level, floor, 0)
    if floor == 0.0:
        return everything, 0

    def too_low(value: float) -> int:
        return int(np.searchsorted(intervals(n, band, value)[0], floor, side="left"))

    most = too_low(everything)
    least = too_low(_solve(n, band, level, floor, most))
    while least < most:  # limits rise with m, so "the first that remains is at least floor" turns true once
        middle = (least + most) // 2
        if too_low(_solve(n, band, level, floor, middle)) <= middle:
            most = middle
        else:
            least = middle + 1
    return _solve(n, band, level, floor, most), most


def limits(n: int, band: str, value: float, floor: float, left_out: int) -> tuple[Array, Array]:
    """Intervals of a band as far as `calibrate` uses them."""
    low, high = intervals(n, band, value)
    low[:left_out] = 0.0
    return low, np.maximum(high, floor)


@lru_cache(maxsize=4096)
def _solve(n: int, band: str, level: float, floor: float, left_out: int) -> float:
    """Critical value with the first `left_out` lower limits dropped."""
    alpha = 1.0 - level

    def coverage(value: float) -> float:
        return crossing_probability(*limits(n, band, value, floor, left_out))

    if band == "ks":
        narrow = 0.5 / n if floor == 0.0 else 0.0
        if coverage(narrow) >= level:
            return narrow
        return _root(coverage, level, narrow, dkw_half_width(n, level))
    widest = alpha if floor == 0.0 else 1.0  # each interval alone holds with probability 1 - alpha'
    if floor > 0.0 and coverage(1.0) >= level:
        return 1.0
    log_value = _root(lambda x: coverage(np.exp(x)), level, np.log(alpha / n), np.log(widest))
    return float(np.exp(log_value))


def _root(coverage: Callable[[Any], float], level: float, start: float, end: float) -> float:
    """Where `coverage` is `level`, between two points on either side of it.

    log(-log(coverage)) is close to linear in log alpha', which saves a third of the steps.
    """
    from scipy.optimize import brentq

    def scale(probability: float) -> float:
        return float(np.log(-np.log(min(max(probability, 1e-300), 1.0 - 1e-16))))

    target = scale(level)

    def gap(x: float) -> float:
        return scale(coverage(x)) - target

    at_start, at_end = gap(start), gap(end)
    if at_start * at_end >= 0.0:  # one score, or rounding: the root is an end of the bracket
        return start if abs(at_start) <= abs(at_end) else end
    return float(brentq(gap, start, end, xtol=1e-14, rtol=4e-15))
