"""Multivariate-t adjustment of pairs, and comparisons with a control, against emmeans and its algebra."""

from dataclasses import replace

import numpy as np
import pytest
from refusals import refuses

from lmemtest.errors import ArgumentError
from lmemtest.lmm.distributions.largest_t import largest_t
from lmemtest.lmm.means.emmeans import emmeans

CROSSED = "(1|benchmark) + (1|benchmark:algorithm) + (1|benchmark:seed)"


def with_df(em, df):
    return replace(em, df_function=lambda rows: np.full(len(rows), df), df=np.full(len(em.df), df))


def rows_of(reference, fitted):
    for model in reference("simultaneous")["models"]:
        fit = fitted(model["data"], model["formula"])
        em = emmeans(fit, model["specs"], ddf="asymptotic")
        yield with_df(em, np.inf), model["asymptotic"]
        yield with_df(em, 12.0), model["df_12"]


def assert_rows(frame, rows, sign):
    assert len(frame) == len(rows)
    for ours, row in zip(frame.to_dict("records"), rows, strict=True):
        se = row["se"]
        assert sign * ours["estimate"] == pytest.approx(row["estimate"], abs=1e-4 * se)
        assert ours["se"] == pytest.approx(se, rel=1e-4)
        # emmeans takes mvtnorm's defaults: an error of 1e-3 in probabilities, the same in quantiles
        assert ours["p_value"] == pytest.approx(row["p_value"], abs=1.2e-3)
        assert ours["ci_high"] - ours["ci_low"] == pytest.approx(row["ci_high"] - row["ci_low"], abs=0.015 * se)


def test_pairs_with_mvt_match_emmeans(reference, fitted):
    for em, want in rows_of(reference, fitted):
        assert_rows(em.pairs(adjust="mvt", rng=1).to_frame(), want["pairs"], 1.0)


def test_comparisons_with_a_control_match_emmeans(reference, fitted):
    for em, want in rows_of(reference, fitted):
        frame = em.against(em.labels()[0], rng=1).to_frame()
        assert_rows(frame, want["control"], 1.0)
        assert em.against(em.labels()[0], adjust="mvt", rng=1).to_frame().equals(frame)  # R's name of it


def test_mvt_is_tukey_for_equally_precise_means_and_sharper_otherwise(means_of):
    mean = [0.0, 0.4, 1.1, 1.3]
    balanced = means_of(mean, 0.1 * np.eye(4) + 0.3, df=11)
    one, other = (balanced.pairs(adjust=a).to_frame() for a in ("mvt", "tukey"))
    np.testing.assert_allclose(one[["p_value", "ci_low"]], other[["p_value", "ci_low"]], rtol=1e-10)
    unbalanced = means_of(mean, np.diag([0.01, 0.1, 0.1, 0.1]), df=11)
    one, other = (unbalanced.pairs(adjust=a, rng=1).to_frame()["p_value"] for a in ("mvt", "tukey"))
    assert (one < other).all()


def test_dunnett_of_independent_means_uses_their_product_correlation(means_of):
    variance = np.array([0.2, 0.1, 0.4, 0.3])
    result = means_of([1.0, 2.0, 2.2, 0.3], np.diag(variance), df=14).against("a0")
    b = np.sqrt(variance[0] / (variance[0] + variance[1:]))
    joint = largest_t(np.outer(b, b) * (1 - np.eye(3)) + np.eye(3))
    frame = result.to_frame()
    t = np.array([1.0, 1.2, -0.7]) / np.sqrt(variance[0] + variance[1:])
    np.testing.assert_allclose(frame["t_ratio"], t, rtol=1e-12)
    np.testing.assert_allclose(frame["p_value"], joint.sf(np.abs(t), 14), rtol=1e-9)
    np.testing.assert_allclose(frame["ci_high"] - frame["estimate"], joint.isf(0.05, 14) * frame["se"], rtol=1e-9)
    assert frame["right"].unique().tolist() == ["a0"]
    assert (result.adjust, result.intervals, result.control) == ("dunnett", "simultaneous", "a0")


def test_fewer_comparisons_have_more_power_than_all_pairs(means_of):
    em = means_of([0.0, 0.9, 1.1, 1.3], 0.1 * np.eye(4), df=11)
    p_control = em.against("a0").to_frame()["p_value"].to_numpy()
    p_pairs = em.pairs().to_frame().query("left == 'a0'")["p_value"].to_numpy()
    p_single = em.pairs(adjust="none").to_frame().query("left == 'a0'")["p_value"].to_numpy()
    assert np.all((p_single < p_control) & (p_control < p_pairs))


