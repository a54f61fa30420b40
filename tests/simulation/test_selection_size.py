"""What choosing terms does to error rates: where nothing is to be found, and in the test that follows."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest

import lmemtest as lt
from lmemtest.bench.modelling.builder import ModelBuilder
from lmemtest.bench.modelling.select_model import select_model

pytestmark = pytest.mark.slow


def study(rng, *, k=3, b=12, n=4, pair=0.0, level=0.0):
    """Algorithms and a metafeature without a general effect.

    `pair` is the sd of advantages between benchmarks, `level` that of what the metafeature does to them.
    """
    grid = np.array(list(itertools.product(range(k), range(b), range(2), range(n))))
    a, t, m, s = grid.T
    y = rng.normal(size=b)[t] + pair * rng.normal(size=(b, k))[t, a]
    y += level * rng.normal(size=(b, 2))[t, m] if level else 0.0
    frame = pd.DataFrame({"tool": a, "task": t, "prior": m, "seed": s, "y": y + rng.normal(size=len(grid))})
    for column, letter in (("tool", "A"), ("task", "t"), ("prior", "p")):
        frame[column] = letter + frame[column].astype(str)
    roles = {"algorithm": "tool", "benchmark": "task", "seed": "seed", "metafeatures": ["prior"]}
    return lt.Runs(frame, score="y", direction="minimize", **roles)


def rejects(fit):
    return bool((fit.emmeans("tool").pairs().to_frame()["p_value"] < 0.05).any())


def at_most(hits, n, nominal=0.05):
    return binomtest(hits, n, nominal, alternative="greater").pvalue > 0.001


def test_a_metafeature_without_effect_is_rarely_added():
    """One candidate at alpha; several at alpha together with Holm's adjustment, at more without it."""
    rng = np.random.default_rng(1)
    n, one, holm, raw = 300, 0, 0, 0
    names = ["prior", "seed"]
    for _ in range(n):
        start = ModelBuilder(study(rng, pair=0.5)).random("benchmark", "benchmark:algorithm")
        one += bool(start.select(candidates=["C(prior)"]).chosen)
        first = start.select(candidates=names, max_steps=1)
        holm += bool(first.chosen)
        tried = first.to_frame()["p_raw"].dropna()
        raw += bool((tried <= 0.05).any())
    print(f"added: one candidate {one / n:.3f}, Holm {holm / n:.3f}, unadjusted {raw / n:.3f}")
    assert len(tried) == 5  # prior, with the algorithm too, its instances, seeds on all benchmarks and on each
    assert binomtest(one, n, 0.05).pvalue > 0.001
    assert at_most(holm, n)
    assert raw > 1.5 * max(holm, 1)


def test_a_metafeature_that_acts_differently_on_few_benchmarks_enters_too_often():
    """What the notes of `select_model` say about chi-squared tests of fixed effects that vary between benchmarks."""
    shares = {}
    for b, n in ((5, 200), (20, 200)):
        hits = 0
        for i in range(n):
            runs = study(np.random.default_rng([b, i]), b=b, n=3, pair=0.5, level=0.7)
            start = ModelBuilder(runs).random("benchmark", "benchmark:algorithm", "benchmark:prior")
            hits += bool(start.select(candidates=["C(prior)"]).chosen)
        shares[b] = hits / n
    print(f"added at 5 %: {shares}")
    assert binomtest(round(200 * shares[5]), 200, 0.05, alternative="greater").pvalue < 0.01
    assert shares[20] < 0.1


def test_p_values_of_a_chosen_model_are_too_small_and_those_of_the_other_half_are_not():
    """Advantages that the choice misses are missing from its error, not from that of the benchmarks held out."""
    rng = np.random.default_rng(2)
    n, naive, honest, designed = 250, 0, 0, 0
    for _ in range(n):
        runs = study(rng, pair=0.4)
        options = {"criterion": "bic", "candidates": ["benchmark", "prior"]}
        naive += rejects(select_model(runs, **options).fit())
        honest += rejects(select_model(runs, **options, validate="half", rng=rng).holdout.fit)
        designed += rejects(ModelBuilder(runs).random("benchmark", "benchmark:algorithm").fit())
    print(f"rejects: naive {naive / n:.3f}, other half {honest / n:.3f}, model of the design {designed / n:.3f}")
    assert binomtest(naive, n, 0.05, alternative="greater").pvalue < 0.01
    assert at_most(honest, n)
    assert at_most(designed, n)
