"""The diagram shows the decisions: where, who, joined with whom, and readable."""

from __future__ import annotations

import dataclasses
import re

import numpy as np
import pytest
from figures import CASES, lines
from matplotlib.figure import Figure

from lmemtest.core.verdicts import Verdict
from lmemtest.errors import ArgumentError
from lmemtest.plots import cd_diagram
from lmemtest.plots._cd_plan import stack
from lmemtest.plots._layout import spread


def places_at(ax, height):
    """Where the line of each algorithm is at a height, from the left."""
    return np.array([np.interp(-height, -np.array(e.get_ydata()), e.get_xdata()) for e in lines(ax, "_elbow")])


def shown_groups(ax, names):
    """Read the groups off the figure: the dots of each bar are on the lines of its members."""
    slack = 1e-9 * np.ptp(ax.get_xlim())
    return {
        frozenset(
            name
            for name, place in zip(names, places_at(ax, line.get_ydata()[0]), strict=True)
            if np.abs(np.array(line.get_xdata()) - place).min() <= slack
        )
        for line in lines(ax, "_group")
    }


def ascending(sep):
    return sorted((v for v in sep.levels if np.isfinite(sep.means[sep.levels.index(v)])),
                  key=lambda v: sep.means[sep.levels.index(v)])  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_markers_are_the_means_bars_the_groups_and_all_text_is_readable(make, case, assert_readable):
    for direction, size in (("minimize", None), ("maximize", (4.0, 3.0)), (None, (12.0, 8.0))):
        sep = make.decisions(*make.cases[case], direction=direction)
        ax = cd_diagram(sep, ax=None if size is None else Figure(figsize=size).subplots())
        assert_readable(ax)
        means = np.sort([mean for mean in sep.means if np.isfinite(mean)])
        (markers,) = lines(ax, "_means")
        np.testing.assert_array_equal(markers.get_xdata(), means)
        starts = [line.get_xdata()[0] for line in lines(ax, "_elbow")]
        np.testing.assert_allclose(starts, means, atol=1e-9 * np.diff(ax.get_xlim())[0], rtol=0)
        order = ascending(sep)
        placed = (frozenset(group) & frozenset(order) for group in sep.groups)
        assert shown_groups(ax, order) == {group for group in placed if len(group) > 1}


def test_a_bar_never_joins_an_algorithm_that_differs(make):
    sep = make.decisions(*make.cases["twenty"])
    ax = cd_diagram(sep)
    order = ascending(sep)
    gaps = 0
    for line in lines(ax, "_group"):
        height = line.get_ydata()[0]
        columns = places_at(ax, height)
        members = {order[int(np.argmin(np.abs(columns - x)))] for x in line.get_xdata()}
        for bar in lines(ax, "_bar"):
            if bar.get_ydata()[0] == height:
                left, right = bar.get_xdata()
                covered = {order[i] for i in np.flatnonzero((columns > left) & (columns < right))}
                assert not covered
        inside = (columns > min(line.get_xdata())) & (columns < max(line.get_xdata()))
        gaps += len({order[i] for i in np.flatnonzero(inside)} - members)
    assert gaps == sum(len(line.get_xdata()) for line in lines(ax, "_passed")) > 0


@pytest.mark.parametrize("size", [(3.3, 3.0), (7.0, 4.0)])
@pytest.mark.parametrize("case", CASES)
def test_dots_on_bars_are_at_the_means_or_the_foot_says_that_they_are_not(make, case, size, texts_of):
    sep = make.decisions(*make.cases[case], direction="minimize")
    ax = cd_diagram(sep, ax=Figure(figsize=size, layout="none").add_axes((0, 0, 1, 1)))
    means = np.sort([mean for mean in sep.means if np.isfinite(mean)])
    apart = "Close means stand apart below the axis" in " ".join(text.get_text() for text in texts_of(ax))
    point = np.ptp(ax.get_xlim()) / (72 * size[0])
    for bar in lines(ax, "_group"):
        off = np.abs(np.array(bar.get_xdata())[:, None] - means).min(axis=1)
        assert off.max() <= (np.inf if apart else 0.51 * point)
    assert not (apart and case in ("two", "three", "numbers"))


def test_a_missing_direction_is_said(make, texts_of):
    said = {
        direction: " ".join(
            t.get_text() for t in texts_of(cd_diagram(make.decisions("AB", (1.0, 2.0), 0.1, direction=direction)))
        )
        for direction in ("minimize", None)
    }
    assert "Whether lower or higher is better is not known." in said[None]
    assert "is not known" not in said["minimize"]


def test_text_stays_readable_at_another_resolution(make, assert_readable):
    ax = cd_diagram(make.decisions(*make.cases["twenty"]))
    for dpi in (60, 150, 300):
        ax.figure.set_dpi(dpi)
        assert_readable(ax)


