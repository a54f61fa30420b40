"""Mean curves of algorithms over the budget: which curves are a sample, which spline follows them, and their errors.

With several benchmarks an algorithm has one curve per benchmark, the mean of its runs there. Where runs are missing,
rows stay rows and every run has a random curve of its own. With one benchmark the runs are the curves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.core.caller import advice
from lmemtest.core.codes import in_order
from lmemtest.core.rounding import written
from lmemtest.core.validate import check_positive_int
from lmemtest.core.words import format_level, listed, plural
from lmemtest.errors import ArgumentError, DataError
from lmemtest.lmm.formula import Term, parse_term
from lmemtest.lmm.formula.tokens import quote_name
from lmemtest.lmm.formula.transforms import fit_spline
from lmemtest.lmm.means.estimates import Estimates
from lmemtest.lmm.model import ModelSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from lmemtest.bench.data.runs import Runs
    from lmemtest.core.arrays import Array, Index, Mask
    from lmemtest.lmm.model import LmmFit


SCALES = ("auto", "linear", "log")
FEWEST_BUDGETS = 3
MOST_COLUMNS = 8  # of a spline: more bends than learning curves have, and 36 covariances per random effect
DEFAULT_COLUMNS = 5  # where the table is too incomplete to see how many are needed
DEGREE = 3
SMALL_BIAS = 0.25  # of a standard error: an interval loses less than half a percent of its coverage
LARGE_BIAS = 0.5
LOG_RANGE = 8.0
MOST_CONDITIONS = 4
MOST_MEANS = 60  # budgets with means of their own
_ROUNDING = 1e-12  # of the largest score
ONE_RUN = (
    "There is one benchmark and one run per algorithm, so {so}. Add more seeds (they show what holds on this "
    "benchmark) or more benchmarks."
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MeanCurves:
    """Mean curves of the algorithms on a grid of budgets, and how they were modelled.

    Attributes
    ----------
    ranges : dict
        Algorithm, as text in the order of their levels, to its lowest and highest budget.
    budgets, observed : (points,) and (n,) float
        The grid, and the budgets of the runs.
    scale : {"linear", "log"}
    columns : int or None
        Of the spline; None where every budget has means of its own.
    formula : str or None
        The model of smooth curves.
    sample : {"families", "benchmarks", "runs"}
        What the curves are a sample of, and so what the answer generalises to; `n_sample` of them (runs of an
        algorithm).
    df_means, df_differences : float
        Degrees of freedom of the variances of mean curves and of their differences.
    estimates : Estimates
        Each algorithm at each of the budgets, algorithms first, NaN where one has no curve.
    residuals : (units, k, points) float or None
        The curves of every unit less their means, where the table is complete, with `free` degrees of freedom (else 0).
    own_variances : (pairs,) float or None
        Then, of the mean difference of each pair by its own variation, averaged over the observed budgets.
    rounding : float
        A standard error of less is none.
    fit : LmmFit or None
        Where the table is not complete.
    notes : tuple of str
    """

    ranges: dict[str, tuple[float, float]]
    budgets: Array
    observed: Array
    scale: str
    columns: int | None
    formula: str | None
    sample: str
    n_sample: int
    df_means: float
    df_differences: float
    estimates: Estimates
    residuals: Array | None
    free: int
    own_variances: Array | None
    rounding: float
    fit: LmmFit | None
    notes: tuple[str, ...]

    @property
    def algorithms(self) -> tuple[str, ...]:
        """As text, in the order of their levels."""
        return tuple(self.ranges)

    @property
    def axis(self) -> Array:
        """Places of the grid on the axis on which curves are smooth."""
        return to_axis(self.budgets, self.scale)

    @property
    def pairs(self) -> tuple[Index, Index]:
        """Left and right algorithm of each pair."""
        first, second = np.triu_indices(len(self.ranges), 1)
        return first, second

    @property
    def rows(self) -> Array:
        """``(k, points, p)``: the mean curves as linear functions of the coefficients."""
        return np.asarray(self.estimates.L.reshape(len(self.ranges), len(self.budgets), -1))

    def evaluate(self, rows: Array) -> tuple[Array, Array]:
        """Estimates and standard errors ``(curves, points)`` of linear functions of the coefficients."""
        shape = rows.shape[:2]
        estimate, se, _ = self.estimates.evaluate(rows.reshape(-1, rows.shape[2]))
        return estimate.reshape(shape), np.where(se > 0, se, np.nan).reshape(shape)

    @property
    def weights(self) -> Array:
        """Of the points, for a mean over the axis (trapezoid rule)."""
        gaps = np.diff(self.axis) / 2.0
        return np.concatenate([[0.0], gaps]) + np.concatenate([gaps, [0.0]])

    def over_the_axis(self, rows: Array, defined: Mask) -> Array:
        """``(curves, 1, p)``: means of curves over their part of the axis."""
        weights = np.where(defined, self.weights, 0.0)
        with np.errstate(invalid="ignore"):  # of two without a common point
            weights = weights / weights.sum(axis=1, keepdims=True)
        return np.asarray(np.einsum("cx,cxp->cp", weights, np.nan_to_num(rows))[:, None])

    def mean_residuals(self) -> Array:
        """Means of `residuals` over the axis, ``(units, k)``."""
        return np.asarray(np.asarray(self.residuals) @ self.weights / self.weights.sum())

    def square(self, values: Array, sign: float = 1.0) -> Array:
        """``(k, k, points)`` from values of the pairs; `sign` -1 for what changes sign with the order."""
        (first, second), k = self.pairs, len(self.ranges)
        out = np.full((k, k, values.shape[1]), np.nan)
        out[first, second], out[second, first] = values, sign * values
        return out

    def budgets_at(self, places: Array) -> Array:
        """Places of the axis as budgets; those of the grid exactly."""
        budgets = from_axis(np.asarray(places, dtype=float), self.scale)
        nearest = self.budgets[np.abs(budgets[:, None] - self.budgets).argmin(axis=1)]
        return np.where(np.isclose(budgets, nearest, rtol=1e-9), nearest, budgets)


def unknown_runs() -> str:
    """That rows cannot be put together to runs, which would be the sample."""
    return (
        "Which rows belong to one run is not known, and with one benchmark the runs are the sample. Name the seed "
        f"column: {advice('role_in_table', role='seed')}."
    )


def mean_curves(runs: Runs, *, scale: str, columns: str | int, average: bool) -> MeanCurves:
    """Choose the curves, the spline and the random effects for a table of runs, and fit them."""
    budget, names = runs.study.require("budget", "there are no curves"), [str(a) for a in runs.algorithms]
    runs.study.require_scores()
    ranges = _checked_ranges(runs)
    require_repeats(runs, "how much curves vary is not known")
    lowest = min(low for low, _ in ranges.values())
    observed = np.array(runs.study.levels(budget), dtype=float)
    if scale == "auto":
        scale = natural_scale(observed)
    elif scale == "log" and lowest <= 0:
        raise ArgumentError(
            f"scale='log' needs budgets above 0, the lowest {budget} is {format_level(lowest)}. Use 'linear'."
        )
    whole = runs.study.sampled
    averaged, notes = _averaged(runs) if average else (runs, [])
    if average and whole.noun == "family":
        averaged, more = _averaged_over_families(averaged)
        notes += more
    study, x = averaged.study, to_axis(observed, scale)
    complete = _complete_curves(averaged)
    variances = bias_of = None
    if complete is not None:
        variances = _pair_variances(*complete[1:])
        bias_of = partial(_bias, complete[0], variances, x)
    chosen, more = _columns(averaged, bias_of, len(x), columns)
    n_sample, df_means, df_differences = _degrees_of_freedom(averaged)
    cells = study.cells([*study.run, *(name for name in [study.sampled.column] if name), budget])
    frame = cells.frame.assign(**{runs.score: cells.mean})
    frame[runs.algorithm] = pd.Categorical(frame[runs.algorithm].astype(str), names)
    crossed = study.conditions
    if study.several_benchmarks:
        crossed = tuple(c for c in crossed if study.count(c) <= MOST_CONDITIONS)
    spec = None if chosen is None else _spec(averaged, crossed, frame, scale, chosen)
    grid = observed if chosen is None else _grid(observed, scale)
    fit, residuals = None, None
    if complete is not None:
        spline = None if chosen is None else spline_over(x, chosen)
        at, on = (np.eye(len(x)),) * 2 if spline is None else (spline(x), spline(to_axis(grid, scale)))
        rows, b, V, residuals = _closed_form(*complete, at, on)
    else:
        assert spec is not None  # means per budget need a complete table
        fit = spec.fit(frame)
        rows = _spline_rows(fit, runs, grid, ranges, {c: in_order(frame[c].unique()) for c in crossed})
        b, V = fit.kept_params, fit.cov_params().to_numpy()
    return MeanCurves(
        ranges=ranges,
        budgets=grid,
        observed=observed,
        scale=scale,
        columns=chosen,
        formula=None if spec is None else spec.formula,
        sample=whole.nouns if study.several_benchmarks else "runs",
        n_sample=n_sample,
        df_means=df_means,
        df_differences=df_differences,
        estimates=Estimates.of(
            L=rows.reshape(-1, len(b)),
            b=b,
            V=V,
            df=df_means,
            frame=pd.MultiIndex.from_product([ranges, grid], names=["algorithm", "budget"]).to_frame(index=False),
            by=("budget",),
            score=runs.score,
            direction=runs.direction,
        ),
        residuals=residuals,
        free=0 if complete is None else complete[2],
        own_variances=None if variances is None else variances.mean(axis=1),
        rounding=_ROUNDING * float(frame[runs.score].abs().max()),
        fit=fit,
        notes=(*whole.notes, *notes, *more),
    )


# ------------------------------------------------------------------ the table


def _checked_ranges(runs: Runs) -> dict[str, tuple[float, float]]:
    """The lowest and the highest budget of each algorithm, if there are enough budgets and they overlap."""
    budget = str(runs.budget)
    every = runs.study.distinct([budget])[budget]
    if not pd.api.types.is_numeric_dtype(every) or pd.api.types.is_bool_dtype(every):
        raise DataError(
            f"A curve over {budget!r} needs numbers, and the column has none. Give the budgets as numbers, or "
            "compare at single budgets with lmemtest.anytime(runs).at()."
        )
    if len(every) < FEWEST_BUDGETS:
        raise DataError(
            f"A curve needs scores at {FEWEST_BUDGETS} budgets or more, {budget!r} has {len(every)}. Compare at each "
            "of them with lmemtest.anytime(runs).at()."
        )
    of_algorithms = budgets_of(runs)
    short = [algorithm for algorithm, budgets in of_algorithms.items() if len(budgets) < FEWEST_BUDGETS]
    if short:
        raise DataError(
            f"{listed(short)} has scores at fewer than {FEWEST_BUDGETS} budgets, which is no curve. Leave it out, "
            f"runs.filter({runs.algorithm}=[...]), or add its scores at other budgets."
        )
    check_overlap(of_algorithms, "their curves cannot be compared")
    return {algorithm: (float(budgets[0]), float(budgets[-1])) for algorithm, budgets in of_algorithms.items()}


def budgets_of(runs: Runs) -> dict[str, list[Any]]:
    """The algorithms as text in the order of their levels, with their budgets in that order."""
    seen = runs.study.distinct([runs.algorithm, str(runs.budget)])
    budgets = dict(list(seen.groupby(runs.algorithm, observed=True)[str(runs.budget)]))
    return {str(algorithm): budgets[algorithm].tolist() for algorithm in runs.levels(runs.algorithm)}


def check_overlap(of_algorithms: Mapping[str, Sequence[Any]], so: str) -> None:
    """Refuse algorithms whose ranges of budgets have nothing in common."""
    if max(budgets[0] for budgets in of_algorithms.values()) >= min(budgets[-1] for budgets in of_algorithms.values()):
        raise DataError(
            f"The budgets of the algorithms do not overlap ({ranges_text(of_algorithms)}), so {so}. Add scores of "
            "all "
            "algorithms at common budgets."
        )


def ranges_text(budgets: Mapping[str, Sequence[Any]]) -> str:
    """The lowest and the highest budget of each algorithm in words."""
    return listed([f"{a}: {format_level(b[0])} to {format_level(b[-1])}" for a, b in budgets.items()], most=4)


def require_repeats(runs: Runs, so: str) -> None:
    """Something must be repeated, and rows of one run must be known as such."""
    study = runs.study
    if study.several_benchmarks:
        return
    if runs.seed is None and (study.groups([*study.run, str(runs.budget)]).n > 1).any():
        raise DataError(unknown_runs())
    if study.count(*study.run) == study.count(*study.instance, runs.algorithm):
        raise DataError(ONE_RUN.format(so=so))


def _averaged(runs: Runs) -> tuple[Runs, list[str]]:
    """Means over runs and conditions, if every algorithm has the same ones on every benchmark.

    Comparisons over benchmarks depend on the runs through the means of each algorithm on each benchmark alone then, so
    these means may take the place of the runs: a table of thousands of rows becomes one of hundreds.
    """
    study = runs.study
    if not study.several_benchmarks:
        return runs, []
    notes = []
    budgets = study.count(runs.budget)
    if runs.seed is not None:
        table = study.distinct([*study.run, str(runs.budget)])
        sizes = table.groupby([*study.instance, runs.algorithm], observed=True).size()
        if (table.groupby(list(study.run), observed=True).size() != budgets).any() or sizes.nunique() > 1:
            return runs, [
                "Runs differ in number or in their budgets, so rows are fitted as they are and each run has a random "
                "curve of its own."
            ]
        notes.append(f"Curves are means over {sizes.iloc[0] // budgets} runs of each algorithm and instance.")
        runs = study.average("seed")
    for condition in study.conditions:
        study = runs.study
        levels, places = study.count(condition), study.count(runs.benchmark, runs.algorithm)
        rows, groups = study.count(*study.run, runs.budget), study.count(*study.instance, runs.algorithm)
        if study.count(runs.benchmark, runs.algorithm, condition) == levels * places and rows == groups * budgets:
            notes.append(f"Curves are means over the {levels} levels of {condition}.")
            runs = study.average(condition)
    return runs, notes


def _averaged_over_families(runs: Runs) -> tuple[Runs, list[str]]:
    """Means over the benchmarks of each family, if all algorithms have the same: the families as benchmarks then."""
    study, sample = runs.study, runs.study.sampled
    points = study.count(*study.instance, runs.budget) * study.count(runs.algorithm)
    if runs.seed is not None or study.conditions or study.count(*study.run, runs.budget) != points:
        return runs, [
            f"Algorithms differ in their {plural(str(runs.benchmark))}, runs or budgets, so rows are fitted as they "
            f"are, with random curves of the {plural(str(sample.column))} and of what is in them."
        ]
    for within in sample.runs.study.conditions:
        sample = replace(sample, runs=sample.runs.study.average(within))
    return sample.runs, list(sample.weights)


def _complete_curves(runs: Runs) -> tuple[Array, Array, int] | None:
    """The curves of a complete table: every unit (benchmark, instance, seed) has every algorithm at every budget.

    Scores and residuals (scores less the mean of their condition), ``(units, algorithms, budgets)``, and the number of
    units less that of conditions, which all have the same number of units.
    """
    study = runs.study
    several = runs.seed is not None or study.conditions or study.sampled.noun == "family"
    if study.several_benchmarks and several:
        return None  # rows of several kinds: a benchmark has more than one curve per algorithm
    units = study.count(*study.instance, runs.seed)
    whole = units * study.count(runs.algorithm) * study.count(runs.budget)
    if study.count(*study.run, runs.budget) != whole:
        return None
    scores, _ = study.array("instance", "seed", "algorithm", "budget")
    present = ~np.isnan(scores[:, :, 0, 0])
    group = np.nonzero(present)[0] if study.conditions else np.zeros(units, dtype=np.intp)
    sizes = np.bincount(group)
    if (sizes != sizes[0]).any() or sizes[0] < 2:
        return None
    curves = scores[present]
    means = np.stack([curves[group == g].mean(axis=0) for g in range(len(sizes))])
    return curves, curves - means[group], len(curves) - len(sizes)


def _pair_variances(residuals: Array, free: int) -> Array:
    """Variances of the mean difference of each pair from its own variation, ``(pairs, budgets)``."""
    first, second = np.triu_indices(residuals.shape[1], 1)
    squares = ((residuals[:, first] - residuals[:, second]) ** 2).sum(axis=0)
    return np.asarray(squares / (free * len(residuals)))


def _degrees_of_freedom(runs: Runs) -> tuple[int, float, float]:
    """Sample size, and degrees of freedom of mean curves and of differences: what is left between the groups."""
    study = runs.study
    a = study.count(runs.algorithm)
    if study.several_benchmarks:
        sample = study.sampled
        b = study.count(sample.column)
        free = study.count(sample.column, runs.algorithm) - b - a + 1
        if free < 1:
            raise DataError(
                f"No two algorithms share two {sample.nouns}, so how much their difference varies is not known. Add "
                f"scores of the same {sample.nouns} for all algorithms."
            )
        return b, float(b - 1), float(free)
    cells, n_runs = study.count(*study.instance, runs.algorithm), study.count(*study.run)
    pairs, conditions = study.count(*study.instance, runs.seed), study.count(*study.instance)
    if pairs == n_runs:  # every run has a seed of its own
        return n_runs // a, float(n_runs - cells), float(n_runs - cells)
    return n_runs // a, float(pairs - conditions), float(max(n_runs - pairs - cells + conditions, 1))


# ------------------------------------------------------------------ the spline


def natural_scale(budgets: Array) -> str:
    """The scale of a curve: budgets over more than three doublings are compared by their ratios."""
    return "log" if budgets.min() > 0 and budgets.max() / budgets.min() >= LOG_RANGE else "linear"


def to_axis(budgets: Array, scale: str) -> Array:
    """Places of budgets on the axis on which curves are smooth."""
    return np.log(budgets) if scale == "log" else np.asarray(budgets, dtype=float)


def from_axis(places: Array, scale: str) -> Array:
    """Budgets at places of the axis."""
    return np.exp(places) if scale == "log" else np.asarray(places, dtype=float)


def spline_over(x: Array, columns: int) -> Callable[[Array], Array]:
    """The spline of the formula over these places, with a column of ones."""
    degree = min(DEGREE, columns)
    spline = fit_spline(x, np.ones_like(x), n_inner=columns - degree, inner=None, degree=degree, lower=None, upper=None)
    return lambda places: np.column_stack([np.ones_like(places), spline(places)])


def _columns(
    runs: Runs, bias_of: Callable[[int], float] | None, n_budgets: int, wanted: str | int
) -> tuple[int | None, list[str]]:
    """Columns of the spline over the places of the budgets, and what to say about it.

    The fewest columns with which no difference of two mean curves departs from the observed one by more than a
    quarter of its standard error; if none follows them to half of it, every budget gets means of its own. `bias_of`
    some columns is that distance in a complete table; None in others.
    """
    study = runs.study
    table = study.distinct([*study.run, str(runs.budget)])
    most = max(int(table.groupby(list(study.run), observed=True).size().median()) - 2, 1)
    if wanted == "budgets":
        if bias_of is None:
            raise DataError(
                "columns='budgets' needs a complete table: every algorithm at every budget on each benchmark (on each "
                "seed where there is one benchmark). Use columns='auto', a smooth curve, or filter the runs to what is "
                "complete."
            )
        return None, []
    if wanted != "auto" and int(wanted) > most:
        raise ArgumentError(
            f"columns must be at most {most} with {most + 2} budgets, two less than there are, got {wanted}. Use "
            "columns='auto', or columns='budgets' for separate means at every budget."
        )
    chosen = min(DEFAULT_COLUMNS, most) if wanted == "auto" else int(wanted)
    if bias_of is None:
        return chosen, []
    if wanted != "auto":
        return chosen, _bias_notes(chosen, bias_of(chosen))
    # With more than a column for every other budget a spline swings between budgets.
    options = range(min(DEGREE, most), max(min(MOST_COLUMNS, most, (most + 2) // 2), min(DEGREE, most)) + 1)
    biases = {option: bias_of(option) for option in options}
    chosen = next(
        (option for option, bias in biases.items() if bias <= SMALL_BIAS), min(biases, key=biases.__getitem__)
    )
    if biases[chosen] > LARGE_BIAS and n_budgets <= MOST_MEANS:
        return None, [
            f"No spline with up to {options[-1]} columns follows the observed differences, so each budget has its own "
            f"means, without interpolation. columns={options[-1]} gives smooth curves."
        ]
    return chosen, _bias_notes(chosen, biases[chosen])


def check_columns_option(columns: Any) -> int | str:
    """Columns of a spline as they were asked for."""
    if isinstance(columns, str) and columns in ("auto", "budgets"):
        return columns
    try:
        return check_positive_int(columns, "columns")
    except ArgumentError:
        raise ArgumentError(f"columns must be a whole number, 'auto' or 'budgets', got {columns!r}.") from None


def _bias(scores: Array, variances: Array, x: Array, columns: int) -> float:
    """Largest distance of a difference of curves on a spline from the observed one, in (pooled) standard errors."""
    first, second = np.triu_indices(scores.shape[1], 1)
    mean, pooled = scores.mean(axis=0), np.sqrt(variances.mean(axis=0))
    difference = mean[first] - mean[second]
    se = np.maximum(pooled, 1e-9 * max(float(np.abs(scores).max()), np.finfo(float).tiny))
    basis = np.linalg.qr(spline_over(x, columns)(x))[0]
    return float(np.max(np.abs(difference - difference @ basis @ basis.T) / se))


def _bias_notes(columns: int, bias: float) -> list[str]:
    if bias <= LARGE_BIAS:
        return []
    return [
        f"The curves ({columns} columns) depart from the observed differences by up to {written(bias, '.2g')} "
        "standard errors, so read them as a smooth summary; columns='budgets' gives each budget its own means."
    ]


# ------------------------------------------------------------------ the model


def _spec(runs: Runs, crossed: tuple[str, ...], frame: pd.DataFrame, scale: str, columns: int) -> ModelSpec:
    """Fixed curves of algorithms and conditions, random curves of what is repeated, random levels between."""
    study, algorithm = runs.study, runs.algorithm
    x = quote_name(str(runs.budget))
    x = f"log({x})" if scale == "log" else x
    degree = "" if columns >= DEGREE else f", degree={columns}"
    curve = parse_term(x if columns == 1 else f"bs({x}, df={columns}{degree})")
    spec = ModelSpec(response=runs.score).with_crossed(algorithm, curve)
    for name in crossed:
        numeric = pd.api.types.is_numeric_dtype(frame[name])
        spec = spec.with_crossed(algorithm, Term.levels(name) if numeric else name, curve)
    seed = () if runs.seed is None else (runs.seed,)
    groups: list[tuple[tuple[str, ...], bool]] = []
    if study.several_benchmarks:
        benchmark = str(runs.benchmark)
        groups = [((benchmark,), True), ((benchmark, algorithm), True)]
        if study.sampled.noun == "family":
            family = str(study.sampled.column)
            groups = [((family,), True), ((family, algorithm), True), *groups]
        if study.conditions:
            groups += [(study.instance, False), ((*study.instance, algorithm), False)]
    if seed:
        groups.append(((*study.instance, *seed), not study.several_benchmarks))
    kept: list[tuple[str, ...]] = []
    for group, curved in [*groups, (study.run, True)]:
        n = study.count(*group)
        same = any(set(k) < set(group) and study.count(*k) == n for k in kept)
        if group in kept or same or n < 2 or n >= len(frame):
            continue
        kept.append(group)
        varies = curved and n * (columns + 1) < len(frame)
        spec = spec.with_slope(curve, *group) if varies else spec.with_random(*group)
    return spec


_POINTS = 41  # evenly spaced, beside the observed budgets
_MOST_OBSERVED = 60


def _spline_rows(
    fit: LmmFit, runs: Runs, budgets: Array, ranges: Mapping[str, tuple[float, float]], conditions: dict[str, Any]
) -> Array:
    """``(k, points, p)`` curves of a fitted spline model, conditions averaged with equal weights; NaN out of range."""
    grid = pd.MultiIndex.from_product(
        [ranges, *conditions.values(), budgets], names=[runs.algorithm, *conditions, str(runs.budget)]
    )
    rows = fit.design.rows(grid.to_frame(index=False))
    rows = rows.reshape(len(ranges), -1, len(budgets), rows.shape[1]).mean(axis=1)
    estimable = fit.estimable(rows.reshape(-1, rows.shape[-1])).reshape(rows.shape[:2])
    lost = [a for a, ok in zip(ranges, estimable.any(axis=1), strict=True) if not ok]
    if lost:
        raise DataError(
            f"The curve of {listed(lost)} cannot be estimated: it lacks some of the conditions ({listed(conditions)}) "
            "that the others have. Filter the runs to conditions that all have."
        )
    inside = np.array([(budgets >= low) & (budgets <= high) for low, high in ranges.values()])
    return np.where((inside & estimable)[:, :, None], rows[:, :, fit.problem.kept], np.nan)


def _closed_form(
    scores: Array, residuals: Array, free: int, basis: Array, at_grid: Array
) -> tuple[Array, Array, Array, Array]:
    """Curves of a complete table in closed form: means at every budget, or their projections on the spline.

    Every unit has coefficients of its own for every algorithm (scores at the budgets, or least-squares coefficients of
    the spline), with an unstructured covariance that is the same for all algorithms. With the mean squares M of the
    coefficients averaged over algorithms and W of their differences from that average, the means of n units have the
    covariance ``(J/k x M + (I - J/k) x W) / n``. This is the restricted maximum-likelihood fit of the mixed model where
    no variance is zero; where one is (scores like ranks have the same mean on every benchmark) it stays right, while
    the fit takes the spread of the means for evidence that differences vary little.

    Linear functions ``(k, points, p)`` on the grid, coefficients, their covariance, and the residuals on the grid.
    """
    k = scores.shape[1]
    least_squares = np.linalg.pinv(basis).T
    e = residuals @ least_squares
    centre = e.mean(axis=1)
    around = e - centre[:, None]
    between = k * centre.T @ centre / free
    within = np.einsum("uax,uay->xy", around, around) / (free * (k - 1))
    share = np.full((k, k), 1.0 / k)
    cov = (np.kron(share, between) + np.kron(np.eye(k) - share, within)) / len(e)
    rows = np.stack([np.kron(np.eye(k)[i], at_grid) for i in range(k)])
    return rows, (scores.mean(axis=0) @ least_squares).ravel(), cov, e @ at_grid.T


def _grid(observed: Array, scale: str) -> Array:
    """The observed budgets and points between them, for a smooth curve."""
    low, high = observed[0], observed[-1]
    start, end = to_axis(np.array([low, high]), scale)
    even = from_axis(np.linspace(start, end, _POINTS), scale)[1:-1]
    if len(observed) > _MOST_OBSERVED:
        return np.concatenate([[low], even, [high]])
    far = np.abs(even[:, None] - observed).min(axis=1) > 1e-6 * (high - low)
    return np.unique(np.concatenate([observed, even[far]]))
