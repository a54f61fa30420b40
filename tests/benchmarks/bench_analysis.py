"""Processor time and size of whole analyses: many algorithms, many benchmarks, and the variation of the bundled runs.

python tests/benchmarks/bench_analysis.py
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pandas as pd

import lmemtest as lt


def questions(n: int, models: int = 4) -> lt.Runs:
    """Right or wrong answers of a few models to many questions."""
    rng = np.random.default_rng(1)
    difficulty = rng.normal(0.0, 1.5, n)
    chance = 1.0 / (1.0 + np.exp(difficulty[None, :] - 0.3 * np.arange(models)[:, None]))
    right = (rng.random((models, n)) < chance).astype(float)
    names = [(f"model{i}", f"q{j:04d}", right[i, j]) for i in range(models) for j in range(n)]
    frame = pd.DataFrame(names, columns=["model", "question", "correct"])
    return lt.Runs(frame, score="correct", direction="maximize", algorithm="model", benchmark="question")


def algorithms(n: int, tasks: int = 15, seeds: int = 3) -> lt.Runs:
    """Runs of many algorithms."""
    rng = np.random.default_rng(2)
    level = rng.normal(0, 0.3, n)[:, None] + rng.normal(0, 1, tasks) + rng.normal(0, 0.2, (n, tasks))
    rows = [
        (f"alg{i:03d}", f"task{j}", k, level[i, j] + rng.normal(0, 0.1))
        for i in range(n)
        for j in range(tasks)
        for k in range(seeds)
    ]
    frame = pd.DataFrame(rows, columns=["algo", "task", "seed", "loss"])
    return lt.Runs(frame, score="loss", direction="minimize", algorithm="algo", benchmark="task", seed="seed")


def seconds(work: Callable[[], object]) -> tuple[float, object]:
    start = time.process_time()
    done = work()
    return time.process_time() - start, done


def main() -> None:
    lt.analyze(questions(20)).to_html()  # imports
    tables = {f"{k} algorithms x 15": algorithms(k) for k in (3, 20, 60, 200)}
    tables |= {"25 algorithms x 80": algorithms(25, 80), "4 models x 500": questions(500), "x 5,000": questions(5000)}
    print(f"{'table':22s} {'analyze':>8s} {'report':>8s} {'MB':>6s}   (processor seconds)")
    for name, runs in tables.items():
        spent, analysis = seconds(lambda runs=runs: lt.analyze(runs))  # type: ignore[misc]
        drawn, page = seconds(analysis.to_html)  # type: ignore[attr-defined]
        print(f"{name:22s} {spent:8.2f} {drawn:8.2f} {len(page) / 1e6:6.2f}", flush=True)  # type: ignore[arg-type]
    for name in ("recommend", "check", "analyze"):
        done = seconds(lambda name=name: getattr(lt, name)(lt.datasets.load_hpo_runs()))[0]  # type: ignore[misc]
        print(f"{name} of the bundled runs: {done:.2f}", flush=True)
    runs = lt.datasets.load_hpo_runs()
    print(f"variance_sources of the bundled runs: {seconds(lambda: lt.variance_sources(runs))[0]:.2f}")


if __name__ == "__main__":
    main()
