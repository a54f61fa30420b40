"""Families of benchmarks as the sample of single runs and of aggregate scores: coverage and false claims.

`python tests/simulation/test_family_scores_size.py [TABLES]` prints the table of docs/families.md.
"""

from __future__ import annotations

import sys
import warnings
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import lmemtest as lt
from lmemtest.bench.ranking.aggregates import AggregateScores, aggregate_scores

pytestmark = pytest.mark.level(3)
SEEDS = 3


@dataclass(frozen=True)
class Design:
    """Two algorithms with three runs on each benchmark of families of 1 to 20; their levels vary alike."""

    families: int
    share: float  # variance of family:algorithm relative to that of benchmark:algorithm

    def table(self, rng: np.random.Generator, advantage: float = 0.0) -> pd.DataFrame:
        """Scores whose mean over families like these is 0, but for the advantage of A."""
        sizes = np.round(np.geomspace(1, 20, self.families)).astype(int)
        family = np.repeat(np.arange(self.families), sizes)
        n = len(family)
        level = np.sqrt(self.share) * rng.normal(size=(self.families, 2))[family] + rng.normal(size=(n, 2))
        y = level[:, :, None] + [[advantage], [0.0]] + rng.normal(size=(n, 2, SEEDS))
        space, task = (np.repeat([f"{letter}{i}" for i in which], 2 * SEEDS) for letter, which in
                       (("s", family), ("t", range(n))))  # fmt: skip
        tool, seed = np.tile(np.repeat(["A", "B"], SEEDS), n), np.tile(range(SEEDS), 2 * n)
        return pd.DataFrame({"space": space, "task": task, "tool": tool, "seed": seed, "score": y.ravel()})

    def advantage(self, probability: float) -> float:
        """Of A, for which its runs are better with this probability: their difference is normal."""
        return float(np.sqrt(2.0 * (self.share + 2.0)) * stats.norm.ppf(probability))


def runs_of(table: pd.DataFrame, family: str | None = "space") -> lt.Runs:
    roles = {"score": "score", "direction": "maximize", "algorithm": "tool", "benchmark": "task", "seed": "seed"}
    return lt.Runs(table, family=family, **roles)


def holds(row: pd.Series, truth: float) -> bool:
    return bool(row["ci_low"] <= truth <= row["ci_high"])


def of_single_runs(design: Design, n: int, probability: float = 0.5) -> dict[str, float]:
    """Coverage of the 95 % intervals of the probability, by method; at 0.5 the rest are false claims."""
    rng = np.random.default_rng([1, design.families, int(10 * design.share), int(100 * probability)])
    found: dict[str, list[bool]] = {}
    for _ in range(n):
        table = design.table(rng, design.advantage(probability))
        for name, family, options in (
            ("paired", "space", {}),
            ("percentile", "space", {"method": "percentile", "n_draws": 400}),
            ("not paired", "space", {"paired": False}),
            ("ignored", None, {}),
        ):
            over = lt.outperforming(runs_of(table, family), algorithms=("A", "B"), rng=rng, **options)
            found.setdefault(name, []).append(holds(over.table.iloc[0], probability))
    return {name: float(np.mean(values)) for name, values in found.items()}


def of_aggregates(design: Design, n: int, n_draws: int = 500) -> dict[str, float]:
    """Coverage of the 95 % intervals of three measures and of the improvement, and false differences of two means."""
    rng = np.random.default_rng([2, design.families, int(10 * design.share)])
    found: dict[str, list[float]] = {}
    for _ in range(n):
        table = design.table(rng)
        for name, family in (("", "space"), (", ignored", None)):
            scores = aggregate_scores(
                runs_of(table, family), ["mean", "iqm", "median"], resample="benchmarks", n_draws=n_draws, rng=rng
            )
            for key, value in _of(scores).items():
                found.setdefault(f"{key}{name}", []).append(value)
    return {name: float(np.mean(values)) for name, values in found.items()}


def of_reliability(families: int, n: int) -> dict[str, float]:
    """How often the 97.5 % lower limit of the reliability of four equal algorithms is above zero."""
    rng, k = np.random.default_rng(families), 4
    sizes = np.round(np.geomspace(1, 12, families)).astype(int)
    family = np.repeat(np.arange(families), sizes)
    names = {"space": [f"s{i}" for i in family], "task": [f"t{i}" for i in range(len(family))]}
    found: dict[str, list[bool]] = {"families": [], "ignored": []}
    for _ in range(n):
        level = np.sqrt(0.5) * rng.normal(size=(families, k))[family] + rng.normal(size=(len(family), k))
        y = (level + rng.normal(size=(len(family), 1)))[:, :, None] + rng.normal(size=(len(family), k, 2))
        table = pd.DataFrame({name: np.repeat(values, 2 * k) for name, values in names.items()})
        table["tool"] = np.tile(np.repeat(list("ABCD"), 2), len(family))
        table = table.assign(seed=np.tile([0, 1], len(family) * k), score=y.ravel())
        for name, role in (("families", "space"), ("ignored", None)):
            found[name].append(lt.ranking_reliability(runs_of(table, role)).ci_low > 0.0)
    return {name: float(np.mean(values)) for name, values in found.items()}


def _of(scores: AggregateScores) -> dict[str, float]:
    covers = {
        measure: np.mean([holds(row, 0.0) for _, row in scores.of(measure).iterrows()]) for measure in scores.measures
    }
    improvement = holds(scores.improvement().table.iloc[0], 0.5)
    different = scores.estimates("iqm").pairs().to_frame()["p_value"].iloc[0] < 0.05
    return {**covers, "improvement": float(improvement), "false difference": float(different)}


@pytest.mark.parametrize("families", [8, 16])
@pytest.mark.parametrize("probability", [0.5, 0.75])
def test_intervals_of_the_probability_hold_it_in_new_families(families, probability):
    found = of_single_runs(Design(families, 0.5), 200, probability)
    assert min(found["paired"], found["not paired"]) > 0.90
    assert found["ignored"] < found["paired"] - 0.1


@pytest.mark.parametrize("families", [8, 16])
def test_intervals_of_aggregates_hold_those_of_new_families(families):
    found = of_aggregates(Design(families, 0.5), 200)
    assert min(found["mean"], found["iqm"]) > 0.87
    assert found["false difference"] < 0.11
    assert found["mean, ignored"] < found["mean"] - 0.1


@pytest.mark.parametrize("families", [8, 16])
def test_the_reliability_of_equal_algorithms_is_seldom_above_zero(families):
    found = of_reliability(families, 200)
    assert found["families"] < 0.065  # 0.025 and 3.6 standard errors
    assert found["ignored"] > 0.2


if __name__ == "__main__":
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    warnings.simplefilter("ignore")
    for design in [Design(f, s) for s in (0.5, 1.0, 0.0) for f in (8, 16)]:
        results = {p: of_single_runs(design, n, p) for p in (0.5, 0.75)} | {"aggregates": of_aggregates(design, n)}
        for name, result in results.items():
            print(design, name, {key: round(100 * share, 1) for key, share in result.items()}, flush=True)
