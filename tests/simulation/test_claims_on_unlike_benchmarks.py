"""How often the headline of `analyze` promises a nominal level beside a false difference, where advantages are not
normal: few benchmarks of a larger world decide the means, or one algorithm has rare large losses.

Run as a program, it prints the rates (two minutes of one core).
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from harness import at_most, each, printed, rate_of
from study import runs_of_scores

import lmemtest as lt

N = 150


def normal(rng: np.random.Generator, benchmarks: int) -> np.ndarray:
    return rng.normal(size=(benchmarks, 5))


def world(rng: np.random.Generator, benchmarks: int) -> np.ndarray:
    """Tasks of a world of 33, two of which have advantages 13 times as large; the means over the world are equal."""
    tasks = np.random.default_rng(33).normal(size=(33, 5))
    tasks[:2] *= 13.0
    tasks -= tasks.mean(axis=0)
    return tasks[rng.integers(33, size=benchmarks)]


def losses(rng: np.random.Generator, benchmarks: int) -> np.ndarray:
    """The last algorithm gains a little on most benchmarks and loses much on one in ten."""
    y = 0.5 * rng.normal(size=(benchmarks, 5))
    y[:, -1] += 0.4 - 4.0 * (rng.random(benchmarks) < 0.1)
    return y


def rates(drawn, benchmarks: int) -> dict[str, float]:
    """Tables with a false difference; with one and no warning; with a warning that few decide, or of skew."""

    def study(rng):
        scores = rng.normal(size=(benchmarks, 1)) + drawn(rng, benchmarks)
        analysis = lt.analyze(runs_of_scores(scores, "benchmark algorithm", direction="maximize"))
        false = bool(analysis.decisions.significant.to_numpy().any())
        warned = analysis.shape.few_decide or analysis.shape.is_skewed
        return {"false": false, "unwarned": false and not warned, "warned": warned}

    return rate_of(study, N, each(benchmarks))


@pytest.mark.parametrize("benchmarks", [8, 20])
def test_few_benchmarks_that_decide_are_named_where_the_sample_holds_one(benchmarks):
    found = rates(world, benchmarks)
    assert found["false"] > 0.2  # the means of such samples mislead, most of all where they hold none
    assert found["warned"] >= 0.8 * (1.0 - (31 / 33) ** benchmarks)


def test_normal_advantages_keep_their_level_and_are_not_warned_about():
    found = rates(normal, 12)
    assert at_most(found["false"], N)
    assert at_most(found["warned"], N, 0.02)


def test_rare_losses_that_the_sample_holds_are_named():
    assert rates(losses, 20)["warned"] >= 0.6 * (1.0 - 0.9**20)


if __name__ == "__main__":
    for draw, n in itertools.product((normal, world, losses), (8, 12, 20)):
        printed(rates, {f"{draw.__name__} {n}": (draw, n)})
