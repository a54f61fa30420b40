"""How a fit is built: levels of its random terms, and collinearity of its fixed ones.

For a fixed term with columns S and correlation matrix R of the estimates (intercept left out) the variance is inflated
by ``GVIF = det R_SS  det R_rest / det R``, the squared volume of the term's confidence ellipsoid over that of
uncorrelated terms (Fox & Monette 1992).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from lmemtest.core.caller import advice
from lmemtest.core.result import Answer
from lmemtest.core.rounding import written
from lmemtest.core.verdicts import Finding, judged
from lmemtest.core.words import counted

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
    rows, checks, linear = [], [], fit.distribution == "normal"
    ddf = advice("value", name="ddf", value="kenward-roger")
    degrees = f", and use Kenward-Roger degrees of freedom ({ddf})" if linear else ""
    for term in fit.design.random:
        levels, singular = len(term.levels), term.label in fit.singular_terms
        relative = float(np.sqrt(2.0 / (levels - 1)))
        rows.append((term.label, levels, singular, relative))
        steps = []
        if singular:
            steps.append("A variance is zero or a correlation one; the tests stand, a simpler term gives the same fit.")
        if levels < LEVELS_NOTE:
            percent = written(100.0 * relative, ".0f")
            steps.append(f"Its variance is known to within ±{percent} % at best: read it with caution{degrees}.")
        finding = f"{levels:,} levels{', singular' if singular else ''}"
        text = " ".join(steps) or "Enough levels to estimate the variance."
        checks.append(
            Finding("note" if steps else "fine", "groups", finding, text, subject=term.label, value=float(levels))
        )
    finding, severity, text = "certified", "fine", "The optimum is certified: no step improves the likelihood."
    if not linear:
        finding, text = "converged", "The estimates converged: a further step does not move them."
    if not fit.converged:
        finding, severity, text = f"not {finding}", "warning", fit.unfinished
    checks.append(Finding(severity, "convergence", finding, text, subject="search", value=float(fit.converged)))
    return Answer(
        question="groups",
        title="Groups",
        tables={"table": pd.DataFrame(rows, columns=["term", "levels", "singular", "relative_se"])},
        values={"checks": tuple(checks), "message": fit.optim.message},
        findings=(text,),
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
