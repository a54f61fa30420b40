"""Every statistic behind the drop-in, by the function of this package or of SciPy that has it.

`x` holds a column per population and a row per paired sample, ``(n, k)``. Where Autorank's number is another one than
that of `lmemtest.rank`, for instance Friedman's chi-square in place of the F, it is made from the same statistic here.
"""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from lmemtest.bench.ranking.classical import (
    friedman,
    median_interval,
    ranked,
    repeated_measures_anova,
    residual_variance,
    signed_rank,
)
from lmemtest.bench.ranking.effect_sizes import effect_sizes as effects_with_intervals
from lmemtest.bench.ranking.effect_sizes import magnitude as magnitude_of
from lmemtest.core.rounding import tolerance
from lmemtest.lmm.distributions.student import t_quantile
from lmemtest.lmm.distributions.studentized_range import qtukey

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Index = NDArray[np.intp]

_ALPHA = 0.05  # of an `Omnibus`, of which only statistic and p-value are used


# ---------------------------------------------------------------------- assumptions


def shapiro_p(x: Array) -> list[float]:
    """Shapiro-Wilk tests of the columns; NaN for a column without variation."""
    from scipy.stats import shapiro

    constant = np.ptp(x, axis=0) <= tolerance(x)
    return [math.nan if flat else float(shapiro(column).pvalue) for column, flat in zip(x.T, constant, strict=True)]


def equal_variances_p(x: Array, test: str) -> float:
    """Bartlett's test, or Levene's by the median; NaN where no column varies.

    Written out, because the checks of SciPy's functions take as long as the rest of a comparison of two populations.
    """
    if (np.ptp(x, axis=0) <= tolerance(x)).all():
        return math.nan
    n, k = x.shape
    if test == "bartlett":  # the likelihood ratio, corrected
        variance = x.var(axis=0, ddof=1)
        ratio = (n - 1.0) * (k * math.log(variance.mean()) - np.log(variance).sum())
        return float(special.chdtrc(k - 1.0, ratio / (1.0 + (k + 1.0) / (3.0 * k * (n - 1.0)))))
    distance = np.abs(x - np.median(x, axis=0))  # of which the means are compared, by one-way analysis of variance
    between, within = distance.mean(axis=0).var(ddof=1), distance.var(axis=0, ddof=1).mean()
    if math.sqrt(within) <= tolerance(x):  # two values in each column, equally often
        return 0.0 if math.sqrt(between) > tolerance(x) else 1.0
    return float(special.fdtrc(k - 1.0, k * (n - 1.0), n * between / within))


# ---------------------------------------------------------------------- tests


def mean_ranks(x: Array, *, descending: bool) -> Array:
    """Mean ranks, 1 for the best; ties share their mean, and what differs by rounding only is a tie."""
    return np.asarray(ranked(-x if descending else x).mean(axis=0))


def wilcoxon_p(x: Array) -> float:
    """Wilcoxon's signed-rank test of two columns, two-sided; differences of zero, rounding included, are dropped."""
    d = x[:, 0] - x[:, 1]
    zero = np.abs(d) <= tolerance(1.0) * np.abs(x).max(axis=1)
    return float(signed_rank(np.where(zero, 0.0, d))[1])


def anova_p(x: Array) -> float:
    """F-test of the repeated-measures analysis of variance; of two columns the paired t-test, since F = t^2."""
    if math.sqrt(residual_variance(x)) <= tolerance(x):  # differences are the same in all rows, but for rounding
        return 0.0 if np.ptp(x.mean(axis=0)) > tolerance(x) else 1.0
    return repeated_measures_anova(x, _ALPHA).p_value


def friedman_p(x: Array) -> float:
    """Friedman's test with the chi-square distribution, corrected for ties.

    From the F of Iman and Davenport: chi-square = n (k - 1) F / (n - 1 + F).
    """
    n, k = x.shape
    F = friedman(ranked(x), _ALPHA).statistic
    statistic = n * (k - 1.0) / ((n - 1.0) / F + 1.0) if F > 0.0 else 0.0
    return float(special.chdtrc(k - 1.0, statistic))


def tukey_difference(x: Array, alpha: float) -> float:
    """Smallest difference of means that Tukey's test finds significant, with the error of the repeated measures."""
    n, k = x.shape
    return _studentized_range(alpha, k, (n - 1.0) * (k - 1.0)) * math.sqrt(residual_variance(x) / n)


def nemenyi_difference(alpha: float, k: int, n: int) -> float:
    """Critical difference of mean ranks: q_alpha sqrt(k (k + 1) / (12 n)) with the q of the studentized range."""
    return _studentized_range(alpha, k, math.inf) * math.sqrt(k * (k + 1.0) / (12.0 * n))


@functools.lru_cache(maxsize=256)
def _studentized_range(alpha: float, k: int, df: float) -> float:
    return float(qtukey(1.0 - alpha, k, df))


# ---------------------------------------------------------------------- intervals


def mean_intervals(x: Array, alpha: float) -> Array:
    """t intervals of the means at 1 - alpha each, ``(k, 2)``."""
    n = len(x)
    half = t_quantile(alpha / 2.0, np.array([n - 1.0])) * x.std(axis=0, ddof=1) / math.sqrt(n)
    return np.stack([x.mean(axis=0) - half, x.mean(axis=0) + half], axis=1)


def median_intervals(x: Array, alpha: float) -> Array:
    """Order statistics that hold the medians with 1 - alpha or more each, ``(k, 2)``; infinite if n is too small."""
    return np.array([median_interval(column, 1.0 - alpha) for column in x.T])


# ---------------------------------------------------------------------- effect sizes

NORMAL_MAD = 1.4826  # Autorank's rounding of the factor that makes an absolute deviation a standard deviation
UNDEFINED = "undefined"  # magnitude of an effect in units of a spread that is zero


def pooled_spread(x: Array, left: Index, right: Index, *, of_means: bool) -> Array:
    """Root mean square of the spreads of two columns, by pair: standard deviations, or scaled absolute deviations."""
    if of_means:
        squares = x.var(axis=0, ddof=1)
    else:
        squares = np.square(NORMAL_MAD * np.median(np.abs(x - np.median(x, axis=0)), axis=0))
    return np.asarray(np.sqrt((squares[left] + squares[right]) / 2.0))


def effect_sizes(x: Array, left: Index, right: Index, kind: str) -> Array:
    """Effect sizes of left over right columns, by pair; NaN where the spread is zero, and 0 for a column and itself."""
    if kind == "cliff_delta":
        return effects_with_intervals(x[:, left].T, x[:, right].T, kind, paired=False).estimate
    of_means = kind == "cohen_d"
    centre = x.mean(axis=0) if of_means else np.median(x, axis=0)
    scale = pooled_spread(x, left, right, of_means=of_means)
    known = scale > tolerance(x)
    effects = np.divide(centre[left] - centre[right], scale, out=np.full(len(scale), np.nan), where=known)
    return np.where(np.equal(left, right), 0.0, effects)


def magnitude(effect: float, kind: str) -> str:
    """The word for the size of an effect."""
    return magnitude_of(effect, kind) or UNDEFINED
