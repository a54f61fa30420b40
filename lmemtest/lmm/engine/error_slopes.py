"""How the errors of estimates and predictions change with the covariance parameters.

The best linear unbiased predictor ``a'y`` of ``L b + K u`` has the smallest error variance, so by the envelope theorem
the derivative of that variance is the one at fixed ``a``: with ``V = Omega^-1 + Z Sigma Z'`` relative to the residual
variance, ``Phi = (X'V^-1X)^-1`` and ``q = K' - Z'a``,

    d var = q' dSigma q + a' dOmega^-1 a,
    a = V^-1 (Z Sigma K' + X phi),    phi = Phi (L' - X'V^-1 Z Sigma K'),    Omega^-1 a = Z Sigma q + X phi.

The variance itself is ``q' Sigma q + a' Omega^-1 a``, a sum of squares: nothing is subtracted from anything of nearly
its size, so errors keep their digits where the variance of a term is ten thousand times theirs. With ``K = 0`` these
are the fixed effects.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from lmemtest.core.arrays import Array
from lmemtest.lmm.engine.criterion import Criterion
from lmemtest.lmm.engine.information import directions, modes, multiply, scores, through
from lmemtest.lmm.engine.problem import Problem
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
        return [], [], phi, multiply(system, [], phi).gram
    known = modes(system, done, multiply(system, spread, phi))
    spread = [s - u for s, u in zip(spread, known, strict=True)]
    products = multiply(system, spread, phi)
    seen_by = [*products.chain, *system.by_tail_block(products.remainder)]
    random = [k - z for k, z in zip(K, seen_by, strict=True)]
    count = L.shape[1]
    covariance = products.gram + sum(
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
        yield float(np.exp(log_tau)) * multiply(part, spread, phi).gram


def log_scale_slopes(problem: Problem, x: Array, at: Criterion) -> Array:
    """Derivatives of the log residual variance, ``(n_free,)``; zero where it is held."""
    if at.held is not None:
        return np.zeros(problem.n_free)
    z = by_term(problem, at, scores(at))
    out = [-2.0 * float(np.sum((z[term] @ dL) * (z[term] @ L))) for term, dL, L in directions(problem, x)]
    if problem.strata is not None:
        out += list(problem.strata.directions(problem.split(x)[1], at)[1])
    return np.array(out) / at.r2
