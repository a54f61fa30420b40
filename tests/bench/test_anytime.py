"""Curves over the budget: closed forms of complete tables, planted differences, invariances, thin designs."""

from __future__ import annotations

import itertools
import os
import pickle
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from pytest import approx
from scipy import stats
from study import as_runs, make_table

import lmemtest as lt
from lmemtest.errors import ArgumentError, DataError
from lmemtest.lmm.formula.transforms import fit_spline
from lmemtest.lmm.means.adjust import adjust
from lmemtest.lmm.means.empirical_bayes import moderation


def anytime(runs, **options):
    result = lt.anytime(runs, **{"rng": 0, **options})
    result.curves  # what has none is refused at the first look  # noqa: B018
    return result


BUDGETS = np.array([1.0, 2, 3, 4, 6, 8, 12, 16])


def table(
    *, benchmarks=8, algorithms=3, seeds=3, conditions=None, effect=None, noise=0.2, spread=0.5, seed=5
) -> pd.DataFrame:
    """Curves with random levels and slopes over log budget; `effect` (algorithm, log budget) is added."""
    rng = np.random.default_rng(seed)
    run = "benchmark:prior:algorithm:seed" if conditions else "benchmark:algorithm:seed"
    sizes = [f"a{i}" for i in range(algorithms)], [f"t{i:02d}" for i in range(benchmarks)], seeds, BUDGETS
    options = {"priors": conditions, "sds": {"benchmark": 1.0, "benchmark:algorithm": spread, run: noise}, "rng": rng}
    t, slope = (make_table(*sizes, noise=n, **options, algorithm="algo", benchmark="task") for n in (noise, 0.0))
    x = np.log(t["budget"])
    t["loss"] += slope["loss"] * x
    return t if effect is None else t.assign(loss=t["loss"] + effect(t["algo"].str[1:].astype(int), x))


def lmemtest_spline(x, columns):
    return fit_spline(x, np.ones_like(x), n_inner=columns - 3, inner=None, degree=3, lower=None, upper=None)(x)


# ------------------------------------------------------------------ closed forms


def test_means_per_budget_are_the_paired_t_test_of_benchmark_means():
    frame = table(algorithms=2)
    result = anytime(as_runs(frame), columns="budgets")
    means = frame.groupby(["algo", "budget", "task"])["loss"].mean()
    for row in result.differences.to_dict("records"):
        witness = stats.ttest_rel(means["a0", row["budget"]], means["a1", row["budget"]])
        assert row["t_ratio"] == approx(witness.statistic, rel=1e-9)
    assert set(result.df_differences.ravel()) == {7}
    assert list(result.budgets) == list(BUDGETS)
    assert result.columns is None
    assert result.formula is None


def test_means_per_budget_pool_the_variance_over_algorithms():
    frame = table(algorithms=4)
    result = anytime(as_runs(frame), columns="budgets", vcov="model")
    curves = frame.groupby(["task", "algo", "budget"])["loss"].mean().unstack(["algo", "budget"])
    y = curves.to_numpy().reshape(8, 4, -1)
    e = y - y.mean(axis=0) - (y - y.mean(axis=0)).mean(axis=1, keepdims=True)
    mean_square = (e**2).sum(axis=(0, 1)) / (7 * 3)
    first = result.differences.query("left == 'a0' and right == 'a3'")
    assert first["estimate"].to_numpy() == approx((y[:, 0] - y[:, 3]).mean(axis=0), rel=1e-9)
    assert first["se"].to_numpy() == approx(np.sqrt(2 * mean_square / 8), rel=1e-9)
    curve = result.curves.query("algorithm == 'a1'")
    assert curve["mean"].to_numpy() == approx(y[:, 1].mean(axis=0), rel=1e-9)


