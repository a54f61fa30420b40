"""Cross-products of ``[Z X y]`` by block, all that a Gaussian mixed model sees of the data.

Groups of a block that are alike up to the scores are factored once. In a balanced design all groups ``g = 1 ... q`` of
a block have the same cross-products ``A`` with themselves and, apart from ``y``, the same ``V_X`` with what remains. An
orthogonal rotation of the groups, whose first row is ``(1, ..., 1) / sqrt(q)``, changes neither ``A`` nor the
likelihood, and leaves

    one group with        V = sqrt(q) [V_X, mean of the V_y],
    q - 1 groups with     V_X = 0,  whose V_y matter only through  S = sum_g (V_y - mean) (V_y - mean)',

so that ``sum_g V_g'Q V_g`` is ``V'QV`` plus ``tr(Q S)`` at ``yy``, and ``log|I + L'A L|`` counts ``q`` times: an
evaluation costs one small factor whatever ``q`` is.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, combinations_with_replacement, pairwise, product
from typing import cast

import numpy as np
import scipy.sparse as sp

from lmemtest.core.arrays import Array, Index
from lmemtest.errors import DesignError
from lmemtest.lmm.engine.cross import Cross, DenseCross, PartedCross, SparseCross, SparsePattern, prefer_sparse
from lmemtest.lmm.engine.structure import Block, Member, RandomTerm, Structure, choose, parents

_MAX_TAIL = 20_000  # columns; its square in doubles is 3.2 GB
_SPARSE_FROM = 200_000  # elements; below it the dense form always wins
# Differences of cross-products that are rounding, relative to the largest.
_ALIKE = 1e-12
# Numbers that are compared at once: few enough for a processor's cache.
_CHUNK = 100_000


@dataclass(frozen=True)
class Stage:
    """A chain block with its cross-products: ``A`` with itself, ``E[j]`` with later chain blocks, ``V`` with B.

    Groups that are alike share one ``A``: it then has one group and stands for ``copies``. ``S`` are further
    cross-products of such groups with ``y`` alone (see `rotated`), the sum of their outer products.
    """

    block: Block
    A: Array  # (q, K, K), or (1, K, K) where all groups are alike
    E: dict[int, Array]  # position in the chain -> (q, K, K_j)
    parent: dict[int, Index]  # position in the chain -> (q,) group of that block
    indicator: dict[int, sp.csr_matrix]  # position -> (q_j, q), sums children into parents
    V: Cross  # (q, K, m)
    copies: int = 1
    S: Array | None = None  # (1, K, K)


# The stages of the chain and the blocks of the tail, in the order of their elimination; and ``(m, m)`` cross-products
# of ``[Z_tail X y]``, ``m = t + p + 1``.
CrossProducts = tuple[tuple[Stage, ...], tuple[Block, ...], Array]


@dataclass(frozen=True)
class System:
    """Cross-products of one model: ``chain`` stages, ``tail`` blocks, remainder ``B`` of ``[Z_tail X y]``."""

    source: CellColumns | CrossProducts  # cells have them made when they are asked for: a balanced design needs none
    p: int
    n_rows: int
    ss_within: float
    sum_log_w: float

    @property
    def products(self) -> CrossProducts:
        return self.source.products if isinstance(self.source, CellColumns) else self.source

    @property
    def chain(self) -> tuple[Stage, ...]:
        return self.products[0]

    @property
    def tail(self) -> tuple[Block, ...]:
        return self.products[1]

    @property
    def B(self) -> Array:
        return self.products[2]

    @cached_property
    def t(self) -> int:
        return sum(b.size for b in self.tail)

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """Chain blocks, then tail blocks: the order of the Cholesky factors that the sweep takes."""
        return (*(s.block for s in self.chain), *self.tail)

    @cached_property
    def tail_rows(self) -> list[slice]:
        """Rows of every tail block in the remainder."""
        ends = [0, *accumulate(b.size for b in self.tail)]
        return [slice(start, stop) for start, stop in pairwise(ends)]

    def by_tail_block(self, M: Array) -> list[Array]:
        """The tail's rows of a matrix with the rows of the remainder, ``(q, K, c)`` per block."""
        return [M[rows].reshape(b.q, b.K, -1) for rows, b in zip(self.tail_rows, self.tail, strict=True)]

    def places(self, term: int) -> Iterator[tuple[int, Member]]:
        """The blocks that hold levels of a term."""
        for b, block in enumerate(self.blocks):
            for member in block.members:
                if member.term == term:
                    yield b, member

    def by_level(self, by_block: Sequence[Array], n_levels: Sequence[int]) -> list[Array]:
        """Values of blocks, ``(q, K, ...)``, as values of the levels of the terms, ``(n_levels, k, ...)``."""
        out: list[Array] = [np.empty(0)] * len(n_levels)
        for block, values in zip(self.blocks, by_block, strict=True):
            rest = values.shape[2:]
            for m in block.members:
                of_member = values[:, m.columns]
                if m.levels is None:
                    out[m.term] = of_member
                    continue
                if not out[m.term].size:
                    out[m.term] = np.zeros((n_levels[m.term], m.k, *rest))
                there = m.levels >= 0
                out[m.term][m.levels[there]] = of_member.reshape(block.q, m.r, m.k, *rest)[there]
        return out

    def by_block(self, by_term: Sequence[Array]) -> list[Array]:
        """The inverse of `by_level`; zero where a group has fewer levels than others."""
        out = []
        for block in self.blocks:
            parts = []
            for m in block.members:
                values = by_term[m.term]
                if m.levels is not None:
                    rest = values.shape[1:]
                    values = np.concatenate([values, np.zeros((1, *rest))])[m.levels]
                    values = values.reshape(block.q, m.r * m.k, *rest[1:])
                parts.append(values)
            out.append(parts[0] if len(parts) == 1 else np.concatenate(parts, axis=1))
        return out


