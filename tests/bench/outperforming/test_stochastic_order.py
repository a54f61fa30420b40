"""Almost stochastic order: exact ratios, tested and bounded claims, and none of the slips of deepsig 1.2.8."""

from __future__ import annotations

import itertools
import math
import re
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest
from growth import exponent, peak
from pytest import approx
from refusals import refuses
from scipy import integrate, stats

import lmemtest as lt
from lmemtest.bench.outperforming.violations import Comparer, pieces_of, violation_ratio
from lmemtest.errors import ArgumentError, DesignError


def runs_of(samples, direction="maximize"):
    """Runs of samples by benchmark and algorithm."""
    rows = [(b, a, i, x) for b, group in samples.items() for a, values in group.items() for i, x in enumerate(values)]
    table = pd.DataFrame(rows, columns=["task", "tool", "seed", "score"])
    roles = {"score": "score", "algorithm": "tool", "benchmark": "task", "seed": "seed"}
    return lt.Runs(table, direction=direction, **roles)


def stochastic_order(runs, **options):
    return lt.outperforming(runs, measure="stochastic_order", **options)


def matrix(answer, column="eps_min", benchmark=None):
    rows = answer.table if benchmark is None else answer.table.query("benchmark == @benchmark")
    return rows.pivot(index="left", columns="right", values=column)


def ratio(x, y):
    return float(violation_ratio(np.sort(x).astype(float), np.sort(y).astype(float), pieces_of(len(x), len(y))))


