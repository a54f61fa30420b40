"""What tools write is recognised by its columns or keys, and nothing else is."""

from __future__ import annotations

import itertools
import json
import shlex
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from exported import FRAMES, answers, inspect_log, mlflow, optuna_studies, packed, search, trajectories, wandb
from importing import FILES
from refusals import refuses

import lmemtest as lt
from lmemtest.bench.data.recognised import Recognised, answers_in, pattern_of, recognised, recognised_file
from lmemtest.bench.data.roles import answer_roles
from lmemtest.bench.importers.evaluation_samples import log_of
from lmemtest.core.caller import on_command_line
from lmemtest.errors import DataError


@pytest.mark.parametrize("name", FRAMES)
def test_a_table_is_known_by_its_columns_and_read_by_a_whole_command(name: str, tmp_path: Path) -> None:
    make, code, command = FRAMES[name]
    make().to_csv(tmp_path / "f.csv", index=False)
    found = recognised(pd.read_csv(tmp_path / "f.csv"), "f.csv")
    assert found is not None
    assert (found.code, shlex.join(found.command)) == (code, command)
    assert set(found.columns) <= set(make().columns)
    assert code in ("battles", "tensorboard") or found.call.startswith(f"lmemtest.importers.{found.tool}('f.csv'")


def test_what_only_the_user_knows_stays_open() -> None:
    found = recognised(optuna_studies(), "trials.csv")
    assert found is not None
    assert found.lacking == {"direction": "minimize|maximize", "names": "{algorithm}-{benchmark}-{seed}"}
    with on_command_line():
        words = found.in_words("trials.csv")
    assert words.splitlines()[1] == (
        "  lmemtest convert optuna trials.csv --direction minimize --names '{algorithm}-{benchmark}-{seed}'"
    )
    assert "Only you can say whether low or high scores are good" in words
    assert words.endswith("in names such as 'TPE-a-0'?")
    said = found.with_options({"direction": "minimize", "names": "{algorithm}-{benchmark}-{seed}"})
    assert said.lacking == {}
    assert said.command[-4:] == ("--direction", "minimize", "--names", "{algorithm}-{benchmark}-{seed}")


def test_of_several_metrics_the_one_of_the_test_set_goes_first_and_the_others_are_named() -> None:
    found = recognised(wandb(), "f.csv")
    assert found is not None
    assert (found.options["score"], found.others) == ("test_acc", {"score": ("train_acc",)})
    unknown = mlflow().rename(columns={"metrics.val_acc": "metrics.x", "metrics.val_loss": "metrics.y"})
    open_ = recognised(unknown)
    assert open_ is not None
    assert open_.lacking == {"score": "y|x", "direction": "minimize|maximize"}


def ordinary() -> dict[str, pd.DataFrame]:
    """Tables of runs, which are for no importer."""
    rng = np.random.default_rng(3)
    rows = pd.DataFrame(itertools.product("ABC", "uvwxyz", range(5)), columns=["method", "dataset", "seed"])
    scored = rows.assign(accuracy=rng.uniform(size=len(rows)), time=1.0)
    epochs = rows.merge(pd.DataFrame({"step": range(3)}), how="cross")
    return {
        "long": scored,
        "epochs": epochs.assign(val_acc=rng.uniform(size=len(epochs)), run_id="x", status="ok"),
        "wide": pd.DataFrame(rng.uniform(size=(12, 3)), columns=list("ABC")).assign(dataset=range(12)),
        "failed": scored.assign(status="ok", failed=0, Name="x", State="finished"),
        "solvers": scored.assign(solved=1, accuracy=np.nan),
        "pairs": pd.DataFrame({"train": list("abcd"), "test": list("bcda"), "score": rng.uniform(size=4)}),
        "one": scored.head(1),
        "none": scored.head(0),
    }


@pytest.mark.parametrize("name", ordinary())
def test_ordinary_tables_are_not_taken_for_exports(name: str) -> None:
    assert recognised(ordinary()[name]) is None


@pytest.mark.parametrize(
    ("names", "pattern"),
    [
        (["a-seed0", "a-seed1", "b-seed0"], "{algorithm}-seed{seed}"),
        (["a_1", "a_2", "b_1"], "{algorithm}_{seed}"),
        (["ours", "base"], "{algorithm}"),
        (["RF-iris-0", "RF-wine-0", "SVC-iris-0"], None),
        (["RF-iris", "RF-wine", "SVC-iris"], None),
        (["a-1", "b_2"], None),
        (["glad-sun-7", "icy-moon-8"], None),  # names that Weights & Biases makes up: a run each
        (["resnet50", "resnet101"], None),
    ],
)
def test_names_are_taken_apart_only_where_nothing_else_is_possible(names: list[str], pattern: str | None) -> None:
    assert pattern_of(names) == pattern


