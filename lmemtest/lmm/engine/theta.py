"""theta <-> relative Cholesky factors, on the user's scale and on the whitened scale of the search.

theta stacks the lower triangles of the terms' factors ``L`` column by column, as lme4 does; of a term whose effects
are independent it holds the diagonal. The search runs on whitened columns: a term's basis ``Z`` is replaced by
``Z R^-1`` with ``R`` the triangular factor of its QR decomposition, so that ``Sigma_white = R Sigma R'``, a slope in
millions or around a distant mean is as easy as any other, and one step length fits all parameters.

Solves with triangular factors go through BLAS, which starts threads for large systems only (LAPACK's do always).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
import scipy.linalg as sla
from numpy.typing import NDArray
from scipy.linalg import blas, lapack

from lmemtest.core.arrays import Array, Index
from lmemtest.lmm.engine.structure import Block, RandomTerm, Shape

# Below this diagonal share of the QR factor a basis counts as collinear: then its columns are scaled only.
_COLLINEAR = 1e-7


@lru_cache(maxsize=64)
def upper_indices(k: int) -> tuple[Index, Index]:
    """``numpy.triu_indices(k)``, which costs more than what is done with it; do not change the arrays."""
    rows, columns = np.triu_indices(k)
    return rows, columns


@lru_cache(maxsize=64)
def free_indices(shape: Shape) -> tuple[Index, Index]:
    """Columns and rows of the elements of ``L`` that theta holds, in its order; do not change the arrays."""
    if not shape.diagonal:
        return upper_indices(shape.k)
    both = np.arange(shape.k)
    return both, both


def unpack(theta: Array, shapes: Sequence[Shape]) -> list[Array]:
    """Lower-triangular factors of the terms from a flat theta."""
    factors, start = [], 0
    for shape in shapes:
        L = np.zeros((shape.k, shape.k))
        L.T[free_indices(shape)] = theta[start : start + shape.n_theta]
        factors.append(L)
        start += shape.n_theta
    return factors


def pack(factors: Sequence[Array], shapes: Sequence[Shape]) -> Array:
    """Flat theta of lower-triangular factors."""
    if not factors:
        return np.empty(0)
    return np.concatenate([L.T[free_indices(shape)] for L, shape in zip(factors, shapes, strict=True)])


def lower_root(M: NDArray[Any]) -> Array:
    """Lower-triangular ``L`` with non-negative diagonal and ``L L' = M M'``, singular ``M`` included."""
    L = np.asarray(np.linalg.qr(M.T, mode="r")).T
    return L * np.where(L.diagonal() < 0, -1.0, 1.0)


def root_of(M: NDArray[Any], *, diagonal: bool) -> Array:
    """``lower_root``, which keeps independent effects independent: of a singular ``M`` it may return another root."""
    return np.diag(np.linalg.norm(M, axis=1)) if diagonal else lower_root(M)


def whiten(term: RandomTerm, omega: Array) -> tuple[RandomTerm, Array]:
    """The term on whitened columns, and ``R`` with ``basis = whitened @ R``."""
    scale = np.sqrt(omega @ term.basis**2 / omega.sum())
    scale[scale == 0] = 1.0
    R = np.diag(scale)
    basis = term.basis / scale
    if term.k > 1 and not term.diagonal:  # a rotation would leave nothing independent
        weighted = basis * np.sqrt(omega / omega.sum())[:, None]
        triangle = np.asarray(np.linalg.qr(weighted, mode="r"))
        diagonal = np.abs(triangle.diagonal())
        if diagonal.min() > _COLLINEAR * diagonal.max():
            R = triangle * scale
            basis = np.linalg.solve(R.T, term.basis.T).T
    return replace(term, basis=basis), R


def to_white(factors: Sequence[Array], R: Sequence[Array]) -> list[Array]:
    """Factors on the whitened scale."""
    return [lower_root(r @ L) for L, r in zip(factors, R, strict=True)]


def to_user(factors: Sequence[Array], R: Sequence[Array]) -> list[Array]:
    """Factors on the user's scale, diagonals non-negative."""
    return [lower_root(np.linalg.solve(r, L)) for L, r in zip(factors, R, strict=True)]


def block_factors(factors: Sequence[Array], blocks: Sequence[Block]) -> tuple[Array, ...]:
    """One factor per block: its members' factors on the diagonal, at each of their levels."""
    return tuple(block.spread(factors) for block in blocks)


def term_blocks(matrices: Sequence[Array], blocks: Sequence[Block], sizes: Sequence[int]) -> list[Array]:
    """The members' diagonal parts of one ``(K, K)`` matrix per block, summed over levels, in the order of the terms."""
    out: list[Array] = [np.zeros((k, k)) for k in sizes]
    for block, M in zip(blocks, matrices, strict=True):
        for m in block.members:
            out[m.term] = out[m.term] + m.level_blocks(M)
    return out


def solve_lower(C: Array, B: Array, *, transpose: bool = False) -> Array:
    """``C^-1 B``, or ``C'^-1 B``, for a lower-triangular ``C`` and a matrix or vector ``B``."""
    if B.ndim == 1:
        return solve_lower(C, B[:, None], transpose=transpose)[:, 0]
    if not len(C) or not B.shape[1]:
        return np.zeros(B.shape)
    return np.asarray(blas.dtrsm(1.0, C, B, lower=1, trans_a=int(transpose)))


def solve_spd(C: Array, B: Array) -> Array:
    """``(C C')^-1 B`` for a lower-triangular ``C``."""
    return solve_lower(C, solve_lower(C, B), transpose=True)


def solve_square(R: Array, B: Array, *, transpose: bool = False) -> Array:
    """``R^-1 B``, or ``R'^-1 B``, for a square matrix that is upper-triangular most of the time."""
    if np.tril(R, -1).any():
        return np.asarray(np.linalg.solve(R.T if transpose else R, B))
    return np.asarray(sla.solve_triangular(R, B, trans=int(transpose)))


def inverse_lower(C: Array) -> Array:
    """Inverses of a stack of lower-triangular matrices with zeros above the diagonal, ``(q, K, K)``."""
    out = np.empty_like(C)
    for one, inverse in zip(C, out, strict=True):  # the transposed matrix is in LAPACK's order: nothing is copied
        inverse[...] = lapack.dtrtri(one.T, lower=0)[0].T
    return out
