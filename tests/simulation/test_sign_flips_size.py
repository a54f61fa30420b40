"""Sign flips keep their level whatever the algorithms are like; exchanges of names make them alike, tests and audit."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

import lmemtest as lt
from lmemtest.bench.permutation.sign_flips import max_t_p_values
from lmemtest.lmm.distributions.sign_patterns import sign_patterns
from lmemtest.lmm.distributions.studentized_range import ptukey

pytestmark = pytest.mark.slow

NULLS = ("alike", "erratic", "grades", "twins", "heavy tails", "outlier")


def means(rng: np.random.Generator, null: str, benchmarks: int, algorithms: int) -> np.ndarray:
    """Mean scores of algorithms that are equally good on average, less the level of each benchmark.

    Advantages have sd 0.5, and runs (5 of them) sd 0.5. Erratic: the last algorithm's advantages have sd 2.5. Grades:
    sds from 0.2 to 1.2. Twins: two algorithms with nearly the same scores. Heavy tails: advantages by t with 2 degrees
    of freedom. Outlier: all differences on one benchmark are 10 times as large.
    """
    shape = (benchmarks, algorithms)
    sd = np.linspace(0.2, 1.2, algorithms) if null == "grades" else np.full(algorithms, 0.5)
    sd[-1] = 2.5 if null == "erratic" else sd[-1]
    advantages = sd * (rng.standard_t(2, size=shape) if null == "heavy tails" else rng.normal(size=shape))
    scores = advantages + 0.5 / np.sqrt(5.0) * rng.normal(size=shape)
    if null == "twins":
        scores[:, 1] = scores[:, 0] + 0.05 * rng.normal(size=benchmarks)
    if null == "outlier":
        scores[0] *= 10.0
    return scores


@pytest.mark.parametrize("algorithms", [3, 6, 15])
@pytest.mark.parametrize("benchmarks", [6, 12])
@pytest.mark.parametrize("null", NULLS)
def test_sign_flips_keep_the_family(null, benchmarks, algorithms):
    n = 500 if algorithms == 15 else 1000
    rng = np.random.default_rng(11)
    i, j = np.triu_indices(algorithms, k=1)
    signs, _ = sign_patterns(benchmarks, 9999, None)
    rejected = 0
    for _ in range(n):
        Y = means(rng, null, benchmarks, algorithms)
        rejected += bool(max_t_p_values(Y[:, i] - Y[:, j], signs, exact=True)[1].min() <= 0.05)
    assert binomtest(rejected, n, 0.05, alternative="greater").pvalue > 0.001
    assert binomtest(rejected, n, 0.005).pvalue < 0.05  # it does reject


@pytest.mark.parametrize("null", ["alike", "erratic", "grades"])
def test_the_equal_pairs_keep_it_too_where_others_differ(null):
    """One algorithm of six is better: stepping down must not make the pairs of the others too easy."""
    n, rejected, found = 1000, 0, 0
    rng = np.random.default_rng(12)
    i, j = np.triu_indices(6, k=1)
    signs, _ = sign_patterns(12, 9999, None)
    equal = (i > 0) & (j > 0)
    for _ in range(n):
        Y = means(rng, null, 12, 6)
        Y[:, 0] += 1.0
        p = max_t_p_values(Y[:, i] - Y[:, j], signs, exact=True)[1]
        rejected += bool(p[equal].min() <= 0.05)
        found += bool(p[~equal].min() <= 0.05)
    assert binomtest(rejected, n, 0.05, alternative="greater").pvalue > 0.001
    assert found > 0.5 * n


def exchange_p(rng: np.random.Generator, Y: np.ndarray, draws: int) -> float:
    """p-value of the largest |t| of the recommended model when names are exchanged (balanced: range over one error)."""

    def largest(values):
        centred = values - values.mean(axis=-1, keepdims=True)
        best = centred.mean(axis=-2)
        error = ((centred - best[..., None, :]) ** 2).sum(axis=(-1, -2))
        return (best.max(axis=-1) - best.min(axis=-1)) / np.sqrt(error)

    drawn = largest(rng.permuted(np.broadcast_to(Y, (draws, *Y.shape)), axis=-1))
    return (1.0 + (drawn >= largest(Y) * (1 - 1e-9)).sum()) / (draws + 1.0)


def test_an_exchange_of_names_rejects_too_often_where_one_algorithm_is_erratic():
    rng = np.random.default_rng(13)
    n = 400
    rejected = {
        null: sum(exchange_p(rng, means(rng, null, 12, 6), 199) <= 0.05 for _ in range(n))
        for null in ("alike", "erratic")
    }
    assert binomtest(rejected["alike"], n, 0.05).pvalue > 0.001
    assert binomtest(rejected["erratic"], n, 0.1, alternative="greater").pvalue < 0.05


def rows(rng: np.random.Generator, kind: str, benchmarks: int = 12, algorithms: int = 6, seeds: int = 5) -> np.ndarray:
    """Scores (benchmark, algorithm, seed) with one erratic algorithm, or with seeds that all benchmarks share."""
    sd = np.full(algorithms, 0.5)
    sd[-1] = 2.5 if kind == "erratic" else 0.5
    Y = rng.normal(size=(benchmarks, 1, 1)) + (sd * rng.normal(size=(benchmarks, algorithms)))[..., None]
    if kind == "shared seeds":
        Y = Y + 0.5 * rng.normal(size=(algorithms, seeds))
    return Y + 0.5 * rng.normal(size=(benchmarks, algorithms, seeds))


def some_pair_differs(Y: np.ndarray) -> bool:
    """Tukey's test of the recommended model, balanced and with a positive variance of advantages."""
    means = Y.mean(axis=2)
    benchmarks, k = means.shape
    rest = means - means.mean(axis=1, keepdims=True) - means.mean(axis=0) + means.mean()
    df = (benchmarks - 1) * (k - 1)
    error = np.sqrt((rest**2).sum() / df / benchmarks)
    return bool(ptukey(np.ptp(means.mean(axis=0)) / error, k, df, upper=True) < 0.05)


@pytest.mark.parametrize(("kind", "least"), [("erratic", 0.10), ("shared seeds", 0.40)])
def test_the_audit_does_not_see_erratic_algorithms_or_shared_seeds(kind, least):
    rng = np.random.default_rng(14)
    n = 400
    truth = sum(some_pair_differs(rows(rng, kind)) for _ in range(n))
    assert binomtest(truth, n, least, alternative="greater").pvalue < 0.05
    Y = rows(rng, kind)
    frame = pd.DataFrame(np.argwhere(np.isfinite(Y)), columns=["benchmark", "algorithm", "seed"])
    frame = frame.assign(loss=Y.ravel(), algorithm=frame["algorithm"].map("abcdef".__getitem__))
    roles = {"algorithm": "algorithm", "benchmark": "benchmark", "seed": "seed"}
    runs = lt.Runs(frame, score="loss", direction="minimize", **roles)
    model = "loss ~ algorithm + (1 | benchmark) + (1 | benchmark:algorithm) + (1 | benchmark:seed)"
    found = lt.audit(runs, model, n_draws=200, unit="benchmark", rng=1).rates.iloc[0]
    assert found.rate < 0.1
    assert found.decision != "too often"
