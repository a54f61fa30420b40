"""Kenward and Roger's covariance of the fixed effects and denominator degrees of freedom, from cross-products.

With ``V = Z Sigma Z' + I`` (relative to the residual variance), ``Phi = (X'V^-1X)^-1`` and
``P = V^-1 - V^-1 X Phi X'V^-1``, let ``V_r = Z E_r Z'`` be the derivatives of ``V`` in the distinct elements of every
``Sigma_j``. The method does not depend on a linear change of the parameters, so the last direction, the residual's,
may be replaced by ``V`` itself: it then adds nothing to the bias of ``Phi``, and no differences of nearly equal
numbers remain. With ``M = Z'PZ``, ``N = Z'V^-1X`` and ``n`` rows the expected information is

    I_rs = tr(E_r M E_s M),   I_rV = tr(E_r M),   I_VV = n - p,                       W = 2 I^-1

(Kenward & Roger 1997, doi:10.2307/2533558), and

    Phi_A = Phi + 2 Phi (sum_rs W_rs N'E_r M E_s N) Phi,    dPhi_r = Phi N'E_r N Phi,    dPhi_V = Phi.

The elements of ``M`` within the largest factor are never formed: there ``M = D - Y Y'`` with ``D`` block-diagonal and
``Y`` as wide as the other factors, so the cost is that of a dense matrix of the *other* factors' columns.

Nothing is divided by ``Sigma``: a variance of zero keeps its derivative, as in R's pbkrtest, so that its uncertainty
counts and the answer is continuous there.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate, combinations_with_replacement, pairwise

import numpy as np
import scipy.linalg as sla

from lmemtest.engine.blocks import Stage, System
from lmemtest.engine.criterion import Criterion
from lmemtest.engine.cross import Array, Cross, DenseCross, Index
from lmemtest.engine.optimize import Optimum
from lmemtest.engine.problem import Problem
from lmemtest.engine.sweep import Sweep, tail_times
from lmemtest.engine.theta import free_indices
from lmemtest.engine.triangular import solve_lower
from lmemtest.errors import DesignError

# Elements of the largest array: 1.2 GB.
_MAX_ELEMENTS = 150_000_000
# Columns of all factors but the largest: seconds of dense algebra.
_MAX_COLUMNS = 5_000
# Eigenvalue of the scaled information below which a direction is not identified (two terms that share a variance).
_FLAT = 1e-10


@dataclass(frozen=True)
class ScaledWald:
    """Scaled Wald test of ``L b = 0``."""

    statistic: float  # ``scale * Wald / df_num`` with the adjusted covariance
    # df_num, df_den: degrees of freedom; ``df_den`` is NaN where the two moments that it matches belong to no F
    # distribution
    df_num: int
    df_den: float
    scale: float  # Kenward and Roger's lambda


@dataclass(frozen=True)
class KenwardRoger:
    """Second-order behaviour of the covariance of the kept fixed effects, on the user's scale."""

    cov: Array  # ``(p, p)`` covariance without adjustment
    adjusted: Array  # ``(p, p)`` covariance with the adjustment for the estimated variances
    d_cov: Array  # ``(n_params, p, p)`` derivatives of ``cov``
    W: Array  # ``(n_params, n_params)`` covariance of the parameters that ``d_cov`` refers to

    def df(self, L: Array) -> Array:
        """Degrees of freedom of ``L b`` for every row of ``L``, ``(rows, p)``; NaN where ``L b`` has no variance."""
        variance = np.einsum("rp,pq,rq->r", L, self.cov, L)
        with np.errstate(invalid="ignore", divide="ignore"):
            h = np.einsum("rp,ipq,rq->ri", L, self.d_cov, L, optimize=True) / variance[:, None]
            return 2.0 / np.einsum("ri,ij,rj->r", h, self.W, h) + 0.0 * variance

    def f_test(self, L: Array, b: Array) -> ScaledWald:
        """Test ``L b = 0`` for ``(q, p)`` linearly independent rows; `LinAlgError` if they are not."""
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
        return ScaledWald(statistic=scale * wald / q, df_num=q, df_den=df_den, scale=scale)


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
        parts = _parts(system, at)
        pick = _elements(problem)
        information[:-1, :-1] = _information(parts, pick)
        information[:-1, -1] = information[-1, :-1] = np.concatenate(
            [D @ parts.trace(i).ravel() for i, D in enumerate(pick)]
        )
        W = 2.0 * _pseudo_inverse(information)
        for i, (rows, D) in enumerate(zip(_slices(pick), pick, strict=True)):
            N = parts.N[i]
            d_precision[rows] = np.tensordot(D, np.einsum("lap,lcq->acpq", N, N, optimize=True).reshape(-1, p, p), 1)
        bias = _bias(parts, pick, W[:-1, :-1])
        by_term = _term_order(problem)
        order = np.append(by_term, n_random)
        W, d_precision = W[np.ix_(order, order)], d_precision[by_term]
    root = sla.solve_triangular(problem.RX, solve_lower(at.RX, np.eye(p)).T)  # user's Phi = root root'
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


