"""The search of models: what it does not fit is worse, and what it ranks first is best."""

from __future__ import annotations

import itertools
import math
from functools import partial

import numpy as np
import pandas as pd
import pytest
from pytest import approx
from refusals import refuses
from study import as_runs, make_table

import lmemtest as lt
from lmemtest.bench.modelling import select_model as door
from lmemtest.bench.modelling.builder import ModelBuilder
from lmemtest.bench.modelling.menu import Family, candidates_of
from lmemtest.bench.modelling.recommend import recommend
from lmemtest.bench.modelling.search import Search, fit_ml
from lmemtest.bench.modelling.select_model import select_model
from lmemtest.errors import ArgumentError
from lmemtest.lmm.model.spec import ModelSpec


def study(rng=1, *, b=10, n=4, k=3, budgets=None, prior=0.0, **sds):
    """A balanced table; `sds` has standard deviations of pair, instance, seed and run."""
    groups = {"pair": "benchmark:algorithm", "instance": "benchmark:prior", "seed": "benchmark:seed"}
    groups["run"] = "benchmark:algorithm:prior:seed"
    sizes = [f"A{i}" for i in range(k)], [f"t{i}" for i in range(b)], n, budgets
    sds = {"benchmark": 1.0} | {groups[name]: sd for name, sd in sds.items()}
    columns = {"algorithm": "tool", "benchmark": "task", "budget": "step", "score": "y"}
    frame = make_table(*sizes, priors=2, sds=sds, rng=rng, **columns)
    return as_runs(frame.assign(y=frame["y"] + prior * (frame["prior"] == "p1")))


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


def test_the_result_does_not_depend_on_the_order_of_candidates():
    runs = study(2, pair=0.5, seed=0.4)
    names = ["prior", "seed", "benchmark"]
    one, other = (select_model(runs, method="best", candidates=order) for order in (names, names[::-1]))
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
    refuses(ArgumentError, message, select_model, runs, method="best", candidates=["(1 | benchmark:seed)"], depth=1)


def test_a_search_that_was_stopped_says_so():
    found = select_model(study(2, pair=0.5), method="best", max_models=4)
    assert not found.complete
    assert found.sentences()[0].endswith("as far as the search went.")
    assert "The search stopped after max_models=4 fits, so a better model may have been missed." in found.notes


def test_a_singular_model_gives_way_unless_it_is_clearly_better():
    """Advantages at two levels with a correlation of one: the free covariance is singular and fits far better."""
    runs = study(1, b=12, n=4, instance=1.0)
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
    runs = as_runs(frame, seed=None, metafeatures=["size"])
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
        ({"criterion": "glrt"},
         r"^criterion of method='best' must be 'bic' or 'aic', got 'glrt', which is for method='forward' or "
         r"'backward'\.$"),
        ({"method": "backward", "criterion": "aic"},
         r"^criterion of method='backward' must be 'glrt', got 'aic', which is for method='forward' or 'best'\.$"),
        ({"within": -1}, r"^within must be a number of at least 0, got -1: inf takes in every model\.$"),
        ({"within": "all"}, r"^within must be a number of at least 0, got 'all': inf takes in every model\.$"),
        ({"max_models": 0}, r"^max_models must be a whole number of at least 1, got 0\.$"),
        ({"depth": 0}, r"^depth must be a whole number of at least 1, got 0\.$"),
        ({"bic_n": "runs"}, r"^bic_n must be 'rows' or 'benchmarks', got 'runs'\.$"),
    ],
)  # fmt: skip
def test_errors_name_the_argument(options, message):
    refuses(ArgumentError, message, select_model, study(1), **{"method": "best", **options})


# ---------------------------------------------------------------------- recommended


runs_of = partial(as_runs, seed_shared=False)  # seeds only number the repetitions


def table(algorithms=3, benchmarks=4, seeds=5, priors=None, **options):
    names = [f"a{i}" for i in range(algorithms)]
    priors = None if priors is None else range(priors)
    return make_table(names, range(benchmarks), seeds, priors=priors, benchmark="task", **options)


@pytest.mark.parametrize(
    ("sizes", "formula", "said"),
    [
        ({}, "(1 | task) + (1 | task:algorithm) + (1 | task:seed)", ""),
        ({"budgets": 3}, "C(budget) + algorithm:C(budget) + (1 | task) + (1 | task:algorithm) + (1 | task:seed) + "
         "(1 | task:algorithm:seed) + (1 | task:budget) + (1 | task:algorithm:budget)", "same 3 budgets"),
        ({"priors": 2}, "(1 | task) + (1 | task:algorithm) + (1 | task:prior) + (1 | task:prior:algorithm) + "
         "(1 | task:prior:seed)", "Benchmarks count as the sample"),
        ({"benchmarks": 1}, "(1 | task:seed)", "says nothing about other benchmarks"),
        ({"benchmarks": 1, "priors": 2}, "C(prior) + algorithm:C(prior) + (1 | task:prior:seed)",
         "says nothing about other benchmarks"),
    ],
)  # fmt: skip
def test_the_model_is_what_the_design_identifies(sizes, formula, said):
    got = recommend(runs_of(table(**sizes)), curves="model" if "budgets" in sizes else None)
    assert got.formula == f"loss ~ algorithm + {formula}"
    assert got.left_out == ()
    assert len(got.terms) == formula.count(" + ") + 2
    assert said in " ".join(got.notes)


