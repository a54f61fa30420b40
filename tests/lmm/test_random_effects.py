"""Random effects with intervals, and predictions with intervals."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from pytest import approx
from refusals import refuses

import lmemtest as lt
from lmemtest.lmm.intervals.random_effects import random_effects
from lmemtest.lmm.model.predictions import representatives


def fits(reference) -> list[dict]:
    return reference("random_effects")["fits"]


@pytest.mark.parametrize("index", range(6))
def test_modes_and_conditional_sds_are_lme4s(reference, reference_input, index):
    want = fits(reference)[index]
    fit = lt.fit_lmm(want["formula"], reference_input(want["data"]), weights=want["weights"])
    for group in want["groups"]:
        got = fit.random_effects(group["group"], simultaneous=False).to_frame()
        for j, name in enumerate(group["names"]):
            rows = got[got["effect"] == name]
            # lme4 orders the levels of an interaction as we do, but b:a and a:b sort differently
            assert list(rows["level"]) == list(group["levels"])
            scale = np.abs(np.array(group["modes"])[:, j]).max()
            assert rows["estimate"].to_numpy() == approx(np.array(group["modes"])[:, j], rel=2e-5, abs=2e-5 * scale)
            assert rows["conditional_sd"].to_numpy() == approx(np.array(group["sds"])[:, j], rel=2e-5)


def one_way(rng, groups=12, each=5, sd=1.0) -> tuple[pd.DataFrame, np.ndarray]:
    u = sd * rng.normal(size=groups)
    frame = pd.DataFrame({"g": np.repeat([f"g{i:02d}" for i in range(groups)], each)})
    frame["y"] = 3.0 + np.repeat(u, each) + rng.normal(size=groups * each)
    return frame, u


def test_the_one_way_layout_in_closed_form():
    """With n rows in each of q groups the error has the variance s2u (1 - B) + B s2u / q + ... of the textbooks."""
    frame, _ = one_way(np.random.default_rng(3))
    fit = lt.fit_lmm("y ~ 1 + (1 | g)", frame)
    s2u, s2, q, n = fit.covariances[0][0, 0], fit.scale, 12, 5
    shrink = s2u / (s2u + s2 / n)
    got = fit.random_effects("g").to_frame()
    centred = frame.groupby("g")["y"].mean() - frame["y"].mean()
    assert got["estimate"].to_numpy() == approx(shrink * centred.to_numpy(), rel=1e-6)
    assert got["conditional_sd"].to_numpy() == approx(np.sqrt(s2u * (1 - shrink)), rel=1e-6)
    # the mean's error (s2u + s2/n)/q enters with the share of the level that is shrunken away or borrowed
    assert got["se"].to_numpy() == approx(np.sqrt(s2u * (1 - shrink) + shrink**2 * (s2u + s2 / n) / q), rel=1e-6)


def test_simultaneous_intervals_are_wider_and_symmetric():
    frame, _ = one_way(np.random.default_rng(4))
    fit = lt.fit_lmm("y ~ 1 + (1 | g)", frame)
    together, alone = (fit.random_effects("g", simultaneous=s).to_frame() for s in (True, False))
    assert (together["ci_high"] > alone["ci_high"]).all()
    assert (together["ci_high"] - together["estimate"]).to_numpy() == approx(
        (together["estimate"] - together["ci_low"]).to_numpy()
    )
    given = fit.random_effects("g", target="conditional").to_frame()
    assert (given["ci_high"] - given["ci_low"] < together["ci_high"] - together["ci_low"]).all()


def test_many_levels_use_sidaks_inequality_and_say_so():
    frame, _ = one_way(np.random.default_rng(5), groups=80)
    found = lt.fit_lmm("y ~ 1 + (1 | g)", frame).random_effects("g")
    assert found.notes == ("The 80 intervals are simultaneous by Šidák's inequality, which makes them a little wider.",)


def test_a_variance_of_zero_has_no_intervals_and_the_reason():
    frame = pd.DataFrame({"g": list("aabbcc"), "y": [1.0, 2.0, 2.0, 1.0, 1.5, 1.5]})
    found = lt.fit_lmm("y ~ 1 + (1 | g)", frame).random_effects("g")
    assert found.to_frame()["estimate"].to_numpy() == approx(np.zeros(3))
    assert found.to_frame()["ci_low"].isna().all()
    assert set(found.clear.values()) == {()}
    assert "estimated as zero" in found.notes[0]


def test_clear_levels_are_those_whose_interval_excludes_zero():
    frame, _ = one_way(np.random.default_rng(6), groups=20)
    frame.loc[frame["g"] == "g07", "y"] += 30.0
    found = lt.fit_lmm("y ~ 1 + (1 | g)", frame).random_effects("g")
    assert "g07" in found.clear["Intercept"]
    assert "g07" in found.summary()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ({"group": "h"}, "group='h' is not a group of this model. Groups: g."),
        ({"group": "g", "target": "none"}, "target must be .prediction. or .conditional., got .none."),
    ],
)
def test_bad_input_of_random_effects(call, message):
    frame, _ = one_way(np.random.default_rng(7))
    refuses((ValueError, lt.errors.ArgumentError), message, lt.fit_lmm("y ~ 1 + (1 | g)", frame).random_effects, **call)


# ---------------------------------------------------------------------- predictions


def test_a_new_group_adds_its_variance_and_a_run_the_residuals():
    frame, _ = one_way(np.random.default_rng(8))
    fit = lt.fit_lmm("y ~ 1 + (1 | g)", frame)
    new = {"g": ["never seen"]}
    mean = fit.prediction_intervals(new, random=False)
    benchmark = fit.prediction_intervals(new)
    score = fit.prediction_intervals(new, target="score")
    assert mean["se"][0] == approx(fit.bse["Intercept"], rel=1e-9)
    assert benchmark["se"][0] ** 2 == approx(fit.bse["Intercept"] ** 2 + fit.covariances[0][0, 0], rel=1e-9)
    assert score["se"][0] ** 2 == approx(benchmark["se"][0] ** 2 + fit.scale, rel=1e-9)
    assert mean["df"][0] == approx(11, rel=1e-4)  # twelve groups, balanced


def test_known_groups_are_predicted_with_their_modes():
    frame, _ = one_way(np.random.default_rng(9))
    fit = lt.fit_lmm("y ~ 1 + (1 | g)", frame)
    got = fit.prediction_intervals()
    assert got["prediction"].to_numpy() == approx(fit.predict())
    wide = fit.prediction_intervals(alpha=0.01)
    assert (wide["ci_low"] < got["ci_low"]).all()
    assert (wide["ci_high"] > got["ci_high"]).all()
    again = fit.prediction_intervals(frame)
    pd.testing.assert_frame_equal(got, again)


def test_many_rows_are_predicted_in_batches():
    frame, _ = one_way(np.random.default_rng(10), groups=100, each=4)
    fit = lt.fit_lmm("y ~ 1 + (1 | g)", frame)
    whole = fit.prediction_intervals(frame)
    assert len(whole) == 400
    pd.testing.assert_frame_equal(whole.iloc[300:].reset_index(drop=True), fit.prediction_intervals(frame.iloc[300:]))


def test_scores_have_the_residual_variance_of_their_group():
    rng = np.random.default_rng(11)
    frame, _ = one_way(rng, each=20)
    frame["y"] += np.where(frame["g"] == "g00", 5.0, 0.0) * rng.normal(size=len(frame))
    fit = lt.fit_lmm("y ~ 1 + (1 | g)", frame, dispersion="g")
    rows = pd.DataFrame({"g": ["g00", "g01"]})
    mean, score = (fit.prediction_intervals(rows, target=t) for t in ("mean", "score"))
    assert (score["se"] ** 2 - mean["se"] ** 2).to_numpy() == approx(
        fit.residual_variances[["g00", "g01"]].to_numpy(), rel=1e-9
    )
    with pytest.raises(lt.errors.ArgumentError, match="the residual variance of g='g99' is not known"):
        fit.prediction_intervals({"g": ["g99"]}, target="score")


def test_bad_input_of_prediction_intervals():
    frame, _ = one_way(np.random.default_rng(12))
    fit = lt.fit_lmm("y ~ 1 + (1 | g)", frame)
    refuses(ValueError, r"target must be .mean. or .score., got .rows.", fit.prediction_intervals, target="rows")
    refuses(ValueError, "alpha must", fit.prediction_intervals, alpha=1.0)


def test_degrees_of_freedom_are_those_of_the_whole_variance():
    """A new level of a slope: nearly all of its variance is estimated from four slopes."""
    rng = np.random.default_rng(13)
    frame = pd.DataFrame({"g": np.repeat(list("abcd"), 9), "x": np.tile(np.linspace(-1, 1, 9), 4)})
    frame["y"] = np.repeat(rng.normal(size=4), 9) * frame["x"] + 0.1 * rng.normal(size=36)
    new = lt.fit_lmm("y ~ 1 + (0 + x | g)", frame).prediction_intervals({"g": ["new"], "x": [1.0]})
    assert new["df"][0] == approx(4.0, rel=0.05)  # slopes about a mean of zero
    frame, _ = one_way(rng)
    fit = lt.fit_lmm("y ~ 1 + (1 | g)", frame)
    score = fit.prediction_intervals({"g": ["never seen"]}, target="score")
    # the one-way layout: 13/12 of the variance between, 1 - 13/60 of that within in the variance of a new score
    between, within = fit.scale + 5 * fit.covariances[0][0, 0], fit.scale
    parts = np.array([between * 13 / 60, within * 4 / 5])
    assert score["se"][0] ** 2 == approx(parts.sum(), rel=1e-6)
    assert score["df"][0] == approx(parts.sum() ** 2 / (parts**2 / [11, 48]).sum(), rel=1e-3)


def test_effects_near_the_boundary_have_no_interval_and_the_reason():
    rng = np.random.default_rng(0)
    rows = []
    for b in range(6):
        level, own = rng.normal(), {a: 0.3 * rng.normal() for a in "ABC"}
        for s in range(5):
            run = 0.3 * rng.normal()
            rows += [(f"b{b}", a, s, level + run + own[a] + 0.3 * i + rng.normal()) for i, a in enumerate("ABC")]
    table = pd.DataFrame(rows, columns=["benchmark", "algorithm", "seed", "loss"])
    fit = lt.fit_lmm("loss ~ algorithm + (algorithm | benchmark) + (1 | benchmark:seed)", table)
    found = fit.random_effects("benchmark", rng=1)
    got = found.to_frame()
    assert got.loc[got["df"] < 1.0, "ci_low"].isna().all()
    assert got.loc[got["df"] >= 1.0, "ci_low"].notna().all()
    assert "less than one degree of freedom" in found.notes[-1]


def test_levels_of_one_kind_share_their_degrees_of_freedom():
    first, alike = representatives(np.array([2.0, 1.0, 2.0 + 1e-12, 0.0, 1e-30, 1.0]))
    assert len(first) == 4
    assert alike[0] == alike[2]
    assert alike[1] == alike[5]
    frame, _ = one_way(np.random.default_rng(14), groups=10)
    frame = frame.drop(index=[0, 1, 7])
    fit = lt.fit_lmm("y ~ 1 + (1 | g)", frame)
    df = fit.random_effects("g").to_frame().groupby(frame.groupby("g").size().to_numpy())["df"]
    assert (df.max() == df.min()).all()
    assert df.first().nunique() == 3


def test_columns_with_spaces_are_named_as_they_are():
    frame, _ = one_way(np.random.default_rng(15))
    fit = lt.fit_lmm("y ~ 1 + (1 | `bench mark`)", frame.rename(columns={"g": "bench mark"}))
    assert len(fit.random_effects("bench mark").to_frame()) == 12


def test_something_that_is_no_fit_is_named():
    refuses(lt.errors.ArgumentError, r"fit must be a fit of fit_lmm\(\), got str", random_effects, "fit", "g")


def test_errors_alone_are_computed_in_parts_and_are_those_of_the_joint_distribution(fitted, monkeypatch):
    fit = fitted("nested_slopes", "y ~ treatment * x + (x|a) + (1|a:b)")
    together = fit.random_effects("a", rng=1).to_frame()
    monkeypatch.setattr("lmemtest.lmm.model.predictions._BATCH", 5)
    alone = fit.random_effects("a", simultaneous=False).to_frame()
    columns = ["effect", "level", "estimate", "conditional_sd", "se", "df"]
    pd.testing.assert_frame_equal(alone[columns], together[columns], rtol=1e-10)
