r"""The stages of a plan: what varies at each of them and what a unit of it costs, from variance components.

How many units of each stage: the allocation of nested units with the smallest variance of a mean for its cost.
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
import numbers
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from lmemtest.bench.data.requirements import FEWEST_FAMILIES
from lmemtest.bench.power.variance_components import (
    COMPONENT_NAMES,
    TOGETHER,
    VarianceComponents,
    as_components,
    check_sd,
)
from lmemtest.core.arrays import Array
from lmemtest.core.caller import named
from lmemtest.core.validate import check_names, check_number, check_positive_int, is_size
from lmemtest.core.words import counted, joined, listed, suggest
from lmemtest.errors import ArgumentError

FAMILY, BENCHMARK, TUNING, DATA, SEED = "family", "benchmark", "tuning", "data", "seed"
SMALLEST_COST = 1e-100  # products of costs and variances must not vanish
TASK = "task"  # what benchmarks are called in evaluations
KNOWN = (FAMILY, BENCHMARK, TUNING, DATA)  # from coarse to fine; all other sources are new with every seed
TRAINING = "training"
_NOUNS = {TUNING: "tuning run", DATA: "split"}
MOST_UNITS = 1_000_000  # of a stage: rounding is no question there, and nobody runs it


def plan_stages(
    components: Any,
    n_algorithms: Any,
    *,
    stages: Any,
    shared: Any,
    costs: Any,
    trials: Any,
    fixed: Any,
    at_most: Any,
) -> tuple[Stages, int, VarianceComponents | None, dict[str, float]]:
    """What the arguments of `plan` say: stages, algorithms, components, and what two algorithms share of each source.

    Variances are of a mean of one algorithm, or of a difference of two of those that are compared, and costs are for
    all of them. The components are None where standard deviations were given by name.
    """
    if n_algorithms is not None:
        n_algorithms = check_positive_int(n_algorithms, "n_algorithms", maximum=MOST_UNITS)
    sds = _stage_sds(components)
    parts = None if sds is not None else as_components(components)
    if n_algorithms is None:
        n_algorithms = 1 if parts is None or parts.pilot is None else parts.pilot.n_algorithms
    variances, rest = {name: sd**2 for name, sd in (sds or {}).items()}, 0.0
    if parts is not None:
        variances, rest = _parts_of_a_score(parts, n_algorithms)
    names = _stage_names(variances, parts, n_algorithms, stages)
    correlations = _checked_shared(shared, variances, n_algorithms)
    of_stage = _stage_variances(variances, rest, parts, n_algorithms, names, correlations)
    paid = [n_algorithms * cost for cost in _stage_costs(names, costs, trials)]
    exact, limits = stage_counts(fixed, names, "fixed"), stage_counts(at_most, names, "at_most")
    if both := [name for name in exact if name in limits]:
        raise ArgumentError(f"{joined(both)} has a number in fixed and one in at_most: leave one of them out.")
    layout = Stages(
        variance=np.array(of_stage),
        cost=np.array(paid),
        low=np.array([float(exact.get(name, 1)) for name in names]),
        high=np.array([float(exact.get(name, limits.get(name, math.inf))) for name in names]),
        names=names,
    )
    return layout, n_algorithms, parts, correlations


def _parts_of_a_score(components: VarianceComponents, n_algorithms: int) -> tuple[dict[str, float], float]:
    """Variances of the parts of one score by name, and of the unnamed rest."""
    variances = {name: sd**2 for name, sd in components.sources.items()}
    if n_algorithms > 1 and components.interaction_sd is not None:
        variances = {BENCHMARK: components.own_advantage_sd**2, **variances}
    elif n_algorithms == 1 and components.benchmark_sd is not None:
        variances = {BENCHMARK: components.benchmark_sd**2 + (components.interaction_sd or 0.0) ** 2, **variances}
    if components.family_interaction_sd is not None and BENCHMARK in variances:
        level = (components.family_sd or 0.0) ** 2 if n_algorithms == 1 else 0.0
        variances = {FAMILY: components.family_interaction_sd**2 + level, **variances}
    return variances, components.residual_sd**2 + (components.seed_sd**2 if n_algorithms == 1 else 0.0)


def _stage_sds(components: Any) -> dict[str, float] | None:
    """Standard deviations by stage or source, if that is what was given."""
    if not isinstance(components, Mapping) or not components or set(components) & {*COMPONENT_NAMES}:
        return None
    check_names(list(components), "components")
    return {name: check_sd(sd, f"components[{name!r}]") for name, sd in components.items()}


def _stage_names(
    variances: Mapping[str, float], components: VarianceComponents | None, n_algorithms: int, stages: Any
) -> tuple[str, ...]:
    """The stages from coarse to fine: those that are given, or the default."""
    if stages is not None:
        names = check_names(stages, "stages")
        if not names or len(set(names)) < len(names) or "" in names:
            raise ArgumentError(f"stages must be different names from coarse to fine, got {list(names)}.")
        return names
    if components is None and not set(variances) & {*KNOWN[1:], SEED}:  # every name is a stage
        return tuple(name for name in variances if ":" not in name)
    # The level of a benchmark is no part of what one pipeline does on it, unless stages= asks for it.
    wanted = KNOWN if n_algorithms > 1 or components is None else (TUNING, DATA)
    sources = {source for name in variances for source in name.split(TOGETHER)}
    return (*(name for name in wanted if name in sources), SEED)


def _stage_variances(
    variances: Mapping[str, float],
    rest: float,
    components: VarianceComponents | None,
    n_algorithms: int,
    names: tuple[str, ...],
    shared: Mapping[str, float],
) -> list[float]:
    """Variance of a unit of each stage: of the mean of one algorithm, or of a difference, without what is shared.

    An interaction is new with the finest of its sources, and what is no stage with the finest stage. Of sources that
    have one number together nobody knows which it is, so it is that of the coarsest, and no variance is too small.
    """
    finest, factor = len(names) - 1, 1.0 if n_algorithms == 1 else 2.0
    of_stage = [0.0] * len(names)
    of_stage[finest] += factor * rest
    seen = set()
    for name, variance in variances.items():
        sources = [source.split(TOGETHER) for source in name.split(":")]
        if name in (FAMILY, BENCHMARK) and BENCHMARK not in names and components is not None:
            continue  # the mean on given benchmarks
        every = [part for together in sources for part in together]
        lost = [part for part in every if part in (FAMILY, BENCHMARK, TUNING) and part not in names]
        if lost and variance > 0.0:
            raise ArgumentError(
                f"stages lacks {lost[0]!r}, but the components have such a source, and one that is new with every "
                f"{names[finest]} must be paid for. Put {lost[0]!r} into stages, or leave it out of the components."
            )
        stage = max(min(names.index(part) if part in names else finest for part in together) for together in sources)
        of_stage[stage] += factor * (1.0 - shared.get(name, 0.0)) * variance
        seen.update(every)
    for name in names[:-1]:
        if name not in seen:
            raise ArgumentError(_asked_for(name, variances, components))
    return of_stage


def _asked_for(name: str, variances: Mapping[str, float], components: VarianceComponents | None) -> str:
    if components is None:
        return (
            f"components lacks {name!r}, which is a stage: what its units differ by, as a standard deviation in the "
            f"score's unit. Write {{..., {name!r}: ...}}.{suggest(name, variances)}"
        )
    if name in (FAMILY, BENCHMARK):
        which = "benchmark_sd" if components.benchmark_sd is None else "interaction_sd"
        which = "family_interaction_sd" if name == FAMILY else which
        return (
            f"components lacks {which!r}, which the stage {name!r} needs. Give it as a standard deviation in the "
            f"score's unit, dataclasses.replace(components, ...), or leave {name!r} out of stages."
        )
    return (
        f"components lacks the source {name!r}, which is a stage. Give its standard deviation in the score's unit: "
        f"VarianceComponents(..., sources={{..., {name!r}: ...}}).{suggest(name, variances)}"
    )


def _stage_costs(names: tuple[str, ...], costs: Any, trials: Any) -> list[float]:
    """Cost of a unit of each stage, without what is below it."""
    by_name = {TRAINING: costs} if isinstance(costs, numbers.Real) else costs
    if not isinstance(by_name, Mapping):
        raise ArgumentError(f"costs must be the cost of a training, or map stages to costs, got {costs!r}.")
    finest = names[-1]
    _check_stages(by_name, (*names, TRAINING), "costs")
    values = {name: _checked_cost(value, name) for name, value in by_name.items()}
    if finest in values and TRAINING in values and finest != TRAINING:
        raise ArgumentError(f"costs has both 'training' and {finest!r}, which is a training: leave one of them out.")
    training = values.get(finest, values.get(TRAINING, 1.0))
    if training == 0.0:
        raise ArgumentError(f"costs must say what a {finest} costs, more than 0: else a plan has no end.")
    of_stage = {**dict.fromkeys(names, 0.0), **values, finest: training}
    if TUNING not in names:
        if trials is not None:
            raise ArgumentError(f"trials is of a tuning run, and 'tuning' is no stage. Stages: {listed(names)}.")
    elif trials is not None:
        of_stage[TUNING] += training * check_positive_int(trials, "trials", minimum=0)
    elif TUNING not in values:
        raise ArgumentError(
            f"{named('trials')} must be given: how many trainings a tuning run takes (0 if hyperparameters are free)."
        )
    return [of_stage[name] for name in names]


def _checked_cost(value: Any, name: str) -> float:
    if is_size(value) and (value == 0 or float(value) > SMALLEST_COST):
        return float(value)
    raise ArgumentError(f"costs[{name!r}] must be a finite number, 0 or above {SMALLEST_COST:g}, got {value!r}.")


def _check_stages(by_name: Mapping[Any, Any], names: tuple[str, ...], argument: str) -> None:
    for name in by_name:
        if name not in names:
            why = ""
            if name == FAMILY:
                why = f" Families are one if a pilot has {FEWEST_FAMILIES} or more, or with family_interaction_sd."
            raise ArgumentError(
                f"{named(argument)} names {name!r}, which is no stage. Stages: {listed(names)}.{why}"
                f"{suggest(str(name), names)}"
            )


def stage_counts(counts: Any, names: tuple[str, ...], argument: str) -> dict[str, int]:
    """Numbers of units of some stages."""
    if counts is None:
        return {}
    if not isinstance(counts, Mapping):
        raise ArgumentError(f"{argument} must map stages to numbers, such as {{{names[0]!r}: 1}}, got {counts!r}.")
    _check_stages(counts, names, argument)
    return {
        name: check_positive_int(n, f"{named(argument)}[{name!r}]", maximum=MOST_UNITS) for name, n in counts.items()
    }


def _checked_shared(shared: Any, variances: Mapping[str, float], n_algorithms: int) -> dict[str, float]:
    """Correlation between two algorithms of the effects of each source that they share."""
    if isinstance(shared, str) or not isinstance(shared, Iterable):
        raise ArgumentError(f"shared must list sources, or map them to correlations, got {shared!r}.")
    correlations = dict(shared) if isinstance(shared, Mapping) else dict.fromkeys(check_names(shared, "shared"), 1.0)
    if correlations and n_algorithms == 1:
        raise ArgumentError(
            f"{named('shared')} is for differences: what two algorithms share cancels. Give {named('n_algorithms')}=2."
        )
    for name, value in correlations.items():
        if name not in variances:
            raise ArgumentError(f"{named('shared')} names {name!r}, which is no source. Sources: {listed(variances)}.")
        check_number(value, f"shared[{name!r}]", low=0, high=1, meaning="a correlation")
    return {name: float(value) for name, value in correlations.items()}


def in_words(stages: Stages, n: Iterable[float]) -> str:
    """An allocation as text: "2 tuning runs x 10 splits x 1 seed"."""
    return " x ".join(units(name, int(count)) for name, count in zip(stages.names, n, strict=True))


def units(name: str, count: int) -> str:
    """A number of units of a stage."""
    return counted(count, _NOUNS.get(name, name))


def allows(stages: Stages, i: int, n: int) -> bool:
    """Whether a stage may have so many units."""
    return bool(stages.low[i] <= n <= stages.high[i])


def free_stage(stages: Stages) -> int | None:
    """The stage whose numbers a plan goes through: tuning, or else the first that is free."""
    free = [i for i in range(len(stages.names)) if stages.low[i] < stages.high[i]]
    tuning = [i for i in free if stages.names[i] == TUNING]
    return next(iter(tuning or free), None)


def ideal(stages: Stages) -> Stages:
    """One training for each tuning run, as far as the limits allow."""
    below_tuning = np.arange(len(stages.low)) > stages.names.index(TUNING)
    return replace(stages, high=np.where(below_tuning, stages.low, stages.high))


# -------------------------------------------------------------------------------------------------- allocation of units


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
