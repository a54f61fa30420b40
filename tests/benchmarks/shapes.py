"""Seconds and memory of public calls on tables of every shape, each in a process of its own, with a limit.

Run `make bench-shapes`, or `python tests/benchmarks/shapes.py [--only seed_effect ...] [--limit 60]`. A line holds the
shape, the call, seconds of the processor, and the peak of memory of the whole process, package and table included.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

import lmemtest as lt


def crossed(algorithms: int, benchmarks: int, seeds: int, missing: float = 0.0) -> pd.DataFrame:
    """Scores with effects of benchmarks, of algorithms on them and of their seeds; names are text."""
    rng = np.random.default_rng(0)
    a, b, s = (codes.ravel() for codes in np.indices((algorithms, benchmarks, seeds)))
    y = rng.normal(size=benchmarks)[b] + 0.2 * rng.normal(size=(benchmarks, algorithms))[b, a]
    y = y + 0.1 * rng.normal(size=(benchmarks, seeds))[b, s] + 0.3 * rng.normal(size=len(a))
    table = pd.DataFrame({"algorithm": a, "benchmark": b, "seed": s}).astype(str).assign(score=y)
    return table[rng.random(len(table)) >= missing].reset_index(drop=True)


def runs(algorithms: int, benchmarks: int, seeds: int, missing: float = 0.0, metafeatures: int = 0) -> lt.Runs:
    table = crossed(algorithms, benchmarks, seeds, missing)
    names = [f"m{i}" for i in range(metafeatures)]
    for i, name in enumerate(names):
        table[name] = 100 + 37 * table["benchmark"].astype(int) + i
    roles: dict[str, Any] = {"algorithm": "algorithm", "benchmark": "benchmark", "seed": "seed", "metafeatures": names}
    return lt.Runs(table, score="score", direction="minimize", **roles)


def items(models: int, tasks: int, each: int) -> pd.DataFrame:
    """Answers of models to the items of tasks, right or wrong."""
    rng = np.random.default_rng(0)
    m, t, i = (codes.ravel() for codes in np.indices((models, tasks, each)))
    ease = rng.normal(size=(tasks, each))[t, i] + 0.3 * rng.normal(size=models)[m]
    table = pd.DataFrame({"model": m, "task": t, "item": i}).astype(str)
    return table.assign(correct=(rng.normal(size=len(m)) < ease).astype(int))


def item_runs(models: int, count: int) -> lt.Runs:
    return lt.Runs(items(models, 1, count), score="correct", direction="maximize", algorithm="model", benchmark="item")


def sources(*levels: int) -> pd.DataFrame:
    """Trainings with every combination of seeds of some sources, each of them once per level of the last number."""
    rng = np.random.default_rng(0)
    codes = [code.ravel() for code in np.indices(levels)]
    y = sum(rng.normal(size=n)[code] for n, code in zip(levels[:-1], codes, strict=False))
    table = pd.DataFrame({f"source{i}": code for i, code in enumerate(codes[:-1])})
    return table.assign(score=y + rng.normal(size=len(table)))


def of_sources(table: pd.DataFrame) -> lt.VarianceStudy:
    return lt.variance_study(table, score="score", sources=list(table.columns[:-1]))


def noisy_scores(n: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    return np.asarray(lt.tuning.NoisyQuadraticDistribution(0.0, 1.0, 2, 0.05).sample(n, rng=rng))


def evaluated(table: pd.DataFrame) -> lt.Evaluation:
    return lt.evaluate(table, model="model", item="item", task="task", score="correct")


def noisy_fit(scores: np.ndarray) -> Any:
    return lt.tuning.fit(scores, law="noisy_quadratic", direction="minimize")


# Shape, call, what is prepared before it, and the call.
SHAPES: list[tuple[str, str, Callable[[], Any], Callable[[Any], Any]]] = [
    ("10 x 72 x 5, 1 metafeature", "analyze", lambda: runs(10, 72, 5, metafeatures=1), lt.analyze),
    ("10 x 300 x 3, 1 metafeature", "analyze", lambda: runs(10, 300, 3, metafeatures=1), lt.analyze),
    ("8 x 60 x 5, 50 metafeatures", "check", lambda: runs(8, 60, 5, metafeatures=50), lt.check),
    ("10 x 10,000 items", "analyze", lambda: item_runs(10, 10_000), lt.analyze),
    ("100 x 100 x 3", "seed_effect", lambda: runs(100, 100, 3), lt.seed_effect),
    ("100 x 100 x 3, a fifth missing", "seed_effect", lambda: runs(100, 100, 3, 0.2), lt.seed_effect),
    ("10 x 1,000 x 10", "seed_effect", lambda: runs(10, 1_000, 10), lt.seed_effect),
    ("10 x 20 x 5", "stochastic_order", lambda: runs(10, 20, 5), lambda r: lt.stochastic_order(r, rng=0)),
    ("25 x 80 x 5", "stochastic_order", lambda: runs(25, 80, 5), lambda r: lt.stochastic_order(r, rng=0)),
    ("10 x 8 x 8 x 8 x 4", "variance_study", lambda: sources(10, 8, 8, 8, 4, 1), of_sources),
    ("10 x 8 x 8, 4 each", "variance_study", lambda: sources(10, 8, 8, 4), of_sources),
    (
        "10,000 scores",
        "tuning.fit noisy",
        lambda: noisy_scores(10_000),
        noisy_fit,
    ),
    ("300 models x 10 tasks x 300 items", "evaluate", lambda: items(300, 10, 300), evaluated),
]


def one(number: int) -> None:
    """Time one call, and print seconds and megabytes."""
    prepared = SHAPES[number][2]()
    start = time.process_time()
    SHAPES[number][3](prepared)
    seconds = time.process_time() - start
    print(f"{seconds:.2f} {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", help="calls, or parts of shapes")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds of the processor of one call's process")
    parser.add_argument("--one", type=int, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one is not None:
        return one(options.one)
    print(f"{'shape':<36}{'call':<20}{'seconds':>9}{'peak MB':>9}")
    for number, (shape, call, _, _) in enumerate(SHAPES):
        if options.only and not any(part in f"{shape} {call}" for part in options.only):
            continue
        limit = int(options.limit)
        done = subprocess.run(
            [sys.executable, __file__, "--one", str(number)],
            capture_output=True,
            text=True,
            preexec_fn=lambda limit=limit: resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 1)),
        )
        if done.returncode == 0:
            seconds, peak = done.stdout.split()[-2:]
        elif done.returncode < 0:
            seconds, peak = f"> {limit}", "-"
        else:
            seconds, peak = done.stderr.strip().splitlines()[-1].partition(":")[0], "-"
        print(f"{shape:<36}{call:<20}{seconds:>9}{peak:>9}", flush=True)
    return None


if __name__ == "__main__":
    main()