@dataclass(frozen=True)
class CellColumns:
    """The columns of a model at the cells of its table: ``Z`` of the terms, and dense ``[X y]``."""

    terms: Sequence[RandomTerm]
    rows: Array  # (n_distinct, p) the rows of X: those that occur often are held once
    row: Index | None  # (n_cells,) which of them a cell has; None: its own
    y: Array  # (n_cells,)
    omega: Array  # (n_cells,) rows times precision
    structure: Structure | None = None  # the way of the elimination; None: the cheapest

    @property
    def width(self) -> int:
        return self.rows.shape[1] + 1

    @cached_property
    def diagonal(self) -> Array | None:
        """Where every distinct row has a column of its own, the numbers in these columns."""
        d = self.rows.diagonal()
        alone = self.row is not None and len(self.rows) == self.rows.shape[1] == np.count_nonzero(self.rows)
        return d if alone and d.all() else None

    def sums(self, codes: Index, weight: Array, q: int, cells: Index | slice) -> Array:
        """``weight``ed sums of the columns by level, ``(q, width)``; ``codes`` and ``weight`` are of ``cells``."""
        out = np.empty((q, self.width))
        out[:, -1] = np.bincount(codes, weight * self.y[cells], q)
        n = len(self.rows)
        if self.row is None:
            out[:, :-1] = _sum_by(codes, weight[:, None] * self.rows[cells], q)
        elif q * n <= 4 * len(codes):
            counts = np.bincount(codes * n + self.row[cells], weight, q * n)
            out[:, :-1] = counts.reshape(q, n) @ self.rows
        else:
            counts = sp.csr_matrix((weight, (codes, self.row[cells])), shape=(q, n))
            out[:, :-1] = counts @ self.rows
        return out

    def gram(self) -> Array:
        """``[X y]' W [X y]``."""
        omega = self.omega
        p = self.width - 1
        out = np.empty((p + 1, p + 1))
        weight = omega if self.row is None else np.bincount(self.row, omega, len(self.rows))
        cross = omega * self.y if self.row is None else np.bincount(self.row, omega * self.y, len(self.rows))
        d = self.diagonal
        out[:p, :p] = (self.rows * weight[:, None]).T @ self.rows if d is None else np.diag(weight * d**2)
        out[:p, p] = out[p, :p] = cross @ self.rows
        out[p, p] = omega @ self.y**2
        return out

    @cached_property
    def products(self) -> CrossProducts:
        """The cross-products in the order of the elimination."""
        chosen = self.structure or choose(self.terms, self.width - 1, self.omega)
        chain, tail = chosen
        t = sum(b.size for b in tail)
        if t > _MAX_TAIL:
            sizes = ", ".join(str(b.q) for b in (*chain, *tail))
            raise DesignError(
                f"crossed random effects with {sizes} levels need a dense matrix of {t:,} columns, "
                f"more than the limit of {_MAX_TAIL:,}. Leave out one of the smaller crossed terms, or nest it."
            )
        stages = tuple(_stages(chosen, self))
        if self.structure is None and not any(stage.E for stage in stages):
            stages = tuple(map(shared, stages))
        return stages, tail, _remainder(tail, self)


