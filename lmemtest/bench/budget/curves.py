"""Mean curves of algorithms over the budget: which curves are a sample, which spline follows them, and their errors.

With several benchmarks an algorithm has one curve per benchmark, the mean of its runs there. Where runs are missing,
rows stay rows and every run has a random curve of its own. With one benchmark the runs are the curves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd

from lmemtest.bench.data.runs import require_runs
from lmemtest.core.levels import in_order
from lmemtest.core.rounding import written
from lmemtest.core.validate import check_choice, check_positive_int
from lmemtest.core.words import format_level, listed, plural
from lmemtest.errors import ArgumentError, DataError
from lmemtest.lmm.distributions.largest_t import DrawnLargestT, largest_over_curves
from lmemtest.lmm.formula import Term, parse_term
from lmemtest.lmm.formula.smooth import fit_spline
from lmemtest.lmm.formula.tokens import quote_name
from lmemtest.lmm.means.estimates import Estimates
from lmemtest.lmm.model import ModelSpec

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from lmemtest.bench.data.runs import Runs
    from lmemtest.core.arrays import Array
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
UNKNOWN_RUNS = (
    "Which rows belong to one run is not known, and with one benchmark the runs are the sample. Name the seed column: "
    "Runs(table, ..., seed=...)."
)
ONE_RUN = (
    "There is one benchmark and one run per algorithm, so {so}. Bring more seeds (they show what holds on this "
    "benchmark) or more benchmarks."
)


@dataclass(frozen=True, slots=True, eq=False)
class PairedCurves:
    """Curves of all algorithms at all budgets on every unit (a benchmark, an instance, a seed).

    `scores` and `residuals` (less the mean of their condition) are ``(units, algorithms, budgets)``; `free` is the
    number of units less that of conditions, which all have the same number of units.
    """

    scores: Array
    residuals: Array
    free: int

    @property
    def mean(self) -> Array:
        """``(algorithms, budgets)``."""
        return np.asarray(self.scores.mean(axis=0))

    def own_variances(self) -> Array:
        """Variances of the mean difference of each pair from its own variation, ``(pairs, budgets)``."""
        first, second = np.triu_indices(self.scores.shape[1], 1)
        squares = ((self.residuals[:, first] - self.residuals[:, second]) ** 2).sum(axis=0)
        return np.asarray(squares / (self.free * len(self.scores)))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CurveModel:
    """Curves over the budget and their model.

    Attributes
    ----------
    frame : pandas.DataFrame
        The rows that are fitted; algorithms are text, in the order of their levels.
    spec : ModelSpec or None
        None where every budget has means of its own, as `columns` of the spline is then.
    conditions : tuple of str
        Metafeatures with fixed effects, over whose levels the curves are averaged with equal weights.
    scale : {"linear", "log"}
    columns : int or None
    sample : {"families", "benchmarks", "runs"}
        What the curves are a sample of, and so what the answer generalises to; `n_sample` of them (runs of an
        algorithm).
    n_sample : int
    df_means, df_differences : float
        Degrees of freedom of the variances of mean curves and of their differences.
    paired : PairedCurves or None
        The curves themselves, where the table is complete.
    ranges : dict
        Algorithm to its lowest and highest budget.
    budgets : (n,) float
        Observed ones.
    notes : tuple of str
    """

    frame: pd.DataFrame
    spec: ModelSpec | None
    conditions: tuple[str, ...]
    scale: str
    columns: int | None
    sample: str
    n_sample: int
    df_means: float
    df_differences: float
    paired: PairedCurves | None
    ranges: dict[str, tuple[float, float]]
    budgets: Array
    notes: tuple[str, ...]

    @property
    def algorithms(self) -> tuple[str, ...]:
        return tuple(self.ranges)


def curve_model(runs: Runs, *, scale: str, columns: str | int, average: bool) -> CurveModel:
    """Choose the curves, the spline and the random effects for a table of runs."""
    require_runs(runs)
    budget, names = runs.study.require("budget", "there are no curves"), [str(a) for a in runs.algorithms]
    runs.study.require_scores()
    ranges = _checked_ranges(runs)
    require_repeats(runs, "how much curves vary is not known")
    lowest = min(low for low, _ in ranges.values())
    budgets = np.array(runs.study.levels(budget), dtype=float)
    if check_choice(scale, "scale", SCALES) == "auto":
        scale = natural_scale(budgets)
    elif scale == "log" and lowest <= 0:
        raise ArgumentError(
            f"scale='log' needs budgets above 0, the lowest {budget} is {format_level(lowest)}. Use 'linear'."
        )
    whole = runs.study.sampled
    averaged, notes = _averaged(runs) if average else (runs, [])
    if average and whole.noun == "family":
        averaged, more = _averaged_over_families(averaged)
        notes += more
    study = averaged.study
    paired = _paired_curves(averaged)
    chosen, more = _columns(averaged, paired, to_axis(budgets, scale), columns)
    n_sample, df_means, df_differences = _degrees_of_freedom(averaged)
    cells = study.cells([*study.run, *(name for name in [study.sampled.column] if name), budget])
    frame = cells.frame.assign(**{runs.score: cells.mean})
    frame[runs.algorithm] = pd.Categorical(frame[runs.algorithm].astype(str), names)
    crossed = study.conditions
    if study.several_benchmarks:
        crossed = tuple(c for c in crossed if study.count(c) <= MOST_CONDITIONS)
    return CurveModel(
        frame=frame,
        spec=None if chosen is None else _spec(averaged, crossed, frame, scale, chosen),
        conditions=crossed,
        scale=scale,
        columns=chosen,
        sample=whole.nouns if study.several_benchmarks else "runs",
        n_sample=n_sample,
        df_means=df_means,
        df_differences=df_differences,
        paired=paired,
        ranges=ranges,
        budgets=budgets,
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
            "compare at single budgets with lmemtest.horizons(runs)."
        )
    if len(every) < FEWEST_BUDGETS:
        raise DataError(
            f"A curve needs scores at {FEWEST_BUDGETS} budgets or more, {budget!r} has {len(every)}. Compare at each "
            "of them with lmemtest.horizons(runs)."
        )
    own = budgets_of(runs)
    short = [algorithm for algorithm, budgets in own.items() if len(budgets) < FEWEST_BUDGETS]
    if short:
        raise DataError(
            f"{listed(short)} has scores at fewer than {FEWEST_BUDGETS} budgets, which is no curve. Leave it out, "
            f"runs.filter({runs.algorithm}=[...]), or bring its scores at other budgets."
        )
    check_overlap(own, "their curves cannot be compared")
    return {algorithm: (float(budgets[0]), float(budgets[-1])) for algorithm, budgets in own.items()}


def budgets_of(runs: Runs) -> dict[str, list[Any]]:
    """The algorithms as text in the order of their levels, with their budgets in that order."""
    seen = runs.study.distinct([runs.algorithm, str(runs.budget)])
    found = dict(list(seen.groupby(runs.algorithm, observed=True)[str(runs.budget)]))
    return {str(algorithm): found[algorithm].tolist() for algorithm in runs.levels(runs.algorithm)}


def check_overlap(own: Mapping[str, Sequence[Any]], so: str) -> None:
    """Refuse algorithms whose ranges of budgets have nothing in common."""
    if max(budgets[0] for budgets in own.values()) >= min(budgets[-1] for budgets in own.values()):
        raise DataError(
            f"The budgets of the algorithms do not overlap ({ranges_text(own)}), so {so}. Bring scores of all "
            "algorithms at common budgets."
        )


def ranges_text(own: Mapping[str, Sequence[Any]]) -> str:
    """The lowest and the highest budget of each algorithm in words."""
    return listed([f"{a}: {format_level(b[0])} to {format_level(b[-1])}" for a, b in own.items()], most=4)


def require_repeats(runs: Runs, so: str) -> None:
    """Something must be repeated, and rows of one run must be known as such."""
    study = runs.study
    if study.several_benchmarks:
        return
    if runs.seed is None and (study.groups([*study.run, str(runs.budget)]).n > 1).any():
        raise DataError(UNKNOWN_RUNS)
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


def _paired_curves(runs: Runs) -> PairedCurves | None:
    """The curves of a complete table: every unit has every algorithm at every budget."""
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
    return PairedCurves(curves, curves - means[group], len(curves) - len(sizes))


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
                f"No two algorithms share two {sample.nouns}, so how much their difference varies is not known. Bring "
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


def _columns(runs: Runs, paired: PairedCurves | None, x: Array, given: str | int) -> tuple[int | None, list[str]]:
    """Columns of the spline over the places of the budgets, and what to say about it.

    The fewest columns with which no difference of two mean curves departs from the observed one by more than a
    quarter of its standard error; if none follows them to half of it, every budget gets means of its own.
    """
    study = runs.study
    table = study.distinct([*study.run, str(runs.budget)])
    most = max(int(table.groupby(list(study.run), observed=True).size().median()) - 2, 1)
    if isinstance(given, str) and given == "budgets":
        if paired is None:
            raise DataError(
                "columns='budgets' needs a complete table: every algorithm at every budget on each benchmark (on each "
                "seed where there is one benchmark). Use columns='auto', a smooth curve, or filter the runs to what is "
                "complete."
            )
        return None, []
    automatic = isinstance(given, str) and given == "auto"
    chosen = min(DEFAULT_COLUMNS, most) if automatic else _given_columns(given, most)
    if paired is None:
        return chosen, []
    if not automatic:
        return chosen, _bias_notes(chosen, _bias(paired, x, chosen))
    # With more than a column for every other budget a spline swings between budgets.
    options = range(min(DEGREE, most), max(min(MOST_COLUMNS, most, (most + 2) // 2), min(DEGREE, most)) + 1)
    biases = {option: _bias(paired, x, option) for option in options}
    chosen = next(
        (option for option, bias in biases.items() if bias <= SMALL_BIAS), min(biases, key=biases.__getitem__)
    )
    if biases[chosen] > LARGE_BIAS and len(x) <= MOST_MEANS:
        return None, [
            f"No spline with up to {options[-1]} columns follows the observed differences, so each budget has means of "
            f"its own and nothing is said between budgets. columns={options[-1]} gives smooth curves."
        ]
    return chosen, _bias_notes(chosen, biases[chosen])


def _given_columns(given: str | int, most: int) -> int:
    try:
        columns = check_positive_int(given, "columns")
    except ArgumentError:
        raise ArgumentError(f"columns must be a whole number, 'auto' or 'budgets', got {given!r}.") from None
    if columns > most:
        raise ArgumentError(
            f"columns must be at most {most} with {most + 2} budgets, two less than there are, got {columns}. Use "
            "columns='auto', or columns='budgets' for means of their own at every budget."
        )
    return columns


def _bias(paired: PairedCurves, x: Array, columns: int) -> float:
    """Largest distance of a difference of curves on a spline from the observed one, in (pooled) standard errors."""
    first, second = np.triu_indices(paired.scores.shape[1], 1)
    difference = paired.mean[first] - paired.mean[second]
    pooled = np.sqrt(paired.own_variances().mean(axis=0))
    se = np.maximum(pooled, 1e-9 * max(float(np.abs(paired.scores).max()), np.finfo(float).tiny))
    basis = np.linalg.qr(spline_over(x, columns)(x))[0]
    return float(np.max(np.abs(difference - difference @ basis @ basis.T) / se))


def _bias_notes(columns: int, bias: float) -> list[str]:
    if bias <= LARGE_BIAS:
        return []
    return [
        f"The curves ({columns} columns) depart from the observed differences by up to {written(bias, '.2g')} "
        "standard errors, so read them as a smooth summary; columns='budgets' gives each budget means of its own."
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


class Family(NamedTuple):
    """Linear functions ``(curves, points, p)`` of the coefficients, with estimates and errors ``(curves, points)``."""

    rows: Array
    estimate: Array
    se: Array


@dataclass(frozen=True, slots=True, eq=False)
class MeanCurves:
    """Mean curves of the algorithms on a grid of budgets.

    `estimates` has each algorithm at each of the budgets, algorithms first, NaN where one has no curve; `residuals`
    ``(units, k, points)`` the curves of every unit less their means, where the table is complete.
    """

    model: CurveModel
    budgets: Array
    estimates: Estimates
    residuals: Array | None = None

    @classmethod
    def of(cls, model: CurveModel, runs: Runs, budgets: Array, rows: Array, b: Array, V: Array) -> MeanCurves:
        """From linear functions ``(k, points, p)``, NaN where there is no curve."""
        grid = pd.MultiIndex.from_product([model.algorithms, budgets], names=["algorithm", "budget"])
        estimates = Estimates.of(
            L=rows.reshape(-1, len(b)),
            b=b,
            V=V,
            df=model.df_means,
            frame=grid.to_frame(index=False),
            by=("budget",),
            score=runs.score,
            direction=runs.direction,
        )
        return cls(model, budgets, estimates)

    @property
    def axis(self) -> Array:
        """Places of the grid on the axis on which curves are smooth."""
        return to_axis(self.budgets, self.model.scale)

    @property
    def pairs(self) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
        """Left and right algorithm of each pair."""
        first, second = np.triu_indices(len(self.model.algorithms), 1)
        return first, second

    def curves(self) -> Family:
        """The mean curves."""
        return self._family(self.estimates.L.reshape(len(self.model.algorithms), len(self.budgets), -1))

    def differences(self) -> Family:
        """All differences, left minus right."""
        rows, (first, second) = self.curves().rows, self.pairs
        return self._family(rows[first] - rows[second])

    def mean_differences(self) -> Family:
        """Differences of the means over the axis where both have curves (trapezoid rule), ``(pairs, 1)``."""
        found = self.differences()
        weights = np.where(np.isnan(found.estimate), 0.0, self.weights)
        with np.errstate(invalid="ignore"):  # of two without a common point
            weights = weights / weights.sum(axis=1, keepdims=True)
        return self._family(np.einsum("cx,cxp->cp", weights, np.nan_to_num(found.rows))[:, None])

    @property
    def weights(self) -> Array:
        """Of the points, for a mean over the axis."""
        gaps = np.diff(self.axis) / 2.0
        return np.concatenate([[0.0], gaps]) + np.concatenate([gaps, [0.0]])

    def _family(self, rows: Array) -> Family:
        shape = rows.shape[:2]
        estimate, se, _ = self.estimates.evaluate(rows.reshape(-1, rows.shape[2]))
        return Family(rows, estimate.reshape(shape), np.where(se > 0, se, np.nan).reshape(shape))

    def largest(self, family: Family, df: float, *, n_draws: int, rng: np.random.Generator) -> DrawnLargestT:
        """Law of the largest |t| over all curves and points."""
        known = np.isfinite(family.se)
        return largest_over_curves(family.rows, self.estimates.V, df, defined=known, n_draws=n_draws, rng=rng)

    def mean_residuals(self) -> Array:
        """Means of `residuals` over the axis, ``(units, k)``."""
        assert self.residuals is not None
        return np.asarray(self.residuals @ self.weights / self.weights.sum())

    def square(self, values: Array, sign: float = 1.0) -> Array:
        """``(k, k, points)`` from values of the pairs; `sign` -1 for what changes sign with the order."""
        (first, second), k = self.pairs, len(self.model.algorithms)
        out = np.full((k, k, values.shape[1]), np.nan)
        out[first, second], out[second, first] = values, sign * values
        return out

    def budgets_at(self, places: Array) -> Array:
        """Places of the axis as budgets; those of the grid exactly."""
        budgets = from_axis(np.asarray(places, dtype=float), self.model.scale)
        nearest = self.budgets[np.abs(budgets[:, None] - self.budgets).argmin(axis=1)]
        return np.where(np.isclose(budgets, nearest, rtol=1e-9), nearest, budgets)


def spline_curves(fit: LmmFit, model: CurveModel, runs: Runs) -> MeanCurves:
    """Curves of a fitted spline model, conditions averaged with equal weights."""
    algorithms, budgets = model.algorithms, _grid(model)
    values = [algorithms, *(in_order(model.frame[c].unique()) for c in model.conditions), budgets]
    grid = pd.MultiIndex.from_product(values, names=[runs.algorithm, *model.conditions, str(runs.budget)])
    rows = fit.design.rows(grid.to_frame(index=False))
    rows = rows.reshape(len(algorithms), -1, len(budgets), rows.shape[1]).mean(axis=1)
    known = fit.estimable(rows.reshape(-1, rows.shape[-1])).reshape(rows.shape[:2])
    lost = [a for a, ok in zip(algorithms, known.any(axis=1), strict=True) if not ok]
    if lost:
        raise DataError(
            f"The curve of {listed(lost)} cannot be estimated: it lacks some of the conditions "
            f"({listed(model.conditions)}) that the others have. Filter the runs to conditions that all have."
        )
    inside = np.array([(budgets >= low) & (budgets <= high) for low, high in model.ranges.values()])
    rows = np.where((inside & known)[:, :, None], rows[:, :, fit.problem.kept], np.nan)
    return MeanCurves.of(model, runs, budgets, rows, fit.kept_params, fit.cov_params().to_numpy())


def complete_curves(paired: PairedCurves, model: CurveModel, runs: Runs) -> MeanCurves:
    """Curves of a complete table in closed form: means at every budget, or their projections on the spline.

    Every unit has coefficients of its own for every algorithm (scores at the budgets, or least-squares coefficients of
    the spline), with an unstructured covariance that is the same for all algorithms. With the mean squares M of the
    coefficients averaged over algorithms and W of their differences from that average, the means of n units have the
    covariance ``(J/k x M + (I - J/k) x W) / n``. This is the restricted maximum-likelihood fit of the mixed model where
    no variance is zero; where one is (scores like ranks have the same mean on every benchmark) it stays right, while
    the fit takes the spread of the means for evidence that differences vary little.
    """
    k, observed = paired.scores.shape[1], to_axis(model.budgets, model.scale)
    if model.columns is None:
        budgets, basis, at_grid = model.budgets, np.eye(len(observed)), np.eye(len(observed))
    else:
        budgets, spline = _grid(model), spline_over(observed, model.columns)
        basis, at_grid = spline(observed), spline(to_axis(budgets, model.scale))
    least_squares = np.linalg.pinv(basis).T
    e = paired.residuals @ least_squares
    centre = e.mean(axis=1)
    around = e - centre[:, None]
    between = k * centre.T @ centre / paired.free
    within = np.einsum("uax,uay->xy", around, around) / (paired.free * (k - 1))
    share = np.full((k, k), 1.0 / k)
    cov = (np.kron(share, between) + np.kron(np.eye(k) - share, within)) / len(e)
    rows = np.stack([np.kron(np.eye(k)[i], at_grid) for i in range(k)])
    mean = MeanCurves.of(model, runs, budgets, rows, (paired.mean @ least_squares).ravel(), cov)
    return MeanCurves(model, budgets, mean.estimates, e @ at_grid.T)


def _grid(model: CurveModel) -> Array:
    """The observed budgets and points between them, for a smooth curve."""
    low, high = model.budgets[0], model.budgets[-1]
    start, end = to_axis(np.array([low, high]), model.scale)
    even = from_axis(np.linspace(start, end, _POINTS), model.scale)[1:-1]
    if len(model.budgets) > _MOST_OBSERVED:
        return np.concatenate([[low], even, [high]])
    far = np.abs(even[:, None] - model.budgets).min(axis=1) > 1e-6 * (high - low)
    return np.unique(np.concatenate([model.budgets, even[far]]))
