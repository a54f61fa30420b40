"""Budgets in trials or in costs: what a trial costs on average, how well that is known, and curves read at budgets."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from lmemtest.core.arrays import Array, Mask
from lmemtest.core.rounding import written
from lmemtest.core.validate import check_flag
from lmemtest.core.words import percent, span
from lmemtest.errors import ArgumentError, DataError
from lmemtest.tuning.checks import Estimate, check_scores
from lmemtest.tuning.curve import Reading, TuningCurve, drawing_grid

COST_SHARE = 0.1  # of the error probability that the interval of a mean cost takes; the band gets the rest
PAIRED_ADVICE = (
    "Paired design: both searches tried the same configurations. Each band is valid by itself; for how much the two "
    "differ on one configuration, fit the mixed model score ~ algorithm + (1 | configuration), which uses the pairs."
)
Costs = tuple[Estimate, Estimate] | tuple[None, None]  # of two searches; None where budgets are trials


# ---------------------------------------------------------------------------------------------------- mean costs


def mean_cost(cost: Any, n: int, *, level: float, name: str = "cost") -> Estimate:
    """The mean cost of a trial: as known if it is one number, else estimated from the (n,) costs of the trials.

    The interval is Student's for the mean on the log scale, m exp(+- t se / m): always positive, and, like every
    interval of a mean without bounds, right only approximately.

    >>> mean_cost(2.5, 48, level=0.95).ci_high
    2.5
    >>> interval = mean_cost([1.0, 2.0, 3.0, 4.0], 4, level=0.95)
    >>> round(interval.ci_low, 3), interval.value, round(interval.ci_high, 3)
    (1.099, 2.5, 5.686)
    """
    from scipy import special

    try:
        values = np.asarray(cost)
        if values.dtype.kind in "cSUmMb":
            raise TypeError
        values = np.asarray(values, dtype=float)
    except (TypeError, ValueError):
        raise ArgumentError(f"{name} must be a number or a list of numbers, one per trial, got {cost!r}.") from None
    if values.ndim == 0:
        value = float(values)
        if not 0.0 < value < np.inf:
            raise ArgumentError(f"{name} must be a positive and finite mean cost of a trial, got {value:g}.")
        return Estimate(name=name, value=value, ci_low=value, ci_high=value, level=1.0, fixed=True)
    if values.shape != (n,):
        raise ArgumentError(
            f"{name} must be one number (the mean cost of a trial) or one for each of the {n:,} scores, got "
            f"{' x '.join(map(str, values.shape))} numbers."
        )
    wrong = int(np.sum(~(np.isfinite(values) & (values >= 0.0))))
    if wrong:
        raise DataError(
            f"{name} must be finite and at least 0: {wrong:,} of {len(values):,} are not. A failed run has a cost too: "
            "what it took until it failed."
        )
    if not values.any():
        raise DataError(f"{name} must not be 0 for every trial.")
    if n == 1:
        raise DataError(
            f"{name} needs at least 2 trials for the uncertainty of their mean. Give the mean cost instead."
        )
    mean = float(values.mean())
    relative = float(values.std(ddof=1)) / (mean * np.sqrt(n))
    reach = float(np.exp(special.stdtrit(n - 1, 0.5 + 0.5 * level) * relative))
    return Estimate(name=name, value=mean, ci_low=mean / reach, ci_high=mean * reach, level=level)


def known_if_constant(costs: Array) -> Any:
    """The mean where all trials cost the same, so that it counts as known; else the costs."""
    constant = costs.dtype.kind in "iuf" and len(costs) and bool(np.all(costs == costs[0])) and costs[0] > 0
    return float(costs[0]) if constant else costs


def shared_error(cost: Any, n: int, error: float, name: str) -> tuple[Estimate, float]:
    """A mean cost, and what it leaves of an error probability to the band."""
    made = mean_cost(cost, n, level=1.0 - COST_SHARE * error, name=name)
    return made, error if made.fixed else (1.0 - COST_SHARE) * error


def cost_facts(names: tuple[str, str], costs: Costs) -> tuple[str, ...]:
    """What a trial of each of two searches costs, and how well that is known."""
    facts = []
    for name, cost in zip(names, costs, strict=True):
        if cost is not None:
            interval = f"{percent(cost.level)} interval {span(cost.ci_low, cost.ci_high)}, part of the band"
            source = "as given" if cost.fixed else interval
            facts.append(f"Mean cost of a trial of {name}: {written(cost.value, '.4g')} ({source}).")
    return tuple(facts)


# ---------------------------------------------------------------------------------------------------- two searches


def check_searches(
    a: Any, b: Any, names: Any, cost_a: Any, cost_b: Any, paired: Any, *, error: float, if_paired: float | None = None
) -> tuple[tuple[str, str], tuple[Array, Array], Costs, tuple[float, float]]:
    """Names, scores and mean costs of two searches, from the arguments of a comparison, and the level of each band.

    `error` is that of each band, for pairs perhaps another one; mean costs take their share of it.
    """
    if not (isinstance(names, (tuple, list)) and len(names) == 2 and str(names[0]) != str(names[1])):
        raise ArgumentError(f"names must be two different names, that of a and that of b, got {names!r}.")
    scores = check_scores(a, "a"), check_scores(b, "b")
    n_a, n_b = map(len, scores)
    if check_flag(paired, "paired") and n_a != n_b:
        raise ArgumentError(
            f"paired=True needs one score of each for every configuration, got {n_a:,} and {n_b:,}. Keep the "
            "configurations that both were run on, in the same order."
        )
    error = if_paired if paired and if_paired is not None else error
    called = str(names[0]), str(names[1])
    if (cost_a is None) != (cost_b is None):
        missing = "cost_a" if cost_a is None else "cost_b"
        raise ArgumentError(f"{missing} is missing: a common budget needs the cost of both, in the same unit.")
    if cost_a is None:
        return called, scores, (None, None), (1.0 - error, 1.0 - error)
    first, left_a = shared_error(cost_a, n_a, error, "cost_a")
    second, left_b = shared_error(cost_b, n_b, error, "cost_b")
    return called, scores, (first, second), (1.0 - left_a, 1.0 - left_b)


# ---------------------------------------------------------------------------------------------------- curves at budgets


def trials_at(grid: Array, cost: Estimate | None) -> Reading:
    """Trials at which the pessimistic limit, the estimate and the optimistic limit are read for each budget."""
    if cost is None:
        return grid, grid, grid
    return grid / cost.ci_high, grid / cost.value, grid / cost.ci_low


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BudgetCurve:
    """A curve read at budgets: numbers of trials, or costs whose uncertainty is part of the band.

    Attributes
    ----------
    key : tuple
        What it is of: the values of the columns of the benchmark, if any, then the algorithm.
    n_scores : int
        Independent scores behind it: trials, or seeds.
    grid : (m,) float
        Budgets: trials, costs, or the budgets of the runs.
    k : (m,) float
        Trials that a budget pays for on average; NaN for curves over seeds.
    band_low, estimate, band_high : (m,) float
        Curve and band, in units of the score.
    trivial : (m,) bool
        Whether a limit is an end of the support, and so says nothing.
    level : float
        Of this band, after adjustments. Over seeds: at each budget.
    cost : Estimate or None
        Mean cost of a trial; None if budgets are trials.
    curve : TuningCurve or None
        What was read; None for curves over seeds.
    scores, costs : (n,) float
        What the curve was made from, in the order of the table; None for curves over seeds, or without costs.
    """

    key: tuple[Any, ...]
    n_scores: int
    grid: Array
    k: Array
    band_low: Array
    estimate: Array
    band_high: Array
    trivial: Mask
    level: float
    cost: Estimate | None = None
    curve: TuningCurve | None = field(default=None, repr=False)
    scores: Array | None = field(default=None, repr=False)
    costs: Any = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """The algorithm in words."""
        return str(self.key[-1])

    @property
    def benchmark(self) -> str:
        """The benchmark in words; empty if there is no such column."""
        return ", ".join(map(str, self.key[:-1]))

    @property
    def reach(self) -> float:
        """The last budget of the grid at which neither limit is trivial; NaN if there is none."""
        return float(self.grid[~self.trivial].max()) if not self.trivial.all() else np.nan

    def drawn(self) -> BudgetCurve:
        """The same curve at so many budgets that a line shows what lies between; itself over seeds, which are steps."""
        if self.curve is None:
            return self
        cost, ends = self.cost, (float(self.grid.min()), float(self.grid.max()))
        scales = (1.0,) if cost is None else (cost.ci_low, cost.value, cost.ci_high)  # limits jump at other costs
        return replace(self, **read_at(self.curve, cost, drawing_grid(self.curve, *ends, scales)))

    def reading(self) -> Reading:
        """Pessimistic limit, estimate and optimistic limit, turned so that larger is better."""
        if self.curve is None or self.curve.direction == "maximize":
            return self.band_low, self.estimate, self.band_high
        return -self.band_high, -self.estimate, -self.band_low


def read_at(curve: TuningCurve, cost: Estimate | None, grid: Array) -> dict[str, Any]:
    """What a `BudgetCurve` says of a curve at budgets."""
    pessimistic, k, optimistic = trials_at(grid, cost)
    centre = low = high = curve.at(k)
    if cost is not None and not cost.fixed:
        low, high = curve.at(pessimistic), curve.at(optimistic)
        low, high = (low, high) if curve.direction == "maximize" else (high, low)
    return {
        "n_scores": curve.n_scores,
        "grid": grid,
        "k": k,
        "band_low": low.band_low,
        "estimate": centre.estimate,
        "band_high": high.band_high,
        "trivial": low.low_trivial | high.high_trivial,
        "cost": cost,
        "curve": curve,
    }
