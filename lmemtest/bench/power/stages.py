"""The stages of a plan: what varies at each of them and what a unit of it costs, from variance components."""

from __future__ import annotations

import math
import numbers
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from lmemtest.bench.data.sampled import FEWEST_FAMILIES
from lmemtest.bench.power.allocation import Stages
from lmemtest.bench.power.components import COMPONENT_NAMES, TOGETHER, VarianceComponents, as_components, check_sd
from lmemtest.core.caller import named
from lmemtest.core.validate import check_names, check_number, check_positive_int, is_size
from lmemtest.core.words import counted, joined, listed, suggest
from lmemtest.errors import ArgumentError

FAMILY, BENCHMARK, TUNING, DATA, SEED = "family", "benchmark", "tuning", "data", "seed"
SMALLEST_COST = 1e-100  # products of costs and variances must not vanish
TASK = "task"  # what benchmarks are called in evaluations
KNOWN = (FAMILY, BENCHMARK, TUNING, DATA)  # from coarse to fine; all other sources are new with every seed
REST = "residual"
TRAINING = "training"
_NOUNS = {TUNING: "tuning run", DATA: "split"}
MOST_UNITS = 1_000_000  # of a stage: rounding is no question there, and nobody runs it


class Parts(NamedTuple):
    """Variances of the parts of one score by name, and the unnamed rest."""

    n_algorithms: int
    named: dict[str, float]
    rest: float = 0.0
    are_stages: bool = False  # whether every name is a stage
    components: VarianceComponents | None = None  # unless they were given by name


def parts_of(components: Any, n_algorithms: Any) -> Parts:
    """What the first argument of `plan` says of a mean of one algorithm, or of one of those that are compared."""
    if n_algorithms is not None:
        n_algorithms = check_positive_int(n_algorithms, "n_algorithms", maximum=MOST_UNITS)
    sds = _stage_sds(components)
    if sds is not None:
        named = {name: sd**2 for name, sd in sds.items()}
        return Parts(n_algorithms or 1, named, are_stages=not set(sds) & {*KNOWN[1:], SEED})
    found = as_components(components)
    if n_algorithms is None:
        n_algorithms = 1 if found.pilot is None else found.pilot.n_algorithms
    named = {name: sd**2 for name, sd in found.sources.items()}
    if n_algorithms > 1 and found.interaction_sd is not None:
        named = {BENCHMARK: found.own_advantage_sd**2, **named}
    elif n_algorithms == 1 and found.benchmark_sd is not None:
        named = {BENCHMARK: found.benchmark_sd**2 + (found.interaction_sd or 0.0) ** 2, **named}
    if found.family_interaction_sd is not None and BENCHMARK in named:
        level = (found.family_sd or 0.0) ** 2 if n_algorithms == 1 else 0.0
        named = {FAMILY: found.family_interaction_sd**2 + level, **named}
    rest = found.residual_sd**2 + (found.seed_sd**2 if n_algorithms == 1 else 0.0)
    return Parts(n_algorithms, named, rest, components=found)


def _stage_sds(components: Any) -> dict[str, float] | None:
    """Standard deviations by stage or source, if that is what was given."""
    if not isinstance(components, Mapping) or not components or set(components) & {*COMPONENT_NAMES}:
        return None
    check_names(list(components), "components")
    return {name: check_sd(sd, f"components[{name!r}]") for name, sd in components.items()}


def stage_names(parts: Parts, stages: Any) -> tuple[str, ...]:
    """The stages from coarse to fine: those that are given, or the default."""
    if stages is not None:
        names = check_names(stages, "stages")
        if not names or len(set(names)) < len(names) or "" in names:
            raise ArgumentError(f"stages must be different names from coarse to fine, got {list(names)}.")
        return names
    if parts.are_stages:
        return tuple(name for name in parts.named if ":" not in name)
    # The level of a benchmark is no part of what one pipeline does on it, unless stages= asks for it.
    wanted = KNOWN if parts.n_algorithms > 1 or parts.components is None else (TUNING, DATA)
    known = {source for name in parts.named for source in name.split(TOGETHER)}
    return (*(name for name in wanted if name in known), SEED)


