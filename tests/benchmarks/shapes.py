"""Seconds and memory of public calls on tables of every shape, each in a process of its own, with a limit.

Run `make bench-shapes`, or `python tests/benchmarks/shapes.py [--only seed_effect ...] [--limit 60]`. A line holds the
shape, the call, seconds of the processor, and the peak of memory of the whole process, package and table included.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import lmemtest as lt


def timed(call: Callable[[], object]) -> tuple[float, float]:
    """Milliseconds of the clock and of the processor."""
    start, work = time.perf_counter(), time.process_time()
    call()
    return 1e3 * (time.perf_counter() - start), 1e3 * (time.process_time() - work)


def crossed(
    algorithms: int, benchmarks: int, seeds: int, missing: float = 0.0, *, families: int = 0, budgets: int = 0
) -> pd.DataFrame:
    """Scores with effects of benchmarks, of algorithms on them and of their seeds; names are text."""
    rng = np.random.default_rng(0)
    a, b, s = (codes.ravel() for codes in np.indices((algorithms, benchmarks, seeds)))
    y = rng.normal(size=benchmarks)[b] + 0.2 * rng.normal(size=(benchmarks, algorithms))[b, a]
    y = y + 0.1 * rng.normal(size=(benchmarks, seeds))[b, s]
    table = pd.DataFrame({"algorithm": a, "benchmark": b, "seed": s}).astype(str)
    if families:
        table["family"] = (b % families).astype(str)
        y = y + 0.5 * rng.normal(size=families)[b % families]
        y = y + 0.2 * rng.normal(size=(families, algorithms))[b % families, a]
    if budgets:
        table = table.loc[table.index.repeat(budgets)].reset_index(drop=True)
        table["budget"] = np.tile(np.arange(1.0, budgets + 1), len(y))
        y = np.repeat(y, budgets) + 1.0 / np.sqrt(table["budget"].to_numpy())
    table["score"] = y + 0.3 * rng.normal(size=len(y))
    return table[rng.random(len(table)) >= missing].reset_index(drop=True)


def runs_of(table: pd.DataFrame, **roles: Any) -> lt.Runs:
    given: dict[str, Any] = {"algorithm": "algorithm", "benchmark": "benchmark", "seed": "seed"}
    given |= {name: name for name in ("family", "budget") if name in table}
    return lt.Runs(table, score="score", direction="minimize", **given, **roles)


def runs(
    algorithms: int, benchmarks: int, seeds: int, missing: float = 0.0, *, metafeatures: int = 0, **more: int
) -> lt.Runs:
    table = crossed(algorithms, benchmarks, seeds, missing, **more)
    names = [f"m{i}" for i in range(metafeatures)]
    for i, name in enumerate(names):
        table[name] = 100 + 37 * table["benchmark"].astype(int) + i
    return runs_of(table, metafeatures=names)


def with_long_names(algorithms: int, benchmarks: int, seeds: int) -> lt.Runs:
    """Names as results of searches have them: 60 letters, the same beginning."""
    table = crossed(algorithms, benchmarks, seeds)
    for column, name in (
        ("algorithm", "optimizer=bayesian,kernel=matern52,acquisition=lognei,init"),
        ("benchmark", "openml"),
    ):
        table[column] = f"{name}=" + table[column] + ",version=2026.11,repository=results"
    return runs_of(table)


def with_two_values(algorithms: int, benchmarks: int, seeds: int) -> lt.Runs:
    """Whether each run succeeded."""
    table = crossed(algorithms, benchmarks, seeds)
    return runs_of(table.assign(score=(table["score"] > 0).astype(int)))


def items(models: int, tasks: int, each: int) -> pd.DataFrame:
    """Answers of models to the items of tasks, right or wrong."""
    rng = np.random.default_rng(0)
    m, t, i = (codes.ravel() for codes in np.indices((models, tasks, each)))
    ease = rng.normal(size=(tasks, each))[t, i] + 0.3 * rng.normal(size=models)[m]
    table = pd.DataFrame({"model": m, "task": t, "item": i}).astype(str)
    return table.assign(correct=(rng.normal(size=len(m)) < ease).astype(int))


def solved(models: int, issues: int) -> lt.Runs:
    """Which model solved which issue, as boards of coding agents list it."""
    table = items(models, 1, issues)
    return lt.Runs(table, score="correct", direction="maximize", algorithm="model", benchmark="item")


SEEDS_CROSSED = (
    "score ~ algorithm + (1 | benchmark) + (1 | benchmark:algorithm) + (1 | benchmark:seed)"
    " + (1 | seed) + (1 | seed:algorithm)"
)


def of_recurring_seeds(missing: float = 0.0) -> Any:
    """A table whose seeds have the same names on every benchmark, with their effects crossed with the benchmarks."""
    return lt.fit_lmm(SEEDS_CROSSED, runs(50, 40, 50, missing))


def with_lucky_seeds() -> lt.Runs:
    """Seeds that do the same to an algorithm on every benchmark, in a table with gaps."""
    table = crossed(50, 40, 50, 0.2)
    a, s = (table[name].astype(int).to_numpy() for name in ("algorithm", "seed"))
    rng = np.random.default_rng(1)
    table["score"] += 0.3 * rng.normal(size=50)[s] + 0.2 * rng.normal(size=(50, 50))[s, a]
    return runs_of(table)


def slopes_of_children(children: int) -> Any:
    """Growth of children in schools, each with a level and a slope of its own."""
    rng = np.random.default_rng(0)
    child = np.repeat(np.arange(children), 4)
    year = np.tile(np.arange(4.0), children) + 0.2 * rng.normal(size=len(child))
    y = rng.normal(size=children)[child] + (1.0 + 0.3 * rng.normal(size=children)[child]) * year
    y = y + 0.5 * rng.normal(size=60)[child % 60] + 0.5 * rng.normal(size=len(child))
    table = pd.DataFrame({"y": y, "year": year, "child": child, "school": child % 60})
    return lt.fit_lmm("y ~ year + (1 + year | child) + (1 | school)", table)


def item_runs(models: int, count: int) -> lt.Runs:
    return lt.Runs(items(models, 1, count), score="correct", direction="maximize", algorithm="model", benchmark="item")


def sources(*levels: int) -> pd.DataFrame:
    """Trainings with every combination of seeds of some sources, each of them once per level of the last number."""
    rng = np.random.default_rng(0)
    codes = [code.ravel() for code in np.indices(levels)]
    y = sum(rng.normal(size=n)[code] for n, code in zip(levels[:-1], codes, strict=False))
    table = pd.DataFrame({f"source{i}": code for i, code in enumerate(codes[:-1])})
    return table.assign(score=y + rng.normal(size=len(table)))


def of_sources(table: pd.DataFrame) -> Any:
    return lt.variance_sources(table, score="score", sources=list(table.columns[:-1]))


def trials() -> lt.Runs:
    """Searches of 10 methods on 100 benchmarks, of 100 trials each."""
    table = crossed(10, 100, 100).rename(columns={"seed": "trial"})
    return lt.Runs(
        table, score="score", direction="minimize", algorithm="algorithm", benchmark="benchmark", seed="trial"
    )


def noisy_scores(n: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    return np.asarray(lt.tuning.NoisyQuadraticDistribution(0.0, 1.0, 2, 0.05).sample(n, rng=rng))


def evaluated(table: pd.DataFrame) -> lt.Evaluation:
    return lt.evaluate(table, model="model", item="item", task="task", score="correct")


def noisy_fit(scores: np.ndarray) -> Any:
    return lt.tuning.fit(scores, law="noisy_quadratic", direction="minimize")


def fitted(given: lt.Runs) -> Any:
    recommended = lt.recommend(given)
    return lt.fit_lmm(recommended.formula, recommended.runs)


def compared(given: lt.Runs) -> Any:
    """The default comparison: recommended model, fit, means and all pairs."""
    return fitted(given).emmeans("algorithm").pairs().table


def compared_by_run(given: lt.Runs, **options: Any) -> Any:
    """All pairs by the probability of outperforming, and what is said of them."""
    found = lt.outperforming(given, **options)
    return found.to_frame(), found.sentences(), found.notes


def saved(analysis: Any) -> None:
    with tempfile.TemporaryDirectory() as folder:
        analysis.save(Path(folder) / "report.html")


Row = tuple[str, str, Callable[[], Any], Callable[[Any], Any]]


def by(*shape: float, call: str, asked: Callable[[Any], Any], **more: int) -> Row:
    """A line of a table that is crossed."""
    name = " x ".join(f"{n:,}" for n in (*shape[:3], *([more["budgets"]] if "budgets" in more else [])))
    name += f", {more['families']} families" if "families" in more else ""
    name += f", {more['metafeatures']} metafeature{'s' * (more['metafeatures'] > 1)}" if "metafeatures" in more else ""
    name += ", a fifth missing" if len(shape) > 3 else ""
    return name, call, lambda: runs(*shape, **more), asked  # type: ignore[arg-type]


def analysed(*shape: float, **more: int) -> Callable[[], Any]:
    return lambda: lt.analyze(runs(*shape, **more))  # type: ignore[arg-type]


# Shape, call, what is prepared before it, and the call.
SHAPES: list[Row] = [
    # What everybody asks.
    by(6, 20, 5, call="pairs", asked=compared),
    by(13, 86, 5, call="pairs", asked=compared),
    by(300, 15, 1, call="pairs", asked=compared),
    by(1000, 20, 1, call="pairs", asked=compared),
    by(50, 40, 50, call="pairs", asked=compared),
    by(50, 40, 50, 0.2, call="pairs", asked=compared),
    by(10, 10_000, 1, call="pairs", asked=compared),
    by(10, 20, 5_000, call="pairs", asked=compared),
    by(20, 400, 5, 0.2, families=40, call="pairs", asked=compared),
    by(50, 40, 50, call="check", asked=lt.check),
    by(200, 15, 3, call="check", asked=lt.check),
    by(10, 1_000, 10, call="check", asked=lt.check),
    by(8, 60, 5, metafeatures=50, call="check", asked=lt.check),
    by(300, 50, 1, call="analyze", asked=lt.analyze),
    by(50, 40, 50, call="analyze", asked=lt.analyze),
    by(10, 72, 5, metafeatures=1, call="analyze", asked=lt.analyze),
    by(10, 300, 3, metafeatures=1, call="analyze", asked=lt.analyze),
    by(20, 400, 5, 0.2, families=40, call="analyze", asked=lt.analyze),
    by(10, 20, 5_000, call="analyze", asked=lt.analyze),
    by(10, 20, 3, budgets=1_000, call="analyze", asked=lambda r: lt.analyze(r, curves="area")),
    by(6, 20, 5, call="analyze", asked=lt.analyze),
    by(13, 86, 5, families=16, call="analyze", asked=lt.analyze),
    by(13, 86, 5, call="these benchmarks", asked=lambda r: lt.variant(r, population="run")),
    by(6, 20, 25, 0.2, call="these benchmarks", asked=lambda r: lt.variant(r, population="run")),
    by(200, 15, 3, call="analyze", asked=lt.analyze),
    by(4, 20_000, 3, call="analyze", asked=lt.analyze),
    by(4, 20_000, 3, 0.2, call="analyze", asked=lt.analyze),
    by(4, 20_000, 3, families=50, call="analyze", asked=lt.analyze),
    ("4 x 20,000 x 3, two values", "analyze", lambda: with_two_values(4, 20_000, 3), lt.analyze),
    ("60,000 bundled runs", "analyze", lt.datasets.load_hpo_runs, lt.analyze),
    ("10 x 10,000 items", "analyze", lambda: item_runs(10, 10_000), lt.analyze),
    # Reports.
    ("6 x 20 x 5", "save", analysed(6, 20, 5), saved),
    ("2 x 1,000 x 10", "save", analysed(2, 1_000, 10), saved),
    ("20 x 50 x 5, long names", "save", lambda: lt.analyze(with_long_names(20, 50, 5)), saved),
    ("200 x 15 x 3", "save", analysed(200, 15, 3), saved),
    ("300 x 50 x 1", "save", analysed(300, 50, 1), saved),
    ("4 x 20,000 x 3", "save", analysed(4, 20_000, 3), saved),
    ("10 x 10,000 items", "save", lambda: lt.analyze(item_runs(10, 10_000)), saved),
    # Rankings and evaluations.
    by(300, 15, 1, call="rank, leaderboard", asked=lambda r: lt.rank(r).leaderboard()),
    by(332, 41, 1, call="rank, leaderboard", asked=lambda r: lt.rank(r).leaderboard()),
    by(60, 40, 3, call="rank, leaderboard", asked=lambda r: lt.rank(r).leaderboard()),
    by(332, 41, 1, call="leaderboard", asked=lt.leaderboard),
    ("134 models x 500 items", "leaderboard", lambda: solved(134, 500), lt.leaderboard),
    by(300, 15, 1, call="rank, stability", asked=lambda r: lt.rank(r).stability()),
    by(10, 1_000, 1, call="rank, stability", asked=lambda r: lt.rank(r).stability()),
    by(60, 15, 1, call="rank, bayesian", asked=lambda r: lt.rank(r, "bayesian", rng=0)),
    by(100, 100, 1, call="rank, bayesian", asked=lambda r: lt.rank(r, "bayesian", rng=0)),
    by(10, 1_000, 1, call="rank, bayesian", asked=lambda r: lt.rank(r, "bayesian", rng=0)),
    ("300 models x 10 tasks x 300 items", "evaluate", lambda: items(300, 10, 300), evaluated),
    ("100 models x 20 tasks x 500 items", "evaluate", lambda: items(100, 20, 500), evaluated),
    # Questions.
    by(300, 15, 1, call="sign flips", asked=lambda r: lt.permutation_test(r, exchange="signs", rng=0)),
    by(100, 100, 3, call="seed_effect", asked=lt.seed_effect),
    by(100, 100, 3, 0.2, call="seed_effect", asked=lt.seed_effect),
    by(10, 1_000, 10, call="seed_effect", asked=lt.seed_effect),
    by(10, 20, 5_000, call="seed_effect", asked=lt.seed_effect),
    by(10, 20, 5, call="stochastic_order", asked=lambda r: lt.outperforming(r, measure="stochastic_order", rng=0)),
    by(25, 80, 5, call="stochastic_order", asked=lambda r: lt.outperforming(r, measure="stochastic_order", rng=0)),
    by(25, 80, 5, call="outperforming", asked=compared_by_run),
    by(300, 15, 1, call="outperforming", asked=compared_by_run),
    by(300, 15, 5, call="outperforming", asked=compared_by_run),
    by(300, 15, 5, 0.2, call="outperforming", asked=compared_by_run),
    by(100, 100, 3, call="outperforming", asked=compared_by_run),
    by(10, 1_000, 1, call="outperforming", asked=compared_by_run),
    by(10, 20, 200, call="outperforming", asked=compared_by_run),
    by(300, 15, 5, call="outperforming, not paired", asked=lambda r: compared_by_run(r, paired=False)),
    ("300 x 15 x 1", "outperforming, save", lambda: lt.outperforming(runs(300, 15, 1)), saved),
    by(25, 80, 5, call="audit, 199 draws", asked=lambda r: lt.audit(r, n_draws=199, rng=0)),
    by(25, 80, 5, 0.2, call="robustness, algorithms", asked=lambda r: lt.robustness(r, of="algorithms")),
    by(50, 40, 50, call="benchmark_effects", asked=lt.benchmark_effects),
    by(10, 30, 10, budgets=27, call="anytime", asked=lambda r: lt.anytime(r, rng=0).curves),
    by(10, 30, 10, 0.2, budgets=27, call="anytime", asked=lambda r: lt.anytime(r, rng=0).curves),
    by(5, 10_000, 1, call="check, similar", asked=lambda r: lt.check(r, checks=["similar benchmarks"])),
    (
        "50 x 40 x 50",
        "seeds crossed: fit, pairs",
        lambda: None,
        lambda _: of_recurring_seeds().emmeans("algorithm").pairs(),
    ),
    (
        "50 x 40 x 50, a fifth missing",
        "seeds crossed: fit, pairs",
        lambda: None,
        lambda _: of_recurring_seeds(0.2).emmeans("algorithm").pairs(),
    ),
    (
        "50 x 40 x 50, a fifth missing",
        "lucky seeds: fit, pairs",
        with_lucky_seeds,
        lambda r: lt.fit_lmm(SEEDS_CROSSED, r).emmeans("algorithm").pairs(),
    ),
    ("1,721 children x 4", "random_effects", lambda: slopes_of_children(1721), lambda fit: fit.random_effects("child")),
    ("10 x 60 x 5", "influence", lambda: fitted(runs(10, 60, 5)), lambda fit: fit.influence("benchmark")),
    ("10 x 8 x 8 x 8 x 4", "variance_sources", lambda: sources(10, 8, 8, 8, 4, 1), of_sources),
    ("10 x 8 x 8, 4 each", "variance_sources", lambda: sources(10, 8, 8, 4), of_sources),
    # Tuning.
    ("10,000 scores", "tuning.fit, noisy", lambda: noisy_scores(10_000), noisy_fit),
    ("20,000 scores", "tuning.curve", lambda: noisy_scores(20_000), lambda y: lt.tuning.curve(y, direction="minimize")),
    ("1,000 curves of 100 trials", "tuning.curves, labels", trials, lambda t: lt.tuning.curves(t).labels()),
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
    print(f"{'shape':<36}{'call':<26}{'seconds':>9}{'peak MB':>9}")
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
        print(f"{shape:<36}{call:<26}{seconds:>9}{peak:>9}", flush=True)
    return None


if __name__ == "__main__":
    main()
