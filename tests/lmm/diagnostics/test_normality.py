"""Shapes of residuals and random effects: moments, bands, verdicts."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from pytest import approx

import lmemtest as lt
from lmemtest.lmm.diagnostics import diagnose
from lmemtest.lmm.diagnostics.normality import measure


def shape_of(diagnosis, subject):
    return next(s for s in diagnosis.normality.shapes if s.subject == subject)


def test_moments_are_those_of_scipy():
    from scipy import stats

    x = np.random.default_rng(2).gamma(2.0, size=500)
    skewness, kurtosis, quantiles = measure(x)
    assert (skewness, kurtosis) == approx((stats.skew(x), stats.kurtosis(x)))
    assert 100 < len(quantiles) <= 201  # about equal distances on the normal scale
    assert quantiles[[0, -1]] == approx((np.array([x.min(), x.max()]) - x.mean()) / x.std())


def test_all_values_are_points_where_they_are_few():
    x = np.random.default_rng(2).normal(size=30)
    assert measure(x)[2] == approx(np.sort(x - x.mean()) / x.std())


def test_a_constant_has_no_shape():
    assert measure(np.ones(5))[:2] == (0.0, 0.0)


def test_a_true_model_is_fine(clean):
    assert [s.severity for s in clean.normality.shapes] == ["fine"] * 4
    residuals = clean.normality.shapes[0]
    assert residuals.n == 288
    assert (residuals.table["sample"].to_numpy() >= residuals.table["low"].to_numpy()).all()
    assert (residuals.table["sample"].to_numpy() <= residuals.table["high"].to_numpy()).all()
    assert np.diff(residuals.table["theoretical"].to_numpy()).min() > 0


def test_the_band_holds_all_quantiles_of_most_tables(clean_fit):
    """95 % of the simulated curves, checked on fresh ones."""
    from lmemtest.lmm.diagnostics.draws import HeldFit, measure_draws
    from lmemtest.lmm.diagnostics.normality import measure_parts
    from lmemtest.lmm.diagnostics.scores import rows_of

    residuals = diagnose(clean_fit, rng=1, influence=False, n_draws=999).normality.shapes[0]
    held = HeldFit.of(clean_fit, rows_of(clean_fit))
    fresh = [moments[0][2] for moments in measure_draws(held, measure_parts, 400, rng=77)]
    low, high = residuals.table[["low", "high"]].to_numpy().T
    inside = sum(bool(((q >= low) & (q <= high)).all()) for q in fresh)
    # binomial(400, 0.95) within 4 sd, and as much again for the band's own 999 tables
    assert inside == approx(380, abs=4 * np.sqrt(400 * 0.95 * 0.05 * 1.4))


def test_skewed_errors_of_few_rows_call_for_action(make):
    table = make.table(
        np.random.default_rng(3), benchmarks=6, algorithms=2, seeds=6, noise=lambda r, n: r.lognormal(0, 1.3, size=n)
    )
    found = diagnose(lt.fit_lmm("loss ~ algorithm + (1|benchmark)", table), rng=1, influence=False)
    residuals = shape_of(found, "residuals")
    assert residuals.severity == "warning"
    assert residuals.p_value <= 0.01
    assert residuals.skewness > 2
    assert residuals.advice == (
        "Skewed and heavy-tailed (a few values weigh much): transform the score (runs.normalize('rank')) or model "
        "the scales (dispersion=), and confirm with permutation_test(runs, exchange='signs')."
    )


@pytest.mark.parametrize("n_draws", [99, 199])
def test_symmetric_heavy_tails_are_seen_with_few_simulated_tables(make, n_draws):
    table = make.table(np.random.default_rng(3), seeds=20)
    table["loss"] += np.where(np.arange(len(table)) % 90 == 0, 9.0, 0.0) - np.where(
        np.arange(len(table)) % 90 == 45, 9.0, 0.0
    )
    fit = lt.fit_lmm("loss ~ algorithm + (1|benchmark)", table)
    residuals = shape_of(diagnose(fit, rng=1, influence=False, n_draws=n_draws), "residuals")
    assert residuals.p_value == 1.0 / (n_draws + 1)
    assert residuals.severity == "warning"


def test_moderate_skewness_of_many_rows_is_no_reason_to_act(make):
    table = make.table(np.random.default_rng(3), seeds=30, noise=lambda r, n: r.gamma(4.0, size=n))
    residuals = shape_of(diagnose(lt.fit_lmm(make.formula, table), rng=1, influence=False), "residuals")
    assert residuals.severity == "note"
    assert "means and their tests over 1,080 values stand, predictions of single scores do not" in residuals.advice


def test_an_outlying_benchmark_cancels_in_differences(make):
    table = make.table(np.random.default_rng(3))
    table.loc[table["benchmark"] == "b03", "loss"] += 30.0
    found = shape_of(diagnose(lt.fit_lmm(make.formula, table), rng=1, influence=False), "effects of benchmark")
    assert (found.severity, found.n) == ("note", 12)
    assert found.p_value <= 0.01
    assert found.advice == (
        "Skewed and heavy-tailed (a few values weigh much), but these effects cancel in the differences that the model "
        "estimates; the overall mean and predictions for new levels do depend on them."
    )


def test_one_outlying_advantage_decides_a_difference(make):
    table = make.table(np.random.default_rng(3))
    table.loc[(table["benchmark"] == "b03") & (table["algorithm"] == "a1"), "loss"] += 30.0
    fit = lt.fit_lmm(make.formula, table)
    found = shape_of(diagnose(fit, rng=1, influence=False), "effects of benchmark:algorithm")
    assert (found.severity, found.p_value) == ("warning", 0.005)
    assert found.advice.startswith("Skewed and heavy-tailed (a few values weigh much): a few levels decide the result.")


def test_few_levels_and_zero_variances_are_not_judged(make):
    table = make.table(np.random.default_rng(3), benchmarks=4, seeds=20)
    table["pure"] = np.arange(len(table)) % 20
    table["loss"] -= table.groupby("pure")["loss"].transform("mean")
    fit = lt.fit_lmm("loss ~ algorithm + (1|benchmark) + (1|pure)", table)
    found = diagnose(fit, rng=1, influence=False)
    few, zero = shape_of(found, "effects of benchmark"), shape_of(found, "effects of pure")
    assert few.advice == "4 values are too few to judge a shape; the tests rely on normality here."
    assert zero.advice == "The variance is estimated as zero, so there is nothing to judge."
    assert (np.isfinite(few.p_value), np.isfinite(zero.p_value)) == (False, False)
    assert (few.severity, zero.severity) == ("skipped", "skipped")
    assert few.check.message == "not judged"


def test_means_of_cells_hide_what_rows_show(make):
    table = make.table(np.random.default_rng(3), repeats=10, noise=lambda r, n: r.standard_t(2.5, size=n))
    fit = lt.fit_lmm("loss ~ algorithm + (1|benchmark) + (1|benchmark:seed)", table)
    seen = diagnose(fit, rng=1, influence=False)
    hidden = diagnose(dataclasses.replace(fit, data=None), rng=1, influence=False)
    rows, cells = seen.normality.shapes[0], hidden.normality.shapes[0]
    assert (rows.n, cells.n) == (len(table), len(fit.cells.n))
    assert rows.excess_kurtosis > 3 * cells.excess_kurtosis
    assert "2,880 rows were only seen through the means of their cells" in cells.advice
    assert hidden.notes == (
        "2,880 of 2,880 rows are only known through the means of their cells; normality and scale are judged by these "
        "means and the sums of squares within cells.",
    )
    assert seen.notes == ()


def test_slopes_are_named_by_column_and_group(fitted):
    found = diagnose(fitted("sleepstudy", "Reaction ~ Days + (Days|Subject)"), rng=1, influence=False)
    assert [s.subject for s in found.normality.shapes] == ["residuals", "effects of Subject", "Days by Subject"]


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_units_do_not_matter(clean, factor, make):
    table = make.table(np.random.default_rng(1))
    scaled = lt.fit_lmm(make.formula, table.assign(loss=factor * table["loss"]), restarts=0)
    again = diagnose(scaled, rng=1, influence=False)
    for one, other in zip(clean.normality.shapes, again.normality.shapes, strict=True):
        assert other.skewness == approx(one.skewness, rel=1e-4, abs=1e-5)
        assert other.p_value == approx(one.p_value, abs=0.02)
