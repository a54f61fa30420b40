"""A process that times Python packages other than lmemtest for suite.py, with the interpreter that has them.

Reads lines "task<TAB>table.csv<TAB>formula" and answers each by a line of JSON: [seconds on the clock, seconds of the
processor], or a sentence why there is no time. Reading, importing and what a task prepares are not counted.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
import io
import json
import os
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd

Call = Callable[[], object]
PACKAGES = ("glmm", "mixedlm", "lme-python", "statsmodels", "autorank", "scikit-posthocs", "opda", "rliable",
            "significance-analysis", "numpy", "scipy", "pandas")  # fmt: skip
WARM = 0.1  # seconds: as in suite.py
NAMES = ("algorithm", "benchmark", "seed", "s", "d", "dept", "service")  # columns that are no numbers


def glmm_fit(table: pd.DataFrame, formula: str) -> Call:
    import glmm

    return lambda: glmm.fit(table, formula)


def glmm_answers(table: pd.DataFrame, formula: str) -> Call:
    """By Laplace's approximation."""
    import glmm

    return lambda: glmm.fit(table, formula, family="binomial")


def mixedlm_fit(table: pd.DataFrame, formula: str) -> Call:
    import mixedlm

    return lambda: mixedlm.lmer(formula, table)


def lme_python_fit(table: pd.DataFrame, formula: str) -> Call:
    import lme_python
    import polars

    columns = polars.DataFrame({name: table[name].to_numpy() for name in table})
    return lambda: lme_python.lmer(formula, columns, reml=True)


def statsmodels_fit(table: pd.DataFrame, formula: str) -> Call:
    """The recommended model: nested effects are variance components within a benchmark."""
    from statsmodels.formula.api import mixedlm

    fixed, parts = formula.split(" + (")[0], {"algorithm": "0 + C(algorithm)", "seed": "0 + C(seed)"}
    return lambda: mixedlm(fixed, table, groups="benchmark", re_formula="1", vc_formula=parts).fit()


def autorank_of(columns: slice = slice(None), **options: Any) -> Callable[[pd.DataFrame, str], Call]:
    def prepare(table: pd.DataFrame, _: str) -> Call:
        from autorank import autorank

        return lambda: autorank(table.iloc[:, columns], **options)

    return prepare


def nemenyi(table: pd.DataFrame, _: str) -> Call:
    import scikit_posthocs

    return lambda: scikit_posthocs.posthoc_nemenyi_friedman(table)


def opda_band(size: int) -> Callable[[pd.DataFrame, str], Call]:
    def prepare(_: pd.DataFrame, __: str) -> Call:
        from opda import nonparametric

        scores = np.random.default_rng(size).random(size)
        bands = nonparametric.EmpiricalDistribution.confidence_bands

        def call() -> object:
            nonparametric._ld_band_weights.cache_clear()  # from nothing, like ours
            return bands(scores, 0.8, method="ld_highest_density", n_jobs=1)

        return call

    return prepare


def rliable_iqm(table: pd.DataFrame, _: str) -> Call:
    from rliable import library, metrics

    scores = {name: part.pivot_table(index="seed", columns="benchmark", values="score").to_numpy()
              for name, part in table.groupby("algorithm")}  # fmt: skip
    iqm = lambda x: np.array([metrics.aggregate_iqm(x)])  # noqa: E731
    return lambda: library.get_interval_estimates(scores, iqm, reps=2_000)


def significance_analysis(name: str) -> Callable[[pd.DataFrame, str], Call]:
    def prepare(table: pd.DataFrame, formula: str) -> Call:
        import significance_analysis as module

        valid = module.dataframe_validator(table.copy(), verbose=False)[0]
        if name == "model and post_hoc":
            return lambda: module.model(formula, valid.copy()).post_hoc("algorithm")
        given = [("HB", "PB"), "prior"] if name == "metafeature_analysis" else []
        return lambda: getattr(module, name)(valid.copy(), *given, verbose=False)

    return prepare


def scipy_tukey(_: pd.DataFrame, __: str) -> Call:
    """Ten of the 276 p-values."""
    from scipy.stats import studentized_range

    rng = np.random.default_rng(1)
    q, df = rng.uniform(0.5, 8, 276)[:10], rng.uniform(3, 500, 276)[:10]
    return lambda: studentized_range.sf(q, 24, df)


TASKS: dict[str, Callable[[pd.DataFrame, str], Call]] = {
    "glmm: fit": glmm_fit,
    "glmm: answers": glmm_answers,
    "mixedlm: fit": mixedlm_fit,
    "lme-python: fit": lme_python_fit,
    "statsmodels: fit": statsmodels_fit,
    "Autorank: Friedman": autorank_of(),
    "Autorank: ANOVA": autorank_of(force_mode="parametric"),
    "Autorank: paired t": autorank_of(slice(2), force_mode="parametric"),
    "Autorank: signed ranks": autorank_of(slice(2), force_mode="nonparametric"),
    "Autorank: Bayes": autorank_of(approach="bayesian", nsamples=50_000, random_state=1),
    "scikit-posthocs: Nemenyi": nemenyi,
    "opda: 48": opda_band(48),
    "opda: 256": opda_band(256),
    "rliable: interquartile mean": rliable_iqm,
    "significance-analysis: model and post_hoc": significance_analysis("model and post_hoc"),
    "significance-analysis: seed_dependency_check": significance_analysis("seed_dependency_check"),
    "significance-analysis: benchmark_information_check": significance_analysis("benchmark_information_check"),
    "significance-analysis: fidelity_check": significance_analysis("fidelity_check"),
    "significance-analysis: metafeature_analysis": significance_analysis("metafeature_analysis"),
    "SciPy: Tukey": scipy_tukey,
}


@functools.cache
def table_of(path: str) -> pd.DataFrame:
    return pd.read_csv(path, dtype=dict.fromkeys(NAMES, str)) if path else pd.DataFrame()


@functools.cache
def prepared(task: str, path: str, formula: str) -> Call:
    return TASKS[task](table_of(path), formula)


def versions() -> dict[str, str]:
    found = {"Python": sys.version.split()[0]}
    for package in PACKAGES:
        with contextlib.suppress(importlib.metadata.PackageNotFoundError):
            found[package] = importlib.metadata.version(package)
    return found


def main() -> None:
    # what packages print, from compiled code too, must not come between the answers
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    warnings.simplefilter("ignore")
    print(json.dumps(versions()), file=answers, flush=True)
    for line in sys.stdin:
        try:
            call = prepared(*line.rstrip("\n").split("\t"))
            with contextlib.redirect_stdout(io.StringIO()):
                wall, work, calls = time.perf_counter(), time.process_time(), 0
                while time.perf_counter() - wall < WARM:
                    call()
                    calls += 1
                said: object = [(time.perf_counter() - wall) / calls, (time.process_time() - work) / calls]
        except ModuleNotFoundError as error:
            said = f"{error.name} is not installed"
        except Exception as error:  # a failure is a cell of the table
            said = f"fails: {type(error).__name__}: {error}"[:120].replace("\n", " ")
        print(json.dumps(said), file=answers, flush=True)


if __name__ == "__main__":
    main()
