"""Size and power of the tests of equal variances of the algorithms: likelihood ratio, and exchanges in `diagnose`."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from harness import answers_of
from study import NAMES, table_of_scores

import lmemtest as lt
from lmemtest.lmm.diagnostics.advantages import _apart, exchange_p, spreads

EQUAL = "y ~ algorithm + (1 | benchmark) + (1 | benchmark:algorithm)"
SPREAD = "y ~ algorithm + (1 | benchmark) + diag(algorithm | benchmark)"
RUNS = 5
KINDS = ("alike", "t3", "t2", "scales", "outlier", "erratic5", "erratic3", "grades")


def means(kind: str, benchmarks: int, algorithms: int, rng: np.random.Generator) -> np.ndarray:
    """Means of five runs of each algorithm on each benchmark, whose advantages have a standard deviation of 0.5."""
    shape = benchmarks, algorithms
    advantage = 0.5 * rng.standard_normal(shape)
    if kind in ("t2", "t3"):
        advantage = 0.3 * rng.standard_t(int(kind[1]), shape)
    elif kind == "scales":
        advantage *= np.geomspace(0.2, 5.0, benchmarks)[:, None]
    elif kind == "outlier":
        advantage[0] *= 10.0
    elif kind == "grades":
        advantage *= np.linspace(0.4, 2.4, algorithms)
    elif kind.startswith("erratic"):
        advantage[:, -1] *= float(kind[-1])
    return rng.standard_normal((benchmarks, 1)) + advantage + 0.5 / np.sqrt(RUNS) * rng.standard_normal(shape)


def both_fits(kind: str, benchmarks: int, algorithms: int, n: int, seed: int) -> Iterator[tuple[lt.LmmFit, lt.LmmFit]]:
    """The models with equal and with unequal variances of tables of five runs per cell."""
    rng = np.random.default_rng(seed)
    table = table_of_scores(rng.normal(size=(benchmarks, algorithms, RUNS)), score="y")
    table = table.drop(columns="seed").assign(benchmark=table["benchmark"].astype(str))
    fits = [lt.fit_lmm(formula, table) for formula in (EQUAL, SPREAD)]
    frames = [fit.cells.frame for fit in fits]
    places = [(f["benchmark"].astype(int), np.searchsorted(NAMES, f["algorithm"].astype(str))) for f in frames]
    for _ in range(n):
        y = means(kind, benchmarks, algorithms, rng)
        ss = 0.25 * rng.chisquare(RUNS - 1, y.shape)
        cells = [replace(f.cells, mean=y[p], ss=ss[p]) for f, p in zip(fits, places, strict=True)]
        start = np.ones(2), np.ones(1 + algorithms)
        equal, spread = (f.refit(cells=c, theta_start=s) for f, c, s in zip(fits, cells, start, strict=True))
        yield equal, spread


def likelihood_ratios(kind: str, benchmarks: int, algorithms: int, n: int, seed: int) -> np.ndarray:
    """p-values of `glrt`."""
    return np.array([lt.glrt(*pair).p_value for pair in both_fits(kind, benchmarks, algorithms, n, seed)])


def exchanges(kind: str, benchmarks: int, algorithms: int, n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """p-values of the exchanges, and ratios of the spreads, with a tenth of the cells missing in every second table."""
    places = itertools.count()

    def study(rng):
        y = means(kind, benchmarks, algorithms, rng)
        if next(places) % 2 and benchmarks > 6:
            y[np.arange(benchmarks) % 5 == 0, rng.integers(algorithms)] = np.nan
        return exchange_p(y, rng=rng, exchanges=199), _apart(spreads(y))[1]

    return np.transpose(answers_of(study, n, seed))


def at_most(p: np.ndarray, level: float, rate: float) -> bool:
    """Whether the share of rejections is at most a rate, with three standard errors for chance."""
    return float((p <= level).mean()) <= rate + 3.0 * np.sqrt(rate * (1.0 - rate) / len(p))


def test_the_likelihood_ratio_keeps_its_size_and_finds_an_erratic_algorithm():
    assert at_most(likelihood_ratios("alike", 12, 6, 80, seed=1), 0.05, 0.06)
    assert (likelihood_ratios("erratic5", 12, 6, 20, seed=2) < 0.05).mean() >= 0.9


@pytest.mark.parametrize("kind", ["alike", "t3", "scales"])
def test_exchanges_keep_their_size_under_heavy_tails_and_unequal_benchmarks(kind):
    p, _ = exchanges(kind, 12, 6, 200, seed=3)
    assert at_most(p, 0.05, 0.05)


def test_exchanges_find_an_erratic_algorithm():
    p, ratio = exchanges("erratic5", 12, 6, 60, seed=4)
    assert (p <= 0.05).mean() >= 0.9
    assert 3.0 < np.median(ratio) < 8.0


@pytest.mark.parametrize(("benchmarks", "algorithms"), [(6, 3), (6, 6), (12, 3), (12, 6), (12, 15), (30, 6)])
def test_size_of_the_likelihood_ratio(benchmarks, algorithms):
    assert at_most(likelihood_ratios("alike", benchmarks, algorithms, 400, seed=5), 0.05, 0.06)


@pytest.mark.parametrize(
    ("kind", "benchmarks", "power"),
    [("erratic5", 6, 0.8), ("erratic5", 12, 0.98), ("erratic3", 6, 0.4), ("erratic3", 12, 0.8), ("grades", 12, 0.6)],
)
def test_power_of_the_likelihood_ratio(kind, benchmarks, power):
    assert (likelihood_ratios(kind, benchmarks, 6, 200, seed=6) < 0.05).mean() >= power


@pytest.mark.parametrize(("benchmarks", "rate"), [(6, 0.09), (12, 0.06)])
def test_pairs_in_the_model_that_the_test_chooses_keep_their_size_from_12_benchmarks_on(benchmarks, rate):
    smallest = []
    for equal, spread in both_fits("erratic3", benchmarks, 6, 250, seed=21):
        chosen = spread if lt.glrt(equal, spread).p_value < 0.1 else equal
        smallest.append(chosen.emmeans("algorithm").pairs().to_frame()["p_value"].min())
    assert at_most(np.array(smallest), 0.05, rate)


@pytest.mark.parametrize("kind", ["alike", "t3", "t2", "scales", "outlier"])
@pytest.mark.parametrize(("benchmarks", "algorithms"), [(6, 3), (6, 6), (12, 3), (12, 6), (12, 15), (30, 6)])
def test_size_of_the_exchanges(kind, benchmarks, algorithms):
    p, ratio = exchanges(kind, benchmarks, algorithms, 1000, seed=7)
    assert at_most(p, 0.05, 0.07 if algorithms == 3 else 0.05)
    assert at_most(np.where(ratio >= 2.0, p, 1.0), 0.05, 0.07 if algorithms == 3 else 0.05)


@pytest.mark.parametrize(
    ("kind", "benchmarks", "power"), [("erratic5", 6, 0.7), ("erratic5", 12, 0.95), ("grades", 12, 0.6)]
)
def test_power_of_the_exchanges(kind, benchmarks, power):
    p, _ = exchanges(kind, benchmarks, 6, 400, seed=8)
    assert (p <= 0.05).mean() >= power


def test_equal_variances_are_rejected_in_most_subsets_of_the_bundled_runs():
    everything = lt.datasets.load_hpo_runs()
    ratio, exchanged = 0, 0
    for prior in ("good", "bad"):
        for budget in (2, 8, 32):
            runs = everything.filter(prior=prior, budget=budget)
            for scale in (None, "rank", "regret", "minmax"):
                table = runs if scale is None else runs.normalize(scale)
                equal = lt.ModelBuilder(table).recommended()
                ratio += equal.compare(equal.random("benchmark", by="algorithm")).p_value < 0.05
                exchanged += equal.fit().diagnose(influence=False, rng=1, n_draws=99).advantages.p_value < 0.05
    assert (ratio, exchanged) == (18, 17)
