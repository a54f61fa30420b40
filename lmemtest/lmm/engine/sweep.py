"""Eliminate one grouping factor after the other, and differentiate that exactly.

With ``A`` the cross-products of a factor's columns, ``Sigma = L L'`` their relative covariance and ``V`` their
cross-products with everything that remains, the remaining columns seen through
``(I + Z Sigma Z')^-1`` have the cross-products

    A_rr - V' Q V,   Q = L (I + L'A L)^-1 L',   log|I + Z Sigma Z'| = log|I + L'A L|,

so a model with several factors is a sequence of such steps that ends with
``F = [X y]' V^-1 [X y]`` and ``log|V|``. Going back, with ``G`` the gradient of the criterion in the remaining
cross-products, ``H = V G V'`` and ``P = I - A Q``:

    gradient in V:      -Q V G (for each of the two places of V)
    gradient in A:       Q + Q H Q
    gradient in Sigma:   A - A Q A - P H P'.

Nothing is divided by ``L``: the gradient in ``Sigma`` holds at singular ``Sigma`` too, where its sign on the
null space tells whether the boundary is an optimum. Its cost is that of the elimination itself. Further columns
``W = Z c + [X y] f`` run through the factors of an elimination that is made: `multiply`, then `through` or `modes`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
import scipy.linalg as sla

from lmemtest.core.arrays import Array, Index
from lmemtest.lmm.engine.cross import Cross, SparseCross, left_multiply
from lmemtest.lmm.engine.products import CellColumns, Stage, System
from lmemtest.lmm.engine.structure import WORTH_A_LOOP, Block
from lmemtest.lmm.engine.theta import inverse_lower, solve_lower, solve_spd

# Variance ratio times information per level above which L'^-1 (I - M^-1) L^-1 keeps 12 digits.
_WELL_CONDITIONED = 1e-3
# Columns of a group from which a call per group of the triangular inverse pays.
LARGE = 8


@dataclass(frozen=True)
class Eliminated:
    """What going back needs of one chain step: the cross-products at its turn, and ``Q``."""

    stage: Stage
    A: Array
    E: dict[int, Array]
    V: Cross
    Q: Array


@dataclass(frozen=True)
class Sweep:
    """Outcome of the elimination: ``F = [X y]' V^-1 [X y]`` and ``log|V|``, with the steps to go back."""

    F: Array  # (p + 1, p + 1)
    logdet: float
    steps: tuple[Eliminated, ...]
    factors: tuple[Array, ...]  # L per block: chain, then tail
    tail_A: Array  # (t, t) cross-products of the tail at its turn
    tail_V: Array  # (t, p + 1)
    tail_C: Array  # (t, t) lower Cholesky factor of I + Lambda'A Lambda


def _half(A: Array, L: Array) -> tuple[Array, float]:
    """``T`` with ``Q = T'T`` and ``log|I + L'A L|`` for a stack ``A`` of ``(q, K, K)``."""
    K = len(L)
    if K == 1:
        M = 1.0 + L[0, 0] ** 2 * A
        return L[0, 0] / np.sqrt(M), float(np.log(M).sum())
    d = L.diagonal()
    diagonal = np.count_nonzero(L) == np.count_nonzero(d)
    M = d[:, None] * A * d if diagonal else L.T @ A @ L
    M.reshape(len(A), K * K)[:, :: K + 1] += 1.0
    C = np.linalg.cholesky(M)
    logdet = 2.0 * float(np.log(np.diagonal(C, axis1=1, axis2=2)).sum())
    if K < LARGE:
        return np.linalg.solve(C, np.broadcast_to(L.T, A.shape)), logdet
    inverse = inverse_lower(C)
    return inverse * d if diagonal else inverse @ L.T, logdet


def transposed(a: Array) -> Array:
    """Every matrix of a stack transposed."""
    return a.transpose(0, 2, 1)


def into_parents(stage: Stage, j: int, children: Array) -> Array:
    """Sum per-level matrices into the levels of chain block ``j``."""
    summed = stage.indicator[j] @ children.reshape(len(children), -1)
    return np.asarray(summed).reshape(-1, *children.shape[1:])


