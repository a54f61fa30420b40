"""One F-test: that several linear functions of coefficients are all zero."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

if TYPE_CHECKING:
    from numpy.typing import NDArray

    FloatArray = NDArray[np.float64]

# Relative variance below which a combination of rows is rounding (lmerTest: 1.5e-8).
_RANK = 1e-10


@dataclass(frozen=True, slots=True, kw_only=True)
class FTest:
    """F-test that all rows of ``L b`` are zero.

    Attributes
    ----------
    f_ratio : float
        Wald statistic over `df_num`, times `f_scale`.
    df_num : int
        Independent rows of L.
    df_den : float
        Denominator degrees of freedom; NaN where Kenward and Roger's approximation does not exist, or the clusters
        are too few.
    p_value : float
        Probability of an F at least as large under the hypothesis.
    f_scale : float
        Kenward and Roger's scale factor, or that of the robust test (HTZ); 1 for the other methods.
    ddf : str
        Rule for the denominator degrees of freedom.
    """

    f_ratio: float
    df_num: int
    df_den: float
    p_value: float
    f_scale: float
    ddf: str

    @classmethod
    def of(cls, statistic: float, df_num: int, df_den: float, ddf: str, scale: float = 1.0) -> FTest:
        """With the p-value that belongs to a statistic, of chi-square if `df_den` is infinite."""
        if not df_num:
            nan = float("nan")
            return cls(f_ratio=nan, df_num=0, df_den=nan, p_value=nan, f_scale=nan, ddf=ddf)
        chi2 = np.isinf(df_den)
        p = special.chdtrc(df_num, df_num * statistic) if chi2 else special.fdtrc(df_num, df_den, statistic)
        return cls(f_ratio=statistic, df_num=df_num, df_den=df_den, p_value=float(p), f_scale=scale, ddf=ddf)


def wald_f_test(
    L: FloatArray, b: FloatArray, cov: FloatArray, df_function: Callable[[FloatArray], FloatArray], ddf: str
) -> FTest:
    """The Wald test with degrees of freedom combined from those of its principal contrasts (Fai & Cornelius 1996).

    Parameters
    ----------
    L : (rows, p) float
        Estimable functions; rows that depend on others count once.
    b : (p,) float
    cov : (rows, rows) float
        Covariance of ``L b``.
    df_function : callable
        Maps linear functions to their degrees of freedom.
    ddf : str
        Its name.

    Returns
    -------
    FTest
    """
    contrasts, variances = principal(L, cov)
    if not len(contrasts):
        return FTest.of(np.nan, 0, np.nan, ddf)
    statistic = float(np.sum((contrasts @ b) ** 2 / variances) / len(contrasts))
    return FTest.of(statistic, len(contrasts), combined_df(df_function(contrasts)), ddf)


def combined_df(df: FloatArray) -> float:
    """Denominator degrees of freedom of a sum of squares from those of its independent terms.

    Parameters
    ----------
    df : (q,) float
        Positive.

    Examples
    --------
    >>> combined_df(np.array([6.0, 6.0])), round(combined_df(np.array([4.0, 10.0])), 3)
    (6.0, 5.2)
    """
    if np.isinf(df).all() or np.allclose(df, df[0], rtol=1e-8, atol=0.0):
        return float(df[0])
    if (df <= 2.0).any():
        return 2.0
    excess = float(np.sum(2.0 / (df - 2.0)))  # E - q, from v / (v - 2) = 1 + 2 / (v - 2)
    return 2.0 * (len(df) + excess) / excess


def principal(L: FloatArray, V: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Uncorrelated combinations of the rows of L, and their variances."""
    values, vectors = np.linalg.eigh(V)
    kept = values > _RANK * max(values[-1], 0.0)
    return vectors[:, kept].T @ L, values[kept]
