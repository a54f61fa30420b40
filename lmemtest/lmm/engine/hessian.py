"""Second derivatives of the criterion in the parameters of the search: cheap and nearly right, or exact.

*Average information* takes solves alone. For a direction ``dSigma_i`` let ``w_i = Z dSigma_i Z' P y``. The second
derivative of -2 log L holds ``2 w_i'P w_j / s2 - tr(P V_i P V_j)``; its average with its expectation is
``w_i'P w_j / s2`` (Gilmour, Thompson & Cullis 1995, doi:10.2307/2533274), which needs no traces. Two further parts are
exact: the second derivative of ``Sigma = L L'`` in ``L``, ``2 tr(G dL dL')`` with ``G`` the gradient in ``Sigma``,
which keeps the curvature right at the boundary, and the profiling of ``s2``, ``- dr2_i dr2_j / (m s2^2)`` where it is
not held.

The *Hessian* is the derivative of the gradient along every parameter, without differences. A dot is the derivative
along one direction, given by ``dSigma`` of one factor or by a change of the cross-products (a residual variance). Every
step of the sweep is differentiated, then every step of its adjoint. With ``P = I - A Q`` and ``R = A P' = A - A Q A``
of a step,

    dQ = P' dSigma P - Q dA Q,    dP = -P dA Q - R dSigma P,    dR = P dA P' - R dSigma R,

so nothing is divided by ``Sigma``, and the Hessian holds at the boundary too. A direction costs about as much as two
evaluations of the gradient.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy.linalg as sla

from lmemtest.core.arrays import Array
from lmemtest.lmm.engine import theta as th
from lmemtest.lmm.engine.criterion import Criterion
from lmemtest.lmm.engine.cross import Cross, left_multiply
from lmemtest.lmm.engine.problem import Problem
from lmemtest.lmm.engine.products import System
from lmemtest.lmm.engine.sweep import (
    Adjoint,
    Eliminated,
    Products,
    add_products,
    between,
    congruence,
    from_parents,
    full_symmetric,
    joined,
    multiply,
    of_copies,
    products_in_parents,
    projected_gram,
    times_parents,
    transposed,
)
from lmemtest.lmm.engine.theta import free_indices, solve_lower, solve_spd


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
        coefficients, products, d_r2 = _theta_directions(problem, x, at)
        if problem.strata is not None:
            of_strata, d_r2_strata = problem.strata.directions(problem.split(x)[1], at)
            products = joined(products, coefficients, of_strata, at.system)
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


def _theta_directions(problem: Problem, x: Array, at: Criterion) -> tuple[list[Array], Products, Array]:
    """Coefficients and cross-products of ``w_i = Z dSigma_i Z'P y`` per element of theta, and ``d r2 / d theta_i``."""
    z = at.scores()
    steps = directions(problem, x)
    n = len(steps)
    coefficients = [np.zeros((b.q, b.K, n)) for b in at.system.blocks]
    d_r2 = np.zeros(n)
    for i, (term, dL, L) in enumerate(steps):
        for b, m in at.system.places(term):
            q = len(z[b])
            of_member = z[b][:, m.columns].reshape(q, m.r, m.k)
            half = of_member @ dL
            coefficients[b][:, m.columns, i] = (of_member @ L @ dL.T + half @ L.T).reshape(q, -1)
            d_r2[i] -= 2.0 * float(np.sum(half * (of_member @ L)))
    return coefficients, multiply(at.system, coefficients, np.zeros((at.system.p + 1, n))), d_r2


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


