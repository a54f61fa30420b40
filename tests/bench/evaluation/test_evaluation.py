"""Evaluations: closed forms of both questions, what repetition changes, and what is refused."""

from __future__ import annotations

import functools
import itertools
import math
import pickle
import tracemalloc

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import linalg, stats

import lmemtest as lt
from lmemtest.bench.evaluation.answers import answered, read_answers
from lmemtest.bench.evaluation.questions import _borrowed, _covariance, _least, on_these_tasks
from lmemtest.bench.power.draw import operating
from lmemtest.errors import ArgumentError, DataError, DesignError

ROLES = {"model": "model", "task": "task", "item": "item", "score": "right"}


def answers(k: int = 2, sizes: tuple[int, ...] = (12, 9, 15, 10), spread: float = 0.2, seed: int = 3) -> pd.DataFrame:
    """0/1 answers of models whose advantages differ between tasks."""
    rng = np.random.default_rng(seed)
    rows = []
    for task, size in enumerate(sizes):
        easy, lead = rng.uniform(0.0, 0.6, size) + 0.3 * (task % 2), rng.normal(0.15, spread, k)
        for model in range(k):
            right = rng.random(size) < np.clip(easy + model * lead[model], 0.05, 0.95)
            rows += [("ABCDEF"[model], f"t{task}", item, int(y)) for item, y in enumerate(right)]
    return pd.DataFrame(rows, columns=list(ROLES.values()))


@functools.cache
def evaluated() -> lt.bench.evaluation.evaluation_result.Evaluation:  # type: ignore[name-defined]
    return lt.evaluate(answers(3), adjust="none", **ROLES)


def test_on_one_task_two_models_are_compared_by_the_paired_t_test():
    table = answers(sizes=(30,))
    row = lt.evaluate(table, **ROLES).to_frame().iloc[0]
    y = table.pivot(index="item", columns="model", values="right")
    want = stats.ttest_rel(y["A"], y["B"])
    assert row["estimate_these"] == pytest.approx((y["A"] - y["B"]).mean())
    assert (row["df_these"], row["p_value_these"]) == pytest.approx((29.0, want.pvalue))
    assert row["n_differ"] == (y["A"] != y["B"]).sum()
    ends = want.confidence_interval()
    assert (row["ci_low_these"], row["ci_high_these"]) == pytest.approx((ends.low, ends.high))


def of_tasks(own: np.ndarray, n: np.ndarray, df: np.ndarray) -> tuple[float, float]:
    """Standard error of the mean over tasks, each of which has `own` variance of the mean, and its degrees of freedom.

    The variance between items of a task is drawn towards that of all, with two prior degrees of freedom.
    """
    share = df / (df + 2.0)
    of_all = (share * own * n).sum() / share.sum()
    variance = ((share * own * n + (1.0 - share) * of_all) / n).sum()
    weight = share / n + share / share.sum() * ((1.0 - share) / n).sum()  # of own * n in that sum
    return np.sqrt(variance) / len(n), variance**2 / ((weight * own * n) ** 2 / df).sum()


@pytest.mark.parametrize("sizes", [(6, 9, 20, 2), (8, 8, 8), (100, 60, 2, 3)])
def test_over_these_tasks_variances_of_mean_differences_add_up(sizes):
    table = answers(3, sizes)
    d = table.pivot(index=["task", "item"], columns="model", values="right").eval("A - C").groupby("task")
    own, n = (d.var() / d.size()).to_numpy(), d.size().to_numpy(dtype=float)
    row = lt.evaluate(table, **ROLES).to_frame().query("left == 'A' and right == 'C'").iloc[0]
    assert row["estimate_these"] == pytest.approx(d.mean().mean())
    assert (row["se_these"], row["df_these"]) == pytest.approx(of_tasks(own, n, n - 1.0))
    alone = np.sqrt(own.sum()) / len(n), own.sum() ** 2 / (own**2 / (n - 1.0)).sum()
    assert (alone == pytest.approx(of_tasks(own, n, n - 1.0))) == (sizes == (8, 8, 8))


def test_models_with_other_items_are_compared_by_two_samples():
    table = answers(sizes=(30,))
    table["item"] = table["item"] + 100 * (table["model"] == "B")
    found = lt.evaluate(table, **ROLES)
    a, b = (table.loc[table["model"] == name, "right"] for name in "AB")
    row = found.to_frame().iloc[0]
    assert row["se_these"] == pytest.approx(np.sqrt(a.var() / 30 + b.var() / 30))
    assert row["df_these"] == 29.0  # that of the smaller sample: not more than Welch's
    assert "No item was answered by two models" in found.notes[0]
    three = answers(3, sizes=(12, 12)).assign(item=lambda t: t["item"] + 100 * (t["model"] == "B"))
    found = lt.evaluate(three, **ROLES)
    assert found.notes[0].startswith("B shares no item with another model, and is compared by means, not item by item.")
    assert found.pairs["n_differ"].isna().tolist() == [True, False, True]


def test_for_tasks_like_these_balanced_answers_give_the_paired_t_test_over_tasks():
    table = answers(sizes=(20,) * 6, spread=0.25, seed=2)
    found = lt.evaluate(table, adjust="tukey", vcov="model", **ROLES)
    means = table.groupby(["task", "model"])["right"].mean().unstack()
    want = stats.ttest_rel(means["A"], means["B"])
    row = found.to_frame().iloc[0]
    assert (found.sources["sd"] > 0.0).all()
    assert (row["df_like"], row["p_value_like"]) == pytest.approx((5.0, want.pvalue), rel=1e-5)
    assert row["estimate_like"] == pytest.approx(row["estimate_these"])
    assert str(found.fit.formula) == "score ~ model + (1 | task) + (1 | task:model) + (1 | task:item)"


def suites(n: int = 6, each: int = 3, seed: int = 30) -> pd.DataFrame:
    """Answers of two models to tasks of suites, of which each has a favourite."""
    rng = np.random.default_rng(seed)
    rows = []
    for suite in range(n):
        lead = rng.normal(0.1, 0.25)
        for task in range(each):
            easy, own = rng.uniform(0.2, 0.7, 15), lead + rng.normal(0.0, 0.15)
            for model in range(2):
                right = rng.random(15) < np.clip(easy + model * own, 0.02, 0.98)
                rows += [("AB"[model], f"s{suite}", f"s{suite}-{task}", item, int(y)) for item, y in enumerate(right)]
    return pd.DataFrame(rows, columns=["model", "suite", "task", "item", "right"])


