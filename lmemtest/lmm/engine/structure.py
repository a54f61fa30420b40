"""The structure of the random effects: terms, blocks of columns, and the order in which these are eliminated.

A `Block` has ``q`` groups of ``K`` columns each, and columns of different groups have no cell in common. The levels of
one grouping factor make up such a block, and so do all levels within independent parts of the table: if every factor is
nested in the benchmarks, a block has the benchmarks as its groups and all levels within a benchmark as its columns.

Which blocks, and in which order, is chosen by counted cost. Four ways are compared, each with a dense *tail* of ``t``
columns that is eliminated last:

chain            one grouping factor after the other while each is nested in the next; the rest is the tail
parts            after a *border* of factors that cross everything (they are the tail), the table falls into parts
                 that share no level: the connected components of the graph whose nodes are levels and whose edges are
                 cells. A part with ``K`` columns is one group of a merged block, in the recommended model a benchmark
parts, led       one factor is eliminated first, level by level, and leaves smaller parts
parts in parts   without its coarse factors every part falls into smaller ones, which are eliminated before: benchmarks
                 within families

With ``m = t + p + 1`` columns that remain, an evaluation with its gradient costs about

    4 t^3 + sum over chain blocks of q K (6 m^2 + 10 K^2)  flops  and  t^2 + sum of q K (K + m)  numbers,

so in a nested design it grows as ``sum_b q_b^3`` over the parts. Parts that are alike are factored once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import combinations, permutations
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from lmemtest.core.arrays import Array, Index
from lmemtest.lmm.engine.cross import FLOPS_PER_GATHER

# Work up to which nothing but the chain is considered: overheads cost more.
_CHEAP = 2e4
# What a call of the linear algebra library for one small matrix costs, in flops.
_PER_GROUP = 5e4
# Flops that a product of what one level of a leading factor leaves is worth: it is bound by memory.
PER_LEVEL = 50.0
# Factors up to which every border is tried; of up to twice as many borders of three, beyond of one.
_FEW = 5
# Elements of one array of cross-products: 800 MB.
_MAX_ELEMENTS = 1e8
# Elements of the products of what is led with what it leaves: 320 MB.
_MAX_OUTER = 4e7
# Numbers of the levels below one level, all together, from which a product for each of the latter pays.
WORTH_A_LOOP = 3000


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
        block = M[self.columns, self.columns]
        if self.r == 1:
            return block
        return np.asarray(np.einsum("iaib->ab", block.reshape(self.r, self.k, self.r, self.k)))


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
            of_member = u[:, m.columns].reshape(self.q * m.r, m.k)
            out[self.cells] += np.einsum("nk,nk->n", m.basis, of_member[self.codes * m.r + m.place])
        return out

    def spread(self, matrices: Sequence[Array]) -> Array:
        """``(K, K)`` block-diagonal matrix with each term's ``(k, k)`` matrix at each of its levels."""
        if len(self.members) == 1 and self.members[0].r == 1:
            return matrices[self.members[0].term]
        out = np.zeros((self.K, self.K))
        for m in self.members:
            of_term = matrices[m.term]
            for a in range(m.k):
                for b in range(m.k):
                    if of_term[a, b]:
                        np.fill_diagonal(out[m.effect(a), m.effect(b)], of_term[a, b])
        return out


Structure = tuple[tuple[Block, ...], tuple[Block, ...]]  # chain and tail, in the order of their elimination
Candidate = tuple[float, Callable[[], Structure]]  # what a way of elimination costs, and what makes it


def group_terms(terms: Sequence[RandomTerm]) -> tuple[Block, ...]:
    """Join terms with the same grouping factor; most columns first."""
    groups: list[list[int]] = []
    for i, term in enumerate(terms):
        for group in groups:
            first = terms[group[0]]
            if first.n_levels == term.n_levels and np.array_equal(first.codes, term.codes):
                group.append(i)
                break
        else:
            groups.append([i])
    blocks = []
    for group in groups:
        members, start = [], 0
        for i in group:
            members.append(Member(term=i, basis=terms[i].basis, place=0, levels=None, start=start))
            start += terms[i].k
        blocks.append(Block(members=tuple(members), q=terms[group[0]].n_levels, codes=terms[group[0]].codes))
    return tuple(sorted(blocks, key=lambda b: -b.size))


