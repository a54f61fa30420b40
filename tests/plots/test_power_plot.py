"""The figure of planned studies shows their numbers."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from matplotlib.figure import Figure
from pytest import approx

from lmemtest.errors import ArgumentError
from lmemtest.inference.power.power import power
from lmemtest.plots._spacing import spread_downwards
from lmemtest.plots.power_plot import power_plot

PLAN = {"interaction_sd": 0.02, "residual_sd": 0.03}


def make_result(**options):
    given = {"effect": 0.02, "n_benchmarks": [6, 12, 20, 50], "n_seeds": [1, 5, 10], "n_draws": 50, "rng": 1} | options
    return power(PLAN, **given)


def lines(ax, label):
    return [line for line in ax.lines if line.get_label() == label]


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
    named = {text.get_text(): text for text in ax.texts}
    assert set(named) == {"80 %", "1 seed", "5 seeds", "10 seeds"}
    curves = dict(zip(["1 seed", "5 seeds", "10 seeds"], lines(ax, "_power"), strict=True))
    for name, line in curves.items():
        assert named[name].get_color() == line.get_color()
        assert named[name].xy[1] == approx(line.get_ydata()[-1], abs=15)


def test_labels_keep_their_distance_and_their_range():
    for values in ([100.0] * 5, [99.0, 98.0, 50.0, 49.0, 0.0], [3.0, 2.0, 1.0], [50.0]):
        places = spread_downwards(values, 6.0, 100.0)
        assert all(a - b >= 6.0 - 1e-9 for a, b in itertools.pairwise(places))
        assert min(places) >= 0.0
        assert max(places) <= 100.0


def test_the_closed_form_has_no_intervals():
    ax = power_plot(make_result(method="closed_form"))
    assert lines(ax, "_interval") == []
    assert len(lines(ax, "_power")) == 3


def test_ticks_are_the_planned_numbers():
    ax = power_plot(make_result())
    assert [label.get_text() for label in ax.get_xticklabels()] == ["6", "12", "20", "50"]
    assert "0.02" in ax.get_ylabel()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"n_benchmarks": 10, "n_seeds": 1},
        {"n_benchmarks": range(2, 60), "n_seeds": [1, 2, 3, 4, 5, 6, 7, 8, 100], "method": "closed_form"},
        {"effect": 5.0, "n_seeds": range(1, 9)},
        {"effect": 0.0},
        {"n_benchmarks": [2, 1_000_000], "method": "closed_form"},
    ],
)
def test_all_texts_are_readable(options, assert_readable):
    assert_readable(power_plot(make_result(**options)))


@pytest.mark.parametrize("size", [(2.6, 1.8), (3.2, 2.2), (10.0, 6.0)])
def test_it_fits_into_axes_of_any_size(size, assert_readable):
    ax = Figure(figsize=size).add_axes((0.0, 0.0, 1.0, 1.0))
    assert power_plot(make_result(), ax=ax) is ax
    assert_readable(ax)


def test_axes_too_small_for_text_are_refused():
    ax = Figure(figsize=(3.0, 0.5)).add_axes((0.0, 0.0, 1.0, 1.0))
    with pytest.raises(ArgumentError, match=r"^ax is too small: a plot of 3 lines needs at least 0\.\d inches high"):
        power_plot(make_result(), ax=ax)


def test_only_power_is_drawn():
    with pytest.raises(ArgumentError) as raised:
        power_plot(np.zeros(3))
    assert str(raised.value) == "result must be the result of power(), got ndarray."