def _sum_by(codes: Index, values: Array, q: int) -> Array:
    """Sum the rows of ``values`` (n, c) by level, ``(q, c)``."""
    n = len(codes)
    if values.shape[1] <= 4:
        sums = [np.bincount(codes, weights=c, minlength=q) for c in values.T]
        return np.stack(sums, axis=1) if sums else np.empty((q, 0))
    return sp.csr_matrix((np.ones(n), (codes, np.arange(n))), shape=(q, n)) @ values


def _effects(block: Block) -> list[tuple[Member, int]]:
    """Every effect of every member."""
    return [(m, a) for m in block.members for a in range(m.k)]


def _self_products(block: Block, omega: Array) -> Array:
    """``Z_g' W Z_g`` per group, ``(q, K, K)``."""
    out = np.zeros((block.q, block.K, block.K))
    weight = omega[block.cells]
    for (m, a), (other, b) in combinations_with_replacement(_effects(block), 2):
        values = weight * m.basis[:, a] * other.basis[:, b]
        rows, columns = m.effect(a), other.effect(b)
        if m is other:  # two levels of one factor have no cell in common
            diagonal = np.bincount(block.codes * m.r + m.place, values, block.q * m.r).reshape(block.q, m.r)
            i, j = np.arange(block.K)[rows], np.arange(block.K)[columns]
            out[:, i, j] = out[:, j, i] = diagonal
        else:
            flat = (block.codes * m.r + m.place) * other.r + other.place
            sums = np.bincount(flat, values, block.q * m.r * other.r).reshape(block.q, m.r, other.r)
            out[:, rows, columns] = sums
            out[:, columns, rows] = sums.transpose(0, 2, 1)
    return out


def _nested_products(fine: Block, coarse: Block, omega: Array) -> Array:
    """``Z_g' W Z_parent(g)`` per group of ``fine``, ``(q, K, K_coarse)``."""
    out = np.zeros((fine.q, fine.K, coarse.K))
    for (m, a), (other, b) in product(_effects(fine), _effects(coarse)):
        values = omega * m.basis[:, a] * other.basis[:, b]
        flat = (fine.codes * m.r + m.place) * other.r + other.place
        out[:, m.effect(a), other.effect(b)] = np.bincount(flat, values, fine.q * m.r * other.r).reshape(
            fine.q, m.r, other.r
        )
    return out


def _with_columns(block: Block, cells: CellColumns) -> Array:
    """Cross-products of ``block`` with dense columns, ``(q, K, width)``."""
    out = np.empty((block.q, block.K, cells.width))
    weight = cells.omega[block.cells]
    for m, a in _effects(block):
        sums = cells.sums(block.codes * m.r + m.place, weight * m.basis[:, a], block.q * m.r, block.cells)
        out[:, m.effect(a)] = sums.reshape(block.q, m.r, cells.width)
    return out


