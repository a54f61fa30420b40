"""The table within a sheet of cells: below its title, above its notes, in Markdown or LaTeX between other text.

The bytes of a file or of standard input, unpacked, within a limit.
A few megabytes may unpack to many gigabytes, and a stream need not end. So content is read in parts, and refused as
soon as it is larger than the limit: text takes about ten times its size in memory while it becomes a table.
"""

from __future__ import annotations

import csv
import io
import math
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from lmemtest.core.caller import advice, setting
from lmemtest.core.words import listed, suggest
from lmemtest.errors import ArgumentError, DataError

if TYPE_CHECKING:
    from zipfile import ZipFile

    from lmemtest.bench.data.forms import Remark


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


def unpacked(file: IO[bytes], suffix: str, origin: str) -> bytes:
    """The content of an open file, which is packed as its suffix says.

    Raises OSError, EOFError, ValueError and what zlib and lzma raise if it is damaged, and DataError above the limit.
    """
    import bz2
    import gzip
    import lzma

    if suffix == ".zip":
        return _only_member(file, origin)
    open_packed: dict[str, Any] = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
    return within_limit(open_packed[suffix](file), f"The file {origin}, unpacked,")


def within_limit(stream: IO[bytes], what: str) -> bytes:
    """All that a stream holds, if that is no more than the limit."""
    most, parts = _most_bytes(), io.BytesIO()
    while part := stream.read(_PART):
        parts.write(part)
        if parts.tell() > most:
            raise _too_large(f"{what} holds more than")
    return parts.getvalue()


def json_value(text: str, origin: str, line: int | None = None) -> Any:
    """The value of a text in JSON, of which every whole number has a float and every text an encoding.

    Raises JSONDecodeError and RecursionError as json does, and DataError for other numbers and texts.
    """
    import json

    where = f" in line {line:,}" if line else ""

    def whole(digits: str) -> int:
        if math.isinf(float(digits)):
            raise DataError(
                f"The file {origin} holds a whole number of {len(digits.lstrip('-')):,} digits{where}, more than any "
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
                f"The file {origin} holds half of a character, {half}{where}, which no text can be written with. Write "
                "the whole character, or both halves one after the other."
            ) from None
    return value


def refuse_large_archive(archive: ZipFile, origin: str) -> None:
    """Refuse a workbook or a log, zip archives, whose parts are larger than the limit when they are unpacked."""
    # no more than the declared size of a part is ever unpacked
    if sum(part.file_size for part in archive.infolist()) > _most_bytes():
        raise _too_large(f"The file {origin}, unpacked, holds more than")


def refuse_cells(rows: int, columns: int, origin: str) -> None:
    """Refuse a table that as text would be larger than the limit, however well its values are packed."""
    if rows * columns * _BYTES_PER_CELL > _most_bytes():
        raise _too_large(f"The file {origin} holds {rows:,} rows of {columns:,} columns, as text more than")


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


def _only_member(file: IO[bytes], origin: str) -> bytes:
    import zipfile

    try:
        with zipfile.ZipFile(file) as archive:
            names = [n for n in archive.namelist() if not n.endswith("/") and not n.startswith("__MACOSX/")]
            if len(names) != 1:
                raise DataError(f"The file {origin} holds {len(names)} files ({listed(names, most=5)}). Unpack it.")
            with archive.open(names[0]) as member:
                return within_limit(member, f"The file {origin}, unpacked,")
    except (zipfile.BadZipFile, RuntimeError, NotImplementedError) as error:  # damaged, encrypted, unknown method
        raise ValueError(str(error)) from None


# -------------------------------------------------------------------------------------------------------------- a sheet


Rows = list[list[Any]]
_NOTE = re.compile(r"[*†‡§±]|[^\W\d][\w ]*:")  # "* not tuned", "Note: ..."
_RULE = re.compile(r":?-+:?")
_EDGE = 1 << 14  # characters at each end of a text in which a title or notes are looked for
_MOST_LINES = 40
MOST_EMPTY = 500_000  # cells without a value, one after the other, behind which nothing is looked for
_EMPTY_ROW = 10  # cells that take as long to read as a row of them takes besides


def _filled(row: Sequence[Any]) -> int:
    return sum(not _is_empty(cell) for cell in row)


def _is_empty(cell: Any) -> bool:
    return cell is None or (isinstance(cell, str) and not cell.strip())


def _text_of(row: Sequence[Any]) -> str:
    text = " ".join(str(cell).strip() for cell in row if not _is_empty(cell))
    return text if len(text) <= 40 else f"{text[:37]}..."


