"""Evaluations of tasks of unequal sizes, or tiny ones: how often intervals on these tasks hold what they are of.

The items of a task are the sample; tasks, and the advantages of models on them, are drawn anew for each table. Logits
are those of `test_evaluation_size`, about the accuracies of the designs. The table of docs/developers/evaluations.md is
printed by ``python tests/simulation/test_evaluation_sizes.py 2000``: prior degrees of freedom of 0 (each task its own
variance), 2 (ours) and 10, and without end (one pooled variance). That of accuracies and odds by
``python tests/simulation/test_evaluation_sizes.py 500 alone``.
"""

from __future__ import annotations

import sys
from functools import partial
from unittest import mock

import numpy as np
import pytest
from harness import at_least, each, printed, rate_of
from scipy import stats
from scipy.special import expit, logit
from test_evaluation_size import ITEM, PAIR, mean_of

from lmemtest.bench.data.blocks import Blocks
from lmemtest.bench.evaluation import questions, tables

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


TINY = {f"{T} of {n} at {p}": ((n,) * T, p) for T, n in ((2, 2), (5, 3), (20, 2), (20, 5)) for p in (0.6, 0.95)}
TINY |= {"500 and 2 at .9": ((500, 2), 0.9), "100 and 10 of 2 at .95": ((100,) + (2,) * 10, 0.95)}
ALL = {**DESIGNS, **TINY}


def answers(rng: np.random.Generator, name: str, lead: float = 0.0) -> tuple[Blocks, np.ndarray]:
    """The answers of two models, of which the first leads by so much in logits, and their accuracies by task."""
    sizes, accuracy = ALL[name]
    T, task = len(sizes), np.repeat(np.arange(len(sizes)), sizes)
    level = 1.2 * logit(np.broadcast_to(accuracy, T)) + rng.normal(0, TASK, T) + rng.normal(0, ADVANTAGE, (2, T))
    level += lead * np.array([[0.5], [-0.5]])
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
    return blocks, mean_of(level, np.hypot(ITEM, PAIR))


def held(rng: np.random.Generator, name: str) -> dict[str, float]:
    """Whether the interval of the difference holds it, and its width."""
    blocks, of_tasks = answers(rng, name)
    found, L = questions.on_these_tasks(blocks, {}, None, score="right"), np.array([[1.0, -1.0]])
    se, df = np.sqrt(L[0] @ found.V @ L[0]), found.df_function(L)[0]
    half = min(float(stats.t.ppf(0.975, df) * se), 1.0)
    true = of_tasks.mean(axis=1)
    return {"held": abs(L[0] @ found.b - (true[0] - true[1])) <= half, "width": 2.0 * half}


def alone(rng: np.random.Generator, name: str, lead: float, *, odds: bool) -> dict[str, float]:
    """Whether the intervals of the accuracies hold them, and the width; with `odds` of those at the mean log odds."""
    blocks, of_tasks = answers(rng, name, lead)
    means = questions.on_these_tasks(blocks, {}, None, odds=odds, score=questions.LOG_ODDS if odds else "right")
    pairs = {questions.THESE: means.pairs()}
    models = tables.models_table(blocks, {questions.THESE: means}, pairs, None, 0.05).set_index("model").loc[["A", "B"]]
    low, high = (models[f"ci_{end}_these"].to_numpy() for end in ("low", "high"))
    true = expit(logit(of_tasks).mean(axis=1)) if odds else of_tasks.mean(axis=1)
    return {"held": ((low <= true + 1e-12) & (true <= high + 1e-12)).mean(), "width": (high - low).mean()}


@pytest.mark.parametrize("name", DESIGNS)
def test_the_difference_of_two_models_on_tasks_of_any_size_is_held_as_often_as_is_said(name):
    n = 2000
    assert at_least(rate_of(lambda rng: held(rng, name), n, each(31, 12))["held"], n)


@pytest.mark.parametrize("odds", [False, True])
@pytest.mark.parametrize("name", ALL)
def test_the_accuracy_of_a_model_on_tasks_of_any_size_is_held_as_often_as_is_said(name, odds):
    n = 300
    assert at_least(rate_of(lambda rng: alone(rng, name, 0.5, odds=odds), n, each(5, 12))["held"], n)


def by_scale(n: int, name: str) -> list[float]:
    out = []
    for odds in (False, True):
        found = rate_of(partial(alone, name=name, lead=0.0, odds=odds), n, each(5, 12))
        out += [found["held"], found["width"]]
    return out


def by_prior(n: int, name: str) -> list[float]:
    out = []
    for prior in (0.0, 2.0, 10.0, 1e9):
        with mock.patch.object(questions, "_PRIOR_DF", prior):
            found = rate_of(lambda rng: held(rng, name), n, each(31, 12))
        out += [found["held"], found["width"]]
    return out


if __name__ == "__main__":
    asked, names = (by_scale, ALL) if "alone" in sys.argv else (by_prior, DESIGNS)
    printed(asked, {name: (int(sys.argv[1]), name) for name in names})
