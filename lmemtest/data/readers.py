"""Files to runs: parquet, csv and json lines, by their suffix."""

from __future__ import annotations

import difflib
import math
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from lmemtest._validate import listed
from lmemtest.data.runs import Runs
from lmemtest.errors import ArgumentError, DataError

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["read_runs", "read_table"]

Reader = Callable[[Path, Sequence[str], Sequence[str]], Any]

_LARGEST = 2**63  # of 64-bit integers
_WORDS = {"True": True, "False": False}

# A prior called "None" is a level; a score of "None" is missing.
_MISSING_NUMBERS = [
    "",
    "nan",
    "NaN",
    "-nan",
    "-NaN",
    "NA",
    "N/A",
    "n/a",
    "#N/A",
    "<NA>",
    "null",
    "NULL",
    "None",
]


def read_runs(
    path: str | os.PathLike[str],
    *,
    score: str,
    direction: Literal["minimize", "maximize"],
    algorithm: str,
    benchmark: str | None = None,
    seed: str | None = None,
    budget: str | None = None,
    metafeatures: Sequence[str] = (),
) -> Runs:
    """Read a table of runs from a file.

    Parameters
    ----------
    path : path
        A file ending in ``.parquet`` or ``.pq``; ``.csv``; ``.jsonl`` or ``.ndjson``; ``.json`` (lines, or
        one list of records).  csv and json may be compressed: ``.csv.gz``.
    score, direction, algorithm, benchmark, seed, budget, metafeatures
        The roles of the columns; see `Runs`.

    Returns
    -------
    Runs
        The table with its roles, in memory.

    Raises
    ------
    FileNotFoundError
        If there is no such file; the message names files with similar names.
    ArgumentError
        If the suffix is not known.
    DataError
        If the file cannot be read as what its suffix says.

    Notes
    -----
    In a csv file, algorithms, benchmarks, seeds and metafeatures are numbers only where every one of them is
    written as Python writes that number (``0`` to ``49``, ``0.5``); otherwise they are text, so that ``01`` and
    ``1``, or ``1e3`` and ``1000``, remain two levels.

    A file larger than memory is analysed as a lazy table: ``Runs(polars.scan_parquet(path), ...)``.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "runs.csv"
    >>> _ = path.write_text("tool,loss\\nHB,0.1\\nRS,0.2\\n")
    >>> read_runs(path, score="loss", direction="minimize", algorithm="tool").algorithms
    ('HB', 'RS')
    """
    metafeatures = (metafeatures,) if isinstance(metafeatures, str) else tuple(metafeatures or ())
    labels = [name for name in (algorithm, benchmark, *metafeatures) if name]
    return Runs(
        read_table(path, labels=labels, seeds=[seed] if seed else []),
        score=score,
        direction=direction,
        algorithm=algorithm,
        benchmark=benchmark,
        seed=seed,
        budget=budget,
        metafeatures=metafeatures,
    )


def read_table(path: str | os.PathLike[str], *, labels: Sequence[str] = (), seeds: Sequence[str] = ()) -> pd.DataFrame:
    """Read a file to a pandas frame, by its suffix; see `read_runs` for formats and errors.

    `labels` and `seeds` are columns of a csv file whose values are names, and numbers only where that changes no
    name.  In `labels`, words such as ``None`` and ``NA`` are names too.
    """
    path = Path(path).expanduser()
    reader = _reader(path)
    if not path.is_file():
        raise _not_found(path)
    if not path.stat().st_size:
        raise DataError(f"The file {str(path)!r} is empty.")
    return reader(path, labels, seeds)


def _read_parquet(path: Path, _: Sequence[str], __: Sequence[str]) -> pd.DataFrame:
    import pandas as pd
    import pyarrow as pa

    try:
        return pd.read_parquet(path)
    except (pa.ArrowException, ValueError, OSError) as error:
        raise _unreadable(path, "parquet", error) from None


