"""Errors of estimates and predictions ``L b + K u``, and how they change with the covariance parameters.

With ``V = I + Z Sigma Z'`` relative to the residual variance, ``W = Z Sigma K'``, ``Phi = (X'V^-1X)^-1`` and
``d = L' - X'V^-1 W``, the best linear unbiased prediction misses its target with the covariance

    s2 [ K Sigma K' - W'V^-1 W + d' Phi d ]

(Henderson 1975, doi:10.2307/2529430). Without the last part, the error of the fixed effects, it is the conditional
covariance of the random effects that lme4 reports. With ``K = 0`` it is that of the fixed effects.

The predictor ``a'y`` has the smallest error variance, so by the envelope theorem the derivative of that variance is
the one at fixed ``a``: with ``V = Omega^-1 + Z Sigma Z'`` relative to the residual
variance, ``Phi = (X'V^-1X)^-1`` and ``q = K' - Z'a``,

    d var = q' dSigma q + a' dOmega^-1 a,
    a = V^-1 (Z Sigma K' + X phi),    phi = Phi (L' - X'V^-1 Z Sigma K'),    Omega^-1 a = Z Sigma q + X phi.

The variance itself is ``q' Sigma q + a' Omega^-1 a``, a sum of squares: nothing is subtracted from anything of nearly
its size, so errors keep their digits where the variance of a term is ten thousand times theirs.

At estimated parameters the predictor misses by more than this, and this is estimated too small, by the same amount
(Kackar & Harville 1984, doi:10.2307/2288715; Prasad & Rao 1990, doi:10.2307/2289570): the weights move by
``da_i = P h_i``, ``h_i = Z dSigma_i q - dOmega^-1_i a``, so with the covariance ``C`` of the parameters

    s2 sum_ij C_ij h_i'P h_j

is added twice. The residual variance is no such parameter: all variances times a number leave the weights as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from lmemtest.core.arrays import Array, Index
from lmemtest.lmm.engine.criterion import Criterion
from lmemtest.lmm.engine.hessian import directions
from lmemtest.lmm.engine.problem import Problem
from lmemtest.lmm.engine.sweep import joined, modes, multiply, projected_gram, through
from lmemtest.lmm.engine.theta import block_factors, free_indices, solve_spd

# What predictors leave of their targets, on the internal scale: ``q`` and ``Sigma q`` per block of the system,
# ``(levels, K, c)``; ``(p + 1, c)`` coefficients of ``[X y]`` in ``Omega^-1 a`` (those of ``y`` are zero); and the
# covariance of the errors over the residual variance, ``q' Sigma q + a' Omega^-1 a``, ``(c, c)``.
Missed = tuple[list[Array], list[Array], Array, Array]


def missed(problem: Problem, x: Array, at: Criterion, L: Array, K: Sequence[Array], *, fixed: bool = True) -> Missed:
    """What the best linear unbiased predictors of ``c`` targets leave of them.

    ``L`` (p, c) and ``K``, per block (levels, K, c), are their coefficients on the internal scale; without ``fixed``
    the fixed effects are known.
    """
    system, done = at.system, at.sweep
    factors = block_factors(problem.unpack(x), system.blocks)
    phi = np.zeros((system.p + 1, L.shape[1]))
    spread = [S @ (S.T @ k) for S, k in zip(factors, K, strict=True)]
    if fixed and system.p:
        seen = through(system, done, multiply(system, spread))[1] if any(k.any() for k in K) else 0.0
        phi[:-1] = solve_spd(at.RX, L - seen)
    if not spread:
        return [], [], phi, multiply(system, [], phi)[2]
    predicted = modes(system, done, multiply(system, spread, phi))
    spread = [s - u for s, u in zip(spread, predicted, strict=True)]
    chain, remainder, covariance = multiply(system, spread, phi)
    seen_by = [*chain, *system.by_tail_block(remainder)]
    random = [k - z for k, z in zip(K, seen_by, strict=True)]
    count = L.shape[1]
    covariance = covariance + sum(
        q.reshape(-1, count).T @ s.reshape(-1, count) for q, s in zip(random, spread, strict=True)
    )
    return random, spread, phi, 0.5 * (covariance + covariance.T)


def theta_slopes(problem: Problem, x: Array, by_term: Sequence[Array], count: int) -> Array:
    """``q' dSigma q`` summed over levels, along every element of theta; ``by_term`` has ``q``, whitened."""
    out = []
    for q, L, shape in zip(by_term, problem.unpack(x), problem.shapes, strict=True):
        scaled = L.T @ q
        elements = zip(*free_indices(shape), strict=True)
        out += [2.0 * np.einsum("lc,lc->c", q[:, row], scaled[:, column]) for column, row in elements]
    return np.array(out).reshape(problem.n_theta, count)


