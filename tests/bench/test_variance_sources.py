"""Where the variation comes from, and how reliable the ranking is."""

from __future__ import annotations

import itertools
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from growth import calls
from levels import half
from pytest import approx
from refusals import refusal
from scipy import optimize, special
from study import as_runs, make_runs, make_table

import lmemtest as lt
from lmemtest.bench.variation.ranking_reliability import ranking_reliability
from lmemtest.bench.variation.run_design import ratio_limits, run_design, run_variances
from lmemtest.bench.variation.variance_sources import largest_sources, variance_sources
from lmemtest.errors import ArgumentError
from lmemtest.lmm.distributions.student import noncentrality_interval
from lmemtest.lmm.intervals.variance_intervals import BalancedModel

PLAIN = ("loss ~ tool + (1 | task) + (1 | task:tool) + (1 | task:seed)", ["task", "task:tool", "task:seed"])
CONDITIONS = (
    "loss ~ tool * prior + (1 | task) + (1 | task:prior) + (1 | task:tool) + (1 | task:prior:tool) "
    "+ (1 | task:prior:seed)",
    ["task", "task:prior", "task:tool", "task:prior:tool", "task:prior:seed"],
)


def study(
    rng: int | np.random.Generator = 1, *, k=4, b=9, n=5, priors=(), budgets=None, interaction=1.0, run=1.0, means=None
) -> pd.DataFrame:
    """A balanced table whose sources are normal."""
    rng = np.random.default_rng(rng)
    instance = "benchmark:prior" if priors else "benchmark"
    sds = {"benchmark": 2.0, "benchmark:algorithm": interaction, f"{instance}:seed": 0.7}
    if priors:
        sds |= {instance: 0.8, f"{instance}:algorithm": 0.5}
    if budgets:
        sds |= {"budget": 1.0, "benchmark:budget": 0.6, f"{instance}:algorithm:budget": 0.4}
        sds |= {f"{instance}:algorithm:seed": run}
    sizes = [f"A{i}" for i in range(k)], [f"t{j}" for j in range(b)], n, budgets
    shift = 0.5 * rng.normal(size=k) if means is None else means
    options = {"priors": priors or None, "sds": sds, "shift": shift, "noise": run, "rng": rng}
    return make_table(*sizes, **options, algorithm="tool", benchmark="task")


# ---------------------------------------------------------------------- components


@pytest.mark.daily(1)
@pytest.mark.parametrize(
    ("priors", "model", "seed"), [((), PLAIN, 1), ((), PLAIN, 4), (("bad", "good"), CONDITIONS, 2)]
)
def test_mean_squares_give_the_estimates_and_profiles_of_the_fit(priors, model, seed) -> None:
    runs = as_runs(study(seed, k=3, b=6, n=3, priors=priors))
    found = variance_sources(runs)
    fit = lt.fit_lmm(model[0], runs)
    want = fit.profile(["sd", "residual sd"], reml=True).to_frame()
    names = [":".join(sorted(name.split(":"))) for name in [*model[1], "run"]]
    table = found.to_frame()
    table.index = [":".join(sorted(name.split(":"))) for name in table["source"]]
    got = table.loc[names]
    assert found.balanced
    assert got["sd"].to_numpy() == approx(want["estimate"].to_numpy(), rel=2e-4, abs=2e-4)  # the fit's own tolerance
    assert got["ci_low"].to_numpy() == approx(want["ci_low"].to_numpy(), rel=1e-4, abs=1e-4)
    assert got["ci_high"].to_numpy() == approx(want["ci_high"].to_numpy(), rel=1e-4)


def balanced(squares: list[float], unit: float = 1.0) -> BalancedModel:
    """Mean squares of 4 tools, 12 tasks and 3 seeds with the terms task, task:tool, task:seed and run."""
    terms = tuple(frozenset(f) for f in (["task"], ["task", "tool"], ["task", "seed"], ["task", "tool", "seed", "run"]))
    design = np.array([[12.0, 3, 4, 1], [0, 3, 0, 1], [0, 0, 4, 1], [0, 0, 0, 1]])
    df = np.array([11.0, 33, 24, 72])
    return BalancedModel(terms=terms, strata=terms, design=design, df=df, mean_square=unit * np.array(squares))


