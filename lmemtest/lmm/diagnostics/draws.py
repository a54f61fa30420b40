"""Residuals and random effects of a fit, and of tables drawn from it, with the variance parameters held.

At given variance parameters the fixed effects and the conditional modes are linear in the scores, so one elimination
of the random effects serves all simulated tables (`lmemtest.lmm.engine.held`): the modes of a table are those of its
scores less those of its fixed effects. A table costs about a hundredth of a fit.

Conditional residuals are smaller than errors and correlated, and modes are shrunk, so neither would be normal draws
with one variance under the true model. The tables drawn from the fit show what they look like then.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.linalg as sla

from lmemtest.core.replicates import Executor, Failure, replicate
from lmemtest.core.resampling import p_of_draws
from lmemtest.core.threads import one_blas_thread
from lmemtest.errors import EstimationError
from lmemtest.lmm.diagnostics.scores import Rows, sum_by
from lmemtest.lmm.engine.held import Held

if TYPE_CHECKING:
    from lmemtest.core.arrays import Array
    from lmemtest.lmm.model import LmmFit


# A finding counts where tables drawn from the fitted model show it this rarely; a warning needs the smaller share, so
# that the dozen checks of one diagnosis are all silent on most tables that deserve it.
NOTE_P, WARNING_P = 0.05, 0.01
# Numbers of one batch of tables (cells x tables): 16 MB.
_BATCH = 2_000_000
_MOST_TABLES = 50


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Parts:
    """What the fit makes of one table.

    ``z`` are residuals over their standard deviation by the model (of rows, or of cells: see `Rows`), ``squares`` the
    sum of the squared standardised residuals of the rows of each cell, ``fitted`` the prediction of each cell with the
    random effects, and ``modes`` the conditional modes of each term, ``(levels, k)``.
    """

    z: Array
    squares: Array
    fitted: Array
    modes: tuple[Array, ...]


@dataclass(frozen=True, kw_only=True, eq=False)
class HeldFit:
    """A fit whose variance parameters are held, on the user's scale.

    ``random`` are the random effects with their covariances over the residual variance, ``Q`` the fixed part,
    orthonormal in the metric of the residuals, ``fixed`` its predictions, ``variance`` the residual variance of a row
    of each cell and ``sigma2`` that of a row of weight one, ``n`` the rows per cell.
    """

    random: Held
    Q: Array
    fixed: Array
    variance: Array
    sigma2: float
    n: Array
    rows: Rows

    @classmethod
    def of(cls, fit: LmmFit, rows: Rows) -> HeldFit:
        """Prepare a fit."""
        variance = residual_variance_of_rows(fit)
        root = np.sqrt(fit.cells.n * fit.scale / variance)[:, None]
        Q, _ = np.linalg.qr(fit.design.X[:, fit.problem.kept] * root)
        return cls(
            random=fit.held,
            Q=Q / root,
            fixed=fit.cell_predictions(random=False),
            variance=variance,
            sigma2=fit.scale,
            n=fit.cells.n,
            rows=rows,
        )

    def observed(self, fit: LmmFit) -> Parts:
        """Parts of the table of the fit, whose modes are known."""
        return self._parts(
            fit.cells.mean - self.fixed, fit.cell_residuals(), fit.modes, self.rows.deviation, fit.cells.ss
        )

    def batch(self) -> int:
        """Tables that are computed together."""
        return max(1, min(_MOST_TABLES, _BATCH // len(self.n)))

    def draw(self, rng: np.random.Generator, k: int) -> Iterator[Parts]:
        """Parts of ``k`` tables drawn from the fit."""
        y = np.empty((k, len(self.n)))  # a table is a row here: its numbers lie side by side
        within = []
        for j in range(k):
            y[j], deviation, ss = self._scores(rng)
            within.append((deviation, ss))
        residuals, modes = self.split(y.T)
        for j, (deviation, ss) in enumerate(within):
            yield self._parts(y[j], residuals[:, j], tuple(u[:, :, j] for u in modes), deviation, ss)

    @cached_property
    def _of_fixed(self) -> tuple[list[Array], Array, Array]:
        """Modes and residual of the fixed part, and ``Q'V^-1``, ``(p, n_cells)``."""
        modes, residual = self.random.take(self.Q)
        return modes, residual, (self.random.omega[:, None] * residual).T

    @cached_property
    def _sd_of_rows(self) -> Array:
        return np.sqrt(self.variance)[self.rows.cell]

    @cached_property
    def _precision_of_rows(self) -> Array:
        """What standardises the residual of a row."""
        return np.sqrt(self.rows.count / self.variance[self.rows.cell])

    def split(self, Y: Array) -> tuple[Array, list[Array]]:
        """Residuals ``(n_cells, k)`` and modes ``(levels, columns, k)`` of tables of cell means, one per column."""
        with one_blas_thread():
            modes, residual = self.random.take(Y)
            if not self.Q.shape[1]:
                return residual, modes
            of_fixed, left_of_fixed, through = self._of_fixed
            b = sla.solve(through @ self.Q, through @ Y, assume_a="pos")
            return residual - left_of_fixed @ b, [u - v @ b for u, v in zip(modes, of_fixed, strict=True)]

    def _scores(self, rng: np.random.Generator) -> tuple[Array, Array, Array]:
        """Cell means without the fixed part, deviations of the rows, and sums of squares of one simulated table."""
        y = np.zeros(len(self.n))
        for term, L in zip(self.random.terms, self.random.factors, strict=True):
            u = np.sqrt(self.sigma2) * rng.standard_normal((term.n_levels, term.k)) @ L.T
            for column, modes in zip(term.basis.T, u.T, strict=True):
                y += column * modes[term.codes]
        rows = self.rows
        if len(rows.cell) > len(self.n):
            error = self._sd_of_rows * rng.standard_normal(len(rows.cell))
            mean = sum_by(rows.cell, error, len(self.n)) / self.n
            deviation = error - mean[rows.cell]
            return y + mean, deviation, sum_by(rows.cell, deviation**2, len(self.n))
        ss = np.zeros(len(self.n))
        several = self.n > 1
        ss[several] = self.variance[several] * rng.chisquare(self.n[several] - 1)
        return y + np.sqrt(self.variance) / np.sqrt(self.n) * rng.standard_normal(len(y)), rows.deviation, ss

    def _parts(self, y: Array, residual: Array, modes: tuple[Array, ...], deviation: Array, ss: Array) -> Parts:
        z = (deviation + residual[self.rows.cell]) * self._precision_of_rows
        squares = (self.n * residual**2 + ss) / self.variance
        return Parts(z=z, squares=squares, fitted=self.fixed + y - residual, modes=modes)


