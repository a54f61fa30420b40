"""Error of predictions ``L b + K u`` of fixed and random effects together.

With ``V = I + Z Sigma Z'`` relative to the residual variance, ``W = Z Sigma K'``, ``Phi = (X'V^-1X)^-1`` and
``d = L' - X'V^-1 W``, the best linear unbiased prediction misses its target with the covariance

    s2 [ K Sigma K' - W'V^-1 W + d' Phi d ]

(Henderson 1975, doi:10.2307/2529430). Without the last part, the error of the fixed effects, it is the conditional
covariance of the random effects that lme4 reports.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from lmemtest.engine.criterion import Criterion
from lmemtest.engine.cross import Array
from lmemtest.engine.ddf import Curvature, steps
from lmemtest.engine.information import multiply, through
from lmemtest.engine.optimize import Optimum
from lmemtest.engine.problem import Problem
from lmemtest.engine.theta import block_factors
from lmemtest.engine.triangular import solve_lower


@dataclass(frozen=True)
class Targets:
    """Linear functions of the effects, on the user's scale.

    Attributes
    ----------
    fixed
        ``(c, rank)`` coefficients of the kept fixed effects.
    random
        Per term ``(q, k, c)`` coefficients of the effects of its levels.
    """

    fixed: Array
    random: tuple[Array, ...]


@dataclass(frozen=True)
class Unseen:
    """What single predictions hold beyond the effects of the fit, on the user's scale.

    Attributes
    ----------
    bases
        Per term ``(c, k)``: the basis of a level that is not in the fit; zero where it is.
    rows
        ``(c, n_strata)`` residual variances to be added: a further row of a stratum is a one.
    """

    bases: tuple[Array, ...]
    rows: Array

    def variances(self, problem: Problem, x: Array, at: Criterion) -> Array:
        """Their variances, ``(c,)``."""
        out = self.rows @ problem.residual_variances(x, at)
        unit = at.sigma2 * problem.y_scale**2
        for basis, R, L in zip(self.bases, problem.R, problem.unpack(x), strict=True):
            out += unit * np.sum((basis @ np.linalg.solve(R, L)) ** 2, axis=1)  # u = R^-1 L v for the user's u
        return out

    def __getitem__(self, targets: slice) -> Unseen:
        return Unseen(bases=tuple(b[targets] for b in self.bases), rows=self.rows[targets])


def _whitened(problem: Problem, targets: Targets) -> tuple[Array, list[Array]]:
    """The same functions of the internal effects (up to ``y_scale``): ``(rank, c)`` and ``(q, K, c)`` per block."""
    fixed = np.linalg.solve(problem.RX.T, targets.fixed.T)
    by_term = [np.linalg.solve(R.T, K) for R, K in zip(problem.R, targets.random, strict=True)]
    return fixed, [np.concatenate([by_term[i] for i in block.members], axis=1) for block in problem.system.blocks]


def covariance(problem: Problem, x: Array, at: Criterion, targets: Targets, *, conditional: bool = False) -> Array:
    """``(c, c)`` covariance of the errors of predictions.

    Parameters
    ----------
    problem, x, at
        A problem and its criterion at ``x``.
    targets
        What is predicted.
    conditional
        Leave out the error of the fixed effects.
    """
    L, K = _whitened(problem, targets)
    spread = [S @ S.T @ k for S, k in zip(block_factors(problem.unpack(x), at.system.blocks), K, strict=True)]
    out = np.zeros((L.shape[1], L.shape[1]))
    d = L
    if K:
        for k, Sk in zip(K, spread, strict=True):
            out += np.einsum("qac,qad->cd", k, Sk, optimize=True)
        gram, fixed = through(at.system, at.sweep, multiply(at.system, spread))
        out -= gram
        d = L - fixed
    if len(L) and not conditional:
        h = solve_lower(at.RX, d)
        out += h.T @ h
    return at.sigma2 * problem.y_scale**2 * 0.5 * (out + out.T)


@dataclass(frozen=True)
class Differences:
    """The criterion a step to either side of the optimum, along every parameter of the search."""

    sizes: Array
    below: tuple[tuple[Array, Criterion], ...]
    above: tuple[tuple[Array, Criterion], ...]

    @classmethod
    def around(cls, problem: Problem, optimum: Optimum) -> Differences:
        """Evaluate the criterion twice per parameter."""
        x, moves = optimum.theta, steps(problem, optimum)
        return cls(
            sizes=2.0 * moves.diagonal(),
            below=tuple((x - s, problem.evaluate(x - s)) for s in moves),
            above=tuple((x + s, problem.evaluate(x + s)) for s in moves),
        )

    def degrees_of_freedom(
        self, variances: Callable[[Array, Criterion], Array], here: Array, curvature: Curvature
    ) -> Array:
        """Satterthwaite's approximation for ``variances(x, at)``, ``(c,)``, which is ``here`` at the optimum."""
        ends = zip(self.above, self.below, strict=True)
        d = [variances(*above) - variances(*below) for above, below in ends]
        rows = np.array(d).reshape(len(self.sizes), len(here)).T
        return curvature.matched_df(here, rows / self.sizes)


def unit_targets(problem: Problem, terms: Sequence[int], shapes: Sequence[tuple[int, int]]) -> Targets:
    """Every level's every effect of some terms, one target each: term by term, level by level.

    Parameters
    ----------
    problem
        A problem.
    terms
        Indices of the terms.
    shapes
        ``(q, k)`` of every term of the model.
    """
    width = sum(shapes[i][0] * shapes[i][1] for i in terms)
    random = [np.zeros((q, k, width)) for q, k in shapes]
    start = 0
    for i in terms:
        q, k = shapes[i]
        random[i].reshape(q * k, width)[:, start : start + q * k] = np.eye(q * k)
        start += q * k
    return Targets(fixed=np.zeros((width, problem.system.p)), random=tuple(random))
