"""What suite.py times: each benchmark with our call, the calls of peers on the same table, and what is promised."""

from __future__ import annotations

import functools
import json
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from bench_designs import DESIGNS, FORMULA, table_of

import lmemtest as lt
from lmemtest import tuning
from lmemtest.lmm.distributions.studentized_range import ptukey
from lmemtest.tuning import order_statistics
from lmemtest.tuning.band import _band

REFERENCE = Path(__file__).parents[1] / "reference"
NESTED = "score ~ algorithm + (1 | benchmark) + (1 | benchmark:algorithm)"
INSTEVAL = "y ~ service + (1|s) + (1|d) + (1|dept:service)"
SMALL, MISSING = "6 x 20 x 25", "10 x 200 x 10, a tenth missing"
N_DRAWS = 50_000  # of a Bayesian comparison
FITS = ("lme4: fit", "glmm: fit", "mixedlm: fit", "lme-python: fit")


@dataclass(frozen=True, kw_only=True)
class Benchmark:
    """One row: ``call`` gets what ``setup`` made, which is not counted, and repeats the work ``per`` times.

    ``peers`` are tasks of peers.R or peers.py with how often they repeat it; ``ratios`` are the goals, how many
    times as long a peer may at least take, and ``limit`` is one in seconds.
    """

    name: str
    group: str
    call: Callable[[Any], object]
    setup: Callable[[], Any] = lambda: None
    table: str = ""
    formula: str = ""
    peers: Mapping[str, float] = field(default_factory=dict)
    per: float = 1
    ratios: Mapping[str, float] = field(default_factory=dict)
    limit: float | None = None
    quick: bool = False


def equal(*tasks: str) -> dict[str, float]:
    """Peers that do the work once."""
    return dict.fromkeys(tasks, 1.0)


def missing() -> str | None:
    """Why the benchmarks of PriorBand are left out, or None."""
    return None if os.environ.get("LMEMTEST_DATA") else "LMEMTEST_DATA is not set: nothing on PriorBand"


# ---------------------------------------------------------------------- tables


@functools.cache
def table(name: str) -> pd.DataFrame:
    """A table by its name, made once."""
    if name in DESIGNS:
        return table_of(*DESIGNS[name])
    return TABLES[name]()


def insteval() -> pd.DataFrame:
    return pd.read_csv(
        REFERENCE / "inputs" / "InstEval.csv.gz", dtype=dict.fromkeys(("s", "d", "service", "dept"), str)
    )


def priorband() -> pd.DataFrame:
    columns = ["benchmark", "prior", "algorithm", "used_fidelity", "value", "seed"]
    return pd.read_parquet(Path(os.environ["LMEMTEST_DATA"]) / "priorband.parquet", columns=columns)


def one_budget() -> pd.DataFrame:
    """6,000 bundled runs: those of one budget."""
    runs = lt.datasets.load_hpo_runs().to_frame().rename(columns={"loss": "score"})
    return runs.loc[runs["budget"] == 16, ["score", "algorithm", "benchmark", "seed"]].reset_index(drop=True)


def wide(clip: bool) -> pd.DataFrame:
    """50 scores of each of six populations; clipped, no test takes them for normal."""
    rng = np.random.default_rng(1)
    means = np.array([0.2, 0.3, 0.5, 0.8, 0.85, 0.9])
    clipped = np.clip(rng.normal(means, 0.3, (50, 6)), 0.0, 1.0)
    normal = rng.normal(means, 0.2, (50, 6))
    return pd.DataFrame(clipped if clip else normal).add_prefix("pop_")


def groups() -> pd.DataFrame:
    """50 benchmarks x 5 algorithms x 48 trials."""
    rng = np.random.default_rng(1)
    names = pd.MultiIndex.from_product([range(50), list("ABCDE"), range(48)], names=["benchmark", "algorithm", "trial"])
    return names.to_frame(index=False).assign(score=rng.normal(size=len(names)))


