"""`diagnose`: every check of a fitted model in one table, with what to do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from lmemtest._replicates import check_replicates
from lmemtest._rounding import written
from lmemtest._table import Tabular
from lmemtest._threads import one_blas_thread
from lmemtest._validate import check_columns, check_names, check_positive_int, resolve_rng
from lmemtest.errors import ArgumentError, DesignError, LmemtestError
from lmemtest.inference.diagnostics import normality, scale
from lmemtest.inference.diagnostics.advantages import Advantages, advantages
from lmemtest.inference.diagnostics.ceilings import Bounds, bounds
from lmemtest.inference.diagnostics.conditional import HeldFit, Parts, measure_draws, reach
from lmemtest.inference.diagnostics.grouping import Groups, groups
from lmemtest.inference.diagnostics.inflation import Collinearity, collinearity
from lmemtest.inference.diagnostics.normality import Normality
from lmemtest.inference.diagnostics.response import response_of
from lmemtest.inference.diagnostics.rows import Rows, rows_of
from lmemtest.inference.diagnostics.scale import Column, ScaleByLevel
from lmemtest.inference.diagnostics.shares import Explained, explained_variance
from lmemtest.inference.diagnostics.verdict import VERDICTS, Check, worst
from lmemtest.inference.means.reference_grid import check_fit, check_specs

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from lmemtest._table import ResultTable
    from lmemtest.inference.diagnostics.influence import InfluenceResult
    from lmemtest.model import LmmFit

    Array = NDArray[np.float64]

# Simulated tables: 199 resolve p-values to 0.005; above 20,000 values 99 do, to stay within a second or two.
_TABLES, _TABLES_OF_LARGE, _LARGE = 199, 99, 20_000
# With fewer residual degrees of freedom residuals have hardly a shape.
_FEWEST_DF = 3
# Leaving out each of more levels in turn takes long, and no single one of many decides.
MOST_LEFT_OUT = 200
_FEWEST_LEFT_OUT = 3


@dataclass(repr=False, frozen=True, slots=True, kw_only=True, eq=False)
class Diagnosis(Tabular):
    """Every check of one fit.

    Attributes
    ----------
    checks : tuple of Check
        The lines of the table.
    normality : Normality
        Shapes of the residuals and of the random effects.
    scale : tuple of ScaleByLevel
        Residual scale by the levels of each column, and along the fitted value.
    advantages : Advantages or None
        How much each algorithm varies between benchmarks, where the model has one variance for all.
    explained : Explained
        R2 and ICC.
    collinearity : Collinearity
        Variance inflation of the fixed terms.
    groups : Groups
        Levels, boundaries, the end of the search.
    bounds : Bounds
        Scores on a floor or ceiling.
    influence : tuple of InfluenceResult
        What each level of a group does to the conclusions.
    residuals : (m,) float
        Residuals over their standard deviation by the model, of rows or (where rows are out of reach) of cells.
    fitted : (m,) float
        Prediction of each, with the random effects.
    formula : str
        The model.
    n_sim : int
        Tables drawn from the fit.
    notes : tuple of str
    """

    checks: tuple[Check, ...]
    normality: Normality
    scale: tuple[ScaleByLevel, ...]
    advantages: Advantages | None
    explained: Explained
    collinearity: Collinearity
    groups: Groups
    bounds: Bounds
    influence: tuple[InfluenceResult, ...]
    residuals: Array
    fitted: Array
    formula: str
    n_sim: int
    notes: tuple[str, ...] = ()

    @property
    def verdict(self) -> str:
        """The most serious verdict of all checks."""
        return worst(check.verdict for check in self.checks)

    def to_frame(self) -> pd.DataFrame:
        """One row per check.

        Returns
        -------
        pandas.DataFrame
            ``check``, ``subject``, ``found``, ``value`` (the number behind the verdict), ``p_value`` (NaN where nothing
            is tested), ``verdict`` ("fine", "look" or "act"), ``advice``.
        """
        import pandas as pd

        rows = [(c.check, c.subject, c.found, c.value, c.p_value, c.verdict, c.sentence) for c in self.checks]
        return pd.DataFrame(rows, columns=["check", "subject", "found", "value", "p_value", "verdict", "advice"])

    def to_table(self) -> ResultTable:
        """The checks as a table."""
        from lmemtest._table import ResultTable

        frame = self.to_frame().drop(columns="value")
        count = {verdict: int((frame["verdict"] == verdict).sum()) for verdict in reversed(VERDICTS)}
        summary = ", ".join(f"{number} {verdict}" for verdict, number in count.items() if number)
        note = f"{self.formula}: {summary}. p-values are against {self.n_sim:,} tables drawn from the fitted model."
        if self.advantages is not None and self.advantages.judged:
            note += f" That of the advantages is against exchanges of {self.advantages.algorithm} within groups."
        return ResultTable("Diagnosis", frame, (note, *self.notes))


@one_blas_thread()
def diagnose(
    fit: LmmFit,
    *,
    influence: bool | str | Sequence[str] = True,
    specs: str | Sequence[str] | None = None,
    n_sim: int | None = None,
    rng: int | np.random.Generator | None = None,
    n_jobs: int = 1,
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
    n_sim : int >= 99, optional
        Tables drawn from the fit to judge by. By default 199, and 99 for more than 20,000 values.
    rng : int, numpy.random.Generator or None
        Source of randomness.
    n_jobs : int
        Processes; -1 for one per processor.
    progress : bool, optional
        Progress bar on standard error for what takes more than two seconds; by default on a terminal.

    Returns
    -------
    Diagnosis
        One line per check with the verdict "fine", "look" (know it and go on) or "act" (the conclusions may be wrong)
        and what to do; the parts as attributes.

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
    or scale says "act" only if at most 1 % of these tables look as bad *and* the size matters for tests of means. The
    spread of the advantages of the algorithms is compared with exchanges of algorithms within each benchmark; it says
    "act" at 5 % where it differs by a factor of two, since every comparison rests on it and the remedy costs little.

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
    >>> from lmemtest.inference.diagnostics import diagnose
    >>> runs = lt.datasets.load_hpo_runs().filter(budget=4)
    >>> found = diagnose(lt.fit_lmm("loss ~ algorithm + (1|benchmark)", runs), influence=False, rng=1)
    >>> list(found.to_frame().columns)
    ['check', 'subject', 'found', 'value', 'p_value', 'verdict', 'advice']
    >>> round(found.explained.icc_adjusted, 2)
    0.86
    """
    check_fit(fit, "fit")
    check_replicates(rng=rng, n_jobs=n_jobs, progress=progress)
    if specs is not None:
        check_specs(fit, check_names(specs, "specs"), (), {})
    left_out = _left_out(fit, influence)
    if fit.nobs - fit.rank < _FEWEST_DF:
        raise DesignError(
            f"fit has {fit.nobs:,} rows and {fit.rank} fixed effects, which leaves {fit.nobs - fit.rank} residual "
            f"degrees of freedom; a diagnosis needs at least {_FEWEST_DF}. Bring more runs, or use fewer fixed effects."
        )
    rows = rows_of(fit)
    response = response_of(fit, rows)
    if n_sim is None:
        n_sim = _TABLES_OF_LARGE if max(len(rows.cell), len(fit.cells.n)) > _LARGE else _TABLES
    check_positive_int(n_sim, "n_sim", minimum=99)

    held = HeldFit.of(fit, rows)
    columns = scale.columns_of(fit, rows)
    observed = held.observed(fit)
    measure = _Measure(columns, rows)
    generator = resolve_rng(rng)
    draws = measure_draws(held, measure, int(n_sim), rng=generator, n_jobs=n_jobs, progress=progress)
    shapes = normality.judge(fit, rows, observed, [draw[0] for draw in draws], reach(held, fit), response)
    own = measure(observed)[1]
    scales = scale.settle(
        tuple(
            scale.judge(fit, column, own[i], [draw[1][i] for draw in draws], response, single=rows.single)
            for i, column in enumerate(columns)
        )
    )
    spread = advantages(fit, rng=generator)
    shapes = normality.settle(shapes, spread is not None and spread.verdict in ("look", "act"))
    parts = (explained_variance(fit), collinearity(fit), groups(fit), bounds(fit, rows, response))
    influences, influence_checks = _influences(fit, left_out, specs, n_jobs, progress)
    return Diagnosis(
        checks=tuple(_lines(shapes, scales, spread, *parts, influence_checks)),
        normality=shapes,
        scale=scales,
        advantages=spread,
        explained=parts[0],
        collinearity=parts[1],
        groups=parts[2],
        bounds=parts[3],
        influence=influences,
        residuals=observed.z,
        fitted=observed.fitted[rows.cell],
        formula=fit.label,
        n_sim=int(n_sim),
        notes=_notes(fit, rows),
    )


