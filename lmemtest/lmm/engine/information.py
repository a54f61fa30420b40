"""Average information: the curvature of the profiled criterion from solves alone.

For a direction ``dSigma_i`` let ``w_i = Z dSigma_i Z' P y``. The second derivative of -2 log L holds
``2 w_i'P w_j / s2 - tr(P V_i P V_j)``; its average with its expectation is ``w_i'P w_j / s2`` (Gilmour, Thompson
& Cullis 1995, doi:10.2307/2533274), which needs no traces. Two further parts are exact: the second derivative of
``Sigma = L L'`` in ``L``, ``2 tr(G dL dL')`` with ``G`` the gradient in ``Sigma``, which keeps the curvature right at
the boundary, and the profiling of ``s2``, ``- dr2_i dr2_j / (m s2^2)`` where it is not held.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from lmemtest.lmm.engine.blocks import System
from lmemtest.lmm.engine.criterion import Criterion
from lmemtest.lmm.engine.cross import left_multiply
from lmemtest.lmm.engine.sweep import Sweep, conditional_modes, into_parents, tail_times, transposed
from lmemtest.lmm.engine.theta import free_indices, solve_lower, solve_spd

if TYPE_CHECKING:
    from lmemtest.core.arrays import Array
    from lmemtest.lmm.engine.problem import Problem


@dataclass(frozen=True)
class Products:
    """Cross-products of new columns ``W = Z c`` with the model's columns and with themselves."""

    chain: list[Array]  # (q, K, c) per chain block
    remainder: Array  # (m, c): tail, X, y
    gram: Array  # (c, c)
    coefficients: Sequence[Array] = ()  # (q, K, c) per block, where W is made of random effects only


def multiply(system: System, coefficients: Sequence[Array], fixed: Array | None = None) -> Products:
    """Cross-products of ``W = sum_b Z_b c_b + [X y] f`` with ``c_b`` (q, K, c) and ``f`` (p + 1, c) or zero."""
    n_chain = len(system.chain)
    chain = [np.zeros_like(c) for c in coefficients[:n_chain]]
    width = coefficients[0].shape[2] if fixed is None else fixed.shape[1]
    in_remainder = np.zeros((len(system.B), width))
    if system.tail:
        in_remainder[: system.t] = np.concatenate([c.reshape(-1, width) for c in coefficients[n_chain:]])
    if fixed is not None:
        in_remainder[system.t :] = fixed
    remainder = system.B @ in_remainder
    for i, stage in enumerate(system.chain):
        c = coefficients[i]
        chain[i] += stage.A @ c + stage.V.dot(in_remainder)
        remainder += stage.V.transpose_dot(c)
        for j, e in stage.E.items():
            chain[i] += e @ coefficients[j][stage.parent[j]]
            chain[j] += into_parents(stage, j, transposed(e) @ c)
    gram = in_remainder.T @ remainder
    for c, product in zip(coefficients[:n_chain], chain, strict=True):
        gram += c.reshape(-1, width).T @ product.reshape(-1, width)
    return Products(chain=chain, remainder=remainder, gram=gram)


def through(system: System, done: Sweep, products: Products) -> tuple[Array, Array]:
    """``W'V^-1 W`` and ``X'V^-1 W`` of new columns by running them through the factorised sweep."""
    rhs = list(products.chain)
    remainder = products.remainder
    gram = products.gram
    width = gram.shape[0]
    for i, step in enumerate(done.steps):
        Qr = step.Q @ rhs[i]
        gram = gram - rhs[i].reshape(-1, width).T @ Qr.reshape(-1, width)
        remainder = remainder - step.V.transpose_dot(Qr)
        for j, e in step.E.items():
            rhs[j] = rhs[j] - into_parents(step.stage, j, transposed(e) @ Qr)
    t, p = system.t, system.p
    fixed = remainder[t : t + p]
    if t:
        tail_factors = done.factors[len(done.steps) :]
        r = tail_times(system.tail, tail_factors, remainder[:t], transpose=True)
        r = solve_spd(done.tail_C, r)
        Qr = tail_times(system.tail, tail_factors, r, transpose=False)
        gram = gram - remainder[:t].T @ Qr
        fixed = fixed - done.tail_V[:, :p].T @ Qr
    return gram, fixed


