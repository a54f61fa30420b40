"""The way of a file that another tool wrote to an answer: every command that is printed on it runs."""

from __future__ import annotations

import itertools
import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from exported import FRAMES, amlb, answers, battles, inspect_log, mlflow, optuna_studies, trajectories, wandb_chart
from typer.testing import CliRunner, Result

from lmemtest.cli import app

OPEN = {"optuna_studies": ["--direction", "minimize", "--names", "{algorithm}-{benchmark}-{seed}"]}
READ = ["mlflow", "wandb", "wandb_chart", "optuna_studies", "search", "amlb_metrics"]  # one of each importer and form


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def run(*words: Any) -> Result:
    return CliRunner().invoke(app, [*map(str, words)])


def printed(found: Result) -> list[list[str]]:
    """The commands that stand in lines of their own."""
    lines = (line for line in found.output.replace(" \\\n    ", " ").splitlines() if line.startswith("  lmemtest "))
    return [shlex.split(line)[1:] for line in lines]


@pytest.mark.parametrize("name", READ)
def test_an_export_leads_by_printed_commands_to_an_answer(name: str) -> None:
    FRAMES[name][0]().to_csv("f.csv", index=False)
    first = run("check", "f.csv")
    assert first.exit_code == 2
    (command,) = printed(first)
    if name in OPEN:
        assert "--yes" not in first.output
        command = [*command[: command.index("--direction")], *OPEN[name]]
    converted = run(*command)
    assert converted.exit_code == 0, converted.output
    after = printed(converted)
    assert after[-1][0] == "report"
    for words in after:
        done = run(*words, "--json")
        assert done.exit_code == 0, done.output


@pytest.mark.parametrize("name", ["mlflow", "wandb", "amlb"])
def test_what_failed_runs_count_is_in_the_printed_command_and_said_to_be_a_choice(name: str) -> None:
    FRAMES[name][0]().to_csv("f.csv", index=False)
    found = run(*printed(run("report", "f.csv"))[0])
    assert printed(found)[-1][-2:] == ["--score-failures", "worst"]
    assert "worst, baseline=NAME, a number, drop, retry. worst is one choice" in found.output


def test_yes_reads_an_export_and_goes_on() -> None:
    mlflow().to_csv("runs.csv", index=False)
    _, *printed_last = printed(run(*printed(run("check", "runs.csv"))[0]))[-1]
    wanted = json.loads(run("rank", *printed_last, "--json").stdout)
    found = run("rank", "runs.csv", "--yes", "--score-failures", "worst", "--json")
    assert json.loads(found.stdout) == wanted
    assert "runs.csv looks like an export of MLflow" in found.stderr
    assert "1 of 12 rows has no finite score" in found.stderr


def test_what_is_said_about_an_export_is_taken() -> None:
    optuna_studies().to_csv("trials.csv", index=False)
    names = "--names '{algorithm}-{benchmark}-{seed}'"
    found = run("check", "trials.csv", "--yes", "--direction", "minimize")
    assert f"  lmemtest convert optuna trials.csv --direction minimize {names}" in found.output
    amlb("auc", "neg_rmse").to_csv("results.csv", index=False)
    found = run("rank", "results.csv", "--yes", "--score-failures", "worst", "--normalize", "rank")
    assert found.exit_code == 0, found.output


def test_logs_of_models_are_evaluated_by_one_command() -> None:
    for shift, name in enumerate(("a", "b")):
        Path(f"{name}.json").write_text(json.dumps(inspect_log(name, shift)))
    found = run("evaluate", "a.json", "--yes")
    assert found.exit_code == 0, found.output
    assert "Evaluation of 2 models on 12 items of 1 task, by choice" in found.output
    (command,) = printed(run("report", "b.json"))
    assert printed(run(*command))[0][0] == "evaluate"


def test_what_failed_samples_of_a_log_count_is_said_for_each_kind() -> None:
    for shift, name in enumerate(("a", "b")):
        log = inspect_log(name, shift)
        for place, why in ((3, {"error": {"message": "Connection reset <b>"}}), (8, {"limit": {"type": "time"}})):
            log["samples"][place] = {"id": log["samples"][place]["id"], "epoch": 1 + place % 2, **why}
        Path(f"{name}.json").write_text(json.dumps(log))
    alone = run("evaluate", "a.json", "--yes")
    assert "Some answers have no score (infra 2, timeout 2). Say what they count: --score-failures 0" in alone.stderr
    found = run("evaluate", "a.json", "--yes", "--failed", "infra=drop", "--failed", "timeout=0")
    assert "Failed answers (infra) were left out: a 1 of 24 and b 1 of 24." in found.stdout
    assert "Failed answers (timeout) count 0: a 1 of 24 and b 1 of 24." in found.stdout
    assert (
        "Failed answers (missing) count 0"
        in run("evaluate", "a.json", "--yes", "--failed", "missing", "--score-failures", "0").stdout
    )
    assert "lmemtest convert inspect_ai FILE --score-failures 0, and then" in run("attempts", "a.json", "--yes").stderr


