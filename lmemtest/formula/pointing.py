"""Messages that point into a formula: the sentence, the formula, a caret line under the place.

Examples
--------
>>> print(point("no such column.", "y ~ algoritm", 4, 12))
no such column.
    y ~ algoritm
        ^^^^^^^^
"""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable, Sequence

_INDENT = "    "
_LIST_AT_MOST = 30  # names printed in a message; a table of 500 columns must not bury the sentence


def point(message: str, text: str, start: int, end: int) -> str:
    """Append the formula and a caret line to `message`.

    Parameters
    ----------
    message : str
        The sentence above the formula.
    text : str
        The formula as the user wrote it.
    start, end : int
        0-based half-open range of the place; an empty range gets one caret.

    Returns
    -------
    str
        Three lines. Line breaks and other control characters of the formula are shown as spaces.
    """
    shown = "".join(character if character.isprintable() else " " for character in text)
    before = _width(shown[:start])
    carets = max(_width(shown[start:end]), 1)
    return f"{message}\n{_INDENT}{shown}\n{_INDENT}{' ' * before}{'^' * carets}"


def unknown_column(
    name: str, available: Iterable[object], *, text: str, start: int, end: int, role: str = "formula"
) -> str:
    """Say that `name` is not a column, with the columns there are and the nearest one.

    Parameters
    ----------
    name : str
        The name that the formula uses.
    available : iterable
        The columns of the table.
    text, start, end
        As in `point`.
    role : str
        What uses the name, for the start of the sentence.

    Returns
    -------
    str
        The whole message.
    """
    columns = [str(column) for column in available]
    message = (
        f"{role} uses '{name}' (position {start + 1}), not in data. Columns: {listing(columns)}."
        f"{did_you_mean(name, columns)}"
    )
    return point(message, text, start, end)


def did_you_mean(name: str, options: Sequence[str]) -> str:
    """Return " Did you mean 'x'?" for the closest option, or an empty string."""
    folded = {option.casefold(): option for option in reversed(options)}
    close = difflib.get_close_matches(name.casefold(), list(folded), n=1)
    return f" Did you mean '{folded[close[0]]}'?" if close else ""


def listing(names: Sequence[object]) -> str:
    """Join names with commas, cut after thirty."""
    shown = ", ".join(str(name) for name in names[:_LIST_AT_MOST])
    left = len(names) - _LIST_AT_MOST
    return f"{shown}, ... ({left} more)" if left > 0 else shown


def _width(text: str) -> int:
    """Count terminal cells: wide East Asian characters take two, combining marks none."""
    return sum(
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
    )
