"""Failed runs: the role, what policies make of them, and what is refused."""

from __future__ import annotations

from itertools import product
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pytest

import lmemtest as lt
from lmemtest.errors import ArgumentError, DataError, UnknownColumnError

DUCK = duckdb.connect()
ROLES: dict[str, Any] = {
    "score": "loss", "direction": "minimize", "algorithm": "tool", "benchmark": "task", "seed": "seed"
}  # fmt: skip


def table() -> pd.DataFrame:
    """Two tools on two tasks with three seeds; scores 1 to 12, two of which are missing and one is infinite."""
    frame = pd.DataFrame(list(product("AB", ["t1", "t2"], range(3))), columns=["tool", "task", "seed"])
    frame["loss"] = np.arange(1.0, 13.0)
    frame["crashed"] = frame.index.isin([1, 8, 11])
    frame.loc[[1, 8], "loss"] = np.nan
    frame.loc[11, "loss"] = np.inf
    return frame


def runs_of(failed: str | None = "nonfinite", frame: Any = None, **roles: Any) -> lt.Runs:
    return lt.Runs(table() if frame is None else frame, failed=failed, **{**ROLES, **roles})


def scores(runs: lt.Runs) -> list[float]:
    found: list[float] = runs.to_frame().sort_values(["tool", "task", "seed"])["loss"].tolist()
    return found


# t1: A 1 2 3, B 7 8 9, of which 2 and 9 failed; t2: A 4 5 6, B 10 11 12, of which 12 failed
@pytest.mark.parametrize(
    ("policy", "reference", "given"),
    [
        ("worst", None, (8, 8, 11)),
        ("baseline", "A", (2, 2, 5)),
        (20, None, (20, 20, 20)),
        ({"t1": 5, "t2": 0.5}, None, (5, 5, 0.5)),
        (lambda task: {"t1": 5, "t2": 0.5}[task], None, (5, 5, 0.5)),
    ],
)
def test_a_failed_run_has_the_score_of_the_policy(policy: Any, reference: Any, given: tuple[float, ...]) -> None:
    want = np.arange(1.0, 13.0)
    want[[1, 8, 11]] = given
    polars = pl.from_pandas(table())
    for frame in (table(), polars.lazy(), polars.to_arrow(), DUCK.from_arrow(polars.to_arrow())):
        for failed in ("nonfinite", "crashed"):
            runs = runs_of(failed, frame).score_failures(policy, reference=reference)
            assert scores(runs) == want.tolist()
            assert runs.failed is None
            assert (runs.failures and runs.failures.n_failed) == 3


def test_the_worst_score_is_the_lowest_of_those_to_maximize() -> None:
    assert scores(runs_of(direction="maximize").score_failures("worst"))[1] == 1
    budgets = table().assign(trial=[1, 2, 3] * 4, seed=0)
    worst = runs_of("crashed", budgets, budget="trial").score_failures("worst")  # by task and trial: A's 3 is left
    assert scores(worst)[8] == 3
    assert worst.notes == ("3 failed scores of 2 algorithms were given the worst score of their benchmark and trial.",)


def test_what_was_done_is_known_and_can_be_done_again() -> None:
    runs = runs_of("crashed").score_failures("worst")
    assert runs.notes == ("3 failed runs of 2 algorithms were given the worst score of their benchmark.",)
    assert runs.roles() == {**runs_of(None).roles(), "ignore": ("crashed",)}
    later = runs.filter(task=["t1"]).normalize("rank")
    assert later.failures is not None
    again = later.failures.under("baseline", "A")
    assert again.notes[-1].endswith("were given the mean score of A on their benchmark (1 of them is of A itself).")
    assert again.to_frame()["loss_rank"].tolist() == [1, 2.5, 4, 5, 6, 2.5]
    pd.testing.assert_frame_equal(later.failures.under("worst").to_frame(), later.to_frame())


def test_dropping_is_one_policy() -> None:
    runs = runs_of().score_failures("drop")
    assert scores(runs) == scores(runs_of().drop_missing()) == scores(runs_of(None).drop_missing())
    assert runs.notes[0].startswith("3 failed runs of 2 algorithms were left out")
    assert runs_of(None).drop_missing().notes[0].startswith("3 of 12 rows without a finite score were left out")
    assert runs_of("missing").score_failures("drop").n_rows == 10  # infinite scores are no failures of this kind


def test_runs_with_failures_are_not_compared() -> None:
    said = r"3 of 12 runs failed \(A 1, B 2\) and have no score.*score_failures\('worst'\).*robustness\(runs, of='fail"
    for ask in (lambda r: lt.recommend(r).fit(r), lt.analyze, lt.rank, lambda r: r.normalize("rank"),
                lambda r: lt.fit_lmm("log(loss) ~ tool + (1 | task)", r)):  # fmt: skip
        with pytest.raises(DataError, match=said):
            ask(runs_of("crashed"))
    with pytest.raises(DataError, match=r"Runs\(..., failed='missing'\).*score_failures\('worst'\)"):
        lt.rank(runs_of(None))
    assert "3 of 12 runs" in runs_of("crashed").summary()