def test_names_are_shown_as_they_are(make, texts_of):
    names = ("cost_$x$", "<b>PB</b>", "{braces}", "_hidden", "a\nb", "\\alpha")
    ax = cd_diagram(make.decisions(names, (1.0, 2.0, 3.0, 4.0, 5.0, 6.0), 0.1))
    shown = {text.get_text() for text in texts_of(ax)}
    assert {"cost_$x$", "<b>PB</b>", "{braces}", "_hidden", "a b", "\\alpha"} <= shown


def test_cut_names_stay_distinct(make, texts_of):
    names = [f"{'same' * 20} {i} {'tail' * 20}" for i in range(6)]
    ax = cd_diagram(make.decisions(names, np.arange(6.0), 0.1))
    labels = [text.get_text() for text in texts_of(ax) if "…" in text.get_text()]
    assert len(set(labels)) == 6


@pytest.mark.parametrize(("direction", "text", "first_side"), [
    ("minimize", "← lower is better", "right"), ("maximize", "higher is better →", "left")
])  # fmt: skip
def test_direction_is_written_and_the_better_half_sits_on_its_side(make, texts_of, direction, text, first_side):
    sep = make.decisions(*make.cases["three"], direction=direction)
    texts = {t.get_text(): t for t in texts_of(cd_diagram(sep))}
    assert text in texts
    better, last = sep.levels[:2], sep.levels[-1]
    assert {texts[name].get_ha() for name in better} == {first_side}
    assert texts[last].get_ha() != first_side
    assert texts[better[0]].get_position()[1] > texts[better[1]].get_position()[1]


def test_ruler_has_the_length_of_the_critical_differences(make, texts_of):
    sep = make.decisions(*make.cases["twenty"])
    ax = cd_diagram(sep)
    lengths = [np.ptp(lines(ax, label)[0].get_xdata()) for label in ("_cd min", "_cd max")]
    np.testing.assert_allclose(lengths, sep.critical_difference, rtol=1e-9)
    low, high = sep.critical_difference
    assert f"CD {low:.2f}–{high:.2f}" in {text.get_text() for text in texts_of(ax)}


def test_a_ruler_far_longer_than_the_axis_is_written_only(make, texts_of):
    sep = make.decisions(("A", "B"), (1.0, 1.001), 1.0)
    ax = cd_diagram(sep)
    assert not lines(ax, "_cd max")
    assert any(text.get_text().endswith("(beyond the axis)") for text in texts_of(ax))


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_words_of_a_difference_that_are_longer_than_the_axis_stay_in_the_figure(make, assert_readable, direction):
    names = ("restart_ensemble_prior_Hyperband_x", "restart_Hyperband_search", "tuned_prior_large_ensemble")
    means, errors = (-0.0009, 0.0009, 0.0009), (0.0012, 0.0018, 0.0017)
    ax = cd_diagram(make.decisions(names, means, errors, direction=direction), width="column")
    assert any(text.get_text().endswith("(beyond the axis)") for text in ax.texts)
    assert_readable(ax)


def test_missing_means_and_untested_pairs_are_named(make, texts_of):
    words = " ".join(text.get_text() for text in texts_of(cd_diagram(make.decisions(*make.cases["missing"]))))
    assert "Mean not estimable: B." in words
    sep = make.decisions(*make.cases["three"])
    codes, (i, j) = sep.codes.copy(), map(sep.levels.index, ("HB", "PB"))
    codes[i, j] = codes[j, i] = Verdict.NOT_TESTED
    ax = cd_diagram(dataclasses.replace(sep, codes=codes))
    words = " ".join(text.get_text() for text in texts_of(ax))
    assert "Diamonds: 1 of 3 pairs has no test and is undecided." in words
    assert len(lines(ax, "_open bar")) == sum("HB" in group and "PB" in group for group in sep.groups) > 0


