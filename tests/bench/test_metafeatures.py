"""Outcomes by level of a metafeature: published numbers, closed forms, invariances, and what is refused."""

from __future__ import annotations

import itertools
import re

import numpy as np
import pandas as pd
import pytest
from pytest import approx
from refusals import refusal
from scipy import stats
from study import as_runs, make_runs

import lmemtest as lt
from lmemtest.bench.benchmark import observed_advantages
from lmemtest.bench.benchmark.metafeature_effect import metafeature_effect
from lmemtest.bench.benchmark.metafeature_outcomes import decided, metafeature_outcomes
from lmemtest.bench.benchmark.observed_advantages import interactions
from lmemtest.bench.benchmark.outcomes import instance_contrasts
from lmemtest.bench.benchmark.pair_scores import pair_scores
from lmemtest.errors import ArgumentError, DataError
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


def analysis(runs, **options):
    return metafeature_outcomes(runs, **{"algorithms": ("B", "A"), "metafeature": "prior", "n_draws": 99, **options})


@pytest.fixture(scope="module")
def runs() -> lt.Runs:
    return as_runs(table(np.random.default_rng(4), seeds=12))


@pytest.fixture(scope="module")
def found(runs):
    return analysis(runs, n_draws=499, rng=1)


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
    assert found.singled_out == ("t02",)
    assert "singled out: t02" in " ".join(found.sentences())
    assert sorted(found.to_frame()["decision"]) == ["follows"] * 7 + ["none found"]
    assert (sorted(found.order), found.linkage.shape) == (list(range(8)), (7, 4))
    assert found.order.index(2) in (0, 7)  # the odd one joins last


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


# ---------------------------------------------------------------------- invariances


def test_swapping_algorithms_levels_or_the_direction_changes_signs_only(runs, found):
    columns = ["contrast", "p_value", "singled_out"]
    want = found.to_frame()[columns]
    swapped = analysis(runs, algorithms=("A", "B"), n_draws=499, rng=1).to_frame()[columns]
    pd.testing.assert_frame_equal(swapped.assign(contrast=-swapped["contrast"]), want)
    turned = analysis(runs, levels=("good", "bad"), n_draws=499, rng=1).to_frame()
    assert turned["contrast"].to_numpy() == pytest.approx(-want["contrast"].to_numpy())
    up = as_runs(runs.to_frame().assign(loss=lambda d: -d["loss"]), direction="maximize")
    mirrored = analysis(up, n_draws=499, rng=1).to_frame()
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
    again = analysis(changed, n_draws=499, rng=1)
    pd.testing.assert_frame_equal(again.to_frame(), found.to_frame())


# ---------------------------------------------------------------------- designs


def test_ties_are_equal_and_a_difference_without_scatter_is_a_verdict():
    frame = table(np.random.default_rng(1), tasks=3, seeds=3, budgets=2)
    frame["loss"] = np.where((frame["tool"] == "B") & (frame["prior"] == "good"), 0.1 + 0.2, 0.3) * 3.0
    frame.loc[(frame["task"] == "t01") & (frame["tool"] == "B") & (frame["prior"] == "good"), "loss"] = 0.5
    result = analysis(as_runs(frame), rng=1)
    assert result.to_frame()["contrast"].tolist() == [0.0, 1.0, 0.0]  # 0.1 + 0.2 is 0.3 to rounding
    assert result.instances["equal"].tolist() == [1.0, 1.0, 1.0, 0.0, 1.0, 1.0]


def test_without_budgets_there_is_one_point_per_instance():
    frame = table(np.random.default_rng(1), budgets=1).drop(columns="budget")
    result = analysis(as_runs(frame, budget=None), rng=1)
    assert len(result.points) == 16
    with pytest.raises(lt.errors.ArgumentError, match="unit='budget' needs two or more budgets"):
        metafeature_outcomes(as_runs(frame, budget=None), algorithms=("B", "A"), metafeature="prior", unit="budget")


def test_budgets_that_differ_are_compared_where_all_runs_have_them():
    frame = table(np.random.default_rng(1))
    late = (frame["task"] == "t00") & (frame["tool"] == "A") & (frame["budget"] == 3)
    result = analysis(as_runs(frame[~late]), rng=1)
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
    result = analysis(as_runs(frame[~gone]), rng=1)
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
    result = analysis(as_runs(frame), n_draws=4000, rng=1)
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
    want = analysis(as_runs(frame), rng=1)
    got = analysis(as_runs(twice), rng=1)
    pd.testing.assert_frame_equal(got.to_frame(), want.to_frame())
    assert got.notes[0] == "1,024 points of a run have several scores; their mean was taken."


