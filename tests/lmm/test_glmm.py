"""Generalised mixed models against lme4, glmmTMB, dense matrices and closed forms; and what is refused."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pandas as pd
import pytest
from pytest import approx
from references import values
from scipy import integrate, optimize, special, stats

import lmemtest as lt
from lmemtest.errors import (
    ArgumentError,
    ConvergenceWarning,
    DataError,
    DesignError,
    EstimationError,
    FormulaError,
    NestingError,
    UnknownColumnError,
)
from lmemtest.lmm.engine import theta as th
from lmemtest.lmm.engine.ddf import curvature
from lmemtest.lmm.engine.held import Held
from lmemtest.lmm.engine.laplace import Likelihood
from lmemtest.lmm.engine.pseudo import Answers, pseudo_likelihood
from lmemtest.lmm.engine.separation import leverages, separated
from lmemtest.lmm.engine.structure import RandomTerm
from lmemtest.lmm.families import Family
from lmemtest.lmm.means.empirical_bayes import moderation
from lmemtest.lmm.means.response import marginal_means

CASES = {case["name"]: case for case in values("glmm")["cases"]}
OF_GLMM = values("glmm_python")["llf"]
BY_QUADRATURE = {case["name"]: case for case in values("glmm_quadrature")["cases"]}
FAMILIES = {"nbinom2": "negative-binomial"}


def fitted(name: str, **options: Any) -> lt.lmm.GlmmFit:
    case = CASES[name]
    family = FAMILIES.get(case["family"], case["family"])
    link = case["link"] if family == "binomial" else None
    return lt.fit_glmm(
        case["formula"], pd.DataFrame(case["data"]), family=family, link=link, trials=case["trials"] or None, **options
    )


def by_quadrature(name: str) -> lt.lmm.GlmmFit:
    case = BY_QUADRATURE[name]
    options = {"family": case["family"], "trials": case["trials"] or None, "method": "quadrature"}
    return lt.fit_glmm(case["formula"], pd.DataFrame(case["data"]), **options)


# ---------------------------------------------------------------------------------------------------------- references


@pytest.mark.level(2)
@pytest.mark.parametrize("name", CASES)
def test_the_likelihood_is_at_least_that_of_lme4_glmmtmb_and_glmm(name):
    case, fit = CASES[name], fitted(name, method="laplace")
    # lme4 has the expected curvature where the link is not canonical, which is another approximation
    others = [case["llf_glmmTMB"], case["llf_lme4"] if case["link"] in ("logit", "log") else None, OF_GLMM[name]]
    assert fit.llf > max(value for value in others if value is not None) - 1e-6
    assert fit.converged
    if case["converged"]:
        assert fit.llf == approx(case["llf_glmmTMB"], abs=1e-5)
        # a search of glmmTMB ends where its gradient is 1e-3 or less; effects are on the scale of the predictors
        assert fit.params.tolist() == approx(case["fixef"], abs=2e-5 * max(1.0, *np.ravel(case["sd"])))
        if case["family"] != "nbinom2":  # whose errors hold the size, here
            assert fit.bse.tolist() == approx(case["se"], rel=1e-4)
        sd = np.concatenate([np.sqrt(S.diagonal()) for S in fit.covariances])
        assert sd == approx(np.array(case["sd"]), abs=2e-3)
    if "size" in case:
        assert fit.family.size == approx(case["size"], rel=1e-4)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if "pseudo" in case])
def test_restricted_pseudo_likelihood_is_that_of_dense_matrices(name):
    fit, want = fitted(name), CASES[name]["pseudo"]
    assert want["moved"] < 1e-9
    # R's search of standard deviations ends where the deviance changes by rounding, at half its digits
    assert fit.params.tolist() == approx(want["b"], abs=5e-6)
    assert fit.bse.tolist() == approx(want["se"], rel=1e-5)
    assert np.concatenate([np.sqrt(S.diagonal()) for S in fit.covariances]) == approx(np.array(want["sd"]), abs=3e-5)


@pytest.mark.parametrize("name", BY_QUADRATURE)
def test_quadrature_is_that_of_lme4(name):
    case, fit = BY_QUADRATURE[name], by_quadrature(name)
    assert fit.converged
    assert fit.params.tolist() == approx(case["fixef"], abs=5e-6)  # bobyqa stops before ours
    assert fit.bse.tolist() == approx(case["se"], rel=1e-5)
    assert np.sqrt(fit.covariances[0]).item() == approx(case["sd"], abs=5e-6)
    if name == "women":  # of counts and of shares lme4 leaves out constants
        assert fit.llf == approx(case["llf"], abs=1e-8)


def test_quadrature_is_the_likelihood_where_the_variance_is_sixteen():
    """25 nodes, as lme4's reference has, are too few for toenail fungus: its likelihood is off by 0.02."""
    case, fit = CASES["toenail"], fitted("toenail", method="quadrature")
    table, sd = pd.DataFrame(case["data"]), float(np.sqrt(fit.covariances[0]).item())
    eta = fit.predict(table, random=False, type="link")
    v, width = np.linspace(-10.0, 10.0, 2001, retstep=True)
    patients = np.unique(table["id"], return_inverse=True)[1]
    logs = np.zeros((patients.max() + 1, len(v)))
    np.add.at(logs, patients, special.log_expit((2 * table["y"] - 1).to_numpy()[:, None] * (eta[:, None] + sd * v)))
    assert fit.llf == approx(special.logsumexp(logs + stats.norm.logpdf(v) + np.log(width), axis=1).sum(), abs=1e-7)
    of_lme4 = case["quadrature"]
    assert fit.llf > of_lme4["llf"] - 1e-6
    assert fit.params.tolist() == approx(of_lme4["fixef"], abs=0.01)
    assert fit.bse.tolist() == approx(of_lme4["se"], rel=0.01)
    assert sd == approx(of_lme4["sd"], abs=0.01)


def test_pseudo_likelihood_of_matings_is_that_of_sas():
    """The estimates printed in SAS/STAT's User's Guide, GLIMMIX, example 2 (restricted pseudo-likelihood)."""
    fit = fitted("salamander")
    assert [variance.item() for variance in fit.covariances] == [approx(1.4099, abs=5e-5), approx(0.08963, abs=5e-6)]
    means = fit.emmeans(["model", "male"])
    assert means.estimate == approx(np.array([1.1629, 0.7839, -1.4119, 1.0151]), abs=5e-5)
    assert means.se == approx(np.array([0.5961, 0.5729, 0.6143, 0.5871]), abs=5e-5)


def test_the_likelihood_by_quadrature_is_that_of_integrals():
    case = BY_QUADRATURE["few counts"]
    table, fit = pd.DataFrame(case["data"]), by_quadrature("few counts")
    (intercept, slope), sd = fit.params, float(np.sqrt(fit.covariances[0]).item())

    def of_patient(y, visit):
        def density(v):
            return np.prod(stats.poisson.pmf(y, np.exp(intercept + slope * visit + sd * v))) * stats.norm.pdf(v)

        return np.log(integrate.quad(density, -9.0, 9.0, epsabs=0.0, epsrel=1e-11, limit=200)[0])

    each = [of_patient(rows["y"].to_numpy(), rows["visit"].to_numpy()) for _, rows in table.groupby("patient")]
    assert fit.llf == approx(sum(each), abs=1e-7)
    laplace = lt.fit_glmm(case["formula"], table, family="poisson", method="laplace")
    assert abs(laplace.llf - sum(each)) > 0.01  # and Laplace's approximation is not that
    assert fit.refit().llf == approx(fit.llf, abs=1e-9)
    null = lt.fit_glmm("y ~ 1 + (1 | patient)", table, family="poisson", method="quadrature")
    assert lt.glrt(null, fit).statistic == approx(2.0 * (fit.llf - null.llf), abs=1e-8)
    with pytest.raises(NestingError, match="of one model is by quadrature"):
        lt.glrt(null, laplace)