SQUARES = ([60.0, 4.0, 3.0, 1.0], [60.0, 0.7, 3.0, 1.0], [2.0, 0.5, 0.6, 1.0], [1e6, 3.0, 1e-3, 1.0], [0.1, 4, 3, 1])


@pytest.mark.parametrize("squares", SQUARES)
@pytest.mark.parametrize("unit", [1.0, 1e-12, 1e12])
def test_the_estimates_from_mean_squares_are_stationary(squares: list[float], unit: float) -> None:
    """Kuhn and Tucker: no slope where a variance is positive, none downwards where it is zero."""
    model = balanced(squares, unit)
    found = model.estimate()
    xi = model.design @ found
    slope = (model.df / xi * (1.0 - model.mean_square / xi)) @ model.design
    information = np.sqrt((model.df / xi**2) @ model.design**2)
    positive = found > 0
    assert np.abs(slope / information)[positive].max() < 1e-10
    assert (slope / information >= -1e-10).all()
    assert found == approx(unit * balanced(squares).estimate(), rel=1e-9)


@pytest.mark.daily(4)
@pytest.mark.parametrize(("squares", "term"), half(SQUARES, range(4)))
def test_the_ends_of_an_interval_have_the_deviance_of_its_level(squares: list[float], term: int) -> None:
    """The other variances are found again by another optimiser, from many starts."""
    model = balanced(squares)
    rng = np.random.default_rng(1)

    def profile(held: float) -> float:
        others = [j for j in range(4) if j != term]

        def deviance(logs: np.ndarray) -> float:
            v = np.zeros(4)
            v[term], v[others] = held, np.exp(logs)
            return model.deviance(v)

        starts = [np.log(np.maximum(model.estimate()[others], 1e-6)), *rng.uniform(-6, 3, (3, 3))]
        settings = {"xatol": 1e-9, "fatol": 1e-11, "maxiter": 4000, "maxfev": 8000}
        return min(optimize.minimize(deviance, x, method="Nelder-Mead", options=settings).fun for x in starts)

    least = model.deviance(model.estimate())
    low, high = model.interval(term, 0.9)
    cut = special.ndtri(0.95) ** 2
    assert profile(high**2) - least == approx(cut, abs=1e-6)
    if low > 0:
        assert profile(low**2) - least == approx(cut, abs=1e-6)
    else:
        assert profile(0.0) - least < cut + 1e-6


def test_an_interval_takes_few_steps() -> None:
    model = balanced(SQUARES[0])
    model.interval(1, 0.95)
    assert calls(lambda: model.interval(1, 0.95), in_c=False) < 20_000  # 60,000 when each search was one of L-BFGS-B


def test_without_zeros_the_estimates_are_those_of_analysis_of_variance() -> None:
    frame = study(3).sort_values(["tool", "task", "seed"])
    table = variance_sources(as_runs(frame)).to_frame().set_index("source")["variance"]
    k, b, n = 4, 9, 5
    y = frame["loss"].to_numpy().reshape(k, b, n)
    cell, tool, task, seed = y.mean(2), y.mean((1, 2)), y.mean((0, 2)), y.mean(0)
    ms_tool = b * n * tool.var(ddof=1)
    ms_task = k * n * task.var(ddof=1)
    ms_both = n * ((cell - tool[:, None] - task + y.mean()) ** 2).sum() / (k - 1) / (b - 1)
    ms_seed = k * ((seed - task[:, None]) ** 2).sum() / b / (n - 1)
    ms_run = ((y - cell[:, :, None] - seed + task[:, None]) ** 2).sum() / b / (n - 1) / (k - 1)
    assert table["run"] == approx(ms_run, rel=1e-5)
    assert table["task:seed"] == approx((ms_seed - ms_run) / k, rel=1e-5)
    assert table["task:tool"] == approx((ms_both - ms_run) / n, rel=1e-5)
    assert table["task"] == approx((ms_task - ms_both - ms_seed + ms_run) / k / n, rel=1e-5)
    assert table["tool"] == approx((ms_tool - ms_both) / b / n, rel=1e-5)


