"""Sign flips keep their level whatever the algorithms are like; exchanges of names make them alike, tests and audit."""

from __future__ import annotations

import numpy as np
import pytest
from harness import about, at_most, rate_of, tukey_differs
from study import runs_of_scores

import lmemtest as lt
from lmemtest.bench.permutation.sign_flips import max_t_p_values
from lmemtest.core.resampling import sign_patterns

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


def flipped_p(Y: np.ndarray, signs: np.ndarray) -> np.ndarray:
    """Adjusted p-values of all pairs, exact."""
    i, j = np.triu_indices(Y.shape[1], k=1)
    return max_t_p_values(Y[:, i] - Y[:, j], signs, exact=True)[1]


@pytest.mark.parametrize("algorithms", [3, 6, 15])
@pytest.mark.parametrize("benchmarks", [6, 12])
@pytest.mark.parametrize("null", NULLS)
def test_sign_flips_keep_the_family(null, benchmarks, algorithms):
    n = 500 if algorithms == 15 else 1000
    signs, _ = sign_patterns(benchmarks, 9999, None)
    rejected = rate_of(lambda rng: flipped_p(means(rng, null, benchmarks, algorithms), signs).min() <= 0.05, n, 11)
    assert at_most(rejected, n)
    assert not about(rejected, n, 0.005, p=0.05)  # it does reject


@pytest.mark.parametrize("null", ["alike", "erratic", "grades"])
def test_the_equal_pairs_keep_it_too_where_others_differ(null):
    """One algorithm of six is better: stepping down must not make the pairs of the others too easy."""
    signs, _ = sign_patterns(12, 9999, None)

    def study(rng):
        p = flipped_p(means(rng, null, 12, 6) + (np.arange(6) == 0), signs)
        return p[5:].min() <= 0.05, p[:5].min() <= 0.05  # the first five pairs are those of the first algorithm

    rejected, found = rate_of(study, 1000, 12)
    assert at_most(rejected, 1000)
    assert found > 0.5


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
    def study(rng):
        return {null: exchange_p(rng, means(rng, null, 12, 6), 199) <= 0.05 for null in ("alike", "erratic")}

    rejected = rate_of(study, 400, 13)
    assert about(rejected["alike"], 400)
    assert not at_most(rejected["erratic"], 400, 0.1, p=0.05)


def rows(rng: np.random.Generator, kind: str, benchmarks: int = 12, algorithms: int = 6, seeds: int = 5) -> np.ndarray:
    """Scores (benchmark, algorithm, seed) with one erratic algorithm, or with seeds that all benchmarks share."""
    sd = np.full(algorithms, 0.5)
    sd[-1] = 2.5 if kind == "erratic" else 0.5
    Y = rng.normal(size=(benchmarks, 1, 1)) + (sd * rng.normal(size=(benchmarks, algorithms)))[..., None]
    if kind == "shared seeds":
        Y = Y + 0.5 * rng.normal(size=(algorithms, seeds))
    return Y + 0.5 * rng.normal(size=(benchmarks, algorithms, seeds))


@pytest.mark.parametrize(("kind", "least"), [("erratic", 0.10), ("shared seeds", 0.40)])
def test_the_audit_does_not_see_erratic_algorithms_or_shared_seeds(kind, least):
    rng = np.random.default_rng(14)
    assert not at_most(rate_of(lambda rng: tukey_differs(rows(rng, kind)), 400, rng), 400, least, p=0.05)
    model = "score ~ algorithm + (1 | benchmark) + (1 | benchmark:algorithm) + (1 | benchmark:seed)"
    found = lt.audit(runs_of_scores(rows(rng, kind)), model, n_draws=200, unit="benchmark", rng=1).rates.iloc[0]
    assert found.rate < 0.1
    assert found.decision != "too often"
