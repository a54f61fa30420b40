r"""Null distributions: of likelihood ratios by simulation, exact ones for one variance, and of signs.

*Simulated.* Tables are drawn from the fitted null model, on the combinations of columns that both models use, and both
models are fitted to each of them: nothing about the boundary or the number of groups is assumed.

*Exact* (Crainiceanu & Ruppert 2004). Model ``y = X b + Z u + e`` with one variance ``s2 l`` for all K elements of u.
Under l = 0, with mu the eigenvalues of Z'P0Z (P0 projects off X), xi those of Z'Z, n rows, p = rank X and w_s iid
N(0, 1),

    RLRT = sup_l (n-p) log(1 + N/D) - sum log(1 + l mu_s)
    LRT  = sup_l  n    log(1 + N/D) - sum log(1 + l xi_s)
    N = sum l mu_s / (1 + l mu_s) w_s^2,   D = sum w_s^2 / (1 + l mu_s) + chi2(n - p - K).

When all positive mu are equal (balanced data) the statistic is a monotone function of one F ratio, so its
distribution needs no simulation.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import special

from lmemtest.core.replicates import Failure, replicate
from lmemtest.core.resampling import p_of_draws
from lmemtest.errors import EstimationError
from lmemtest.lmm.cells import CellMap, Cells, compress
from lmemtest.lmm.engine import theta as th
from lmemtest.lmm.engine.held import draw_answers, draw_cells
from lmemtest.lmm.engine.structure import RandomTerm

if TYPE_CHECKING:
    from lmemtest.core.arrays import Array, Index
    from lmemtest.lmm.hypotheses.glrt import Nesting


# Two optima of -2 log L this close are one: what snapping a variance to zero may lose.
SAME_OPTIMUM = 1e-6
_EQUAL = 1e-7  # eigenvalues this close (relative) are one eigenvalue
_GRID = 160  # values of l per simulation, evenly spaced in log l, refined by a parabola at the best
_CHUNK = 2_000_000  # normal draws held at once: 16 MB


# ------------------------------------------------------------------------------------------------------- by simulation


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
    p = p_of_draws(float(np.count_nonzero(exceed)), n)
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
        **(
            {"sigma2": fit.scale, "n": cells.n, "weight": fit.row_precision(cells)}
            if fit.distribution == "normal"
            else {"family": fit.family, "n": cells.n}
        ),
    )


def _simulated(cells: Cells, rng: np.random.Generator, **model: Any) -> Cells:
    mean, ss = draw_answers(rng, **model) if "family" in model else draw_cells(rng, **model)
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


# --------------------------------------------------------------------------------------------- exact, for one variance


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExactNull:
    """Null distribution of the (restricted) likelihood ratio for one variance.

    ``mu`` are the distinct positive eigenvalues of Z'P0Z with their `multiplicity`; ``penalty`` those in the
    log-determinant (`mu` again for REML, those of Z'Z for ML); ``n_effective`` is n - p for REML and n for ML;
    ``residual_df`` is n - p minus the number of positive eigenvalues.
    """

    mu: Array
    multiplicity: Index
    penalty: Array
    n_effective: int
    residual_df: int

    @property
    def balanced(self) -> bool:
        """Is the distribution that of a function of one F ratio?"""
        same = len(self.mu) == 1 and self.residual_df > 0
        return same and bool(np.allclose(self.penalty, self.mu[0], rtol=_EQUAL))

    def p_value(self, statistic: float, n_draws: int, rng: np.random.Generator) -> tuple[float, float]:
        """P(T >= statistic) and its Monte-Carlo standard error: balanced data need no simulation, and have none."""
        if statistic <= 0:
            return 1.0, 0.0
        if self.balanced:
            return self._balanced_tail(statistic), 0.0
        return share_as_large(self.simulate(n_draws, rng), statistic, 0.0)

    def probability_of_zero(self) -> float | None:
        """P(T = 0) in the balanced case, None otherwise."""
        if not self.balanced:
            return None
        m, nu = int(self.multiplicity[0]), self.residual_df
        return float(1.0 - special.fdtrc(m, nu, self._ratio_at_zero() * nu / m))

    def _ratio_at_zero(self) -> float:
        """Largest ratio of sums of squares A / C at which the likelihood is largest at l = 0."""
        K = len(self.penalty)
        return K / (self.n_effective - K)

    def _balanced_tail(self, statistic: float) -> float:
        """With r = A / C and a = 1 + l mu, T(r) = n log((1 + r) / (1 + r / a)) - K log a at a = r / r0."""
        from scipy.optimize import brentq

        n, K, r0 = self.n_effective, len(self.penalty), self._ratio_at_zero()

        def excess(log_a: float) -> float:
            r = r0 * np.exp(log_a)
            return float(n * (np.log1p(r) - np.log1p(r0)) - K * log_a - statistic)

        high = 1.0
        while excess(high) < 0:
            high *= 2.0
        r = r0 * np.exp(brentq(excess, 0.0, high, xtol=1e-13))
        m, nu = int(self.multiplicity[0]), self.residual_df
        return float(special.fdtrc(m, nu, r * nu / m))

    def simulate(self, n_draws: int, rng: np.random.Generator) -> Array:
        """Draws of the statistic under the null, zeros included."""
        draws = np.empty(n_draws)
        size = max(1, _CHUNK // max(len(self.mu), _GRID))
        for start in range(0, n_draws, size):
            stop = min(n_draws, start + size)
            squares = rng.chisquare(self.multiplicity, size=(stop - start, len(self.mu)))
            rest = rng.chisquare(self.residual_df, size=stop - start) if self.residual_df else 0.0
            draws[start:stop] = self._suprema(squares, np.broadcast_to(rest, (stop - start,)))
        return draws

    def _suprema(self, squares: Array, rest: Array) -> Array:
        log_l = np.linspace(np.log(1e-4 / self.mu.max()), np.log(1e6 / self.mu.min()), _GRID)
        shrink = 1.0 / (1.0 + np.exp(log_l)[:, None] * self.mu)
        penalty = np.log1p(np.exp(log_l)[:, None] * self.penalty).sum(axis=1)
        total = squares.sum(axis=1) + rest
        D = squares @ shrink.T + rest[:, None]
        with np.errstate(divide="ignore"):  # no residual degrees of freedom and l -> infinity
            values = self.n_effective * (np.log(total)[:, None] - np.log(D)) - penalty
        best = np.clip(values.argmax(axis=1), 1, _GRID - 2)
        rows = np.arange(len(values))
        before, at, after = (values[rows, best + shift] for shift in (-1, 0, 1))
        curvature = before - 2.0 * at + after
        inside = (at >= before) & (at >= after) & (curvature < 0)
        gain = np.where(inside, (after - before) ** 2 / (-8.0 * np.where(inside, curvature, -1.0)), 0.0)
        return np.maximum(0.0, values.max(axis=1) + gain)


def exact_null(
    X: Array,
    basis: Array,
    codes: Index,
    weight: Array,
    *,
    n_obs: int,
    reml: bool,
) -> ExactNull:
    """Null distribution of the likelihood ratio (of the restricted one by `reml`) for one scalar random term.

    Per cell: ``X`` the fixed columns of full rank, ``basis`` the column that varies by group, ``codes`` the group,
    ``weight`` the number of rows times their prior weight; ``n_obs`` rows in all.

    References
    ----------
    Crainiceanu & Ruppert (2004), J. R. Stat. Soc. B 66, 165-185, doi:10.1111/j.1467-9868.2004.00438.x

    Examples
    --------
    >>> null = exact_null(np.ones((6, 1)), np.ones(6), np.arange(6), np.full(6, 5.0), n_obs=30, reml=True)
    >>> round(null.probability_of_zero(), 4)
    0.5611
    """
    K = int(codes.max()) + 1
    zz = np.asarray(np.bincount(codes, weights=weight * basis**2, minlength=K), dtype=float)
    zx = np.zeros((K, X.shape[1]))
    np.add.at(zx, codes, (weight * basis)[:, None] * X)
    triangle = np.asarray(np.linalg.qr(np.sqrt(weight)[:, None] * X, mode="r"))
    half = np.linalg.solve(triangle.T, zx.T)
    values = np.linalg.eigvalsh(np.diag(zz) - half.T @ half)
    return null_of_eigenvalues(values, zz, n_obs=n_obs, p=X.shape[1], reml=reml)


def null_of_eigenvalues(values: Array, zz: Array, *, n_obs: int, p: int, reml: bool) -> ExactNull:
    """The null distribution where the eigenvalues of Z'P0Z and the diagonal of Z'Z are known."""
    positive = np.sort(values[values > 1e-9 * max(zz.max(), np.finfo(float).tiny)])
    # sorted values that agree to `_EQUAL` are one eigenvalue
    starts = np.flatnonzero(np.r_[True, np.diff(positive) > _EQUAL * positive[:-1]][: len(positive)])
    multiplicity = np.diff(np.r_[starts, len(positive)])
    return ExactNull(
        mu=np.add.reduceat(positive, starts) / multiplicity if len(positive) else positive,
        multiplicity=multiplicity,
        penalty=positive if reml else zz,
        n_effective=n_obs - p if reml else n_obs,
        residual_df=n_obs - p - len(positive),
    )
