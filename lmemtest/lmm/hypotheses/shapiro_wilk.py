"""The test of Shapiro and Wilk, with no p-value where there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

FEWEST, MOST = 3, 5000  # values for which the distribution of the statistic is known


def shapiro_wilk(x: NDArray[np.float64], smallest: float = 0.0) -> tuple[float, float]:
    """Statistic and p-value; NaN for fewer than 3 or more than 5,000 values, or if the range is not above `smallest`.

    Examples
    --------
    >>> [round(value, 3) for value in shapiro_wilk(np.array([1.0, 2.0, 2.5, 3.0, 9.0]))]
    [0.772, 0.047]
    >>> shapiro_wilk(np.ones(5))
    (nan, nan)
    """
    from scipy import stats

    if not FEWEST <= len(x) <= MOST or np.ptp(x) <= smallest:
        return float("nan"), float("nan")
    found = stats.shapiro(x)
    return float(found.statistic), float(found.pvalue)
