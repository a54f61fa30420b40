"""One table as a formula sees it: columns as factors or numbers, what is fitted to them, and the groups they make."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from lmemtest.core.arrays import Array, Index
from lmemtest.core.codes import Keys, level_order
from lmemtest.core.words import listed, suggest
from lmemtest.errors import DataError, FormulaError, LmemtestError, UnknownColumnError
from lmemtest.lmm.formula.functions import SEVERAL_COLUMNS
from lmemtest.lmm.formula.syntax import Atom, Call, Name
from lmemtest.lmm.formula.transforms import differentiate, evaluate

if TYPE_CHECKING:
    from lmemtest.lmm.formula.bars import ParsedFormula

# A table of all combinations is used up to this size (a few MB); beyond it the codes are sorted instead.
_TABLE = 1 << 20
Levels = dict[Any, int]  # of a factor: its values in order, with the place of each


def placed(values: Iterable[Any]) -> Levels:
    """Levels from their values in order."""
    return {value: place for place, value in enumerate(values)}


def level_label(value: Any) -> str:
    """Write one level.

    Examples
    --------
    >>> level_label(2.0), level_label(0.5), level_label("a")
    ('2', '0.5', 'a')
    """
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e16:
        return str(int(value))
    return str(value)


def distinct(names: Sequence[str]) -> tuple[str, ...]:
    """Number equal names, such as a column called "a:b" beside the interaction a:b.

    Examples
    --------
    >>> distinct(["x", "a:b", "a:b"])
    ('x', 'a:b', 'a:b (2)')
    """
    if len(set(names)) == len(names):
        return tuple(names)
    taken, seen, result = set(names), Counter[str](), []
    for name in names:
        seen[name] += 1
        new, number = name, seen[name]
        while seen[name] > 1 and (new := f"{name} ({number})") in taken:
            number += 1
        taken.add(new)
        result.append(new)
    return tuple(result)


def refuse_unknown(parsed: ParsedFormula, available: Iterable[object]) -> None:
    """Refuse a formula with columns that are not in the table, pointing to the first one."""
    columns = list(available)
    names = set(columns)
    for name in (parsed.response_name, *parsed.names):
        if name.value not in names:
            raise _unknown(name, columns).at(name, parsed.text)


def _unknown(name: Name, available: Iterable[object]) -> LmemtestError:
    """The error that a name is not a column, with the columns there are and the nearest one."""
    columns = [str(column) for column in available]
    message = (
        f"formula uses '{name.value}' (position {name.start + 1}), not in data. Columns: {listed(columns)}."
        f"{suggest(name.value, columns)}"
    )
    return UnknownColumnError(message).at(name)


class Columns:
    """Columns of a frame, or of keys, whose codes and levels are known, read on demand and kept."""

    def __init__(self, table: Keys | pd.DataFrame) -> None:
        self._table = table
        self._coded: dict[str, tuple[NDArray[Any], Any]] = {}
        if isinstance(table, Keys):
            self._coded = dict(zip(table.names, zip(table.codes, table.levels, strict=True), strict=True))
        self._factors: dict[str, tuple[Index, Levels]] = {}
        self._numbers: dict[str, Array] = {}

    def __len__(self) -> int:
        return self._table.size if isinstance(self._table, Keys) else len(self._table)

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The whole table."""
        return self._table.frame() if isinstance(self._table, Keys) else self._table

    def series(self, name: Name) -> pd.Series:
        """Look the column up."""
        if name.value not in self.frame.columns:
            raise _unknown(name, self.frame.columns)
        series = self.frame[name.value]
        if isinstance(series, pd.DataFrame):
            message = f"the table has {series.shape[1]} columns named '{name.value}'; rename all but one."
            raise DataError(message).at(name)
        return series

    def is_numeric(self, name: Name) -> bool:
        """Tell whether the column enters as numbers (not bool, text or categorical)."""
        kind = self._coded[name.value][1].dtype if name.value in self._coded else self.series(name).dtype
        if pd.api.types.is_datetime64_any_dtype(kind) or pd.api.types.is_timedelta64_dtype(kind):
            message = f"'{name.value}' holds dates or durations; add it to the table as a number or as text."
            raise DataError(message).at(name)
        if pd.api.types.is_complex_dtype(kind):
            message = f"'{name.value}' holds complex numbers; a formula takes real ones."
            raise DataError(message).at(name)
        return pd.api.types.is_numeric_dtype(kind) and not pd.api.types.is_bool_dtype(kind)

    def numbers(self, name: Name) -> Array:
        """Read a column as floats; text and categories are refused."""
        if name.value not in self._numbers:
            self._numbers[name.value] = self._read_numbers(name)
        return self._numbers[name.value]

    def _read_numbers(self, name: Name) -> Array:
        series = self.series(name)
        if not self.is_numeric(name) and not pd.api.types.is_bool_dtype(series.dtype):
            message = (
                f"'{name.value}' (position {name.start + 1}) is used as a number but holds "
                f"{'categories' if isinstance(series.dtype, pd.CategoricalDtype) else 'text'}; "
                "use it as a factor, without a function, or give a numeric column."
            )
            raise FormulaError(message).at(name)
        values = series.to_numpy(dtype=np.float64, na_value=np.nan)
        missing = int(np.count_nonzero(np.isnan(values)))
        if missing:
            raise self._missing(name, missing)
        return values

    def factor(self, name: Name) -> tuple[Index, Levels]:
        """Read a column as a factor: codes and the levels that occur, in order."""
        if name.value not in self._factors:
            self._factors[name.value] = self._read_factor(name)
        return self._factors[name.value]

    def _read_factor(self, name: Name) -> tuple[Index, Levels]:
        if name.value in self._coded:
            coded, levels = self._coded[name.value]
            return coded.astype(np.intp, copy=False), placed(levels.tolist())
        series = self.series(name)
        if isinstance(series.dtype, pd.CategoricalDtype):
            codes, values = series.cat.codes.to_numpy().astype(np.intp), series.cat.categories
            order = np.arange(len(values))
        else:
            codes, values = self._factorize(name)
            order = self._order(values, name)
        missing = int(np.count_nonzero(codes < 0))
        if missing:
            raise self._missing(name, missing)
        occurs = np.bincount(codes, minlength=len(values)) > 0
        order = order[occurs[order]]
        place = np.zeros(len(values), dtype=np.intp)
        place[order] = np.arange(len(order))
        plain = values.tolist()
        return place[codes], placed(plain[i] for i in order)

    def patterns(self, names: Sequence[Name]) -> tuple[Index, Index]:
        """The first row of every combination of some columns that occurs, and the combination of every row."""
        row, size = np.zeros(len(self), dtype=np.intp), 1
        for name in {name.value: name for name in names}.values():
            if name.value in self._coded or name.value in self._factors:
                codes, levels = self.factor(name)
                n_levels = len(levels)
            else:
                codes, values = self._factorize(name)
                n_levels = len(values)
            occurring, row = _compact(row.astype(np.int64) * n_levels + codes, size * n_levels)
            size = len(occurring)
        first = np.empty(size, dtype=np.intp)
        first[row[::-1]] = np.arange(len(row))[::-1]
        return first, row

    def _factorize(self, name: Name) -> tuple[Index, pd.Index]:
        try:
            codes, values = pd.factorize(self.series(name))
        except TypeError as error:  # lists, dicts: not hashable
            message = f"'{name.value}' holds values that cannot be levels; make it text or numbers."
            raise DataError(message).at(name) from error
        return codes, pd.Index(values)

    def _order(self, values: Any, name: Name) -> NDArray[np.intp]:
        plain = values.tolist()
        try:
            return level_order(plain)
        except TypeError as error:
            kinds = sorted({type(value).__name__ for value in plain})
            message = (
                f"'{name.value}' mixes values that cannot be ordered ({', '.join(kinds)}); "
                "make it one type, for example with .astype(str)."
            )
            raise DataError(message).at(name) from error

    def codes(self, name: Name, levels: Levels, *, unknown: bool = False) -> Index:
        """Place the values among known levels."""
        coded = self._coded.get(name.value)
        codes, values = self._factorize(name) if coded is None else coded
        if np.any(codes < 0) and not unknown:
            raise self._missing(name, int(np.count_nonzero(codes < 0)))
        plain = values.tolist()
        places = np.array(
            [levels.get(value, -1) if isinstance(value, Hashable) else -1 for value in plain] + [-1],
            dtype=np.intp,
        )
        new = [value for value, place in zip(plain, places, strict=False) if place < 0]
        if new and not unknown:
            message = (
                f"column '{name.value}' has the level {new[0]!r}, which the fit has not seen. "
                f"Levels: {listed(map(level_label, levels))}."
            )
            raise DataError(message).at(name)
        return places[codes]  # a missing value has code -1 and so takes the last entry, -1

    def _missing(self, name: Name, count: int) -> LmemtestError:
        message = (
            f"column '{name.value}' has {count} missing value{'s' if count > 1 else ''}; "
            "drop these rows or fill them before the fit."
        )
        return DataError(message).at(name)