def test_for_suites_like_these_balanced_answers_give_the_paired_t_test_over_suites():
    table = suites()
    found, plain = (
        lt.evaluate(table, adjust="tukey", vcov="model", family=family, **ROLES) for family in ("suite", None)
    )
    means = table.groupby(["suite", "model"])["right"].mean().unstack()
    want = stats.ttest_rel(means["A"], means["B"])
    row = found.to_frame().iloc[0]
    assert (found.sources["sd"] > 0.0).all()
    assert (row["df_like"], row["p_value_like"]) == pytest.approx((5.0, want.pvalue), rel=1e-4)
    these = [name for name in found.to_frame() if name.endswith("_these")]
    pd.testing.assert_frame_equal(found.to_frame()[these], plain.to_frame()[these])
    assert str(found.fit.formula).startswith("score ~ model + (1 | family) + (1 | family:model) + (1 | task)")
    assert found.sources["source"].tolist()[:2] == ["family", "family:model"]
    assert "For tasks of suites like these" in found.sentences()[1]
    assert any("it is about tasks of new suites" in note for note in found.notes)
    assert dict(found.design) == {"family": 6, "task": 3, "item": 15}
    planned = found.plan(budget=1000.0, costs={"family": 20.0, "item": 1.0})
    assert planned.names == ("family", "task", "item")
    assert planned.standard_error(found.design) == pytest.approx(row["se_like"], rel=1e-4)
    assert found.plan(question="these tasks", target=0.05).best["task"] == 18


def test_families_that_are_no_sample_change_no_number_and_are_spoken_of():
    for table, said in (
        (suites(n=3), "There are too few suites to be a sample (3 suites; 5 or more are taken for one)"),
        (suites(each=1), "Each suite has one task"),
    ):
        found, plain = (lt.evaluate(table, family=family, **ROLES) for family in ("suite", None))
        pd.testing.assert_frame_equal(found.to_frame(), plain.to_frame())
        assert any(note.startswith(said) for note in found.notes)
    crossed = suites().assign(task=lambda t: t["task"].str[-1])
    with pytest.raises(DataError, match="are in several suites"):
        lt.evaluate(crossed, family="suite", **ROLES)
    with pytest.raises(ArgumentError, match="which groups tasks, but no column of tasks is named"):
        lt.evaluate(suites(), family="suite", model="model", item="item", score="right")


def test_a_difference_of_these_tasks_that_says_nothing_of_others_is_named():
    table = pd.DataFrame(
        [(m, f"t{t}", i, int(i % 5 > (1 if m == "A" else 3 * (t > 0))))
         for m in "AB" for t in range(4) for i in range(50)],
        columns=list(ROLES.values()),
    )  # fmt: skip
    found = lt.evaluate(table, **ROLES)
    assert found.to_frame()[["differ_these", "differ_like"]].iloc[0].tolist() == [True, False]
    said = found.sentences()
    assert "A difference is shown on these tasks but not for tasks like these: A and B." in said
    assert said[0].startswith("On these 4 tasks A has the highest accuracy, 0.600 (95 % interval ")
    assert not any(word in " ".join(said) for word in ("algorithm", "benchmark", "seed", "budget", "run of"))


def test_what_holds_for_both_populations_alike_is_said_once():
    table = pd.DataFrame(
        [(m, f"t{t}", i, int(i % 5 > {"A": 0, "B": 2 + (t + i) % 2, "C": 2 + (t + i + 1) % 2}[m]))
         for m in "ABC" for t in range(6) for i in range(50)],
        columns=list(ROLES.values()),
    )  # fmt: skip
    found = lt.evaluate(table, **ROLES)
    first, second, *_ = found.sentences()
    row = found.models.set_index("model").loc["A"]
    ends = f"{row['ci_low_like']:.3f} to {row['ci_high_like']:.3f}"
    assert found.pairs.query("left == 'A'")[["differ_these", "differ_like"]].to_numpy().all()
    assert first.endswith("; it is significantly better than both others.")
    assert second == f"For tasks like these the same holds: 0.800 (95 % interval {ends})."


def test_a_model_that_solved_everything_has_wilsons_interval_of_its_items():
    table = answers(3, sizes=(20, 20))
    table.loc[table["model"] == "B", "right"] = 1
    row = lt.evaluate(table, **ROLES).models.set_index("model").loc["B"]
    z2 = stats.t.ppf(0.975, 38) ** 2
    assert (row["ci_low_these"], row["ci_high_these"]) == pytest.approx((40 / (40 + z2), 1.0))
    assert row["ci_low_like"] < row["ci_low_these"]


def test_accuracies_of_one_task_have_wilsons_interval():
    table = answers(sizes=(30,))
    row = lt.evaluate(table, **ROLES).models.set_index("model").loc["A"]
    p = row["accuracy_these"]
    t2 = stats.t.ppf(0.975, 29) ** 2 / 30.0
    ends = np.roots([1 + t2, -(2 * p + t2), p * p])
    assert sorted(ends) == pytest.approx([row["ci_low_these"], row["ci_high_these"]])


def test_noise_of_identical_runs_is_that_of_their_epochs():
    tries = {("A", 0): (0, 1), ("A", 1): (1, 1), ("A", 2): (0, 0), ("B", 0): (1, 0), ("B", 1): (0, 1), ("B", 2): (1, 1)}
    rows = [(m, "t", i, e, y) for (m, i), ys in tries.items() for e, y in enumerate(ys)]
    table = pd.DataFrame(rows, columns=["model", "task", "item", "epoch", "right"])
    found = lt.evaluate(table, epoch="epoch", **ROLES)
    noise = found.noise.set_index("model")
    # an item with answers 0 and 1 has the variance 1/2; accuracy is the mean over three items
    assert noise["sd_run"].tolist() == pytest.approx([np.sqrt(0.5) / 3, 1.0 / 3])
    assert noise.loc["B", "sd_difference"] == pytest.approx(np.sqrt(2.0) / 3)
    assert noise.loc["B", "sd_here"] == pytest.approx(1.0 / 3)
    assert noise.loc["B", "largest_usual"] == pytest.approx(1.959964 * np.sqrt(2.0) / 3)
    said = [sentence for sentence in found.sentences() if sentence.startswith("Two identical runs")]
    assert said == [
        "Two identical runs of one model (one epoch each) differ in accuracy with a standard deviation of 0.471 at "
        "most (B); 95 % of such differences are below 0.924."
    ]