def test_three_levels_have_three_contrasts_each_and_are_singled_out_on_all():
    frame = table(np.random.default_rng(3), seeds=12, levels=("a", "b", "c"), effect=2.0)
    result = analysis(as_runs(frame), n_draws=999, rng=1)
    assert (result.overall["level"] + result.overall["reference"]).tolist() == ["ba", "ca", "cb"]
    assert len(result.to_frame()) == 24
    assert result.singled_out == ("t02",)
    few = "The smallest p-value that 99 tables can give is not significant after the adjustment: use n_draws of at "
    assert analysis(as_runs(table(np.random.default_rng(3))), rng=1).notes[-2] == f"{few}least 320."


# ---------------------------------------------------------------------- what is refused


def test_further_metafeatures_are_refused(runs):
    two = as_runs(runs.to_frame().assign(size=lambda d: d["seed"] % 2), metafeatures=("prior", "size"))
    assert refusal(lambda: analysis(two)) == (
        "metafeature 'prior' cannot be studied by itself: a further metafeature, 'size', varies within 8 of 8 "
        "benchmarks, and its levels would be mixed up. Take one of them, runs.filter(size=0) (8 of 8 benchmarks), or "
        "make one column of both."
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metafeature": "prio"}, "metafeature names the column 'prio', which is not in the data. Metafeatures: prior. "
         "Did you mean 'prior'?"),
        ({"metafeature": "seed"}, "metafeature must not be the seed column, got 'seed'"),
        ({"algorithms": ("A", "C")}, "algorithms names 'C', which is not an algorithm of the runs. Algorithms: A, B."),
        *[({"algorithms": names}, "algorithms must name two different algorithms, got")
          for names in ("A", ("A",), ("A", "A"), ("A", "B", "A"))],
        ({"levels": ("bad", "goood")}, "levels names 'goood', which is not a level of prior"),
        ({"levels": "good"}, "metafeature 'prior' has one level only, 'good'"),
        ({"test": "welch"}, "test must be 'two-sample' or 'paired', got 'welch'"),
        ({"unit": "seed"}, "unit must be 'run' or 'budget', got 'seed'"),
        ({"adjust": "tukey"}, "adjust='tukey' needs means with a common standard error"),
        ({"adjust": "dunnett"}, "adjust must be 'holm' or 'tukey'"),
        ({"alpha": 5}, "alpha must be a number between 0 and 1"),
        ({"n_draws": 10}, "n_draws must be a whole number of at least 99, got 10"),
    ],
)  # fmt: skip
def test_options_are_checked(runs, options, message):
    words = refusal(lambda: analysis(runs, **options))
    assert message in words
    assert ("Did you mean 'good'?" in words) == ("goood" in message)


@pytest.mark.parametrize(
    ("change", "roles", "message"),
    [
        (lambda d: d[d["prior"] == "bad"], {}, "metafeature 'prior' has one level only, 'bad'"),
        (lambda d: d[(d["prior"] == "bad") == d["task"].isin(["t00", "t01", "t02"])], {},
         "fit_lmm('loss ~ tool * prior + (1 | task) + (1 | task:tool)', runs)"),
        (lambda d: d[(d["tool"] == "A") | (d["prior"] == "good")], {},
         "B has no run at prior=bad, so it cannot be compared there"),
        (lambda d: d[d["seed"] == 0], {}, "one run (seed) per algorithm and instance"),
        (lambda d: d.assign(budget=np.arange(len(d))), {}, "No benchmark has a budget (budget) at which all runs"),
        (lambda d: d, {"benchmark": None}, "runs has no benchmark column"),
        (lambda d: d, {"seed": None}, "runs has no seed column"),
    ],
)  # fmt: skip
def test_tables_without_an_answer_are_refused(runs, change, roles, message):
    assert message in refusal(lambda: analysis(as_runs(change(runs.to_frame()), **roles)))


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
    result = analysis(as_runs(frame), n_draws=499, rng=1)
    contrasts = result.contrasts.set_index("benchmark")
    assert result.singled_out == ("t0", "t2", "t4", "t6")
    assert contrasts.index[contrasts["no_room"]].tolist() == ["t0", "t2", "t4", "t6"]
    assert (contrasts.loc["t0", "reference_outcome"], contrasts.loc["t0", "contrast"]) == (1.0, 0.0)
    assert result.sentences()[-1].startswith("Of these, t0, t2, t4 and t6 have no room for the mean contrast: at one")
    lower = frame.assign(loss=frame["loss"] + 20.0 * ((frame["task"] != "t0") & (t % 2 == 0) & (a == 1)))
    lower.loc[(lower["task"] == "t0") & (p == 1) & (a == 1), "loss"] += 26.0  # the only odd one, and not by a ceiling
    odd = analysis(as_runs(lower), n_draws=499, rng=1)
    assert odd.singled_out == ("t0",)
    assert "singled out: t0 (" in odd.sentences()[-1]


