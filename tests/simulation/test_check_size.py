"""How often the sanity checks of budgets, algorithms and benchmarks fire where there is nothing to find."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

import lmemtest as lt
from lmemtest.bench.budget.budget_effect import budget_effect
from lmemtest.bench.checks.copies import copied_runs
from lmemtest.bench.checks.similar import similar_algorithms, similar_benchmarks
from lmemtest.bench.checks.traces import broken_traces

pytestmark = pytest.mark.slow


def null_curves(rng: np.random.Generator, *, benchmarks=8, algorithms=2, seeds=3, budgets=4, common=0.0) -> lt.Runs:
    """Slopes over the budget that differ between benchmarks, algorithms on benchmarks and runs, around `common`."""
    rows = itertools.product(range(benchmarks), range(algorithms), range(seeds), range(budgets))
    table = pd.DataFrame(list(rows), columns=["task", "algorithm", "seed", "budget"])
    b, a, s, k = (table[c].to_numpy() for c in table)
    slope = (
        common
        + 0.4 * rng.normal(size=benchmarks)[b]
        + 0.4 * rng.normal(size=(benchmarks, algorithms))[b, a]
        + 0.2 * rng.normal(size=(benchmarks, algorithms, seeds))[b, a, s]
    )
    table["loss"] = rng.normal(size=benchmarks)[b] + slope * k + 0.3 * rng.normal(size=len(table))
    table["algorithm"] = "a" + table["algorithm"].astype(str)
    return lt.Runs(
        table, score="loss", direction="minimize", algorithm="algorithm", benchmark="task", seed="seed", budget="budget"
    )


def test_the_budget_check_keeps_its_level():
    rng = np.random.default_rng(11)
    verdicts = [budget_effect(null_curves(rng)).decision for _ in range(100)]
    assert binomtest(sum(v != "none" for v in verdicts), 100, 0.05).pvalue > 0.001


@pytest.mark.parametrize("form", ["spline", "categorical"])
def test_the_check_of_curves_keeps_its_level_where_benchmarks_have_curves_of_their_own(form):
    """Random walks over eight budgets: nothing that a slope and independent errors could describe."""
    rng, shape = np.random.default_rng(17), (12, 3, 1, 8)
    rows = pd.MultiIndex.from_product([range(n) for n in shape], names=["task", "algorithm", "seed", "budget"])
    verdicts = []
    for _ in range(40):
        walks = rng.normal(size=shape).cumsum(axis=-1) + 1.5 * rng.normal(size=(12, 1, 1, 8)).cumsum(axis=-1)
        table = pd.DataFrame({"loss": walks.ravel()}, index=rows).reset_index()
        runs = lt.Runs(
            table.assign(algorithm="a" + table["algorithm"].astype(str)),
            score="loss",
            direction="minimize",
            algorithm="algorithm",
            benchmark="task",
            seed="seed",
            budget="budget",
        )
        verdicts.append(budget_effect(runs, form=form).decision)
    assert binomtest(sum(v != "none" for v in verdicts), 40, 0.05).pvalue > 0.001


@pytest.mark.parametrize("algorithms", [2, 4])
@pytest.mark.parametrize("how", ["rank", "zscore"])
def test_the_budget_check_keeps_its_level_on_scores_relative_to_the_benchmark(how, algorithms):
    """With two algorithms a variance of benchmarks in the place of fixed effects would reject in a fifth of them."""
    rng = np.random.default_rng(14)
    verdicts = [budget_effect(null_curves(rng, algorithms=algorithms).normalize(how)).decision for _ in range(100)]
    assert binomtest(sum(v != "none" for v in verdicts), 100, 0.05).pvalue > 0.001


def test_a_common_effect_is_seldom_taken_for_an_interaction():
    rng = np.random.default_rng(12)
    verdicts = [budget_effect(null_curves(rng, common=2.0)).decision for _ in range(50)]
    assert verdicts.count("none") == 0
    assert binomtest(verdicts.count("interaction"), 50, 0.05).pvalue > 0.001


@pytest.mark.parametrize(
    "random",
    ["(1 | task)", "(1 | task) + (1 | task:algorithm) + (1 | task:algorithm:seed)"],
    ids=["rows as observations", "levels of runs without slopes"],
)
def test_models_without_slopes_find_effects_of_the_budget_that_are_not_there(random):
    rng = np.random.default_rng(13)
    rejected = 0
    for _ in range(60):
        runs = null_curves(rng)
        null, alternative = (
            lt.fit_lmm(f"loss ~ {fixed} + {random}", runs, reml=False) for fixed in ("algorithm", "algorithm * budget")
        )
        rejected += lt.glrt(null, alternative, "chi2").p_value < 0.05
    assert binomtest(rejected, 60, 0.05, alternative="greater").pvalue < 1e-6


def test_algorithms_that_differ_by_the_margin_are_seldom_called_equivalent():
    rng = np.random.default_rng(14)
    table = pd.DataFrame(itertools.product("AB", range(700)), columns=["algorithm", "seed"])
    shift = 0.2 * (table["algorithm"] == "B").to_numpy()
    fired = 0
    for _ in range(300):
        table["loss"] = rng.normal(size=len(table)) + shift
        runs = lt.Runs(table, score="loss", direction="minimize", algorithm="algorithm", seed="seed")
        fired += similar_algorithms(runs).table["equivalent"].any()
    assert binomtest(fired, 300, 0.05).pvalue > 0.001


def test_unrelated_benchmarks_are_seldom_called_alike():
    rng = np.random.default_rng(15)
    table = pd.DataFrame(itertools.product(range(4), range(7), range(2)), columns=["task", "algorithm", "seed"])
    b, a = table["task"].to_numpy(), table["algorithm"].to_numpy()
    fired = 0
    for _ in range(400):
        table["loss"] = rng.normal(size=7)[a] + rng.normal(size=(4, 7))[b, a] + 0.3 * rng.normal(size=len(table))
        runs = lt.Runs(table, score="loss", direction="minimize", algorithm="algorithm", benchmark="task", seed="seed")
        fired += similar_benchmarks(runs).table["alike"].any()
    assert binomtest(fired, 400, 0.05, alternative="greater").pvalue > 0.001


def test_rules_never_fire_on_continuous_scores():
    rng = np.random.default_rng(16)
    for _ in range(50):
        runs = null_curves(rng, budgets=6)
        assert copied_runs(runs).table.empty
        table = runs.to_frame()
        table["loss"] = table.groupby(["task", "algorithm", "seed"])["loss"].cummin()
        traces = lt.Runs(
            table, score="loss", direction="minimize", algorithm="algorithm", benchmark="task", seed="seed",
            budget="budget",
        )  # fmt: skip
        assert broken_traces(traces).decision == "trace"
