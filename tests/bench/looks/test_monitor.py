"""Looks at a growing study: decisions, what is adjusted, the ledger, what is refused."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from refusals import refuses
from scipy import optimize, special, stats
from source import PACKAGE
from study import runs_of_scores

import lmemtest as lt
from lmemtest.bench.looks.monitor import extend
from lmemtest.bench.robustness.variants import compared
from lmemtest.core.words import format_number
from lmemtest.errors import ArgumentError, DataError, DesignError, NestingError
from lmemtest.lmm.means.adjust import adjust_raw, level_of_pairs
from lmemtest.lmm.sequential.brownian import critical_scores, estimate_at_end
from lmemtest.lmm.sequential.evalues import log_evalue
from lmemtest.lmm.sequential.successive_t import boundaries, crossing, repeated_p
from lmemtest.report.document import plain
from lmemtest.report.methods import methods_paragraph

SHIFT = np.array([0.0, 0.2, 2.5])


def scores(n: int, k: int = 3, seeds: int = 2, rng: int = 1) -> np.ndarray:
    x = np.random.default_rng(rng).normal(size=(40, k, seeds)) + SHIFT[:k, None]
    return np.asarray(x[:n])


def runs(n: int, **options: Any) -> lt.Runs:
    return runs_of_scores(scores(n, **options), seed_shared=False)


def study(sizes: tuple[int, ...], k: int = 3, **options: Any) -> Any:
    found = None
    for n in sizes:
        found = lt.monitor(runs(n, k=k), earlier=found, **options)
    return found


# ---------------------------------------------------------------------- numbers


def test_two_algorithms_are_tested_by_the_paired_t_test() -> None:
    found = study((5, 10), k=2, maximum=20)
    x = scores(10, k=2).mean(axis=2)
    test = stats.ttest_rel(x[:, 0], x[:, 1])
    row = found.to_frame().iloc[0]
    assert row["p_look"] == pytest.approx(test.pvalue, rel=1e-9)
    first = stats.ttest_rel(x[:5, 0], x[:5, 1]).pvalue
    wanted = min(repeated_p([first], [5], 20)[0], repeated_p([test.pvalue], [5, 10], 20)[0])
    assert row["p_repeated"] == pytest.approx(wanted, rel=1e-9)
    assert row["p_value"] == row["p_repeated"]
    critical = stats.t.isf(special.ndtr(-boundaries([5, 10], 20, 0.05)[0, 1]), 9)
    assert row["ci_high"] - row["estimate"] == pytest.approx(critical * row["se"], rel=1e-9)


def test_a_single_look_at_the_end_is_rank() -> None:
    """One look at the maximum spends everything: the raw p-values of moderated t-tests, with Shaffer's adjustment."""
    found = lt.monitor(runs(12), maximum=12)
    ranking = lt.rank(runs(12), "frequentist", test="moderated", adjust="shaffer")
    wanted = ranking.to_frame("pairs").set_index(["left", "right"])["p_value"]
    seen = found.to_frame().set_index(["left", "right"])["p_value"]
    np.testing.assert_allclose(seen, wanted.loc[seen.index], rtol=1e-3, atol=3e-9)  # 1e-9 and less are one


def test_pairs_are_adjusted_within_a_look_and_decisions_stay() -> None:
    found = study((6, 12, 18), maximum=24)
    table = found.to_frame()
    p = np.sort(table["p_repeated"])
    shaffer = np.maximum.accumulate(p * [3, 1, 1])  # of three means only one pair can be equal once one differs
    np.testing.assert_allclose(np.sort(table["p_value"]), np.minimum(1.0, shaffer))
    control = study((6, 12, 18), maximum=24, control="A").to_frame()
    np.testing.assert_allclose(control["p_value"], adjust_raw(control["p_repeated"].to_numpy(), "holm", 2))
    earlier = study((6, 12), maximum=24).to_frame()
    assert (table["p_repeated"] <= earlier["p_repeated"]).all()
    assert found.decisions.levels[-1] == "C"
    assert (found.decisions.codes[-1, :-1] == -1).all()


def test_intervals_that_do_not_show_a_decision_are_counted_beside_them() -> None:
    """Shaffer's last step has the whole level, intervals a third of it."""
    x = np.random.default_rng(3).normal(size=(12, 3, 2)) + np.array([0.0, 0.7, 2.5])[:, None]
    found = lt.monitor(runs_of_scores(x, seed_shared=False), maximum=12)
    table = found.to_frame().set_index(["left", "right"])
    assert table["decided"].all()
    assert (table["ci_low"] * table["ci_high"] < 0.0).tolist() == [True, False, False]
    assert found.facts[-1].endswith(
        "for all pairs and looks; 1 interval includes zero for a pair decided by steps or earlier."
    )
    assert lt.monitor(runs(12), maximum=12).facts[-1].endswith("for all pairs and looks.")


def test_e_values_need_no_maximum_and_say_what_each_look_says() -> None:
    found = study((6, 12), k=2, method="evalue")
    ratios = [stats.ttest_rel(*scores(n, k=2).mean(axis=2).T).statistic for n in (6, 12)]
    logs = [float(log_evalue(t, n, 1.0)) for t, n in zip(ratios, (6, 12), strict=True)]
    assert found.to_frame()["p_repeated"][0] == pytest.approx(np.exp(-max(0.0, *logs)), rel=1e-9)
    assert found.decision == "go on"
    assert study((6, 12, 18), k=2, method="evalue", maximum=18).decision == "undecided at the end"


@pytest.mark.parametrize(
    ("options", "decision"),
    [
        ({"maximum": 20, "futility": 0.001}, "go on"),
        ({"maximum": 16, "control": "C"}, "stop"),
        ({"maximum": 20, "futility": 0.9, "control": "B"}, "cannot be decided"),
        ({"maximum": 16}, "undecided at the end"),
    ],
)
def test_decisions(options: dict[str, Any], decision: str) -> None:
    found = study((4, 16), **options)
    assert found.decision == decision
    assert found.looks[-1].decision == found.to_frame("looks")["decision"].iloc[-1] == decision


def test_the_best_stops_when_all_others_are_worse() -> None:
    x = scores(10) + np.array([0.0, 9.0, 7.0])[:, None]
    found = lt.monitor(runs_of_scores(x), maximum=12, goal="best")
    assert found.decision == "stop"
    assert found.sentences()[0] == "Stop: A is the best."
    assert not found.to_frame()["decided"].all()


def test_the_end_of_a_pair_has_a_median_unbiased_estimate() -> None:
    assert not len(study((8, 16), k=2, maximum=20, futility=0.001).final())
    end = study((8, 16), k=2, maximum=16).final().iloc[0]
    x = np.diff(scores(16, k=2).mean(axis=2), axis=1)[:, 0]
    assert end["ci_low"] < end["estimate"] < end["ci_high"]
    assert end["estimate"] == pytest.approx(-x.mean(), abs=0.05 * x.std())
    only = lt.monitor(runs(16, k=2), maximum=16).to_frame("final").iloc[0]
    limits = stats.ttest_1samp(-x, 0.0).confidence_interval()
    np.testing.assert_allclose([only["estimate"], only["ci_low"], only["ci_high"]], [-x.mean(), *limits], rtol=1e-8)
    assert only["p_value"] == pytest.approx(stats.ttest_1samp(x, 0.0).pvalue, rel=1e-8)


