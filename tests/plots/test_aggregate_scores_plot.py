"""Figures of aggregate scores, profiles and probabilities of improvement show the numbers of their results."""

from __future__ import annotations

import numpy as np
import pytest
from figures import lines
from matplotlib.figure import Figure
from pytest import approx
from study import as_runs, table_of_scores

from lmemtest.bench.ranking.aggregates import aggregate_scores
from lmemtest.errors import ArgumentError
from lmemtest.plots.aggregate_scores import aggregate_scores_plot, improvement_plot, performance_profile_plot


def make_result(names=("HB", "PB", "RS"), measures=("iqm", "optimality_gap"), direction="maximize"):
    rng = np.random.default_rng(1)
    scores = rng.random((len(names), 4, 3)) + np.arange(len(names))[:, None, None] / len(names)
    runs = as_runs(table_of_scores(scores, "tool task seed", tool=list(names)), direction)
    return aggregate_scores(runs, measures, rng=1, n_draws=99)


def words(ax):
    return " ".join(text.get_text() for text in ax.texts)


def test_columns_are_measures_in_the_order_of_the_first():
    result = make_result()
    ax = aggregate_scores_plot(result)
    order = result.of("iqm")["algorithm"].tolist()
    assert [label.get_text() for label in ax.child_axes[0].get_yticklabels()] == order
    assert [label.get_text() for label in ax.child_axes[1].get_yticklabels()] == ["", "", ""]
    for measure, box in zip(result.measures, ax.child_axes, strict=True):
        rows = result.of(measure).set_index("algorithm").loc[order]
        assert list(lines(box, "_estimates")[0].get_xdata()) == approx(rows["estimate"].to_numpy())
        ends = [line.get_xdata() for line in lines(box, "_interval")]
        assert np.array(ends) == approx(rows[["ci_low", "ci_high"]].to_numpy())
    assert "score, higher is better; optimality gap: lower is better." in words(ax)
    assert "nothing about others" in words(ax)
    down = make_result(measures=("optimality_gap",), direction="minimize")
    assert "optimality gap: lower is better." in words(aggregate_scores_plot(down))


def test_profiles_are_the_shares_with_their_bands():
    result = make_result().profiles(of="benchmarks")
    box = performance_profile_plot(result).child_axes[0]
    best_first = sorted(result.shares, key=np.sum, reverse=True)
    for line, want in zip(lines(box, "_profile"), best_first, strict=True):
        assert list(line.get_xdata()) == approx(result.taus)
        assert list(line.get_ydata()) == approx(want)
    assert len(box.collections) == 3
    assert len({str(line.get_linestyle()) for line in lines(box, "_profile")}) > 1  # told apart in grey
    numbers = [float(label.get_text()) for label in box.get_xticklabels()]
    assert numbers[-1] >= 0.95 * box.get_xlim()[1]  # the end of the scale has a number
    many = performance_profile_plot(make_result(names=[f"tool {i}" for i in range(8)]).profiles())
    assert len(many.child_axes[0].collections) == 0
    assert "Bands are left out with more than 6 algorithms" in words(many)


def test_improvement_is_read_from_the_better_side():
    result = make_result().improvement()
    ax = improvement_plot(result)
    drawn = {}
    for line in lines(ax, "_estimates"):
        drawn |= dict(zip(np.round(line.get_ydata()).astype(int).tolist(), line.get_xdata(), strict=True))
    matrix = result.matrix
    for row, label in enumerate(ax.get_yticklabels()):
        left, right = label.get_text().split(" > ")
        assert drawn[row] == approx(matrix.loc[left, right])
        assert drawn[row] >= 0.5
    assert lines(ax, "_reference")[0].get_xdata()[0] == 0.5


@pytest.mark.parametrize("count", [2, 5, 20])
def test_names_and_words_fit(two_five_twenty, count, assert_fits):
    result = make_result(names=two_five_twenty[count], measures=("iqm", "median", "mean", "optimality_gap"))
    profiles, better = result.profiles(), result.improvement()
    assert_fits(lambda ax: aggregate_scores_plot(result, ax=ax), (4.2, 4.0))
    assert_fits(lambda ax: performance_profile_plot(profiles, ax=ax), (4.5, 4.5))
    assert_fits(lambda ax: improvement_plot(better, ax=ax), (4.5, 3.4) if count < 20 else (4.5, 9.0))


def test_axes_that_are_too_small_and_other_results_are_refused():
    ax = Figure(figsize=(1.0, 0.6)).add_axes((0, 0, 1, 1))
    with pytest.raises(ArgumentError, match="ax is too small: a plot of 3 rows in 2 columns needs at least"):
        aggregate_scores_plot(make_result(), ax=ax)
    with pytest.raises(ArgumentError, match=r"^result must be the result of aggregate_scores\(\), got dict\.$"):
        aggregate_scores_plot({})
