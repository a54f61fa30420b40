"""The figures of the checks show their numbers."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
from figures import lines, row_labels, words_below
from pytest import approx
from study import as_runs, table_of_scores

import lmemtest as lt
from lmemtest.bench.checks.audit import _answer, _row
from lmemtest.bench.checks.benchmark_information import benchmark_information
from lmemtest.bench.checks.seed_effect import seed_effect
from lmemtest.errors import ArgumentError
from lmemtest.plots import _style, benchmark_information_plot, seed_effect_plot
from lmemtest.plots.checks import audit_plot

NAMES = ("a $\\alpha$ tool with a very long name indeed", "B", "漢字")


@pytest.fixture(scope="module")
def runs():
    rng = np.random.default_rng(1)
    luck, ahead = rng.normal(size=12), np.array([0.0, 1.0, 0.0])[:, None, None]
    scores = rng.normal(size=(3, 3, 12)) + 1.5 * luck * ahead + 1.5 * np.arange(3)[:, None] * ahead
    names = {"algorithm": NAMES, "benchmark": [f"task {i}" for i in range(3)]}
    return as_runs(table_of_scores(scores, "algorithm benchmark seed", "loss", **names))


def test_markers_are_the_means_of_the_seeds(runs):
    result = seed_effect(runs)
    assert result.affected == ("B",)
    ax = seed_effect_plot(result)
    drawn = [np.sort(line.get_xdata()) for line in ax.lines if line.get_label() == "_estimates"]
    means = result.seed_means
    calm, decided = (np.sort(means.loc[means["algorithm"].eq("B") == flag, "mean"]) for flag in (False, True))
    np.testing.assert_allclose(drawn[0], calm)
    np.testing.assert_allclose(drawn[1], decided)
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert texts == ["seeds", "seeds of an algorithm with an effect", "95 % of the seeds by chance alone"]
    assert words_below(ax).endswith("in standard deviations")


def test_range_of_chance_is_that_of_a_mean(runs):
    result = seed_effect(runs)
    spread = result.scores.groupby("algorithm")["centred"].std()["B"] / np.sqrt(3)  # a seed is on three benchmarks
    assert result.seed_means.set_index("algorithm").loc["B", "chance"].iloc[0] == approx(spread)
    assert result.chance_range["B"] == approx(1.959964 * spread, rel=1e-6)
    ends = [line.get_xdata() for line in seed_effect_plot(result).lines if line.get_label() == "_interval"]
    order = list(result.table["algorithm"])
    wide = [end for end in ends if end[0] != end[1]]
    assert list(wide[order.index("B")]) == approx([-1.959964 * spread, 1.959964 * spread], rel=1e-6)


def test_rows_of_benchmarks_are_ordered_by_share(runs):
    result = benchmark_information(runs)
    table = result.table.sort_values("share", ascending=False)
    ax = benchmark_information_plot(result)
    assert row_labels(ax) == table["benchmark"].tolist()
    drawn = np.concatenate([line.get_xdata() for line in ax.lines if line.get_label() == "_estimates"])
    np.testing.assert_allclose(np.sort(drawn), np.sort(100 * table["share"]))
    colours = {line.get_color() for line in ax.lines if line.get_label() == "_estimates"}
    assert colours == {_style.ACCENT, _style.NEUTRAL}
    assert "Welch's F-test, Holm adjustment, level 0.05." in words_below(ax)


def test_a_benchmark_without_a_test_has_a_row_and_no_marker(runs):
    table = runs.to_frame()
    table.loc[table["benchmark"] == "task 0", "loss"] = 1.0
    result = benchmark_information(dataclasses.replace(runs, frame=table))
    assert result.untested == ("task 0",)
    ax = benchmark_information_plot(result)
    assert row_labels(ax)[-1] == "task 0"
    assert sum(len(line.get_xdata()) for line in ax.lines if line.get_label() == "_estimates") == 2


@pytest.fixture(scope="module")
def many():
    """A result with 120 benchmarks, without 120 analyses."""
    rng = np.random.default_rng(2)
    table = pd.DataFrame({"algorithm": list("ABAB") * 120, "benchmark": np.repeat(np.arange(120), 4)})
    table["benchmark"] = [f"LC-{i:03d}" for i in table["benchmark"]]
    table["loss"] = rng.normal(size=480)
    roles = {"algorithm": "algorithm", "benchmark": "benchmark"}
    return benchmark_information(lt.Runs(table, score="loss", direction="minimize", seed=None, **roles))


def test_of_many_benchmarks_those_that_say_most_and_least_are_drawn(many, assert_readable):
    ax = benchmark_information_plot(many)
    order = many.table.sort_values("share", ascending=False, kind="stable")
    shown = row_labels(ax)
    assert shown == [*order["benchmark"][:30], "… 60 more …", *order["benchmark"][-30:]]
    dots = [line.get_data() for line in ax.lines if line.get_label() == "_estimates"]
    drawn = {y: x for data in dots for x, y in zip(*data, strict=True)}
    want = np.concatenate([order["share"][:30], order["share"][-30:]])
    np.testing.assert_allclose([drawn[row] for row in [*range(30), *range(31, 61)]], 100 * want)
    words = words_below(ax)
    assert words.endswith("60 of 120 benchmarks, those in the middle, are left out.")
    assert ax.figure.get_size_inches()[1] <= 9.5
    assert min(label.get_fontsize() for label in ax.get_yticklabels()) >= 6
    assert_readable(ax)


def test_all_of_many_benchmarks_have_thin_rows_that_can_be_read(many, assert_readable):
    ax = benchmark_information_plot(many, max_rows=120)
    assert len(ax.get_yticklabels()) == 120
    assert "left out" not in words_below(ax)
    assert min(label.get_fontsize() for label in ax.get_yticklabels()) >= 6
    assert ax.figure.get_size_inches()[1] < 16  # 26 with the rows of a short figure
    assert_readable(ax)
    with pytest.raises(ArgumentError, match=r"^max_rows must be a whole number of at least 2, got 1\.$"):
        benchmark_information_plot(many, max_rows=1)


def test_plots_fill_the_axes_of_the_user(runs):
    import matplotlib.figure

    figure = matplotlib.figure.Figure(figsize=(7, 5))
    above, below = figure.subplots(2)
    assert seed_effect_plot(seed_effect(runs), ax=above) is above
    assert benchmark_information_plot(benchmark_information(runs), ax=below) is below


def test_only_results_are_drawn(runs):
    with pytest.raises(ArgumentError, match=r"^result must be the result of seed_effect\(\), got Runs\.$"):
        seed_effect_plot(runs)
    with pytest.raises(ArgumentError, match=r"^result must be the result of benchmark_information\(\), got Runs\.$"):
        benchmark_information_plot(runs)


def make_audit():
    common = {"n_draws": 200, "failed": 0, "unconverged": 0}
    rates = [
        _row(unit, model, {**common, "rejected": rejected}, "y ~ a", 0.05)
        for unit, model, rejected in [
            ("benchmark", "naive", 160),
            ("benchmark", "recommended", 11),
            ("run", "naive", 20),
            ("run", "recommended", 9),
        ]
    ]
    return _answer(rates, 0.05, {"benchmark": "x", "run": "y"}, ())


def test_markers_are_the_rates_in_percent():
    audit = make_audit()
    ax = audit_plot(audit)
    estimates = lines(ax, "_estimates")
    assert [list(line.get_xdata()) for line in estimates] == [[80.0, 10.0], [5.5, 4.5]]
    intervals = [line.get_xdata() for line in ax.lines if line.get_label() == "_interval"]
    assert len(intervals) == 4
    assert list(intervals[0]) == approx((100 * audit.rates.loc[0, ["ci_low", "ci_high"]].astype(float)).tolist())
    reference = lines(ax, "_reference")
    assert reference[0].get_xdata()[0] == approx(5.0)
    assert row_labels(ax) == ["exchange by benchmark", "exchange by run"]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["naive model", "recommended model"]


def test_the_axis_says_what_the_line_is():
    assert "nominal 5 %" in words_below(audit_plot(make_audit()))


def test_only_audits_are_drawn():
    with pytest.raises(ArgumentError, match=r"audit must be the result of audit\(\), got dict."):
        audit_plot({})
