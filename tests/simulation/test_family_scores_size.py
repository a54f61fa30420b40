"""Families of benchmarks as the sample of single runs and of aggregate scores: coverage and false claims.

`python tests/simulation/test_family_scores_size.py [TABLES]` prints the table of docs/developers/benchmark-effects.md.
"""

from __future__ import annotations

import sys

import numpy as np
import pytest
from harness import covers, differs, printed, rate_of
from scipy import stats
from study import runs_of_scores

import lmemtest as lt
from lmemtest.bench.ranking.aggregates import aggregate_scores

MEASURES = ("mean", "iqm", "median")


def families_of(families: int, largest: int) -> np.ndarray:
    """The family of each benchmark, of which each has 1 to `largest`."""
    return np.repeat(np.arange(families), np.round(np.geomspace(1, largest, families)).astype(int))


def scores_of(rng: np.random.Generator, family: np.ndarray, share: float, advantage: float = 0.0) -> np.ndarray:
    """Three runs of two algorithms on each benchmark; their mean over families like these is 0, but for A's advantage.

    `share` is the variance of family:algorithm relative to that of benchmark:algorithm; their levels vary alike.
    """
    n = len(family)
    level = np.sqrt(share) * rng.normal(size=(family[-1] + 1, 2))[family] + rng.normal(size=(n, 2))
    return level[:, :, None] + [[advantage], [0.0]] + rng.normal(size=(n, 2, 3))


def with_and_without(scores: np.ndarray, family: np.ndarray) -> tuple[lt.Runs, lt.Runs]:
    """Runs with the role of the families, and without."""
    columns: tuple[dict, dict] = ({"family": family[:, None, None]}, {})
    return tuple(runs_of_scores(scores, direction="maximize", **column) for column in columns)


def of_single_runs(families: int, share: float, n: int, probability: float = 0.5) -> dict[str, float]:
    """Coverage of the 95 % intervals of the probability, by method; at 0.5 the rest are false claims."""
    family = families_of(families, 20)
    advantage = float(np.sqrt(2.0 * (share + 2.0)) * stats.norm.ppf(probability))  # differences of runs are normal
    options = {
        "paired": {},
        "percentile": {"method": "percentile", "n_draws": 400},
        "not paired": {"paired": False},
        "ignored": {},
    }

    def study(rng):
        named, plain = with_and_without(scores_of(rng, family, share, advantage), family)
        return {
            name: covers(
                lt.outperforming(
                    plain if name == "ignored" else named, algorithms=("A", "B"), rng=rng, **how
                ).table.iloc[0],
                probability,
            )
            for name, how in options.items()
        }

    return rate_of(study, n, [1, families, int(10 * share), int(100 * probability)])


def of_aggregates(families: int, share: float, n: int) -> dict[str, float]:
    """Coverage of the 95 % intervals of three measures and of the improvement, and false differences of two means."""
    family = families_of(families, 20)

    def study(rng):
        out = {}
        for runs, ignored in zip(
            with_and_without(scores_of(rng, family, share), family), ("", ", ignored"), strict=True
        ):
            scores = aggregate_scores(runs, list(MEASURES), resample="benchmarks", n_draws=500, rng=rng)
            out |= {f"{measure}{ignored}": covers(scores.of(measure), 0.0).mean() for measure in MEASURES}
            out[f"improvement{ignored}"] = covers(scores.improvement().table.iloc[0], 0.5)
            out[f"false difference{ignored}"] = differs(scores.estimates("iqm").pairs())
        return out

    return rate_of(study, n, [2, families, int(10 * share)])


def of_reliability(families: int, n: int) -> np.ndarray:
    """How often the 97.5 % lower limit of the reliability of four equal algorithms is above zero."""
    family, k = families_of(families, 12), 4

    def study(rng):
        level = np.sqrt(0.5) * rng.normal(size=(families, k))[family] + rng.normal(size=(len(family), k))
        y = (level + rng.normal(size=(len(family), 1)))[:, :, None] + rng.normal(size=(len(family), k, 2))
        return [lt.ranking_reliability(runs).ci_low > 0.0 for runs in with_and_without(y, family)]

    return rate_of(study, n, families)


@pytest.mark.parametrize("families", [8, 16])
@pytest.mark.parametrize("probability", [0.5, 0.75])
def test_intervals_of_the_probability_hold_it_in_new_families(families, probability):
    found = of_single_runs(families, 0.5, 200, probability)
    assert min(found["paired"], found["not paired"]) > 0.90
    assert found["ignored"] < found["paired"] - 0.1


@pytest.mark.parametrize("families", [8, 16])
def test_intervals_of_aggregates_hold_those_of_new_families(families):
    found = of_aggregates(families, 0.5, 200)
    assert min(found["mean"], found["iqm"]) > 0.87
    assert found["false difference"] < 0.11
    assert found["mean, ignored"] < found["mean"] - 0.1


@pytest.mark.parametrize("families", [8, 16])
def test_the_reliability_of_equal_algorithms_is_seldom_above_zero(families):
    named, ignored = of_reliability(families, 200)
    assert named < 0.065  # 0.025 and 3.6 standard errors
    assert ignored > 0.2


if __name__ == "__main__":
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    designs = [(families, share, n) for share in (0.5, 1.0, 0.0) for families in (8, 16)]
    print("families, share, tables[, P]")
    printed(of_single_runs, [(*design, p) for design in designs for p in (0.5, 0.75)])
    printed(of_aggregates, designs)