def stage_variances(parts: Parts, names: tuple[str, ...], shared: Mapping[str, float]) -> list[float]:
    """Variance of a unit of each stage: of the mean of one algorithm, or of a difference, without what is shared.

    An interaction is new with the finest of its sources, and what is no stage with the finest stage. Of sources that
    have one number together nobody knows which it is, so it is that of the coarsest, and no variance is too small.
    """
    finest, factor = len(names) - 1, 1.0 if parts.n_algorithms == 1 else 2.0
    found = [0.0] * len(names)
    found[finest] += factor * parts.rest
    seen = set()
    for name, variance in parts.named.items():
        factors = [factor.split(TOGETHER) for factor in name.split(":")]
        parts_of_it = [part for factor in factors for part in factor]
        if name in (FAMILY, BENCHMARK) and BENCHMARK not in names and parts.components is not None:
            continue  # the mean on given benchmarks
        lost = [part for part in parts_of_it if part in (FAMILY, BENCHMARK, TUNING) and part not in names]
        if lost and variance > 0.0:
            raise ArgumentError(
                f"stages lacks {lost[0]!r}, but the components have such a source, and one that is new with every "
                f"{names[finest]} must be paid for. Put {lost[0]!r} into stages, or leave it out of the components."
            )
        stage = max(min(names.index(part) if part in names else finest for part in factor) for factor in factors)
        found[stage] += factor * (1.0 - shared.get(name, 0.0)) * variance
        seen.update(parts_of_it)
    for name in names[:-1]:
        if name not in seen:
            raise ArgumentError(_asked_for(name, parts))
    return found


def _asked_for(name: str, parts: Parts) -> str:
    if parts.components is None:
        return (
            f"components lacks {name!r}, which is a stage: what its units differ by, as a standard deviation in the "
            f"score's unit. Write {{..., {name!r}: ...}}.{suggest(name, parts.named)}"
        )
    if name in (FAMILY, BENCHMARK):
        which = "benchmark_sd" if parts.components.benchmark_sd is None else "interaction_sd"
        which = "family_interaction_sd" if name == FAMILY else which
        return (
            f"components lacks {which!r}, which the stage {name!r} needs. Give it as a standard deviation in the "
            f"score's unit, dataclasses.replace(components, ...), or leave {name!r} out of stages."
        )
    return (
        f"components lacks the source {name!r}, which is a stage. Give its standard deviation in the score's unit: "
        f"VarianceComponents(..., sources={{..., {name!r}: ...}}).{suggest(name, parts.named)}"
    )


def stage_costs(names: tuple[str, ...], costs: Any, trials: Any) -> list[float]:
    """Cost of a unit of each stage, without what is below it."""
    given = {TRAINING: costs} if isinstance(costs, numbers.Real) else costs
    if not isinstance(given, Mapping):
        raise ArgumentError(f"costs must be the cost of a training, or map stages to costs, got {costs!r}.")
    finest = names[-1]
    _check_stages(given, (*names, TRAINING), "costs")
    values = {name: _checked_cost(value, name) for name, value in given.items()}
    if finest in values and TRAINING in values and finest != TRAINING:
        raise ArgumentError(f"costs has both 'training' and {finest!r}, which is a training: leave one of them out.")
    training = values.get(finest, values.get(TRAINING, 1.0))
    if training == 0.0:
        raise ArgumentError(f"costs must say what a {finest} costs, more than 0: else a plan has no end.")
    found = {**dict.fromkeys(names, 0.0), **values, finest: training}
    if TUNING not in names:
        if trials is not None:
            raise ArgumentError(f"trials is of a tuning run, and 'tuning' is no stage. Stages: {listed(names)}.")
    elif trials is not None:
        found[TUNING] += training * check_positive_int(trials, "trials", minimum=0)
    elif TUNING not in values:
        raise ArgumentError(
            f"{named('trials')} must be given: how many trainings a tuning run takes (0 if hyperparameters are free)."
        )
    return [found[name] for name in names]


