"""How often curves without a difference get a stretch, and how often bands hold."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

import lmemtest as lt
from lmemtest.bench.budget.anytime import anytime

pytestmark = pytest.mark.slow

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
    names = ["task", "algorithm", "seed", "budget"]
    rows = pd.MultiIndex.from_product([*map(range, shape), 2.0 ** np.linspace(0, 5, budgets)], names=names)
    table = pd.DataFrame({"loss": (y + np.sin(3 * x)).ravel()}, index=rows).reset_index()
    return lt.Runs(
        table.assign(algorithm="a" + table["algorithm"].astype(str)),
        score="loss",
        direction="minimize",
        algorithm="algorithm",
        benchmark="task",
        seed="seed",
        budget="budget",
    )


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
    rng = np.random.default_rng(23)
    false = missed = 0
    for _ in range(TABLES):
        result = anytime(null_runs(rng, **design), columns=columns, n_draws=2000, rng=rng)
        false += len(result.stretches) > 0
        x = np.log(result.budgets) / np.log(32.0)
        truth = np.tile(np.sin(3 * x), len(result.algorithms))
        held = (result.curves["band_low"] <= truth) & (truth <= result.curves["band_high"])
        missed += not held.all()
    assert binomtest(false, TABLES, 0.05, alternative="greater").pvalue > 0.001
    assert binomtest(missed, TABLES, 0.05, alternative="greater").pvalue > 0.001


def test_an_erratic_algorithm_does_not_make_stretches():
    """Moderated standard errors; the common ones find false stretches in a quarter of the tables."""
    rng = np.random.default_rng(37)
    design = {"benchmarks": 12, "algorithms": 6, "seeds": 1, "budgets": 8, "kind": "walk", "erratic": 5.0}
    false = {"moderated": 0, "model": 0}
    for _ in range(TABLES):
        runs = null_runs(rng, **design)
        for vcov in false:
            false[vcov] += len(anytime(runs, columns="budgets", vcov=vcov, n_draws=2000, rng=rng).stretches) > 0
    assert binomtest(false["moderated"], TABLES, 0.05, alternative="greater").pvalue > 0.001
    assert binomtest(false["model"], TABLES, 0.10, alternative="greater").pvalue < 0.001


def test_with_five_benchmarks_bands_are_a_little_narrow_as_the_notes_say():
    rng = np.random.default_rng(29)
    design = {"benchmarks": 5, "algorithms": 2, "seeds": 2, "budgets": 10, "kind": "stationary"}
    false = sum(
        len(anytime(null_runs(rng, **design), columns="budgets", n_draws=2000, rng=rng).stretches) > 0
        for _ in range(TABLES)
    )
    assert binomtest(false, TABLES, 0.09, alternative="greater").pvalue > 0.001


def test_one_test_per_budget_finds_stretches_in_many_null_tables():
    """The reason for bands over all budgets: at least one of ten budgets has p < 0.05 far more often."""
    rng = np.random.default_rng(31)
    design = {"benchmarks": 12, "algorithms": 3, "seeds": 1, "budgets": 10, "kind": "stationary"}
    found = 0
    for _ in range(100):
        result = anytime(null_runs(rng, **design), columns="budgets", n_draws=1000, rng=rng)
        found += (result.differences["t_ratio"].abs() > 2.074).any()  # the 97.5 % point of t with 22 df
    assert found > 40
