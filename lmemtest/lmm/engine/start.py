"""Where the search begins: variances from moments (MINQUE with prior weight zero, Rao 1971).

``E |Z_a'y|^2 = s2 tr(Z_a'Z_a) + sum_c s2_c |Z_a'Z_c|_F^2`` for every column ``a`` of every block, and the same for
``y'y``; both sides are sums of squares of cross-products that are at hand. Fixed effects have been taken out of
``y`` beforehand and are not accounted for further: this is a start, not an estimate.
"""

from __future__ import annotations

import numpy as np

from lmemtest.core.arrays import Array, Index
from lmemtest.lmm.engine import theta as th
from lmemtest.lmm.engine.anova import HIGHEST, LOWEST
from lmemtest.lmm.engine.blocks import Block
from lmemtest.lmm.engine.problem import Problem


def _frobenius(problem: Problem) -> tuple[Array, Array, Array]:
    """``|Z_a'Z_c|^2``, ``tr(Z_a'Z_a)`` and ``|Z_a'y|^2`` over all effects of all terms."""
    system = problem.system
    first = np.cumsum([0, *problem.sizes])
    n = int(first[-1])
    squares, traces, moments = np.zeros((n, n)), np.zeros(n), np.zeros(n)
    effects = [_indicator(block, first) for block in system.blocks]  # (K, n): which effect a column belongs to
    n_chain = len(system.chain)
    by_tail = [np.tile(own, (b.q, 1)) for own, b in zip(effects[n_chain:], system.tail, strict=True)]
    tail = np.concatenate([*by_tail, np.empty((0, n))])
    for i, stage in enumerate(system.chain):
        own = effects[i]
        squares += stage.copies * own.T @ (stage.A**2).sum(axis=0) @ own
        traces += stage.copies * own.T @ stage.A.sum(axis=0).diagonal()
        by_column = stage.V.column_squares()  # (K, m)
        # a parent sees the sum of its children: |Z_a'Z_c|^2 sums over pairs of levels that meet
        others = [(e**2).sum(axis=0) @ effects[j] for j, e in stage.E.items()]
        across = own.T @ sum(others, start=by_column[:, : system.t] @ tail)
        squares += across + across.T
        moments += own.T @ by_column[:, -1]
        if stage.S is not None:
            moments += own.T @ stage.S[0].diagonal()
    tail_squares = system.B[: system.t] ** 2
    squares += tail.T @ tail_squares[:, : system.t] @ tail
    moments += tail.T @ tail_squares[:, -1]
    traces += tail.T @ system.B.diagonal()[: system.t]
    return squares, traces, moments


def _indicator(block: Block, first: Index) -> Array:
    """Which effect of all terms each column of a block belongs to, ``(K, n_effects)``."""
    out = np.zeros((block.K, int(first[-1])))
    for m in block.members:
        for a in range(m.k):
            out[m.effect(a), first[m.term] + a] = 1.0
    return out


def moment_start(problem: Problem) -> Array:
    """The point of the search with diagonal factors from moments."""
    system = problem.system
    if not problem.n_theta:
        return problem.point(np.empty(0))
    squares, traces, moments = _frobenius(problem)
    total = float(system.B[-1, -1]) + system.ss_within
    lhs = np.block([[squares, traces[:, None]], [traces[None, :], np.array([[float(system.n_rows)]])]])
    rhs = np.append(moments, total)
    scale = 1.0 / np.sqrt(np.where(lhs.diagonal() > 0, lhs.diagonal(), 1.0))  # a column of an empty cell is zero
    solution = scale * np.linalg.lstsq(lhs * np.outer(scale, scale), scale * rhs, rcond=1e-10)[0]
    residual = max(float(solution[-1]), 1e-6 * total / system.n_rows)
    roots = np.sqrt(np.clip(solution[:-1] / residual, LOWEST, HIGHEST))
    diagonal = [np.diag(own) for own in np.split(roots, np.cumsum(problem.sizes)[:-1])]
    return problem.point(th.pack(diagonal, problem.shapes))
