"""How many seeds, splits, tuning runs and benchmarks: the smallest standard error for a budget, or the least cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from lmemtest.bench.power.allocation import Continuous, Stages, continuous, search
from lmemtest.bench.power.closed_form import smallest_effect
from lmemtest.bench.power.draw import StudyDesign
from lmemtest.bench.power.planned import BEST, CURRENT, IDEAL, SAME_COST, Plan, amount
from lmemtest.bench.power.power import LEVEL, POWER_ADJUSTMENTS, USUAL_POWER
from lmemtest.bench.power.stages import (
    BENCHMARK,
    FAMILY,
    MOST_UNITS,
    TASK,
    TUNING,
    Parts,
    allows,
    checked_shared,
    free_stage,
    ideal,
    in_words,
    parts_of,
    stage_costs,
    stage_counts,
    stage_names,
    stage_variances,
    stages_within,
    units,
)
from lmemtest.core.arrays import Array
from lmemtest.core.caller import named
from lmemtest.core.rounding import at_most as no_more
from lmemtest.core.rounding import below, written
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_choice, check_fraction, check_number
from lmemtest.core.words import format_number, joined
from lmemtest.errors import ArgumentError, EstimationError

_NUMBERS = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)  # of tuning runs in the table
_BEYOND = 4  # times the best number, up to which larger ones are shown
_MANY = 10_000_000  # benchmarks whose critical value is that of the normal distribution


@one_blas_thread()
def plan(
    components: Any,
    *,
    budget: float | None = None,
    target: float | None = None,
    effect: float | None = None,
    n_algorithms: int | None = None,
    stages: Iterable[str] | None = None,
    shared: Iterable[str] | Mapping[str, float] = (),
    costs: float | Mapping[str, float] = 1.0,
    trials: int | None = None,
    fixed: Mapping[str, int] | None = None,
    at_most: Mapping[str, int] | None = None,
    current: Mapping[str, int] | None = None,
    power: float = USUAL_POWER,
    alpha: float = 0.05,
    adjust: str = "tukey",
) -> Plan:
    """How many tuning runs, splits and seeds: the smallest standard error for a budget, or the least cost for it.

    Parameters
    ----------
    components : VarianceComponents, LmmFit, result with components(), or dict
        How much scores vary: see `VarianceComponents`, or standard deviations by name, for instance ``{"tuning": 0.4,
        "data": 0.9, "init": 0.3}`` or ``{"task": 0.2, "item": 0.4, "epoch": 0.1}``.
    budget : float > 0, optional
        What may be spent, in the unit of `costs`, on all algorithms together. By default that of `current`.
    target : float > 0, optional
        The standard error to be reached, in place of a budget.
    effect : float > 0, optional
        A difference of two algorithms that is to be found with probability `power` by the test that `power` plans for,
        in place of a target; for plans whose first stage is "family" or "benchmark" (or "task").
    n_algorithms : int >= 1, optional
        1: the mean score of one algorithm is estimated. More: the difference of two of them; everything is paid for
        every algorithm. By default those of the pilot, or 1.
    stages : iterable of str, optional
        Names from coarse to fine, each unit having its own units of the next one. By default "family" (where
        components know families) and "benchmark" (for differences, where the interaction is known), "tuning" and "data"
        as far as the components name them, and "seed", with which everything else is new; names that are none of these
        are stages in the order given. Without "benchmark" the mean on one benchmark is estimated.
    shared : iterable of str or mapping of str to float in [0, 1], optional
        Sources of which two algorithms get the same draw, such as the same splits, with the correlation of its effects
        on the two scores (1 if only names are given: the source cancels).
    costs : float > 0 or mapping of str to float >= 0
        Of one training (hours, or any unit; 1 by default), or ``{"training": 0.5, "data": 2.0}`` with what a unit of a
        stage costs besides the trainings in it.
    trials : int >= 0, optional
        Trainings of one tuning run. Needed if "tuning" is a stage, unless `costs` has it.
    fixed, at_most : mapping of str to int >= 1, optional
        Stages with a given number, or a largest number, of units for each unit of the stage before.
    current : mapping of str to int >= 1, optional
        The design in use, for comparison; stages that are not named have 1 unit.
    power, alpha : float in (0, 1)
        With `effect`.
    adjust : {"tukey", "sidak", "bonferroni", "none"}
        For the number of pairs of algorithms, with `effect`.

    Returns
    -------
    Plan
        ``to_frame()`` has the best allocation, the best with each number of tuning runs, and the current one.

    Raises
    ------
    ArgumentError
        If no limit or more than one is given, the budget does not pay for one unit of each stage, the target is out of
        reach, or a stage has no component or cost.

    Notes
    -----
    With ``N_l`` units of stage l in all, the variance is ``sum V_l / N_l`` and the cost ``sum c_l N_l``; for a
    difference every ``V_l`` is that of a difference, ``2 (1 - correlation)`` times that of one score, and costs count
    for each algorithm. The search goes through whole numbers and is complete. The formulas suppose that effects add up
    and that units are drawn independently: no tuning run starts from another one's result, and splits are draws of
    their own (folds of one cross-validation are not quite).

    The test that `effect` is planned for is that of ``power``: its standard error and degrees of freedom are those of
    means on benchmarks, so that fewer benchmarks need a smaller standard error.

    References
    ----------
    Cochran (1977), Sampling Techniques, 3rd ed., chapter 10; Bouthillier et al. (2021), Accounting for variance in
    machine learning benchmarks, MLSys 3

    Examples
    --------
    >>> import lmemtest as lt
    >>> found = lt.plan({"tuning": 0.4, "data": 0.9, "seed": 0.3}, trials=50, current={"seed": 3})
    >>> found.to_frame()[["allocation", "n_tuning", "n_data", "n_seed", "cost", "standard_error"]].round(2).tail(2)
                         allocation  n_tuning  n_data  n_seed  cost  standard_error
    2                       current         1       1       3  53.0            1.00
    3  best for the cost of current         1       3       1  53.0            0.68
    >>> lt.plan({"task": 1.0, "item": 2.0, "epoch": 0.5}, costs={"epoch": 1.0, "task": 9.0}, target=0.2).best
    {'task': 43, 'item': 6, 'epoch': 1}
    """
    parts = parts_of(components, n_algorithms)
    k, names, correlations = parts.n_algorithms, stage_names(parts, stages), checked_shared(shared, parts)
    variances = stage_variances(parts, names, correlations)
    paid = [k * cost for cost in stage_costs(names, costs, trials)]
    layout = stages_within(
        names, variances, paid, stage_counts(fixed, names, "fixed"), stage_counts(at_most, names, "at_most")
    )
    now = stage_counts(current, names, "current")
    given = [name for name, value in (("budget", budget), ("target", target), ("effect", effect)) if value is not None]
    if len(given) > 1 or not (given or now):
        raise ArgumentError(
            f"plan takes one of {joined(map(named, ('budget', 'target', 'effect')))} (or {named('current')}, to plan "
            f"for its cost), got {joined(map(named, given)) if given else 'none'}."
        )
    check_choice(adjust, "adjust", POWER_ADJUSTMENTS)
    power, alpha = check_fraction(power, "power"), check_fraction(alpha, "alpha")
    within: Stages = layout
    why: dict[str, Any] = {}
    if effect is not None:
        why = {"effect": _positive(effect, "effect"), "power": power, "alpha": alpha}
        n_benchmarks, target = _for_effect(layout, names, _Test(k, alpha, adjust), why["effect"], power)
        within = layout.with_units(0, n_benchmarks)  # with another number of benchmarks the target is another one
    elif target is not None:
        target = _positive(target, "target")
    else:
        budget = _positive(_cost(layout, names, now) if budget is None else budget, "budget")
    limit = (
        {"cost": _affordable(layout, names, budget)} if budget is not None else {"variance": float(target or 0) ** 2}
    )
    bound = _continuous(within, names, f"target {target or 0.0:g}", **limit)
    rows = [
        _row(name, n, names, layout, _interval_of(parts, names, layout, correlations))
        for name, n in _allocations(within, names, limit, now, compared=not why)
    ]
    value = bound.value if budget is None else math.sqrt(bound.value)
    return Plan(
        table=pd.DataFrame(rows),
        names=names,
        stages=layout,
        n_algorithms=k,
        budget=budget,
        target=target,
        bound=math.nan if why else value,
        current=now,
        notes=_notes(parts, names, correlations),
        **why,
    )


# ---------------------------------------------------------------------- rows of the table


def _allocations(
    stages: Stages, names: tuple[str, ...], limit: dict[str, float], now: dict[str, int], *, compared: bool
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The allocations of the table with their names, the best first; `compared` with other numbers of tuning runs."""
    best = search(stages, **limit)
    if best is None:
        raise EstimationError("no whole numbers of units are within the limit, though fractions are.")
    yield BEST, best
    i = free_stage(names, stages)
    for number in _NUMBERS:
        if compared and i is not None and allows(stages, i, number) and number <= _BEYOND * best[i]:
            found = search(stages.with_units(i, number), **limit)
            if found is not None and found != best:
                yield units(names[i], number), found
    if TUNING in names:
        found = search(ideal(stages, names.index(TUNING)), **limit)
        if found is not None and found != best:
            yield IDEAL, found
    if now:
        current = tuple(now.get(name, 1) for name in names)
        yield CURRENT, current
        cost = float(stages.cost_of(np.array(current, dtype=float)))
        yield SAME_COST, search(replace(stages, low=np.minimum(stages.low, current)), cost=cost) or current


