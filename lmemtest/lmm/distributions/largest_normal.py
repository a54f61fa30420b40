r"""The largest of jointly t distributed statistics: integrated over directions, or over one common factor.

Notation: ``T_i = a_i'g / s`` with g standard normal in r dimensions, ``a_i`` the rows of A with unit length
(``A A'`` is the correlation, of rank r, singular or not) and ``s^2 = chi2(df) / df``. Write g = |g| u with u uniform
on the sphere, and ``m(u) = max_i |a_i'u|``. |g| is independent of u, and (|g| / s)^2 / r has an F distribution, so

    P(max |T_i| > c) = E_u  P(F_{r,df} > c^2 / (r m(u)^2)).

The distribution of m(u) holds all there is to know about A, for every c and every df at once. One-sided, m(u) =
max a_i'u, which may be negative.

In two dimensions m(u) is the cosine of an angle, and E_u is Gauss-Legendre quadrature between its kinks. In more, u
follows a randomly shifted lattice (Richtmyer), drawn from a mixture of the uniform distribution and of distributions
with density proportional to |a_i'u|^k about each a_i, so that the relative error does not grow in the tail. The
powers of the mixture and some more have known means and serve as control variates (Owen & Zhou 2000).

*One factor.* Comparisons with a control have correlations ``b_i b_j`` when the means are independent up to a common
term (Dunnett 1955). Then ``X_i = b_i z + r_i e_i`` with ``r_i^2 = 1 - b_i^2``, the X_i are independent given z, and for
w >= 0

    P(max |X_i| > w) = int phi(z) {1 - prod_i [1 - Phi((b_i z - w) / r_i) - Phi((-b_i z - w) / r_i)]} dz,

one-sided with one of the two tails. What is below zero one-sided needs ``P(max X_i <= -w) = int phi prod Phi``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from lmemtest.lmm.distributions.studentized_range import TailTable, log_upper_tail, tabulate

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.core.arrays import Array


_MIXTURE = (0, 8, 32)  # powers that are sampled: bulk, p near 0.01, p near 1e-8
_CONTROLS = (4, 8, 16, 32, 64)  # powers with known means; they cut the error by 3 to 10
_REPLICATES = 8
_PANELS, _DEGREE = 20, 5  # m(u) is summarised on this grid; changes probabilities by less than 1e-6 of their value
_ARC_NODES = 40
_TOLERANCE = 1e-8  # of the correlations; p-values move by no more than a small multiple
_SMALLEST_REST = 0.05  # a statistic that is nearly the factor itself would need too fine a grid
_REACH = 9.0  # standard deviations of z about its conditional mean


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RadialTail:
    """Distribution of m(u) in `rank` dimensions: nodes (K,) in [-1, 1] with weights (B, K), one row per replicate.

    Rows of weights add to one; B = 1 and `n_points` = 0, directions that were sampled, where it is exact.
    """

    rank: int
    nodes: Array
    weights: Array
    n_points: int = 0

    def tail(self, c: Array, df: Array) -> tuple[Array, Array]:
        """P(largest > c) and its standard error; ``df`` may be infinite."""
        above = np.where(c > 0, 1.0, -1.0)  # below zero the complement is summed, where m(u) is negative
        used = self.nodes * above[:, None] > 0
        with np.errstate(divide="ignore"):
            x = np.where(used, (c[:, None] / self.nodes) ** 2, np.inf)
        per_replicate = np.where(used, _radius_tail(x, self.rank, df[:, None]), 0.0) @ self.weights.T
        value = np.where(above > 0, per_replicate.T, 1.0 - per_replicate.T)
        count = len(self.weights)
        error = value.std(axis=0, ddof=1) / np.sqrt(count) if count > 1 else np.zeros(len(c))
        return value.mean(axis=0), error


def _radius_tail(x: Array, rank: int, df: Array) -> Array:
    """P((|g| / s)^2 > x)."""
    finite = np.isfinite(df)
    if finite.all():
        return special.fdtrc(float(rank), df, x / rank)
    normal = special.gammaincc(rank / 2.0, x / 2.0)
    return np.where(finite, special.fdtrc(float(rank), np.where(finite, df, 1.0), x / rank), normal)


def line_tail(factor: Array, *, two_sided: bool) -> RadialTail:
    """The exact distribution of m(u) for a family of one dimension: rows 1 and -1."""
    both = factor @ np.array([[1.0, -1.0]])
    largest = (np.abs(both) if two_sided else both).max(axis=0)
    return RadialTail(rank=1, nodes=largest, weights=np.full((1, 2), 0.5))


def circle_tail(factor: Array, *, two_sided: bool) -> RadialTail:
    """The exact distribution of m(u) for a family of two dimensions: rows of unit length."""
    period = np.pi if two_sided else 2.0 * np.pi
    angle = np.unique(np.round(np.arctan2(factor[:, 1], factor[:, 0]) % period, 14))
    gap = np.diff(angle, append=angle[0] + period)
    # each arc reaches from a row of A to the middle between it and the next, on both sides
    reach = np.concatenate([gap, gap]) / 2.0
    # where the cosine crosses zero the tail vanishes with all its derivatives, but is not analytic: an end of a panel
    far = reach[reach > np.pi / 2.0]
    start = np.concatenate([np.zeros(len(reach)), np.full(len(far), np.pi / 2.0)])
    length = np.concatenate([np.minimum(reach, np.pi / 2.0), far - np.pi / 2.0])
    node, weight = np.polynomial.legendre.leggauss(_ARC_NODES)
    at = start[:, None] + length[:, None] * (node + 1.0) / 2.0
    weights = length[:, None] * weight / 2.0 / period
    return RadialTail(rank=2, nodes=np.cos(at).ravel(), weights=weights.reshape(1, -1))


def sphere_tail(factor: Array, *, two_sided: bool, rng: np.random.Generator) -> RadialTail:
    """The distribution of m(u) in any dimension: 8 replicates of 3 x 4096 directions (3 x 2048 for more than 64 rows).

    Owen & Zhou (2000), J. Am. Stat. Assoc. 95, 135-143, doi:10.1080/01621459.2000.10473909;
    Genz & Bretz (2009), Computation of Multivariate Normal and t Probabilities, doi:10.1007/978-3-642-01689-9
    """
    n_points = 4096 if len(factor) <= 64 else 2048
    samples = [_replicate(factor, n_points, two_sided, rng) for _ in range(_REPLICATES)]
    lowest = min(float(m.min()) for m, _ in samples)
    edges = _panel_edges(lowest)
    nodes = (edges[:-1, None] + np.diff(edges)[:, None] * _unit_nodes()).ravel()
    weights = np.stack([_on_panels(m, w, edges) for m, w in samples])
    return RadialTail(
        rank=factor.shape[1], nodes=nodes, weights=weights, n_points=n_points * len(_MIXTURE) * _REPLICATES
    )


# ---------------------------------------------------------------------- directions


def _replicate(factor: Array, n_points: int, two_sided: bool, rng: np.random.Generator) -> tuple[Array, Array]:
    """Values of m(u) and their weights from one shift of the lattice."""
    largest, heights = [], []
    for power in _MIXTURE:
        u = _directions(factor, power, _shifted_lattice(n_points, factor.shape[1] + 2, rng))
        along = u @ factor.T
        if two_sided:
            np.abs(along, out=along)
        largest.append(along.max(axis=1))
        if not two_sided:
            np.maximum(along, 0.0, out=along)
        heights.append(_power_densities(along, factor.shape[1], two_sided))
    densities = np.concatenate(heights)
    sampled = densities[:, [0, *(1 + _CONTROLS.index(power) for power in _MIXTURE[1:])]]
    weight = 1.0 / sampled.sum(axis=1) / n_points
    weighted = densities * weight[:, None]
    # every density has mean 1 under the uniform distribution: move the weights as little as makes it so here
    shift = np.linalg.lstsq(weighted.T @ densities, 1.0 - weighted.sum(axis=0), rcond=1e-9)[0]
    return np.concatenate(largest), weight * (1.0 + densities @ shift)


def _directions(factor: Array, power: int, points: Array) -> Array:
    """Unit vectors with density proportional to mean_i |a_i'u|^power, on the side of a_i."""
    m, rank = factor.shape
    g = special.ndtri(points[:, :rank])
    if power:
        # the squared component along a_i has a chi-squared distribution of power + 1 instead of 1 df
        row = factor[np.minimum((points[:, rank] * m).astype(np.intp), m - 1)]
        length = np.sqrt(2.0 * special.gammaincinv((power + 1) / 2.0, points[:, rank + 1]))
        g += (length - np.einsum("ij,ij->i", g, row))[:, None] * row
    g /= np.linalg.norm(g, axis=1, keepdims=True)
    return g


