r"""Moderated variances: what each comparison shows of its own variance, shrunk towards what all of them share.

The model gives every comparison of two algorithms the same variance between benchmarks. The benchmarks themselves show
the variance of each comparison, but with few degrees of freedom. Empirical Bayes weighs the two (Smyth 2004): if the
observed ratios ``v`` of own to model variance, each with ``d`` degrees of freedom, scatter no more than chance makes
them, the model's variance stands; the more they scatter beyond that, the more each comparison stands for itself. For
``v ~ s2 chi2_d / d`` with ``1 / s2 ~ chi2_d0 / (d0 s0)``

    Var(log v) = psi'(d / 2) + psi'(d0 / 2),        E(s2 | v) ~ (d0 s0 + d v) / (d0 + d),        df = d0 + d.

Comparisons of algorithms are not exchangeable: those of one erratic algorithm all vary more. So there are two stages.

1. Algorithms: ``t_ij = (h_i a_i + h_j a_j) / (h_i + h_j)`` is fitted to the ratios ``v_ij`` of the pairs, with
   ``a_i >= 0`` how much the advantages of algorithm i vary relative to the model: the maximum of Poisson's
   quasi-likelihood ``sum v_ij log t_ij - t_ij``, which is one. The ``a_i`` are shrunk towards a common value.
2. Pairs: the ``v_ij`` are shrunk towards ``t_ij``, so that two variants of one method (which vary together, hence
   less against each other) keep what they show.

Empirical Bayes is right on average over comparisons, not for the one that varies most: it pulls large variances down.
Two things protect that one, at both stages. A prior that pulls a variance down needs more degrees of freedom to do so,
up to `AGAINST`: ``d0 + d + AGAINST (1 - s0 / v)`` takes the place of ``d0 + d`` for v above s0. And a value that its
prior does not explain stands for itself (as in Phipson et al. 2016): with n values its weight on the prior is
multiplied by ``min(1, n P(F > v / s0))``.

The shares 1/2 and (k - 2) / k below hold for ratios of variances of all pairs of k equally variable means, whose
logarithms correlate by 1/4 if the pairs have a mean in common and by 0 otherwise.

References
----------
Smyth (2004), doi:10.2202/1544-6115.1027; Phipson, Lee, Majewski, Alexander & Smyth (2016), doi:10.1214/16-AOAS920
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from lmemtest.lmm.engine.functions import Functions

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.core.arrays import Array, Mask


AGAINST = 30.0  # chosen by simulation: the size of the worst comparison against power where all vary alike
_ALIKE = 1e9  # prior degrees of freedom that stand for infinitely many
# Below these parts of the middle value (of its prior) a variance counts as small, however small it is.
_SMALL_SCALE, _SMALL_RATIO = 0.05, 0.02
_LEAST = 1e-6  # of the mean ratio: pairs that hardly vary, which would make the fit ill-conditioned
_FIRST, _STEPS, _SETTLED = 3, 200, 1e-8  # five to twenty steps are usual, 47 the most in 6,000 wild tables
_FALL = 0.65  # most share by which a step lets a fitted value fall
_ROUNDED = 1e-13  # of a sum of logarithms
_RIDGE = 1e-6  # added to the curvature, relatively: directions that gaps leave open stay, the others are as quick
_ROUNDING = 1e-10  # of the largest mean square along a curve


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Moderation:
    """How the variances of the comparisons of k means depart from the model's; leading axes are tables.

    Attributes
    ----------
    scale, scale_df : (..., k) float
        Variance of each mean's advantages relative to the model's, shrunk towards each other, and its df.
    observed : (..., k) float
        The same before it was shrunk; NaN for means without a comparison that shows its variance.
    observed_df : (...) float
        Degrees of freedom of each of `observed`.
    prior_df : (...) float
        How much the prior of a pair's variance is worth, in degrees of freedom; `inf` where pairs scatter by chance.
    n_pairs : int
        Pairs behind it.
    """

    scale: Array
    scale_df: Array
    observed: Array
    observed_df: Array
    prior_df: Array
    n_pairs: int

    def ratios(self, squares: Array | Functions, observed: Array, df: Array, most_df: Array) -> tuple[Array, Array]:
        """Moderated variances of contrasts relative to the model's, and their degrees of freedom.

        `squares` (m, k) are the squared coefficients of every contrast times the model's variance of each mean's
        advantages; `observed` and `df` (..., m) each contrast's own variance relative to the model's, NaN where the
        benchmarks do not show it, and its degrees of freedom; `most_df` those of the model's variance, which cannot be
        exceeded.
        """
        squares = Functions.of(squares)
        parts = Functions(squares.columns, squares.values / squares.values.sum(axis=0), squares.width)
        prior = parts.at(self.scale)
        least = np.where(np.isnan(observed), 0.0, np.minimum(df, most_df))
        with np.errstate(divide="ignore"):
            of_prior = prior**2 / parts.squares().at(self.scale**2 / self.scale_df)
        of_prior = np.clip(of_prior, least, most_df)
        prior_df = np.broadcast_to(self.prior_df[..., None], prior.shape)
        value, df_value = squeeze(observed, df, prior, prior_df, among=self.n_pairs)
        identified = ~np.isnan(observed)
        if self.n_pairs == 1:  # as in the paired t-test, and never less than the model's variance
            return np.where(identified, np.maximum(prior, observed), prior), of_prior
        return np.where(identified, value, prior), np.where(identified, np.minimum(df_value, of_prior), of_prior)


def moderation(v: Array, df: Array, left: NDArray[np.intp], right: NDArray[np.intp], h: Array) -> Moderation:
    """How the variances of pairs of k means depart from the model's.

    `v` and `df` (..., m) are each pair's own variance relative to the model's, NaN where the benchmarks do not show it,
    and its degrees of freedom; `left` and `right` its means; `h` (k,) the model's variance of each mean's advantages,
    on any common scale. Three algorithms vary alike, the fourth 25 times as much; 11 degrees of freedom:

    >>> left, right = np.triu_indices(4, 1)
    >>> own = np.array([0.2, 0.18, 2.5, 0.22, 2.7, 2.3])
    >>> moderation(own, np.full(6, 11.0), left, right, np.ones(4)).scale.round(1)
    array([0.2, 0.3, 0.2, 4.7])
    """
    k, m = len(h), len(left)
    alike = np.ones((*v.shape[:-1], k))
    total = h[left] + h[right]
    share = Functions(np.stack([left, right]), np.stack([h[left] / total, h[right] / total]), k)
    positive = ~np.isnan(v)
    d = _mean(df, positive)
    infinite = np.full(v.shape[:-1], np.inf)
    if k < 3 or not positive.any():  # one pair teaches nothing about others, and no pair nothing at all
        return Moderation(
            scale=alike, scale_df=alike * d[..., None], observed=alike, observed_df=d, prior_df=infinite, n_pairs=m
        )
    a = _scales(np.where(positive, v, 0.0), positive, share)
    identified = ~np.isnan(a)
    small = _SMALL_SCALE * np.nanmedian(np.where(identified, a, np.nan), axis=-1, keepdims=True)
    a = np.maximum(a, small)
    df_a = (d * (k - 2) / k)[..., None] * np.ones(k)
    location, prior_df = fit_scaled_f(np.where(identified, a, np.nan), df_a)
    centre = _centre(location, prior_df, df_a[..., 0], _mean(v, positive))
    scale, scale_df = squeeze(a, df_a, centre[..., None], prior_df[..., None], among=k)
    scale = np.where(identified, scale, centre[..., None])
    scale_df = np.where(identified, scale_df, df_a)
    fitted = share.at(np.where(identified, a, centre[..., None]))
    with np.errstate(invalid="ignore", divide="ignore"):
        log_ratio = np.log(np.maximum(v, _SMALL_RATIO * share.at(scale)) / fitted)
    spread = 0.5 * _mean(_trigamma(df / 2.0), positive)
    of_pairs = 2.0 * trigamma_inverse(_excess(log_ratio, positive, spread, n_fitted=k))
    return Moderation(
        scale=scale, scale_df=scale_df, observed=a, observed_df=df_a[..., 0], prior_df=of_pairs, n_pairs=m
    )


def fit_scaled_f(x: Array, df: Array) -> tuple[Array, Array]:
    """Prior of independent variances: fit ``x ~ s0 F(df, d0)`` by the moments of log x (Smyth 2004, section 6.2).

    Over the last axis, where NaN is left out. `d0` is `inf` where the variances scatter no more than chance makes them,
    and `s0` is that of the logarithms all the same (R's limma has the mean of x then).

    >>> s0, d0 = fit_scaled_f(np.array([0.5, 1.0, 4.0, 0.2]), np.full(4, 6.0))
    >>> s0.round(4).item(), d0.round(4).item()
    (0.6039, 2.4971)
    """
    finite = ~np.isnan(x)
    half = np.broadcast_to(df, x.shape) / 2.0
    e = np.log(np.where(finite, x, 1.0)) - special.digamma(half) + np.log(half)
    excess = _excess(e, finite, _mean(special.polygamma(1, half), finite), n_fitted=1)
    d0 = 2.0 * trigamma_inverse(excess)
    prior = np.minimum(d0, _ALIKE) / 2.0
    return np.exp(_mean(e, finite) + special.digamma(prior) - np.log(prior)), d0


def squeeze(x: Array, df: Array, s0: Array, d0: Array, *, among: int | None = None) -> tuple[Array, Array]:
    """Posterior variances ``(d0 s0 + df x) / (d0 + df)`` with ``d0 + df`` degrees of freedom (Smyth 2004, equation 3).

    `among`, the number of values that `x` is one of, protects those above the prior, see the top of this module.

    >>> squeeze(np.array([0.5, 4.0]), np.array([6.0, 6.0]), np.array(1.0), np.array(2.0))
    (array([0.625, 3.25 ]), array([8., 8.]))
    """
    prior_df = np.minimum(d0, _ALIKE)
    total = prior_df + df
    stands: float | Array = 1.0
    if among is not None:
        total = total + AGAINST * np.maximum(0.0, 1.0 - s0 / np.maximum(x, np.finfo(float).tiny))
        stands = _stands(df, prior_df, np.maximum(x / s0, 0.0), among)
    weight = prior_df / total * stands
    return weight * s0 + (1.0 - weight) * x, df / (1.0 - weight)


def _stands(df: Array, prior_df: Array, ratio: Array, n: int) -> Array:
    """``min(1, n P(F > ratio))``; where all have the same degrees of freedom, the tail is looked at far out only."""
    first, prior = df.flat[0], prior_df.flat[0]
    if (df == first).all() and (prior_df == prior).all():
        limit = 0.9 * special.fdtri(first, prior, 1.0 - 1.0 / n)
        if n * special.fdtrc(first, prior, limit) > 1.0 + 1e-6:
            far = ~(ratio <= limit)
            out = np.ones(ratio.shape)
            out[far] = np.minimum(1.0, n * special.fdtrc(first, prior, ratio[far]))
            return out
    return np.asarray(np.minimum(1.0, n * special.fdtrc(df, prior_df, ratio)))


def larger_scatter(scores: Array) -> Array:
    """P-values of "these scores scatter more than the others'" for each of k means, by ranks within n clusters.

    One-sided, Bonferroni-adjusted; constants of a mean or of a cluster do not count. Where means are alike they can be
    exchanged within each cluster, whatever its scale and tails. So the absolute scores, less the medians of the mean
    and of the cluster, are ranked within clusters, and the mean rank is compared with that of exchanges (normal
    approximation, as in Friedman's test). F-ratios of the variances are significant at 5 % in half of the tables or
    more where means are alike and scores have heavy tails or clusters their own units.

    >>> x = np.random.default_rng(0).normal(size=(12, 5)) * np.array([1, 1, 1, 1, 5])
    >>> larger_scatter(x) < 0.05
    array([False, False, False, False,  True])
    """
    x = scores - np.median(scores, axis=-2, keepdims=True)
    x = x - np.median(x, axis=-1, keepdims=True)
    size = np.abs(x - np.median(x, axis=-2, keepdims=True))
    rounding = 1e-9 * size.max(axis=(-2, -1), keepdims=True)
    size = np.round(size / np.where(rounding > 0, rounding, 1.0))  # equal scores are ties
    k = scores.shape[-1]
    rank = sum((size > one) + 0.5 * (size == one) for one in np.moveaxis(size, -1, 0)[..., None]) - k / 2.0
    sd = np.sqrt((rank**2).sum(axis=(-2, -1)) / k)[..., None]
    total = rank.sum(axis=-2)
    z = np.where(sd > 0, total / np.where(sd > 0, sd, 1.0), -np.inf)
    return np.asarray(np.minimum(1.0, k * special.ndtr(-z)))


def pair_ratios(residuals: Array, df: float, most_df: float) -> tuple[Moderation, Array, Array]:
    """Moderated variance of each pair's difference of curves relative to that of all pairs, at every point.

    `residuals` are the curves of k >= 3 algorithms on every unit less their means, (units, k, points), on `df` degrees
    of freedom; the common variance has `most_df`. Returns the family, and ratio and df, (pairs, points), in the order
    of ``np.triu_indices(k, 1)``.

    A pair's own mean square over the common one (the mean of all pairs') is averaged over the points. This average has
    at least `df` degrees of freedom, and more where points are not perfectly correlated; `df` is used, so the reference
    is conservative there. Two algorithms that start alike (the same initial design) vary less at first, and more later
    than the average says; so the ratio of the point itself, moderated in the same way, counts where it is larger.

    >>> e = np.random.default_rng(0).normal(size=(20, 4, 5)) * np.array([1.0, 1.0, 1.0, 5.0])[:, None]
    >>> _, ratio, _ = pair_ratios(e - e.mean(axis=0), 19.0, 57.0)
    >>> ratio.mean(axis=1).round(1)
    array([0.1, 0.2, 1.8, 0.2, 1.9, 1.9])
    """
    k = residuals.shape[1]
    first, second = np.triu_indices(k, 1)
    of_pairs = ((residuals[:, first] - residuals[:, second]) ** 2).sum(axis=0)
    common = of_pairs.mean(axis=0)
    varies = common > _ROUNDING * common.max()
    v = (of_pairs[:, varies] / common[varies]).mean(axis=1) if varies.any() else np.ones(len(first))
    family = moderation(v, np.full(len(v), float(df)), first, second, np.ones(k))
    squares = Functions(np.stack([first, second]), np.ones((2, len(first))), k)
    whole, df_whole = family.ratios(squares, v, np.full(len(v), float(df)), np.full(len(v), float(most_df)))
    at = np.where(varies[:, None], of_pairs.T / np.where(varies, common, 1.0)[:, None], v)  # (points, pairs)
    free = np.full(at.shape, float(df))
    here, df_here = moderation(at, free, first, second, np.ones(k)).ratios(
        squares, at, free, np.full(at.shape, float(most_df))
    )
    larger = here > whole
    return family, np.where(larger, here, whole).T, np.where(larger, df_here, df_whole).T


def trigamma_inverse(y: Array) -> Array:
    """x > 0 with ``psi'(x) = y``, elementwise; `inf` where y is not positive.

    >>> trigamma_inverse(np.array([np.pi**2 / 6, 0.0])).round(12)
    array([ 1., inf])
    """
    target = np.maximum(np.asarray(y, dtype=float), 2.0 / _ALIKE)
    x = 0.5 + 1.0 / target  # below the root; 1 / psi' is convex, so Newton's steps rise to it
    for _ in range(50):
        value = special.polygamma(1, x)
        step = value * (1.0 - value / target) / special.polygamma(2, x)
        x = x + step
        if np.all(np.abs(step) <= 1e-15 * x):
            break
    return np.where(np.asarray(y) > 2.0 / _ALIKE, x, np.inf)


def _trigamma(x: Array) -> Array:
    """psi'(x), once where all are equal, as in complete tables."""
    first = x.flat[0]
    return np.full(x.shape, special.polygamma(1, first)) if (x == first).all() else special.polygamma(1, x)


def _scales(v: Array, identified: NDArray[np.bool_], share: Functions) -> Array:
    """The ``a >= 0`` of the fit ``v ~ share @ a``; NaN for means without a pair.

    They maximise Poisson's quasi-likelihood ``sum v log(t) - t``, ``t = share @ a``, which is concave: its weights
    1 / t lie between those of equal variances and of equal relative ones, so that neither an erratic algorithm nor a
    pair of identical ones decides the fit. Of three means it solves ``v = t``, unless one `a` would be negative, which
    then is zero. Multiplicative steps (Lee & Seung 2001) make the start. They would creep to a zero; so Newton's steps
    follow, with an `a` at zero where its own step leads below (Bertsekas 1982, doi:10.1137/0320018). Directions that
    gaps between pairs leave open stay as at the start.
    """
    k, (left, right) = share.width, share.columns
    part, observed, paired = np.zeros((k, k)), np.zeros((*v.shape[:-1], k, k)), np.zeros((*v.shape[:-1], k, k))
    part[left, right], part[right, left] = share.values
    least = _LEAST * _mean(v, identified)[..., None]
    observed[..., left, right] = observed[..., right, left] = np.where(identified, np.maximum(v, least), 0.0)
    paired[..., left, right] = paired[..., right, left] = identified
    weight = (part * paired).sum(axis=-1)
    found = np.zeros(weight.shape).reshape(-1, k)
    y, w, at = observed.reshape(-1, k, k), weight.reshape(-1, k), np.arange(len(found))
    a = y.sum(axis=(1, 2))[:, None] / np.maximum(2.0 * w.sum(axis=1, keepdims=True), np.finfo(float).tiny) * (w > 0.0)
    ridge = np.divide(_RIDGE * w, a, out=np.zeros_like(a), where=a > 0.0)
    for _ in range(_FIRST):
        slope = (part * _over(y, _sums(a, part), y)).sum(axis=2)
        a = np.divide(a * slope, w, out=np.zeros_like(a), where=w > 0.0)
    t, cut = _sums(a, part), np.ones(len(a))
    for _ in range(_STEPS):
        step = _newton_step(a, t, y, w, part, ridge)
        falls = _over(-_sums(step, part), t, y).max(axis=(1, 2))
        length = cut * np.minimum(1.0, _FALL / np.maximum(falls, _FALL))
        new = np.maximum(a + length[:, None] * step, 0.0)
        new_t = _sums(new, part)
        # as log(1 + x) >= x - x^2 for x >= -0.68, only a step towards a zero can lose likelihood
        loses = ((a > 0.0) & ((new == 0.0) | (step == -a))).any(axis=1)
        if loses.any():
            before = _quasi_likelihood(a[loses], t[loses], y[loses], w[loses])
            after = _quasi_likelihood(new[loses], new_t[loses], y[loses], w[loses])
            loses[loses] = after < before - _ROUNDED * (np.abs(before) + y[loses].sum(axis=(1, 2)))
        moved = _over(np.abs(new_t - t), t, y).max(axis=(1, 2))
        settled = ~loses & (length == 1.0) & (moved <= _SETTLED)  # the error after a whole step is about its square
        a, t = np.where(loses[:, None], a, new), np.where(loses[:, None, None], t, new_t)
        cut = np.where(loses, cut / 4.0, 1.0)
        if settled.any():
            found[at] = a
            if settled.all():
                break
            a, t, y, w, ridge, cut, at = (x[~settled] for x in (a, t, y, w, ridge, cut, at))
    found[at] = a
    return np.where(weight > 0.0, found.reshape(weight.shape), np.nan)


def _over(x: Array, t: Array, y: Array) -> Array:
    """``x / t`` where `y`, what is observed, is positive; else 0."""
    return np.divide(x, t, out=np.zeros_like(t), where=y > 0.0)


def _sums(a: Array, part: Array) -> Array:
    """``share @ a`` of all pairs of every table, as a matrix."""
    of_left = part * a[:, :, None]
    return np.asarray(of_left + of_left.swapaxes(1, 2))


def _quasi_likelihood(a: Array, t: Array, y: Array, w: Array) -> Array:
    """``sum v log(t) - t`` over the pairs of every table."""
    with np.errstate(divide="ignore"):
        log_t = np.log(t, out=np.zeros_like(t), where=y > 0.0)
    return np.asarray(0.5 * (y * log_t).sum(axis=(1, 2)) - (w * a).sum(axis=1))


def _newton_step(a: Array, t: Array, y: Array, w: Array, part: Array, ridge: Array) -> Array:
    """Newton's step of every table, zero staying zero; to zero for an `a` whose own slope and curvature lead there."""
    ratio = part * _over(y, t, y)
    slope = ratio.sum(axis=2) - w
    curvature = _over(ratio, t, y)
    own = (part * curvature).sum(axis=2)
    curvature *= part.T
    held = (slope < 0.0) & (a * own <= -slope) | (own == 0.0)
    places = np.arange(len(part))
    while True:
        curvature[held[:, :, None] | held[:, None, :]] = 0.0
        curvature[:, places, places] = np.where(held, 1.0, own + ridge)
        step = np.linalg.solve(curvature, np.where(held, 0.0, slope)[..., None])[..., 0]
        leaves = ~held & (a == 0.0) & (step < 0.0)
        if not leaves.any():
            return np.asarray(np.where(held, -a, step))
        held |= leaves


def _excess(log_x: Array, finite: Mask, by_chance: Array, *, n_fitted: int) -> Array:
    """Variance of `log_x` around its mean beyond what chance gives it, over the last axis; 0 where none is left."""
    n = finite.sum(axis=-1)
    centre = _mean(log_x, finite)
    square = np.where(finite, (np.where(finite, log_x, 0.0) - centre[..., None]) ** 2, 0.0).sum(axis=-1)
    left = n - n_fitted
    return np.where(left > 0, np.maximum(square / np.maximum(left, 1) - by_chance, 0.0), 0.0)


def _centre(location: Array, prior_df: Array, df: Array, average: Array) -> Array:
    """What the scales are shrunk towards: their own location where they differ; where they are alike the model's 1.

    The model's does not count where the pairs are above it on average, as with a model that lacks the interaction of
    algorithms and benchmarks. Where its variance is estimated as zero, they are below it by selection, and 1 is right.
    """
    excess = special.polygamma(1, np.minimum(prior_df, _ALIKE) / 2.0)
    differ = np.minimum(1.0, excess / special.polygamma(1, df / 2.0))
    return np.exp(differ * np.log(location) + (1.0 - differ) * np.log(np.maximum(1.0, average)))


def _mean(x: Array, finite: NDArray[np.bool_]) -> Array:
    """Mean over the last axis of what is known; 1 where nothing is."""
    n = finite.sum(axis=-1)
    return np.where(n > 0, np.where(finite, x, 0.0).sum(axis=-1) / np.maximum(n, 1), 1.0)
