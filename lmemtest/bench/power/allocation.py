r"""How many units of each stage: the allocation of nested units with the smallest variance of a mean for its cost.

Each of ``n_1`` units of the first stage has ``n_2`` units of the second, and so on: ``N_l = n_1 ... n_l`` of stage l in
all. A unit of stage l adds an independent effect of variance ``V_l`` and costs ``c_l``, so that a mean has

    variance = sum_l V_l / N_l,        cost = sum_l c_l N_l.

With real numbers of units the best ``N_l`` are proportional to ``sqrt(V_l / c_l)`` (Cochran 1977, ch. 10), and variance
times cost is then at least ``(sum_l sqrt(V_l c_l))^2``. Where a stage would get fewer than `low` or more than `high`
units for each unit above it, it is tied to the stage above: together they are one stage. The logarithms of both sums
are convex in ``log N``, so the best of all ways to tie stages is the optimum (`continuous`).

Whole numbers are searched from the first stage on (`search`). Given the units of the stages above, those of stage l can
lead to an allocation within both limits, R of cost and D of variance that are left, only if

    (R - c_l N_l) (D - V_l / N_l) >= G^2,

where G^2 is the least product of variance and cost of the stages below, a constant. This is a quadratic inequality in
``N_l``, so an interval of ``n_l`` is left, and nothing outside needs a look. D is the continuous optimum and a little
more, step by step until there is an allocation: then the best one is among those that were found.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from lmemtest.core.arrays import Array

_SLACK = 1e-9  # relative: what counts as within a limit
_TIE = 1e-11  # relative: variances and costs that are equal
# How far above the continuous optimum allocations are looked for at first, and by what that grows until there is one.
_FIRST, _GROWTH = 1e-4, 4.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Stages:
    """Nested stages from coarse to fine: variance and cost of a unit, fewest and most units for each unit above."""

    variance: Array
    cost: Array
    low: Array
    high: Array  # infinite where there is no limit
    names: tuple[str, ...] = ()

    def units(self, n: Array) -> Array:
        """``N_l`` of numbers of units for each unit above, ``(..., stages)``."""
        return np.asarray(np.cumprod(n, axis=-1), dtype=float)

    def variance_of(self, n: Array) -> Array:
        """Variance of the mean, ``(...)``."""
        return self.parts_of(n).sum(axis=-1)

    def parts_of(self, n: Array) -> Array:
        """Its parts by stages, ``(..., stages)``."""
        return self.variance / self.units(n)

    def cost_of(self, n: Array) -> Array:
        """Cost of all units, ``(...)``."""
        return (self.cost * self.units(n)).sum(axis=-1)

    def with_units(self, stage: int, n: float) -> Stages:
        """The stages with one number of units given."""
        low, high = self.low.copy(), self.high.copy()
        low[stage] = high[stage] = n
        return replace(self, low=low, high=high)

    def from_stage(self, stage: int) -> Stages:
        """The stages from one on."""
        return Stages(**{name: getattr(self, name)[stage:] for name in self.__slots__})


# ---------------------------------------------------------------------- real numbers of units


# Stages tied together, whose number of units is that of the first times given ratios: variance, cost, the first stage,
# and units of the last for each of the first.
Block = tuple[float, float, int, float]


def _ties(stages: Stages, *, free_first: bool) -> Iterator[tuple[tuple[float | None, ...], list[Block]]]:
    """Every way to tie stages to the one above: the ratios (None where free), and the blocks, the first of one unit."""
    choices: list[tuple[float | None, ...]] = [
        (low,) if low == high else (None, low, *((high,) if math.isfinite(high) else ()))
        for low, high in zip(stages.low.tolist(), stages.high.tolist(), strict=True)
    ]
    if free_first:
        choices[0] = (None,)
    rows = list(zip(stages.variance.tolist(), stages.cost.tolist(), strict=True))
    for ratios in itertools.product(*choices):
        blocks = [(0.0, 0.0, -1, 1.0)]
        for i, ((variance, cost), ratio) in enumerate(zip(rows, ratios, strict=True)):
            if ratio is None:
                blocks.append((variance, cost, i, 1.0))
            else:
                v, c, first, last = blocks[-1]
                last *= ratio
                blocks[-1] = v + variance / last, c + cost * last, first, last
        yield ratios, blocks


def _numbers(blocks: list[Block], units: list[float], stages: Stages) -> list[float] | None:
    """Units of the first stage of each block but the first for each unit above; None if one of them is not allowed."""
    numbers = []
    for (*_, ratio), (_, _, first, _), u, v in zip(blocks, blocks[1:], units, units[1:], strict=False):
        n = math.inf if u == 0.0 < v else v / (u * ratio) if u > 0.0 else math.nan
        if not stages.low[first] * (1.0 - _SLACK) <= n <= stages.high[first] * (1.0 + _SLACK):
            return None
        numbers.append(n)
    return numbers


def least_product(stages: Stages) -> float:
    """The least variance times cost of stages of which the first has any number of units, as few as you like."""
    best = math.inf
    for _, (_, *blocks) in _ties(stages, free_first=True):
        if all(cost > 0.0 for _, cost, *_ in blocks):
            units = [math.sqrt(variance / cost) for variance, cost, *_ in blocks]
            if _numbers(blocks, units, stages) is not None:
                best = min(best, sum(math.sqrt(variance * cost) for variance, cost, *_ in blocks) ** 2)
    return best


def continuous(
    stages: Stages, *, cost: float | None = None, variance: float | None = None
) -> tuple[tuple[float, ...], float] | None:
    """Real numbers of units for each unit above, and the least variance for a cost (or cost for a variance) they give.

    None if there are none within the limit.

    Examples
    --------
    >>> two = Stages(variance=np.array([4.0, 9.0]), cost=np.array([10.0, 1.0]), low=np.ones(2), high=np.full(2, np.inf))
    >>> numbers, least = continuous(two, cost=100.0)
    >>> [round(n, 3) for n in numbers], round(least, 6), round((40**0.5 + 9**0.5) ** 2 / 100, 6)
    ([6.783, 4.743], 0.869473, 0.869473)
    """
    best = None
    for ratios, blocks in _ties(stages, free_first=False):
        (v0, c0, *_), *free = blocks
        if any(v <= 0.0 or c <= 0.0 for v, c, *_ in free):
            continue  # tied to the stage above or below they are as good
        limit, used, value = (cost, c0, v0) if cost is not None else (variance, v0, c0)
        left = float(limit or 0.0) - used
        if left < -_SLACK * used or (free and left <= 0.0):
            continue
        root = sum(math.sqrt(v * c) for v, c, *_ in free)
        scale = 1.0 if not free else left / root if cost is not None else root / left
        units = [1.0, *(scale * math.sqrt(v / c) for v, c, *_ in free)]
        value += root**2 / left if free else 0.0
        numbers = _numbers(blocks, units, stages)
        if numbers is not None and (best is None or value < best[1]):
            free_numbers = iter(numbers)
            best = tuple(next(free_numbers) if ratio is None else ratio for ratio in ratios), value
    return best


# ---------------------------------------------------------------------- whole numbers


def search(stages: Stages, *, cost: float | None = None, variance: float | None = None) -> tuple[int, ...] | None:
    """Units for each unit above that give the least variance for a cost, or cost the least for a variance.

    Of those that are equally good the cheaper (more precise) one, then the one with more units in the first stages:
    a stage whose variance is taken for zero is then repeated all the same where that costs nothing.
    None if no allocation is within the limit.

    Examples
    --------
    >>> two = Stages(variance=np.array([4.0, 9.0]), cost=np.array([10.0, 1.0]), low=np.ones(2), high=np.full(2, np.inf))
    >>> search(two, cost=100.0), search(two, variance=0.9)
    ((7, 4), (7, 4))
    """
    best = continuous(stages, cost=cost, variance=variance)
    if best is None:
        return None
    _, least = best
    if least == 0.0:  # nothing varies
        return tuple(int(n) for n in stages.low)
    products = [least_product(stages.from_stage(i + 1)) for i in range(len(stages.low) - 1)]
    slack = _FIRST
    while True:  # ends, because whole numbers within the limit exist wherever real ones do
        wide = least * (1.0 + slack)
        limits = (cost, wide) if cost is not None else (wide, float(variance or 0.0))
        allocations = _within(stages, *limits, products, cost is None)
        if len(allocations):
            return _first(stages, allocations, cost is None)
        slack *= _GROWTH


def _within(stages: Stages, cost: float, variance: float, products: list[float], cheap: bool) -> Array:
    """All allocations within both limits, ``(m, stages)``; of those that differ in the last stage the best one only."""
    n, units = np.empty((1, 0)), np.ones(1)
    money, spread = np.full(1, cost * (1.0 + _SLACK)), np.full(1, variance * (1.0 + _SLACK))  # what is left of both
    *coarse, last = range(len(stages.low))
    for i in coarse:
        low, high = _interval(stages, i, units, money, spread, products[i])
        count = np.maximum(high - low + 1.0, 0.0).astype(int)
        parent = np.repeat(np.arange(len(units)), count)
        new = low[parent] + np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
        n, units = np.column_stack([n[parent], new]), units[parent] * new
        money, spread = money[parent] - stages.cost[i] * units, spread[parent] - stages.variance[i] / units
    low, high = _interval(stages, last, units, money, spread, 0.0)
    of_last = low if cheap or stages.variance[last] == 0.0 else high
    return np.column_stack([n, of_last])[low <= high]


def _interval(stages: Stages, i: int, units: Array, money: Array, spread: Array, product: float) -> tuple[Array, Array]:
    """Fewest and most units of a stage for each unit above with which both limits can be kept."""
    v, c = stages.variance[i], stages.cost[i]
    below = stages.from_stage(i)
    ratios = np.ones_like(below.low), np.ones_like(below.low)
    ratios[0][1:], ratios[1][1:] = below.low[1:], below.high[1:]
    least_cost, least_variance = below.cost_of(ratios[0]), below.variance_of(ratios[1])  # of one unit, with all below
    with np.errstate(divide="ignore", invalid="ignore"):
        b = money * spread + c * v - product
        root = np.sqrt(np.maximum(b**2 - 4.0 * c * spread * v * money, 0.0))
        smallest = np.maximum(2.0 * v * money / (b + root), least_variance / spread)
        largest = np.minimum((b + root) / (2.0 * c * spread), money / least_cost)
        low = np.maximum(np.ceil(smallest * (1.0 - _SLACK) / units), stages.low[i])
        high = np.minimum(np.floor(largest * (1.0 + _SLACK) / units), stages.high[i])
    possible = (money > 0.0) & (spread > 0.0) & (b > 0.0) & (b**2 >= 4.0 * c * spread * v * money * (1.0 - _SLACK))
    return np.where(possible, low, 1.0), np.where(possible, high, 0.0)


def _first(stages: Stages, allocations: Array, by_cost: bool) -> tuple[int, ...]:
    """The best of some allocations; what differs by rounding is tied."""
    values = (stages.cost_of, stages.variance_of) if by_cost else (stages.variance_of, stages.cost_of)
    for value in values:
        key = value(allocations)
        allocations = allocations[key <= key.min() * (1.0 + _TIE)]
    return max(tuple(int(n) for n in row) for row in allocations)
