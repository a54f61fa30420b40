"""Evaluations of items in passages: false differences and intervals of accuracies on these tasks.

Logits add up effects of tasks, passages, models on passages, items, and models on items, all normal; models are equally
good on every task. For the page "Evaluations": ``python tests/simulation/test_evaluation_clusters.py 150``.
"""

from __future__ import annotations

import sys

import numpy as np
import pytest
from harness import at_most, printed, rate_of, spawned
from test_evaluation_size import answered, asked, mean_of

TASK, PASSAGE, ITEM, PAIR = 0.8, 0.5, 1.2, 0.5  # standard deviations of logits; PAIR of models on items
TASKS, MODELS = 4, 4
DESIGNS = {
    "10 passages of 5": (5,) * 10,
    "5 passages of 10": (10,) * 5,
    "12 passages of 1 to 12": (1, 1, 1, 2, 2, 3, 4, 5, 5, 6, 8, 12),
}


def rates(n: int, sizes: tuple[int, ...], advantage: float = 0.8) -> np.ndarray:
    """For passages of `sizes` in each task: without `cluster`, with it, and with passages for tasks: any false
    difference, and the share of intervals that hold the accuracy on these tasks."""
    passage, sd = np.repeat(np.arange(len(sizes)), sizes), np.sqrt(PASSAGE**2 + advantage**2 + ITEM**2 + PAIR**2)

    def study(rng: np.random.Generator) -> list[tuple[bool, float]]:
        level = 0.8 + rng.normal(0, TASK, (TASKS, 1))
        on_passage = rng.normal(0, PASSAGE, (TASKS, len(sizes)))
        on_passage = on_passage + rng.normal(0, advantage, (MODELS, TASKS, len(sizes)))
        eta = level + on_passage[:, :, passage] + rng.normal(0, ITEM, (TASKS, len(passage)))
        eta = eta + rng.normal(0, PAIR, eta.shape)
        table = answered(rng, eta, passage=1000 * np.arange(TASKS)[:, None] + passage)
        true = float(mean_of(level, sd).mean())
        return [
            asked(table, "these", true),
            asked(table, "these", true, cluster="passage"),
            asked(table, "like", true, task="passage"),
        ]

    return rate_of(study, n, spawned(1))


@pytest.mark.parametrize("name", DESIGNS)
def test_false_differences_with_clusters_are_as_rare_as_alpha_says(name):
    (ignored, _), (differ, held), _ = rates(150, DESIGNS[name])
    assert at_most(differ, 150, 0.07)
    assert held >= 0.92
    assert ignored > differ


if __name__ == "__main__":
    n = int(sys.argv[1])
    printed(rates, {f"{name}, {sd}": (n, sizes, sd) for name, sizes in DESIGNS.items() for sd in (0.8, 0.0)})
