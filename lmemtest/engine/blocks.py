"""Terms and cells -> blocked cross-products of ``[Z X y]``, all that a Gaussian mixed model sees of the data.

Terms that share their grouping factor form one `Block`: ``q`` levels of ``K`` columns. The block with the
most columns leads and stays block-diagonal; every further block in which all leading blocks are nested
(runs in seeds in benchmarks) stays block-diagonal after their elimination and joins the *chain*. What
remains is the dense *tail*, which together with ``[X y]`` forms the remainder ``B``.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, combinations_with_replacement, pairwise
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from lmemtest.engine.cross import Array, Cross, DenseCross, Index, SparseCross, SparsePattern, prefer_sparse
from lmemtest.errors import DesignError

_MAX_TAIL = 20_000  # columns; its square in doubles is 3.2 GB
_SPARSE_FROM = 200_000  # elements; below it the dense form always wins


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
class Block:
    """All terms of one grouping factor; ``members`` are their positions in the model."""

    members: tuple[int, ...]
    basis: Array  # (n_cells, K)
    codes: Index
    q: int

    @property
    def K(self) -> int:
        return self.basis.shape[1]

    @property
    def size(self) -> int:
        return self.q * self.K

    def places(self, sizes: Sequence[int]) -> Iterator[tuple[int, slice]]:
        """Its terms, and their columns in it."""
        start = 0
        for i in self.members:
            yield i, slice(start, start + sizes[i])
            start += sizes[i]


@dataclass(frozen=True)
class Stage:
    """A chain block with its cross-products: ``A`` with itself, ``E[j]`` with later chain blocks, ``V`` with B."""

    block: Block
    A: Array  # (q, K, K)
    E: dict[int, Array]  # position in the chain -> (q, K, K_j)
    parent: dict[int, Index]  # position in the chain -> (q,) level of that block
    indicator: dict[int, sp.csr_matrix]  # position -> (q_j, q), sums children into parents
    V: Cross  # (q, K, m)


@dataclass(frozen=True)
class System:
    """Cross-products of one model: ``chain`` stages, ``tail`` blocks, remainder ``B`` of ``[Z_tail X y]``."""

    chain: tuple[Stage, ...]
    tail: tuple[Block, ...]
    B: Array  # (m, m), m = t + p + 1
    p: int
    n_rows: int
    ss_within: float
    sum_log_w: float

    @property
    def t(self) -> int:
        return sum(b.size for b in self.tail)

    @property
    def blocks(self) -> tuple[Block, ...]:
        """Chain blocks, then tail blocks: the order of the Cholesky factors that the sweep takes."""
        return (*(s.block for s in self.chain), *self.tail)

    @property
    def tail_rows(self) -> list[slice]:
        """Rows of every tail block in the remainder."""
        ends = [0, *accumulate(b.size for b in self.tail)]
        return [slice(start, stop) for start, stop in pairwise(ends)]

    def by_tail_block(self, M: Array) -> list[Array]:
        """The tail's rows of a matrix with the rows of the remainder, ``(q, K, c)`` per block."""
        return [M[rows].reshape(b.q, b.K, -1) for rows, b in zip(self.tail_rows, self.tail, strict=True)]


def group_terms(terms: Sequence[RandomTerm]) -> tuple[Block, ...]:
    """Join terms with the same grouping factor; most columns first."""
    groups: list[list[int]] = []
    for i, term in enumerate(terms):
        for group in groups:
            if np.array_equal(terms[group[0]].codes, term.codes):
                group.append(i)
                break
        else:
            groups.append([i])
    blocks = [
        Block(
            members=tuple(g),
            basis=np.hstack([terms[i].basis for i in g]),
            codes=terms[g[0]].codes,
            q=terms[g[0]].n_levels,
        )
        for g in groups
    ]
    return tuple(sorted(blocks, key=lambda b: -b.size))


def parents(fine: Block, coarse: Block) -> Index | None:
    """Level of ``coarse`` that holds each level of ``fine``, or None where ``fine`` is not nested in it."""
    parent = np.zeros(fine.q, dtype=np.intp)
    parent[fine.codes] = coarse.codes
    return parent if np.array_equal(parent[fine.codes], coarse.codes) else None