def _read_csv(path: Path, labels: Sequence[str], seeds: Sequence[str]) -> pd.DataFrame:
    import pandas as pd

    try:
        columns = pd.read_csv(path, nrows=0, encoding="utf-8-sig").columns
        named = [name for name in columns if name in labels or name in seeds]
        frame = pd.read_csv(
            path,
            encoding="utf-8-sig",
            low_memory=False,  # reading in chunks may guess different types for parts of one column
            dtype=dict.fromkeys(named, str),
            keep_default_na=False,
            na_values={name: [""] if name in labels else _MISSING_NUMBERS for name in columns},
        )
    except UnicodeDecodeError as error:
        raise DataError(
            f"The file {str(path)!r} is not UTF-8 text ({error.reason} at byte {error.start:,}). Save it as "
            f"UTF-8, or read it with pandas and its encoding, and give the frame to Runs."
        ) from None
    except (pd.errors.ParserError, pd.errors.EmptyDataError, ValueError, OSError, EOFError) as error:
        raise _unreadable(path, "csv", error) from None
    _refuse_delimiter(frame, path)
    _refuse_repeated_header(path, frame)
    return frame.assign(**{name: _numbers_if_exact(frame[name]) for name in named})


def _numbers_if_exact(texts: pd.Series[Any]) -> pd.Series[Any]:
    """Names as numbers or truth values, if all of them are written so and none is lost; otherwise as they are."""
    import numpy as np
    import pandas as pd

    codes, levels = pd.factorize(texts)
    names = list(levels)
    if not names or (codes < 0).any():  # a missing name is refused later, in its own terms
        return texts
    if set(names) <= _WORDS.keys():
        return pd.Series(np.array([_WORDS[name] for name in names])[codes], index=texts.index, name=texts.name)
    numbers = _exact(names, int) or _exact(names, float)
    if numbers is None:
        return texts
    return pd.Series(np.array(numbers)[codes], index=texts.index, name=texts.name)


def _exact(names: list[str], kind: type[int] | type[float]) -> list[Any] | None:
    """The numbers with these names, or None if some name is another way to write its number."""
    numbers: list[Any] = []
    for name in names:
        try:
            number = kind(name)
        except ValueError:
            return None
        whole = str(int(number)) if math.isfinite(number) and number == int(number) else ""
        if not math.isfinite(number) or abs(number) >= _LARGEST or name not in (str(number), whole):
            return None
        numbers.append(number)
    return numbers if len(set(numbers)) == len(names) else None


def _refuse_delimiter(frame: pd.DataFrame, path: Path) -> None:
    if len(frame.columns) > 1:
        return
    name = str(frame.columns[0])
    found = {";": "semicolons", "\t": "tabs", "|": "vertical bars", " ": "blanks"}
    for delimiter, words in found.items():
        if delimiter in name:
            raise DataError(
                f"The file {str(path)!r} has only one column, {name!r}: it is separated by {words}, not by "
                f"commas. Save it with commas, or read it with pandas.read_csv(path, sep={delimiter!r}) and "
                f"give the frame to Runs."
            )
    raise DataError(
        f"The file {str(path)!r} has only one column, {name!r}; runs need at least a score and an algorithm. "
        f"Is it separated by commas?"
    )


def _refuse_repeated_header(path: Path, frame: pd.DataFrame) -> None:
    """pandas renames the second ``loss`` to ``loss.1``, so a repeated name would go unnoticed."""
    import pandas as pd

    if not any(str(name).rpartition(".")[2].isdigit() for name in frame.columns):
        return
    header = pd.read_csv(path, header=None, nrows=1, dtype=str, encoding="utf-8-sig").iloc[0].dropna().tolist()
    twice = sorted({name for name in header if header.count(name) > 1})
    if twice:
        raise DataError(
            f"The file {str(path)!r} has more than one column named {listed(map(repr, twice))}; every name "
            f"must occur once. Rename or drop the copies."
        )


