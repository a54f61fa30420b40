"""Terms without variance, which need not be eliminated.

Where a term's variance is zero, the criterion, the estimates and their errors are those of the model without it. What
the whole model has beside that model is the slope of the criterion in that variance,

    G = tr(Z'P Z) - |Z'P y|^2 / s2,

with ``P`` of the model without it. It needs the product of ``V^-1`` with each column of ``Z`` by itself, where an
elimination of ``Z`` needs the products of all pairs of its columns: a fraction of the work if ``Z`` are thousands of
effects that cross the rest, such as seeds that have the same names on every benchmark, in a table with gaps.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

import numpy as np

from lmemtest.core.arrays import Array
from lmemtest.lmm.engine.criterion import Criterion
from lmemtest.lmm.engine.problem import Problem
from lmemtest.lmm.engine.products import CellColumns, dense_cross
from lmemtest.lmm.engine.structure import group_terms
from lmemtest.lmm.engine.triangular import solve_lower


def absent_terms(problem: Problem, theta: Array, most: float = 0.0) -> tuple[int, ...]:
    """The intercepts whose standard deviation is ``most`` at most, where they can be left out; none if all are such."""
    if not problem.can_turn or problem.strata is not None or problem.leaf is not None:
        return ()
    factors = problem.unpack(theta)
    absent = tuple(i for i, L in enumerate(factors) if L.shape == (1, 1) and L[0, 0] <= most)
    return absent if len(absent) < len(factors) else ()


def zero_slopes(problem: Problem, absent: Sequence[int], rest: Problem, at: Criterion) -> Array | None:
    """``G`` of the absent terms at an evaluation of ``rest``, the model without them.

    None where that model is not one of independent parts: there an elimination of all terms is no more work.
    """
    system = rest.system
    if system.tail or any(stage.E for stage in system.chain):
        return None
    cells, p = cast(CellColumns, problem.system.source), system.p
    out = np.empty(len(absent))
    for place, i in enumerate(absent):
        (block,) = group_terms([cells.terms[i]])
        weight = block.basis[:, 0] * cells.omega
        diagonal = np.bincount(block.codes, block.basis[:, 0] * weight, block.q).astype(float)  # of Z'V^-1 Z
        cross = cells.D.sums(block.codes, weight, block.q, slice(None))  # Z'V^-1 [X y]
        for step in at.sweep.steps:
            V = dense_cross(step.stage.block, [block], cells.D, cells.omega)
            of_Z, of_D = V[:, :, : block.q], V[:, :, block.q :]
            QZ = step.Q @ of_Z
            diagonal -= np.einsum("gkl,gkl->l", QZ, of_Z)
            cross -= np.einsum("gkl,gkc->lc", QZ, of_D, optimize=True)
        seen = solve_lower(at.RX, cross[:, :p].T)
        residual = cross[:, p] - cross[:, :p] @ at.b
        out[place] = float(diagonal.sum() - np.vdot(seen, seen) - at.weight * (residual @ residual))
    return out
