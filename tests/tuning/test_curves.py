"""Tuning curves against their definition, published numbers, and the symmetry of the two directions."""

from __future__ import annotations

import itertools
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pytest import approx
from refusals import refusal
from scipy import integrate

from lmemtest import tuning
from lmemtest.errors import ArgumentError, DataError
from lmemtest.tuning.distribution import EmpiricalDistribution
from lmemtest.tuning.order_statistics import BANDS

SCORES = np.random.default_rng(1).beta(4, 2, 48)
ARRAYS = ("k", "estimate", "band_low", "band_high", "low_trivial", "high_trivial")


def first_at_least(values, level):
    """The definition of a quantile: the first point where a rising function is at least `level`."""
    return next((i for i, value in enumerate(values) if value >= level), len(values))


# -------------------------------------------------------------------------------------------------- quantile curves


def test_limits_and_estimate_are_quantiles_of_the_band_to_the_power_k():
    for method, quantile in itertools.product(BANDS, [0.1, 0.5, 0.9]):
        k = np.array([0.3, 1, 1.7, 2, 5.5, 9, 30])
        curve = tuning.curve(
            SCORES, direction="maximize", k=k, statistic=quantile, level=0.9, band=method, bounds=(0, 1)
        )
        band = tuning.band(48, level=0.9, band=method)
        points = [0.0, *np.sort(SCORES), 1.0]
        share = np.arange(49) / 48
        for i, power in enumerate(k):
            assert curve.band_low[i] == points[first_at_least(band.band_high**power, quantile)]
            assert curve.estimate[i] == points[first_at_least(share**power, quantile)]
            assert curve.band_high[i] == points[first_at_least(band.band_low**power, quantile)]
        np.testing.assert_array_equal(curve.low_trivial, curve.band_low == 0.0)
        np.testing.assert_array_equal(curve.high_trivial, curve.band_high == 1.0)


def test_the_best_of_one_is_a_score_whatever_the_direction():
    """Sums of floats 1 / n land beside n / 2 for 65 of the n up to 399; ranks come from counts."""
    for direction, n in itertools.product(["maximize", "minimize"], range(2, 400, 7)):
        scores = np.arange(1.0, n + 1)
        for q in (0.5, 0.25, 0.1, 0.9):
            curve = tuning.curve(scores, direction=direction, k=1, statistic=q, band="dkw")
            assert curve.estimate[0] == -(round(-100 * q) * n // 100)  # rounded up


@settings(deadline=None, max_examples=80)
@given(
    scores=st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=25),
    k=st.floats(1e-3, 1e4),
    quantile=st.floats(0.01, 0.99),
    method=st.sampled_from(BANDS),
)
def test_limits_enclose_the_estimate_and_scores_come_from_the_sample(scores, k, quantile, method):
    curve = tuning.curve(scores, direction="minimize", k=k, statistic=quantile, band=method)
    assert curve.band_low[0] <= curve.estimate[0] <= curve.band_high[0]
    assert curve.estimate[0] in scores
    assert curve.low_trivial[0] == (curve.band_low[0] == -np.inf)
    assert curve.high_trivial[0] == (curve.band_high[0] == np.inf)


def test_curves_improve_with_k():
    k = np.geomspace(0.1, 100, 80)
    for statistic in ("median", 0.2, "mean"):
        up = tuning.curve(SCORES, direction="maximize", k=k, statistic=statistic, bounds=(0, 1))
        down = tuning.curve(SCORES, direction="minimize", k=k, statistic=statistic, bounds=(0, 1))
        for name in ("estimate", "band_low", "band_high"):
            assert np.all(np.diff(getattr(up, name)) >= 0)
            assert np.all(np.diff(getattr(down, name)) <= 0)


def test_tiny_and_huge_k_are_the_ends():
    curve = tuning.curve(SCORES, direction="maximize", k=[1e-9, 1e15])
    assert curve.estimate.tolist() == [SCORES.min(), SCORES.max()]
    assert (curve.band_low[0], curve.band_high[1]) == (-np.inf, np.inf)
    assert curve.band_high[0] >= SCORES.min()
    # the interval of the largest order statistic with the highest density ends at 1: no claim that F is below 1 there
    assert curve.band_low[1] == np.sort(SCORES)[-2]
    assert tuning.curve(SCORES, direction="maximize", k=1e15, band="ld_equal_tailed").band_low[0] == SCORES.max()


