"""How often the report claims something where there is nothing to claim: pure noise, table after table.

Every table is analysed as a newcomer would: `analyze(Runs(...))`, and what it says is read from the headline and from
the decisions. Rates are compared with the nominal ones by one-sided binomial tests.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest
from study import make_study

import lmemtest as lt
from lmemtest.bench.benchmark.metafeature_interactions import interactions
from lmemtest.errors import DesignError

pytestmark = pytest.mark.slow

ROLES = {"score": "loss", "direction": "minimize", "algorithm": "tool"}
CLAIMS = (" is the best of ", " is better than ", "significantly better", "depends on")
ALPHA = 0.05


def noise(
    rng: np.random.Generator,
    *,
    tasks: int = 12,
    tools: int = 3,
    seeds: int = 3,
    advantages: float = 0.3,
) -> pd.DataFrame:
    """Algorithms of one mean, whose advantages differ between benchmarks."""
    counts = {"tool": tools, "task": tasks, "seed": seeds}
    table = make_study(rng, counts, {"task": 1.0, "tool:task": advantages}, noise=0.3)
    return table.assign(tool=table["tool"].map("ABCDE".__getitem__), task=table["task"].map("t{}".format))


def analysed(runs: lt.Runs) -> tuple[bool, str]:
    """Whether some difference is called significant (as `analyze` decides), and the headline without the diagnosis."""
    from lmemtest.report import analysis

    found = analysis.analyze(runs)
    return bool(found.decisions.significant.to_numpy().any()), found.headline()


def decisions(runs: lt.Runs) -> pd.Series:
    """Adjusted p-values of the pairs, by the way of `analyze`."""
    fit = lt.fit_lmm(lt.recommend(runs).formula, runs)
    return fit.emmeans("tool").pairs().to_frame().set_index(["left", "right"])["p_value"]


def at_most(count: int, n: int, rate: float) -> bool:
    return binomtest(count, n, rate, alternative="greater").pvalue > 0.001


@pytest.fixture(autouse=True)
def no_diagnosis(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checks of the assumptions take most of the time and claim nothing of algorithms."""
    monkeypatch.setattr("lmemtest.report.analysis._diagnosed", lambda *_: None)


# ------------------------------------------------------------------------------------------------ benchmarks


def own_benchmarks(rng: np.random.Generator, tools: str, seeds: int) -> lt.Runs:
    rows = [(a, f"task_{a}", s, rng.normal()) for a in tools for s in range(seeds)]
    return lt.Runs(pd.DataFrame(rows, columns=["tool", "task", "seed", "loss"]), benchmark="task", seed="seed", **ROLES)


def a_run_id(rng: np.random.Generator, tools: str, seeds: int) -> lt.Runs:
    frame = noise(rng, tools=len(tools), seeds=seeds).assign(run=lambda d: range(len(d)))
    return lt.Runs(frame, benchmark="run", **ROLES)


