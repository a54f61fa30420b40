"""Average information: the curvature of the profiled criterion from solves alone.

For a direction ``dSigma_i`` let ``w_i = Z dSigma_i Z' P y``. The second derivative of -2 log L holds
``2 w_i'P w_j / s2 - tr(P V_i P V_j)``; its average with its expectation is ``w_i'P w_j / s2`` (Gilmour, Thompson
& Cullis 1995, doi:10.2307/2533274), which needs no traces. Two further parts are exact: the second derivative of
``Sigma = L L'`` in ``L``, ``2 tr(G dL dL')`` with ``G`` the gradient in ``Sigma``, which keeps the curvature right at
the boundary, and the profiling of ``s2``, ``- dr2_i dr2_j / (m s2^2)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from lmemtest.engine.blocks import System
from lmemtest.engine.criterion import Criterion
from lmemtest.engine.cross import Array
from lmemtest.engine.problem import Problem
from lmemtest.engine.sweep import Sweep, conditional_modes, tail_times
from lmemtest.engine.theta import upper_indices
from lmemtest.engine.triangular import solve_lower, solve_spd


@dataclass(frozen=True)
class Products:
    """Cross-products of new columns ``W = Z c`` with the model's columns and with themselves."""

    chain: list[Array]  # (q, K, c) per chain block
    remainder: Array  # (m, c): tail, X, y
    gram: Array  # (c, c)


def multiply(system: System, coefficients: Sequence[Array]) -> Products:
    """Cross-products of ``W = sum_b Z_b c_b``.

    Parameters
    ----------
    system
        Cross-products of the model.
    coefficients
        ``(q, K, c)`` per block of ``system.blocks``.
    """
    n_chain = len(system.chain)
    chain = [np.zeros_like(c) for c in coefficients[:n_chain]]
    width = coefficients[0].shape[2]
    in_tail = np.zeros((len(system.B), width))
    if system.tail:
        in_tail[: system.t] = np.concatenate([c.reshape(-1, width) for c in coefficients[n_chain:]])
    remainder = system.B @ in_tail
    for i, stage in enumerate(system.chain):
        c = coefficients[i]
        chain[i] += stage.A @ c + stage.V.dot(in_tail)
        remainder += stage.V.transpose_dot(c)
        for j, e in stage.E.items():
            chain[i] += e @ coefficients[j][stage.parent[j]]
            children = e.transpose(0, 2, 1) @ c
            summed = stage.indicator[j] @ children.reshape(len(children), -1)
            chain[j] += summed.reshape(chain[j].shape)
    gram = in_tail.T @ remainder
    for c, product in zip(coefficients[:n_chain], chain, strict=True):
        gram += c.reshape(-1, width).T @ product.reshape(-1, width)
    return Products(chain=chain, remainder=remainder, gram=gram)


def projected_gram(system: System, done: Sweep, RX: Array, products: Products) -> Array:
    """``W'P W`` of new columns by running them through the factorised sweep."""
    rhs = list(products.chain)
    remainder = products.remainder
    gram = products.gram
    width = gram.shape[0]
    for i, step in enumerate(done.steps):
        Qr = step.Q @ rhs[i]
        gram = gram - rhs[i].reshape(-1, width).T @ Qr.reshape(-1, width)
        remainder = remainder - step.V.transpose_dot(Qr)
        for j, e in step.E.items():
            children = e.transpose(0, 2, 1) @ Qr
            summed = step.stage.indicator[j] @ children.reshape(len(children), -1)
            rhs[j] = rhs[j] - summed.reshape(rhs[j].shape)
    t, p = system.t, system.p
    fixed = remainder[t : t + p]
    if t:
        tail_factors = done.factors[len(done.steps) :]
        r = tail_times(system.tail, tail_factors, remainder[:t], transpose=True)
        r = solve_spd(done.tail_C, r)
        Qr = tail_times(system.tail, tail_factors, r, transpose=False)
        gram = gram - remainder[:t].T @ Qr
        fixed = fixed - done.tail_V[:, :p].T @ Qr
    if p:
        h = solve_lower(RX, fixed)
        gram = gram - h.T @ h
    return gram


def scores(system: System, at: Criterion) -> list[Array]:
    """``Z'P y`` per block of ``system.blocks``, ``(q, K)`` each."""
    v = np.append(-at.b, 1.0)
    modes = conditional_modes(system, at.sweep, v)
    fitted = multiply(system, [u[:, :, None] for u in modes])
    t = system.t
    r = np.concatenate([np.zeros(t), v])
    out = [s.V.dot(r[:, None])[:, :, 0] - f[:, :, 0] for s, f in zip(system.chain, fitted.chain, strict=True)]
    tail = (system.B @ r)[:t] - fitted.remainder[:t, 0]
    start = 0
    for block in system.tail:
        out.append(tail[start : start + block.size].reshape(block.q, block.K))
        start += block.size
    return out


def directions(problem: Problem, theta: Array) -> list[tuple[int, int, Array, Array]]:
    """Per element of theta: block, first column of its term in the block, ``dL`` and ``L`` of its term."""
    place = {}
    for b, block in enumerate(problem.system.blocks):
        start = 0
        for i in block.members:
            place[i] = (b, start)
            start += problem.sizes[i]
    out = []
    start = 0
    for i, k in enumerate(problem.sizes):
        L = np.zeros((k, k))
        rows, cols = upper_indices(k)
        L.T[rows, cols] = theta[start : start + len(rows)]
        start += len(rows)
        for c, r in zip(rows, cols, strict=True):  # column by column of the lower triangle
            dL = np.zeros((k, k))
            dL[r, c] = 1.0
            out.append((*place[i], dL, L))
    return out


def average_information(problem: Problem, theta: Array, at: Criterion, gradients: Sequence[Array]) -> Array:
    """Approximate Hessian of the criterion in the whitened theta, ``(n_theta, n_theta)``.

    Parameters
    ----------
    problem, theta, at
        A problem and its criterion at ``theta``.
    gradients
        Gradient in each term's ``Sigma`` at ``theta``.
    """
    system = problem.system
    z = scores(system, at)
    steps = directions(problem, theta)
    n = len(steps)
    coefficients = [np.zeros((b.q, b.K, n)) for b in system.blocks]
    d_r2 = np.empty(n)
    for i, (b, start, dL, L) in enumerate(steps):
        own = z[b][:, start : start + len(L)]
        half = own @ dL
        coefficients[b][:, start : start + len(L), i] = own @ L @ dL.T + half @ L.T
        d_r2[i] = -2.0 * float(np.sum(half * (own @ L)))
    W = projected_gram(system, at.sweep, at.RX, multiply(system, coefficients))
    m = system.n_rows - (system.p if problem.reml else 0)
    H = W / at.sigma2 - np.outer(d_r2, d_r2) / (m * at.sigma2**2)
    start = 0
    for k, G in zip(problem.sizes, gradients, strict=True):
        rows, cols = upper_indices(k)  # (column, row) of the lower triangle
        same_column = rows[:, None] == rows[None, :]
        stop = start + len(rows)
        H[start:stop, start:stop] += 2.0 * G[np.ix_(cols, cols)] * same_column
        start = stop
    return 0.5 * (H + H.T)