def exact(x, y):
    """The ratio in rational numbers, on the grid of all multiples of 1 / lcm."""
    n, m = len(x), len(y)
    size = math.lcm(n, m)
    quantiles = zip(np.repeat(np.sort(x), size // n), np.repeat(np.sort(y), size // m), strict=True)
    squares = [
        (Fraction(float(a)) - Fraction(float(b))) * abs(Fraction(float(a)) - Fraction(float(b))) for a, b in quantiles
    ]
    return float(sum(-s for s in squares if s < 0) / sum(map(abs, squares)))


def test_ratios_are_exact_and_complementary():
    rng = np.random.default_rng(2)
    for n, m in ((1, 1), (5, 5), (7, 5), (12, 18), (300, 7)):
        x, y = rng.normal(0.2, 1.0, n), rng.normal(size=m)
        assert ratio(x, y) == approx(exact(x, y), rel=1e-12, abs=1e-15)
        assert ratio(x, y) + ratio(y, x) == approx(1.0, abs=1e-15)
    assert ratio([0.0, 3.0], [1.0, 1.0]) == approx(1 / 5)
    assert ratio([0.5] * 3, [0.5] * 5) == 0.5


def test_the_ratio_of_many_runs_is_that_of_the_distributions():
    """Normal distributions: quantiles cross where left stops to be better."""
    u = (np.arange(20_000) + 0.5) / 20_000
    got = ratio(stats.norm.ppf(u, 0.4, 1.0), stats.norm.ppf(u, 0.0, 2.0))

    def squares(z):
        return (0.4 - z) ** 2 * stats.norm.pdf(z)

    worse = integrate.quad(squares, 0.4, np.inf)[0]
    assert got == approx(worse / integrate.quad(squares, -np.inf, np.inf)[0], rel=2e-3)


def test_permutation_p_values_are_scipys():
    rng = np.random.default_rng(3)
    x, y = rng.normal(0.5, 1.0, 4), rng.normal(0.0, 1.5, 5)

    def net(a, b):
        distance = np.repeat(np.sort(a), 20 // len(a)) - np.repeat(np.sort(b), 20 // len(b))
        return (distance * np.abs(distance)).sum()

    want = stats.permutation_test((x, y), net, alternative="greater", n_resamples=np.inf, vectorized=False)
    *_, p = Comparer(0.05, 500, paired=False).violations([x, y], rng)
    assert p[0, 1] == approx(want.pvalue, rel=1e-12)
    assert p[1, 0] == approx(1.0 - want.pvalue + 1 / math.comb(9, 4), rel=1e-12)
    *_, drawn = Comparer(0.05, 125, paired=False).violations([x, y], rng)  # of 126 exchanges
    assert drawn[0, 1] == approx(want.pvalue, abs=0.13)
    x, y = rng.normal(0.5, 1.0, 5), rng.normal(size=5)
    want = stats.permutation_test(
        (x, y), net, permutation_type="samples", alternative="greater", n_resamples=np.inf, vectorized=False
    )
    assert Comparer(0.05, 500, paired=True).violations([x, y], rng)[2][0, 1] == approx(want.pvalue, rel=1e-12)


@pytest.mark.parametrize("paired", [False, True])
def test_the_bound_is_a_quantile_of_the_bootstrap(paired):
    rng = np.random.default_rng(4)
    x, y = rng.normal(0.6, 1.0, 12), rng.normal(0.0, 1.3, 12)
    draws = []
    for _ in range(1500):
        i = rng.integers(12, size=12)
        draws.append(ratio(x[i], y[i if paired else rng.integers(12, size=12)]))
    _, bound, _ = Comparer(0.1, 4000, paired=paired).violations([x, y], rng)
    assert bound[0, 1] == approx(np.quantile(draws, 0.9), abs=0.06)
    assert bound[1, 0] == approx(1.0 - np.quantile(draws, 0.1), abs=0.02)


def test_ratios_have_none_of_the_errors_of_a_grid(reference):
    found = reference("deepsig_aso")
    a, b = np.array(found["a"]), np.array(found["b"])
    assert sum(found["ratios"]) < 1.0 - 1e-5
    assert sum(found["fine_ratios"]) != 1.0
    assert ratio(a, b) + ratio(b, a) == 1.0
    assert ratio(a, b) == approx(exact(a, b), rel=1e-12)
    low = np.array([0.0] + [1.0] * 99), np.array([0.5] + [0.9] * 99)
    assert found["low"] == approx([0.1012, 0.7976], abs=1e-4)
    assert [ratio(*low), ratio(*low[::-1])] == approx([0.25 / 1.24, 0.99 / 1.24])
    assert found["many"] == 0.0  # the lowest of 300 scores is between the points of the grid
    assert ratio(np.r_[0.0, np.ones(299)], np.full(300, 0.95)) == approx(0.95**2 / (0.95**2 + 299 * 0.05**2))
    assert found["quantile_7_of_100"] == 7  # the 8th lowest
    width, left, _ = pieces_of(100, 1)
    assert left[np.searchsorted(np.cumsum(width), 0.07 - 1e-12)] == 6


def test_more_claims_make_each_harder_and_two_algorithms_can_be_decided(reference):
    found = reference("deepsig_aso")
    by_count = found["by_comparisons"]
    assert by_count["1"] < by_count["100"] < by_count["10"] < by_count["2"]
    assert np.min(found["two_models"]) == 1.0
    a, b = np.array(found["a"]), np.array(found["b"])
    bounds = [
        Comparer(0.05 / m, 6_000, paired=False).violations([a, b], np.random.default_rng(1))[1] for m in (1, 2, 10, 100)
    ]
    assert (np.diff([bound[0, 1] for bound in bounds]) > 0).all()
    far = stochastic_order(runs_of({"t": {"A": a + 5.0, "B": b}}), rng=1)
    assert far.family == 2
    assert far.sentences() == ("A is almost stochastically better than B (eps_min = 0, p < 0.001).",)


def test_few_runs_decide_nothing(reference):
    found = reference("deepsig_aso")
    assert found["one_run"] == found["two_runs"] == 0.0
    two = stochastic_order(runs_of({"t": {"A": [1.0, 2.0], "B": [0.0, 0.5]}}), tau=0.5, rng=1)
    assert not two.table["decision"].any()
    assert "Samples of 2 and 2 cannot decide: no p-value of theirs is below 0.17" in two.notes[-2]
    assert two.notes[-1].startswith("Some sample has 2 values: bounds of the violation ratio are too low there.")
    assert set(two.table["open"]) <= {"p_value", "eps_min and p_value"}
    one = stochastic_order(runs_of({"t": {"A": [1.0], "B": [0.0, 0.5], "C": [0.2, 0.1]}}), tau=0.5, rng=1)
    assert matrix(one, "decision").loc["A", "B"] is pd.NA
    assert np.isnan(matrix(one).loc["A", "B"])


def test_equal_samples_are_not_ordered(reference):
    assert reference("deepsig_aso")["equal"] == 0.5
    found = stochastic_order(runs_of({"t": {"A": [0.5] * 8, "B": [0.5] * 8}}), tau=0.5, rng=1)
    assert found.table["violation_ratio"].tolist() == [0.5, 0.5]
    assert found.table["p_raw"].tolist() == [1.0, 1.0]
    assert "which does not show that any two are alike" in found.sentences()[0]


def test_draws_of_neighbouring_seeds_are_apart(reference):
    assert reference("deepsig_aso")["shared_draws_of_seeds"] > 0.99
    rng = np.random.default_rng(5)
    runs = runs_of({"t": {"A": rng.normal(0.4, 1.0, 15), "B": rng.normal(size=15)}})
    first, again, other = (stochastic_order(runs, rng=seed).table["eps_min"].tolist() for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_the_order_of_algorithms_changes_nothing():
    rng = np.random.default_rng(6)
    samples = {"A": rng.normal(1.0, 1.0, 10), "B": rng.normal(size=10), "C": rng.normal(size=7)}
    up = stochastic_order(runs_of({"t": samples}), rng=1)
    other = stochastic_order(runs_of({"t": {{"A": "Z", "B": "B", "C": "C"}[k]: v for k, v in samples.items()}}), rng=1)
    assert matrix(other, "violation_ratio").loc["Z", "B"] == approx(matrix(up, "violation_ratio").loc["A", "B"])
    assert other.table.query("left == 'B' and right == 'C'")["decision"].tolist() == [False]


def test_claims_are_counted_over_benchmarks():
    rng = np.random.default_rng(7)
    samples = {t: {"A": rng.normal(3.0 * i, 1.0, 12), "B": rng.normal(size=12)} for i, t in enumerate("uvw")}
    found = stochastic_order(runs_of(samples), rng=1)
    assert found.family == 6
    assert found.table["p_value"].to_numpy() == approx(np.minimum(1.0, 6 * found.table["p_raw"].to_numpy()))
    assert found.sentences() == ("A is almost stochastically better than B on 2 of 3 benchmarks (v and w).",)
    loose = stochastic_order(runs_of(samples), tau=0.5, rng=1)
    assert loose.tau == 0.5
    assert (loose.table["decision"] >= found.table["decision"]).all()
    pd.testing.assert_series_equal(loose.table["eps_min"], found.table["eps_min"])
    assert matrix(found, benchmark="w").loc["A", "B"] == 0.0


def test_distributions_over_benchmarks_compare_means():
    rng = np.random.default_rng(8)
    level = rng.normal(scale=5.0, size=12)
    wide = pd.DataFrame({"A": level + 1.0, "B": level})
    found = stochastic_order(wide, direction="maximize", sample="benchmarks", rng=1)
    assert found.benchmarks == ("all",)
    assert matrix(found, "violation_ratio").loc["A", "B"] == 0.0
    assert matrix(found, "p_raw").loc["A", "B"] == approx(1 / 2001, abs=2 / 2001)  # of 4,096 exchanges
    assert "normalize('minmax')" in found.notes[-1]
    refuses(DesignError, r"use sample='benchmarks'", stochastic_order, wide, direction="maximize")


def test_what_cannot_be_decided_is_refused():
    runs = runs_of({"t": {"A": [1.0, 2.0, 3.0], "B": [0.0, 0.5, 2.0]}})
    message = "n_draws must be at least 39 for 2 claims at alpha = 0.05 together, got 20."
    refuses(ArgumentError, re.escape(message), stochastic_order, runs, n_draws=20)
    refuses(ArgumentError, r"tau must be a number above 0 and at most 0.5, got 0.7\.", stochastic_order, runs, tau=0.7)
    refuses(DesignError, "Use sample='runs'", stochastic_order, runs, sample="benchmarks")
    refuses(ArgumentError, r"^a must be Runs, or a wide table with direction=", stochastic_order, [1.0, 2.0])
    refuses(ArgumentError, r"^b must be left out with measure='stochastic_order'", stochastic_order, runs, b=[1.0, 2.0])
    with pytest.raises(ArgumentError, match=r"^paired is an option of measure='probability' or .*, got paired=False"):
        stochastic_order(runs, paired=False)


def test_bounds_of_few_runs_are_exact():
    """All samples that can be drawn, one by one, have the quantile that is found without drawing."""
    rng = np.random.default_rng(5)
    x, y, alpha = np.sort(rng.normal(0.5, 1, 4)), np.sort(rng.normal(size=3)), 0.01
    every = [
        1.0 - exact(y[list(j)], x[list(i)]) if set(x[list(i)]) != set(y[list(j)]) else 0.5
        for i in itertools.product(range(4), repeat=4)
        for j in itertools.product(range(3), repeat=3)
    ]
    comparer = Comparer(alpha, 35 * 10, paired=False)
    _, bound, _ = comparer.violations([x, y], rng)
    beyond = math.floor(alpha * len(every) * (1 + 1e-9))
    assert bound[0, 1] == approx(np.sort(every)[-beyond - 1], abs=1e-12)
    assert bound[1, 0] == approx(1.0 - np.sort(every)[beyond], abs=1e-12)
    drawn = Comparer(alpha, 35 * 10 - 1, paired=False)
    assert comparer.enumerates(4, 3)
    assert not drawn.enumerates(4, 3)


@pytest.mark.parametrize("sizes", [(3, 3), (4, 3), (2, 5), (4, 4)])
@pytest.mark.parametrize("alpha", [0.2, 0.02, 1e-4])
def test_bounds_of_the_extreme_samples_are_those_of_all_that_can_be_drawn(sizes, alpha):
    rng = np.random.default_rng(4)
    x, y = np.sort(rng.integers(0, 6, (3, sizes[0])), axis=1), np.sort(rng.integers(0, 6, (3, sizes[1])), axis=1)
    found = Comparer(alpha, 10**6, paired=False)._enumerated(x.astype(float), y.astype(float))
    for a, b, high, low in zip(x, y, *found, strict=True):
        left, right = (np.sort(list(itertools.product(one.astype(float), repeat=len(one))), axis=1) for one in (a, b))
        ratios = np.sort(violation_ratio(left[:, None], right, pieces_of(*sizes)), axis=None)
        beyond = math.floor(alpha * len(ratios) * (1.0 + 1e-9))  # all of these are as likely
        assert high == approx(ratios[len(ratios) - 1 - beyond], rel=1e-12, abs=1e-12)
        assert low == approx(1.0 - ratios[beyond], rel=1e-12, abs=1e-12)


def test_for_a_high_bound_few_of_the_samples_that_can_be_drawn_are_looked_at():
    """One of 48,000 claims: of 15,876 pairs of samples, those that a dozen others exceed are not."""
    for _, _, p in Comparer(0.05 / 48_000, 4_800_000, paired=False)._extremes(5, 5):
        assert len(p) < 100


def test_memory_grows_with_algorithms_and_not_with_pairs():
    """Of the draws of a pair only those beyond its bound are kept."""
    rng = np.random.default_rng(6)

    def compare(k):
        Comparer(5 / 40_000, 40_000, paired=False).violations(list(rng.normal(size=(k, 8))), rng)

    assert exponent(peak, lambda: compare(5), lambda: compare(20)) < 1.5  # that of 10 and 190 pairs is 2.1


def test_bounds_that_would_take_hours_are_refused():
    rng = np.random.default_rng(7)
    names = [f"t{i}" for i in range(30)]
    runs = runs_of({b: {a: rng.normal(size=12) for a in names} for b in names})
    with pytest.raises(DesignError, match=r"needs 2,609,999 draws, here for 13,050 pairs of samples: about 1\.0 hours"):
        stochastic_order(runs)
