"""Permutation tests: exact enumeration, what is exchanged, and that no path changes the answer."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pandas as pd
import pytest
from pytest import approx
from refusals import refuses
from scipy import stats
from study import as_runs, make_table, table_of_scores

import lmemtest as lt
from lmemtest.bench.permutation.permutation import RelabelledFit, find_relabelling, fit_for_comparison, permutation_test
from lmemtest.bench.permutation.sign_flips import max_t_p_values
from lmemtest.core.resampling import sign_patterns
from lmemtest.errors import ArgumentError, DataError, EstimationError

NAIVE = "loss ~ tool + (1|task)"


def table_of(tasks=8, seeds=3, tools="AB", budgets=None, **more):
    names = {"algorithm": "tool", "benchmark": "task"}
    return make_table(tools, range(tasks), seeds, budgets, sds={"benchmark:algorithm": 1.0}, **names, **more)


def test_p_is_that_of_all_sign_flips():
    table = table_of(seeds=1)
    test = permutation_test(as_runs(table), NAIVE, n_draws=999, rng=1)
    y = table.pivot(index="task", columns="tool", values="loss")
    d = (y["A"] - y["B"]).to_numpy()
    flips = np.array(list(itertools.product([-1, 1], repeat=8)))
    exact = np.mean(np.abs(flips @ d) >= abs(d.sum()) - 1e-12)
    t = d.mean() / (d.std(ddof=1) / np.sqrt(8))
    assert test.statistic == approx(abs(t), rel=1e-6)
    assert abs(test.p_value - exact) < 4 * test.p_value_error
    assert "There are only 256 distinct relabellings" in test.notes[0]


def test_models_that_order_tables_alike_have_the_same_p_value():
    runs = as_runs(table_of())
    naive = permutation_test(runs, NAIVE, n_draws=99, rng=1)
    careful = permutation_test(runs, lt.recommend(runs).formula, n_draws=99, rng=1)
    assert naive.statistic > 1.2 * careful.statistic
    assert naive.p_value == careful.p_value


@pytest.mark.parametrize("unit", ["benchmark", "run"])
def test_moving_scores_is_moving_labels(unit):
    runs = as_runs(table_of(tools="ABC", budgets=2))
    fit = fit_for_comparison(runs, "loss ~ tool * C(budget) + (1|task) + (1|task:tool) + (1|task:seed)")
    exchange = find_relabelling(runs, unit, fit.design.parsed.columns, score="loss")
    assert exchange.start is not None
    labels_move = dataclasses.replace(exchange, start=None)
    taken = exchange.draw(np.random.default_rng(3))
    moved, relabelled = (RelabelledFit.of(fit, e).refit(taken) for e in (exchange, labels_move))
    assert moved.llf != approx(fit.llf, abs=1e-3)
    assert moved.llf == approx(relabelled.llf, abs=1e-7)
    np.testing.assert_allclose(moved.params, relabelled.params, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("unit", ["benchmark", "run"])
def test_relabelled_tables_are_the_table_with_other_names(unit):
    table = table_of(tools="ABC", budgets=2).sample(frac=0.7, random_state=1)  # with gaps, so that labels move
    runs = as_runs(table)
    fit = fit_for_comparison(runs, NAIVE)
    exchange = find_relabelling(runs, unit, fit.design.parsed.columns, score="loss")
    assert exchange.start is None
    prepared = RelabelledFit.of(fit, exchange)
    taken = exchange.draw(np.random.default_rng(3))
    before = prepared.cells.frame
    after = before.assign(new=exchange.relabel(prepared.cells, taken).frame["tool"])
    assert (after["new"] != after["tool"]).any()
    stratum = ["task"] if unit == "benchmark" else ["task", "seed"]
    for _, group in after.groupby(stratum):
        assert sorted(set(group["tool"])) == sorted(set(group["new"]))
    assert (after.groupby([*stratum, "tool"])["new"].nunique() == 1).all()
    rows = table.merge(after, on=list(exchange.columns)).drop(columns="tool").rename(columns={"new": "tool"})
    assert len(rows) == len(table)
    assert prepared.refit(taken).llf == approx(lt.fit_lmm(NAIVE, rows).llf, abs=1e-7)


def test_algorithms_with_seeds_of_their_own_exchange_whole_runs():
    table = table_of(budgets=2)
    table["seed"] += 100 * (table["tool"] == "B")
    runs = as_runs(table)
    exchange = find_relabelling(runs, "run", ["tool", "task", "budget"], score="loss")
    assert not exchange.paired
    assert exchange.n_strata == 8
    assert len(exchange.stratum) == 48
    taken = exchange.draw(np.random.default_rng(0))
    assert (exchange.stratum[taken] == exchange.stratum).all()
    assert sorted(taken) == list(range(48))
    test = permutation_test(runs, NAIVE, unit="run", n_draws=19, rng=1)
    assert "algorithms have their own seeds" in test.exchangeable


def test_all_arrangements_are_equally_likely():
    runs = as_runs(table_of(tasks=2, seeds=1, tools="ABC"))
    exchange = find_relabelling(runs, "benchmark", ["tool"], score="loss")
    rng = np.random.default_rng(0)
    draws = [tuple(exchange.draw(rng)) for _ in range(7200)]
    counts = pd.Series(draws).value_counts()
    assert len(counts) == 36
    assert ((counts - 200) ** 2 / 200).sum() < 66.6  # 99.9 % point of chi2(35)
    assert exchange.few_arrangements == 36


def test_the_result_says_what_is_exchanged_and_what_that_tests():
    runs = as_runs(table_of())
    benchmark = permutation_test(runs, NAIVE, n_draws=9, rng=1)
    assert benchmark.exchangeable == (
        "the names of the algorithms, all their runs together, within each of 8 benchmarks"
    )
    assert benchmark.hypothesis.startswith("over benchmarks like these no algorithm is better")
    run = permutation_test(runs, NAIVE, unit="run", n_draws=9, rng=1)
    assert run.exchangeable == "the names of the runs with the same seed on the same instance (task), in 24 such groups"
    assert run.hypothesis.startswith("on these benchmarks the algorithms do not differ")
    assert run.hypothesis in run.summary()


def test_any_function_of_the_fit_is_a_statistic():
    runs = as_runs(table_of())
    one, two = (
        permutation_test(runs, NAIVE, lambda f: f.params.iloc[1], n_draws=20, rng=4, n_jobs=jobs) for jobs in (1, 2)
    )
    assert one.statistic == approx(lt.fit_lmm(NAIVE, runs).params.iloc[1])
    np.testing.assert_array_equal(one.draws, two.draws)


def test_a_draw_that_fails_counts_as_larger():
    runs = as_runs(table_of())
    observed = lt.fit_lmm(NAIVE, runs).llf

    def moody(f):
        if abs(f.llf - observed) > 1e-6:
            raise EstimationError("not today")
        return 1.0

    with pytest.raises(EstimationError, match="no relabelled table could be fitted"):
        permutation_test(runs, NAIVE, moody, n_draws=3, rng=1)

    def sometimes(f):
        if f.params.iloc[1] < -0.2:
            raise EstimationError("not today")
        return f.params.iloc[1]

    got = permutation_test(runs, NAIVE, sometimes, n_draws=99, rng=1)
    exceed = (np.nan_to_num(got.draws, nan=np.inf) >= got.statistic).sum()
    assert 0 < got.failed < 99
    assert got.p_value == (1 + exceed) / 100
    assert "they count as larger" in got.notes[-1]


def test_gaps_are_reported():
    table = table_of()
    table = table[~((table["tool"] == "B") & (table["seed"] == 0) & (table["task"] < 3))]
    got = permutation_test(as_runs(table), NAIVE, unit="run", n_draws=9, rng=1)
    assert got.n_strata == 21
    assert got.notes[-1].startswith("3 groups of runs have no partner to exchange labels with")


@pytest.mark.parametrize(
    ("roles", "options", "error", "message"),
    [
        ({}, {"unit": "seed"}, ArgumentError, "got 'seed'. Runs with the same seed are the blocks within which unit='ru"
         "n' exchanges names: use unit='r"),
        ({}, {"unit": "runs"}, ArgumentError, "got 'runs'. Did you mean 'run'"),
        ({"benchmark": None}, {}, ArgumentError, r"the table has no benchmark column. Name it in Runs\(benchmark=\)"),
        ({"seed": None}, {"unit": "run"}, ArgumentError, "no column that distinguishes them. Name it in Runs"),
        ({}, {"statistic": "t"}, ArgumentError, "statistic must be 'max_t' or a function of a fit, got 't'."),
        ({}, {"statistic": lambda _: np.nan}, ArgumentError, "must be a finite number for the table as it is, got nan"),
        ({}, {"statistic": lambda _: [1, 2]}, ArgumentError, "statistic must return one number, got list."),
        ({}, {"n_draws": 0}, ArgumentError, "n_draws must be a whole number of at least 1, got 0."),
        ({}, {"model": 3}, ArgumentError, "model must be a formula or a fit, got int."),
        ({}, {"model": None}, ArgumentError, "where labels are exchanged. exchange='signs' needs none."),
        ({}, {"exchange": "names"}, ArgumentError, "exchange must be 'labels' or 'signs', got 'names'"),
        ({}, {"model": "loss ~ 1 + (1|tool)"}, ArgumentError, "'tool' is not a factor in the fixed part"),
        ({}, {"model": "loss ~ tool + family + (1|task)"}, DataError, "uses 'family', which is a property of the algo"),
    ],
)  # fmt: skip
def test_bad_input_is_named(roles, options, error, message):
    table = table_of(tools="ABC")
    runs = as_runs(table.assign(family=table["tool"].map({"A": "x", "B": "x", "C": "y"})), family=None, **roles)
    given = {"model": NAIVE, "n_draws": 3, "rng": 1, **options}
    refuses(error, message, permutation_test, runs, given.pop("model"), **given)


def test_benchmarks_with_one_algorithm_each_cannot_exchange():
    table = table_of()
    table = table[(table["task"] % 2 == 0) == (table["tool"] == "A")]
    with pytest.raises(DataError, match="there are no two algorithms on any benchmark"):
        permutation_test(as_runs(table), NAIVE, n_draws=3)


def test_the_residual_variances_of_a_fit_are_kept():
    runs = as_runs(table_of(4, 6).assign(loss=lambda t: t["loss"] * (1 + 9 * (t["task"] == 0))))
    fit = lt.fit_lmm("loss ~ tool", runs, dispersion="task")
    table = RelabelledFit.of(
        fit_for_comparison(runs, fit), find_relabelling(runs, "run", list(fit.cells.frame.columns), score="loss")
    )
    again = table.refit(np.arange(len(table.exchange.label)))
    assert again.dispersion == "task"
    assert again.llf == pytest.approx(fit.llf, abs=1e-6)
    own, one = (permutation_test(runs, model, n_draws=19, unit="run", rng=1) for model in (fit, "loss ~ tool"))
    assert own.statistic != pytest.approx(one.statistic)
    assert own.formula == "loss ~ tool, residual variance by task"


# ---------------------------------------------------------------------- sign flips


def runs_of(Y, **roles):
    """Runs of a table of benchmarks x algorithms; NaN where there is no run."""
    names = {"task": [f"t{b}" for b in range(len(Y))], "tool": list("ABCDEF")}
    return as_runs(table_of_scores(Y, "task tool", "loss", **names).dropna(), **roles)


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
    other = lt.permutation_test(runs_of(Y), "loss ~ tool + (1 | task)", n_draws=199, rng=1)
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
    refuses(ArgumentError, "so there are no signs to flip", signs, runs_of(Y, benchmark=None, ignore=("task",)))
    refuses(DataError, "the algorithms have the same mean score on every benchmark", signs, runs_of(np.ones((4, 3))))
    with pytest.raises(DataError, match="no two algorithms have two benchmarks in common"):
        signs(runs_of(np.array([[1.0, 2.0], [1.0, np.nan], [np.nan, 2.0]])))
    refuses(ArgumentError, "n_draws must be a whole number of at least 1, got 0", signs, runs_of(Y), n_draws=0)
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
