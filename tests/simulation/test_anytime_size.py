"""How often curves without a difference get a stretch, and how often bands hold."""

from __future__ import annotations

import numpy as np
import pytest
from harness import at_most, covers, rate_of
from study import runs_of_scores

import lmemtest as lt
from lmemtest.bench.budget.anytime import anytime

TABLES = 200


def null_runs(rng, *, benchmarks, algorithms, seeds, budgets, kind, erratic=1.0) -> lt.Runs:
    """Curves of benchmarks, of algorithms on benchmarks and of runs around one mean curve."""
    x = np.linspace(0, 1, budgets)
    walk = np.minimum.outer(x + 0.05, x + 0.05)
    cov = {"walk": 4 * walk, "stationary": np.exp(-np.abs(np.subtract.outer(x, x)) / 0.2)}[kind]
    root, run_root = np.linalg.cholesky(cov + 1e-9 * np.eye(budgets)), np.linalg.cholesky(walk)
    shape = (benchmarks, algorithms, seeds)
    y = rng.normal(size=(*shape, budgets)) @ run_root.T + rng.normal(size=(benchmarks, 1, seeds, budgets)) @ run_root.T
    if benchmarks > 1:
        sd = np.where(np.arange(algorithms) == algorithms - 1, erratic, 1.0)[:, None, None]
        y = y + sd * rng.normal(size=(benchmarks, algorithms, 1, budgets)) @ root.T
        y = y + 1.5 * rng.normal(size=(benchmarks, 1, 1, budgets)) @ root.T
    return runs_of_scores(
        y + np.sin(3 * x), "benchmark algorithm seed budget", budget=2.0 ** np.linspace(0, 5, budgets)
    )


def false_stretches(n: int, seed: int, design: dict, **options) -> float:
    """Share of tables with a stretch."""
    options = {"columns": "budgets", "n_draws": 2000, **options}
    return rate_of(lambda rng: len(anytime(null_runs(rng, **design), rng=rng, **options).stretches) > 0, n, seed)


@pytest.mark.parametrize(
    ("design", "columns"),
    [
        ({"benchmarks": 12, "algorithms": 3, "seeds": 2, "budgets": 10, "kind": "walk"}, "budgets"),
        ({"benchmarks": 12, "algorithms": 3, "seeds": 2, "budgets": 10, "kind": "stationary"}, "auto"),
        ({"benchmarks": 8, "algorithms": 2, "seeds": 2, "budgets": 10, "kind": "walk"}, 4),
        ({"benchmarks": 1, "algorithms": 3, "seeds": 15, "budgets": 10, "kind": "walk"}, "auto"),
    ],
    ids=["means", "auto", "spline", "one benchmark"],
)
def test_stretches_and_bands_keep_their_level_over_all_budgets(design, columns):
    def study(rng):
        result = anytime(null_runs(rng, **design), columns=columns, n_draws=2000, rng=rng)
        x = np.log(result.budgets) / np.log(32.0)
        truth = np.tile(np.sin(3 * x), len(result.algorithms))
        return len(result.stretches) > 0, not covers(result.curves, truth, "band").all()

    false, missed = rate_of(study, TABLES, 23)
    assert at_most(false, TABLES)
    assert at_most(missed, TABLES)


def test_an_erratic_algorithm_does_not_make_stretches():
    """Moderated standard errors; the common ones find false stretches in a quarter of the tables."""
    design = {"benchmarks": 12, "algorithms": 6, "seeds": 1, "budgets": 8, "kind": "walk", "erratic": 5.0}
    assert at_most(false_stretches(TABLES, 37, design, vcov="moderated"), TABLES)
    assert not at_most(false_stretches(TABLES, 37, design, vcov="model"), TABLES, 0.10)


def test_with_five_benchmarks_bands_are_a_little_narrow_as_the_notes_say():
    design = {"benchmarks": 5, "algorithms": 2, "seeds": 2, "budgets": 10, "kind": "stationary"}
    assert at_most(false_stretches(TABLES, 29, design), TABLES, 0.09)


def test_one_test_per_budget_finds_stretches_in_many_null_tables():
    """The reason for bands over all budgets: at least one of ten budgets has p < 0.05 far more often."""
    design = {"benchmarks": 12, "algorithms": 3, "seeds": 1, "budgets": 10, "kind": "stationary"}

    def study(rng):  # 2.074 is the 97.5 % point of t with 22 df
        result = anytime(null_runs(rng, **design), columns="budgets", n_draws=1000, rng=rng)
        return (result.differences["t_ratio"].abs() > 2.074).any()

    assert rate_of(study, 100, 31) > 0.40
