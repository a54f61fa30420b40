"""R2, ICC and variance inflation are those of performance and car in R."""

from __future__ import annotations

import numpy as np
import pytest
from pytest import approx
from references import values

import lmemtest as lt
from lmemtest.lmm.diagnostics import collinearity, explained_variance

REFERENCE = values("diagnostics")["models"]
MEASURES = ("r2_marginal", "r2_conditional", "icc_adjusted", "icc_unadjusted")


@pytest.fixture(params=range(len(REFERENCE)), ids=lambda i: f"{REFERENCE[i]['data']}-{i}")
def model(request):
    return REFERENCE[request.param]


@pytest.mark.parametrize("method", ["ML", "REML"])
def test_shares_and_inflation_agree(model, method, fitted):
    fit = fitted(model["data"], model["formula"], method == "REML")
    want = model[method]
    shares = explained_variance(fit)
    assert [getattr(shares, m) for m in MEASURES] == approx([want[m] for m in MEASURES], abs=1e-7)
    ours = {frozenset(group.split(":")): share for group, share in shares.icc_by_group.items()}
    for row in want.get("by_group", []):
        assert ours[frozenset(row["group"].split(":"))] == approx(row["icc"], abs=1e-7)
    if want["vif"] is not None:
        inflation = collinearity(fit)
        assert inflation.table["term"].tolist() == [row["term"] for row in want["vif"]]
        assert inflation.table["gvif"].tolist() == approx([row["gvif"] for row in want["vif"]], rel=1e-6)
        assert inflation.table["df"].tolist() == [row["df"] for row in want["vif"]]


def test_uncorrelated_slopes_count_whole(fitted):
    """insight 0.19 leaves the slope of (Days||Subject) out; the variance of a row is that of the model."""
    fit = fitted("sleepstudy", "Reaction ~ Days + (Days||Subject)")
    days = fit.cells.frame["Days"].to_numpy()
    intercept, slope = (float(S[0, 0]) for S in fit.covariances)
    shares = explained_variance(fit)
    assert sum(shares.random) == approx(np.average(intercept + slope * days**2, weights=fit.cells.n))
    assert shares.icc_by_group == {"Subject": approx(shares.icc_adjusted)}


def test_shares_of_a_model_without_groups_are_those_of_a_regression():
    rng = np.random.default_rng(1)
    x = rng.normal(size=50)
    y = x + rng.normal(size=50)
    shares = explained_variance(lt.fit_lmm("y ~ x", {"x": x, "y": y}))
    r2 = np.corrcoef(x, y)[0, 1] ** 2
    explained, left = r2 * y.var() * 50 / 49, (1 - r2) * y.var() * 50 / 48
    assert shares.r2_marginal == approx(explained / (explained + left))
    assert shares.r2_conditional == shares.r2_marginal
    assert (shares.icc_adjusted, shares.icc_by_group) == (0.0, {})
    assert shares.advice.endswith("% is chance.")


def test_weights_and_dispersion_use_the_variance_of_each_row(make):
    table = make.table(np.random.default_rng(2), scales=np.linspace(0.5, 3, 12))
    fit = lt.fit_lmm(make.formula, table, dispersion="benchmark")
    shares = explained_variance(fit)
    assert shares.residual == approx(fit.residual_variances.mean())  # equally many rows each
    assert shares.total == approx(shares.fixed + sum(shares.random) + shares.residual)