def hessian(problem: Problem, x: Array, at: Criterion) -> Array:
    """Hessian of the criterion in the search's parameters, ``(n_free, n_free)``."""
    if not problem.n_free:
        return np.empty((0, 0))
    if problem.leaf is not None:
        inside = problem.leaf.evaluate(x)
        inner, point = problem.leaf.inside(x)
        own_g = inner.derivatives(point, inside)[1]
        return problem.leaf.curvature(x, inside, own_g, hessian(inner, point, inside))
    if problem.reduced is not problem and at.system is problem.system:
        return hessian(problem.reduced, x, problem.reduced.evaluate(x))
    gradients, g = problem.derivatives(x, at)
    here = _Point.of(problem, at)
    factors = problem.unpack(x)
    columns = []
    for term, dL, L in directions(problem, x):
        slope = here.along(_moving(at.system, term, dL @ L.T + L @ dL.T), None)
        column = _column(problem, x, at, factors, slope)
        of_factors = [2.0 * gradients[i] @ dL if i == term else np.zeros_like(f) for i, f in enumerate(factors)]
        column[: problem.n_theta] += th.pack(of_factors, problem.shapes)
        columns.append(column)
    if problem.strata is not None:
        for i, log_tau in enumerate(problem.split(x)[1]):
            part, tau = problem.strata.systems[i + 1], float(np.exp(log_tau))
            slope = here.along({}, (part, tau))
            column = _column(problem, x, at, factors, slope)
            place = problem.n_theta + i
            column[place] += g[place] + problem.strata.n_rows[i + 1]  # its own precision is a factor of its gradient
            columns.append(column)
    H = np.array(columns)
    return 0.5 * (H + H.T)


def _moving(system: System, term: int, dSigma: Array) -> dict[int, Array]:
    """``dSigma`` of one term as that of the blocks that hold its levels."""
    out = {}
    for b, m in system.places(term):
        derivative = np.zeros((system.blocks[b].K,) * 2)
        derivative[m.columns, m.columns] = np.kron(np.eye(m.r), dSigma)
        out[b] = derivative
    return out


def _column(problem: Problem, x: Array, at: Criterion, factors: Sequence[Array], slope: _Slope) -> Array:
    """Derivative of the gradient in ``x`` with the factors and precisions that multiply it held."""
    bar, d_r2 = slope
    by_term = problem.by_term(bar.sigma)
    column = th.pack([2.0 * dG @ L for dG, L in zip(by_term, factors, strict=True)], problem.shapes)
    if problem.strata is not None:
        of_strata = problem.strata.gradient(problem.split(x)[1], bar, at.d_weight * d_r2)
        column = np.append(column, of_strata + problem.strata.n_rows[1:])  # a number of rows does not change
    return column


# The derivative of the adjoint along one direction, and that of the residual sum of squares.
_Slope = tuple[Adjoint, float]
# Derivatives of A, E, V and Q of one chain step at its turn, and of its Sigma; None where the direction is not felt.
_Moved = tuple[Array | None, dict[int, Array] | None, Cross | None, Array | None, Array | None]
# What all directions share of one chain step: P, R and P H P'.
_Turn = tuple[Array, Array, Array]


def _turn(step: Eliminated, H: Array) -> _Turn:
    P = np.eye(step.A.shape[1]) - step.A @ step.Q
    return P, P @ step.A, P @ H @ transposed(P)


