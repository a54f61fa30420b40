"""Comparisons on scores relative to a baseline: its noise counts, whatever the model of the benchmarks."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import pytest
from pytest import approx
from study import as_runs

import lmemtest as lt

runs_of = partial(as_runs, seed_shared=False)


def runs(tools="RXYZ", tasks=8, seeds=3, sigma=0.1):
    rng = np.random.default_rng(1)
    names = [[f"t{i}" for i in range(tasks)], list(tools), range(seeds)]
    frame = pd.MultiIndex.from_product(names, names=["task", "tool", "rep"]).to_frame(index=False)
    level = np.repeat(rng.normal(0, 1, tasks), len(tools) * seeds)
    own = np.repeat(rng.normal(0, 0.1, tasks * len(tools)), seeds)
    loss = np.exp(level + own + rng.normal(0, sigma, len(frame)))
    return runs_of(frame.assign(loss=loss), seed="rep")


def test_a_mean_improvement_has_the_standard_error_of_the_difference_from_the_baseline():
    scaled = runs().normalize("baseline", reference="R")
    for fit in (
        lt.fit_lmm(lt.recommend(scaled).formula, scaled),
        lt.fit_lmm("loss_baseline ~ tool + (1 | task) + (1 | task:tool)", scaled),
    ):
        for vcov in ("model", "moderated"):
            means = fit.emmeans("tool", vcov=vcov)
            table = means.to_frame().set_index("tool")
            gaps = means.pairs(adjust="none").to_frame().set_index(["right", "left"])
            assert table.loc["R", ["emmean", "se", "ci_low", "ci_high"]].tolist() == [0.0, 0.0, 0.0, 0.0]
            for tool in "XYZ":
                gap = gaps.loc[(tool, "R")]
                assert table.loc[tool, "se"] == approx(gap["se"], rel=1e-6)
                assert table.loc[tool, "ci_low"] == approx(-gap["ci_high"], rel=1e-6)


def unequal(runs_of_baseline=2, seed_sd=0.0, **roles):
    """Eight tasks, X and Y with five seeds each, R with fewer of them."""
    rng = np.random.default_rng(5)
    names = [[f"t{i}" for i in range(8)], list("RXY"), range(5)]
    frame = pd.MultiIndex.from_product(names, names=["task", "tool", "rep"]).to_frame(index=False)
    own = np.repeat(rng.normal(0, 0.1, 24), 5) + rng.normal(0, seed_sd, 5)[frame["rep"]]
    frame["loss"] = np.exp(own + rng.normal(0, 0.1, len(frame)))
    kept = (frame["tool"] != "R") | (frame["rep"] < runs_of_baseline)
    return runs_of(frame[kept], seed="rep", **roles).normalize("baseline", reference="R")


def test_the_noise_of_a_mean_improvement_has_a_closed_form():
    r"""(2 tau^2 + sigma^2 (1/r + 1/m)) / B; with equal runs 2 MS / B, seeds that benchmarks share or not."""
    scaled = unequal(2)
    fit = lt.fit_lmm("loss_baseline ~ tool + C(task) + (1 | task:tool)", scaled)
    tau2, sigma2 = fit.varcorr["variance"]
    table = fit.emmeans("tool", vcov="model").to_frame().set_index("tool")
    assert table.loc["X", "se"] == approx(np.sqrt((2 * tau2 + sigma2 * (1 / 2 + 1 / 5)) / 8), rel=1e-6)
    for seed_shared, seeds in ((True, " + (1 | rep)"), (False, " + (1 | task:rep)")):
        scaled = unequal(5, 0.05, seed_shared=seed_shared)
        y = scaled.to_frame().groupby(["task", "tool"])["loss_baseline"].mean().unstack().to_numpy()
        rest = y - y.mean(axis=1, keepdims=True) - y.mean(axis=0) + y.mean()
        fit = lt.fit_lmm(f"loss_baseline ~ tool + C(task) + (1 | task:tool){seeds}", scaled)
        row = fit.emmeans("tool", vcov="model").to_frame().set_index("tool").loc["X"]
        assert row["se"] == approx(np.sqrt(2 * (rest**2).sum() / 14 / 8), rel=1e-5)
        assert row["df"] == approx(14, rel=1e-3)


def test_the_noise_is_carried_where_random_effects_of_seeds_pull_the_baseline_off_zero():
    scaled = unequal(2, 0.1, seed_shared=True)
    fit = lt.fit_lmm("loss_baseline ~ tool + C(task) + (1 | task:tool) + (1 | rep)", scaled)
    means = fit.emmeans("tool")
    table, gaps = means.to_frame().set_index("tool"), means.pairs(adjust="none").to_frame().set_index("left").loc["R"]
    raw = fit.params.iloc[0] + fit.params.iloc[3:].sum() / 8  # of R over the tasks
    assert abs(raw) > 0.01
    for tool in "XY":
        gap = gaps[gaps["right"] == tool].iloc[0]
        assert (table.loc[tool, "emmean"], table.loc[tool, "se"]) == approx((-gap["estimate"], gap["se"]), rel=1e-6)
    assert table.loc["R", "se"] == 0.0


def test_the_baseline_is_zero_where_it_was_subtracted_and_nowhere_else():
    """Within benchmarks alone it is 0 over all epochs, and something else at each."""
    rng = np.random.default_rng(2)
    names = [["t0", "t1", "t2", "t3"], list("RX"), range(2), [1, 4]]
    frame = pd.MultiIndex.from_product(names, names=["task", "tool", "rep", "epoch"]).to_frame(index=False)
    frame["loss"] = np.exp(np.repeat(rng.normal(0, 0.1, 8), 4) + rng.normal(0, 0.1, len(frame))) / frame["epoch"] ** 0.5
    measured = runs_of(frame, seed="rep", budget="epoch")
    for by, at_each in ((None, True), ("benchmark", False)):
        scaled = measured.normalize("baseline", by, reference="R")
        fit = lt.fit_lmm("loss_baseline ~ tool * C(epoch) + C(task) + (1 | task:tool)", scaled)
        for specs, zero in (("tool", True), (["tool", "epoch"], at_each)):
            means = fit.emmeans(specs, vcov="model").to_frame()
            assert ((means.loc[means["tool"] == "R", ["emmean", "se"]] == 0.0).all(axis=None)) == zero


def test_two_algorithms_are_compared_by_the_paired_t_test_of_means_of_benchmarks():
    from scipy import stats

    scaled = runs("RX").normalize("baseline", reference="R")
    means = scaled.to_frame().groupby(["task", "tool"])["loss_baseline"].mean().unstack()
    want = stats.ttest_rel(means["X"], means["R"])
    got = lt.fit_lmm(lt.recommend(scaled).formula, scaled).emmeans("tool").pairs().to_frame().iloc[0]
    assert (-got["t_ratio"], got["p_value"]) == approx((want.statistic, want.pvalue), rel=1e-6)


def test_algorithms_are_compared_within_benchmarks_while_the_baseline_takes_part():
    scaled = runs().normalize("baseline", reference="R")
    found = lt.recommend(scaled)
    assert found.formula == "loss_baseline ~ tool + task + (1 | task:tool) + (1 | task:rep)"
    first, second = found.notes
    assert first.startswith("Scores are relative to the mean of R, whose chance deviations all scores of a benchmark")
    error = 100 * scaled.scale.noise.error
    assert second == (
        f"The mean of R on a benchmark rests on 3 runs or more; its standard error is {error:.1f} % of it (root mean "
        "square over benchmarks)."
    )
    others = lt.recommend(scaled.filter(tool=["X", "Y", "Z"]))  # what they share is a variance of benchmarks then
    assert "(1 | task)" in others.formula
    assert "(1 | task)" in lt.recommend(runs().normalize("baseline", reference=0.9)).formula


def test_the_comparison_does_not_know_the_unit_of_a_benchmark():
    raw = runs()
    frame = raw.to_frame()
    unit = frame["task"].map({f"t{i}": 10.0 ** (i - 4) for i in range(8)})
    moved = lt.Runs(frame.assign(loss=unit * frame["loss"]), **raw.roles())
    tables = [
        lt.fit_lmm(lt.recommend(r).formula, r).emmeans("tool").pairs().to_frame()
        for r in (x.normalize("baseline", reference="R") for x in (raw, moved))
    ]
    for name in ("estimate", "se", "p_value"):
        np.testing.assert_allclose(tables[0][name], tables[1][name], rtol=1e-6)


@pytest.mark.level(2)
def test_a_report_says_what_scores_are_relative_to():
    text = " ".join(lt.analyze(runs().normalize("baseline", reference="R")).to_text().split())
    assert "mean scores are equal, each within task as a share of the mean of R there" in text
    assert "Means are improvements on R, whose own mean is 0 by definition" in text
    assert "its standard error is" in text
    assert "upside down" not in text
    text = " ".join(lt.analyze(runs().normalize("minmax")).to_text().split())
    assert "depend on which algorithms take part" in text
