"""How a fit is built: levels of its random terms, collinearity of its fixed ones, and how much either explains.

With ``V_f`` the variance of the fixed part over rows, ``V_j`` the mean over rows of ``basis' Sigma basis`` of random
term j (Johnson 2014, for slopes), and ``V_e`` the mean residual variance of a row,

    marginal R2 = V_f / V,   conditional R2 = (V_f + sum V_j) / V,   V = V_f + sum V_j + V_e
    adjusted ICC = sum V_j / (sum V_j + V_e),   unadjusted ICC = sum V_j / V

(Nakagawa, Johnson & Schielzeth 2017). For a fixed term with columns S and correlation matrix R of the estimates
(intercept left out) the variance is inflated by ``GVIF = det R_SS  det R_rest / det R``, the squared volume of the
term's confidence ellipsoid over that of uncorrelated terms (Fox & Monette 1992).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from lmemtest.core.result import Answer
from lmemtest.core.rounding import written
from lmemtest.core.verdicts import Finding, judged
from lmemtest.core.words import counted
from lmemtest.lmm.diagnostics.draws import residual_variance_of_rows
from lmemtest.lmm.means.reference_grid import check_linear

if TYPE_CHECKING:
    from lmemtest.lmm.model import LmmFit

# The standard error of a variance from q levels is sqrt(2 / (q - 1)) of it at best: 47 % from 10, 71 % from 5.
LEVELS_NOTE = 10
# The standard error of a term is sqrt(VIF) times what it could be: more than 2.2 and 3.2 times.
VIF_NOTE, VIF_WARNING = 5.0, 10.0


def groups(fit: LmmFit) -> Answer:
    """Levels and boundaries of the random terms, and the certificate of the search.

    Returns
    -------
    Answer
        ``table``, one row per term: ``term``, ``levels``, ``singular`` (its covariance is on the boundary),
        ``relative_se`` (of its variance, at best). ``checks``, the lines of the diagnosis: one per term, and the
        search; ``message``, what the search said.

    Examples
    --------
    >>> import lmemtest as lt
    >>> from lmemtest.lmm.diagnostics.structure import groups
    >>> table = {"y": [1.0, 2.1, 2.9, 4.2, 4.8, 6.3], "a": ["p", "q"] * 3, "g": [1, 1, 2, 2, 3, 3]}
    >>> groups(lt.fit_lmm("y ~ a + (1 | g)", table)).to_frame().to_dict("list")
    {'term': ['(1 | g)'], 'levels': [3], 'singular': [False], 'relative_se': [1.0]}
    """
    rows, checks = [], []
    for term in fit.design.random:
        levels, singular = len(term.levels), term.label in fit.singular_terms
        relative = float(np.sqrt(2.0 / (levels - 1)))
        rows.append((term.label, levels, singular, relative))
        advice = []
        if singular:
            advice.append(
                "A variance is zero or a correlation one; the tests stand, a simpler term gives the same fit."
            )
        if levels < LEVELS_NOTE:
            advice.append(
                f"Its variance is known to ±{written(100.0 * relative, '.0f')} % at best: use ddf='kenward-roger', and "
                "do not read the variance."
            )
        finding = f"{levels:,} levels{', singular' if singular else ''}"
        text = " ".join(advice) or "Enough levels to estimate the variance."
        checks.append(
            Finding("note" if advice else "fine", "groups", finding, text, subject=term.label, value=float(levels))
        )
    finding, severity, text = "certified", "fine", "The optimum is certified: no step improves the likelihood."
    if not fit.converged:
        finding, severity = "not certified", "warning"
        text = f"The search {fit.optim.message}: fit again with restarts=5, or a simpler random part."
    checks.append(Finding(severity, "convergence", finding, text, subject="search", value=float(fit.converged)))
    return Answer(
        question="groups",
        title="Groups",
        tables={"table": pd.DataFrame(rows, columns=["term", "levels", "singular", "relative_se"])},
        values={"checks": tuple(checks), "message": fit.optim.message},
        findings=(f"The search {fit.optim.message}.",),
    )


def collinearity(fit: LmmFit) -> Answer:
    """Generalised variance inflation factors of the fixed terms.

    Parameters
    ----------
    fit : LmmFit

    Returns
    -------
    Answer
        ``table``, one row per term with identified columns, the intercept left out: ``term``, ``df`` (its columns),
        ``gvif`` (of one column the usual VIF), ``se_inflation`` (``gvif^(1/(2 df))``: by how much the standard errors
        of the term are inflated, on average). ``marginal``: whether another term contains this one (``a`` beside
        ``a:b``), or it contains another, so that its inflation depends on the coding, not on the data alone;
        ``aliased``: columns that depend on others and were dropped; ``check`` with ``severity`` and ``advice``.
        The factors are those of ``car::vif`` in R. In a model without an intercept they compare with uncorrelated
        columns that are not centred, and say little.

    References
    ----------
    Fox & Monette (1992). Generalized collinearity diagnostics. J. Am. Stat. Assoc. 87(417).
    doi:10.1080/01621459.1992.10475190

    Examples
    --------
    >>> import lmemtest as lt
    >>> from lmemtest.lmm.diagnostics import collinearity
    >>> table = {"y": [1.0, 2.1, 2.9, 4.2, 4.8, 6.3], "x": [0.0, 1, 2, 3, 4, 5], "a": ["p", "q"] * 3}
    >>> collinearity(lt.fit_lmm("y ~ a + x", table)).to_frame().round(3).to_dict("list")
    {'term': ['a', 'x'], 'df': [1, 1], 'gvif': [1.094, 1.094], 'se_inflation': [1.046, 1.046]}
    """
    names = fit.design.x_names
    place = {int(j): i for i, j in enumerate(fit.problem.kept)}
    aliased = tuple(name for j, name in enumerate(names) if j not in place)
    members: dict[str, list[int]] = {}
    for label, columns in fit.design.terms:
        of_term = [place[j] for j in range(columns.start, columns.stop) if j in place]
        if label != "Intercept" and of_term:
            members[label] = of_term
    covariance = fit.cov_params().to_numpy()
    sd = np.sqrt(covariance.diagonal())
    R = covariance / np.outer(sd, sd)
    every = [i for of_term in members.values() for i in of_term]

    def log_determinant(part: list[int]) -> float:
        return float(np.linalg.slogdet(R[np.ix_(part, part)])[1])

    gvif = []
    for of_term in members.values():
        rest = [i for i in every if i not in of_term]
        shared = log_determinant(of_term) + log_determinant(rest) - log_determinant(every) if rest else 0.0
        gvif.append(float(np.exp(shared)))
    table = pd.DataFrame({"term": list(members), "df": [len(of_term) for of_term in members.values()], "gvif": gvif})
    table["se_inflation"] = table["gvif"] ** (0.5 / table["df"])
    parts = [set(label.split(":")) for label in members]
    marginal = tuple(any(a < b or b < a for b in parts) for a in parts)
    largest = float(table["se_inflation"].max()) if len(table) else 1.0
    finding = f"standard errors up to {written(largest, '.3g')} times larger" if len(table) > 1 else "at most one term"
    alone = table[~np.array(marginal, dtype=bool)]
    vif = alone["gvif"] ** (1.0 / alone["df"])
    severity = "fine"
    if aliased:
        severity, finding = "warning", counted(len(aliased), "dependent column")
        first_names = ", ".join(aliased[:3]) + (", ..." if len(aliased) > 3 else "")
        advice = (
            f"{first_names}: fixed by other columns and dropped. Leave a term out; means that need them are missing."
        )
    elif len(vif) < 2:
        advice = (
            "All terms take part in interactions, whose inflation depends on the coding alone."
            if any(marginal)
            else "There are no two terms that could explain each other."
        )
    elif "Intercept" not in names:
        advice = "Without an intercept the factors say little."
    elif vif.max() < VIF_NOTE:
        advice = "The fixed terms are distinguishable."
    else:
        severity = "warning" if vif.max() >= VIF_WARNING else "note"
        advice = (
            f"{alone['term'][vif.idxmax()]} is hardly distinguishable from the other terms, which makes its standard "
            f"errors {written(np.sqrt(vif.max()), '.3g')} times larger: leave one of them out, or do not interpret "
            "them one by one."
        )
    check = Finding(severity, "collinearity", finding, advice, subject="fixed terms", value=largest)
    return judged(check, "Collinearity of the fixed terms", table, {"marginal": marginal, "aliased": aliased})


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
    check_linear(fit, "explained_variance()", "Take the variances themselves, fit.varcorr.")
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
