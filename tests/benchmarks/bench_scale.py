"""Time and memory from a large table to a critical difference, beside the bare group-by of its backend.

python tests/benchmarks/bench_scale.py FOLDER [--rows 100_000_000] [--only NAME ...]

The table is made in FOLDER where it is not there yet (`large_table.py`). Every line is a process of its own, as its
peak of resident memory is measured: reading in DuckDB with two threads, in pandas, Polars (lazy) or Dask; the bare
group-by is that of the backend by benchmark, algorithm and seed with mean and variance, read from the same files
(in pandas: on the frame in memory). Seconds of the clock and of the processor.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from large_table import ROLES, write

FORMULA = "loss ~ algorithm + (1 | benchmark) + (1 | benchmark:algorithm) + (1 | benchmark:seed)"
KEYS = ["benchmark", "algorithm", "seed"]
COLUMNS = [*KEYS, "budget", "loss"]


def duckdb(folder: Path) -> tuple[Any, Callable[[], Any]]:
    import duckdb

    connection = duckdb.connect()
    connection.execute("set threads=2; set memory_limit='1GB'")
    files = f"{folder}/*.parquet"
    bare = f"select {', '.join(KEYS)}, count(*), avg(loss), var_pop(loss) from '{files}' group by all"
    return connection.read_parquet(files), lambda: connection.sql(bare).to_arrow_table()


def polars(folder: Path) -> tuple[Any, Callable[[], Any]]:
    import polars as pl

    table = pl.scan_parquet(f"{folder}/*.parquet")
    sums = [pl.len(), pl.col("loss").mean().alias("mean"), pl.col("loss").var().alias("variance")]
    return table, lambda: table.group_by(KEYS).agg(*sums).collect(engine="streaming")


def dask(folder: Path) -> tuple[Any, Callable[[], Any]]:
    import dask.dataframe as dd

    table = dd.read_parquet(f"{folder}/*.parquet", columns=COLUMNS)
    return table, lambda: table.groupby(KEYS, observed=True)["loss"].agg(["count", "mean", "var"]).compute()


def pandas(folder: Path) -> tuple[Any, Callable[[], Any]]:
    import pandas as pd

    table = pd.read_parquet(folder, columns=COLUMNS)
    return table, lambda: table.groupby(KEYS, observed=True)["loss"].agg(["count", "mean", "var"])


TABLES = {"duckdb": duckdb, "polars": polars, "dask": dask, "pandas": pandas}


def measured(work: Callable[[], Any]) -> tuple[Any, float, float]:
    clock, processor = time.perf_counter(), time.process_time()
    done = work()
    return done, time.perf_counter() - clock, time.process_time() - processor


def child(name: str, question: str, folder: Path) -> dict[str, float]:
    """What one question costs in this process."""
    import lmemtest as lt

    lt.analyze(lt.datasets.load_hpo_runs().filter(budget=8, seed=[0, 1, 2]))  # imports are not what is measured
    table, bare = TABLES[name](folder)
    runs = None if question in ("bare", "Runs", "frame") else lt.Runs(table, **ROLES)

    def decided(data: Any) -> Any:
        return lt.fit_lmm(FORMULA, data).emmeans("algorithm").pairs().decisions()

    asked: dict[str, Callable[[], Any]] = {
        "bare": bare,
        "Runs": lambda: lt.Runs(table, **ROLES),
        "frame": lambda: decided(table),
        "fit": lambda: decided(runs),
        "recommend": lambda: lt.recommend(runs),
        "check": lambda: lt.check(runs),
        "analyze": lambda: lt.analyze(runs),
    }
    _, clock, processor = measured(asked[question])
    return {"clock": clock, "work": processor, "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6}


QUESTIONS = {
    "bare": "the bare group-by",
    "Runs": "Runs(table, ...)",
    "fit": "fit, means, critical difference of these Runs",
    "frame": "the same of the table itself",
    "recommend": "recommend(runs)",
    "check": "check(runs)",
    "analyze": "analyze(runs)",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=100_000_000)
    parser.add_argument("--only", nargs="*", choices=list(TABLES), default=["duckdb"])
    parser.add_argument("--questions", nargs="*", choices=list(QUESTIONS), default=list(QUESTIONS))
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(json.dumps(child(*options.child, options.folder)))
        return
    write(options.folder, options.rows)
    print("| table | question | clock | work | peak |\n|---|---|---|---|---|")
    for name in options.only:
        for question in options.questions:
            call = [sys.executable, __file__, str(options.folder), "--child", name, question]
            done = subprocess.run(call, capture_output=True, text=True, check=False)
            if done.returncode:
                raise SystemExit(f"{name}, {question}: {done.stderr.strip().splitlines()[-1]}")
            cost = json.loads(done.stdout.splitlines()[-1])
            print(
                f"| {name} | {QUESTIONS[question]} | {cost['clock']:.1f} s | {cost['work']:.1f} s "
                f"| {cost['peak']:.2f} GB |",
                flush=True,
            )


if __name__ == "__main__":
    main()