def _row(
    name: str,
    n: tuple[int, ...],
    names: tuple[str, ...],
    stages: Stages,
    interval: Callable[..., tuple[float, float]] | None,
) -> dict[str, Any]:
    counts = np.array(n, dtype=float)
    parts = stages.parts_of(counts)
    variance = float(parts.sum())
    error = math.sqrt(variance)
    row: dict[str, Any] = {"allocation": name, **{f"n_{stage}": count for stage, count in zip(names, n, strict=True)}}
    row |= {"cost": float(stages.cost_of(counts)), "standard_error": error}
    if interval is not None:
        row["ci_low"], row["ci_high"] = interval(counts)
    shares = parts / variance if variance > 0.0 else np.full(len(names), math.nan)
    return row | {f"share_{stage}": float(share) for stage, share in zip(names, shares, strict=True)}


def _interval_of(
    parts: Parts, names: tuple[str, ...], stages: Stages, shared: Mapping[str, float]
) -> Callable[[Array], tuple[float, float]] | None:
    """What the pilot leaves open of a standard error, where it can be said: of differences over benchmarks."""
    components = parts.components
    if components is None or components.pilot is None or parts.n_algorithms == 1:
        return None
    of_families = names[:2] == (FAMILY, BENCHMARK)
    if not (of_families or names[0] == BENCHMARK) or any(shared.values()):
        return None

    def interval(n: Array) -> tuple[float, float]:
        # as many seeds as give this part below benchmarks, in what each unit of a benchmark contributes
        each = float(n[1]) if of_families else 1.0
        on_one = float(stages.parts_of(n)[1 + of_families :].sum()) * n[0] * each
        n_seeds = 2.0 * components.run_sd**2 / on_one if on_one > 0.0 else math.inf
        low, high = components.limits(n_seeds, LEVEL, each)
        return math.sqrt(2.0 * low / n[0]), math.sqrt(2.0 * high / n[0])

    return interval


