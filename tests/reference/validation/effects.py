"""Random effects, predictions, profile intervals, influence, shares of variance: lme4, dense equations, performance."""

from __future__ import annotations

from typing import Any

import numpy as np

import lmemtest as lt
from lmemtest.lmm.diagnostics import collinearity, explained_variance
from lmemtest.lmm.engine import prediction
from lmemtest.lmm.model.predictions import shapes

from .common import Line, fitted, load, number, relative, suite_module, table


def random_effect_lines() -> list[Line]:
    """Compare conditional standard deviations with lme4's condVar."""
    modes = Line("conditional modes, `random_effects`", "lme4, ranef", " of the largest")
    sds = Line("their conditional SDs", "lme4, condVar", " rel.")
    for want in load("random_effects")["fits"]:
        fit = lt.fit_lmm(want["formula"], table(want["data"]), weights=want["weights"])
        for group in want["groups"]:
            found = fit.random_effects(group["group"], simultaneous=False).to_frame()
            theirs, errors = np.array(group["modes"]), np.array(group["sds"])
            for j, name in enumerate(group["names"]):
                rows = found[found["effect"] == name]
                for got, value in zip(rows["estimate"], theirs[:, j], strict=True):
                    modes.add((got - value) / np.abs(theirs[:, j]).max())
                for got, value in zip(rows["conditional_sd"], errors[:, j], strict=True):
                    sds.add(relative(got, value))
    return [modes, sds]


def prediction_lines() -> list[Line]:
    """Compare covariances of prediction errors with the mixed-model equations, solved on rows."""
    brute = suite_module("lmm/engine/test_prediction.py")
    line = Line("covariances of prediction errors", "dense mixed-model equations", " of the product of the SDs")
    for formula in brute.FORMULAS:
        for options in ({}, {"weights": "w"}, {"dispersion": "h"}):
            fit = lt.fit_lmm(formula, brute.table(), **options)
            rng, width = np.random.default_rng(1), sum(q * k for q, k in shapes(fit))
            L, K = rng.normal(size=(4, fit.rank)), rng.normal(size=(width, 4))
            ends = np.cumsum([q * k for q, k in shapes(fit)])[:-1]
            parts = [part.reshape(q, k, 4) for part, (q, k) in zip(np.split(K, ends), shapes(fit), strict=True)]
            for conditional in (False, True):
                got = prediction.covariance(
                    fit.problem, fit.optim.theta, fit.optim.criterion, L, parts, conditional=conditional
                )
                both = K.T if conditional else np.hstack([L, K.T])
                want = both @ brute.henderson(fit, conditional=conditional) @ both.T
                sd = np.sqrt(want.diagonal())
                size = np.outer(sd, sd)  # zero for effects without variance, whose errors must be zero
                for difference in ((got - want) / np.where(size > 0, size, 1.0)).ravel():
                    line.add(difference)
    return [line]


def profile_lines() -> list[Line]:
    """Compare profile intervals with exact roots on lme4's deviance, lme4's splines and closed forms."""
    unit = " of the width"
    exact = Line("ends of profile intervals", "roots on lme4's deviance", unit)
    splines = Line("the same", "lme4, `confint(profile())`", unit)
    closed = Line("ends, balanced one-way layout", "closed form", " rel.")
    for want in load("profile")["models"]:
        fit = fitted(want["data"], want["formula"], False, want["weights"])
        got = fit.profile(progress=False).to_frame().set_index(["kind", "group", "name1", "name2"])
        for row in want["parameters"]:
            ours = got.loc[tuple(row[name] for name in ("kind", "group", "name1", "name2"))]
            width = row["high"] - row["low"]
            for end in ("low", "high"):
                exact.add((ours[f"ci_{end}"] - row[end]) / width)
                if row["kind"] != "fixed" or want["weights"] is None:  # lme4 drops the weights there
                    splines.add((ours[f"ci_{end}"] - row[f"lme4_{end}"]) / width)
    brute = suite_module("lmm/test_profile.py")
    for reml in (False, True):
        for sd in (0.5, 1.5):
            data = brute.balanced(sd=sd)
            fit = lt.fit_lmm("y ~ 1 + (1 | g)", data, reml=reml)
            found = fit.profile(["sd", "residual sd"], reml=reml, progress=False).to_frame()
            ends = found[["ci_low", "ci_high"]].to_numpy()
            for ours, value in zip(ends, brute.closed_form_ends(data, reml=reml), strict=True):
                for one, other in zip(ours, value[1:], strict=True):
                    closed.add(one - other if other == 0.0 else relative(one, other))
    return [exact, splines, closed]