def answers(models: int, tasks: int, items: int) -> pd.DataFrame:
    """One right or wrong answer of every model to every item of every task."""
    rng = np.random.default_rng(1)
    t, i, m = (index.ravel() for index in np.indices((tasks, items, models)))
    eta = (
        1.0 + np.linspace(-0.5, 0.5, models)[m] + rng.normal(0, 0.7, tasks)[t] + rng.normal(0, 1, (tasks, items))[t, i]
    )
    eta = eta + rng.normal(0, 0.4, (tasks, models))[t, m]
    y = (rng.random(len(eta)) < 1 / (1 + np.exp(-eta))).astype(int)
    names = {"model": np.char.add("m", m.astype(str)), "task": np.char.add("t", t.astype(str))}
    return pd.DataFrame({"y": y, **names, "item": np.char.add("i", i.astype(str))})


TABLES: dict[str, Callable[[], pd.DataFrame]] = {
    "InstEval": insteval,
    "PriorBand": priorband,
    "bundled": one_budget,
    "clipped": lambda: wide(clip=True),
    "normal": lambda: wide(clip=False),
    "trials": groups,
    "20 models, 10 tasks": lambda: answers(20, 10, 500),
    "8 models, 10 tasks": lambda: answers(8, 10, 50),
    "20 models, 40 tasks": lambda: answers(20, 40, 1250),
    "134 models": lambda: answers(134, 1, 500),
}

# ---------------------------------------------------------------------- groups


def fits() -> list[Benchmark]:
    """Fits from raw rows."""
    found = []
    for name in DESIGNS:
        peers = equal(*FITS, *(["statsmodels: fit"] if name == SMALL else []))
        found.append(Benchmark(
            name=name, group="fits", table=name, formula=FORMULA, peers=peers, quick=name == SMALL,
            call=lambda _, name=name: lt.fit_lmm(FORMULA, table(name)),
        ))  # fmt: skip
    found.append(Benchmark(
        name="InstEval, 73,421 rows, crossed", group="fits", table="InstEval", formula=INSTEVAL, peers=equal(*FITS),
        call=lambda _: lt.fit_lmm(INSTEVAL, table("InstEval")),
    ))  # fmt: skip
    if missing() is None:
        models = json.loads((REFERENCE / "priorband_table.json").read_text(encoding="utf-8"))["models"]
        formulas = [row["formula"] for row in models if row["lme4_seconds"] is not None]
        found.append(Benchmark(
            name=f"PriorBand, 86,400 rows, {len(formulas)} models by ML", group="fits", table="PriorBand",
            formula=";".join(formulas), peers=equal("lme4: fits by ML"),
            call=lambda _: [lt.fit_lmm(formula, table("PriorBand"), reml=False) for formula in formulas],
        ))  # fmt: skip
    return found


def generalised() -> list[Benchmark]:
    """Right or wrong answers by restricted pseudo-likelihood, nearest to nAGQ = 0, and by Laplace, as the others."""
    of_tasks, of_items = "y ~ model + (1 | task) + (1 | task:item) + (1 | task:model)", "y ~ model + (1 | item)"
    quick, *laplace = "lme4: answers, nAGQ = 0", "lme4 by Laplace: answers", "glmmTMB: answers", "glmm: answers"
    shapes = {
        "8 models x 10 tasks x 50 items": ("8 models, 10 tasks", of_tasks),
        "20 models x 10 tasks x 500 items": ("20 models, 10 tasks", of_tasks),
        "134 models x 500 items": ("134 models", of_items),
        "1,000,000 answers of 20 models to 40 tasks": ("20 models, 40 tasks", of_tasks),
    }
    limits = {"134 models": 5.0, "20 models, 40 tasks": 20.0}
    goals = {"8 models, 10 tasks": {laplace[0]: 10}, "20 models, 10 tasks": {quick: 10, laplace[0]: 10}}

    def rows(name: str, shape: str, formula: str) -> Iterator[Benchmark]:
        of_both: dict[str, Any] = {"group": "generalised", "table": shape, "formula": formula}
        calls = {"pseudo-likelihood": ([quick], {}), "Laplace": (laplace, {"method": "laplace"})}
        if shape == "20 models, 40 tasks":
            calls = {"pseudo-likelihood": ([], {})}
        for method, (tasks, options) in calls.items():
            yield Benchmark(
                name=f"{name}, {method}", **of_both, peers=equal(*tasks), limit=None if options else limits.get(shape),
                ratios={task: goal for task, goal in goals.get(shape, {}).items() if task in tasks},
                call=lambda _, options=options: lt.fit_glmm(formula, table(shape), **options),
            )  # fmt: skip

    return [row for name, (shape, formula) in shapes.items() for row in rows(name, shape, formula)]


