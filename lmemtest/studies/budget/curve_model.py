"""The model of mean curves over the budget: which curves are a sample, which spline follows them, which terms vary.

With several benchmarks an algorithm has one curve per benchmark, the mean of its runs there. Where runs are missing,
rows stay rows and every run has a random curve of its own. With one benchmark the runs are the curves.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from lmemtest._rounding import written
from lmemtest._validate import check_choice, check_positive_int
from lmemtest.data.cells import column_codes
from lmemtest.errors import ArgumentError, DataError
from lmemtest.formula.smooth import fit_spline
from lmemtest.formula.tokens import quote_name
from lmemtest.studies.budget.run_table import RunTable, benchmark_means, run_table
from lmemtest.words import format_level, listed

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    from lmemtest.data.runs import Runs

    Array = NDArray[np.float64]

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


@dataclass(frozen=True, slots=True, eq=False)
class PairedCurves:
    """Curves of all algorithms at all budgets on every unit (a benchmark, an instance, a seed).

    Attributes
    ----------
    scores : (units, algorithms, budgets) float
    group : (units,) int
        Condition of each unit; each has the same number of units.
    """

    scores: Array
    group: NDArray[np.intp]

    @property
    def mean(self) -> Array:
        """``(algorithms, budgets)``."""
        return np.asarray(self.scores.mean(axis=0))

    @property
    def free(self) -> int:
        """Units less conditions."""
        return len(self.scores) - int(self.group.max()) - 1

    @property
    def residuals(self) -> Array:
        """Scores less the mean of their condition."""
        n_groups = int(self.group.max()) + 1
        means = np.stack([self.scores[self.group == g].mean(axis=0) for g in range(n_groups)])
        return np.asarray(self.scores - means[self.group])

    def own_errors(self) -> Array:
        """Standard errors of mean differences from their own variation, ``(algorithms, algorithms, budgets)``."""
        e = self.residuals
        squares = ((e[:, :, None] - e[:, None, :]) ** 2).sum(axis=0)
        return np.asarray(np.sqrt(squares / (self.free * len(self.scores))))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CurveModel:
    """Curves over the budget and the formula of their model.

    Attributes
    ----------
    frame : pandas.DataFrame
        The rows that are fitted.
    formula : str or None
        None where every budget has means of its own.
    conditions : tuple of str
        Metafeatures with fixed effects, over whose levels the curves are averaged with equal weights.
    scale : {"linear", "log"}
    columns : int or None
        Of the spline; None where every budget has means of its own.
    sample : {"benchmarks", "runs"}
        What the curves are a sample of.
    n_sample : int
        Benchmarks, or runs of an algorithm.
    df_means, df_differences : float
        Degrees of freedom of the variances of mean curves and of their differences.
    bias : float
        Largest distance of a difference from the observed one, in standard errors; NaN where it cannot be seen.
    paired : PairedCurves or None
        The curves themselves, where the table is complete.
    ranges : dict
        Algorithm to its lowest and highest budget.
    budgets : (n,) float
        Observed ones.
    notes : tuple of str
    """

    frame: pd.DataFrame
    formula: str | None
    conditions: tuple[str, ...]
    scale: str
    columns: int | None
    sample: str
    n_sample: int
    df_means: float
    df_differences: float
    bias: float
    paired: PairedCurves | None
    ranges: dict[str, tuple[float, float]]
    budgets: Array
    notes: tuple[str, ...]


def curve_model(runs: Runs, *, scale: str, columns: str | int, average: bool) -> CurveModel:
    """Choose the curves, the spline and the random effects for a table of runs."""
    roles = run_table(runs)
    _check_runs_known(roles)
    _check_budgets(roles.frame, roles.algorithm, roles.budget)
    scale = _scale(roles, scale)
    roles, notes = benchmark_means(roles) if average else (roles, ())
    x = to_axis(roles.frame[roles.budget].to_numpy(dtype=float), scale)
    paired = _paired_curves(roles)
    chosen, bias, more = _columns(roles, paired, x, columns)
    n_sample, df_means, df_differences = _degrees_of_freedom(roles)
    return CurveModel(
        frame=roles.frame,
        formula=None if chosen is None else _formula(roles, scale, chosen),
        conditions=_crossed(roles),
        scale=scale,
        columns=chosen,
        sample="benchmarks" if roles.generalises else "runs",
        n_sample=n_sample,
        df_means=df_means,
        df_differences=df_differences,
        bias=bias,
        paired=paired,
        ranges=_ranges(roles),
        budgets=np.unique(roles.frame[roles.budget].to_numpy(dtype=float)),
        notes=(*notes, *more),
    )


# ------------------------------------------------------------------ the table


def _check_runs_known(roles: RunTable) -> None:
    if roles.seed is None and not roles.generalises and (roles.rows > 1).any():
        raise DataError(
            "Which rows belong to one run is not known, and with one benchmark the runs are the sample. Name the seed "
            "column: Runs(table, ..., seed=...)."
        )


def _check_budgets(frame: pd.DataFrame, algorithm: str, budget: str) -> None:
    column = frame[budget]
    if not pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column):
        raise DataError(
            f"A curve over {budget!r} needs numbers, and the column has none. Give the budgets as numbers, or "
            "compare at single budgets with lmemtest.horizons(runs)."
        )
    if column.nunique() < FEWEST_BUDGETS:
        raise DataError(
            f"A curve needs scores at {FEWEST_BUDGETS} budgets or more, {budget!r} has {column.nunique()}. "
            "Compare at each of them with lmemtest.horizons(runs)."
        )
    own = frame.groupby(algorithm, observed=True)[budget].agg(["min", "max", "nunique"])
    short = [format_level(a) for a in own.index[own["nunique"] < FEWEST_BUDGETS]]
    if short:
        raise DataError(
            f"{listed(short)} has scores at fewer than {FEWEST_BUDGETS} budgets, which is no curve. Leave it out, "
            f"runs.filter({algorithm}=[...]), or bring its scores at other budgets."
        )
    if own["min"].max() >= own["max"].min():
        ranges = [f"{format_level(a)}: {format_level(r['min'])} to {format_level(r['max'])}" for a, r in own.iterrows()]
        raise DataError(
            f"The budgets of the algorithms do not overlap ({listed(ranges)}), so their curves cannot be compared. "
            "Bring scores of all algorithms at common budgets."
        )


def _ranges(roles: RunTable) -> dict[str, tuple[float, float]]:
    own = roles.frame.groupby(roles.algorithm, observed=True)[roles.budget].agg(["min", "max"])
    return {str(a): (float(low), float(high)) for a, low, high in own.itertuples()}


# ------------------------------------------------------------------ the spline


def _scale(roles: RunTable, scale: str) -> str:
    check_choice(scale, "scale", SCALES)
    budgets = roles.frame[roles.budget]
    if scale == "log" and budgets.min() <= 0:
        raise ArgumentError(
            f"scale='log' needs budgets above 0, the lowest {roles.budget} is {format_level(budgets.min())}. Use "
            "'linear'."
        )
    return natural_scale(budgets.to_numpy(dtype=float)) if scale == "auto" else scale


def natural_scale(budgets: Array) -> str:
    """The scale of a curve: budgets over more than three doublings are compared by their ratios."""
    return "log" if budgets.min() > 0 and budgets.max() / budgets.min() >= LOG_RANGE else "linear"


def to_axis(budgets: Array, scale: str) -> Array:
    """Places of budgets on the axis on which curves are smooth."""
    return np.log(budgets) if scale == "log" else np.asarray(budgets, dtype=float)


def from_axis(places: Array, scale: str) -> Array:
    """Budgets at places of the axis."""
    return np.exp(places) if scale == "log" else np.asarray(places, dtype=float)


def _curve_text(budget: str, scale: str, columns: int) -> str:
    x = f"log({quote_name(budget)})" if scale == "log" else quote_name(budget)
    if columns == 1:
        return x
    return f"bs({x}, df={columns})" if columns >= DEGREE else f"bs({x}, df={columns}, degree={columns})"


def _columns(
    roles: RunTable, paired: PairedCurves | None, x: Array, given: str | int
) -> tuple[int | None, float, list[str]]:
    """Columns of the spline, its bias, and what to say about it.

    The fewest columns with which no difference of two mean curves departs from the observed one by more than a
    quarter of its standard error; if none follows them to half of it, every budget gets means of its own.
    """
    own = roles.frame.groupby(list(roles.run), observed=True)[roles.budget].nunique()
    most = max(int(own.median()) - 2, 1)
    if isinstance(given, str) and given == "budgets":
        if paired is None:
            raise DataError(
                "columns='budgets' needs a complete table: every algorithm at every budget on each benchmark (on each "
                "seed where there is one benchmark). Use columns='auto', a smooth curve, or filter the runs to what is "
                "complete."
            )
        return None, 0.0, []
    if not (isinstance(given, str) and given == "auto"):
        given = _given_columns(given, most)
        bias = float(_bias_of(paired, x, (given,))[0])
        return given, bias, _bias_notes(given, bias)
    # With more than a column for every other budget a spline swings between budgets.
    options = tuple(range(min(DEGREE, most), max(min(MOST_COLUMNS, most, (most + 2) // 2), min(DEGREE, most)) + 1))
    biases = _bias_of(paired, x, options)
    if paired is None:
        return min(DEFAULT_COLUMNS, most), float("nan"), []
    best = next((i for i, bias in enumerate(biases) if bias <= SMALL_BIAS), int(np.argmin(biases)))
    if biases[best] <= LARGE_BIAS:
        return options[best], float(biases[best]), []
    if roles.count((roles.budget,)) <= MOST_MEANS:
        note = (
            f"No spline with up to {options[-1]} columns follows the observed differences, so each budget has means of "
            f"its own and nothing is said between budgets. columns={options[-1]} gives smooth curves."
        )
        return None, 0.0, [note]
    return options[best], float(biases[best]), _bias_notes(options[best], float(biases[best]))


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


def _bias_of(paired: PairedCurves | None, x: Array, options: tuple[int, ...]) -> Array:
    """Largest bias of a difference in (pooled) standard errors, for each number of columns."""
    if paired is None:
        return np.full(len(options), np.nan)
    first, second = np.triu_indices(paired.scores.shape[1], 1)
    mean = paired.mean[first] - paired.mean[second]
    pooled = np.sqrt((paired.own_errors()[first, second] ** 2).mean(axis=0))
    se = np.maximum(pooled, 1e-9 * max(float(np.abs(paired.scores).max()), np.finfo(float).tiny))
    places = np.unique(x)
    return np.array([float(np.max(np.abs(mean - mean @ _hat(places, k)) / se)) for k in options])


def _paired_curves(roles: RunTable) -> PairedCurves | None:
    """The curves of a complete table: every unit has every algorithm at every budget."""
    units = [c for c in (*roles.instance, roles.seed) if c is not None]
    algorithms, budgets = roles.count((roles.algorithm,)), roles.count((roles.budget,))
    inside = [c for c in roles.conditions if roles.generalises]
    if not units or (roles.generalises and (roles.seed is not None or inside)):
        return None  # rows of several kinds: a benchmark has more than one curve per algorithm
    levels, _ = column_codes(roles.frame[roles.algorithm])
    wide = roles.frame.assign(**{roles.algorithm: levels}).pivot_table(  # algorithms in the order of their levels
        index=units, columns=[roles.algorithm, roles.budget], values=roles.score, observed=True
    )
    if wide.isna().to_numpy().any() or wide.shape[1] != algorithms * budgets:
        return None
    places = wide.index.to_frame(index=False)
    group = places.groupby(list(roles.conditions), observed=True).ngroup().to_numpy() if roles.conditions else 0
    group = np.broadcast_to(group, len(wide)).astype(np.intp)
    sizes = np.bincount(group)
    if (sizes != sizes[0]).any() or sizes[0] < 2:
        return None
    return PairedCurves(wide.to_numpy().reshape(len(wide), algorithms, budgets), group)


def spline_over(x: Array, columns: int) -> Callable[[Array], Array]:
    """The spline of the formula over these places, with a column of ones."""
    degree = min(DEGREE, columns)
    spline = fit_spline(x, np.ones_like(x), n_inner=columns - degree, inner=None, degree=degree, lower=None, upper=None)
    return lambda places: np.column_stack([np.ones_like(places), spline(places)])


def _hat(x: Array, columns: int) -> Array:
    """Projection onto the spline over the points."""
    basis = np.linalg.qr(spline_over(x, columns)(x))[0]
    return np.asarray(basis @ basis.T)


def _bias_notes(columns: int, bias: float) -> list[str]:
    if not bias > LARGE_BIAS:
        return []
    return [
        f"The curves ({columns} columns) depart from the observed differences by up to {written(bias, '.2g')} "
        f"standard errors, so "
        "read them as a smooth summary; columns='budgets' gives each budget means of its own."
    ]


# ------------------------------------------------------------------ the model


def _crossed(roles: RunTable) -> tuple[str, ...]:
    """Metafeatures whose levels are conditions within the sample."""
    if not roles.generalises:
        return roles.conditions
    benchmarks = roles.count((str(roles.benchmark),))
    return tuple(
        c
        for c in roles.conditions
        if roles.count((str(roles.benchmark), c)) > benchmarks and roles.count((c,)) <= MOST_CONDITIONS
    )


def _formula(roles: RunTable, scale: str, columns: int) -> str:
    curve = _curve_text(roles.budget, scale, columns)
    return f"{quote_name(roles.score)} ~ {' + '.join([_fixed(roles, curve), *_random(roles, curve, columns)])}"


def _fixed(roles: RunTable, curve: str) -> str:
    algorithm = quote_name(roles.algorithm)
    parts = [f"{algorithm} * {curve}"]
    for name in _crossed(roles):
        factor = f"C({quote_name(name)})" if pd.api.types.is_numeric_dtype(roles.frame[name]) else quote_name(name)
        parts.append(f"{algorithm} * {factor} * {curve}")
    return " + ".join(parts)


def _random(roles: RunTable, curve: str, columns: int) -> list[str]:
    """Random curves of what is repeated, random levels of what lies between."""
    seed = (roles.seed,) if roles.seed else ()
    if roles.generalises:
        benchmark = (str(roles.benchmark),)
        groups = [(benchmark, True), ((*benchmark, roles.algorithm), True)]
        if roles.conditions:
            groups += [(roles.instance, False), ((*roles.instance, roles.algorithm), False)]
        groups += [((*roles.instance, *seed), False)] if seed else []
    else:
        groups = [((*roles.instance, *seed), True)] if seed else []
    groups.append((roles.run, True))
    kept: list[tuple[str, ...]] = []
    terms = []
    for group, curved in groups:
        n = roles.count(group)
        same = any(set(k) < set(group) and roles.count(k) == n for k in kept)
        if group in kept or same or n < 2 or n >= len(roles.frame):
            continue
        kept.append(group)
        curved = curved and n * (columns + 1) < len(roles.frame)
        terms.append(f"({f'1 + {curve}' if curved else '1'} | {':'.join(map(quote_name, group))})")
    return terms


def _degrees_of_freedom(roles: RunTable) -> tuple[int, float, float]:
    """Sample size, and degrees of freedom of mean curves and of differences: what is left between the groups."""
    a = roles.count((roles.algorithm,))
    if roles.generalises:
        b = roles.count((str(roles.benchmark),))
        free = roles.count((str(roles.benchmark), roles.algorithm)) - b - a + 1
        if free < 1:
            raise DataError(
                "No two algorithms share two benchmarks, so how much their difference varies is not known. Bring "
                "scores of the same benchmarks for all algorithms."
            )
        return b, float(b - 1), float(free)
    cells, runs = roles.count((*roles.instance, roles.algorithm)), roles.count(roles.run)
    if runs == cells:
        raise DataError(
            "There is one benchmark and one run per algorithm, so how much curves vary is not known. Bring more seeds "
            "(they show what holds on this benchmark) or more benchmarks."
        )
    pairs = roles.count((*roles.instance, str(roles.seed)))
    if pairs == runs:  # every run has a seed of its own
        return runs // a, float(runs - cells), float(runs - cells)
    conditions = max(roles.count(roles.instance), 1) if roles.instance else 1
    return runs // a, float(pairs - conditions), float(max(runs - pairs - cells + conditions, 1))
