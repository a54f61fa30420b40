"""Figures of outperforming show the numbers of their results."""

from __future__ import annotations

import lmemtest as lt


def test_one_pair_is_drawn_with_its_benchmarks_and_many_pairs_without():
    runs = lt.datasets.load_hpo_runs().filter(budget=8, prior="good")
    one = lt.outperforming(runs, algorithms=("HB", "RS")).plot()
    assert len(one.get_yticklabels()) == 21
    at = {line.get_label(): line.get_xdata()[0] for line in one.get_lines() if line.get_label().startswith("_")}
    assert (at["_reference"], at["_threshold"]) == (0.5, 0.75)
    three = lt.outperforming(runs, algorithms=("HB", "RS", "TPE")).plot()
    assert [label.get_text() for label in three.get_yticklabels()] == ["HB over RS", "HB over TPE", "TPE over RS"]


def test_of_many_pairs_those_farthest_from_one_half_are_drawn():
    runs = lt.datasets.load_hpo_runs().filter(budget=8, prior="good")
    found = lt.outperforming(runs, algorithms=("HB", "RS", "TPE"))
    ax = found.plot(max_rows=2)
    clearest = found.table.sort_values("estimate").iloc[1:].sort_index()
    assert [text.get_text() for text in ax.get_yticklabels()] == (
        clearest["left"] + " over " + clearest["right"]
    ).tolist()
    assert "1 of 3 pairs, those nearest to one half, are left out." in ax.get_xlabel()


def test_of_many_benchmarks_those_farthest_from_one_half_are_drawn_and_the_others_counted(assert_readable):
    runs = lt.datasets.load_hpo_runs().filter(budget=8, prior="good")
    found = lt.outperforming(runs, algorithms=("HB", "RS"))
    ax = found.plot(max_rows=6)
    far = (found.benchmarks["estimate"] - 0.5).abs().sort_values(ascending=False, kind="stable").index[:6].sort_values()
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert names == ["All 20 benchmarks", *found.benchmarks.loc[far, "benchmark"]]
    dots = [line for line in ax.get_lines() if line.get_label() == "_estimates"]
    assert dots[1].get_xdata().tolist() == found.benchmarks.loc[far, "estimate"].tolist()
    words = " ".join(ax.get_xlabel().split())
    assert words.endswith("14 of 20 benchmarks, those nearest to one half, are left out.")
    assert_readable(ax)
