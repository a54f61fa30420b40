"""Time the inference: degrees of freedom, bootstrap, permutations, audit, profiles, influence, CR2, power; beside R.

Run `python tests/benchmarks/bench_inference.py`, with LMEMTEST_DATA set to the folder of priorband.parquet (without it,
the bundled runs are used). Two numbers are given for each: seconds on the clock, and seconds of the processor of all
processes together, which other work on the machine disturbs less. Of several calls the fastest counts. Where a figure
has a promise, it is shown. R (inference_speed.R) does the same on the same rows, once or a few replicates that are
scaled up; what R takes longer for than `--cap` seconds is stopped. See README.md in this folder.
"""

from __future__ import annotations

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before numpy: threads that wait for each other would be counted
os.environ.setdefault("OMP_NUM_THREADS", "1")

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import lmemtest as lt
from lmemtest.inference.distributions.studentized_range import ptukey

HERE = Path(__file__).parent
RANDOM = "(1|benchmark) + (1|benchmark:algorithm) + (1|benchmark:seed)"
NESTED = "score ~ algorithm + (1|benchmark) + (1|benchmark:algorithm)"
BUDGET = 10  # the budget of the smaller table, or the one next to it
N_BOOT = 999
N_EXCHANGES = 100


@dataclass(frozen=True, kw_only=True)
class Task:
    """Something to time: `call` gets what `setup` made, which is not counted; the time is for `per` repetitions."""

    key: str
    what: str
    call: Callable[[Any], object]
    setup: Callable[[], Any] = lambda: None
    per: int = 1
    once: bool = False
    promised: float | None = None


@dataclass(frozen=True)
class Spent:
    """Seconds on the clock and of the processor, children included."""

    wall: float
    work: float


def processor_seconds() -> float:
    """Time that this process and its finished children have computed."""
    import resource  # not on Windows

    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(r.ru_utime + r.ru_stime for r in used)


def measure(task: Task, repeats: int) -> Spent:
    """Smallest times of several calls, each with a fresh `setup`; a first call of a short task is not counted."""
    if not task.once:
        task.call(task.setup())
    walls, works = [], []
    for _ in range(1 if task.once else repeats):
        given = task.setup()
        work, wall = processor_seconds(), time.perf_counter()
        task.call(given)
        walls.append(time.perf_counter() - wall)
        works.append(processor_seconds() - work)
    return Spent(min(walls) / task.per, min(works) / task.per)


def load_rows() -> tuple[str, pd.DataFrame]:
    """PriorBand where it is, else the bundled runs, with the same names of columns."""
    columns = ["score", "algorithm", "benchmark", "seed", "budget", "prior"]
    folder = os.environ.get("LMEMTEST_DATA")
    if folder:
        table = pd.read_parquet(Path(folder) / "priorband.parquet")
        return "PriorBand", table.rename(columns={"value": "score", "used_fidelity": "budget"})[columns]
    table = lt.datasets.load_hpo_runs().to_frame()
    return "bundled runs (LMEMTEST_DATA is not set)", table.rename(columns={"loss": "score"})[columns]


def as_runs(rows: pd.DataFrame) -> lt.Runs:
    """The rows of one budget, with the prior as a metafeature."""
    roles = {"score": "score", "direction": "minimize", "algorithm": "algorithm", "benchmark": "benchmark"}
    return lt.Runs(rows, **roles, seed="seed", metafeatures=["prior"])


def both_sizes(rows: pd.DataFrame, name: str, count: str) -> list[Task]:
    """What is timed on all rows and on those of one budget."""
    benchmarks, seeds = rows["benchmark"].nunique(), rows["seed"].nunique()
    large = name == "all"

    # a fit of its own for every call, because a fit keeps what it has computed
    def fresh(formula: str = f"score ~ algorithm + {RANDOM}", **options: Any) -> Callable[[], Any]:
        return lambda: lt.fit_lmm(formula, rows, **options)

    return [
        Task(
            key=f"kenward-roger {name}",
            what=f"Kenward-Roger covariance and df, {count}",
            setup=fresh(),
            call=lambda fit: fit.to_frame("kenward-roger"),
            promised=2.0 if large else None,
        ),
        Task(
            key=f"pairs {name}",
            what=f"emmeans and pairs, Satterthwaite, {count}",
            setup=fresh(),
            call=lambda fit: fit.emmeans("algorithm").pairs(),
        ),
        Task(
            key=f"profile {name}",
            what=f"profile intervals of all parameters, {count}",
            setup=fresh(reml=False),
            call=lambda fit: fit.profile(progress=False),
        ),
        Task(
            key=f"influence benchmark {name}",
            what=f"influence of {benchmarks} benchmarks, {count}",
            setup=fresh(),
            call=lambda fit: fit.influence("benchmark", specs="algorithm", progress=False),
        ),
        Task(
            key=f"influence seed {name}",
            what=f"influence of {seeds} seeds, {count}",
            setup=fresh(),
            call=lambda fit: fit.influence("seed", specs="algorithm", progress=False),
        ),
        Task(
            key=f"cr2 {name}",
            what=f"CR2 with df, {benchmarks} clusters, {count}",
            setup=fresh(NESTED),
            call=lambda fit: fit.cluster_robust("benchmark").to_frame(),
        ),
        Task(
            key=f"diagnose {name}",
            what=f"fit.diagnose(), {count}",
            setup=fresh(),
            call=lambda fit: fit.diagnose(rng=1, progress=False),
        ),
    ]


