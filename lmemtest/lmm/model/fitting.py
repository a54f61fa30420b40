"""`fit_lmm`: a formula and a table of runs -> a fitted linear mixed model."""

from __future__ import annotations

import dataclasses
import warnings
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
import pandas as pd

from lmemtest.core.caller import advice
from lmemtest.core.hints import guided
from lmemtest.core.replicates import LONG, in_words, is_part, say
from lmemtest.core.rounding import written
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import as_frame, check_columns, check_flag, check_number, check_positive_int
from lmemtest.core.words import listed
from lmemtest.errors import ArgumentError, ConvergenceWarning, DesignError, EstimationError
from lmemtest.lmm.cells import Cells, compressed
from lmemtest.lmm.engine.optimize import NO_RESIDUAL, Optimum, evaluation_cost, optimise
from lmemtest.lmm.engine.problem import Problem, build_problem
from lmemtest.lmm.engine.structure import PER_LEVEL
from lmemtest.lmm.formula import build_design, parse_formula
from lmemtest.lmm.formula.columns import refuse_unknown
from lmemtest.lmm.formula.design import Design, RandomDesign, held_by_fixed
from lmemtest.lmm.model.fit import SINGULAR, LmmFit
from lmemtest.lmm.scope import scope_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.core.arrays import Array, Index
    from lmemtest.lmm.formula.bars import ParsedFormula
    from lmemtest.lmm.scope import Scope


# Rows of a level below which it cannot have a residual variance of its own.
_FEWEST_ROWS = 2
# Variance of the scores of a level, over their mean square or the largest such variance, that is rounding error.
_CONSTANT = 1e-24
# Residual variance over that of the score, below which it has gone to zero where the effects reach every row (a search
# stops there for rounding).
_NO_RESIDUAL_SATURATED = 1e-7


MOST_RESTARTS = 1_000  # starts of one search: two optima that differ are found in tens of them
# Counted flops in a second, with gradient and curvature: 2.5e10 with 600 crossed columns, 6e10 with 4,500, on one core.
_RATE = 4e10
# Evaluations of a search beside one for each covariance parameter: 4 with 2 of them, 9 with 6.
_EVALUATIONS = 3


@guided
def fit_lmm(
    formula: str,
    data: Any,
    *,
    reml: bool = True,
    weights: str | None = None,
    dispersion: str | None = None,
    residual_variance: float | None = None,
    restarts: int | None = None,
) -> LmmFit:
    """Fit a linear mixed model.

    Parameters
    ----------
    formula : str
        In lme4's syntax, for instance ``"value ~ algorithm + (1 | benchmark) + (1 | benchmark:seed)"``. Column names
        with spaces or signs go between backticks.
    data : Runs or dataframe
        One row per run and budget; any dataframe that Narwhals reads.
    reml : bool
        Restricted maximum likelihood (default) or maximum likelihood.
    weights : str, optional
        Column of positive precision weights: a row's residual variance is ``scale / weight``.
    dispersion : str, optional
        Column whose levels have residual variances of their own, for instance the benchmark: scores of benchmarks
        on different scales then count by their precision. The ratios are estimated by the same likelihood.
    residual_variance : float > 0, optional
        Residual variance of a row of weight one, in squared units of the score, where it is known: it is held there
        instead of being estimated, has infinite degrees of freedom, and groups may have a single row. With
        ``residual_variance=1`` and weights ``1 / s**2`` for scores of known standard errors ``s`` the model is a
        meta-analysis.
    restarts : int, optional
        Further starting points of the search. By default two where they cost milliseconds and may help (few rows for
        the effects, or terms of several effects), and none where the mean squares of a balanced table solve it in
        closed form.

    Returns
    -------
    LmmFit

    Raises
    ------
    FormulaError, UnknownColumnError
        If the formula cannot be read, with the place.
    DataError
        If a used column holds missing or infinite values.
    DesignError
        If the data cannot identify the model.

    Warns
    -----
    ConvergenceWarning
        If the certificate of the search is not complete.

    Notes
    -----
    Rows that agree in every used column are one cell (count, mean, sum of squares), which is all that the Gaussian
    likelihood sees; the cost of the fit depends on the cells. A singular fit is a finding, not an error: see
    ``is_singular`` and ``notes``.

    References
    ----------
    Bates, Mächler, Bolker & Walker (2015). Fitting linear mixed-effects models using lme4. J. Stat. Softw. 67(1).
    doi:10.18637/jss.v067.i01

    Examples
    --------
    >>> import lmemtest as lt
    >>> table = {"y": [1.0, 2.1, 2.9, 4.2, 4.8, 6.3], "a": ["p", "q"] * 3, "g": [1, 1, 2, 2, 3, 3]}
    >>> fit = lt.fit_lmm("y ~ a + (1 | g)", table)
    >>> fit.params.round(4).to_dict()
    {'Intercept': 2.9, 'a[T.q]': 1.3}
    """
    return fit_parsed(
        parse_formula(formula),
        data,
        reml=reml,
        weights=weights,
        dispersion=dispersion,
        residual_variance=residual_variance,
        restarts=restarts,
    )


