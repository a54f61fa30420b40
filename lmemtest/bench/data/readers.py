"""Files to runs: parquet, feather, delimited text, spreadsheets and json, by their suffix."""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from lmemtest.bench.data.delimited import (
    MISSING_NUMBERS,
    check_layout,
    decoded,
    exact_numbers,
    numbers_of_text,
    read_delimited,
    refuse_repeated,
    refuse_width,
)
from lmemtest.bench.data.sheets import (
    PACKED,
    expanded,
    json_value,
    refuse_cells,
    refuse_large_archive,
    unpacked,
    within_limit,
)
from lmemtest.core.caller import advice, named
from lmemtest.core.environment import extra_package
from lmemtest.core.hints import guided
from lmemtest.core.words import listed
from lmemtest.errors import ArgumentError, DataError, LmemtestError, MissingFileError

if TYPE_CHECKING:
    import pandas as pd

    from lmemtest.bench.data.forms import Remark, Tidy
    from lmemtest.bench.data.runs import Runs

    Names = tuple[str, ...]  # of columns

STDIN = "-"


@guided
def read_runs(
    path: str | os.PathLike[str],
    *,
    score: str,
    direction: Literal["minimize", "maximize"],
    algorithm: str,
    benchmark: str | None = None,
    family: str | Sequence[str] | None = None,
    seed: str | Sequence[str] | None = None,
    budget: str | None = None,
    metafeatures: Sequence[str] = (),
    ignore: Sequence[str] = (),
    seed_shared: bool = True,
    failed: str | Sequence[str] | None = None,
    drop_duplicates: Literal["first", "last", "mean"] | None = None,
    sheet: str | int | None = None,
    sep: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
) -> Runs:
    """Read a table of runs from a file.

    Parameters
    ----------
    path : path
        A file ending in ``.csv``, ``.tsv`` or ``.txt``; ``.parquet``, ``.pq`` or ``.feather`` (needs pyarrow:
        ``pip install 'lmemtest[parquet]'``); ``.xlsx`` (needs openpyxl: ``pip install 'lmemtest[excel]'``); ``.md`` or
        ``.tex``; ``.jsonl`` or ``.ndjson``; ``.json`` (lines, or one list of records). Each may be compressed:
        ``.csv.gz``, ``.bz2``, ``.xz``, ``.zip``. ``"-"`` is standard input.
    score, direction, algorithm, benchmark, family, seed, budget, metafeatures, ignore, seed_shared
        The roles of the columns; see `Runs`.
    failed : str or sequence of str, optional
        Which runs failed; see `Runs`. Or words in place of a score, such as "TIMEOUT".
    drop_duplicates : {"first", "last", "mean"}, optional
        What is kept of rows of one run; see `Runs.drop_duplicates`.
    sheet : str or int, optional
        Of a file with several sheets (or Markdown tables): its name, or its number from 1. By default the only one that
        holds a table.
    sep : str, optional
        What separates the fields of a text file: one character, or ``"tab"``. By default found from its header.
    decimal : {".", ","}, optional
        The decimal sign of a text file. By default a comma is one where it can be nothing else.
    encoding : str, optional
        Of a text file. By default UTF-8 or what a byte order mark says, else Windows-1252 with a warning.

    Returns
    -------
    Runs
        The table with its roles, in memory. `notes` say what was read as what: cells such as ``85.3 ± 0.4`` or
        ``91.3%``, a title above the table, ...

    Raises
    ------
    MissingFileError
        If there is no such file; the message names files with similar names.
    ArgumentError
        If the suffix is not known.
    DataError
        If the file cannot be read as what its suffix says, or is larger than the limit.

    Warns
    -----
    DataWarning
        If a text file is not UTF-8 and no encoding was given.

    Notes
    -----
    In a text file, algorithms, benchmarks, seeds and metafeatures are numbers only where every one of them is
    written as Python writes that number (``0`` to ``49``, ``0.5``); otherwise they are text, so that ``01`` and
    ``1``, or ``1e3`` and ``1000``, remain two levels. Lines before the header that begin with ``#`` are left out.

    A file larger than memory is analysed as a lazy table: ``Runs(polars.scan_parquet(path), ...)``. Of a file or of
    standard input at most 0.5 GB are read, unpacked, since text takes ten times its size in memory while it becomes a
    table; the environment variable ``LMEMTEST_MAX_GB`` sets another limit. A table has at most 16,384 columns.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "runs.csv"
    >>> _ = path.write_text("tool;loss\\nHB;0,1\\nRS;0,25\\n")
    >>> runs = read_runs(path, score="loss", direction="minimize", algorithm="tool")
    >>> runs.algorithms, runs.to_frame()["loss"].tolist()
    (('HB', 'RS'), [0.1, 0.25])
    """
    from lmemtest.bench.data.forms import read_as
    from lmemtest.bench.data.runs import Runs

    metafeatures = (metafeatures,) if isinstance(metafeatures, str) else tuple(metafeatures or ())
    family = (family,) if isinstance(family, str) else tuple(family or ())
    labels = [name for name in (algorithm, benchmark, *family, *metafeatures) if name]
    ignore = (ignore,) if isinstance(ignore, str) else tuple(ignore or ())
    source = open_table(path, sheet=sheet, sep=sep, decimal=decimal, encoding=encoding)
    seeds = [seed] if isinstance(seed, str) else list(seed or ())
    tidy = source.tidy(
        labels=labels,
        seeds=seeds,
        score=score,
        failed=failed,
        kept=[*labels, *seeds, *ignore, *([budget] if budget else [])],
    )
    runs = Runs(
        tidy.frame,
        score=score,
        direction=direction,
        algorithm=algorithm,
        benchmark=benchmark,
        family=family,
        seed=seed,
        budget=budget,
        metafeatures=metafeatures,
        ignore=ignore,
        seed_shared=seed_shared,
        failed=tidy.roles.get("failed"),
    )

    notes = read_as(tidy.remarks)
    runs = runs.remembering(notes=() if notes is None else (notes,))
    return runs if drop_duplicates is None else runs.drop_duplicates(drop_duplicates)