def pairs() -> list[Benchmark]:
    """Fits with means and all pairs, beside the same of emmeans and beside the mere fits of lme4 and glmm."""
    return [
        Benchmark(
            name=name, group="pairs", table=name, formula=FORMULA, quick=name == SMALL,
            peers=equal("lmerTest and emmeans: fit and pairs", "lme4: fit", "glmm: fit"),
            ratios={} if name == MISSING or "2,000" in name else {"lme4: fit": 30, "glmm: fit": 3},
            limit=0.3 if name in ("50 x 40 x 50", "10 x 2,000 x 10") else None,
            call=lambda _, name=name: lt.fit_lmm(FORMULA, table(name)).emmeans("algorithm").pairs(),
        )
        for name in DESIGNS
    ]  # fmt: skip


def inference() -> list[Benchmark]:
    """What is done with a fit of 6,000 bundled runs, those of one budget; the fit is not counted.

    Pairs are not here: lmerTest works out what their degrees of freedom need when it fits, and is slow only where the
    fit is lme4's, so they are fair only together with the fit.
    """

    def fresh(formula: str = FORMULA, **options: Any) -> Callable[[], Any]:
        return lambda: lt.fit_lmm(formula, table("bundled"), **options)  # a fit keeps what it has computed

    def both() -> tuple[Any, Any]:
        null = FORMULA.replace("algorithm +", "1 +", 1)
        return fresh(null, reml=False)(), fresh(reml=False)()

    def runs() -> lt.Runs:
        roles = {"score": "score", "direction": "minimize", "algorithm": "algorithm", "benchmark": "benchmark"}
        return lt.Runs(table("bundled"), **roles, seed="seed")

    rng = np.random.default_rng(1)
    q, df = rng.uniform(0.5, 8, 276), rng.uniform(3, 500, 276)
    bundled: dict[str, Any] = {"group": "inference", "table": "bundled", "formula": FORMULA}
    quiet: dict[str, Any] = {"rng": 1, "progress": False}
    return [
        Benchmark(name="Kenward-Roger covariance and df", **bundled, setup=fresh(), limit=2,
                  peers=equal("pbkrtest: Kenward-Roger"), call=lambda fit: fit.to_frame(ddf="kenward-roger")),
        Benchmark(name="profile intervals of all parameters", **bundled, setup=fresh(reml=False),
                  peers=equal("lme4: profile"), call=lambda fit: fit.profile(progress=False)),
        Benchmark(name="influence of every benchmark", **bundled, setup=fresh(), peers=equal("lme4: influence"),
                  call=lambda fit: fit.influence("benchmark", specs="algorithm", progress=False)),
        Benchmark(name="CR2 with df by benchmark", **{**bundled, "formula": NESTED}, setup=fresh(NESTED),
                  peers=equal("clubSandwich: CR2"), call=lambda fit: fit.cluster_robust("benchmark").to_frame()),
        Benchmark(name="bootstrap of a likelihood ratio, one table", **bundled, setup=both, per=99, limit=2 * 30 / 999,
                  peers={"pbkrtest: bootstrap": 10},
                  call=lambda fits: lt.glrt(*fits, "bootstrap", n_draws=99, n_jobs=1, **quiet)),
        Benchmark(name="permutation test, one exchange", **bundled, setup=runs, per=99, peers=equal("lme4: refit"),
                  call=lambda runs: lt.permutation_test(runs, FORMULA, n_draws=99, **quiet)),
        Benchmark(name="276 Tukey p-values with distinct df", group="inference", limit=0.5, quick=True,
                  peers={"R: ptukey": 1, "SciPy: Tukey": 10 / 276}, call=lambda _: ptukey(q, 24, df, upper=True)),
    ]  # fmt: skip