def fit_parsed(
    parsed: ParsedFormula,
    data: Any,
    *,
    reml: bool = True,
    weights: str | None = None,
    dispersion: str | None = None,
    residual_variance: float | None = None,
    restarts: int | None = None,
) -> LmmFit:
    """`fit_lmm` of a formula that has been read, or was put together from terms."""
    reml = check_flag(reml, "reml")
    if restarts is not None:
        check_positive_int(restarts, "restarts", minimum=0, maximum=MOST_RESTARTS)
    if weights is not None and not isinstance(weights, str):
        raise ArgumentError(f"weights must name a column, got {weights!r}. Add the weights to the table as a column.")
    table, scope, names = table_for(parsed, data)
    by = list(parsed.columns)
    if residual_variance is not None:
        residual_variance = check_number(residual_variance, "residual_variance", low=0, open="low")
        if dispersion is not None:
            raise ArgumentError(
                f"residual_variance={residual_variance:g} holds one residual variance, and dispersion={dispersion!r} "
                "asks for one to be estimated for each of its levels. Leave one of them out."
            )
    if dispersion is not None:
        if not isinstance(dispersion, str):
            raise ArgumentError(
                f"dispersion must name one column, got {dispersion!r}. For combinations of columns add a column that "
                "holds them."
            )
        check_columns(dispersion, names, argument="dispersion")
        if dispersion == parsed.response:
            raise ArgumentError(
                f"dispersion='{dispersion}' is the score itself. Name a column whose groups scatter differently, such "
                "as the benchmark."
            )
        by = list(dict.fromkeys([*by, dispersion]))
    if weights is not None:
        check_columns(weights, names, argument="weights")
    cells = compressed(
        table, tuple(by), score=parsed.response, transform=parsed.response_transform, weights=weights, scope=scope
    )
    design = build_design(parsed, cells.columns, cells.n)
    return fit_cells(
        parsed.text,
        design,
        cells,
        data=data.copy(deep=False) if isinstance(data, pd.DataFrame) else data,  # what is assigned later is not ours
        weights=weights,
        dispersion=dispersion,
        residual_variance=residual_variance,
        reml=bool(reml),
        start=None,
        restarts=restarts,
    )


def table_for(parsed: ParsedFormula, data: Any) -> tuple[Any, Scope | None, list[str]]:
    """The table, what it tells of its columns, and their names, which have all that the formula names."""
    table = as_frame(data)
    names = table.columns if isinstance(table, nw.DataFrame) else table.collect_schema().names()
    scope = scope_of(data)
    if scope is not None:
        scope.check_response(parsed.response)
    refuse_unknown(parsed, names)
    return table, scope, names


def fit_cells(
    formula: str,
    design: Design,
    cells: Cells,
    *,
    data: Any,
    weights: str | None,
    dispersion: str | None,
    reml: bool,
    start: Array | None,
    restarts: int | None,
    residual_variance: float | None = None,
) -> LmmFit:
    """Fit a design to cells; ``start`` is a theta on the user's scale."""
    held = residual_variance is not None
    refuse_unidentified(design, cells, residual_known=held)
    stratum = None if dispersion is None else _checked_strata(cells, dispersion)
    try:
        with one_blas_thread():
            problem = build_problem(
                design.engine_terms,
                design.distinct,
                cells.mean - design.offset,
                rows=design.row,
                n=cells.n,
                weight=cells.weight,
                ss=cells.ss,
                reml=reml,
                stratum=stratum,
                residual_variance=residual_variance,
            )
            if problem.unbounded:
                why = "the likelihood grows without limit as the residual variance goes to zero"
                raise _no_residual(design, cells, why)
            white = None if start is None else problem.point(problem.to_white(start))
            tell_long_search(problem, formula, restarts)
            optim = optimise(problem, start=white, restarts=restarts)
    except DesignError:
        _refuse_same_order(design, cells, data)
        raise
    except np.linalg.LinAlgError as error:
        if not held and any(_constant_within(cells, term.codes) for term in design.random):
            raise _explained() from None
        raise EstimationError(
            f"'{formula}' could not be fitted: {error}. Look for columns on wildly different scales, "
            "or for random effects that copy each other."
        ) from None
    if not held and _explained_exactly(problem, optim, cells, stratum):
        raise _explained()
    if problem.saturated and optim.criterion.sigma2 < _NO_RESIDUAL_SATURATED:
        raise _no_residual(design, cells, "the residual variance is estimated as zero")
    fit = LmmFit(
        formula=formula,
        reml=reml,
        design=design,
        cells=cells,
        data=data,
        weights=weights,
        dispersion=dispersion,
        residual_variance=residual_variance,
        problem=problem,
        optim=optim,
        notes=(),
    )
    notes = notes_of(fit)
    if problem.saturated:
        notes = (
            f"{_every_row(design, cells)}: only the shape of the random effects distinguishes the residual variance "
            "from theirs, and standard errors rest on the model. Add repeated runs, or a simpler random part.",
            *notes,
        )
    return dataclasses.replace(fit, notes=notes)


