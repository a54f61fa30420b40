"""A model whose variance parameters are held: what its random effects make of any columns, and draws from it.

With ``V = Omega^-1 + Z Sigma Z'`` the conditional modes that a column ``d`` has as data are ``Sigma Z'V^-1 d``, and
what they leave of it is ``d - Z Sigma Z'V^-1 d = Omega^-1 V^-1 d``. The elimination does not depend on ``d``: it is
made once, of the random effects alone, and every further column is a pass forward and one back.

A term with a level of its own for every cell adds ``v = z'Sigma z`` to the variance of a cell and nothing to any
covariance. At held parameters ``v`` is known, so the other terms are eliminated at the weights
``1 / (1 / omega + v)``, whatever the weights of the cells are; a hundred thousand such levels cost nothing.

In a draw a cell of ``n`` rows has the mean ``mu + Z u + e`` with ``e ~ N(0, s2 / (n w))`` and a within-cell sum of
squares ``(s2 / w) chi2(n - 1)`` that is independent of it, so drawing cells is exact and costs nothing per row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from lmemtest.core.arrays import Array
from lmemtest.lmm.engine.products import System, build_system
from lmemtest.lmm.engine.structure import RandomTerm, Structure, choose
from lmemtest.lmm.engine.sweep import Sweep, gradient, modes, of_cells, sweep
from lmemtest.lmm.engine.theta import block_factors, term_blocks
from lmemtest.lmm.families import Family


@dataclass(frozen=True, eq=False)
class Held:
    """Terms with the factors of their covariances over the residual variance, and the weights of the cells."""

    terms: tuple[RandomTerm, ...]
    factors: tuple[Array, ...]
    omega: Array  # (n_cells,) rows times precision
    structure: Structure | None = None  # of the elimination; the cheapest by default

    def __getstate__(self) -> dict[str, Any]:
        """Without what was eliminated: another process does that faster than it is sent."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name != "structure"}

    def reweighted(self, omega: Array) -> Held:
        """The same terms on cells of other weights, eliminated in the same order."""
        structure = self.structure
        if structure is None and self._others:
            structure = choose([self.terms[i] for i in self._others], 0, omega)
        out = replace(self, omega=omega, structure=structure)
        out.__dict__.update({name: self.__dict__[name] for name in ("_Z", "_of_cells") if name in self.__dict__})
        return out

    @cached_property
    def _of_cells(self) -> tuple[int, ...]:
        """Terms with a level for every cell."""
        n = len(self.omega)
        return tuple(i for i, t in enumerate(self.terms) if t.n_levels == n == np.count_nonzero(np.bincount(t.codes)))

    @cached_property
    def _others(self) -> tuple[int, ...]:
        return tuple(i for i in range(len(self.terms)) if i not in self._of_cells)

    @cached_property
    def _weight(self) -> Array:
        """Weights of the cells at which the other terms are eliminated."""
        variance = sum(((self.terms[i].basis @ self.factors[i]) ** 2).sum(axis=1) for i in self._of_cells)
        return self.omega / (1.0 + self.omega * variance)

    @cached_property
    def _Z(self) -> tuple[sp.csr_matrix, ...]:
        """Columns of the other terms, ``(n_cells, levels k)``."""
        n = len(self.omega)
        return tuple(
            sp.csr_matrix(
                (t.basis.ravel(), (t.codes[:, None] * t.k + np.arange(t.k)).ravel(), np.arange(n + 1) * t.k),
                shape=(n, t.n_levels * t.k),
            )
            for t in (self.terms[i] for i in self._others)
        )

    @cached_property
    def _eliminated(self) -> tuple[System, Sweep]:
        n = len(self.omega)
        system = build_system(
            [self.terms[i] for i in self._others],
            np.empty((n, 0)),
            np.zeros(n),
            self._weight,
            n_rows=n,
            ss_within=0.0,
            sum_log_w=0.0,
            structure=self.structure,
        )
        return system, sweep(system, block_factors([self.factors[i] for i in self._others], system.blocks))

    @property
    def logdet(self) -> float:
        """``log|I + Z Sigma Z'Omega|``."""
        of_others = self._eliminated[1].logdet if self._others else 0.0
        return of_others + float(np.log(self.omega / self._weight).sum())

    def leverages(self) -> tuple[Array, list[Array]]:
        """Gradient of ``logdet`` in the weights of the cells, ``(n_cells,)``, and in each term's ``Sigma``.

        Of a `reweighted` model, whose groups are not taken together.
        """
        h, weight = np.zeros(len(self.omega)), self._weight
        by_term: list[Array] = [np.empty(0)] * len(self.terms)
        if self._others:
            system, done = self._eliminated
            bar = gradient(system, done, np.zeros((1, 1)), inputs=True)
            others = term_blocks(bar.sigma, system.blocks, [self.terms[i].k for i in self._others])
            for i, G in zip(self._others, others, strict=True):
                by_term[i] = G
            h = of_cells(system, bar)
        shrunken = weight / self.omega
        for i in self._of_cells:  # d/dv of log(1 + omega v), and of the others at omega / (1 + omega v)
            basis = self.terms[i].basis
            by_term[i] = basis.T @ ((weight * (1.0 - h * weight))[:, None] * basis)
        return (1.0 - shrunken) / self.omega + h * shrunken**2, by_term

    def take(self, D: Array) -> tuple[list[Array], Array]:
        """Modes of columns ``(n_cells, c)``, per term ``(levels, k, c)``, and the residual ``Omega^-1 V^-1 D``."""
        residual = np.array(D, dtype=float, order="C")
        of_terms: list[Array] = [np.empty(0)] * len(self.terms)
        for i, Z, u in zip(self._others, self._Z, self._modes_of_others(residual) if self._others else (), strict=True):
            of_terms[i] = u
            residual -= Z @ u.reshape(Z.shape[1], -1)
        through = self._weight[:, None] * residual  # V^-1 D
        for i in self._of_cells:
            term, L = self.terms[i], self.factors[i]
            of_terms[i] = np.empty((term.n_levels, term.k, residual.shape[1]))
            of_terms[i][term.codes] = (term.basis @ L @ L.T)[:, :, None] * through[:, None, :]
        return of_terms, through / self.omega[:, None]

    def _modes_of_others(self, D: Array) -> Sequence[Array]:
        system, done = self._eliminated
        weighted = self._weight[:, None] * D
        terms = [self.terms[i] for i in self._others]
        products = [np.asarray(Z.T @ weighted) for Z in self._Z]
        by_block = system.by_block([P.reshape(t.n_levels, t.k, -1) for P, t in zip(products, terms, strict=True)])
        n_chain, c = len(system.chain), D.shape[1]
        remainder = np.zeros((len(system.B), c))
        if system.tail:
            remainder[: system.t] = np.concatenate([block.reshape(-1, c) for block in by_block[n_chain:]])
        of_columns = by_block[:n_chain], remainder, np.empty((c, c))
        return system.by_level(modes(system, done, of_columns), [t.n_levels for t in terms])


