"""Sizes of the tests of a ranking; the closed forms of `rankings` are what the package decides.

Intervals of differences are those of the same tests, so by shifting one algorithm their simultaneous coverage is 100 %
less the size.
"""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import rankings
from rankings import BLOCKS, COUNTS, SHAPES, TESTS, sizes
from scipy import stats

import lmemtest as lt

# Percent, where a test is used outside of what it assumes; the page of validation says so. Elsewhere 7.
ABOVE = {("one erratic", "tukey"): 26.0, ("one erratic", "auto"): 9.5, ("one erratic", "nemenyi"): 9.5,
         ("one erratic", "conover"): 8.0, ("3 items", "t"): 8.0, ("3 items", "Friedman (Iman-Davenport)"): 8.0,
         ("normal", "conover"): 8.0, ("normal", "Friedman (Iman-Davenport)"): 8.0}  # fmt: skip


@pytest.mark.level(1)
@pytest.mark.parametrize("test", [name for name in TESTS if not name.startswith("Friedman")])
def test_the_closed_form_is_what_the_package_decides(test):
    rng = np.random.default_rng(5)
    for shape in ("normal", "20 items"):
        x = SHAPES[shape](rng, (4, 8, 3)) + np.array([0.0, 0.0, 0.5 if shape == "normal" else 0.15])
        said = TESTS[test](x)
        for table, expected in zip(x, said, strict=True):
            found = lt.rank(pd.DataFrame(table, columns=list("abc")), "frequentist", test=test, direction="maximize")
            assert bool(len(found.decided)) == expected


@pytest.mark.level(3)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("k", COUNTS)
@pytest.mark.parametrize("n", BLOCKS)
def test_any_false_difference(shape, k, n):
    n_tables = 1000 if "items" in shape and k == 10 else 4000
    for test, percent in sizes(shape, k, n, n_tables).items():
        most = ABOVE.get((shape, test), 7.0)
        count = round(percent * n_tables / 100.0)
        assert stats.binomtest(count, n_tables, most / 100.0, alternative="greater").pvalue > 0.001, (test, percent)


@pytest.mark.level(3)
@pytest.mark.parametrize(("shape", "k", "n"), [("normal", 3, 12), ("one erratic", 3, 12), ("20 items", 10, 12)])
def test_any_false_difference_of_the_mixed_model(shape, k, n):
    rng = np.random.default_rng(11)
    count, n_tables = 0, 200
    for table in SHAPES[shape](rng, (n_tables, n, k)):
        names = [f"a{i}" for i in range(k)]
        count += len(lt.rank(pd.DataFrame(table, columns=names), direction="maximize").decided) > 0
    assert stats.binomtest(count, n_tables, 0.07, alternative="greater").pvalue > 0.001


@pytest.mark.level(3)
def test_intervals_of_the_shift_hold_their_level():
    rng = np.random.default_rng(2)
    for draw in (rng.normal, rng.standard_t):
        x = draw(size=(4000, 12)) if draw is rng.normal else rng.standard_t(2, size=(4000, 12))
        limits = [rankings.shift_interval(row, 0.95) for row in x]
        inside = np.mean([low <= 0.0 <= high for _, low, high in limits])
        assert 0.94 < inside < 0.97
