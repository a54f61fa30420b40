"""Figures of outperforming show the numbers of their results."""

from __future__ import annotations

import pytest

import lmemtest as lt
from lmemtest.studies.outperforming.decision_rules import decision_rules
from lmemtest.studies.outperforming.sample_size import sample_size


def lines(ax, label):
    return [line for panel in ax.child_axes for line in panel.get_lines() if line.get_label() == label]


def test_sample_sizes_are_drawn_over_gamma():
    planned = sample_size([0.85, 0.9])
    drawn = lines(planned.plot(), "_pairs")[0]
    assert drawn.get_xdata().tolist() == [0.85, 0.9]
    assert drawn.get_ydata().tolist() == planned.table["pairs"].tolist()


def test_every_rule_has_a_line_for_both_estimators():
    rules = decision_rules(n_draws=50, probabilities=[0.9], rng=1)
    ax = rules.plot()
    for (estimator, rule), part in rules.table.groupby(["estimator", "rule"]):
        assert lines(ax, f"_{rule}_{estimator}")[0].get_ydata() == pytest.approx(100 * part["rate"])


def test_one_pair_is_drawn_with_its_benchmarks_and_many_pairs_without():
    runs = lt.datasets.load_hpo_runs().filter(budget=8, prior="good")
    one = lt.probability_of_outperforming(runs, algorithms=("HB", "RS")).plot()
    assert len(one.get_yticklabels()) == 21
    at = {line.get_label(): line.get_xdata()[0] for line in one.get_lines() if line.get_label().startswith("_")}
    assert (at["_reference"], at["_threshold"]) == (0.5, 0.75)
    three = lt.probability_of_outperforming(runs, algorithms=("HB", "RS", "TPE")).plot()
    assert [label.get_text() for label in three.get_yticklabels()] == ["HB over RS", "HB over TPE", "TPE over RS"]
