"""Better, equal or worse: two algorithms at every point, mean outcomes of instances, and tables with flipped signs.

A point is a benchmark at one level of a metafeature and at one budget. The mean outcome over the budgets is compared
between levels. Under the hypothesis that the difference between the algorithms is the same at both levels, a table of
runs is its means with this common difference, and residuals. New tables flip the signs of the residuals, of all runs
of a seed together and with all their budgets (a wild bootstrap, clustered by seed): so neither the budgets of a run nor
the runs of a seed need be independent, and algorithms and levels may scatter differently.

References
----------
Wu (1986), doi:10.1214/aos/1176350142; Cameron, Gelbach & Miller (2008), doi:10.1162/rest.90.3.414
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.core.resampling import batches, p_of_draws, random_signs
from lmemtest.lmm.distributions.student import df_of_sum, t_quantile, two_sided_p
from lmemtest.lmm.distributions.studentized_range import ptukey, qtukey

if TYPE_CHECKING:
    from lmemtest.bench.benchmark.pair_scores import Axes
    from lmemtest.core.arrays import Array, Index

    Residuals = tuple[Array, Index]  # (n, budgets), and the seed of each, (n,)

_ROUNDING = 1e-12  # of the benchmark's largest score: differences and errors below it are rounding, and scores ties
# Sums of squares by subtraction keep about half of the digits: what is smaller, relative to the spread, is zero.
_ROUNDING_OF_SQUARES = 1e-7
_SAME = 1e-9  # of mean outcomes: sums of ones and zeros over the same number
_CHUNK = 4_000_000  # draws times budgets held at once: 32 MB an array


def test_points(losses: Array, test: str, alpha: float) -> dict[str, Array]:
    """Student's tests of the first algorithm against the second at every point: "two-sample", or "paired" within seeds.

    Arrays of (benchmarks, levels, budgets), NaN where no test is made: ``outcome`` is 1 where the first is better at
    level `alpha`, 0 where no difference is found, -1 where it is worse; ``advantage`` says by how much it is better, on
    the scale of the score; ``t_ratio``, ``df``, ``p_value``.
    """
    scale = np.nanmax(np.abs(losses), axis=(1, 2, 3, 4))[:, None, None]
    if test == "paired":
        n, advantage, variance = _moments(losses[:, :, 1] - losses[:, :, 0])
        error, df = variance / np.maximum(n, 1.0), n - 1.0
    else:
        n, mean, variance = _moments(losses)
        advantage = mean[:, :, 1] - mean[:, :, 0]
        error, df = _pooled_error(n[:, :, 0], variance[:, :, 0], n[:, :, 1], variance[:, :, 1])
    advantage, df = np.where(df > 0, advantage, np.nan), np.where(df > 0, df, np.nan)
    t = _t_ratios(advantage, error, _ROUNDING * scale)
    outcome = _outcomes(t, t_quantile(alpha / 2.0, df))
    return {"outcome": outcome, "advantage": advantage, "t_ratio": t, "df": df, "p_value": two_sided_p(t, df)}


test_points.__test__ = False  # type: ignore[attr-defined]  # a test of points, not of pytest


def mean_outcomes(outcome: Array) -> Array:
    """(m, k): mean outcome over the budgets; NaN where nothing is compared."""
    n = np.isfinite(outcome).sum(axis=2)
    return np.where(n > 0, np.nansum(outcome, axis=2) / np.maximum(n, 1), np.nan)


def _moments(values: Array) -> tuple[Array, Array, Array]:
    """Count, mean and variance over the seeds, the last but one axis."""
    n = np.isfinite(values).sum(axis=-2).astype(float)
    with np.errstate(divide="ignore", invalid="ignore"):
        mean = np.nansum(values, axis=-2) / n
        return n, mean, np.nansum((values - mean[..., None, :]) ** 2, axis=-2) / (n - 1.0)


def _pooled_error(n1: Any, v1: Array, n2: Any, v2: Array) -> tuple[Array, Any]:
    """Squared error of a difference of two means with one variance, and its degrees of freedom."""
    df = n1 + n2 - 2.0
    with np.errstate(divide="ignore", invalid="ignore"):
        return ((n1 - 1.0) * v1 + (n2 - 1.0) * v2) / df * (1.0 / n1 + 1.0 / n2), df


def _t_ratios(difference: Array, error: Array, rounding: Any) -> Array:
    """Difference over the root of its squared error; a tie is 0, a difference without any scatter infinite."""
    difference = np.where(np.abs(difference) <= rounding, 0.0, difference)
    se = np.sqrt(np.maximum(error, 0.0))
    se = np.where(se <= rounding, 0.0, se)
    with np.errstate(divide="ignore", invalid="ignore"):
        t = difference / se
    return np.where((difference == 0.0) & (se == 0.0), 0.0, t)


def _outcomes(t: Array, critical: Any) -> Array:
    """1, 0 or -1 by the sign of the t ratios beyond their critical value; NaN stays NaN."""
    return np.where(np.isnan(t), np.nan, np.sign(t) * (np.abs(t) > critical))


# ---------------------------------------------------------------------- flipped signs


def _residuals(losses: Array, level: int, test: str) -> tuple[list[Residuals], Array]:
    """Of a benchmark at a level the residuals of the runs of each algorithm, or of their differences, with their seeds;
    and the difference of the algorithms, the second minus the first, at each budget.
    """
    scores = losses[level][..., np.isfinite(losses).any(axis=(0, 1, 2))]
    cells, means = [], []
    for runs in [scores[1] - scores[0]] if test == "paired" else scores:
        seeds = np.flatnonzero(np.isfinite(runs).all(axis=1))
        n, mean = len(seeds), runs[seeds].mean(axis=0)
        # residuals are smaller than errors by 1 - 1/n in variance
        cells.append(((runs[seeds] - mean) * np.sqrt(n / (n - 1.0)), seeds))
        means.append(mean)
    return cells, means[0] if test == "paired" else means[1] - means[0]


def _flipped(cells: list[Residuals], difference: Array, unit: Array, signs: Array, alpha: float) -> Array:
    """Mean outcome of every table with this difference and new signs of the residuals."""
    moments = []
    for residuals, seeds in cells:
        n, scaled = float(len(seeds)), residuals / unit
        mean = signs[:, seeds] @ scaled / n
        squares = (scaled**2).sum(axis=0)
        moments.append((n, mean, np.maximum(squares - n * mean**2, 0.0) / (n - 1.0)))
    n, mean, variance = moments[-1]
    error, df = variance / n, n - 1.0
    if len(moments) == 2:
        n1, mean1, variance1 = moments[0]
        mean = mean - mean1
        error, df = _pooled_error(n1, variance1, n, variance)
    t = _t_ratios(mean + difference / unit, error, _ROUNDING_OF_SQUARES)
    return np.asarray(_outcomes(t, t_quantile(alpha / 2.0, df)).mean(axis=1))


def _unit(cells: list[Residuals], losses: Array) -> Array:
    """The spread of the residuals at each budget; 1 where they are rounding."""
    unit: Array = np.sqrt(np.mean([(residuals**2).mean(axis=0) for residuals, _ in cells], axis=0))
    unit[unit <= _ROUNDING_OF_SQUARES**2 * np.nanmax(np.abs(losses))] = 1.0
    return unit


def flip_p(
    losses: Array, late: int, early: int, observed: float, *, test: str, alpha: float, n: int, rng: np.random.Generator
) -> float:
    """Two-sided p-value of a contrast of mean outcomes between two levels of a benchmark, ``(1 + count) / (n + 1)``.

    The count is of tables with a contrast at least as large as the observed one.
    """
    (left, at_late), (right, at_early) = (_residuals(losses, level, test) for level in (late, early))
    common = 0.5 * (at_late + at_early)
    unit = _unit([*left, *right], losses)
    extreme = 0
    for batch in batches(n, max(len(common), 1), _CHUNK):
        signs = random_signs(losses.shape[2], batch, rng)
        drawn = [_flipped(cells, common, unit, signs, alpha) for cells in (left, right)]
        extreme += int((np.abs(drawn[0] - drawn[1]) >= abs(observed) - _SAME).sum())
    return p_of_draws(float(extreme), n)


# ---------------------------------------------------------------------- between all instances


def instance_contrasts(
    losses: Array,
    axes: Axes,
    *,
    test: str = "two-sample",
    alpha: float = 0.05,
    n_draws: int = 1999,
    rng: np.random.Generator,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Mean outcomes of all instances (benchmarks at a level each), and their differences by all pairs.

    The error of a mean outcome is that of repeating its runs: new tables keep the difference of the algorithms at each
    instance and flip the signs of the residuals, those of a seed alike on all instances. Errors and degrees of freedom
    differ between instances, so pairs are compared as by Games & Howell: Tukey's range with the error and the degrees
    of freedom of each pair. `alpha` is the level of the tests at the points too.

    The error of a pair counts one more table, in which its contrast is off by as much as an outcome can be: where all
    tables have the same outcome, the error is that of not having seen another one in `n_draws` tables, not zero.

    The level is approximate: in simulated tables of 16 alike instances some pair differed in 5 % where the algorithms
    do not differ, and in 12 % where they do and half of the tests at the points find it. For the contrasts within
    benchmarks `metafeature_effect` has tests under their own null hypothesis.

    Returns
    -------
    instances : pandas.DataFrame
        One row per instance: ``benchmark``, ``level``, ``outcome`` (mean over the budgets, 1 where the first algorithm
        is better), ``se``, ``df``, ``ci_low``, ``ci_high``.
    pairs : pandas.DataFrame
        One row per pair of instances: ``left`` and ``right`` (rows of `instances`), ``contrast`` (left minus right),
        ``se``, ``df``, ``t_ratio``, ``p_value``, ``ci_low``, ``ci_high``; p-values and intervals hold for all pairs.
    """  # fmt: skip
    means = mean_outcomes(test_points(losses, test, alpha)["outcome"])
    b, v = np.nonzero(np.isfinite(means))
    observed = means[b, v]
    signs = random_signs(losses.shape[3], n_draws, rng)
    draws, df = np.empty((n_draws, len(observed))), np.empty(len(observed))
    for column, (benchmark, level) in enumerate(zip(b.tolist(), v.tolist(), strict=True)):
        cells, difference = _residuals(losses[benchmark], level, test)
        draws[:, column] = _flipped(cells, difference, _unit(cells, losses[benchmark]), signs, alpha)
        df[column] = sum(len(seeds) - 1.0 for _, seeds in cells)  # of the tests at the points
    covariance = np.atleast_2d(np.cov(draws, rowvar=False))
    variance = np.diag(covariance)
    unseen = 1.0 / (n_draws + 1.0)  # squares of outcomes are at most 1
    i, j = np.triu_indices(len(observed), k=1)
    se = np.sqrt(np.maximum(variance[i] + variance[j] - 2.0 * covariance[i, j], 0.0) + 4.0 * unseen)
    floor = variance + unseen
    df_pair = df_of_sum(np.stack([floor[i], floor[j]]), np.stack([df[i], df[j]]))
    contrast = observed[i] - observed[j]
    contrast = np.where(np.abs(contrast) < _ROUNDING, 0.0, contrast)
    t, k = contrast / se, len(observed)
    half = qtukey(1.0 - alpha, k, df_pair) / np.sqrt(2.0) * se
    half_of_one = t_quantile(alpha / 2.0, df) * np.sqrt(floor)
    of = {"benchmark": [axes["benchmark"][x] for x in b], "level": [axes["level"][x] for x in v], "outcome": observed}
    error = {"se": np.sqrt(floor), "df": df, "ci_low": observed - half_of_one, "ci_high": observed + half_of_one}
    p = ptukey(np.sqrt(2.0) * np.abs(t), k, df_pair, upper=True)
    pairs = {"left": i, "right": j, "contrast": contrast, "se": se, "df": df_pair, "t_ratio": t, "p_value": p}
    interval = {"ci_low": contrast - half, "ci_high": contrast + half}
    return pd.DataFrame(of | error), pd.DataFrame(pairs | interval)
