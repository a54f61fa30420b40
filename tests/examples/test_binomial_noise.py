"""Noise of the test set: the binomial prediction, the index of dispersion, and the figure."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from harness import rate_of
from numpy.testing import assert_allclose
from paper_figures.binomial_noise import APART, binomial_noise, binomial_noise_plot, dispersion_p_value, noise_of_study
from paper_figures.source_normality import coverage_by_kurtosis
from scipy import stats

import lmemtest as lt
from lmemtest.errors import ArgumentError, DataError, DesignError
from lmemtest.lmm.intervals.variance_intervals import SampleVariance


def test_the_binomial_prediction_and_the_index_of_dispersion():
    y, n = np.array([45, 41, 47, 43, 46, 40, 44]) / 50, 50
    row = binomial_noise({"net": y}, n).iloc[0]
    p, k = y.mean(), len(y)
    assert_allclose(row["binomial_sd"], np.sqrt(p * (1 - p) / n))
    assert_allclose(row["n_effective"], p * (1 - p) / y.var(ddof=1))
    # the chi-squared test of a table of right and wrong answers is the index of dispersion
    right = np.round(y * n)
    chi2 = stats.chi2_contingency([right, n - right], correction=False)
    assert_allclose(row["p_raw"], chi2.pvalue)
    assert chi2.dof == k - 1
    uneven = np.array([40, 50, 60, 40, 50, 60, 50])
    right = np.round(y * uneven)
    row = binomial_noise({"net": right / uneven}, uneven).iloc[0]
    assert_allclose(row["p_raw"], stats.chi2_contingency([right, uneven - right], correction=False).pvalue)


@pytest.mark.parametrize("method", ["bonett", "chi-squared"])
def test_the_interval_is_that_of_a_sample_variance(method):
    y = np.array([45, 41, 47, 43, 46, 40, 44]) / 50
    row = binomial_noise({"net": y}, 50, method=method, level=0.9).iloc[0]
    want = SampleVariance.of([y], 0.9, method)
    assert_allclose(row[["sd", "ci_low", "ci_high"]].astype(float), np.sqrt([want.value, want.low, want.high]))


def test_wide_scores_are_significant_narrow_ones_are_below_and_equal_ones_say_nothing():
    rng = np.random.default_rng(7)
    wide, narrow = rng.binomial(40, 0.5, 60) / 40, 0.5 + np.tile([0.01, -0.01], 30)
    found = binomial_noise({"wide": wide, "narrow": narrow, "equal": np.full(9, 0.5)}, 400).set_index("name")
    assert found.loc["wide", "p_value"] < 0.001
    assert found.loc["narrow", "ratio_high"] < 1.0
    assert found.loc["equal", "sd"] == 0.0
    assert found.loc["equal", ["ci_low", "ci_high", "n_effective"]].isna().all()


def test_the_splits_of_the_bundled_study_are_those_of_its_variance_study():
    table = lt.datasets.load_pipeline_study().query("design == 'one at a time'")
    sources = ["data", "tuning", "init", "order", "augment"]
    study = lt.variance_sources(table, score="score", sources=sources, algorithm="pipeline", benchmark="dataset")
    scores = study.to_frame("scores").query("source == 'data'")
    largest = scores.groupby(["algorithm", "benchmark"], sort=False)["score"]
    found = noise_of_study(lt.datasets.load_pipeline_study())
    sds = {" on ".join(key): sd for key, sd in largest.std().items()}
    assert_allclose(found["sd"], [sds.pop(name) for name in found["name"]])
    assert sds == {}


@pytest.mark.parametrize(
    ("scores", "n_test", "error", "words"),
    [
        ([80.0, 82.0], 100, DataError, "Divide percentages by 100"),
        ([1.0, 1.0], 100, DesignError, "all answers are right"),
        ([0.5, 0.6], 0, ArgumentError, "n_test must be the number of test items"),
        ([0.5, 0.6], {"b": 10}, ArgumentError, "n_test must have the names of scores"),
    ],
)
def test_what_is_no_share_of_answers_is_refused(scores, n_test, error, words):
    with pytest.raises(error, match=words):
        binomial_noise({"a": scores}, n_test)


@pytest.mark.level(2)
def test_points_of_the_test_set_stand_beside_their_curves():
    rng = np.random.default_rng(2)
    noise = binomial_noise({name: rng.binomial(100, 0.8, 20) / 100 for name in "ab"}, 100)
    (ax,) = binomial_noise_plot(noise).axes
    curves = [line for line in ax.lines if len(line.get_xdata()) > 1]
    for curve, mean in zip(curves, noise["mean"], strict=True):
        assert_allclose(curve.get_ydata(), np.sqrt(mean * (1 - mean) / curve.get_xdata()))
    points = [container[0] for container in ax.containers]
    assert_allclose([point.get_ydata()[0] for point in points], noise["sd"])
    x = np.array([point.get_xdata()[0] for point in points])
    assert_allclose([x.prod() ** 0.5, x[1] / x[0]], [100.0, APART])


# ---------------------------------------------------------------------- how often the tests reject


@pytest.mark.level(3)
def test_size_of_the_test_of_overdispersion():
    rng = np.random.default_rng(5)
    for n, p, k in itertools.product((50, 1000), (0.5, 0.9, 0.98), (10, 50)):

        def study(rng, n=n, p=p, k=k):
            y = rng.binomial(n, p, size=k) / n
            return dispersion_p_value(y, n) < 0.05 if 0 < y.mean() < 1 else np.nan

        rejected = rate_of(study, 1000, rng)
        print(f"binomial n={n} p={p} k={k}: {rejected:.3f}")
        assert rejected < 0.08


@pytest.mark.level(3)
def test_the_test_of_normality_rejects_any_grid():
    """Shares of right answers of 50 items are close to normal, and are rejected as soon as there are many of them."""
    rng, rates = np.random.default_rng(6), {}
    for items, n in itertools.product((50, 500, 5000), (20, 50, 200)):

        def study(rng, items=items, n=n):
            return stats.shapiro(rng.binomial(items, 0.8, size=n) / items).pvalue < 0.05

        rates[items, n] = rate_of(study, 500, rng)
        print(f"Shapiro-Wilk, {items} items, {n} scores: {rates[items, n]:.3f}")
    assert rates[50, 200] > 0.5
    assert rates[5000, 50] < 0.1


LAWS = {  # of variance 1, with their excess kurtosis
    "exponential": (lambda rng, n: rng.exponential(size=n), 6.0),
    "uniform": (lambda rng, n: rng.uniform(0.0, 12**0.5, size=n), -1.2),
}


@pytest.mark.level(3)
@pytest.mark.parametrize("name", LAWS)
def test_the_coverage_that_is_told_from_the_kurtosis(name):
    """Against simulated chi-squared intervals of 2,000 values."""
    draw, excess = LAWS[name]

    def study(rng):
        interval = SampleVariance.of([draw(rng, 2000)], 0.95, "chi-squared")
        return interval.low <= 1.0 <= interval.high

    assert abs(rate_of(study, 1000, 7) - coverage_by_kurtosis(excess)) < 0.05
