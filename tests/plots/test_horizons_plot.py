"""Diagrams of several horizons: each as cd_diagram draws it, on one scale, readable."""

from __future__ import annotations

import functools
import itertools
import re

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

import lmemtest as lt
from lmemtest.errors import ArgumentError
from lmemtest.plots import cd_diagram
from lmemtest.plots.horizons import horizons_plot
from lmemtest.studies.budget.horizons import horizons

LONG_NAMES = (
    "a very long algorithm name with $\\alpha$ and _under_ <b>bold</b> 1",
    "a very long algorithm name with $\\alpha$ and _under_ <b>bold</b> 2",
    "naïve Bayes № 7 — Ωμέγα, кириллица & more $",
    "漢字 optimizer",
    "x",
)


@functools.cache
def study(algorithms=3, *, names=None, shift=0.0, direction="minimize", given=(1, 2, (2, 8))):
    rng = np.random.default_rng(2)
    rows = list(itertools.product(range(6), range(algorithms), range(2), (1, 2, 4, 8)))
    table = pd.DataFrame(rows, columns=["task", "algorithm", "seed", "used budget $s$"])
    b, a, k = table["task"], table["algorithm"], np.log2(table["used budget $s$"]).astype(int)
    table["loss"] = (
        rng.normal(size=6)[b]
        + rng.normal(size=algorithms)[a]
        + 0.2 * rng.normal(size=(6, algorithms))[b, a]
        + 0.2 * rng.normal(size=(algorithms, 4))[a, k]
        - shift * k
        + 0.2 * rng.normal(size=len(table))
    )
    table["algorithm"] = np.array(names or [f"optimizer_{i:02d}" for i in range(algorithms)], dtype=object)[a]
    runs = lt.Runs(
        table,
        score="loss",
        direction=direction,
        algorithm="algorithm",
        benchmark="task",
        seed="seed",
        budget="used budget $s$",
    )
    return horizons(runs, given)


def of(ax, label):
    return [line for line in ax.lines if line.get_label() == label]


def points_per_unit(ax):
    box = ax.get_window_extent()
    return box.width / np.diff(ax.get_xlim())[0]


@pytest.mark.parametrize("layout", ["stacked", "beside"])
@pytest.mark.parametrize("shift", [0.0, 5.0])
def test_each_diagram_shows_its_horizon(layout, shift):
    result = study(5, shift=shift)
    axes = horizons_plot(result, layout=layout)
    assert len(axes) == 3
    for ax, horizon in zip(axes, result.horizons, strict=True):
        (dots,) = of(ax, "_means")
        np.testing.assert_array_equal(dots.get_xdata(), sorted(horizon.separation.means))
        alone = cd_diagram(horizon.separation)
        groups = [len(line.get_xdata()) for line in of(ax, "_group")]
        assert groups == [len(line.get_xdata()) for line in of(alone, "_group")]


@pytest.mark.parametrize("layout", ["stacked", "beside"])
@pytest.mark.parametrize("shift", [0.0, 5.0])
def test_a_length_is_the_same_difference_everywhere(layout, shift):
    axes = horizons_plot(study(5, shift=shift), layout=layout)
    scales = [points_per_unit(ax) for ax in axes]
    np.testing.assert_allclose(scales, scales[0], rtol=1e-9)
    for ax in axes:
        (dots,) = of(ax, "_means")
        (line,) = of(ax, "_axis")
        low, high = line.get_xdata()
        slack = 1e-9 * (high - low)
        assert low - slack <= dots.get_xdata().min() <= dots.get_xdata().max() <= high + slack


def test_axes_start_at_the_same_score_unless_means_move_far():
    together = horizons_plot(study(5))
    assert len({ax.get_xlim() for ax in together}) == 1
    apart = horizons_plot(study(5, shift=5.0))
    assert len({ax.get_xlim() for ax in apart}) == 3
    titles = [ax.texts for ax in apart]
    assert any(text.get_text() == "used budget $s$ 1 – same scale, own start each" for text in titles[0])
    assert not any("own start" in text.get_text() for texts in titles[1:] for text in texts)


