"""Laplace's approximation of the likelihood of a generalised mixed model, with its exact gradient.

With ``eta = o + X b + Z u``, the log-likelihood ``l(eta)`` of the cells, ``a = l'``, ``W = -l''`` and the covariance
``Sigma`` of the random effects,

    D(Sigma, b) = -2 l(eta) + u'Sigma^-1 u + log|I + Z Sigma Z'W|    at    u = Sigma Z'a(eta),

the mode, which Newton steps find: each is the conditional mode of a linear model of ``eta + W^-1 a`` with weights W, an
elimination of the block engine (Breslow & Clayton 1993, doi:10.1080/01621459.1993.10594284). Nothing is divided by
``Sigma``: the mode is kept as ``r`` with ``u = Sigma Z'r``, so that ``u'Sigma^-1 u = (Z u)'r``.

The derivatives (Skaug & Fournier 2006, doi:10.1016/j.csda.2006.03.005) need the leverages ``h`` of the cells, the
gradient of the log-determinant in their weights, which the exact adjoint of the elimination has. With
``V = W^-1 + Z Sigma Z'``, ``g = -h l'''`` and ``q = V^-1 W^-1 g``,

    dD / db = X'(q - 2 a),    dD / dSigma = Z'(V^-1 - a a' + (q a' + a q') / 2) Z,

of the latter the blocks of single levels, summed.

Where the effects are the intercepts (or slopes) ``s v`` of the levels of one factor, the likelihood is a product of
integrals over ``v``, normal (0, 1). With the mode ``m`` of a level, ``c = (1 + s^2 sum z^2 W)^-1/2`` and the nodes
``x`` and weights ``w`` of Gauss and Hermite, one is

    c sum_k w_k exp(l(eta + s z c x_k) - (m + c x_k)^2 / 2 + x_k^2 / 2)

(Liu & Pierce 1994, doi:10.1093/biomet/81.3.624): Laplace's approximation with one node, exact with many. The derivative
of its logarithm is the mean of that of ``l`` over the distribution of ``v`` given the answers, by the same nodes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial

import numpy as np
from scipy import special

from lmemtest.core.arrays import Array, Index
from lmemtest.core.quadrature import normal_rule
from lmemtest.lmm.engine import theta as th
from lmemtest.lmm.engine.held import Held
from lmemtest.lmm.engine.optimize import symmetric_rank_one, trust_region_step
from lmemtest.lmm.engine.pseudo import Answers, Working
from lmemtest.lmm.engine.structure import RandomTerm, Shape
from lmemtest.lmm.families import LARGEST, Derivatives, Family

# Curvature below which a cell says nothing, relative to one answer.
_FLATTEST = 1e-12
_SETTLED, _MOST_NEWTON, _MOST_HALVINGS = 1e-8, 100, 30
# Decrease that another step promises at which the search ends; steps of it; the step of its first differences.
_DECREMENT, _MOST_STEPS, _STEP = 1e-10, 300, 1e-4
_ZERO = 1e-4  # standard deviations below vary nothing
_SMALLEST_START = 0.1  # of a standard deviation: the gradient vanishes at zero
# Nodes of the quadrature, for the weight of the standard normal density: of toenail fungus (a standard deviation of 4)
# the log-likelihood is off by 2e-2 with 25 and by 1e-8 with 100.
_NODES = 100


@dataclass(frozen=True)
class Mode:
    """The mode of the random effects at one point, and the criterion there."""

    value: float
    eta: Array  # (n_cells,)
    at: Derivatives  # of the log-likelihood, with the curvature that was used
    held: Held


@dataclass(frozen=True)
class Laplace:
    """The optimum: the criterion up to the family's constant, where it is, and how the search ended."""

    deviance: float
    slopes: Array  # of it in theta and the fixed effects
    theta: Array  # user's scale
    b: Array  # kept fixed effects
    eta: Array
    evaluations: int
    converged: bool
    curvature: Callable[[], Array]

    @cached_property
    def cov(self) -> Array:
        """Covariance of the fixed effects, from the curvature in all parameters."""
        return self.curvature()


