"""Intervals of a leaderboard hold their level for what they claim: other benchmarks, or other runs on the same ones."""

from __future__ import annotations

import numpy as np
import pytest

from lmemtest.studies.ranking.blocks import Blocks
from lmemtest.studies.ranking.leaderboard import leaderboard_of
from lmemtest.studies.ranking.standings import MEASURES, Standings, tallies

pytestmark = pytest.mark.level(3)

DRAWS = {
    "normal": lambda rng, shape: rng.normal(size=shape),
    "heavy": lambda rng, shape: rng.standard_t(2, size=shape),
    "skewed": lambda rng, shape: rng.exponential(size=shape) ** 2,
    "ties": lambda rng, shape: np.round(2 * rng.normal(size=shape)) / 2,
}


def blocks(runs):
    """Of runs (benchmark, algorithm, run)."""
    n, k, _ = runs.shape
    names = tuple(map(str, range(n)))
    return Blocks(
        algorithms=tuple(f"{i:02d}" for i in range(k)),
        runs=runs,
        instances=names,
        block=np.arange(n),
        names=names,
        unit="benchmark",
        score="accuracy",
        direction="maximize",
    )


def truth(gains):
    """The measures on very many blocks."""
    sums = Standings.of(tallies(gains, np.zeros(len(gains))).sum(axis=0), gains.shape[1])
    return sums.measures(None)


def covered(found, want):
    """Whether each interval holds the truth, which is known to three digits, ``{measure: (k,)}``."""
    table = found.to_frame().sort_values("algorithm")
    size = {"elo": 0.5}
    return {
        name: (table[f"{name}_low"] <= want[name] + size.get(name, 1e-3))
        & (want[name] - size.get(name, 1e-3) <= table[f"{name}_high"])
        for name in MEASURES
    }


def over_benchmarks(kind, k, n, spread, tables, *, n_draws=500, seed=1, missing=0.0):
    """Shares of intervals that cover, by measure."""
    rng = np.random.default_rng(seed)
    effect = np.linspace(0.0, spread, k)
    want = truth(effect + DRAWS[kind](rng, (100_000 if k < 5 else 40_000, k)))
    hits = []
    for _ in range(tables):
        gains = effect + DRAWS[kind](rng, (n, k))
        gains[rng.random((n, k)) < missing] = np.nan
        hits.append(covered(leaderboard_of(blocks(gains[:, :, None]), n_draws=n_draws, rng=rng), want))
    return {name: float(np.mean([hit[name] for hit in hits])) for name in MEASURES}


def over_runs(k, n, r, noise, tables, *, n_draws=500, seed=2):
    """The same with the benchmarks fixed and other runs."""
    rng = np.random.default_rng(seed)
    level = np.linspace(0.0, 1.0, k) + rng.normal(size=(n, k))
    many = 4000 if k < 5 else 1500
    want = truth((level + noise / np.sqrt(r) * rng.normal(size=(many, n, k))).reshape(-1, k))
    hits = []
    for _ in range(tables):
        runs = level[:, :, None] + noise * rng.normal(size=(n, k, r))
        hits.append(covered(leaderboard_of(blocks(runs), n_draws=n_draws, resample="runs", rng=rng), want))
    return {name: float(np.mean([hit[name] for hit in hits])) for name in MEASURES}
