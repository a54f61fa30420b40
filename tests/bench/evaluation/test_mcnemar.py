"""McNemar's exact test: against scipy's binomial test, what its level is, and what is refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from refusals import refusal
from scipy import stats
from typer.testing import CliRunner

import lmemtest as lt
from lmemtest.cli import app
from lmemtest.errors import DataError, DesignError


def answers(b: int, c: int, both: int = 3, neither: int = 2) -> pd.DataFrame:
    """Items on which A alone, B alone, both and neither are right."""
    return pd.DataFrame({"A": [1] * (b + both) + [0] * (c + neither), "B": [0] * b + [1] * (both + c) + [0] * neither})


@pytest.mark.parametrize(("b", "c"), [(7, 0), (0, 5), (12, 2), (9, 9), (40, 61), (1, 0)])
def test_p_and_the_interval_of_the_odds_are_those_of_the_binomial_test_of_items_on_which_one_alone_is_right(b, c):
    found = lt.mcnemar(answers(b, c), model=["A", "B"])
    row, want = found.to_frame().iloc[0], stats.binomtest(b, b + c)
    ends = np.array(want.proportion_ci(method="exact"))
    with np.errstate(divide="ignore"):
        odds, ends = np.float64(b) / c, ends / (1.0 - ends)
    assert row[["n_items", "both", "only_left", "only_right", "neither"]].tolist() == [b + c + 5, 3, b, c, 2]
    assert row["p_value"] == pytest.approx(want.pvalue, rel=1e-12)
    assert row[["odds_ratio", "ci_low", "ci_high"]].tolist() == pytest.approx([odds, *ends], rel=1e-9)
    assert row["differ"] == (row["p_value"] < 0.05) == (not row["ci_low"] <= 1.0 <= row["ci_high"])


def test_it_never_rejects_more_often_than_alpha_however_few_items_differ():
    for n in (5, 6, 9, 14, 40):
        b = np.arange(n + 1)
        rejected = [lt.mcnemar(answers(i, n - i), model=["A", "B"]).to_frame()["differ"].iloc[0] for i in b]
        assert stats.binom.pmf(b, n, 0.5)[rejected].sum() <= 0.05


def test_items_without_an_answer_of_both_are_left_out_and_told_in_words():
    wide = answers(8, 1).reset_index(names="item")
    table = wide.melt("item", var_name="model", value_name="right").assign(task="t")
    found = lt.mcnemar(table[1:], model="model", item="item", score="right", task="task")
    assert found.to_frame()["only_left"].item() == 7
    assert found.notes == ("1 item without an answer of both models left out.",)
    assert found.sentences() == (
        "Of the 8 items on which one alone is right it is A on 7 and B on 1: neither is shown to be better "
        "(p = 0.070).",
        "The odds that it is A are 7.00 to 1 (95 % interval 0.899 to 315).",
    )
    turned = lt.mcnemar(table[1:].replace({"A": "B", "B": "A"}), model="model", item="item", score="right")
    assert "it is B on 7 and A on 1" in turned.sentences()[0]
    assert "it is B are 7.00 to 1 (95 % interval 0.899 to 315)" in turned.sentences()[1]
    assert "it is B are at least 1.44 to 1" in lt.mcnemar(answers(0, 7), model=["A", "B"]).sentences()[1]


def test_tables_that_it_is_not_for_are_refused():
    three = answers(4, 2).assign(C=1)
    assert "mcnemar compares two models" in refusal(lambda: lt.mcnemar(three, model=["A", "B", "C"]), DataError)
    graded = answers(4, 2) * 0.5
    assert "scores must be 0 or 1" in refusal(lambda: lt.mcnemar(graded, model=["A", "B"]), DataError)
    alike = answers(0, 0)
    assert "no item on which A or B alone is right, of 5" in refusal(
        lambda: lt.mcnemar(alike, model=["A", "B"]), DesignError
    )
    tasks = answers(4, 2).assign(task=["x", "y"] * 5 + ["x"])
    text = refusal(lambda: lt.mcnemar(tasks, model=["A", "B"], task="task"), DesignError)
    assert text == "mcnemar is for one task, and task 'task' has 2. Keep one, or call evaluate."


def test_an_evaluation_names_it_where_few_items_differ_and_it_is_a_command(tmp_path):
    notes = lt.evaluate(answers(7, 1), model=["A", "B"]).notes
    assert notes[-1] == "The exact test of these items (McNemar's): lmemtest.mcnemar(table, ...)."
    assert not any("McNemar" in note for note in lt.evaluate(answers(12, 4), model=["A", "B"]).notes)
    answers(7, 1).to_csv(tmp_path / "wide.csv", index=False)
    run = CliRunner().invoke(app, ["mcnemar", str(tmp_path / "wide.csv"), "--model", "A", "--model", "B"])
    assert run.exit_code == 0, run.output
    assert "The odds that it is A are 7.00 to 1" in run.output
