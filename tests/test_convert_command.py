"""The command line of importers: the same runs as in Python, with the command that reads them again."""

from __future__ import annotations

import inspect
import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from importing import FILES, tracked
from typer.testing import CliRunner, Result

import lmemtest as lt
from lmemtest.bench.importers.register import IMPORTERS
from lmemtest.cli import app
from lmemtest.cli.converting import converter

HPOB = {"s1": {"d1": {"a": [0.1, 0.2], "b": [0.3, 0.4]}, "d2": {"a": [0.5, 0.6], "b": [0.7, 0.8]}}}
HPOB["s2"] = HPOB["s1"]


@pytest.fixture(autouse=True)
def _in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def convert(*words: Any) -> Result:
    return CliRunner().invoke(converter, [*map(str, words)])


def read_again(found: Result) -> lt.Runs:
    """The runs by the options of the command that was printed last."""
    command = shlex.split(found.output.splitlines()[-1])
    assert command[:2] == ["lmemtest", "report"]
    options: dict[str, list[str]] = {}
    for word in command[3:]:
        if word.startswith("--"):
            last = options.setdefault(word[2:].replace("-", "_"), [])
        else:
            last.append(word)
    several = {"metafeatures": options.pop("metafeature", [])}
    several |= {name: options.pop(name, []) for name in ("family", "ignore")}
    own = options.pop("seed_own", None) is not None
    options.pop("score_failures", None)  # of the report
    given: Any = {name: value[0] for name, value in options.items()}
    return lt.read_runs(command[2], **given, **several, seed_shared=not own)


def test_every_importer_has_a_command_with_its_arguments() -> None:
    assert set(IMPORTERS) == set(lt.importers.__all__)
    for name, tool in IMPORTERS.items():
        _, *arguments = inspect.signature(getattr(lt.importers, name)).parameters
        assert set(tool.options) == set(arguments) - {"keys"}
        assert tool.by_name == ("keys" in arguments or name == "hpob")


EXPORT = ["--score", "val_acc", "--direction", "maximize"]
LOGGED = ["--score", "return", "--direction", "maximize"]
CASES = {
    "optuna": [FILES / "optuna", "--names", "{algorithm}_{seed}", "--direction", "minimize"],
    "sklearn": [FILES / "sklearn_cross_validate.json", "--metric", "accuracy"],
    "hpob": ["GP=gp.json", "RS=rs.json", "--direction", "maximize", "--first", "0"],
    "amlb": [FILES / "amlb_results.csv", "--metric", "all"],
    "inspect_ai": [FILES / "inspect_samples.csv", "--metric", "match"],
    "lm_eval": [FILES / "lm_eval", "--metric", "acc"],
    "promptfoo": [FILES / "promptfoo_results.json.gz", "--metric", "exact", "--benchmark", "task"],
    "deepeval": [FILES / "deepeval", "--direction", "maximize"],
    "tensorboard": [FILES / "tensorboard", "--score", "return", "--direction", "maximize"],
    "sb3": [FILES / "sb3"],
    "rliable": ["scores.npz", "--game", "Pong", "--game", "Breakout"],
    "wandb": [FILES / "wandb_runs.csv", *EXPORT, "--names", "{algorithm}-{benchmark}-{seed}"],
    "mlflow": [FILES / "mlflow_runs.csv", *EXPORT, "--algorithm", "model", "--seed", "seed", "--benchmark", "dataset"],
    "clearml": [FILES / "clearml", *LOGGED, "--algorithm", "algorithm", "--seed", "seed"],
    "aim": ["study", *LOGGED, "--names", "{algorithm}-{benchmark}-{seed}"],
    "wide": ["paper.csv", "--direction", "maximize", "--averaged", "5", "--only", "RF", "--only", "NN"],
    "carps": ["logs.parquet", "--single-trials"],
}


def in_python(name: str) -> lt.Runs:
    """The same in Python."""
    imp, export = lt.importers, {"score": "val_acc", "direction": "maximize"}
    roles: Any = {**export, "algorithm": "model", "benchmark": "dataset", "seed": "seed"}
    calls = {
        "optuna": lambda: imp.optuna(FILES / "optuna", names="{algorithm}_{seed}", direction="minimize"),
        "sklearn": lambda: imp.sklearn(
            json.loads((FILES / "sklearn_cross_validate.json").read_text()), metric="accuracy"
        ),
        "hpob": lambda: imp.hpob({"GP": HPOB, "RS": HPOB}, direction="maximize", first=0),
        "amlb": lambda: imp.amlb(FILES / "amlb_results.csv", metric="all"),
        "inspect_ai": lambda: imp.inspect_ai(FILES / "inspect_samples.csv", metric="match"),
        "lm_eval": lambda: imp.lm_eval(FILES / "lm_eval", metric="acc"),
        "promptfoo": lambda: imp.promptfoo(FILES / "promptfoo_results.json.gz", metric="exact", benchmark="task"),
        "deepeval": lambda: imp.deepeval(FILES / "deepeval", direction="maximize"),
        "tensorboard": lambda: imp.tensorboard(FILES / "tensorboard", score="return", direction="maximize"),
        "sb3": lambda: imp.sb3(FILES / "sb3"),
        "rliable": lambda: imp.rliable(arrays(), games=["Pong", "Breakout"]),
        "wandb": lambda: imp.wandb(FILES / "wandb_runs.csv", names="{algorithm}-{benchmark}-{seed}", **export),
        "mlflow": lambda: imp.mlflow(FILES / "mlflow_runs.csv", **roles),
        "clearml": lambda: imp.clearml(
            FILES / "clearml", score="return", direction="maximize", algorithm="algorithm", seed="seed"
        ),
        "aim": lambda: imp.aim(
            tracked(Path("study")), score="return", direction="maximize", names="{algorithm}-{benchmark}-{seed}"
        ),
        "wide": lambda: imp.wide(paper(), direction="maximize", averaged=5, algorithms=["RF", "NN"]),
        "carps": lambda: imp.carps(logs(), best_so_far=False),
    }
    return calls[name]()


