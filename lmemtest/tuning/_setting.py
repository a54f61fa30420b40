"""The arguments of a comparison of two searches, checked once, and what its labels would be by chance."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from lmemtest._validate import check_fraction
from lmemtest.errors import ArgumentError
from lmemtest.tuning._arguments import check_direction, check_k, check_scores, check_statistic
from lmemtest.tuning.costs import COST_SHARE, MeanCost, mean_cost
from lmemtest.tuning.curves import TuningCurve, tuning_curve
from lmemtest.tuning.false_labels import (
    INDEPENDENT,
    RELABELLED,
    SAME_IN_COST,
    SWAPPED,
    FalseLabelRates,
    Limits,
    count_labels,
    default_grid,
    draw_ranks,
    draw_relabelled,
    rank_curve,
    rank_reader,
    ranks_at,
    reach_of,
    weight_reader,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]
    BoolArray = NDArray[np.bool_]

_COST_POINTS = 64  # of a default grid of costs


class Setting(NamedTuple):
    """The checked arguments of a comparison; pairs belong to a and b."""

    scores: tuple[FloatArray, FloatArray]
    curves: list[TuningCurve]
    options: list[dict[str, Any]]  # of each curve: a band leaves room for the error of a mean cost
    costs: tuple[MeanCost | None, MeanCost | None]
    grid: FloatArray
    sides: list[Limits]
    paired: bool


def make_setting(
    a: Any,
    b: Any,
    cost_a: Any,
    cost_b: Any,
    grid: Any,
    paired: bool,
    direction: str,
    bounds: tuple[float, float] | None,
    options: dict[str, Any],
) -> Setting:
    check_direction(direction)
    scores = check_scores(a, "a"), check_scores(b, "b")
    check_paired(paired, scores)
    error = 1.0 - options["confidence"]
    costs, errors = check_costs(cost_a, cost_b, scores, error)
    mine = [{**options, "direction": direction, "confidence": 1.0 - left} for left in errors]
    curves = [tuning_curve(y, bounds=bounds, **option) for y, option in zip(scores, mine, strict=True)]
    budgets = _grid(grid, curves, costs)
    return Setting(
        scores=scores,
        curves=curves,
        options=mine,
        costs=costs,
        grid=budgets,
        sides=[side_limits(budgets, cost) for cost in costs],
        paired=bool(paired),
    )


# ---------------------------------------------------------------------------------------------------- arguments


def curve_options(statistic: Any, confidence: Any, method: str, from_k: Any) -> dict[str, Any]:
    return {
        "statistic": check_statistic(statistic),
        "confidence": check_fraction(confidence, "confidence"),
        "method": method,
        "from_k": from_k,
    }


def check_names(names: Any) -> tuple[str, str]:
    """Check two different names."""
    if isinstance(names, (tuple, list)) and len(names) == 2 and str(names[0]) != str(names[1]):
        return str(names[0]), str(names[1])
    raise ArgumentError(f"names must be two different names, that of a and that of b, got {names!r}.")


def check_paired(paired: Any, scores: tuple[FloatArray, FloatArray]) -> None:
    """Check that paired scores can be pairs."""
    if not isinstance(paired, (bool, np.bool_)):
        raise ArgumentError(f"paired must be True (same configurations, in the same order) or False, got {paired!r}.")
    if paired and len(scores[0]) != len(scores[1]):
        raise ArgumentError(
            f"paired=True needs one score of each for every configuration, got {len(scores[0]):,} and "
            f"{len(scores[1]):,}. Keep the configurations that both were run on, in the same order."
        )


def check_costs(
    cost_a: Any, cost_b: Any, scores: tuple[FloatArray, FloatArray], error: float
) -> tuple[tuple[MeanCost | None, MeanCost | None], tuple[float, float]]:
    """Mean costs, and the error probability that is left to each band."""
    if (cost_a is None) != (cost_b is None):
        missing = "cost_a" if cost_a is None else "cost_b"
        raise ArgumentError(f"{missing} is missing: a common budget needs the cost of both, in the same unit.")
    if cost_a is None:
        return (None, None), (error, error)
    costs = tuple(
        mean_cost(cost, len(y), confidence=1.0 - COST_SHARE * error, name=name)
        for cost, y, name in ((cost_a, scores[0], "cost_a"), (cost_b, scores[1], "cost_b"))
    )
    left = tuple(error if cost.known else (1.0 - COST_SHARE) * error for cost in costs)
    return (costs[0], costs[1]), (left[0], left[1])


# ---------------------------------------------------------------------------------------------------- curves


def side_limits(grid: FloatArray, cost: MeanCost | None) -> Limits:
    """Trials at which the limits of a curve are read for each budget."""
    if cost is None:
        return Limits(grid, grid, grid)
    return Limits(grid / cost.high, grid / cost.mean, grid / cost.low)


def _grid(grid: Any, curves: list[TuningCurve], costs: tuple[MeanCost | None, MeanCost | None]) -> FloatArray:
    if grid is not None:
        return np.sort(check_k(grid, "grid"))
    first, second = costs
    if first is None or second is None:
        return default_grid(*curves)
    start = max(
        cost.high * max(1.0, curve.band.from_k or 1.0) for cost, curve in zip(costs, curves, strict=True) if cost
    )
    reach = min(cost.low * reach_of(curve) for cost, curve in zip((first, second), curves, strict=True))
    reach *= 1.0 - 1e-9  # the division by the cost must not round to beyond the last k
    return np.linspace(start, reach, _COST_POINTS) if reach > start else np.array([start])


# ---------------------------------------------------------------------------------------------------- false labels


def simulated_rates(
    setting: Setting, usable: BoolArray, portion: float, n_sim: int, rng: int | np.random.Generator | None
) -> FalseLabelRates | None:
    """Simulated rates; None where no null can be simulated."""
    points, mean = int(usable.sum()), setting.options[0]["statistic"] == "mean"
    first, second = setting.costs
    if (setting.paired or mean) and first is not None:
        return None
    if not (setting.paired or mean):
        ratio = 1.0 if first is None or second is None else first.mean / second.mean
        null, width = INDEPENDENT if first is None else SAME_IN_COST, 6 * points
        ranks = _ranks(setting, usable)
        draw = draw_ranks(ranks[0], ranks[1], setting.curves[0].n, setting.curves[1].n, ratio)
    else:
        null, width = SWAPPED if setting.paired else RELABELLED, 2 * sum(map(len, setting.scores))
        read = _weights(setting, usable) if mean else [rank_reader(ranks) for ranks in _ranks(setting, usable)]
        sign = 1.0 if setting.curves[0].direction == "maximize" else -1.0
        draw = draw_relabelled(sign * setting.scores[0], sign * setting.scores[1], read, paired=setting.paired)
    return count_labels(draw, width, points, portion, null, n_sim, rng)


def _ranks(setting: Setting, usable: BoolArray) -> list[NDArray[np.intp]]:
    return [
        ranks_at(rank_curve(curve.n, options), side)[:, usable]
        for curve, side, options in zip(setting.curves, setting.sides, setting.options, strict=True)
    ]


def _weights(setting: Setting, usable: BoolArray) -> list[Any]:
    readers = []
    for curve, side, options in zip(setting.curves, setting.sides, setting.options, strict=True):
        low, high = curve.bounds
        ends = (low, high) if curve.direction == "maximize" else (-high, -low)
        readers.append(weight_reader(curve.n, side, usable, ends, options))
    return readers
