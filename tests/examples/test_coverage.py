"""Simulated coverage against exact coverage; the bootstrap's failure; the figure of both."""

from __future__ import annotations

import math

import numpy as np
import pytest
from paper_figures.coverage import (
    MEASURED_COVERAGE,
    bootstrap_band,
    bootstrap_warning,
    coverage_plot,
    simulate_bootstrap_coverage,
    simulate_coverage,
)
from pytest import approx
from refusals import refuses
from scipy import stats

from lmemtest import tuning
from lmemtest.errors import ArgumentError, DataError
from lmemtest.tuning.distribution import EmpiricalDistribution
from lmemtest.tuning.laws.kernel_density import kernel_density
from lmemtest.tuning.laws.quadratic import QuadraticDistribution

SCORES = [0.61, 0.70, 0.58, 0.74, 0.66, 0.70]


@pytest.mark.parametrize("method", ["ld_highest_density", "ks", "dkw"])
def test_simulated_coverage_is_the_exact_one(method):
    """The bands' exact coverage is known from crossing probabilities; a curve holds when its cdf band does."""
    law = QuadraticDistribution(0.0, 1.0, 3)
    exact = [tuning.band(10, band=method, level=c).coverage() for c in (0.5, 0.9)]
    rates = [
        simulate_coverage(law, 10, level=(0.5, 0.9), band=method, n_draws=1500, rng=5, **options)["coverage"].to_numpy()
        for options in ({"target": "cdf"}, {"target": "median"}, {"target": 0.8, "direction": "minimize"})
    ]
    for rate in rates:
        assert np.array_equal(rate, rates[0])  # the same draws: the same events
        assert rate == approx(exact, abs=4 * 0.5 / math.sqrt(1500))


def test_coverage_from_k_is_exact_and_that_of_means_conservative():
    law = QuadraticDistribution(0.0, 1.0, 2)
    found = simulate_coverage(law, 8, level=0.8, from_k=1, n_draws=1500, rng=6)
    assert found["coverage"][0] == approx(0.8, abs=4 * 0.4 / math.sqrt(1500))
    mean = simulate_coverage(law, 8, target="mean", bounds=(0, 1), level=0.8, n_draws=200, rng=6)
    assert mean["coverage"][0] > 0.85


def test_ties_make_the_band_conservative():
    law = EmpiricalDistribution([0.0, 1.0, 1.0, 2.0, 3.0])
    found = simulate_coverage(law, 30, target="cdf", level=0.8, n_draws=600, rng=2)
    assert found["coverage"][0] > 0.85


def test_clopper_pearson_ends_are_the_defining_ones():
    law = QuadraticDistribution(0.0, 1.0, 2)
    found = simulate_coverage(law, 3, level=(0.5, 0.999999), n_draws=200, rng=6)
    assert list(found.columns) == ["nominal", "coverage", "ci_low", "ci_high"]
    covered = round(200 * found["coverage"][0])
    assert stats.binom.sf(covered - 1, 200, found["ci_low"][0]) == approx(0.005, rel=1e-8)
    assert stats.binom.cdf(covered, 200, found["ci_high"][0]) == approx(0.005, rel=1e-8)
    assert (found["coverage"][1], found["ci_high"][1]) == (1.0, 1.0)


def test_the_bootstrap_covers_at_first_and_then_fails():
    law = kernel_density([0.0], bandwidth=1.0)
    for direction in ("maximize", "minimize"):
        found = simulate_bootstrap_coverage(
            law, 30, k=[1, 30], direction=direction, n_draws=400, n_resamples=300, rng=4, estimator="u"
        )
        assert found["coverage"][0] > 0.88
        assert 0.35 < found["coverage"][1] < 0.55
    assert list(found.columns) == ["k", "nominal", "coverage", "ci_low", "ci_high"]