def test_the_smallest_difference_is_found_with_the_power_that_is_said():
    table = evaluated().detectable
    assert table["question"].tolist() == ["these tasks", "tasks like these"]
    for row in table.to_dict("records"):
        power, *_ = operating(row["smallest"], row["se"], row["df"], row["critical"])
        assert power == pytest.approx(0.8)


def test_plans_have_the_error_of_this_evaluation_and_speak_of_models():
    table = answers(3, sizes=(20,) * 6, spread=0.25, seed=5)
    found = lt.evaluate(table, adjust="tukey", vcov="model", **ROLES)
    current = found.plan().to_frame().set_index("allocation").loc["current"]
    assert current["standard_error"] == pytest.approx(found.to_frame()["se_like"].iloc[0], rel=1e-5)
    assert found.components().of_difference(20) / 6 == pytest.approx(current["standard_error"] ** 2, rel=1e-5)
    here = found.plan(question="these tasks", effect=0.1)
    assert here.best["task"] == 6
    assert "algorithm" not in here.summary()
    assert found.plan(effect=0.3).to_frame()["standard_error"].iloc[0] <= found.plan(effect=0.3).target


def test_judges_are_averaged_or_a_sample():
    base = answers(3, sizes=(10, 12, 11))
    rng = np.random.default_rng(1)
    five = pd.concat(
        [base.assign(judge=f"j{j}", right=base["right"] ^ (rng.random(len(base)) < 0.1)) for j in range(5)]
    )
    few = five[five["judge"] < "j2"]
    found = lt.evaluate(few, judge="judge", **ROLES)
    pair = few.pivot_table(index=["model", "task", "item"], columns="judge", values="right")
    assert found.disagreement == pytest.approx((pair["j0"] != pair["j1"]).mean())
    mean = few.groupby(["model", "task"])["right"].mean().groupby("model").mean()
    assert found.models.set_index("model")["accuracy_these"].sort_index().tolist() == pytest.approx(mean.tolist())
    assert "results hold for these judges" in " ".join(found.notes)
    sample = lt.evaluate(five, judge="judge", **ROLES)
    assert "(1 | judge:model)" in sample.fit.formula
    averaged = lt.evaluate(five.groupby(["model", "task", "item"], as_index=False)["right"].mean(), **ROLES)
    assert (sample.to_frame()["se_these"] > averaged.to_frame()["se_these"]).all()
    with pytest.raises(DesignError, match="Judge j1 has scored answers of A alone, so differences between models"):
        lt.evaluate(few[(few["judge"] == "j0") | (few["model"] == "A")], judge="judge", **ROLES)
    with pytest.raises(DesignError, match="Judge j1 has not scored 1 of 99 pairs of model and item that others have"):
        lt.evaluate(few.iloc[:-1], judge="judge", **ROLES)


def test_wide_tables_and_true_false_scores_give_the_same():
    table = answers(3)
    wide = table.pivot(index=["task", "item"], columns="model", values="right").reset_index()
    found = lt.evaluate(wide, model=["A", "B", "C"], task="task", item="item", adjust="none")
    shuffled = table.assign(right=table["right"] == 1).sample(frac=1.0, random_state=1)
    for other in (found, lt.evaluate(shuffled, adjust="none", **ROLES)):
        pd.testing.assert_frame_equal(other.to_frame(), evaluated().to_frame(), rtol=1e-6)


def test_two_tasks_have_the_degrees_of_freedom_of_two_tasks():
    found = lt.evaluate(answers(2, sizes=(40, 40), spread=0.0, seed=2), **ROLES)
    assert found.sources.set_index("source").loc["task:model", "sd"] == 0.0
    assert found.pairs["df_like"].tolist() == [1.0]
    assert lt.evaluate(answers(3, sizes=(40, 40), spread=0.0, seed=5), **ROLES).pairs["df_like"].max() <= 2.0


def test_one_item_of_each_task_is_no_sample_of_items():
    table = answers(3, sizes=(1,) * 12)
    found = lt.evaluate(table, **ROLES)
    assert found.to_frame()["p_value_these"].isna().all()
    best = table.groupby("model")["right"].mean().sort_values(ascending=False)
    assert found.models["accuracy_these"].tolist() == pytest.approx(best.tolist())
    assert found.sentences()[0].endswith("; nothing is tested.")
    said = " ".join(found.notes)
    assert "Every task has one item, so there is no test on these tasks" in said
    assert "advantages between tasks is estimated as zero" not in said  # no part of this model


def test_items_that_share_their_names_alone_are_asked_about():
    table = answers(2, sizes=(40, 40), seed=2)
    asked = "do items of one name hold the same question for every model?"
    assert asked not in " ".join(lt.evaluate(table, **ROLES).notes)
    hard = table.sort_values("right")  # numbered by model: the easy items of one are the hard items of the other
    number = hard.groupby(["model", "task"]).cumcount()
    other = hard.assign(item=np.where(hard["model"] == "A", number, 39 - number))
    assert asked in " ".join(lt.evaluate(other, **ROLES).notes)


def test_differences_beyond_one_are_neither_shown_nor_promised():
    found = lt.evaluate(answers(2, sizes=(2, 2)), **ROLES)
    assert found.pairs[["ci_low_these", "ci_high_these"]].abs().max(axis=None) <= 1.0
    assert "finds no difference on these tasks and for tasks like these, not even one of 1" in found.sentences()[-1]


def test_graded_answers_have_mean_scores_and_one_task_is_spoken_of_as_one():
    table = answers(2, sizes=(20,))
    found = lt.evaluate(table.assign(right=0.2 + 0.5 * table["right"]), **ROLES)
    text = found.summary()
    assert "accuracy" not in text
    assert "mean score on this task; items are the sample" in text
    assert "these tasks" not in text


def test_of_many_models_a_summary_shows_accuracies_and_all_pairs_are_at_hand():
    rng = np.random.default_rng(5)
    right = rng.random((11, 2, 12)) < np.linspace(0.3, 0.9, 11)[:, None, None]
    model, task, item = (index.ravel() for index in np.indices(right.shape))
    table = pd.DataFrame({"model": model, "task": task, "item": item, "right": right.ravel()})
    found = lt.evaluate(table, adjust="none", **ROLES)
    assert len(found.to_table().frame) == 11
    assert len(found.to_frame()) == 55
    assert "The pairs are in to_frame(); here are the models" in found.summary()


