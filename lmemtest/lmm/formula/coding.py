"""Atoms of a formula met with data: a factor with its contrasts, or a measure with its fitted transforms."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lmemtest.core.arrays import Array, Index
from lmemtest.core.words import listed
from lmemtest.errors import DataError
from lmemtest.lmm.formula.columns import Columns, Levels, level_label, placed
from lmemtest.lmm.formula.functions import SEVERAL_COLUMNS, columns_of, contrast_of, differentiate, evaluate, levels_of
from lmemtest.lmm.formula.syntax import Call, Name
from lmemtest.lmm.formula.tokens import pointed

Atom = Name | Call


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Coding:
    """A factor and its two codings."""

    column: Name  # the column
    levels: Levels  # levels of the fit
    # full, contrasts: (n_levels, k), one row per level: all dummies, or one column less
    full: Array
    contrasts: Array
    # full_names, contrast_names: names of their columns
    full_names: tuple[str, ...]
    contrast_names: tuple[str, ...]

    def values(self, columns: Columns) -> Index:
        """Place a table's values among the levels."""
        return columns.codes(self.column, self.levels)

    def columns(self, codes: Index, reduced: bool) -> Array:
        """Code the values."""
        return (self.contrasts if reduced else self.full)[codes]

    def names(self, reduced: bool) -> tuple[str, ...]:
        """Name the columns of `columns`."""
        return self.contrast_names if reduced else self.full_names


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Measure:
    """A numeric column or expression, with the state of its stateful transforms."""

    atom: Atom
    state: dict[str, Any]
    column_names: tuple[str, ...]
    text: str

    def values(self, columns: Columns) -> Array:
        """Compute the expression for a table, as `(n, k)`."""
        return _compute(self.atom, columns, self.state, None, self.text)

    def slopes(self, columns: Columns, name: str) -> Array:
        """Derivatives with respect to one column, as `(n, k)`."""
        with np.errstate(all="ignore"):
            found = np.asarray(differentiate(self.atom, name, columns, self.state, self.text)[1], dtype=np.float64)
        slopes = np.broadcast_to(found, len(columns)) if found.ndim == 0 else found
        slopes = slopes[:, None] if slopes.ndim == 1 else slopes
        return _finite(slopes, self.atom, columns, self.text, f"the slope of {self.atom}")

    def columns(self, values: Array, reduced: bool) -> Array:  # noqa: ARG002 - a measure has one coding
        """Return the values: a measure has one coding."""
        return values

    def names(self, reduced: bool) -> tuple[str, ...]:  # noqa: ARG002
        """Name the columns of `columns`."""
        return self.column_names


def measure(atom: Atom, columns: Columns, weights: Array, state: dict[str, Any]) -> tuple[Measure, Array]:
    """Fit a numeric atom."""
    values = _compute(atom, columns, state, weights, columns.text)
    name = atom.value if isinstance(atom, Name) else str(atom)
    several = isinstance(atom, Call) and atom.function in SEVERAL_COLUMNS
    names = tuple(f"{name}[{k + 1}]" for k in range(values.shape[1])) if several else (name,)
    return Measure(atom=atom, state=state, column_names=names, text=columns.text), values


def _compute(atom: Atom, columns: Columns, state: dict[str, Any], weights: Array | None, text: str) -> Array:
    with np.errstate(all="ignore"):  # what is not finite is reported below, with names
        values = np.asarray(evaluate(atom, columns, state, weights, text), dtype=np.float64)
    return _finite(values[:, None] if values.ndim == 1 else values, atom, columns, text, str(atom))


def _finite(values: Array, atom: Atom, columns: Columns, text: str, what: str) -> Array:
    bad: NDArray[np.bool_] = np.any(~np.isfinite(values), axis=1)
    if bad.any():
        first = int(np.argmax(bad))
        where = ", ".join(
            f"{name.value} = {columns.numbers(name)[first]:g}"
            for name in {name.value: name for name in columns_of(atom)}.values()
        )
        message = (
            f"{what} is not a finite number in {int(bad.sum())} of {len(bad)} rows of the table "
            f"(first where {where}); change the expression or drop these rows."
        )
        raise pointed(message, text, atom, DataError)
    return values


def code_factor(atom: Atom, columns: Columns) -> tuple[Coding, Index]:
    """Fit a factor: a column, or `C(column, contrast, levels=...)`."""
    if isinstance(atom, Name):
        codes, levels = columns.factor(atom)
        return _treatment(atom, atom.value, levels, 0), codes
    column = atom.arguments[0]
    if not isinstance(column, Name):
        raise TypeError("C() without a column passed the check")
    codes, levels = columns.factor(column)
    wanted = levels_of(atom, columns.text)
    if wanted is not None:
        codes, levels = _reorder(atom, column, codes, levels, wanted, columns.text)
    kind, options = contrast_of(atom, columns.text)
    if kind in ("treatment", "SAS"):
        base = options.get("base")
        place = (0 if kind == "treatment" else len(levels) - 1) if base is None else levels.get(base)
        if place is None:
            message = f"the base level {base!r} is not in the data. Levels: {listed(map(level_label, levels))}."
            raise pointed(message, columns.text, atom, DataError)
        return _treatment(column, str(atom), levels, place), codes
    return _contrasts(atom, column, levels, kind, options, columns.text), codes


def _treatment(column: Name, name: str, levels: Levels, base: int) -> Coding:
    dummies = np.eye(len(levels))
    labels = [str(value) for value in levels]
    return Coding(
        column=column,
        levels=levels,
        full=dummies,
        contrasts=np.delete(dummies, base, axis=1),
        full_names=tuple(f"{name}[{label}]" for label in labels),
        contrast_names=tuple(f"{name}[T.{label}]" for i, label in enumerate(labels) if i != base),
    )


def _contrasts(call: Call, column: Name, levels: Levels, kind: str, options: dict[str, Any], text: str) -> Coding:
    """Take a contrast matrix from formulaic."""
    if len(levels) == 1:
        matrix, fields, pattern = np.zeros((1, 0)), [], "{name}[{field}]"
    else:
        from formulaic.transforms.contrasts import ContrastsRegistry

        values = list(levels)
        try:
            contrast = getattr(ContrastsRegistry, kind)(**options)
            matrix = np.asarray(contrast.get_coding_matrix(values, reduced_rank=True), dtype=np.float64)
        except (TypeError, ValueError) as error:
            message = f"contrast '{kind}' with these options does not fit {len(levels)} levels; change them."
            raise pointed(message, text, call, DataError) from error
        fields = list(contrast.get_coding_column_names(values, reduced_rank=True))
        pattern = contrast.get_factor_format(values, reduced_rank=True)
    names = tuple(pattern.format(name=str(call), field=field) for field in fields)
    return replace(_treatment(column, str(call), levels, 0), contrasts=matrix, contrast_names=names)


def _reorder(
    call: Call, column: Name, codes: Index, levels: Levels, wanted: tuple[Any, ...], text: str
) -> tuple[Index, Levels]:
    """Put the levels in the order of `levels=[...]`; listed levels that do not occur are dropped."""
    missing = [value for value in levels if value not in wanted]
    if missing or len(set(wanted)) < len(wanted):
        problem = f"does not list {missing[0]!r}" if missing else "lists a level twice"
        message = f"levels= {problem}; list every level of '{column.value}' once: {listed(map(level_label, levels))}."
        raise pointed(message, text, call, DataError)
    values = list(levels)
    ordered = placed(values[levels[value]] for value in wanted if value in levels)
    place = np.array([ordered[value] for value in values], dtype=np.intp)
    return place[codes], ordered
