"""The largest of several t statistics, for single-step tests and intervals that match: jointly t, or along curves.

A curve c(x) = l(x)' b is estimated with normal errors and a variance that is itself estimated, at every point x from
the same few independent units (benchmarks, runs). Along a curve the estimated variances go up and down together, but
not as one: they are l(x)' W l(x) with a Wishart matrix W of the covariance of the curves between units. A t-process
with one common denominator, as for the means of a one-way layout, would be too narrow: it takes the variances at all
points from one draw. With complete tables both laws are exact given the covariance, which is estimated.

That is so if all curves have one covariance between units. Where pairs of curves vary differently, each has a variance
of its own (`moderation.pair_ratios`). Its t ratios become normal scores by its own degrees of freedom, and these are
judged by the largest of the normal variables of all curves and points, as `step_down` does with a range. The size of
this rule is simulated (docs/validation.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from scipy import special

from lmemtest.core.rounding import written
from lmemtest.core.validate import check_choice, check_fraction, resolve_rng
from lmemtest.errors import ArgumentError
from lmemtest.lmm.distributions.largest_normal import (
    OneFactorTail,
    RadialTail,
    circle_tail,
    line_tail,
    loadings,
    one_factor_tail,
    sphere_tail,
)
from lmemtest.lmm.distributions.student import t_quantile, two_sided_p, upper_tail
from lmemtest.lmm.distributions.studentized_range import ptukey, solve_tail

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from lmemtest.core.arrays import Array


ALTERNATIVES = ("two-sided", "greater")
METHODS = ("auto", "quasi-monte-carlo")
_RANK_TOLERANCE = 1e-9  # of the trace: eigenvalues below are rounding
_SAME = 1e-8  # of correlations
_CHUNK = 4_000_000  # numbers that are held at a time
_NEGLIGIBLE = 1e-10  # eigenvalues below this share of the largest one are rounding
_CONFIDENCE = 3.5  # t quantile of 99.5 % at 7 df: eight replicates


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _RangeTail:
    """All pairwise differences of equally precise means: the studentized range."""

    n_means: int

    def tail(self, c: Array, df: Array) -> tuple[Array, Array]:
        return ptukey(np.sqrt(2.0) * c, self.n_means, df, upper=True), np.zeros(len(c))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LargestT:
    """Distribution of the largest of `n_tests` jointly t distributed statistics, whose correlation has `rank`.

    `alternative` says whether absolute values are taken, `method` how it is integrated: "exact" (closed form or
    one-dimensional quadrature over an angle), "quadrature" (the studentized range, or one factor as Dunnett's) or
    "quasi-Monte-Carlo", then with `n_points`.
    """

    alternative: Literal["two-sided", "greater"]
    n_tests: int
    rank: int
    method: str
    n_points: int
    integral: RadialTail | OneFactorTail | _RangeTail

    def sf(self, c: ArrayLike, df: ArrayLike) -> Array:
        """Probability that the largest statistic exceeds `c`, the single-step p-value; `c` and `df` are broadcast.

        All statistics share the degrees of freedom, ``inf`` for normal ones; NaN gives NaN.
        """
        return self._evaluate(c, df)[0]

    def error(self, c: ArrayLike, df: ArrayLike) -> Array:
        """Error of `sf` with 99 % confidence, from independent replicates; 0 where nothing is random."""
        return _CONFIDENCE * self._evaluate(c, df)[1]

    def isf(self, alpha: float, df: ArrayLike) -> Array:
        """Critical values, exceeded with probability `alpha`: the inverse of `sf` to rounding."""
        check_fraction(alpha, "alpha")
        if self.alternative == "greater" and alpha >= 0.5:
            raise ArgumentError(f"alpha must be below 0.5 for one-sided joint intervals, got {alpha!r}.")
        nu = np.asarray(df, dtype=float)
        out = np.full(nu.shape, np.nan)
        known = ~np.isnan(nu)
        distinct, where = np.unique(nu[known], return_inverse=True)
        if len(distinct):
            sides = 2.0 if self.alternative == "two-sided" else 1.0
            low = t_quantile(np.full(len(distinct), alpha / sides), distinct) * (1.0 - 1e-9)
            high = t_quantile(np.full(len(distinct), alpha / sides / self.n_tests), distinct) * (1.0 + 1e-9)
            target = np.full(len(distinct), special.logit(alpha))

            log_tail = lambda c: (np.log(self._evaluate(c, distinct)[0]), None)  # noqa: E731
            out[known] = solve_tail(log_tail, target, low, high)[where]
        return out

    def note(self, c: ArrayLike, df: ArrayLike) -> str:
        """One sentence on how the probabilities were computed, with their largest error."""
        if self.method == "exact":
            return f"The joint t distribution of {_count(self.n_tests)} was integrated exactly."
        if self.method == "quadrature":
            return (
                f"The joint t distribution of {_count(self.n_tests)} was integrated by quadrature (error below 1e-8)."
            )
        worst = float(np.nanmax(self.error(c, df), initial=0.0))
        return (
            f"The joint t distribution of {_count(self.n_tests)} was integrated by quasi-Monte-Carlo with "
            f"{self.n_points:,} points; the largest error of a p-value is {written(worst, '.1g')} (99 % confidence)."
        )

    def _evaluate(self, c: ArrayLike, df: ArrayLike) -> tuple[Array, Array]:
        at, nu = np.broadcast_arrays(np.asarray(c, dtype=float), np.asarray(df, dtype=float))
        value, error = np.full(at.shape, np.nan), np.full(at.shape, np.nan)
        known = ~(np.isnan(at) | np.isnan(nu))
        if known.any():
            value[known], error[known] = self._bounded(at[known], nu[known])
        return value, error

    def _bounded(self, c: Array, df: Array) -> tuple[Array, Array]:
        """The integral inside bounds that hold for every correlation: one statistic, and Šidák or Bonferroni."""
        if self.alternative == "two-sided":
            one = two_sided_p(c, df)
            value, error = self.integral.tail(np.maximum(c, 0.0), df)
            with np.errstate(divide="ignore"):  # log1p(-1)
                most = -np.expm1(self.n_tests * np.log1p(-one))  # Šidák (1967)
            return np.where(c <= 0, 1.0, np.clip(value, one, most)), error
        one = upper_tail(c, df)
        value, error = self.integral.tail(c, df)
        return np.clip(value, one, np.minimum(1.0, self.n_tests * one)), error


def largest_t(
    correlation: ArrayLike,
    *,
    alternative: str = "two-sided",
    method: str = "auto",
    rng: int | np.random.Generator | None = None,
) -> LargestT:
    """Distribution of the largest of jointly t distributed statistics with a correlation, which may be singular.

    "auto" integrates without randomness where it can: one or two dimensions, all pairwise differences of equally
    precise means, correlations of one factor. P(max |T_i| > c) for T = A g / s is the average over directions u of an F
    tail at c^2 / max_i (a_i'u)^2, which serves every c and every df. In more than two dimensions directions follow a
    randomised lattice, sampled near the rows of A as well, so that small p-values have the same relative error (about
    1e-3) as large ones.

    Dunnett (1955), doi:10.1080/01621459.1955.10501294; Hothorn, Bretz & Westfall (2008), doi:10.1002/bimj.200810425;
    Owen & Zhou (2000), doi:10.1080/01621459.2000.10473909

    Three treatments against a control, 20 df: Dunnett's table has 2.54.

    >>> largest_t(0.5 + 0.5 * np.eye(3)).isf(0.05, 20).round(2).item()
    2.54
    """
    check_choice(alternative, "alternative", ALTERNATIVES)
    check_choice(method, "method", METHODS)
    R = _checked(correlation)
    generator = resolve_rng(rng)
    factor = _factor(R)
    m, rank = factor.shape
    two_sided = alternative == "two-sided"
    how = "exact"
    integral: RadialTail | OneFactorTail | _RangeTail | None = None
    if rank == 1:
        integral = line_tail(factor, two_sided=two_sided)
    elif rank == 2:
        integral = circle_tail(factor, two_sided=two_sided)
    elif method == "auto":
        how, integral = "quadrature", _without_sampling(R, two_sided)
    if integral is None:
        how, integral = "quasi-Monte-Carlo", sphere_tail(factor, two_sided=two_sided, rng=generator)
    return LargestT(
        alternative="two-sided" if two_sided else "greater",
        n_tests=m,
        rank=rank,
        method=how,
        n_points=getattr(integral, "n_points", 0),
        integral=integral,
    )


def _without_sampling(R: Array, two_sided: bool) -> _RangeTail | OneFactorTail | None:
    n_means = _means_of_pairs(R) if two_sided else None
    if n_means is not None:
        return _RangeTail(n_means=n_means)
    b = loadings(R)
    return None if b is None else one_factor_tail(b, two_sided=two_sided)


def _means_of_pairs(R: Array) -> int | None:
    """The k for which R is the correlation of (1, 2), (1, 3), ..., (k - 1, k) with equal precision."""
    k = round((1.0 + np.sqrt(1.0 + 8.0 * len(R))) / 2.0)
    if k * (k - 1) != 2 * len(R):
        return None
    i, j = np.triu_indices(k, k=1)
    L = np.eye(k)[i] - np.eye(k)[j]
    return k if np.abs(L @ L.T / 2.0 - R).max() < _SAME else None


def _factor(R: Array) -> Array:
    """A with unit rows and A A' = R."""
    values, vectors = np.linalg.eigh(R)
    keep = values > _RANK_TOLERANCE * len(R)
    A = vectors[:, keep] * np.sqrt(values[keep])
    return A / np.linalg.norm(A, axis=1, keepdims=True)


def _checked(correlation: ArrayLike) -> Array:
    R = np.asarray(correlation, dtype=float)
    if R.ndim != 2 or R.shape[0] != R.shape[1] or not len(R):
        raise ArgumentError(f"correlation must be a square matrix, got an array of shape {R.shape}.")
    if not np.isfinite(R).all() or np.abs(R - R.T).max() > 1e-8 or np.abs(np.diag(R) - 1.0).max() > 1e-8:
        raise ArgumentError("correlation must be finite and symmetric with ones on its diagonal.")
    lowest = float(np.linalg.eigvalsh(R)[0])
    if lowest < -1e-8 * len(R):
        raise ArgumentError(f"correlation must not have negative eigenvalues, got {written(lowest, '.3g')}.")
    return R


def _count(n: int) -> str:
    return "1 comparison" if n == 1 else f"{n} comparisons"


# ---------------------------------------------------------------------- over curves, by simulation


@dataclass(frozen=True, slots=True, eq=False)
class DrawnLargestT:
    """The same from draws of the largest |t|, in ascending order; `df` are the degrees of freedom of each variance.

    Infinite `df` are those of a law of normal scores: t ratios are judged by their scores, critical values are t
    ratios.
    """

    draws: Array
    df: float

    def sf(self, c: ArrayLike, df: ArrayLike) -> Array:
        """Adjusted p-values, ``(1 + number of draws at least as large) / (n + 1)``; NaN where `c` is."""
        t = np.abs(np.asarray(c, dtype=float))
        if np.isinf(self.df):
            t = -special.ndtri(np.clip(two_sided_p(t, df), np.finfo(float).tiny, 1.0) / 2.0)
        above = len(self.draws) - np.searchsorted(self.draws, t, side="left")
        return np.where(np.isnan(t), np.nan, (1.0 + above) / (len(self.draws) + 1.0))

    def isf(self, alpha: float, df: ArrayLike) -> Array:
        """Critical value: the largest |t| exceeds it with probability `alpha`."""
        critical = np.quantile(self.draws, 1.0 - check_fraction(alpha, "alpha"))
        return t_quantile(special.ndtr(-critical), df) if np.isinf(self.df) else np.full(np.shape(df), critical)


def largest_over_curves(
    rows: Array, cov: Array, df: float, *, n_draws: int, rng: np.random.Generator, defined: NDArray[np.bool_]
) -> DrawnLargestT:
    """Simulate the largest |t| over curves, rows (curves, points, p) of coefficients with covariance `cov`.

    `defined` says which curve has a value where. `df` are the degrees of freedom of the covariance between units; `inf`
    for normal scores. Numerators are normal, denominators follow the Wishart law of `df` around the mean correlation of
    the curves, drawn by Bartlett's decomposition (1933, doi:10.1017/S0370164600015637); Degras (2011),
    doi:10.5705/ss.2009.207, on such bands.
    """
    n_curves, n_points, _ = rows.shape
    scores = rows.reshape(n_curves * n_points, -1) @ _symmetric_root(cov)
    sd = np.linalg.norm(scores, axis=1)
    keep = defined.ravel() & (sd > 0)
    scores = scores[keep] / sd[keep, None]
    point = np.tile(np.arange(n_points), n_curves)[keep]
    along = _root(_mean_correlation(rows, cov, defined))  # (points, rank of a curve)
    size = max(1, _CHUNK // max(len(point), n_points * along.shape[1]))
    draws = []
    for start in range(0, n_draws, size):
        n = min(size, n_draws - start)
        numerator = np.abs(rng.standard_normal((n, scores.shape[1])) @ scores.T)
        spread = np.sqrt(_variance_ratios(along, df, n, rng))
        draws.append((numerator / spread[:, point]).max(axis=1))
    return DrawnLargestT(np.sort(np.concatenate(draws)), float(df))


def _mean_correlation(rows: Array, cov: Array, defined: NDArray[np.bool_]) -> Array:
    """Correlation of a curve's errors between points, averaged over the curves that are defined at both."""
    total, count = np.zeros((rows.shape[1],) * 2), np.zeros((rows.shape[1],) * 2)
    for curve, known in zip(rows, defined, strict=True):
        among = curve @ cov @ curve.T
        sd = np.sqrt(among.diagonal())
        both = np.outer(known & (sd > 0), known & (sd > 0))
        total += np.where(both, among / np.where(both, np.outer(sd, sd), 1.0), 0.0)
        count += both
    return total / np.maximum(count, 1.0)


def _root(cov: Array) -> Array:
    """``F`` of full column rank with ``F F' = cov``, with signs that do not depend on rounding."""
    values, vectors = np.linalg.eigh((cov + cov.T) / 2)
    keep = values > _NEGLIGIBLE * max(values[-1], 0.0)
    vectors = vectors[:, keep]
    largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])]
    return np.asarray(vectors * np.sign(largest) * np.sqrt(values[keep]))


def _symmetric_root(cov: Array) -> Array:
    """The root that is unique where eigenvalues are equal, as they are for algorithms that vary alike."""
    values, vectors = np.linalg.eigh((cov + cov.T) / 2)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)


def _variance_ratios(along: Array, df: float, n: int, rng: np.random.Generator) -> Array:
    """Estimated over true variances at each point, ``(n, points)``."""
    points, rank = along.shape
    if np.isinf(df):
        return np.ones((n, points))
    if df >= rank:
        # Bartlett: W = T T', chi on the diagonal, normal below it.
        T = np.tril(rng.standard_normal((n, rank, rank)), -1)
        T[:, np.arange(rank), np.arange(rank)] = np.sqrt(rng.chisquare(df - np.arange(rank), size=(n, rank)))
        shares = along @ T
    else:  # fewer units than directions: their normal vectors themselves
        shares = along @ rng.standard_normal((n, rank, max(int(df), 1)))
    true = np.einsum("xr,xr->x", along, along)
    ratio = np.einsum("nxr,nxr->nx", shares, shares) / (df * np.where(true > 0, true, 1.0))
    return np.where(true > 0, ratio, 1.0).reshape(n, points)
