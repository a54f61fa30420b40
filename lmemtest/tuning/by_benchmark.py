"""Tuning curves of many algorithms on many benchmarks at once: one tidy table, one figure, one count of the evidence.

Random search gets tuning curves over trials. Adaptive optimisers get curves over seeds, at each budget.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest._caller import in_words_of
from lmemtest._threads import one_blas_thread
from lmemtest._validate import check_choice, check_fraction
from lmemtest.errors import ArgumentError, DataError
from lmemtest.tuning._arguments import (
    check_bounds,
    check_k,
    check_statistic,
    quantile_of,
)
from lmemtest.tuning._groups import Group, Roles, find_roles, floats, named_groups, read_groups
from lmemtest.tuning._setting import side_limits
from lmemtest.tuning.compare import on_grid
from lmemtest.tuning.costs import COST_SHARE, MeanCost, mean_cost
from lmemtest.tuning.curve_set import GroupCurve, TuningCurves
from lmemtest.tuning.curves import MOST_POINTS, TuningCurve, tuning_curve
from lmemtest.tuning.order_statistics import METHODS
from lmemtest.tuning.seed_bands import seed_curve

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray

    FloatArray = NDArray[np.float64]

ADJUSTMENTS = ("none", "bonferroni", "sidak")
OVER = ("trials", "seed")

WHY_SEEDS = (
    "Bands over trials are for random search: an adaptive optimiser learns from its scores, so they are no independent "
    "draws. Its seeds are, so these bands are over seeds."
)


@one_blas_thread()
def tuning_curves(
    trials: Any,
    *,
    score: str | None = None,
    direction: str | None = None,
    by: str | Sequence[str] | None = None,
    confidence: float = 0.8,
    band: str = "ld_highest_density",
    k: ArrayLike | None = None,
    statistic: str | float = "median",
    cost: str | None = None,
    bounds: tuple[float, float] | None = None,
    from_k: float | None = None,
    adjust: str | None = None,
    over: str | None = None,
    seed: str | None = None,
    budget: str | None = None,
    simultaneous: bool = True,
) -> TuningCurves:
    """Estimate the tuning curves of all algorithms on all benchmarks, with bands.

    Parameters
    ----------
    trials : Runs, dataframe or dict of columns
        One row per trial of a random search. A `Runs` brings score, direction, benchmark (with its metafeatures),
        algorithm, seed and budget with it.
    score : str
        Column of the score; a failed run is a worst score, infinite if need be.
    direction : {"maximize", "minimize"}
        Which end of the score is better.
    by : str or sequence of str, default ("benchmark", "algorithm")
        Columns that tell the curves apart: the last one is the algorithm, the others make up the benchmark.
    confidence : float in (0, 1), default 0.8
        Probability that a band holds.
    band : {"ld_highest_density", "ld_equal_tailed", "ks", "dkw"}
        Shape of the bands, see `cdf_band`; for curves over trials.
    k : array-like of float > 0, optional
        Budgets: numbers of trials, or costs with `cost`, or budgets of the runs with ``over="seed"``. Default: for each
        curve up to its number of trials, or its total cost, or all budgets that all its seeds reached.
    statistic : "median", "mean" or float in (0, 1), default "median"
        What of the distribution of the best score to show. A float q is its q-quantile in both directions, see
        `tuning_curve`.
    cost : str, optional
        Column of the cost of a trial. Budgets are then costs, the same for all algorithms of a benchmark, and the
        uncertainty of each mean cost is part of the band.
    bounds : (low, high), optional
        Smallest and largest score that can occur, on every benchmark. The mean needs them.
    from_k : float > 0, optional
        Calibrate the bands for k >= from_k only.
    adjust : {"bonferroni", "sidak"}, optional
        Make all bands of an algorithm hold at once, on all benchmarks, with the confidence. "sidak" is for searches
        that are independent between benchmarks; with the same configurations on all of them use "bonferroni".
    over : {"trials", "seed"}, default "trials"
        What is independent. "seed" is for adaptive optimisers: a quantile over seeds of the best score so far, at each
        budget.
    seed, budget : str, optional
        Columns for ``over="seed"``: repetitions, and the budget at which a score was reached.
    simultaneous : bool, default True
        With ``over="seed"``: whether the limits hold at all budgets at once (Bonferroni, so fewer budgets mean
        narrower limits: name them with `k`), or at each budget by itself.

    Returns
    -------
    TuningCurves
        ``to_frame()`` has the columns `by`, k, lower, estimate, upper, trivial; ``labels()`` counts the evidence
        between algorithms over benchmarks.

    Raises
    ------
    ArgumentError
        If an argument is out of its range, or two do not go together.
    UnknownColumnError
        If a column is not in the table.
    DataError
        If scores are missing (with the groups and counts), outside of the bounds, or of several budgets.

    Notes
    -----
    Over trials, each curve is that of `tuning_curve`: exact, for any distribution of scores. Numbers of trials may
    differ: each group has its own band.

    Over seeds, the scores of one seed are replaced by the best so far; at each budget they are independent draws, and
    the quantile lies between two of their order statistics with a binomial probability (`quantile_ranks`), exact for
    continuous scores and at least that for others. Best-so-far scores of neighbouring budgets are dependent in a way
    that differs between optimisers, so limits at several budgets are adjusted by Bonferroni, which holds for any.

    References
    ----------
    Lourie, Cho & He (2024), NAACL, doi:10.18653/v1/2024.naacl-long.189;
    Thompson (1936), On confidence ranges for the median, doi:10.1214/aoms/1177732502

    Examples
    --------
    >>> import lmemtest as lt
    >>> trials = lt.datasets.load_hpo_trials()
    >>> curves = tuning_curves(trials, score="valid_loss", direction="minimize", by=["dataset", "model"], k=[1, 8])
    >>> curves.to_frame().head(2).round(3)
      dataset     model    k  lower  estimate  upper  trivial
    0  cancer  boosting  1.0  0.059     0.061  0.066    False
    1  cancer  boosting  8.0  0.040     0.045  0.047    False
    >>> runs = lt.datasets.load_hpo_runs().filter(prior="good", benchmark="svm-digits")
    >>> tuning_curves(runs, over="seed", k=[4, 32]).to_frame().head(2).round(3)
        benchmark prior algorithm  budget  lower  estimate  upper  trivial
    0  svm-digits  good        HB     4.0  0.021     0.022  0.022    False
    1  svm-digits  good        HB    32.0  0.019     0.019  0.020    False
    """
    over = check_choice("trials" if over is None else over, "over", OVER)
    roles = find_roles(trials, score=score, direction=direction, by=by, cost=cost, seed=seed, budget=budget, over=over)
    options = _Options(
        confidence=check_fraction(confidence, "confidence"),
        method=check_choice(band, "band", METHODS),
        statistic=check_statistic(statistic),
        bounds=bounds,
        from_k=from_k,
        grid=None if k is None else check_k(k),
        adjust=check_choice("none" if adjust is None else adjust, "adjust", ADJUSTMENTS),
        simultaneous=simultaneous,
        over=over,
    )
    _check_together(options, roles)
    groups, algorithms = read_groups(trials, roles, over)
    count = len({group.key[:-1] for group in groups})
    level = _adjusted_level(options.confidence, options.adjust, count)
    curves, notes = (_over_seeds if over == "seed" else _over_trials)(groups, roles, options, level)
    return TuningCurves(
        curves=tuple(curves),
        by=roles.by,
        algorithms=algorithms,
        over=over,
        unit="budget" if over == "seed" else "trials" if cost is None else "cost",
        score=roles.score,
        direction=roles.direction,
        statistic=options.statistic,
        confidence=options.confidence,
        level=level,
        adjust=options.adjust,
        method="order_statistics" if over == "seed" else options.method,
        simultaneous=options.simultaneous,
        bounds=bounds,
        from_k=from_k,
        grid=options.grid,
        cost=roles.cost,
        seed=roles.seed,
        budget=roles.budget if over == "seed" else None,
        notes=(*notes, *_absent(curves, roles)),
    )


# ---------------------------------------------------------------------------------------------------- arguments


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Options:
    """The checked options of all curves."""

    confidence: float
    method: str
    statistic: str | float
    bounds: tuple[float, float] | None
    from_k: float | None
    grid: FloatArray | None
    adjust: str
    simultaneous: bool
    over: str


def _check_together(options: _Options, roles: Roles) -> None:
    if not isinstance(options.simultaneous, (bool, np.bool_)):
        raise ArgumentError(f"simultaneous must be True or False, got {options.simultaneous!r}.")
    if options.over == "trials":
        if not options.simultaneous:
            raise ArgumentError(
                "simultaneous=False is for over='seed': a band over trials holds for all k at once, at no extra cost."
            )
        # a curve of one score checks what belongs together before the table is read
        tuning_curve(
            [_inside(options.bounds)],
            direction=roles.direction,
            **_curve_options(options, options.confidence),
            k=None if roles.cost is not None else options.grid,
        )
        return
    wrong = {"cost": roles.cost, "from_k": options.from_k}
    for name, value in wrong.items():
        if value is not None:
            raise ArgumentError(f"{name} is for curves over trials; with over='seed' budgets are those of the runs.")
    if options.statistic == "mean":
        raise ArgumentError(
            "statistic='mean' has no exact limits over seeds. Use the median or a quantile, or compare means with the "
            "mixed model: fit_lmm(), emmeans()."
        )


def _inside(bounds: tuple[float, float] | None) -> float:
    """A score that the bounds allow."""
    ends = (-np.inf, np.inf) if bounds is None else check_bounds(bounds, np.empty(0))
    return next((end for end in ends if np.isfinite(end)), 0.0)


def _curve_options(options: _Options, confidence: float) -> dict[str, Any]:
    return {
        "statistic": options.statistic,
        "confidence": confidence,
        "method": options.method,
        "bounds": options.bounds,
        "from_k": options.from_k,
    }


def _adjusted_level(confidence: float, adjust: str, count: int) -> float:
    """Confidence of one band so that `count` of them hold at once.

    >>> _adjusted_level(0.8, "bonferroni", 4), _adjusted_level(0.81, "sidak", 2), _adjusted_level(0.8, "none", 4)
    (0.95, 0.9, 0.8)
    """
    if adjust == "bonferroni":
        return 1.0 - (1.0 - confidence) / count
    return confidence ** (1.0 / count) if adjust == "sidak" else confidence


# ---------------------------------------------------------------------------------------------------- over trials


def _over_trials(
    groups: list[Group], roles: Roles, options: _Options, level: float
) -> tuple[list[GroupCurve], tuple[str, ...]]:
    sides = [_priced(group, roles, level) for group in groups]
    made = []
    for group, (cost, _, confidence) in zip(groups, sides, strict=True):
        scores = floats(group.frame[roles.score])
        k = options.grid if cost is None else None
        with _named(group):
            curve = tuning_curve(scores, direction=roles.direction, k=k, **_curve_options(options, confidence))
        made.append(curve)
    grids = _cost_grids(groups, sides, made, options.grid) if roles.cost is not None else [c.k for c in made]
    curves = [
        _trials_curve(group, curve, grid, cost, costs, level, floats(group.frame[roles.score]))
        for group, curve, grid, (cost, costs, _) in zip(groups, made, grids, sides, strict=True)
    ]
    return curves, _few(curves, roles)


@contextmanager
def _named(group: Group) -> Iterator[None]:
    """Put the name of the group in front of what is wrong with its scores."""
    try:
        yield
    except DataError as error:
        raise DataError(f"{group.name}: {error}") from None


def _priced(group: Group, roles: Roles, level: float) -> tuple[MeanCost | None, Any, float]:
    """Mean cost of a trial, what it was estimated from, and the confidence that is left to the band."""
    if roles.cost is None:
        return None, None, level
    values = floats(group.frame[roles.cost])
    costs: Any = float(values[0]) if np.all(values == values[0]) and values[0] > 0 else values  # known if constant
    with _named(group):
        cost = mean_cost(costs, len(values), confidence=1.0 - COST_SHARE * (1.0 - level), name=f"cost {roles.cost!r}")
    return cost, costs, level if cost.known else 1.0 - (1.0 - COST_SHARE) * (1.0 - level)


def _cost_grids(
    groups: list[Group], sides: list[Any], curves: list[TuningCurve], asked: FloatArray | None
) -> list[FloatArray]:
    """Costs, the same for all algorithms of a benchmark, that pay for 1 to n trials of each."""
    ends: dict[tuple[Any, ...], list[float]] = {}
    for group, (cost, _, _), curve in zip(groups, sides, curves, strict=True):
        low, high = ends.setdefault(group.key[:-1], [np.inf, 0.0])
        ends[group.key[:-1]] = [min(low, cost.mean), max(high, cost.mean * curve.n)]
    grids = []
    for group, (cost, _, _), curve in zip(groups, sides, curves, strict=True):
        if asked is not None:
            grids.append(asked)
            continue
        low, high = ends[group.key[:-1]]
        shared = np.geomspace(low, high, MOST_POINTS)
        first = cost.high * (curve.band.from_k or 0.0)  # the pessimistic limit is read at the cost's upper end
        inside = (shared >= max(cost.mean * (1.0 - 1e-9), first)) & (shared <= cost.mean * curve.n * (1.0 + 1e-9))
        grids.append(shared[inside] if inside.any() else np.array([max(cost.mean, first)]))
    return grids


def _trials_curve(
    group: Group,
    curve: TuningCurve,
    grid: FloatArray,
    cost: MeanCost | None,
    costs: Any,
    level: float,
    scores: FloatArray,
) -> GroupCurve:
    read = on_grid(str(group.key[-1]), curve, side_limits(grid, cost), cost)
    return GroupCurve(
        key=group.key,
        n=curve.n,
        grid=grid,
        k=read.k,
        lower=read.lower,
        estimate=read.estimate,
        upper=read.upper,
        trivial=read.trivial,
        level=level,
        cost=cost,
        scores=scores,
        costs=costs,
        curve=curve,
    )


def _few(curves: list[GroupCurve], roles: Roles) -> tuple[str, ...]:
    """Groups with too few trials for two limits anywhere."""
    names = [f"{roles.name(curve.key)} (n = {curve.n})" for curve in curves if curve.trivial.all()]
    if not names:
        return ()
    return (f"At no budget two limits, for too few trials or too many failed ones: {named_groups(names)}.",)


def _absent(curves: list[GroupCurve], roles: Roles) -> tuple[str, ...]:
    """Algorithms that were not tried on a benchmark."""
    there = {curve.key for curve in curves}
    benchmarks = dict.fromkeys(curve.key[:-1] for curve in curves)
    algorithms = dict.fromkeys(curve.key[-1] for curve in curves)
    names = [roles.name((*b, a)) for b in benchmarks for a in algorithms if (*b, a) not in there]
    return (f"Without rows: {named_groups(names)}.",) if names else ()


# ---------------------------------------------------------------------------------------------------- over seeds


def _over_seeds(
    groups: list[Group], roles: Roles, options: _Options, level: float
) -> tuple[list[GroupCurve], tuple[str, ...]]:
    curves, raised, coverages = [], 0, []
    for group in groups:
        with _named(group):
            scores = floats(group.frame[roles.score])
            limits = (-np.inf, np.inf) if options.bounds is None else check_bounds(options.bounds, scores)
        found = seed_curve(
            group,
            roles,
            grid=options.grid,
            quantile=quantile_of(options.statistic),
            confidence=level,
            simultaneous=bool(options.simultaneous),
            bounds=limits,
        )
        raised += found.raised
        coverages.append((found.level, found.coverage))
        curves.append(
            GroupCurve(
                key=group.key,
                n=found.n,
                grid=found.grid,
                k=np.full(len(found.grid), np.nan),
                lower=found.lower,
                estimate=found.estimate,
                upper=found.upper,
                trivial=(found.lower <= limits[0]) | (found.upper >= limits[1]),
                level=found.level,
            )
        )
    return curves, _seed_notes(curves, roles, options, raised, coverages)


def _seed_notes(
    curves: list[GroupCurve], roles: Roles, options: _Options, raised: int, coverages: list[tuple[float, float]]
) -> tuple[str, ...]:
    notes = [WHY_SEEDS]
    if options.simultaneous:
        asked = sorted({round(100 * level, 2) for level, _ in coverages})
        notes.append(
            f"At a single budget the limits are at {_range(asked)} %, so that they hold at all budgets at once."
        )
    else:
        notes.append("The limits hold at one budget that is chosen beforehand, not at all budgets at once.")
    reached = sorted({round(100 * coverage, 2) for _, coverage in coverages})
    notes.append(f"Order statistics come in steps: at a single budget the limits hold with {_range(reached)} %.")
    if raised:
        notes.append(
            f"{raised:,} scores were worse than an earlier one of their seed; the best so far stands for them."
        )
    few = [f"{roles.name(curve.key)} (n = {curve.n})" for curve in curves if curve.trivial.all()]
    if few:
        fewer = in_words_of(python="Name fewer budgets with k=", command_line="Ask for --pointwise limits")
        notes.append(f"Too few seeds for two limits: {named_groups(few)}. {fewer}, or add seeds.")
    return tuple(notes)


def _range(values: list[float]) -> str:
    return f"{values[0]:g}" if len(values) == 1 else f"{values[0]:g} to {values[-1]:g}"
