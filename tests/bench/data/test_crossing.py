"""Which algorithms met on a benchmark, on every kind of table, and what `check` and `recommend` make of it."""

from __future__ import annotations

import itertools

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from refusals import refusal, refuses

import lmemtest as lt
from lmemtest.bench.data.requirements import crossing
from lmemtest.core.caller import on_command_line
from lmemtest.errors import DesignError

ROLES = {"score": "loss", "direction": "minimize", "algorithm": "tool", "benchmark": "task"}
CHAIN = {"t1": "AB", "t2": "AB", "t3": "BC", "t4": "BC", "t5": "CD"}


def table(where: dict[str, str], seeds: int = 3) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    rows = [(a, t, s, rng.normal()) for t, names in where.items() for a in names for s in range(seeds)]
    return pd.DataFrame(rows, columns=["tool", "task", "seed", "loss"])


def own(names: str = "ABC", seeds: int = 4) -> pd.DataFrame:
    """Every algorithm on a benchmark of its own."""
    return table({f"task_{a}": a for a in names}, seeds)


def test_common_benchmarks_are_counted_as_by_hand():
    frame = table({"t1": "ABC", "t2": "AB", "t3": "BD", "t4": "D"})
    found = crossing(lt.Runs(frame, **ROLES))
    tasks = {a: set(frame.loc[frame["tool"] == a, "task"]) for a in "ABCD"}
    for (i, a), (j, b) in itertools.product(enumerate("ABCD"), repeat=2):
        assert found.common[i, j] == len(tasks[a] & tasks[b])
    assert found.apart == (("A", "D"), ("C", "D"))
    assert (found.n_pairs, found.none_meet) == (6, False)


def test_where_all_algorithms_ran_everywhere_all_benchmarks_are_common():
    found = crossing(lt.Runs(table({"t1": "CBA", "t2": "ABC"}), **ROLES))
    assert found.common.tolist() == [[2, 2, 2]] * 3
    assert (found.n_benchmarks, found.apart) == (2, ())


@pytest.mark.parametrize(
    "kind", [lambda f: f, pl.from_pandas, lambda f: pl.from_pandas(f).lazy(), pa.Table.from_pandas, duckdb.from_df]
)
def test_every_table_gives_the_same_answer(kind):
    assert crossing(lt.Runs(kind(table(CHAIN)), **ROLES)).apart == (("A", "C"), ("A", "D"), ("B", "D"))


def test_categories_and_numbers_are_levels_like_others():
    frame = table(CHAIN)
    frame["tool"] = pd.Categorical(frame["tool"], categories=list("DCBAX"))
    assert crossing(lt.Runs(frame, **ROLES)).apart == (("D", "B"), ("D", "A"), ("C", "A"))
    frame["tool"] = frame["tool"].astype(str).map(ord)
    assert crossing(lt.Runs(frame, **ROLES)).apart == ((65, 67), (65, 68), (66, 68))


def test_without_a_benchmark_there_is_no_rule():
    assert crossing(lt.Runs(own(), score="loss", direction="minimize", algorithm="tool")) is None


@pytest.mark.parametrize(("names", "seeds"), [("AB", 10), ("ABC", 4), ("ABC", 5), ("ABCDE", 5)])
def test_benchmarks_of_their_own_are_refused_and_found(names, seeds):
    runs = lt.Runs(own(names, seeds), seed="seed", **ROLES)
    words = (
        f"The algorithms cannot be compared: no benchmark has two algorithms: each of the {len(names)} values of "
        "'task' belongs to one of them, so a difference between algorithms cannot be distinguished from one between "
        "benchmarks. If 'task' names experiments, give benchmark= the column of the problem that was solved (a "
        "data set, a task); if the algorithms did run on different problems, run them on the same ones."
    )
    for ask in (lt.recommend, lt.analyze, lambda r: lt.ModelBuilder(r).recommended()):
        assert refusal(lambda ask=ask: ask(runs), DesignError) == words
    with pytest.raises(DesignError, match="no benchmark has two algorithms"):  # nor does a formula open the door
        lt.analyze(runs, formula="loss ~ tool")
    check = runs.check(rules_only=True)
    assert [(f.severity, f.kind) for f in check.findings[:1]] == [("error", "no_common_benchmark")]
    assert not any(f.kind == "missing_cells" for f in check.findings)  # the error says it all


