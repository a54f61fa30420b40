"""Fits: lme4, nlme, published log-likelihoods."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import lmemtest as lt
from lmemtest.errors import ConvergenceWarning

from .common import Line, fitted, load, number, relative, suite_module, table


def fit_lines() -> list[Line]:
    """Compare log-likelihoods, fixed effects, standard errors, variances and conditional modes."""
    by = "lme4, polished"
    llf = Line("log-likelihood (ML and REML)", by, "")
    beta = Line("fixed effects", by, " SE")
    se = Line("their standard errors", by, " rel.")
    sigma = Line("residual SD", by, " rel.")
    cov = Line(
        "variances and covariances of random effects",
        by,
        " of the product of the SDs",
    )
    modes = Line("conditional modes (BLUPs)", by, " residual SD")
    for want in load("fits")["fits"]:
        for method in ("ML", "REML"):
            fit, r = fitted(want["data"], want["formula"], method == "REML", want["weights"]), want[method]
            llf.add(fit.llf - r["llf"])
            sigma.add(relative(np.sqrt(fit.scale), r["sigma"]))
            for row in r["fixef"]:
                if row["estimate"] is not None:
                    beta.add((fit.params[row["name"]] - row["estimate"]) / row["se"])
                    se.add(relative(fit.bse[row["name"]], row["se"]))
            if not r["flat_directions"]:
                for difference in covariance_differences(fit, r):
                    cov.add(difference)
                for difference in mode_differences(fit, r):
                    modes.add(difference)
    return [llf, beta, se, sigma, cov, modes]


def covariance_differences(fit: Any, r: Any) -> Iterator[float]:
    """Differences of covariances over the product of the SDs, which count as 1 % of the residual SD at least."""
    for row in r["varcorr"]:
        for term, S in zip(fit.design.random, fit.covariances, strict=True):
            same = set(term.group.split(":")) == set(row["group"].split(":"))
            if same and {row["name1"], row["name2"]} <= set(term.names):
                a, b = term.names.index(row["name1"]), term.names.index(row["name2"])
                yield (S[a, b] - row["vcov"]) / max(np.sqrt(S[a, a] * S[b, b]), 1e-4 * fit.scale)


def mode_differences(fit: Any, r: Any) -> Iterator[float]:
    """Differences of conditional modes in residual standard deviations."""
    for group in r.get("ranef") or []:
        parts = set(group["group"].split(":"))
        ours = fit.conditional_modes(next(t.group for t in fit.design.random if set(t.group.split(":")) == parts))
        rows = [x if x in ours.index else ":".join(reversed(x.split(":"))) for x in group["levels"]]
        got = ours.loc[rows, group["names"]].to_numpy()
        yield float(np.abs(got - np.array(group["values"], dtype=float)).max()) / np.sqrt(fit.scale)


def generated_lines() -> list[Line]:
    """Compare with the best of lme4's optimisers on generated models: never below, sometimes above."""
    below = Line("log-likelihood of 354 generated fits: below lme4's best", "best of lme4's optimisers", "")
    above = Line("the same: above lme4's best", "best of lme4's optimisers", "")
    frames = dict(iter(table("generated").groupby("id", sort=False)))
    for model in load("generated")["models"]:
        data = frames[model["id"]].drop(columns="id")
        for method in ("ML", "REML"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                fit = lt.fit_lmm(model["formula"], data, reml=method == "REML")
            difference = fit.llf - model[method]["llf"]
            below.add(max(0.0, -difference))
            above.add(max(0.0, difference))
    below.quantity = below.quantity.replace("240", f"{len(below.values)}")
    return [below, above]


def priorband_lines() -> list[Line]:
    """Compare with the published log-likelihoods on the PriorBand table, if it is here."""
    line = Line("log-likelihood, PriorBand table (86,400 rows)", "lme4 and a second implementation", "")
    folder = os.environ.get("LMEMTEST_DATA")
    if folder:
        data = pd.read_parquet(Path(folder) / "priorband.parquet")
        for model in load("priorband_table")["models"]:
            if not model["at_least"]:
                line.add(lt.fit_lmm(model["formula"], data, reml=False).llf - model["llf"])
    return [line]


def dispersion_lines() -> list[Line]:
    """Compare residual variances per group with nlme's varIdent."""
    by = "nlme, varIdent"
    llf = Line("log-likelihood with a residual variance per group", by, "")
    variances = Line("the residual variances", by, " rel.")
    beta = Line("fixed effects beside them", by, " SE")
    se = Line("their standard errors", by, " rel.")
    for want in load("dispersion")["fits"]:
        for method in ("ML", "REML"):
            reml, theirs = method == "REML", want[method]
            fit = lt.fit_lmm(want["formula"], table(want["data"]), reml=reml, dispersion=want["dispersion"])
            llf.add(fit.llf - theirs["llf"])
            for got, value in zip(fit.residual_variances, theirs["residual_variances"], strict=True):
                variances.add(relative(got, value))
            # for ML nlme scales standard errors by the residual degrees of freedom
            inflate = 1.0 if reml else np.sqrt(fit.nobs / (fit.nobs - fit.rank))
            for got, error, row in zip(fit.params, fit.bse, theirs["fixef"], strict=True):
                beta.add((got - row["estimate"]) / row["se"])
                se.add(relative(error * inflate, row["se"]))
    return [llf, variances, beta, se]


def glmm_lines() -> list[Line]:
    """Compare generalised mixed models with lme4, glmmTMB, glmm and dense matrices."""
    below = Line(
        "log-likelihood of generalised models (Laplace): below the best", "lme4 (canonical links), glmmTMB, glmm", ""
    )
    beta, se = Line("their fixed effects", "glmmTMB", " SE"), Line("their standard errors", "glmmTMB", " rel.")
    pseudo = Line("fixed effects by restricted pseudo-likelihood", "dense matrices, R", " SE")
    of_pseudo = Line("their standard errors", "dense matrices, R", " rel.")
    suite = suite_module("lmm/test_glmm.py")
    for name, want in suite.CASES.items():
        fit = suite.fitted(name, method="laplace")
        of_lme4 = want["llf_lme4"] if want["link"] in ("logit", "log") else None
        others = [want["llf_glmmTMB"], of_lme4, suite.OF_GLMM[name]]
        below.add(max(0.0, max(number(value) for value in others if value is not None) - fit.llf))
        if want["converged"] and "size" not in want:
            for got, b, error in zip(fit.params, want["fixef"], want["se"], strict=True):
                beta.add((got - b) / error)
            for got, error in zip(fit.bse, want["se"], strict=True):
                se.add(relative(got, error))
        if "pseudo" in want:
            fit, dense = suite.fitted(name), want["pseudo"]
            for got, own, b, error in zip(fit.params, fit.bse, dense["b"], dense["se"], strict=True):
                pseudo.add((got - b) / error)
                of_pseudo.add(relative(own, error))
    nodes, of_nodes = (
        Line("fixed effects by quadrature", "lme4, 25 nodes", " SE"),
        Line("their errors", "lme4", " rel."),
    )
    ends = Line("ends of their profile intervals", "lme4", " SE")
    for name, want in suite.BY_QUADRATURE.items():
        fit = suite.by_quadrature(name)
        for got, own, b, error in zip(fit.params, fit.bse, want["fixef"], want["se"], strict=True):
            nodes.add((got - b) / error)
            of_nodes.add(relative(own, error))
        found = fit.profile("fixed").to_frame()[["ci_low", "ci_high"]].to_numpy()
        for got, pair, error in zip(found, want["profile"], want["se"], strict=True):
            for own, end in zip(got, pair, strict=True):
                ends.add((own - end) / error)
    sds = Line("ends of profile intervals of their standard deviations", "roots on lme4's deviance", " of the width")
    for case in load("glmm_profile")["cases"]:
        table = suite.fitted(case["name"], method="laplace").profile("sd").to_frame().set_index("group")
        for root in case["sds"]:
            for end, name in ((root["low"], "ci_low"), (root["high"], "ci_high")):
                sds.add((table.loc[root["group"], name] - end) / (root["high"] - root["low"]))
    return [below, beta, se, pseudo, of_pseudo, nodes, of_nodes, ends, sds]


SECTIONS = (fit_lines, generated_lines, priorband_lines, dispersion_lines, glmm_lines)
