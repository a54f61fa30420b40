"""Tuning curves of many algorithms on many benchmarks at once: one tidy table, one figure, one count of the evidence.

Random search gets tuning curves over trials. Adaptive optimisers get curves over seeds, a quantile of the best score so
far at each budget, with exact limits from order statistics:

an adaptive optimiser chooses each configuration in the light of the scores before it, so its scores are no independent
draws of one distribution, and the law F^k of the best of k draws says nothing about them. Its repetitions are
independent: at each budget the best scores so far of n seeds are n draws of one distribution, whose quantile lies
between two order statistics with a probability that is binomial, whatever the distribution.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from lmemtest.core.arrays import Array
from lmemtest.core.caller import advice
from lmemtest.core.proportions import quantile_places
from lmemtest.core.result import Answer, result
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_choice, check_flag, check_fraction, check_positive_int
from lmemtest.core.words import confidence, percent, span
from lmemtest.errors import ArgumentError, DataError
from lmemtest.tuning.band import BAND_NAMES
from lmemtest.tuning.checks import Estimate, check_bounds, check_k, name_of
from lmemtest.tuning.costs import BudgetCurve, known_if_constant, read_at, shared_error
from lmemtest.tuning.curve import MOST_POINTS, CurveResult, Settings, TuningCurve, check_settings, curve_of, yes
from lmemtest.tuning.curve_labels import count_curve_labels
from lmemtest.tuning.distribution import SLACK
from lmemtest.tuning.groups import Group, errors_of, find_roles, floats, group_name, named_groups, read_groups

ADJUSTMENTS = ("none", "bonferroni", "sidak")
UNITS = ("trials", "seed")
AXES = {"trials": "k", "cost": "cost", "budget": "budget"}  # what budgets are, and their column

WHY_SEEDS = (
    "Bands over trials are for random search: an adaptive optimiser learns from its scores, so they are not "
    "independent draws. Its seeds are independent, so these bands are over seeds."
)


@result
class TuningCurves(CurveResult):
    """Curves of all algorithms on all benchmarks.

    Attributes
    ----------
    settings : Settings
        Direction, statistic, level, band and from_k, as asked for; each is an attribute of the curves too. The level is
        of each curve's band or, with `adjust`, of one algorithm's bands on all benchmarks. Over seeds there is no band
        of a shape: the limits are order statistics.
    curves : tuple of BudgetCurve
        Sorted by benchmark, then algorithm.
    score, by, cost, seed, budget : str, tuple of str, or None
        The columns that were read; those of `by` separate the curves, and the last one is the algorithm.
    algorithms : tuple of str
        Names of the algorithms, in the order of their column.
    unit : {"trials", "seed"}
        What is independent: the trials of a random search, or the seeds of an optimiser.
    axis : {"trials", "cost", "budget"}
        What the budgets are.
    band_level : float
        Of each band separately: the level after adjusting for benchmarks.
    adjust : {"none", "bonferroni", "sidak"}
        Adjustment for the number of benchmarks.
    simultaneous : bool
        Whether a band holds at all budgets at once, or at each by itself (over seeds only).
    bounds : (low, high) or None
        Smallest and largest score that can occur, as asked for.
    grid : (m,) float or None
        The budgets that were asked for.
    notes : tuple of str
        What a reader must know.
    """

    settings: Settings
    curves: tuple[BudgetCurve, ...]
    score: str
    by: tuple[str, ...]
    cost: str | None
    seed: str | None
    budget: str | None
    algorithms: tuple[str, ...]
    unit: str
    axis: str
    band_level: float
    adjust: str
    simultaneous: bool
    bounds: tuple[float, float] | None
    grid: Array | None
    notes: tuple[str, ...] = ()

    parts = {"curves": "_frame", "groups": "_groups"}
    formats = {**dict.fromkeys(("k", "cost", "budget", "reach"), ".4g"), "trivial": yes}
    figure = "tuning_curves_plot"

    @property
    def title(self) -> str:
        what = "Best-so-far curves over seeds" if self.unit == "seed" else "Tuning curves"
        return f"{what} of {self.score}, {self.direction}"

    @property
    def facts(self) -> tuple[str, ...]:
        where = (
            f"Shown at the last {AXES[self.axis]} at which all curves of a benchmark have two limits (else at the "
            "first); " + advice("all_limits")
        )
        return self.describe(), where

    @property
    def benchmarks(self) -> tuple[str, ...]:
        """Names of the benchmarks, in order; one empty name if there is no such column."""
        return tuple(panel[0].benchmark for panel in self.panels())

    def panels(self) -> tuple[tuple[BudgetCurve, ...], ...]:
        """The curves of each benchmark."""
        panels: dict[tuple[Any, ...], list[BudgetCurve]] = {}
        for curve in self.curves:
            panels.setdefault(curve.key[:-1], []).append(curve)
        return tuple(map(tuple, panels.values()))

    def _frame(self) -> pd.DataFrame:
        """One row per curve and budget: the columns `by`, k (trials), estimate, band_low, band_high, trivial.

        With costs there is a column cost before k. Over seeds, the column budget stands for k.
        """
        rows = np.repeat(np.arange(len(self.curves)), [len(curve.grid) for curve in self.curves])
        attributes = {"trials": {"k": "k"}, "cost": {"cost": "grid", "k": "k"}, "budget": {"budget": "grid"}}[self.axis]
        attributes |= {name: name for name in ("estimate", "band_low", "band_high", "trivial")}
        columns = {
            name: np.concatenate([getattr(curve, attribute) for curve in self.curves])
            for name, attribute in attributes.items()
        }
        return self._keys().iloc[rows].reset_index(drop=True).assign(**columns)

    def _groups(self) -> pd.DataFrame:
        """One row per curve: the columns `by`, n_scores, reach (last budget with two limits), level; with costs
        mean_cost.
        """
        names = ("n_scores", "reach", "level")
        frame = self._keys().assign(**{name: [getattr(curve, name) for curve in self.curves] for name in names})
        if self.axis == "cost":
            frame["mean_cost"] = [curve.cost.value if curve.cost else np.nan for curve in self.curves]
        return frame

    def _keys(self) -> pd.DataFrame:
        return pd.DataFrame([curve.key for curve in self.curves], columns=list(self.by))

    def labels(
        self, *, portion: float = 0.5, n_draws: int = 20_000, rng: int | np.random.Generator | None = None
    ) -> Answer:
        """Compare each pair of algorithms on each benchmark, and count the labels.

        Parameters
        ----------
        portion, n_draws, rng
            As in `lmemtest.tuning.compare`; the rates of false labels are simulated once per pair of sample sizes.

        Returns
        -------
        Answer
            ``to_frame()`` has one row per pair of algorithms: first, second; numbers of benchmarks with strong, fair,
            weak evidence for the first, none, weak, fair, strong evidence for the second, evidence both ways, not
            comparable; benchmarks (with both); and how many of these would show at least weak, fair, strong evidence
            if the two were the same (NaN if not known). ``to_frame("comparisons")`` has one row per benchmark and pair:
            the benchmark's columns, first, second, evidence, better (empty for none or both), portion, budgets (at
            which both bands say something). `portion`, `level` (of each band), `n_benchmarks`.

        Raises
        ------
        ArgumentError
            For curves over seeds, or of one algorithm only.
        """
        return count_curve_labels(self, portion=portion, n_draws=n_draws, rng=rng)

    def describe(self) -> str:
        """What the curves and their bands are, as a sentence."""
        if self.unit == "seed":
            scope = "at all budgets at once (Bonferroni)" if self.simultaneous else "at each budget separately"
            return (
                f"{name_of(self.statistic).capitalize()} over seeds of the best score so far, with "
                f"{percent(self.level)} limits from order statistics {scope}{self._adjusted()}."
            )
        reads = f"{percent(self.level)} {BAND_NAMES[self.band]}"
        where = (
            "all budgets" if self.axis == "cost" else "all k" if self.from_k is None else f"all k >= {self.from_k:g}"
        )
        return f"{self.settings.name.capitalize()}, with {reads} for {where} at once{self._adjusted()}."

    def _adjusted(self) -> str:
        count = len(self.benchmarks)
        if self.adjust == "none" or count == 1:
            return "; each curve separately" if len(self.curves) > 1 else ""
        name = {"bonferroni": "Bonferroni", "sidak": "Šidák"}[self.adjust]
        return f" and for all {count} benchmarks of an algorithm ({name}: each curve at {confidence(self.band_level)})"

    def shown(self) -> pd.DataFrame:
        rows = []
        for panel in self.panels():
            for curve, place in zip(panel, _common_places(panel), strict=True):
                values = [float(getattr(curve, name)[place]) for name in ("grid", "estimate", "band_low", "band_high")]
                rows.append((*curve.key, curve.n_scores, *values, bool(curve.trivial[place]), curve.reach))
        names = ["n_scores", AXES[self.axis], "estimate", "band_low", "band_high", "trivial", "reach"]
        return pd.DataFrame(rows, columns=[*self.by, *names])


def _common_places(panel: tuple[BudgetCurve, ...]) -> list[int]:
    """Where on their grids curves have the last budget at which all have two limits, or else their first common one."""
    shared = set.intersection(*(set(curve.grid.tolist()) for curve in panel))
    in_all = set.intersection(*(set(curve.grid[~curve.trivial].tolist()) for curve in panel))
    chosen = max(in_all) if in_all else min(shared) if shared else None
    return [
        int(np.flatnonzero(curve.grid == chosen)[0]) if chosen is not None else int(curve.grid.argmin())
        for curve in panel
    ]


@one_blas_thread()
def curves(
    trials: Any,
    *,
    score: str | None = None,
    direction: str | None = None,
    by: str | Sequence[str] | None = None,
    level: float = 0.8,
    band: str = "ld_highest_density",
    k: ArrayLike | None = None,
    statistic: str | float = "median",
    cost: str | None = None,
    bounds: tuple[float, float] | None = None,
    from_k: float | None = None,
    adjust: str | None = None,
    unit: str | None = None,
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
        Columns that separate the curves: the last one is the algorithm, the others make up the benchmark.
    level : float in (0, 1), default 0.8
        Probability that a band holds.
    band : {"ld_highest_density", "ld_equal_tailed", "ks", "dkw"}
        Shape of the bands, see `lmemtest.tuning.band`; for curves over trials.
    k : array-like of float > 0, optional
        Budgets: numbers of trials, or costs with `cost`, or budgets of the runs with ``unit="seed"``. Default: for each
        curve up to its number of trials, or its total cost, or all budgets that all its seeds reached.
    statistic : "median", "mean" or float in (0, 1), default "median"
        What of the distribution of the best score to show. A float q is its q-quantile in both directions, see
        `lmemtest.tuning.curve`.
    cost : str, optional
        Column of the cost of a trial. Budgets are then costs, the same for all algorithms of a benchmark, and the
        uncertainty of each mean cost is part of the band.
    bounds : (low, high), optional
        Smallest and largest score that can occur, on every benchmark. The mean needs them.
    from_k : float > 0, optional
        Calibrate the bands for k >= from_k only.
    adjust : {"bonferroni", "sidak"}, optional
        Make all bands of an algorithm hold at once, on all benchmarks, at the level. "sidak" is for searches
        that are independent between benchmarks; with the same configurations on all of them use "bonferroni".
    unit : {"trials", "seed"}, default "trials"
        What is independent. "seed" is for adaptive optimisers: a quantile over seeds of the best score so far, at each
        budget.
    seed, budget : str, optional
        Columns for ``unit="seed"``: repetitions, and the budget at which a score was reached.
    simultaneous : bool, default True
        With ``unit="seed"``: whether the limits hold at all budgets at once (Bonferroni, so fewer budgets mean
        narrower limits: name them with `k`), or at each budget by itself.

    Returns
    -------
    TuningCurves
        ``to_frame()`` has the columns `by`, k, estimate, band_low, band_high, trivial; ``labels()`` counts the evidence
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
    Over trials, each curve is that of `lmemtest.tuning.curve`: exact, for any distribution of scores. Numbers of trials
    may differ: each group has its own band.

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
    >>> found = curves(trials, score="valid_loss", direction="minimize", by=["dataset", "model"], k=[1, 8])
    >>> found.to_frame().head(2).round(3)
      dataset     model    k  estimate  band_low  band_high  trivial
    0  cancer  boosting  1.0     0.061     0.059      0.066    False
    1  cancer  boosting  8.0     0.045     0.040      0.047    False
    >>> runs = lt.datasets.load_hpo_runs().filter(prior="good", benchmark="svm-digits")
    >>> curves(runs, unit="seed", k=[4, 32]).to_frame().head(2).round(3)
        benchmark prior algorithm  budget  estimate  band_low  band_high  trivial
    0  svm-digits  good        HB     4.0     0.022     0.021      0.022    False
    1  svm-digits  good        HB    32.0     0.019     0.019      0.020    False
    """
    unit = check_choice("trials" if unit is None else unit, "unit", UNITS)
    roles = find_roles(trials, score=score, direction=direction, by=by, cost=cost, seed=seed, budget=budget, unit=unit)
    columns = {role: name for role, name in roles.items() if role != "direction"}
    settings = check_settings(roles["direction"], statistic, level, band, None if unit == "seed" else from_k)
    empty = TuningCurves(
        settings=settings,
        curves=(),
        **(columns if unit == "seed" else {**columns, "budget": None}),
        algorithms=(),
        unit=unit,
        axis="budget" if unit == "seed" else "trials" if cost is None else "cost",
        band_level=settings.level,
        adjust=check_choice("none" if adjust is None else adjust, "adjust", ADJUSTMENTS),
        simultaneous=check_flag(simultaneous, "simultaneous"),
        bounds=bounds,
        grid=None if k is None else check_k(k),
    )
    _check(empty, from_k)
    groups, algorithms = read_groups(trials, roles, unit)
    each = _adjusted_level(settings.level, empty.adjust, len({key[:-1] for key, *_ in groups}))
    empty = replace(empty, algorithms=algorithms, band_level=each)
    made, notes = _over_seeds(groups, empty) if unit == "seed" else _over_trials(groups, empty)
    keys = dict.fromkeys(curve.key for curve in made)
    every = [(*b, a) for b in dict.fromkeys(key[:-1] for key in keys) for a in dict.fromkeys(key[-1] for key in keys)]
    absent = [group_name(empty.by, key) for key in every if key not in keys]
    more = (f"Without rows: {named_groups(absent)}.",) if absent else ()
    return replace(empty, curves=tuple(made), notes=(*notes, *more))


