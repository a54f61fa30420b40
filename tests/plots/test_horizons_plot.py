"""Diagrams of several horizons: each as cd_diagram draws it, on one scale, readable."""

from __future__ import annotations

import functools
import re

import numpy as np
import pytest
from matplotlib.figure import Figure
from study import as_runs, table_of_scores

import lmemtest as lt
from lmemtest.errors import ArgumentError
from lmemtest.plots import cd_diagram
from lmemtest.plots.cd_diagrams import horizons_plot

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
    scores = (
        rng.normal(size=6)[:, None, None, None]
        + rng.normal(size=algorithms)[:, None, None]
        + 0.2 * rng.normal(size=(6, algorithms))[..., None, None]
        + 0.2 * rng.normal(size=(algorithms, 4))[:, None]
        - shift * np.arange(4)
        + 0.2 * rng.normal(size=(6, algorithms, 2, 4))
    )
    levels = {"algorithm": names or [f"optimizer_{i:02d}" for i in range(algorithms)], "budget": (1, 2, 4, 8)}
    table = table_of_scores(scores, "task algorithm seed budget", "loss", **levels)
    runs = as_runs(table.rename(columns={"budget": "used budget $s$"}), direction, budget="used budget $s$")
    return lt.anytime(runs).at(given)


def of(ax, label):
    return [line for line in ax.lines if line.get_label() == label]


LAYOUTS = ("stacked", "beside")


def points_per_unit(ax):
    box = ax.get_window_extent()
    return box.width / np.diff(ax.get_xlim())[0]


def titles_of(ax):
    return [text.get_text().replace("\n", " ") for text in ax.texts if text.get_text().startswith("used budget")]


@pytest.mark.parametrize("shift", [0.0, 5.0])
def test_each_diagram_shows_its_horizon_and_a_length_is_the_same_difference_everywhere(shift):
    result = study(5, shift=shift)
    for layout in LAYOUTS:
        diagrams = horizons_plot(result, layout=layout).child_axes
        np.testing.assert_allclose([*map(points_per_unit, diagrams)], points_per_unit(diagrams[0]), rtol=1e-9)
        for ax, horizon in zip(diagrams, result.horizons.values(), strict=True):
            (dots,) = of(ax, "_means")
            np.testing.assert_array_equal(dots.get_xdata(), sorted(horizon.decisions.means))
            alone = cd_diagram(horizon.decisions)
            groups = [len(line.get_xdata()) for line in of(ax, "_group")]
            assert groups == [len(line.get_xdata()) for line in of(alone, "_group")]
            (line,) = of(ax, "_axis")
            low, high = line.get_xdata()
            slack = 1e-9 * (high - low)
            assert low - slack <= dots.get_xdata().min() <= dots.get_xdata().max() <= high + slack
        # the axes start at the same score unless means move far
        assert len({ax.get_xlim() for ax in diagrams}) == (3 if shift else 1)
        own = ["different origins" in titles_of(ax)[0] for ax in diagrams]
        assert own == [bool(shift), False, False]


def test_diagrams_are_in_the_order_of_the_axis():
    result = study(3, given=((2, 4), 8, 1))
    assert result.labels == ("1", "2-4", "8")
    found = [titles_of(ax) for ax in result.plot().child_axes]
    levels = [horizon.decisions.alpha for horizon in result.horizons.values()]
    assert found == [
        [f"used budget $s$ {label}, α = {level:.3g}"]
        for label, level in zip(("1", "2-4 (mean)", "8"), levels, strict=True)
    ]


def test_titles_are_the_horizons_and_the_explanation_stands_once(texts_of):
    shown = [text.get_text() for text in texts_of(horizons_plot(study(5)))]
    assert [t for t in shown if t.startswith("used budget")] == [
        "used budget $s$ 1, α = 0.0167",
        "used budget $s$ 2, α = 0.0167",
        "used budget $s$ 2-8 (mean), α = 0.0167",
    ]
    words = " ".join(shown)
    for sentence in (
        "Marginal means of loss.",
        "Dots on one bar: no significant difference (",
        "α in the titles: shares of 0.05 over the 3 diagrams, by Holm's method.",
    ):
        assert words.count(sentence) == 1


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.filterwarnings("ignore:Glyph .* missing from font")
def test_all_text_is_readable(layout, assert_readable, assert_fits):
    assert_readable(horizons_plot(study(2), layout=layout))
    assert_readable(horizons_plot(study(20), layout=layout))
    for shift in (0.0, 5.0):
        long = study(5, names=LONG_NAMES, shift=shift, direction="maximize", given=(1, 2, 8, (2, 8)))
        small = (6.0, 7.0) if layout == "stacked" else (14.0, 3.5)
        assert_fits(lambda ax, long=long: horizons_plot(long, layout=layout, ax=ax), small=small)


def test_limits_widen_the_axis_of_one_diagram():
    sep = next(iter(study(3).horizons.values())).decisions
    (line,) = of(cd_diagram(sep, limits=(-50.0, 100.0)), "_axis")
    low, high = line.get_xdata()
    assert low <= -50.0 + 1e-9
    assert high >= 100.0 - 1e-9


@pytest.mark.parametrize("limits", [(1.0, 0.0), (0.0, np.inf), "ab", 3, (1.0, 2.0, 3.0)])
def test_limits_that_are_no_range_are_refused(limits):
    message = f"limits must be two scores in ascending order, such as (0.0, 1.0), got {limits!r}."
    with pytest.raises(ArgumentError, match=f"^{re.escape(message)}$"):
        cd_diagram(next(iter(study(3).horizons.values())).decisions, limits=limits)


def test_what_cannot_be_drawn_is_refused():
    result = study(3)
    with pytest.raises(ArgumentError, match=r"^result must be the result of anytime\(\).at\(\), got Decisions\.$"):
        horizons_plot(next(iter(result.horizons.values())).decisions)
    with pytest.raises(ArgumentError, match=r"^ax must be one matplotlib Axes with straight axes or None, got list"):
        horizons_plot(result, ax=[1, 2, 3])
    with pytest.raises(ArgumentError, match=r"^layout must be 'stacked' or 'beside', got 'grid'\.$"):
        horizons_plot(result, layout="grid")
    with pytest.raises(ArgumentError, match=r"^ax is too small: 3 diagrams of 3 algorithms needs? at least "):
        horizons_plot(result, ax=Figure(figsize=(6, 0.6)).subplots())
