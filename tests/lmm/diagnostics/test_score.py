"""Diagnoses speak of the kind of score that was modelled."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest
from study import as_runs

import lmemtest as lt
from lmemtest.lmm.diagnostics import diagnose
from lmemtest.lmm.diagnostics.scores import rows_of, score_of

FORMULA = "score ~ tool + (1|task)"


def grid(tools, tasks, seeds):
    levels = [[f"s{i}" for i in range(tools)], range(tasks), range(seeds)]
    return pd.MultiIndex.from_product(levels, names=["tool", "task", "seed"]).to_frame(index=False)


def answers(questions=80, seeds=1):
    rng = np.random.default_rng(1)
    frame = grid(4, questions, seeds)
    ability = 0.4 * frame["tool"].str[1:].astype(int) - rng.normal(0, 2, questions)[frame["task"]] + 1
    return frame.assign(score=(rng.random(len(frame)) < 1 / (1 + np.exp(-ability))).astype(int))


def times():
    rng = np.random.default_rng(1)
    frame = grid(4, 20, 4)
    log = rng.normal(6, 2, 20)[frame["task"]] + 0.3 * frame["tool"].str[1:].astype(int) + rng.normal(size=len(frame))
    return frame.assign(score=np.minimum(np.exp(log), 3600.0))


runs_of = partial(as_runs, direction="maximize")


@pytest.mark.parametrize("data", [answers(), runs_of(answers()), runs_of(answers(seeds=3)), answers(seeds=3)])
def test_right_or_wrong_answers_are_known_with_and_without_roles(data):
    fit = lt.fit_lmm(FORMULA, data)
    found = score_of(fit, rows_of(fit))
    score = data.to_frame()["score"] if isinstance(data, lt.Runs) else data["score"]
    assert found.two_valued
    assert found.rarer == pytest.approx(min(score.sum(), (1 - score).sum()))


def test_right_or_wrong_answers_get_no_advice_for_measurements():
    fit = lt.fit_lmm(FORMULA, runs_of(answers()))
    checks = {(c.kind, c.subject): c for c in diagnose(fit, rng=1, influence=False).checks}
    assert checks["bounds", "scores"].severity == "skipped"
    assert checks["bounds", "scores"].advice.startswith("Such scores have ends by nature. Scores are 0 or 1; ")
    assert checks["normality", "residuals"].severity == "fine"
    for subject in ("by task", "by fitted value"):
        assert ("scale", subject) not in checks or checks["scale", subject].severity == "fine"
    for check in checks.values():
        for phrase in ("log", "normalize", "leave", "rank", "harder"):
            assert phrase not in check.advice, check


def test_few_answers_of_one_kind_are_said_to_be_few():
    frame = answers().assign(score=0)
    frame.loc[[3, 50, 170, 200, 260, 300], "score"] = 1
    checks = diagnose(lt.fit_lmm(FORMULA, runs_of(frame)), rng=1, influence=False).checks
    residuals = next(c for c in checks if c.subject == "residuals")
    assert residuals.severity == "note"
    assert "with the rarer value in 6 rows tests of means are approximate" in residuals.advice


def test_scores_at_a_limit_are_called_censored():
    frame = times()
    fit = lt.fit_lmm(FORMULA, as_runs(frame))
    sentence = diagnose(fit, rng=1, influence=False).bounds.advice
    assert "as of a timeout: such scores are censored" in sentence
    assert "PAR10" in sentence
    frame.loc[frame["score"] >= 3600, "score"] = 36000.0
    found = diagnose(lt.fit_lmm(FORMULA, as_runs(frame)), rng=1, influence=False).bounds
    assert (found.severity, "penalty" in found.advice) == ("note", True)


def test_a_ceiling_is_no_reason_to_drop_the_best_algorithm():
    frame = times().assign(score=lambda t: np.minimum(0.5 + 0.1 * np.log(t["score"]), 1.0))
    frame.loc[(frame["tool"] == "s3") & (frame["seed"] > 0), "score"] = 1.0
    found = diagnose(lt.fit_lmm(FORMULA, runs_of(frame)), rng=1, influence=False).bounds
    assert found.severity == "warning"
    assert "a floor or ceiling hides differences there" in found.advice
    for phrase in ("leave", "drop", "rank"):
        assert phrase not in found.advice


@pytest.mark.parametrize("method", ["rank", "minmax", "normalized_regret"])
def test_scores_that_follow_the_advice_on_scales_have_no_ceiling(method):
    runs = runs_of(times()[lambda t: t["seed"] == 0]).normalize(method)
    found = diagnose(lt.fit_lmm(f"{runs.score} ~ tool", runs), rng=1, influence=False).bounds
    assert found.severity == "skipped"
    assert found.advice.startswith("Such scores have ends by nature.")
