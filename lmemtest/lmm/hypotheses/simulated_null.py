"""Null distributions by simulation: draws of a statistic, and those of a likelihood ratio by the parametric bootstrap.

Tables are drawn from the fitted null model, on the combinations of columns that both models use, and both models are
fitted to each of them: nothing about the boundary or the number of groups is assumed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest.core.replicates import Failure, replicate
from lmemtest.errors import EstimationError
from lmemtest.lmm.cells import CellMap, Cells, compress
from lmemtest.lmm.engine import theta as th
from lmemtest.lmm.engine.held import draw_cells
from lmemtest.lmm.engine.structure import RandomTerm

if TYPE_CHECKING:
    from lmemtest.core.arrays import Array
    from lmemtest.lmm.hypotheses.nesting import Nesting


# Two optima of -2 log L this close are one: what snapping a variance to zero may lose.
SAME_OPTIMUM = 1e-6


def null_draws(
    task: Callable[[np.random.Generator], tuple[float, bool]], n_draws: int, *, drawn: str, **options: Any
) -> tuple[Array, int, tuple[str, ...]]:
    """Draws of a statistic, NaN where there is none; in how many a search did not converge; why there is none.

    The task says whether its search converged (if not, the draw is kept); `drawn` names a table that cannot be fitted.
    """
    results = replicate(task, n_draws, **options)
    reasons = [r.reason for r in results if isinstance(r, Failure)]
    if len(reasons) == n_draws:
        raise EstimationError(f"no {drawn} could be fitted. {reasons[0]}")
    statistics = np.array([np.nan if isinstance(r, Failure) else r[0] for r in results])
    unconverged = sum(not isinstance(r, Failure) and not r[1] for r in results)
    return statistics, unconverged, tuple(dict.fromkeys(reasons))


def share_as_large(draws: Array, statistic: float, slack: float) -> tuple[float, float]:
    """``(1 + #{T* >= T}) / (B + 1)`` with its Monte-Carlo error; a draw without a statistic counts as larger."""
    exceed, n = np.isnan(draws) | (draws >= statistic - slack), len(draws)
    p = float((1 + np.count_nonzero(exceed)) / (n + 1))
    return p, float(np.sqrt(p * (1.0 - p) / n))


def simulator(fit: Any, cells: Cells) -> partial[Cells]:
    """Draws tables from a fitted model, by a generator, on cells that may be finer than its own."""
    rows = [fit.design.random_rows(i, cells.frame) for i in range(len(fit.design.random))]
    return partial(
        _simulated,
        cells,
        mean=fit.estimate(fit.design.rows(cells.frame)) + fit.design.known(cells.frame),
        terms=tuple(
            RandomTerm(basis=basis, codes=codes, n_levels=term.n_levels, diagonal=term.diagonal)
            for (basis, codes), term in zip(rows, fit.design.random, strict=True)
        ),
        factors=tuple(th.unpack(fit.theta, fit.problem.shapes)),
        sigma2=fit.scale,
        n=cells.n,
        weight=fit.row_precision(cells),
    )


def _simulated(cells: Cells, rng: np.random.Generator, **model: Any) -> Cells:
    mean, ss = draw_cells(rng, **model)
    return replace(cells, mean=mean, ss=ss)


def likelihood_ratio(null: Any, alternative: Any, nesting: Nesting) -> partial[tuple[float, bool]]:
    """Draws the likelihood ratio of two nested fits, by a generator: simulate under the null, fit both models.

    On the cells of all columns of both models; usually those of the alternative.
    """
    names = list(dict.fromkeys((*alternative.cells.frame.columns, *null.cells.frame.columns)))
    enough = [fit.cells for fit in (alternative, null) if len(names) == len(fit.cells.frame.columns)]
    if enough:
        fine = enough[0]
    else:
        parsed, weights = alternative.design.parsed, alternative.weights
        transform = parsed.response_transform
        fine = compress(alternative.data, by=names, score=parsed.response, transform=transform, weights=weights)
    draw, maps = simulator(null, fine), (CellMap.of(fine, null.cells), CellMap.of(fine, alternative.cells))
    # replicates need the cells only, and other processes get a copy
    return partial(_ratio, replace(null, data=None), replace(alternative, data=None), nesting, draw, maps)


def _ratio(
    null: Any,
    alternative: Any,
    nesting: Nesting,
    draw: Callable[[np.random.Generator], Cells],
    maps: tuple[CellMap, CellMap],
    rng: np.random.Generator,
) -> tuple[float, bool]:
    table = draw(rng)
    small = null.refit(cells=maps[0].aggregate(table))
    cells = maps[1].aggregate(table)
    large = alternative.refit(cells=cells)
    if large.llf < small.llf:
        again = alternative.refit(cells=cells, theta_start=nesting.theta_of_null(small, alternative))
        large = max(large, again, key=lambda fit: fit.llf)
    statistic = 2.0 * (large.llf - small.llf)
    if statistic < -1e-8 * max(1.0, abs(small.llf)):
        raise EstimationError("the alternative stopped below the likelihood of the null that it contains")
    return max(0.0, statistic), bool(small.converged and large.converged)
