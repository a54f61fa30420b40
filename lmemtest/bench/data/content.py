"""The bytes of a file or of standard input, unpacked, within a limit.

A few megabytes may unpack to many gigabytes, and a stream need not end. So content is read in parts, and refused as
soon as it is larger than the limit: text takes about ten times its size in memory while it becomes a table.
"""

from __future__ import annotations

import io
import math
import os
import re
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from lmemtest.core.caller import advice
from lmemtest.core.words import listed
from lmemtest.errors import ArgumentError, DataError

if TYPE_CHECKING:
    from zipfile import ZipFile

__all__ = ["PACKED", "expanded", "json_value", "refuse_cells", "refuse_large_archive", "unpacked", "within_limit"]

PACKED = (".gz", ".bz2", ".xz", ".zip")
MAX_GB = 0.5
VARIABLE = "LMEMTEST_MAX_GB"
_PART = 1 << 20
_LONG_NUMBER = re.compile(r"[0-9]{309}")  # digits, as the largest float has
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]|[\ud800-\udfff]")
_BYTES_PER_CELL = 2  # of text, at least: a digit and what separates it from the next


def expanded(path: str | os.PathLike[str]) -> Path:
    """The path with the home of a user for ``~``; as it is where there is no such user."""
    return Path(os.path.expanduser(path))


def unpacked(file: IO[bytes], suffix: str, shown: str) -> bytes:
    """The content of an open file, which is packed as its suffix says.

    Raises OSError, EOFError, ValueError and what zlib and lzma raise if it is damaged, and DataError above the limit.
    """
    import bz2
    import gzip
    import lzma

    if suffix == ".zip":
        return _only_member(file, shown)
    open_packed: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
    return within_limit(open_packed[suffix](file), f"The file {shown}, unpacked,")


def within_limit(stream: IO[bytes], what: str) -> bytes:
    """All that a stream holds, if that is no more than the limit."""
    most, parts = _most_bytes(), io.BytesIO()
    while part := stream.read(_PART):
        parts.write(part)
        if parts.tell() > most:
            raise _too_large(f"{what} holds more than")
    return parts.getvalue()


def json_value(text: str, shown: str, line: int | None = None) -> Any:
    """The value of a text in JSON, of which every whole number has a float and every text an encoding.

    Raises JSONDecodeError and RecursionError as json does, and DataError for other numbers and texts.
    """
    import json

    where = f" in line {line:,}" if line else ""

    def whole(digits: str) -> int:
        if math.isinf(float(digits)):
            raise DataError(
                f"The file {shown} holds a whole number of {len(digits.lstrip('-')):,} digits{where}, more than any "
                'float has. Write it as text ("...") if it is a name.'
            )
        return int(digits)

    value = json.loads(text, parse_int=whole if _LONG_NUMBER.search(text) else None)
    if _SURROGATE.search(text):
        try:
            json.dumps(value, ensure_ascii=False).encode()
        except UnicodeEncodeError as error:
            half = f"\\u{ord(error.object[error.start]):04x}"
            raise DataError(
                f"The file {shown} holds half of a character, {half}{where}, which no text can be written with. Write "
                "the whole character, or both halves one after the other."
            ) from None
    return value


def refuse_large_archive(archive: ZipFile, shown: str) -> None:
    """Refuse a workbook or a log, zip archives, whose parts are larger than the limit when they are unpacked."""
    # no more than the declared size of a part is ever unpacked
    if sum(part.file_size for part in archive.infolist()) > _most_bytes():
        raise _too_large(f"The file {shown}, unpacked, holds more than")


def refuse_cells(rows: int, columns: int, shown: str) -> None:
    """Refuse a table that as text would be larger than the limit, however well its values are packed."""
    if rows * columns * _BYTES_PER_CELL > _most_bytes():
        raise _too_large(f"The file {shown} holds {rows:,} rows of {columns:,} columns, as text more than")


def _most_bytes() -> float:
    return _max_gb() * 1e9


def _max_gb() -> float:
    given = os.environ.get(VARIABLE, "").strip()
    try:
        found = float(given or MAX_GB)
    except ValueError:
        found = 0.0
    if not found > 0.0:
        raise ArgumentError(
            f"The environment variable {VARIABLE} must be a number of gigabytes above 0, got {given[:60]!r}. "
            f"Without it, the limit is {MAX_GB}."
        )
    return found


def _too_large(begin: str) -> DataError:
    lazy = advice("lazy")
    return DataError(
        f"{begin} {_max_gb():g} GB, the most that is read into memory. If it is meant to be so large, {lazy}; or set "
        f"the environment variable {VARIABLE} to more gigabytes, with ten times as much memory."
    )


def _only_member(file: IO[bytes], shown: str) -> bytes:
    import zipfile

    try:
        with zipfile.ZipFile(file) as archive:
            names = [n for n in archive.namelist() if not n.endswith("/") and not n.startswith("__MACOSX/")]
            if len(names) != 1:
                raise DataError(f"The file {shown} holds {len(names)} files ({listed(names, most=5)}). Unpack it.")
            with archive.open(names[0]) as member:
                return within_limit(member, f"The file {shown}, unpacked,")
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:  # damaged, encrypted, unknown method
        raise ValueError(str(error)) from None
