"""The figures of compared tuning curves show their numbers and keep inside their rectangle."""

from __future__ import annotations

import numpy as np
import pytest
from pytest import approx

from lmemtest import tuning
from lmemtest.errors import ArgumentError
from lmemtest.plots import _canvas
from lmemtest.plots.tuning import tuning_best_of_plot, tuning_compare_plot
from lmemtest.tuning.best_of import best_of

RNG = np.random.default_rng(20)
HIGH, LOW = RNG.normal(0.78, 0.05, 48), RNG.normal(0.7, 0.05, 40)
LONG = "a very long name with $\\alpha$ and _under_ <b>bold</b> that no legend has room for " * 2
CASES = {
    "plain": {},
    "minimise": {"direction": "minimize"},
    "trivial ends": {"grid": np.arange(1, 40)},
    "cost": {"cost_a": RNG.lognormal(0, 0.5, 48), "cost_b": 2.0},
    "long names": {"names": (LONG + "1", LONG + "2")},
    "odd names": {"names": ("_漢字 optimizer", "x\ny $")},
    "one budget": {"grid": [2]},
    "tiny budgets": {"cost_a": 1e-9, "cost_b": 3e-9},
    "nothing to say": {"grid": [500, 600]},
}


def found(**options):
    return tuning.compare(HIGH, LOW, **{"direction": "maximize", "names": ("new", "old"), "n_draws": 0, **options})


def lines(ax, label):
    return [line for line in ax.child_axes[0].lines if line.get_label() == label]


def words(ax):
    """What is written around the panels: the foot, and the names of the axes."""
    return [text.get_text().replace("\u00a0", " ") for text in ax.texts]


@pytest.mark.parametrize("case", CASES)
def test_names_and_words_fit_for_every_kind_of_comparison(case, assert_fits):
    comparison = found(**CASES[case])
    assert_fits(lambda ax: tuning_compare_plot(comparison, ax=ax), (4.0, 3.0))


def test_lines_and_bands_are_the_curves():
    comparison = found()
    ax = tuning_compare_plot(comparison)
    for line, dots, curve in zip(
        lines(ax, "_estimate"), lines(ax, "_asked"), (comparison.a, comparison.b), strict=True
    ):
        assert list(dots.get_xdata()) == list(comparison.grid)
        assert list(dots.get_ydata()) == approx(curve.estimate)
        between = np.linspace(1.013, comparison.grid[-1], 50)[:-1]
        exact = curve.curve.at(between)
        assert np.interp(between, line.get_xdata(), line.get_ydata()) == approx(exact.estimate)
    bands = [c for c in ax.child_axes[0].collections if c.get_label() == "_band"]
    assert len(bands) == 2
    for band, curve in zip(bands, (comparison.a, comparison.b), strict=True):
        heights = band.get_paths()[0].vertices[:, 1]
        assert (heights.min(), heights.max()) == approx((curve.band_low.min(), curve.band_high.max()))
        exact = curve.curve.at([1.5, 2.5, 4.4])
        for k, low, high in zip(exact.k, exact.band_low + 1e-9, exact.band_high - 1e-9, strict=True):
            assert band.get_paths()[0].contains_points([(k, low), (k, high)]).all()


def test_the_foot_names_all_the_evidence_of_the_strip():
    rng = np.random.default_rng(3)
    wide, narrow = rng.normal(0.7, 0.12, 48), rng.normal(0.76, 0.02, 48)
    sides = {"direction": "maximize", "names": ("wide", "narrow"), "n_draws": 0}
    shown = set()
    for portion in (0.1, 0.5, 1.0):
        for sample in (48, 24):
            comparison = tuning.compare(wide[:sample], narrow[:sample], portion=portion, **sides)
            _, rest = " ".join(words(tuning_compare_plot(comparison))).split(comparison.sentences()[0])
            order = tuning.evidence.EVIDENCE
            for evidence, better, start, stop in comparison.segments:
                named = comparison.label != "none" and comparison.better in (better, None)
                named = named and order.index(evidence) >= order.index(comparison.label)
                where = f"{start:g}" if start == stop else f"{start:g} to {stop:g}"
                said = [part for part in rest.split(";") if f"{evidence} evidence that {better} is better" in part]
                assert (where in "".join(said)) == (not named)
                shown.add((comparison.label, better, named))
    assert {label for label, _, named in shown if not named} >= {"none"}
    assert {better for _, better, named in shown if not named} == {"wide", "narrow"}


