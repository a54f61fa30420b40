r"""A column as somebody wrote it: what its name says, and what its cells hold.

Cells are numbers as papers and spreadsheets print them: ``85.3 ± 0.4``, ``85.3 (0.4)``, ``91.3%``, ``\textbf{85.3}``.
"""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pandas as pd

from lmemtest.bench.data.roles import direction_of, role_of, sums_up, words_of
from lmemtest.core.words import is_missing

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["Column", "number_in", "read_columns"]

MISSING_CELLS = frozenset(["", "-", "--", "---", "–", "—", "nan", "na", "n/a", "#n/a", "<na>", "none", "null"])
_LONGEST = 500  # characters of a number with marks; the patterns take the square of it
LARGEST = 10**300  # of whole numbers that are read as scores
_MARKS = (
    r"(?:\\(?:textbf|mathbf|boldsymbol|bm|bfseries|bf|underline|uline|emph|textit|mathit|mathrm|ensuremath|scriptstyle|scriptsize|small|tiny)(?![a-zA-Z])"
    r"|\\(?:dagger|ddagger|ast|star|dag|ddag)(?![a-zA-Z])|</?(?:b|i|u|em|strong)>|[*${}†‡§¶]|\s|\\[,;:!]|~)+"
)
# What stands between two digits is never taken away: 85.3 2 and 85.3*2 are not 85.32.
_MARKUP = re.compile(rf"(?<![\d.]){_MARKS}|{_MARKS}(?![\d.])")
_RAISED = re.compile(r"\^\{[^\d{}]*\}|\^[*†‡§¶a-zA-Z]")
_PM = re.compile(r"_?\{?\s*(?:\\[a-zA-Z]*pm(?![a-zA-Z])|\+/-|\+-|±)")
_THOUSANDS = re.compile(r"[1-9]\d{0,2}(?:,\d{3})+")
_COMMA = re.compile(r"(?<=\d),(?=\d)")
_NUMBER = r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_CELL = re.compile(rf"({_NUMBER})%?(?:±({_NUMBER})%?|\(±?({_NUMBER})%?\)%?|\[({_NUMBER})%?[,;]({_NUMBER})%?\]%?)?")


@dataclass(frozen=True, eq=False)
class Column:
    """A column of a table as it was written; what is asked of it is found out once.

    Attributes
    ----------
    values : pandas.Series
        Its cells.
    decimal : {".", ","} or None
        The decimal sign; by default commas are one where they can be nothing else.
    numbers : (n,) float
        Its cells as numbers, those with ± without what stands behind it; NaN where there is none.
    kinds : dict of str to int
        Cells that are "plain" numbers, have a "spread", "percent" or other "markup".
    shown : dict of str to str
        One cell of each kind.
    words : dict of str to int
        Entries that are no number, with their counts.
    """

    values: pd.Series[Any]
    decimal: str | None = None

    # ------------------------------------------------------------------ its name

    @property
    def name(self) -> str:
        """As the table has it."""
        return str(self.values.name)

    @cached_property
    def words_of_name(self) -> frozenset[str]:
        """The words of its name, in the singular and lower case."""
        return frozenset(words_of(self.name))

    @cached_property
    def role(self) -> str | None:
        """The role that its name says; None where it says none."""
        return role_of(self.name)

    @cached_property
    def direction(self) -> Literal["minimize", "maximize"] | None:
        """Which scores are good, if its name says so."""
        return direction_of(self.name)

    @cached_property
    def sums_up(self) -> bool:
        """Whether its name is that of a summary of other columns."""
        return sums_up(self.name)

    # ------------------------------------------------------------------ its cells

    @cached_property
    def is_numeric(self) -> bool:
        """Whether it holds numbers, or true and false."""
        return pd.api.types.is_numeric_dtype(self.values.dtype)

    @property
    def measures(self) -> bool:
        """Whether it holds numbers that are more than true and false."""
        return self.is_numeric and not pd.api.types.is_bool_dtype(self.values.dtype)

    @cached_property
    def is_text(self) -> bool:
        """Whether it holds neither numbers nor dates."""
        dtype = self.values.dtype
        return not (self.is_numeric or pd.api.types.is_datetime64_any_dtype(dtype) or dtype.kind in "mM")

    @cached_property
    def counts(self) -> bool:
        """Whether it may number rows or runs: dates, or whole numbers that are not only 0 and 1."""
        if not self.is_numeric:
            return not self.is_text
        return self.is_whole and not np.isin(self.floats[np.isfinite(self.floats)], (0.0, 1.0)).all()

    @cached_property
    def is_whole(self) -> bool:
        """Whether it holds whole numbers."""
        values = self.floats[np.isfinite(self.floats)] if self.is_numeric else np.zeros(0)
        return bool(len(values) and (values == np.rint(values)).all())

    @cached_property
    def is_nested(self) -> bool:
        """Whether cells hold lists or records."""
        inner = (list, dict, set, tuple, np.ndarray)
        return self.values.dtype == object and any(isinstance(value, inner) for value in self.values)

    @cached_property
    def n_levels(self) -> int:
        """How many different values it holds."""
        return self.values.nunique()

    @cached_property
    def floats(self) -> NDArray[np.float64]:
        """A column of numbers, NaN where one is missing."""
        return self.values.to_numpy(dtype=float, na_value=np.nan)

    @cached_property
    def _read(self) -> tuple[NDArray[np.float64], dict[str, int], dict[str, str], dict[str, int]]:
        codes, levels = pd.factorize(self.values.astype(object))
        counts = np.bincount(codes[codes >= 0], minlength=len(levels))
        commas = _decimal_commas([level for level in levels if isinstance(level, str)], self.decimal)
        numbers = np.full(len(levels) + 1, np.nan)
        kinds: Counter[str] = Counter()
        shown: dict[str, str] = {}
        words: dict[str, int] = {}
        for place, level in enumerate(levels):
            found = number_in(level, commas=commas)
            if found is None:
                words[str(level)] = int(counts[place])
                continue
            kind, numbers[place], _ = found
            if kind != "missing":
                kinds[kind] += int(counts[place])
                shown.setdefault(kind, str(level).strip())
        return numbers[codes], dict(kinds), shown, words  # code -1 is the last number

    @property
    def numbers(self) -> NDArray[np.float64]:
        return self._read[0]

    @property
    def kinds(self) -> dict[str, int]:
        return self._read[1]

    @property
    def shown(self) -> dict[str, str]:
        return self._read[2]

    @property
    def words(self) -> dict[str, int]:
        return self._read[3]

    @property
    def n_numbers(self) -> int:
        """Cells that hold a number."""
        return int(np.isfinite(self.numbers).sum())

    @property
    def mostly(self) -> bool:
        """Whether at least as many cells hold a number as hold a word."""
        return self.n_numbers >= sum(self.words.values()) and self.n_numbers > 0

    # ------------------------------------------------------------------ others made of it

    def first(self, n: int) -> Column:
        """Its first rows."""
        return replace(self, values=self.values.head(n))

    def at(self, rows: NDArray[np.intp]) -> Column:
        """Some rows, by their places."""
        return replace(self, values=self.values.iloc[rows].reset_index(drop=True))

    def as_numbers(self) -> Column:
        """The numbers in its cells."""
        return replace(self, values=pd.Series(self.numbers, index=self.values.index, name=self.values.name))


