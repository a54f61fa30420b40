"""Size of robust tests: few clusters, variances that differ, and a model that takes them to be equal."""

from __future__ import annotations

from functools import cache

import numpy as np
import pandas as pd
import pytest
from harness import at_least, at_most, rate_of

import lmemtest as lt
from lmemtest.lmm.intervals.cluster_robust import cluster_robust

N = 1000  # tables
FORMULA = "score ~ algorithm + (1|benchmark) + (1|benchmark:algorithm)"


@cache
def layout(benchmarks: int) -> pd.DataFrame:
    """Three algorithms; benchmarks with 3 to 14 runs of each, more where the scores vary more, an eighth missing."""
    rng = np.random.default_rng(benchmarks)
    rows = [
        (b, a, s)
        for b in range(benchmarks)
        for a in range(3)
        for s in range(3 + 11 * b // max(benchmarks - 1, 1))
        if s < 2 or rng.random() > 0.125
    ]
    table = pd.DataFrame(rows, columns=["benchmark", "algorithm", "seed"])
    return table.assign(label=table["algorithm"].map("abc".__getitem__))


def draw(rng: np.random.Generator, benchmarks: int) -> pd.DataFrame:
    """No algorithm is better on average.

    Noise grows tenfold from the first benchmark to the last, and the third algorithm depends on the benchmark five
    times as much as the others.
    """
    table = layout(benchmarks)
    b, a = table["benchmark"].to_numpy(), table["algorithm"].to_numpy()
    scale = np.geomspace(0.3, 3.0, benchmarks)
    advantage = np.array([0.3, 0.3, 1.5]) * rng.normal(size=(benchmarks, 3))
    noise = scale[b] * (advantage[b, a] + rng.normal(size=len(table)))
    return pd.DataFrame({"benchmark": b, "algorithm": table["label"], "score": rng.normal(size=benchmarks)[b] + noise})


@cache
def rejections(benchmarks: int) -> dict[str, float]:
    """Null hypotheses rejected at 5 %: the third algorithm against the first, and all three at once ("joint")."""

    def study(rng: np.random.Generator) -> dict[str, bool]:
        fit = lt.fit_lmm(FORMULA, draw(rng, benchmarks), restarts=0)
        robust = cluster_robust(fit, "benchmark")
        # the plain sandwich as it is mostly used: with a normal distribution
        plain = cluster_robust(fit, "benchmark", kind="CR0").bse.iloc[2]
        return {
            "model": fit.to_frame().loc[2, "p_value"] < 0.05,
            "CR0": abs(fit.params.iloc[2]) > 1.959964 * plain,
            "CR2": robust.to_frame().loc[2, "p_value"] < 0.05,
            "joint": robust.f_test(np.eye(3)[1:]).p_value < 0.05,
        }

    return rate_of(study, N, benchmarks)


@pytest.mark.parametrize("benchmarks", [6, 12, 24])
def test_cr2_keeps_its_level_where_variances_differ(benchmarks):
    assert at_most(rejections(benchmarks)["CR2"], N)
    assert at_most(rejections(benchmarks)["joint"], N)


def test_cr2_is_not_merely_cautious():
    assert at_least(rejections(24)["CR2"], N, 0.03)


def test_the_plain_sandwich_and_the_model_do_not_keep_it():
    assert not at_most(rejections(6)["CR0"], N, p=1e-6)
    assert not at_most(rejections(12)["model"], N, p=1e-6)
