"""Evaluations by odds: false differences, intervals that hold the truth, and when they find more than accuracies.

Answers are 0 or 1. Logits of tasks have a mean that gives the accuracy and a standard deviation, models have advantages
on tasks (0.3), items of a task differ (1.0), and models on items (0.7). Through the public call:
``python tests/simulation/test_evaluation_odds.py 600``. The table of the page "Evaluations", where odds find more:
``python tests/simulation/test_evaluation_odds.py 1000 where``.
"""

from __future__ import annotations

import sys
from itertools import product

import numpy as np
import pytest
from harness import at_least, at_most, printed, rate_of, spawned
from scipy import stats
from scipy.special import expit, logit
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

    none = {f"{what} {name}": np.nan for what in ("odds", "accuracy", "held") for name in ("these", "like")}
    return rate_of(study, n, spawned(rng), refused=none)  # models with as many errors as each other on every task


UNEQUAL = (20, 40, 80, 160, 320)


@pytest.mark.parametrize(
    ("accuracy", "sizes", "models"),
    [(0.8, (40,) * 6, 4), (0.95, UNEQUAL, 3), (0.95, (200,) * 8, 2), (0.99, (50,) * 10, 2)],
)
def test_false_differences_by_odds_are_as_rare_as_alpha_says_and_intervals_hold(accuracy, sizes, models):
    n = 200
    found = rates(n, accuracy, sizes, 1.2, (0.0,) * models, rng=1)
    assert at_most(found["odds like"], n)
    assert at_least(found["held these"], n, 0.94)
    assert at_least(found["held like"], n, 0.94)


@pytest.mark.parametrize("sizes", [(200,) * 8, (50,) * 10])
def test_odds_ratios_for_tasks_like_these_are_held_where_many_tasks_have_no_error(sizes):
    n = 200
    assert at_least(rates(n, 0.99, sizes, 1.2, (0.5, -0.5), rng=4)["held like"], n, 0.93)


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
    (0.99, (200,) * 8, 1.2, (0.0,) * 2),
    (0.99, (50,) * 10, 1.2, (0.5, -0.5)),
    (0.95, UNEQUAL, 1.2, (0.5, -0.5)),
    (0.975, (200,) * 8, 0.5, (0.5, 0.0, -0.5)),
    (0.8, (40,) * 20, 1.2, (0.2, -0.2)),
]


def where(n: int, accuracy: float, tasks: int, items: int, difficulty: float) -> np.ndarray:
    """Shares of tables of two models whose accuracies, and empirical logits, differ by a paired t-test over tasks.

    That is what `evaluate` does for two models (`test_odds.py`). Models are equal; then they differ by the same logits,
    or accuracies, on every task (as far as 0 and 1 allow), so that accuracies of tasks that are alike find it in about
    three of four tables.
    """
    rng, item = np.random.default_rng([n, tasks, items]), float(np.hypot(ITEM, PAIR))
    centre = centre_of(accuracy, float(np.sqrt(difficulty**2 + item**2)))
    error = np.sqrt((2.0 * ADVANTAGE**2 + 2.0 / (items * accuracy * (1.0 - accuracy))) / tasks)
    lead = 2.6 * error * (1.0 + 2.0 / (tasks - 1))
    shape = (n, 2, tasks)
    rates = []
    for same, gap in (("odds", 0.0), ("odds", lead), ("accuracy", 0.8 * accuracy * (1.0 - accuracy) * lead)):
        level = centre + difficulty * rng.standard_normal((n, 1, tasks)) + ADVANTAGE * rng.standard_normal(shape)
        level += np.array([[0.5], [-0.5]]) * gap * (same == "odds")
        p = mean_of(level, item)
        up, down = (np.minimum(gap / 2.0, 0.98 * room) * (same == "accuracy") for room in (1.0 - p[:, 0], p[:, 1]))
        right = np.zeros(shape)
        for _ in range(items):
            eta = level + ITEM * rng.standard_normal((n, 1, tasks)) + PAIR * rng.standard_normal(shape)
            a, b = np.moveaxis(expit(eta), 1, 0)
            chance = np.stack([a + (1.0 - a) * up / (1.0 - p[:, 0]), b * (1.0 - down / p[:, 1])], axis=1)
            right += rng.random(shape) < chance
        for score in (right / items, np.log((right + 0.5) / (items - right + 0.5))):
            with np.errstate(invalid="ignore", divide="ignore"):
                rates.append((stats.ttest_rel(score[:, 0], score[:, 1], axis=1).pvalue < 0.05).mean())
    return np.array(rates)


if __name__ == "__main__":
    n = int(sys.argv[1])
    if "where" in sys.argv:
        printed(lambda *design: where(n, *design), product((0.5, 0.8, 0.95, 0.99), (5, 8, 20), (20, 200), (0.0, 1.2)))
    else:
        printed(lambda *design: rates(n, *design, rng=3), DESIGNS)