def test_a_trial_that_failed_does_not_count_for_the_best_so_far() -> None:
    trials = pd.DataFrame({"tool": list("AAABBB"), "task": "t", "trial": [1, 2, 3] * 2, "loss": [0.0, 3, 2, 5, 1, 4]})
    trials["crashed"] = [1, 0, 0, 0, 1, 0]
    roles = {"score": "loss", "direction": "minimize", "algorithm": "tool", "benchmark": "task", "budget": "trial"}
    best = lt.Runs(trials, failed="crashed", **roles).best_so_far()
    assert best.failed == "missing"
    np.testing.assert_array_equal(best.to_frame()["loss_best_so_far"], [np.nan, 3, 2, 5, 5, 4])


def test_wide_tables_have_failures() -> None:
    wide = {"task": ["a", "b"], "HB": [0.1, np.nan], "RS": [0.2, 0.5]}
    runs = lt.Runs.from_wide(wide, direction="minimize", failed="missing").score_failures("worst")
    assert runs.to_frame()["score"].tolist() == [0.1, 0.5, 0.2, 0.5]
    with pytest.raises(
        ArgumentError, match="failed must be one of 'missing', 'nonfinite', or a word in cells of scores"
    ):
        lt.Runs.from_wide(wide, direction="minimize", failed="task")


def test_wrong_roles_are_refused_with_a_next_step() -> None:
    frame = table().assign(status=["ok", "crash"] * 6, fails=2, missing=0, part=[None, 1.0] * 6)
    with pytest.raises(ArgumentError, match="may mean the column 'missing' or scores that are missing"):
        runs_of("missing", frame)
    with pytest.raises(UnknownColumnError, match=r"failed names 'crahsed', which is neither.*Did you mean 'crashed'"):
        runs_of("crahsed")
    with pytest.raises(DataError, match=r"'status' has type .* Make it one, for pandas with df\['status'\] == 'ok'"):
        runs_of("status", frame)
    with pytest.raises(DataError, match="'fails' holds 2"):
        runs_of("fails", frame)
    with pytest.raises(DataError, match="'part' has 6 missing values"):
        runs_of("part", frame)
    with pytest.raises(ArgumentError, match="failed and seed both name the column 'seed'"):
        runs_of("seed")


def test_policies_without_a_score_are_refused_with_names() -> None:
    frame = table()
    frame.loc[frame["task"] == "t1", "loss"] = np.nan
    with pytest.raises(DataError, match=r"Every run failed on t1, so there is no worst score.*runs.filter"):
        runs_of(frame=frame).score_failures("worst")
    frame = table()
    frame.loc[(frame["task"] == "t1") & (frame["tool"] == "A"), "loss"] = np.nan
    with pytest.raises(DataError, match="The reference 'A' has no score itself on t1, where runs failed"):
        runs_of(frame=frame).score_failures("baseline", reference="A")
    frame.loc[frame["tool"] == "A", "loss"] = np.nan
    with pytest.raises(DataError, match="Every run of A failed, so 'drop' would leave the comparison without it"):
        runs_of(frame=frame).score_failures("drop")
    with pytest.raises(ArgumentError, match="score_failures needs to know which runs failed"):
        runs_of(None).score_failures("worst")
    numbered = runs_of(frame=table().assign(task=table()["task"].str[1:].astype(int)))
    with pytest.raises(
        ArgumentError, match=r"policy names '1', which is no value of 'task'\. Write 1, as in the table"
    ):
        numbered.score_failures({"1": 0.5})
    with pytest.raises(ArgumentError, match=r"These runs are without failures already: .* were left out"):
        runs_of().score_failures("drop").score_failures("worst")
    for policy, reference, said in [
        ("wort", None, "policy must be 'worst', 'baseline', 'drop', a number.*Did you mean 'worst'"),
        ("baseline", None, "policy='baseline' needs reference=.*Algorithms: 'A', 'B'"),
        ("worst", "A", "reference='A' is for policy='baseline', got policy='worst'"),
        ("baseline", "C", "reference='C' names no algorithm"),
        (float("nan"), None, "policy must be a finite number, got nan"),
        ({"t1": 1}, None, "policy has no value for 't2', where runs failed"),
        ({"t1": 1, "t2": 1, "t3": 1}, None, "policy names 't3', which is no value of 'task'"),
        ({}.get, None, "policy must give a finite number for each benchmark, got None for 't1'"),
    ]:
        with pytest.raises(ArgumentError, match=said):
            runs_of().score_failures(policy, reference=reference)


def test_the_best_so_far_passes_over_failed_scores_and_says_so() -> None:
    table = {"tool": ["A"] * 3 + ["B"] * 3, "epoch": [1, 2, 3] * 2, "loss": [-np.inf, 0.7, 0.9, 0.5, np.nan, 0.6]}
    runs = lt.Runs(table, score="loss", direction="minimize", algorithm="tool", budget="epoch", failed="nonfinite")
    best = runs.best_so_far()
    np.testing.assert_allclose(best.to_frame()[best.score], [np.nan, 0.7, 0.7, 0.5, 0.5, 0.5])
    assert best.notes[0].startswith("2 of 6 scores failed and do not count in the best so far: the best score before")
    assert "1 of 6 scores\n" in str(best)
