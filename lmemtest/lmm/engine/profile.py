"""The deviance with one quantity held at a value, and its minimum over everything else.

The quantity is a standard deviation, a correlation, a residual standard deviation or a linear function of the fixed
effects. With ``F = [X y]' V^-1 [X y]`` from the sweep, ``b = F_XX^-1 F_Xy`` and ``r2`` the residual sum of squares,

    -2 log L = log|V| + m log(2 pi s2) + r2 / s2 - sum log w      (REML: + log|F_XX|;  m = n, REML n - p)

and ``s2 = r2 / m`` where nothing holds it. ``a'b = c`` adds ``(c - a'b)^2 / (a' F_XX^-1 a)`` to ``r2``, so a profile
over a fixed effect needs no other sweep than the fit itself.

Variances: a term's relative covariance is ``Sigma = B^-1 T T' B^-1'`` with ``T`` lower triangular and the first rows
of ``B`` the effects in question, on whitened columns. Then effect 0 has the standard deviation ``s T_00`` times a
constant, and effects 0 and 1 the correlation ``rho`` if ``(T_10, T_11) = t (rho, sqrt(1 - rho^2))`` with ``T_00``
and ``t`` positive. What is held is replaced, the rest of ``T`` is free, and the minimum needs no constraints. ``rho``
is the sine of an angle, so that the criterion is smooth where the correlation is one.

A standard deviation that is zero has a zero gradient in ``T``, whatever the data say. As in the search of the fit,
the gradient in ``Sigma`` on the null space of what is free decides whether it stays there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np
import scipy.linalg as sla

from lmemtest.core.arrays import Array, Index
from lmemtest.lmm.engine import theta as th
from lmemtest.lmm.engine.criterion import Anova, Criterion, MeanSquares
from lmemtest.lmm.engine.optimize import symmetric_rank_one, trust_region_step
from lmemtest.lmm.engine.problem import Problem
from lmemtest.lmm.engine.products import System
from lmemtest.lmm.engine.residual import Strata
from lmemtest.lmm.engine.structure import Shape
from lmemtest.lmm.engine.sweep import Sweep, gradient, sweep
from lmemtest.lmm.engine.theta import solve_lower, solve_spd, solve_square

# A Newton step that promises less than this has converged: 1e-10 in the square root of the deviance at its cut.
_DECREMENT = 5e-10
# Standard deviations in units of the residual's below which an effect has no variance (the search sets such to zero).
NO_VARIANCE = 1e-6
# Likewise for what is left of a covariance matrix: its null space, and the slope there that makes it grow.
_NULL, _GROWS = 1e-4, -1e-5
# Steps of the finite differences, in units of the parameters; their error goes as the square.
_STEP = 1e-4
_LOG_FLOOR = float(np.log(1e-3))  # where the search for a positive factor begins at the lowest


@dataclass(frozen=True, eq=False)
class Target:
    """What is held: a standard deviation or correlation of a term, a residual deviation, or ``row @ b``."""

    kind: Literal["sd", "corr", "residual sd", "linear"]
    term: int = -1
    effects: tuple[int, ...] = ()  # of the term: one, or two that are correlated
    stratum: int = 0
    row: Array = field(default_factory=lambda: np.empty(0))  # coefficients of the kept fixed effects


@dataclass(frozen=True)
class _Layout:
    """How a term's ``T`` is made of what is held (its first rows) and what is free."""

    B: Array  # (k, k)
    held: int  # rows with a place of their own: 0, 1 (a standard deviation) or 2 (a correlation)
    diagonal: bool  # effects that are independent: B puts them in another order only, and T is diagonal

    @cached_property
    def root(self) -> Array:
        return np.asarray(np.linalg.inv(self.B)) if self.held else self.B

    @cached_property
    def free(self) -> tuple[Index, Index]:
        """Rows and columns of the free entries, column by column as in theta."""
        columns, rows = th.free_indices(Shape(len(self.B), self.diagonal))
        kept = rows >= self.held
        return rows[kept], columns[kept]