@pytest.mark.parametrize("adjust", ["dunnett", "sidak", "bonferroni", "none"])
def test_intervals_exclude_zero_exactly_when_p_is_small(means_of, adjust):
    em = means_of([0.0, 0.5, 0.9, 2.0, -1.5], np.diag([0.1, 0.2, 0.1, 0.3, 0.2]), df=9)
    frame = em.against("a0", adjust=adjust).to_frame()
    excluded = (frame["ci_low"] > 0) | (frame["ci_high"] < 0)
    assert (excluded == (frame["p_value"] < 0.05)).all()


def test_groups_are_families_of_their_own(means_of):
    covariance = np.diag([0.1, 0.2, 0.3, 0.2, 0.1, 0.1])
    both = means_of([0, 1, 2, 0, 1, 3], covariance, df=9, by=["bad", "good"]).against("a1").to_frame()
    alone = means_of([0, 1, 3], covariance[3:, 3:], df=9).against("a1").to_frame()
    part = both[both["prior"] == "good"].drop(columns="prior").reset_index(drop=True)
    np.testing.assert_allclose(part["p_value"], alone["p_value"], rtol=1e-9)
    pw = means_of([0, 1, 2, 0, 1, 3], covariance, df=9, by=["bad", "good"]).pairs(adjust="mvt")
    assert len(pw.joint) == 2
    good = pw.select(prior="good")
    assert len(good.joint) == 1
    frame = good.to_frame()
    np.testing.assert_allclose(good.half_widths(0.05), (frame["ci_high"] - frame["ci_low"]) / 2, rtol=1e-10)


def test_decisions_takes_the_critical_difference_of_the_joint_distribution(means_of):
    pw = means_of([0.0, 0.9, 1.1, 2.3], np.diag([0.1, 0.1, 0.2, 0.1]), df=11).pairs(adjust="mvt", rng=1)
    result = pw.decisions(alpha=0.1)
    half = pw.joint[0].isf(0.1, 11.0) * pw.table["se"]
    assert result.critical_difference == pytest.approx((half.min(), half.max()), rel=1e-10)
    assert "multivariate t adjustment" in result.summary()


def test_contrasts_of_any_kind_have_a_joint_distribution(means_of):
    em = means_of([0.0, 0.9, 1.1, 2.3], np.diag([0.1, 0.1, 0.2, 0.1]), df=11)
    K = {"first half": [0.5, 0.5, -0.5, -0.5], "outer": [0.5, -0.5, -0.5, 0.5], "again": [1, 1, -1, -1]}
    frame = em.contrast(K, adjust="mvt").to_frame()
    assert frame["p_value"][0] == pytest.approx(frame["p_value"][2], rel=1e-9)
    single = em.contrast(K).to_frame()["p_value"]
    sidak = 1 - (1 - single) ** 2  # two distinct hypotheses
    assert ((frame["p_value"] > single) & (frame["p_value"] <= sidak + 1e-12)).all()


def test_differences_without_a_test_stay_nan_and_leave_the_family(fitted):
    em = emmeans(fitted("rank_deficient", "y ~ a * b + (1|g)"), "a", by="b")
    mvt, plain = (em.pairs(adjust=a, rng=1).to_frame() for a in ("mvt", "none"))
    assert plain["p_value"].isna().any()
    assert (mvt["p_value"].isna() == plain["p_value"].isna()).all()
    assert (mvt["p_value"].dropna() >= plain["p_value"].dropna() - 1e-12).all()


def test_results_read_as_text(means_of):
    result = means_of([0.0, 5.0, 0.1], 0.1 * np.eye(3), df=11, direction="minimize").against("a0")
    text = result.summary()
    assert "Differences of algorithm from a0" in text
    assert "Dunnett adjustment for 2 comparisons" in text
    assert "a0 is better than a1 by 5" in text
    assert "a2 and a0 are not significantly different" in text


def test_bad_arguments_are_named(means_of):
    em = means_of([0.0, 1.0, 2.0], np.eye(3), df=9)
    refuses(ArgumentError, r"control must be one of the means \(a0, a1, a2\), got 'a9'", em.against, "a9")
    refuses(ArgumentError, "adjust must be 'dunnett' or 'holm'", em.against, "a0", adjust="tukey")
    with pytest.raises(ArgumentError, match="at least one other mean in each group, got a0"):
        means_of([1.0], np.eye(1), df=9).against("a0")