# ---------------------------------------------------------------------- cross-products seen through V^-1 and P


@dataclass(frozen=True)
class _Parts:
    """``M = Z'PZ`` and ``N = Z'V^-1X`` by block; the first block is the largest."""

    D: Array  # (q, K, K) block-diagonal part of M in the first block
    Y: Array  # (q, K, w): M = D - Y Y' in the first block
    first: Array  # (q, K, w2): M between the first block and the columns of the others
    rest: Array  # (w2, w2): M between the others
    N: tuple[Array, ...]  # (q_i, K_i, p) per block
    sizes: tuple[tuple[int, int], ...]  # (q_i, K_i)

    def columns(self, i: int) -> slice:
        """Columns of block ``i > 0`` in `rest`."""
        ends = [0, *accumulate(q * K for q, K in self.sizes[1:])]
        return slice(ends[i - 1], ends[i])

    def pair(self, i: int, j: int) -> Array:
        """``M`` between blocks ``i < j``, or ``0 < i = j``, as ``(q_i q_j, K_i K_j)``."""
        (qi, Ki), (qj, Kj) = self.sizes[i], self.sizes[j]
        own = self.first[:, :, self.columns(j)] if i == 0 else self.rest[self.columns(i), self.columns(j)]
        return own.reshape(qi, Ki, qj, Kj).transpose(0, 2, 1, 3).reshape(qi * qj, Ki * Kj)

    def trace(self, i: int) -> Array:
        """``sum_l M_ll``, ``(K_i, K_i)``."""
        if i == 0:
            return self.D.sum(axis=0) - np.einsum("law,lbw->ab", self.Y, self.Y, optimize=True)
        q, K = self.sizes[i]
        levels = np.arange(q)
        own = self.rest[self.columns(i), self.columns(i)].reshape(q, K, q, K)
        return np.asarray(own[levels, :, levels, :].sum(axis=0), dtype=np.float64)


def _parts(system: System, at: Criterion) -> _Parts:
    _check_size(system)
    done = at.sweep
    lead = done.steps[0]
    blocks = system.blocks[1:]
    w2 = sum(b.size for b in blocks)
    q, K = lead.stage.block.q, lead.stage.block.K
    T0, S = _stacked(system)
    width = T0.shape[2]
    # eliminate the first block: everything through (I + Z_1 Sigma_1 Z_1')^-1
    keep = np.eye(K) - lead.A @ lead.Q
    D = keep @ lead.A
    T = (keep @ T0).reshape(q * K, width)
    S = S - T0.reshape(q * K, width).T @ (lead.Q @ T0).reshape(q * K, width)
    # then the others: everything through V^-1
    half = np.empty((q * K, 0))
    if w2:
        half, T, S = _through_rest(system, done, T, S)
    # and the fixed effects: everything through P
    N1, N2 = T[:, w2:], S[w2:, :w2].T
    left, right = solve_lower(at.RX, N1.T), solve_lower(at.RX, N2.T)
    Y = np.hstack([half, left.T]).reshape(q, K, -1)
    N = [N1.reshape(q, K, -1)]
    start = 0
    for b in blocks:
        N.append(N2[start : start + b.size].reshape(b.q, b.K, -1))
        start += b.size
    return _Parts(
        D=0.5 * (D + D.transpose(0, 2, 1)),
        Y=Y,
        first=(T[:, :w2] - left.T @ right).reshape(q, K, w2),
        rest=S[:w2, :w2] - right.T @ right,
        N=tuple(N),
        sizes=tuple((b.q, b.K) for b in system.blocks),
    )


