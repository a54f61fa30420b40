"""Means and decisions from elsewhere: the same decisions in any order, and nothing that contradicts itself."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest

from lmemtest.errors import LmemtestError
from lmemtest.lmm.means.decisions import Decisions

MEANS = {"A": 3.0, "B": 1.0, "C": 2.0, "D": np.nan}
P = pd.DataFrame(
    [[1.0, 0.01, 0.2, np.nan], [0.01, 1.0, 0.05, 0.03], [0.2, 0.05, 1.0, 0.9], [np.nan, 0.03, 0.9, 1.0]],
    index=list("ABCD"),
    columns=list("ABCD"),
)


def significant(sep):
    return {frozenset(pair) for pair in zip(*np.nonzero(sep.significant.to_numpy()), strict=True)}


def test_p_values_and_booleans_give_the_decisions_that_they_say():
    sep = Decisions.of(MEANS, P, direction="minimize", alpha=0.05, critical_difference=(0.5, 1.0))
    assert sep.levels == ("B", "C", "A", "D")
    assert sep.decision.loc["A", "B"]
    assert not sep.decision.loc["B", "C"]  # 0.05 is not below 0.05
    assert sep.decision.loc["A", "D"] is pd.NA
    assert sep.groups == (("B", "C"), ("C", "A", "D"))
    assert sep.critical_difference == (0.5, 1.0)
    flags = (P < 0.05).astype("boolean").mask(P.isna())
    same = Decisions.of(MEANS, flags, direction="minimize")
    pd.testing.assert_frame_equal(same.decision, sep.decision)
    assert np.isnan(same.alpha)
    assert "alpha" not in same.summary()


@pytest.mark.parametrize("seed", range(3))
def test_the_order_of_rows_columns_and_means_changes_nothing(seed):
    rng = np.random.default_rng(seed)
    rows, columns, means = (list(rng.permutation(list("ABCD"))) for _ in range(3))
    found = Decisions.of(
        pd.Series(MEANS).loc[means], P.loc[rows, columns].where(lambda p: ~np.isin(p, [1.0])), direction="maximize"
    )
    want = Decisions.of(MEANS, P, direction="maximize")
    assert (found.levels, found.groups, found.letters) == (want.levels, want.groups, want.letters)
    pd.testing.assert_frame_equal(found.decision, want.decision)


def test_one_triangle_is_enough_and_an_array_has_the_order_of_the_means():
    upper = P.where(np.triu(np.ones((4, 4), dtype=bool), 1))
    want = Decisions.of(MEANS, P).decision
    pd.testing.assert_frame_equal(Decisions.of(MEANS, upper).decision, want)
    pd.testing.assert_frame_equal(Decisions.of(MEANS, P.to_numpy()).decision, want)


def test_labels_may_be_numbers_and_in_any_script():
    names = [10, "Ωμέγα", "漢字"]
    p = pd.DataFrame(np.full((3, 3), 0.5), index=names, columns=["10", "Ωμέγα", "漢字"])
    assert Decisions.of(dict(zip(names, [1, 2, 3], strict=True)), p).levels == ("10", "Ωμέγα", "漢字")


def test_a_frame_brings_standard_errors_and_intervals_in_the_order_of_the_levels():
    frame = pd.DataFrame(
        {"mean": [2.0, 1.0], "se": [0.2, 0.1], "ci_low": [1.5, 0.8], "ci_high": [2.5, 1.2]}, ["A", "B"]
    )
    sep = Decisions.of(frame, np.array([[1, 0.5], [0.5, 1]]), interval_alpha=0.05)
    assert (sep.levels, sep.se, sep.ci_low, sep.ci_high) == (("B", "A"), (0.1, 0.2), (0.8, 1.5), (1.2, 2.5))
    assert sep.head(1).ci_high == (1.2,)


def test_the_omnibus_test_is_judged_at_the_level_of_the_decisions():
    assert Decisions.of(MEANS, P).omnibus_significant is None
    assert Decisions.of(MEANS, P, omnibus_p=0.06).omnibus_significant is False
    assert Decisions.of(MEANS, P, omnibus_p=0.06, alpha=0.1).omnibus_significant is True


TWO = {"A": 1.0, "B": 2.0}


def square(value, diagonal=1.0, names="AB"):
    return pd.DataFrame([[diagonal, value], [value, diagonal]], index=list(names), columns=list(names))


@pytest.mark.parametrize(("arguments", "message"), [
    ((TWO, square(1.2)), "p-values between 0 and 1, got 1.2 for A against B"),
    ((TWO, pd.DataFrame([[1, 0.3], [0.2, 1]], list("AB"), list("AB"))),
     "decisions must be symmetric: A against B has 0.3, B against A has 0.2"),
    ((TWO, pd.DataFrame([[False, True], [False, False]], list("AB"), list("AB"))),
     "A against B has True, B against A has False. Leave one triangle missing (NaN)"),
    ((TWO, square(0.5, names="AC")),
     "decisions.index must hold the names of the means: it lacks 'B'; the means lack 'C'"),
    ((TWO, square(0.5, names="AA")), "decisions.index has more than one 'A'"),
    ((pd.Series([1.0, 2.0], index=[1, "1"]), square(0.5)), "means has more than one '1'"),
    ((TWO, square(1, diagonal=0)), "only 0 and 1, which may be p-values or flags"),
    ((TWO, square("yes")), "either p-values or booleans, got 'yes'"),
    ((TWO, np.zeros((2, 3))), "a row and a column for each of the 2 means, got (2, 3)"),
    ((TWO, {"A": 1}), "decisions must be a square pandas.DataFrame"),
    ((pd.DataFrame({"x": [1, 2], "y": [1, 2]}, list("AB")), square(0.5)), "no column 'mean'. Columns: x, y"),
    (({"A": "one", "B": 2.0}, square(0.5)), "means['mean'] must hold numbers"),
    (({"A": np.inf, "B": 2.0}, square(0.5)), "must be finite or missing"),
    (({"A": np.nan, "B": np.nan}, square(0.5)), "no mean at all"),
    (({"A": 1.0}, square(0.5)), "two or more names, got 1"),
    ((pd.DataFrame({"mean": [1.0, 2], "ci_low": [2.0, 1], "ci_high": [3.0, 3]}, list("AB")), square(0.5)),
     "the interval of A, 2 to 3, does not hold its mean, 1."),
])  # fmt: skip
def test_what_contradicts_itself_is_refused(arguments, message):
    with pytest.raises(LmemtestError, match=re.escape(message)):
        Decisions.of(*arguments)


@pytest.mark.parametrize(("options", "message"), [
    ({"critical_difference": (2.0, 1.0)}, "critical_difference must be a positive number"),
    ({"critical_difference": 0}, "critical_difference must be a positive number"),
    ({"alpha": 5}, "alpha must be a number between 0 and 1"),
    ({"direction": "up"}, "direction must be 'minimize' or 'maximize'"),
    ({"omnibus_p": 2.0}, "omnibus_p must be a p-value"),
    ({"score": 3}, "score must be a text"),
])  # fmt: skip
def test_bad_options_are_refused(options, message):
    with pytest.raises(LmemtestError, match=re.escape(message)):
        Decisions.of(TWO, square(0.5), **options)
    flags = square(True, diagonal=False)
    with pytest.raises(LmemtestError, match=re.escape("omnibus_p is judged by the level of the decisions: give alpha")):
        Decisions.of(TWO, flags, omnibus_p=0.5)