def test_the_upper_limit_is_trivial_beyond_k_max():
    curve = tuning.curve(SCORES, direction="maximize")
    assert curve.k_max == approx(8.154, abs=5e-4)
    near = curve.at([curve.k_max * (1 - 1e-9), curve.k_max * (1 + 1e-9)])
    assert near.high_trivial.tolist() == [False, True]
    assert "The upper limit is trivial for k > 8.15." in curve.summary()
    assert "The lower limit is trivial for k > 8.15." in tuning.curve(SCORES, direction="minimize").facts
    assert np.isnan(tuning.curve(SCORES, direction="minimize", statistic="mean", bounds=(0, 1)).k_max)


def test_a_band_from_one_reaches_further_and_refuses_smaller_k():
    whole, part = (tuning.curve(SCORES, direction="maximize", from_k=f, bounds=(0, 1)) for f in (None, 1))
    assert part.k_max == approx(9.65, abs=5e-3)
    wider = (whole.band_high - whole.band_low).sum()
    assert (part.band_high - part.band_low).sum() < wider
    assert part.at(1.0).band_low[0] > 0.0
    assert refusal(lambda: part.at([2, 0.5]), ArgumentError) == (
        "k must be at least from_k = 1, which the band is calibrated for, got 0.5. Choose a smaller from_k."
    )


def test_one_score_is_enough():
    curve = tuning.curve([0.4], direction="maximize", k=[0.1, 1, 10], level=0.5, bounds=(0, 1))
    assert curve.estimate.tolist() == [0.4] * 3
    assert curve.band_low.tolist() == [0.0, 0.0, 0.4]  # p = 0.5^(1/k) against 0.25 to 0.75, the band of the score
    assert curve.band_high.tolist() == [0.4, 1.0, 1.0]
    ties = np.repeat([0.1, 0.5, 0.9], [3, 4, 3])  # one point of the distribution each
    curve = tuning.curve(ties, direction="maximize", k=[0.2, 1, 3], bounds=(0, 1))
    assert set(curve.estimate) <= {0.1, 0.5, 0.9}
    assert set(curve.band_low) | set(curve.band_high) <= {0.0, 0.1, 0.5, 0.9, 1.0}
    none = tuning.curve(SCORES, direction="maximize", level=1e-6, k=[1.1, 4])  # next to no confidence: the estimate
    assert not none.trivial.any()
    assert np.all(none.band_low <= none.estimate)
    assert np.all(none.band_high - none.band_low <= 2 * np.diff(np.sort(SCORES)).max())


# ------------------------------------------------------------------------------------------------------ duality


@settings(deadline=None, max_examples=80)
@given(
    scores=st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=20),
    statistic=st.sampled_from(["median", "mean", 0.123, 0.9]),
    method=st.sampled_from(BANDS),
)
def test_minimising_is_maximising_the_negative_bit_for_bit(scores, statistic, method):
    k = [0.3, 1, 2, 3.7, 20]
    options = {"k": k, "band": method}
    turned = 1 - statistic if isinstance(statistic, float) else statistic
    down = tuning.curve(scores, direction="minimize", bounds=(-2e3, 1e3), statistic=statistic, **options)
    up = tuning.curve(-np.array(scores), direction="maximize", bounds=(-1e3, 2e3), statistic=turned, **options)
    np.testing.assert_array_equal(down.band_low, -up.band_high)
    np.testing.assert_array_equal(down.band_high, -up.band_low)
    q = {"median": 0.5, "mean": np.nan}.get(statistic, statistic)
    share = len(scores) * (1 - q) ** (1 / np.array(k))
    apart = np.abs(share - share.round()) > 1e-8  # elsewhere both take the smaller of two
    np.testing.assert_array_equal(down.estimate[apart], -up.estimate[apart])
    if statistic == "mean":
        np.testing.assert_array_equal(down.estimate, -up.estimate)
    np.testing.assert_array_equal(down.low_trivial, up.high_trivial)
    np.testing.assert_array_equal(down.high_trivial, up.low_trivial)


@settings(deadline=None, max_examples=30)
@given(seed=st.integers(0, 10**6))
def test_the_order_of_the_scores_does_not_matter(seed):
    shuffled = np.random.default_rng(seed).permutation(SCORES)
    for statistic in ("median", "mean"):
        options = {"direction": "maximize", "statistic": statistic, "bounds": (0, 1)}
        one, two = tuning.curve(SCORES, **options), tuning.curve(shuffled, **options)
        for name in ARRAYS:
            np.testing.assert_array_equal(getattr(one, name), getattr(two, name))


