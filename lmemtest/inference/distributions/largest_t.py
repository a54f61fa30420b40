"""The joint distribution of the largest of several t statistics, for single-step tests and intervals that match."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from scipy import special

from lmemtest._rounding import written
from lmemtest._validate import check_choice, check_fraction, resolve_rng
from lmemtest.errors import ArgumentError
from lmemtest.inference.distributions.one_factor import OneFactorTail, loadings, one_factor_tail
from lmemtest.inference.distributions.sphere import RadialTail, circle_tail, line_tail, sphere_tail
from lmemtest.inference.distributions.student import t_quantile, two_sided_p
from lmemtest.inference.distributions.studentize import solve_tail
from lmemtest.inference.distributions.studentized_range import ptukey

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    FloatArray = NDArray[np.float64]

ALTERNATIVES = ("two-sided", "greater")
METHODS = ("auto", "quasi-monte-carlo")
_RANK_TOLERANCE = 1e-9  # of the trace: eigenvalues below are rounding
_SAME = 1e-8  # of correlations
_CONFIDENCE = 3.5  # t quantile of 99.5 % at 7 df: eight replicates


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _RangeTail:
    """All pairwise differences of equally precise means: the studentized range."""

    n_means: int

    def tail(self, c: FloatArray, df: FloatArray) -> tuple[FloatArray, FloatArray]:
        return ptukey(np.sqrt(2.0) * c, self.n_means, df, upper=True), np.zeros(len(c))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LargestT:
    """Distribution of the largest of m statistics that are jointly t distributed.

    Attributes
    ----------
    alternative : {"two-sided", "greater"}
        Whether absolute values are taken.
    n_tests : int
        Number of statistics m.
    rank : int
        Rank of their correlation.
    method : {"exact", "quadrature", "quasi-Monte-Carlo"}
        "exact": closed form or one-dimensional quadrature over an angle; "quadrature": the studentized range or a
        correlation of one factor (Dunnett).
    n_points : int
        Points of the quasi-Monte-Carlo rule, otherwise 0.
    """

    alternative: Literal["two-sided", "greater"]
    n_tests: int
    rank: int
    method: str
    n_points: int
    integral: RadialTail | OneFactorTail | _RangeTail

    def sf(self, c: ArrayLike, df: ArrayLike) -> FloatArray:
        """Probability that the largest statistic exceeds `c`: the single-step p-value of a statistic `c`.

        Parameters
        ----------
        c : array_like of float
            NaN gives NaN.
        df : array_like of float, > 0
            Degrees of freedom that all statistics share, ``inf`` for normal ones; broadcast against `c`.

        Returns
        -------
        (broadcast shape) float array
        """
        return self._evaluate(c, df)[0]

    def error(self, c: ArrayLike, df: ArrayLike) -> FloatArray:
        """Error of `sf` with 99 % confidence, from independent replicates; 0 where nothing is random.

        Parameters
        ----------
        c, df : array_like of float
            As in `sf`.

        Returns
        -------
        (broadcast shape) float array
        """
        return _CONFIDENCE * self._evaluate(c, df)[1]

    def isf(self, alpha: float, df: ArrayLike) -> FloatArray:
        """Critical value: the largest statistic exceeds it with probability `alpha`.

        Parameters
        ----------
        alpha : float in (0, 1), below 0.5 if one-sided
        df : array_like of float, > 0

        Returns
        -------
        (shape of df) float array
            Inverse of `sf` to rounding, so tests and intervals agree.

        Raises
        ------
        ArgumentError
            If `alpha` is out of its range.
        """
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

            def log_tail(c: FloatArray) -> FloatArray:
                return np.log(self._evaluate(c, distinct)[0])

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
        error = self.error(c, df)
        worst = float(np.nanmax(error, initial=0.0))
        return (
            f"The joint t distribution of {_count(self.n_tests)} was integrated by quasi-Monte-Carlo with "
            f"{self.n_points:,} points; the largest error of a p-value is {written(worst, '.1g')} (99 % confidence)."
        )

    def _evaluate(self, c: ArrayLike, df: ArrayLike) -> tuple[FloatArray, FloatArray]:
        at, nu = np.broadcast_arrays(np.asarray(c, dtype=float), np.asarray(df, dtype=float))
        value, error = np.full(at.shape, np.nan), np.full(at.shape, np.nan)
        known = ~(np.isnan(at) | np.isnan(nu))
        if known.any():
            x, d = at[known], nu[known]
            value[known], error[known] = self._bounded(x, d)
        return value, error

    def _bounded(self, c: FloatArray, df: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The integral inside bounds that hold for every correlation: one statistic, and Šidák or Bonferroni."""
        if self.alternative == "two-sided":
            one = two_sided_p(c, df)
            value, error = self.integral.tail(np.maximum(c, 0.0), df)
            with np.errstate(divide="ignore"):  # log1p(-1)
                most = -np.expm1(self.n_tests * np.log1p(-one))  # Šidák (1967)
            return np.where(c <= 0, 1.0, np.clip(value, one, most)), error
        one = np.where(c > 0, two_sided_p(c, df) / 2.0, 1.0 - two_sided_p(c, df) / 2.0)
        value, error = self.integral.tail(c, df)
        return np.clip(value, one, np.minimum(1.0, self.n_tests * one)), error


