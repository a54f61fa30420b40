"""Evaluations by a binomial mixed model: its numbers, when it is taken, what it refuses."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from refusals import refusal
from scipy.special import expit
from study import table_of_scores
from typer.testing import CliRunner

import lmemtest as lt
from lmemtest.cli import app
from lmemtest.errors import ArgumentError, DataError, DesignError

ROLES = {"model": "model", "task": "task", "item": "item", "score": "score"}


def answers(models: int = 3, tasks: int = 5, items: int = 40, epochs: int = 1, level: float = 3.0) -> pd.DataFrame:
    rng = np.random.default_rng(4)
    shared = level + rng.normal(0, 0.8, (tasks, 1)) + rng.normal(0, 1, (tasks, items))
    eta = shared + rng.normal(0, 0.4, (models, tasks, 1)) - 0.5 * np.arange(models)[:, None, None]
    right = rng.random((*eta.shape, epochs)) < expit(eta)[..., None]
    table = table_of_scores(right.astype(int), "model task item epoch")
    return table.assign(model=np.array(list("ABCDEF"))[table["model"]])


@pytest.mark.parametrize("epochs", [1, 3])
def test_for_tasks_like_these_means_and_errors_are_those_of_the_generalised_mixed_model(epochs: int) -> None:
    table = answers(epochs=epochs)
    found = lt.evaluate(table, method="binomial", **ROLES, epoch="epoch")
    terms = "score ~ model + (1 | task) + (1 | task:model) + (1 | task:item)" + " + (1 | task:item:model)" * (
        epochs > 1
    )
    means = lt.fit_glmm(terms, table).emmeans("model", type="response")
    of_models = found.to_frame("models").set_index("model")["accuracy_like"]
    wanted = means.to_frame().set_index("model")["response"]
    assert of_models.to_dict() == pytest.approx(wanted.to_dict(), rel=1e-7)
    pairs, by_fit = found.to_frame(), means.pairs().to_frame()
    assert pairs["estimate_like"].tolist() == pytest.approx(by_fit["estimate"].tolist(), rel=1e-6)
    assert pairs["se_like"].tolist() == pytest.approx(by_fit["se"].tolist(), rel=1e-6)
    assert (pairs["df_like"] <= (3 - 1) * (5 - 1)).all()
    linear = lt.evaluate(table, **ROLES, epoch="epoch").to_frame()
    these = [name for name in pairs if name.endswith("_these")]
    pd.testing.assert_frame_equal(pairs[these], linear[these])
    assert found.samples["like"].endswith(
        "probabilities averaged over random effects. The larger of model-based and moderated standard errors, "
        "Satterthwaite degrees of freedom."
    )
    assert found.method == "binomial"
    assert len(found.sources) == 0


@pytest.mark.parametrize(
    ("tasks", "options", "errors"),
    [
        (5, {}, "Moderated"),
        (5, {"vcov": "model"}, "Model-based"),
        (2, {}, "Model-based"),
        (5, {"method": "binomial", "vcov": "model"}, "Model-based"),
        (2, {"method": "binomial"}, "Model-based"),
    ],
)
def test_what_standard_errors_for_tasks_like_these_come_from_is_said(
    tasks: int, options: dict[str, str], errors: str
) -> None:
    found = lt.evaluate(answers(tasks=tasks, items=20, level=1.0), **ROLES, **options)
    assert found.samples["like"].endswith(f". {errors} standard errors, Satterthwaite degrees of freedom.")


def test_models_without_an_answer_to_some_item_and_tasks_of_suites_are_compared():
    table = answers(tasks=12, items=10, level=1.0).query("task > 0 or model != 'A'")
    table = table[(table["item"] != 3) | (table["model"] != "B")].assign(suite=table["task"] // 2)
    found = lt.evaluate(table, method="binomial", **ROLES, family="suite")
    assert "(1 | family:model)" in found.fit.formula
    assert found.to_frame()["p_value_like"].between(0, 1).all()


@pytest.mark.parametrize(
    ("level", "tasks", "method"),
    [(3.4, 5, "binomial"), (-3.4, 5, "binomial"), (1.0, 5, "linear"), (3.4, 12, "linear"), (3.4, 1, "linear")],
)
def test_the_binomial_model_is_taken_near_the_ends_with_few_tasks(level: float, tasks: int, method: str) -> None:
    found = lt.evaluate(answers(level=level, tasks=tasks, items=30), method="auto", **ROLES)
    assert found.method == method
    assert any("binomial model is used" in note for note in found.notes) == (method == "binomial")


def test_graded_scores_have_the_linear_model_and_are_refused_by_name():
    table = answers()
    table["score"] = table["score"] * 0.9
    assert lt.evaluate(table, method="auto", **ROLES).method == "linear"
    with pytest.raises(DataError) as error:
        lt.evaluate(table, method="binomial", **ROLES)
    assert str(error.value) == (
        "method 'binomial' is for scores of 0 and 1, which are counted, and 'score' has scores between. Leave out "
        "method='binomial', or write 1 for what counts as right and 0 for the rest."
    )


def test_judges_who_disagree_leave_no_counts():
    table = answers(items=10)
    judged = pd.concat(
        [table.assign(judge="p"), table.assign(judge="q", score=table["score"].where(table["item"] > 0, 0))]
    )
    roles = {**ROLES, "judge": "judge"}
    assert lt.evaluate(judged, method="auto", **roles).method == "linear"
    with pytest.raises(DataError, match="'score' has scores between"):
        lt.evaluate(judged, method="binomial", **roles)
    agreed = pd.concat([table.assign(judge=name) for name in "pq"])
    assert lt.evaluate(agreed, method="binomial", **roles).method == "binomial"


def test_shares_of_failures_are_better_where_they_are_low():
    found = lt.evaluate(answers(level=-3.0), method="binomial", direction="minimize", **ROLES)
    means = found.to_frame("models").set_index("model")["accuracy_like"]
    assert found.like.estimates.direction == "minimize"
    assert found.decisions("tasks like these").levels[0] == means.idxmin()


def test_a_model_that_solves_all_is_said_and_has_finite_numbers():
    table = answers()
    table.loc[table["model"] == "A", "score"] = 1
    found = lt.evaluate(table, method="binomial", **ROLES)
    assert np.isfinite(found.to_frame().filter(like="_like").astype(float)).all(axis=None)
    assert any(note.startswith("Separation: the fixed effects fit the answers at model = A") for note in found.notes)


def test_odds_and_a_plan_have_no_binomial_model():
    table = answers()
    with pytest.raises(ArgumentError, match=r"of the linear model, .* Leave out vcov=, or write method='linear'"):
        lt.evaluate(answers(), method="binomial", vcov="moderated", **ROLES)
    with pytest.raises(ArgumentError, match="odds have a model of their own"):
        lt.evaluate(table, method="binomial", scale="odds", **ROLES)
    with pytest.raises(DesignError, match=r"by a binomial model. Call evaluate\(...\) without method= for it"):
        lt.evaluate(table, method="binomial", **ROLES).plan()
    assert "must be 'linear' or 'binomial' or 'auto'" in refusal(lambda: lt.evaluate(table, method="logit", **ROLES))


def test_failed_answers_are_judged_by_the_same_model():
    table = answers(level=1.0)
    table["failed"] = (table["item"] == 0) & (table["model"] == "A")
    found = lt.evaluate(table, method="binomial", failed="failed", score_failures="worst", **ROLES)
    assert found.sensitivity is not None


def test_the_command_line_has_the_method(tmp_path):
    path = tmp_path / "answers.csv"
    answers().to_csv(path, index=False)
    call = ["evaluate", str(path), *(part for role in ROLES for part in (f"--{role}", role)), "--method", "binomial"]
    done = CliRunner().invoke(app, [*call, "--yes"])
    assert done.exit_code == 0, done.output
    assert "binomial (logit)" in " ".join(done.output.split())
