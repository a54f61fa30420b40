r"""The largest of several t statistics, for single-step tests and intervals that match: jointly t, or along curves.

*Over directions.* ``T_i = a_i'g / s`` with g standard normal in r dimensions, ``a_i`` the rows of A with unit length
(``A A'`` is the correlation, of rank r, singular or not) and ``s^2 = chi2(df) / df``. Write g = |g| u with u uniform
on the sphere, and ``m(u) = max_i |a_i'u|``. |g| is independent of u, and (|g| / s)^2 / r has an F distribution, so

    P(max |T_i| > c) = E_u  P(F_{r,df} > c^2 / (r m(u)^2)).

The distribution of m(u) holds all there is to know about A, for every c and every df at once. One-sided, m(u) =
max a_i'u, which may be negative. In two dimensions m(u) is the cosine of an angle, and E_u is Gauss-Legendre quadrature
between its kinks. In more, u follows a randomly shifted lattice (Richtmyer), drawn from a mixture of the uniform
distribution and of distributions with density proportional to |a_i'u|^k about each a_i, so that the relative error does
not grow in the tail. The powers of the mixture and some more have known means and serve as control variates (Owen &
Zhou 2000).

*One factor.* Comparisons with a control have correlations ``b_i b_j`` when the means are independent up to a common
term (Dunnett 1955). Then ``X_i = b_i z + r_i e_i`` with ``r_i^2 = 1 - b_i^2``, the X_i are independent given z, and for
w >= 0

    P(max |X_i| > w) = int phi(z) {1 - prod_i [1 - Phi((b_i z - w) / r_i) - Phi((-b_i z - w) / r_i)]} dz,

one-sided with one of the two tails. What is below zero one-sided needs ``P(max X_i <= -w) = int phi prod Phi``.

*Along curves.* A curve c(x) = l(x)' b is estimated with normal errors and a variance that is itself estimated, at every
point x from the same few independent units (benchmarks, runs). Along a curve the estimated variances go up and down
together, but not as one: they are l(x)' W l(x) with a Wishart matrix W of the covariance of the curves between units. A
t-process with one common denominator, as for the means of a one-way layout, would be too narrow: it takes the variances
at all points from one draw. With complete tables both laws are exact given the covariance, which is estimated.

That is so if all curves have one covariance between units. Where pairs of curves vary differently, each has a variance
of its own (`empirical_bayes.pair_ratios`). Its t ratios become normal scores by its own degrees of freedom, and these
are judged by the largest of the normal variables of all curves and points, as `step_down` does with a range. The size
of this rule is simulated (docs/developers/validation.md).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Literal

import numpy as np
from scipy import special

from lmemtest.core.quadrature import gauss_rule
from lmemtest.core.resampling import p_of_draws
from lmemtest.core.rounding import written
from lmemtest.core.validate import check_choice, check_fraction, resolve_rng
from lmemtest.errors import ArgumentError
from lmemtest.lmm.distributions.student import t_quantile, two_sided_p, upper_tail
from lmemtest.lmm.distributions.studentized_range import LogTail, log_upper_tail, ptukey, solve_tail, tabulate

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from lmemtest.core.arrays import Array, Index, Mask


ALTERNATIVES = ("two-sided", "greater")
METHODS = ("auto", "quasi-monte-carlo")
_RANK_TOLERANCE = 1e-9  # of the trace: eigenvalues below are rounding
_SAME = 1e-8  # of correlations
_CHUNK = 4_000_000  # numbers that are held at a time
_NEGLIGIBLE = 1e-10  # eigenvalues below this share of the largest one are rounding
_CONFIDENCE = 3.5  # t quantile of 99.5 % at 7 df: eight replicates
_MIXTURE = (0, 8, 32)  # powers that are sampled: bulk, p near 0.01, p near 1e-8
_CONTROLS = (4, 8, 16, 32, 64)  # powers with known means; they cut the error by 3 to 10
_REPLICATES = 8
_PANELS, _DEGREE = 20, 5  # m(u) is summarised on this grid; changes probabilities by less than 1e-6 of their value
_ARC_NODES = 40
_TOLERANCE = 1e-8  # of the correlations; p-values move by no more than a small multiple
_SMALLEST_REST = 0.05  # a statistic that is nearly the factor itself would need too fine a grid
_REACH = 9.0  # standard deviations of z about its conditional mean


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LargestT:
    """Distribution of the largest of `n_tests` jointly t distributed statistics, whose correlation has `rank`.

    `alternative` says whether absolute values are taken, `method` how it is integrated: "exact" (closed form or
    one-dimensional quadrature over an angle), "quadrature" (the studentized range, or one factor as Dunnett's) or
    "quasi-Monte-Carlo", then with `n_points`; `tail` gives P(largest > c) and its standard error at critical values c
    and degrees of freedom.
    """

    alternative: Literal["two-sided", "greater"]
    n_tests: int
    rank: int
    method: str
    n_points: int
    tail: Callable[[Array, Array], tuple[Array, Array]]

    def sf(self, c: ArrayLike, df: ArrayLike) -> Array:
        """Probability that the largest statistic exceeds `c`, the single-step p-value; `c` and `df` are broadcast.

        All statistics share the degrees of freedom, ``inf`` for normal ones; NaN gives NaN.
        """
        return self._evaluate(c, df)[0]

    def error(self, c: ArrayLike, df: ArrayLike) -> Array:
        """Error of `sf` with 99 % confidence, from independent replicates; 0 where nothing is random."""
        return _CONFIDENCE * self._evaluate(c, df)[1]

    def isf(self, alpha: float, df: ArrayLike) -> Array:
        """Critical values, exceeded with probability `alpha`: the inverse of `sf` to rounding."""
        check_fraction(alpha, "alpha")
        if self.alternative == "greater" and alpha >= 0.5:
            raise ArgumentError(f"alpha must be below 0.5 for one-sided joint intervals, got {alpha!r}.")
        nu = np.asarray(df, dtype=float)
        out = np.full(nu.shape, np.nan)
        finite = ~np.isnan(nu)
        distinct, where = np.unique(nu[finite], return_inverse=True)
        if len(distinct):
            sides = 2.0 if self.alternative == "two-sided" else 1.0
            low = t_quantile(np.full(len(distinct), alpha / sides), distinct) * (1.0 - 1e-9)
            high = t_quantile(np.full(len(distinct), alpha / sides / self.n_tests), distinct) * (1.0 + 1e-9)
            target = np.full(len(distinct), special.logit(alpha))

            log_tail = lambda c: (np.log(self._evaluate(c, distinct)[0]), None)  # noqa: E731
            out[finite] = solve_tail(log_tail, target, low, high)[where]
        return out

    def note(self, c: ArrayLike, df: ArrayLike) -> str:
        """One sentence on how the probabilities were computed, with their largest error."""
        if self.method == "exact":
            return f"The joint t distribution of {_count(self.n_tests)} was integrated exactly."
        if self.method == "quadrature":
            return (
                f"The joint t distribution of {_count(self.n_tests)} was integrated by quadrature (error below 1e-8)."
            )
        worst = float(np.nanmax(self.error(c, df), initial=0.0))
        return (
            f"The joint t distribution of {_count(self.n_tests)} was integrated by quasi-Monte-Carlo with "
            f"{self.n_points:,} points; the largest error of a p-value is {written(worst, '.1g')} (99 % confidence)."
        )

    def _evaluate(self, c: ArrayLike, df: ArrayLike) -> tuple[Array, Array]:
        at, nu = np.broadcast_arrays(np.asarray(c, dtype=float), np.asarray(df, dtype=float))
        value, error = np.full(at.shape, np.nan), np.full(at.shape, np.nan)
        finite = ~(np.isnan(at) | np.isnan(nu))
        if finite.any():
            value[finite], error[finite] = self._bounded(at[finite], nu[finite])
        return value, error

    def _bounded(self, c: Array, df: Array) -> tuple[Array, Array]:
        """The integral inside bounds that hold for every correlation: one statistic, and Šidák or Bonferroni."""
        if self.alternative == "two-sided":
            one = two_sided_p(c, df)
            value, error = self.tail(np.maximum(c, 0.0), df)
            with np.errstate(divide="ignore"):  # log1p(-1)
                most = -np.expm1(self.n_tests * np.log1p(-one))  # Šidák (1967)
            return np.where(c <= 0, 1.0, np.clip(value, one, most)), error
        one = upper_tail(c, df)
        value, error = self.tail(c, df)
        return np.clip(value, one, np.minimum(1.0, self.n_tests * one)), error


def largest_t(
    correlation: ArrayLike,
    *,
    alternative: str = "two-sided",
    method: str = "auto",
    rng: int | np.random.Generator | None = None,
) -> LargestT:
    """Distribution of the largest of jointly t distributed statistics with a correlation, which may be singular.

    "auto" integrates without randomness where it can: one or two dimensions, all pairwise differences of equally
    precise means, correlations of one factor. P(max |T_i| > c) for T = A g / s is the average over directions u of an F
    tail at c^2 / max_i (a_i'u)^2, which serves every c and every df. In more than two dimensions directions follow a
    randomised lattice, sampled near the rows of A as well, so that small p-values have the same relative error (about
    1e-3) as large ones.

    Dunnett (1955), doi:10.1080/01621459.1955.10501294; Hothorn, Bretz & Westfall (2008), doi:10.1002/bimj.200810425;
    Owen & Zhou (2000), doi:10.1080/01621459.2000.10473909

    Three treatments against a control, 20 df: Dunnett's table has 2.54.

    >>> largest_t(0.5 + 0.5 * np.eye(3)).isf(0.05, 20).round(2).item()
    2.54
    """
    check_choice(alternative, "alternative", ALTERNATIVES)
    check_choice(method, "method", METHODS)
    R = _checked(correlation)
    generator = resolve_rng(rng)
    factor = _factor(R)
    m, rank = factor.shape
    two_sided = alternative == "two-sided"
    how, n_points, tail = "exact", 0, None
    if rank <= 2:
        on = _on_line if rank == 1 else _on_circle
        tail = partial(_radial_tail, rank, *on(factor, two_sided=two_sided))
    elif method == "auto":
        how, tail = "quadrature", _without_sampling(R, two_sided)
    if tail is None:
        how, n_points = "quasi-Monte-Carlo", _points(m) * len(_MIXTURE) * _REPLICATES
        tail = partial(_radial_tail, rank, *_on_sphere(factor, two_sided=two_sided, rng=generator))
    return LargestT(
        alternative="two-sided" if two_sided else "greater",
        n_tests=m,
        rank=rank,
        method=how,
        n_points=n_points,
        tail=tail,
    )


def _without_sampling(R: Array, two_sided: bool) -> partial[tuple[Array, Array]] | None:
    n_means = _means_of_pairs(R) if two_sided else None
    if n_means is not None:
        return partial(_range_tail, n_means)
    b = loadings(R)
    if b is None:
        return None
    distinct, count = np.unique(np.round(np.abs(b) if two_sided else b, 12), return_counts=True)
    return partial(_one_factor_tail, tuple(distinct.tolist()), tuple(count.tolist()), two_sided)


def _range_tail(n_means: int, c: Array, df: Array) -> tuple[Array, Array]:
    """Of all pairwise differences of equally precise means: the studentized range."""
    return ptukey(np.sqrt(2.0) * c, n_means, df, upper=True), np.zeros(len(c))


def _means_of_pairs(R: Array) -> int | None:
    """The k for which R is the correlation of (1, 2), (1, 3), ..., (k - 1, k) with equal precision."""
    k = round((1.0 + np.sqrt(1.0 + 8.0 * len(R))) / 2.0)
    if k * (k - 1) != 2 * len(R):
        return None
    i, j = np.triu_indices(k, k=1)
    L = np.eye(k)[i] - np.eye(k)[j]
    return k if np.abs(L @ L.T / 2.0 - R).max() < _SAME else None


def _factor(R: Array) -> Array:
    """A with unit rows and A A' = R."""
    values, vectors = np.linalg.eigh(R)
    keep = values > _RANK_TOLERANCE * len(R)
    A = vectors[:, keep] * np.sqrt(values[keep])
    return A / np.linalg.norm(A, axis=1, keepdims=True)


def _checked(correlation: ArrayLike) -> Array:
    R = np.asarray(correlation, dtype=float)
    if R.ndim != 2 or R.shape[0] != R.shape[1] or not len(R):
        raise ArgumentError(f"correlation must be a square matrix, got an array of shape {R.shape}.")
    if not np.isfinite(R).all() or np.abs(R - R.T).max() > 1e-8 or np.abs(np.diag(R) - 1.0).max() > 1e-8:
        raise ArgumentError("correlation must be finite and symmetric with ones on its diagonal.")
    lowest = float(np.linalg.eigvalsh(R)[0])
    if lowest < -1e-8 * len(R):
        raise ArgumentError(f"correlation must not have negative eigenvalues, got {written(lowest, '.3g')}.")
    return R


def _count(n: int) -> str:
    return "1 comparison" if n == 1 else f"{n} comparisons"


# ---------------------------------------------------------------------- over curves, by simulation


@dataclass(frozen=True, slots=True, eq=False)
class DrawnLargestT:
    """The same from draws of the largest |t|, in ascending order; `df` are the degrees of freedom of each variance.

    Infinite `df` are those of a law of normal scores: t ratios are judged by their scores, critical values are t
    ratios.
    """

    draws: Array
    df: float

    def sf(self, c: ArrayLike, df: ArrayLike) -> Array:
        """Adjusted p-values, ``(1 + number of draws at least as large) / (n + 1)``; NaN where `c` is."""
        t = np.abs(np.asarray(c, dtype=float))
        if np.isinf(self.df):
            t = -special.ndtri(np.clip(two_sided_p(t, df), np.finfo(float).tiny, 1.0) / 2.0)
        above = len(self.draws) - np.searchsorted(self.draws, t, side="left")
        return np.where(np.isnan(t), np.nan, p_of_draws(above, len(self.draws)))

    def isf(self, alpha: float, df: ArrayLike) -> Array:
        """Critical value: the largest |t| exceeds it with probability `alpha`."""
        critical = np.quantile(self.draws, 1.0 - check_fraction(alpha, "alpha"))
        return t_quantile(special.ndtr(-critical), df) if np.isinf(self.df) else np.full(np.shape(df), critical)


def largest_over_curves(
    rows: Array, cov: Array, df: float, *, n_draws: int, rng: np.random.Generator, defined: Mask
) -> DrawnLargestT:
    """Simulate the largest |t| over curves, rows (curves, points, p) of coefficients with covariance `cov`.

    `defined` says which curve has a value where. `df` are the degrees of freedom of the covariance between units; `inf`
    for normal scores. Numerators are normal, denominators follow the Wishart law of `df` around the mean correlation of
    the curves, drawn by Bartlett's decomposition (1933, doi:10.1017/S0370164600015637); Degras (2011),
    doi:10.5705/ss.2009.207, on such bands.
    """
    n_curves, n_points, _ = rows.shape
    scores = rows.reshape(n_curves * n_points, -1) @ _symmetric_root(cov)
    sd = np.linalg.norm(scores, axis=1)
    keep = defined.ravel() & (sd > 0)
    scores = scores[keep] / sd[keep, None]
    point = np.tile(np.arange(n_points), n_curves)[keep]
    along = _root(_mean_correlation(rows, cov, defined))  # (points, rank of a curve)
    size = max(1, _CHUNK // max(len(point), n_points * along.shape[1]))
    draws = []
    for start in range(0, n_draws, size):
        n = min(size, n_draws - start)
        numerator = np.abs(rng.standard_normal((n, scores.shape[1])) @ scores.T)
        spread = np.sqrt(_variance_ratios(along, df, n, rng))
        draws.append((numerator / spread[:, point]).max(axis=1))
    return DrawnLargestT(np.sort(np.concatenate(draws)), float(df))


def _mean_correlation(rows: Array, cov: Array, defined: Mask) -> Array:
    """Correlation of a curve's errors between points, averaged over the curves that are defined at both."""
    total, count = np.zeros((rows.shape[1],) * 2), np.zeros((rows.shape[1],) * 2)
    for curve, inside in zip(rows, defined, strict=True):
        among = curve @ cov @ curve.T
        sd = np.sqrt(among.diagonal())
        both = np.outer(inside & (sd > 0), inside & (sd > 0))
        total += np.where(both, among / np.where(both, np.outer(sd, sd), 1.0), 0.0)
        count += both
    return total / np.maximum(count, 1.0)


def _root(cov: Array) -> Array:
    """``F`` of full column rank with ``F F' = cov``, with signs that do not depend on rounding."""
    values, vectors = np.linalg.eigh((cov + cov.T) / 2)
    keep = values > _NEGLIGIBLE * max(values[-1], 0.0)
    vectors = vectors[:, keep]
    largest = vectors[np.abs(vectors).argmax(axis=0), np.arange(vectors.shape[1])]
    return np.asarray(vectors * np.sign(largest) * np.sqrt(values[keep]))


def _symmetric_root(cov: Array) -> Array:
    """The root that is unique where eigenvalues are equal, as they are for algorithms that vary alike."""
    values, vectors = np.linalg.eigh((cov + cov.T) / 2)
    return np.asarray((vectors * np.sqrt(np.maximum(values, 0.0))) @ vectors.T)


def _variance_ratios(along: Array, df: float, n: int, rng: np.random.Generator) -> Array:
    """Estimated over true variances at each point, ``(n, points)``."""
    points, rank = along.shape
    if np.isinf(df):
        return np.ones((n, points))
    if df >= rank:
        # Bartlett: W = T T', chi on the diagonal, normal below it.
        T = np.tril(rng.standard_normal((n, rank, rank)), -1)
        T[:, np.arange(rank), np.arange(rank)] = np.sqrt(rng.chisquare(df - np.arange(rank), size=(n, rank)))
        shares = along @ T
    else:  # fewer units than directions: their normal vectors themselves
        shares = along @ rng.standard_normal((n, rank, max(int(df), 1)))
    true = np.einsum("xr,xr->x", along, along)
    ratio = np.einsum("nxr,nxr->nx", shares, shares) / (df * np.where(true > 0, true, 1.0))
    return np.where(true > 0, ratio, 1.0).reshape(n, points)


# ----------------------------------------------------------------------------------------------------- over directions


def _radial_tail(rank: int, nodes: Array, weights: Array, c: Array, df: Array) -> tuple[Array, Array]:
    """P(largest > c) and its standard error from the law of m(u) in `rank` dimensions; ``df`` may be infinite.

    Nodes (K,) are in [-1, 1], weights (B, K) add to one in each row, which is a replicate; B = 1 where they are exact.
    """
    above = np.where(c > 0, 1.0, -1.0)  # below zero the complement is summed, where m(u) is negative
    used = nodes * above[:, None] > 0
    with np.errstate(divide="ignore"):
        x = np.where(used, (c[:, None] / nodes) ** 2, np.inf)
    per_replicate = np.where(used, _radius_tail(x, rank, df[:, None]), 0.0) @ weights.T
    value = np.where(above > 0, per_replicate.T, 1.0 - per_replicate.T)
    count = len(weights)
    error = value.std(axis=0, ddof=1) / np.sqrt(count) if count > 1 else np.zeros(len(c))
    return value.mean(axis=0), error


def _radius_tail(x: Array, rank: int, df: Array) -> Array:
    """P((|g| / s)^2 > x)."""
    finite = np.isfinite(df)
    if finite.all():
        return special.fdtrc(float(rank), df, x / rank)
    normal = special.gammaincc(rank / 2.0, x / 2.0)
    return np.where(finite, special.fdtrc(float(rank), np.where(finite, df, 1.0), x / rank), normal)


def _on_line(factor: Array, *, two_sided: bool) -> tuple[Array, Array]:
    """The exact distribution of m(u) for a family of one dimension, rows 1 and -1: nodes and weights."""
    both = factor @ np.array([[1.0, -1.0]])
    largest = (np.abs(both) if two_sided else both).max(axis=0)
    return largest, np.full((1, 2), 0.5)


def _on_circle(factor: Array, *, two_sided: bool) -> tuple[Array, Array]:
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
    node, weight = gauss_rule(_ARC_NODES)
    at = start[:, None] + length[:, None] * node
    weights = length[:, None] * weight / period
    return np.cos(at).ravel(), weights.reshape(1, -1)


def _on_sphere(factor: Array, *, two_sided: bool, rng: np.random.Generator) -> tuple[Array, Array]:
    """The distribution of m(u) in any dimension: 8 replicates of 3 x 4096 directions (3 x 2048 for more than 64 rows).

    Owen & Zhou (2000), J. Am. Stat. Assoc. 95, 135-143, doi:10.1080/01621459.2000.10473909;
    Genz & Bretz (2009), Computation of Multivariate Normal and t Probabilities, doi:10.1007/978-3-642-01689-9
    """
    samples = [_replicate(factor, _points(len(factor)), two_sided, rng) for _ in range(_REPLICATES)]
    lowest = min(float(m.min()) for m, _ in samples)
    edges = _panel_edges(lowest)
    nodes = (edges[:-1, None] + np.diff(edges)[:, None] * _unit_nodes()).ravel()
    weights = np.stack([_on_panels(m, w, edges) for m, w in samples])
    return nodes, weights


def _points(n_tests: int) -> int:
    """Of one replicate, for each power."""
    return 4096 if n_tests <= 64 else 2048


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


def _one_factor_tail(
    loadings: tuple[float, ...], counts: tuple[int, ...], two_sided: bool, c: Array, df: Array
) -> tuple[Array, Array]:
    """P(largest > c) and its standard error, which is 0; ``df`` may be infinite.

    `loadings` are the distinct b in (-1, 1), of which `counts` statistics have each; `two_sided`: absolute values.
    """
    value = np.exp(log_upper_tail(np.maximum(c, 0.0), df, _above_table(loadings, counts, two_sided)))
    low = c <= 0
    if low.any() and not two_sided:
        below = _below_table(loadings, counts)
        log_below = np.minimum(log_upper_tail(-c[low], df[low], below), below[0](np.zeros(1)))
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


@lru_cache(maxsize=64)  # balanced studies ask for the same family again and again
def _above_table(loadings: tuple[float, ...], counts: tuple[int, ...], two_sided: bool) -> LogTail:
    b, count = np.array(loadings), np.array(counts)
    return tabulate(lambda w: _log_above(w, b, count, two_sided))


@lru_cache(maxsize=64)
def _below_table(loadings: tuple[float, ...], counts: tuple[int, ...]) -> LogTail:
    b, count = np.array(loadings), np.array(counts)
    return tabulate(lambda w: _log_below(w, b, count))


def _log_above(w: Array, b: Array, count: Index, two_sided: bool) -> Array:
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


def _log_any(log_tail: Array, count: Index) -> Array:
    """Log of 1 - prod (1 - tail)^count, also where the tails underflow."""
    tail = np.exp(np.minimum(log_tail, -1e-16))
    with np.errstate(divide="ignore"):
        direct = np.log(-np.expm1(np.log1p(-tail) @ count))
    top = log_tail.max(axis=1)
    tiny = np.log(np.exp(log_tail - top[:, None]) @ count) + top
    return np.where(top < -30.0, tiny, direct)


def _log_below(w: Array, b: Array, count: Index) -> Array:
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


def _log_below_at(z: Array, w: float, b: Array, rest: Array, count: Index) -> Array:
    return special.log_ndtr((-w - b * z[:, None]) / rest) @ count - 0.5 * z**2


def _step(b: Array, rest: Array) -> float:
    """A step that resolves the standard normal and the sharpest of the conditional tails."""
    with np.errstate(divide="ignore"):
        sharpest = float(np.min(rest / np.abs(b)))
    return 0.25 * min(1.0, sharpest)


def _log_integral(exponent: Array, step: float) -> float:
    top = exponent.max()
    return float(np.log(np.exp(exponent - top).sum()) + top + np.log(step / np.sqrt(2.0 * np.pi)))
