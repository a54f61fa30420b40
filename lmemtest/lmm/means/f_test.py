"""F-tests that several linear functions of coefficients are all zero."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy import special

from lmemtest.core.options import DDF_NAMES
from lmemtest.core.result import Answer

if TYPE_CHECKING:
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
    df_num: float
    df_den: float
    p_value: float
    f_scale: float
    ddf: str

    @classmethod
    def of(cls, statistic: float, df_num: float, df_den: float, ddf: str, scale: float = 1.0) -> FTest:
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


def f_tests_answer(
    question: str,
    records: list[dict[Any, Any]],
    hypotheses: Hypotheses,
    by: tuple[str, ...],
    ddf: str,
    score: str,
    n_obs: int | None,
    notes: Sequence[str],
) -> Answer:
    """The answer of a question that has F-tests, one record each."""
    import pandas as pd

    within = f" by {', '.join(by)}" if by else ""
    rows = "" if n_obs is None else f", n = {n_obs} rows"
    return Answer(
        question=question,
        title=f"F-tests of the fixed terms ({hypotheses} hypotheses){within}",
        tables={"table": pd.DataFrame(records, columns=[*by, "term", *STATISTICS])},
        values={"hypotheses": hypotheses, "by": by, "ddf": ddf, "score": score, "n_obs": n_obs},
        facts=(f"Response {score}{rows}; {DDF_NAMES[ddf]} degrees of freedom.",),
        notes=tuple(notes),
    )


def joint(em: Estimates) -> Answer:
    """F-test that the estimates of a group are all equal, with the model's standard errors if these are moderated.

    Those that are not estimable are left out.

    Returns
    -------
    Answer
        One row per group of `by`: the columns of `by`, term, df_num, df_den, f_ratio, p_value, f_scale. Values:
        ``hypotheses``, ``by``, ``ddf``, ``score`` and ``n_obs``, as `anova` has them.

    Examples
    --------
    >>> import lmemtest as lt
    >>> runs = {"tool": list("ABC") * 4, "task": list("wwwxxxyyyzzz"), "loss": [1.0, 2, 9, 2, 1, 8] * 2}
    >>> means = lt.fit_lmm("loss ~ tool + (1|task)", runs).emmeans("tool")
    >>> means.joint().to_frame()[["term", "df_num", "df_den", "f_ratio"]].round(3)
       term  df_num  df_den  f_ratio
    0  tool       2     9.0    196.0
    """
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
    notes = [*plain.notes, *notes]
    return f_tests_answer("joint", records, "marginal means", em.by, em.ddf, em.score, em.n_obs, notes)
