"""Time the parts around the engine: compression, checks, design, Tukey, Kenward-Roger, report, start of the program.

Run `python tests/benchmarks/bench_parts.py`, with LMEMTEST_DATA set to the folder of priorband.parquet. Each figure is
the median of several calls after one that is not counted. Tukey's probabilities are timed beside scipy's in one run.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

import lmemtest as lt
from lmemtest.data.compress import compress
from lmemtest.formula import build_design, parse_formula
from lmemtest.inference.distributions.studentized_range import ptukey

MODEL = "value ~ algorithm + (1|benchmark) + (1|benchmark:algorithm) + (1|benchmark:seed)"


def median_seconds(call: Callable[[], object], repeats: int = 5) -> float:
    """Median time of a call, the first one not counted."""
    call()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def report(name: str, seconds: float, note: str = "") -> None:
    """One line of the table."""
    print(f"{seconds * 1e3:10.1f} ms  {name}{'  ' + note if note else ''}")


def tukey() -> None:
    """276 p-values with distinct df, beside scipy on ten of them."""
    from scipy.stats import studentized_range

    rng = np.random.default_rng(1)
    q, df = rng.uniform(0.5, 8, 276), rng.uniform(3, 500, 276)
    ours = median_seconds(lambda: ptukey(q, 24, df, upper=True))
    theirs = median_seconds(lambda: studentized_range.sf(q[:10], 24, df[:10]), repeats=1) * 27.6
    report("276 Tukey p-values with distinct df", ours, f"scipy: {theirs:.1f} s, {theirs / ours:.0f} times as long")


def priorband(folder: Path) -> None:
    """What is done with 86,400 rows."""
    table = pd.read_parquet(folder / "priorband.parquet")
    roles = {"score": "value", "direction": "minimize", "algorithm": "algorithm", "benchmark": "benchmark"}
    runs = lt.Runs(table, **roles, seed="seed", budget="used_fidelity", metafeatures=["prior"])
    every = ["algorithm", "benchmark", "prior", "seed", "used_fidelity"]
    report("compress 86,400 rows to 72 cells", median_seconds(lambda: compress(table, every[:3], score="value")))
    report("compress 86,400 rows, each its own cell", median_seconds(lambda: compress(table, every, score="value")))
    report("runs.check(rules_only=True)", median_seconds(lambda: runs.check(rules_only=True)))
    parsed = parse_formula("value ~ used_fidelity * algorithm + (used_fidelity|benchmark)")
    report("design of 86,400 cells", median_seconds(lambda: build_design(parsed, table, np.ones(len(table)))))
    fit = lt.fit_lmm(MODEL, table)
    rows = np.eye(3)
    report(
        "Kenward-Roger, 600 + 36 + 12 random effects",
        median_seconds(lambda: fit.refit().df(rows, "kenward-roger")) - median_seconds(lambda: fit.refit()),
    )
    report("analyze() and its html", median_seconds(lambda: lt.analyze(runs).to_html(), repeats=2))


def start_of(code: str) -> float:
    """Seconds of a fresh interpreter."""
    return median_seconds(lambda: subprocess.run([sys.executable, "-c", code], check=True, capture_output=True))


def main() -> None:
    empty = start_of("pass")
    report("import numpy", start_of("import numpy") - empty)
    report("import lmemtest", start_of("import lmemtest") - empty)
    report("lmemtest --help", start_of("import lmemtest.cli as c; import sys; sys.argv[1:] = ['--version']; c.main()"))
    tukey()
    folder = os.environ.get("LMEMTEST_DATA")
    if folder:
        priorband(Path(folder))
    else:
        print("LMEMTEST_DATA is not set: the rest needs priorband.parquet")


if __name__ == "__main__":
    main()
