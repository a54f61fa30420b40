"""Evaluations of language models, arrays of scores, exports of trackers and tables of papers become runs."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace as Thing
from typing import Any

import numpy as np
import pandas as pd
import pytest
from importing import FILES, levels, scores

import lmemtest as lt
from lmemtest.errors import ArgumentError, DataError, UnknownColumnError

# --------------------------------------------------------------------------------------------------------- inspect_ai


def test_inspect_ai_grades_are_numbers_and_questions_lie_in_tasks() -> None:
    runs = lt.importers.inspect_ai(FILES / "inspect_samples.csv", metric="match")
    assert levels(runs) == {
        "model": ("mockllm/a", "mockllm/b"),
        "task_name": ("capitals", "sums"),
        "id": ("1", "2", "3", "q1", "q2", "q3", "q4"),
    }
    assert (runs.direction, runs.seed_shared, runs.ignore) == ("maximize", False, ("epoch",))
    assert scores(runs, model="mockllm/a", task_name="sums") == [1, 1, 1, 0] * 2
    assert np.isnan(scores(runs, model="mockllm/b", id="q3")).all()  # both ended in an error
    assert scores(lt.importers.inspect_ai(FILES / "inspect_samples.csv", metric="includes"), id="2", epoch=1) == [1, 1]


def test_inspect_ai_takes_models_from_the_table_of_evaluations() -> None:
    table = pd.read_csv(FILES / "inspect_samples.csv", dtype_backend="pyarrow")  # as samples_df has it
    evals = table[["eval_id", "model", "task_name"]].drop_duplicates()
    bare = table.drop(columns=["model", "task_name"])
    whole = lt.importers.inspect_ai(table, metric="match")
    assert lt.importers.inspect_ai(bare, evals=evals, metric="match").to_frame().equals(whole.to_frame())
    with pytest.raises(DataError, match=r"it has no column 'model', 'task_name'\. Read it by samples_df"):
        lt.importers.inspect_ai(bare, metric="match")
    with pytest.raises(DataError, match="evals lacks 1 evaluations of the samples"):
        lt.importers.inspect_ai(bare, evals=evals.iloc[1:], metric="match")


def test_inspect_ai_refuses_in_words() -> None:
    table = pd.read_csv(FILES / "inspect_samples.csv")
    with pytest.raises(ArgumentError, match="samples holds 2 scorers: includes, match"):
        lt.importers.inspect_ai(table)
    with pytest.raises(ArgumentError, match="direction is required"):
        lt.importers.inspect_ai(table.assign(score_match=0.25), metric="match")
    with pytest.raises(DataError, match="must hold numbers, but 28 rows hold something else: 'X'"):
        lt.importers.inspect_ai(table.assign(score_match="X"), metric="match")
    with pytest.raises(DataError, match=r"28 rows repeat a run that is there already.*keep one of them"):
        lt.importers.inspect_ai(pd.concat([table, table]), metric="match")


# ------------------------------------------------------------------------------------------------------------ lm_eval


def test_lm_eval_models_and_metrics_come_from_the_results_file() -> None:
    runs = lt.importers.lm_eval(FILES / "lm_eval", metric="acc")
    assert levels(runs) == {"model": ("org/large", "org/small"), "task": ("tiny_choice",), "doc_id": (0, 1, 2)}
    for model, folder in (("org/large", "org__large"), ("org/small", "org__small")):
        results = json.loads(next((FILES / "lm_eval" / folder).glob("results_*.json")).read_text())
        assert np.mean(scores(runs, model=model)) == pytest.approx(
            results["results"]["tiny_choice"]["acc,none"], rel=1e-12
        )
    assert (runs.direction, runs.seed_shared) == ("maximize", False)
    assert "Left out: tasks without the metric acc (tiny_sums)." in runs.notes
    named = lt.importers.lm_eval({"S": FILES / "lm_eval/org__small", "L": FILES / "lm_eval/org__large"}, metric="acc")
    assert (named.algorithms, scores(named, model="S")) == (("L", "S"), scores(runs, model="org/small"))


def test_lm_eval_takes_one_filter_of_the_answers() -> None:
    strict = lt.importers.lm_eval(FILES / "lm_eval", metric="exact_match", filter="strict-match")
    assert (scores(strict, model="org/small"), scores(strict, model="org/large")) == ([1, 0], [1, 1])
    lenient = lt.importers.lm_eval(FILES / "lm_eval", metric="exact_match", filter="flexible-extract")
    assert scores(lenient) == [1, 1, 1, 1]
    with pytest.raises(ArgumentError, match="holds 2 filters: strict-match, flexible-extract"):
        lt.importers.lm_eval(FILES / "lm_eval", metric="exact_match")
    with pytest.raises(ArgumentError, match="holds 3 metrics: acc, acc_norm, exact_match"):
        lt.importers.lm_eval(FILES / "lm_eval")
    with pytest.raises(ArgumentError, match="direction is 'minimize', but 'acc' is to maximize"):
        lt.importers.lm_eval(FILES / "lm_eval", metric="acc", direction="minimize")


def test_lm_eval_knows_that_documents_have_log_likelihoods_and_that_some_metrics_have_no_documents() -> None:
    def samples(name: str, *values: Any) -> dict[str, Any]:
        return {"t": [{"doc_id": i, "filter": "none", "metrics": [name], name: x} for i, x in enumerate(values)]}

    runs = lt.importers.lm_eval({"a": samples("perplexity", -3.0), "b": samples("perplexity", -2.0)})
    assert (runs.direction, runs.notes[-1][:34]) == ("maximize", "perplexity: a document has its log")
    with pytest.raises(DataError, match="What is computed from all documents, as bleu, has no score of one"):
        lt.importers.lm_eval({"a": samples("bleu", ["x", "y"]), "b": samples("bleu", ["x", "y"])}, direction="maximize")
    with pytest.raises(ArgumentError, match="direction is required"):
        lt.importers.lm_eval({"a": samples("tone", 0.1), "b": samples("tone", 0.3)})
    with pytest.raises(DataError, match=r"Nothing says the benchmark of samples\['a'\]"):
        lt.importers.lm_eval({"a": samples("acc", 1)["t"]})
    with pytest.raises(DataError, match=r"is not called samples_<task>_<date>\.jsonl"):
        lt.importers.lm_eval(FILES / "wandb_runs.csv")


# ------------------------------------------------------------------------------------------------------------ rliable


def test_rliable_arrays_are_runs_by_games() -> None:
    arrays = {"DQN": np.array([[0.5, 1.2], [0.4, 1.1], [0.6, np.nan]]), "C51": [[0.9, 1.3]]}
    runs = lt.importers.rliable(arrays, games=["Pong", "Breakout"])
    assert levels(runs) == {"algorithm": ("C51", "DQN"), "game": ("Breakout", "Pong"), "run": (1, 2, 3)}
    assert scores(runs, algorithm="DQN", game="Pong") == [0.5, 0.4, 0.6]
    assert (runs.direction, runs.seed_shared, runs.failed) == ("maximize", False, "nonfinite")
    curves = lt.importers.rliable({"A": np.arange(12.0).reshape(2, 3, 2), "B": np.zeros((1, 3, 2))}, frames=[1e6, 2e6])
    assert (curves.budget, curves.levels("frame")) == ("frame", (1e6, 2e6))
    assert scores(curves, algorithm="A", game="game 2", run=2) == [8, 9]


def test_rliable_files_have_the_medians_of_rliable(tmp_path: Path) -> None:
    runs = lt.importers.rliable(FILES / "rliable_scores.json")
    by_game = runs.to_frame().groupby(["algorithm", "game"])["score"].mean()
    assert by_game.groupby("algorithm").median().to_dict() == pytest.approx({"C51": 0.74825, "DQN": 0.58}, rel=1e-12)
    np.savez(tmp_path / "scores.npz", **json.loads((FILES / "rliable_scores.json").read_text()))
    assert lt.importers.rliable(tmp_path / "scores.npz").to_frame().equals(runs.to_frame())
    (tmp_path / "scores.npz").write_bytes(b"PK broken")
    with pytest.raises(DataError, match=r"is no archive of numbers\. Write it with numpy\.savez"):
        lt.importers.rliable(tmp_path / "scores.npz")


@pytest.mark.parametrize(
    ("given", "options", "words"),
    [
        ({"A": [1.0, 2.0]}, {}, r"must be an array of runs x games, or .*, got the shape \(2,\)"),
        ({"A": [[1.0, 2.0]], "B": [[1.0]]}, {}, "same games for all algorithms, but 'A' has 2 and 'B' 1"),
        ({"A": [[1.0], [1.0, 2.0]]}, {}, "must be an array of numbers, runs x games"),
        ({"A": [[1.0, 2.0]], "B": [[1.0, 2.0]]}, {"games": ["x"]}, "games must be 2 different names"),
        ({"A": [[1.0]], "B": [[1.0]]}, {"frames": [1]}, "frames are for arrays of runs x games x frames"),
        ({"A": [[1.0, 2.0]]}, {}, "one algorithm only, 'A'"),
        ([[1.0]], {}, r"scores\[0\] must be a dict"),
        (3, {}, "scores must be a dict {algorithm: array of runs x games}, got 3"),
    ],
)
def test_rliable_refuses_in_words(given: Any, options: dict[str, Any], words: str) -> None:
    with pytest.raises((ArgumentError, DataError), match=words):
        lt.importers.rliable(given, **options)


# -------------------------------------------------------------------------------------------------- wandb and mlflow

ROLES: dict[str, Any] = {"score": "val_acc", "direction": "maximize", "algorithm": "model", "seed": "seed"}


def test_wandb_runs_that_crashed_have_failed() -> None:
    runs = lt.importers.wandb(FILES / "wandb_runs.csv", benchmark="dataset", **ROLES)
    assert levels(runs) == {"model": ("RF", "SVC"), "dataset": ("iris", "wine"), "seed": (0, 1)}
    assert np.isnan(scores(runs, model="SVC", seed=1)).all()  # one of them had logged 0.41 before it crashed
    assert runs.failed == "nonfinite"
    assert runs.notes[1:3] == (
        "Left out: 1 run that had not ended.",
        "Runs that did not finish (crashed 1, failed 1) have no score.",
    )
    named = lt.importers.wandb(
        FILES / "wandb_runs.csv", score="val_acc", direction="maximize", names="{algorithm}-{benchmark}-{seed}"
    )
    assert scores(named, algorithm="RF") == scores(runs, model="RF")


class Summary:
    """What the summary of a run of wandb.Api() has: items, some of them summaries, but it is no dict."""

    def __init__(self, values: dict[str, Any]) -> None:
        self.values = values

    def items(self) -> Any:
        return {k: Summary(v) if isinstance(v, dict) else v for k, v in self.values.items()}.items()

    def __getattr__(self, name: str) -> Any:
        raise KeyError(name)


def test_wandb_runs_of_the_api_show_settings_and_metrics() -> None:
    found = [
        Thing(
            name=f"{model}-{seed}",
            state="crashed" if (model, seed) == ("SVC", 1) else "finished",
            config={"model": model, "optimizer": {"lr": 0.1 * (seed + 1)}, "seed": seed, "loss": "hinge"},
            summary=Summary({"loss": 0.5, "val": {"acc": 0.25 * (seed + 1)}}),
        )
        for model in ("RF", "SVC")
        for seed in (0, 1)
    ]
    options: Any = {"score": "val.acc", "direction": "maximize", "algorithm": "model", "seed": "seed"}
    runs = lt.importers.wandb(iter(found), **options, metafeatures=["optimizer.lr"])
    assert np.array_equal(scores(runs), [0.25, 0.5, 0.25, np.nan], equal_nan=True)
    assert levels(runs)["optimizer.lr"] == (0.1, 0.2)
    assert lt.importers.wandb(found, **{**options, "score": "summary.loss"}).score == "summary.loss"
    frame = pd.DataFrame([{"summary": run.summary.values, "config": run.config, "name": run.name} for run in found])
    assert scores(lt.importers.wandb(frame, score="val.acc", direction="maximize", names="{algorithm}-{seed}")) == [
        *(0.25, 0.5, 0.25, 0.5)
    ]
    with pytest.raises(
        DataError, match=r"must be dictionaries, which a csv file of them does not hold\. Give wandb\.Api"
    ):
        lt.importers.wandb(frame.astype(str), **options)


def test_wandb_charts_are_runs_over_steps() -> None:
    table = pd.read_csv(FILES / "wandb_chart.csv")
    runs = lt.importers.wandb(table, direction="maximize", names="{algorithm}-{benchmark}-{seed}")
    assert levels(runs) == {"algorithm": ("RF", "SVC"), "benchmark": ("iris",), "seed": (0,), "step": (1, 2, 3)}
    assert scores(runs, algorithm="SVC") == [0.5, 0.9]
    table["SVC-iris-0 - val_acc__MAX"] += 0.1
    grouped = lt.importers.wandb(table, direction="maximize", names="{algorithm}-{benchmark}-{seed}")
    assert any(note.startswith("1 line of 2 are means of several runs, or of several steps") for note in grouped.notes)
    with pytest.raises(ArgumentError, match="names must say what the names of the lines are made of, such as 'RF-"):
        lt.importers.wandb(table, direction="maximize")


def test_mlflow_names_parameters_and_metrics_as_they_were_logged() -> None:
    runs = lt.importers.mlflow(FILES / "mlflow_runs.csv", benchmark="dataset", **ROLES)
    assert levels(runs) == {"params.model": ("RF", "SVC"), "params.dataset": ("iris", "wine"), "params.seed": (0, 1)}
    assert scores(runs, **{"params.model": "RF", "params.dataset": "wine"}) == [0.96, 0.95]
    assert np.isnan(scores(runs, **{"params.model": "SVC", "params.dataset": "wine"})).tolist() == [True, False]
    in_memory = pd.read_csv(FILES / "mlflow_runs.csv", dtype={"params.seed": str})  # as search_runs has parameters
    assert lt.importers.mlflow(in_memory, benchmark="dataset", **ROLES).levels("params.seed") == (0, 1)


@pytest.mark.parametrize(
    ("tool", "changed", "words"),
    [
        ("wandb", {"direction": None}, "direction must be"),
        ("wandb", {"score": None}, "score must name a column. Columns: Name, State"),
        ("wandb", {"algorithm": None}, "algorithm must name a column, or names="),
        ("wandb", {"algorithm": "tool"}, "algorithm names the column 'tool'"),
        ("wandb", {"seed": None}, "4 rows repeat a run that is there already, .* Name the column that tells"),
        ("wandb", {"score": "model"}, "The column 'model' must hold numbers, but 9 rows hold something else: 'RF'"),
        ("wandb", {"names": "{algorithm}/{seed}"}, "does not fit the name 'RF-iris-0'"),
        ("mlflow", {"score": "acc"}, "score names the column 'acc'"),
        ("mlflow", {"metafeatures": ["colour"]}, "metafeatures names the column 'colour'"),
        ("mlflow", {"benchmark": "team"}, "params.dataset|has no value of 'tags.team'|repeat")
    ]
)  # fmt: skip
def test_exports_are_refused_in_words(tool: str, changed: dict[str, Any], words: str) -> None:
    options = {**ROLES, "benchmark": "dataset", **changed}
    with pytest.raises((ArgumentError, DataError, UnknownColumnError), match=words):
        getattr(lt.importers, tool)(FILES / f"{tool}_runs.csv", **options)


def test_exports_are_told_from_other_tables() -> None:
    with pytest.raises(DataError, match="is not a table of MLflow's runs: it has no column 'run_id', 'status'"):
        lt.importers.mlflow(FILES / "wandb_runs.csv", **ROLES)
    with pytest.raises(DataError, match="is not an export of Weights & Biases: it has no column 'Name'"):
        lt.importers.wandb(FILES / "mlflow_runs.csv", **ROLES)


# --------------------------------------------------------------------------------------------------------------- wide


def test_wide_tables_of_papers_are_numbers_with_what_they_do_not_say() -> None:
    table = {
        "data set": ["iris", "wine", "adult", "Avg. rank", "mean squares"],
        "RF": ["$0.95 \\pm 0.01$", "0.97 (0.02)", ".85+/-.1", "1.5", "0.5"],
        "SVC": ["\\textbf{0.96} \u00b1 0.03", "-", "8.1e-1", "1.2", "**0.25**"],
    }
    runs = lt.importers.wide(table, direction="maximize", averaged=10)
    assert levels(runs) == {"algorithm": ("RF", "SVC"), "data set": ("adult", "iris", "mean squares", "wine")}
    assert scores(runs, algorithm="RF") == [0.95, 0.97, 0.85, 0.5]
    assert runs.to_frame()["spread"].dropna().tolist() == [0.01, 0.02, 0.1, 0.03]
    assert np.isnan(scores(runs, algorithm="SVC")).tolist() == [False, True, False, False]
    assert runs.notes[1] == "Left out: rows that sum up the others (Avg. rank)."
    assert runs.notes[-2].startswith(
        "Each number is taken as the mean of 10 runs, so the variation between runs is not"
    )
    assert runs.notes[-1].startswith("1 of 8 cells has no score. Where runs failed, say what a failure counts")
    with pytest.raises(DataError, match="'data set' must name every row by itself, but iris stands in several"):
        lt.importers.wide({**table, "data set": ["iris", "iris", "x", "y", "z"]}, direction="maximize")
    with pytest.raises(DataError, match=r"The column 'SVC' holds 'good', which is no number such as 0\.93"):
        lt.importers.wide({**table, "SVC": ["good"] * 5}, direction="maximize")
    with pytest.raises(ArgumentError, match="benchmark must be a column of the table, got 'task'"):
        lt.importers.wide(table, direction="maximize", benchmark="task")
