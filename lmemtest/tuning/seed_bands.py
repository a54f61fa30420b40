"""Best-so-far curves over seeds: a quantile at each budget, with exact limits from order statistics.

An adaptive optimiser chooses each configuration in the light of the scores before it, so its scores are no independent
draws of one distribution, and the law F^k of the best of k draws says nothing about them. Its repetitions are
independent: at each budget the best scores so far of n seeds are n draws of one distribution, whose quantile lies
between two order statistics with a probability that is binomial, whatever the distribution.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pandas as pd

from lmemtest.core.arrays import Array
from lmemtest.core.caller import advice
from lmemtest.core.validate import check_fraction, check_positive_int
from lmemtest.errors import DataError
from lmemtest.tuning._groups import Group, GroupCurve, Roles, floats
from lmemtest.tuning.curve import MOST_POINTS
from lmemtest.tuning.distribution import SLACK


class Ranks(NamedTuple):
    """Order statistics around a quantile: 0 and n + 1 stand for the ends of the support."""

    lower: int
    estimate: int
    upper: int
    coverage: float


def quantile_ranks(n_scores: int, quantile: float = 0.5, *, level: float = 0.8) -> Ranks:
    """Order statistics that enclose a quantile with at least the probability asked for, half of the rest at either end.

    They are counted from 1; 0 and n_scores + 1 where no score is far enough. ``coverage`` is exact for a continuous
    distribution and a lower bound for others: with B binomial(n_scores, quantile), the quantile lies below the score
    number r with probability at most P(B <= r - 1), and above the score number s with probability at most P(B >= s).

    Thompson (1936), On confidence ranges for the median, doi:10.1214/aoms/1177732502

    >>> quantile_ranks(25, level=0.95)
    Ranks(lower=8, estimate=13, upper=18, coverage=0.956714...)
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
    return Ranks(lower, estimate, upper, max(coverage, 0.0))


def seed_curve(
    group: Group,
    roles: Roles,
    *,
    grid: Array | None,
    quantile: float,
    level: float,
    simultaneous: bool,
    bounds: tuple[float, float],
) -> tuple[GroupCurve, float, int]:
    """A quantile of the best scores so far, its coverage at a budget, and how many scores were not the best so far."""
    paths = _paths(group, roles)
    points = _grid(group, [budgets for budgets, _ in paths], grid)
    sign = 1.0 if roles.direction == "maximize" else -1.0
    values, raised = np.empty((len(paths), len(points))), 0
    for row, (budgets, scores) in zip(values, paths, strict=True):
        best = np.maximum.accumulate(sign * scores)
        raised += int(np.sum(best > sign * scores))
        row[:] = sign * best[np.searchsorted(budgets, points, side="right") - 1]
    each = 1.0 - (1.0 - level) / len(points) if simultaneous else level
    ranks = quantile_ranks(len(paths), quantile, level=each)
    ends = [np.full((1, len(points)), end) for end in bounds]
    ordered = np.concatenate([ends[0], np.sort(values, axis=0), ends[1]])
    low, high = ordered[ranks.lower], ordered[ranks.upper]
    curve = GroupCurve(
        name=str(group.key[-1]),
        key=group.key,
        n_scores=len(paths),
        grid=points,
        k=np.full(len(points), np.nan),
        band_low=low,
        estimate=ordered[ranks.estimate],
        band_high=high,
        trivial=(low <= bounds[0]) | (high >= bounds[1]),
        level=each,
    )
    return curve, ranks.coverage, raised


def _paths(group: Group, roles: Roles) -> list[tuple[Array, Array]]:
    """Budgets in rising order with the scores at them, for each seed."""
    seeds, budgets = group.frame[str(roles.seed)], floats(group.frame[str(roles.budget)])
    missing = int(seeds.isna().sum() + np.isnan(budgets).sum())
    if missing:
        raise DataError(f"{group.name}: {missing:,} seeds or budgets are missing. Every score needs both.")
    codes = pd.factorize(seeds)[0]
    order = np.lexsort((budgets, codes))
    codes, budgets = codes[order], budgets[order]
    repeated = np.flatnonzero((np.diff(codes) == 0) & (np.diff(budgets) == 0))
    if len(repeated):
        row = order[repeated[0]]
        raise DataError(
            f"{group.name}: {len(repeated):,} rows repeat a seed and a budget (first: {roles.seed}={seeds.iloc[row]}, "
            f"{roles.budget}={budgets[repeated[0]]:g}). Is another column, such as a prior, part of what was compared? "
            + advice("settings")
        )
    cuts = np.flatnonzero(np.diff(codes)) + 1
    return list(zip(np.split(budgets, cuts), np.split(group.scores[order], cuts), strict=True))


def _grid(group: Group, budgets: list[Array], given: Array | None) -> Array:
    """Budgets that all seeds have reached, and beyond which none of them stopped."""
    first, last = max(float(seed[0]) for seed in budgets), min(float(seed[-1]) for seed in budgets)
    if first > last:
        raise DataError(
            f"{group.name}: there is no budget at which all {len(budgets):,} seeds have a score: one begins at "
            f"{first:g}, another ends at {last:g}. Leave such seeds out only if that has nothing to do with scores."
        )
    if given is not None:
        outside = given[(given < first) | (given > last)]
        if len(outside):
            raise DataError(
                f"{group.name}: k holds the budget {outside[0]:g}, but all seeds have scores from {first:g} to "
                f"{last:g} only. Choose budgets in that range."
            )
        return given
    points = np.unique(np.concatenate(budgets))
    points = points[(points >= first) & (points <= last)]
    if len(points) > MOST_POINTS:
        points = points[np.unique(np.linspace(0, len(points) - 1, MOST_POINTS).round().astype(int))]
    return points