def residual_variance_of_rows(fit: LmmFit) -> Array:
    """Residual variance by the model of a row of each cell, ``(n_cells,)``."""
    values = fit.residual_variances.to_numpy(dtype=float)
    if fit.dispersion is None:
        return values[0] / fit.cells.weight
    codes, _ = fit.cells.strata(fit.dispersion)
    return np.asarray(values[codes] / fit.cells.weight)


def reach(fit: LmmFit) -> tuple[Array, ...]:
    """How much of the variance of the estimates comes from each random effect, ``(k,)`` shares per term.

    The largest share over the coefficients that distinguish what is compared, where the table says what that is, and
    else over all but the intercept: in a balanced table the level of a group moves all means and none of their
    differences. With ``A y`` the estimates, ``A = (X'V^-1 X)^-1 X'V^-1``, a term adds
    ``A Z_j S_j Z_j'A'`` to their covariance.
    """
    kept, names, held = fit.problem.kept, fit.design.x_names, fit.held
    X = fit.design.X[:, kept]
    if not X.shape[1]:
        return tuple(np.ones(term.k) for term in held.terms)
    X = X / np.sqrt((X * X).mean(axis=0))
    weighted = held.omega[:, None] * held.take(X)[1]  # s2 V^-1 X
    inverse = np.linalg.inv(X.T @ weighted)
    A = weighted @ inverse
    parameters: set[int] = set()
    if fit.scope is not None:
        atoms = {fit.scope.compared, f"C({fit.scope.compared})"}
        terms = [part for label, part in fit.design.terms if atoms & set(label.replace("`", "").split(":"))]
        parameters = {j for part in terms for j in range(part.start, part.stop)}
    seen = [c for c, j in enumerate(kept) if names[j] != "Intercept"]
    seen = [c for c in seen if kept[c] in parameters] or seen or list(range(len(kept)))
    shares = []
    for term, L in zip(held.terms, held.factors, strict=True):
        variances = (L * L).sum(axis=1)
        values = np.zeros(term.k)
        for k in range(term.k):
            for c in seen:
                moved = sum_by(term.codes, term.basis[:, k] * A[:, c], term.n_levels)
                values[k] = max(values[k], variances[k] * float(moved @ moved) / inverse[c, c])
        shares.append(values)
    return tuple(shares)


def _batch(held: HeldFit, measure: Callable[[Parts], Any], size: int, rng: np.random.Generator) -> list[Any]:
    return [measure(parts) for parts in held.draw(rng, size)]


def measure_draws(
    held: HeldFit,
    measure: Callable[[Parts], Any],
    n_draws: int,
    *,
    rng: int | np.random.Generator | None,
    n_jobs: int = 1,
    executor: Executor | None = None,
    progress: bool | None = None,
) -> list[Any]:
    """``measure`` of the parts of ``n_draws`` tables drawn from the fit.

    Raises
    ------
    EstimationError
        If the random effects cannot be eliminated to working precision.
    """
    batches = -(-n_draws // held.batch())
    size = -(-n_draws // batches)
    task = partial(_batch, held, measure, size)
    results = replicate(
        task, batches, rng=rng, n_jobs=n_jobs, executor=executor, progress=progress, label="Simulated tables"
    )
    failures = [r.reason for r in results if isinstance(r, Failure)]
    if failures:
        raise EstimationError(
            f"tables drawn from the fit could not be computed ({failures[0]}). Look for columns on wildly different "
            "scales, or for random effects that copy each other."
        )
    return [measured for batch in results for measured in batch][:n_draws]


def simulated_p(observed: float, draws: Iterable[float]) -> float:
    """Share of tables, the observed one included, that show at least as much.

    Examples
    --------
    >>> simulated_p(3.0, [1.0, 2.0, 3.0])
    0.5
    """
    values = list(draws)
    return p_of_draws(sum(value >= observed for value in values), len(values))