def largest_t(
    correlation: ArrayLike,
    *,
    alternative: str = "two-sided",
    method: str = "auto",
    rng: int | np.random.Generator | None = None,
) -> LargestT:
    """Distribution of the largest of jointly t distributed statistics.

    Parameters
    ----------
    correlation : (m, m) array_like of float
        Correlation of the statistics; may be singular, as that of all pairwise differences is.
    alternative : {"two-sided", "greater"}
        The largest absolute value, or the largest value.
    method : {"auto", "quasi-monte-carlo"}
        "auto" integrates without randomness where it can: one or two dimensions, all pairwise differences of
        equally precise means, correlations of one factor.
    rng : int, numpy.random.Generator or None
        Shifts the quasi-Monte-Carlo points; not used otherwise.

    Returns
    -------
    LargestT

    Raises
    ------
    ArgumentError
        If `correlation` is not a correlation matrix, or an option is unknown.

    Notes
    -----
    P(max |T_i| > c) for T = A g / s is the average over directions u of an F tail at c^2 / max_i (a_i'u)^2, which
    serves every c and every df. In more than two dimensions directions follow a randomised lattice, sampled near
    the rows of A as well, so that small p-values have the same relative error (about 1e-3) as large ones.

    References
    ----------
    Dunnett (1955), doi:10.1080/01621459.1955.10501294; Hothorn, Bretz & Westfall (2008), doi:10.1002/bimj.200810425;
    Owen & Zhou (2000), doi:10.1080/01621459.2000.10473909

    Examples
    --------
    Three treatments against a control, 20 df: Dunnett's table has 2.54.

    >>> three = largest_t(0.5 + 0.5 * np.eye(3))
    >>> three.isf(0.05, 20).round(2).item()
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


def _without_sampling(R: FloatArray, two_sided: bool) -> _RangeTail | OneFactorTail | None:
    n_means = _means_of_pairs(R) if two_sided else None
    if n_means is not None:
        return _RangeTail(n_means=n_means)
    b = loadings(R)
    return None if b is None else one_factor_tail(b, two_sided=two_sided)


def _means_of_pairs(R: FloatArray) -> int | None:
    """The k for which R is the correlation of (1, 2), (1, 3), ..., (k - 1, k) with equal precision."""
    k = round((1.0 + np.sqrt(1.0 + 8.0 * len(R))) / 2.0)
    if k * (k - 1) != 2 * len(R):
        return None
    i, j = np.triu_indices(k, k=1)
    L = np.eye(k)[i] - np.eye(k)[j]
    return k if np.abs(L @ L.T / 2.0 - R).max() < _SAME else None


def _factor(R: FloatArray) -> FloatArray:
    """A with unit rows and A A' = R."""
    values, vectors = np.linalg.eigh(R)
    keep = values > _RANK_TOLERANCE * len(R)
    A = vectors[:, keep] * np.sqrt(values[keep])
    return A / np.linalg.norm(A, axis=1, keepdims=True)


def _checked(correlation: ArrayLike) -> FloatArray:
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
