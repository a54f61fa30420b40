"""How often the sanity checks of budgets, algorithms and benchmarks fire where there is nothing to find."""

from __future__ import annotations

import numpy as np
import pytest
from harness import about, at_most, rate_of
from study import make_scores, runs_of_scores

import lmemtest as lt
from lmemtest.bench.budget.budget_effect import budget_effect
from lmemtest.bench.checks.copies import copied_runs
from lmemtest.bench.checks.similar import similar_algorithms, similar_benchmarks
from lmemtest.bench.checks.traces import broken_traces

AXES = "benchmark algorithm seed budget"


def null_scores(rng, *, benchmarks=8, algorithms=2, seeds=3, budgets=4, common=0.0):
    """Slopes over the budget that differ between benchmarks, algorithms on benchmarks and runs, around `common`."""
    counts = {"benchmark": benchmarks, "algorithm": algorithms, "seed": seeds}
    sds = {"benchmark": 0.4, "benchmark:algorithm": 0.4, "benchmark:algorithm:seed": 0.2}
    slope = common + make_scores(rng, counts, sds, noise=0.0)
    counts["budget"] = budgets
    return slope[..., None] * np.arange(budgets) + make_scores(rng, counts, {"benchmark": 1.0}, noise=0.3)


def null_curves(rng, **design) -> lt.Runs:
    return runs_of_scores(null_scores(rng, **design), AXES)


def found_in(draw, n: int, seed: int, **options):
    """Shares of tables in which the budget is said to have an effect, and an effect by algorithm."""

    def study(rng):
        decision = budget_effect(draw(rng), **options).decision
        return decision != "none", decision == "interaction"

    return rate_of(study, n, seed)


def test_the_budget_check_keeps_its_level():
    assert about(found_in(null_curves, 100, 11)[0], 100)


@pytest.mark.parametrize("form", ["spline", "categorical"])
def test_the_check_of_curves_keeps_its_level_where_benchmarks_have_curves_of_their_own(form):
    """Random walks over eight budgets: nothing that a slope and independent errors could describe."""

    def walks(rng):
        own = rng.normal(size=(12, 3, 1, 8)).cumsum(axis=-1)
        return runs_of_scores(own + 1.5 * rng.normal(size=(12, 1, 1, 8)).cumsum(axis=-1), AXES)

    assert about(found_in(walks, 40, 17, form=form)[0], 40)


@pytest.mark.parametrize("algorithms", [2, 4])
@pytest.mark.parametrize("how", ["rank", "zscore"])
def test_the_budget_check_keeps_its_level_on_scores_relative_to_the_benchmark(how, algorithms):
    """With two algorithms a variance of benchmarks in the place of fixed effects would reject in a fifth of them."""
    assert about(found_in(lambda rng: null_curves(rng, algorithms=algorithms).normalize(how), 100, 14)[0], 100)


def test_a_common_effect_is_seldom_taken_for_an_interaction():
    effect, interaction = found_in(lambda rng: null_curves(rng, common=2.0), 50, 12)
    assert effect == 1.0
    assert about(interaction, 50)


@pytest.mark.parametrize(
    "random",
    ["(1 | benchmark)", "(1 | benchmark) + (1 | benchmark:algorithm) + (1 | benchmark:algorithm:seed)"],
    ids=["rows as observations", "levels of runs without slopes"],
)
def test_models_without_slopes_find_effects_of_the_budget_that_are_not_there(random):
    def study(rng):
        runs = null_curves(rng)
        fits = [lt.fit_lmm(f"score ~ {f} + {random}", runs, reml=False) for f in ("algorithm", "algorithm * budget")]
        return lt.glrt(*fits, "chi2").p_value < 0.05

    assert not at_most(rate_of(study, 60, 13), 60, p=1e-6)


def test_algorithms_that_differ_by_the_margin_are_seldom_called_equivalent():
    def study(rng):
        scores = rng.normal(size=(2, 700)) + np.array([[0.0], [0.2]])
        return similar_algorithms(runs_of_scores(scores, "algorithm seed")).table["equivalent"].any()

    assert about(rate_of(study, 300, 14), 300)


def test_unrelated_benchmarks_are_seldom_called_alike():
    counts = {"benchmark": 4, "algorithm": 7, "seed": 2}

    def study(rng):
        scores = make_scores(rng, counts, {"algorithm": 1.0, "benchmark:algorithm": 1.0}, noise=0.3)
        return similar_benchmarks(runs_of_scores(scores)).table["alike"].any()

    assert at_most(rate_of(study, 400, 15), 400)


def test_rules_never_fire_on_continuous_scores():
    rng = np.random.default_rng(16)
    for _ in range(50):
        scores = null_scores(rng, budgets=6)
        assert copied_runs(runs_of_scores(scores, AXES)).table.empty
        found = broken_traces(runs_of_scores(np.minimum.accumulate(scores, axis=-1), AXES))
        assert (found.best_so_far, found.n_broken) == (True, 0)
