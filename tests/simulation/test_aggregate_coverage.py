"""Intervals of aggregate scores: how often they cover what other runs, or other benchmarks, would give.

Ten benchmarks whose levels vary as much as the runs on them, normal or lognormal. Run as a program, it prints the table
of docs/developers/leaderboards.md:

    python tests/simulation/test_aggregate_coverage.py
"""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np
import pytest
from harness import about, answers_of, printed
from study import blocks_of_scores

from lmemtest.bench.ranking.aggregates import MEASURES, measures_of, middle
from lmemtest.bench.ranking.resampling import Resampling, intervals

SIZE, MANY, DRAWS = 10, 20_000, 500
NAMES = tuple(MEASURES)
values_of = partial(measures_of, names=NAMES, threshold=1.0, direction="maximize")


def noise(rng, size, kind):
    x = rng.normal(size=size)
    return x if kind == "normal" else np.exp(x) - np.exp(0.5)


def table(scores, unit="runs", drawn="n-1", seed=0):
    """Draws of the (benchmarks, runs) scores of one algorithm."""
    return Resampling(blocks_of_scores(scores[:, None, :]), unit, drawn, DRAWS, seed)


def coverage(kind, runs, unit, drawn, method, n, seed=1):
    """Share of the intervals that cover, by measure."""
    rng = np.random.default_rng(seed)
    levels = noise(rng, (SIZE, 1), kind)
    if unit == "runs":
        many = table(levels + noise(rng, (SIZE, MANY), kind))
    else:
        many = table(noise(rng, (MANY, 1), kind) + noise(rng, (MANY, 50), kind))
    truth = values_of(*many.observed(0), cut=middle(many.blocks, 0))[0]
    numbers = itertools.count()

    def study(rng):
        here = noise(rng, (SIZE, 1), kind) if unit == "benchmarks" else levels
        draws = table(here + noise(rng, (SIZE, runs), kind), unit, drawn, next(numbers))
        estimate, values, without = draws.of(partial(values_of, cut=middle(draws.blocks, 0)), 0)
        low, high = intervals(values, estimate, without, method, 0.95)
        return (low <= truth) & (truth <= high)

    return dict(zip(NAMES, np.mean(answers_of(study, n, rng), axis=0).tolist(), strict=True))


# Measured with 1,000 tables, percentile intervals of the interquartile mean.
MEASURED = {
    ("normal", 5, "runs", "n-1"): 0.942,
    ("normal", 5, "runs", "n"): 0.914,
    ("normal", 5, "benchmarks", "n-1"): 0.950,
    ("normal", 20, "runs", "n-1"): 0.944,
    ("normal", 20, "runs", "n"): 0.939,
    ("normal", 20, "benchmarks", "n-1"): 0.929,
    ("skewed", 5, "runs", "n-1"): 0.933,
    ("skewed", 5, "runs", "n"): 0.909,
    ("skewed", 5, "benchmarks", "n-1"): 0.942,
    ("skewed", 20, "runs", "n-1"): 0.947,
    ("skewed", 20, "runs", "n"): 0.936,
    ("skewed", 20, "benchmarks", "n-1"): 0.911,
}


@pytest.mark.parametrize("case", MEASURED)
def test_intervals_of_the_interquartile_mean_cover_as_often_as_the_page_says(case):
    assert about(coverage(*case, "percentile", 400, seed=2)["iqm"], 400, MEASURED[case])


if __name__ == "__main__":
    methods = ("percentile", "basic", "bca")
    printed(
        partial(coverage, n=1000),
        itertools.product(("normal", "skewed"), (3, 5, 20), ("runs", "benchmarks"), ("n-1", "n"), methods),
    )
