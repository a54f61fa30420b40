"""`diagnose`: every check of a fitted model in one table, with what to do."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from lmemtest.core.replicates import Executor, check_replicates
from lmemtest.core.result import Answer, Result, result
from lmemtest.core.threads import one_blas_thread
from lmemtest.core.validate import check_names, check_positive_int, resolve_rng
from lmemtest.core.verdicts import Finding, severities_counted, table_of, worst
from lmemtest.errors import ArgumentError, DesignError, LmemtestError
from lmemtest.lmm.diagnostics import normality, scale
from lmemtest.lmm.diagnostics.advantages import advantages
from lmemtest.lmm.diagnostics.draws import HeldFit, Parts, measure_draws, reach
from lmemtest.lmm.diagnostics.explained_variance import shares_of
from lmemtest.lmm.diagnostics.influence import group_columns, influence
from lmemtest.lmm.diagnostics.left_out import thinned
from lmemtest.lmm.diagnostics.scale import Column
from lmemtest.lmm.diagnostics.scores import Rows, bounds, rows_of, score_of
from lmemtest.lmm.diagnostics.structure import collinearity, groups
from lmemtest.lmm.means.reference_grid import check_specs
from lmemtest.lmm.model.given import check_fit, check_linear

if TYPE_CHECKING:
    from lmemtest.core.arrays import Array
    from lmemtest.lmm.model import LmmFit


# Simulated tables: 199 resolve p-values to 0.005; above 20,000 values 99 do, to stay within a second or two.
_TABLES, _TABLES_OF_LARGE, _LARGE = 199, 99, 20_000
# With fewer residual degrees of freedom residuals have hardly a shape.
_FEWEST_DF = 3
# Leaving out each of more levels in turn takes long, and no single one of many decides.
MOST_LEFT_OUT = 200
_FEWEST_LEFT_OUT = 3


@result
class Diagnosis(Result):
    """Every check of one fit.

    Attributes
    ----------
    checks : tuple of Finding
        The lines of the table.
    normality, bounds, groups, collinearity, explained : Answer
        Shapes of residuals and random effects; scores on a floor or ceiling; levels, boundaries and the end of the
        search; variance inflation of the fixed terms; R2 and ICC.
    scale : tuple of Answer
        Residual scale by the levels of each column, and along the fitted value.
    advantages : Answer or None
        How much each algorithm varies between benchmarks, where the model has one variance for all.
    influence : tuple of Answer
        What each level of a group does to the conclusions.
    residuals, fitted : (m,) float
        Residuals over their standard deviation by the model, of rows or (where rows are out of reach) of cells, and
        predictions with the random effects; where `notes` say so, of some repetitions.
    formula, n_draws : str, int
        The model, and the tables drawn from the fit.
    notes : tuple of str
    """

    figure = "diagnosis_plot"

    checks: tuple[Finding, ...]
    normality: Answer
    scale: tuple[Answer, ...]
    advantages: Answer | None
    explained: Answer
    collinearity: Answer
    groups: Answer
    bounds: Answer
    influence: tuple[Answer, ...]
    residuals: Array
    fitted: Array
    formula: str
    n_draws: int
    notes: tuple[str, ...] = ()

    @property
    def severity(self) -> str:
        """The most serious severity of all checks."""
        return worst(check.severity for check in self.checks)

    def table(self) -> pd.DataFrame:
        """One row per check: ``check``, ``subject``, ``found``, ``value``, ``p_value``, ``severity``, ``advice``."""
        return table_of(self.checks)

    @property
    def title(self) -> str:
        return "Diagnosis"

    @property
    def facts(self) -> tuple[str, ...]:
        summary = severities_counted(self.checks)
        fact = f"{self.formula}: {summary}. p-values are against {self.n_draws:,} tables drawn from the fitted model."
        if self.advantages is not None and np.isfinite(self.advantages.p_value):
            fact += f" That of the advantages is against exchanges of {self.advantages.algorithm} within groups."
        return (fact,)

    def shown(self) -> pd.DataFrame:
        return self.table().drop(columns="value")


@one_blas_thread()
def diagnose(
    fit: LmmFit,
    *,
    influence: bool | str | Sequence[str] = True,
    specs: str | Sequence[str] | None = None,
    n_draws: int | None = None,
    rng: int | np.random.Generator | None = None,
    n_jobs: int = 1,
    executor: Executor | None = None,
    progress: bool | None = None,
) -> Diagnosis:
    """Check everything that the conclusions of a fit rest on.

    Parameters
    ----------
    fit : LmmFit
        From `fit_lmm`.
    influence : bool, str or sequence of str
        Groups whose levels are left out in turn: by default every column with 3 to 200 levels that is a random effect
        by itself; names of groups, or False to skip this.
    specs : str or sequence of str, optional
        Factors whose means the influence is judged by; see `influence`.
    n_draws : int >= 99, optional
        Tables drawn from the fit to judge by. By default 199, and 99 for more than 20,000 values.
    rng : int, numpy.random.Generator or None
        Source of randomness.
    n_jobs, executor, progress : int, object with a ``map``, bool
        Processes (-1: one per processor), or what computes instead, such as a client of Dask; a progress bar, by
        default on a terminal after two seconds.

    Returns
    -------
    Diagnosis
        One line per check with the severity "fine", "note" (know it and go on) or "warning" (the conclusions may be
        wrong) and what to do; the parts as attributes.

    Raises
    ------
    ArgumentError
        If `fit` is not a fit, or an option breaks its rule.
    DesignError
        If the residuals have fewer than three degrees of freedom.

    Notes
    -----
    Residuals and random effects are compared with those of tables drawn from the fitted model, at the same variance
    parameters, because under a true model residuals are correlated and predicted effects are shrunk. A check of shape
    or scale warns only if at most 1 % of these tables look as bad *and* the size matters for tests of means. The
    spread of the advantages of the algorithms is compared with exchanges of algorithms within each benchmark; it warns
    at 5 % where it differs by a factor of two, since every comparison rests on it and the remedy costs little.

    Of more than 40,000 cells, shapes, scales and the spread of the advantages, observed and simulated, are those of
    the model fitted to a random sample of the levels of its largest group, whole benchmarks for instance, as many as
    make 40,000; where these were fewer than 500 levels, and of more than 200,000 cells, to whole repetitions at equal
    steps, as many as make 200,000. `notes` say which and how many.

    References
    ----------
    Schielzeth et al. (2020). Robustness of linear mixed-effects models to violations of distributional assumptions.
    Methods Ecol. Evol. 11. doi:10.1111/2041-210X.13434

    Brown & Forsythe (1974). Robust tests for the equality of variances. J. Am. Stat. Assoc. 69.
    doi:10.1080/01621459.1974.10482955

    Layard (1973). Robust large-sample tests for homogeneity of variances. J. Am. Stat. Assoc. 68, 195-198.
    doi:10.1080/01621459.1973.10481363

    Myllymäki, Mrkvička, Grabarnik, Seijo & Hahn (2017). Global envelope tests for spatial processes. J. R. Stat. Soc.
    B 79. doi:10.1111/rssb.12172

    Examples
    --------
    >>> import lmemtest as lt
    >>> from lmemtest.lmm.diagnostics import diagnose
    >>> runs = lt.datasets.load_hpo_runs().filter(budget=4)
    >>> found = diagnose(lt.fit_lmm("loss ~ algorithm + (1|benchmark)", runs), influence=False, rng=1)
    >>> list(found.to_frame().columns)
    ['check', 'subject', 'found', 'value', 'p_value', 'severity', 'advice']
    >>> round(found.explained.icc_adjusted, 2)
    0.86
    """
    check_fit(fit, "fit")
    check_linear(fit, "lmm.diagnose()", "Write fit.diagnose().")
    check_replicates(rng=rng, n_jobs=n_jobs, executor=executor, progress=progress)
    if specs is not None:
        check_specs(fit, check_names(specs, "specs"), (), {})
    left_out = _left_out(fit, influence)
    if fit.nobs - fit.rank < _FEWEST_DF:
        raise DesignError(
            f"fit has {fit.nobs:,} rows and {fit.rank} fixed effects, which leaves {fit.nobs - fit.rank} residual "
            f"degrees of freedom; a diagnosis needs at least {_FEWEST_DF}. Add more runs, or use fewer fixed effects."
        )
    all_rows = rows_of(fit)
    score = score_of(fit, all_rows)
    generator = resolve_rng(rng)
    few, left, thinning = thinned(fit, generator)
    rows = all_rows.part(left, few.cells.n) if thinning else all_rows
    if n_draws is None:
        n_draws = _TABLES_OF_LARGE if max(len(rows.cell), len(few.cells.n)) > _LARGE else _TABLES
    check_positive_int(n_draws, "n_draws", minimum=99)

    held = HeldFit.of(few, rows)
    columns = scale.scaled_columns(few, rows)
    observed = held.observed(few)
    measure = partial(_measure, columns, rows)
    draws = measure_draws(
        held, measure, int(n_draws), rng=generator, n_jobs=n_jobs, executor=executor, progress=progress
    )
    shapes, sums = zip(*draws, strict=True)
    of_shapes = normality.judge(few, rows, observed, list(shapes), reach(few), score)
    scales = tuple(
        scale.judge(few, column, sums_of_column, list(drawn), score, single=rows.single)
        for column, sums_of_column, *drawn in zip(columns, measure(observed)[1], *sums, strict=True)
    )
    scales = scale.settle(scales)
    spread = advantages(few, rng=generator)
    of_shapes = normality.settle(of_shapes, spread is not None and spread.severity in ("note", "warning"))
    ends, carriers = bounds(fit, all_rows, score), groups(fit)
    inflation, shares = collinearity(fit), shares_of(fit)
    influences, influence_checks = _influences(fit, left_out, specs, n_jobs, executor, progress)
    parts = [*of_shapes, *scales, *([] if spread is None else [spread]), ends]
    notes = [thinning] * bool(thinning)
    if not rows.single:
        notes.append(
            f"{rows.hidden:,} of {few.nobs:,} rows are only known through the means of their cells; normality and "
            "scale are judged by these means and the sums of squares within cells."
        )
    return Diagnosis(
        checks=(
            *(part.check for part in parts),
            *influence_checks,
            *carriers.checks,
            inflation.check,
            shares.check,
        ),
        normality=normality.normality(of_shapes, len(draws), rows.hidden),
        scale=scales,
        advantages=spread,
        explained=shares,
        collinearity=inflation,
        groups=carriers,
        bounds=ends,
        influence=influences,
        residuals=observed.z,
        fitted=observed.fitted[rows.cell],
        formula=fit.label,
        n_draws=int(n_draws),
        notes=tuple(notes),
    )


def _measure(columns: list[Column], rows: Rows, parts: Parts) -> tuple[list[normality.Moments], list[scale.Sums]]:
    """What is kept of a simulated table."""
    return normality.measure_parts(parts), scale.measure_parts(parts, columns, rows)


# ---------------------------------------------------------------------- influence


def _left_out(fit: LmmFit, influence: bool | str | Sequence[str]) -> list[str]:
    """Groups whose levels are left out in turn."""
    single = {
        term.group: len(term.levels)
        for term, bar in zip(fit.design.random, fit.design.parsed.bars, strict=True)
        if len(bar.groups) == 1
    }
    if isinstance(influence, bool):
        wanted = [g for g, levels in single.items() if _FEWEST_LEFT_OUT <= levels <= MOST_LEFT_OUT]
        return wanted if influence else []
    if not isinstance(influence, (str, Sequence)):
        raise ArgumentError(f"influence must be True, False or names of groups, got {influence!r}.")
    names = [influence] if isinstance(influence, str) else list(influence)
    for name in names:
        group_columns(fit, name, argument="influence")
    return names


def _influences(
    fit: LmmFit,
    names: list[str],
    specs: str | Sequence[str] | None,
    n_jobs: int,
    executor: Executor | None,
    progress: bool | None,
) -> tuple[tuple[Answer, ...], list[Finding]]:
    results, lines = [], []
    for name in names:
        try:
            results.append(influence(fit, name, specs=specs, n_jobs=n_jobs, executor=executor, progress=progress))
            lines.append(results[-1].check)
        except LmemtestError as error:
            advice, subject = str(error), f"of each {name}"
            lines.append(Finding("note", "influence", "not computed", advice, subject=subject))
    return tuple(results), lines
