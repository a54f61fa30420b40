r"""Hierarchical Bayesian comparison of two algorithms over benchmarks and seeds, by quadrature.

On benchmark i the algorithms differ by d_i in the mean of their runs, with sampling variance v_i. Benchmarks are draws
from a population:

    d_i ~ N(delta_i, v_i),    delta_i ~ N(mu, tau^2),

mu the mean advantage, tau how much it varies between benchmarks. Given tau all is normal, with w_i = 1 / (v_i + tau^2):

    mu | tau ~ N(m, s^2),    s^2 = 1 / sum w_i,    m = s^2 sum w_i d_i,
    p(tau | d) ~ p(tau) s prod sqrt(w_i) exp(-sum w_i (d_i - m)^2 / 2),

so the posterior of mu, and of the advantage on a new benchmark, is a mixture of normal distributions over tau alone. It
is integrated by Gauss-Legendre rules in log(tau): no draws, and the same answer everywhere.

The prior of mu is flat. That of tau is Jeffreys', ``p(tau)^2 ~ sum (tau w_i)^2``: it has no scale of its own, is proper
from two benchmarks on, and gives the paired t-test's interval where v = 0 (there it is 1 / tau) and that of the
balanced one-way model with random effects where all v_i are equal. Corani et al. have a flat prior of tau up to a
bound, Student's t for delta_i, correlated folds of a cross-validation rather than independent seeds, and sample by
Markov chains.

References
----------
Corani, Benavoli, Demšar, Mangili & Zaffalon (2017), Statistical comparison of classifiers through Bayesian hierarchical
modelling, Machine Learning 106, 1817-1837, doi:10.1007/s10994-017-5641-9; Röver (2020), Bayesian random-effects
meta-analysis using the bayesmeta R package, Journal of Statistical Software 93(6), doi:10.18637/jss.v093.i06
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from scipy.special import ndtr

from lmemtest.lmm.means.empirical_bayes import fit_scaled_f, squeeze

if TYPE_CHECKING:
    from lmemtest.bench.data.blocks import Blocks
    from lmemtest.core.arrays import Array


_NODES = 256  # of each of two Gauss-Legendre rules
_NEGLIGIBLE = 40.0  # densities below exp(-40) of the highest
_COARSE = 0.25  # step in log(tau): the least width of the posterior with few benchmarks is about 1
_FINE = 300  # points of the second and third search
_WIDE = 45.0  # beyond all scales in log(tau): the posterior of two benchmarks falls like 1 / tau
_SMALL = 0.02  # of the median variance: what is smaller, such as no variance of a discrete score, counts as this
_FEW = 3  # variances that do not show how much they differ
_ONE_THIRD = 0.4307272992954576  # the normal quantile of 2/3: rope / tau from which on a tie can be the most probable


@dataclass(frozen=True, slots=True, eq=False)
class Posterior:
    """Posterior of the mean advantage, normal given tau.

    Attributes
    ----------
    weight, tau, mean, sd : (nodes,) float
        Probability of each tau, and mean and standard deviation of mu given it.
    """

    weight: Array
    tau: Array
    mean: Array
    sd: Array

    def above(self, x: float) -> float:
        """Probability that the mean advantage is above x; half of it if it is certain to be x."""
        return float(self.weight @ _above(self.mean - x, self.sd))

    def new_above(self, x: float) -> float:
        """Probability that the advantage on a new benchmark is above x."""
        return float(self.weight @ _above(self.mean - x, np.hypot(self.sd, self.tau)))

    def most_probable(self, rope: float) -> Array:
        """Probability that left better, equivalent and right better is the most probable outcome on a new benchmark."""
        limit = outcome_limit(self.tau, rope)
        left, right = (float(self.weight @ _above(sign * self.mean - limit, self.sd)) for sign in (1.0, -1.0))
        return np.array([left, max(0.0, 1.0 - left - right) if rope > 0 else 0.0, right])

    def interval(self, level: float) -> tuple[float, float]:
        """Equal-tailed credible interval of the mean advantage."""
        centre, width = float(self.weight @ self.mean), float(self.sd[np.searchsorted(np.cumsum(self.weight), 0.5)])
        tail = (1.0 - level) / 2.0
        return self._point(1.0 - tail, centre, -width), self._point(tail, centre, width)

    def _point(self, p: float, start: float, step: float) -> float:
        """The point with probability p above it, searched from a start in growing steps towards it."""
        from scipy.optimize import brentq

        if step == 0.0:
            return start
        far = start + step
        while (self.above(far) < p) == (step < 0):
            step *= 2.0
            far = start + step
        return float(brentq(lambda x: self.above(x) - p, min(start, far), max(start, far), xtol=1e-13 * abs(step)))


def _above(distance: Array, sd: Array) -> Array:
    """Normal probabilities above a point that lies `distance` below the mean; a standard deviation may be zero."""
    z = np.divide(distance, sd, out=np.where(distance == 0.0, 0.0, np.copysign(np.inf, distance)), where=sd > 0)
    return np.asarray(ndtr(z))


def outcome_limit(tau: Array, rope: float) -> Array:
    """The mean advantage from which on "better" is the most probable outcome on a new benchmark, for each tau.

    With P(better) = Phi((mu - r) / tau) and P(worse) = Phi((-mu - r) / tau) it is the mu >= 0 for which P(better) =
    P(equivalent), or 0: where tau is so large that r / tau < 0.43, "equivalent" is never the most probable.

    >>> outcome_limit(np.array([0.01, 1.0, 3.0]), 1.0).round(3)
    array([1.   , 0.969, 0.   ])
    """
    ratio = np.divide(rope, tau, out=np.full(tau.shape, np.inf), where=tau > 0) if rope > 0 else np.zeros(tau.shape)
    out = np.where(np.isinf(ratio), rope, 0.0)
    some = (ratio > _ONE_THIRD) & np.isfinite(ratio)
    r = ratio[some]
    low, high = np.zeros(r.shape), r.copy()
    for _ in range(60):
        middle = (low + high) / 2.0
        better = 2.0 * ndtr(middle - r) > ndtr(middle + r)
        low, high = np.where(better, low, middle), np.where(better, middle, high)
    out[some] = tau[some] * (low + high) / 2.0
    return out


def posterior(d: Array, v: Array, *, rope: float = 0.0) -> Posterior:
    """Posterior of the mean advantage from differences on two or more benchmarks and their sampling variances.

    The nodes are placed for probabilities with this `rope`. Without sampling variances it is that of the t-test:

    >>> from scipy.stats import ttest_1samp
    >>> d = np.array([0.1, 0.3, 0.2, 0.6])
    >>> print(f"{1 - posterior(d, np.zeros(4)).above(0.0):.6f} {ttest_1samp(d, 0).pvalue / 2:.6f}")
    0.034568 0.034568
    """
    spread = float(np.sqrt(d.var()))
    if spread <= 1e-12 * float(np.abs(d).max(initial=0.0)) and not v.any():
        return Posterior(np.ones(1), np.zeros(1), np.array([d.mean()]), np.zeros(1))  # certain
    scales = np.log(np.sqrt(np.array([x for x in (spread**2, v.min(), v.max()) if x > 0])))
    ends = scales.min() - _WIDE / 2.0, scales.max() + _WIDE
    x = np.arange(ends[0], ends[1], _COARSE)
    for _ in range(2):
        height = _log_density(d, v, np.exp(x))[0]
        inside = np.flatnonzero(height > height.max() - _NEGLIGIBLE)
        ends = x[max(inside[0] - 1, 0)], x[min(inside[-1] + 1, len(x) - 1)]
        x = np.linspace(*ends, _FINE)
    kink = np.log(rope / _ONE_THIRD) if rope > 0 else -np.inf
    split = kink if ends[0] < kink < ends[1] else (ends[0] + ends[1]) / 2.0
    nodes, weights = _rule()
    halves = (split - ends[0]) / 2.0, (ends[1] - split) / 2.0
    x = np.concatenate([ends[0] + halves[0] * (1.0 + nodes), split + halves[1] * (1.0 + nodes)])
    tau = np.exp(x)
    height, mean, sd = _log_density(d, v, tau)
    weight = np.concatenate([half * weights for half in halves]) * np.exp(height - height.max())
    return Posterior(weight / weight.sum(), tau, mean, sd)


@lru_cache(maxsize=1)
def _rule() -> tuple[Array, Array]:
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    return nodes, np.array(weights, dtype=np.float64)


def _log_density(d: Array, v: Array, tau: Array) -> tuple[Array, Array, Array]:
    """Logarithm of the posterior density of log(tau), but for a constant, and mean and standard deviation of mu."""
    w = 1.0 / (v + tau[:, None] ** 2)
    variance = 1.0 / w.sum(axis=1)
    mean = variance * (w @ d)
    squares = (w * (d - mean[:, None]) ** 2).sum(axis=1)
    prior = np.log(tau) + 0.5 * np.log((w * w).sum(axis=1))
    height = np.log(tau) + prior + 0.5 * (np.log(w).sum(axis=1) + np.log(variance) - squares)
    return height, mean, np.sqrt(variance)


def differences(blocks: Blocks, left: int, right: int) -> tuple[Array, Array]:
    """Mean advantage of one algorithm over another on each block, NaN where one of them is missing, and its variance.

    Runs with the same seeds are pairs, others independent. The variances of single runs are moderated: those of all
    instances are squeezed towards each other, the more so the fewer the runs behind them and the more alike they are.
    Where no instance has two runs of each algorithm they are zero, and what seeds contribute counts as a difference
    between benchmarks.
    """
    gains = blocks.gains
    variance, df, factor = _of_instances(blocks, left, right)
    share = 1.0 / np.bincount(blocks.block, minlength=len(blocks.names))[blocks.block]
    v = np.bincount(blocks.block, weights=_moderated(variance, df) * factor * share**2, minlength=len(blocks.names))
    return gains[:, left] - gains[:, right], np.asarray(v, dtype=float)


def _of_instances(blocks: Blocks, left: int, right: int) -> tuple[Array, Array, Array]:
    """Variance of the difference of single runs on each instance, its degrees of freedom, and its share in the mean."""
    a, b = blocks.runs[:, left], blocks.runs[:, right]
    n_a, n_b = blocks.n_runs[:, left].astype(float), blocks.n_runs[:, right].astype(float)
    own_a, own_b, own = (_variance(x) for x in (a, b, a - b))
    paired = np.zeros(len(a), dtype=bool)
    if blocks.seeds is not None:
        paired = (blocks.seeds[:, left] == blocks.seeds[:, right]).all(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = np.stack([own_a / n_a, own_b / n_b])
        factor = np.where(paired, 1.0 / n_a, 1.0 / n_a + 1.0 / n_b)
        variance = np.where(paired, own, parts.sum(axis=0) / factor)
        df = parts.sum(axis=0) ** 2 / (parts**2 / np.stack([n_a - 1.0, n_b - 1.0])).sum(axis=0)
    df = np.where(paired, n_a - 1.0, df)
    ran = (n_a > 0) & (n_b > 0)
    known = ran & np.isfinite(variance)
    return np.where(known, variance, np.nan), np.where(known, df, 0.0), np.where(ran, factor, 0.0)


def _moderated(variance: Array, df: Array) -> Array:
    """Variances squeezed towards each other (Smyth 2004), NaN replaced by what the others share; zero if all are."""
    known = df > 0
    if not (variance[known] > 0).any():
        return np.zeros(variance.shape)
    own = np.maximum(variance[known], _SMALL * np.median(variance[known & (variance > 0)]))
    pooled = float(df[known] @ own / df[known].sum())
    centre, worth = fit_scaled_f(own, df[known])
    if len(own) < _FEW or np.isinf(worth):  # they scatter no more than chance makes them
        return np.full(variance.shape, pooled)
    out = np.full(variance.shape, float(centre))
    out[known] = squeeze(own, df[known], centre, worth)[0]
    return out


def _variance(x: Array) -> Array:
    """Sample variances over the last axis, without NaN; NaN where there are fewer than two values."""
    n = np.isfinite(x).sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        centred = x - (np.nansum(x, axis=-1) / n)[..., None]
        return np.asarray(np.nansum(centred**2, axis=-1) / np.where(n > 1, n - 1.0, np.nan))