def cells_of(sheet: Any, origin: str) -> tuple[Rows, int]:
    """The rows of a sheet of openpyxl up to its last cell with a value, and how many empty ones it was given up after.

    Colours and borders make cells of their own, up to XFD1048576, so the size that a sheet declares says nothing.
    """
    sheet.reset_dimensions()
    rows: Rows = []
    empty = effort = width = full = 0
    for given in sheet.iter_rows(values_only=True):
        row = list(given)
        while row and row[-1] is None:
            row.pop()
        if not row:
            empty, effort = empty + 1, effort + (len(given) + _EMPTY_ROW if given else 0)
            if effort > MOST_EMPTY:
                break
            continue
        rows += [[]] * empty
        rows.append(row)
        empty = effort = 0
        width, full = max(width, len(row)), full + 1
        refuse_cells(full, width, origin)
    return [row + [None] * (width - len(row)) if row else row for row in rows], empty if effort > MOST_EMPTY else 0


def header_of(rows: Rows) -> int:
    """The first row that fills at least half of the columns that the rows usually fill."""
    filled = np.array([_filled(row) for row in rows])
    if not (filled > 1).any():
        return 0
    usual = float(np.median(filled[filled > 1]))
    return int(np.flatnonzero(filled >= max(2.0, np.ceil(usual / 2.0)))[0])


def footer_of(rows: Rows) -> int:
    """Where notes below a table begin: at single cells behind an empty row, or that read like a note."""
    end = len(rows)
    while end and _filled(rows[end - 1]) < 2:
        end -= 1
    gap = False
    for place in range(end, len(rows)):
        if not _filled(rows[place]):
            gap = True
            continue
        text = next(str(cell).strip() for cell in rows[place] if not _is_empty(cell))
        if gap or _NOTE.match(text) or len(text.split()) > 3:
            return place
    return len(rows)


def body_of(rows: Rows) -> tuple[Rows, tuple[Remark, ...]]:
    """The header and the rows of a table, without its title, notes and empty rows; and what was left out."""
    from lmemtest.bench.data.forms import Remark

    start = header_of(rows)
    if start and _filled(rows[start - 1]) > 1 and _one_header(rows[start - 1 :])[1]:  # methods above their statistics
        start -= 1
    titles = [row for row in rows[:start] if _filled(row)]
    rows = rows[start:]
    end = footer_of(rows)
    notes = [row for row in rows[end:] if _filled(row)]
    rows, empty = _without_empty(rows[:end])
    rows, joined = _one_header(rows)
    remarks = [
        *([Remark("title", count=len(titles), shown=_text_of(titles[0]))] if titles else []),
        *([Remark("footer", count=len(notes), shown=_text_of(notes[0]))] if notes else []),
        *([Remark("empty", count=empty)] if empty else []),
        *([Remark("header")] if joined else []),
    ]
    return rows, tuple(remarks)


def _without_empty(rows: Rows) -> tuple[Rows, int]:
    """The rows that hold something, and how many between them hold nothing."""
    full = [place for place, row in enumerate(rows) if _filled(row)]
    return [rows[place] for place in full], (full[-1] + 1 - len(full)) if full else 0


def _one_header(rows: Rows) -> tuple[Rows, bool]:
    """A header of two rows, methods above their means and standard deviations, as one."""
    from lmemtest.bench.data.column import is_statistic

    if len(rows) < 3:
        return rows, False
    above, below = rows[0], rows[1]
    cells = [cell for cell in below if not _is_empty(cell)]
    statistics = [cell for cell in cells if isinstance(cell, str) and is_statistic(cell)]
    if len(statistics) < 2 or len(cells) - len(statistics) > 1:
        return rows, False
    names, last = [], None
    for place, cell in enumerate(below):
        name = above[place] if place < len(above) else None
        last = name if not _is_empty(name) else last
        own = isinstance(cell, str) and is_statistic(cell)
        names.append(
            f"{str(last).strip()}_{cell.strip()}" if own and last is not None else name if not _is_empty(name) else cell
        )
    return [names, *rows[2:]], True


def holds_table(rows: Rows) -> bool:
    """Whether a sheet has a header and rows with a number below it."""
    from lmemtest.bench.data.column import number_in

    body, _ = body_of(rows)
    found = ((cell, number_in(cell)) for row in body[1:] for cell in row if not _is_empty(cell))
    return (
        len(body) > 1
        and _filled(body[0]) > 1
        and any(number is not None and number[0] != "missing" for _, number in found)
    )


