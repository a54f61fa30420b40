"""Evaluations by odds: false differences, intervals that hold the truth, and when they find more than accuracies.

Answers are 0 or 1. Logits of tasks have a mean that gives the accuracy and a standard deviation, models have advantages
on tasks (0.3), items of a task differ (1.0), and models on items (0.7). The table of the page "Evaluations":
``python tests/simulation/test_evaluation_odds.py 1000``.
"""

from __future__ import annotations

import sys

import numpy as np
import pytest
from harness import at_least, at_most, printed, rate_of, spawned
from scipy.special import logit
from test_evaluation_size import NODES, WEIGHTS, answered, centre_of, mean_of

from lmemtest import evaluate

ITEM, PAIR, ADVANTAGE = 1.0, 0.7, 0.3
ROLES = {"model": "model", "task": "task", "item": "item", "score": "score"}


def drawn(
    rng: np.random.Generator, accuracy: float, sizes: tuple[int, ...], difficulty: float, apart: tuple[float, ...]
) -> tuple[object, np.ndarray, np.ndarray]:
    """A table of answers, and the mean log odds of the models for items like these: on these tasks, on ones like them.

    `apart` are the leads of the models in logits, the same on every task.
    """
    k, T, item, of_task = len(apart), len(sizes), float(np.hypot(ITEM, PAIR)), float(np.hypot(difficulty, ADVANTAGE))
    mean = centre_of(accuracy, float(np.hypot(of_task, item))) + np.array(apart)[:, None]
    level = mean + rng.normal(0, difficulty, T) + rng.normal(0, ADVANTAGE, (k, T))
    task = np.repeat(np.arange(T), sizes)
    eta = level[:, task] + rng.normal(0, ITEM, len(task)) + rng.normal(0, PAIR, (k, len(task)))
    table = answered(rng, eta[:, None, :]).assign(task=np.tile(task, k))
    here, everywhere = (logit(mean_of(logits, item)) for logits in (level, mean + of_task * NODES))
    return table, here.mean(axis=1), everywhere @ WEIGHTS


def rates(
    n: int, accuracy: float, sizes: tuple[int, ...], difficulty: float, apart: tuple[float, ...], *, rng: int
) -> dict[str, float]:
    """Shares of tables: any difference found, by odds and by accuracy; simultaneous intervals that hold, by odds."""
    i, j = np.triu_indices(len(apart), k=1)

    def study(rng: np.random.Generator) -> dict[str, float]:
        table, here, everywhere = drawn(rng, accuracy, sizes, difficulty, apart)
        by_odds = evaluate(table, scale="odds", adjust="singlestep", **ROLES).pairs
        by_accuracy = evaluate(table, adjust="singlestep", **ROLES).pairs
        out = {}
        for name, truth in (("these", here[i] - here[j]), ("like", everywhere[i] - everywhere[j])):
            low, high = (np.log(by_odds[f"ci_{end}_{name}"]) for end in ("low", "high"))
            out[f"odds {name}"] = by_odds[f"differ_{name}"].fillna(False).any()
            out[f"accuracy {name}"] = by_accuracy[f"differ_{name}"].fillna(False).any()
            out[f"held {name}"] = ((low <= truth) & (truth <= high)).all()
        return out

    return rate_of(study, n, spawned(rng))


UNEQUAL = (20, 40, 80, 160, 320)


@pytest.mark.parametrize(
    ("accuracy", "sizes", "models"), [(0.8, (40,) * 6, 4), (0.95, UNEQUAL, 3), (0.95, (200,) * 8, 2)]
)
def test_false_differences_by_odds_are_as_rare_as_alpha_says_and_intervals_hold(accuracy, sizes, models):
    n = 200
    found = rates(n, accuracy, sizes, 1.2, (0.0,) * models, rng=1)
    assert at_most(found["odds like"], n)
    assert at_least(found["held these"], n, 0.94)


def test_by_odds_more_is_found_on_few_tasks_of_unequal_difficulty_near_the_ceiling():
    found = rates(200, 0.95, (200,) * 8, 2.0, (0.4, -0.4), rng=2)
    assert found["odds like"] > found["accuracy like"] + 0.1


DESIGNS = [
    (0.8, (40,) * 5, 1.2, (0.0,) * 4),
    (0.95, (200,) * 8, 1.2, (0.0,) * 2),
    (0.95, UNEQUAL, 1.2, (0.0,) * 4),
    (0.95, (200,) * 8, 1.2, (0.25, -0.25)),
    (0.95, (200,) * 8, 2.0, (0.25, -0.25)),
    (0.99, (200,) * 8, 1.2, (0.5, -0.5)),
    (0.8, (40,) * 20, 1.2, (0.2, -0.2)),
]

if __name__ == "__main__":
    n = int(sys.argv[1])
    printed(lambda *design: rates(n, *design, rng=3), DESIGNS)