def arrays() -> dict[str, np.ndarray]:
    return {"DQN": np.array([[0.5, 1.2], [0.4, np.nan]]), "C51": np.array([[0.9, 1.3]])}


def paper() -> pd.DataFrame:
    return pd.DataFrame({"data": ["01", "1", "NA"], "RF": ["0.9 ± 0.1", "0.8", "-"], "NN": [0.7, 0.6, 0.5], "n": 1})


def logs() -> pd.DataFrame:
    rows = [("S", task, name, 1, trial, trial / 10) for task in "ab" for name in ("X", "Y") for trial in (1, 2)]
    names = ["benchmark_id", "task_id", "optimizer_id", "seed", "n_trials", "trial_value__cost"]
    return pd.DataFrame(rows, columns=names)


@pytest.mark.daily(5)
@pytest.mark.parametrize(("name", "suffix"), [*((name, "csv") for name in IMPORTERS), ("wide", "parquet")])
def test_tables_hold_the_runs_that_python_has(name: str, suffix: str) -> None:
    if name in ("tensorboard", "aim"):
        pytest.importorskip(name, reason="its files are read by it")
    if name == "aim":
        tracked(Path("study"))
    for file in ("gp.json", "rs.json"):
        Path(file).write_text(json.dumps(HPOB))
    np.savez("scores.npz", **arrays())
    paper().to_csv("paper.csv", index=False)
    logs().to_parquet("logs.parquet")
    found = convert(name, *CASES[name], "-o", f"out.{suffix}")
    assert found.exit_code == 0, found.output
    again, wanted = read_again(found), in_python(name)
    assert again.roles() == wanted.roles()
    pd.testing.assert_frame_equal(again.to_frame(), wanted.to_frame(), check_dtype=False)
    said = in_options(wanted.notes)
    assert found.output.splitlines()[: len(said)] == said
    evaluated = "  lmemtest evaluate out.csv --model model --task task --item doc_id --score acc --direction maximize\n"
    assert (evaluated in found.output) == (name == "lm_eval")
    assert ("--epoch epoch --failed status --score-failures worst\n" in found.output) == (
        name in ("inspect_ai", "promptfoo")
    )


def test_answers_that_failed_are_wrong_if_the_user_says_so() -> None:
    found = convert("inspect_ai", FILES / "inspect_samples.csv", "--metric", "match", "--score-failures", "0")
    runs = lt.importers.inspect_ai(FILES / "inspect_samples.csv", metric="match").score_failures(0)
    again = read_again(found)
    assert (again.roles(), again.failed) == (runs.roles(), None)
    assert again.to_frame()["match"].tolist() == runs.to_frame()["match"].tolist()
    evaluate = next(line for line in found.output.splitlines() if line.startswith("  lmemtest evaluate "))
    assert CliRunner().invoke(app, shlex.split(evaluate)[1:]).exit_code == 0


def in_options(notes: tuple[str, ...]) -> list[str]:
    """Notes with the calls of Python as the command line has them."""
    calls = {
        "a mapping gives each its own": "each has its own",
        "runs.score_failures({kind: 'drop', ...})": "--failed KIND=POLICY",
        "runs.score_failures(...)": "--score-failures POLICY",
        "runs.at_budgets([...])": "--at-budget",
        "runs.normalize('rank')": "--normalize rank",
        "runs.best_so_far()": "--best-so-far",
    }
    for call, option in calls.items():
        notes = tuple(note.replace(call, option) for note in notes)
    return list(notes)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["optuna", FILES / "optuna"], "Give files by name, TPE=FILE or ALGORITHM,BENCHMARK,SEED=FILE, or say what"),
        (["optuna", FILES / "optuna", "--names", "{algorithm}_{seed}"],
         "--direction is required: --direction minimize if"),
        (["optuna", "A=x.csv", "y.csv"],
         "FILE must have a name for all or none, but 'y.csv' has none. Give NAME=FILE."),
        (["amlb", FILES / "amlb_results.csv"],
         "Say which, or keep each task in its own and normalise: --metric auc, or"),
        (["amlb", FILES / "amlb_results.csv", "--metric", "acc"], "--metric must be 'all' or one of 'auc', "),
        (["amlb", "amlb.csv"], "There is no file 'amlb.csv' in the folder"),
        (["wandb", FILES / "wandb_runs.csv", *EXPORT],
         "--algorithm must name a column, or --names '{algorithm}_{seed}' if"),
        (["wandb", FILES / "wandb_chart.csv", *EXPORT], "--names must say what the names of the lines are made of"),
        (["mlflow", FILES / "mlflow_runs.csv", *EXPORT, "--algorithm", "tool"], "--algorithm names the column 'tool'"),
        (["mlflow", "runs.xml", *EXPORT], "FILE must end in one of .parquet"),
        (["amlb", FILES / "amlb_results.csv", "-o", "runs.xlsx"],
         "-o must end in one of .csv, .parquet, got 'runs.xlsx'"),
        (["wide", "a.csv", "b.csv", "--direction", "maximize"], "table must be one table, got 2."),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_in_options(words: list[Any], message: str) -> None:
    found = convert(*words)
    assert found.exit_code == 2
    assert message in found.output, found.output
    assert not list(Path().iterdir())
