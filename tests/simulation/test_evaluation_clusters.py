"""Evaluations of items in passages: false differences and intervals of accuracies on these tasks.

Logits add up effects of tasks, passages, models on passages, items, and models on items, all normal; models are equally
good on every task. For the page "Evaluations": ``python tests/simulation/test_evaluation_clusters.py 150``.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from scipy.stats import binom

from lmemtest import evaluate
from lmemtest.core.replicates import replicate

TASK, PASSAGE, ITEM, PAIR = 0.8, 0.5, 1.2, 0.5  # standard deviations of logits; PAIR of models on items
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(61)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


def study(
    rng: np.random.Generator, sizes: tuple[int, ...], advantage: float, n_tasks: int, n_models: int
) -> list[float]:
    """For passages of `sizes` in each task: without `cluster`, with it, and with passages for tasks: any false
    difference, and the share of intervals that hold the accuracy on these tasks."""
    passage = np.repeat(np.arange(len(sizes)), sizes)
    level = 0.8 + rng.normal(0, TASK, (n_tasks, 1))
    on_passage = rng.normal(0, PASSAGE, (n_tasks, len(sizes))) + rng.normal(
        0, advantage, (n_models, n_tasks, len(sizes))
    )
    eta = level + on_passage[:, :, passage] + rng.normal(0, ITEM, (n_tasks, len(passage)))
    eta = eta + rng.normal(0, PAIR, eta.shape)
    model, task, item = (index.ravel() for index in np.indices(eta.shape))
    right = (rng.random(eta.shape) < expit(eta)).ravel().astype(int)
    table = pd.DataFrame({"model": model, "task": task, "item": item, "right": right})
    table["passage"] = 1000 * task + passage[item]
    sd = np.sqrt(PASSAGE**2 + advantage**2 + ITEM**2 + PAIR**2)
    true = float((expit(level + sd * NODES) @ WEIGHTS).mean())
    out = []
    for roles, suffix in (({}, "these"), ({"cluster": "passage"}, "these"), ({"task": "passage"}, "like")):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = evaluate(table, **{"model": "model", "task": "task", "item": "item", "score": "right", **roles})
        held = (found.models[f"ci_low_{suffix}"] <= true) & (true <= found.models[f"ci_high_{suffix}"])
        out += [float(found.pairs[f"differ_{suffix}"].fillna(False).any()), float(held.mean())]
    return out


def rates(n: int, sizes: tuple[int, ...], advantage: float = 0.8, *, n_tasks: int = 4, n_models: int = 4) -> np.ndarray:
    found = replicate(lambda rng: study(rng, sizes, advantage, n_tasks, n_models), n, rng=1)
    return np.mean([row for row in found if isinstance(row, list)], axis=0)


DESIGNS = {
    "10 passages of 5": (5,) * 10,
    "5 passages of 10": (10,) * 5,
    "12 passages of 1 to 12": (1, 1, 1, 2, 2, 3, 4, 5, 5, 6, 8, 12),
}


@pytest.mark.level(3)
@pytest.mark.parametrize("name", DESIGNS)
def test_false_differences_with_clusters_are_as_rare_as_alpha_says(name):
    n = 150
    ignored, _, differ, held, _, _ = rates(n, DESIGNS[name])
    assert differ * n <= binom.ppf(0.999, n, 0.07)
    assert held >= 0.92
    assert ignored > differ


if __name__ == "__main__":
    for name, sizes in DESIGNS.items():
        for advantage in (0.8, 0.0):
            found = rates(int(sys.argv[1]), sizes, advantage)
            print(f"{name:24} {advantage} | " + " ".join(f"{100 * x:5.1f}" for x in found), flush=True)