def test_what_cannot_be_decided_has_its_estimates_and_intervals() -> None:
    found = study((8, 16), k=2, maximum=40, futility=0.5)
    assert found.decision == "cannot be decided"
    end, test = found.final().iloc[0], found.to_frame().iloc[0]
    before = critical_scores([8 / 40, 16 / 40], 0.05)[:1].tolist()
    wanted = estimate_at_end(test["estimate"], test["se"], test["df"], [8 / 40, 16 / 40], before, 0.05)
    np.testing.assert_allclose(end[["estimate", "ci_low", "ci_high"]].to_list(), wanted, rtol=1e-12)
    assert any(text.startswith("A less B: median-unbiased estimate ") for text in found.sentences())


def test_each_of_several_pairs_ends_where_it_reached_its_own_boundary() -> None:
    found = study((6, 12, 16), maximum=16)
    end, table = found.final(), found.to_frame()
    assert end[["left", "right"]].to_numpy().tolist() == table[["left", "right"]].to_numpy().tolist()
    assert end["n"].tolist() == [16, 6, 6]
    pairs = {look.n: {pair[:2]: pair[2:] for pair in look.pairs} for look in found.looks}
    critical = boundaries((6, 12, 16), 16, 0.05 / 3)[0]
    for row in end.to_dict("records"):
        sizes = [n for n in (6, 12, 16) if n <= row["n"]]
        before = critical_scores(np.array(sizes) / 16, 0.05 / 3)[:-1].tolist()
        test = pairs[row["n"]][row["left"], row["right"]]
        wanted = estimate_at_end(*test[:3], [n / 16 for n in sizes], before, 0.05 / 3)
        np.testing.assert_allclose([row["estimate"], row["ci_low"], row["ci_high"]], wanted, rtol=1e-9)
        reached = [stats.norm.isf(0.5 * pairs[n][row["left"], row["right"]][3]) for n in sizes]
        assert (np.array(reached[:-1]) < critical[: len(sizes) - 1]).all()
        assert row["n"] == 16 or reached[-1] >= critical[len(sizes) - 1]


def test_a_pair_whose_algorithm_left_out_a_look_ends_at_the_look_that_tested_it() -> None:
    same = [runs_of_scores(scores(n) - SHIFT[:, None], seed_shared=False) for n in (8, 16, 24)]
    table = same[1].to_frame()
    left_out = table["algorithm"].eq("A") & ~table["benchmark"].isin(same[0].levels("benchmark"))
    without = lt.Runs(table[~left_out], **same[1].roles())
    found = None
    for at in (same[0], without, same[2]):
        found = lt.monitor(at, maximum=24, looks=8, earlier=found)
    assert found is not None
    end, table, level = found.final(), found.to_frame(), 0.05 / 3
    assert end["n"].tolist() == table["n"].tolist() == [24, 24, 24]
    before = critical_scores([1 / 3, 2 / 3, 1.0], level)
    for row, test, stages in zip(end.to_dict("records"), table.to_dict("records"), ((0,), (0,), (0, 1)), strict=True):
        wanted = estimate_at_end(
            test["estimate"], test["se"], test["df"], [(i + 1) / 3 for i in (*stages, 2)], before[[*stages]], level
        )
        np.testing.assert_allclose([row["estimate"], row["ci_low"], row["ci_high"]], wanted, rtol=1e-12)


def test_algorithms_that_are_numbers_are_named_by_numbers() -> None:
    table = runs(8).to_frame()
    table["algorithm"] = table["algorithm"].map({"A": 1, "B": 2, "C": 10})
    found = lt.monitor(lt.Runs(table, **runs(8).roles()), maximum=20, control=2)
    assert found.to_frame()[["left", "right"]].to_numpy().tolist() == [["1", "2"], ["2", "10"]]
    assert found.next(costs={10: 3.0}).to_frame()["cost"].tolist()[:2] == found.next().to_frame()["cost"].tolist()[:2]


def test_seeds_are_added_on_fixed_benchmarks() -> None:
    x = np.random.default_rng(4).normal(size=(3, 2, 9)) + SHIFT[:2, None]
    first = lt.monitor(runs_of_scores(x[:, :, :5]), unit="seed", maximum=9)
    found = lt.monitor(runs_of_scores(x), unit="seed", maximum=9, earlier=first)
    means = x.mean(axis=0)
    assert found.to_frame()["p_look"][0] == pytest.approx(stats.ttest_rel(*means).pvalue, rel=1e-9)
    assert found.sentences()[-1] == "The claim is about these benchmarks: further seeds say nothing about others."
    t = stats.ttest_rel(*means).statistic
    at_any_time = lt.monitor(runs_of_scores(x), unit="seed", method="evalue").to_frame()["p_repeated"][0]
    assert at_any_time == pytest.approx(min(1.0, np.exp(-log_evalue(t, 9, 1.0))), rel=1e-9)
    with pytest.raises(ArgumentError, match=r"benchmarks was 0, 1, 2, and is 0, 1 now"):
        lt.monitor(runs_of_scores(x[:2]), unit="seed", maximum=9, earlier=first)


def lucky(n: int, k: int, seeds: int, rng: int) -> np.ndarray:
    """Scores with luck that runs of an algorithm with one seed share over all benchmarks, and that all runs share."""
    draw = np.random.default_rng(rng)
    own, luck = draw.normal(size=(n, k, 1)), draw.normal(size=(1, k, seeds))
    everywhere, there = draw.normal(size=(1, 1, seeds)), draw.normal(size=(n, 1, seeds))
    return np.asarray(own + 0.5 * draw.normal(size=(n, k, seeds)) + luck + everywhere + there)


def mean_squares(x: np.ndarray) -> tuple[float, float, int]:
    """Of seed:algorithm and of the rest, in a complete table; the degrees of freedom of the first."""
    n, k, seeds = x.shape
    off = lambda z: z - z.mean(-1, keepdims=True) - z.mean(-2, keepdims=True) + z.mean((-2, -1), keepdims=True)  # noqa: E731
    of_seeds, every, df = n * np.square(off(x.mean(axis=0))).sum(), np.square(off(x)).sum(), (k - 1) * (seeds - 1)
    return of_seeds / df, (every - of_seeds) / ((n - 1) * df), df