def test_quantile_curves_follow_any_rising_change_of_scale():
    raw = tuning.curve(SCORES, direction="maximize", k=[0.5, 1, 3, 7])
    logged = tuning.curve(np.log(SCORES), direction="maximize", k=[0.5, 1, 3, 7])
    for name in ("estimate", "band_low", "band_high"):
        np.testing.assert_array_equal(np.log(getattr(raw, name)), getattr(logged, name))


# --------------------------------------------------------------------------------------------------- mean curves


@pytest.mark.parametrize("method", BANDS)
def test_a_mean_is_the_integral_of_the_band_to_the_power_k(method):
    bounds, k = (-0.5, 1.25), [0.5, 1, 2.5, 8]
    scores = SCORES[:7]
    curve = tuning.curve(scores, direction="maximize", k=k, statistic="mean", band=method, bounds=bounds)
    band = tuning.band(7, band=method)
    knots = np.sort(scores)

    def mean(values, power):
        def survival(y):
            return 1.0 - values[np.searchsorted(knots, y, side="right")] ** power

        pieces = [bounds[0], *knots, bounds[1]]
        return bounds[0] + sum(integrate.quad(survival, a, b)[0] for a, b in pairwise(pieces))

    for i, power in enumerate(k):
        assert curve.band_low[i] == approx(mean(band.band_high, power), abs=1e-9)
        assert curve.estimate[i] == approx(mean(np.arange(8) / 7, power), abs=1e-9)
        assert curve.band_high[i] == approx(mean(band.band_low, power), abs=1e-9)
    assert not curve.trivial.any()
    one = tuning.curve(SCORES, direction="minimize", k=1, statistic="mean", bounds=(0, 1))
    assert one.estimate[0] == approx(SCORES.mean(), rel=1e-14)


def test_an_open_end_leaves_the_mean_without_that_limit():
    above = tuning.curve(SCORES, direction="maximize", k=[1, 9], statistic="mean", bounds=(0, np.inf))
    assert above.band_high.tolist() == [np.inf, np.inf]
    assert above.high_trivial.all()
    assert not above.low_trivial.any()
    bounded = tuning.curve(SCORES, direction="maximize", k=[1, 9], statistic="mean", bounds=(0, 1))
    np.testing.assert_array_equal(above.band_low, bounded.band_low)
    assert above.at(1e-300).band_high[0] == np.inf
    below = tuning.curve(SCORES, direction="maximize", k=[1, 9], statistic="mean", bounds=(-np.inf, 1))
    assert below.band_low.tolist() == [-np.inf, -np.inf]
    np.testing.assert_array_equal(below.band_high, bounded.band_high)


# ------------------------------------------------------------------------------------------------- infinite scores


def test_failed_runs_may_be_infinitely_bad():
    scores = [0.5, np.inf, 0.25, 0.75, np.inf]
    curve = tuning.curve(scores, direction="minimize", k=[0.2, 1, 4], level=0.5)
    big = tuning.curve(np.where(np.isinf(scores), 1e9, scores), direction="minimize", k=[0.2, 1, 4], level=0.5)
    for name in ("estimate", "band_low", "band_high"):
        np.testing.assert_array_equal(
            np.where(getattr(big, name) == 1e9, np.inf, getattr(big, name)), getattr(curve, name)
        )
    assert curve.estimate.tolist() == [np.inf, 0.75, 0.25]


@pytest.mark.parametrize("method", BANDS)
def test_infinitely_bad_scores_make_a_mean_infinite(method):
    """The upper limit is that of a failure so bad that it decides, if the band is sure of one; else it stays."""
    scores, k = [-np.inf, 0.1, 0.3, 0.5, 0.9], [0.5, 1, 3]
    options = {"direction": "maximize", "statistic": "mean", "k": k, "band": method}
    curve = tuning.curve(scores, bounds=(-np.inf, 1), **options)
    assert set(curve.estimate) == set(curve.band_low) == {-np.inf}
    bad = -1e12
    far = tuning.curve([bad, *scores[1:]], bounds=(bad, 1), **options)
    sure = curve.cdf_band.band_low[1] > 0
    assert (curve.band_high == -np.inf).all() if sure else curve.band_high == approx(far.band_high)
    assert (far.band_high < -1e3).all() == sure
    down = tuning.curve(-np.array(scores), bounds=(-1, np.inf), **{**options, "direction": "minimize"})
    np.testing.assert_array_equal(down.band_low, -curve.band_high)
    assert (tuning.curve([-np.inf] * 4, bounds=(-np.inf, 1), **options).band_high == -np.inf).all()
    law = EmpiricalDistribution(scores)
    assert law.mean_curve(k, direction="maximize").tolist() == [-np.inf] * 3
    assert EmpiricalDistribution(scores, weights=[0, 1, 1, 1, 1]).mean_curve(1, direction="maximize")[0] == approx(0.45)


