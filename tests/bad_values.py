"""Kinds of bad value, what comes out of a call with each of them in each argument, and in which words.

A bad value that an argument may have (True for a flag, 3 for a count) is recognised by the annotation; what else is
legitimate stands in `FINE`, with the reason.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import io
import re
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pandas as pd

from lmemtest.errors import LmemtestError, LmemtestWarning


class Thing:
    """An object that means nothing to anybody; its text does not change between runs."""

    def __repr__(self) -> str:
        return "Thing()"


BAD: dict[str, Any] = {
    "None": None,
    "True": True,
    "zero": 0,
    "minus one": -1,
    "three": 3,
    "half": 0.5,
    "huge": 10**12,
    "nan": float("nan"),
    "infinity": float("inf"),
    "empty text": "",
    "unknown text": "bogus",
    "bytes": b"x",
    "empty list": [],
    "empty dict": {},
    "array": np.array([1.0, 2.0]),
    "complex": 0.5 + 1j,
    "complex array": np.array([1.0 + 2.0j, 2.0]),
    "dates": pd.date_range("2020-01-01", periods=2),
    "array without dimensions": np.array(3.0),
    "missing": pd.NA,
    "object": Thing(),
}


# Values of these kinds that an argument takes although its annotation does not show it: (function, argument, kind).
FINE = {
    ("*", "n_jobs", "minus one"): "one process per processor",
    ("*", "rng", "huge"): "a seed",
    ("Runs", "metafeatures", "None"): "no metafeatures",
    ("Runs.normalize", "name", "unknown text"): "a new column",
    ("wide", "score", "unknown text"): "a new column",
}


# What an argument must be, in the words of every function that has it.
FRACTION = "must be a number between 0 and 1 (both excluded), got "
CHOICES = ("adjust", "band", "ddf", "form", "goal", "measure", "method", "population", "rope_unit")
WORDS = {
    **dict.fromkeys(("alpha", "level", "power"), FRACTION),
    **dict.fromkeys(CHOICES, "must be '"),
    "direction": "must be 'minimize' or 'maximize', got ",
    "executor": "must be something that has a map",
    "n_draws": "must be a whole number of at least ",
    "n_jobs": "must be a whole number of at least 1, or -1 for all, got ",
    "rng": "must be a seed (a whole number of at least 0), a numpy.random.Generator or None",
}
NONSENSE = ("unknown text", "object", "bytes", "complex", "missing")  # which are right for hardly any argument

# Arguments whose refusal names something else: (function, argument).
UNNAMED = {
    **{(name, "cost_a"): "the cost of the other sample is missing" for name in ("tuning.best_of", "tuning.compare")},
    **{(name, "cost_b"): "the cost of the other sample is missing" for name in ("tuning.best_of", "tuning.compare")},
    **dict.fromkeys(
        [("aggregate_scores", "runs"), ("analyze", "runs"), ("rank", "data")], "what the function takes as a table"
    ),
    **{(name, "model"): "a formula and where it is wrong" for name in ("audit", "permutation_test")},
    ("gate", "ledger"): "looks are missing",
    ("select_model", "candidates"): "a column that a term names",
    ("tuning.risk", "values"): "the column that has no such value",
}


def admitted(kind: str, parameter: inspect.Parameter) -> bool:
    """Whether a value of this kind may be right for the argument, by its annotation and default."""
    note = str(parameter.annotation)
    if kind == "None":
        return "None" in note or parameter.default is None or note in ("Any", "'Any'")
    if kind == "True":
        return bool(re.search(r"\bbool\b", note))
    if kind in ("zero", "three", "huge"):
        return bool(re.search(r"\bint\b|\bfloat\b|ArrayLike|\bArray\b", note))
    if kind in ("minus one", "half", "infinity", "array without dimensions"):
        return bool(re.search(r"\bfloat\b|ArrayLike|\bArray\b", note))
    if kind in ("empty list", "empty dict", "array"):
        return bool(re.search(r"ArrayLike|\bArray\b|Sequence|Iterable|tuple|Mapping|Any", note))
    return False


def judged(name: str, function: Callable[..., Any], good: dict[str, Any]) -> Iterator[str]:
    """What is wrong with the answers to bad values, one line each."""
    for argument, parameter in inspect.signature(function).parameters.items():
        for kind, value in BAD.items():
            fine = {("*", argument, kind), (name, argument, kind)} & set(FINE)
            if value is parameter.default or (kind != "array" and value is good.get(argument)):
                continue  # the good call has it already
            got, words = answer(functools.partial(function, **{**good, argument: value}))
            if got != "refused" and not (got == "accepted" and (fine or admitted(kind, parameter))):
                yield f"{name}({argument}={value!r}): {got}"
            if got == "refused" and kind in NONSENSE and not in_its_words(name, parameter, kind, words):
                yield f"{name}({argument}={value!r}) is refused in other words: {words}"


def in_its_words(name: str, parameter: inspect.Parameter, kind: str, words: str) -> bool:
    """Whether a refusal names the argument, and says of a text what such an argument must be."""
    argument = parameter.name
    rule = "must be True" if parameter.annotation in ("bool", "bool | None") else WORDS.get(argument)
    if (name, argument) in UNNAMED or re.match(f"{argument} (is an option of|is for|belongs to) ", words):
        return True
    if kind == "unknown text" and rule:
        return words.startswith(f"{argument} {rule}")
    return bool(re.search(rf"\b{argument}\b|^(path|There is no file|no file matches) ", words))


def outcome(call: Callable[[], Any]) -> str:
    """What comes out of a call: "refused", "accepted", or the words of an error that is not ours."""
    return answer(call)[0]


def answer(call: Callable[[], Any]) -> tuple[str, str]:
    """The outcome of a call, and the words of its refusal."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", LmemtestWarning)
        try:
            call()
        except LmemtestError as error:
            return "refused", str(error)
        except Exception as error:
            return f"{type(error).__name__}: {error}", ""
    return "accepted", ""
