"""Work and bytes of a model of a Dask table on a cluster of worker processes, by the size of the table.

python tests/benchmarks/bench_cluster.py FOLDER [--workers 2] [--check 100_000_000]

Tables of `large_table.py` are written to FOLDER, read by `dask.dataframe.read_parquet` and fitted with the default
model on a `LocalCluster`. Non-negative least squares on the small ones give the seconds of all processors together,

    work = start + row * rows + task * partitions + cell * cells,

which other work on the machine does not change much, and the workers say how many bytes they sent each other. The
largest table is then predicted and measured. On other clusters ``start + cell * cells + (row * rows + task *
partitions) / workers`` is what the clock would show if nothing waited.
"""

from __future__ import annotations

import argparse
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
SMALL = [(1_000_000, 40, False), (1_000_000, 40, True), (1_000_000, 10, False), (10_000_000, 10, False),
         (10_000_000, 40, False)]  # fmt: skip
REPEATS = 2
LARGER = [(10**9, 400, 10**5, 10), (10**10, 4_000, 10**5, 100), (10**11, 10_000, 10**6, 100),
          (10**12, 50_000, 10**6, 1_000)]  # fmt: skip


def work_and_bytes(client: Any) -> tuple[float, int]:
    """Seconds of processors and bytes between workers so far."""
    work = time.process_time() + sum(client.run(time.process_time).values())
    return work, sum(client.run(_sent).values())


def _sent(dask_worker: Any) -> int:
    return int(dask_worker.transfer_outgoing_bytes_total)


def measured(client: Any, folder: Path, rows: int, files: int, split: bool) -> tuple[int, int, float, float, int]:
    """Partitions, cells, work, seconds and bytes of one fit; of some repeats the one with the least work."""
    import dask.dataframe as dd

    paths = sorted(map(str, write(folder / str(rows), rows).glob("*.parquet")))[:files]
    table = dd.read_parquet(paths, split_row_groups=split)
    found, cells = [], 0
    for _ in range(REPEATS):
        before, begin = work_and_bytes(client), time.perf_counter()
        runs = lt.Runs(table, **ROLES)
        lt.fit_lmm(FORMULA, runs)
        seconds, after = time.perf_counter() - begin, work_and_bytes(client)
        found.append((after[0] - before[0], seconds, after[1] - before[1]))
        cells = len(runs.study.groups([runs.benchmark, runs.algorithm, runs.seed]).n)
    return table.npartitions, cells, *min(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--check", type=int, default=100_000_000)
    options = parser.parse_args()
    from distributed import Client, LocalCluster

    warnings.simplefilter("ignore")
    print("rows | partitions | cells | work, s | clock, s | MB between workers")
    sizes, found = [], []
    settings = {"n_workers": options.workers, "threads_per_worker": 1, "dashboard_address": None}
    with LocalCluster(**settings, silence_logs=40) as cluster, Client(cluster) as client:
        measured(client, options.folder, *SMALL[0])  # the first query imports
        for rows, files, split in SMALL:
            partitions, cells, work, seconds, sent = measured(client, options.folder, rows, files, split)
            sizes.append([1.0, rows * files // 40, partitions, cells])
            found.append((work, sent))
            print(f"{rows * files // 40:,} | {partitions} | {cells:,} | {work:.1f} | {seconds:.1f} | {sent / 1e6:.1f}")
        # errors are a share of the work, so each row is divided by its own
        weights = 1 / np.array([work for work, _ in found])
        cost = nnls(np.array(sizes) * weights[:, None], np.ones(len(sizes)))[0]
        start, row, task, cell = cost
        print(f"start {start:.2f} s, row {row * 1e9:.0f} ns, partition {task * 1e3:.0f} ms, cell {cell * 1e6:.1f} us")
        partitions, cells, work, seconds, sent = measured(client, options.folder, options.check, 40, False)
        says = cost @ [1.0, options.check, partitions, cells]
        print(f"{options.check:,} | {partitions} | {cells:,} | {work:.1f} (predicted {says:.1f}) | {seconds:.1f} | "
              f"{sent / 1e6:.1f}")  # fmt: skip
    print("rows | partitions | cells | workers | predicted clock, s")
    for rows, partitions, cells, workers in LARGER:
        clock = start + cell * cells + (row * rows + task * partitions) / workers
        print(f"{rows:,} | {partitions:,} | {cells:,} | {workers:,} | {clock:,.0f}")


if __name__ == "__main__":
    main()