def _checked_cost(value: Any, name: str) -> float:
    if is_size(value) and (value == 0 or float(value) > SMALLEST_COST):
        return float(value)
    raise ArgumentError(f"costs[{name!r}] must be a finite number, 0 or above {SMALLEST_COST:g}, got {value!r}.")


def _check_stages(given: Mapping[Any, Any], names: tuple[str, ...], argument: str) -> None:
    for name in given:
        if name not in names:
            why = ""
            if name == FAMILY:
                why = f" Families are one if a pilot has {FEWEST_FAMILIES} or more, or with family_interaction_sd."
            raise ArgumentError(
                f"{named(argument)} names {name!r}, which is no stage. Stages: {listed(names)}.{why}"
                f"{suggest(str(name), names)}"
            )


def stage_counts(given: Any, names: tuple[str, ...], argument: str) -> dict[str, int]:
    """Numbers of units of some stages."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise ArgumentError(f"{argument} must map stages to numbers, such as {{{names[0]!r}: 1}}, got {given!r}.")
    _check_stages(given, names, argument)
    return {
        name: check_positive_int(n, f"{named(argument)}[{name!r}]", maximum=MOST_UNITS) for name, n in given.items()
    }


def checked_shared(shared: Any, parts: Parts) -> dict[str, float]:
    """Correlation between two algorithms of the effects of each source that they share."""
    if isinstance(shared, str) or not isinstance(shared, Iterable):
        raise ArgumentError(f"shared must list sources, or map them to correlations, got {shared!r}.")
    given = dict(shared) if isinstance(shared, Mapping) else dict.fromkeys(check_names(shared, "shared"), 1.0)
    if given and parts.n_algorithms == 1:
        raise ArgumentError(
            f"{named('shared')} is for differences: what two algorithms share cancels. Give {named('n_algorithms')}=2."
        )
    for name, value in given.items():
        if name not in parts.named:
            raise ArgumentError(
                f"{named('shared')} names {name!r}, which is no source. Sources: {listed(parts.named)}."
            )
        check_number(value, f"shared[{name!r}]", low=0, high=1, meaning="a correlation")
    return {name: float(value) for name, value in given.items()}


def stages_within(
    names: tuple[str, ...], variances: list[float], costs: list[float], fixed: dict[str, int], at_most: dict[str, int]
) -> Stages:
    """The stages with their limits."""
    both = [name for name in fixed if name in at_most]
    if both:
        raise ArgumentError(f"{joined(both)} has a number in fixed and one in at_most: leave one of them out.")
    return Stages(
        variance=np.array(variances),
        cost=np.array(costs),
        low=np.array([float(fixed.get(name, 1)) for name in names]),
        high=np.array([float(fixed.get(name, at_most.get(name, math.inf))) for name in names]),
    )


def in_words(names: tuple[str, ...], n: Iterable[float]) -> str:
    """An allocation as text: "2 tuning runs x 10 splits x 1 seed"."""
    return " x ".join(units(name, int(count)) for name, count in zip(names, n, strict=True))


def units(name: str, count: int) -> str:
    """A number of units of a stage."""
    return counted(count, _NOUNS.get(name, name))


def allows(stages: Stages, i: int, n: int) -> bool:
    """Whether a stage may have so many units."""
    return bool(stages.low[i] <= n <= stages.high[i])


def free_stage(names: tuple[str, ...], stages: Stages) -> int | None:
    """The stage whose numbers a plan goes through: tuning, or else the first that is free."""
    free = [i for i in range(len(names)) if stages.low[i] < stages.high[i]]
    tuning = [i for i in free if names[i] == TUNING]
    return next(iter(tuning or free), None)


def ideal(stages: Stages, tuning: int) -> Stages:
    """One training for each tuning run, as far as the limits allow."""
    below_tuning = np.arange(len(stages.low)) > tuning
    return replace(stages, high=np.where(below_tuning, stages.low, stages.high))
