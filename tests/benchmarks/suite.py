"""Time lmemtest beside what is installed of its peers, in turns in one run, and write docs/developers/performance.md.

    python tests/benchmarks/suite.py [--quick] [--only WORD ...] [--no-peers] [--profile] [--write]

A time is the median seconds of the processor, which other work on the machine disturbs less than the clock; one BLAS
thread for all. registry.py lists the benchmarks; peers.R and peers.py are the processes that time the others.
"""

from __future__ import annotations

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MPLBACKEND="agg")  # before numpy, and for the peers

import argparse
import contextlib
import cProfile
import io
import json
import platform
import pstats
import resource
import select
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
import registry
from registry import Benchmark

HERE = Path(__file__).parent
PAGE = HERE.parents[1] / "docs" / "developers" / "performance.md"
PEERS_PYTHON = HERE.parents[1] / ".venv-peers" / "bin" / "python"
OF_R = ("lme4", "lme4 by Laplace", "lmerTest and emmeans", "pbkrtest", "clubSandwich", "glmmTMB", "R")
FIRST = 2.0  # seconds on the clock: a first call that took longer is counted, since loading was little of it
WARM = 0.1  # seconds on the clock: what takes less is called again in its turn, ours and theirs; the mean counts
Times = tuple[float, float]  # clock, processor


@dataclass
class Row:
    """Times of one benchmark, by what was timed; peers without a time have a reason."""

    benchmark: Benchmark
    ours: list[Times] = field(default_factory=list)
    theirs: dict[str, list[Times]] = field(default_factory=dict)
    reasons: dict[str, str] = field(default_factory=dict)

    def seconds(self, peer: str | None = None, *, clock: bool = False) -> float:
        """Median seconds of one repetition, ours or a peer's."""
        times = self.ours if peer is None else self.theirs[peer]
        per = self.benchmark.per if peer is None else self.benchmark.peers[peer]
        return statistics.median(t[0 if clock else 1] for t in times) / per

    def ratio(self, peer: str) -> float:
        return self.seconds(peer) / self.seconds()

    @property
    def slower_than(self) -> list[str]:
        """Peers that take less time than we do."""
        return [peer for peer in self.theirs if self.seconds(peer) < self.seconds()]

    @property
    def missed(self) -> list[str]:
        """Goals that this run did not reach, of peers that ran."""
        goals = self.benchmark.ratios.items()
        found = [f"{goal:g} x {of(peer)}" for peer, goal in goals if peer in self.theirs and self.ratio(peer) < goal]
        limit = self.benchmark.limit
        return found + ([length(limit)] if limit is not None and self.seconds() > limit else [])


def of(task: str) -> str:
    """The package of a task."""
    return task.split(":")[0]


def length(seconds: float) -> str:
    """A time that is readable from microseconds to minutes."""
    if seconds >= 1:
        return f"{seconds:.0f} s" if seconds >= 100 else f"{seconds:.1f} s"
    return f"{seconds * 1e3:.0f} ms" if seconds >= 0.0995 else f"{seconds * 1e3:.2g} ms"


# ---------------------------------------------------------------------- processes of peers


class Peer:
    """A process that answers tasks by times; its first line says its versions."""

    def __init__(self, command: list[str], cap: float) -> None:
        self.command, self.cap = command, cap
        self.versions: dict[str, str] = {}
        self.kept: dict[tuple[str, ...], list[Times]] = {}  # times by task, table and formula, for other rows
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True)  # fmt: skip
        said = self.answer(60.0)
        if not isinstance(said, dict):
            raise OSError(f"{self.command[0]} does not start: {said}")
        self.versions = said

    def answer(self, cap: float) -> Any:
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], cap)
        line = self.process.stdout.readline() if ready else ""
        return json.loads(line) if line else f"over {cap:g} s" if not ready else "the process ended"

    def ask(self, *words: str) -> Times | str:
        """Clock and processor seconds, or why there are none; what takes too long is stopped."""
        assert self.process.stdin is not None
        print(*words, sep="\t", file=self.process.stdin, flush=True)
        said = self.answer(self.cap)
        if isinstance(said, list):
            return said[0], said[1]
        if self.process.poll() is not None or str(said).startswith(("over", "the process")):
            self.close()
            self.start()
        return str(said)

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


def start_peers(cap: float) -> tuple[dict[str, Peer], list[str]]:
    """Processes of R and of the other Python, and why one is absent."""
    commands = {"R": [shutil.which("Rscript") or "", str(HERE / "peers.R")],
                "Python": [str(PEERS_PYTHON) if PEERS_PYTHON.exists() else "", str(HERE / "peers.py")]}  # fmt: skip
    absent = {"R": "Rscript is not installed", "Python": "there is no .venv-peers; `make bench-peers` makes it"}
    found, reasons = {}, []
    for name, command in commands.items():
        if not command[0]:
            reasons.append(f"No packages of {name}: {absent[name]}.")
            continue
        try:
            found[name] = Peer(command, cap)
        except OSError as error:
            reasons.append(f"No packages of {name}: {error}.")
    return found, reasons


