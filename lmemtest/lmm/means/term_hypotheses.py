"""Hypotheses of the fixed terms: which linear functions of the fixed effects say "this term does nothing".

Type III hypotheses are stated for the overparametrised model with an indicator column for every level and combination
of levels, so they do not depend on how the formula codes its factors. Among the functions that the data identify, let
S_F be those that involve only a term F and the terms that contain F, and S_C those that involve only the latter. The
hypothesis of F is what S_F has beyond S_C, orthogonal to it (Goodnight 1980, Commun. Stat. Theory Methods 9, 167-180;
lmerTest's doctrine). A term contains another if it has the same numeric columns, and all its factors and more. The
rows that span a hypothesis are its differences from the first level, as in lmerTest. F and Kenward-Roger do not depend
on that choice; Satterthwaite's df of several degrees of freedom do a little when the data are unbalanced, so whatever
tests a hypothesis of a factor takes these rows (`differences`).

Types I and II: let Q be an orthonormal basis of what the columns of a term have beyond those of some other terms, over
the rows of the table. The hypothesis "the term adds nothing to these" is Q'X b = 0, X being the whole design. Type I
puts the terms in the order of the formula (main effects first); type II gives each term all others but those that
contain it, which is the type III hypothesis of a term that none contains. Both are the definitions of SAS and lmerTest:
rows count alike, whatever their precision. In unbalanced data the hypothesis of a factor therefore depends on how many
rows its levels have with those of other factors; type III does not.
"""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from lmemtest.lmm.engine.span import independent_columns
from lmemtest.lmm.formula.coding import Coding
from lmemtest.lmm.formula.columns import Columns

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.core.arrays import Array
    from lmemtest.lmm.formula.design import Design


# Singular values below this share of the largest are rounding: columns have unit size.
_RANK = 1e-9
# An orthonormal row with less than this outside a subspace lies in it.
_INSIDE = 1e-7


def type_three(design: Design, frame: pd.DataFrame) -> dict[str, Array]:
    """Type III hypothesis of every fixed term but the intercept: (q, p) over the columns of the design.

    `frame` holds the cells that it was built on. One row per degree of freedom; none for a term that the data do not
    identify apart from those that contain it.
    """
    indicators, owner, sizes = _indicators(design, frame)
    first = ~pd.DataFrame(indicators).duplicated().to_numpy()
    U, s, Vt = np.linalg.svd(indicators[first], full_matrices=False)
    rank = int(np.sum(s > _RANK * s[0])) if len(s) else 0
    estimable = Vt[:rank]
    to_design = (U[:, :rank] / s[:rank]).T @ design.X[first]  # of an estimable function, through its coordinates
    terms = design.fixed_block.terms
    contains = containment(design)
    out = {}
    for i, (label, _) in enumerate(design.terms):
        if not terms[i]:
            continue
        mine = _involving(estimable, np.isin(owner, [i, *contains[i]]))
        larger = _involving(estimable, np.isin(owner, contains[i]))
        coordinates = _beyond(mine, larger)
        own = (coordinates @ estimable)[:, owner == i] * sizes[owner == i]
        out[label] = differences(coordinates, own) @ to_design
    return out


def type_one(design: Design, counts: Array) -> dict[str, Array]:
    """Type I hypotheses, as `type_three`, with the rows per cell; no rows for a term that adds nothing."""
    every = list(range(len(design.terms)))
    return {design.terms[i][0]: _added(design, counts, every[:i], i) for i in _tested(design)}


def type_two(design: Design, frame: pd.DataFrame, counts: Array) -> dict[str, Array]:
    """Type II hypotheses, as `type_three`, with the rows per cell."""
    contains, every = containment(design), range(len(design.terms))
    marginal = type_three(design, frame)
    out = {}
    for i in _tested(design):
        label = design.terms[i][0]
        before = [j for j in every if j != i and j not in contains[i]]
        out[label] = _added(design, counts, before, i) if contains[i] else marginal[label]
    return out


def _tested(design: Design) -> list[int]:
    return [i for i, term in enumerate(design.fixed_block.terms) if term]


def _added(design: Design, counts: Array, before: list[int], term: int) -> Array:
    """Rows with 1 at one of the term's columns each, and 0 at its earlier ones and the columns before."""
    X = design.X
    columns = np.concatenate([np.arange(X.shape[1])[design.terms[j][1]] for j in [*before, term]])
    kept = columns[independent_columns(X[:, columns], counts)]
    root = np.sqrt(counts)[:, None]
    Q, R = np.linalg.qr(X[:, kept] * root)
    rows = Q.T @ (X * root) / R.diagonal()[:, None]
    own = design.terms[term][1]
    return np.asarray(rows[(kept >= own.start) & (kept < own.stop)])


