"""How many seeds, splits, tuning runs and benchmarks: the smallest standard error for a budget, or the least cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from lmemtest.bench.power.draw import StudyDesign, smallest_effect
from lmemtest.bench.power.power import LEVEL, POWER_ADJUSTMENTS, USUAL_POWER
from lmemtest.bench.power.stages import (
    BENCHMARK,
    DATA,
    FAMILY,
    MOST_UNITS,
    SEED,
    TASK,
    TUNING,
    Stages,
    allows,
    continuous,
    free_stage,
    ideal,
    in_words,
    plan_stages,
    search,
    stage_counts,
    units,
)
from lmemtest.bench.power.variance_components import VarianceComponents
from lmemtest.core.arrays import Array
from lmemtest.core.caller import named
from lmemtest.core.hints import guided
from lmemtest.core.result import Result, result
from lmemtest.core.rounding import at_most as no_more
from lmemtest.core.rounding import below, in_tie_order, written
from lmemtest.core.table import ResultTable
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_choice, check_fraction, check_number
from lmemtest.core.words import format_number, joined, percent
from lmemtest.errors import ArgumentError, EstimationError

BEST, CURRENT, SAME_COST, IDEAL = "best", "current", "best for the cost of current", "ideal"
_NUMBERS = (1, 2, 3, 5, 10, 20, 50, 100, 200, 500, 1000)  # of tuning runs in the table
_BEYOND = 4  # times the best number, up to which larger ones are shown
_MANY = 10_000_000  # benchmarks whose critical value is that of the normal distribution
_POINTS, _FIRST = 61, 10  # of a curve over the budget: in equal ratios, and with one more training each
_OFF = (0.5, 2.0)  # factors by which standard deviations may be wrong


@result
class Plan(Result):
    """The best allocation of a study, beside others.

    Attributes
    ----------
    table : pandas.DataFrame
        One row per allocation: ``allocation`` (best; the best with each number of tuning runs, or of the first stage
        that is free; ideal: every training tuned by itself; current; best for the cost of current), ``n_x`` for each
        stage x (units for each unit of the stage above), ``cost``, ``standard_error``, ``ci_low`` and ``ci_high`` (what
        the pilot leaves open of it; only with a pilot), ``share_x`` for each stage (of the variance of the mean).
    stages : Stages
        From coarse to fine: name, variance and cost of a unit, and limits, for all algorithms together.
    n_algorithms : int
        1: the mean score of one is estimated; else the difference of two of so many.
    budget, target : float or None
        The limit of the cost, or of the standard error; one of them is None.
    effect, power, alpha : float or None
        What the target was derived from, if it was.
    bound : float
        The least standard error (or cost) with real numbers of units, which whole numbers cannot beat.
    current : dict of str to int
        Units of the current design; empty if none was given.
    noun : str
        What is compared: "algorithm", "model".
    notes : tuple of str
        What is assumed.
    """

    figure: ClassVar[str | None] = "plan_plot"
    parts: ClassVar[Mapping[str, str]] = {
        "allocations": "table",
        "stages": "stage_table",
        "robustness": "robustness",
        "curves": "curves",
    }

    table: pd.DataFrame
    stages: Stages
    n_algorithms: int
    budget: float | None
    target: float | None
    bound: float
    effect: float | None = None
    power: float | None = None
    alpha: float | None = None
    current: Mapping[str, int]
    noun: str = "algorithm"
    notes: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The stages from coarse to fine."""
        return self.stages.names

    @property
    def best(self) -> dict[str, int]:
        """Units of each stage for each unit of the stage above, in the best allocation."""
        return {name: int(self.table[f"n_{name}"].iloc[0]) for name in self.names}

    def standard_error(self, units: Mapping[str, int]) -> float:
        """Of the mean or difference, with any numbers of units for each unit above (1 of stages that are not named)."""
        return math.sqrt(float(self.stages.variance_of(self._numbers(units))))

    def cost(self, units: Mapping[str, int]) -> float:
        """Of any numbers of units for each unit above (1 of stages that are not named)."""
        return float(self.stages.cost_of(self._numbers(units)))

    def _numbers(self, units_of: Mapping[str, int]) -> Array:
        counts = stage_counts(units_of, self.names, "units")
        return np.array([float(counts.get(name, 1)) for name in self.names])

    # -- parts ----------------------------------------------------------------------------------------------------

    def stage_table(self) -> pd.DataFrame:
        """One row per stage: ``stage``, ``sd`` of a unit, ``cost`` of a unit, ``fewest``, ``most`` units (inf: any)."""
        s = self.stages
        columns = {"sd": np.sqrt(s.variance), "cost": s.cost, "fewest": s.low.astype(int), "most": s.high}
        return pd.DataFrame({"stage": list(self.names), **columns})

    def robustness(self) -> pd.DataFrame:
        """What the best allocation loses if a standard deviation was wrong.

        Returns
        -------
        pandas.DataFrame
            One row per stage that varies and factor: ``stage``, ``factor`` (true over assumed standard deviation),
            ``standard_error`` of the planned allocation then, ``best_standard_error`` for its cost, ``loss`` (the
            first over the second, less 1).
        """
        n = np.array(list(self.best.values()), dtype=float)
        cost = float(self.stages.cost_of(n))
        rows: list[tuple[Any, ...]] = []
        for i, name in enumerate(self.names):
            for factor in _OFF if self.stages.variance[i] > 0.0 else ():
                variance = self.stages.variance.copy()
                variance[i] *= factor**2
                truth = replace(self.stages, variance=variance)
                best = np.array(search(truth, cost=cost), dtype=float)
                planned, least = (math.sqrt(float(truth.variance_of(numbers))) for numbers in (n, best))
                rows.append((name, factor, planned, least, max(planned / least - 1.0, 0.0)))
        return pd.DataFrame(rows, columns=["stage", "factor", "standard_error", "best_standard_error", "loss"])

    def curves(self) -> pd.DataFrame:
        """The least standard error over the budget.

        Returns
        -------
        pandas.DataFrame
            ``curve``, ``cost`` (that may be spent), ``standard_error`` (up to the next cost). The curves: "best"; "one
            tuning run" (on each benchmark) and "ideal" (every training tuned by itself) if tuning is a stage; "more
            ... as now" with more units of the finest stage than in the current design, if there is one.
        """
        least = float(self.stages.cost_of(self.stages.low))
        ends = self.table["allocation"].isin([BEST, CURRENT])
        highest = 10.0 * float(self.table.loc[ends, "cost"].max())
        budgets = np.geomspace(least, max(highest, 10.0 * least), _POINTS)
        budgets = np.union1d(budgets, least + self.stages.cost[-1] * np.arange(_FIRST))
        # all at the same budgets, so that the best is nowhere above another one
        rows = [(name, cost, error) for name, stages in self._lines() for cost, error in _along(stages, budgets)]
        return pd.DataFrame(rows, columns=["curve", "cost", "standard_error"])

    def _lines(self) -> Iterator[tuple[str, Stages]]:
        """The allocations along which a curve goes, as limits of the stages."""
        yield BEST, self.stages
        if TUNING in self.names:
            tuning = self.names.index(TUNING)
            if allows(self.stages, tuning, 1):
                yield "one tuning run", self.stages.with_units(tuning, 1)
            yield IDEAL, ideal(self.stages)
        if self.current:
            now = self._numbers(self.current)
            high = np.where(np.arange(len(now)) == len(now) - 1, np.inf, now)
            low = np.where(np.isinf(high), 1.0, high)
            yield f"more {self.names[-1]}s as now", replace(self.stages, low=low, high=high)

    # -- words ----------------------------------------------------------------------------------------------------

    @property
    def title(self) -> str:
        where = " on one benchmark" if {TUNING, DATA, SEED} & {*self.names} else ""
        where = " over benchmarks" if BENCHMARK in self.names else where
        where = " over families of benchmarks" if {FAMILY, BENCHMARK} <= {*self.names} else where
        if self.n_algorithms == 1:
            return f"Plan: the mean score of one pipeline{where}"
        of = f"two {self.noun}s" if self.n_algorithms == 2 else f"two of {self.n_algorithms} {self.noun}s"
        return f"Plan: the difference of {of}{where}"

    @property
    def facts(self) -> tuple[str, ...]:
        s = self.stages
        of_stages = zip(self.names, np.sqrt(s.variance), s.cost / self.n_algorithms, strict=True)
        parts = [
            f"{name} {written(float(sd), '.4g')} ({f'cost {_amount(float(c))}' if c else 'no cost'})"
            for name, sd, c in of_stages
        ]
        limit = "standard error" if self.budget is not None else "cost"
        bound = () if math.isnan(self.bound) else (
            f"Bound that no allocation can beat, with fractions of units: a {limit} of {format_number(self.bound)}.",
        )  # fmt: skip
        return (
            "n_x: units of stage x for each unit of the stage before it; share_x: of the variance of the mean.",
            f"Standard deviation{' of a difference' if self.n_algorithms > 1 else ''} and cost of a unit"
            f"{f' for each {self.noun}' if self.n_algorithms > 1 else ''}: {', '.join(parts)}.",
            *bound,
        )

    def to_table(self) -> ResultTable:
        """The allocations, with shares in percent."""
        shares = {f"share_{name}": percent for name in self.names}
        return ResultTable(self.title, self.shown(), notes=(*self.facts, *self.notes), formats=shares)

    def sentences(self) -> tuple[str, ...]:
        """The best allocation, the current one beside it, what one tuning run cannot do, and how sure this is."""
        return (self._headline(), *self._of_current(), *self._floor(), *self._sureness())

    def _headline(self) -> str:
        row = self.table.iloc[0]
        what, error = in_words(self.stages, self.best.values()), format_number(row["standard_error"])
        cost = _amount(float(row["cost"]))
        if self.budget is not None:
            return f"For a budget of {_amount(self.budget)} the best is {what}: standard error {error}, cost {cost}."
        limit = f"A standard error of {format_number(float(self.target or 0.0))}"
        if self.effect is not None:
            chance = percent(float(self.power or 0.0))
            limit = f"{chance} power to find a difference of {self.effect:g} (a standard error of {self.target:.4g})"
        return f"{limit} costs {cost} at least: {what}, standard error {error}."

    def _of_current(self) -> Iterator[str]:
        rows = self.table.set_index("allocation")
        if CURRENT not in rows.index:
            return
        now, best = rows.loc[CURRENT], rows.loc[SAME_COST]
        counts = [best[f"n_{name}"] for name in self.names]
        text = (
            f"The current {in_words(self.stages, [now[f'n_{name}'] for name in self.names])} has a standard error of "
            f"{format_number(now['standard_error'])} for {_amount(float(now['cost']))}"
        )
        if below(best["standard_error"] * (1.0 + 1e-6), now["standard_error"]):
            better = format_number(best["standard_error"])
            yield f"{text}; {in_words(self.stages, counts)} has {better} for the same cost."
        else:
            yield f"{text}, and nothing for that cost has a smaller one."

    def _floor(self) -> Iterator[str]:
        """What no number of units below the first free stage makes up for."""
        i = free_stage(self.stages)
        s = self.stages
        if i is None or i == len(self.names) - 1 or s.variance[i] == 0.0 or self.names[i] in (FAMILY, BENCHMARK):
            return
        if np.any(s.low[:i] < s.high[:i]) or not allows(s, i, 1):
            return
        floor = math.sqrt(float(s.parts_of(np.where(np.arange(len(self.names)) < i, s.low, 1.0))[: i + 1].sum()))
        finer = joined(units(name, 2).split(" ", 1)[1] for name in self.names[i + 1 :])
        yield (
            f"With {units(self.names[i], 1)} no number of {finer} gives a standard error below {format_number(floor)}."
        )

    def _sureness(self) -> Iterator[str]:
        rows = self.robustness().to_dict("records")
        wrong = "If one of the standard deviations is half or twice as large as assumed, the best allocation"
        if rows and all(no_more(row["loss"], 1e-9) for row in rows):
            yield f"{wrong} stays the best for its cost."
        elif rows:
            worst = in_tie_order(rows, lambda row: float(row["loss"]), descending=True)[0]
            size = "half" if worst["factor"] < 1.0 else "twice"
            yield (
                f"{wrong} has a standard error at most {percent(worst['loss'])} above what its cost could buy "
                f"({worst['stage']}, {size} as large)."
            )
        row = self.table.iloc[0]
        if "ci_low" in row.index and np.isfinite(row["ci_low"]):
            yield (
                f"As far as the pilot determines the variances, the standard error of the best allocation is between "
                f"{format_number(row['ci_low'])} and {format_number(row['ci_high'])} ({percent(LEVEL)})."
            )


