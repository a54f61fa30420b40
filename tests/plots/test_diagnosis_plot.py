"""Figures of a diagnosis and of influence show the numbers of their results."""

from __future__ import annotations

import dataclasses
import itertools

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from figures import lines, row_labels, words_below
from matplotlib.figure import Figure
from pytest import approx

import lmemtest as lt
from lmemtest.errors import ArgumentError
from lmemtest.lmm.diagnostics import diagnose
from lmemtest.lmm.diagnostics.influence import influence
from lmemtest.plots._rows import MOST_ROWS
from lmemtest.plots.diagnosis import diagnosis_plot, influence_plot, qq_plot, residuals_plot, scale_plot

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


def test_scales_are_ratios_on_a_logarithmic_axis_the_noisiest_on_top(five):
    scale = next(s for s in five.scale if s.column == "benchmark")
    table = scale.table.sort_values("relative_sd", ascending=False)
    ax = scale_plot(five)
    assert ax.get_xscale() == "log"
    written, levels = [label.get_text() for label in ax.get_yticklabels()], table["level"].tolist()
    assert ["".join(name.split()) for name in written] == ["".join(name.split()) for name in levels]  # some are wrapped
    (points,) = lines(ax, "_estimates")
    assert points.get_xdata() == approx(table["relative_sd"].to_numpy())
    ends = [line.get_xdata() for line in lines(ax, "_interval")]
    assert [list(end) for end in ends] == [
        approx([low, high]) for low, high in zip(table["ci_low"], table["ci_high"], strict=True)
    ]
    assert ax.get_title(loc="left") == f"scale by benchmark: {scale.severity}"
    assert scale_plot(five, "algorithm").get_title(loc="left").startswith("scale by algorithm")


def test_the_page_shows_the_worst(twenty):
    residuals, against, effects, *scales = diagnosis_plot(twenty).figure.axes[1:]
    first = twenty.normality.shapes[0]
    titles = [panel.get_title(loc="left") for part in (residuals, against) for panel in part.child_axes]
    assert titles == [f"residuals: {first.severity}", "residuals against predictions"]
    assert len(effects.child_axes) == 2
    assert scales[0].get_title(loc="left") == "scale by benchmark: warning"
    assert len(scales) == 2
    assert len(scales[0].get_yticklabels()) == 14
    assert "14 of 30 levels" in words_below(scales[0])


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


def test_a_narrow_page_is_that_of_a_journal_and_the_fit_hands_width_on(two):
    ax = diagnosis_plot(two, width="column")
    assert ax.figure.get_size_inches()[0] == approx(3.3)
    assert ax.figure.get_size_inches()[1] < 12.0
    table = {"loss": [1.0, 2, 1, 3, 2, 2, 3, 4, 4, 6, 5, 7], "tool": ["A", "B"] * 6, "task": list("aabbccddeeff")}
    fit = lt.fit_lmm("loss ~ tool + (1 | task)", table)
    assert fit.plot(width="column", influence=False).figure.get_size_inches()[0] == approx(3.3)


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


BENCHMARKS = 12


def make_result():
    benchmarks, bump = BENCHMARKS, 9.0
    rng = np.random.default_rng(2)
    rows = itertools.product(range(benchmarks), "AB", range(2))
    table = pd.DataFrame(list(rows), columns=["benchmark", "algorithm", "seed"])
    b = table["benchmark"].to_numpy()
    loss = rng.normal(size=len(table)) + rng.normal(size=benchmarks)[b]
    loss += bump * ((b == 3) & (table["algorithm"] == "B").to_numpy())
    table["benchmark"] = [f"b{i:02d}" for i in b]
    formula = "loss ~ algorithm + (1|benchmark) + (1|benchmark:algorithm)"
    return influence(lt.fit_lmm(formula, table.assign(loss=loss)), "benchmark")