def split_chain(blocks: Sequence[Block]) -> tuple[tuple[Block, ...], tuple[Block, ...]]:
    """Blocks that can be eliminated one after the other without fill, and the rest: as few columns as possible.

    A block of few levels with many columns (a variance for each of 20 algorithms in 40 benchmarks) may be larger than
    the finer one within it (200 seeds), which has to lead all the same.
    """
    best: tuple[tuple[Block, ...], tuple[Block, ...]] | None = None
    for lead in blocks:
        chain = [lead]
        for block in sorted((b for b in blocks if b is not lead), key=lambda b: -b.q):
            if all(parents(earlier, block) is not None for earlier in chain):
                chain.append(block)
        tail = tuple(b for b in blocks if not any(b is c for c in chain))
        if best is None or sum(b.size for b in tail) < sum(b.size for b in best[1]):
            best = tuple(chain), tail
    return best or ((), ())


def _sum_by(codes: Index, values: Array, q: int) -> Array:
    """Sum the rows of ``values`` (n, c) by level, ``(q, c)``."""
    n = len(codes)
    if values.shape[1] <= 4:
        return np.stack([np.bincount(codes, weights=c, minlength=q) for c in values.T], axis=1)
    return sp.csr_matrix((np.ones(n), (codes, np.arange(n))), shape=(q, n)) @ values


def _self_products(block: Block, omega: Array) -> Array:
    """``Z_l' W Z_l`` per level, ``(q, K, K)``."""
    out = np.empty((block.q, block.K, block.K))
    for a, b in combinations_with_replacement(range(block.K), 2):
        out[:, a, b] = np.bincount(block.codes, omega * block.basis[:, a] * block.basis[:, b], block.q)
        out[:, b, a] = out[:, a, b]
    return out


def _nested_products(fine: Block, coarse: Block, omega: Array) -> Array:
    """``Z_l' W Z_parent(l)`` per level of ``fine``, ``(q, K, K_coarse)``."""
    products = (omega[:, None] * fine.basis)[:, :, None] * coarse.basis[:, None, :]
    return _sum_by(fine.codes, products.reshape(len(omega), -1), fine.q).reshape(fine.q, fine.K, coarse.K)


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
    m = t + width
    rows = [np.repeat(block.codes, b.K) for b in tail] + [np.repeat(np.arange(block.q), width)]
    cols = [(s[:, None] + np.arange(b.K)).ravel() for s, b in zip(starts, tail, strict=True)]
    cols.append(np.tile(np.arange(t, m), block.q))
    return SparsePattern.of(np.concatenate(rows), np.concatenate(cols), block.q, m)


def _patterns(chain: Sequence[Block], tail: Sequence[Block], width: int) -> list[SparsePattern] | None:
    """Patterns of the chain where the sparse form is the cheaper one (one form for the whole chain), else None."""
    m = sum(b.size for b in tail) + width
    if not tail or sum(b.size for b in chain) * m <= _SPARSE_FROM:
        return None
    patterns = [_pattern(block, tail, width) for block in chain]
    n_pairs = sum(p.n_pairs for p in patterns)
    return patterns if prefer_sparse(n_pairs, sum(b.size for b in chain), m) else None


def _dense_cross(block: Block, tail: Sequence[Block], D: Array, omega: Array) -> Array:
    """Cross-products of ``block`` with the remainder ``[Z_tail D]``, ``(q, K, m)``."""
    t = sum(b.size for b in tail)
    q, K = block.q, block.K
    weighted = omega[:, None] * block.basis
    out = np.zeros((q, K, t + D.shape[1]))
    out[:, :, t:] = _with_columns(block, D, weighted)
    first = 0
    for other in tail:
        flat = block.codes * other.q + other.codes
        for a in range(K):
            for b in range(other.K):
                sums = np.bincount(flat, weighted[:, a] * other.basis[:, b], q * other.q).reshape(q, other.q)
                out[:, a, first + b : first + other.size : other.K] = sums
        first += other.size
    return out


