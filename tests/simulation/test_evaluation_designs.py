"""Evaluations that are not a full table of 0 and 1: pass rates, judges, unequal tasks, items of one model, epochs.

False differences among models of one accuracy, and coverage of the simultaneous intervals at a true difference. The
answers are those of `test_evaluation_size`: only what is observed of them differs. The table of docs/validation.md is
printed by ``python tests/simulation/test_evaluation_designs.py 200``.
"""

from __future__ import annotations

import sys
import time
import warnings
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from scipy.stats import binom
from test_evaluation_size import ITEM, PAIR, TASK, centre_of, mean_of

from lmemtest import evaluate
from lmemtest.core.replicates import replicate

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
    judge, model, place, epoch = (index.ravel() for index in np.indices(score.shape))
    name = place + model * len(task) * design.own_items
    table = pd.DataFrame({"judge": judge, "model": model, "task": task[place], "item": name, "epoch": epoch})
    table["score"] = score.ravel()
    if design.answered < 1.0:
        has = rng.random(eta.shape) < design.answered
        table = table[has[model, place]]
    if 0 < design.n_judges < 5:  # these judges are who they are
        truth = mean_of(level + severity[..., None], np.sqrt(ITEM**2 + PAIR**2 + of_judge[2] ** 2)).mean(axis=(0, 2))
    else:
        truth = mean_of(level, np.sqrt(ITEM**2 + PAIR**2 + sum(sd**2 for sd in of_judge))).mean(axis=1)
    return table, truth


def study(
    rng: np.random.Generator,
    design: Design,
    advantage: float,
    accuracies: tuple[float, ...],
    adjust: str | None = None,
) -> list[float]:
    """For either question: any difference of models that differ in nothing, and whether all intervals hold."""
    table, here = drawn(rng, design, advantage, accuracies)
    roles = {"epoch": "epoch" if design.n_epochs > 1 else None, "judge": "judge" if design.n_judges else None}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = evaluate(table, model="model", task="task", item="item", score="score", adjust=adjust, **roles).pairs
    out = []
    for name, truth in (("these", here), ("like", np.array(accuracies))):
        true = np.array([truth[i] - truth[j] for i, j in combinations(range(len(truth)), 2)])
        held = (found[f"ci_low_{name}"] <= true) & (true <= found[f"ci_high_{name}"])
        out += [float(found[f"differ_{name}"].fillna(False).any()), float(held.all())]
    return out


def rates(n: int, *given: object, rng: int) -> np.ndarray:
    """False differences on these tasks, intervals on these tasks, and both for tasks like these."""
    found = replicate(lambda generator: study(generator, *given), n, rng=rng)  # type: ignore[arg-type]
    return np.mean([row for row in found if isinstance(row, list)], axis=0)


AT_ONCE = "singlestep"  # whose intervals are simultaneous; those of the default exclude zero where a pair is decided


def equal(design: Design, k: int) -> tuple[float, ...]:
    return (design.accuracy,) * k


def apart(design: Design, k: int) -> tuple[float, ...]:
    """Models whose errors are up to half more."""
    return tuple(1.0 - (1.0 - design.accuracy) * (1.0 + 0.5 * j / (k - 1)) for j in range(k))


def repeated(rng: np.random.Generator, accuracy: float, n_epochs: int) -> list[float]:
    """Whether two new runs of a model differ by less than is usual, and whether they are called different models."""
    design = Design(accuracy=accuracy)
    centre = centre_of(accuracy, float(np.sqrt(TASK**2 + ITEM**2)))
    level = centre + rng.normal(0, TASK, (design.n_tasks, 1))
    p = expit(level + rng.normal(0, ITEM, (design.n_tasks, design.n_items[0])))
    task, item = (index.ravel() for index in np.indices(p.shape))

    def runs(names: tuple[str, ...], n: int) -> pd.DataFrame:
        rows = []
        for name, epoch in product(names, range(n)):
            right = (rng.random(p.shape) < p).astype(int).ravel()
            rows.append(pd.DataFrame({"model": name, "task": task, "item": item, "epoch": epoch, "score": right}))
        return pd.concat(rows)

    roles = {"model": "model", "task": "task", "item": "item", "score": "score"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        usual = evaluate(runs(("A", "B"), n_epochs), epoch="epoch", **roles).noise["largest_usual"].iloc[0]
        new = runs(("first", "second"), 1)
        pair = evaluate(new, **roles).pairs.iloc[0]
    means = new.groupby("model")["score"].mean()
    return [
        float(abs(means["first"] - means["second"]) < usual),
        float(pair["differ_these"]),
        float(pair["differ_like"]),
    ]


@pytest.mark.level(3)
@pytest.mark.parametrize("name", ["graded, mean 0.95, 5 tasks", "5 judges, some favour models", "10 to 500 items"])
def test_other_answers_keep_the_level_too(name):
    n, design = 200, DESIGNS[name]
    none = rates(n, design, 0.0, equal(design, 4), rng=1)
    some = rates(n, design, 0.4, apart(design, 4), AT_ONCE, rng=2)
    for wrong in (none[0], none[2], 1.0 - some[1], 1.0 - some[3]):
        assert wrong * n <= binom.ppf(0.999, n, 0.07)


@pytest.mark.level(3)
@pytest.mark.parametrize("n_tasks", [2, 3])
def test_two_or_three_tasks_are_enough_for_an_answer_that_is_seldom_wrong(n_tasks):
    n, design = 200, Design(n_tasks=n_tasks)
    assert rates(n, design, 0.8, equal(design, 2), rng=1)[2] * n <= binom.ppf(0.999, n, 0.05)


@pytest.mark.level(3)
def test_identical_runs_differ_by_less_than_is_usual_in_95_percent_and_are_seldom_called_different():
    found = np.mean(replicate(lambda generator: repeated(generator, 0.7, 3), 200, rng=1), axis=0)
    assert abs(found[0] - 0.95) < 3 * np.sqrt(0.95 * 0.05 / 200) + 0.01
    assert (found[1:] * 200 <= binom.ppf(0.999, 200, 0.07)).all()


if __name__ == "__main__":
    count = int(sys.argv[1])
    for epochs, mean in product((2, 5), (0.7, 0.95)) if len(sys.argv) == 2 or sys.argv[2] == "repeated" else ():
        found = np.mean(replicate(lambda g: repeated(g, mean, epochs), count, rng=1), axis=0)  # noqa: B023
        print(f"{epochs} epochs, accuracy {mean}: {100 * found}", flush=True)
    for label in [name for name in sys.argv[2:] if name != "repeated"] or (DESIGNS if len(sys.argv) == 2 else ()):
        own, start = DESIGNS[label], time.process_time()
        flat = [rates(count, own, 0.0, equal(own, k), rng=k) for k in (2, 4)]
        shifted = rates(count, own, 0.4, apart(own, 4), AT_ONCE, rng=5)
        row = [flat[0][0], flat[0][2], flat[1][0], flat[1][2], shifted[1], shifted[3]]
        print(
            f"{label:40} | {' '.join(f'{100 * x:5.1f}' for x in row)} | {time.process_time() - start:.0f} s", flush=True
        )
