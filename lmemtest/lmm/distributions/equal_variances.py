"""Are variances equal, of which only sums of squares are there; of samples, `scipy.stats.bartlett` and `levene` say."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from scipy import special

if TYPE_CHECKING:
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
