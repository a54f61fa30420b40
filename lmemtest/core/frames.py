"""Where a table is asked: its rows, where they are in memory, or a group-by that runs where it lives.

What comes back are columns and arrays; of what is not in memory, only the cells.

Every query is an expression of Narwhals, the same for all backends, and every query is run by `collected`. What one of
them does otherwise is said here and nowhere else.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np
import pandas as pd

from lmemtest.core.caller import advice, named
from lmemtest.core.codes import EXAMPLES, column_codes, missing_values_error
from lmemtest.core.validate import as_frame
from lmemtest.core.words import listed
from lmemtest.errors import DataError, LmemtestError

if TYPE_CHECKING:
    AnyFrame = nw.DataFrame[Any] | nw.LazyFrame[Any]


MOST_CELLS = 5_000_000  # of one query: two gigabytes with their keys
# Mean over standard deviation of a cell from which its sum of squares is taken about one of its scores: an updated
# variance loses the logarithm of this ratio of its 16 digits, one from a sum of squares loses twice as many.
UPDATED, FROM_SQUARES = 1e4, 1e2
_UPDATES = (nw.Implementation.POLARS, nw.Implementation.DUCKDB, nw.Implementation.PYSPARK)


class NoRows(DataError):
    """There is nothing to group."""


class TooManyCells(DataError):
    """A group-by has more groups than are held in memory."""


def collected(frame: AnyFrame) -> nw.DataFrame[Any]:
    """The result of a query; what stops it in its backend is an error that says what was going on."""
    if isinstance(frame, nw.DataFrame):
        return frame
    try:
        return frame.collect()
    except (LmemtestError, MemoryError, nw.exceptions.ColumnNotFoundError):
        raise
    except Exception as error:
        raise DataError(_failed(frame.implementation.name.lower(), error)) from error


@contextmanager
def answering(table: Any) -> Iterator[None]:
    """What the backend of a table raises while a query is put together is an error that says what was going on."""
    try:
        yield
    except (LmemtestError, MemoryError, nw.exceptions.NarwhalsError):
        raise
    except Exception as error:
        if type(error).__module__ == "builtins" and not isinstance(error, OSError):
            raise
        narwhal = isinstance(table, (nw.DataFrame, nw.LazyFrame))
        backend = table.implementation.name.lower() if narwhal else type(table).__module__.split(".")[0].strip("_")
        raise DataError(_failed(backend, error)) from error


def _failed(backend: str, error: Exception) -> str:
    kind, text = type(error).__name__, str(error).strip()
    words = f"{kind} {text}".lower()
    if "interrupt" in words or "cancel" in words:
        advice = "It was interrupted and nothing of it was kept; ask again."
    elif "no space left" in words or "disk" in words or "max_temp_directory_size" in words:
        advice = "The disk for intermediate results is full: free some space, or give the backend another folder."
    elif "memory" in words or "killed" in words:
        advice = "Give the backend more memory or fewer rows, for instance with runs.filter(...)."
    elif "no such file" in words or "no files found" in words or "not exist" in words:
        advice = "Are the files still where they were when the table was opened?"
        if "table" in words and "file" not in words:
            advice = "Was it dropped or renamed after it was opened?"
    elif "closed" in words:
        advice = "Open the connection again, and make the runs of its table."
    else:
        advice = "Does the table itself answer, for instance the number of its rows?"
    first = text.splitlines()[0][:300] if text else "no message"
    return f"The query of the {backend} table failed with {kind}: {first.rstrip('.')}. {advice}"


@contextmanager
def supported(what: str, frame: AnyFrame) -> Iterator[None]:
    """What a backend has no expression for is an error that names another way."""
    try:
        yield
    except (NotImplementedError, nw.exceptions.InvalidOperationError) as error:
        raise DataError(
            f"{what} needs an order within groups, which {frame.implementation.name.lower()} tables do not offer. "
            f"Do it before, where the table is made, or with a table that has it: polars, duckdb, pyspark, or pandas "
            "where the runs fit into memory (runs.to_frame())."
        ) from error


def as_pandas(frame: AnyFrame) -> pd.DataFrame:
    """The result of a query as pandas, with the categories of an Enum column in their declared order."""
    schema = frame.collect_schema()  # of the query: collecting may forget the categories of an Enum
    if isinstance(frame, nw.LazyFrame):  # few rows: plain text, as Arrow before 16 cannot hand on small codes
        coded = [name for name, dtype in schema.items() if isinstance(dtype, (nw.Enum, nw.Categorical))]
        frame = frame.with_columns(nw.col(name).cast(nw.String) for name in coded) if coded else frame
    out = collected(frame).to_pandas()
    for name, dtype in schema.items():
        column = out[name]
        if isinstance(dtype, nw.Enum):
            out[name] = pd.Categorical(column.astype(object), categories=list(dtype.categories))
        elif isinstance(column.dtype, pd.CategoricalDtype) and not column.cat.ordered:
            # a dictionary-encoded column lists values as they came: no order was declared
            out[name] = column.astype(column.cat.categories.dtype)
    return out


def distinct_rows(table: AnyFrame, columns: Sequence[str]) -> pd.DataFrame:
    """The combinations of some columns that occur, in any order; a group-by, as `unique` sorts on some backends."""
    with answering(table):
        distinct = table.select(*columns).group_by(*columns).agg(nw.len().alias("".join(columns) + "#"))
    return as_pandas(distinct)[[*columns]]


def distinct_values(table: AnyFrame, column: str) -> tuple[Any, ...]:
    """The values of a column that occur, in the order of levels; missing values left out."""
    if table.implementation.is_pandas() and isinstance(table, nw.DataFrame):
        values = table.to_native()[column]
    else:
        values = distinct_rows(table, [column])[column]
    _, levels = column_codes(values.dropna())
    return tuple(pd.Series(levels).tolist())


def in_memory(
    table: AnyFrame, keys: Sequence[str], score: str, *, every: bool
) -> tuple[list[pd.Series[Any]], np.ndarray] | None:
    """The rows of a table, some of its columns and its scores; None where they stay elsewhere.

    That is of a lazy table, unless `every` single score is needed. What is in memory goes to pandas column by column:
    where most rows are cells, grouping by the codes of columns takes a fifth of the time of polars' group-by and a
    tenth of Arrow's.
    """
    if isinstance(table, nw.LazyFrame):
        if not every:
            return None
        rows = int(collected(table.select(nw.len().alias("n"))).rows()[0][0])
        if rows > MOST_CELLS:  # the mean of logarithms is no logarithm
            raise DataError(
                f"A function of the score needs every single {score!r}, and the {rows:,} rows of this lazy table are "
                "too many to read into memory. Make it a column of the table and name that: for the logarithm with "
                "runs.normalize('log')."
            )
    if isinstance(table, nw.DataFrame) and table.implementation.is_pandas():
        frame: pd.DataFrame = table.to_native()
    else:
        frame = as_pandas(table.select(*dict.fromkeys([*keys, score])))
    if not len(frame):
        raise DataError("The table has no rows.")
    return [frame[name] for name in keys], as_float(frame[score])


def unpivoted(frame: Any, on: list[str], index: list[str], variable: str, value: str) -> Any:
    """A table with a column for each of several as one with a row for each of them, and two new columns.

    What DuckDB unpivots is sought in the default connection, and the table may be of another one.
    """
    if not frame.implementation.is_duckdb():
        return frame.unpivot(on=on, index=index, variable_name=variable, value_name=value)
    return nw.concat([frame.select(*index, nw.lit(name).alias(variable), nw.col(name).alias(value)) for name in on])


def cell_sums(
    table: nw.LazyFrame[Any], keys: Sequence[str], score: str
) -> tuple[list[pd.Series[Any]], dict[str, np.ndarray]]:
    """The cells of a table, in any order: their keys, and n, valid, mean, above, ss, low and high as `Groups` has them.

    Sums of squares are about the mean of the cell; where its scores agree in so many digits that the backend's variance
    has lost some, it is asked once more, for the scores minus the lowest one of their cell.
    """
    # Internal names: those of the data may clash with ours, or with what a backend can quote.
    names = [f"key{i}" for i in range(len(keys))] or ["key0"]
    columns = [nw.col(key).alias(name) for key, name in zip(keys, names, strict=False)] or [nw.lit(0).alias("key0")]
    y = nw.col(score).cast(nw.Float64)
    with answering(table):  # DuckDB 1.3 looks the table up here already
        scores = table.select(*columns, y.alias("y"))
    scores = scores.with_columns(nw.when(nw.col("y").is_finite()).then(nw.col("y")).alias("y"))

    out = as_pandas(_grouped(scores, names))
    if len(out) > MOST_CELLS:
        raise TooManyCells(
            f"The columns {listed(map(repr, keys))} have more than {MOST_CELLS:,} combinations, and each would be a "
            "cell in memory. Ask about fewer columns, or about fewer rows: runs.filter(budget=[...]) or "
            "runs.at_budgets([...]) keep the scores at some budgets."
        )
    sums = {name: as_float(out[name]) for name in ("n", "valid", "mean", "low", "high")}
    if not sums["n"].sum():  # grouped by no column, a table without rows has one cell
        raise NoRows("The table has no rows.")
    sums["above"] = sums["mean"] - sums["low"]
    sums["ss"] = as_float(out["variance"]) * sums["valid"]
    limit = UPDATED if table.implementation in _UPDATES else FROM_SQUARES
    with np.errstate(invalid="ignore"):
        digits_lost = np.abs(sums["mean"]) * np.sqrt(sums["valid"]) > limit * np.sqrt(np.maximum(sums["ss"], 0.0))
    if np.any(digits_lost & (sums["low"] < sums["high"])):
        centred = scores.join(_lowest(scores, out, names), on=names, how="left").with_columns(
            y=nw.col("y") - nw.col("lowest")
        )
        out = as_pandas(_grouped(centred, names, [nw.col("lowest").min().alias("lowest")]))
        sums = {name: as_float(out[name]) for name in ("n", "valid", "high")}
        sums |= {"above": as_float(out["mean"]), "low": as_float(out["lowest"])}
        sums |= {"mean": sums["low"] + sums["above"], "high": sums["low"] + sums["high"]}
        sums["ss"] = as_float(out["variance"]) * sums["valid"]
    constant = sums["low"] == sums["high"]
    sums["mean"] = np.where(constant, sums["low"], sums["mean"])
    sums["above"] = np.where(constant, 0.0, sums["above"])
    sums["ss"] = np.where(constant | (sums["valid"] == 0), 0.0, sums["ss"])
    by = [out[name].rename(key) for name, key in zip(names, keys, strict=False)]
    for column in by:
        if missing := int(sums["n"][column.isna().to_numpy()].sum()):
            raise missing_values_error(str(column.name), missing)
    return by, sums


def _lowest(scores: nw.LazyFrame[Any], cells: pd.DataFrame, names: list[str]) -> nw.LazyFrame[Any]:
    """The lowest score of each cell, where the scores are."""
    if scores.implementation.is_dask():  # it cannot plan to group a table again after joining it with its own groups
        import dask.dataframe as dd

        lowest = cells[[*names, "low"]].set_axis([*names, "lowest"], axis=1)
        return as_frame(dd.from_pandas(lowest, npartitions=1)).lazy()
    return scores.group_by(*names).agg(nw.col("y").min().alias("lowest"))


def _grouped(frame: nw.LazyFrame[Any], names: Sequence[str], extra: Sequence[nw.Expr] = ()) -> nw.LazyFrame[Any]:
    y = nw.col("y")
    cells = frame.group_by(*names).agg(
        nw.len().alias("n"),
        y.count().alias("valid"),
        y.mean().alias("mean"),
        y.var(ddof=0).alias("variance"),
        y.min().alias("low"),
        y.max().alias("high"),
        *extra,
    )
    return cells.head(MOST_CELLS + 1)


def as_float(column: pd.Series[Any]) -> np.ndarray:
    """A column of numbers as doubles, NaN where there is none."""
    if column.dtype == object:  # a database's exact sums come as Decimal, missing values as None
        column = pd.to_numeric(column)
    return column.to_numpy(dtype=np.float64, na_value=np.nan)


def first_bad_rows(table: AnyFrame, score: str) -> str:
    """Where a few scores are missing or infinite, for a message."""
    if table.implementation.is_pandas():
        scores = as_float(nw.to_native(table)[score])
        rows = np.flatnonzero(~np.isfinite(scores))[:EXAMPLES]
        return "first at row " + ", ".join(f"{row} ({scores[row]})" for row in rows) + ", counted from 0"
    y = nw.col(score)
    bad = table.filter(~y.cast(nw.Float64).is_finite().fill_null(False)).head(EXAMPLES)
    bad_rows = collected(bad).rows(named=True)
    texts = [", ".join(f"{name}: {value}" for name, value in list(row.items())[:6]) for row in bad_rows]
    return "for example " + "; ".join(f"{{{row}}}" for row in texts)


# --------------------------------------------------------------------------------------------------- columns of numbers


def column_type(table: nw.DataFrame[Any] | nw.LazyFrame[Any], name: str) -> Any:
    """The type of one column; those of all others would be found with it in a schema."""
    return table.collect_schema()[name] if isinstance(table, nw.LazyFrame) else table.get_column(name).dtype


def check_numeric(table: nw.DataFrame[Any] | nw.LazyFrame[Any], name: str, *, argument: str) -> None:
    """Refuse a column that is not of real numbers, with its type and one of its values."""
    dtype = column_type(table, name)
    if dtype.is_numeric():
        return
    example = example_value(table, name)
    values = _entries(table, name, example)
    words = [entry for entry, (is_number, _) in values.items() if not is_number]
    shown = repr(example)
    if isinstance(example, str) or (words and _reads_as_number(example)):
        shown, then = _advice_on_text(name, values, words)
    elif dtype == nw.Duration:
        then = f"It holds durations: convert them to seconds, for pandas with df[{name!r}].dt.total_seconds()."
    elif dtype == nw.Boolean:
        then = advice("answers", column=name)
    elif example is None:
        then = "All its values are missing: choose another column."
    elif isinstance(example, complex):
        then = "Choose its real part or its absolute value."
    elif not words:
        then = f"Its values are numbers: convert it first, for pandas with df[{name!r}].astype(float)."
    else:
        then = "Choose a numeric column."
    raise DataError(
        f"{named(argument)} must be a numeric column, but {name!r} has type {_dtype_name(table, name)} (for example "
        f"{shown}). {then}"
    )


def _entries(table: nw.DataFrame[Any] | nw.LazyFrame[Any], name: str, example: Any) -> dict[str, tuple[bool, int]]:
    """The entries of a column as code writes them: whether they read as a number, and the number of rows.

    Of a lazy table only `example`, the one that was seen.
    """
    values = table.get_column(name).drop_nulls().to_list() if isinstance(table, nw.DataFrame) else [example]
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
    failed = advice("value", name="failed", value="missing")
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
        return f"{doubt}: " + advice("decimal")
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
