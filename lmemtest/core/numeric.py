"""Whether a column holds numbers, and what to do where it does not."""

from __future__ import annotations

import re
from typing import Any

import narwhals as nw

from lmemtest.core.caller import advice, named
from lmemtest.core.frames import collected
from lmemtest.core.words import listed
from lmemtest.errors import DataError

__all__ = ["check_numeric", "example_value"]


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
        f"{named(argument)} must be a numeric column, but {name!r} has type {_dtype_name(table, name)} "
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
