"""Evaluations of tasks of unequal sizes: how often intervals on these tasks hold the difference of two models.

The items of a task are the sample; tasks, and the advantages of models on them, are drawn anew for each table. Logits
are those of `test_evaluation_size`, about the accuracies of the designs. The table of docs/developers/evaluations.md is
printed by ``python tests/simulation/test_evaluation_sizes.py 2000``: prior degrees of freedom of 0 (each task its own
variance), 2 (ours) and 10, and without end (one pooled variance).
"""

from __future__ import annotations

import sys
from unittest import mock

import numpy as np
import pytest
from harness import at_least, each, printed, rate_of
from scipy import stats
from scipy.special import expit, logit
from test_evaluation_size import ITEM, PAIR, mean_of

from lmemtest.bench.data.blocks import Blocks
from lmemtest.bench.evaluation import questions

TASK, ADVANTAGE = 0.5, 0.4  # standard deviations of logits
REPOSITORIES = (231, 75, 44, 34, 32, 22, 22, 19, 10, 8, 2, 2)  # issues of SWE-bench Verified, without its single one
DESIGNS = {
    "10 tasks of 40": ((40,) * 10, 0.7),
    "10 to 500, 10 tasks": (tuple(np.rint(np.geomspace(10, 500, 10)).astype(int).tolist()), 0.7),
    "2 to 231, 12 tasks": (REPOSITORIES, 0.6),
    "the same, large ones easy (.95 to .5)": (REPOSITORIES, np.linspace(0.95, 0.5, 12)),
    "the same, large ones hard (.5 to .95)": (REPOSITORIES, np.linspace(0.5, 0.95, 12)),
    "100, 60, 2, 3": ((100, 60, 2, 3), 0.6),
    "the same, large ones easy (.95 and .5)": ((100, 60, 2, 3), np.array([0.95, 0.95, 0.5, 0.5])),
    "the same, large ones hard (.5 and .95)": ((100, 60, 2, 3), np.array([0.5, 0.5, 0.95, 0.95])),
    "100, 2, 2, 2, 3, 3": ((100, 2, 2, 2, 3, 3), 0.6),
    "100, 60, 5, 3 at .95": ((100, 60, 5, 3), 0.95),
    "50 and 3": ((50, 3), 0.7),
}


def held(rng: np.random.Generator, name: str) -> dict[str, float]:
    """Whether the interval of the difference holds it, and its width."""
    sizes, accuracy = DESIGNS[name]
    T, task = len(sizes), np.repeat(np.arange(len(sizes)), sizes)
    level = 1.2 * logit(np.broadcast_to(accuracy, T)) + rng.normal(0, TASK, T) + rng.normal(0, ADVANTAGE, (2, T))
    eta = level[:, task] + rng.normal(0, ITEM, len(task)) + rng.normal(0, PAIR, (2, len(task)))
    blocks = Blocks(
        algorithms=("A", "B"),
        runs=(rng.random(eta.shape) < expit(eta)).astype(float).T[..., None],
        instances=tuple(range(len(task))),
        block=task,
        names=tuple(range(T)),
        unit="task",
        score="right",
        direction="maximize",
    )
    found, L = questions.on_these_tasks(blocks, {}, None, score="right"), np.array([[1.0, -1.0]])
    se, df = np.sqrt(L[0] @ found.V @ L[0]), found.df_function(L)[0]
    half = min(float(stats.t.ppf(0.975, df) * se), 1.0)
    true = mean_of(level, np.hypot(ITEM, PAIR)).mean(axis=1)
    return {"held": abs(L[0] @ found.b - (true[0] - true[1])) <= half, "width": 2.0 * half}


@pytest.mark.parametrize("name", DESIGNS)
def test_the_difference_of_two_models_on_tasks_of_any_size_is_held_as_often_as_is_said(name):
    n = 2000
    assert at_least(rate_of(lambda rng: held(rng, name), n, each(31, 12))["held"], n)


def by_prior(n: int, name: str) -> list[float]:
    out = []
    for prior in (0.0, 2.0, 10.0, 1e9):
        with mock.patch.object(questions, "_PRIOR_DF", prior):
            found = rate_of(lambda rng: held(rng, name), n, each(31, 12))
        out += [found["held"], found["width"]]
    return out


if __name__ == "__main__":
    printed(by_prior, {name: (int(sys.argv[1]), name) for name in DESIGNS})
