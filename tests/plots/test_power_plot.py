"""The figures of planned studies show their numbers."""

from __future__ import annotations

import numpy as np
import pytest
from figures import lines
from matplotlib.figure import Figure
from pytest import approx

import lmemtest as lt
from lmemtest.bench.power.power import power
from lmemtest.errors import ArgumentError
from lmemtest.plots import _style
from lmemtest.plots.power import power_plot

PLAN = {"interaction_sd": 0.02, "residual_sd": 0.03}


def make_result(**options):
    given = {"effect": 0.02, "n_benchmarks": [6, 12, 20, 50], "n_seeds": [1, 5, 10], "n_draws": 50, "rng": 1} | options
    return power(PLAN, **given)


def test_lines_and_intervals_are_the_numbers_in_percent():
    result = make_result()
    table = result.to_frame()
    ax = power_plot(result)
    curves = lines(ax, "_power")
    assert [list(line.get_xdata()) for line in curves] == [[6, 12, 20, 50]] * 3
    for n, line in zip([1, 5, 10], curves, strict=True):
        assert list(line.get_ydata()) == approx(100 * table[table["n_seeds"] == n]["power"].to_numpy())
    drawn = [tuple(line.get_ydata()) for line in lines(ax, "_interval")]
    assert drawn == [
        approx((100 * low, 100 * high)) for low, high in zip(table["ci_low"], table["ci_high"], strict=True)
    ]
    assert [line.get_ydata()[0] for line in lines(ax, "_reference")] == [approx(80.0)]


def test_every_line_is_named_beside_its_end_in_its_colour():
    ax = power_plot(make_result())
    named = {text.get_text(): text for text in ax.child_axes[0].texts}
    assert set(named) == {"80 %", "1 seed", "5 seeds", "10 seeds"}
    curves = dict(zip(["1 seed", "5 seeds", "10 seeds"], lines(ax, "_power"), strict=True))
    for name, line in curves.items():
        assert named[name].get_color() == _style.as_text(line.get_color())
        assert 100.0 * named[name].get_position()[1] == approx(line.get_ydata()[-1], abs=15)


def test_the_closed_form_has_no_intervals():
    ax = power_plot(make_result(method="closed_form"))
    assert lines(ax, "_interval") == []
    assert len(lines(ax, "_power")) == 3


def test_ticks_are_the_planned_numbers():
    ax = power_plot(make_result())
    assert [label.get_text() for label in ax.child_axes[0].get_xticklabels()] == ["6", "12", "20", "50"]
    assert [text.get_text() for text in ax.texts] == ["Benchmarks", "Power to find a difference of 0.02, %"]


@pytest.mark.parametrize(
    "options",
    [
        {"n_benchmarks": 10, "n_seeds": 1},
        {"n_benchmarks": range(2, 60), "n_seeds": [1, 2, 3, 4, 5, 6, 7, 8, 100], "method": "closed_form"},
        {"effect": 5.0, "n_seeds": range(1, 9)},
        {"effect": 0.0},
        {"n_benchmarks": [2, 1_000_000], "method": "closed_form"},
    ],
)
def test_unusual_plans_are_readable(options, assert_readable):
    assert_readable(power_plot(make_result(**options)))


def test_names_and_words_fit_whatever_the_number_of_seeds(assert_fits):
    for n_seeds in ([1, 5], range(1, 6), range(1, 21)):
        result = make_result(n_seeds=n_seeds, n_draws=20)
        assert_fits(lambda ax, result=result: power_plot(result, ax=ax))


def test_axes_too_small_for_text_are_refused():
    ax = Figure(figsize=(3.0, 0.5)).add_axes((0.0, 0.0, 1.0, 1.0))
    with pytest.raises(ArgumentError, match=r"^ax is too small: a plot of 3 lines needs larger axes"):
        power_plot(make_result(), ax=ax)


def test_only_power_is_drawn():
    with pytest.raises(ArgumentError) as raised:
        power_plot(np.zeros(3))
    assert str(raised.value) == "result must be the result of power(), got ndarray."


ONE = {"tuning": 0.4, "data": 0.9, "seed": 0.3}


def test_curves_and_points_are_those_of_the_plan():
    found = lt.plan(ONE, trials=50, target=0.25, current={"seed": 3})
    ax = lt.plots.plan_plot(found)
    panel = ax.child_axes[0]
    assert (panel.get_xscale(), panel.get_yscale()) == ("log", "log")
    curves = lines(panel, "_standard_error")
    table = found.to_frame("curves")
    for line, (_, rows) in zip(curves, table.groupby("curve", sort=False), strict=True):
        np.testing.assert_allclose(line.get_xydata(), rows[["cost", "standard_error"]])
    points = [line.get_xydata()[0] for line in panel.lines if line.get_label() == "_point"]
    rows = found.to_frame().set_index("allocation").loc[["best", "current"], ["cost", "standard_error"]]
    np.testing.assert_allclose(points, rows)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "best", "one tuning run", "ideal estimator", "more seeds as now", "plan", "current",
    ]  # fmt: skip
    low, high = panel.get_ylim()
    assert low < table["standard_error"].min() < table["standard_error"].max() < high
    assert "target 0.25" in [text.get_text() for text in panel.texts]


def test_a_plan_without_tuning_has_one_curve():
    ax = lt.plan(lt.VarianceComponents(interaction_sd=0.02, residual_sd=0.03), n_algorithms=2, budget=400).plot()
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["best", "plan"]


def test_nothing_that_varies_has_no_figure():
    with pytest.raises(ArgumentError, match="standard error of 0 "):
        lt.plan({"tuning": 0.0, "seed": 0.0}, trials=5, budget=100).plot()
