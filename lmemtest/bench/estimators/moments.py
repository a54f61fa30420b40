"""Variance of a score and correlation of two: what the variance of the mean of k scores is made of."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    Array = NDArray[np.float64]


def variance_of_mean(variance: float, rho: float, k: ArrayLike) -> Array:
    """Variance of the mean of k scores with this variance, any two of which have the correlation `rho`.

    Examples
    --------
    >>> variance_of_mean(4.0, 0.25, [1, 2, 4])
    array([4.  , 2.5 , 1.75])
    """
    k = np.asarray(k, dtype=float)
    return variance / k + (k - 1.0) / k * rho * variance


@dataclass(frozen=True, slots=True)
class Moments:
    """Variance of a score and correlation of two, with what is known of their errors."""

    variance: float
    rho: float
    rho_ends: tuple[float, float] = (float("nan"), float("nan"))
    mean_squares: tuple[tuple[float, float], ...] = ()  # between and within, or of independent scores: value and df
    n: int = 1  # scores of a realisation
    mean: float = float("nan")
    mean_variance: float = float("nan")
    bias: float = 0.0
    bias_error: float = float("nan")
    bias_ends: tuple[float, float] = (float("nan"), float("nan"))

    @classmethod
    def of(cls, scores: Array, level: float) -> Moments:
        """Of realisations in rows."""
        from scipy import special

        m, n = scores.shape
        means = scores.mean(axis=1)
        between = n * float(means.var(ddof=1))
        within = float(((scores - means[:, None]) ** 2).sum()) / (m * (n - 1))
        shared = (between - within) / n
        df = (m - 1.0, m * (n - 1.0))
        with np.errstate(divide="ignore"):
            ratio = np.float64(between) / within
        tails = special.fdtri(*df, [0.5 + level / 2, 0.5 - level / 2])
        low, high = (1.0 - n / (ratio / tails + n - 1.0)).tolist()
        return cls(
            variance=shared + within,
            rho=shared / (shared + within),
            rho_ends=(low, high),
            mean_squares=((between, df[0]), (within, df[1])),
            n=n,
            mean=float(means.mean()),
            mean_variance=between / (m * n),
            bias=float("nan"),
        )

    @classmethod
    def independent(cls, scores: Array) -> Moments:
        """Of scores that share nothing."""
        variance, N = float(scores.var(ddof=1)), len(scores)
        return cls(variance, 0.0, (0.0, 0.0), ((variance, N - 1.0),), 1, float(scores.mean()), variance / N)

    def against(self, ideal: Moments, level: float) -> Moments:
        """With the bias against the mean of the ideal estimator, and Welch's interval of it."""
        from scipy import special

        bias, parts = self.mean - ideal.mean, np.array([self.mean_variance, ideal.mean_variance])
        error = float(np.sqrt(parts.sum()))
        df = parts.sum() ** 2 / (parts**2 / [one.mean_squares[0][1] for one in (self, ideal)]).sum()
        half = error * float(special.stdtrit(df, 0.5 + level / 2))
        return replace(self, bias=bias, bias_error=error, bias_ends=(bias - half, bias + half))

    def error_ends(self, k: Array, level: float) -> tuple[Array, Array]:
        """Interval of the standard error of the mean of k scores, k <= n; NaN without degrees of freedom."""
        from scipy import special

        if not self.mean_squares:
            return np.full(len(k), np.nan), np.full(len(k), np.nan)
        parts = self.parts(k)
        df = np.array([[df] for _, df in self.mean_squares])
        down, up = (1.0 - df / special.chdtri(df, tail) for tail in (0.5 - level / 2, 0.5 + level / 2))
        low, high = (np.sqrt(((part * parts) ** 2).sum(axis=0)) for part in (down, up))
        variance = parts.sum(axis=0)
        return np.sqrt(variance - low), np.sqrt(variance + high)

    def parts(self, k: Array) -> Array:
        """What each mean square contributes to the variance of the mean of k scores, none below zero."""
        weights = [1.0 / k] if len(self.mean_squares) == 1 else [np.full(len(k), 1.0 / self.n), 1.0 / k - 1.0 / self.n]
        return np.array([weight * value for weight, (value, _) in zip(weights, self.mean_squares, strict=True)])

    def variance_of_mean(self, k: Array) -> Array:
        """The equation of `variance_of_mean`, from mean squares without cancellation."""
        return self.parts(k).sum(axis=0) if self.mean_squares else variance_of_mean(self.variance, self.rho, k)
