"""The largest |t| over a family of curves: what makes bands and statements hold at all points at once.

A curve c(x) = l(x)' b is estimated with normal errors and a variance that is itself estimated, at every point x from
the same few independent units (benchmarks, runs). Along a curve the estimated variances go up and down together, but
not as one: they are l(x)' W l(x) with a Wishart matrix W of the covariance of the curves between units. A t-process
with one common denominator, as for the means of a one-way layout, would be too narrow: it takes the variances at
all points from one draw. With complete tables both laws below are exact given the covariance, which is estimated.

That is so if all curves have one covariance between units. Where pairs of curves vary differently, each has a variance
of its own: the common one times a ratio, which is moderated (see `moderation`), that of the whole curve or, where it
is larger, that of the point. Its t ratios
become normal scores by its own degrees of freedom, and these are judged by the largest of the normal variables of all
curves and points, as `step_down` does with a range. The size of this rule is simulated (docs/validation.md).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import special

from lmemtest._validate import check_fraction
from lmemtest.inference.distributions.student import t_quantile, two_sided_p
from lmemtest.inference.means.moderation import Moderation, moderation

FloatArray = NDArray[np.float64]

_CHUNK = 4_000_000  # numbers that are held at a time
_NEGLIGIBLE = 1e-10  # eigenvalues below this share of the largest one are rounding


@dataclass(frozen=True, slots=True, eq=False)
class LargestOverCurves:
    """Draws of the largest |t| of a family, if no curve differs from 0 anywhere.

    Attributes
    ----------
    draws : (n,) float
        In ascending order.
    df : float
        Degrees of freedom of each variance; `inf` for a law of normal scores.
    """

    draws: FloatArray
    df: float

    def critical(self, level: float) -> float:
        """The value that the largest |t| stays below with probability `level`."""
        return float(np.quantile(self.draws, check_fraction(level, "level")))

    def critical_at(self, level: float, df: FloatArray) -> FloatArray:
        """The t ratios at `df` degrees of freedom whose normal score is critical; for a law of normal scores."""
        return t_quantile(special.ndtr(-self.critical(level)), df)

    def p_values(self, t_ratio: FloatArray, df: FloatArray | None = None) -> FloatArray:
        """Adjusted p-values, ``(1 + number of draws at least as large) / (n + 1)``; NaN where `t_ratio` is.

        With `df`, of the normal scores of the t ratios.
        """
        t = np.abs(np.asarray(t_ratio, dtype=float))
        if df is not None:
            t = -special.ndtri(np.clip(two_sided_p(t, df), np.finfo(float).tiny, 1.0) / 2.0)
        above = len(self.draws) - np.searchsorted(self.draws, t, side="left")
        return np.where(np.isnan(t), np.nan, (1.0 + above) / (len(self.draws) + 1.0))


def largest_over_curves(
    rows: FloatArray, cov: FloatArray, df: float, *, n_draws: int, rng: np.random.Generator, defined: NDArray[np.bool_]
) -> LargestOverCurves:
    """Simulate the largest |t| over curves.

    Parameters
    ----------
    rows : (curves, points, p) float
        Linear functions of the coefficients: the value of each curve at each point.
    cov : (p, p) float
        Covariance of the estimated coefficients.
    df : float > 0
        Degrees of freedom of the covariance between units, the same for all curves; `inf` for normal scores.
    n_draws : int
    rng : numpy.random.Generator
    defined : (curves, points) bool
        False where a curve has no value.

    Returns
    -------
    LargestOverCurves

    Notes
    -----
    Numerators are normal with covariance `cov`; denominators follow the Wishart law of `df` degrees of freedom around
    the mean correlation of the curves, drawn by Bartlett's decomposition.

    References
    ----------
    Bartlett (1933), Proc. R. Soc. Edinb. 53, 260-283, doi:10.1017/S0370164600015637; Degras (2011) on simultaneous
    bands for mean curves, doi:10.5705/ss.2009.207
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
    return LargestOverCurves(np.sort(np.concatenate(draws)), float(df))


