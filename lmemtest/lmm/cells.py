"""Rows to cells: the sufficient statistics of a Gaussian mixed model, by one group-by.

A model sees the scores y only through the cross-products of [Z X y].  Rows that agree in every column that
the formula uses form one cell c, and

    sum over rows of (y - f)^2  =  sum over cells of  ss_c + n_c (mean_c - f_c)^2

for any f that is constant within cells, so count, mean and within-cell sum of squares lose nothing.
The group-by runs where the data lives; only cells come to pandas.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
import pandas as pd

from lmemtest.core.caller import in_words_of
from lmemtest.core.frames import MOST_CELLS, as_float, as_pandas, cell_sums, collected, distinct_rows
from lmemtest.core.levels import level_order
from lmemtest.core.validate import check_magnitude
from lmemtest.core.words import format_number, listed
from lmemtest.errors import DataError

if TYPE_CHECKING:
    pass

__all__ = ["Cells", "aggregate", "cells_of"]

Transform = Callable[[np.ndarray], np.ndarray]

EXAMPLES = 3  # bad rows that an error shows
MAX_KEY = 2**62  # keys are int64


@dataclass(frozen=True, kw_only=True, eq=False)
class Cells:
    """The sufficient statistics of a table of scores, one entry per distinct combination of columns.

    Attributes
    ----------
    columns : Keys or pandas.DataFrame
        The values of the columns that define the cells, sorted by them in this order; categoricals by their categories.
    n, weight, mean, ss : (n_cells,) float64
        Rows of each cell; the prior weight of each row, 1 where none is given; the mean score; the unweighted sum of
        squares about it, exactly 0 for a cell with one distinct score.
    n_rows, n_dropped : int
        Rows of the table, and rows left out: 0, as missing scores are refused.
    """

    columns: Keys | pd.DataFrame
    n: np.ndarray
    weight: np.ndarray
    mean: np.ndarray
    ss: np.ndarray
    n_rows: int
    n_dropped: int = 0

    @cached_property
    def frame(self) -> pd.DataFrame:
        """The columns, in their own dtypes."""
        return self.columns.frame() if isinstance(self.columns, Keys) else self.columns

    @property
    def names(self) -> tuple[str, ...]:
        """Of the columns."""
        return self.columns.names if isinstance(self.columns, Keys) else tuple(self.columns.columns)

    def groups(self, names: Sequence[str]) -> np.ndarray:
        """The group of every cell by some of the columns, groups numbered in the order of their levels."""
        if not isinstance(self.columns, Keys):
            return group_numbers(self.columns, names)
        keys = self.columns.only(names)
        return combine_codes([(c, len(levels)) for c, levels in zip(keys.codes, keys.levels, strict=True)], keys.size)

    def __repr__(self) -> str:
        return f"Cells({len(self.n):,} cells of {', '.join(self.names)}; {self.n_rows:,} rows)"

    def to_frame(self) -> pd.DataFrame:
        """The columns of the cells with ``n``, ``weight``, ``mean`` and ``ss`` beside them."""
        numbers = {"n": self.n, "weight": self.weight, "mean": self.mean, "ss": self.ss}
        return pd.concat([self.frame, pd.DataFrame(numbers, index=self.frame.index)], axis=1)


def cells_of(groups: Groups, table: nw.DataFrame[Any] | nw.LazyFrame[Any], score: str) -> Cells:
    """Groups as cells of unit weight; scores that are missing or infinite are refused."""
    refuse_scores(groups, table, score)
    return Cells(
        columns=groups.keys,
        n=groups.n,
        weight=np.ones(groups.keys.size),
        mean=groups.mean,
        ss=groups.ss,
        n_rows=int(groups.n.sum()),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Groups:
    """What one group-by returns: cells that may hold scores that are not finite.

    ``n`` counts all rows, ``n_bad`` those whose score is missing or infinite;
    ``mean``, ``ss``, ``low`` and ``high`` are of the others (not finite where there are none; ``ss`` 0). ``above`` is
    the mean minus the lowest score, with the digits that the mean of 1e6 and a little more has no place for.
    """

    keys: Keys
    n: np.ndarray
    n_bad: np.ndarray
    mean: np.ndarray
    above: np.ndarray
    ss: np.ndarray
    low: np.ndarray
    high: np.ndarray


def aggregate(
    table: nw.DataFrame[Any] | nw.LazyFrame[Any],
    keys: Sequence[str],
    score: str,
    *,
    transform: Transform | None = None,
) -> Groups:
    """Group a checked table by `keys` and summarise `score`; missing keys are refused, bad scores counted."""
    if transform is not None and isinstance(table, nw.LazyFrame):
        _require_room(table, score)
    # What is in memory goes to pandas column by column: where most rows are cells, grouping by the codes of
    # columns takes a fifth of the time of polars' group-by and a tenth of Arrow's.
    if not table.implementation.is_pandas() and (transform is not None or isinstance(table, nw.DataFrame)):
        table = nw.from_native(as_pandas(table.select(*dict.fromkeys([*keys, score]))))
    if table.implementation.is_pandas() and isinstance(table, nw.DataFrame):
        native: pd.DataFrame = table.to_native()
        scores = as_float(native[score])
        if not len(scores):
            raise DataError("The table has no rows.")
        if transform is not None:
            scores = transformed(scores, transform)
        check_magnitude(scores)
        return _aggregate_pandas(native, keys, scores)
    return _aggregate_lazily(table.lazy(), keys, score)


# ---------------------------------------------------------------------------------------------- in pandas


def _aggregate_pandas(native: pd.DataFrame, names: Sequence[str], scores: np.ndarray) -> Groups:
    index, keys = group_codes([native[name] for name in names], len(scores))
    k = keys.size
    counts = np.bincount(index, minlength=k).astype(float)
    good = np.isfinite(scores)
    if k == len(scores):  # every row is a cell
        y = np.where(good, scores, np.nan)[first_rows(index, k)]
        bad = np.isnan(y).astype(float)
        return Groups(keys=keys, n=counts, n_bad=bad, mean=y, above=np.zeros(k), ss=np.zeros(k), low=y, high=y)
    if good.all():
        bad, valid = np.zeros(k), counts
    else:
        bad = np.bincount(index[~good], minlength=k).astype(float)
        valid = counts - bad
        index, scores = index[good], scores[good]
    # Deviations from one score of the cell are exact where scores agree in their leading digits, and zero
    # where they agree in all: the offset 1e8 of a score of 1e8 + noise never meets a square.
    shift = np.full(k, np.nan)
    shift[index[::-1]] = scores[::-1]
    deviation = scores - shift[index]
    with np.errstate(invalid="ignore"):  # cells without a finite score
        centre = np.bincount(index, weights=deviation, minlength=k) / valid
    residual = deviation - centre[index]
    ss = np.bincount(index, weights=residual * residual, minlength=k)
    low, high = np.full(k, np.inf), np.full(k, -np.inf)
    np.minimum.at(low, index, scores)
    np.maximum.at(high, index, scores)
    above = (shift - low) + centre
    return Groups(keys=keys, n=counts, n_bad=bad, mean=shift + centre, above=above, ss=ss, low=low, high=high)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Keys:
    """The distinct combinations of some columns, sorted: per column the level of each group, and the levels."""

    names: tuple[str, ...]
    codes: tuple[np.ndarray, ...]
    levels: tuple[Any, ...]
    size: int

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

    def frame(self) -> pd.DataFrame:
        """One row per group, with the values of the columns in their own dtypes."""
        columns = [levels.take(codes) for codes, levels in zip(self.codes, self.levels, strict=True)]
        frame = pd.DataFrame(dict(enumerate(columns)), index=pd.RangeIndex(self.size))
        frame.columns = pd.Index(self.names, dtype=None if self.names else object)
        return frame


def group_codes(columns: Sequence[pd.Series[Any]], n_rows: int) -> tuple[np.ndarray, Keys]:
    """The group of every row, groups numbered in sorted order, and the key of every group."""
    coded = [column_codes(column) for column in columns]
    index = combine_codes([(codes, len(levels)) for codes, levels in coded], n_rows)
    size = int(index.max()) + 1 if n_rows else 0
    first = first_rows(index, size)
    keys = Keys(
        names=tuple(str(column.name) for column in columns),
        codes=tuple(codes[first] for codes, _ in coded),
        levels=tuple(levels for _, levels in coded),
        size=size,
    )
    return index, keys


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
    index = group_numbers(frame, columns)
    order = np.argsort(index, kind="stable")
    return [frame.iloc[rows] for rows in np.split(order, np.cumsum(np.bincount(index))[:-1])]


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
        _refuse_missing(column, int((codes < 0).sum()))
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
    _refuse_missing(column, int((codes < 0).sum()))
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


# ----------------------------------------------------------------------------------------------- elsewhere


def _aggregate_lazily(table: nw.LazyFrame[Any], keys: Sequence[str], score: str) -> Groups:
    found, sums = cell_sums(table, keys, score)
    n = sums["n"]
    for key in keys:
        missing = int(n[found[key].isna().to_numpy()].sum())
        if missing:
            raise missing_values_error(key, missing)
    index, kept = group_codes([found[key] for key in keys], len(n))
    order = np.argsort(index, kind="stable")
    own = {name: values[order] for name, values in sums.items()}
    return Groups(keys=kept, n_bad=own["n"] - own.pop("valid"), **own)


def _require_room(table: nw.LazyFrame[Any], score: str) -> None:
    """Refuse to read a large lazy table for a function of its scores: the mean of logarithms is no logarithm."""
    rows = int(collected(table.select(nw.len().alias("n"))).rows()[0][0])
    if rows > MOST_CELLS:
        raise DataError(
            f"A function of the score needs every single {score!r}, and the {rows:,} rows of this lazy table are too "
            "many to read into memory. Make it a column of the table and name that: for the logarithm with "
            "runs.normalize('log')."
        )


def distinct_values(table: nw.DataFrame[Any] | nw.LazyFrame[Any], column: str) -> tuple[Any, ...]:
    """The values of a column that occur, in the order of levels; missing values left out."""
    if table.implementation.is_pandas() and isinstance(table, nw.DataFrame):
        values = table.to_native()[column]
    else:
        values = distinct_rows(table, [column])[column]
    _, levels = column_codes(values.dropna())
    return tuple(pd.Series(levels).tolist())


# -------------------------------------------------------------------------------------------------- checks


def check_numeric(table: nw.DataFrame[Any] | nw.LazyFrame[Any], name: str, *, argument: str) -> None:
    """Refuse a column that is not of real numbers, with its type and one of its values."""
    dtype = table.collect_schema()[name]
    if dtype.is_numeric():
        return
    found = example_value(table, name)
    values = _entries(table, name, found)
    words = [entry for entry, (is_number, _) in values.items() if not is_number]
    if isinstance(found, str) or (words and _reads_as_number(found)):
        shown, advice = _advice_on_text(name, values, words)
        raise DataError(_not_numeric(table, name, argument, shown, advice))
    if dtype == nw.Duration:
        advice = f"It holds durations: convert them to seconds, for pandas with df[{name!r}].dt.total_seconds()."
    elif dtype == nw.Boolean:
        advice = "If a share of successes is what you mean, convert it to the numbers 0 and 1."
    elif found is None:
        advice = "All its values are missing: choose another column."
    elif isinstance(found, complex):
        advice = "Choose its real part or its absolute value."
    elif not words:
        advice = f"Its values are numbers: convert it first, for pandas with df[{name!r}].astype(float)."
    else:
        advice = "Choose a numeric column."
    raise DataError(_not_numeric(table, name, argument, repr(found), advice))


def _not_numeric(table: nw.DataFrame[Any] | nw.LazyFrame[Any], name: str, argument: str, shown: str, then: str) -> str:
    return (
        f"{argument} must be a numeric column, but {name!r} has type {_dtype_name(table, name)} "
        f"(for example {shown}). {then}"
    )


def _entries(table: nw.DataFrame[Any] | nw.LazyFrame[Any], name: str, found: Any) -> dict[str, tuple[bool, int]]:
    """The entries of a column as code writes them: whether they read as a number, and the number of rows.

    Of a lazy table only `found`, the one that was seen.
    """
    values = table.get_column(name).drop_nulls().to_list() if isinstance(table, nw.DataFrame) else [found]
    out: dict[str, tuple[bool, int]] = {}
    for value in values:
        entry = repr(value)
        is_number, count = out.get(entry) or (_reads_as_number(value), 0)
        out[entry] = (is_number, count + 1)
    return out


def _advice_on_text(name: str, values: dict[str, tuple[bool, int]], words: list[str]) -> tuple[str, str]:
    """Numbers beside a few entries such as "failed", which turn the column to text: show one of these."""
    first = next(iter(values))
    written = _advice_on_writing([word[1:-1] for word in words])
    if written is not None and len(words) > len(values) / 2:
        return words[0], written
    if not words:
        return first, f"Its values are numbers: convert it first, for pandas with pd.to_numeric(df[{name!r}])."
    if len(words) > len(values) / 2:
        return first, "Choose a numeric column."
    rows = sum(values[word][1] for word in words)
    failed = in_words_of(python="failed='missing'", command_line="--failed missing")
    return words[0], (
        f"Most of its values are numbers, but {listed(words, most=3)} {'is' if len(words) == 1 else 'are'} not "
        f"({rows:,} row{'s' * (rows > 1)}). If these mark failed runs, make them missing, for pandas with "
        f"pd.to_numeric(df[{name!r}], errors='coerce'), and say {failed}; else correct them."
    )


_PERCENT = re.compile(r"[+-]?[0-9]+(?:[.,][0-9]+)?\s*%")
_GROUPED = re.compile(r"[+-]?[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?|[+-]?[0-9]{1,3}(?:\.[0-9]{3})+,[0-9]+")
_COMMA = re.compile(r"[+-]?[0-9]*,[0-9]+(?:[eE][+-]?[0-9]+)?")


def _advice_on_writing(words: list[str]) -> str | None:
    """What to do with numbers that are written for people."""
    if words and all(map(_PERCENT.fullmatch, words)):
        return "Its values are written in per cent: remove the sign % and convert them to numbers."
    if words and all(_GROUPED.fullmatch(word) and ("." in word or word.count(",") > 1) for word in words):
        return "Its values have signs between thousands: remove these, and write decimals with a point."
    if words and all(map(_COMMA.fullmatch, words)):
        doubt = "Its commas may be for decimals or for thousands" if all(map(_GROUPED.fullmatch, words)) else (
            "Its values have decimal commas")  # fmt: skip
        return f"{doubt}: " + in_words_of(
            python="read the file with decimal=',', or convert the column with str.replace(',', '.').",
            command_line="if they are decimal, give --decimal ,; otherwise remove them.",
        )
    return None


def example_value(table: nw.DataFrame[Any] | nw.LazyFrame[Any], name: str) -> Any:
    """One value of a column that is not null, or None."""
    head = table.select(nw.col(name)).filter(~nw.col(name).is_null()).head(1)
    rows = collected(head).rows()
    return rows[0][0] if rows else None


def _dtype_name(table: nw.DataFrame[Any] | nw.LazyFrame[Any], name: str) -> str:
    if table.implementation.is_pandas():
        return str(nw.to_native(table)[name].dtype)
    return str(table.collect_schema()[name])


def _reads_as_number(value: Any) -> bool:
    if isinstance(value, str) and "_" in value:  # 1_000 is a number to Python only
        return False
    try:
        float(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def transformed(scores: np.ndarray, transform: Transform) -> np.ndarray:
    """Apply `transform`; where it fails on a finite score, say on which."""
    with np.errstate(all="ignore"):
        out = np.asarray(transform(scores.copy()), dtype=np.float64)
    if out.shape != scores.shape:
        raise DataError(f"transform must return {len(scores)} values, one per row, got shape {out.shape}.")
    failed = np.isfinite(scores) & ~np.isfinite(out)
    if failed.any():
        values = ", ".join(format_number(value) for value in scores[failed][:EXAMPLES])
        name = getattr(transform, "__name__", "the transformation")
        raise DataError(
            f"{name} of the score is not finite in {int(failed.sum()):,} of {len(scores):,} rows "
            f"(for example for the scores {values}). Choose a transformation that is defined for all scores, "
            f"or shift the scores first."
        )
    return out


def _refuse_missing(column: pd.Series[Any], count: int) -> None:
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


def refuse_scores(groups: Groups, table: nw.DataFrame[Any] | nw.LazyFrame[Any], score: str) -> None:
    """Refuse groups with scores that are missing or infinite."""
    if not groups.n_bad.any():
        return
    count, total = int(groups.n_bad.sum()), int(groups.n.sum())
    where = _first_bad_rows(table, score)
    have = "has" if count == 1 else "have"
    raise DataError(
        f"{count:,} of {total:,} rows {have} a score that is missing or infinite ({score!r}; {where}). "
        f"A failed run is not a missing run: score it as the worst value that is possible{of_failures()}. Only if the "
        f"failure has nothing to do with the algorithm, drop such rows with "
        f"{in_words_of(python='runs.drop_missing()', command_line='--drop-missing')}."
    )


def of_failures() -> str:
    """How to say that runs failed, and what they count."""
    return ", for instance with " + in_words_of(
        python="Runs(..., failed='missing') (or 'nonfinite') and runs.score_failures('worst')",
        command_line="--failed missing (or nonfinite) and --score-failures worst",
    )


def _first_bad_rows(table: nw.DataFrame[Any] | nw.LazyFrame[Any], score: str) -> str:
    if table.implementation.is_pandas():
        scores = as_float(nw.to_native(table)[score])
        rows = np.flatnonzero(~np.isfinite(scores))[:EXAMPLES]
        return "first at row " + ", ".join(f"{row} ({scores[row]})" for row in rows) + ", counted from 0"
    y = nw.col(score)
    bad = table.filter(~y.cast(nw.Float64).is_finite().fill_null(False)).head(EXAMPLES)
    found = collected(bad).rows(named=True)
    shown = [", ".join(f"{name}: {value}" for name, value in list(row.items())[:6]) for row in found]
    return "for example " + "; ".join(f"{{{row}}}" for row in shown)


def refuse_weights(weight: np.ndarray, n: np.ndarray, name: str) -> None:
    bad = ~(np.isfinite(weight) & (weight > 0))
    if bad.any():
        values = ", ".join(f"{value:g}" for value in weight[bad][:EXAMPLES])
        raise DataError(
            f"weights must be positive and finite, but {name!r} is not in {int(n[bad].sum()):,} rows "
            f"(values {values}). A weight of zero means that the row is not used: drop such rows."
        )
