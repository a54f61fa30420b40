"""The band as a function of the count: where it is read, what it covers, what `from_k` changes."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from pytest import approx
from refusals import refusal

from lmemtest import tuning
from lmemtest.errors import ArgumentError
from lmemtest.tuning.curve import trivial_beyond
from lmemtest.tuning.order_statistics import BANDS, critical_value, crossing_probability, intervals

CALIBRATED = ("ld_highest_density", "ld_equal_tailed", "ks")


def test_the_band_at_count_j_is_the_lower_limit_of_j_and_the_upper_limit_of_the_next():
    for method, n in itertools.product(BANDS, [1, 2, 48]):
        band = tuning.band(n, band=method, level=0.8)
        low, high = intervals(n, method, band.critical_value)
        assert band.critical_value == critical_value(n, band=method, level=0.8)
        np.testing.assert_array_equal(band.band_low, [0.0, *low])
        np.testing.assert_array_equal(band.band_high, [*high, 1.0])
        assert (band.n_scores, band.band, band.level) == (n, method, 0.8)


def test_a_band_rises_and_encloses_the_share_of_scores():
    for method, level, n in itertools.product(BANDS, [1e-6, 0.1, 0.8, 0.99, 1 - 1e-9], [1, 2, 3, 30]):
        band = tuning.band(n, band=method, level=level)
        share = np.arange(n + 1) / n
        assert np.all(np.diff(band.band_low) >= 0)
        assert np.all(np.diff(band.band_high) >= 0)
        assert np.all(band.band_low <= share + 1e-15)
        assert np.all(band.band_high >= share - 1e-15)
        assert np.all((band.band_low >= 0) & (band.band_high <= 1))


@pytest.mark.parametrize("method", BANDS)
def test_nearly_full_confidence_knows_nearly_nothing(method):
    band = tuning.band(5, band=method, level=1 - 1e-12)
    assert band.band_low[-1] < 0.03
    assert band.band_high[0] > 0.97


def test_nearly_no_confidence_is_nearly_a_single_line():
    band = tuning.band(5, level=1e-9)
    np.testing.assert_allclose(band.band_low[1:], np.arange(5) / 4, atol=0.02)
    np.testing.assert_allclose(band.band_high[:-1], band.band_low[1:], atol=0.02)


def test_a_confidence_lies_strictly_between_0_and_1():
    for level, call in itertools.product(
        [0, 1, 0.0, 1.0, -0.1, True, "0.8", np.nan, None],
        [lambda c: tuning.band(5, level=c), lambda c: critical_value(5, level=c)],
    ):
        with pytest.raises(ArgumentError, match=r"^level must be a number between 0 and 1 \(both excluded\), got"):
            call(level)


@pytest.mark.parametrize("level", [0.5, 0.8, 0.99])
def test_a_wider_confidence_is_a_wider_band(level):
    for method in BANDS:
        narrow, wide = (tuning.band(20, band=method, level=c) for c in (level - 0.1, level))
        assert np.all(wide.band_low <= narrow.band_low)
        assert np.all(wide.band_high >= narrow.band_high)


def test_coverage_is_the_confidence_except_for_dkw():
    for n in (1, 9, 48, 300):
        for method in CALIBRATED:
            assert tuning.band(n, band=method, level=0.9).coverage() == approx(0.9, abs=1e-12)
        assert tuning.band(n, band="dkw", level=0.9).coverage() > 0.9


def test_the_band_of_constant_width_is_the_share_of_scores_plus_minus_the_half_width():
    band = tuning.band(10, band="ks", level=0.8)
    share = np.arange(11) / 10
    np.testing.assert_allclose(band.band_low, np.maximum(share - band.critical_value, 0))
    np.testing.assert_allclose(band.band_high, np.minimum(share + band.critical_value, 1))


def test_reading_at_the_first_of_tied_ranks_would_not_cover():
    """Why the band is read at the full count: five equal atoms, 8 scores, exact coverages by enumeration."""
    from itertools import combinations_with_replacement
    from math import factorial, prod

    band = tuning.band(8, level=0.8)
    low, high = band.band_low[1:], band.band_high[:-1]
    cdf = np.arange(1, 6) / 5
    full = first = 0.0
    for sample in combinations_with_replacement(range(5), 8):
        repeats = [sample.count(atom) for atom in range(5)]
        weight = factorial(8) / prod(map(factorial, repeats)) / 5**8
        counts = np.cumsum(repeats)
        full += weight * bool(np.all((band.band_low[counts] <= cdf + 1e-12) & (cdf <= band.band_high[counts] + 1e-12)))
        seen = [atom for atom in range(4) if repeats[atom]]  # F is 1 at the largest value: no band is needed there
        ranks = np.array([sample.index(atom) for atom in seen], dtype=int)
        first += weight * bool(np.all((low[ranks] <= cdf[seen]) & (cdf[seen] <= high[ranks]))) if seen else weight
    assert full == approx(0.9404, abs=1e-4)
    assert first == approx(0.6998, abs=1e-4)


@pytest.mark.parametrize("n", [100_001, 10**12])
@pytest.mark.parametrize("call", [lambda n: tuning.band(n, band="ks"), lambda n: critical_value(n, band="ks")])
def test_more_scores_than_can_be_calibrated_for_are_refused_at_once(n, call):
    assert refusal(lambda: call(n), ArgumentError) == (
        f"n_scores must be at most 100,000 scores for band='ks', whose calibration is exact, got {n:,}. Use "
        "band='dkw', which has a closed form, or a random part of the scores."
    )
    assert tuning.band(200_000, band="dkw").coverage is not None
    with pytest.raises(ArgumentError, match=r"^n_scores must be a whole number of at most 10,000,000, got 1,000,"):
        tuning.band(10**12, band="dkw")


# ---------------------------------------------------------------------------------------------------------- from_k


def test_the_reach_at_48_scores_is_the_known_one():
    assert trivial_beyond(tuning.band(48), 0.5) == approx(8.154, abs=5e-4)
    assert trivial_beyond(tuning.band(48, from_k=1), 0.5) == approx(9.65, abs=5e-3)
    assert tuning.band(48, from_k=1).critical_value > tuning.band(48).critical_value


def test_a_band_from_k_meets_the_confidence_with_the_limits_it_reads():
    for method, from_k, quantile, n in itertools.product(CALIBRATED, [0.5, 1, 2.5], [0.5, 0.9], [12, 48, 301]):
        floor = quantile ** (1 / from_k)
        band = tuning.band(n, band=method, level=0.8, from_k=from_k, quantile=quantile)
        kept = band.band_low[band.band_low > 0]
        if len(kept):  # else no limit above is wanted, and the confidence is more than enough
            assert band.coverage() == approx(0.8, abs=1e-12)
        assert np.all(kept >= floor)
        assert np.all(band.band_high >= floor)
        low, high = intervals(n, method, band.critical_value)
        np.testing.assert_array_equal(kept, low[n - len(kept) :])
        np.testing.assert_array_equal(band.band_high[:-1], np.maximum(high, floor))


@pytest.mark.parametrize("method", CALIBRATED)
def test_a_band_from_k_leaves_out_as_few_limits_as_it_can(method):
    """With one more lower limit, that limit would fall below the floor: nothing that is read was dropped in vain."""
    from lmemtest.tuning.order_statistics import _solve

    band = tuning.band(48, band=method, level=0.8, from_k=1)
    left_out = int(np.sum(band.band_low[1:] == 0.0))
    fewer = _solve(48, method, 0.8, 0.5, left_out - 1)
    assert intervals(48, method, fewer)[0][left_out - 1] < 0.5


def test_a_band_from_a_tiny_k_is_the_whole_band():
    whole, part = tuning.band(20), tuning.band(20, from_k=1e-3)
    assert part.critical_value == approx(whole.critical_value, rel=1e-9)
    np.testing.assert_allclose(part.band_low, whole.band_low, atol=1e-9)


def test_a_band_from_a_huge_k_has_no_upper_limit_but_keeps_its_confidence():
    band = tuning.band(5, from_k=1000, level=0.8)
    assert not band.band_low.any()
    assert crossing_probability(np.zeros(5), band.band_high[:-1]) >= 0.8


# ---------------------------------------------------------------------------------------------- result and errors


def test_a_band_is_computed_once_and_cannot_be_written_to():
    band = tuning.band(33, level=0.7)
    assert tuning.band(33.0, level=0.7) is band
    with pytest.raises(ValueError, match="read-only"):
        band.band_low[0] = 1.0


def test_the_table_has_a_row_per_count():
    frame = tuning.band(3, band="ks", level=0.5).to_frame()
    assert list(frame.columns) == ["count", "estimate", "band_low", "band_high"]
    assert frame["count"].tolist() == [0, 1, 2, 3]
    assert "50 % Kolmogorov-Smirnov band for n = 3 (half-width 0.434484)." in repr(tuning.band(3, band="ks", level=0.5))
    assert "calibrated for k >= 2 at the 0.5 quantile" in tuning.band(9, from_k=2).summary()


def test_arguments_out_of_range_are_named():
    for arguments, message in [
        ({"n_scores": 0}, "n_scores must be a whole number of at least 1, got 0."),
        ({"from_k": 0}, "from_k must be positive and finite (how many configurations are tried), got 0."),
        ({"from_k": [1, 2]}, "from_k must be one number, the smallest k that the band is for, got [1, 2]."),
        ({"from_k": 1, "band": "dkw"},
         "from_k changes the calibration, and 'dkw' comes from an inequality that has none. "
         "Use 'ld_highest_density', 'ld_equal_tailed', 'ks'."),
        ({"quantile": 1}, "quantile must be a number between 0 and 1 (both excluded), got 1."),
    ]:  # fmt: skip
        with pytest.raises(ArgumentError) as caught:
            tuning.band(**({"n_scores": 10} | arguments))
        assert str(caught.value) == message
