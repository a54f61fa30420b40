r"""The largest of jointly t distributed statistics whose correlation has one factor, by quadrature.

Comparisons with a control have correlations ``b_i b_j`` when the means are independent up to a common term (Dunnett
1955). Then ``X_i = b_i z + r_i e_i`` with ``r_i^2 = 1 - b_i^2``, the X_i are independent given z, and for w >= 0

    P(max |X_i| > w) = int phi(z) {1 - prod_i [1 - Phi((b_i z - w) / r_i) - Phi((-b_i z - w) / r_i)]} dz,

one-sided with one of the two tails. What is below zero one-sided needs ``P(max X_i <= -w) = int phi prod Phi``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from lmemtest.lmm.distributions.studentize import TailTable, log_upper_tail, tabulate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.core.arrays import Array


_TOLERANCE = 1e-8  # of the correlations; p-values move by no more than a small multiple
_SMALLEST_REST = 0.05  # a statistic that is nearly the factor itself would need too fine a grid
_REACH = 9.0  # standard deviations of z about its conditional mean


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OneFactorTail:
    """Tails of the largest statistic: distinct loadings b, how many statistics have each, absolute values or not."""

    loadings: tuple[float, ...]
    counts: tuple[int, ...]
    two_sided: bool

    def tail(self, c: Array, df: Array) -> tuple[Array, Array]:
        """P(largest > c) and its standard error, which is 0; ``df`` may be infinite."""
        value = np.exp(log_upper_tail(np.maximum(c, 0.0), df, _above_table(self.loadings, self.counts, self.two_sided)))
        low = c <= 0
        if low.any() and not self.two_sided:
            below = _below_table(self.loadings, self.counts)
            log_below = np.minimum(log_upper_tail(-c[low], df[low], below), below.log_s(np.zeros(1)))
            value[low] = -np.expm1(log_below)
        return value, np.zeros(len(c))


def loadings(correlation: Array) -> Array | None:
    """The b of a correlation matrix whose entries off the diagonal are b_i b_j, all below 1; None without such a b.

    >>> loadings(np.array([[1, 0.5, 0.5], [0.5, 1, 0.5], [0.5, 0.5, 1]])).round(6)
    array([0.707107, 0.707107, 0.707107])
    """
    m = len(correlation)
    off = ~np.eye(m, dtype=bool)
    if np.abs(correlation[off]).max() < _TOLERANCE:
        return np.zeros(m)
    if np.abs(correlation[off]).min() < _TOLERANCE:
        return None
    # log |R_ij| = l_i + l_j is linear in l
    rows = np.where(off, np.log(np.abs(np.where(off, correlation, 1.0))), 0.0).sum(axis=1)
    b = np.exp((rows - rows.sum() / (2.0 * (m - 1))) / (m - 2)) * np.where(np.sign(correlation[0]) < 0, -1.0, 1.0)
    if np.any(np.abs(b) >= np.sqrt(1.0 - _SMALLEST_REST**2)):
        return None
    return b if np.abs(np.outer(b, b) - correlation)[off].max() < _TOLERANCE else None


def one_factor_tail(b: Array, *, two_sided: bool) -> OneFactorTail:
    """The tails of the largest statistic (`two_sided`: absolute value) for loadings in (-1, 1)."""
    distinct, count = np.unique(np.round(np.abs(b) if two_sided else b, 12), return_counts=True)
    return OneFactorTail(loadings=tuple(distinct.tolist()), counts=tuple(count.tolist()), two_sided=two_sided)


@lru_cache(maxsize=64)  # balanced studies ask for the same family again and again
def _above_table(loadings: tuple[float, ...], counts: tuple[int, ...], two_sided: bool) -> TailTable:
    b, count = np.array(loadings), np.array(counts)
    return tabulate(lambda w: _log_above(w, b, count, two_sided))


@lru_cache(maxsize=64)
def _below_table(loadings: tuple[float, ...], counts: tuple[int, ...]) -> TailTable:
    b, count = np.array(loadings), np.array(counts)
    return tabulate(lambda w: _log_below(w, b, count))


def _log_above(w: Array, b: Array, count: NDArray[np.intp], two_sided: bool) -> Array:
    """Log P(max > w), elementwise; the trapezoidal rule converges geometrically on Gaussian-tailed integrands."""
    rest = np.sqrt(1.0 - b**2)
    step = _step(b, rest)
    centre = np.outer(w, b)
    low, high = centre.min(axis=1) - _REACH, centre.max(axis=1) + _REACH
    if two_sided:  # the integrand is even: twice its half beyond zero
        low = np.maximum(low, 0.0)
    out = np.empty(len(w))
    for i, at in enumerate(w):  # one row at a time keeps the grid of z x m small
        z = np.arange(low[i], high[i] + step, step)[:, None]
        log_tail = special.log_ndtr((b * z - at) / rest)
        if two_sided:
            log_tail = np.logaddexp(log_tail, special.log_ndtr((-b * z - at) / rest))
        exponent = _log_any(log_tail, count) - 0.5 * z[:, 0] ** 2
        if two_sided:
            exponent += np.log(2.0)
            exponent[0] -= np.log(2.0) * (low[i] == 0.0)  # z = 0 has no other half
        out[i] = _log_integral(exponent, step)
    return np.minimum(out, 0.0)


def _log_any(log_tail: Array, count: NDArray[np.intp]) -> Array:
    """Log of 1 - prod (1 - tail)^count, also where the tails underflow."""
    tail = np.exp(np.minimum(log_tail, -1e-16))
    with np.errstate(divide="ignore"):
        direct = np.log(-np.expm1(np.log1p(-tail) @ count))
    top = log_tail.max(axis=1)
    tiny = np.log(np.exp(log_tail - top[:, None]) @ count) + top
    return np.where(top < -30.0, tiny, direct)


def _log_below(w: Array, b: Array, count: NDArray[np.intp]) -> Array:
    """Log P(max <= -w), elementwise."""
    rest = np.sqrt(1.0 - b**2)
    step = _step(b, rest)
    out = np.empty(len(w))
    for i, at in enumerate(w):
        # the integrand is log-concave in z: find its peak, then reach out from there
        coarse = np.linspace(-at - 4.0, at + 4.0, 60)
        peak = coarse[np.argmax(_log_below_at(coarse, at, b, rest, count))]
        reach = _REACH + 2.0 * (coarse[1] - coarse[0])
        z = np.arange(peak - reach, peak + reach, step)
        out[i] = _log_integral(_log_below_at(z, at, b, rest, count), step)
    return out


def _log_below_at(z: Array, w: float, b: Array, rest: Array, count: NDArray[np.intp]) -> Array:
    return special.log_ndtr((-w - b * z[:, None]) / rest) @ count - 0.5 * z**2


def _step(b: Array, rest: Array) -> float:
    """A step that resolves the standard normal and the sharpest of the conditional tails."""
    with np.errstate(divide="ignore"):
        sharpest = float(np.min(rest / np.abs(b)))
    return 0.25 * min(1.0, sharpest)


def _log_integral(exponent: Array, step: float) -> float:
    top = exponent.max()
    return float(np.log(np.exp(exponent - top).sum()) + top + np.log(step / np.sqrt(2.0 * np.pi)))
