"""How much of the variance is explained: R2, and the correlation of scores that share groups (ICC).

With ``V_f`` the variance of the fixed part over rows, ``V_j`` the mean over rows of ``basis' Sigma basis`` of random
term j (Johnson 2014, for slopes), and ``V_e`` the mean residual variance of a row,

    marginal R2 = V_f / V,   conditional R2 = (V_f + sum V_j) / V,   V = V_f + sum V_j + V_e
    adjusted ICC = sum V_j / (sum V_j + V_e),   unadjusted ICC = sum V_j / V

(Nakagawa, Johnson & Schielzeth 2017).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from lmemtest._result import result
from lmemtest._rounding import written
from lmemtest.inference.diagnostics.check import Check, Judged
from lmemtest.inference.diagnostics.draws import residual_variance_of_rows

if TYPE_CHECKING:
    import pandas as pd

    from lmemtest.model import LmmFit


@result
class Explained(Judged):
    """Shares of the variance of a row.

    Attributes
    ----------
    fixed : float
        Variance of the fixed part over the rows (divisor rows - 1), in squared units of the response.
    terms : tuple of str
        Labels of the random terms.
    groups : tuple of str
        Their grouping factors.
    random : tuple of float
        Variance of a row from each random term.
    residual : float
        Mean residual variance of a row.
    """

    fixed: float
    terms: tuple[str, ...]
    groups: tuple[str, ...]
    random: tuple[float, ...]
    residual: float

    @property
    def total(self) -> float:
        """All variance of a row."""
        return self.fixed + sum(self.random) + self.residual

    @property
    def r2_marginal(self) -> float:
        """Share of the fixed effects."""
        return self.fixed / self.total

    @property
    def r2_conditional(self) -> float:
        """Share of fixed and random effects together."""
        return (self.fixed + sum(self.random)) / self.total

    @property
    def icc_adjusted(self) -> float:
        """Share of the random effects in what the fixed effects leave."""
        left = sum(self.random) + self.residual
        return sum(self.random) / left

    @property
    def icc_unadjusted(self) -> float:
        """Share of the random effects in everything."""
        return sum(self.random) / self.total

    @property
    def icc_by_group(self) -> dict[str, float]:
        """Adjusted ICC of each grouping factor."""
        left = sum(self.random) + self.residual
        shares = dict.fromkeys(self.groups, 0.0)
        for group, variance in zip(self.groups, self.random, strict=True):
            shares[group] += variance / left
        return shares

    def table(self) -> pd.DataFrame:
        """One row per measure: ``measure``, ``group`` (empty for all), ``value``."""
        import pandas as pd

        rows = [
            ("r2_marginal", "", self.r2_marginal),
            ("r2_conditional", "", self.r2_conditional),
            ("icc_adjusted", "", self.icc_adjusted),
            ("icc_unadjusted", "", self.icc_unadjusted),
            *(("icc_adjusted", group, share) for group, share in self.icc_by_group.items()),
        ]
        return pd.DataFrame(rows, columns=["measure", "group", "value"])

    @property
    def title(self) -> str:
        """One line above the table."""
        return "Explained variance"

    decision = "fine"  # there is no wrong value

    @property
    def advice(self) -> str:  # type: ignore[override]
        """The measures in words."""
        fixed = f"Fixed effects explain {written(100 * self.r2_marginal, '.3g')} % of the variance of a row"
        if not self.random:
            return f"{fixed}; {written(100 * self.residual / self.total, '.3g')} % is chance."
        shares = {group: share * (1.0 - self.r2_marginal) for group, share in self.icc_by_group.items()}
        largest = max(shares, key=shares.__getitem__)
        return (
            f"{fixed}, groups {written(100 * self.icc_unadjusted, '.3g')} % (most: {largest}), "
            f"{written(100 * self.residual / self.total, '.3g')} % is left. A small share is no fault of the model."
        )

    def check(self) -> Check:
        """The line of the diagnosis; there is no wrong value, so it is always fine."""
        found = f"R2 {written(self.r2_marginal, '.4f')} marginal, {written(self.r2_conditional, '.4f')} conditional"
        return self.line("explained", "variance", found, self.r2_conditional)


def explained_variance(fit: LmmFit) -> Explained:
    """Variance explained by fixed and random effects.

    Parameters
    ----------
    fit : LmmFit
        Its own likelihood counts: variance components by maximum likelihood are smaller than by REML.

    Returns
    -------
    Explained
        ``.r2_marginal``, ``.r2_conditional``, ``.icc_adjusted``, ``.icc_unadjusted``, ``.icc_by_group``.

    References
    ----------
    Nakagawa, Johnson & Schielzeth (2017). The coefficient of determination R2 and intra-class correlation coefficient
    from generalized linear mixed-effects models revisited and expanded. J. R. Soc. Interface 14.
    doi:10.1098/rsif.2017.0213

    Johnson (2014). Extension of Nakagawa & Schielzeth's R2GLMM to random slopes models. Methods Ecol. Evol. 5.
    doi:10.1111/2041-210X.12225

    Examples
    --------
    >>> import lmemtest as lt
    >>> from lmemtest.inference.diagnostics import explained_variance
    >>> table = {"y": [1.0, 2.1, 2.9, 4.2, 4.8, 6.3], "a": ["p", "q"] * 3, "g": [1, 1, 2, 2, 3, 3]}
    >>> shares = explained_variance(lt.fit_lmm("y ~ a + (1 | g)", table))
    >>> round(shares.r2_marginal, 4), round(shares.r2_conditional, 4), round(shares.icc_adjusted, 4)
    (0.1122, 0.9956, 0.995)
    """
    n = fit.cells.n
    rows = float(n.sum())
    fitted = fit.predict(random=False)
    centre = float(n @ fitted) / rows
    contributions = []
    for term, S in zip(fit.design.random, fit.covariances, strict=True):
        per_cell = np.einsum("nk,kl,nl->n", term.basis, S, term.basis)
        contributions.append(float(n @ per_cell) / rows)
    return Explained(
        fixed=float(n @ (fitted - centre) ** 2) / (rows - 1.0),
        terms=tuple(term.label for term in fit.design.random),
        groups=tuple(term.group for term in fit.design.random),
        random=tuple(contributions),
        residual=float(n @ residual_variance_of_rows(fit)) / rows,
    )
