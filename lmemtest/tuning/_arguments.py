"""Checks that the functions of this package share: scores, confidence, k, statistic, bounds."""

from __future__ import annotations

import numbers
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest._validate import check_choice, check_fraction
from lmemtest.errors import ArgumentError, DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]

DIRECTIONS = ("maximize", "minimize")
SHOWN = 5  # positions that a message lists


def check_scores(scores: Any, name: str = "scores") -> FloatArray:
    """Return the scores as a new one-dimensional array of floats in the order given.

    Parameters
    ----------
    scores : array-like of float, shape (n,)
        One score per configuration; infinite scores pass, missing ones do not.
    name : str
        The name of the argument, for the message.

    Returns
    -------
    ndarray of float64, shape (n,)
        A copy.

    Raises
    ------
    ArgumentError
        If it is not a one-dimensional list of numbers.
    DataError
        If it is empty or has missing scores.

    Examples
    --------
    >>> check_scores([0.5, 0.75])
    array([0.5 , 0.75])
    """
    values = _floats(scores)
    if values is None or values.ndim != 1:
        kind = "several dimensions" if values is not None and values.ndim > 1 else type(scores).__name__
        raise ArgumentError(f"{name} must be a one-dimensional list of numbers, one per configuration, got {kind}.")
    if not len(values):
        raise DataError(f"{name} must hold at least 1 score, got none.")
    missing = np.flatnonzero(np.isnan(values))
    if len(missing):
        shown = ", ".join(map(str, missing[:SHOWN])) + (", ..." if len(missing) > SHOWN else "")
        raise DataError(
            f"{name} must not be missing: {len(missing):,} of {len(values):,} are NaN (position {shown}). "
            "Score a failed run as the worst value: dropping it would make the search look better than it was."
        )
    return values


def _floats(given: Any) -> FloatArray | None:
    """A new array of floats with NaN for what is missing, or None for what are no numbers."""
    if isinstance(given, np.ma.MaskedArray):  # asarray would bring back what the mask hides
        given = np.ma.filled(given.astype(np.float64), np.nan)
    try:
        values = np.asarray(given)
        if values.dtype.kind == "O":
            if any(isinstance(item, (str, bytes)) for item in values.flat):  # float() would read numbers in text
                return None
            known = [np.nan if type(item).__name__ == "NAType" else item for item in values.flat]  # pandas.NA
            values = np.array(known, dtype=np.float64).reshape(values.shape)
        return np.array(values, dtype=np.float64) if values.dtype.kind not in "cSUmM" else None
    except (TypeError, ValueError):  # objects that are no numbers, ragged lists
        return None


def check_level(level: Any, name: str = "level") -> float:
    """Check that a share of a law lies in [0, 1], both ends included.

    Examples
    --------
    >>> check_level(0.8)
    0.8
    """
    is_number = isinstance(level, numbers.Real) and not isinstance(level, (bool, np.bool_))
    if is_number and 0.0 <= float(level) <= 1.0:
        return float(level)
    raise ArgumentError(f"{name} must be a number between 0 and 1, got {level!r}.")


def check_k(k: Any, name: str = "k") -> FloatArray:
    """Return the numbers of configurations as a new one-dimensional array; all must be positive and finite.

    Examples
    --------
    >>> check_k([1, 2.5]), check_k(4)
    (array([1. , 2.5]), array([4.]))
    """
    given = _floats(k)
    values = None if given is None else np.atleast_1d(given)
    if values is None or values.ndim != 1 or not len(values) or np.asarray(k).dtype.kind == "b":
        raise ArgumentError(f"{name} must be a positive number or a list of such, got {k!r}.")
    wrong = values[~(np.isfinite(values) & (values > 0))]
    if len(wrong):
        raise ArgumentError(
            f"{name} must be positive and finite (how many configurations are tried), got {wrong[0]:g}."
        )
    return values


def check_statistic(statistic: Any) -> str | float:
    """Check a summary of the best score: "median", "mean" or a quantile in (0, 1).

    Examples
    --------
    >>> check_statistic("median"), check_statistic(0.9)
    ('median', 0.9)
    """
    if isinstance(statistic, str):
        if statistic in ("median", "mean"):
            return statistic
        raise ArgumentError(
            f"statistic must be 'median', 'mean' or a quantile between 0 and 1 such as 0.9, got {statistic!r}."
        )
    return check_fraction(statistic, "statistic")


def quantile_of(statistic: str | float) -> float:
    """The quantile behind a statistic other than the mean.

    Examples
    --------
    >>> quantile_of("median"), quantile_of(0.9)
    (0.5, 0.9)
    """
    return 0.5 if isinstance(statistic, str) else statistic


def turned_quantile(statistic: str | float, direction: str) -> float:
    """The quantile behind a statistic when scores are turned so that larger is better.

    The best of k scores y is at most its q-quantile with probability q; that of -y is at most its own with 1 - q.

    Examples
    --------
    >>> turned_quantile(0.75, "maximize"), turned_quantile(0.75, "minimize"), turned_quantile("median", "minimize")
    (0.75, 0.25, 0.5)
    """
    quantile = quantile_of(statistic)
    return quantile if direction == "maximize" else 1.0 - quantile


def name_of(statistic: str | float) -> str:
    """What to call a statistic in a sentence.

    Examples
    --------
    >>> name_of("mean"), name_of(0.9)
    ('mean', '0.9 quantile')
    """
    return statistic if isinstance(statistic, str) else f"{statistic:g} quantile"


def check_direction(direction: Any) -> str:
    """Check which end of the score is better.

    Examples
    --------
    >>> check_direction("maximize")
    'maximize'
    """
    return check_choice(direction, "direction", DIRECTIONS)


def direction_of(direction: Any, statistic: str | float) -> str:
    """The direction of a curve whose scores are not needed; the median is the same story for both.

    Examples
    --------
    >>> direction_of(None, "median"), direction_of("minimize", 0.9)
    ('maximize', 'minimize')
    """
    if direction is None and quantile_of(statistic) == 0.5:
        return "maximize"
    if direction is None:
        raise ArgumentError(
            f"direction must be given for the {name_of(statistic)}: 'maximize' or 'minimize'. The best score is the "
            "largest or the smallest one, and only for medians both have limits for the same k."
        )
    return check_direction(direction)


def check_bounds(bounds: Any, scores: FloatArray) -> tuple[float, float]:
    """Check that (low, high) are in order and enclose all scores.

    Examples
    --------
    >>> check_bounds((0, 1), np.array([0.5, 0.75]))
    (0.0, 1.0)
    """
    try:
        low, high = (float(end) for end in bounds)
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
