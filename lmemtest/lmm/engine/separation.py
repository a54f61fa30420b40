"""Separation: fixed effects that the data send to infinity, and as many pseudo-answers as keep them finite.

Where some combination of the fixed effects is positive only in cells whose answers are all right and negative only in
cells whose answers are all wrong, the likelihood grows along it for ever (Albert & Anderson 1984,
doi:10.1093/biomet/71.1.1); random effects, which are bounded by their own distribution, do not change that. A linear
program finds all cells of this kind at once (Konis 2007). For counts the cells are those without any event.

A weak prior takes the place of the missing answers: at the rows of the fixed part that are separated, half of as many
answers as the row has leverage are right and half are wrong (half of an event for counts). In a table with one mean
per group that is Firth's penalty, half a right and half a wrong answer (Firth 1993, doi:10.1093/biomet/80.1.27).
"""

from __future__ import annotations

import numpy as np

from lmemtest.core.arrays import Array, Index, Mask

# A row moves along the direction found by 1 where it is separated, by rounding where it is not.
_MOVED = 0.5
_ROUNDING = 1e-9  # of leverages, relative to the largest singular value


def separated(X: Array, row: Index, total: Array, n: Array, *, binomial: bool) -> Mask:
    """Which distinct rows of the fixed part, ``(rows, p)``, can be fitted perfectly, whatever the others need.

    ``row`` is that of each cell, ``total`` and ``n`` its successes and answers (events and rows of counts).
    """
    total, n = (np.bincount(row, values, len(X)).astype(float) for values in (total, n))
    none, every = total <= 0, (total >= n) if binomial else np.zeros(len(total), dtype=bool)
    ends = np.flatnonzero(none | every)
    if not len(ends):
        return np.zeros(len(total), dtype=bool)
    from scipy.optimize import linprog

    p, k = X.shape[1], len(ends)
    scale = np.maximum(np.abs(X).max(axis=0), np.finfo(float).tiny)
    directed = np.where(every, 1.0, -1.0)[ends, None] * (X / scale)[ends]
    fixed = (X / scale)[~(none | every)]
    # the most rows t that move, 0 <= t <= 1 and t <= their move, where those with both kinds of answers stay put
    found = linprog(
        np.concatenate([np.zeros(p), -np.ones(k)]),
        A_ub=np.hstack([-directed, np.eye(k)]),
        b_ub=np.zeros(k),
        A_eq=np.hstack([fixed, np.zeros((len(fixed), k))]) if len(fixed) else None,
        b_eq=np.zeros(len(fixed)) if len(fixed) else None,
        bounds=[(None, None)] * p + [(0.0, 1.0)] * k,
        method="highs",
    )
    out = np.zeros(len(total), dtype=bool)
    if found.x is not None:
        out[ends] = found.x[p:] > _MOVED
    return out


def leverages(X: Array, n: Array) -> Array:
    """Diagonal of ``X (X'N X)^- X'N`` of distinct rows, ``(rows,)``: the fixed effects that each row decides."""
    root = np.sqrt(n)[:, None]
    U, d, _ = np.linalg.svd(X * root, full_matrices=False)
    return np.asarray((U[:, d > _ROUNDING * d[0]] ** 2).sum(axis=1))


def with_prior(
    X: Array, rows: Index, total: Array, n: Array, which: Mask, *, binomial: bool
) -> tuple[Array, Array, Array]:
    """Answers of the cells with pseudo-answers where rows are separated; and their number at each distinct row.

    ``rows`` is the distinct row of each cell; the pseudo-answers of a row are spread over its cells by their answers.
    """
    of_row = np.bincount(rows, n, len(X)).astype(float)
    added = np.where(which, leverages(X, of_row), 0.0)
    each = (added / of_row)[rows] * n
    return total + 0.5 * each, n + each if binomial else n, added
