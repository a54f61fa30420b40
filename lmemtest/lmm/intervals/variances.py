"""Intervals of variances of samples, and of ratios of what is estimated by linear combinations of them.

The chi-squared interval of a variance holds for normal scores alone, in samples of any size: with heavy tails it is too
short and with light tails too long. Bonett's interval is one on the log scale whose standard error follows the kurtosis
of the sample.

A component of variance is often a difference of such variances, and a share is a ratio of components. If v_i have
intervals (l_i, u_i), the sum of c_i v_i has the interval with the half-widths (MOVER, Zou & Donner)

    sqrt(sum (c_i v_i - end_i)^2),   end_i the lower end of c_i v_i for the lower half, the upper for the upper,

and the ratio of two sums holds every value t for which that interval of "numerator - t denominator" holds 0.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from lmemtest.core.rounding import tolerance

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lmemtest.core.arrays import Array


METHODS = ("bonett", "chi-squared")
FEWEST = 5  # values, below which a kurtosis says nothing and the interval is the chi-squared one
_USUAL = 1.96  # quantile in Bonett's correction of the standard error, so that p-values do not depend on the level
_FAR = 1e12  # of the estimate: where an end is infinite


@dataclass(frozen=True, slots=True)
class SampleVariance:
    """A variance with its degrees of freedom, its interval, and the standard error of its logarithm."""

    value: float
    df: int
    low: float
    high: float
    log_error: float

    @classmethod
    def of(cls, samples: Sequence[Array], level: float, method: str = "bonett") -> SampleVariance:
        """The pooled variance within samples of two values or more.

        References
        ----------
        Bonett (2006), Approximate confidence interval for standard deviation of nonnormal distributions, Computational
        Statistics & Data Analysis 50, 775-782. With several samples, n - 1 is the sum of their degrees of freedom, and
        the kurtosis is that of the deviations from the (trimmed) mean of each.

        Examples
        --------
        >>> found = SampleVariance.of([np.array([1.0, 2.0, 4.0, 5.0, 8.0, 10.0])], 0.95)
        >>> found.value, round(found.low, 2), round(found.high, 2)
        (12.0, 3.45, 92.04)
        """
        df = sum(len(x) - 1 for x in samples)
        square = sum(float(((x - x.mean()) ** 2).sum()) for x in samples)
        value, z = square / df, float(special.ndtri(0.5 + level / 2.0))
        if all(np.ptp(x) <= tolerance(x) for x in samples):
            return cls(0.0, df, 0.0, 0.0, 0.0)
        if method == "chi-squared" or df + 1 < FEWEST or df + 1 <= z:
            tails = special.chdtri(df, [0.5 - level / 2.0, 0.5 + level / 2.0])
            low, high = (df * value / tails).tolist()
            return cls(value, df, low, high, float(np.sqrt(2.0 / df)))
        n = df + 1.0
        count = sum(len(x) for x in samples)
        fourth = sum(float(((x - _trimmed_mean(x)) ** 4).sum()) for x in samples)
        kurtosis = count * fourth / square**2
        error = float(np.sqrt(max(kurtosis - (n - 3.0) / n, 0.0) / (n - 1.0)))
        c = n / (n - z)
        low, high = (c * value * np.exp(sign * z * c * error) for sign in (-1.0, 1.0))
        return cls(value, df, float(low), float(high), n / (n - _USUAL) * error)


def widening(x: Array) -> float:
    """How much longer than for normal values the interval of the variance of n values is, on the log scale; 1 at least.

    By Bonett's standard errors. The kurtosis is that of the values or, if larger, that of a gamma distribution with
    their adjusted skewness, 3 + 1.5 G1^2: of few skewed values the kurtosis is far too small.

    Examples
    --------
    >>> round(widening(np.arange(10.0)), 2), round(widening(np.array([0.0, 0.1, 0.2, 0.4, 0.7, 1.1, 1.6, 4.0])), 2)
    (1.0, 1.87)
    """
    n = len(x)
    spread = x - x.mean()
    if n < FEWEST or np.ptp(x) <= tolerance(x):
        return 1.0
    kurtosis = n * float(((x - _trimmed_mean(x)) ** 4).sum()) / float((spread**2).sum()) ** 2
    skewness = float((spread**3).mean()) / float((spread**2).mean()) ** 1.5 * np.sqrt(n * (n - 1.0)) / (n - 2.0)
    least = (n - 3.0) / n
    return float(np.sqrt(max(1.0, (max(kurtosis, 3.0 + 1.5 * skewness**2) - least) / (3.0 - least))))


def _trimmed_mean(x: Array) -> float:
    """Without the share 1 / (2 sqrt(n - 4)) of the values at either end."""
    n = len(x)
    cut = min(int(0.5 * n / np.sqrt(max(n - 4, 1))), (n - 1) // 2)
    return float(np.sort(x)[cut : n - cut].mean())


@dataclass(frozen=True, slots=True, eq=False)
class Combinations:
    """Estimates with separate intervals, of which sums and ratios are to be taken."""

    value: Array
    low: Array
    high: Array

    def interval(self, c: Array) -> tuple[float, float]:
        """Of the sum with coefficients `c`, by MOVER.

        Examples
        --------
        >>> x = Combinations(np.array([4.0, 1.0]), np.array([3.0, 0.5]), np.array([6.0, 2.0]))
        >>> [round(end, 4) for end in x.interval(np.array([1.0, -1.0]))], x.interval(np.array([1.0, 0.0]))
        ([1.5858, 5.0616], (3.0, 6.0))
        """
        ends = np.sort(c * np.array([self.low, self.high]), axis=0)
        middle = c * self.value
        total = float(middle.sum())
        with np.errstate(invalid="ignore"):
            down, up = (float(np.sqrt(np.nansum((middle - end) ** 2))) for end in ends)
        return total - down, total + up

    def ratio(self, above: Array, below: Array) -> tuple[float, float]:
        """Interval of the sum with coefficients `above` over that with `below`, both of something not negative.

        The lower end is 0 at the least, the upper infinite where the denominator may be 0. NaN if it is estimated so.

        Examples
        --------
        >>> x = Combinations(np.array([4.0, 1.0]), np.array([3.0, 0.5]), np.array([6.0, 2.0]))
        >>> [round(end, 3) for end in x.ratio(np.array([1.0, 0.0]), np.array([0.0, 1.0]))]
        [1.875, 8.861]
        """
        from scipy.optimize import brentq

        top, bottom = float(above @ self.value), float(below @ self.value)
        if not bottom > 0.0:
            return float("nan"), float("nan")
        estimate = max(top / bottom, 0.0)

        def lower(t: float) -> float:
            return self.interval(above - t * below)[0]

        def upper(t: float) -> float:
            return self.interval(above - t * below)[1]

        low = 0.0
        if estimate > 0.0 and lower(0.0) > 0.0:
            low = float(brentq(lower, 0.0, estimate, xtol=1e-14 * estimate))
        if upper(estimate) <= 0.0:
            return low, estimate
        far = max(estimate, 1e-3)
        while upper(far) > 0.0:
            far *= 4.0
            if far > _FAR * max(estimate, 1.0):
                return low, float("inf")
        return low, float(brentq(upper, estimate, far, xtol=1e-14 * far))