def influence_lines() -> list[Line]:
    """Compare refits without one level with lme4's and with the formulas of the distances."""
    by = "lme4 without the level"
    lines = {
        "fixed": Line("fixed effects without one level", by, " SE"),
        "parts": Line(
            "variances and covariances",
            by,
            " of the residual variance",
        ),
        "pair": Line("pairs", "emmeans without it", " SE"),
        "df": Line("their Satterthwaite df", "lmerTest without it", " rel."),
        "cook": Line("Cook's distances", "formula on lme4's refits", " rel."),
        "dfbetas": Line("DFBETAS", "formula on lme4's refits", ""),
    }
    for want in load("influence")["models"]:
        fit = lt.fit_lmm(want["formula"], table(want["data"]), reml=want["reml"], weights=want["weights"])
        found = fit.influence(want["group"], specs=want["specs"] or (), progress=False)
        fixed_group = any(want["group"] in row["name"] for row in want["whole"]["fixef"])
        for without in want["without"]:
            # without its first level, R takes another reference of a fixed factor
            same = not (fixed_group and without["level"] == want["without"][0]["level"])
            add_level(lines, found, without, same_coding=same)
    return list(lines.values())


def add_level(lines: dict[str, Line], found: Any, without: Any, *, same_coding: bool) -> None:
    """Compare the refit without one level."""
    level, residual = without["level"], without["residual_variance"]
    effects = found.effects[found.effects["level"] == level].set_index("term")
    if same_coding:
        for row in without["fixef"]:
            lines["fixed"].add((effects.loc[row["name"], "estimate"] - row["estimate"]) / row["se"])
    parts = found.components[found.components["level"] == level].set_index(["group", "name1", "name2"])["variance"]
    for row in without["varcorr"]:
        name = "" if row["name1"] == row["name2"] else row["name2"]
        size = max(residual, abs(row["vcov"]))
        lines["parts"].add((parts[row["group"], row["name1"], name] - row["vcov"]) / size)
    if without["pairs"]:
        pairs = found.comparisons[found.comparisons["level"] == level].set_index(["left", "right"])
        for row in without["pairs"]:
            ours = pairs.loc[(row["left"], row["right"])]
            lines["pair"].add((ours["estimate"] - row["estimate"]) / row["se"])
            lines["df"].add(relative(ours["df"], number(row["df"])))
    if without.get("cooks_distance") is not None:
        distance = found.to_frame().set_index("level").loc[level, "cooks_distance"]
        lines["cook"].add(relative(distance, without["cooks_distance"]))
        for got, value in zip(effects["dfbetas"], without["dfbetas"], strict=True):
            lines["dfbetas"].add(got - value)


def share_lines() -> list[Line]:
    """Compare R2 and ICC with performance and inflation with car."""
    r2 = Line("R2, marginal and conditional", "performance", "")
    icc = Line("ICC, adjusted, unadjusted and by group", "performance", "")
    gvif = Line("generalised variance inflation factors", "car", " rel.")
    for model in load("diagnostics")["models"]:
        for method in ("ML", "REML"):
            fit, want = fitted(model["data"], model["formula"], method == "REML", None), model[method]
            shares = explained_variance(fit)
            for line, names in ((r2, ("r2_marginal", "r2_conditional")), (icc, ("icc_adjusted", "icc_unadjusted"))):
                for name in names:
                    line.add(getattr(shares, name) - number(want[name]))
            ours = {frozenset(group.split(":")): share for group, share in shares.icc_by_group.items()}
            for row in want.get("by_group", []):
                icc.add(ours[frozenset(row["group"].split(":"))] - row["icc"])
            if want["vif"] is not None:
                for got, row in zip(collinearity(fit).table["gvif"], want["vif"], strict=True):
                    gvif.add(relative(got, row["gvif"]))
    return [r2, icc, gvif]


SECTIONS = (random_effect_lines, prediction_lines, profile_lines, influence_lines, share_lines)