# ------------------------------------------------------------------------------------------------ result and errors


def test_at_gives_the_same_curve_elsewhere():
    curve = tuning.curve(SCORES, direction="minimize", k=[1, 2, 3])
    again = curve.at([2, 1])
    np.testing.assert_array_equal(again.estimate, curve.estimate[[1, 0]])
    assert again.cdf_band is curve.cdf_band
    assert curve.at(2).k.tolist() == [2.0]
    assert (curve.n_scores, curve.level, curve.band) == (48, 0.8, "ld_highest_density")
    frame = curve.at([1, 20]).to_frame()
    assert list(frame.columns) == ["k", "estimate", "band_low", "band_high", "trivial"]
    assert frame["trivial"].tolist() == [False, True]


def test_default_k_are_whole_numbers_up_to_n():
    assert tuning.curve(SCORES, direction="maximize").k.tolist() == list(range(1, 49))
    many = tuning.curve(np.arange(1000.0), direction="maximize", band="dkw").k
    assert (many[0], many[-1]) == (1.0, 1000.0)
    assert len(many) <= 64
    assert np.array_equal(many, many.round())
    assert tuning.curve(SCORES[:4], direction="maximize", from_k=2.5).k.tolist() == [2.5, 3.0, 4.0]
    assert tuning.curve(SCORES[:4], direction="maximize", from_k=9).k.tolist() == [9.0]


def test_series_and_lists_are_scores():
    want = tuning.curve(SCORES, direction="maximize").estimate
    series = pd.Series(SCORES, index=np.arange(48)[::-1])
    for scores in (list(SCORES), tuple(SCORES), series, series.astype("Float64"), series.astype(object)):
        np.testing.assert_array_equal(tuning.curve(scores, direction="maximize").estimate, want)


@pytest.mark.parametrize(
    "scores", [[0.1, None, 0.3], pd.Series([0.1, None, 0.3]), pd.Series([0.1, pd.NA, 0.3], dtype=object),
               pd.Series([0.1, None, 0.3], dtype="Float64"), np.ma.masked_array([0.1, 0.2, 0.3], mask=[0, 1, 0])],
    ids=["None", "NaN", "NA", "Float64", "mask"]
)  # fmt: skip
def test_missing_scores_of_every_kind_are_counted(scores):
    with pytest.raises(DataError, match=r"^scores must not be missing: 1 of 3 are NaN \(position 1\)\. Score a failed"):
        tuning.curve(scores, direction="maximize")


def test_what_is_no_list_of_numbers_is_refused():
    for scores in ["0.5", ["0.5"], np.array(["0.5"], dtype=object), 0.5, {0.5}, [1j], [[0.5], []]]:
        with pytest.raises(ArgumentError, match=r"^scores must be a one-dimensional list of numbers, one per config"):
            tuning.curve(scores, direction="maximize")


