"""Degrees of freedom by Satterthwaite's approximation.

With ``c(theta) = l' Cov(b) l`` at the residual variance that theta implies, ``h = d log c / d theta``, ``C`` twice the
inverse Hessian of the profiled criterion and ``m`` the residual's degrees of freedom (n - p by REML, n by ML, infinite
where the residual variance is held),

    var(log c) = h'C h + 2 / m,      df = 2 / var(log c)

(Giesbrecht & Burns 1985, doi:10.2307/2530872; the same df as with a Hessian over theta and sigma). All derivatives are
analytic: differences would leave their rounding in a number that is reported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import cast

import numpy as np
import scipy.linalg as sla
import scipy.sparse as sp

from lmemtest.core.arrays import Array, Index
from lmemtest.lmm.engine import theta as th
from lmemtest.lmm.engine.criterion import Criterion
from lmemtest.lmm.engine.functions import Functions
from lmemtest.lmm.engine.hessian import hessian
from lmemtest.lmm.engine.optimize import CHEAP_FLOPS, Optimum, evaluation_cost
from lmemtest.lmm.engine.prediction import Missed, by_term, covariance_slopes, log_scale_slopes, missed
from lmemtest.lmm.engine.problem import Problem, absent_terms, zero_slopes
from lmemtest.lmm.engine.products import CellColumns
from lmemtest.lmm.engine.residual import Leaf, slopes_of_r2
from lmemtest.lmm.engine.structure import parents_of
from lmemtest.lmm.engine.theta import solve_square

# Fixed effects beyond which few functions of them have derivatives of their own, not from those of all.
_MANY = 200
_NO_DIRECTION = 1e-13  # of the largest function: what is left of one is rounding
# Degrees of freedom beyond which a variance of held residuals is known: 97.5 % quantiles are the normal one to 3e-6.
_KNOWN_DF = 1e6


@dataclass(frozen=True, eq=False)
class Curvature:
    """Second-order behaviour at an optimum."""

    hessian: Array  # ``(n_free, n_free)`` Hessian of the criterion in the search's parameters
    cov: Array  # ``(p, p)`` covariance of the kept fixed effects (user's scale)
    to_user: Array  # ``(p, p)`` the kept fixed effects by the internal ones
    # derivatives of the covariance of functions of the internal ones, ``(p, c)``, at a given residual variance:
    # ``(n_free, c, c)``
    slopes: Callable[[Array], Array]
    d_log_scale: Array  # ``(n_free,)`` derivatives of the log residual variance
    residual_df: float  # ``m`` of the module's formula

    @cached_property
    def d_cov(self) -> Array:
        """Derivatives of ``cov``, ``(n_free, p, p)``."""
        slopes = self.to_user @ self.slopes(np.eye(len(self.cov))) @ self.to_user.T
        return np.asarray(slopes + self.d_log_scale[:, None, None] * self.cov)

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
        good = values > 1e-8 * values.max(initial=0.0)
        return 2.0 * (vectors[:, good] / values[good]) @ vectors[:, good].T

    def satterthwaite(self, L: Array | Functions) -> Array:
        """Degrees of freedom of ``L b`` for every row of ``L``, ``(rows, p)``; NaN where ``L b`` has no variance."""
        L = Functions.of(L)
        if len(self.cov) > max(_MANY, 2 * len(L)):
            basis, coefficients = _spanned(L.times(self.to_user).T)
            slopes = np.einsum("ar,iab,br->ri", coefficients, self.slopes(basis), coefficients)
            return self.error_df(L.quadratic_forms(self.cov[None])[0], slopes)
        variance, *slopes = L.quadratic_forms(np.concatenate([self.cov[None], self.d_cov]))
        return self.matched_df(variance, np.stack(slopes, axis=1) if slopes else np.empty((len(L), 0)))

    def error_df(self, variance: Array, slopes: Array) -> Array:
        """Degrees of freedom of error variances, ``(rows,)``, with their derivatives at a given residual variance."""
        return self.matched_df(variance, slopes + variance[:, None] * self.d_log_scale)

    def matched_df(self, variance: Array, d_variance: Array) -> Array:
        """Degrees of freedom of a variance estimate, ``(rows,)``, with its derivatives, ``(rows, n_free)``."""
        with np.errstate(invalid="ignore", divide="ignore"):
            h = d_variance / variance[:, None]
            spread = np.einsum("ri,ri->r", h @ self.theta_covariance(), h) if h.shape[1] else 0.0
            df = np.divide(2.0, spread + 2.0 / self.residual_df) + 0.0 * variance
        return np.where(np.isinf(self.residual_df) & (df > _KNOWN_DF), np.inf, df)


def _spanned(T: Array) -> tuple[Array, Array]:
    """Columns as ``B C`` with as few columns in ``B`` as their rank, ``(p, r)`` and ``(r, c)``: of the pairs of k means
    it is k - 1."""
    B, R, order = sla.qr(T, mode="economic", pivoting=True)
    size = np.abs(R.diagonal())
    r = max(1, int(np.count_nonzero(size > _NO_DIRECTION * size.max(initial=0.0))))
    C = np.empty((r, T.shape[1]))
    C[:, order] = R[:r]
    return B[:, :r], C


def curvature(problem: Problem, optimum: Optimum) -> Curvature:
    """Second-order behaviour at ``optimum``."""
    without = _without_absent(problem, optimum)
    if without is not None:
        return without
    x, at = optimum.theta, optimum.criterion
    p = problem.system.p
    _, U = problem.fixed_effects(at)
    unit = at.sigma2 * problem.y_scale**2
    if problem.anova is not None:
        d_log_scale = problem.anova.log_scale_slopes(x)
        H = problem.anova.derivatives(x, problem.anova.evaluate(x))[2]
    else:
        d_log_scale = log_scale_slopes(problem, x, at) if problem.leaf is None else _absorbed_scale(problem.leaf, x)
        H = hessian(problem, x, at)
    return Curvature(
        hessian=H,
        cov=unit * (U @ U.T),
        to_user=np.asarray(np.linalg.inv(problem.RX)),
        slopes=partial(_slopes, problem, optimum),
        d_log_scale=d_log_scale,
        residual_df=np.inf if at.held is not None else problem.system.n_rows - (p if problem.reml else 0),
    )


def _slopes(problem: Problem, optimum: Optimum, targets: Array) -> Array:
    """Derivatives of the covariance of ``targets``, ``(p, c)``, at a given residual variance: ``(n_free, c, c)``."""
    x, at = optimum.theta, optimum.criterion
    if problem.anova is not None:
        slopes = problem.anova.covariance_slopes(x, targets)
    elif problem.leaf is not None:
        slopes = _absorbed_slopes(problem.leaf, x, targets)
    else:
        slopes = covariance_slopes(problem, x, at, _missed(problem, x, at, targets))
    return np.asarray(at.sigma2 * problem.y_scale**2 * slopes)


def _missed(problem: Problem, x: Array, at: Criterion, targets: Array) -> Missed:
    none = [np.zeros((b.q, b.K, targets.shape[1])) for b in at.system.blocks]
    return missed(problem, x, at, targets, none)


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
    of_rest = curvature(rest, replace(optimum, theta=here, criterion=at))
    kept = [place for i, place in _places(problem) if i not in absent]
    H, d_log_scale = np.zeros((problem.n_free,) * 2), np.zeros(problem.n_free)
    H[np.ix_(kept, kept)], d_log_scale[kept] = of_rest.hessian, of_rest.d_log_scale
    for i, place in _places(problem):
        if i in absent:
            H[place, place] = 2.0 * slopes[absent.index(i)]
    among = partial(_among, problem.n_free, kept, of_rest.slopes)
    return replace(of_rest, hessian=H, d_log_scale=d_log_scale, slopes=among)


def _among(n_free: int, kept: Sequence[int], slopes: Callable[[Array], Array], targets: Array) -> Array:
    """Derivatives along some parameters among those along all, which are zero along the others."""
    out = np.zeros((n_free, targets.shape[1], targets.shape[1]))
    out[kept] = slopes(targets)
    return out


def _places(problem: Problem) -> list[tuple[int, int]]:
    """The term of every parameter of the search, and its place."""
    return list(
        zip(
            np.repeat(range(len(problem.shapes)), [s.n_theta for s in problem.shapes]),
            range(problem.n_theta),
            strict=True,
        )
    )


def _absorbed_slopes(leaf: Leaf, x: Array, targets: Array) -> Array:
    """Derivatives of the covariance of ``targets`` over the residual variance, without the intercepts of the cells."""
    problem, point = leaf.inside(x, reduced=False)
    at, c = problem.evaluate(point), float(leaf.precision(x[leaf.place])[0])
    left = _missed(problem, point, at, targets)
    of_point = covariance_slopes(problem, point, at, left)
    across = np.tensordot(leaf.tangent(x)[1], of_point, 1) - _log_precision_slope(leaf, x) * left[3]
    return np.insert(np.sqrt(c) * of_point[: leaf.inner.n_theta], leaf.place, across, axis=0) / c


def _absorbed_scale(leaf: Leaf, x: Array) -> Array:
    """Derivatives of the log residual variance."""
    problem, point = leaf.inside(x, reduced=False)
    at, c = problem.evaluate(point), float(leaf.precision(x[leaf.place])[0])
    of_scale = slopes_of_r2(problem, point, at) / at.r2
    _, tangent, d_ss = leaf.tangent(x)
    log_scale = _log_precision_slope(leaf, x) + float(of_scale @ tangent) + d_ss / at.r2
    return np.insert(np.sqrt(c) * of_scale[: leaf.inner.n_theta], leaf.place, log_scale)


def _log_precision_slope(leaf: Leaf, x: Array) -> float:
    return float(-2.0 * x[leaf.place] * leaf.weights[0] * leaf.precision(x[leaf.place])[0])


# ------------------------------------------------------------------------------------------- between and within groups


# Share of a function's residual variance in its sums by group, below which it is taken for one within these groups:
# the mean of one of twenty models between tasks has 0.05, a difference of two that met on all of them next to nothing.
_BETWEEN = 0.02
_INDEPENDENT = 1e-9  # of eigenvalues, relative to the largest


def between_within(problem: Problem, optimum: Optimum, L: Array, terms: Sequence[int], row: Index, X: Array) -> Array:
    """Most degrees of freedom of functions ``(c, p)`` of the kept fixed effects that some terms leave, ``(c,)``.

    A function that is one between the groups of a term has as many as there are groups beyond what the fixed effects
    and coarser terms explain of them, whatever that term's variance is estimated to be (Li & Redden 2015,
    doi:10.1186/s12874-015-0026-x, for one factor; by rank for several). Infinite for others. ``X`` holds the distinct
    rows of the kept columns, ``row`` that of each cell.

    With ``l'b = c'z``, ``q_g`` the sum of ``c`` in a group and ``w`` the precisions, the share of ``q_g^2 / w_g``,
    summed over the groups, in the residual variance ``sum c^2 / w`` is 1 if ``l'b`` is a function of the groups' means,
    and 0 if it is one of differences within them.
    """
    x, at = optimum.theta, optimum.criterion
    left = _missed(problem, x, at, solve_square(problem.RX, L.T, transpose=True))
    sums = by_term(problem, at, left[0])
    residual, out = left[3].diagonal().copy(), np.full(len(L), np.inf)
    for q, factor in zip(sums, problem.unpack(x), strict=True):
        residual -= ((factor.T @ q) ** 2).sum(axis=(0, 1))
    cells = cast(CellColumns, problem.system.source)
    for i in terms:
        term = cells.terms[i]
        squares = (cells.omega[:, None] * term.basis**2).T
        weight = np.stack([np.bincount(term.codes, w, term.n_levels) for w in squares], axis=1)
        between = np.einsum("lkc,lk->c", sums[i] ** 2, 1.0 / np.maximum(weight, np.finfo(float).tiny))
        met = between > _BETWEEN * residual
        out[met] = np.minimum(out[met], groups_left(problem, i, row, X))
    return out


def groups_left(problem: Problem, i: int, row: Index, X: Array) -> float:
    """Groups of a term beyond what is constant in them: of the fixed effects, and the terms that it is nested in."""
    terms = cast(CellColumns, problem.system.source).terms
    codes, q = terms[i].codes, terms[i].n_levels
    size = np.bincount(codes, minlength=q).astype(float)
    means = np.asarray(_indicator(row, codes, len(X), q).T @ X) / size[:, None]
    within = X.T @ (np.bincount(row, minlength=len(X))[:, None] * X) - means.T @ (size[:, None] * means)
    values, vectors = np.linalg.eigh(within)
    columns = [means @ vectors[:, values <= _INDEPENDENT * max(values[-1], float(size @ (means**2).sum(axis=1)))]]
    for other in terms:
        parent = parents_of(codes, q, other.codes) if other.n_levels < q else None
        if parent is not None:
            columns.append(np.eye(other.n_levels)[parent])
    explained = np.hstack(columns)
    eigenvalues = np.linalg.eigvalsh(explained.T @ explained)
    return float(max(q - np.count_nonzero(eigenvalues > _INDEPENDENT * eigenvalues[-1]), 1))


def _indicator(row: Index, codes: Index, n: int, q: int) -> sp.csr_matrix:
    """Cells by distinct row and group, ``(n, q)``."""
    return sp.csr_matrix((np.ones(len(row)), (row, codes)), shape=(n, q))
