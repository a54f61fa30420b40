r"""Studentized range distribution and the adjustment of p-values and intervals for many comparisons.

Notation: ``k`` means are compared, ``df`` are the degrees of freedom of the standard error, ``q`` is a
studentized range. For k independent standard normals the range exceeds w with probability

    S_k(w) = k int phi(z) {Phi(z)^(k-1) - [Phi(z) - Phi(z - w)]^(k-1)} dz,

and the studentized range exceeds q with probability ``int f_df(s) S_k(q s) ds``, where s is distributed as
``sqrt(chi2(df) / df)`` (Copenhaver & Holland 1988). Both integrands are positive, so the upper tail is
computed directly and keeps its relative accuracy at p = 1e-12, where 1 minus the lower tail would be noise.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from lmemtest._validate import check_choice, check_fraction
from lmemtest.errors import ArgumentError
from lmemtest.inference.studentize import TailTable, log_upper_tail, solve_tail, tabulate

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    from lmemtest.inference.simultaneous import LargestT

    FloatArray = NDArray[np.float64]

ADJUSTMENTS = ("tukey", "stepdown", "mvt", "shaffer", "holm", "sidak", "bonferroni", "fdr", "none")
_NODES_OVER_DF = 33  # of an interpolant of quantiles over the degrees of freedom
JOINT_ADJUSTMENTS = ("mvt", "dunnett")  # single-step tests from the joint t distribution of the family
ADJUSTMENT_NAMES = {
    "tukey": "Tukey",
    "mvt": "multivariate t",
    "dunnett": "Dunnett",
    "stepdown": "step-down (Tukey and Shaffer)",
    "shaffer": "Shaffer",
    "holm": "Holm",
    "sidak": "Šidák",
    "bonferroni": "Bonferroni",
    "fdr": "Benjamini-Hochberg",
    "none": "no",
}  # as they read before "adjustment"


def ptukey(q: ArrayLike, k: ArrayLike, df: ArrayLike, *, upper: bool = False) -> FloatArray:
    """Distribution function of the studentized range.

    Parameters
    ----------
    q : array_like of float
        Studentized range, any shape; negative values have probability 0, NaN gives NaN.
    k : array_like of int, >= 2
        Number of means compared; broadcast against `q`.
    df : array_like of float, > 0
        Degrees of freedom, need not be integers, ``inf`` for a known standard error; broadcast against `q`.
    upper : bool, default False
        Return the probability of a larger range (the p-value), computed directly.

    Returns
    -------
    (broadcast shape) float array
        Probabilities in [0, 1], NaN where an argument is NaN.

    Raises
    ------
    ArgumentError
        If a `k` is below 2 or a `df` is not positive.

    Notes
    -----
    All elements are integrated at once, by Gauss-Legendre quadrature in log s on both sides of the mode of
    each integrand. The relative error of the upper tail is below 1e-12 for k up to 60 and df from 0.5 to
    infinity, and below 1e-10 for k up to 300. R's ptukey stops at about 1e-6 for many means and is off by
    1e-4 to 1e-2 in the tails below 5 df.

    References
    ----------
    Copenhaver & Holland (1988), J. Stat. Comput. Simul. 30, 1-15, doi:10.1080/00949658808811082

    Examples
    --------
    >>> ptukey(3.5, 3, 20, upper=True).round(8).item()
    0.05589185
    """
    q_all, k_all, df_all = np.broadcast_arrays(
        np.asarray(q, dtype=float), np.asarray(k, dtype=float), np.asarray(df, dtype=float)
    )
    _check_k_and_df(k_all, df_all)
    log_sf = _log_upper_tail(q_all.ravel(), k_all.ravel(), df_all.ravel())
    tail = np.exp(log_sf) if upper else -np.expm1(log_sf)
    return tail.reshape(q_all.shape)


def qtukey(p: ArrayLike, k: ArrayLike, df: ArrayLike, *, upper: bool = False) -> FloatArray:
    """Quantile function of the studentized range.

    Parameters
    ----------
    p : array_like of float in [0, 1]
        Probability of a smaller range, or of a larger one with ``upper=True``.
    k, df : array_like
        As in `ptukey`.
    upper : bool, default False
        Read `p` as the upper tail; keeps accuracy for very small tails.

    Returns
    -------
    (broadcast shape) float array
        Quantiles, 0 for an empty and ``inf`` for a full lower tail.

    Raises
    ------
    ArgumentError
        If a `p` is outside [0, 1], a `k` is below 2 or a `df` is not positive.

    Notes
    -----
    One pair of means bounds the quantile from below, the Bonferroni inequality from above; all elements are
    then solved together in log q and the logit of the tail, by secant steps kept inside their brackets.

    Examples
    --------
    >>> qtukey(0.95, 3, 20).round(6).item()
    3.577935
    """
    p_all, k_all, df_all = np.broadcast_arrays(
        np.asarray(p, dtype=float), np.asarray(k, dtype=float), np.asarray(df, dtype=float)
    )
    _check_k_and_df(k_all, df_all)
    if np.any((p_all < 0) | (p_all > 1)):
        bad = p_all[(p_all < 0) | (p_all > 1)].flat[0]
        raise ArgumentError(f"p must be a probability in [0, 1], got {bad:g}.")
    shape = p_all.shape
    p_flat, k_flat, df_flat = p_all.ravel(), k_all.ravel(), df_all.ravel()
    out = np.full(p_flat.shape, np.nan)
    lower_empty, lower_full = (p_flat == 1, p_flat == 0) if upper else (p_flat == 0, p_flat == 1)
    known = ~(np.isnan(p_flat) | np.isnan(k_flat) | np.isnan(df_flat))
    out[known & lower_empty] = 0.0
    out[known & lower_full] = np.inf
    solve = known & ~lower_empty & ~lower_full
    if solve.any():
        rows = np.stack([p_flat, k_flat, df_flat])[:, solve]
        (p_row, k_row, df_row), where = np.unique(rows, axis=1, return_inverse=True)
        out[solve] = _solve_quantile(p_row, k_row, df_row, upper)[where.ravel()]
    return out.reshape(shape)


@dataclass(frozen=True, slots=True, kw_only=True)
class Adjusted:
    """Adjusted p-values and the critical values of the simultaneous intervals.

    Attributes
    ----------
    pvalue : (m,) float
        Adjusted two-sided p-values, NaN where the t ratio is NaN.
    critical : (m,) float
        The interval of row i is ``estimate[i] +- critical[i] * se[i]``.
    method : str
        Adjustment of the p-values that was applied.
    interval_method : str
        Adjustment behind `critical`.
    n_tests : int
        Number of comparisons in the family.
    notes : tuple of str
        What was replaced and why; empty if nothing was.
    """

    pvalue: FloatArray
    critical: FloatArray
    method: str
    interval_method: str
    n_tests: int
    notes: tuple[str, ...] = ()


def adjust(
    t_ratio: ArrayLike,
    df: ArrayLike,
    *,
    method: str = "tukey",
    n_means: int | None = None,
    level: float = 0.95,
    joint: LargestT | None = None,
) -> Adjusted:
    """Adjust the two-sided p-values and the intervals of one family of t ratios.

    Parameters
    ----------
    t_ratio : (m,) array_like of float
        Estimate over standard error; NaN rows have no p-value but count as tests, since they were asked for.
    df : array_like of float, > 0
        Degrees of freedom per row (or one for all), ``inf`` for normal tests.
    method : {"tukey", "stepdown", "mvt", "shaffer", "holm", "sidak", "bonferroni", "fdr", "none", "dunnett"}
        "tukey" refers sqrt(2) |t| to the studentized range of `n_means` means; "stepdown" is for pairs with variances
        of their own, see `step_down`; "mvt" and "dunnett" refer |t| to `joint`; "fdr" is Benjamini-Hochberg.
    n_means : int, optional
        Number of means whose pairwise differences are the family. Without it "tukey", "stepdown" and "shaffer" do not
        fit the family and are replaced by "sidak" and "holm", with a note.
    level : float in (0, 1), default 0.95
        Simultaneous confidence level.
    joint : LargestT, optional
        Distribution of the largest |t| of the family, from `simultaneous.largest_t`; needed by "mvt" and "dunnett".

    Returns
    -------
    Adjusted
        "holm", "shaffer" and "fdr" have no simultaneous intervals: theirs are Bonferroni intervals, with a note. Those
        of "stepdown" are of its first step: they exclude zero only where p is below 1 - level, but not always then.

    Raises
    ------
    ArgumentError
        If `method` is unknown or `level` is not strictly between 0 and 1.

    References
    ----------
    Holm (1979), Scand. J. Stat. 6, 65-70; Benjamini & Hochberg (1995), doi:10.1111/j.2517-6161.1995.tb02031.x

    Examples
    --------
    >>> adjust([2.5, 1.0, 3.1], 20, method="holm").pvalue.round(4)
    array([0.0425, 0.3293, 0.0169])
    """
    check_choice(method, "adjust", (*ADJUSTMENTS, "dunnett"))
    check_fraction(level, "level")
    t, nu = np.broadcast_arrays(np.asarray(t_ratio, dtype=float), np.asarray(df, dtype=float))
    m = t.size
    if method in JOINT_ADJUSTMENTS:
        return _adjust_jointly(t, nu, method, level, joint)
    notes: list[str] = []
    if method == "tukey" and n_means is None:
        method = "sidak"
        notes.append(
            "The Tukey adjustment fits only all pairwise differences of a set of means; "
            "the Šidák adjustment was used instead."
        )
    if method in ("stepdown", "shaffer") and n_means is None:
        notes.append(
            f"The {ADJUSTMENT_NAMES[method]} adjustment fits only all pairwise differences of a set of means; "
            "the Holm adjustment was used instead."
        )
        method = "holm"
    interval_method = method
    if method in ("holm", "shaffer", "fdr"):
        interval_method = "bonferroni"
        notes.append(
            f"The {ADJUSTMENT_NAMES[method]} adjustment has no simultaneous confidence intervals; "
            "the intervals shown are Bonferroni intervals and may disagree with the p-values."
        )
    if method == "tukey":
        pvalue = ptukey(np.sqrt(2.0) * np.abs(t), n_means or 2, nu, upper=True)
    elif method in ("stepdown", "shaffer"):
        pvalue = step_down(two_sided_p(t, nu), n_means or 2, first_by_range=method == "stepdown")
    else:
        pvalue = adjust_raw(two_sided_p(t, nu), method, m)
    return Adjusted(
        pvalue=pvalue,
        critical=critical_values(nu, method=interval_method, n_means=n_means, n_tests=m, level=level),
        method=method,
        interval_method=interval_method,
        n_tests=m,
        notes=tuple(notes),
    )


def _adjust_jointly(t: FloatArray, df: FloatArray, method: str, level: float, joint: LargestT | None) -> Adjusted:
    if joint is None:
        raise ArgumentError(
            f"adjust={method!r} needs the joint distribution of the family: pass joint=largest_t(correlation)."
        )
    return Adjusted(
        pvalue=joint.sf(np.abs(t), df),
        critical=joint.isf(1.0 - level, df),
        method=method,
        interval_method=method,
        n_tests=t.size,
        notes=(joint.note(np.abs(t), df),),
    )


def step_down(pvalue: FloatArray, n_means: int, *, first_by_range: bool) -> FloatArray:
    """Step-down adjustment of the p-values of all pairwise differences.

    Parameters
    ----------
    pvalue : (m,) float
        Unadjusted, m = n_means (n_means - 1) / 2; NaN stays NaN.
    n_means : int
    first_by_range : bool
        Whether a step may use the range of normal scores in place of the number of hypotheses.

    Returns
    -------
    (m,) float

    Notes
    -----
    Shaffer (1986): once r differences are found, not all sets of the others can be true at once; the r-th smallest
    p-value counts t_r times, t_r the largest number of pairs within groups of means that leaves r - 1 pairs or more
    between groups. Holm's count is m - r + 1. Valid for any dependence of the p-values.

    With the range, the smaller of that and P(Q > sqrt(2) z) is taken, Q the range of `n_means` independent normal
    variables and z the two-sided normal quantile of the p-value: Tukey's test on normal scores, which differs from
    Tukey's where the pairs have different variances and degrees of freedom. It allows for the correlation of the
    differences; that of their standard errors is ignored, and the size is simulated (docs/validation.md).

    References
    ----------
    Shaffer (1986), J. Am. Stat. Assoc. 81, 826-831, doi:10.1080/01621459.1986.10478341

    Examples
    --------
    Three means: after one difference is found, only one of the two others can be zero.

    >>> step_down(np.array([0.01, 0.04, 0.02]), 3, first_by_range=False)
    array([0.03, 0.04, 0.03])
    """
    out = np.full(pvalue.shape, np.nan)
    known = np.flatnonzero(~np.isnan(pvalue))
    order = known[np.argsort(pvalue[known], kind="stable")]
    p = pvalue[order]
    steps = most_true_pairs(n_means)[: len(p)] * p
    if first_by_range:
        z = -special.ndtri(np.clip(p, np.finfo(float).tiny, 1.0) / 2.0)
        steps = np.minimum(steps, ptukey(np.sqrt(2.0) * z, n_means, np.inf, upper=True))
    out[order] = np.minimum(1.0, np.maximum.accumulate(steps))
    return out


@lru_cache(maxsize=64)
def most_true_pairs(n_means: int) -> FloatArray:
    """Most pairs of means that can be equal after r = 0, 1, ... were found different (Shaffer 1986, table 1).

    Parameters
    ----------
    n_means : int

    Returns
    -------
    (m,) float

    Examples
    --------
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


