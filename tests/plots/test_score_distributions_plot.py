"""Violins show the numbers of the result, upright or lying, and stay readable."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from figures import foot, lines
from matplotlib.figure import Figure
from pytest import approx
from study import as_runs, table_of_scores

import lmemtest as lt
from lmemtest.bench.scores.score_distributions import score_distributions
from lmemtest.errors import ArgumentError
from lmemtest.plots import _style
from lmemtest.plots.score_distributions import score_distributions_plot

LONG = tuple(f"a very long name of an optimizer with $\\alpha$ and _under_ number {i}" for i in range(5))
TWENTY = tuple(f"optimizer_{i:02d}" for i in range(20))


def make_result(names=("HB", "PB", "RS"), *, priors=("bad",), tasks=("t0",), n=30, by=("algorithm",)):
    rng = np.random.default_rng(1)
    k, n_tasks, i = len(names), len(tasks), np.arange(len(names))[:, None, None, None]
    scores = rng.normal(size=(k, len(priors), n_tasks, n)) + i % 3 + 10.0 * np.arange(n_tasks)[:, None]
    scores += 8.0 * (i == 0) * (np.arange(n) % 2)
    levels = {"tool": names, "prior": priors, "task": tasks}
    runs = as_runs(table_of_scores(scores, "tool prior task seed", "loss", **levels))
    return score_distributions(runs, by=by)


def test_an_upright_violin_is_the_density_with_quartiles_and_median():
    result = make_result()
    box = score_distributions_plot(result).child_axes[0]
    assert [label.get_text() for label in box.get_xticklabels()] == ["HB", "PB", "RS"]
    for i, row in enumerate(result.to_frame().itertuples()):
        curve = result.densities[result.densities["tool"] == row.tool]
        corners = box.collections[i].get_paths()[0].vertices
        assert (corners[:, 1].min(), corners[:, 1].max()) == approx((row.min, row.max))
        right = corners[:, 0].max() - i
        assert corners[:, 0].min() - i == approx(-right)
        widest = corners[np.argmax(corners[:, 0]), 1]
        assert widest == approx(curve["score"].iloc[int(np.argmax(curve["density"]))])
        assert list(lines(box, "_quartiles")[i].get_ydata()) == approx([row.q1, row.q3])
        assert list(lines(box, "_median")[i].get_ydata()) == approx([row.median] * 2)
    assert len(lines(box, "_star")) == 1  # HB has two clusters
    assert lines(box, "_star")[0].get_xdata()[0] == 0


def test_all_violins_have_the_same_width():
    box = score_distributions_plot(make_result()).child_axes[0]
    widths = [np.ptp(area.get_paths()[0].vertices[:, 0]) for area in box.collections]
    assert widths == approx([widths[0]] * 3)


def test_two_colours_share_a_violin():
    result = make_result(priors=("bad", "good"), by=("algorithm", "prior"))
    ax = score_distributions_plot(result)
    box = ax.child_axes[0]
    assert len(box.collections) == 6
    for i, area in enumerate(box.collections):
        x = area.get_paths()[0].vertices[:, 0] - i // 2
        assert (x.max() < 0) if i % 2 == 0 else (x.min() > 0)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["bad", "good"]


def test_three_colours_stand_side_by_side():
    result = make_result(priors=("a", "b", "c"), by=("algorithm", "prior"))
    box = score_distributions_plot(result).child_axes[0]
    centres = [area.get_paths()[0].get_extents().x0 + 0.5 * area.get_paths()[0].get_extents().width
               for area in box.collections[:3]]  # fmt: skip
    assert centres == approx([-0.2867, 0.0, 0.2867], abs=1e-3)


def test_a_third_column_gives_panels_with_scales_of_their_own():
    result = make_result(priors=("bad", "good"), tasks=("t0", "t1"), by=("algorithm", "prior", "benchmark"))
    ax = score_distributions_plot(result)
    assert [box.get_title(loc="left") for box in ax.child_axes] == ["task: t0", "task: t1"]
    low, high = (box.get_ylim() for box in ax.child_axes)
    assert low[1] < high[1] - 5


def test_few_scores_are_points_and_constant_ones_a_line():
    result = make_result(n=5)
    ax = score_distributions_plot(result)
    box = ax.child_axes[0]
    assert len(box.collections) == 0
    for points, name in zip(lines(box, "_points"), ("HB", "PB", "RS"), strict=True):
        want = result.scores.loc[result.scores["tool"] == name, "score"]
        assert sorted(points.get_ydata()) == approx(sorted(want))
    assert "Points: groups of fewer than 8 scores." in " ".join(text.get_text() for text in ax.texts)
    table = pd.DataFrame({"tool": ["a"] * 9 + ["b"] * 9, "loss": [1.0] * 9 + list(range(9))})
    constant = score_distributions(lt.Runs(table, score="loss", direction="minimize", algorithm="tool"))
    box = score_distributions_plot(constant).child_axes[0]
    assert len(box.collections) == 1
    assert list(lines(box, "_median")[0].get_ydata()) == [1.0, 1.0]
    assert [line.get_color() for line in lines(box, "_median")] == [_style.colour(0), _style.INK]


def test_groups_without_a_test_do_not_look_like_those_with_one_cluster():
    table = make_result().scores.rename(columns={"score": "loss"})
    tied = table["tool"] == "RS"
    table.loc[tied, "loss"] = table.loc[tied, "loss"].round()
    result = score_distributions(lt.Runs(table, score="loss", direction="minimize", algorithm="tool"))
    assert result.groups.set_index("tool")["p_value"].isna().to_dict() == {"HB": False, "PB": False, "RS": True}
    ax = score_distributions_plot(result)
    assert [line.get_xdata()[0] for line in lines(ax.child_axes[0], "_untested")] == [2]
    assert "Question mark: not tested (too few scores, or one value too often)." in foot(ax)
    few = score_distributions_plot(make_result(n=12))
    assert not lines(few.child_axes[0], "_untested")
    assert "No group was tested" in foot(few)
    one = score_distributions_plot(make_result(names=("PB", "RS", "PB2")[:2]))
    assert ("Star" in foot(one)) == bool(lines(one.child_axes[0], "_star"))


@pytest.mark.parametrize("names", [LONG, TWENTY])
def test_names_that_do_not_fit_below_lay_the_violins_down(names):
    result = make_result(names=names)
    box = score_distributions_plot(result).child_axes[0]
    assert len(box.get_yticklabels()) == len(names)
    for i, row in enumerate(result.to_frame().itertuples()):
        assert list(lines(box, "_quartiles")[i].get_xdata()) == approx([row.q1, row.q3])
        assert list(lines(box, "_quartiles")[i].get_ydata()) == [i, i]
    bottom, top = box.get_ylim()
    assert bottom > top


def test_the_axis_says_what_is_good_and_at_which_budget():
    runs = lt.datasets.load_hpo_runs().filter(benchmark="svm-vote", algorithm=["RS", "HB"], prior="good")
    ax = score_distributions_plot(score_distributions(runs, budget=2))
    assert "loss at budget 2 (lower is better)" in [text.get_text() for text in ax.texts]


CASES = {
    "two": {"names": ("HB", "PB")},
    "five": {"names": LONG, "priors": ("bad", "good"), "by": ("algorithm", "prior")},
    "twenty": {"names": TWENTY},
    "twenty in colours": {"names": TWENTY, "priors": ("a", "b", "c"), "by": ("algorithm", "prior")},
    "panels": {
        "priors": ("bad", "good"), "tasks": [f"benchmark with a name {i}" for i in range(7)],
        "by": ("algorithm", "prior", "benchmark"),
    },
    "points": {"n": 4, "priors": ("a", "b", "c"), "by": ("algorithm", "prior")},
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_everything_can_be_read(case, assert_readable):
    result = make_result(**CASES[case])
    assert_readable(score_distributions_plot(result))
    if case in ("two", "five", "twenty"):
        small = Figure(figsize=(4.0, 3.6)).add_axes((0, 0, 1, 1))
        assert_readable(score_distributions_plot(result, ax=small))


def test_colours_follow_the_second_column():
    box = score_distributions_plot(make_result(priors=("bad", "good"), by=("algorithm", "prior"))).child_axes[0]
    assert [line.get_color() for line in lines(box, "_quartiles")[:2]] == [_style.colour(0), _style.colour(1)]


def test_axes_that_are_too_small_and_other_results_are_refused():
    ax = Figure(figsize=(0.8, 0.6)).add_axes((0, 0, 1, 1))
    message = (
        "ax is too small: a plot of 3 groups in 1 panel needs larger axes, it is 0.8 x 0.6 inches. Pass larger "
        "axes, or ax=None for a figure that grows with its content."
    )
    with pytest.raises(ArgumentError, match=f"^{re.escape(message)}$"):
        score_distributions_plot(make_result(), ax=ax)
    with pytest.raises(ArgumentError, match=r"^distributions must be the result of score_distributions\(\), got dict"):
        score_distributions_plot({})
