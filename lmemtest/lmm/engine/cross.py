"""Cross-products between the levels of one grouping factor and the columns of the dense remainder.

For a factor with ``q`` levels of ``K`` columns each and a remainder of ``m`` columns these are
``(q, K, m)`` numbers, most of them zero when factors are sparsely crossed. `DenseCross` keeps all of
them; `SparseCross` keeps the columns that occur together with each level, and `PartedCross` those of each level's part
where the levels and columns fall into parts. The sweep needs the same few operations from all.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

if TYPE_CHECKING:
    from typing_extensions import Self

    from lmemtest.core.arrays import Array, Index


# One gathered element of the sparse path costs about as much as this many flops of a dense product
# (measured: 6 to 18 ns against 80 Gflop/s), which decides between the two.
FLOPS_PER_GATHER = 700.0
# Elements of one padded chunk of the sparse path: 32 MB, so that memory does not grow with the table.
_CHUNK = 4_000_000
# Positions of pairs that are kept between evaluations: 400 MB, which saves a third of their time.
_STORED_PAIRS = 50_000_000


def left_multiply(T: Array, V: Array) -> Array:
    """``T_l V_l`` for every level ``l``: ``(q, a, b)`` times ``(q, b, c)``."""
    return T * V if T.shape[1:] == (1, 1) else T @ V


class _Values:
    """What both forms do to their values alone."""

    values: Array

    def _with(self, values: Array) -> Self:
        return replace(self, values=values)  # type: ignore[type-var]

    def scaled(self, factor: float) -> Self:
        """All values times a number."""
        return self._with(factor * self.values)

    def inner(self, other: Any) -> float:
        """Sum of the products of all values."""
        return float(np.vdot(self.values, other.values))

    def __add__(self, other: Any) -> Self:
        return self._with(self.values + other.values)

    def __neg__(self) -> Self:
        return self._with(-self.values)


@dataclass(frozen=True)
class DenseCross(_Values):
    """All ``(q, K, m)`` cross-products as one array."""

    values: Array

    def times(self, T: Array) -> DenseCross:
        """Multiply the ``K`` rows of each level from the left by ``T``, ``(q, a, K)``."""
        return DenseCross(left_multiply(T, self.values))

    def gram(self) -> Array:
        """``sum_l V_l' V_l``, ``(m, m)``."""
        flat = self.values.reshape(-1, self.values.shape[2])
        return flat.T @ flat

    def product(self, other: Any) -> Array:
        """``sum_l V_l' O_l``, ``(m, m)``."""
        m = self.values.shape[2]
        return self.values.reshape(-1, m).T @ other.values.reshape(-1, m)

    def contract(self, other: Any) -> Array:
        """``V_l O_l'`` for every level, ``(q, K, K_other)``."""
        if self.values.shape[1] == 1 and other.values.shape[1] == 1:
            return np.einsum("lac,lbc->lab", self.values, other.values)
        return self.values @ other.values.transpose(0, 2, 1)

    def contract_diagonal(self, other: Any) -> Array:
        """Diagonal of ``sum_l V_l O_l'``, ``(K,)``."""
        return np.asarray(np.einsum("lkc,lkc->k", self.values, other.values))

    def sample_product(self, G: Array) -> DenseCross:
        """``V_l G`` for a symmetric ``(m, m)`` matrix ``G``."""
        q, K, m = self.values.shape
        return DenseCross((self.values.reshape(-1, m) @ G).reshape(q, K, m))

    def dot(self, D: Array) -> Array:
        """``V_l D`` for dense ``(m, c)`` columns, ``(q, K, c)``."""
        q, K, m = self.values.shape
        return (self.values.reshape(-1, m) @ D).reshape(q, K, -1)

    def column_squares(self) -> Array:
        """``sum_l V_l[k, c]^2``, ``(K, m)``."""
        return np.einsum("lkc,lkc->kc", self.values, self.values)

    def at(self, level: Index, row: Index, column: Index) -> Array:
        """Single elements."""
        return np.asarray(self.values[level, row, column])

    def transpose_dot(self, r: Array) -> Array:
        """``sum_l V_l' r_l`` for ``(q, K, c)`` columns, ``(m, c)``."""
        return self.values.reshape(-1, self.values.shape[2]).T @ r.reshape(-1, r.shape[2])