def two_sided_p(t_ratio: ArrayLike, df: ArrayLike) -> FloatArray:
    """Two-sided p-value of a t ratio, normal where `df` is infinite.

    Parameters
    ----------
    t_ratio : array_like of float
    df : array_like of float, > 0

    Returns
    -------
    (broadcast shape) float array

    Examples
    --------
    >>> two_sided_p([2.0, 2.0], [10, float("inf")]).round(4)
    array([0.0734, 0.0455])
    """
    t, nu = np.broadcast_arrays(np.asarray(t_ratio, dtype=float), np.asarray(df, dtype=float))
    finite = np.isfinite(nu)
    tail = np.where(finite, special.stdtr(np.where(finite, nu, 1.0), -np.abs(t)), special.ndtr(-np.abs(t)))
    return np.where(np.isnan(nu), np.nan, 2.0 * tail)


def upper_tail(t_ratio: ArrayLike, df: ArrayLike) -> FloatArray:
    """One-sided p-value of a t ratio, P(T > t), normal where `df` is infinite.

    Parameters
    ----------
    t_ratio : array_like of float
    df : array_like of float, > 0

    Returns
    -------
    (broadcast shape) float array
        NaN where `t_ratio` is.

    Examples
    --------
    >>> upper_tail([2.0, -2.0], 10).round(4)
    array([0.0367, 0.9633])
    """
    t, nu = np.broadcast_arrays(np.asarray(t_ratio, dtype=float), np.asarray(df, dtype=float))
    finite = np.isfinite(nu)
    return np.where(finite, special.stdtr(np.where(finite, nu, 1.0), -t), special.ndtr(-t))


