"""Columns to codes: the levels of a column in their order, groups of rows by several columns.

The order of levels: one rule for tables, formulas and figures.
Numbers, dates and truth values sort by value, categoricals by their categories, and text as people count: ``game2``
comes before ``game10``, and text that is nothing but numbers sorts by their values.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from lmemtest.core.arrays import Index
from lmemtest.errors import DataError

# -------------------------------------------------------------------------------------------------- the order of levels


T = TypeVar("T")
# A decimal point belongs to a number, as in lr0.25, but not to a version such as 1.10.2.
_NUMBER = re.compile(r"((?<![0-9.])[0-9]+\.[0-9]+(?![0-9.])|[0-9]+)")
_DIGITS = str.maketrans("123456789", "0" * 9)


def natural_key(text: str) -> tuple[tuple[Any, ...], str]:
    """What text is sorted by: its numbers as numbers, the rest letter by letter.

    Examples
    --------
    >>> sorted(["game10", "game2", "game02", "lr0.5", "lr0.25", "game"], key=natural_key)
    ['game', 'game02', 'game2', 'game10', 'lr0.25', 'lr0.5']
    """
    parts: list[Any] = list(_NUMBER.split(text))
    parts[1::2] = [_size(number) for number in parts[1::2]]
    return tuple(parts), text  # 02 before 2, so that no two levels share a place


def _in_plain_order(texts: list[str]) -> bool:
    """Whether natural order is that of the letters: texts that differ in digits alone, such as task01 and task10."""
    return len({text.translate(_DIGITS) for text in texts}) == 1


def _size(digits: str) -> tuple[int, str]:
    """Digits of any length as a sortable number: by the length of the whole part, then digit by digit."""
    whole, _, fraction = digits.partition(".")
    whole = whole.lstrip("0")
    return len(whole), f"{whole}.{fraction.rstrip('0')}"


def _values(texts: list[str]) -> list[tuple[float, str]] | None:
    """The texts by value, if each of them is a number."""
    try:
        values = [float(text) for text in texts if "_" not in text]
    except ValueError:
        return None
    finite = len(values) == len(texts) and all(map(math.isfinite, values))
    return list(zip(values, texts, strict=True)) if finite else None


def level_order(levels: Iterable[Any]) -> Index:
    """The places of distinct levels in their order.

    Parameters
    ----------
    levels : iterable
        Of one type; text in natural order, everything else by value.

    Raises
    ------
    TypeError
        If the levels cannot be compared.

    Examples
    --------
    >>> level_order(["a10", "a2"]), level_order([10, 2])
    (array([1, 0]), array([1, 0]))
    """
    listed = list(levels)
    keys: list[Any] = listed
    if all(isinstance(level, str) for level in listed):
        keys = _values(listed) or (listed if _in_plain_order(listed) else [natural_key(level) for level in listed])
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.intp)


def in_order(levels: Iterable[T]) -> list[T]:
    """Distinct levels in their order.

    Examples
    --------
    >>> in_order({"task10", "task9"})
    ['task9', 'task10']
    """
    listed = list(levels)
    return [listed[i] for i in level_order(listed)]


# ---------------------------------------------------------------------------------------------------------------- codes


EXAMPLES = 3  # bad rows that an error shows
MAX_KEY = 2**62  # keys are int64


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Keys:
    """Combinations of some columns, as of groups of rows: per column the level of each, and the levels."""

    names: tuple[str, ...]
    codes: tuple[np.ndarray, ...]
    levels: tuple[Any, ...]
    size: int

    @classmethod
    def of(cls, columns: Sequence[pd.Series[Any]], n_rows: int) -> Keys:
        """One for each row of a table, levels in their order."""
        coded = [column_codes(column) for column in columns]
        return cls(
            names=tuple(str(column.name) for column in columns),
            codes=tuple(codes for codes, _ in coded),
            levels=tuple(levels for _, levels in coded),
            size=n_rows,
        )

    @classmethod
    def product(cls, values: Mapping[str, Sequence[Any]]) -> Keys:
        """All combinations of some values, the last name running fastest."""
        sizes = [len(v) for v in values.values()]
        total = inner = math.prod(sizes)
        codes = []
        for size in sizes:
            inner //= size
            codes.append(np.tile(np.repeat(np.arange(size), inner), total // (inner * size)))
        levels = tuple(pd.Series(list(v)).array for v in values.values())
        return cls(names=tuple(values), codes=tuple(codes), levels=levels, size=total)

    def only(self, names: Sequence[str]) -> Keys:
        """Some of the columns of every group."""
        kept = [self.names.index(name) for name in names]
        codes, levels = tuple(self.codes[i] for i in kept), tuple(self.levels[i] for i in kept)
        return Keys(names=tuple(names), codes=codes, levels=levels, size=self.size)

    def take(self, rows: np.ndarray) -> Keys:
        """Some of the groups."""
        return replace(self, codes=tuple(codes[rows] for codes in self.codes), size=np.arange(self.size)[rows].size)

    def part(self, rows: np.ndarray) -> Keys:
        """Some of the groups, with the levels that are left."""
        some, codes, levels = self.take(rows), [], []
        for code, level in zip(some.codes, self.levels, strict=True):
            used = np.bincount(code, minlength=len(level)) > 0
            if used.all():
                codes.append(code)
                levels.append(level)
                continue
            left = level[used]
            codes.append((np.cumsum(used) - 1)[code])
            levels.append(left.remove_unused_categories() if isinstance(left, pd.Categorical) else left)
        return Keys(names=self.names, codes=tuple(codes), levels=tuple(levels), size=some.size)

    def numbered(self) -> np.ndarray:
        """The number of every combination among those that occur, in their order."""
        return combine_codes([(c, len(levels)) for c, levels in zip(self.codes, self.levels, strict=True)], self.size)

    def values(self, name: str) -> Any:
        """The value of a column in every group."""
        at = self.names.index(name)
        return self.levels[at].take(self.codes[at])

    def frame(self) -> pd.DataFrame:
        """One row per group, with the values of the columns in their own dtypes."""
        columns = [levels.take(codes) for codes, levels in zip(self.codes, self.levels, strict=True)]
        frame = pd.DataFrame(dict(enumerate(columns)), index=pd.RangeIndex(self.size))
        frame.columns = pd.Index(self.names, dtype=None if self.names else object)
        return frame


def group_codes(columns: Sequence[pd.Series[Any]], n_rows: int) -> tuple[np.ndarray, Keys]:
    """The group of every row, groups numbered in sorted order, and the key of every group."""
    rows = Keys.of(columns, n_rows)
    index = rows.numbered()
    return index, rows.take(first_rows(index, int(index.max(initial=-1)) + 1))


def group_numbers(frame: pd.DataFrame, columns: Sequence[str]) -> np.ndarray:
    """The group of every row, groups numbered in the order of their levels; one group without columns."""
    return group_codes([frame[name] for name in columns], len(frame))[0]


def group_means(frame: pd.DataFrame, columns: Sequence[str], value: str) -> tuple[pd.DataFrame, np.ndarray]:
    """One row per group, in the order of the levels, with the mean of a column; and the number of rows of each."""
    index, keys = group_codes([frame[name] for name in columns], len(frame))
    n = np.bincount(index, minlength=keys.size)
    means = np.bincount(index, weights=frame[value].to_numpy(dtype=float), minlength=keys.size) / n
    return keys.frame().assign(**{value: means}), n


def by_levels(frame: pd.DataFrame, columns: Sequence[str]) -> list[pd.DataFrame]:
    """The parts of a frame that agree in some columns, in the order of their levels."""
    return [frame.iloc[rows] for rows in rows_of_each(group_numbers(frame, columns))]


def rows_of_each(codes: np.ndarray, n: int = 0) -> list[np.ndarray]:
    """The rows of each of the codes 0, 1, ..., of ``n`` at least, in the order of the rows."""
    ends = np.cumsum(np.bincount(codes, minlength=n))
    return np.split(np.argsort(codes, kind="stable"), ends[:-1])


def combine_codes(coded: Sequence[tuple[np.ndarray, int]], n_rows: int) -> np.ndarray:
    """One code for several, given with their numbers of levels; it counts the combinations that occur, in order."""
    key = np.zeros(n_rows, dtype=np.int64)
    size = 1
    for codes, levels in coded:
        if size * levels >= MAX_KEY:  # renumber what is there so far: at most n_rows values
            key, seen = _dense(key, size)
            size = len(seen)
        key = key * levels + codes
        size *= levels
    return _dense(key, size)[0]


def first_rows(index: np.ndarray, size: int) -> np.ndarray:
    """The first row of every group."""
    first = np.empty(size, dtype=np.intp)
    first[index[::-1]] = np.arange(len(index) - 1, -1, -1)
    return first


def _dense(key: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Renumber integer keys below `size` as 0, 1, ... in the same order; and the keys that occur."""
    if size <= 4 * len(key) + 1024:  # a table of all keys is cheaper than sorting
        present = np.zeros(size, dtype=bool)
        present[key] = True
        return (np.cumsum(present) - 1)[key], np.flatnonzero(present)
    codes, seen = pd.factorize(key)
    order = np.argsort(seen, kind="stable")
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    return rank[codes], seen[order]


