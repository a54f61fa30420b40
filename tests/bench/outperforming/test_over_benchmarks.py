"""P(A > B) over benchmarks: by hand, against the t interval of balanced designs, and by what must not change it."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pandas as pd
import pytest
from refusals import refuses
from scipy import optimize, stats
from study import as_runs, table_of_scores

import lmemtest as lt
from lmemtest.bench.outperforming import pairs
from lmemtest.bench.outperforming.pairs import better_on, partial_conjunction
from lmemtest.bench.outperforming.random_intercept import best_gamma, criterion, mean_of, slope
from lmemtest.bench.outperforming.verdict import adjusted_gamma
from lmemtest.core.proportions import sign_test
from lmemtest.errors import ArgumentError, DesignError

runs_of = partial(as_runs, direction="maximize")


def table(benchmarks=6, seeds=8, algorithms="AB", spread=0.8, seed=1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    shift = rng.normal(0.5, spread, size=(benchmarks, len(algorithms)))
    ahead = shift.T * [[name == "A"] for name in algorithms]
    scores = ahead[..., None] + rng.normal(size=(*ahead.shape, seeds))
    names = {"algorithm": list(algorithms), "task": [f"t{t}" for t in range(benchmarks)]}
    return table_of_scores(scores, "algorithm task seed", "acc", **names)


def wins(frame: pd.DataFrame) -> pd.DataFrame:
    wide = frame.pivot(index=["task", "seed"], columns="algorithm", values="acc")
    return (wide["A"] > wide["B"]).unstack().astype(float)


def assert_solves_the_score_equation(row, variance, df, level=0.95):
    """Both ends are where the t ratio, with the variance at that probability, is Student's quantile."""
    quantile, middle = stats.t.ppf(0.5 + 0.5 * level, df), row["estimate"]
    for end in (row["ci_low"], row["ci_high"]):
        at_end = variance * end * (1 - end) / (middle * (1 - middle))
        assert abs(middle - end) / np.sqrt(at_end) == pytest.approx(quantile, rel=1e-5)


def test_a_balanced_mixed_model_has_the_mean_and_variance_of_the_benchmarks():
    frame = table()
    found = lt.outperforming(runs_of(frame))
    each = wins(frame).mean(axis=1)
    row = found.table.iloc[0]
    assert row["mean"] == pytest.approx(each.mean(), abs=1e-12)
    assert row["estimate"] == pytest.approx(each.mean(), abs=1e-6)
    assert_solves_the_score_equation(row, each.var(ddof=1) / 6, 5)
    assert found.benchmarks["estimate"].tolist() == pytest.approx(each.tolist())
    assert found.benchmarks["p_raw"].tolist() == pytest.approx(
        [stats.binomtest(int(w), 8, alternative="greater").pvalue for w in wins(frame).sum(axis=1)]
    )


def test_runs_that_are_not_paired_have_the_mean_and_variance_of_their_u_statistics():
    frame = table(benchmarks=5, seeds=6, spread=2.0)  # benchmarks differ more than chance
    found = lt.outperforming(runs_of(frame), paired=False)
    parts = dict(iter(frame.groupby(["task", "algorithm"])["acc"]))
    each = np.array([stats.mannwhitneyu(parts[f"t{t}", "A"], parts[f"t{t}", "B"]).statistic / 36 for t in range(5)])
    row = found.table.iloc[0]
    assert found.method == "mixed"
    assert row["estimate"] == pytest.approx(each.mean(), abs=1e-6)
    assert_solves_the_score_equation(row, each.var(ddof=1) / 5, 4)


def test_runs_that_are_not_paired_have_the_variance_of_the_mixed_model_of_their_comparisons():
    frame = table(benchmarks=6, seeds=9, spread=1.5, seed=2)
    found = lt.outperforming(runs_of(frame), paired=False).table.iloc[0]
    both = frame[frame["algorithm"] == "A"].merge(frame[frame["algorithm"] == "B"], on="task")
    both["win"] = (both["acc_x"] > both["acc_y"]).astype(float)
    for side, name in (("seed_x", "left"), ("seed_y", "right")):
        both[name] = both["task"] + "-" + both[side].astype(str)
    model = lt.fit_lmm("win ~ 1 + (1 | task) + (1 | left) + (1 | right)", both)
    assert min(model.theta) > 0.0  # where no variance is zero, REML of a balanced table is the analysis of variance
    assert found["estimate"] == pytest.approx(model.estimate(np.eye(1))[0], abs=1e-9)
    assert_solves_the_score_equation(found, model.cov(np.eye(1))[0, 0], 5)


