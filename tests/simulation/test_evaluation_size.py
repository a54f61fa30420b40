"""Evaluations: how often models of one accuracy are called different, and how often intervals hold the accuracy.

Answers are 0 or 1 with logits that add up effects of tasks, of models on tasks, of items and of models on items, all
normal; all models have the same mean accuracy over the population of tasks. `rates` is run by hand for the table of
the page "Evaluations": ``python tests/simulation/test_evaluation_size.py``.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import brentq
from scipy.special import expit
from scipy.stats import binom

from lmemtest import evaluate
from lmemtest.core.replicates import replicate

ITEM, PAIR, TASK = 1.5, 0.7, 0.8  # standard deviations of logits: items, models on items, tasks
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(61)
WEIGHTS = WEIGHTS / WEIGHTS.sum()


def mean_of(logit: np.ndarray, sd: float) -> np.ndarray:
    """Mean of expit(logit + sd z)."""
    return expit(np.asarray(logit)[..., None] + sd * NODES) @ WEIGHTS


def centre_of(accuracy: float, sd: float) -> float:
    return float(brentq(lambda mu: float(mean_of(np.array(mu), sd)) - accuracy, -15.0, 15.0))


def drawn(
    rng: np.random.Generator,
    accuracy: float,
    n_tasks: int,
    n_items: int,
    advantage: float,
    n_models: int,
    n_epochs: int = 1,
) -> tuple[pd.DataFrame, np.ndarray]:
    """A table of answers, and the true accuracies of the models on these tasks."""
    centre = centre_of(accuracy, np.sqrt(TASK**2 + advantage**2 + ITEM**2 + PAIR**2))
    level = centre + rng.normal(0, TASK, n_tasks) + rng.normal(0, advantage, (n_models, n_tasks))
    eta = level[..., None] + rng.normal(0, ITEM, (n_tasks, n_items)) + rng.normal(0, PAIR, (n_models, n_tasks, n_items))
    right = rng.random((*eta.shape, n_epochs)) < expit(eta)[..., None]
    model, task, item, epoch = (index.ravel() for index in np.indices(right.shape))
    table = pd.DataFrame(
        {"model": model, "task": task, "item": item, "epoch": epoch, "right": right.ravel().astype(int)}
    )
    return table, mean_of(level, np.hypot(ITEM, PAIR)).mean(axis=1)


def study(
    rng: np.random.Generator, accuracy: float, n_tasks: int, n_items: int, advantage: float, n_models: int
) -> list[float]:
    """Any false difference on these tasks and for tasks like these; shares of intervals that hold the accuracy."""
    table, truth = drawn(rng, accuracy, n_tasks, n_items, advantage, n_models)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = evaluate(table, model="model", task="task", item="item", score="right")
    pairs, models = found.pairs, found.models.set_index("model").loc[[str(m) for m in range(n_models)]]
    held = [
        float(((models[f"ci_low_{name}"] <= true) & (true <= models[f"ci_high_{name}"])).mean())
        for name, true in (("these", truth), ("like", np.full(n_models, accuracy)))
    ]
    wrong = [float(pairs[f"differ_{name}"].fillna(False).any()) for name in ("these", "like")]
    return [*wrong, *held]


def rates(n: int, *, rng: int, **design: float) -> np.ndarray:
    found = replicate(lambda generator: study(generator, **design), n, rng=rng)
    return np.mean([row for row in found if isinstance(row, list)], axis=0)


@pytest.mark.level(3)
@pytest.mark.parametrize(("accuracy", "n_tasks", "n_items"), [(0.7, 5, 40), (0.9, 20, 40)])
def test_false_differences_for_tasks_like_these_are_as_rare_as_alpha_says(accuracy, n_tasks, n_items):
    design = {"accuracy": accuracy, "n_tasks": n_tasks, "n_items": n_items, "n_models": 4}
    n = 300
    differ = rates(n, rng=1, advantage=0.6, **design)
    assert differ[1] * n <= binom.ppf(0.999, n, 0.07)
    assert differ[3] >= 0.9
    assert differ[0] > 0.2  # the tests that take tasks as given say nothing about others
    none = rates(n, rng=2, advantage=0.0, **design)
    assert none[0] * n <= binom.ppf(0.999, n, 0.07)
    assert abs(none[2] - 0.95) < 0.03


def suite_study(rng: np.random.Generator, n_suites: int, advantage: float) -> list[float]:
    """Any false difference of four models with suites as the sample and with their tasks; intervals of accuracies."""
    tasks, items, models, own = 3, 40, 4, 0.3
    suite, n = np.repeat(np.arange(n_suites), tasks), n_suites * tasks
    centre = centre_of(0.7, np.sqrt(TASK**2 + advantage**2 + own**2 + ITEM**2 + PAIR**2))
    level = centre + rng.normal(0, TASK, n) + rng.normal(0, own, (models, n))
    level = level + rng.normal(0, advantage, (models, n_suites))[:, suite]
    eta = level[..., None] + rng.normal(0, ITEM, (n, items)) + rng.normal(0, PAIR, (models, n, items))
    model, task, item = (index.ravel() for index in np.indices(eta.shape))
    right = (rng.random(eta.shape) < expit(eta)).ravel().astype(int)
    table = pd.DataFrame({"model": model, "task": task, "item": item, "suite": suite[task], "right": right})
    out = []
    for family in ("suite", None):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = evaluate(table, model="model", task="task", item="item", score="right", family=family)
        held = (found.models["ci_low_like"] <= 0.7) & (found.models["ci_high_like"] >= 0.7)
        out += [float(found.pairs["differ_like"].fillna(False).any()), float(held.mean())]
    return out


def suite_rates(n: int, *, rng: int, n_suites: int, advantage: float) -> np.ndarray:
    return np.mean(replicate(lambda generator: suite_study(generator, n_suites, advantage), n, rng=rng), axis=0)


@pytest.mark.level(3)
@pytest.mark.parametrize("n_suites", [6, 12])
def test_false_differences_for_suites_like_these_are_as_rare_as_alpha_says(n_suites):
    n = 200
    differ, held, ignored, _ = suite_rates(n, rng=3, n_suites=n_suites, advantage=0.5)
    assert differ * n <= binom.ppf(0.999, n, 0.07)
    assert held >= 0.9
    assert ignored > differ  # tasks of one suite are no independent draws


DESIGNS = (
    *((0.99, 5, 40), (0.9, 5, 40), (0.7, 10, 100), (0.99, 10, 100), (0.9, 20, 40), (0.99, 5, 500), (0.99, 20, 40)),
    *((0.5, 5, 40), (0.9, 10, 100), (0.7, 5, 500), (0.95, 10, 100), (0.5, 20, 40), (0.9, 20, 500), (0.99, 20, 500)),
)

if __name__ == "__main__":
    count, models = (int(text) for text in sys.argv[1:])
    for acc, tasks, items in DESIGNS:
        sizes = {"accuracy": acc, "n_tasks": tasks, "n_items": items, "n_models": models}
        found = [rates(count, rng=seed, advantage=sd, **sizes) for seed, sd in ((1, 0.4), (2, 0.0))]
        numbers = " ".join(f"{100 * x:5.1f}" for x in np.concatenate(found))
        print(f"{models} {acc:4} {tasks:3} {items:4} | {numbers}", flush=True)