def read_table(
    path: str | os.PathLike[str],
    *,
    labels: Sequence[str] = (),
    seeds: Sequence[str] = (),
    sep: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
) -> pd.DataFrame:
    """Read a file to a pandas frame, by its suffix; see `read_runs` for formats and errors.

    `labels` and `seeds` are columns of a text file whose values are names, and numbers only where that changes no
    name.  In `labels`, words such as ``None`` and ``NA`` are names too.
    """
    return open_table(path, sep=sep, decimal=decimal, encoding=encoding).read(labels=labels, seeds=seeds)


def open_table(
    path: str | os.PathLike[str],
    *,
    sheet: str | int | None = None,
    sep: str | None = None,
    decimal: str | None = None,
    encoding: str | None = None,
) -> Source:
    """The content of a file, to be read once the roles of its columns are known."""
    sep, decimal = check_layout(sep, decimal)
    data, origin, kind = _content(path)
    source = Source(data, origin, kind, sep, decimal, encoding, sheet)
    if sheet is not None and source.kind not in ("excel", "markdown", "latex"):
        raise ArgumentError(
            f"{named('sheet')} is for .xlsx, .md and .tex, where a file may hold several tables, got {sheet!r} for "
            f"{source.origin}. Leave it out."
        )
    return source


@dataclass(frozen=True, slots=True)
class Source:
    """The content of a file, its name for messages, its format, what was said of it, and what was told of it."""

    data: bytes
    origin: str
    kind: str
    sep: str | None
    decimal: str | None
    encoding: str | None
    sheet: str | int | None
    told: list[str] = field(default_factory=list)

    def read(self, *, labels: Sequence[str] = (), seeds: Sequence[str] = ()) -> pd.DataFrame:
        """The table as its columns hold it; see `read_table` for the columns of names."""
        return self._table(labels, seeds)[0]

    def tidy(
        self,
        *,
        labels: Sequence[str] = (),
        seeds: Sequence[str] = (),
        failed: str | Sequence[str] | None = None,
        **form: Any,
    ) -> Tidy:
        """The table in the form in which people have it, as a table of scores, with all that was read as something.

        `failed` and `form` are arguments of `tidied`; ``roles["failed"]`` is what `Runs` takes.
        """
        from lmemtest.bench.data.forms import failure_words, tidied

        table, remarks = self._table(labels, seeds)

        role, words = failure_words(failed, list(map(str, table.columns)))
        tidy = tidied(table, failed=words, decimal=self.decimal, **form)
        return replace(tidy, remarks=(*remarks, *tidy.remarks), roles={**tidy.roles, "failed": role})

    def _table(self, labels: Sequence[str], seeds: Sequence[str]) -> tuple[pd.DataFrame, tuple[Remark, ...]]:
        return _READERS[self.kind](self, tuple(labels), tuple(seeds))