# ---------------------------------------------------------------------- limits


class _Test(NamedTuple):
    """The test of two of k algorithms on the means of benchmarks."""

    n_algorithms: int
    alpha: float
    adjust: str

    def error_for(self, n_benchmarks: float, effect: float, power: float) -> float:
        """The standard error with which an effect is found with a given power."""
        design = StudyDesign(n_algorithms=self.n_algorithms, n_benchmarks=int(min(n_benchmarks, _MANY)), n_seeds=1)
        return effect / smallest_effect(power, 1.0, design.df, design.critical(self.alpha, self.adjust))


def _for_effect(stages: Stages, names: tuple[str, ...], test: _Test, effect: float, power: float) -> tuple[int, float]:
    """The number of benchmarks of the cheapest plan that finds an effect, and the standard error that it needs.

    Each number of benchmarks has its own critical value. With that of very many benchmarks a plan costs less, and its
    cost is convex in their number: so numbers beyond one at which even that is too much need no look.
    """
    if test.n_algorithms == 1 or names[0] not in (FAMILY, BENCHMARK, TASK):
        raise ArgumentError(
            f"{named('effect')} is of a test over benchmarks: give {named('n_algorithms')}=2 and components with an "
            f"interaction_sd, so that 'benchmark' is the first stage (or 'family'), or give {named('target')}, a "
            f"standard error. Stages: {joined(names)}."
        )
    if not below(test.alpha, power):
        raise ArgumentError(f"power must be above alpha = {test.alpha:g}, got {power:g}.")
    ideal = test.error_for(math.inf, effect, power) ** 2
    what = f"an effect of {effect:g}, which takes a standard error of {math.sqrt(ideal):.4g} at most,"
    start = _continuous(stages, names, what, variance=ideal)
    low, high = max(2, int(stages.low[0])), min(stages.high[0], MOST_UNITS)
    first = int(min(max(round(start.n[0]), low), high))
    found: list[tuple[float, int, float]] = []

    def consider(b: int) -> bool:
        """Note the best plan with so many benchmarks; whether there may be better ones further on."""
        least = continuous(stages.with_units(0, b), variance=ideal)
        if least is not None and found and least.value > min(found)[0]:
            return False
        if least is not None:
            error = test.error_for(b, effect, power)
            n = search(stages.with_units(0, b), variance=error**2)
            if n is not None:
                found.append((float(stages.cost_of(np.array(n, dtype=float))), b, error))
        return True

    for step, end in ((1, high), (-1, low)):
        b = first if step == 1 else first - 1
        while step * b <= step * end and consider(b):
            b += step
    if not found:
        raise ArgumentError(_out_of_reach(stages, names, what))
    cheapest = min(found)[0]
    _, n_benchmarks, error = min((b, b, e) for cost, b, e in found if no_more(cost, cheapest))
    return n_benchmarks, error


