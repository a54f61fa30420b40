"""Delimited text to a frame: csv, tab-separated and the exports of spreadsheets.

What a file says beyond doubt is taken from it: its encoding from its first bytes, its separator from its header, a
decimal comma from numbers that can only be read so. What it does not say is asked for, never guessed.
"""

from __future__ import annotations

import csv
import io
import math
import re
import warnings
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from lmemtest.core.caller import advice, named
from lmemtest.core.words import listed
from lmemtest.errors import ArgumentError, DataError, DataWarning

if TYPE_CHECKING:
    import pandas as pd

    from lmemtest.bench.data.forms import Remark

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
_NAMED = {"tab": "\t", "\\t": "\t", "comma": ",", "semicolon": ";", "space": " "}
_SAMPLE = 1 << 17  # characters of which the separator is read
_LARGEST = 2**63  # of 64-bit integers
_LONGEST_HEADER = 1 << 24  # characters
MOST_COLUMNS = 16_384  # of a sheet of Excel; each takes about 0.5 ms
_WORDS = {"True": True, "False": False}
_BOMS = (  # UTF-32 begins like UTF-16
    (b"\xff\xfe\0\0", "utf-32"),
    (b"\0\0\xfe\xff", "utf-32"),
    (b"\xff\xfe", "utf-16"),
    (b"\xfe\xff", "utf-16"),
    (b"\xef\xbb\xbf", "utf-8-sig"),
)

# A prior called "None" is a level; a score of "None" is missing.
MISSING_NUMBERS = [
    *("", "nan", "NaN", "-nan", "-NaN", "NA", "N/A", "n/a", "#N/A", "<NA>", "null", "NULL", "None"),
]

_COMMA_NUMBER = re.compile(r"[+-]?(?:[0-9]+(?:,[0-9]*)?|,[0-9]+)(?:[eE][+-]?[0-9]+)?")
_THOUSANDS = re.compile(r"[+-]?[1-9][0-9]{0,2}(?:,[0-9]{3})+")  # 1,234 is one number here and another one there


def check_layout(sep: Any, decimal: Any) -> tuple[str | None, str | None]:
    """The separator as one character, and the decimal sign."""
    if sep is not None:
        given = _NAMED.get(sep, sep) if isinstance(sep, str) else sep
        if not (isinstance(given, str) and len(given) == 1 and given not in '"\n\r'):
            raise ArgumentError(f"{named('sep')} must be one character or 'tab', got {sep!r}.")
        sep = given
    if decimal is not None and decimal not in (".", ","):
        raise ArgumentError(f"{named('decimal')} must be '.' or ',', got {decimal!r}.")
    if sep is not None and sep == decimal:
        raise ArgumentError(f"{named('sep')} and {named('decimal')} must differ, got {sep!r} for both.")
    return sep, decimal


def decoded(data: bytes, encoding: str | None, origin: str) -> str:
    """Bytes as text: by the byte order mark, as UTF-8, or as Windows writes it in Western Europe (with a warning)."""
    hint = advice("encoding")
    if encoding is not None:
        try:
            text = data.decode(encoding).removeprefix("\N{ZERO WIDTH NO-BREAK SPACE}")
            text.encode()  # utf-7 and unicode_escape may give halves of characters
            return text
        except (LookupError, TypeError):
            name = named("encoding")
            raise ArgumentError(
                f"{name} must be the name of a text encoding such as 'utf-8', 'latin-1' or 'utf-16', got {encoding!r}."
            ) from None
        except UnicodeError as error:
            raise DataError(f"The file {origin} is not {encoding} text ({_place(error)}). Give another one.") from None
    for mark, name in (*_BOMS, *_utf16_without_mark(data)):
        if data.startswith(mark):
            try:
                return data.decode(name)
            except UnicodeError as error:
                raise DataError(f"The file {origin} is not {name} text ({_place(error)}). Give {hint}.") from None
    try:
        return data.decode("utf-8")
    except UnicodeError as error:
        where = _place(error)
    try:
        text = data.decode("cp1252")
    except UnicodeError:
        raise DataError(
            f"The file {origin} is not UTF-8 text ({where}), nor Windows-1252. Say what it is: {hint}."
        ) from None
    warnings.warn(
        f"The file {origin} is not UTF-8 text ({where}) and was read as Windows-1252 (latin-1). If names look wrong, "
        f"give {hint}.",
        DataWarning,
        stacklevel=2,
    )
    return text


def _place(error: UnicodeError) -> str:
    reason, start = getattr(error, "reason", "it ends too early"), getattr(error, "start", None)
    return reason if start is None else f"{reason} at byte {start:,}"