# ---------------------------------------------------------------------- outcome contrasts


PAIR = ("HB+prior", "HB")


@pytest.fixture(scope="module")
def bundled() -> lt.Runs:
    return lt.datasets.load_hpo_runs()


def with_metafeatures(runs: lt.Runs, *names: str, **columns: object) -> lt.Runs:
    return lt.Runs(runs.to_frame().assign(**columns), **{**runs.roles(), "metafeatures": names})


# ---------------------------------------------------------------------- further metafeatures


def test_a_further_metafeature_that_is_constant_within_benchmarks_changes_nothing(bundled):
    further = with_metafeatures(bundled, "prior", "model", "dataset")
    want = metafeature_outcomes(bundled, PAIR, "prior", n_draws=199, rng=0)
    got = metafeature_outcomes(further, PAIR, "prior", n_draws=199, rng=0)
    pd.testing.assert_frame_equal(got.to_frame(), want.to_frame())
    assert got.notes == want.notes
    models = [
        metafeature_effect(runs.filter(budget=8), algorithms=PAIR, metafeature="prior", rng=1)
        for runs in (further, bundled)
    ]
    pd.testing.assert_frame_equal(models[0].to_frame(), models[1].to_frame())


def test_one_that_varies_for_other_algorithms_or_levels_only_changes_nothing(bundled):
    other = lambda d: np.where((d["algorithm"] == "RS") & (d["seed"] % 2 == 0), "x", "y")  # noqa: E731
    got = metafeature_outcomes(
        with_metafeatures(bundled, "prior", "machine", machine=other), PAIR, "prior", n_draws=199
    )
    assert len(got.to_frame()) == 20


@pytest.mark.parametrize(("further", "values", "words"), [
    ("machine", lambda d: np.where((d["model"] == "svm") & (d["seed"] % 2 == 0), "a", "z"),
     "varies within 4 of 20 benchmarks, and its levels would be mixed up. Take one of them, "
     "runs.filter(machine='z') (20 of 20 benchmarks), or make one column of both."),
    ("strength", lambda d: d["prior"].map({"bad": 0.1, "good": 0.9}),
     "varies within 20 of 20 benchmarks, and prior never changes while it stays the same. Make one column of both, or "
     "name one of them only: Runs(..., metafeatures=...)."),
])  # fmt: skip
def test_one_that_varies_within_benchmarks_is_refused_with_a_filter_that_leaves_most_if_any(
    bundled, further, values, words
):
    runs = with_metafeatures(bundled, "prior", further, **{further: values})
    assert refusal(lambda: metafeature_outcomes(runs, PAIR, "prior"), ArgumentError) == (
        f"metafeature 'prior' cannot be studied by itself: a further metafeature, '{further}', {words}"
    )


def test_a_metafeature_of_the_benchmark_is_refused_for_that_and_not_for_the_others(bundled):
    further = with_metafeatures(bundled, "prior", "model")
    with pytest.raises(DataError, match=r"^model is constant within every benchmark \(benchmark\)"):
        metafeature_outcomes(further, PAIR, "model")


# ---------------------------------------------------------------------- random signs


def test_positions_are_names_and_the_question_has_one_name(bundled):
    runs = bundled.filter(model=["forest", "svm"])
    first = metafeature_effect(runs, PAIR, "prior", method="outcomes", rng=0)
    named = metafeature_outcomes(runs, algorithms=PAIR, metafeature="prior", n_draws=9999, rng=0)
    pd.testing.assert_frame_equal(first.to_frame(), named.to_frame())
    assert first.to_frame()["p_raw"].min() == 1e-4  # (1 + 0) / (9999 + 1)


def contrasts(*p: float, adjusted: tuple[float, ...] | None = None, sign: float = 1.0) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "benchmark": [f"b{i}" for i in range(len(p))],
            "level": "good",
            "reference": "bad",
            "contrast": sign * np.ones(len(p)),
            "p_raw": p,
            "p_value": p if adjusted is None else adjusted,
        }
    )