def t_quantile(tail: ArrayLike, df: ArrayLike) -> FloatArray:
    """Quantile of the t distribution that leaves `tail` above it, normal where `df` is infinite.

    Parameters
    ----------
    tail : array_like of float in (0, 1)
    df : array_like of float, > 0

    Returns
    -------
    (broadcast shape) float array

    Examples
    --------
    >>> t_quantile(0.025, [10, float("inf")]).round(4)
    array([2.2281, 1.96  ])
    """
    a, nu = np.broadcast_arrays(np.asarray(tail, dtype=float), np.asarray(df, dtype=float))
    finite = np.isfinite(nu)
    value = np.where(finite, special.stdtrit(np.where(finite, nu, 1.0), a), special.ndtri(a))
    return np.where(np.isnan(nu), np.nan, -value)


def critical_values(
    df: ArrayLike, *, method: str, n_tests: int, level: float, n_means: int | None = None
) -> FloatArray:
    """Half width of a simultaneous interval in standard errors.

    Parameters
    ----------
    df : array_like of float, > 0
    method : {"tukey", "stepdown", "sidak", "bonferroni", "none"}
    n_tests : int
        Size of the family; ignored by "tukey", "stepdown" and "none".
    level : float in (0, 1)
    n_means : int, optional
        Number of means; needed by "tukey" and "stepdown".

    Returns
    -------
    (shape of df) float array

    Examples
    --------
    >>> critical_values([20.0], method="tukey", n_tests=3, n_means=3, level=0.95).round(4)
    array([2.53])
    """
    nu = np.asarray(df, dtype=float)
    alpha = 1.0 - level
    if method == "tukey":
        return _over_df(lambda df: qtukey(alpha, n_means or 2, df, upper=True) / np.sqrt(2.0), nu)
    count = max(n_tests, 1)
    if method == "stepdown":
        z = qtukey(alpha, n_means or 2, np.inf, upper=True) / np.sqrt(2.0)
        return t_quantile(special.ndtr(-z), nu)
    per_test = {
        "none": alpha,
        "bonferroni": alpha / count,
        "sidak": float(-np.expm1(np.log1p(-alpha) / count)),
    }[method]
    return t_quantile(per_test / 2.0, nu)


