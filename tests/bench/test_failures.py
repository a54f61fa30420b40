"""How often algorithms fail, and what the verdict owes to what a failure counts."""

from __future__ import annotations

from functools import partial
from itertools import product
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from levels import first
from numpy.testing import assert_allclose
from refusals import refuses
from scipy import stats
from study import as_runs

import lmemtest as lt
from lmemtest.bench.checks.failed_runs import failures_by_algorithm
from lmemtest.bench.failures.counts import exchanged_p_value, failure_counts, flipped_p_value, stratified_p_value
from lmemtest.core.proportions import bounded_mean_interval
from lmemtest.errors import ArgumentError, DataError, UnknownColumnError


def table(benchmarks: int = 8) -> pd.DataFrame:
    """A is better than B, B than C by a little; A fails in three of four runs on every fourth task, C never."""
    rng = np.random.default_rng(3)
    cells = list(product("ABC", range(benchmarks), range(4)))
    frame = pd.DataFrame(cells, columns=["tool", "task", "seed"])
    level = frame["tool"].map({"A": 0.0, "B": 0.2, "C": 0.5})
    frame["loss"] = frame["task"] / 4 + level + 0.1 * rng.normal(size=len(frame))
    frame["crashed"] = (frame["tool"] == "A") & (frame["task"] % 4 == 0) & (frame["seed"] > 0)
    frame.loc[(frame["tool"] == "B") & (frame["task"] == 1) & (frame["seed"] == 0), "crashed"] = True
    return frame


def failing(frame: pd.DataFrame | None = None, **roles: Any) -> lt.Runs:
    return as_runs(table() if frame is None else frame, failed="crashed", **roles)


# -------------------------------------------------------------------------------------------------------- intervals


def test_the_interval_of_zeros_and_ones_is_clopper_and_pearsons() -> None:
    for k, n in ((0, 7), (3, 7), (7, 7), (1, 40)):
        want = stats.binomtest(k, n).proportion_ci(0.9, method="exact")
        assert_allclose(bounded_mean_interval(np.repeat([1.0, 0.0], [k, n - k]), 0.9), want, atol=1e-8)


def test_the_interval_of_other_values_is_the_quantile_of_random_weights() -> None:
    x = np.array([0.0, 0.0, 0.2, 0.2, 0.6])
    weights = np.random.default_rng(1).dirichlet(np.ones(6), 200_000)
    want = np.quantile(weights @ np.append(x, 0), 0.025), np.quantile(weights @ np.append(x, 1), 0.975)
    low, high = bounded_mean_interval(x)
    assert_allclose((low, high), want, atol=4e-3)
    assert_allclose(bounded_mean_interval(3.0 - 2.0 * x, low=1.0, high=3.0), (3.0 - 2.0 * high, 3.0 - 2.0 * low))
    with pytest.raises(ArgumentError, match=r"values must be between 0 and 1, got 0.5 to 1.5"):
        bounded_mean_interval(np.array([0.5, 1.5]))


# ------------------------------------------------------------------------------------------------------------ tests


def test_one_benchmark_is_fishers_test() -> None:
    for (a, n), (b, m) in (((3, 10), (0, 8)), ((1, 5), (1, 9)), ((6, 6), (2, 7))):
        want = stats.fisher_exact([[a, n - a], [b, m - b]]).pvalue
        p = stratified_p_value(np.array([[a, b]]), np.array([[n, m]]), np.array([True, False]))
        assert p == pytest.approx(want, rel=1e-9)


def test_several_benchmarks_are_all_tables_with_their_margins() -> None:
    failed, runs = np.array([[3, 0], [1, 1], [0, 2]]), np.array([[4, 4], [3, 5], [2, 6]])
    laws = [stats.hypergeom(runs[b].sum(), failed[b].sum(), runs[b, 0]) for b in range(3)]
    chances: dict[int, float] = {}
    for split in product(range(5), repeat=3):
        chance = float(np.prod([law.pmf(k) for law, k in zip(laws, split, strict=True)]))
        chances[sum(split)] = chances.get(sum(split), 0.0) + chance
    want = sum(chance for chance in chances.values() if chance <= chances[4] * (1 + 1e-9))
    assert stratified_p_value(failed, runs, np.array([True, False])) == pytest.approx(want, rel=1e-9)


