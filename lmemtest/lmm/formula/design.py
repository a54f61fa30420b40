"""Formula and cells -> the matrices of the model: X, and basis and group codes of each random-effect term.

No variance can be estimated of random effects that the fixed ones already hold.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from lmemtest.core.arrays import Array, Index
from lmemtest.core.codes import Keys
from lmemtest.core.words import listed
from lmemtest.errors import ArgumentError, DataError, FormulaError, pointing
from lmemtest.lmm.engine.structure import RandomTerm
from lmemtest.lmm.formula.bars import Bar, ParsedFormula
from lmemtest.lmm.formula.columns import Coding, Columns, Fitted, Grouping, Measure, distinct, fit_atoms, group_rows
from lmemtest.lmm.formula.syntax import Name
from lmemtest.lmm.formula.terms import Term

_TOLERANCE = 1e-7  # of the rank decisions of a fit, relative to the length of a column


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Block:
    """The columns of one list of terms, as a recipe that can be run on any table."""

    terms: tuple[tuple[int, ...], ...]  # each as positions in `atoms`; the empty one is the intercept
    scoped: tuple[tuple[Scoped, ...], ...]  # per term the products of coded atoms (see `coded`)
    atoms: tuple[Fitted, ...]  # the atoms, fitted
    names: tuple[str, ...]  # column names
    slices: tuple[tuple[str, slice], ...]  # term label and its columns

    def matrix(self, columns: Columns) -> Array:
        """Compute the columns for a table."""
        return self.assemble([atom.values(columns) for atom in self.atoms], len(columns))

    def slopes(self, columns: Columns, name: str) -> Array:
        """Derivatives of the columns with respect to one numeric column, by the product rule."""
        values = [atom.values(columns) for atom in self.atoms]
        total = np.zeros((len(columns), len(self.names)))
        for moving, atom in enumerate(self.atoms):
            if isinstance(atom, Measure) and any(read.value == name for read in atom.reads):
                moved = [*values[:moving], atom.slopes(columns, name), *values[moving + 1 :]]
                part = self.assemble(moved, len(columns))
                for term, (_, of_term) in zip(self.terms, self.slices, strict=True):
                    total[:, of_term] += part[:, of_term] if moving in term else 0.0
        return total

    def assemble(self, values: Sequence[Any], n: int) -> Array:
        """Put the columns together from the values of the atoms."""
        matrix = np.empty((n, len(self.names)))
        position = 0
        for term in self.scoped:
            for product in term:
                parts = [self.atoms[i].columns(values[i], reduced) for i, reduced in product]
                block = reduce(_rowwise, parts) if parts else np.ones((n, 1))
                matrix[:, position : position + block.shape[1]] = block
                position += block.shape[1]
        return matrix


@dataclass(frozen=True, kw_only=True, eq=False)
class RandomDesign:
    """One random-effect term on the cells."""

    label: str  # for example "(1 + algorithm | benchmark)"
    group: str  # for example "benchmark:seed"
    names: tuple[str, ...]  # names of the basis columns, e.g. ("Intercept", "algorithm[T.PB]")
    basis: Array  # (n_cells, k): what varies by group
    codes: Index  # (n_cells,): group of each cell, 0 to n_levels - 1
    grouping: Grouping
    block: Block = field(repr=False)  # the basis as a recipe
    diagonal: bool = False  # the columns vary independently, each with a variance of its own (`diag`)

    @property
    def n_levels(self) -> int:
        """Groups that occur."""
        return len(self.grouping)

    @property
    def levels(self) -> tuple[str, ...]:
        """Labels of the groups that occur, "a:1" for an interaction, ordered by the first factor, then the next."""
        return self.grouping.labels


@dataclass(frozen=True, kw_only=True, eq=False)
class Design:
    """The matrices of a mixed model on its cells, and how to compute them for new data."""

    parsed: ParsedFormula  # the formula
    distinct: Array  # (n_distinct, p): rows of `X`, each once
    row: Index  # (n_cells,): the row in `distinct` of each cell
    x_names: tuple[str, ...]  # their names, e.g. ("Intercept", "algorithm[T.PB]", "algorithm[T.PB]:prior[T.bad]")
    random: tuple[RandomDesign, ...]  # the random-effect terms
    factors: dict[str, tuple[Any, ...]]  # categorical columns of the fixed part -> their levels in order
    numeric: dict[str, float]  # numeric columns of the fixed part -> their mean over rows
    terms: tuple[tuple[str, slice], ...]  # label of each fixed term ("Intercept", "a", "a:b") and its columns in X
    offset: Array  # (n_cells,): the known part of the mean, `offset(...)`; 0 without one
    fixed_block: Block = field(repr=False)
    fixed_values: tuple[Any, ...] = field(repr=False)  # of the atoms of `fixed_block` in each row of `distinct`
    offset_parts: tuple[Measure, ...] = field(repr=False)

    @cached_property
    def X(self) -> Array:
        """Fixed-effect columns of the cells, ``(n_cells, p)``, not reduced to full rank."""
        return self.distinct[self.row]

    @cached_property
    def engine_terms(self) -> list[RandomTerm]:
        """The random-effect terms as the engine has them: basis and codes."""
        return [RandomTerm(basis=t.basis, codes=t.codes, n_levels=t.n_levels, diagonal=t.diagonal) for t in self.random]

    @property
    def term_columns(self) -> tuple[tuple[str, ...], ...]:
        """Columns of the table that each fixed term uses, factors and numbers, in the order of `terms`."""
        atoms = self.fixed_block.atoms
        return tuple(
            tuple(dict.fromkeys(name.value for i in term for name in atoms[i].reads)) for term in self.fixed_block.terms
        )

    def with_terms(self, kept: Sequence[int]) -> Design:
        """The same with some of the random-effect terms."""
        parsed = self.parsed.with_bars(self.parsed.bars[i] for i in kept)
        return replace(self, parsed=parsed, random=tuple(self.random[i] for i in kept))

    def rows(self, frame: Keys | pd.DataFrame) -> Array:
        """Fixed-effect rows ``(m, p)`` for new data in the coding of the fit, whose levels they must have."""
        with pointing(self.parsed.text):
            return self.fixed_block.matrix(Columns(frame))

    def slopes(self, frame: Keys | pd.DataFrame, name: str) -> Array:
        """Exact derivatives of `rows` with respect to one of `numeric`; a `DataError` where there is none."""
        with pointing(self.parsed.text):
            return self.fixed_block.slopes(Columns(frame), name)

    def known(self, frame: pd.DataFrame) -> Array:
        """The known part of the mean for new data, ``(m,)``; 0 without an offset."""
        columns = Columns(frame)
        with pointing(self.parsed.text):
            return np.sum([part.values(columns)[:, 0] for part in self.offset_parts], axis=0) + np.zeros(len(frame))

    def random_rows(self, term_index: int, frame: pd.DataFrame) -> tuple[Array, Index]:
        """Basis and group codes of one random-effect term for new data; -1 for a group that the fit has not seen."""
        if not 0 <= term_index < len(self.random):
            raise ArgumentError(
                f"term_index must be from 0 to {len(self.random) - 1}, the random-effect terms of "
                f"the formula; got {term_index}."
            )
        term, columns = self.random[term_index], Columns(frame)
        with pointing(self.parsed.text):
            return term.block.matrix(columns), term.grouping.codes(columns)


def build_design(
    parsed: ParsedFormula,
    cells: Keys | pd.DataFrame,
    counts: NDArray[Any],
) -> Design:
    """Compute the matrices of a formula on a table of cells, one row each, with the number of rows behind each cell.

    Means, standard deviations, polynomials and knots are those of the rows. What the table does not support is refused
    with its place in the formula.

    Examples
    --------
    >>> from lmemtest.lmm.formula import parse_formula
    >>> cells = pd.DataFrame({"algorithm": ["HB", "PB", "HB", "PB"], "benchmark": ["a", "a", "b", "b"]})
    >>> design = build_design(parse_formula("value ~ algorithm + (1 | benchmark)"), cells, np.ones(4))
    >>> design.x_names
    ('Intercept', 'algorithm[T.PB]')
    >>> design.random[0].label, design.random[0].levels
    ('(1 | benchmark)', ('a', 'b'))
    """
    with pointing(parsed.text):
        columns, weights = Columns(cells), np.asarray(counts, dtype=np.float64)
        if weights.shape != (len(columns),):
            raise ArgumentError(f"counts must have one entry per cell ({len(columns)}); got the shape {weights.shape}.")
        if not len(columns):
            raise DataError("the table has no rows, so there is nothing to fit; check the filters before it.")
        if not np.all(weights > 0) or not np.all(np.isfinite(weights)):
            raise ArgumentError("counts must be positive and finite; drop cells without rows.")
        met = fit_atoms(parsed.atoms, columns, weights)
        groups = [group_rows(bar.group_names, columns) for bar in parsed.bars]
        first, row = columns.patterns(parsed.fixed_names)
        fixed, values = _block(parsed.terms, met)
        values = tuple(of_atom[first] for of_atom in values)
        random = [_random_effect(bar, met, *of_bar) for bar, of_bar in zip(parsed.bars, groups, strict=True)]
        offsets = [met[str(call)] for call in parsed.offsets]
        factors, numeric = _roles(fixed, columns, weights)
        return Design(
            parsed=parsed,
            distinct=fixed.assemble(values, len(first)),
            row=row,
            x_names=fixed.names,
            random=tuple(random),
            factors=factors,
            numeric=numeric,
            terms=fixed.slices,
            offset=sum((of_call[:, 0] for _, of_call in offsets), np.zeros(len(columns))),
            fixed_block=fixed,
            fixed_values=values,
            offset_parts=tuple(part for part, _ in offsets if isinstance(part, Measure)),
        )


def _block(terms: tuple[Term, ...], met: dict[str, tuple[Fitted, Any]]) -> tuple[Block, tuple[Any, ...]]:
    """The recipe of some terms whose atoms have met the table, with names for its columns; and their values there."""
    position = {text: i for i, text in enumerate(dict.fromkeys(str(atom) for term in terms for atom in term.factors))}
    atoms, values = zip(*(met[text] for text in position), strict=True) if position else ((), ())
    indices = tuple(tuple(position[str(factor)] for factor in term.factors) for term in terms)
    scoped = coded(indices, [isinstance(atom, Coding) for atom in atoms])
    names: list[str] = []
    slices = []
    for term, products in zip(terms, scoped, strict=True):
        start = len(names)
        for product in products:
            names += _product_names([atoms[i].names(reduced) for i, reduced in product])
        slices.append((term.name, slice(start, len(names))))
    block = Block(
        terms=indices, scoped=tuple(map(tuple, scoped)), atoms=atoms, names=distinct(names), slices=tuple(slices)
    )
    return block, values


def _random_effect(bar: Bar, met: dict[str, tuple[Fitted, Any]], grouping: Grouping, codes: Index) -> RandomDesign:
    """The basis of a random effect between its groups."""
    block, values = _block(bar.effects, met)
    if bar.diagonal:
        _check_factors(bar, block)
    return RandomDesign(
        label=str(bar),
        group=bar.group,
        names=block.names,
        basis=block.assemble(values, len(codes)),
        codes=codes,
        grouping=grouping,
        block=block,
        diagonal=bar.diagonal,
    )


def _roles(block: Block, columns: Columns, weights: Array) -> tuple[dict[str, tuple[Any, ...]], dict[str, float]]:
    """Sort the columns of the fixed part into factors and numbers."""
    used = dict.fromkeys(i for term in block.terms for i in term)
    factors: dict[str, tuple[Any, ...]] = {}
    for atom in (block.atoms[i] for i in used):
        if isinstance(atom, Coding):
            factors.setdefault(atom.column.value, tuple(atom.levels))
    measured = [atom for atom in (block.atoms[i] for i in used) if isinstance(atom, Measure)]
    names = [name for atom in measured for name in atom.reads if name.value not in factors]
    numbers = {n.value: float(weights @ columns.numbers(n) / weights.sum()) for n in names}
    return factors, numbers


def _check_factors(bar: Bar, block: Block) -> None:
    """Refuse a number among what `diag` gives a variance for each level of."""
    for measured in block.atoms:
        if isinstance(measured, Measure):
            atom = str(measured.atom)
            message = (
                f"{atom} is a number and has no levels to give variances to; write (0 + {atom} | {bar.group}) for a "
                f"slope that varies"
            )
            if isinstance(measured.atom, Name):
                message += f", or diag(C({atom}) | {bar.group}) for a variance at each value"
            raise FormulaError(f"{message}.").at(bar)


def _product_names(parts: Sequence[Sequence[str]]) -> list[str]:
    """Join names as formulaic does: the first factor varies fastest."""
    names = [""]
    for position, part in enumerate(parts):
        names = [f"{left}:{right}" if position else right for right in part for left in names]
    return names if parts else ["Intercept"]


def _rowwise(left: Array, right: Array) -> Array:
    """Products of all pairs of columns, left varying fastest."""
    return (right[:, :, None] * left[:, None, :]).reshape(len(left), left.shape[1] * right.shape[1])


# which columns a term needs --------------------------------------------------------------------------

Scoped = tuple[tuple[int, bool], ...]  # (atom, reduced?) in the order of the term


def coded(terms: Sequence[tuple[int, ...]], categorical: Sequence[bool]) -> list[list[Scoped]]:
    """Decide for every term which of its factors are coded by contrasts and which by all their dummies.

    Notes
    -----
    The rule of patsy and formulaic: a full factor spans 1 + its contrasts, so each term is the set of all
    products of (1 or contrasts) of its factors; products that earlier terms hold are taken out, and the rest
    is joined back by `A + A:contrasts(f) -> A:dummies(f)`. R's `model.matrix` gives the same column space.

    Examples
    --------
    >>> coded([(), (0,), (0, 1)], [True, False])  # algorithm + algorithm:budget: one slope per algorithm
    [[()], [((0, True),)], [((0, False), (1, False))]]
    """
    spanned: set[frozenset[tuple[int, bool]]] = set()
    scoped = []
    for term in terms:
        choices = [(((i, True),), ()) if categorical[i] else (((i, False),),) for i in term]
        products = [tuple(itertools.chain(*choice)) for choice in itertools.product(*choices)]
        fresh = [product for product in products if frozenset(product) not in spanned]
        spanned.update(map(frozenset, fresh))
        scoped.append(_join(fresh))
    return scoped


def _join(products: Sequence[Scoped]) -> list[Scoped]:
    joined: list[Scoped] = []
    for product in sorted(products, key=len):
        for existing in joined:
            extra = set(product) - set(existing)
            if len(product) - 1 != len(existing) or len(extra) != 1:
                continue
            (index, reduced) = next(iter(extra))
            if reduced:
                full = tuple((i, False) if i == index else (i, r) for i, r in product)
                remaining = [other for other in joined if other != existing]
                joined = _join([*remaining, full])
                break
        else:
            joined.append(product)
    return joined


# random effects that the fixed ones hold ----------------------------------------------------------------


def held_by_fixed(design: Design, term: RandomDesign) -> str | None:
    """Why a random effect cannot be estimated beside the fixed ones, if it is a combination of them in each group.

    The restricted likelihood does not depend on its variance then, and the likelihood is largest at zero, whatever
    the data. `lme4` gives a variance all the same.
    """
    held = [term.names[j] for j in held_columns(design, term)]
    if not held:
        return None
    if term.names == ("Intercept",):
        what, instead = f"the random effect {term.label}", "give each of its groups a mean of its own"
    else:
        what, instead = f"{listed(held)} in {term.label}", "hold the same for each group"
    labels = listed([label for label, _ in design.terms])
    return f"{what} cannot be estimated beside the fixed terms, which {instead} ({labels})"


def held_columns(design: Design, term: RandomDesign) -> tuple[int, ...]:
    """Columns of the basis of a random effect that are, in each of its groups, combinations of the fixed effects."""
    return tuple(j for j, column in enumerate(term.basis.T) if _spanned(design, term, column))


def beside_held(design: Design) -> Array | None:
    """The fixed effects, and beside them the random ones that they hold as if they were fixed; None if there are none.

    A linear function of the fixed effects has an error that the data know if it is estimable here too: its estimate
    does not change with effects whose variance is arbitrary.
    """
    blocks = []
    for term in design.random:
        for j in held_columns(design, term):
            block = np.zeros((len(design.X), term.n_levels))
            block[np.arange(len(block)), term.codes] = term.basis[:, j]
            blocks.append(block)
    return np.hstack([design.X, *blocks]) if blocks else None


def _spanned(design: Design, term: RandomDesign, column: Array) -> bool:
    """Whether a column, in each of the groups, is a combination of the fixed ones: a function of the rows of X."""
    levels, row, size = term.n_levels, design.row, len(design.distinct)
    if levels > design.distinct.shape[1]:
        return False
    first = np.zeros(size, dtype=np.intp)
    first[row[::-1]] = np.arange(len(row))[::-1]
    if not np.array_equal(term.codes[first][row], term.codes):
        return False
    if np.abs(column - column[first][row]).max() > _TOLERANCE * np.abs(column).max():
        return False
    root = np.sqrt(np.bincount(row, minlength=size))[:, None]
    groups = np.zeros((size, levels))
    groups[np.arange(size), term.codes[first]] = column[first]
    X, groups = design.distinct * root, groups * root
    U, d, _ = np.linalg.svd(X / np.maximum(np.linalg.norm(X, axis=0), np.finfo(float).tiny), full_matrices=False)
    U = U[:, d > _TOLERANCE * d[0]]
    rest = groups - U @ (U.T @ groups)
    return bool(np.all(np.linalg.norm(rest, axis=0) <= _TOLERANCE * np.linalg.norm(groups, axis=0)))
