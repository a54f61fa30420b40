"""Text on its way out: names stay on one line, without control characters, messages have a bounded length.

A part of a text is shown with carets below it.
"""

from __future__ import annotations

import re
import unicodedata

MOST = 2_000  # characters of a message: a screenful
_HEAD, _TAIL = 1_300, 600  # of a longer one: what is wrong, and the next step
# What the log of a build would take for a command: GitHub at the start of a line, Azure and old GitHub anywhere.
_COMMAND = re.compile(r"^(?=\s*::)|(?<=#)(?=#\w*\[)", re.MULTILINE)


def one_line(text: object) -> str:
    """A name or a sentence without line breaks and characters that cannot be seen, such as those that turn text around.

    Examples
    --------
    >>> one_line("B\\nis better\\x1b[2J")
    'B is better [2J'
    """
    text = str(text)
    return text if text.isprintable() else "".join(c if c.isprintable() else " " for c in text)


def logged(text: str) -> str:
    """Lines for a terminal or a log: nothing that steers either of them is left.

    Examples
    --------
    >>> print(logged("A\\n::error::B"))
    A
    \\::error::B
    """
    lines = text if text.isprintable() else "\n".join(map(one_line, text.split("\n")))
    return _COMMAND.sub(r"\\", lines)


def bounded(message: object) -> object:
    """A message as it is shown, cut in the middle if a value in it is long.

    Examples
    --------
    >>> len(bounded("x" * 100_000)) <= MOST
    True
    """
    if not isinstance(message, str):
        return message
    text = logged(message)
    if len(text) <= MOST:
        return text
    return f"{text[:_HEAD]} ... ({len(text):,} characters) ... {text[-_TAIL:]}"


def point(message: str, text: str, start: int, end: int) -> str:
    """Append a text and a line of carets below one of its parts to `message`; an empty range gets one caret.

    Line breaks and other control characters of the text are shown as spaces.

    Examples
    --------
    >>> print(point("no such column.", "y ~ algoritm", 4, 12))
    no such column.
        y ~ algoritm
            ^^^^^^^^
    """
    line = one_line(text)
    carets = max(_width(line[start:end]), 1)
    return f"{message}\n    {line}\n    {' ' * _width(line[:start])}{'^' * carets}"


def _width(text: str) -> int:
    """Count terminal cells: wide East Asian characters take two, combining marks none."""
    return sum(
        0 if unicodedata.combining(character) else 2 if unicodedata.east_asian_width(character) in "WF" else 1
        for character in text
    )
