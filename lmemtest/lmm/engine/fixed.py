"""The fixed part before a fit: independent columns, orthonormal in the weights of the rows, and what is left of y.

A table of algorithms has thousands of cells and as many different rows of X as algorithms: everything here is done with
the distinct rows, each with the weight of all its cells.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.linalg as sla

from lmemtest.core.arrays import Array, Index

# Means from which each has a column of its own, so that what does not meet stays apart.
_MANY = 200
# As in lme4 and R's qr(): a column counts as dependent below this share of its own length.
_RANK_TOLERANCE = 1e-7


@dataclass(frozen=True)
class FixedPart:
    """Weighted least squares on the independent columns: ``X[:, kept] = Q RX`` with ``Q'WQ = I``.

    Where the columns give every distinct row a mean of its own, and these are many, ``Q`` is diagonal.
    """

    kept: Index  # (rank,)
    Q: Array  # (n_distinct, rank)
    rows: Index | None  # (n_cells,) the row of Q of each cell; None: its own
    RX: Array  # (rank, rank) upper triangular, or square where Q is diagonal
    coefficients: Array  # (rank,)
    residual: Array  # (n_cells,)


def fixed_part(X: Array, rows: Index | None, y: Array, omega: Array) -> FixedPart:
    """The fixed part of cells with weights ``omega``; ``rows``: the row of ``X`` of each cell, by default its own."""
    if rows is None:
        weight, mean, distinct = omega, y, X
    else:
        weight = np.bincount(rows, omega, len(X)).astype(np.float64)
        occurs = weight > 0
        place = np.cumsum(occurs) - 1
        rows, distinct, weight = place[rows], X[occurs], weight[occurs]
        first = np.empty(len(weight))
        first[rows[::-1]] = y[::-1]
        mean = first + np.bincount(rows, omega * (y - first[rows])) / weight  # keeps the digits of a large common level
    root = np.sqrt(weight)
    kept, Q, RX = _decomposed(distinct * root[:, None])
    coefficients = sla.solve_triangular(RX, Q.T @ (mean * root))
    if rows is not None and len(kept) == len(distinct) >= _MANY:
        Q, RX = np.eye(len(kept)), distinct[:, kept] * root[:, None]
    fitted, Q = distinct[:, kept] @ coefficients, Q / root[:, None]
    if rows is not None:
        fitted = fitted[rows]
    return FixedPart(kept=kept, Q=Q, rows=rows, RX=RX, coefficients=coefficients, residual=y - fitted)


def _decomposed(X: Array) -> tuple[Index, Array, Array]:
    """Columns that do not depend on earlier ones, and their QR decomposition."""
    norms = np.linalg.norm(X, axis=0)
    if len(X) >= X.shape[1] and norms.all():
        Q, R = np.linalg.qr(X / norms)
        if _all_independent(R):
            return np.arange(X.shape[1], dtype=np.intp), Q, R * norms
    kept = independent_columns(X, np.ones(len(X)))
    Q, R = np.linalg.qr(X[:, kept])
    return kept, Q, R


def _all_independent(R: Array) -> bool:
    """Whether no column of length one depends on those before it, from its triangle: what each has beside them."""
    return bool(np.abs(R.diagonal()).min(initial=1.0) > _RANK_TOLERANCE)


def independent_columns(X: Array, omega: Array) -> Index:
    """Columns that do not depend on earlier ones; the latest dependent column is the one to go, as in lme4."""
    weighted = X * np.sqrt(omega)[:, None]
    norms = np.linalg.norm(weighted, axis=0)
    tall = len(X) >= X.shape[1] and norms.all()
    if tall and _all_independent(np.asarray(np.linalg.qr(weighted / norms, mode="r"))):
        return np.arange(X.shape[1], dtype=np.intp)
    kept: list[int] = []
    basis = np.empty((len(X), min(X.shape)))
    for j in range(X.shape[1]):
        if norms[j] == 0:
            continue
        column, done = weighted[:, j] / norms[j], basis[:, : len(kept)]
        for _ in range(2):  # twice is enough (Kahan; Giraud et al. 2005)
            column = column - done @ (done.T @ column)
        length = np.linalg.norm(column)
        if length > _RANK_TOLERANCE:
            if len(kept) == basis.shape[1]:
                break
            basis[:, len(kept)] = column / length
            kept.append(j)
    return np.array(kept, dtype=np.intp)