@pytest.mark.parametrize("priors", [(), ("bad", "good")])
def test_both_ways_give_the_same_numbers(priors) -> None:
    """What an unbalanced table goes through, on a balanced one."""
    frame = study(5, k=3, b=6, n=3, priors=priors, means=np.array([0.0, 1.0, 3.0]))
    design, scores = run_design(as_runs(frame), task="")
    squares, rows = (run_variances(x, scores, level=0.9) for x in (design, replace(design, strata=None)))
    for term in design.terms:
        assert np.sqrt(rows[0][term]) == approx(np.sqrt(squares[0][term]), rel=1e-3, abs=1e-3)
        assert rows[1][term] == approx(squares[1][term], rel=1e-3, abs=1e-3)
    assert list(squares[2]) == list(rows[2])
    for (signal, noise, test), (*of_fit, test_of_fit) in zip(squares[2].values(), rows[2].values(), strict=True):
        assert of_fit == approx([signal, noise], rel=1e-3, abs=1e-3)
        if noise == approx(signal / (test.f_ratio - 1.0), rel=1e-6):  # no variance is zero there
            assert ratio_limits(test_of_fit, 0.9) == approx(ratio_limits(test, 0.9), rel=1e-2, abs=1e-2)


def test_a_table_that_is_not_balanced_is_fitted() -> None:
    frame = study(5, k=3, b=6, n=3, means=np.array([0.0, 1.0, 3.0]))
    runs = as_runs(pd.concat([frame, frame.iloc[[0]]]))
    found, reliable = variance_sources(runs), ranking_reliability(runs)
    assert not found.balanced
    fit = lt.fit_lmm(PLAIN[0], runs)
    assert found.sources["sd"].tolist()[1:] == approx(fit.varcorr["sd"].tolist(), rel=1e-4, abs=1e-4)
    test = fit.joint_tests().to_frame().iloc[0]
    low, high = np.array(noncentrality_interval(test["f_ratio"], 2, test["df_den"], 0.95, positive=False)) / 2
    assert (reliable.ci_low, reliable.ci_high) == approx((low / (1 + low), high / (1 + high)), rel=1e-4)
    assert "approximate" in reliable.notes[-1]


def test_the_parts_of_run_and_course_add_up_to_the_variance_of_a_score() -> None:
    """The expected sum of squares of the table, written with the estimated parts, is the observed one."""
    frame = study(6, k=3, b=8, n=4, budgets=6)
    table = variance_sources(as_runs(frame)).to_frame().set_index("source")["variance"]
    within = frame.groupby(["tool", "task", "seed"])["loss"].transform("mean")
    courses = ((frame["loss"] - within) ** 2).mean()
    parts = table[[name for name in table.index if "budget" in name or name == "residual"]].sum()
    assert parts == approx(courses, rel=0.2)  # effects of few levels differ from their expectation
    assert table["residual"] == approx(5 / 6, rel=0.15)  # true variance 1, less the run's mean
    runs_only = variance_sources(
        as_runs(frame.assign(loss=within).drop_duplicates(["tool", "task", "seed"]).drop(columns="budget"))
    ).to_frame()
    assert table[runs_only["source"]].to_numpy() == approx(runs_only["variance"].to_numpy(), rel=1e-9)


def test_courses_of_an_unbalanced_table_are_one_source() -> None:
    frame = study(6, k=3, b=8, n=4, budgets=6)
    frame = frame[~((frame["tool"] == "A0") & (frame["seed"] == 0) & (frame["task"] == "t0"))]
    found = variance_sources(as_runs(frame))
    course = frame["loss"] - frame.groupby(["tool", "task", "seed"])["loss"].transform("mean")
    assert found.sources["source"].iloc[-1] == "budget"
    assert found.sources["variance"].iloc[-1] == approx((course**2).mean())
    assert "not taken apart" in found.notes[-1]


def test_shares_sum_to_one_and_the_sentence_names_the_largest() -> None:
    found = variance_sources(as_runs(study(7)))
    table = found.to_frame()
    assert table["share"].sum() == approx(1.0)
    other = study(7).sample(frac=1.0, random_state=3).replace({"tool": {"A0": "z", "A1": 'b "x"'}})
    scaled = variance_sources(as_runs(other.assign(loss=3.0 * other["loss"] + 100.0))).to_frame()
    for end in ("sd", "ci_high"):  # names and the order of rows do not matter, and the unit is that of the score
        assert scaled[end].to_numpy() == approx(3.0 * table[end].to_numpy(), rel=1e-4)
    largest = table.loc[table["share"].idxmax(), "source"]
    first, second = found.sentences()[:2]
    assert first.startswith(f"The largest part of the variation of loss is estimated to be {largest} (")
    assert second == "By the 95 % intervals run and task:tool cannot be excluded as the largest."
    run, apart = table.set_index("source").loc["run"], table.set_index("source")
    apart.loc[largest, ["ci_low", "variance", "share"]] = run["ci_high"] * 2.0, run["variance"] * 9.0, 0.9
    (text, *_) = largest_sources(apart.reset_index(), "loss", 0.95)
    assert text.startswith(f"The largest part of the variation of loss is {largest} (90 %)")
    assert "Where the variation comes from" in found.summary()