def draw_cells(
    rng: np.random.Generator,
    *,
    mean: Array,
    terms: Sequence[RandomTerm],
    factors: Sequence[Array],
    sigma2: float,
    n: Array,
    weight: Array,
) -> tuple[Array, Array]:
    """Cell means and within-cell sums of squares of one simulated table; ``factors`` are relative to ``sigma2``."""
    y = _with_effects(rng, mean, terms, factors, np.sqrt(sigma2))
    y += rng.standard_normal(len(y)) * np.sqrt(sigma2 / (n * weight))
    ss = np.zeros(len(y))
    several = n > 1
    ss[several] = rng.chisquare(n[several] - 1) * sigma2 / weight[several]
    return y, ss


def draw_answers(
    rng: np.random.Generator,
    *,
    mean: Array,
    terms: Sequence[RandomTerm],
    factors: Sequence[Array],
    family: Family,
    n: Array,
) -> tuple[Array, Array]:
    """Mean answers of cells with ``n`` of them each, and zeros, of one table; ``mean`` is the linear predictor."""
    eta = _with_effects(rng, mean, terms, factors, 1.0)
    return family.draw(rng, eta, n) / n, np.zeros(len(n))


def _with_effects(
    rng: np.random.Generator, mean: Array, terms: Sequence[RandomTerm], factors: Sequence[Array], scale: float
) -> Array:
    """Means of cells with random effects that are drawn."""
    out = mean.copy()
    for term, L in zip(terms, factors, strict=True):
        u = scale * rng.standard_normal((term.n_levels, term.k)) @ L.T
        out += np.einsum("ck,ck->c", term.basis, u[term.codes])
    return out