@dataclass(frozen=True)
class _Point:
    """The adjoint at one point, and what all directions share."""

    problem: Problem
    at: Criterion
    bar: Adjoint
    turns: tuple[_Turn, ...]
    F_bar: Array
    # of the tail at its turn: Q = Sigma (I + A Sigma)^-1, P = I - A Q, R = A P', and their products with V
    Q: Array
    P: Array
    R: Array
    QV: Array
    PV: Array

    @classmethod
    def of(cls, problem: Problem, at: Criterion) -> _Point:
        done, system, t = at.sweep, at.system, at.system.t
        Q = np.empty((0, 0))
        if t:
            tail_factors = done.factors[len(done.steps) :]
            M_inverse = full_symmetric(sla.lapack.dpotri(done.tail_C, lower=1)[0])
            Q = congruence(system.tail, tail_factors, M_inverse, transpose=False)
        P = np.eye(t) - done.tail_A @ Q
        R = P @ done.tail_A
        bar = at.adjoint(inputs=True)
        return cls(
            problem=problem,
            at=at,
            bar=bar,
            turns=tuple(_turn(step, bar.steps[i][2]) for i, step in enumerate(done.steps)),
            F_bar=at.F_bar,
            Q=Q,
            P=P,
            R=0.5 * (R + R.T),
            QV=Q @ done.tail_V,
            PV=P @ done.tail_V,
        )

    def along(self, sigma: dict[int, Array], inputs: tuple[System, float] | None) -> _Slope:
        """The derivative along ``dSigma`` of some blocks, or along a number times a system's cross-products."""
        moved, dB = self._swept(sigma, inputs)
        tail_rows = enumerate(self.at.system.tail_rows, start=len(self.at.sweep.steps))
        tail = next(((rows, sigma[i]) for i, rows in tail_rows if i in sigma), None)  # what moves there, and its dSigma
        d_ss = inputs[1] * inputs[0].ss_within if inputs is not None else 0.0
        d_F_bar, d_r2 = self._d_F_bar(self._d_F(tail, dB), d_ss)
        return self._back(moved, tail, dB, d_F_bar), d_r2

    # -- the sweep ----------------------------------------------------------------------------------------------

    def _swept(self, sigma: dict[int, Array], inputs: tuple[System, float] | None) -> tuple[list[_Moved], Array | None]:
        """Derivatives along the elimination, and of the remainder that it leaves."""
        steps = self.at.sweep.steps
        dA: list[Array | None] = [None] * len(steps)
        dE: list[dict[int, Array]] = [{} for _ in steps]
        dV: list[Cross | None] = [None] * len(steps)
        dB: Array | None = None
        if inputs is not None:
            part, tau = inputs
            dA = [tau * s.A for s in part.chain]
            dE = [{j: tau * e for j, e in s.E.items()} for s in part.chain]
            dV = [s.V.scaled(tau) for s in part.chain]
            dB = tau * part.B
        moved: list[_Moved] = []
        for i, step in enumerate(steps):
            a, dSigma = dA[i], sigma.get(i)
            dQ = _d_Q(step, self.turns[i][0], a, dSigma)
            moved.append((a, dE[i] if a is not None else None, dV[i], dQ, dSigma))
            if dQ is None:
                continue
            # d(V'QV) = V'X + X'V with X = dQ V / 2 + Q dV
            V, half = step.V, 0.5 * dQ
            V_moved = dV[i]
            XV = V.times(half) if V_moved is None else V.times(half) + V_moved.times(step.Q)
            XE = {j: half @ e + step.Q @ dE[i][j] if a is not None else half @ e for j, e in step.E.items()}
            for j, e in step.E.items():
                product = products_in_parents(step.stage, j, e, XE[j])
                dA[j] = _sum(dA[j], -(product + transposed(product)))
                for k in (k for k in step.E if k > j):
                    cross = products_in_parents(step.stage, j, e, XE[k])
                    cross += products_in_parents(step.stage, j, XE[j], step.E[k])
                    dE[j][k] = _sum(dE[j].get(k), -cross)
                before = dV[j]
                dV_j = steps[j].V.scaled(0.0) if before is None else before
                dV[j] = add_products(step.stage, j, add_products(step.stage, j, dV_j, -e, XV), -XE[j], V)
            product = V.product(XV)
            dB = _sum(dB, -(product + product.T))
            if step.stage.S is not None:
                dB[-1, -1] -= np.vdot(dQ, step.stage.S)
        return moved, dB

    def _d_F(self, tail: tuple[slice, Array] | None, dB: Array | None) -> Array:
        t, QV, PV = self.at.system.t, self.QV, self.PV
        dF = np.zeros_like(self.F_bar)
        if dB is not None:
            cross = dB[:t, t:].T @ QV
            dF += dB[t:, t:] - cross - cross.T + QV.T @ dB[:t, :t] @ QV
        if tail is not None:
            rows, dSigma = tail
            dF -= PV[rows].T @ _by_level(dSigma, PV[rows])
        return dF

    def _d_F_bar(self, dF: Array, d_ss: float) -> tuple[Array, float]:
        """Derivative of the gradient in ``F``, and of the residual sum of squares."""
        at, p = self.at, self.at.system.p
        v = at.v
        d_r2 = float(v @ dF @ v) + d_ss
        dv = np.append(-solve_spd(at.RX, dF[:p] @ v) if p else np.empty(0), 0.0)
        out = at.weight * (np.outer(dv, v) + np.outer(v, dv)) + at.d_weight * d_r2 * np.outer(v, v)
        if self.problem.reml and p:
            out[:p, :p] -= solve_spd(at.RX, solve_spd(at.RX, dF[:p, :p]).T)
        return out, d_r2

    # -- the adjoint --------------------------------------------------------------------------------------------

    def _back(self, moved: list[_Moved], tail: tuple[slice, Array] | None, dB: Array | None, d_F_bar: Array) -> Adjoint:
        """Derivative of the adjoint, stage by stage as `lmemtest.lmm.engine.sweep.gradient` goes."""
        wanted = self.problem.strata is not None
        tail_sigma, dB_bar = self._back_through_tail(tail, dB, d_F_bar)
        sigma: list[Array] = [np.empty(0)] * len(moved)
        A_bar: dict[int, Array] = {}
        E_bar: dict[tuple[int, int], Array] = {}
        V_bar: dict[int, Cross] = {}
        bar = self.bar
        for i in reversed(range(len(moved))):
            step, (YV, YE, H) = self.at.sweep.steps[i], bar.steps[i]
            _, dE, dV, dQ, _ = moved[i]
            dYV = step.V.sample_product(dB_bar)
            if dV is not None:
                dYV = dYV + dV.sample_product(bar.B)
            dYE: dict[int, Array] = {}
            for k in step.E:
                dY, seen = from_parents(step.stage, k, V_bar[k], step.V, step.E[k])
                dYV = dYV + seen
                if dV is not None and dE is not None:
                    of_moved, seen = from_parents(step.stage, k, bar.V[k], dV, dE[k])
                    dY, dYV = dY + of_moved, dYV + seen
                for j, e in step.E.items():
                    dY = dY + times_parents(step.stage, min(j, k), e, between(A_bar, E_bar, j, k))
                    if dE is not None:
                        dY = dY + times_parents(step.stage, min(j, k), dE[j], between(bar.A, bar.E, j, k))
                dYE[k] = dY
            dH = dYV.contract(step.V)
            if dV is not None:
                dH = dH + YV.contract(dV)
            for k, e in step.E.items():
                dH = dH + dYE[k] @ transposed(e)
                if dE is not None:
                    dH = dH + YE[k] @ transposed(dE[k])
            dH = of_copies(step.stage, dH, float(dB_bar[-1, -1]))
            sigma[i] = _d_sigma_gradient(step, self.turns[i], H, moved[i], dH)
            if i or wanted:
                Q = step.Q
                A_bar[i] = Q @ dH @ Q
                V_bar[i] = dYV.times(-Q)
                E_bar.update({(i, k): -Q @ dY for k, dY in dYE.items()})
                if dQ is not None:
                    one_side = dQ @ H @ Q
                    A_bar[i] = A_bar[i] + step.stage.copies * dQ + one_side + transposed(one_side)
                    V_bar[i] = V_bar[i] + YV.times(-dQ)
                    E_bar.update({(i, k): E_bar[i, k] - dQ @ Y for k, Y in YE.items()})
        return Adjoint(sigma=[*sigma, *tail_sigma], A=A_bar, E=E_bar, V=V_bar, B=dB_bar, steps={})

    def _back_through_tail(
        self, tail: tuple[slice, Array] | None, dB: Array | None, d_F_bar: Array
    ) -> tuple[list[Array], Array]:
        t = self.at.system.t
        if not t:
            return [], d_F_bar
        P, Q, R, QV, PV, F_bar = self.P, self.Q, self.R, self.QV, self.PV, self.F_bar
        A = self.at.sweep.tail_A
        dQV, dPV, PdA = np.zeros_like(QV), np.zeros_like(PV), None
        if dB is not None:
            dA = dB[:t, :t]
            seen = dB[:t, t:] - dA @ QV
            dQV, dPV, PdA = Q @ seen, seen, P @ dA
        if tail is not None:
            rows, dSigma = tail
            dQV = dQV + P[rows].T @ _by_level(dSigma, PV[rows])
        dPV = dPV - A @ dQV
        sigma = []
        for block, tail_rows in zip(self.at.system.tail, self.at.system.tail_rows, strict=True):
            one_side = _level_sum(dPV[tail_rows] @ F_bar, PV[tail_rows], block.K)
            G = -one_side - one_side.T - _level_sum(PV[tail_rows] @ d_F_bar, PV[tail_rows], block.K)
            if PdA is not None:
                G = G + _level_sum(PdA[tail_rows], P[tail_rows], block.K)
            if tail is not None:
                G = G - _level_sum(R[tail_rows, rows], _by_level(dSigma, R[rows, tail_rows]).T, block.K)
            sigma.append(0.5 * (G + G.T))
        if not (self.at.sweep.steps or self.problem.strata is not None):
            return sigma, d_F_bar
        low_rank = QV @ F_bar
        d_low = dQV @ F_bar + QV @ d_F_bar
        dB_bar = np.empty_like(self.at.system.B)
        dB_bar[:t, :t] = d_low @ QV.T + low_rank @ dQV.T
        if dB is not None:
            dB_bar[:t, :t] -= Q @ (dB[:t, :t] @ Q)
        if tail is not None:
            dB_bar[:t, :t] += P[rows].T @ _by_level(dSigma, P[rows])
        dB_bar[:t, t:] = -d_low
        dB_bar[t:, :t] = -d_low.T
        dB_bar[t:, t:] = d_F_bar
        return sigma, dB_bar