def modes(system: System, done: Sweep, products: Products) -> list[Array]:
    """``Sigma Z'V^-1 W`` of new columns, ``(q, K, c)`` per block: their conditional modes as data."""
    rhs, remainder = list(products.chain), products.remainder
    for i, step in enumerate(done.steps):
        Qr = step.Q @ rhs[i]
        remainder = remainder - step.V.transpose_dot(Qr)
        for j, e in step.E.items():
            rhs[j] = rhs[j] - into_parents(step.stage, j, transposed(e) @ Qr)
    in_remainder = np.zeros_like(remainder)
    if system.tail:
        tail_factors = done.factors[len(done.steps) :]
        inner = tail_times(system.tail, tail_factors, remainder[: system.t], transpose=True)
        u = tail_times(system.tail, tail_factors, solve_spd(done.tail_C, inner), transpose=False)
        in_remainder[: system.t] = u
    found: dict[int, Array] = {}
    for i in reversed(range(len(done.steps))):
        step = done.steps[i]
        left = rhs[i] - step.V.dot(in_remainder)
        for k, e in step.E.items():
            left = left - e @ found[k][step.stage.parent[k]]
        found[i] = step.Q @ left
    return [*(found[i] for i in range(len(done.steps))), *system.by_tail_block(in_remainder)]


def projected_gram(system: System, done: Sweep, RX: Array, products: Products) -> Array:
    """``W'P W`` of new columns."""
    gram, fixed = through(system, done, products)
    if system.p:
        h = solve_lower(RX, fixed)
        gram = gram - h.T @ h
    return gram


def scores(at: Criterion) -> list[Array]:
    """``Z'P y`` per block of the system, ``(q, K)`` each."""
    system = at.system
    modes = conditional_modes(system, at.sweep, at.v)
    residual = multiply(system, [-u[:, :, None] for u in modes], at.v[:, None])
    return [c[:, :, 0] for c in [*residual.chain, *system.by_tail_block(residual.remainder)]]


def directions(problem: Problem, x: Array) -> list[tuple[int, Array, Array]]:
    """Per element of theta: its term, ``dL`` and the term's ``L``."""
    out = []
    for i, (shape, L) in enumerate(zip(problem.shapes, problem.unpack(x), strict=True)):
        for c, r in zip(*free_indices(shape), strict=True):
            dL = np.zeros_like(L)
            dL[r, c] = 1.0
            out.append((i, dL, L))
    return out


def average_information(problem: Problem, x: Array, at: Criterion, gradients: Sequence[Array], g: Array) -> Array:
    """Approximate Hessian of the criterion in the search's parameters, ``(n_free, n_free)``."""
    if problem.strata is None and not at.system.t and not any(stage.E for stage in at.system.chain):
        W, d_r2 = _group_by_group(problem, x, at)
    else:
        products, d_r2 = _theta_directions(problem, x, at)
        if problem.strata is not None:
            of_strata, d_r2_strata = problem.strata.directions(problem.split(x)[1], at)
            products = joined([products, *of_strata], at.system)
            d_r2 = np.append(d_r2, d_r2_strata)
        W = projected_gram(at.system, at.sweep, at.RX, products)
        if any(stage.S is not None for stage in at.system.chain):
            W_alone, d_r2_alone = _of_scores_alone(problem, x, at)
            W, d_r2 = W + W_alone, d_r2 + d_r2_alone
    H = W * at.weight + at.d_weight * np.outer(d_r2, d_r2)
    start = 0
    for shape, G in zip(problem.shapes, gradients, strict=True):
        columns, rows = free_indices(shape)
        same_column = columns[:, None] == columns[None, :]
        stop = start + len(rows)
        H[start:stop, start:stop] += 2.0 * G[np.ix_(rows, rows)] * same_column
        start = stop
    H.flat[start * (len(x) + 1) :: len(x) + 1] -= g[start:]  # d2V = -dV for a log precision
    return 0.5 * (H + H.T)


def _slopes_of_sigma(problem: Problem, x: Array) -> list[tuple[int, Array]]:
    """Per element of theta: its term and ``dSigma``."""
    return [(term, dL @ L.T + L @ dL.T) for term, dL, L in directions(problem, x)]


def _group_by_group(problem: Problem, x: Array, at: Criterion) -> tuple[Array, Array]:
    """``w_i'P w_j`` and ``d r2 / d theta_i`` where no two groups of columns have a cell in common.

    With ``P_g = I - A Q``, ``R = A - A Q A`` and ``z = P_g V v`` of a group, and ``u_i = dSigma_i z``, they are sums
    over the groups of ``u_i'R u_j`` (less the projection on ``X'V^-1 w_i = V_X'P_g'u_i``) and ``-z'u_i``.
    """
    slopes, p = _slopes_of_sigma(problem, x), at.system.p
    n = len(slopes)
    W, d_r2, fixed = np.zeros((n, n)), np.zeros(n), np.zeros((p, n))
    for step in at.sweep.steps:
        K = step.A.shape[1]
        P = np.eye(K) - left_multiply(step.A, step.Q)
        PV = step.V.times(P)
        z = PV.dot(at.v[:, None])[:, :, 0]
        u = np.zeros((*z.shape, n))
        for i, (term, dSigma) in enumerate(slopes):
            for m in step.stage.block.members:
                if m.term == term:
                    u[:, m.columns, i] = (z[:, m.columns].reshape(-1, m.k) @ dSigma).reshape(len(z), -1)
        flat = u.reshape(-1, n)
        W += flat.T @ left_multiply(P, left_multiply(step.A, u)).reshape(-1, n)
        d_r2 -= z.ravel() @ flat
        fixed += PV.transpose_dot(u)[:p]
    half = solve_lower(at.RX, fixed)
    W -= half.T @ half
    if any(stage.S is not None for stage in at.system.chain):
        W_alone, d_r2_alone = _of_scores_alone(problem, x, at)
        W, d_r2 = W + W_alone, d_r2 + d_r2_alone
    return W, d_r2