def pair_ratios(residuals: FloatArray, df: float, most_df: float) -> tuple[Moderation, FloatArray, FloatArray]:
    """Moderated variance of each pair's difference relative to that of all pairs.

    Parameters
    ----------
    residuals : (units, k, points) float
        Curves of k >= 3 algorithms on every unit, less their means.
    df : float
        Degrees of freedom of the residuals: units less means.
    most_df : float
        Of the common variance.

    Returns
    -------
    Moderation
    ratio, df : (pairs, points) float
        In the order of ``np.triu_indices(k, 1)``.

    Notes
    -----
    A pair's own mean square over the common one (the mean of all pairs') is averaged over the points. This average has
    at least `df` degrees of freedom, and more where points are not perfectly correlated; `df` is used, so the reference
    is conservative there. Two algorithms that start alike (the same initial design) vary less at first, and more later
    than the average says; so the ratio of the point itself, moderated in the same way, counts where it is larger.

    Examples
    --------
    >>> e = np.random.default_rng(0).normal(size=(20, 4, 5)) * np.array([1.0, 1.0, 1.0, 5.0])[:, None]
    >>> _, ratio, _ = pair_ratios(e - e.mean(axis=0), 19.0, 57.0)
    >>> ratio.mean(axis=1).round(1)
    array([0.1, 0.2, 1.8, 0.2, 1.9, 1.9])
    """
    k = residuals.shape[1]
    first, second = np.triu_indices(k, 1)
    own = ((residuals[:, first] - residuals[:, second]) ** 2).sum(axis=0)
    common = own.mean(axis=0)
    varies = common > _NEGLIGIBLE * common.max()
    v = (own[:, varies] / common[varies]).mean(axis=1) if varies.any() else np.ones(len(first))
    family = moderation(v, np.full(len(v), float(df)), first, second, np.ones(k))
    squares = np.eye(k)[first] + np.eye(k)[second]
    whole, df_whole = family.ratios(squares, v, np.full(len(v), float(df)), np.full(len(v), float(most_df)))
    at = np.where(varies[:, None], own.T / np.where(varies, common, 1.0)[:, None], v)  # (points, pairs)
    free = np.full(at.shape, float(df))
    here, df_here = moderation(at, free, first, second, np.ones(k)).ratios(
        squares, at, free, np.full(at.shape, float(most_df))
    )
    larger = here > whole
    return family, np.where(larger, here, whole).T, np.where(larger, df_here, df_whole).T


def _mean_correlation(rows: FloatArray, cov: FloatArray, defined: NDArray[np.bool_]) -> FloatArray:
    """Correlation of a curve's errors between points, averaged over the curves that are defined at both."""
    total, count = np.zeros((rows.shape[1],) * 2), np.zeros((rows.shape[1],) * 2)
    for curve, known in zip(rows, defined, strict=True):
        among = curve @ cov @ curve.T
        sd = np.sqrt(among.diagonal())
        both = np.outer(known & (sd > 0), known & (sd > 0))
        total += np.where(both, among / np.where(both, np.outer(sd, sd), 1.0), 0.0)
        count += both
    return total / np.maximum(count, 1.0)


def _root(cov: FloatArray) -> FloatArray:
    """``F`` of full column rank with ``F F' = cov``, with signs that do not depend on rounding."""
    values, vectors = np.linalg.eigh((cov + cov.T) / 2)
    keep = values > _NEGLIGIBLE * max(values[-1], 0.0)
    vectors = vectors[:, keep]
    largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])]
    return np.asarray(vectors * np.sign(largest) * np.sqrt(values[keep]))


def _symmetric_root(cov: FloatArray) -> FloatArray:
    """The root that is unique where eigenvalues are equal, as they are for algorithms that vary alike."""
    values, vectors = np.linalg.eigh((cov + cov.T) / 2)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)


def _variance_ratios(along: FloatArray, df: float, n: int, rng: np.random.Generator) -> FloatArray:
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