def widened(result, levels, name="b{:02d}"):
    """The same numbers again and again, for more levels."""
    table = result.table.iloc[np.arange(levels) % BENCHMARKS].reset_index(drop=True)
    table.loc[BENCHMARKS:, ["n_changed", "chance_p"]] = [0, 1.0]  # the copies are not marked
    table = table.assign(level=[name.format(i) for i in range(levels)])
    return dataclasses.replace(result, tables={**result.tables, "table": table})


@pytest.fixture(scope="module")
def result():
    return make_result()


def labels_of(ax):
    return row_labels(ax)


def estimates_of(ax):
    return lines(ax, "_estimates")


def test_rows_are_sorted_by_distance_and_markers_are_the_distances(result):
    ax = influence_plot(result)
    order = result.table.sort_values("cooks_distance", ascending=False)
    assert labels_of(ax) == list(order["level"])
    drawn = {}
    for line in estimates_of(ax):
        drawn |= {int(y): x for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)}
    assert [drawn[i] for i in range(12)] == approx(list(order["cooks_distance"]))
    assert "Cook's distance without one benchmark" in words_below(ax)


def test_levels_that_matter_are_marked(result):
    ax = influence_plot(result)
    frame = result.to_frame()
    marked = frame[(frame["n_changed"] > 0) | (frame["chance_p"] < 0.05)]
    assert "b03" in set(marked["level"])
    plain = estimates_of(ax)[-1]
    assert len(plain.get_xdata()) == len(frame) - len(marked)
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names[-1] == "neither"
    assert set(names) <= {"changes a decision", "stands out", "neither"}


def test_the_largest_shift_stands_beside_each_row(result):
    ax = influence_plot(result)
    shown = [text.get_text() for text in ax.texts]
    for value in result.table["largest_shift"].abs():
        assert f"{value:.2f}" in shown


def test_many_levels_are_cut_with_a_count(result):
    labels = labels_of(influence_plot(widened(result, MOST_ROWS + 15)))
    assert (len(labels), labels[-1]) == (MOST_ROWS + 1, "and 15 with less")
    assert "b03" in labels


def test_a_marked_level_is_shown_however_small(result):
    wide = widened(result, MOST_ROWS + 15)
    last = wide.table["cooks_distance"].idxmin()
    wide.table.loc[last, "n_changed"] = 1
    labels = labels_of(influence_plot(wide))
    assert (labels[-2], labels[-1]) == (wide.table.loc[last, "level"], "and 14 with less")


def test_levels_that_cannot_be_left_out_come_first(result):
    table = result.to_frame()
    table.loc[5, ["cooks_distance", "largest_shift", "chance_p"]] = np.nan
    ax = influence_plot(dataclasses.replace(result, tables={**result.tables, "table": table}))
    assert labels_of(ax)[0] == "b05"
    assert "not estimable" in [text.get_text() for text in ax.texts]


@pytest.mark.parametrize(("benchmarks", "size"), [(12, (5.0, 4.0)), (50, (4.2, 6.0)), (50, None)])
def test_nothing_leaves_the_figure(result, benchmarks, size):
    result = widened(result, benchmarks, name="a long name with $\\alpha$ & <b>{}</b> of a benchmark that goes on")
    if size is None:
        ax = influence_plot(result)
    else:
        ax = influence_plot(result, ax=Figure(figsize=size).add_axes((0, 0, 1, 1)))
    figure = ax.figure
    figure.canvas.draw()
    box = ax.get_tightbbox()
    assert box.x0 >= -0.5
    assert box.y0 >= -0.5
    assert box.x1 <= figure.bbox.x1 + 0.5
    assert box.y1 <= figure.bbox.y1 + 0.5
    assert mpl.rcParams["figure.figsize"] == mpl.rcParamsDefault["figure.figsize"]


def test_only_influence_is_drawn():
    with pytest.raises(ArgumentError, match=r"^result must be the result of influence\(\), got dict.$"):
        influence_plot({})