# columns and calls that meet a table ----------------------------------------------------------------


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

    @property
    def reads(self) -> tuple[Name, ...]:
        """The columns that it reads."""
        return (self.column,)

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

    @property
    def reads(self) -> tuple[Name, ...]:
        """The columns that it reads."""
        return self.atom.reads

    def values(self, columns: Columns) -> Array:
        """Compute the expression for a table, as `(n, k)`."""
        return _compute(self.atom, _numbers(self.atom, columns), self.state, None)

    def slopes(self, columns: Columns, name: str) -> Array:
        """Derivatives with respect to one column, as `(n, k)`."""
        numbers = _numbers(self.atom, columns)
        with np.errstate(all="ignore"):
            derivative = np.asarray(differentiate(self.atom, name, numbers, self.state)[1], dtype=np.float64)
        slopes = np.broadcast_to(derivative, len(columns)) if derivative.ndim == 0 else derivative
        slopes = slopes[:, None] if slopes.ndim == 1 else slopes
        return _finite(slopes, self.atom, numbers, f"the slope of {self.atom}")

    def columns(self, values: Array, reduced: bool) -> Array:  # noqa: ARG002 - a measure has one coding
        """Return the values: a measure has one coding."""
        return values

    def names(self, reduced: bool) -> tuple[str, ...]:  # noqa: ARG002
        """Name the columns of `columns`."""
        return self.column_names