# ---------------------------------------------------------------------------------------------------------- json files


def of_json(path: Path, content: Any) -> Recognised | None:
    path.write_text(json.dumps(content, indent=1))
    return recognised_file(path)


@pytest.mark.parametrize(
    ("content", "code", "options"),
    [
        (trajectories(), "trajectories", {}),
        ({"s1": {"d1": {"a": [0.1, 0.2]}}}, "hpob", {}),
        ({"GP": {"s1": {"d1": {"a": [0.1, 0.2]}}}}, "hpob", {}),
        ({"DQN": [[0.5, 1.2], [0.4, 1.0]]}, "rliable", {"direction": "maximize"}),
        ({"SVC": {"iris": {"fit_time": [1, 2], "test_acc": [0.9, 0.8], "test_f1": [1, 1]}}}, "sklearn",
         {"metric": "acc"}),
        ([{"model": "a", "task": "t", "tags": ["x"], "acc": 0.5}, {"model": "b", "task": "t", "tags": [], "acc": 1}],
         None, None),
        ({"a": 1}, None, None),
        ([], None, None),
        ({"a": {"b": {"c": {"d": {"e": [1.0]}}}}}, None, None),
    ],
)  # fmt: skip
def test_json_files_are_known_by_their_keys(content: Any, code: str | None, options: Any, tmp_path: Path) -> None:
    found = of_json(tmp_path / "f.json", content)
    assert (found and found.code, found and found.options) == (code, options)


def test_the_log_of_one_model_leads_to_those_beside_it(tmp_path: Path) -> None:
    for name in ("b", "a"):
        assert of_json(tmp_path / f"{name}.json", inspect_log(name)) is not None
    (tmp_path / "other.json").write_text("{}")
    found = recognised_file(tmp_path / "b.json")
    assert found is not None
    assert (found.tool, found.files) == ("inspect_ai", (str(tmp_path / "a.json"), str(tmp_path / "b.json")))
    assert found.runs().algorithms == ("a", "b")


def test_samples_of_one_model_lead_to_the_folder_of_all(tmp_path: Path) -> None:
    for model in ("m1", "m2"):
        (tmp_path / model).mkdir()
        sample = {"doc_id": 0, "doc": {}, "target": "0", "resps": [], "filtered_resps": [], "acc": 1.0, "acc_norm": 0.0}
        (tmp_path / model / "samples_arc_2025.jsonl").write_text(json.dumps(sample) + "\n")
    found = recognised_file(tmp_path / "m1" / "samples_arc_2025.jsonl")
    assert found is not None
    assert found.command == ("convert", "lm_eval", str(tmp_path), "--metric", "acc")
    assert found.others == {"metric": ("acc_norm",)}


def test_unreadable_json_is_left_to_the_reader(tmp_path: Path) -> None:
    for name, content in (("broken.json", b'{"a": '), ("binary.json", b"\xff\xfe\x00"), ("f.csv", b"a,b\n")):
        (tmp_path / name).write_bytes(content)
        assert recognised_file(tmp_path / name) is None
    assert recognised_file(tmp_path / "nowhere.json") is None


# -------------------------------------------------------------------------------------------------- logs of inspect_ai


@pytest.mark.parametrize("summed_up", [True, False])
def test_packed_and_plain_logs_hold_the_same_runs(summed_up: bool, tmp_path: Path) -> None:
    logs = {name: inspect_log(name, shift) for shift, name in enumerate(("a", "b"))}
    for name, log in logs.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(log))
        packed(tmp_path / f"{name}.eval", log, summed_up=summed_up)
    plain = lt.importers.inspect_ai([tmp_path / "a.json", tmp_path / "b.json"])
    by_suffix = lt.importers.inspect_ai(str(tmp_path / "*.eval"))
    key = ["model", "id", "epoch"]
    (tmp_path / "logs.json").write_text('{"a.json": {}}')  # other json in a folder is not read
    for name in ("a", "b"):
        (tmp_path / f"{name}.eval").unlink()
    for other in (by_suffix, lt.importers.inspect_ai(tmp_path)):
        frames = (runs.to_frame().sort_values(key, ignore_index=True) for runs in (plain, other))
        pd.testing.assert_frame_equal(*frames)
    right = [x["scores"]["choice"]["value"] == "C" for log in logs.values() for x in log["samples"]]
    assert plain.to_frame()["choice"].tolist() == [float(value) for value in right]
    assert (plain.algorithms, plain.benchmark, plain.seed, plain.ignore) == (("a", "b"), "task_name", "id", ("epoch",))