def test_the_estimates_at_a_budget_are_compared_like_any_others():
    result = anytime(as_runs(table(algorithms=3)), columns="budgets", vcov="model")
    pairs = result.estimates.pairs(adjust="none").to_frame().sort_values(["left", "right", "budget"])
    for name in ("estimate", "se"):
        assert pairs[name].to_numpy() == approx(result.differences[name].to_numpy(), rel=1e-9)
    assert result.estimates.to_frame()["estimate"].to_numpy() == approx(result.curves["mean"].to_numpy())


def test_splines_have_the_errors_of_the_coefficients_of_each_benchmark():
    """Random coefficients in a complete table."""
    frame = table(benchmarks=30, algorithms=3, spread=1.0, noise=0.5, seed=3)
    result = anytime(as_runs(frame), columns=1, vcov="model")
    assert result.fit is None
    y = frame.groupby(["task", "algo", "budget"])["loss"].mean().to_numpy().reshape(30, 3, -1)
    X = np.column_stack([np.ones_like(BUDGETS), np.log(BUDGETS)])
    b = y @ np.linalg.pinv(X).T
    e = b - b.mean(axis=0) - (b - b.mean(axis=0)).mean(axis=1, keepdims=True)
    S = np.einsum("bai,baj->ij", e, e) / (29 * 2)
    grid = np.column_stack([np.ones_like(result.budgets), np.log(result.budgets)])
    first = result.differences.query("left == 'a0' and right == 'a1'")
    assert first["estimate"].to_numpy() == approx(grid @ (b[:, 0] - b[:, 1]).mean(axis=0), rel=1e-9)
    assert first["se"].to_numpy() == approx(np.sqrt(2 / 30 * np.einsum("xi,ij,xj->x", grid, S, grid)), rel=1e-9)
    means = frame.groupby(["task", "algo", "budget"])["loss"].mean().reset_index()
    fit = lt.fit_lmm(result.formula, means)
    assert not fit.is_singular
    L = np.zeros((2, len(fit.params)))
    L[0, list(fit.params.index).index("algo[T.a1]")] = -1.0  # at log budget 0
    L[1] = L[0]
    L[1, list(fit.params.index).index("algo[T.a1]:log(budget)")] = -np.log(16.0)
    ends = first.iloc[[0, -1]]
    assert ends["estimate"].to_numpy() == approx(fit.estimate(L), rel=1e-7)
    assert ends["se"].to_numpy() == approx(np.sqrt(fit.cov(L).diagonal()), rel=1e-5)


@pytest.mark.parametrize("df", ["budgets", 3])
def test_scores_with_the_same_mean_on_every_benchmark_keep_the_paired_errors(df):
    """Ranks of two algorithms mirror each other; a fit with a benchmark variance of zero halves their variance."""
    frame = table(algorithms=2, seeds=1)
    pair = frame.groupby(["task", "budget"])["loss"]
    frame["loss"] -= pair.transform("mean")
    result = anytime(as_runs(frame), columns=df)
    y = frame.pivot_table(index="task", columns=["algo", "budget"], values="loss").to_numpy().reshape(8, 2, -1)
    d = y[:, 0] - y[:, 1]
    if df == 3:
        X = np.column_stack([np.ones(8), lmemtest_spline(np.log(BUDGETS), 3)])
        d = d @ np.linalg.pinv(X).T @ X.T
    at = result.differences.set_index("budget").loc[BUDGETS]
    assert at["se"].to_numpy() == approx(d.std(axis=0, ddof=1) / np.sqrt(8), rel=1e-9)


def test_fitting_all_rows_with_random_curves_of_runs_gives_the_same_as_means_of_runs():
    frame = table(benchmarks=30, algorithms=2, seeds=3, spread=1.0, noise=0.6, seed=5)
    means, rows = (anytime(as_runs(frame), columns=1, average=average) for average in (True, False))
    assert "(1 + log(budget) | task:algo:seed)" in rows.formula
    assert not rows.fit.is_singular
    for column in ("estimate", "se"):
        assert rows.differences[column].to_numpy() == approx(means.differences[column].to_numpy(), rel=1e-4)
    assert set(rows.df_differences.ravel()) == set(means.df_differences.ravel()) == {29}