def with_terms(fit: LmmFit, parsed: ParsedFormula) -> LmmFit:
    """The model with other random terms (of the same response, without new columns) on the cells of the fit."""
    return with_design(fit, build_design(parsed, fit.cells.columns, fit.cells.n))


def with_cells(fit: LmmFit, cells: Cells | None, *, reml: bool | None, start: Array | None = None) -> LmmFit:
    """The model of a fit again, with other cells or by the other likelihood."""
    design = fit.design
    if cells is not None and cells.columns is not fit.cells.columns:
        design = build_design(design.parsed, cells.columns, cells.n)
    return with_design(fit, design, cells=cells, reml=reml, start=start)


def with_design(
    fit: LmmFit,
    design: Design,
    *,
    cells: Cells | None = None,
    reml: bool | None = None,
    start: Array | None = None,
) -> LmmFit:
    """The model of a fit again, with another design, and other cells or the other likelihood.

    A `start`, a theta of the random terms, is the only one of the search for other cells or another design.
    """
    other, cells = cells is not None or design is not fit.design, fit.cells if cells is None else cells
    return fit_cells(
        fit.formula if design.parsed is fit.design.parsed else str(design.parsed),
        design,
        cells,
        data=fit.data,
        weights=fit.weights,
        dispersion=fit.dispersion,
        residual_variance=fit.residual_variance,
        reml=fit.reml if reml is None else reml,
        start=start,
        restarts=0 if other and start is not None else None,
    )


def fitted_quietly(parsed: ParsedFormula, data: Any, dispersion: str | None = None) -> LmmFit:
    """The fit by REML; what would be a warning is in its notes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return fit_parsed(parsed, data, dispersion=dispersion)


def notes_of(fit: LmmFit) -> tuple[str, ...]:
    """What was dropped, held or singular, and whether the search ended."""
    notes = []
    dropped = np.setdiff1d(np.arange(len(fit.design.x_names)), fit.problem.kept)
    if len(dropped):
        tied = np.setdiff1d(np.flatnonzero(~fit.estimable(np.eye(len(fit.design.x_names)))), dropped)
        one = len(dropped) == 1
        more = ""
        if len(tied):
            also = listed(fit.design.x_names[j] for j in tied)
            more = f", so {also} {'has no estimate of its' if len(tied) == 1 else 'have no estimates of their'} own"
        notes.append(
            f"The fixed part is rank-deficient: {listed(fit.design.x_names[j] for j in dropped)} "
            f"{'depends' if one else 'depend'} on earlier columns and {'was' if one else 'were'} dropped{more}. Means "
            f"that need {'it' if one else 'them'} are not estimable."
        )
    if fit.dispersion is not None and len(fit.residual_variances) == 1:
        notes.append(f"The column {fit.dispersion} has one level, so there is one residual variance.")
    compared = None if fit.scope is None else fit.scope.compared
    if compared in fit.design.numeric:
        notes.append(
            f"What is compared are numbers ({compared}), and the formula takes them for a covariate with one slope. "
            f"Write C({compared}) to compare them as names."
        )
    held = {term.label: held_by_fixed(fit.design, term) for term in fit.design.random}
    for reason in filter(None, held.values()):
        variances = (
            "The variance shown is arbitrary, and with it the errors of the means of its groups"
            if fit.reml
            else "Maximum likelihood takes its variance for zero, whatever the data"
        )
        start = reason.replace("the random effect", "The random effect", 1) if reason.startswith("the ") else reason
        notes.append(f"{start}. {variances}; leave the term out.")
    for label in fit.singular_terms:
        if held[label]:
            continue
        i = next(i for i, term in enumerate(fit.design.random) if term.label == label)
        term, roots = fit.design.random[i], fit.problem.unpack(fit.optim.theta)[i].diagonal()
        zero = [name for name, root in zip(term.names, roots, strict=True) if root < SINGULAR and term.diagonal]
        if zero:
            notes.append(
                f"{label}: the variance of {listed(zero)} is estimated as zero, so the data show no more variation of "
                f"{'this level' if len(zero) == 1 else 'these levels'} between groups than the other terms hold."
            )
            continue
        notes.append(
            f"Singular fit: {label} has a variance of zero or a correlation of one, so the data hold less variation "
            "of this kind than the model allows for. The estimates stand; a simpler term gives the same fit."
        )
    if not fit.optim.converged:
        warnings.warn(fit.unfinished, ConvergenceWarning, stacklevel=4)
        notes.append(fit.unfinished)
    return tuple(notes)


# ------------------------------------------------------------------------------------------------- what refuses a fit


def refuse_unidentified(design: Design, cells: Cells, *, residual_known: bool) -> None:
    """Refuse random effects whose variance the rows cannot show, or cannot show beside a residual's that is unknown."""
    n = int(cells.n.sum())
    for term in filter(lambda term: term.diagonal, design.random):
        check_variances(design, term, n)
    for term in design.random:
        levels, k = term.n_levels, len(term.names)
        if levels < 2:
            raise DesignError(
                f"the random effect {term.label} has one level, so its variance cannot be estimated. "
                f"Leave it out, or add data from several levels of '{term.group}'."
            )
        if levels * k >= n and not (term.diagonal or residual_known):
            raise DesignError(
                f"the random effect {term.label} has {levels:,} levels x {k} effects = {levels * k:,} columns for "
                f"{n:,} rows, so it cannot be distinguished from the residual. Leave it out, simplify it, or add "
                "repeated runs."
            )