def chosen(sheets: dict[str, Rows], wanted: str | int | None, origin: str, what: str = "sheet") -> tuple[str, Rows]:
    """The sheet that is asked for by its name or number from 1, or the only one that holds a table."""
    names = list(sheets)
    numbered = listed(f"{place} {name!r}" for place, name in enumerate(names, start=1))
    if wanted is not None:
        text = str(wanted).strip()
        name = text if text in sheets else None
        if name is None and text.isdecimal() and 0 < int(text) <= len(names):
            name = names[int(text) - 1]
        if name is None:
            raise ArgumentError(
                f"The file {origin} has no {what} {wanted!r}. Its {what}s: {numbered}.{suggest(text, names)}"
            )
        return name, sheets[name]
    full = [name for name, rows in sheets.items() if any(map(_filled, rows))]
    found = [name for name in full if holds_table(sheets[name])] if len(full) > 1 else full
    if len(found) == 1:
        return found[0], sheets[found[0]]
    which = (
        f"several hold a table ({listed(map(repr, found))})" if found else "none holds a header with numbers below it"
    )
    raise DataError(
        f"The file {origin} has {len(names)} {what}s ({numbered}), and {which}. Say which: "
        f"{setting('sheet', (found or names)[0])}."
    )


# -------------------------------------------------------------------------------------------------------------- text


def without_frame(text: str, seps: Sequence[str]) -> tuple[str, tuple[Remark, ...]]:
    """Delimited text without the title above its header and the notes below its rows, where these split otherwise."""
    from lmemtest.bench.data.forms import Remark

    head = _complete_lines(text[:_EDGE], len(text) > _EDGE)
    found: tuple[int, str, Rows, list[int]] | None = None
    for sep in seps:
        reader = csv.reader(io.StringIO(head.replace("\0", "")), delimiter=sep)
        rows: Rows = []
        lines: list[int] = []
        try:
            for row in reader:
                rows.append(row)
                lines.append(reader.line_num)
        except csv.Error:
            continue
        start = header_of(rows)
        filled = [_filled(row) for row in rows[start:]]
        width = len(rows[start]) if rows else 0
        if width < 2 or len(rows) - start < 2:
            continue
        if start == 0 and len({len(row) for row in rows if row}) == 1:
            return _without_notes(text, sep, ()) if rows and filled[0] > 1 else (text, ())
        if found is None or width > len(found[2][found[0]]):
            found = (start, sep, rows, lines)
    if found is None:
        return text, ()
    start, sep, rows, lines = found
    titles = [row for row in rows[:start] if _filled(row)]
    if not titles:
        return _without_notes(text, sep, ())
    cut = "\n".join(text.split("\n", lines[start - 1])[lines[start - 1] :])
    return _without_notes(cut, sep, (Remark("title", count=len(titles), shown=_text_of(titles[0])),))


def _complete_lines(text: str, cut: bool) -> str:
    text = text[: text.rfind("\n") + 1] if cut and "\n" in text else text
    return "\n".join(text.split("\n")[:_MOST_LINES])


def _without_notes(text: str, sep: str, remarks: tuple[Remark, ...]) -> tuple[str, tuple[Remark, ...]]:
    """The text without notes in its last lines, and with one header where it has two rows of it."""
    from lmemtest.bench.data.forms import Remark

    top = text[:_EDGE].split("\n", 2)
    if len(top) == 3 and '"' not in top[0] + top[1]:
        header, one = _one_header([line.rstrip("\r").split(sep) for line in top[:2]] + [[top[2][:1]]])
        if one:
            text = f"{sep.join(map(str, header[0]))}\n{text[len(top[0]) + len(top[1]) + 2 :]}"
            remarks = (*remarks, Remark("header"))
    start = max(len(text) - _EDGE, 0)
    start = text.find("\n", start) + 1 if start else 0
    tail = text[start:].rstrip("\n").split("\n")
    if any('"' in line for line in tail[-_MOST_LINES:]) or len(tail) < 2:
        return text, remarks
    last = tail[-_MOST_LINES:] if len(tail) > _MOST_LINES else tail[1:]
    rows: Rows = [line.rstrip("\r").split(sep) for line in last]
    end = footer_of(rows)
    notes = [row for row in rows[end:] if _filled(row)]
    if not notes or end == 0:
        return text, remarks
    kept = tail[: len(tail) - len(last) + end]
    return text[:start] + "\n".join(kept) + "\n", (
        *remarks,
        Remark("footer", count=len(notes), shown=_text_of(notes[0])),
    )