@pytest.mark.level(2)
def test_a_page_answers_both_questions_and_shows_the_models(tmp_path):
    text = evaluated().save(tmp_path / "evaluation.html").read_text(encoding="utf-8")
    for title in ("On these tasks", "For tasks like these", "Sources of variation", "What to know"):
        assert f">{title}</h2>" in text
    assert text.count("<figure") == 1
    best = evaluated().models.iloc[0]
    assert f"{best['ci_low_like']:.3f} to {best['ci_high_like']:.3f}" in text
    assert "_like" not in text


def test_blocks_of_very_many_items_leave_the_answer_as_it_is(monkeypatch):
    table = answers(3, sizes=(60,) * 5, spread=0.25, seed=2)
    columns = ["estimate_like", "se_like", "df_like", "p_value_like"]
    want = lt.evaluate(table, **ROLES)
    monkeypatch.setattr("lmemtest.bench.evaluation.questions._MANY", 300)
    found = lt.evaluate(table, **ROLES)
    assert "of means over blocks of 3 items. Moderated" in found.facts[1]
    pd.testing.assert_frame_equal(found.pairs[columns], want.pairs[columns], rtol=1e-6)  # in balanced answers
    assert found.sources["sd"].tolist()[:2] == pytest.approx(want.sources["sd"].tolist()[:2], rel=0.1)
    assert found.sources["sd"].tolist()[3] == pytest.approx(want.sources["sd"].tolist()[3], rel=0.2)
    kept = np.random.default_rng(1).random(len(table)) < 0.95
    accuracy = lt.evaluate(table[kept], **ROLES).models.set_index("model")["accuracy_like"].to_dict()
    assert accuracy == pytest.approx(
        table[kept].groupby(["model", "task"])["right"].mean().groupby("model").mean().to_dict()
    )
    few = table[(table["model"] != "A") | (table["item"] < 30)]
    assert "(1 | task:item). " in lt.evaluate(few, **ROLES).facts[1]


def test_one_task_refuses_the_second_question_in_words():
    found = lt.evaluate(answers(sizes=(20,)), **ROLES)
    assert found.like is None
    assert "One task says nothing about tasks like it" in " ".join(found.sentences())
    with pytest.raises(DesignError, match=r"One task says nothing about tasks like it.*Add tasks"):
        found.decisions("tasks like these")


def test_a_model_that_lacks_a_task_has_no_number_for_these_tasks():
    table = answers(3)
    found = lt.evaluate(table[(table["model"] != "B") | (table["task"] != "t1")], **ROLES)
    rows = found.to_frame().set_index(["left", "right"])
    assert rows["p_value_these"].isna().tolist() == [True, False, True]
    assert rows["p_value_like"].notna().all()
    assert found.notes[0].startswith("B has no answers on some task, so there is no mean over these tasks to compare.")


def test_models_that_lack_a_task_are_named_outside_of_the_ranking():
    table = pd.concat([answers(4).assign(n=0), answers(4).query("model == 'A'").assign(model="Z")])
    table = table[(table["model"] != "Z") | (table["task"] != "t1")]
    found, whole = lt.evaluate(table, **ROLES), lt.evaluate(table[table["model"] != "Z"], **ROLES)
    said = found.sentences()
    assert "Not compared on these tasks: Z (no answers on t1)." in said
    here = [sentence for sentence in said if sentence.startswith(("On these", "A difference is shown on these"))]
    assert not any("Z" in sentence.replace("Not compared", "") for sentence in here)
    assert all("without a test" not in sentence for sentence in here)
    models = found.to_frame("models").set_index("model")
    assert models.loc["Z", "letters_these"] == ""
    assert models.index[-1] == "Z"
    others = whole.to_frame("models").set_index("model")["letters_these"]
    assert models["letters_these"].drop("Z").map(len).to_dict() == others.map(len).to_dict()


def test_scores_at_the_ends_of_a_scale_are_right_and_wrong():
    table = answers(3).assign(right=lambda t: 1 + 9 * t["right"])
    by_hand = lt.evaluate(answers(3), **ROLES)
    found = lt.evaluate(table, **ROLES, min_score=1, max_score=10)
    pd.testing.assert_frame_equal(found.to_frame(), by_hand.to_frame())
    assert found.notes[0] == "All scores are 1 or 10, which count as 0 and 1: accuracies are shares of 10."
    for name, value, message in (
        ("max_score", 0.0, "max_score must be above min_score, got 0 and 0."),
        ("min_score", math.nan, "min_score must be a finite number, got nan."),
        ("max_score", True, "max_score must be a finite number, got True."),
    ):
        with pytest.raises(ArgumentError, match=message):
            lt.evaluate(table, **ROLES, **{name: value})
    with pytest.raises(DataError, match=r"from 1 to 9 \(min_score and max_score\), got 10\."):
        lt.evaluate(table, **ROLES, min_score=1, max_score=9)


def test_grades_are_shown_as_grades():
    table = answers(3).assign(right=lambda t: 0.25 * (t["item"] % 3) + 0.5 * t["right"])
    of_shares = lt.evaluate(table, **ROLES)
    found = lt.evaluate(table.assign(right=1 + 4 * table["right"]), **ROLES, min_score=1, max_score=5)
    assert found.ends == (1.0, 5.0)
    assert "mean score (from 1 to 5) over these tasks" in found.samples["these"]
    assert not any("count as" in note for note in found.notes)
    for part, level, spread in (("pairs", 0.0, ("estimate", "se", "ci_low", "ci_high")),
                                ("models", 1.0, ("accuracy", "ci_low", "ci_high")),
                                ("sources", 0.0, ("sd",)), ("detectable", 0.0, ("se", "smallest"))):  # fmt: skip
        by_hand, got = of_shares.to_frame(part), found.to_frame(part)
        columns = [name for name in by_hand if name.startswith(spread)]
        pd.testing.assert_frame_equal(got[columns], level + 4.0 * by_hand[columns], rtol=1e-6)
        rest = [name for name in by_hand if name not in columns]
        pd.testing.assert_frame_equal(got[rest], by_hand[rest], rtol=1e-5)
    lead = of_shares.models["accuracy_these"][0]
    assert f"the highest mean score, {1 + 4 * lead:.3f}" in found.sentences()[0]