@dataclass(frozen=True)
class Likelihood:
    """The criterion as a function of theta and the fixed effects."""

    terms: tuple[RandomTerm, ...]
    X: Array  # (n_distinct, p) of full rank
    row: Index  # (n_cells,)
    offset: Array
    answers: Answers
    family: Family
    quadrature: bool = False  # of one column of one factor, in place of Laplace's approximation

    @property
    def shapes(self) -> tuple[Shape, ...]:
        return tuple(term.shape for term in self.terms)

    @property
    def n_theta(self) -> int:
        return sum(shape.n_theta for shape in self.shapes)

    def mode(self, point: Array, near: Mode | Working) -> Mode:
        """The mode at ``(theta, b)``; `LinAlgError` where it is not found."""
        theta, b = point[: self.n_theta], point[self.n_theta :]
        factors = tuple(th.unpack(theta, self.shapes))
        fixed = (self.X @ b)[self.row] + self.offset
        held = near.held if isinstance(near, Mode) else Held(self.terms, factors, near.weight)
        eta, at, pair, penalised, moved = near.eta, self._derivatives(near.eta), None, -np.inf, np.inf
        for _ in range(_MOST_NEWTON):
            held = replace(held, factors=factors).reweighted(-at.second)
            data = eta + at.first / -at.second - fixed
            residual = held.take(data[:, None])[1][:, 0]
            newton = data - residual, -at.second * residual
            pair, there, at_there, penalised = self._step(fixed, pair, newton, penalised)
            moved = float(np.abs(np.sqrt(-at.second) * (there - eta)).max())
            eta, at = there, at_there
            if moved < _SETTLED:
                break
        held = replace(held, factors=factors).reweighted(-at.second)
        value = -2.0 * penalised + held.logdet
        if not (moved < _SETTLED and np.isfinite(value)):
            raise np.linalg.LinAlgError("the mode of the random effects was not found")
        mode = Mode(value, eta, at, held)
        if not self.quadrature:
            return mode
        return replace(mode, value=-2.0 * float(special.logsumexp(self._at_nodes(point, mode)[2], axis=1).sum()))

    def _derivatives(self, eta: Array) -> Derivatives:
        at = self.family.log_likelihood(eta, self.answers.total, self.answers.n)
        return at._replace(second=np.minimum(at.second, -_FLATTEST * self.answers.n))

    def _step(
        self, fixed: Array, old: tuple[Array, Array] | None, new: tuple[Array, Array], least: float
    ) -> tuple[tuple[Array, Array], Array, Derivatives, float]:
        """From one pair ``Z u`` and ``r`` towards another, halved until the penalised likelihood does not fall.

        Then the predictor there, its derivatives and the penalised likelihood.
        """
        pair = new
        for _ in range(_MOST_HALVINGS):
            random, r = pair
            eta = np.clip(fixed + random, -LARGEST, LARGEST)
            at = self._derivatives(eta)
            penalised = float(at.value.sum()) - 0.5 * float(random @ r)
            if old is None or penalised >= least - 1e-12 * max(1.0, abs(least)):
                break
            pair = 0.5 * (old[0] + random), 0.5 * (old[1] + r)
        return pair, eta, at, penalised

    def gradient(self, point: Array, mode: Mode) -> Array:
        """Of the criterion in theta and the fixed effects."""
        if self.quadrature:
            return self._gradient_at_nodes(point, mode)
        at, held = mode.at, mode.held
        h, of_logdet = held.leverages()
        q = held.omega * held.take((-h * at.third / held.omega)[:, None])[1][:, 0]
        of_theta = []
        factors = th.unpack(point[: self.n_theta], self.shapes)
        for term, G, L in zip(self.terms, of_logdet, factors, strict=True):
            a, moved = (
                np.stack([np.bincount(term.codes, v * z, term.n_levels) for z in term.basis.T], axis=1)
                for v in (at.first, q)
            )
            cross = moved.T @ a
            G = G - a.T @ a + 0.5 * (cross + cross.T)
            of_theta.append(2.0 * (np.diag(G.diagonal()) if term.diagonal else G) @ L)
        of_fixed = self.X.T @ np.bincount(self.row, q - 2.0 * at.first, len(self.X))
        return np.concatenate([th.pack(of_theta, self.shapes), of_fixed])

    def _gradient_at_nodes(self, point: Array, mode: Mode) -> Array:
        (term,) = self.terms
        v, at, logs = self._at_nodes(point, mode)
        share = special.softmax(logs, axis=1)[term.codes] * at.first
        of_theta = float(term.basis[:, 0] @ (share * v[term.codes]).sum(axis=1))
        return -2.0 * np.append(of_theta, self.X.T @ np.bincount(self.row, share.sum(axis=1), len(self.X)))

    def _at_nodes(self, point: Array, mode: Mode) -> tuple[Array, Derivatives, Array]:
        """``v`` of the levels at the nodes, the cells there, and the logarithms of what is summed, per level."""
        (term,) = self.terms
        s, z, (x, weight) = point[0], term.basis[:, 0], normal_rule(_NODES)

        def summed(values: Array) -> Array:
            return np.asarray(np.bincount(term.codes, values, term.n_levels), dtype=float)

        c = 1.0 / np.sqrt(1.0 + s**2 * summed(-mode.at.second * z**2))
        v = (s * summed(mode.at.first * z))[:, None] + c[:, None] * x
        eta = np.clip(mode.eta[:, None] + (s * z)[:, None] * (c[:, None] * x)[term.codes], -LARGEST, LARGEST)
        at = self.family.log_likelihood(eta, self.answers.total[:, None], self.answers.n[:, None])
        of_level = np.stack([summed(values) for values in at.value.T], axis=1)
        return v, at, of_level + np.log(c)[:, None] + np.log(weight) + 0.5 * (x**2 - v**2)

    def maximise(self, working: Working, held: tuple[int, float] | None = None) -> Laplace:
        """The optimum from that of pseudo-likelihood: trust-region steps whose curvature is learned on the way.

        With an element of theta `held` at a value the optimum over all others.
        """
        problem, n = working.problem, self.n_theta
        factors = []
        for L in th.unpack(problem.to_user(working.optimum.theta), self.shapes):
            L = L.copy()
            np.fill_diagonal(L, np.maximum(L.diagonal(), _SMALLEST_START))
            factors.append(L)
        b, U = problem.fixed_effects(working.optimum.criterion)
        point = np.concatenate([th.pack(factors, self.shapes), b])
        fixed = [] if held is None else [held[0]]
        point[fixed] = [] if held is None else [held[1]]
        here = self.mode(point, working)
        g, evaluations = self.gradient(point, here), 1
        unit = np.concatenate([np.full(n, 0.3), np.sqrt(np.einsum("ij,ij->i", U, U))])
        unit[fixed] = 0.0  # no step changes it
        H = np.zeros((len(point),) * 2)
        root = U / unit[n:, None]
        H[n:, n:] = 2.0 * np.linalg.inv(root @ root.T)
        for i in range(n):
            step = np.eye(len(point))[i] * _STEP
            there = point + step * unit
            H[i] = H[:, i] = (self.gradient(there, self.mode(there, here)) - g) * unit / _STEP
        H[fixed, fixed] = 1.0
        evaluations += n
        radius, promised = 2.0, np.inf
        for _ in range(_MOST_STEPS):
            step, promised = trust_region_step(g * unit, H, radius)
            if promised < _DECREMENT or radius < 1e-10:
                break
            length = float(np.linalg.norm(step))
            evaluations += 1
            try:
                trial = self.mode(point + step * unit, here)
            except np.linalg.LinAlgError:
                radius = 0.25 * length
                continue
            there = self.gradient(point + step * unit, trial)
            gain = here.value - trial.value
            H = symmetric_rank_one(H, step, (there - g) * unit - H @ step)
            noise = 1e-12 * max(1.0, abs(here.value))
            if gain < 0.1 * promised - noise:
                radius = 0.25 * length
            elif gain > 0.75 * promised and length > 0.8 * radius:
                radius *= 3.0
            if gain > -noise:
                point, here, g = point + step * unit, trial, there
        roots = [th.lower_root(L) for L in th.unpack(point[:n], self.shapes)]
        for L in roots:
            L[np.linalg.norm(L, axis=1) < _ZERO] = 0.0  # its last digits would be rounding
        return Laplace(
            deviance=here.value,
            slopes=g,
            theta=th.pack(roots, self.shapes),
            b=point[n:],
            eta=here.eta,
            evaluations=evaluations,
            converged=promised < 1e3 * _DECREMENT,
            curvature=partial(self._covariance, point, here, unit),
        )

    def _covariance(self, point: Array, here: Mode, unit: Array) -> Array:
        """Twice the inverse of the curvature, by differences of the exact gradient, at the fixed effects."""
        n = self.n_theta
        free = [i for i in range(len(point)) if i >= n or abs(point[i]) > _ZERO]  # what varies at all
        H = np.empty((len(free), len(free)))
        for place, i in enumerate(free):
            ends = []
            for sign in (1.0, -1.0):
                there = point.copy()
                there[i] += sign * 1e-3 * unit[i]
                ends.append(self.gradient(there, self.mode(there, here))[free])
            H[place] = (ends[0] - ends[1]) / (2e-3 * unit[i])
        whole = 2.0 * np.linalg.inv(0.5 * (H + H.T))
        fixed = [place for place, i in enumerate(free) if i >= n]
        return np.asarray(whole[np.ix_(fixed, fixed)])