OVERALL = pd.DataFrame({"level": ["good"], "reference": ["bad"], "contrast": [1.0], "p_value": [0.001]})


@pytest.mark.parametrize(
    ("table", "close"),
    [
        (contrasts(0.001, 0.03, 0.2), None),
        # the binomial standard error of 0.0101 is 0.001, five times that after adjustment
        (contrasts(0.0101, 0.5, adjusted=(0.0505, 1.0)), "b0 (adjusted p = 0.051, limit 0.05, error 0.01)"),
        (contrasts(0.103, adjusted=(0.9,)), "b0 (unadjusted p = 0.103, limit 0.1, error 0.0061)"),
        (contrasts(0.103, adjusted=(0.9,), sign=-1.0), None),
        (contrasts(0.052, adjusted=(0.9,), sign=-1.0), "b0 (unadjusted p = 0.052, limit 0.05, error 0.0044)"),
        (contrasts(0.108, adjusted=(0.9,)), None),
    ],
)
def test_p_values_within_their_monte_carlo_error_of_a_limit_are_noted(table, close):
    notes = decided(table, OVERALL, 0.05, 9999)[1]
    if close is None:
        assert notes == []
    else:
        assert notes == [
            "Close calls, which other random signs could change: the Monte Carlo error of a p-value (two standard "
            f"errors, n_draws=9,999) reaches the limit it is compared with: {close}. A larger n_draws settles it."
        ]


def test_verdicts_that_change_with_the_signs_are_among_the_close_calls(bundled):
    found = [metafeature_outcomes(bundled, PAIR, "prior", n_draws=1999, rng=seed) for seed in range(6)]
    verdicts = pd.DataFrame([result.contrasts.set_index("benchmark")["decision"] for result in found])
    changing = [name for name in verdicts if verdicts[name].nunique() > 1]
    assert changing
    for name in changing:
        assert any(re.search(rf"Close calls.* {name} \(", result.notes[-1]) for result in found)


def test_contrasts_of_several_pairs_are_named_with_their_levels():
    table = pd.concat([contrasts(0.05), contrasts(0.5).assign(reference="none")], ignore_index=True)
    overall = pd.concat([OVERALL, OVERALL.assign(reference="none")], ignore_index=True)
    (note,) = decided(table, overall, 0.05, 9999)[1]
    assert ": b0, good - bad (adjusted p = 0.050, limit 0.05, error 0.0044). " in note


def test_without_random_signs_there_is_no_such_note(bundled):
    found = metafeature_outcomes(bundled, PAIR, "prior", unit="budget")
    assert not any(note.startswith("Close calls") for note in found.notes)


def test_pairs_without_a_common_seed_have_no_outcomes(bundled):
    frame = bundled.to_frame()
    apart = frame.assign(seed=frame["seed"] + 1000 * (frame["algorithm"] == PAIR[0]))
    runs = lt.Runs(apart, **bundled.roles())
    with pytest.raises(
        DataError, match=r"have outcomes at two levels on no benchmark\. test='paired' takes runs of both"
    ):
        metafeature_outcomes(runs, PAIR, "prior", test="paired", n_draws=99)


# ---------------------------------------------------------------------- instance contrasts


def made(rng, effects, *, seeds=40, budgets=1, correlation=0.9):
    """Runs at one level each of two benchmarks and more, with an advantage of the first algorithm."""
    m = len(effects)
    shared = rng.normal(size=(m, 1, 2, seeds, 1)) * np.sqrt(correlation)
    scores = shared + rng.normal(size=(m, 1, 2, seeds, budgets)) * np.sqrt(1.0 - correlation)
    scores[:, :, 0] -= np.asarray(effects)[:, None, None, None]
    return scores, {"benchmark": tuple(f"b{i}" for i in range(m)), "level": ("x",)}