def test_the_overall_difference_is_the_mean_over_the_axis():
    frame = table(algorithms=2)
    result = anytime(as_runs(frame), columns="budgets", scale="log")
    d = result.differences["estimate"].to_numpy()
    x = np.log(BUDGETS)
    assert result.overall["estimate"][0] == approx(np.trapezoid(d, x) / (x[-1] - x[0]), rel=1e-9)
    means = frame.groupby(["task", "algo", "budget"])["loss"].mean().unstack("budget")
    area = pd.Series(np.trapezoid(means.to_numpy(), x, axis=1), means.index).unstack("algo")
    witness = stats.ttest_rel(area["a0"], area["a1"])
    assert result.overall["t_ratio"][0] == approx(witness.statistic, rel=1e-9)
    assert result.overall["p_value"][0] == approx(witness.pvalue, rel=1e-6)


def test_one_benchmark_makes_runs_the_sample():
    frame = table(benchmarks=1, algorithms=2, seeds=12)
    result = anytime(as_runs(frame), columns="budgets")
    for row in result.differences.to_dict("records"):
        at = frame[frame["budget"] == row["budget"]].set_index(["algo", "seed"])["loss"]
        assert row["t_ratio"] == approx(stats.ttest_rel(at["a0"], at["a1"]).statistic, rel=1e-9)
    assert (result.sample, set(result.df_differences.ravel())) == ("runs", {11})
    assert "There is one benchmark, so the answer holds there and says nothing about others." in result.notes


def test_conditions_of_one_benchmark_are_not_variation_of_runs():
    frame = table(benchmarks=1, algorithms=2, seeds=8, conditions=("good", "bad"))
    frame.loc[frame["prior"] == "bad", "loss"] += 100.0
    result = anytime(as_runs(frame, metafeatures=["prior"]), columns="budgets")
    assert set(result.df_differences.ravel()) == {14}
    assert result.differences["se"].max() < 1
    at = frame[frame["budget"] == 4.0].pivot_table(index=["prior", "seed"], columns="algo", values="loss")
    d = at["a0"] - at["a1"]
    pooled = sum(((d[p] - d[p].mean()) ** 2).sum() for p in ("good", "bad")) / 14
    assert result.differences_at(4)["se"][0] == approx(np.sqrt(pooled / 16), rel=1e-9)


# ------------------------------------------------------------------ decisions


def late_advantage(a, x):
    return np.where(a == 1, -1.2 * np.maximum(x - np.log(4.0), 0.0), 0.0)


@pytest.mark.parametrize("df", ["budgets", 4])
def test_an_advantage_that_begins_late_is_found_where_it_is(df):
    result = anytime(as_runs(table(effect=late_advantage, spread=0.1, noise=0.05, benchmarks=12)), columns=df)
    late = result.stretches.query("better == 'a1' and worse == 'a0'")
    assert len(late) == 1
    assert 3 < late["budget_from"].iloc[0] <= 8
    assert late["budget_to"].iloc[0] == 16
    assert not late["whole_range"].iloc[0]
    assert result.stretches["better"].unique().tolist() == ["a1"]
    assert result.best.iloc[-1]["best"] == "a1"
    assert any(text.startswith("a1 is better than all others from budget") for text in result.sentences())
    assert result.summary().startswith("Budgets where one algorithm is better (loss, minimize)")
    if df == 4:  # a smooth stretch ends where the band reaches zero
        d = result.differences.query("left == 'a0' and right == 'a1'")
        band = np.interp(np.log(late["budget_from"].iloc[0]), np.log(d["budget"]), d["band_low"])
        assert band == approx(0.0, abs=1e-9)