def _amount(x: float) -> str:
    """A cost: whole numbers as such."""
    return format_number(int(x) if float(x).is_integer() else x)


def _along(stages: Stages, budgets: Array) -> Iterator[tuple[float, float]]:
    """Budgets, as far as they buy anything, and standard errors of the best allocations."""
    for budget in budgets:
        best = search(stages, cost=float(budget))
        if best is not None:
            yield float(budget), math.sqrt(float(stages.variance_of(np.array(best, dtype=float))))


# ---------------------------------------------------------------------- the plan


@guided
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
        in place of a target: the question of ``lmemtest.sample_size``, which is this function. For plans whose first
        stage is "family" or "benchmark" (or "task").
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
    layout, k, parts, correlations = plan_stages(
        components,
        n_algorithms,
        stages=stages,
        shared=shared,
        costs=costs,
        trials=trials,
        fixed=fixed,
        at_most=at_most,
    )
    now = stage_counts(current, layout.names, "current")
    limits = [name for name, value in (("budget", budget), ("target", target), ("effect", effect)) if value is not None]
    if len(limits) > 1 or not (limits or now):
        raise ArgumentError(
            f"plan takes one of {joined(map(named, ('budget', 'target', 'effect')))} (or {named('current')}, to plan "
            f"for its cost), got {joined(map(named, limits)) if limits else 'none'}."
        )
    check_choice(adjust, "adjust", POWER_ADJUSTMENTS)
    power, alpha = check_fraction(power, "power"), check_fraction(alpha, "alpha")
    within, why = layout, dict[str, Any]()
    if effect is not None:
        why = {"effect": _positive(effect, "effect"), "power": power, "alpha": alpha}
        n_benchmarks, target = _for_effect(layout, k, adjust, **why)
        within = layout.with_units(0, n_benchmarks)  # with another number of benchmarks the target is another one
    elif target is not None:
        target = _positive(target, "target")
    else:
        budget = _positive(_cost(layout, now) if budget is None else budget, "budget")
    limit = {"cost": _affordable(layout, budget)} if budget is not None else {"variance": float(target or 0) ** 2}
    _, bound = _continuous(within, f"target {target or 0.0:g}", **limit)
    interval = _interval_of(layout, parts, k, correlations)
    rows = [_row(name, n, layout, interval) for name, n in _allocations(within, limit, now, compared=not why)]
    return Plan(
        table=pd.DataFrame(rows),
        stages=layout,
        n_algorithms=k,
        budget=budget,
        target=target,
        bound=math.nan if why else bound if budget is None else math.sqrt(bound),
        current=now,
        notes=_notes(layout, parts, k, correlations),
        **why,
    )