def _check(empty: TuningCurves, from_k: float | None) -> None:
    """Refuse what cannot be curves over trials or over seeds, before the table is read."""
    if empty.unit == "seed":
        for name, value in {"cost": empty.cost, "from_k": from_k}.items():
            if value is not None:
                raise ArgumentError(
                    f"{name} is for curves over trials; with unit='seed' budgets are those of the runs."
                )
        if empty.statistic == "mean":
            raise ArgumentError(
                "statistic='mean' has no exact limits over seeds. Use the median or a quantile, or compare means with "
                "the mixed model: fit_lmm(), emmeans()."
            )
        return
    if not empty.simultaneous:
        raise ArgumentError(
            "simultaneous=False is for unit='seed': a band over trials holds for all k at once, at no extra cost."
        )
    # a curve of one score, one that the bounds allow, checks what belongs together
    inside = next((end for end in check_bounds(empty.bounds, np.empty(0)) if np.isfinite(end)), 0.0)
    curve_of([inside], empty.settings, empty.bounds, empty.grid if empty.axis == "trials" else None)


def _adjusted_level(level: float, adjust: str, count: int) -> float:
    """Level of one band so that `count` of them hold at once.

    >>> _adjusted_level(0.8, "bonferroni", 4), _adjusted_level(0.81, "sidak", 2), _adjusted_level(0.8, "none", 4)
    (0.95, 0.9, 0.8)
    """
    if adjust == "bonferroni":
        return 1.0 - (1.0 - level) / count
    return level ** (1.0 / count) if adjust == "sidak" else level