def _no_residual(design: Design, cells: Cells, why: str) -> DesignError:
    return DesignError(
        f"{_every_row(design, cells)}, and {why}, so there is nothing to judge differences by. Leave out a random "
        "effect or a fixed one, or add repeated runs."
    )


def _every_row(design: Design, cells: Cells) -> str:
    return (
        f"The fixed effects and {listed(term.label for term in design.random)} together fit every one of the "
        f"{len(cells.n):,} rows exactly"
    )


def _checked_strata(cells: Cells, dispersion: str) -> Index | None:
    """Codes of the levels with residual variances of their own; None where there is one level only."""
    codes, levels = cells.strata(dispersion)
    if len(levels) == 1:
        return None
    rows = np.bincount(codes, cells.n)
    few = np.flatnonzero(rows < _FEWEST_ROWS)
    if len(few):
        apart = advice("argument", name="dispersion")
        raise DesignError(
            f"{dispersion}={levels[few[0]]!r} has {int(rows[few[0]])} "
            f"row{'' if rows[few[0]] == 1 else 's'}{f', like {len(few) - 1:,} other levels' if len(few) > 1 else ''}: "
            f"too few for a residual variance of its own. Give {apart} a column with at least {_FEWEST_ROWS} rows "
            "per level."
        )
    mean, spread = _mean_and_spread(cells, codes)
    constant = np.flatnonzero(spread <= _CONSTANT * np.maximum(mean**2, spread.max()))
    if len(constant):
        raise DesignError(
            f"{dispersion}={levels[constant[0]]!r} has no residual variation: all its "
            f"{int(rows[constant[0]]):,} scores are {written(mean[constant[0]], '.6g')}. Leave its rows out, or use "
            "one residual variance."
        )
    return codes


def _mean_and_spread(cells: Cells, codes: Index) -> tuple[Array, Array]:
    """Mean and variance of the scores at each level."""
    rows = np.bincount(codes, cells.n)
    mean = np.bincount(codes, cells.n * cells.mean) / rows
    return mean, np.bincount(codes, cells.n * (cells.mean - mean[codes]) ** 2 + cells.ss) / rows


def check_variances(design: Design, term: RandomDesign, n: int) -> None:
    """Refuse variances of single levels that the rows cannot show, by a `DesignError`."""
    seen = np.zeros((term.n_levels, len(term.names)), dtype=bool)
    np.logical_or.at(seen, term.codes, term.basis > 0)
    few = [f"{name} ({count})" for name, count in zip(term.names, seen.sum(axis=0), strict=True) if count < 2]
    if few:
        raise DesignError(
            f"{term.label} has a variance for each level, which needs at least two levels of {term.group} with rows of "
            f"it; {listed(few)} {'has' if len(few) == 1 else 'have'} fewer. Leave those rows out, or take one variance "
            "for all levels."
        )
    if seen.sum() >= n:
        apart = advice("argument", name="dispersion")
        raise DesignError(
            f"{term.label} has {seen.sum():,} effects for {n:,} rows, so its variances cannot be distinguished "
            f"from the residual. Add repeated runs, or give the residual a variance for each level with {apart}."
        )
    for other in design.random:
        if one_variance(other.names, other.codes, term, term.basis, term.codes):
            raise DesignError(
                f"{other.label} and {term.label} are about the same groups: one variance for all levels and one for "
                f"each, which the data cannot separate. Leave out {other.label}."
            )