def _read_json(path: Path, _: Sequence[str], __: Sequence[str]) -> pd.DataFrame:
    import pandas as pd

    text = _text_of(path)
    if text.lstrip().startswith("["):  # one list of records
        return _records(path, _parsed(path, text))
    records = []
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip():
            record = _parsed(path, line, number)
            if not isinstance(record, dict):
                raise DataError(
                    f"The file {str(path)!r} holds {type(record).__name__} {record!r} in line {number}; each "
                    f'line must be an object such as {{"algorithm": "RS", "loss": 0.1}}.'
                )
            records.append(record)
    return pd.DataFrame(records)


def _text_of(path: Path) -> str:
    import gzip
    import zlib

    try:
        if path.suffix == ".gz":
            with gzip.open(path, "rt", encoding="utf-8-sig") as file:
                return file.read()
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(
            f"The file {str(path)!r} is not UTF-8 text (byte {error.start:,}); JSON must be UTF-8."
        ) from None
    except (OSError, EOFError, zlib.error) as error:
        raise _unreadable(path, "json", error) from None


def _parsed(path: Path, text: str, line: int | None = None) -> Any:
    import json

    try:
        return json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        where = f"line {line}" if line else f"line {getattr(error, 'lineno', 1)}"
        shown = text if len(text) <= 60 else f"{text[:60]}..."
        reason = getattr(error, "msg", "nested too deeply")
        detail = f": {shown!r}" if line else ""
        raise DataError(
            f"The file {str(path)!r} is not valid JSON in {where} ({reason}){detail}. Every line must be one "
            f"object; a last line that is cut off comes from a run that was stopped while writing."
        ) from None


def _records(path: Path, value: Any) -> pd.DataFrame:
    import pandas as pd

    if not all(isinstance(record, dict) for record in value):
        raise DataError(f"The file {str(path)!r} must be a list of objects, one per run.")
    return pd.DataFrame(value)


_READERS: dict[str, Reader] = {
    ".parquet": _read_parquet,
    ".pq": _read_parquet,
    ".csv": _read_csv,
    ".csv.gz": _read_csv,
    ".jsonl": _read_json,
    ".jsonl.gz": _read_json,
    ".ndjson": _read_json,
    ".ndjson.gz": _read_json,
    ".json": _read_json,
    ".json.gz": _read_json,
}


def _reader(path: Path) -> Reader:
    name = path.name.lower()
    for suffix, reader in _READERS.items():
        if name.endswith(suffix):
            return reader
    if path.is_dir():
        raise ArgumentError(f"path must be a file, but {str(path)!r} is a folder.")
    advice = " Save it as .csv, comma-separated." if name.endswith((".xlsx", ".xls", ".tsv", ".txt")) else ""
    raise ArgumentError(
        f"path must end in one of {listed(_READERS)}, got {path.name!r}.{advice} Any other format: read it "
        f"to a dataframe and give that to Runs."
    )


def _not_found(path: Path) -> FileNotFoundError:
    if path.is_dir():
        return FileNotFoundError(f"path must be a file, but {str(path)!r} is a folder.")
    folder = path.parent
    if not folder.is_dir():
        return FileNotFoundError(f"There is no file {str(path)!r}: the folder {str(folder)!r} does not exist.")
    names = sorted(entry.name for entry in folder.iterdir() if entry.is_file())
    close = difflib.get_close_matches(path.name, names, n=3, cutoff=0.6)
    readable = [name for name in names if name.lower().endswith(tuple(_READERS))]
    hint = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
    if not hint and readable:
        hint = f" Files there that can be read: {listed(readable, most=5)}."
    return FileNotFoundError(f"There is no file {path.name!r} in the folder {str(folder)!r}.{hint}")


def _unreadable(path: Path, kind: str, error: Exception) -> DataError:
    reason = " ".join(str(error).split())[:200].rstrip(".")
    return DataError(
        f"The file {str(path)!r} cannot be read as {kind} ({reason}). Is it complete, and its suffix right?"
    )