def _layout(R: Array, effects: Sequence[int], *, diagonal: bool) -> tuple[_Layout, Array]:
    """The rotation that puts ``effects`` first, and the lengths that were divided out."""
    k = len(R)
    if not effects:
        return _Layout(B=np.eye(k), held=0, diagonal=diagonal), np.empty(0)
    if diagonal:
        order = [*effects, *(i for i in range(k) if i not in effects)]
        return _Layout(B=np.eye(k)[order], held=len(effects), diagonal=True), 1.0 / R.diagonal()[list(effects)]
    rows = np.linalg.solve(R.T, np.eye(k)[:, list(effects)]).T  # user's effect = row @ whitened effects
    lengths = np.linalg.norm(rows, axis=1)
    rows = rows / lengths[:, None]
    rest = np.linalg.svd(rows)[2][len(effects) :]
    return _Layout(B=np.vstack([rows, rest]), held=len(effects), diagonal=False), lengths


@dataclass(frozen=True)
class Evaluation:
    """The criterion at one point, with what its gradient needs."""

    value: float
    u: float
    phi: Array
    T: tuple[Array, ...]
    source: tuple[System, Sweep, Array] | MeanSquares  # the elimination, with the gradient in its ``F``
    weight: float  # of the residual sum of squares: 1 / s2
    g_log_s2: float
    pull: float = 0.0  # derivative in the value of the linear function