def _sparse_cross(pattern: SparsePattern, block: Block, tail: Sequence[Block], D: Array, omega: Array) -> SparseCross:
    """The same at the entries of ``pattern``."""
    starts, t = _remainder_columns(tail)
    weighted = omega[:, None] * block.basis
    nnz, width = len(pattern.row), D.shape[1]
    values = np.zeros((nnz, block.K))
    at_columns = pattern.find(np.repeat(np.arange(block.q), width), np.tile(np.arange(t, t + width), block.q))
    values[at_columns] = _with_columns(block, D, weighted).transpose(0, 2, 1).reshape(-1, block.K)
    for start, other in zip(starts, tail, strict=True):
        for b in range(other.K):
            entries = pattern.find(block.codes, start + b)
            for a in range(block.K):
                values[:, a] += np.bincount(entries, weighted[:, a] * other.basis[:, b], nnz)
    return SparseCross(pattern, values)


def _with_columns(block: Block, D: Array, weighted: Array) -> Array:
    """Cross-products of ``block`` with dense columns, ``(q, K, width)``."""
    products = (weighted[:, :, None] * D[:, None, :]).reshape(len(D), -1)
    return _sum_by(block.codes, products, block.q).reshape(block.q, block.K, -1)


def _remainder(tail: Sequence[Block], D: Array, omega: Array) -> Array:
    """``[Z_tail D]' W [Z_tail D]``, dense."""
    starts, t = _remainder_columns(tail)
    m = t + D.shape[1]
    B = np.zeros((m, m))
    B[t:, t:] = (D * omega[:, None]).T @ D
    for i, (start, block) in enumerate(zip(starts, tail, strict=True)):
        values = _dense_cross(block, tail[i:], D, omega)
        first = start[0] - block.codes[0] * block.K
        B[first : first + block.size, first:] = values.reshape(block.size, -1)
        B[first:, first : first + block.size] = values.reshape(block.size, -1).T
    return B


def build_system(
    terms: Sequence[RandomTerm],
    X: Array,
    y: Array,
    omega: Array,
    *,
    n_rows: int,
    ss_within: float,
    sum_log_w: float,
) -> System:
    """Cross-products of a model: ``X`` (n_cells, p) of full rank, ``y`` the cell means, ``omega`` rows times precision.

    A `DesignError` says where crossed factors would need a dense matrix of more than 20,000 columns. ``ss_within`` is
    the weighted sum of squares of the rows about their cell means, ``sum_log_w`` that of their log precision weights.
    """
    chain, tail = split_chain(group_terms(terms))
    D = np.column_stack([X, y])
    t = sum(b.size for b in tail)
    if t > _MAX_TAIL:
        sizes = ", ".join(str(b.q) for b in (*chain, *tail))
        raise DesignError(
            f"crossed random effects with {sizes} levels need a dense matrix of {t:,} columns, "
            f"more than the limit of {_MAX_TAIL:,}. Leave out one of the smaller crossed terms, or nest it."
        )
    patterns = _patterns(chain, tail, D.shape[1])
    stages = []
    for i, block in enumerate(chain):
        later = {j: parents(block, chain[j]) for j in range(i + 1, len(chain))}
        parent = {j: p for j, p in later.items() if p is not None}
        stages.append(
            Stage(
                block=block,
                A=_self_products(block, omega),
                E={j: _nested_products(block, chain[j], omega) for j in parent},
                parent=parent,
                indicator={
                    j: sp.csr_matrix((np.ones(block.q), (p, np.arange(block.q))), shape=(chain[j].q, block.q))
                    for j, p in parent.items()
                },
                V=_sparse_cross(patterns[i], block, tail, D, omega)
                if patterns
                else DenseCross(_dense_cross(block, tail, D, omega)),
            )
        )
    return System(
        chain=tuple(stages),
        tail=tail,
        B=_remainder(tail, D, omega),
        p=X.shape[1],
        n_rows=n_rows,
        ss_within=ss_within,
        sum_log_w=sum_log_w,
    )