def test_what_cannot_be_told_apart_is_said() -> None:
    once = study(9).query("seed == 0").drop(columns="seed")
    found = variance_sources(as_runs(once, seed=None))
    assert found.sources["source"].tolist() == ["tool", "task", "run"]
    assert found.notes[0] == (
        "task:tool: there is one run in each, so it cannot be distinguished from the runs and is part of their "
        "variation."
    )
    unpaired = study(9)
    unpaired["seed"] = np.arange(len(unpaired))
    found = variance_sources(as_runs(unpaired))
    assert found.sources["source"].tolist() == ["tool", "task", "task:tool", "run"]
    assert found.notes[0].startswith("task:seed: runs with the same seed share nothing, so")
    size = study(9)
    size["size"] = size["task"].str[1:].astype(int)
    found = variance_sources(as_runs(size, metafeatures=("size",)))
    assert "size never changes within a benchmark" in found.notes[0]


def test_the_components_of_a_plan_are_those_of_the_recommended_model() -> None:
    runs = lt.datasets.load_hpo_runs().filter(budget=8, prior="good")
    sources = variance_sources(runs)
    want, found = lt.VarianceComponents.of(lt.fit_lmm(lt.recommend(runs).formula, runs)), sources.components()
    assert found.pilot == want.pilot
    for name in ("interaction_sd", "residual_sd", "seed_sd", "benchmark_sd"):
        assert getattr(found, name) == approx(getattr(want, name), rel=1e-5)
    assert lt.plan(sources, budget=1200).best == lt.plan(want, budget=1200).best
    with pytest.raises(ArgumentError, match="at one budget and one level of each metafeature"):
        variance_sources(lt.datasets.load_hpo_runs().filter(prior="good")).components()
    single = as_runs(study(10, k=3, b=6, n=1, means=np.arange(3.0)).drop(columns="seed"), seed=None)
    with pytest.raises(ArgumentError, match="with one run of each algorithm on each benchmark"):
        variance_sources(single).components()


# ---------------------------------------------------------------------- reliability


def test_one_run_per_cell_gives_cronbachs_alpha() -> None:
    frame = study(10, k=6, b=8, n=1, means=np.arange(6.0)).drop(columns="seed")
    found = ranking_reliability(as_runs(frame, seed=None))
    wide = frame.pivot(index="tool", columns="task", values="loss")
    b = wide.shape[1]
    alpha = b / (b - 1) * (1.0 - wide.var(ddof=1).sum() / wide.sum(axis=1).var(ddof=1))
    assert found.reliability == approx(alpha, rel=1e-6)
    assert found.single_run == approx(alpha / (b - (b - 1) * alpha), rel=1e-6)  # Spearman and Brown
    assert found.needed(found.reliability).to_frame()["n_benchmarks"].tolist() == [b]


def test_the_error_is_that_of_the_power_analysis() -> None:
    runs = lt.datasets.load_hpo_runs().filter(budget=8, prior="good")
    found = ranking_reliability(runs, n_benchmarks=[10, 20], n_seeds=[5, 25])
    plan = lt.VarianceComponents.of(lt.fit_lmm(lt.recommend(runs).formula, runs))
    for b, n in itertools.product((10, 20), (5, 25)):
        assert found.error_variance(b, n) == approx(plan.of_mean(n) / b, rel=1e-6)
    row = found.to_frame().query("n_benchmarks == 20 and n_seeds == 25").iloc[0]
    assert (row["reliability"], row["ci_low"], row["ci_high"]) == approx(
        (found.reliability, found.ci_low, found.ci_high), rel=1e-6
    )
    f = lt.fit_lmm(lt.recommend(runs).formula, runs).joint_tests().to_frame()["f_ratio"].iloc[0]
    assert found.reliability == approx(1.0 - 1.0 / f, rel=1e-6)


