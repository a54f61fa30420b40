"""How often a metafeature without influence is found to have one, benchmark by benchmark and over benchmarks."""

from __future__ import annotations

import numpy as np
import pytest
from harness import about, at_least, at_most, covers, differs, each, off_zero, rate_of
from study import make_scores, runs_of_scores

import lmemtest as lt
from lmemtest.bench.benchmark.metafeature_effect import metafeature_effect
from lmemtest.bench.benchmark.metafeature_outcomes import metafeature_outcomes
from lmemtest.bench.benchmark.outcomes import instance_contrasts
from lmemtest.bench.benchmark.pair_scores import pair_scores

TASKS, SEEDS, BUDGETS = 8, 12, 6
SIDE = np.array([0.5, -0.5])  # of an algorithm, or of a level of the metafeature


def null_runs(rng: np.random.Generator, difference: float, between: float = 0.0) -> lt.Runs:
    """Curves with a common difference of two tools, the same at both levels (on average over tasks)."""
    counts = {"benchmark": TASKS, "prior": 2, "algorithm": 2, "seed": SEEDS, "budget": BUDGETS}
    advantage = difference + between * rng.normal(size=(TASKS, 2))
    # seeds are blocks, runs are curves
    sds = {"benchmark": 1.0, "benchmark:seed": 0.3, "benchmark:prior:algorithm:seed": 0.5}
    scores = make_scores(rng, counts, sds, noise=0.3) - 0.3 * np.arange(BUDGETS)
    scores += 0.5 * np.arange(2)[:, None, None, None] - advantage[..., None, None, None] * np.arange(2)[:, None, None]
    return runs_of_scores(scores, " ".join(counts))


@pytest.mark.parametrize("test", ["two-sample", "paired"])
@pytest.mark.parametrize("difference", [0.0, 0.5])
def test_outcomes_are_contrasted_at_five_percent_or_less_and_budgets_are_no_repetitions(difference, test):
    options = {"algorithms": ("B", "A"), "metafeature": "prior", "test": test}

    def study(rng):
        runs = null_runs(rng, difference)
        found = metafeature_outcomes(runs, n_draws=399, rng=rng, **options)
        naive = metafeature_outcomes(runs, unit="budget", **options)
        single = (found.contrasts["p_raw"] < 0.05).mean()
        return single, differs(found.contrasts), bool(found.singled_out), differs(naive.contrasts)

    single, family, singled_out, naive = rate_of(study, 200, 17)
    assert at_most(single, 200 * TASKS)
    assert at_most(family, 200)
    assert at_most(singled_out, 200)
    assert not at_most(naive, 200)


@pytest.mark.parametrize("between", [0.0, 0.6])
def test_the_model_finds_a_contrast_over_benchmarks_at_five_percent(between):
    def study(rng):
        runs = null_runs(rng, 0.3, between)
        found = metafeature_effect(runs, algorithms=("B", "A"), metafeature="prior", rng=rng)
        return differs(found.overall), differs(found.contrasts, "p_others"), bool(found.singled_out)

    overall, others, odd = rate_of(study, 150, 23)
    if between:
        assert about(overall, 150)
    else:  # variances that are zero are estimated as positive now and then: careful
        assert at_most(overall, 150)
        assert at_most(others, 150)
    assert at_most(odd, 150)


def contrasts_of(runs: lt.Runs, truth: np.ndarray, rng) -> tuple[bool, bool]:
    """Whether the intervals of all benchmarks hold their contrasts, and whether one excludes zero."""
    found = metafeature_effect(runs, algorithms=("A", "B"), metafeature="prior", rng=rng).to_frame()
    return covers(found, truth).where(found["ci_low"].notna(), True).all(), off_zero(found).any()


