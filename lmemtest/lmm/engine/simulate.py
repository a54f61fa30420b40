"""Draws of cells from a fitted model.

A cell of ``n`` rows has the mean ``mu + Z u + e`` with ``e ~ N(0, s2 / (n w))`` and a within-cell sum of squares
``(s2 / w) chi2(n - 1)`` that is independent of it, so drawing cells is exact and costs nothing per row.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from lmemtest.core.arrays import Array
from lmemtest.lmm.engine.blocks import RandomTerm


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
