"""Predictions ``L b + K u`` of fixed and random effects together and their error, and draws of new tables.

With ``V = I + Z Sigma Z'`` relative to the residual variance, ``W = Z Sigma K'``, ``Phi = (X'V^-1X)^-1`` and
``d = L' - X'V^-1 W``, the best linear unbiased prediction misses its target with the covariance

    s2 [ K Sigma K' - W'V^-1 W + d' Phi d ]

(Henderson 1975, doi:10.2307/2529430), computed as the sum of squares in `lmemtest.lmm.engine.error_slopes`. Without the
last part, the error of the fixed effects, it is the conditional covariance of the random effects that lme4 reports.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest.core.arrays import Array
from lmemtest.lmm.engine.blocks import RandomTerm
from lmemtest.lmm.engine.criterion import Criterion
from lmemtest.lmm.engine.error_slopes import missed, theta_slopes, variance_slopes
from lmemtest.lmm.engine.problem import Problem

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.core.arrays import Array


@dataclass(frozen=True)
class Targets:
    """Linear functions of the effects, on the user's scale."""

    fixed: Array  # ``(c, rank)`` coefficients of the kept fixed effects
    random: tuple[Array, ...]  # per term ``(q, k, c)`` coefficients of the effects of its levels


@dataclass(frozen=True)
class Unseen:
    """What single predictions hold beyond the effects of the fit, on the user's scale."""

    bases: tuple[Array, ...]  # per term ``(c, k)``: the basis of a level that is not in the fit; zero where it is
    rows: Array  # ``(c, n_strata)`` residual variances to be added: a further row of a stratum is a one

    def variances(self, problem: Problem, x: Array, at: Criterion) -> Array:
        """Their variances, ``(c,)``."""
        out = self.rows @ problem.residual_variances(x, at)
        unit = at.sigma2 * problem.y_scale**2
        for basis, R, L in zip(self.bases, problem.R, problem.unpack(x), strict=True):
            out += unit * np.sum((basis @ np.linalg.solve(R, L)) ** 2, axis=1)  # u = R^-1 L v for the user's u
        return out

    def slopes(self, problem: Problem, x: Array, at: Criterion) -> Array:
        """Their derivatives at a given residual variance, ``(c, n_free)``."""
        levels = [np.linalg.solve(R.T, basis.T)[None] for basis, R in zip(self.bases, problem.R, strict=True)]
        of_theta = at.sigma2 * problem.y_scale**2 * theta_slopes(problem, x, levels, len(self.rows)).T
        of_strata = -self.rows[:, 1:] * problem.residual_variances(x, at)[1:]
        return np.hstack([of_theta, of_strata])

    def __getitem__(self, targets: Any) -> Unseen:
        return Unseen(bases=tuple(b[targets] for b in self.bases), rows=self.rows[targets])


def _whitened(problem: Problem, targets: Targets) -> tuple[Array, list[Array]]:
    """The same functions of the internal effects (up to ``y_scale``): ``(rank, c)`` and ``(q, K, c)`` per block."""
    fixed = np.linalg.solve(problem.RX.T, targets.fixed.T)
    by_term = [np.linalg.solve(R.T, K) for R, K in zip(problem.R, targets.random, strict=True)]
    return fixed, problem.system.by_block(by_term)


def covariance(problem: Problem, x: Array, at: Criterion, targets: Targets, *, conditional: bool = False) -> Array:
    """``(c, c)`` covariance of the errors of predictions; ``conditional`` leaves out that of the fixed effects."""
    *_, error = missed(problem, x, at, *_whitened(problem, targets), fixed=not conditional)
    return at.sigma2 * problem.y_scale**2 * error


def slopes(problem: Problem, x: Array, at: Criterion, targets: Targets, *, conditional: bool = False) -> Array:
    """Derivatives of the variances of the errors at a given residual variance, ``(c, n_free)``; see `covariance`."""
    left = missed(problem, x, at, *_whitened(problem, targets), fixed=not conditional)
    return at.sigma2 * problem.y_scale**2 * variance_slopes(problem, x, at, left).T


def unit_targets(
    problem: Problem, terms: Sequence[int], shapes: Sequence[tuple[int, int]], which: NDArray[np.intp]
) -> Targets:
    """Some effects of some terms, one target each; ``which`` counts them term by term, level by level."""
    random = [np.zeros((q, k, len(which))) for q, k in shapes]
    start = 0
    for i in terms:
        size = shapes[i][0] * shapes[i][1]
        own = np.flatnonzero((which >= start) & (which < start + size))
        random[i].reshape(size, -1)[which[own] - start, own] = 1.0
        start += size
    return Targets(fixed=np.zeros((len(which), problem.system.p)), random=tuple(random))


def draw_cells(
    rng: np.random.Generator,
    *,
    mean: Array,
    terms: Sequence[RandomTerm],
    factors: Sequence[Array],
    sigma2: float,
    n: Array,
    weight: Array,
) -> tuple[Array, Array]:
    """Cell means and within-cell sums of squares of one simulated table; ``factors`` are relative to ``sigma2``.

    A cell of ``n`` rows has the mean ``mu + Z u + e`` with ``e ~ N(0, s2 / (n w))`` and a within-cell sum of squares
    ``(s2 / w) chi2(n - 1)`` that is independent of it, so drawing cells is exact and costs nothing per row.
    """
    y = mean.copy()
    for term, L in zip(terms, factors, strict=True):
        u = np.sqrt(sigma2) * rng.standard_normal((term.n_levels, term.k)) @ L.T
        y += np.einsum("ck,ck->c", term.basis, u[term.codes])
    y += rng.standard_normal(len(y)) * np.sqrt(sigma2 / (n * weight))
    ss = np.zeros(len(y))
    several = n > 1
    ss[several] = rng.chisquare(n[several] - 1) * sigma2 / weight[several]
    return y, ss