def by_term(problem: Problem, at: Criterion, by_block: Sequence[Array]) -> list[Array]:
    """Rows of the blocks' levels by term."""
    return at.system.by_level(by_block, problem.n_levels)


def variance_slopes(problem: Problem, x: Array, at: Criterion, left: Missed) -> Array:
    """Derivatives of the error variances over the residual variance, ``(n_free, c)``."""
    random, _, phi, _ = left
    of_theta = theta_slopes(problem, x, by_term(problem, at, random), phi.shape[1])
    return np.vstack([of_theta, *(-np.diagonal(gram)[None] for gram in _strata_grams(problem, x, left))])


def covariance_slopes(problem: Problem, x: Array, at: Criterion, left: Missed) -> Array:
    """Derivatives of the covariance of the errors over the residual variance, ``(n_free, c, c)``."""
    random, _, phi, _ = left
    count, out = phi.shape[1], []
    for q, L, shape in zip(by_term(problem, at, random), problem.unpack(x), problem.shapes, strict=True):
        scaled = L.T @ q
        for column, row in zip(*free_indices(shape), strict=True):
            half = q[:, row].T @ scaled[:, column]
            out.append(half + half.T)
    out += [-gram for gram in _strata_grams(problem, x, left)]
    return np.array(out).reshape(problem.n_free, count, count)


def _strata_grams(problem: Problem, x: Array, left: Missed) -> Iterator[Array]:
    """``a' Omega_g^-1 a`` over the rows of every stratum but the first."""
    if problem.strata is None:
        return
    _, spread, phi, _ = left
    for part, log_tau in zip(problem.strata.systems[1:], problem.split(x)[1], strict=True):
        yield float(np.exp(log_tau)) * multiply(part, spread, phi)[2]


def log_scale_slopes(problem: Problem, x: Array, at: Criterion) -> Array:
    """Derivatives of the log residual variance, ``(n_free,)``; zero where it is held."""
    if at.held is not None:
        return np.zeros(problem.n_free)
    z = by_term(problem, at, at.scores())
    out = [-2.0 * float(np.sum((z[term] @ dL) * (z[term] @ L))) for term, dL, L in directions(problem, x)]
    if problem.strata is not None:
        out += list(problem.strata.directions(problem.split(x)[1], at)[1])
    return np.array(out) / at.r2


def unseen_variances(problem: Problem, x: Array, at: Criterion, bases: Sequence[Array], residual: Array) -> Array:
    """Variances of what predictions hold beyond the effects of the fit, ``(c,)`` on the user's scale.

    ``bases`` are per term ``(c, k)`` the basis of a level that is not in the fit, zero where it is; ``residual``
    (c, n_strata) says which residual variances are added: a further row of a stratum is a one.
    """
    out = residual @ problem.residual_variances(x, at)
    unit = at.sigma2 * problem.y_scale**2
    for basis, R, L in zip(bases, problem.R, problem.unpack(x), strict=True):
        out += unit * np.sum((basis @ np.linalg.solve(R, L)) ** 2, axis=1)  # u = R^-1 L v for the user's u
    return out


def unseen_slopes(problem: Problem, x: Array, at: Criterion, bases: Sequence[Array], residual: Array) -> Array:
    """Derivatives of `unseen_variances` at a given residual variance, ``(c, n_free)``."""
    levels = [np.linalg.solve(R.T, basis.T)[None] for basis, R in zip(bases, problem.R, strict=True)]
    of_theta = at.sigma2 * problem.y_scale**2 * theta_slopes(problem, x, levels, len(residual)).T
    return np.hstack([of_theta, -residual[:, 1:] * problem.residual_variances(x, at)[1:]])