def test_the_gradient_of_quadrature_is_that_of_its_value():
    fit = by_quadrature("women")
    answers = Answers(fit.observed.n * fit.observed.mean, fit.observed.n)
    design = fit.design
    terms = tuple(design.engine_terms)
    likelihood = Likelihood(terms, design.distinct, design.row, design.offset, answers, fit.family, quadrature=True)
    point = np.array([0.7, -0.5, 0.3, 0.2])
    here = likelihood.mode(point, fit.working)
    steps = 1e-5 * np.eye(4)
    slopes = [
        (likelihood.mode(point + step, here).value - likelihood.mode(point - step, here).value) / 2e-5 for step in steps
    ]
    assert likelihood.gradient(point, here) == approx(np.array(slopes), rel=1e-6)


def test_aic_and_parameters_are_those_of_lme4():
    fit = fitted("cbpp")
    assert fit.n_params == 5  # four periods and a variance
    assert fit.aic == approx(-2.0 * CASES["cbpp"]["llf_glmmTMB"] + 10.0, abs=1e-7)


def test_one_group_of_answers_has_the_likelihood_of_the_binomial():
    table = pd.DataFrame({"right": [7, 3], "asked": [10, 12], "g": ["p", "q"]})
    fit = lt.fit_glmm("right ~ g", table, trials="asked")
    from scipy.stats import binom

    assert fit.llf == approx(binom.logpmf([7, 3], [10, 12], [0.7, 0.25]).sum(), abs=1e-10)
    assert fit.params.tolist() == approx([np.log(7 / 3), np.log(1 / 3) - np.log(7 / 3)], abs=1e-9)
    assert fit.bse.iloc[0] == approx(np.sqrt(1 / 7 + 1 / 3), rel=1e-7)  # Woolf's
    assert fit.bse.iloc[1] == approx(np.sqrt(1 / 7 + 1 / 3 + 1 / 3 + 1 / 9), rel=1e-7)


def test_counts_with_an_exposure_have_their_rates():
    table = pd.DataFrame({"failures": [4, 9], "hours": [10.0, 30.0], "g": ["p", "q"]})
    fit = lt.fit_glmm("failures ~ g + offset(log(hours))", table, family="poisson")
    assert np.exp(fit.params.iloc[0]) == approx(0.4, rel=1e-9)
    assert np.exp(fit.params.iloc[1]) == approx(0.3 / 0.4, rel=1e-9)


# ---------------------------------------------------------------------------------------------------------- invariance


def answers() -> pd.DataFrame:
    case = CASES["attempts 1"]
    return pd.DataFrame(case["data"])


def test_successes_of_attempts_are_as_many_single_answers():
    table = answers()
    rows = table.loc[table.index.repeat(6)].reset_index(drop=True)
    rows["right"] = (rows.groupby(table.index.repeat(6)).cumcount() < rows["y"]).astype(float)
    shares, single = fitted("attempts 1"), lt.fit_glmm(CASES["attempts 1"]["formula"].replace("y ~", "right ~"), rows)
    assert len(single.cells.n) == len(shares.cells.n)
    assert single.params.tolist() == approx(shares.params.tolist(), rel=1e-10)
    assert single.nobs == shares.nobs == len(rows)
    # single answers have one order each, successes any: log-likelihoods differ by the number of orders
    from scipy.special import gammaln

    orders = (gammaln(7) - gammaln(table["y"] + 1) - gammaln(7 - table["y"])).sum()
    assert single.llf == approx(shares.llf - orders, abs=1e-8)


def test_wrong_answers_are_right_ones_with_the_other_sign():
    table = answers()
    other = lt.fit_glmm(CASES["attempts 1"]["formula"], table.assign(y=table["n"] - table["y"]), trials="n")
    assert other.params.tolist() == approx((-fitted("attempts 1").params).tolist(), abs=1e-7)


def test_the_order_of_rows_does_not_matter():
    table = answers().sample(frac=1.0, random_state=3)
    other = lt.fit_glmm(CASES["attempts 1"]["formula"], table, trials="n")
    assert other.params.tolist() == approx(fitted("attempts 1").params.tolist(), rel=1e-12)


# -------------------------------------------------------------------------------------------------------------- engine


ALL = [Family.of("binomial", link) for link in ("logit", "probit", "cloglog")]
ALL += [Family.of("poisson"), Family("negative-binomial", "log", 2.3)]


@pytest.mark.parametrize("family", ALL, ids=str)
def test_derivatives_of_the_log_likelihood_are_those_of_differences(family):
    eta, h = np.linspace(-6.0, 3.0, 41), 1e-5
    at, up, down = (family.log_likelihood(e, np.full(41, 3.0), np.full(41, 7.0)) for e in (eta, eta + h, eta - h))
    for i in range(3):
        assert at[i + 1] == approx((up[i] - down[i]) / (2 * h), rel=1e-6, abs=1e-8)
    mean = family.mean(eta)
    assert family.predictor(mean) == approx(eta, abs=1e-8)
    variance = mean * (1 - mean) if family.binomial else mean + mean**2 / family.size
    assert family.information(eta, np.full(41, 7.0)) == approx(7.0 * family.slope(eta) ** 2 / variance, rel=1e-7)


@pytest.mark.parametrize("family", ALL[:3], ids=str)
def test_nothing_cancels_at_extreme_predictors(family):
    eta = np.array([-30.0, -20.0, 3.0, 20.0, 30.0])
    at = family.log_likelihood(eta, np.array([1.0, 1.0, 0.0, 0.0, 0.0]), np.ones(5))
    assert all(np.isfinite(part).all() for part in at)
    assert (at.second <= 0).all()
    assert (at.value < 0).all()


def _terms(kind: str) -> tuple[list[RandomTerm], np.ndarray, int]:
    rng = np.random.default_rng(5)
    t, i, m = (a.ravel() for a in np.meshgrid(np.arange(3), np.arange(4), np.arange(3), indexing="ij"))
    if kind == "gaps":
        kept = rng.random(72) < 0.5
        t, i, m = (np.tile(a, 2)[kept] for a in (t, i, m))
    n, one = len(t), np.ones((len(t), 1))
    (_, ti), (_, tm) = (np.unique(a, return_inverse=True) for a in (t * 4 + i, t * 3 + m))
    task, item, pair = RandomTerm(one, t, 3), RandomTerm(one, ti, ti.max() + 1), RandomTerm(one, tm, tm.max() + 1)
    slope = RandomTerm(np.column_stack([one, rng.normal(size=n)]), t, 3)
    single = RandomTerm(one, np.arange(n), n)
    diagonal = RandomTerm(np.eye(3)[m], t, 3, diagonal=True)
    kinds = {"nested": [task, item, pair], "slope": [slope, RandomTerm(one, i, 4)], "cells": [single, task],
             "cells alone": [single], "diagonal": [diagonal, item], "gaps": [task, item, pair]}  # fmt: skip
    return kinds[kind], m, n


KINDS = ["nested", "slope", "cells", "cells alone", "diagonal", "gaps"]


def _factors(terms: list[RandomTerm], rng: np.random.Generator) -> list[np.ndarray]:
    lower = [np.tril(rng.uniform(0.2, 0.8, (term.k, term.k))) for term in terms]
    return [np.diag(L.diagonal()) if term.diagonal else L for L, term in zip(lower, terms, strict=True)]


@pytest.mark.parametrize("kind", KINDS)
def test_leverages_are_those_of_dense_matrices(kind):
    (terms, _, n), rng = _terms(kind), np.random.default_rng(1)
    weight, factors = rng.uniform(0.5, 2.0, n), _factors(terms, rng)
    held = Held(tuple(terms), tuple(factors), weight).reweighted(weight)
    V = np.zeros((n, n))
    for term, L in zip(terms, factors, strict=True):
        V += (term.codes[:, None] == term.codes[None, :]) * (term.basis @ L @ L.T @ term.basis.T)
    inner = np.eye(n) + weight[:, None] * V
    assert held.logdet == approx(np.linalg.slogdet(inner)[1], rel=1e-12)
    assert held.leverages()[0] == approx(np.diag(V @ np.linalg.inv(inner)), rel=1e-9, abs=1e-13)


