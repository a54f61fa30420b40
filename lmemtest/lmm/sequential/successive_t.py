r"""The t-tests of one growing sample: the levels at which they may be looked at.

Without a difference, t-tests of the first n_1 < n_2 < ... of independent normal values are a Markov chain. With the sum
S_n and the root R_n of the sum of squares, c_n = S_n / (sqrt(n) R_n) is a function of t_n alone,

    t_n = sqrt(n - 1) c_n / sqrt(1 - c_n^2),

and R_n, complete and sufficient for the variance, is independent of c_{n_1}, ..., c_n (Basu). So the past says nothing
of the future but through c_n. With d further values, a = sqrt(n) |c_n| and the angle phi of (R_n, their sum / sqrt(d)),

    P(|c_{n+d}| > x | c_n) = E[ I_{1 - q / ((a^2 + d) cos^2(phi - phi_0))}((d - 1) / 2, (n + 1) / 2) ],
    q = (n + d) x^2,    tan(phi_0) = sqrt(d) / a,    density of phi on (-pi/2, pi/2): ~ cos(phi)^{n - 1},

where I is the distribution function of the beta distribution, 0 below its range, and 1 for d = 1. The chain runs on
cells of |z|, the normal score of the two-sided p-value of each t-test. With infinitely many values it is Brownian
motion; with few its tails are less dependent, and Brownian boundaries let 1.05 to 1.2 times the level pass.

References
----------
Jennison & Turnbull (1991), Exact calculations for sequential t, chi-square and F tests, doi:10.1093/biomet/78.1.133
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from lmemtest.core.caller import named
from lmemtest.core.quadrature import gauss_rule
from lmemtest.core.validate import check_positive_int, several
from lmemtest.errors import ArgumentError
from lmemtest.lmm.distributions.student import t_quantile, upper_tail
from lmemtest.lmm.sequential.spending import SPENDING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import ArrayLike

    from lmemtest.core.arrays import Array

LARGEST_Z = 7.2  # normal scores beyond it, p-values below 6e-13, are beyond any boundary
_CELLS = 90
_NODES = 14  # of the Gauss rule over the angle
_REACH = 7.5  # standard deviations of the angle
_MOST_LOOKS = 1000  # after every unit: some seconds

_EDGES = np.linspace(0.0, LARGEST_Z, _CELLS + 1)
_MIDDLES = 0.5 * (_EDGES[1:] + _EDGES[:-1])
_WIDTH = LARGEST_Z / _CELLS
_TAILS = 2.0 * special.ndtr(-_EDGES)
_NOTHING = 1e-300  # in place of a probability of zero, for its logarithm
_LEAST = 1e-12  # what is spent at a look, at least
_LEVELS = np.append(np.geomspace(1e-9, 0.5, 60), [0.6, 0.7, 0.8, 0.9, 0.97, 1.0])


def score_of(p_value: ArrayLike) -> Array:
    """Normal scores of two-sided p-values.

    >>> score_of([0.05, 1.0]).round(2) + 0.0
    array([1.96, 0.  ])
    """
    return -special.ndtri(0.5 * np.clip(np.asarray(p_value, dtype=float), 1e-300, 1.0))


def cosine(z: Array, n: int) -> Array:
    """``|c_n|`` of the t-test of n values whose p-value has the normal score z."""
    t = t_quantile(special.ndtr(-z), n - 1.0)
    return np.asarray(t / np.sqrt(n - 1.0 + t**2))


@functools.lru_cache(maxsize=512)
def passage(n: int, d: int) -> Array:
    """P(|z| after n + d values > edge | |z| after n values), cells by edges."""
    a2 = n * cosine(_MIDDLES, n)[:, None] ** 2
    q = (n + d) * cosine(_EDGES[1:], n + d)[None, :] ** 2
    middle = np.arctan2(np.sqrt(d), np.sqrt(a2))
    omega = np.arccos(np.minimum(1.0, np.sqrt(q / (a2 + d))))
    out = np.zeros((_CELLS, _CELLS + 1))
    out[:, 0] = 1.0
    node, weight = gauss_rule(_NODES)
    constant = special.gammaln(0.5 * (n + 1)) - special.gammaln(0.5 * n) - 0.5 * np.log(np.pi)
    most = min(0.5 * np.pi, _REACH / np.sqrt(n))
    for centre in (middle, middle - np.pi):  # the sign stays, or changes
        low, high = np.clip(centre - omega, -most, most), np.clip(centre + omega, -most, most)
        i, j = np.nonzero(high > low)
        low, high = low[i, j], high[i, j]
        if d == 1:
            edges = np.array([low, high])
            beyond, inner = (edges < 0.0).astype(float), np.abs(edges) < most
            beyond[inner] = upper_tail(np.sqrt(n) * np.tan(edges[inner]), n)
            out[i, j + 1] += beyond[0] - beyond[1]
            continue
        width = high - low
        phi = low[:, None] + width[:, None] * node
        with np.errstate(divide="ignore"):
            density = np.exp(constant + (n - 1.0) * np.log(np.cos(phi)))
        away = 1.0 - (q[0, j] / (a2[i, 0] + d))[:, None] / np.cos(phi - centre[i, 0][:, None]) ** 2
        inside = special.betainc(0.5 * (d - 1.0), 0.5 * (n + 1.0), np.clip(away, 0.0, 1.0))
        out[i, j + 1] += width * ((density * inside) @ weight)
    of_cells = _TAILS[:-1] - _TAILS[1:]
    return out * (_TAILS / (of_cells @ out))  # each test by itself has its level: what cells cost is left out


def _boundary(tail: Array, spent: Array) -> Array:
    """The scores beyond which lies what may be spent, tails in rows; infinite where that is next to nothing."""
    i = np.clip((tail > spent[:, None]).sum(axis=1) - 2, 0, _CELLS - 3)[:, None] + np.arange(4)
    x, y = -np.log(np.maximum(np.take_along_axis(tail, i, axis=1), _NOTHING)), _EDGES[i] ** 2
    to = -np.log(np.maximum(spent, _NOTHING))[:, None]
    squared = np.zeros(len(spent))
    for j in range(4):  # Lagrange's polynomial of z^2, nearly a line in the logarithm of the tail
        others = [k for k in range(4) if k != j]
        squared += y[:, j] * np.prod((to - x[:, others]) / (x[:, [j]] - x[:, others]), axis=1)
    held = (spent > np.maximum(tail[:, -1], _LEAST)) & (spent < tail[:, 0])
    return np.where(held, np.sqrt(np.maximum(squared, 0.0)), np.where(spent < tail[:, 0], np.inf, 0.0))


def _within(tail: Array, z: Array, spent: Array) -> Array:
    """The masses of cells below the boundary; that of the cell it cuts is moved towards its own middle."""
    kept = np.where(np.isfinite(z)[:, None], np.maximum(tail, spent[:, None]), tail)
    mass = kept[:, :-1] - kept[:, 1:]
    cut = np.minimum((np.minimum(z, LARGEST_Z) / _WIDTH).astype(int), _CELLS - 1)
    rows = np.flatnonzero(np.isfinite(z) & (cut > 0))
    at = cut[rows]
    moved = mass[rows, at] * 0.5 * (1.0 - (z[rows] - _EDGES[at]) / _WIDTH)
    mass[rows, at] -= moved
    mass[rows, at - 1] += moved
    return mass


def boundaries(sizes: Sequence[int], total: int, levels: ArrayLike, spending: str = "obrien_fleming") -> Array:
    """Critical normal scores of successive two-sided t-tests that together have a level.

    Parameters
    ----------
    sizes : sequence of int, ascending, the first >= 2
        Values at each look.
    total : int >= the last of `sizes`
        Values at the last look that is planned: the level is spent by the share of them.
    levels : float in (0, 1), or (m,) of them
    spending : {"obrien_fleming", "pocock"}

    Returns
    -------
    (m, looks) float
        |z| at which a test is significant, z the normal score of its two-sided p-value; infinite where less than 1e-12
        can be spent.

    Notes
    -----
    Exact for t-tests of normal values but for the width of the cells: simulated levels are within 1 % of theirs.

    Examples
    --------
    >>> boundaries([10, 20, 40], 40, 0.05).round(2)
    array([[4.33, 2.96, 1.97]])
    """
    alpha = np.atleast_1d(np.asarray(levels, dtype=float))
    return boundaries_of_spent(sizes, SPENDING[spending](np.asarray(sizes) / total, alpha[:, None]))


def boundaries_of_spent(sizes: Sequence[int], so_far: Array) -> Array:
    """`boundaries` of tests, one in each row, that have spent so much of their levels up to each look."""
    spent = np.diff(so_far, axis=1, prepend=0.0)
    out = np.empty(spent.shape)
    tail = np.tile(_TAILS, (len(spent), 1))
    for k, n in enumerate(sizes):
        out[:, k] = _boundary(tail, spent[:, k])
        if k + 1 < len(sizes):
            tail = _within(tail, out[:, k], spent[:, k]) @ passage(n, sizes[k + 1] - n)
    return out


def planned_among(looks: Any, maximum: Any, n: int, units: str, of: str) -> tuple[tuple[int, ...], str]:
    """The numbers of units at all looks that may be made, checked, and in words which of them that at `n` units is.

    `looks` are all planned ones, which ascend and have `n` among them. With a `maximum` alone they come when they like:
    after every number of units up to it, since fewer looks have less chance to err. `units` and `of` name these in
    errors: "tasks", "these tables".
    """
    if maximum is not None:
        if looks is not None:
            raise ArgumentError(
                f"{named('looks')} are all planned, the last at the end; {named('maximum')} alone plans the end, and "
                "looks come when they like: give one."
            )
        if check_positive_int(maximum, "maximum", minimum=2, maximum=_MOST_LOOKS) < n:
            raise ArgumentError(
                f"{named('maximum')} must be the number of {units} at the end, planned before the first look, at least "
                f"that of {of}, {n}: got {maximum}. What is beyond a plan has no level."
            )
        return tuple(range(2, maximum + 1)), f"A look at {n} of up to {maximum} {units}, after any number of them"
    sizes = tuple(check_positive_int(size, "looks", minimum=2) for size in looks) if several(looks) else ()
    if n not in sizes or list(sizes) != sorted(set(sizes)):
        raise ArgumentError(
            f"{named('looks')} must ascend, the numbers of {units} at all planned looks, and have that of {of}, {n}: "
            f"got {looks!r:.60}. Where looks do not keep to a plan: those made, {n}, and the number at the end; or "
            f"{named('maximum')}, that number alone, from the first look on."
        )
    return sizes, f"Look {sizes.index(n) + 1} of {len(sizes)} that are planned"


def require_level(level: float, n: int, sizes: Sequence[int], units: str) -> float:
    """The level of a look, refused where nothing can be spent yet."""
    if not level > 0.0:
        raise ArgumentError(f"at {n} of {sizes[-1]} {units} nothing can be spent yet: look later.")
    return level


def level_of_look(n: int, sizes: Sequence[int], alpha: float, spending: str = "obrien_fleming") -> float:
    """The level of the two-sided test of the look at n values: of the last one of `sizes`, all those up to it made.

    0 where nothing can be spent yet. Of one-sided tests at `alpha` it is half of that of ``2 alpha``.

    Examples
    --------
    >>> round(level_of_look(20, [10, 20, 40], 0.05), 4)
    0.003
    """
    return float(2.0 * special.ndtr(-boundaries([m for m in sizes if m <= n], sizes[-1], alpha, spending)[0, -1]))


@functools.lru_cache(maxsize=256)
def _levels_by_boundary(sizes: tuple[int, ...], total: int, spending: str) -> tuple[Array, Array]:
    """Squared boundaries of the last look, ascending, and logarithms of their levels."""
    z = boundaries(sizes, total, _LEVELS, spending)[:, -1]
    use = np.isfinite(z)
    return z[use][::-1] ** 2, np.log(_LEVELS[use][::-1])


def repeated_p(p_value: ArrayLike, sizes: Sequence[int], total: int, spending: str = "obrien_fleming") -> Array:
    """The p-values of a look: the smallest level at which its boundary is reached.

    The smallest of them over the looks so far is below a level with that probability at most, at whichever look one
    stops: to be adjusted for many pairs as any p-values, by Holm's method for instance.

    Parameters
    ----------
    p_value : array of float in [0, 1]
        Two-sided p-values of the t-tests at the last look.
    sizes, total, spending
        As in `boundaries`: all looks up to this one.

    Returns
    -------
    array of float
        1e-9 stands for this and less; 1 where no level could be spent.

    Examples
    --------
    >>> repeated_p([0.05, 0.001], [10, 20], 40).round(4)
    array([0.2301, 0.0277])

    Jennison & Turnbull (1984), Repeated confidence intervals for group sequential clinical trials,
    doi:10.1016/0197-2456(84)90012-X
    """
    from scipy.interpolate import PchipInterpolator

    p = np.asarray(p_value, dtype=float)
    squares, logs = _levels_by_boundary(tuple(sizes), total, spending)
    z2 = score_of(p) ** 2
    if len(squares) < 2:
        return np.where(np.isnan(p), np.nan, 1.0)
    found = np.exp(PchipInterpolator(squares, logs)(np.clip(z2, squares[0], squares[-1])))
    return np.where(np.isnan(p), np.nan, np.where(z2 <= squares[0], 1.0, found))


def crossing(z: float, sizes: Sequence[int], critical: ArrayLike) -> float:
    """P(|z| at a later look reaches its critical value | this z at the first size), without a difference.

    Parameters
    ----------
    z : float
        Normal score of the two-sided p-value at the first of `sizes`.
    sizes : sequence of int, ascending
        Values now, and at each later look.
    critical : sequence of float
        Critical scores of the later looks.

    Returns
    -------
    float
        The conditional error of Mueller & Schaefer (2001), doi:10.1111/j.0006-341X.2001.00886.x: the level that is left
        for whatever is done with values that are still to come. 0 where none of these can reach a critical score: a
        further value moves a t ratio by a bounded amount, however large it is.

    Examples
    --------
    >>> round(crossing(1.5, [20, 40], [1.96]), 3)
    0.109
    """
    mass = np.zeros((1, _CELLS))
    place = min(abs(z), LARGEST_Z - _WIDTH) / _WIDTH - 0.5
    low = max(int(place), 0)
    share = min(max(place - low, 0.0), 1.0)
    mass[0, low], mass[0, low + 1] = 1.0 - share, share
    total = 0.0
    for k, bound in enumerate(np.asarray(critical, dtype=float)):
        tail = mass @ passage(sizes[k], sizes[k + 1] - sizes[k])
        out = np.exp(np.interp(bound**2, _EDGES**2, np.log(np.maximum(tail[0], _NOTHING)), right=-np.inf))
        out = np.where(out > 2.0 * _NOTHING, out, 0.0)
        total += float(out)
        mass = _within(tail, np.array([bound]), np.array([out]))
    return total