def test_the_interval_has_the_observed_f_ratio_at_its_tails() -> None:
    from scipy.stats import ncf

    low, high = np.array(noncentrality_interval(7.0, 3, 24, 0.9, positive=False)) / 3
    assert ncf.sf(7.0, 3, 24, 3 * low) == approx(0.05, abs=1e-7)
    assert ncf.cdf(7.0, 3, 24, 3 * high) == approx(0.05, abs=1e-7)
    assert noncentrality_interval(0.5, 3, 24, 0.95, positive=False)[0] == 0.0
    assert noncentrality_interval(0.01, 3, 24, 0.95, positive=False) == (0.0, 0.0)


def test_reliability_grows_to_its_ceiling_in_seeds_and_to_one_in_benchmarks() -> None:
    found = ranking_reliability(as_runs(study(11, means=np.arange(4.0))))
    curve = [found.at(9, n) for n in (1, 5, 25, np.inf)]
    assert curve == sorted(curve)
    assert curve[-1] == approx(found.algorithm_variance / (found.algorithm_variance + found.benchmark_variance / 9))
    assert found.at(1e12, 1) == approx(1.0)
    assert 0 < found.dependability < found.reliability
    needed = found.needed([0.8, 0.9]).to_frame()
    for row in needed.to_dict("records"):
        b, n = row["n_benchmarks"], row["n_seeds"]
        assert found.at(b, n) >= row["reliability"] > found.at(b - 1, n) if b > 1 else True


def test_conditions_are_averaged_over() -> None:
    frame = study(12, priors=("bad", "good"), means=np.arange(4.0))
    found = ranking_reliability(as_runs(frame))
    means = frame.groupby(["tool", "task"])["loss"].mean().unstack()
    b, residual = 9, means.sub(means.mean(axis=1), axis=0).sub(means.mean() - means.to_numpy().mean())
    error = (residual.to_numpy() ** 2).sum() / 3 / (b - 1) / b
    assert found.error_variance(9, 5) == approx(error, rel=1e-5)
    assert found.reliability == approx(1.0 - error / means.mean(axis=1).var(ddof=1), rel=1e-5)


def test_no_visible_difference_is_reliability_zero() -> None:
    frame = study(13, means=np.zeros(4))
    frame["loss"] -= frame.groupby("tool")["loss"].transform("mean")
    found = ranking_reliability(as_runs(frame))
    assert (found.reliability, found.ci_low, found.ci_high) == (0.0, 0.0, 0.0)
    assert found.needed().to_frame()["n_benchmarks"].tolist() == [np.inf] * 4
    assert "estimated as zero" in found.notes[-1]
    assert "∞" in found.needed().summary()


# ---------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("function", "task"),
    [(variance_sources, "the variation is taken apart"), (ranking_reliability, "reliability is judged")],
)
@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: as_runs(study(1)).filter(task="t0"), "runs has one benchmark only, 't0', and {task} by what differs "
         "between benchmarks. Give at least two; many more are needed for a precise answer."),
        (lambda: as_runs(study(1), benchmark=None), "runs has no benchmark column, so nothing says what differs "
         "between benchmarks, by which {task}. Name it: Runs(..., benchmark=...). Columns: task, tool, seed, loss."),
        (lambda: as_runs(study(1, budgets=3).iloc[1:]), "not every run has a score at each of the 3 budgets, so means "
         "over the budgets do not compare. Take budgets that all runs reached: runs.filter(budget=...)."),
        (lambda: as_runs(study(1, budgets=3), seed=None), "runs has scores at 3 budgets but no seed column, so scores "
         "of one run cannot be linked. Name the column: seed=..., or take one budget: runs.filter(budget=3)."),
        (lambda: as_runs(study(1).assign(loss=1.0)), None),
        (lambda: as_runs(study(2, priors=("bad", "good")).query("not (tool == 'A0' and prior == 'bad')")),
         "tool 'A0' was never run at prior 'bad', so means over prior do not compare. Leave one of them out: "
         "runs.filter(...)."),
    ],
    ids=["one benchmark", "no benchmarks", "budgets", "no seeds", "constant", "never run"],
)  # fmt: skip
def test_what_is_refused(function, task, make, words) -> None:
    found = refusal(lambda: function(make()))
    assert words is None or found == words.format(task=task)


