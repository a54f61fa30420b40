"""``lmemtest gate``: its exit codes are answers, and whatever goes wrong is none of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from lmemtest.bench.gate.policy import read_policy

ROLES = ["--score", "accuracy", "--benchmark", "task", "--margin", "0.02"]
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with versions that are as good as old.csv, worse, and unclear; it is the current one."""
    rng = np.random.default_rng(5)
    level = rng.uniform(0.5, 0.9, 9)
    for name, loss, noise in (("old", 0.0, 0.0), ("good", 0.0, 0.01), ("bad", 0.06, 0.01), ("unclear", 0.02, 0.02)):
        rows = {"task": [f"t{i}" for i in range(9)], "accuracy": level - loss + rng.normal(0.0, 0.005 + noise, 9)}
        pd.DataFrame(rows).to_csv(tmp_path / f"{name}.csv", index=False)
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(run: Run) -> Run:
    return partial(run, "gate")


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("new", "code", "title"), [("good", 0, "not worse"), ("bad", 1, "worse"), ("unclear", 2, "cannot say")]
)
def test_the_exit_code_is_the_answer(run: Run, new: str, code: int, title: str) -> None:
    got, out, err = run(f"{new}.csv", "old.csv", *ROLES)
    assert (got, err) == (code, "")
    assert out.startswith(f"Gate: {title}, for tasks like these 9\n")


def test_it_writes_a_summary_for_people_and_all_digits_for_programs(run: Run, folder: Path) -> None:
    code, out, _ = run("good.csv", "old.csv", *ROLES, "-o", "gate.md", "-o", "gate.json")
    assert code == 0
    assert out.splitlines()[-2:] == [str(folder / "gate.md"), str(folder / "gate.json")]
    page = (folder / "gate.md").read_text(encoding="utf-8")
    assert page.startswith("# Gate: not worse, for tasks like these 9\n")
    assert "| accuracy |" in page
    found = json.loads((folder / "gate.json").read_text(encoding="utf-8"))
    assert {name: found["decision"][0][name] for name in ("decision", "exit_code")} == {
        "decision": "not worse",
        "exit_code": 0,
    }
    assert (found["metrics"][0]["metric"], len(found["tasks"])) == ("accuracy", 9)
    printed = run("good.csv", "old.csv", *ROLES, "--json", "-o", "gate.md")[1]
    assert json.loads(printed) == found


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["good.csv", "gone.csv", *ROLES], "error: There is no file 'gone.csv'"),
        (["good.csv", "old.csv", *ROLES[:-1], "x"], "error: --margin must be a positive number"),
        (["good.csv", "old.csv", *ROLES, "--margin", "f1=1%"], "error: --margin names 'f1', which is no metric"),
        (["good.csv", "old.csv", *ROLES, "--margin", "0.1"], "all metrics have two values."),
        (["good.csv", "old.csv", *ROLES, "--alfa", "0.1"], "No such option"),
        (["good.csv", "old.csv", *ROLES, "--tasks", "all"], "'all' is not one of"),
        (["good.csv", "old.csv", *ROLES, "--allow", "copies"], "error: --allow must be 'missing' or 'identical'"),
        (["good.csv", "old.csv"], "error: --margin must be given"),
        (["good.csv", "old.csv", *ROLES, "--policy", "gate.toml"], "error: --policy must be the path of a TOML file"),
        (["good.csv", "old.csv", *ROLES, "-o", "gate.pdf"], "error: -o must end in one of"),
    ],
)
def test_a_wrong_command_is_no_answer(run: Run, arguments: list[str], message: str) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (3, "")
    assert message in err


