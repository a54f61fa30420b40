r"""The noisy quadratic distribution: a quadratic one whose scores carry normal noise.

``Y = X + o N`` with X from `QuadraticDistribution` (a, b, c) and N standard normal: what random search sees when
training the same configuration twice gives two scores that differ by a standard deviation of ``o sqrt(2)``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from lmemtest.core.arrays import Array
from lmemtest.core.quadrature import gauss_rule
from lmemtest.core.validate import check_number
from lmemtest.tuning.checks import plain
from lmemtest.tuning.laws import convolution
from lmemtest.tuning.laws.kernel_density import kernel_density
from lmemtest.tuning.laws.quadratic import Number, QuadraticDistribution, QuadraticLaw, check_shape

_MOST_STEPS = 100  # bisection alone needs 60 for all digits; Newton takes about 8
_SMALLEST = 1e-300  # a tail probability that has not underflowed
_PANEL = 16
_ROWS = 4096  # scores per block of quadratures: 1.5 MB of nodes, which stays in the cache


@dataclass(frozen=True, slots=True)
class NoisyQuadraticDistribution(QuadraticLaw):
    """Scores of random search on a smooth function with normal noise.

    Parameters
    ----------
    a, b : float, a <= b
        Lower and upper end of the expected scores, before noise. If they are the same, the law is normal.
    c : float in (0, 1000]
        Effective number of hyperparameters.
    o : float, >= 0
        Standard deviation of the noise. With 0 everything is that of `QuadraticDistribution`.
    convex : bool
        True: the shape near a minimum. False: near a maximum.

    Notes
    -----
    The best *expected* score is `a` if convex, else `b`; with noise, observed scores go beyond it without limit. So the
    tuning curve of a long search rises above what its configuration delivers when it is trained again.

    Density and both tail probabilities are sums of positive terms. Beside integrals of 30 digits their relative error
    is below 1e-8 for c up to 10 and below 1e-7 for c = 50, out to probabilities of 1e-200 (`logpdf`, `logcdf` and
    `logsf` go beyond what a probability can hold); in the middle of the distribution it is about 1e-14.

    References
    ----------
    Lourie, He & Cho (2025), Hyperparameter loss surfaces are simple near their optima, COLM 2025,
    arXiv:2510.02721.

    Examples
    --------
    >>> law = NoisyQuadraticDistribution(0.0, 1.0, 2, 0.1, convex=True)
    >>> round(law.cdf(0.0), 6), round(law.ppf(0.5), 6)
    (0.039894, 0.5)
    >>> law.quantile_curve([1, 10, 100]).round(4)
    array([ 0.5   ,  0.0459, -0.1097])
    >>> law.mean_curve([1, 10, 100]).round(6)
    array([ 0.5     ,  0.053578, -0.113676])
    """

    a: float
    b: float
    c: float
    o: float
    convex: bool = False

    def __post_init__(self) -> None:
        check_shape(self.a, self.b, self.c, self.convex)
        check_number(self.o, "o", low=0, meaning="the standard deviation of the noise")

    @property
    def noiseless(self) -> QuadraticDistribution:
        """The distribution of the expected scores."""
        return QuadraticDistribution(self.a, self.b, self.c, self.convex)

    @property
    def mean(self) -> float:
        """Expected score."""
        return self.noiseless.mean

    @property
    def variance(self) -> float:
        """Variance of a score."""
        return self.noiseless.variance + self.o**2

    def _exact(self) -> bool:
        """Whether the noise is zero, or too small for its square to be a number."""
        return self.o <= 1e-140 * (self.b - self.a)

    def _standard(self, y: ArrayLike) -> tuple[Array, float]:
        """Distance from the best expected score and noise, as shares of the range."""
        y = np.asarray(y, dtype=float)
        return (y - self.a if self.convex else self.b - y) / (self.b - self.a), self.o / (self.b - self.a)

    def _in_blocks(self, function: Callable[..., Array], y: ArrayLike, at: tuple[float, float]) -> Array:
        """``function(z, s, c)`` for `y` of any shape; `at` holds its limits for z = -inf and inf."""
        z, s = self._standard(y)
        flat = z.ravel()
        out = np.where(flat > 0.0, at[1], np.where(np.isnan(flat), np.nan, at[0]))
        # Beyond 1e150 standard deviations the logarithm itself, -u^2 / 2, is no longer a number.
        rows = np.flatnonzero(np.isfinite(flat) & (np.abs(flat) < 1e150 * s) & (np.abs(flat) < 1e150))
        for start in range(0, len(rows), _ROWS):
            part = rows[start : start + _ROWS]
            out[part] = function(flat[part], s, self.c)
        return np.asarray(out.reshape(z.shape))

    def _normal(self) -> bool:
        """Whether all expected scores are the same, which leaves the noise."""
        return self.a == self.b and self.o > 0.0

    def logpdf(self, y: ArrayLike) -> Number:
        """Logarithm of the density."""
        if self._exact():
            return self.noiseless.logpdf(y)
        if self._normal():
            deviations = (np.asarray(y, dtype=float) - self.a) / self.o
            return plain(-0.5 * deviations**2 - math.log(self.o * math.sqrt(2.0 * math.pi)))
        width = math.log(self.b - self.a)
        return plain(self._in_blocks(convolution.log_density, y, (-np.inf, -np.inf)) - width)

    def logcdf(self, y: ArrayLike) -> Number:
        """Logarithm of `cdf`."""
        return plain(self._log_share(y, near=self.convex))

    def logsf(self, y: ArrayLike) -> Number:
        """Logarithm of `sf`."""
        return plain(self._log_share(y, near=not self.convex))

    def _log_share(self, y: ArrayLike, near: bool) -> Array:
        if self._exact():
            with np.errstate(divide="ignore"):
                return np.asarray(np.log(self.noiseless._share(y, near)))
        if self._normal():
            deviations = (np.asarray(y, dtype=float) - self.a) / self.o
            return np.asarray(special.log_ndtr(deviations if near == self.convex else -deviations))
        if near:
            return self._in_blocks(convolution.log_below, y, (-np.inf, 0.0))
        return self._in_blocks(convolution.log_above, y, (0.0, -np.inf))

    def _share(self, y: ArrayLike, near: bool) -> Array:
        return np.exp(self._log_share(y, near))

    def _at(self, p: Array, near: bool) -> Array:
        if self._exact():
            return self.noiseless._at(p, near)
        if self._normal():
            return np.asarray(self.a + (self.o if near == self.convex else -self.o) * special.ndtri(p))
        return self._score(self._solved(p, far=not near))

    def _best(self, budgets: Array, near: bool) -> Array:
        if self._exact():
            return self.noiseless._best(budgets, near)
        if self._normal():
            way = "minimize" if near == self.convex else "maximize"
            best = kernel_density([self.a], bandwidth=self.o).mean_curve(budgets.ravel(), direction=way)
        else:
            best = self._score(_expected_best(budgets.ravel(), self.o / (self.b - self.a), self.c, near))
        return np.asarray(best.reshape(budgets.shape))

    def _draws(self, size: Any, rng: np.random.Generator) -> Any:
        return self.noiseless._draws(size, rng) + self.o * rng.standard_normal(size)

    def _score(self, z: Array) -> Array:
        return self.a + (self.b - self.a) * z if self.convex else self.b - (self.b - self.a) * z

    def _solved(self, p: Array, *, far: bool = False) -> Array:
        """Distance z with probability `p` below it, or with `far` above it."""
        flat = p.ravel()
        out = np.where(flat > 0.5, np.inf, -np.inf) * (-1.0 if far else 1.0)
        inside = (flat > 0.0) & (flat < 1.0)
        # The smaller tail keeps its digits: an upper probability above one half is a lower one below it.
        for rows, above in ((inside & (flat <= 0.5), far), (inside & (flat > 0.5), not far)):
            if rows.any():
                tail = np.maximum(flat[rows] if above == far else 1.0 - flat[rows], _SMALLEST)
                out[rows] = standard_quantile(tail, self.o / (self.b - self.a), self.c, above)
        return np.asarray(out.reshape(p.shape))


def standard_quantile(tail: Array, s: float, c: float, above: bool) -> Array:
    """z with probability `tail`, at most one half, below it (or above it): Newton in logarithms within a bracket."""
    log_tail = np.log(tail)
    sign = -1.0 if above else 1.0
    normal = sign * special.ndtri(tail) * s
    low, high = normal.copy(), 1.0 + normal  # X lies in [0, 1], so Z lies between s N and 1 + s N
    # Where the noise is small the quantile is that of X.
    share = tail if not above else 1.0 - tail
    z = np.clip(share ** (2.0 / c) if s < 0.1 else 0.5 * (low + high), low, high)
    active = np.arange(len(tail))
    for _ in range(_MOST_STEPS):
        at = z[active]
        log_below = convolution.log_below(at, s, c)
        log_p = convolution.log_above(at, s, c, log_below) if above else log_below
        error = sign * (log_p - log_tail[active])  # increases with z
        high[active] = np.where(error >= 0.0, np.minimum(at, high[active]), high[active])
        low[active] = np.where(error < 0.0, np.maximum(at, low[active]), low[active])
        slope = np.exp(convolution.log_density(at, s, c) - log_p)
        with np.errstate(divide="ignore", invalid="ignore"):
            new = at - error / slope
        outside = ~((new >= low[active]) & (new <= high[active]))
        new = np.where(outside, 0.5 * (low[active] + high[active]), new)
        z[active] = new
        # relative to the noise: z itself may be zero
        small = np.abs(new - at) <= 4e-16 * np.abs(at) + 1e-15 * min(s, 1.0)
        active = active[~(small | (np.abs(error) < 1e-15))]
        if not len(active):
            break
    return z


_LEVELS = np.array([1e-18, 1e-13, 1e-9, 1e-6, 1e-4, 5e-3, 0.05, 0.25])  # of the best score, and mirrored
_BENDS = np.array([-8.0, -4.0, -2.0, -1.0, 0.0, 1.0, 2.0, 4.0, 8.0])  # standard deviations around the ends of the range


def _expected_best(budgets: Array, s: float, c: float, near: bool) -> Array:
    """Expected z of the best of k scores, the smallest z with `near`, else the largest.

    ``E = m + int_m P(best > z) dz - int^m P(best < z) dz`` for any m, panel by panel. Panels end at quantiles of the
    best score, and around the ends of the range, where the distribution bends within a few standard deviations; beyond
    that it is a power of z, whose panels grow by a factor of four.
    """
    k = budgets[:, None]
    lower, upper = np.concatenate([_LEVELS, 1.0 - _LEVELS[::-1]]), np.concatenate([1.0 - _LEVELS, _LEVELS[::-1]])
    log_lower, log_upper = np.log(lower), np.log(upper)
    log_lower[len(_LEVELS) :], log_upper[: len(_LEVELS)] = np.log1p(-_LEVELS[::-1]), np.log1p(-_LEVELS)
    log_keep = (log_upper if near else log_lower) / k  # of one score: not yet better than z
    keep, beyond = np.exp(log_keep), -np.expm1(log_keep)
    cuts = _either(beyond, keep, s, c) if near else _either(keep, beyond, s, c)
    powers = s * _BENDS[-1] * 4.0 ** np.arange(1.0, max(2.0, 1.0 - math.log(s, 4.0)))
    out = np.empty(len(budgets))
    for i, value in enumerate(budgets):
        bends = np.concatenate([s * _BENDS, powers[powers < 1.0], 1.0 + s * _BENDS])
        inside = bends[(bends > cuts[i, 0]) & (bends < cuts[i, -1])]
        out[i] = _integral(np.unique(np.concatenate([cuts[i], inside])), float(value), s, c, near)
    return out


def _either(below: Array, above: Array, s: float, c: float) -> Array:
    """z with probability `below` below it and `above` above it, from whichever is smaller."""
    out = np.empty(below.shape)
    small = below <= above
    if small.any():
        out[small] = standard_quantile(np.maximum(below[small], _SMALLEST), s, c, above=False)
    if not small.all():
        out[~small] = standard_quantile(np.maximum(above[~small], _SMALLEST), s, c, above=True)
    return out


def _integral(cuts: Array, k: float, s: float, c: float, near: bool) -> float:
    t, weight = gauss_rule(_PANEL)
    width = np.diff(cuts)
    z = cuts[:-1, None] + width[:, None] * t
    log_keep = k * (convolution.log_above(z.ravel(), s, c) if near else convolution.log_below(z.ravel(), s, c))
    middle = len(cuts) // 2
    is_above = np.repeat(np.arange(len(width)) >= middle, _PANEL)
    # near: P(best > z) = exp(log_keep); far: P(best < z) = exp(log_keep)
    value = np.where(is_above == near, np.exp(log_keep), -np.expm1(log_keep))
    panels = ((np.where(is_above, value, -value)).reshape(z.shape) * weight).sum(axis=1) * width
    return float(cuts[middle] + panels.sum())
