"""Runs as curves over the budget, and the tests of these curves.

What a run says about the budget is how its score changes within the run. So scores are centred per run, and on every
benchmark the runs of an algorithm give the coefficients of its curve: of a line, of a spline, or of a mean for every
budget. The columns of these forms are orthonormal over the budgets and orthogonal to a constant, so the squared length
of the coefficients is the squared distance of the curve from a flat one. Rows beyond the curves say nothing about
other benchmarks: a table of 86,400 rows is 36 curves.

A question is tested twice, by the mean of the effects and by their direction
(`lmemtest.lmm.hypotheses.mean_vectors`): the mean is what a comparison over benchmarks is about, but benchmarks
of a large unit decide it; the direction is free of units. Twice the smaller p-value holds the level whatever the
dependence of the two (Bonferroni). Where there are too few benchmarks for a direction to reach its share of the level
at all, the mean has the whole of it; that is decided by the number of benchmarks alone. The two questions share the
level by Holm's rule.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.bench.budget.curves import (
    budgets_of,
    check_overlap,
    natural_scale,
    ranges_text,
    require_repeats,
    spline_over,
    to_axis,
)
from lmemtest.bench.data.runs import require_runs
from lmemtest.core.arrays import Array, Index, Mask
from lmemtest.core.caller import advice
from lmemtest.core.codes import column_codes, first_rows, group_numbers
from lmemtest.core.validate import check_columns
from lmemtest.core.words import format_level, listed
from lmemtest.errors import ArgumentError, DataError
from lmemtest.lmm.hypotheses.mean_vectors import direction_test, fewest_directions, mean_test
from lmemtest.lmm.means.adjust import adjust_raw

if TYPE_CHECKING:
    from lmemtest.bench.data.runs import Runs
    from lmemtest.lmm.means.f_tests import FTest

    Columns = Callable[[Any], Array]  # budgets to (n, c)

FORMS = ("auto", "linear", "log", "categorical", "spline")
LINES = ("linear", "log")
SPLINE_DF = 4  # a cubic with one inner knot: bends twice, as learning curves do
MOST_BUDGETS = 50  # more levels than this are a continuum: one effect each would eat the data
_ROUNDING = 8 * np.finfo(float).eps  # of the largest score: a coefficient of less is none
_SAME = 1e-9  # of the size of the curves: what is less is rounding


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """Curves of one form; an algorithm that a unit lacks, or whose curve is not identified there, is NaN.

    `columns` maps budgets to ``(n, c)``. `coefficients` ``(units, algorithms, c)``, the mean score `level` ``(units,
    algorithms)`` and the mean `place` of the columns where it was observed ``(units, algorithms, c)`` give the curve.
    """

    columns: Columns
    coefficients: Array
    level: Array
    place: Array

    def at(self, budgets: Any) -> Array:
        """Scores at some budgets, ``(units, algorithms, n)``."""
        moved = np.einsum("uac,nc->uan", self.coefficients, self.columns(budgets))
        start = self.level - np.einsum("uac,uac->ua", self.coefficients, self.place)
        return np.asarray(start[:, :, None] + moved)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BudgetCurves:
    """Curves over the budget of every algorithm on every unit (families or benchmarks, or runs on one: `sample`).

    `fitted` has the curves of the form; `free` the same with a mean for every budget (a spline, with more than 50
    budgets) in the columns of the form and others orthogonal to them, None if that is the form. `axis` ("linear", "log"
    or None) is where lines and splines are drawn, `group` the condition in which runs on one benchmark were made, and
    scores are `relative` to the benchmark at every budget where their mean over the algorithms cannot change.
    """

    runs: Runs
    form: str
    axis: str | None
    algorithms: tuple[Any, ...]
    budgets: tuple[Any, ...]
    fitted: Fitted
    free: Fitted | None
    sample: str
    group: Index
    relative: bool
    n_obs: int
    notes: tuple[str, ...] = ()

    @property
    def ends(self) -> tuple[str, str]:
        """The lowest and the highest budget in words."""
        return format_level(self.budgets[0]), format_level(self.budgets[-1])

    @property
    def changes(self) -> Array:
        """Change of the score from the lowest to the highest budget, ``(units, algorithms)``."""
        return np.asarray(np.diff(self.fitted.at([self.budgets[0], self.budgets[-1]]))[:, :, 0])


def budget_curves(runs: Runs, budget: str | None, form: str) -> BudgetCurves:
    """Reduce a table of runs to curves over the budget."""
    require_runs(runs)
    runs = _with_budget(runs, budget)
    study, name = runs.study, str(runs.budget)
    budgets = study.distinct([name])[name]
    numeric = bool(pd.api.types.is_numeric_dtype(budgets) and not pd.api.types.is_bool_dtype(budgets))
    sample = () if study.sampled.column is None else (study.sampled.column,)
    keys, points = study.curves([*study.run, *sample])
    form, notes = _checked_form(budgets, numeric, form)
    notes += _check_common(runs, form)
    require_repeats(runs, f"the curve of a run cannot be distinguished from an effect of {name}")
    levels = tuple(budgets.tolist())
    axis = form if form in LINES else natural_scale(budgets.to_numpy(dtype=float)) if numeric else None
    columns, wider = budget_columns(levels, form, axis)
    # runs by cell (an algorithm on an instance, or a run), cells by unit and algorithm
    several = study.several_benchmarks
    cell = group_numbers(keys, (*study.instance, runs.algorithm) if several else study.run)
    each = keys.iloc[first_rows(cell, int(cell.max()) + 1)]
    seed = () if runs.seed is None else (runs.seed,)
    unit = group_numbers(each, sample if several else (*study.instance, *seed))
    group = np.zeros(int(unit.max()) + 1, dtype=np.intp)
    if not several:
        group[unit] = group_numbers(each, study.instance)
    algorithm, algorithms = column_codes(each[runs.algorithm])
    points["budget"] = column_codes(points["budget"])[0]
    fit = partial(_fitted, points, cell, unit * len(algorithms) + algorithm, (len(group), len(algorithms)), levels)
    fitted = fit(columns)
    if np.isnan(fitted.coefficients).all(axis=(0, 2)).any():
        raise DataError(
            f"Some algorithm lacks budgets that form={form!r} needs, so its curve is not identified. Use "
            "form='linear', or filter the runs to budgets that all algorithms have."
        )
    return BudgetCurves(
        runs=runs,
        form=form,
        axis=axis,
        algorithms=runs.levels(runs.algorithm),
        budgets=levels,
        fitted=fitted,
        free=None if wider is None else fit(wider),
        sample=study.sampled.nouns if several else "runs",
        group=group,
        relative=_relative(fitted.coefficients),
        n_obs=runs.n_rows,
        notes=(*study.sampled.notes, *study.sampled.weights, *notes),
    )


# ------------------------------------------------------------------ what the table can answer


def _with_budget(runs: Runs, name: str | None) -> Runs:
    if name is None:
        runs.study.require("budget", "it has no effect to test")
        return runs
    check_columns((name,), runs.columns, argument="budget")
    taken = {runs.score: "score", runs.algorithm: "algorithm", runs.benchmark: "benchmark", runs.seed: "seed"}
    if name in taken:
        raise ArgumentError(f"budget must not be the {taken[name]} column, got {name!r}.")
    rest = tuple(m for m in runs.metafeatures if m != name)
    return dataclasses.replace(runs, budget=name, metafeatures=rest)


def _checked_form(budgets: pd.Series[Any], numeric: bool, form: str) -> tuple[str, list[str]]:
    """The form that is fitted, and notes if it is another one than was asked for."""
    name, n = str(budgets.name), len(budgets)
    if n < 2:
        raise DataError(
            f"There is one budget only ({name} = {format_level(budgets.iloc[0])}), so its effect cannot be tested. "
            "Add scores of the same runs at other budgets."
        )
    if form not in ("auto", "categorical") and not numeric:
        raise ArgumentError(f"form={form!r} needs numbers as budgets, and {name!r} has none. Use form='categorical'.")
    if n > MOST_BUDGETS and (form == "categorical" or (form == "auto" and not numeric)):
        raise ArgumentError(
            f"form='categorical' has one effect per budget, and there are {n:,} budgets, more than {MOST_BUDGETS}. "
            "Use form='spline', or filter the runs to fewer budgets."
        )
    if form == "auto":  # by the design alone, so that the choice costs no level
        if not numeric:
            return "categorical", []
        return "log" if n > 2 and natural_scale(budgets.to_numpy(dtype=float)) == "log" else "linear", []
    if form == "log" and budgets.min() <= 0:
        raise ArgumentError(
            f"form='log' needs budgets above 0, the lowest {name} is {format_level(budgets.min())}. Use form='linear'."
        )
    if n == 2 and form != "linear" and numeric:
        return "linear", [f"With two budgets form={form!r} is the same as form='linear', which was fitted."]
    if form == "spline" and n <= SPLINE_DF:
        raise ArgumentError(
            f"form='spline' needs at least {SPLINE_DF + 1} budgets, there are {n}. Use form='categorical'."
        )
    return form, []


def _check_common(runs: Runs, form: str) -> list[str]:
    """Algorithms must be seen at budgets that others have as well: else algorithm and budget are one and the same."""
    of_algorithms = budgets_of(runs)
    alone = [repr(algorithm) for algorithm, budgets in of_algorithms.items() if len(budgets) < 2]
    if alone:
        raise DataError(
            f"{listed(alone)} ran at one budget only, so how budget acts on it is not known. "
            f"Leave it out, {advice('some_values', column=runs.algorithm)}, or add its scores at other budgets."
        )
    everywhere, common = (of(*map(set, of_algorithms.values())) for of in (set.union, set.intersection))
    if form == "categorical" and len(common) < len(everywhere):
        raise DataError(
            f"form='categorical' compares algorithms at every budget, but they share {len(common)} of "
            f"{len(everywhere)} budgets. Filter the runs to the shared ones, runs.filter({runs.budget}=[...]), or use "
            "form='linear' or 'spline'."
        )
    if len({(budgets[0], budgets[-1]) for budgets in of_algorithms.values()}) == 1:
        return []
    check_overlap(of_algorithms, f"the effect of {runs.budget} cannot be separated from that of the algorithm")
    return [
        f"Algorithms have different ranges of {runs.budget} ({ranges_text(of_algorithms)}); beyond its own range an "
        "algorithm's "
        "curve is extrapolated."
    ]


def _relative(coefficients: Array) -> bool:
    """Whether the mean over the algorithms is flat, as that of ranks: on most units, as runs may be missing."""
    whole = np.isfinite(coefficients).all(axis=(1, 2))
    if not whole.any() or coefficients.shape[1] < 2:
        return False
    size = float(np.abs(coefficients[whole]).max())
    flat = np.abs(coefficients[whole].mean(axis=1)).max(axis=1) <= _SAME * size
    return bool(2 * flat.sum() > len(coefficients) and size > 0)


# ------------------------------------------------------------------ forms


def budget_columns(budgets: tuple[Any, ...], form: str, axis: str | None) -> tuple[Columns, Columns | None]:
    """Orthonormal columns of the form; and with those that it leaves out beside them, None if it leaves out nothing."""
    n, position = len(budgets), {budget: i for i, budget in enumerate(budgets)}

    def with_rest(columns: Array, *first: Columns) -> Columns:
        """Some columns, and all that these and a constant leave out of a mean at every budget."""
        rest = np.linalg.qr(columns, mode="complete")[0][:, columns.shape[1] :]
        return lambda wanted: np.column_stack([*(f(wanted) for f in first), rest[[position[b] for b in wanted]]])

    if form == "categorical":
        return with_rest(np.ones((n, 1))), None
    assert axis is not None
    x = to_axis(np.array(budgets, dtype=float), axis)
    smooth = _smooth(x, axis, None if form in LINES else SPLINE_DF)
    columns = np.column_stack([np.ones(n), smooth(budgets)])
    if n <= MOST_BUDGETS:
        return smooth, with_rest(columns, smooth) if columns.shape[1] < n else None
    if form == "spline":
        return smooth, None
    more = _smooth(x, axis, SPLINE_DF, columns)
    return smooth, lambda wanted: np.column_stack([smooth(wanted), more(wanted)])


def _smooth(x: Array, axis: str, spline: int | None, without: Array | None = None) -> Columns:
    """Orthonormal columns of a line or a spline over places, orthogonal to a constant (and to a line)."""
    raw = spline_over(x, spline) if spline is not None else lambda places: places[:, None] - x.mean()
    values = raw(x)
    base = np.ones((len(x), 1)) if without is None else without
    # the columns less their projection on the base, which is a combination of a constant and the line
    coefficients = np.linalg.lstsq(base, values, rcond=None)[0]
    left = values - base @ coefficients
    _, s, vt = np.linalg.svd(left, full_matrices=False)
    kept = s > 1e-8 * max(float(np.abs(values).max()), 1.0) * np.sqrt(len(x))
    turn = vt[kept].T / s[kept]
    if spline is None and (left @ turn)[-1, 0] < (left @ turn)[0, 0]:
        turn = -turn  # a line rises with the budget
    line = None if without is None else _smooth(x, axis, None)

    def columns(budgets: Any) -> Array:
        places = to_axis(np.array(budgets, dtype=float), axis)
        ones = np.ones((len(places), 1))
        here = ones if line is None else np.column_stack([ones, line(budgets)])
        return np.asarray((raw(places) - here @ coefficients) @ turn)

    return columns


# ------------------------------------------------------------------ coefficients


def _fitted(
    points: pd.DataFrame,
    cell_of_run: Index,
    place_of_cell: Index,
    shape: tuple[int, int],
    budgets: tuple[Any, ...],
    columns: Columns,
) -> Fitted:
    """Curves on the columns by least squares within runs, cell by cell; conditions of a unit are averaged.

    `points` have ``run``, ``budget`` (its place among `budgets`) and ``score``; the place of a cell is unit *
    algorithms + algorithm, and `shape` are the numbers of these.
    """
    Z, y, run, budget = columns(budgets), points["score"], points["run"].to_numpy(), points["budget"].to_numpy()
    cell = cell_of_run[run]
    level = y.groupby(run).mean().to_numpy()
    if len(y) == len(level) * len(Z):  # every run at every budget: Z'Z is the number of runs
        coefficients = y.groupby([cell, budget]).mean().to_numpy().reshape(-1, len(Z)) @ Z
        place = np.zeros_like(coefficients)
    else:
        places = pd.DataFrame(Z[budget]).groupby(run).mean().to_numpy()
        place = pd.DataFrame(places).groupby(cell_of_run).mean().to_numpy()
        coefficients = np.full(place.shape, np.nan)
        for i, rows in pd.Series(cell).groupby(cell).indices.items():
            within = Z[budget[rows]] - places[run[rows]]
            slopes_within, _, rank, _ = np.linalg.lstsq(within, y.to_numpy()[rows] - level[run[rows]], rcond=1e-10)
            if rank == Z.shape[1]:
                coefficients[i] = slopes_within
    rounding = _ROUNDING * np.sqrt(len(Z)) * y.abs().groupby(cell).max().to_numpy()
    coefficients = np.where(np.abs(coefficients) <= rounding[:, None], 0.0, coefficients)
    mean = pd.Series(level).groupby(cell_of_run).mean().to_numpy()

    def averaged(values: Array) -> Array:
        """Over the cells of a unit and algorithm that have them, NaN where there is none."""
        complete = pd.DataFrame(values).dropna()
        means = complete.groupby(place_of_cell[complete.index]).mean().reindex(range(shape[0] * shape[1]))
        return means.to_numpy().reshape(*shape, -1)

    return Fitted(columns, averaged(coefficients), averaged(mean)[:, :, 0], averaged(place))


# ------------------------------------------------------------------ tests


_HELD = 0.9  # of the squared effects: who decides a mean


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetTest:
    """One question about the effects of the budget, tested by their mean and by their direction.

    Attributes
    ----------
    question : {"effect", "interaction", "lack of fit"}
        Does the mean score of the algorithms change with the budget; does it change differently for them; does it
        depart from the form of the curves?
    f_ratio, df_num, df_den, mean_p : float
        F-test of the mean effect over the sample; NaN where effects do not vary.
    better, worse : int
        How many of the sample have an effect to the better and to the worse; -1 where effects are no single slopes.
    agreement, direction_p : float
        Of directions: from 0 to 1, and its test, which counts if `uses_direction`: if there are enough of the sample.
    n : int
        Benchmarks, or runs; `deciding` of them hold 90 % of the squared effects.
    p_raw, p_value : float
        Of both tests together, and after Holm over the questions of the decision.
    """

    question: str
    f_ratio: float
    df_num: float
    df_den: float
    mean_p: float
    better: int
    worse: int
    agreement: float
    direction_p: float
    n: int
    uses_direction: bool
    p_raw: float
    p_value: float
    deciding: int


def budget_tests(curves: BudgetCurves, alpha: float) -> tuple[tuple[BudgetTest, ...], tuple[str, ...]]:
    """Answer the questions about the budget; with what is left out in words."""
    effects, n = curves.fitted.coefficients, len(curves.group)
    if not np.nan_to_num(effects).any():
        raise DataError(
            f"No score changes with {curves.runs.budget}: it is the same at every budget, so there is no effect to "
            "test. Is another column the score, or the budget?"
        )
    questions = [*(() if curves.relative else ("effect",)), "interaction"]
    level, notes = alpha / len(questions), tuple[str, ...]()
    whole: Mask = np.asarray(np.isfinite(effects).all(axis=(1, 2)))
    if effects.shape[2] == 1 and not whole.all():
        tests = [_patchy(curves, question, effects[:, :, 0], level) for question in questions]
    else:
        kept = int(whole.sum())
        if not whole.all():
            notes = (
                f"{n - kept} of {n} {curves.sample} lack an algorithm, or budgets that form={curves.form!r} needs, "
                "and are left out.",
            )
        if kept < 2 and notes:
            raise DataError(
                f"Only {kept} of {n} {curves.sample} have a curve of every algorithm, and form={curves.form!r} "
                "compares them there. Use form='linear', or filter the runs to algorithms and budgets that share "
                f"{curves.sample}."
            )
        mean = effects[whole].mean(axis=1)
        vectors = {"effect": mean, "interaction": (effects[whole] - mean[:, None]).reshape(kept, -1)}
        tests = [_of_vectors(curves, question, vectors[question], whole, level) for question in questions]
    adjusted = adjust_raw(np.array([test.p_raw for test in tests]), "holm", len(tests))
    tests = [replace(test, p_value=float(p)) for test, p in zip(tests, adjusted, strict=True)]
    if curves.free is not None:
        # do budget means depart from the form: their deviations against how they vary between benchmarks
        rest = curves.free.coefficients[:, :, effects.shape[2] :]
        whole = np.asarray(np.isfinite(rest).all(axis=(1, 2)))
        if whole.sum() > 1 and rest.shape[2]:
            centre = rest[whole].mean(axis=1, keepdims=True) if curves.relative else 0.0
            deviations = (rest[whole] - centre).reshape(int(whole.sum()), -1)
            if np.abs(deviations).max() <= 1e-9 * float(np.abs(effects[whole]).max()):  # lines to the last digit
                deviations = np.zeros_like(deviations)
            tests.append(_of_vectors(curves, "lack of fit", deviations, whole, alpha))
    return tuple(tests), notes


def _of_vectors(curves: BudgetCurves, question: str, vectors: Array, units: Mask, level: float) -> BudgetTest:
    """A question about the effects of some units, which have all algorithms."""
    group = np.unique(curves.group[units], return_inverse=True)[1]
    return _tested(question, vectors, mean_test(vectors, group), level, curves)


def _patchy(curves: BudgetCurves, question: str, slopes: Array, level: float) -> BudgetTest:
    """Where algorithms lack units: slopes by a mixed model, directions of what is there."""
    from lmemtest.lmm.means.f_tests import f_test
    from lmemtest.lmm.model import ModelSpec

    finite = np.isfinite(slopes)
    unit, algorithm = np.nonzero(finite)
    frame = pd.DataFrame(
        {"slope": slopes[finite], "algorithm": [f"{a:06d}" for a in algorithm], "unit": [f"{u:06d}" for u in unit]}
    )
    several, k = finite.sum(axis=1) > 1, slopes.shape[1]
    spec = ModelSpec.parse("slope ~ 0 + algorithm")
    fit = (spec.with_term("(1 | unit)") if several.any() else spec).fit(frame)
    L = np.full((1, k), 1.0 / k) if question == "effect" else np.eye(k)[1:] - np.eye(k)[0]
    model = f_test(fit, L, ddf="satterthwaite")
    mean = np.nansum(slopes, axis=1) / np.maximum(finite.sum(axis=1), 1)
    if question == "effect":
        return _tested(question, mean[:, None], model, level, curves)
    differences = np.where(finite, slopes - mean[:, None], 0.0)
    return _tested(question, differences, model, level, curves, paired=bool(several.any()))


def _tested(
    question: str, vectors: Array, mean: FTest, level: float, curves: BudgetCurves, *, paired: bool = True
) -> BudgetTest:
    """Both tests and their p-value; runs of one algorithm each have no direction of differences."""
    agreement, direction_p, _ = direction_test(vectors)
    n = len(vectors)
    uses = paired and n >= fewest_directions(level / 2.0)
    p = mean.p_value
    if paired and not np.abs(vectors).any():
        p = 1.0  # nothing to find: algorithms with the same curves do not differ, and exact lines fit
    elif uses:
        p = min(1.0, 2.0 * float(np.nanmin([p, direction_p])))
    if np.isnan(p):
        raise DataError(
            f"The effect of {curves.runs.budget} is the same on all {n} {curves.sample} to the last digit, so how "
            f"much it varies is not known. Check for copied rows: lmemtest.check(runs). Or add more "
            f"{curves.sample}."
        )
    better = worse = -1
    if question == "effect" and curves.form in LINES:
        good = -vectors[:, 0] if curves.runs.direction == "minimize" else vectors[:, 0]
        limit = 1e-12 * float(np.abs(good).max(initial=0.0))
        better, worse = int((good > limit).sum()), int((good < -limit).sum())
    squares = np.sort(np.square(vectors).sum(axis=1))[::-1]
    deciding = int(np.searchsorted(np.cumsum(squares), _HELD * squares.sum() * (1 - 1e-9)) + 1) if squares.any() else n
    return BudgetTest(
        question=question,
        f_ratio=mean.f_ratio,
        df_num=float(mean.df_num),
        df_den=mean.df_den,
        mean_p=mean.p_value,
        better=better,
        worse=worse,
        agreement=agreement,
        direction_p=direction_p,
        n=n,
        uses_direction=uses,
        p_raw=p,
        p_value=p,
        deciding=deciding,
    )