def test_right_and_wrong_answers_that_are_not_paired_have_the_variance_of_their_shares():
    rng = np.random.default_rng(4)
    frame = table(benchmarks=5, seeds=20)
    p = np.where(frame["algorithm"] == "A", 0.8, 0.1 + 0.2 * frame["task"].str[1].astype(int))
    frame["acc"] = rng.binomial(1, p).astype(float)
    found = lt.outperforming(runs_of(frame), paired=False).table.iloc[0]
    shares = frame.pivot_table(index="task", columns="algorithm", values="acc")
    each = 0.5 + 0.5 * (shares["A"] - shares["B"])
    assert found["estimate"] == pytest.approx(each.mean())
    assert found["risk_difference"] == pytest.approx((shares["A"] - shares["B"]).mean())
    assert_solves_the_score_equation(found, each.var(ddof=1) / 5, 4)


def test_benchmarks_of_unequal_precision_have_paule_and_mandels_weights():
    each, within = np.array([0.3, 0.9, 0.6, 0.75]), np.array([0.001, 0.02, 0.0, 0.005])
    middle, variance = mean_of(each, within)
    between = 1.0 / variance  # of which the weights are known up to it: recover it from the weights' sum
    root = optimize.brentq(lambda b: (1.0 / (b + within)).sum() - between, 1e-9, 1.0)
    assert ((each - middle) ** 2 / (root + within)).sum() == pytest.approx(3.0)
    assert middle == pytest.approx(np.average(each, weights=1.0 / (root + within)))
    alike, small = mean_of(np.full(3, 0.6), np.array([0.01, 0.02, 0.04]))
    assert (alike, small) == pytest.approx((0.6, 1.0 / 175.0))  # nothing between: 100 + 50 + 25


def test_notes_say_what_the_interval_of_each_pair_is():
    frame = table(benchmarks=5, seeds=3)
    frame["acc"] = frame["algorithm"].map({"A": 2.0, "B": 1.0})
    won = lt.outperforming(runs_of(frame))
    assert "even winning all pairs on all of them is not significant" in " ".join(won.notes)
    assert "mixed model" not in " ".join(won.notes)
    assert won.table["conclusion"].tolist() == ["not significant"]
    more = pd.concat([frame, frame[frame["task"] == "t0"].assign(task="t5")])
    assert "even winning" not in " ".join(lt.outperforming(runs_of(more)).notes)
    tied = lt.outperforming(runs_of(frame.assign(acc=1.0)))
    assert "Scores are 0 and 1" not in " ".join(tied.notes)
    mixed = table(algorithms="ABC")
    mixed = mixed[(mixed["algorithm"] != "C") | (mixed["task"] == "t1")]
    notes = " ".join(lt.outperforming(runs_of(mixed)).notes)
    assert "1 of 6 benchmarks only, and the interval is of this benchmark by itself" in notes


def test_the_better_one_is_on_the_left_unless_the_sides_are_named():
    runs = runs_of(table(algorithms="ABC"))
    found = lt.outperforming(runs)
    assert found.table["mean"].min() >= 0.5
    named = lt.outperforming(runs, control="B")
    assert named.table[["left", "right"]].to_numpy().tolist() == [["B", "A"], ["B", "C"]]
    assert named.alpha_adjusted == pytest.approx(0.025)
    turned, own = (lt.outperforming(runs, algorithms=tuple(pair)).table.iloc[0] for pair in ("AB", "BA"))
    assert (turned["estimate"], turned["ci_low"]) == pytest.approx((1 - own["estimate"], 1 - own["ci_high"]))
    loss = lt.outperforming(as_runs(runs.to_frame()), algorithms=("B", "A")).table.iloc[0]
    assert loss["estimate"] == pytest.approx(turned["estimate"])


