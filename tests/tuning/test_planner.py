"""The planner agrees with the curves it plans, and finds the smallest number of scores."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from pytest import approx

from lmemtest import tuning
from lmemtest.errors import ArgumentError
from lmemtest.tuning.curve import trivial_beyond
from lmemtest.tuning.order_statistics import BANDS, critical_value


def test_the_reach_has_the_closed_forms_of_the_ld_bands():
    for n in (2, 8, 48, 300):
        density = tuning.plan(n_scores=n).k_max[0]
        assert density == approx(n * np.log(2) / -np.log(critical_value(n)), rel=1e-12)
        options = {"band": "ld_equal_tailed", "level": 0.95}
        tails = tuning.plan(n_scores=n, statistic=0.9, direction="maximize", **options).k_max[0]
        assert tuning.plan(n_scores=n, statistic=0.1, direction="minimize", **options).k_max[0] == approx(
            tails, rel=1e-12
        )
        level = critical_value(n, band="ld_equal_tailed", level=0.95)
        assert tails == approx(n * np.log(1 / 0.9) / np.log(2 / level), rel=1e-12)


def test_known_reaches():
    assert tuning.plan(n_scores=48).k_max[0] == approx(8.154, abs=5e-4)
    assert tuning.plan(n_scores=48, from_k=1).k_max[0] == approx(9.65, abs=5e-3)


def test_the_line_of_paper_000_is_a_local_fit():
    """n = 6.25 k, so k = 0.16 n: n scores reach further than that up to about 90, and less far beyond."""
    n = np.array([8, 16, 32, 48, 96, 192])
    per_score = tuning.plan(n_scores=n).k_max / n
    assert np.all(np.diff(per_score) < 0)
    assert per_score[3] > 0.16 > per_score[4]


def test_the_planned_number_is_the_smallest_of_all():
    for (method, from_k), (level, quantile) in itertools.product(
        [(method, start) for method in BANDS for start in (None, 1, 4) if method != "dkw" or start is None],
        [(0.01, 0.5), (0.5, 0.5), (0.8, 0.9)],
    ):
        bands = (tuning.band(n, band=method, level=level, from_k=from_k, quantile=quantile) for n in range(1, 60))
        reach = np.array([trivial_beyond(band, quantile) for band in bands])
        for k in (0.5, 1, 2.5, 4, 5, 6.5, 9):
            enough = np.flatnonzero(reach >= k)
            if len(enough) and (from_k is None or k >= from_k):
                options = {"level": level, "from_k": from_k, "direction": "maximize"}
                plan = tuning.plan(k=k, band=method, statistic=quantile, **options)
                assert plan.n_scores[0] == enough[0] + 1
                assert plan.k_max[0] == reach[enough[0]]


def test_a_curve_of_the_planned_size_has_two_limits_at_k_and_one_score_less_does_not():
    rng = np.random.default_rng(5)
    for direction in ("maximize", "minimize"):
        n = int(tuning.plan(k=20, level=0.9).n_scores[0])
        for size, trivial in ((n, False), (n - 1, True)):
            curve = tuning.curve(rng.random(size), direction=direction, k=20, level=0.9)
            assert curve.trivial[0] == trivial


@pytest.mark.parametrize("direction", ["maximize", "minimize"])
@pytest.mark.parametrize("statistic", [0.2, 0.9])
def test_plans_for_quantiles_are_those_of_their_curves(direction, statistic):
    plan = tuning.plan(n_scores=30, statistic=statistic, direction=direction)
    curve = tuning.curve(np.arange(30.0), direction=direction, statistic=statistic)
    assert plan.k_max[0] == curve.k_max
    sides = curve.at([curve.k_max * (1 - 1e-9), curve.k_max * (1 + 1e-9)])
    assert (sides.high_trivial if direction == "maximize" else sides.low_trivial).tolist() == [False, True]
    assert f"{statistic} quantile to {direction}" in plan.curve


def test_whole_numbers_of_configurations_are_those_within_reach():
    plan = tuning.plan(n_scores=[1, 4, 48])
    assert plan.k.tolist() == [0.0, 1.0, 8.0]
    assert np.all(plan.k <= plan.k_max)


def test_large_plans_keep_to_the_line():
    plan = tuning.plan(k=200)
    assert plan.n_scores[0] == 1487
    assert trivial_beyond(tuning.band(1486), 0.5) < 200 <= plan.k_max[0]


def test_the_table_says_what_was_asked():
    plan = tuning.plan(k=[2, 8], from_k=1)
    assert list(plan.to_frame().columns) == ["n_scores", "k", "k_max", "critical_value"]
    assert "n_scores is the smallest number" in plan.summary()
    assert "80 % LD band of highest-density intervals, median, for k >= 1." in plan.summary()
    assert "k is the largest whole number" in repr(tuning.plan(n_scores=10))


def test_plans_that_cannot_be_made_are_named():
    for arguments, message in [
        ({}, "give either n_scores (how many scores there are) or k (how many configurations the curve must reach)."),
        (
            {"n_scores": 1, "k": 1},
            "give either n_scores (how many scores there are) or k (how many configurations the curve must reach).",
        ),
        ({"n_scores": 0}, "n_scores must be a whole number of at least 1, got 0."),
        (
            {"n_scores": 10**12},
            "n_scores must be at most 100,000 scores for band='ld_highest_density', whose calibration is exact, got "
            "1,000,000,000,000. Use band='dkw', which has a closed form, or a random part of the scores.",
        ),
        ({"n_scores": []}, "n_scores must be a whole number of at least 1 or a list of such, got []."),
        ({"k": -1}, "k must be positive and finite (how many configurations are tried), got -1."),
        (
            {"k": 5, "statistic": "mean"},
            "statistic='mean' has no such k: with bounds its limits are never trivial, without bounds always. "
            "Use 'median' or a quantile.",
        ),
        ({"k": 0.5, "from_k": 1}, "k must be at least from_k = 1, got 0.5."),
        (
            {"k": 1e5, "band": "dkw"},
            "k = 100000 needs more than 10,000 scores, which reach 64.25 with this band, quantile and level. "
            "Plan for a smaller k or a lower level.",
        ),
        (
            {"k": 5, "statistic": 0.9},
            "direction must be given for the 0.9 quantile: 'maximize' or 'minimize'. The best score is the largest or "
            "the smallest one, and only for medians both have limits for the same k.",
        ),
        ({"k": 1, "level": 80}, "level must be a number between 0 and 1 (both excluded), got 80. Write 0.8?"),
    ]:
        with pytest.raises(ArgumentError) as caught:
            tuning.plan(**arguments)
        assert str(caught.value) == message
