"""Best-so-far curves over seeds: a quantile at each budget, with exact limits from order statistics.

An adaptive optimiser chooses each configuration in the light of the scores before it, so its scores are no independent
draws of one distribution, and the law F^k of the best of k draws says nothing about them. Its repetitions are
independent: at each budget the best scores so far of n seeds are n draws of one distribution, whose quantile lies
between two order statistics with a probability that is binomial, whatever the distribution.
"""

from __future__ import annotations

import numpy as np
import pandas as pd

from lmemtest.core.arrays import Array
from lmemtest.core.caller import advice
from lmemtest.core.validate import check_fraction, check_positive_int
from lmemtest.errors import DataError
from lmemtest.tuning.checks import check_bounds
from lmemtest.tuning.costs import BudgetCurve
from lmemtest.tuning.curve import MOST_POINTS
from lmemtest.tuning.distribution import SLACK
from lmemtest.tuning.groups import Group, floats


def quantile_ranks(n_scores: int, quantile: float = 0.5, *, level: float = 0.8) -> tuple[int, int, int, float]:
    """Order statistics that enclose a quantile with at least the probability asked for, half of the rest at either end.

    The numbers of the lower limit, the estimate and the upper limit, from 1 (0 and n_scores + 1, the ends of the
    support, where no score is far enough), and the coverage. It is exact for a continuous distribution and a lower
    bound for others: with B binomial(n_scores, quantile), the quantile lies below the score number r with probability
    at most P(B <= r - 1), and above the score number s with probability at most P(B >= s).

    Thompson (1936), On confidence ranges for the median, doi:10.1214/aoms/1177732502

    >>> quantile_ranks(25, level=0.95)
    (8, 13, 18, 0.956714...)
    """
    from scipy import special

    n, quantile = check_positive_int(n_scores, "n_scores"), check_fraction(quantile, "quantile")
    error = 0.5 * (1.0 - check_fraction(level, "level"))
    below = np.concatenate([[0.0], special.bdtr(np.arange(n), n, quantile)])  # P(B <= r - 1), r = 0, ..., n
    above = np.concatenate([special.bdtrc(np.arange(n), n, quantile), [0.0]])  # P(B >= s), s = 1, ..., n + 1
    estimate = int(np.clip(np.ceil(n * quantile - SLACK), 1, n))
    lower = min(int(np.flatnonzero(below <= error)[-1]), estimate)
    upper = max(int(np.flatnonzero(above <= error)[0]) + 1, estimate)
    coverage = float(1.0 - below[lower] - above[upper - 1])
    return lower, estimate, upper, max(coverage, 0.0)


def seed_curve(
    group: Group,
    columns: tuple[str, str],
    *,
    direction: str,
    grid: Array | None,
    quantile: float,
    level: float,
    simultaneous: bool,
    bounds: tuple[float, float] | None,
) -> tuple[BudgetCurve, float, int]:
    """A quantile of the best scores so far, its coverage at a budget, and how many scores were not the best so far.

    `columns` are those of seed and budget.
    """
    key, frame, scores = group
    ends = check_bounds(bounds, scores)
    paths = _paths(frame, scores, *columns)
    points = _grid([budgets for budgets, _ in paths], grid)
    sign = 1.0 if direction == "maximize" else -1.0
    values, raised = np.empty((len(paths), len(points))), 0
    for row, (budgets, path) in zip(values, paths, strict=True):
        best = np.maximum.accumulate(sign * path)
        raised += int(np.sum(best > sign * path))
        row[:] = sign * best[np.searchsorted(budgets, points, side="right") - 1]
    each = 1.0 - (1.0 - level) / len(points) if simultaneous else level
    lower, middle, upper, coverage = quantile_ranks(len(paths), quantile, level=each)
    first, last = (np.full((1, len(points)), end) for end in ends)
    ordered = np.concatenate([first, np.sort(values, axis=0), last])
    low, high = ordered[lower], ordered[upper]
    curve = BudgetCurve(
        key=key,
        n_scores=len(paths),
        grid=points,
        k=np.full(len(points), np.nan),
        band_low=low,
        estimate=ordered[middle],
        band_high=high,
        trivial=(low <= ends[0]) | (high >= ends[1]),
        level=each,
    )
    return curve, coverage, raised


def _paths(frame: pd.DataFrame, scores: Array, seed: str, budget: str) -> list[tuple[Array, Array]]:
    """Budgets in rising order with the scores at them, for each seed."""
    seeds, budgets = frame[seed], floats(frame[budget])
    missing = int(seeds.isna().sum() + np.isnan(budgets).sum())
    if missing:
        raise DataError(f"{missing:,} seeds or budgets are missing. Every score needs both.")
    codes = pd.factorize(seeds)[0]
    order = np.lexsort((budgets, codes))
    codes, budgets = codes[order], budgets[order]
    repeated = np.flatnonzero((np.diff(codes) == 0) & (np.diff(budgets) == 0))
    if len(repeated):
        raise DataError(
            f"{len(repeated):,} rows repeat a seed and a budget (first: {seed}={seeds.iloc[order[repeated[0]]]}, "
            f"{budget}={budgets[repeated[0]]:g}). Is another column, such as a prior, part of what was compared? "
            + advice("settings")
        )
    cuts = np.flatnonzero(np.diff(codes)) + 1
    return list(zip(np.split(budgets, cuts), np.split(scores[order], cuts), strict=True))


def _grid(budgets: list[Array], grid: Array | None) -> Array:
    """Budgets that all seeds have reached, and beyond which none of them stopped."""
    first, last = max(float(seed[0]) for seed in budgets), min(float(seed[-1]) for seed in budgets)
    if first > last:
        raise DataError(
            f"there is no budget at which all {len(budgets):,} seeds have a score: one begins at "
            f"{first:g}, another ends at {last:g}. Leave such seeds out only if that has nothing to do with scores."
        )
    if grid is not None:
        outside = grid[(grid < first) | (grid > last)]
        if len(outside):
            raise DataError(
                f"k holds the budget {outside[0]:g}, but all seeds have scores from {first:g} to "
                f"{last:g} only. Choose budgets in that range."
            )
        return grid
    points = np.unique(np.concatenate(budgets))
    points = points[(points >= first) & (points <= last)]
    if len(points) > MOST_POINTS:
        points = points[np.unique(np.linspace(0, len(points) - 1, MOST_POINTS).round().astype(int))]
    return points