def _unreadable(origin: str, kind: str, error: Exception) -> DataError:
    """The error for content that is not what the suffix says."""
    reason = " ".join(str(error).split())[:200].rstrip(".")
    return DataError(f"The file {origin} cannot be read as {kind} ({reason}). Is it complete, and its suffix right?")


# --------------------------------------------------------------------------------------------------------- formats


def _read_arrow(source: Source, labels: Names, seeds: Names) -> tuple[pd.DataFrame, tuple[Remark, ...]]:
    import importlib
    import io

    pa = extra_package(
        "pyarrow", extra="parquet", purpose=f"read {source.origin}", otherwise="Or save the table as .csv."
    )
    kind = importlib.import_module(f"pyarrow.{source.kind}")  # parquet or feather
    try:
        if source.kind == "parquet":
            said = kind.read_metadata(io.BytesIO(source.data))
            refuse_width(said.num_columns, source.origin)
            refuse_cells(said.num_rows, said.num_columns, source.origin)
        return _of_arrow(pa, kind.read_table(io.BytesIO(source.data)), (*labels, *seeds), source.origin), ()
    except (pa.ArrowMemoryError, LmemtestError):
        raise
    except (pa.ArrowException, ValueError, OSError) as error:
        raise _unreadable(source.origin, source.kind, error) from None


def _of_arrow(pa: Any, table: Any, names: Names, origin: str) -> pd.DataFrame:
    """An arrow table with its exact decimals as whole numbers, floats, or names where a float would lose some."""
    refuse_width(table.num_columns, origin)
    refuse_repeated(table.column_names, origin)
    for place, column in enumerate(table.schema):
        if pa.types.is_decimal(column.type):
            values = table.column(place).to_pylist()
            table = table.set_column(place, column.name, pa.array(_of_decimals(values, column.name in names)))
    frame: pd.DataFrame = table.to_pandas()
    return frame


def _of_decimals(values: list[Any], names: bool) -> list[Any]:
    if all(value is None or (value == value.to_integral_value() and abs(value) < 2**63) for value in values):
        return [None if value is None else int(value) for value in values]
    floats = [None if value is None else float(value) for value in values]
    if names and len(set(floats)) < len(set(values)):
        return [None if value is None else str(value) for value in values]
    return floats


def _read_text(source: Source, labels: Names, seeds: Names) -> tuple[pd.DataFrame, tuple[Remark, ...]]:
    from lmemtest.bench.data.sheets import latex_tables, markdown_tables

    for magic, kind in ((b"PK\x03\x04", ".xlsx"), (b"PAR1", ".parquet")):
        if source.data.startswith(magic):
            raise DataError(f"The file {source.origin} is not text. Is it a {kind} file with another suffix?")
    text = decoded(source.data, source.encoding, source.origin)
    if not text.strip():
        raise DataError(f"The file {source.origin} is empty.")
    latex = source.kind == "latex" or "\\begin{tab" in text[:4096]
    looked_at = source.kind == "markdown" or "|" in text[:4096]
    tables = latex_tables(text) if latex else markdown_tables(text) if looked_at else []
    if source.kind == "markdown" and not tables:
        raise DataError(
            f"The file {source.origin} has no Markdown table: a header, a rule such as |---|---|, and rows."
        )
    if source.kind == "latex" and not tables:
        raise DataError(f"The file {source.origin} has no LaTeX table: \\begin{{tabular}} ... \\end{{tabular}}.")
    if tables:
        return _read_marked(tables, source, labels, seeds, latex=latex)
    return read_delimited(text, source.origin, labels, seeds, source.sep, source.decimal)


def _read_marked(
    tables: list[list[list[Any]]], source: Source, labels: Names, seeds: Names, *, latex: bool
) -> tuple[pd.DataFrame, tuple[Remark, ...]]:
    """One of the tables of a text in Markdown or LaTeX, through the reader of delimited text."""
    import csv
    import io

    from lmemtest.bench.data.forms import Remark
    from lmemtest.bench.data.sheets import body_of, chosen

    by_name: dict[str, list[list[Any]]] = {", ".join(rows[0])[:40]: list(rows) for rows in tables}
    if len(by_name) < len(tables):
        by_name = {f"table {place}": list(rows) for place, rows in enumerate(tables, start=1)}
    name, rows = chosen(by_name, source.sheet, source.origin, "table")
    of_header: tuple[Remark, ...] = ()
    if latex:  # which may have a header of two rows, and lines of text across all columns
        rows, of_header = body_of(rows)
    width = len(rows[0])
    ragged = next((row for row in rows if len(row) > width), None)
    if ragged is not None:
        sign = "&" if latex else "|"
        raise DataError(
            f"The file {source.origin} has a row of {len(ragged)} cells below a header of {width}: "
            f"{' | '.join(map(str, ragged))[:60]!r}. Write {sign} within a cell as \\{sign}."
        )
    refuse_repeated([str(cell) for cell in rows[0] if cell], source.origin)
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows([*row, *[""] * (width - len(row))] for row in rows)
    table, remarks = read_delimited(text.getvalue(), source.origin, labels, seeds, ",", source.decimal, framed=False)
    several = (Remark("sheet", count=len(tables), shown=name),) if len(tables) > 1 and source.sheet is None else ()
    return table, (*several, *of_header, *remarks)


