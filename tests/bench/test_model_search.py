"""The search of models: what it does not fit is worse, and what it ranks first is best."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from pytest import approx

import lmemtest as lt
from lmemtest.bench.modelling import select_model as door
from lmemtest.bench.modelling.builder import ModelBuilder
from lmemtest.bench.modelling.menu import Family, candidates_of
from lmemtest.bench.modelling.search import Search, fit_ml
from lmemtest.bench.modelling.select_model import select_model
from lmemtest.errors import ArgumentError


def study(rng=1, *, b=10, n=4, k=3, budgets=1, **sd):
    """A balanced table; `sd` has standard deviations of pair, instance, seed, run, budget, and effects of prior."""
    rng = np.random.default_rng(rng)
    grid = np.array(list(itertools.product(range(k), range(b), range(2), range(n), range(budgets))))
    a, t, m, s, u = grid.T
    y = rng.normal(size=b)[t] + sd.get("prior", 0.0) * m + sd.get("pair", 0.0) * rng.normal(size=(b, k))[t, a]
    y = (
        y
        + sd.get("instance", 0.0) * rng.normal(size=(b, 2))[t, m]
        + sd.get("seed", 0.0) * rng.normal(size=(b, n))[t, s]
    )
    y = y + sd.get("run", 0.0) * rng.normal(size=(b, k, 2, n))[t, a, m, s]
    y = y + sd.get("budget", 0.0) * rng.normal(size=budgets)[u] + rng.normal(size=len(grid))
    frame = pd.DataFrame({"tool": a, "task": t, "prior": m, "seed": s, "step": u, "y": y})
    for column, letter in (("tool", "A"), ("task", "t"), ("prior", "p")):
        frame[column] = letter + frame[column].astype(str)
    return lt.Runs(
        frame,
        score="y",
        direction="minimize",
        algorithm="tool",
        benchmark="task",
        seed="seed",
        budget="step" if budgets > 1 else None,
        metafeatures=["prior"],
    )


def brute_force(runs, names):
    """Every model of a family, fitted on its own with several starts."""
    family = Family(ModelBuilder(runs).random("benchmark").spec, runs, candidates_of(runs, names)[0])
    models, edge = {frozenset()}, [frozenset()]
    while edge:
        model = edge.pop()
        for candidate in family.offered:
            larger = model | family.down(candidate)
            if larger not in models:
                models.add(larger)
                edge.append(larger)
    fits = [family.spec(m).fit(runs, reml=False, restarts=2) for m in models]
    return pd.DataFrame({"aic": [f.aic for f in fits], "bic": [f.bic for f in fits]}, [f.formula for f in fits])


TRUTHS = {
    "nothing": {},
    "advantages and seeds": {"pair": 0.5, "seed": 0.4},
    "doubtful": {"pair": 0.3, "instance": 0.2, "prior": 0.15, "seed": 0.15},
    "much": {"pair": 1.0, "instance": 1.0, "prior": 1.0, "seed": 1.0},
}


def compare_with_brute_force(runs, names):
    """The search finds every model within reach; returns the fits that it took by each criterion."""
    all_fits = brute_force(runs, names)
    fits = {}
    for criterion in ("aic", "bic"):
        want = all_fits[criterion].sort_values()
        found = select_model(runs, method="best", candidates=names, criterion=criterion)
        table = found.to_frame()
        assert found.complete
        assert found.n_models == len(want)
        assert table[criterion].iloc[0] == approx(want.iloc[0], abs=1e-4)
        near = want[want <= want.iloc[0] + 6.0 - 1e-3]
        assert set(near.index) <= set(table["formula"])
        assert table.set_index("formula")[criterion].loc[near.index].to_numpy() == approx(near.to_numpy(), abs=1e-4)
        fits[criterion] = found.n_fits
    return len(all_fits), fits, all_fits


@pytest.mark.parametrize("truth", TRUTHS)
def test_the_search_finds_what_fitting_every_model_finds(truth, monkeypatch):
    monkeypatch.setattr(door, "EXHAUSTIVE", 1)  # the family is small enough to be fitted whole otherwise
    n_models, fits, _ = compare_with_brute_force(study(2, b=8, n=3, **TRUTHS[truth]), ["prior", "benchmark"])
    assert n_models == 23
    assert fits["bic"] < n_models


@pytest.mark.slow
@pytest.mark.parametrize("truth", TRUTHS)
def test_the_search_of_a_larger_family_finds_what_fitting_every_model_finds(truth):
    runs = study(2, b=8, n=3, **TRUTHS[truth])
    n_models, fits, all_fits = compare_with_brute_force(runs, None)
    assert n_models == 160
    assert fits["bic"] < 0.6 * n_models
    everything = select_model(runs, method="best", within=math.inf).to_frame()
    assert everything["bic"].to_numpy() == approx(np.sort(all_fits["bic"]), abs=1e-4)


def test_small_families_are_fitted_whole():
    found = select_model(study(2, b=8, n=3), method="best", candidates=["prior", "benchmark"])
    assert len(found.to_frame()) == found.n_fits == found.n_models
    assert "Every model of the family was fitted." in found.notes


def test_parameters_are_counted_without_a_fit():
    runs = study(1, b=6, n=2, budgets=3, pair=0.5, run=0.5)
    offered, _ = candidates_of(runs, ["prior", "benchmark", "seed", "budget", "dispersion(algorithm)"])
    for start in (ModelBuilder(runs).random("benchmark"), ModelBuilder(runs).recommended()):
        family = Family(start.spec, runs, offered)
        search = Search(family=family, n=10, criterion="aic")
        rng = np.random.default_rng(0)
        for _ in range(8):
            model = frozenset().union(
                *(family.down(family.offered[i]) for i in rng.integers(len(family.offered), size=3))
            )
            assert search.n_params(model) == fit_ml(family.spec(model), runs).n_params


def test_the_table_ranks_weighs_and_counts():
    runs = study(2, pair=0.6, seed=0.3)
    found = select_model(runs, method="best", criterion="aic")
    table = found.to_frame()
    assert table["rank"].tolist() == list(range(1, len(table) + 1))
    assert table["aic"].to_numpy() == approx(-2 * table["llf"] + 2 * table["n_params"])
    assert table["bic"].to_numpy() == approx(-2 * table["llf"] + math.log(runs.n_rows) * table["n_params"])
    assert table["delta"].to_numpy() == approx(table["aic"] - table["aic"].min())
    weight = np.exp(-table["delta"] / 2)
    assert table["weight"].to_numpy() == approx(weight / weight.sum())
    assert table["best"].sum() == 1
    row = table[table["best"]].iloc[0]
    assert row["formula"] == found.formula == found.fit().formula
    assert found.fit(reml=False).llf == approx(row["llf"], abs=1e-5)
    recommended = lt.recommend(runs).formula
    at = table.set_index("formula")["distance"]
    assert at.get(recommended, 0) == 0
    # the start lacks prior, tool:prior, slopes of task and task:tool, task:tool itself and task:prior:seed
    assert at["y ~ tool + (1 | task)"] == 6


def test_forward_and_search_agree_where_the_data_are_clear():
    runs = study(2, pair=1.0, instance=1.0, prior=3.0)
    assert select_model(runs, criterion="bic").formula == select_model(runs, method="best").formula


def test_the_result_does_not_depend_on_processes_or_the_order_of_candidates():
    runs = study(2, pair=0.5, seed=0.4)
    names = ["prior", "seed", "benchmark"]
    one = select_model(runs, method="best", candidates=names)
    for other in (
        select_model(runs, method="best", candidates=names, n_jobs=2),
        select_model(runs, method="best", candidates=names[::-1]),
    ):
        pd.testing.assert_frame_equal(other.to_frame(), one.to_frame())


def test_downwards_drops_what_is_not_significant():
    runs = study(2, pair=0.8, seed=0.6)
    found = select_model(runs, method="backward")
    table = found.to_frame()
    assert found.formula == "y ~ tool + (1 | task) + (1 | task:tool) + (1 | task:seed)"
    assert table["formula"].iloc[0] == found.formula
    # the last step down: the test of the chosen model in the one above it on the path
    row = table.iloc[0]
    above = table.iloc[1]
    test = lt.glrt(*(lt.fit_lmm(r["formula"], runs, reml=False) for r in (row, above)))
    assert row["p_value"] == approx(test.p_value, abs=1e-5)
    assert row["p_value"] > 0.05
    # nothing more can go: every term of the chosen model is significant
    for smaller in ("y ~ tool + (1 | task) + (1 | task:tool)", "y ~ tool + (1 | task) + (1 | task:seed)"):
        assert table.set_index("formula").loc[smaller, "p_value"] < 0.05


def test_depth_limits_groups_and_interactions():
    runs = study(2)
    terms = select_model(runs, method="best", depth=2).terms
    assert "(1 | task:prior)" in terms
    assert "tool:prior" in terms
    assert not any(text.count(":") > 1 for text in terms)
    assert select_model(runs, method="best", depth=1).terms == ("prior", "(1 | seed)")
    message = r"^depth=1 leaves no term to choose; the simplest has a depth of 2\.$"
    with pytest.raises(ArgumentError, match=message):
        select_model(runs, method="best", candidates=["(1 | benchmark:seed)"], depth=1)


def test_a_search_that_was_stopped_says_so():
    found = select_model(study(2, pair=0.5), method="best", max_models=4)
    assert not found.complete
    assert found.sentences()[0].endswith("as far as the search went.")
    assert "The search stopped after max_models=4 fits, so a better model may have been missed." in found.notes


def test_a_singular_model_gives_way_unless_it_is_clearly_better():
    """Advantages at two levels with a correlation of one: the free covariance is singular and fits far better."""
    runs = study(2, b=12, n=4, instance=1.0)
    frame = runs.to_frame()
    rng = np.random.default_rng(0)
    code = frame["tool"].str[1:].astype(int), frame["task"].str[1:].astype(int)
    frame["y"] += rng.normal(size=(3, 12))[code] * np.where(frame["prior"] == "p1", 3.0, 1.0)
    runs = lt.Runs(frame, **runs.roles())
    start = ModelBuilder(runs).random("benchmark", "benchmark:algorithm").interaction("algorithm", "prior")
    found = start.select(method="best", candidates=["prior"])
    assert found.to_frame()["singular"].iloc[0]
    assert "(1 + prior | task:tool)" in found.formula
    assert found.notes[0].startswith("The model with the smallest BIC, ")
    assert "(1 + prior | task:tool) has a variance of zero or a correlation of one." in found.notes[0]
    assert found.notes[1].startswith("It is kept all the same, since the best regular one, ")


def test_what_is_not_identified_is_listed():
    frame = study(2).to_frame()
    frame["size"] = np.where(frame["task"] < "t5", "small", "large")
    runs = lt.Runs(
        frame,
        score="y",
        direction="minimize",
        algorithm="tool",
        benchmark="task",
        metafeatures=["size"],
    )
    found = select_model(runs, method="best")
    refused = dict(found.not_identified)
    assert set(refused) == {"(1 | task:size)"}
    assert refused["(1 | task:size)"].startswith(
        "the random effects (1 | task) and (1 | task:size) have the same groups"
    )
    assert not any("task:size" in text for text in found.terms)


def test_half_of_the_benchmarks_can_be_held_out():
    found = select_model(study(2, b=9, pair=0.8), method="best", validate="half", rng=1)
    assert (len(found.holdout.chosen_on), len(found.holdout.tested_on)) == (4, 5)
    assert found.sentences()[1].startswith("The terms were chosen on 4 benchmarks; on the other 5, ")
    assert "too optimistic" in found.notes[-1]


def test_one_benchmark_and_the_words():
    runs = study(2, b=8, pair=0.0).filter(task="t0")
    found = select_model(runs, method="best")
    assert found.start.formula == "y ~ tool"
    text = found.summary()
    assert text.startswith("Models, by the terms that they have beyond the best one (+) or lack (−)")
    assert "the best" in text
    assert "too optimistic" in text
    assert "Every model of the family was fitted." in text
    assert found.n_models <= door.EXHAUSTIVE


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"criterion": "p"}, r"^criterion must be 'glrt' or 'aic' or 'bic', got 'p'\.$"),
        (
            {"criterion": "glrt"},
            r"^criterion of method='best' must be 'bic' or 'aic', got 'glrt', which is for method='forward' or "
            r"'backward'\.$",
        ),
        (
            {"method": "backward", "criterion": "aic"},
            r"^criterion of method='backward' must be 'glrt', got 'aic', which is for method='forward' or 'best'\.$",
        ),
        ({"method": "up"}, r"^method must be 'forward' or 'best' or 'backward', got 'up'\.$"),
        ({"within": -1}, r"^within must be a number of at least 0, got -1: inf takes in every model\.$"),
        ({"within": "all"}, r"^within must be a number of at least 0, got 'all': inf takes in every model\.$"),
        ({"max_models": 0}, r"^max_models must be a whole number of at least 1, got 0\.$"),
        ({"depth": 0}, r"^depth must be a whole number of at least 1, got 0\.$"),
        ({"bic_n": "runs"}, r"^bic_n must be 'rows' or 'benchmarks', got 'runs'\.$"),
    ],
)
def test_errors_name_the_argument(options, message):
    with pytest.raises(ArgumentError, match=message):
        select_model(study(1), **{"method": "best", **options})