@pytest.mark.parametrize("test", ["two-sample", "paired"])
def test_errors_are_those_of_a_noncentral_t(test):
    """At one budget the outcome of repeated runs is that of a t-test whose noncentrality is the observed t."""
    n, seeds = 4000, 40
    losses, axes = made(np.random.default_rng(5), [0.0, 0.3, 0.55], seeds=seeds)
    found, _ = instance_contrasts(losses, axes, test=test, n_draws=n, rng=np.random.default_rng(0))
    for i, row in enumerate(found.to_dict("records")):
        first, second = losses[i, 0, 0, :, 0], losses[i, 0, 1, :, 0]
        result = (stats.ttest_rel if test == "paired" else stats.ttest_ind)(second, first)
        df = seeds - 1 if test == "paired" else 2 * seeds - 2
        critical = stats.t.ppf(0.975, df)
        better, worse = stats.nct.sf(critical, df, result.statistic), stats.nct.cdf(-critical, df, result.statistic)
        variance = better + worse - (better - worse) ** 2
        assert row["df"] == df
        assert row["outcome"] == np.sign(result.statistic) * (result.pvalue < 0.05)
        assert row["se"] == approx(np.sqrt(variance + 1.0 / (n + 1.0)), abs=0.04)


def test_certain_outcomes_have_the_error_of_what_was_not_seen():
    """All tables agree, and yet the error is not zero: 999 tables do not show that a thousandth would."""
    losses, axes = made(np.random.default_rng(1), [9.0, -9.0], budgets=3)
    instances, pairs = instance_contrasts(losses, axes, n_draws=999, rng=np.random.default_rng(0))
    assert instances["outcome"].tolist() == [1.0, -1.0]
    assert instances["se"].tolist() == approx([np.sqrt(1e-3)] * 2)
    row = pairs.iloc[0]
    assert (row["contrast"], row["se"]) == approx((2.0, np.sqrt(4e-3)))
    assert row["p_value"] < 1e-6


def test_pairs_are_those_of_games_and_howell():
    losses, axes = made(np.random.default_rng(3), [0.0, 0.4, 0.8, 2.0], budgets=4)
    instances, frame = instance_contrasts(losses, axes, rng=np.random.default_rng(0))
    k = len(instances)
    assert len(frame) == 6
    p = stats.studentized_range.sf(np.sqrt(2.0) * np.abs(frame["contrast"] / frame["se"]), k, frame["df"])
    assert frame["p_value"].tolist() == approx(p.tolist(), abs=1e-7)
    variance = instances["se"].to_numpy() ** 2
    i, j = frame["left"].to_numpy(), frame["right"].to_numpy()
    welch = (variance[i] + variance[j]) ** 2 / (variance[i] ** 2 / 78 + variance[j] ** 2 / 78)
    assert frame["df"].tolist() == approx(welch.tolist())
    excludes = (frame["ci_low"] > 0) | (frame["ci_high"] < 0)
    assert (excludes == (frame["p_value"] < 0.05)).all()


def test_budgets_of_the_same_runs_add_nothing():
    """Copies of a budget leave the errors as they are; budgets taken as a sample would shrink them by their root."""
    one = made(np.random.default_rng(8), [0.3, 0.5], correlation=1.0)
    many = made(np.random.default_rng(8), [0.3, 0.5], correlation=1.0, budgets=16)
    ours, theirs = (instance_contrasts(*p, n_draws=499, rng=np.random.default_rng(0))[1] for p in (one, many))
    assert ours["se"].tolist() == approx(theirs["se"].tolist())


def test_an_interaction_in_the_model_that_was_fitted_is_tested_in_this_fit(monkeypatch):
    """Another fit of the same model has the same test; a fit of another model is not taken."""
    runs = make_runs(2, 6, 2, priors=2)
    fit = lt.fit_lmm(lt.recommend(runs).formula, runs)
    smaller = lt.fit_lmm("loss ~ algorithm + prior + (1 | benchmark)", runs)
    alone = interactions(runs, ddf="satterthwaite")["prior"]
    assert interactions(runs, ddf="satterthwaite", fit=smaller)["prior"] == alone
    monkeypatch.setattr(observed_advantages, "fitted_quietly", None)
    assert interactions(runs, ddf="satterthwaite", fit=fit)["prior"] == alone


def test_a_metafeature_with_a_blank_in_its_name_is_tested():
    """Of five levels the recommended model has random effects, to which the interaction is added."""
    runs = make_runs(2, 6, 2, priors=5)
    named = lt.Runs(
        runs.to_frame().rename(columns={"prior": "my prior"}), **{**runs.roles(), "metafeatures": ["my prior"]}
    )
    assert "prior" not in lt.recommend(runs).spec.fixed_columns
    test, same = (interactions(of, ddf="satterthwaite") for of in (runs, named))
    assert test["prior"].reason == ""
    assert (same["my prior"].f_ratio, same["my prior"].df_den) == approx((test["prior"].f_ratio, test["prior"].df_den))
