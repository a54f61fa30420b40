"""Fits with natural splines and offsets against lme4 and emmeans (tests/reference/formulas.R)."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from references import values
from refusals import refusal

import lmemtest as lt
from lmemtest.errors import ArgumentError, DataError, FormulaError, NestingError
from lmemtest.lmm.formula import parse_formula
from lmemtest.lmm.hypotheses.null_distributions import simulator

FITS = values("formulas")["fits"]


@pytest.mark.parametrize("method", ["ML", "REML"])
@pytest.mark.parametrize("case", FITS, ids=lambda f: f["formula"])
def test_fits_match_lme4(reference_input, case, method):
    table, want = reference_input(case["data"]), case[method]
    fit = lt.fit_lmm(case["formula"], table, reml=method == "REML")
    scale = want["sigma"]
    assert fit.llf == pytest.approx(want["llf"], abs=1e-7)
    np.testing.assert_allclose(fit.params, want["fixef"], rtol=1e-6, atol=1e-6 * scale)
    np.testing.assert_allclose(fit.bse, want["se"], rtol=1e-6)
    np.testing.assert_allclose(fit.predict(table.head(20)), want["fitted"], rtol=0, atol=1e-6 * scale)
    np.testing.assert_allclose(fit.fittedvalues.head(20), want["fitted"], rtol=0, atol=1e-6 * scale)  # in R's order
    np.testing.assert_allclose(fit.predict(table.head(20), random=False), want["population"], rtol=0, atol=1e-6 * scale)
    if "means" in want:
        spec = "treatment" if "treatment" in case["formula"] else "algorithm"
        means = fit.emmeans(spec)
        np.testing.assert_allclose(means.estimate, [row["emmean"] for row in want["means"]], rtol=1e-6)
        np.testing.assert_allclose(means.se, [row["se"] for row in want["means"]], rtol=1e-6)
        np.testing.assert_allclose(means.df, [row["df"] for row in want["means"]], rtol=1e-4)


OFFSET = "y ~ treatment + offset(x) + offset(2 * x) + (1|a)"


@pytest.fixture
def shifted(reference_input):
    """A table, and the same with the known part taken out of the response."""
    table = reference_input("nested_slopes")
    table["x"] = table["x"].round()  # several rows to a cell
    return table, table.assign(y=table["y"] - 3 * table["x"])


def test_an_offset_is_a_response_without_the_known_part(shifted):
    table, rest = shifted
    fit, other = lt.fit_lmm(OFFSET, table), lt.fit_lmm("y ~ treatment + (1|a)", rest)
    assert fit.llf == pytest.approx(other.llf, rel=1e-12)
    np.testing.assert_allclose(fit.params, other.params, rtol=1e-8)
    np.testing.assert_allclose(fit.to_frame()["df"], other.to_frame()["df"], rtol=1e-5)
    np.testing.assert_allclose(fit.predict(table), other.predict(rest) + 3 * table["x"], rtol=1e-7)
    robust, plain = (f.cluster_robust("a").to_frame() for f in (fit, other))
    np.testing.assert_allclose(robust["se"], plain["se"], rtol=1e-6)
    moved, still = (f.influence("a").to_frame() for f in (fit, other))
    np.testing.assert_allclose(moved["cooks_distance"], still["cooks_distance"], rtol=1e-5)


def test_residuals_and_intervals_are_of_the_response(shifted):
    table, _ = shifted
    fit = lt.fit_lmm(OFFSET, table)
    np.testing.assert_allclose(fit.cell_residuals(), fit.cells.mean - fit.predict(fit.cells.frame), rtol=1e-10)
    np.testing.assert_allclose(fit.residuals(), table["y"] - fit.predict(table), rtol=1e-10)
    found = fit.prediction_intervals(table.head(5))
    np.testing.assert_allclose(found["prediction"], fit.predict(table.head(5)), rtol=1e-12)


def test_draws_have_the_known_part(shifted):
    fit = lt.fit_lmm(OFFSET, shifted[0])
    again = [fit.refit(cells=fit.simulate(rng=seed)).params["Intercept"] for seed in range(40)]
    assert np.mean(again) == pytest.approx(fit.params["Intercept"], abs=4 * fit.bse["Intercept"] / np.sqrt(40))
    np.testing.assert_allclose(
        simulator(fit, fit.cells).keywords["mean"], fit.cell_predictions(random=False), rtol=1e-10
    )


def test_means_count_the_offset_and_differences_at_one_place_do_not(shifted):
    table, rest = shifted
    fit, other = lt.fit_lmm(OFFSET, table), lt.fit_lmm("y ~ treatment + (1|a)", rest)
    means, plain = fit.emmeans("treatment"), other.emmeans("treatment")
    np.testing.assert_allclose(means.estimate, plain.estimate + 3 * table["x"].mean(), rtol=1e-7)
    np.testing.assert_allclose(means.se, plain.se, rtol=1e-7)
    assert f"The offset is held at its mean over the rows, {3 * table['x'].mean():.6g}." in means.notes
    whole = means.contrast({"t1 + t2": [1, 1, 0]}).to_frame()
    assert whole["estimate"][0] == pytest.approx(means.estimate[0] + means.estimate[1])
    pairs, theirs = means.pairs().to_frame(), plain.pairs().to_frame()
    np.testing.assert_allclose(pairs[["estimate", "p_value"]], theirs[["estimate", "p_value"]], rtol=1e-5)
    joint, alone = (f.joint_tests().to_frame() for f in (fit, other))
    np.testing.assert_allclose(joint["f_ratio"], alone["f_ratio"], rtol=1e-7)


def test_models_with_other_offsets_are_not_nested(shifted):
    table, _ = shifted
    with pytest.raises(NestingError, match="their offsets differ"):
        lt.glrt(lt.fit_lmm("y ~ 1 + offset(x) + (1|a)", table), lt.fit_lmm("y ~ treatment + (1|a)", table))


def test_labels_of_rows_with_an_offset_are_not_exchanged(shifted):
    table, _ = shifted
    runs = lt.Runs(table, score="y", direction="minimize", algorithm="treatment", benchmark="a")
    with pytest.raises(ArgumentError, match="model has an offset, which belongs to rows and not to labels"):
        lt.permutation_test(runs, OFFSET, n_draws=9, rng=1)


def test_an_offset_is_no_term_of_a_builder(shifted):
    runs = lt.Runs(shifted[0], score="y", direction="minimize", algorithm="treatment", benchmark="a")
    with pytest.raises(FormulaError, match=r"offset\(\.\.\.\) is a known part of the mean: no term that has an effect"):
        lt.ModelBuilder(runs).fixed("offset(x)")


def test_the_canonical_text_has_the_offsets():
    parsed = parse_formula("y ~ offset(log(x)) + a + offset(I(z + 1)) + (1 | g)")
    assert str(parsed) == "y ~ a + offset(log(x)) + offset(I(z + 1)) + (1 | g)"
    assert list(map(str, parse_formula(str(parsed)).offsets)) == ["offset(log(x))", "offset(I(z + 1))"]
    assert parsed.columns == ("a", "x", "z", "g")
    assert str(parse_formula("y ~ offset(x)")) == "y ~ 1 + offset(x)"


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        ("y ~ a - offset(x)", "offset(...) can only be added; write + offset(-1 * (x))."),
        ("y ~ a * offset(x)", "offset(...) is added as a term of its own in the fixed part"),
        ("y ~ a + (offset(x) | g)", "offset(...) is added as a term of its own in the fixed part"),
        ("y ~ a + offset(x, z)", "offset() takes 1 argument without a name."),
        ("y ~ a + offset(2)", "offset(2) uses no column"),
        ("y ~ a + offset(poly(x, 2))", "poly(...) gives several columns"),
        ("y ~ a + offset(C(x))", "C(...) makes a factor"),
    ],
)
def test_other_uses_are_refused(formula, message):
    assert message.lower() in refusal(lambda: parse_formula(formula), FormulaError).lower()


def test_offsets_are_finite_numbers(shifted):
    table, _ = shifted
    with pytest.raises(FormulaError, match=r"'treatment' .* is used as a number but holds text"):
        lt.fit_lmm("y ~ 1 + offset(treatment) + (1|a)", table)
    with pytest.raises(DataError, match="x"):
        lt.fit_lmm("y ~ 1 + offset(x) + (1|a)", table.assign(x=table["x"].where(table.index > 0)))
    with pytest.raises(DataError, match=r"offset\(log\(x\)\) is not a finite number"):
        lt.fit_lmm("y ~ 1 + offset(log(x)) + (1|a)", pd.DataFrame(table).assign(x=-1.0))
