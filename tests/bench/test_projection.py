"""Sources of differences of models, and what a design with more of them would reach: closed forms and refusals."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from refusals import refusal

import lmemtest as lt
from lmemtest.errors import ArgumentError, DataError, DesignError

SOURCES = ["item", "prompt", "judge"]


def answers(shape=(3, 12, 4, 3), rng=1, names=("model", *SOURCES)):
    """Every judge on every answer to every prompt of every item, by every model."""
    draw = np.random.default_rng(rng)
    score = draw.normal(size=shape)
    for axis in range(1, len(shape)):  # parts of one model, and of all
        for of in ((0, axis), (axis,)):
            score = score + draw.normal(size=[n if i in of else 1 for i, n in enumerate(shape)])
    at = dict(zip(names, np.indices(shape).reshape(len(shape), -1), strict=True))
    return pd.DataFrame({**at, "score": score.ravel()})


def sources_of(table, sources=SOURCES, **options):
    return lt.variance_sources(table, score="score", sources=sources, model="model", **options)


@pytest.fixture(scope="module")
def study():
    return sources_of(answers())


def test_of_two_sources_the_variances_are_those_of_the_analysis_of_variance():
    """model x item x prompt, one score each: expected mean squares of the interactions with the models."""
    table = answers((4, 10, 5), names=("model", "item", "prompt"))
    y = table["score"].to_numpy().reshape(4, 10, 5)
    y = y - y.mean(axis=0)  # what all models have in common
    k, i, p = y.shape
    of_item, of_prompt = y.mean(axis=2), y.mean(axis=1)
    grand = y.mean(axis=(1, 2))
    rest = y - of_item[:, :, None] - of_prompt[:, None, :] + grand[:, None, None]
    ms_rest = (rest**2).sum() / ((k - 1) * (i - 1) * (p - 1))
    ms_item = p * ((of_item - grand[:, None]) ** 2).sum() / ((k - 1) * (i - 1))
    ms_prompt = i * ((of_prompt - grand[:, None]) ** 2).sum() / ((k - 1) * (p - 1))
    study = sources_of(table, ["item", "prompt"])
    want = [(ms_item - ms_rest) / p, (ms_prompt - ms_rest) / i, ms_rest]
    assert min(want) > 0.0
    assert_allclose(study.sources["variance"], want, rtol=1e-5)
    # the projection to the design of the pilot is the standard error that these mean squares give
    plan = study.project(current={"item": i, "prompt": p})
    error = np.sqrt(2.0 * (want[0] / i + want[1] / p + ms_rest / (i * p)))
    assert_allclose(plan.designs["standard_error"].iloc[0], error, rtol=1e-5)


def test_what_models_share_and_their_order_change_nothing():
    table = answers()
    first = sources_of(table).sources["variance"]
    shared = 5.0 * table["item"] + 3.0 * table["prompt"] * table["judge"]
    moved = table.assign(score=table["score"] + shared, model=-table["model"]).sample(frac=1.0, random_state=2)
    assert_allclose(sources_of(moved).sources["variance"], first, rtol=1e-4, atol=1e-7)


def test_the_best_design_is_the_best_of_all(study):
    plan = study.project(current={"item": 12, "prompt": 4, "judge": 3}, budget=100, at_most={"prompt": 5, "judge": 4})
    v = study.sources.set_index("source")["variance"]

    def error(i, p, j):
        pairs = v["item:prompt"] / (i * p) + v["item:judge"] / (i * j) + v["prompt:judge"] / (p * j)
        return np.sqrt(2 * (v["item"] / i + v["prompt"] / p + v["judge"] / j + pairs + v["residual"] / (i * p * j)))

    every = [
        (error(i, p, j), i, p, j) for i in range(1, 101) for p in range(1, 6) for j in range(1, 5) if i * p * j <= 100
    ]
    assert tuple(plan.best.values()) == min(every)[1:]
    assert_allclose(plan.designs["standard_error"], [error(12, 4, 3), min(every)[0]])
    steps = plan.steps.set_index("source")
    assert_allclose(steps.loc["judge", "standard_error"], error(12, 4, 4))
    assert_allclose(steps.loc["judge", "gain"], (error(12, 4, 3) - error(12, 4, 4)) / 48)
    assert_allclose(steps.loc["prompt", "floor"], error(12, 1e12, 3), rtol=1e-6)
    assert plan.buys == steps["gain"].idxmax()


def test_the_interval_is_that_of_the_sum_of_variances_by_mover(study):
    """Each variance goes to the end of its interval, weighted by its units, and deviations add up by their squares."""
    row = study.project(current={"item": 30, "prompt": 6, "judge": 2}).designs.iloc[0]
    table = study.sources.set_index("source")
    n = {"item": 30, "prompt": 6, "judge": 2}
    c = pd.Series({part: 2 / np.prod([n[s] for s in part.split(":") if s in n] or [360]) for part in table.index})
    low, value, high = ((table[end] ** (1 if end == "variance" else 2)) for end in ("ci_low", "variance", "ci_high"))
    total = (c * value).sum()
    down, up = (np.sqrt(((c * (value - end)) ** 2).sum()) for end in (low, high))
    assert_allclose(row[["ci_low", "ci_high"]].astype(float) ** 2, [max(total - down, 0.0), total + up])
    # of one part alone it is its own interval
    alone = study.project(current={"item": 10**6, "prompt": 1, "judge": 10**6}).designs.iloc[0]
    want = np.sqrt(2.0) * table.loc["prompt", ["ci_low", "ci_high"]].astype(float)
    assert_allclose(alone[["ci_low", "ci_high"]].astype(float), want, rtol=1e-4)


def test_paths_begin_at_the_design_of_the_study_and_none_is_below_the_best():
    table = answers()
    table["prompt"] = table["item"] * 100 + table["prompt"]
    study = sources_of(table)
    plan = study.project(costs={"item": 2.0, "score": 1.0}, at_most={"judge": 4})
    current = plan.designs.iloc[0]
    assert [*current[["n_item", "n_prompt", "n_judge"]]] == [12, 4, 3]
    paths = dict(list(plan.paths.groupby("path")))
    assert {*paths} == {"best", *SOURCES}
    for name in SOURCES:
        path = paths[name]
        assert path.iloc[0]["standard_error"] == current["standard_error"]
        assert path["standard_error"].is_monotonic_decreasing
        last = path.iloc[-1]
        best = study.project(costs={"item": 2.0, "score": 1.0}, budget=last["cost"]).designs.iloc[1]
        assert best["standard_error"] <= last["standard_error"]
    assert paths["judge"]["n_judge"].max() == 4
    many = study.project(current={"item": 2, "prompt": 2, "judge": 60}).designs
    assert many["standard_error"].is_monotonic_decreasing
    assert study.project(current={"item": 2, "prompt": 2, "judge": 60}, at_most={"judge": 5}).best["judge"] <= 5


def test_nested_prompts_count_in_their_items_and_costs_by_combination():
    table = answers((3, 15, 4), names=("model", "item", "prompt"))
    table["prompt"] = table["item"] * 100 + table["prompt"]
    study = sources_of(table, ["item", "prompt"])
    assert study.nested == {"item": (), "prompt": ("item",)}
    v = study.sources.set_index("source")["variance"]
    costs = {"item": 5.0, "score": 1.0}
    plan = study.project(current={"item": 15, "prompt": 4}, costs=costs)
    row = plan.designs.iloc[0]
    inner = v.drop("item").fillna(0.0).sum()  # with one score of each the prompts are in the residual
    assert_allclose(row["standard_error"] ** 2, 2 * (v["item"] / 15 + inner / 60))
    assert row["cost"] == 15 * 5 + 60


def test_repeats_and_the_plan_of_nested_stages():
    table = pd.concat([answers(), answers(rng=1).assign(score=lambda t: t["score"] + np.sin(t.index))])
    study = sources_of(table)
    plan = study.project(current={"item": 12, "prompt": 4, "judge": 3, "repeat": 2})
    assert [*plan.best] == [*SOURCES, "repeat"]
    nested = lt.plan(study, stages=SOURCES, budget=144)
    assert nested.n_algorithms == 3
    v = study.sources.set_index("source")["variance"]
    units = nested.best["item"]
    whole = units * nested.best["prompt"] * nested.best["judge"]
    of_prompt = v["prompt"] + v["item:prompt"]
    of_judge = v.sum() - of_prompt - v["item"]
    want = 2 * (v["item"] / units + of_prompt / (units * nested.best["prompt"]) + of_judge / whole)
    assert_allclose(nested.standard_error(nested.best) ** 2, want)


def test_two_levels_are_a_sample_and_lonely_judges_are_left_out(study):
    table = answers((2, 12, 2), names=("model", "item", "temperature"))
    notes = " ".join(sources_of(table, ["item", "temperature"]).notes)
    assert "2 levels of temperature are taken as a sample of others (random)" in notes
    lonely = pd.concat([answers(), answers((1, 12, 4, 1)).assign(judge=9)])
    found = sources_of(lonely)
    assert "48 scores of 480 are left out" in found.notes[0]
    assert_allclose(found.sources["variance"], study.sources["variance"])


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        (lambda t: t.assign(judge=t["model"]), DesignError, "a judge of one model only cannot be told from the model"),
        (lambda t: t[t["model"] == 0], DataError, "model has one level only"),
        (lambda t: t[t["prompt"] == 0], DesignError, "prompt has no variance in this study"),
    ],
)
def test_what_cannot_be_told_apart_is_refused(change, kind, words):
    current = {"item": 12, "prompt": 4, "judge": 3}
    assert words in refusal(lambda: sources_of(change(answers())).project(current=current), kind)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"current": {"item": 12}}, "current lacks 'prompt'"),
        ({"current": {"items": 12}}, "current names 'items', which is no source"),
        ({"budget": 0.5}, "budget is 0.5"),
        ({"current": {"item": 2.5}}, "current['item'] must be a whole number"),
        ({"costs": {"item": 1.0}}, "costs must say what more units of every source cost"),
        ({"at_most": {"prompt": 5000, "judge": 5000}}, "at_most leaves over"),
    ],
)
def test_bad_arguments_of_a_projection(options, words, study):
    given = {"current": {"item": 12, "prompt": 4, "judge": 3}} | options
    assert words in refusal(lambda: study.project(**given), ArgumentError)


def test_a_model_is_not_an_algorithm():
    assert "one or the other" in refusal(lambda: sources_of(answers(), algorithm="model"), ArgumentError)
    trainings = lt.variance_sources(answers((1, 6, 3, 3)), score="score", sources=SOURCES)
    assert trainings.project(current={"item": 6, "prompt": 3, "judge": 3}).designs["standard_error"].gt(0).all()


def test_the_figure_draws_the_paths_and_the_interval_of_the_best(study):
    plan = study.project()
    panel = plan.plot().child_axes[0]
    lines = {label: [line for line in panel.lines if line.get_label() == label] for label in ("_more", "_best")}
    for name, line in zip(SOURCES, lines["_more"], strict=True):
        path = plan.paths[plan.paths["path"] == name]
        assert_allclose(line.get_xydata(), path[["cost", "standard_error"]].to_numpy(float))
    best = plan.paths[plan.paths["path"] == "best"]
    (drawn,) = lines["_best"]
    assert_allclose(drawn.get_xydata(), best[["cost", "standard_error"]].to_numpy(float))
    (band,) = [part for part in panel.collections if part.get_label() == "_interval"]
    ends = band.get_paths()[0].vertices[:, 1]
    assert_allclose([ends.min(), ends.max()], [best["ci_low"].min(), best["ci_high"].max()])
