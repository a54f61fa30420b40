"""Copies are found by comparing only runs with equal curves: what each pair of all would say, in linear work."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
import pytest
from growth import calls, exponent, peak

import lmemtest as lt
from lmemtest.bench.checks.copies import _agreeing, _same_by_seed, copied_runs


def runs_of(algorithms: int, benchmarks: int, seeds: int, *, metafeatures: int = 0, items: bool = False) -> lt.Runs:
    rng = np.random.default_rng(0)
    a, b, s = (codes.ravel() for codes in np.indices((algorithms, benchmarks, seeds)))
    score = rng.normal(size=len(a))
    table = pd.DataFrame({"a": a, "b": b, "s": s, "y": (score > 0.5).astype(float) if items else score})
    names = [f"m{i}" for i in range(metafeatures)]
    table[names] = np.stack([100 + 37 * b + i for i in range(metafeatures)], axis=1) if names else None
    roles: dict[str, Any] = {"algorithm": "a", "benchmark": "b", "seed": "s", "metafeatures": names}
    return lt.Runs(table, score="y", direction="minimize", **roles)


def pair_by_pair(level: Any, slot: Any, curve: Any, share: float) -> list[tuple[int, int, int, int]]:
    """The rule, for every two levels."""
    wide = pd.DataFrame({"level": level, "slot": slot, "curve": curve}).pivot(
        index="slot", columns="level", values="curve"
    )
    out = []
    for left, right in combinations(sorted(wide), 2):
        both = wide[[left, right]].dropna()
        same = both[left] == both[right]
        if same.sum() >= share * len(both) and both[left][same].nunique() >= 5:
            out.append((left, right, len(both), int(same.sum())))
    return out


@pytest.mark.parametrize("share", [0.5, 0.9])
def test_pairs_that_share_curves_are_those_of_a_comparison_pair_by_pair(share: float) -> None:
    found = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        n_levels, n_slots = int(rng.integers(2, 9)), int(rng.integers(5, 30))
        wide = rng.integers(0, rng.choice([3, 12, 400]), (n_levels, n_slots))
        copied = rng.random(n_slots) < rng.choice([0.6, 0.95, 1.0])
        wide[-1, copied] = wide[0, copied]
        level, slot = np.nonzero(rng.random(wide.shape) < rng.choice([0.8, 1.0]))
        want = pair_by_pair(level, slot, wide[level, slot], share)
        assert sorted(_same_by_seed(level, slot, wide[level, slot], share)) == want
        found += len(want)
    assert found > 10


@pytest.mark.parametrize("scale", [1, 10**6])  # both precisions of the sums
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_rows_that_agree_are_those_of_a_comparison_pair_by_pair(missing: float, scale: int) -> None:
    rng = np.random.default_rng(1)
    codes = scale * rng.integers(0, 2, (40, 6))
    codes[rng.random(codes.shape) < missing] = -1
    want = [
        (i, j)
        for i, j in combinations(range(40), 2)
        if all(x == y or min(x, y) < 0 for x, y in zip(codes[i], codes[j], strict=True))
    ]
    assert sorted(_agreeing(codes)) == want
    assert want


@pytest.mark.parametrize(
    "shape",
    [{"benchmarks": 50, "seeds": 2, "metafeatures": 1}, {"benchmarks": 200, "seeds": 1, "items": True}],
    ids=["metafeature", "items"],
)
def test_the_work_is_linear_in_benchmarks(shape: dict[str, Any]) -> None:
    small, large = runs_of(5, **shape), runs_of(5, **shape | {"benchmarks": 4 * shape["benchmarks"]})
    for measure in (calls, peak):
        assert exponent(measure, lambda: copied_runs(small), lambda: copied_runs(large)) < 1.1


def test_a_metafeature_that_an_algorithm_ignores_is_found_among_many() -> None:
    """One of 300 levels repeats another's runs on the same benchmarks."""
    rng = np.random.default_rng(2)
    b, m = (codes.ravel() for codes in np.indices((8, 300)))
    score = rng.normal(size=(8, 300))
    score[:, 250] = score[:, 17]
    table = pd.DataFrame({"a": "x", "b": b, "m": m, "y": score.ravel()})
    table = pd.concat([table, table.assign(a="z", y=rng.normal(size=len(table)))])
    runs = lt.Runs(table, score="y", direction="minimize", algorithm="a", benchmark="b", metafeatures=["m"])
    rows = copied_runs(runs).table
    assert rows.values.tolist() == [["metafeature", "17", "250", "x", 8, 8, 1.0]]