def _children(stage: Stage, j: int, work: int) -> list[Index] | None:
    """The levels below each level of chain block ``j``; None where so many numbers of each do not pay for a loop."""
    of = stage.indicator[j]
    if of.shape[1] * work < WORTH_A_LOOP * of.shape[0]:
        return None
    return np.split(of.indices, of.indptr[1:-1])


def products_in_parents(stage: Stage, j: int, left: Array, right: Array) -> Array:
    """``sum_l left_l' right_l`` over the levels below each level of chain block ``j``, ``(q_j, a, b)``."""
    a, b = left.shape[2], right.shape[2]
    children = _children(stage, j, a * b)
    if children is None:
        return into_parents(stage, j, transposed(left) @ right)
    return np.stack([left[own].reshape(-1, a).T @ right[own].reshape(-1, b) for own in children])


def times_parents(stage: Stage, j: int, rows: Array, of_parents: Array) -> Array:
    """``rows_l of_parents_p`` with ``p`` the level of chain block ``j`` above each level ``l``, ``(q, K, b)``."""
    a, b = of_parents.shape[1:]
    children = _children(stage, j, a * b)
    if children is None:
        return np.asarray(rows @ of_parents[stage.parent[j]])
    out = np.empty((*rows.shape[:2], b))
    for own, M in zip(children, of_parents, strict=True):
        out[own] = (rows[own].reshape(-1, a) @ M).reshape(-1, rows.shape[1], b)
    return out


def add_products(stage: Stage, j: int, V: Cross, left: Array, child: Cross) -> Cross:
    """``V_p + sum_l left_l' child_l`` over the levels below each level of chain block ``j``."""
    if isinstance(V, SparseCross):
        return V.add_children(stage.indicator[j], stage.parent[j], child.times(transposed(left)))
    return replace(V, values=V.values + products_in_parents(stage, j, left, child.values))


def from_parents(stage: Stage, k: int, of_parents: Cross, V: Cross, E: Array) -> tuple[Array, Cross]:
    """``V_l W_p'`` and ``E_l W_p`` with ``W_p`` of the level of chain block ``k`` above each level ``l``."""
    if isinstance(V, SparseCross) and isinstance(of_parents, SparseCross):
        rows = of_parents.at_parents(stage.parent[k], V)
        return V.contract(rows), rows.times(E)
    W = of_parents.values
    return times_parents(stage, k, V.values, transposed(W)), replace(V, values=times_parents(stage, k, E, W))


def between(A: dict[int, Array], E: dict[tuple[int, int], Array], j: int, k: int) -> Array:
    """The part of an adjoint between chain blocks ``j`` and ``k``, one matrix per level of the finer one."""
    return A[j] if j == k else E[j, k] if j < k else transposed(E[k, j])


def tail_times(tail: tuple[Block, ...], factors: tuple[Array, ...], M: Array, *, transpose: bool) -> Array:
    """``Lambda M`` or ``Lambda' M`` for the block-diagonal ``Lambda`` of the tail."""
    out = np.empty_like(M)
    start = 0
    for block, L in zip(tail, factors, strict=True):
        rows = slice(start, start + block.size)
        if block.K == 1:
            out[rows] = L[0, 0] * M[rows]
        else:
            left = L.T if transpose else L
            out[rows] = (left @ M[rows].reshape(block.q, block.K, -1)).reshape(block.size, -1)
        start += block.size
    return out


def congruence(tail: tuple[Block, ...], factors: tuple[Array, ...], M: Array, *, transpose: bool) -> Array:
    """``Lambda' M Lambda`` (transpose) or ``Lambda M Lambda'`` for a symmetric ``M``."""
    if all(block.K == 1 for block in tail):  # Lambda is diagonal: two passes instead of four
        d = np.repeat([L[0, 0] for L in factors], [block.q for block in tail])
        out = M * d
        out *= d[:, None]
        return out
    half = tail_times(tail, factors, M, transpose=transpose)
    return tail_times(tail, factors, np.ascontiguousarray(half.T), transpose=transpose)