@pytest.mark.daily(11)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("family", ALL, ids=str)
def test_the_gradient_of_the_likelihood_is_that_of_differences(kind, family):
    (terms, m, n), rng = _terms(kind), np.random.default_rng(2)
    y = rng.binomial(3, 0.6, n) if family.binomial else rng.poisson(2.0, n)
    likelihood = Likelihood(tuple(terms), np.eye(3), m, np.zeros(n), Answers(y.astype(float), np.full(n, 3.0)), family)
    near = pseudo_likelihood(terms, np.eye(3), m, np.zeros(n), likelihood.answers, family, reml=False)
    point = np.concatenate([th.pack(_factors(terms, rng), likelihood.shapes), rng.normal(0.0, 0.3, 3)])
    mode = likelihood.mode(point, near)
    steps = 1e-5 * np.eye(len(point))
    differences = [
        (likelihood.mode(point + e, mode).value - likelihood.mode(point - e, mode).value) / 2e-5 for e in steps
    ]
    g = likelihood.gradient(point, mode)
    assert g == approx(np.array(differences), abs=1e-6 * np.abs(g).max())


# ------------------------------------------------------------------------------------------------- degrees of freedom


def test_where_a_variance_is_zero_degrees_of_freedom_are_those_between_groups():
    fit = fitted("answers 2")  # five tasks, three models
    assert {"(1 | task)", "(1 | task:model)"} <= set(fit.singular_terms)
    means = fit.emmeans("model")
    assert means.pairs().to_frame()["df"].tolist() == approx([8.0] * 3)  # (5 - 1) (3 - 1)
    assert np.all(curvature(fit.problem, fit.optim).satterthwaite(np.array([[0.0, 1.0, 0.0]])) > 100.0)
    assert means.df == approx([4.0] * 3)  # of means between tasks
    assert any("between-within" in note for note in fit.notes)


def test_differences_within_groups_of_a_zero_variance_keep_their_degrees_of_freedom():
    table = pd.DataFrame(
        {"right": [8, 6, 9, 5, 7, 7, 9, 4], "asked": 10, "model": ["A", "B"] * 4, "task": list("ppqqrrss")}
    )
    fit = lt.fit_glmm("right ~ model + (1 | task)", table, trials="asked")
    assert fit.is_singular
    assert np.isinf(fit.emmeans("model").pairs().to_frame()["df"]).all()
    assert fit.emmeans("model").df == approx([3.0, 3.0])


def test_degrees_of_freedom_are_at_least_those_between_the_fewest_groups():
    table = pd.DataFrame({"right": [34, 28, 49, 44], "asked": 50, "model": ["A", "B"] * 2, "task": list("aabb")})
    fit = lt.fit_glmm("right ~ model + (1 | task) + (1 | task:model)", table, trials="asked")
    L = np.array([[0.0, 1.0]])
    assert curvature(fit.problem, fit.optim).satterthwaite(L)[0] < 0.5  # which would leave no estimate
    assert (fit.least_df, fit.df(L)[0]) == (1.0, 1.0)  # two tasks
    pairs = fit.emmeans("model").pairs().to_frame()
    t = pairs["estimate"] / pairs["se"]
    assert pairs["p_value"][0] == approx(1.0 - 2.0 / np.pi * np.arctan(abs(t[0])))  # of a Cauchy variable
    assert any(note.startswith("Degrees of freedom of at least 1") for note in fit.notes)


def test_a_variance_that_is_known_but_for_rounding_has_infinite_degrees_of_freedom():
    """Differences within groups, whose variance does not depend on that of the groups: 2e64 of them, or 4e10."""
    rng = np.random.default_rng(1)
    y = rng.poisson(300.0 * np.exp(0.001 * rng.normal(size=40)), (3, 2, 40)).ravel()
    table = pd.DataFrame({"y": y, "model": np.tile(np.repeat(["A", "B"], 40), 3), "task": np.tile(np.arange(40), 6)})
    fit = lt.fit_glmm("y ~ model + (1 | task)", table, family="poisson")
    assert not fit.is_singular
    for means in (fit.emmeans("model"), fit.emmeans("model", type="response")):
        pair = means.pairs()
        assert np.isinf(pair.to_frame()["df"]).all()
        assert "e+" not in pair.summary()
        assert means.df.max() < 1000.0


def test_laplace_estimates_have_normal_tests():
    assert np.isinf(fitted("answers 1", method="laplace").emmeans("model").pairs().to_frame()["df"]).all()


# ---------------------------------------------------------------------------------------------------------- separation


def one_model_solves_all() -> pd.DataFrame:
    rng = np.random.default_rng(3)
    rows = [(m, t, i) for m in "abc" for t in "uvwxy" for i in range(8)]
    table = pd.DataFrame(rows, columns=["model", "task", "item"])
    table["y"] = np.where(table["model"] == "c", 1.0, rng.random(len(table)) < 0.7).astype(float)
    return table


def test_a_model_that_solves_all_has_finite_estimates_and_says_so():
    fit = lt.fit_glmm("y ~ model + (1 | task)", one_model_solves_all())
    assert fit.prior.tolist() == approx([0.0, 0.0, 1.0])  # half a right answer and half a wrong one
    c = fit.emmeans("model")
    assert c.estimate[2] == approx(np.log(40.5 / 0.5), abs=0.15)
    assert c.se[2] < 2.0
    note = next(note for note in fit.notes if note.startswith("Separation"))
    assert "the answers at model = c perfectly" in note
    with pytest.raises(EstimationError, match=r"the likelihood has no maximum: model = c"):
        fit.llf  # noqa: B018


def test_without_random_effects_the_prior_is_firths():
    table = pd.DataFrame({"right": [10, 4], "asked": [10, 10], "g": ["p", "q"]})
    fit = lt.fit_glmm("right ~ g", table, trials="asked")
    assert fit.params.iloc[0] == approx(np.log(10.5 / 0.5), rel=1e-9)
    assert fit.params.sum() == approx(np.log(4 / 6), rel=1e-9)  # as the data have it: it needs no prior


def test_a_combination_of_effects_that_separates_is_found():
    X = np.array([[1.0, 0, 0], [1, 1, 0], [1, 0, 1], [1, 1, 1]])
    row, n = np.arange(4), np.full(4, 5.0)
    assert (
        separated(X, row, np.array([5.0, 2, 3, 1]), n, binomial=True).tolist() == [False] * 4
    )  # three others decide it
    assert separated(X, row, np.array([0.0, 2, 0, 1]), n, binomial=True).tolist() == [True, False] * 2
    assert separated(X[[0, 2]], row[:2], np.array([0.0, 3]), n[:2], binomial=True).tolist() == [True, False]
    saturated = np.column_stack([X, X[:, 1] * X[:, 2]])
    assert separated(saturated, row, np.array([0.0, 2, 5, 1]), n, binomial=True).tolist() == [True, False, True, False]
    assert separated(saturated, row, np.array([0.0, 2, 5, 1]), n, binomial=False).tolist() == [
        True,
        False,
        False,
        False,
    ]
    line = np.column_stack([np.ones(5), np.arange(5.0)])
    assert separated(line, np.arange(5), np.array([0.0, 0, 0, 1, 1]), np.ones(5), binomial=True).all()
    assert leverages(X, n).sum() == approx(3.0)


# --------------------------------------------------------------------------------------------------- what it is asked


def test_what_follows_a_fit_follows_this_one():
    fit = fitted("attempts 2")
    means = fit.emmeans("model")
    assert means.score == "logit(y)"
    assert "Means and differences are on the scale of logit(y)." in means.notes
    assert means.pairs().decisions().to_frame() is not None
    assert fit.anova().to_frame()["df_num"].tolist() == [2]
    assert set(fit.ranef()) == {"task", "item", "task:model"}
    assert list(fit.varcorr["group"]) == ["task", "item", "task:model"]  # and no residual
    assert fit.random_effects("item") is not None
    assert fit.title == "Generalised linear mixed model"
    assert "binomial (logit) of n" in str(fit)


