"""Time lmemtest.compat beside significance-analysis 0.2.4 (R behind it), in turns in one run.

Run `LMEMTEST_DATA=folder python tests/benchmarks/bench_compat.py --peer PYTHON`, PYTHON being an interpreter that can
import significance_analysis. Without one our times alone are printed.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd

FORMULA = "value ~ algorithm + (1|benchmark) + prior"
COLUMNS = ["benchmark", "prior", "algorithm", "used_fidelity", "value", "seed"]
CHECKS = ("seed_dependency_check", "benchmark_information_check", "fidelity_check")


def tasks(module: Any, data: pd.DataFrame, names: list[str]) -> dict[str, Callable[[], object]]:
    """What is timed."""
    table = module.dataframe_validator(data.copy(), verbose=False)[0]

    def model_and_post_hoc() -> object:
        return module.model(FORMULA, table.copy()).post_hoc("algorithm")

    def metafeatures() -> object:
        return module.metafeature_analysis(table.copy(), ("HB", "PB"), "prior", verbose=False)

    def check(name: str) -> Callable[[], object]:
        return lambda: getattr(module, name)(table.copy(), verbose=False)

    known = {"model + post_hoc": model_and_post_hoc, **{name: check(name) for name in CHECKS}}
    known["metafeature_analysis"] = metafeatures
    return {name: known[name] for name in names}


def timed(function: Callable[[], object]) -> float:
    """Seconds of one call, whatever it prints."""
    start = time.perf_counter()
    with contextlib.redirect_stdout(io.StringIO()):
        function()
    return time.perf_counter() - start


def serve(module: Any, names: list[str]) -> None:
    """Time a task for every line of standard input that names one."""
    known = tasks(module, read_data(), names)
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(timed(known[line.strip()])), flush=True)


def read_data() -> pd.DataFrame:
    """The PriorBand table."""
    folder = os.environ.get("LMEMTEST_DATA")
    if not folder:
        sys.exit("set LMEMTEST_DATA to the folder of priorband.parquet")
    return pd.read_parquet(Path(folder) / "priorband.parquet", columns=COLUMNS)


def start_peer(python: str, names: list[str]) -> subprocess.Popen[str] | None:
    """A process that times the peer, or None if it cannot import it."""
    command = [python, __file__, "--serve", *names]
    # R and its bridge write to standard error, and say nothing that is needed
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    )
    while True:
        assert process.stdout is not None
        line = process.stdout.readline()
        if line == "ready\n":
            return process
        if not line:
            process.wait()
            return None


def ask(process: subprocess.Popen[str], name: str) -> float:
    """Seconds that the peer takes."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{name}\n")
    process.stdin.flush()
    for line in process.stdout:
        with contextlib.suppress(json.JSONDecodeError):
            return float(json.loads(line))
    raise RuntimeError(f"the peer stopped during {name}")


def main() -> None:
    """Print a table of medians."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--peer", default=sys.executable, help="Python with significance_analysis")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--all", action="store_true", help="checks and metafeature analysis too, once each (minutes)")
    parser.add_argument("--serve", nargs="+", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        import significance_analysis

        serve(significance_analysis, given.serve)
        return
    from lmemtest.compat import significance_analysis as ours

    names = ["model + post_hoc", *((*CHECKS, "metafeature_analysis") if given.all else ())]
    mine = tasks(ours, read_data(), names)
    peer = start_peer(given.peer, names)
    if peer is None:
        print(f"{given.peer} cannot import significance_analysis: our times alone.")
    print(f"{'task':<30}{'ours':>10}{'peer':>10}{'ratio':>8}   seconds, median (first call left out)")
    for name in names:
        repeats = given.repeats if name == "model + post_hoc" else 1
        pairs = [(timed(mine[name]), ask(peer, name) if peer else float("nan")) for _ in range(repeats + (repeats > 1))]
        a, b = (statistics.median(column) for column in zip(*pairs[-repeats:], strict=True))
        print(f"{name:<30}{a:>10.3f}{b:>10.3f}{b / a:>8.1f}", flush=True)
    if peer is not None:
        assert peer.stdin is not None
        peer.stdin.close()
        peer.wait()


if __name__ == "__main__":
    main()
