"""Resampling schemes, each written once: what is drawn, the p-value of draws, and the interval that they give.

*Schemes.* Units drawn again (the bootstrap); signs turned round, each by itself, which for pairs of scores is to
exchange the two; labels dealt again over a pooled sample; and values exchanged within blocks.

*The p-value* of B random draws is ``(1 + #{T* >= T}) / (B + 1)``: the table itself is one of those that were possible
(Davison & Hinkley 1997, Bootstrap Methods and their Application; Phipson & Smyth 2010, doi:10.2202/1544-6115.1585).
Where all that can be drawn is counted the table is among them, and the p-value is their share.

*Intervals* end at order statistics of the draws: at the same share at either end (percentile), reflected about the
estimate (basic), or at shares that allow for the bias and the skewness (BCa).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import numpy as np
from scipy import special

from lmemtest.core.rounding import tolerance
from lmemtest.core.validate import resolve_rng

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from lmemtest.core.arrays import Array, Index

_MOST_BITS = 60  # signs whose patterns have numbers that an integer holds
Value = TypeVar("Value", float, "Array")


# ------------------------------------------------------------------------------------------------------------- schemes


def batches(n_draws: int, numbers: int, at_once: int) -> Iterator[int]:
    """Sizes of the batches of `n_draws` draws of so many `numbers` each, with `at_once` numbers in memory at most.

    Examples
    --------
    >>> list(batches(10, 25, 100)), list(batches(2, 500, 100))
    ([4, 4, 2], [1, 1])
    """
    most = max(1, at_once // numbers)
    for start in range(0, n_draws, most):
        yield min(most, n_draws - start)


def drawn_again(n: int, n_draws: int, rng: np.random.Generator, size: int | None = None) -> Index:
    """Numbers of the units of samples drawn again from n, with replacement: ``(n_draws, n)``, or `size` units each."""
    return np.asarray(rng.integers(n, size=(n_draws, n if size is None else size)))


def random_signs(n: int, n_draws: int, rng: np.random.Generator) -> Array:
    """Signs of n units, each 1 or -1 with probability one half, ``(n_draws, n)``."""
    return np.asarray(2.0 * rng.integers(0, 2, size=(n_draws, n)) - 1.0)


def sign_patterns(n: int, most: int, rng: int | np.random.Generator | None) -> tuple[Array, bool]:
    """Patterns of n signs, up to the sign of all, and whether they are all: at most `most`, else so many random ones.

    Of all patterns the first has plus signs only; random ones do not hold it.

    Examples
    --------
    >>> signs, exact = sign_patterns(3, 10, None)
    >>> exact, signs.astype(int).tolist()
    (True, [[1, 1, 1], [1, 1, -1], [1, -1, 1], [1, -1, -1]])
    """
    if n - 1 < _MOST_BITS and 2 ** (n - 1) <= most:
        bits = (np.arange(2 ** (n - 1))[:, None] >> np.arange(n - 1)[::-1]) & 1
        return np.hstack([np.ones((len(bits), 1)), 1.0 - 2.0 * bits]), True
    return random_signs(n, most, resolve_rng(rng)), False


def dealt(pooled: NDArray[np.generic], n_draws: int, rng: np.random.Generator) -> NDArray[np.generic]:
    """The values of a pooled sample in random orders, ``(n_draws, n)``, of which each group takes as many as it had."""
    return rng.permuted(np.broadcast_to(pooled, (n_draws, len(pooled))), axis=1)


def exchanged_within(table: Array, n_draws: int, rng: np.random.Generator) -> Array:
    """Tables ``(n_draws, blocks, columns)`` with the values of each block in a random order; NaN keeps its place.

    Examples
    --------
    >>> exchanged_within(np.array([[1.0, np.nan, 1.0]]), 2, np.random.default_rng(0)).tolist()
    [[[1.0, nan, 1.0]], [[1.0, nan, 1.0]]]
    """
    keys = rng.random((n_draws, *table.shape))
    order = np.argsort(keys, axis=-1, kind="stable")
    order += (np.arange(len(table)) * table.shape[1])[:, None]
    out = table.ravel().take(order)
    missing = np.isnan(table)
    gaps = np.flatnonzero(missing.any(axis=1))
    if len(gaps):
        table, missing = table[gaps], missing[gaps]
        places = np.argsort(missing, axis=1, kind="stable")  # columns with values first
        order = np.argsort(np.where(missing, 2.0, keys[:, gaps]), axis=-1, kind="stable")
        part = np.empty(order.shape)
        drawn = np.take_along_axis(np.broadcast_to(table, order.shape), order, axis=-1)
        np.put_along_axis(part, np.broadcast_to(places, order.shape), drawn, axis=-1)
        out[:, gaps] = part
    return out


# ------------------------------------------------------------------------------------------ what is read off the draws


def p_of_draws(extreme: Value, n_draws: int, *, exact: bool = False) -> Value:
    """The p-value where so many of the draws are as `extreme` as the table; `exact` if all that can be drawn was.

    Examples
    --------
    >>> p_of_draws(4, 99), p_of_draws(4, 16, exact=True)
    (0.05, 0.25)
    """
    return extreme / n_draws if exact else (1.0 + extreme) / (n_draws + 1.0)


def drawn_interval(
    draws: Array,
    estimate: Array,
    method: str,
    level: float,
    jackknife: Array | None = None,
    stratum: Index | None = None,
) -> Array:
    """Both ends of the intervals of k statistics, ``(2, k)``, from ``(n_draws, k)`` draws.

    `method` is "percentile", "basic" or "bca", which needs the `jackknife` of `acceleration`, with its `stratum`.

    Examples
    --------
    >>> drawn_interval(np.arange(1.0, 100.0)[:, None], np.array([50.0]), "percentile", 0.9)
    array([[ 5.],
           [95.]])
    """
    shares = plain_shares(level, len(estimate))
    if method == "bca" and jackknife is not None:
        shares = bca_shares(draws, estimate, acceleration(jackknife, stratum), level)
    return interval_ends(draws, estimate, shares, method)


def interval_ends(draws: Array, estimate: Array, shares: Array, method: str) -> Array:
    """Both ends of the interval of each of k statistics, ``(2, k)``; NaN where their `shares` are.

    `draws` are ``(n, k)``, `shares` ``(2, k)``: order statistics at (n + 1) share, linear in between, the extreme draws
    beyond.
    """
    finite = np.isfinite(shares).all(axis=0)
    ends = np.full(shares.shape, np.nan)
    for j in np.flatnonzero(finite):
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
    finite = np.isfinite(z0)
    for i, share in enumerate((0.5 * (1.0 - level), 0.5 * (1.0 + level))):
        z = z0[finite] + special.ndtri(share)
        out[i, finite] = special.ndtr(z0[finite] + z / (1.0 - acceleration[finite] * z))
    return out


def acceleration(jackknife: Array, stratum: Index | None = None) -> Array:
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
