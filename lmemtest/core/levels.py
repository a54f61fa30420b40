"""The order of levels: one rule for tables, formulas and figures.

Numbers, dates and truth values sort by value, categoricals by their categories, and text as people count: ``game2``
comes before ``game10``, and text that is nothing but numbers sorts by their values.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

__all__ = ["in_order", "level_order", "natural_key"]

T = TypeVar("T")
# A decimal point belongs to a number, as in lr0.25, but not to a version such as 1.10.2.
_NUMBER = re.compile(r"((?<![0-9.])[0-9]+\.[0-9]+(?![0-9.])|[0-9]+)")


def natural_key(text: str) -> tuple[tuple[Any, ...], str]:
    """What text is sorted by: its numbers as numbers, the rest letter by letter.

    Examples
    --------
    >>> sorted(["game10", "game2", "game02", "lr0.5", "lr0.25", "game"], key=natural_key)
    ['game', 'game02', 'game2', 'game10', 'lr0.25', 'lr0.5']
    """
    parts: list[Any] = list(_NUMBER.split(text))
    parts[1::2] = [_size(number) for number in parts[1::2]]
    return tuple(parts), text  # 02 before 2, so that no two levels share a place


def _size(digits: str) -> tuple[int, str]:
    """Digits of any length as a sortable number: by the length of the whole part, then digit by digit."""
    whole, _, fraction = digits.partition(".")
    whole = whole.lstrip("0")
    return len(whole), f"{whole}.{fraction.rstrip('0')}"


def _values(texts: list[str]) -> list[tuple[float, str]] | None:
    """The texts by value, if each of them is a number."""
    try:
        values = [float(text) for text in texts if "_" not in text]
    except ValueError:
        return None
    finite = len(values) == len(texts) and all(map(math.isfinite, values))
    return list(zip(values, texts, strict=True)) if finite else None


def level_order(levels: Iterable[Any]) -> NDArray[np.intp]:
    """The places of distinct levels in their order.

    Parameters
    ----------
    levels : iterable
        Of one type; text in natural order, everything else by value.

    Raises
    ------
    TypeError
        If the levels cannot be compared.

    Examples
    --------
    >>> level_order(["a10", "a2"]), level_order([10, 2])
    (array([1, 0]), array([1, 0]))
    """
    listed = list(levels)
    keys: list[Any] = listed
    if all(isinstance(level, str) for level in listed):
        keys = _values(listed) or [natural_key(level) for level in listed]
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.intp)


def in_order(levels: Iterable[T]) -> list[T]:
    """Distinct levels in their order.

    Examples
    --------
    >>> in_order({"task10", "task9"})
    ['task9', 'task10']
    """
    listed = list(levels)
    return [listed[i] for i in level_order(listed)]
