"""Time the start of the program and measure its memory; fits of small tables with one and two BLAS threads.

    LMEMTEST_DATA=/path/to/data python tests/benchmarks/bench_start.py

Start: medians of 15 fresh interpreters, processor seconds, the interpreter's own start included. Memory: the largest
resident set of a process that reads PriorBand (`priorband.parquet`, in LMEMTEST_DATA) and writes the report.
"""

from __future__ import annotations

import os
import resource
import statistics
import subprocess
import sys
from pathlib import Path

REPORT = """
import os, pathlib, tempfile, pandas as pd, lmemtest as lt
table = pd.read_parquet(pathlib.Path(os.environ["LMEMTEST_DATA"]) / "priorband.parquet")
runs = lt.Runs(table, score="value", direction="minimize", algorithm="algorithm", benchmark="benchmark", seed="seed",
               budget="used_fidelity", metafeatures=["prior"])
with tempfile.TemporaryDirectory() as folder:
    lt.analyze(runs).save(pathlib.Path(folder) / "report.html")
import resource
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
"""
FITS = """
import sys, time
sys.path.insert(0, sys.argv[1])
import lmemtest as lt
from bench_designs import FORMULA, table_of
def timed(clock):
    start = clock()
    for _ in range(20):
        lt.fit_lmm(FORMULA, table).emmeans("algorithm").pairs()
    return (clock() - start) / 20 * 1e3
for design in ((3, 10, 5), (6, 20, 25)):
    table = table_of(*design)
    lt.fit_lmm(FORMULA, table).emmeans("algorithm").pairs()
    clock, work = min(timed(time.perf_counter) for _ in range(3)), timed(time.process_time)
    print(" x ".join(map(str, design)), clock, work, sep=";")
"""


def work(*command: str) -> float:
    """Median processor seconds of a fresh interpreter."""
    seconds = []
    for _ in range(15):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *command], check=True, capture_output=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        seconds.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(seconds)


def main() -> None:
    """Print the tables."""
    print("| start | processor time |\n|---|---|")
    commands = {
        "Python alone": ("-c", "pass"),
        "`import numpy`": ("-c", "import numpy"),
        "`import lmemtest`": ("-c", "import lmemtest"),
        "import of `lmemtest.compat.autorank`": ("-c", "from lmemtest.compat.autorank import autorank, create_report"),
        "`lmemtest --help`": ("-m", "lmemtest", "--help"),
        "`lmemtest report --help`": ("-m", "lmemtest", "report", "--help"),
    }
    for name, command in commands.items():
        print(f"| {name} | {work(*command) * 1e3:.0f} ms |", flush=True)
    print("\n| default model and pairs | BLAS threads | clock | processor time |\n|---|---|---|---|")
    for threads in ("1", "2"):
        setting = {**os.environ, "OPENBLAS_NUM_THREADS": threads, "OMP_NUM_THREADS": threads}
        code = [sys.executable, "-c", FITS, str(Path(__file__).parent)]
        done = subprocess.run(code, check=True, capture_output=True, text=True, env=setting)
        for line in done.stdout.splitlines():
            design, clock, processor = line.split(";")
            print(f"| {design} | {threads} | {float(clock):.1f} ms | {float(processor):.1f} ms |", flush=True)
    if "LMEMTEST_DATA" in os.environ:
        done = subprocess.run([sys.executable, "-c", REPORT], check=True, capture_output=True, text=True)
        print(f"\nReport of PriorBand, 86,400 rows: {float(done.stdout.splitlines()[-1]):.0f} MB at most.")
    else:
        print("\nLMEMTEST_DATA is not set: no memory of the report of PriorBand")


if __name__ == "__main__":
    main()