def test_predictions_are_probabilities_that_add_up():
    fit = fitted("attempts 2")
    assert fit.predict(type="link") == approx(fit.working.eta[_cell_of_rows(fit)], abs=1e-6)
    # the score equations of the intercept: predicted successes are those observed
    assert (fit.observed.n * fit.cell_residuals()).sum() == approx(0.0, abs=1e-5)
    with pytest.raises(ArgumentError, match=r"fit.cell_residuals\(\)"):
        fit.resid  # noqa: B018
    single = fitted("answers 1")
    assert single.resid.sum() == approx(0.0, abs=1e-5)
    assert single.fittedvalues.between(0.0, 1.0).all()


def _cell_of_rows(fit: lt.lmm.GlmmFit) -> np.ndarray:
    from lmemtest.lmm.model.predictions import rows_of

    return rows_of(fit)[0]


@pytest.mark.parametrize("name", ["attempts 1", "counts 1", "scattered counts 1"])
def test_draws_have_the_moments_of_the_model(name):
    fit = fitted(name)
    rng = np.random.default_rng(0)
    draws = np.array([fit.simulate(rng=rng).mean for _ in range(300)])
    assert np.all(draws * fit.observed.n == np.round(draws * fit.observed.n))
    # the mean over new random effects, by a quadrature of the normal predictor
    x, weight = np.polynomial.hermite_e.hermegauss(40)
    sd = np.sqrt(sum(S[0, 0] for S in fit.covariances))
    eta = linear_predictor(fit)
    mean = sum(w * fit.family.mean(eta + sd * v) for v, w in zip(x, weight, strict=True)) / np.sqrt(2 * np.pi)
    assert draws.mean() == approx(mean.mean(), rel=0.1)


def linear_predictor(fit: lt.lmm.GlmmFit) -> np.ndarray:
    return fit.cell_predictions(random=False)


@pytest.mark.parametrize("family", ALL, ids=str)
def test_marginal_means_are_those_of_an_adaptive_quadrature(family):
    from scipy.integrate import quad

    for eta, variance in ((-1.0, 0.3), (2.0, 2.5), (0.4, 0.0)):
        m, slope, bend = marginal_means(family, np.array([eta]), np.array([variance]))

        def mean(e, v):
            inner = lambda x: float(family.mean(e + np.sqrt(v) * x)) * np.exp(-0.5 * x * x) / np.sqrt(2 * np.pi)  # noqa: E731
            return quad(inner, -12.0, 12.0, epsabs=1e-13, limit=200)[0]

        assert m[0] == approx(mean(eta, variance), rel=1e-6)
        assert slope[0] == approx((mean(eta + 1e-4, variance) - mean(eta - 1e-4, variance)) / 2e-4, rel=1e-4)
        if variance:
            step = 1e-3 * variance
            of_variance = (mean(eta, variance + step) - mean(eta, variance - step)) / (2 * step)
            assert bend[0] == approx(of_variance, rel=1e-4)


def test_probabilities_average_over_the_random_effects_and_meet_the_mean_of_the_answers():
    fit = fitted("attempts 2")
    link, means = fit.emmeans("model"), fit.emmeans("model", type="response")
    theta, b = fit.optim.theta, fit.params.to_numpy()
    n, answers = fit.observed.n, float(fit.observed.n @ fit.observed.mean)
    of_cells = fit.cell_predictions(random=False)
    first = link.L[0]
    x, weight = np.polynomial.hermite_e.hermegauss(120)

    def average(eta: np.ndarray, v: float) -> np.ndarray:
        return special.expit(np.asarray(eta)[..., None] + np.sqrt(v) * x) @ weight / weight.sum()

    def probability(b: np.ndarray, at: np.ndarray, functions: np.ndarray = first) -> np.ndarray:
        v = float((at**2).sum())
        moved = optimize.brentq(lambda c: float(n @ average(of_cells + c, v)) - answers, -9.0, 9.0, xtol=1e-14)
        return average(functions @ b + moved, v)

    assert (theta**2).sum() == approx(sum(S[0, 0] for S in fit.covariances), rel=1e-9)
    assert means.estimate == approx(probability(b, theta, link.L), rel=1e-7)
    # how the probability moves with each parameter, by differences; its level moves with the fixed effects
    g_b = np.array([(probability(b + 1e-5 * e, theta) - probability(b - 1e-5 * e, theta)) / 2e-5 for e in np.eye(3)])
    g_x = np.array([(probability(b, theta + 1e-5 * e) - probability(b, theta - 1e-5 * e)) / 2e-5 for e in np.eye(3)])
    variance = g_b @ fit.cov_params().to_numpy() @ g_b + g_x @ fit.curvature.theta_covariance() @ g_x
    assert means.se[0] == approx(np.sqrt(variance), rel=1e-6)
    pairs = means.pairs().to_frame()
    assert pairs["estimate"].tolist() == approx(-np.diff(means.estimate[[0, 1, 0, 2, 1, 2]])[::2], rel=1e-9)
    assert (
        "averaged over the random effects of task, item and task:model: for further ones like these" in means.notes[0]
    )
    at, half = special.logit(means.estimate), stats.t.isf(0.025, means.df) * means.se
    half /= means.estimate * (1.0 - means.estimate)  # the delta method on the scale of log odds
    assert means.ci_low == approx(special.expit(at - half), rel=1e-9)
    assert means.ci_high == approx(special.expit(at + half), rel=1e-9)


@pytest.mark.parametrize("link", ["logit", "probit", "cloglog"])
def test_the_level_of_probabilities_weighs_groups_as_generalised_least_squares_do(link: str) -> None:
    trials = np.repeat([400, 60, 30, 30, 30], 2)
    table = {"n": trials, "k": [280, 300, 20, 28, 6, 10, 9, 12, 8, 4], "m": list("AB") * 5, "g": list("vvwwxxyyzz")}
    fit = lt.fit_glmm("k ~ m + (1 | g)", table, trials="n", link=link)
    group, n, share = fit.cells.frame["g"].to_numpy(), fit.observed.n, fit.observed.mean
    information = fit.family.information(fit.cell_predictions(random=False), n)
    V = np.diag(1.0 / information) + fit.covariances[0][0, 0] * np.equal.outer(group, group)
    weight = n * np.linalg.solve(V, np.ones(len(n))) / information
    means = dict(zip("AB", fit.emmeans("m", type="response").estimate, strict=True))
    expected = np.array([means[model] for model in fit.cells.frame["m"]])
    assert weight @ expected == approx(weight @ share, rel=1e-9)
    assert n @ expected < 0.9 * n @ share  # the largest group is the best


def test_probabilities_without_random_effects_are_the_shares():
    table = {"right": [12, 7, 18], "asked": [20, 20, 25], "model": list("abc")}
    means = lt.fit_glmm("right ~ model", table, trials="asked").emmeans("model", type="response")
    assert means.estimate == approx([0.6, 0.35, 0.72], abs=1e-9)
    assert means.se == approx([np.sqrt(p * (1 - p) / n) for p, n in ((0.6, 20), (0.35, 20), (0.72, 25))], rel=1e-6)
    assert means.notes[0] == "Means are probabilities of a right answer."


def test_ratios_of_probabilities_are_those_of_the_means_with_errors_by_the_delta_method():
    fit = fitted("attempts 2")
    means, logs = (fit.emmeans("model", type=type, vcov="model") for type in ("response", "log"))
    m, V = means.estimate, means.V
    assert logs.estimate == approx(np.log(m), rel=1e-12)
    assert logs.to_frame()["log_response"].tolist() == logs.estimate.tolist()
    assert [logs.ci_low, logs.ci_high] == [approx(np.log(means.ci_low)), approx(np.log(means.ci_high))]
    pairs, ratios = logs.pairs(), logs.pairs().ratios()
    assert ratios["ratio"][0] == approx(m[0] / m[1], rel=1e-12)
    assert pairs.to_frame()["se"][0] ** 2 == approx(
        V[0, 0] / m[0] ** 2 + V[1, 1] / m[1] ** 2 - 2 * V[0, 1] / m[0] / m[1]
    )
    assert "ratio: of the probabilities of a right answer, averaged over the random effects" in str(pairs)
    with pytest.raises(ArgumentError, match=r"these are of .*\. Take emmeans\(\.\.\., type='log'\)"):
        means.pairs().ratios()