def _theta_directions(problem: Problem, x: Array, at: Criterion) -> tuple[Products, Array]:
    """Cross-products of ``w_i = Z dSigma_i Z'P y`` per element of theta, and ``d r2 / d theta_i``."""
    z = scores(at)
    steps = directions(problem, x)
    n = len(steps)
    coefficients = [np.zeros((b.q, b.K, n)) for b in at.system.blocks]
    d_r2 = np.zeros(n)
    for i, (term, dL, L) in enumerate(steps):
        for b, m in at.system.places(term):
            q = len(z[b])
            own = z[b][:, m.columns].reshape(q, m.r, m.k)
            half = own @ dL
            coefficients[b][:, m.columns, i] = (own @ L @ dL.T + half @ L.T).reshape(q, -1)
            d_r2[i] -= 2.0 * float(np.sum(half * (own @ L)))
    found = multiply(at.system, coefficients, np.zeros((at.system.p + 1, n)))
    return replace(found, coefficients=coefficients), d_r2


def _of_scores_alone(problem: Problem, x: Array, at: Criterion) -> tuple[Array, Array]:
    """``w_i'P w_j`` and ``d r2 / d theta_i`` of groups that only the scores distinguish.

    With ``R = A - A Q A`` and ``Z = P S P'``, ``P = I - A Q``, they are ``tr(dSigma_i R dSigma_j Z)`` and
    ``-tr(dSigma_i Z)``.
    """
    slopes = _slopes_of_sigma(problem, x)
    n = len(slopes)
    W, d_r2 = np.zeros((n, n)), np.zeros(n)
    for step in at.sweep.steps:
        if step.stage.S is None:
            continue
        members = step.stage.block.members
        P = np.eye(step.stage.block.K) - step.A[0] @ step.Q[0]
        R, Z = P @ step.A[0], P @ step.stage.S[0] @ P.T
        if all(m.k == 1 for m in members):  # dSigma is diagonal
            d = np.zeros((n, len(Z)))
            for i, (term, dSigma) in enumerate(slopes):
                for m in members:
                    if m.term == term:
                        d[i, m.columns] = dSigma[0, 0]
            W += d @ (R * Z) @ d.T
            d_r2 -= d @ Z.diagonal()
            continue
        D = np.zeros((n, *Z.shape))
        for i, (term, dSigma) in enumerate(slopes):
            for m in members:
                if m.term == term:
                    D[i, m.columns, m.columns] = np.kron(np.eye(m.r), dSigma)
        W += (R @ D).reshape(n, -1) @ (Z @ D).transpose(0, 2, 1).reshape(n, -1).T
        d_r2 -= D.reshape(n, -1) @ Z.ravel()
    return W, d_r2


def joined(parts: Sequence[Products], system: System) -> Products:
    """Columns of several products side by side; the first are combinations of random effects, the rest orthogonal."""
    first, rest = parts[0], parts[1:]
    chain = [np.concatenate(c, axis=2) for c in zip(*(p.chain for p in parts), strict=True)]
    remainder = np.hstack([p.remainder for p in parts])
    n, width = first.gram.shape[0], remainder.shape[1]
    gram = np.zeros((width, width))
    gram[:n, :n] = first.gram
    gram[n:, n:] = np.diag([p.gram[0, 0] for p in rest])
    n_chain = len(system.chain)
    for c, product in zip(first.coefficients[:n_chain], chain, strict=True):
        gram[:n, n:] += c.reshape(-1, n).T @ product[:, :, n:].reshape(-1, width - n)
    if system.tail:
        in_tail = np.concatenate([c.reshape(-1, n) for c in first.coefficients[n_chain:]])
        gram[:n, n:] += in_tail.T @ remainder[: system.t, n:]
    gram[n:, :n] = gram[:n, n:].T
    return Products(chain=chain, remainder=remainder, gram=gram)