def test_drawn_means_have_the_variance_between_and_within_benchmarks():
    frame = table(benchmarks=12, seeds=6)
    found = lt.outperforming(runs_of(frame), method="percentile", rng=2)
    p = wins(frame).mean(axis=1).to_numpy()
    sd = np.sqrt((p.var() + (p * (1 - p) / 6).mean()) / 12)
    low, high = p.mean() + stats.norm.ppf([0.025, 0.975]) * sd
    # the lattice of means has steps of 1 / 72, and tails are nearly normal
    assert tuple(found.table.loc[0, ["ci_low", "ci_high"]]) == pytest.approx((low, high), abs=0.02)


def test_a_run_without_a_run_of_the_same_seed_is_in_no_pair():
    frame = table()
    without = frame[~((frame["algorithm"] == "B") & (frame["seed"] == 0))]
    fewer = lt.outperforming(runs_of(without))
    assert fewer.table["n_pairs"].tolist() == [42]
    assert "without a partner" in " ".join(fewer.notes)


def test_many_algorithms_share_alpha_and_raise_gamma():
    runs = runs_of(table(algorithms="ABC"))
    found = lt.outperforming(runs)
    assert len(found.table) == 3
    assert found.alpha_adjusted == pytest.approx(0.05 / 3)
    assert found.gamma_adjusted == pytest.approx(adjusted_gamma(0.75, 0.05, 3))
    alone = lt.outperforming(runs_of(table(algorithms="ABC")), algorithms=("A", "B"), alpha=0.05 / 3)
    assert found.table.loc[0, "ci_low"] == pytest.approx(alone.table.loc[0, "ci_low"])


def test_runs_that_are_not_paired_are_compared_all_with_all():
    frame = table(benchmarks=3)
    found = lt.outperforming(runs_of(frame), paired=False, n_draws=400, rng=1)
    a, b = (frame.query("algorithm == @name and task == 't1'")["acc"] for name in "AB")
    row = found.benchmarks.iloc[1]
    assert row["estimate"] == pytest.approx(stats.mannwhitneyu(a, b).statistic / 64)
    assert row["p_raw"] == pytest.approx(stats.mannwhitneyu(a, b, alternative="greater").pvalue)


@pytest.mark.parametrize("seeds", [4, 8])
def test_one_benchmark_is_the_comparison_of_its_pairs(seeds):
    frame = table(benchmarks=1, seeds=seeds)
    found = lt.outperforming(runs_of(frame))
    a, b = (frame.query("algorithm == @name").sort_values("seed")["acc"].to_numpy() for name in "AB")
    two = lt.outperforming(a, b)
    row = found.table.iloc[0]
    assert (row["estimate"], row["ci_low"], row["ci_high"]) == (two.estimate, two.ci_low, two.ci_high)
    assert row["conclusion"] == two.conclusion


@pytest.mark.parametrize(("paired", "method"), [(True, "mixed"), (True, "percentile"), (False, "percentile")])
def test_benchmarks_that_are_all_won_count_one_each(paired, method):
    frame = table()
    frame["acc"] += 100.0 * (frame["algorithm"] == "A")
    runs = runs_of(frame)
    found = lt.outperforming(runs, paired=paired, method=method, n_draws=100, rng=1)
    row = found.table.iloc[0]
    assert (row["ci_low"], row["ci_high"]) == pytest.approx((0.025 ** (1 / 6), 1.0))
    assert (row["conclusion"], row["better_on"]) == ("significant and may be meaningful", 6)
    assert "Clopper and Pearson's of as many wins" in " ".join(found.notes)


@pytest.mark.parametrize(("paired", "seeds", "can"), [(True, 5, 0), (True, 12, 1), (False, 3, 0), (False, 7, 1)])
def test_on_how_many_benchmarks_is_said_where_a_benchmarks_own_test_could_show_it(paired, seeds, can):
    frame = table(benchmarks=12, seeds=seeds)
    frame["acc"] += 2.0 * (frame["algorithm"] == "A")
    found = lt.outperforming(runs_of(frame), paired=paired)
    row, texts = found.table.iloc[0], " ".join(found.sentences())
    own = found.to_frame("benchmarks")
    least = 0.5**seeds if paired else 1.0 / math.comb(2 * seeds, seeds)
    assert own["p_raw"].min() >= least * (1.0 - 1e-12)
    assert (row["better_on_most"] > 0) == (12.0 * least <= 0.025) == bool(can)
    assert ("benchmarks (partial conjunction)" in texts) == bool(can)
    assert "cannot be counted" not in texts
    assert "better_on_most" not in found.shown()