def resampling(rows: pd.DataFrame, count: str) -> list[Task]:
    """Bootstrap, permutations and audit on the rows of one budget."""
    null, alternative = (lt.fit_lmm(f"score ~ {x} + {RANDOM}", rows, reml=False) for x in ("1", "algorithm"))
    runs = as_runs(rows)
    return [
        Task(
            key="bootstrap",
            what=f"glrt, bootstrap of {N_BOOT} tables on 2 processes, {count}",
            call=lambda _: lt.glrt(null, alternative, "bootstrap", n_draws=N_BOOT, rng=1, n_jobs=2, progress=False),
            once=True,
            promised=30.0,
        ),
        Task(
            key="permutation",
            what=f"permutation_test, one exchange, {count}",
            call=lambda _: lt.permutation_test(runs, alternative.formula, n_draws=N_EXCHANGES, rng=1, progress=False),
            per=N_EXCHANGES,
            once=True,
        ),
        Task(
            key="audit",
            what=f"audit of two models, one exchange, {count}",
            call=lambda _: lt.audit(runs, n_draws=N_EXCHANGES, unit="benchmark", rng=1, progress=False),
            per=N_EXCHANGES,
            once=True,
        ),
    ]


def without_data() -> list[Task]:
    """Tukey's probabilities and a grid of planned studies."""
    rng = np.random.default_rng(1)
    q, df = rng.uniform(0.5, 8, 276), rng.uniform(3, 500, 276)
    plan = lt.VarianceComponents(interaction_sd=0.02, residual_sd=0.03, seed_sd=0.01)
    grid = {"n_benchmarks": [6, 12, 24, 48], "n_seeds": [5, 10, 25]}
    return [
        Task(
            key="tukey",
            what="276 Tukey p-values with distinct df",
            call=lambda _: ptukey(q, 24, df, upper=True),
            promised=0.5,
        ),
        Task(
            key="power",
            what="power, 4 x 3 designs of 1,000 studies",
            call=lambda _: lt.power(plan, effect=0.01, **grid, n_draws=1000, rng=1, progress=False),
            once=True,
        ),
    ]


def time_r(rows: pd.DataFrame, part: pd.DataFrame, formula: str, cap: float) -> tuple[dict[str, Spent], dict[str, str]]:
    """Run inference_speed.R if Rscript is present: times by key, and notes where there is no time."""
    rscript = shutil.which("Rscript")
    if rscript is None:
        print("Rscript is not installed: no comparison with R")
        return {}, {}
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("all.csv", "one.csv")]
        for path, table in zip(paths, (rows, part), strict=True):
            table.to_csv(path, index=False)
        command = [rscript, str(HERE / "inference_speed.R"), *map(str, paths), formula, str(cap)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found = json.loads(done.stdout)
    print(f"{found['R']}: {', '.join(f'{name} {version}' for name, version in found['packages'].items())}")
    timed = {r["key"]: Spent(r["wall"], r["work"]) for r in found["timings"] if r["wall"] is not None}
    return timed, {r["key"]: r["note"] for r in found["timings"] if r["wall"] is None}


def seconds(value: float) -> str:
    """A time that is readable from milliseconds to minutes."""
    return f"{value:.0f} s" if value >= 100 else f"{value:.1f} s" if value >= 1 else f"{value * 1e3:.1f} ms"


def print_table(tasks: list[Task], ours: dict[str, Spent], theirs: dict[str, Spent], notes: dict[str, str]) -> None:
    """Markdown, as in README.md: the ratio is that of the work."""
    print("| what | ours: clock | work | R: clock | work | R / ours | promised |")
    print("|---|---|---|---|---|---|---|")
    for task in tasks:
        mine, other = ours[task.key], theirs.get(task.key)
        cells = [task.what, seconds(mine.wall), seconds(mine.work)]
        if other is None:
            cells += [notes.get(task.key, ""), "", ""]
        else:
            ratio = other.work / mine.work
            cells += [seconds(other.wall), seconds(other.work), f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.1f}"]
        cells.append("" if task.promised is None else f"{task.promised:g} s")
        print("| " + " | ".join(cells) + " |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5, help="calls of short tasks, default 5; the fastest counts")
    parser.add_argument("--only", nargs="*", help="words that the names of the tasks must contain")
    parser.add_argument("--no-r", action="store_true", help="do not run R")
    parser.add_argument("--cap", type=float, default=120.0, help="seconds after which a task of R is stopped")
    options = parser.parse_args()

    name, rows = load_rows()
    budget = min(rows["budget"].unique(), key=lambda level: abs(level - BUDGET))
    part = rows[rows["budget"] == budget].drop(columns="budget").reset_index(drop=True)
    print(f"{name}: {len(rows):,} rows, {len(part):,} at budget {budget:g}")
    tasks = [
        *both_sizes(rows, "all", f"{len(rows):,} rows"),
        *both_sizes(part, "one", f"{len(part):,} rows"),
        *resampling(part, f"{len(part):,} rows"),
        *without_data(),
    ]
    tasks = [t for t in tasks if not options.only or any(word in t.key for word in options.only)]
    timed, notes = ({}, {}) if options.no_r else time_r(rows, part, lt.recommend(as_runs(part)).formula, options.cap)
    ours = {}
    for task in tasks:
        ours[task.key] = measure(task, options.repeats)
        print(f"{ours[task.key].work:8.3f} s  {task.what}", file=sys.stderr, flush=True)
    print_table(tasks, ours, timed, notes)


if __name__ == "__main__":
    main()