def _utf16_without_mark(data: bytes) -> list[tuple[bytes, str]]:
    """UTF-16 of mostly Western text has a zero in every second byte."""
    head = data[:400]
    if len(head) < 4 or len(data) % 2:
        return []
    for start, name in ((1, "utf-16-le"), (0, "utf-16-be")):
        zeros, others = head[start::2], head[1 - start :: 2]
        if zeros.count(0) > 0.9 * len(zeros) and not others.count(0):
            return [(b"", name)]
    return []


# ------------------------------------------------------------------------------------------------------ the table


def read_delimited(
    text: str,
    origin: str,
    labels: Sequence[str],
    seeds: Sequence[str],
    sep: str | None,
    decimal: str | None,
    framed: bool = True,
) -> tuple[pd.DataFrame, tuple[Remark, ...]]:
    """A table of text with a header, and what was left out around it; `origin` names the file.

    What is None is what the file says; without `framed` there is nothing around the table.
    """
    import pandas as pd

    from lmemtest.bench.data.sheets import without_frame

    end = text.find("\n")
    if (length := len(text) if end < 0 else end) > _LONGEST_HEADER:
        raise DataError(
            f"The file {origin} has a first line of {length:,} characters, so it is no table with a header. Is it "
            "complete, and its suffix right?"
        )
    text, said = _without_preface(text)
    remarks: tuple[Remark, ...] = ()
    if framed and (sep or said) != " ":
        text, remarks = without_frame(text, [given] if (given := sep or said) else list(SEPARATORS))
    sep = sep or said or _separator(text, origin)
    refuse_width(_width(text, sep), origin)
    options: dict[str, Any] = {"sep": r"\s+" if sep == " " else sep, "keep_default_na": False}
    try:
        columns = pd.read_csv(io.StringIO(text), nrows=0, **options).columns
        named = [name for name in columns if name in labels or name in seeds]
        frame = pd.read_csv(
            io.StringIO(text),
            low_memory=False,  # reading in chunks may guess different types for parts of one column
            dtype=dict.fromkeys(named, str),
            na_values={name: [""] if name in labels else MISSING_NUMBERS for name in columns},
            **options,
        )
    except (pd.errors.ParserError, pd.errors.EmptyDataError, ValueError) as error:
        reason = " ".join(str(error).split())[:200].rstrip(".")
        raise DataError(
            f"The file {origin} cannot be read as csv ({reason}). Is it complete, and its suffix right? Its fields are "
            f"taken to be separated by {SEPARATORS.get(sep, repr(sep))}."
        ) from None
    _refuse_one_column(frame, origin)
    _refuse_repeated_header(text, sep, frame, origin)
    frame = frame.assign(**{name: exact_numbers(frame[name]) for name in named})
    numbers = [name for name in frame.columns if name not in named]
    return _with_decimal_commas(frame, numbers, decimal, text, options, origin), remarks


def _without_preface(text: str) -> tuple[str, str | None]:
    """The text from its header on, and the separator that Excel's first line (``sep=;``) names."""
    said = None
    while True:
        line, newline, rest = text.partition("\n")
        bare = line.strip().strip('"')
        if re.fullmatch(r"(?i)sep=.", bare) and rest:
            said, text = bare[-1], rest
        elif (bare.startswith("#") and newline and rest and not _is_header(bare, rest)) or (
            not bare and newline and rest
        ):
            text = rest
        else:
            return text, said


def _is_header(line: str, rest: str) -> bool:
    """Whether a line that begins with # has as many fields as the line below it: then # belongs to a name."""
    below = rest.partition("\n")[0]
    counts = [(line.count(sep), below.count(sep)) for sep in SEPARATORS]
    return any(above == count > 0 for above, count in counts)


def _separator(text: str, origin: str) -> str:
    """The one separator that splits the header and all lines of the sample alike."""
    sample = text[:_SAMPLE]
    if len(text) > _SAMPLE:
        sample = sample[: sample.rfind("\n") + 1] or sample
    splits: dict[str, bool] = {}
    for sep in SEPARATORS:
        try:
            widths = [len(row) for row in csv.reader(io.StringIO(sample.replace("\0", "")), delimiter=sep) if row]
        except csv.Error:
            continue
        if widths and widths[0] > 1:
            splits[sep] = len(set(widths)) == 1
    fitting = [sep for sep, alike in splits.items() if alike] or list(splits)
    if len(fitting) > 1:
        raise DataError(
            f"The file {origin} may be separated by {' or '.join(SEPARATORS[sep] for sep in fitting)}. Say which: "
            + f"{advice('sep', sep=fitting[0])}.".replace("\t", "tab")
        )
    return fitting[0] if fitting else ","