@pytest.mark.parametrize("rates", [
    [[0.4, 0.0, 0.0], [0.2, 0.2, 0.6], [1.0, 0.8, 0.0]],
    [[0.4, 0.0, np.nan], [0.2, 1 / 3, 0.5], [1.0, 2 / 7, 0.0], [np.nan, 0.5, 0.0], [0.1, 0.1, 0.1]],
])  # fmt: skip
def test_names_are_exchanged_on_whole_benchmarks(rates: list[list[float]]) -> None:
    rates_ = np.array(rates)
    own = rates_[np.isfinite(rates_[:, 0])]
    choices = [x[np.isfinite(x)] for x in own]
    sums = np.array([sum(choice) for choice in product(*choices)])
    centre = sum(x.mean() for x in choices)
    want = np.mean(np.abs(sums - centre) >= abs(own[:, 0].sum() - centre) - 1e-9)
    assert exchanged_p_value(rates_, 0) == pytest.approx(want, rel=1e-9)


def test_exchanged_names_of_two_are_flipped_signs_and_many_sums_are_normal() -> None:
    rates = np.random.default_rng(1).integers(0, 6, size=(9, 2)) / 5
    assert exchanged_p_value(rates, 0) == pytest.approx(flipped_p_value(rates[:, 0] - rates[:, 1], None), rel=1e-9)
    many = np.random.default_rng(2).integers(0, [14, 13], size=(400, 2)) / 13
    gaps = many[:, 0] - many[:, 1]
    finer = many + np.array([[1e-5, 0.0]]) * (np.arange(400)[:, None] == 0)  # too fine for all sums to be counted
    assert exchanged_p_value(finer, 0) == pytest.approx(exchanged_p_value(many, 0), rel=0.05)
    assert exchanged_p_value(many, 0) == pytest.approx(
        2 * stats.norm.sf(gaps.sum() / np.sqrt((gaps**2).sum())), rel=0.1
    )


def test_runs_that_fail_together_show_nothing_beyond_their_benchmark() -> None:
    """All five runs of A failed on one benchmark of ten: one cause is enough, and the sentence leaves room for it."""
    frame = pd.DataFrame(list(product("ABC", range(10), range(5))), columns=["tool", "task", "seed"])
    frame["crashed"] = (frame["tool"] == "A") & (frame["task"] == 3)
    found = lt.failure_rates(failing(frame.assign(loss=1.0 * frame.index)))
    assert found.p_values["run"] < 0.01
    assert found.p_values["benchmark"] == 1.0
    assert found.dependence.startswith("If runs fail independently, how often they fail depends on the algorithm")
    (check,) = lt.check(failing(frame.assign(loss=1.0 * frame.index)), rules_only=True).problems[-1:]
    assert check.message.startswith("If runs fail independently, those without a score are not spread over the")
    runs = failing(frame.assign(loss=1.0 * frame.index, space=lambda t: t["task"] % 5), family="space")
    assert lt.failure_rates(runs).p_values["family"] == 1.0