def sweep(system: System, factors: tuple[Array, ...]) -> Sweep:
    """Eliminate every random effect; one lower-triangular ``L`` per block of the system.

    `LinAlgError` if ``I + L'A L`` is not positive definite to working precision (``L`` far too large, or not finite).
    """
    chain = system.chain
    A = [s.A for s in chain]
    E = [dict(s.E) for s in chain]
    V: list[Cross] = [s.V for s in chain]
    B = system.B
    logdet = 0.0
    steps = []
    for i, stage in enumerate(chain):
        T, stage_logdet = _half(A[i], factors[i])
        logdet += stage.copies * stage_logdet
        TV = V[i].times(T)
        TE = {j: left_multiply(T, e) for j, e in E[i].items()}
        for j, te in TE.items():
            A[j] = A[j] - products_in_parents(stage, j, te, te)
            for k in (k for k in TE if k > j):
                E[j][k] = E[j][k] - products_in_parents(stage, j, te, TE[k])
            V[j] = add_products(stage, j, V[j], -te, TV)
        B = B - TV.gram()
        Q = T * T if T.shape[1] == 1 else transposed(T) @ T
        if stage.S is not None:
            B[-1, -1] -= np.vdot(Q, stage.S)
        steps.append(Eliminated(stage=stage, A=A[i], E=E[i], V=V[i], Q=Q))
    return _finish(system, factors, B, logdet, tuple(steps))


def _finish(
    system: System, factors: tuple[Array, ...], B: Array, logdet: float, steps: tuple[Eliminated, ...]
) -> Sweep:
    t = system.t
    tail_A, tail_V, F = B[:t, :t], B[:t, t:], B[t:, t:]
    C = tail_A
    if t:
        L_tail = factors[len(steps) :]
        M = congruence(system.tail, L_tail, tail_A, transpose=True)
        M.flat[:: t + 1] += 1.0
        C = sla.cholesky(M.T, lower=True, overwrite_a=True, check_finite=False)  # M.T: LAPACK's order, no copy
        logdet += 2.0 * float(np.log(C.diagonal()).sum())
        R = solve_lower(C, tail_times(system.tail, L_tail, tail_V, transpose=True))
        F = F - R.T @ R
    return Sweep(F=F, logdet=logdet, steps=steps, factors=factors, tail_A=tail_A, tail_V=tail_V, tail_C=C)


@dataclass(frozen=True)
class Adjoint:
    """Gradient of ``log|V| + f(F)`` in each ``Sigma``, and in the cross-products themselves.

    ``A``, ``E``, ``V`` follow the chain (empty where they were not asked for), ``B`` is the remainder's. Off-diagonal
    parts count once: ``d f = sum tr(A dA) + 2 tr(E dE') + 2 tr(V dV') + tr(B dB)``.
    """

    sigma: list[Array]  # (K, K) per block, symmetric: d f = tr(sigma dSigma)
    A: dict[int, Array]
    E: dict[tuple[int, int], Array]
    V: dict[int, Cross]
    B: Array
    steps: dict[int, tuple[Cross, dict[int, Array], Array]]  # of chain steps, `Y = V G` with V and E, and `H`


def gradient(system: System, done: Sweep, F_bar: Array, *, inputs: bool = False) -> Adjoint:
    """Differentiate ``log|V| + f(F)`` with ``F_bar`` the gradient of ``f``, on request also in the cross-products."""
    tail_grads, B_bar = _back_through_tail(system, done, F_bar, inputs=inputs)
    chain_grads: list[Array] = [np.empty(0)] * len(done.steps)
    A_bar: dict[int, Array] = {}
    E_bar: dict[tuple[int, int], Array] = {}
    V_bar: dict[int, Cross] = {}
    returned: dict[int, tuple[Cross, dict[int, Array], Array]] = {}
    reached = {j for step in done.steps for j in step.E}  # stages that earlier ones change
    for i in reversed(range(len(done.steps))):
        step = done.steps[i]
        stage = step.stage
        YV = step.V.sample_product(B_bar)  # what the remaining gradient does to this stage's cross-products
        if not (step.E or i in reached or inputs) and all(m.k == 1 for m in step.stage.block.members):
            chain_grads[i] = _scalar_gradient(step, YV, float(B_bar[-1, -1]))
            continue
        YE: dict[int, Array] = {}
        for k in step.E:
            Y, seen = from_parents(stage, k, V_bar[k], step.V, step.E[k])
            YV = YV + seen
            for j, e in step.E.items():
                Y = Y + times_parents(stage, min(j, k), e, between(A_bar, E_bar, j, k))
            YE[k] = Y
        H = YV.contract(step.V)
        for k, e in step.E.items():
            H = H + YE[k] @ transposed(e)
        H = of_copies(step.stage, H, float(B_bar[-1, -1]))
        returned[i] = YV, YE, H
        chain_grads[i] = _sigma_gradient(step.A, step.Q, H, step.stage.copies)
        if i in reached or inputs:  # earlier stages need the gradient in this stage's cross-products
            A_bar[i] = step.stage.copies * step.Q + step.Q @ H @ step.Q
            V_bar[i] = YV.times(-step.Q)
            for k, Y in YE.items():
                E_bar[i, k] = -step.Q @ Y
    return Adjoint(sigma=[*chain_grads, *tail_grads], A=A_bar, E=E_bar, V=V_bar, B=B_bar, steps=returned)