def _over_df(quantile: Callable[[FloatArray], FloatArray], df: FloatArray) -> FloatArray:
    """A quantile at many degrees of freedom: its logarithm is smooth in 1 / df.

    Thousands of pairs of an unbalanced design have degrees of freedom of their own. A Chebyshev interpolant whose last
    coefficients are below 1e-13 has their quantiles to 12 digits; the range is halved until that is so.
    """
    values, where = np.unique(df, return_inverse=True)
    known = values[~np.isnan(values)]
    if len(known) <= 2 * _NODES_OVER_DF:
        return quantile(values)[where].reshape(df.shape)
    x = 1.0 / known
    middle, half = (x.max() + x.min()) / 2.0, (x.max() - x.min()) / 2.0
    nodes = np.cos(np.pi * (np.arange(_NODES_OVER_DF) + 0.5) / _NODES_OVER_DF)
    basis = np.polynomial.chebyshev.chebvander(nodes, _NODES_OVER_DF - 1)
    coefficients = 2.0 / _NODES_OVER_DF * basis.T @ np.log(quantile(1.0 / (middle + half * nodes)))
    coefficients[0] /= 2.0
    found = np.full(len(values), np.nan)
    if np.abs(coefficients[-3:]).max() < 1e-13 * max(1.0, abs(float(coefficients[0]))):
        found[: len(known)] = np.exp(np.polynomial.chebyshev.chebval((x - middle) / half, coefficients))
    else:
        for part in (x <= middle, x > middle):
            found[: len(known)][part] = _over_df(quantile, known[part])
    return found[where].reshape(df.shape)


