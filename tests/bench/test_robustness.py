"""Decisions by ranks and by means: what each tests, where they differ, and who said what."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from pytest import approx
from study import as_runs, make_runs

import lmemtest as lt
from lmemtest.bench.data.normalise import METHODS
from lmemtest.bench.modelling import recommend
from lmemtest.bench.robustness.variants import hypothesis_on, raw_runs, what_differs


def failing(tasks=40, **roles):
    """A is a little better than B on four benchmarks of five, and fails badly on the fifth; C is like B, but better."""
    rng = np.random.default_rng(2)
    A = np.where(np.arange(tasks) % 5 == 0, 3.0, -0.1)
    Y = rng.normal(size=(tasks, 1)) + np.column_stack([A, np.zeros(tasks), -0.05 * np.ones(tasks)])
    Y = Y + 0.001 * rng.normal(size=Y.shape)
    frame = pd.DataFrame({"task": np.repeat(np.arange(tasks), 3).astype(str), "tool": list("ABC") * tasks})
    return as_runs(frame.assign(loss=Y.ravel()), **roles)


def test_opposite_decisions_are_found_and_told():
    found = lt.robustness(failing(), of="score")
    pairs = list(zip(found.pairs["left"], found.pairs["right"], strict=True))
    assert [pair for pair, odd in zip(pairs, found.opposite, strict=True) if odd] == [("A", "B"), ("A", "C")]
    first, counts, best, *rest = found.sentences()
    assert first == (
        "1 of 3 pairs of algorithms gets the same decision by mean loss_rank and by mean loss; 2 are decided in "
        "opposite directions."
    )
    ranks, raw = map(found.significant, ("loss_rank", "loss"))
    assert counts == f"Significant differences: {ranks} by mean loss_rank and {raw} by mean loss."
    assert (ranks, raw) == tuple((found.p_value < 0.05).sum(axis=1))
    assert best == "The best mean differs: A by mean loss_rank; C by mean loss."
    assert rest[0] == "A is better than B by mean loss_rank (p < 0.001); B is better than A by mean loss (p = 0.012)."
    assert rest[1] == "A is better than C by mean loss_rank (p = 0.041); C is better than A by mean loss (p = 0.007)."
    assert rest[0] in found.summary()


def test_each_side_is_the_comparison_of_that_score():
    runs = failing()
    frame = lt.robustness(runs, of="score").to_frame("decisions")
    for table, name in ((runs.normalize("rank"), "loss_rank"), (runs, "loss")):
        pairs = lt.fit_lmm(lt.recommend(table).formula, table).emmeans("tool").pairs().to_frame()
        own = frame[frame["variant"] == name]
        assert own["advantage"].to_numpy() == approx(-pairs["estimate"].to_numpy(), rel=1e-9)
        np.testing.assert_array_equal(own["p_value"], pairs["p_value"])


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_a_regret_is_decided_as_the_score_whatever_the_direction(direction):
    runs = failing(direction=direction)
    found = lt.robustness(runs.normalize("regret"), of="score")
    assert found.advantage[0] == approx(found.advantage[1], rel=1e-6)
    assert found.alike.all()
    assert found.sentences()[0] == (
        "All 3 pairs of algorithms get the same decision by mean loss_regret and by mean loss."
    )
    assert found.described == ()
    assert found.notes == ()


def test_ways_are_named_once_and_apart_from_the_columns_of_the_table():
    with pytest.raises(lt.errors.ArgumentError, match="must name each method of normalize once, got rank, rank"):
        lt.robustness(failing(), variants=("rank", "rank"))
    frame = failing().to_frame().rename(columns={"loss": "left"})
    found = lt.robustness(lt.Runs(frame, **{**failing().roles(), "score": "left"}))
    assert list(found.table) == ["left", "right", "left_rank", "by mean left", "alike"]


def test_runs_remember_how_they_were_normalised_until_they_get_another_score():
    runs = failing(direction="maximize")
    assert runs.scale is None
    assert raw_runs(runs) is None
    ranks = runs.normalize("rank").filter(tool=["A", "B"]).drop_missing()
    assert ranks.scale == ("rank", "loss", "maximize", ("task",), "", "", None, None, None)
    assert ranks.direction == "minimize"
    raw = raw_runs(ranks)
    assert (raw.score, raw.direction, raw.algorithms, raw.scale) == ("loss", "maximize", ("A", "B"), None)
    assert "scale" not in ranks.roles()


def test_other_normalisations_can_be_asked_for():
    ranks = failing().normalize("rank")
    assert list(lt.robustness(ranks).phrases) == ["loss_rank", "loss"]
    assert list(lt.robustness(ranks, variants="zscore").phrases) == ["loss_zscore", "loss"]
    taken = failing().normalize("rank")
    again = lt.Runs(taken.frame, **{**taken.roles(), "score": "loss"})
    assert list(lt.robustness(again).phrases) == ["loss_rank_", "loss"]  # nothing is overwritten


@pytest.mark.parametrize("method", METHODS)
def test_every_scale_says_what_it_tests(method):
    runs = failing()
    scaled = (runs if method != "log" else exp(runs)).normalize(method)
    assert hypothesis_on(scaled.scale).startswith(("mean ", "geometric "))
    assert ("task" in hypothesis_on(scaled.scale)) == (method != "log")
    assert bool(what_differs(method)) == (method != "regret")


def exp(runs):
    frame = runs.to_frame()
    return lt.Runs(frame.assign(loss=np.exp(frame["loss"])), **runs.roles())


def test_a_report_on_ranks_says_which_hypothesis_it_tests_and_where_means_decide_otherwise():
    analysis = lt.analyze(failing().normalize("rank"))
    mind = "Another score: this is about mean loss_rank. 1 of 3 pairs of algorithms gets the same decision"
    assert mind in analysis.headline()
    text = " ".join(analysis.to_text().split())
    assert "The null hypothesis of a pair is that mean ranks are equal, so that the runs of either algorithm" in text
    assert "What is tested. The hypothesis is that mean ranks are equal" in text
    assert "A is better than B by mean loss_rank (p < 0.001); B is better than A by mean loss" in text
    pd.testing.assert_frame_equal(analysis.agreement.to_frame(), lt.robustness(failing()).to_frame())
    frame = failing().to_frame()
    numbered = lt.Runs(frame.assign(tool=frame["tool"].map({"A": 1, "B": 2, "C": 10})), **failing().roles())
    np.testing.assert_array_equal(lt.robustness(numbered).codes, analysis.agreement.codes)
    raw = lt.analyze(failing())  # scores of different algorithms lie 36 times as far apart on one task as on another
    assert "By mean rank, which gives every benchmark equal weight, A is significantly better than C" in raw.headline()
    assert raw.agreement.codes.shape == (2, 3)
    for words in ("What is tested.", "The null hypothesis of a pair"):
        assert words not in " ".join(raw.to_text().split())


def test_ranks_without_their_scores_are_ranks_all_the_same():
    ranks = failing().normalize("rank").to_frame().drop(columns="loss")
    analysis = lt.analyze(as_runs(ranks, score="loss_rank"))
    assert analysis.agreement is None
    assert "The null hypothesis of a pair is that mean ranks are equal." in " ".join(analysis.to_text().split())


def test_a_model_of_ones_own_is_compared_with_the_same_of_the_raw_score():
    runs = failing().normalize("minmax")
    analysis = lt.analyze(runs, formula="loss_minmax ~ tool + task")
    raw = lt.fit_lmm("loss ~ tool + task", failing()).emmeans("tool").pairs().to_frame()
    np.testing.assert_allclose(analysis.agreement.p_value[1], raw["p_value"], rtol=1e-9)


def test_ranks_on_many_benchmarks_have_the_model_of_the_raw_score(monkeypatch):
    """A fixed effect of each of thousands of benchmarks is cubic; who is better gets the same decision."""
    rng = np.random.default_rng(4)
    a, b = (codes.ravel() for codes in np.indices((3, 30)))
    table = {
        "tool": a.astype(str),
        "task": b.astype(str),
        "loss": rng.normal(size=90) + 0.8 * a + rng.normal(size=30)[b],
    }
    runs = lt.Runs(table, score="loss", direction="minimize", algorithm="tool", benchmark="task")
    fixed = lt.robustness(runs)
    monkeypatch.setattr("lmemtest.bench.robustness.variants.MOST_FIXED", 29)
    formulas = []
    fit = recommend.fitted_quietly
    monkeypatch.setattr(recommend, "fitted_quietly", lambda by, *rows: formulas.append(by.text) or fit(by, *rows))
    found = lt.robustness(runs)
    assert formulas == ["loss_rank ~ tool + (1 | task)", "loss ~ tool + (1 | task)"]
    assert (found.codes == fixed.codes).all()
    assert found.advantage == pytest.approx(fixed.advantage)


def test_tests_and_what_leaves_the_study_are_asked_by_the_same_door():
    runs = failing(tasks=6)
    of_tests, ranked = lt.robustness(runs, of="test", rng=1), lt.rank(runs, "all", rng=1)
    pd.testing.assert_frame_equal(of_tests.to_frame(), ranked.to_frame())
    assert of_tests.sentences() == ranked.sentences()
    assert of_tests.alike.tolist() == of_tests.to_frame()["alike"].tolist()
    assert len(of_tests.changed()) == (~of_tests.alike).sum()
    without, stable = lt.robustness(runs, of="benchmarks", progress=False), lt.rank(runs).stability(progress=False)
    assert (without.sentences(), without.unit) == (stable.sentences(), "benchmark")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"of": "seeds"}, "of must be 'score' or 'failures' or 'population' or 'test' or 'benchmarks' or 'algorithms'"),
        ({"reference": "A"}, "reference is for of='failures' and of='algorithms', got of='score'. Leave it out."),
        ({"of": "test", "variants": "t"}, "variants is for of='score', of='failures' and of='algorithms', got"),
    ],
)  # fmt: skip
def test_options_belong_to_what_is_varied(options, words):
    with pytest.raises(lt.errors.ArgumentError, match=f"^{re.escape(words)}"):
        lt.robustness(failing(), **options)


def test_a_seed_changes_nothing_where_nothing_is_random():
    runs = make_runs(3, 6, 3)
    for of in ("score", "benchmarks"):
        pd.testing.assert_frame_equal(lt.robustness(runs, of, rng=1).to_frame(), lt.robustness(runs, of).to_frame())
