"""The command line of evaluations."""

from __future__ import annotations

import json

import pandas as pd
import pytest
from typer.testing import CliRunner

from lmemtest.cli import app

ROLES = ["--model", "model", "--task", "task", "--item", "item"]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    rows = [
        (m, t, i, int((3 * i + j) % 5 > k)) for k, m in enumerate("AB") for j, t in enumerate("xyz") for i in range(20)
    ]
    table = pd.DataFrame(rows, columns=["model", "task", "item", "right"])
    table.to_csv(tmp_path / "answers.csv", index=False)
    wide = table.pivot(index=["task", "item"], columns="model", values="right").reset_index()
    wide.to_csv(tmp_path / "wide.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_long_and_wide_files_are_evaluated_and_written(folder):
    run = CliRunner().invoke(app, ["evaluate", "answers.csv", *ROLES, "--score", "right", "--json", "-o", "out.html"])
    assert run.exit_code == 0, run.output
    row = json.loads(run.stdout)["pairs"][0]
    assert (row["left"], row["right"], row["n_differ"]) == ("A", "B", 12)
    assert "For tasks like these" in (folder / "out.html").read_text(encoding="utf-8")
    wide = ["evaluate", "wide.csv", "--model", "A", "--model", "B", "--task", "task", "--item", "item"]
    assert CliRunner().invoke(app, wide).exit_code == 0


@pytest.mark.usefixtures("folder")
def test_suites_are_named_by_an_option():
    table = pd.concat([pd.read_csv("answers.csv").assign(suite=f"s{i}") for i in range(5)])
    table["task"] += table["suite"]
    table.to_csv("suites.csv", index=False)
    run = CliRunner().invoke(app, ["evaluate", "suites.csv", *ROLES, "--score", "right", "--family", "suite"])
    assert run.exit_code == 0, run.output
    assert "For tasks of suites like these" in run.output
    assert "leave out --family" in " ".join(run.output.split())


@pytest.mark.usefixtures("folder")
def test_passages_are_named_by_an_option():
    table = pd.read_csv("answers.csv")
    table.assign(passage=table["task"] + (table["item"] // 4).astype(str)).to_csv("passages.csv", index=False)
    run = CliRunner().invoke(app, ["evaluate", "passages.csv", *ROLES, "--score", "right", "--cluster", "passage"])
    assert run.exit_code == 0, run.output
    assert "60 items in 15 passages: the variance of a difference on these tasks is" in run.output
    run = CliRunner().invoke(app, ["evaluate", "passages.csv", *ROLES, "--score", "right", "--cluster", "task"])
    assert "error: --task and --cluster name the same column, 'task'." in run.output


@pytest.mark.usefixtures("folder")
def test_a_report_asks_for_no_more_than_what_only_the_user_knows():
    rows = [(m, t, i + j / 10) for i, m in enumerate("abc") for j, t in enumerate("uvwxyz")]
    pd.DataFrame(rows, columns=["method", "dataset", "result"]).to_csv("runs.csv", index=False)
    run = CliRunner().invoke(app, ["report", "runs.csv", "--yes"])
    assert run.exit_code == 2
    assert "error: --direction must be given. Columns of runs.csv: method, dataset, result." in run.output
    assert run.output.count("--score result --direction") == 2


@pytest.mark.usefixtures("folder")
def test_what_is_missing_is_said_in_options():
    run = CliRunner().invoke(app, ["evaluate", "answers.csv", *ROLES])
    assert run.exit_code == 2
    assert "error: --score must be given. Columns of answers.csv: model, task, item, right." in run.output
    doubled = pd.concat([pd.read_csv("answers.csv")] * 2)
    doubled.to_csv("twice.csv", index=False)
    run = CliRunner().invoke(app, ["evaluate", "twice.csv", *ROLES, "--score", "right"])
    assert "name their column: --epoch COLUMN" in run.output


def test_a_table_of_scores_has_another_command(folder):
    table = pd.DataFrame({"Method": ["RF", "NN"], "iris": ["0.85 ± 0.01", "0.86 ± 0.02"], "wine": ["0.97", "0.94"]})
    table.to_csv(folder / "paper.csv", index=False)
    run = CliRunner().invoke(app, ["evaluate", "paper.csv"])
    assert run.exit_code == 2
    assert "holds scores of methods on data sets, and no answers to items. Compare the methods: " in run.stderr
    assert "lmemtest report paper.csv" in run.stderr


@pytest.mark.usefixtures("folder")
def test_each_kind_of_failed_answers_has_an_option():
    table = pd.read_csv("answers.csv")
    table["status"] = ["timeout" if i % 11 == 1 else "infra" if i % 7 == 3 else "ok" for i in range(len(table))]
    table["right"] = table["right"].where(table["status"] == "ok")
    table.to_csv("failed.csv", index=False)
    told = ["evaluate", "failed.csv", *ROLES, "--score", "right"]
    run = CliRunner().invoke(app, [*told, "--failed", "status", "--failed", "infra=drop", "--failed", "timeout=0"])
    assert run.exit_code == 0, run.output
    assert "Failed answers (infra) were left out" in run.stdout
    assert "Failed answers (timeout) count 0" in run.stdout
    assert "--failed missing --score-failures 0" in CliRunner().invoke(app, told).stderr
    assert "where failed is a column of kinds" in CliRunner().invoke(app, [*told, "--failed", "infra=drop"]).stderr
    table["right"] = table["right"].astype(object).where(table["status"] == "ok", table["status"].str.upper())
    table.to_csv("failed.csv", index=False)
    words = CliRunner().invoke(app, [*told, "--failed", "right", "--failed", "INFRA=drop", "--failed", "TIMEOUT=0"])
    assert words.stdout.lower() == run.stdout.lower()


def test_repeated_attempts_have_a_command_with_the_costs_of_a_plan(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = pd.DataFrame(
        [(m, i, e, (i % (4 + m) > 1) != (i % 7 == e)) for m in (1, 2) for i in range(20) for e in range(3)]
    )
    rows.set_axis(["model", "item", "run", "right"], axis=1).astype({"right": int}).to_csv("runs.csv", index=False)
    words = ["attempts", "runs.csv", "--model", "model", "--item", "item", "--score", "right", "--k", "2", "--k", "3"]
    run = CliRunner().invoke(app, [*words, "--epoch", "run", "--cost", "item=40"])
    assert run.exit_code == 0, run.output
    assert "Repeated attempts of 2 models at 20 items of 1 task, by right" in run.output
    assert "For a budget of 1,720 the best is " in run.output
    assert "--epoch must be the name" in CliRunner().invoke(app, words).output
