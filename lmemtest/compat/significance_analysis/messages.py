"""What the studies say, in words that fit the functions of the package: their arguments instead of those of `Runs`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from lmemtest.errors import LmemtestError

_ARGUMENTS = {
    "score": "loss_var",
    "algorithm": "algorithm_var",
    "benchmark": "benchmark_var",
    "seed": "seed_var",
    "budget": "fidelity_var",
    "metafeature": "metafeature_var",
}
_ROLE = "|".join(_ARGUMENTS)


@contextmanager
def errors_of(function: str, table: str = "data") -> Iterator[None]:
    """Errors name what `function` has."""
    try:
        yield
    except LmemtestError as error:
        text = str(error)
        said = translated(text, function, table)
        if said == text:
            raise
        raise type(error)(said).with_traceback(error.__traceback__) from None


def translated(text: str, function: str, table: str) -> str:
    """A message with the arguments of a function of the package.

    Examples
    --------
    >>> translated("Name the seed column: Runs(table, ..., seed=...).", "fidelity_check", "data")
    'Name the seed column: fidelity_check(..., seed_var=...).'
    """

    def named(match: re.Match[str]) -> str:
        return f"{function}(..., {_ARGUMENTS[match[1]]}=...)"

    def kept(match: re.Match[str]) -> str:
        return f"{table}[{table}[{match[1]!r}].isin([...])]"

    def argument(match: re.Match[str]) -> str:
        return f"{_ARGUMENTS[match[1]]}{match[2]}"

    def both(match: re.Match[str]) -> str:
        return f"{_ARGUMENTS[match[1]]} and {_ARGUMENTS[match[2]]} both name"

    text = re.sub(rf"Runs\((?:table, )?\.\.\., ({_ROLE})=\.\.\.\)", named, text)
    text = re.sub(r"runs\.filter\(([^()=]+)=[^()]*\)", kept, text)
    text = re.sub(rf"^({_ROLE})( must (?:be|not be) )", argument, text)
    text = re.sub(rf"^({_ROLE})s? and ({_ROLE}) both name", both, text)
    for old, new in (
        (": runs.filter(...)", ""),
        ("runs.drop_missing()", f"{table}.dropna(subset=[...])"),
        (" `runs.check()` shows what is missing.", ""),
        (" (standardize=False, or a third)", ""),
        ("Give the levels at which both algorithms ran: levels=[...].", "Leave out the rows of such levels."),
        (" or make it a metafeature", " or number its levels"),
        (": fit_lmm(", ": lmemtest.fit_lmm("),
        ("', runs).", f"', {table})."),
    ):
        text = text.replace(old, new)
    return text