def test_the_strip_has_a_cell_for_every_run_of_evidence():
    comparison = found(names=("new", "old"))
    ax = tuning_compare_plot(comparison)
    strip = ax.child_axes[1]
    cells = [area for area in strip.collections if area.get_label()[1:] in ("weak", "fair", "strong")]
    assert [cell.get_label()[1:] for cell in cells] == [evidence for evidence, *_ in comparison.segments]
    for cell, (_, _, start, stop) in zip(cells, comparison.segments, strict=True):
        extents = cell.get_paths()[0].get_extents()
        assert extents.x0 <= start
        assert extents.x1 >= stop
    said = {text.get_text() for text in strip.texts}
    assert said <= {"weak", "fair", "strong"}
    assert "strong" in said
    assert strip.get_xlim() == ax.child_axes[0].get_xlim()


def test_a_strip_without_evidence_says_none():
    ax = tuning_compare_plot(tuning.compare(HIGH, HIGH, direction="maximize", n_draws=0))
    assert [text.get_text() for text in ax.child_axes[1].texts] == ["none"]


def test_grey_bands_mark_what_is_trivial():
    box = tuning_compare_plot(found(grid=np.arange(1, 40))).child_axes[0]
    assert [c.get_label() for c in box.collections].count("_trivial") == 2
    assert box.get_xscale() == "log"
    assert tuning_compare_plot(found()).child_axes[0].get_xscale() == "linear"


@pytest.mark.parametrize("last", [3, 20])
def test_trials_have_whole_ticks_and_costs_need_not(last):
    for ax in (
        tuning_compare_plot(found(grid=np.arange(1, last + 1))),
        tuning_best_of_plot(best_of(HIGH, LOW, direction="maximize", grid=np.arange(1, last + 1))),
    ):
        box = ax.child_axes[0]
        assert box.get_xscale() == "linear"
        assert (box.get_xticks() == box.get_xticks().round()).all()
    ax = tuning_compare_plot(found(cost_a=1.0, cost_b=1.0, grid=np.arange(1.0, last + 1)))
    assert 2.5 in ax.child_axes[0].get_xticks()


def test_the_sentence_stands_below_the_axis():
    comparison = found()
    *foot, trials, score = words(tuning_compare_plot(comparison))
    assert " ".join(foot) == comparison.sentences()[0]
    assert (trials, score) == ("Trials", "Median of the best score")
    assert words(tuning_compare_plot(found(cost_a=1.0, cost_b=2.0)))[-2] == "Cost"
    assert words(tuning_compare_plot(found(statistic=0.9)))[-1] == "0.9 quantile of the best score"


def test_winning_is_drawn_in_percent(assert_readable):
    result = best_of(HIGH, LOW, direction="maximize", names=("new", "old"))
    ax = tuning_best_of_plot(result)
    assert_readable(ax)
    assert list(lines(ax, "_estimate")[0].get_ydata()) == approx(100 * result.drawn().estimate)
    assert set(result.grid) <= set(lines(ax, "_estimate")[0].get_xdata())
    assert result.at(result.grid).to_frame().equals(result.to_frame())
    assert result.estimate[0] < result.at(1.5).estimate[0] < result.estimate[1]
    assert lines(ax, "_reference")[0].get_ydata()[0] == 50.0
    assert ax.child_axes[0].get_ylim() == (0.0, 100.0)
    assert words(ax)[-1] == "P(best of new beats best of old), %"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["estimate with 80 % band"]
    assert_readable(
        tuning_best_of_plot(best_of(HIGH, LOW, direction="maximize", names=(LONG, "y"), cost_a=1, cost_b=3))
    )


def test_only_their_results_are_drawn_and_in_room_enough():
    with pytest.raises(ArgumentError) as caught:
        tuning_compare_plot(best_of(HIGH, LOW, direction="maximize"))
    assert str(caught.value) == (
        "comparison must be the result of tuning.compare(), got BestOf. A BestOf is drawn by tuning_best_of_plot()."
    )
    with pytest.raises(ArgumentError, match=r"result must be the result of best_of\(\), got dict."):
        tuning_best_of_plot({})
    with pytest.raises(ArgumentError, match="ax is too small: a plot of curves needs"):
        tuning_compare_plot(found(), ax=_canvas.new_axes(3.0, 0.5))