def _read_excel(source: Source, labels: Names, seeds: Names) -> tuple[pd.DataFrame, tuple[Remark, ...]]:
    """The sheet that holds a table, from its header on."""
    import io
    import zipfile

    from lmemtest.bench.data.forms import Remark
    from lmemtest.bench.data.sheets import body_of, cells_of, chosen, header_of

    openpyxl = extra_package(
        "openpyxl", extra="excel", purpose=f"read {source.origin}", otherwise="Or save the sheet as .csv."
    )
    try:
        with zipfile.ZipFile(io.BytesIO(source.data)) as archive:
            refuse_large_archive(archive, source.origin)
        book = openpyxl.load_workbook(io.BytesIO(source.data), read_only=True, data_only=True)
        cells = {sheet.title: cells_of(sheet, source.origin) for sheet in book.worksheets}
    except (LmemtestError, MemoryError):
        raise
    except Exception as error:  # zip, xml and format errors of many kinds
        raise _unreadable(source.origin, "xlsx", error) from None
    sheets = {title: rows for title, (rows, _) in cells.items()}
    n_full = sum(any(value is not None for row in rows for value in row) for rows in sheets.values())
    if not n_full:
        raise DataError(f"The file {source.origin} is empty.")
    title, rows = chosen(sheets, source.sheet, source.origin)
    several = (Remark("sheet", count=n_full, shown=title),) if n_full > 1 and source.sheet is None else ()
    unread, above = cells[title][1], rows[: header_of(rows)][-1:]
    (header, *rows), remarks = body_of(rows)
    for upper, lower in (*((row, header) for row in above), *((header, row) for row in rows[:1])):
        _refuse_two_rows(upper, lower, source.origin)
    remarks = (*remarks, *([Remark("unread", count=unread)] if unread else []))
    kept = [i for i, name in enumerate(header) if name is not None]
    first = next((i for i in range(len(header)) if any(row[i] is not None for row in rows)), 0)
    if first not in kept and first < min(kept, default=0):  # the names of rows need no name of their own
        header = [*header[:first], f"Unnamed: {first}", *header[first + 1 :]]
        kept = [first, *kept]
    stray = sum(any(value is not None for i, value in enumerate(row) if i not in kept) for row in rows)
    if stray:
        raise DataError(
            f"The file {source.origin} has values in a column without a name, in {stray:,} rows. The first row must "
            "name every column."
        )
    names = [str(header[i]).strip() for i in kept]
    refuse_repeated(names, source.origin)
    table = _of_cells(names, [[row[i] for i in kept] for row in rows], (*labels, *seeds), source.decimal)
    return table, (*several, *remarks)


def _refuse_two_rows(upper: list[Any], lower: list[Any], shown: str) -> None:
    """Several scores above the names of the same methods."""
    places = [place for place, cell in enumerate(lower) if isinstance(cell, str)]
    names = [lower[place].strip() for place in places]
    groups = [str(upper[place]).strip() for place in places if place < len(upper) and upper[place] is not None]
    if len(names) == sum(cell is not None for cell in lower) and 1 < len(groups) < len(names) > len(set(names)):
        raise DataError(
            f"The file {shown} has two rows of names, {listed(map(repr, groups))} above {listed(names)}. If the upper "
            f"ones are scores, compare one at a time: keep the columns below {groups[0]!r} in a sheet of their own, "
            "with the column that names the rows and one row of names."
        )


