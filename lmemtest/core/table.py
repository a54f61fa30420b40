"""One table, rendered for every audience: terminal, markdown, HTML, LaTeX, DataFrame."""

from __future__ import annotations

import html
import math
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest.core.rounding import same_rounding, written
from lmemtest.core.sanitize import logged, one_line
from lmemtest.core.tex import LONG_WORD, tex_text, tex_width
from lmemtest.core.words import DIGITS, MISSING, exponent, format_p, is_missing

if TYPE_CHECKING:
    import pandas as pd


class Text(str):
    """A text that prompts and notebooks show as it reads: without quotes, with its line breaks, or as html."""

    __slots__ = ("html",)
    html: str

    def __new__(cls, text: str, html: str = "") -> Text:
        self = super().__new__(cls, logged(text))
        self.html = html
        return self

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return self.html or f"<pre>{html_text(self)}</pre>"


_NOTHING = 1e-14  # of the largest number of a column

Format = str | Callable[[Any], str]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ResultTable:
    """A titled table that renders itself.

    Parameters
    ----------
    title : str
        One line above the table.
    frame : pandas.DataFrame
        The values, at full precision; the index is not shown.
    notes : tuple of str
        Sentences below the table.
    formats : mapping of str to str or callable, optional
        How to write the values of a column: a format specification (``".3f"``), ``"p"`` for p-values, or a
        function of one value.  Other columns are formatted by their content: p-values (by name) with
        three decimals, floats with the same number of decimals in a whole column.

    Examples
    --------
    >>> import pandas as pd
    >>> frame = pd.DataFrame({"algorithm": ["HB", "RS"], "mean": [0.25, 10.5], "p_value": [0.2, 1e-5]})
    >>> print(ResultTable("Means", frame, notes=("Lower is better.",)).to_text())
    Means
    algorithm   mean  p_value
    ---------  -----  -------
    HB          0.25    0.200
    RS         10.50   <0.001
    Lower is better.
    """

    title: str
    frame: pd.DataFrame
    notes: tuple[str, ...] = ()
    formats: Mapping[str, Format] | None = None

    def to_frame(self) -> pd.DataFrame:
        """The values at full precision, as a copy."""
        return self.frame.copy()

    def to_text(self) -> str:
        """Aligned columns for a terminal."""
        columns = [_aligned([one_line(name), *map(one_line, cells)], right) for name, cells, right in self.rendered()]
        lines = ["  ".join(row).rstrip() for row in zip(*columns, strict=True)]
        if columns:
            lines.insert(1, "  ".join("-" * _width(column[0]) for column in columns))
        if columns and not len(self.frame):
            lines.append("(no rows)")
        return logged("\n".join([*([one_line(self.title)] if self.title else []), *lines, *map(one_line, self.notes)]))

    def to_markdown(self) -> str:
        """A pipe table, with everything that markdown would interpret escaped."""
        columns = self.rendered()
        rows = [[markdown_text(name) for name, _, _ in columns]]
        rows.append(["---:" if right else ":---" for _, _, right in columns])
        rows += [[markdown_text(cell) for cell in row] for row in self._rows(columns)]
        parts = [f"**{markdown_text(self.title)}**"] if self.title else []
        parts.append("\n".join(f"| {' | '.join(row)} |" for row in rows))
        return "\n\n".join([*parts, *(markdown_text(note) for note in self.notes)])

    def to_html(self) -> str:
        """A ``<table class="lt-table">`` with scoped headers; all text is escaped."""
        columns = self.rendered()
        head = "".join(
            f'<th scope="col"{_NUMERIC if right else ""}>{html_text(name)}</th>' for name, _, right in columns
        )
        body = "".join(f"<tr>{self._html_row(row, columns)}</tr>\n" for row in self._rows(columns))
        caption = f"<caption>{html_text(self.title)}</caption>\n" if self.title else ""
        notes = "".join(
            f'<tr><td colspan="{max(len(columns), 1)}">{html_text(note)}</td></tr>\n' for note in self.notes
        )
        foot = f"<tfoot>\n{notes}</tfoot>\n" if notes else ""
        return (
            f'<table class="lt-table">\n{caption}<thead>\n<tr>{head}</tr>\n</thead>\n'
            f"<tbody>\n{body}</tbody>\n{foot}</table>"
        )

    def to_latex(self, *, label: str = "", characters: int = 95, pages: bool = False) -> str:
        """A booktabs table (``\\usepackage{booktabs}``), with all text escaped.

        Parameters
        ----------
        label : str
            What ``\\ref`` takes; none by default.
        characters : int
            About how many fit on a line; a table that is wider gets smaller letters and columns of several lines, and
            what does not fit then goes on below, beside the first column again.
        pages : bool
            Whether many rows may go on over several pages (``\\usepackage{longtable}``); else the table is a float.
        """
        columns = self.rendered()
        parts = _side_by_side(columns, characters)
        if len(parts) > 1:
            last, texts = len(parts), []
            for place, part in enumerate(parts, 1):
                heading = f"{self.title} ({place} of {last})" if self.title else ""
                below = self.notes if place == last else ()
                one = replace(self, title=heading, frame=self.frame.iloc[:, part], notes=below)
                texts.append(one.to_latex(label=label * (place == 1), characters=characters, pages=pages))
            return "\n\n".join(texts)
        size, spec, rooms = _columns_of_a_line(columns, characters)

        # \\ is another command in the ragged lines of a last column
        end = r" \\" if not rooms or math.isinf(rooms[-1]) else r" \tabularnewline"

        def line(texts: Iterable[str]) -> str:
            cells = zip(texts, columns, rooms, strict=True)
            return " & ".join(_latex_cell(text, right, room) for text, (_, _, right), room in cells) + end

        header, rows = line(name for name, _, _ in columns), self._rows(columns)
        body = [r"\toprule", header, r"\midrule", *map(line, rows), r"\bottomrule"]
        caption = [rf"\caption{{{tex_text(self.title)}}}"] if self.title else []
        caption += [rf"\label{{{label}}}"] if label else []
        notes = [rf"\par\smallskip{{\footnotesize\raggedright {tex_text(note)}\par}}" for note in self.notes]
        lines = sum(max(map(_lines_of_a_cell, row, rooms)) for row in rows)
        if pages and lines > _PAGE:
            body.insert(3, r"\endhead")
            title = ["".join(caption) + r"\\"] if caption else []
            table = [rf"{{{size}\begin{{longtable}}{{{spec}}}", *title, *body, r"\end{longtable}}"]
            return "\n".join([*table, *notes])
        top = [r"\begin{table}", r"\centering", *caption, *([size] if size else []), rf"\begin{{tabular}}{{{spec}}}"]
        return "\n".join([*top, *body, r"\end{tabular}", *notes, r"\end{table}"])

    def __repr__(self) -> str:
        return self.to_text()

    def _repr_html_(self) -> str:
        return self.to_html()

    def rendered(self) -> list[tuple[str, list[str], bool]]:
        """Each column as its name, its cells as text, and whether it is aligned to the right."""
        formats = self.formats or {}
        columns = []
        for name, column in self.frame.items():
            columns.append((str(name), *_format_column(column, str(name), formats.get(str(name)))))
        return columns

    @staticmethod
    def _rows(columns: list[tuple[str, list[str], bool]]) -> list[tuple[str, ...]]:
        return list(zip(*(cells for _, cells, _ in columns), strict=True))

    @staticmethod
    def _html_row(row: tuple[str, ...], columns: list[tuple[str, list[str], bool]]) -> str:
        cells = []
        for position, (cell, (_, _, right)) in enumerate(zip(row, columns, strict=True)):
            if position == 0 and not right:
                cells.append(f'<th scope="row">{html_text(cell)}</th>')
            else:
                cells.append(f"<td{_NUMERIC if right else ''}>{html_text(cell)}</td>")
        return "".join(cells)


