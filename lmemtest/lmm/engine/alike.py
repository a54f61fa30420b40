"""Groups of a block that are alike up to the scores: factored once.

In a balanced design all groups ``g = 1 ... q`` of a block have the same cross-products ``A`` with themselves and, apart
from ``y``, the same ``V_X`` with what remains. An orthogonal rotation of the groups, whose first row is
``(1, ..., 1) / sqrt(q)``, changes neither ``A`` nor the likelihood, and leaves

    one group with        V = sqrt(q) [V_X, mean of the V_y],
    q - 1 groups with     V_X = 0,  whose V_y matter only through  S = sum_g (V_y - mean) (V_y - mean)',

so that ``sum_g V_g'Q V_g`` is ``V'QV`` plus ``tr(Q S)`` at ``yy``, and ``log|I + L'A L|`` counts ``q`` times: an
evaluation costs one small factor whatever ``q`` is.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from lmemtest.core.arrays import Array
from lmemtest.lmm.engine.blocks import Stage, System
from lmemtest.lmm.engine.cross import DenseCross, SparseCross

# Differences of cross-products that are rounding, relative to the largest.
_ALIKE = 1e-12
# Numbers that are compared at once: few enough for a processor's cache.
_CHUNK = 100_000


def _same(groups: Array) -> bool:
    """Whether all entries along the first axis are the same up to rounding."""
    most = _ALIKE * float(np.abs(groups[0]).max(initial=0.0))
    step = max(1, _CHUNK // max(1, groups[0].size))  # a copy of all groups would be as large as the system
    parts = (groups[start : start + step] for start in range(0, len(groups), step))
    return all(np.abs(part - groups[0]).max(initial=0.0) <= most for part in parts)


def shared(stage: Stage) -> Stage:
    """The stage with one ``A`` where all its groups are alike."""
    if stage.block.q < 2 or isinstance(stage.V, SparseCross) or not _same(stage.A):
        return stage
    return replace(stage, A=stage.A.mean(axis=0, keepdims=True), copies=stage.block.q)


def rotated(system: System) -> System:
    """The system with groups that are alike in everything but the scores put into one; itself if there are none."""
    stages = tuple(map(_rotated, system.chain))
    if all(new is old for new, old in zip(stages, system.chain, strict=True)):
        return system
    return replace(system, source=system.source.products._replace(chain=stages))


def _rotated(stage: Stage) -> Stage:
    if not isinstance(stage.V, DenseCross):
        return stage
    V = stage.V.values
    few = len(V) <= max(m.k for m in stage.block.members)  # no more groups than effects: nothing is gained
    if stage.copies == 1 or few or not _same(V[:, :, :-1]):
        return stage
    mean = V.mean(axis=0)  # of V_X too: the first group's would differ from their sum by more than rounding
    around = V[:, :, -1] - mean[:, -1]
    return replace(
        stage,
        block=replace(stage.block, q=1),
        V=DenseCross(np.sqrt(len(V)) * mean[None]),
        S=(around.T @ around)[None],
    )
