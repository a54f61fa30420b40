"""How much of the variance of a row the fixed and the random effects explain: R2 and intra-class correlation.

With ``V_f`` the variance of the fixed part over rows, ``V_j`` the mean over rows of ``basis' Sigma basis`` of random
term j (Johnson 2014, for slopes), and ``V_e`` the mean residual variance of a row,

    marginal R2 = V_f / V,   conditional R2 = (V_f + sum V_j) / V,   V = V_f + sum V_j + V_e
    adjusted ICC = sum V_j / (sum V_j + V_e),   unadjusted ICC = sum V_j / V

(Nakagawa, Johnson & Schielzeth 2017).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from lmemtest.core.result import Answer
from lmemtest.core.rounding import written
from lmemtest.core.verdicts import Finding, judged
from lmemtest.lmm.diagnostics.draws import residual_variance_of_rows
from lmemtest.lmm.model.given import check_linear

if TYPE_CHECKING:
    from lmemtest.lmm.model import LmmFit


def explained_variance(fit: LmmFit) -> Answer:
    """Variance explained by fixed and random effects.

    Parameters
    ----------
    fit : LmmFit
        Its own likelihood counts: variance components by maximum likelihood are smaller than by REML.

    Returns
    -------
    Answer
        Shares of the variance of a row: ``r2_marginal`` (of the fixed effects), ``r2_conditional`` (of fixed and random
        effects together), ``icc_adjusted`` (of the random effects in what the fixed effects leave), ``icc_unadjusted``
        (of the random effects in everything), ``icc_by_group`` (the adjusted ICC of each grouping factor); in its
        table by ``measure`` and ``group`` (empty for all), too. Behind them, in squared units of the response:
        ``total`` = ``fixed`` (variance of the fixed part over the rows, divisor rows - 1) + the sum of ``random`` (of
        each of the ``terms``, by their ``groups``) + ``residual`` (mean residual variance of a row).

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
    >>> from lmemtest.lmm.diagnostics import explained_variance
    >>> table = {"y": [1.0, 2.1, 2.9, 4.2, 4.8, 6.3], "a": ["p", "q"] * 3, "g": [1, 1, 2, 2, 3, 3]}
    >>> shares = explained_variance(lt.fit_lmm("y ~ a + (1 | g)", table))
    >>> round(shares.r2_marginal, 4), round(shares.r2_conditional, 4), round(shares.icc_adjusted, 4)
    (0.1122, 0.9956, 0.995)
    """
    check_linear(fit, "explained variance (R2, ICC)", "On the scale of its link the variances are fit.varcorr.")
    return shares_of(fit)


def shares_of(fit: LmmFit) -> Answer:
    """The same of a linear model."""
    n, terms = fit.cells.n, fit.design.random
    rows = float(n.sum())
    fitted = fit.cell_predictions(random=False)
    fixed = float(n @ (fitted - float(n @ fitted) / rows) ** 2) / (rows - 1.0)
    random = tuple(
        float(n @ np.einsum("nk,kl,nl->n", term.basis, S, term.basis)) / rows
        for term, S in zip(terms, fit.covariances, strict=True)
    )
    residual = float(n @ residual_variance_of_rows(fit)) / rows
    between = sum(random)
    total, left = fixed + between + residual, between + residual
    shares = {
        "r2_marginal": fixed / total,
        "r2_conditional": (fixed + between) / total,
        "icc_adjusted": between / left,
        "icc_unadjusted": between / total,
    }
    by_group = dict.fromkeys((term.group for term in terms), 0.0)
    for term, variance in zip(terms, random, strict=True):
        by_group[term.group] += variance / left
    measures = [(name, "", share) for name, share in shares.items()]
    measures += [("icc_adjusted", group, share) for group, share in by_group.items()]
    values = {
        **shares,
        "icc_by_group": by_group,
        "total": total,
        "fixed": fixed,
        "terms": tuple(term.label for term in terms),
        "groups": tuple(term.group for term in terms),
        "random": random,
        "residual": residual,
    }
    table = pd.DataFrame(measures, columns=["measure", "group", "value"])
    return judged(_explained(shares, by_group, residual / total), "Explained variance", table, values)


def _explained(shares: dict[str, float], by_group: dict[str, float], residual: float) -> Finding:
    """The line of the diagnosis; there is no wrong value, so it is always fine."""
    marginal, conditional = shares["r2_marginal"], shares["r2_conditional"]
    advice = f"Fixed effects explain {written(100 * marginal, '.3g')} % of the variance of a row"
    left = f"{written(100 * residual, '.3g')} %"
    if not by_group:
        advice = f"{advice}; {left} is chance."
    else:
        most = max(by_group, key=by_group.__getitem__)
        advice += (
            f", groups {written(100 * shares['icc_unadjusted'], '.3g')} % (most: {most}), "
            f"{left} is left. A small share is no fault of the model."
        )
    return Finding(
        "fine",
        "explained",
        f"R2 {written(marginal, '.4f')} marginal, {written(conditional, '.4f')} conditional",
        advice,
        subject="variance",
        value=conditional,
    )


def r2(fit: LmmFit) -> pd.Series[float]:
    """Shares of the variance that are explained: ``marginal`` by the fixed effects, ``conditional`` by all.

    Examples
    --------
    >>> import lmemtest as lt
    >>> table = {"y": [1.0, 2.1, 2.9, 4.2, 4.8, 6.3], "a": ["p", "q"] * 3, "g": [1, 1, 2, 2, 3, 3]}
    >>> lt.fit_lmm("y ~ a + (1 | g)", table).r2().round(4).to_dict()
    {'marginal': 0.1122, 'conditional': 0.9956}
    """
    shares = explained_variance(fit)
    return pd.Series({"marginal": shares.r2_marginal, "conditional": shares.r2_conditional})


def icc(fit: LmmFit) -> float:
    """Share of the random effects in the variance that the fixed effects leave: the adjusted intra-class correlation.

    Examples
    --------
    >>> import lmemtest as lt
    >>> table = {"y": [1.0, 2.1, 2.9, 4.2, 4.8, 6.3], "a": ["p", "q"] * 3, "g": [1, 1, 2, 2, 3, 3]}
    >>> round(lt.fit_lmm("y ~ a + (1 | g)", table).icc(), 4)
    0.995
    """
    return float(explained_variance(fit).icc_adjusted)