def test_luck_that_seeds_share_over_benchmarks_is_in_the_errors() -> None:
    """Sum of two mean squares: the scatter of differences over benchmarks, and what a seed does everywhere."""
    n, seeds = 10, 6
    x = lucky(n, 2, seeds, rng=5)
    of_seeds, rest, df = mean_squares(x)
    own = np.diff(x.mean(axis=2), axis=1).var(ddof=1) / n
    luck = 2.0 * (of_seeds - rest) / n / seeds
    df_luck = (of_seeds - rest) ** 2 / (of_seeds**2 / df + rest**2 / ((n - 1) * df))
    found = lt.monitor(runs_of_scores(x), maximum=20)
    pair = found.to_frame().iloc[0]
    assert pair["se"] == pytest.approx(np.sqrt(own + luck), rel=1e-9)
    wanted = (own + luck) ** 2 / (own**2 / (n - 1) + luck**2 / df_luck)
    assert pair["df"] == pytest.approx(wanted, rel=1e-9)
    assert pair["p_look"] == pytest.approx(2.0 * stats.t.sf(abs(pair["estimate"]) / pair["se"], wanted), rel=1e-9)
    assert found.looks[-1].shared == pytest.approx(luck / (own + luck), rel=1e-9)
    assert found.notes[0].startswith("Runs with the same seed share an effect across benchmarks (F(5, 45) = ")
    assert "of the error variance, which further benchmarks do not average out" in found.notes[0]
    alone = lt.monitor(runs_of_scores(x, seed_shared=False), maximum=20)
    assert alone.to_frame()["se"][0] == pytest.approx(np.sqrt(own), rel=1e-9)
    assert len(alone.notes) == 2  # the first look, at a number not planned
    at_any_time = lt.monitor(runs_of_scores(x), method="evalue").to_frame().iloc[0]
    ratio = stats.t.isf(0.5 * pair["p_look"], n - 1)
    assert at_any_time["p_repeated"] == pytest.approx(min(1.0, np.exp(-log_evalue(ratio, n, 1.0))), rel=1e-8)


@pytest.mark.parametrize(("kept", "rtol"), [(1.0, 1e-4), (0.95, 0.1)], ids=["complete", "runs missing"])
def test_errors_with_shared_luck_are_those_of_the_recommended_model(kept: float, rtol: float) -> None:
    x = lucky(10, 4, 8, rng=3)
    table = runs_of_scores(x, kept=np.random.default_rng(1).random(x.shape) < kept)
    model = lt.recommend(table)
    assert "(1 | seed:algorithm)" in model.formula
    wanted = model.spec.fit(table).emmeans("algorithm", vcov="moderated").pairs().to_frame()
    np.testing.assert_allclose(lt.monitor(table, maximum=20).to_frame()["se"], wanted["se"], rtol=rtol)


def test_more_benchmarks_promise_little_where_seeds_share_luck() -> None:
    x = lucky(10, 3, 6, rng=4)
    shared, new = (lt.monitor(runs_of_scores(x, seed_shared=is_shared), maximum=40) for is_shared in (True, False))
    rho = shared.looks[-1].shared
    assert 0.2 < rho < 1.0
    np.testing.assert_allclose(shared.looks[-1].information(40), 1.0 / (0.25 * (1.0 - rho) + rho), rtol=1e-12)
    assert new.looks[-1].information(40) == 4.0
    assert shared.to_frame()["predicted_power"].max() < new.to_frame()["predicted_power"].max()


def test_luck_that_no_test_shows_is_in_the_errors_as_well() -> None:
    x = scores(12, seeds=6, rng=2)
    of_seeds, rest, df = mean_squares(x)
    assert 1.0 < of_seeds / rest < stats.f.isf(0.2, df, 11 * df)
    shared, new = (lt.monitor(runs_of_scores(x, seed_shared=is_shared), maximum=20) for is_shared in (True, False))
    added = shared.to_frame()["se"] ** 2 - new.to_frame()["se"] ** 2
    np.testing.assert_allclose(added, 2.0 * (of_seeds - rest) / 12 / 6, rtol=1e-6)
    assert not any("share an effect" in note for note in shared.notes)


def test_luck_that_few_seeds_may_hide_is_said() -> None:
    hidden = (
        "The claim is about benchmarks like these, run with these seeds: an effect that runs with the same seed "
        "share across benchmarks may go unseen "
    )
    two = lt.monitor(runs_of_scores(scores(12, k=2)), maximum=20)
    assert two.sentences()[-1] == f"{hidden}(2 seeds of 2 algorithms)."
    one = lt.monitor(runs_of_scores(scores(12)[:, :, :1]), maximum=20)
    assert one.sentences()[-1].startswith(f"{hidden}(there is one seed only, ")
    same = np.repeat(scores(12)[:, :, :1], 3, axis=2)  # a seed changes nothing
    for table in (runs(12, k=2), runs_of_scores(scores(12, seeds=4)), runs_of_scores(same)):
        assert lt.monitor(table, maximum=20).sentences()[-1].endswith("of which they are taken for a sample.")


def test_a_plan_gives_the_maximum_and_the_looks() -> None:
    plan = lt.plan({"task": 1.0, "item": 2.0}, costs={"task": 9.0, "item": 1.0}, target=0.25)
    found = lt.monitor(runs(8), plan=plan)
    assert found.schedule.maximum == plan.best["task"]
    assert found.schedule.planned == (7, 14, 21, 27)
    assert lt.monitor(runs(8), plan=plan, looks=10).schedule.planned[0] == 10
    seeds = lt.plan({"data": 0.9, "seed": 1.3}, costs={"data": 9.0, "seed": 1.0}, budget=90)
    x = np.random.default_rng(4).normal(size=(3, 2, 2))
    assert lt.monitor(runs_of_scores(x), plan=seeds, unit="seed").schedule.maximum == seeds.best["seed"]
    for words, options in (
        (r"plan has no number of benchmarks: it is of data and seed\. Give maximum=", {"plan": seeds}),
        (r"plan must be the result of lmemtest\.plan, and maximum left out", {"plan": plan, "maximum": 30}),
        (r"plan must be the result of lmemtest\.plan, .* got 30", {"plan": 30}),
    ):
        refuses(ArgumentError, words, lt.monitor, runs(8), **options)


# ---------------------------------------------------------------------- a race


def test_algorithms_that_cannot_change_the_answer_need_no_runs() -> None:
    first = lt.monitor(runs(10), maximum=20, looks=5, goal="best")
    needed = first.next()
    assert needed.to_frame().set_index("algorithm")["run"].to_dict() == {"A": True, "B": True, "C": False}
    assert needed.sentences() == ("Run A and B on 5 further benchmarks.", "C cannot change the answer any more.")
    table = runs(15).to_frame()
    raced = table[(table["algorithm"] != "C") | (table["benchmark"].astype(int) < 10)]
    roles = {"score": "score", "direction": "minimize", "algorithm": "algorithm", "benchmark": "benchmark"}
    later = lt.monitor(lt.Runs(raced, **roles, seed="seed"), maximum=20, looks=5, goal="best", earlier=first)
    assert later.to_frame()["n"].tolist() == [15, 10, 10]
    assert later.to_frame()["decided"].tolist() == [False, True, True]
    assert any("C did not run on all benchmarks" in note for note in later.notes)
    refuses(ArgumentError, r"21 benchmarks are more than the planned maximum of 20", later.next, 6)


def test_nothing_is_to_run_at_the_end_and_without_planned_looks_a_number_is_asked_for() -> None:
    end = study((8, 16), maximum=16).next()
    assert end.sentences() == ("No further runs.",)
    assert end.to_frame()["n_new"].tolist() == [0, 0, 0]
    refuses(ArgumentError, r"n must be a whole number of at least 1, got None", study((8,), method="evalue").next)
    assert study((8,), method="evalue").next(4).n == 4


