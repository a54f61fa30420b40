"""Intervals from draws of a bootstrap: percentile, basic and BCa, whatever was drawn again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from lmemtest.core.rounding import tolerance

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.core.arrays import Array


METHODS = ("percentile", "basic", "bca")


def interval_ends(draws: Array, estimate: Array, shares: Array, method: str) -> Array:
    """Both ends of the interval of each of k statistics, ``(2, k)``; NaN where their `shares` are.

    `draws` are ``(n, k)``, `shares` ``(2, k)``: order statistics at (n + 1) share, linear in between, the extreme draws
    beyond.
    """
    known = np.isfinite(shares).all(axis=0)
    ends = np.full(shares.shape, np.nan)
    for j in np.flatnonzero(known):
        ends[:, j] = np.quantile(draws[:, j], shares[:, j], method="weibull")
    return 2.0 * estimate - ends[::-1] if method == "basic" else ends


def plain_shares(level: float, k: int) -> Array:
    """Shares of the draws below both ends of the percentile and basic intervals of k statistics."""
    return np.tile([[0.5 * (1.0 - level)], [0.5 * (1.0 + level)]], k)


def bca_shares(draws: Array, estimate: Array, acceleration: Array, level: float) -> Array:
    """Shares of the draws at which the corrected interval ends, ``(2, k)``; NaN if all draws are on one side.

    Efron (1987), doi:10.1080/01621459.1987.10478410
    """
    distance = draws - estimate
    # a draw of the same units is the estimate, to rounding
    distance[np.abs(distance) <= [tolerance(column) for column in draws.T]] = 0.0
    below = ((distance < 0.0).sum(axis=0) + 0.5 * (distance == 0.0).sum(axis=0)) / len(draws)
    z0 = special.ndtri(below)
    out = np.full((2, len(estimate)), np.nan)
    known = np.isfinite(z0)
    for i, share in enumerate((0.5 * (1.0 - level), 0.5 * (1.0 + level))):
        z = z0[known] + special.ndtri(share)
        out[i, known] = special.ndtr(z0[known] + z / (1.0 - acceleration[known] * z))
    return out


def acceleration(jackknife: Array, stratum: NDArray[np.intp] | None = None) -> Array:
    """The skewness that BCa corrects for, from the statistics without each unit in turn, ``(units, k)``.

    Units of several samples have the number of their sample as their `stratum`: the influence of a unit on a
    statistic of n units is n - 1 times what leaving it out changes, and counts as 1 / n.
    """
    if stratum is None:
        stratum = np.zeros(len(jackknife), dtype=np.intp)
    size = np.bincount(stratum).astype(float)
    mean = np.zeros((len(size), jackknife.shape[1]))
    np.add.at(mean, stratum, jackknife)
    influence = (mean / size[:, None])[stratum] - jackknife
    influence *= ((size - 1.0) / size)[stratum, None]
    with np.errstate(invalid="ignore", divide="ignore"):
        skewness = (influence**3).sum(axis=0) / (6.0 * (influence**2).sum(axis=0) ** 1.5)
    return np.where(np.isfinite(skewness), skewness, 0.0)  # a statistic that no unit moves