def _without_limits(curves: list[BudgetCurve], by: tuple[str, ...]) -> str:
    """The curves that have two limits at no budget."""
    return named_groups(
        [f"{group_name(by, curve.key)} (n = {curve.n_scores})" for curve in curves if curve.trivial.all()]
    )


def _over_trials(groups: list[Group], empty: TuningCurves) -> tuple[list[BudgetCurve], tuple[str, ...]]:
    level, prices = empty.band_level, []
    curves: list[TuningCurve] = []
    for key, frame, scores in groups:
        with errors_of(group_name(empty.by, key)):
            error, costs, cost = 1.0 - level, None, None
            if empty.cost is not None:
                costs = known_if_constant(floats(frame[empty.cost]))
                cost, error = shared_error(costs, len(scores), error, f"cost {empty.cost!r}")
            settings = replace(empty.settings, level=level if cost is None or cost.fixed else 1.0 - error)
            curves.append(curve_of(scores, settings, empty.bounds, empty.grid if cost is None else None))
            prices.append((costs, cost))
    ends: dict[tuple[Any, ...], list[float]] = {}  # of a benchmark: what 1 to n trials of its algorithms cost
    for (key, *_), curve, (_, cost) in zip(groups, curves, prices, strict=True):
        if cost is not None:
            ends.setdefault(key[:-1], []).extend((cost.value, cost.value * curve.n_scores))
    made = []
    for (key, _, scores), curve, (costs, cost) in zip(groups, curves, prices, strict=True):
        if cost is None:
            grid = curve.k
        else:
            grid = empty.grid if empty.grid is not None else _costs(ends[key[:-1]], curve, cost)
        at = read_at(curve, cost, grid)
        made.append(BudgetCurve(key=key, level=level, scores=scores, costs=costs, **at))
    few = _without_limits(made, empty.by)
    return made, (f"At no budget two limits, for too few trials or too many failed ones: {few}.",) if few else ()