def _power_densities(along: Array, rank: int, two_sided: bool) -> Array:
    """Columns 1 and mean_i |a_i'u|^k / E|a_i'u|^k over the control powers k; overwrites `along`."""
    columns, power = [np.ones(len(along))], 1
    for wanted in _CONTROLS:
        while power < wanted:
            np.multiply(along, along, out=along)
            power *= 2
        columns.append(along.mean(axis=1) / _mean_power(wanted, rank, two_sided))
    return np.stack(columns, axis=1)


def _mean_power(power: int, rank: int, two_sided: bool) -> float:
    """E|u_1|^power for u uniform on the sphere, and half of it for the positive part."""
    log_mean = (
        special.gammaln(rank / 2.0)
        + special.gammaln((power + 1) / 2.0)
        - special.gammaln(0.5)
        - special.gammaln((rank + power) / 2.0)
    )
    return float(np.exp(log_mean)) * (1.0 if two_sided else 0.5)


def _shifted_lattice(n: int, d: int, rng: np.random.Generator) -> Array:
    """Richtmyer's lattice, the multiples of square roots of primes, shifted and folded to be periodic."""
    x = (np.arange(1, n + 1)[:, None] * np.sqrt(_primes(d)) + rng.random(d)) % 1.0
    folded = 1.0 - np.abs(2.0 * x - 1.0)
    return np.clip(folded, 1e-15, 1.0 - 1e-15)


