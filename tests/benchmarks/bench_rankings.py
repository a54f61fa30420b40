"""Time rankings beside autorank 1.3, in turns in one run: calls in warm processes, imports in fresh ones.

Run `AUTORANK_PYTHON=/path/to/python python tests/benchmarks/bench_rankings.py`, an interpreter that can import autorank
(`pip install autorank==1.3.0`). Without one our times alone are printed. Six populations, 50 paired samples; one thread
of the BLAS on both sides; medians. Work is what the processor was busy, the clock is what one waits for: they differ
where other work shares the machine.
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
import warnings
from collections.abc import Callable
from typing import Any

ONE_THREAD = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MPLBACKEND": "agg"}
os.environ.update(ONE_THREAD)

N_SAMPLES, N_DRAWS = 50, 50_000
IMPORTED = "autorank, plot_stats, create_report, latex_table, latex_report, plot_posterior_maps"
Times = tuple[float, float]  # clock, work
Tasks = dict[str, Callable[[], object]]


def tables() -> tuple[Any, Any]:
    """A table of clipped scores, which no test takes for normal, and one of normal scores."""
    import numpy as np
    import pandas as pd

    rng = np.random.default_rng(1)
    means = np.array([0.2, 0.3, 0.5, 0.8, 0.85, 0.9])
    clipped = np.clip(rng.normal(means, 0.3, (N_SAMPLES, 6)), 0.0, 1.0)
    normal = rng.normal(means, 0.2, (N_SAMPLES, 6))
    return tuple(pd.DataFrame(x).add_prefix("pop_") for x in (clipped, normal))


def with_interface(autorank: Callable[..., Any]) -> Tasks:
    """Calls of the interface that both have."""
    clipped, normal = tables()
    return {
        "Friedman, Nemenyi": lambda: autorank(clipped),
        "ANOVA, Tukey": lambda: autorank(normal, force_mode="parametric"),
        "paired t": lambda: autorank(normal.iloc[:, :2], force_mode="parametric"),
        "signed ranks": lambda: autorank(clipped.iloc[:, :2], force_mode="nonparametric"),
        "Bayesian signed ranks": lambda: autorank(clipped, approach="bayesian", nsamples=N_DRAWS, random_state=1),
    }


def with_rank() -> Tasks:
    """The same questions to `lmemtest.rank`, and what Autorank has no answer to."""
    import lmemtest as lt
    from lmemtest.report.ranking import rankings_section

    clipped, normal = tables()
    runs = lt.datasets.load_hpo_runs().filter(budget=16)
    analysis = lt.analyze(runs)

    def ranked(table: Any, method: str, **options: Any) -> Callable[[], object]:
        return lambda: lt.rank(table, method, direction="maximize", **options)

    rope = {"rope": 0.1, "rope_unit": "effect", "n_draws": N_DRAWS, "rng": 1}
    return {
        "Friedman, Nemenyi": ranked(clipped, "frequentist"),
        "ANOVA, Tukey": ranked(normal, "frequentist", test="tukey"),
        "paired t": ranked(normal.iloc[:, :2], "frequentist", test="t"),
        "signed ranks": ranked(clipped.iloc[:, :2], "frequentist", test="wilcoxon"),
        "Bayesian signed ranks": ranked(clipped, "bayesian", **rope),
        "hierarchical": ranked(clipped, "bayesian", test="hierarchical", **rope),
        "mixed model": ranked(normal, "lmem"),
        "mixed model, 6,000 runs": lambda: lt.rank(runs),
        "section of a report": lambda: rankings_section(analysis),
    }


def timed(function: Callable[[], object]) -> Times:
    """Seconds of one call, whatever it prints or warns of."""
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clock, work = time.perf_counter(), time.process_time()
        function()
        return time.perf_counter() - clock, time.process_time() - work


def serve() -> None:
    """Time a task of Autorank for every line of standard input that names one."""
    from autorank import autorank

    known = with_interface(autorank)
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(timed(known[line.strip()])), flush=True)


class Peer:
    """A process that times Autorank."""

    def __init__(self, python: str) -> None:
        self.python = python
        self.process = subprocess.Popen([python, "-W", "ignore", __file__, "--serve"], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)  # fmt: skip

    def answer(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def ask(self, name: str) -> Times:
        assert self.process.stdin is not None
        print(name, file=self.process.stdin, flush=True)
        clock, work = json.loads(self.answer())
        return clock, work

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def peer_or_reason() -> Peer | str:
    """Autorank in a process of its own, or why not."""
    python = os.environ.get("AUTORANK_PYTHON")
    if not python:
        return "AUTORANK_PYTHON is not set, so our times stand alone."
    peer = Peer(python)
    if peer.answer() == "ready\n":
        return peer
    peer.close()
    return f"{python} cannot import autorank (pip install autorank==1.3.0), so our times stand alone."


def start_of(python: str, code: str) -> Times:
    """Seconds of a fresh interpreter."""
    clock, before = time.perf_counter(), os.times()
    subprocess.run([python, "-W", "ignore", "-c", code], check=True, capture_output=True)
    after = os.times()
    work = after.children_user + after.children_system - before.children_user - before.children_system
    return time.perf_counter() - clock, work


def line(name: str, ours: list[Times], theirs: list[Times]) -> None:
    """One line of the table: medians in milliseconds, and the ratio of the work."""
    clock, work = (1e3 * statistics.median(column) for column in zip(*ours, strict=True))
    text = f"{name:<42}{clock:>9.1f}{work:>9.1f}"
    if theirs:
        their_clock, their_work = (1e3 * statistics.median(column) for column in zip(*theirs, strict=True))
        text += f"{their_clock:>11.1f}{their_work:>10.1f}{their_work / work:>8.1f}"
    print(text, flush=True)


def main() -> None:
    """Print a table of medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve()
        return
    from lmemtest.compat.autorank import autorank

    peer = peer_or_reason()
    print(peer if isinstance(peer, str) else "Autorank 1.3 in turns with ours.")
    print(f"{'milliseconds':<42}{'clock':>9}{'work':>9}{'Autorank:':>11}{'work':>10}{'ratio':>8}")
    interface, ranks = with_interface(autorank), with_rank()
    for name in ranks:
        repeats = 3 if name.startswith("Bayesian") else given.repeats
        drop_in, ours, theirs = [], [], []
        for _ in range(repeats + 1):  # the first calls import
            ours.append(timed(ranks[name]))
            if name in interface:
                drop_in.append(timed(interface[name]))
                if not isinstance(peer, str):
                    theirs.append(peer.ask(name))
        if drop_in:
            line(f"{name}: compat.autorank", drop_in[1:], theirs[1:])
        line(f"{name}: rank", ours[1:], theirs[1:])
    drop_in = [start_of(sys.executable, f"from lmemtest.compat.autorank import {IMPORTED}") for _ in range(5)]
    theirs = []
    if not isinstance(peer, str):
        theirs = [start_of(peer.python, f"from autorank import {IMPORTED}") for _ in range(5)]
        peer.close()
    line("import, a fresh interpreter", drop_in, theirs)


if __name__ == "__main__":
    main()
