"""Variance, correlation and bias of means of k scores: enumeration, published values, and other estimators."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
from harness import covers, rate_of
from numpy.testing import assert_allclose
from paper_figures.estimator_quality import (
    APART,
    decomposition_plot,
    quality_from_components,
    quality_from_scores,
    quality_plot,
    variance_of_mean,
)
from paper_figures.estimators import fixed_tuning_estimator, ideal_estimator
from pytest import approx
from scipy import stats

import lmemtest as lt
from lmemtest.errors import ArgumentError, DataError, DesignError

# Shrout & Fleiss (1979), doi:10.1037/0033-2909.86.2.420: six targets, four judges
JUDGES = np.array([[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]])
SOURCES = ("tuning", "data", "init")


def simulated(shared, own, m=20, n=50, rng=0):
    draw = np.random.default_rng(rng)
    return draw.normal(scale=shared**0.5, size=(m, 1)) + draw.normal(scale=own**0.5, size=(m, n))


@pytest.mark.parametrize("new", [("data", "init"), ("data",), ("init",), ()])
def test_components_give_the_variance_over_all_seeds(new):
    """Sources of 2, 2 and 3 levels with centred effects: every combination of seeds of a mean of two scores."""
    rng = np.random.default_rng(5)
    effects = {"tuning": rng.normal(size=2), "data": rng.normal(size=2), "init": rng.normal(size=3)}
    effects = {name: values - values.mean() for name, values in effects.items()}
    both = rng.normal(size=(2, 3))
    both = both - both.mean(axis=0) - both.mean(axis=1)[:, None] + both.mean()

    def score(seeds):
        main = sum(effects[name][seeds[name]] for name in SOURCES)
        return main + both[seeds["data"], seeds["init"]]

    means = []
    fixed = [name for name in SOURCES if name not in new]
    for same in product(*(range(len(effects[name])) for name in fixed)):
        for first, second in product(product(*(range(len(effects[name])) for name in new)), repeat=2):
            pair = [score(dict(zip((*fixed, *new), (*same, *own), strict=True))) for own in (first, second)]
            means.append(np.mean(pair))
    variances = {name: values.var() for name, values in effects.items()} | {"data:init": both.var()}
    found = quality_from_components(variances, k=2, randomize=[new]).curves
    assert_allclose(found["variance"].iloc[-1], np.var(means), rtol=1e-12)


def test_what_stays_is_the_variance_of_the_fixed_sources():
    variances = {"tuning": 1.0, "data": 4.0, "init": 2.0, "data:init": 0.5, "tuning:init": 0.25, "Residual": 0.75}
    found = quality_from_components(variances, k=1000)
    table = found.estimators.set_index("estimator")
    shared = {"all": 1.0, "data": 1.0 + 2.0 + 0.25, "init": 1.0 + 4.0}
    for name, variance in shared.items():
        row = table.loc[f"fixed tuning, {name} new"]
        assert_allclose(
            [row["rho"], row["floor"] ** 2, row["most_equivalent"]], [variance / 8.5, variance, 8.5 / variance]
        )
    curves = found.curves.set_index(["estimator", "k"])
    assert_allclose(curves.loc[("ideal", 10), ["variance", "equivalent_k"]], [0.85, 10.0])
    assert_allclose(curves.xs(1, level="k")["equivalent_k"], 1.0)  # one score is one score
    assert_allclose(curves["mse"], curves["variance"])


def test_variance_components_are_those_of_one_score():
    sources = {"tuning": 1.0, "data": 2.0, "data:init": 0.5}
    components = lt.VarianceComponents(
        interaction_sd=7.0, residual_sd=0.6, seed_sd=0.8, benchmark_sd=9.0, sources=sources
    )
    found = quality_from_components(components, k=3).curves
    want = quality_from_components({"tuning": 1.0, "data": 4.0, "data:init": 0.25, "residual": 1.0}, k=3).curves
    pd.testing.assert_frame_equal(found, want)


def test_the_equation_of_the_variance():
    k = np.arange(1, 6)
    assert_allclose(variance_of_mean(3.0, 0.0, k), 3.0 / k)
    assert_allclose(variance_of_mean(3.0, 1.0, k), 3.0)
    covariance = 3.0 * (0.4 + 0.6 * np.eye(5))
    assert_allclose(variance_of_mean(3.0, 0.4, 5), covariance.sum() / 25)


def test_without_tuning_it_is_said_and_nothing_is_invented():
    found = quality_from_components({"data": 3.0, "init": 1.0}, k=10)
    assert list(found.estimators["estimator"]) == ["ideal", "fixed tuning, data new", "fixed tuning, init new"]


def test_correlation_of_a_published_table():
    found = quality_from_scores({"judges": JUDGES}).estimators.iloc[0]
    assert_allclose(found[["rho", "rho_low", "rho_high"]].astype(float), [0.166, -0.133, 0.723], atol=5e-4)


def test_correlation_is_that_of_the_mixed_model():
    scores = simulated(1.0, 2.0, m=6, n=5, rng=3)
    frame = pd.DataFrame({"score": scores.ravel(), "realisation": np.repeat(list("abcdef"), 5)})
    fit = lt.fit_lmm("score ~ 1 + (1 | realisation)", frame)
    shared = float(fit.covariances[0][0, 0])
    found = quality_from_scores({"x": scores}).estimators.iloc[0]
    assert_allclose([found["floor"] ** 2, found["sd"] ** 2], [shared, shared + fit.scale], rtol=1e-5)


@pytest.mark.parametrize("k", [1, 2, 3])
def test_the_curve_is_the_average_over_all_choices_of_k_scores(k):
    scores = np.random.default_rng(2).normal(size=(3, 3))
    means = [[row[list(chosen)].mean() for chosen in combinations(range(3), k)] for row in scores]
    want = np.mean([np.var(chosen, ddof=1) for chosen in product(*means)])
    found = quality_from_scores({"x": scores}).curves
    assert_allclose(found.loc[found["k"] == k, "variance"], want)


def test_intervals_of_the_standard_error_at_both_ends_of_a_curve():
    """At k = n it is that of the standard deviation of m independent means; ideal scores have N - 1 degrees."""
    scores, ideal = simulated(1.0, 2.0, m=8, n=4, rng=1), np.random.default_rng(2).normal(size=12)
    found = quality_from_scores({"x": scores}, ideal=ideal, level=0.9).curves.groupby("estimator").tail(1)
    for (_, row), values, df in zip(found.iterrows(), (ideal / 2.0, scores.mean(axis=1)), (11, 7), strict=True):
        want = values.std(ddof=1) * np.sqrt(df / stats.chi2.ppf([0.95, 0.05], df))
        assert_allclose(row[["ci_low", "ci_high"]].astype(float), want)


def test_bias_and_mean_squared_error_are_against_the_ideal_estimator():
    scores, ideal = simulated(1.0, 2.0, m=8, n=4, rng=1), np.random.default_rng(2).normal(size=12)
    found = quality_from_scores({"x": scores}, ideal=ideal)
    row, last = found.estimators.iloc[1], found.curves.iloc[-1]
    assert_allclose(row["bias"], scores.mean() - ideal.mean())
    want = stats.sem(scores.mean(axis=1)) ** 2 + stats.sem(ideal) ** 2
    assert_allclose([row["bias_error"] ** 2, last["mse"]], [want, scores.mean(axis=1).var(ddof=1) + row["bias"] ** 2])
    assert_allclose(last["equivalent_k"], ideal.var(ddof=1) / last["variance"])
    assert {"bias", "mse"} <= set(found.at_largest_k)
    assert not {"bias", "mse"} & set(quality_from_components({"data": 1.0}).at_largest_k)
    alone = quality_from_scores({"x": pd.DataFrame(scores)})
    assert alone.curves["mse"].isna().all()
    assert_allclose(alone.curves["equivalent_k"].iloc[0], 1.0)


def test_scores_in_other_units_have_the_same_correlation():
    scores, rho = simulated(1.0, 2.0, m=5, n=4), ["rho", "rho_low", "rho_high"]
    found = [quality_from_scores({"x": table}).estimators.iloc[0] for table in (scores, 7 - 100 * scores)]
    assert_allclose(*(row[rho].astype(float) for row in found))
    assert_allclose(100 * found[0]["floor"], found[1]["floor"])


def test_ends_of_the_range_of_the_correlation():
    alike = quality_from_scores({"x": [[1.0, 2.0, 3.0], [2.0, 3.0, 1.0]]})
    assert alike.estimators["rho"].iloc[0] == pytest.approx(-0.5)  # the same mean in all: -1 / (n - 1)
    assert alike.estimators["most_equivalent"].iloc[0] == np.inf
    copies = quality_from_scores({"x": [[1.0, 1.0], [2.0, 2.0], [4.0, 4.0]]}).estimators.iloc[0]
    assert_allclose(copies[["rho", "rho_low", "rho_high"]].astype(float), 1.0)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: quality_from_components({"data": -1}), ArgumentError, r"variances\['data'\] must be .* got -1"),
        (lambda: quality_from_components({"init with tuning": 1.0}), ArgumentError,
         "variances has one number for 'init with tuning'"),
        (lambda: quality_from_components({"data": 0.0}), ArgumentError, "must hold a variance above 0"),
        (lambda: quality_from_components({"data": 1.0}, randomize=["init"]), ArgumentError, "got 'init'"),
        (lambda: quality_from_scores({"a": [[1, np.nan], [2, 3]]}), DataError, "has 1 scores that are missing"),
        (lambda: quality_from_scores({"ideal": JUDGES}), ArgumentError, "give them as ideal"),
        (lambda: quality_from_scores({"x": JUDGES[:1]}), DataError, r"scores\['x'\] must .* got \(1, 4\)"),
        (lambda: quality_from_scores({"x": np.where(JUDGES > 9, np.nan, JUDGES)}), DataError, "has 1 scores that"),
        (lambda: quality_from_scores({"x": JUDGES}, ideal=[1.0]), DataError, "ideal must be at least 2 scores"),
        (lambda: quality_from_scores({"x": np.ones((3, 3))}), DesignError, "are the same, so nothing varies"),
    ],
)  # fmt: skip
def test_what_says_nothing_is_refused(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_bias_has_welchs_interval_over_realisations():
    scores, ideal = simulated(1.0, 2.0, m=6, n=5, rng=3), simulated(0.0, 3.0, m=1, n=30, rng=4)[0]
    found = quality_from_scores({"x": scores}, ideal=ideal, level=0.9).decomposition.set_index("estimator")
    want = stats.ttest_ind(scores.mean(axis=1), ideal, equal_var=False).confidence_interval(0.9)
    assert_allclose(found.loc["x", ["bias_low", "bias_high"]].astype(float), want)


def test_the_mean_squared_error_is_made_of_bias_and_variance():
    quality = quality_from_scores({"x": simulated(1.0, 2.0), "y": simulated(1.0, 1.0)}, ideal=simulated(0.0, 3.0)[0])
    found = quality.decomposition
    assert list(zip(found["estimator"], found["k"], strict=True)) == [("ideal", 1), ("ideal", 50), ("x", 50), ("y", 50)]
    assert_allclose(found["mse"], found["bias"] ** 2 + found["variance"])
    assert_allclose(found["variance"][0], 50 * found["variance"][1])
    ends = quality.curves.groupby("estimator")["ci_low"].last()
    assert_allclose(found["standard_error_low"][1:], ends.loc[["ideal", "x", "y"]])
    assert_allclose(found["rmse"], np.hypot(found["bias"], found["standard_error"]))


def test_the_standard_error_is_that_of_the_plan():
    sources = {"tuning": 1.0, "data": 2.0, "init": 0.5, "data:init": 0.3}
    components = lt.VarianceComponents(interaction_sd=None, residual_sd=0.7, seed_sd=0.4, sources=sources)
    curves = quality_from_components(components, k=30).curves.set_index(["estimator", "k"])["standard_error"]
    found = lt.plan(components, budget=500, trials=20)
    assert found.names == ("tuning", "data", "seed")
    assert found.standard_error({"tuning": 1, "data": 30}) == approx(curves["fixed tuning, all new", 30], rel=1e-12)
    assert found.standard_error({"tuning": 12}) == approx(curves["ideal", 12], rel=1e-12)


# ---------------------------------------------------------------------- figures


@pytest.mark.level(2)
def test_each_estimator_has_its_curve_over_k():
    found = quality_from_components({"tuning": 1.0, "data": 4.0, "init": 1.0}, k=50)
    ax = quality_plot(found)
    drawn = found.curves.groupby("estimator", sort=False)
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [name for name, _ in drawn]
    for line, (_, rows) in zip(ax.lines, drawn, strict=True):
        assert_allclose(line.get_xydata(), rows[["k", "standard_error"]])
    assert ax.get_xscale() == "log"
    assert ax.get_ylim()[0] == 0.0
    assert not ax.collections


@pytest.mark.level(2)
def test_bars_are_the_intervals_from_scores():
    found = quality_from_scores({"init new": simulated(1.0, 1.0, 6, 10)}, ideal=simulated(0.0, 1.0, 1, 9)[0])
    ax = quality_plot(found)
    drawn = [rows for _, rows in found.curves.groupby("estimator", sort=False)]
    for place, (bars, rows) in enumerate(zip(ax.collections, drawn, strict=True)):
        rows = rows[rows["k"].isin([1, 2, 5, 10])]
        spans = np.array(bars.get_segments())
        assert_allclose(spans[:, :, 1], rows[["ci_low", "ci_high"]])
        assert_allclose(spans[:, 0, 0], rows["k"] * APART ** (place - 0.5))


@pytest.mark.level(2)
def test_the_decomposition_has_a_column_for_each_part():
    found = quality_from_scores({"init new": simulated(1.0, 1.0, 6, 10)}, ideal=simulated(0.0, 1.0, 1, 9)[0])
    axes, table = decomposition_plot(found).axes, found.decomposition
    labels = [label.get_text() for label in axes[0].get_yticklabels()]
    assert labels == ["ideal, k = 1", "ideal, k = 10", "init new, k = 10"]
    for ax, name in zip(axes, ["bias", "standard_error", "rho", "rmse"], strict=True):
        assert_allclose(ax.lines[0].get_xdata(), table[name])
        if name == "rmse":
            assert not ax.collections
            continue
        spans = [span[:, 0] for span in ax.collections[0].get_segments() if len(span)]
        assert_allclose(spans, table[[f"{name}_low", f"{name}_high"]].dropna())


# ---------------------------------------------------------------------- coverage, and real estimates


VARIANCES = {"tuning": 1.0, "data": 4.0, "init": 2.0}


@pytest.mark.level(3)
@pytest.mark.parametrize(("m", "n"), [(20, 50), (5, 10)])
@pytest.mark.parametrize("rho", [0.0, 0.1, 0.5, 0.9])
def test_coverage_of_intervals_of_the_correlation_and_of_the_standard_error(m, n, rho):
    """1,000 studies: that of rho is exact, that of the standard error approximate between k = 1 and k = n."""
    k = np.array([1, 2, n // 2, n])
    truth = np.sqrt(variance_of_mean(1.0, rho, k))

    def study(rng):
        scores = rng.normal(scale=rho**0.5, size=(m, 1)) + rng.normal(scale=(1 - rho) ** 0.5, size=(m, n))
        found = quality_from_scores({"x": scores})
        return [covers(found.estimators.iloc[0], rho, "rho"), *covers(found.curves.iloc[k - 1], truth)]

    held = rate_of(study, 1000, round(10 * rho) + m)
    print(m, n, rho, held)
    assert np.all(np.abs(held - 0.95) < [0.025, 0.04, 0.04, 0.04, 0.025])


@pytest.mark.level(3)
@pytest.mark.parametrize(("m", "N"), [(20, 60), (5, 60), (5, 10)])
def test_coverage_of_the_interval_of_the_bias(m, N):
    """1,000 studies with rho = 0.5, 10 scores of each realisation and a bias of one standard deviation."""

    def study(rng):
        scores = 1.0 + 0.5**0.5 * (rng.normal(size=(m, 1)) + rng.normal(size=(m, 10)))
        return covers(quality_from_scores({"x": scores}, ideal=rng.normal(size=N)).estimators.iloc[-1], 1.0, "bias")

    assert abs(rate_of(study, 1000, m + N) - 0.95) < 0.025


def effect(seeds, name):
    """A normal number with the variance of its source, by the seed of its source alone."""
    return VARIANCES[name] ** 0.5 * np.random.default_rng(seeds[name]).normal()


def pipeline(hyperparameters, seeds):
    return hyperparameters + effect(seeds, "data") + effect(seeds, "init")


def tuner(_, seeds):
    return effect(seeds, "tuning")


@pytest.mark.level(3)
@pytest.mark.parametrize("new", ["all", "data", "init", None])
def test_estimates_have_the_variance_of_the_formula(new):
    """1,000 estimates from k = 5 repetitions: the ideal estimator, and fixed tuning with each subset of new seeds."""
    options = {"sources": ["data", "init"]} | ({} if new is None else {"randomize": new})
    estimator = ideal_estimator if new is None else fixed_tuning_estimator
    means = [estimator(pipeline, tuner, 5, rng=seed, **options).mean for seed in range(1000)]
    table = quality_from_components(VARIANCES, k=5).curves.set_index(["estimator", "k"])["variance"]
    want = table[("ideal" if new is None else f"fixed tuning, {new} new", 5)]
    print(new, np.var(means, ddof=1), want)
    assert_allclose(np.var(means, ddof=1), want, rtol=4 * np.sqrt(2 / 999))
