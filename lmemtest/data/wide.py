"""Wide tables, with a column per algorithm and a row per benchmark, as long ones with a row per score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw

from lmemtest._caller import in_words_of
from lmemtest._validate import as_frame, check_columns
from lmemtest.data.roles import role_of
from lmemtest.errors import ArgumentError, DataError
from lmemtest.words import format_level, listed

__all__ = ["lengthened"]

ROW = "row"  # the benchmark of a table whose rows have no names


def lengthened(
    frame: Any,
    *,
    score: str,
    algorithm: str,
    benchmark: str | None,
    others: dict[str, Any],
    described: dict[str, Sequence[str]],
    algorithms: Sequence[str] | None,
) -> tuple[nw.DataFrame[Any] | nw.LazyFrame[Any], str]:
    """The long table, and its column of benchmarks; the arguments are those of `Runs.from_wide`."""
    table = as_frame(_with_text_labels(frame), argument="frame")
    schema = table.collect_schema()
    names = list(schema.names())
    named = {"benchmark": benchmark, **others}
    for role, name in named.items():
        if name is not None:
            check_columns((name,), names, argument=role)
    for role, columns in described.items():
        check_columns(columns, names, argument=role)
    kept = [name for name in named.values() if name is not None]
    kept += [name for columns in described.values() for name in columns]
    if algorithms is not None:
        wanted = list(check_columns(algorithms, names, argument="algorithms"))
        clash = [name for name in wanted if name in kept]
        if clash:
            raise ArgumentError(f"algorithms names {clash[0]!r}, which has another role. Leave it out of one of them.")
    else:
        wanted = [name for name in names if name not in kept]
        text = [name for name in wanted if not schema[name].is_numeric()]
        if benchmark is None and len(text) == 1:
            benchmark = text[0]
            kept, wanted = [benchmark, *kept], [name for name in wanted if name != benchmark]
        elif text:
            raise DataError(_of_text(text, benchmark))
        _refuse_roles(wanted)
    if len(wanted) < 2:
        raise DataError(
            f"A wide table has a column of scores for each of two or more algorithms, but there "
            f"{'is one' if wanted else 'is none'}: {listed(wanted) or 'no column of numbers'}. "
            f"Columns: {listed(names)}."
        )
    table = table.select(*kept, *wanted)
    if benchmark is None:
        table, benchmark = _with_rows_named(frame, table, kept)
        kept = [benchmark, *kept]
    clash = [name for name in (score, algorithm) if name in kept]
    if clash:
        raise ArgumentError(
            f"The new column {clash[0]!r} would have the name of a column of the table. Give score= or algorithm= "
            "another name."
        )
    odd = [name for name in wanted if not schema[name].is_numeric()]
    if odd:
        raise DataError(
            f"The column {odd[0]!r} must hold numbers, the scores of an algorithm; it has {schema[odd[0]]}."
        )
    table = table.with_columns(nw.col(name).cast(nw.Float64) for name in wanted)
    return table.unpivot(on=wanted, index=kept, variable_name=algorithm, value_name=score), benchmark


def _with_text_labels(frame: Any) -> Any:
    """A pandas frame whose columns are numbers or other objects, with their texts as names."""
    if isinstance(frame, Mapping):
        labels = list(frame)
        if all(isinstance(label, str) for label in labels):
            return frame
        _refuse_doubled(labels)
        return {format_level(label): values for label, values in frame.items()}
    if not hasattr(frame, "set_axis"):  # names are texts everywhere but in pandas
        return frame
    labels = list(frame.columns)
    if all(isinstance(label, str) for label in labels):
        return frame
    _refuse_doubled(labels)
    return frame.set_axis([format_level(label) for label in labels], axis=1)


def _refuse_doubled(labels: list[Any]) -> None:
    texts = [format_level(label) for label in labels]
    doubled = [text for text in texts if texts.count(text) > 1]
    if doubled:
        raise DataError(f"frame has more than one column named {doubled[0]!r}; every name must occur once. Rename one.")


def _of_text(text: list[str], benchmark: str | None) -> str:
    if benchmark is None:
        return in_words_of(
            python=f"The columns {listed(map(repr, text))} hold no numbers. Say which names the rows: benchmark=...; "
            "name the others in metafeatures=[...], or the columns of scores in algorithms=[...].",
            command_line=f"The columns {listed(map(repr, text))} hold no numbers. Say which names the rows: "
            "--benchmark COLUMN; name the others with --metafeature COLUMN, or leave them out of the file.",
        )
    return in_words_of(
        python=f"The column {text[0]!r} holds no numbers, so it is no algorithm. Name it in metafeatures=[...], or "
        "name the columns of scores in algorithms=[...].",
        command_line=f"The column {text[0]!r} holds no numbers, so it is no algorithm. Name it with --metafeature, or "
        "leave it out of the file.",
    )


def _refuse_roles(wanted: list[str]) -> None:
    """A number that says which run this is would pass for the scores of an algorithm."""
    for name in wanted:
        said = role_of(name)
        if name.startswith("Unnamed:") or said in ("seed", "budget", "benchmark"):
            what = "looks like row numbers" if name.startswith("Unnamed:") else f"looks like the {said}"
            role = said or "benchmark"
            raise ArgumentError(
                f"The column {name!r} {what}, not like the scores of an algorithm. "
                + in_words_of(
                    python=f"Say what it is ({role}={name!r}), or name the columns of scores: algorithms=[...].",
                    command_line=f"Say what it is: --{role} {name!r}, or leave it out of the file.",
                )
            )


def _with_rows_named(frame: Any, table: Any, kept: list[str]) -> tuple[Any, str]:
    """Rows named by the index of a pandas frame, or else numbered."""
    index = getattr(frame, "index", None)
    if index is not None and getattr(index, "nlevels", 2) == 1 and not _is_counted(index):
        name = str(index.name) if index.name is not None else "benchmark"
        native = nw.to_native(table).assign(**{name: list(index)})
        return nw.from_native(native), name
    if isinstance(table, nw.LazyFrame):
        raise ArgumentError("The rows of a lazy wide table need names: give benchmark=.")
    if kept:
        raise ArgumentError("The rows need names of their benchmarks: " + in_words_of(
            python="give benchmark=.", command_line="give --benchmark COLUMN."))  # fmt: skip
    return table.with_row_index(ROW), ROW


def _is_counted(index: Any) -> bool:
    """Whether the index only numbers the rows."""
    return index.dtype.kind in "iu" and index.name is None