def test_a_control_that_is_worse_is_said_to_be():
    frame = table(algorithms="ABC", spread=0.1)
    frame["acc"] += 1.5 * (frame["algorithm"] == "A")
    found = lt.outperforming(runs_of(frame), control="B")
    assert (found.table["ci_high"] < 0.5).tolist() == [True, False]
    head, first, _ = found.sentences()
    assert head == (
        "Of 2 pairs of algorithms, the advantage of the first is not significant in 2; in 1 the second is "
        "significantly more often better."
    )
    assert first.endswith("not significant; A is significantly more often better.")


def test_right_or_wrong_answers_have_a_risk_difference():
    frame = table()
    frame["acc"] = (frame["acc"] > 0.3).astype(int)
    found = lt.outperforming(runs_of(frame), algorithms=("A", "B"))
    shares = frame.groupby("algorithm")["acc"].mean()
    assert found.table["risk_difference"].tolist() == pytest.approx([shares["A"] - shares["B"]], abs=1e-6)
    assert "risk_difference" in " ".join(found.notes)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"algorithms": ("A", "C")}, r"algorithms names 'C', which is not in the runs. Algorithms: A, B"),
        ({"algorithms": ("A", "A")}, "two different names"), ({"direction": "maximize"}, "direction must be left out"),
        ({"control": "X"}, r"control must be one of the algorithms \(A, B\), got 'X'"),
    ],
)  # fmt: skip
def test_refusals_of_runs(options, words):
    refuses(ArgumentError, words, lt.outperforming, runs_of(table()), **options)


def test_runs_that_cannot_be_paired_are_refused():
    refuses(DesignError, "no seed column", lt.outperforming, runs_of(table(), seed=None))
    apart = table().assign(seed=lambda t: t["seed"] + 100 * (t["algorithm"] == "B"))
    refuses(DesignError, "A and B have no seed that both ran with", lt.outperforming, runs_of(apart))


# ------------------------------------------------------------------------------------------------- replicability


def test_partial_conjunction_by_hand():
    p = [0.04, 0.001, 0.3, 0.02]
    assert partial_conjunction(p, "bonferroni") == pytest.approx([0.004, 0.06, 0.08, 0.3])
    fisher = [stats.combine_pvalues(sorted(p)[u:], "fisher").pvalue for u in range(4)]
    assert partial_conjunction(p, "fisher") == pytest.approx(np.maximum.accumulate(fisher))
    assert (better_on(p, "bonferroni", 0.05), better_on(p, "fisher", 0.05)) == (1, 2)


def test_sign_tests_leave_ties_out():
    assert sign_test([9, 0, 3], [1, 4, 3]) == pytest.approx(
        [stats.binomtest(k, n, alternative="greater").pvalue for k, n in ((9, 10), (0, 4), (3, 6))]
    )


def test_gamma_rises_with_the_sum_of_the_normal_quantiles():
    one, ten = stats.norm.isf([0.05, 0.005]) + stats.norm.isf(0.05)
    assert adjusted_gamma(0.75, 0.05, 10) == pytest.approx(0.5 + 0.25 * ten / one)
    assert adjusted_gamma(0.75, 0.05, 1) == 0.75


def test_benchmarks_of_unequal_numbers_of_pairs_have_the_mixed_model_of_their_wins():
    rng = np.random.default_rng(1)
    gaps = table(benchmarks=8, algorithms="ABCD").sample(frac=0.6, random_state=4)
    gaps["acc"] += (gaps["algorithm"] == "B") * (0.3 + 2.0 * rng.normal(size=8)[gaps["task"].str[1].astype(int)])
    both = gaps.merge(gaps, on=["task", "seed"])
    found, boundary = lt.outperforming(runs_of(gaps)), []
    for row in found.table.to_dict("records"):
        own = both[(both["algorithm_x"] == row["left"]) & (both["algorithm_y"] == row["right"])]
        win = own.assign(win=(own["acc_x"] > own["acc_y"]).astype(float))
        model, one = lt.fit_lmm("win ~ 1 + (1 | task)", win), np.eye(1)
        boundary.append(model.theta[0] == 0.0)
        assert row["estimate"] == pytest.approx(model.estimate(one)[0], rel=1e-7)  # where the fit stops
        df = min(own["task"].nunique() - 1.0, model.df(one)[0])
        assert_solves_the_score_equation(row, model.cov(one)[0, 0], df, 1.0 - found.alpha_adjusted)
    assert set(boundary) == {True, False}


