"""Comparisons with the best: Hsu's formulas from R, duality, direction, coverage."""

import numpy as np
import pytest
from refusals import refuses

from lmemtest.errors import ArgumentError
from lmemtest.lmm.distributions.largest_t import largest_t
from lmemtest.lmm.means.contrasts import constrained_intervals


def test_intervals_match_the_formulas_of_hsu_computed_in_r(reference, means_of):
    for case in reference("simultaneous")["best"]:
        table = {key: np.array([row[key] for row in case["table"]], dtype=float) for key in case["table"][0]}
        em = means_of(table["mean"], np.diag(table["variance"]), df=case["df"])
        frame = em.best(alpha=case["alpha"], rng=1).to_frame()
        # mvtnorm's quantiles carry an error of up to 5e-4
        np.testing.assert_allclose(frame["critical"], table["critical"], atol=1e-3)
        np.testing.assert_allclose(frame["ci_low"], table["ci_low"], atol=1e-3)
        np.testing.assert_allclose(frame["ci_high"], table["ci_high"], atol=1e-3)


def test_balanced_means_use_the_one_sided_value_of_dunnett(means_of):
    mean, s = np.array([1.0, 2.0, 2.3, 0.1]), np.sqrt(0.2)
    frame = means_of(mean, 0.1 * np.eye(4) + 0.7, df=20).best().to_frame()
    d = largest_t(0.5 + 0.5 * np.eye(3), alternative="greater").isf(0.05, 20).item()
    assert d == pytest.approx(2.19, abs=0.005)  # Dunnett's table
    lead = [m - max(np.delete(mean, i)) for i, m in enumerate(mean)]
    np.testing.assert_allclose(frame["lead"], lead, rtol=1e-12)
    np.testing.assert_allclose(frame["ci_high"], np.maximum(0, np.array(lead) + d * s), rtol=1e-9)
    np.testing.assert_allclose(frame["ci_low"], np.minimum(0, np.array(lead) - d * s), rtol=1e-9)


@pytest.mark.parametrize("df", [6.0, np.inf])
def test_a_level_is_ruled_out_exactly_when_its_p_value_is_small(means_of, df):
    em = means_of([0.0, 0.5, 0.9, 2.0, 1.4], np.diag([0.1, 0.2, 0.1, 0.3, 0.2]), df=df)
    p = em.best().to_frame()["p_value"]
    for alpha in (0.4, 0.2, 0.05, 0.001):
        frame = em.best(alpha=alpha).to_frame()
        assert (frame["can_be_best"] == (p > alpha)).all()
        assert (frame["can_be_best"] == (frame["ci_high"] > 0)).all()
        assert ((frame["ci_low"] <= 0) & (frame["ci_high"] >= 0)).all()


def test_direction_is_a_matter_of_sign(means_of):
    mean, V = np.array([0.0, 0.5, 0.9, 2.0]), np.diag([0.1, 0.2, 0.1, 0.3])
    up = means_of(mean, V, df=9).best().to_frame().drop(columns="mean")
    down = means_of(-mean, V, df=9, direction="minimize").best().to_frame().drop(columns="mean")
    np.testing.assert_allclose(up.drop(columns="algorithm").astype(float), down.drop(columns="algorithm").astype(float))
    asked = means_of(mean, V, df=9).best(direction="minimize")
    assert asked.candidates[()][0] == "a0"
    assert any("sought to minimize as asked; the runs say maximize" in note for note in asked.notes)


def test_order_of_levels_does_not_matter(means_of):
    mean, V = np.array([0.0, 0.5, 0.9, 2.0]), np.diag([0.1, 0.2, 0.1, 0.3])
    order = [2, 0, 3, 1]
    one = means_of(mean, V, df=9).best().to_frame().drop(columns="algorithm")
    other = means_of(mean[order], V[np.ix_(order, order)], df=9).best().to_frame().drop(columns="algorithm")
    np.testing.assert_allclose(one.to_numpy(dtype=float)[order], other.to_numpy(dtype=float), rtol=1e-8)


def test_it_rules_out_no_fewer_than_all_pairs_do(means_of):
    em = means_of([0.0, 0.5, 0.85, 2.0, 1.3], 0.1 * np.eye(5), df=15)
    best = em.best().to_frame().set_index("algorithm")["can_be_best"]
    apart = em.pairs().decisions().significant.loc["a3"]
    assert not (best & apart.reindex(best.index)).any()
    assert best.sum() < (~apart).sum()