@pytest.mark.usefixtures("folder")
def test_a_failure_of_the_program_is_no_answer(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a defect")

    monkeypatch.setattr("lmemtest.bench.gate.gate.gate", broken)
    code, out, err = run("good.csv", "old.csv", *ROLES)
    assert (code, out) == (3, "")
    assert "ZeroDivisionError: a defect" in err


@pytest.mark.usefixtures("folder")
def test_advice_is_in_options(run: Run) -> None:
    assert "--allow identical." in run("old.csv", "old.csv", *ROLES)[1]
    pd.read_csv("good.csv").iloc[1:].to_csv("part.csv", index=False)
    assert "--allow missing." in run("part.csv", "old.csv", *ROLES)[1]


# ------------------------------------------------------------------------------------------------------ policies

ACTION = Path(__file__).parents[1] / "examples" / "gate_action"
POLICY = '[critical.accuracy]\nmargin = 0.02\nbar = 0.3\nshare = "50 %"\n'


@pytest.mark.parametrize(
    ("new", "code", "title"), [("good", 0, "pass"), ("bad", 1, "fail"), ("unclear", 2, "insufficient")]
)
def test_with_a_policy_the_exit_code_is_the_verdict(run: Run, folder: Path, new: str, code: int, title: str) -> None:
    (folder / "gate.toml").write_text(POLICY, encoding="utf-8")
    roles = ["--policy", "gate.toml", "--benchmark", "task", "--markdown", "gate.md", "-o", "gate.json"]
    got, out, err = run(f"{new}.csv", "old.csv", *roles)
    assert (got, err) == (code, "")
    assert out.startswith(f"Gate: {title}, for tasks like these 9\n")
    page = (folder / "gate.md").read_text(encoding="utf-8")
    assert page.startswith(f"# Gate: {title}, for tasks like these 9\n")
    assert "| tier | metric | rule | estimate | bound | limit | verdict | next_step |" in page
    found = json.loads((folder / "gate.json").read_text(encoding="utf-8"))
    assert (found["decision"][0]["decision"], found["metrics"][0]["tier"]) == (title, "critical")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (POLICY.replace("margin", "margn"), "error: gate.toml: [critical.accuracy]: the key 'margn' is unknown."),
        ("alpha = 2\n" + POLICY, "error: gate.toml: the key 'alpha' must be a number between 0 and 1"),
        (POLICY.replace("accuracy", "acuracy"), "error: gate.toml (new) names the column 'acuracy'"),
        (POLICY.replace('"50 %"', "50 %"), "error: gate.toml is not written in TOML"),
    ],
)
def test_a_wrong_policy_is_no_verdict(run: Run, folder: Path, text: str, message: str) -> None:
    (folder / "gate.toml").write_text(text, encoding="utf-8")
    code, out, err = run("good.csv", "old.csv", "--policy", "gate.toml", "--benchmark", "task")
    assert (code, out) == (3, "")
    assert message in err
    code, _, err = run("good.csv", "old.csv", "--policy", "gate.toml", "--benchmark", "task", "--alpha", "0.1")
    assert code == 3


@pytest.mark.level(2)  # it starts processes
@pytest.mark.parametrize(("new", "rule", "code"), [("bad", "fail", 1), ("unclear", "fail", 2), ("unclear", "warn", 0)])
def test_the_action_runs_the_gate_and_writes_the_summary(folder: Path, new: str, rule: str, code: int) -> None:
    yaml = pytest.importorskip("yaml")
    action = yaml.safe_load((ACTION / "action.yml").read_text(encoding="utf-8"))
    assert (action["runs"]["using"], set(action["inputs"])) == (
        "composite",
        {"new", "old", "policy", "benchmark", "seed", "insufficient"},
    )
    step = action["runs"]["steps"][-1]
    assert "${{" not in step["run"]  # inputs come as variables
    assert {name.lower(): f"${{{{ inputs.{name.lower()} }}}}" for name in step["env"]} == {
        name.lower(): value for name, value in step["env"].items()
    }
    (folder / "gate.toml").write_text(POLICY, encoding="utf-8")
    program = folder / "lmemtest"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m lmemtest "$@"\n', encoding="utf-8")
    program.chmod(0o755)
    given = {"NEW": f"{new}.csv", "OLD": "old.csv", "POLICY": "gate.toml", "BENCHMARK": "task", "SEED": ""}
    files = {name: str(folder / name) for name in ("GITHUB_STEP_SUMMARY", "GITHUB_OUTPUT")}
    path = f"{folder}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-e", "-o", "pipefail", "-c", step["run"]],
        env={**os.environ, **given, **files, "INSUFFICIENT": rule, "PATH": path},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == code, done.stderr
    verdict = {"bad": "fail", "unclear": "insufficient"}[new]
    assert (folder / "GITHUB_STEP_SUMMARY").read_text(encoding="utf-8").startswith(f"# Gate: {verdict}, ")
    assert (folder / "GITHUB_OUTPUT").read_text(encoding="utf-8") == f"code={2 if new == 'unclear' else 1}\n"
    assert ("::warning::" in done.stdout) == (rule == "warn")


def test_the_policy_of_the_action_is_one() -> None:
    policy = read_policy(ACTION / "gate.toml")
    assert [check["metric"] for check in policy.checks] == ["accuracy", "accuracy", "log_loss", "f1", "seconds"]
