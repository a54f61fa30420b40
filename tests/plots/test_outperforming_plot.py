"""Figures of outperforming show the numbers of their results."""

from __future__ import annotations

import pytest

import lmemtest as lt
from lmemtest.bench.outperforming.decision_rules import decision_rules
from lmemtest.bench.outperforming.sample_size import sample_size


def lines(ax, label):
    return [line for panel in ax.child_axes for line in panel.get_lines() if line.get_label() == label]


def test_sample_sizes_are_drawn_over_gamma():
    planned = sample_size([0.85, 0.9])
    drawn = lines(planned.plot(), "_pairs")[0]
    assert drawn.get_xdata().tolist() == [0.85, 0.9]
    assert drawn.get_ydata().tolist() == planned.table["pairs"].tolist()


def test_sizes_beyond_five_hundred_and_the_recommendation_of_the_paper_can_be_seen(assert_fits):
    planned = sample_size([0.55, 0.65, 0.75, 0.9])
    ax = planned.plot()
    (star,) = lines(ax, "_recommended")
    assert (star.get_xdata()[0], star.get_ydata()[0]) == (0.75, 29.0)
    assert "the paper's recommendation: 29 runs" in [text.get_text() for text in ax.get_legend().get_texts()]
    assert ax.child_axes[0].get_yscale() == "log"
    assert lines(ax, "_noether")[0].get_ydata()[0] == 722.0
    assert not lines(sample_size([0.85, 0.9]).plot(), "_recommended")
    assert_fits(lambda ax: planned.plot(ax=ax), (3.5, 3.0))


def test_a_panel_per_rule_has_both_estimators_before_the_oracle_and_three_regions(assert_fits):
    rules = decision_rules(n_draws=50, probabilities=[0.4, 0.9], rng=1)
    ax = rules.plot()
    shown = {"Single comparison": "single", "Average": "average", "T-test": "t_test", "P(A > B)": "outperforming"}
    assert [panel.get_title(loc="left") for panel in ax.child_axes] == list(shown)
    for panel, rule in zip(ax.child_axes, shown.values(), strict=True):
        drawn = {line.get_label(): line.get_ydata() for line in panel.get_lines()}
        for named, estimator in ((rule, "ideal"), (rule, "biased"), ("oracle", "ideal")):
            part = rules.table.query("rule == @named and estimator == @estimator")
            assert drawn[f"_{named}_{estimator}"] == pytest.approx(100 * part["rate"])
        (grey,) = (patch for patch in panel.patches if patch.get_label() == "_not_meaningful")
        assert (grey.get_x(), grey.get_x() + grey.get_width()) == pytest.approx((0.5, rules.gamma))
        assert [text.get_text() for text in panel.texts] == ["H0", "not meaningful", "H1"]
    assert_fits(lambda ax: rules.plot(ax=ax), (4.5, 4.0))


def test_one_pair_is_drawn_with_its_benchmarks_and_many_pairs_without():
    runs = lt.datasets.load_hpo_runs().filter(budget=8, prior="good")
    one = lt.probability_of_outperforming(runs, algorithms=("HB", "RS")).plot()
    assert len(one.get_yticklabels()) == 21
    at = {line.get_label(): line.get_xdata()[0] for line in one.get_lines() if line.get_label().startswith("_")}
    assert (at["_reference"], at["_threshold"]) == (0.5, 0.75)
    three = lt.probability_of_outperforming(runs, algorithms=("HB", "RS", "TPE")).plot()
    assert [label.get_text() for label in three.get_yticklabels()] == ["HB over RS", "HB over TPE", "TPE over RS"]


def test_of_many_pairs_those_farthest_from_one_half_are_drawn():
    runs = lt.datasets.load_hpo_runs().filter(budget=8, prior="good")
    found = lt.probability_of_outperforming(runs, algorithms=("HB", "RS", "TPE"))
    ax = found.plot(max_rows=2)
    clearest = found.table.sort_values("estimate").iloc[1:].sort_index()
    assert [text.get_text() for text in ax.get_yticklabels()] == (
        clearest["left"] + " over " + clearest["right"]
    ).tolist()
    assert "1 of 3 pairs, those nearest to one half, are left out." in ax.get_xlabel()


def test_of_many_benchmarks_those_farthest_from_one_half_are_drawn_and_the_others_counted(assert_readable):
    runs = lt.datasets.load_hpo_runs().filter(budget=8, prior="good")
    found = lt.probability_of_outperforming(runs, algorithms=("HB", "RS"))
    ax = found.plot(max_rows=6)
    far = (found.benchmarks["estimate"] - 0.5).abs().sort_values(ascending=False, kind="stable").index[:6].sort_values()
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names == ["All 20 benchmarks", *found.benchmarks.loc[far, "benchmark"]]
    dots = [line for line in ax.get_lines() if line.get_label() == "_estimates"]
    assert dots[1].get_xdata().tolist() == found.benchmarks.loc[far, "estimate"].tolist()
    words = " ".join(ax.get_xlabel().split())
    assert words.endswith("14 of 20 benchmarks, those nearest to one half, are left out.")
    assert_readable(ax)
