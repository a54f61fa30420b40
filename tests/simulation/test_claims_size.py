"""How often the report claims something where there is nothing to claim: pure noise, table after table.

Every table is analysed as a newcomer would: `analyze(Runs(...))`, and what it says is read from the headline and from
the decisions. Rates are compared with the nominal ones by one-sided binomial tests.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from harness import ALPHA, at_most, rate_of
from study import as_runs, make_scores, runs_of_scores, table_of_scores

import lmemtest as lt
from lmemtest.bench.benchmark.observed_advantages import interactions
from lmemtest.bench.data.budget_mix import budgets_unlike
from lmemtest.errors import DesignError

CLAIMS = (" is the best of ", " is better than ", "significantly better", "depends on")
AXES = "algorithm benchmark seed"


def noise(rng: np.random.Generator, *, tasks: int = 12, tools: int = 3, seeds: int = 3) -> np.ndarray:
    """Algorithms of one mean, whose advantages differ between benchmarks; (algorithms, benchmarks, seeds)."""
    counts = {"algorithm": tools, "benchmark": tasks, "seed": seeds}
    return make_scores(rng, counts, {"benchmark": 1.0, "algorithm:benchmark": 0.3}, noise=0.3)


def analysed(runs: lt.Runs, **options: str) -> tuple[bool, str]:
    """Whether a difference is called significant (as `analyze` decides), and what the headline says of mean scores."""
    analysis = lt.analyze(runs, **options)
    head, _, _ = analysis.headline().partition(" By mean rank")  # an answer of its own, to another question
    return bool(analysis.decisions.significant.to_numpy().any()), head


def decisions(runs: lt.Runs) -> pd.Series:
    """Adjusted p-values of the pairs, by the way of `analyze`."""
    fit = lt.fit_lmm(lt.recommend(runs).formula, runs)
    return fit.emmeans("algorithm").pairs().to_frame().set_index(["left", "right"])["p_value"]


@pytest.fixture(autouse=True)
def no_diagnosis(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checks of the assumptions take most of the time and claim nothing of algorithms."""
    monkeypatch.setattr("lmemtest.report.analysis._diagnosed", lambda *_: None)


# ------------------------------------------------------------------------------------------------ benchmarks


def own_benchmarks(rng: np.random.Generator, tools: int, seeds: int) -> lt.Runs:
    return runs_of_scores(rng.normal(size=(tools, seeds)), "algorithm seed", benchmark=np.arange(tools)[:, None])


def a_run_id(rng: np.random.Generator, tools: int, seeds: int) -> lt.Runs:
    table = table_of_scores(noise(rng, tools=tools, seeds=seeds), "algorithm task seed")
    return as_runs(table.assign(run=range(len(table))), benchmark="run", seed=None)