def test_diagrams_are_in_the_order_of_the_axis():
    result = study(3, given=((2, 4), 8, 1))
    axes = horizons_plot(result)
    assert result.labels == ("1", "2-4", "8")
    titles = [[text.get_text() for text in ax.texts if text.get_text().startswith("used budget")] for ax in axes]
    assert titles == [["used budget $s$ 1"], ["used budget $s$ 2-4 (mean)"], ["used budget $s$ 8"]]


def test_titles_are_the_horizons_and_the_explanation_stands_once(texts_of):
    axes = horizons_plot(study(5))
    shown = [text.get_text() for text in texts_of(axes[0])]
    assert [t for t in shown if t.startswith("used budget")] == [
        "used budget $s$ 1",
        "used budget $s$ 2",
        "used budget $s$ 2-8 (mean)",
    ]
    assert sum("Marginal means of loss" in text for text in shown) == 1


@pytest.mark.parametrize("algorithms", [2, 5, 20])
@pytest.mark.parametrize("layout", ["stacked", "beside"])
def test_all_text_is_readable(algorithms, layout, assert_readable):
    assert_readable(horizons_plot(study(algorithms), layout=layout)[0])


@pytest.mark.parametrize("layout", ["stacked", "beside"])
@pytest.mark.parametrize("shift", [0.0, 5.0])
@pytest.mark.filterwarnings("ignore:Glyph .* missing from font")
def test_long_names_and_four_horizons_are_readable(layout, shift, assert_readable):
    result = study(5, names=LONG_NAMES, shift=shift, direction="maximize", given=(1, 2, 8, (2, 8)))
    assert_readable(horizons_plot(result, layout=layout)[0])


@pytest.mark.parametrize("size", [(8.0, 6.0), (7.0, 3.5)])
def test_axes_of_ones_own_are_filled(size, assert_readable):
    figure = Figure(figsize=size)
    axes = figure.subplots(2, 2)
    drawn = horizons_plot(study(5, given=(1, 2, 8, (2, 8))), axes=axes)
    assert list(drawn) == axes.ravel().tolist()
    assert_readable(drawn[0])
    np.testing.assert_allclose([points_per_unit(ax) for ax in drawn], points_per_unit(drawn[0]), rtol=1e-9)


def test_limits_widen_the_axis_of_one_diagram():
    sep = study(3).horizons[0].separation
    (line,) = of(cd_diagram(sep, limits=(-50.0, 100.0)), "_axis")
    low, high = line.get_xdata()
    assert low <= -50.0 + 1e-9
    assert high >= 100.0 - 1e-9


@pytest.mark.parametrize("limits", [(1.0, 0.0), (0.0, np.inf), "ab", 3, (1.0, 2.0, 3.0)])
def test_limits_that_are_no_range_are_refused(limits):
    message = f"limits must be two scores in ascending order, such as (0.0, 1.0), got {limits!r}."
    with pytest.raises(ArgumentError, match=f"^{re.escape(message)}$"):
        cd_diagram(study(3).horizons[0].separation, limits=limits)


def test_what_cannot_be_drawn_is_refused():
    result = study(3)
    with pytest.raises(ArgumentError, match=r"^result must be the result of horizons\(\), got Separation\.$"):
        horizons_plot(result.horizons[0].separation)
    figure = Figure()
    message = "axes must hold one Axes per horizon, 3, got 2. Use fig.subplots(3), or axes=None."
    with pytest.raises(ArgumentError, match=f"^{re.escape(message)}$"):
        horizons_plot(result, axes=figure.subplots(2))
    message = "axes holds None. Pass one Axes per horizon, or axes=None for a new figure."
    with pytest.raises(ArgumentError, match=f"^{re.escape(message)}$"):
        horizons_plot(result, axes=[None] * 3)
    with pytest.raises(ArgumentError, match=r"^ax must be one matplotlib Axes with straight axes or None, got int"):
        horizons_plot(result, axes=[1, 2, 3])
    with pytest.raises(ArgumentError, match=r"^layout must be 'stacked' or 'beside', got 'grid'\.$"):
        horizons_plot(result, layout="grid")
    with pytest.raises(ArgumentError, match=r"^ax is too small: a diagram of 3 algorithms needs at least "):
        horizons_plot(result, axes=Figure(figsize=(16, 0.6)).subplots(1, 3))