def test_rows_are_the_items_where_models_have_columns_and_nothing_names_items():
    rng = np.random.default_rng(11)
    wide = pd.DataFrame(
        {"row": "x", "A": rng.integers(2, size=30), "B": rng.integers(2, size=30), "t": ["u", "v"] * 15}
    )
    found = lt.evaluate(wide, model=["A", "B"], task="t")
    by_id = lt.evaluate(wide.assign(id=range(30)), model=["A", "B"], task="t", item="id")
    pd.testing.assert_frame_equal(found.to_frame(), by_id.to_frame())
    assert "No column of items was named: each row is one, answered by all models." in found.notes
    lazy = lt.evaluate(pl.from_pandas(wide).lazy(), model=["A", "B"], task="t")
    pd.testing.assert_frame_equal(lazy.to_frame(), by_id.to_frame())
    by_truth = lt.evaluate(wide.astype({"A": bool, "B": bool}), model=["A", "B"], task="t")
    pd.testing.assert_frame_equal(by_truth.to_frame(), by_id.to_frame())
    with pytest.raises(ArgumentError, match=r"epoch names 't', so a row is no item\. Name the column of the items"):
        lt.evaluate(wide, model=["A", "B"], epoch="t")


def test_without_roles_the_whole_call_is_suggested():
    with pytest.raises(ArgumentError) as error:
        lt.evaluate(answers(3))
    call = str(error.value).partition("By names and structure: ")[2]
    assert call == "lmemtest.evaluate(table, model='model', item='item', task='task', score='right')"


def test_models_with_the_same_answers_have_no_test_on_these_tasks():
    table = answers(3)
    table.loc[table["model"] == "B", "right"] = table.loc[table["model"] == "A", "right"].to_numpy()
    found = lt.evaluate(table, **ROLES)
    assert found.to_frame()["differ_these"].isna().tolist() == [True, False, False]
    assert "A and B: the same score on every item, so there is nothing to test on these tasks." in found.notes


def _changed(**columns):
    return answers().assign(**columns)


@pytest.mark.parametrize(
    ("table", "kind", "message"),
    [
        (_changed(right=lambda t: 100 * t["right"]), DataError, "looks like percentages: .* Divide the column by 100"),
        (_changed(right=lambda t: np.where(t["model"] == "A", 85.0, t["right"])), DataError,
         "46 of 92 are above 1, up to 85, all of A. If shares and percentages are mixed.*divide the percentages"),
        (_changed(right=lambda t: t["right"] - 0.5), DataError, r"from 0 to 1, got -0.5 \(\d+ below 0\)"),
        (_changed(right=lambda t: t["right"].where(t["item"] > 0)), DataError,
         r"no finite score in 8 of 92 rows \(of A and B\)"),
        (_changed(right=lambda t: np.where(t["right"] == 1, "correct", "wrong")), DataError,
         "right' holds words: 'correct', 'wrong'. Write 1 for 'correct' and 0 for 'wrong', for pandas with"),
        (_changed(right=lambda t: np.where(t["right"] == 1, "C", np.where(t["item"] > 5, "I", "P"))), DataError,
         "Write 1 for 'C' and what they are worth for the others"),
        (_changed(right=lambda t: t["item"] % 2), DesignError, "All models have the same score on every item"),
        (_changed(right=lambda t: (t["model"] == "A") ^ (t["task"] == "t1")), DesignError,
         "Each model has one and the same score on all items of a task: these are scores of tasks"),
        (_changed(right=lambda t: (t["model"] == "A") * 1), DesignError,
         r"one and the same score on all its items \(A 1, B 0\)"),
        (pd.concat([answers(), answers()]), DataError, r"92 answers of 92 have several rows, .*epoch=\.\.\. .*judge="),
        (answers(1), DataError, "models are compared, and column 'model' has one: A"),
        (_changed(right=1), DesignError, "All scores are 1, so the models cannot be distinguished"),
        (_changed(task="t")[lambda t: t["item"] == 0].drop_duplicates("model").assign(right=[0, 1]), DesignError,
         "There is one item"),
    ],
)  # fmt: skip
def test_what_cannot_be_evaluated_is_refused(table, kind, message):
    with pytest.raises(kind, match=message):
        lt.evaluate(table, **ROLES)


def test_arguments_are_checked():
    marks = _changed(right=lambda t: np.where(t["right"] == 1, "TRUE", "FALSE"))
    with pytest.raises(DataError, match="Write 1 for 'TRUE' and 0 for 'FALSE'"):
        lt.evaluate(pl.from_pandas(marks).lazy(), **ROLES)
    with pytest.raises(ArgumentError, match="task and item name the same column, 'item'"):
        lt.evaluate(answers(), **{**ROLES, "task": "item"})
    with pytest.raises(ArgumentError, match="score must be left out where each model has a column of scores"):
        lt.evaluate(pd.DataFrame({"i": [1, 2], "A": [0, 1], "B": [1, 1]}), model=["A", "B"], item="i", score="A")
    copies = pd.concat([answers().assign(epoch=1)] * 2)
    with pytest.raises(DataError, match="Rows must be unique"):
        lt.evaluate(copies, epoch="epoch", **ROLES)


@pytest.mark.parametrize("keep", ["first", "last", "mean"])
def test_one_row_of_an_answer_is_kept_as_asked_and_said(keep):
    rows = list(itertools.product(["A", "B"], ["x", "y"], range(15)))
    table = pd.DataFrame(rows, columns=["model", "task", "item"])
    table["score"] = np.random.default_rng(1).integers(2, size=len(table)).astype(float)
    again = table.iloc[[3, 40]].assign(score=lambda d: 1.0 - d["score"])
    both = pd.concat([table, again], ignore_index=True)
    roles = {"model": "model", "task": "task", "item": "item", "score": "score"}
    want = table.copy()
    want.loc[[3, 40], "score"] = {"first": table["score"].iloc[[3, 40]], "last": again["score"], "mean": 0.5}[keep]
    found = lt.evaluate(both, drop_duplicates=keep, **roles)
    pd.testing.assert_frame_equal(found.to_frame(), lt.evaluate(want, **roles).to_frame())
    assert any(note.startswith("2 rows repeated an answer") for note in found.notes)
    with pytest.raises(DataError, match=r"keep one of them, drop_duplicates='last'\.$"):
        lt.evaluate(both, **roles)
    with pytest.raises(ArgumentError, match="drop_duplicates must be 'first' or 'last' or 'mean'"):
        lt.evaluate(both, drop_duplicates="all", **roles)


# ---------------------------------------------------------------------- exactly these items


