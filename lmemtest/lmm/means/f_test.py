"""F-tests that several linear functions of coefficients are all zero."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from scipy import special

from lmemtest.core.options import DDF_NAMES
from lmemtest.core.result import Result, result

if TYPE_CHECKING:
    import pandas as pd

    from lmemtest.core.arrays import Array
    from lmemtest.lmm.means.estimates import Estimates


Hypotheses = Literal["type I", "type II", "type III", "marginal means"]
STATISTICS = ("df_num", "df_den", "f_ratio", "p_value", "f_scale")
# Relative variance below which a combination of rows is rounding (lmerTest: 1.5e-8).
_RANK = 1e-10


@dataclass(frozen=True, slots=True, kw_only=True)
class FTest:
    """F-test that all rows of ``L b`` are zero.

    Attributes
    ----------
    f_ratio : float
        Wald statistic over `df_num`, the independent rows of L, times `f_scale`.
    df_den : float
        Denominator degrees of freedom by the rule `ddf`; NaN where Kenward and Roger's approximation does not exist,
        or the clusters are too few.
    p_value : float
        Probability of an F at least as large under the hypothesis.
    f_scale : float
        Kenward and Roger's scale factor, or that of the robust test (HTZ); 1 for the other methods.
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


def wald_f_test(L: Array, b: Array, cov: Array, df_function: Callable[[Array], Array], ddf: str) -> FTest:
    """The Wald test, with degrees of freedom combined from those of its principal contrasts (Fai & Cornelius 1996).

    `L` holds estimable functions, of which rows that depend on others count once; `cov` is the covariance of ``L b``.
    """
    contrasts, variances = principal(L, cov)
    if not len(contrasts):
        return FTest.of(np.nan, 0, np.nan, ddf)
    statistic = float(np.sum((contrasts @ b) ** 2 / variances) / len(contrasts))
    return FTest.of(statistic, len(contrasts), combined_df(df_function(contrasts)), ddf)


def combined_df(df: Array) -> float:
    """Denominator degrees of freedom of a sum of squares from those of its independent terms.

    >>> combined_df(np.array([6.0, 6.0])), round(combined_df(np.array([4.0, 10.0])), 3)
    (6.0, 5.2)
    """
    if np.isinf(df).all() or np.allclose(df, df[0], rtol=1e-8, atol=0.0):
        return float(df[0])
    if (df <= 2.0).any():
        return 2.0
    excess = float(np.sum(2.0 / (df - 2.0)))  # E - q, from v / (v - 2) = 1 + 2 / (v - 2)
    return 2.0 * (len(df) + excess) / excess


def principal(L: Array, V: Array) -> tuple[Array, Array]:
    """Uncorrelated combinations of the rows of L, and their variances."""
    values, vectors = np.linalg.eigh(V)
    kept = values > _RANK * max(values[-1], 0.0)
    return vectors[:, kept].T @ L, values[kept]


@result
class FTestsResult(Result):
    """F-tests of the terms of a model.

    Attributes
    ----------
    table : pandas.DataFrame
        One row per term: the columns of `by`, term, df_num, df_den, f_ratio, p_value, f_scale.
    hypotheses : {"type I", "type II", "type III", "marginal means"}
        What is tested: hypotheses of the fixed terms (`anova`), or that marginal means do not differ or interact.
    by : tuple of str
        Factors whose levels are tested apart.
    ddf, score : str
        Rule for the denominator degrees of freedom ("cluster-robust" with `vcov`); the response as the model sees it.
    n_obs : int or None
        Rows behind the fit.
    notes : tuple of str
        What was changed, and what has no test.
    """

    table: pd.DataFrame
    hypotheses: Hypotheses
    by: tuple[str, ...]
    ddf: str
    score: str
    n_obs: int | None
    notes: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """What was tested."""
        by = f" by {', '.join(self.by)}" if self.by else ""
        return f"F-tests of the fixed terms ({self.hypotheses} hypotheses){by}"

    @property
    def facts(self) -> tuple[str, ...]:
        """How the table was obtained."""
        rows = "" if self.n_obs is None else f", n = {self.n_obs} rows"
        return (f"Response {self.score}{rows}; {DDF_NAMES[self.ddf]} degrees of freedom.",)


def joint(em: Estimates) -> FTestsResult:
    """F-test that the estimates of a group are all equal, with the model's standard errors if these are moderated.

    Those that are not estimable are left out.

    Returns
    -------
    FTestsResult
        One row per group of `by`: df_num, df_den, f_ratio, p_value, f_scale.

    Examples
    --------
    >>> import lmemtest as lt
    >>> runs = {"tool": list("ABC") * 4, "task": list("wwwxxxyyyzzz"), "loss": [1.0, 2, 9, 2, 1, 8] * 2}
    >>> means = lt.fit_lmm("loss ~ tool + (1|task)", runs).emmeans("tool")
    >>> means.joint().to_frame()[["term", "df_num", "df_den", "f_ratio"]].round(3)
       term  df_num  df_den  f_ratio
    0  tool       2     9.0    196.0
    """
    import pandas as pd

    plain = em.by_model()
    notes = ["All that are estimable are tested for equality."] if np.isnan(em.estimate).any() else []
    if plain is not em:
        notes.append("The joint test is by the model's standard errors, not by the moderated ones.")
    term = em.factor
    records = []
    for key, rows in plain.groups():
        known = plain.L[rows[np.isfinite(plain.estimate[rows])]]
        test = plain.f_test(known[1:] - known[0]) if len(known) > 1 else FTest.of(np.nan, 0, np.nan, plain.ddf)
        records.append({**key, "term": term, **{name: getattr(test, name) for name in STATISTICS}})
    return FTestsResult(
        table=pd.DataFrame(records, columns=[*em.by, "term", *STATISTICS]),
        hypotheses="marginal means",
        by=em.by,
        ddf=em.ddf,
        score=em.score,
        n_obs=em.n_obs,
        notes=(*plain.notes, *notes),
    )