def read_columns(table: pd.DataFrame, decimal: str | None = None) -> dict[str, Column]:
    """The columns of a table by their names.

    >>> column = read_columns(pd.DataFrame({"test accuracy": ["0.91 ± 0.02", "**0.93**", "TIMEOUT"]}))["test accuracy"]
    >>> column.direction, column.kinds, column.words
    ('maximize', {'spread': 1, 'markup': 1}, {'TIMEOUT': 1})
    """
    return {name: Column(table[name], decimal) for name in table.columns}


def number_in(value: Any, *, commas: bool = False) -> tuple[str, float, float] | None:
    """The kind of a cell, its number and what stands behind it; None for a word.

    A cell with a comma is a word, unless commas are decimal signs.

    >>> number_in("85.3 ± 0.4"), number_in("**0.91**"), number_in("91.3 %"), number_in("TIMEOUT")
    (('spread', 85.3, 0.4), ('markup', 0.91, nan), ('percent', 91.3, nan), None)
    """
    if is_missing(value):
        return "missing", np.nan, np.nan
    if isinstance(value, (bool, np.bool_)):
        return None
    if isinstance(value, (int, float, np.integer, np.floating)):
        return ("plain", float(value), np.nan) if not LARGEST < abs(value) < np.inf else None
    text = str(value).strip()
    if text.lower() in MISSING_CELLS:
        return "missing", np.nan, np.nan
    if commas:
        text = _COMMA.sub(".", text)
    try:
        number = float(text) if "_" not in text else np.nan  # Python reads 1_0 as 10
    except ValueError:
        number = np.nan
    if number == number:
        return "plain", number, np.nan
    if len(text) > _LONGEST:
        return None
    plain = _RAISED.sub("", text.replace("\N{MINUS SIGN}", "-").replace("\\%", "%"))
    plain = _MARKUP.sub("", _PM.sub("±", plain)).strip("_")
    if plain.lower() in MISSING_CELLS:
        return "missing", np.nan, np.nan
    match = _CELL.fullmatch(plain)
    if match is None:
        return None
    mean, behind = float(match[1]), [float(part) for part in match.groups()[1:] if part]
    spread = np.nan if not behind else behind[0] if len(behind) == 1 else abs(behind[1] - behind[0]) / 2.0
    kind = "percent" if "%" in plain else "spread" if behind else "markup"
    return (kind, mean, spread) if np.isfinite(mean) else None


def _decimal_commas(texts: list[str], decimal: str | None) -> bool:
    """Whether commas in these cells are decimal signs: as was said, or because they can be nothing else."""
    with_comma = [text for text in texts if _COMMA.search(text) and not re.search(r"\[.*,.*\]", text)]
    if decimal is not None or not with_comma:
        return decimal == ","
    return not (any(re.search(r"\d\.\d", text) for text in texts) or all(map(_THOUSANDS.search, with_comma)))
