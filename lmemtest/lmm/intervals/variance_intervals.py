"""Intervals of variances of samples, of ratios of combinations of them, and of the variances behind balanced tables.

The chi-squared interval of a variance holds for normal scores alone, in samples of any size: with heavy tails it is too
short and with light tails too long. Bonett's interval is one on the log scale whose standard error follows the kurtosis
of the sample.

A component of variance is often a difference of such variances, and a share is a ratio of components. If v_i have
intervals (l_i, u_i), the sum of c_i v_i has the interval with the half-widths (MOVER, Zou & Donner)

    sqrt(sum (c_i v_i - end_i)^2),   end_i the lower end of c_i v_i for the lower half, the upper for the upper,

and the ratio of two sums holds every value t for which that interval of "numerator - t denominator" holds 0.

Balanced tables are strata: in one the projections on the means of all sets of factors commute. Each set ``T``
(benchmark, benchmark x algorithm, ...) then owns a stratum with a mean square ``MS_T`` on ``d_T`` degrees of freedom
and the expectation ``xi_T = sum of n_U s2_U over the random terms U that contain T`` (``n_U`` rows per group of ``U``),
and the restricted likelihood is that of independent chi-squared variables:

    -2 log L = sum over random strata of  d_T (log xi_T + MS_T / xi_T)  + constant,   s2_U >= 0.

So estimates, profiles and their intervals cost microseconds whatever the number of rows.

References
----------
Searle, Casella & McCulloch (1992), Variance Components, chapters 3 and 4, doi:10.1002/9780470316856
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special

from lmemtest.core.arrays import Array, Index, Mask
from lmemtest.core.rounding import tolerance
from lmemtest.core.threads import one_blas_thread
from lmemtest.lmm.distributions.student import variance_interval

METHODS = ("bonett", "chi-squared")
FEWEST = 5  # values, below which a kurtosis says nothing and the interval is the chi-squared one
_USUAL = 1.96  # quantile in Bonett's correction of the standard error, so that p-values do not depend on the level
_FAR = 1e12  # of the estimate: where an end is infinite
Factors = frozenset[str]
_TOLERANCE = 1e-10  # of a variance, relative to the largest mean square: below it is zero
_LEAST = 1e-14  # of an expected mean square, relative to the largest mean square
_MOST_STEPS = 200  # of a search; about eight are taken
_SMALLEST_GAIN = 1e-12  # of a step, per degree of freedom: the step after it gains nothing
_FAR_UNITS = 1e6  # of the estimate: where the search for an upper end gives up


# ------------------------------------------------------------------------------------------------------------- samples


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
            low, high = map(float, variance_interval(value, df, level))
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


# ----------------------------------------------------------------------------------------------------- balanced tables


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stratum:
    """Rows averaged over all but some factors, less the means over fewer; `rows` per group of the factors."""

    factors: Factors
    df: int
    mean_square: float
    rows: float


def strata_of(codes: dict[Factors, Index], y: Array) -> dict[Factors, Stratum] | None:
    """Strata of a table, or None if it is not balanced.

    `codes` has the number of the group of every row per set of factors, and with every two sets their intersection; `y`
    is one score per row (n, 1), or its course over r > 1 budgets about the row's mean: then the strata are those of the
    interactions with the budget.
    """
    return _strata(codes, y) if _crossed(codes) else None


def _strata(codes: dict[Factors, Index], y: Array) -> dict[Factors, Stratum] | None:
    strata: dict[Factors, Stratum] = {}
    groups: dict[Factors, int] = {}
    parts: dict[Factors, Array] = {}
    for factors in sorted(codes, key=len):
        counts = np.bincount(codes[factors])
        below = [inner for inner in strata if inner < factors]
        groups[factors] = len(counts) - sum(groups[inner] for inner in below)
        if counts.min() != counts.max() or groups[factors] < 0:
            return None
        part = _group_means(codes[factors], counts, y)
        for inner in below:
            part = part - parts[inner]
        parts[factors] = part
        df = groups[factors] * max(y.shape[1] - 1, 1)
        square = float(np.einsum("nr,nr->", part, part)) / df if df else 0.0
        strata[factors] = Stratum(factors=factors, df=df, mean_square=square, rows=len(y) / len(counts))
    return strata


def _group_means(code: Index, counts: Index, y: Array) -> Array:
    """Mean of the group of every row, ``(n, r)``."""
    if len(counts) == len(code):
        return y
    columns = [np.bincount(code, weights=column) / counts for column in y.T]
    return np.stack(columns, axis=1)[code]


def _crossed(codes: dict[Factors, Index]) -> bool:
    """Whether the groups of any two sets meet equally often within the groups of their intersection."""
    sets = list(codes)
    for i, left in enumerate(sets):
        for right in sets[:i]:
            if left <= right or right <= left:
                continue
            n_left, n_right, n_shared = (int(codes[s].max()) + 1 for s in (left, right, left & right))
            pairs = np.unique(codes[left].astype(np.int64) * n_right + codes[right], return_counts=True)[1]
            if len(pairs) * n_shared != n_left * n_right or pairs.min() != pairs.max():
                return False
    return True


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BalancedModel:
    """Random terms, the residual last, on the random strata of a balanced table.

    `design` (strata, terms) has the rows per group of the terms that contain a stratum.
    """

    terms: tuple[Factors, ...]
    strata: tuple[Factors, ...]
    design: Array
    df: Array
    mean_square: Array

    @classmethod
    def of(cls, strata: Sequence[Stratum], terms: Sequence[Factors], table: dict[Factors, Stratum]) -> BalancedModel:
        kept = [s for s in strata if s.df > 0]
        design = [[table[t].rows if s.factors <= t else 0.0 for t in terms] for s in kept]
        return cls(
            terms=tuple(terms),
            strata=tuple(s.factors for s in kept),
            design=np.array(design),
            df=np.array([s.df for s in kept], dtype=float),
            mean_square=np.array([s.mean_square for s in kept]),
        )

    def deviance(self, variances: Array) -> float:
        """-2 restricted log-likelihood up to a constant."""
        xi = self.design @ variances
        return float(self.df @ (np.log(xi) + self.mean_square / xi)) if xi.min() > 0 else np.inf

    def expected(self, variances: Array) -> dict[Factors, float]:
        """Expected mean square of each stratum."""
        return dict(zip(self.strata, (self.design @ variances).tolist(), strict=True))

    def estimate(self) -> Array:
        """REML estimates, ``(terms,)``."""
        with one_blas_thread():
            return self._minimum(None, 0.0)[0]

    def _minimum(self, index: int | None, value: float, start: Array | None = None) -> tuple[Array, float]:
        """Variances with the smallest deviance, one of them held, and that deviance; best of several starts."""
        scale = float(self.mean_square.max())
        A = self.design * scale
        floor = np.zeros(len(self.terms))
        floor[-1] = 1e-13  # the residual is never nothing
        unrestricted = np.linalg.lstsq(A, self.mean_square, rcond=None)[0]
        starts = [np.maximum(unrestricted, 1e-6), np.full(len(floor), 1.0 / A[0].max() * scale)]
        if start is not None:
            starts.insert(0, start / scale)
        free = np.arange(len(floor)) != index
        minima = [self._descend(A, np.where(free, np.maximum(x, floor), value / scale), floor, free) for x in starts]
        v, least = min(minima, key=lambda result: result[1])
        v = np.where(free, v * scale, value)
        v[v < _TOLERANCE * scale] = 0.0
        return v, least

    def _descend(self, A: Array, v: Array, floor: Array, free: Mask) -> tuple[Array, float]:
        """Local minimum of the deviance in ``v >= floor``, some held, by Newton's method with exact derivatives.

        Variances at the floor that the gradient would push below it are held there. Directions along which the
        deviance is concave are followed downhill, so every step can be shortened until it pays.
        """
        deviance = self._deviance(A, v)
        for _ in range(_MOST_STEPS):
            xi = self._expected(A, v)
            ratio, weight = self.mean_square / xi, self.df / xi
            gradient = (weight * (1.0 - ratio)) @ A
            moving = free & ((v > floor) | (gradient < 0))
            if not moving.any():
                break
            B = A[:, moving]
            hessian = (B.T * (weight / xi * (2.0 * ratio - 1.0))) @ B
            unit = 1.0 / np.sqrt(np.maximum((B**2).T @ (weight / xi), 1e-300))  # by its information each is scaled
            values, vectors = np.linalg.eigh(unit[:, None] * hessian * unit)
            along = vectors.T @ (unit * gradient[moving]) / np.maximum(np.abs(values), 1e-10)
            step = np.zeros(len(v))
            step[moving] = -unit * (vectors @ along)
            length, gain = 1.0, -float(gradient @ step)
            if gain <= _SMALLEST_GAIN * self.df.sum():  # the last step, whose gain is below rounding
                last = np.where(free, np.maximum(v + step, floor), v)
                return last, min(deviance, self._deviance(A, last))
            while True:
                tried = np.where(free, np.maximum(v + length * step, floor), v)
                there = self._deviance(A, tried)
                if there < deviance:
                    break
                length *= 0.5
                if length < 1e-12:
                    return v, deviance
            v, deviance = tried, there
        return v, deviance

    def _expected(self, A: Array, v: Array) -> Array:
        return np.maximum(A @ v, _LEAST * self.mean_square.max())

    def _deviance(self, A: Array, v: Array) -> float:
        xi = self._expected(A, v)
        return float(self.df @ (np.log(xi) + self.mean_square / xi))

    def interval(self, index: int, level: float) -> tuple[float, float]:
        """Profile-likelihood interval of the standard deviation of a term, from 0 where that is not excluded."""
        with one_blas_thread():
            return self._interval(index, level)

    def _interval(self, index: int, level: float) -> tuple[float, float]:
        from scipy.optimize import brentq

        best, least = self._minimum(None, 0.0)
        cut = special.ndtri(0.5 * (1.0 + level)) ** 2

        def rise(sd: float) -> float:
            return self._minimum(index, sd**2, best)[1] - least - cut

        sd = float(np.sqrt(best[index]))
        unit = float(np.sqrt(self.mean_square.max() / self.design[:, index].max()))
        residual = index == len(self.terms) - 1
        low = 0.0
        if sd > 0 and (residual or rise(0.0) > 0):
            low = float(brentq(rise, 1e-9 * sd, sd, xtol=1e-10 * sd, rtol=1e-12))
        top = 2.0 * (sd or 0.1 * unit)
        while rise(top) < 0:
            top *= 2.0
            if top > _FAR_UNITS * unit:
                return low, np.inf
        high = brentq(rise, sd, top, xtol=1e-10 * top, rtol=1e-12)
        return low, float(high)
