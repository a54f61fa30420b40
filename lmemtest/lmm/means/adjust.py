"""Adjustment of p-values and intervals for many comparisons.

Whatever the adjustment, each comparison is in the end tested by itself, at a *raw level* ``a``: it is significant where
its unadjusted p-value is below ``a``, and its interval has the level ``1 - a``. So a p-value and the interval beside it
are one test, and the interval excludes zero exactly where the comparison is significant. Single-step adjustments have
one raw level. Of a step-down adjustment the r-th smallest p-value has that of its step, as long as all before it are
significant; the rest has the level of the step at which the procedure ended. Of Benjamini and Hochberg's, all have
that of the last step (Benjamini & Yekutieli 2005).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from lmemtest.core.options import ADJUSTMENT_NAMES, ADJUSTMENTS, JOINT_ADJUSTMENTS
from lmemtest.core.rounding import below
from lmemtest.core.validate import check_choice, check_fraction
from lmemtest.errors import ArgumentError
from lmemtest.lmm.distributions.student import t_quantile, two_sided_p
from lmemtest.lmm.distributions.studentized_range import ptukey, qtukey
from lmemtest.lmm.sequential.successive_t import level_of_look

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from lmemtest.core.arrays import Array
    from lmemtest.lmm.distributions.largest_t import LargestT


_NODES_OVER_DF = 33  # of an interpolant of quantiles over the degrees of freedom
_SAME_DF = 1e-13  # relative difference of degrees of freedom that is rounding error
_SAME_P = 1e-6  # of unadjusted p-values
# what fits only all pairs of means, and what is used elsewhere
_OF_ALL_PAIRS = {"tukey": "sidak", "stepdown": "holm", "shaffer": "holm", "singlestep": "bonferroni"}


def fitting_adjustment(method: str, n_means: int | None) -> tuple[str, tuple[str, ...]]:
    """The adjustment for a family that is all pairs of `n_means` means, or is not (None), with a note if it is another.

    "tukey", "stepdown", "singlestep" and "shaffer" fit only all pairs; "sidak", "holm" and "bonferroni" take their
    place elsewhere.

    >>> fitting_adjustment("tukey", None)[0], fitting_adjustment("tukey", 3)[0]
    ('sidak', 'tukey')
    """
    if n_means is not None or method not in _OF_ALL_PAIRS:
        return method, ()
    used = _OF_ALL_PAIRS[method]
    return used, (
        f"The {ADJUSTMENT_NAMES[method]} adjustment fits only all pairwise differences of a set of means; "
        f"the {ADJUSTMENT_NAMES[used]} adjustment was used instead.",
    )


def adjust(
    t_ratio: ArrayLike,
    df: ArrayLike,
    *,
    method: str = "tukey",
    n_means: int | None = None,
    alpha: float = 0.05,
    joint: LargestT | None = None,
) -> tuple[Array, Array]:
    """Adjusted two-sided p-values of one family of t ratios, and half widths of their intervals in standard errors.

    NaN rows have no p-value but count as tests, since they were asked for. "tukey" refers sqrt(2) |t| to the
    studentized range of `n_means` means; "stepdown" and its first step "singlestep" are for pairs with variances of
    their own, see `step_down`; "mvt" and "dunnett" refer |t| to `joint`, which they need; "fdr" is
    Benjamini-Hochberg. `n_means` is the number of means whose pairwise differences are the family; without it the
    adjustment is that of `fitting_adjustment`.

    Intervals of "stepdown", "shaffer" and "holm" are those of the step at which a pair was decided. Each covers its
    difference with probability 1 - `alpha` at least, as it is never shorter than the unadjusted one, and the chance
    that any of them excludes a difference that is truly zero is `alpha`; that all cover at once is less likely than
    1 - `alpha`. "singlestep", "tukey", "sidak", "bonferroni", "mvt" and "dunnett" have simultaneous intervals. Those of
    "fdr" cover, of the pairs called different, the share 1 - `alpha` on average.

    Holm (1979), Scand. J. Stat. 6, 65-70; Benjamini & Hochberg (1995), doi:10.1111/j.2517-6161.1995.tb02031.x;
    Benjamini & Yekutieli (2005), doi:10.1198/016214504000001907

    >>> adjust([2.5, 1.0, 3.1], 20, method="holm")[0].round(4)
    array([0.0425, 0.3293, 0.0169])
    """
    check_choice(method, "adjust", (*ADJUSTMENTS, "dunnett"))
    check_fraction(alpha, "alpha")
    t, nu = np.broadcast_arrays(np.asarray(t_ratio, dtype=float), np.asarray(df, dtype=float))
    if method in JOINT_ADJUSTMENTS:
        if joint is None:
            raise ArgumentError(
                f"adjust={method!r} needs the joint distribution of the family: pass joint=largest_t(correlation)."
            )
        return joint.sf(np.abs(t), nu), joint.isf(alpha, nu)
    method, _ = fitting_adjustment(method, n_means)
    raw = two_sided_p(t, nu)
    if method == "tukey":
        p_value = ptukey(np.sqrt(2.0) * np.abs(t), n_means or 2, nu, upper=True)
    elif method == "singlestep":
        p_value = range_p(raw, n_means or 2)
    elif method in ("stepdown", "shaffer"):
        p_value = step_down(raw, n_means or 2, first_by_range=method == "stepdown")
    else:
        p_value = adjust_raw(raw, method, t.size)
    return p_value, critical_values(nu, raw, method=method, n_means=n_means, n_tests=t.size, alpha=alpha)


def step_down(p_value: Array, n_means: int, *, first_by_range: bool) -> Array:
    """Step-down adjustment of the p-values of all n_means (n_means - 1) / 2 pairwise differences; NaN stays NaN.

    Shaffer (1986): once r differences are found, not all sets of the others can be true at once; the r-th smallest
    p-value counts t_r times, t_r the largest number of pairs within groups of means that leaves r - 1 pairs or more
    between groups. Holm's count is m - r + 1. Valid for any dependence of the p-values.

    With `first_by_range`, the smaller of that and P(Q > sqrt(2) z) is taken, Q the range of `n_means` independent
    normal variables and z the two-sided normal quantile of the p-value: Tukey's test on normal scores, which differs
    from Tukey's where the pairs have different variances and degrees of freedom. It allows for the correlation of the
    differences; that of their standard errors is ignored, and the size is simulated (docs/developers/validation.md).

    Shaffer (1986), J. Am. Stat. Assoc. 81, 826-831, doi:10.1080/01621459.1986.10478341

    Three means: after one difference is found, only one of the two others can be zero.

    >>> step_down(np.array([0.01, 0.04, 0.02]), 3, first_by_range=False)
    array([0.03, 0.04, 0.03])
    """
    out = np.full(p_value.shape, np.nan)
    tested = np.flatnonzero(~np.isnan(p_value))
    order = tested[np.argsort(p_value[tested], kind="stable")]
    p = p_value[order]
    steps = most_true_pairs(n_means)[: len(p)] * p
    if first_by_range:
        steps = np.minimum(steps, range_p(p, n_means))
    out[order] = np.minimum(1.0, np.maximum.accumulate(steps))
    return out


def range_p(p_value: Array, n_means: int) -> Array:
    """P(Q > sqrt(2) z) of unadjusted p-values, Q the range of `n_means` independent normal variables."""
    z = -special.ndtri(np.clip(p_value, np.finfo(float).tiny, 1.0) / 2.0)
    return ptukey(np.sqrt(2.0) * z, n_means, np.inf, upper=True)


@lru_cache(maxsize=64)
def most_true_pairs(n_means: int) -> Array:
    """Most pairs of means that can be equal after r = 0, 1, ... were found different (Shaffer 1986, table 1).

    >>> most_true_pairs(4)
    array([6., 3., 3., 3., 2., 1.])
    """
    possible = [1]  # bit c of entry k: k means can be grouped so that c pairs are within groups
    for k in range(1, n_means + 1):
        bits = 0
        for size in range(1, k + 1):
            bits |= possible[k - size] << (size * (size - 1) // 2)
        possible.append(bits)
    m = n_means * (n_means - 1) // 2
    counts = np.array([c for c in range(m + 1) if possible[n_means] >> c & 1], dtype=float)
    counts = counts[counts > 0]
    return counts[np.searchsorted(counts, m - np.arange(m), side="right") - 1]


def raw_levels(
    p_value: Array | None, *, method: str, n_tests: int, alpha: float, n_means: int | None = None
) -> Array | float:
    """The level at which each unadjusted p-value is tested in the end, any adjustment but "tukey" and the joint ones.

    Without p-values that of the first step, which does not depend on the data. Equal p-values, such as those of two
    copies of an algorithm, are tested at one level, whichever comes first.

    >>> p = np.array([0.30, 0.001, 0.02])
    >>> raw_levels(p, method="holm", n_tests=3, alpha=0.05).round(4)
    array([0.05  , 0.0167, 0.025 ])
    >>> raw_levels(p, method="fdr", n_tests=3, alpha=0.05).round(4)
    array([0.0333, 0.0333, 0.0333])
    """
    count = max(n_tests, 1)
    if method not in ("stepdown", "shaffer", "holm", "fdr"):
        single = {"none": alpha, "bonferroni": alpha / count, "sidak": float(-np.expm1(np.log1p(-alpha) / count))}
        return _range_level(n_means or 2, alpha) if method == "singlestep" else single[method]
    if method == "holm":
        levels = alpha / np.arange(count, 0, -1)
    elif method == "fdr":
        levels = alpha * np.arange(1, count + 1) / count
    else:
        levels = alpha / most_true_pairs(n_means or 2)
    if method == "stepdown":
        levels = np.maximum(levels, _range_level(n_means or 2, alpha))
    if p_value is None:
        return float(levels[0])
    tested = np.flatnonzero(~np.isnan(p_value))
    order = tested[np.argsort(p_value[tested], kind="stable")]
    passed = below(p_value[order], levels[: len(order)])
    out = np.full(p_value.shape, levels[0])
    if method == "fdr":
        last = np.flatnonzero(passed)
        out[:] = levels[last[-1]] if len(last) else levels[0]
        return out
    end = int(np.argmin(passed)) if not passed.all() else len(order) - 1
    step = np.minimum(np.arange(len(order)), end)
    ascending = p_value[order]
    apart = np.append(True, ascending[1:] > ascending[:-1] * (1.0 + _SAME_P))
    step = np.minimum(step, np.maximum.accumulate(np.where(apart, step, 0)))
    out[order] = levels[step]
    return out


def _range_level(n_means: int, alpha: float) -> float:
    """The level of a single test with the critical value of the range of normal variables."""
    return float(2.0 * special.ndtr(-qtukey(alpha, n_means, np.inf, upper=True) / np.sqrt(2.0)))


def level_of_pairs(n: int, sizes: Sequence[int], alpha: float, n_means: int, spending: str = "obrien_fleming") -> float:
    """The level at which all pairs of means are tested at the look at n units, one of several, so that they keep alpha.

    Every pair by itself spends over the looks what the first step gives it. To spend the level of the family instead
    lets too much pass where looks are many: pairs reach their boundaries at different ones.

    >>> round(level_of_pairs(20, [10, 20, 40], 0.05, 2), 5), round(level_of_pairs(20, [10, 20, 40], 0.05, 4), 5)
    (0.00304, 0.00086)
    """
    each = level_of_look(n, sizes, _range_level(n_means, alpha), spending)
    return float(range_p(np.array([each]), n_means)[0]) if each > 0.0 else 0.0


def critical_values(
    df: ArrayLike,
    p_value: Array | None = None,
    *,
    method: str,
    n_tests: int,
    alpha: float,
    n_means: int | None = None,
) -> Array:
    """Half widths, in standard errors, of intervals that agree with the adjusted p-values.

    `p_value` are the unadjusted ones; without them the critical values are those of the first step. `n_tests` is the
    size of the family, `n_means` the number of means where it is all pairs of them.

    >>> critical_values([20.0], method="tukey", n_tests=3, n_means=3, alpha=0.05).round(4)
    array([2.53])
    """
    nu = np.asarray(df, dtype=float)
    if method == "tukey":
        return _over_df(lambda df: qtukey(alpha, n_means or 2, df, upper=True) / np.sqrt(2.0), nu)
    levels = raw_levels(p_value, method=method, n_tests=n_tests, alpha=alpha, n_means=n_means)
    return t_quantile(np.asarray(levels) / 2.0, nu)


def _over_df(quantile: Callable[[Array], Array], df: Array) -> Array:
    """A quantile at many degrees of freedom: its logarithm is smooth in 1 / df.

    Thousands of pairs of an unbalanced design have degrees of freedom of their own. A Chebyshev interpolant whose last
    coefficients are below 1e-13 has their quantiles to 12 digits; the range is halved until that is so.
    """
    values, where = np.unique(df, return_inverse=True)
    apart = np.append(True, ~(values[1:] <= values[:-1] * (1.0 + _SAME_DF)))  # pairs that are alike differ by rounding
    values, where = values[apart], (np.cumsum(apart) - 1)[where]
    finite = values[~np.isnan(values)]
    if len(finite) <= 2 * _NODES_OVER_DF:
        return quantile(values)[where].reshape(df.shape)
    x = 1.0 / finite
    middle, half = (x.max() + x.min()) / 2.0, (x.max() - x.min()) / 2.0
    nodes = np.cos(np.pi * (np.arange(_NODES_OVER_DF) + 0.5) / _NODES_OVER_DF)
    basis = np.polynomial.chebyshev.chebvander(nodes, _NODES_OVER_DF - 1)
    coefficients = 2.0 / _NODES_OVER_DF * basis.T @ np.log(quantile(1.0 / (middle + half * nodes)))
    coefficients[0] /= 2.0
    quantiles = np.full(len(values), np.nan)
    if np.abs(coefficients[-3:]).max() < 1e-13 * max(1.0, abs(float(coefficients[0]))):
        quantiles[: len(finite)] = np.exp(np.polynomial.chebyshev.chebval((x - middle) / half, coefficients))
    else:
        for part in (x <= middle, x > middle):
            quantiles[: len(finite)][part] = _over_df(quantile, finite[part])
    return quantiles[where].reshape(df.shape)


def adjust_raw(p_value: Array, method: str, m: int) -> Array:
    """Adjust the p-values of `m` single tests by "none", "bonferroni", "sidak", "holm" or "fdr"; NaN stays NaN.

    >>> adjust_raw(np.array([0.01, 0.04]), "holm", 2)
    array([0.02, 0.04])
    """
    if method == "none":
        return p_value
    if method == "bonferroni":
        return np.minimum(1.0, m * p_value)
    if method == "sidak":
        with np.errstate(divide="ignore"):  # log1p(-1) = -inf: an adjusted p-value of exactly 1
            return -np.expm1(m * np.log1p(-p_value))
    out = np.full(p_value.shape, np.nan)
    tested = np.flatnonzero(~np.isnan(p_value))
    if method == "fdr":
        from scipy.stats import false_discovery_control

        untested = np.ones(max(m - len(tested), 0))  # what has no p-value counts as a test
        tests = np.concatenate([p_value[tested], untested])
        out[tested] = false_discovery_control(tests)[: len(tested)]
        return out
    order = tested[np.argsort(p_value[tested], kind="stable")]
    rank = np.arange(1, len(tested) + 1)
    out[order] = np.minimum(1.0, np.maximum.accumulate((m - rank + 1) * p_value[order]))
    return out