def test_all_answers_read_one_decision_matrix():
    frame = table(effect=lambda a, x: 0.7 * a + 0.3 * x * (a == 2), spread=0.3, benchmarks=10)
    result = anytime(as_runs(frame), columns="budgets")
    decisions, names = result.decisions, result.algorithms
    assert (decisions == -decisions.transpose(1, 0, 2)).all()
    square = {(row["left"], row["right"], row["budget"]): row for row in result.differences.to_dict("records")}
    for i, j in itertools.combinations(range(3), 2):
        for x, budget in enumerate(result.budgets):
            row = square[names[i], names[j], budget]
            shown = row["band_low"] > 0 or row["band_high"] < 0
            assert bool(decisions[i, j, x]) == shown == (row["p_value"] < 0.05)
            assert decisions[i, j, x] == (-np.sign(row["estimate"]) if shown else 0)
    candidates = result.candidates()
    for row in result.best.to_dict("records"):
        inside = (result.budgets >= row["budget_from"]) & (result.budgets <= row["budget_to"])
        assert (candidates[:, inside] == np.isin(names, row["candidates"])[:, None]).all()
    last = result.groups(16)
    together = {pair for group in last for pair in itertools.combinations(sorted(group), 2)}
    for i, j in itertools.combinations(range(3), 2):
        assert ((names[i], names[j]) in together) == (decisions[i, j, -1] == 0)


def test_levels_in_another_order_change_nothing_but_sides():
    frame = table(effect=late_advantage, spread=0.1)
    one = anytime(as_runs(frame))
    assert (one.critical_differences == anytime(as_runs(frame)).critical_differences).all()
    assert (one.critical_differences != anytime(as_runs(frame), rng=2).critical_differences).all()
    order = pd.CategoricalDtype(["a2", "a0", "a1"], ordered=True)
    turned = anytime(as_runs(frame.assign(algo=frame["algo"].astype(order))))
    assert turned.algorithms == ("a2", "a0", "a1")
    columns = ["better", "worse", "budget_from", "budget_to"]
    pd.testing.assert_frame_equal(
        turned.stretches[columns].sort_values(columns[:2], ignore_index=True),
        one.stretches[columns].sort_values(columns[:2], ignore_index=True),
        rtol=1e-6,
    )
    left = turned.differences.query("left == 'a2' and right == 'a0'")["estimate"].to_numpy()
    assert left == approx(-one.differences.query("left == 'a0' and right == 'a2'")["estimate"].to_numpy())


# ------------------------------------------------------------------ the spline


def test_auto_takes_the_fewest_columns_that_follow_the_differences():
    smooth = anytime(as_runs(table(spread=0.5, effect=lambda a, x: a * (x - x**2 / 3))))
    assert 3 <= smooth.columns <= 4
    runs = as_runs(table(spread=0.02, noise=0.01, effect=lambda a, x: a * (np.round(np.exp(x)).astype(int) % 3)))
    jagged = anytime(runs)
    assert jagged.columns is None
    assert "each budget has its own means, without interpolation" in " ".join(jagged.notes)
    notes = " ".join(anytime(runs, columns=3).notes)
    assert re.search(r"The curves \(3 columns\) depart from the observed differences by up to \d", notes)
    assert (smooth.scale, anytime(as_runs(table().query("budget <= 4"))).scale) == ("log", "linear")  # by doublings


def test_the_spline_is_that_of_the_formula():
    frame = table(algorithms=2)
    result = anytime(as_runs(frame), columns=4, scale="linear")
    assert "bs(budget, df=4)" in result.formula
    spline = fit_spline(BUDGETS, np.ones_like(BUDGETS), n_inner=1, inner=None, degree=3, lower=None, upper=None)
    means = frame.groupby(["algo", "budget"])["loss"].mean().unstack("budget").to_numpy()
    X, at = (np.column_stack([np.ones_like(x), spline(x)]) for x in (BUDGETS, result.budgets))
    fitted = at @ np.linalg.lstsq(X, means[0] - means[1], rcond=None)[0]
    assert result.differences["estimate"].to_numpy() == approx(fitted, rel=1e-6, abs=1e-9)