_NUMERIC = ' class="lt-num"'
_P_NAME = re.compile(r"(?:^|_)(?:p|pvalue|p_value|p_raw|p_adj)$")


def _format_column(column: pd.Series[Any], name: str, fmt: Format | None) -> tuple[list[str], bool]:
    from pandas.api.types import is_bool_dtype, is_complex_dtype, is_numeric_dtype

    values = list(column)
    numeric = is_numeric_dtype(column.dtype) and not (is_bool_dtype(column.dtype) or is_complex_dtype(column.dtype))
    if fmt is None and numeric and _P_NAME.search(name.lower()):
        fmt = "p"
    if fmt == "p":
        write: Callable[[Any], str] = format_p
    elif callable(fmt):
        write = fmt
    elif fmt is not None:
        write = _by(fmt)
    elif numeric:
        write = _number_writer(column)
    else:
        write = str
    return [MISSING if is_missing(value) else write(value) for value in values], numeric


def _number_writer(column: pd.Series[Any]) -> Callable[[Any], str]:
    """One way of writing for all numbers of a column, so that they can be compared by eye."""
    from pandas.api.types import is_integer_dtype

    if is_integer_dtype(column.dtype):
        return lambda value: str(int(value))
    values = np.abs(column.dropna().to_numpy(dtype=float))
    values = values[np.isfinite(values)]
    largest = values.max(initial=0.0)
    values = values[values > _NOTHING * largest]  # rounding noise beside a number is a zero
    if not len(values):
        return lambda value: written(value, ".0f")
    smallest = values.min()
    if largest / smallest > 1e6 or largest >= 1e9 or largest < 1e-5:
        scientific = _by(f".{DIGITS - 1}e")
        return lambda value: "0" if abs(value) <= _NOTHING * largest else scientific(value)
    return _by(".0f" if same_rounding(values, 0) else f".{_decimals(values)}f")


def _by(spec: str) -> Callable[[Any], str]:
    return lambda value: written(value, spec)


