"""Means, pairs, F-tests, Kenward-Roger, cluster-robust errors: emmeans, lmerTest, pbkrtest, clubSandwich."""

from __future__ import annotations

from typing import Any

import numpy as np

import lmemtest as lt

from .common import Line, fitted, load, number, relative, suite_module, table


def emmeans_lines() -> list[Line]:
    """Compare marginal means and pairwise differences with emmeans and lmerTest."""
    lines = {
        "emmean": Line("marginal means", "emmeans", " SE"),
        "mean se": Line("their standard errors", "emmeans", " rel."),
        "mean df": Line("their Satterthwaite df", "emmeans, lmerTest", " rel."),
        "mean ci": Line("their intervals", "emmeans", " SE"),
        "estimate": Line("pairwise differences", "emmeans", " SE"),
        "se": Line("their standard errors", "emmeans", " rel."),
        "df": Line("their Satterthwaite df", "emmeans, lmerTest", " rel."),
        "p_value": Line("p-values: Tukey, Holm, Bonferroni, Šidák, none", "emmeans", ""),
        "ci": Line("simultaneous intervals", "emmeans", " SE"),
    }
    for model in load("emm")["models"]:
        fit = fitted(model["data"], model["formula"], True, model["weights"])
        for grid in model["grids"]:
            for ddf in ("satterthwaite", "asymptotic"):
                add_grid(lines, fit, grid, ddf)
    return list(lines.values())


def add_grid(lines: dict[str, Line], fit: Any, grid: Any, ddf: str) -> None:
    """Compare one reference grid."""
    averaged = {n: [fit.design.numeric[n]] for n in grid["specs"] if n in fit.design.numeric and n not in grid["at"]}
    em = fit.emmeans(
        grid["specs"], by=grid["by"] or None, at={**grid["at"], **averaged}, weights=grid["weights"], ddf=ddf
    )
    names = [*em.by, *em.specs]
    ours = {key(row, names): row for row in em.to_frame().to_dict("records")}
    theirs = grid[ddf.replace("-", "_")]
    for want in theirs["means"]:
        got, se = ours[key(want, names)], number(want["se"])
        lines["emmean"].add((got["emmean"] - number(want["emmean"])) / se)
        lines["mean se"].add(relative(got["se"], se))
        for end in ("ci_low", "ci_high"):
            lines["mean ci"].add((got[end] - number(want[end])) / se)
        if ddf != "asymptotic":
            lines["mean df"].add(relative(got["df"], number(want["df"])))
    for adjust, rows in (theirs.get("pairs") or {}).items():
        pairs = em.pairs(adjust=adjust)
        frame = pairs.to_frame()
        if pairs.intervals in ("stepwise", "selected"):  # beside these p-values R prints the limits of the first step
            half = pairs.half_widths(pairs.alpha, first_step=True)
            frame = frame.assign(ci_low=frame["estimate"] - half, ci_high=frame["estimate"] + half)
        if frame[["left", "right"]].map(lambda text: ", " in text).to_numpy().any():
            frame[["left", "right"]] = frame[["left", "right"]].map(lambda text: text.replace(", ", " "))
        found = {key(row, [*em.by, "left", "right"]): row for row in frame.to_dict("records")}
        for want in rows:
            add_pair(lines, found, want, em.by, with_df=ddf != "asymptotic")


def add_pair(lines: dict[str, Line], found: dict[Any, Any], want: Any, by: tuple[str, ...], *, with_df: bool) -> None:
    """Compare one pair; R orders combinations of several factors in another way, so the sign may differ."""
    there = key(want, [*by, "left", "right"])
    sign = 1.0 if there in found else -1.0
    got = found[there if sign > 0 else key(want, [*by, "right", "left"])]
    se = number(want["se"])
    low, high = ("ci_low", "ci_high") if sign > 0 else ("ci_high", "ci_low")
    lines["estimate"].add((sign * got["estimate"] - number(want["estimate"])) / se)
    lines["se"].add(relative(got["se"], se))
    lines["p_value"].add(got["p_value"] - number(want["p_value"]))
    lines["ci"].add((sign * got[low] - number(want["ci_low"])) / se)
    lines["ci"].add((sign * got[high] - number(want["ci_high"])) / se)
    if with_df:
        lines["df"].add(relative(got["df"], number(want["df"])))


def key(row: Any, names: list[str]) -> tuple[str, ...]:
    """Make a key of values that R and pandas may have typed differently."""
    return tuple(row[name] if isinstance(row[name], str) else f"{row[name]:g}" for name in names)


