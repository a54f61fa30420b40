"""The figure of plans shows their numbers."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

from lmemtest import tuning
from lmemtest.errors import ArgumentError
from lmemtest.plots.tuning import tuning_plan_plot

SIZES = [60, 10, 20, 40]


def lines(ax):
    return [line for line in ax.child_axes[0].lines if line.get_label() == "_plan"]


def test_points_are_the_plans_in_order():
    plan = tuning.plan(n_scores=SIZES)
    ax = tuning_plan_plot(plan)
    (line,) = lines(ax)
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
    assert len({line.get_color() for line in lines(ax)}) == 3
    assert len({line.get_marker() for line in lines(ax)}) == 3
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