def _refuse_one_column(frame: pd.DataFrame, origin: str) -> None:
    if len(frame.columns) > 1:
        return
    name = str(frame.columns[0])[:60]
    remedy = (
        f"If blanks separate its fields, give {advice('sep', sep=' ')}."
        if len(name.split()) > 1
        else f"Fields are separated by {', '.join(SEPARATORS.values())}, or by what "
        f"{advice('argument', name='sep')} says."
    )
    raise DataError(
        f"The file {origin} has only one column, {name!r}; runs need at least a score and an algorithm. {remedy}"
    )


def _refuse_repeated_header(text: str, sep: str, frame: pd.DataFrame, origin: str) -> None:
    """pandas renames the second ``loss`` to ``loss.1``, so a repeated name would go unnoticed."""
    import pandas as pd

    if not any(str(name).rpartition(".")[2].isdigit() for name in frame.columns):
        return
    header = pd.read_csv(io.StringIO(text), header=None, nrows=1, dtype=str, sep=r"\s+" if sep == " " else sep)
    refuse_repeated(header.iloc[0].dropna().tolist(), origin)


def refuse_width(count: int, origin: str) -> None:
    """Refuse a table with more columns than a sheet of a spreadsheet can have."""
    if count > MOST_COLUMNS:
        raise DataError(
            f"The file {origin} has {count:,} columns; at most {MOST_COLUMNS:,} are read. Write a row for each score, "
            "with columns for its algorithm, benchmark and seed (pandas.melt), or turn rows and columns around."
        )


def _width(text: str, sep: str) -> int:
    """The number of fields of the first line."""
    end = text.find("\n")
    end = len(text) if end < 0 else end
    if sep == " ":
        return len(text[:end].split())
    most = text.count(sep, 0, end) + 1
    if most <= MOST_COLUMNS or '"' not in text[:end]:
        return most
    try:
        return len(next(csv.reader([text[:end]], delimiter=sep)))
    except csv.Error:
        return most


def refuse_repeated(header: list[str], origin: str) -> None:
    """Every column name occurs once."""
    twice = sorted(name for name, count in Counter(header).items() if count > 1)
    if twice:
        raise DataError(
            f"The file {origin} has more than one column named {listed(map(repr, twice))}; every name "
            f"must occur once. Rename or drop the copies."
        )


# ------------------------------------------------------------------------------------------------- numbers and names


def exact_numbers(texts: pd.Series[Any]) -> pd.Series[Any]:
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


def numbers_of_text(texts: pd.Series[Any], *, ambiguous: bool) -> pd.Series[Any] | None:
    """Text with decimal commas as numbers; None where some entry is none, or could have a comma for thousands.

    With `ambiguous`, 1,234 is a number between 1 and 2.
    """
    import numpy as np
    import pandas as pd

    codes, levels = pd.factorize(texts)
    entries = [str(level).strip() for level in levels]
    commas = [entry for entry in entries if "," in entry]
    if not commas or not all(map(_COMMA_NUMBER.fullmatch, entries)):
        return None
    if not ambiguous and all(map(_THOUSANDS.fullmatch, commas)):
        return None
    values = np.array([*(float(entry.replace(",", ".")) for entry in entries), np.nan])
    return pd.Series(values[codes], index=texts.index, name=texts.name)  # a missing entry has code -1, the last value


def _with_decimal_commas(
    frame: pd.DataFrame, names: list[Any], decimal: str | None, text: str, options: dict[str, Any], origin: str
) -> pd.DataFrame:
    """Columns of numbers with decimal commas as numbers, if one of them leaves no doubt."""
    import pandas as pd

    if decimal == ".":
        return frame
    texts = [name for name in names if not pd.api.types.is_numeric_dtype(frame[name].dtype)]
    certain = {name: numbers_of_text(frame[name], ambiguous=decimal == ",") for name in texts}
    if not any(found is not None for found in certain.values()):
        return frame
    found = {name: numbers_of_text(frame[name], ambiguous=True) for name in texts}
    points = [name for name in names if pd.api.types.is_float_dtype(frame[name].dtype)]
    if points:
        raw = pd.read_csv(io.StringIO(text), usecols=points, dtype=str, **options)
        points = [name for name in points if raw[name].str.contains(".", regex=False, na=False).any()]
    if points:
        first = next(name for name, values in certain.items() if values is not None)
        raise DataError(
            f"The file {origin} has decimal commas in the column {first!r} and points in {points[0]!r}, so it is not "
            "clear what a point means. Write all numbers in one way."
        )
    return frame.assign(**{name: values for name, values in found.items() if values is not None})
