"""The figures of a diagnosis show its numbers."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from pytest import approx

import lmemtest as lt
from lmemtest.errors import ArgumentError
from lmemtest.lmm.diagnostics import diagnose
from lmemtest.plots.diagnosis import diagnosis_plot, qq_plot, residuals_plot, scale_plot

PLOTS = [qq_plot, residuals_plot, scale_plot, diagnosis_plot]
LONG = "a very long name with $\\alpha$ and _under_ <b>bold</b> {}"


def make_diagnosis(benchmarks, algorithms, seeds, *, long=False, scale=0.0):
    rng = np.random.default_rng(3)
    rows = itertools.product(range(benchmarks), range(algorithms), range(seeds))
    table = pd.DataFrame(list(rows), columns=["benchmark", "algorithm", "seed"])
    b, a = table["benchmark"].to_numpy(), table["algorithm"].to_numpy()
    table["loss"] = rng.normal(size=benchmarks)[b] + 0.4 * rng.normal(size=(benchmarks, algorithms))[b, a]
    table["loss"] += rng.normal(size=len(table)) * np.exp(scale * rng.normal(size=benchmarks))[b]
    name = LONG if long else "x{}"
    table["benchmark"] = [name.format(i) for i in b]
    table["algorithm"] = [name.format(i) for i in a]
    fit = lt.fit_lmm("loss ~ algorithm + (1|benchmark) + (1|benchmark:algorithm)", table)
    return diagnose(fit, rng=1, influence=False)


@pytest.fixture(scope="module")
def two():
    return make_diagnosis(8, 2, 6)


@pytest.fixture(scope="module")
def five():
    return make_diagnosis(12, 5, 4, long=True, scale=1.0)


@pytest.fixture(scope="module")
def twenty():
    return make_diagnosis(30, 20, 4, scale=1.0)


def lines(ax, label):
    return [line for line in ax.lines if line.get_label() == label]


def test_quantiles_are_those_of_the_shapes(two):
    ax = qq_plot(two)
    panels = ax.child_axes
    shapes = two.normality.shapes
    assert len(panels) == len(shapes) == 3
    for panel, shape in zip(panels, shapes, strict=True):
        (points,) = lines(panel, "_points")
        assert points.get_xdata() == approx(shape.table["theoretical"].to_numpy())
        assert points.get_ydata() == approx(shape.table["sample"].to_numpy())
        (band,) = panel.collections
        heights = band.get_paths()[0].vertices[:, 1]
        assert (heights.min(), heights.max()) == approx((shape.table["low"].min(), shape.table["high"].max()))
        assert panel.get_title(loc="left").endswith(f": {shape.severity}")


def test_residuals_are_those_of_the_diagnosis(two):
    (ax,) = residuals_plot(two).child_axes
    (points,) = lines(ax, "_points")
    assert points.get_xdata() == approx(two.fitted)
    assert points.get_ydata() == approx(two.residuals)
    assert [line.get_ydata()[0] for line in lines(ax, "_reference")] == [-3.0, 0.0, 3.0]


def test_scales_are_logarithms_of_ratios(five):
    scale = next(s for s in five.scale if s.column == "benchmark")
    ax = scale_plot(five)
    (points,) = lines(ax, "_estimates")
    assert points.get_xdata() == approx(np.log2(scale.table["relative_sd"].to_numpy()))
    ends = [line.get_xdata() for line in lines(ax, "_interval")]
    assert [list(end) for end in ends] == [
        approx([np.log2(low), np.log2(high)])
        for low, high in zip(scale.table["ci_low"], scale.table["ci_high"], strict=True)
    ]
    assert ax.get_title(loc="right") == f"scale by benchmark: {scale.severity}"
    assert scale_plot(five, "algorithm").get_title(loc="right").startswith("scale by algorithm")


def test_the_page_shows_the_worst(twenty):
    residuals, against, effects, *scales = diagnosis_plot(twenty).figure.axes[1:]
    first = twenty.normality.shapes[0]
    titles = [panel.get_title(loc="left") for part in (residuals, against) for panel in part.child_axes]
    assert titles == [f"residuals: {first.severity}", "residuals against predictions"]
    assert len(effects.child_axes) == 2
    assert scales[0].get_title(loc="right") == "scale by benchmark: warning"
    assert len(scales) == 2
    assert len(scales[0].get_yticklabels()) == 14
    assert "14 of 30 levels" in scales[0].get_xlabel()


@pytest.mark.parametrize("plot", PLOTS)
def test_everything_is_readable_and_axes_of_the_user_are_not_left(plot, two, five, twenty, assert_readable):
    for diagnosis, sizes in ((two, [None]), (twenty, [None]), (five, [None, (5.5, 6.5), (9, 11)])):
        for size in sizes:
            ax = None if size is None else Figure(figsize=size).add_subplot()
            drawn = plot(diagnosis, ax=ax)
            assert ax is None or drawn is ax
            assert_readable(drawn)


def test_one_panel_is_enough_without_random_effects():
    rng = np.random.default_rng(1)
    found = lt.fit_lmm("y ~ x", {"x": rng.normal(size=9), "y": rng.normal(size=9)}).diagnose(rng=1)
    assert len(qq_plot(found).child_axes) == 1
    assert len(diagnosis_plot(found).figure.axes) == 3
    with pytest.raises(ArgumentError, match=r"^diagnosis compares no scales: no column of the model has 2 to 200"):
        scale_plot(found)


@pytest.mark.parametrize("plot", PLOTS)
def test_other_things_are_refused(plot, two):
    with pytest.raises(ArgumentError, match=r"^diagnosis must be the result of diagnose\(\), got dict.$"):
        plot({})
    with pytest.raises(ArgumentError, match=r"^ax must be one matplotlib Axes"):
        plot(two, ax="left")
    tiny = Figure(figsize=(0.6, 0.5)).add_subplot()
    with pytest.raises(ArgumentError, match=r"^ax is too small: "):
        plot(two, ax=tiny)


def test_an_unknown_column_is_named(two):
    with pytest.raises(ArgumentError, match=r"^column must be 'benchmark' or 'algorithm', got 'seed'"):
        scale_plot(two, "seed")
