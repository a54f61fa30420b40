"""The best allocation of a study beside others: its table, its curve over the budget, what it loses if it is off."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from lmemtest.bench.power.allocation import Stages, search
from lmemtest.bench.power.power import LEVEL
from lmemtest.bench.power.stages import (
    BENCHMARK,
    DATA,
    FAMILY,
    SEED,
    TUNING,
    allows,
    free_stage,
    ideal,
    in_words,
    stage_counts,
    units,
)
from lmemtest.core.arrays import Array
from lmemtest.core.result import Result, result
from lmemtest.core.rounding import at_most as no_more
from lmemtest.core.rounding import below, in_tie_order, written
from lmemtest.core.table import ResultTable
from lmemtest.core.words import format_number, joined, percent

BEST, CURRENT, SAME_COST, IDEAL = "best", "current", "best for the cost of current", "ideal"
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
    names : tuple of str
        The stages from coarse to fine.
    stages : Stages
        Variance and cost of a unit of each stage, and its limits, for all algorithms together.
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
    names: tuple[str, ...]
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
    def best(self) -> dict[str, int]:
        """Units of each stage for each unit of the stage above, in the best allocation."""
        return {name: int(self.table[f"n_{name}"].iloc[0]) for name in self.names}

    def standard_error(self, units: Mapping[str, int]) -> float:
        """Of the mean or difference, with any numbers of units for each unit above (1 of stages that are not named)."""
        return math.sqrt(float(self.stages.variance_of(self._numbers(units))))

    def cost(self, units: Mapping[str, int]) -> float:
        """Of any numbers of units for each unit above (1 of stages that are not named)."""
        return float(self.stages.cost_of(self._numbers(units)))

    def _numbers(self, given: Mapping[str, int]) -> Array:
        counts = stage_counts(given, self.names, "units")
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
        shown = self.table["allocation"].isin([BEST, CURRENT])
        highest = 10.0 * float(self.table.loc[shown, "cost"].max())
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
            yield IDEAL, ideal(self.stages, tuning)
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
        own = zip(self.names, np.sqrt(s.variance), s.cost / self.n_algorithms, strict=True)
        parts = [
            f"{name} {written(float(sd), '.4g')} ({f'cost {amount(float(c))}' if c else 'no cost'})"
            for name, sd, c in own
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
        what, error = in_words(self.names, self.best.values()), format_number(row["standard_error"])
        cost = amount(float(row["cost"]))
        if self.budget is not None:
            return f"For a budget of {amount(self.budget)} the best is {what}: standard error {error}, cost {cost}."
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
            f"The current {in_words(self.names, [now[f'n_{name}'] for name in self.names])} has a standard error of "
            f"{format_number(now['standard_error'])} for {amount(float(now['cost']))}"
        )
        if below(best["standard_error"] * (1.0 + 1e-6), now["standard_error"]):
            better = format_number(best["standard_error"])
            yield f"{text}; {in_words(self.names, counts)} has {better} for the same cost."
        else:
            yield f"{text}, and nothing for that cost has a smaller one."

    def _floor(self) -> Iterator[str]:
        """What no number of units below the first free stage makes up for."""
        i = free_stage(self.names, self.stages)
        s = self.stages
        if i is None or i == len(self.names) - 1 or s.variance[i] == 0.0 or self.names[i] in (FAMILY, BENCHMARK):
            return
        if np.any(s.low[:i] < s.high[:i]) or not allows(s, i, 1):
            return
        floor = math.sqrt(float(s.parts_of(np.where(np.arange(len(self.names)) < i, s.low, 1.0))[: i + 1].sum()))
        finer = joined(_plural(name) for name in self.names[i + 1 :])
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


def amount(x: float) -> str:
    """A cost: whole numbers as such."""
    return format_number(int(x) if float(x).is_integer() else x)


def _plural(name: str) -> str:
    return units(name, 2).split(" ", 1)[1]


def _along(stages: Stages, budgets: Array) -> Iterator[tuple[float, float]]:
    """Budgets, as far as they buy anything, and standard errors of the best allocations."""
    for budget in budgets:
        found = search(stages, cost=float(budget))
        if found is not None:
            n = np.array(found, dtype=float)
            yield float(budget), math.sqrt(float(stages.variance_of(n)))
