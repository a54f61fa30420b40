"""Names as R and pymer4 write them, from names as this package writes them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from lmemtest.core.words import format_level

# Columns of this package under the names of pymer4.
COLUMNS = {
    "estimate": "Estimate",
    "ci_low": "2.5_ci",
    "ci_high": "97.5_ci",
    "se": "SE",
    "df": "DF",
    "t_ratio": "T-stat",
    "p_value": "P-val",
}

_CODED = re.compile(r"^(?P<factor>.+?)\[(?P<treatment>T\.)?(?P<level>.*)\]$", re.DOTALL)
_OPERATORS = re.compile(r"[-+/*]")  # emmeans puts brackets around a name with one of these
# Words of R's language that cannot be names.
_CONTROL = ("if", "else", "repeat", "while", "function", "for", "next", "break", "in")
_RESERVED = frozenset({*_CONTROL, "TRUE", "FALSE", "NULL", "Inf", "NaN", "NA", "NA_integer_", "NA_real_"})


def coefficient(name: str, numbered: Mapping[str, Sequence[Any]]) -> str:
    """A coefficient of the fixed part: ``(Intercept)``, ``priorgood``, ``algorithm1:budget``."""
    if name == "Intercept":
        return "(Intercept)"
    return ":".join(_atom(part, numbered) for part in _parts(name))


def _parts(name: str) -> list[str]:
    """The factors of an interaction; a colon inside brackets belongs to a level."""
    return re.split(r":(?![^\[]*\])", name)


def _atom(part: str, numbered: Mapping[str, Sequence[Any]]) -> str:
    match = _CODED.match(part)
    if match is None:
        return part
    factor, level = match["factor"], match["level"]
    if factor in numbered and match["treatment"]:
        levels = [format_level(value) for value in numbered[factor]]
        return f"{factor}{levels.index(level)}" if level in levels else f"{factor}{level}"
    return f"{factor}{level}"


def column(name: str) -> str:
    """What R makes of a name of a column, as its ``make.names``."""
    starts_well = re.match(r"[^\W\d_]|\.(?!\d)", name) is not None
    out = re.sub(r"[^\w.]", ".", name if starts_well else f"X{name}")
    return f"{out}." if out in _RESERVED else out


def contrast(left: str, right: str) -> str:
    """A difference as emmeans names it."""
    return f"{bracketed(left)} - {bracketed(right)}"


def bracketed(label: str) -> str:
    """A label in brackets if it holds a sign that could be read as an operation."""
    return f"({label})" if _OPERATORS.search(label) else label


def stars(p: float) -> str:
    """Significance stars."""
    for limit, text in ((0.001, "***"), (0.01, "**"), (0.05, "*"), (0.1, ".")):
        if p < limit:
            return text
    return ""


def numbers(table: pd.DataFrame) -> pd.DataFrame:
    """The columns of numbers that a table has, under pymer4's names and as floats, with stars for its p-values."""
    found = [name for name in COLUMNS if name in table.columns]
    out = table[found].astype(float).rename(columns=COLUMNS)
    return with_stars(out) if "P-val" in out else out


def with_stars(table: pd.DataFrame) -> pd.DataFrame:
    """A table with stars for the p-values as its last column."""
    return table.assign(Sig=pd.Series([stars(p) for p in table["P-val"]], index=table.index, dtype=object))
