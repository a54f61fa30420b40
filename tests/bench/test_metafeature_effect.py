"""One model for the metafeature: equal to the paired t-tests where these exist, pooled where it should be."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from refusals import refuses
from scipy import stats
from study import as_runs

import lmemtest as lt
from lmemtest.bench.benchmark.metafeature_effect import metafeature_effect
from lmemtest.lmm.intervals.partial_pooling import pool
from lmemtest.lmm.means.empirical_bayes import fit_scaled_f, squeeze


def table(
    rng: np.random.Generator,
    tasks: int = 12,
    seeds: int = 6,
    levels: tuple[str, ...] = ("bad", "good"),
    between: float = 0.8,
    effect: float = 1.0,
) -> pd.DataFrame:
    names = ["task", "prior", "tool", "seed", "budget"]
    axes = [range(tasks), range(len(levels)), range(2), range(seeds), range(3)]
    frame = pd.MultiIndex.from_product(axes, names=names).to_frame(index=False)
    t, p, a, s, f = (frame[c].to_numpy() for c in names)
    slope = between * rng.normal(size=(tasks, len(levels)))
    loss = rng.normal(size=tasks)[t] - a * (effect * p + slope[t, p]) - 0.2 * f
    loss = loss + 0.5 * rng.normal(size=(tasks, len(levels), 2, seeds))[t, p, a, s] + 0.2 * rng.normal(size=len(t))
    frame["task"] = [f"t{i:02d}" for i in t]
    frame["prior"] = [levels[i] for i in p]
    frame["tool"] = ["AB"[i] for i in a]
    return frame.assign(loss=loss)


def model(frame, **options):
    return metafeature_effect(as_runs(frame), **{"algorithms": ("B", "A"), "metafeature": "prior", "rng": 1, **options})


@pytest.fixture(scope="module")
def frame():
    return table(np.random.default_rng(2))


@pytest.fixture(scope="module")
def found(frame):
    return model(frame)


def differences(frame):
    """(tasks, levels): advantage of B over A, the difference of the means."""
    means = frame.groupby(["task", "prior", "tool"])["loss"].mean().unstack()
    return (means["A"] - means["B"]).unstack()


def test_over_benchmarks_the_model_is_the_t_test_of_the_benchmarks_differences(frame, found):
    d = differences(frame)
    want = stats.ttest_1samp(d["good"] - d["bad"], 0.0)
    row = found.overall.iloc[0]
    assert row["contrast"] == pytest.approx((d["good"] - d["bad"]).mean(), rel=1e-9)
    assert (row["t_ratio"], row["df"]) == pytest.approx((want.statistic, 11.0), rel=1e-4)
    assert row["p_value"] == pytest.approx(want.pvalue, rel=1e-3)


def test_the_advantage_at_each_level_is_the_t_test_there(frame, found):
    d = differences(frame)
    for row in found.advantages.to_dict("records"):
        want = stats.ttest_1samp(d[row["level"]], 0.0)
        assert row["advantage"] == pytest.approx(d[row["level"]].mean(), rel=1e-9)
        assert row["t_ratio"] == pytest.approx(want.statistic, rel=1e-3)


def test_raw_contrasts_are_those_of_the_means_and_predictions_are_drawn_to_the_mean(frame, found):
    d, got = differences(frame), found.to_frame()
    assert got["raw"].to_numpy() == pytest.approx((d["good"] - d["bad"]).to_numpy())
    drawn = (got["raw"] - got["contrast"]) / got["deviation"]  # towards the mean, and never beyond it
    assert (drawn > 0.0).all()
    assert got["contrast"].std() < got["raw"].std()
    mean = got["contrast"] - got["deviation"]
    assert mean.to_numpy() == pytest.approx(np.full(12, found.overall["contrast"].item()), rel=0.05)


def test_a_benchmarks_own_contrast_is_generalised_least_squares_on_dense_matrices():
    """Some seeds were run by one algorithm only: pairs and single runs count by the variances of the fit.

    The variance of what they add is as large as runs of that kind are at that level: squeezed over the benchmarks.
    """
    frame = table(np.random.default_rng(7), seeds=8)
    rng = np.random.default_rng(8)
    gone = {(f"t{i:02d}", tool, seed) for i in range(12) for tool in "AB" for seed in rng.choice(8, 2, replace=False)}
    frame = frame[[key not in gone for key in zip(frame["task"], frame["tool"], frame["seed"], strict=True)]]
    frame["loss"] += np.random.default_rng(9).normal(size=(12, 2, 8))[
        frame["task"].str[1:].astype(int), (frame["prior"] == "good").astype(int), frame["seed"]
    ]
    result = model(frame)
    run, seed = result.fit.scale, result.fit.covariances[-1][0, 0]
    assert seed > run > 0
    sign = {("bad", "A"): -1.0, ("bad", "B"): 1.0, ("good", "A"): 1.0, ("good", "B"): -1.0}
    estimates, parts, squares, df = [], [], [], []
    for _, part in frame.groupby("task"):
        means = part.groupby(["prior", "tool", "seed"])["loss"].mean().reset_index()
        X = pd.get_dummies(means["prior"] + means["tool"]).astype(float)
        same = (means["prior"] + means["seed"].astype(str)).to_numpy()
        V = run * np.eye(len(means)) + seed * (same[:, None] == same)
        L = np.array([sign[name[:-1], name[-1]] for name in X.columns])
        weight = np.linalg.solve(V, X.to_numpy()) @ np.linalg.inv(X.T @ np.linalg.solve(V, X)) @ L
        estimates.append(weight @ means["loss"])
        shared = (means.groupby(["prior", "seed"])["tool"].transform("size") == 2).to_numpy()
        for prior in ("good", "bad"):
            here = (means["prior"] == prior).to_numpy()
            kinds = [here & shared, *(here & ~shared & (means["tool"] == tool).to_numpy() for tool in "BA")]
            parts.append([weight[k] @ V[np.ix_(k, k)] @ weight[k] for k in kinds])
            wide = means[kinds[0]].pivot(index="seed", columns="tool", values="loss")
            values = [wide["A"] - wide["B"], *(means["loss"][k] for k in kinds[1:])]
            unit = [2.0 * run, run + seed, run + seed]
            squares.append([((v - v.mean()) ** 2).sum() / u for v, u in zip(values, unit, strict=True)])
            df.append([max(len(v) - 1.0, 0.0) for v in values])
    parts, squares, df = (np.array(x).reshape(12, 6) for x in (parts, squares, df))
    ratio, freedom = np.empty((2, 12, 6))
    for i in range(6):
        mean = squares[:, i].sum() / df[:, i].sum()
        d, own = np.maximum(df[:, i], 1.0), squares[:, i] / np.maximum(df[:, i], 1.0)
        own[df[:, i] <= 0] = np.nan
        s0, d0 = fit_scaled_f(np.fmax(own, 0.02 * mean), d)
        s0 = s0 if np.isfinite(d0) else mean
        value, free = squeeze(np.where(np.isnan(own), s0, own), d, s0, d0, among=12)
        ratio[:, i], freedom[:, i] = np.maximum(value, mean), np.minimum(free, df[:, i].sum())
    variances = (parts * ratio).sum(axis=1)
    values, deviations, own_share = pool(
        estimates, variances, variances**2 / ((parts * ratio) ** 2 / freedom).sum(axis=1)
    )
    got = result.to_frame()
    assert got["contrast"].to_numpy() == pytest.approx(values.mean, rel=1e-6)
    assert got["se"].to_numpy() == pytest.approx(values.sd, rel=1e-6)
    assert got["own_share"].to_numpy() == pytest.approx(own_share, rel=1e-6)
    assert got["deviation"].to_numpy() == pytest.approx(deviations.mean, rel=1e-5)
    each = 1.0 - 0.95 ** (1 / 12)
    assert got["ci_low"].to_numpy() == pytest.approx(values.quantile(each / 2), rel=1e-5)
    assert got["p_value"].to_numpy() == pytest.approx(1.0 - (1.0 - values.p_value()) ** 12, rel=1e-5)


def test_where_runs_are_alike_everywhere_the_variance_is_the_mean_square():
    """Each benchmark at each level the same scatter: the pooled t interval of the differences, without any sharing."""
    frame = table(np.random.default_rng(3), seeds=5, between=30.0)
    noise = frame["loss"] - frame.groupby(["task", "prior", "tool"])["loss"].transform("mean")
    noise = noise.groupby(frame["tool"] + frame["seed"].astype(str) + frame["budget"].astype(str)).transform("first")
    frame["loss"] += noise - (frame["loss"] - frame.groupby(["task", "prior", "tool"])["loss"].transform("mean"))
    frame["seed"] += 10 * (frame["tool"] == "B")
    got = model(frame).to_frame()
    runs = frame.groupby(["task", "prior", "tool", "seed"])["loss"].mean().unstack(["prior", "tool"])
    square = runs.groupby(level=0).var().iloc[0].groupby(level="tool").first()
    se = np.sqrt(2.0 * (square["A"] + square["B"]) / 5.0)
    assert got["own_share"].min() > 0.999
    assert got["se"].to_numpy() == pytest.approx(np.full(12, se), rel=1e-2)


def test_the_noise_of_each_level_is_its_own():
    """Few seeds at the noisier level: one variance of all runs would be far too small for it."""
    frame = table(np.random.default_rng(4), tasks=6, seeds=8, between=0.0)
    few = frame[(frame["prior"] == "bad") | (frame["seed"] < 2)].copy()
    run = few.groupby(["task", "prior", "tool", "seed"]).ngroup()
    extra = np.random.default_rng(5).normal(size=run.max() + 1)[run]
    few["loss"] += np.where(few["prior"] == "good", 3.0 * extra, 0.0)
    few["seed"] += 10 * (few["tool"] == "B")
    found = model(few)
    few_se = found.to_frame()["se"] / found.to_frame()["own_share"] ** 0.5
    runs = few.groupby(["task", "prior", "tool", "seed"])["loss"].mean()
    level = runs.groupby(level=[0, 1, 2]).var().groupby(level="prior").mean()
    want = np.sqrt(2.0 * level["bad"] / 8.0 + 2.0 * level["good"] / 2.0)
    pooled = np.sqrt(found.fit.scale * (2.0 / 8.0 + 2.0 / 2.0))
    assert (few_se > 0.9 * want).all()
    assert want > 1.5 * pooled


def test_advantages_that_go_together_do_not_make_contrasts_look_known():
    """Where advantages at two levels have an estimated correlation of one, errors of predictions go to nothing."""
    rng, singular = np.random.default_rng(0), 0
    for _ in range(6):
        frame = pd.MultiIndex.from_product(
            [range(12), range(2), range(2), range(5)], names=["task", "prior", "tool", "seed"]
        ).to_frame(index=False)
        t, p, a = (frame[c].to_numpy() for c in ("task", "prior", "tool"))
        advantage, contrast = 0.3 * rng.normal(size=12), 0.5 + 0.1 * rng.normal(size=12)
        frame["loss"] = (a - 0.5) * (advantage[t] + (p - 0.5) * contrast[t]) + 0.3 * rng.normal(size=len(frame))
        runs = as_runs(frame.assign(tool=np.array(["A", "B"])[a], prior=np.array(["bad", "good"])[p]), budget=None)
        result = metafeature_effect(runs, algorithms=("A", "B"), metafeature="prior", rng=1)
        singular += result.fit.is_singular
        got = result.to_frame()
        assert ((got["ci_low"] <= contrast) & (contrast <= got["ci_high"])).all()
        between = (got["contrast"] - got["raw"]) * got["deviation"]
        assert (between <= 1e-9).all()
    assert singular >= 2


def test_intervals_and_p_values_agree(found):
    for table_ in (found.overall, found.advantages, found.to_frame()):
        excludes = (table_["ci_low"] > 0) | (table_["ci_high"] < 0)
        assert (excludes == (table_["p_value"] < 0.05)).all()


def test_a_benchmark_without_the_effect_is_singled_out():
    frame = table(np.random.default_rng(5), seeds=20, between=0.1, effect=2.0)
    odd = (frame["task"] == "t04") & (frame["tool"] == "B") & (frame["prior"] == "good")
    frame.loc[odd, "loss"] += 2.4
    result = model(frame)
    assert result.singled_out == ("t04",)
    assert result.to_frame().set_index("benchmark")["p_others"]["t04"] < 0.05
    assert "singled out: t04" in " ".join(result.sentences())


def test_swapping_algorithms_and_levels_changes_signs(frame, found):
    want = found.to_frame()
    swapped = model(frame, algorithms=("A", "B")).to_frame()
    assert swapped["contrast"].to_numpy() == pytest.approx(-want["contrast"].to_numpy(), rel=1e-5)
    turned = model(frame, levels=("good", "bad")).to_frame()
    assert turned["contrast"].to_numpy() == pytest.approx(-want["contrast"].to_numpy(), rel=1e-5)
    assert turned["se"].to_numpy() == pytest.approx(want["se"].to_numpy(), rel=1e-4)


def test_a_linear_change_of_the_score_scales_the_answer(frame, found):
    scaled = model(frame.assign(loss=1000.0 * frame["loss"] - 5.0)).to_frame()
    want = found.to_frame()
    assert scaled["ci_low"].to_numpy() == pytest.approx(1000.0 * want["ci_low"].to_numpy(), rel=1e-4)


def test_numbers_as_names_and_a_column_called_half_are_no_trouble(frame, found):
    codes = frame.assign(
        task=frame["task"].str[1:].astype(int), prior=(frame["prior"] == "good") * 25.0, half=frame["seed"]
    ).drop(columns="seed")
    result = metafeature_effect(as_runs(codes, seed="half"), algorithms=("B", "A"), metafeature="prior", rng=1)
    assert result.overall["contrast"].item() == pytest.approx(found.overall["contrast"].item())
    assert "half_" in result.formula
    assert result.levels == (0.0, 25.0)


def test_five_levels_share_one_variance():
    result = model(table(np.random.default_rng(3), levels=tuple("abcde")))
    assert result.formula == (
        "loss ~ tool + prior + tool:prior + (1 | task) + (1 | task:prior) + (0 + half | task) + (0 + half | task:prior)"
        " + (1 | task:prior:seed)"
    )
    assert len(result.overall) == 10
    assert len(result.to_frame()) == 120
    assert any(
        note.startswith("The 120 intervals of the benchmarks are simultaneous by Šidák") for note in result.notes
    )


def test_each_benchmark_has_its_noise_and_the_option_gives_it_to_the_model_as_well(frame):
    noisy = frame.copy()
    rng = np.random.default_rng(1)
    rows = (noisy["task"] == "t00").to_numpy()
    noisy.loc[rows, "loss"] += 5.0 * rng.normal(size=rows.sum())
    one, own = model(noisy), model(noisy, dispersion="benchmark")
    for found in (one, own):
        share = found.to_frame().set_index("benchmark")["own_share"]
        assert share["t00"] < 0.5 * share.drop("t00").min()
    assert own.fit.residual_variances["t00"] > 10.0 * own.fit.residual_variances["t01"]


def test_benchmarks_that_do_not_differ_are_not_singled_out_and_the_contrast_is_known():
    for seed in range(4):
        result = model(table(np.random.default_rng(seed), between=0.0))
        assert result.singled_out == ()
        assert result.overall["p_value"].item() < 0.001
        got = result.to_frame()
        assert got["contrast"].to_numpy() == pytest.approx(result.overall["contrast"].item(), abs=0.5)
        assert (got["own_share"] < 0.5).all()
        assert (got["se"] > 0).all()


def test_seeds_that_are_hardly_shared_do_not_make_the_noise_unknown(frame, found):
    """One common seed per benchmark: the other runs tell the noise all the same."""
    moved = frame.assign(seed=frame["seed"] + 5 * (frame["tool"] == "B"))
    wide = [table["ci_high"] - table["ci_low"] for table in (found.to_frame(), model(moved).to_frame())]
    assert (wide[1] / wide[0]).to_numpy() == pytest.approx(np.ones(12), abs=0.25)


def shifted(frame):
    """B is A plus a number of the task and the prior: where runs are paired, the difference is the same."""
    shift = 0.1 * frame["task"].str[1:].astype(int) + (frame["prior"] == "good")
    paired = frame.groupby(["task", "prior", "seed", "budget"])["loss"].transform("first")
    return frame.assign(loss=paired + shift * (frame["tool"] == "B"))


def constant(frame):
    return frame.assign(loss=frame.groupby(["task", "prior", "tool"])["loss"].transform("mean"))


WITHOUT_CHANCE = {
    "equal on each instance": constant,
    "and no seed in common": lambda frame: constant(frame.assign(seed=frame["seed"] + 9 * (frame["tool"] == "B"))),
    "paired, with one difference": shifted,
    "some paired": lambda frame: shifted(frame).query("seed != 0 or tool != 'B'").query("seed != 1 or tool != 'A'"),
}


@pytest.mark.parametrize("dispersion", [None, "benchmark"])
@pytest.mark.parametrize("table", WITHOUT_CHANCE)
def test_runs_without_chance_are_refused_before_a_fit_could_round_to_an_answer(frame, table, dispersion):
    message = "the difference between B and A does not vary between runs, so there is nothing to judge it by"
    refuses(lt.errors.DesignError, message, model, WITHOUT_CHANCE[table](frame), dispersion=dispersion)


def test_names_that_need_backticks_are_no_trouble(frame, found):
    for name in ("rnd seed", "se:ed", "tool:task"):
        renamed = frame.rename(columns={"seed": name})
        got = metafeature_effect(as_runs(renamed, seed=name), algorithms=("B", "A"), metafeature="prior", rng=1)
        pd.testing.assert_frame_equal(got.to_frame(), found.to_frame())


def test_what_is_refused(frame):
    refuses(lt.errors.DataError, "needs three or more, there are 2", model, frame[frame["task"] < "t02"])
    with pytest.raises(lt.errors.ArgumentError, match="dispersion must be 'benchmark' or None, got 'seed'"):
        model(frame, dispersion="seed")
    refuses(lt.errors.ArgumentError, "algorithms names 'X'", model, frame, algorithms=("A", "X"))


def test_the_summary_says_what_was_done(found):
    text = found.summary()
    assert "mean score of each run over the budgets, REML" in text
    assert found.rule in text
    assert found.sentences()[-1] in text
