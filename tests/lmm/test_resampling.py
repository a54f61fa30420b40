"""Parametric bootstrap: closed forms, SciPy's BCa, reproducibility, failures that are counted."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
import study
from pytest import approx
from refusals import refusal, refuses
from scipy import stats

import lmemtest as lt
from lmemtest.core.resampling import acceleration, bca_shares
from lmemtest.errors import ArgumentError, EstimationError
from lmemtest.lmm.intervals.bootstrap import bootstrap

FORMULA = "loss ~ algorithm + (1|benchmark) + (1|benchmark:seed)"


def make_table(benchmarks=8, seeds=4, seed=0):
    sds = {"benchmark": 1.0, "benchmark:seed": 1.0}
    return study.make_table("AB", range(benchmarks), seeds, sds=sds, rng=seed)


@pytest.fixture(scope="module")
def fit():
    return lt.fit_lmm(FORMULA, make_table())


def effect(fit):
    return fit.params.iloc[1]


def components(fit):
    return pd.Series({"effect": fit.params.iloc[1], "residual": fit.scale})


def test_a_refit_to_simulated_cells_is_the_fit_of_that_table(fit):
    cells = fit.simulate(rng=3)
    fresh = lt.fit_lmm(FORMULA, cells.frame.assign(loss=cells.mean))  # one row per cell
    again = fit.refit(cells=cells)
    assert again.llf == approx(fresh.llf, rel=1e-10)
    np.testing.assert_allclose(again.params, fresh.params, rtol=1e-8)
    np.testing.assert_allclose(again.theta, fresh.theta, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(again.bse, fresh.bse, rtol=1e-8)


def test_a_refit_to_some_of_the_cells_is_the_fit_of_that_part(fit):
    table = make_table()
    part = table[table["benchmark"] != 2]
    keep = (fit.cells.frame["benchmark"] != 2).to_numpy()
    cells = dataclasses.replace(
        fit.cells,
        columns=fit.cells.frame[keep].reset_index(drop=True),
        **{name: getattr(fit.cells, name)[keep] for name in ("n", "weight", "mean", "ss")},
        n_rows=len(part),
    )
    assert fit.refit(cells=cells).llf == approx(lt.fit_lmm(FORMULA, part).llf, rel=1e-10)


def test_standard_error_of_a_difference_is_that_of_the_model(fit):
    got = bootstrap(fit, effect, 399, rng=1)
    se = fit.bse.iloc[1]
    assert got.se[0] == approx(se, rel=4 / np.sqrt(2 * 399))  # four standard errors of a standard deviation
    assert abs(got.bias[0]) < 4 * se / np.sqrt(399)
    half = stats.norm.ppf(0.975) * se
    assert got.ci_low[0] == approx(got.estimate[0] - half, abs=0.25 * half)
    assert got.ci_high[0] == approx(got.estimate[0] + half, abs=0.25 * half)


def test_every_draw_is_kept_and_named(fit):
    got = bootstrap(fit, components, 30, rng=1)
    assert got.names == ("effect", "residual")
    assert got.draws.shape == (30, 2)
    assert list(got.to_frame().columns) == ["name", "estimate", "bias", "se", "ci_low", "ci_high"]
    assert "30 tables drawn from the fitted model" in got.summary()


def test_without_a_statistic_it_is_of_every_parameter_that_is_identified(fit):
    got = fit.bootstrap(n_draws=39, rng=1)
    sds = fit.varcorr["sd"].dropna()
    assert got.estimate == approx([*fit.params, *sds])
    assert {*got.names} - {*fit.params.index} <= {*fit.profile().labels}
    table = make_table().assign(copy=lambda table: table["algorithm"])
    aliased = lt.fit_lmm(f"{FORMULA} + copy", table)
    assert aliased.bootstrap(n_draws=39, rng=1).names == got.names


def test_a_generator_moves_on_and_a_seed_does_not(fit):
    generator = np.random.default_rng(5)
    first, second = (bootstrap(fit, effect, 3, rng=generator).draws for _ in range(2))
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(first, bootstrap(fit, effect, 3, rng=5).draws)


def test_basic_intervals_reflect_percentile_intervals(fit):
    percentile, basic = (bootstrap(fit, components, 50, method=kind, rng=2) for kind in ("percentile", "basic"))
    np.testing.assert_allclose(basic.ci_low, 2 * basic.estimate - percentile.ci_high)
    np.testing.assert_allclose(basic.ci_high, 2 * basic.estimate - percentile.ci_low)


def test_bca_shares_are_scipys():
    x = np.random.default_rng(1).exponential(size=25)
    want = stats.bootstrap((x,), np.mean, method="BCa", n_resamples=1999, rng=np.random.default_rng(2))
    draws = want.bootstrap_distribution
    jackknife = np.array([[np.delete(x, i).mean()] for i in range(len(x))])
    shares = bca_shares(draws[:, None], np.array([x.mean()]), acceleration(jackknife), 0.95)
    got = np.quantile(draws, shares[:, 0])
    assert got == approx([want.confidence_interval.low, want.confidence_interval.high], rel=1e-3)


def test_bca_shares_of_two_samples_are_scipys():
    rng = np.random.default_rng(3)
    x, y = rng.exponential(size=9), rng.exponential(size=17)

    def difference(x, y, axis=-1):
        return x.mean(axis=axis) - y.mean(axis=axis)

    want = stats.bootstrap((x, y), difference, method="BCa", n_resamples=1999, rng=np.random.default_rng(2))
    draws = want.bootstrap_distribution
    without = [difference(np.delete(x, i), y) for i in range(9)] + [difference(x, np.delete(y, i)) for i in range(17)]
    skewness = acceleration(np.array(without)[:, None], np.repeat([0, 1], [9, 17]))
    shares = bca_shares(draws[:, None], np.array([difference(x, y)]), skewness, 0.95)
    got = np.quantile(draws, shares[:, 0])
    assert got == approx([want.confidence_interval.low, want.confidence_interval.high], rel=1e-9)


def test_bca_leaves_out_the_levels_of_the_first_group(fit):
    got = bootstrap(fit, components, 60, method="bca", rng=2)
    assert got.notes[0] == "The skewness comes from leaving out the 8 levels of benchmark in turn."
    assert np.all(got.ci_low < got.ci_high)


def test_bca_does_not_exist_where_all_draws_lie_on_one_side(fit):
    got = bootstrap(fit, lambda f: -abs(f.nobs - 64.0) - (f is not fit), 20, method="bca", rng=1)
    assert np.isnan(got.ci_low[0])
    assert "there is no bca interval" in got.notes[-1]


def test_failures_are_counted_and_stay_in_the_draws(fit):
    def moody(f):
        if f is not fit and f.params.iloc[1] > 0:
            raise EstimationError("not today")
        return f.params.iloc[1]

    got = bootstrap(fit, moody, 60, rng=1)
    assert got.failed == np.isnan(got.draws[:, 0]).sum()
    assert 0 < got.failed < 60
    assert f"{got.failed} of 60 draws have no statistic" in got.notes[0]
    assert "EstimationError: not today" in got.notes[0]
    assert np.isfinite(got.ci_low).all()


def test_a_statistic_without_any_draw_is_an_error(fit):
    with pytest.raises(EstimationError, match="0 of 4 simulated tables gave a statistic, too few"):
        bootstrap(fit, lambda f: 1.0 if f is fit else np.nan, 4, rng=1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_draws": 0}, "n_draws must be a whole number of at least 2, got 0."),
        ({"statistic": 3}, "statistic must be a function of a fit, got int."),
        ({"statistic": lambda _: "x"}, "statistic must return a number, a sequence of numbers or a Series, got str."),
        ({"statistic": lambda _: np.eye(2)}, r"in one dimension, got shape \(2, 2\)"),
        ({"statistic": lambda f: np.ones(int(f.params.iloc[1] * 1e6) % 7 + 1)}, "always return the same number"),
        ({"method": "bca", "unit": "tool"}, "unit='tool' is not a group of this model. Groups: benchmark, "),
    ],
)
def test_bad_input_is_named(fit, options, message):
    given = {"statistic": effect, "n_draws": 10, "rng": 1, **options}
    refuses(ArgumentError, message, bootstrap, fit, given.pop("statistic"), **given)


def test_bca_without_random_effects_says_what_to_do():
    plain = lt.fit_lmm("loss ~ algorithm", make_table())
    refuses(ArgumentError, r"this model has none\. Use method='percentile'", bootstrap, plain, effect, 10, method="bca")


def test_bca_needs_a_few_levels():
    few = lt.fit_lmm("loss ~ algorithm + (1|benchmark)", make_table(benchmarks=3))
    with pytest.raises(ArgumentError, match="at least 4 levels to estimate a skewness, and benchmark has 3"):
        bootstrap(few, effect, 10, method="bca")


def test_too_few_draws_for_the_tails_are_said_to_be_too_few(fit):
    few, enough = (bootstrap(fit, effect, n, rng=1) for n in (38, 39))
    assert few.notes[-1] == (
        "38 draws are too few for 95 % percentile intervals: an end would lie beyond all draws, so the smallest or "
        "largest one takes its place and the interval is too short. Take n_draws=39 at least."
    )
    assert few.ci_low[0] == few.draws.min()
    assert not any("too few" in note for note in enough.notes)
    basic = bootstrap(fit, effect, 39, alpha=0.01, method="basic", rng=1)
    assert basic.notes[-1].endswith("Take n_draws=199 at least.")
    corrected = bootstrap(fit, effect, 20, method="bca", rng=1)
    assert any(note.startswith("20 draws are too few for 95 % bca intervals") for note in corrected.notes)


def test_a_statistic_that_the_fit_does_not_have_is_refused_before_any_draw(fit):
    assert refusal(lambda: bootstrap(fit, lambda _: pd.Series({"a": 1.0, "b": np.nan}), 10**7), ArgumentError) == (
        "statistic must be finite for the fit itself; b is nan. Leave out what the data do not identify, such as "
        "coefficients that were dropped."
    )


def test_the_result_names_the_residual_variances_of_its_model():
    own = lt.fit_lmm(FORMULA, make_table(), dispersion="benchmark")
    got = bootstrap(own, effect, 2, rng=1)
    assert got.formula == own.label
    assert f"{FORMULA}, residual variance by benchmark; 95 % percentile" in got.summary().replace("1 | ", "1|")
