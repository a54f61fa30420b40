"""The figure of a parametric fit shows its numbers."""

from __future__ import annotations

import numpy as np
import pytest
from figures import lines
from pytest import approx

from lmemtest import tuning
from lmemtest.errors import ArgumentError
from lmemtest.plots import _canvas
from lmemtest.plots.tuning_fit import tuning_fit_plot
from lmemtest.tuning.laws.noisy_quadratic import NoisyQuadraticDistribution
from lmemtest.tuning.laws.quadratic import QuadraticDistribution


@pytest.fixture(scope="module")
def fit():
    return tuning.fit(QuadraticDistribution(0.5, 0.9, 2).sample(60, rng=1), direction="maximize")


K = [1, 3, 10, 30, 100, 600]


def drawn(fit, q=0.5):
    return tuning_fit_plot(fit.curve(K, q=q))


def test_curves_scores_and_the_best_are_those_of_the_fit(fit):
    ax = drawn(fit)
    known, beyond = lines(ax, "_curve")
    assert known.get_ydata() == approx(fit.quantile_curve(known.get_xdata()))
    assert (known.get_xdata()[[0, -1]], beyond.get_xdata()[[0, -1]]) == (approx([1, 60]), approx([60, 600]))
    assert (known.get_linestyle(), beyond.get_linestyle()) == ("-", "--")
    assert lines(ax, "_best")[0].get_ydata()[0] == fit.best.value
    bottom, top = ax.child_axes[0].get_ylim()
    assert lines(ax, "_interval")[0].get_ydata() == approx(np.clip([fit.best.ci_low, fit.best.ci_high], bottom, top))
    points = lines(ax, "_scores")[0]
    assert points.get_ydata()[-1] == fit.scores[-1]
    assert points.get_xdata()[-1] == approx(np.log(0.5) / np.log(60 / 61))
    *foot, x_label, y_label = [text.get_text() for text in ax.texts]
    assert (x_label, y_label) == ("Configurations tried, k", "Median of the highest of k scores")
    assert " ".join(foot).startswith("Intervals are of the curve, not of scores: ")
    assert " ".join(foot).endswith("Bar at the right edge: interval of the asymptotic best.")


def test_minimizing_is_drawn_upside_down(fit):
    down = tuning.fit(-fit.scores, direction="minimize")
    points, mirrored = (lines(drawn(f, q), "_scores")[0] for f, q in ((fit, 0.25), (down, 0.75)))
    assert points.get_xdata() == approx(mirrored.get_xdata())
    assert points.get_ydata() == approx(-mirrored.get_ydata())
    assert drawn(down, 0.75).texts[-1].get_text() == "75 % quantile of the lowest of k scores"


def test_scores_that_are_only_counted_leave_the_others_in_place(fit):
    part = tuning.fit(fit.scores, direction="maximize", limits=(0.7, None))
    shown = dict(zip(*lines(drawn(fit), "_scores")[0].get_data()[::-1], strict=True))
    for x, y in zip(*lines(drawn(part), "_scores")[0].get_data(), strict=True):
        assert x == approx(shown[y])


def corners_of_the_area(ax):
    area = next(c for c in ax.child_axes[0].collections if c.get_label() == "_intervals")
    return area.get_paths()[0].vertices


def texts_of_the_legend(ax):
    return [text.get_text() for text in ax.get_legend().get_texts()]


def test_the_area_is_that_of_the_intervals(fit):
    curve = fit.curve(K)
    ax = tuning_fit_plot(curve)
    corners = corners_of_the_area(ax)
    for k, low, high in zip(curve.k, curve.ci_low, curve.ci_high, strict=True):
        at = corners[np.isclose(corners[:, 0], k), 1]
        assert (at.min(), at.max()) == approx((low, high))
    assert "95 % intervals, pointwise" in texts_of_the_legend(ax)


def test_the_area_is_computed_between_the_k_that_were_asked_for(fit):
    corners = corners_of_the_area(tuning_fit_plot(fit.curve([1, 600])))
    k = np.unique(corners[:, 0])
    assert np.diff(np.log(k)).max() <= np.log(1.2) + 1e-9
    # between the corners: intervals of their own, at places that the figure has not computed
    between = np.sqrt(k[:-1] * k[1:])[::5]
    truth = fit.curve(between)
    low, high = ([end(corners[corners[:, 0] == at, 1]) for at in k] for end in (min, max))
    within = 0.01 * np.ptp(fit.curve([1, 600]).estimate)
    assert np.interp(np.log(between), np.log(k), low) == approx(truth.ci_low, abs=within)
    assert np.interp(np.log(between), np.log(k), high) == approx(truth.ci_high, abs=within)


@pytest.fixture(scope="module")
def noisy():
    scores = NoisyQuadraticDistribution(0.5, 0.9, 2, 0.02, False).sample(40, rng=1)
    return tuning.fit(scores, direction="maximize", constraints={"c": 2}, law="noisy_quadratic")


def test_with_noise_no_interval_is_invented_between_the_k_that_were_asked_for(noisy):
    curve = noisy.curve([100, 1, 10])
    ax = tuning_fit_plot(curve)
    assert not [c for c in ax.child_axes[0].collections if c.get_label() == "_intervals"]
    bars = {line.get_xdata()[0]: tuple(line.get_ydata()) for line in lines(ax, "_bar")}
    ends = zip(curve.ci_low, curve.ci_high, strict=True)
    assert bars == dict(zip(curve.k, ends, strict=True))
    assert "95 % intervals at 3 k, none between" in texts_of_the_legend(ax)
    first, last = ax.child_axes[0].get_xlim()
    assert first < 1 < 100 < last  # the last bar lies beside that of the asymptotic best


@pytest.mark.slow
def test_with_noise_close_k_are_an_area(noisy):
    k = np.geomspace(2, 4, 17)
    ax = tuning_fit_plot(noisy.curve(k))
    assert np.unique(corners_of_the_area(ax)[:, 0]) == approx(k)
    assert not lines(ax, "_bar")


def test_words_fit_with_few_k_and_with_many(fit, assert_fits):
    for last in (40, 1e6):
        curve = fit.curve([1, last])
        assert_fits(lambda ax, curve=curve: tuning_fit_plot(curve, ax=ax), (3.2, 2.8))


def test_a_fit_that_is_not_to_be_trusted_is_grey_and_says_so(fit):
    few = tuning.fit(fit.scores[::5], direction="maximize")
    ax = drawn(few)
    assert ax.texts[0].get_text().startswith("Not to be trusted: see the sentence of the fit. Intervals are")
    assert lines(ax, "_curve")[0].get_color() != lines(drawn(fit), "_curve")[0].get_color()


def test_wrong_arguments_are_named(fit):
    with pytest.raises(ArgumentError, match=r"^curve must be the result of ParametricFit.curve\(\), got int\.$"):
        tuning_fit_plot(3)
    with pytest.raises(ArgumentError, match=r"^curve must have two or more k, got 1\.$"):
        tuning_fit_plot(fit.curve([10, 10]))
    with pytest.raises(ArgumentError, match=r"^ax is too small: a tuning curve with its legend needs larger axes"):
        tuning_fit_plot(fit.curve(K), ax=_canvas.new_axes(3.0, 0.5))
