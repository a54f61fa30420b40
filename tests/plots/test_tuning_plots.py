"""The figures of single tuning results and of plans show their numbers and keep their texts readable."""

from __future__ import annotations

import numpy as np
import pytest
from figures import lines
from matplotlib.figure import Figure
from pytest import approx

from lmemtest import tuning
from lmemtest.errors import ArgumentError
from lmemtest.plots import _canvas
from lmemtest.plots.tuning import tuning_band_plot, tuning_curve_plot, tuning_expected_best_plot, tuning_plan_plot
from lmemtest.tuning.distribution import EmpiricalDistribution, expected_best

SCORES = np.random.default_rng(1).beta(4, 2, 24)
LONG = "a very long name with $\\alpha$ and _under_ <b>bold</b> that no legend has room for " * 2
CURVE = tuning.curve(SCORES, direction="maximize", bounds=(0, 1))
CASES = {
    "curve": (tuning_curve_plot, CURVE),
    "curves": (tuning_curve_plot, {LONG + str(i): CURVE for i in range(2)}),
    "losses": (tuning_curve_plot, tuning.curve(1 - SCORES, direction="minimize", statistic=0.9)),
    "means": (tuning_curve_plot, tuning.curve(SCORES, direction="maximize", statistic="mean", bounds=(0, 1))),
    "one k": (tuning_curve_plot, tuning.curve(SCORES, direction="maximize", k=2)),
    "band": (tuning_band_plot, tuning.band(9)),
    "bands": (tuning_band_plot, {m: EmpiricalDistribution(SCORES).band(band=m) for m in ("ks", "dkw")}),
    "failures": (tuning_band_plot, EmpiricalDistribution([-np.inf, 0.5, 0.7]).band()),
    "expected": (
        tuning_expected_best_plot,
        {e: expected_best(SCORES, direction="maximize", estimator=e) for e in "uvw"},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_names_and_words_fit_for_every_kind_of_result(case, assert_fits):
    plot, result = CASES[case]
    assert_fits(lambda ax: plot(result, ax=ax), (4.0, 3.0))


def test_a_curve_is_its_steps_and_its_band_holds_the_exact_one():
    ax = tuning_curve_plot(CURVE)
    exact = CURVE.at([1.5, 2.2, 3.9])
    (line,) = lines(ax, "_estimate")
    assert np.interp(exact.k, line.get_xdata(), line.get_ydata()) == approx(exact.estimate)
    band = next(c for c in ax.child_axes[0].collections if c.get_label() == "_band")
    for k, low, high in zip(exact.k, exact.band_low + 1e-9, exact.band_high - 1e-9, strict=True):
        assert band.get_paths()[0].contains_points([(k, low), (k, high)]).all()
    assert ax.texts[0].get_text().startswith("80 % LD band of highest-density intervals for n = 24")
    assert [text.get_text() for text in ax.texts[-2:]] == ["Trials k", "Median of the largest of k scores"]


def test_grey_is_explained_and_many_curves_have_no_bands():
    rng = np.random.default_rng(3)
    curves = {f"search {i}": tuning.curve(rng.random(12), direction="maximize") for i in range(7)}
    six = tuning_curve_plot({name: curves[name] for name in list(curves)[:6]})
    words = " ".join(text.get_text() for text in six.texts)
    assert "Grey: a limit is the end of the support" in words
    assert "left out" not in words
    assert six.child_axes[0].collections
    seven = tuning_curve_plot(curves)
    words = " ".join(text.get_text() for text in seven.texts)
    assert "Bands are left out with more than 6 curves" in words
    assert "Grey" not in words
    assert not seven.child_axes[0].collections
    assert len(lines(seven.child_axes[0], "_estimate")) == 7


def test_a_band_of_a_distribution_is_read_at_its_scores():
    law = EmpiricalDistribution([0.2, 0.5, 0.5, 0.9], bounds=(0, 1))
    ax = tuning_band_plot({"x": law.band(), "y": law.band(level=0.5)})
    at = np.array([0.199, 0.3, 0.6, 0.89])
    for line in lines(ax, "_estimate"):
        assert np.interp(at, line.get_xdata(), line.get_ydata()) == approx(law.cdf(at), abs=1e-9)
    lower, upper = law.band().cdf_bounds(0.6)
    band = next(c for c in ax.child_axes[0].collections if c.get_label() == "_band").get_paths()[0]
    assert band.contains_points([(0.6, lower + 1e-6), (0.6, upper - 1e-6)]).all()
    assert not band.contains_points([(0.6, lower - 1e-6), (0.6, upper + 1e-6)]).any()
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["x", "y"]


def test_estimates_are_their_numbers():
    found = expected_best(SCORES, direction="maximize")
    assert list(lines(tuning_expected_best_plot(found), "_estimate")[0].get_ydata()) == approx(found.estimate)


def test_curves_of_two_statistics_can_have_one_scale():
    mean = tuning.curve(SCORES, direction="maximize", bounds=(0, 1), statistic="mean").plot().child_axes[0]
    median = tuning_curve_plot(CURVE, limits=mean.get_ylim()).child_axes[0]
    assert median.get_ylim() == mean.get_ylim()
    with pytest.raises(ArgumentError, match=r"^limits must be two scores in ascending order"):
        tuning_curve_plot(CURVE, limits=(1.0, 0.0))


def test_what_cannot_be_drawn_is_named():
    with pytest.raises(ArgumentError) as caught:
        tuning_curve_plot(tuning.band(5))
    assert str(caught.value) == "curves must be a result of tuning.curve(), or several by name, got CdfBand."
    with pytest.raises(
        ArgumentError, match=r"^results must hold at least one result of expected_best\(\), got none\.$"
    ):
        tuning_expected_best_plot({})
    losses = tuning.curve(SCORES, direction="minimize")
    with pytest.raises(ArgumentError, match=r"^results in one figure must have the same direction and statistic\."):
        tuning_curve_plot({"a": CURVE, "b": losses})
    with pytest.raises(ArgumentError, match="ax is too small"):
        tuning_curve_plot(CURVE, ax=_canvas.new_axes(1.0, 0.4))


SIZES = [60, 10, 20, 40]


def test_points_are_the_plans_in_order():
    plan = tuning.plan(n_scores=SIZES)
    ax = tuning_plan_plot(plan)
    (line,) = lines(ax, "_plan")
    assert list(line.get_xdata()) == [10, 20, 40, 60]
    np.testing.assert_array_equal(line.get_ydata(), plan.k_max[[1, 2, 3, 0]])
    assert [text.get_text().replace("\u00a0", " ") for text in ax.texts] == [
        "80 % LD band of highest-density intervals, median",
        "Scores of a random search",
        "Largest k with two limits",
    ]
    assert ax.get_legend() is None


def test_plans_differ_in_colour_and_shape_and_are_named():
    plans = [tuning.plan(n_scores=SIZES, level=c) for c in (0.5, 0.8, 0.95)]
    ax = tuning_plan_plot(iter(plans))
    assert len({line.get_color() for line in lines(ax, "_plan")}) == 3
    assert len({line.get_marker() for line in lines(ax, "_plan")}) == 3
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [plan.curve for plan in plans]


@pytest.mark.parametrize("n", [[1], [3], [5, 20]])
def test_scores_are_counted_in_whole_numbers(n):
    ax = tuning_plan_plot(tuning.plan(n_scores=n)).child_axes[0]
    for ticks in (ax.get_xticks(), ax.get_yticks()):
        assert len(ticks) >= 2
        assert (ticks == np.round(ticks)).all()


def test_words_fit_for_every_kind_of_plan(assert_fits):
    bands = ("ld_highest_density", "ld_equal_tailed", "ks", "dkw")
    for plans in (
        tuning.plan(n_scores=1),
        tuning.plan(k=[1, 4, 9, 16]),  # planned from k
        tuning.plan(n_scores=[1, 2], level=1 - 1e-12, band="dkw"),  # no reach
        [tuning.plan(n_scores=SIZES, band=band) for band in bands],
        tuning.plan(n_scores=range(1, 60), statistic=0.9, direction="maximize", from_k=1),
    ):
        assert_fits(lambda ax, plans=plans: tuning_plan_plot(plans, ax=ax), (3.2, 2.6))


def test_only_plans_are_drawn():
    with pytest.raises(ArgumentError, match=r"^plans must be results of tuning.plan\(\), got dict.$"):
        tuning_plan_plot([{}])
    with pytest.raises(ArgumentError, match=r"^plans must be results of tuning.plan\(\), got int.$"):
        tuning_plan_plot(3)
    with pytest.raises(ArgumentError, match=r"^plans must hold at least one result of tuning.plan\(\), got none.$"):
        tuning_plan_plot([])


def test_axes_that_are_too_small_are_refused():
    with pytest.raises(ArgumentError, match="ax is too small"):
        tuning_plan_plot(tuning.plan(n_scores=SIZES), ax=Figure(figsize=(3, 0.4)).add_axes((0, 0, 1, 1)))
