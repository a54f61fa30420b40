"""One residual variance per group, against nlme's varIdent (tests/reference/dispersion.R)."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from pytest import approx
from refusals import refuses

import lmemtest as lt
from lmemtest.errors import ArgumentError, DesignError, NestingError, UnknownColumnError
from lmemtest.lmm.engine.problem import build_problem
from lmemtest.lmm.engine.structure import RandomTerm

CASES = [pytest.param(i, m, id=f"{i}-{m}") for i in range(6) for m in ("ML", "REML")]


@pytest.mark.parametrize(("i", "method"), CASES)
def test_fits_agree_with_nlme(reference, reference_input, i, method):
    want = reference("dispersion")["fits"][i]
    fit = lt.fit_lmm(
        want["formula"], reference_input(want["data"]), reml=method == "REML", dispersion=want["dispersion"]
    )
    theirs = want[method]
    assert fit.converged
    assert fit.n_params == theirs["n_params"]
    assert fit.llf == approx(theirs["llf"], abs=1e-4)
    assert fit.llf > theirs["llf"] - 1e-6
    assert fit.residual_variances.to_numpy() == approx(np.array(theirs["residual_variances"]), rel=1e-4)
    assert fit.params.to_numpy() == approx(
        np.array([row["estimate"] for row in theirs["fixef"]]), abs=1e-4 * fit.bse.max()
    )
    # for ML nlme scales standard errors by the residual degrees of freedom; we do not
    inflate = np.sqrt(fit.nobs / (fit.nobs - fit.rank)) if method == "ML" else 1.0
    assert fit.bse.to_numpy() * inflate == approx(np.array([row["se"] for row in theirs["fixef"]]), rel=1e-4)


def small_problem(reml: bool):
    rng = np.random.default_rng(0)
    n_cells = 300
    run = np.append(np.arange(60), rng.integers(0, 60, n_cells - 60))
    seed, algorithm, stratum = run // 3, rng.integers(0, 7, n_cells), rng.integers(0, 3, n_cells)
    one, x = np.ones((n_cells, 1)), rng.normal(size=n_cells)
    slope = np.column_stack([one, x])
    terms = [RandomTerm(one, run, 60), RandomTerm(slope, seed, 20), RandomTerm(slope, algorithm, 7)]
    y = rng.normal(size=n_cells) * np.array([1, 0.3, 3])[stratum] + rng.normal(size=60)[run]
    n = rng.integers(1, 4, n_cells).astype(float)
    ss = rng.uniform(0, 1, n_cells) * (n > 1)
    return build_problem(terms, slope, y, n=n, weight=np.ones(n_cells), ss=ss, reml=reml, stratum=stratum)


@pytest.mark.parametrize("reml", [False, True])
def test_gradient_in_the_log_precisions_equals_finite_differences(reml):
    problem = small_problem(reml)
    x = np.append(np.random.default_rng(1).normal(size=problem.n_theta) * 0.6, [0.3, -0.5])
    _, g = problem.derivatives(x, problem.evaluate(x))
    step = 1e-5
    numeric = [
        (problem.evaluate(x + step * e).value - problem.evaluate(x - step * e).value) / (2 * step)
        for e in np.eye(len(x))
    ]
    assert g == approx(np.array(numeric), rel=1e-6, abs=1e-5)


def test_equal_groups_get_nearly_equal_variances_and_cost_parameters(reference_input):
    table = reference_input("sleepstudy")
    table["half"] = np.where(np.arange(len(table)) % 2, "odd", "even")
    one = lt.fit_lmm("Reaction ~ Days + (Days|Subject)", table, reml=False)
    two = lt.fit_lmm("Reaction ~ Days + (Days|Subject)", table, reml=False, dispersion="half")
    assert two.n_params == one.n_params + 1
    assert one.llf < two.llf < one.llf + 5
    assert list(two.residual_variances.index) == ["even", "odd"]
    assert two.varcorr.tail(2)["name1"].tolist() == ["even", "odd"]


def test_the_unit_of_one_group_does_not_decide_the_comparison(reference_input):
    table = reference_input("bench")
    scale = np.where(table["benchmark"] == table["benchmark"].iloc[0], 1000.0, 1.0)
    table["y"] = (table["y"] - table.groupby("benchmark")["y"].transform("mean")) * scale
    plain = lt.fit_lmm("y ~ algorithm", table)
    weighted = lt.fit_lmm("y ~ algorithm", table, dispersion="benchmark")
    assert weighted.bse.iloc[1] < plain.bse.iloc[1] / 100


def test_simulated_tables_keep_the_residual_variances(reference_input):
    fit = lt.fit_lmm("y ~ algorithm + (1|benchmark)", reference_input("bench"), dispersion="benchmark")
    rng = np.random.default_rng(2)
    refits = [fit.refit(cells=fit.simulate(rng=rng)).residual_variances for _ in range(100)]
    assert np.mean(refits, axis=0) == approx(fit.residual_variances.to_numpy(), rel=0.25)


def test_errors_of_the_dispersion_column(reference_input):
    table = reference_input("bench")
    with pytest.raises(UnknownColumnError, match="dispersion names the column 'benchmrak'"):
        lt.fit_lmm("y ~ algorithm", table, dispersion="benchmrak")
    constant = table["benchmark"] == table["benchmark"].iloc[0]
    table.loc[constant, "y"] = 1.0
    refuses(DesignError, "no residual variation", lt.fit_lmm, "y ~ benchmark", table, dispersion="benchmark")


def test_glrt_of_equal_residual_variances(reference, reference_input):
    table = reference_input("bench")
    null = lt.fit_lmm("y ~ algorithm + (1|benchmark)", table)
    alternative = lt.fit_lmm("y ~ algorithm + (1|benchmark)", table, dispersion="benchmark")
    test = lt.glrt(null, alternative)
    want = reference("dispersion")["fits"][0]
    assert (test.df, test.reference) == (5, "chi2")
    assert test.llf_alternative in (approx(want["ML"]["llf"], abs=1e-4), approx(want["REML"]["llf"], abs=1e-4))
    with pytest.raises(NestingError, match="no residual variances by 'benchmark'"):
        lt.glrt(alternative, lt.fit_lmm("y ~ algorithm + (1|benchmark) + (1|seed)", table))


def test_kenward_roger_is_refused_where_it_is_not_defined(reference_input):
    fit = lt.fit_lmm("y ~ algorithm + (1|benchmark)", reference_input("bench"), dispersion="benchmark")
    refuses(ArgumentError, "is for one residual variance", fit.emmeans, "algorithm", ddf="kenward-roger")


def test_bootstrap_draws_and_refits_with_the_residual_variances():
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"g": np.repeat(list("abcde"), 60), "t": np.tile(["p", "q"], 150)})
    table["y"] = np.repeat(rng.normal(size=5), 60) + rng.normal(size=300) * np.repeat([1.0, 1.0, 2.0, 2.0, 3.0], 60)
    fit = lt.fit_lmm("y ~ t + (1|g)", table, dispersion="g")
    found = fit.bootstrap(lambda f: f.residual_variances, 199, rng=3)
    assert found.names == tuple("abcde")
    # a variance estimated from n rows has the relative standard error sqrt(2 / n), known to 5 % from 199 draws
    assert found.se / found.estimate == approx(np.full(5, np.sqrt(2.0 / 59.0)), rel=0.2)
    errors = fit.bootstrap(lambda f: f.params["t[T.q]"], 199, rng=4)
    assert errors.se[0] == approx(fit.bse["t[T.q]"], rel=0.2)


@pytest.mark.slow
def test_glrt_bootstrap_of_residual_variances_agrees_with_chi_squared(reference_input):
    table = reference_input("bench")
    null = lt.fit_lmm("y ~ algorithm + (1|benchmark)", table, reml=False)
    null = null.refit(cells=null.simulate(rng=11))
    alternative = lt.fit_lmm(null.formula, table, reml=False, dispersion="benchmark").refit(cells=null.cells)
    chi2 = lt.glrt(null, alternative, reference="chi2")
    boot = lt.glrt(null, alternative, reference="bootstrap", n_draws=199, rng=5)
    assert boot.statistic == approx(chi2.statistic)
    assert boot.p_value == approx(chi2.p_value, abs=4 * np.sqrt(0.25 / 199))


def test_the_mean_residual_variance_is_over_rows(reference_input):
    fit = lt.fit_lmm("y ~ algorithm + (1|benchmark)", reference_input("bench_unbalanced"), dispersion="benchmark")
    by_level = reference_input("bench_unbalanced")["benchmark"].map(fit.residual_variances)
    assert fit.mean_residual_variance == approx(by_level.mean())


def crossed(scale=1.0, seed=0):
    rng = np.random.default_rng(seed)
    table = pd.DataFrame({"t": np.tile(["p", "q"], 60), "g": np.repeat(list("abcdef"), 20), "run": np.arange(120)})
    table["y"] = np.repeat(rng.normal(size=6), 20) + scale * rng.normal(size=120)
    return table


@pytest.mark.parametrize(
    ("column", "error", "message"),
    [
        ("y", ArgumentError, "dispersion='y' is the score itself."),
        (["t", "g"], ArgumentError, r"dispersion must name one column, got \['t', 'g'\]"),
        ("run", DesignError, "run=0 has 1 row, like 119 other levels: too few for a residual variance of its own."),
        ("flat", DesignError, "flat='a' has no residual variation: all its 20 scores are 1. Leave its rows out"),
    ],
)
def test_columns_that_cannot_have_residual_variances(column, error, message):
    table = crossed().assign(flat=lambda t: t["g"])
    if column == "flat":
        table.loc[table["g"] == "a", "y"] = 1.0
    refuses(error, message, lt.fit_lmm, "y ~ t + (1|g)", table, dispersion=column)


def test_one_level_is_one_residual_variance_and_a_note():
    table = crossed().assign(all="here")
    got, want = lt.fit_lmm("y ~ t + (1|g)", table, dispersion="all"), lt.fit_lmm("y ~ t + (1|g)", table)
    assert got.notes == ("The column all has one level, so there is one residual variance.",)
    assert got.llf == approx(want.llf)
    assert got.residual_variances.to_dict() == approx({"here": want.scale})
    assert got.n_params == want.n_params


def test_the_label_of_a_fit_names_what_the_formula_does_not():
    table = crossed().assign(w=2.0)
    assert lt.fit_lmm("y ~ t + (1|g)", table).label == "y ~ t + (1|g)"
    fit = lt.fit_lmm("y ~ t + (1|g)", table, dispersion="g", weights="w")
    assert fit.label == "y ~ t + (1|g), residual variance by g, weights w"
    assert fit.label in fit.summary()