def _affordable(stages: Stages, names: tuple[str, ...], budget: float) -> float:
    """What of a budget can be spent, if it pays for one unit of each stage."""
    least = float(stages.cost_of(stages.low))
    if not no_more(least, budget):
        raise ArgumentError(
            f"{named('budget')} is {amount(budget)}, and the smallest design, {in_words(names, stages.low)}, costs "
            f"{amount(least)}. Give at least that."
        )
    most = float(stages.cost_of(stages.high)) if np.isfinite(stages.high).all() else math.inf
    if math.isinf(min(budget, most)):
        raise ArgumentError(
            f"{named('budget')} must be finite unless {named('at_most')} or {named('fixed')} limits every stage."
        )
    return min(budget, most)


def _continuous(stages: Stages, names: tuple[str, ...], what: str, **limit: float) -> Continuous:
    """The best real numbers of units, if there are any within the limit, and not too many."""
    found = continuous(stages, **limit)
    if found is None:
        raise ArgumentError(_out_of_reach(stages, names, what))
    if max(np.cumprod(found.n)) > MOST_UNITS:
        raise ArgumentError(
            f"the best plan has more than {MOST_UNITS:,} units of a stage, too many to count one by one. Give a "
            "smaller budget or a larger target: are costs and budget, standard deviations and target in the same unit?"
        )
    return found


def _out_of_reach(stages: Stages, names: tuple[str, ...], what: str) -> str:
    limits = [
        f"{'' if low == high else 'at most '}{units(name, int(high))}"
        for name, low, high in zip(names, stages.low, stages.high, strict=True)
        if math.isfinite(high)
    ]
    floor = math.sqrt(float(stages.variance_of(stages.high)))
    return (
        f"{what} is out of reach: with {joined(limits)} no design has a standard error below {format_number(floor)}. "
        "Allow more units, or ask for less."
    )


def _cost(stages: Stages, names: tuple[str, ...], units_of: Mapping[str, int]) -> float:
    return float(stages.cost_of(np.array([float(units_of.get(name, 1)) for name in names])))


# ---------------------------------------------------------------------- arguments and notes


def _notes(parts: Parts, names: tuple[str, ...], shared: Mapping[str, float]) -> tuple[str, ...]:
    notes = list(parts.components.notes) if parts.components is not None else []
    if parts.components is None or parts.components.pilot is None:
        notes.append("The standard deviations are taken as known; the plan is as good as they are.")
    if parts.n_algorithms > 1:
        each = f"Each algorithm has its own {'tuning runs and ' if TUNING in names else ''}trainings"
        words = [name if rho == 1.0 else f"{name} (correlation {written(rho, '.2g')})" for name, rho in shared.items()]
        cancels = f"; what both share of {joined(words)} cancels" if words else "; no source is shared"
        notes.append(f"{each}{cancels}.")
    return tuple(notes)


def _positive(value: Any, name: str) -> float:
    return check_number(value, name, low=0, high=math.inf if name == "budget" else None, open="low")
