r"""Posterior probabilities that one of two algorithms is practically better, or that they are equivalent, by pair.

The signed-rank test
--------------------
The distribution of the advantage of one algorithm over another on a benchmark, ``z``, is unknown; its prior is a
Dirichlet process of strength s = 1/2 at zero. After n benchmarks it is the weighted sample ``z_0 = 0, z_1, ..., z_n``
with weights ``w ~ Dirichlet(1/2, 1, ..., 1)``. For two benchmarks drawn from it, with r half the width of the region of
practical equivalence (ROPE),

    P(left)  = sum_ij w_i w_j [z_i + z_j >  2 r]        (the mean advantage of the two is above r)
    P(right) = sum_ij w_i w_j [z_i + z_j < -2 r]
    P(equal) = 1 - P(left) - P(right),

where a sum at the limit counts one half on each side of it. As w is uncertain, so are these three; the answer of the
test is how probable it is that each is the largest of them.

With z in descending order, those z_j which exceed ``2 r - z_i`` are the first c_i, so the double sum is a single one of
cumulative weights: O(n) per draw rather than O(n^2). Weights are standard gamma variables divided by their sum; a pair
without some of the benchmarks uses those of the others, which are Dirichlet, too. All pairs share them: the answer does
not depend on the order of algorithms, and exchanging two mirrors it. Without a ROPE only the sign of P(left) - P(right)
counts, which `directions_of` has for all pairs at once.

The larger of two advantages decides the sign of their sum. So with the weights in ascending order of the size of the
advantage, T_i the mass of the first i of them and s_i the sign of the i-th (that of the prior, at zero, is 0),

    P(left) - P(right) = sum_i s_i (T_i^2 - T_{i-1}^2) = sum_i (s_i - s_{i+1}) T_i^2,

and only masses before a change of sign count. Advantages of one size and opposite signs cancel: the mean of two orders,
with all positive ones first and with all of them last.

Only the sign of the sum is needed. It is taken from single precision, and from double where the first does not tell.

The hierarchical model
----------------------
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
Benavoli, Corani, Demšar & Zaffalon (2017), Time for a change: a tutorial for comparing multiple classifiers through
Bayesian analysis, Journal of Machine Learning Research 18(77), 1-36;
Benavoli, Mangili, Corani, Zaffalon & Ruggeri (2014), A Bayesian Wilcoxon signed-rank test based on the Dirichlet
process, Proceedings of Machine Learning Research 32(2), 1026-1034;
Corani, Benavoli, Demšar, Mangili & Zaffalon (2017), Statistical comparison of classifiers through Bayesian hierarchical
modelling, Machine Learning 106, 1817-1837, doi:10.1007/s10994-017-5641-9; Röver (2020), Bayesian random-effects
meta-analysis using the bayesmeta R package, Journal of Statistical Software 93(6), doi:10.18637/jss.v093.i06
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp
from scipy.special import ndtr

from lmemtest.core.options import ROPE_UNITS
from lmemtest.core.quadrature import gauss_rule
from lmemtest.core.replicates import progress_bar
from lmemtest.core.rounding import at_most, tolerance
from lmemtest.core.validate import check_choice, check_fraction, check_positive_int, check_rope, resolve_rng
from lmemtest.core.verdicts import Verdict
from lmemtest.lmm.means.empirical_bayes import fit_scaled_f, squeeze

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from lmemtest.bench.data.blocks import Blocks
    from lmemtest.core.arrays import Array, Index, Mask


MODELS = ("signed_rank", "hierarchical")


def bayesian_pairs(
    blocks: Blocks,
    *,
    model: str = "signed_rank",
    rope: float = 0.0,
    rope_unit: str = "score",
    alpha: float = 0.05,
    n_draws: int = 50_000,
    rng: int | np.random.Generator | None = None,
) -> pd.DataFrame:
    """Compare all pairs of algorithms by posterior probabilities with a region of practical equivalence (ROPE).

    Parameters
    ----------
    blocks : Blocks
        Scores of the algorithms on benchmarks. A pair is compared on the blocks that have scores of both.
    model : {"signed_rank", "hierarchical"}
        The signed-rank test looks at one difference per block, that of the mean scores, and assumes no distribution.
        The hierarchical model knows the runs behind it, and assumes normal advantages.
    rope : float, >= 0
        Differences of at most this size are practically equivalent. With 0 nothing is, and the probabilities are those
        of the direction.
    rope_unit : {"score", "effect", "mad"}
        `rope` is a difference of scores, or is multiplied by the pooled standard deviation, or (scaled) median absolute
        deviation, of the two algorithms' scores over blocks.
    alpha : float in (0, 1)
        An outcome with probability 1 - `alpha` or more is decided.
    n_draws : int
        Of the signed-rank test; the hierarchical model is integrated without draws.
    rng : int, numpy.random.Generator or None
        Of the signed-rank test.

    Returns
    -------
    pandas.DataFrame
        One row per pair, ``left`` before ``right`` in `blocks.algorithms`:

        - ``n_blocks`` with scores of both, and ``rope`` in units of the score;
        - ``p_left``, ``p_equal``, ``p_right``: posterior probability that "left is practically better", "they are
          equivalent", "right is practically better" is what happens most often on benchmarks of this kind;
        - ``verdict``: the `lmemtest.core.verdicts.Verdict` on left, compared with right: 1 better, 2 practically
          equivalent, -1 worse, 0 undecided;
        - hierarchical model only: ``advantage``, ``advantage_low``, ``advantage_high``, the mean advantage of left over
          benchmarks in units of the score, positive if left is better whatever the direction, with its credible
          interval at level 1 - `alpha`; ``p_mean_left``, the probability that it is positive; ``p_new_left``,
          ``p_new_equal``, ``p_new_right``, the predictive probability of each outcome on one new benchmark.

        Pairs with fewer than two blocks in common have no probabilities and are undecided.

    Raises
    ------
    ArgumentError
        If an argument is outside its domain.

    Notes
    -----
    **Three probabilities.** Suppose left is better by 1 on average, and advantages vary between benchmarks
    with a standard deviation of 2. With a thousand benchmarks ``p_left`` and ``p_mean_left`` are 1: left is better on
    most. But on 69 % of the benchmarks only, which is what ``p_new_left`` says.

    **False decisions.** A posterior probability is not an error rate. Each direction has `alpha` to itself, so of two
    equal algorithms one is called better in about 2 `alpha` of the studies, and nothing adjusts for the number of
    pairs. Measured with the signed-rank test at `alpha` = 0.05 on 20 blocks of equal algorithms, `rope` 0: in 12 to
    13 % of the studies with two algorithms, 25 to 26 % with three, 88 to 90 % with ten some algorithm was called better
    than another; with a `rope` of 0.1 "effect" in 10 to 13, 23 to 26 and 84 to 89 %; on 5 blocks (two algorithms,
    `rope` 0) in 19 to 26 %. (The ranges are those of normal, skewed, discrete and heteroscedastic scores.)

    **The unit of the ROPE.** What difference does not matter is known in the units of the score, and only there. The
    spread of scores over benchmarks, which "effect" and "mad" multiply, grows with each benchmark that is easier or
    harder than the others, and any two algorithms can be made "practically equivalent" by a mixed choice of benchmarks.
    So the default is no ROPE: without a limit that the user knows, nobody can say that a difference is negligible.

    References
    ----------
    Benavoli, Corani, Demšar & Zaffalon (2017), Journal of Machine Learning Research 18(77), 1-36;
    Corani, Benavoli, Demšar, Mangili & Zaffalon (2017), Machine Learning 106, 1817-1837, doi:10.1007/s10994-017-5641-9

    Examples
    --------
    >>> import lmemtest as lt
    >>> from lmemtest.bench.data.blocks import blocks_of
    >>> runs = lt.datasets.load_hpo_runs().filter(budget=8, algorithm=["RS", "HB", "HB+prior"])
    >>> pairs = bayesian_pairs(blocks_of(runs), rope=0.002, rng=1)
    >>> pairs[["left", "right", "p_left", "p_equal", "p_right", "verdict"]].round(2)
           left     right  p_left  p_equal  p_right  verdict
    0        HB  HB+prior     0.0      1.0      0.0        2
    1        HB        RS     1.0      0.0      0.0        1
    2  HB+prior        RS     1.0      0.0      0.0        1
    """
    import pandas as pd

    check_choice(model, "model", MODELS)
    rope = check_rope(rope)
    check_choice(rope_unit, "rope_unit", ROPE_UNITS)
    alpha = check_fraction(alpha, "alpha")
    n_draws = check_positive_int(n_draws, "n_draws")
    generator = resolve_rng(rng)
    pairs = list(combinations(range(len(blocks.algorithms)), 2))
    left, right = np.array(pairs, dtype=np.intp).reshape(-1, 2).T
    gains = blocks.gains
    both = np.isfinite(gains[:, left]) & np.isfinite(gains[:, right])
    n_blocks = both.sum(axis=0)
    limits = np.full(len(pairs), rope)
    if rope_unit != "score":
        limits *= [_spread(gains[here][:, pair], rope_unit) for here, pair in zip(both.T, pairs, strict=True)]
    tested = n_blocks >= 2
    p = np.full((len(pairs), 3), np.nan)
    more: dict[str, Any] = {}
    if model == "signed_rank":
        advantages = (gains[:, left] - gains[:, right]).T[tested]
        p[tested] = signed_rank(advantages, limits[tested], n_draws=n_draws, rng=generator, tie=tolerance(gains))
    else:
        p, more = _hierarchical(blocks, pairs, tested, limits, alpha)
    return pd.DataFrame(
        {
            "left": [blocks.algorithms[i] for i in left],
            "right": [blocks.algorithms[i] for i in right],
            "n_blocks": n_blocks,
            "rope": limits,
            "p_left": p[:, 0],
            "p_equal": p[:, 1],
            "p_right": p[:, 2],
            "verdict": posterior_verdicts(p, alpha),
            **more,
        }
    )


def posterior_verdicts(p: Array, alpha: float) -> NDArray[np.int8]:
    """What the probabilities of left, neither and right, ``(pairs, 3)``, decide.

    >>> posterior_verdicts(np.array([[0.96, 0.03, 0.01], [0.5, 0.0, 0.5], [np.nan] * 3]), 0.05).tolist()
    [1, 0, 0]
    """
    probable = at_most(1.0 - p, alpha) & (p > 0.5)  # of three outcomes one at most is
    verdicts = np.array([Verdict.BETTER, Verdict.EQUIVALENT, Verdict.WORSE], dtype=np.int8)
    return np.where(probable.any(axis=1), verdicts[probable.argmax(axis=1)], np.int8(Verdict.NOT_SIGNIFICANT))


def _spread(scores: Array, unit: str) -> float:
    """The unit of a ROPE in units of the score: the root mean square of the spreads of two algorithms."""
    if len(scores) < 2:
        return float("nan")
    if unit == "effect":
        return float(np.sqrt(scores.var(axis=0, ddof=1).mean()))
    from scipy.stats import median_abs_deviation

    return float(np.sqrt(np.mean(median_abs_deviation(scores, axis=0, scale="normal") ** 2)))


def _hierarchical(
    blocks: Blocks, pairs: list[tuple[int, int]], tested: Mask, limits: Array, alpha: float
) -> tuple[Array, dict[str, Array]]:
    p, new = (np.full((len(pairs), 3), np.nan) for _ in range(2))
    mean = np.full((len(pairs), 4), np.nan)
    for row in np.flatnonzero(tested):
        d, v = differences(blocks, *pairs[row])
        both = np.isfinite(d)
        rope = float(limits[row])
        weight, tau, centre, sd = posterior(d[both], v[both], rope=rope)
        of_new = np.hypot(sd, tau)  # of the advantage on a new benchmark
        p[row] = most_probable(rope, weight, tau, centre, sd)
        better, worse = above(rope, weight, centre, of_new), 1.0 - above(-rope, weight, centre, of_new)
        new[row] = better, 1.0 - better - worse, worse
        ends = interval(1.0 - alpha, weight, centre, sd)
        mean[row] = weight @ centre, *ends, above(0.0, weight, centre, sd)
    names = "advantage", "advantage_low", "advantage_high", "p_mean_left", "p_new_left", "p_new_equal", "p_new_right"
    return p, dict(zip(names, np.concatenate([mean, new], axis=1).T, strict=True))


# ----------------------------------------------------------------------------------------------- the hierarchical model


_NODES = 256  # of each of two Gauss-Legendre rules
_NEGLIGIBLE = 40.0  # densities below exp(-40) of the highest
_COARSE = 0.25  # step in log(tau): the least width of the posterior with few benchmarks is about 1
_FINE = 300  # points of the second and third search
_WIDE = 45.0  # beyond all scales in log(tau): the posterior of two benchmarks falls like 1 / tau
_SMALL = 0.02  # of the median variance: what is smaller, such as no variance of a discrete score, counts as this
_FEW = 3  # variances that do not show how much they differ
_ONE_THIRD = 0.4307272992954576  # the normal quantile of 2/3: rope / tau from which on a tie can be the most probable


def above(x: float, weight: Array, mean: Array, sd: Array) -> float:
    """Probability above x of normal distributions mixed with these weights; half of it if x is certain."""
    return float(weight @ _above(mean - x, sd))


def most_probable(rope: float, weight: Array, tau: Array, mean: Array, sd: Array) -> Array:
    """Probability that left better, equivalent and right better is the most probable outcome on a new benchmark."""
    limit = outcome_limit(tau, rope)
    left, right = (float(weight @ _above(sign * mean - limit, sd)) for sign in (1.0, -1.0))
    return np.array([left, max(0.0, 1.0 - left - right) if rope > 0 else 0.0, right])


def interval(level: float, weight: Array, mean: Array, sd: Array) -> tuple[float, float]:
    """Equal-tailed interval of a mixture of normal distributions, each end searched in growing steps from the mean."""
    from scipy.optimize import brentq

    start, width = float(weight @ mean), float(sd[np.searchsorted(np.cumsum(weight), 0.5)])
    if width == 0.0:
        return start, start

    def end(p: float, step: float) -> float:
        """The point with probability p above it."""
        far = start + step
        while (above(far, weight, mean, sd) < p) == (step < 0):
            step *= 2.0
            far = start + step
        low, high = min(start, far), max(start, far)
        return float(brentq(lambda x: above(x, weight, mean, sd) - p, low, high, xtol=1e-13 * abs(step)))

    tail = (1.0 - level) / 2.0
    return end(1.0 - tail, -width), end(tail, width)


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


def posterior(d: Array, v: Array, *, rope: float = 0.0) -> tuple[Array, Array, Array, Array]:
    """Posterior of the mean advantage from differences on two or more benchmarks and their sampling variances.

    Each ``(nodes,)``: the probability of each tau, tau, and mean and standard deviation of the mean advantage given
    tau. The nodes are placed for probabilities with this `rope`. Without sampling variances it is that of the t-test:

    >>> from scipy.stats import ttest_1samp
    >>> d = np.array([0.1, 0.3, 0.2, 0.6])
    >>> weight, _, mean, sd = posterior(d, np.zeros(4))
    >>> print(f"{1 - above(0.0, weight, mean, sd):.6f} {ttest_1samp(d, 0).pvalue / 2:.6f}")
    0.034568 0.034568
    """
    spread = float(np.sqrt(d.var()))
    if spread <= 1e-12 * float(np.abs(d).max(initial=0.0)) and not v.any():
        return np.ones(1), np.zeros(1), np.array([d.mean()]), np.zeros(1)  # certain
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
    nodes, weights = gauss_rule(_NODES)
    widths = split - ends[0], ends[1] - split
    x = np.concatenate([ends[0] + widths[0] * nodes, split + widths[1] * nodes])
    tau = np.exp(x)
    height, mean, sd = _log_density(d, v, tau)
    weight = np.concatenate([width * weights for width in widths]) * np.exp(height - height.max())
    return weight / weight.sum(), tau, mean, sd


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
    instances are shrunk towards each other, the more so the fewer the runs behind them and the more alike they are.
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
    own_a, own_b, of_difference = (_variance(x) for x in (a, b, a - b))
    paired = np.zeros(len(a), dtype=bool)
    if blocks.seeds is not None:
        paired = (blocks.seeds[:, left] == blocks.seeds[:, right]).all(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = np.stack([own_a / n_a, own_b / n_b])
        factor = np.where(paired, 1.0 / n_a, 1.0 / n_a + 1.0 / n_b)
        variance = np.where(paired, of_difference, parts.sum(axis=0) / factor)
        df = parts.sum(axis=0) ** 2 / (parts**2 / np.stack([n_a - 1.0, n_b - 1.0])).sum(axis=0)
    df = np.where(paired, n_a - 1.0, df)
    ran = (n_a > 0) & (n_b > 0)
    finite = ran & np.isfinite(variance)
    return np.where(finite, variance, np.nan), np.where(finite, df, 0.0), np.where(ran, factor, 0.0)


def _moderated(variance: Array, df: Array) -> Array:
    """Variances shrunk towards each other (Smyth 2004), NaN replaced by what the others share; zero if all are."""
    estimated = df > 0
    if not (variance[estimated] > 0).any():
        return np.zeros(variance.shape)
    of_instance = np.maximum(variance[estimated], _SMALL * np.median(variance[estimated & (variance > 0)]))
    pooled = float(df[estimated] @ of_instance / df[estimated].sum())
    centre, worth = fit_scaled_f(of_instance, df[estimated])
    if len(of_instance) < _FEW or np.isinf(worth):  # they scatter no more than chance makes them
        return np.full(variance.shape, pooled)
    out = np.full(variance.shape, float(centre))
    out[estimated] = squeeze(of_instance, df[estimated], centre, worth)[0]
    return out


def _variance(x: Array) -> Array:
    """Sample variances over the last axis, without NaN; NaN where there are fewer than two values."""
    n = np.isfinite(x).sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        centred = x - (np.nansum(x, axis=-1) / n)[..., None]
        return np.asarray(np.nansum(centred**2, axis=-1) / np.where(n > 1, n - 1.0, np.nan))


# ------------------------------------------------------------------------------------------------- the signed-rank test


PRIOR = 0.5  # strength of the prior in benchmarks, all of it at zero
_DRAWN = 2**14  # weights that are drawn at a time: other numbers of them would be other draws
_TOGETHER = 2**17  # weights that are used at a time: 1 MB
_TIE = 1e-12  # probabilities that differ by less are equal but for rounding


def signed_rank(advantages: Array, rope: Array, *, n_draws: int, rng: np.random.Generator, tie: float = 0.0) -> Array:
    """Posterior probabilities that left better, equivalent and right better is the most probable outcome.

    `advantages` (pairs, blocks) of left over right, NaN where one of them has no score; `rope` (pairs,) >= 0; sums that
    differ by at most `tie` are equal. Returns (pairs, 3). A pair without blocks knows the prior only:

    >>> z = np.array([[0.3, 0.1, 0.4, 0.2, -0.1], [0.0, 0.0, 0.0, 0.0, 0.0], [np.nan] * 5])
    >>> signed_rank(z, np.zeros(3), n_draws=10_000, rng=np.random.default_rng(0)).round(2)
    array([[0.98, 0.  , 0.02],
           [0.5 , 0.  , 0.5 ],
           [0.5 , 0.  , 0.5 ]])
    """
    out = np.zeros((len(advantages), 3))
    by_direction = (rope == 0.0) & has_direction(advantages, tie)
    in_favour_of_left = directions_of(advantages[by_direction], tie)
    pairs = [(i, outcomes_of(advantages[i], rope[i], tie)) for i in np.flatnonzero(~by_direction)]
    with progress_bar(n_draws, None, "Signed ranks") as show:
        for weights in _together(_gamma_weights(advantages.shape[1], n_draws, rng)):
            left = in_favour_of_left(weights, _TIE)
            out[by_direction] += np.stack([left, np.zeros(len(left)), weights.shape[1] - left], axis=1)
            for i, outcomes in pairs:
                chances = outcomes(weights)
                largest = chances >= chances.max(axis=0) - _TIE
                out[i] += (largest / largest.sum(axis=0)).sum(axis=1)
            show(weights.shape[1])
    return out / n_draws


def outcome_draws(
    advantages: Array, rope: Array, *, n_draws: int, rng: np.random.Generator, tie: float = 0.0
) -> Iterator[Array]:
    """Draws of the probabilities of left better, equivalent and right better: (pairs, 3, draws), some at a time."""
    pairs = [outcomes_of(z, r, tie) for z, r in zip(advantages, rope, strict=True)]
    for weights in _gamma_weights(advantages.shape[1], n_draws, rng):
        yield np.stack([outcomes(weights) for outcomes in pairs])


def _gamma_weights(n: int, n_draws: int, rng: np.random.Generator) -> Iterator[Array]:
    """Weights before they are divided by their sum, (1 + n, draws) at a time: of the prior, then of the blocks."""
    size = max(1, _DRAWN // (n + 1))
    for start in range(0, n_draws, size):
        count = min(size, n_draws - start)
        yield np.concatenate([rng.standard_gamma(PRIOR, (1, count)), rng.standard_exponential((n, count))])


def _together(parts: Iterator[Array]) -> Iterator[Array]:
    """The same draws, more of them at a time where there are many blocks."""
    held: list[Array] = []
    for part in parts:
        held.append(part)
        if len(held) * part.size >= _TOGETHER or len(held) * part.shape[1] >= _TOGETHER // 128:
            yield np.concatenate(held, axis=1)
            held = []
    if held:
        yield np.concatenate(held, axis=1)


def outcomes_of(advantages: Array, rope: float, tie: float) -> Callable[[Array], Array]:
    """Of one pair: weights to probabilities of left better, equivalent and right better, ``(3, draws)``."""
    z = np.concatenate([[0.0], advantages])
    order = np.argsort(-z, kind="stable")[: int(np.isfinite(z).sum())]  # descending, NaN last
    ascending = z[order][::-1]

    def beyond(limit: float) -> tuple[Index, Index | None]:
        """Numbers of z_j whose sum with z_i is above the limit; those at it too, where any is."""
        least = limit - z[order]
        strictly = len(order) - np.searchsorted(ascending, least + tie, side="right")
        at = len(order) - np.searchsorted(ascending, least - tie, side="left")
        return strictly, None if np.array_equal(strictly, at) else at

    limits = [beyond(2.0 * rope), *([beyond(-2.0 * rope)] if rope > 0 else [])]

    def outcomes(weights: Array) -> Array:
        w = weights[order]
        mass = np.zeros((len(w) + 1, w.shape[1]))  # of the first j
        for before, row, after in zip(mass[:-1], w, mass[1:], strict=True):  # numpy's own cumsum walks along columns
            np.add(before, row, out=after)
        above = [_double_sum(w, mass, *limit) / mass[-1] ** 2 for limit in limits]
        upper, lower = above[0], 1.0 - above[-1]
        return np.stack([upper, 1.0 - upper - lower if rope > 0 else np.zeros(len(upper)), lower])

    return outcomes


def _double_sum(w: Array, mass: Array, strictly: Index, at: Index | None) -> Array:
    """Sum of w_i w_j over the pairs strictly beyond a limit, and half of that over those at it."""
    total: Array = np.einsum("id,id->d", w, mass[strictly])
    if at is None:
        return total
    tied = np.flatnonzero(at != strictly)
    return total + 0.5 * np.einsum("id,id->d", w[tied], mass[at[tied]] - mass[strictly[tied]])


# ------------------------------------------------------------------------------------------- directions, without a ROPE


_UNIT = 2.0**-23  # of weights: sums of them below 2 are exact in single precision
_MOST_BLOCKS = 15  # masses of all sets of so many blocks, shared by the pairs, are cheaper than those of each pair
_OF_SETS = 2**20  # masses of sets at a time: 4 MB
_PAIRS = 2**12  # whose differences are held at a time
_OF_PAIRS = 2**15  # masses of pairs at a time: 128 kB, which stay in the cache of a processor


def has_direction(advantages: Array, tie: float) -> Mask:
    """Which pairs have advantages that are equal in size, or clearly not, ``(pairs,)``."""
    size, group = _groups(advantages, tie)
    widest = np.where(group == 0, 0.5 * tie, tie)  # zeros are added to each other
    start = np.maximum.accumulate(np.where(np.diff(group, axis=1, prepend=-1) > 0, size, 0.0), axis=1)
    return np.asarray((~(size - start > widest)).all(axis=1))


def directions_of(advantages: Array, tie: float) -> Callable[[Array, float], Array]:
    """Of pairs that `has_direction`: a function of weights to the draws in which the left is favoured.

    Advantages are ``(pairs, blocks)``, NaN where one of the two has no score. The function takes weights ``(1 + blocks,
    draws)`` and by how much probabilities differ that are equal, and counts draws, ties one half, ``(pairs,)``.
    """
    group = np.empty((len(advantages), advantages.shape[1] + 1), dtype=np.intp)
    size, sorted_group = _groups(advantages, tie)
    z = _with_prior(advantages)
    np.put_along_axis(group, np.argsort(np.abs(z), axis=1, kind="stable"), sorted_group, axis=1)
    sign = np.where(np.isnan(z) | (group == 0), 0.0, np.sign(z))
    # rows of the weights in ascending order of the advantages, and coefficients of the squares of cumulative masses
    order = np.stack([np.lexsort((sign, group)), np.lexsort((-sign, group))])  # (orders, pairs, 1 + blocks)
    signs = np.take_along_axis(np.broadcast_to(sign, order.shape), order, axis=2)
    if (signs[0] == signs[1]).all():
        order, signs = order[:1], signs[:1]
    after = np.concatenate([signs[:, :, 1:], np.zeros((*signs.shape[:2], 1))], axis=2)
    coefficients, n_rows = (signs - after) / len(order), np.isfinite(size).sum(axis=1)
    moves = (coefficients != 0.0).any(axis=(0, 2))
    n = order.shape[2] - 1
    # where there are fewer sets of blocks than masses of pairs, the masses of all sets
    by_set = _coefficients_of_sets(order, coefficients) if n <= _MOST_BLOCKS and order.size > 2**n else None

    def exactly(pair: Index, weights: Array, equal: float) -> Array:
        """1 where the left is favoured, 0.5 where none is, else 0; `weights` has a row for each of the pairs."""
        mass = [np.take_along_axis(weights, one[pair], axis=1).cumsum(axis=1) for one in order]
        total = np.take_along_axis(mass[0], n_rows[pair, None] - 1, axis=1)[:, 0]
        difference = sum((c[pair] * T**2).sum(axis=1) for c, T in zip(coefficients, mass, strict=True)) / total**2
        return np.where(np.abs(difference) <= equal, 0.5, difference > 0.0)

    def left(weights: Array, equal: float) -> Array:
        sums = np.where(moves, 0.0, 0.5 * weights.shape[1])
        single = (np.rint(weights / (weights.sum(axis=0) * _UNIT)) * _UNIT).astype(np.float32)
        parts = _by_pair(single, order, coefficients) if by_set is None else _by_set(single, by_set)
        # Coefficients alternate, and are 2 at most: a half unit of each weight counts four times, and rounding of a
        # square and of the sum up to it twice each.
        error = 8.0 * _UNIT * len(weights)
        for pairs, draws, difference in parts:
            larger = (difference > error).astype(np.float32)
            sums[pairs] += np.where(moves[pairs], larger @ np.ones(larger.shape[1], dtype=np.float32), 0.0)
            near = np.abs(difference) <= error
            near[~moves[pairs]] = False
            pair, draw = np.divmod(np.flatnonzero(near), near.shape[1])
            np.add.at(sums, pairs.start + pair, exactly(pairs.start + pair, weights[:, draws][:, draw].T, equal))
        return sums

    return left


def _coefficients_of_sets(order: Index, coefficients: Array) -> list[tuple[slice, sp.csr_array]]:
    """Coefficients of the squared mass of every set of blocks, numbered by its bits, ``(pairs, sets)`` in parts."""
    bits = np.concatenate([[0], 2 ** np.arange(order.shape[2] - 1)])
    which = bits[order].cumsum(axis=2)
    version, pair, place = np.nonzero(coefficients)
    at = version, pair, place
    shape = (order.shape[1], 2 * int(bits[-1]))
    whole = sp.csr_array((coefficients[at].astype(np.float32), (pair, which[at])), shape=shape)
    return [(slice(i, i + _PAIRS), whole[i : i + _PAIRS]) for i in range(0, shape[0], _PAIRS)]


def _by_set(
    weights: NDArray[np.float32], of_sets: list[tuple[slice, sp.csr_array]]
) -> Iterator[tuple[slice, slice, NDArray[np.float32]]]:
    """The differences from the masses of all sets of blocks."""
    n_sets = 2 ** (len(weights) - 1)
    step = max(1, _OF_SETS // n_sets)
    for start in range(0, weights.shape[1], step):
        w = np.ascontiguousarray(weights[:, start : start + step])
        mass = np.empty((n_sets, w.shape[1]), dtype=np.float32)
        mass[0] = w[0]
        for i, row in enumerate(w[1:]):
            np.add(mass[: 2**i], row, out=mass[2**i : 2 ** (i + 1)])
        mass *= mass
        for pairs, coefficients in of_sets:
            yield pairs, slice(start, start + step), coefficients @ mass


def _by_pair(
    weights: NDArray[np.float32], order: Index, coefficients: Array
) -> Iterator[tuple[slice, slice, NDArray[np.float32]]]:
    """The differences from the masses of each pair."""
    step = max(1, _OF_PAIRS // weights.shape[1])
    for start in range(0, order.shape[1], step):
        at = slice(start, start + step)
        shape = (len(order[0, at]), weights.shape[1])
        difference = np.zeros(shape, dtype=np.float32)
        for rows, coefficient in zip(order[:, at], coefficients[:, at].astype(np.float32), strict=True):
            mass, term = np.zeros(shape, dtype=np.float32), np.empty(shape, dtype=np.float32)
            for row, c in zip(rows.T, coefficient.T, strict=True):
                mass += np.take(weights, row, axis=0, out=term, mode="clip")
                np.multiply(mass, mass, out=term)
                term *= c[:, None]
                difference += term
        yield at, slice(None), difference


def _with_prior(advantages: Array) -> Array:
    return np.concatenate([np.zeros((len(advantages), 1)), advantages], axis=1)


def _groups(advantages: Array, tie: float) -> tuple[Array, Index]:
    """Sizes of the advantages and of the prior's zero in ascending order, NaN last, and which of them are equal."""
    size = np.sort(np.abs(_with_prior(advantages)), axis=1)
    return size, (~(np.diff(size, axis=1, prepend=0.0) <= tie)).cumsum(axis=1)