def repeated(epochs: int = 3) -> pd.DataFrame:
    draws = np.random.default_rng(4)
    chance = draws.uniform(0.2, 0.9, (3, 2, 12))
    right = (draws.random((epochs, *chance.shape)) < chance).astype(int)
    epoch, model, task, item = np.indices(right.shape).reshape(4, -1)
    return pd.DataFrame({"epoch": epoch, "model": np.array([*"ABC"])[model], "task": task, "item": item,
                         "right": right.ravel()})  # fmt: skip


ROLES_OF_RUNS = {"model": "model", "task": "task", "item": "item", "epoch": "epoch", "score": "right"}


def test_on_exactly_these_items_the_variance_is_that_of_the_runs() -> None:
    table = repeated()
    found = lt.evaluate(table, **ROLES_OF_RUNS).pairs.set_index(["left", "right"])
    cells = table.groupby(["model", "task", "item"])["right"].agg(["mean", "var", "size"])
    part = cells["var"] / cells["size"] / (12 * 2) ** 2
    variance, doubt = part.groupby("model").sum(), (part**2 / (cells["size"] - 1)).groupby("model").sum()
    mean = cells["mean"].groupby("model").mean()
    for (left, right), row in found.iterrows():
        se2 = variance[left] + variance[right]
        assert row["estimate_items"] == pytest.approx(mean[left] - mean[right], abs=1e-12)
        assert row["se_items"] ** 2 == pytest.approx(se2, rel=1e-12)
        assert row["df_items"] == pytest.approx(se2**2 / (doubt[left] + doubt[right]), rel=1e-12)


def test_an_evaluation_of_repeated_runs_can_be_stored() -> None:
    found = lt.evaluate(repeated(), **ROLES_OF_RUNS)
    again = pickle.loads(pickle.dumps(found))
    assert again.decisions("these items").levels == found.decisions("these items").levels


def test_single_runs_say_nothing_of_exactly_these_items() -> None:
    table = repeated()
    once = lt.evaluate(table[table["epoch"] == 0].drop(columns="epoch"), **{**ROLES_OF_RUNS, "epoch": None})
    some = lt.evaluate(table.drop(index=table.index[[0]]).query("epoch != 2 or item > 0"), **ROLES_OF_RUNS)
    for found in (once, some):
        assert found.items is None
        assert "estimate_items" not in found.pairs
        with pytest.raises(DesignError, match="two runs of each model on every item"):
            found.decisions("these items")


def test_models_that_always_answer_alike_are_not_tested_over_runs() -> None:
    table = repeated().assign(right=lambda frame: (frame["item"] + (frame["model"] == "A")) % 2)
    found = lt.evaluate(table, **ROLES_OF_RUNS).pairs
    assert found["p_value_items"].isna().all()


# ---------------------------------------------------------------------- clusters


IN_PASSAGES = {**ROLES, "cluster": "passage"}


def passages(sizes: tuple[tuple[int, ...], ...] = ((4,) * 6, (4,) * 8), k: int = 2, seed: int = 1) -> pd.DataFrame:
    """0/1 answers to items of passages of `sizes`, by task, with advantages of models on passages."""
    rng = np.random.default_rng(seed)
    rows = []
    for task, own in enumerate(sizes):
        for passage, size in enumerate(own):
            lead = rng.normal(0.6, 0.25, k)
            for model in range(k):
                for item, y in enumerate(rng.random(size) < np.clip(lead[model], 0.05, 0.95)):
                    rows.append(("ABCD"[model], f"t{task}", f"t{task}p{passage}", f"{passage}.{item}", int(y)))
    return pd.DataFrame(rows, columns=["model", "task", "passage", "item", "right"])


def test_equal_clusters_of_one_task_give_the_paired_t_test_of_their_means():
    table = passages(((5,) * 9,))
    row = lt.evaluate(table, **IN_PASSAGES).to_frame().iloc[0]
    y = table.pivot_table("right", "passage", "model")
    want = stats.ttest_rel(y["A"], y["B"])
    assert row["estimate_these"] == pytest.approx((y["A"] - y["B"]).mean())
    assert (row["df_these"], row["p_value_these"]) == pytest.approx((8.0, want.pvalue))


def test_over_tasks_the_variances_of_their_cluster_means_add_up():
    table = passages(k=3)
    row = lt.evaluate(table, **IN_PASSAGES).to_frame().query("left == 'A' and right == 'C'").iloc[0]
    means = table.pivot_table("right", ["task", "passage"], "model")
    d = (means["A"] - means["C"]).groupby("task")
    v, f = d.var() / d.size(), d.size() - 1
    se, df = of_tasks(v.to_numpy(), 4.0 * d.size().to_numpy(), f.to_numpy())
    assert (row["se_these"], row["df_these"]) == pytest.approx((se, df))


def test_unequal_clusters_have_the_variance_and_degrees_of_freedom_of_cr2():
    table = passages(((2, 9, 5, 1, 6, 3),))
    row = lt.evaluate(table, **IN_PASSAGES).to_frame().iloc[0]
    wide = table.pivot(index=["passage", "item"], columns="model", values="right").reset_index()
    d = (wide["A"] - wide["B"]).to_numpy(dtype=float)
    n, codes = len(d), wide["passage"].astype("category").cat.codes.to_numpy()
    H = np.full((n, n), 1.0 / n)
    e, roots, variance = d - d.mean(), [], 0.0
    for c in np.unique(codes):
        own = np.flatnonzero(codes == c)
        A = np.linalg.inv(linalg.sqrtm(np.eye(len(own)) - H[np.ix_(own, own)]))
        variance += float(np.ones(len(own)) @ A @ e[own]) ** 2 / n**2
        roots.append((np.eye(n) - H)[:, own] @ A @ np.ones(len(own)) / n)
    G = np.array(roots) @ np.array(roots).T  # Satterthwaite, were items independent
    assert row["se_these"] ** 2 == pytest.approx(variance)
    assert row["df_these"] == pytest.approx(np.trace(G) ** 2 / np.trace(G @ G))
    assert row["df_these"] < 5


def test_models_that_answered_other_items_of_the_same_passages_share_their_difficulty():
    table = passages(((6,) * 8,))
    part = table["item"].str[-1].astype(int)
    apart = table[(table["model"] == "A") & (part < 3) | (table["model"] == "B") & (part >= 3)]
    row = lt.evaluate(apart, **IN_PASSAGES).to_frame().iloc[0]
    y = apart.pivot_table("right", "passage", "model")
    assert row["se_these"] == pytest.approx(stats.sem(y["A"] - y["B"]))


