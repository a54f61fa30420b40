"""The hub: what is estimated, built from arrays or from a fit, and what follows from it."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import lmemtest as lt
from lmemtest.errors import ArgumentError
from lmemtest.lmm.means.estimates import Estimates


def of_arrays(means, covariance, df=10.0, **options):
    frame = pd.DataFrame({"tool": list("ABCDE")[: len(means)]})
    given = {"score": "loss", "direction": "minimize", **options}
    return Estimates.of(L=np.eye(len(means)), b=means, V=covariance, df=df, frame=frame, **given)


@pytest.fixture(scope="module")
def means():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame([{"tool": a, "task": t} for t in range(8) for a in "ABC" for _ in range(2)])
    frame["loss"] = rng.normal(size=len(frame)) + frame["tool"].map({"A": 0.0, "B": 0.1, "C": 2.0})
    runs = lt.Runs(frame, score="loss", direction="minimize", algorithm="tool", benchmark="task")
    return lt.fit_lmm("loss ~ tool + (1 | task)", runs).emmeans("tool", vcov="model")


def test_estimates_of_arrays_have_t_intervals_and_t_tests():
    found = of_arrays([1.0, 2.5], np.diag([0.04, 0.09]), df=7.0, alpha=0.1)
    half = stats.t.ppf(0.95, 7) * np.array([0.2, 0.3])
    np.testing.assert_allclose(found.ci_high - found.estimate, half, rtol=1e-12)
    pair = found.pairs(adjust="none").to_frame().iloc[0]
    assert pair["p_value"] == pytest.approx(2 * stats.t.sf(1.5 / np.sqrt(0.13), 7), rel=1e-12)


def test_the_verbs_of_pairs_and_of_a_control_are_those_of_their_estimates(means):
    same = [
        (means.decisions(), means.pairs().decisions()),
        (means.equivalence(0.5), means.pairs().equivalence(0.5)),
        (means.noninferiority(0.5, "A"), means.against("A").noninferiority(0.5)),
    ]
    for short, long in same:
        pd.testing.assert_frame_equal(short.to_frame(), long.to_frame())
        assert short.summary() == long.summary()


def test_groups_of_estimates_have_one_size():
    frame = {"tool": list("ABC"), "prior": list("ggb")}
    with pytest.raises(ArgumentError, match=r"^by must split frame into groups of one size, got 1 and 2 rows\."):
        Estimates.of(frame, b=[1.0, 2.0, 3.0], V=np.eye(3), df=9.0, score="loss", by=("prior",))


def test_the_joint_test_of_means_is_that_of_the_factor(means):
    joint = means.joint().to_frame().iloc[0]
    whole = (means_fit := means_of_fit()).joint_tests().to_frame().iloc[0]
    mine = means_fit.emmeans("tool", vcov="model").joint().to_frame().iloc[0]
    assert mine["f_ratio"] == pytest.approx(whole["f_ratio"], rel=1e-10)
    assert mine["df_den"] == pytest.approx(whole["df_den"], rel=1e-8)
    assert joint["df_num"] == 2


def means_of_fit():
    rng = np.random.default_rng(5)
    frame = pd.DataFrame([{"tool": a, "task": str(t)} for t in range(6) for a in "ABC"])
    return lt.fit_lmm("loss ~ tool + (1 | task)", frame.assign(loss=rng.normal(size=len(frame))))


def test_the_joint_test_of_arrays_is_a_wald_test_of_all_differences():
    b, V = np.array([1.0, 2.0, 4.0]), np.array([[0.5, 0.1, 0.0], [0.1, 0.4, 0.1], [0.0, 0.1, 0.6]])
    found = of_arrays(b, V, df=12.0).joint().to_frame().iloc[0]
    D = np.array([[1.0, -1.0, 0.0], [1.0, 0.0, -1.0]])
    f = D @ b @ np.linalg.solve(D @ V @ D.T, D @ b) / 2
    assert (found["f_ratio"], found["df_num"], found["df_den"]) == (pytest.approx(f, rel=1e-10), 2, 12.0)
    assert found["p_value"] == pytest.approx(stats.f.sf(f, 2, 12), rel=1e-10)


def test_the_joint_test_says_what_it_leaves_out():
    missing = of_arrays(
        [1.0, 2.0, 4.0], np.diag([1.0, 1.0, 1.0]), estimable_function=lambda rows: rows[:, 2] == 0.0
    ).joint()
    assert missing.to_frame()["df_num"][0] == 1
    assert any("All that are estimable" in note for note in missing.notes)


def test_a_group_of_estimates_keeps_who_may_be_compared_with_whom():
    frame = pd.DataFrame({"tool": list("ABAB"), "prior": list("ggbb")})
    comparable = np.ones((4, 4), dtype=bool)
    comparable[2, 3] = comparable[3, 2] = False
    found = Estimates.of(
        L=np.eye(4), b=np.arange(4.0), V=np.eye(4), df=9.0, frame=frame, by=("prior",), score="loss",
        comparable=comparable,
    ).pairs()  # fmt: skip
    assert np.isfinite(found.select(prior="g").table["p_value"]).all()
    assert found.select(prior="b").sentences()[0].endswith("no benchmark in common, so there is no verdict.")


def test_comparisons_are_asked_for_what_they_are(means):
    with pytest.raises(
        ArgumentError, match=r"^decisions is for the result of pairs\(\), and this is that of against\(\)\.$"
    ):
        means.against("A").decisions()
    with pytest.raises(
        ArgumentError, match=r"^noninferiority is for the result of against\(\), and this is that of pairs"
    ):
        means.pairs().noninferiority(0.5)
