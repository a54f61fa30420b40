"""Fixed terms that explain each other: generalised variance inflation, and columns that depend on others.

For a term with columns S and correlation matrix R of the estimates (intercept left out),

    GVIF = det R_SS  det R_rest / det R,

the squared volume of the term's confidence ellipsoid over that of uncorrelated terms (Fox & Monette 1992).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lmemtest._result import result
from lmemtest._rounding import written
from lmemtest.inference.diagnostics.check import Check, Judged

if TYPE_CHECKING:
    import pandas as pd
    from numpy.typing import NDArray

    from lmemtest.model import LmmFit

    Array = NDArray[np.float64]

# The standard error of a term is sqrt(VIF) times what it could be: more than 2.2 and 3.2 times.
VIF_LOOK, VIF_ACT = 5.0, 10.0


@result
class Collinearity(Judged):
    """Variance inflation of the fixed terms.

    Attributes
    ----------
    terms : tuple of str
        Terms with identified columns, the intercept left out.
    df : tuple of int
        Their columns.
    gvif : tuple of float
        Generalised variance inflation factors; of a term of one column the usual VIF.
    marginal : tuple of bool
        Whether another term contains this one (``a`` beside ``a:b``), or it contains another: its inflation depends
        on the coding, not on the data alone.
    aliased : tuple of str
        Columns that depend on others and were dropped.
    decision : {"fine", "look", "act"}
    advice : str
    """

    terms: tuple[str, ...]
    df: tuple[int, ...]
    gvif: tuple[float, ...]
    marginal: tuple[bool, ...]
    aliased: tuple[str, ...]
    decision: str
    advice: str

    @property
    def per_df(self) -> tuple[float, ...]:
        """``gvif ** (1 / (2 df))``: by how much the standard errors of the term are inflated, on average."""
        return tuple(g ** (0.5 / k) for g, k in zip(self.gvif, self.df, strict=True))

    def table(self) -> pd.DataFrame:
        """One row per term: ``term``, ``df``, ``gvif``, ``se_inflation`` (``gvif^(1/(2 df))``)."""
        import pandas as pd

        return pd.DataFrame(
            {"term": list(self.terms), "df": list(self.df), "gvif": self.gvif, "se_inflation": self.per_df}
        )

    @property
    def title(self) -> str:
        """One line above the table."""
        return "Collinearity of the fixed terms"

    def check(self) -> Check:
        """The line of the diagnosis."""
        worst = max(self.per_df, default=1.0)
        found = (
            f"standard errors up to {written(worst, '.3g')} times larger" if len(self.terms) > 1 else "at most one term"
        )
        if self.aliased:
            found = f"{len(self.aliased)} dependent column{'s' * (len(self.aliased) > 1)}"
        return self.line("collinearity", "fixed terms", found, worst)


def collinearity(fit: LmmFit) -> Collinearity:
    """Generalised variance inflation factors of the fixed terms.

    Parameters
    ----------
    fit : LmmFit

    Returns
    -------
    Collinearity
        The same factors as ``car::vif`` in R. In a model without an intercept they compare with uncorrelated columns
        that are not centred, and say little.

    References
    ----------
    Fox & Monette (1992). Generalized collinearity diagnostics. J. Am. Stat. Assoc. 87(417).
    doi:10.1080/01621459.1992.10475190

    Examples
    --------
    >>> import lmemtest as lt
    >>> from lmemtest.inference.diagnostics import collinearity
    >>> table = {"y": [1.0, 2.1, 2.9, 4.2, 4.8, 6.3], "x": [0.0, 1, 2, 3, 4, 5], "a": ["p", "q"] * 3}
    >>> collinearity(lt.fit_lmm("y ~ a + x", table)).to_frame().round(3).to_dict("list")
    {'term': ['a', 'x'], 'df': [1, 1], 'gvif': [1.094, 1.094], 'se_inflation': [1.046, 1.046]}
    """
    kept = {int(j): i for i, j in enumerate(fit.problem.kept)}
    aliased = tuple(name for j, name in enumerate(fit.design.x_names) if j not in kept)
    members: dict[str, list[int]] = {}
    for label, columns in fit.design.terms:
        own = [kept[j] for j in range(columns.start, columns.stop) if j in kept]
        if label != "Intercept" and own:
            members[label] = own
    covariance = fit.cov_params().to_numpy()
    every = [i for own in members.values() for i in own]
    log_det = {label: _gvif(covariance, own, every) for label, own in members.items()}
    parts = {label: set(label.split(":")) for label in members}
    marginal = tuple(any(parts[a] < parts[b] or parts[b] < parts[a] for b in members if b != a) for a in members)
    decision, advice = _decide(fit, tuple(members), members, log_det, marginal, aliased)
    return Collinearity(
        terms=tuple(members),
        df=tuple(map(len, members.values())),
        gvif=tuple(log_det.values()),
        marginal=marginal,
        aliased=aliased,
        decision=decision,
        advice=advice,
    )


def _gvif(covariance: Array, own: list[int], every: list[int]) -> float:
    rest = [i for i in every if i not in own]
    if not rest:
        return 1.0
    sd = np.sqrt(covariance.diagonal())
    R = covariance / np.outer(sd, sd)

    def log_determinant(part: list[int]) -> float:
        return float(np.linalg.slogdet(R[np.ix_(part, part)])[1])

    return float(np.exp(log_determinant(own) + log_determinant(rest) - log_determinant(every)))


def _decide(
    fit: LmmFit,
    terms: tuple[str, ...],
    members: dict[str, list[int]],
    gvif: dict[str, float],
    marginal: tuple[bool, ...],
    aliased: tuple[str, ...],
) -> tuple[str, str]:
    if aliased:
        shown = ", ".join(aliased[:3]) + (", ..." if len(aliased) > 3 else "")
        return (
            "act",
            f"{shown}: fixed by other columns and dropped. Leave a term out; means that need them are missing.",
        )
    vif = {t: gvif[t] ** (1.0 / len(members[t])) for t, m in zip(terms, marginal, strict=True) if not m}
    if len(vif) < 2:
        if any(marginal):
            return "fine", "All terms take part in interactions, whose inflation depends on the coding alone."
        return "fine", "There are no two terms that could explain each other."
    worst = max(vif, key=vif.__getitem__)
    if "Intercept" not in fit.design.x_names:
        return "fine", "Without an intercept the factors say little."
    if vif[worst] < VIF_LOOK:
        return "fine", "The fixed terms are distinguishable."
    decision = "act" if vif[worst] >= VIF_ACT else "look"
    return decision, (
        f"{worst} is hardly distinguishable from the other terms, which makes its standard errors "
        f"{written(np.sqrt(vif[worst]), '.3g')} times larger: leave one of them out, or do not interpret them one by "
        f"one."
    )
