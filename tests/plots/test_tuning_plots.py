"""The figures of single results show their numbers, between the points asked for too, and keep their texts readable."""

from __future__ import annotations

import numpy as np
import pytest
from pytest import approx

from lmemtest import tuning
from lmemtest.errors import ArgumentError
from lmemtest.plots import _canvas
from lmemtest.plots.tuning import tuning_band_plot, tuning_curve_plot, tuning_expected_best_plot
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


def lines(ax, label):
    return [line for line in ax.child_axes[0].lines if line.get_label() == label]


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