class Constrained:
    """The criterion as a function of a target's coordinate ``u`` and of all other parameters ``phi``.

    ``u`` is the target itself (user's scale), the angle ``arcsin(rho)`` for a correlation. ``phi`` holds the free
    entries of every term's ``T``, the log precision ratios of the strata, and for a standard deviation ``log s2``
    (unless the problem holds it), for a correlation ``log T_00`` and ``log t``.
    """

    def __init__(self, problem: Problem, target: Target, *, reml: bool = False) -> None:
        if reml and target.kind == "linear":
            raise ValueError("the restricted likelihood does not hold the fixed effects")
        self.problem, self.target, self.reml = problem, target, reml
        layouts = []
        for i, (R, shape) in enumerate(zip(problem.R, problem.shapes, strict=True)):
            layout, lengths = _layout(R, target.effects if i == target.term else (), diagonal=shape.diagonal)
            layouts.append(layout)
            if target.kind == "sd" and i == target.term:
                self._unit = problem.y_scale * float(lengths[0])
        self.layouts = tuple(layouts)
        positive = target.kind in ("sd", "residual sd")
        self.lower, self.upper = (0.0, np.inf) if positive else (-np.inf, np.inf)
        if target.kind == "corr":
            self.lower, self.upper = -0.5 * np.pi, 0.5 * np.pi
        if target.kind == "linear":
            self._a = problem.y_scale * solve_square(problem.RX, target.row, transpose=True)
            self._shift = float(target.row @ problem.offset)

    # -- the fit's point --------------------------------------------------------------------------------------

    def at_fit(self, x: Array, at: Criterion) -> tuple[float, Array]:
        """``u`` and ``phi`` of a point of the search."""
        problem, target = self.problem, self.target
        log_s2 = float(np.log(at.sigma2))
        T = [
            th.root_of(lay.B @ L, diagonal=lay.diagonal) for lay, L in zip(self.layouts, problem.unpack(x), strict=True)
        ]
        parts = [t[lay.free] for t, lay in zip(T, self.layouts, strict=True)] + [problem.split(x)[1]]
        if target.kind == "sd":
            size = T[target.term][0, 0]
            u = 0.0 if size < NO_VARIANCE else float(size * self._unit * np.exp(0.5 * log_s2))
            parts.append(np.array([log_s2] if problem.residual_variance is None else []))
        elif target.kind == "corr":
            t = T[target.term]
            u = float(np.arctan2(t[1, 0], t[1, 1]))
            parts.append(np.log([max(t[0, 0], 1e-10), max(np.hypot(t[1, 0], t[1, 1]), 1e-10)]))
            if abs(t[1, 1]) < NO_VARIANCE * np.hypot(t[1, 0], t[1, 1]):
                u = float(np.copysign(0.5 * np.pi, t[1, 0]))
        elif target.kind == "residual sd":
            u = float(np.sqrt(problem.residual_variances(x, at)[target.stratum]))
        else:
            u = float(self._a @ at.b + self._shift)
        return u, np.concatenate(parts)

    def user(self, u: float) -> float:
        """The target's value at its coordinate."""
        return float(np.sin(u)) if self.target.kind == "corr" else u

    def search_point(self, ev: Evaluation) -> Array:
        """Whitened theta and log precision ratios of a point, for a new search of the whole model."""
        factors = [th.root_of(lay.root @ t, diagonal=lay.diagonal) for lay, t in zip(self.layouts, ev.T, strict=True)]
        return np.append(th.pack(factors, self.problem.shapes), self._delta(ev.phi))

    # -- evaluation -------------------------------------------------------------------------------------------

    @cached_property
    def _n_free(self) -> tuple[int, ...]:
        return tuple(len(lay.free[0]) for lay in self.layouts)

    def _delta(self, phi: Array) -> Array:
        first = sum(self._n_free)
        return phi[first : first + self.problem.n_free - self.problem.n_theta]

    def _log_s2(self, u: float, phi: Array) -> float | None:
        """Log residual variance where something holds it."""
        problem, target = self.problem, self.target
        if problem.residual_variance is not None:
            return float(np.log(problem.residual_variance))
        if target.kind == "sd":
            return float(phi[-1])
        if target.kind != "residual sd":
            return None
        held = 2.0 * float(np.log(u / problem.y_scale))
        if problem.strata is None:
            return held
        held += float(np.log(problem.strata.precision[target.stratum]))
        return held + (float(self._delta(phi)[target.stratum - 1]) if target.stratum else 0.0)

    def _triangles(self, u: float, phi: Array, log_s2: float | None) -> tuple[Array, ...]:
        out, start = [], 0
        for i, (lay, n) in enumerate(zip(self.layouts, self._n_free, strict=True)):
            T = np.zeros(lay.B.shape)
            T[lay.free] = phi[start : start + n]
            start += n
            target = self.target
            if target.kind == "sd" and i == target.term:
                T[0, 0] = u / (self._unit * np.exp(0.5 * (log_s2 or 0.0)))
            elif target.kind == "corr" and i == target.term:
                T[0, 0] = np.exp(phi[-2])
                T[1, :2] = np.exp(phi[-1]) * np.array([np.sin(u), np.cos(u)])
            out.append(T)
        return tuple(out)

    def evaluate(self, u: float, phi: Array) -> Evaluation | None:
        """The criterion, or None where a factorisation fails."""
        with np.errstate(over="ignore", invalid="ignore"):
            try:
                ev = self._evaluate(u, phi)
            except (np.linalg.LinAlgError, FloatingPointError):
                return None
        return ev if np.isfinite(ev.value) else None

    def _evaluate(self, u: float, phi: Array) -> Evaluation:
        problem = self.problem
        log_s2 = self._log_s2(u, phi)
        T = self._triangles(u, phi, log_s2)
        factors = [lay.root @ t for lay, t in zip(self.layouts, T, strict=True)]
        if not all(np.isfinite(f).all() for f in factors):
            raise np.linalg.LinAlgError("not finite")
        if self._anova is not None:
            return self._by_mean_squares(self._anova, u, phi, T, log_s2)
        if problem.leaf is not None:
            system, done = problem.leaf.swept(factors)
        else:
            system = problem.reduced.system if problem.strata is None else problem.strata.combined(self._delta(phi))
            done = sweep(system, th.block_factors(factors, system.blocks))
        p = system.p
        RX = sla.cholesky(done.F[:p, :p], lower=True, check_finite=False) if p else np.empty((0, 0))
        b = solve_spd(RX, done.F[:p, p])
        half = solve_lower(RX, done.F[:p, p])
        r2 = float(done.F[p, p] - half @ half) + system.ss_within
        pull = 0.0
        if self.target.kind == "linear":
            w = solve_spd(RX, self._a)
            lever = float(self._a @ w)
            gap = u - self._shift - float(self._a @ b)
            r2, b, pull = r2 + gap**2 / lever, b + w * (gap / lever), 2.0 * gap / lever
        if not r2 > 0:
            raise np.linalg.LinAlgError("the residual sum of squares is not positive")
        of_residuals, weight, g_log_s2 = _residual_part(r2, system.n_rows - (p if self.reml else 0), log_s2)
        value = done.logdet + of_residuals
        v = np.append(-b, 1.0)
        F_bar = weight * np.outer(v, v)
        if self.reml and p:
            value += 2.0 * float(np.log(RX.diagonal()).sum())
            F_bar[:p, :p] += solve_spd(RX, np.eye(p))
        return Evaluation(
            value=float(value - system.sum_log_w),
            u=u,
            phi=phi,
            T=T,
            source=(system, done, F_bar),
            weight=weight,
            g_log_s2=g_log_s2,
            pull=pull * weight,
        )

    @cached_property
    def _anova(self) -> Anova | None:
        """The mean squares of a balanced design, whose fixed effects stay where they are."""
        held = self.target.kind == "linear" or self.reml != self.problem.reml or self.problem.strata is not None
        return None if held else self.problem.anova

    def _by_mean_squares(
        self, anova: Anova, u: float, phi: Array, T: tuple[Array, ...], log_s2: float | None
    ) -> Evaluation:
        at = anova.evaluate(np.array([(lay.root @ t)[0, 0] for lay, t in zip(self.layouts, T, strict=True)]))
        of_residuals, weight, g_log_s2 = _residual_part(at.r2, at.m, log_s2)
        value = float(anova.df @ np.log(at.growth)) + of_residuals + anova.constant
        return Evaluation(value=value, u=u, phi=phi, T=T, source=at, weight=weight, g_log_s2=g_log_s2)

    def slopes(self, ev: Evaluation) -> tuple[float, Array, tuple[Array, ...]]:
        """Gradient in ``u``, in ``phi``, and per term in the free part of its covariance."""
        problem, target = self.problem, self.target
        strata: Strata | None = problem.strata
        at = ev.source
        if isinstance(at, MeanSquares):
            by_term = at.anova.gradients(at, ev.weight)
        elif problem.leaf is not None:
            factors = [lay.root @ t for lay, t in zip(self.layouts, ev.T, strict=True)]
            by_term = problem.leaf.gradients(factors, *at)
        else:
            bar = gradient(*at, inputs=strata is not None)
            by_term = problem.by_term(bar.sigma)
        rotated = [lay.root.T @ G @ lay.root for lay, G in zip(self.layouts, by_term, strict=True)]
        g_T = [2.0 * G @ t for G, t in zip(rotated, ev.T, strict=True)]
        parts = [g[lay.free] for g, lay in zip(g_T, self.layouts, strict=True)]
        g_delta = np.empty(0) if strata is None else strata.gradient(self._delta(ev.phi), bar, ev.weight)
        g_u = ev.pull
        if target.kind == "sd":
            g, t = g_T[target.term][0, 0], ev.T[target.term][0, 0]
            held = problem.residual_variance
            g_u = g / (self._unit * (np.exp(0.5 * ev.phi[-1]) if held is None else np.sqrt(held)))
            parts += [g_delta, np.array([ev.g_log_s2 - 0.5 * g * t] if held is None else [])]
        elif target.kind == "corr":
            g, t = g_T[target.term], ev.T[target.term]
            g_u = float(g[1, 0] * t[1, 1] - g[1, 1] * t[1, 0])
            parts += [g_delta, np.array([g[0, 0] * t[0, 0], g[1, 0] * t[1, 0] + g[1, 1] * t[1, 1]])]
        elif target.kind == "residual sd":
            g_u = 2.0 * ev.g_log_s2 / ev.u
            if target.stratum:
                g_delta = g_delta.copy()
                g_delta[target.stratum - 1] += ev.g_log_s2
            parts.append(g_delta)
        else:
            parts.append(g_delta)
        free = tuple(G[lay.held :, lay.held :] for G, lay in zip(rotated, self.layouts, strict=True))
        return float(g_u), np.concatenate(parts), free