@pytest.mark.parametrize("make", [own_benchmarks, a_run_id])
@pytest.mark.parametrize(("tools", "seeds"), [(2, 10), (3, 4), (5, 5)])
def test_benchmarks_that_do_not_cross_algorithms_give_no_claim(make: Callable, tools: int, seeds: int) -> None:
    """Before: a claim in 20 of 20 tables with benchmarks of their own, in 71 of 100 with the id of a run."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        with pytest.raises(DesignError, match="no benchmark has two algorithms"):
            lt.analyze(make(rng, tools, seeds))


def test_pairs_that_never_met_get_no_claim_and_the_others_few() -> None:
    """A and B on one half of the benchmarks, B and C on the other, which is harder by ten standard deviations."""
    hard, tool = np.arange(12)[:, None] < 6, np.arange(3)[:, None, None]

    def study(rng: np.random.Generator) -> bool:
        kept = ~((tool == 2) & hard) & ~((tool == 0) & ~hard)
        p = decisions(runs_of_scores(noise(rng) + 10.0 * hard, AXES, kept=kept))
        assert np.isnan(p["A", "C"])
        return (p < ALPHA).any()

    assert at_most(rate_of(study, 60, 2), 60)


# ------------------------------------------------------------------------------------------------ metafeatures


def with_kinds(rng: np.random.Generator) -> lt.Runs:
    scores = noise(rng)
    return runs_of_scores(scores, AXES, colour=rng.permutation(list("rgb") * 4)[:, None])


def with_conditions(rng: np.random.Generator) -> lt.Runs:
    """Advantages on a benchmark are partly shared by its two conditions."""
    base = noise(rng, tasks=10)
    parts = []
    for _ in range(2):
        parts.append(base + rng.normal(0, 0.2, (3, 10))[..., None] + rng.normal(0, 0.3, base.shape))
    return runs_of_scores(np.array(parts), f"colour {AXES}")


@pytest.mark.parametrize(("make", "n"), [(with_kinds, 60), (with_conditions, 40)])
def test_comparisons_depend_on_a_metafeature_of_noise_at_the_nominal_rate(make: Callable, n: int) -> None:
    """Before: 19 of 20 tables of noise said in bold that the winner depends on the colour."""

    def study(rng: np.random.Generator) -> bool:
        return interactions(make(rng), ddf="satterthwaite")["colour"].significant(ALPHA)

    assert at_most(rate_of(study, n, 3), n)


def test_the_box_of_a_table_of_noise_claims_at_most_twice_the_nominal_rate() -> None:
    """One family of pairs and one of metafeatures, each at five per cent."""

    def study(rng: np.random.Generator) -> bool:
        head = analysed(with_kinds(rng))[1]
        return any(claim in head for claim in CLAIMS)

    assert at_most(rate_of(study, 20, 4), 20, 2 * ALPHA)


def test_healthy_tables_of_noise_keep_the_nominal_rate() -> None:
    def study(rng: np.random.Generator) -> bool:
        claim, head = analysed(runs_of_scores(noise(rng), AXES))  # the words are those of the decisions
        assert claim == any(word in head for word in CLAIMS[:3]) or "some of the others differ" in head
        return claim

    assert at_most(rate_of(study, 60, 5), 60)


# ------------------------------------------------------------------------------------------------ budgets


def wall_clock(rng: np.random.Generator) -> lt.Runs:
    """One algorithm under three names, scored about every ten seconds, which stops later under the later names."""
    rows = []
    for task in range(6):
        for tool, end in zip("ABC", (100.0, 150.0, 220.0), strict=True):
            for seed in range(4):
                seconds = np.arange(0.0, end, 10.0) + rng.uniform(0, 5, int(end / 10))
                loss = np.minimum.accumulate(task + np.exp(-seconds / 60) + rng.normal(0, 0.05, len(seconds)))
                rows += [(tool, f"t{task}", seed, *row) for row in zip(seconds, loss, strict=True)]
    frame = pd.DataFrame(rows, columns=["algorithm", "task", "seed", "seconds", "loss"])
    return as_runs(frame, budget="seconds")


def single_trials(rng: np.random.Generator) -> lt.Runs:
    """Random search, and one that draws from half as wide a distribution about the same best score."""
    task, width = np.arange(6)[:, None, None, None], np.array([1.0, 0.5])[:, None, None]
    return runs_of_scores(task + width * rng.exponential(size=(6, 2, 4, 30)), "benchmark algorithm seed budget")


@pytest.mark.parametrize("make", [wall_clock, single_trials])
def test_means_over_unlike_things_have_no_winner(make: Callable[..., lt.Runs]) -> None:
    rng = np.random.default_rng(6)
    for _ in range(5):
        _, head = analysed(make(rng), curves="model")
        assert head.startswith("The means cannot be compared as they stand: ")
        assert not any(claim in head for claim in CLAIMS)


def test_at_common_budgets_the_same_algorithm_has_no_winner_at_the_nominal_rate() -> None:
    def study(rng: np.random.Generator) -> bool:
        return bool((decisions(wall_clock(rng).at_budgets([95.0])) < ALPHA).any())

    assert at_most(rate_of(study, 40, 7), 40)


def test_budgets_of_ones_own_from_one_range_are_called_unlike_rarely() -> None:
    def study(rng: np.random.Generator) -> bool:
        scores = noise(rng, tasks=5, seeds=4)
        seconds = np.stack([rng.uniform(0, 9, scores.shape) for _ in range(2)])
        table = table_of_scores(np.stack([scores] * 2), f"half {AXES}", budget=seconds).drop(columns="half")
        return budgets_unlike(as_runs(table).study)

    assert at_most(rate_of(study, 200, 8), 200, 0.005)
