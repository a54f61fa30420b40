"""Intervals of pairs that agree with step-down decisions, and planned pairs: what they hold and what they do not.

Of `n` tables whose algorithms differ in known ways, the share in which any interval excludes a difference that is truly
zero, the coverage of the interval that covers least often, and the share in which all intervals cover at once; for a
planned pair the share of false differences of the pair that has most. Run as a program, it prints the tables of
docs/developers/comparisons.md and docs/developers/default-comparison.md:

    python tests/simulation/test_interval_coverage.py
"""

from __future__ import annotations

from itertools import product

import comparisons
import numpy as np
import pytest
from comparisons import DESIGNS, Tables, moderated, p_values, paired
from harness import answers_of, at_most, each, printed, rate_of
from study import runs_of_scores

import lmemtest as lt
from lmemtest.lmm.distributions.student import two_sided_p
from lmemtest.lmm.means.adjust import critical_values

# differences of the means from the first algorithm's, in standard errors of an ordinary difference
SHIFTS = {
    "none": lambda k: np.zeros(k),
    "one better": lambda k: 3.5 * (np.arange(k) == 0),
    "graded": lambda k: 1.5 * np.arange(k),
    "far apart": lambda k: 20.0 * np.arange(k),
    "two groups": lambda k: 5.0 * (np.arange(k) >= k // 2),
}


def coverage(design: str, shape: tuple[int, int, int], shift: str, adjust: str, n: int = 4000) -> dict[str, float]:
    """What the intervals of moderated comparisons hold, by the package's own critical values."""
    b, k, s = shape
    rng = np.random.default_rng([b, k, len(design), len(shift)])
    moved = SHIFTS[shift](k) * np.sqrt(2.0 * (comparisons.ADVANTAGE**2 + comparisons.RESIDUAL**2 / s) / b)
    tables = Tables.of(DESIGNS[design].scores(shape, n, rng) + moved[:, None])
    variance, df = moderated(tables)
    p = p_values(tables, (variance, df))
    i, j = tables.pairs
    truth, m = moved[i] - moved[j], len(i)
    half = np.sqrt(variance) * np.array(
        [critical_values(df[t], p[t], method=adjust, n_tests=m, n_means=k, alpha=comparisons.LEVEL) for t in range(n)]
    )
    covers = np.abs(tables.estimate - truth) <= half
    null = truth == 0.0
    return {
        "excludes": float((~covers & null).any(axis=1).mean()),
        "least": float(covers.mean(axis=0).min()),
        "all": float(covers.all(axis=1).mean()),
    }


SHAPES = ((6, 4, 3), (12, 6, 5), (20, 10, 3))
DESIGN_NAMES = ("all alike", "one erratic, 3 times", "graded, 0.2 to 1.2")


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("design", DESIGN_NAMES)
@pytest.mark.parametrize("shift", list(SHIFTS))
def test_intervals_of_steps_exclude_a_true_zero_as_rarely_as_the_level_says(design, shape, shift):
    found = coverage(design, shape, shift, "stepdown")
    assert found["excludes"] <= 0.065  # nominal 5 %; the moderated comparison has up to 6.6 %
    assert found["least"] >= 0.93


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("design", DESIGN_NAMES)
def test_intervals_of_the_single_step_hold_at_once(design, shape):
    for shift in SHIFTS:
        assert coverage(design, shape, shift, "singlestep")["all"] >= 0.935


# ---------------------------------------------------------------------- one planned pair

HARD = np.array([3.5, 4.9, 0.5, 0.5, 1.6, 1.0, 0.2, 1.0])  # found by a search for the largest error of a single pair


def hard_tables(shape: tuple[int, int, int], n: int, seed: int = 1) -> Tables:
    """Advantages with two factors and noise, graded; all algorithms have the same mean."""
    b, k, s = shape
    rng = np.random.default_rng([seed, b, k])
    loadings = rng.normal(size=(2, k))
    advantages = HARD[:k] * (rng.normal(size=(n, b, 2)) @ loadings + 0.5 * rng.normal(size=(n, b, k))) / 1.5
    return Tables.of(rng.normal(size=(n, b, 1, 1)) + advantages[..., None] + 0.5 * rng.normal(size=(n, b, k, s)))


def planned(shape: tuple[int, int, int], n: int = 20_000) -> tuple[float, float]:
    """Share of false differences of the pair with most of them, by moderated variances and by its own."""
    tables = hard_tables(shape, n)
    return tuple(float((p_values(tables, rule(tables)) < 0.05).mean(axis=0).max()) for rule in (moderated, paired))


def random_designs(shape: tuple[int, int, int], n: int) -> float:
    """Any false difference by the default, the most of 20 designs that are drawn: up to 3 factors, graded variances."""
    b, k, s = shape

    def study(rng):
        factors = int(rng.integers(0, 4))
        sds = np.exp(rng.normal(scale=rng.choice([0.3, 1.0, 1.5]), size=k))
        loadings = rng.normal(size=(factors, k))
        advantages = sds * (rng.normal(size=(n, b, factors)) @ loadings + rng.normal(size=(n, b, k)))
        tables = Tables.of(rng.normal(size=(n, b, 1, 1)) + advantages[..., None] + 0.5 * rng.normal(size=(n, b, k, s)))
        return comparisons.by_step_down(p_values(tables, moderated(tables)), k).any(axis=1).mean()

    return max(answers_of(study, 20, each(b, k)))


RANDOM_SHAPES = ((4, 5, 3), (6, 6, 3), (8, 8, 3), (12, 6, 3))


@pytest.mark.parametrize("shape", RANDOM_SHAPES)
def test_all_pairs_keep_their_level_in_designs_that_are_drawn(shape):
    assert random_designs(shape, 2000) <= 0.07


@pytest.mark.parametrize("shape", [(6, 6, 3), (8, 8, 3), (12, 8, 3), (20, 6, 3)])
def test_a_planned_pair_keeps_its_level_by_its_own_variance(shape):
    n = 20_000
    _, own = planned(shape, n)
    # exact at 5 % for every pair; the largest of 15 or 28 rates is within four standard errors
    assert own <= 0.05 + 4.0 * np.sqrt(0.05 * 0.95 / n)


def test_the_package_takes_the_own_variance_of_a_planned_pair():
    tables = hard_tables((8, 8, 3), 60)
    means = iter(tables.means)

    def study(rng):
        scores = next(means)[..., None] + 0.3 * rng.normal(size=(8, 8, 3))
        runs = runs_of_scores(scores, direction="maximize", seed_shared=False)
        pairs = lt.recommend(runs).spec.fit(runs).emmeans("algorithm").pairs(adjust="none").table
        gap = scores[:, 0].mean(axis=1) - scores[:, 1].mean(axis=1)
        want = two_sided_p(gap.mean() / (gap.std(ddof=1) / np.sqrt(8)), 7.0)
        assert pairs["p_value"].iloc[0] == pytest.approx(float(want), rel=1e-6)
        return pairs["p_value"].iloc[0] < 0.05

    assert at_most(rate_of(study, 60, lambda k: k), 60)


if __name__ == "__main__":
    print("drawn designs")
    printed(random_designs, [(shape, 2000) for shape in RANDOM_SHAPES])
    print("design, shape, shift, intervals: exclude a true zero, least coverage, all at once")
    printed(coverage, product(DESIGN_NAMES, SHAPES, SHIFTS, ("stepdown", "singlestep")))
    print("planned pair: moderated, own variance")
    printed(planned, [((6, 6, 3),), ((8, 8, 3),), ((12, 8, 3),), ((20, 6, 3),)])