def rankings() -> list[Benchmark]:
    """Wide tables of six populations, 50 samples, by `compat.autorank` and by `rank`."""
    from lmemtest.compat.autorank import autorank

    rope = {"rope": 0.1, "rope_unit": "effect", "n_draws": N_DRAWS, "rng": 1}
    bayes = {"approach": "bayesian", "nsamples": N_DRAWS, "random_state": 1}
    cases: list[tuple[str, str, int, str, dict[str, Any], dict[str, Any]]] = [
        ("Friedman, Nemenyi", "clipped", 6, "Friedman", {}, {}),
        ("ANOVA, Tukey", "normal", 6, "ANOVA", {"force_mode": "parametric"}, {"test": "tukey"}),
        ("paired t", "normal", 2, "paired t", {"force_mode": "parametric"}, {"test": "t"}),
        ("signed ranks", "clipped", 2, "signed ranks", {"force_mode": "nonparametric"}, {"test": "wilcoxon"}),
        ("Bayesian signed ranks", "clipped", 6, "Bayes", bayes, rope),
    ]
    found = []
    for name, of, k, task, theirs, options in cases:
        peers = equal(f"Autorank: {task}", *(["scikit-posthocs: Nemenyi"] if "Nemenyi" in name else []))
        method = "bayesian" if "Bayes" in name else "frequentist"
        row: dict[str, Any] = {"group": "rankings", "table": of, "peers": peers, "quick": "Bayes" not in name}
        found.append(Benchmark(
            name=f"{name}: `compat.autorank`", **row,
            call=lambda _, of=of, k=k, theirs=theirs: autorank(table(of).iloc[:, :k], **theirs),
        ))  # fmt: skip
        found.append(Benchmark(
            name=f"{name}: `rank`", **row,
            call=lambda _, of=of, k=k, method=method, options=options: lt.rank(
                table(of).iloc[:, :k], method, direction="maximize", **options
            ),
        ))  # fmt: skip

    def long() -> lt.Runs:
        roles = {"score": "score", "direction": "maximize", "algorithm": "algorithm", "benchmark": "benchmark"}
        return lt.Runs(table(SMALL), **roles, seed="seed")

    found.append(Benchmark(
        name="interquartile means of 3,000 runs, 2,000 draws: `aggregate_scores`", group="rankings", table=SMALL,
        peers=equal("rliable: interquartile mean"), setup=long,
        call=lambda runs: lt.aggregate_scores(runs, "iqm", drawn="n", n_draws=2_000, rng=1),
    ))  # fmt: skip
    return found


def drop_in() -> list[Benchmark]:
    """The functions of `compat.significance_analysis` on PriorBand."""
    if missing() is not None:
        return []
    from lmemtest.compat import significance_analysis as ours

    formula = "value ~ algorithm + (1|benchmark) + prior"
    checks = ("seed_dependency_check", "benchmark_information_check", "fidelity_check")
    calls: dict[str, Callable[[Any], object]] = {
        "model and post_hoc": lambda valid: ours.model(formula, valid).post_hoc("algorithm"),
        **{name: lambda valid, name=name: getattr(ours, name)(valid, verbose=False) for name in checks},
        "metafeature_analysis": lambda valid: ours.metafeature_analysis(valid, ("HB", "PB"), "prior", verbose=False),
    }
    return [
        Benchmark(name=f"`{name}`" if "_" in name else name, group="drop-in", table="PriorBand", formula=formula,
                  peers=equal(f"significance-analysis: {name}"), call=call,
                  setup=lambda: ours.dataframe_validator(table("PriorBand").copy(), verbose=False)[0])
        for name, call in calls.items()
    ]  # fmt: skip


def tuning_curves() -> list[Benchmark]:
    """Bands from nothing (whatever earlier calls left is cleared), and the curves of a table."""

    def forget(n: int) -> np.ndarray:
        order_statistics.calibrate.cache_clear()
        order_statistics._solve.cache_clear()
        _band.cache_clear()
        return np.random.default_rng(n).random(n)

    limits = {48: 0.05, 256: None, 1024: 1.0, 10_000: 10.0}
    found = [
        Benchmark(
            name=f"band and curve of {n:,} scores", group="tuning", quick=n == 48, limit=limit,
            setup=lambda n=n: forget(n), peers=equal(f"opda: {n}") if n < 1_000 else {},
            call=lambda scores: tuning.curve(scores, direction="maximize", band="ld_highest_density"),
        )
        for n, limit in limits.items()
    ]  # fmt: skip

    def whole(_: object) -> None:
        made = tuning.curves(table("trials"), score="score", direction="maximize")
        made.to_frame()
        made.labels(rng=1)

    found.append(
        Benchmark(name="12,000 trials, 250 groups: curves, table, labels", group="tuning", limit=1, call=whole)
    )
    return found


