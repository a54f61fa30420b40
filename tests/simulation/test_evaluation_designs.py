"""Evaluations that are not a full table of 0 and 1: pass rates, judges, unequal tasks, items of one model, epochs.

False differences among models of one accuracy, and coverage of the simultaneous intervals at a true difference. The
answers are those of `test_evaluation_size`: only what is observed of them differs. The table of
docs/developers/validation.md is printed by ``python tests/simulation/test_evaluation_designs.py 200``.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
from harness import at_most, covers, printed, rate_of, spawned
from scipy.special import expit
from study import table_of_scores
from test_evaluation_size import ITEM, PAIR, TASK, centre_of, mean_of

from lmemtest import evaluate

JUDGE, OPINION = 0.5, 0.5  # standard deviations of logits: severity of judges; judges on single answers


@dataclass(frozen=True, kw_only=True)
class Design:
    """What is observed of the answers."""

    n_tasks: int = 10
    n_items: tuple[int, int] = (40, 40)  # smallest and largest number, evenly spread over their logarithms
    kind: str = "right"  # or "passed", the share of five attempts; "beta", graded answers that pile up near 1
    accuracy: float = 0.7
    n_epochs: int = 1
    n_judges: int = 0
    taste: float = 0.0  # standard deviation of the logits of judges on models
    answered: float = 1.0  # share of the items that a model answers
    own_items: bool = False


DESIGNS = {
    "share of 5 attempts": Design(kind="passed"),
    "share of 5 attempts, accuracy 0.95": Design(kind="passed", accuracy=0.95),
    "graded, mean 0.7": Design(kind="beta"),
    "graded, mean 0.95, 5 tasks": Design(kind="beta", accuracy=0.95, n_tasks=5),
    "3 judges": Design(n_judges=3, n_items=(20, 20)),
    "5 judges, some favour models": Design(n_judges=5, taste=0.3, n_tasks=5, n_items=(20, 20)),
    "8 judges, some favour models": Design(n_judges=8, taste=0.3, n_tasks=5, n_items=(20, 20)),
    "10 to 500 items": Design(n_items=(10, 500)),
    "10 to 500 items, accuracy 0.95, 5 tasks": Design(n_items=(10, 500), accuracy=0.95, n_tasks=5),
    "items of one model each": Design(own_items=True),
    "items of one model each, 5 tasks": Design(own_items=True, n_tasks=5),
    "two of three items answered": Design(answered=2 / 3),
    "3 epochs": Design(n_epochs=3),
}


def drawn(
    rng: np.random.Generator, design: Design, advantage: float, accuracies: tuple[float, ...]
) -> tuple[pd.DataFrame, np.ndarray]:
    """A table of answers, and the accuracies of the models on these tasks (of these judges, if they are few)."""
    k, T, J = len(accuracies), design.n_tasks, max(design.n_judges, 1)
    of_judge = (JUDGE, design.taste, OPINION) if design.n_judges else (0.0, 0.0, 0.0)
    total = np.sqrt(TASK**2 + advantage**2 + ITEM**2 + PAIR**2 + sum(sd**2 for sd in of_judge))
    centre = np.array([centre_of(accuracy, total) for accuracy in accuracies])
    level = centre[:, None] + rng.normal(0, TASK, T) + rng.normal(0, advantage, (k, T))
    sizes = np.rint(np.geomspace(*design.n_items, T)).astype(int)
    task = np.repeat(np.arange(T), sizes)
    item = rng.normal(0, ITEM, (k if design.own_items else 1, len(task)))
    eta = level[:, task] + item + rng.normal(0, PAIR, (k, len(task)))
    severity = rng.normal(0, of_judge[0], (J, 1)) + rng.normal(0, of_judge[1], (J, k))
    judged = eta + severity[..., None] + rng.normal(0, of_judge[2], (J, *eta.shape))
    p = expit(judged)[..., None]
    if design.kind == "passed":
        score = rng.binomial(5, p) / 5
    elif design.kind == "beta":
        score = rng.beta(3 * p, 3 * (1 - p))
    else:
        attempts = rng.random((1, *eta.shape, design.n_epochs))  # judges see the same answer
        score = (attempts < p).astype(float)
    has = np.broadcast_to((rng.random(eta.shape) < design.answered)[None, :, :, None], score.shape)
    table = table_of_scores(score, "judge model place epoch", task=task[:, None])
    table["item"] = table["place"] + table["model"] * len(task) * design.own_items
    table = table[has.ravel()]
    if 0 < design.n_judges < 5:  # these judges are who they are
        truth = mean_of(level + severity[..., None], np.sqrt(ITEM**2 + PAIR**2 + of_judge[2] ** 2)).mean(axis=(0, 2))
    else:
        truth = mean_of(level, np.sqrt(ITEM**2 + PAIR**2 + sum(sd**2 for sd in of_judge))).mean(axis=1)
    return table, truth


ROLES = {"model": "model", "task": "task", "item": "item", "score": "score"}


def rates(
    n: int, design: Design, advantage: float, accuracies: tuple[float, ...], adjust: str | None = None, *, rng: int
) -> np.ndarray:
    """Any difference of models that differ in nothing and whether all intervals hold: here, for tasks like these."""
    roles = {"epoch": "epoch" if design.n_epochs > 1 else None, "judge": "judge" if design.n_judges else None}

    def study(rng: np.random.Generator) -> list[bool]:
        table, here = drawn(rng, design, advantage, accuracies)
        pairs = evaluate(table, adjust=adjust, **ROLES, **roles).pairs
        out = []
        for name, truth in (("these", here), ("like", accuracies)):
            true = np.array([a - b for a, b in combinations(truth, 2)])
            held = covers(pairs, true, suffix=f"_{name}")
            out += [bool(pairs[f"differ_{name}"].fillna(False).any()), held.all()]
        return out

    return rate_of(study, n, spawned(rng))


AT_ONCE = "singlestep"  # whose intervals are simultaneous; those of the default exclude zero where a pair is decided


def equal(design: Design, k: int) -> tuple[float, ...]:
    return (design.accuracy,) * k


def apart(design: Design, k: int) -> tuple[float, ...]:
    """Models whose errors are up to half more."""
    return tuple(1.0 - (1.0 - design.accuracy) * (1.0 + 0.5 * j / (k - 1)) for j in range(k))


def repeated(accuracy: float, n_epochs: int, n: int) -> np.ndarray:
    """How often two new runs differ by less than is usual; and are called different: here, on tasks like these."""
    design = Design(accuracy=accuracy)
    centre = centre_of(accuracy, float(np.sqrt(TASK**2 + ITEM**2)))

    def study(rng: np.random.Generator) -> list[bool]:
        level = centre + rng.normal(0, TASK, (design.n_tasks, 1))
        p = expit(level + rng.normal(0, ITEM, (design.n_tasks, design.n_items[0])))

        def runs(epochs: int) -> pd.DataFrame:
            right = (rng.random((2, epochs, *p.shape)) < p).astype(int)
            return table_of_scores(right, "model epoch task item")

        usual = evaluate(runs(n_epochs), epoch="epoch", **ROLES).noise["largest_usual"].iloc[0]
        new = runs(1)
        pair = evaluate(new, **ROLES).pairs.iloc[0]
        apart = abs(np.diff(new.groupby("model")["score"].mean()).item())
        return [apart < usual, pair["differ_these"], pair["differ_like"]]

    return rate_of(study, n, spawned(1))


@pytest.mark.parametrize("name", ["graded, mean 0.95, 5 tasks", "5 judges, some favour models", "10 to 500 items"])
def test_other_answers_keep_the_level_too(name):
    n, design = 200, DESIGNS[name]
    none = rates(n, design, 0.0, equal(design, 4), rng=1)
    some = rates(n, design, 0.4, apart(design, 4), AT_ONCE, rng=2)
    for wrong in (none[0], none[2], 1.0 - some[1], 1.0 - some[3]):
        assert at_most(wrong, n, 0.07)


@pytest.mark.parametrize("n_tasks", [2, 3])
def test_two_or_three_tasks_are_enough_for_an_answer_that_is_seldom_wrong(n_tasks):
    design = Design(n_tasks=n_tasks)
    assert at_most(rates(200, design, 0.8, equal(design, 2), rng=1)[2], 200)


def test_identical_runs_differ_by_less_than_is_usual_in_95_percent_and_are_seldom_called_different():
    found = repeated(0.7, 3, 200)
    assert abs(found[0] - 0.95) < 3 * np.sqrt(0.95 * 0.05 / 200) + 0.01
    assert at_most(found[1], 200, 0.07)
    assert at_most(found[2], 200, 0.07)


def rows(n: int, design: Design) -> list[np.ndarray]:
    """False differences of two and of four models, by question; intervals that all hold."""
    flat = [rates(n, design, 0.0, equal(design, k), rng=k)[::2] for k in (2, 4)]
    return [*flat, rates(n, design, 0.4, apart(design, 4), AT_ONCE, rng=5)[1::2]]


if __name__ == "__main__":
    n = int(sys.argv[1])
    names = [name for name in sys.argv[2:] if name != "repeated"] or (DESIGNS if len(sys.argv) == 2 else ())
    if len(sys.argv) == 2 or "repeated" in sys.argv:
        print("accuracy, epochs")
        printed(repeated, product((0.7, 0.95), (2, 5), (n,)))
    printed(rows, {name: (n, DESIGNS[name]) for name in names})