def test_a_log_says_its_errors_its_parts_and_how_it_ended(tmp_path: Path) -> None:
    log = inspect_log("a", status="error")
    log["samples"] = [
        {"id": 1, "epoch": 1, "scores": {"judge": {"value": {"style": 0.5, "facts": 1.0}}}},
        {"id": 2, "epoch": 1, "error": {"message": "no connection"}},
        {"id": 3, "epoch": 1, "score": {"value": "C"}},
    ]
    path = tmp_path / "a.json"
    path.write_text(json.dumps(log))
    table, status = log_of(path)
    assert status == "error"
    assert table["score_judge_style"].tolist()[0] == 0.5
    assert table["score_score"].tolist()[2] == "C"
    assert table["error"].fillna("").tolist() == ["", "no connection", ""]
    path.write_text(json.dumps(inspect_log("a", status="cancelled", samples=None)))
    refuses(DataError, r"holds no samples: its status is 'cancelled'", lt.importers.inspect_ai, path)


@pytest.mark.parametrize(
    ("content", "message"), [(b"PK no zip", "cannot be read .* Is it complete"), (None, "it has no header")]
)  # fmt: skip
def test_a_damaged_log_is_refused_in_words(content: bytes | None, message: str, tmp_path: Path) -> None:
    path = tmp_path / "x.eval"
    if content is None:
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("other.json", "{}")
    else:
        path.write_bytes(content)
    refuses(DataError, message, lt.importers.inspect_ai, path)


# ------------------------------------------------------------------------------------------------ studies and searches


@pytest.mark.parametrize("column", ["study", "study_name", "experiment"])
def test_studies_in_one_table_are_those_of_as_many_files(column: str, tmp_path: Path) -> None:
    table = optuna_studies(column)
    pattern = "{algorithm}-{benchmark}-{seed}"
    for name, trials in table.groupby(column):
        trials.drop(columns=column).to_csv(tmp_path / f"{name}.csv", index=False)
    given: Any = {"study": column} if column == "experiment" else {}
    one = lt.importers.optuna(table, names=pattern, direction="minimize", **given)
    many = lt.importers.optuna(str(tmp_path / "*.csv"), names=pattern, direction="minimize")
    key = ["algorithm", "benchmark", "seed", "trial"]
    pd.testing.assert_frame_equal(
        one.to_frame().sort_values(key, ignore_index=True), many.to_frame().sort_values(key, ignore_index=True)
    )
    assert "8 pruned trials: taken as without a value." in one.notes
    with pytest.raises(DataError, match="Nothing says the algorithm of TPE-a-0, TPE-a-1"):
        lt.importers.optuna(table, direction="minimize", **given)
    for name in ("iris", "wine"):  # searches without names are called as their files
        search().to_csv(tmp_path / f"{name}.csv", index=False)
    runs = lt.importers.sklearn([tmp_path / "iris.csv", tmp_path / "wine.csv"])
    assert runs.levels("benchmark") == ("iris", "wine")


# ---------------------------------------------------------------------------------------------------- answers to items


@pytest.mark.parametrize("task", ["subject", "suite", "group", "x1", "kind_of_thing"])
def test_what_groups_items_is_the_task_whatever_it_is_called(task: str) -> None:
    found = answer_roles(answers(subject=task))
    assert found == {"model": "model", "item": "question_id", "task": task, "score": "correct", "epoch": "attempt"}
    assert answer_roles(answers(subject=task, attempt="k")) == {**found, "epoch": "k"}  # where items come again


def test_numbers_that_begin_again_in_every_task_are_items_of_it() -> None:
    table = answers().assign(question_id=lambda t: t["question_id"].str.partition("_")[2])
    found = answer_roles(table)
    assert found is not None
    assert (found["item"], found["task"]) == ("question_id", "subject")


def test_the_coarser_of_two_groupings_is_the_family() -> None:
    table = answers().assign(suite=lambda t: t["subject"].map({"p": 1, "q": 1, "r": 2, "s": 2}))
    found = answer_roles(table)
    assert found is not None
    assert (found["task"], found["family"]) == ("subject", "suite")


