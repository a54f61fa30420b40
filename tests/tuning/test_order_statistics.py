"""Crossing probabilities against exact rational arithmetic, intervals against their definition, published levels."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pytest import approx
from refusals import refusal
from scipy import special, stats

from lmemtest.errors import ArgumentError
from lmemtest.tuning.order_statistics import (
    BANDS,
    constant_width_intervals,
    critical_value,
    crossing_probability,
    dkw_half_width,
    equal_tailed_intervals,
    highest_density_intervals,
    intervals,
)

LD = ("ld_highest_density", "ld_equal_tailed")


def exact_by_counting(lower, upper) -> Fraction:
    """The probability in integers: ways[c] / scale^c is c! times the share of paths with c points so far."""
    n = len(lower)
    low, high = [Fraction(float(x)) for x in lower], [Fraction(float(x)) for x in upper]
    times = sorted({t for t in (*low, *high, Fraction(1)) if 0 < t <= 1})
    scale = math.lcm(*(t.denominator for t in times))
    ways, before = {0: 1}, Fraction(0)
    for time in times:
        step = int((time - before) * scale)
        least, most = sum(u <= time for u in high), sum(x < time for x in low)
        if time == 1:
            least = most = n
        ways = {
            c: sum(w * math.comb(c, b) * step ** (c - b) for b, w in ways.items() if b <= c)
            for c in range(least, most + 1)
        }
        before = time
    return Fraction(ways.get(n, 0), scale**n)


def exact_by_determinant(lower, upper) -> Fraction:
    """Steck's determinant: n! det[(u_i - l_j)_+^(j-i+1) / (j-i+1)!]; another formula altogether."""
    n = len(lower)
    low, high = [Fraction(float(x)) for x in lower], [Fraction(float(x)) for x in upper]

    def entry(i: int, j: int) -> Fraction:
        power = j - i + 1
        if power < 0:
            return Fraction(0)
        return max(high[i] - low[j], Fraction(0)) ** power / math.factorial(power) if power else Fraction(1)

    matrix = [[entry(i, j) for j in range(n)] for i in range(n)]
    value = Fraction(1)
    for column in range(n):
        pivot = next((row for row in range(column, n) if matrix[row][column] != 0), None)
        if pivot is None:
            return Fraction(0)
        if pivot != column:
            matrix[column], matrix[pivot], value = matrix[pivot], matrix[column], -value
        value *= matrix[column][column]
        for row in range(column + 1, n):
            ratio = matrix[row][column] / matrix[column][column]
            matrix[row] = [x - ratio * y for x, y in zip(matrix[row], matrix[column], strict=True)]
    return value * math.factorial(n)


# ------------------------------------------------------------------------------------------- crossing probability


def test_probability_of_a_band_equals_rational_arithmetic():
    for method, n in itertools.product(BANDS, [1, 2, 3, 5, 8, 13, 32, 48, 64]):
        for level in (0.05, 0.8, 0.999):
            low, high = intervals(n, method, critical_value(n, band=method, level=level))
            exact = exact_by_counting(low, high)
            assert crossing_probability(low, high) == approx(float(exact), abs=1e-12)
            if method != "dkw":
                assert float(exact) == approx(level, abs=1e-11)


@settings(deadline=None, max_examples=60)
@given(data=st.data(), n=st.integers(1, 8))
def test_any_limits_agree_with_two_exact_formulas(data, n):
    parts = st.lists(st.integers(0, 31), min_size=n, max_size=n).map(lambda these: np.sort(these) / 32)
    low, high = data.draw(parts), data.draw(parts) + 1 / 32
    by_counting = exact_by_counting(low, high)
    if all(x < y for x, y in zip(low, high, strict=True)):
        assert exact_by_determinant(low, high) == by_counting
    assert crossing_probability(low, high) == approx(float(by_counting), abs=1e-12)


def test_one_number_is_in_its_interval_with_the_length_as_probability():
    assert crossing_probability([0.25], [0.75]) == approx(0.5, abs=1e-15)


def test_lower_limits_on_a_line_have_the_closed_form_of_daniels():
    for n in [1, 2, 7, 100, 3000]:
        rank = np.arange(1, n + 1)
        for slope in (0.1, 0.5, 0.95):
            assert crossing_probability(slope * rank / n, np.ones(n)) == approx(1.0 - slope, abs=1e-10)


@pytest.mark.parametrize("n", [1, 6, 48, 500])
def test_no_limits_hold_surely(n):
    assert crossing_probability(np.zeros(n), np.ones(n)) == approx(1.0, abs=1e-10)
    assert crossing_probability(np.full(n, -np.inf), np.full(n, np.inf)) == approx(1.0, abs=1e-10)


def test_a_limit_also_holds_for_the_order_statistics_beyond():
    low, high = [0.2, 0.1, 0.6, 0.0], [0.5, 0.9, 0.8, 1.0]
    assert crossing_probability(low, high) == approx(
        float(exact_by_counting(np.maximum.accumulate(low), [0.5, 0.8, 0.8, 1.0])), abs=1e-14
    )


