"""What a design does not identify gets no number: pairs that never met, and errors that nothing in the data shows."""

from __future__ import annotations

import dataclasses

import numpy as np
import pandas as pd
import pytest
from pytest import approx
from study import as_runs

import lmemtest as lt
from lmemtest.errors import ArgumentError

FORMULA = "loss ~ tool + (1 | task) + (1 | task:tool)"
NUMBERS = ["estimate", "se", "df", "t_ratio", "p_value", "ci_low", "ci_high"]


def table(where: dict[str, str], seeds: int = 4) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    rows = []
    for t, (task, names) in enumerate(where.items()):
        for a in names:
            shift = rng.normal(0, 0.2)
            rows += [(a, task, s, t + ord(a) + shift + rng.normal(0, 0.3)) for s in range(seeds)]
    return pd.DataFrame(rows, columns=["tool", "task", "seed", "loss"])


CHAIN = table({"t1": "AB", "t2": "AB", "t3": "AB", "t4": "BC", "t5": "BC", "t6": "BC"})


@pytest.fixture(scope="module")
def means():
    return lt.fit_lmm(FORMULA, as_runs(CHAIN)).emmeans("tool", vcov="model")


def test_a_pair_that_never_met_has_no_number_and_the_others_keep_theirs(means):
    got = means.pairs(adjust="none").to_frame().set_index(["left", "right"])
    plain = lt.fit_lmm(FORMULA, CHAIN).emmeans("tool").pairs(adjust="none").to_frame()
    plain = plain.set_index(["left", "right"])
    assert got.loc[("A", "C"), NUMBERS].isna().all()
    assert np.isfinite(plain.loc[("A", "C"), "p_value"])  # a plain table has no benchmarks to meet on
    met = [("A", "B"), ("B", "C")]
    pd.testing.assert_frame_equal(got.loc[met], plain.loc[met])


def test_it_is_called_what_it_is(means):
    pairs = means.pairs()
    assert pairs.sentences()[1] == "A and C have no benchmark in common, so there is no verdict."
    assert any("1 of 3 differences are between algorithms without a common benchmark" in n for n in pairs.notes)
    sep = pairs.decisions()
    assert sep.undecided.loc["A", "C"]
    assert not sep.undecided.loc["A", "B"]


@pytest.mark.parametrize(
    ("coefficients", "known"),
    [([1, -1, 0], True), ([1, 0, -1], False), ([-0.5, 1, -0.5], True), ([-0.5, -0.5, 1], False), ([1, 1, 1], True)],
)
def test_a_contrast_sets_no_algorithms_against_each_other_that_never_met(means, coefficients, known):
    row = means.contrast({"c": coefficients}).to_frame().iloc[0]
    assert np.isfinite(row["p_value"]) == known
    assert np.isfinite(row["estimate"]) == known


def test_comparisons_with_a_control_and_with_the_best_leave_it_out(means):
    frame = means.against("A").to_frame().set_index("left")
    assert frame.loc["C", NUMBERS].isna().all()
    assert np.isfinite(frame.loc["B", "p_value"])
    best = means.best().to_frame().set_index(means.factor)
    pair = means.against("B", adjust="none").to_frame().set_index("left")
    assert best.loc["C", "lead"] == approx(-pair.loc["C", "estimate"])  # from B alone, not from A


def test_within_groups_the_same_holds():
    frame = CHAIN.assign(kind=lambda d: d["seed"] % 2)
    runs = as_runs(frame, metafeatures=["kind"])
    fit = lt.fit_lmm("loss ~ tool * C(kind) + (1 | task) + (1 | task:tool)", runs)
    found = fit.emmeans("tool", by="kind").pairs().to_frame()
    assert found.loc[(found["left"] == "A") & (found["right"] == "C"), "p_value"].isna().all()
    assert found["p_value"].notna().sum() == 4


# ------------------------------------------------------------------------------------------------ held effects


@pytest.mark.parametrize("reml", [True, False])
@pytest.mark.parametrize(("names", "seeds"), [("AB", 10), ("ABC", 4), ("ABC", 5), ("ABCDE", 5)])
def test_arbitrary_variances_give_no_number(names, seeds, reml):
    """Each algorithm on a benchmark of its own; intervals of 7.6e145 or a p-value of 0.001, by the number of rows."""
    frame = table({f"task_{a}": a for a in names}, seeds)
    means = lt.fit_lmm("loss ~ tool + (1 | task)", frame, reml=reml).emmeans("tool")
    assert means.to_frame()[["emmean", "se", "ci_low", "ci_high"]].isna().all(axis=None)
    assert means.pairs().to_frame()[NUMBERS].isna().all(axis=None)
    assert means.against("A").to_frame()[NUMBERS].isna().all(axis=None)
    assert any("the fixed effects hold a random one" in note for note in means.notes)


def test_what_does_not_rest_on_an_arbitrary_variance_keeps_its_number():
    """The means of two kinds of benchmarks hold (1|task) of two tasks; algorithms are compared within tasks."""
    frame = table({"t1": "AB", "t2": "AB"}, 6).assign(kind=lambda d: d["task"].map({"t1": "x", "t2": "y"}))
    held = lt.fit_lmm("loss ~ tool + kind + (1 | task)", frame)
    assert any("arbitrary" in note for note in held.notes)
    plain = lt.fit_lmm("loss ~ tool + kind", frame)
    got, want = (fit.emmeans("tool").pairs().to_frame() for fit in (held, plain))
    np.testing.assert_allclose(got["estimate"], want["estimate"])
    np.testing.assert_allclose(got["se"], want["se"], rtol=1e-6)
    kinds = held.emmeans("kind").pairs().to_frame()
    assert kinds[NUMBERS].isna().all(axis=None)


def test_errors_without_a_bound_are_no_estimates(means):
    """Half a degree of freedom, or a standard error of a million times the scores' spread, says nothing."""
    for change in ({"df_function": lambda L: np.full(len(L), 0.4)}, {"largest_se": 1e-6}):
        estimate, se, df = dataclasses.replace(means, **change).evaluate(means.differences(*np.array([[0], [1]])))
        assert np.isnan([*estimate, *se, *df]).all()
    spread = CHAIN["loss"].std(ddof=0)
    assert means.largest_se == approx(1e6 * spread)


# ------------------------------------------------------------------------------------------------ ratios


def test_differences_of_logarithms_are_ratios_of_geometric_means():
    frame = CHAIN[CHAIN["task"].isin(["t1", "t2", "t3"])].assign(loss=lambda d: np.exp(d["loss"] - 60))
    pairs = lt.fit_lmm("log(loss) ~ tool + (1|task)", frame).emmeans("tool").pairs()
    got = pairs.ratios().iloc[0]
    geometric = np.log(frame["loss"]).groupby(frame["tool"]).mean()
    assert got["ratio"] == approx(np.exp(geometric["A"] - geometric["B"]))
    row = pairs.to_frame().iloc[0]
    assert (got["ci_low"], got["ci_high"]) == (approx(np.exp(row["ci_low"])), approx(np.exp(row["ci_high"])))
    other = lt.fit_lmm("log2(loss) ~ tool + (1|task)", frame).emmeans("tool").pairs()
    assert other.ratios().iloc[0]["ratio"] == approx(got["ratio"])
    assert "A / B: a ratio of 0." in pairs.sentences()[0]
    with pytest.raises(ArgumentError, match=r"for differences of logarithms, and these are of loss\. Fit for instance"):
        lt.fit_lmm("loss ~ tool + (1|task)", frame).emmeans("tool").pairs().ratios()
