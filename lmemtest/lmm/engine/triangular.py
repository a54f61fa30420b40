"""Solves with triangular factors through BLAS, which starts threads for large systems only (LAPACK's do always)."""

from __future__ import annotations

import numpy as np
import scipy.linalg as sla
from scipy.linalg import blas, lapack

from lmemtest.core.arrays import Array


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
