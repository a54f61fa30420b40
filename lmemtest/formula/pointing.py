"""Messages that point into a formula: the sentence, the formula, a caret line under the place.

Examples
--------
>>> print(point("no such column.", "y ~ algoritm", 4, 12))
no such column.
    y ~ algoritm
        ^^^^^^^^
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from lmemtest.words import listed, suggest

_INDENT = "    "


def point(message: str, text: str, start: int, end: int) -> str:
    """Append the formula and a caret line to `message`; an empty range gets one caret.

    Line breaks and other control characters of the formula are shown as spaces.
    """
    shown = "".join(character if character.isprintable() else " " for character in text)
    before = _width(shown[:start])
    carets = max(_width(shown[start:end]), 1)
    return f"{message}\n{_INDENT}{shown}\n{_INDENT}{' ' * before}{'^' * carets}"


def unknown_column(
    name: str, available: Iterable[object], *, text: str, start: int, end: int, role: str = "formula"
) -> str:
    """The message that `name` is not a column, with the columns there are and the nearest one; see `point`."""
    columns = [str(column) for column in available]
    message = (
        f"{role} uses '{name}' (position {start + 1}), not in data. Columns: {listed(columns)}.{suggest(name, columns)}"
    )
    return point(message, text, start, end)


def _width(text: str) -> int:
    """Count terminal cells: wide East Asian characters take two, combining marks none."""
    return sum(
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
    )