def test_what_tells_most_for_its_cost_is_by_the_chance_to_be_decided_at_the_next_look() -> None:
    x = np.random.default_rng(8).normal(size=(10, 4, 1)) + np.array([0.0, 0.1, 0.6, 0.7])[:, None]
    found = lt.monitor(runs_of_scores(x), maximum=30, looks=10)
    assert found.to_frame()["decided"].sum() == 0
    table = found.next(costs={"A": 4.0}).to_frame().set_index("algorithm")
    last = critical_scores([1 / 3, 2 / 3], 0.05 / 6)[-1]
    pairs = found.to_frame().set_index(["left", "right"])["p_look"]
    z = stats.norm.isf(0.5 * pairs)
    chance = pd.Series(stats.norm.sf(last - z * np.sqrt(2.0)) + stats.norm.cdf(-last - z * np.sqrt(2.0)), pairs.index)
    for name in "ABCD":
        own = [name in pair for pair in pairs.index]
        assert table["expected"][name] == pytest.approx(chance[own].sum(), rel=1e-9)
    assert table["cost"].tolist() == [40.0, 10.0, 10.0, 10.0]
    first = (table["expected"] / table["cost"]).idxmax()
    assert found.next(costs={"A": 4.0}).sentences()[-1].startswith(f"{first} is the most informative for its cost: ")
    for costs, words in (
        ({"Z": 1.0}, r"costs are by algorithm \(A, B, C, D\), got 'Z'"),
        (0, r"costs must be a finite number above 0, got 0"),
        ({"A": "x"}, r"costs must be a finite number above 0, got 'x': of A\."),
    ):
        refuses(ArgumentError, words, found.next, costs=costs)


def test_the_numbers_of_seeds_are_those_of_the_least_variance_for_the_cost() -> None:
    draw = np.random.default_rng(2)
    noise = np.array([4.0, 1.0, 1.0])[:, None]  # of a run: the first algorithm varies from run to run
    x = draw.normal(size=(12, 3, 1)) + noise * draw.normal(size=(12, 3, 4))
    found = lt.monitor(runs_of_scores(x, seed_shared=False), maximum=24, looks=12)
    table = found.next(costs={"B": 8.0}, unit_cost=40.0).to_frame().set_index("algorithm")
    assert table["run"].all()
    spread = found.looks[-1].spread
    assert [spread[name][1] for name in "ABC"] == [4.0, 4.0, 4.0]
    of_run = np.array([spread[name][0] for name in "ABC"])
    rest = x - x.mean(axis=2, keepdims=True)
    rest -= rest.mean(axis=1, keepdims=True)
    np.testing.assert_allclose(of_run, 1.5 * (rest**2).sum(axis=(0, 2)) / (12 * 3), rtol=1e-12)
    of_unit = (found.to_frame()["se"] ** 2 * 12).mean() / 2.0 * 3.0
    between, cost = of_unit - (of_run / 4.0).sum(), np.array([1.0, 8.0, 1.0]) / 4.0

    def variance_times_cost(logs: np.ndarray) -> float:
        return float((between + (of_run / np.exp(logs)).sum()) * (40.0 + cost @ np.exp(logs)))

    best = np.exp(optimize.minimize(variance_times_cost, np.zeros(3), tol=1e-10).x)
    assert table["seeds"].tolist() == np.round(best).astype(int).tolist()
    assert table["seeds"]["A"] > table["seeds"]["C"] > table["seeds"]["B"]
    np.testing.assert_allclose(table["cost"], 12 * cost * table["seeds"], rtol=1e-12)
    text = found.next(costs={"B": 8.0}, unit_cost=40.0).sentences()
    numbers = [f"{name} {table['seeds'][name]} seeds" for name in "ABC"]
    assert (
        f"Most informative for the cost on each further benchmark: {numbers[0]}, {numbers[1]} and {numbers[2]}." in text
    )
    more = found.next(unit_cost=1000.0).to_frame()
    assert (more["expected"] > found.next().to_frame()["expected"]).all()  # more seeds decide more
    assert found.next().to_frame()["seeds"].tolist() == [4, 4, 4]


def test_numbers_of_seeds_need_runs_that_show_what_a_seed_adds() -> None:
    single = lt.monitor(runs_of_scores(scores(8)[:, :, :1]), maximum=20, looks=10)
    assert single.next(2).to_frame()["seeds"].tolist() == [1, 1, 1]
    with pytest.raises(DesignError, match=r"unit_cost asks for numbers of seeds on benchmarks, which needs several"):
        single.next(2, unit_cost=5.0)
    for value in (0.0, -1.0, "x"):
        with pytest.raises(ArgumentError, match=r"unit_cost must be a finite number above 0"):
            study((8,), maximum=20, looks=10).next(2, unit_cost=value)  # type: ignore[arg-type]


def by_families(n: int) -> lt.Runs:
    """Three algorithms on n families of two benchmarks."""
    x, family = np.random.default_rng(1).normal(size=(2 * n, 3, 2)), np.repeat(np.arange(n), 2)
    return runs_of_scores(x, family=family[:, None, None], seed_shared=False)


def test_further_benchmarks_are_exchangeable_and_the_cheapest_come_first() -> None:
    found = lt.monitor(runs(8), maximum=20, looks=4)
    costs = {"x": 3.0, "y": 0.3, "z": 0.1 + 0.2, "w": 2.0, "v": 0.1}
    answer = found.next(3, benchmarks=costs)
    table = answer.to_frame("benchmarks")
    assert table["benchmark"].tolist() == ["v", "y", "z", "w", "x"]  # costs that differ by rounding are one
    assert table["run"].tolist() == [True, True, True, False, False]
    assert answer.sentences()[-1] == (
        "Further benchmarks are exchangeable before they are run; the cheapest are v, y, z. If these may differ from "
        "the others, draw at random."
    )
    alike = found.next(1, benchmarks=["y", "x"])
    assert alike.to_frame("benchmarks")["benchmark"].tolist() == ["y", "x"]
    assert alike.sentences()[-1].endswith("and cost the same: draw 1 of them at random.")
    assert "benchmarks" not in found.next().tables
    seeds = lt.monitor(runs_of_scores(scores(3, seeds=8)), unit="seed", maximum=20, looks=10)
    refuses(ArgumentError, r"benchmarks must be left out where seeds are added", seeds.next, benchmarks=["y"])
    assert (
        "A further seed has one run on each benchmark: its cost leaves nothing to choose."
        in seeds.next(unit_cost=5.0).sentences()
    )


def test_further_families_have_as_many_benchmarks_as_those_so_far() -> None:
    found = lt.monitor(by_families(6), maximum=20, looks=2)
    offered = {"p": {"a": 1.0, "b": 2.0, "c": 9.0}, "q": ["d"], "r": {"e": 0.1, "f": 1.5}}
    answer = found.next(benchmarks=offered)
    table = answer.to_frame("benchmarks")
    assert table["benchmark"].tolist() == ["e", "f", "a", "b", "d"]  # q has one, which tells less than two
    assert table["cost"].tolist() == [1.6, 1.6, 3.0, 3.0, 1.0]
    assert table["run"].tolist() == [True, True, True, True, False]
    assert answer.sentences()[0] == "Run A, B and C on 2 further families."
    assert "No pair is likely to be decided at that look." in answer.sentences()
    with pytest.raises(ArgumentError, match=r"benchmarks must map new families to their benchmarks, got \['a'\]"):
        found.next(benchmarks=["a"])
    ran = found.looks[-1].benchmarks[0]
    with pytest.raises(ArgumentError, match=rf"benchmarks must be families not yet run, for 2 at least: {ran} ran"):
        found.next(benchmarks={"p": [ran, "b"], "q": ["d"]})