def test_groups_have_a_best_of_their_own(means_of):
    em = means_of([0, 1, 9, 7, 1, 3], 0.1 * np.eye(6), df=9, by=["bad", "good"])
    result = em.best()
    assert result.candidates == {("bad",): ("a2",), ("good",): ("a0",)}
    assert result.sentences()[0] == "At prior = bad: a2 is the best (95 % confidence)."


def test_correlated_means_of_unbalanced_data_are_sampled_with_a_note(means_of):
    rng = np.random.default_rng(1)
    A = rng.normal(size=(5, 8))
    result = means_of([0, 0.1, 0.3, 0.2, 0.5], A @ A.T / 80, df=9).best(rng=1)
    assert any("quasi-Monte-Carlo with 98,304 points" in note for note in result.notes)


def test_it_is_not_known_whether_a_level_without_a_mean_is_the_best(fitted):
    from lmemtest.lmm.means.emmeans import emmeans

    em = emmeans(fitted("rank_deficient", "y ~ a * b + (1|g)"), "a", by="b")
    result = em.best(direction="maximize", rng=1)
    frame = result.to_frame()
    missing = frame["mean"].isna()
    assert missing.any()
    assert frame.loc[missing, "can_be_best"].isna().all()
    assert frame.loc[~missing, "can_be_best"].notna().all()
    unknown = set(zip(frame.loc[missing, "b"], frame.loc[missing, "a"], strict=True))
    assert not any((b, name) in unknown for (b,), names in result.candidates.items() for name in names)
    assert any("Nothing is known of " in sentence for sentence in result.sentences())
    assert any("whether it can be the best is not known (NA)" in note for note in result.notes)
    assert np.isfinite(frame.loc[~missing, ["ci_low", "ci_high", "lead"]].to_numpy(dtype=float)).all()


@pytest.mark.daily(1)
@pytest.mark.parametrize("true", [[0, 0, 0, 0], [0, 0, 0, -3], [0, -0.2, -0.4, -0.6], [0, -9, -9, -9]])
def test_all_leads_are_covered_as_often_as_promised(true, means_of):
    true, variance, df, n = np.array(true, dtype=float), np.array([0.3, 0.1, 0.2, 0.1]), 8, 4000
    rng = np.random.default_rng(3)
    # critical values do not depend on the means
    scale = np.sqrt(variance[:, None] + variance)
    critical = np.full((4, 4), np.nan)
    for i, value in enumerate(means_of(true, np.diag(variance), df=df).best().to_frame()["critical"]):
        critical[i, np.arange(4) != i] = value
    lead = np.array([m - np.delete(true, i).max() for i, m in enumerate(true)])
    covered = 0
    for _ in range(n):
        mean = true + rng.normal(size=4) * np.sqrt(variance)
        se = scale * np.sqrt(rng.chisquare(df) / df)
        low, high = constrained_intervals(mean[:, None] - mean, se, critical)
        covered += bool(np.all((low <= lead + 1e-12) & (lead <= high + 1e-12)))
    assert covered / n >= 0.95 - 4 * np.sqrt(0.95 * 0.05 / n)


def test_results_read_as_text(means_of):
    result = means_of([0.0, 5.0, 5.1], 0.1 * np.eye(3), df=11).best()
    text = result.summary()
    assert "Comparisons of algorithm with the best" in text
    assert text.endswith("a1 and a2 can be the best; the other one cannot (95 % confidence).")
    alike = means_of([5.0, 5.0, 5.1], 0.1 * np.eye(3), df=11).best().sentences()
    assert alike == ("No level can be ruled out as the best (95 % confidence): a0, a1 and a2.",)


def test_bad_arguments_are_named(means_of):
    em = means_of([0.0, 1.0, 2.0], np.eye(3), df=9, direction=None)
    refuses(ArgumentError, "must know which end of the response is better: give direction='minimize'", em.best)
    with pytest.raises(ArgumentError, match=r"alpha must be below 0\.5 for comparisons with the best, got 0\.6"):
        em.best(direction="maximize", alpha=0.6)
    refuses(ArgumentError, r"at least two means in each group, got one \(a0\)", means_of([1.0], np.eye(1), df=9).best)