def adjust_raw(pvalue: FloatArray, method: str, m: int) -> FloatArray:
    """Adjust the p-values of single tests.

    Parameters
    ----------
    pvalue : (n,) float
        Unadjusted; NaN stays NaN.
    method : {"none", "bonferroni", "sidak", "holm", "fdr"}
    m : int
        Number of tests in the family.

    Returns
    -------
    (n,) float

    Examples
    --------
    >>> adjust_raw(np.array([0.01, 0.04]), "holm", 2)
    array([0.02, 0.04])
    """
    if method == "none":
        return pvalue
    if method == "bonferroni":
        return np.minimum(1.0, m * pvalue)
    if method == "sidak":
        with np.errstate(divide="ignore"):  # log1p(-1) = -inf: an adjusted p-value of exactly 1
            return -np.expm1(m * np.log1p(-pvalue))
    out = np.full(pvalue.shape, np.nan)
    known = np.flatnonzero(~np.isnan(pvalue))
    order = known[np.argsort(pvalue[known], kind="stable")]
    rank = np.arange(1, len(known) + 1)
    if method == "holm":
        out[order] = np.minimum(1.0, np.maximum.accumulate((m - rank + 1) * pvalue[order]))
    else:
        out[order] = np.minimum(1.0, np.minimum.accumulate((m / rank * pvalue[order])[::-1])[::-1])
    return out