def parents(fine: Block, coarse: Block) -> Index | None:
    """Group of ``coarse`` that holds each group of ``fine``, or None where ``fine`` is not nested in it."""
    if fine.q < coarse.q or not isinstance(coarse.cells, slice):  # a level of each coarse group at least
        return None
    return parents_of(fine.codes, fine.q, coarse.codes)


def parents_of(fine: Index, q: int, coarse: Index) -> Index | None:
    """Code in ``coarse`` of each of the ``q`` codes in ``fine``, or None where they are not nested."""
    parent = np.zeros(q, dtype=np.intp)
    parent[fine] = coarse
    return parent if np.array_equal(parent[fine], coarse) else None


def split_chain(blocks: Sequence[Block]) -> tuple[tuple[Block, ...], tuple[Block, ...]]:
    """Blocks that can be eliminated one after the other without fill, and the rest: as few columns as possible.

    A block of few levels with many columns (a variance for each of 20 algorithms in 40 benchmarks) may be larger than
    the finer one within it (200 seeds), which has to lead all the same.
    """
    best: tuple[tuple[Block, ...], tuple[Block, ...]] | None = None
    nested = {(i, j): parents(a, b) is not None for (i, a), (j, b) in permutations(enumerate(blocks), 2)}
    by_levels = sorted(range(len(blocks)), key=lambda i: -blocks[i].q)
    for lead in range(len(blocks)):
        places = [lead]
        for i in by_levels:
            if i != lead and all(nested[earlier, i] for earlier in places):
                places.append(i)
        chain = [blocks[i] for i in places]
        tail = tuple(b for b in blocks if not any(b is c for c in chain))
        if best is None or sum(b.size for b in tail) < sum(b.size for b in best[1]):
            best = tuple(chain), tail
    return best or ((), ())


def choose(terms: Sequence[RandomTerm], p: int, omega: Array) -> Structure:
    """The cheapest way to eliminate the random effects of a model with ``p`` fixed effects."""
    return min(candidates(terms, p, omega), key=lambda way: way[0])[1]()


def candidates(terms: Sequence[RandomTerm], p: int, omega: Array) -> Iterator[Candidate]:
    """The chain, then what can be cheaper."""
    blocks = group_terms(terms)
    chain, tail = split_chain(blocks)
    cost = _chain_cost(chain, tail, p)
    yield cost, lambda: (chain, tail)
    sets: list[set[int]] = []
    for border in _borders(blocks) if cost > _CHEAP else ():
        taken = {id(b) for b in border}
        of_border = 4.0 * sum(b.size for b in border) ** 3
        if any(seen <= taken for seen in sets) or of_border > cost:
            continue
        rest = [b for b in blocks if id(b) not in taken]
        part = connected(rest)
        if part is not None:
            sets.append(taken)
            for of_rest, made in _Parts.of(rest, *part, omega).candidates(border, p):
                yield of_rest + of_border, made


def _chain_cost(chain: Sequence[Block], tail: Sequence[Block], p: int) -> float:
    t = sum(b.size for b in tail)
    m = t + p + 1
    cost = 4.0 * t**3
    for i, b in enumerate(chain):
        dense = 6.0 * b.size * (m + sum(c.K for c in chain[i + 1 :])) ** 2
        per_cell = float(sum(c.K for c in tail))
        width = np.minimum(np.bincount(b.codes, minlength=b.q) * per_cell, t) + p + 1.0 if t else np.full(b.q, p + 1.0)
        cost += min(dense, FLOPS_PER_GATHER * float(width @ width)) + 10.0 * b.size * b.K**2
    return cost