# ------------------------------------------------------------------ incomplete and thin tables


def test_missing_runs_are_fitted_by_rows_with_random_curves_of_runs():
    frame = table(benchmarks=10).query("not (task == 't01' and algo == 'a2' and seed == 2)")
    result = anytime(as_runs(frame), columns=3)
    assert "| task:algo:seed)" in result.formula
    assert any(note.startswith("Runs differ in number or in their budgets") for note in result.notes)
    full = anytime(as_runs(table(benchmarks=10)), columns=3)
    assert result.differences["estimate"].to_numpy() == approx(full.differences["estimate"].to_numpy(), abs=0.1)


def test_an_algorithm_with_fewer_budgets_is_compared_where_it_ran():
    frame = table().query("algo != 'a1' or budget <= 8")
    result = anytime(as_runs(frame), columns=3)
    beyond = result.differences.query("(left == 'a1' or right == 'a1') and budget > 8")
    assert len(beyond)
    assert beyond["estimate"].isna().all()
    assert result.differences.query("left == 'a0' and right == 'a2'")["estimate"].notna().all()
    assert not result.candidates()[1, result.budgets > 8].any()
    assert any("each pair is compared where both have" in note for note in result.notes)


@pytest.mark.parametrize("df", [3, "auto"])
def test_sentences_name_whom_the_best_is_compared_with_and_where(df):
    frame = table(effect=lambda a, _: 3.0 * (a > 0)).query("algo != 'a1' or budget >= 3")
    result = anytime(as_runs(frame), columns=df)
    early, late = (result.best[result.best["compared"] == who] for who in (("a0", "a2"), ("a0", "a1", "a2")))
    assert early["budget_from"].min() == 1.0
    assert early["budget_to"].max() < 3.0
    assert (late["budget_from"].min(), late["budget_to"].max()) == (3.0, 16.0)
    assert set(result.best["best"]) == {"a0"}
    best = result.sentences()[0]
    assert best == (
        "At all budgets (budget 1 to 16) a0 is better than all others that have scores there: a2 throughout; a1 from "
        "budget 3 to 16."
    )
    means = [text for text in result.sentences() if text.startswith("Averaged")]
    assert means[0].startswith("Averaged over budget 3 to 16 (log scale), a0 is better than a1 by ")
    assert means[1].startswith("Averaged over budget 1 to 16 (log scale), a0 is better than a2 by ")
    ranges = result.overall[["left", "right", "budget_from", "budget_to"]].to_numpy().tolist()
    assert ranges == [["a0", "a1", 3.0, 16.0], ["a0", "a2", 1.0, 16.0], ["a1", "a2", 3.0, 16.0]]


def test_an_algorithm_without_scores_there_is_no_other():
    frame = table(algorithms=4, effect=lambda a, x: 3.0 * (a > 0) - 20.0 * ((a == 3) & (x > 1.5)))
    frame = frame.query("algo != 'a3' or budget >= 6")
    best = anytime(as_runs(frame), columns=3).sentences()[0]
    assert re.fullmatch(r"From budget 1 to \d\.\d+ a0 is better than all others that have scores there: a1, a2\.", best)


def test_means_over_different_ranges_without_a_difference_say_so():
    even = table(spread=1.0, seed=4)
    frame = even.query("algo != 'a1' or budget >= 3")
    assert anytime(as_runs(even), columns=3).sentences()[-1] == (
        "Averaged over budget 1 to 16 (log scale), no pair is shown to differ."
    )
    assert anytime(as_runs(frame), columns=3).sentences()[-1] == (
        "Averaged over the range of budget that both have (log scale), no pair is shown to differ."
    )


