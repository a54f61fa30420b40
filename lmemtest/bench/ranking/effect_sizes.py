"""Effect sizes of many pairs of samples at once: how large a difference is, in a unit that papers share.

- Standardised means: `cohen_d` (pooled standard deviation), `hedges_g` (the same without its small-sample bias),
  `cohen_dz` (standard deviation of the paired differences), and `standardised` (that of a mixed model).
- Means of signs: `cliff_delta` (of all differences between the samples) and `rank_biserial` (of the paired
  differences, weighted by their ranks); both lie in [-1, 1].
- `akinshin_gamma`: medians over a pooled median absolute deviation.

Intervals were chosen by their coverage in simulations (docs/effect-sizes.md); `effect_size` says what they are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import special

from lmemtest.core.rounding import below
from lmemtest.core.validate import (
    check_choice,
    check_flag,
    check_fraction,
    check_magnitude,
    check_positive_int,
    real,
    resolve_rng,
)
from lmemtest.errors import ArgumentError, DataError
from lmemtest.lmm.distributions.student import t_noncentrality_interval, t_quantile

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from lmemtest.core.arrays import Array, Index


NAMES = {
    "cohen_d": "Cohen's d",
    "hedges_g": "Hedges' g",
    "cohen_dz": "Cohen's d_z",
    "cliff_delta": "Cliff's delta",
    "akinshin_gamma": "Akinshin's gamma",
    "rank_biserial": "rank-biserial correlation",
    "standardised": "standardised difference",
}
KINDS = tuple(kind for kind in NAMES if kind != "standardised")  # of two samples
PAIRED_ONLY = ("cohen_dz", "rank_biserial")
MAGNITUDES = ("negligible", "small", "medium", "large")
# Where each but the first begins: Cohen (1988) for standardised differences, Romano et al. (2006) for means of signs.
COHEN, ROMANO = (0.2, 0.5, 0.8), (0.147, 0.33, 0.474)
THRESHOLDS = {kind: ROMANO if kind in ("cliff_delta", "rank_biserial") else COHEN for kind in NAMES}

MAD_OF_NORMAL = 1.0 / float(special.ndtri(0.75))  # 1.4826: a median absolute deviation becomes a standard deviation
_AT_ONCE = 2_000_000  # scores of resamples in memory
_SAME = 1024.0 * np.finfo(float).eps  # of the largest score: scores that are closer are one, computed in two ways


class Effects(NamedTuple):
    """Effect sizes of p pairs of samples with their intervals, ``(p,)`` each; NaN where there is no value."""

    estimate: Array
    ci_low: Array
    ci_high: Array


def effect_sizes(
    left: ArrayLike,
    right: ArrayLike,
    kind: str,
    *,
    paired: bool = True,
    level: float = 0.95,
    n_draws: int = 2000,
    rng: int | np.random.Generator | None = None,
) -> Effects:
    """`effect_size` of p pairs of samples at once: `left` is (p, n) and `right` (p, m), a pair of samples per row.

    All rows are resampled alike, so the interval of a pair does not depend on the others.
    """
    x, y = check_samples(left, right, ("left", "right"), 2, kind, paired)
    tail = 0.5 * (1.0 - check_fraction(level, "level"))
    n_draws, generator = check_positive_int(n_draws, "n_draws"), resolve_rng(rng)
    # up to it a difference is rounding, and so is a spread
    same = _SAME * np.maximum(np.abs(x).max(axis=1), np.abs(y).max(axis=1))
    if kind == "akinshin_gamma":
        if below((n_draws + 1) * tail, 1.0):
            raise ArgumentError(
                f"n_draws={n_draws:,} resamples have no quantile with {tail:.3g} beyond it. Take "
                f"n_draws={int(np.ceil(1.0 / tail)):,} at least, or a lower level."
            )
        return _akinshin(x, y, same, paired, tail, n_draws, generator)
    if kind == "cliff_delta":
        return _cliff(x, y, same, paired, tail)
    if kind == "rank_biserial":
        return _rank_biserial(x - y, same, tail)
    return _cohen(x, y, same, kind, paired, level)


def magnitude(value: float, kind: str) -> str:
    """The word for an effect of this size; at a threshold within rounding the larger one, and "" for NaN.

    >>> magnitude(-0.5, "cohen_d"), magnitude(0.3 - 0.1, "hedges_g"), magnitude(0.4, "cliff_delta")
    ('medium', 'small', 'medium')
    """
    return magnitudes([value], kind)[0]


def magnitudes(values: ArrayLike, kind: str) -> list[str]:
    """`magnitude` of many values."""
    thresholds = THRESHOLDS[check_choice(kind, "kind", tuple(NAMES))]
    size = np.abs(np.asarray(values, dtype=float))
    passed = np.sum([~below(size, limit) for limit in thresholds], axis=0)
    return ["" if unknown else MAGNITUDES[at] for at, unknown in zip(passed, np.isnan(size), strict=True)]


def standardised(
    estimate: ArrayLike,
    ci_low: ArrayLike,
    ci_high: ArrayLike,
    sd: ArrayLike,
    sd_df: ArrayLike = np.inf,
    level: float = 0.95,
) -> Effects:
    """Differences of means over a standard deviation, as of the residual of a mixed model, with their intervals.

    The distances from the estimate to the limits are those of the difference and of 1 / `sd` (chi-square, `sd_df`
    degrees of freedom), each as if the other were known, added as squares (Zou & Donner 2008). With infinite `sd_df`
    the limits are those given over `sd`.

    Zou & Donner (2008), Stat. Med. 27, 1693-1702, doi:10.1002/sim.3095

    >>> tuple(float(x.round(3)) for x in standardised(0.5, 0.1, 0.9, 0.5, 30))
    (1.0, 0.161, 1.839)
    """
    difference, low, high, unit, df = np.broadcast_arrays(
        *(np.asarray(x, dtype=float) for x in (estimate, ci_low, ci_high, sd, sd_df))
    )
    tail = 0.5 * (1.0 - check_fraction(level, "level"))
    finite = np.where(np.isposinf(df), 1.0, df)
    shrunk, grown = (
        np.where(np.isposinf(df), 1.0, np.sqrt(special.chdtri(finite, p) / finite)) for p in (1.0 - tail, tail)
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        effect = np.where(unit > 0.0, difference / unit, np.where(difference == 0.0, 0.0, np.nan))
        inner, outer = np.abs(effect) * (1.0 - shrunk), np.abs(effect) * (grown - 1.0)
        towards, away = np.where(difference >= 0.0, [inner, outer], [outer, inner])
        ends = (
            effect - np.hypot((difference - low) / unit, towards),
            effect + np.hypot((high - difference) / unit, away),
        )
    none = ~(unit > 0.0)
    return Effects(effect, np.where(none, np.nan, ends[0]), np.where(none, np.nan, ends[1]))


# ---------------------------------------------------------------------- standardised means


def _cohen(x: Array, y: Array, same: Array, kind: str, paired: bool, level: float) -> Effects:
    """d, g and d_z with intervals from the noncentral t; see `effect_size`."""
    n, m = x.shape[1], y.shape[1]
    difference = x.mean(axis=1) - y.mean(axis=1)
    of_x, of_y = x.var(axis=1, ddof=1), y.var(axis=1, ddof=1)
    pooled = np.sqrt(((n - 1) * of_x + (m - 1) * of_y) / (n + m - 2))
    if paired:
        tested = (x - y).std(axis=1, ddof=1)
        unit, df, root = tested if kind == "cohen_dz" else pooled, n - 1.0, np.sqrt(n)
    else:
        tested = unit = pooled
        df, root = n + m - 2.0, np.sqrt(n * m / (n + m))
    t_ratio = np.divide(root * difference, tested, out=np.full(len(x), np.nan), where=tested > same)
    scale = np.divide(tested, root * unit, out=np.full(len(x), np.nan), where=unit > same)
    low, high = t_noncentrality_interval(t_ratio, df, level)
    estimate = _over(difference, unit, same)
    if kind == "hedges_g":
        estimate = estimate * (_unbiased(_pooled_df(of_x, of_y, tested, n)) if paired else _unbiased(df))
    return Effects(estimate, low * scale, high * scale)


def _pooled_df(of_x: Array, of_y: Array, of_differences: Array, n: int) -> Array:
    """Degrees of freedom of the mean of two variances of n pairs, by its mean and variance under normality."""
    covariance = 0.5 * (of_x + of_y - of_differences**2)
    fourth = of_x**2 + of_y**2 + 2.0 * covariance**2
    return (n - 1.0) * np.divide((of_x + of_y) ** 2, fourth, out=np.ones(len(of_x)), where=fourth > 0.0)


def _over(difference: Array, unit: Array, same: Array) -> Array:
    """A difference in units of a spread; without spread 0 if there is no difference, else NaN."""
    without = np.where(np.abs(difference) <= same, 0.0, np.nan)
    return np.divide(difference, unit, out=without, where=unit > same)


def _unbiased(df: ArrayLike) -> Array:
    """The factor of Hedges (1981): the true value over the mean of a standardised normal difference.

    NaN with one degree of freedom (two pairs), where there is no mean.
    """
    half = 0.5 * np.asarray(df, dtype=float)
    factor = np.exp(special.gammaln(half) - special.gammaln(half - 0.5)) / np.sqrt(half)
    return np.where(half > 0.5 * (1.0 + 1e-9), factor, np.nan)


# ---------------------------------------------------------------------- means of signs


def _cliff(x: Array, y: Array, same: Array, paired: bool, tail: float) -> Effects:
    n, m = x.shape[1], y.shape[1]
    of_x, of_y = _dominance(x, y, same)
    delta = of_x.sum(axis=1) / (n * m)
    if paired:
        variance = (of_x + of_y).var(axis=1, ddof=1) / n**3
        df = np.full(len(x), n - 1.0)
    else:
        first, second = of_x.var(axis=1, ddof=1) / (m * m * n), of_y.var(axis=1, ddof=1) / (n * n * m)
        variance = first + second
        least = first**2 / (n - 1.0) + second**2 / (m - 1.0)
        df = np.divide(variance**2, least, out=np.full(len(x), n + m - 2.0), where=least > 0.0)
    known = (variance > 0.0) & (np.abs(delta) < 1.0)
    size = np.divide(1.0 - delta**2, variance, out=np.full(len(x), 3.0 * n * m / (n + m + 1.0)), where=known)
    bound = t_quantile(tail, df) ** 2 / size
    return Effects(delta, _score_limit(delta, bound, -1), _score_limit(delta, bound, 1))


def _dominance(x: Array, y: Array, same: Array) -> tuple[Array, Array]:
    """For each x the y below it less those above; for each y the x above it less those below. Whole numbers."""
    n = x.shape[1]
    codes = _codes(np.concatenate([x, y], axis=1), same)
    below_y, below_x = _below_less_above(codes[:, n:], codes.shape[1]), _below_less_above(codes[:, :n], codes.shape[1])
    return np.take_along_axis(below_y, codes[:, :n], axis=1), -np.take_along_axis(below_x, codes[:, n:], axis=1)


def _rank_biserial(differences: Array, same: Array, tail: float) -> Effects:
    d = np.where(np.abs(differences) <= same[:, None], 0.0, differences)
    n = d.shape[1]
    codes = _codes(np.abs(d), same)
    ranks = (np.take_along_axis(_below_less_above(codes, n), codes, axis=1) + n + 1.0) / 2.0
    ranks = np.where(d == 0.0, 0.0, ranks - (d == 0.0).sum(axis=1, keepdims=True))
    total = ranks.sum(axis=1)
    some = total > 0.0
    r = np.divide((np.sign(d) * ranks).sum(axis=1), total, out=np.zeros(len(d)), where=some)
    step = np.divide(1.0, total, out=np.full(len(d), np.nan), where=some)  # half the distance to the next value of r
    bound = special.ndtri(tail) ** 2 * np.square(ranks).sum(axis=1) * step**2
    low = _score_limit(np.maximum(r - step, -1.0), bound, -1)
    return Effects(r, low, _score_limit(np.minimum(r + step, 1.0), bound, 1))


def _score_limit(mean: Array, bound: Array, side: int) -> Array:
    """The x with (mean - x)^2 = bound (1 - x^2), below (-1) or above (1) a mean of signs: Wilson's limit."""
    return np.clip((mean + side * np.sqrt(bound * (1.0 + bound - mean**2))) / (1.0 + bound), -1.0, 1.0)