def test_the_design_effect_is_that_of_the_variances_and_is_said():
    table = passages(k=3, seed=4)
    found = lt.evaluate(table, **IN_PASSAGES)
    alone = lt.evaluate(table, **{**IN_PASSAGES, "cluster": None})
    ratio = np.median((found.pairs["se_these"] / alone.pairs["se_these"]) ** 2)
    row = found.to_frame("clusters").iloc[0]
    assert (row["cluster"], row["n_clusters"], row["n_items"]) == ("passage", 14, 56)
    assert (row["design_effect"], row["n_effective"]) == pytest.approx((ratio, 56 / ratio))
    said = f"56 items in 14 passages: the variance of a difference on these tasks is {ratio:.2f} times that of"
    assert said in " ".join(found.sentences())
    assert "passages of items are the sample" in found.facts[0]
    pd.testing.assert_series_equal(found.pairs["se_like"], alone.pairs["se_like"])
    assert not len(alone.clusters)
    with pytest.raises(DesignError, match=r"Items come in passages, .* evaluate\(\.\.\., item='passage'\)"):
        found.plan(effect=0.1)


def test_a_model_that_solved_everything_has_wilsons_interval_of_its_clusters():
    table = passages(((5,) * 12,))
    table.loc[table["model"] == "B", "right"] = 1
    row = lt.evaluate(table, **IN_PASSAGES).to_frame("models").set_index("model").loc["B"]
    z2 = stats.t.isf(0.025, 11) ** 2
    assert row["ci_low_these"] == pytest.approx(12 / (12 + z2))


def test_a_task_with_one_cluster_has_no_test_on_these_tasks():
    found = lt.evaluate(passages(((6,), (3, 3, 3))), **IN_PASSAGES)
    assert found.pairs["p_value_these"].isna().all()
    assert "1 task (t0) with one passage of items: nothing says" in " ".join(found.notes)


@pytest.mark.parametrize(
    ("change", "kind", "message"),
    [
        ({"passage": lambda t: t["passage"].str[2:]}, DataError, "must be nested in the task, and 6 passages .p0, p1"),
        ({"passage": lambda t: t["task"]}, DesignError, "'passage', of which each task has one: the passages are the"),
        ({"passage": lambda t: t["task"] + t["item"]}, ArgumentError,
         "each has one item: nothing is clustered, so leave"),
        ({"item": lambda t: t["item"].str[2:]}, DataError, "8 items .such as 0. are in several passages"),
    ],
)  # fmt: skip
def test_what_is_no_cluster_is_refused(change, kind, message):
    with pytest.raises(kind, match=message):
        lt.evaluate(passages().assign(**change), **IN_PASSAGES)


# ---------------------------------------------------------------------- many models


def test_the_fewest_degrees_of_freedom_are_those_of_the_models_in_a_row():
    L = np.array([[1.0, 0.0, -1.0], [0.0, 0.0, 0.0], [0.0, 0.5, 0.0], [1.0, -2.0, 1.0]])
    freedom = np.array([[4.0, 9.0, 7.0], [8.0, 1.0, 2.0]])
    assert _least(L, freedom).tolist() == [[4.0, 2.0], [np.inf, np.inf], [9.0, 1.0], [4.0, 1.0]]


def test_pairs_of_many_models_need_little_more_than_themselves():
    """Satterthwaite's formula for every pair of 60 models with gaps, in memory of a few arrays of pairs."""
    rng = np.random.default_rng(3)
    m, t, i = (codes.ravel() for codes in np.indices((60, 8, 12)))
    table = pd.DataFrame({"model": m, "task": t, "item": i, "score": rng.random(len(m))})[rng.random(len(m)) < 0.9]
    roles = {"model": "model", "item": "item", "task": "task", "score": "score", "epoch": None, "judge": None}
    blocks, judges, cluster, _ = read_answers(table, direction="maximize", **roles)
    found = on_these_tasks(blocks, judges, cluster, score="score")
    left, right = np.triu_indices(60, 1)
    L = np.eye(60)[left] - np.eye(60)[right]
    tracemalloc.start()
    df = found.df_function(L)
    assert tracemalloc.get_traced_memory()[1] < 40 * len(L) * 8 * 8  # not tasks x pairs x models
    tracemalloc.stop()
    parts = np.stack([_covariance(blocks.means[blocks.block == task].T) for task in range(8)])
    root = np.sqrt(_borrowed(answered(blocks).T, answered(blocks).T - 1.0))
    for row in rng.choice(len(L), 40, replace=False):
        pair = np.flatnonzero(L[row])
        v = np.array([own @ part @ own for own, part in zip(L[row] * root, parts, strict=True)])
        least = (answered(blocks)[pair].min(axis=0) - 1.0).astype(float)
        np.testing.assert_allclose(df[row], v.sum() ** 2 / (v**2 / least).sum(), rtol=1e-12)


def with_failures() -> pd.DataFrame:
    """Some answers of A were lost with their jobs, some of B ran out of time."""
    table = answers(3)
    table["status"] = np.where(table.index % 9 == 1, "timeout", None)
    table.loc[(table["model"] == "A") & (table["item"] % 4 == 0), "status"] = "infra"
    table["right"] = table["right"].where(table["status"].isna()).astype(float)
    return table


def test_failed_answers_count_what_their_kind_says() -> None:
    table = with_failures()
    found = lt.evaluate(table, failed="status", score_failures={"infra": "retry", "timeout": "worst"}, **ROLES)
    by_hand = table.assign(right=table["right"].mask(table["status"] == "timeout", 0.0))[table["status"] != "infra"]
    expected = lt.evaluate(by_hand, **ROLES)
    pd.testing.assert_frame_equal(found.pairs, expected.pairs)
    rated = table.assign(right=1.0 + 9.0 * table["right"])  # failures count on the scale of the scores
    policy = {"infra": "drop", "timeout": 1}
    of_ratings = lt.evaluate(rated, min_score=1, max_score=10, failed="status", score_failures=policy, **ROLES)
    np.testing.assert_allclose(of_ratings.pairs["estimate_like"], expected.pairs["estimate_like"])
    np.testing.assert_allclose(of_ratings.sensitivity.advantage, found.sensitivity.advantage)
    n_lost = int((table["status"] == "infra").sum())
    assert found.failures.groupby("kind")["n_failed"].sum()["infra"] == n_lost == len(found.to_repeat)
    assert any(s.startswith("Failed answers (infra) were left out until they are run again") for s in found.sentences())
    assert any("How many answers were left out depends on the model" in note for note in found.notes)
    worst = lt.evaluate(table, failed="missing", score_failures="worst", **ROLES)
    right = found.sensitivity.codes[list(found.sensitivity.phrases).index("worst")]
    assert right.tolist() == worst.sensitivity.codes[0].tolist()


