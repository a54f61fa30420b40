"""What every question answers: one record, shown in one way as sentences, table, data frame and figure."""

from __future__ import annotations

import importlib
import os
import re
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from lmemtest.core.caller import advice
from lmemtest.core.hints import Guided, guess, guided
from lmemtest.core.sanitize import one_line
from lmemtest.core.table import Format, ResultTable, Text
from lmemtest.core.validate import check_choice, check_flag
from lmemtest.core.words import counted
from lmemtest.errors import ArgumentError, DataWarning

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes

MOST_SENTENCES = 15  # in a summary; all are in `sentences()`
if TYPE_CHECKING:
    from typing_extensions import dataclass_transform

    C = TypeVar("C", bound=type)

    @dataclass_transform(kw_only_default=True, frozen_default=True, eq_default=False)
    def result(cls: C) -> C:
        """Make a result of a class."""
        return cls
else:
    # The flags of every result: frozen, slotted, built by keyword, compared by identity, shown by `Result`.
    result = dataclass(repr=False, frozen=True, slots=True, kw_only=True, eq=False)


class Result(Guided):
    """The base of every result: subclasses give the content, this class shows it.

    A question that only has tables returns an `Answer`. A result that can be asked further has a class of its own,
    which is decorated with `result` and gives

    - `title` (property): one line above the table;
    - its data frames, named in `parts` as ``{part: attribute or method}``; the first is the one of ``to_frame()``;
    - `facts` (property), if any: how the table was obtained, below it;
    - `sentences()`, if any: what was found; the first is the headline;
    - `notes` (field), if any: reservations, each with a next step;
    - `formats`, if columns are not to be written by their content;
    - `figure`, the name of its function in `lmemtest.plots`, if it has one;
    - `shown()`, if the printed table is not the whole of ``to_frame()``.
    """

    __slots__ = ()

    parts: ClassVar[Mapping[str, str]] = {"table": "table"}
    formats: ClassVar[Mapping[str, Format]] = {}
    figure: ClassVar[str | None] = None

    @property
    def question(self) -> str:
        """What it is called in messages: its class, or the function that was asked."""
        return type(self).__name__

    @property
    def title(self) -> str:
        """One line above the table."""
        raise NotImplementedError

    @property
    def facts(self) -> tuple[str, ...]:
        """How the table was obtained."""
        return ()

    def sentences(self) -> tuple[str, ...]:
        """What was found, in plain sentences; the first is the headline."""
        return ()

    def headline(self) -> str:
        """What was found, in one sentence; the title where nothing is said."""
        return next(iter(self.sentences()), self.title)

    def to_frame(self, part: str | None = None) -> pd.DataFrame:
        """The values at full precision.

        Parameters
        ----------
        part : str, optional
            Which of the tables, by the names in `parts`; the first by default.

        Returns
        -------
        pandas.DataFrame
            A copy.

        Raises
        ------
        ArgumentError
            If there is no such part.
        """
        name = next(iter(self.parts)) if part is None else check_choice(part, "part", tuple(self.parts))
        content = getattr(self, self.parts[name])
        return content() if callable(content) else content.copy()

    def shown(self) -> pd.DataFrame:
        """The rows and columns that are printed."""
        return self.to_frame()

    def to_table(self) -> ResultTable:
        """The result as a table for text, markdown, html and latex, with what to know below it."""
        notes = (*self.facts, *getattr(self, "notes", ()))
        return ResultTable(self.title, self.shown(), notes=notes, formats=self.formats)

    def to_tables(self) -> tuple[ResultTable, ...]:
        """What is printed, where that is more than one table."""
        return (self.to_table(),)

    @guided
    def to_text(self) -> str:
        """The printed table as text with aligned columns."""
        return "\n\n".join(table.to_text() for table in self.to_tables())

    @guided
    def to_markdown(self) -> str:
        """The printed table as markdown."""
        return "\n\n".join(table.to_markdown() for table in self.to_tables())

    @guided
    def to_html(self) -> str:
        """The printed table as html."""
        return "\n".join(table.to_html() for table in self.to_tables())

    @guided
    def to_latex(self) -> str:
        r"""The printed table as a LaTeX float, which needs ``\usepackage{booktabs}``."""
        return "\n\n".join(table.to_latex() for table in self.to_tables())

    def to_csv(
        self, path: str | os.PathLike[str] | None = None, *, part: str | None = None, escape: bool = True
    ) -> str:
        """The table of `to_frame` as text with commas, all digits.

        Parameters
        ----------
        path : path, optional
            Write it there, too; the name must end in ``.csv``.
        part : str, optional
            Which of the tables; see `to_frame`.
        escape : bool
            Whether texts that a spreadsheet program would evaluate, such as ``=1+1``, get an apostrophe in front.
        """
        return csv_text(self.to_frame(part), path, escape=escape)

    def contents(self) -> dict[str, Any]:
        """What a json file holds, by name: sentences and tables."""
        return {"sentences": list(self.sentences()), **{part: self.to_frame(part) for part in self.parts}}

    def to_json(self) -> str:
        """Tables and sentences as json, all digits."""
        text: str = importlib.import_module("lmemtest.report.files").json_of(self)
        return text

    def summary(self) -> str:
        """The result as text: the table, what to know about it, and the findings."""
        sentences = self.sentences()
        more = len(sentences) - MOST_SENTENCES
        rest = (f"... and {more} more in sentences().",) if more > 0 else ()
        tail = ("", *map(one_line, sentences[:MOST_SENTENCES]), *rest) if sentences else ()
        return Text("\n".join([self.to_table().to_text(), *tail]), self._repr_html_())

    def plot(self, ax: Axes | None = None, **options: Any) -> Axes:
        """Draw the result.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; a figure of its own by default.
        **options
            Of the function in `lmemtest.plots` that `figure` names.

        Returns
        -------
        matplotlib.axes.Axes

        Raises
        ------
        ArgumentError
            If this result has no figure.
        """
        if self.figure is None:
            raise ArgumentError(
                f"{self.question} has no figure; its numbers are in to_frame() and its findings in sentences()."
            )
        draw: Callable[..., Axes] = getattr(importlib.import_module("lmemtest.plots"), self.figure)
        return draw(self, ax=ax, **options)

    def save(self, path: str | os.PathLike[str], *, escape: bool = True) -> Path:
        """Write the result.

        Parameters
        ----------
        path : path
            Its folder must exist; a file that is there is replaced by a complete one only. The suffix says what is
            written: the table with its sentences (.html, .txt; .md and .tex with the figures, if there are any, in a
            folder beside them), all digits (.csv, .json), the figure (.png).
        escape : bool
            For .csv, as in `to_csv`.

        Returns
        -------
        Path
            Where it is now, absolute.

        Raises
        ------
        ArgumentError
            If the suffix is none of these, nothing can be written there, or there is no figure.
        """
        written: Path = importlib.import_module("lmemtest.report.files").save(self, path, escape=escape)
        return written

    def __repr__(self) -> str:
        return str(self.summary())

    def _repr_html_(self) -> str:
        from lmemtest.core.table import html_text

        items = "".join(f"<li>{html_text(sentence)}</li>\n" for sentence in self.sentences()[:MOST_SENTENCES])
        return self.to_table().to_html() + (f"\n<ul>\n{items}</ul>" if items else "")


