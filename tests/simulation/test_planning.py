"""Scores drawn from components: the standard errors of plans, and what a plan from a small pilot loses."""

from __future__ import annotations

import math

import numpy as np
import pytest

from lmemtest.bench.power.plan import plan
from lmemtest.bench.power.variance_components import VarianceComponents

N = 20_000
LARGE_DATA = {"tuning": 0.4, "data": 0.9, "seed": 0.3}
LARGE_TUNING = {"tuning": 0.9, "data": 0.5, "seed": 0.5}


def means(rng, sds, counts, n=N):
    """Means of n studies, score by score: every unit of a stage adds an effect that all below it share."""
    shape, total = (n,), 0.0
    sizes = list(counts)
    for i, sd in enumerate(sds):
        shape = (n, *sizes[: i + 1])
        effect = rng.normal(scale=sd, size=shape)
        total = total + effect.reshape(shape + (1,) * (len(sizes) - i - 1))
    return np.asarray(total).reshape(n, -1).mean(axis=1)


def is_the_standard_error(drawn, said):
    """Within four standard errors of the standard deviation of normal means."""
    assert abs(drawn.std(ddof=1) / said - 1.0) < 4.0 / math.sqrt(2.0 * len(drawn))


@pytest.mark.parametrize("components", [LARGE_DATA, LARGE_TUNING])
def test_the_standard_error_of_a_mean_is_what_the_plan_says(components):
    rng = np.random.default_rng(1)
    found = plan(components, budget=400, trials=50, current={"seed": 3})
    for row in found.to_frame().to_dict("records"):
        counts = [row[f"n_{name}"] for name in found.names]
        drawn = means(rng, components.values(), counts)
        print(row["allocation"], counts, round(row["standard_error"], 4), round(float(drawn.std(ddof=1)), 4))
        is_the_standard_error(drawn, row["standard_error"])


def test_the_standard_error_of_a_difference_is_what_the_plan_says_and_shared_splits_cancel():
    rng = np.random.default_rng(2)
    sources = {"tuning": 0.4, "data": 0.9}
    components = VarianceComponents(interaction_sd=0.5, residual_sd=0.3, seed_sd=0.2, sources=sources)
    found = plan(components, n_algorithms=2, budget=4000, trials=50, at_most={"benchmark": 8}, shared={"data": 0.75})
    counts = list(found.best.values())
    own, shared = (0.5, 0.4, 0.9 * math.sqrt(0.25), 0.3), (0.0, 0.0, 0.9 * math.sqrt(0.75), 0.2)
    both = means(rng, shared, counts, n=4000)  # splits and seeds that both algorithms meet
    a, b = (both + means(rng, own, counts, n=4000) for _ in range(2))
    print(counts, found.standard_error(found.best), (a - b).std(ddof=1))
    is_the_standard_error(a - b, found.standard_error(found.best))


@pytest.mark.parametrize("components", [LARGE_DATA, LARGE_TUNING])
def test_a_plan_from_a_small_pilot_loses_little(components):
    """Each variance from m runs that differ in one source alone; loss: standard error against the best plan's."""
    rng = np.random.default_rng(3)
    truth = plan(components, budget=1000, trials=50)
    best = truth.standard_error(truth.best)
    habit = truth.standard_error({"seed": 950}) / best, truth.standard_error({"data": 950}) / best
    print(components, "more seeds, more splits in place of tuning runs:", np.round(habit, 2))
    for m, limit in {5: 0.08, 10: 0.05, 20: 0.02}.items():
        losses, claims = [], []
        for _ in range(300):
            estimates = {k: sd * math.sqrt(rng.chisquare(m - 1) / (m - 1)) for k, sd in components.items()}
            found = plan(estimates, budget=1000, trials=50)
            error = truth.standard_error(found.best)
            losses.append(error / best - 1.0)
            claims.append(found.standard_error(found.best) / error)
        print(m, np.quantile(losses, [0.5, 0.9, 1.0]).round(3), "claimed:", np.quantile(claims, [0.05, 0.95]).round(2))
        assert 0.0 <= np.quantile(losses, 0.9) < limit
        assert min(losses) > -1e-9
