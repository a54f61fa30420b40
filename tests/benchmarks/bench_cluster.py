"""Time and bytes of a model of a Dask table on a cluster of worker processes, as a function of its size.

python tests/benchmarks/bench_cluster.py FOLDER [--workers 2] [--check 100_000_000]

Tables of `large_table.py` are written to FOLDER, read by `dask.dataframe.read_parquet` and fitted with the default
model on a `LocalCluster`. Non-negative least squares on the small ones give

    seconds = start + row * rows / workers + task * partitions + cell * cells

where the last two are taken not to shrink with more workers, and the bytes that cross the loopback give bytes per cell.
The largest table is then predicted and measured, and larger ones on more workers are predicted.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from large_table import ROLES, write
from scipy.optimize import nnls

import lmemtest as lt

FORMULA = "loss ~ algorithm + (1 | benchmark) + (1 | benchmark:algorithm) + (1 | benchmark:seed)"
# rows, files (benchmarks) that are read, whether each file is five partitions
SMALL = [(1_000_000, 40, False), (1_000_000, 40, True), (1_000_000, 10, False), (10_000_000, 10, True),
         (10_000_000, 40, False), (10_000_000, 40, True)]  # fmt: skip
REPEATS = 3
LARGER = [(10**9, 400, 10**5, 10), (10**10, 4_000, 10**5, 100), (10**11, 10_000, 10**5, 100),
          (10**11, 10_000, 10**6, 100), (10**12, 50_000, 10**6, 1_000)]  # fmt: skip


def traffic() -> int:
    """Bytes sent over the loopback so far, all processes of the machine together."""
    for line in Path("/proc/net/dev").read_text().splitlines():
        name, _, numbers = line.partition(":")
        if name.strip() == "lo":
            return int(numbers.split()[8])
    raise SystemExit("no loopback in /proc/net/dev: this script needs Linux.")


def measured(folder: Path, rows: int, files: int, split: bool) -> tuple[int, int, float, float]:
    """Partitions, cells, seconds and bytes of one fit; the median of some."""
    import dask.dataframe as dd

    paths = sorted(map(str, write(folder / str(rows), rows).glob("*.parquet")))[:files]
    table = dd.read_parquet(paths, split_row_groups=split)
    seconds, moved, cells = [], [], 0
    for _ in range(REPEATS):
        before, begin = traffic(), time.perf_counter()
        runs = lt.Runs(table, **ROLES)
        lt.fit_lmm(FORMULA, runs)
        seconds.append(time.perf_counter() - begin)
        moved.append(traffic() - before)
        cells = len(runs.study.groups([runs.benchmark, runs.algorithm, runs.seed]).n)
    return table.npartitions, cells, statistics.median(seconds), statistics.median(moved)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--check", type=int, default=100_000_000)
    options = parser.parse_args()
    from distributed import Client, LocalCluster

    warnings.simplefilter("ignore")
    print("rows | files | partitions | cells | seconds | MB moved")
    A: list[list[Any]] = []
    found = []
    settings = {"n_workers": options.workers, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**settings, silence_logs=40) as cluster, Client(cluster):
        measured(options.folder, *SMALL[0])  # the first query imports
        for rows, files, split in SMALL:
            partitions, cells, seconds, moved = measured(options.folder, rows, files, split)
            size = rows * files // 40
            A.append([1.0, size / options.workers, partitions, cells])
            found.append((seconds, moved))
            print(f"{size:,} | {files} | {partitions} | {cells:,} | {seconds:.2f} | {moved / 1e6:.1f}", flush=True)
        # errors are a share of the time, so each row is divided by its own
        weights = 1 / np.array([seconds for seconds, _ in found])
        cost = nnls(np.array(A) * weights[:, None], np.ones(len(A)))[0]
        per_cell = max(moved / row[3] for (_, moved), row in zip(found, A, strict=True))
        start, row, task, cell = cost
        print(f"start {start:.2f} s, row {row * 1e9:.0f} ns x workers, partition {task * 1e3:.1f} ms, "
              f"cell {cell * 1e6:.1f} us, {per_cell:.0f} bytes per cell")  # fmt: skip
        print("rows | partitions | cells | workers | predicted s | measured s | MB moved")
        partitions, cells, seconds, moved = measured(options.folder, options.check, 40, False)
        says = cost @ [1.0, options.check / options.workers, partitions, cells]
        print(f"{options.check:,} | {partitions} | {cells:,} | {options.workers} | {says:.1f} | {seconds:.1f} | "
              f"{moved / 1e6:.1f}")  # fmt: skip
    for rows, partitions, cells, workers in LARGER:
        says = cost @ [1.0, rows / workers, partitions, cells]
        print(f"{rows:.0e} | {partitions:,} | {cells:,} | {workers:,} | {says:,.0f} | | {cells * per_cell / 1e6:,.0f}")


if __name__ == "__main__":
    main()