@result
class Answer(Result):
    """What a question answers that only has tables: they and the words on them, and no class of its own.

    Attributes
    ----------
    question : str
        The function that was asked, such as "audit".
    title : str
    tables : dict of str to pandas.DataFrame
        By name; the first is the one of ``to_frame()``.
    values : dict of str to object
        Single numbers, names and settings; each is an attribute, too, as is each table.
    facts, findings, notes : tuple of str
        How it was obtained; what was found, as ``sentences()`` gives it; reservations.
    printed : pandas.DataFrame or None
        The rows and columns to print, where not the whole of ``to_frame()``.
    formats, figure
        As in `Result`.

    Examples
    --------
    >>> import pandas as pd
    >>> answer = Answer(
    ...     question="wins",
    ...     title="Wins",
    ...     tables={"wins": pd.DataFrame({"algorithm": ["HB", "RS"], "n": [3, 1]})},
    ...     values={"n_benchmarks": 4},
    ...     findings=("HB wins on 3 of 4 benchmarks.",),
    ... )
    >>> answer.n_benchmarks, answer.sentences()
    (4, ('HB wins on 3 of 4 benchmarks.',))
    """

    question: str
    title: str
    tables: Mapping[str, pd.DataFrame]
    values: Mapping[str, Any] = field(default_factory=dict)
    facts: tuple[str, ...] = ()
    findings: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    printed: pd.DataFrame | None = None
    formats: Mapping[str, Format] = field(default_factory=dict)  # type: ignore[misc]
    figure: str | None = None  # type: ignore[misc]

    def sentences(self) -> tuple[str, ...]:
        """What was found, in plain sentences; the first is the headline."""
        return self.findings

    @property
    def parts(self) -> Mapping[str, str]:  # type: ignore[override]
        """The names of the tables."""
        return {name: name for name in self.tables}

    def to_frame(self, part: str | None = None) -> pd.DataFrame:
        """A copy of one of the tables, by its name; of the first by default."""
        name = next(iter(self.tables)) if part is None else check_choice(part, "part", tuple(self.tables))
        return self.tables[name].copy()

    def shown(self) -> pd.DataFrame:
        """The rows and columns that are printed."""
        return self.to_frame() if self.printed is None else self.printed.copy()

    def __dir__(self) -> list[str]:
        return sorted({*Result.__dir__(self), *self.tables, *self.values})

    def __getattr__(self, name: str) -> Any:
        if not name.startswith("_"):
            for named in (self.values, self.tables):
                if name in named:
                    return named[name]
        return guess(self, name)


