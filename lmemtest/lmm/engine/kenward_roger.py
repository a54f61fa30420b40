"""Kenward and Roger's covariance of the fixed effects and denominator degrees of freedom, from cross-products.

With ``V = Z Sigma Z' + I`` (relative to the residual variance), ``Phi = (X'V^-1X)^-1`` and
``P = V^-1 - V^-1 X Phi X'V^-1``, let ``V_r = Z E_r Z'`` be the derivatives of ``V`` in the distinct elements of every
``Sigma_j``. The method does not depend on a linear change of the parameters, so the last direction, the residual's,
may be replaced by ``V`` itself: it then adds nothing to the bias of ``Phi``, and no differences of nearly equal
numbers remain. With ``M = Z'PZ``, ``N = Z'V^-1X`` and ``n`` rows the expected information is

    I_rs = tr(E_r M E_s M),   I_rV = tr(E_r M),   I_VV = n - p,                       W = 2 I^-1

(Kenward & Roger 1997, doi:10.2307/2533558), and

    Phi_A = Phi + 2 Phi (sum_rs W_rs N'E_r M E_s N) Phi,    dPhi_r = Phi N'E_r N Phi,    dPhi_V = Phi.

Stages of the chain that share no cells lead. Among their columns ``M = D - Y Y'`` with ``D`` block-diagonal by group
and ``Y`` as wide as what remains, so the elements of ``M`` among them are never formed; the other blocks are dense, and
the cost is that of a dense matrix of *their* columns.

Nothing is divided by ``Sigma``: a variance of zero keeps its derivative, as in R's pbkrtest, so that its uncertainty
counts and the answer is continuous there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, combinations_with_replacement, pairwise

import numpy as np
import scipy.linalg as sla

from lmemtest.core.arrays import Array, Index
from lmemtest.errors import DesignError
from lmemtest.lmm.engine.criterion import Criterion
from lmemtest.lmm.engine.cross import Cross, DenseCross, PartedCross
from lmemtest.lmm.engine.functions import Functions
from lmemtest.lmm.engine.optimize import Optimum
from lmemtest.lmm.engine.problem import Problem
from lmemtest.lmm.engine.products import Stage, System
from lmemtest.lmm.engine.structure import Block, Member
from lmemtest.lmm.engine.sweep import tail_times
from lmemtest.lmm.engine.theta import free_indices, solve_lower, solve_square

# Elements of the largest array: 1.2 GB.
_MAX_ELEMENTS = 150_000_000
# Columns of all factors but the leading ones: seconds of dense algebra.
_MAX_COLUMNS = 5_000
# Eigenvalue of the scaled information below which a direction is not identified (two terms that share a variance).
_FLAT = 1e-10


@dataclass(frozen=True)
class KenwardRoger:
    """Second-order behaviour of the covariance of the kept fixed effects, on the user's scale."""

    cov: Array  # ``(p, p)`` covariance without adjustment
    adjusted: Array  # ``(p, p)`` covariance with the adjustment for the estimated variances
    d_cov: Array  # ``(n_params, p, p)`` derivatives of ``cov``
    W: Array  # ``(n_params, n_params)`` covariance of the parameters that ``d_cov`` refers to

    def df(self, L: Array | Functions) -> Array:
        """Degrees of freedom of ``L b`` for every row of ``L``, ``(rows, p)``; NaN where ``L b`` has no variance."""
        variance, *slopes = Functions.of(L).quadratic_forms(np.concatenate([self.cov[None], self.d_cov]))
        with np.errstate(invalid="ignore", divide="ignore"):
            h = np.stack(slopes, axis=1) / variance[:, None]
            return 2.0 / np.einsum("ri,ri->r", h @ self.W, h) + 0.0 * variance

    def f_test(self, L: Array, b: Array) -> tuple[float, float, float]:
        """Test ``L b = 0`` for ``(q, p)`` linearly independent rows; `LinAlgError` if they are not.

        ``scale * Wald / q`` with the adjusted covariance; the denominator degrees of freedom, NaN where the two moments
        that they match belong to no F distribution; Kenward and Roger's scale ``lambda``.
        """
        q = len(L)
        root = np.linalg.cholesky(L @ self.cov @ L.T)
        T = solve_lower(root, L)
        t = T @ self.d_cov @ T.T
        traces = np.trace(t, axis1=1, axis2=2)
        A1 = float(traces @ self.W @ traces)
        flat = t.reshape(len(t), -1)
        A2 = float(np.sum(self.W * (flat @ flat.T)))
        scale, df_den = matched_moments(q, A1, A2)
        d = L @ b
        wald = float(d @ np.linalg.solve(L @ self.adjusted @ L.T, d))
        return scale * wald / q, df_den, scale