def test_a_ledger_says_how_many_looks_it_holds(tmp_path: Path) -> None:
    """Lines cut off its end leave no trace in it, so that only the number tells."""
    ledger = tmp_path / "looks.jsonl"
    first, second, third = (lt.monitor(runs(n), maximum=24, looks=6, ledger=ledger) for n in (6, 12, 18))
    assert not any(note.startswith("The ledger holds") for note in first.notes)
    assert any(note.startswith("The ledger holds 1 earlier look (at 6 benchmarks).") for note in second.notes)
    assert any(note.startswith("The ledger holds 2 earlier looks (at 6, 12 benchmarks).") for note in third.notes)
    ledger.write_text("".join(ledger.read_text().splitlines(keepends=True)[:-2]))
    again = lt.monitor(runs(18), maximum=24, looks=6, ledger=ledger)
    assert any(note.startswith("The ledger holds 1 earlier look (at 6 benchmarks).") for note in again.notes)
    refuses(ArgumentError, r"got 'a{60}\.\.\.'", lt.monitor, runs(6), maximum=24, ledger="a" * 90)


@pytest.mark.parametrize(
    ("benchmarks", "words"),
    [
        ("xy", r"benchmarks must be names, each once, or map them to costs, got 'xy'"),
        ([], r"benchmarks must be names, each once, or map them to costs, got \[\]"),
        (["x", "y", "x"], r"benchmarks must be names, each once"),
        ({1: 1.0, "1": 2.0}, r"benchmarks must be names, each once"),
        (3, r"benchmarks must be names, each once, or map them to costs, got 3"),
        ({"x": -1.0, "y": 1.0}, r"benchmarks must be a finite number above 0, got -1\.0: of x"),
        (["x", 7], r"benchmarks must be benchmarks not yet run, for 2 at least: 7 ran already"),
        (["x"], r"benchmarks must be benchmarks not yet run, for 2 at least: 1 are fewer than the next 2"),
    ],
    ids=str,
)
def test_benchmarks_that_cannot_be_next_are_refused(benchmarks: Any, words: str) -> None:
    refuses(ArgumentError, words, lt.monitor(runs(8), maximum=20, looks=4).next, 2, benchmarks=benchmarks)


def test_looks_that_begin_with_too_few_families_do_not_become_looks_by_family() -> None:
    first = lt.monitor(by_families(4), maximum=20)
    assert first.schedule.unit == "benchmark"
    with pytest.raises(ArgumentError, match=r"the looks so far are by benchmark, .* Name no family, .* has 5 families"):
        lt.monitor(by_families(6), maximum=20, earlier=first)


# ---------------------------------------------------------------------- extension


def test_an_extension_has_the_conditional_error_as_its_level() -> None:
    first = study((8,), k=2, maximum=16)
    found = first.extension(runs(24, k=2)).to_frame().iloc[0]
    x = scores(24, k=2).mean(axis=2)[8:]
    assert found["p_value"] == pytest.approx(stats.ttest_rel(*x.T).pvalue, rel=1e-9)
    assert found["level"] == first.extension().to_frame()["level"][0]
    assert 0.0 < found["level"] < 0.5
    assert found["decided"] == (found["p_value"] < found["level"])


def test_no_level_is_left_where_one_more_benchmark_cannot_decide_a_pair() -> None:
    """The largest t ratio of 21 values, of which 20 have a mean of zero, is 1."""
    assert crossing(0.0, [20, 21], [1.96]) == 0.0
    alike = np.tile([[[0.0], [0.1]], [[0.1], [0.0]]], (10, 1, 1))
    found = lt.monitor(runs_of_scores(alike), maximum=21).extension()
    assert found.to_frame()["level"].tolist() == [0.0]
    assert found.sentences()[0].startswith("No level is left for further benchmarks: no look that was planned")


def test_an_extension_is_written_into_the_ledger_and_ends_the_study(tmp_path: Path) -> None:
    ledger = tmp_path / "looks.jsonl"
    lt.monitor(runs(8, k=2), maximum=16, ledger=ledger)
    found = extend(runs(24, k=2), ledger)
    whole = ledger.read_text()
    record = json.loads(whole.splitlines()[-1])["extension"]
    assert len(record["units"]) == 16
    assert record["pairs"][0]["p_value"] == found.to_frame()["p_value"][0]
    pd.testing.assert_frame_equal(extend(runs(24, k=2), ledger).to_frame(), found.to_frame())
    with pytest.raises(DesignError, match=r"the study was extended by 16 benchmarks, whose number was fixed"):
        extend(runs(30, k=2), ledger)
    with pytest.raises(DesignError, match=r"The study ended at look 1 with 8 benchmarks: extended\."):
        lt.monitor(runs(12, k=2), maximum=16, ledger=ledger)
    with pytest.raises(ArgumentError, match=r"'looks.jsonl' holds an extension, which spent what was left of alpha"):
        lt.analyze(runs(8, k=2), looked=ledger)
    assert ledger.read_text() == whole


@pytest.mark.level(3)
def test_an_extension_keeps_the_level_of_the_study() -> None:
    """Look at 6 of 12; whoever is not significant but promising goes on to 30."""
    n, false = 1000, 0
    for k in range(n):
        x = np.random.default_rng([k, 9]).normal(size=(30, 2, 1))
        first = lt.monitor(runs_of_scores(x[:6]), maximum=12, spending="pocock")
        if first.decision == "stop":
            false += 1
        elif first.to_frame()["p_look"][0] < 0.3:
            false += bool(first.extension(runs_of_scores(x)).to_frame()["decided"].any())
        else:
            false += bool(lt.monitor(runs_of_scores(x[:12]), maximum=12, spending="pocock",
                                     earlier=first).to_frame()["decided"].any())  # fmt: skip
    assert stats.binomtest(false, n, 0.05, alternative="greater").pvalue > 0.001


def test_an_extension_with_seeds_whose_luck_was_seen_is_refused() -> None:
    x = lucky(20, 3, 4, rng=6)
    first = lt.monitor(runs_of_scores(x[:8]), maximum=12)
    with pytest.raises(
        DesignError, match=r"runs with the same seed share an effect across benchmarks \(F\(.* with new seeds"
    ):
        first.extension(runs_of_scores(x))
    table = runs_of_scores(x).to_frame()
    table["seed"] += 4 * (table["benchmark"] >= 8)
    assert len(first.extension(lt.Runs(table, **runs_of_scores(x).roles())).to_frame())


def test_an_extension_is_by_runs() -> None:
    with pytest.raises(ArgumentError, match=r"runs must be Runs, got DataFrame"):
        lt.monitor(runs(8), maximum=20).extension(runs(12).to_frame())


def test_nothing_is_left_to_extend_after_the_end() -> None:
    with pytest.raises(DesignError, match=r"The study ended at look 2 with 16 benchmarks: undecided at the end"):
        study((8, 16), k=2, maximum=16).extension()
    refuses(DesignError, "e-values hold for as many units as one likes", study((8,), k=2, method="evalue").extension)


