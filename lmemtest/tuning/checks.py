"""What the functions of this package share: checks of scores, k, statistic and bounds; an estimate; a short table."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from lmemtest.core.arrays import Array
from lmemtest.core.caller import advice
from lmemtest.core.validate import check_direction as check_direction
from lmemtest.core.validate import check_fraction, real
from lmemtest.errors import ArgumentError, DataError

SHOWN = 5  # positions that a message lists
_ROWS = 12  # of a printed curve; to_frame() has all


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A number with its interval: a parameter of a law, or the mean cost of a trial.

    Attributes
    ----------
    name : str
        Of a fit: "best", "worst" (expected score), "hyperparameters" (their effective number), "noise" (its standard
        deviation); of a cost: its argument.
    value, ci_low, ci_high : float
        Estimate and interval; all the same if the value was given, an end infinite where the scores do not limit it.
    level : float
        Confidence of the interval.
    fixed : bool
        Whether the value was given, by a constraint or as one number.
    """

    name: str
    value: float
    ci_low: float
    ci_high: float
    level: float
    fixed: bool = False


def check_scores(scores: Any, name: str = "scores") -> Array:
    """The scores as a new (n,) array in the order given; infinite ones pass, missing ones do not.

    >>> check_scores([0.5, 0.75])
    array([0.5 , 0.75])
    """
    values = _floats(scores)
    if values is None or values.ndim != 1:
        kind = "several dimensions" if values is not None and values.ndim > 1 else type(scores).__name__
        with suppress(ValueError):  # rows of different lengths
            kind = "complex ones" if np.iscomplexobj(scores) else kind
        raise ArgumentError(f"{name} must be a one-dimensional list of numbers, one per configuration, got {kind}.")
    if not len(values):
        raise DataError(f"{name} must hold at least 1 score, got none.")
    missing = np.flatnonzero(np.isnan(values))
    if len(missing):
        indices = ", ".join(map(str, missing[:SHOWN])) + (", ..." if len(missing) > SHOWN else "")
        raise DataError(
            f"{name} must not be missing: {len(missing):,} of {len(values):,} are NaN (position {indices}). "
            "Score a failed run as the worst value: dropping it would make the search look better than it was."
        )
    return values


def _floats(numbers: Any) -> Array | None:
    """A new array of floats with NaN for what is missing, or None for what are no numbers."""
    if isinstance(numbers, np.ma.MaskedArray):  # asarray would bring back what the mask hides
        numbers = np.ma.filled(numbers.astype(np.float64), np.nan)
    try:
        values = np.asarray(numbers)
        if values.dtype.kind == "O":
            if any(isinstance(item, (str, bytes)) for item in values.flat):  # float() would read numbers in text
                return None
            items = [np.nan if type(item).__name__ == "NAType" else item for item in values.flat]  # pandas.NA
            values = np.array(items, dtype=np.float64).reshape(values.shape)
        return np.array(values, dtype=np.float64) if values.dtype.kind not in "cSUmM" else None
    except (TypeError, ValueError):  # objects that are no numbers, ragged lists
        return None


def check_probabilities(p: ArrayLike, name: str) -> Array:
    """Probabilities of any shape as an array; all must lie in [0, 1]."""
    values = np.asarray(p, dtype=np.float64)
    wrong = values[~((values >= 0.0) & (values <= 1.0))]
    if wrong.size:
        raise ArgumentError(f"{name} must lie between 0 and 1, got {wrong.ravel()[0]:g}.")
    return values


def check_k(k: Any, name: str = "k", *, flat: bool = True) -> Array:
    """Numbers of configurations as a new array, `flat` or of the shape given; all must be positive and finite.

    >>> check_k([1, 2.5]), check_k(4), check_k(4, flat=False)
    (array([1. , 2.5]), array([4.]), array(4.))
    """
    values = _floats(k)
    if values is not None and flat:
        values = np.atleast_1d(values)
    if values is None or (flat and (values.ndim != 1 or not len(values))) or np.asarray(k).dtype.kind == "b":
        raise ArgumentError(f"{name} must be a positive number or a list of such, got {k!r}.")
    wrong = values[~(np.isfinite(values) & (values > 0))]
    if wrong.size:
        raise ArgumentError(
            f"{name} must be positive and finite (how many configurations are tried), got {wrong.ravel()[0]:g}."
        )
    return values


def whole_budgets(last: float, most: int, first: float = 1.0) -> Array:
    """Whole budgets from `first` to `last`: all of them, or if they are more than `most` evenly on the log scale.

    >>> whole_budgets(3, 64), whole_budgets(1000, 4)
    (array([1., 2., 3.]), array([   1.,   10.,  100., 1000.]))
    """
    whole = np.arange(np.ceil(first), last + 1.0)
    return whole if len(whole) <= most else np.unique(np.geomspace(whole[0], last, most).round())


def check_statistic(statistic: Any) -> str | float:
    """A summary of the best score: "median", "mean" or a quantile in (0, 1)."""
    if isinstance(statistic, str):
        if statistic in ("median", "mean"):
            return statistic
        raise ArgumentError(
            f"statistic must be 'median', 'mean' or a quantile between 0 and 1 such as 0.9, got {statistic!r}."
        )
    return check_fraction(statistic, "statistic")


def name_of(statistic: str | float) -> str:
    """What to call a statistic in a sentence.

    >>> name_of("mean"), name_of(0.9)
    ('mean', '0.9 quantile')
    """
    return statistic if isinstance(statistic, str) else f"{statistic:g} quantile"


def check_bounds(bounds: Any, scores: Array) -> tuple[float, float]:
    """(low, high) in order, enclosing all scores; without bounds anything can occur."""
    if bounds is None:
        return -np.inf, np.inf
    try:
        low, high = (float(end) for end in real(list(bounds)))
    except (TypeError, ValueError):
        low = high = np.nan
    if not low < high:
        raise ArgumentError(
            f"bounds must be (low, high) with low < high, the smallest and the largest score that can occur, "
            f"got {bounds!r}. Write float('-inf') or float('inf') for an end that is not known."
        )
    outside = int(np.sum((scores < low) | (scores > high)))
    if outside:
        raise DataError(
            f"bounds must enclose all scores, but {outside:,} of {len(scores):,} lie outside of {low:g} to {high:g} "
            f"(the scores go from {scores.min():g} to {scores.max():g}). Widen the bounds, or give a failed run the "
            "worst score that can occur."
        )
    return low, high


def plain(values: Any) -> Any:
    """A float for a single value, an array as it is."""
    values = np.asarray(values)
    return values if values.ndim else float(values)


def thinned(frame: pd.DataFrame) -> tuple[pd.DataFrame, tuple[str, ...]]:
    """A dozen rows of a table by budget, evenly on the log scale, and how many they are unless they are all."""
    count = len(frame)
    if count <= _ROWS:
        return frame, ()
    rows = np.unique(np.round(np.geomspace(1, count, _ROWS)).astype(int)) - 1
    return frame.iloc[rows], (f"{len(rows)} of {count} budgets{advice('all_rows')}.",)
