"""Evaluations with failed answers: how often equal models are called different, by what a failed answer counts.

Logits as in `test_evaluation_size.py`, three models of one accuracy on 8 tasks of 40 items without advantages on tasks,
where answers of the first are lost at a rate of its own. For the page "Validation":
``python tests/simulation/test_evaluation_failures.py 120``.
"""

from __future__ import annotations

import sys

import numpy as np
import pytest
from harness import at_least, at_most, covers, printed, rate_of, spawned
from test_evaluation_size import ITEM, PAIR, TASK, answered, centre_of, mean_of

from lmemtest import evaluate

TASKS, ITEMS, MODELS, ACCURACY = 8, 40, 3, 0.7
ROLES = {"model": "model", "task": "task", "item": "item", "score": "score", "failed": "status"}


def rates(n: int, lost: float, policy: object, wrong: bool) -> np.ndarray:
    """Shares: any false difference, and intervals that hold the accuracies, on these tasks and for tasks like these.

    The first model loses this share of its answers, the others 5 %; where `wrong`, wrong ones nine times as often as
    right ones.
    """
    centre = centre_of(ACCURACY, float(np.sqrt(TASK**2 + ITEM**2 + PAIR**2)))

    def study(rng: np.random.Generator) -> list[float]:
        level = centre + rng.normal(0, TASK, TASKS)
        eta = level[:, None] + rng.normal(0, ITEM, (TASKS, ITEMS)) + rng.normal(0, PAIR, (MODELS, TASKS, ITEMS))
        table = answered(rng, eta)
        rate = np.repeat([lost, *[0.05] * (MODELS - 1)], TASKS * ITEMS)
        if wrong:
            rate = rate * np.where(table["score"] == 0, 9.0, 1.0) / (9.0 - 8.0 * ACCURACY)
        table["status"] = np.where(rng.random(len(table)) < rate, "infra", "ok")
        found = evaluate(table, score_failures=policy, **ROLES)
        models = found.models.sort_values("model")
        here = mean_of(level, float(np.hypot(ITEM, PAIR))).mean()
        return [
            value
            for name, truth in (("these", here), ("like", ACCURACY))
            for value in (
                found.pairs[f"differ_{name}"].fillna(False).any(),
                covers(models, truth, suffix=f"_{name}").mean(),
            )
        ]

    return rate_of(study, n, spawned(6))


@pytest.mark.parametrize(("lost", "policy"), [(0.05, "drop"), (0.05, 0), (0.45, "drop")])
def test_answers_that_are_lost_by_chance_leave_sizes_and_intervals_as_they_are(lost, policy):
    n = 150
    these, held, like, held_like = rates(n, lost, policy, wrong=False)
    assert at_most(these, n, 0.06)
    assert at_most(like, n, 0.06)
    if policy == "drop":
        assert at_least(held, n, 0.94)
        assert at_least(held_like, n, 0.93)


@pytest.mark.parametrize(("policy", "wrong"), [(0, False), ("drop", True)])
def test_a_model_that_loses_nine_times_as_often_is_found_so_or_favoured(policy, wrong):
    """Counted as wrong the losses are a difference; left out they favour a model that loses what it would not solve."""
    assert rates(50, 0.45 if not wrong else 0.25, policy, wrong)[0] > 0.3


DESIGNS = [(0.05, "drop", False), (0.05, 0, False), (0.45, "drop", False), (0.45, 0, False), (0.25, "drop", True)]

if __name__ == "__main__":
    printed(lambda *design: rates(int(sys.argv[1]), *design), DESIGNS)