def test_a_long_name_takes_the_room_that_the_other_side_leaves(make, texts_of):
    """Before, both sides were cut to the room of the side that had less."""

    def kept(first):
        ax = cd_diagram(make.decisions([first, "B", "C", "D", "E" * 300, "F"], [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 0.1))
        return max(len(text.get_text()) for text in texts_of(ax) if text.get_text().endswith("… [1]"))

    assert kept("A") > kept("a name of about forty letters, no cut") + 5


def test_group_and_test_are_named(make, texts_of):
    sep = dataclasses.replace(make.decisions(*make.cases["three"]), selected={"prior": "bad"})
    words = " ".join(text.get_text() for text in texts_of(cd_diagram(sep))).replace("\u00a0", " ")
    assert "Marginal means of value at prior = bad." in words
    assert "no significant difference (Tukey, α = 0.05)" in words


def test_given_axes_are_used_and_keep_their_place(make):
    figure = Figure(figsize=(10, 5))
    axes = figure.subplots(1, 2)
    before = axes[0].get_position().bounds
    assert cd_diagram(make.decisions(*make.cases["five"]), ax=axes[0]) is axes[0]
    assert axes[0].get_position().bounds == before
    assert not axes[1].has_data()


@pytest.mark.parametrize("layout", ["constrained", "tight", "compressed"])
def test_layout_engines_and_subfigures_keep_the_text_readable(make, assert_readable, layout):
    figure = Figure(figsize=(11, 4), layout=layout)
    ax = figure.subplots(1, 2)[1]
    assert_readable(cd_diagram(make.decisions(*make.cases["five"]), ax=ax))


def test_subfigures_work(make, assert_readable):
    part = Figure(figsize=(11, 4)).subfigures(1, 2)[1]
    assert_readable(cd_diagram(make.decisions(*make.cases["long names"]), ax=part.subplots()))


def test_new_figures_grow_with_the_number_of_algorithms(make):
    heights = [cd_diagram(make.decisions(*make.random_case(n))).figure.get_figheight() for n in (3, 10, 30)]
    assert heights[0] < heights[1] < heights[2]


def test_axes_that_are_too_small_are_refused(make):
    ax = Figure(figsize=(4, 0.6)).subplots()
    with pytest.raises(
        ArgumentError, match=r"ax is too small: a diagram of 20 algorithms needs at least \d\.\d inches"
    ):
        cd_diagram(make.decisions(*make.cases["twenty"]), ax=ax)


def test_wrong_arguments_are_refused(make):
    with pytest.raises(
        ArgumentError, match=re.escape("decisions must be the result of decisions() or rank(), or means beside")
    ):
        cd_diagram({})
    with pytest.raises(ArgumentError, match="ax must be one matplotlib Axes with straight axes or None, got ndarray"):
        cd_diagram(make.decisions(*make.cases["two"]), ax=np.array([]))
    polar = Figure().subplots(subplot_kw={"projection": "polar"})
    with pytest.raises(ArgumentError, match="got PolarAxes"):
        cd_diagram(make.decisions(*make.cases["two"]), ax=polar)
    sep = dataclasses.replace(make.decisions(*make.cases["two"]), means=(np.nan, np.nan))
    with pytest.raises(ArgumentError, match=r"decisions has no finite mean to draw: PB, HB cannot be estimated"):
        cd_diagram(sep)


def test_spread_keeps_order_distance_and_limits():
    rng = np.random.default_rng(5)
    for _ in range(50):
        places = np.sort(rng.uniform(0, 100, rng.integers(1, 12)).round(-1))
        out = np.array(spread(places.tolist(), 7.0, (0.0, 100.0)))
        assert np.all(np.diff(out) >= 7.0 - 1e-9)
        assert out.min() >= -1e-9
        assert out.max() <= 100 + 1e-9
    np.testing.assert_allclose(spread([0.0, 30.0, 90.0], 7.0, (0.0, 100.0)), [0, 30, 90])
    np.testing.assert_allclose(spread([50.0, 50.0], 8.0, (0.0, 100.0)), [46, 54])


def test_stack_gives_touching_spans_their_own_level():
    assert stack([(0, 10), (12, 20), (5, 14)], 1.0) == (0, 0, 1)
    assert stack([(0, 10), (10, 20)], 1.0) == (0, 1)
    assert stack([], 1.0) == ()


def test_without_a_title_nothing_stands_above_the_ruler(make):
    ax = cd_diagram(make.decisions(*make.cases["five"]))
    assert not [text.get_text() for text in ax.texts if text.get_text().strip("\"' ") == ""]


@pytest.mark.parametrize("title", ["Ranks", "$a$_b " * 60])
def test_a_title_is_inside_the_figure(make, texts_of, title):
    ax = cd_diagram(make.decisions(*make.cases["five"]), title=title)
    (shown,) = [text for text in texts_of(ax) if text.get_fontweight() == "bold"]
    assert shown.get_text().split() == title.split()  # wrapped, and never cut
    box, figure = shown.get_window_extent(), ax.get_figure().bbox
    assert box.x0 >= figure.x0
    assert box.x1 <= figure.x1
    assert box.y1 <= figure.y1
    with pytest.raises(ArgumentError, match="title must be a text, got 3"):
        cd_diagram(make.decisions(*make.cases["five"]), title=3)


@pytest.mark.parametrize(("count", "values"), [(5, False), (12, False), (12, True), (20, False)])
def test_names_of_a_new_narrow_figure_are_whole_in_a_smaller_font(make, assert_readable, count, values):
    names = [f"optimizer_{i:02d}" for i in range(count)]
    close = 10.0 + (0.3 if values else 0.01) * np.random.default_rng(2).normal(size=count)
    ax = cd_diagram(make.decisions(names, close, 0.1), width="column", values=values)
    assert_readable(ax)
    shown = {text.get_text().replace("\n", ""): text.get_fontsize() for text in ax.texts}  # on one line or two
    assert set(names) <= set(shown)
    assert min(shown.values()) >= 6.0
    wide = cd_diagram(make.decisions(names, close, 0.1), width="page", values=values)
    assert {text.get_text(): text.get_fontsize() for text in wide.texts}[names[0]] > shown[names[0]]
