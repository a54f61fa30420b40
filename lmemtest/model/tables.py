"""A fit as tables: fixed effects, variance components, and what is known about the optimum."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

from lmemtest._rounding import written
from lmemtest._table import ResultTable

if TYPE_CHECKING:
    from lmemtest.model.fit import DdfMethod, LmmFit


def fixed_effects(fit: LmmFit, ddf: DdfMethod = "satterthwaite") -> pd.DataFrame:
    """Estimates with their t-tests; see `LmmFit.to_frame`."""
    from scipy.special import stdtr

    if ddf == "kenward-roger" and not fit.reml:
        return fixed_effects(fit.refit(reml=True), ddf)
    rows = np.eye(len(fit.params))
    df = fit.df(rows, ddf)
    se = np.sqrt(fit.cov(rows, ddf).diagonal())
    estimate = fit.estimate(rows)  # of a kept column that a dropped one is tied to there is none, as for its error
    t = estimate / se
    return pd.DataFrame(
        {
            "term": list(fit.design.x_names),
            "estimate": estimate,
            "se": se,
            "df": df,
            "t_ratio": t,
            "p_value": 2.0 * stdtr(df, -np.abs(t)),
        }
    )


def certificate(fit: LmmFit) -> pd.DataFrame:
    """What is known about the optimum; see `LmmFit.certificate`."""
    o = fit.optim
    rows = [
        (
            "newton_decrement",
            o.decrement,
            "expected gain of another Newton step, in units of -2 log-likelihood; 0 is best",
        ),
        ("boundary_slope", o.boundary_slope, "negative: a variance wants to leave zero; NaN: none is zero"),
        ("smallest_curvature", fit.curvature.smallest, "over the largest; near 0: a direction is not identified"),
        ("starts", float(o.restarts + 1), "starting points of the search"),
        ("starts_agreeing", float(o.agreeing), "starts that ended at this optimum to 1e-5"),
        ("evaluations", float(o.evaluations), "evaluations of the likelihood"),
    ]
    return pd.DataFrame(rows, columns=["check", "value", "meaning"])


def tables(fit: LmmFit) -> tuple[ResultTable, ...]:
    """Fixed effects and variance components."""
    method = "restricted maximum likelihood" if fit.reml else "maximum likelihood"
    head = (
        f"{fit.label}, fitted by {method}: log-likelihood {written(fit.llf, '.4f')}, AIC {written(fit.aic, '.2f')}, "
        f"{fit.nobs:,} rows in {len(fit.cells.n):,} cells, {fit.n_params} parameters; {fit.optim.message}.",
    )
    return (
        ResultTable(title="Fixed effects", frame=fit.to_frame(), notes=head + fit.notes),
        ResultTable(title="Variance components", frame=fit.varcorr),
    )