@pytest.mark.parametrize(
    ("low", "high"),
    [([0.0, 1.0], [1.0, 1.0]), ([0.0, 0.0], [0.0, 1.0]), ([0.5, 0.5], [0.4, 1.0]), ([0.6, 0.6], [1.0, 0.6])],
)
def test_what_cannot_be_kept_has_probability_zero(low, high):
    assert crossing_probability(low, high) == 0.0


@settings(deadline=None, max_examples=40)
@given(seed=st.integers(0, 10**6), n=st.integers(2, 40))
def test_reflecting_the_numbers_reflects_the_limits(seed, n):
    rng = np.random.default_rng(seed)
    low = np.maximum(np.arange(1, n + 1) / n - rng.uniform(0.05, 0.6, n), 0)
    high = np.minimum(np.arange(n) / n + rng.uniform(0.05, 0.6, n), 1)
    there, back = crossing_probability(low, high), crossing_probability(1 - high[::-1], 1 - low[::-1])
    assert there == approx(back, abs=1e-12)
    assert 0.0 <= there <= 1.0


def test_constant_width_has_the_law_of_kolmogorov_and_smirnov():
    for n in [1, 2, 5, 48, 140, 2000]:
        tolerance = 1e-10 if n <= 140 else 1e-5  # beyond, scipy approximates to about six digits
        for width in np.array([0.6, 0.9, 1.2, 1.8]) / np.sqrt(n):
            got = crossing_probability(*constant_width_intervals(n, width))
            assert got == approx(stats.kstwo.cdf(width, n), abs=tolerance)
    low, high = constant_width_intervals(200, 0.9 / np.sqrt(200))  # where scipy approximates
    assert crossing_probability(low, high) == approx(float(exact_by_counting(low, high)), abs=1e-12)


@pytest.mark.parametrize(
    ("low", "high", "message"),
    [
        ([0.1], [0.5, 0.9],
         "lower and upper must be lists of one length, a limit for each order statistic, got shapes (1,) and (2,)."),
        ([], [],
         "lower and upper must be lists of one length, a limit for each order statistic, got shapes (0,) and (0,)."),
        ([np.nan], [1.0], "lower and upper must not hold NaN; write 0 and 1 where there is no limit.")
    ]
)  # fmt: skip
def test_limits_that_are_none_are_named(low, high, message):
    assert refusal(lambda: crossing_probability(low, high), ArgumentError) == message


# ------------------------------------------------------------------------------------------------------ intervals