def test_checks_look_over_the_widest_population() -> None:
    """A fails on all tasks of six spaces, B and C on none; of two tasks each."""
    frame = pd.DataFrame(list(product("ABC", range(12), range(2))), columns=["tool", "task", "seed"])
    frame = frame.assign(crashed=lambda t: (t["tool"] == "A") & (t["seed"] == 0), space=lambda t: t["task"] // 2)
    frame["loss"] = 1.0 * frame.index
    for family, where in (("space", "over families"), ((), "over benchmarks")):
        (found,) = (one for one in lt.check(failing(frame, family=family), rules_only=True).findings
                    if one.kind == "failures_depend_on_algorithm")  # fmt: skip
        assert f"exact test {where}): A 12 of 24, B 0 of 24" in found.message


def test_a_seed_that_failed_on_all_benchmarks_is_a_note() -> None:
    frame = table().assign(crashed=lambda t: (t["tool"] == "A") & (t["seed"] == 2))
    (note,) = lt.failure_rates(failing(frame), rng=1).notes
    assert note.startswith("A failed with 2 as seed on all 8 benchmarks. If that has one cause, tests for further")
    assert lt.failure_rates(failing(frame, seed_shared=False), rng=1).notes == ()
    assert lt.failure_rates(failing(frame.assign(crashed=frame["tool"] == "A")), rng=1).notes == ()


def test_many_failures_are_tested_by_the_normal_law() -> None:
    failed, runs = np.array([[2300, 2200]]), np.array([[9000, 9000]])
    want = stats.fisher_exact([[2300, 6700], [2200, 6800]]).pvalue
    assert stratified_p_value(failed, runs, np.array([True, False])) == pytest.approx(want, rel=2e-3)


def test_signs_of_benchmarks_are_flipped() -> None:
    gaps = np.array([0.4, 0.2, 0.0, 0.2, -0.2])
    flips = np.array(list(product([1, -1], repeat=5))) @ gaps
    assert flipped_p_value(gaps, None) == np.mean(np.abs(flips) >= abs(gaps.sum()) - 1e-9)
    assert flipped_p_value(np.zeros(4), None) == 1.0


# ------------------------------------------------------------------------------------------------------------ rates


def test_rates_have_an_interval_for_runs_and_one_for_benchmarks() -> None:
    found = lt.failure_rates(failing(), rng=1)
    rows = found.table.set_index(["algorithm", "population"])
    assert list(dict.fromkeys(found.table["algorithm"])) == ["C", "B", "A"]
    assert rows.loc[("A", "run"), ["n_failed", "n_runs", "n_units"]].tolist() == [6, 32, 32]
    want = stats.binomtest(6, 32).proportion_ci(0.95, method="exact")
    assert_allclose(rows.loc[("A", "run"), ["ci_low", "ci_high"]].astype(float), want)
    shares = np.repeat([0.75, 0.0], [2, 6])
    ends = rows.loc[("A", "benchmark"), ["ci_low", "ci_high"]].astype(float)
    assert_allclose(ends, bounded_mean_interval(shares))
    assert_allclose(rows.loc[("C", "benchmark"), "ci_high"], 1 - 0.025 ** (1 / 8))
    p = stratified_p_value(np.array([[3, 0], [3, 0]]), np.array([[4, 4], [4, 4]]), np.array([True, False]))
    pair = found.pairs[(found.pairs["left"] == "C") & (found.pairs["right"] == "A")].set_index("population")
    assert_allclose(pair.loc["run", ["estimate", "p_raw"]].astype(float), [-6 / 32, p])
    assert pair.loc["benchmark", "p_raw"] == 0.5  # on two benchmarks
    assert found.where.to_dict("list") == {
        "benchmark": ["0", "1", "4"], "algorithm": ["A", "B", "A"], "n_failed": [3, 1, 3], "n_runs": [4, 4, 4]
    }  # fmt: skip
    said = found.sentences()
    assert said[0] == "7 of 96 runs failed: C 0 of 32, B 1 of 32 and A 6 of 32."
    assert said[1] == (
        "If runs fail independently, how often they fail depends on the algorithm on these benchmarks (p = 0.009); on "
        "further benchmarks (p = 0.333) it is not shown, as runs of one algorithm may fail together."
    )
    assert "C never failed in 32 runs: its failure rate is at most 11 % on these benchmarks and at most 37 %" in said[2]
    assert said[-1].startswith("A fails more often than C, by 19 % on these benchmarks if runs fail independently (p")


def test_with_too_few_benchmarks_for_signs_a_mixed_model_of_the_counts_is_the_next_step() -> None:
    failed = np.array([[1, 6], [2, 8], [1, 5], [3, 9], [0, 6]])
    rows = [(tool, task, run, run < failed[task, column]) for task in range(5) for column, tool in enumerate("ab")
            for run in range(20)]  # fmt: skip
    table = pd.DataFrame(rows, columns=["tool", "task", "run", "failed"]).assign(loss=1.0)
    roles = {"score": "loss", "direction": "minimize", "algorithm": "tool", "benchmark": "task", "seed": "run"}
    rates = lt.failure_rates(lt.Runs(table, failed="failed", **roles))
    of_benchmarks = rates.pairs.set_index("population").loc["benchmark"]
    assert of_benchmarks["p_raw"] == 0.0625
    (note,) = (note for note in rates.notes if "p-value below 0.0625. A mixed model" in note)
    call = "fit_glmm('n_failed ~ algorithm + (1 | benchmark) + (1 | benchmark:algorithm)', rates.to_frame('counts'), "
    assert call + "trials='n_runs')" in note
    counts = rates.to_frame("counts")
    assert counts.groupby("algorithm")["n_failed"].sum().to_dict() == {"a": 7, "b": 34}
    fit = lt.fit_glmm("n_failed ~ algorithm + (1 | benchmark) + (1 | benchmark:algorithm)", counts, trials="n_runs")
    assert fit.emmeans("algorithm").pairs().to_frame()["p_value"][0] < 0.05
    assert len(rates.to_frame("where")) == len(counts) - 1  # without failures on one benchmark
    more = table[table["task"] < 1].assign(task=7)
    six = lt.failure_rates(lt.Runs(pd.concat([table, more]), failed="failed", **roles))
    assert not any("p-value below" in note for note in six.notes)


def test_budgets_and_families_count_runs_and_families() -> None:
    frame = pd.concat([table().assign(epoch=1, crashed=False), table().assign(epoch=2)])
    failed, ran, _, _ = failure_counts(failing(frame, budget="epoch"))
    assert failed.sum() == 7
    assert ran.tolist() == [[4] * 3] * 8
    found = lt.failure_rates(failing(table().assign(space=lambda t: t["task"] % 4), family="space"), rng=1)
    rows = found.table.set_index(["algorithm", "population"])
    assert rows.loc[("A", "family"), "n_units"] == 4
    assert_allclose(rows.loc[("A", "family"), "ci_high"], bounded_mean_interval(np.array([0.75, 0, 0, 0]))[1])


def test_runs_that_have_scores_again_are_told() -> None:
    """Task 1 of B recovers; the runs of A fail from epoch 2 on."""
    first, last = (table().assign(epoch=epoch) for epoch in (1, 3))
    again = first["crashed"] & (first["tool"] == "B")
    frame = pd.concat(
        [first.assign(crashed=again), first.assign(epoch=2), last.assign(crashed=last["crashed"] & ~again)]
    )
    runs = failing(frame, budget="epoch")
    (note,) = lt.failure_rates(runs, rng=1).notes
    assert note.startswith(
        "1 of 7 failed runs have a score again at a later epoch; they count as failed. If each epoch"
    )
    advice = lt.check(runs, rules_only=True).findings[0].advice
    assert advice.endswith(" Of 7 failed runs 1 have a score again at a later epoch.")
    assert lt.failure_rates(failing(frame[frame["tool"] != "B"], budget="epoch"), rng=1).notes == ()


@pytest.mark.level(2)
def test_policies_compare_within_budgets_and_say_for_which_families() -> None:
    frame = table().assign(space=lambda t: t["task"] % 5)
    both = pd.concat([frame.assign(epoch=1, loss=lambda t: t["loss"] + np.sin(t.index)), frame.assign(epoch=2)])
    found = lt.robustness(failing(both, budget="epoch", family="space"), "failures", variants=("worst", "rank"))
    assert found.meanings["worst"] == "a failed run has the worst score of its benchmark and epoch"
    assert found.meanings["rank"].startswith("scores are ranks within the benchmark and epoch")
    assert found.notes[0].startswith("The 5 spaces are the sample: conclusions apply to new spaces.")


def test_runs_that_do_not_say_what_failed_are_refused() -> None:
    for ask in (lt.failure_rates, partial(lt.robustness, of="failures")):
        refuses(ArgumentError, r"do not say which of them failed: Runs\(..., failed='missing'\)", ask, as_runs(table()))
    refuses(DataError, "No run failed", lt.robustness, failing(table().assign(crashed=False)), "failures")


# ------------------------------------------------------------------------------------------------------ sensitivity


def test_each_policy_decides_as_the_recommended_model_of_its_runs() -> None:
    runs = failing()
    found = lt.robustness(runs, "failures", reference="C")
    assert list(found.phrases) == ["worst", "rank", "drop", "baseline C"]
    for policy, reference in (("worst", None), ("drop", None), ("baseline", "C")):
        scored = runs.score_failures(policy, reference=reference)
        pairs = lt.fit_lmm(lt.recommend(scored).formula, scored).emmeans("tool").pairs().to_frame()
        own = found.decisions[found.decisions["variant"] == (f"{policy} {reference}" if reference else policy)]
        assert_allclose(own["advantage"], -pairs["estimate"])
        assert_allclose(own["p_value"], pairs["p_value"])
        better = pd.Series(np.where(pairs["estimate"] < 0, pairs["left"], pairs["right"]))
        assert own["better"].tolist() == better.where(pairs["p_value"] < 0.05, "-").tolist()
    ranks = found.means[found.means["variant"] == "rank"].set_index("algorithm")["mean"]
    last = runs.score_failures(1e6).normalize("rank").to_frame().groupby("tool")["loss_rank"].mean()
    assert_allclose(ranks.sort_index(), last)


def test_sentences_name_the_pairs_that_depend_on_the_policy() -> None:
    found = lt.robustness(failing(), "failures", variants=("worst", "drop"))
    table = found.table.set_index(["left", "right"])
    assert table["alike"].to_dict() == {("A", "B"): False, ("A", "C"): True, ("B", "C"): True}
    first, _, best, *changes = found.sentences()
    said = "2 of 3 pairs of algorithms get the same decision under the policies worst and drop."
    assert first == f"7 of 96 runs failed (7.3 %); {said}"
    assert best == "A has the best mean under the policies worst and drop."
    assert changes[0].startswith("A is better than B under drop (p < 0.001); no difference is found under worst")
    assert len(changes) == 1
    assert found.table["drop"].tolist() == ["A", "A", "B"]


def test_what_was_done_since_is_done_under_each_policy() -> None:
    kept = {"task": list(range(4))}
    scored = failing().score_failures(3.0).filter(**kept).normalize("minmax")
    found = lt.robustness(scored, "failures")
    assert list(found.phrases) == ["score 3", "worst", "rank", "drop"]
    want = failing().score_failures("worst").filter(**kept).normalize("minmax")
    pairs = lt.fit_lmm(lt.recommend(want).formula, want).emmeans("tool").pairs().to_frame()
    own = found.decisions[found.decisions["variant"] == "worst"]
    assert_allclose(own["advantage"], -pairs["estimate"])


@pytest.mark.parametrize("how", [{"method": "log"}, {"method": "baseline", "reference": "C"}])
def test_ranks_need_no_score_that_logarithms_or_shares_refuse(how: dict[str, Any]) -> None:
    frame = table().assign(loss=lambda frame: np.exp(-frame["loss"]))
    frame.loc[95, "loss"] = 0.0 if how["method"] == "baseline" else 0.1
    runs = failing(frame, direction="maximize")
    found = lt.robustness(runs.score_failures("worst").normalize(**how), "failures")
    ranks, plain = (one.decisions.query("variant == 'rank'") for one in (found, lt.robustness(runs, "failures")))
    assert_allclose(ranks["advantage"], plain["advantage"])


def test_a_pair_that_a_policy_does_not_test_is_not_said_to_be_decided_alike_under_it() -> None:
    frame = table()
    frame["crashed"] = ((frame["tool"] == "A") & (frame["task"] > 0)) | ((frame["tool"] == "B") & (frame["task"] == 0))
    found = lt.robustness(failing(frame), "failures")
    assert found.table.set_index(["left", "right"]).loc[("A", "B"), "drop"] == "not tested"
    assert found.overview.endswith(
        "under the policies worst, rank and drop that test them (1 pair cannot be tested by all)."
    )


def test_without_benchmarks_a_failed_run_has_the_worst_score_of_the_table() -> None:
    frame = table(1).drop(columns="task")
    runs = as_runs(frame, failed="crashed")
    assert lt.robustness(runs, "failures").meanings["worst"] == "a failed run has the worst score of the table"


def test_a_policy_that_cannot_be_applied_is_a_note() -> None:
    with pytest.raises(DataError, match="All 96 runs failed, so no policy has a score to compare"):
        lt.robustness(failing(table().assign(crashed=True)), "failures")
    frame = table()
    frame.loc[frame["task"] == 0, "crashed"] = True
    found = lt.robustness(failing(frame), "failures", variants={"half": 0.5, "worst": "worst", "ten": 10})
    assert list(found.phrases) == ["half", "ten"]
    assert found.notes[0].startswith("worst could not be applied: Every run failed on 0")
    with pytest.raises(DataError, match="Fewer than two policies could be applied"):
        lt.robustness(failing(frame), "failures", variants=("worst", 10))
    with pytest.raises(ArgumentError, match="variants must be several policies, such as"):
        lt.robustness(failing(), "failures", variants="worst")
    with pytest.raises(ArgumentError, match="variants must be two or more policies of different names, got worst"):
        lt.robustness(failing(), "failures", variants=["worst"])


# --------------------------------------------------------------------------------------------- checks and the report


def test_checks_say_what_failed_where() -> None:
    found = lt.check(failing(), rules_only=True).findings
    assert (found[0].severity, found[0].kind) == ("error", "failed_runs")
    assert found[0].message == "3 of 4 runs of 'A' on '0' failed."
    assert "runs.score_failures('worst')" in found[0].advice
    (related,) = (one for one in found if one.kind == "failures_depend_on_algorithm")
    assert related.severity == "warning"
    assert "A 6 of 32, B 1 of 32 and C 0 of 32 runs" in related.message
    missing = as_runs(table().assign(loss=lambda t: t["loss"].mask(t["crashed"])))
    assert {one.kind for one in lt.check(missing, rules_only=True).problems} == {
        "non_finite", "failures_depend_on_algorithm"
    }  # fmt: skip
    done = [one for one in lt.check(failing().score_failures("worst"), rules_only=True).findings if "fail" in one.kind]
    assert {one.severity for one in done} == {"note"}
    one_each = table().assign(crashed=lambda t: (t["seed"] == 0) & (t["task"] == 0))
    kinds = [one.kind for one in lt.check(failing(one_each), rules_only=True).findings]
    assert "failures_depend_on_algorithm" not in kinds


# ------------------------------------------------------------------------------------------- scores of failed runs


DUCK = duckdb.connect()
ROLES: dict[str, Any] = {
    "score": "loss", "direction": "minimize", "algorithm": "tool", "benchmark": "task", "seed": "seed"
}  # fmt: skip


def small_table() -> pd.DataFrame:
    """Two tools on two tasks with three seeds; scores 1 to 12, two of which are missing and one is infinite."""
    frame = pd.DataFrame(list(product("AB", ["t1", "t2"], range(3))), columns=["tool", "task", "seed"])
    frame["loss"] = np.arange(1.0, 13.0)
    frame["crashed"] = frame.index.isin([1, 8, 11])
    frame.loc[[1, 8], "loss"] = np.nan
    frame.loc[11, "loss"] = np.inf
    return frame


def runs_of(failed: str | None = "nonfinite", frame: Any = None, **roles: Any) -> lt.Runs:
    return lt.Runs(small_table() if frame is None else frame, failed=failed, **{**ROLES, **roles})


def scores(runs: lt.Runs) -> list[float]:
    found: list[float] = runs.to_frame().sort_values(["tool", "task", "seed"])["loss"].tolist()
    return found


# t1: A 1 2 3, B 7 8 9, of which 2 and 9 failed; t2: A 4 5 6, B 10 11 12, of which 12 failed
@pytest.mark.daily(2)
@pytest.mark.parametrize(
    ("policy", "reference", "given"),
    [
        ("worst", None, (8, 8, 11)),
        ("baseline", "A", (2, 2, 5)),
        (20, None, (20, 20, 20)),
        ({"t1": 5, "t2": 0.5}, None, (5, 5, 0.5)),
        (lambda task: {"t1": 5, "t2": 0.5}[task], None, (5, 5, 0.5)),
    ],
)
def test_a_failed_run_has_the_score_of_the_policy(policy: Any, reference: Any, given: tuple[float, ...]) -> None:
    want = np.arange(1.0, 13.0)
    want[[1, 8, 11]] = given
    polars = pl.from_pandas(small_table())
    frames = (small_table(), polars.lazy(), polars.to_arrow(), DUCK.from_arrow(polars.to_arrow()))
    for frame in frames if policy == "worst" else frames[:2]:
        for failed in ("nonfinite", "crashed"):
            runs = runs_of(failed, frame).score_failures(policy, reference=reference)
            assert scores(runs) == want.tolist()
            assert runs.failed is None
            assert (runs.failures and runs.failures.n_failed) == 3


def test_the_worst_score_is_the_lowest_of_those_to_maximize() -> None:
    assert scores(runs_of(direction="maximize").score_failures("worst"))[1] == 1
    budgets = small_table().assign(trial=[1, 2, 3] * 4, seed=0)
    worst = runs_of("crashed", budgets, budget="trial").score_failures("worst")  # by task and trial: A's 3 is left
    assert scores(worst)[8] == 3
    assert worst.notes == ("3 failed scores of 2 algorithms were given the worst score of their benchmark and trial.",)


def test_what_was_done_is_known_and_can_be_done_again() -> None:
    runs = runs_of("crashed").score_failures("worst")
    assert runs.notes == ("3 failed runs of 2 algorithms were given the worst score of their benchmark.",)
    assert runs.roles() == {**runs_of(None).roles(), "ignore": ("crashed",)}
    later = runs.filter(task=["t1"]).normalize("rank")
    assert later.failures is not None
    again = later.failures.under("baseline", "A")
    assert again.notes[-1].endswith("were given the mean score of A on their benchmark (1 of them is of A itself).")
    assert again.to_frame()["loss_rank"].tolist() == [1, 2.5, 4, 5, 6, 2.5]
    pd.testing.assert_frame_equal(later.failures.under("worst").to_frame(), later.to_frame())


def test_dropping_is_one_policy() -> None:
    runs = runs_of().score_failures("drop")
    assert scores(runs) == scores(runs_of().drop_missing()) == scores(runs_of(None).drop_missing())
    assert runs.notes[0].startswith("3 failed runs of 2 algorithms were left out")
    assert runs_of(None).drop_missing().notes[0].startswith("3 of 12 rows without a finite score were left out")
    assert runs_of("missing").score_failures("drop").n_rows == 10  # infinite scores are no failures of this kind


def test_runs_with_failures_are_not_compared() -> None:
    said = r"3 of 12 runs failed \(A 1, B 2\) and have no score.*score_failures\('worst'\).*robustness\(runs, of='fail"
    for ask in (lambda r: lt.recommend(r).fit(r), lt.analyze, lt.rank, lambda r: r.normalize("rank"),
                lambda r: lt.fit_lmm("log(loss) ~ tool + (1 | task)", r)):  # fmt: skip
        refuses(DataError, said, ask, runs_of("crashed"))
    refuses(DataError, r"Runs\(..., failed='nonfinite'\).*score_failures\('worst'\)", lt.rank, runs_of(None))
    assert "3 of 12 runs" in runs_of("crashed").summary()


def test_a_trial_that_failed_does_not_count_for_the_best_so_far() -> None:
    trials = pd.DataFrame({"tool": list("AAABBB"), "task": "t", "trial": [1, 2, 3] * 2, "loss": [0.0, 3, 2, 5, 1, 4]})
    trials["crashed"] = [1, 0, 0, 0, 1, 0]
    roles = {"score": "loss", "direction": "minimize", "algorithm": "tool", "benchmark": "task", "budget": "trial"}
    best = lt.Runs(trials, failed="crashed", **roles).best_so_far()
    assert best.failed == "missing"
    np.testing.assert_array_equal(best.to_frame()["loss_best_so_far"], [np.nan, 3, 2, 5, 5, 4])


def test_wide_tables_have_failures() -> None:
    wide = {"task": ["a", "b"], "HB": [0.1, np.nan], "RS": [0.2, 0.5]}
    runs = lt.Runs.from_wide(wide, direction="minimize", failed="missing").score_failures("worst")
    assert runs.to_frame()["score"].tolist() == [0.1, 0.5, 0.2, 0.5]
    with pytest.raises(ArgumentError, match="failed must be one of 'missing', 'nonfinite', or a word in cells of sc"):
        lt.Runs.from_wide(wide, direction="minimize", failed="task")


@pytest.mark.parametrize(
    ("failed", "words"),
    [
        ("missing", "may mean the column 'missing' or scores that are missing"),
        ("crahsed", r"failed names 'crahsed', which is neither.*Did you mean 'crashed'"),
        ("day", r"'day' has type .* Make it one, for pandas with df\['day'\] =="),
        ("status", "'status', a column of kinds of failures, but '1' is no kind"),
        ("flag", "'flag', a column of kinds of failures, but 'False' is no kind"),
        ("fails", "'fails' holds 2"),
        ("part", "'part' has 6 missing values"),
        ("seed", "failed and seed both name the column 'seed'"),
    ],
)
def test_wrong_roles_are_refused_with_a_next_step(failed: str, words: str) -> None:
    frame = small_table().assign(
        fails=2, status=["ok", "1"] * 6, flag=["False"] * 12, day=pd.Timestamp(0), missing=0, part=[None, 1.0] * 6
    )
    refuses((ArgumentError, DataError, UnknownColumnError), words, runs_of, failed, frame)


@pytest.mark.parametrize(
    ("policy", "reference", "words"),
    [
        ("wort", None, "policy must be 'worst', 'baseline', 'drop', 'retry', a number.*Did you mean 'worst'"),
        ("baseline", None, "policy='baseline' needs reference=.*Algorithms: 'A', 'B'"),
        ("worst", "A", "reference='A' is for policy='baseline', got policy='worst'"),
        ("baseline", "C", "reference='C' names no algorithm"),
        (float("nan"), None, "policy must be a finite number, got nan"),
        ({"t1": 1}, None, "policy has no value for 't2', where runs failed"),
        ({"t1": 1, "t2": 1, "t3": 1}, None, "policy names 't3', which is no value of 'task'"),
        ({}.get, None, "policy must give a finite number for each benchmark, got None for 't1'"),
    ],
)
def test_policies_that_make_no_sense_are_refused(policy: Any, reference: Any, words: str) -> None:
    refuses(ArgumentError, words, runs_of().score_failures, policy, reference=reference)


@pytest.mark.parametrize(
    ("rows", "policy", "words"),
    [
        ("task == 't1'", "worst", r"Every run failed on t1, so there is no worst score.*runs.filter"),
        ("task == 't1' and tool == 'A'", "baseline", "The reference 'A' has no score itself on t1, where runs failed"),
        ("tool == 'A'", "drop", "Every run of A failed, so 'drop' would leave the comparison without it"),
    ],
)
def test_policies_without_a_score_are_refused_with_names(rows: str, policy: str, words: str) -> None:
    frame = small_table()
    frame.loc[frame.query(rows).index, "loss"] = np.nan
    with pytest.raises(DataError, match=words):
        runs_of(frame=frame).score_failures(policy, reference="A" if policy == "baseline" else None)


def test_scores_are_given_once_and_to_what_is_known_to_have_failed() -> None:
    refuses(ArgumentError, "score_failures needs to know which runs failed", runs_of(None).score_failures, "worst")
    with pytest.raises(ArgumentError, match=r"These runs are without failures already: .* were left out"):
        runs_of().score_failures("drop").score_failures("worst")
    numbered = runs_of(frame=small_table().assign(task=[1, 1, 1, 2, 2, 2] * 2))
    with pytest.raises(ArgumentError, match=r"policy names '1', which is no value of 'task'\. Write 1, as in the tab"):
        numbered.score_failures({"1": 0.5})


def test_the_best_so_far_passes_over_failed_scores_and_says_so() -> None:
    table = {"tool": ["A"] * 3 + ["B"] * 3, "epoch": [1, 2, 3] * 2, "loss": [-np.inf, 0.7, 0.9, 0.5, np.nan, 0.6]}
    runs = lt.Runs(table, score="loss", direction="minimize", algorithm="tool", budget="epoch", failed="nonfinite")
    best = runs.best_so_far()
    np.testing.assert_allclose(best.to_frame()[best.score], [np.nan, 0.7, 0.7, 0.5, 0.5, 0.5])
    assert best.notes[0].startswith("2 of 6 scores failed and do not count in the best so far: the best score before")
    assert "1 of 6 scores\n" in str(best)


# ------------------------------------------------------------------------------------------------- kinds of failures


def of_kinds(as_table: Any = pd.DataFrame) -> lt.Runs:
    """The small table: a timeout and a lost job of A, a lost job of B; the others end well, in four spellings."""
    status = ["ok", "timeout", None, "SUCCESS", " infra ", ""] + ["Completed"] * 5 + ["infra"]
    frame = small_table().drop(columns="crashed").assign(status=status, loss=np.arange(1.0, 13.0))
    return runs_of("status", as_table(frame))


@pytest.mark.parametrize(
    "as_table", first([lambda frame: pl.from_pandas(frame).lazy(), pd.DataFrame, pa.Table.from_pandas])
)
def test_each_kind_of_failure_counts_what_the_policy_says(as_table: Any) -> None:
    runs = of_kinds(as_table)
    assert "3 of 12 runs: infra 2, timeout 1" in runs.summary()
    done = runs.score_failures({"infra": "retry", "timeout": "worst", "oom": 0})
    table = done.to_frame().set_index(["tool", "task", "seed"])["loss"]
    assert len(table) == 10
    assert table["A", "t1", 1] == 9.0  # the worst on t1
    assert done.notes == (
        "infra: 2 failed runs of 2 algorithms (A 1 of 6, B 1 of 6) were left out until they are run again, so what is "
        "found is provisional. timeout: 1 failed run of 1 algorithm was given the worst score of its benchmark. "
        "No run failed by 'oom'.",
    )
    assert done.failures is not None
    again = done.failures.to_repeat
    assert again[["tool", "task", "seed"]].values.tolist() == [["A", "t2", 1], ["B", "t2", 2]]
    assert lt.failure_rates(done).kinds["n_failed"].tolist() == [1, 1, 1]
    assert lt.failure_rates(done.failures.left_out).table["n_failed"].sum() == 4  # two populations


def test_one_treatment_of_every_kind_is_the_policy_of_all() -> None:
    crashed = [0, 1, 0, 0, 1, 0] + [0] * 5 + [1]
    kinds, plain = of_kinds(), runs_of("crashed", small_table().assign(crashed=crashed, loss=np.arange(1.0, 13.0)))
    for policy, of in (("worst", None), ("drop", None), (3.5, None), ("baseline", "B"), ({"t1": 1, "t2": 2}, None)):
        by_kind = kinds.score_failures(dict.fromkeys(["infra", "timeout"], policy), reference=of)
        assert_allclose(by_kind.to_frame()["loss"], plain.score_failures(policy, reference=of).to_frame()["loss"])


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ({"infra": "drop"}, "The policy must name every kind of failure in 'status', and does not name timeout 1"),
        ({"infra": "dropp", "timeout": 0}, "got 'dropp'. Did you mean 'drop'"),
        ({"infra": "drop", "timeout": 0, "oom": "x"}, "got 'x'"),
        ({"infra": "drop", "timeout": np.nan}, "policy must be a finite number"),
        ({"infra": "baseline", "timeout": 0}, "needs reference="),
    ],
)
def test_kinds_without_a_treatment_are_refused(policy: Any, words: str) -> None:
    refuses(ArgumentError, words, of_kinds().score_failures, policy)


@pytest.mark.level(2)
def test_decisions_are_compared_over_kinds_and_left_out_kinds_are_tested() -> None:
    frame = table()
    frame["status"] = np.where(frame["crashed"], np.where(frame["tool"] == "A", "infra", "timeout"), "ok")
    runs = as_runs(frame.drop(columns="crashed"), failed="status")
    refuses(DataError, r"By kind \(infra 6, timeout 1\)", lt.analyze, runs)
    scored = runs.score_failures({"infra": "drop", "timeout": "worst"})
    found = lt.robustness(scored, of="failures")
    assert list(found.phrases) == ["by kind", "worst", "rank", "drop", "drop timeout"]
    same = lt.robustness(failing(), of="failures")  # the kinds of one table, all with the worst score
    assert_allclose(found.advantage[1], same.advantage[0])
    assert [f.severity for f in failures_by_algorithm(scored, 0.9) if "left out" in f.message] == ["warning"]
    assert [f.severity for f in failures_by_algorithm(runs.score_failures("worst"), 0.9)] == ["note"]
    report = lt.analyze(runs.score_failures({"infra": "retry", "timeout": "worst"}))
    assert "Provisional: failed runs that are to be run again (6) were left out." in report.headline()
    assert "Runs to be run again" in report.to_html()