def test_copies_of_an_algorithm_are_never_told_apart():
    frame = table(algorithms=2, effect=lambda a, _: 3.0 * a)
    copy = frame.query("algo == 'a0'").assign(algo="a0copy")
    copy["seed"] = 2 - copy["seed"]  # the sums of the runs round in another order
    result = anytime(as_runs(pd.concat([frame, copy])), columns="budgets")
    assert "At no budget is one algorithm shown to be better than all others." in result.sentences()
    assert set(result.best["candidates"]) == {("a0", "a0copy")}
    assert not any("a0 is better than a0copy" in text or "a0copy is better than a0 " in text
                   for text in result.sentences())  # fmt: skip


def test_scores_that_all_share_at_a_budget_are_no_difference():
    frame = table(algorithms=6, seeds=5, spread=0.0)
    first = frame["budget"] == 1.0
    shared = frame[first & (frame["algo"] == "a0")].set_index(["task", "seed"])["loss"]
    seeds = (frame["seed"] + frame["algo"].str[1:].astype(int)) % 5  # each algorithm sums them in another order
    frame.loc[first, "loss"] = [shared[key] for key in zip(frame["task"][first], seeds[first], strict=True)]
    result = anytime(as_runs(frame), columns="budgets")
    assert not result.decisions[:, :, 0].any()
    assert result.best.iloc[0]["best"] is None


@pytest.mark.parametrize(("benchmarks", "algorithms"), [(6, 2), (6, 3), (12, 3), (20, 6)])
def test_which_of_anytime_and_horizons_asks_less_depends_on_the_number_of_budgets(benchmarks, algorithms):
    """The claims of docs/developers/anytime.md: half widths in standard errors, horizons at their first Holm step."""

    def asked(budgets, *, wander):
        rng = np.random.default_rng(3)
        found = []
        for _ in range(3):
            z = rng.normal(size=(benchmarks, algorithms, budgets))
            level = 3.0 * rng.normal(size=(benchmarks, algorithms, 1))  # 0.9 = 9 / (9 + 1)
            z = z.cumsum(axis=2) / np.sqrt(np.arange(1, budgets + 1)) if wander else z + level
            b, a, k = (i.ravel() for i in np.indices(z.shape))
            frame = pd.DataFrame({"task": b, "algo": a, "budget": k + 1, "loss": z.ravel()})
            frame = frame.assign(task=[f"t{i:02d}" for i in b], algo=[f"a{i}" for i in a])
            found.append(anytime(as_runs(frame, seed=None), columns="budgets", vcov="model").critical_differences)
        return float(np.mean(found))

    df = (benchmarks - 1) * (algorithms - 1)
    one, two, four = (stats.studentized_range.ppf(1 - 0.05 / n, algorithms, df) / np.sqrt(2.0) for n in (1, 2, 4))
    assert one < two < asked(4, wander=True) < four < asked(10, wander=True)
    assert one < asked(4, wander=False) == approx(two, rel=0.05)
    if benchmarks >= 12:  # with fewer the correlations themselves are too uncertain
        assert asked(10, wander=False) < four


def test_a_condition_that_some_benchmarks_lack_keeps_its_fixed_effects():
    frame = table(benchmarks=9, conditions=("good", "bad")).query("prior == 'good' or task != 't03'")
    result = anytime(as_runs(frame, metafeatures=["prior"]), columns=3)
    assert "algo:prior:bs" in result.formula


def test_a_metafeature_of_benchmarks_is_no_condition():
    frame = table().assign(kind=lambda t: np.where(t["task"] < "t04", "small", "large"))
    plain, told = anytime(as_runs(frame)), anytime(as_runs(frame, metafeatures=["kind"]))
    assert told.differences["estimate"].to_numpy() == approx(plain.differences["estimate"].to_numpy(), rel=1e-6)


def test_one_seed_and_two_algorithms_are_enough():
    result = anytime(as_runs(table(seeds=1, algorithms=2)))
    assert set(result.df_differences.ravel()) == {7}
    frame = table(seeds=1, algorithms=2).drop(columns="seed")
    no_seed = anytime(as_runs(frame, seed=None))
    pd.testing.assert_frame_equal(no_seed.differences, result.differences)


