"""The figures of the sanity checks show their numbers."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from pytest import approx

import lmemtest as lt
from lmemtest.errors import ArgumentError
from lmemtest.plots import _style
from lmemtest.plots.sanity import information_plot, seed_plot
from lmemtest.recipes.information import benchmark_information
from lmemtest.recipes.seeds import seed_dependency

NAMES = ("a $\\alpha$ tool with a very long name indeed", "B", "漢字")


@pytest.fixture(scope="module")
def runs():
    rng = np.random.default_rng(1)
    luck = rng.normal(size=12)
    rows = [
        (name, task, s, rng.normal() + 1.5 * luck[s] * (name == "B") + task * (name == "B") * 1.5)
        for name in NAMES
        for task in range(3)
        for s in range(12)
    ]
    table = pd.DataFrame(rows, columns=["algorithm", "benchmark", "seed", "loss"])
    table["benchmark"] = "task " + table["benchmark"].astype(str)
    roles = {"algorithm": "algorithm", "benchmark": "benchmark", "seed": "seed"}
    return lt.Runs(table, score="loss", direction="minimize", **roles)


def test_markers_are_the_means_of_the_seeds(runs):
    result = seed_dependency(runs)
    assert result.affected == ("B",)
    ax = seed_plot(result)
    drawn = [np.sort(line.get_xdata()) for line in ax.lines if line.get_label() == "_estimates"]
    means = result.seed_means()
    calm, decided = (np.sort(means.loc[means["algorithm"].eq("B") == flag, "mean"]) for flag in (False, True))
    np.testing.assert_allclose(drawn[0], calm)
    np.testing.assert_allclose(drawn[1], decided)
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == ["seeds", "seeds that decide", "95 % of the seeds, if only chance decides"]
    assert ax.get_xlabel().replace("\n", " ").endswith("in standard deviations")


def test_range_of_chance_is_that_of_a_mean(runs):
    result = seed_dependency(runs)
    spread = result.scores.groupby("algorithm")["centred"].std()["B"] / np.sqrt(3)  # a seed is on three benchmarks
    assert result.seed_means().set_index("algorithm").loc["B", "chance"].iloc[0] == approx(spread)
    ends = [line.get_xdata() for line in seed_plot(result).lines if line.get_label() == "_interval"]
    order = list(result.table["algorithm"])
    wide = [end for end in ends if end[0] != end[1]]
    assert list(wide[order.index("B")]) == approx([-1.959964 * spread, 1.959964 * spread], rel=1e-6)


def test_rows_of_benchmarks_are_ordered_by_share(runs):
    result = benchmark_information(runs)
    table = result.table.sort_values("share", ascending=False)
    ax = information_plot(result)
    assert [label.get_text() for label in ax.get_yticklabels()] == table["benchmark"].tolist()
    drawn = np.concatenate([line.get_xdata() for line in ax.lines if line.get_label() == "_estimates"])
    np.testing.assert_allclose(np.sort(drawn), np.sort(100 * table["share"]))
    colours = {line.get_color() for line in ax.lines if line.get_label() == "_estimates"}
    assert colours == {_style.ACCENT, _style.NEUTRAL}
    assert "Welch's F-test, Holm adjustment, level 0.05." in ax.get_xlabel().replace("\n", " ")


def test_plots_fill_the_axes_of_the_user(runs):
    import matplotlib.figure

    figure = matplotlib.figure.Figure(figsize=(7, 5))
    above, below = figure.subplots(2)
    assert seed_plot(seed_dependency(runs), ax=above) is above
    assert information_plot(benchmark_information(runs), ax=below) is below


def test_only_results_are_drawn(runs):
    with pytest.raises(ArgumentError, match=r"^result must be that of seed_dependency\(\), got Runs\.$"):
        seed_plot(runs)
    with pytest.raises(ArgumentError, match=r"^result must be that of benchmark_information\(\), got Runs\.$"):
        information_plot(runs)
