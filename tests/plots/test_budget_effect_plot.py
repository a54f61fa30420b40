"""The figure of scores over the budget shows the means of the result."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from figures import lines
from matplotlib.figure import Figure
from pytest import approx

from lmemtest.bench.budget.budget_model import BudgetTest
from lmemtest.core.result import Answer
from lmemtest.errors import ArgumentError
from lmemtest.plots import _style
from lmemtest.plots.budget import budget_effect_plot


def make_result(names=("RS", "HB", "PB"), budgets=(1, 2, 4, 8), lack=0.5, **options) -> Answer:
    """A result without a fit."""
    rng = np.random.default_rng(1)
    rows = []
    for name, (i, budget) in itertools.product(names, enumerate(budgets)):
        mean = rng.uniform(0.2, 0.4) + np.exp(-i)
        rows.append((name, budget, mean, mean - 0.05, mean + 0.07))
    curves = pd.DataFrame(rows, columns=["algorithm", "budget", "mean", "ci_low", "ci_high"])
    observed = curves[["algorithm", "budget", "mean"]].assign(n=10)
    observed["mean"] += 0.01
    test = BudgetTest(
        question="effect", f_ratio=1.0, df_num=1.0, df_den=9.0, mean_p=0.1, better=3, worse=0, agreement=1.0,
        direction_p=0.25, n=3, uses_direction=False, p_raw=0.1, p_value=0.1, deciding=3,
    )  # fmt: skip
    lack = replace(test, question="lack of fit", p_raw=lack, p_value=lack)
    slopes = pd.DataFrame({"algorithm": list(names), "estimate": 0.0})
    given = {
        "decision": "none", "effect": test, "interaction": None, "lack_of_fit": lack, "fits": lack.p_value >= 0.05,
        "per": "", "difference": 0.1, "form": "linear", "drawn": "linear", "alpha": 0.05, "score": "loss",
        "direction": "minimize", "budget": "epochs", "range": ("1", "8"), "sample": "runs", "n_sample": 3,
        "n_obs": 10, "roster": (),
    }  # fmt: skip
    tables = {"tests": pd.DataFrame(), "slopes": slopes, "curves": curves, "observed": observed}
    tables |= {name: options.pop(name) for name in ("curves", "observed") if name in options}
    return Answer(question="budget_effect", title="Does epochs matter?", tables=tables, values={**given, **options})


def words(ax):
    """What is written around the panels: the foot, and the names of the axes."""
    return [text.get_text().replace("\u00a0", " ") for text in ax.texts]


def test_losses_far_apart_have_a_logarithmic_axis_which_says_so():
    far = make_result(names=tuple("ABCDEF"), budgets=(1, 2))
    assert far.curves["mean"].max() < 5.0 * far.curves["mean"].min()
    assert budget_effect_plot(far).child_axes[0].get_yscale() == "linear"
    ax = budget_effect_plot(far, y_scale="log")
    assert ax.child_axes[0].get_yscale() == "log"
    assert "Mean loss (lower is better, log scale)" in words(ax)
    curves = far.curves.assign(**{name: far.curves[name] ** 3 for name in ("mean", "ci_low", "ci_high")})
    wide = make_result(names=tuple("ABCDEF"), curves=curves)
    assert budget_effect_plot(wide).child_axes[0].get_yscale() == "log"
    assert budget_effect_plot(wide, y_scale="linear").child_axes[0].get_yscale() == "linear"
    with pytest.raises(ArgumentError, match=r"^y_scale must be 'auto' or 'linear' or 'log', got 'root'\.$"):
        budget_effect_plot(wide, y_scale="root")


def test_lines_points_and_areas_are_the_numbers():
    result = make_result()
    ax = budget_effect_plot(result)
    for i, name in enumerate(["RS", "HB", "PB"]):
        rows = result.curves[result.curves["algorithm"] == name]
        line, points = lines(ax, "_mean")[i], lines(ax, "_observed")[i]
        assert list(line.get_xdata()) == [1, 2, 4, 8]
        assert list(line.get_ydata()) == approx(rows["mean"].to_numpy())
        assert list(points.get_ydata()) == approx(rows["mean"].to_numpy() + 0.01)
        box = ax.child_axes[0].collections[i].get_paths()[0].get_extents()
        assert (box.y0, box.y1) == approx((rows["ci_low"].min(), rows["ci_high"].max()))
        assert line.get_color() == points.get_color()
    assert ax.child_axes[0].get_xscale() == "linear"
    foot, budget, score = words(ax)
    assert (budget, score) == ("epochs", "Mean loss (lower is better)")
    assert foot == "Decision: none; lines: fitted; points: observed means; shaded: pointwise 95 % intervals."


def test_curves_are_named_at_their_ends_in_their_colour():
    ax = budget_effect_plot(make_result())
    named = {text.get_text(): text for text in ax.child_axes[0].texts}
    assert set(named) == {"RS", "HB", "PB"}
    ends = dict(zip(["RS", "HB", "PB"], lines(ax, "_mean"), strict=True))
    for name, line in ends.items():
        assert named[name].get_color() == _style.as_text(line.get_color())
    bottom, top = ax.child_axes[0].get_ylim()
    starts = sorted(bottom + (top - bottom) * lead.get_ydata()[0] for lead in lines(ax, "_lead"))
    assert starts == approx(sorted(line.get_ydata()[-1] for line in ends.values()))
    heights = sorted((line.get_ydata()[-1], named[name].get_position()[1]) for name, line in ends.items())
    assert [b for _, b in heights] == sorted(b for _, b in heights)


def test_many_budgets_are_on_a_logarithmic_axis_and_many_algorithms_without_areas():
    result = make_result(names=[f"a{i}" for i in range(6)], budgets=(1, 3, 9, 27, 81), form="log")
    ax = budget_effect_plot(result).child_axes[0]
    assert ax.get_xscale() == "log"
    assert len(ax.collections) == 0
    assert [label.get_text() for label in ax.get_xticklabels()] == ["1", "3", "9", "27", "81"]
    many = budget_effect_plot(make_result(budgets=(*range(1, 13), 81), form="log")).child_axes[0]
    assert [label.get_text() for label in many.get_xticklabels()] == ["1", "2", "5", "10", "20", "50"]


def test_few_budgets_are_the_ticks_and_many_whole_ones_have_whole_ticks():
    for budgets in ((1, 2, 3), (1, 1.7, 3)):
        assert list(budget_effect_plot(make_result(budgets=budgets)).child_axes[0].get_xticks()) == list(budgets)
    ticks = budget_effect_plot(make_result(budgets=tuple(range(1, 15)))).child_axes[0].get_xticks()
    assert 2 < len(ticks) < 14
    assert (ticks == ticks.round()).all()


def test_budgets_that_are_words_have_their_names_as_ticks():
    ax = budget_effect_plot(make_result(budgets=("low", "middle", "high")))
    assert [label.get_text() for label in ax.child_axes[0].get_xticklabels()] == ["low", "middle", "high"]
    assert list(lines(ax, "_mean")[0].get_xdata()) == [0, 1, 2]


def test_names_and_words_fit_whatever_the_number_of_algorithms(two_five_twenty, assert_fits):
    for names in two_five_twenty.values():
        result = make_result(names=names, budgets=(1, 10, 100))
        assert_fits(lambda ax, result=result: budget_effect_plot(result, ax=ax))


def test_missing_means_leave_gaps():
    result = make_result()
    curves = result.curves.copy()
    curves.loc[3, ["mean", "ci_low", "ci_high"]] = np.nan
    ax = budget_effect_plot(make_result(curves=curves, observed=result.observed.iloc[:0]))
    assert np.isnan(lines(ax, "_mean")[0].get_ydata()[-1])
    assert {text.get_text() for text in ax.child_axes[0].texts} == {"RS", "HB", "PB"}


def test_what_is_no_result_and_axes_that_are_too_small_are_refused():
    with pytest.raises(ArgumentError, match=r"result must be the result of budget_effect\(\), got int\."):
        budget_effect_plot(3)
    ax = Figure(figsize=(3.0, 0.5)).add_axes((0.0, 0.0, 1.0, 1.0))
    with pytest.raises(ArgumentError, match="ax is too small: a plot of 3 curves needs larger axes"):
        budget_effect_plot(make_result(), ax=ax)


@pytest.mark.parametrize(
    ("form", "budgets", "scale"),
    [
        ("linear", (1, 3, 9, 27, 81), "linear"),
        ("log", (1, 2, 3), "log"),
        ("categorical", (1, 3, 9), "log"),
        ("categorical", (1, 2, 4), "linear"),
        ("spline", (0, 3, 9, 27, 81), "linear"),
    ],
)
def test_a_line_is_drawn_on_the_axis_on_which_it_is_straight(form, budgets, scale):
    assert budget_effect_plot(make_result(budgets=budgets, form=form, drawn=form)).child_axes[0].get_xscale() == scale


def test_means_are_drawn_at_every_budget():
    result = make_result(budgets=tuple(range(1, 41)))
    for points in lines(budget_effect_plot(result), "_observed"):
        assert list(points.get_xdata()) == list(range(1, 41))


def test_a_form_that_the_means_contradict_is_marked():
    def foot(**options):
        return " ".join(words(budget_effect_plot(make_result(**options)))[:-2])

    assert "does not fit" not in foot()
    assert foot(lack=1e-5).endswith("; a straight line does not fit, p < 0.001.")
    joined = foot(lack=0.01, form="log", drawn="categorical")
    drawn = "points: observed means; shaded: pointwise 95 % intervals"
    assert joined == f"Decision: none; {drawn}; a straight line does not fit, p = 0.010."
    assert foot(lack=0.01, form="spline", drawn="spline").endswith("; the curve does not fit, p = 0.010.")