def _borders(blocks: Sequence[Block]) -> Iterator[tuple[Block, ...]]:
    """Sets of factors that may have to be taken out before the rest falls apart, small ones first."""
    yield ()
    most = len(blocks) - 1 if len(blocks) <= _FEW else 3 if len(blocks) <= 2 * _FEW else 1
    by_size = sorted(blocks, key=lambda b: b.size)
    for n in range(1, most + 1):
        yield from combinations(by_size, n)


def connected(blocks: Sequence[Block]) -> tuple[Index, int] | None:
    """Part of each cell and their number, or None where all levels hang together."""
    ordered = sorted(blocks, key=lambda b: b.q)
    part, n_parts = ordered[0].codes, ordered[0].q
    for block in ordered[1:]:
        if n_parts < 2:
            break
        part, n_parts = joined(part, n_parts, block.codes, block.q)
    return (part, n_parts) if n_parts > 1 else None


def joined(first: Index, q: int, second: Index, r: int) -> tuple[Index, int]:
    """The parts of a table that share no level of either factor: their codes, and how many there are."""
    if q <= r and parents_of(second, r, first) is not None:
        return first, q
    if r <= q and parents_of(first, q, second) is not None:
        return second, r
    from scipy.sparse.csgraph import connected_components

    edges = sp.csr_matrix((np.ones(len(first), dtype=np.int8), (first, q + second)), shape=(q + r, q + r))
    label = connected_components(edges, directed=False)[1][:q]
    codes, label = np.unique(label, return_inverse=True)
    return label[first], len(codes)


