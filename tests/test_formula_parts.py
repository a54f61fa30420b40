"""Fits with natural splines and offsets against lme4 and emmeans (tests/reference/formulas.R)."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import lmemtest as lt

FITS = json.loads((Path(__file__).parent / "reference" / "formulas.json").read_text())["fits"]


@pytest.mark.parametrize("method", ["ML", "REML"])
@pytest.mark.parametrize("case", [f for f in FITS if "offset" not in f["formula"]], ids=lambda f: f["formula"])
def test_fits_match_lme4(reference_input, case, method):
    table, want = reference_input(case["data"]), case[method]
    fit = lt.fit_lmm(case["formula"], table, reml=method == "REML")
    scale = want["sigma"]
    assert fit.llf == pytest.approx(want["llf"], abs=1e-7)
    np.testing.assert_allclose(fit.params, want["fixef"], rtol=1e-6, atol=1e-6 * scale)
    np.testing.assert_allclose(fit.bse, want["se"], rtol=1e-6)
    np.testing.assert_allclose(fit.predict(table.head(20)), want["fitted"], rtol=0, atol=1e-6 * scale)
    np.testing.assert_allclose(fit.predict(table.head(20), random=False), want["population"], rtol=0, atol=1e-6 * scale)
    if "means" in want:
        spec = "treatment" if "treatment" in case["formula"] else "algorithm"
        means = lt.emmeans(fit, spec)
        np.testing.assert_allclose(means.emmean, [row["emmean"] for row in want["means"]], rtol=1e-6)
        np.testing.assert_allclose(means.se, [row["se"] for row in want["means"]], rtol=1e-6)
        np.testing.assert_allclose(means.df, [row["df"] for row in want["means"]], rtol=1e-4)
