"""Tables and files as tools write them, made anew for each test."""

from __future__ import annotations

import itertools
import json
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd


def mlflow() -> pd.DataFrame:
    rows = list(itertools.product(["RF", "SVC"], ["iris", "wine"], range(3)))
    table = pd.DataFrame(rows, columns=["params.model", "params.dataset", "params.seed"])
    return table.assign(
        run_id=[f"{i:x}" for i in range(len(rows))],
        status=["FAILED", *["FINISHED"] * (len(rows) - 1)],
        **{"metrics.val_loss": 0.3, "metrics.val_acc": np.linspace(0.6, 0.9, len(rows)), "params.lr": 0.1},
    )


def mlflow_page() -> pd.DataFrame:
    columns = {"params.model": "model", "params.dataset": "dataset", "params.seed": "seed", "run_id": "Run ID"}
    columns |= {"status": "Status", "metrics.val_acc": "val_acc", "metrics.val_loss": "val_loss", "params.lr": "lr"}
    return mlflow().rename(columns=columns).assign(**{"Start Time": "2024-05-01 10:00:00", "Name": "x", "User": "me"})


def wandb() -> pd.DataFrame:
    rows = list(itertools.product(["RF", "SVC"], range(3)))
    table = pd.DataFrame([(f"{model}-{seed}", model, seed) for model, seed in rows], columns=["Name", "model", "seed"])
    own = {"State": ["crashed", *["finished"] * 5], "Created": "2024", "Runtime": 61, "Sweep": "", "Tags": ""}
    return table.assign(**own, train_acc=0.99, test_acc=np.linspace(0.6, 0.9, 6), _step=100)


def wandb_names() -> pd.DataFrame:
    return wandb().drop(columns=["model", "seed", "train_acc"])


def wandb_chart() -> pd.DataFrame:
    rng, columns = np.random.default_rng(0), {"Step": np.arange(0, 100, 10)}
    for name in ("base-seed0", "base-seed1", "ours-seed0", "ours-seed1"):
        line = f"{name} - val/acc"
        columns[line] = columns[f"{line}__MIN"] = columns[f"{line}__MAX"] = rng.uniform(size=10)
    return pd.DataFrame(columns)


def optuna(**columns: Any) -> pd.DataFrame:
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"number": range(8), "value": rng.uniform(size=8), "params_x": 0.1, "state": "COMPLETE"})
    return table.assign(datetime_start="2024", datetime_complete="2024", **columns)


def optuna_studies(column: str = "study") -> pd.DataFrame:
    names = [f"{algorithm}-{task}-{seed}" for algorithm in ("TPE", "Random") for task in "ab" for seed in range(2)]
    table = pd.concat([optuna(**{column: name}) for name in names], ignore_index=True)
    table["value"] += 0.1 * np.random.default_rng(3).uniform(size=len(table))  # every study has trials of its own
    table.loc[table["number"] == 3, "state"] = "PRUNED"
    return table


def search() -> pd.DataFrame:
    rng = np.random.default_rng(8)
    splits = {f"split{k}_test_score": np.linspace(0.5, 0.8, 4) + 0.1 * rng.uniform(size=4) for k in range(3)}
    table = pd.DataFrame({"mean_fit_time": 0.1, "param_C": [1, 2, 3, 4], "params": "{}", **splits})
    return table.assign(mean_test_score=0.7, rank_test_score=1)


def amlb(*metrics: str) -> pd.DataFrame:
    rows = list(itertools.product(["RF", "TPOT"], ["kc2", "adult", "car"], range(3)))
    table = pd.DataFrame(rows, columns=["framework", "task", "fold"])
    of_task = dict(zip(["kc2", "adult", "car"], itertools.cycle(metrics or ("auc",)), strict=False))
    result = np.linspace(0.6, 0.9, len(rows))
    result[0] = np.nan
    return table.assign(result=result, metric=table["task"].map(of_task), constraint="1h8c", info="", type="binary")