def of_cells(system: System, bar: Adjoint) -> Array:
    """Gradient in the weights of the cells from that in the cross-products, ``(n_cells,)``; no groups are shared."""
    n = len(cast(CellColumns, system.source).omega)
    out = np.zeros(n)
    at = [_positions(block, n) for block in system.blocks]
    n_chain = len(system.chain)
    tail = [
        (rows.start + group * block.K + column, value)
        for block, rows, effects in zip(system.tail, system.tail_rows, at[n_chain:], strict=True)
        for group, column, value in effects
    ]
    for i, effects in enumerate(at[:n_chain]):
        for group, column, value in effects:
            for _, other, further in effects:
                out += value * further * bar.A[i][group, column, other]
            for j in system.chain[i].E:
                for _, other, further in at[j]:
                    out += 2.0 * value * further * bar.E[i, j][group, column, other]
            for place, further in tail:
                out += 2.0 * value * further * bar.V[i].at(group, column, place)
    for place, value in tail:
        for other, further in tail:
            out += value * further * bar.B[place, other]
    return out


def _positions(block: Block, n: int) -> list[tuple[Index, Index, Array]]:
    """Of every effect the group of each of ``n`` cells, its column there and its value; 0 for cells outside."""
    out = []
    for m in block.members:
        for a in range(m.k):
            group, column, value = np.zeros(n, dtype=np.intp), np.zeros(n, dtype=np.intp), np.zeros(n)
            group[block.cells], column[block.cells] = block.codes, m.start + np.asarray(m.place) * m.k + a
            value[block.cells] = m.basis[:, a]
            out.append((group, column, value))
    return out


def of_copies(stage: Stage, H: Array, weight: float) -> Array:
    """``V G V'`` of a stage: summed over groups that are alike, with ``weight`` of what meets ``y`` alone."""
    if stage.copies > 1 and len(H) > 1:
        H = H.sum(axis=0, keepdims=True)
    if stage.S is not None:
        H = H + weight * stage.S
    return 0.5 * (H + transposed(H))


def _scalar_gradient(step: Eliminated, YV: Cross, weight: float) -> Array:
    """The same of a stage that meets no other, where only the diagonal of ``Sigma`` can move: ``(K, K)``, diagonal."""
    A, S = step.A, step.stage.S
    if A.shape[1] == 1:
        H = of_copies(step.stage, YV.contract(step.V), weight)
        return _sigma_gradient(A, step.Q, H, step.stage.copies)
    AQ = A @ step.Q
    P = np.eye(A.shape[1]) - AQ
    seen = step.V.times(P).contract_diagonal(YV.times(P))  # of P V G V'P'
    if S is not None:
        seen = seen + weight * np.einsum("ab,ab->a", P[0] @ S[0], P[0])
    left = np.einsum("gaa->a", A) - np.einsum("gab,gab->a", AQ, A)
    return np.diag(step.stage.copies * left - seen)


def _sigma_gradient(A: Array, Q: Array, H: Array, copies: int) -> Array:
    if A.shape[1] == 1:
        P = 1.0 - A * Q
        return (copies * A * P - P * H * P).sum(axis=0)
    P = np.eye(A.shape[1]) - A @ Q
    G = (copies * P @ A - P @ H @ transposed(P)).sum(axis=0)
    return 0.5 * (G + G.T)


