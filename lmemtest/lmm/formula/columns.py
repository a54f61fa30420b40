"""One table as the formula sees it: its columns as factors or numbers, and the groups that they make."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import compress
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from lmemtest.core.arrays import Array, Index
from lmemtest.core.codes import Keys, level_order
from lmemtest.core.words import listed, suggest
from lmemtest.errors import DataError, FormulaError, LmemtestError, UnknownColumnError
from lmemtest.lmm.formula.syntax import Name

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


def unknown_column(name: Any, available: Iterable[object]) -> LmemtestError:
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
            raise unknown_column(name, self.frame.columns)
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