Fitted = Coding | Measure  # an atom that met a table


def fit_atoms(atoms: Iterable[Atom], columns: Columns, weights: Array) -> dict[str, tuple[Fitted, Any]]:
    """Columns and calls by their text: what each is fitted to the rows of a table, and its values there.

    What several terms share is fitted once; `weights` are the rows behind each row of the table.
    """
    state: dict[str, Any] = {}  # of transforms
    met: dict[str, tuple[Fitted, Any]] = {}
    for atom in atoms:
        if (key := str(atom)) in met:
            continue
        column = atom.arguments[0] if isinstance(atom, Call) and atom.function == "C" else atom
        if isinstance(column, Name) and (column is not atom or not columns.is_numeric(column)):
            met[key] = _coded(atom, column, *columns.factor(column))
        else:
            met[key] = _measured(atom, _numbers(atom, columns), weights, state)
    return met


def _numbers(atom: Atom, columns: Columns) -> dict[str, Array]:
    """The columns that an atom reads, as numbers."""
    return {name.value: columns.numbers(name) for name in atom.reads}


def _measured(atom: Atom, numbers: Mapping[str, Array], weights: Array, state: dict[str, Any]) -> tuple[Measure, Array]:
    """A numeric atom."""
    values = _compute(atom, numbers, state, weights)
    name = atom.value if isinstance(atom, Name) else str(atom)
    several = isinstance(atom, Call) and atom.function in SEVERAL_COLUMNS
    names = tuple(f"{name}[{k + 1}]" for k in range(values.shape[1])) if several else (name,)
    return Measure(atom=atom, state=state, column_names=names), values


def _compute(atom: Atom, numbers: Mapping[str, Array], state: dict[str, Any], weights: Array | None) -> Array:
    with np.errstate(all="ignore"):  # what is not finite is reported below, with names
        values = np.asarray(evaluate(atom, numbers, state, weights), dtype=np.float64)
    return _finite(values[:, None] if values.ndim == 1 else values, atom, numbers, str(atom))


def _finite(values: Array, atom: Atom, numbers: Mapping[str, Array], what: str) -> Array:
    bad: NDArray[np.bool_] = np.any(~np.isfinite(values), axis=1)
    if bad.any():
        first = int(np.argmax(bad))
        where = ", ".join(f"{name} = {column[first]:g}" for name, column in numbers.items())
        message = (
            f"{what} is not a finite number in {int(bad.sum())} of {len(bad)} rows of the table "
            f"(first where {where}); change the expression or drop these rows."
        )
        raise DataError(message).at(atom)
    return values


def _coded(atom: Atom, column: Name, codes: Index, levels: Levels) -> tuple[Coding, Index]:
    """A factor: a column, or `C(column, contrast, levels=...)`."""
    if isinstance(atom, Name):
        return _treatment(atom, atom.value, levels, 0), codes
    options = dict(atom.options)
    kind, wanted = options.pop("contrast", "treatment"), options.pop("levels", None)
    if wanted is not None:
        codes, levels = _reorder(atom, column, codes, levels, wanted)
    if kind in ("treatment", "SAS"):
        base = options.get("base")
        place = (0 if kind == "treatment" else len(levels) - 1) if base is None else levels.get(base)
        if place is None:
            message = f"the base level {base!r} is not in the data. Levels: {listed(map(level_label, levels))}."
            raise DataError(message).at(atom)
        return _treatment(column, str(atom), levels, place), codes
    return _contrasts(atom, column, levels, kind, options), codes


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