@dataclass(frozen=True)
class SparsePattern:
    """Which remainder columns occur with which level; entries sorted by (level, column)."""

    row: Index  # (nnz,)
    col: Index  # (nnz,)
    start: Index  # (q + 1,) first entry of each level
    m: int
    chunks: tuple[Index, ...]  # per chunk of levels: their entries (c, width), nnz = padding

    @classmethod
    def of(cls, row: Index, col: Index, q: int, m: int, width: int) -> SparsePattern:
        """Sort and deduplicate the pairs ``(row, col)`` and add the last ``width`` columns to every row."""
        key = np.sort(row.astype(np.int64) * m + col)
        key = key[np.append(True, np.diff(key) > 0)] if len(key) else key
        level = key // m
        count = np.bincount(level, minlength=q)
        start = np.append(0, np.cumsum(count + width))
        columns = np.empty(start[-1], dtype=np.intp)
        columns[np.arange(len(key)) + width * level] = key % m
        columns[(start[1:, None] - width + np.arange(width)).ravel()] = np.tile(np.arange(m - width, m), q)
        row = np.repeat(np.arange(q), count + width)
        return cls(row=row, col=columns, start=start, m=m, chunks=_chunks(start))

    def last(self, width: int) -> Index:
        """Entries of the last columns, which every level has, ``(q, width)``."""
        return np.asarray(self.start[1:, None] - width + np.arange(width))

    @property
    def n_pairs(self) -> float:
        width = np.diff(self.start).astype(float)
        return float(width @ width)

    @cached_property
    def _padded_col(self) -> Index:
        """Columns of the entries, and one for the padding."""
        return np.append(self.col, 0)

    @cached_property
    def _stored_pairs(self) -> tuple[Index, ...] | None:
        """Positions in ``(m, m)`` of every chunk's pairs of columns, where they fit in memory."""
        if sum(e.shape[0] * e.shape[1] ** 2 for e in self.chunks) > _STORED_PAIRS:
            return None
        return tuple(self._pairs_of(entries) for entries in self.chunks)

    def _pairs_of(self, entries: Index) -> Index:
        c = self._padded_col[entries]
        return c[:, :, None] * self.m + c[:, None, :]

    def pairs(self) -> Iterator[tuple[Index, Index]]:
        """Entries of each chunk, ``(c, width)``, and the positions of their pairs of columns in ``(m, m)``."""
        stored = self._stored_pairs
        for i, entries in enumerate(self.chunks):
            yield entries, stored[i] if stored is not None else self._pairs_of(entries)

    def find(self, row: Index, col: Index) -> Index:
        """Positions of existing pairs."""
        return np.searchsorted(self.row.astype(np.int64) * self.m + self.col, row.astype(np.int64) * self.m + col)