BAD = [
    ({"scores": []}, DataError, "scores must hold at least 1 score, got none."),
    ({"scores": [0.1, None, 0.3]}, DataError,
     "scores must not be missing: 1 of 3 are NaN (position 1). Score a failed run as the worst value: dropping it "
     "would make the search look better than it was."),
    ({"k": 0}, ArgumentError, "k must be positive and finite (how many configurations are tried), got 0."),
    ({"k": [1, -2]}, ArgumentError, "k must be positive and finite (how many configurations are tried), got -2."),
    ({"k": [1, np.inf]}, ArgumentError, "k must be positive and finite (how many configurations are tried), got inf."),
    ({"k": "two"}, ArgumentError, "k must be a positive number or a list of such, got 'two'."),
    ({"k": [True]}, ArgumentError, "k must be a positive number or a list of such, got [True]."),
    ({"k": [[1, 2]]}, ArgumentError, "k must be a positive number or a list of such, got [[1, 2]]."),
    ({"k": []}, ArgumentError, "k must be a positive number or a list of such, got []."),
    ({"statistic": "mode"}, ArgumentError,
     "statistic must be 'median', 'mean' or a quantile between 0 and 1 such as 0.9, got 'mode'."),
    ({"statistic": 90}, ArgumentError,
     "statistic must be a number between 0 and 1 (both excluded), got 90. Write 0.9?"),
    ({"bounds": (0, 0.5)}, DataError,
     "bounds must enclose all scores, but 1 of 3 lie outside of 0 to 0.5 (the scores go from 0.2 to 0.6). Widen the "
     "bounds, or give a failed run the worst score that can occur."),
    ({"statistic": "mean"}, ArgumentError,
     "statistic='mean' needs bounds=(low, high), the smallest and the largest score that can occur: without them a "
     "rare score could move the mean anywhere. Pass bounds, or use statistic='median'."),
    ({"statistic": "mean", "bounds": (0, 1), "from_k": 1}, ArgumentError,
     "from_k is for quantile curves: the mean of the best of k reads the whole distribution function. Use "
     "statistic='median', or from_k=None."),
    ({"scores": [0.2, np.inf]}, DataError,
     "scores hold 1 of 2 that are inf, the best value there is when direction is 'maximize'. A failed run is a "
     "worst score: write -inf for it."),
]  # fmt: skip


@pytest.mark.parametrize(("arguments", "error", "message"), BAD)
def test_what_cannot_be_a_curve_is_named(arguments, error, message):
    options = {"scores": [0.2, 0.4, 0.6], "direction": "maximize"} | arguments
    assert refusal(lambda: tuning.curve(**options), error) == message


# ------------------------------------------------------------------------------------------------- published numbers


def test_deberta_v3_median_curve(data_dir):
    table = pd.read_csv(data_dir / "deberta.csv")
    scores = table.loc[table["model"] == "DeBERTaV3", "best_matched"].to_numpy()[:48]
    got = tuning.curve(scores, direction="maximize", k=[2, 4, 8]).to_frame()[["band_low", "estimate", "band_high"]]
    want = [[0.881610, 0.901477, 0.904840], [0.901477, 0.904228, 0.905655], [0.903006, 0.905145, 0.906062]]
    np.testing.assert_allclose(got.to_numpy(), want, atol=5e-7)


@pytest.mark.parametrize(("model", "k", "value"), [("reg_lstm", 16, 0.764939), ("mlp", 64, 0.800930)])
def test_hedwig_mean_curves(data_dir, model, k, value):
    table = pd.read_csv(data_dir / "hedwig.csv")
    scores = table.loc[table["model_name"] == model, "f1"]
    curve = tuning.curve(scores, direction="maximize", k=k, statistic="mean", bounds=(0, 1))
    assert curve.estimate[0] == approx(value, abs=5e-7)


# ---------------------------------------------------------------------------------------------------------- drawing


def test_lines_through_what_is_drawn_are_the_curve():
    for direction, statistic in itertools.product(["maximize", "minimize"], ["median", 0.2, 0.9]):
        curve = tuning.curve(SCORES, direction=direction, statistic=statistic, k=[0.3, 1, 30], bounds=(0, 1))
        shown, k = curve.drawn(), np.geomspace(0.3001, 29.99, 997)
        exact = curve.at(k)
        for name in ("estimate", "band_low", "band_high"):
            np.testing.assert_allclose(np.interp(k, shown.k, getattr(shown, name)), getattr(exact, name), rtol=1e-12)
        assert (shown.k[0], shown.k[-1]) == (0.3, 30.0)


def test_means_are_drawn_closely_and_one_k_alone():
    curve = tuning.curve(SCORES, direction="maximize", statistic="mean", k=[1, 30], bounds=(0, 1))
    shown, k = curve.drawn(), np.geomspace(1, 30, 333)
    for name in ("estimate", "band_low", "band_high"):
        np.testing.assert_allclose(np.interp(k, shown.k, getattr(shown, name)), getattr(curve.at(k), name), rtol=2e-4)
    assert tuning.curve(SCORES, direction="maximize", k=2).drawn().k.tolist() == [2.0]
    many = tuning.curve(np.arange(4000.0), direction="maximize", band="dkw", k=[1, 4000]).drawn()
    assert 5000 <= len(many.k) <= 10_002
