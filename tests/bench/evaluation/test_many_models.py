"""Degrees of freedom of all pairs of many models come from products that pairs share."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pandas as pd

from lmemtest.bench.evaluation.answers import answered, read_answers
from lmemtest.bench.evaluation.questions import _covariance, _least, on_these_tasks


def test_the_fewest_degrees_of_freedom_are_those_of_the_models_in_a_row():
    L = np.array([[1.0, 0.0, -1.0], [0.0, 0.0, 0.0], [0.0, 0.5, 0.0], [1.0, -2.0, 1.0]])
    freedom = np.array([[4.0, 9.0, 7.0], [8.0, 1.0, 2.0]])
    assert _least(L, freedom).tolist() == [[4.0, 2.0], [np.inf, np.inf], [9.0, 1.0], [4.0, 1.0]]


def test_pairs_of_many_models_need_little_more_than_themselves():
    """Satterthwaite's formula for every pair of 60 models with gaps, in memory of a few arrays of pairs."""
    rng = np.random.default_rng(3)
    m, t, i = (codes.ravel() for codes in np.indices((60, 8, 12)))
    table = pd.DataFrame({"model": m, "task": t, "item": i, "score": rng.random(len(m))})[rng.random(len(m)) < 0.9]
    roles = {"model": "model", "item": "item", "task": "task", "score": "score", "epoch": None, "judge": None}
    blocks, judges, cluster, _ = read_answers(table, direction="maximize", **roles)
    found = on_these_tasks(blocks, judges, cluster, score="score")
    left, right = np.triu_indices(60, 1)
    L = np.eye(60)[left] - np.eye(60)[right]
    tracemalloc.start()
    df = found.df_function(L)
    assert tracemalloc.get_traced_memory()[1] < 40 * len(L) * 8 * 8  # not tasks x pairs x models
    tracemalloc.stop()
    parts = np.stack([_covariance(blocks.means[blocks.block == task].T) for task in range(8)])
    for row in rng.choice(len(L), 40, replace=False):
        pair = np.flatnonzero(L[row])
        v = L[row] @ parts @ L[row]
        least = (answered(blocks)[pair].min(axis=0) - 1.0).astype(float)
        np.testing.assert_allclose(df[row], v.sum() ** 2 / (v**2 / least).sum(), rtol=1e-12)
