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
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from lmemtest.core.arrays import Array
from lmemtest.lmm.engine.products import System, build_system
from lmemtest.lmm.engine.structure import RandomTerm
from lmemtest.lmm.engine.sweep import Sweep, modes, sweep
from lmemtest.lmm.engine.theta import block_factors


@dataclass(frozen=True, eq=False)
class Held:
    """Terms with the factors of their covariances over the residual variance, and the weights of the cells."""

    terms: tuple[RandomTerm, ...]
    factors: tuple[Array, ...]
    omega: Array  # (n_cells,) rows times precision

    def __getstate__(self) -> dict[str, Any]:
        """Without what was eliminated: another process does that faster than it is sent."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

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
        )
        return system, sweep(system, block_factors([self.factors[i] for i in self._others], system.blocks))

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
    y = mean.copy()
    for term, L in zip(terms, factors, strict=True):
        u = np.sqrt(sigma2) * rng.standard_normal((term.n_levels, term.k)) @ L.T
        y += np.einsum("ck,ck->c", term.basis, u[term.codes])
    y += rng.standard_normal(len(y)) * np.sqrt(sigma2 / (n * weight))
    ss = np.zeros(len(y))
    several = n > 1
    ss[several] = rng.chisquare(n[several] - 1) * sigma2 / weight[several]
    return y, ss