def test_highest_density_intervals_have_their_mass_and_equal_densities():
    for n, level in itertools.product([2, 3, 4, 9, 48, 1023, 10_000], [1e-12, 0.001, 0.0169, 0.3, 0.99]):
        low, high = highest_density_intervals(n, level)
        rank = np.arange(1.0, n + 1.0)
        outside = special.betainc(rank, n + 1 - rank, low) + special.betaincc(rank, n + 1 - rank, high)
        np.testing.assert_allclose(outside, level, rtol=1e-9)
        assert low[0] == 0.0
        assert high[-1] == 1.0
        inner = slice(1, n // 2)  # the others are their mirror image, where 1 - x cancels in this check
        a, b, x, y = rank[inner] - 1, n - rank[inner], low[inner], high[inner]
        gap = a * np.log(x) + b * np.log1p(-x) - a * np.log(y) - b * np.log1p(-y)
        np.testing.assert_allclose(gap, 0.0, atol=1e-6)
        np.testing.assert_allclose(low, 1 - high[::-1], atol=1e-15)
        assert np.all(np.diff(low) > 0)


def test_highest_density_intervals_are_the_shortest():
    for n, level in [(5, 0.1), (48, 0.0169), (200, 0.5)]:
        low, high = highest_density_intervals(n, level)
        for i in (1, 2, n // 3, n // 2 + 1, n):
            shares = np.linspace(0, level, 20_001)
            lengths = special.betaincinv(i, n + 1 - i, shares + 1 - level) - special.betaincinv(i, n + 1 - i, shares)
            assert high[i - 1] - low[i - 1] <= lengths.min() + 1e-12
            assert high[i - 1] - low[i - 1] == approx(lengths.min(), rel=1e-6)


def test_equal_tailed_intervals_leave_out_half_at_either_end():
    low, high = equal_tailed_intervals(48, 0.02)
    rank = np.arange(1.0, 49.0)
    np.testing.assert_allclose(special.betainc(rank, 49 - rank, low), 0.01, rtol=1e-12)
    np.testing.assert_allclose(special.betaincc(rank, 49 - rank, high), 0.01, rtol=1e-10)


def test_intervals_at_the_ends_of_the_level():
    for method in LD:
        low, high = intervals(6, method, 0.0)
        assert (low.tolist(), high.tolist()) == ([0.0] * 6, [1.0] * 6)
        low, high = intervals(6, method, 1.0)
        np.testing.assert_allclose(low, high, atol=1e-15)
    np.testing.assert_allclose(intervals(6, "ld_highest_density", 1.0)[0], np.arange(6) / 5)
    np.testing.assert_allclose(
        intervals(6, "ld_equal_tailed", 1.0)[0], stats.beta.median(np.arange(1, 7), 6 - np.arange(6))
    )
    assert [ends.tolist() for ends in highest_density_intervals(1, 0.2)] == [[0.1], [0.9]]


# ------------------------------------------------------------------------------------------------ critical values


CRITICAL_LEVELS = [
    ("ld_highest_density", 2, 0.8, 0.1),
    ("ld_highest_density", 8, 0.8, 0.0409414276),
    ("ld_highest_density", 48, 0.8, 0.01690463661),
    ("ld_highest_density", 1024, 0.8, 0.00631248616),
    ("ld_highest_density", 48, 0.95, 0.003314082263),
    ("ld_equal_tailed", 8, 0.8, 0.04121001215),
    ("ld_equal_tailed", 48, 0.8, 0.01572483614),
]


def test_critical_levels_are_the_known_ones():
    for method, n, level, published in [
        ("ld_highest_density", 2, 0.8, 0.1), ("ld_highest_density", 8, 0.8, 0.0409414276),
        ("ld_highest_density", 48, 0.8, 0.01690463661), ("ld_highest_density", 1024, 0.8, 0.00631248616),
        ("ld_highest_density", 48, 0.95, 0.003314082263), ("ld_equal_tailed", 8, 0.8, 0.04121001215),
        ("ld_equal_tailed", 48, 0.8, 0.01572483614),
    ]:  # fmt: skip
        assert critical_value(n, band=method, level=level) == approx(published, rel=1e-9)


@pytest.mark.parametrize("level", [1e-9, 0.3, 0.8, 0.999999])
def test_one_score_has_the_closed_form(level):
    for method in LD:
        assert critical_value(1, band=method, level=level) == approx(1 - level, rel=1e-9)
    # F(Y) is uniform, and the band is |F - 1/2| <= half-width - 1/2 at the score
    assert critical_value(1, band="ks", level=level) == approx(0.5 + level / 2, abs=1e-12)


def test_kolmogorov_smirnov_half_width_is_the_quantile():
    for n, level in itertools.product([2, 5, 48, 140], [0.01, 0.5, 0.8, 0.99]):
        assert critical_value(n, band="ks", level=level) == approx(stats.kstwo.ppf(level, n), abs=1e-9)


def test_every_confidence_is_met():
    for method, n in itertools.product(["ld_highest_density", "ld_equal_tailed", "ks"], [3, 48, 700]):
        for level in (1e-6, 0.01, 0.4, 0.95, 1 - 1e-6):
            value = critical_value(n, band=method, level=level)
            assert crossing_probability(*intervals(n, method, value)) == approx(level, abs=1e-11)


@pytest.mark.parametrize(
    "method", ["ld_highest_density", pytest.param("ld_equal_tailed", marks=pytest.mark.slow), "ks"]
)
def test_ten_thousand_scores_meet_the_confidence(method):
    value = critical_value(10_000, band=method, level=0.8)
    assert crossing_probability(*intervals(10_000, method, value)) == approx(0.8, abs=1e-10)
    if method == "ks":
        assert value == approx(stats.kstwo.ppf(0.8, 10_000), rel=1e-5)


def test_towards_the_ends_of_the_confidence():
    for n, level in itertools.product((1, 2, 48, 500), (1e-300, 1e-12, 1 - 1e-12, 1 - 1.2e-16)):
        assert all(0.0 < critical_value(n, band=m, level=level) <= 1.0 for m in BANDS)
    for n in (1, 7, 48):
        assert [critical_value(n, band=m, level=1 - 1e-9) < 1e-8 for m in LD] == [True, True]
        assert [critical_value(n, band=m, level=1e-12) > 0.5 for m in LD] == [True, True]
        assert critical_value(n, band="ks", level=1e-300) == approx(0.5 / n)  # D_n is never smaller


def test_dkw_is_the_inequality():
    assert dkw_half_width(50, 0.9) == approx(math.sqrt(math.log(20) / 100))
    assert 2 * math.exp(-2 * 50 * dkw_half_width(50, 0.9) ** 2) == approx(0.1)
    assert crossing_probability(*intervals(50, "dkw", dkw_half_width(50, 0.9))) > 0.9


def test_arguments_out_of_range_are_named():
    for arguments, message in [
        ({"n_scores": 0}, "n_scores must be a whole number of at least 1, got 0."),
        ({"n_scores": 2.5}, "n_scores must be a whole number of at least 1, got 2.5."),
        (
            {"band": "ld_equal_tail"},
            "band must be 'ld_highest_density' or 'ld_equal_tailed' or 'ks' or 'dkw', got 'ld_equal_tail'. "
            "Did you mean 'ld_equal_tailed'?",
        ),
    ]:
        with pytest.raises(ArgumentError) as caught:
            critical_value(**({"n_scores": 10} | arguments))
        assert str(caught.value) == message