def _decimals(values: np.ndarray) -> int:
    """Decimals that show four digits of the largest value, two of the smallest, and none in vain."""
    exponents = np.array([exponent(value) for value in values])
    wanted = int(max(DIGITS - 1 - exponents.max(), 1 - exponents.min(), 0))
    while wanted > 0 and same_rounding(values, wanted - 1):
        wanted -= 1
    return wanted


def _width(text: str) -> int:
    """Columns that a text takes in a terminal: two for wide (CJK) characters, none for combining marks."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _aligned(cells: list[str], right: bool) -> list[str]:
    widest = max(map(_width, cells))
    padding = [" " * (widest - _width(cell)) for cell in cells]
    return [pad + cell if right else cell + pad for pad, cell in zip(padding, cells, strict=True)]


_PAGE = 36  # lines of a table that a page of LaTeX holds
# Digits on a line against those of the usual size (5.1 points wide, then 4.3 and 4.0), and digits between two columns.
_SIZES = (("", 1.0, 2.5), (r"\footnotesize", 1.18, 2.9), (r"\scriptsize\setlength{\tabcolsep}{2.5pt}", 1.26, 1.3))
_LEAST, _BROKEN = 12, 10  # characters of a column of several lines, at the least; and of one whose words are broken
_MINUS = 0.6  # of a digit, by which a minus is wider


def _needs(columns: Sequence[tuple[str, list[str], bool]]) -> tuple[list[float], list[float]]:
    """For LaTeX: characters of each column in one line per cell, and at the least in cells of several lines."""
    widths, least = [], []
    for name, cells, right in columns:
        minus = _MINUS * (right and any(cell.startswith("-") for cell in cells))
        widths.append(max(1, *map(tex_width, (name, *cells))) + minus)
        word = max(tex_width(word) for text in (name, *cells) for word in text.split(" ")) + minus
        least.append(min(widths[-1], max(_LEAST, min(word, LONG_WORD))))
    return widths, least


def _side_by_side(columns: Sequence[tuple[str, list[str], bool]], characters: int) -> list[list[int]]:
    """Which columns are on a line of LaTeX together: all, or as many as fit, each time beside the first."""
    least = [min(one, _BROKEN) for one in _needs(columns)[1]]  # long words are broken before a table is
    _, gain, between = _SIZES[-1]
    parts: list[list[int]] = [[0]]
    for i in range(1, len(columns)):
        if len(parts[-1]) > 1 and sum(least[j] + between for j in (*parts[-1], i)) - between > gain * characters:
            parts.append([0])
        parts[-1].append(i)
    return parts


def _columns_of_a_line(columns: Sequence[tuple[str, list[str], bool]], characters: int) -> tuple[str, str, list[float]]:
    """For LaTeX: the size of the letters, how columns are set so that a line holds them all, and their characters."""
    widths, least = _needs(columns)
    count, gaps = len(columns), len(columns) - 1
    fitting = [(*of, True) for of in _SIZES if sum(widths) + of[2] * gaps <= of[1] * characters]
    fitting += [(*of, True) for of in _SIZES if sum(least) + of[2] * gaps <= of[1] * characters]
    size, gain, between, whole_words = fitting[0] if fitting else (*_SIZES[-1], False)
    least = least if whole_words else [min(one, _BROKEN) for one in least]
    left, later, rooms = gain * characters - between * gaps, sum(least), [float("inf")] * count
    spec = ["r" if right else "l" for _, _, right in columns]
    for place, i in enumerate(sorted(range(count), key=lambda i: widths[i])):  # the narrow ones take no more
        later -= least[i]
        share = max(least[i], min(left / (count - place), left - later))
        if widths[i] > share:
            rooms[i], spec[i] = share, rf"p{{{share / (gain * characters):.3f}\linewidth}}"
        left -= min(widths[i], share)
    return size, f"@{{}}{''.join(spec)}@{{}}", rooms  # rules end where the columns do


def _lines_of_a_cell(text: str, room: float) -> int:
    """About how many: words leave a fifth of a ragged line empty."""
    return max(1, math.ceil(tex_width(text) / (0.8 * room)))


def _latex_cell(text: str, right: bool, room: float) -> str:
    """A cell of LaTeX, in a column of one line or of lines of some characters."""
    if math.isinf(room):
        return tex_text(text, numeric=right)
    ragged = r"\raggedleft" if right else r"\raggedright"
    return f"{ragged} {tex_text(text, numeric=right, longest=int(room))}"


def markdown_text(text: str) -> str:
    """Text on one line, with everything that markdown would interpret escaped."""
    text = html.escape(one_line(text), quote=False)
    text = re.sub(r"([\\`*|\[\]~$])", r"\\\1", text)
    return re.sub(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])", r"\\_", text)  # inside a word it is plain


def html_text(text: str) -> str:
    return html.escape("".join(c if c.isprintable() or c in "\n\t" else "�" for c in text))