# ---------------------------------------------------------------------- the ledger


def test_a_ledger_is_the_memory_of_the_looks(tmp_path: Path) -> None:
    ledger = tmp_path / "looks.jsonl"
    for n in (6, 12):
        found = lt.monitor(runs(n), maximum=24, looks=6, ledger=ledger)
    again = lt.monitor(runs(12), maximum=24, looks=6, ledger=str(ledger))
    wanted = study((6, 12), maximum=24, looks=6)
    pd.testing.assert_frame_equal(found.to_frame(), wanted.to_frame())
    pd.testing.assert_frame_equal(again.to_frame(), wanted.to_frame())  # the same look is no further one
    lines = ledger.read_text().splitlines()
    assert len(lines) == 3
    assert [json.loads(line)["look"]["n"] for line in lines[1:]] == [6, 12]


def test_at_a_later_look_the_plan_may_be_left_out() -> None:
    first = lt.monitor(runs(6), maximum=20, looks=6)
    assert lt.monitor(runs(12), earlier=first).schedule == first.schedule
    endless = lt.monitor(runs(6), method="evalue")
    assert lt.monitor(runs(12), method="evalue", earlier=endless).schedule.maximum is None
    with pytest.raises(ArgumentError, match=r"planned was 6, 12, 18, 20, and is 5, 10, 15, 20 now"):
        lt.monitor(runs(12), looks=5, earlier=first)


def test_a_ledger_whose_last_line_lost_its_end_is_added_to_on_a_line_of_its_own(tmp_path: Path) -> None:
    ledger = tmp_path / "looks.jsonl"
    lt.monitor(runs(6), maximum=24, ledger=ledger)
    ledger.write_text(ledger.read_text().rstrip("\n"))  # as an editor saves it
    lt.monitor(runs(12), maximum=24, ledger=ledger)
    assert lt.monitor(runs(18), maximum=24, ledger=ledger).sizes == (6, 12, 18)


def test_a_ledger_that_was_rewritten_is_refused_and_stays(tmp_path: Path) -> None:
    ledger = tmp_path / "looks.jsonl"
    for n in (6, 12):
        lt.monitor(runs(n), maximum=24, ledger=ledger)
    whole = ledger.read_text()
    lines = whole.splitlines(keepends=True)
    rewritten = {
        "lines before line 3": lines[0] + lines[1].replace('"n": 6', '"n": 5') + lines[2],
        "lines before line 2": lines[0] + lines[2],
        "is not a ledger of such looks": "algorithm,loss\nA,1\n",
    }
    for words, text in rewritten.items():
        ledger.write_text(text)
        refuses(DataError, words, lt.monitor, runs(18), maximum=24, ledger=ledger)
        assert ledger.read_text() == text
    ledger.write_text(whole)
    assert lt.monitor(runs(18), maximum=24, ledger=ledger).sizes == (6, 12, 18)


def test_errors_leave_the_ledger_as_it_is(tmp_path: Path) -> None:
    ledger = tmp_path / "looks.jsonl"
    for n in (6, 12):
        lt.monitor(runs(n), maximum=16, ledger=ledger)
    whole = ledger.read_bytes()
    changed = scores(14)
    changed[3, 1] += 1.0
    other = runs_of_scores(scores(14)[2:], benchmark=np.arange(2, 14))
    calls: list[tuple[type[Exception], str, lt.Runs, dict[str, Any]]] = [
        (NestingError, r"6 benchmarks of the last look are not in these runs: 6, 7, 8, 9, 10", runs(6), {}),
        (NestingError, r"2 benchmarks of the last look are not in these runs: 0, 1", other, {}),
        (NestingError, r"the mean of B on the 12 benchmarks of the last look was", runs_of_scores(changed), {}),
        (ArgumentError, r"18 benchmarks are more than the planned maximum of 16", runs(18), {}),
        (ArgumentError, r"alpha was 0.05, and is 0.1 now", runs(14), {"alpha": 0.1}),
        (ArgumentError, r"maximum was 16, and is 30 now", runs(14), {"maximum": 30}),
        (DesignError, r"D came after the first look", runs_of_scores(np.repeat(scores(14), 2, axis=1)[:, :4]), {}),
    ]
    for error, words, table, options in calls:
        refuses(error, words, lt.monitor, table, **{"maximum": 16, "ledger": ledger, **options})
        assert ledger.read_bytes() == whole
    assert lt.monitor(runs(16), maximum=16, ledger=ledger).decision == "undecided at the end"
    with pytest.raises(DesignError, match="The study ended at look 3 with 16 benchmarks"):
        lt.monitor(runs(17), maximum=16, ledger=ledger)


def test_a_look_after_a_stop_is_refused() -> None:
    found = study((8,), maximum=20, control="C")
    assert found.decision == "stop"
    with pytest.raises(DesignError, match=r"ended at look 1 with 8 benchmarks: stop\. No level is left"):
        lt.monitor(runs(10), maximum=20, control="C", earlier=found)


@pytest.mark.level(2)
@pytest.mark.skipif(os.name != "posix", reason="signals of POSIX")
def test_a_loop_on_the_command_line_that_is_killed_while_it_writes_the_ledger(tmp_path: Path) -> None:
    """A benchmark is added at a time; the second look is killed before its line is on the disk, and made again."""
    ledger, table = tmp_path / "looks.jsonl", tmp_path / "runs.csv"
    program = textwrap.dedent(f"""
        import os, runpy, signal, sys
        sys.path[:0] = [{str(PACKAGE.parent)!r}]
        if sys.argv[1] == "killed":
            os.fsync = lambda handle: os.kill(os.getpid(), signal.SIGKILL)
        sys.argv[:2] = ["lmemtest"]
        runpy.run_module("lmemtest", run_name="__main__")
    """)
    command = ["monitor", str(table), "--yes", "--maximum", "8", "--looks", "1", "--ledger", str(ledger)]
    before = b""
    for n, how, code in ((6, "", 0), (7, "killed", -signal.SIGKILL), (7, "", 0), (8, "", 0)):
        runs(n).to_frame().rename(columns={"score": "loss"}).to_csv(table, index=False)
        answer = subprocess.run([sys.executable, "-c", program, how, *command], check=False, capture_output=True)
        assert answer.returncode == code, answer.stderr
        assert ledger.exists()
        whole = ledger.read_bytes()
        assert whole.startswith(before)
        assert (whole == before) == (how == "killed")
        before = whole
    assert [json.loads(line)["look"]["n"] for line in before.splitlines()[1:]] == [6, 7, 8]
    assert study((6, 7, 8), maximum=8, looks=1).decision == json.loads(before.splitlines()[-1])["look"]["decision"]