def test_other_numbers_of_seeds_need_repeated_runs() -> None:
    once = as_runs(study(9).query("seed == 0").drop(columns="seed"), seed=None)
    assert refusal(lambda: ranking_reliability(once, n_seeds=[3])) == (
        "n_seeds must be 1 here, as in the study, got 3: every algorithm was run once on each benchmark, so the "
        "effects of seeds and of benchmarks cannot be separated. Repeat runs with other seeds."
    )
    assert "n_benchmarks must be a whole number or several, got none" in refusal(
        lambda: ranking_reliability(once, n_benchmarks=[])
    )


@pytest.mark.slow
def test_profiles_of_mean_squares_hold_the_truth_as_often_as_they_say() -> None:
    """1500 draws of the mean squares of 4 tools, 12 tasks, 3 seeds; 0.95 +- 3.3 binomial standard errors."""
    design, df, truth = balanced(SQUARES[0]).design, balanced(SQUARES[0]).df, np.array([4.0, 1.0, 0.49, 1.0])
    rng, hits = np.random.default_rng(5), np.zeros(4)
    for _ in range(1500):
        model = balanced(design @ truth * rng.chisquare(df) / df)
        for i in range(4):
            low, high = model.interval(i, 0.95)
            hits[i] += low <= np.sqrt(truth[i]) <= high
    assert hits / 1500 == approx(np.full(4, 0.95), abs=3.3 * np.sqrt(0.95 * 0.05 / 1500))


# ---------------------------------------------------------------------- coverage and PriorBand


@pytest.mark.slow
def test_intervals_hold_the_truth_as_often_as_they_say() -> None:
    """600 studies; 0.95 +- 3.3 binomial standard errors is 0.921 to 0.979."""
    means = np.array([-0.6, -0.2, 0.2, 0.6])
    a = means.var(ddof=1)
    reliability = a / (a + (1.0 + 1.0 / 3) / 12)
    rng, hits, scaled = np.random.default_rng(20), 0, 0
    for _ in range(600):
        found = ranking_reliability(as_runs(study(rng, b=12, n=3, means=means)))
        hits += found.ci_low <= reliability <= found.ci_high
        error = found.error_variance(12, 3)
        low, high = (x / (1.0 - x) * error for x in (found.ci_low, found.ci_high))  # the interval of the SD, squared
        scaled += low <= a <= high
    assert hits / 600 == approx(0.95, abs=0.029)
    assert 0.90 < scaled / 600 < 0.979  # the error variance is taken as known


def test_priorband_has_the_variances_of_its_model(data_dir) -> None:
    frame = pd.read_parquet(data_dir / "priorband.parquet")
    runs = as_runs(frame, score="value", budget="used_fidelity")
    found = variance_sources(runs)
    ranking_reliability(runs)
    want = lt.fit_lmm(
        "value ~ algorithm * prior + (1 | benchmark) + (1 | benchmark:prior) + (1 | benchmark:algorithm) "
        "+ (1 | benchmark:prior:algorithm) + (1 | benchmark:prior:seed)",
        frame.groupby(["benchmark", "prior", "algorithm", "seed"], observed=True)["value"].mean().reset_index(),
    )
    got = found.to_frame().set_index("source")["variance"]
    for group, variance in zip(want.varcorr["group"], want.varcorr["variance"], strict=True):
        assert got["run" if group == "Residual" else group] == approx(variance, rel=1e-3, abs=1e-4)


@pytest.mark.parametrize("seeds", [3, 5, 6, 10])
@pytest.mark.parametrize("benchmarks", [6, 7, 8])
def test_the_seeds_of_a_balanced_study_are_a_whole_number(seeds: int, benchmarks: int) -> None:
    runs = make_runs(3, benchmarks, seeds, sds={}, shift=[0.0, 1.0, 2.0])
    assert run_design(runs, task="x")[0].sizes["n_seeds"] == seeds
    assert ranking_reliability(runs).n_seeds == seeds
    fewer = runs.to_frame().iloc[1:]  # the harmonic mean of seeds - 1, seeds, seeds, ...
    unequal = lt.Runs(fewer, **runs.roles())
    cells = 3 * benchmarks
    want = cells / ((cells - 1) / seeds + 1 / (seeds - 1))
    assert run_design(unequal, task="x")[0].sizes["n_seeds"] == pytest.approx(want, rel=1e-14)