def _sum(first: Array | None, second: Array) -> Array:
    return second if first is None else first + second


def _by_level(small: Array, M: Array) -> Array:
    """``(I x small) M``: a ``(K, K)`` matrix times the rows of every level."""
    K = len(small)
    return small[0, 0] * M if K == 1 else (small @ M.reshape(-1, K, M.shape[1])).reshape(M.shape)


def _level_sum(left: Array, right: Array, K: int) -> Array:
    """``sum_l left_l right_l'`` over the levels of ``K`` rows."""
    by_row = [(left[a::K], right[a::K]) for a in range(K)]
    return np.array([[np.vdot(x, y) for _, y in by_row] for x, _ in by_row])


def _d_Q(step: Eliminated, P: Array, dA: Array | None, dSigma: Array | None) -> Array | None:
    dQ = None
    if dSigma is not None:
        rows = np.flatnonzero(dSigma.any(axis=0))
        moving = P[:, rows]
        dQ = transposed(moving) @ (dSigma[np.ix_(rows, rows)] @ moving)
    if dA is not None:
        dQ = _sum(dQ, -(step.Q @ dA @ step.Q))
    return dQ


def _d_sigma_gradient(step: Eliminated, turn: _Turn, H: Array, moved: _Moved, dH: Array) -> Array:
    """Derivative of ``sum_l R - P H P'``; where only the diagonal of ``Sigma`` can move, of its diagonal."""
    (P, R, PHP), (dA, _, _, _, dSigma) = turn, moved
    if all(m.k == 1 for m in step.stage.block.members):
        out = -_row_products(P @ dH, P)
        if dA is not None:
            PdA = P @ dA
            out += step.stage.copies * _row_products(PdA, P) + 2.0 * _row_products(PdA @ step.Q, P @ H)
        if dSigma is not None:
            rows = np.flatnonzero(dSigma.any(axis=0))
            RS = R[:, :, rows] * dSigma[rows, rows]
            out -= step.stage.copies * _row_products(RS, R[:, :, rows])
            out += 2.0 * _row_products(RS, transposed(PHP)[:, :, rows])
        return np.diag(out)
    moves = []  # dR and dP by what moves them
    if dA is not None:
        PdA = P @ dA
        moves.append((PdA @ transposed(P), -PdA @ step.Q))
    if dSigma is not None:
        moves.append((-R @ dSigma @ R, -R @ dSigma @ P))
    dG = -(P @ dH @ transposed(P))
    for dR, dP in moves:
        one_side = dP @ H @ transposed(P)
        dG = dG + step.stage.copies * dR - one_side - transposed(one_side)
    G = dG.sum(axis=0)
    return np.asarray(0.5 * (G + G.T))


def _row_products(left: Array, right: Array) -> Array:
    """Products of the rows of two stacks of matrices, summed over the stacks, ``(rows,)``."""
    return np.einsum("lab,lab->a", left, right)