def test_what_the_rows_cannot_show_is_left_out():
    got = recommend(runs_of(table(seeds=1), seed=None))
    assert got.formula == "loss ~ algorithm + (1 | task)"
    assert "cannot be distinguished from the residual" in got.left_out[0]
    got = recommend(runs_of(table(seeds=1, budgets=3)), curves="model")
    assert "its groups are those of (1 | task)" in got.left_out[0]


def test_a_metafeature_is_a_condition_that_benchmarks_go_through():
    got = recommend(runs_of(table(benchmarks=8, priors=2)))
    assert got.formula == (
        "loss ~ algorithm + C(prior) + algorithm:C(prior) + (0 + C(prior) | task) + (0 + C(prior) | task:algorithm) "
        "+ (1 | task:prior:seed)"
    )
    assert got.spec == ModelSpec.parse(got.formula)
    assert "at each level of prior" in got.terms["meaning"].iloc[3]
    fit = lt.fit_lmm(got.formula, table(benchmarks=8, priors=2))
    assert [term.group for term in fit.design.random] == ["task", "task:algorithm", "task:prior:seed"]


@pytest.mark.parametrize(
    ("frame", "roles"),
    [
        (table(benchmarks=5, priors=2), {}),  # few benchmarks
        (table(benchmarks=8, priors=5), {}),  # many levels
        (table(benchmarks=8, seeds=1, priors=2), {"seed": None}),  # single runs
        (table(benchmarks=8, seeds=2, priors=2).assign(size=lambda t: t["seed"]), {"metafeatures": ["prior", "size"]}),
    ],
)
def test_where_that_is_too_much_instances_differ_to_the_same_degree(frame, roles):
    formula = recommend(runs_of(frame, **roles)).formula
    assert "(1 | task)" in formula
    assert "(0 +" not in formula


def test_a_metafeature_of_the_benchmarks_themselves_is_no_condition():
    frame = table(benchmarks=8).assign(kind=lambda t: t["task"] % 2)
    got = recommend(runs_of(frame, metafeatures=["kind"]))
    assert got.formula.startswith("loss ~ algorithm + (1 | task) + (1 | task:algorithm)")


def test_a_metafeature_that_tells_kinds_of_benchmarks_apart_makes_no_instances():
    """It changes nothing in the model of the metafeature that benchmarks go through; the note's next step works."""
    frame = table(benchmarks=8, priors=2)
    frame["kind"] = "k" + (frame["task"] % 2).astype(str)
    plain, kinds = (recommend(runs_of(frame, metafeatures=m)) for m in (("prior",), ("prior", "kind")))
    assert kinds.formula == plain.formula
    assert kinds.notes[0].startswith("Each benchmark has one level of kind, which distinguishes kinds of benchmarks")
    assert kinds.notes[1:] == plain.notes
    odd = runs_of(
        frame.rename(columns={"algorithm": "al go", "kind": "my kind"}), algorithm="al go", metafeatures=("my kind",)
    )
    assert recommend(odd).notes[0].endswith(".recommended().interaction('`al go`', '`my kind`').")
    lt.ModelBuilder(odd.filter(prior=0)).recommended().interaction("`al go`", "`my kind`")
    assert not any("kind" in note for note in recommend(odd.normalize("rank")).notes)  # fixed benchmarks hold the kinds
    own = frame.assign(kind=frame["task"].astype(str))
    assert not any("kind" in note for note in recommend(runs_of(own, metafeatures=("prior", "kind"))).notes)
    only = runs_of(frame[frame["prior"] == 0], metafeatures=("kind",))
    assert recommend(only).formula == "loss ~ algorithm + (1 | task) + (1 | task:algorithm) + (1 | task:seed)"
    asked = lt.ModelBuilder(only).recommended().interaction("algorithm", "kind")
    assert "algorithm:kind" in asked.fit().anova().to_frame()["term"].tolist()


def test_numbers_as_names_of_algorithms_are_no_slope():
    frame = table()
    frame["algorithm"] = frame["algorithm"].str[1:].astype(int)
    runs = runs_of(frame)
    fit = lt.fit_lmm(recommend(runs).formula, runs)
    assert recommend(runs).formula.startswith("loss ~ C(algorithm) + ")
    assert len(fit.emmeans("algorithm").to_frame()) == 3


