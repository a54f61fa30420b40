r"""An interval for the mean of independent values between two bounds, whatever their distribution.

Notation: x_1, ..., x_n are the values, b the upper bound, (D_1, ..., D_{n+1}) uniform on the simplex. The upper limit
at level 1 - a is the (1 - a) quantile of D_1 x_1 + ... + D_n x_n + D_{n+1} b (Gaffke); the lower limit by reflection.
With all values at the lower bound it is the exact binomial limit, 1 - a^(1/n) of the range. With D_i = G_i / sum G for
independent exponentials G_i,

    P(sum D_i x_i <= t) = P(sum G_i (x_i - t) <= 0),

a sum of weighted exponentials, whose distribution is one integral (Imhof).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lmemtest.errors import ArgumentError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.core.arrays import Array


__all__ = ["bounded_mean_interval"]

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(400)
_NODES, _WEIGHTS = 0.5 * (_NODES + 1.0), 0.5 * _WEIGHTS  # on (0, 1)
_PRECISION = 1e-10  # of a limit, as a share of the range


def bounded_mean_interval(
    values: Array, level: float = 0.95, *, low: float = 0.0, high: float = 1.0
) -> tuple[float, float]:
    """Both ends of the equal-tailed interval for the mean of the distribution that the values are a sample of.

    Parameters
    ----------
    values : (n,) float
        Independent and of one distribution, between `low` and `high`; two or more.
    level : float in (0, 1)
        Confidence level.
    low, high : float
        Bounds of what can occur.

    Returns
    -------
    tuple of float

    Raises
    ------
    ArgumentError
        If a value is outside the bounds.

    Notes
    -----
    No distribution is known for which it covers the mean less often than it says; that there is none is a conjecture.
    It is wide where nothing was seen near one of the bounds: after n zeros the upper limit is 1 - (a/2)^(1/n).

    References
    ----------
    Gaffke (2005), Three test statistics for a nonparametric one-sided hypothesis on the mean of a nonnegative variable,
    Mathematical Methods of Statistics 14, 451-467; Learned-Miller & Thomas (2019), arXiv:1905.06208; Imhof (1961),
    doi:10.1093/biomet/48.3-4.419

    Examples
    --------
    >>> low, high = bounded_mean_interval(np.zeros(10))
    >>> low, round(high, 6), round(1 - 0.025 ** (1 / 10), 6)
    (0.0, 0.308497, 0.308497)
    """
    x = (np.asarray(values, dtype=float) - low) / (high - low)
    if not (x.min() >= 0.0 and x.max() <= 1.0):
        raise ArgumentError(f"values must be between {low:g} and {high:g}, got {min(values):g} to {max(values):g}.")
    tail = 0.5 * (1.0 - level)
    ends = 1.0 - _upper(1.0 - x, tail), _upper(x, tail)
    return low + (high - low) * ends[0], low + (high - low) * ends[1]


def _upper(x: Array, tail: float) -> float:
    """The upper limit of a mean in [0, 1]."""
    from scipy.optimize import brentq

    points, counts = np.unique(np.append(x, 1.0), return_counts=True)
    if len(points) == 1:  # all values are at the bound
        return 1.0
    if len(points) == 2 and counts[1] == 1:  # t = x + D (1 - x), where D is beta(1, n)
        return float(points[0] + (1.0 - points[0]) * (1.0 - tail ** (1.0 / len(x))))
    lowest = float(points[0])
    return float(brentq(lambda t: _chance(points - t, counts) - (1.0 - tail), lowest + 1e-12, 1.0, xtol=_PRECISION))


def _chance(weights: Array, counts: NDArray[np.int_]) -> float:
    """P(sum of weights times gamma variables of these shapes <= 0)."""
    if weights.max() <= 0.0:
        return 1.0
    scaled = weights / np.abs(weights).max()
    u = _NODES / (1.0 - _NODES)
    angle = (counts * np.arctan(np.outer(u, scaled))).sum(axis=1)
    damping = (0.5 * counts * np.log1p(np.outer(u, scaled) ** 2)).sum(axis=1)
    integral = (_WEIGHTS / (1.0 - _NODES) ** 2 * np.sin(angle) * np.exp(-damping) / u).sum()
    return 0.5 - float(integral) / np.pi