def test_ratios_on_the_scale_of_log_odds_are_conditional_odds_ratios():
    pairs = fitted("attempts 2").emmeans("model").pairs()
    table, ratios = pairs.to_frame(), pairs.ratios()
    assert ratios["ratio"].to_numpy() == approx(np.exp(table["estimate"].to_numpy()), rel=1e-12)
    assert ratios["ci_low"].to_numpy() == approx(np.exp(table["ci_low"].to_numpy()), rel=1e-12)
    assert "ratio: of the odds, given all effects of the model (conditional odds ratios)" in str(pairs)
    assert "a conditional odds ratio of" in pairs.sentences()[0]
    assert pairs.shown()["ratio"].tolist() == ratios["ratio"].tolist()


def test_ratios_of_counts_are_the_same_given_the_random_effects_and_averaged_over_them():
    fit = fitted("counts 1")
    given, averaged = (fit.emmeans("model", type=type).pairs() for type in ("link", "log"))
    for column in ("estimate", "se", "df", "p_value"):
        assert averaged.to_frame()[column].to_numpy() == approx(given.to_frame()[column].to_numpy(), rel=1e-6)
    assert "ratio: of the expected values" in str(given)


def test_a_response_scale_is_for_generalised_models():
    linear = lt.fit_lmm("y ~ model + (1 | herd)", pd.DataFrame(CASES["cbpp"]["data"]))
    with pytest.raises(ArgumentError, match="type='response' is for models with a link, and the means of this one"):
        linear.emmeans("model", type="response")
    with pytest.raises(ArgumentError, match="type must be 'link' or 'response' or 'log'"):
        fitted("cbpp").emmeans("model", type="odds")


def test_a_model_that_is_not_fitted_yet_takes_a_family():
    table, formula = pd.DataFrame(CASES["cbpp"]["data"]), CASES["cbpp"]["formula"]
    fit = lt.lmm.ModelSpec.parse(formula).fit(table, family="binomial", trials="n")
    assert fit.params.tolist() == approx(fitted("cbpp").params.tolist(), rel=1e-12)
    with pytest.raises(ArgumentError, match="Leave the dispersion out"):
        lt.lmm.ModelSpec.parse(formula, dispersion="herd").fit(table, family="binomial", trials="n")
    runs = lt.Runs(
        table.assign(task=table["herd"]), algorithm="model", benchmark="task", score="y", direction="minimize"
    )
    built = lt.ModelBuilder(runs).fit(family="poisson")
    assert built.distribution == "poisson"
    assert built.emmeans("model").direction == "minimize"


def test_a_bootstrap_refits_answers():
    found = fitted("cbpp").bootstrap(lambda f: f.params, 12, rng=1)
    assert found.failed == 0
    assert found.draws.shape == (12, 4)


def test_a_likelihood_ratio_is_of_the_likelihood():
    null = lt.fit_glmm("y ~ 1 + (1 | herd)", pd.DataFrame(CASES["cbpp"]["data"]), trials="n")
    found = lt.glrt(null, fitted("cbpp"))
    assert (found.df, found.method) == (3, "ML")
    assert found.statistic == approx(2.0 * (fitted("cbpp").llf - null.llf), abs=1e-9)
    linear = lt.fit_lmm("y ~ model + (1 | herd)", pd.DataFrame(CASES["cbpp"]["data"]))
    with pytest.raises(NestingError, match=r"different responses: logit\(y\) in the null, y in the alternative"):
        lt.glrt(null, linear)
    with pytest.raises(ArgumentError, match="reference='bootstrap' is for linear mixed models"):
        lt.glrt(null, fitted("cbpp"), "bootstrap")


@pytest.mark.parametrize("question", ["influence", "ranova", "r2", "icc"])
def test_questions_about_residuals_are_refused_with_what_to_do(question):
    with pytest.raises(ArgumentError, match=r"is for linear mixed models, and this fit is binomial\. "):
        getattr(fitted("cbpp"), question)(*(["herd"] if question == "influence" else []))
    with pytest.raises(ArgumentError, match=r"Read fit\.diagnose\(\), and draw the means"):
        fitted("cbpp").plot()
    with pytest.raises(ArgumentError, match="ddf='satterthwaite'"):
        fitted("cbpp").to_frame(ddf="kenward-roger")


# ---------------------------------------------------------------------------------------------- errors from the scatter


def test_a_variance_that_maximum_likelihood_has_at_its_bound_is_zero_to_the_last_digit():
    table = {"right": [6, 4, 5, 5, 4, 6, 5, 5], "asked": [10] * 8, "task": list("ppqqrrss")}  # all tasks alike
    fit = lt.fit_glmm("right ~ 1 + (1 | task)", table, trials="asked", method="laplace")
    assert fit.covariances[0].item() == 0.0
    assert fit.is_singular
    assert fit.profile("sd").to_frame()["estimate"].item() == 0.0
    assert fit.params.item() == approx(0.0, abs=1e-6)  # 40 of 80


def test_the_cluster_robust_covariance_is_the_sandwich_of_the_working_scores():
    fit = fitted("cbpp")
    frame, X = fit.cells.frame, fit.design.distinct[fit.design.row]
    herd = np.eye(15)[pd.Categorical(frame["herd"]).codes]
    V_inverse = np.linalg.inv(np.diag(1.0 / fit.working.weight) + fit.covariances[0].item() * herd @ herd.T)
    M = np.linalg.inv(X.T @ V_inverse @ X)
    scores = (X.T @ V_inverse * (fit.working.z - X @ fit.params.to_numpy())) @ herd  # of each herd
    assert fit.cluster_robust("herd", kind="CR0").cov_params().to_numpy() == approx(M @ scores @ scores.T @ M, rel=1e-6)


def test_moderated_errors_are_those_of_the_linear_model_of_the_working_scores():
    table = pd.DataFrame({
        "right": [18, 15, 19, 14, 12, 9, 17, 17, 20, 15, 16, 11, 3, 16, 12], "asked": 20, "model": list("ABC") * 5,
        "task": np.repeat(list("pqrst"), 3),
    })  # fmt: skip
    formula = "model + (1 | task) + (1 | task:model)"
    fit = lt.fit_glmm(f"right ~ {formula}", table, trials="asked")
    working = fit.cells.frame.assign(z=fit.working.z, w=fit.working.weight)
    linear = lt.fit_lmm(f"z ~ {formula}", working, weights="w", residual_variance=1.0)
    got, want = (
        own.emmeans("model", ddf="satterthwaite", vcov=own.moderated("task")).pairs().to_frame()
        for own in (fit, linear)
    )
    for column in ("estimate", "se", "df", "p_value"):
        assert got[column].to_numpy() == approx(want[column].to_numpy(), rel=1e-4), column
    assert (np.abs(got["se"] / fit.emmeans("model", vcov="model").pairs().to_frame()["se"] - 1.0) > 0.002).all()
    with pytest.raises(ArgumentError, match=r"vcov= is for means on the scale of the link, logit\(right\)"):
        fit.emmeans("model", type="response", vcov=fit.moderated("task"))
    with pytest.raises(ArgumentError, match=r"this fit is by maximum likelihood\. Take fit.refit\(reml=True\)"):
        fit.refit(reml=False).moderated("task")
    with pytest.raises(UnknownColumnError, match=r"cluster= of a generalised model .*: asked is not"):
        fit.cluster_robust("asked")


ERRATIC = pd.DataFrame({  # A varies more between tasks than the others
    "right": [30, 22, 21, 23, 38, 20, 22, 19, 12, 25, 23, 24, 35, 18, 20, 22, 5, 24, 26, 21, 18, 23, 20, 25],
    "asked": 40, "model": list("ABCD") * 6, "task": np.repeat(list("pqrstu"), 4),
})  # fmt: skip


