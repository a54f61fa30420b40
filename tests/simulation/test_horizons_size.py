"""Over all horizons together true null hypotheses are rejected in 5 % of the tables at most, changes likewise."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest, norm

import lmemtest as lt
from lmemtest.bench.budget.anytime import anytime
from lmemtest.bench.budget.horizon_tests import share_level
from lmemtest.compat.significance_analysis import horizon_pairs

pytestmark = pytest.mark.slow

ALPHA = 0.05
TABLES = 200


def null_runs(
    rng: np.random.Generator, *, benchmarks=8, algorithms=2, seeds=2, n_budgets=3, correlation=0.8
) -> lt.Runs:
    """Advantages of mean zero that belong to the benchmark and are correlated over budgets; runs that are curves."""
    rows = itertools.product(range(benchmarks), range(algorithms), range(seeds), range(n_budgets))
    table = pd.DataFrame(list(rows), columns=["task", "algorithm", "seed", "budget"])
    b, a, s, k = (table[c].to_numpy() for c in table)
    shared = rng.normal(size=(benchmarks, algorithms, 1))
    own = rng.normal(size=(benchmarks, algorithms, n_budgets))
    advantage = np.sqrt(correlation) * shared + np.sqrt(1 - correlation) * own
    table["loss"] = (
        rng.normal(size=(benchmarks, n_budgets))[b, k]
        + 0.5 * advantage[b, a, k]
        + 0.3 * rng.normal(size=(benchmarks, seeds))[b, s]
        + 0.5 * rng.normal(size=(benchmarks, algorithms, seeds))[b, a, s]
        + 0.5 * rng.normal(size=len(table))
    )
    table = table.assign(algorithm="a" + table["algorithm"].astype(str), budget=table["budget"] + 1)
    return lt.Runs(
        table,
        score="loss",
        direction="minimize",
        algorithm="algorithm",
        benchmark="task",
        seed="seed",
        budget="budget",
    )


def false_discoveries(budgets, *, tables=TABLES, effect="averaged", **settings) -> dict[str, int]:
    """Tables with a false discovery at some horizon, the same without sharing the level, at the first, and a change."""
    rng = np.random.default_rng(11)
    count = dict.fromkeys(("some", "unshared", "first", "change"), 0)
    for _ in range(tables):
        # for two algorithms no adjustment within a horizon is Tukey's
        found = anytime(null_runs(rng, **settings)).at(budgets, adjust="none", windows=effect)
        p = found.to_frame()["p_raw"].to_numpy()
        count["some"] += bool(found.to_frame()["significant"].any())
        count["unshared"] += bool(p.min() < ALPHA)
        count["first"] += bool(p[0] < ALPHA)
        count["change"] += bool(found.changes["significant"].any())
    return count


def at_most(count: int, tables: int = TABLES) -> bool:
    return binomtest(count, tables, ALPHA, alternative="greater").pvalue > 0.001


def exactly(count: int, tables: int = TABLES) -> bool:
    return binomtest(count, tables, ALPHA).pvalue > 0.001


def test_the_error_over_horizons_and_that_of_changes_are_kept():
    count = false_discoveries([1, 2, 3])
    assert at_most(count["some"])
    assert exactly(count["first"])  # one test at one horizon has its size
    assert at_most(count["change"])


def test_horizons_that_have_little_in_common_need_the_sharing():
    count = false_discoveries([1, 2, 3], correlation=0.0)
    assert at_most(count["some"])
    assert not at_most(count["unshared"])
    assert at_most(count["change"])


@pytest.mark.parametrize(("effect", "tables"), [("averaged", TABLES), ("fixed", 100)])
def test_windows_keep_the_level_and_one_change_has_its_size(effect, tables):
    count = false_discoveries([(1, 3), (4, 6)], effect=effect, n_budgets=6, tables=tables)
    assert at_most(count["some"], tables)
    assert exactly(count["first"], tables)
    assert exactly(count["change"], tables)


def test_horizons_that_hand_on_their_shares_do_not_inflate_the_error():
    """Three horizons with a null pair and a clear one each, or a clear one only: the worst case for handing on."""
    rng = np.random.default_rng(7)
    n = 20_000
    for null in ([True, True, True], [True, True, False], [True, False, False]):
        shared = rng.normal(size=(n, 1))
        z = np.sqrt(0.3) * shared + np.sqrt(0.7) * rng.normal(size=(n, 3))
        p = 2 * norm.sf(np.abs(z))
        wrong = 0
        for row in p:
            # p-values adjusted for two pairs by Bonferroni; the clear pair is always significant
            families = [
                [min(1.0, 2 * value), 1e-9] if is_null else [1e-9] for value, is_null in zip(row, null, strict=True)
            ]
            adjusted, _ = share_level(families, 2 * ALPHA, "holm")
            wrong += any(a[0] < 2 * ALPHA for a, is_null in zip(adjusted, null, strict=True) if is_null)
        assert binomtest(wrong, n, ALPHA, alternative="greater").pvalue > 0.001
        # with a single true null hypothesis the whole level is spent on it
        assert sum(null) > 1 or binomtest(wrong, n, ALPHA).pvalue > 0.001


def test_rows_of_a_window_counted_as_independent_find_what_is_not_there():
    rng = np.random.default_rng(5)
    count = 0
    for _ in range(50):
        found = horizon_pairs(null_runs(rng, n_budgets=6), [(1, 6)])
        count += bool((found["paper_p_value"] < ALPHA).any())
    assert binomtest(count, 50, ALPHA, alternative="greater").pvalue < 0.001
