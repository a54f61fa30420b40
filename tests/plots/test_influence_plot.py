"""The figure of influence shows its numbers."""

from __future__ import annotations

import dataclasses
import itertools

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from pytest import approx

import lmemtest as lt
from lmemtest.errors import ArgumentError
from lmemtest.lmm.diagnostics.influence import influence
from lmemtest.plots._rows import MOST_ROWS
from lmemtest.plots.diagnosis import influence_plot

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
    return [label.get_text() for label in ax.get_yticklabels()]


def estimates_of(ax):
    return [line for line in ax.lines if line.get_label() == "_estimates"]


def test_rows_are_sorted_by_distance_and_markers_are_the_distances(result):
    ax = influence_plot(result)
    order = result.table.sort_values("cooks_distance", ascending=False)
    assert labels_of(ax) == list(order["level"])
    drawn = {}
    for line in estimates_of(ax):
        drawn |= {int(y): x for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)}
    assert [drawn[i] for i in range(12)] == approx(list(order["cooks_distance"]))
    assert "Cook's distance without one benchmark" in ax.get_xlabel().replace("\n", " ")


def test_levels_that_matter_are_marked(result):
    ax = influence_plot(result)
    frame = result.to_frame()
    marked = frame[(frame["n_changed"] > 0) | (frame["chance_p"] < 0.05)]
    assert "b03" in set(marked["level"])
    plain = estimates_of(ax)[-1]
    assert len(plain.get_xdata()) == len(frame) - len(marked)
    names = [text.get_text() for text in ax.get_legend().get_texts()]
    assert names[-1] == "neither"
    assert set(names) <= {"flips a verdict", "stands out", "neither"}


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
