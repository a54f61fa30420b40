"""Power of a t-test and the two errors of its significant results, exactly.

The estimate is ``N(effect, se^2)`` and independent of its estimated standard error ``se S``, ``S^2 ~ chi2(df) / df``;
a result is significant if the estimate exceeds ``critical se S`` in absolute value. Given ``S`` everything is a normal
integral, so one integral over ``S`` is left. With ``d = effect / se`` and ``h = critical S``:

    P(significant, right sign | S) = Phi(d - h),    P(significant, wrong sign | S) = Phi(-d - h),
    E(|estimate| / se; significant | S) = d [Phi(d - h) - Phi(-d - h)] + phi(d - h) + phi(d + h).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import numpy as np
from scipy import special

from lmemtest.core.arrays import Array

# Smooth integrands, so this many points give 1e-13 on the interval that all but 1e-16 of S lies in.
_POINTS = 160
_NEGLIGIBLE = 1e-16
# More benchmarks than anyone can run: the answer is then "not with this effect".
MOST_BENCHMARKS = 1_000_000


@lru_cache(maxsize=512)
def _scale_rule(df: float) -> tuple[Array, Array]:
    """Points and weights of an integral over ``S``."""
    half = 0.5 * df
    low = np.sqrt(special.gammaincinv(half, _NEGLIGIBLE) / half)
    high = np.sqrt(special.gammainccinv(half, _NEGLIGIBLE) / half)
    x, w = np.polynomial.legendre.leggauss(_POINTS)
    s = 0.5 * (high - low) * (x + 1.0) + low
    log_density = np.log(2.0) + half * np.log(half) - special.gammaln(half) + (df - 1.0) * np.log(s) - half * s**2
    weight = 0.5 * (high - low) * w * np.exp(log_density)
    return s, weight / weight.sum()


def operating(effect: float, se: float, df: float, critical: float) -> tuple[float, float, float]:
    """Power, type-S and type-M error of a two-sided t-test: what happens when a study is run many times.

    They are the probability of a significant result of either sign, that such a result has the wrong sign, and the mean
    of its absolute estimate over the effect (NaN for an effect of zero). ``effect`` is the true difference, ``se`` the
    true standard deviation of its estimate, ``df`` the degrees of freedom of the estimated one, ``critical`` the
    critical value of ``|t|``. For an effect of zero the second is 0.5: half of the significant results have either
    sign.

    References
    ----------
    Gelman & Carlin (2014), Perspect. Psychol. Sci. 9, 641-651, doi:10.1177/1745691614551642

    Examples
    --------
    >>> power, type_s, type_m = operating(effect=1.0, se=0.5, df=10, critical=2.2281388520)
    >>> round(power, 4), round(type_s, 4), round(type_m, 3)
    (0.4396, 0.0002, 1.403)
    """
    s, weight = _scale_rule(float(df))
    d, h = effect / se, critical * s
    right, wrong = special.ndtr(d - h), special.ndtr(-d - h)
    density = (np.exp(-0.5 * (d - h) ** 2) + np.exp(-0.5 * (d + h) ** 2)) / np.sqrt(2.0 * np.pi)
    size = d * (right - wrong) + density
    power = float(weight @ (right + wrong))
    type_s = float(weight @ wrong) / power if power > 0 else np.nan
    return power, type_s, float(weight @ size) / (power * d) if power * d > 0 else np.nan


def smallest_count(
    reaches: Callable[[int], bool], first: int, guess: int | None = None, most: int = MOST_BENCHMARKS
) -> int | None:
    """Smallest whole number from `first` on for which an increasing condition holds; None if beyond `most`.

    Examples
    --------
    >>> smallest_count(lambda n: n * n >= 200, first=2), smallest_count(lambda n: n < 0, first=2, most=50)
    (15, None)
    """
    start = min(max(first if guess is None else guess, first), most)
    step, low, high = 1, first - 1, most + 1
    if reaches(start):
        high = start
        while high > first and reaches(below := max(high - step, first)):
            step, high = 2 * step, below
        low = first - 1 if high == first else max(high - step, first)
    else:
        low = start
        while low < most and not reaches(above := min(low + step, most)):
            step, low = 2 * step, above
        if low == most:
            return None
        high = min(low + step, most)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reaches(middle) else (middle, high)
    return high


def smallest_effect(power: float, se: float, df: float, critical: float) -> float:
    """The effect that is found with a given power, above the size of the test.

    Examples
    --------
    >>> effect = smallest_effect(0.8, se=0.5, df=10, critical=2.2281388520)
    >>> round(effect, 4), round(operating(effect, 0.5, 10, 2.2281388520)[0], 6)
    (1.555, 0.8)
    """

    def too_small(effect: float) -> bool:
        return operating(effect, se, df, critical)[0] < power

    low, high = 0.0, critical * se
    while too_small(high):
        low, high = high, 2.0 * high
    while high - low > 1e-12 * high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if too_small(middle) else (low, middle)
    return high