# ---------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("error", "words", "options"),
    [
        (ArgumentError, r"maximum must be given, the number of benchmarks at the end", {}),
        (ArgumentError, r"control must be one of the algorithms \(A, B, C\), got 'Z'", {"maximum": 20, "control": "Z"}),
        (ArgumentError, r"control asks for all comparisons with it", {"maximum": 20, "control": "A", "goal": "best"}),
        (ArgumentError, r"e-values spend none", {"method": "evalue", "spending": "pocock"}),
        (ArgumentError, r"looks must ascend, got 10, 5", {"maximum": 20, "looks": (10, 5)}),
        (ArgumentError, r"looks must be a whole number .*20", {"maximum": 20, "looks": (10, 25)}),
        (ArgumentError, r"looks=5 means every 5 up to maximum", {"method": "evalue", "looks": 5}),
        (ArgumentError, r"earlier must be the result of monitor", {"maximum": 20, "earlier": 3}),
        (ArgumentError, r"ledger must be the path of a file .jsonl or .json", {"maximum": 20, "ledger": 3}),
        (ArgumentError, r"there is no folder", {"maximum": 20, "ledger": "nowhere/looks.jsonl"}),
    ],
)
def test_arguments_that_are_refused(error: type[Exception], words: str, options: dict[str, Any]) -> None:
    refuses(error, words, lt.monitor, runs(8), **options)


@pytest.mark.parametrize("rng", range(6))
def test_differences_that_vary_by_rounding_alone_decide_nothing(rng: int) -> None:
    x = 5.0 + np.random.default_rng(rng).normal(size=20)
    for n in (10, 20):
        same = runs_of_scores(np.stack([x, x - 2.0], axis=1)[:n, :, None])
        refuses(DesignError, r"some difference is the same on every benchmark", lt.monitor, same, maximum=20)


def test_paired_t_tests_keep_their_digits_where_benchmarks_vary_much_more() -> None:
    d = np.random.default_rng(3).normal(0.5, 1.0, 12)
    size = np.linspace(1e7, 9e7, 12)
    pair = lt.monitor(runs_of_scores(np.stack([size, size + d], axis=1)[:, :, None]), maximum=12).to_frame().iloc[0]
    assert pair["se"] == pytest.approx(d.std(ddof=1) / np.sqrt(12), rel=1e-7)  # the scores have 16 digits
    assert pair["p_look"] == pytest.approx(stats.ttest_1samp(d, 0.0).pvalue, rel=1e-6)


def test_designs_that_are_refused() -> None:
    x = scores(8)
    kept = np.ones(x.shape, dtype=bool)
    kept[2, 1] = False
    refuses(DesignError, r"B lacks a score on some benchmark", lt.monitor, runs_of_scores(x, kept=kept), maximum=20)
    with pytest.raises(DesignError, match=r"need 2 benchmarks at least, and these runs have one"):
        lt.monitor(runs_of_scores(x[:1]), maximum=20)
    with pytest.raises(DesignError, match=r"looks by seed need a seed column"):
        lt.monitor(runs_of_scores(x[:, :, 0], "benchmark algorithm"), unit="seed", maximum=20)
    with pytest.raises(DesignError, match=r"the same on every benchmark"):
        lt.monitor(runs_of_scores(np.repeat(x[:, :1], 2, axis=1)), maximum=20)


# ---------------------------------------------------------------------- looks of an analysis


def test_an_analysis_at_a_planned_look_has_the_level_that_spending_gives_it() -> None:
    analysis = lt.analyze(runs(12), looks=(6, 12, 18), alpha=0.1)
    each = 2.0 * special.ndtr(-stats.studentized_range.isf(0.1, 3, np.inf) / np.sqrt(2.0))  # Tukey's, of a pair
    spent = np.sqrt(2.0) * boundaries([6, 12], 18, each)[0, 1]
    level = analysis.alpha
    assert level == pytest.approx(stats.studentized_range.sf(spent, 3, np.inf), rel=1e-6)
    assert analysis.decisions.codes.tolist() == lt.analyze(runs(12), alpha=level).decisions.codes.tolist()
    assert "alpha=0.1" in analysis.call
    assert "looks=(6, 12, 18)" in analysis.call
    text = " ".join(plain(block) for block in methods_paragraph(analysis))
    assert (
        f"This was look 2 of 3 that were planned, at 6, 12 and 18 benchmarks: {format_number(level, 3)} is the level "
        "that O'Brien-Fleming-like spending (Lan & DeMets 1983) of 10 % for the whole study gives it."
    ) in text
    alone = int((analysis.pairs.to_frame()["p_value"] < 0.1).sum())
    assert f"Of {alone} pairs that one look at 10 % would call different, {alone} are so at this level." in text
    assert lt.analyze(runs(12), looks=[12]).alpha == pytest.approx(0.05, rel=1e-6)
    means = analysis.pairs.estimates
    pairs = means.pairs(looks=(6, 12, 18), alpha=0.1)
    assert pairs.alpha == pairs.decisions().alpha == pytest.approx(level, rel=1e-12)
    assert pairs.notes[-1].startswith("Look 2 of 3 that are planned: ")
    alone = means.pairs(looks=(6, 12, 18), alpha=0.1, adjust="none").alpha
    assert alone == pytest.approx(2.0 * special.ndtr(-boundaries([6, 12], 18, 0.1)[0, 1]), rel=1e-6)


def test_planned_looks_of_an_analysis_may_spend_evenly() -> None:
    analysis = lt.analyze(runs(12), looks=(6, 12, 18), spending="pocock")
    level = level_of_pairs(12, (6, 12, 18), 0.05, 3, "pocock")
    assert analysis.alpha == pytest.approx(level, rel=1e-12)
    assert level > level_of_pairs(12, (6, 12, 18), 0.05, 3)
    assert "spending='pocock'" in analysis.call
    text = " ".join(plain(block) for block in methods_paragraph(analysis))
    assert "is the level that Pocock-like spending (Lan & DeMets 1983) of 5 % for the whole study gives it." in text
    means = analysis.pairs.estimates
    pairs = means.pairs(maximum=18, alpha=0.05, spending="pocock")
    assert pairs.alpha == pytest.approx(level_of_pairs(12, range(2, 19), 0.05, 3, "pocock"), rel=1e-12)
    assert pairs.notes[-1].endswith("is the level that Pocock-like spending of 0.05 gives it.")
    for call in (lambda: lt.analyze(runs(12), spending="pocock"), lambda: means.pairs(spending="pocock"),
                 lambda: lt.analyze(runs(12), looked=2, spending="pocock")):  # fmt: skip
        refuses(ArgumentError, r"spending is how planned looks spend alpha, and none are planned", call)