def matched_moments(q: int, A1: float, A2: float) -> tuple[float, float]:
    """Scale and denominator degrees of freedom whose F distribution has the approximate moments of the Wald test.

    Notes
    -----
    For one row ``A1 = A2`` and the answer is ``(1, 2 / A1)`` exactly. No F distribution has the moments where the
    variance of the covariance is far too large (``A2 >= q``, or ``rho`` at or below ``1 / q``): NaN.

    Examples
    --------
    >>> matched_moments(1, 0.1, 0.1)
    (1.0, 20.0)
    """
    if q == 1:
        return 1.0, 2.0 / A2
    B = (A1 + 6.0 * A2) / (2.0 * q)
    g = ((q + 1) * A1 - (q + 4) * A2) / ((q + 2) * A2)
    below = 3.0 * q + 2.0 * (1.0 - g)
    c1, c2, c3 = g / below, (q - g) / below, (q + 2 - g) / below
    v0, v1, v2 = 1.0 + c1 * B, 1.0 - c2 * B, 1.0 - c3 * B
    mean = 1.0 - A2 / q
    if abs(v0) < 1e-10:
        v0 = 0.0
    # 0 / 0 is one, as in pbkrtest
    ratio = 1.0 if max(abs(mean), abs(v1)) < 1e-14 else mean / v1 if v1 else np.inf
    rho = ratio**2 * v0 / (q * v2) if v2 else np.inf
    df = 4.0 + (q + 2.0) / (q * rho - 1.0) if q * rho != 1.0 else np.inf
    if not df > 0 or mean <= 0:
        return float("nan"), float("nan")
    # as in pbkrtest: near 2 the mean of F does not exist, so it cannot be matched
    scale = 1.0 if abs(df - 2.0) < 1e-2 else mean if np.isinf(df) else df * mean / (df - 2.0)
    return (float(scale), float(df)) if scale > 0 else (float("nan"), float("nan"))


def kenward_roger(problem: Problem, optimum: Optimum) -> KenwardRoger:
    """Adjusted covariance and what the degrees of freedom need, at a REML optimum.

    A `DesignError` says where the factors other than the largest are too large for dense algebra.
    """
    system, at = problem.system, optimum.criterion
    p = system.p
    n_random = problem.n_theta
    information = np.zeros((n_random + 1, n_random + 1))
    information[-1, -1] = system.n_rows - p
    d_precision = np.zeros((n_random, p, p))  # N'E_r N
    bias = np.zeros((p, p))
    W = np.array([[2.0 / information[-1, -1]]])
    if n_random:
        parts, dense = projected(system, at)
        pick = _elements(problem)
        rows = _slices(pick)
        information[:-1, :-1] = _information(parts, dense, pick)
        for part in parts:
            of_term, D = rows[part.member.term], pick[part.member.term]
            information[of_term, -1] += D @ _trace(dense, part).ravel()
            d_precision[of_term] += np.tensordot(D, _outer(part.N), 1)
        information[-1, :-1] = information[:-1, -1]
        W = 2.0 * _pseudo_inverse(information)
        bias = _bias(parts, dense, pick, W[:-1, :-1])
    root = solve_square(problem.RX, solve_lower(at.RX, np.eye(p)).T)  # user's Phi = root root'
    inner = solve_lower(at.RX, np.eye(p))
    sigma2 = at.sigma2 * problem.y_scale**2
    Phi = root @ root.T
    d_cov = np.concatenate([root @ (inner @ d_precision @ inner.T) @ root.T, Phi[None]])
    adjusted = Phi + 2.0 * root @ (inner @ bias @ inner.T) @ root.T
    return KenwardRoger(
        cov=sigma2 * Phi,
        adjusted=sigma2 * 0.5 * (adjusted + adjusted.T),
        d_cov=sigma2 * d_cov,
        W=W,
    )


