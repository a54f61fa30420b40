"""The band as a function of the count: where it is read, what it covers, what `from_k` changes."""

from __future__ import annotations

import numpy as np
import pytest
from pytest import approx

from lmemtest.errors import ArgumentError
from lmemtest.tuning.bands import cdf_band
from lmemtest.tuning.curves import trivial_beyond
from lmemtest.tuning.order_statistics import METHODS, critical_value, crossing_probability, intervals

CALIBRATED = ("ld_highest_density", "ld_equal_tailed", "ks")


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [1, 2, 48])
def test_the_band_at_count_j_is_the_lower_limit_of_j_and_the_upper_limit_of_the_next(n, method):
    band = cdf_band(n, method=method, confidence=0.8)
    low, high = intervals(n, method, band.level)
    assert band.level == critical_value(n, method=method, confidence=0.8)
    np.testing.assert_array_equal(band.lower, [0.0, *low])
    np.testing.assert_array_equal(band.upper, [*high, 1.0])
    assert (band.n, band.method, band.confidence) == (n, method, 0.8)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("confidence", [1e-6, 0.1, 0.8, 0.99, 1 - 1e-9])
@pytest.mark.parametrize("n", [1, 2, 3, 30])
def test_a_band_rises_and_encloses_the_share_of_scores(n, method, confidence):
    band = cdf_band(n, method=method, confidence=confidence)
    share = np.arange(n + 1) / n
    assert np.all(np.diff(band.lower) >= 0)
    assert np.all(np.diff(band.upper) >= 0)
    assert np.all(band.lower <= share + 1e-15)
    assert np.all(band.upper >= share - 1e-15)
    assert np.all((band.lower >= 0) & (band.upper <= 1))


@pytest.mark.parametrize("method", METHODS)
def test_nearly_full_confidence_knows_nearly_nothing(method):
    band = cdf_band(5, method=method, confidence=1 - 1e-12)
    assert band.lower[-1] < 0.03
    assert band.upper[0] > 0.97


def test_nearly_no_confidence_is_nearly_a_single_line():
    band = cdf_band(5, confidence=1e-9)
    np.testing.assert_allclose(band.lower[1:], np.arange(5) / 4, atol=0.02)
    np.testing.assert_allclose(band.upper[:-1], band.lower[1:], atol=0.02)


@pytest.mark.parametrize("confidence", [0, 1, 0.0, 1.0, -0.1, True, "0.8", np.nan, None])
@pytest.mark.parametrize("call", [lambda c: cdf_band(5, confidence=c), lambda c: critical_value(5, confidence=c)])
def test_a_confidence_lies_strictly_between_0_and_1(call, confidence):
    with pytest.raises(ArgumentError, match=r"^confidence must be a number between 0 and 1 \(both excluded\), got"):
        call(confidence)


@pytest.mark.parametrize("confidence", [0.5, 0.8, 0.99])
def test_a_wider_confidence_is_a_wider_band(confidence):
    for method in METHODS:
        narrow, wide = (cdf_band(20, method=method, confidence=c) for c in (confidence - 0.1, confidence))
        assert np.all(wide.lower <= narrow.lower)
        assert np.all(wide.upper >= narrow.upper)


def test_coverage_is_the_confidence_except_for_dkw():
    for n in (1, 9, 48, 300):
        for method in CALIBRATED:
            assert cdf_band(n, method=method, confidence=0.9).coverage() == approx(0.9, abs=1e-12)
        assert cdf_band(n, method="dkw", confidence=0.9).coverage() > 0.9


def test_the_band_of_constant_width_is_the_share_of_scores_plus_minus_the_half_width():
    band = cdf_band(10, method="ks", confidence=0.8)
    share = np.arange(11) / 10
    np.testing.assert_allclose(band.lower, np.maximum(share - band.level, 0))
    np.testing.assert_allclose(band.upper, np.minimum(share + band.level, 1))


def test_reading_at_the_first_of_tied_ranks_would_not_cover():
    """Why the band is read at the full count: five equal atoms, 8 scores, exact coverages by enumeration."""
    from itertools import combinations_with_replacement
    from math import factorial, prod

    band = cdf_band(8, confidence=0.8)
    low, high = band.lower[1:], band.upper[:-1]
    cdf = np.arange(1, 6) / 5
    full = first = 0.0
    for sample in combinations_with_replacement(range(5), 8):
        repeats = [sample.count(atom) for atom in range(5)]
        weight = factorial(8) / prod(map(factorial, repeats)) / 5**8
        counts = np.cumsum(repeats)
        full += weight * bool(np.all((band.lower[counts] <= cdf + 1e-12) & (cdf <= band.upper[counts] + 1e-12)))
        seen = [atom for atom in range(4) if repeats[atom]]  # F is 1 at the largest value: no band is needed there
        ranks = np.array([sample.index(atom) for atom in seen], dtype=int)
        first += weight * bool(np.all((low[ranks] <= cdf[seen]) & (cdf[seen] <= high[ranks]))) if seen else weight
    assert full == approx(0.9404, abs=1e-4)
    assert first == approx(0.6998, abs=1e-4)


