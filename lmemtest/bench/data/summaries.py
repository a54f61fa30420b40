"""Rows and columns of a table that sum up the others: averages, ranks, wins. Told by their names and their values."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["SUMMARY", "is_summary", "sums_up"]

_NAMES = (
    "avg average mean median total overall sum win wins loss losses tie ties rank ranks ranking score accuracy error "
    "std sd stdev stddev deviation dev geomean gmean of all best number count top first place 1st #1"
)
SUMMARY = frozenset(_NAMES.split())
CHANCE = 0.05  # with which one of the others might be where a summary is, in all rows
MOST_TIED = 1.0  # ranks, or wins, by which a row may gain from ties
_DIGITS = 10  # decimals from which on a number counts as not rounded


def sums_up(name: Any) -> bool:
    """Whether a row or column is called like a summary: every word of its name says so.

    >>> [sums_up(name) for name in ("Avg.", "Avg. Rank", "#1", "Mean accuracy", "MeanShift", "1")]
    [True, True, True, True, False, False]
    """
    words = re.findall(r"# ?1\b|[^\W_]+", str(name).lower())
    return bool(words) and {word.replace(" ", "") for word in words} <= SUMMARY


def is_summary(values: NDArray[np.float64], others: NDArray[np.float64]) -> bool:
    """Whether a value per row sums up the others of its row, `(rows, columns)`, as far as digits are printed.

    Means, medians, sums, geometric means, standard deviations, extremes; mean ranks among the rows, ranks of the means,
    and numbers of columns in which a row is best. Not where scores are so much alike that any column would do.
    """
    known = np.isfinite(values) & np.isfinite(others).any(axis=1)
    if others.shape[1] < 2 or known.sum() < 2:
        return False
    x, given = others[known], values[known]
    finite = x[np.isfinite(x)]
    slack = 0.5005 * 10.0 ** -_decimals(given) + 1e-9 * float(np.abs(finite).max()) * x.shape[1]
    whole = bool((given == np.rint(given)).all())
    for width in (0.0, 0.5 * 10.0 ** -_decimals(finite)):  # scores as they are, and as they may have been rounded
        for low, high in _limits(x, width, whole):
            low, high = low - slack, high + slack
            if not ((low <= given) & (given <= high)).all():  # False where NaN
                continue
            alike = ((low[:, None] <= x) & (x <= high[:, None])).sum() + 0.5
            if len(x) * np.log(alike / (finite.size + 0.5)) < np.log(CHANCE):
                return True
    return False


def _limits(x: NDArray[np.float64], width: float, whole: bool) -> Iterator[tuple[Any, Any]]:
    """The least and the largest value that each statistic of the rows may have where scores are off by `width`.

    Scores that are tied as printed may differ before, so ranks and wins (whole numbers) have limits where few are.
    """
    from scipy.stats import rankdata

    m = float(x.shape[1])
    with np.errstate(all="ignore"):
        mean = np.nanmean(x, axis=1)
        near = [(mean, 1.0), (np.nanmedian(x, axis=1), 1.0), (np.nansum(x, axis=1), m)]
        near += [(np.nanmin(x, axis=1), 0.0), (np.nanmax(x, axis=1), 0.0)]
        if m > 2.0:
            near += [(np.nanstd(x, axis=1), 1.5), (np.nanstd(x, axis=1, ddof=1), 1.5)]
        if (x[np.isfinite(x)] > 0.0).all():
            near.append((np.exp(np.nanmean(np.log(x), axis=1)), 1.5))
        for found, times in near:
            yield found - times * width, found + times * width
        if len(x) < 2:
            return
        for signed in (x, -x):
            for scores in (signed, np.nanmean(signed, axis=1, keepdims=True)):
                ways = ("min", "average", "max")
                low, middle, high = (
                    np.nanmean(rankdata(scores, method=ties, axis=0, nan_policy="omit"), axis=1) for ties in ways
                )
                yield (low, high) if (high - low).max() <= MOST_TIED else (middle, middle)
            best = signed == np.nanmin(signed, axis=0)
            alone, tied = (best & (best.sum(axis=0) == 1)).sum(axis=1), best.sum(axis=1)
            yield (alone, tied) if whole and (tied - alone).max() <= MOST_TIED else (tied, tied)


def _decimals(values: NDArray[np.float64]) -> int:
    """How many decimals numbers are written with, at most."""
    written = [np.format_float_positional(value, trim="-") for value in np.unique(values)[:10_000]]
    return min(max(len(text.partition(".")[2]) for text in written), _DIGITS)
