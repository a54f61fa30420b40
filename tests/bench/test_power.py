"""Power: R's power.t.test, other integrals, the engine's own fits, and invariance."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from pytest import approx
from refusals import refusal, refuses
from scipy import integrate, stats
from study import make_runs

import lmemtest as lt
from lmemtest.bench.power import draw as planned_study
from lmemtest.bench.power import power as power_module
from lmemtest.bench.power.draw import (
    STUDY_DDF,
    StudyDesign,
    compare,
    compare_by_engine,
    operating,
    smallest_count,
    study_draw,
)
from lmemtest.bench.power.power import POWER_ADJUSTMENTS, power
from lmemtest.bench.power.variance_components import Pilot, VarianceComponents, as_components
from lmemtest.errors import ArgumentError, EstimationError, UnknownColumnError

PLAN = VarianceComponents(interaction_sd=0.02, residual_sd=0.03, seed_sd=0.01)


def closed(plan=PLAN, **options):
    given = {"effect": 0.01, "n_benchmarks": [12, 50], "n_seeds": [2, 5], "method": "closed_form"} | options
    return power(plan, **given)


def simulated(plan=PLAN, **options):
    given = {"effect": 0.02, "n_benchmarks": [6, 12], "n_seeds": [1, 3], "n_draws": 60, "rng": 5} | options
    return power(plan, **given)


# ---------------------------------------------------------------------- closed form


def test_power_and_its_errors_are_those_of_r(reference):
    for want in reference("power")["designs"]:
        n, alpha = want["n"], want["alpha"]
        critical = StudyDesign(n_algorithms=2, n_benchmarks=n, n_seeds=1).critical(alpha, "tukey")
        chance, type_s, type_m = operating(want["delta"], want["sd"] / math.sqrt(n), n - 1, critical)
        # 2e-9: R's noncentral t distribution stops its series there
        assert chance == approx(want["power"], rel=2e-9)
        assert type_s == approx(want["type_s"], rel=1e-6, abs=1e-11)
        assert type_m == approx(want["type_m"], rel=1e-8)


def test_power_is_that_of_the_noncentral_t_distribution():
    for df, d in itertools.product([1, 2.5, 7, 40, 3000], [0.0, 0.4, 3.0]):
        critical = stats.t.isf(0.02, df)
        want = stats.nct.sf(critical, df, d) + stats.nct.cdf(-critical, df, d) if d else 0.04
        assert operating(d, 1.0, df, critical)[0] == approx(want, rel=1e-8)


@pytest.mark.parametrize(("effect", "se"), [(2.0, 8.1), (0.1, 3.28)])
def test_known_standard_errors_give_normal_integrals(effect, se):
    """The sizes of the two examples of Gelman and Carlin (2014)."""
    normal = stats.norm(effect, se)
    cut = 1.96 * se
    found, type_s, type_m = operating(effect, se, 1e8, 1.96)
    power = normal.sf(cut) + normal.cdf(-cut)
    tails = sum(integrate.quad(lambda x: abs(x) * normal.pdf(x), *ends)[0] for ends in [(cut, 90.0), (-90.0, -cut)])
    assert found == approx(power, rel=1e-6)
    assert type_s == approx(normal.cdf(-cut) / power, rel=1e-6)
    assert type_m == approx(tails / power / effect, rel=1e-6)


def test_without_an_effect_power_is_the_level_and_signs_are_a_coin():
    row = closed(effect=0).to_frame().iloc[0]
    assert row["power"] == approx(0.05, rel=1e-12)
    assert row["type_s"] == approx(0.5, rel=1e-12)
    assert math.isnan(row["type_m"])


def test_needed_benchmarks_are_those_of_r(reference):
    for want in reference("power")["needed"]:
        # one seed: a difference on one benchmark has variance 2 residual_sd^2 = 1
        plan = VarianceComponents(interaction_sd=0, residual_sd=math.sqrt(0.5))
        found = closed(plan, effect=want["delta"], n_benchmarks=5, n_seeds=1).needed(want["power"]).to_frame()
        assert found["n_benchmarks"].tolist() == [math.ceil(want["n"])]
        assert found["exact"][0] >= want["power"]


def test_detectable_effects_are_those_of_r(reference):
    for want in reference("power")["detectable"]:
        plan = VarianceComponents(interaction_sd=math.sqrt(0.25), residual_sd=math.sqrt(0.5))
        found = closed(plan, n_benchmarks=want["n"], n_seeds=2).detectable(want["power"]).to_frame()
        assert found["effect"][0] == approx(want["delta"], rel=1e-8)


def test_a_detectable_effect_is_found_with_that_power_and_needs_these_benchmarks():
    for adjust, k in itertools.product(POWER_ADJUSTMENTS, [2, 4]):
        plan = closed(adjust=adjust, n_algorithms=k, n_benchmarks=15, n_seeds=3)
        effect = plan.detectable(0.7).to_frame()["effect"][0]
        again = closed(adjust=adjust, n_algorithms=k, n_benchmarks=15, n_seeds=3, effect=effect * (1 + 1e-9))
        assert again.to_frame()["power"][0] == approx(0.7, rel=1e-6)
        assert again.needed(0.7).to_frame()["n_benchmarks"][0] == 15


def test_power_grows_with_benchmarks_seeds_and_effect():
    table = closed(n_benchmarks=range(2, 40, 3), n_seeds=[1, 2, 8]).to_frame()
    grid = table.pivot(index="n_benchmarks", columns="n_seeds", values="power").to_numpy()
    assert (np.diff(grid, axis=0) > 0).all()
    assert (np.diff(grid, axis=1) > 0).all()
    effects = [closed(effect=e, n_benchmarks=12, n_seeds=2).to_frame()["power"][0] for e in (0, 0.01, 0.02, 0.04)]
    assert effects == sorted(effects)
    overstated = closed(n_benchmarks=range(2, 40, 3), n_seeds=2).to_frame()["type_s"]
    assert overstated.is_monotonic_decreasing


def test_more_algorithms_cost_power_except_for_their_degrees_of_freedom():
    strict = [closed(n_algorithms=k, n_benchmarks=50, n_seeds=2).to_frame()["power"][0] for k in (2, 3, 6, 10)]
    assert strict == sorted(strict, reverse=True)
    free = [closed(n_algorithms=k, n_benchmarks=5, n_seeds=2, adjust="none").to_frame()["power"][0] for k in (2, 6)]
    assert free[1] > free[0]  # pooled over more algorithms, the variance is known better


def test_seeds_cannot_replace_benchmarks():
    needed = closed(n_seeds=[1, 10_000], n_benchmarks=5).needed()
    # R: power.t.test(delta = .01, sd = s, power = .8, type = "paired", strict = TRUE)$n
    # with s = sqrt(2 (.02^2 + .03^2)) and sqrt(2 .02^2): 205.99 and 64.74
    assert needed.to_frame()["n_benchmarks"].tolist() == [206, 65]
    assert "No number of seeds makes fewer than 65 benchmarks enough." in needed.notes


@pytest.mark.parametrize("guess", [None, 1, 2, 3, 16, 64, 999, 1000, 5000])
def test_a_search_finds_the_smallest_count(guess):
    for want in (2, 3, 4, 5, 17, 63, 64, 65, 999, 1000):
        assert smallest_count(lambda n, want=want: n >= want, first=2, guess=guess, most=1000) == want
    assert smallest_count(lambda n: n >= 1001, first=2, guess=guess, most=1000) is None


def test_an_effect_out_of_reach_says_so():
    found = closed(effect=1e-6, n_benchmarks=12, n_seeds=2)
    table = found.needed().to_frame()
    assert table[["n_benchmarks", "exact", "reached_at"]].isna().all(axis=None)
    assert "cannot be reached with 1,000,000 benchmarks" in found.sentences()[0]
    assert "Not even 1,000,000 benchmarks are enough." in found.needed().notes


# ---------------------------------------------------------------------- the short cut against the engine


@pytest.mark.daily(3)
@pytest.mark.parametrize("ddf", STUDY_DDF)
@pytest.mark.parametrize(("k", "b", "n"), [(2, 6, 3), (3, 5, 2), (4, 4, 1), (2, 2, 3)])
def test_pooling_mean_squares_is_what_the_engine_does(k, b, n, ddf):
    rng = np.random.default_rng(8)
    seen = set()
    for interaction in (0.0, 0.5):
        plan = VarianceComponents(interaction_sd=interaction, residual_sd=1.0, seed_sd=0.3)
        draw = study_draw(StudyDesign(n_algorithms=k, n_benchmarks=b, n_seeds=n), plan, effect=0.5)
        for _ in range(6):
            y = draw(rng)
            estimate, se, df, no_interaction = compare(y, test="mixed", ddf=ddf)
            by_engine = compare_by_engine(y, ddf=ddf)
            assert estimate == approx(by_engine[0], rel=1e-9)
            assert se == approx(by_engine[1], rel=1e-6)
            # the engine differentiates its gradient numerically, which costs digits near a boundary
            assert df == approx(by_engine[2], rel=5e-3)
            assert no_interaction == by_engine[3]
            seen.add(no_interaction)
    assert seen == ({True, False} if n > 1 else {False})


def test_the_engine_takes_over_where_the_benchmark_variance_is_zero(monkeypatch):
    calls = []
    monkeypatch.setattr(
        planned_study, "compare_by_engine", lambda y, *, ddf: calls.append(ddf) or compare(y, test="means", ddf=ddf)
    )
    plan = VarianceComponents(interaction_sd=0.5, residual_sd=1.0, benchmark_sd=0.0)
    draw = study_draw(StudyDesign(n_algorithms=2, n_benchmarks=6, n_seeds=3), plan, effect=0.5)
    rng = np.random.default_rng(1)
    for _ in range(40):
        compare(draw(rng), test="mixed", ddf="satterthwaite")
    assert 5 < len(calls) < 40


def test_the_test_on_means_of_two_algorithms_is_the_paired_t_test():
    rng = np.random.default_rng(3)
    draw = study_draw(StudyDesign(n_algorithms=2, n_benchmarks=9, n_seeds=4), PLAN, effect=0.01)
    y = draw(rng)
    estimate, se, df, _ = compare(y, test="means", ddf="satterthwaite")
    want = stats.ttest_rel(y[:, 0].mean(axis=1), y[:, 1].mean(axis=1))
    assert estimate / se == approx(want.statistic, rel=1e-10)
    assert df == want.df


def test_a_regular_mixed_fit_gives_the_t_of_the_means():
    draw = study_draw(StudyDesign(n_algorithms=3, n_benchmarks=8, n_seeds=3), PLAN, effect=0.01)
    rng = np.random.default_rng(4)
    tables = [draw(rng) for _ in range(20)]
    regular = 0
    for y in tables:
        mixed, means = (compare(y, test=test, ddf="satterthwaite") for test in ("mixed", "means"))
        (_, se, df, no_interaction), (_, se_of_means, df_of_means, _) = mixed, means
        if not no_interaction:
            regular += 1
            assert (se, df) == (se_of_means, df_of_means)
        else:
            assert se > se_of_means
            assert df > df_of_means
    assert regular > 5


@pytest.mark.parametrize("seeds", [1, 4])
def test_the_planned_model_is_the_recommended_one(seeds):
    want = lt.recommend(make_runs("ab", 6, seeds, sds={"benchmark": 10.0}, score="score")).formula
    assert StudyDesign(n_algorithms=2, n_benchmarks=6, n_seeds=seeds).formula == want


def test_draws_have_the_variances_that_were_asked_for():
    plan = VarianceComponents(interaction_sd=2.0, residual_sd=3.0, seed_sd=1.5, benchmark_sd=4.0)
    design = StudyDesign(n_algorithms=3, n_benchmarks=400, n_seeds=5)
    y = study_draw(design, plan, effect=10.0)(np.random.default_rng(0))
    difference = (y[:, 0] - y[:, 1]).mean(axis=1)
    # 400 differences: relative standard errors 0.07 (variance) and 0.19 standard units (mean)
    assert difference.var(ddof=1) == approx(plan.of_difference(5), rel=0.25)
    assert difference.mean() == approx(10.0, abs=4 * design.se(plan))
    assert (y[:, 0] - y[:, 2]).mean() == approx(5.0, abs=4 * design.se(plan))
    assert y.mean(axis=(1, 2)).var(ddof=1) == approx(16 + 4 / 3 + 2.25 / 5 + 9 / 15, rel=0.3)


# ---------------------------------------------------------------------- simulation


def test_results_depend_on_the_generator_alone():
    one = simulated().to_frame()
    pd.testing.assert_frame_equal(one, simulated().to_frame())
    assert not one.equals(simulated(rng=6).to_frame())
    rng = np.random.default_rng(1)
    assert not simulated(rng=rng).to_frame().equals(simulated(rng=rng).to_frame())


def test_another_unit_of_the_score_changes_nothing():
    scaled = VarianceComponents(interaction_sd=20.0, residual_sd=30.0, seed_sd=10.0)
    small, large = simulated(), simulated(scaled, effect=20.0)
    pd.testing.assert_frame_equal(
        small.to_frame().drop(columns="effect"), large.to_frame().drop(columns="effect"), rtol=1e-9
    )
    assert large.detectable().to_frame()["effect"].to_numpy() == approx(
        1000 * small.detectable().to_frame()["effect"].to_numpy()
    )
    pd.testing.assert_frame_equal(small.needed().to_frame(), large.needed().to_frame(), rtol=1e-9)


def test_difficulty_and_the_luck_of_seeds_cancel():
    plain = VarianceComponents(interaction_sd=0.02, residual_sd=0.03)
    rich = VarianceComponents(interaction_sd=0.02, residual_sd=0.03, seed_sd=5.0, benchmark_sd=1e3)
    columns = ["exact", "exact_type_s", "exact_type_m"]
    assert closed(plain).to_frame()[columns].equals(closed(rich).to_frame()[columns])


def test_shares_are_of_the_simulated_studies():
    table = simulated(test="means", n_draws=200).to_frame()
    assert " ".join(table) == (
        "n_benchmarks n_seeds effect power ci_low ci_high type_s type_m exact exact_type_s exact_type_m no_interaction "
        "n_failed"
    )
    assert table[["n_benchmarks", "n_seeds"]].to_numpy().tolist() == [[6, 1], [12, 1], [6, 3], [12, 3]]
    counts = table["power"] * 200
    assert counts.tolist() == approx([round(c) for c in counts])
    for row in table.itertuples():
        want = stats.binomtest(round(row.power * 200), 200).proportion_ci(0.95, method="exact")
        assert (row.ci_low, row.ci_high) == approx((want.low, want.high), rel=1e-9)
    assert (table["type_m"] > 1).all()


def test_a_study_that_cannot_be_analysed_counts_as_not_significant(monkeypatch):
    original = power_module.compare
    calls = itertools.count()

    def sometimes(y, *, test, ddf):
        if next(calls) % 3 == 0:
            raise EstimationError("no optimum.")
        return original(y, test=test, ddf=ddf)

    monkeypatch.setattr(power_module, "compare", sometimes)
    found = simulated(effect=10.0, n_benchmarks=6, n_seeds=3)
    row = found.to_frame().iloc[0]
    assert (row["n_failed"], row["power"]) == (20, approx(40 / 60))
    assert any("20 simulated studies could not be analysed and count as not significant" in n for n in found.notes)


def test_studies_that_all_fail_are_an_error(monkeypatch):
    def never(*_, **__):
        raise EstimationError("no optimum.")

    monkeypatch.setattr(power_module, "compare", never)
    words = "no simulated study of a design could be analysed. EstimationError: no optimum."
    assert refusal(simulated, EstimationError) == words


# ---------------------------------------------------------------------- from a fit


@pytest.fixture(scope="module")
def pilot():
    runs = lt.datasets.load_hpo_runs().filter(budget=8, prior="good")
    return lt.fit_lmm(lt.recommend(runs).formula, runs)


def test_terms_of_a_fit_are_carried_over(pilot):
    found = VarianceComponents.of(pilot)
    variance = pilot.varcorr.set_index("group")["sd"]
    assert found.interaction_sd == variance["benchmark:algorithm"]
    assert found.seed_sd == variance["benchmark:seed"]
    assert found.benchmark_sd == variance["benchmark"]
    assert found.residual_sd == variance["Residual"]
    assert found.pilot == Pilot(n_algorithms=6, n_benchmarks=20, n_seeds=25.0)
    assert found.notes == ()


def test_the_standard_error_of_the_pilots_own_design_is_that_of_its_fit(pilot):
    found = VarianceComponents.of(pilot)
    pair = pilot.emmeans("algorithm", vcov="model").pairs().to_frame().iloc[0]
    design = StudyDesign(n_algorithms=6, n_benchmarks=20, n_seeds=25)
    assert design.se(found) == approx(pair["se"], rel=1e-6)
    assert design.df == approx(pair["df"], rel=1e-3)


def test_a_fit_is_planned_with_its_own_algorithms(pilot):
    found = closed(pilot, effect=0.004)
    assert found.n_algorithms == 6
    assert "Two of 6 algorithms" in found.summary()
    assert "The variances are estimates from 20 benchmarks." in found.summary()


def test_the_interval_of_the_variance_is_chi_squared_for_the_pilots_own_seeds(pilot):
    found = VarianceComponents.of(pilot)
    low, high = found.limits(25)
    df, v = 19 * 5, found.of_mean(25)
    assert (low, high) == approx((df * v / stats.chi2.isf(0.025, df), df * v / stats.chi2.isf(0.975, df)), rel=1e-9)
    needed = closed(pilot, effect=0.004, n_seeds=25).needed().to_frame().iloc[0]
    assert needed["ci_low"] < needed["n_benchmarks"] < needed["ci_high"]
    effects = closed(pilot, n_seeds=25).detectable().to_frame().iloc[0]
    assert effects["ci_high"] / effects["effect"] == approx(math.sqrt(high / v), rel=1e-9)


def test_the_interval_covers_the_variance():
    """Mean squares of pilots of 8 benchmarks, 2 algorithms and 4 seeds, extrapolated to 2 seeds."""
    truth = VarianceComponents(interaction_sd=1.0, residual_sd=1.5)
    rng = np.random.default_rng(2)
    n, m = 4000, 4
    between = truth.of_mean(m) * m * rng.chisquare(7, n) / 7
    within = 1.5**2 * rng.chisquare(24, n) / 24
    hits = 0
    for a, e in zip(between, within, strict=True):
        estimate = VarianceComponents(
            interaction_sd=math.sqrt(max(0.0, (a - e) / m)),
            residual_sd=math.sqrt(e),
            pilot=Pilot(n_algorithms=2, n_benchmarks=8, n_seeds=m),
        )
        low, high = estimate.limits(2)
        hits += low < truth.of_mean(2) < high
    assert hits / n == approx(0.95, abs=0.02)  # an approximation; measured 0.950


def test_components_without_a_pilot_have_no_interval():
    assert np.isnan(PLAN.limits(5)).all()
    assert closed().needed().to_frame()[["ci_low", "ci_high"]].isna().all(axis=None)
    assert any("taken as known" in note for note in closed().notes)


def test_an_observed_difference_is_named_as_such(pilot):
    pair = pilot.emmeans("algorithm").pairs().to_frame().iloc[1]
    found = closed(pilot, effect=abs(float(pair["estimate"])))
    assert any(
        note.startswith(f"The effect is the difference that was observed between {pair['left']} and {pair['right']}.")
        for note in found.notes
    )
    assert not any("observed" in note for note in closed(pilot, effect=0.004).notes)


def runs_of(**sizes):
    return make_runs("ab", range(6), 4, sds={"benchmark": 1.0}, algorithm="tool", benchmark="task", seed="rep", **sizes)


CORE = "loss ~ tool + (1 | task) + (1 | task:tool)"
PLANNED_AT = "A study is planned at one value of prior:"


def test_seeds_shared_by_all_benchmarks_cancel_and_are_left_out():
    found = VarianceComponents.of(lt.fit_lmm(f"{CORE} + (1 | rep)", runs_of()))
    assert found.seed_sd == 0
    assert found.notes == (
        "(1 | rep) is left out: runs with the same seed share it, so it cancels from comparisons.",
        "The model has no term (1 | task:rep); its share is in the residual.",
    )


def test_a_plain_table_needs_its_roles():
    runs = runs_of()
    fit = lt.fit_lmm(f"{CORE} + (1 | task:rep)", runs.to_frame())
    assert refusal(lambda: closed(fit)) == (
        "which column is the algorithm? The model was fitted to a plain table. Use VarianceComponents.of(fit, "
        "algorithm=..., benchmark=..., seed=...)."
    )
    found = VarianceComponents.of(fit, algorithm="tool", benchmark="task", seed="rep")
    assert found == VarianceComponents.of(lt.fit_lmm(f"{CORE} + (1 | task:rep)", runs))
    with pytest.raises(UnknownColumnError, match="algorithm names the column 'tol', which is not in the data"):
        VarianceComponents.of(fit, algorithm="tol", benchmark="task")


def test_pilots_count_what_was_run():
    """Replicates without a seed column as runs, levels that do not occur not at all, and metafeatures where advised."""
    runs = runs_of()
    table = runs.to_frame()
    without = lt.Runs(table.drop(columns="rep"), score="loss", direction="minimize", algorithm="tool", benchmark="task")
    assert VarianceComponents.of(lt.fit_lmm(CORE, without)).pilot == Pilot(n_algorithms=2, n_benchmarks=6, n_seeds=4.0)
    table = table.astype({"tool": "category", "task": "category"})
    table = table.assign(tool=table["tool"].cat.add_categories("c"))
    fit = lt.fit_lmm(CORE, lt.Runs(table, **runs.roles()).filter(task=[0, 1, 2, 3]))
    assert VarianceComponents.of(fit).pilot == Pilot(n_algorithms=2, n_benchmarks=4, n_seeds=4.0)
    assert closed(fit).n_algorithms == 2
    one = runs_of(priors=["good", "bad"]).filter(prior="good")
    assert VarianceComponents.of(lt.fit_lmm(lt.recommend(one).formula, one)).pilot.n_seeds == 4


@pytest.mark.parametrize(
    ("formula", "term", "advice"),
    [
        ("loss ~ tool + (tool | task)", "(1 + tool | task)",
         "Fit (1 | task:tool) in its place, or plan with VarianceCo"),
        (f"{CORE} + (1 | task:tool:rep)", "(1 | task:tool:rep)",
         "Fit one row per run. The rows of a run differ in prior."),
        (f"{CORE} + (1 | task:prior)", "(1 | task:prior)", f"{PLANNED_AT} fit the runs there, one = runs.f"),
        ("loss ~ tool * prior + (0 + prior | task)", "(0 + prior | task)", PLANNED_AT),
        (f"{CORE} + (0 + prior | task:tool)", "(0 + prior | task:tool)", PLANNED_AT),
    ],
)  # fmt: skip
def test_terms_without_a_place_are_refused_by_name(formula, term, advice):
    fit = lt.fit_lmm(formula, runs_of(priors=["good", "bad"]))
    with pytest.raises(ArgumentError) as raised:
        VarianceComponents.of(fit)
    assert str(raised.value).startswith(
        f"the term {term} has no place in the planned study, which knows (1 | task), (1 | task:tool) and "
        f"(1 | task:rep). {advice}"
    )


@pytest.mark.parametrize(
    ("fit", "words"),
    [
        (lambda: lt.fit_lmm("loss ~ tool + (1 | task)", runs_of()),
         "the model 'loss ~ tool + (1 | task)' has no term (1 | task:tool), so it does not say how much an algorithm's "
         "advantage differs between benchmarks. Fit recommend(runs).formula to runs with several seeds, or plan with "
         "VarianceComponents(interaction_sd=..., residual_sd=...)."),
        (lambda: lt.fit_lmm(CORE, runs_of(), dispersion="task"),
         "the model has dispersion='task', and a study is planned with one residual variance. Fit it without "
         "dispersion, or plan with VarianceComponents(...) of a typical benchmark."),
        (lambda: lt.fit_lmm(CORE, lt.Runs(pd.concat([runs_of().to_frame()] * 2), **runs_of().roles())),
         "the model was fitted to 96 rows of 48 runs, and a study is planned with one score per run. No column "
         "distinguishes the rows of one run: are some of them copies? Drop these."),
    ],
    ids=["no interaction", "dispersion", "copies of rows"],
)  # fmt: skip
def test_models_of_other_studies_are_refused(fit, words):
    model = fit()
    assert refusal(lambda: closed(model)) == words


@pytest.mark.parametrize(("column", "values"), [("budget", [1, 2]), ("prior", ["good", "bad"])])
def test_several_rows_per_run_are_refused(column, values):
    runs = runs_of(**{f"{column}s": values})
    plain = lt.fit_lmm(CORE, runs.to_frame().assign(seconds=np.arange(96.0)))
    roles = {"algorithm": "tool", "benchmark": "task", "seed": "rep"}
    for call in (lambda: VarianceComponents.of(lt.fit_lmm(CORE, runs)), lambda: VarianceComponents.of(plain, **roles)):
        assert refusal(call) == (
            "the model was fitted to 96 rows of 48 runs, and a study is planned with one score per run. The rows of a "
            f"run differ in {column}. A study is planned at one value of {column}: fit the runs there, one = "
            f"runs.filter({column}=...) with recommend(one).formula."
        )


def test_the_scale_of_a_transformed_score_is_named():
    table = runs_of().to_frame().assign(loss=lambda t: np.exp(t["loss"]))
    fit = lt.fit_lmm("log(loss) ~ tool + (1 | task) + (1 | task:tool)", lt.Runs(table, **runs_of().roles()))
    assert "The effect is on the scale of log(loss)." in closed(fit, effect=0.5).notes


def test_an_interaction_estimated_as_zero_is_a_warning():
    plan = VarianceComponents(
        interaction_sd=0.0, residual_sd=1.0, pilot=Pilot(n_algorithms=2, n_benchmarks=10, n_seeds=5)
    )
    assert any(note.startswith("The pilot estimates the interaction as zero") for note in closed(plan, effect=1).notes)


# ---------------------------------------------------------------------- words


def test_the_sentence_answers_the_question():
    assert closed(n_benchmarks=[12, 100]).sentences() == (
        "To find a difference of 0.01 with 80 % power takes 136 benchmarks with 2 seeds each or 93 benchmarks with 5 "
        "seeds each.",
        "With 12 benchmarks and 2 seeds the power is 12 %, and a significant result overstates the "
        "difference 2.8 times on average and has the wrong sign in 2.6 % of the cases.",
    )
    nothing = simulated(effect=0.0, n_benchmarks=6, n_seeds=1, test="means", n_draws=100, rng=1)
    assert nothing.sentences()[0].startswith("Without a difference, two algorithms differ significantly in ")
    assert "no_interaction" not in nothing.summary()
    assert "simulated" not in closed().summary()


def test_needed_says_when_no_design_of_the_result_suffices():
    needed = closed(n_benchmarks=[12, 100]).needed()
    table = needed.to_frame()
    assert table["n_benchmarks"].tolist() == [136, 93]
    assert table["reached_at"].isna().tolist() == [True, False]
    assert table["reached_at"][1] == 100
    assert "With 2 seeds no design of this result reaches 80 %; n_benchmarks is from the closed form." in needed.notes


# ---------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"effect": -0.01},
         "effect must be a finite number of at least 0, got -0.01: the size of the difference, whichever algorithm "
         "is better (a two-sided test has the same power for both signs). Write 0.01."),
        ({"effect": "big"},
         "effect must be a finite number of at least 0, got 'big': the size of the difference, whichever algorithm "
         "is better (a two-sided test has the same power for both signs)."),
        ({"n_benchmarks": 1}, "n_benchmarks must be a whole number of at least 2, got 1."),
        ({"n_benchmarks": [10, 1]}, "n_benchmarks must be a whole number of at least 2, got 1."),
        ({"n_benchmarks": "10"}, "n_benchmarks must be a whole number of at least 2, got '10'."),
        ({"n_benchmarks": []}, "n_benchmarks must be a whole number or several, got none."),
        ({"n_seeds": 0}, "n_seeds must be a whole number of at least 1, got 0."),
        ({"n_seeds": None}, "n_seeds must be a whole number of at least 1, got None."),
        ({"n_algorithms": 1}, "n_algorithms must be a whole number of at least 2, got 1."),
        ({"n_draws": 0}, "n_draws must be a whole number of at least 1, got 0."),
        ({"adjust": "holm"}, "adjust must be 'tukey' or 'sidak' or 'bonferroni' or 'none', got 'holm'."),
        ({"test": "mix"}, "test must be 'mixed' or 'means', got 'mix'. Did you mean 'mixed'?"),
        ({"ddf": "residual"}, "ddf must be 'satterthwaite' or 'kenward-roger', got 'residual'."),
        ({"n_benchmarks": 500_000, "n_seeds": 3, "method": "simulation"},
         "a study of 2 algorithms x 500,000 benchmarks x 3 seeds has 3,000,000 runs, too many to simulate (at most "
         "2,000,000). Use method='closed_form'."),
    ],
)  # fmt: skip
def test_bad_arguments_are_named(options, message):
    assert refusal(lambda: closed(**options)) == message


@pytest.mark.parametrize(
    ("plan", "message"),
    [
        ({"interaction_sd": -1, "residual_sd": 1},
         "interaction_sd must be a finite number of at least 0, got -1: a standard deviation on the score's scale, "
         "the square root of a variance."),
        ({"interaction_sd": 1, "residual_sd": 0},
         "residual_sd must be above 0, got 0: runs that never differ need no seeds. Plan with n_seeds=1 and put all "
         "variation between algorithms on a benchmark into residual_sd."),
        ({"interaction": 1, "residual_sd": 1},
         "components has no entry 'interaction'. Entries: interaction_sd, residual_sd, seed_sd, benchmark_sd, "
         "family_interaction_sd, family_sd, sources. Did you mean 'interaction_sd'?"),
        ({"residual_sd": 1},
         "components lacks 'interaction_sd': advantages of algorithms that change from benchmark to "
         "benchmark (benchmark:algorithm), as a standard deviation in the score's unit."),
        (0.3, "components must be a fitted model, VarianceComponents or a dict, got float. Of runs that "
         "there are: variance_sources(runs). Of a study to come: VarianceComponents(interaction_sd=..., "
         "residual_sd=...)."),
    ],
)  # fmt: skip
def test_bad_components_are_named(plan, message):
    assert refusal(lambda: closed(plan)) == message


# ---------------------------------------------------------------------- sources of a run

SOURCES = {"tuning": 0.02, "data": 0.01}
NAMED = VarianceComponents(interaction_sd=0.02, residual_sd=0.02, seed_sd=0.01, sources=SOURCES)


def test_named_sources_are_parts_of_the_residual_that_power_sees():
    assert NAMED.run_sd == approx(0.03)
    one, other = closed(NAMED).to_frame(), closed().to_frame()
    pd.testing.assert_frame_equal(one, other, rtol=1e-12)
    pilot = {"pilot": Pilot(n_algorithms=3, n_benchmarks=12, n_seeds=5)}
    known, named = (VarianceComponents(**given, **pilot) for given in (
        {"interaction_sd": 0.02, "residual_sd": 0.03}, {"interaction_sd": 0.02, "residual_sd": 0.02, "sources": SOURCES}
    ))  # fmt: skip
    assert named.limits(2) == approx(known.limits(2))
    draws = [study_draw(StudyDesign(n_algorithms=2, n_benchmarks=3, n_seeds=2), c, 0.1)(np.random.default_rng(1))
             for c in (PLAN, NAMED)]  # fmt: skip
    np.testing.assert_allclose(*draws, rtol=1e-12)
    assert any("its own tuning run" in note for note in closed(NAMED).notes)
    assert not any("its own tuning run" in note for note in closed().notes)


def test_sources_are_shown_and_given_in_a_dict():
    frame = NAMED.to_frame().set_index("name")
    assert frame["sd"].to_dict() == approx(
        {"interaction_sd": 0.02, "residual_sd": 0.02, "seed_sd": 0.01, "benchmark_sd": math.nan, **SOURCES}, nan_ok=True
    )
    assert frame["meaning"]["residual_sd"].endswith("on the same benchmark, beyond tuning and data")
    assert NAMED.title == "Variance components with tuning and data"
    again = as_components({"interaction_sd": 0.02, "residual_sd": 0.02, "seed_sd": 0.01, "sources": SOURCES})
    assert again == NAMED
    assert hash(again) == hash(NAMED)
    assert "tuning 0.02, data 0.01" in closed(NAMED).facts[-1]


def test_an_unknown_interaction_is_asked_for_by_comparisons_alone():
    one = VarianceComponents(interaction_sd=None, residual_sd=0.0, sources={"data": 1.0})
    refuses(ArgumentError, "components lacks 'interaction_sd': advantages of algorithms", closed, one)


@pytest.mark.parametrize(
    ("sources", "message"),
    [
        ({"data": -1}, r"sources\['data'\] must be a finite number of at least 0, got -1"),
        ({"benchmark": 1}, "sources has an entry 'benchmark', and sources are what runs of one algorithm"),
        (["data"], r"sources must map names of sources to standard deviations, .* got \['data'\]"),
        ({"": 1}, "sources must map names of sources"),
    ],
)
def test_bad_sources_are_named(sources, message):
    refuses(ArgumentError, message, VarianceComponents, interaction_sd=0.1, residual_sd=0.1, sources=sources)


def test_power_below_the_level_and_no_effect_have_no_answer():
    assert refusal(lambda: closed().needed(0.05)) == (
        "power must be above alpha = 0.05, which a test reaches without any effect, got 0.05."
    )
    assert refusal(lambda: closed(effect=0).needed()) == (
        "effect is 0, and no number of benchmarks finds a difference that is not there. Plan with the smallest "
        "difference that would matter: power(..., effect=...)."
    )
    assert closed(effect=0).detectable().to_frame()["effect"].gt(0).all()