def test_looks_without_a_plan_have_shares_that_add_up_to_alpha_and_those_of_a_ledger_its_level(tmp_path: Path) -> None:
    analysis = lt.analyze(runs(12), looked=4)
    assert (analysis.alpha, analysis.look.place) == (pytest.approx(0.05 / 20), 4)
    assert analysis.decisions.codes.tolist() == lt.analyze(runs(12), alpha=0.0025).decisions.codes.tolist()
    text = " ".join(plain(block) for block in methods_paragraph(analysis))
    assert (
        "The table was looked at 4 times while it grew, without a plan. The k-th look has 1/(k (k + 1)) of 5 %, so "
        "that all looks together stay below it: 0.00250 here. Of 2 pairs that one look at 5 % would call different, 2 "
        "are so at this level."
    ) in text
    ledger = tmp_path / "looks.jsonl"
    for n in (6, 12):
        lt.monitor(runs(n), maximum=24, looks=6, ledger=ledger)
    noted = lt.analyze(runs(12), looked=ledger)
    assert noted.alpha == lt.analyze(runs(12), looks=(6, 12, 18, 24)).alpha
    assert noted.look.sizes == (6, 12, 18, 24)
    with pytest.raises(ArgumentError, match=r"must be the ledger of these runs, and 10, 11, 6, 7, 8, 9 are in only"):
        lt.analyze(runs(6), looked=str(ledger))
    with pytest.raises(
        ArgumentError, match=r"looks and maximum are planned, and looked are counted or in a ledger: give one"
    ):
        lt.analyze(runs(12), looked=2, looks=(6, 12))
    with pytest.raises(ArgumentError, match=r"looked must be a number, or the ledger of planned looks by benchmark"):
        lt.analyze(runs(12), looked=ledger, alpha=0.1)
    cut = tmp_path / "cut.jsonl"
    cut.write_text(ledger.read_text().splitlines(keepends=True)[0])
    refuses(DataError, r"cut.jsonl is not a ledger of such looks", lt.analyze, runs(12), looked=cut)
    with pytest.raises(ArgumentError, match=r"looked must be a number of looks, or the path of a file"):
        lt.analyze(runs(12), looked="abc")
    for path in ("a\0.jsonl", "a" * 300 + ".jsonl"):
        refuses(ArgumentError, r"looked must be a path that the system takes", lt.analyze, runs(12), looked=path)
    planned = lt.analyze(runs(12), looks=np.array([6, 12, 18]))
    assert planned.alpha == lt.analyze(runs(12), looks=(6, 12, 18)).alpha
    for looked in (0, True):
        refuses(ArgumentError, r"looked must be a whole number of at least 1", lt.analyze, runs(12), looked=looked)


def shared_luck(k: int) -> lt.Runs:
    """12 benchmarks, 3 algorithms and 3 seeds that may share an effect on all benchmarks."""
    rng = np.random.default_rng(k)
    luck = rng.normal(0.0, (0.0, 0.2, 0.4, 0.8)[k % 4], (1, 3, 3))
    means = np.arange(3.0)[:, None] * 0.5 * rng.choice([0, 1])
    means = means + rng.normal(size=(12, 1, 1)) + rng.normal(0.0, 0.5, (12, 3, 1))
    return runs_of_scores(means + luck + rng.normal(size=(12, 3, 3)))


def test_with_a_ledger_an_analysis_and_monitor_have_one_error_and_decide_alike(tmp_path: Path) -> None:
    """By the adjustment of `monitor`: what seeds share is in both, untested. Without it errors differ in a fifth."""
    gaps: dict[bool, list[float]] = {True: [], False: []}
    for k in range(20):
        one = shared_luck(k)
        seen = lt.monitor(one, maximum=12).to_frame()
        for hold in (True, False):
            *_, pairs = compared(one, {"alpha": 0.05, "adjust": "shaffer", "hold_seeds": hold})
            found = pairs.to_frame()
            assert found[["left", "right"]].equals(seen[["left", "right"]])
            gaps[hold].append(float(np.abs(np.log(found["se"] / seen["se"])).max()))
            if hold:
                assert (found["p_value"] < 0.05).tolist() == seen["decided"].tolist()
    assert np.median(gaps[True]) < 0.002 < 0.01 < np.quantile(gaps[False], 0.8)
    ledger = tmp_path / "looks.jsonl"
    lt.monitor(shared_luck(0), maximum=12, ledger=ledger)
    analysis = lt.analyze(shared_luck(0), looked=ledger)
    assert "C(seed) + " in analysis.formula
    assert "(1 | seed:algorithm)" in analysis.formula
    assert "the model allows for it as a precaution" in " ".join(analysis.recommendation.notes)
    assert "seed:algorithm" not in lt.analyze(shared_luck(0), looks=(6, 12)).formula


def test_the_level_of_a_ledger_is_for_its_own_study(tmp_path: Path) -> None:
    ledger = tmp_path / "looks.jsonl"
    lt.monitor(runs(12), maximum=20, ledger=ledger)
    table, roles = runs(12).to_frame(), runs(12).roles()
    one_less = lt.Runs(table[table["algorithm"] != "C"], **roles)  # its level would be that of one pair, not of three
    with pytest.raises(ArgumentError, match=r"must be the ledger of these runs, and C is in only one of the two"):
        lt.analyze(one_less, looked=ledger)
    elsewhere = lt.Runs(table.assign(benchmark="new " + table["benchmark"].astype(str)), **roles)
    with pytest.raises(ArgumentError, match=r"must be the ledger of these runs, and .* are in only one of the two"):
        lt.analyze(elsewhere, looked=ledger)


def test_with_a_maximum_alone_looks_come_when_they_like() -> None:
    """The level is that of a study with a look after every benchmark: fewer looks have less chance to err."""
    analysis = lt.analyze(runs(12), maximum=18)
    assert analysis.alpha == pytest.approx(level_of_pairs(12, range(2, 19), 0.05, 3), rel=1e-12)
    assert 0.0 < analysis.alpha < lt.analyze(runs(12), looks=(12, 18)).alpha
    assert "maximum=18" in analysis.call
    text = " ".join(plain(block) for block in methods_paragraph(analysis))
    assert (
        f"The runs may be looked at after any number of benchmarks up to 18: {format_number(analysis.alpha, 3)} is the "
        "level that O'Brien-Fleming-like spending (Lan & DeMets 1983) of 5 % for the whole study gives a look at 12."
    ) in text
    pairs = analysis.pairs.estimates.pairs(maximum=18, alpha=0.05)
    assert pairs.alpha == pytest.approx(analysis.alpha, rel=1e-12)
    assert pairs.notes[-1].startswith("A look at 12 of up to 18 levels of benchmark, after any number of them: ")
    for options, words in (
        ({"maximum": 10}, r"maximum must be the number of benchmarks at the end, .* these runs, 12: got 10"),
        ({"maximum": 2000}, r"maximum must be a whole number"),
        ({"maximum": 18, "looks": (12, 18)}, r"maximum alone plans the end, and looks come when they like: give one"),
        ({"maximum": 18, "looked": 2}, r"looks and maximum are planned, and looked are counted"),
    ):
        refuses(ArgumentError, words, lt.analyze, runs(12), **options)


def test_pairs_at_a_look_need_errors_that_count_benchmarks() -> None:
    means = lt.analyze(runs(12)).means
    with pytest.raises(ArgumentError, match=r"looks must ascend, .* have that of these means, 12: got \(6, 18\)"):
        means.pairs(looks=(6, 18))
    refuses(ArgumentError, r"at 12 of 4000 levels of benchmark nothing can be spent yet", means.pairs, looks=(12, 4000))
    refuses(ArgumentError, r"needs standard errors that count what is added", means.by_model().pairs, looks=(6, 12))


def test_looks_that_do_not_hold_the_runs_are_refused() -> None:
    for looks in ((6, 18), 6, ()):
        refuses(ArgumentError, r"looks must", lt.analyze, runs(12), looks=looks)
    refuses(ArgumentError, r"at 2 of 400 benchmarks nothing can be spent yet", lt.analyze, runs(2), looks=(2, 400))