def _of_cells(names: list[str], rows: list[list[Any]], labels: Names, decimal: str | None) -> pd.DataFrame:
    """Cells of a sheet as columns: names are kept as they are, texts that are numbers become numbers."""
    import pandas as pd

    columns = {}
    for place, name in enumerate(names):
        values = [row[place] for row in rows]
        kinds = {isinstance(value, str) for value in values if value is not None}
        if name in labels:
            if kinds == {True, False}:  # the name 1 beside the name 01
                whole = [isinstance(value, float) and value.is_integer() for value in values]
                values = [
                    None if value is None else str(int(value) if is_whole else value)
                    for value, is_whole in zip(values, whole, strict=True)
                ]
            column = pd.Series(values, dtype=object).infer_objects()
            columns[name] = exact_numbers(column) if kinds == {True} else column
            continue
        values = [None if isinstance(v, str) and v.strip() in MISSING_NUMBERS else v for v in values]
        column = pd.Series(values, dtype=object)
        if any(isinstance(value, str) for value in values):
            column = _texts_as_numbers(column, decimal)
        columns[name] = column.infer_objects()
    return pd.DataFrame(columns)


def _texts_as_numbers(column: pd.Series[Any], decimal: str | None) -> pd.Series[Any]:
    """A column of a sheet in which numbers were typed as text."""
    import pandas as pd

    texts = column.map(lambda value: value if value is None else str(value))
    if decimal != ",":
        try:
            return pd.to_numeric(texts)
        except (ValueError, TypeError):
            pass
    found = None if decimal == "." else numbers_of_text(texts, ambiguous=decimal == ",")
    return column if found is None else found


def _read_json(source: Source, *_: Names) -> tuple[pd.DataFrame, tuple[Remark, ...]]:
    """One object per line, or one list of objects."""
    try:
        text = source.data.decode(source.encoding or "utf-8-sig")
    except (UnicodeError, LookupError) as error:
        start = getattr(error, "start", 0)
        raise DataError(f"The file {source.origin} is not UTF-8 text (byte {start:,}); JSON must be UTF-8.") from None
    if text.lstrip().startswith("["):  # one list of records
        value = _parsed(source, text)
        if not all(isinstance(record, dict) for record in value):
            raise DataError(f"The file {source.origin} must be a list of objects, one per run.")
        return _of_records(value, source.origin), ()
    whole = _one_object(source, text)
    if whole is not None:
        return whole, ()
    records = []
    # a text within a line may hold what Unicode counts as a line break, such as U+2028
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            record = _parsed(source, line, number)
            if not isinstance(record, dict):
                raise DataError(
                    f"The file {source.origin} holds {type(record).__name__} {repr(record)[:60]} in line {number}; "
                    f'each line must be an object such as {{"algorithm": "RS", "loss": 0.1}}.'
                )
            records.append(record)
    return _of_records(records, source.origin), ()


def _of_records(records: list[dict[str, Any]], origin: str) -> pd.DataFrame:
    """Objects as rows; each may have names of its own, so the table may be much larger than its text."""
    import pandas as pd

    columns = len(set().union(*records))
    refuse_width(columns, origin)
    refuse_cells(len(records), columns, origin)
    return pd.DataFrame(records)


def _one_object(source: Source, text: str) -> pd.DataFrame | None:
    """The table of one object over several lines: its columns, or its values as the only row."""
    import json

    import pandas as pd

    if "\n" not in text.strip() or not text.lstrip().startswith("{"):
        return None
    try:
        value = json_value(text, source.origin)
    except (json.JSONDecodeError, RecursionError):  # an object in each line
        return None
    parts = list(value.values())
    columns = all(isinstance(part, list) for part in parts) or all(isinstance(part, dict) for part in parts)
    if not columns or len({len(part) for part in parts}) != 1:
        return _of_records([value], source.origin)
    refuse_width(len(parts), source.origin)
    rows = len(set().union(*parts)) if isinstance(parts[0], dict) else len(parts[0])
    refuse_cells(rows, len(parts), source.origin)
    return pd.DataFrame(value).reset_index(drop=True)


def _parsed(source: Source, text: str, line: int | None = None) -> Any:
    import json

    try:
        return json_value(text, source.origin, line)
    except (json.JSONDecodeError, RecursionError) as error:
        where = f"line {line}" if line else f"line {getattr(error, 'lineno', 1)}"
        start = text if len(text) <= 60 else f"{text[:60]}..."
        reason = getattr(error, "msg", "nested too deeply")
        detail = f": {start!r}" if line else ""
        raise DataError(
            f"The file {source.origin} is not valid JSON in {where} ({reason}){detail}. Every line must be one "
            f"object; a last line that is cut off comes from a run that was stopped while writing."
        ) from None


