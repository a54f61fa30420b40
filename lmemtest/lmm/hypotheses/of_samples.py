"""Tests of plain samples, where SciPy's do not fit: variances of which only sums of squares are there, samples that are
too small or constant for Shapiro and Wilk, and all signs of a few units or random ones of many."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from lmemtest.core.validate import resolve_rng

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from lmemtest.core.arrays import Array


def likelihood_ratio(squares: Array, df: Array) -> float:
    """Twice the log likelihood ratio of variances of their own against a common one.

    >>> round(likelihood_ratio(np.array([10.0, 40.0]), np.array([10.0, 10.0])), 4)  # 20 ln 2.5 - 10 ln 1 - 10 ln 4
    4.4629
    """
    return float(df.sum() * np.log(squares.sum() / df.sum()) - df @ np.log(squares / df))


def bartlett(squares: Array, df: Array) -> float:
    """The p-value of Bartlett's test: the ratio over its small-sample factor is nearly chi-squared (1937).

    >>> round(bartlett(np.array([10.0, 40.0]), np.array([10.0, 10.0])), 4)
    0.0392
    """
    free = len(df) - 1.0
    factor = 1.0 + (float((1.0 / df).sum()) - 1.0 / float(df.sum())) / (3.0 * free)
    return float(special.chdtrc(free, max(likelihood_ratio(squares, df), 0.0) / factor))


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


__all__ = ["sign_patterns"]


def sign_patterns(n: int, most: int, rng: int | np.random.Generator | None) -> tuple[Array, bool]:
    """Patterns of n signs, up to the sign of all, and whether they are all: at most `most`, else so many random ones.

    Of all patterns the first has plus signs only; random ones do not hold it.

    Examples
    --------
    >>> signs, exact = sign_patterns(3, 10, None)
    >>> exact, signs.astype(int).tolist()
    (True, [[1, 1, 1], [1, 1, -1], [1, -1, 1], [1, -1, -1]])
    """
    if n - 1 < 60 and 2 ** (n - 1) <= most:
        bits = (np.arange(2 ** (n - 1))[:, None] >> np.arange(n - 1)[::-1]) & 1
        return np.hstack([np.ones((len(bits), 1)), 1.0 - 2.0 * bits]), True
    return resolve_rng(rng).choice(np.array([-1.0, 1.0]), size=(most, n)), False
