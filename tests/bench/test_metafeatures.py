"""Outcomes by level of a metafeature: published numbers, closed forms, invariances, and what is refused."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pandas as pd
import pytest
from refusals import refusal
from scipy import stats
from study import as_runs

import lmemtest as lt
from lmemtest.bench.benchmark.metafeature_effect import metafeature_effect
from lmemtest.bench.benchmark.metafeature_outcomes import metafeature_outcomes
from lmemtest.bench.benchmark.pair_scores import pair_scores
from lmemtest.lmm.distributions.studentized_range import ptukey

# bad minus at25 of the mean outcome over 24 budgets, Hyperband against PriorBand
PRIORBAND = {
    "JAHS-C10": -1.167,
    "JAHS-CH": -0.417,
    "JAHS-FM": -1.167,
    "LC-126026": -0.667,
    "LC-167190": 0.125,
    "LC-168330": -0.5,
    "LC-168910": -0.083,
    "LC-189906": -0.917,
    "PD1-Cifar100": -1.375,
    "PD1-ImageNet": -1.125,
    "PD1-LM1B": -1.208,
    "PD1-WMT": -1.292,
}


def table(
    rng: np.random.Generator,
    *,
    tasks: int = 8,
    seeds: int = 8,
    budgets: int = 4,
    odd: tuple[int, ...] = (2,),
    levels: tuple[str, ...] = ("bad", "good"),
    effect: float = 2.0,
    between: float = 0.2,
) -> pd.DataFrame:
    """B gains `effect` from level to level, except on the odd tasks."""
    rows = itertools.product(range(tasks), range(len(levels)), range(2), range(seeds), range(budgets))
    frame = pd.DataFrame(list(rows), columns=["task", "prior", "tool", "seed", "budget"])
    t, p, a, s, f = (frame[c].to_numpy() for c in frame)
    gain = np.where(np.isin(np.arange(tasks), odd), 0.0, effect)
    slope = between * rng.normal(size=(tasks, len(levels)))
    loss = rng.normal(size=tasks)[t] - 0.3 * f
    loss = loss - a * (gain[t] * (p - 0.5 * (len(levels) - 1)) + slope[t, p])
    loss = loss + 0.5 * rng.normal(size=(tasks, len(levels), 2, seeds))[t, p, a, s] + 0.3 * rng.normal(size=len(t))
    frame["task"] = [f"t{i:02d}" for i in t]
    frame["prior"] = [levels[i] for i in p]
    frame["tool"] = ["AB"[i] for i in a]
    return frame.assign(loss=loss)


@pytest.fixture(scope="module")
def runs() -> lt.Runs:
    return as_runs(table(np.random.default_rng(4), seeds=12))


@pytest.fixture(scope="module")
def found(runs):
    return metafeature_outcomes(runs, algorithms=("B", "A"), metafeature="prior", n_draws=499, rng=1)


# ---------------------------------------------------------------------- published numbers


def priorband(data_dir, score: str = "value") -> lt.Runs:
    return as_runs(pd.read_parquet(data_dir / "priorband.parquet"), score=score, budget="used_fidelity")


@pytest.mark.parametrize("options", [{}, {"unit": "budget"}, {"unit": "budget", "adjust": "holm"}])
def test_the_twelve_contrasts_of_the_priorband_study_and_its_two_anomalies(data_dir, options):
    for score in ("value", "normalized_regret"):  # regret is linear in the value on each instance: the same tests
        result = metafeature_outcomes(
            priorband(data_dir, score), algorithms=("PB", "HB"), metafeature="prior", rng=1, **options
        )
        assert result.singled_out == ("LC-167190", "LC-168910")
        got = result.to_frame()
        assert got[["level", "reference"]].drop_duplicates().to_numpy().tolist() == [["bad", "at25"]]
        assert dict(zip(got["benchmark"], got["contrast"].round(3), strict=True)) == PRIORBAND
        copied = "The scores of HB are the same at at25 and bad: one set of runs, used twice."
        assert (copied in result.notes) == (score == "value")


def test_the_model_finds_the_direction_and_the_two_anomalies_on_priorband(data_dir):
    runs = priorband(data_dir).filter(algorithm=["HB", "PB"])
    ranks = runs.normalize("rank", by=("benchmark", "prior", "budget"))
    result = metafeature_effect(ranks, algorithms=("PB", "HB"), metafeature="prior", rng=1)
    assert result.singled_out == ("LC-167190", "LC-168910")
    raw = result.to_frame().set_index("benchmark")["raw"]
    assert set(raw.nlargest(2).index) == {"LC-167190", "LC-168910"}
    regret = metafeature_effect(priorband(data_dir, "normalized_regret"), algorithms=("PB", "HB"), metafeature="prior")
    assert regret.singled_out == ()
    assert (regret.to_frame()["ci_high"] < 0).all()
    raw = metafeature_effect(priorband(data_dir), algorithms=("PB", "HB"), metafeature="prior")
    assert raw.overall["p_value"].item() > 0.05  # three JAHS benchmarks, in per cent, are all that there is


# ---------------------------------------------------------------------- outcomes


@pytest.mark.parametrize("test", ["two-sample", "paired"])
def test_points_are_the_t_tests_of_scipy(runs, test):
    result = metafeature_outcomes(runs, algorithms=("B", "A"), metafeature="prior", test=test, n_draws=99, rng=1)
    frame = runs.to_frame()
    for row in result.points.sample(12, random_state=3).to_dict("records"):
        here = frame[(frame["task"] == row["benchmark"]) & (frame["prior"] == row["level"])]
        here = here[here["budget"] == row["budget"]].sort_values("seed")
        a, b = (here["loss"][here["tool"] == tool] for tool in "AB")
        want = stats.ttest_rel(a, b) if test == "paired" else stats.ttest_ind(a, b)
        assert row["t_ratio"] == pytest.approx(want.statistic)
        assert row["p_value"] == pytest.approx(want.pvalue)
        assert row["outcome"] == np.sign(want.statistic) * (want.pvalue < 0.05)
        assert row["advantage"] == pytest.approx(a.mean() - b.mean())


def test_shares_and_contrasts_are_means_of_the_points(found):
    points = found.points.groupby(["benchmark", "level"])["outcome"].mean()
    instances = found.instances.set_index(["benchmark", "level"])
    assert instances["outcome"].to_dict() == pytest.approx(points.to_dict())
    assert np.allclose(instances[["better", "equal", "worse"]].sum(axis=1), 1.0)
    assert np.allclose(instances["better"] - instances["worse"], instances["outcome"])
    wide = points.unstack()
    assert found.to_frame()["contrast"].to_numpy() == pytest.approx((wide["good"] - wide["bad"]).to_numpy())


def test_the_mean_contrast_has_the_t_test_over_benchmarks(found):
    want = stats.ttest_1samp(found.to_frame()["contrast"], 0.0)
    row = found.overall.iloc[0]
    assert (row["t_ratio"], row["p_value"]) == pytest.approx((want.statistic, want.pvalue))
    low, high = want.confidence_interval()
    assert (row["ci_low"], row["ci_high"]) == pytest.approx((low, high))


def test_budgets_as_repetitions_are_an_analysis_of_variance_with_tukey(runs):
    result = metafeature_outcomes(runs, algorithms=("B", "A"), metafeature="prior", unit="budget")
    groups = [part["outcome"].to_numpy(dtype=float) for _, part in result.points.groupby(["benchmark", "level"])]
    df = sum(len(g) - 1 for g in groups)
    variance = sum(((g - g.mean()) ** 2).sum() for g in groups) / df
    t = result.to_frame()["contrast"].abs() / np.sqrt(variance * 2 / 4)
    want = ptukey(np.sqrt(2) * t.to_numpy(), len(groups), df, upper=True)
    assert result.to_frame()["p_value"].to_numpy() == pytest.approx(want)
    assert result.adjust == "tukey"


def test_the_odd_benchmark_is_singled_out(found):
    assert found.singled_out == ("t02",)
    assert "singled out: t02" in " ".join(found.sentences())
    assert found.to_frame().set_index("benchmark")["decision"].value_counts().to_dict() == {
        "follows": 7,
        "none found": 1,
    }


# ---------------------------------------------------------------------- invariances


def test_swapping_algorithms_levels_or_the_direction_changes_signs_only(runs, found):
    columns = ["contrast", "p_value", "singled_out"]
    want = found.to_frame()[columns]
    swapped = metafeature_outcomes(runs, algorithms=("A", "B"), metafeature="prior", n_draws=499, rng=1).to_frame()[
        columns
    ]
    pd.testing.assert_frame_equal(swapped.assign(contrast=-swapped["contrast"]), want)
    turned = metafeature_outcomes(
        runs, algorithms=("B", "A"), metafeature="prior", levels=("good", "bad"), n_draws=499, rng=1
    ).to_frame()
    assert turned["contrast"].to_numpy() == pytest.approx(-want["contrast"].to_numpy())
    up = as_runs(runs.to_frame().assign(loss=lambda d: -d["loss"]), direction="maximize")
    mirrored = metafeature_outcomes(up, algorithms=("B", "A"), metafeature="prior", n_draws=499, rng=1).to_frame()
    pd.testing.assert_frame_equal(mirrored[columns], want)


@pytest.mark.parametrize(
    "change",
    [
        lambda t: t,
        lambda t: t.sample(frac=1.0, random_state=5),
        lambda t: t.assign(loss=10.0 ** t["task"].str[1:].astype(int) * (t["loss"] + 100.0)),
        lambda t: t.assign(loss=t["loss"] + 7.0 * (t["prior"] == "good")),
    ],
    ids=["the same rng", "the order of rows", "unit and origin of a benchmark", "a shift of both at a level"],
)
def test_what_says_nothing_about_the_pair_changes_nothing(runs, found, change):
    changed = as_runs(change(runs.to_frame()))
    again = metafeature_outcomes(changed, algorithms=("B", "A"), metafeature="prior", n_draws=499, rng=1)
    pd.testing.assert_frame_equal(again.to_frame(), found.to_frame())


# ---------------------------------------------------------------------- designs


def test_ties_are_equal_and_a_difference_without_scatter_is_a_verdict():
    frame = table(np.random.default_rng(1), tasks=3, seeds=3, budgets=2)
    frame["loss"] = np.where((frame["tool"] == "B") & (frame["prior"] == "good"), 0.1 + 0.2, 0.3) * 3.0
    frame.loc[(frame["task"] == "t01") & (frame["tool"] == "B") & (frame["prior"] == "good"), "loss"] = 0.5
    result = metafeature_outcomes(as_runs(frame), algorithms=("B", "A"), metafeature="prior", n_draws=99, rng=1)
    assert result.to_frame()["contrast"].tolist() == [0.0, 1.0, 0.0]  # 0.1 + 0.2 is 0.3 to rounding
    assert result.instances["equal"].tolist() == [1.0, 1.0, 1.0, 0.0, 1.0, 1.0]


def test_without_budgets_there_is_one_point_per_instance():
    frame = table(np.random.default_rng(1), budgets=1).drop(columns="budget")
    result = metafeature_outcomes(
        as_runs(frame, budget=None), algorithms=("B", "A"), metafeature="prior", n_draws=99, rng=1
    )
    assert len(result.points) == 16
    with pytest.raises(lt.errors.ArgumentError, match="unit='budget' needs two or more budgets"):
        metafeature_outcomes(as_runs(frame, budget=None), algorithms=("B", "A"), metafeature="prior", unit="budget")


def test_budgets_that_differ_are_compared_where_all_runs_have_them():
    frame = table(np.random.default_rng(1))
    late = (frame["task"] == "t00") & (frame["tool"] == "A") & (frame["budget"] == 3)
    result = metafeature_outcomes(as_runs(frame[~late]), algorithms=("B", "A"), metafeature="prior", n_draws=99, rng=1)
    assert result.notes[0] == (
        "On 1 of 8 benchmarks the runs have different budgets; only those that all runs of a benchmark have are "
        "compared (3 of 4)."
    )
    budgets = result.points.groupby("benchmark")["budget"].max()
    assert budgets["t00"] == 2
    assert budgets["t01"] == 3


def test_instances_without_one_of_the_algorithms_are_left_out():
    frame = table(np.random.default_rng(1))
    gone = (frame["task"] == "t05") & (frame["tool"] == "A") & (frame["prior"] == "good")
    result = metafeature_outcomes(as_runs(frame[~gone]), algorithms=("B", "A"), metafeature="prior", n_draws=99, rng=1)
    assert "t05" not in set(result.to_frame()["benchmark"])
    assert result.notes[:2] == (
        "Left out, as one of the algorithms has fewer than two runs there: t05 at good.",
        "prior is constant on t05: no contrast there.",
    )


@pytest.mark.parametrize(
    "keep",
    [
        lambda d: (d["prior"] == "bad") | (d["seed"] > 0),  # seeds differ between levels
        lambda d: (d["tool"] == "A") | (d["seed"] > 0),  # and between algorithms
        lambda d: (d["tool"] == "A") == (d["seed"] % 2 == 0),  # no seed is shared
    ],
)
def test_seeds_need_not_be_shared(keep):
    frame = table(np.random.default_rng(1), seeds=20)
    result = metafeature_outcomes(
        as_runs(frame[keep(frame)]), algorithms=("B", "A"), metafeature="prior", n_draws=499, rng=1
    )
    assert result.singled_out == ("t02",)


def test_the_sign_flips_of_few_seeds_are_all_of_them():
    """Five seeds have 16 different patterns: the p-value is a share of these."""
    frame = table(np.random.default_rng(3), tasks=3, seeds=5, odd=(), between=0.0, effect=5.0)
    result = metafeature_outcomes(as_runs(frame), algorithms=("B", "A"), metafeature="prior", n_draws=4000, rng=1)
    assert result.notes[-1] == (
        "There are benchmarks with 5 seeds only, whose signs give 16 different tables, so small p-values are "
        "impossible there."
    )
    losses = pair_scores(as_runs(frame), ("B", "A"), "prior")[0]
    Y = losses - losses.mean(axis=3, keepdims=True)
    for b, p in enumerate(result.to_frame()["p_raw"]):
        means = losses[b].mean(axis=2)
        common = (means[:, 1] - means[:, 0]).mean(axis=0)
        observed, extreme = result.to_frame()["contrast"][b], 0
        for signs in itertools.product([-1, 1], repeat=5):
            r = np.array(signs)[:, None] * Y[b] * np.sqrt(5 / 4)
            t, pv = stats.ttest_ind(r[:, 1] + common, r[:, 0], axis=1)
            outcome = (np.sign(t) * (pv < 0.05)).mean(axis=1)
            extreme += abs(outcome[1] - outcome[0]) >= abs(observed) - 1e-9
        assert p == pytest.approx(extreme / 32, abs=4 * np.sqrt(0.25 / 4000) + 1e-3)


def test_several_scores_of_a_point_are_averaged():
    frame = table(np.random.default_rng(1))
    twice = pd.concat([frame.assign(loss=frame["loss"] - 1.0), frame.assign(loss=frame["loss"] + 1.0)])
    want = metafeature_outcomes(as_runs(frame), algorithms=("B", "A"), metafeature="prior", n_draws=99, rng=1)
    got = metafeature_outcomes(as_runs(twice), algorithms=("B", "A"), metafeature="prior", n_draws=99, rng=1)
    pd.testing.assert_frame_equal(got.to_frame(), want.to_frame())
    assert got.notes[0] == "1,024 points of a run have several scores; their mean was taken."


def test_three_levels_have_three_contrasts_each_and_are_singled_out_on_all():
    frame = table(np.random.default_rng(3), seeds=12, levels=("a", "b", "c"), effect=2.0)
    result = metafeature_outcomes(as_runs(frame), algorithms=("B", "A"), metafeature="prior", n_draws=999, rng=1)
    assert list(zip(result.overall["level"], result.overall["reference"], strict=True)) == [
        ("b", "a"),
        ("c", "a"),
        ("c", "b"),
    ]
    assert len(result.to_frame()) == 24
    assert result.singled_out == ("t02",)


def test_too_few_tables_for_the_adjustment_are_noted():
    frame = table(np.random.default_rng(3))
    result = metafeature_outcomes(as_runs(frame), algorithms=("B", "A"), metafeature="prior", n_draws=99, rng=1)
    assert result.notes[-2] == (
        "The smallest p-value that 99 tables can give is not significant after the adjustment: use n_draws of at "
        "least 320."
    )


def test_clusters_put_like_beside_like(found):
    assert sorted(found.order) == list(range(8))
    assert found.linkage.shape == (7, 4)
    assert found.order.index(2) in (0, 7)  # the odd one joins last


# ---------------------------------------------------------------------- what is refused


def analysis(runs, **options):
    return metafeature_outcomes(runs, **{"algorithms": ("B", "A"), "metafeature": "prior", "n_draws": 99, **options})


def test_unknown_names_are_refused_with_a_suggestion(runs):
    with pytest.raises(
        lt.errors.UnknownColumnError,
        match=re.escape(
            "metafeature names the column 'prio', which is not in the data. Metafeatures: prior. Did you mean 'prior'?"
        ),
    ):
        analysis(runs, metafeature="prio")
    with pytest.raises(
        lt.errors.ArgumentError,
        match=re.escape("algorithms names 'C', which is not an algorithm of the runs. Algorithms: A, B."),
    ):
        analysis(runs, algorithms=("A", "C"))
    with pytest.raises(lt.errors.ArgumentError, match="levels names 'goood', which is not a level of prior") as error:
        analysis(runs, levels=("bad", "goood"))
    assert "Did you mean 'good'?" in str(error.value)


@pytest.mark.parametrize("algorithms", ["A", ("A",), ("A", "A"), ("A", "B", "A")])
def test_two_algorithms_are_needed(runs, algorithms):
    with pytest.raises(lt.errors.ArgumentError, match="algorithms must name two different algorithms, got"):
        analysis(runs, algorithms=algorithms)


def test_roles_and_further_metafeatures_are_refused(runs):
    with pytest.raises(lt.errors.ArgumentError, match="metafeature must not be the seed column, got 'seed'"):
        analysis(runs, metafeature="seed")
    two = as_runs(runs.to_frame().assign(size=lambda d: d["seed"] % 2), metafeatures=("prior", "size"))
    assert refusal(lambda: analysis(two), lt.errors.ArgumentError) == (
        "metafeature 'prior' cannot be studied by itself: a further metafeature, 'size', varies within 8 of 8 "
        "benchmarks, and its levels would be mixed up. Take one of them, runs.filter(size=0) (8 of 8 benchmarks), or "
        "make one column of both."
    )


def test_one_level_is_refused(runs):
    with pytest.raises(lt.errors.ArgumentError, match="metafeature 'prior' has one level only, 'bad'"):
        analysis(runs.filter(prior="bad"))
    with pytest.raises(lt.errors.ArgumentError, match="metafeature 'prior' has one level only, 'good'"):
        analysis(runs, levels="good")


def test_a_metafeature_of_the_benchmark_is_refused_with_the_model_to_use(runs):
    frame = runs.to_frame()
    fixed = frame[(frame["prior"] == "bad") == frame["task"].isin(["t00", "t01", "t02"])]
    with pytest.raises(lt.errors.DataError, match="prior is constant within every benchmark") as error:
        analysis(as_runs(fixed))
    assert "fit_lmm('loss ~ tool * prior + (1 | task) + (1 | task:tool)', runs)" in str(error.value)


def test_an_algorithm_missing_on_a_level_is_refused(runs):
    frame = runs.to_frame()
    with pytest.raises(lt.errors.DataError, match="B has no run at prior=bad, so it cannot be compared there"):
        analysis(as_runs(frame[(frame["tool"] == "A") | (frame["prior"] == "good")]))


def test_one_seed_is_refused(runs):
    with pytest.raises(lt.errors.DataError, match="one run \\(seed\\) per algorithm and instance"):
        analysis(runs.filter(seed=0))


def test_budgets_that_nobody_shares_are_refused():
    frame = table(np.random.default_rng(1))
    frame["budget"] = np.arange(len(frame))
    with pytest.raises(lt.errors.DataError, match="No benchmark has a budget \\(budget\\) at which all runs"):
        analysis(as_runs(frame))


def test_runs_need_benchmark_and_seed(runs):
    frame = runs.to_frame()
    for role in ("benchmark", "seed"):
        with pytest.raises(lt.errors.ArgumentError, match=f"runs has no {role} column"):
            analysis(as_runs(frame, **{role: None}))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"test": "welch"}, "test must be 'two-sample' or 'paired', got 'welch'"),
        ({"unit": "seed"}, "unit must be 'run' or 'budget', got 'seed'"),
        ({"adjust": "tukey"}, "adjust='tukey' needs means with a common standard error"),
        ({"adjust": "dunnett"}, "adjust must be 'holm' or 'tukey'"),
        ({"alpha": 5}, "alpha must be a number between 0 and 1"),
        ({"n_draws": 10}, "n_draws must be a whole number of at least 99, got 10"),
    ],
)
def test_options_are_checked(runs, options, message):
    with pytest.raises(lt.errors.ArgumentError, match=re.escape(message)):
        analysis(runs, **options)


def test_benchmarks_whose_outcomes_are_at_their_ceiling_are_named():
    """The same effect on all benchmarks; on half of them B wins everywhere already at the first level."""
    rng = np.random.default_rng(6)
    names = ["task", "prior", "tool", "seed", "budget"]
    frame = pd.MultiIndex.from_product([range(8), range(2), range(2), range(20), range(4)], names=names)
    frame = frame.to_frame(index=False)
    t, p, a = (frame[c].to_numpy() for c in names[:3])
    advantage = np.where(t % 2 == 0, 20.0, 0.0) + 6.0 * p
    frame["loss"] = rng.normal(size=8)[t] - a * advantage + rng.normal(size=(8, 2, 2, 20))[t, p, a, frame["seed"]]
    frame = frame.assign(task="t" + frame["task"].astype(str), prior=frame["prior"].map({0: "bad", 1: "good"}))
    frame["tool"] = frame["tool"].map({0: "A", 1: "B"})
    result = metafeature_outcomes(as_runs(frame), algorithms=("B", "A"), metafeature="prior", n_draws=499, rng=1)
    contrasts = result.contrasts.set_index("benchmark")
    assert result.singled_out == ("t0", "t2", "t4", "t6")
    assert contrasts.index[contrasts["no_room"]].tolist() == ["t0", "t2", "t4", "t6"]
    assert (contrasts.loc["t0", "reference_outcome"], contrasts.loc["t0", "contrast"]) == (1.0, 0.0)
    assert result.sentences()[-1].startswith("Of these, t0, t2, t4 and t6 have no room for the mean contrast: at one")
    lower = frame.assign(loss=frame["loss"] + 20.0 * ((frame["task"] != "t0") & (t % 2 == 0) & (a == 1)))
    lower.loc[(lower["task"] == "t0") & (p == 1) & (a == 1), "loss"] += 26.0  # the only odd one, and not by a ceiling
    odd = metafeature_outcomes(as_runs(lower), algorithms=("B", "A"), metafeature="prior", n_draws=499, rng=1)
    assert odd.singled_out == ("t0",)
    assert "singled out: t0 (" in odd.sentences()[-1]
