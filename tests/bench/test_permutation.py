"""Permutation tests: exact enumeration, what is exchanged, and that no path changes the answer."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pandas as pd
import pytest
from pytest import approx

import lmemtest as lt
from lmemtest.bench.permutation.permutation import (
    RelabelledFit,
    find_relabelling,
    fit_for_comparison,
    permutation_test,
)
from lmemtest.errors import ArgumentError, DataError, EstimationError

NAIVE = "loss ~ tool + (1|task)"


def make_table(tasks=8, seeds=3, tools="AB", budgets=1, seed=0):
    rng = np.random.default_rng(seed)
    rows = itertools.product(range(tasks), tools, range(seeds), range(budgets))
    table = pd.DataFrame(list(rows), columns=["task", "tool", "seed", "budget"])
    shift = rng.normal(size=(tasks, len(tools)))[table["task"], table["tool"].map(tools.index)]
    return table.assign(loss=shift + rng.normal(size=len(table)) + 0.5 * (table["tool"] == "B"))


def runs_of(table, **roles):
    given = {"score": "loss", "direction": "minimize", "algorithm": "tool", "benchmark": "task", "seed": "seed"}
    return lt.Runs(table, **{**given, **roles})


def test_p_is_that_of_all_sign_flips():
    table = make_table(seeds=1)
    test = permutation_test(runs_of(table), NAIVE, n_draws=999, rng=1)
    y = table.pivot(index="task", columns="tool", values="loss")
    d = (y["A"] - y["B"]).to_numpy()
    flips = np.array(list(itertools.product([-1, 1], repeat=8)))
    exact = np.mean(np.abs(flips @ d) >= abs(d.sum()) - 1e-12)
    t = d.mean() / (d.std(ddof=1) / np.sqrt(8))
    assert test.statistic == approx(abs(t), rel=1e-6)
    assert abs(test.p_value - exact) < 4 * test.p_value_error
    assert "There are only 256 distinct relabellings" in test.notes[0]


def test_models_that_order_tables_alike_have_the_same_p_value():
    runs = runs_of(make_table())
    naive = permutation_test(runs, NAIVE, n_draws=99, rng=1)
    careful = permutation_test(runs, lt.recommend(runs).formula, n_draws=99, rng=1)
    assert naive.statistic > 1.2 * careful.statistic
    assert naive.p_value == careful.p_value


@pytest.mark.parametrize("unit", ["benchmark", "run"])
def test_moving_scores_is_moving_labels(unit):
    runs = runs_of(make_table(tools="ABC", budgets=2), budget="budget")
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
    table = make_table(tools="ABC", budgets=2).sample(frac=0.7, random_state=1)  # with gaps, so that labels move
    runs = runs_of(table)
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
    table = make_table(budgets=2)
    table["seed"] += 100 * (table["tool"] == "B")
    runs = runs_of(table, budget="budget")
    exchange = find_relabelling(runs, "run", ["tool", "task", "budget"], score="loss")
    assert not exchange.paired
    assert exchange.n_strata == 8
    assert len(exchange.stratum) == 48
    taken = exchange.draw(np.random.default_rng(0))
    assert (exchange.stratum[taken] == exchange.stratum).all()
    assert sorted(taken) == list(range(48))
    test = permutation_test(runs, NAIVE, unit="run", n_draws=19, rng=1)
    assert "algorithms have seeds of their own" in test.exchangeable


def test_all_arrangements_are_equally_likely():
    runs = runs_of(make_table(tasks=2, seeds=1, tools="ABC"))
    exchange = find_relabelling(runs, "benchmark", ["tool"], score="loss")
    rng = np.random.default_rng(0)
    draws = [tuple(exchange.draw(rng)) for _ in range(7200)]
    counts = pd.Series(draws).value_counts()
    assert len(counts) == 36
    assert ((counts - 200) ** 2 / 200).sum() < 66.6  # 99.9 % point of chi2(35)
    assert exchange.few_arrangements == 36


def test_the_result_says_what_is_exchanged_and_what_that_tests():
    runs = runs_of(make_table())
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
    runs = runs_of(make_table())
    one, two = (
        permutation_test(runs, NAIVE, lambda f: f.params.iloc[1], n_draws=20, rng=4, n_jobs=jobs) for jobs in (1, 2)
    )
    assert one.statistic == approx(lt.fit_lmm(NAIVE, runs).params.iloc[1])
    np.testing.assert_array_equal(one.draws, two.draws)


def test_a_draw_that_fails_counts_as_larger():
    runs = runs_of(make_table())
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
    table = make_table()
    table = table[~((table["tool"] == "B") & (table["seed"] == 0) & (table["task"] < 3))]
    got = permutation_test(runs_of(table), NAIVE, unit="run", n_draws=9, rng=1)
    assert got.n_strata == 21
    assert got.notes[-1].startswith("3 groups of runs have no partner to exchange labels with")


@pytest.mark.parametrize(
    ("roles", "options", "error", "message"),
    [
        (
            {},
            {"unit": "seed"},
            ArgumentError,
            "got 'seed'. Runs with the same seed are the blocks within which unit='run' exchanges names: use unit='r",
        ),
        ({}, {"unit": "runs"}, ArgumentError, "got 'runs'. Did you mean 'run'"),
        ({"benchmark": None}, {}, ArgumentError, r"the table has no benchmark column. Name it in Runs\(benchmark=\)"),
        (
            {"seed": None},
            {"unit": "run"},
            ArgumentError,
            r"no column that distinguishes them. Name it in Runs",
        ),
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
)
def test_bad_input_is_named(roles, options, error, message):
    table = make_table(tools="ABC")
    runs = runs_of(table.assign(family=table["tool"].map({"A": "x", "B": "x", "C": "y"})), **roles)
    given = {"model": NAIVE, "n_draws": 3, "rng": 1, **options}
    with pytest.raises(error, match=message):
        permutation_test(runs, given.pop("model"), **given)


def test_benchmarks_with_one_algorithm_each_cannot_exchange():
    table = make_table()
    table = table[(table["task"] % 2 == 0) == (table["tool"] == "A")]
    with pytest.raises(DataError, match="there are no two algorithms on any benchmark"):
        permutation_test(runs_of(table), NAIVE, n_draws=3)


def test_the_residual_variances_of_a_fit_are_kept():
    rng = np.random.default_rng(3)
    frame = pd.DataFrame(
        [(a, b, s) for b in range(4) for a in "xy" for s in range(6)], columns=["algorithm", "benchmark", "seed"]
    )
    frame["loss"] = rng.normal(size=len(frame)) * (1 + 9 * (frame["benchmark"] == 0))
    runs = lt.Runs(frame, score="loss", direction="minimize", algorithm="algorithm", benchmark="benchmark", seed="seed")
    fit = lt.fit_lmm("loss ~ algorithm", runs, dispersion="benchmark")
    table = RelabelledFit.of(
        fit_for_comparison(runs, fit), find_relabelling(runs, "run", list(fit.cells.frame.columns), score="loss")
    )
    again = table.refit(np.arange(len(table.exchange.label)))
    assert again.dispersion == "benchmark"
    assert again.llf == pytest.approx(fit.llf, abs=1e-6)
    with_own, with_one = (
        lt.permutation_test(runs, model, n_draws=19, unit="run", rng=1).statistic for model in (fit, "loss ~ algorithm")
    )
    assert with_own != pytest.approx(with_one)


def test_a_plain_table_is_told_that_its_columns_need_roles():
    with pytest.raises(
        ArgumentError, match=r"^runs must be Runs, got DataFrame\. Say what the columns mean\. Columns: "
    ):
        permutation_test(make_table(), NAIVE)


def test_the_result_names_the_residual_variances_of_its_model():
    runs = runs_of(make_table())
    fit = lt.fit_lmm(NAIVE, runs, dispersion="task")
    assert permutation_test(runs, fit, n_draws=2, rng=1).formula == f"{NAIVE}, residual variance by task"
