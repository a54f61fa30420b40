"""How the time and the memory of an evaluation grow, and fits that are large; tables of the recommended model.

Run `python tests/benchmarks/bench_designs.py`. See README.md.
"""

from __future__ import annotations

import argparse
import statistics
import time
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

import lmemtest as lt
from lmemtest.lmm.engine.problem import Problem, build_problem
from lmemtest.lmm.engine.structure import RandomTerm

FORMULA = "score ~ algorithm + (1 | benchmark) + (1 | benchmark:algorithm) + (1 | benchmark:seed)"
DESIGNS = {
    "6 x 20 x 25": (6, 20, 25, 0.0),
    "20 x 40 x 20": (20, 40, 20, 0.0),
    "50 x 40 x 50": (50, 40, 50, 0.0),
    "10 x 200 x 10": (10, 200, 10, 0.0),
    "10 x 200 x 10, a tenth missing": (10, 200, 10, 0.1),
    "10 x 2,000 x 10": (10, 2_000, 10, 0.0),
}


def table_of(algorithms: int, benchmarks: int, seeds: int, missing: float = 0.0) -> pd.DataFrame:
    """Scores of the recommended model."""
    rng = np.random.default_rng(0)
    a, b, s = np.indices((algorithms, benchmarks, seeds))
    y = 0.3 * rng.normal(size=algorithms)[a] + rng.normal(size=benchmarks)[b]
    y = y + 0.5 * rng.normal(size=(algorithms, benchmarks))[a, b] + 0.3 * rng.normal(size=(benchmarks, seeds))[b, s]
    y = y + rng.normal(size=a.shape)
    names = {"algorithm": a, "benchmark": b, "seed": s}
    table = pd.DataFrame({name: np.char.add(name[0], codes.ravel().astype(str)) for name, codes in names.items()})
    table["score"] = y.ravel()
    return table[rng.random(len(table)) >= missing]


def timed(call: Callable[[], Any], repeats: int) -> tuple[float, float]:
    """Median seconds on the clock and of the processor, after a warm-up."""
    call()
    times = []
    for _ in range(repeats):
        wall, work = time.perf_counter(), time.process_time()
        call()
        times.append((time.perf_counter() - wall, time.process_time() - work))
    return statistics.median(t[0] for t in times), statistics.median(t[1] for t in times)


# ---------------------------------------------------------------------- growth


def nested(benchmarks: int, algorithms: int, seeds: int, *, balanced: bool = False) -> Problem:
    """The recommended model; a run in ten is missing unless it is balanced."""
    rng = np.random.default_rng(1)
    a, b, s = (i.ravel() for i in np.indices((algorithms, benchmarks, seeds)))
    if not balanced:
        kept = np.flatnonzero(rng.random(len(a)) > 0.1)
        a, b, s = a[kept], b[kept], s[kept]
    one = np.ones((len(a), 1))
    terms = [
        RandomTerm(one, b, benchmarks),
        RandomTerm(one, b * algorithms + a, benchmarks * algorithms),
        RandomTerm(one, b * seeds + s, benchmarks * seeds),
    ]
    return problem_of(terms, np.eye(algorithms)[a], rng.normal(size=len(a)) + rng.normal(size=benchmarks)[b])


def crossed(levels: int) -> Problem:
    """Two crossed factors, ten cells per level."""
    rng = np.random.default_rng(1)
    n, one = 10 * levels, np.ones((10 * levels, 1))
    terms = [RandomTerm(one, rng.integers(0, levels, n), levels) for _ in range(2)]
    return problem_of(terms, one, rng.normal(size=n))


def slopes(k: int) -> Problem:
    """One factor of 500 groups with ``k`` correlated effects."""
    rng = np.random.default_rng(1)
    g = np.repeat(np.arange(500), 40)
    basis = np.hstack([np.ones((len(g), 1)), rng.normal(size=(len(g), k - 1))])
    return problem_of([RandomTerm(basis, g, 500)], np.ones((len(g), 1)), rng.normal(size=len(g)))


def problem_of(terms: list[RandomTerm], X: np.ndarray, y: np.ndarray) -> Problem:
    unit = np.ones(len(y))
    return build_problem(terms, X, y, n=unit, weight=unit, ss=0 * unit, reml=True)