def test_errors_of_differences_are_the_models_or_larger_where_a_pair_scatters_more_than_the_others():
    fit = lt.fit_glmm("right ~ model + (1 | task) + (1 | task:model)", ERRATIC, trials="asked")
    found, by_model = fit.emmeans("model").pairs(), fit.emmeans("model", vcov="model").pairs()
    assert (found.errors, found.adjust, by_model.errors, by_model.adjust) == ("larger", "stepdown", "model", "tukey")
    got, least = found.to_frame(), by_model.to_frame()
    i, j = np.triu_indices(4, 1)
    L = np.eye(4)[:, 1:][i] - np.eye(4)[:, 1:][j]
    own, df = fit.cluster_robust("task").variances(np.column_stack([np.zeros(6), L]))
    ratio = own / least["se"].to_numpy() ** 2
    level = max(1.0, ratio.mean())
    se2 = least["se"].to_numpy() ** 2
    h = np.array([se2[(i == m) | (j == m)].mean() / 2.0 for m in range(4)])
    squares = (np.abs(np.eye(4)[i] - np.eye(4)[j])) * h
    moderated, _ = moderation(ratio / level, df, i, j, h).ratios(squares, ratio / level, df, 3.0 * df)
    assert got["se"].to_numpy() == approx(least["se"].to_numpy() * np.sqrt(np.maximum(1.0, moderated)), rel=1e-9)
    assert (got["df"] == least["df"]).all()
    assert (got["se"] > 1.2 * least["se"])[:3].all()
    assert (got["se"] == least["se"])[3:].all()


def test_errors_of_differences_of_probabilities_are_longer_by_as_much():
    fit = lt.fit_glmm("right ~ model + (1 | task) + (1 | task:model)", ERRATIC, trials="asked")

    def ratio(**scale):
        of, by_model = (fit.emmeans("model", vcov=vcov, **scale).pairs().to_frame()["se"] for vcov in (None, "model"))
        return (of / by_model).to_numpy()

    assert ratio(type="response") == approx(ratio(), rel=1e-9)
    assert ratio(type="log") == approx(ratio(), rel=1e-9)
    assert ratio(type="response", these="task") == approx(np.ones(6))
    means = fit.emmeans("model", type="response")
    assert (means.ci_low > 0.0).all()
    assert (means.ci_high < 1.0).all()


@pytest.mark.parametrize(("formula", "which"), [
    ("right ~ model + (1 | task)", {}),  # differences do not vary between tasks
    ("right ~ model + (1 | task) + (1 | task:model)", {"model": ["A", "B"]}),
    ("right ~ model + (1 | task) + (1 | task:model)", {"task": ["p", "q"]}),
])  # fmt: skip
def test_errors_are_the_models_where_no_pair_can_scatter_more_than_others(formula, which):
    table = ERRATIC[np.all([ERRATIC[name].isin(kept) for name, kept in which.items()] or [[True] * 24], axis=0)]
    fit = lt.fit_glmm(formula, table, trials="asked")
    assert fit.emmeans("model").errors == fit.emmeans("model", type="response").errors == "model"
    assert fit.refit(reml=False).emmeans("model").errors == "model"


THESE = {
    "right": [18, 15, 19, 14, 12, 9, 17, 17, 20, 15, 16, 11], "asked": [20, 30] * 6, "model": ["A", "B"] * 6,
    "task": list("ppqqrrssttuu"),
}  # fmt: skip


def test_means_over_these_tasks_are_those_of_the_mixed_model_equations_by_hand():
    fit = lt.fit_glmm("right ~ model + (1 | task) + (1 | task:model)", THESE, trials="asked")
    found = fit.emmeans("model", type="response", these="task")
    X = np.column_stack([np.ones(12), np.tile([0.0, 1.0], 6)])
    Z = np.column_stack([np.kron(np.eye(6), np.ones((2, 1))), np.eye(12)])
    G = np.repeat([S.item() for S in fit.covariances], [6, 12])
    order = fit.cells.frame.reset_index().sort_values(["task", "model"])["index"].to_numpy()
    W, z = fit.working.weight[order], fit.working.z[order]
    A = np.hstack([X, Z * np.sqrt(G)])  # effects in units of their standard deviations, of which one may be 0
    C = np.linalg.inv((A.T * W) @ A + np.diag([0.0] * 2 + [1.0] * 18))
    p = special.expit(A @ C @ (A.T @ (W * z)))
    assert found.estimate == approx([p[0::2].mean(), p[1::2].mean()], rel=1e-5)
    D = np.stack([(A * (p * (1 - p))[:, None])[k::2].mean(axis=0) for k in (0, 1)])
    assert found.se == approx(np.sqrt(np.diag(D @ C @ D.T)), rel=1e-5)
    assert found.pairs().table["se"][0] == approx(np.sqrt((D[0] - D[1]) @ C @ (D[0] - D[1])), rel=1e-5)
    assert found.notes[0] == "Means are over the levels of task in the table, not further ones."
    like = fit.emmeans("model", type="response")
    assert np.all(found.se < like.se)  # which are of further tasks, too


def test_means_over_items_like_these_of_these_tasks_are_the_quadrature_by_hand():
    task, item, model = (a.ravel() for a in np.indices((3, 12, 2)))
    y = (np.random.default_rng(3).random(72) < special.expit(2.0 * (task - 1) + 3.0 * (item % 3 - 1))).astype(int)
    table = {"y": y, "task": task, "item": task * 12 + item, "model": np.array(["A", "B"])[model]}
    fit = lt.fit_glmm("y ~ model + (1 | task) + (1 | item)", table)
    variance, u = fit.covariances[1].item(), fit.conditional_modes("task").iloc[:, -1].to_numpy()
    assert min(variance, np.ptp(u)) > 0.01
    x, weight = np.polynomial.hermite_e.hermegauss(80)
    weight = weight / weight.sum()

    def averaged(eta):
        return special.expit(eta[:, None] + variance**0.5 * x) @ weight

    eta = fit.params.iloc[0] + fit.params.iloc[1] * model + u[task]
    information = special.expit(eta) * special.expit(-eta)
    of_item = np.bincount(table["item"], information)
    w = (1.0 / (1.0 + variance * of_item))[table["item"]]
    moved = optimize.brentq(lambda c: w @ (averaged(eta + c) - y), -5.0, 5.0)
    by_hand = [averaged(fit.params.iloc[0] + fit.params.iloc[1] * k + u + moved).mean() for k in (0, 1)]
    assert fit.emmeans("model", type="response", these="task").estimate == approx(by_hand, rel=1e-6)
    on_items = fit.emmeans("model", type="response", these=["task", "item"])
    assert on_items.estimate == approx([y[model == k].mean() for k in (0, 1)], abs=1e-6)  # what was observed


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({}, ArgumentError, r"these= is for means .* Add type='response'"),
        ({"type": "response", "these": "herd"}, UnknownColumnError, "herd"),
        ({"type": "response", "these": "model"}, UnknownColumnError, "item and task, and model is none"),
        ({"type": "response", "these": "item"}, ArgumentError, r"no random effect is of item alone"),
    ],
)
def test_these_are_groups_of_the_random_part(options, error, words):
    fit = lt.fit_glmm(
        "right ~ model + (1 | task) + (1 | task:item)", THESE | {"item": [1, 1, 2, 2] * 3}, trials="asked"
    )
    with pytest.raises(error, match=words):
        fit.emmeans("model", **{"these": "task", **options})
    alone = lt.fit_glmm("right ~ model", THESE, trials="asked")
    with pytest.raises(UnknownColumnError, match="the random part, which is empty, and task is none"):
        alone.emmeans("model", type="response", these="task")


def test_a_mean_at_a_number_is_over_the_tasks_whether_or_not_one_was_asked_there():
    table = {**THESE, "length": [3.0, 1.0, 2.0, 5.0] * 3}
    fit = lt.fit_glmm("right ~ model + length + (1 | task)", table, trials="asked")
    means = fit.emmeans("model", type="response", these="task", at={"length": 4.0})
    by_length = fit.emmeans("model", by="length", type="response", these="task", at={"length": [2.0, 4.0]})
    assert by_length.estimate[2:] == approx(means.estimate, rel=1e-12)
    assert by_length.se[2:] == approx(means.se, rel=1e-12)


def test_a_model_without_answers_on_one_of_these_tasks_has_no_mean_over_them():
    table = pd.DataFrame(THESE).drop(index=3)
    fit = lt.fit_glmm("right ~ model + (1 | task)", table, trials="asked")
    with pytest.raises(DesignError, match="B has no answers at some levels of task"):
        fit.emmeans("model", type="response", these="task")


