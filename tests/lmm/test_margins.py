"""Tests against a margin: closed forms, duality with intervals, size at the margin, refusals."""

import numpy as np
import pytest
from refusals import refuses
from scipy import stats

from lmemtest.errors import ArgumentError
from lmemtest.lmm.distributions.largest_t import largest_t

V = np.diag([0.010, 0.020, 0.010, 0.030])


@pytest.fixture
def em(means_of):
    return means_of([0.0, 0.05, 0.4, 3.0], V, df=12)


def test_p_values_are_those_of_two_one_sided_tests(em):
    frame = em.pairs().equivalence(0.5, adjust="none").to_frame()
    for row in frame.to_dict("records"):
        lower = stats.t.sf((row["estimate"] + 0.5) / row["se"], 12)
        upper = stats.t.cdf((row["estimate"] - 0.5) / row["se"], 12)
        assert row["p_value"] == pytest.approx(max(lower, upper), rel=1e-10)
        half = stats.t.isf(0.05, 12) * row["se"]
        assert row["ci_high"] - row["estimate"] == pytest.approx(half, rel=1e-9)


@pytest.mark.parametrize("adjust", ["none", "bonferroni", "holm", "fdr"])
@pytest.mark.parametrize("margin", [0.2, 0.35, 0.5, 0.9, (-0.3, 0.8)])
def test_equivalence_is_claimed_exactly_when_the_interval_lies_within_the_margin(em, adjust, margin):
    result = em.pairs().equivalence(margin, alpha=0.1, adjust=adjust)
    frame = result.to_frame()
    low, high = result.margin
    within = (frame["ci_low"] > low) & (frame["ci_high"] < high)
    assert (within == (frame["p_value"] < 0.1)).all()


def test_holm_adjusts_the_p_values_of_the_pairs(em):
    raw = em.pairs().equivalence(0.5, adjust="none").to_frame()["p_value"].to_numpy()
    result = em.pairs().equivalence(0.5)
    order = np.argsort(raw)
    want = np.empty(6)
    want[order] = np.minimum(1, np.maximum.accumulate(raw[order] * np.arange(6, 0, -1)))
    np.testing.assert_allclose(result.to_frame()["p_value"], want, rtol=1e-12)
    assert result.adjust == "holm"


def test_the_four_decisions(means_of):
    em = means_of([0.0, 0.01, 0.3, 3.0, 0.4], np.diag([1e-4, 1e-4, 1e-4, 1e-4, 0.4]), df=40)
    frame = em.against("a0").equivalence(0.5).to_frame().set_index("left")["decision"]
    assert frame.to_dict() == {"a1": "equivalent", "a2": "trivially different", "a3": "different", "a4": "undecided"}


def test_few_data_never_make_means_equal(means_of):
    frame = means_of([0.0, 0.0, 0.0], 10 * np.eye(3), df=2).pairs().equivalence(0.5).to_frame()
    assert (frame["p_difference"] > 0.99).all()
    assert (frame["decision"] == "undecided").all()


def test_sides_and_units_do_not_matter(means_of):
    one = means_of([0.0, 0.1, 0.4], V[:3, :3], df=9).pairs().equivalence(0.5).to_frame()
    scaled = means_of([0.0, -100.0, -400.0], 1e6 * V[:3, :3], df=9).pairs().equivalence(500).to_frame()
    np.testing.assert_allclose(one["p_value"], scaled["p_value"], rtol=1e-9)
    assert one["decision"].tolist() == scaled["decision"].tolist()


def test_equivalence_at_the_margin_is_claimed_at_most_as_often_as_alpha(means_of):
    rng = np.random.default_rng(4)
    n, df, se = 20_000, 10, np.sqrt(0.02)
    s = np.sqrt(rng.chisquare(df, n) / df)
    estimate = 0.5 + se * rng.normal(size=n)
    result = means_of([0.5, 0.0], 0.01 * np.eye(2), df=df).pairs().equivalence(0.5, adjust="none")
    t = stats.t.isf(0.05, df)  # the decision of the package for these data, by its interval
    assert result.table["ci_high"][0] == pytest.approx(0.5 + t * se, rel=1e-9)
    claimed = (estimate + t * se * s < 0.5) & (estimate - t * se * s > -0.5)
    assert np.mean(claimed) <= 0.05 + 4 * np.sqrt(0.05 * 0.95 / n)


# ---------------------------------------------------------------------- non-inferiority


@pytest.mark.parametrize(("direction", "sign"), [("maximize", 1.0), ("minimize", -1.0)])
def test_noninferiority_is_a_one_sided_test_in_the_better_direction(means_of, direction, sign):
    mean = sign * np.array([0.0, -0.1, 0.4, -3.0])
    compared = means_of(mean, V, df=12, direction=direction).against("a0")
    frame = compared.noninferiority(0.5, adjust="none").to_frame()
    np.testing.assert_allclose(frame["gain"], [-0.1, 0.4, -3.0], rtol=1e-12)
    se = np.sqrt(0.01 + np.diag(V)[1:])
    np.testing.assert_allclose(frame["p_value"], stats.t.sf((frame["gain"] + 0.5) / se, 12), rtol=1e-10)
    np.testing.assert_allclose(frame["gain_low"], frame["gain"] - stats.t.isf(0.05, 12) * se, rtol=1e-9)
    assert frame["decision"].tolist() == ["non-inferior", "superior", "undecided"]


