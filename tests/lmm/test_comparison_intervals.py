"""Intervals to compare means by: closed forms, another implementation, invariance, and their exceptions."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from pytest import approx

import lmemtest as lt
from lmemtest.errors import ArgumentError
from lmemtest.lmm.means.comparison_intervals import half_widths_of_means
from lmemtest.lmm.means.estimates import Estimates


def pairs_of(k: int) -> tuple[np.ndarray, np.ndarray]:
    return tuple(np.array(side, dtype=np.intp) for side in zip(*itertools.combinations(range(k), 2), strict=True))


def means_of(estimates, se, **options):
    names = [f"m{i}" for i in range(len(estimates))]
    frame = {"algorithm": names}
    return Estimates.of(frame, b=estimates, V=np.diag(np.square(se)), df=30.0, score="loss", **options)


@pytest.mark.parametrize("k", [3, 4, 9])
def test_half_widths_are_the_closed_form_of_hochberg_weiss_and_hart(k):
    left, right = pairs_of(k)
    own = np.random.default_rng(k).uniform(1.0, 2.0, k)
    half = np.hypot(own[left], own[right])
    square = np.zeros((k, k))
    square[left, right] = square[right, left] = half
    rest = half.sum() / (k - 1)
    assert half_widths_of_means(left, right, half, k) == approx((square.sum(axis=1) - rest) / (k - 2), rel=1e-10)


def test_half_widths_are_those_of_statsmodels():
    multicomp = pytest.importorskip("statsmodels.sandbox.stats.multicomp")
    counts, variance, critical = np.array([4, 9, 6, 25]), 2.3, 3.4
    left, right = pairs_of(4)
    half = critical / np.sqrt(2.0) * np.sqrt(variance / counts[left] + variance / counts[right])
    want = multicomp.simultaneous_ci(critical, variance, counts, (left, right))
    assert half_widths_of_means(left, right, half, 4) == approx(want, rel=1e-10)


def test_two_means_share_the_half_width_and_none_is_negative():
    assert half_widths_of_means(np.array([0]), np.array([1]), np.array([3.0]), 2) == approx([1.5, 1.5])
    left, right = pairs_of(4)
    widths = half_widths_of_means(left, right, np.array([9.0, 9.0, 9.0, 0.1, 0.1, 0.1]), 4)
    assert (widths >= 0.0).all()


def test_a_mean_without_a_test_has_no_interval():
    left, right = pairs_of(3)
    widths = half_widths_of_means(left, right, np.array([2.0, np.nan, np.nan]), 3)
    assert widths[:2] == approx([1.0, 1.0])
    assert np.isnan(widths[2])


@pytest.mark.parametrize("seed", range(5))
def test_with_equal_errors_overlap_is_the_test(seed):
    em = means_of(np.random.default_rng(seed).normal(size=7), np.full(7, 0.4))
    pairs = em.pairs()
    found = pairs.comparison_intervals()
    assert len(found.exceptions) == 0
    table = found.to_frame().set_index("level")
    assert table["half_width"].to_numpy() == approx((pairs.table["ci_high"] - pairs.table["ci_low"]).iloc[0] / 4.0)
    for row in pairs.to_frame().to_dict("records"):
        low, high = sorted((row["left"], row["right"]), key=lambda name: table.loc[name, "estimate"])
        assert (table.loc[high, "ci_low"] > table.loc[low, "ci_high"]) == (row["p_value"] < 0.05)


def test_exceptions_are_the_pairs_for_which_overlap_and_test_disagree():
    pairs = means_of([0.0, 1.22, 5.0, 9.0], [0.3, 0.3, 0.01, 0.01]).pairs()
    found = pairs.comparison_intervals()
    ends = found.to_frame().set_index("level")[["ci_low", "ci_high"]]
    odd = set()
    for row in pairs.to_frame().to_dict("records"):
        one, other = ends.loc[row["left"]], ends.loc[row["right"]]
        apart = one["ci_high"] < other["ci_low"] or other["ci_high"] < one["ci_low"]
        if apart != (row["p_value"] < 0.05):
            odd.add((row["left"], row["right"]))
    assert odd
    assert odd == set(zip(found.exceptions["left"], found.exceptions["right"], strict=True))
    assert found.findings == ()
    assert found.notes == ("Overlap and test disagree for m0 − m1; the test decides.",)


def test_intervals_follow_the_scale_and_the_groups():
    runs = pd.DataFrame(
        {
            "tool": list("ABC") * 16,
            "prior": list("gggbbb") * 8,
            "task": np.repeat(list("stuvwxyz"), 6),
            "loss": np.random.default_rng(2).normal(size=48),
        }
    )
    one, thousand = (
        lt.fit_lmm("loss ~ tool * prior + (1 | task)", runs.assign(loss=factor * runs["loss"]))
        .emmeans("tool", by="prior")
        .pairs()
        .comparison_intervals()
        .to_frame()
        for factor in (1.0, 1000.0)
    )
    assert list(one.columns) == ["prior", "level", "estimate", "half_width", "ci_low", "ci_high"]
    assert len(one) == 6
    assert (thousand["half_width"] / one["half_width"]).to_numpy() == approx(1000.0, rel=1e-5)


def test_they_are_made_of_pairs_alone():
    with pytest.raises(ArgumentError, match=r"comparison_intervals\(\) is for the result of pairs\(\)"):
        means_of([0.0, 1.0, 2.0], [0.1, 0.1, 0.1], direction="minimize").best().comparison_intervals()
