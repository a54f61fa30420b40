"""The shape of advantages over benchmarks: few that decide, and skew."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from lmemtest.lmm.diagnostics.advantages import advantage_shape


def test_skewness_is_scipys_adjusted_for_the_algorithms():
    scores = np.random.default_rng(3).exponential(size=(25, 4))
    found = advantage_shape(scores, list("ABCD"))
    want = stats.skewtest(scores)
    at = int(np.argmax(np.abs(want.statistic)))
    assert found.skewed == "ABCD"[at]
    assert found.skewness == pytest.approx(stats.skew(scores)[at], rel=1e-12)
    assert found.skewness_p == pytest.approx(min(1.0, 4 * want.pvalue[at]), rel=1e-9)


def test_one_column_has_cochrans_statistic():
    x = np.random.default_rng(4).normal(size=(12, 1))
    squares = np.square(x - x.mean()).ravel()
    c = squares.max() / squares.sum()
    want = 12 * stats.f.sf(11 * c / (1 - c), 1, 11)  # Cochran's C by its F distribution
    assert advantage_shape(np.hstack([x, -x]), "AB").concentration_p == pytest.approx(min(1.0, want), rel=1e-9)


def test_two_algorithms_mirror_each_other_and_are_tested_once():
    x = np.random.default_rng(5).exponential(size=(20, 1))
    found = advantage_shape(np.hstack([x, -x]), "AB")
    assert found.skewed == "A"
    assert found.skewness_p == pytest.approx(stats.skewtest(x.ravel()).pvalue, rel=1e-9)


def test_an_erratic_algorithm_alone_is_no_outlying_benchmark_and_normal_ones_are_rarely_skewed():
    rng, n = np.random.default_rng(6), 1000
    for sds in (np.ones(5), np.array([5.0, 1, 1, 1, 1])):
        for b in (6, 20):
            found = [advantage_shape(rng.normal(size=(b, 5)) * sds, "ABCDE") for _ in range(n)]
            assert np.mean([shape.few_decide for shape in found]) <= 0.01 + 3 * np.sqrt(0.01 * 0.99 / n)
            assert np.mean([shape.is_skewed for shape in found]) <= 0.01 + 3 * np.sqrt(0.01 * 0.99 / n)


def test_too_few_or_equal_benchmarks_have_no_shape():
    assert advantage_shape(np.zeros((5, 3)), "ABC") is None
    assert advantage_shape(np.ones((2, 3)) * [1.0, 2.0, 3.0], "ABC") is None
    few = advantage_shape(np.random.default_rng(7).normal(size=(7, 3)), "ABC")
    assert few.skewed is None
    assert not few.is_skewed
