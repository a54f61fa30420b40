"""The figures of compared tuning curves show their numbers and keep inside their rectangle."""

from __future__ import annotations

import numpy as np
import pytest
from pytest import approx

from lmemtest.errors import ArgumentError
from lmemtest.plots import _canvas
from lmemtest.plots.evidence_plot import evidence_plot, winning_plot
from lmemtest.tuning.compare import compare_curves
from lmemtest.tuning.winning import best_of

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
    return compare_curves(HIGH, LOW, **{"direction": "maximize", "names": ("new", "old"), "n_sim": 0, **options})


def lines(ax, label):
    return [line for line in ax.lines if line.get_label() == label]


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("size", [None, (4.0, 3.0)])
def test_all_text_is_readable(case, size, assert_readable):
    ax = None if size is None else _canvas.new_axes(*size)
    drawn = evidence_plot(found(**CASES[case]), ax=ax)
    assert_readable(drawn)
    assert ax is None or drawn is ax


def test_lines_and_bands_are_the_curves():
    comparison = found()
    ax = evidence_plot(comparison)
    for line, dots, curve in zip(
        lines(ax, "_estimate"), lines(ax, "_asked"), (comparison.a, comparison.b), strict=True
    ):
        assert list(dots.get_xdata()) == list(comparison.grid)
        assert list(dots.get_ydata()) == approx(curve.estimate)
        between = np.linspace(1.013, comparison.grid[-1], 50)[:-1]
        exact = curve.curve.at(between)
        assert np.interp(between, line.get_xdata(), line.get_ydata()) == approx(exact.estimate)
    bands = [c for c in ax.collections if c.get_label() == "_band"]
    assert len(bands) == 2
    for band, curve in zip(bands, (comparison.a, comparison.b), strict=True):
        heights = band.get_paths()[0].vertices[:, 1]
        assert (heights.min(), heights.max()) == approx((curve.lower.min(), curve.upper.max()))
        exact = curve.curve.at([1.5, 2.5, 4.4])
        for k, low, high in zip(exact.k, exact.lower + 1e-9, exact.upper - 1e-9, strict=True):
            assert band.get_paths()[0].contains_points([(k, low), (k, high)]).all()


def test_the_strip_has_a_cell_for_every_run_of_evidence():
    comparison = found(names=("new", "old"))
    ax = evidence_plot(comparison)
    cells = [patch for patch in ax.patches if patch.get_label()[1:] in ("weak", "fair", "strong")]
    assert [cell.get_label()[1:] for cell in cells] == [run.level for run in comparison.segments]
    for cell, run in zip(cells, comparison.segments, strict=True):
        assert cell.get_x() <= run.start
        assert cell.get_x() + cell.get_width() >= run.stop
    words = {text.get_text() for text in ax.texts}
    assert words <= {"weak", "fair", "strong"}
    assert "strong" in words


def test_a_strip_without_evidence_says_none():
    ax = evidence_plot(compare_curves(HIGH, HIGH, direction="maximize", n_sim=0))
    assert [text.get_text() for text in ax.texts] == ["none"]


def test_pale_bands_mark_what_is_trivial():
    ax = evidence_plot(found(grid=np.arange(1, 40)))
    opacity = [c.get_alpha() for c in ax.collections if c.get_label() == "_band"]
    assert sorted(set(opacity)) == [0.08, 0.22]
    assert ax.get_xscale() == "log"
    assert evidence_plot(found()).get_xscale() == "linear"


@pytest.mark.parametrize("last", [3, 20])
def test_trials_have_whole_ticks_and_costs_need_not(last):
    for ax in (
        evidence_plot(found(grid=np.arange(1, last + 1))),
        winning_plot(best_of(HIGH, LOW, direction="maximize", grid=np.arange(1, last + 1))),
    ):
        assert ax.get_xscale() == "linear"
        assert (ax.get_xticks() == ax.get_xticks().round()).all()
    ax = evidence_plot(found(cost_a=1.0, cost_b=1.0, grid=np.arange(1.0, last + 1)))
    assert 2.5 in ax.get_xticks()


def test_the_label_stands_below_the_axis():
    comparison = found()
    text = evidence_plot(comparison).get_xlabel().replace("\n", " ")
    assert text == f"Trials {comparison.sentences()[0]}"
    assert evidence_plot(found(cost_a=1.0, cost_b=2.0)).get_xlabel().startswith("Cost\n")
    assert evidence_plot(found(statistic=0.9)).get_ylabel() == "0.9 quantile of the best score"


def test_winning_is_drawn_in_percent(assert_readable):
    result = best_of(HIGH, LOW, direction="maximize", names=("new", "old"))
    ax = winning_plot(result)
    assert_readable(ax)
    assert list(lines(ax, "_estimate")[0].get_ydata()) == approx(100 * result.drawn().estimate)
    assert set(result.grid) <= set(lines(ax, "_estimate")[0].get_xdata())
    assert result.at(result.grid).to_frame().equals(result.to_frame())
    assert result.estimate[0] < result.at(1.5).estimate[0] < result.estimate[1]
    assert lines(ax, "_reference")[0].get_ydata()[0] == 50.0
    assert ax.get_ylim() == (0.0, 100.0)
    assert ax.get_ylabel().replace("\n", " ") == "P(best of new beats best of old), %"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["estimate with 80 % band"]
    assert_readable(winning_plot(best_of(HIGH, LOW, direction="maximize", names=(LONG, "y"), cost_a=1, cost_b=3)))


def test_only_their_results_are_drawn_and_in_room_enough():
    with pytest.raises(ArgumentError) as caught:
        evidence_plot(best_of(HIGH, LOW, direction="maximize"))
    assert str(caught.value) == (
        "comparison must be the result of compare_curves(), got BestOf. A BestOf is drawn by winning_plot()."
    )
    with pytest.raises(ArgumentError, match=r"result must be the result of best_of\(\), got dict."):
        winning_plot({})
    with pytest.raises(ArgumentError, match="ax is too small: a plot of curves needs"):
        evidence_plot(found(), ax=_canvas.new_axes(3.0, 0.5))