def _chunks(start: Index) -> tuple[Index, ...]:
    """Levels of similar width side by side, so that padding stays small and memory bounded."""
    width = np.diff(start)
    order = np.argsort(width, kind="stable")
    nnz = int(start[-1])
    chunks = []
    position = int(np.searchsorted(width[order], 1))  # levels without entries contribute nothing
    while position < len(order):
        widest = max(int(np.ceil(width[order[position]] * 1.25)), width[order[position]] + 2)
        stop = int(np.searchsorted(width[order], widest, side="right"))
        stop = min(stop, position + max(1, _CHUNK // (widest * widest)))
        levels = order[position:stop]
        pad = int(width[levels].max())
        offset = np.arange(pad)
        entries = np.where(offset < width[levels][:, None], start[levels][:, None] + offset, nnz)
        chunks.append(entries)
        position = stop
    return tuple(chunks)


@dataclass(frozen=True)
class SparseCross(_Values):
    """The cross-products that can differ from zero: ``values[e, k]`` belongs to entry ``e`` of ``pattern``."""

    pattern: SparsePattern
    values: Array  # (nnz, K)

    def _matrices(self) -> list[sp.csr_matrix]:
        """The values of every column of the levels, ``(q, m)``."""
        shape = (len(self.pattern.start) - 1, self.pattern.m)
        return [sp.csr_matrix((v, self.pattern.col, self.pattern.start), shape=shape) for v in self.values.T]

    def _padded(self) -> Array:
        return np.vstack([self.values, np.zeros((1, self.values.shape[1]))])

    def times(self, T: Array) -> SparseCross:
        """Multiply the ``K`` rows of each level from the left by ``T``, ``(q, a, K)``."""
        if T.shape[1:] == (1, 1):
            return SparseCross(self.pattern, self.values * T[self.pattern.row, :, 0])
        return SparseCross(self.pattern, np.einsum("eak,ek->ea", T[self.pattern.row], self.values))

    def gram(self) -> Array:
        """``sum_l V_l' V_l``, ``(m, m)``."""
        return self.product(self)

    def product(self, other: Any) -> Array:
        """``sum_l V_l' O_l``, ``(m, m)``."""
        m = self.pattern.m
        values, others = self._padded(), other._padded()
        out = np.zeros(m * m)
        for entries, pairs in self.pattern.pairs():
            v, o = values[entries], others[entries].transpose(0, 2, 1)
            products = v @ o if v.shape[2] > 1 else v * o
            out += np.bincount(pairs.ravel(), weights=products.ravel(), minlength=m * m)
        return out.reshape(m, m)

    def contract(self, other: Any) -> Array:
        """``V_l O_l'`` for every level, ``(q, K, K_other)``."""
        outer = self.values[:, :, None] * other.values[:, None, :]
        q = len(self.pattern.start) - 1
        flat = outer.reshape(len(outer), -1)
        sums = [np.bincount(self.pattern.row, weights=c, minlength=q) for c in flat.T]
        return np.stack(sums, axis=1, dtype=np.float64).reshape(q, *outer.shape[1:])

    def contract_diagonal(self, other: Any) -> Array:
        """Diagonal of ``sum_l V_l O_l'``, ``(K,)``."""
        return np.asarray(np.einsum("ek,ek->k", self.values, other.values))

    def sample_product(self, G: Array) -> SparseCross:
        """``V_l G`` for a symmetric ``(m, m)`` matrix ``G``, at the pattern's entries only."""
        values = self._padded()
        out = np.zeros_like(values)
        flat = np.ascontiguousarray(G).ravel()
        for entries, pairs in self.pattern.pairs():
            out[entries] = flat.take(pairs) @ values[entries]
        return SparseCross(self.pattern, out[:-1])

    def dot(self, D: Array) -> Array:
        """``V_l D`` for dense ``(m, c)`` columns, ``(q, K, c)``."""
        return np.stack([matrix @ D for matrix in self._matrices()], axis=1)

    def at(self, level: Index, row: Index, column: Index) -> Array:
        """Single elements, which the pattern has."""
        return np.asarray(self.values[self.pattern.find(level, column), row])

    def column_squares(self) -> Array:
        """``sum_l V_l[k, c]^2``, ``(K, m)``."""
        return np.stack([np.bincount(self.pattern.col, v**2, self.pattern.m) for v in self.values.T])

    def transpose_dot(self, r: Array) -> Array:
        """``sum_l V_l' r_l`` for ``(q, K, c)`` columns, ``(m, c)``."""
        out = np.zeros((self.pattern.m, r.shape[2]))
        for k, matrix in enumerate(self._matrices()):
            out += matrix.T @ r[:, k]
        return out

    def at_parents(self, parent: Index, child: Any) -> SparseCross:
        """The rows that belong to the parents of ``child``'s levels, at ``child``'s entries.

        A parent occurs with every column that one of its children occurs with, so nothing is missed.
        """
        entries = self.pattern.find(parent[child.pattern.row], child.pattern.col)
        return SparseCross(child.pattern, self.values[entries])

    def add_children(self, indicator: Any, parent: Index, child: Any) -> SparseCross:  # noqa: ARG002
        """Add ``child``'s rows to the rows of their parents."""
        entries = self.pattern.find(parent[child.pattern.row], child.pattern.col)
        nnz = len(self.values)
        sums = [np.bincount(entries, weights=c, minlength=nnz) for c in child.values.T]
        return SparseCross(self.pattern, self.values + np.stack(sums, axis=1))


@dataclass(frozen=True)
class PartedCross(_Values):
    """Cross-products with the ``w`` columns of each level's part: no level has others, but all have the last one.

    Where parts differ in size, the columns of small ones are padded by column ``m``, which there is not.
    """

    values: Array  # (q, K, w)
    levels: tuple[Index, ...]  # of each part
    columns: tuple[Index, ...]  # of each part, (w,)
    m: int

    def _parts(self) -> Iterator[tuple[Index, Index]]:
        return zip(self.levels, self.columns, strict=True)

    def _flat(self, levels: Index) -> Array:
        return self.values[levels].reshape(-1, self.values.shape[2])

    def times(self, T: Array) -> PartedCross:
        """Multiply the ``K`` rows of each level from the left by ``T``, ``(q, a, K)``."""
        return self._with(left_multiply(T, self.values))

    def gram(self) -> Array:
        """``sum_l V_l' V_l``, ``(m, m)``."""
        return self.product(self)

    def product(self, other: Any) -> Array:
        """``sum_l V_l' O_l``, ``(m, m)``."""
        out = np.zeros((self.m + 1, self.m + 1))
        for levels, columns in self._parts():
            out[np.ix_(columns, columns)] += self._flat(levels).T @ other._flat(levels)
        return out[: self.m, : self.m]

    def contract(self, other: Any) -> Array:
        """``V_l O_l'`` for every level, ``(q, K, K_other)``."""
        return np.asarray(self.values @ other.values.transpose(0, 2, 1))

    def contract_diagonal(self, other: Any) -> Array:
        """Diagonal of ``sum_l V_l O_l'``, ``(K,)``."""
        return np.asarray(np.einsum("lkc,lkc->k", self.values, other.values))

    def sample_product(self, G: Array) -> PartedCross:
        """``V_l G`` for a symmetric ``(m, m)`` matrix ``G``, at the columns of the parts only."""
        out, padded = np.empty_like(self.values), np.pad(G, (0, 1))
        for levels, columns in self._parts():
            out[levels] = self.values[levels] @ padded[np.ix_(columns, columns)]
        return self._with(out)

    def dot(self, D: Array) -> Array:
        """``V_l D`` for dense ``(m, c)`` columns, ``(q, K, c)``."""
        out, padded = np.empty((*self.values.shape[:2], D.shape[1])), np.pad(D, ((0, 1), (0, 0)))
        for levels, columns in self._parts():
            out[levels] = self.values[levels] @ padded[columns]
        return out

    def at(self, level: Index, row: Index, column: Index) -> Array:
        """Single elements at columns of the levels' parts."""
        part, place = (
            np.zeros(len(self.values), dtype=np.intp),
            np.zeros((len(self.columns), self.m + 1), dtype=np.intp),
        )
        for i, (levels, columns) in enumerate(self._parts()):
            part[levels], place[i, columns] = i, np.arange(len(columns))
        return np.asarray(self.values[level, row, place[part[level], column]])

    def column_squares(self) -> Array:
        """``sum_l V_l[k, c]^2``, ``(K, m)``."""
        out = np.zeros((self.values.shape[1], self.m + 1))
        for levels, columns in self._parts():
            out[:, columns] += np.einsum("lkc,lkc->kc", self.values[levels], self.values[levels])
        return out[:, : self.m]

    def transpose_dot(self, r: Array) -> Array:
        """``sum_l V_l' r_l`` for ``(q, K, c)`` columns, ``(m, c)``."""
        out = np.zeros((self.m + 1, r.shape[2]))
        for levels, columns in self._parts():
            out[columns] += self._flat(levels).T @ r[levels].reshape(-1, r.shape[2])
        return out[: self.m]


Cross = DenseCross | SparseCross | PartedCross


def prefer_sparse(n_pairs: float, size: int, m: int) -> bool:
    """Whether the sparse form of ``size`` rows by ``m`` columns with ``n_pairs`` products is the cheaper one."""
    return n_pairs * FLOPS_PER_GATHER < 6.0 * size * m * m