_TABULAR = re.compile(r"\\begin\{(tabular[*xy]?|longtable|tblr)\}")
_COMMENT = re.compile(r"(?<!\\)%.*")
_LINES = re.compile(  # lines and colours of a table, and what stands in square brackets behind a row
    r"\\(?:top|mid|bottom)rule(?:\[[^\]]*\])?|\\hline|\\addlinespace(?:\[[^\]]*\])?|\\end(?:first)?head|\\endfoot"
    r"|\\c(?:mid)?(?:rule|line)(?:\[[^\]]*\])?(?:\([^)]*\))?\{[^}]*\}|\\(?:row|cell)color(?:\[[^\]]*\])?\{[^}]*\}"
)
_ROW_END = re.compile(r"\\\\(?:\*?\[[^\]]*\])?|\\tabularnewline")
_REFERENCE = re.compile(r"~?\\(?:cite\w*|footnote(?:mark)?|ref|label)\*?(?:\[[^\]]*\])*\{[^{}]*\}")
_SPAN = re.compile(r"\\multicolumn\{(\d{1,3})\}\{[^{}]*\}\{(.*)\}", re.DOTALL)
_ROWS_SPAN = re.compile(r"\\multirow(?:\[[^\]]*\])?\{[^{}]*\}(?:\[[^\]]*\])?\{[^{}]*\}\{(.*)\}", re.DOTALL)
_STYLED = re.compile(r"\\(?:text(?:bf|it|sc|tt|rm|sf)|emph|underline|mbox|text|makecell)\{([^{}]*)\}")
_ESCAPED = re.compile(r"\\([%_&#$])")


def latex_tables(text: str) -> list[Rows]:
    r"""The tables of a LaTeX text, without lines, colours, references and styles of names; none without a tabular.

    >>> latex_tables(r"\begin{tabular}{lr} Tool & y \\ \hline \textbf{A}~\cite{a} & $0.9_{\pm 0.1}$ \\ \end{tabular}")
    [[['Tool', 'y'], ['A', '$0.9_{\\pm 0.1}$']]]
    """
    text, tables, end = _COMMENT.sub("", text), list[Rows](), 0
    while begin := _TABULAR.search(text, end):
        end = text.find(f"\\end{{{begin[1]}}}", begin.end())
        if end < 0:
            break
        body = _LINES.sub("", _without_groups(text[begin.end() : end]))
        rows = [_cells_of_latex(line) for line in _ROW_END.split(body) if line.strip()]
        tables.append([row for row in rows if _filled(row)])
    return [rows for rows in tables if rows]


def _without_groups(body: str) -> str:
    """What follows the width, place and columns of a table, which are groups in brackets, one within another."""
    for _ in range(3):
        if (rest := body.lstrip())[:1] not in ("{", "["):
            break
        ends, depth, place = {"{": "}", "[": "]"}[rest[0]], 1, 1
        while depth and place < len(rest):
            depth += (rest[place] == rest[0]) - (rest[place] == ends)
            place += 1
        body = rest[place:]
    return body


def _cells_of_latex(line: str) -> list[str]:
    from lmemtest.bench.data.column import number_in

    cells: list[str] = []
    for cell in re.split(r"(?<!\\)&", line):
        text = " ".join(_REFERENCE.sub("", cell).split())
        span, rows = _SPAN.fullmatch(text), _ROWS_SPAN.fullmatch(text)
        text = span[2] if span else rows[1] if rows else text
        if number_in(text) is None:  # a name: its style is no part of it
            for _ in range(3):  # one within another
                text = _STYLED.sub(r"\1", text)
            text = _ESCAPED.sub(r"\1", text).replace("~", " ").strip()
        cells += [text, *[""] * (int(span[1]) - 1 if span else 0)]
    return cells


def markdown_tables(text: str) -> list[Rows]:
    """The tables of a Markdown text, with or without outer bars; none where no line is a rule below a header."""
    lines, tables, place = text.splitlines(), [], 1
    while place < len(lines):
        if not ("|" in lines[place - 1] and _is_rule(lines[place])):
            place += 1
            continue
        rows = [_cells_of(lines[place - 1])]
        place += 1
        while place < len(lines) and "|" in lines[place] and lines[place].strip():
            rows.append(_cells_of(lines[place]))
            place += 1
        tables.append(rows)
    return tables


def _is_rule(line: str) -> bool:
    cells = line.strip().removeprefix("|").removesuffix("|").split("|")
    return len(cells) > 1 and all(_RULE.fullmatch(cell.strip()) for cell in cells)


def _cells_of(line: str) -> list[str]:
    line = line.strip().removeprefix("|")
    line = line[:-1] if line.endswith("|") and not line.endswith("\\|") else line
    return [_without_bold(cell.strip().replace("\\|", "|")) for cell in re.split(r"(?<!\\)\|", line)]


def _without_bold(cell: str) -> str:
    """A name without the marks that make it bold or slanted; numbers keep them, so that it can be said."""
    from lmemtest.bench.data.column import number_in

    match = re.fullmatch(r"(\*\*|__|\*|_)(.*\w.*)\1", cell)
    return match[2] if match is not None and number_in(cell) is None else cell
