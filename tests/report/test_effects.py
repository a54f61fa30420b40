"""What each algorithm did on each benchmark."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from growth import calls
from pytest import approx

import lmemtest as lt
import lmemtest.report
from lmemtest.bench.benchmark.observed_advantages import expected_means, observed_advantages
from lmemtest.bench.variation.variance_shares import (
    difference_sd,
    own_difference_sd,
    share_of_benchmarks,
    variance_shares,
)
from lmemtest.report.sections import _same_decimals

Make = Callable[..., Any]
FORMULA = "loss ~ tool + (1 | task) + (1 | task:tool)"


@pytest.fixture
def effects_of(as_runs: Make) -> Make:
    def effects(frame: pd.DataFrame, formula: str = FORMULA, **roles: object) -> Any:
        runs = as_runs(frame, **roles)
        return observed_advantages(lt.fit_lmm(formula, runs), runs)

    return effects


def test_nothing_in_the_report_has_the_name_of_another_public_function() -> None:
    for found in pkgutil.iter_modules(lmemtest.report.__path__):
        module = importlib.import_module(f"lmemtest.report.{found.name}")
        for name, value in vars(module).items():
            if name in lt.__all__ and getattr(value, "__module__", None) == module.__name__:
                assert getattr(lt, name) is value, f"{module.__name__}.{name}"


def test_observed_deviations_are_those_of_the_means_of_the_runs(table: Make, effects_of: Make) -> None:
    frame = table()
    effects = effects_of(frame)
    means = frame.groupby(["task", "tool"])["loss"].mean()
    want = means - means.groupby("task").transform("mean")
    got = effects.to_frame().set_index(["benchmark", "algorithm"])
    assert got["mean"].to_numpy() == approx(means.to_numpy(), rel=1e-12)
    assert got["effect"].to_numpy() == approx(want.to_numpy(), abs=1e-12)
    assert effects.to_frame().groupby("benchmark")["effect"].sum().abs().max() < 1e-12


def test_paired_intervals_are_those_of_the_deviations_within_seeds(table: Make, effects_of: Make) -> None:
    from scipy.stats import t

    frame = table()
    effects = effects_of(frame)
    assert (effects.replicates, effects.paired, effects.n_instances) == ("seed", 8, 8)
    wide = frame[frame["task"] == "task3"].pivot(index="seed", columns="tool", values="loss")
    deviations = wide.sub(wide.mean(axis=1), axis=0)["B"]
    row = effects.to_frame().query("benchmark == 'task3' and algorithm == 'B'").iloc[0]
    half = t.ppf(0.975, 3) * deviations.std(ddof=1) / 2.0
    assert row["ci_high"] - row["ci_low"] == approx(2 * half, rel=1e-9)


def test_two_unpaired_algorithms_get_welch_intervals(table: Make, effects_of: Make) -> None:
    from scipy.stats import ttest_ind

    frame = table(("A", "B"))
    frame.loc[frame["tool"] == "B", "seed"] += 100
    effects = effects_of(frame)
    assert effects.paired == 0
    here = frame[frame["task"] == "task1"]
    test = ttest_ind(*(here[here["tool"] == name]["loss"] for name in "AB"), equal_var=False)
    row = effects.to_frame().query("benchmark == 'task1' and algorithm == 'A'").iloc[0]
    assert row["effect"] / row["se"] == approx(test.statistic, rel=1e-9)  # the deviation is half of the difference
    assert row["df"] == approx(test.df, rel=1e-9)


@pytest.mark.parametrize("paired", [True, False])
def test_errors_of_three_algorithms_are_those_of_each_benchmark_by_itself(paired, table, effects_of):
    frame = table()
    if not paired:
        frame = frame.sample(frac=0.85, random_state=3)  # other seeds are missing for each algorithm
    effects = effects_of(frame).to_frame().set_index(["benchmark", "algorithm"])
    for task, here in frame.groupby("task"):
        wide = here.pivot(index="seed", columns="tool", values="loss")
        k = wide.shape[1]
        mean = wide.mean()
        got = effects.loc[task]
        assert got["effect"].to_numpy() == approx((mean - mean.mean()).to_numpy(), abs=1e-12)
        if wide.notna().all(axis=None):
            se, df = wide.sub(wide.mean(axis=1), axis=0).sem(), pd.Series(len(wide) - 1.0, wide.columns)
        else:
            weights = np.eye(k) - 1.0 / k
            parts = weights**2 * (wide.var() / wide.count()).to_numpy()
            se = np.sqrt(parts.sum(axis=1))
            df = parts.sum(axis=1) ** 2 / (parts**2 / (wide.count().to_numpy() - 1)).sum(axis=1)
        assert got["se"].to_numpy() == approx(np.asarray(se), rel=1e-10, nan_ok=True)
        assert got["df"].to_numpy() == approx(np.asarray(df), rel=1e-10, nan_ok=True)


@pytest.mark.parametrize("formula", [FORMULA, "loss ~ tool + (1 | task)"])
def test_the_work_does_not_grow_with_the_number_of_benchmarks(formula: str, table: Make, as_runs: Make) -> None:
    def work(tasks: int) -> int:
        runs = as_runs(table(benchmarks=[f"task{i}" for i in range(tasks)], seeds=2))
        fit = lt.fit_lmm(formula, runs)
        observed_advantages(fit, runs)  # what is computed once is there
        return calls(lambda: observed_advantages(fit, runs), in_c=False)

    assert work(110) - work(10) < 100 * 30  # levels are put into words; a loop costs a thousand calls for each


def test_equal_scores_are_ties_whatever_the_order_of_summation(effects_of: Make) -> None:
    scores = {"A": [0.1, 0.2, 0.3, 0.4], "B": [0.4, 0.3, 0.2, 0.1], "C": [0.3, 0.1, 0.4, 0.2]}
    rows = [(tool, f"task{i}", s, v) for tool, vs in scores.items() for i in range(3) for s, v in enumerate(vs)]
    effects = effects_of(pd.DataFrame(rows, columns=["tool", "task", "seed", "loss"]), "loss ~ tool + (1 | task)")
    assert effects.wins == {"A": 3, "B": 3, "C": 3}
    assert effects.to_frame()["effect"].eq(0.0).all()
    constant = pd.DataFrame(rows, columns=["tool", "task", "seed", "loss"]).assign(loss=[0.1, 0.7] * 18)
    constant["loss"] = constant["tool"].map({"A": 0.1, "B": 0.1, "C": 0.7}) + constant["seed"] * 0.1
    effects = effects_of(constant, "loss ~ tool + (1 | task)")
    assert effects.to_frame()["se"].eq(0.0).all()
    assert effects.clear == 9


def test_a_run_counts_once_however_many_budgets_it_has(table: Make, effects_of: Make) -> None:
    frame = table()
    curves = pd.concat([frame.assign(budget=b, loss=frame["loss"] + b) for b in (-1, 0, 1)])
    one = effects_of(frame).to_frame()
    three = effects_of(curves, FORMULA + " + (1 | task:tool:seed)", budget="budget").to_frame()
    columns = ["n_runs", "mean", "effect", "se", "df"]
    pd.testing.assert_frame_equal(one[columns], three[columns], rtol=1e-9)


def test_rows_are_replicates_where_there_are_no_seeds(table: Make, effects_of: Make) -> None:
    frame = table()
    effects = effects_of(frame.drop(columns="seed"), seed=None)
    assert effects.replicates == "row"
    assert effects.to_frame()["n_runs"].eq(4).all()
    assert effects.to_frame()["se"].gt(0).all()


def test_single_rows_have_no_intervals_and_a_note_says_so(table: Make, effects_of: Make) -> None:
    effects = effects_of(table(seeds=1).drop(columns="seed"), "loss ~ tool + (1 | task)", seed=None)
    assert effects.replicates is None
    assert effects.to_frame()["ci_low"].isna().all()
    assert effects.notes[0] == "Nothing is repeated within a benchmark, so the observed effects have no intervals."


def test_shrunken_effects_lie_between_the_average_and_the_observed_ones(table: Make, effects_of: Make) -> None:
    frame = table(spread=0.8)
    effects = effects_of(frame).to_frame()
    average = effects.groupby("algorithm")["effect"].transform("mean")
    pull = (effects["shrunken"] - average) / (effects["effect"] - average)
    assert pull.between(0.0, 1.0).all()
    assert np.ptp(pull.to_numpy()) < 1e-6  # balanced: one factor of shrinkage


def test_expected_means_are_the_predictions_of_the_fit(table: Make, as_runs: Make) -> None:
    runs = as_runs(table())
    fit = lt.fit_lmm(FORMULA, runs)
    grid = pd.DataFrame({"tool": ["A", "B", "C"], "task": "task5"})
    expected = expected_means(fit, grid, np.zeros(3, dtype=int), runs)
    assert expected == approx(fit.predict(grid), rel=1e-10)


def test_missing_algorithms_leave_no_row_and_a_note(table: Make, effects_of: Make) -> None:
    frame = table()
    effects = effects_of(frame[~((frame["tool"] == "C") & (frame["task"] == "task0"))])
    assert len(effects.to_frame()) == 23
    assert "On 1 of 8 benchmarks some algorithm is missing" in effects.notes[0]


def test_wins_follow_the_direction_and_metafeatures_are_told_apart(table: Make, effects_of: Make) -> None:
    low, high = (effects_of(table(spread=0.05), direction=d) for d in ("minimize", "maximize"))
    assert low.wins == {"A": 8, "B": 0, "C": 0}
    assert high.wins == {"A": 0, "B": 0, "C": 8}
    frame = pd.concat(
        [table(spread=0.05).assign(prior="good"), table(("C", "B", "A"), spread=0.05).assign(prior="bad")]
    )
    formula = "loss ~ tool + (1 | task:prior) + (1 | task:prior:tool)"
    both = effects_of(frame, formula, metafeatures=("prior",))
    assert both.wins_by == {"prior": {"bad": {"A": 0, "B": 0, "C": 8}, "good": {"A": 8, "B": 0, "C": 0}}}


def test_runs_without_a_benchmark_have_no_effects(table: Make, effects_of: Make) -> None:
    assert effects_of(table(), "loss ~ tool + (1 | seed)", benchmark=None) is None


def test_shares_of_variance_add_up_and_the_residual_is_last(table: Make, as_runs: Make) -> None:
    runs = as_runs(table())
    fit = lt.fit_lmm("loss ~ tool + (1 | task) + (1 | task:tool) + (1 | task:seed)", runs)
    parts = list(variance_shares(fit, runs).itertuples())
    assert [part.kind for part in parts] == ["benchmark", "interaction", "seed", "residual"]
    assert sum(part.share for part in parts) == approx(1.0)
    assert parts[-1].variance == approx(fit.scale)
    assert parts[0].variance == approx(fit.varcorr["variance"].iloc[0])


def test_slopes_and_interactions_give_the_same_spread_of_differences_in_kind(table: Make, as_runs: Make) -> None:
    runs = as_runs(table(("A", "B")))
    interaction = lt.fit_lmm("loss ~ tool + (1 | task) + (1 | task:tool)", runs)
    component = variance_shares(interaction, runs)["variance"][1]
    assert difference_sd(interaction, runs, "A", "B") == approx(np.sqrt(2 * component))
    slopes = lt.fit_lmm("loss ~ tool + (1 + tool | task)", runs)
    assert difference_sd(slopes, runs, "A", "B") == approx(np.sqrt(slopes.covariances[0][1, 1]))
    assert np.isnan(difference_sd(lt.fit_lmm("loss ~ tool + (1 | task)", runs), runs, "A", "B"))


def test_a_pair_of_ordinary_algorithms_has_a_spread_of_its_own_beside_an_erratic_one(as_runs: Make) -> None:
    """Advantages of sds 0.5, 0.5, 0.5 and 4: A leads B by 0.7 on average, and so on 84 % of the benchmarks."""
    rng = np.random.default_rng(4)
    grid = pd.MultiIndex.from_product([range(40), range(4), range(4)], names=["task", "tool", "seed"])
    frame = grid.to_frame(index=False)
    shares, common = [], []
    for _ in range(20):
        advantage = np.array([0.5, 0.5, 0.5, 4.0]) * rng.normal(size=(40, 4)) + np.array([0.0, 0.7, 1.5, 3.0])
        loss = advantage[frame["task"], frame["tool"]] + 0.3 * rng.normal(size=len(frame))
        runs = as_runs(frame.assign(loss=loss, tool=frame["tool"].map("ABCD".__getitem__), task=frame["task"].map(str)))
        fit = lt.fit_lmm(FORMULA, runs)
        shares.append(share_of_benchmarks(-0.7, own_difference_sd(fit, runs, "A", "B")))
        common.append(share_of_benchmarks(-0.7, difference_sd(fit, runs, "A", "B")))
    assert np.mean(shares) == approx(0.839, abs=0.02)  # 3 standard errors: 40 benchmarks know the sd to 11 %
    assert np.mean(common) < 0.65


def test_the_share_of_benchmarks_is_a_normal_probability() -> None:
    assert share_of_benchmarks(0.0, 2.0) == 0.5
    assert share_of_benchmarks(-1.959963984540054, 1.0) == approx(0.975)
    assert (share_of_benchmarks(-1.0, 0.0), share_of_benchmarks(1.0, 0.0)) == (1.0, 0.0)


def test_single_scores_hold_variation_between_runs_and_advantages_alike(table: Make, as_runs: Make) -> None:
    runs = as_runs(table(seeds=1).drop(columns="seed"), seed=None)
    parts = variance_shares(lt.fit_lmm("loss ~ tool + (1 | task)", runs), runs)
    assert parts["meaning"].iloc[-1] == "residual: variation between runs, advantages that change between benchmarks"


def test_right_and_wrong_have_no_decimals_in_the_table_of_means() -> None:
    rows = [[0.0, 1.0, 1.0], [0.0, 0.0, 0.0], [1.0, 1.0, 1.0]]
    assert [_same_decimals(np.array(row)) for row in rows] == [["0", "1", "1"], ["0", "0", "0"], ["1", "1", "1"]]


def test_effects_at_the_levels_of_a_metafeature_are_not_left_to_the_residual() -> None:
    runs = lt.datasets.load_hpo_runs().filter(budget=[4, 8])
    model = lt.recommend(runs)
    fit = lt.fit_lmm(model.formula, model.runs)
    found = {c.kind: c.meaning for c in variance_shares(fit, model.runs).itertuples()}
    assert (
        found["interaction"]
        == "advantages of algorithms that change from benchmark to benchmark, separately for each prior"
    )
    assert "instances" not in found["residual"]
