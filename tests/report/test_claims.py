"""No claim without its test: pairs that never met, winners at the levels of a metafeature, means over unlike things."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
import study
from pytest import approx
from scipy import stats

import lmemtest as lt
from lmemtest.bench.benchmark.observed_advantages import interactions
from lmemtest.bench.data.budget_mix import are_single_trials, budgets_shared, budgets_unlike
from lmemtest.report.analysis import Analysis, analyze

Make = Callable[..., Any]


def words(analysis: Analysis) -> str:
    return " ".join(analysis.to_text().split())


# ------------------------------------------------------------------------------------------------ no common benchmark


@pytest.fixture(scope="module")
def chain(table: Make, as_runs: Make) -> Analysis:
    """A and B ran on four benchmarks, B and C on four others."""
    frame = table(benchmarks=tuple(f"t{i}" for i in range(8)))
    early = frame["task"].isin([f"t{i}" for i in range(4)])
    return analyze(as_runs(frame[~((frame["tool"] == "C") & early) & ~((frame["tool"] == "A") & ~early)]))


def test_the_headline_says_which_pairs_have_no_verdict(chain: Analysis) -> None:
    text = chain.headline()
    assert text.startswith(
        "A has the lowest mean loss: it is significantly better than B; C could not be tested against it, so nothing "
        "is claimed there. Its estimated lead over B is "
    )
    assert (
        "No common benchmark: 1 of the 3 pairs of algorithms has no benchmark in common (A and C); their "
        "differences may just as well be differences between benchmarks, so nothing is claimed about this pair."
    ) in text
    assert "best of the" not in text


def test_tables_and_sections_say_so_too(chain: Analysis) -> None:
    text = words(chain)
    assert "1 of 3 differences is significant at 5 %" in text
    assert "1 pair has no benchmark in common and is undecided." in text
    assert re.search(r"A C – – – – – – – no common benchmark", text)
    assert "There is no joint test of all algorithms, because some have no benchmark in common." in text
    assert chain.joint is None
    assert chain.to_frame()["worse_than_best"].isna().tolist() == [False, False, True]


def test_a_leader_that_met_nobody_significantly_is_called_so(table: Make, as_runs: Make) -> None:
    frame = table(benchmarks=tuple(f"t{i}" for i in range(8)), spread=2.0)
    early = frame["task"].isin([f"t{i}" for i in range(4)])
    rng = np.random.default_rng(0)
    frame["loss"] = rng.normal(size=len(frame))
    text = analyze(as_runs(frame[~((frame["tool"] == "C") & early) & ~((frame["tool"] == "A") & ~early)])).headline()
    assert "it is not distinguishable from B" in text
    assert "nothing is claimed about this pair" in text


# ------------------------------------------------------------------------------------------------ metafeatures


def coloured(seed: int, effect: float = 0.0) -> lt.Runs:
    """Three algorithms, of which another one is `effect` better at each of three kinds of benchmarks."""
    rng = np.random.default_rng(seed)
    loss = rng.normal(size=12)[:, None] + rng.normal(0, 0.3, (3, 12))[..., None] + rng.normal(0, 0.3, (3, 12, 3))
    loss -= effect * (np.arange(3)[:, None] == np.arange(12) % 3)[..., None]
    table = study.table_of_scores(loss, "tool task seed", "loss", tool=list("ABC"), task=[f"t{t}" for t in range(12)])
    colour = np.tile(np.repeat(list("rgb") * 4, 3), 3)
    return study.as_runs(table.assign(colour=colour), metafeatures=["colour"])


def exact_interaction(runs: lt.Runs) -> tuple[float, float]:
    """The F-test of a balanced table, by its mean squares: interaction over advantages between benchmarks."""
    means = runs.to_frame().groupby(["colour", "task", "tool"])["loss"].mean().unstack("tool")
    gaps = means.sub(means.mean(axis=1), axis=0)
    kinds = gaps.groupby("colour").mean()
    inside = gaps - kinds.reindex(gaps.index.get_level_values("colour")).to_numpy()
    f = (4 * ((kinds - kinds.mean()) ** 2).to_numpy().sum() / 4) / ((inside**2).to_numpy().sum() / 18)
    return f, float(stats.f.sf(f, 4, 18))


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_interaction_is_tested_against_the_variation_between_benchmarks(seed: int) -> None:
    runs = coloured(seed, 0.5)
    got = interactions(runs, ddf="satterthwaite")["colour"]
    f, p = exact_interaction(runs)
    assert (got.df_num, got.df_den) == (4, approx(18, rel=1e-4))
    assert (got.f_ratio, got.p_value) == (approx(f, rel=1e-5), approx(p, rel=1e-4))


def test_winners_of_noise_depend_on_nothing() -> None:
    """Of 20 tables of noise 19 said in bold that the winner depends on the colour."""
    runs = next(r for r in map(coloured, range(20)) if exact_interaction(r)[1] > 0.2)
    analysis = analyze(runs)
    assert "depends on colour" not in analysis.headline()
    assert "Dependence on colour is not shown (interaction with the algorithm: F(4, 18.0) = " in words(analysis)
    assert "Observed, not tested: of 12 instances" in words(analysis)


def test_a_comparison_that_does_depend_says_by_which_test() -> None:
    analysis = analyze(coloured(0, 3.0))
    assert "The comparison depends on colour (interaction with the algorithm: F(4, 18.0) = " in analysis.headline()
    assert "B with colour = g" in analysis.headline()


def test_several_metafeatures_are_adjusted_for() -> None:
    runs = coloured(0, 0.6)
    frame = runs.to_frame().assign(size=lambda d: d["task"].str[1:].astype(int) % 2)
    both = lt.Runs(frame, **{**runs.roles(), "metafeatures": ["colour", "size"]})
    found = interactions(both, ddf="satterthwaite")
    alone = interactions(runs, ddf="satterthwaite")["colour"]
    assert (found["colour"].tests, alone.tests) == (2, 1)
    assert found["colour"].p_value in (approx(2 * alone.p_value, rel=1e-6), approx(alone.p_value, rel=1e-6))
    assert found["colour"].result.endswith("Holm-adjusted for 2 metafeatures")


def test_a_metafeature_of_the_algorithms_decides_nothing(table: Make, as_runs: Make) -> None:
    """It said in one breath that the algorithms cannot be compared, and that the winner depends on their family."""
    frame = table().assign(family=lambda d: d["tool"].map({"A": "x", "B": "x", "C": "y"}))
    analysis = analyze(as_runs(frame, metafeatures=("family",)))
    assert analysis.headline() == analyze(as_runs(frame)).headline()
    assert "depends on family" not in words(analysis)
    assert "Each algorithm has one value of family" in words(analysis)


# ------------------------------------------------------------------------------------------------ budgets and trials


def logs(ends: tuple[float, ...], *, seed: int = 0, per_task: bool = False, seeds: int = 5) -> lt.Runs:
    """Best-so-far scores logged at times of their own, up to an end for each algorithm (or each on each task)."""
    rng = np.random.default_rng(seed)
    rows: list[tuple[Any, ...]] = []
    for task in range(6):
        for tool, end in zip("ABC", ends, strict=True):
            stop = end * np.exp(rng.normal(0, 0.3)) if per_task else end
            for s in range(seeds):
                seconds = np.sort(rng.uniform(0, stop, 12))
                loss = np.minimum.accumulate(np.exp(-seconds / 50) + rng.normal(0, 0.05, 12))
                rows += [(tool, f"t{task}", s, x, y) for x, y in zip(seconds, loss, strict=True)]
    frame = pd.DataFrame(rows, columns=["tool", "task", "seed", "seconds", "loss"])
    roles = {"algorithm": "tool", "benchmark": "task", "seed": "seed", "budget": "seconds"}
    return lt.Runs(frame, score="loss", direction="minimize", **roles)


def trials(name: str, kind: str) -> lt.Runs:
    """Fifty rows per run: of a random search, its best so far, or a training curve."""
    rng, k = np.random.default_rng(0), np.arange(50)
    rows: list[tuple[Any, ...]] = []
    for task in range(4):
        for tool in "AB":
            for s in range(3):
                y = {"search": rng.lognormal(size=50), "curve": np.exp(-k / 10) + rng.normal(0, 0.02, 50)}
                y["best"] = np.minimum.accumulate(y["search"])
                rows += [(tool, f"t{task}", s, int(i), v) for i, v in zip(k, y[kind], strict=True)]
    frame = pd.DataFrame(rows, columns=["tool", "task", "seed", name, "loss"])
    roles = {"algorithm": "tool", "benchmark": "task", "seed": "seed", "budget": name}
    return lt.Runs(frame, score="loss", direction="minimize", **roles)


@pytest.mark.parametrize(
    ("runs", "unlike"),
    [
        (logs((100, 100, 100)), False),
        (logs((100, 150, 200)), True),
        (logs((100, 100, 100), per_task=True), True),
        (logs((100, 100, 200), seeds=1), True),
        (logs((100, 100, 100), seeds=1), False),
    ],
)
def test_budgets_are_unlike_where_algorithms_ran_longer(runs: lt.Runs, unlike: bool) -> None:
    assert budgets_unlike(runs.study) == unlike


def test_times_of_ones_own_from_the_same_range_are_alike() -> None:
    rates = [budgets_unlike(logs((100, 100, 100), seed=seed, seeds=3).study) for seed in range(40)]
    assert sum(rates) <= 1


def test_benchmarks_may_have_budgets_of_their_own(table: Make, as_runs: Make) -> None:
    frame = pd.concat([table().assign(epoch=lambda d, b=b: b * (1 + d["task"].str[-1].astype(int))) for b in (1, 2)])
    study = as_runs(frame, budget="epoch").study
    assert budgets_shared(study)
    assert not budgets_unlike(study)
    lacking = as_runs(frame[~((frame["tool"] == "C") & (frame["epoch"] > 8))], budget="epoch").study
    assert not budgets_shared(lacking)
    assert budgets_unlike(lacking)


@pytest.mark.parametrize(
    ("name", "kind", "single"),
    [
        ("number", "search", True),
        ("budget", "search", True),
        ("epoch", "search", False),  # by its name the score belongs to each budget
        ("number", "best", False),
        ("number", "curve", False),
    ],
)
def test_rows_that_go_up_and_down_are_single_trials(name: str, kind: str, single: bool) -> None:
    assert are_single_trials(trials(name, kind).study) == single


def test_logs_that_end_at_different_times_have_no_winner() -> None:
    analysis = analyze(logs((100, 150, 200)), curves="model")
    text = analysis.headline()
    assert text.startswith("The means cannot be compared as they stand: ")
    for claim in ("is the best", "is better", "told apart", "p <", "p =", "held at"):
        assert claim not in text
    assert "runs.at_budgets([...]) has the last score of each run up to them" in text
    report = words(analysis)
    assert "No verdict follows from these differences." in report
    assert "Ranking by mean" not in report
    assert "Critical-difference diagram" not in report
    assert "The table compares the means as they stand, and decides nothing about the algorithms." in report
    assert "significant at 5 %" not in report
    assert any(f.kind == "irregular_budgets" for f in analysis.check.findings)


def test_the_advice_on_logs_leads_to_a_verdict() -> None:
    runs = logs((100, 150, 200))
    first = runs.to_frame().groupby(["tool", "task", "seed"])["seconds"].min().max()
    text = analyze(runs.at_budgets([max(first, 60.0), 90.0])).headline()
    assert "cannot be compared" not in text
    assert "Each run counts once, with its mean over 2 values of seconds. This compares whole curves, not" in text


def test_where_no_verdict_follows_no_rank_is_claimed() -> None:
    analysis = lt.analyze(trials("number", "search"), curves="model")
    assert analysis.incomparable
    for text in (analysis.summary(), analysis.to_text()):
        assert "confidence the best" not in text
        assert "the true ranks of all algorithms" not in text.replace("\n", " ")
    plain = lt.analyze(lt.datasets.load_hpo_runs().filter(budget=8, prior="good"))
    assert "With 95 % confidence the best" in plain.summary()
    said = "with 95 % confidence they contain the true ranks of all algorithms"
    assert said in plain.to_text().replace("\n", " ")


def test_trials_are_no_best_so_far_and_the_advice_works() -> None:
    runs = trials("number", "search")
    text = analyze(runs, curves="model").headline()
    assert text.startswith("The means cannot be compared as they stand: ")
    assert "it is the mean over single trials (number 0 to 49)" in text
    assert "p =" not in text
    finding = next(f for f in runs.check(rules_only=True).findings if f.kind == "single_trials")
    assert finding.severity == "warning"
    assert "runs.best_so_far()" in finding.advice
    better = runs.best_so_far()
    assert "single_trials" not in {f.kind for f in better.check(rules_only=True).findings}
    for comparable in (analyze(better), analyze(runs)):
        assert "cannot be compared" not in comparable.headline()
    assert "Each run counts once, with its best score up to number 49." in comparable.headline()


# ------------------------------------------------------------------------------------------------ texts


def test_the_map_of_effects_names_no_intervals_that_are_not_there(table: Make, as_runs: Make) -> None:
    def note(table: pd.DataFrame) -> str:
        return lt.plots.benchmark_effects_plot(table, kind="heatmap").get_xlabel()

    frame = table(seeds=1).drop(columns="seed")
    effects = analyze(as_runs(frame, seed=None)).effects.to_frame()
    assert note(effects) == ""
    assert note(effects.assign(ci_low=0.0, ci_high=1.0)) == "Every interval shown includes zero."
    assert note(effects.assign(ci_low=0.1, ci_high=1.0)) == "Bold: the interval excludes zero."


def test_one_benchmark_has_no_difficulty_of_its_own(table: Make, as_runs: Make) -> None:
    assert "difficulty of the benchmarks" not in words(analyze(as_runs(table(benchmarks=("t",), seeds=8))))


@pytest.fixture(scope="module")
def runtimes(table: Make, as_runs: Make) -> lt.Runs:
    return as_runs(table().assign(loss=lambda d: np.exp(d["loss"] + d["task"].str[-1].astype(int))))


def test_the_scale_is_that_of_the_model(runtimes: lt.Runs) -> None:
    analysis = analyze(runtimes, formula="log(loss) ~ tool + (1 | task) + (1 | task:tool)")
    raw = analyze(runtimes)
    assert raw.check.scale_ratio > 100 > 3 > analysis.check.scale_ratio
    assert "Unequal scales" in raw.headline()
    assert "scale" not in analysis.headline()
    assert "score_scale" not in {f.kind for f in analysis.check.findings}


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_leads_of_logarithms_are_ratios(runtimes: lt.Runs, direction: str) -> None:
    runs = lt.Runs(runtimes.frame, **{**runtimes.roles(), "direction": direction})
    analysis = analyze(runs, formula="log(loss) ~ tool + (1 | task) + (1 | task:tool)")
    best, other = analysis.comparable[:2]
    logs = np.log(runs.to_frame()["loss"]).groupby(runs.to_frame()["tool"]).mean()
    ratio = float(np.exp(logs[best] - logs[other]))
    found = re.search(rf"which is ([0-9.]+) \(([0-9.]+) to ([0-9.]+)\) times the loss of {other}", analysis.headline())
    assert found is not None
    got, low, high = map(float, found.groups())
    assert got == approx(ratio, rel=0.01)
    assert low < got < high
    assert "ratio" in words(analysis)


def test_scales_of_single_rows_are_not_judged(table: Make, as_runs: Make) -> None:
    analysis = analyze(as_runs(table(("A", "B"), seeds=1).drop(columns="seed"), seed=None))
    lines = analysis.diagnosis.to_frame()
    assert not lines["found"].str.contains("infinite").any()
    assert (lines.loc[lines["found"] == "too few rows per level", "severity"] == "skipped").all()