# ---------------------------------------------------------------------- rows of the table


def _allocations(
    stages: Stages, limit: dict[str, float], now: dict[str, int], *, compared: bool
) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The allocations of the table with their names, the best first; `compared` with other numbers of tuning runs."""
    best = search(stages, **limit)
    if best is None:
        raise EstimationError("no whole numbers of units are within the limit, though fractions are.")
    yield BEST, best
    i = free_stage(stages)
    for number in _NUMBERS:
        if compared and i is not None and allows(stages, i, number) and number <= _BEYOND * best[i]:
            n = search(stages.with_units(i, number), **limit)
            if n is not None and n != best:
                yield units(stages.names[i], number), n
    if TUNING in stages.names:
        n = search(ideal(stages), **limit)
        if n is not None and n != best:
            yield IDEAL, n
    if now:
        current = tuple(now.get(name, 1) for name in stages.names)
        yield CURRENT, current
        cost = float(stages.cost_of(np.array(current, dtype=float)))
        yield SAME_COST, search(replace(stages, low=np.minimum(stages.low, current)), cost=cost) or current


def _row(
    name: str, n: tuple[int, ...], stages: Stages, interval: Callable[..., tuple[float, float]] | None
) -> dict[str, Any]:
    counts, names = np.array(n, dtype=float), stages.names
    parts = stages.parts_of(counts)
    variance = float(parts.sum())
    row: dict[str, Any] = {"allocation": name, **{f"n_{stage}": count for stage, count in zip(names, n, strict=True)}}
    row |= {"cost": float(stages.cost_of(counts)), "standard_error": math.sqrt(variance)}
    if interval is not None:
        row["ci_low"], row["ci_high"] = interval(counts)
    shares = parts / variance if variance > 0.0 else np.full(len(names), math.nan)
    return row | {f"share_{stage}": float(share) for stage, share in zip(names, shares, strict=True)}


def _interval_of(
    stages: Stages, components: VarianceComponents | None, n_algorithms: int, shared: Mapping[str, float]
) -> Callable[[Array], tuple[float, float]] | None:
    """What the pilot leaves open of a standard error, where it can be said: of differences over benchmarks."""
    if components is None or components.pilot is None or n_algorithms == 1:
        return None
    of_families = stages.names[:2] == (FAMILY, BENCHMARK)
    if not (of_families or stages.names[0] == BENCHMARK) or any(shared.values()):
        return None

    def interval(n: Array) -> tuple[float, float]:
        # as many seeds as give this part below benchmarks, in what each unit of a benchmark contributes
        each = float(n[1]) if of_families else 1.0
        on_one = float(stages.parts_of(n)[1 + of_families :].sum()) * n[0] * each
        n_seeds = 2.0 * components.run_sd**2 / on_one if on_one > 0.0 else math.inf
        low, high = components.limits(n_seeds, 1.0 - LEVEL, each)
        return math.sqrt(2.0 * low / n[0]), math.sqrt(2.0 * high / n[0])

    return interval


# ---------------------------------------------------------------------- limits


def _for_effect(
    stages: Stages, n_algorithms: int, adjust: str, *, effect: float, power: float, alpha: float
) -> tuple[int, float]:
    """The number of benchmarks of the cheapest plan that finds an effect, and the standard error that it needs.

    Each number of benchmarks has its own critical value. With that of very many benchmarks a plan costs less, and its
    cost is convex in their number: so numbers beyond one at which even that is too much need no look.
    """
    if n_algorithms == 1 or stages.names[0] not in (FAMILY, BENCHMARK, TASK):
        raise ArgumentError(
            f"{named('effect')} is of a test over benchmarks: give {named('n_algorithms')}=2 and components with an "
            f"interaction_sd, so that 'benchmark' is the first stage (or 'family'), or give {named('target')}, a "
            f"standard error. Stages: {joined(stages.names)}."
        )
    if not below(alpha, power):
        raise ArgumentError(f"power must be above alpha = {alpha:g}, got {power:g}.")

    def error_for(n_benchmarks: int) -> float:
        """The standard error with which the test of two algorithms on so many benchmarks finds the effect."""
        design = StudyDesign(n_algorithms=n_algorithms, n_benchmarks=n_benchmarks, n_seeds=1)
        return effect / smallest_effect(power, 1.0, design.df, design.critical(alpha, adjust))

    largest = error_for(_MANY) ** 2
    what = f"an effect of {effect:g}, which takes a standard error of {math.sqrt(largest):.4g} at most,"
    start, _ = _continuous(stages, what, variance=largest)
    low, high = max(2, int(stages.low[0])), min(stages.high[0], MOST_UNITS)
    first = int(min(max(round(start[0]), low), high))
    plans: list[tuple[float, int, float]] = []  # cost, benchmarks, standard error

    def consider(b: int) -> bool:
        """Note the best plan with so many benchmarks; whether there may be better ones further on."""
        least = continuous(stages.with_units(0, b), variance=largest)
        if least is not None and plans and least[1] > min(plans)[0]:
            return False
        if least is not None:
            error = error_for(b)
            n = search(stages.with_units(0, b), variance=error**2)
            if n is not None:
                plans.append((float(stages.cost_of(np.array(n, dtype=float))), b, error))
        return True

    for step, end in ((1, high), (-1, low)):
        b = first if step == 1 else first - 1
        while step * b <= step * end and consider(b):
            b += step
    if not plans:
        raise ArgumentError(_out_of_reach(stages, what))
    cheapest = min(plans)[0]
    return min((b, error) for cost, b, error in plans if no_more(cost, cheapest))


def _affordable(stages: Stages, budget: float) -> float:
    """What of a budget can be spent, if it pays for one unit of each stage."""
    least = float(stages.cost_of(stages.low))
    if not no_more(least, budget):
        raise ArgumentError(
            f"{named('budget')} is {_amount(budget)}, and the smallest design, {in_words(stages, stages.low)}, costs "
            f"{_amount(least)}. Give at least that."
        )
    most = float(stages.cost_of(stages.high)) if np.isfinite(stages.high).all() else math.inf
    if math.isinf(min(budget, most)):
        raise ArgumentError(
            f"{named('budget')} must be finite unless {named('at_most')} or {named('fixed')} limits every stage."
        )
    return min(budget, most)


def _continuous(stages: Stages, what: str, **limit: float) -> tuple[tuple[float, ...], float]:
    """The best real numbers of units, if there are any within the limit, and not too many."""
    best = continuous(stages, **limit)
    if best is None:
        raise ArgumentError(_out_of_reach(stages, what))
    if max(np.cumprod(best[0])) > MOST_UNITS:
        raise ArgumentError(
            f"the best plan has more than {MOST_UNITS:,} units of a stage, too many to count one by one. Give a "
            "smaller budget or a larger target: are costs and budget, standard deviations and target in the same unit?"
        )
    return best


def _out_of_reach(stages: Stages, what: str) -> str:
    limits = [
        f"{'' if low == high else 'at most '}{units(name, int(high))}"
        for name, low, high in zip(stages.names, stages.low, stages.high, strict=True)
        if math.isfinite(high)
    ]
    floor = math.sqrt(float(stages.variance_of(stages.high)))
    return (
        f"{what} is out of reach: with {joined(limits)} no design has a standard error below {format_number(floor)}. "
        "Allow more units, or ask for less."
    )


def _cost(stages: Stages, units_of: Mapping[str, int]) -> float:
    return float(stages.cost_of(np.array([float(units_of.get(name, 1)) for name in stages.names])))


# ---------------------------------------------------------------------- arguments and notes


def _notes(
    stages: Stages, components: VarianceComponents | None, n_algorithms: int, shared: Mapping[str, float]
) -> tuple[str, ...]:
    notes = list(components.notes) if components is not None else []
    if components is None or components.pilot is None:
        notes.append("The standard deviations are taken as known; the plan is as good as they are.")
    if n_algorithms > 1:
        each = f"Each algorithm has its own {'tuning runs and ' if TUNING in stages.names else ''}trainings"
        words = [name if rho == 1.0 else f"{name} (correlation {written(rho, '.2g')})" for name, rho in shared.items()]
        cancels = f"; what both share of {joined(words)} cancels" if words else "; no source is shared"
        notes.append(f"{each}{cancels}.")
    return tuple(notes)


def _positive(value: Any, name: str) -> float:
    return check_number(value, name, low=0, high=math.inf if name == "budget" else None, open="low")