def one_variance(
    names: tuple[str, ...], codes: Index, diagonal: RandomDesign, basis: Array, diagonal_codes: Index
) -> bool:
    """Whether a term is the one variance of all levels, ``(1 | g:f)``, that `diag(f | g)` has a variance each of."""
    if not diagonal.diagonal or names != ("Intercept",):
        return False
    cells = diagonal_codes.astype(np.int64) * basis.shape[1] + basis.argmax(axis=1)
    return same_partition(codes, cells)


def same_partition(first: NDArray[Any], second: NDArray[Any]) -> bool:
    """Do two codings split the rows in the same way, whatever the groups are called?"""
    if first.min() < 0 or second.min() < 0:
        return False
    joint = first.astype(np.int64) * (int(second.max()) + 1) + second
    n_joint = len(np.unique(joint))
    return n_joint == len(np.unique(first)) == len(np.unique(second))


def _refuse_same_order(design: Design, cells: Cells, data: Any) -> None:
    """Refuse ranks that the fixed part explains by what that means: the order is the same everywhere."""
    scope = scope_of(data)
    if scope is None or scope.kind.kind != "ranks":
        return
    of_row = np.empty(len(design.distinct))
    of_row[design.row] = cells.mean
    if not cells.ss.any() and np.array_equal(of_row[design.row], cells.mean):
        raise DesignError(
            f"the levels of {scope.compared!r} have the same ranks wherever they are compared: their order never "
            "changes, so ranks do not vary, and a model of them has no scatter to judge differences by. An exact test "
            f"needs none: {advice('rank_by', test='wilcoxon')}. Or compare the scores behind the ranks, which say by "
            "how much one is ahead."
        )


def _constant_within(cells: Cells, codes: Index) -> bool:
    """Whether rows that share a group have identical scores, as far as the scores vary at all."""
    within = np.bincount(codes, cells.n) @ _mean_and_spread(cells, codes)[1]
    return bool(within <= NO_RESIDUAL * len(cells.n) * _mean_and_spread(cells, np.zeros_like(codes))[1][0])


def _explained() -> DesignError:
    return DesignError(
        "the model explains the score exactly: no residual variance is left, so there is nothing to judge "
        "differences by. Rows that share their groups have identical scores; leave out the finest random effect, "
        "or analyse one row per group."
    )


def _explained_exactly(problem: Problem, optim: Optimum, cells: Cells, stratum: Index | None) -> bool:
    """Whether nothing is left to chance; with a variance for each level, at most of the levels."""
    if stratum is None:
        return optim.criterion.sigma2 < NO_RESIDUAL
    left = problem.residual_variances(optim.theta, optim.criterion) / _mean_and_spread(cells, stratum)[1]
    return bool(np.median(left) < NO_RESIDUAL)


# ------------------------------------------------------------------------------------------- how long the search takes


def search_seconds(problem: Problem, restarts: int | None = None) -> float:
    """Rough seconds of a search; none where the mean squares of a balanced table have the optimum or its criterion."""
    if problem.anova is not None or not problem.n_free:
        return 0.0
    evaluations = (_EVALUATIONS + problem.n_theta) * (1 + (restarts or 0))
    system = problem.searched.system
    led = [s.block.q * (len(system.B) + sum(e.shape[2] for e in s.E.values())) ** 2 for s in system.chain if s.E]
    return evaluations * (evaluation_cost(problem.searched) + PER_LEVEL * sum(led)) / _RATE


def tell_long_search(problem: Problem, formula: str, restarts: int | None = None) -> None:
    """Say so where a search will take more than half a minute, unless it is one of many."""
    if is_part() or (seconds := search_seconds(problem, restarts)) <= LONG:
        return
    columns = sum(k * n for k, n in zip(problem.sizes, problem.n_levels, strict=True))
    say(
        f"The search for '{formula}' may take {in_words(seconds)}: "
        f"it is for {columns:,} columns of random effects, {problem.searched.system.t:,} of them crossed. Less with "
        "fewer levels, or with intercepts in place of slopes, such as (1 | g) for (x | g)."
    )