def evaluation(problem: Problem, repeats: int = 5) -> tuple[float, float]:
    """Processor seconds of the criterion with its gradient, and the megabytes that it takes."""
    searched = problem.reduced
    x = np.full(searched.n_free, 0.5)

    def once() -> None:
        searched.derivatives(x, searched.evaluate(x))

    seconds = timed(once, repeats)[1]
    tracemalloc.start()
    once()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return seconds, peak / 1e6


def slope(sizes: list[int], values: list[float]) -> float:
    """Exponent of growth over the two largest sizes."""
    return float(np.log(values[-1] / values[-2]) / np.log(sizes[-1] / sizes[-2]))


GROWTH: dict[str, tuple[list[int], Callable[[int], Problem]]] = {
    "benchmarks (10 algorithms, 10 seeds)": ([250, 500, 1_000, 2_000], lambda n: nested(n, 10, 10)),
    "benchmarks, balanced": ([250, 500, 1_000, 2_000], lambda n: nested(n, 10, 10, balanced=True)),
    "seeds of 20 benchmarks, 10 algorithms": ([50, 100, 200, 400], lambda n: nested(20, 10, n)),
    "levels of each of two crossed factors": ([250, 500, 1_000, 2_000], crossed),
    "correlated effects k of 500 groups": ([3, 6, 12, 24], slopes),
}


def growth() -> None:
    """Print time and memory of an evaluation with its gradient, and how they grow."""
    print("| what grows | sizes | evaluation with gradient | memory | exponents |")
    print("|---|---|---|---|---|")
    for what, (sizes, make) in GROWTH.items():
        found = [evaluation(make(n)) for n in sizes]
        seconds, megabytes = [f[0] for f in found], [f[1] for f in found]
        times = ", ".join(f"{1e3 * t:.2f}" for t in seconds)
        memory = ", ".join(f"{m:.1f}" for m in megabytes)
        exponents = f"{slope(sizes, seconds):.1f}, {slope(sizes, megabytes):.1f}"
        print(f"| {what} | {', '.join(map(str, sizes))} | {times} ms | {memory} MB | {exponents} |", flush=True)


def large() -> None:
    """Fits that are large in one direction."""
    rng = np.random.default_rng(2)
    n = 2_000_000
    lead, one, two = np.repeat(np.arange(n // 2), 2), rng.integers(0, 500, n), rng.integers(0, 50, n)
    y = rng.normal(size=n) + rng.normal(size=n // 2)[lead] + rng.normal(size=500)[one]
    crossed = pd.DataFrame({"y": y, "lead": lead, "one": one, "two": two})
    wide = pd.DataFrame(rng.normal(size=(20_000, 12)), columns=[f"x{i}" for i in range(12)])
    wide["g"] = np.repeat(np.arange(500), 40)
    slopes = np.hstack([np.ones((500, 1)), 0.3 * rng.normal(size=(500, 12))])
    wide["y"] = slopes[wide["g"], 0] + (slopes[wide["g"], 1:] * wide.iloc[:, :12]).sum(axis=1) + rng.normal(size=20_000)
    tasks = {
        "1,000,000 levels beside crossed 500 and 50, 2,000,000 rows": (
            "y ~ 1 + (1 | lead) + (1 | one) + (1 | two)",
            crossed,
        ),
        "covariance of 91 parameters, 500 groups, 20,000 rows": (
            f"y ~ 1 + ({' + '.join(f'x{i}' for i in range(12))} | g)",
            wide,
        ),
    }
    for name, (formula, table) in tasks.items():
        wall, work = time.perf_counter(), time.process_time()
        fit = lt.fit_lmm(formula, table)
        wall, work = time.perf_counter() - wall, time.process_time() - work
        print(f"{name}: {work:.1f} s of the processor, {wall:.1f} s; {fit.optim.evaluations} evaluations", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=["growth", "large"])
    options = parser.parse_args()
    if options.only in (None, "growth"):
        growth()
    if options.only in (None, "large"):
        large()


if __name__ == "__main__":
    main()
