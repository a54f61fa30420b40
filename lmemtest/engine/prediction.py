"""Error of predictions ``L b + K u`` of fixed and random effects together.

With ``V = I + Z Sigma Z'`` relative to the residual variance, ``W = Z Sigma K'``, ``Phi = (X'V^-1X)^-1`` and
``d = L' - X'V^-1 W``, the best linear unbiased prediction misses its target with the covariance

    s2 [ K Sigma K' - W'V^-1 W + d' Phi d ]

(Henderson 1975, doi:10.2307/2529430). Without the last part, the error of the fixed effects, it is the conditional
covariance of the random effects that lme4 reports.
"""

from __future__ import annotations

from collections.abc import Sequence
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


def degrees_of_freedom(
    problem: Problem, optimum: Optimum, curvature: Curvature, targets: Targets, *, conditional: bool = False
) -> Array:
    """Satterthwaite's approximation for the variances of `covariance`, ``(c,)``; NaN where there is none."""
    x = optimum.theta

    def variances(point: Array) -> Array:
        return covariance(problem, point, problem.evaluate(point), targets, conditional=conditional).diagonal()

    here = covariance(problem, x, optimum.criterion, targets, conditional=conditional).diagonal()
    d = [(variances(x + s) - variances(x - s)) / (2.0 * s.max()) for s in steps(problem, optimum)]
    return curvature.matched_df(here, np.array(d).T.reshape(len(here), len(x)))


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