# ------------------------------------------------------------------------------------------ Kenward-Roger, F-tests

DDF = (("satterthwaite", "satterthwaite"), ("kenward-roger", "kenward_roger"))
WEIGHTED = 3  # pbkrtest ignores weights; such a fit is compared on rows multiplied by the root of their weight
ONE_TERM = 10  # lmerTest takes other rows that span the same hypothesis, which changes Satterthwaite's df


def kenward_roger_lines() -> list[Line]:
    """Compare adjusted standard errors, df and F-tests with pbkrtest, and both with n x n matrices."""
    kinds = (
        "regular fits",
        "singular fits and shared groups",
        "weights",
    )
    emm = [m for i, m in enumerate(load("emm")["models"]) if i != WEIGHTED]
    other = load("kenward_roger")
    models = (
        [(m, m["coefficients"]["kenward_roger"], m["weights"]) for m in emm],
        [(m, m["coefficients"], None) for m in other["models"]],
        [(other["weighted"], other["weighted"]["coefficients"], "w")],
    )
    lines = []
    for kind, rows in zip(kinds, models, strict=True):
        se = Line(f"Kenward-Roger standard errors, {kind}", "pbkrtest", " rel.")
        df = Line("their df", "pbkrtest", " rel.")
        f = Line("their F-tests: F and df", "pbkrtest", " rel.")
        for model, coefficients, weights in rows:
            fit = lt.fit_lmm(model["formula"], table(model["data"]), weights=weights)
            add_kenward_roger((se, df, f), fit, coefficients, model.get("f_test"))
        lines += [line for line in (se, df, f) if line.values]
    return lines + n_by_n_lines()


def add_kenward_roger(lines: tuple[Line, Line, Line], fit: Any, coefficients: Any, f_test: Any) -> None:
    """Compare one model."""
    se, df, f = lines
    kept = [fit.design.x_names[j] for j in fit.problem.kept]
    got = fit.kenward_roger
    sizes, dfs = np.sqrt(got.adjusted.diagonal()), got.df(np.eye(len(kept)))
    for row in coefficients:
        at = kept.index(row["name"])
        se.add(relative(sizes[at], number(row["se"])))
        df.add(relative(dfs[at], number(row["df"])))
    if f_test is not None:
        tested = [i for i, name in enumerate(kept) if name != "Intercept" or f_test["num_df"] == len(kept)]
        statistic, df_den, _ = got.f_test(np.eye(len(kept))[tested], fit.params.dropna().to_numpy())
        f.add(relative(statistic, f_test["f"]))
        f.add(relative(df_den, f_test["den_df"]))


def n_by_n_lines() -> list[Line]:
    """Compare Kenward-Roger from cross-products with the formulas of the paper on rows."""
    brute = suite_module("lmm/engine/test_kenward_roger.py")
    cov = Line("Kenward-Roger covariances", "n x n matrices", " of the product of the SEs")
    df = Line("their df", "n x n matrices", " rel.")
    for formula in brute.FORMULAS:
        for weights in (None, "w"):
            fit = lt.fit_lmm(formula, brute.a_table(), weights=weights)
            adjusted, d_cov, W = brute.with_n_by_n_matrices(fit)
            got, size = fit.kenward_roger, np.sqrt(adjusted.diagonal())
            for difference in ((got.adjusted - adjusted) / np.outer(size, size)).ravel():
                cov.add(difference)
            for j, ours in enumerate(got.df(np.eye(len(size)))):
                h = d_cov[:, j, j] / got.cov[j, j]
                df.add(relative(ours, 2.0 / (h @ W @ h)))
    return [cov, df]