def inspect_log(model: str, shift: int = 0, **header: Any) -> dict[str, Any]:
    samples = [
        {"id": i, "epoch": e, "scores": {"choice": {"value": "CI"[(i + e + shift) % 3 == 0], "answer": "A"}}}
        for i in range(12)
        for e in (1, 2)
    ]
    return {"version": 2, "status": "success", "eval": {"task": "arc", "model": model}, "samples": samples, **header}


def packed(path: Path, log: dict[str, Any], *, summed_up: bool) -> None:
    """A log as inspect_ai packs it; a run that was stopped has no summary."""
    log = dict(log)
    samples = log.pop("samples")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json" if summed_up else "_journal/start.json", json.dumps(log))
        for sample in samples:
            archive.writestr(f"samples/{sample['id']}_epoch_{sample['epoch']}.json", json.dumps(sample))
        if summed_up:
            archive.writestr("summaries.json", json.dumps(samples))


def trajectories() -> list[dict[str, Any]]:
    course = [{"role": "user", "content": "hello"}, {"role": "assistant", "content": "hi"}]
    return [
        {"task_id": i, "reward": i % 2, "info": {"task": {}}, "traj": course, "trial": j}
        for i in range(3)
        for j in range(2)
    ]


def battles() -> pd.DataFrame:
    rng = np.random.default_rng(2)
    pairs = [rng.choice(["A", "B", "C"], size=2, replace=False) for _ in range(40)]
    who = rng.choice(["model_a", "model_b", "tie"], size=40)
    return pd.DataFrame(pairs, columns=["model_a", "model_b"]).assign(battle=range(40), winner=who)


FRAMES: dict[str, tuple[Any, str, str]] = {
    "mlflow": (
        mlflow,
        "mlflow",
        "convert mlflow f.csv --score val_acc --direction maximize --algorithm model --benchmark dataset --seed seed",
    ),
    "mlflow_page": (
        mlflow_page,
        "mlflow",
        "convert mlflow f.csv --score val_acc --direction maximize --algorithm model --benchmark dataset --seed seed",
    ),
    "wandb": (
        wandb,
        "wandb",
        "convert wandb f.csv --score test_acc --direction maximize --algorithm model --seed seed",
    ),
    "wandb_names": (
        wandb_names,
        "wandb",
        "convert wandb f.csv --score test_acc --direction maximize --names '{algorithm}-{seed}'",
    ),
    "wandb_chart": (
        wandb_chart,
        "wandb_chart",
        "convert wandb f.csv --direction maximize --names '{algorithm}-seed{seed}'",
    ),
    "optuna": (optuna, "optuna", "convert optuna f.csv"),
    "optuna_studies": (optuna_studies, "optuna", "convert optuna f.csv"),
    "search": (search, "sklearn", "convert sklearn f.csv"),
    "amlb": (amlb, "amlb", "convert amlb f.csv"),
    "amlb_metrics": (lambda: amlb("auc", "neg_rmse"), "amlb", "convert amlb f.csv --metric all"),
    "tensorboard": (lambda: pd.DataFrame({"Wall time": [1.0], "Step": [1], "Value": [0.5]}), "tensorboard", ""),
    "battles": (battles, "battles", "votes f.csv --model-a model_a --model-b model_b --winner winner"),
}


def answers(**names: str) -> pd.DataFrame:
    """Three models on 20 questions of each of 4 subjects, twice, under other names and in any order."""
    rng = np.random.default_rng(4)
    rows = [
        (m, s, f"{s}_{i}", a, rng.integers(2)) for m, s, i, a in itertools.product("xyz", "pqrs", range(20), range(2))
    ]
    table = pd.DataFrame(rows, columns=["model", "subject", "question_id", "attempt", "correct"])
    return table.sample(frac=1.0, random_state=0, ignore_index=True).rename(columns=names)
