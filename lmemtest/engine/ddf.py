"""Degrees of freedom by Satterthwaite's approximation.

With ``c(theta) = l' Cov(b) l`` at the residual variance that theta implies, ``h = d log c / d theta``, ``C`` twice the
inverse Hessian of the profiled criterion and ``m`` the residual's degrees of freedom (n - p by REML, n by ML),

    var(log c) = h'C h + 2 / m,      df = 2 / var(log c)

(Giesbrecht & Burns 1985, doi:10.2307/2530872; the same df as with a Hessian over theta and sigma). The Hessian is the
central difference of the exact gradient, not of the criterion.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from lmemtest.engine.cross import Array
from lmemtest.engine.information import average_information
from lmemtest.engine.optimize import Optimum
from lmemtest.engine.problem import Problem

# Steps in units of theta's standard error: truncation 1e-6 relative, rounding far below.
_STEP = 1e-3
# Of theta's length, at most: where the criterion is flat there is no standard error.
_LONGEST = 0.1


@dataclass(frozen=True)
class Curvature:
    """Second-order behaviour at an optimum.

    Attributes
    ----------
    hessian
        ``(n_free, n_free)`` Hessian of the criterion in the search's parameters.
    d_cov
        ``(n_free, p, p)`` derivatives of the covariance of the kept fixed effects (user's scale).
    cov
        ``(p, p)`` that covariance.
    residual_df
        ``m`` of the module's formula.
    """

    hessian: Array
    d_cov: Array
    cov: Array
    residual_df: int

    @property
    def smallest(self) -> float:
        """Smallest curvature, relative to the largest; NaN without parameters."""
        if not len(self.hessian):
            return float("nan")
        values = np.linalg.eigvalsh(self.hessian)
        return float(values[0] / max(abs(values[-1]), np.finfo(float).tiny))

    def theta_covariance(self) -> Array:
        """``2 H^-1``, with directions in which the criterion is flat or falls left out."""
        values, vectors = np.linalg.eigh(self.hessian)
        good = values > 1e-8 * max(values[-1], 0.0)
        return 2.0 * (vectors[:, good] / values[good]) @ vectors[:, good].T

    def satterthwaite(self, L: Array) -> Array:
        """Degrees of freedom of ``L b`` for every row of ``L``, ``(rows, p)``; NaN where ``L b`` has no variance."""
        variance = np.einsum("rp,pq,rq->r", L, self.cov, L)
        return self.matched_df(variance, np.einsum("rp,ipq,rq->ri", L, self.d_cov, L))

    def matched_df(self, variance: Array, d_variance: Array) -> Array:
        """Degrees of freedom of a variance estimate, ``(rows,)``, with its derivatives, ``(rows, n_free)``."""
        with np.errstate(invalid="ignore", divide="ignore"):
            h = d_variance / variance[:, None]
            spread = np.einsum("ri,ij,rj->r", h, self.theta_covariance(), h) if h.shape[1] else 0.0
            return 2.0 / (spread + 2.0 / self.residual_df) + 0.0 * variance


def covariance(problem: Problem, theta: Array) -> tuple[Array, Array]:
    """Covariance of the kept fixed effects at a whitened theta, and the gradient of the criterion there."""
    at = problem.evaluate(theta)
    _, U = problem.fixed_effects(at)
    return at.sigma2 * problem.y_scale**2 * (U @ U.T), problem.derivatives(theta, at)[1]


def steps(problem: Problem, optimum: Optimum) -> Array:
    """``(n_free, n_free)`` one step of a central difference per row, along each parameter of the search."""
    theta, at = optimum.theta, optimum.criterion
    if not len(theta):
        return np.empty((0, 0))
    scale = np.abs(np.diagonal(average_information(problem, theta, at, *problem.derivatives(theta, at))))
    longest = _LONGEST * (1.0 + np.linalg.norm(theta))
    return np.diag(_STEP / np.sqrt(np.maximum(scale, max(1e-6 * scale.max(), (_STEP / longest) ** 2))))


def curvature(problem: Problem, optimum: Optimum) -> Curvature:
    """Second-order behaviour at ``optimum`` from two evaluations per parameter."""
    theta, at = optimum.theta, optimum.criterion
    p = problem.system.p
    m = problem.system.n_rows - (p if problem.reml else 0)
    _, U = problem.fixed_effects(at)
    cov = at.sigma2 * problem.y_scale**2 * (U @ U.T)
    n = len(theta)
    if not n:
        return Curvature(hessian=np.empty((0, 0)), d_cov=np.empty((0, p, p)), cov=cov, residual_df=m)
    hessian, d_cov = np.empty((n, n)), np.empty((n, p, p))
    for i, step in enumerate(steps(problem, optimum)):
        above, g_above = covariance(problem, theta + step)
        below, g_below = covariance(problem, theta - step)
        hessian[i] = (g_above - g_below) / (2.0 * step[i])
        d_cov[i] = (above - below) / (2.0 * step[i])
    return Curvature(hessian=0.5 * (hessian + hessian.T), d_cov=d_cov, cov=cov, residual_df=m)