# ---------------------------------------------------------------------- the studentized range, in logs


def _check_k_and_df(k: FloatArray, df: FloatArray) -> None:
    if np.any(k < 2):
        raise ArgumentError(f"k, the number of means compared, must be at least 2, got {k[k < 2].flat[0]:g}.")
    if np.any(df <= 0):
        raise ArgumentError(f"df must be positive, got {df[df <= 0].flat[0]:g}.")


def _log_upper_tail(q: FloatArray, k: FloatArray, df: FloatArray) -> FloatArray:
    """Log P(Q > q) elementwise for one-dimensional arguments of equal length."""
    out = np.full(q.shape, np.nan)
    for means in np.unique(k[~np.isnan(k)]):
        part = k == means
        out[part] = log_upper_tail(q[part], df[part], _range_table(float(means)))
    return out


@lru_cache(maxsize=64)
def _range_table(k: float) -> TailTable:
    return tabulate(lambda w: _log_range_survival(w, k))


def _log_range_survival(w: FloatArray, k: float) -> FloatArray:
    """Log S_k(w) by the trapezoidal rule, which converges geometrically on Gaussian-tailed integrands.

    The integrand is at most k^2 phi(z) Phi(z - w), centred at w/2 with unit-scale tails, moved up by
    at most sqrt(2 log k); 8 units below and 9.5 above leave less than 1e-17 of it.
    """
    step = 0.1
    z = w[:, None] / 2.0 + np.arange(-8.0, 9.5, step)
    log_phi = special.log_ndtr(z)
    ratio = np.minimum(np.exp(special.log_ndtr(z - w[:, None]) - log_phi), 1.0 - 1e-16)
    with np.errstate(divide="ignore"):  # underflowed ratios add nothing
        log_excess = np.log(-np.expm1((k - 1.0) * np.log1p(-ratio)))
    exponent = -0.5 * z**2 + (k - 1.0) * log_phi + log_excess
    top = exponent.max(axis=1)
    total = np.exp(exponent - top[:, None]).sum(axis=1)
    return np.minimum(0.0, np.log(total) + top + np.log(k * step / np.sqrt(2.0 * np.pi)))


def _solve_quantile(p: FloatArray, k: FloatArray, df: FloatArray, upper: bool) -> FloatArray:
    """Quantiles inside the one-pair and Bonferroni bounds."""
    tail = p if upper else 1.0 - p
    target = special.logit(tail) if upper else -special.logit(p)

    def range_of(one_sided: FloatArray) -> FloatArray:
        t = t_quantile(np.maximum(one_sided, np.finfo(float).tiny), df)
        return np.sqrt(2.0) * np.maximum(t, 1e-12)

    low, high = range_of(tail / 2.0) * (1.0 - 1e-9), range_of(tail / (k * (k - 1.0))) * (1.0 + 1e-9)
    return solve_tail(lambda q: _log_upper_tail(q, k, df), target, low, high)