def test_the_id_of_a_run_as_benchmark_is_named_as_such():
    frame = own("ABC", 12).assign(run=range(36))
    runs = lt.Runs(frame, score="loss", direction="minimize", algorithm="tool", benchmark="run")
    refuses(DesignError, "each of the 36 rows has a 'run' of its own, as the id of a run has", lt.analyze, runs)
    with on_command_line(), pytest.raises(DesignError, match=r"Give --benchmark the column .* a run with --seed"):
        lt.recommend(runs)


def test_pairs_that_never_met_are_a_warning():
    check = lt.Runs(table(CHAIN), seed="seed", **ROLES).check(rules_only=True)
    found = next(f for f in check.findings if f.kind == "no_common_benchmark")
    assert (found.severity, found.count) == ("warning", 3)
    assert found.message == (
        "3 of the 6 pairs of algorithms have no benchmark in common (A and C; A and D; B and D), so what sets them "
        "apart may as well be their benchmarks."
    )


@pytest.mark.daily(2)
@pytest.mark.parametrize(
    "where",
    [
        {f"t{i}": "AB" for i in range(5)},
        {**{f"t{i}": "ABC" for i in range(5)}, "t9": "AB"},  # one cell is missing
        {"t0": "ABC"},
        {f"t{i}": names for i, names in enumerate(["AB", "BC", "AC", "AB"])},  # incomplete, but all pairs met
    ],
)
def test_tables_whose_pairs_all_met_are_left_alone(where):
    runs = lt.Runs(table(where), seed="seed", **ROLES)
    assert "no_common_benchmark" not in {f.kind for f in runs.check(rules_only=True).findings}
    assert lt.fit_lmm(lt.recommend(runs).formula, runs).emmeans("tool").comparable is None


def test_a_metafeature_of_the_algorithms_is_no_condition_of_the_comparison():
    frame = table({f"t{i}": "ABC" for i in range(8)}).assign(family=lambda d: d["tool"].map({"A": 0, "B": 0, "C": 1}))
    runs = lt.Runs(frame, seed="seed", metafeatures=["family"], **ROLES)
    assert runs.study.properties == ("family",)
    got = lt.recommend(runs)
    assert got.formula == lt.recommend(lt.Runs(frame, seed="seed", **ROLES)).formula
    assert any("Each algorithm has one value of family" in note for note in got.notes)


def test_recommend_holds_no_term_that_a_fit_calls_arbitrary():
    """On one benchmark with one seed the means of the conditions hold (1 | task:prior:seed)."""
    rng, tried = np.random.default_rng(3), 0
    for tasks, priors, seeds, budgets in itertools.product((1, 3), (1, 2), (1, 3), (1, 3)):
        cells = itertools.product(range(tasks), "AB", range(priors), range(seeds), range(budgets))
        frame = pd.DataFrame(list(cells), columns=["task", "tool", "prior", "seed", "budget"])
        frame["loss"] = rng.normal(size=len(frame))
        metafeatures, budget = ("prior",) if priors > 1 else (), "budget" if budgets > 1 else None
        runs = lt.Runs(frame, seed="seed", budget=budget, metafeatures=metafeatures, **ROLES)
        try:
            models = [lt.recommend(runs), lt.recommend(runs, curves="model")]
            fits = [lt.fit_lmm(model.formula, model.runs) for model in models]
        except DesignError:  # nothing is repeated
            continue
        tried += 1
        assert not any("arbitrary" in note for fit in fits for note in fit.notes)
    assert tried >= 10


@pytest.mark.parametrize("seed", ["seed", None])
def test_one_run_of_each_algorithm_is_no_comparison(seed):
    """Three scores of one curve are not three observations: `loss ~ tool` found a winner in them."""
    frame = pd.DataFrame({"tool": list("AAABBB"), "task": "t", "seed": 0, "epoch": [1, 2, 3] * 2, "loss": range(6)})
    runs = lt.Runs(frame, seed=seed, budget="epoch", **ROLES)
    for refused in (lt.recommend, lt.analyze):
        refuses(DesignError, "Each algorithm has one run, so a difference between algorithms cannot", refused, runs)