def questions(n: int, models: int = 4) -> lt.Runs:
    """Right or wrong answers of a few models to many questions."""
    rng = np.random.default_rng(1)
    difficulty = rng.normal(0.0, 1.5, n)
    chance = 1.0 / (1.0 + np.exp(difficulty[None, :] - 0.3 * np.arange(models)[:, None]))
    right = (rng.random((models, n)) < chance).astype(float)
    names = [(f"model{i}", f"q{j:04d}", right[i, j]) for i in range(models) for j in range(n)]
    frame = pd.DataFrame(names, columns=["model", "question", "correct"])
    return lt.Runs(frame, score="correct", direction="maximize", algorithm="model", benchmark="question")


def algorithms(n: int, benchmarks: int = 15, seeds: int = 3) -> lt.Runs:
    """Runs of many algorithms."""
    roles = {"score": "score", "direction": "minimize", "algorithm": "algorithm", "benchmark": "benchmark"}
    return lt.Runs(table_of(n, benchmarks, seeds), **roles, seed="seed")


def recipes() -> list[Benchmark]:
    """What no peer has: whole analyses with their reports, and other questions that take long."""
    plan = lt.VarianceComponents(interaction_sd=0.02, residual_sd=0.03, seed_sd=0.01)
    grid = {"n_benchmarks": [6, 12, 24, 48], "n_seeds": [5, 10, 25]}
    quiet: dict[str, Any] = {"rng": 1, "progress": False}

    def bundled() -> lt.Runs:
        return lt.datasets.load_hpo_runs()

    tables: dict[str, Callable[[], lt.Runs]] = {
        "60,000 bundled runs": bundled,
        "20 algorithms x 15 benchmarks x 3 seeds": lambda: algorithms(20),
        "200 algorithms x 15 benchmarks x 3 seeds": lambda: algorithms(200),
        "4 models x 5,000 questions": lambda: questions(5_000),
    }
    found = [
        Benchmark(name=f"`analyze` and its html: {name}", group="recipes", setup=make,
                  call=lambda runs: lt.analyze(runs).to_html())
        for name, make in tables.items()
    ]  # fmt: skip
    return [
        *found,
        Benchmark(name="`rank`, mixed model: 6,000 bundled runs", group="recipes", quick=True,
                  setup=lambda: bundled().filter(budget=16), call=lambda runs: lt.rank(runs)),
        Benchmark(name="`recommend`: 60,000 bundled runs", group="recipes", setup=bundled,
                  call=lambda runs: lt.recommend(runs)),
        Benchmark(name="`check`: 60,000 bundled runs", group="recipes", setup=bundled,
                  call=lambda runs: lt.check(runs)),
        Benchmark(name="`variance_sources`: 60,000 bundled runs", group="recipes", setup=bundled,
                  call=lambda runs: lt.variance_sources(runs)),
        Benchmark(name="`fit.diagnose()`: 6,000 bundled runs", group="recipes",
                  setup=lambda: lt.fit_lmm(FORMULA, table("bundled")), call=lambda fit: fit.diagnose(**quiet)),
        Benchmark(name="`audit` of two models, one exchange: 6,000 bundled runs", group="recipes", per=99,
                  setup=lambda: bundled().filter(budget=16),
                  call=lambda runs: lt.audit(runs, n_draws=99, unit="benchmark", **quiet)),
        Benchmark(name="`power`, 4 x 3 designs of 1,000 studies", group="recipes",
                  call=lambda _: lt.power(plan, effect=0.01, **grid, n_draws=1_000, **quiet)),
    ]  # fmt: skip


def benchmarks() -> list[Benchmark]:
    """All of them, in the order of the page."""
    return [*fits(), *generalised(), *pairs(), *inference(), *rankings(), *drop_in(), *tuning_curves(), *recipes()]