def _primes(count: int) -> Array:
    limit = max(30, int(count * (np.log(count + 2) + 2 * np.log(np.log(count + 3)))) + 10)
    sieve = np.ones(limit, dtype=bool)
    sieve[:2] = False
    for i in range(2, int(limit**0.5) + 1):
        sieve[i * i :: i] &= ~sieve[i]
    return np.flatnonzero(sieve)[:count].astype(float)


# ---------------------------------------------------------------------- the distribution of m(u) on a grid


def _panel_edges(lowest: float) -> Array:
    """Equal panels over the range of m(u), with an edge at zero if it is inside."""
    if lowest >= 0:
        return np.linspace(lowest, 1.0, _PANELS + 1)
    return np.concatenate([np.linspace(lowest, 0.0, _PANELS + 1), np.linspace(0.0, 1.0, _PANELS + 1)[1:]])


def _unit_nodes() -> Array:
    return (1.0 + np.cos(np.pi * (np.arange(_DEGREE + 1) + 0.5) / (_DEGREE + 1))) / 2.0


def _on_panels(m: Array, weight: Array, edges: Array) -> Array:
    """Weights at the nodes that give every polynomial of the degree its weighted sum over the samples."""
    panel = np.clip(np.searchsorted(edges, m, side="right") - 1, 0, len(edges) - 2)
    local = (m - edges[panel]) / (edges[panel + 1] - edges[panel])
    nodes = _unit_nodes()
    shares = []
    for i, node in enumerate(nodes):
        others = np.delete(nodes, i)
        lagrange = np.prod((local[:, None] - others) / (node - others), axis=1)
        shares.append(np.bincount(panel, weights=weight * lagrange, minlength=len(edges) - 1).astype(float))
    return np.asarray(np.stack(shares, axis=1).ravel(), dtype=float)


# ---------------------------------------------------------------------------------------------------------- one factor


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
