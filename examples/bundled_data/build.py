"""Build the bundled tables: train every configuration, then replay optimisers on the results.

    python examples/bundled_data/build.py            # everything
    python examples/bundled_data/build.py --check    # retrain and replay a small part, compare with the files

Needs the extra `data` (scikit-learn, Optuna).  With the library versions that the files record, a second run
writes the same bytes.
"""

# ruff: noqa: E402

from __future__ import annotations

import os

for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_variable] = "1"  # sums in one order; must be set before numpy is loaded

import argparse
import json
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pandas as pd
from models import FAMILIES, FIDELITIES, Family, evaluate
from replay import ALGORITHMS, PRIORS, Table, replay, stream
from tasks import SOURCES, load_task

N_CONFIGS = 256
SEEDS = range(25)
TARGET = Path(__file__).resolve().parents[2] / "lmemtest" / "bench" / "data" / "bundled"
LIBRARIES = ("numpy", "scipy", "scikit-learn", "statsmodels", "optuna")
HYPERPARAMETERS = tuple(dict.fromkeys(name for family in FAMILIES.values() for name in family.space))
RUN_KEY = ["benchmark", "prior", "algorithm", "seed", "budget"]


def points(family: Family) -> np.ndarray:
    """Return the configurations of a family, `(N_CONFIGS, d)` in the unit cube, for all data sets."""
    return stream("configurations", family.name).random((N_CONFIGS, len(family.space)))


def train(dataset: str, family: Family, trials: range) -> pd.DataFrame:
    """Train some of the configurations of one benchmark: a row per trial and fidelity."""
    task, cube = load_task(dataset), points(family)
    rows = []
    for trial in trials:
        config = family.config(cube[trial])
        head = {
            "benchmark": f"{family.name}-{dataset}",
            "model": family.name,
            "dataset": dataset,
            "trial": trial,
        }
        rows += [{**head, **row, **config} for row in evaluate(task, family, config, trial)]
    return pd.DataFrame(rows)


def tidy_trials(parts: list[pd.DataFrame]) -> pd.DataFrame:
    """Put the trained parts into one table with fixed columns and order."""
    columns = ["benchmark", "model", "dataset", "trial", "fidelity", "valid_loss", "test_loss", "cost"]
    frame = pd.concat(parts, ignore_index=True).reindex(columns=[*columns, *HYPERPARAMETERS])
    return frame.sort_values(["benchmark", "trial", "fidelity"], kind="stable", ignore_index=True)


def tables(trials: pd.DataFrame) -> list[Table]:
    """Turn the trial table into one look-up table per benchmark."""
    result = []
    for (benchmark, model, dataset), part in trials.groupby(["benchmark", "model", "dataset"]):
        shape = (-1, len(FIDELITIES))
        result.append(
            Table(
                benchmark=str(benchmark),
                model=str(model),
                dataset=str(dataset),
                points=points(FAMILIES[str(model)]),
                valid=part["valid_loss"].to_numpy().reshape(shape),
                test=part["test_loss"].to_numpy().reshape(shape),
            )
        )
    return result


def replay_all(table: Table, seeds: range) -> pd.DataFrame:
    """Replay every algorithm under both priors on one benchmark."""
    rows = []
    for prior in PRIORS:
        for algorithm in ALGORITHMS:
            for seed in seeds:
                head = {
                    "algorithm": algorithm,
                    "benchmark": table.benchmark,
                    "model": table.model,
                    "dataset": table.dataset,
                    "prior": prior,
                    "seed": seed,
                }
                rows += [{**head, **row} for row in replay(table, algorithm, prior, seed)]
    frame = pd.DataFrame(rows)
    floor, middle = table.valid.min(), np.median(table.valid[:, -1])
    frame.insert(len(frame.columns) - 1, "regret", ((frame["loss"] - floor) / (middle - floor)).round(6))
    return frame


def write(frame: pd.DataFrame, path: Path) -> None:
    """Write one packed csv whose bytes depend on the content only; every float reads back as it was."""
    path.parent.mkdir(parents=True, exist_ok=True)
    packing = {"method": "gzip", "compresslevel": 9, "mtime": 0}
    frame.to_csv(path, index=False, lineterminator="\n", compression=packing)
    print(f"{path.name}: {len(frame):,} rows, {path.stat().st_size / 1024:.0f} kB", flush=True)


def build(target: Path) -> None:
    """Train, replay and write both tables."""
    parts = []
    for dataset in SOURCES:
        for family in FAMILIES.values():
            parts.append(train(dataset, family, range(N_CONFIGS)))
            print(f"trained {family.name} on {dataset}", flush=True)
    trials = tidy_trials(parts)
    write(trials, target / "hpo_trials.csv.gz")
    runs = pd.concat([replay_all(table, SEEDS) for table in tables(trials)], ignore_index=True)
    write(runs.sort_values(RUN_KEY, kind="stable", ignore_index=True), target / "hpo_runs.csv.gz")
    record(target, "hpo", LIBRARIES)


def record(folder: Path, name: str, libraries: Sequence[str]) -> None:
    """Keep the versions that a table was built with."""
    path = folder / "built_with.json"
    known = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
    known[name] = {library: version(library) for library in libraries}
    path.write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")


def check(source: Path, n_trials: int = 2, n_seeds: int = 1) -> list[str]:
    """Rebuild the first trials and seeds of every benchmark; return what differs from the stored files."""
    stored_trials = pd.read_csv(source / "hpo_trials.csv.gz")
    stored_runs = pd.read_csv(source / "hpo_runs.csv.gz")
    trained = [train(d, f, range(n_trials)) for d in SOURCES for f in FAMILIES.values()]
    replayed = [replay_all(table, range(n_seeds)) for table in tables(stored_trials)]
    pairs = (
        ("hpo_trials", tidy_trials(trained), stored_trials[stored_trials["trial"] < n_trials]),
        ("hpo_runs", pd.concat(replayed).sort_values(RUN_KEY), stored_runs[stored_runs["seed"] < n_seeds]),
    )
    return [problem for name, new, old in pairs if (problem := _difference(name, new, old))]


def _difference(name: str, new: pd.DataFrame, old: pd.DataFrame) -> str:
    try:
        pd.testing.assert_frame_equal(
            new.reset_index(drop=True), old.reset_index(drop=True), check_exact=True, check_dtype=False
        )
    except AssertionError as error:
        return f"{name}: {error}"
    print(f"{name}: {len(new):,} rows rebuilt, identical")
    return ""


def _version_changes(folder: Path) -> list[str]:
    recorded = json.loads((folder / "built_with.json").read_text(encoding="utf-8"))["hpo"]
    return [f"{name} {old} -> {version(name)}" for name, old in recorded.items() if version(name) != old]


def main() -> int:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="rebuild a small part and compare it with the files")
    parser.add_argument("-o", "--output", type=Path, default=TARGET, help="folder of the tables")
    arguments = parser.parse_args()
    if not arguments.check:
        build(arguments.output)
        return 0
    problems = check(arguments.output)
    changes = _version_changes(arguments.output)
    if problems and changes:
        problems.append("library versions have changed, which can change scores: " + ", ".join(changes))
    print("\n".join(problems) or "check passed")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
