"""Degrees of freedom by Satterthwaite's approximation.

With ``c(theta) = l' Cov(b) l`` at the residual variance that theta implies, ``h = d log c / d theta``, ``C`` twice the
inverse Hessian of the profiled criterion and ``m`` the residual's degrees of freedom (n - p by REML, n by ML),

    var(log c) = h'C h + 2 / m,      df = 2 / var(log c)

(Giesbrecht & Burns 1985, doi:10.2307/2530872; the same df as with a Hessian over theta and sigma). All derivatives are
analytic: differences would leave their rounding in a number that is reported.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from lmemtest.engine import theta as th
from lmemtest.engine.absent import absent_terms, zero_slopes
from lmemtest.engine.cross import Array
from lmemtest.engine.error_slopes import covariance_slopes, log_scale_slopes, missed
from lmemtest.engine.functions import Functions
from lmemtest.engine.hessian import hessian
from lmemtest.engine.leaf import Leaf, slopes_of_r2
from lmemtest.engine.optimize import CHEAP_FLOPS, Optimum, evaluation_cost
from lmemtest.engine.problem import Problem


@dataclass(frozen=True)
class Curvature:
    """Second-order behaviour at an optimum."""

    hessian: Array  # ``(n_free, n_free)`` Hessian of the criterion in the search's parameters
    d_cov: Array  # ``(n_free, p, p)`` derivatives of the covariance of the kept fixed effects (user's scale)
    cov: Array  # ``(p, p)`` that covariance
    d_log_scale: Array  # ``(n_free,)`` derivatives of the log residual variance
    residual_df: int  # ``m`` of the module's formula

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

    def satterthwaite(self, L: Array | Functions) -> Array:
        """Degrees of freedom of ``L b`` for every row of ``L``, ``(rows, p)``; NaN where ``L b`` has no variance."""
        variance, *slopes = Functions.of(L).quadratic_forms(np.concatenate([self.cov[None], self.d_cov]))
        return self.matched_df(variance, np.stack(slopes, axis=1) if slopes else np.empty((len(L), 0)))

    def error_df(self, variance: Array, slopes: Array) -> Array:
        """Degrees of freedom of error variances, ``(rows,)``, with their derivatives at a given residual variance."""
        return self.matched_df(variance, slopes + variance[:, None] * self.d_log_scale)

    def matched_df(self, variance: Array, d_variance: Array) -> Array:
        """Degrees of freedom of a variance estimate, ``(rows,)``, with its derivatives, ``(rows, n_free)``."""
        with np.errstate(invalid="ignore", divide="ignore"):
            h = d_variance / variance[:, None]
            spread = np.einsum("ri,ri->r", h @ self.theta_covariance(), h) if h.shape[1] else 0.0
            return 2.0 / (spread + 2.0 / self.residual_df) + 0.0 * variance


def curvature(problem: Problem, optimum: Optimum) -> Curvature:
    """Second-order behaviour at ``optimum``."""
    without = _without_absent(problem, optimum)
    if without is not None:
        return without
    x, at = optimum.theta, optimum.criterion
    p = problem.system.p
    _, U = problem.fixed_effects(at)
    unit = at.sigma2 * problem.y_scale**2
    cov = unit * (U @ U.T)
    to_user = np.linalg.inv(problem.RX)
    if problem.anova is not None:
        slopes, d_log_scale = problem.anova.covariance_slopes(x), problem.anova.log_scale_slopes(x)
        H = problem.anova.derivatives(x, problem.anova.evaluate(x))[2]
    elif problem.leaf is not None:
        slopes, d_log_scale = _absorbed_slopes(problem.leaf, x)
        H = hessian(problem, x, at)
    else:
        left = missed(problem, x, at, np.eye(p), [np.zeros((b.q, b.K, p)) for b in at.system.blocks])
        slopes, d_log_scale = covariance_slopes(problem, x, at, left), log_scale_slopes(problem, x, at)
        H = hessian(problem, x, at)
    d_cov = unit * (to_user @ slopes @ to_user.T)
    return Curvature(
        hessian=H,
        d_cov=d_cov + d_log_scale[:, None, None] * cov,
        cov=cov,
        d_log_scale=d_log_scale,
        residual_df=problem.system.n_rows - (p if problem.reml else 0),
    )


def _without_absent(problem: Problem, optimum: Optimum) -> Curvature | None:
    """That of the model without terms that have no variance; their parameters change nothing but the criterion."""
    x = optimum.theta
    absent = () if problem.anova is not None else absent_terms(problem, x)
    if not absent or evaluation_cost(problem) < CHEAP_FLOPS:
        return None
    rest = problem.without(absent)
    here = th.pack([L for i, L in enumerate(problem.unpack(x)) if i not in absent], rest.shapes)
    at = rest.evaluate(here)
    slopes = zero_slopes(problem, absent, rest, at)
    if slopes is None:
        return None
    found = curvature(rest, replace(optimum, theta=here, criterion=at))
    kept = [place for i, place in _places(problem) if i not in absent]
    n, p = problem.n_free, len(found.cov)
    H, d_cov, d_log_scale = np.zeros((n, n)), np.zeros((n, p, p)), np.zeros(n)
    H[np.ix_(kept, kept)], d_cov[kept], d_log_scale[kept] = found.hessian, found.d_cov, found.d_log_scale
    for i, place in _places(problem):
        if i in absent:
            H[place, place] = 2.0 * slopes[absent.index(i)]
    return replace(found, hessian=H, d_cov=d_cov, d_log_scale=d_log_scale)


def _places(problem: Problem) -> list[tuple[int, int]]:
    """The term of every parameter of the search, and its place."""
    return list(
        zip(
            np.repeat(range(len(problem.shapes)), [s.n_theta for s in problem.shapes]),
            range(problem.n_theta),
            strict=True,
        )
    )


def _absorbed_slopes(leaf: Leaf, x: Array) -> tuple[Array, Array]:
    """Derivatives of ``(X'V^-1X)^-1`` and of the log residual variance, without the intercepts of the cells."""
    problem, point = leaf.inside(x, reduced=False)
    at, c, n, p = problem.evaluate(point), float(leaf.precision(x[leaf.place])[0]), leaf.inner.n_theta, problem.system.p
    left = missed(problem, point, at, np.eye(p), [np.zeros((b.q, b.K, p)) for b in at.system.blocks])
    of_point, of_scale = covariance_slopes(problem, point, at, left), slopes_of_r2(problem, point, at) / at.r2
    _, tangent, d_ss = leaf.tangent(x)
    d_log_c = -2.0 * x[leaf.place] * leaf.weights[0] * c
    across = np.tensordot(tangent, of_point, 1) - d_log_c * left.covariance
    log_scale = d_log_c + float(of_scale @ tangent) + d_ss / at.r2
    root = np.sqrt(c)
    return (
        np.insert(root * of_point[:n], leaf.place, across, axis=0) / c,
        np.insert(root * of_scale[:n], leaf.place, log_scale),
    )
