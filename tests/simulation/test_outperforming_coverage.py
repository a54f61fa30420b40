"""Coverage of intervals of P(A > B): exact for pairs, simulated for runs that are not paired and over benchmarks."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from exact_coverage import coverage
from harness import at_most, rate_of
from scipy import special, stats

from lmemtest.bench.outperforming.intervals import PAIRED, UStatistic, counts_of
from lmemtest.bench.outperforming.pairs import all_against_all, better_on, together
from lmemtest.bench.outperforming.verdict import MEANINGFUL, POSSIBLY_MEANINGFUL, conclusions

SIZES, PROBABILITIES, TIES = (5, 10, 29, 50, 100), (0.5, 0.75, 0.9, 0.99), (0.0, 0.3, 0.8)


def possible(probability: float, ties: float) -> bool:
    return ties <= 2 * min(probability, 1 - probability) + 1e-12


def exact_table() -> dict[str, dict[tuple[int, float, float], float]]:
    """Coverage by method, and number of pairs, probability and share of ties."""
    cells = [(n, p, t) for t in TIES for n in SIZES for p in PROBABILITIES if possible(p, t)]
    return {method: {cell: coverage(*cell, method) for cell in cells} for method in PAIRED}


def test_the_score_interval_is_nearest_to_its_level():
    table = exact_table()
    off = {method: np.mean([abs(c - 0.95) for c in cells.values()]) for method, cells in table.items()}
    assert min(off, key=off.get) == "score"
    assert min(table["score"].values()) > 0.9
    assert min(table["exact"].values()) >= 0.95
    assert min(table["percentile"].values()) < 0.1  # P = 0.99, five pairs


def test_exact_intervals_are_conservative_whatever_the_ties():
    for ties in np.linspace(0.0, 0.9, 10):
        for p in np.linspace(0.5 * ties, 1 - 0.5 * ties, 11):
            assert min(coverage(n, float(p), float(ties), "exact") for n in (2, 3, 7, 15)) >= 0.95 - 1e-9


def samples(rng, family: str, p: float, n: int, m: int):
    """Runs of A and B of which A is better with probability p: normal, A three times as wide, exponential."""
    if family == "exponential":
        return rng.exponential(p / (1 - p), n), rng.exponential(1.0, m)
    spread = {"normal": 1.0, "wide": 3.0}[family]
    return rng.normal(special.ndtri(p) * np.sqrt(1 + spread**2), spread, n), rng.normal(0.0, 1.0, m)


@pytest.mark.parametrize(("n", "m"), [(5, 5), (10, 10), (20, 20), (50, 50), (5, 20)])
@pytest.mark.parametrize("family", ["normal", "wide", "exponential"])
def test_coverage_of_runs_that_are_not_paired(n, m, family):
    rates = {}
    rng = np.random.default_rng(1)
    for p in (0.5, 0.75, 0.9, 0.98, 0.99, 0.999):

        def study(rng, p=p):
            a, b = samples(rng, family, p, n, m)
            found = UStatistic.of(np.sign(a[:, None] - b))
            limits = (found.score_interval(0.95), found.logit_interval(0.95))
            return [low <= p <= high for low, high in limits]

        rates[p] = rate_of(study, 1500, rng)
    assert min(score for score, _ in rates.values()) >= 0.94 - 0.015
    if (n, family) == (50, "wide"):
        assert rates[0.98][1] < 0.9  # nearly apart: DeLong's variance is too small


def of_pairs(signs):
    """Two algorithms with the signs of the differences of their pairs, by benchmark."""
    return counts_of(signs)[:, None], None, None


def of_samples(samples):
    """Two algorithms with their runs, by benchmark."""
    gains = np.full((len(samples), 2, max(x.size for pair in samples for x in pair)), np.nan)
    for i, pair in enumerate(samples):
        for side, x in enumerate(pair):
            gains[i, side, : x.size] = x
    own = gains, np.arange(len(samples))[None], np.array([0]), np.array([1])
    return *all_against_all(own), own


def rates_over_benchmarks(draw, truth: float, count: int, seed: int) -> dict[str, float]:
    """Coverage by method, and the mean width of the mixed interval; `draw` makes two algorithms on benchmarks."""

    def study(rng):
        duel, out = draw(rng), {}
        for method in ("mixed", "percentile"):
            _, low, high = (float(x[0]) for x in together(*duel, None, method=method, level=0.95, n_draws=999, rng=rng))
            out |= {method: low <= truth <= high, f"{method} width": high - low}
        return out

    rates = rate_of(study, count, seed)
    assert rates["mixed"] >= 0.92 - 0.04  # three standard errors
    return rates


@pytest.mark.parametrize("benchmarks", [3, 5, 10, 20])
@pytest.mark.parametrize(("mean", "sd"), [(0.6, 0.0), (0.6, 0.5), (0.6, 1.5), (0.6, 3.0), (1.5, 1.5)])
def test_coverage_over_benchmarks(benchmarks, mean, sd):
    """Probabilities are normal on the probit scale; ten pairs on each benchmark."""

    def draw(rng):
        p = special.ndtr(mean + sd * rng.normal(size=benchmarks))
        return of_pairs([np.where(rng.random(10) < q, 1.0, -1.0) for q in p])

    rates = rates_over_benchmarks(draw, float(special.ndtr(mean / np.sqrt(1 + sd**2))), 300, 2)
    if benchmarks == 3 and mean == 0.6:
        assert 0.55 < rates["mixed width"] < 0.9
        assert rates["percentile"] < 0.93 or sd == 0.0


@pytest.mark.parametrize("benchmarks", [3, 10])
@pytest.mark.parametrize("sd", [0.0, 0.5, 1.5])
def test_coverage_over_benchmarks_of_runs_that_are_not_paired(benchmarks, sd):
    def draw(rng):
        shift = np.sqrt(2) * (0.6 + sd * rng.normal(size=benchmarks))
        return of_samples([(rng.normal(d, 1.0, 8), rng.normal(size=8)) for d in shift])

    rates_over_benchmarks(draw, float(special.ndtr(0.6 / np.sqrt(1 + sd**2))), 200, 3)


@pytest.mark.parametrize(("n", "m"), [(10, 10), (30, 30), (50, 50), (20, 100), (100, 100)])
@pytest.mark.parametrize(("p", "q"), [(0.5, 0.5), (0.95, 0.95), (0.95, 0.8), (0.99, 0.95)])
def test_coverage_of_right_and_wrong_answers_that_are_not_paired(n, m, p, q):
    def study(rng):
        ones, others = rng.binomial([n, m], [p, q])
        low, high = answers_interval(ones, n, others, m)
        return low <= 0.5 + 0.5 * (p - q) <= high, high - low

    held, width = rate_of(study, 2000, 5)
    assert held >= 0.925 - 0.015
    if (n, m) == (100, 100) and p == 0.95:
        assert width < 1.15 * 3.92 * np.sqrt(0.25 * (p * (1 - p) + q * (1 - q)) / n)


@cache
def answers_interval(ones, n, others, m):
    a, b = np.arange(n) < ones, np.arange(m) < others
    return UStatistic.of(a[:, None] * 1.0 - b).score_interval(0.95)


@pytest.mark.parametrize(("benchmarks", "sd"), [(5, 0.0), (5, 0.1), (12, 0.1)])
def test_coverage_over_benchmarks_of_answers_that_are_not_paired(benchmarks, sd):
    def draw(rng):
        p = 0.7 + sd * rng.uniform(-1.7, 1.7, size=benchmarks)
        sizes = rng.integers(8, 30, size=(benchmarks, 2))
        return of_samples([(rng.random(n) < q, rng.random(m) < 0.6) for q, (n, m) in zip(p, sizes, strict=True)])

    rates_over_benchmarks(draw, 0.55, 300, 6)


@pytest.mark.parametrize("better", [0, 4, 8])
def test_no_more_benchmarks_are_counted_than_there_are(better):
    p = np.where(np.arange(10) < better, 0.9, 0.5)

    def study(rng):
        p_values = stats.binom.sf(rng.binomial(30, p) - 1, 30, 0.5)
        return [better_on(p_values, combine, 0.05) > better for combine in ("bonferroni", "fisher")]

    assert max(rate_of(study, 2000, 3)) <= 0.05 + 0.015


def test_meaningful_is_said_of_advantages_that_are():
    """400 studies over benchmarks: an advantage below gamma is called meaningful in 2.5 % at most.

    The true P is that on another benchmark of the kind: the advantage d of a benchmark is normal, in standard
    deviations of a difference of two runs, so P = Phi(mean / sqrt(1 + sd^2)).
    """
    gamma, sd, count = 0.75, 0.5, 400
    studies = [(0.60, 10, 5), (0.65, 20, 5), (0.65, 20, 10), (0.65, 30, 10)]
    studies += [(0.75, 10, 5), (0.75, 30, 10), (0.85, 20, 10), (0.95, 10, 5)]
    for p, benchmarks, pairs in studies:

        def study(rng, p=p, benchmarks=benchmarks, pairs=pairs):
            d = special.ndtri(p) * (1.0 + sd**2) ** 0.5 + sd * rng.normal(size=benchmarks)
            signs = list(np.sign(d[:, None] + rng.normal(size=(benchmarks, pairs))))
            _, low, high = together(*of_pairs(signs), None, method="mixed", level=0.95, n_draws=1, rng=rng)
            conclusion = conclusions(low[0], high[0], gamma)[0]
            return conclusion == POSSIBLY_MEANINGFUL, conclusion == MEANINGFUL

        possible, meaningful = rate_of(study, count, [benchmarks, pairs, round(100 * p)])
        print(f"P={p} {benchmarks} x {pairs}: the paper's zone {100 * (possible + meaningful):.1f} %, "
              f"may be {100 * possible:.1f}, meaningful {100 * meaningful:.1f}")  # fmt: skip
        assert p > gamma or at_most(meaningful, count, 0.025)
    assert meaningful > 0.5  # P = 0.95
