"""Terms, the blocks of columns that are eliminated together, and the cross-products of ``[Z X y]`` by block.

A `Block` has ``q`` groups of ``K`` columns each, and columns of different groups have no cell in common. The levels of
one grouping factor make up such a block, and so do all levels within independent parts of the table: if every factor is
nested in the benchmarks, a block has the benchmarks as its groups and all levels within a benchmark as its columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, pairwise
from typing import NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp

from lmemtest.core.arrays import Array, Index
from lmemtest.lmm.engine.cross import Cross


class Shape(NamedTuple):
    """What theta holds of a term: ``k`` columns with a full covariance, or with a diagonal one."""

    k: int
    diagonal: bool = False

    @property
    def n_theta(self) -> int:
        """Free elements of its Cholesky factor."""
        return self.k if self.diagonal else self.k * (self.k + 1) // 2


@dataclass(frozen=True)
class RandomTerm:
    """One random-effects term: ``k`` columns per level, their covariance full or (``diagonal``) a variance each."""

    basis: Array  # (n_cells, k)
    codes: Index  # (n_cells,) level of each cell
    n_levels: int
    diagonal: bool = False

    @property
    def k(self) -> int:
        return self.basis.shape[1]

    @property
    def shape(self) -> Shape:
        return Shape(self.k, self.diagonal)


@dataclass(frozen=True)
class Member:
    """A term in a block, with up to ``r`` of its levels in each group, side by side."""

    term: int
    basis: Array  # (n_cells of the block, k)
    place: Index | int  # (n_cells of the block,) which of the r levels of its group a cell belongs to
    levels: Index | None  # (q, r) level of the term at each place, -1 where there is none; None: group = level, r = 1
    start: int  # its first column

    @cached_property
    def k(self) -> int:
        return self.basis.shape[1]

    @cached_property
    def r(self) -> int:
        return 1 if self.levels is None else self.levels.shape[1]

    @cached_property
    def columns(self) -> slice:
        """All its columns in a group."""
        return slice(self.start, self.start + self.r * self.k)

    def effect(self, a: int) -> slice:
        """The columns of one effect: one per level."""
        return slice(self.start + a, self.start + self.r * self.k, self.k)

    def level_blocks(self, M: Array) -> Array:
        """Sum over the levels of their parts of a ``(K, K)`` matrix, ``(k, k)``."""
        own = M[self.columns, self.columns]
        if self.r == 1:
            return own
        return np.asarray(np.einsum("iaib->ab", own.reshape(self.r, self.k, self.r, self.k)))


@dataclass(frozen=True)
class Block:
    """Columns that are eliminated together: ``q`` groups of ``K`` columns without cells in common."""

    members: tuple[Member, ...]
    q: int
    codes: Index  # group of each cell of the block
    cells: Index | slice = field(default_factory=lambda: slice(None))  # cells of the table that belong to its groups
    n_cells: int = 0  # of the table, where they are not all

    @cached_property
    def K(self) -> int:
        return sum(m.r * m.k for m in self.members)

    @property
    def size(self) -> int:
        return self.q * self.K

    @property
    def plain(self) -> bool:
        """Whether its groups are the levels of one grouping factor."""
        return all(m.levels is None for m in self.members)

    @cached_property
    def basis(self) -> Array:
        """Columns of a plain block, ``(n_cells, K)``."""
        return np.hstack([m.basis for m in self.members])

    def times(self, u: Array) -> Array:
        """``Z u`` at all cells of the table for ``(q, K)`` effects."""
        out = np.zeros(self.n_cells or len(self.codes))
        for m in self.members:
            own = u[:, m.columns].reshape(self.q * m.r, m.k)
            out[self.cells] += np.einsum("nk,nk->n", m.basis, own[self.codes * m.r + m.place])
        return out

    def spread(self, matrices: Sequence[Array]) -> Array:
        """``(K, K)`` block-diagonal matrix with each term's ``(k, k)`` matrix at each of its levels."""
        if len(self.members) == 1 and self.members[0].r == 1:
            return matrices[self.members[0].term]
        out = np.zeros((self.K, self.K))
        for m in self.members:
            own = matrices[m.term]
            for a in range(m.k):
                for b in range(m.k):
                    if own[a, b]:
                        np.fill_diagonal(out[m.effect(a), m.effect(b)], own[a, b])
        return out


@dataclass(frozen=True)
class Stage:
    """A chain block with its cross-products: ``A`` with itself, ``E[j]`` with later chain blocks, ``V`` with B.

    Groups that are alike share one ``A``: it then has one group and stands for ``copies``. ``S`` are further
    cross-products of such groups with ``y`` alone (see `alike`), the sum of their outer products.
    """

    block: Block
    A: Array  # (q, K, K), or (1, K, K) where all groups are alike
    E: dict[int, Array]  # position in the chain -> (q, K, K_j)
    parent: dict[int, Index]  # position in the chain -> (q,) group of that block
    indicator: dict[int, sp.csr_matrix]  # position -> (q_j, q), sums children into parents
    V: Cross  # (q, K, m)
    copies: int = 1
    S: Array | None = None  # (1, K, K)


class CrossProducts(NamedTuple):
    """The order in which a model's columns are eliminated, and their cross-products."""

    chain: tuple[Stage, ...]
    tail: tuple[Block, ...]
    B: Array  # (m, m) of ``[Z_tail X y]``, m = t + p + 1

    @property
    def products(self) -> CrossProducts:
        return self


class HasProducts(Protocol):
    """What has the cross-products of a model, or can make them: a balanced design often needs none."""

    @property
    def products(self) -> CrossProducts: ...


@dataclass(frozen=True)
class System:
    """Cross-products of one model: ``chain`` stages, ``tail`` blocks, remainder ``B`` of ``[Z_tail X y]``."""

    source: HasProducts
    p: int
    n_rows: int
    ss_within: float
    sum_log_w: float

    @property
    def chain(self) -> tuple[Stage, ...]:
        return self.source.products.chain

    @property
    def tail(self) -> tuple[Block, ...]:
        return self.source.products.tail

    @property
    def B(self) -> Array:
        return self.source.products.B

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
                own = values[:, m.columns]
                if m.levels is None:
                    out[m.term] = own
                    continue
                if not out[m.term].size:
                    out[m.term] = np.zeros((n_levels[m.term], m.k, *rest))
                there = m.levels >= 0
                out[m.term][m.levels[there]] = own.reshape(block.q, m.r, m.k, *rest)[there]
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