def _whitened(problem: Problem, L: Array, K: Sequence[Array]) -> tuple[Array, list[Array]]:
    """The same functions of the internal effects (up to ``y_scale``): ``(rank, c)`` and ``(q, K, c)`` per block."""
    by_term = [np.linalg.solve(R.T, of_term) for R, of_term in zip(problem.R, K, strict=True)]
    return np.linalg.solve(problem.RX.T, L.T), problem.system.by_block(by_term)


def covariance(
    problem: Problem, x: Array, at: Criterion, L: Array, K: Sequence[Array], *, conditional: bool = False
) -> Array:
    """``(c, c)`` covariance of the errors of predictions ``L b + K u`` on the user's scale.

    ``L`` (c, rank) are coefficients of the kept fixed effects, ``K`` per term ``(q, k, c)`` those of the effects of its
    levels; ``conditional`` leaves out the error of the fixed effects.
    """
    *_, error = missed(problem, x, at, *_whitened(problem, L, K), fixed=not conditional)
    return at.sigma2 * problem.y_scale**2 * error


def slopes(
    problem: Problem, x: Array, at: Criterion, L: Array, K: Sequence[Array], *, conditional: bool = False
) -> Array:
    """Derivatives of the variances of the errors at a given residual variance, ``(c, n_free)``; see `covariance`."""
    left = missed(problem, x, at, *_whitened(problem, L, K), fixed=not conditional)
    return at.sigma2 * problem.y_scale**2 * variance_slopes(problem, x, at, left).T


def estimation(problem: Problem, x: Array, at: Criterion, L: Array, K: Sequence[Array], parameters: Array) -> Array:
    """What estimated parameters, of covariance ``parameters``, add to the variances of `covariance`, ``(c,)``."""
    random, spread, phi, _ = missed(problem, x, at, *_whitened(problem, L, K))
    system, count, steps = at.system, len(L), directions(problem, x)
    coefficients = [np.zeros((b.q, b.K, len(steps) * count)) for b in system.blocks]
    for i, (term, dL, factor) in enumerate(steps):
        dSigma = dL @ factor.T + factor @ dL.T
        for b, m in system.places(term):
            of_member = random[b][:, m.columns].reshape(-1, m.r, m.k, count)
            moved = np.einsum("ab,qrbc->qrac", dSigma, of_member)
            coefficients[b][:, m.columns, i * count : (i + 1) * count] = moved.reshape(len(random[b]), -1, count)
    products = multiply(system, coefficients, np.zeros((system.p + 1, len(steps) * count)))
    if problem.strata is not None:
        of_strata = []
        for part, log_tau in zip(problem.strata.systems[1:], problem.split(x)[1], strict=True):
            tau, (chain, remainder, gram) = float(np.exp(log_tau)), multiply(part, spread, phi)
            of_strata.append(([tau * c for c in chain], tau * remainder, tau * gram))
        products = joined(products, coefficients, of_strata, system)
    moves = projected_gram(system, at.sweep, at.RX, products).reshape(problem.n_free, count, problem.n_free, count)
    added = 2.0 * np.einsum("ij,icjc->c", parameters, moves)
    return np.asarray(at.sigma2 * problem.y_scale**2 * added)


def unit_targets(
    problem: Problem, terms: Sequence[int], shapes: Sequence[tuple[int, int]], which: Index
) -> tuple[Array, list[Array]]:
    """``L`` and ``K`` of some effects of some terms; ``which`` counts them term by term, level by level."""
    K = [np.zeros((q, k, len(which))) for q, k in shapes]
    start = 0
    for i in terms:
        size = shapes[i][0] * shapes[i][1]
        here = np.flatnonzero((which >= start) & (which < start + size))
        K[i].reshape(size, -1)[which[here] - start, here] = 1.0
        start += size
    return np.zeros((len(which), problem.system.p)), K
