"""What the studies say, in words that fit the functions of the package: their arguments instead of those of `Runs`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager

from lmemtest.errors import LmemtestError

# The arguments of the package for the roles of this one.
ARGUMENTS = {
    "score": "loss_var",
    "algorithm": "algorithm_var",
    "benchmark": "benchmark_var",
    "seed": "seed_var",
    "budget": "fidelity_var",
    "metafeature": "metafeature_var",
}
_ROLE = "|".join(ARGUMENTS)
_FIXED = {
    ": runs.filter(...)": "",
    ", for instance with Runs(..., failed='missing') (or 'nonfinite') and runs.score_failures('worst')": "",
    "runs.drop_missing()": "{table}.dropna(subset=[...])",
    " `runs.check()` shows what is missing.": "",
    " (standardize=False, or a third)": "",
    "Give the levels at which both algorithms ran: levels=[...].": "Leave out the rows of such levels.",
    " or make it a metafeature": " or number its levels",
    ": fit_lmm(": ": lmemtest.fit_lmm(",
    "', runs).": "', {table}).",
}


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

    patterns = {
        rf"Runs\((?:table, )?\.\.\., ({_ROLE})=\.\.\.\)": lambda m: f"{function}(..., {ARGUMENTS[m[1]]}=...)",
        r"runs\.filter\(([^()=]+)=[^()]*\)": lambda m: f"{table}[{table}[{m[1]!r}].isin([...])]",
        rf"^({_ROLE})( must (?:be|not be) )": lambda m: f"{ARGUMENTS[m[1]]}{m[2]}",
        rf"^({_ROLE})s? and ({_ROLE}) both name": lambda m: f"{ARGUMENTS[m[1]]} and {ARGUMENTS[m[2]]} both name",
    }
    for pattern, said in patterns.items():
        text = re.sub(pattern, said, text)
    for old, new in _FIXED.items():
        text = text.replace(old, new.format(table=table))
    return text