def _costs(ends: list[float], curve: TuningCurve, cost: Estimate) -> Array:
    """Budgets of a curve: those of its benchmark that pay for 1 to n trials of it."""
    shared = np.geomspace(min(ends), max(ends), MOST_POINTS)
    first = cost.ci_high * (curve.from_k or 0.0)  # the pessimistic limit is read at the cost's upper end
    low, high = max(cost.value * (1.0 - 1e-9), first), cost.value * curve.n_scores * (1.0 + 1e-9)
    inside = shared[(shared >= low) & (shared <= high)]
    return inside if len(inside) else np.array([max(cost.value, first)])


def _over_seeds(groups: list[Group], empty: TuningCurves) -> tuple[list[BudgetCurve], tuple[str, ...]]:
    curves, coverages, raised = [], [], 0
    for group in groups:
        with errors_of(group_name(empty.by, group[0])):
            curve, coverage, count = seed_curve(
                group,
                (str(empty.seed), str(empty.budget)),
                direction=empty.direction,
                grid=empty.grid,
                quantile=empty.settings.q,  # over seeds it is of the scores themselves, in both directions
                level=empty.band_level,
                simultaneous=empty.simultaneous,
                bounds=empty.bounds,
            )
        curves.append(curve)
        coverages.append(coverage)
        raised += count
    if empty.simultaneous:
        each = _percentages([curve.level for curve in curves])
        scope = f"At a single budget the limits are at {each}, so that they are simultaneous over all budgets."
    else:
        scope = "The limits hold at one budget that is chosen beforehand, not at all budgets at once."
    exact = f"Order statistics come in steps: at a single budget the limits hold with {_percentages(coverages)}."
    notes = [WHY_SEEDS, scope, exact]
    if raised:
        notes.append(
            f"{raised:,} scores were worse than an earlier one of their seed; the best so far stands for them."
        )
    few = _without_limits(curves, empty.by)
    if few:
        notes.append(f"Too few seeds for two limits: {few}. {advice('fewer_limits')}, or add seeds.")
    return curves, tuple(notes)