def term_columns(design: Design) -> tuple[tuple[str, ...], ...]:
    """Columns of the table that each fixed term uses, factors and numbers, in the order of `design.terms`."""
    from lmemtest.lmm.formula.functions import columns_of

    block = design.fixed_block
    out = []
    for term in block.terms:
        names: list[str] = []
        for i in term:
            atom = block.atoms[i]
            found = [atom.column.value] if isinstance(atom, Coding) else [n.value for n in columns_of(atom.atom)]
            names += [name for name in found if name not in names]
        out.append(tuple(names))
    return tuple(out)


def identified_part(rows: Array, X: Array) -> Array:
    """Which combinations of ``rows``, (r, p), lie in the row space of the design X: ``(q, r)``, q = r if all do."""
    size = np.sqrt(np.mean(X**2, axis=0))
    size[size == 0] = 1.0
    _, s, Vt = np.linalg.svd(np.linalg.qr(X / size, mode="r"))
    basis = Vt[: int(np.sum(s > _RANK * s[0]))]
    scaled = rows / size
    outside = scaled - (scaled @ basis.T) @ basis
    lengths = np.linalg.norm(scaled, axis=1)
    keep = lengths > 0
    out = np.zeros((0, len(rows)))
    if keep.any():
        found = _left_null(outside[keep] / lengths[keep, None])
        out = np.zeros((len(found), len(rows)))
        out[:, keep] = found / lengths[keep]
    return out


def _indicators(design: Design, frame: pd.DataFrame) -> tuple[Array, NDArray[np.intp], Array]:
    """Columns of the overparametrised model, scaled to unit size; the term that owns each; and the sizes."""
    block = design.fixed_block
    columns = Columns(frame, design.parsed.text)
    parts: dict[int, Array] = {}
    scales: dict[int, Array] = {}
    for i in {i for term in block.terms for i in term}:
        atom: Any = block.atoms[i]
        values = atom.columns(atom.values(columns), False)
        scale = np.ones((1, values.shape[1]))
        if not isinstance(atom, Coding):
            scale[0] = np.sqrt(np.mean(values**2, axis=0))
            scale[scale == 0] = 1.0
        parts[i], scales[i] = values / scale, scale
    matrices = [reduce(_products, [parts[i] for i in term], np.ones((len(frame), 1))) for term in block.terms]
    sizes = [reduce(_products, [scales[i] for i in term], np.ones((1, 1))) for term in block.terms]
    owner = np.repeat(np.arange(len(matrices)), [m.shape[1] for m in matrices])
    none = [np.empty((len(frame), 0))]
    return np.hstack(matrices or none), owner, np.hstack(sizes or [np.empty((1, 0))])[0]


def _products(left: Array, right: Array) -> Array:
    return (left[:, :, None] * right[:, None, :]).reshape(len(left), -1)


def containment(design: Design) -> list[list[int]]:
    """Terms that contain each term."""
    block = design.fixed_block
    factors = [frozenset(i for i in term if isinstance(block.atoms[i], Coding)) for term in block.terms]
    numbers = [frozenset(term) - own for term, own in zip(block.terms, factors, strict=True)]
    return [
        [j for j in range(len(factors)) if factors[i] < factors[j] and numbers[i] == numbers[j]]
        for i in range(len(factors))
    ]


def _involving(estimable: Array, allowed: NDArray[np.bool_]) -> Array:
    """Coordinates of the functions that involve only the ``allowed`` columns, ``(q, rank)``, orthonormal."""
    return _left_null(estimable[:, ~allowed])


def _beyond(whole: Array, part: Array) -> Array:
    """Orthonormal basis of what ``whole`` has and ``part``, a subspace of it, has not."""
    return _left_null(whole @ part.T) @ whole


def differences(coordinates: Array, own: Array) -> Array:
    """Rows with the same span that have 1 at one of the term's columns and 0 at the others that can be chosen freely.

    `own` holds what the rows have at the columns of the term. The last columns are chosen first, so the first level is
    what is left to differ from.
    """
    if not len(coordinates):
        return coordinates
    size = np.abs(own)
    last_first = np.where(size > _RANK * size.max(initial=0.0), own, 0.0)[:, ::-1]  # noise is no column
    free = own.shape[1] - 1 - independent_columns(last_first, np.ones(len(own)))
    return np.asarray(np.linalg.solve(own[:, np.sort(free)], coordinates))


def _left_null(matrix: Array) -> Array:
    """Orthonormal rows ``c`` with ``c @ matrix = 0``."""
    if not matrix.size:
        return np.eye(len(matrix))
    U, s, _ = np.linalg.svd(matrix)
    return np.asarray(U[:, int(np.sum(s > _INSIDE)) :].T)