_READERS: dict[str, Callable[[Source, Names, Names], tuple[pd.DataFrame, tuple[Remark, ...]]]] = {
    "parquet": _read_arrow,
    "feather": _read_arrow,
    "csv": _read_text,
    "markdown": _read_text,
    "latex": _read_text,
    "excel": _read_excel,
    "json": _read_json,
}
_KINDS = {
    ".parquet": "parquet",
    ".pq": "parquet",
    ".feather": "feather",
    ".csv": "csv",
    ".tsv": "csv",
    ".txt": "csv",
    ".xlsx": "excel",
    ".md": "markdown",
    ".tex": "latex",
    ".jsonl": "json",
    ".ndjson": "json",
    ".json": "json",
}


# --------------------------------------------------------------------------------------------------------- content


def _content(path: str | os.PathLike[str]) -> tuple[bytes, str, str]:
    """What a file or standard input holds, its name for messages, and its format."""
    if isinstance(path, (bytes, bytearray)) or not isinstance(path, (str, os.PathLike)):
        raise ArgumentError(f"{named('path')} must be a path, got {path!r}.")
    if str(path) == STDIN:
        data = within_limit(sys.stdin.buffer, "Standard input")
        if not data.strip():
            raise DataError("Standard input is empty.")
        return data, "on standard input", _kind_of_content(data)
    path = expanded(path)
    kind = _kind_of(path)
    if not _is("file", path):
        raise not_found(path)
    origin = repr(str(path))
    if not path.stat().st_size:
        raise DataError(f"The file {origin} is empty.")
    return _bytes_of(path, origin, kind), origin, kind


def _is(what: str, path: Path) -> bool:
    try:
        return {"file": path.is_file, "folder": path.is_dir, "there": path.exists}[what]()
    except (OSError, ValueError):  # a name that is too long, or holds a NUL
        return False


def _kind_of_content(data: bytes) -> str:
    """The format of standard input, which has no suffix."""
    for magic, kind in ((b"PAR1", "parquet"), (b"PK\x03\x04", "excel"), (b"ARROW1", "feather")):
        if data.startswith(magic):
            return kind
    return "json" if data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[") else "csv"


def _bytes_of(path: Path, origin: str, kind: str) -> bytes:
    """The content of a file, unpacked if its suffix says that it is packed."""
    import lzma
    import zlib

    suffix = path.suffix.lower()
    with path.open("rb") as file:
        if suffix not in PACKED:
            return within_limit(file, f"The file {origin}")
        try:
            return unpacked(file, suffix, origin)
        except LmemtestError:
            raise
        except (OSError, EOFError, zlib.error, lzma.LZMAError, ValueError) as error:
            raise _unreadable(origin, kind, error) from None


def _kind_of(path: Path) -> str:
    name = path.name.lower()
    for packed in PACKED:
        name = name.removesuffix(packed)
    for suffix, kind in _KINDS.items():
        if name.endswith(suffix):
            return kind
    argument = named("path")
    if path.is_dir():
        raise ArgumentError(
            f"{argument} must be a file, but {str(path)!r} is a folder. Folders of other tools have readers: "
            f"{advice('importers')}."
        )
    save = " Save it as .xlsx or .csv." if name.endswith((".xls", ".ods", ".xlsb", ".xlsm", ".numbers")) else ""
    raise ArgumentError(
        f"{argument} must end in one of {listed(_KINDS)} (perhaps with {', '.join(PACKED)} behind), got "
        f"{path.name!r}.{save} Any other format: {advice('other_format')}"
    )


def not_found(path: Path) -> MissingFileError:
    """The error of a file that is not there, with names of files that are."""
    argument = named("path")
    if _is("folder", path):
        return MissingFileError(f"{argument} must be a file, but {str(path)!r} is a folder.")
    if _is("there", path) and not _is("file", path):
        return MissingFileError(f"{argument} must be a file, but {str(path)!r} is a pipe or a device. {advice('pipe')}")
    folder = path.parent
    if not _is("folder", folder):
        return MissingFileError(f"There is no file {str(path)!r}: the folder {str(folder)!r} does not exist.")
    names = sorted(entry.name for entry in folder.iterdir() if entry.is_file() and not entry.name.startswith("."))
    close = difflib.get_close_matches(path.name, names, n=3, cutoff=0.6)
    readable = [name for name in names if name.lower().removesuffix(".gz").endswith(tuple(_KINDS))]
    hint = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
    if not hint and readable:
        hint = f" Files there that can be read: {listed(readable, most=5)}."
    return MissingFileError(f"There is no file {path.name!r} in the folder {str(folder)!r}.{hint}")