LAZY = pytest.param(
    lambda table: pl.from_pandas(table.astype({"right": str})).lazy(), marks=pytest.mark.level(2), id="lazy"
)


@pytest.mark.parametrize("make", [pd.DataFrame, LAZY])
def test_words_in_cells_of_scores_are_kinds_of_failures(make) -> None:
    """Each word has a policy of its own, as if it stood in a column of kinds; an empty cell is missing."""
    table = with_failures()
    words = table["right"].astype(object).where(table["status"].isna(), table["status"].map({"timeout": " OOM"}.get))
    count = {"OOM": 0, "missing": "drop"}
    found = lt.evaluate(make(table.assign(right=words)), failed="right", score_failures=count, **ROLES)
    wanted = lt.evaluate(table, failed="status", score_failures={"timeout": 0, "infra": "drop"}, **ROLES)
    pd.testing.assert_frame_equal(found.pairs, wanted.pairs)
    assert found.failures["kind"].unique().tolist() == ["OOM", "missing"]
    with pytest.raises(DataError, match=r"each word is a way to fail, .*failed='right', score_failures=\{'word'"):
        lt.evaluate(table.assign(right=words), **ROLES)
    flags = words.map(lambda cell: cell if cell is None or cell == " OOM" or cell != cell else bool(cell))
    again = lt.evaluate(make(table.assign(right=flags)), failed="right", score_failures=count, **ROLES)
    pd.testing.assert_frame_equal(again.pairs, wanted.pairs)
    odd = table.assign(right=words.mask(words == " OOM", "85 %"))
    with pytest.raises(DataError, match="'85 %' is no kind"):
        lt.evaluate(odd, failed="right", score_failures=0, **ROLES)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"failed": "status"}, "score_failures must be 'worst', 'drop', 'retry' or a score from 0 to 1.*got None"),
        ({"failed": "status", "score_failures": {"infra": "drop", "timeout": 1.5}}, "got 1.5"),
        ({"failed": "status", "score_failures": {"infra": "drop"}}, "does not name timeout"),
        ({"failed": "missing", "score_failures": {"infra": 0}}, "where failed is a column of kinds"),
        ({"failed": "model", "score_failures": 0}, "name the same column"),
        ({"score_failures": 0}, "needs to know which runs failed"),
    ],
)
def test_failed_answers_without_a_treatment_are_refused(options: dict[str, object], words: str) -> None:
    with pytest.raises((ArgumentError, DataError), match=words):
        lt.evaluate(with_failures(), **ROLES, **options)  # type: ignore[arg-type]


def test_tasks_of_unequal_size_that_count_the_same_are_said():
    unequal = lt.evaluate(answers(3, sizes=(100, 60, 2, 3)), **ROLES)
    (note,) = [note for note in unequal.notes if "counts the same" in note]
    like_one = 16.0 / (1 / 100 + 1 / 60 + 1 / 2 + 1 / 3)  # of which a mean has the variance of the mean over tasks
    assert f"2 to 100 items: the mean over these tasks is known about as well as from {like_one:.0f} of the 165" in note
    assert note.endswith("For accuracies over all items alike, leave out task=.")
    for sizes in ((12, 9, 15, 10), (80, 80)):
        assert not any("counts the same" in note for note in lt.evaluate(answers(3, sizes=sizes), **ROLES).notes)


# ---------------------------------------------------------------------- what is shown


def test_pairs_are_shown_best_first_and_single_answers_are_said_to_hold_chance() -> None:
    rng = np.random.default_rng(1)
    ability = {"zeta": 1.2, "alpha": -0.2, "mid": 0.5}
    rows = [(m, t, i, int(rng.random() < 1 / (1 + np.exp(-a)))) for m, a in ability.items() for t in "abcde"
            for i in range(30)]  # fmt: skip
    table = pd.DataFrame(rows, columns=["model", "task", "item", "score"])
    found = lt.evaluate(table, model="model", task="task", item="item", score="score")
    shown = found.to_table().frame
    assert shown[["left", "right"]].to_numpy().tolist() == [["zeta", "mid"], ["zeta", "alpha"], ["mid", "alpha"]]
    pairs = found.to_frame().set_index(["left", "right"])
    assert shown["estimate_these"].tolist() == pytest.approx(
        [-pairs.loc[("mid", "zeta"), "estimate_these"], -pairs.loc[("alpha", "zeta"), "estimate_these"],
         -pairs.loc[("alpha", "mid"), "estimate_these"]]
    )  # fmt: skip
    assert shown["ci_low_like"].iloc[0] == pytest.approx(-pairs.loc[("mid", "zeta"), "ci_high_like"])
    by_odds = lt.evaluate(table, model="model", task="task", item="item", score="score", scale="odds")
    ratios = by_odds.to_frame().set_index(["left", "right"])
    assert by_odds.to_table().frame["odds_ratio_these"].iloc[0] == pytest.approx(
        1.0 / ratios.loc[("mid", "zeta"), "odds_ratio_these"]
    )
    meaning = found.sources.set_index("source")["meaning"]
    assert meaning["item:model"].endswith("and chance: each answer was given once")
    again = table.assign(epoch=1, score=rng.permutation(table["score"].to_numpy()))
    twice = pd.concat([table.assign(epoch=0), again])
    repeated = lt.evaluate(twice, model="model", task="task", item="item", score="score", epoch="epoch")
    assert "chance" not in repeated.sources.set_index("source")["meaning"]["item:model"]


def test_answers_of_true_and_false_count_as_one_and_zero_in_either_form() -> None:
    long = answers(3)
    wide = long.pivot_table(index=["task", "item"], columns="model", values="right").reset_index()
    models = [name for name in wide.columns if name not in ("task", "item")]
    marked = wide.astype(dict.fromkeys(models, bool))
    ours = lt.evaluate(marked, model=models, task="task", item="item").to_frame()
    theirs = lt.evaluate(long, **ROLES).to_frame()
    pd.testing.assert_frame_equal(ours, theirs)
    assert list(marked.dtypes[models].unique()) == [np.dtype(bool)]
