"""The language of advice: Python for those who call the package in Python, options for those at the command line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

__all__ = ["in_words_of", "on_command_line"]

_COMMAND_LINE: ContextVar[bool] = ContextVar("lmemtest_command_line", default=False)


@contextmanager
def on_command_line() -> Iterator[None]:
    """Give advice in options of the command line within this context; `cli` enters it."""
    token = _COMMAND_LINE.set(True)
    try:
        yield
    finally:
        _COMMAND_LINE.reset(token)


def in_words_of(*, python: str, command_line: str) -> str:
    """The one of two wordings of the same advice that the caller can type.

    Examples
    --------
    >>> words = {"python": "runs.normalize('rank')", "command_line": "--normalize rank"}
    >>> in_words_of(**words)
    "runs.normalize('rank')"
    >>> with on_command_line():
    ...     in_words_of(**words)
    '--normalize rank'
    """
    return command_line if _COMMAND_LINE.get() else python