@dataclass(frozen=True)
class _Parts:
    """Independent parts of a table and how many levels of each factor they hold."""

    blocks: Sequence[Block]
    part: Index  # (n_cells,)
    n_parts: int
    of_level: list[Index]  # per block: the part of each level
    counts: Array  # (n_blocks, n_parts) levels
    alike: bool  # as far as counts of levels, cells and weights tell
    omega: Array

    @classmethod
    def of(cls, blocks: Sequence[Block], part: Index, n_parts: int, omega: Array) -> _Parts:
        of_level = []
        for block in blocks:
            part_of_level = np.zeros(block.q, dtype=np.intp)
            part_of_level[block.codes] = part
            of_level.append(part_of_level)
        counts = np.array(
            [np.bincount(part_of_level, minlength=n_parts) for part_of_level in of_level], dtype=np.float64
        )
        weights = np.bincount(part, omega, n_parts)
        alike = bool((counts == counts[:, :1]).all() and np.ptp(weights) <= 1e-9 * weights[0])
        return cls(blocks, part, n_parts, of_level, counts, alike, omega)

    def candidates(self, border: tuple[Block, ...], p: int) -> Iterator[Candidate]:
        """All factors at once within each part; then with smaller parts before; then one of them led by another."""
        everything = range(len(self.blocks))
        m = sum(b.size for b in border) + p + 1
        K = self.widths(everything)
        whole = float(K @ (K + m)) < _MAX_ELEMENTS
        if whole:
            cost = self.cost(everything, m)
            yield cost, lambda: (self.merged(), border)
        if (self.alike and whole) or len(self.blocks) < 2:
            return
        yield from self._nested(border, m)
        for i, lead in enumerate(self.blocks):
            others = [j for j in everything if j != i]
            width = float(self.widths(others).max())
            if self.has_room(lead.q, lead.K, width, m):
                cost = self.cost(others, m, padded=True) + (PER_LEVEL * lead.q + 6.0 * lead.size) * (m + width) ** 2
                yield cost, partial(self._led, lead, others, border)

    def _nested(self, border: tuple[Block, ...], m: int) -> Iterator[Candidate]:
        """What is left of the parts without some coarse factors, and then these."""
        order = sorted(range(len(self.blocks)), key=lambda i: self.blocks[i].q)
        for n in range(1, len(order)):
            coarse, fine = order[:n], [self.blocks[i] for i in order[n:]]
            parts = connected(fine)
            if parts is None or parts[1] <= self.n_parts:
                continue
            inner = _Parts.of(fine, *parts, self.omega)
            K, left = float(inner.widths(range(len(fine))).max()), float(self.widths(coarse).max())
            if self.has_room(inner.n_parts, K, left, m):
                cost = inner.cost(range(len(fine)), m + int(left), padded=True) + self.cost(coarse, m, padded=True)
                cost += PER_LEVEL * inner.n_parts * (left + m) ** 2
                yield cost, partial(self._with_inner, inner, coarse, border)

    def _with_inner(self, inner: _Parts, coarse: Sequence[int], border: tuple[Block, ...]) -> Structure:
        return (inner.block(range(len(inner.blocks))), self.block(coarse)), border

    def _led(self, lead: Block, others: Sequence[int], border: tuple[Block, ...]) -> Structure:
        return (lead, self.block(others)), border

    def widths(self, chosen: Sequence[int] | range) -> Array:
        """Columns of some blocks in every part."""
        return np.array([self.blocks[i].K for i in chosen]) @ self.counts[list(chosen)]

    def has_room(self, q: int, K: float, width: float, m: int) -> bool:
        """Whether ``q`` groups of ``K`` columns can be eliminated before the ``width`` columns left of every part.

        Products of single groups are made where a loop over the parts does not pay.
        """
        left = width * (m + width)
        single = min(q * left, WORTH_A_LOOP * self.n_parts)
        return max(single, self.n_parts * left, q * K * (K + width + m)) < _MAX_OUTER

    def cost(self, chosen: Sequence[int] | range, m: int, *, padded: bool = False) -> float:
        """Flops of an evaluation with its gradient."""
        K = self.widths(chosen)
        if padded:
            K = np.full(self.n_parts, K.max(initial=0.0))
        if self.alike and not padded:
            return float(10.0 * K[0] ** 3 + 6.0 * K[0] * m**2)
        return float(np.sum(10.0 * K**3 + 6.0 * K * m**2 + _PER_GROUP))

    def merged(self) -> tuple[Block, ...]:
        """One block per number of columns, so that little is padded."""
        chosen = range(len(self.blocks))
        K = self.widths(chosen)
        classes: list[Index] = []
        left = np.argsort(K, kind="stable")
        while len(left):  # parts of up to a fifth more columns are padded rather than put into a block of their own
            n = int(np.searchsorted(K[left], max(1.2 * K[left[0]], K[left[0]] + 4), side="right"))
            classes.append(np.sort(left[:n]))
            left = left[n:]
        return tuple(self.block(chosen, groups if len(classes) > 1 else None) for groups in classes)

    def block(self, chosen: Sequence[int] | range, groups: Index | None = None) -> Block:
        """The block with the columns of some factors in some parts (all, by default)."""
        new = np.full(self.n_parts, -1, dtype=np.intp)
        groups = np.arange(self.n_parts) if groups is None else groups
        new[groups] = np.arange(len(groups))
        cells: Index | slice = slice(None)
        if len(groups) < self.n_parts:
            cells = np.flatnonzero(new[self.part] >= 0)
        members, start = [], 0
        for i in chosen:
            block, level = self.blocks[i], new[self.of_level[i]]
            order = np.argsort(level, kind="stable")
            order = order[level[order] >= 0]
            count = np.bincount(level[order], minlength=len(groups))
            place = np.zeros(block.q, dtype=np.intp)
            place[order] = np.arange(len(order)) - (np.cumsum(count) - count)[level[order]]
            levels = np.full((len(groups), int(count.max(initial=1))), -1, dtype=np.intp)
            levels[level[order], place[order]] = order
            at = place[block.codes[cells]]
            for member in block.members:
                moved = replace(member, basis=member.basis[cells], place=at, levels=levels, start=start)
                members.append(moved)
                start += moved.r * moved.k
        return Block(tuple(members), len(groups), new[self.part[cells]], cells, n_cells=len(self.part))
