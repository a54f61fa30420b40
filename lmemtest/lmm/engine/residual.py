"""Residual variances: one per stratum (`Strata`), or with a random intercept of every cell in it (`Leaf`).

Cross-products are kept per stratum and reweighted. Rows of stratum ``g`` have the residual variance ``s2 / tau_g``. All
cross-products are linear in the precisions, ``A(tau) = sum_g tau_g A_g``, so a change of ``tau`` costs no pass over the
data, and the sweep's gradient in the cross-products gives the gradient in ``delta_g = log tau_g``:

    d / d delta_g = tau_g <dA, A_g> + (m / r2) tau_g ss_g - n_g.

``delta`` of the first stratum is 0: the overall level is ``s2``.

A random intercept of every cell is absorbed into the residual variance. With several rows per run, the cells are the
runs. With ``a`` the weight of a cell and ``l^2`` the relative variance of its intercept, the cell means have
independent errors of relative variance ``(1 + a l^2) / a = 1 / (a c)``: what is left of the model has the
cross-products it would have without the intercepts, those of all cells that weigh the same times one number ``c``.
Classes of cells by weight are strata of residual variances (`Strata`) whose log precision ratios
``delta_g = log c_g - log c_1`` are known functions of ``l``. With ``N`` rows in ``n`` cells and the sum of squares
``ss`` within the cells,

    f(theta, l) = phi(sqrt(c_1) theta, delta, ss / c_1) + (N - n) log c_1,   c_g = 1 / (1 + a_g l^2),

where ``phi(theta, delta, ss)`` is the criterion of the model without the intercepts. Its derivatives follow by the
chain rule, and a search costs what it costs without the finest factor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, cast

import numpy as np

from lmemtest.core.arrays import Array
from lmemtest.lmm.engine import theta as th
from lmemtest.lmm.engine.criterion import Criterion
from lmemtest.lmm.engine.products import CellColumns, System
from lmemtest.lmm.engine.structure import RandomTerm
from lmemtest.lmm.engine.sweep import Adjoint, Products, Sweep, conditional_modes, gradient, multiply, sweep

if TYPE_CHECKING:
    from lmemtest.core.arrays import Array, Index
    from lmemtest.lmm.engine.problem import Problem


# Differences of weights that are rounding, relative to the largest.
_ALIKE = 1e-12
# Classes of weights that have cross-products of their own; cells below which any fit takes a tenth of a second.
MOST_CLASSES, MANY_CELLS = 32, 2_000


@dataclass(frozen=True)
class Strata:
    """The systems of all strata: same structure, the weights of other rows zero."""

    systems: tuple[System, ...]
    n_rows: Array  # (G,)
    precision: Array  # (G,) precisions that the systems already hold, relative to the first

    @property
    def n_delta(self) -> int:
        return len(self.systems) - 1

    def combined(self, delta: Array) -> System:
        """The system at log precision ratios ``delta``, ``(G - 1,)``."""
        tau = np.exp(np.append(0.0, delta))
        first = self.systems[0]
        chain = []
        for i, stage in enumerate(first.chain):
            parts = [s.chain[i] for s in self.systems]
            V = parts[0].V.scaled(tau[0])
            for part, t in zip(parts[1:], tau[1:], strict=True):
                V = V + part.V.scaled(t)
            chain.append(
                replace(
                    stage,
                    A=_sum([p.A for p in parts], tau),
                    E={j: _sum([p.E[j] for p in parts], tau) for j in stage.E},
                    V=V,
                )
            )
        return replace(
            first,
            source=(tuple(chain), first.tail, _sum([s.B for s in self.systems], tau)),
            ss_within=float(tau @ [s.ss_within for s in self.systems]),
            sum_log_w=first.sum_log_w + float(self.n_rows[1:] @ delta),
        )

    def at(self, system: System, delta: Array) -> System:
        """`combined` from the whole ``system``, with no cross-products until they are asked for."""
        tau = np.exp(np.append(0.0, delta))
        cells = cast(CellColumns, system.source)
        omega = tau @ [cast(CellColumns, part.source).omega for part in self.systems]
        return replace(
            system,
            source=replace(cells, omega=omega),
            ss_within=float(tau @ [part.ss_within for part in self.systems]),
            sum_log_w=system.sum_log_w + float(self.n_rows[1:] @ delta),
        )

    def gradient(self, delta: Array, bar: Adjoint, residual_weight: float) -> Array:
        """Gradient in ``delta`` from the gradient in the cross-products; ``residual_weight`` is ``m / r2``."""
        out = np.empty(self.n_delta)
        for g, (system, log_tau, rows) in enumerate(zip(self.systems[1:], delta, self.n_rows[1:], strict=True)):
            inner = float(np.vdot(bar.B, system.B)) + residual_weight * system.ss_within
            for i, stage in enumerate(system.chain):
                inner += float(np.vdot(bar.A[i], stage.A)) + 2.0 * bar.V[i].inner(stage.V)
                inner += 2.0 * sum(float(np.vdot(bar.E[i, j], e)) for j, e in stage.E.items())
            out[g] = np.exp(log_tau) * inner - rows
        return out

    def directions(self, delta: Array, at: Criterion) -> tuple[list[Products], Array]:
        """Cross-products of ``w_g = dV_g P y`` with the model's columns per stratum, and ``d r2 / d delta_g``.

        ``w_g`` is minus the residual of the rows of stratum ``g``; those of two strata are orthogonal.
        """
        modes = conditional_modes(at.system, at.sweep, at.v)
        coefficients = [-u[:, :, None] for u in modes]
        products: list[Products] = []
        d_r2 = np.empty(self.n_delta)
        for g, (part, tau) in enumerate(zip(self.systems[1:], np.exp(delta), strict=True)):
            chain, remainder, gram = multiply(part, coefficients, at.v[:, None])
            d_r2[g] = tau * (float(gram[0, 0]) + part.ss_within)
            products.append(([-tau * c for c in chain], -tau * remainder, np.array([[d_r2[g]]])))
        return products, d_r2


def _sum(arrays: Sequence[Array], tau: Array) -> Array:
    out = tau[0] * arrays[0]
    for a, t in zip(arrays[1:], tau[1:], strict=True):
        out = out + t * a
    return out


def leaf_term(terms: Sequence[RandomTerm], omega: Array) -> tuple[int, Index, Array] | None:
    """The term with a column for every cell, the class of each cell, and the weight of each class.

    None where there is no such term, or nothing else, or too many weights.
    """
    for i, term in enumerate(terms):
        if len(terms) > 1 and term.k == 1 and term.n_levels == len(omega) == len(np.unique(term.codes)):
            weight = omega * term.basis[:, 0] ** 2
            order = np.argsort(weight, kind="stable")
            jumps = np.append(False, np.diff(weight[order]) > _ALIKE * weight.max())
            n_classes = 1 + int(jumps.sum())
            if n_classes == 1 or (n_classes <= MOST_CLASSES and len(omega) >= MANY_CELLS):
                classes = np.empty(len(omega), dtype=np.intp)
                classes[order] = np.cumsum(jumps)
                return i, classes, np.bincount(classes, weight) / np.bincount(classes)
    return None


@dataclass(frozen=True)
class Leaf:
    """The intercepts of the cells, and the model without them."""

    inner: Problem  # with strata where cells differ in weight
    term: int  # which of the terms they are
    weights: Array  # (classes,) a
    n_cells: int

    @cached_property
    def place(self) -> int:
        """Where the search has their standard deviation."""
        return sum(shape.n_theta for shape in self.inner.shapes[: self.term])

    @property
    def _more_rows(self) -> int:
        return self.inner.system.n_rows - self.n_cells

    @property
    def _ss(self) -> float:
        return self.inner.system.ss_within

    def precision(self, sd: float) -> Array:
        """``c`` of every class."""
        return np.asarray(1.0 / (1.0 + self.weights * sd**2))

    def inside(self, x: Array, *, reduced: bool = True) -> tuple[Problem, Array]:
        """The model without the intercepts, at the sum of squares that belongs to ``x``, and its point.

        ``reduced``: with groups that are alike up to the scores put into one.
        """
        c = self.precision(x[self.place])
        problem = self.inner.reduced if reduced else self.inner
        ss_within = self._ss / c[0]
        point = np.append(np.sqrt(c[0]) * np.delete(x, self.place), np.log(c[1:] / c[0]))
        if problem.strata is not None:
            first, *others = problem.strata.systems
            strata = replace(problem.strata, systems=(replace(first, ss_within=ss_within), *others))
            return replace(problem, strata=strata), point
        return replace(problem, system=replace(problem.system, ss_within=ss_within)), point

    def evaluate(self, x: Array) -> Criterion:
        """The criterion of the model without the intercepts, with the value of the whole."""
        problem, of_inner = self.inside(x)
        at = problem.evaluate(of_inner)
        return replace(at, value=at.value + self._more_rows * float(np.log(self.precision(x[self.place])[0])))

    def whole(self, problem: Problem, x: Array) -> Criterion:
        """The criterion of the whole model, without an elimination until one is asked for."""
        at, c = self.evaluate(x), self.precision(x[self.place])[0]
        root = np.sqrt(c) * at.RX
        return replace(at, system=problem.system, r2=c * at.r2, RX=root, factors=problem.unpack(x), swept=None)

    def derivatives(self, x: Array, at: Criterion) -> tuple[list[Array], Array]:
        """Gradient in each term's ``Sigma``, and in ``x``."""
        problem, of_inner = self.inside(x)
        c, n = self.precision(x[self.place]), self.inner.n_theta
        ac = self.weights * c
        gradients, g = problem.derivatives(of_inner, at)
        slope = self.weights[0] * at.weight * self._ss - ac[0] * (self._more_rows + 0.5 * float(g[:n] @ of_inner[:n]))
        slope -= float(g[n:] @ (ac[1:] - ac[0]))
        gradients = [c[0] * G for G in gradients]
        gradients.insert(self.term, np.array([[slope]]))
        return gradients, np.insert(np.sqrt(c[0]) * g[:n], self.place, 2.0 * x[self.place] * slope)

    def swept(self, factors: Sequence[Array]) -> tuple[System, Sweep]:
        """The system without the intercepts, and what its elimination gives of the whole: ``F`` and ``log|V|``.

        The factors, one per term, need not be triangular.
        """
        problem = self.inner.reduced
        c, delta, others = self._split(factors)
        system = problem.system if problem.strata is None else problem.strata.combined(delta)
        done = sweep(system, th.block_factors(others, system.blocks))
        whole = replace(done, F=c[0] * done.F, logdet=done.logdet - self.n_cells * float(np.log(c[0])))
        return replace(system, ss_within=self._ss), whole

    def gradients(self, factors: Sequence[Array], system: System, done: Sweep, F_bar: Array) -> list[Array]:
        """Gradient of ``log|V| + f(F)`` in each term's ``Sigma`` from `swept`, ``F_bar`` being that of ``f``."""
        problem = self.inner.reduced
        c, delta, others = self._split(factors)
        ac, strata = self.weights * c, problem.strata
        bar = gradient(system, done, c[0] * F_bar, inputs=strata is not None)
        inner = problem.by_term(bar.sigma)
        of_scale = sum(float(np.vdot(G, L @ L.T)) for G, L in zip(inner, others, strict=True))
        slope = -ac[0] * (of_scale + float(np.vdot(F_bar, done.F)) - self.n_cells)
        if strata is not None:
            slope -= float(strata.gradient(delta, bar, 0.0) @ (ac[1:] - ac[0]))
        out = [c[0] * G for G in inner]
        out.insert(self.term, np.array([[slope]]))
        return out

    def _split(self, factors: Sequence[Array]) -> tuple[Array, Array, list[Array]]:
        """``c``, ``delta``, and the factors of the model without the intercepts."""
        c = self.precision(float(factors[self.term][0, 0]))
        others = [np.sqrt(c[0]) * L for i, L in enumerate(factors) if i != self.term]
        return c, np.log(c[1:] / c[0]), others

    def tangent(self, x: Array) -> tuple[float, Array, float]:
        """Derivatives in the intercepts' standard deviation: of ``sqrt(c_1)``, the inner point and its ``ss``."""
        sd, rest = float(x[self.place]), np.delete(x, self.place)
        ac = self.weights * self.precision(sd)
        d_root = -sd * ac[0] * float(np.sqrt(self.precision(sd)[0]))
        return d_root, np.append(d_root * rest, -2.0 * sd * (ac[1:] - ac[0])), 2.0 * self.weights[0] * sd * self._ss

    def curvature(self, x: Array, at: Criterion, g: Array, H: Array) -> Array:
        """Second derivatives in ``x`` from the gradient and the second derivatives of the model without intercepts."""
        problem, of_inner = self.inside(x)
        a, sd, n = self.weights, float(x[self.place]), self.inner.n_theta
        c = self.precision(sd)
        root, bent = float(np.sqrt(c[0])), a * c * (1.0 - 2.0 * a * sd**2 * c)
        d_root, tangent, d_ss = self.tangent(x)
        d2_root = a[0] * root**3 * (3.0 * a[0] * sd**2 * c[0] - 1.0)
        mixed = at.d_weight * slopes_of_r2(problem, of_inner, at)  # second derivatives in the point and ss
        across = d_root * g[:n] + root * (H @ tangent + d_ss * mixed)[:n]
        corner = float(tangent @ H @ tangent) + 2.0 * d_ss * float(mixed @ tangent) + at.d_weight * d_ss**2
        corner += float(g @ np.append(d2_root * np.delete(x, self.place), -2.0 * (bent[1:] - bent[0])))
        corner += 2.0 * (a[0] * self._ss * at.weight - self._more_rows * bent[0])
        out = np.insert(np.insert(c[0] * H[:n, :n], self.place, across, axis=0), self.place, 0.0, axis=1)
        out[:, self.place] = np.insert(across, self.place, corner)
        return out


def slopes_of_r2(problem: Problem, x: Array, at: Criterion) -> Array:
    """Derivative of the residual sum of squares in the point, ``(n_free,)``."""
    squares, strata = np.outer(at.v, at.v), problem.strata
    slopes = np.zeros(problem.n_free)
    for sign, F_bar in ((1.0, squares), (-1.0, 0.0 * squares)):
        bar = gradient(at.system, at.sweep, F_bar, inputs=strata is not None)
        of_theta = [2.0 * G @ L for G, L in zip(problem.by_term(bar.sigma), problem.unpack(x), strict=True)]
        slopes[: problem.n_theta] += sign * th.pack(of_theta, problem.shapes)
        if strata is not None:
            slopes[problem.n_theta :] += sign * strata.gradient(problem.split(x)[1], bar, 0.0)
    return slopes
