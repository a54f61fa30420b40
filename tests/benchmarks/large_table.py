"""A table of runs as large as is asked for, as a folder of Parquet files: one per benchmark, written in parts.

python tests/benchmarks/large_table.py FOLDER [--rows 100_000_000]

50 algorithms x 40 benchmarks x 50 seeds x as many budgets as make the number of rows: 1,000 for 100,000,000. A run is a
curve that falls with the budget; what benchmarks, algorithms on a benchmark and seeds on a benchmark have in common is
drawn once, with the standard deviations of `EFFECTS`. The same arguments give the same scores.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

ALGORITHMS, BENCHMARKS, SEEDS = 50, 40, 50
EFFECTS = {"algorithm": 0.05, "benchmark": 1.0, "benchmark:algorithm": 0.2, "benchmark:seed": 0.1, "residual": 0.3}
BYTES_PER_ROW = 12  # on disk, generously: 8 of the score and what names the row
ROLES = {
    "score": "loss",
    "direction": "minimize",
    "algorithm": "algorithm",
    "benchmark": "benchmark",
    "seed": "seed",
    "budget": "budget",
}


def write(folder: Path, rows: int, seed: int = 1) -> Path:
    """Write the table, unless it is there; each file appears under its name only when it is complete."""
    n_budgets, left = divmod(rows, ALGORITHMS * BENCHMARKS * SEEDS)
    if left or not n_budgets:
        raise SystemExit(f"rows must be a multiple of {ALGORITHMS * BENCHMARKS * SEEDS:,}, got {rows:,}.")
    folder.mkdir(parents=True, exist_ok=True)
    algorithm = np.random.default_rng(seed).normal(0.0, EFFECTS["algorithm"], ALGORITHMS)
    for number in range(BENCHMARKS):
        path = folder / f"benchmark{number:02d}.parquet"
        if path.exists() and pq.read_metadata(path).num_rows == rows // BENCHMARKS:
            continue
        _require_space(folder, (BENCHMARKS - number) * (rows // BENCHMARKS) * BYTES_PER_ROW)
        part = path.with_suffix(".part")
        try:
            _write_file(part, number, n_budgets, algorithm, np.random.default_rng([seed, number]))
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    return folder


def _require_space(folder: Path, needed: int) -> None:
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise SystemExit(f"{folder} has {free / 1e9:.1f} GB left, and the table needs {needed / 1e9:.1f} GB more.")


def _write_file(path: Path, number: int, n_budgets: int, algorithm: np.ndarray, rng: np.random.Generator) -> None:
    """The runs on one benchmark, a row group for every ten seeds."""
    writer = None
    try:
        for table in _parts(number, n_budgets, algorithm, rng):
            writer = writer or pq.ParquetWriter(path, table.schema)
            writer.write_table(table)
    finally:
        if writer is not None:
            writer.close()


def _parts(number: int, n_budgets: int, algorithm: np.ndarray, rng: np.random.Generator) -> Iterator[pa.Table]:
    level = rng.normal(0.0, EFFECTS["benchmark"]) + algorithm
    level = level + rng.normal(0.0, EFFECTS["benchmark:algorithm"], ALGORITHMS)
    seeds = rng.normal(0.0, EFFECTS["benchmark:seed"], SEEDS)
    budgets = np.arange(1, n_budgets + 1, dtype=np.int32)
    curve = 1.0 / np.sqrt(budgets)
    names = pa.array([f"algorithm{i:02d}" for i in range(ALGORITHMS)])
    for first in range(0, SEEDS, 10):
        shape = (10, ALGORITHMS, n_budgets)
        mean = seeds[first : first + 10, None, None] + level[:, None] + curve
        codes = np.broadcast_to(np.arange(ALGORITHMS, dtype=np.int8)[:, None], shape).ravel()
        size = codes.size
        yield pa.table(
            {
                "algorithm": pa.DictionaryArray.from_arrays(codes, names),
                "benchmark": pa.DictionaryArray.from_arrays(np.zeros(size, np.int8), [f"benchmark{number:02d}"]),
                "seed": np.broadcast_to(np.arange(first, first + 10, dtype=np.int16)[:, None, None], shape).ravel(),
                "budget": np.broadcast_to(budgets, shape).ravel(),
                "loss": (mean + rng.normal(0.0, EFFECTS["residual"], shape)).ravel(),
            }
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=100_000_000)
    options = parser.parse_args()
    write(options.folder, options.rows)
    size = sum(path.stat().st_size for path in options.folder.glob("*.parquet"))
    print(f"{options.rows:,} rows, {size / 1e6:,.0f} MB in {options.folder}")


if __name__ == "__main__":
    main()
