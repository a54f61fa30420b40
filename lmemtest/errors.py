"""Exceptions and warnings. Every message names the argument, the rule, the value and the next step."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from lmemtest.core.sanitize import bounded, point


class LmemtestError(Exception):
    """Base of every error that lmemtest raises on purpose; its message has 2,000 characters at most."""

    place: tuple[int, int | None] | None = None  # of a text, until whoever has the text points to it

    def __init__(self, *args: object) -> None:
        super().__init__(*map(bounded, args))

    def at(self, part: Any, text: str | None = None) -> LmemtestError:
        """The same error with its place in a text: that of a token or a part of the tree, or a range.

        The place is shown in the text, once this is given, unless it is of a term that nobody wrote.
        """
        self.place = start, end = part if isinstance(part, tuple) else (part.start, part.end)
        if text is not None:
            self.place = None
            if end != 0:
                self.args = (bounded(point(self.args[0], text, start, len(text) if end is None else end)),)
        return self


class ArgumentError(LmemtestError, ValueError):
    """An argument breaks its rule."""

    # A table whose columns lack roles, the roles that are known, and the call of Python with ``{}`` for all of them:
    # until the function that was called says which they are by names and structure.
    lacks_roles: tuple[Any, Mapping[str, Any], str] | None = None

    def of_columns(self, table: Any, given: Mapping[str, Any], call: str) -> ArgumentError:
        """The same error with the table whose columns need roles."""
        self.lacks_roles = table, given, call
        return self


class DataError(LmemtestError, ValueError):
    """The table cannot be analysed as it is: missing scores, wrong types, nothing to compare."""


class UnknownColumnError(LmemtestError, KeyError):
    """A name is not a column of the table."""

    def __str__(self) -> str:  # KeyError shows repr(message), which hides line breaks and doubles quotes
        return str(self.args[0]) if self.args else ""


class FormulaError(LmemtestError, ValueError):
    """A formula cannot be read; the message points into its text."""


class DesignError(LmemtestError, ValueError):
    """The data cannot identify the model: one level, too few rows, no residual variance."""


class NestingError(LmemtestError, ValueError):
    """Two models that were to be compared are not nested, or not in this order."""


class EstimationError(LmemtestError, ArithmeticError):
    """A numerical step failed: no optimum, a factorisation of an indefinite matrix."""


class WorkerError(LmemtestError, RuntimeError):
    """A process or a machine that shared the work was lost before it answered."""


class MissingFileError(LmemtestError, FileNotFoundError):
    """There is no such file, or it is a folder."""


class DownloadError(LmemtestError, OSError):
    """A data set could not be fetched or is not what it should be."""


class LmemtestWarning(UserWarning):
    """Base of every warning that lmemtest issues; its message has 2,000 characters at most."""

    def __init__(self, *args: object) -> None:
        super().__init__(*map(bounded, args))


class ConvergenceWarning(LmemtestWarning):
    """The optimiser's certificate is not complete."""


class DataWarning(LmemtestWarning):
    """Something in the table deserves a look before its results are trusted."""


@contextmanager
def pointing(text: str) -> Iterator[None]:
    """Errors with a place that are raised below show it in this text.

    Examples
    --------
    >>> try:
    ...     with pointing("y ~ 1:a"):
    ...         raise FormulaError("no such term.").at((4, 7))
    ... except FormulaError as error:
    ...     print(error)
    no such term.
        y ~ 1:a
            ^^^
    """
    try:
        yield
    except LmemtestError as error:
        if error.place is not None:
            error.at(error.place, text)
        raise
