"""The parametric bootstrap's null distribution of a likelihood ratio.

Tables are drawn from the fitted null model, on the combinations of columns that both models use, and both models are
fitted to each of them: nothing about the boundary or the number of groups is assumed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest._replicates import Failure, replicate
from lmemtest.data.cell_map import CellMap
from lmemtest.data.cells import Cells
from lmemtest.data.compress import compress
from lmemtest.engine import theta as th
from lmemtest.engine.blocks import RandomTerm
from lmemtest.engine.simulate import draw_cells
from lmemtest.errors import EstimationError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.inference.hypotheses.nesting import Nesting

    FloatArray = NDArray[np.float64]

# Two optima of -2 log L this close are one: what snapping a variance to zero may lose.
SAME_OPTIMUM = 1e-6

ThetaFromNull = Callable[[Any, Any, "Nesting"], "FloatArray"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NullDraws:
    """Draws of the statistic under the null.

    Attributes
    ----------
    statistics : (n_draws,) float, >= 0
        All draws, zeros included; NaN where a model could not be fitted.
    unconverged : int
        Draws in which the certificate of a fit is not complete; they are kept.
    reasons : tuple of str
        Why models could not be fitted, each reason once.
    """

    statistics: FloatArray
    unconverged: int
    reasons: tuple[str, ...]

    @property
    def failed(self) -> int:
        """Draws without a statistic."""
        return int(np.isnan(self.statistics).sum())

    def p_value(self, statistic: float) -> float:
        """``(1 + #{T* >= T}) / (B + 1)``; a draw without a statistic counts as one that is larger."""
        exceed = np.isnan(self.statistics) | (self.statistics >= statistic - SAME_OPTIMUM)
        return float((1 + np.count_nonzero(exceed)) / (len(self.statistics) + 1))


@dataclass(frozen=True, slots=True, eq=False)
class Simulator:
    """Draws tables from a fitted model on cells that may be finer than its own."""

    cells: Cells
    mean: FloatArray
    terms: tuple[RandomTerm, ...]
    factors: tuple[FloatArray, ...]
    sigma2: float
    precision: FloatArray

    @classmethod
    def of(cls, fit: Any, cells: Cells) -> Simulator:
        """Prepare the draws of ``fit`` on ``cells``."""
        rows = [fit.design.random_rows(i, cells.frame) for i in range(len(fit.design.random))]
        terms = tuple(
            RandomTerm(basis=basis, codes=codes, n_levels=len(term.levels), diagonal=term.diagonal)
            for (basis, codes), term in zip(rows, fit.design.random, strict=True)
        )
        factors = tuple(th.unpack(fit.theta, fit.problem.shapes))
        mean = fit.estimate(fit.design.rows(cells.frame)) + fit.design.known(cells.frame)
        return cls(
            cells=cells,
            mean=mean,
            terms=terms,
            factors=factors,
            sigma2=fit.scale,
            precision=fit.row_precision(cells),
        )

    def draw(self, rng: np.random.Generator) -> Cells:
        """One table."""
        mean, ss = draw_cells(
            rng,
            mean=self.mean,
            terms=self.terms,
            factors=self.factors,
            sigma2=self.sigma2,
            n=self.cells.n,
            weight=self.precision,
        )
        return replace(self.cells, mean=mean, ss=ss)


@dataclass(frozen=True, slots=True, eq=False)
class _Draw:
    """One draw of the statistic: simulate under the null, fit both models."""

    null: Any
    alternative: Any
    nesting: Nesting
    start_from_null: ThetaFromNull
    simulator: Simulator
    to_null: CellMap
    to_alternative: CellMap

    def __call__(self, rng: np.random.Generator) -> tuple[float, bool]:
        table = self.simulator.draw(rng)
        null = self.null.refit(cells=self.to_null.aggregate(table))
        cells = self.to_alternative.aggregate(table)
        alternative = self.alternative.refit(cells=cells)
        statistic = 2.0 * (alternative.llf - null.llf)
        if statistic < 0.0:
            start = self.start_from_null(null, self.alternative, self.nesting)
            again = self.alternative.refit(cells=cells, theta_start=start)
            alternative = max(alternative, again, key=lambda fit: fit.llf)
            statistic = 2.0 * (alternative.llf - null.llf)
        if statistic < -1e-8 * max(1.0, abs(null.llf)):
            raise EstimationError("the alternative stopped below the likelihood of the null that it contains")
        return max(0.0, statistic), bool(null.converged and alternative.converged)


def draw_null(
    null: Any,
    alternative: Any,
    nesting: Nesting,
    *,
    start_from_null: ThetaFromNull,
    n_draws: int,
    rng: int | np.random.Generator | None,
    n_jobs: int,
    progress: bool | None,
) -> NullDraws:
    """Draw the likelihood ratio of two nested fits under the null.

    Parameters
    ----------
    null, alternative : LmmFit
        Fitted by the same likelihood.
    nesting : Nesting
        How the null lies in the alternative.
    start_from_null : callable
        Theta of the alternative at which it is the null.
    n_draws : int
        Draws.
    rng, n_jobs, progress
        As in `lmemtest._replicates.replicate`.

    Returns
    -------
    NullDraws
    """
    fine = _joint_cells(null, alternative)
    task = _Draw(
        null=replace(null, data=None),  # replicates need the cells only, and other processes get a copy
        alternative=replace(alternative, data=None),
        nesting=nesting,
        start_from_null=start_from_null,
        simulator=Simulator.of(null, fine),
        to_null=CellMap.of(fine, null.cells),
        to_alternative=CellMap.of(fine, alternative.cells),
    )
    results = replicate(task, n_draws, rng=rng, n_jobs=n_jobs, progress=progress, label="Bootstrap of the null")
    failures = [r.reason for r in results if isinstance(r, Failure)]
    if len(failures) == n_draws:
        raise EstimationError(f"no table drawn from the null could be fitted. {failures[0]}")
    return NullDraws(
        statistics=np.array([np.nan if isinstance(r, Failure) else r[0] for r in results]),
        unconverged=sum(not isinstance(r, Failure) and not r[1] for r in results),
        reasons=tuple(dict.fromkeys(failures)),
    )


def _joint_cells(null: Any, alternative: Any) -> Cells:
    """Cells of all columns of both models; usually those of the alternative."""
    names = list(dict.fromkeys((*alternative.cells.frame.columns, *null.cells.frame.columns)))
    for fit in (alternative, null):
        if len(names) == len(fit.cells.frame.columns):
            return fit.cells
    parsed = alternative.design.parsed
    return compress(
        alternative.data,
        by=names,
        score=parsed.response,
        transform=parsed.response_transform,
        weights=alternative.weights,
    )