@dataclass(frozen=True, slots=True, eq=False)
class _Measure:
    """What is kept of a simulated table."""

    columns: list[Column]
    rows: Rows

    def __call__(self, parts: Parts) -> tuple[list[normality.Measured], list[scale.Sums]]:
        return normality.measure_parts(parts), scale.measure_parts(parts, self.columns, self.rows)


def _lines(
    shapes: Normality,
    scales: Iterable[ScaleByLevel],
    spread: Advantages | None,
    shares: Explained,
    inflation: Collinearity,
    carriers: Groups,
    ends: Bounds,
    influences: list[Check],
) -> list[Check]:
    return [
        *(shape.check() for shape in shapes.shapes),
        *(part.check() for part in scales),
        *([] if spread is None else [spread.check()]),
        ends.check(),
        *influences,
        *carriers.checks(),
        inflation.check(),
        shares.check(),
    ]


def _notes(fit: LmmFit, rows: Rows) -> tuple[str, ...]:
    if rows.single:
        return ()
    return (
        f"{rows.hidden:,} of {fit.nobs:,} rows are only known through the means of their cells; normality and scale "
        "are judged by these means and the sums of squares within cells.",
    )


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
    plain = [part for name in names if isinstance(name, str) for part in name.split(":")]
    check_columns([*plain, *(n for n in names if not isinstance(n, str))], _names_of(fit), argument="influence")
    return names


