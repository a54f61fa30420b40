"""Time the mixed-model engine, beside R's lme4 in the same run where R is present.

Run `python tests/benchmarks/bench_engine.py`, with LMEMTEST_DATA set to the folder of priorband.parquet
(without it, InstEval alone is timed). See README.md in this folder.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

HERE = Path(__file__).parent
REFERENCE = HERE.parent / "reference"
INSTEVAL = REFERENCE / "inputs" / "InstEval.csv.gz"
INSTEVAL_FORMULA = "y ~ service + (1|s) + (1|d) + (1|dept:service)"
PRIORBAND_COLUMNS = ["benchmark", "prior", "algorithm", "used_fidelity", "value", "seed"]


@dataclass(frozen=True, kw_only=True)
class Task:
    """One model to time."""

    dataset: str
    formula: str
    reml: bool
    expected: float | None = None
    with_lme4: bool = True

    @property
    def key(self) -> tuple[str, str, bool]:
        """What identifies the model in lme4's list of timings."""
        return (self.dataset, self.formula, self.reml)


@dataclass(frozen=True, kw_only=True)
class Timing:
    """Seconds of the first and of the median call, and the log-likelihood reached."""

    first: float
    median: float
    llf: float


def load_data() -> dict[str, pd.DataFrame]:
    """Read InstEval, and PriorBand if LMEMTEST_DATA points to it."""
    insteval = pd.read_csv(INSTEVAL, dtype=dict.fromkeys(("s", "d", "service", "dept"), "category"))
    data = {"insteval": insteval}
    folder = os.environ.get("LMEMTEST_DATA")
    if folder:
        data["priorband"] = pd.read_parquet(Path(folder) / "priorband.parquet", columns=PRIORBAND_COLUMNS)
    else:
        print("LMEMTEST_DATA is not set: only InstEval is timed", file=sys.stderr)
    return data


def list_tasks(datasets: dict[str, pd.DataFrame]) -> list[Task]:
    """List the models of the PriorBand table (ML) and InstEval (REML and ML)."""
    tasks = []
    if "priorband" in datasets:
        rows = json.loads((REFERENCE / "priorband_table.json").read_text(encoding="utf-8"))["models"]
        tasks = [
            Task(
                dataset="priorband",
                formula=row["formula"],
                reml=False,
                expected=row["llf"],
                with_lme4=row["lme4_seconds"] is not None,
            )
            for row in rows
        ]
    fits = json.loads((REFERENCE / "fits.json").read_text(encoding="utf-8"))["fits"]
    insteval = next(row for row in fits if row["formula"] == INSTEVAL_FORMULA)
    for method in ("REML", "ML"):
        tasks.append(
            Task(
                dataset="insteval",
                formula=INSTEVAL_FORMULA,
                reml=method == "REML",
                expected=insteval[method]["llf"],
            )
        )
    return tasks


def time_engine(task: Task, data: pd.DataFrame, repeats: int) -> Timing:
    """Fit from the raw rows each time: compression and design are part of the price."""
    import lmemtest as lt

    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        fit = lt.fit_lmm(task.formula, data, reml=task.reml)
        seconds.append(time.perf_counter() - start)
        llf = fit.llf
    return Timing(first=seconds[0], median=statistics.median(seconds), llf=llf)


def time_lme4(datasets: dict[str, pd.DataFrame]) -> dict[tuple[str, str, bool], float]:
    """Run lme4_speed.R if Rscript is present; an empty dictionary otherwise."""
    rscript = shutil.which("Rscript")
    if rscript is None:
        print("Rscript is not installed: no comparison with lme4", file=sys.stderr)
        return {}
    with tempfile.TemporaryDirectory() as folder:
        priorband = "-"
        if "priorband" in datasets:
            priorband = str(Path(folder) / "priorband.csv")
            datasets["priorband"].to_csv(priorband, index=False)
        command = [rscript, str(HERE / "lme4_speed.R"), priorband, str(INSTEVAL)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    result = json.loads(done.stdout)
    print(f"{result['R']}, lme4 {result['lme4']}, BLAS {result['blas']}")
    return {(row["dataset"], row["formula"], row["reml"]): row["seconds"] for row in result["timings"]}


def print_table(tasks: list[Task], timings: list[Timing], lme4: dict[tuple[str, str, bool], float]) -> None:
    """Print one line per model, and the total of those that lme4 was timed on."""
    names = [f"{task.formula} [{'REML' if task.reml else 'ML'}]" for task in tasks]
    width = max(len(name) for name in names)
    print(f"{'model':<{width}} {'first s':>8} {'median s':>9} {'lme4 s':>8} {'ratio':>7} {'llf - expected':>15}")
    for name, task, timing in zip(names, tasks, timings, strict=True):
        theirs = lme4.get(task.key)
        columns = [f"{timing.first:8.3f}", f"{timing.median:9.4f}"]
        columns += [f"{theirs:8.2f}", f"{theirs / timing.median:7.1f}"] if theirs else ["       -", "      -"]
        columns.append(f"{timing.llf - task.expected:15.2e}" if task.expected is not None else "")
        print(f"{name:<{width}}", *columns)
    for dataset in dict.fromkeys(task.dataset for task in tasks):
        both = [
            (timing.median, lme4[task.key])
            for task, timing in zip(tasks, timings, strict=True)
            if task.dataset == dataset and task.key in lme4
        ]
        if both:
            ours, theirs = (sum(column) for column in zip(*both, strict=True))
            total = f"{dataset}: all {len(both)} models"
            print(f"{total:<{width}} {'':>8} {ours:9.4f} {theirs:8.2f} {theirs / ours:7.1f}")


def main() -> None:
    """Time what the command line asks for and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5, help="fits per model, default 5; the median counts")
    parser.add_argument("--no-r", action="store_true", help="do not run lme4")
    parser.add_argument("--json", type=Path, help="also write the timings to this file")
    options = parser.parse_args()

    datasets = load_data()
    tasks = list_tasks(datasets)
    lme4 = {} if options.no_r else time_lme4(datasets)
    timings = []
    for task in tasks:
        repeats = options.repeats if task.with_lme4 else 1
        timings.append(time_engine(task, datasets[task.dataset], repeats))
        print(f"{timings[-1].median:8.3f} s  {task.formula}", file=sys.stderr)
    print_table(tasks, timings, lme4)
    if options.json is not None:
        rows = [
            {
                "dataset": task.dataset,
                "formula": task.formula,
                "reml": task.reml,
                "first_seconds": timing.first,
                "median_seconds": timing.median,
                "llf": timing.llf,
                "expected_llf": task.expected,
                "lme4_seconds": lme4.get(task.key),
            }
            for task, timing in zip(tasks, timings, strict=True)
        ]
        options.json.write_text(json.dumps(rows, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