def test_expected_counts_with_unequal_exposure_are_the_quadrature_by_hand():
    hours, group = np.array([1.0, 8.0, 2.0, 2.0, 30.0, 5.0, 1.0, 12.0]), np.repeat(np.arange(4), 2)
    y, b_group = np.array([3, 9, 2, 1, 51, 3, 0, 30]), np.tile([0.0, 1.0], 4)
    table = {"y": y, "hours": hours, "model": list("AB") * 4, "group": group}
    fit = lt.fit_glmm("y ~ model + offset(log(hours)) + (1 | group)", table, family="poisson")
    means = fit.emmeans("model", type="response")
    variance = fit.covariances[0].item()
    assert variance > 0.01
    eta = fit.params.iloc[0] + fit.params.iloc[1] * b_group + np.log(hours)
    x, weight = np.polynomial.hermite_e.hermegauss(80)
    weight = weight / weight.sum()

    def averaged(at):
        return np.exp(np.atleast_1d(at)[:, None] + variance**0.5 * x) @ weight

    # a group counts by its precision: of its sum, of Poisson variance, and of the effect that its rows share
    of_group = np.bincount(group, np.exp(eta))
    w = (1.0 / (1.0 + variance * of_group))[group]
    moved = optimize.brentq(lambda c: w @ (averaged(eta + c) - y), -5.0, 5.0)
    at = fit.params.iloc[0] + np.array([0.0, fit.params.iloc[1]]) + np.log(hours).mean() + moved
    assert means.estimate == approx(averaged(at), rel=1e-7)


# ----------------------------------------------------------------------------------------------------------- refusals

ROLES = {"algorithm": "m", "benchmark": "t", "score": "y", "direction": "maximize", "ignore": "n"}
BASE = {"y": [0, 1, 1, 0, 1, 1], "m": list("ababab"), "t": list("ppqqrr"), "n": [1, 2, 1, 1, 1, 2]}


@pytest.mark.parametrize(
    ("changes", "options", "error", "words"),
    [
        ({"y": [0, 1, 2, 0, 1, 1]}, {}, DataError, r"must be 0 or 1 .* 1 of 6 rows .*m=a, t=q, y=2"),
        (
            {"y": [0, 1, 0.5, 0, 1, 1]},
            {},
            DataError,
            r"must be 0 or 1 .*y=0\.5\)\. Of shares of attempts give the succ",
        ),
        ({"y": [0, 1, None, 0, 1, 1]}, {}, DataError, "missing value"),
        ({"y": [1] * 6}, {}, DesignError, "all 6 answers in 'y' are right"),
        ({"y": [0] * 6}, {}, DesignError, "all 6 answers in 'y' are wrong"),
        ({"y": [0] * 6}, {"family": "poisson"}, DesignError, "all counts in 'y' are 0"),
        ({"y": [0, 3, 1, 0, 1, 1]}, {"trials": "n"}, DataError, r"from 0 to the trials .*n=2, y=3"),
        ({"n": [1, 0, 1, 1, 1, 2]}, {"trials": "n"}, DataError, r"at least 1, and 1 of 6 rows .*n=0"),
        (
            {"n": [1, 10**15, 1, 1, 1, 2]},
            {"trials": "n"},
            DataError,
            r"at most 1e\+12, and 1 of 6 .*n=10{15}.*fit these",
        ),
        ({"y": [0, -1, 0, 1, 0, 0]}, {"family": "poisson"}, DataError, r"whole numbers of at least 0 .*y=-1"),
        ({"y": [0, -1, 2e17, 1, 0, 0]}, {"family": "poisson"}, DataError, r"y=-1\)\. Correct them, or take fit_lmm"),
        (
            {"y": [0, 2e17, 0, 1, 0, 0]},
            {"family": "poisson"},
            DataError,
            r"at most 1e\+12 .*y=2e\+17\)\. Fit their log",
        ),
        ({}, {"trials": "k"}, UnknownColumnError, "trials names the column 'k'"),
        ({}, {"trials": 3}, ArgumentError, "trials must name a column, got int"),
        (
            {},
            {"dispersion": "t"},
            TypeError,
            r"no argument 'dispersion'\. Write .* answers and counts follows from their mean",
        ),
        ({}, {"weights": "n"}, TypeError, r"no argument 'weights'\. Write trials= with the column"),
        ({}, {"trials": "n", "family": "poisson"}, ArgumentError, r"offset\(log\(n\)\)"),
        ({}, {"family": "gamma"}, ArgumentError, "family must be 'binomial' or 'poisson'"),
        ({}, {"link": "log"}, ArgumentError, "link must be 'logit' or 'probit'"),
        ({}, {"family": Family.of("binomial"), "link": "probit"}, ArgumentError, "beside a Family"),
        ({}, {"method": "reml"}, ArgumentError, "method must be 'pseudo' or 'laplace' or 'quadrature'"),
        ({"y": list("010111")}, {}, DataError, "must be a numeric column"),
    ],
)
def test_what_cannot_be_is_refused(changes, options, error, words):
    with pytest.raises(error, match=words):
        lt.fit_glmm("y ~ m + (1 | t)", {**BASE, **changes}, **options)


@pytest.mark.parametrize(
    ("family", "end"), [("poisson", r"logarithm: offset\(log\(h\)\)\."), ("binomial", r"got 1 to 5000\.$")]
)
def test_offsets_that_no_linear_predictor_follows_are_refused(family, end):
    """An exposure without its logarithm."""
    table = {**BASE, "h": [1.0, 1000.0, 5000.0, 1.0, 1000.0, 5000.0]}
    with pytest.raises(DesignError, match=rf"must lie within 30 of each other, offset\(h\).*{end}"):
        lt.fit_glmm("y ~ m + offset(h) + (1 | t)", table, family=family)
    moved = {**BASE, "h": [1000.0, 1001.0] * 3}  # far from zero is a matter of the intercept
    rates = lt.fit_glmm("y ~ m + offset(h)", moved, family="poisson")
    near = lt.fit_glmm("y ~ m + offset(h)", {**moved, "h": [0.0, 1.0] * 3}, family="poisson")
    assert rates.params["m[T.b]"] == approx(near.params["m[T.b]"], abs=1e-9)


@pytest.mark.parametrize("left", ["cbind(y, n - y)", "y / n"])
def test_successes_of_attempts_as_in_r_are_told_to_be_trials(left):
    with pytest.raises(
        FormulaError, match=r"trials= names that of the attempts, got .* Write 'k ~ \.\.\.' and trials='n'"
    ):
        lt.fit_glmm(f"{left} ~ m + (1 | t)", BASE)


@pytest.mark.parametrize(
    ("formula", "random"), [("y ~ m + (1 | t) + (1 | n)", r"\(1 \| t\) and \(1 \| n\)"), ("y ~ m", "empty")]
)
def test_quadrature_is_over_one_effect(formula, random):
    with pytest.raises(ArgumentError, match=f"the random part is {random}. Take method='laplace'"):
        lt.fit_glmm(formula, BASE, method="quadrature")


@pytest.mark.daily(1)
@pytest.mark.parametrize("name", BY_QUADRATURE)
def test_profiles_of_fixed_effects_are_those_of_lme4(name):
    found = by_quadrature(name).profile("fixed").to_frame()
    assert found[["ci_low", "ci_high"]].to_numpy() == approx(np.array(BY_QUADRATURE[name]["profile"]), abs=1e-3)