def _names_of(fit: LmmFit) -> list[str]:
    from lmemtest._validate import as_frame

    if fit.data is None:
        return [str(name) for name in fit.cells.frame.columns]
    return list(as_frame(fit.data).collect_schema().names())


def _influences(
    fit: LmmFit, names: list[str], specs: str | Sequence[str] | None, n_jobs: int, progress: bool | None
) -> tuple[tuple[InfluenceResult, ...], list[Check]]:
    from lmemtest.inference.diagnostics.influence import influence

    results, lines = [], []
    for name in names:
        try:
            result = influence(fit, name, specs=specs, n_jobs=n_jobs, progress=progress)
        except LmemtestError as error:
            lines.append(_influence_line(name, "not computed", float("nan"), "look", str(error)))
            continue
        results.append(result)
        lines.append(_influence_line(name, *_strongest(result), result.severity, result.sentence))
    return tuple(results), lines


def _strongest(result: InfluenceResult) -> tuple[str, float]:
    """The level that moves the estimates most."""
    frame = result.to_frame()
    distance = frame["cooks_distance"].to_numpy(dtype=float)
    if not np.isfinite(distance).any():
        return "no refit identifies the estimates", float("nan")
    i = int(np.nanargmax(distance))
    return f"largest Cook's distance {written(distance[i], '.2g')} ({frame['level'].iloc[i]})", float(distance[i])


def _influence_line(name: str, found: str, value: float, verdict: str, sentence: str) -> Check:
    return Check(
        check="influence",
        subject=f"of each {name}",
        found=found,
        value=value,
        p_value=float("nan"),
        verdict=verdict,
        sentence=sentence,
    )
