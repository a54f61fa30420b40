r"""A smooth law of scores to simulate from: a Gaussian kernel density that keeps to the bounds of the score.

Mass that the kernels put beyond a bound is reflected back. With both bounds a < b, L = b - a, this is the Gaussian
folded into [a, b]: each point x has the images x + 2jL and 2a - x + 2jL for all whole j, and

    F(y) = 1/n sum over images m of [Phi((y - m) / h) - Phi((a - m) / h)].

Images farther than 9 h from [a, b] hold less than 1e-18 and are left out. The bandwidth h is absolute, in units of the
score, not a multiple of a spread: scores of random search have long bad tails, which inflate any rule of thumb.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import special

from lmemtest.core.arrays import Array
from lmemtest.core.quadrature import gauss_rule
from lmemtest.core.rounding import written
from lmemtest.core.validate import check_number, resolve_rng
from lmemtest.errors import ArgumentError, DataError
from lmemtest.tuning.checks import check_bounds, check_direction, check_k, check_probabilities, check_scores
from lmemtest.tuning.laws.quadratic import best_above, best_below

_REACH = 9.0  # bandwidths beyond which a kernel holds less than 1e-18
_FAR = 38.0  # ... less than 1e-315, the smallest double
_MOST_PANELS = 20_000
_NODES = 8  # of the Gauss rule in a panel one bandwidth wide: error below 1e-14 for a Gaussian
_CHUNK = 4_000_000  # kernel values held at once: 32 MB
_STEPS = 60  # bisections of the safeguarded Newton iteration; it takes about 6


@dataclass(frozen=True, slots=True, eq=False)
class KernelDensity:
    """Law of scores with a smooth density: a Gaussian kernel at each point, reflected at the bounds.

    Made by `kernel_density`, which checks its arguments.

    Attributes
    ----------
    points : (n,) float
        Where the kernels sit, sorted.
    bandwidth : float, > 0
        Standard deviation of a kernel, in units of the score.
    bounds : (float, float)
        The smallest and the largest score that can occur; infinite where there is no bound.
    """

    points: Array
    bandwidth: float
    bounds: tuple[float, float]

    def __repr__(self) -> str:
        low, high = self.bounds
        return f"KernelDensity({len(self.points)} points, bandwidth {self.bandwidth:g}, bounds {low:g} to {high:g})"

    def pdf(self, y: ArrayLike) -> Array:
        """Density at `y`, zero outside of the bounds."""
        y = np.asarray(y, dtype=float)

        def kernel(z: Array) -> Array:
            return np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)

        density = self._sum(y, kernel) / self.bandwidth
        return np.where((y >= self.bounds[0]) & (y <= self.bounds[1]), density, 0.0)

    def cdf(self, y: ArrayLike) -> Array:
        """Probability of a score of at most `y`."""
        return self._tail(np.asarray(y, dtype=float), 1.0)

    def sf(self, y: ArrayLike) -> Array:
        """Probability of a score above `y`; has digits where ``1 - cdf`` has none left."""
        return self._tail(np.asarray(y, dtype=float), -1.0)

    def ppf(self, p: ArrayLike) -> Array:
        """Quantile: the score with `cdf` equal to `p`, for `p` in [0, 1]."""
        return self._invert(check_probabilities(p, "p"), 1.0)

    def isf(self, p: ArrayLike) -> Array:
        """Score that is exceeded with probability `p`; has digits where ``ppf(1 - p)`` has none left."""
        return self._invert(check_probabilities(p, "p"), -1.0)

    def sample(self, size: int | tuple[int, ...], *, rng: int | np.random.Generator | None = None) -> Array:
        """Independent scores of shape `size`."""
        generator = resolve_rng(rng)
        centre = self.points[generator.integers(len(self.points), size=size)]
        y, (low, high) = centre + self.bandwidth * generator.standard_normal(size), self.bounds
        if math.isfinite(low) and math.isfinite(high):
            turn = np.mod(y - low, 2.0 * (high - low))
            return np.clip(low + np.minimum(turn, 2.0 * (high - low) - turn), low, high)
        if math.isfinite(low):
            return low + np.abs(y - low)
        return high - np.abs(high - y) if math.isfinite(high) else y

    def quantile_curve(self, k: ArrayLike, *, direction: str, q: float = 0.5) -> Array:
        """Quantile `q` of the best of `k` scores, for each real k > 0: the true curve of a simulation.

        The best of k is at most the curve with probability q, in both directions.
        """
        budgets, q = check_k(k), check_number(q, "q", low=0, high=1)
        if check_direction(direction) == "maximize":
            return self.isf(best_above(q, budgets))
        return self.ppf(best_below(q, budgets))

    def mean_curve(self, k: ArrayLike, *, direction: str) -> Array:
        """Expected best of `k` scores, for each real k > 0, by Gauss quadrature of F^k."""
        budgets = check_k(k)
        low, high = self._support()
        # a composite rule with panels of at most one bandwidth
        edges = np.linspace(low, high, 1 + math.ceil((high - low) / self.bandwidth))
        nodes, weights = gauss_rule(_NODES)
        width = np.diff(edges)[:, None]
        y, weight = (edges[:-1, None] + width * nodes).ravel(), (width * weights).ravel()
        if check_direction(direction) == "maximize":
            below = self.cdf(y)
            return np.array([high - weight @ below**budget for budget in budgets])
        above = self.sf(y)
        return np.array([low + weight @ above**budget for budget in budgets])

    # ------------------------------------------------------------------------------------------ the sums

    def _images(self) -> Array:
        """The points and those of their mirror images whose kernels reach into the bounds."""
        low, high = self.bounds
        x, reach = self.points, _REACH * self.bandwidth
        if math.isfinite(low) and math.isfinite(high):
            most = 1 + math.ceil(reach / (high - low))
            turns = 2.0 * (high - low) * np.arange(-most, most + 1.0)[:, None]
            images = np.concatenate([(x + turns).ravel(), (2.0 * low - x + turns).ravel()])
        else:
            edge = low if math.isfinite(low) else high
            images = np.concatenate([x, 2.0 * edge - x]) if math.isfinite(edge) else x
        return images[(images > low - reach) & (images < high + reach)]

    def _sum(self, y: Array, kernel: Any, images: Array | None = None) -> Array:
        """Mean over the points of the kernels of their images, at each y."""
        images = self._images() if images is None else images
        flat, out = y.ravel(), np.empty(y.size)
        size = max(1, _CHUNK // len(images))
        for start in range(0, y.size, size):
            z = (flat[start : start + size, None] - images) / self.bandwidth
            out[start : start + size] = kernel(z).sum(axis=1)
        return (out / len(self.points)).reshape(y.shape)

    def _tail(self, y: Array, side: float) -> Array:
        """Probability of a score on one side of y: 1 below, -1 above."""
        low, high = self.bounds
        inside = np.clip(y, low, high)
        images = self._images()
        edge = low if side > 0 else high
        beyond = special.ndtr(side * (edge - images) / self.bandwidth).sum() / len(self.points)
        mass = self._sum(inside, lambda z: special.ndtr(side * z), images) - beyond
        return np.clip(mass, 0.0, 1.0)

    def _support(self) -> tuple[float, float]:
        """The bounds, or the points beyond which there is nothing in double precision."""
        low, high = self.bounds
        reach = _FAR * self.bandwidth
        return max(low, self.points[0] - reach), min(high, self.points[-1] + reach)

    def _invert(self, p: Array, side: float) -> Array:
        """Newton's method between ends that close in, on log-probabilities of the tail asked for."""
        low, high = self._support()
        far, near = (low, high) if side > 0 else (high, low)  # where the tail is empty, and full
        target = p.ravel()
        y = np.interp(target, *self._table(side))
        empty, full = np.full_like(y, far), np.full_like(y, near)
        for _ in range(_STEPS):
            gap = self._tail(y, side) - target
            empty, full = np.where(gap < 0, y, empty), np.where(gap >= 0, y, full)
            with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
                step = y - side * gap / self.pdf(y)
            between = np.abs(step - empty) + np.abs(full - step) <= np.abs(full - empty)
            new = np.where(between & np.isfinite(step), step, 0.5 * (empty + full))
            done = np.abs(new - y) <= 4.0 * np.spacing(np.abs(y)) + 1e-14 * self.bandwidth
            y = new
            if done.all():
                break
        ends = self.bounds if side > 0 else self.bounds[::-1]
        y = np.where(target <= 0.0, ends[0], np.where(target >= 1.0, ends[1], y))
        return y.reshape(p.shape)

    def _table(self, side: float) -> tuple[Array, Array]:
        """Probabilities in rising order, and their scores, to start from."""
        low, high = self._support()
        spread = np.clip(self.points[:: max(1, len(self.points) // 64)], low, high)
        knots = np.unique(np.concatenate([np.linspace(low, high, 65), spread]))
        tail = self._tail(knots, side)
        order = np.argsort(tail, kind="stable")
        return tail[order], knots[order]


def kernel_density(
    scores: ArrayLike, *, bandwidth: float, bounds: tuple[float, float] = (-math.inf, math.inf)
) -> KernelDensity:
    """Fit a smooth law to scores, to simulate random search with a known truth.

    Parameters
    ----------
    scores : (n,) array of float, finite
        Scores of random search.
    bandwidth : float, > 0
        Standard deviation of each kernel, in units of the score. Choose it by looking at `pdf` and `cdf`: paper and
        data of Lourie et al. use 0.05 for an LSTM, 0.0125 for an MLP (F1 scores) and 0.05 for accuracies.
    bounds : (float, float)
        The smallest and the largest score that can occur, such as ``(0, 1)`` for an accuracy.

    Returns
    -------
    KernelDensity
        With ``pdf, cdf, sf, ppf, isf, sample``, and the true tuning curves ``quantile_curve`` and ``mean_curve``.

    Raises
    ------
    ArgumentError
        If the bandwidth is not positive, or less than a 20,000th of the range.
    DataError
        If a score is missing, infinite or outside of the bounds.

    References
    ----------
    Jones (1993), Simple boundary correction for kernel density estimation, doi:10.1007/BF00147776;
    Lourie, Cho & He (2024), appendix B, doi:10.18653/v1/2024.naacl-long.189.

    Examples
    --------
    >>> law = kernel_density([0.55, 0.62, 0.71, 0.74, 0.98], bandwidth=0.05, bounds=(0, 1))
    >>> law.cdf([0.0, 0.7, 1.0]).round(3).tolist()
    [0.0, 0.515, 1.0]
    >>> law.quantile_curve([1, 10], direction="maximize").round(3)
    array([0.695, 0.977])
    """
    values = np.sort(check_scores(scores))
    if not np.all(np.isfinite(values)):
        raise DataError("scores must be finite for a kernel density. Give a failed run the worst score that can occur.")
    low, high = check_bounds(bounds, values)
    width = check_number(bandwidth, "bandwidth", low=0, open="low", meaning="a width in units of the score")
    least = float(values[-1] - values[0]) / _MOST_PANELS
    if width < least:
        raise ArgumentError(
            f"bandwidth must be at least a 20,000th of the range of the scores, {written(least, '.3g')}, got "
            f"{bandwidth!r}. A smaller one is the sample itself: resample the scores instead."
        )
    values.setflags(write=False)
    return KernelDensity(points=values, bandwidth=width, bounds=(low, high))
