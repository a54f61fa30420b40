"""Time what rests on fits: bootstrap, permutation, audit, influence, profiles, selection, power, horizons.

Run `python tests/benchmarks/bench_refits.py`. Seconds of the processor, one call each; see README.md.
"""

from __future__ import annotations

import os

os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")  # before numpy

import time
import warnings
from collections.abc import Callable
from typing import Any

from bench_designs import FORMULA, table_of

import lmemtest as lt

QUIET: dict[str, Any] = {"rng": 1, "progress": False}
NULL = FORMULA.replace("algorithm +", "1 +", 1)
ROLES: dict[str, Any] = {"score": "score", "direction": "minimize", "algorithm": "algorithm", "benchmark": "benchmark"}


def uses() -> dict[str, Callable[[], Callable[[], Any]]]:
    """By name: what prepares a call, which is not counted, and returns it."""
    gaps, whole = table_of(20, 40, 20, missing=0.1), table_of(20, 40, 20)

    def bootstrap(table: Any) -> Callable[[], Any]:
        fits = [lt.fit_lmm(formula, table, reml=False) for formula in (NULL, FORMULA)]
        return lambda: lt.glrt(*fits, "bootstrap", n_draws=20, n_jobs=1, **QUIET)

    def influence(table: Any) -> Callable[[], Any]:
        fit = lt.fit_lmm(FORMULA, table)
        return lambda: fit.influence("benchmark", specs="algorithm", progress=False)

    def profile() -> Callable[[], Any]:
        fit = lt.fit_lmm(FORMULA, table_of(10, 20, 10, missing=0.1), reml=False)
        return lambda: fit.profile(progress=False)

    def of_runs(call: Callable[[lt.Runs], Any], table: Any) -> Callable[[], Any]:
        runs = lt.Runs(table, **ROLES, seed="seed")
        return lambda: call(runs)

    return {
        "bootstrap of a likelihood ratio, 20 tables": lambda: bootstrap(whole),
        "the same, a tenth missing": lambda: bootstrap(gaps),
        "permutation test, 99 exchanges": lambda: of_runs(
            lambda runs: lt.permutation_test(runs, FORMULA, n_draws=99, **QUIET), whole
        ),
        "audit of two models, 19 exchanges": lambda: of_runs(
            lambda runs: lt.audit(runs, n_draws=19, unit="benchmark", **QUIET), whole
        ),
        "influence of every benchmark, a tenth missing": lambda: influence(gaps),
        "profile intervals, 10 x 20 x 10, a tenth missing": profile,
        "selection of terms": lambda: of_runs(lt.select_model, whole),
        "power, three designs of 200 studies": lambda: lambda: lt.power(
            lt.VarianceComponents(interaction_sd=0.02, residual_sd=0.03, seed_sd=0.01),
            effect=0.01, n_benchmarks=[6, 12, 24], n_seeds=[5], n_draws=200, **QUIET,
        ),
        "horizons of 60,000 bundled runs": lambda: lambda: lt.anytime(lt.datasets.load_hpo_runs()).at(),
    }  # fmt: skip


def main() -> None:
    print("20 algorithms x 40 benchmarks x 20 seeds where nothing else is said.\n\n| use | seconds |\n|---|---|")
    for name, prepare in uses().items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            call = prepare()
            start = time.process_time()
            call()
        print(f"| {name} | {time.process_time() - start:.2g} |", flush=True)


if __name__ == "__main__":
    main()
