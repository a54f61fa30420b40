"""Where the search begins: variances from moments (MINQUE with prior weight zero, Rao 1971).

``E |Z_a'y|^2 = s2 tr(Z_a'Z_a) + sum_c s2_c |Z_a'Z_c|_F^2`` for every column ``a`` of every block, and the same for
``y'y``; both sides are sums of squares of cross-products that are at hand. Fixed effects have been taken out of
``y`` beforehand and are not accounted for further: this is a start, not an estimate.
"""

from __future__ import annotations

import numpy as np

from lmemtest.engine import theta as th
from lmemtest.engine.blocks import System
from lmemtest.engine.cross import Array
from lmemtest.engine.problem import Problem

# Variance ratios of the start: neither on the boundary, where theta's gradient vanishes, nor out of reach.
_LOWEST, _HIGHEST = 1e-3, 1e6


def _frobenius(system: System) -> tuple[Array, Array, Array]:
    """``|Z_a'Z_c|^2``, ``tr(Z_a'Z_a)`` and ``|Z_a'y|^2`` over all block columns."""
    sizes = [b.K for b in system.blocks]
    first = np.concatenate([[0], np.cumsum(sizes)]).astype(np.intp)
    total = int(first[-1])
    squares, traces, moments = np.zeros((total, total)), np.zeros(total), np.zeros(total)
    n_chain = len(system.chain)
    parts = [np.tile(first[n_chain + i] + np.arange(b.K), b.q) for i, b in enumerate(system.tail)]
    columns = np.concatenate([*parts, np.empty(0)]).astype(np.intp)  # block column of each tail column of the remainder
    for i, stage in enumerate(system.chain):
        own = slice(first[i], first[i + 1])
        squares[own, own] = (stage.A**2).sum(axis=0)
        traces[own] = stage.A.sum(axis=0).diagonal()
        for j, e in stage.E.items():
            # a parent sees the sum of its children: |Z_a'Z_c|^2 sums over pairs of levels that meet
            squares[own, first[j] : first[j + 1]] = (e**2).sum(axis=0)
        by_column = stage.V.column_squares()  # (K, m)
        np.add.at(squares[own].T, columns, by_column[:, : system.t].T)
        moments[own] = by_column[:, -1]
    tail_squares = system.B[: system.t] ** 2
    np.add.at(moments, columns, tail_squares[:, -1])
    np.add.at(traces, columns, system.B.diagonal()[: system.t])
    by_row = np.zeros((total, system.t))
    np.add.at(by_row, columns, tail_squares[:, : system.t])
    np.add.at(squares.T, columns, by_row.T * (np.arange(total) >= first[n_chain]))
    upper = np.triu(squares)
    return upper + np.triu(squares, 1).T, traces, moments


def moment_start(problem: Problem) -> Array:
    """The point of the search with diagonal factors from moments."""
    system = problem.system
    if not problem.n_theta:
        return problem.point(np.empty(0))
    squares, traces, moments = _frobenius(system)
    total = float(system.B[-1, -1]) + system.ss_within
    lhs = np.block([[squares, traces[:, None]], [traces[None, :], np.array([[float(system.n_rows)]])]])
    rhs = np.append(moments, total)
    scale = 1.0 / np.sqrt(np.where(lhs.diagonal() > 0, lhs.diagonal(), 1.0))  # a column of an empty cell is zero
    solution = scale * np.linalg.lstsq(lhs * np.outer(scale, scale), scale * rhs, rcond=1e-10)[0]
    residual = max(float(solution[-1]), 1e-6 * total / system.n_rows)
    roots = np.sqrt(np.clip(solution[:-1] / residual, _LOWEST, _HIGHEST))
    ends = np.cumsum([block.K for block in system.blocks])
    stacked = [np.diag(own) for own in np.split(roots, ends[:-1])]
    return problem.point(th.pack(th.term_blocks(stacked, system.blocks, problem.sizes), problem.shapes))
