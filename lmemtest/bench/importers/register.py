"""Every importer, once: from here the package offers it, `lmemtest convert` has its command, files are recognised.

A new importer is a file of this folder and a row here. Its file may say what it recognises: ``of_columns(table)``, a
frame; ``of_record(record, file)``, a value of a json file or one row of such; ``of_names(content)``, a json object of
names within names; ``of_name(file)``, a suffix. Rows are plain data, since a help should not wait for pandas; a test
compares `options` with the arguments of the function.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Importer:
    """The file of an importer, what it reads, and the arguments that it takes after the files."""

    file: str
    reads: str
    options: tuple[str, ...]
    by_name: bool = False  # whether a file may be given as NAME=FILE
    items: dict[str, str] | None = None  # its roles as options of `evaluate`


_TRACKED = ("score", "direction", "algorithm", "benchmark", "seed", "budget", "metafeatures", "names")
_LOGGED = tuple(name for name in _TRACKED if name != "budget")
ANSWERS = {"model": "algorithm", "task": "benchmark", "item": "seed"}  # roles of runs by options of `evaluate`

IMPORTERS = {
    "optuna": Importer(
        "optuna_studies",
        "trials_dataframe() of Optuna",
        ("direction", "objective", "names", "study", "best_so_far"),
        by_name=True,
    ),
    "inspect_ai": Importer(
        "evaluation_samples",
        "logs of inspect_ai (.eval, .json), or its samples_df()",
        ("evals", "metric", "direction"),
        items=ANSWERS,
    ),
    "lm_eval": Importer(
        "evaluation_samples",
        "samples_*.jsonl of lm-evaluation-harness",
        ("metric", "filter", "direction"),
        by_name=True,
        items=ANSWERS,
    ),
    "sklearn": Importer(
        "sklearn_results", "cv_results_ or cross_validate of scikit-learn", ("metric", "parameter"), by_name=True
    ),
    "wide": Importer(
        "wide_tables",
        "a table of results as in papers: a column per algorithm",
        ("direction", "averaged", "benchmark", "algorithms", "score"),
    ),
    "hpob": Importer("hpob_curves", "curves as HPO-B publishes them (json)", ("direction", "first"), by_name=True),
    "carps": Importer("carps_logs", "logs.parquet of CARP-S", ("metric", "best_so_far")),
    "amlb": Importer("amlb_results", "results.csv of the AutoML benchmark", ("metric", "duplicates")),
    "promptfoo": Importer(
        "exported_evaluations", "results of promptfoo (json)", ("metric", "algorithm", "benchmark"), items=ANSWERS
    ),
    "deepeval": Importer(
        "exported_evaluations", "test runs of DeepEval (json)", ("metric", "direction", "algorithm"), items=ANSWERS
    ),
    "rliable": Importer("score_arrays", "scores as rliable takes them (json, npz)", ("games", "frames", "direction")),
    "tensorboard": Importer(
        "event_files", "event files of TensorBoard, or their folder", ("score", "direction", "names")
    ),
    "sb3": Importer(
        "monitor_files", "monitor.csv of Stable-Baselines3, or their folder", ("score", "direction", "names")
    ),
    "wandb": Importer("exported_runs", "csv exports of Weights & Biases", _TRACKED),
    "mlflow": Importer("exported_runs", "search_runs() of MLflow, or its csv", _TRACKED),
    "clearml": Importer("clearml_tasks", "sessions of ClearML's offline mode, or their folder", _LOGGED),
    "aim": Importer("aim_runs", "the folder of Aim's repository", _LOGGED),
}
