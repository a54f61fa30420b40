"""Where few benchmarks decide the means, the headline promises no level and has the answer by ranks beside it."""

from __future__ import annotations

import numpy as np
import pytest
from study import as_runs, table_of_scores

import lmemtest as lt
from lmemtest.bench.modelling import recommend
from lmemtest.bench.robustness import variants

TOOLS = ("best", "second", "third", "fourth")


def runs_of(scale: np.ndarray, *, losses: int = 0, step: float = 0.0) -> lt.Runs:
    """One score per tool and task; `best` is ahead by one sd on every task, in the unit of the task.

    Tasks are harder from one to the next by a step.
    """
    rng = np.random.default_rng(5)
    y = rng.normal(size=(len(scale), 4))
    y[:, 0] += 1.5
    y[:losses, 3] -= 6.0
    scores = y * scale[:, None] + step * np.arange(len(scale))[:, None]
    names = {"task": [f"t{i}" for i in range(len(scale))], "tool": TOOLS}
    return as_runs(table_of_scores(scores, "task tool", **names), "maximize")


@pytest.fixture(scope="module")
def unlike() -> lt.Analysis:
    return lt.analyze(runs_of(np.where(np.arange(20) < 2, 1000.0, 1.0)))


def test_no_level_is_promised_and_ranks_stand_beside_the_answer(unlike):
    headline = unlike.headline()
    assert unlike.shape.few_decide
    assert "the 2 of 20 benchmarks with the largest deviations hold" in headline
    assert "few benchmarks decide the means, so the chance of false differences is not controlled at 5 %" in headline
    assert "nominally" not in headline
    assert unlike.on_ranks.significant.loc["best", "second"]
    assert not unlike.decisions.significant.to_numpy().any()
    assert "By mean rank, which gives every benchmark equal weight, best is significantly better than" in headline
    assert "No algorithm can be called best by mean score: best has the highest mean score, but it" in headline
    assert "; the decision on 3 of 6 pairs differs from that by mean score. This is about" in headline


def test_the_ranks_are_the_comparison_of_ranks(unlike):
    ranked = lt.analyze(unlike.runs.normalize("rank", name="score_rank"))
    assert ranked.decisions.significant.equals(unlike.on_ranks.significant)
    np.testing.assert_allclose(unlike.agreement.p_value[0], ranked.pairs.to_frame()["p_value"], rtol=1e-9)
    np.testing.assert_allclose(unlike.agreement.p_value[1], unlike.pairs.to_frame()["p_value"], rtol=0)


def test_many_benchmarks_have_random_effects_in_the_model_of_ranks(unlike, monkeypatch):
    formulas, fitted = [], recommend.fitted_quietly

    def fitting(formula, *rest):
        formulas.append(formula.text)
        return fitted(formula, *rest)

    monkeypatch.setattr(recommend, "fitted_quietly", fitting)
    monkeypatch.setattr(variants, "MOST_FIXED", 19)
    many = lt.analyze(runs_of(np.where(np.arange(20) < 2, 1000.0, 1.0), step=1000.0))
    assert formulas[1] == "score_rank ~ tool + (1 | task)"
    assert many.on_ranks.significant.equals(unlike.on_ranks.significant)
    np.testing.assert_allclose(many.agreement.p_value[0], unlike.agreement.p_value[0], rtol=1e-6)


def test_benchmarks_alike_have_a_nominal_level_with_its_condition_and_one_answer():
    alike = lt.analyze(runs_of(np.ones(20)))
    assert (alike.agreement, alike.on_ranks) == (None, None)
    assert "is nominally 5 %, if advantages are about normal" in alike.headline()
    assert "Mind the s" not in alike.headline()


def test_skew_that_the_sample_shows_is_named():
    skewed = lt.analyze(runs_of(np.ones(20), losses=2))
    assert skewed.shape.skewed == "fourth"
    text = "the advantages of fourth over the benchmarks are more skewed than normal ones (skewness -"
    assert (text in skewed.headline()) != skewed.shape.few_decide
