"""The empirical distribution agrees with counting, and its band with the band of the count."""

from __future__ import annotations

import numpy as np
import pytest
from pytest import approx
from refusals import refusal

from lmemtest import tuning
from lmemtest.errors import ArgumentError, DataError
from lmemtest.tuning.distribution import EmpiricalDistribution

TIED = [0.2, 0.5, 0.5, 0.9, 0.2, 0.5]


def test_cdf_counts_ties_in_full():
    law = EmpiricalDistribution(TIED)
    np.testing.assert_allclose(law.cdf([0.1, 0.2, 0.3, 0.5, 0.9, 2.0]), np.array([0, 2, 2, 5, 6, 6]) / 6)
    assert law.cdf(0.5) == approx(5 / 6)
    assert isinstance(law.cdf(0.5), float)
    assert law.cdf([[0.1, 0.9]]).shape == (1, 2)


def test_ppf_is_the_smallest_score_with_the_share_at_or_below():
    law = EmpiricalDistribution(TIED, bounds=(0, 1))
    assert law.ppf([0.0, 0.01, 2 / 6, 0.34, 5 / 6, 0.84, 1.0]).tolist() == [0.0, 0.2, 0.2, 0.5, 0.5, 0.9, 0.9]


def test_ppf_returns_the_rank_of_its_own_share():
    """Cumulative floats would miss some: 1 / 49 taken 49 times is not 1."""
    for n in [1, 2, 7, 48, 399, 1000]:
        law = EmpiricalDistribution(np.arange(1.0, n + 1))
        ranks = np.arange(1, n + 1)
        np.testing.assert_array_equal(law.ppf(ranks / n), ranks)
        np.testing.assert_array_equal(law.ppf(law.cdf(ranks)), ranks)
        weighted = EmpiricalDistribution(np.arange(1.0, n + 1), weights=np.full(n, 0.1))
        np.testing.assert_array_equal(weighted.ppf(ranks / n), ranks)


def test_weights_count_like_repeated_scores():
    law = EmpiricalDistribution([0.9, 0.2, 0.5], weights=[1, 2, 3])
    same = EmpiricalDistribution(TIED)
    p = np.linspace(0.01, 1, 50)
    np.testing.assert_allclose(law.cdf([0.1, 0.2, 0.5, 0.9]), same.cdf([0.1, 0.2, 0.5, 0.9]))
    np.testing.assert_array_equal(law.ppf(p), same.ppf(p))
    assert (law.mean(), law.variance()) == (approx(same.mean()), approx(same.variance()))
    assert law.weights.tolist() == approx([2 / 6, 3 / 6, 1 / 6])


def test_mean_and_variance_are_those_of_the_scores():
    law = EmpiricalDistribution(TIED)
    assert (law.mean(), law.variance()) == (approx(np.mean(TIED)), approx(np.var(TIED)))


def test_infinite_scores_are_kept():
    law = EmpiricalDistribution([-np.inf, 1.0, 2.0])
    assert (law.mean(), law.ppf(0.2), law.ppf(0.5), law.cdf(-np.inf)) == (-np.inf, -np.inf, 1.0, approx(1 / 3))
    assert np.isnan(law.variance())
    assert np.isnan(EmpiricalDistribution([-np.inf, np.inf]).mean())
    assert EmpiricalDistribution([-np.inf, 1.0], weights=[0, 1]).mean() == 1.0


def test_draws_have_the_weights_as_frequencies():
    law = EmpiricalDistribution([1.0, 2.0, 3.0], weights=[0.2, 0.0, 0.8])
    draws = law.sample(20_000, rng=4)
    assert set(draws) == {1.0, 3.0}
    assert np.mean(draws == 1.0) == approx(0.2, abs=0.012)
    assert law.sample((2, 3), rng=1).shape == (2, 3)
    assert isinstance(law.sample(rng=1), float)
    np.testing.assert_array_equal(law.sample(9, rng=3), law.sample(9, rng=3))


def test_the_scores_of_the_caller_are_not_touched():
    scores = np.array([0.5, 0.2])
    law = EmpiricalDistribution(scores)
    scores[0] = 9.0
    assert law.scores.tolist() == [0.2, 0.5]
    with pytest.raises(ValueError, match="read-only"):
        law.scores[0] = 1.0