# What a spreadsheet program takes for a formula: OWASP's list, full-width signs included; a number is none.
_FORMULA = re.compile(r"[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20](?!$)")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?inf")


def csv_text(frame: pd.DataFrame, path: str | os.PathLike[str] | None = None, *, escape: bool = True) -> str:
    """A frame as text with commas, which is written to a path, if there is one.

    Texts that a spreadsheet program would evaluate get an apostrophe in front, names of columns included, and a warning
    says how many. Texts that are numbers, and numbers, stay as they are.

    Examples
    --------
    >>> import pandas as pd
    >>> print(csv_text(pd.DataFrame({"a": ["-1.5", "-", "=1+1"]}), escape=False), end="")
    a
    -1.5
    -
    =1+1
    """
    text: str = (_without_formulas(frame) if check_flag(escape, "escape") else frame).to_csv(
        index=False, lineterminator="\n"
    )
    if path is not None:
        files = importlib.import_module("lmemtest.report.files")
        files.write_atomically(files.check_report_path(path, (".csv",)), text)
    return text


def _without_formulas(frame: pd.DataFrame) -> pd.DataFrame:
    """The frame, or a copy in which no text is a formula."""
    import pandas as pd

    columns, count = [], 0
    for place in range(frame.shape[1]):
        column = frame.iloc[:, place]
        formulas = [] if pd.api.types.is_numeric_dtype(column.dtype) else [_is_formula(value) for value in column]
        if any(formulas):
            texts = [f"'{value}" if formula else value for value, formula in zip(column, formulas, strict=True)]
            column = pd.Series(texts, index=frame.index, dtype=object)
        columns.append(column)
        count += sum(formulas)
    names = [_is_formula(name) for name in frame.columns]
    count += sum(names)
    if not count:
        return frame
    escaped = pd.concat(columns, axis=1)
    escaped.columns = pd.Index(
        [f"'{name}" if formula else name for name, formula in zip(frame.columns, names, strict=True)]
    )
    warnings.warn(
        f"{counted(count, 'text')} of the csv begin{'s' * (count == 1)} with =, +, -, @ or a tab, which spreadsheet "
        f"programs evaluate: an apostrophe is written in front. {advice('escape')} leaves it out.",
        DataWarning,
        stacklevel=4,
    )
    return escaped


def _is_formula(value: Any) -> bool:
    return isinstance(value, str) and _FORMULA.match(value) is not None and _NUMBER.fullmatch(value) is None
