"""Plans: the standard errors of power and of the estimators, published formulas, and what is refused."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from pytest import approx
from scipy import optimize

import lmemtest as lt
from lmemtest.bench.power.draw import StudyDesign, operating
from lmemtest.bench.power.plan import plan
from lmemtest.bench.power.stages import Stages, continuous, least_product, search
from lmemtest.bench.power.variance_components import Pilot, VarianceComponents
from lmemtest.errors import ArgumentError

ONE = {"tuning": 0.4, "data": 0.9, "seed": 0.3}  # of one pipeline
STUDY = VarianceComponents(interaction_sd=0.02, residual_sd=0.03, seed_sd=0.01)
NAMED = VarianceComponents(
    interaction_sd=0.02, residual_sd=0.01, seed_sd=0.01, benchmark_sd=0.2, sources={"tuning": 0.02, "data": 0.03}
)


def row(found, allocation="best"):
    return found.to_frame().set_index("allocation").loc[allocation]


def error(found, **units):
    return found.standard_error(units)


# ---------------------------------------------------------------------- one number, whoever computes it


def test_the_standard_error_is_that_of_the_power_analysis():
    found = plan(STUDY, n_algorithms=4, budget=4 * 100)
    best = found.best
    design = StudyDesign(n_algorithms=4, n_benchmarks=best["benchmark"], n_seeds=best["seed"])
    assert row(found)["standard_error"] == approx(design.se(STUDY), rel=1e-12)
    for b, n in itertools.product((3, 20), (1, 7)):
        design = StudyDesign(n_algorithms=4, n_benchmarks=b, n_seeds=n)
        assert error(found, benchmark=b, seed=n) == approx(design.se(STUDY), rel=1e-12)
        assert found.cost({"benchmark": b, "seed": n}) == design.n_runs


def test_the_standard_error_with_several_sources_on_one_split():
    sources = {"tuning": 1.0, "data": 2.0, "init": 0.5, "data:init": 0.3}
    components = VarianceComponents(interaction_sd=None, residual_sd=0.7, seed_sd=0.4, sources=sources)
    one_split = plan(components, stages=["data", "tuning", "seed"], budget=500, trials=20)
    assert error(one_split, seed=30) == approx(math.sqrt(5.0 + (0.25 + 0.09 + 0.49 + 0.16) / 30))


def test_the_pilot_leaves_open_what_it_leaves_open_of_power():
    pilot = VarianceComponents(
        interaction_sd=0.02, residual_sd=0.03, pilot=Pilot(n_algorithms=3, n_benchmarks=9, n_seeds=4)
    )
    found = plan(pilot, budget=300)
    assert found.n_algorithms == 3
    b, n = found.best.values()
    assert tuple(row(found)[["ci_low", "ci_high"]]) == approx([math.sqrt(2.0 * v / b) for v in pilot.limits(n)])
    assert "As far as the pilot determines the variances" in found.sentences()[-1]
    assert not any("taken as known" in note for note in found.notes)


def test_a_plan_for_an_effect_needs_the_benchmarks_that_power_needs():
    options = {"effect": 0.01, "n_algorithms": 3, "alpha": 0.01, "adjust": "bonferroni"}
    found = plan(STUDY, power=0.9, fixed={"seed": 4}, **options)
    needed = lt.power(STUDY, n_benchmarks=5, n_seeds=4, method="closed_form", **options).needed(0.9)
    assert found.best == {"benchmark": needed.to_frame()["n_benchmarks"][0], "seed": 4}


@pytest.mark.parametrize("at_most", [{}, {"benchmark": 14}])
def test_the_cheapest_plan_for_an_effect_is_that_of_trying_all(at_most):
    costs = {"training": 1.0, "benchmark": 9.0}
    found = plan(STUDY, effect=0.025, n_algorithms=2, costs=costs, at_most=at_most)
    cost, enough = row(found)["cost"], []
    for b, n in itertools.product(range(2, at_most.get("benchmark", 60) + 1), range(1, 80)):
        if 2 * b * (n + 9) <= cost:
            design = StudyDesign(n_algorithms=2, n_benchmarks=b, n_seeds=n)
            power = operating(0.025, design.se(STUDY), design.df, design.critical(0.05, "tukey"))[0]
            enough += [(b, n)] if power >= 0.8 else []
    assert enough == [tuple(found.best.values())]
    assert found.sentences()[0].startswith("80 % power to find a difference of 0.025 (a standard error of 0.00")


# ---------------------------------------------------------------------- what a sceptic knows beforehand


def test_one_seed_for_each_split_is_best_unless_a_split_costs_something():
    cheap = plan(ONE, budget=1000, trials=50)
    assert cheap.best["seed"] == 1
    dear = plan({"data": 0.9, "seed": 0.3}, budget=10_000, costs={"training": 1.0, "data": 36.0})
    assert dear.best == {"data": 263, "seed": 2}  # the root of 36 x 0.3^2 over 0.9^2, and 10,000 / (36 + 2)


def test_the_cost_of_a_tuning_run_is_its_trials_and_final_trainings_for_each_algorithm_and_benchmark():
    found = plan(NAMED, n_algorithms=2, budget=5000, trials=50, costs={"training": 0.5, "benchmark": 3.0})
    assert found.names == ("benchmark", "tuning", "data", "seed")
    units = {"benchmark": 4, "tuning": 3, "data": 5, "seed": 2}
    assert found.cost(units) == 2 * (4 * 3.0 + 4 * 3 * (50 + 5 * 2) * 0.5)
    sd = {"benchmark": 0.02, "tuning": 0.02, "data": 0.03, "seed": 0.01}
    want = 2 * sum(sd[name] ** 2 / n for name, n in zip(units, np.cumprod(list(units.values())), strict=True))
    assert found.standard_error(units) == approx(math.sqrt(want))


def test_no_number_of_splits_gets_below_what_one_tuning_run_leaves():
    found = plan(ONE, budget=100_000, trials=50, fixed={"tuning": 1})
    assert 0.4 < row(found)["standard_error"] < 0.401
    free = plan(ONE, budget=1000, trials=50)
    assert "With 1 tuning run no number of splits and seeds gives a standard error below 0.4000." in free.sentences()


def test_what_both_algorithms_share_cancels():
    alone = plan(NAMED, n_algorithms=2, budget=1000, trials=9)
    same = plan(NAMED, n_algorithms=2, budget=1000, trials=9, shared=["data"])
    half = plan(NAMED, n_algorithms=2, budget=1000, trials=9, shared={"data": 0.5})
    of_data = [error(p) ** 2 - error(same) ** 2 for p in (alone, half, same)]
    assert of_data == approx([2 * 0.03**2, 0.03**2, 0.0])
    assert half.notes[-1].endswith("tuning runs and trainings; what both share of data (correlation 0.5) cancels.")


def test_the_mean_of_one_pipeline_has_the_levels_of_benchmarks_only_if_it_is_over_benchmarks():
    one = plan(NAMED, budget=100, trials=9)
    assert one.names == ("tuning", "data", "seed")
    assert error(one) == approx(math.sqrt(0.02**2 + 0.03**2 + 0.01**2 + 0.01**2))  # equal seeds are no help
    over = plan(NAMED, budget=100, trials=9, stages=["benchmark", "tuning", "seed"])
    assert error(over) == approx(math.sqrt(error(one) ** 2 + 0.2**2 + 0.02**2))


def test_other_stages_are_those_that_the_components_name():
    found = plan({"task": 1.0, "item": 2.0, "epoch": 0.5}, costs={"epoch": 1.0, "item": 4.0}, budget=1000)
    assert found.names == ("task", "item", "epoch")
    assert found.best == {"task": 200, "item": 1, "epoch": 1}
    assert found.title == "Plan: the mean score of one pipeline"
    crossed = plan({"task": 1.0, "item": 2.0, "task:item": 0.5}, budget=100)
    assert crossed.stage_table()["sd"].tolist() == approx([1.0, math.sqrt(4.25)])  # new with every item
    sources = {"init": 0.3, "data": 0.9, "tuning": 0.4, "order": 0.4}
    assert plan(sources, budget=99, trials=9).stage_table()["sd"].tolist() == approx([0.4, 0.9, 0.5])


# ---------------------------------------------------------------------- budgets and targets


def test_the_target_of_a_budget_costs_no_more():
    for budget in (60, 333, 1000):
        best = row(plan(ONE, budget=budget, trials=50))
        back = plan(ONE, target=best["standard_error"], trials=50)
        assert row(back)["cost"] <= best["cost"]
        assert row(back)["standard_error"] <= best["standard_error"] * (1 + 1e-9)
        assert back.bound <= row(back)["cost"]


def test_an_unlimited_budget_buys_all_that_is_allowed():
    most = {"tuning": 3, "data": 7, "seed": 2}
    assert plan(ONE, budget=math.inf, trials=50, at_most=most).best == most
    assert plan({**ONE, "seed": 0.0}, budget=math.inf, trials=50, at_most=most).best == {**most, "seed": 1}


def test_nothing_that_varies_needs_one_unit():
    found = plan({"tuning": 0.0, "seed": 0.0}, budget=1000, trials=5)
    assert (found.best, row(found)["standard_error"]) == ({"tuning": 1, "seed": 1}, 0.0)
    assert len(found.robustness()) == 0
    assert found.to_table()


def test_the_current_design_is_compared_at_its_own_cost():
    found = plan(ONE, trials=50, current={"seed": 3})
    assert found.budget == 53
    now, same = row(found, "current"), row(found, "best for the cost of current")
    assert now["standard_error"] == approx(math.sqrt(0.16 + 0.81 + 0.03))
    assert same["standard_error"] == approx(math.sqrt(0.16 + 0.9 / 3))
    assert found.sentences()[1] == (
        "The current 1 tuning run x 1 split x 3 seeds has a standard error of 1.000 for 53; 1 tuning run x 3 splits x "
        "1 seed has 0.6782 for the same cost."
    )
    assert plan(ONE, trials=50, current={"data": 3}).sentences()[1].endswith("nothing for that cost has a smaller one.")


def test_the_loss_of_a_wrong_component_is_that_against_the_best_plan_with_the_right_one():
    found = plan(ONE, budget=1000, trials=50)
    loss = found.to_frame("robustness").set_index(["stage", "factor"])["loss"]
    cost = row(found)["cost"]
    right = plan({**ONE, "tuning": 0.2}, budget=cost, trials=50)
    assert loss["tuning", 0.5] == approx(error(right, **found.best) / row(right)["standard_error"] - 1.0)
    assert "of the standard deviations is half or twice as large" in found.sentences()[-1]
    assert (loss >= 0).all()


def test_curves_go_through_the_plans():
    found = plan(ONE, trials=50, current={"seed": 3})
    curves = found.to_frame("curves")
    assert list(dict.fromkeys(curves["curve"])) == ["best", "one tuning run", "ideal", "more seeds as now"]
    for name, rows in curves.groupby("curve"):
        assert (np.diff(rows["standard_error"]) <= 1e-12).all(), name
    steps = {name: rows.set_index("cost")["standard_error"] for name, rows in curves.groupby("curve")}
    for name, other in steps.items():
        least = steps["best"].reindex(steps["best"].index.union(other.index)).ffill()[other.index]
        assert (least <= other * (1 + 1e-12)).all(), name
    assert steps["best"][53.0] == approx(math.sqrt(0.16 + 0.9 / 3))  # the first splits, one by one
    last = {name: rows.iloc[-1] for name, rows in curves.groupby("curve")}
    assert last["best"]["standard_error"] == approx(row(plan(ONE, trials=50, budget=530))["standard_error"])
    assert last["ideal"]["standard_error"] == approx(math.sqrt((0.16 + 0.81 + 0.09) / 10))
    assert last["more seeds as now"]["standard_error"] == approx(math.sqrt(0.16 + 0.81 + 0.09 / 480))


# ---------------------------------------------------------------------- what is refused


@pytest.mark.parametrize(
    ("components", "options", "message"),
    [
        (ONE, {"trials": 5}, "plan takes one of budget, target and effect .* got none"),
        (ONE, {"trials": 5, "budget": 1, "target": 1}, "got budget and target"),
        (ONE, {"budget": 100}, "trials must be given: how many trainings a tuning run takes"),
        (ONE, {"budget": 30, "trials": 50}, "the smallest design, 1 tuning run x 1 split x 1 seed, costs 51"),
        (ONE, {"budget": math.inf, "trials": 50}, "budget must be finite unless at_most or fixed limits every stage"),
        (ONE, {"target": 0.3, "trials": 5, "at_most": {"tuning": 1}},
         "target 0.3 is out of reach: with 1 tuning run no design has a standard error below 0.4000"),
        (ONE, {"target": 1e-5, "trials": 5}, "more than 1,000,000 units of a stage"),
        (ONE, {"budget": 99, "trials": 5, "stages": ["data", "seed"]}, "stages lacks 'tuning'"),
        ({"data": 1}, {"budget": 99, "trials": 5, "stages": ["tuning", "seed"]}, "components lacks 'tuning'"),
        (STUDY, {"budget": 99, "stages": ["data", "seed"]}, "components lacks the source 'data', which is a stage"),
        (STUDY, {"budget": 99, "stages": ["benchmark", "seed"]}, "components lacks 'benchmark_sd', which the stage"),
        (ONE, {"budget": 99, "trials": 5, "at_most": {"date": 1}}, "at_most names 'date', .* Did you mean 'data'"),
        (STUDY, {"budget": 99, "costs": {"family": 5}}, "Families are one if a pilot has 5 or more, or with fam"),
        (ONE, {"budget": 99, "trials": 5, "fixed": {"data": 2}, "at_most": {"data": 2}}, "data has a number in fixed"),
        (ONE, {"budget": 99, "trials": 5, "shared": ["data"]}, "shared is for differences"),
        (ONE, {"budget": 9, "trials": 5, "n_algorithms": 2, "shared": {"data": 2}}, r"shared.* most 1, got 2: a corr"),
        (STUDY, {"effect": 0.01, "n_algorithms": 2, "at_most": {"benchmark": 9}},
         "an effect of 0.01, which takes a standard error of 0.003569 at most, is out of reach: with at most 9 bench"),
        (ONE, {"effect": 0.1, "trials": 5, "n_algorithms": 2}, "effect is of a test over benchmarks"),
        (ONE, {"budget": 99, "trials": 5, "costs": {"training": 1, "seed": 1}}, "costs has both 'training' and 'seed'"),
        (ONE, {"budget": 99, "trials": 5, "costs": 0}, "costs must say what a seed costs, more than 0"),
        (ONE, {"budget": 99, "trials": 5, "costs": {"data": -1}}, r"costs\['data'\] must be a finite number"),
        ({"data": 1.0}, {"budget": 99, "trials": 5}, "trials is of a tuning run, and 'tuning' is no stage"),
    ],
)  # fmt: skip
def test_what_cannot_be_planned_is_refused_with_the_next_step(components, options, message):
    with pytest.raises(ArgumentError, match=message):
        plan(components, **options)


# ---------------------------------------------------------------------- allocation


INF = math.inf


def stages(variance, cost, low=None, high=None):
    count = len(variance)
    return Stages(
        variance=np.array(variance, dtype=float),
        cost=np.array(cost, dtype=float),
        low=np.ones(count) if low is None else np.array(low, dtype=float),
        high=np.full(count, INF) if high is None else np.array(high, dtype=float),
    )


def drawn(rng):
    """Some stages: any number of them without variance, without cost or with limits."""
    count = rng.integers(1, 4)
    cost = rng.choice([0.0, 1.0, 5.0, 20.0], count)
    cost[-1] = rng.choice([0.5, 1.0, 2.0])
    low, high = np.ones(count), np.full(count, INF)
    for i in range(count):
        kind = rng.integers(5)
        high[i] = rng.integers(1, 6) if kind < 2 else INF
        low[i] = high[i] if kind == 0 else 1.0
    return stages(rng.choice([0.0, 0.1, 0.5, 1.0, 3.0], count), cost, low, high)


def by_trying(layout, most, *, cost=None, variance=None):
    """The best of all allocations with up to so many units for each unit above."""
    ranges = [range(int(a), int(min(b, most)) + 1) for a, b in zip(layout.low, layout.high, strict=True)]
    n = np.array(list(itertools.product(*ranges)), dtype=float)
    first, second = layout.variance_of(n), layout.cost_of(n)
    n, first, second = (x[second <= cost * (1 + 1e-9)] for x in (n, first, second)) if variance is None else (
        x[first <= variance * (1 + 1e-9)] for x in (n, second, first)
    )  # fmt: skip
    if not len(n):
        return None
    keep = first <= first.min() * (1 + 1e-11)
    n, second = n[keep], second[keep]
    return max(tuple(map(int, row)) for row in n[second <= second.min() * (1 + 1e-11)])


@pytest.mark.parametrize("seed", range(5))
def test_the_search_finds_what_trying_all_allocations_finds(seed):
    rng, most, checked = np.random.default_rng(seed), 24, 0
    while checked < 20:
        layout = drawn(rng)
        limit = {"cost": float(rng.integers(1, most + 1))}
        if rng.integers(2):
            limit = {"variance": float(layout.variance.sum()) * rng.choice([0.1, 0.3, 0.5, 0.77]) + 1e-12}
        got = search(layout, **limit)
        if got is not None and max(got) > most:
            continue  # the few tried below are not all
        assert got == by_trying(layout, most, **limit), (layout.variance, layout.cost, layout.high, limit)
        checked += 1
        if got is not None:  # fractions do no worse
            n = np.array(got, dtype=float)
            value = layout.variance_of(n) if "cost" in limit else layout.cost_of(n)
            assert continuous(layout, **limit)[1] <= value * (1 + 1e-9)


def test_cochrans_rule():
    """Cochran (1977), ch. 10: units in proportion to the root of variance over cost, from stage to stage."""
    variance, cost = [6.0, 24.0, 48.0], [30.0, 6.0, 1.0]
    n, least = continuous(stages(variance, cost), cost=4000.0)
    root = np.sqrt(variance) / np.sqrt(cost)
    assert n[1:] == approx(root[1:] / root[:-1])
    assert least == approx(np.sqrt(np.array(variance) * cost).sum() ** 2 / 4000.0)
    assert continuous(stages(variance, cost), variance=least)[1] == approx(4000.0)


@pytest.mark.parametrize("high", [(INF, INF, INF), (4, INF, 3), (INF, 2, INF), (3, 5, 2)])
def test_real_numbers_of_units_are_those_of_a_numerical_optimiser(high):
    layout = stages([0.3, 2.0, 0.5], [7.0, 0.5, 1.0], high=high)
    n, least = continuous(layout, cost=90.0)
    bounds = [(0.0, math.log(h) if h < INF else 9.0) for h in high]
    want = optimize.minimize(
        lambda x: math.log(layout.variance_of(np.exp(x))),
        [0.1, 0.1, 0.1],
        bounds=bounds,
        constraints={"type": "ineq", "fun": lambda x: math.log(90.0 / layout.cost_of(np.exp(x)))},
        options={"ftol": 1e-13, "maxiter": 500},
    )
    assert least == approx(math.exp(want.fun), rel=1e-6)
    assert layout.variance_of(np.array(n)) == approx(least)
    assert layout.cost_of(np.array(n)) <= 90.0 * (1 + 1e-9)


def test_the_least_product_is_what_stages_with_a_free_first_number_can_do():
    assert least_product(stages([4.0, 9.0], [1.0, 1.0])) == approx(25.0)
    assert least_product(stages([9.0, 4.0], [1.0, 1.0])) == approx(26.0)  # one unit each: (9 + 4) (1 + 1)
    assert least_product(stages([4.0, 9.0], [1.0, 1.0], high=[INF, 1])) == approx(26.0)
    assert least_product(stages([0.0, 9.0], [5.0, 1.0])) == approx(9.0)


def test_ties_and_limits_do_not_depend_on_rounding():
    """0.1 + 0.2 buys what 0.3 buys, and of equal allocations the one with more coarse units is found."""
    layout = stages([1.0], [0.1])
    assert search(layout, cost=0.1 + 0.1 + 0.1) == search(layout, cost=0.3) == (3,)
    assert search(stages([1.0], [1.0]), variance=1.0 / 3.0 * (1 - 1e-16)) == (3,)
    assert search(stages([0.0, 1.0], [0.0, 1.0]), cost=7.0) == (7, 1)  # repeated, as it costs nothing
    assert search(stages([0.0, 0.0], [1.0, 1.0]), cost=7.0) == (1, 1)


def test_the_budget_of_ten_thousand_trainings_in_four_stages_is_kept():
    layouts = [
        stages([0.3, 0.16, 0.81, 0.04], [0.0, 50.0, 5.0, 1.0]),
        stages([1.0, 1.0, 1.0, 1.0], [8.0, 4.0, 2.0, 1.0]),
        stages([1.0, 1.0, 1.0, 1.0], [0.0, 0.0, 0.0, 1.0], high=[INF, 2, INF, 2]),
    ]
    for layout in layouts:
        found = search(layout, cost=10_000.0)
        assert layout.cost_of(np.array(found, dtype=float)) <= 10_000.0
