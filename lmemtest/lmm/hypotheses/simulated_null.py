"""Null distributions by simulation: draws of a statistic, and those of a likelihood ratio by the parametric bootstrap.

Tables are drawn from the fitted null model, on the combinations of columns that both models use, and both models are
fitted to each of them: nothing about the boundary or the number of groups is assumed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest.core.replicates import Failure, replicate
from lmemtest.errors import EstimationError
from lmemtest.lmm.cells import CellMap, Cells, compress
from lmemtest.lmm.engine import theta as th
from lmemtest.lmm.engine.blocks import RandomTerm
from lmemtest.lmm.engine.simulate import draw_cells

if TYPE_CHECKING:
    from lmemtest.core.arrays import Array
    from lmemtest.lmm.hypotheses.nesting import Nesting


# Two optima of -2 log L this close are one: what snapping a variance to zero may lose.
SAME_OPTIMUM = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class NullDraws:
    """Draws of a statistic under the null.

    ``statistics`` has them all, NaN where a model could not be fitted; ``unconverged`` counts those in which the
    certificate of a fit is not complete (they are kept); ``reasons`` says why models could not be fitted, once each.
    """

    statistics: Array
    unconverged: int
    reasons: tuple[str, ...]

    @classmethod
    def of(
        cls, task: Callable[[np.random.Generator], tuple[float, bool]], n_draws: int, *, drawn: str, **options: Any
    ) -> NullDraws:
        """Statistics of a task that says whether its search converged; `drawn` names a table that cannot be fitted."""
        results = replicate(task, n_draws, **options)
        failures = [r.reason for r in results if isinstance(r, Failure)]
        if len(failures) == n_draws:
            raise EstimationError(f"no {drawn} could be fitted. {failures[0]}")
        return cls(
            statistics=np.array([np.nan if isinstance(r, Failure) else r[0] for r in results]),
            unconverged=sum(not isinstance(r, Failure) and not r[1] for r in results),
            reasons=tuple(dict.fromkeys(failures)),
        )

    @property
    def failed(self) -> int:
        """Draws without a statistic."""
        return int(np.isnan(self.statistics).sum())

    def p_value(self, statistic: float, slack: float) -> tuple[float, float]:
        """``(1 + #{T* >= T}) / (B + 1)`` with its Monte-Carlo error; a draw without a statistic counts as larger."""
        exceed, n = np.isnan(self.statistics) | (self.statistics >= statistic - slack), len(self.statistics)
        p = float((1 + np.count_nonzero(exceed)) / (n + 1))
        return p, float(np.sqrt(p * (1.0 - p) / n))


@dataclass(frozen=True, slots=True, eq=False)
class Simulator:
    """Draws tables from a fitted model on cells that may be finer than its own."""

    cells: Cells
    mean: Array
    terms: tuple[RandomTerm, ...]
    factors: tuple[Array, ...]
    sigma2: float
    precision: Array

    @classmethod
    def of(cls, fit: Any, cells: Cells) -> Simulator:
        """Prepare the draws of ``fit`` on ``cells``."""
        rows = [fit.design.random_rows(i, cells.frame) for i in range(len(fit.design.random))]
        terms = tuple(
            RandomTerm(basis=basis, codes=codes, n_levels=term.n_levels, diagonal=term.diagonal)
            for (basis, codes), term in zip(rows, fit.design.random, strict=True)
        )
        mean = fit.estimate(fit.design.rows(cells.frame)) + fit.design.known(cells.frame)
        factors = tuple(th.unpack(fit.theta, fit.problem.shapes))
        return cls(cells, mean, terms, factors, fit.scale, fit.row_precision(cells))

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
class LikelihoodRatio:
    """One draw of the likelihood ratio of two nested fits: simulate under the null, fit both models."""

    null: Any
    alternative: Any
    nesting: Nesting
    simulator: Simulator
    to_null: CellMap
    to_alternative: CellMap

    @classmethod
    def of(cls, null: Any, alternative: Any, nesting: Nesting) -> LikelihoodRatio:
        """Prepare the draws on the cells of all columns of both models; usually those of the alternative."""
        names = list(dict.fromkeys((*alternative.cells.frame.columns, *null.cells.frame.columns)))
        known = [fit.cells for fit in (alternative, null) if len(names) == len(fit.cells.frame.columns)]
        if known:
            fine = known[0]
        else:
            parsed, weights = alternative.design.parsed, alternative.weights
            transform = parsed.response_transform
            fine = compress(alternative.data, by=names, score=parsed.response, transform=transform, weights=weights)
        return cls(
            null=replace(null, data=None),  # replicates need the cells only, and other processes get a copy
            alternative=replace(alternative, data=None),
            nesting=nesting,
            simulator=Simulator.of(null, fine),
            to_null=CellMap.of(fine, null.cells),
            to_alternative=CellMap.of(fine, alternative.cells),
        )

    def __call__(self, rng: np.random.Generator) -> tuple[float, bool]:
        table = self.simulator.draw(rng)
        null = self.null.refit(cells=self.to_null.aggregate(table))
        cells = self.to_alternative.aggregate(table)
        alternative = self.alternative.refit(cells=cells)
        if alternative.llf < null.llf:
            start = self.nesting.theta_of_null(null, self.alternative)
            again = self.alternative.refit(cells=cells, theta_start=start)
            alternative = max(alternative, again, key=lambda fit: fit.llf)
        statistic = 2.0 * (alternative.llf - null.llf)
        if statistic < -1e-8 * max(1.0, abs(null.llf)):
            raise EstimationError("the alternative stopped below the likelihood of the null that it contains")
        return max(0.0, statistic), bool(null.converged and alternative.converged)
