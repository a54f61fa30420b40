"""How often the gate lets a version pass that is worse by the margin, and fails one that is not worse.

In complete tables the gate's test over tasks like these is the paired t-test over the means of tasks, with a standard
error that is never smaller: so whole batches of studies are judged by that t-test at once, which is the less cautious
of the two, and that the gate is what this says is a test. The test on these tasks is written here a second time.

Run as a program, it prints the table of docs/gate.md:

    python tests/simulation/test_gate_size.py
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from harness import ALPHA, at_most, printed, rate_of
from scipy import special, stats
from study import table_of_scores

import lmemtest as lt

MARGIN, N_STUDIES = 0.01, 20_000
Array = np.ndarray


def scores(
    rng: np.random.Generator,
    n_studies: int,
    gains: tuple[float, ...],
    *,
    n_tasks: int,
    n_seeds: int = 3,
    unequal: bool = False,
    correlation: float = 0.0,
    advantage: float = 0.008,
) -> tuple[Array, Array]:
    """Scores of the new and the old version: (studies, tasks, seeds, metrics) each.

    Metrics correlate in their noise and their advantages. With `unequal` the noise differs from task to task by a
    factor of two (one standard deviation), and that of the new version is twice that of the old one.
    """

    def draw(*shape: int) -> Array:
        common, own = rng.normal(size=(*shape, 1)), rng.normal(size=(*shape, len(gains)))
        return np.asarray(np.sqrt(correlation) * common + np.sqrt(1.0 - correlation) * own)

    noise = 0.01 * (np.exp(rng.normal(0.0, 0.7, (n_studies, n_tasks, 1, 1))) if unequal else 1.0)
    shared = rng.uniform(0.5, 0.9, (n_studies, n_tasks, 1, 1)) + 0.01 * draw(n_studies, n_tasks, n_seeds)
    versions = []
    for gain, scale in ((np.array(gains), 2.0 if unequal else 1.0), (np.zeros(len(gains)), 1.0)):
        mean = shared + gain + advantage * draw(n_studies, n_tasks, 1)
        versions.append(mean + scale * noise * draw(n_studies, n_tasks, n_seeds))
    return versions[0], versions[1]


def answers(
    rng: np.random.Generator, n_studies: int, gain: float, *, n_tasks: int, n_items: int = 50
) -> tuple[Array, Array]:
    """Right and wrong answers of both versions to the same items, correlated; the gain is that of the mean."""
    right = np.clip(special.expit(rng.normal(1.0, 0.7, (n_studies, n_tasks, 1))), 0.06, 0.96)
    shared, versions = rng.normal(size=(n_studies, n_tasks, n_items)), []
    for shift in (gain, 0.0):
        p = right + shift + rng.uniform(-0.03, 0.03, (n_studies, n_tasks, 1))
        latent = np.sqrt(0.7) * shared + np.sqrt(0.3) * rng.normal(size=shared.shape)
        versions.append((special.ndtr(latent) < p)[..., None].astype(float))
    return versions[0], versions[1]


def like_these(new: Array, old: Array, margin: float = MARGIN) -> Array:
    """Exit codes by paired t-tests over the means of tasks."""
    d = (new - old).mean(axis=2)
    return codes(d.mean(axis=1), d.std(axis=1, ddof=1) / np.sqrt(d.shape[1]), d.shape[1] - 1.0, margin)


def these(new: Array, old: Array, margin: float = MARGIN) -> Array:
    """Exit codes by the variance between pairs of runs on each task."""
    d = new - old
    v, f = d.var(axis=2, ddof=1) / d.shape[2], d.shape[2] - 1.0
    return codes(
        d.mean(axis=(1, 2)), np.sqrt(v.sum(axis=1)) / d.shape[1], v.sum(axis=1) ** 2 / (v**2 / f).sum(axis=1), margin
    )


def codes(gain: Array, se: Array, df: Any, margin: float) -> Array:
    """Pass if every metric is shown to be above -margin, fail if one is below (Holm's first step is Bonferroni's)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        t = (gain + margin) / se
    passed = (stats.t.sf(t, df) < ALPHA).all(axis=1)
    failed = (gain.shape[1] * stats.t.cdf(t, df) < ALPHA).any(axis=1)
    return np.where(passed, 0, np.where(failed, 1, 2))


