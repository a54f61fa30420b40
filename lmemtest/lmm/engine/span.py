"""What the columns of a model span, before a fit: which fixed ones are independent, and whether all reach every row.

A table of algorithms has thousands of cells and as many different rows of X as algorithms: the fixed part is taken from
the distinct rows, each with the weight of all its cells.

Where fixed and random effects together reach every row, no residual is left. With relative variances ``t Sigma`` and
``t`` growing, ``log|V|`` grows as ``rank(Z) log t``. If ``X``, ``Z`` span all ``n`` rows, ``y = X b + Z u`` exactly and
the residual sum of squares falls as ``1 / t``, so the deviance goes as ``(rank(Z) - n) log t``: it falls without limit
by maximum likelihood where ``rank(Z) < n``. REML has ``(rank[X Z] - n) log t`` and is flat.

The same is asked of every part of ``Z`` whose other variances are zero, and of a covariance ``Sigma = W W'`` of lower
rank: its columns ``Z W`` are fewer, and still fit ``y`` if their directions can be chosen for it, which is so if the
derivatives of ``X b + Z W u`` in ``b``, ``u`` and ``W`` span all rows at a generic point (for scores near it, then).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product

import numpy as np
import scipy.linalg as sla
import scipy.sparse as sp
from scipy.sparse.linalg import lsmr

from lmemtest.core.arrays import Array, Index
from lmemtest.lmm.engine.structure import RandomTerm

# Means from which each has a column of its own, so that what does not meet stays apart.
_MANY = 200
# As in lme4 and R's qr(): a column counts as dependent below this share of its own length.
_RANK_TOLERANCE = 1e-7
# Share of a generic vector that may be left of it by columns that span all rows.
_LEFT = 1e-7
# Entries of a matrix that is dense; larger ones are sparse.
_DENSE = 40_000
_LSMR_STEPS = 2_000


def fixed_part(
    X: Array, rows: Index | None, y: Array, omega: Array, *, apart: bool = False
) -> tuple[Index, Array, Index | None, Array, Array, Array]:
    """Weighted least squares on the independent columns of cells: ``X[:, kept] = Q RX`` with ``Q'WQ = I``.

    ``rows`` is the row of ``X`` of each cell, by default its own. Returned are ``kept`` (rank,), ``Q`` (n_distinct,
    rank), the row of ``Q`` of each cell, ``RX`` (rank, rank), coefficients (rank,) and residuals (n_cells,). ``RX`` is
    upper triangular; but where the columns give every distinct row a mean of its own, and these are many or to be kept
    ``apart``, ``Q`` is diagonal.
    """
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
    if rows is not None and len(kept) == len(distinct) >= (0 if apart else _MANY):
        Q, RX = np.eye(len(kept)), distinct[:, kept] * root[:, None]
    fitted, Q = distinct[:, kept] @ coefficients, Q / root[:, None]
    if rows is not None:
        fitted = fitted[rows]
    return kept, Q, rows, RX, coefficients, y - fitted


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


def no_residual(X: Array, terms: Sequence[RandomTerm], n: Array, row: Index) -> bool:
    """Whether the columns of all effects span every row; ``n`` are the rows of each cell, ``row`` its row of ``X``."""
    if not terms or len(n) < n.sum():  # rows of a cell have the same effects
        return False
    if X.shape[1] + sum(term.n_levels * term.k for term in terms) < len(n):
        return False
    terms = [t for i, t in enumerate(terms) if not any(_within(t, i, other, j) for j, other in enumerate(terms))]
    if X.shape[1] + sum(term.n_levels * term.k for term in terms) < len(n):
        return False
    return _span([sp.csc_array(X[row]), *(_columns(term, term.basis) for term in terms)])


def unbounded(X: Array, terms: Sequence[RandomTerm], *, reml: bool) -> bool:
    """Whether the likelihood grows without limit, where `no_residual` is true."""
    fixed, rng = sp.csc_array(X), np.random.default_rng(1)
    for roots in product(*(_roots(term, rng) for term in terms)):
        used = [(term, W) for term, W in zip(terms, roots, strict=True) if W.shape[1]]
        if not used:
            continue
        Z = [_columns(term, term.basis @ W) for term, W in used]
        moved = [_turned(term, W, rng) for term, W in used if not term.diagonal and W.shape[1] < term.k]
        if _span([fixed, *Z, *moved]) and not _span([fixed, *Z] if reml else Z):
            return True
    return False


def _within(term: RandomTerm, i: int, other: RandomTerm, j: int) -> bool:
    """Whether the columns of a term of intercepts are sums of another one's."""
    if i == j or term.k > 1 or other.k > 1 or not ((term.basis == 1.0).all() and (other.basis == 1.0).all()):
        return False
    of_other = np.empty(other.n_levels, dtype=np.intp)
    of_other[other.codes] = term.codes
    return bool((of_other[other.codes] == term.codes).all()) and (other.n_levels > term.n_levels or j < i)


def _roots(term: RandomTerm, rng: np.random.Generator) -> Iterator[Array]:
    """Generic ``W`` with ``Sigma = W W'`` of every rank; of independent effects every choice of them."""
    if term.diagonal:
        for chosen in product([True, False], repeat=term.k):
            yield np.eye(term.k)[:, np.array(chosen)]
        return
    for rank in range(term.k, -1, -1):
        yield rng.normal(size=(term.k, rank))


def _columns(term: RandomTerm, basis: Array) -> sp.csc_array:
    """The columns of a basis at each level of a term, those of one effect after those of another."""
    rows = np.arange(len(basis))
    parts = [sp.csc_array((b, (rows, term.codes)), shape=(len(basis), term.n_levels)) for b in basis.T]
    return sp.csc_array(sp.hstack(parts))


def _turned(term: RandomTerm, W: Array, rng: np.random.Generator) -> sp.csc_array:
    """Derivatives of ``Z W u`` in the elements of ``W`` at a generic ``u``."""
    u = rng.normal(size=(term.n_levels, W.shape[1]))[term.codes]
    return sp.csc_array((term.basis[:, :, None] * u[:, None, :]).reshape(len(u), -1))


def _span(parts: Sequence[sp.csc_array]) -> bool:
    """Whether columns span all rows: whether they give a generic vector."""
    n = parts[0].shape[0]
    if sum(part.shape[1] for part in parts) < n:
        return False
    M = sp.csc_array(sp.hstack(parts))
    norms = np.sqrt(np.asarray(M.multiply(M).sum(axis=0)).ravel())
    M = sp.csc_array(M @ sp.diags_array(1.0 / np.where(norms > 0.0, norms, 1.0)))
    if M.shape[0] * M.shape[1] <= _DENSE:
        triangle = np.abs(sla.qr(M.toarray().T, mode="r", pivoting=True)[0].diagonal())
        return bool(triangle[-1] > _LEFT * triangle[0])
    y = np.random.default_rng(2).normal(size=n)
    left = lsmr(M, y, atol=0.0, btol=0.1 * _LEFT, conlim=0.0, maxiter=_LSMR_STEPS)[3]
    return bool(left <= _LEFT * np.linalg.norm(y))