@pytest.mark.parametrize("make", [own_benchmarks, a_run_id])
@pytest.mark.parametrize(("tools", "seeds"), [("AB", 10), ("ABC", 4), ("ABCDE", 5)])
def test_benchmarks_that_do_not_cross_algorithms_give_no_claim(
    make: Callable[..., lt.Runs], tools: str, seeds: int
) -> None:
    """Before: a claim in 20 of 20 tables with benchmarks of their own, in 71 of 100 with the id of a run."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        with pytest.raises(DesignError, match="no benchmark has two algorithms"):
            lt.analyze(make(rng, tools, seeds))


def test_pairs_that_never_met_get_no_claim_and_the_others_few() -> None:
    """A and B on one half of the benchmarks, B and C on the other, which is harder by ten standard deviations."""
    rng, n, claims = np.random.default_rng(2), 60, 0
    for _ in range(n):
        frame = noise(rng)
        hard = frame["task"].isin([f"t{i}" for i in range(6)])
        frame["loss"] += 10.0 * hard
        frame = frame[~((frame["tool"] == "C") & hard) & ~((frame["tool"] == "A") & ~hard)]
        p = decisions(lt.Runs(frame, benchmark="task", seed="seed", **ROLES))
        assert np.isnan(p["A", "C"])
        claims += bool((p < ALPHA).any())
    assert at_most(claims, n, ALPHA)


# ------------------------------------------------------------------------------------------------ metafeatures


def with_kinds(rng: np.random.Generator) -> lt.Runs:
    frame = noise(rng)
    colours = dict(zip(frame["task"].unique(), rng.permutation(list("rgb") * 4), strict=True))
    return lt.Runs(frame.assign(colour=frame["task"].map(colours)), benchmark="task", seed="seed", **ROLES,
                   metafeatures=["colour"])  # fmt: skip


def with_conditions(rng: np.random.Generator) -> lt.Runs:
    """Advantages on a benchmark are partly shared by its two conditions."""
    base = noise(rng, tasks=10)
    parts = []
    for colour in "rg":
        shift = dict(zip(base.groupby(["tool", "task"]).groups, rng.normal(0, 0.2, 30), strict=True))
        cell = pd.Series(list(zip(base["tool"], base["task"], strict=True))).map(shift).to_numpy()
        parts.append(base.assign(colour=colour, loss=base["loss"] + cell + rng.normal(0, 0.3, len(base))))
    return lt.Runs(pd.concat(parts), benchmark="task", seed="seed", metafeatures=["colour"], **ROLES)


@pytest.mark.parametrize(("make", "n"), [(with_kinds, 60), (with_conditions, 40)])
def test_comparisons_depend_on_a_metafeature_of_noise_at_the_nominal_rate(make: Callable[..., lt.Runs], n: int) -> None:
    """Before: 19 of 20 tables of noise said in bold that the winner depends on the colour."""
    rng = np.random.default_rng(3)
    rejected = sum(interactions(make(rng), "loss", ddf="satterthwaite")["colour"].significant(ALPHA) for _ in range(n))
    assert at_most(rejected, n, ALPHA)


def test_the_box_of_a_table_of_noise_claims_at_most_twice_the_nominal_rate() -> None:
    """One family of pairs and one of metafeatures, each at five per cent."""
    rng, n = np.random.default_rng(4), 20
    heads = [analysed(with_kinds(rng))[1] for _ in range(n)]
    assert at_most(sum(any(claim in head for claim in CLAIMS) for head in heads), n, 2 * ALPHA)


def test_healthy_tables_of_noise_keep_the_nominal_rate() -> None:
    rng, n = np.random.default_rng(5), 60
    found = [analysed(lt.Runs(noise(rng), benchmark="task", seed="seed", **ROLES)) for _ in range(n)]
    assert at_most(sum(claim for claim, _ in found), n, ALPHA)
    for claim, head in found:  # the words are those of the decisions
        assert claim == any(word in head for word in CLAIMS[:3]) or "some of the others differ" in head


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
    frame = pd.DataFrame(rows, columns=["tool", "task", "seed", "seconds", "loss"])
    return lt.Runs(frame, benchmark="task", seed="seed", budget="seconds", **ROLES)


def single_trials(rng: np.random.Generator) -> lt.Runs:
    """Random search, and one that draws from half as wide a distribution about the same best score."""
    rows = []
    for task in range(6):
        for tool, width in (("A", 1.0), ("B", 0.5)):
            for seed in range(4):
                loss = task + width * rng.exponential(size=30)
                rows += [(tool, f"t{task}", seed, i, y) for i, y in enumerate(loss)]
    frame = pd.DataFrame(rows, columns=["tool", "task", "seed", "number", "loss"])
    return lt.Runs(frame, benchmark="task", seed="seed", budget="number", **ROLES)


@pytest.mark.parametrize("make", [wall_clock, single_trials])
def test_means_over_unlike_things_have_no_winner(make: Callable[..., lt.Runs]) -> None:
    rng = np.random.default_rng(6)
    for _ in range(5):
        _, head = analysed(make(rng))
        assert head.startswith("The means cannot be compared as they stand: ")
        assert not any(claim in head for claim in CLAIMS)


def test_at_common_budgets_the_same_algorithm_has_no_winner_at_the_nominal_rate() -> None:
    rng, n, claims = np.random.default_rng(7), 40, 0
    for _ in range(n):
        runs = wall_clock(rng)
        claims += bool((decisions(runs.at_budgets([95.0])) < ALPHA).any())
    assert at_most(claims, n, ALPHA)


def test_budgets_of_ones_own_from_one_range_are_called_unlike_rarely() -> None:
    from lmemtest.bench.checks.budget_mix import budgets_unlike

    rng, n, called = np.random.default_rng(8), 200, 0
    for _ in range(n):
        frame = noise(rng, tasks=5, seeds=4).assign(seconds=lambda d: rng.uniform(0, 9, len(d)))
        frame = pd.concat([frame, frame.assign(seconds=rng.uniform(0, 9, len(frame)))])
        study = lt.Runs(frame, benchmark="task", seed="seed", budget="seconds", **ROLES).study
        called += budgets_unlike(study)
    assert at_most(called, n, 0.005)