def test_uneven_budgets_get_a_mean_each():
    frame = table(budgets=3)
    runs = runs_of(frame[(frame["budget"] < 3) | (frame["seed"] > 1)])
    assert "C(budget)" in recommend(runs, curves="model").formula


def test_odd_column_names_survive_the_formula():
    frame = table().rename(columns={"task": "my task (v2)", "loss": "final loss"})
    runs = runs_of(frame, score="final loss", benchmark="my task (v2)")
    fit = lt.fit_lmm(recommend(runs).formula, runs)
    assert fit.nobs == len(frame)


def test_every_recommended_model_can_be_fitted():
    for budgets, seeds, priors in itertools.product((None, 3), (1, 4), (None, 2)):
        runs = runs_of(table(seeds=seeds, budgets=budgets, priors=priors))
        for model in (recommend(runs), recommend(runs, curves="model")):
            assert lt.fit_lmm(model.formula, model.runs).converged


@pytest.mark.parametrize("how", ["rank", "zscore"])
@pytest.mark.parametrize("algorithms", [2, 4])
def test_scores_relative_to_the_benchmark_are_compared_within_benchmarks(how, algorithms):
    """Closed form: two-way analysis of benchmark means, which a benchmark variance of zero would make too sure."""
    frame = table(algorithms=algorithms, benchmarks=9)
    advantage = np.random.default_rng(1).normal(size=(9, algorithms))
    frame["loss"] += 2 * advantage[frame["task"], frame["algorithm"].str[1:].astype(int)]
    runs = runs_of(frame).normalize(how)
    got = recommend(runs)
    assert got.formula == f"loss_{how} ~ algorithm + C(task) + (1 | task:algorithm) + (1 | task:seed)"
    assert "what one algorithm gains there others lose" in got.summary()
    pair = lt.fit_lmm(got.formula, runs).emmeans("algorithm").pairs().to_frame().iloc[0]
    y = runs.to_frame().groupby(["task", "algorithm"])[runs.score].mean().unstack().to_numpy()
    around = y - y.mean(axis=1, keepdims=True) - y.mean(axis=0) + y.mean()
    df = 8 * (algorithms - 1)
    assert pair["estimate"] == pytest.approx(y[:, 0].mean() - y[:, 1].mean(), rel=1e-8)
    assert pair["se"] == pytest.approx(np.sqrt(2 * (around**2).sum() / df / 9), rel=1e-5)
    assert pair["df"] == pytest.approx(df, rel=1e-4)


def test_one_seed_of_relative_scores_has_no_luck_of_its_own():
    """With fixed effects of benchmarks, the groups of (1 | task:seed) have their means already."""
    frame = table(algorithms=4, benchmarks=9, seeds=1)
    frame["loss"] = frame["loss"] - frame.groupby("task")["loss"].transform("mean")
    got = recommend(runs_of(frame))
    assert got.formula == "loss ~ algorithm + C(task)"
    assert any("(1 | task:seed): its groups are those of task, whose effects are fixed." in t for t in got.left_out)
    fit = lt.fit_lmm(got.formula, frame)
    pair = fit.emmeans("algorithm").pairs().to_frame().iloc[0]
    assert pair["df"] == pytest.approx(24)


def test_relative_scores_at_the_levels_of_a_metafeature():
    frame = table(benchmarks=8, priors=2)
    advantage = np.random.default_rng(1).normal(size=(8, 3))
    frame["loss"] += 2 * advantage[frame["task"], frame["algorithm"].str[1:].astype(int)] + 5 * frame["prior"]
    runs = runs_of(frame)
    assert "(0 + C(prior) | task) +" in recommend(runs).formula
    assert "+ C(task) * C(prior) + (0 + C(prior) | task:algorithm)" in recommend(runs.normalize("rank")).formula
    both = recommend(runs.normalize("rank", by=["task"]))
    assert "+ C(task) * C(prior) + (0 + C(prior) | task:algorithm)" in both.formula


@pytest.mark.parametrize("how", ["rank", "zscore"])
def test_means_of_relative_scores_are_those_of_the_levels_however_unequal_these_vary(how):
    """An algorithm that gains at the level that varies more is not measured at the other alone."""
    rng, frame = np.random.default_rng(8), table(benchmarks=8, priors=2)
    places = frame["task"], frame["algorithm"].str[1:].astype(int), frame["prior"]
    frame["loss"] += rng.normal(size=(8, 3, 2))[places] * np.array([0.2, 4.0])[places[2]]
    frame["loss"] += np.array([[0.0, 2.0, 0.0], [0.0, -3.0, 0.0]])[places[2], places[1]]
    runs = runs_of(frame).normalize(how)
    got = recommend(runs)
    means = got.spec.fit(got.runs).emmeans("algorithm").to_frame()
    plain = runs.to_frame().groupby("algorithm")[runs.score].mean()
    assert means["emmean"].to_numpy() == pytest.approx(plain.to_numpy(), rel=1e-9)
