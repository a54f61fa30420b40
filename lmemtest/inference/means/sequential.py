"""Type I and type II hypotheses: what a term adds to the terms before it, or to all that do not contain it.

Let Q be an orthonormal basis of what the columns of a term have beyond those of some other terms, over the rows of the
table. The hypothesis "the term adds nothing to these" is Q'X b = 0, X being the whole design. Type I puts the terms in
the order of the formula (main effects first); type II gives each term all others but those that contain it, which is
the type III hypothesis of a term that none contains. Both are the definitions of SAS and lmerTest: rows count alike,
whatever their precision. In unbalanced data the hypothesis of a factor therefore depends on how many rows its levels
have with those of other factors; type III does not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lmemtest.engine.problem import independent_columns
from lmemtest.inference.means.type_three import containment, type_three

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from lmemtest.formula.design import Design

    FloatArray = NDArray[np.float64]


def type_one(design: Design, counts: FloatArray) -> dict[str, FloatArray]:
    """Coefficients of the type I hypothesis of every fixed term but the intercept.

    Parameters
    ----------
    design : Design
        The matrices of a model.
    counts : (n_cells,) float
        Rows per cell.

    Returns
    -------
    dict of str to (q, p) float
        Linear functions of the columns of the design, none for a term that adds nothing.
    """
    every = list(range(len(design.terms)))
    return {design.terms[i][0]: _added(design, counts, every[:i], i) for i in _tested(design)}


def type_two(design: Design, frame: pd.DataFrame, counts: FloatArray) -> dict[str, FloatArray]:
    """Coefficients of the type II hypothesis of every fixed term but the intercept.

    Parameters
    ----------
    design : Design
        The matrices of a model.
    frame : pandas.DataFrame
        The cells that they were built on.
    counts : (n_cells,) float
        Rows per cell.

    Returns
    -------
    dict of str to (q, p) float
        As of `type_one`.
    """
    contains, every = containment(design), range(len(design.terms))
    marginal = type_three(design, frame)
    out = {}
    for i in _tested(design):
        label = design.terms[i][0]
        before = [j for j in every if j != i and j not in contains[i]]
        out[label] = _added(design, counts, before, i) if contains[i] else marginal[label]
    return out


def _tested(design: Design) -> list[int]:
    return [i for i, term in enumerate(design.fixed_block.terms.terms) if term]


def _added(design: Design, counts: FloatArray, before: list[int], term: int) -> FloatArray:
    """Rows with 1 at one of the term's columns each, and 0 at its earlier ones and the columns before."""
    X = design.X
    columns = np.concatenate([np.arange(X.shape[1])[design.terms[j][1]] for j in [*before, term]])
    kept = columns[independent_columns(X[:, columns], counts)]
    root = np.sqrt(counts)[:, None]
    Q, R = np.linalg.qr(X[:, kept] * root)
    rows = Q.T @ (X * root) / R.diagonal()[:, None]
    own = design.terms[term][1]
    return np.asarray(rows[(kept >= own.start) & (kept < own.stop)])
