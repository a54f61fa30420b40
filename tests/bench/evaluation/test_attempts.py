"""Repeated attempts: pass@k and its kin by enumeration, and what `evaluate` says of them as scores of items."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from refusals import refusal
from scipy import stats
from scipy.special import expit
from study import table_of_scores

import lmemtest as lt
from lmemtest.core.proportions import wilson
from lmemtest.errors import ArgumentError, DataError, DesignError

ROLES = {"model": "model", "task": "task", "item": "item", "epoch": "epoch", "score": "score"}
WORTH = {
    "pass@k": lambda x, _: float(x > 0),
    "pass^k": lambda x, k: float(x == k),
    "maj@k": lambda x, k: float(2 * x > k) + 0.5 * (2 * x == k),
    "agree@k": lambda x, k: float(x in (0, k)),
}


def attempts(models=3, tasks=2, items=12, epochs=5, seed=1):
    rng = np.random.default_rng(seed)
    eta = rng.normal(0, 0.7, (models, tasks, 1)) + rng.normal(0.3, 1.5, (tasks, items))
    return table_of_scores(
        (rng.random((*eta.shape, epochs)) < expit(eta)[..., None]).astype(int), "model task item epoch"
    )


@pytest.fixture(scope="module")
def table():
    return attempts()


@pytest.fixture(scope="module")
def found(table):
    return lt.repeated_attempts(table, **ROLES)


@pytest.fixture(scope="module")
def unequal(table):
    """Without the last attempt at the first items, and the answer for it."""
    kept = table[(table["item"] != table["item"].iloc[0]) | (table["epoch"] != table["epoch"].max())]
    return kept, lt.repeated_attempts(kept, **ROLES, k=[2, 3])


def of_items(table, statistic, k):
    """Mean over all subsets of k attempts of each model and item."""

    def over_subsets(y):
        return np.mean([WORTH[statistic](sum(chosen), k) for chosen in combinations(y, k)])

    return table.groupby(["model", "task", "item"])["score"].apply(over_subsets).reset_index()


def rows_of(part, statistic, k):
    return part[(part["statistic"] == statistic) & (part["k"] == k)].reset_index(drop=True)


@pytest.mark.daily(2)
@pytest.mark.parametrize(("statistic", "k"), [("pass@k", 3), ("pass^k", 2), ("maj@k", 3), ("maj@k", 5), ("agree@k", 2)])
def test_each_statistic_is_the_mean_over_all_subsets_evaluated_as_a_score_of_items(table, found, unequal, statistic, k):
    for answers, got in ((table, found), unequal):
        if len(rows_of(got.models, statistic, k)):
            want = lt.evaluate(of_items(answers, statistic, k), model="model", task="task", item="item", score="score")
            models = rows_of(got.models, statistic, k).rename(columns=lambda name: name.replace("estimate", "accuracy"))
            pd.testing.assert_frame_equal(models[want.models.columns], want.models, rtol=1e-6)
            pd.testing.assert_frame_equal(rows_of(got.pairs, statistic, k)[want.pairs.columns], want.pairs, rtol=1e-6)


def test_pass_at_k_is_the_published_estimator_also_of_many_attempts():
    n, right, ks = 200, {"a": [0, 1, 7, 40], "b": [3, 150, 199, 200]}, [10, 100, 200]
    rows = [(m, i, e, int(e < c)) for m, of in right.items() for i, c in enumerate(of) for e in range(n)]
    table = pd.DataFrame(rows, columns=["model", "item", "epoch", "score"])
    found = lt.repeated_attempts(table, model="model", item="item", epoch="epoch", score="score", k=ks)

    def published(c, k):  # human-eval, Chen et al. (2021), figure 3
        return 1.0 if n - c < k else 1.0 - np.prod(1.0 - k / np.arange(n - c + 1, n + 1))

    for k in ks:
        got = rows_of(found.models, "pass@k", k).set_index("model")["estimate_these"]
        for model, of in right.items():
            assert got[model] == pytest.approx(np.mean([published(c, k) for c in of]), abs=1e-11)


def test_single_attempts_are_those_of_evaluate(table, found):
    want = lt.evaluate(table, **ROLES)
    columns = [name for name in want.pairs if not name.endswith("_items")]
    got = rows_of(found.pairs, "pass@k", 1)[columns]
    pd.testing.assert_frame_equal(got, want.pairs[columns], rtol=1e-6)
    assert found.k == (1, 2, 3, 5)


def test_the_share_of_items_is_that_of_the_analysis_of_variance():
    table = attempts(models=2, tasks=1, items=60, epochs=4)
    found = lt.repeated_attempts(table, **ROLES)
    y = table.pivot_table(index=["model", "item"], columns="epoch", values="score")
    for model, row in found.noise.set_index("model").iterrows():
        own = y.loc[int(model)].to_numpy()
        items, attempt = 4.0 * own.mean(axis=1).var(ddof=1), own.var(axis=1, ddof=1).mean()
        assert row["icc"] == pytest.approx((items - attempt) / (items + 3.0 * attempt))
        assert row["sd_attempts"] == pytest.approx(attempt**0.5)
        alike = rows_of(found.models, "agree@k", 2).set_index("model").loc[model, "estimate_these"]
        assert alike == pytest.approx(1.0 - 2.0 * attempt)  # two attempts differ with probability 2 p (1 - p)


def test_errors_by_attempts_are_those_of_these_attempts_and_the_plan_has_their_best_number():
    table = attempts(models=2, items=60, epochs=5)
    found = lt.repeated_attempts(table, **ROLES, costs={"item": 16.0, "epoch": 1.0})
    rows = found.repeats[found.repeats["question"] == "these tasks"].set_index(["n_items", "n_attempts"])
    assert rows.loc[(120, 5.0), "se_difference"] == pytest.approx(rows_of(found.pairs, "pass@k", 1)["se_these"][0])
    like = found.repeats[found.repeats["question"] == "tasks like these"].set_index(["n_items", "n_attempts"])
    assert (like["se_difference"] >= rows["se_difference"] - 1e-12).all()
    once, ever = (rows.loc[(120, r), "se_difference"] ** 2 for r in (1.0, np.inf))
    assert rows.loc[(480, 3.0), "se_difference"] ** 2 == pytest.approx((ever + (once - ever) / 3.0) / 4.0)
    assert abs(found.plan.best["epoch"] - (16.0 * (once - ever) / ever) ** 0.5) < 1.0  # Cochran (1977), chapter 10


def test_what_all_attempts_solve_has_an_interval_and_no_test():
    right = np.ones((2, 3, 8, 4), dtype=int)
    right[0, :, :4, 0] = right[1, :, 2:5, 1] = 0
    found = lt.repeated_attempts(table_of_scores(right, "model task item epoch"), **ROLES, k=4)
    solved = rows_of(found.models, "pass@k", 4)
    assert (solved["estimate_these"] == 1.0).all()
    assert (solved["ci_low_these"] < 0.9).all()
    assert rows_of(found.pairs, "pass@k", 4)["differ_these"].isna().all()
    assert "pass@4: no pair is tested." in found.sentences()
    assert (
        "pass@4 and maj@4: models do not differ, or have the same score on all items, so there is no test."
        in found.notes
    )


def test_no_plan_is_made_where_items_do_not_vary_beyond_the_noise_of_attempts():
    right = np.tile(np.eye(3, dtype=int)[:, None], (1, 6, 1))[None].repeat(2, axis=0)  # one of three attempts each
    right[1, 0, 0] = 1
    found = lt.repeated_attempts(table_of_scores(right, "model task item epoch"), **ROLES)
    assert found.plan is None
    assert any(note.startswith("There is no plan: ") for note in found.notes)
    alone = table_of_scores(right[:, :2], "model task item epoch").query("model == 0 or task == 0")
    assert not any("nan" in said for said in lt.repeated_attempts(alone, **ROLES).sentences())


def test_models_that_each_lack_a_task_have_no_mean_over_these_tasks_and_an_answer(table):
    names, tasks = sorted(table["model"].unique()), sorted(table["task"].unique())
    lacking = table[(table["model"] == names[0]) == (table["task"] == tasks[0])]
    found = lt.repeated_attempts(lacking, **ROLES)
    assert found.to_frame()["estimate_these"].isna().all()
    assert any(f"{names[0]}, " in note and "no answers on some task" in note for note in found.notes)
    assert not any("scored alike" in text for text in found.sentences())


def test_a_threshold_makes_attempts_right_or_wrong_on_the_scale_of_the_column(table, found):
    rated = table.assign(score=np.where(table["score"] == 1, 7, 3))
    got = lt.repeated_attempts(rated, **ROLES, min_score=1, max_score=10, threshold=7)
    pd.testing.assert_frame_equal(got.models, found.models)
    judged = pd.concat([table.assign(judge="x"), table.assign(judge="y")])
    by_two = lt.repeated_attempts(judged, **ROLES, judge="judge")
    assert "An attempt has the mean score of 2 judges, and results hold for them." in by_two.notes


def test_items_of_clusters_and_tasks_of_suites_are_evaluated_as_such():
    table = attempts(tasks=10)
    table["passage"] = table["task"].astype(str) + "-" + (table["item"].astype("category").cat.codes // 3).astype(str)
    table["suite"] = table["task"].astype("category").cat.codes // 2
    roles = {**ROLES, "cluster": "passage", "family": "suite"}
    found, want = lt.repeated_attempts(table, **roles, k=1), lt.evaluate(table, **roles)
    for name in ("se_these", "se_like"):
        assert rows_of(found.pairs, "pass@k", 1)[name].tolist() == pytest.approx(want.pairs[name].tolist(), rel=1e-5)
    assert set(found.repeats["question"]) == {"these tasks"}
    assert found.sentences()[0].startswith("Pairs that differ in pass@1: ")
    assert "for tasks of suites like these" in found.sentences()[0]


def test_evaluate_points_to_the_attempts_of_answers_that_are_right_or_wrong(table):
    words = "pass@k, pass^k and how many attempts are worth it: repeated_attempts"
    assert any(words in note for note in lt.evaluate(table, **ROLES).notes)
    assert not any(words in note for note in lt.evaluate(table.assign(score=0.3 + 0.4 * table["score"]), **ROLES).notes)


def test_bad_tables_and_arguments_are_refused_with_the_next_step(table):
    def said(kind, frame=table, **options):
        return refusal(lambda: lt.repeated_attempts(frame, **{**ROLES, **options}), kind)

    assert said(ArgumentError, epoch=None) == (
        "epoch must be the name of the column that numbers the attempts of a model at an item, got None. Name it, or "
        "add one: epoch=.... Single answers are compared by evaluate."
    )
    first = table[table["epoch"] == table["epoch"].min()]
    assert said(DesignError, first).startswith("Every answer was given once, so nothing says how attempts vary.")
    model, task, item = table[["model", "task", "item"]].iloc[0]
    less = table[
        ~(
            (table[["model", "task", "item"]] == [model, task, item]).all(axis=1)
            & (table["epoch"] != table["epoch"].iloc[0])
        )
    ]
    assert said(DesignError, less) == (
        f"Every answer needs 2 attempts, and 1 of 72 have fewer: {model} has 1 attempt at item {item} of {task}. Add "
        "attempts, or leave out these items for all models."
    )
    assert said(DesignError, k=6).startswith("k is 6, so every answer needs 6 attempts, and 72 of 72 have fewer: ")
    assert "ask for k up to 5, or leave out" in said(DesignError, k=6)
    assert "k must be a whole number" in said(ArgumentError, k=2.5)
    assert "k must be" in said(ArgumentError, k=[2, 0])
    assert said(DataError, table.assign(score=0.4 + 0.2 * table["score"])).endswith(
        "Say from which score on it is right, such as threshold=0.5."
    )
    assert "threshold must be" in said(ArgumentError, threshold=1.5)
    assert said(DesignError, table.assign(score=1)).startswith(
        "All scores are 1, so the models cannot be distinguished."
    )
    assert said(DesignError, table.assign(score=0)).startswith(
        "All scores are 0, so the models cannot be distinguished."
    )


def test_intervals_on_one_task_are_wilsons_with_one_item_more_half_right_and_half_wrong():
    table = attempts(tasks=1, items=15)
    found = lt.repeated_attempts(table, **ROLES)
    for k in (1, 5):
        scores = of_items(table, "pass@k", k)
        models = rows_of(found.models, "pass@k", k).set_index("model")
        for model, own in scores.groupby("model"):
            x = own["score"].to_numpy()
            more = np.array([*x, *x, 0.0, 1.0])  # every item twice: half an item is one of these
            size = len(x) * more.mean() * (1.0 - more.mean()) / more.var()
            want = np.ravel(wilson(x.mean(), size, stats.t.ppf(0.975, len(x) - 1)))
            np.testing.assert_allclose(models.loc[str(model), ["ci_low_these", "ci_high_these"]].astype(float), want)


@pytest.mark.parametrize(("tasks", "models", "seed"), [(2, 3, 2), (3, 5, 1)])
def test_means_for_tasks_like_these_have_no_more_degrees_of_freedom_than_tasks_and_models(tasks, models, seed):
    """Where tasks happen to be as alike as chance makes them, the model would take those of the items."""
    table = attempts(models, tasks, 60).query("epoch == epoch.min()").drop(columns="epoch")
    alike = table.assign(score=np.random.default_rng(seed).permuted(table["score"].to_numpy()))
    fitted = lt.evaluate(alike, **{role: name for role, name in ROLES.items() if role != "epoch"})
    assert fitted.fit.emmeans("model").df.min() > models * (tasks - 1)
    np.testing.assert_allclose(fitted.like.estimates.df, models * (tasks - 1))