@pytest.mark.parametrize("command", ["report", "check", "rank", "evaluate"])
def test_other_data_are_named_and_no_roles_are_guessed(command: str) -> None:
    battles().to_csv("battles.csv", index=False)
    Path("agent.json").write_text(json.dumps(trajectories()))
    found = run(command, "battles.csv", "--yes")
    assert found.exit_code == (0 if command == "check" else 2)  # which says what votes can answer
    words = "lmemtest votes battles.csv --model-a model_a --model-b model_b --winner winner"
    assert words in found.output
    rated = run(*words.split()[1:])
    assert rated.exit_code == 0
    assert run("votes", "battles.csv").exit_code == 2
    assert run("votes", "battles.csv", "--yes").output.endswith(rated.output)
    found = run(command, "agent.json")
    assert found.exit_code == 2
    assert "looks like trajectories of one agent" in found.output


def test_trajectories_become_answers_by_the_code_that_is_printed() -> None:
    rng, rows = np.random.default_rng(9), trajectories()
    for agent in ("x", "y"):
        several = [{**row, "task_id": i, "reward": int(rng.integers(2))} for i in range(8) for row in rows[:2]]
        Path(f"{agent}.json").write_text(json.dumps(several))
    found = run("report", "x.json")
    code = found.output[found.output.index("pd.concat(") : found.output.index(", and then:")]
    code = code.replace("'agent': pd.read_json('FILE')", "'x': pd.read_json('x.json')")
    columns = ["task_id", "trial", "reward"]
    eval(code.replace("...", f"'y': pd.read_json('y.json')[{columns}]"), {"pd": pd})  # writes answers.csv
    (command,) = printed(found)
    done = run(*command)
    assert done.exit_code == 0, done.output


def test_nested_cells_are_no_roles() -> None:
    rng = np.random.default_rng(10)
    for who in ("model", "who"):
        rows = [
            {who: w, "task": t, "seed": s, "tags": [str(s)], "info": {"a": 1}, "acc": rng.uniform()}
            for w, t, s in itertools.product("ab", "uvw", range(3))
        ]
        Path("nested.json").write_text(json.dumps(rows))
        found = run("rank", "nested.json", "--yes")
        assert found.exit_code == 0, found.output
        assert f"--algorithm {who}" in found.output
    found = run("rank", "nested.json", "--yes", "--algorithm", "tags")
    assert found.exit_code == 2
    assert found.output.splitlines()[-1].startswith("error: ")


# ------------------------------------------------------------------------------------------------ answers to items


@pytest.mark.level(2)
def test_the_first_line_names_the_command_made_for_answers() -> None:
    answers().query("attempt == 0").drop(columns="attempt").to_csv("answers.csv", index=False)
    first = "answers.csv looks like answers of models to items, right (1) or wrong (0)"
    roles = ["--score", "correct", "--direction", "maximize", "--algorithm", "model", "--benchmark", "question_id"]
    for given in ([], ["--yes"], [*roles, "--family", "subject"]):
        found = run("check", "answers.csv", *given)
        assert found.output.startswith(first)
        assert printed(found)[0][:2] == ["evaluate", "answers.csv"]
        done = run(*printed(found)[0])
        assert done.exit_code == 0, done.output


def test_roles_of_answers_are_guessed_shown_and_taken() -> None:
    answers().to_csv("answers.csv", index=False)
    found = run("evaluate", "answers.csv")
    assert found.exit_code == 2
    (command,) = printed(found)
    asked, taken = run(*command, "--json"), run("evaluate", "answers.csv", "--yes", "--json")
    assert json.loads(taken.stdout) == json.loads(asked.stdout)
    assert taken.stderr.startswith(
        "taking --model model --item question_id --task subject --score correct --epoch attempt\n"
    )


def test_wide_answers_without_items_are_evaluated_by_their_rows() -> None:
    rng = np.random.default_rng(6)
    table = pd.DataFrame(rng.integers(2, size=(40, 3)), columns=["gpt", "llama", "qwen"])
    table.to_csv("wide.csv", index=False)
    table.assign(row=range(40)).to_csv("numbered.csv", index=False)
    models = ["--model", "gpt", "--model", "llama", "--model", "qwen"]
    by_row, by_item = run("evaluate", "wide.csv", "--yes"), run("evaluate", "numbered.csv", *models, "--item", "row")
    assert "No column of items was named: each row is one, answered by all models." in by_row.output
    lines = [line for line in by_row.output.splitlines() if not line.startswith(("taking", "No column of items"))]
    assert lines == by_item.output.splitlines()


def test_ratings_are_evaluated_on_their_scale() -> None:
    rng = np.random.default_rng(7)
    rows = list(itertools.product("xyz", range(20), ["ann", "ben", "kind"]))
    table = pd.DataFrame(rows, columns=["system", "prompt", "judge"])
    good = table["system"].map({"x": 3, "y": 5, "z": 5}) + 2 * (table["judge"] == "kind")
    table["rating"] = (good + rng.integers(-1, 2, size=len(table))).clip(1, 10)
    table.loc[0, "rating"] = 10
    table.to_csv("ratings.csv", index=False)
    found = run("evaluate", "ratings.csv", "--yes")
    assert found.exit_code == 0, found.output
    assert "--judge judge --min 1 --max 10" in found.output
    assert "mean score (from 1 to 10)" in found.output
    found = run("evaluate", "ratings.csv", "--yes", "--max", "7")
    assert "must hold scores from 0 to 7 (--min and --max), got 10." in " ".join(found.output.split())


def test_a_chart_of_curves_is_one_command_from_its_answer() -> None:
    wandb_chart().to_csv("chart.csv", index=False)
    found = run("report", "chart.csv", "--yes", "--json")
    assert found.exit_code == 0, found.output
    assert [row["left"] for row in json.loads(found.stdout)["pairs"]] == ["base"]