@pytest.mark.parametrize(
    ("tasks", "seeds", "advantages", "contrasts", "noise"),
    [
        (12, 6, 0.6, 0.8, 0.8),
        (12, 5, 0.3, 0.1, 0.3),
        (12, 25, 0.3, 0.1, 0.3),
        (20, 10, 0.3, 0.1, 0.3),
        (4, 5, 0.3, 0.1, 0.3),
    ],
    ids=["vary", "vary little", "vary little, many seeds", "vary little, many tasks", "few tasks"],
)
def test_simultaneous_intervals_of_the_benchmarks_contrasts_cover_them_all(tasks, seeds, advantages, contrasts, noise):
    """Advantages go together over levels, so that their correlation is often estimated as one."""

    def study(rng):
        advantage, truth = advantages * rng.normal(size=tasks), 0.5 + contrasts * rng.normal(size=tasks)
        signal = -SIDE * (advantage[:, None, None] - SIDE[:, None] * truth[:, None, None])
        scores = (rng.normal(size=tasks)[:, None, None] + signal)[..., None]
        scores = scores + noise * rng.normal(size=(tasks, 2, 2, seeds))
        return contrasts_of(runs_of_scores(scores, "benchmark prior algorithm seed"), truth, rng)

    assert at_least(rate_of(study, 100, 29)[0], 100)


@pytest.mark.parametrize(
    ("tasks", "seeds", "noise", "contrasts", "unlike"),
    [
        (6, (8, 2), (0.5, 1.0), 0.0, 1.0),
        (6, (8, 2), (0.5, 1.0), 1.0, 1.0),
        (20, (8, 2), (0.5, 1.0), 0.5, 1.0),
        (3, (8, 2), (0.5, 1.0), 1.0, 1.0),
        (6, (5, 5), (0.7, 0.7), 0.0, 1.0),
        (3, (5, 5), (0.7, 0.7), 1.0, 1.0),
        (8, (5, 5), (0.7, 0.7), 1.0, 1.0),
        (8, (5, 5), (0.5, 0.5), 0.8, 4.0),
        (6, (3, 3), (0.5, 1.0), 0.5, 1.0),
    ],
)
def test_intervals_of_all_benchmarks_hold_where_levels_or_benchmarks_differ_in_noise(
    tasks, seeds, noise, contrasts, unlike
):
    """100 tables: seeds of their own, noise by level, and the noisiest benchmarks `unlike` times the quietest.

    With one variance of all runs the first cell held in 63 %, and had a benchmark beyond zero in 39 %.
    """

    def study(rng):
        truth, scores = np.empty(tasks), np.full((tasks, 2, 2, max(seeds)), np.nan)
        for b in range(tasks):
            scale, level, advantage = unlike ** rng.uniform(-0.5, 0.5), rng.normal(), 0.5 * rng.normal()
            truth[b] = contrasts * rng.normal()
            for p in (0, 1):
                shift = level + 0.3 * rng.normal()
                for a in (0, 1):
                    mean = shift + SIDE[a] * (advantage - SIDE[p] * truth[b])
                    scores[b, p, a, : seeds[p]] = mean + noise[p] * scale * rng.normal(size=seeds[p])
        options = {"direction": "maximize", "seed_shared": False, "kept": np.isfinite(scores)}
        return contrasts_of(runs_of_scores(scores, "benchmark prior algorithm seed", **options), truth, rng)

    hold, beyond = rate_of(study, 100, lambda k: [78, k])
    print(f"{tasks} benchmarks, seeds {seeds}, noise {noise}, contrasts {contrasts}, unlike {unlike}: "
          f"all hold {100 * hold:.0f} %, some beyond zero {100 * beyond:.0f} %")  # fmt: skip
    assert at_least(hold, 100)
    assert contrasts or at_most(beyond, 100)


@pytest.mark.parametrize(("difference", "rate"), [(0.0, 0.05), (0.25, 0.12)])
def test_all_pairs_of_instances_hold_their_level(difference, rate):
    """Of 16 instances in 5 % of the tables where the algorithms do not differ; in 12 % where they differ alike and the
    tests at the points find that about every second time."""

    def study(rng):
        losses, axes, _ = pair_scores(null_runs(rng, difference), ("A", "B"), "prior")
        return differs(instance_contrasts(losses, axes, n_draws=299, rng=rng)[1])

    assert at_most(rate_of(study, 120, each(77)), 120, rate, p=0.005)
