"""Coverage of intervals of P(A > B): exact for pairs, simulated for runs that are not paired and over benchmarks."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special, stats

from lmemtest.studies.outperforming.duels import Duel, together
from lmemtest.studies.outperforming.intervals import PAIRED, coverage, logit_interval
from lmemtest.studies.outperforming.replicability import better_on

pytestmark = pytest.mark.level(3)

SIZES, PROBABILITIES, TIES = (5, 10, 29, 50, 100), (0.5, 0.75, 0.9, 0.99), (0.0, 0.3, 0.8)


def possible(probability: float, ties: float) -> bool:
    return ties <= 2 * min(probability, 1 - probability) + 1e-12


def exact_table() -> dict[str, dict[tuple[int, float, float], float]]:
    """Coverage by method, and number of pairs, probability and share of ties."""
    cells = [(n, p, t) for t in TIES for n in SIZES for p in PROBABILITIES if possible(p, t)]
    return {method: {cell: coverage(*cell, method) for cell in cells} for method in PAIRED}


def test_the_score_interval_is_nearest_to_its_level():
    table = exact_table()
    for method, cells in table.items():
        values = np.array(list(cells.values()))
        print(f"{method:10} mean {values.mean():.3f} least {values.min():.3f}, off by {abs(values - 0.95).mean():.3f}")
    off = {method: np.mean([abs(c - 0.95) for c in cells.values()]) for method, cells in table.items()}
    assert min(off, key=off.get) == "score"
    assert min(table["score"].values()) > 0.9
    assert min(table["exact"].values()) >= 0.95
    assert min(table["percentile"].values()) < 0.1  # P = 0.99, five pairs


def test_exact_intervals_are_conservative_whatever_the_ties():
    for ties in np.linspace(0.0, 0.9, 10):
        for p in np.linspace(0.5 * ties, 1 - 0.5 * ties, 11):
            assert min(coverage(n, float(p), float(ties), "exact") for n in (2, 3, 7, 15)) >= 0.95 - 1e-9


@pytest.mark.parametrize(
    ("n", "m", "p", "spread", "least", "most"),
    [
        (10, 10, 0.5, 1.0, 0.94, 0.98),
        (10, 10, 0.9, 1.0, 0.94, 0.99),
        (30, 10, 0.75, 3.0, 0.93, 0.98),
        (50, 50, 0.99, 1.0, 0.93, 1.0),
        (5, 5, 0.75, 1.0, 0.93, 1.0),
    ],
)
def test_coverage_of_the_logit_interval(n, m, p, spread, least, most):
    rng = np.random.default_rng(1)
    shift = special.ndtri(p) * np.sqrt(1 + spread**2)
    held, count = 0, 2000
    for _ in range(count):
        a, b = rng.normal(shift, 1.0, n), rng.normal(0.0, spread, m)
        low, high = logit_interval(np.sign(a[:, None] - b))
        held += low <= p <= high
    print(f"logit n={n} m={m} P={p}: {held / count:.3f}")
    assert least - 0.01 <= held / count <= most + 0.01


def duels(rng, count, benchmarks, pairs, mean, sd):
    """Benchmarks whose probabilities are normal on the probit scale, and pairs within them."""
    for _ in range(count):
        p = special.ndtr(mean + sd * rng.normal(size=benchmarks))
        yield p, Duel(tuple(map(str, range(benchmarks))), [np.where(rng.random(pairs) < q, 1.0, -1.0) for q in p], [])


@pytest.mark.parametrize("benchmarks", [3, 5, 10, 20])
@pytest.mark.parametrize("sd", [0.0, 0.5, 1.5])
def test_coverage_over_benchmarks(benchmarks, sd):
    rng = np.random.default_rng(2)
    mean, count = 0.6, 300
    truth = float(special.ndtr(mean / np.sqrt(1 + sd**2)))
    held = {"mixed": 0, "percentile": 0}
    for _, duel in duels(rng, count, benchmarks, 10, mean, sd):
        for method in held:
            _, low, high = together(duel, method, True, 0.95, 999, rng)
            held[method] += low <= truth <= high
    rates = {method: hits / count for method, hits in held.items()}
    print(f"N={benchmarks} sd={sd}: {rates}")
    # few benchmarks that differ much: 84 % with three, 92 % with five; else the level less three standard errors
    assert rates["mixed"] >= {(3, 1.5): 0.78, (5, 1.5): 0.87}.get((benchmarks, sd), 0.91)
    if benchmarks == 3 and sd:
        assert rates["percentile"] < rates["mixed"]


@pytest.mark.parametrize("better", [0, 4, 8])
def test_no_more_benchmarks_are_counted_than_there_are(better):
    rng = np.random.default_rng(3)
    p = np.where(np.arange(10) < better, 0.9, 0.5)
    too_many, counted, runs = {"bonferroni": 0, "fisher": 0}, 0, 2000
    for _ in range(runs):
        wins = rng.binomial(30, p)
        p_values = stats.binom.sf(wins - 1, 30, 0.5)
        for combine in too_many:
            too_many[combine] += better_on(p_values, combine, 0.05) > better
        counted += better_on(p_values, "bonferroni", 0.05)
    rates = {name: times / runs for name, times in too_many.items()}
    print(f"better on {better} of 10: counted {counted / runs:.1f}, too many {rates}")
    assert max(rates.values()) <= 0.05 + 0.015
