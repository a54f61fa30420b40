"""Coverage of intervals of P(A > B): exact for pairs, simulated for runs that are not paired and over benchmarks."""

from __future__ import annotations

import numpy as np
import pytest
from exact_coverage import coverage
from scipy import special, stats

from lmemtest.bench.outperforming.intervals import PAIRED, UStatistic, counts_of
from lmemtest.bench.outperforming.pairs import all_against_all, better_on, together
from lmemtest.bench.outperforming.verdict import MEANINGFUL, POSSIBLY_MEANINGFUL, conclusions

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


def samples(rng, family: str, p: float, n: int, m: int):
    """Runs of A and B of which A is better with probability p: normal, A three times as wide, exponential."""
    if family == "exponential":
        return rng.exponential(p / (1 - p), n), rng.exponential(1.0, m)
    spread = {"normal": 1.0, "wide": 3.0}[family]
    return rng.normal(special.ndtri(p) * np.sqrt(1 + spread**2), spread, n), rng.normal(0.0, 1.0, m)


@pytest.mark.parametrize(("n", "m"), [(5, 5), (10, 10), (20, 20), (50, 50), (5, 20)])
@pytest.mark.parametrize("family", ["normal", "wide", "exponential"])
def test_coverage_of_runs_that_are_not_paired(n, m, family):
    rng, count = np.random.default_rng(1), 1500
    rates = {}
    for p in (0.5, 0.75, 0.9, 0.98, 0.99, 0.999):
        held, apart = {"score": 0, "logit": 0}, 0
        for _ in range(count):
            a, b = samples(rng, family, p, n, m)
            found = UStatistic.of(np.sign(a[:, None] - b))
            apart += found.variance == 0.0
            for method in held:
                low, high = getattr(found, f"{method}_interval")(0.95)
                held[method] += low <= p <= high
        rates[p] = {method: hits / count for method, hits in held.items()}
        print(f"{n} and {m} runs, {family}, P={p}: {rates[p]}, apart {apart / count:.2f}")
    assert min(rate["score"] for rate in rates.values()) >= 0.94 - 0.015
    if (n, family) == (50, "wide"):
        assert rates[0.98]["logit"] < 0.9  # nearly apart: DeLong's variance is too small


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


def duels(rng, count, benchmarks, pairs, mean, sd):
    """Benchmarks whose probabilities are normal on the probit scale, and pairs within them."""
    for _ in range(count):
        p = special.ndtr(mean + sd * rng.normal(size=benchmarks))
        yield of_pairs([np.where(rng.random(pairs) < q, 1.0, -1.0) for q in p])


def rates_over_benchmarks(duels, truth: float, count: int, label: str) -> dict[str, float]:
    rng = np.random.default_rng(2)
    held, width = ({"mixed": 0.0, "percentile": 0.0} for _ in range(2))
    for duel in duels:
        for method in held:
            _, low, high = (float(x[0]) for x in together(*duel, None, method=method, level=0.95, n_draws=999, rng=rng))
            held[method] += (low <= truth <= high) / count
            width[method] += (high - low) / count
    print(f"{label}: coverage {held}, width {width}")
    assert held["mixed"] >= 0.92 - 0.04  # three standard errors
    return {**held, "width": width["mixed"]}


@pytest.mark.parametrize("benchmarks", [3, 5, 10, 20])
@pytest.mark.parametrize(("mean", "sd"), [(0.6, 0.0), (0.6, 0.5), (0.6, 1.5), (0.6, 3.0), (1.5, 1.5)])
def test_coverage_over_benchmarks(benchmarks, mean, sd):
    count, rng = 300, np.random.default_rng(2)
    truth = float(special.ndtr(mean / np.sqrt(1 + sd**2)))
    found = duels(rng, count, benchmarks, 10, mean, sd)
    rates = rates_over_benchmarks(found, truth, count, f"N={benchmarks} mean={mean} sd={sd}")
    if benchmarks == 3 and mean == 0.6:
        assert 0.55 < rates["width"] < 0.9
        assert rates["percentile"] < 0.93 or sd == 0.0