def _percentages(shares: list[float]) -> str:
    rounded = [round(100 * share, 2) for share in shares]
    return f"{span(min(rounded), max(rounded), 'g')} %"


# ---------------------------------------------------------------------- over seeds


def quantile_ranks(n_scores: int, quantile: float = 0.5, *, level: float = 0.8) -> tuple[int, int, int, float]:
    """Order statistics that enclose a quantile with at least the probability asked for, half of the rest at either end.

    The numbers of the lower limit, the estimate and the upper limit, from 1 (0 and n_scores + 1, the ends of the
    support, where no score is far enough), and the coverage, see `core.proportions.quantile_places`.

    >>> quantile_ranks(25, level=0.95)
    (8, 13, 18, 0.956714...)
    """
    n, quantile = check_positive_int(n_scores, "n_scores"), check_fraction(quantile, "quantile")
    estimate = int(np.clip(np.ceil(n * quantile - SLACK), 1, n))
    lower, upper, coverage = quantile_places(n, quantile, check_fraction(level, "level"), inner=estimate)
    return lower, estimate, upper, coverage


def seed_curve(
    group: Group,
    columns: tuple[str, str],
    *,
    direction: str,
    grid: Array | None,
    quantile: float,
    level: float,
    simultaneous: bool,
    bounds: tuple[float, float] | None,
) -> tuple[BudgetCurve, float, int]:
    """A quantile of the best scores so far, its coverage at a budget, and how many scores were not the best so far.

    `columns` are those of seed and budget.
    """
    key, frame, scores = group
    ends = check_bounds(bounds, scores)
    paths = _paths(frame, scores, *columns)
    points = _grid([budgets for budgets, _ in paths], grid)
    sign = 1.0 if direction == "maximize" else -1.0
    values, raised = np.empty((len(paths), len(points))), 0
    for row, (budgets, path) in zip(values, paths, strict=True):
        best = np.maximum.accumulate(sign * path)
        raised += int(np.sum(best > sign * path))
        row[:] = sign * best[np.searchsorted(budgets, points, side="right") - 1]
    each = 1.0 - (1.0 - level) / len(points) if simultaneous else level
    lower, middle, upper, coverage = quantile_ranks(len(paths), quantile, level=each)
    first, last = (np.full((1, len(points)), end) for end in ends)
    ordered = np.concatenate([first, np.sort(values, axis=0), last])
    low, high = ordered[lower], ordered[upper]
    curve = BudgetCurve(
        key=key,
        n_scores=len(paths),
        grid=points,
        k=np.full(len(points), np.nan),
        band_low=low,
        estimate=ordered[middle],
        band_high=high,
        trivial=(low <= ends[0]) | (high >= ends[1]),
        level=each,
    )
    return curve, coverage, raised