# ---------------------------------------------------------------------- turns


def processor() -> float:
    """Seconds that this process and its finished children have computed."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(r.ru_utime + r.ru_stime for r in used)


def timed(benchmark: Benchmark) -> Times:
    """Seconds of a call of ours, of all its processes."""
    clock, work, calls = 0.0, 0.0, 0
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        while clock < WARM:
            given = benchmark.setup()
            before, wall = processor(), time.perf_counter()
            benchmark.call(given)
            clock, work, calls = clock + time.perf_counter() - wall, work + processor() - before, calls + 1
    return clock / calls, work / calls


def measure(benchmark: Benchmark, peers: dict[str, Peer], folder: Path, repeats: int, budget: float) -> Row:
    """Calls in turns, ours first; who has used its budget is not asked again, and a short first call is not counted.

    A peer's times of the same task, table and formula in an earlier row of the run are used again.
    """
    row = Row(benchmark, theirs={task: [] for task in benchmark.peers})
    serving = {task: peers.get("R" if of(task) in OF_R else "Python") for task in benchmark.peers}
    path = ""
    if benchmark.table and peers and benchmark.peers:
        path = str(folder / f"{benchmark.table.replace(' ', '_').replace(',', '')}.csv")
        if not Path(path).exists():
            registry.table(benchmark.table).to_csv(path, index=False)
    spent = dict.fromkeys([None, *benchmark.peers], 0.0)
    known = {task: peer.kept[(task, path, benchmark.formula)] for task, peer in serving.items()
             if peer and (task, path, benchmark.formula) in peer.kept}  # fmt: skip
    for turn in range(repeats + 1):
        for task in spent:
            counted = row.ours if task is None else row.theirs[task]
            if (counted and spent[task] > budget) or task in row.reasons or task in known:
                continue
            if task is None:
                took: Times | str = timed(benchmark)
            elif (peer := serving[task]) is None:
                took = "not asked"
            else:
                took = peer.ask(task, path, benchmark.formula)
            if isinstance(took, str):
                row.reasons[task or ""] = took
                continue
            spent[task] += took[0]
            if turn or took[0] > FIRST:
                counted.append(took)
    row.theirs = {task: times for task, times in {**row.theirs, **known}.items() if times}
    for task, times in row.theirs.items():
        if (peer := serving[task]) is not None:
            peer.kept[task, path, benchmark.formula] = times
    return row


# ---------------------------------------------------------------------- tables


def table_of(rows: list[Row]) -> str:
    """Markdown: our time, each peer's with its ratio to ours, bold where it is below one; goals, bold where missed."""
    packages = list(dict.fromkeys(of(task) for row in rows for task in row.benchmark.peers if task in row.theirs))
    lines = ["| benchmark | ours | clock |" + "".join(f" {name} |" for name in packages) + " goal |",
             "|---|---|---|" + "---|" * (len(packages) + 1)]  # fmt: skip
    for row in rows:
        cells = [row.benchmark.name, length(row.seconds()), length(row.seconds(clock=True))]
        for name in packages:
            task = next((task for task in row.benchmark.peers if of(task) == name), None)
            if task in row.theirs:
                ratio = row.ratio(task)
                text = f"{ratio:,.0f}" if ratio >= 9.95 else f"{ratio:.1f}"
                text = f"**{ratio:.2g}**" if task in row.slower_than else text
                cells.append(f"{length(row.seconds(task))}: {text}")
            else:
                cells.append(row.reasons.get(task, "") if task else "")
        limit = row.benchmark.limit
        goals = [f"{goal:g} x {of(task)}" for task, goal in row.benchmark.ratios.items()]
        goals += [length(limit)] if limit is not None else []
        cells.append(", ".join(f"**{goal}**" if goal in row.missed else goal for goal in goals))
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def summary(rows: list[Row]) -> str:
    """What is slower than a peer, which goals were missed, and what could not be run."""
    slower = [f"{row.benchmark.name}: {', '.join(map(of, row.slower_than))}" for row in rows if row.slower_than]
    missed = [f"{row.benchmark.name}: {', '.join(row.missed)}" for row in rows if row.missed]
    reasons = ((row, task, why) for row in rows for task, why in row.reasons.items())
    absent = [f"{row.benchmark.name}: {of(task)}, {why}" for row, task, why in reasons if why != "not asked"]
    beside = sum(bool(row.theirs) for row in rows)
    parts = [f"Slower than a peer: {len(slower)} of {beside} rows." if beside else "No peer was timed."]
    parts += [f"- {line}" for line in slower]
    if goals := sum(bool(row.benchmark.ratios) or row.benchmark.limit is not None for row in rows):
        parts += ["", f"A goal was missed: {len(missed)} of {goals} rows.", *(f"- {line}" for line in missed)]
    if absent:
        parts += ["", "Without a time:", *(f"- {line}" for line in absent)]
    return "\n".join(parts)