def test_ratings_have_judges_and_the_narrowest_usual_scale() -> None:
    rows = list(itertools.product("xyz", range(12), ["ann", "ben"]))
    table = pd.DataFrame(rows, columns=["system", "prompt", "judge"]).assign(rating=[2 + i % 8 for i in range(72)])
    found = recognised(table, "f.csv")
    assert found is not None
    assert (found.code, shlex.join(found.command)) == (
        "ratings",
        "evaluate f.csv --model system --item prompt --score rating --judge judge --min 1 --max 10",
    )


@pytest.mark.parametrize("judge", [{}, {"judge": "gpt"}])
def test_grades_of_one_judge_whom_a_column_may_name_have_a_scale(judge: dict[str, str]) -> None:
    rows = list(itertools.product("xyz", range(12)))
    table = pd.DataFrame(rows, columns=["model", "item"]).assign(**judge, grade=[1 + i % 5 for i in range(36)])
    found = recognised(table, "f.csv")
    assert found is not None
    assert found.what == "grades of the answers of models to items"
    assert shlex.join(found.command) == "evaluate f.csv --model model --item item --score grade --min 1 --max 5"
    assert recognised(table.rename(columns={"grade": "n"}).drop(columns=list(judge))) is None  # any whole number
    assert recognised(table.assign(grade=table["grade"] * 37)) is None  # on no usual scale


def test_wide_answers_have_a_column_per_model_and_rows_that_are_items() -> None:
    rng = np.random.default_rng(5)
    table = pd.DataFrame(rng.integers(2, size=(30, 3)), columns=["gpt", "llama", "qwen"])
    assert answer_roles(table) == {"model": ["gpt", "llama", "qwen"]}
    assert answer_roles(table.assign(perfect=1)) == {"model": ["gpt", "llama", "qwen", "perfect"]}
    assert answer_roles(table.assign(use_amp=True)) == {"model": ["gpt", "llama", "qwen"]}
    table = table.assign(id=range(100, 130), subject=["a", "b", "c"] * 10)
    assert answer_roles(table) == {"model": ["gpt", "llama", "qwen"], "item": "id", "task": "subject"}


def test_graded_answers_have_roles_and_are_no_certain_case_for_another_command() -> None:
    table = answers().assign(correct=np.linspace(0.0, 1.0, 480))
    found = answer_roles(table)
    assert found is not None
    assert found["score"] == "correct"
    assert recognised(table) is None


def test_solved_or_not_beside_another_score_is_not_taken_for_answers() -> None:
    rows = list(itertools.product("ABC", range(15), range(2)))
    table = pd.DataFrame(rows, columns=["solver", "instance", "seed"])
    table = table.assign(solved=[i % 2 for i in range(90)], runtime=1.5)
    assert recognised(table) is None
    assert answers_in(table, score="runtime") is None
    assert answers_in(table, score="solved") is not None
    assert recognised(table.drop(columns="runtime")) is not None


@pytest.mark.parametrize("file", sorted(FILES.glob("*.csv")), ids=lambda path: path.name)
def test_every_stored_export_is_recognised(file: Path) -> None:
    found = recognised(pd.read_csv(file), str(file))
    assert found is not None
    assert file.name.startswith(found.tool.split("_")[0])


@pytest.mark.parametrize(
    ("content", "code", "words"),
    [
        ({"results": {"piqa": {"acc,none": 0.7}}, "configs": {}, "versions": {}}, "lm_eval_results", "--log_samples"),
        ({"stats": {}, "data": [[1, None, 0, 0.0, 0.3]], "configs": {"1": {}}}, "smac", "--budget trial --best-so-far"),
    ],
)
def test_what_holds_no_runs_says_how_they_are_had(content: Any, code: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "f.json").write_text(json.dumps(content))
    found = recognised_file(tmp_path / "f.json")
    assert found is not None
    assert (found.code, found.tool) == (code, "")
    assert words in found.in_words("It")


def test_names_of_runs_are_taken_apart_at_the_sign_that_they_have() -> None:
    table = wandb().drop(columns=["algo", "env_id", "seed"], errors="ignore")
    table["Name"] = [f"ppo-Hopper-v4-{i}" for i in range(len(table))]
    found = recognised(table)
    assert found is not None
    assert found.lacking.get("names", "{algorithm}-{benchmark}-{seed}") == "{algorithm}-{benchmark}-{seed}"
