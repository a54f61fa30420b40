"""What counts as equal, so that order, decisions and printed digits are the same on every machine.

Sums of the same numbers differ in their last digits from one processor to the next. Two numbers that differ by no more
are tied, a p-value that differs from the level by no more is at the level, and a half is a half.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np

from lmemtest.core.arrays import Array, Index

T = TypeVar("T")

# Rounding of estimates, as a share of their standard error or of the largest of them.
_OF_ERROR, _OF_SIZE = 1e-7, 1e-11
# Rounding of a probability, relative.
_OF_LEVEL = 1e-9
# Rounding of a number that is written, relative: below the ninth digit.
_OF_HALF = 1e-11


def tie_order(values: Any, *, errors: Any = None, descending: bool = False) -> list[int]:
    """Positions in ascending (or descending) order; ties stay in the order given, and NaN comes last.

    Parameters
    ----------
    values : sequence of float
    errors : sequence of float, optional
        Standard errors of the values: what is small beside the largest is no difference.
    descending : bool

    Examples
    --------
    >>> tie_order([0.3, 0.1 + 0.2, 0.1]), tie_order([0.1 + 0.2, 0.3, 0.1], descending=True)
    ([2, 0, 1], [0, 1, 2])
    """
    x = np.asarray(values, dtype=float)
    key = -x if descending else x
    order = np.argsort(key, kind="stable")  # NaN last
    if not len(order):
        return []
    with np.errstate(invalid="ignore"):
        apart = np.diff(key[order]) > tolerance(x, errors)
    group = np.concatenate([[0], np.cumsum(apart | np.isnan(x[order[1:]]) & ~np.isnan(x[order[:-1]]))])
    return [int(i) for i in order[np.lexsort((order, group))]]


def tolerance(values: Any, errors: Any = None) -> float:
    """The largest difference between some values that is rounding."""
    out = _OF_SIZE * _largest(values)
    return out if errors is None else max(out, _OF_ERROR * _largest(errors))


def _largest(values: Any) -> float:
    size = np.abs(np.asarray(values, dtype=float))
    return float(size[np.isfinite(size)].max(initial=0.0))


def tied_codes(values: Array, same: Array) -> Index:
    """0, 1, 2, ... in ascending order within each row; neighbours at most `same` apart, ``(rows,)``, are tied.

    Examples
    --------
    >>> tied_codes(np.array([[0.3, 0.1 + 0.2, 0.1], [2.0, 1.0, 3.0]]), np.array([1e-9, 1e-9])).tolist()
    [[1, 1, 0], [1, 0, 2]]
    """
    order = np.argsort(values, axis=1, kind="stable")
    apart = np.diff(np.take_along_axis(values, order, axis=1), axis=1) > np.reshape(same, (-1, 1))
    codes = np.zeros(values.shape, dtype=np.intp)
    np.put_along_axis(codes, order[:, 1:], np.cumsum(apart, axis=1), axis=1)
    return codes


def below_less_above(codes: Index, width: int) -> Array:
    """By code 0 to width - 1 of each row: how many of the row's codes are below less how many are above."""
    offset = width * np.arange(len(codes))[:, None]
    count = np.bincount((codes + offset).ravel(), minlength=len(codes) * width).reshape(len(codes), width)
    return 2.0 * np.cumsum(count, axis=1) - count - codes.shape[1]


def mean_ranks(codes: Index) -> Array:
    """Ranks of `tied_codes` within each row, 1 for the lowest; ties share the mean of theirs.

    Examples
    --------
    >>> mean_ranks(np.array([[1, 1, 0], [1, 0, 2]])).tolist()
    [[2.5, 2.5, 1.0], [2.0, 1.0, 3.0]]
    """
    n = codes.shape[1]
    return (np.take_along_axis(below_less_above(codes, n), codes, axis=1) + n + 1.0) / 2.0


def in_tie_order(items: Iterable[T], value: Callable[[T], float], *, descending: bool = False) -> list[T]:
    """Items in the order of a value, ties as given.

    Examples
    --------
    >>> in_tie_order(["b", "a", "c"], {"a": 0.3, "b": 0.1 + 0.2, "c": 0.0}.__getitem__)
    ['c', 'b', 'a']
    """
    listed = list(items)
    return [listed[i] for i in tie_order([value(item) for item in listed], descending=descending)]


def below(p: Any, alpha: Any) -> Any:
    """Whether p-values are below the level; at the level within rounding is not below, and NaN is not.

    Examples
    --------
    >>> below(0.049, 0.05), below(0.05 - 1e-17, 0.05), below(float("nan"), 0.05)
    (True, False, False)
    """
    if isinstance(p, float) and isinstance(alpha, float):  # without arrays: thousands are written one by one
        return bool(p < alpha * (1.0 - _OF_LEVEL))
    verdict = np.asarray(p, dtype=float) < np.asarray(alpha, dtype=float) * (1.0 - _OF_LEVEL)
    return bool(verdict) if np.ndim(verdict) == 0 else verdict


def at_most(p: Any, alpha: Any) -> Any:
    """Whether p-values are at or below the level, where a test may reject at the level itself.

    Examples
    --------
    >>> at_most(0.1 + 0.2, 0.3), at_most(0.31, 0.3)
    (True, False)
    """
    if isinstance(p, float) and isinstance(alpha, float):
        return bool(p <= alpha * (1.0 + _OF_LEVEL))
    verdict = np.asarray(p, dtype=float) <= np.asarray(alpha, dtype=float) * (1.0 + _OF_LEVEL)
    return bool(verdict) if np.ndim(verdict) == 0 else verdict


def written(x: Any, spec: str) -> str:
    """A number by a format specification: halves away from zero, and no sign at a zero.

    Examples
    --------
    >>> written(0.905, ".2f"), written(0.905 - 1e-16, ".2f"), written(0.125, ".2f"), written(-1e-9, ".2f")
    ('0.91', '0.91', '0.13', '0.00')
    """
    if not isinstance(x, (float, np.floating)) or spec[-1:] not in tuple("fFeEgG%"):
        return format(x, spec)
    text = format(float(x) * (1.0 + _OF_HALF), spec)
    return unsigned_zero(text)


def unsigned_zero(text: str) -> str:
    """A rounded zero carries no sign."""
    return text[1:] if text.startswith("-") and not text.strip("-0.% ") else text


def same_rounding(values: Array, decimals: int) -> bool:
    """Whether rounding to some decimals changes nothing but rounding errors, or where a search stopped."""
    return bool(np.all(np.abs(np.round(values, decimals) - values) <= _OF_ERROR * np.abs(values)))
