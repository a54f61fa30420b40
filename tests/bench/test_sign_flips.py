"""Sign flips: brute force over all patterns, invariance, and what few benchmarks allow."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from pytest import approx
from scipy import stats

import lmemtest as lt
from lmemtest.bench.permutation.sign_flips import max_t_p_values
from lmemtest.errors import ArgumentError, DataError
from lmemtest.lmm.hypotheses.null_distributions import sign_patterns


def runs_of(Y, **roles):
    """Runs of a table of benchmarks x algorithms; NaN where there is no run."""
    B, A = Y.shape
    frame = pd.DataFrame([(f"t{b}", "ABCDEF"[a], Y[b, a]) for b in range(B) for a in range(A)])
    frame.columns = ["task", "tool", "loss"]
    given = {"score": "loss", "direction": "minimize", "algorithm": "tool", "benchmark": "task", **roles}
    return lt.Runs(frame.dropna(), **given)


def signs(runs, **options):
    return lt.permutation_test(runs, exchange="signs", **options)


def scores(B=7, A=4, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(B, 1)) + rng.normal(size=(B, A)) * np.linspace(0.3, 3, A) + np.arange(A) * 0.8


def by_brute_force(Y):
    """t and step-down p of all pairs, one pattern after another."""
    pairs = list(itertools.combinations(range(Y.shape[1]), 2))
    D = np.array([Y[:, i] - Y[:, j] for i, j in pairs])
    t = [stats.ttest_1samp(d, 0).statistic for d in D]
    order = sorted(range(len(pairs)), key=lambda k: -abs(t[k]))
    p, last = np.empty(len(pairs)), 0.0
    for place, k in enumerate(order):
        rest, extreme = order[place:], 0
        for signs in itertools.product([-1, 1], repeat=len(Y)):
            flipped = [abs(stats.ttest_1samp(D[m] * signs, 0).statistic) for m in rest]
            extreme += max(flipped) >= abs(t[k]) * (1 - 1e-9)
        last = p[k] = max(last, extreme / 2 ** len(Y))
    return t, p


def test_p_values_are_those_of_all_patterns_stepping_down():
    Y = scores(B=6, A=3)
    found = signs(runs_of(Y)).to_frame()
    t, p = by_brute_force(Y)
    assert found["t_ratio"].to_numpy() == approx(np.array(t), rel=1e-9)
    np.testing.assert_array_equal(found["p_value"], p)
    assert len(set(p)) > 1


def test_two_algorithms_have_the_p_value_of_exchanged_names():
    Y = scores(A=2)
    test = signs(runs_of(Y))
    other = lt.permutation_test(runs_of(Y), "loss ~ tool + (1 | task)", n_draws=999, rng=1)
    assert test.statistic == approx(other.statistic, rel=1e-6)
    assert abs(test.p_value - other.p_value) < 4 * other.p_value_error


def test_neither_levels_of_benchmarks_nor_units_nor_the_direction_change_anything():
    Y = scores()
    want = signs(runs_of(Y)).to_frame()
    moved = signs(runs_of(1e3 * (Y + 100.0 * np.arange(len(Y))[:, None]), direction="maximize")).to_frame()
    np.testing.assert_array_equal(moved["p_value"], want["p_value"])
    assert moved["t_ratio"].to_numpy() == approx(want["t_ratio"].to_numpy(), rel=1e-8)


def test_random_signs_approach_all_of_them():
    D = np.array([[a - b for a, b in itertools.combinations(y, 2)] for y in scores(B=10)])
    _, exact = max_t_p_values(D, sign_patterns(10, 512, None)[0], exact=True)
    signs, is_exact = sign_patterns(10, 511, 1)
    assert (len(signs), is_exact) == (511, False)
    _, drawn = max_t_p_values(D, signs, exact=False)
    assert drawn == approx(exact, abs=4 * np.sqrt(0.25 / 511))
    assert exact.min() < 0.05 < exact.max()


def test_few_benchmarks_allow_no_small_p_values_which_is_said():
    Y = np.arange(5.0)[:, None] + np.array([0.0, 1.0, 2.0]) * (1 + 0.01 * np.arange(5.0)[:, None])
    test = signs(runs_of(Y))
    assert (test.p_value, test.smallest, test.exact) == (1 / 16, 1 / 16, True)
    assert test.notes == (
        "5 benchmarks have 16 patterns of signs, so no p-value is below 0.063 and no difference can be significant at "
        "5 %; six benchmarks are the fewest for that.",
    )
    six = signs(runs_of(np.vstack([Y, Y[-1]])))
    assert six.p_value == 1 / 32
    assert six.notes == ("6 benchmarks have 32 patterns of signs, so no p-value is below 0.031.",)
    assert signs(runs_of(scores(B=40)), n_draws=99, rng=1).smallest == 1 / 100


def test_benchmarks_without_differences_do_not_count():
    Y = scores()
    tied = np.vstack([Y, np.full((3, Y.shape[1]), 0.1 + 0.2)])
    test = signs(runs_of(tied))
    assert test.n_benchmarks == 7
    assert test.notes[-1] == "3 benchmarks have no differences, so the sign does not matter there."
    t, p = by_brute_force(tied[:, :2])
    two = signs(runs_of(tied[:, :2]))
    assert (two.to_frame()["t_ratio"][0], two.p_value) == (approx(t[0]), p[0])


def test_equal_algorithms_have_p_one_and_constant_differences_an_infinite_t():
    Y = scores(A=2)
    frame = signs(runs_of(np.column_stack([Y[:, 0], Y[:, 0], Y[:, 0] + 1.0]))).to_frame()
    assert frame["t_ratio"].tolist() == [0.0, -np.inf, -np.inf]
    assert frame["p_value"].tolist() == [1.0, 1 / 64, 1 / 64]


def test_a_pair_is_compared_on_the_benchmarks_and_budgets_that_it_shares():
    Y = scores(B=8)
    Y[0, 1] = Y[1, 1] = Y[:7, 3] = np.nan
    test = signs(runs_of(Y))
    frame = test.to_frame().set_index(["left", "right"])
    assert frame.loc[("A", "B"), "n_benchmarks"] == 6
    assert frame.loc[("A", "B"), "t_ratio"] == approx(stats.ttest_rel(Y[2:, 0], Y[2:, 1]).statistic)
    assert np.isnan(frame.loc[("A", "D"), "p_value"])
    assert "3 pairs have fewer than two common benchmarks and no test." in test.notes

    budgets = pd.DataFrame(
        [(b, t, f, 10.0 * f + b * (t == "B")) for b in range(6) for t in "AB" for f in (1, 2, 3) if (t, f) != ("B", 1)],
        columns=["task", "tool", "budget", "loss"],
    )
    roles = {"score": "loss", "direction": "minimize", "algorithm": "tool", "benchmark": "task", "budget": "budget"}
    estimate = signs(lt.Runs(budgets, **roles)).to_frame()["estimate"]
    assert estimate[0] == approx(-2.5)  # the first budget would be no difference of algorithms


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_sentences_say_who_is_better(direction):
    Y = np.arange(8.0)[:, None] + np.array([0.0, 1.0]) * (1 + 0.1 * np.arange(8.0)[:, None])
    test = signs(runs_of(Y, direction=direction))
    first, second = ("A", "B") if direction == "minimize" else ("B", "A")
    assert test.sentences() == (f"{first} is better than {second} by 1.350 on average (p = 0.008).",)
    assert signs(runs_of(Y, direction=direction), alpha=0.001).sentences() == (
        "No difference is found between A and B (p = 0.008).",
    )
    assert test.hypothesis in test.summary()


def test_what_cannot_be_tested_is_refused():
    Y = scores()
    with pytest.raises(ArgumentError, match="so there are no signs to flip"):
        signs(runs_of(Y, benchmark=None, ignore=("task",)))
    with pytest.raises(DataError, match="the algorithms have the same mean score on every benchmark"):
        signs(runs_of(np.ones((4, 3))))
    with pytest.raises(DataError, match="no two algorithms have two benchmarks in common"):
        signs(runs_of(np.array([[1.0, 2.0], [1.0, np.nan], [np.nan, 2.0]])))
    with pytest.raises(ArgumentError, match="n_draws must be a whole number of at least 1, got 0"):
        signs(runs_of(Y), n_draws=0)
    with pytest.raises(ArgumentError, match="model is an option of exchange='labels', got model='loss ~ tool' with"):
        signs(runs_of(Y), model="loss ~ tool")
    with pytest.raises(ArgumentError, match=r"alpha is an option of exchange='signs', got alpha=0\.1 with"):
        lt.permutation_test(runs_of(Y), "loss ~ tool", alpha=0.1)


def test_one_erratic_algorithm_does_not_make_false_differences():
    """The light twin of tests/simulation/test_sign_flips_size.py; the exchange of names rejects too often here."""
    rng = np.random.default_rng(5)
    i, j = np.triu_indices(6, k=1)
    signs, _ = sign_patterns(9, 256, None)
    rejected = 0
    for _ in range(400):
        Y = rng.normal(size=(9, 6)) * np.array([1, 1, 1, 1, 1, 5.0])
        rejected += max_t_p_values(Y[:, i] - Y[:, j], signs, exact=True)[1].min() <= 0.05
    assert stats.binomtest(rejected, 400, 0.05, alternative="greater").pvalue > 0.001
    assert rejected > 0