def column_codes(column: pd.Series[Any]) -> tuple[np.ndarray, Any]:
    """Codes and levels of a column; levels sorted, or in the order of the categories, all of them used."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        codes = column.cat.codes.to_numpy().astype(np.int64)
        refuse_missing(column, int((codes < 0).sum()))
        used = np.bincount(codes, minlength=len(column.cat.categories)) > 0
        levels = pd.Categorical.from_codes(
            np.arange(int(used.sum())),
            categories=column.cat.categories[used],
            ordered=bool(column.cat.ordered),
        )
        return (np.cumsum(used) - 1)[codes], levels
    try:
        codes, levels = pd.factorize(column)  # type: ignore[assignment]
    except TypeError:  # lists, dicts
        raise DataError(
            f"The column {str(column.name)!r} holds values such as {column.iloc[0]!r}, which cannot be "
            f"compared. Turn them into strings or numbers."
        ) from None
    refuse_missing(column, int((codes < 0).sum()))
    if levels.dtype == object:
        for level in levels:
            if isinstance(level, str):
                refuse_half_characters(str(column.name), level)
    try:
        order = _order(levels)
    except TypeError:
        kinds = " and ".join(sorted({type(level).__name__ for level in levels}))
        raise DataError(
            f"The column {str(column.name)!r} mixes values of type {kinds}. Give all values one type, "
            f"for example with df[{str(column.name)!r}].astype(str)."
        ) from None
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return rank[codes], levels.take(order)


def refuse_half_characters(column: str, value: str) -> None:
    """Half of a surrogate pair is no text: no file, database or page can hold it."""
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise DataError(
            f"The column {column!r} holds {value!r}, which is no valid text (half of a surrogate pair at position "
            f"{error.start}). It was probably read with a wrong encoding: read it again, or replace it with "
            f"df[{column!r}].str.encode('utf-8', 'replace').str.decode('utf-8')."
        ) from None


def _order(levels: Any) -> np.ndarray:
    """The order of distinct levels: numbers and dates at the speed of arrays, text as people count."""
    if pd.api.types.is_numeric_dtype(levels.dtype) or levels.dtype.kind in "mM":
        return np.asarray(levels.argsort(kind="stable"))
    return level_order(levels.tolist())


def refuse_missing(column: pd.Series[Any], count: int) -> None:
    if count:
        rows = [str(row) for row in np.flatnonzero(column.isna().to_numpy())[:EXAMPLES]]
        raise missing_values_error(str(column.name), count, rows)


def missing_values_error(name: str, count: int, rows: Sequence[str] = ()) -> DataError:
    """The error for a column that must not have missing values but has."""
    where = f" (first at row {rows[0]}, counted from 0)" if rows else ""
    return DataError(
        f"The column {name!r} has {count:,} missing value{'s' * (count > 1)}{where}. Every run needs one: "
        f"fill them in, drop these rows, or leave the column out."
    )


def occurring(key: NDArray[Any], size: int) -> NDArray[Any]:
    """The keys below `size` that occur, each once, in any order."""
    if size > 4 * len(key) + 1024:
        return pd.unique(key)
    present = np.zeros(size, dtype=bool)
    present[key] = True
    return np.flatnonzero(present)


def starts_of(code: NDArray[Any]) -> tuple[Index, Index]:
    """Where each stretch of equal codes begins, and its length.

    >>> [part.tolist() for part in starts_of(np.array([0, 0, 3]))]
    [[0, 2], [2, 1]]
    """
    starts = np.flatnonzero(np.diff(code, prepend=-1))
    return starts, np.diff(starts, append=len(code))