def test_few_benchmarks_are_said():
    notes = " ".join(anytime(as_runs(table(benchmarks=4))).notes)
    assert "There are only 4 benchmarks: only large and consistent differences can be shown" in notes


def test_a_pair_that_varies_more_than_the_others_is_named():
    frame = table(benchmarks=12, spread=0.1)
    wild = np.random.default_rng(1).normal(size=12)[[int(t[1:]) for t in frame["task"]]]
    frame["loss"] += 3 * wild * (frame["algo"] == "a2")
    notes = " ".join(anytime(as_runs(frame), vcov="model").notes)
    assert re.search(r"The difference of a[01] and a2 varies between benchmarks more than that of other pairs", notes)
    assert "vcov='moderated' gives each pair its own." in notes
    moderated = anytime(as_runs(frame))
    assert moderated.vcov == "moderated"
    assert "overconfident" not in " ".join(moderated.notes)
    se = moderated.differences.groupby(["left", "right"])["se"].mean()
    assert 3 * se["a0", "a1"] < min(se["a0", "a2"], se["a1", "a2"])


def test_moderated_errors_are_the_common_ones_times_the_ratio_of_each_pair():
    frame = table(benchmarks=10, algorithms=4, seed=2)
    frame["loss"] += (
        np.random.default_rng(1).normal(size=10)[[int(t[1:]) for t in frame["task"]]] * 2 * (frame["algo"] == "a3")
    )
    own, model = (anytime(as_runs(frame), columns="budgets", vcov=vcov) for vcov in ("moderated", "model"))
    y = frame.groupby(["task", "algo", "budget"])["loss"].mean().to_numpy().reshape(10, 4, -1)
    i, j = np.triu_indices(4, 1)

    def ratios(v):
        m = np.full(6, 9.0), np.full(6, 27.0)
        return moderation(v, m[0], i, j, np.ones(4)).ratios(np.eye(4)[i] + np.eye(4)[j], v, *m)

    def own_over_common(y):
        mean_square = (y[:, i] - y[:, j]).var(axis=0, ddof=1)
        return mean_square / mean_square.mean(axis=0)

    v = own_over_common(y)
    whole, df_whole = ratios(v.mean(axis=1))
    for x in range(len(BUDGETS)):
        here, df_here = ratios(v[:, x])
        assert own.df_differences[:, x] == approx(np.where(here > whole, df_here, df_whole))
        se = [result.differences["se"].to_numpy().reshape(6, -1)[:, x] for result in (own, model)]
        assert se[0] == approx(se[1] * np.sqrt(np.maximum(here, whole)), rel=1e-9)
    assert own.differences["estimate"].to_numpy() == approx(model.differences["estimate"].to_numpy())
    x = np.log(BUDGETS)
    ratio, df = ratios(own_over_common(np.trapezoid(y, x, axis=2)))
    assert own.overall["df"].to_numpy() == approx(df)
    assert own.overall["se"].to_numpy() == approx(model.overall["se"].to_numpy() * np.sqrt(ratio), rel=1e-9)
    witness, _ = adjust(own.overall["t_ratio"], df, method="stepdown", n_means=4)
    assert own.overall["p_value"].to_numpy() == approx(witness)