def _outer(N: Array) -> Array:
    """``sum_l N_la N_lc'`` at ``(a, c)``, ``(k k, p, p)``."""
    k, p = N.shape[1:]
    flat = N.reshape(len(N), k * p)
    return (flat.T @ flat).reshape(k, p, k, p).transpose(0, 2, 1, 3).reshape(-1, p, p)


# ---------------------------------------------------------------------- elements of the covariance matrices


def _elements(problem: Problem) -> list[Array]:
    """Per term ``(n_elements, k^2)``: the symmetric 0-1 matrices of the distinct elements of its ``Sigma``."""
    out = []
    for shape in problem.shapes:
        rows = []
        for c, r in zip(*free_indices(shape), strict=True):
            E = np.zeros((shape.k, shape.k))
            E[[r, c], [c, r]] = 1.0
            rows.append(E.ravel())
        out.append(np.array(rows))
    return out


def _slices(pick: list[Array]) -> list[slice]:
    ends = [0, *accumulate(len(D) for D in pick)]
    return [slice(a, b) for a, b in pairwise(ends)]


def _regrouped(G: Array, ki: int, kj: int) -> Array:
    """``[(a, b), (c, d)] -> [(a, c), (b, d)]`` for ``a, c`` in term i and ``b, d`` in term j (and back)."""
    return G.reshape(ki, kj, ki, kj).transpose(0, 2, 1, 3).reshape(ki * ki, kj * kj)


def _information(parts: Sequence[Part], dense: Array, pick: list[Array]) -> Array:
    """``tr(E_r M E_s M)`` for all pairs of elements."""
    slices = _slices(pick)
    out = np.zeros((slices[-1].stop,) * 2)
    grams = {id(part): _gram(part) for part in parts if isinstance(part, LeadingPart)}
    for one, two in combinations_with_replacement(parts, 2):
        i, j = one.member.term, two.member.term
        ki, kj = one.member.k, two.member.k
        if isinstance(two, DensePart):
            F = _between(dense, one, two)
            G = _regrouped(F.T @ F, ki, kj)
        else:
            G = grams[id(one)] @ grams[id(two)].T
            if isinstance(one, LeadingPart) and two.stage is one.stage:
                D, near = _within(one, two)
                mixed = D.T @ near
                G += _regrouped(one.stage.copies * (D.T @ D) - mixed - mixed.T, ki, kj)
        products = pick[i] @ G @ pick[j].T
        out[slices[i], slices[j]] += products
        if one is not two:
            out[slices[j], slices[i]] += products.T
    return out


def _gram(part: LeadingPart) -> Array:
    """``Y_a'Y_c`` at ``(a, c)``, ``(k k, w w)``."""
    k, w = part.Y.shape[1:]
    flat = part.Y.reshape(-1, k * w)
    return (flat.T @ flat).reshape(k, w, k, w).transpose(0, 2, 1, 3).reshape(k * k, w * w)


def _bias(parts: Sequence[Part], dense: Array, pick: list[Array], W: Array) -> Array:
    """``sum_rs W_rs N'E_r M E_s N``, ``(p, p)``."""
    slices = _slices(pick)
    p = W.shape[0] and parts[0].N.shape[2]
    total = np.zeros((p, p))
    for one, two in combinations_with_replacement(parts, 2):
        i, j = one.member.term, two.member.term
        weights = pick[i].T @ W[slices[i], slices[j]] @ pick[j]  # [(a, c), (b, d)]
        if isinstance(one, LeadingPart) and isinstance(two, LeadingPart):
            of_pair = _leading_bias(one, two, weights)
        elif isinstance(two, DensePart):  # as the leading ones come first
            of_pair = _dense_bias(dense, one, two, weights)
        total += of_pair if one is two else of_pair + of_pair.T
    return 0.5 * (total + total.T)