@pytest.mark.parametrize("n", [100_001, 10**12])
@pytest.mark.parametrize("call", [lambda n: cdf_band(n, method="ks"), lambda n: critical_value(n, method="ks")])
def test_more_scores_than_can_be_calibrated_for_are_refused_at_once(n, call):
    with pytest.raises(ArgumentError) as caught:
        call(n)
    assert str(caught.value) == (
        f"n must be at most 100,000 scores for method='ks', whose calibration is exact, got {n:,}. Use method='dkw', "
        "which has a closed form, or a random part of the scores."
    )
    assert cdf_band(200_000, method="dkw").coverage is not None
    with pytest.raises(ArgumentError, match=r"^n must be a whole number of at most 10,000,000, got 1,000,000,000,000"):
        cdf_band(10**12, method="dkw")


# ---------------------------------------------------------------------------------------------------------- from_k


def test_the_reach_at_48_scores_is_the_known_one():
    assert trivial_beyond(cdf_band(48), 0.5) == approx(8.154, abs=5e-4)
    assert trivial_beyond(cdf_band(48, from_k=1), 0.5) == approx(9.65, abs=5e-3)
    assert cdf_band(48, from_k=1).level > cdf_band(48).level


@pytest.mark.parametrize("method", CALIBRATED)
@pytest.mark.parametrize("from_k", [0.5, 1, 2.5])
@pytest.mark.parametrize("quantile", [0.5, 0.9])
@pytest.mark.parametrize("n", [12, 48, 301])
def test_a_band_from_k_meets_the_confidence_with_the_limits_it_reads(n, method, from_k, quantile):
    floor = quantile ** (1 / from_k)
    band = cdf_band(n, method=method, confidence=0.8, from_k=from_k, quantile=quantile)
    kept = band.lower[band.lower > 0]
    if len(kept):  # else no limit above is wanted, and the confidence is more than enough
        assert band.coverage() == approx(0.8, abs=1e-12)
    assert np.all(kept >= floor)
    assert np.all(band.upper >= floor)
    low, high = intervals(n, method, band.level)
    np.testing.assert_array_equal(kept, low[n - len(kept) :])
    np.testing.assert_array_equal(band.upper[:-1], np.maximum(high, floor))


@pytest.mark.parametrize("method", CALIBRATED)
def test_a_band_from_k_leaves_out_as_few_limits_as_it_can(method):
    """With one more lower limit, that limit would fall below the floor: nothing that is read was dropped in vain."""
    from lmemtest.tuning.order_statistics import _solve

    band = cdf_band(48, method=method, confidence=0.8, from_k=1)
    left_out = int(np.sum(band.lower[1:] == 0.0))
    fewer = _solve(48, method, 0.8, 0.5, left_out - 1)
    assert intervals(48, method, fewer)[0][left_out - 1] < 0.5


def test_a_band_from_a_tiny_k_is_the_whole_band():
    whole, part = cdf_band(20), cdf_band(20, from_k=1e-3)
    assert part.level == approx(whole.level, rel=1e-9)
    np.testing.assert_allclose(part.lower, whole.lower, atol=1e-9)


def test_a_band_from_a_huge_k_has_no_upper_limit_but_keeps_its_confidence():
    band = cdf_band(5, from_k=1000, confidence=0.8)
    assert not band.lower.any()
    assert crossing_probability(np.zeros(5), band.upper[:-1]) >= 0.8


# ---------------------------------------------------------------------------------------------- result and errors


def test_a_band_is_computed_once_and_cannot_be_written_to():
    band = cdf_band(33, confidence=0.7)
    assert cdf_band(33.0, confidence=0.7) is band
    with pytest.raises(ValueError, match="read-only"):
        band.lower[0] = 1.0


def test_the_table_has_a_row_per_count():
    frame = cdf_band(3, method="ks", confidence=0.5).to_frame()
    assert list(frame.columns) == ["count", "lower", "estimate", "upper"]
    assert frame["count"].tolist() == [0, 1, 2, 3]
    assert "50 % Kolmogorov-Smirnov band for n = 3 (half-width 0.434484)." in repr(
        cdf_band(3, method="ks", confidence=0.5)
    )
    assert "calibrated for k >= 2 at the 0.5 quantile" in cdf_band(9, from_k=2).summary()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n": 0}, "n must be a whole number of at least 1, got 0."),
        ({"confidence": 1.5}, "confidence must be a number between 0 and 1 (both excluded), got 1.5. Write 0.015?"),
        (
            {"method": "beta"},
            "method must be 'ld_highest_density' or 'ld_equal_tailed' or 'ks' or 'dkw', got 'beta'.",
        ),
        ({"from_k": 0}, "from_k must be positive and finite (how many configurations are tried), got 0."),
        ({"from_k": [1, 2]}, "from_k must be one number, the smallest k that the band is for, got [1, 2]."),
        (
            {"from_k": 1, "method": "dkw"},
            "from_k changes the calibration, and 'dkw' comes from an inequality that has none. "
            "Use 'ld_highest_density', 'ld_equal_tailed', 'ks'.",
        ),
        ({"quantile": 1}, "quantile must be a number between 0 and 1 (both excluded), got 1."),
    ],
)
def test_arguments_out_of_range_are_named(arguments, message):
    with pytest.raises(ArgumentError) as caught:
        cdf_band(**({"n": 10} | arguments))
    assert str(caught.value) == message
