"""Mean and direction of vectors: t- and sign tests, repeated-measures F-tests, all signs by hand."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from pytest import approx
from scipy import stats

from lmemtest.lmm.hypotheses.mean_vectors import direction_test, fewest_directions, mean_about_groups, mean_test


def one_group(n: int) -> np.ndarray:
    return np.zeros(n, dtype=np.intp)


def test_one_column_is_the_t_test_and_the_sign_test():
    x = np.random.default_rng(1).normal(0.5, 1.0, size=11)
    t = stats.ttest_1samp(x, 0.0)
    found = mean_test(x[:, None], one_group(11))
    assert found.f_ratio == approx(t.statistic**2)
    assert (found.df_num, found.df_den) == (1, 10)
    assert found.p_value == approx(t.pvalue)
    agreement, p, _ = direction_test(x[:, None])
    assert p == approx(stats.binomtest(int((x > 0).sum()), 11).pvalue)
    assert agreement == approx(abs(np.sign(x).mean()))


def test_two_groups_are_averaged_with_their_pooled_variation():
    rng = np.random.default_rng(2)
    x, y = rng.normal(1, 1, size=6), rng.normal(-1, 1, size=9)
    found = mean_test(np.concatenate([x, y])[:, None], np.repeat([0, 1], [6, 9]))
    # (mean(x) + mean(y)) / 2 is half the difference of x and -y
    t = stats.ttest_ind(x, -y)
    assert found.f_ratio == approx(t.statistic**2)
    assert found.df_den == 13
    assert found.p_value == approx(t.pvalue)


def test_the_f_ratio_of_many_columns_is_that_of_repeated_measures():
    """Differences of four conditions on 9 subjects: the F-ratio of the two-way analysis without repetition."""
    y = np.random.default_rng(3).normal(size=(9, 1)) + np.random.default_rng(4).normal(size=(9, 4))
    rows, columns = y.mean(axis=1, keepdims=True), y.mean(axis=0)
    error = np.square(y - rows - columns + y.mean()).sum() / (8 * 3)
    f = 9 * np.square(columns - y.mean()).sum() / 3 / error
    found = mean_test(y - rows, one_group(9))
    assert found.f_ratio == approx(f)
    assert found.df_num <= 3
    assert found.df_den == approx(8 * found.df_num)
    S = np.cov(y - rows, rowvar=False)
    assert found.df_num == approx(np.trace(S) ** 2 / np.trace(S @ S))  # 3 times Greenhouse and Geisser's epsilon


def test_degrees_of_freedom_are_boxs_where_the_covariance_is_known():
    """With many vectors of covariance S, tr(S)^2 / tr(S^2)."""
    root = np.diag([4.0, 2.0, 1.0, 1.0])
    S = root @ root
    found = mean_test(np.random.default_rng(5).normal(size=(200_000, 4)) @ root, one_group(200_000))
    assert found.df_num == approx(np.trace(S) ** 2 / np.trace(S @ S), rel=0.02)
    equal = mean_test(np.random.default_rng(6).normal(size=(200_000, 4)), one_group(200_000))
    assert equal.df_num == approx(4.0, rel=0.01)


@pytest.mark.parametrize(("n", "m"), [(2, 3), (5, 2), (8, 4)])
def test_p_is_the_share_of_all_signs(n, m):
    x = np.random.default_rng(n).normal(0.4, 1.0, size=(n, m)) * 10.0 ** np.arange(n)[:, None]
    units = x / np.linalg.norm(x, axis=1, keepdims=True)
    sums = [np.linalg.norm(np.array(signs) @ units) for signs in itertools.product([-1, 1], repeat=n)]
    agreement, p, _ = direction_test(x)
    assert p == approx(np.mean(np.array(sums) >= sums[-1] * (1 - 1e-12)))
    assert agreement == approx(sums[-1] / n)


def test_the_direction_is_free_of_scale_sign_and_rotation():
    rng = np.random.default_rng(7)
    x = rng.normal(0.3, 1.0, size=(9, 3))
    q = np.linalg.qr(rng.normal(size=(3, 3)))[0]
    first = direction_test(x)
    for other in (x * rng.uniform(1e-3, 1e3, size=(9, 1)), -x, x @ q):
        assert direction_test(other) == approx(first)


def test_more_vectors_than_signs_can_be_counted_have_the_normal_limit():
    """Against 200,000 random signs."""
    rng = np.random.default_rng(8)
    for n, m, shift in ((17, 2, 0.4), (20, 5, 0.5), (40, 3, 0.3), (60, 24, 0.2)):
        x = rng.normal(size=(n, m))
        x[:, 0] += shift
        units = x / np.linalg.norm(x, axis=1, keepdims=True)
        limit = np.linalg.norm(units.sum(axis=0))
        signs = rng.choice([-1.0, 1.0], size=(200_000, n))
        p = float(np.mean(np.linalg.norm(signs @ units, axis=1) >= limit))
        assert direction_test(x)[1] == approx(p, rel=0.12, abs=0.002)


def test_vectors_that_are_zero_have_no_direction():
    x = np.array([[1.0, 0.0], [0.0, 0.0], [1.0, 0.0], [1.0, 0.0]])
    assert direction_test(x) == (1.0, 0.25, 3)
    agreement, p, n = direction_test(np.zeros((4, 2)))
    assert (n, p) == (0, 1.0)
    assert np.isnan(agreement)


def test_vectors_that_do_not_vary_have_no_test_of_their_mean():
    assert np.isnan(mean_test(np.ones((5, 2)), one_group(5)).p_value)
    assert np.isnan(mean_test(np.ones((1, 2)), one_group(1)).p_value)


def test_the_fewest_directions_can_just_reach_the_level():
    for level in (0.05, 0.025, 0.0125, 0.01, 0.001, 0.25):
        n = fewest_directions(level)
        assert 2.0 ** (1 - n) <= level < 2.0 ** (2 - n)


def test_the_mean_of_groups_has_the_size_of_one_sample():
    group = np.repeat([0, 1, 2], [4, 4, 4])
    assert mean_about_groups(np.random.default_rng(9).normal(size=(12, 2)), group)[2:] == (9, approx(12.0))
    assert mean_about_groups(np.ones((3, 1)), np.array([0, 1, 1]))[3] == approx(4 / 1.5)
