"""Over all horizons together true null hypotheses are rejected in 5 % of the tables at most, changes likewise."""

from __future__ import annotations

import numpy as np
import pytest
from harness import ALPHA, about, at_most, rate_of
from scipy.stats import norm
from study import make_scores, runs_of_scores

import lmemtest as lt
from lmemtest.bench.budget.anytime import anytime
from lmemtest.bench.budget.horizons import share_level
from lmemtest.compat.significance_analysis import horizon_pairs

TABLES = 200


def null_runs(rng: np.random.Generator, n_budgets: int = 3, correlation: float = 0.8) -> lt.Runs:
    """Advantages of mean zero that belong to the benchmark and are correlated over budgets; runs that are curves."""
    counts = {"benchmark": 8, "algorithm": 2, "seed": 2, "budget": n_budgets}
    pair = "benchmark:algorithm"
    sds = {
        pair: 0.5 * np.sqrt(correlation),
        f"{pair}:budget": 0.5 * np.sqrt(1 - correlation),
        "benchmark:budget": 1.0,
        "benchmark:seed": 0.3,
        f"{pair}:seed": 0.5,
    }
    scores = make_scores(rng, counts, sds, noise=0.5)
    return runs_of_scores(scores, "benchmark algorithm seed budget", budget=1 + np.arange(n_budgets))


def false_discoveries(budgets, *, tables=TABLES, effect="averaged", **settings) -> dict[str, float]:
    """Tables with a false discovery at some horizon, the same without sharing the level, at the first, and a change."""

    def study(rng):  # for two algorithms no adjustment within a horizon is Tukey's
        found = anytime(null_runs(rng, **settings)).at(budgets, adjust="none", windows=effect)
        table, change = found.to_frame(), found.changes["significant"].any()
        p = table["p_raw"].to_numpy()
        return {
            "some": table["significant"].any(),
            "unshared": p.min() < ALPHA,
            "first": p[0] < ALPHA,
            "change": change,
        }

    return rate_of(study, tables, 11)


def test_the_error_over_horizons_and_that_of_changes_are_kept():
    found = false_discoveries([1, 2, 3])
    assert at_most(found["some"], TABLES)
    assert about(found["first"], TABLES)  # one test at one horizon has its size
    assert at_most(found["change"], TABLES)


def test_horizons_that_have_little_in_common_need_the_sharing():
    found = false_discoveries([1, 2, 3], correlation=0.0)
    assert at_most(found["some"], TABLES)
    assert not at_most(found["unshared"], TABLES)
    assert at_most(found["change"], TABLES)


@pytest.mark.parametrize(("effect", "tables"), [("averaged", TABLES), ("fixed", 100)])
def test_windows_keep_the_level_and_one_change_has_its_size(effect, tables):
    found = false_discoveries([(1, 3), (4, 6)], effect=effect, n_budgets=6, tables=tables)
    assert at_most(found["some"], tables)
    assert about(found["first"], tables)
    assert about(found["change"], tables)


@pytest.mark.parametrize("null", [(True, True, True), (True, True, False), (True, False, False)])
def test_horizons_that_hand_on_their_shares_do_not_inflate_the_error(null):
    """Three horizons with a null pair and a clear one each, or a clear one only: the worst case for handing on."""
    n = 20_000

    def study(rng):
        z = np.sqrt(0.3) * rng.normal() + np.sqrt(0.7) * rng.normal(size=3)
        # p-values adjusted for two pairs by Bonferroni; the clear pair is always significant
        families = [
            [min(1.0, 2 * p), 1e-9] if is_null else [1e-9]
            for p, is_null in zip(2 * norm.sf(np.abs(z)), null, strict=True)
        ]
        adjusted, _ = share_level(families, 2 * ALPHA, "holm")
        return any(a[0] < 2 * ALPHA for a, is_null in zip(adjusted, null, strict=True) if is_null)

    wrong = rate_of(study, n, 7)
    assert at_most(wrong, n)
    # with a single true null hypothesis the whole level is spent on it
    assert sum(null) > 1 or about(wrong, n)


def test_rows_of_a_window_counted_as_independent_find_what_is_not_there():
    def study(rng):
        return (horizon_pairs(null_runs(rng, n_budgets=6), [(1, 6)])["paper_p_value"] < ALPHA).any()

    assert not at_most(rate_of(study, 50, 5), 50)