def anova_lines() -> list[Line]:
    """Compare F-tests of terms with lmerTest and pbkrtest, and those through means with emmeans."""
    f = Line("type III F", "lmerTest, pbkrtest", " rel.")
    satterthwaite = Line("their denominator df, Satterthwaite", "lmerTest", " rel.")
    one = Line("the same, the one unbalanced model with one term", "lmerTest", " rel.")
    kenward_roger = Line("their denominator df, Kenward-Roger", "pbkrtest", " rel.")
    for i, model in enumerate(load("emm")["models"]):
        fit = fitted(model["data"], model["formula"], True, model["weights"])
        for ddf, name in DDF:
            if i == WEIGHTED and ddf == "kenward-roger":
                continue
            got = fit.anova(ddf=ddf).to_frame().set_index("term")
            dfs = kenward_roger if ddf == "kenward-roger" else one if i == ONE_TERM else satterthwaite
            for row in model["anova"][name]:
                f.add(relative(got.loc[row["term"], "f_ratio"], row["f"]))
                dfs.add(relative(got.loc[row["term"], "df_den"], row["den_df"]))
    means = Line("F of joint tests", "emmeans, three decimals", "")
    for model in load("kenward_roger")["joint_tests"]:
        fit, by = fitted(model["data"], model["formula"], True, None), [model["by"]] if model["by"] else []
        for ddf, name in DDF:
            got = fit.joint_tests(by=model["by"], ddf=ddf).to_frame().set_index([*by, "term"])
            for row in model[name]:
                ours = got.loc[tuple(row[n] for n in [*by, "term"]) if by else row["term"]]
                means.add(ours["f_ratio"] / ours["f_scale"] - row["f"])
    return [f, satterthwaite, one, kenward_roger, means]


def kenward_roger_means_lines() -> list[Line]:
    """Compare means and pairs with Kenward-Roger with emmeans."""
    names = ("emmean", "mean se", "mean df", "mean ci", "estimate", "se", "df", "p_value", "ci")
    lines = {name: Line("", "", "") for name in names}
    for i, model in enumerate(load("emm")["models"]):
        if i == WEIGHTED:
            continue
        fit = fitted(model["data"], model["formula"], True, model["weights"])
        for grid in model["grids"]:
            add_grid(lines, fit, grid, "kenward-roger")
    by = "emmeans, pbkrtest"
    out = [
        Line("means and pairs: Kenward-Roger standard errors", by, " rel."),
        Line("their Kenward-Roger df", by, " rel."),
        Line("pairs: p-values, Tukey", by, ""),
    ]
    for line, parts in zip(out, (("mean se", "se"), ("mean df", "df"), ("p_value",)), strict=True):
        line.values = [value for part in parts for value in lines[part].values]
    return out


# ------------------------------------------------------------------------------------------------ cluster-robust


def cluster_lines() -> list[Line]:
    """Compare cluster-robust standard errors and df with n x n matrices and clubSandwich."""
    by = "clubSandwich"
    lines = {
        "se": Line("cluster-robust standard errors: CR0, CR1, CR2", "n x n matrices", " rel."),
        "df": Line("their Satterthwaite df", "n x n matrices", " rel."),
        "same": Line("CR0 and CR1 standard errors", by, " rel."),
        "same df": Line("their df", by, " rel."),
        "root": Line("CR2, written out with their root", by, " rel."),
        "other": Line("CR2, with our root", by, " rel."),
        "other df": Line("its df", by, " rel."),
    }
    for want in load("cluster_robust")["fits"]:
        add_clusters(lines, want)
    return list(lines.values())


def add_clusters(lines: dict[str, Line], want: Any) -> None:
    """Compare one fit, in all kinds."""
    brute, rows = suite_module("lmm/test_cluster_robust.py"), table(want["data"])
    fit = lt.fit_lmm(want["formula"], rows, weights=want.get("weights"), dispersion=want.get("dispersion"))
    X, V = fit.design.rows(rows)[:, fit.problem.kept], brute.working_covariance(fit, rows)
    y, cluster = rows[fit.design.parsed.response].to_numpy(), rows[want["cluster"]].to_numpy()

    def written_out(kind: str, root: str) -> tuple[Any, Any]:
        P = brute.contributions(X, V, cluster, kind, root)
        return np.sqrt(np.sum((P @ y) ** 2, axis=0)), brute.satterthwaite(P, V)

    for kind in brute.KINDS:
        frame = fit.cluster_robust(want["cluster"], kind=kind).to_frame()
        se, df = written_out(kind, "package")
        theirs = written_out(kind, "clubSandwich")[0] if kind == "CR2" else None
        same = "same" if kind != "CR2" else "other"
        for j in np.flatnonzero(frame["se"].notna()):
            lines["se"].add(relative(frame["se"][j], se[j]))
            lines["df"].add(relative(frame["df"][j], df[j]))
            lines[same].add(relative(frame["se"][j], want[kind]["se"][j]))
            lines[f"{same} df"].add(relative(frame["df"][j], number(want[kind]["df"][j])))
            if theirs is not None:
                lines["root"].add(relative(theirs[j], want[kind]["se"][j]))


SECTIONS = (emmeans_lines, kenward_roger_lines, anova_lines, kenward_roger_means_lines, cluster_lines)
