"""Evaluations by odds: closed forms for both populations, what has no answer, when they are advised."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from refusals import refusal
from scipy import stats
from scipy.special import expit, logit
from study import table_of_scores
from typer.testing import CliRunner

import lmemtest as lt
from lmemtest.bench.data.blocks import Blocks
from lmemtest.bench.evaluation.answers import answered, read_answers
from lmemtest.bench.evaluation.log_odds import empirical_logits, unbiased_logits
from lmemtest.bench.evaluation.questions import on_these_tasks
from lmemtest.cli import app
from lmemtest.core.words import format_number
from lmemtest.errors import ArgumentError, DataError, DesignError

ROLES = {"model": "model", "task": "task", "item": "item", "score": "score"}


def answers(models: int = 2, tasks: int = 6, items: int = 60, seed: int = 4, level: float = 2.5) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    shared = level + rng.normal(0, 1.5, (tasks, 1)) + rng.normal(0, 1, (tasks, items))
    eta = shared + rng.normal(0, 0.4, (models, tasks, 1)) - 0.4 * np.arange(models)[:, None, None]
    table = table_of_scores((rng.random(eta.shape) < expit(eta)).astype(int), "model task item")
    return table.assign(model=np.array(list("ABCDEF"))[table["model"]])


def empirical(table: pd.DataFrame) -> pd.DataFrame:
    k, n = (table.groupby(["task", "model"])["score"].agg(how).unstack() for how in ("sum", "count"))
    return np.log((k + 0.5) / (n - k + 0.5))


def by_odds(table: pd.DataFrame, **options: object) -> lt.bench.evaluation.evaluation_result.Evaluation:  # type: ignore[name-defined]
    return lt.evaluate(table, scale="odds", **{**ROLES, **options})


@pytest.mark.parametrize("models", [2, 3])
def test_models_with_as_many_errors_on_every_task_have_an_answer_on_these_tasks_alone(models: int) -> None:
    """Their log odds differ by nothing on all tasks, which leaves no variance to judge other tasks by."""
    rng, right = np.random.default_rng(5), [12, 8, 17, 5]
    solved = np.array([[rng.permutation(np.arange(20) < k) for k in right] for _ in range(models)]).astype(int)
    found = by_odds(table_of_scores(solved, "model task item"))
    assert found.like is None
    assert found.to_frame()["odds_ratio_these"].tolist() == pytest.approx([1.0] * (models * (models - 1) // 2))
    assert np.isfinite(found.to_frame()["se_these"]).all()
    assert sum("no answer for tasks like these" in sentence for sentence in found.sentences()) == 1
    assert not any("one task" in sentence for sentence in found.sentences())
    solved[0, 0] = np.arange(20) < 13
    assert np.isfinite(by_odds(table_of_scores(solved, "model task item")).to_frame()["se_like"]).all()


def test_for_tasks_like_these_two_models_are_compared_by_the_paired_t_test_of_their_empirical_logits():
    table = answers(level=1.0)  # a wrong and a right answer to every task
    table = table[(table["task"] > 1) | (table["item"] < 20)]  # tasks of unequal size
    row = by_odds(table).to_frame().iloc[0]
    want = stats.ttest_rel(*empirical(table).to_numpy().T)
    ends = want.confidence_interval()
    assert (row["df_like"], row["p_value_like"]) == pytest.approx((5.0, want.pvalue), rel=1e-6)
    assert np.log(row[["odds_ratio_like", "ci_low_like", "ci_high_like"]].astype(float)).tolist() == pytest.approx(
        [empirical(table).mean().diff().iloc[1] * -1.0, ends.low, ends.high], rel=1e-6
    )
    assert row["differ_like"] == (row["p_value_like"] < 0.05)


def test_three_models_have_the_mean_square_of_two_way_residuals_and_suites_are_the_sample_where_given():
    table = answers(3, tasks=12, level=0.5, items=120)
    z = empirical(table)
    rest = z.sub(z.mean(axis=1), axis=0) - z.mean() + z.to_numpy().mean()
    plain = by_odds(table, vcov="model", adjust="tukey")
    assert plain.pairs["se_like"].to_numpy() == pytest.approx(np.sqrt(2.0 * (rest.to_numpy() ** 2).sum() / 22 / 12))
    assert str(plain.fit.formula) == "log(odds) ~ model + (1 | task)"
    table = table[table["model"] != "C"].assign(suite=table["task"] // 2)
    suites = by_odds(table, family="suite", vcov="model", adjust="tukey")
    gaps = -empirical(table).diff(axis=1)["B"].groupby(np.arange(12) // 2).mean()
    assert suites.populations["like"] == "tasks of suites like these"
    assert suites.pairs["odds_ratio_like"].iloc[0] == pytest.approx(np.exp(gaps.mean()))
    assert suites.fit.varcorr["group"].tolist() == ["family", "family:model", "task", "Residual"]


def blocks_of(table: pd.DataFrame) -> Blocks:
    return read_answers(table, direction="maximize", epoch=None, judge=None, **ROLES)[0]


def test_without_their_bias_logits_have_the_mean_and_scatter_that_binomial_counts_of_normal_tasks_would_have():
    table = answers(3, level=4.0)
    blocks = blocks_of(table[(table["task"] > 1) | (table["item"] < 20)])
    z, n = empirical_logits(blocks)[0], answered(blocks)
    corrected, stretch, sd = unbiased_logits(blocks)
    u = np.linspace(-8.0, 8.0, 2001)
    weight = stats.norm.pdf(u) / stats.norm.pdf(u).sum()

    def moments(mean: float, size: int) -> tuple[float, float]:
        k = np.arange(size + 1)
        at = stats.binom.pmf(k[:, None], size, expit(mean + sd * u)) @ weight
        logits = np.log((k + 0.5) / (size - k + 0.5))
        return float(at @ logits), float(at @ logits**2)

    by_model = [np.mean([moments(mean, size) for size in n[0]], axis=0) for mean in corrected.mean(axis=1)]
    first, second = np.array(by_model).T
    assert first == pytest.approx(z.mean(axis=1), abs=1e-3)
    assert np.mean(second - first**2) == pytest.approx(z.var(axis=1, ddof=1).mean(), rel=2e-3)
    # away from the ends: less than 0.02; differences on a task keep their order and are stretched alike
    gaps = np.diff(z, axis=0) - np.diff(z.mean(axis=1))[:, None], np.diff(corrected, axis=0)
    stretched = gaps[1] - gaps[1].mean(axis=1, keepdims=True)
    assert stretched == pytest.approx(gaps[0] * stretch)
    here = on_these_tasks(blocks, {}, None, odds=True, score="log(odds)")
    assert here.b == pytest.approx(corrected.mean(axis=1))
    assert (np.abs(np.diff(corrected.mean(axis=1))) > np.abs(np.diff(z.mean(axis=1)))).all()
    notes = by_odds(table).notes
    assert any("corrected, with log odds of tasks taken for normal (standard deviation" in note for note in notes)


def test_logits_are_empirical_ones_where_every_task_has_errors_and_where_a_model_has_none():
    for table in (answers(level=1.0), answers().assign(score=lambda t: t["score"].where(t["model"] == "A", 1))):
        blocks = blocks_of(table)
        logits, stretch, sd = unbiased_logits(blocks)
        assert (logits.tolist(), stretch, sd) == (empirical_logits(blocks)[0].tolist(), 1.0, None)


def test_the_accuracy_of_a_model_without_an_error_may_be_one_by_odds():
    table = answers().assign(score=lambda t: t["score"].where(t["model"] == "A", 1))
    models = by_odds(table).to_frame("models").set_index("model")
    assert (models.loc["B", ["ci_high_these", "ci_high_like"]] == 1.0).all()
    assert (models.loc["A", ["ci_high_these", "ci_high_like"]] < 1.0).all()


def test_tasks_of_two_items_say_little_of_the_odds_near_one_and_the_interval_says_so():
    rows = [("AB"[m], t, i, int((7 * t + 3 * i + m) % 20 > 0)) for m in (0, 1) for t in range(40) for i in (0, 1)]
    table = pd.DataFrame(rows, columns=["model", "task", "item", "score"])
    share = table.groupby("model")["score"].mean()  # half an answer makes them 0.82 at most
    models = by_odds(table).to_frame("models").set_index("model")
    assert (models["accuracy_these"] > 0.9).all()
    assert ((models["ci_low_these"] < share) & (share < models["ci_high_these"])).all()


def test_on_one_task_the_error_is_that_of_the_difference_of_paired_logits():
    table = answers(tasks=1, items=4000, level=0.5)
    row = by_odds(table).to_frame().iloc[0]
    y = table.pivot(index="item", columns="model", values="score").to_numpy()
    (p, q), n, both = y.mean(axis=0), len(y), y.prod(axis=1).mean()
    variance = (1 / (p * (1 - p)) + 1 / (q * (1 - q)) - 2 * (both - p * q) / (p * (1 - p) * q * (1 - q))) / n
    assert row["odds_ratio_these"] == pytest.approx(np.exp(logit(p) - logit(q)), rel=1e-3)
    assert row["se_these"] == pytest.approx(np.sqrt(variance), rel=1e-3)


def test_models_with_their_own_items_have_the_binomial_errors_of_gart_and_zweifel_also_without_an_error():
    right = {"A": [1] * 40, "B": [1] * 36 + [0] * 4}
    rows = [(m, f"{m}{i}", y) for m, ys in right.items() for i, y in enumerate(ys)]
    row = by_odds(pd.DataFrame(rows, columns=["model", "item", "score"]), task=None).to_frame().iloc[0]
    binomial = np.array([1 / 40.5 + 1 / 0.5, 1 / 36.5 + 1 / 4.5])
    unbiased = np.array([0.0, 36 * 4 / 40 * binomial[1] ** 2 * (1 / 39 - 1 / 40)]) * 40  # C_t divides by n - 1
    assert row["odds_ratio_these"] == pytest.approx((40.5 / 0.5) / (36.5 / 4.5))
    assert row["se_these"] == pytest.approx(np.sqrt((binomial + unbiased).sum()))


def test_wrong_answers_have_the_inverse_odds_ratios():
    table = answers(3)
    right, wrong = by_odds(table), by_odds(table.assign(score=1 - table["score"]), direction="minimize")
    for name in ("these", "like"):
        inverse = 1.0 / wrong.pairs[[f"{part}_{name}" for part in ("odds_ratio", "ci_high", "ci_low", "se")]]
        got = right.pairs[[f"{part}_{name}" for part in ("odds_ratio", "ci_low", "ci_high", "se")]].to_numpy()
        assert got[:, :3] == pytest.approx(inverse.to_numpy()[:, :3], rel=1e-6)
        assert right.pairs[f"p_value_{name}"].tolist() == pytest.approx(wrong.pairs[f"p_value_{name}"], rel=1e-6)
    assert "the odds of a one of" in wrong.sentences()[2]


def test_the_answer_is_told_drawn_and_written_in_odds_ratios(tmp_path):
    table = answers(3, level=0.5, items=120)
    found = by_odds(table, adjust="none")
    ratio, low, high = (
        format_number(found.pairs[f"{name}_like"].iloc[0], 3) for name in ("odds_ratio", "ci_low", "ci_high")
    )
    first = f"the odds of a right answer of A are {ratio} times those of B ({low} to {high})"
    assert found.sentences()[3].startswith(f"For tasks like these {first}")
    assert found.like.ratios()["ratio"].to_numpy() == pytest.approx(found.pairs["odds_ratio_like"])
    accuracy = found.models.set_index("model")["accuracy_like"]
    assert accuracy["A"] == pytest.approx(expit(empirical(table)["A"].mean()))
    ax = found.plot()
    assert ax.get_xscale() == "log"
    dots = [line.get_xdata() for line in ax.lines if line.get_label() == "_estimates"]
    assert dots[1] == pytest.approx(found.pairs["odds_ratio_like"])
    text = found.save(tmp_path / "odds.md").read_text(encoding="utf-8")
    assert "Odds ratios, 3 pairs" in text
    smallest = found.detectable.set_index("question").loc["tasks like these"]
    assert np.log(smallest["smallest"]) > smallest["critical"] * smallest["se"]


def test_what_is_not_counted_or_has_no_noise_has_no_answer_by_odds():
    table = answers(level=1.0)
    twice = pd.concat([table.assign(epoch=e) for e in range(2)])
    found = by_odds(twice, epoch="epoch")
    assert found.items is None
    assert any(note.startswith("On exactly these items there is no answer by odds") for note in found.notes)
    assert "Leave out scale=." in refusal(lambda: found.decisions("these items"), DesignError)
    pd.testing.assert_series_equal(found.pairs["p_value_like"], by_odds(table).pairs["p_value_like"])
    assert "this evaluation is by odds" in refusal(lambda: found.plan(), DesignError)
    graded = table.assign(score=table["score"] * 0.5)
    assert "'odds' is for scores of 0 and 1, which are counted" in refusal(lambda: by_odds(graded), DataError)
    judged = pd.concat([table.assign(judge=f"j{j}") for j in range(5)])
    assert "the 5 judges are a sample" in refusal(lambda: by_odds(judged, judge="judge"), DesignError)
    assert "scale" in refusal(lambda: lt.evaluate(table, scale="logit", **ROLES), ArgumentError)


def test_pairs_of_model_and_task_without_an_error_are_counted_in_a_note():
    table = answers()
    some = table.assign(score=np.where(table["task"] < 2, (table["item"] > 0) * 1, table["score"]))
    all_right = some.assign(score=np.where((some["task"] == 0) & (some["model"] == "A"), 1, some["score"]))
    cells = all_right.groupby(["model", "task"])["score"].mean()
    assert any(note.startswith(f"{cells.isin([0, 1]).sum()} pair") for note in by_odds(all_right).notes)


def test_a_model_that_lacks_a_task_is_compared_for_tasks_like_these_alone():
    table = answers(3)
    found = by_odds(table[(table["model"] != "C") | (table["task"] > 0)])
    row = found.pairs.query("left == 'A' and right == 'C'").iloc[0]
    assert np.isnan(row["odds_ratio_these"])
    assert row["p_value_like"] > 0.0


@pytest.mark.parametrize(
    ("changes", "advised"),
    [({}, True), ({"tasks": 12}, False), ({"tasks": 4}, False), ({"level": 0.0}, False), ({"level": -4.5}, True)],
)
def test_odds_are_advised_for_five_to_ten_tasks_of_unequal_difficulty_near_an_end(changes, advised):
    table = answers(**{"level": 4.0, **changes})
    notes = lt.evaluate(table, **ROLES).notes
    assert any("scale='odds'" in note for note in notes) == advised


def test_odds_are_not_advised_to_those_who_have_them():
    assert not any("scale='odds'" in note for note in by_odds(answers(level=4.0)).notes)


def test_odds_are_asked_for_on_the_command_line(tmp_path):
    answers().to_csv(tmp_path / "answers.csv", index=False)
    options = [part for role, name in ROLES.items() for part in (f"--{role}", name)]
    run = CliRunner().invoke(app, ["evaluate", str(tmp_path / "answers.csv"), *options, "--scale", "odds"])
    assert run.exit_code == 0, run.output
    assert "odds_ratio_like" in run.output
