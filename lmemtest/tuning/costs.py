"""What one trial costs on average, and how well that is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from lmemtest.errors import ArgumentError, DataError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]

COST_SHARE = 0.1  # of the error probability that the interval of a mean cost takes; the band gets the rest


@dataclass(frozen=True, slots=True, kw_only=True)
class MeanCost:
    """Mean cost of a trial with its interval.

    Attributes
    ----------
    mean, ci_low, ci_high : float, > 0
        Estimate and ends of the interval; all the same if the mean is known.
    known : bool
        Whether one number was given, which is taken as it is.
    level : float
        Confidence of the interval.
    """

    mean: float
    ci_low: float
    ci_high: float
    known: bool
    level: float


def mean_cost(cost: Any, n: int, *, level: float, name: str = "cost") -> MeanCost:
    """The mean cost of a trial: as known if it is one number, else estimated from the (n,) costs of the trials.

    The interval is Student's for the mean on the log scale, m exp(+- t se / m): always positive, and, like every
    interval of a mean without bounds, right only approximately.

    >>> mean_cost(2.5, 48, level=0.95).ci_high
    2.5
    >>> interval = mean_cost([1.0, 2.0, 3.0, 4.0], 4, level=0.95)
    >>> round(interval.ci_low, 3), interval.mean, round(interval.ci_high, 3)
    (1.099, 2.5, 5.686)
    """
    try:
        given = np.asarray(cost)
        if given.dtype.kind in "cSUmMb":
            raise TypeError
        values = np.asarray(given, dtype=float)
    except (TypeError, ValueError):
        raise ArgumentError(f"{name} must be a number or a list of numbers, one per trial, got {cost!r}.") from None
    if values.ndim == 0:
        value = float(values)
        if not 0.0 < value < np.inf:
            raise ArgumentError(f"{name} must be a positive and finite mean cost of a trial, got {value:g}.")
        return MeanCost(mean=value, ci_low=value, ci_high=value, known=True, level=1.0)
    if values.shape != (n,):
        raise ArgumentError(
            f"{name} must be one number (the mean cost of a trial) or one for each of the {n:,} scores, got "
            f"{' x '.join(map(str, values.shape))} numbers."
        )
    wrong = int(np.sum(~(np.isfinite(values) & (values >= 0.0))))
    if wrong:
        raise DataError(
            f"{name} must be finite and at least 0: {wrong:,} of {len(values):,} are not. A failed run has a cost too: "
            "what it took until it failed."
        )
    if not values.any():
        raise DataError(f"{name} must not be 0 for every trial.")
    return _interval(values, level, name)


def _interval(values: FloatArray, level: float, name: str) -> MeanCost:
    from scipy import special

    n, mean = len(values), float(values.mean())
    if n == 1:
        raise DataError(
            f"{name} needs at least 2 trials for the uncertainty of their mean. Give the mean cost instead."
        )
    relative = float(values.std(ddof=1)) / (mean * np.sqrt(n))
    reach = float(np.exp(special.stdtrit(n - 1, 0.5 + 0.5 * level) * relative))
    return MeanCost(mean=mean, ci_low=mean / reach, ci_high=mean * reach, known=False, level=level)
