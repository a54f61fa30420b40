"""Linear functions ``L b`` of coefficients, of each the few numbers that are not zero.

A difference of two means has two coefficients, whatever the number of means: all pairs of hundreds of means are large
as a matrix, ``(rows, p)``, and small as what is in it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from lmemtest.core.arrays import Array, Index, Mask

_FEW = 1e5  # numbers of a matrix that are sooner made than looked through


@dataclass(frozen=True)
class Functions:
    """Rows of a few numbers among many zeros.

    Rows that have fewer numbers than others are filled up with zeros; a row with NaN is not defined.
    """

    columns: Index  # (most, rows)
    values: Array  # (most, rows)
    width: int

    @classmethod
    def of(cls, L: Array | Functions) -> Functions:
        """From the matrix, ``(rows, p)``."""
        if isinstance(L, Functions):
            return L
        defined: Mask = np.asarray(np.isfinite(L).all(axis=1))
        filled = L if defined.all() else np.where(defined[:, None], L, 0.0)
        row, column = np.divmod(np.flatnonzero(filled != 0.0), max(L.shape[1], 1))
        packed = cls._packed(np.bincount(row, minlength=len(L)), column, filled[row, column], L.shape[1])
        return packed.filled(defined, np.nan)

    @classmethod
    def differences(cls, left: Index, right: Index, width: int) -> Functions:
        """Of two coefficients each."""
        return cls(np.stack([left, right]), np.array([[1.0], [-1.0]]).repeat(len(left), axis=1), width)

    @classmethod
    def _packed(cls, count: Index, column: Index, value: Array, width: int) -> Functions:
        """From the numbers, row by row."""
        row = np.repeat(np.arange(len(count)), count)
        place = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
        columns = np.zeros((max(1, int(count.max(initial=0))), len(count)), dtype=np.intp)
        values = np.zeros(columns.shape)
        columns[place, row], values[place, row] = column, value
        return cls(columns, values, width)

    def __len__(self) -> int:
        return self.columns.shape[1]

    def __getitem__(self, rows: Any) -> Functions:
        """Some of the rows."""
        return Functions(self.columns[:, rows], self.values[:, rows], self.width)

    def where(self, chosen: Mask) -> Functions:
        """Some of the rows; all of them without a copy."""
        return self if chosen.all() else self[chosen]

    def filled(self, kept: Mask, value: float = 0.0) -> Functions:
        """With one value in the rows that are not kept."""
        return self if kept.all() else Functions(self.columns, np.where(kept, self.values, value), self.width)

    def less(self, other: Functions) -> Functions:
        """``L b - L' c`` as functions of both, b and c."""
        columns = np.concatenate([self.columns, other.columns + self.width])
        return Functions(columns, np.concatenate([self.values, -other.values]), self.width + other.width)

    def rounded(self, tolerance: float) -> Functions:
        """Without the numbers that are small beside the largest of their row."""
        kept = np.abs(self.values) > tolerance * self.largest()
        if kept.all():
            return self
        row, place = np.nonzero(kept.T)
        return self._packed(kept.sum(axis=0), self.columns[place, row], self.values[place, row], self.width)

    def largest(self) -> Array:
        """Largest absolute value of each row, ``(rows,)``."""
        return np.asarray(np.abs(self.values).max(axis=0))

    @property
    def csr(self) -> sp.csr_array:
        """As a sparse matrix."""
        ends = np.arange(len(self) + 1) * self.most
        return sp.csr_array((self.values.T.ravel(), self.columns.T.ravel(), ends), shape=(len(self), self.width))

    def weighted(self, weight: Array) -> Functions:
        """With a weight, ``(p,)``, of every column."""
        return Functions(self.columns, self.values * weight[self.columns], self.width)

    def sizes(self) -> Functions:
        """Absolute values."""
        return Functions(self.columns, np.abs(self.values), self.width)

    def squares(self) -> Functions:
        return Functions(self.columns, self.values**2, self.width)

    @property
    def most(self) -> int:
        """Numbers in a row that are not zero, at most."""
        return len(self.columns)

    @property
    def finite(self) -> Mask:
        """Rows that are defined."""
        return np.asarray(np.isfinite(self.values).all(axis=0))

    @cached_property
    def L(self) -> Array:
        """The matrix, ``(rows, p)``."""
        out = np.zeros((len(self), self.width))
        np.add.at(out, (np.arange(len(self)), self.columns), self.values)
        return out

    def first(self, n: int) -> Functions:
        """The same over the first columns."""
        return self.only(np.arange(n))

    def only(self, chosen: Index) -> Functions:
        """The same over some of the columns, in ascending order."""
        if len(chosen) == self.width:
            return self
        place = np.full(self.width, -1)
        place[chosen] = np.arange(len(chosen))
        columns = place[self.columns]
        return Functions(np.maximum(columns, 0), np.where(columns < 0, 0.0, self.values), len(chosen))

    def at(self, x: Array) -> Array:
        """``L x``, ``(..., rows)``, for coefficients ``(..., p)``."""
        return np.asarray((self.values * x[..., self.columns]).sum(axis=-2))

    def times(self, M: Array) -> Array:
        """``L M``, ``(rows, c)``, for ``(p, c)`` columns."""
        if self.most**2 > self.width:
            return self.L @ M
        return np.asarray(
            sum(
                (v[:, None] * M[c] for c, v in zip(self.columns, self.values, strict=True)),
                np.zeros((len(self), M.shape[1])),
            )
        )

    def then(self, M: Array) -> Functions:
        """``L M`` for ``(p, c)`` functions of other coefficients: all of ``L b`` for ``b = M x`` are functions of x."""
        if len(self) * M.shape[1] <= _FEW:
            return Functions.of(self.times(M))
        product = sp.csr_array(self.csr @ sp.csr_array(M))
        product.eliminate_zeros()  # what is equal in both parts of a difference
        return self._packed(np.diff(product.indptr), product.indices, product.data, M.shape[1])

    def quadratic_forms(self, matrices: Array) -> Array:
        """``l'Ml`` of every row and every symmetric matrix, ``(m, p, p)``: ``(m, rows)``."""
        if self.most**2 > self.width:
            return np.stack([np.einsum("rp,rp->r", self.L @ matrix, self.L) for matrix in matrices])
        columns, values = self.columns, self.values
        out = np.zeros((len(matrices), len(self)))
        for i in range(self.most):
            out += values[i] ** 2 * matrices[:, columns[i], columns[i]]
            for j in range(i):
                out += 2.0 * values[i] * values[j] * matrices[:, columns[i], columns[j]]
        return out


@dataclass(frozen=True)
class OfFunctions:
    """What takes `Functions`, where another one takes a matrix; this takes both."""

    ask: Callable[[Functions], Any]

    def __call__(self, L: Array | Functions) -> Any:
        return self.ask(Functions.of(L))


def asked(question: Callable[[Any], Any], functions: Functions) -> Any:
    """The answer of a function of `Functions`, or of a matrix."""
    return question(functions if isinstance(question, OfFunctions) else functions.L)