def shares(decide: Callable[..., Array], draw: Callable[..., Any], *given: Any, margin: float = MARGIN, **options: Any):
    """Shares of the exit codes 0, 1 and 2."""

    def study(rng: np.random.Generator) -> Array:
        found = decide(*draw(rng, N_STUDIES // 20, *given, **options), margin)
        return np.bincount(found, minlength=3) / len(found)

    return rate_of(study, 20, 1)


def holds(share: float) -> bool:
    return at_most(share, N_STUDIES)


def gated(new: Array, old: Array, **options: Any) -> Any:
    """The gate between two tables of one study, (tasks, seeds, metrics)."""
    names = [f"m{i}" for i in range(new.shape[2])]
    tables = []
    for scores in (new, old):
        columns = {name: scores[..., i] for i, name in enumerate(names[:-1])}
        tables.append(table_of_scores(scores[..., -1], "task seed", names[-1], **columns))
    return lt.gate(*tables, score=names if len(names) > 1 else "m0", **{**CALL, **options})


CALL = {"margin": MARGIN, "direction": "maximize", "benchmark": "task", "seed": "seed", "seed_shared": False}


def is_never_less_cautious(new: Array, old: Array) -> None:
    row = gated(new, old).metrics.iloc[0]
    d = (new - old).mean(axis=(1, 2))
    assert row["difference"] == pytest.approx(d.mean(), abs=1e-9)
    assert row["df"] <= len(d) - 1 + 1e-6
    assert row["se"] >= (1 - 1e-6) * d.std(ddof=1) / np.sqrt(len(d))


@pytest.mark.parametrize("unequal", [False, True])
def test_the_gate_is_the_paired_test_and_never_less_cautious(unequal: bool) -> None:
    rng = np.random.default_rng(4)
    for n_tasks in (3, 5, 10):
        for pair in zip(*scores(rng, 8, (-MARGIN,), n_tasks=n_tasks, unequal=unequal), strict=True):
            is_never_less_cautious(*pair)


def test_right_and_wrong_answers_are_judged_like_scores() -> None:
    for pair in zip(*answers(np.random.default_rng(5), 8, -MARGIN, n_tasks=5), strict=True):
        is_never_less_cautious(*pair)


def test_the_gate_on_these_tasks_is_what_is_simulated() -> None:
    new, old = scores(np.random.default_rng(6), 20, (-MARGIN, 0.0), n_tasks=4, n_seeds=4, unequal=True)
    found = [gated(*pair, tasks="these").exit_code for pair in zip(new, old, strict=True)]
    assert found == these(new, old).tolist()


@pytest.mark.parametrize("n_tasks", [2, 5, 10, 30])
def test_a_version_at_the_margin_passes_and_fails_at_most_at_alpha(n_tasks: int) -> None:
    for unequal in (False, True):
        found = shares(like_these, scores, (-MARGIN,), n_tasks=n_tasks, unequal=unequal)
        assert holds(found[:2].max())


@pytest.mark.parametrize("n_tasks", [5, 10, 30])
def test_so_it_does_with_right_and_wrong_answers(n_tasks: int) -> None:
    assert holds(shares(like_these, answers, -MARGIN, n_tasks=n_tasks)[:2].max())


@pytest.mark.parametrize("n_tasks", [1, 5, 10])
def test_so_it_does_on_these_tasks(n_tasks: int) -> None:
    for n_seeds in (2, 5):
        options = {"n_tasks": n_tasks, "n_seeds": n_seeds, "unequal": True, "advantage": 0.0}
        assert holds(shares(these, scores, (-MARGIN,), **options)[:2].max())


@pytest.mark.parametrize("n_metrics", [3, 10])
@pytest.mark.parametrize("correlation", [0.0, 0.9])
def test_one_metric_at_the_margin_is_enough_to_hold_a_version_back(n_metrics: int, correlation: float) -> None:
    gains = (-MARGIN, *[0.02] * (n_metrics - 1))
    assert holds(shares(like_these, scores, gains, n_tasks=10, correlation=correlation)[0])


@pytest.mark.parametrize("n_metrics", [1, 3, 10])
def test_no_metric_is_called_worse_by_chance(n_metrics: int) -> None:
    for gain in (0.0, -MARGIN):
        for correlation in (0.0, 0.9):
            found = shares(like_these, scores, (gain,) * n_metrics, n_tasks=10, correlation=correlation)
            assert holds(found[1])


def test_equal_versions_pass_with_the_number_of_tasks_that_was_said() -> None:
    found = gated(*(y[0] for y in scores(np.random.default_rng(3), 1, (0.0,), n_tasks=400)), margin=0.002)
    needed = int(found.metrics["n_needed"].iloc[0])
    passed = shares(like_these, scores, (0.0,), n_tasks=needed, margin=0.002)[0]
    assert 0.74 < passed < 0.86  # that of 0.8 with a standard deviation that 400 tasks leave open by 7 %


if __name__ == "__main__":
    at = (-MARGIN,)
    print("like these, at the margin, by tasks: passed, failed and unknown; unequal noise; answers")
    printed(
        lambda n: [
            *(shares(like_these, scores, at, n_tasks=n, unequal=unequal) for unequal in (False, True)),
            *([shares(like_these, answers, -MARGIN, n_tasks=n)] if n > 2 else []),
        ],
        [(n,) for n in (2, 3, 5, 10, 30)],
    )
    print("these, at the margin, by tasks: 2, 3 and 5 seeds")
    options = {"unequal": True, "advantage": 0.0}
    printed(
        lambda n: [shares(these, scores, at, n_tasks=n, n_seeds=s, **options) for s in (2, 3, 5)],
        [(n,) for n in (1, 5, 10)],
    )
    print("metrics, correlation: passed with one at the margin; failed where all are equal; all at the margin")
    printed(
        lambda m, c: [
            shares(like_these, scores, gains, n_tasks=10, correlation=c)
            for gains in ((-MARGIN, *[0.02] * (m - 1)), (0.0,) * m, at * m)
        ],
        product((1, 3, 10), (0.0, 0.9)),
    )
    print("equal versions, by tasks: passed with a margin of 0.005, 0.01, 0.02")
    printed(
        lambda n: [shares(like_these, scores, (0.0,), n_tasks=n, margin=x)[0] for x in (0.005, 0.01, 0.02)],
        [(5,), (10,), (30,)],
    )