@pytest.mark.parametrize("benchmarks", [3, 10])
@pytest.mark.parametrize("sd", [0.0, 0.5, 1.5])
def test_coverage_over_benchmarks_of_runs_that_are_not_paired(benchmarks, sd):
    count, rng = 200, np.random.default_rng(3)

    def found():
        for _ in range(count):
            shift = np.sqrt(2) * (0.6 + sd * rng.normal(size=benchmarks))
            yield of_samples([(rng.normal(d, 1.0, 8), rng.normal(size=8)) for d in shift])

    truth = float(special.ndtr(0.6 / np.sqrt(1 + sd**2)))
    rates_over_benchmarks(found(), truth, count, f"not paired, N={benchmarks} sd={sd}")


@pytest.mark.parametrize(("n", "m"), [(10, 10), (30, 30), (50, 50), (20, 100), (100, 100)])
@pytest.mark.parametrize(("p", "q"), [(0.5, 0.5), (0.95, 0.95), (0.95, 0.8), (0.99, 0.95)])
def test_coverage_of_right_and_wrong_answers_that_are_not_paired(n, m, p, q):
    rng, count = np.random.default_rng(5), 2000
    numbers, times = np.unique(rng.binomial([n, m], [p, q], (count, 2)), axis=0, return_counts=True)
    held = width = 0.0
    for (ones, others), weight in zip(numbers, times / count, strict=True):
        a, b = np.arange(n) < ones, np.arange(m) < others
        low, high = UStatistic.of(a[:, None] * 1.0 - b).score_interval(0.95)
        held += weight * (low <= 0.5 + 0.5 * (p - q) <= high)
        width += weight * (high - low)
    print(f"{n} and {m} answers, {p} and {q}: coverage {held:.3f}, width {width:.3f}")
    assert held >= 0.925 - 0.015
    if (n, m) == (100, 100) and p == 0.95:
        assert width < 1.15 * 3.92 * np.sqrt(0.25 * (p * (1 - p) + q * (1 - q)) / n)


@pytest.mark.parametrize(("benchmarks", "sd"), [(5, 0.0), (5, 0.1), (12, 0.1)])
def test_coverage_over_benchmarks_of_answers_that_are_not_paired(benchmarks, sd):
    count, rng = 300, np.random.default_rng(6)

    def found():
        for _ in range(count):
            p = 0.7 + sd * rng.uniform(-1.7, 1.7, size=benchmarks)
            sizes = rng.integers(8, 30, size=(benchmarks, 2))
            answers = [(rng.random(n) < q, rng.random(m) < 0.6) for q, (n, m) in zip(p, sizes, strict=True)]
            yield of_samples(answers)

    rates_over_benchmarks(found(), 0.55, count, f"answers, N={benchmarks} sd={sd}")


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


def test_meaningful_is_said_of_advantages_that_are():
    """400 studies over benchmarks: an advantage below gamma is called meaningful in 2.5 % at most.

    The true P is that on another benchmark of the kind: the advantage d of a benchmark is normal, in standard
    deviations of a difference of two runs, so P = Phi(mean / sqrt(1 + sd^2)).
    """
    gamma, sd, count = 0.75, 0.5, 400
    studies = [(0.60, 10, 5), (0.65, 20, 5), (0.65, 20, 10), (0.65, 30, 10)]
    studies += [(0.75, 10, 5), (0.75, 30, 10), (0.85, 20, 10), (0.95, 10, 5)]
    for p, benchmarks, pairs in studies:
        rng = np.random.default_rng([benchmarks, pairs, round(100 * p)])
        found = []
        for _ in range(count):
            d = special.ndtri(p) * (1.0 + sd**2) ** 0.5 + sd * rng.normal(size=benchmarks)
            signs = list(np.sign(d[:, None] + rng.normal(size=(benchmarks, pairs))))
            _, low, high = together(*of_pairs(signs), None, method="mixed", level=0.95, n_draws=1, rng=rng)
            found.append(conclusions(low[0], high[0], gamma)[0])
        rate = {name: found.count(name) / count for name in (POSSIBLY_MEANINGFUL, MEANINGFUL)}
        print(f"P={p} {benchmarks} x {pairs}: the paper's zone {100 * sum(rate.values()):.1f} %, "
              f"may be {100 * rate[POSSIBLY_MEANINGFUL]:.1f}, meaningful {100 * rate[MEANINGFUL]:.1f}")  # fmt: skip
        if p <= gamma:
            assert stats.binomtest(found.count(MEANINGFUL), count, 0.025, alternative="greater").pvalue > 0.001
    assert rate[MEANINGFUL] > 0.5  # P = 0.95