def _residual_part(r2: float, m: int, log_s2: float | None) -> tuple[float, float, float]:
    """What the residual variance adds, and its derivatives in ``r2`` and in its log (0 if nothing holds it)."""
    if log_s2 is None:
        return m * (1.0 + float(np.log(2.0 * np.pi * r2 / m))), m / r2, 0.0
    weight = float(np.exp(-log_s2))
    return m * (float(np.log(2.0 * np.pi)) + log_s2) + r2 * weight, weight, m - r2 * weight


def has_variance(problem: Problem, x: Array, term: int, effect: int) -> bool:
    """Whether an effect's standard deviation at a point of the search is more than rounding."""
    layout, _ = _layout(problem.R[term], (effect,), diagonal=problem.shapes[term].diagonal)
    return bool(np.linalg.norm(layout.B[0] @ problem.unpack(x)[term]) >= NO_VARIANCE)


# ---------------------------------------------------------------------- minimum over phi


# The minimum over ``phi`` at one ``u``, its derivative in ``u``, and the curvature in units of `Minimiser.scale`.
Minimum = tuple[Evaluation, float, Array]


class Minimiser:
    """Minima over ``phi`` at one ``u`` after the other; each begins with the curvature that the last one learned."""

    def __init__(self, problem: Constrained, u: float, phi: Array) -> None:
        self.problem = problem
        self.evaluations = 0
        self.scale = np.ones(len(phi))
        self.u_scale = self._u_unit(u)
        H = self._differences(u, phi)
        # Units of one standard error; a second pass with them makes the differences as good as they can be.
        self.scale = _units(H.diagonal()[1:], phi)
        if H[0, 0] > 0:
            self.u_scale *= min(1.0, np.sqrt(2.0 / H[0, 0]))
        H = self._differences(u, phi)
        self.H = H[1:, 1:]
        self.tangent = -_solve(self.H, H[1:, 0]) / self.u_scale
        reduced = H[0, 0] + H[0, 1:] @ self.tangent * self.u_scale
        self.curvature = max(float(reduced), 0.0) / self.u_scale**2  # of the profile, in u

    def _u_unit(self, u: float) -> float:
        """A length of ``u`` over which the criterion changes smoothly."""
        problem = self.problem
        if problem.target.kind == "sd":
            return 0.1 * problem._unit
        if problem.target.kind == "residual sd":
            return 0.1 * u
        if problem.target.kind == "corr":
            return 0.1
        lever = float(np.linalg.norm(problem._a)) / np.sqrt(problem.problem.system.n_rows)
        return lever if lever > 0 else 1.0

    def _value(self, u: float, phi: Array) -> Evaluation | None:
        self.evaluations += 1
        return self.problem.evaluate(u, phi)

    def _gradient(self, ev: Evaluation) -> Array:
        return self.problem.slopes(ev)[1] * self.scale

    def _differences(self, u: float, phi: Array) -> Array:
        """Hessian in ``(u, phi)`` by central differences of the gradient, in units."""
        n = len(phi) + 1
        H = np.empty((n, n))
        units = np.append(self.u_scale, self.scale)
        for i in range(n):
            ends = []
            for sign in (1.0, -1.0):
                step = np.zeros(n)
                step[i] = sign * _STEP
                ev = self._value(u + step[0] * self.u_scale, phi + step[1:] * self.scale)
                if ev is None:
                    raise np.linalg.LinAlgError("the criterion cannot be evaluated next to the fit")
                in_u, in_phi, _ = self.problem.slopes(ev)
                ends.append(np.append(in_u, in_phi) * units)
            H[i] = (ends[0] - ends[1]) / (2.0 * _STEP)
        return 0.5 * (H + H.T)

    def at(self, u: float, *starts: Array, H: Array | None = None) -> Minimum:
        """The minimum at ``u`` from the first of `starts` where the criterion exists."""
        for start in starts:
            ev = self._value(u, self._lifted(start))
            if ev is not None:
                break
        else:
            raise np.linalg.LinAlgError("the criterion cannot be evaluated at any start")
        ev, H = self._descend(ev, self.H if H is None else H)
        for _ in range(5):
            off = self._escape(ev)
            if off is None:
                break
            ev, H = self._descend(off, H)
        return ev, self.problem.slopes(ev)[0], H

    def _lifted(self, phi: Array) -> Array:
        """A start from which positive factors can still move."""
        if self.problem.target.kind == "corr":
            phi = phi.copy()
            phi[-2:] = np.maximum(phi[-2:], _LOG_FLOOR)
        return phi

    def _descend(self, ev: Evaluation, H: Array) -> tuple[Evaluation, Array]:
        """Trust-region steps with a symmetric rank-one update of the curvature."""
        if not len(ev.phi):
            return ev, H
        g = self._gradient(ev)
        radius = 3.0
        for _ in range(100 + 10 * len(g)):
            step, promised = trust_region_step(g, H, radius)
            if promised < _DECREMENT:
                break
            trial = self._value(ev.u, ev.phi + step * self.scale)
            length = float(np.linalg.norm(step))
            if trial is None:
                radius = 0.25 * length
                continue
            gain = ev.value - trial.value
            noise = 1e-13 * max(1.0, abs(ev.value))
            there = self._gradient(trial)
            H = symmetric_rank_one(H, step, there - g - H @ step)
            if gain < 0.1 * promised - noise:
                radius = 0.25 * length
            elif gain > 0.75 * promised and length > 0.8 * radius:
                radius *= 3.0
            if gain > -noise:
                ev, g = trial, there
            if radius < 1e-10:
                break
        return ev, H

    def _escape(self, ev: Evaluation) -> Evaluation | None:
        """A lower point where a variance that is zero would grow."""
        null = [_null_space(t[lay.held :, lay.held :]) for t, lay in zip(ev.T, self.problem.layouts, strict=True)]
        if not any(n.shape[1] for n in null):
            return None
        _, _, free = self.problem.slopes(ev)
        for i, (vectors, G) in enumerate(zip(null, free, strict=True)):
            if not vectors.shape[1]:
                continue
            slopes, directions = np.linalg.eigh(vectors.T @ G @ vectors)
            if slopes[0] >= _GROWS * max(1.0, float(np.abs(G).max())):
                continue
            direction = vectors @ directions[:, 0]
            trials = [self._value(ev.u, self._grown(ev, i, size * direction)) for size in (1e-3, 1e-2, 1e-1, 1.0)]
            best = min((t for t in trials if t is not None), key=lambda t: t.value, default=None)
            if best is not None and best.value < ev.value - 1e-9:
                return best
        return None

    def _grown(self, ev: Evaluation, term: int, column: Array) -> Array:
        """``phi`` with ``column column'`` added to the free part of a term's covariance."""
        lay = self.problem.layouts[term]
        T = ev.T[term].copy()
        grown = np.column_stack([T[lay.held :, lay.held :], column])
        T[lay.held :, lay.held :] = th.root_of(grown, diagonal=lay.diagonal)
        phi = ev.phi.copy()
        start = sum(self.problem._n_free[:term])
        phi[start : start + self.problem._n_free[term]] = T[lay.free]
        return phi


def _units(curvature: Array, phi: Array) -> Array:
    """One standard error per parameter; its size, or one, where the criterion is flat."""
    flat = np.maximum(np.abs(phi), 1.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        units = np.sqrt(2.0 / curvature)
    return np.where((curvature > 0) & (units < flat), units, flat)


def _solve(H: Array, rhs: Array) -> Array:
    """``H^-1 rhs`` on the directions in which the criterion is curved upwards."""
    if not len(H):
        return np.empty(0)
    values, vectors = np.linalg.eigh(H)
    good = values > 1e-6 * max(values[-1], 0.0)
    return (vectors[:, good] / values[good]) @ (vectors[:, good].T @ rhs)


def _null_space(T: Array) -> Array:
    if not len(T):
        return np.empty((0, 0))
    values, vectors = np.linalg.eigh(T @ T.T)
    return np.asarray(vectors[:, values <= _NULL**2])