def _codes(values: Array, same: Array) -> Index:
    """0, 1, 2, ... in ascending order within each row; neighbours at most `same` apart are tied."""
    order = np.argsort(values, axis=1, kind="stable")
    apart = np.diff(np.take_along_axis(values, order, axis=1), axis=1) > same[:, None]
    codes = np.zeros(values.shape, dtype=np.intp)
    np.put_along_axis(codes, order[:, 1:], np.cumsum(apart, axis=1), axis=1)
    return codes


def _below_less_above(codes: Index, width: int) -> Array:
    """By code 0 to width - 1 of each row: how many of the row's codes are below less how many are above."""
    offset = width * np.arange(len(codes))[:, None]
    count = np.bincount((codes + offset).ravel(), minlength=len(codes) * width).reshape(len(codes), width)
    return 2.0 * np.cumsum(count, axis=1) - count - codes.shape[1]


# ---------------------------------------------------------------------- medians


def _akinshin(
    x: Array, y: Array, same: Array, paired: bool, tail: float, n_draws: int, rng: np.random.Generator
) -> Effects:
    n, m = x.shape[1], y.shape[1]
    difference, unit = _medians(x, y, np.arange(n)[None], np.arange(m)[None])
    estimate = _over(difference[:, 0], unit[:, 0], same)
    draws = []
    at_once = max(2, _AT_ONCE // max(n, m) // 2 * 2)
    for done in range(0, n_draws, at_once):
        count = min(at_once, n_draws - done)
        of_x = of_y = rng.integers(min(n, m), size=(count, min(n, m)))
        if not paired:
            # Exchanging the samples must change nothing but the sign: the shorter one is drawn first, and of two that
            # are as long the second has the resamples of the first in reverse order.
            of_y = of_x[::-1] if n == m else rng.integers(max(n, m), size=(count, max(n, m)))
            of_x, of_y = (of_y, of_x) if n > m else (of_x, of_y)
        difference, unit = _medians(x, y, of_x, of_y)
        without = np.where(np.abs(difference) <= same[:, None], 0.0, np.copysign(np.inf, difference))
        draws.append(np.divide(difference, unit, out=without, where=unit > same[:, None]))
    ordered = np.sort(np.concatenate(draws, axis=1), axis=1)
    cut = int((n_draws + 1) * tail * (1.0 + 1e-12))
    none = np.isnan(estimate) | (ordered[:, 0] == ordered[:, -1])  # no spread, or the same in every resample
    low, high = (np.where(none, np.nan, ordered[:, at]) for at in (cut - 1, n_draws - cut))
    return Effects(estimate, low, high)


def _medians(x: Array, y: Array, of_x: Index, of_y: Index) -> tuple[Array, Array]:
    """Difference of medians and pooled median absolute deviation by row and resample."""
    n, m = x.shape[1], y.shape[1]
    (middle_x, mad_x), (middle_y, mad_y) = _resampled(x, of_x), _resampled(y, of_y)
    return middle_x - middle_y, np.sqrt(((n - 1) * mad_x**2 + (m - 1) * mad_y**2) / (n + m - 2))


def _resampled(values: Array, index: Index) -> Array:
    """Medians and median absolute deviations by row and resample; once for equal rows, since pairs share algorithms."""
    rows, which = np.unique(values, axis=0, return_inverse=True)
    out = np.empty((2, len(rows), len(index)))
    for i, row in enumerate(rows):
        drawn = row[index]
        out[0, i] = _median(drawn)
        out[1, i] = MAD_OF_NORMAL * _median(np.abs(drawn - out[0, i][:, None]))
    return out[:, np.ravel(which)]


def _median(values: Array) -> Array:
    """Of each row: numpy's with one selection instead of three, which takes a fifth of the time."""
    middle = values.shape[1] // 2
    parted = np.partition(values, middle, axis=1)
    upper = parted[:, middle]
    return upper if values.shape[1] % 2 else 0.5 * (parted[:, :middle].max(axis=1) + upper)


# ---------------------------------------------------------------------- arguments


def check_samples(a: Any, b: Any, names: tuple[str, str], ndim: int, kind: str, paired: bool) -> tuple[Array, Array]:
    """Two samples, or two matrices with a sample per row, as a kind of effect size needs them."""
    check_choice(kind, "kind", KINDS)
    x, y = (_check_scores(values, name, ndim) for values, name in zip((a, b), names, strict=True))
    if not check_flag(paired, "paired") and kind in PAIRED_ONLY:
        instead = "cohen_d" if kind == "cohen_dz" else "cliff_delta"
        raise ArgumentError(f"kind={kind!r} is of paired differences, got paired=False. Use kind={instead!r}.")
    if x.shape[:-1] != y.shape[:-1]:
        raise ArgumentError(
            f"{names[0]} and {names[1]} must have the same number of rows, got {len(x):,} and {len(y):,}."
        )
    if paired and x.shape != y.shape:
        raise ArgumentError(
            f"{names[0]} and {names[1]} must have the same length where they are paired, got {x.shape[-1]:,} and "
            f"{y.shape[-1]:,} values. Leave out what has no partner; paired=False if no value has one."
        )
    return x, y


def _check_scores(values: Any, name: str, ndim: int) -> Array:
    shape = "a list or a one-dimensional array" if ndim == 1 else "a matrix with a sample in each row"
    try:
        scores = real(values)
    except (TypeError, ValueError):
        raise ArgumentError(f"{name} must be {shape} of numbers, got {values!r:.100}.") from None
    if scores.ndim != ndim:
        raise ArgumentError(f"{name} must be {shape} of numbers, got {scores.ndim} dimensions.")
    if scores.shape[-1] < 2:
        raise DataError(f"{name} must have at least two values, got {scores.shape[-1]}: one value has no spread.")
    lost = int((~np.isfinite(scores)).sum())
    if lost:
        raise DataError(
            f"{name} must be finite, got {lost:,} missing or infinite of {scores.size:,} values. Leave them out, with "
            "their partners where they are paired."
        )
    check_magnitude(scores, 1e-100)
    return scores
