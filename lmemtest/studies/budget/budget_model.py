"""Runs as courses over the budget: per benchmark and algorithm a level and a few coefficients.

What a run says about the budget is how its score changes within the run. So scores are centred per run, and on every
benchmark the runs of an algorithm give the coefficients of its course: of a line, of a spline, or of a mean for every
budget. The columns of these forms are orthonormal over the budgets and orthogonal to a constant, so the squared length
of the coefficients is the squared distance of the course from a flat one. Rows beyond the courses say nothing about
other benchmarks: a table of 86,400 rows is 36 courses.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest._validate import check_columns
from lmemtest.data.cells import group_numbers
from lmemtest.data.runs import require_runs
from lmemtest.errors import ArgumentError, DataError
from lmemtest.studies.budget.curve_model import LOG_RANGE, spline_over, to_axis
from lmemtest.words import format_level, listed

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.data.cells import Cells
    from lmemtest.data.runs import Runs

    Array = NDArray[np.float64]
    Codes = NDArray[np.intp]
    Columns = Callable[[Any], Array]  # budgets to (n, c)

FORMS = ("auto", "linear", "log", "categorical", "spline")
LINES = ("linear", "log")
SPLINE_DF = 4  # a cubic with one inner knot: bends twice, as learning curves do
MOST_BUDGETS = 50  # more levels than this are a continuum: one effect each would eat the data
FEWEST_FOR_SPLINE = SPLINE_DF + 1
_ROUNDING = 8 * np.finfo(float).eps  # of the largest score: a coefficient of less is none
_SAME = 1e-9  # of the size of the courses: what is less is rounding


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """Courses of one form; an algorithm that a unit lacks, or whose course is not identified there, is NaN.

    Attributes
    ----------
    columns : callable
        Budgets to ``(n, c)``.
    coefficients : (units, algorithms, c) float
    level : (units, algorithms) float
        Mean score.
    place : (units, algorithms, c) float
        Mean of the columns where that was observed.
    """

    columns: Columns
    coefficients: Array
    level: Array
    place: Array

    def at(self, budgets: Any) -> Array:
        """Scores at some budgets, ``(units, algorithms, n)``."""
        columns = self.columns(budgets)
        moved = np.einsum("uac,nc->uan", self.coefficients, columns)
        start = self.level - np.einsum("uac,uac->ua", self.coefficients, self.place)
        return np.asarray(start[:, :, None] + moved)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Courses:
    """Courses over the budget of every algorithm on every unit.

    Attributes
    ----------
    runs : Runs
        With the budget in its role.
    form : {"linear", "log", "categorical", "spline"}
    axis : {"linear", "log"} or None
        On which lines and splines are drawn; None for budgets without numbers.
    algorithms, budgets : tuple
        Levels.
    fitted : Fitted
        Courses of the form.
    free : Fitted or None
        The same with a mean for every budget (a spline, with more than 50 budgets), in the columns of the form and
        others orthogonal to them; None if that is the form.
    step : float
        Length of a unit of the axis along the only column of a line; NaN for curves.
    clusters : {"benchmarks", "runs"}
        What the units are: a sample of benchmarks, or of runs on one.
    group : (units,) int
        The condition in which runs on one benchmark were made.
    relative : bool
        Scores are relative to the benchmark at every budget: their mean over the algorithms cannot change.
    n_obs : int
        Rows of the table.
    notes : tuple of str
    """

    runs: Runs
    form: str
    axis: str | None
    algorithms: tuple[Any, ...]
    budgets: tuple[Any, ...]
    fitted: Fitted
    free: Fitted | None
    step: float
    clusters: str
    group: Codes
    relative: bool
    n_obs: int
    notes: tuple[str, ...]


def budget_courses(runs: Runs, budget: str | None, form: str) -> Courses:
    """Reduce a table of runs to courses over the budget."""
    require_runs(runs)
    runs = _with_budget(runs, budget)
    study = runs.study
    budgets = study.distinct([str(runs.budget)])[runs.budget]
    numeric = bool(pd.api.types.is_numeric_dtype(budgets) and not pd.api.types.is_bool_dtype(budgets))
    found = study.cells([*study.run, str(runs.budget)])
    form, notes = _checked_form(budgets, numeric, form)
    sets = _budgets_of(runs)
    _check_common(runs, sets, form)
    _check_repeated(runs, found)
    axis = form if form in LINES else _scale(budgets.to_numpy(dtype=float)) if numeric else None
    return _courses(runs, found, form, axis, [*notes, *_ranges(runs, sets)])


def _courses(runs: Runs, found: Cells, form: str, axis: str | None, notes: list[str]) -> Courses:
    algorithms, budgets = runs.levels(runs.algorithm), runs.levels(str(runs.budget))
    columns, more = _columns(budgets, form, axis)
    cells = _by_run(runs, found, algorithms, budgets)
    fitted = cells.fitted(columns)
    if np.isnan(fitted.coefficients).all(axis=(0, 2)).any():
        raise DataError(
            f"Some algorithm lacks budgets that form={form!r} needs, so its curve is not identified. Use "
            "form='linear', or filter the runs to budgets that all algorithms have."
        )
    return Courses(
        runs=runs,
        form=form,
        axis=axis,
        algorithms=algorithms,
        budgets=budgets,
        fitted=fitted,
        free=None if more is None else cells.fitted(_beside(columns, more)),
        step=_step(budgets, axis) if form in LINES else float("nan"),
        clusters="benchmarks" if runs.study.several_benchmarks else "runs",
        group=cells.group,
        relative=_relative(fitted.coefficients),
        n_obs=found.n_rows,
        notes=tuple(notes),
    )


# ------------------------------------------------------------------ the table and what it can answer


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


def _budgets_of(runs: Runs) -> dict[Any, set[Any]]:
    """Algorithms in the order of their levels, with their budgets."""
    pairs = runs.study.distinct([runs.algorithm, str(runs.budget)])
    found = pairs.groupby(runs.algorithm, observed=True)[str(runs.budget)].agg(set)
    return {algorithm: found[algorithm] for algorithm in runs.levels(runs.algorithm)}


def _checked_form(budgets: pd.Series[Any], numeric: bool, form: str) -> tuple[str, list[str]]:
    """The form that is fitted, and notes if it is another one than was asked for."""
    name, n = str(budgets.name), len(budgets)
    if n < 2:
        raise DataError(
            f"There is one budget only ({name} = {format_level(budgets.iloc[0])}), so its effect cannot be tested. "
            "Bring scores of the same runs at other budgets."
        )
    if form not in ("auto", "categorical") and not numeric:
        raise ArgumentError(f"form={form!r} needs numbers as budgets, and {name!r} has none. Use form='categorical'.")
    if form in ("auto", "categorical") and n > MOST_BUDGETS and (form != "auto" or not numeric):
        raise ArgumentError(
            f"form='categorical' has one effect per budget, and there are {n:,} budgets, more than {MOST_BUDGETS}. "
            "Use form='spline', or filter the runs to fewer budgets."
        )
    if form == "auto":
        return _default_form(budgets) if numeric else "categorical", []
    if form == "log" and budgets.min() <= 0:
        raise ArgumentError(
            f"form='log' needs budgets above 0, the lowest {name} is {format_level(budgets.min())}. Use form='linear'."
        )
    if n == 2 and form != "linear" and numeric:
        return "linear", [f"With two budgets form={form!r} is the same as form='linear', which was fitted."]
    if form == "spline" and n < FEWEST_FOR_SPLINE:
        raise ArgumentError(
            f"form='spline' needs at least {FEWEST_FOR_SPLINE} budgets, there are {n}. Use form='categorical'."
        )
    return form, []


def _default_form(budgets: pd.Series[Any]) -> str:
    """By the design alone, so that the choice costs no level: budgets over three doublings compare by their ratios."""
    return "log" if len(budgets) > 2 and _scale(budgets.to_numpy(dtype=float)) == "log" else "linear"


def _scale(budgets: Array) -> str:
    return "log" if budgets.min() > 0 and budgets.max() / budgets.min() >= LOG_RANGE else "linear"


def _check_common(runs: Runs, sets: dict[Any, set[Any]], form: str) -> None:
    """Algorithms must be seen at budgets that others have as well: else algorithm and budget are one and the same."""
    everywhere = set.union(*sets.values())
    alone = [a for a, own in sets.items() if len(own) < 2]
    if alone:
        raise DataError(
            f"{listed(map(repr, map(str, alone)))} ran at one budget only, so how budget acts on it is not known. "
            f"Leave it out, runs.filter({runs.algorithm}=[...]), or bring its scores at other budgets."
        )
    common = set.intersection(*sets.values())
    if form == "categorical" and len(common) < len(everywhere):
        raise DataError(
            f"form='categorical' compares algorithms at every budget, but they share {len(common)} of "
            f"{len(everywhere)} budgets. Filter the runs to the shared ones, runs.filter({runs.budget}=[...]), or use "
            "form='linear' or 'spline'."
        )
    if form == "categorical":
        return
    ends = [(min(own), max(own)) for own in sets.values()]
    if min(high for _, high in ends) <= max(low for low, _ in ends):
        raise DataError(
            f"The budgets of the algorithms do not overlap ({_ranges_text(sets)}), so the effect of {runs.budget} "
            "cannot be separated from that of the algorithm. Bring scores of all algorithms at common budgets."
        )


def _check_repeated(runs: Runs, found: Cells) -> None:
    """Something must be repeated, and rows of one run must be known as such."""
    study = runs.study
    if study.several_benchmarks:
        return
    if runs.seed is None and (found.n > 1).any():
        raise DataError(
            "Which rows belong to one run is not known, and with one benchmark the runs are the sample. Name the seed "
            "column: Runs(table, ..., seed=...)."
        )
    if study.count(*study.run) == study.count(*study.instance, runs.algorithm):
        raise DataError(
            "There is one benchmark and one run per algorithm, so the curve of a run cannot be distinguished from an "
            f"effect of {runs.budget}. Bring more seeds (they show what holds on this benchmark) or more benchmarks."
        )


def _ranges(runs: Runs, sets: dict[Any, set[Any]]) -> list[str]:
    if len({(min(own), max(own)) for own in sets.values()}) == 1:
        return []
    return [
        f"Algorithms have different ranges of {runs.budget} ({_ranges_text(sets)}); beyond its own range an "
        "algorithm's curve is extrapolated."
    ]


def _ranges_text(sets: dict[Any, set[Any]]) -> str:
    return listed([f"{a}: {format_level(min(s))} to {format_level(max(s))}" for a, s in sets.items()], most=4)


def _relative(coefficients: Array) -> bool:
    """Whether the mean over the algorithms has no course, as that of ranks: on most units, as runs may be missing."""
    whole = np.isfinite(coefficients).all(axis=(1, 2))
    if not whole.any() or coefficients.shape[1] < 2:
        return False
    size = float(np.abs(coefficients[whole]).max())
    flat = np.abs(coefficients[whole].mean(axis=1)).max(axis=1) <= _SAME * size
    return bool(2 * flat.sum() > len(coefficients) and size > 0)


# ------------------------------------------------------------------ forms


def _columns(budgets: tuple[Any, ...], form: str, axis: str | None) -> tuple[Columns, Columns | None]:
    """Orthonormal columns of the form, and those that it leaves out; None if it leaves out nothing."""
    n = len(budgets)
    position = {budget: i for i, budget in enumerate(budgets)}

    def table(rows: Array) -> Columns:
        return lambda wanted: rows[[position[budget] for budget in wanted]]

    if form == "categorical":
        return table(_complement(np.ones((n, 1)))), None
    assert axis is not None
    x = to_axis(np.array(budgets, dtype=float), axis)
    smooth = _smooth(x, axis, None if form in LINES else SPLINE_DF)
    own = np.column_stack([np.ones(n), smooth(budgets)])
    if n <= MOST_BUDGETS:
        rest = _complement(own)
        return smooth, table(rest) if rest.shape[1] else None
    return smooth, None if form == "spline" else _smooth(x, axis, SPLINE_DF, own)


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


def _complement(columns: Array) -> Array:
    """Orthonormal columns of everything that some columns leave out."""
    q = np.linalg.qr(columns, mode="complete")[0]
    return np.asarray(q[:, columns.shape[1] :])


def _beside(first: Columns, second: Columns) -> Columns:
    return lambda budgets: np.column_stack([first(budgets), second(budgets)])


def _step(budgets: tuple[Any, ...], axis: str | None) -> float:
    x = to_axis(np.array(budgets, dtype=float), str(axis))
    return float(np.linalg.norm(x - x.mean()))


# ------------------------------------------------------------------ coefficients


@dataclass(frozen=True, slots=True, eq=False)
class _ByRun:
    """Scores by run and budget, runs by cell (an algorithm on an instance, or a run), cells by unit and algorithm."""

    budgets: tuple[Any, ...]
    shape: tuple[int, int]
    y: Array
    budget: Codes
    run: Codes
    cell_of_run: Codes
    place_of_cell: Codes  # unit * algorithms + algorithm
    group: Codes

    def fitted(self, columns: Columns) -> Fitted:
        """Courses on the columns, with runs as blocks; conditions of a unit are averaged."""
        Z = columns(self.budgets)
        n_cells = len(self.place_of_cell)
        runs_of_cell = np.bincount(self.cell_of_run, minlength=n_cells)
        rows_of_run = np.bincount(self.run)
        level = np.bincount(self.run, self.y) / rows_of_run
        if (rows_of_run == len(self.budgets)).all():  # every run at every budget: Z'Z is the number of runs
            sums = np.zeros((n_cells, len(self.budgets)))
            np.add.at(sums, (self.cell_of_run[self.run], self.budget), self.y)
            coefficients = sums @ Z / runs_of_cell[:, None]
            place = np.zeros_like(coefficients)
        else:
            coefficients, place = self._incomplete(Z, level, rows_of_run, runs_of_cell)
        largest = np.zeros(n_cells)
        np.maximum.at(largest, self.cell_of_run[self.run], np.abs(self.y))
        rounding = _ROUNDING * np.sqrt(len(self.budgets)) * largest[:, None]
        coefficients = np.where(np.abs(coefficients) <= rounding, 0.0, coefficients)
        mean = np.bincount(self.cell_of_run, level) / runs_of_cell
        units, algorithms = self.shape
        return Fitted(
            columns,
            self._averaged(coefficients).reshape(units, algorithms, -1),
            self._averaged(mean[:, None]).reshape(units, algorithms),
            self._averaged(place).reshape(units, algorithms, -1),
        )

    def _incomplete(self, Z: Array, level: Array, rows_of_run: Codes, runs_of_cell: Codes) -> tuple[Array, Array]:
        """Least squares within runs, cell by cell."""
        n_runs, width = len(rows_of_run), Z.shape[1]
        places = np.zeros((n_runs, width))
        np.add.at(places, self.run, Z[self.budget])
        places /= rows_of_run[:, None]
        order = np.argsort(self.cell_of_run[self.run], kind="stable")
        ends = np.cumsum(np.bincount(self.cell_of_run[self.run], minlength=len(runs_of_cell)))
        coefficients = np.full((len(runs_of_cell), width), np.nan)
        for cell, rows in enumerate(np.split(order, ends[:-1])):
            run = self.run[rows]
            within = Z[self.budget[rows]] - places[run]
            found, _, rank, _ = np.linalg.lstsq(within, self.y[rows] - level[run], rcond=1e-10)
            if rank == width:
                coefficients[cell] = found
        place = np.zeros((len(runs_of_cell), width))
        np.add.at(place, self.cell_of_run, places)
        return coefficients, place / runs_of_cell[:, None]

    def _averaged(self, values: Array) -> Array:
        """Means over the cells of a unit and algorithm, NaN where there is none."""
        known = np.isfinite(values).all(axis=1)
        size = self.shape[0] * self.shape[1]
        sums = np.zeros((size, values.shape[1]))
        np.add.at(sums, self.place_of_cell[known], values[known])
        n = np.bincount(self.place_of_cell[known], minlength=size).astype(float)
        return np.asarray(sums / np.where(n > 0, n, np.nan)[:, None])


def _by_run(runs: Runs, found: Cells, algorithms: tuple[Any, ...], budgets: tuple[Any, ...]) -> _ByRun:
    study, frame = runs.study, found.frame

    def codes(table: pd.DataFrame, columns: tuple[str, ...]) -> Codes:
        return np.asarray(group_numbers(table, list(dict.fromkeys(columns))), dtype=np.intp)

    def first(code: Codes) -> Codes:
        return np.unique(code, return_index=True)[1]

    run = codes(frame, study.run)
    own = frame.iloc[first(run)]
    cell = codes(own, (*study.instance, runs.algorithm) if study.several_benchmarks else study.run)
    each = own.iloc[first(cell)]
    unit = codes(
        each,
        (str(runs.benchmark),) if study.several_benchmarks else (*study.instance, *((runs.seed,) if runs.seed else ())),
    )
    group = np.zeros(int(unit.max()) + 1, dtype=np.intp)
    if not study.several_benchmarks:
        group[unit] = codes(each, study.instance)
    index = {name: i for i, name in enumerate(algorithms)}
    position = {budget: i for i, budget in enumerate(budgets)}
    algorithm = np.array([index[name] for name in each[runs.algorithm]], dtype=np.intp)
    return _ByRun(
        budgets=budgets,
        shape=(int(unit.max()) + 1, len(algorithms)),
        y=found.mean,
        budget=np.array([position[budget] for budget in frame[runs.budget]], dtype=np.intp),
        run=run,
        cell_of_run=cell,
        place_of_cell=unit * len(algorithms) + algorithm,
        group=group,
    )
