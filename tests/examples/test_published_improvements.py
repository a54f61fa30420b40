"""Published improvements: the threshold is that of a z-test, and each result meets the best before it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from paper_figures.published_improvements import improvement_threshold, published_improvements, published_plot
from refusals import refuses
from scipy import stats

from lmemtest.errors import ArgumentError, DataError

RESULTS = {"year": [2017, 2015, 2016, 2016, 2018, 2019], "accuracy": [0.945, 0.90, 0.93, 0.94, 0.94, 0.99]}


def found(table=RESULTS, **options):
    return published_improvements(table, score="accuracy", time="year", **({"sd": 0.01} | options))


def test_the_threshold_is_that_of_the_z_test_of_two_means():
    assert_allclose(improvement_threshold((0.03, 0.04), k=4), 1.6448536269514722 * 0.05 / 2)
    shared, scores = 0.6, np.array([[1.0, 0.6], [0.6, 1.0]])
    variance = np.array([1, -1]) @ scores @ np.array([1, -1])
    assert_allclose(improvement_threshold(1.0, correlation=shared, alpha=0.025), 1.959963984540054 * variance**0.5)


def test_each_result_meets_the_best_of_an_earlier_time():
    result = found()
    assert result["time"].tolist() == [2015, 2016, 2016, 2017, 2018, 2019]
    assert_allclose(result["best_before"], [np.nan, 0.90, 0.90, 0.94, 0.945, 0.945])
    assert result["conclusion"].tolist() == [
        "first",
        "significant",
        "significant",
        "not significant",
        "no improvement",
        "significant",
    ]
    better = result["improvement"].to_numpy()[1:]
    assert_allclose(result["p_raw"][1:], stats.norm.sf(better / (2**0.5 * 0.01)))


def test_errors_are_accuracies_upside_down():
    error = {"year": RESULTS["year"], "accuracy": [1 - value for value in RESULTS["accuracy"]]}
    down, up = found(error, direction="minimize"), found()
    assert (down["conclusion"] == up["conclusion"]).all()
    assert_allclose(down[["improvement", "p_raw"]], up[["improvement", "p_raw"]])
    assert_allclose(down["best_before"], 1 - up["best_before"])


def test_an_improvement_of_just_the_threshold_is_significant():
    at = improvement_threshold(0.01, k=3)
    for gain, conclusion in ((at, "significant"), (at * (1 - 1e-6), "not significant")):
        result = found({"year": [1, 2], "accuracy": [0.5, 0.5 + gain]}, k=3)
        assert result["conclusion"].iloc[1] == conclusion


def test_of_many_methods_that_are_alike_fewer_than_alpha_pass_the_luckiest():
    scores = np.random.default_rng(1).normal(size=2000)
    conclusions = found({"year": range(2000), "accuracy": scores}, sd=1.0)["conclusion"]
    assert (conclusions[20:] == "significant").mean() < 0.01


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"sd": 0.0}, r"sd must be a standard deviation above 0, or two of them, got 0\.0\."),
        ({"correlation": 1.0}, r"correlation must be at least -1 and below 1, got 1\.0\."),
    ],
)
def test_arguments_outside_of_their_domain(options, words):
    with pytest.raises(ArgumentError, match=words):
        published_improvements(RESULTS, **({"score": "accuracy", "time": "year", "sd": 0.01} | options))


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"year": [1, 1], "accuracy": [0.1, 0.2]}, "results of two times at least in 'year'"),
        ({"year": [1, 2], "accuracy": [0.1, None]}, "scores and times must be finite numbers"),
    ],
)
def test_tables_that_cannot_be_compared(table, words):
    refuses(DataError, words, found, table)


def test_a_threshold_is_one_of_improvements_and_times_are_numbers():
    refuses(ArgumentError, r"alpha must be below 0.5", improvement_threshold, 0.01, alpha=0.6)


@pytest.mark.level(2)
@pytest.mark.parametrize("direction", ["maximize", "minimize"])
def test_marks_are_scores_and_bands_reach_as_far_as_noise(direction):
    table, threshold = found(direction=direction), improvement_threshold(0.01)
    (ax,) = published_plot(table, threshold=threshold, sd=0.01, direction=direction).axes
    marks = {line.get_label(): line.get_xydata() for line in ax.lines}
    for conclusion, rows in table.groupby("conclusion"):
        assert_allclose(marks[conclusion], rows[["time", "score"]])
    reach = [np.ptp(band.get_paths()[0].vertices[:, 1]) for band in ax.collections]
    best = table["score"].agg(["min", "max"]) if direction == "maximize" else [0.9, 0.9]
    assert_allclose(reach, np.ptp(best) + np.array([threshold, 0.01]))