def _by_element(weights: Array, ki: int, kj: int) -> Array:
    """``[(a, c), (b, d)] -> [(c, b), (a, d)]``: what ``M[l, c, m, b]`` does to ``N[l, a]`` and ``N[m, d]``."""
    return weights.reshape(ki, ki, kj, kj).transpose(1, 2, 0, 3).reshape(ki * kj, ki * kj)


def _dense_bias(dense: Array, one: Part, two: DensePart, weights: Array) -> Array:
    p = one.N.shape[2]
    li, lj, ki, kj = len(one.N), len(two.N), one.member.k, two.member.k
    between = _between(dense, one, two) @ _by_element(weights, ki, kj)
    between = between.reshape(li, lj, ki, kj).transpose(0, 2, 1, 3).reshape(li * ki, lj * kj)
    return one.N.reshape(-1, p).T @ (between @ two.N.reshape(-1, p))


def _leading_bias(one: LeadingPart, two: LeadingPart, weights: Array) -> Array:
    """The part of ``Y Y'`` and, within a stage, that of ``D``."""
    m, o, p = one.member, two.member, one.N.shape[2]
    J, gram = _cross_gram(one), _cross_gram(two)  # Y_c'N_a at (c, a)
    by_row = J.reshape(m.k, m.k, -1, p).transpose(1, 0, 2, 3).reshape(m.k**2, -1)  # (a, c)
    weighted = (weights.T @ by_row).reshape(-1, p)  # (b, d)
    out = -weighted.T @ gram.reshape(-1, p)
    if two.stage is one.stage:
        D = _within(one, two)[0] @ _by_element(weights, m.k, o.k)
        D = D.reshape(-1, m.r, o.r, m.k, o.k).transpose(0, 1, 3, 2, 4).reshape(-1, m.r * m.k, o.r * o.k)
        N = one.N_of_stage
        out += N[:, m.columns].reshape(-1, p).T @ (D @ N[:, o.columns]).reshape(-1, p)
    return np.asarray(out)


def _cross_gram(part: LeadingPart) -> Array:
    """``Y_c'N_a`` at ``(c, a)``, ``(k k, w, p)``."""
    (k, w), p = part.Y.shape[1:], part.N.shape[2]
    flat = part.Y.reshape(-1, k * w).T @ part.N.reshape(-1, k * p)
    return flat.reshape(k, w, k, p).transpose(0, 2, 1, 3).reshape(k * k, w, p)


def _pseudo_inverse(information: Array) -> Array:
    """Inverse of an information matrix on the directions that it sees."""
    scale = np.sqrt(np.maximum(information.diagonal(), 0.0))
    scale[scale == 0] = 1.0
    values, vectors = np.linalg.eigh(information / np.outer(scale, scale))
    seen = values > _FLAT * values[-1]
    return (vectors[:, seen] / values[seen]) @ vectors[:, seen].T / np.outer(scale, scale)


# ---------------------------------------------------------------------- cross-products seen through P


@dataclass(frozen=True)
class LeadingPart:
    """Levels of a term in a leading stage, with what all its columns have."""

    member: Member
    stage: Stage
    D: Array  # (q, K, K) or, of groups that are alike, (1, K, K)
    Y_of_stage: Array  # (q, K, w)
    rest: Array  # (q, K, w2): M between the stage and the columns of the dense blocks
    N_of_stage: Array  # (q, K, p)

    @cached_property
    def N(self) -> Array:
        """``(levels, k, p)``."""
        return self._of_levels(self.N_of_stage)

    @cached_property
    def Y(self) -> Array:
        """``(levels, k, w)``."""
        return self._of_levels(self.Y_of_stage)

    def _of_levels(self, M: Array) -> Array:
        return M[:, self.member.columns].reshape(-1, self.member.k, M.shape[2])


@dataclass(frozen=True)
class DensePart:
    """Levels of a term in a dense block."""

    member: Member
    N: Array  # (levels, k, p)
    columns: Index  # (levels, k) among those of the dense blocks


Part = LeadingPart | DensePart


