"""Cross-products of the random effects seen through ``P`` and ``V^-1``: ``M = Z'PZ`` and ``N = Z'V^-1X``.

Stages of the chain that share no cells lead. Among their columns ``M = D - Y Y'`` with ``D`` block-diagonal by group
and ``Y`` as wide as what remains, so the elements of ``M`` among them are never formed; the other blocks are dense.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate

import numpy as np
import scipy.linalg as sla

from lmemtest.core.arrays import Array, Index
from lmemtest.errors import DesignError
from lmemtest.lmm.engine.blocks import Block, Member, Stage, System
from lmemtest.lmm.engine.criterion import Criterion
from lmemtest.lmm.engine.cross import Cross, DenseCross, PartedCross
from lmemtest.lmm.engine.sweep import tail_times
from lmemtest.lmm.engine.theta import solve_lower

# Elements of the largest array: 1.2 GB.
_MAX_ELEMENTS = 150_000_000
# Columns of all factors but the leading ones: seconds of dense algebra.
_MAX_COLUMNS = 5_000


@dataclass(frozen=True)
class Leading:
    """``M`` and ``N`` of a leading stage."""

    D: Array  # (q, K, K) or, of groups that are alike, (1, K, K)
    Y: Array  # (q, K, w)
    rest: Array  # (q, K, w2): M between the stage and the columns of the dense blocks
    N: Array  # (q, K, p)
    copies: int


@dataclass(frozen=True)
class LeadingPart:
    """Levels of a term in a leading stage."""

    member: Member
    N: Array  # (levels, k, p)
    lead: Leading
    Y: Array  # (levels, k, w)


@dataclass(frozen=True)
class DensePart:
    """Levels of a term in a dense block."""

    member: Member
    N: Array  # (levels, k, p)
    columns: Index  # (levels, k) among those of the dense blocks


Part = LeadingPart | DensePart


@dataclass(frozen=True)
class Projected:
    """``M`` and ``N`` of a model by parts of its terms."""

    parts: tuple[Part, ...]  # the leading ones first
    dense: Array  # (w2, w2): M between the columns of the dense blocks

    def pair(self, one: Part, two: DensePart) -> Array:
        """``M`` between the levels of two parts, as ``(levels levels, k k)``."""
        columns = two.columns.ravel()
        if isinstance(one, LeadingPart):
            own = one.lead.rest[:, one.member.columns][:, :, columns]
        else:
            own = self.dense[np.ix_(one.columns.ravel(), columns)]
        ki, kj = one.member.k, two.member.k
        return own.reshape(len(one.N), ki, len(two.N), kj).transpose(0, 2, 1, 3).reshape(-1, ki * kj)

    def trace(self, part: Part) -> Array:
        """``sum_l M_ll``, ``(k, k)``."""
        if isinstance(part, DensePart):
            at = part.columns
            return np.asarray(self.dense[at[:, :, None], at[:, None, :]].sum(axis=0), dtype=np.float64)
        near = np.tensordot(part.Y, part.Y, axes=((0, 2), (0, 2)))
        return np.asarray(part.lead.copies * part.member.level_blocks(part.lead.D.sum(axis=0)) - near)


def within(one: LeadingPart, two: LeadingPart) -> tuple[Array, Array]:
    """``D`` and ``Y Y'`` between two parts of one stage, within groups, ``(groups r r, k k)``.

    Of groups that are alike these are one ``D`` and the sum of all ``Y Y'``.
    """
    lead, m, o = one.lead, one.member, two.member
    Y, Z = lead.Y[:, m.columns], lead.Y[:, o.columns]
    if lead.copies > 1:
        near = np.tensordot(Y, Z, axes=((0, 2), (0, 2)))[None]
    else:
        near = Y @ Z.transpose(0, 2, 1)

    def by_level(M: Array) -> Array:
        return M.reshape(-1, m.r, m.k, o.r, o.k).transpose(0, 1, 3, 2, 4).reshape(-1, m.k * o.k)

    return by_level(lead.D[:, m.columns, o.columns]), by_level(near)


def projected(system: System, at: Criterion) -> Projected:
    """``M`` and ``N`` at a point. A `DesignError` says where the dense blocks are too large."""
    leading, dense = _leading(system)
    _check_size(system, leading, dense)
    done, p = at.sweep, system.p
    w2 = sum(b.size for b in dense)
    T0, S = _stacked(system, leading)
    width = w2 + p
    # eliminate the leading stages: everything through (I + Z_1 Sigma_1 Z_1')^-1
    keep, T = [], []
    for i, own in enumerate(T0):
        step = done.steps[i]
        flat = own.reshape(-1, width)
        keep.append(np.eye(step.A.shape[1]) - step.A @ step.Q)
        S = S - flat.T @ (step.Q @ own).reshape(-1, width)
        T.append((keep[i] @ own).reshape(-1, width))
    # then the dense blocks: everything through V^-1
    halves = [np.empty((len(own), 0)) for own in T]
    if w2:
        halves, T, S = _through_dense(dense, done.factors[len(leading) :], T, S)
    # and the fixed effects: everything through P
    right = solve_lower(at.RX, S[w2:, :w2])
    found: list[Part] = []
    for i, stage in enumerate(leading):
        left = solve_lower(at.RX, np.ascontiguousarray(T[i][:, w2:].T))
        q, K = stage.block.q, stage.block.K
        D = keep[i] @ done.steps[i].A
        lead = Leading(
            D=0.5 * (D + D.transpose(0, 2, 1)),
            Y=np.hstack([halves[i], left.T]).reshape(q, K, -1),
            rest=(T[i][:, :w2] - left.T @ right).reshape(q, K, w2),
            N=T[i][:, w2:].reshape(q, K, p),
            copies=stage.copies,
        )
        found += [_part_of(lead, member) for member in stage.block.members]
    start, N = 0, S[w2:, :w2].T
    for block in dense:
        columns = start + np.arange(block.size).reshape(block.q, block.K)
        for m in block.members:
            at_m = columns[:, m.columns].reshape(-1, m.k)
            found.append(DensePart(m, N[at_m], at_m))
        start += block.size
    return Projected(parts=tuple(found), dense=S[:w2, :w2] - right.T @ right)


def _part_of(lead: Leading, m: Member) -> LeadingPart:
    N, Y = (M[:, m.columns].reshape(-1, m.k, M.shape[2]) for M in (lead.N, lead.Y))
    return LeadingPart(m, N, lead, Y)


def _leading(system: System) -> tuple[tuple[Stage, ...], tuple[Block, ...]]:
    """Stages without cells in common, and the other blocks."""
    n = 1 if any(stage.E for stage in system.chain) else len(system.chain)
    return system.chain[:n], system.blocks[n:]


def _through_dense(
    blocks: tuple[Block, ...], factors: tuple[Array, ...], T: list[Array], S: Array
) -> tuple[list[Array], list[Array], Array]:
    """Eliminate dense blocks from the cross-products ``T`` of others with ``[Z_dense X]`` and from theirs, ``S``."""
    w2 = sum(b.size for b in blocks)
    scaled = tail_times(blocks, factors, np.ascontiguousarray(S[:w2]), transpose=True)  # Lambda'S
    inner = tail_times(blocks, factors, np.ascontiguousarray(scaled[:, :w2].T), transpose=True)
    inner.flat[:: w2 + 1] += 1.0
    C = sla.cholesky(0.5 * (inner + inner.T), lower=True, check_finite=False)
    R = solve_lower(C, scaled)
    halves = []
    for own in T:
        turned = tail_times(blocks, factors, np.ascontiguousarray(own[:, :w2].T), transpose=True)
        halves.append(solve_lower(C, turned).T)
    return halves, [own - half @ R for own, half in zip(T, halves, strict=True)], S - R.T @ R


def _stacked(system: System, leading: tuple[Stage, ...]) -> tuple[list[Array], Array]:
    """Cross-products with ``[Z_dense X]``: of the leading stages, ``(q, K, w)``, and of these columns, ``(w, w)``."""
    n, p, t = len(leading), system.p, system.t
    later = system.chain[n:]
    starts = [0, *accumulate(s.block.size for s in later)]
    offset = starts[-1]  # first column of the tail
    width = offset + t + p
    S = np.zeros((width, width))
    S[offset:, offset:] = system.B[: t + p, : t + p]
    first_columns = [-1] * n + starts
    T0 = [_row_block(stage, first_columns, width, offset) for stage in leading]
    for i, stage in enumerate(later):
        size, first = stage.block.size, starts[i]
        own = _row_block(stage, first_columns, width, offset).reshape(size, width)
        columns = first + np.arange(size).reshape(stage.block.q, 1, stage.block.K)
        own[np.arange(size).reshape(stage.block.q, -1, 1), columns] = stage.A
        S[first : first + size, first:] = own[:, first:]
        S[first:, first : first + size] = own[:, first:].T
    return T0, S


def _row_block(stage: Stage, starts: list[int], width: int, offset: int) -> Array:
    """Cross-products of a stage with the later stages of the chain, the tail and X, ``(q, K, width)``."""
    q, K = stage.block.q, stage.block.K
    out = np.zeros((q, K, width))
    for j, e in stage.E.items():
        columns = starts[j] + stage.parent[j][:, None] * e.shape[2] + np.arange(e.shape[2])
        out[np.arange(q)[:, None, None], np.arange(K)[None, :, None], columns[:, None, :]] = e
    out[:, :, offset:] = _dense(stage.V, q, K)[:, :, : width - offset]
    return out


def _dense(cross: Cross, q: int, K: int) -> Array:
    if isinstance(cross, DenseCross):
        return cross.values
    if isinstance(cross, PartedCross):
        return cross.dot(np.eye(cross.m))
    out = np.zeros((q, K, cross.pattern.m))
    out[cross.pattern.row, :, cross.pattern.col] = cross.values
    return out


def _check_size(system: System, leading: tuple[Stage, ...], dense: tuple[Block, ...]) -> None:
    width = sum(b.size for b in dense) + system.p
    k = max(m.k for b in system.blocks for m in b.members)
    elements = max(width**2 * k**2, k**4, *(s.block.size * max(width, s.block.K) for s in leading))
    if width <= _MAX_COLUMNS and elements <= _MAX_ELEMENTS:
        return
    sizes = ", ".join(f"{b.q:,} levels x {b.K}" for b in system.blocks)
    raise DesignError(
        f"ddf='kenward-roger' needs dense algebra that these random effects ({sizes}) are too large for: the limits "
        f"are {_MAX_COLUMNS:,} columns beside the largest factor and {_MAX_ELEMENTS:,} numbers in one array. Use "
        "ddf='satterthwaite', which has no such limit."
    )