def _back_through_tail(system: System, done: Sweep, F_bar: Array, *, inputs: bool) -> tuple[list[Array], Array]:
    """Gradients in the tail's Sigmas, and (where it is needed) the gradient in the remainder ``B``."""
    t = system.t
    if not t:
        return [], F_bar
    tail, A, V, C = system.tail, done.tail_A, done.tail_V, done.tail_C
    L_tail = done.factors[len(done.steps) :]
    M_inverse = full_symmetric(sla.lapack.dpotri(C, lower=1)[0])
    QV = solve_spd(C, tail_times(tail, L_tail, V, transpose=True))
    QV = tail_times(tail, L_tail, QV, transpose=False)
    PV = V - A @ QV
    grads = []
    for block, L, rows in zip(tail, L_tail, system.tail_rows, strict=True):
        u = PV[rows].reshape(block.q, block.K, -1)
        explained = np.einsum("lac,cd,lbd->ab", u, F_bar, u, optimize=True)
        grads.append(_unexplained(system, done, L_tail, M_inverse, block, L, rows) - explained)
    if not (done.steps or inputs):
        return grads, F_bar
    B_bar = np.empty_like(system.B)
    low_rank = QV @ F_bar
    np.add(congruence(tail, L_tail, M_inverse, transpose=False), low_rank @ QV.T, out=B_bar[:t, :t])
    B_bar[:t, t:] = -low_rank
    B_bar[t:, :t] = B_bar[:t, t:].T
    B_bar[t:, t:] = F_bar
    return grads, B_bar


def _unexplained(
    system: System, done: Sweep, L_tail: tuple[Array, ...], M_inverse: Array, block: Block, L: Array, rows: slice
) -> Array:
    """Sum over the levels of a tail block of its part of ``A - A Q A``, ``(K, K)``.

    With ``M = I + L'A L`` this is ``L'^-1 (I - M^-1) L^-1``, at no further cost. Near a singular ``L`` that loses
    digits, and the triangular solve with ``L'A`` takes its place.
    """
    q, K = block.q, block.K
    levels = np.arange(q)
    A = done.tail_A
    of_levels = A[rows, rows].reshape(q, K, q, K)[levels, :, levels, :].sum(axis=0)
    smallest = float(np.linalg.svd(L, compute_uv=False)[-1])
    if smallest**2 * np.trace(of_levels) / block.size > _WELL_CONDITIONED:
        kept = q * np.eye(K) - M_inverse[rows, rows].reshape(q, K, q, K)[levels, :, levels, :].sum(axis=0)
        half = np.linalg.solve(L.T, kept)
        return np.asarray(np.linalg.solve(L.T, half.T), dtype=np.float64)
    scaled = tail_times(system.tail, L_tail, np.ascontiguousarray(A[:, rows]), transpose=True)
    R = solve_lower(done.tail_C, scaled).reshape(-1, K)  # (t q, K): the columns of one level side by side
    return of_levels - R.T @ R


def full_symmetric(lower: Array) -> Array:
    """Full matrix of a lower triangle whose upper part is zero."""
    full = lower + lower.T
    full.flat[:: len(full) + 1] *= 0.5
    return full


def conditional_modes(system: System, done: Sweep, v: Array) -> list[Array]:
    """Random effects given fixed effects, ``Sigma Z'V^-1 [X y] v`` per block with ``v = (-b, 1)``: ``(q, K)`` each."""
    t = system.t
    r = np.concatenate([np.zeros(t), v])  # coefficients of the remainder's columns in what is left to explain
    modes: list[Array] = []
    if t:
        L_tail = done.factors[len(done.steps) :]
        z = tail_times(system.tail, L_tail, (done.tail_V @ v)[:, None], transpose=True)
        z = solve_spd(done.tail_C, z)
        u = tail_times(system.tail, L_tail, z, transpose=False)[:, 0]
        r[:t] = -u
        modes = [u[rows].reshape(b.q, b.K) for rows, b in zip(system.tail_rows, system.tail, strict=True)]
    chain_modes: dict[int, Array] = {}
    for i in reversed(range(len(done.steps))):
        step = done.steps[i]
        rhs = step.V.dot(r[:, None])
        for k, e in step.E.items():
            rhs = rhs - e @ chain_modes[k][step.stage.parent[k]][:, :, None]
        chain_modes[i] = (step.Q @ rhs)[:, :, 0]
    return [chain_modes[i] for i in range(len(done.steps))] + modes