def _between(dense: Array, one: Part, two: DensePart) -> Array:
    """``M`` between the levels of two parts, as ``(levels levels, k k)``."""
    columns = two.columns.ravel()
    if isinstance(one, LeadingPart):
        of_columns = one.rest[:, one.member.columns][:, :, columns]
    else:
        of_columns = dense[np.ix_(one.columns.ravel(), columns)]
    ki, kj = one.member.k, two.member.k
    return of_columns.reshape(len(one.N), ki, len(two.N), kj).transpose(0, 2, 1, 3).reshape(-1, ki * kj)


def _trace(dense: Array, part: Part) -> Array:
    """``sum_l M_ll``, ``(k, k)``."""
    if isinstance(part, DensePart):
        at = part.columns
        return np.asarray(dense[at[:, :, None], at[:, None, :]].sum(axis=0), dtype=np.float64)
    near = np.tensordot(part.Y, part.Y, axes=((0, 2), (0, 2)))
    return np.asarray(part.stage.copies * part.member.level_blocks(part.D.sum(axis=0)) - near)


def _within(one: LeadingPart, two: LeadingPart) -> tuple[Array, Array]:
    """``D`` and ``Y Y'`` between two parts of one stage, within groups, ``(groups r r, k k)``.

    Of groups that are alike these are one ``D`` and the sum of all ``Y Y'``.
    """
    m, o = one.member, two.member
    Y, Z = one.Y_of_stage[:, m.columns], one.Y_of_stage[:, o.columns]
    if one.stage.copies > 1:
        near = np.tensordot(Y, Z, axes=((0, 2), (0, 2)))[None]
    else:
        near = Y @ Z.transpose(0, 2, 1)

    def by_level(M: Array) -> Array:
        return M.reshape(-1, m.r, m.k, o.r, o.k).transpose(0, 1, 3, 2, 4).reshape(-1, m.k * o.k)

    return by_level(one.D[:, m.columns, o.columns]), by_level(near)


def projected(system: System, at: Criterion) -> tuple[tuple[Part, ...], Array]:
    """``M`` and ``N`` by parts of the terms, the leading ones first, and ``M`` between the columns of the dense blocks.

    A `DesignError` says where the dense blocks are too large.
    """
    leading, dense = _leading(system)
    _check_size(system, leading, dense)
    done, p = at.sweep, system.p
    w2 = sum(b.size for b in dense)
    T0, S = _stacked(system, leading)
    width = w2 + p
    # eliminate the leading stages: everything through (I + Z_1 Sigma_1 Z_1')^-1
    keep, T = [], []
    for i, here in enumerate(T0):
        step = done.steps[i]
        flat = here.reshape(-1, width)
        keep.append(np.eye(step.A.shape[1]) - step.A @ step.Q)
        S = S - flat.T @ (step.Q @ here).reshape(-1, width)
        T.append((keep[i] @ here).reshape(-1, width))
    # then the dense blocks: everything through V^-1
    halves = [np.empty((len(here), 0)) for here in T]
    if w2:
        halves, T, S = _through_dense(dense, done.factors[len(leading) :], T, S)
    # and the fixed effects: everything through P
    right = solve_lower(at.RX, S[w2:, :w2])
    parts: list[Part] = []
    for i, stage in enumerate(leading):
        left = solve_lower(at.RX, np.ascontiguousarray(T[i][:, w2:].T))
        q, K = stage.block.q, stage.block.K
        D = keep[i] @ done.steps[i].A
        of_stage = (
            0.5 * (D + D.transpose(0, 2, 1)),
            np.hstack([halves[i], left.T]).reshape(q, K, -1),
            (T[i][:, :w2] - left.T @ right).reshape(q, K, w2),
            T[i][:, w2:].reshape(q, K, p),
        )
        parts += [LeadingPart(member, stage, *of_stage) for member in stage.block.members]
    start, N = 0, S[w2:, :w2].T
    for block in dense:
        columns = start + np.arange(block.size).reshape(block.q, block.K)
        for m in block.members:
            at_m = columns[:, m.columns].reshape(-1, m.k)
            parts.append(DensePart(m, N[at_m], at_m))
        start += block.size
    return tuple(parts), S[:w2, :w2] - right.T @ right


def _leading(system: System) -> tuple[tuple[Stage, ...], tuple[Block, ...]]:
    """Stages without cells in common, and the other blocks."""
    n = 1 if any(stage.E for stage in system.chain) else len(system.chain)
    return system.chain[:n], system.blocks[n:]