def _paths(frame: pd.DataFrame, scores: Array, seed: str, budget: str) -> list[tuple[Array, Array]]:
    """Budgets in rising order with the scores at them, for each seed."""
    seeds, budgets = frame[seed], floats(frame[budget])
    missing = int(seeds.isna().sum() + np.isnan(budgets).sum())
    if missing:
        raise DataError(f"{missing:,} seeds or budgets are missing. Every score needs both.")
    codes = pd.factorize(seeds)[0]
    order = np.lexsort((budgets, codes))
    codes, budgets = codes[order], budgets[order]
    repeated = np.flatnonzero((np.diff(codes) == 0) & (np.diff(budgets) == 0))
    if len(repeated):
        raise DataError(
            f"{len(repeated):,} rows repeat a seed and a budget (first: {seed}={seeds.iloc[order[repeated[0]]]}, "
            f"{budget}={budgets[repeated[0]]:g}). Is another column, such as a prior, part of what was compared? "
            + advice("settings")
        )
    cuts = np.flatnonzero(np.diff(codes)) + 1
    return list(zip(np.split(budgets, cuts), np.split(scores[order], cuts), strict=True))


def _grid(budgets: list[Array], grid: Array | None) -> Array:
    """Budgets that all seeds have reached, and beyond which none of them stopped."""
    first, last = max(float(seed[0]) for seed in budgets), min(float(seed[-1]) for seed in budgets)
    if first > last:
        raise DataError(
            f"there is no budget at which all {len(budgets):,} seeds have a score: one begins at "
            f"{first:g}, another ends at {last:g}. Leave such seeds out only if that has nothing to do with scores."
        )
    if grid is not None:
        outside = grid[(grid < first) | (grid > last)]
        if len(outside):
            raise DataError(
                f"k holds the budget {outside[0]:g}, but all seeds have scores from {first:g} to "
                f"{last:g} only. Choose budgets in that range."
            )
        return grid
    points = np.unique(np.concatenate(budgets))
    points = points[(points >= first) & (points <= last)]
    if len(points) > MOST_POINTS:
        points = points[np.unique(np.linspace(0, len(points) - 1, MOST_POINTS).round().astype(int))]
    return points