def _contrasts(call: Call, column: Name, levels: Levels, kind: str, options: dict[str, Any]) -> Coding:
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
            raise DataError(message).at(call) from error
        fields = list(contrast.get_coding_column_names(values, reduced_rank=True))
        pattern = contrast.get_factor_format(values, reduced_rank=True)
    names = tuple(pattern.format(name=str(call), field=field) for field in fields)
    return replace(_treatment(column, str(call), levels, 0), contrasts=matrix, contrast_names=names)


def _reorder(call: Call, column: Name, codes: Index, levels: Levels, wanted: tuple[Any, ...]) -> tuple[Index, Levels]:
    """Put the levels in the order of `levels=[...]`; listed levels that do not occur are dropped."""
    missing = [value for value in levels if value not in wanted]
    if missing or len(set(wanted)) < len(wanted):
        problem = f"does not list {missing[0]!r}" if missing else "lists a level twice"
        message = f"levels= {problem}; list every level of '{column.value}' once: {listed(map(level_label, levels))}."
        raise DataError(message).at(call)
    values = list(levels)
    ordered = placed(values[levels[value]] for value in wanted if value in levels)
    place = np.array([ordered[value] for value in values], dtype=np.intp)
    return place[codes], ordered


# groups of random effects ----------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Grouping:
    """The groups of one term."""

    columns: tuple[Name, ...]  # columns that are crossed
    levels: tuple[Levels, ...]  # levels of each column
    # per column after the first, the combinations that occur, as `left code * n_levels + right code`
    steps: tuple[NDArray[np.int64], ...]

    def __len__(self) -> int:
        return len(self.steps[-1]) if self.steps else len(self.levels[0])

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """Labels of the groups, in order, "a:1" for an interaction."""
        labels = [level_label(value) for value in self.levels[0]]
        for levels, occurring in zip(self.levels[1:], self.steps, strict=True):
            more = [level_label(value) for value in levels]
            lefts, rights = np.divmod(occurring, len(more))
            labels = [f"{labels[i]}:{more[j]}" for i, j in zip(lefts.tolist(), rights.tolist(), strict=True)]
        return distinct(labels)

    def only(self, kept: NDArray[np.bool_]) -> Grouping:
        """Some of the groups."""
        if self.steps:
            return replace(self, steps=(*self.steps[:-1], self.steps[-1][kept]))
        return replace(self, levels=(placed(compress(self.levels[0], kept)),))

    def codes(self, table: Columns) -> Index:
        """Place the rows of a table among the groups; -1 for a group that the fit has not seen."""
        codes = table.codes(self.columns[0], self.levels[0], unknown=True)
        for name, levels, occurring in zip(self.columns[1:], self.levels[1:], self.steps, strict=True):
            right = table.codes(name, levels, unknown=True)
            joint = codes.astype(np.int64) * len(levels) + right
            place = np.minimum(np.searchsorted(occurring, joint), len(occurring) - 1)
            occurs = (codes >= 0) & (right >= 0) & (occurring[place] == joint)
            codes = np.where(occurs, place, -1).astype(np.intp)
        return codes


def group_rows(names: Sequence[Name], table: Columns) -> tuple[Grouping, Index]:
    """Find the groups that occur."""
    codes, first = table.factor(names[0])
    levels, steps, size = [first], [], len(first)
    for name in names[1:]:
        right, right_levels = table.factor(name)
        joint = codes.astype(np.int64) * len(right_levels) + right
        occurring, codes = _compact(joint, size * len(right_levels))
        size = len(occurring)
        levels.append(right_levels)
        steps.append(occurring)
    return Grouping(columns=tuple(names), levels=tuple(levels), steps=tuple(steps)), codes


def _compact(joint: NDArray[np.int64], size: int) -> tuple[NDArray[np.int64], Index]:
    """Sorted distinct values and the place of each value among them."""
    if size > max(_TABLE, 4 * len(joint)):
        occurring, codes = np.unique(joint, return_inverse=True)
        return occurring, codes.astype(np.intp)
    present = np.zeros(size, dtype=bool)
    present[joint] = True
    return np.flatnonzero(present).astype(np.int64), (np.cumsum(present) - 1)[joint].astype(np.intp)
