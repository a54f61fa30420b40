"""How often the diagnosis of a generalised model objects to models that are true, and finds what is wrong.

python tests/simulation/test_glmm_diagnosis.py 100
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

sys.path.append(str(Path(__file__).parent))

from harness import at_least, at_most, each, printed, rate_of
from scipy import special

import lmemtest as lt

GROUPS, TOOLS, ROWS, ALPHA = 12, 2, 4, 0.05
KINDS = ("dispersion", "link", "ends", "skewness", "outlier")
# What is wrong with a table; with "" nothing is.
WRONG = ("", "dispersion", "outlier", "skewness")
DESIGNS = [("binomial", ""), *(("poisson", wrong) for wrong in WRONG)]


def table(rng: np.random.Generator, family: str, wrong: str) -> pd.DataFrame:
    """Counts of about 4, or successes of ten attempts, of two equal tools in groups."""
    group, tool, _ = (a.ravel() for a in np.indices((GROUPS, TOOLS, ROWS)))
    effects = rng.exponential(size=GROUPS) - 1.0 if wrong == "skewness" else rng.normal(0.0, 0.5, GROUPS)
    scatter = 0.6 * rng.standard_normal(len(group)) if wrong == "dispersion" else 0.0
    eta = effects[group] + scatter
    if family == "poisson":
        y = rng.poisson(4.0 * np.exp(eta))
        y[0] += 40 * (wrong == "outlier")
    else:
        y = rng.binomial(10, special.expit(1.0 + eta))
    return pd.DataFrame({"y": y, "n": 10, "tool": np.array(["A", "B"])[tool], "group": group})


def objections(family: str, wrong: str, n: int) -> dict[str, float]:
    """Shares of tables with a p-value of at most 5 % by each check, of the cells or of the effects of the groups."""

    def study(rng: np.random.Generator) -> dict[str, float]:
        trials = "n" if family == "binomial" else None
        fit = lt.fit_glmm("y ~ tool + (1 | group)", table(rng, family, wrong), family=family, trials=trials)
        found = fit.diagnose(n_draws=99, rng=rng)
        p = {check.kind: check.p_value for check in found.checks[::-1]}  # of outliers that of the cells
        return {kind: float(p[kind] <= ALPHA) if p.get(kind, np.nan) >= 0.0 else np.nan for kind in KINDS}

    return rate_of(study, n, each(len(family), WRONG.index(wrong)))


@pytest.mark.parametrize("family", ["poisson", "binomial"])
def test_checks_of_true_models_object_in_five_percent(family: str) -> None:
    n = 100
    shares = objections(family, "", n)
    assert [kind for kind in KINDS if not at_most(shares[kind], n, ALPHA)] == []


@pytest.mark.parametrize(("wrong", "power"), [("dispersion", 0.6), ("outlier", 0.9), ("skewness", 0.15)])
def test_what_is_wrong_is_found(wrong: str, power: float) -> None:
    n = 100
    assert at_least(objections("poisson", wrong, n)[wrong], n, power)


if __name__ == "__main__":
    draws = int(sys.argv[1])
    printed(objections, {f"{family}, {wrong or 'true'}": (family, wrong, draws) for family, wrong in DESIGNS})
