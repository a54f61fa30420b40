"""Does the factor matter at all? One F-test of all differences between marginal means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from scipy import special

from lmemtest.errors import ArgumentError
from lmemtest.inference.grid import DDF_NAMES, EmmeansResult

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from lmemtest._table import ResultTable

    Array = NDArray[np.float64]

_RANK = 1e-10  # relative size below which a direction of the covariance is rounding


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JointTest:
    """F-test of the hypothesis that all marginal means are equal.

    Attributes
    ----------
    statistic : float
        Wald statistic over its numerator degrees of freedom.
    df_num : int
        Number of means less one.
    df_den : float
        Denominator degrees of freedom.
    pvalue : float
        Probability of a statistic at least as large if all means are equal; NaN if fewer than two are estimable.
    ddf : str
        Rule for the denominator degrees of freedom.
    n_means : int
        Means that took part.
    """

    statistic: float
    df_num: int
    df_den: float
    pvalue: float
    ddf: str
    n_means: int

    def to_frame(self) -> pd.DataFrame:
        """One row: statistic, df_num, df_den, pvalue."""
        import pandas as pd

        names = ("statistic", "df_num", "df_den", "pvalue")
        return pd.DataFrame([{name: getattr(self, name) for name in names}])

    def result_table(self) -> ResultTable:
        """The test as a table."""
        from lmemtest._table import ResultTable

        note = f"H0: all {self.n_means} means are equal; {DDF_NAMES[self.ddf]} degrees of freedom."
        return ResultTable(title="Joint test of the means", frame=self.to_frame(), notes=(note,))

    def summary(self) -> str:
        """The test as text."""
        return self.result_table().to_text()

    def __repr__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        return self.result_table().to_html()


def joint_test(em: EmmeansResult) -> JointTest:
    """Test whether all marginal means of one group are equal.

    Parameters
    ----------
    em : EmmeansResult
        Without `by`.

    Returns
    -------
    JointTest

    Raises
    ------
    ArgumentError
        If the means are in several groups.

    Notes
    -----
    The statistic is d' (L V L')^-1 d / q for the q differences d = L b. Its denominator degrees of freedom are those
    of lmerTest: E = sum of v / (v - 2) over the Satterthwaite degrees of freedom v of the q principal contrasts, and
    df = 2 E / (E - q). Unlike the likelihood-ratio test it is not anti-conservative when there are few groups.

    References
    ----------
    Fai & Cornelius (1996), doi:10.1080/00949659608811740; Kuznetsova, Brockhoff & Christensen (2017),
    doi:10.18637/jss.v082.i13

    Examples
    --------
    >>> import pandas as pd, lmemtest as lt
    >>> runs = pd.DataFrame({"algorithm": list("ABC") * 4, "task": list("wwwxxxyyyzzz"),
    ...                      "score": [1., 2, 5, 3, 2, 7, 3, 4, 8, 6, 5, 9]})
    >>> test = joint_test(lt.emmeans(lt.fit_lmm("score ~ algorithm + (1|task)", runs), "algorithm"))
    >>> test.df_num, round(test.df_den, 6), round(test.statistic, 3)
    (2, 6.0, 48.0)
    """
    if em.by:
        raise ArgumentError(f"joint_test compares one group of means, but these are in groups by {', '.join(em.by)}.")
    L = em.L[np.isfinite(em.emmean)]
    if len(L) < 2:
        nan = float("nan")
        return JointTest(statistic=nan, df_num=0, df_den=nan, pvalue=nan, ddf=em.ddf, n_means=len(L))
    D = L[1:] - L[0]
    values, vectors = np.linalg.eigh(D @ em.V @ D.T)
    kept = values > _RANK * values[-1]
    contrasts = vectors[:, kept].T @ D
    q = len(contrasts)
    statistic = float(np.sum((contrasts @ em.b) ** 2 / values[kept]) / q)
    df = _denominator(em.df_function(contrasts))
    pvalue = special.chdtrc(q, q * statistic) if np.isinf(df) else special.fdtrc(q, df, statistic)
    return JointTest(statistic=statistic, df_num=q, df_den=df, pvalue=float(pvalue), ddf=em.ddf, n_means=len(L))


def _denominator(df: Array) -> float:
    """Degrees of freedom of the sum from those of its terms."""
    if np.allclose(df, df[0], rtol=1e-8, atol=0.0) or np.isinf(df).all():
        return float(df[0])
    if (df <= 2.0).any():
        return 2.0
    total = float(np.sum(np.where(np.isinf(df), 1.0, df / (df - 2.0))))
    return 2.0 * total / (total - len(df))
