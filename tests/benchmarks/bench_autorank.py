"""Time lmemtest.compat.autorank beside autorank 1.3.0, in turns in one run: a call, and the import.

Run `python tests/benchmarks/bench_autorank.py --peer PYTHON`, PYTHON being an interpreter that can import autorank.
Without one our times alone are printed.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

OURS, PEER = "lmemtest.compat.autorank", "autorank"
SAMPLES = 50  # paired samples of 6 populations, or 2
FREQUENTIST = ("Friedman and Nemenyi", "ANOVA and Tukey", "paired t-test", "Wilcoxon")
TASKS = (*FREQUENTIST, "Bayesian, 50,000 draws")


def tasks(module: Any) -> dict[str, Callable[[], object]]:
    """What is timed."""
    import numpy as np
    import pandas as pd

    rng = np.random.default_rng(1)
    means = np.array([0.2, 0.3, 0.5, 0.8, 0.85, 0.9])
    skewed = pd.DataFrame(np.clip(rng.normal(means, 0.3, (SAMPLES, 6)), 0.0, 1.0)).add_prefix("pop_")
    normal = pd.DataFrame(rng.normal(means, 0.2, (SAMPLES, 6))).add_prefix("pop_")
    forced = {"force_mode": "parametric"}
    return {
        "Friedman and Nemenyi": lambda: module.autorank(skewed),
        "ANOVA and Tukey": lambda: module.autorank(normal, **forced),
        "paired t-test": lambda: module.autorank(normal.iloc[:, :2], **forced),
        "Wilcoxon": lambda: module.autorank(skewed.iloc[:, :2], force_mode="nonparametric"),
        "Bayesian, 50,000 draws": lambda: module.autorank(skewed, approach="bayesian", random_state=1),
    }


def timed(function: Callable[[], object]) -> tuple[float, float]:
    """Seconds of one call on the clock and of the processor, whatever it prints."""
    clock, work = time.perf_counter(), time.process_time()
    with contextlib.redirect_stdout(io.StringIO()):
        function()
    return time.perf_counter() - clock, time.process_time() - work


def serve(name: str) -> None:
    """Time a task for every line of standard input that names one."""
    known = tasks(importlib.import_module(name))
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(timed(known[line.strip()])), flush=True)


def start(python: str, module: str) -> subprocess.Popen[str] | None:
    """A process that times a module, or None if it cannot import it."""
    command = [python, "-W", "ignore", __file__, "--serve", module]
    one = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "agg"}
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                               text=True, env={**os.environ, **one})  # fmt: skip
    assert process.stdout is not None
    if process.stdout.readline() == "ready\n":
        return process
    process.wait()
    return None


def ask(process: subprocess.Popen[str], name: str) -> tuple[float, float]:
    """Seconds that a call takes there."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{name}\n")
    process.stdin.flush()
    return tuple(json.loads(process.stdout.readline()))


def import_seconds(python: str, module: str) -> tuple[float, float]:
    """Seconds of a fresh interpreter that imports the six functions, on the clock and of the processor."""
    names = "autorank, plot_stats, create_report, latex_table, latex_report, plot_posterior_maps"
    clock, before = time.perf_counter(), os.times()
    subprocess.run([python, "-W", "ignore", "-c", f"from {module} import {names}"], check=True, capture_output=True)
    after = os.times()
    work = after.children_user + after.children_system - before.children_user - before.children_system
    return time.perf_counter() - clock, work


def show(name: str, ours: list[tuple[float, float]], theirs: list[tuple[float, float]]) -> None:
    """One line of the table: medians of work, of the clock behind them."""
    (clock, work), other = (tuple(map(statistics.median, zip(*rows, strict=True))) for rows in (ours, theirs or ours))
    peer = f"{1e3 * other[1]:>10.2f}{other[1] / work:>8.1f}" if theirs else f"{'':>18}"
    print(f"{name:<28}{1e3 * work:>10.2f}{peer}   {1e3 * clock:.2f} / {1e3 * other[0]:.2f}", flush=True)


def main() -> None:
    """Print a table of medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", default=sys.executable, help="Python with autorank")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve(given.serve)
        return
    mine, peer = start(sys.executable, OURS), start(given.peer, PEER)
    assert mine is not None
    if peer is None:
        print(f"{given.peer} cannot import autorank: our times alone.")
    print(f"{'':<28}{'ours':>10}{'peer':>10}{'ratio':>8}   milliseconds of work, median; clock ours / peer")
    for name in TASKS:
        repeats = 2 if name.startswith("Bayesian") else given.repeats
        calls = [(ask(mine, name), ask(peer, name) if peer else None) for _ in range(repeats + 1)][1:]
        show(name, [ours for ours, _ in calls], [theirs for _, theirs in calls if theirs])
    for process in (mine, peer):
        if process is not None and process.stdin is not None:
            process.stdin.close()
            process.wait()
    imports = [
        (import_seconds(sys.executable, OURS), import_seconds(given.peer, PEER) if peer else None) for _ in range(5)
    ]
    show("import", [ours for ours, _ in imports], [theirs for _, theirs in imports if theirs])


if __name__ == "__main__":
    main()