def profile_of(benchmark: Benchmark, calls: int = 10) -> str:
    """Our functions that take more than a twentieth of the time, with what they call, as shares of it."""
    work = cProfile.Profile()
    benchmark.call(benchmark.setup())
    for _ in range(calls):
        given = benchmark.setup()
        work.runcall(benchmark.call, given)
    stats = pstats.Stats(work)
    total = stats.total_tt  # type: ignore[attr-defined]
    lines = []
    for (file, _, name), (_, n, _, spent, _) in stats.stats.items():  # type: ignore[attr-defined]
        where = Path(file)
        if "lmemtest" in where.parts and spent > 0.05 * total and n >= calls:
            lines.append((spent / total, f"{where.stem}.{name}"))
    return "\n".join(f"{share:5.0%}  {name}" for share, name in sorted(lines, reverse=True))


def machine(peers: dict[str, Peer]) -> str:
    """Processor, cores, load, BLAS and versions."""
    import numpy as np
    import pandas as pd
    import scipy

    import lmemtest

    name = platform.processor() or platform.machine()
    if (info := Path("/proc/cpuinfo")).exists():
        names = [line.split(":")[1].strip() for line in info.read_text().splitlines() if line.startswith("model name")]
        name = names[0] if names else name
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]  # type: ignore[call-overload]
    load = f", load {os.getloadavg()[0]:.1f} at the start" if hasattr(os, "getloadavg") else ""
    ours = f"Python {platform.python_version()}, lmemtest {lmemtest.__version__}, NumPy {np.__version__} with "
    ours += f"{blas['name']} {blas['version']}, SciPy {scipy.__version__}, pandas {pd.__version__}"
    lines = [f"{name}, {os.cpu_count()} cores{load}; {platform.system()}. One BLAS thread.", f"Ours: {ours}."]
    lines += [f"Peers: {', '.join(f'{k} {v}' for k, v in peer.versions.items())}." for peer in peers.values()]
    return "\n".join(f"- {line}" for line in lines)


def written(page: str, name: str, text: str) -> str:
    """The page with the text between the markers of that name."""
    start, end = f"<!-- bench: {name} -->\n", f"<!-- end of bench: {name} -->"
    if start not in page or end not in page:
        raise SystemExit(f"{PAGE.name} has no place for {name!r}: it needs the lines {start.strip()} and {end}.")
    head, rest = page.split(start, 1)
    return f"{head}{start}\n{text}\n\n{end}{rest.split(end, 1)[1]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="a few benchmarks, about a minute; nothing is written")
    parser.add_argument("--only", nargs="*", help="words of which a group or name must contain one")
    parser.add_argument("--no-peers", action="store_true")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--budget", type=float, default=10.0, help="seconds after which one is not asked again")
    parser.add_argument("--cap", type=float, default=90.0, help="seconds after which a call of a peer is stopped")
    parser.add_argument("--profile", action="store_true", help="where our time goes, in place of the times")
    parser.add_argument("--write", action="store_true", help="write groups that ran to docs/developers/performance.md")
    given = parser.parse_args()
    chosen = [b for b in registry.benchmarks() if b.quick or not given.quick]
    if given.only:
        chosen = [b for b in chosen if any(word in f"{b.group} {b.name}" for word in given.only)]
    if given.profile:
        for benchmark in chosen:
            print(f"\n{benchmark.name}\n{profile_of(benchmark)}")
        return
    repeats, budget, cap = (3, 2.0, 20.0) if given.quick else (given.repeats, given.budget, given.cap)
    peers, reasons = ({}, []) if given.no_peers else start_peers(cap)
    if why := registry.missing():
        reasons.append(f"{why}.")
    about = machine(peers)
    print(about, *reasons, sep="\n", flush=True)
    rows: list[Row] = []

    def keep(name: str, text: str) -> None:
        print(f"\n{name}\n\n{text}", flush=True)
        if given.write and not given.quick:
            PAGE.write_text(written(PAGE.read_text(encoding="utf-8"), name, text), encoding="utf-8")

    with tempfile.TemporaryDirectory() as folder:
        for group in dict.fromkeys(benchmark.group for benchmark in chosen):
            for benchmark in (b for b in chosen if b.group == group):
                rows.append(measure(benchmark, peers, Path(folder), repeats, budget))
                print(f"{length(rows[-1].seconds()):>8}  {group}: {benchmark.name}", file=sys.stderr, flush=True)
            mine = [row for row in rows if row.benchmark.group == group]
            keep(group, f"{table_of(mine)}\n\n{summary(mine)}")
    for peer in peers.values():
        peer.close()
    keep("machine", about)


if __name__ == "__main__":
    main()
