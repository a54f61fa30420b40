"""A random intercept of every cell, where all cells weigh the same: absorbed into the residual variance.

In a balanced design with several rows per run, the cells are the runs. With ``a`` the weight of a cell and ``l^2`` the
relative variance of its intercept, the cell means have independent errors of relative variance
``(1 + a l^2) / a = 1 / (a c)``, so that what is left of the model has the cross-products it would have without the
intercepts, times one number ``c``. With ``N`` rows in ``n`` cells and the sum of squares ``ss`` within the cells,

    f(theta, l) = phi(sqrt(c) theta, ss / c) + (N - n) log c,   c = 1 / (1 + a l^2),

where ``phi(theta, ss)`` is the criterion of the model without the intercepts. Its derivatives follow by the chain
rule, and a search costs what it costs without the finest factor.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from lmemtest.engine import theta as th
from lmemtest.engine.blocks import RandomTerm
from lmemtest.engine.criterion import Criterion
from lmemtest.engine.cross import Array
from lmemtest.engine.sweep import gradient

if TYPE_CHECKING:
    from lmemtest.engine.problem import Problem

# Differences of weights that are rounding, relative to the largest.
_ALIKE = 1e-12


def leaf_term(terms: Sequence[RandomTerm], omega: Array) -> int | None:
    """The term with a column for every cell, all of the same weight; None where there is none, or nothing else."""
    for i, term in enumerate(terms):
        if len(terms) > 1 and term.k == 1 and term.n_levels == len(omega) == len(np.unique(term.codes)):
            weight = omega * term.basis[:, 0] ** 2
            if np.ptp(weight) <= _ALIKE * weight.max() and np.ptp(omega) <= _ALIKE * omega.max():
                return i
    return None


@dataclass(frozen=True)
class Leaf:
    """The intercepts of the cells, and the model without them."""

    inner: Problem
    term: int  # which of the terms they are
    weight: float  # a
    n_cells: int

    @cached_property
    def place(self) -> int:
        """Where the search has their standard deviation."""
        return sum(shape.n_theta for shape in self.inner.shapes[: self.term])

    @property
    def _more_rows(self) -> int:
        return self.inner.system.n_rows - self.n_cells

    def _root(self, x: Array) -> float:
        """``sqrt(c)``."""
        return float(1.0 / np.sqrt(1.0 + self.weight * x[self.place] ** 2))

    def inside(self, x: Array) -> tuple[Problem, Array]:
        """The model without the intercepts, at the sum of squares that belongs to ``x``, and its point."""
        root = self._root(x)
        system = replace(self.inner.system, ss_within=self.inner.system.ss_within / root**2)
        return replace(self.inner, system=system), root * np.delete(x, self.place)

    def evaluate(self, x: Array) -> Criterion:
        """The criterion of the model without the intercepts, with the value of the whole."""
        problem, own = self.inside(x)
        at = problem.evaluate(own)
        return replace(at, value=at.value + 2.0 * self._more_rows * float(np.log(self._root(x))))

    def derivatives(self, x: Array, at: Criterion) -> tuple[list[Array], Array]:
        """Gradient in each term's ``Sigma``, and in ``x``."""
        problem, own = self.inside(x)
        a, c = self.weight, self._root(x) ** 2
        gradients, g = problem.derivatives(own, at)
        slope = at.weight * self.inner.system.ss_within - self._more_rows * c - 0.5 * c * float(g @ own)
        gradients = [c * G for G in gradients]
        gradients.insert(self.term, np.array([[a * slope]]))
        return gradients, np.insert(np.sqrt(c) * g, self.place, 2.0 * x[self.place] * a * slope)

    def curvature(self, x: Array, at: Criterion, g: Array, H: Array) -> Array:
        """Second derivatives in ``x`` from the gradient and the second derivatives of the model without intercepts."""
        problem, own = self.inside(x)
        a, sd, root, ss = self.weight, float(x[self.place]), self._root(x), self.inner.system.ss_within
        c = root**2
        rest = own / root
        d_root, d2_root = -a * sd * root**3, a * root**3 * (3.0 * a * sd**2 * c - 1.0)
        d_ss, d2_ss = 2.0 * a * sd * ss, 2.0 * a * ss
        mixed = at.d_weight * _slopes_of_r2(problem, own, at)  # second derivatives in the point and ss
        Hr = H @ rest
        across = d_root * g + root * (d_root * Hr + d_ss * mixed)
        corner = d_root**2 * float(rest @ Hr) + 2.0 * d_root * d_ss * float(mixed @ rest) + at.d_weight * d_ss**2
        corner += d2_root * float(g @ rest) + d2_ss * at.weight
        corner -= 2.0 * self._more_rows * a * c * (1.0 - 2.0 * a * sd**2 * c)
        out = np.insert(np.insert(c * H, self.place, across, axis=0), self.place, 0.0, axis=1)
        out[:, self.place] = np.insert(across, self.place, corner)
        out[self.place, self.place] = corner
        return out


def _slopes_of_r2(problem: Problem, x: Array, at: Criterion) -> Array:
    """Derivative of the residual sum of squares in the point, ``(n_free,)``."""
    squares = np.outer(at.v, at.v)
    both = [problem.by_term(gradient(at.system, at.sweep, F_bar).sigma) for F_bar in (squares, 0.0 * squares)]
    slopes = [2.0 * (G - G0) @ L for G, G0, L in zip(*both, problem.unpack(x), strict=True)]
    return th.pack(slopes, problem.shapes)