def _through_dense(
    blocks: tuple[Block, ...], factors: tuple[Array, ...], T: list[Array], S: Array
) -> tuple[list[Array], list[Array], Array]:
    """Eliminate dense blocks from the cross-products ``T`` of others with ``[Z_dense X]`` and from theirs, ``S``."""
    w2 = sum(b.size for b in blocks)
    scaled = tail_times(blocks, factors, np.ascontiguousarray(S[:w2]), transpose=True)  # Lambda'S
    inner = tail_times(blocks, factors, np.ascontiguousarray(scaled[:, :w2].T), transpose=True)
    inner.flat[:: w2 + 1] += 1.0
    C = sla.cholesky(0.5 * (inner + inner.T), lower=True, check_finite=False)
    R = solve_lower(C, scaled)
    halves = []
    for part in T:
        turned = tail_times(blocks, factors, np.ascontiguousarray(part[:, :w2].T), transpose=True)
        halves.append(solve_lower(C, turned).T)
    return halves, [part - half @ R for part, half in zip(T, halves, strict=True)], S - R.T @ R


def _stacked(system: System, leading: tuple[Stage, ...]) -> tuple[list[Array], Array]:
    """Cross-products with ``[Z_dense X]``: of the leading stages, ``(q, K, w)``, and of these columns, ``(w, w)``."""
    n, p, t = len(leading), system.p, system.t
    later = system.chain[n:]
    starts = [0, *accumulate(s.block.size for s in later)]
    offset = starts[-1]  # first column of the tail
    width = offset + t + p
    S = np.zeros((width, width))
    S[offset:, offset:] = system.B[: t + p, : t + p]
    first_columns = [-1] * n + starts
    T0 = [_row_block(stage, first_columns, width, offset) for stage in leading]
    for i, stage in enumerate(later):
        size, first = stage.block.size, starts[i]
        rows = _row_block(stage, first_columns, width, offset).reshape(size, width)
        columns = first + np.arange(size).reshape(stage.block.q, 1, stage.block.K)
        rows[np.arange(size).reshape(stage.block.q, -1, 1), columns] = stage.A
        S[first : first + size, first:] = rows[:, first:]
        S[first:, first : first + size] = rows[:, first:].T
    return T0, S


def _row_block(stage: Stage, starts: list[int], width: int, offset: int) -> Array:
    """Cross-products of a stage with the later stages of the chain, the tail and X, ``(q, K, width)``."""
    q, K = stage.block.q, stage.block.K
    out = np.zeros((q, K, width))
    for j, e in stage.E.items():
        columns = starts[j] + stage.parent[j][:, None] * e.shape[2] + np.arange(e.shape[2])
        out[np.arange(q)[:, None, None], np.arange(K)[None, :, None], columns[:, None, :]] = e
    out[:, :, offset:] = _dense(stage.V, q, K)[:, :, : width - offset]
    return out


def _dense(cross: Cross, q: int, K: int) -> Array:
    if isinstance(cross, DenseCross):
        return cross.values
    if isinstance(cross, PartedCross):
        return cross.dot(np.eye(cross.m))
    out = np.zeros((q, K, cross.pattern.m))
    out[cross.pattern.row, :, cross.pattern.col] = cross.values
    return out


def _check_size(system: System, leading: tuple[Stage, ...], dense: tuple[Block, ...]) -> None:
    width = sum(b.size for b in dense) + system.p
    k = max(m.k for b in system.blocks for m in b.members)
    elements = max(width**2 * k**2, k**4, *(s.block.size * max(width, s.block.K) for s in leading))
    if width <= _MAX_COLUMNS and elements <= _MAX_ELEMENTS:
        return
    sizes = ", ".join(f"{b.q:,} levels x {b.K}" for b in system.blocks)
    raise DesignError(
        f"ddf='kenward-roger' needs dense algebra that these random effects ({sizes}) are too large for: the limits "
        f"are {_MAX_COLUMNS:,} columns beside the largest factor and {_MAX_ELEMENTS:,} numbers in one array. Use "
        "ddf='satterthwaite', which has no such limit."
    )