@pytest.mark.daily(2)
@pytest.mark.parametrize("adjust", ["none", "bonferroni", "holm", "fdr", "dunnett"])
def test_lower_limits_agree_with_the_decisions(means_of, adjust):
    rng = np.random.default_rng(5)
    for _ in range(20):
        compared = means_of(rng.normal(scale=0.4, size=6), 0.01 * np.eye(6), df=12, direction="maximize").against("a0")
        found = compared.noninferiority(0.3, adjust=adjust).to_frame()
        assert ((found["gain_low"] >= -0.3) == (found["p_value"] < 0.05)).all()
        assert ((found["gain_low"] > 0) == (found["decision"] == "superior")).all()


def test_noninferiority_uses_the_one_sided_distribution_of_dunnett(em):
    frame = em.against("a0").noninferiority(0.3, direction="maximize").to_frame()
    b = np.sqrt(0.01 / (0.01 + np.diag(V)[1:]))
    joint = largest_t(np.outer(b, b) * (1 - np.eye(3)) + np.eye(3), alternative="greater")
    np.testing.assert_allclose(frame["p_value"], joint.sf(frame["t_ratio"], 12), rtol=1e-9)
    above = frame["gain_low"] > -0.3
    assert (above == (frame["p_value"] < 0.05)).all()
    assert (frame.loc[frame["gain_low"] > 0, "decision"] == "superior").all()


@pytest.mark.parametrize("adjust", ["holm", "bonferroni", "fdr", "dunnett"])
def test_adjusted_p_values_are_no_smaller_than_single_ones(em, adjust):
    compared = em.against("a0")
    single = compared.noninferiority(0.3, direction="maximize", adjust="none").to_frame()["p_value"]
    adjusted = compared.noninferiority(0.3, direction="maximize", adjust=adjust).to_frame()["p_value"]
    assert (adjusted >= single - 1e-15).all()


def test_differences_without_a_test_are_undecided(fitted):
    from lmemtest.lmm.means.emmeans import emmeans

    pw = emmeans(fitted("rank_deficient", "y ~ a * b + (1|g)"), "a", by="b").pairs()
    result = pw.equivalence(5)
    frame = result.to_frame()
    missing = frame["p_value"].isna()
    assert missing.any()
    assert (frame.loc[missing, "decision"] == "undecided").all()
    assert "cannot be compared" in result.summary()


def test_results_read_as_text(em):
    equal = em.pairs().equivalence(0.9)
    text = equal.summary()
    assert "equivalence margin -0.9 to 0.9" in text
    assert "a0 and a1 are equivalent within the margin of -0.9 to 0.9 (equivalence p" in text
    assert "a0 and a3 differ, and not provably by less than the margin" in text
    passed = em.against("a0").noninferiority(0.5, direction="maximize")
    text = passed.summary()
    assert "Non-inferiority of algorithm to a0" in text
    assert "a1 is not worse than a0 by more than 0.5" in text
    assert "a3 is better than a0" in text


@pytest.mark.parametrize("margin", [0, -1, np.nan, np.inf, "1", None, True, (1, 2), (-1, np.inf), (1,)])
def test_margins_that_are_none_are_refused(em, margin):
    refuses(ArgumentError, "margin", em.pairs().equivalence, margin)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda e: e.pairs().equivalence(1).equivalence(1),
         r"equivalence is for the result of pairs\(\) or against\(\), and this is that of equivalence\(\)\."),
        (lambda e: e.pairs().equivalence(-0.5),
         r"margin must be a finite number above 0, got -0\.5: the largest difference that is of no practical"),
        (lambda e: e.pairs().equivalence((0.1, 1)), r"must have low < 0 < high, got \(0\.1, 1\)\."),
        (lambda e: e.pairs().equivalence(1, alpha=0.5),
         r"alpha must be below 0\.5 for tests against a margin, got 0\.5"),
        (lambda e: e.pairs().equivalence(1, adjust="tukey"), "adjust must be 'holm' or 'bonferroni'"),
        (lambda e: e.pairs().noninferiority(1),
         r"noninferiority is for the result of against\(\), and this is that of pairs\(\)\."),
        (lambda e: e.against("a0").noninferiority(0), "margin must be a finite number above 0, got 0: "),
    ],
)  # fmt: skip
def test_bad_arguments_are_named(em, call, message):
    refuses(ArgumentError, message, call, em)


def test_noninferiority_needs_a_direction(means_of):
    compared = means_of([0.0, 1.0], np.eye(2), df=9, direction=None).against("a0")
    refuses(ArgumentError, "noninferiority must know which end of the response is better", compared.noninferiority, 1)