def dense_cross(block: Block, tail: Sequence[Block], cells: CellColumns) -> Array:
    """Cross-products of ``block`` with the remainder ``[Z_tail X y]``, ``(q, K, m)``."""
    t = sum(b.size for b in tail)
    out = np.zeros((block.q, block.K, t + cells.width))
    out[:, :, t:] = _with_columns(block, cells)
    first, weight = 0, cells.omega[block.cells]
    for other in tail:
        codes = other.codes[block.cells]
        for (m, a), b in product(_effects(block), range(other.K)):
            values = weight * m.basis[:, a] * other.basis[block.cells, b]
            sums = np.bincount((block.codes * m.r + m.place) * other.q + codes, values, block.q * m.r * other.q)
            out[:, m.effect(a), first + b : first + other.size : other.K] = sums.reshape(block.q, m.r, other.q)
        first += other.size
    return out


def _remainder_columns(tail: Sequence[Block]) -> tuple[list[Index], int]:
    """First remainder column of each cell in each tail block, and their total."""
    starts, offset = [], 0
    for block in tail:
        starts.append(offset + block.codes * block.K)
        offset += block.size
    return starts, offset


def _pattern(block: Block, tail: Sequence[Block], width: int) -> SparsePattern:
    """Remainder columns that occur together with each level of ``block``; the last ``width`` always do."""
    starts, t = _remainder_columns(tail)
    rows = [np.repeat(block.codes, b.K) for b in tail]
    cols = [(s[:, None] + np.arange(b.K)).ravel() for s, b in zip(starts, tail, strict=True)]
    return SparsePattern.of(np.concatenate(rows), np.concatenate(cols), block.q, t + width, width)


def _patterns(chain: Sequence[Block], tail: Sequence[Block], width: int) -> list[SparsePattern] | None:
    """Patterns of the chain where the sparse form is the cheaper one (one form for the whole chain), else None."""
    m = sum(b.size for b in tail) + width
    if not tail or not all(b.plain for b in chain) or sum(b.size for b in chain) * m <= _SPARSE_FROM:
        return None
    patterns = [_pattern(block, tail, width) for block in chain]
    n_pairs = sum(p.n_pairs for p in patterns)
    return patterns if prefer_sparse(n_pairs, sum(b.size for b in chain), m) else None


def _sparse_cross(pattern: SparsePattern, block: Block, tail: Sequence[Block], cells: CellColumns) -> SparseCross:
    """Cross-products of a plain block with the remainder, at the entries of ``pattern``."""
    starts, _ = _remainder_columns(tail)
    weighted = cells.omega[:, None] * block.basis
    nnz, width = len(pattern.row), cells.width
    values = np.zeros((nnz, block.K))
    values[pattern.last(width).ravel()] = _with_columns(block, cells).transpose(0, 2, 1).reshape(-1, block.K)
    for start, other in zip(starts, tail, strict=True):
        for b in range(other.K):
            entries = pattern.find(block.codes, start + b)
            for a in range(block.K):
                values[:, a] += np.bincount(entries, weighted[:, a] * other.basis[:, b], nnz)
    return SparseCross(pattern, values)


def _parts(chain: Sequence[Block], cells: CellColumns) -> tuple[list[Index], Index] | None:
    """Part of the groups of every block, and of the columns of ``X``, where they fall into parts that do not meet."""
    p = cells.width - 1
    if not chain or cells.diagonal is None or sum(b.size for b in chain) * p <= _SPARSE_FROM:
        return None
    from scipy.sparse.csgraph import connected_components

    ends = np.cumsum([p, *(b.q for b in chain)])
    column = np.concatenate([cast(Index, cells.row)[b.cells] for b in chain])
    group = np.concatenate([first + b.codes for first, b in zip(ends, chain, strict=False)])
    edges = sp.csr_matrix((np.ones(len(group), dtype=np.int8), (column, group)), shape=(ends[-1],) * 2)
    n_parts, part = connected_components(edges, directed=False)
    return (np.split(part, ends[:-1])[1:], part[:p]) if n_parts > 1 else None


