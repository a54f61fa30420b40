"""Sizes, coverage and power of the tests of a ranking; the closed forms of `rankings` are what the package decides.

A bar above 7 % is where a test is used outside of what it assumes: one algorithm varies five times as much as the
others. Each of them is in docs/validation.md.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import rankings
from rankings import AGAINST, BLOCKS, COUNTS, MEDIANS, OF_PAIRS, SHAPES, TESTS, WITH_GAPS
from scipy import stats

import lmemtest as lt

MOST = 7.0
ABOVE = {("one erratic", "tukey"): 20.0, ("one erratic", "ANOVA F"): 16.0}
ABOVE_UNLIKE = {"exponential, one of 5": 9.0, "rare losses, one of 5": 19.0}  # skewed
ABOVE_AGAINST = {  # by the place of the control; the erratic one is 0
    ("one erratic", "tukey", 0): 29.0,
    ("one erratic", "nemenyi", 0): 13.0,
    ("one erratic", "tukey", 1): 19.0,
}


def too_many(percent: float, n_tables: int, most: float) -> bool:
    """Whether so many of the tables speak against a share of at most this."""
    count = round(percent * n_tables / 100.0)
    return bool(stats.binomtest(count, n_tables, most / 100.0, alternative="greater").pvalue <= 0.001)


def too_few(percent: float, n_tables: int, least: float) -> bool:
    return too_many(100.0 - percent, n_tables, 100.0 - least)


# ---------------------------------------------------------------------- the closed forms


@pytest.mark.level(1)
@pytest.mark.parametrize("test", OF_PAIRS)
def test_the_closed_form_is_what_the_package_decides(test):
    rng = np.random.default_rng(5)
    for shape in ("normal", "20 items"):
        x = SHAPES[shape](rng, (3, 8, 3)) + np.array([0.0, 0.0, 0.5 if shape == "normal" else 0.15])
        for table, expected in zip(x, TESTS[test](x), strict=True):
            assert bool(len(rankings.ranking(table, test).decided)) == expected


@pytest.mark.level(1)
@pytest.mark.parametrize("test", AGAINST)
def test_the_same_with_a_control(test):
    x = SHAPES["normal"](np.random.default_rng(3), (5, 9, 3)) + np.array([0.0, 0.5, 0.9])
    said = AGAINST[test](x)
    assert 0 < said.sum() < len(x)
    for table, expected in zip(x, said, strict=True):
        assert bool(len(rankings.ranking(table, test, control="a0").decided)) == expected


@pytest.mark.level(1)
def test_the_same_with_missing_cells():
    rng = np.random.default_rng(5)
    x = SHAPES["normal"](rng, (4, 12, 3)) + np.array([0.0, 0.6, 1.2])
    x[rng.random(x.shape) < 0.1] = np.nan
    said = {name: test(x) for name, test in WITH_GAPS.items()}
    assert all(0 < of.sum() < len(x) for of in said.values())
    for i, table in enumerate(x):
        long = pd.DataFrame(table, columns=list("abc")).assign(task=range(12)).melt("task").dropna()
        runs = lt.Runs(long, score="value", direction="maximize", algorithm="variable", benchmark="task")
        found = lt.rank(runs, "frequentist")
        assert found.omnibus.significant == said["Skillings-Mack"][i]
        assert bool(len(found.decided)) == said["wilcoxon"][i]


# ---------------------------------------------------------------------- false differences


@pytest.mark.level(3)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("k", COUNTS)
@pytest.mark.parametrize("n", BLOCKS)
def test_any_false_difference(shape, k, n):
    n_tables = rankings.number(shape, k, rankings.N_TABLES)
    for test, percent in rankings.sizes(shape, k, n, n_tables).items():
        assert not too_many(percent, n_tables, ABOVE.get((shape, test), MOST)), (test, percent)


@pytest.mark.level(3)
@pytest.mark.parametrize("name", rankings.UNLIKE_ONES)
def test_any_false_difference_where_one_algorithm_varies_more_or_is_skewed(name):
    found = rankings.sizes_of_unlike(name, 4000)
    assert not too_many(found["auto"], 4000, ABOVE_UNLIKE.get(name, 5.5))
    assert name in ABOVE_UNLIKE or found["auto"] < found["tukey"]


@pytest.mark.level(3)
@pytest.mark.parametrize(("shape", "control"), [*((shape, 0) for shape in SHAPES), ("one erratic", 1)])
@pytest.mark.parametrize("k", [3, 10])
@pytest.mark.parametrize("n", BLOCKS)
def test_any_false_difference_from_a_control(shape, control, k, n):
    for test, percent in rankings.sizes_against(shape, k, n, rankings.N_TABLES, control=control).items():
        most = ABOVE_AGAINST.get((shape, test, control), MOST)
        assert not too_many(percent, rankings.N_TABLES, most), (test, percent)


@pytest.mark.level(3)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(("k", "n_tables"), [(3, 1000), (10, 400)])
def test_any_false_difference_where_cells_are_missing(shape, k, n_tables):
    for n in (12, 20):
        for test, percent in rankings.sizes_with_gaps(shape, k, n, n_tables).items():
            assert not too_many(percent, n_tables, MOST), (test, percent)


@pytest.mark.level(3)
@pytest.mark.parametrize("shape", ["normal", "skewed", "one erratic", "20 items"])
@pytest.mark.parametrize("k", COUNTS)
def test_any_false_difference_of_the_mixed_model(shape, k):
    for percent in rankings.sizes_of_model(shape, k, 12, 300):
        assert not too_many(percent, 300, MOST)


# ---------------------------------------------------------------------- intervals and power


@pytest.mark.level(3)
@pytest.mark.parametrize("shape", MEDIANS)
@pytest.mark.parametrize("test", rankings.AT_ONCE)
def test_intervals_hold_the_shifts_each_by_itself_and_where_they_are_simultaneous_all_at_once(shape, test):
    """That those of steps exclude a true zero no more often than the test finds a difference is decided with them."""
    assert not too_few(rankings.coverage(shape, test, 12, 500)[0], 500, 95.0)
    assert not too_few(rankings.coverage(shape, test, 12, 500, adjust=rankings.AT_ONCE[test])[1], 500, 95.0)


@pytest.mark.level(3)
@pytest.mark.parametrize("shape", MEDIANS)
def test_intervals_of_the_median_hold_their_exact_level(shape):
    for n in (6, 12, 20):
        cut = int(stats.binom.ppf(0.025, n, 0.5))  # the order statistics cut and n - cut + 1
        exact = 100.0 * float(stats.binom.cdf(n - cut, n, 0.5) - stats.binom.cdf(cut - 1, n, 0.5))
        found = rankings.coverage_of_medians(shape, n, 4000)
        assert not too_few(found, 4000, exact)
        assert not too_many(found, 4000, exact)


@pytest.mark.level(3)
def test_equal_algorithms_beside_others_that_are_far_apart():
    """All but Conover's test keep the family there; its one variance of the ranks is too small."""
    for groups in rankings.GROUPS.values():
        for test in ("t", "tukey", "nemenyi", "wilcoxon", "lmem"):
            assert not too_many(rankings.false_beside_true(test, groups, 12, 200), 200, MOST), (groups, test)
    assert not too_few(rankings.false_beside_true("conover", rankings.GROUPS["five pairs"], 12, 200), 200, 15.0)


@pytest.mark.level(3)
def test_power_is_what_the_page_of_rankings_advises_by():
    """Means where scores are normal, ranks where tails are heavy, and a control in either case; 200 tables."""
    tests = ("tukey", "lmem", "t", "nemenyi", "wilcoxon")
    found = {
        shape: {test: rankings.power(shape, test, 200)[0] for test in tests} for shape in ("normal", "heavy tails")
    }
    assert min(found["normal"]["tukey"], found["normal"]["lmem"]) > found["normal"]["nemenyi"] + 15.0
    assert found["heavy tails"]["nemenyi"] > max(found["heavy tails"][test] for test in ("t", "tukey"))
    for test in AGAINST:
        assert rankings.power("normal", test, 200, control="a0")[0] > found["normal"][test] + 5.0
