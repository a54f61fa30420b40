"""The figure of relative ranks shows the numbers of the result, in panels that stay readable."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pandas as pd
import pytest
from figures import lines, row_labels
from matplotlib.figure import Figure
from pytest import approx

from lmemtest.core.result import Answer
from lmemtest.errors import ArgumentError
from lmemtest.plots import _style
from lmemtest.plots.budget import relative_ranks_plot


def make_result(names=("HB", "PB", "RS"), budgets=(1, 2, 4, 8, 16), levels=(), **options) -> Answer:
    """A result without runs."""
    rng = np.random.default_rng(1)
    rows = []
    panels = ("all", *levels) if levels else ("all",)
    for panel, (i, name), budget in itertools.product(panels, enumerate(names), budgets):
        rank = 1.2 + i + rng.uniform(-0.2, 0.2)
        rows.append((panel, name, budget, rank, 0.1, rank - 0.2, rank + 0.25, 12))
    columns = ["prior", "algorithm", "budget", "rank", "se", "ci_low", "ci_high", "n"]
    table = pd.DataFrame(rows, columns=columns)
    given = {
        "by": "prior" if levels else None, "panels": panels,
        "algorithms": tuple(names), "budgets": tuple(budgets), "budget": "epochs", "unit": "benchmarks", "alpha": 0.05,
        "roster": tuple(names),
        "n_benchmarks": 12, "n_seeds": 5, "score": "loss", "direction": "minimize",
        "band": "95 % t intervals over benchmarks: mean ranks to expect on other benchmarks of this kind.",
    }  # fmt: skip
    tables = {"table": table if levels else table.drop(columns="prior")}
    return Answer(question="relative_ranks", title="Relative ranks", tables=tables, values={**given, **options})


def words(ax):
    return [text.get_text() for text in ax.texts]


def test_lines_and_bands_are_the_numbers_with_rank_one_on_top():
    result = make_result(levels=("bad", "good"))
    ax = relative_ranks_plot(result)
    assert [box.get_title(loc="left") for box in ax.child_axes] == ["All instances", "prior: bad", "prior: good"]
    for panel, box in zip(result.panels, ax.child_axes, strict=True):
        bottom, top = box.get_ylim()
        assert bottom > top
        for i, name in enumerate(result.algorithms):
            rows = result.table[result.table["prior"] == panel].query("algorithm == @name")
            line = lines(box, "_rank")[i]
            assert list(line.get_xdata()) == [1, 2, 4, 8, 16]
            assert list(line.get_ydata()) == approx(rows["rank"].to_numpy())
            extent = box.collections[i].get_paths()[0].get_extents()
            assert (extent.y0, extent.y1) == approx((rows["ci_low"].min(), rows["ci_high"].max()))
            assert [text.get_color() for text in box.texts if text.get_text() == name] == [
                _style.as_text(line.get_color())
            ]
    assert any(result.band[:30] in text for text in words(ax))


def test_names_are_in_the_order_of_the_last_ranks():
    box = relative_ranks_plot(make_result()).child_axes[0]
    heights = {text.get_text(): text.get_position()[1] for text in box.texts}
    assert heights["HB"] > heights["PB"] > heights["RS"]


@pytest.mark.parametrize(
    ("budgets", "scale"),
    [((1, 2, 4, 8, 16), "log"), (tuple(range(1, 25)), "log"), ((5, 10, 15), "linear"), ((0, 1, 10), "linear")],
)
def test_the_scale_follows_the_spacing_of_the_budgets(budgets, scale):
    assert relative_ranks_plot(make_result(budgets=budgets)).child_axes[0].get_xscale() == scale


def test_whole_budgets_have_whole_ticks_and_others_need_not():
    for budgets, whole in (((1, 2, 3), True), ((1, 1.9, 3), False)):
        ticks = relative_ranks_plot(make_result(budgets=budgets)).child_axes[0].get_xticks()
        assert (ticks == ticks.round()).all() == whole


def test_budgets_without_numbers_are_named():
    box = relative_ranks_plot(make_result(budgets=("low", "middle", "high"))).child_axes[0]
    assert [label.get_text() for label in box.get_xticklabels()] == ["low", "middle", "high"]


def test_many_algorithms_have_no_bands_and_the_foot_says_so():
    ax = relative_ranks_plot(make_result(names=[f"optimizer_{i:02d}" for i in range(20)]))
    assert len(ax.child_axes[0].collections) == 0
    assert "Bands are left out with more than 6 algorithms" in " ".join(words(ax))


@pytest.mark.parametrize("count", [2, 10, 20])
def test_lines_of_the_same_colour_differ_in_their_dashes(count):
    names = [f"optimizer_{i:02d}" for i in range(count)]
    box = relative_ranks_plot(make_result(names=names)).child_axes[0]
    drawn = lines(box, "_rank")
    looks = {(line.get_color(), str(line._unscaled_dash_pattern)) for line in drawn}
    assert len(looks) == count
    assert [line.get_linestyle() for line in drawn[:7]] == ["-"] * min(count, 7)
    colours = {text.get_text(): text.get_color() for text in box.texts}
    assert [colours[name] for name in names] == [_style.as_text(line.get_color()) for line in drawn]


@pytest.mark.parametrize("levels", [(), ("bad", "good")])
def test_one_budget_is_drawn_as_rows(levels, assert_readable):
    result = make_result(budgets=(None,), levels=levels, budget=None)
    ax = relative_ranks_plot(result)
    assert ax.child_axes == []
    labels = row_labels(ax)
    assert labels[:4] == (["All instances", "HB", "PB", "RS"] if levels else ["HB", "PB", "RS"])[: len(labels[:4])]
    estimates = lines(ax, "_estimates")[0]
    assert list(estimates.get_xdata()) == approx(result.table["rank"].to_numpy())
    assert_readable(ax)


@pytest.mark.parametrize("levels", [(), ("bad", "good"), tuple("abcde")])
def test_names_and_words_fit_whatever_the_number_of_algorithms(two_five_twenty, levels, assert_fits):
    for names in two_five_twenty.values():
        small = (6.0, 7.0) if len(names) * len(levels) > 30 else (5.0, 5.0) if levels else (2.5, 4.0)
        result = make_result(names=names, levels=levels)
        assert_fits(lambda ax, result=result: relative_ranks_plot(result, ax=ax), small)


def test_axes_that_are_too_small_and_other_results_are_refused():
    ax = Figure(figsize=(0.8, 0.6)).add_axes((0, 0, 1, 1))
    message = (
        "ax is too small: a plot of 3 algorithms in 1 panel needs larger axes, it is 0.8 x 0.6 inches. Pass larger "
        "axes, or ax=None for a figure that grows with its content."
    )
    with pytest.raises(ArgumentError, match=f"^{re.escape(message)}$"):
        relative_ranks_plot(make_result(), ax=ax)
    with pytest.raises(ArgumentError, match=r"^result must be the result of anytime\(\)\.ranks\(\), got dict\.$"):
        relative_ranks_plot({})


def test_names_keep_clear_of_the_ticks_of_the_next_panel():
    """Before, "RS" touched "2.50": room was kept for ticks of one decimal."""
    figure = Figure(figsize=(9.0, 6.5))
    ax = relative_ranks_plot(make_result(names=("HB", "PB"), levels=("at25", "bad")), ax=figure.add_axes((0, 0, 1, 1)))
    figure.canvas.draw()
    boxes = sorted(ax.child_axes, key=lambda box: (round(box.get_position().y0, 3), box.get_position().x0))
    left, right = boxes[0], boxes[1]
    ends = [text.get_window_extent().x1 for text in left.texts if text.get_text() in ("HB", "PB")]
    ticks = [label.get_window_extent().x0 for label in right.get_yticklabels()]
    assert "1.25" in row_labels(right)
    assert min(ticks) - max(ends) > 4