def test_the_variance_between_benchmarks_is_where_the_slope_of_the_criterion_is_zero():
    rng = np.random.default_rng(7)
    n = rng.integers(0, 9, (40, 7)).astype(float)
    wins = rng.binomial(n.astype(int), rng.random((40, 7)))
    p = np.divide(wins, n, out=np.zeros(n.shape), where=n > 0)
    model = n, p, (n * p * (1.0 - p)).sum(axis=1)
    gamma = best_gamma(*model)
    inside = gamma > 0.0
    assert set(inside) == {True, False}
    np.testing.assert_allclose(slope(gamma, *model)[inside], 0.0, atol=1e-11)
    assert (slope(gamma, *model)[~inside] >= 0.0).all()
    step = 1e-6 * gamma[inside]
    own = [part[inside] for part in model]
    rise = (criterion(gamma[inside] * 2.0 + step, *own) - criterion(gamma[inside] * 2.0 - step, *own)) / (2.0 * step)
    np.testing.assert_allclose(slope(gamma[inside] * 2.0, *own), rise, rtol=1e-5, atol=1e-7)
    for other in (0.3, 3.0):
        assert (criterion(gamma[inside] * other, *own) > criterion(gamma[inside], *own)).all()


@pytest.mark.daily(2)
@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("missing", [0.0, 0.3])
def test_pairs_are_compared_as_each_by_itself(paired, missing):
    rng = np.random.default_rng(3)
    frame = table(benchmarks=7, seeds=4, algorithms="ABC")
    frame = frame.assign(acc=frame["acc"].round(0))[rng.random(len(frame)) >= missing]
    found = lt.outperforming(runs_of(frame), paired=paired)
    for left, right in found.table[["left", "right"]].itertuples(index=False):
        two = frame[frame["algorithm"].isin([left, right])]
        options = {"algorithms": (left, right), "paired": paired, "alpha": found.alpha_adjusted}
        alone = lt.outperforming(runs_of(two), **options)
        for part in ("table", "benchmarks", "replicability"):
            own = found.to_frame(part).query("left == @left and right == @right").reset_index(drop=True)
            other = alone.to_frame(part)
            level = ["ci_low", "ci_high"] if part == "benchmarks" else ["conclusion", "risk_difference"]
            pd.testing.assert_frame_equal(
                own.drop(columns=level, errors="ignore"), other.drop(columns=level, errors="ignore"), rtol=1e-12
            )


def test_no_side_is_chosen_by_rounding():
    wins = np.repeat([0, 1, 2], [1, 1, 4])  # of three pairs on six benchmarks: the mean of 0, 1/3 and 2/3 is 1/2
    assert (wins / 3.0).mean() < 0.5
    won = (np.arange(3) < wins[:, None]).ravel().astype(int)
    frame = pd.DataFrame({"task": np.repeat([f"t{i}" for i in range(6)], 3), "seed": np.tile(range(3), 6)})
    frame = pd.concat([frame.assign(algorithm="A", acc=won), frame.assign(algorithm="B", acc=1 - won)])
    for names in ("AB", "BA"):
        renamed = frame.assign(algorithm=frame["algorithm"].map(dict(zip("AB", names, strict=True))))
        assert lt.outperforming(runs_of(renamed)).table.loc[0, "left"] == "A"


def test_samples_of_one_size_have_the_tests_of_scipy_in_two_calls(monkeypatch):
    rng = np.random.default_rng(0)
    x, y = rng.integers(5, size=(200, 2)) / 3.0, rng.integers(5, size=(200, 3)) / 3.0
    x[0], y[0] = 1.0, 1.0
    expected = [stats.mannwhitneyu(a, b, alternative="greater").pvalue for a, b in zip(x, y, strict=True)]
    calls, original = [], stats.mannwhitneyu
    monkeypatch.setattr(stats, "mannwhitneyu", lambda *a, **o: calls.append(1) or original(*a, **o))
    assert pairs._mann_whitney(x, y).tolist() == [1.0, *expected[1:]]
    assert len(calls) == 2
