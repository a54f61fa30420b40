"""Random effects with intervals, and predictions with intervals."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from pytest import approx

import lmemtest as lt


def fits(r_values) -> list[dict]:
    return r_values("random_effects")["fits"]


@pytest.mark.parametrize("index", range(6))
def test_modes_and_conditional_sds_are_lme4s(r_values, r_data, index):
    want = fits(r_values)[index]
    fit = lt.fit_lmm(want["formula"], r_data(want["data"]), weights=want["weights"])
    for group in want["groups"]:
        got = lt.random_effects(fit, group["group"], interval="pointwise").to_frame()
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
    got = lt.random_effects(fit, "g").to_frame()
    centred = frame.groupby("g")["y"].mean() - frame["y"].mean()
    assert got["estimate"].to_numpy() == approx(shrink * centred.to_numpy(), rel=1e-6)
    assert got["conditional_sd"].to_numpy() == approx(np.sqrt(s2u * (1 - shrink)), rel=1e-6)
    # the mean's error (s2u + s2/n)/q enters with the share of the level that is shrunken away or borrowed
    assert got["se"].to_numpy() == approx(np.sqrt(s2u * (1 - shrink) + shrink**2 * (s2u + s2 / n) / q), rel=1e-6)


def test_simultaneous_intervals_are_wider_and_symmetric():
    frame, _ = one_way(np.random.default_rng(4))
    fit = lt.fit_lmm("y ~ 1 + (1 | g)", frame)
    together, alone = (lt.random_effects(fit, "g", interval=i).to_frame() for i in ("simultaneous", "pointwise"))
    assert (together["ci_high"] > alone["ci_high"]).all()
    assert (together["ci_high"] - together["estimate"]).to_numpy() == approx(
        (together["estimate"] - together["ci_low"]).to_numpy()
    )
    given = lt.random_effects(fit, "g", error="conditional").to_frame()
    assert (given["ci_high"] - given["ci_low"] < together["ci_high"] - together["ci_low"]).all()


def test_many_levels_use_sidaks_inequality_and_say_so():
    frame, _ = one_way(np.random.default_rng(5), groups=80)
    found = lt.random_effects(lt.fit_lmm("y ~ 1 + (1 | g)", frame), "g")
    assert found.notes == ("The 80 intervals hold together by Sidak's inequality, which makes them a little wider.",)


def test_a_variance_of_zero_has_no_intervals_and_the_reason():
    frame = pd.DataFrame({"g": list("aabbcc"), "y": [1.0, 2.0, 2.0, 1.0, 1.5, 1.5]})
    found = lt.random_effects(lt.fit_lmm("y ~ 1 + (1 | g)", frame), "g")
    assert found.to_frame()["estimate"].to_numpy() == approx(np.zeros(3))
    assert found.to_frame()["ci_low"].isna().all()
    assert found.clear() == ()
    assert "estimated as zero" in found.notes[0]


def test_clear_levels_are_those_whose_interval_excludes_zero():
    frame, _ = one_way(np.random.default_rng(6), groups=20)
    frame.loc[frame["g"] == "g07", "y"] += 30.0
    found = lt.random_effects(lt.fit_lmm("y ~ 1 + (1 | g)", frame), "g")
    assert "g07" in found.clear()
    assert "g07" in found.summary()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ({"group": "h"}, "group='h' is not a group of this model. Groups: g."),
        ({"group": "g", "interval": "all"}, "interval must be .simultaneous. or .pointwise., got .all."),
        ({"group": "g", "error": "none"}, "error must be .prediction. or .conditional., got .none."),
        ({"group": "g", "level": 95}, "level must"),
    ],
)
def test_bad_input_of_random_effects(call, message):
    frame, _ = one_way(np.random.default_rng(7))
    with pytest.raises((ValueError, lt.errors.ArgumentError), match=message):
        lt.random_effects(lt.fit_lmm("y ~ 1 + (1 | g)", frame), **call)


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
    wide = fit.prediction_intervals(level=0.99)
    assert (wide["ci_low"] < got["ci_low"]).all()
    assert (wide["ci_high"] > got["ci_high"]).all()
    again = fit.prediction_intervals(fit.cells.frame)
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
    with pytest.raises(ValueError, match=r"target must be .mean. or .score., got .rows."):
        fit.prediction_intervals(target="rows")
    with pytest.raises(ValueError, match="level must"):
        fit.prediction_intervals(level=1.0)
