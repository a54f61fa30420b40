"""Evaluations: how often models of one accuracy are called different, and how often intervals hold the accuracy.

Answers are 0 or 1 with logits that add up effects of tasks, of models on tasks, of items and of models on items, all
normal; all models have the same mean accuracy over the population of tasks. For the table of the page "Evaluations":
``python tests/simulation/test_evaluation_size.py TABLES MODELS``.
"""

from __future__ import annotations

import sys

import numpy as np
import pandas as pd
import pytest
from harness import at_least, at_most, covers, each, printed, rate_of, spawned
from scipy.optimize import brentq
from scipy.special import expit
from study import table_of_scores

from lmemtest import evaluate

ITEM, PAIR, TASK = 1.5, 0.7, 0.8  # standard deviations of logits: items, models on items, tasks
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(61)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


def mean_of(logit: np.ndarray, sd: float) -> np.ndarray:
    """Mean of expit(logit + sd z)."""
    return expit(np.asarray(logit)[..., None] + sd * NODES) @ WEIGHTS


def centre_of(accuracy: float, sd: float) -> float:
    return float(brentq(lambda mu: float(mean_of(np.array(mu), sd)) - accuracy, -15.0, 15.0))


def answered(rng: np.random.Generator, eta: np.ndarray, **columns: np.ndarray) -> pd.DataFrame:
    """A table of answers with these logits, (models, tasks, items)."""
    return table_of_scores((rng.random(eta.shape) < expit(eta)).astype(int), "model task item", **columns)


def asked(table: pd.DataFrame, population: str, truth: object, **roles: object) -> tuple[bool, float]:
    """Any false difference, and the share of intervals that hold the accuracies, on "these" tasks or ones "like"."""
    found = evaluate(table, **{"model": "model", "task": "task", "item": "item", "score": "score", **roles})
    models = found.models.sort_values("model")
    wrong = found.pairs[f"differ_{population}"].fillna(False).any()
    return bool(wrong), float(covers(models, truth, suffix=f"_{population}").mean())


def rates(
    n: int, rng: int, accuracy: float, tasks: int, items: int, advantage: float, models: int = 4, method: str = "linear"
) -> np.ndarray:  # fmt: skip
    """Any false difference on these tasks and for tasks like these; shares of intervals that hold the accuracy."""
    centre = centre_of(accuracy, np.sqrt(TASK**2 + advantage**2 + ITEM**2 + PAIR**2))

    def study(rng: np.random.Generator) -> list[float]:
        level = centre + rng.normal(0, TASK, tasks) + rng.normal(0, advantage, (models, tasks))
        eta = level[..., None] + rng.normal(0, ITEM, (tasks, items)) + rng.normal(0, PAIR, (models, tasks, items))
        table = answered(rng, eta)
        here = asked(table, "these", mean_of(level, np.hypot(ITEM, PAIR)).mean(axis=1))
        there = asked(table, "like", accuracy, method=method)
        return [here[0], there[0], here[1], there[1]]

    return rate_of(study, n, spawned(rng))


def test_the_binomial_model_keeps_the_level_and_holds_accuracies_though_models_differ_on_items():
    n = 60
    differ = rates(n, 4, 0.9, 5, 40, 0.4, method="binomial")
    assert at_most(differ[1], n, 0.05)
    assert differ[3] >= 0.9


@pytest.mark.parametrize("design", [(0.7, 5, 40), (0.9, 20, 40)])
def test_false_differences_for_tasks_like_these_are_as_rare_as_alpha_says(design):
    n = 300
    differ = rates(n, 1, *design, 0.6)
    assert at_most(differ[1], n, 0.07)
    assert differ[3] >= 0.9
    assert differ[0] > 0.2  # the tests that take tasks as given say nothing about others
    none = rates(n, 2, *design, 0.0)
    assert at_most(none[0], n, 0.07)
    assert abs(none[2] - 0.95) < 0.03


@pytest.mark.parametrize("n_suites", [6, 12])
def test_false_differences_for_suites_like_these_are_as_rare_as_alpha_says(n_suites):
    """Four models on suites of three tasks of 40 items, whose advantages have a standard deviation of 0.5 on suites."""
    suite, models, items, own, advantage = np.repeat(np.arange(n_suites), 3), 4, 40, 0.3, 0.5
    centre = centre_of(0.7, np.sqrt(TASK**2 + advantage**2 + own**2 + ITEM**2 + PAIR**2))

    def study(rng: np.random.Generator) -> list[tuple[bool, float]]:
        T = len(suite)
        level = centre + rng.normal(0, TASK, T) + rng.normal(0, own, (models, T))
        level = level + rng.normal(0, advantage, (models, n_suites))[:, suite]
        eta = level[..., None] + rng.normal(0, ITEM, (T, items)) + rng.normal(0, PAIR, (models, T, items))
        table = answered(rng, eta, suite=suite[:, None])
        return [asked(table, "like", 0.7, family=family) for family in ("suite", None)]

    (differ, held), (ignored, _) = rate_of(study, 200, spawned(3))
    assert at_most(differ, 200, 0.07)
    assert held >= 0.9
    assert ignored > differ  # tasks of one suite are no independent draws


DESIGNS = (
    *((0.99, 5, 40), (0.9, 5, 40), (0.7, 10, 100), (0.99, 10, 100), (0.9, 20, 40), (0.99, 5, 500), (0.99, 20, 40)),
    *((0.5, 5, 40), (0.9, 10, 100), (0.7, 5, 500), (0.95, 10, 100), (0.5, 20, 40), (0.9, 20, 500), (0.99, 20, 500)),
)

if __name__ == "__main__":
    n, models = (int(text) for text in sys.argv[1:])
    printed(lambda *design: [rates(n, rng, *design, sd, models) for rng, sd in ((1, 0.4), (2, 0.0))], DESIGNS)


@pytest.mark.parametrize(
    ("items", "epochs", "logit"), [(10, 2, 0.5), (40, 3, 0.5), (40, 8, 0.5), (4, 2, 0.5), (40, 2, 3.5), (100, 2, -3.5)]
)
def test_claims_about_exactly_these_items_take_the_runs_for_the_sample(items, epochs, logit):
    """Models solve different items of the same tasks equally often: any difference is false, over runs.

    Measured with 400 tables: 2.0, 6.0, 4.0 % with a false difference; 95.6 to 96.9 % of intervals hold the accuracy.
    With four items of a task, and accuracies of .92 and .07 (300 tables): 0.7, 3.3, 4.3 %; 95.5 to 99.7 %.
    """
    n, truth = 300, np.random.default_rng(3)
    chance = expit(truth.normal(logit, ITEM, (1, 3, items)))
    chance = np.stack([truth.permuted(chance[0], axis=1) for _ in range(4)])  # the same accuracies, item by item not

    def study(rng):
        runs = (rng.random((epochs, *chance.shape)) < chance).astype(int)
        table = table_of_scores(runs, "epoch model task item")
        return asked(table, "items", chance.mean(axis=(1, 2)), epoch="epoch")

    wrong, held = rate_of(study, n, each(5, items, epochs))
    assert at_most(wrong, n, 0.06)
    assert at_least(held, n, 0.93)
