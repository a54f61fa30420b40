"""The best numbers of units of nested stages: every allocation, Cochran's formula, a numerical optimiser."""

from __future__ import annotations

import itertools
import math
import time

import numpy as np
import pytest
from pytest import approx
from scipy import optimize

from lmemtest.bench.power.stages import Stages, continuous, least_product, search

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


def test_four_stages_and_ten_thousand_trainings_take_less_than_fifty_milliseconds():
    layouts = [
        stages([0.3, 0.16, 0.81, 0.04], [0.0, 50.0, 5.0, 1.0]),
        stages([1.0, 1.0, 1.0, 1.0], [8.0, 4.0, 2.0, 1.0]),
        stages([1.0, 1.0, 1.0, 1.0], [0.0, 0.0, 0.0, 1.0], high=[INF, 2, INF, 2]),
    ]
    for layout in layouts:
        seconds = []
        for _ in range(3):
            start = time.perf_counter()
            found = search(layout, cost=10_000.0)
            seconds.append(time.perf_counter() - start)
        assert min(seconds) < 0.05
        assert layout.cost_of(np.array(found, dtype=float)) <= 10_000.0