def _through_rest(system: System, done: Sweep, T: Array, S: Array) -> tuple[Array, Array, Array]:
    """Eliminate all blocks but the first from its cross-products ``T`` with ``[Z_rest X]`` and from theirs, ``S``."""
    blocks, factors = system.blocks[1:], done.factors[1:]
    w2 = sum(b.size for b in blocks)
    scaled = tail_times(blocks, factors, np.ascontiguousarray(S[:w2]), transpose=True)  # Lambda'S
    inner = tail_times(blocks, factors, np.ascontiguousarray(scaled[:, :w2].T), transpose=True)
    inner.flat[:: w2 + 1] += 1.0
    C = sla.cholesky(0.5 * (inner + inner.T), lower=True, check_finite=False)
    R = solve_lower(C, scaled)
    half = solve_lower(C, tail_times(blocks, factors, np.ascontiguousarray(T[:, :w2].T), transpose=True)).T
    return half, T - half @ R, S - R.T @ R


def _stacked(system: System) -> tuple[Array, Array]:
    """Cross-products of the first block, ``(q, K, w)``, and of the others and X, ``(w, w)``, with ``[Z_rest X]``."""
    chain, p, t = system.chain, system.p, system.t
    starts = [0, *accumulate(s.block.size for s in chain[1:])]
    offset = starts[-1]  # first column of the tail
    width = offset + t + p
    S = np.zeros((width, width))
    S[offset:, offset:] = system.B[: t + p, : t + p]
    T0 = _row_block(chain[0], [-1, *starts], width, offset)
    for i, stage in enumerate(chain[1:], start=1):
        size, first = stage.block.size, starts[i - 1]
        own = _row_block(stage, [-1, *starts], width, offset).reshape(size, width)
        columns = first + np.arange(size).reshape(stage.block.q, 1, stage.block.K)
        own[np.arange(size).reshape(stage.block.q, -1, 1), columns] = stage.A
        S[first : first + size, first:] = own[:, first:]
        S[first:, first : first + size] = own[:, first:].T
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
    out = np.zeros((q, K, cross.pattern.m))
    out[cross.pattern.row, :, cross.pattern.col] = cross.values
    return out


def _check_size(system: System) -> None:
    lead, *others = system.blocks
    width = sum(b.size for b in others) + system.p
    elements = max(width**2 * lead.K**2, lead.size * width, *(b.K**4 for b in system.blocks))
    if width <= _MAX_COLUMNS and elements <= _MAX_ELEMENTS:
        return
    sizes = ", ".join(f"{b.q:,} levels x {b.K}" for b in system.blocks)
    raise DesignError(
        f"ddf='kenward-roger' needs dense algebra that these random effects ({sizes}) are too large for: the limits "
        f"are {_MAX_COLUMNS:,} columns beside the largest factor and {_MAX_ELEMENTS:,} numbers in one array. Use "
        "ddf='satterthwaite', which has no such limit."
    )


# ---------------------------------------------------------------------- elements of the covariance matrices


def _elements(problem: Problem) -> list[Array]:
    """Per block ``(n_elements, K^2)``: the symmetric 0-1 matrices of the distinct elements of its terms' ``Sigma``."""
    out = []
    for block in problem.system.blocks:
        rows = []
        for i, place in block.places(problem.sizes):
            for c, r in zip(*free_indices(problem.shapes[i]), strict=True):
                E = np.zeros((block.K, block.K))
                E[place, place][[r, c], [c, r]] = 1.0
                rows.append(E.ravel())
        out.append(np.array(rows))
    return out


def _slices(pick: list[Array]) -> list[slice]:
    ends = [0, *accumulate(len(D) for D in pick)]
    return [slice(a, b) for a, b in pairwise(ends)]


def _term_order(problem: Problem) -> Index:
    """Positions of the elements, listed by block, in the order of the model's terms."""
    members = [i for block in problem.system.blocks for i in block.members]
    counts = [shape.n_theta for shape in problem.shapes]
    starts = dict(zip(members, [0, *accumulate(counts[i] for i in members)], strict=False))
    return np.array([starts[i] + j for i, n in enumerate(counts) for j in range(n)], dtype=np.intp)


def _regrouped(G: Array, Ki: int, Kj: int) -> Array:
    """``[(a, b), (c, d)] -> [(a, c), (b, d)]`` for ``a, c`` in block i and ``b, d`` in block j (and back)."""
    return G.reshape(Ki, Kj, Ki, Kj).transpose(0, 2, 1, 3).reshape(Ki * Ki, Kj * Kj)


