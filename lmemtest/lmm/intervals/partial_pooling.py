"""Partial pooling: estimates of like quantities with known errors, each drawn towards their mean.

The model is c_i = theta_i + error_i, Var(error_i) = w_i, theta_i = mu + sd * z_i. Given sd, theta_i is normal about

    (1 - B_i) c_i + B_i mu_hat,    B_i = w_i / (w_i + sd^2),

with variance ``w_i (1 - B_i) + B_i^2 Var(mu_hat)``. A plug-in estimate of sd makes intervals too narrow, the more so
where it is zero, so sd is integrated out: its weights are the restricted likelihood times a prior that is flat in the
variance. This prior is chosen for its intervals: they hold at least as often as stated over repeated studies, whatever
the sd (Morris & Tang 2011). With three quantities the integral would not exist; there the prior is flat in sd (Gelman
2006). The integral is the trapezoidal rule in log sd, where its error falls exponentially with the step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import stdtr

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from lmemtest.core.arrays import Array


FEWEST = 3
_REACH = 1e-9, 1e7  # of the smallest error, and of the spread: beyond, sd has next to no weight
_STEP = 0.1  # of log sd; the weights of m quantities have a peak of width 1 / sqrt(2 m)
_NEGLIGIBLE = 1e-18  # of the largest weight
_FLAT_IN_VARIANCE = 4  # quantities from which on the prior that is flat in the variance gives an integral
_HALVINGS = 55


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Mixture:
    """Quantities that are mixtures of scaled t distributions.

    `weights` (n,) of the components add to one; `means` and `sds` are (n, m), an sd of zero is a point; `df` (m,).
    """

    weights: Array
    means: Array
    sds: Array
    df: Array

    @property
    def mean(self) -> Array:
        return self.weights @ self.means

    @property
    def sd(self) -> Array:
        """Standard deviations, the components taken as normal."""
        return np.asarray(np.sqrt(self.weights @ (self.sds**2 + (self.means - self.mean) ** 2)))

    def cdf(self, x: ArrayLike) -> Array:
        """``(m,)`` probability of at most `x`, ``(m,)`` or a number."""
        return self.weights @ stdtr(self.df, self._distance(x))

    def sf(self, x: ArrayLike) -> Array:
        """``(m,)`` probability of more than `x`; keeps its digits where it is small."""
        return self.weights @ stdtr(self.df, -self._distance(x))

    def _distance(self, x: ArrayLike) -> Array:
        gap = np.asarray(x, dtype=float) - self.means
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where(gap == 0.0, 0.0, gap / self.sds)

    def p_value(self) -> Array:
        """``(m,)`` twice the smaller of the probabilities of both signs."""
        return np.minimum(1.0, 2.0 * np.minimum(self.cdf(0.0), self.sf(0.0)))

    def quantile(self, p: float) -> Array:
        """``(m,)`` points below which the probability is `p`, by bisection."""
        reach = 1.0 + np.max(self.sds, axis=0)
        low, high = self.means.min(axis=0) - reach, self.means.max(axis=0) + reach
        while (outside := self.cdf(low) > p).any():
            low = np.where(outside, low - (high - low), low)
        while (outside := self.cdf(high) < p).any():
            high = np.where(outside, high + (high - low), high)
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            below = self.cdf(middle) < p
            low, high = np.where(below, middle, low), np.where(below, high, middle)
        return 0.5 * (low + high)


def pool(estimates: ArrayLike, variances: ArrayLike, df: ArrayLike = np.inf) -> tuple[Mixture, Mixture, Array]:
    """Pool three or more independent estimates of like quantities; `df` are those of the variances of their errors.

    The quantities theta_i, their deviations theta_i - mu, and the weight ``1 - B_i`` of a quantity's own estimate, on
    average over the sd: 0 is complete pooling.

    Morris & Tang (2011). Estimating random effects via adjustment for density maximization. Statist. Sci. 26(2),
    271-287; Gelman (2006), doi:10.1214/06-BA117A

    Eight schools (Rubin 1981): noise explains nearly all of the spread.

    >>> effects = [28, 8, -3, 7, -1, 1, 18, 12]
    >>> errors = np.array([15, 10, 16, 11, 9, 11, 10, 18])
    >>> values, deviations, own_share = pool(effects, errors**2)
    >>> values.mean.round(1)
    array([14.6,  8. ,  4.6,  7.6,  3.3,  4.9, 12.8,  9.1])
    """
    c, w = np.asarray(estimates, dtype=float), np.asarray(variances, dtype=float)
    if len(c) < FEWEST:
        raise ValueError(f"pooling needs at least {FEWEST} estimates, got {len(c)}.")
    low, high = _REACH[0] * np.sqrt(w.min()), _REACH[1] * max(np.sqrt(w.max()), float(np.ptp(c)))
    n = int(np.ceil(np.log(high / low) / min(_STEP, 0.5 / np.sqrt(len(c)))))
    sd = np.geomspace(low, high, n)
    precision = 1.0 / (sd[:, None] ** 2 + w)
    mean_variance = 1.0 / precision.sum(axis=1)
    mean = mean_variance * (precision @ c)
    from_mean = c - mean[:, None]
    log_weight = 0.5 * (np.log(precision).sum(axis=1) + np.log(mean_variance))
    log_weight -= 0.5 * (precision * from_mean**2).sum(axis=1)
    log_weight += np.log(sd) * (2 if len(c) >= _FLAT_IN_VARIANCE else 1)  # sd d(sd) or d(sd), in units of d(log sd)
    weights = np.exp(log_weight - log_weight.max())
    kept = weights > _NEGLIGIBLE
    weights, precision, mean_variance, from_mean = (
        part[kept] for part in (weights / weights[kept].sum(), precision, mean_variance, from_mean)
    )
    B = w * precision
    spread = w * (1.0 - B)
    freedom = np.broadcast_to(np.asarray(df, dtype=float), c.shape)
    value_sds, deviation_sds = (np.sqrt(spread + share**2 * mean_variance[:, None]) for share in (B, 1.0 - B))
    values = Mixture(weights=weights, means=c - B * from_mean, sds=value_sds, df=freedom)
    deviations = Mixture(weights=weights, means=(1.0 - B) * from_mean, sds=deviation_sds, df=freedom)
    return values, deviations, weights @ (1.0 - B)