def test_curves_that_are_not_complete_have_the_errors_of_the_model_and_say_so():
    result = anytime(as_runs(table().query("algo != 'a1' or budget <= 8")), columns=3)
    assert result.vcov == "model"
    assert "The table is not complete, so all pairs have the model's standard errors" in " ".join(result.notes)


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda: anytime(as_runs(table(), budget=None)), ArgumentError, "runs has no budget column"),
        (lambda: anytime(as_runs(table().query("budget <= 2"))), DataError,
         "A curve needs scores at 3 budgets or more, 'budget' has 2."),
        (lambda: anytime(as_runs(table().assign(budget=lambda t: pd.Categorical(t["budget"], ordered=True)))),
         DataError, "A curve over 'budget' needs numbers, and the column has none."),
        (lambda: anytime(as_runs(table().query("(algo == 'a0' and budget <= 3) or (algo == 'a1' and budget >= 4)"))),
         DataError, "The budgets of the algorithms do not overlap (a0: 1 to 3, a1: 4 to 16)"),
        (lambda: anytime(as_runs(table().query("algo != 'a2' or budget <= 2"))), DataError,
         "a2 has scores at fewer than 3 budgets, which is no curve."),
        (lambda: anytime(as_runs(table(benchmarks=1, seeds=1))), DataError,
         "There is one benchmark and one run per algorithm, so how much curves vary is not known."),
        (lambda: anytime(as_runs(table(benchmarks=1), seed=None)), DataError,
         "Which rows belong to one run is not known, and with one benchmark the runs are the sample."),
        (lambda: anytime(as_runs(table()), columns=7), ArgumentError, "columns must be at most 6 with 8 budgets"),
        (lambda: anytime(as_runs(table()), columns="many"), ArgumentError, "columns must be a whole number, 'auto' or"),
        (lambda: anytime(as_runs(table().query("algo != 'a1' or budget <= 8")), columns="budgets"), DataError,
         "columns='budgets' needs a complete table"),
        (lambda: anytime(as_runs(table()), scale="square"), ArgumentError, "scale must be"),
        (lambda: anytime(as_runs(table().assign(budget=lambda t: t["budget"] - 1)), scale="log"), ArgumentError,
         "scale='log' needs budgets above 0, the lowest budget is 0."),
        (lambda: anytime(as_runs(table()), alpha=95), ArgumentError, "alpha"),
        (lambda: anytime(as_runs(table())).differences_at(17), ArgumentError, "budget must be between 1 and 16"),
    ],
)  # fmt: skip
def test_what_cannot_be_answered_is_refused_with_the_next_step(make, kind, message):
    with pytest.raises(kind, match=re.escape(message)):
        make()


def test_views_need_no_curves():
    few = lt.anytime(as_runs(table().query("budget <= 2")))
    assert few.at().labels == ("1", "2")
    assert len(few.ranks().to_frame()) == 3 * 2
    with pytest.raises(DataError, match=r"Compare at each of them with lmemtest\.anytime\(runs\)\.at\(\)\.$"):
        few.curves  # noqa: B018


def test_curves_are_made_once_and_travel():
    result = lt.anytime(as_runs(table()), rng=1)
    assert "curves" in dir(result)
    assert result.curves is result.curves
    copy = pickle.loads(pickle.dumps(result))
    pd.testing.assert_frame_equal(copy.differences, result.differences)
    with pytest.raises(AttributeError, match=r"^Anytime has no 'stretch'\. Did you mean 'stretches'\?"):
        result.stretch  # noqa: B018


# ------------------------------------------------------------------ real data


@pytest.mark.skipif("LMEMTEST_DATA" not in os.environ, reason="LMEMTEST_DATA is not set")
def test_priorband_wins_at_the_end_and_loses_at_the_start():
    frame = pd.read_parquet(Path(os.environ["LMEMTEST_DATA"]) / "priorband.parquet")
    runs = as_runs(frame, score="normalized_regret", budget="used_fidelity")
    result, model = anytime(runs), anytime(runs, vcov="model")
    pairs = set(map(tuple, result.stretches[["better", "worse", "budget_from", "budget_to"]].to_numpy()))
    assert ("HB", "PB", 1.0, 1.0) in pairs  # a bad prior costs the first evaluation
    assert ("PB", "RS", 4.0, 24.0) in pairs
    by_model = set(map(tuple, model.stretches[["better", "worse", "budget_from", "budget_to"]].to_numpy()))
    assert ("PB", "RS", 3.0, 24.0) in by_model
    assert result.n_sample == 12
    assert set(model.df_differences.ravel()) == {22}
