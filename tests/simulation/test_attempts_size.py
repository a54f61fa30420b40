"""Repeated attempts: how often equal models are called different, and how often intervals hold pass@k and its kin.

Logits add up effects of tasks, of models on tasks, of items and of models on items, all normal; the models are equally
good. For the page "Validation": ``python tests/simulation/test_attempts_size.py 1000``.
"""

from __future__ import annotations

import sys

import numpy as np
import pytest
from harness import at_least, at_most, covers, printed, rate_of, spawned
from scipy import stats
from scipy.special import expit
from study import table_of_scores
from test_evaluation_size import NODES, PAIR, TASK, WEIGHTS

from lmemtest import repeated_attempts

K, ATTEMPTS = 4, 6
# statistic and k, by the chance of an attempt to be right
TRUE = {
    ("pass@k", 1): lambda p: p,
    ("pass@k", K): lambda p: 1.0 - (1.0 - p) ** K,
    ("pass^k", K): lambda p: p**K,
    ("maj@k", K): lambda p: stats.binom.sf(2, K, p) + 0.5 * stats.binom.pmf(2, K, p),
    ("agree@k", 2): lambda p: p**2 + (1.0 - p) ** 2,
}
DESIGNS = {  # models, tasks, items, mean logit, standard deviation of items
    "4 models, 8 tasks of 40 items": (4, 8, 40, 0.5, 1.5),
    "5 models, 3 tasks of 60 items, very unequal": (5, 3, 60, 0.0, 3.5),
    "2 models, 1 task of 30 items": (2, 1, 30, -1.0, 2.0),
    "3 models, 1 task of 100 items, near 1": (3, 1, 100, 2.5, 1.5),
    "3 models, 5 tasks of 40 items, near 1": (3, 5, 40, 2.5, 1.5),
}


def rates(n: int, models: int, tasks: int, items: int, logit: float, item: float, advantage: float) -> dict:
    """By statistic, on these tasks and for tasks like these: any false difference, and intervals that hold."""
    within, rng = np.hypot(item, PAIR), spawned(5)

    def mean(f, level, sd):
        return f(expit(np.asarray(level)[..., None] + sd * NODES)) @ WEIGHTS

    def study(rng: np.random.Generator) -> dict[str, list[float]]:
        level = logit + rng.normal(0, TASK, tasks) + rng.normal(0, advantage, (models, tasks))
        eta = level[..., None] + rng.normal(0, item, (tasks, items)) + rng.normal(0, PAIR, (models, tasks, items))
        right = (rng.random((*eta.shape, ATTEMPTS)) < expit(eta)[..., None]).astype(int)
        table = table_of_scores(right, "model task item epoch")
        found = repeated_attempts(table, model="model", task="task", item="item", epoch="epoch", score="score", k=K)
        out = {}
        for (name, k), f in TRUE.items():
            means, pairs = (of[(of["statistic"] == name) & (of["k"] == k)] for of in (found.models, found.pairs))
            truth = {"these": mean(f, level, within).mean(axis=1)}
            truth["like"] = np.full(models, mean(f, logit, np.hypot(within, np.hypot(TASK, advantage))))
            out[f"{name} {k}"] = [
                value
                for question in found.where
                for value in (
                    pairs[f"differ_{question}"].fillna(False).any(),
                    covers(means.sort_values("model"), truth[question], suffix=f"_{question}").mean(),
                )
            ]
        return out

    return rate_of(study, n, rng)


@pytest.mark.parametrize("name", DESIGNS)
def test_false_differences_of_repeated_attempts_are_as_rare_as_alpha_says(name):
    n = 100
    for found in rates(n, *DESIGNS[name], 0.0).values():
        assert at_most(found[0], n, 0.07)
        assert at_least(found[1], n, 0.93)
    if len(found) > 2:
        for found in rates(n, *DESIGNS[name], 0.5).values():
            assert at_most(found[2], n, 0.07)
            assert at_least(found[3], n, 0.92)


if __name__ == "__main__":
    printed(
        lambda *design: np.concatenate([*rates(int(sys.argv[1]), *design).values()]),
        {f"{name}, {sd}": (*d, sd) for name, d in DESIGNS.items() for sd in (0.0, 0.5) if not sd or d[1] > 1},
    )