def _information(parts: _Parts, pick: list[Array]) -> Array:
    """``tr(E_r M E_s M)`` for all pairs of elements."""
    slices = _slices(pick)
    out = np.empty((slices[-1].stop,) * 2)
    for i, j in combinations_with_replacement(range(len(pick)), 2):
        Ki, Kj = parts.sizes[i][1], parts.sizes[j][1]
        if j == 0:
            G = _first_information(parts)
        else:
            F = parts.pair(i, j)
            G = _regrouped(F.T @ F, Ki, Kj)
        out[slices[i], slices[j]] = pick[i] @ G @ pick[j].T
        out[slices[j], slices[i]] = out[slices[i], slices[j]].T
    return out


def _first_information(parts: _Parts) -> Array:
    """``sum_lm M[l, a, m, b] M[l, c, m, d]`` at ``[(a, c), (b, d)]`` within the first block, where ``M = D - Y Y'``."""
    q, K = parts.sizes[0]
    D = parts.D.reshape(q, K * K)
    near = np.einsum("law,lbw->lab", parts.Y, parts.Y, optimize=True).reshape(q, K * K)
    mixed = D.T @ near
    gram = _first_gram(parts.Y).reshape(K * K, -1)
    return _regrouped(D.T @ D - mixed - mixed.T, K, K) + gram @ gram.T


def _first_gram(Y: Array) -> Array:
    """``Y_a'Y_c``, ``(K, K, w, w)``."""
    K, w = Y.shape[1], Y.shape[2]
    out = np.empty((K, K, w, w))
    for a, c in combinations_with_replacement(range(K), 2):
        out[a, c] = Y[:, a].T @ Y[:, c]
        out[c, a] = out[a, c].T
    return out


def _bias(parts: _Parts, pick: list[Array], W: Array) -> Array:
    """``sum_rs W_rs N'E_r M E_s N``, ``(p, p)``."""
    slices = _slices(pick)
    p = parts.N[0].shape[2]
    total = np.zeros((p, p))
    for i, j in combinations_with_replacement(range(len(pick)), 2):
        weights = pick[i].T @ W[slices[i], slices[j]] @ pick[j]  # [(a, c), (b, d)]
        own = _first_bias(parts, weights) if j == 0 else _pair_bias(parts, i, j, weights)
        total += own if i == j else own + own.T
    return 0.5 * (total + total.T)


def _pair_bias(parts: _Parts, i: int, j: int, weights: Array) -> Array:
    (qi, Ki), (qj, Kj) = parts.sizes[i], parts.sizes[j]
    p = parts.N[0].shape[2]
    # [(a, c), (b, d)] -> [(c, b), (a, d)]: what M[l, c, m, b] does to N[l, a] and N[m, d]
    by_element = weights.reshape(Ki, Ki, Kj, Kj).transpose(1, 2, 0, 3).reshape(Ki * Kj, Ki * Kj)
    between = (parts.pair(i, j) @ by_element).reshape(qi, qj, Ki, Kj).transpose(0, 2, 1, 3).reshape(qi * Ki, qj * Kj)
    return parts.N[i].reshape(-1, p).T @ (between @ parts.N[j].reshape(-1, p))


def _first_bias(parts: _Parts, weights: Array) -> Array:
    q, K = parts.sizes[0]
    N, Y = parts.N[0], parts.Y
    p = N.shape[2]
    by_element = weights.reshape(K, K, K, K).transpose(1, 2, 0, 3).reshape(K * K, K * K)
    within = (parts.D.reshape(q, K * K) @ by_element).reshape(q, K, K)
    near = N.reshape(-1, p).T @ (within @ N).reshape(-1, p)
    J = np.einsum("lcw,lap->cawp", Y, N, optimize=True)  # Y_c'N_a
    by_row = J.transpose(1, 0, 2, 3).reshape(K * K, -1)  # (a, c)
    weighted = (weights.T @ by_row).reshape(-1, p)  # (b, d)
    return near - weighted.T @ J.reshape(-1, p)


def _pseudo_inverse(information: Array) -> Array:
    """Inverse of an information matrix on the directions that it sees."""
    scale = np.sqrt(np.maximum(information.diagonal(), 0.0))
    scale[scale == 0] = 1.0
    values, vectors = np.linalg.eigh(information / np.outer(scale, scale))
    seen = values > _FLAT * values[-1]
    return (vectors[:, seen] / values[seen]) @ vectors[:, seen].T / np.outer(scale, scale)