def test_the_band_is_read_at_the_full_count():
    law = EmpiricalDistribution(TIED, bounds=(0, 1))
    band = law.band(band="ks", level=0.9)
    by_count = tuning.band(6, band="ks", level=0.9)
    lower, upper = band.cdf_bounds([0.0, 0.2, 0.5, 0.9])
    np.testing.assert_array_equal(lower, by_count.band_low[[0, 2, 5, 6]])
    np.testing.assert_array_equal(upper, by_count.band_high[[0, 2, 5, 6]])
    assert band.cdf_bounds(-0.5) == (0.0, 0.0)
    assert band.cdf_bounds(1.0) == (1.0, 1.0)
    frame = band.to_frame()
    assert list(frame.columns) == ["score", "estimate", "band_low", "band_high"]
    assert frame["score"].tolist() == [0.2, 0.5, 0.9]
    assert "90 % Kolmogorov-Smirnov band for n = 6" in band.summary()


def test_the_table_has_a_row_per_distinct_score():
    frame = EmpiricalDistribution(TIED).to_frame()
    assert list(frame.columns) == ["score", "weight", "cdf"]
    np.testing.assert_allclose(frame.to_numpy(), [[0.2, 2 / 6, 2 / 6], [0.5, 3 / 6, 5 / 6], [0.9, 1 / 6, 1.0]])
    assert "6 scores between -inf and inf; mean 0.466667." in repr(EmpiricalDistribution(TIED))


def test_what_cannot_be_a_distribution_is_named():
    for arguments, error, message in [
        ({"scores": []}, DataError, "scores must hold at least 1 score, got none."),
        (
            {"scores": [0.1, np.nan, 0.3, np.nan]},
            DataError,
            "scores must not be missing: 2 of 4 are NaN (position 1, 3). Score a failed run as the worst value: "
            "dropping it would make the search look better than it was.",
        ),
        (
            {"scores": ["a"]},
            ArgumentError,
            "scores must be a one-dimensional list of numbers, one per configuration, got list.",
        ),
        (
            {"scores": [0.1 + 1j]},
            ArgumentError,
            "scores must be a one-dimensional list of numbers, one per configuration, got complex ones.",
        ),
        (
            {"scores": [[0.1, 0.2]]},
            ArgumentError,
            "scores must be a one-dimensional list of numbers, one per configuration, got several dimensions.",
        ),
        ({"weights": [1, 2]}, ArgumentError, "weights must hold one number for each of the 3 scores, got (2,)."),
        ({"weights": [1, -2, 3]}, ArgumentError, "weights must be finite, at least 0, and not all 0."),
        ({"weights": [0, 0, 0]}, ArgumentError, "weights must be finite, at least 0, and not all 0."),
        (
            {"bounds": (1, 0)},
            ArgumentError,
            "bounds must be (low, high) with low < high, the smallest and the largest score that can occur, got "
            "(1, 0). Write float('-inf') or float('inf') for an end that is not known.",
        ),
        (
            {"bounds": (0.25, 1)},
            DataError,
            "bounds must enclose all scores, but 1 of 3 lie outside of 0.25 to 1 (the scores go from 0.2 to 0.5). "
            "Widen the bounds, or give a failed run the worst score that can occur.",
        ),
    ]:
        with pytest.raises(error) as caught:
            EmpiricalDistribution(**({"scores": [0.2, 0.5, 0.3]} | arguments))
        assert str(caught.value) == message


def test_calls_out_of_range_are_named():
    law = EmpiricalDistribution([0.2, 0.5], weights=[1, 2])
    with pytest.raises(ArgumentError, match=r"^p must lie between 0 and 1, got 1.5.$"):
        law.ppf([0.5, 1.5])
    with pytest.raises(ArgumentError, match=r"^p must lie between 0 and 1, got nan.$"):
        law.ppf(np.nan)
    with pytest.raises(ArgumentError, match=r"^y must not be NaN.$"):
        law.cdf(np.nan)
    assert refusal(lambda: law.band(), ArgumentError) == (
        "a band needs independent scores of one distribution, all of the same weight, but the scores have weights. "
        "Make the distribution without weights=."
    )