def _parted_cross(
    block: Block, tail: Sequence[Block], part: Index, of_column: Index, cells: CellColumns
) -> PartedCross:
    """Cross-products of a block with the tail, with the columns of ``X`` of each group's part, and with ``y``."""
    p, n_parts = cells.width - 1, int(of_column.max()) + 1
    row, diagonal, weight = cast(Index, cells.row)[block.cells], cast(Array, cells.diagonal), cells.omega[block.cells]
    columns = [np.flatnonzero(of_column == i) for i in range(n_parts)]
    w = max(map(len, columns))
    place = np.empty(p, dtype=np.intp)
    for these in columns:
        place[these] = np.arange(len(these))
    of_X = np.zeros((block.q, block.K, w))
    for m, a in _effects(block):
        at = (block.codes * m.r + m.place) * w + place[row]
        sums = np.bincount(at, weight * m.basis[:, a] * diagonal[row], block.q * m.r * w)
        of_X[:, m.effect(a)] = sums.reshape(block.q, m.r, w)
    others = dense_cross(block, tail, replace(cells, rows=np.empty((p, 0))))
    t = others.shape[2] - 1
    return PartedCross(
        np.concatenate([others[:, :, :t], of_X, others[:, :, t:]], axis=2),
        tuple(np.flatnonzero(part == i) for i in range(n_parts)),
        tuple(
            np.concatenate([np.arange(t), t + these, np.full(w - len(these), t + p + 1), [t + p]]) for these in columns
        ),
        t + p + 1,
    )


def _remainder(tail: Sequence[Block], cells: CellColumns) -> Array:
    """``[Z_tail X y]' W [Z_tail X y]``, dense."""
    t = sum(b.size for b in tail)
    m = t + cells.width
    B = np.zeros((m, m))
    B[t:, t:] = cells.gram()
    first = 0
    for i, block in enumerate(tail):
        values = dense_cross(block, tail[i:], cells)
        B[first : first + block.size, first:] = values.reshape(block.size, -1)
        B[first:, first : first + block.size] = values.reshape(block.size, -1).T
        first += block.size
    return B


def _stages(structure: Structure, cells: CellColumns) -> Iterator[Stage]:
    chain, tail = structure
    patterns = _patterns(chain, tail, cells.width)
    parts = None if patterns else _parts(chain, cells)

    def with_remainder(i: int) -> Cross:
        if patterns:
            return _sparse_cross(patterns[i], chain[i], tail, cells)
        if parts:
            return _parted_cross(chain[i], tail, parts[0][i], parts[1], cells)
        return DenseCross(dense_cross(chain[i], tail, cells))

    for i, block in enumerate(chain):
        later = {j: parents(block, chain[j]) for j in range(i + 1, len(chain)) if isinstance(block.cells, slice)}
        parent = {j: p for j, p in later.items() if p is not None}
        yield Stage(
            block=block,
            A=_self_products(block, cells.omega),
            E={j: _nested_products(block, chain[j], cells.omega) for j in parent},
            parent=parent,
            indicator={
                j: sp.csr_matrix((np.ones(block.q), (p, np.arange(block.q))), shape=(chain[j].q, block.q))
                for j, p in parent.items()
            },
            V=with_remainder(i),
        )


def build_system(
    terms: Sequence[RandomTerm],
    X: Array,
    y: Array,
    omega: Array,
    *,
    n_rows: int,
    ss_within: float,
    sum_log_w: float,
    row: Index | None = None,
    structure: Structure | None = None,
) -> System:
    """Cross-products of a model: ``X`` (n_cells, p) of full rank, ``y`` the cell means, ``omega`` rows times precision.

    With ``row`` (n_cells,), ``X`` holds distinct rows, of which ``row`` says the cells'. Where crossed factors would
    need a dense matrix of more than 20,000 columns a `DesignError` says so when it is asked for. ``ss_within`` is the
    weighted sum of squares of the rows about their cell means, ``sum_log_w`` that of their log precision weights.
    ``structure`` is the way of the elimination (the cheapest, by default).
    """
    cells = CellColumns(terms, X, row, y, omega, structure)
    return System(cells, p=X.shape[1], n_rows=n_rows, ss_within=ss_within, sum_log_w=sum_log_w)


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
    return replace(system, source=(stages, system.tail, system.B))


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