def test_a_profile_under_separation_ends_where_the_likelihood_with_pseudo_answers_meets_the_cut():
    fit = lt.fit_glmm("right ~ g", {"right": [10, 4], "asked": [10, 10], "g": ["p", "q"]}, trials="asked")
    found = fit.profile(linear={"p": [1, 0], "q": [1, 1], "q - p": [0, 1]}, alpha=0.1)
    assert "pseudo-answers" in found.notes[-1]

    def rise(eta, right, asked):
        p = special.expit(eta)
        at, best = (right * np.log(q) + (asked - right) * np.log(1 - q) for q in (p, right / asked))
        return 2.0 * (best - at)

    cut = stats.chi2.isf(0.1, 1)
    for right, asked, row in ((10.5, 11.0, 0), (4.0, 10.0, 1)):
        estimate = special.logit(right / asked)
        ends = [optimize.brentq(lambda e, r=right, a=asked: rise(e, r, a) - cut, *sorted((estimate, estimate + far)))
                for far in (-9.0, 12.0)]  # fmt: skip
        assert found.to_frame().loc[row, ["ci_low", "ci_high"]].tolist() == approx(ends, abs=1e-6)
    curves = found.to_frame("curves")
    points = curves[curves["name1"] == "q - p"]

    def least(difference):
        of_both = lambda e: rise(e, 10.5, 11.0) + rise(e + difference, 4.0, 10.0)  # noqa: E731
        return optimize.minimize_scalar(of_both, bounds=(-9.0, 9.0), method="bounded", options={"xatol": 1e-9}).fun

    zeta = [np.sign(value - fit.params.iloc[1]) * np.sqrt(least(value)) for value in points["value"]]
    assert points["zeta"].tolist() == approx(zeta, abs=1e-6)


@pytest.mark.level(2)
@pytest.mark.parametrize("case", values("glmm_profile")["cases"], ids=lambda case: case["name"])
def test_profiles_of_standard_deviations_are_those_of_lme4(case):
    found = fitted(case["name"], method="laplace").profile("sd")
    table = found.to_frame().set_index("group")
    for i, of_lme4 in enumerate(case["sds"]):
        row = table.loc[of_lme4["group"]]
        assert row["estimate"] == approx(of_lme4["estimate"], abs=5e-4)  # bobyqa's
        assert [row["ci_low"], row["ci_high"]] == approx([of_lme4["low"], of_lme4["high"]], abs=1e-4)
        ends = [np.atleast_1d(case[f"lme4_{end}"])[i] for end in ("low", "high")]  # of splines
        assert [row["ci_low"], row["ci_high"]] == approx(ends, abs=1e-3)
    assert any("Zero is not excluded" in note for note in found.notes) == (table["ci_low"] == 0.0).any()


def test_the_profile_of_a_standard_deviation_is_that_of_the_likelihood_by_hand():
    total = np.array([9, 4, 7, 2, 8])
    fit = lt.fit_glmm(
        "y ~ 1 + (1 | g)", {"y": total, "n": [10] * 5, "g": list("abcde")}, trials="n", method="quadrature"
    )
    x, weight = np.polynomial.hermite_e.hermegauss(150)

    def least(sd):
        def deviance(eta):
            return -2.0 * np.log(stats.binom.pmf(total[:, None], 10, special.expit(eta + sd * x)) @ weight).sum()

        return optimize.minimize_scalar(deviance, bounds=(-2.0, 3.0), method="bounded", options={"xatol": 1e-9}).fun

    found = fit.profile("sd").to_frame("curves")
    best = least(fit.covariances[0].item() ** 0.5)
    rise = [np.sign(row.zeta) * row.zeta**2 for row in found.itertuples()]
    at = fit.covariances[0].item() ** 0.5
    by_hand = [np.sign(value - at) * (least(value) - best) for value in found["value"]]
    assert rise == approx(by_hand, abs=2e-4)  # of 25 nodes


def test_a_profile_of_correlations_or_of_pseudo_likelihood_is_refused():
    fit = fitted("cbpp")
    with pytest.raises(ArgumentError, match="which the restricted likelihood does not hold"):
        fit.profile("fixed", reml=True)
    with pytest.raises(ArgumentError, match="are of its fixed effects and standard deviations, by maximum likelihood"):
        fit.profile(reml=True)
    with pytest.raises(ArgumentError, match=r"For correlations take fit.bootstrap"):
        fitted("epil slope").profile("corr")


@pytest.mark.parametrize("method", ["pseudo", "laplace", "quadrature"])
def test_a_random_effect_of_single_answers_is_refused(method):
    table = {"y": [0, 1, 1, 0, 1, 1], "m": list("ababab"), "item": list("pqrstu")}
    with pytest.raises(
        DesignError, match=r"\(1 \| item\) has one answer in each of its 6 groups, .* Leave the term out"
    ):
        lt.fit_glmm("y ~ m + (1 | item)", table, method=method)
    again = {name: values * 2 for name, values in table.items()} | {"y": [0, 1, 1, 0, 1, 1, 1, 1, 0, 0, 1, 1]}
    assert lt.fit_glmm("y ~ m + (1 | item)", again, method=method).converged
    counts = {**table, "y": [0, 9, 1, 0, 12, 1]}  # of which one shows more scatter than Poisson's
    assert lt.fit_glmm("y ~ m + (1 | item)", counts, family="poisson").covariances[0].item() > 0.5


def test_groups_of_which_each_is_all_right_or_all_wrong_do_not_bound_their_variance():
    group = np.repeat(np.arange(8), 10)
    table = {"y": group % 2, "m": list("ab") * 40, "g": group}
    fit = lt.fit_glmm("y ~ m + (1 | g)", table)
    (note,) = fit.notes
    assert "Each group of (1 | g) has right answers only or wrong answers only" in note
    assert fit.emmeans("m", type="response").estimate == approx([0.5, 0.5], abs=1e-6)
    for method in ("laplace", "quadrature"):
        with pytest.raises(EstimationError, match=r"no maximum: each group of \(1 \| g\) has .* by method='pseudo'"):
            lt.fit_glmm("y ~ m + (1 | g)", table, method=method)
    with pytest.raises(EstimationError, match="no maximum: each group"):
        fit.llf  # noqa: B018
    # the probability of ten right answers of a group, which grows with the standard deviation towards 1/2
    x, weight = np.polynomial.hermite_e.hermegauss(180)
    of_group = [special.expit(sd * x) ** 10 @ weight / weight.sum() for sd in (2.0, 8.0, 32.0)]
    assert of_group[0] < of_group[1] < of_group[2] < 0.5
    mixed = {**table, "y": np.where(np.arange(80) == 3, 1, group % 2)}
    assert not lt.fit_glmm("y ~ m + (1 | g)", mixed).notes


def test_answers_may_be_true_and_false():
    table = {**BASE, "y": [0, 1, 1, 0, 0, 1]}
    want = lt.fit_glmm("y ~ m + (1 | t)", table)
    frame = pd.DataFrame(table).astype({"y": bool})
    for data in (frame, frame.astype({"y": "boolean"}), lt.Runs(frame.astype({"y": int}), **ROLES)):
        fit = lt.fit_glmm("y ~ m + (1 | t)", data)
        assert fit.params.tolist() == want.params.tolist()
        assert fit.resid.to_numpy() == approx(want.resid.to_numpy(), abs=1e-12)
    with pytest.raises(DataError, match="must be a numeric column"):
        lt.fit_glmm("y ~ m + (1 | t)", frame, family="poisson")


def test_a_search_that_ends_early_is_said_once(monkeypatch):
    monkeypatch.setattr("lmemtest.lmm.engine.pseudo.MOST_STEPS", 2)
    with pytest.warns(ConvergenceWarning, match="The estimates did not converge. Use a simpler random part."):
        fit = fitted("attempts 2")
    assert [note for note in fit.notes if "converge" in note] == [fit.unfinished]
    assert not fit.converged


def test_a_function_of_answers_is_no_answer():
    with pytest.raises(ArgumentError, match=r"The family has a link \(logit\); write y ~"):
        lt.fit_glmm("log(y) ~ m + (1 | t)", BASE)


def test_counts_without_extra_scatter_have_no_size():
    table = {"y": [2, 3, 2, 3, 2, 3, 2, 3], "g": list("aabbccdd"), "m": ["p", "q"] * 4}
    with pytest.raises(DesignError, match="Use family='poisson'"):
        lt.fit_glmm("y ~ m + (1 | g)", table, family="negative-binomial")


def test_a_fit_is_a_record():
    with pytest.raises(dataclasses.FrozenInstanceError):
        fitted("cbpp").family = Family.of("poisson")