def test_bad_arguments_of_simulations_are_refused():
    law = QuadraticDistribution(0.0, 1.0, 2)
    with pytest.raises(ArgumentError, match="from_k is for tuning curves: leave it out for target='cdf'"):
        simulate_coverage(law, 5, target="cdf", from_k=1)
    refuses(ArgumentError, "statistic='mean' needs bounds", simulate_coverage, law, 5, target="mean", n_draws=2)
    refuses(DataError, "bounds must enclose all scores", simulate_coverage, law, 5, n_draws=2, bounds=(0.9, 1.0))
    refuses(ArgumentError, "estimator must be", simulate_bootstrap_coverage, law, 5, k=1, estimator="x")


# ------------------------------------------------------------------------------------------------------ bootstrap


def test_the_bootstrap_never_exceeds_the_best_score_and_carries_a_warning():
    band = bootstrap_band(SCORES, direction="minimize", k=[1, 6, 50], rng=5)
    assert np.all(band["ci_low"] >= 0.58)
    assert np.all(band["ci_low"] <= band["estimate"])
    assert np.all(band["estimate"] <= band["ci_high"])
    assert list(band.columns) == ["k", "estimate", "ci_low", "ci_high"]


def test_the_bootstrap_is_exactly_dual_and_reproducible():
    up = bootstrap_band(np.negative(SCORES), direction="maximize", k=[2, 3], rng=5, estimator="u")
    down = bootstrap_band(SCORES, direction="minimize", k=[2, 3], rng=5, estimator="u")
    assert np.array_equal(down["ci_low"], -up["ci_high"])
    assert np.array_equal(down["ci_high"], -up["ci_low"])
    again = bootstrap_band(SCORES, direction="minimize", k=[2, 3], rng=5, estimator="u")
    assert np.array_equal(down["ci_low"], again["ci_low"])


def test_the_bootstrap_of_one_trial_is_that_of_a_mean():
    scores = np.random.default_rng(2).normal(size=400)
    band = bootstrap_band(scores, direction="maximize", k=1, rng=1)
    half = 1.96 * scores.std() / math.sqrt(len(scores))
    assert (band["ci_high"][0] - band["ci_low"][0]) / 2 == approx(half, rel=0.05)


def test_measured_coverage_is_a_table_of_percentages_that_fall():
    for rows in MEASURED_COVERAGE.values():
        assert all(0 < low <= high < 96 for low, high in rows)
        assert rows[0][0] > 90
        assert rows[-1][1] < 70


def test_the_warning_tells_the_measured_coverage():
    words = bootstrap_warning("u")
    assert words.startswith("Warning: bootstrap intervals do not keep their level. Measured for 95 % intervals from 50")
    assert "43 to 61 % at k = 50" in words


# ------------------------------------------------------------------------------------------------------ figure


@pytest.mark.level(2)
def test_coverage_at_levels_is_points_with_bars_about_the_diagonal():
    covered = simulate_coverage(QuadraticDistribution(0.0, 1.0, 2), 5, n_draws=40, rng=1)
    (ax,) = coverage_plot({"a": covered}).axes
    lines = {line.get_label(): line for line in ax.lines}
    assert list(lines["a"].get_ydata()) == approx(100 * covered["coverage"])
    assert lines["a"].get_linestyle() == "None"  # nothing is drawn between the levels that were simulated
    assert list(lines["_reference"].get_xdata()) == list(lines["_reference"].get_ydata()) == [0, 100]
    ends = [(*bar[0], bar[1, 1]) for bar in ax.collections[0].get_segments()]
    assert np.array(ends) == approx(100 * covered[["nominal", "ci_low", "ci_high"]].to_numpy())


@pytest.mark.level(2)
def test_coverage_over_budgets_is_a_line_with_its_band():
    covered = simulate_bootstrap_coverage(
        QuadraticDistribution(0.0, 1.0, 2), 8, k=[1, 50], n_draws=20, n_resamples=100, rng=1
    )
    (ax,) = coverage_plot({"a": covered}).axes
    line, claim = ax.lines
    assert list(line.get_ydata()) == approx(100 * covered["coverage"])
    assert list(claim.get_ydata()) == [95.0, 95.0]
    y = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert (y.min(), y.max()) == approx((100 * covered["ci_low"].min(), 100 * covered["ci_high"].max()))