# Cross-products of further columns ``W``: with those of the chain, ``(q, K, c)`` per block, with the remainder's,
# ``(m, c)``, and with themselves, ``(c, c)``.
Products = tuple[list[Array], Array, Array]


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
            chain[i] += times_parents(stage, j, e, coefficients[j])
            chain[j] += products_in_parents(stage, j, e, c)
    gram = in_remainder.T @ remainder
    for c, product in zip(coefficients[:n_chain], chain, strict=True):
        gram += c.reshape(-1, width).T @ product.reshape(-1, width)
    return chain, remainder, gram


def through(system: System, done: Sweep, products: Products) -> tuple[Array, Array]:
    """``W'V^-1 W`` and ``X'V^-1 W`` of new columns by running them through the factorised sweep."""
    chain, remainder, gram = products
    rhs, width = list(chain), len(gram)
    for i, step in enumerate(done.steps):
        Qr = step.Q @ rhs[i]
        gram = gram - rhs[i].reshape(-1, width).T @ Qr.reshape(-1, width)
        remainder = remainder - step.V.transpose_dot(Qr)
        for j, e in step.E.items():
            rhs[j] = rhs[j] - products_in_parents(step.stage, j, e, Qr)
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
    rhs, remainder = list(products[0]), products[1]
    for i, step in enumerate(done.steps):
        Qr = step.Q @ rhs[i]
        remainder = remainder - step.V.transpose_dot(Qr)
        for j, e in step.E.items():
            rhs[j] = rhs[j] - products_in_parents(step.stage, j, e, Qr)
    in_remainder = np.zeros_like(remainder)
    if system.tail:
        tail_factors = done.factors[len(done.steps) :]
        inner = tail_times(system.tail, tail_factors, remainder[: system.t], transpose=True)
        u = tail_times(system.tail, tail_factors, solve_spd(done.tail_C, inner), transpose=False)
        in_remainder[: system.t] = u
    of_block: dict[int, Array] = {}
    for i in reversed(range(len(done.steps))):
        step = done.steps[i]
        left = rhs[i] - step.V.dot(in_remainder)
        for k, e in step.E.items():
            left = left - times_parents(step.stage, k, e, of_block[k])
        of_block[i] = step.Q @ left
    return [*(of_block[i] for i in range(len(done.steps))), *system.by_tail_block(in_remainder)]


def projected_gram(system: System, done: Sweep, RX: Array, products: Products) -> Array:
    """``W'P W`` of new columns."""
    gram, fixed = through(system, done, products)
    if system.p:
        h = solve_lower(RX, fixed)
        gram = gram - h.T @ h
    return gram


def joined(first: Products, coefficients: Sequence[Array], rest: Sequence[Products], system: System) -> Products:
    """Columns side by side: random effects with ``coefficients``, and sets of others orthogonal to each other."""
    chain = [np.concatenate(c, axis=2) for c in zip(first[0], *(p[0] for p in rest), strict=True)]
    remainder = np.hstack([first[1], *(p[1] for p in rest)])
    n, width = len(first[2]), remainder.shape[1]
    gram = np.zeros((width, width))
    gram[:n, :n] = first[2]
    gram[n:, n:] = sla.block_diag(*(of_set for _, _, of_set in rest))
    n_chain = len(system.chain)
    for c, product in zip(coefficients[:n_chain], chain, strict=True):
        gram[:n, n:] += c.reshape(-1, n).T @ product[:, :, n:].reshape(-1, width - n)
    if system.tail:
        in_tail = np.concatenate([c.reshape(-1, n) for c in coefficients[n_chain:]])
        gram[:n, n:] += in_tail.T @ remainder[: system.t, n:]
    gram[n:, :n] = gram[:n, n:].T
    return chain, remainder, gram
