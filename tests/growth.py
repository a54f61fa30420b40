"""How the work of a call grows, counted, so that no clock decides: calls of functions, and the peak of memory."""

from __future__ import annotations

import math
import sys
import tracemalloc
from collections.abc import Callable
from typing import Any


def calls(function: Callable[[], Any], *, in_c: bool = True) -> int:
    """Functions called, those written in C as well: a measure of work that no load changes."""
    events = ("call", "c_call") if in_c else ("call",)
    count = 0

    def counted(_frame: Any, event: str, _arg: Any) -> None:
        nonlocal count
        count += event in events

    before = sys.getprofile()
    sys.setprofile(counted)
    try:
        function()
    finally:
        sys.setprofile(before)
    return count


def peak(function: Callable[[], Any]) -> int:
    """Largest memory, in bytes, that the call had at once."""
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def exponent(measure: Callable[[Callable[[], Any]], int], small: Callable[[], Any], large: Callable[[], Any]) -> float:
    """Of a measure at a table and at one of four times its size; both calls are warm."""
    return exponents((measure,), small, large)[0]


def exponents(
    measures: tuple[Callable[[Callable[[], Any]], int], ...], small: Callable[[], Any], large: Callable[[], Any]
) -> list[float]:
    """The same of several measures, warmed up once."""
    small()
    return [math.log(measure(large) / measure(small), 4) for measure in measures]
