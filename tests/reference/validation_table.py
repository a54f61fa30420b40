"""Print the table of docs/validation.md: how far the package is from its reference values.

    python tests/reference/validation_table.py

Reads the JSON files beside it, fits everything again, and prints Markdown; takes about half a minute. With
LMEMTEST_DATA set to the folder that holds priorband.parquet, the published PriorBand fits are compared too.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import lmemtest as lt
from lmemtest.errors import ConvergenceWarning
from lmemtest.inference.exact_null import exact_null
from lmemtest.inference.multiplicity import ptukey, qtukey

HERE = Path(__file__).parent


@dataclass
class Line:
    """One row of the table: the largest difference of one quantity from one reference."""

    quantity: str
    reference: str
    unit: str
    test: str
    values: list[float] = field(default_factory=list)

    def add(self, difference: float) -> None:
        """Take note of one difference; NaN means that neither side has a number."""
        if not np.isnan(difference):
            self.values.append(abs(float(difference)))

    def __str__(self) -> str:
        worst = f"{max(self.values):.0e}{self.unit}" if self.values else "not run"
        return f"| {self.quantity} | {self.reference} | {len(self.values):,} | {worst} | `{self.test}` |"


def number(value: Any) -> float:
    """Read a number of the JSON files, where null is NA and "Inf" is infinity."""
    return np.nan if value is None else float(value)


def relative(got: float, want: float) -> float:
    """Relative difference; 0 for equal infinities, NaN where both are missing."""
    if np.isnan(want) != np.isnan(got):
        return np.inf
    return 0.0 if got == want else (got - want) / abs(want)


@cache
def load(name: str) -> Any:
    """Read one of the JSON files."""
    return json.loads((HERE / f"{name}.json").read_text(encoding="utf-8"))


@cache
def table(name: str) -> pd.DataFrame:
    """Read one of the input tables with the types that R used."""
    types = json.loads((HERE / "inputs" / "columns.json").read_text(encoding="utf-8"))[name]
    path = HERE / "inputs" / f"{name}.csv"
    path = path if path.exists() else path.with_suffix(".csv.gz")
    dtypes = {column: str if kind == "str" else "float64" for column, kind in types.items()}
    return pd.read_csv(path, dtype=dtypes, keep_default_na=False)


@cache
def fitted(name: str, formula: str, reml: bool, weights: str | None) -> Any:
    """Fit one reference model."""
    return lt.fit_lmm(formula, table(name), reml=reml, weights=weights)


# ------------------------------------------------------------------------------------------------ fits against lme4


def fit_lines() -> list[Line]:
    """Compare log-likelihoods, fixed effects, standard errors, variances and conditional modes."""
    by = "lme4, polished"
    tests = "tests/test_model.py::test_"
    llf = Line("log-likelihood (ML and REML)", by, "", tests + "log_likelihood_is_lme4s_best")
    beta = Line("fixed effects", by, " SE", tests + "fixed_effects_and_their_errors_agree_with_lme4")
    se = Line("their standard errors", by, " rel.", tests + "fixed_effects_and_their_errors_agree_with_lme4")
    sigma = Line("residual SD", by, " rel.", tests + "variance_components_agree_with_lme4")
    cov = Line(
        "variances and covariances of random effects",
        by,
        " of the product of the SDs",
        tests + "variance_components_agree_with_lme4",
    )
    modes = Line("conditional modes (BLUPs)", by, " residual SD", tests + "conditional_modes_agree_with_lme4")
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
        ours = fit.random_effects(next(t.group for t in fit.design.random if set(t.group.split(":")) == parts))
        rows = [x if x in ours.index else ":".join(reversed(x.split(":"))) for x in group["levels"]]
        got = ours.loc[rows, group["names"]].to_numpy()
        yield float(np.abs(got - np.array(group["values"], dtype=float)).max()) / np.sqrt(fit.scale)


def generated_lines() -> list[Line]:
    """Compare with the best of lme4's optimisers on generated models: never below, sometimes above."""
    test = "tests/test_never_below_lme4.py::test_log_likelihood_is_never_below_the_best_of_lme4s_optimisers"
    below = Line("log-likelihood of 240 generated fits: below lme4's best", "best of lme4's optimisers", "", test)
    above = Line("the same: above lme4's best", "best of lme4's optimisers", "", test)
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


# -------------------------------------------------------------------------------------------- means and pairs


def emmeans_lines() -> list[Line]:
    """Compare marginal means and pairwise differences with emmeans and lmerTest."""
    means, pairs = (f"tests/inference/test_against_emmeans.py::test_{x}_match_emmeans" for x in ("means", "pairs"))
    lines = {
        "emmean": Line("marginal means", "emmeans", " SE", means),
        "mean se": Line("their standard errors", "emmeans", " rel.", means),
        "mean df": Line("their Satterthwaite df", "emmeans, lmerTest", " rel.", means),
        "mean ci": Line("their intervals", "emmeans", " SE", means),
        "estimate": Line("pairwise differences", "emmeans", " SE", pairs),
        "se": Line("their standard errors", "emmeans", " rel.", pairs),
        "df": Line("their Satterthwaite df", "emmeans, lmerTest", " rel.", pairs),
        "p_value": Line("p-values: Tukey, Holm, Bonferroni, Sidak, none", "emmeans", "", pairs),
        "ci": Line("simultaneous intervals", "emmeans", " SE", pairs),
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
    em = lt.emmeans(
        fit, grid["specs"], by=grid["by"] or None, at={**grid["at"], **averaged}, weights=grid["weights"], ddf=ddf
    )
    names = [*em.by, *em.specs]
    ours = {key(row, names): row for row in em.to_frame().to_dict("records")}
    for want in grid[ddf]["means"]:
        got, se = ours[key(want, names)], number(want["se"])
        lines["emmean"].add((got["emmean"] - number(want["emmean"])) / se)
        lines["mean se"].add(relative(got["se"], se))
        for end in ("ci_low", "ci_high"):
            lines["mean ci"].add((got[end] - number(want[end])) / se)
        if ddf == "satterthwaite":
            lines["mean df"].add(relative(got["df"], number(want["df"])))
    for adjust, rows in (grid[ddf].get("pairs") or {}).items():
        frame = lt.pairs(em, adjust=adjust).to_frame()
        if frame[["left", "right"]].map(lambda text: ", " in text).to_numpy().any():
            frame[["left", "right"]] = frame[["left", "right"]].map(lambda text: text.replace(", ", " "))
        found = {key(row, [*em.by, "left", "right"]): row for row in frame.to_dict("records")}
        for want in rows:
            add_pair(lines, found, want, em.by, satterthwaite=ddf == "satterthwaite")


def add_pair(
    lines: dict[str, Line], found: dict[Any, Any], want: Any, by: tuple[str, ...], *, satterthwaite: bool
) -> None:
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
    if satterthwaite:
        lines["df"].add(relative(got["df"], number(want["df"])))


def key(row: Any, names: list[str]) -> tuple[str, ...]:
    """Make a key of values that R and pandas may have typed differently."""
    return tuple(row[name] if isinstance(row[name], str) else f"{row[name]:g}" for name in names)


# ------------------------------------------------------------------------------------- tests and distributions


def glrt_lines() -> list[Line]:
    """Compare likelihood-ratio tests with lme4's."""
    test = "tests/inference/test_glrt.py::test_statistic_df_and_p_match_lme4"
    statistic = Line("likelihood-ratio statistics", "lme4", "", test)
    chi2 = Line("their chi-squared p-values", "R", "", test)
    mixture = Line("their mixture p-values", "R", "", test)
    for row in load("lrt")["tests"]:
        for method in ("ML", "REML"):
            if not row.get(method):
                continue
            null, alternative = (
                fitted(row["data"], row[x], method == "REML", row["weights"]) for x in ("null", "alternative")
            )
            got, want = lt.glrt(null, alternative, reference="chi2"), row[method]
            statistic.add(got.statistic - want["statistic"])
            chi2.add(got.pvalue - want["p_value"])
            if want["p_value_mixture"] is not None:
                got = lt.glrt(null, alternative, reference="mixture")
                mixture.add(got.pvalue - want["p_value_mixture"])
    return [statistic, chi2, mixture]


def tukey_lines() -> list[Line]:
    """Compare the studentized range with an independent quadrature, and with R."""
    tests = "tests/inference/test_multiplicity.py::test_"
    p = pd.DataFrame(load("ptukey")["probabilities"]).replace({"Inf": np.inf}).astype(float)
    q = pd.DataFrame(load("ptukey")["quantiles"]).replace({"Inf": np.inf}).astype(float)
    by = "independent quadrature"
    tail = Line("studentized range, probabilities", by, "", tests + "probabilities_match_the_reference_quadrature")
    in_r = Line("the same, from 10 df", "R's ptukey", "", tests + "probabilities_match_r_to_the_error_that_r_has")
    quantile = Line("studentized range, quantiles", by, " rel.", tests + "quantiles_match_the_reference_quadrature")
    got = ptukey(p["q"], p["k"], p["df"], upper=True)
    for ours, want, r, df in zip(got, p["p_upper"], p["r_ptukey_upper"], p["df"], strict=True):
        tail.add(ours - want)
        if df >= 10:
            in_r.add(ours - r)
    for ours, want in zip(qtukey(q["p"], q["k"], q["df"]), q["q"], strict=True):
        quantile.add(relative(ours, want))
    return [tail, in_r, quantile]


def exact_lines() -> list[Line]:
    """Compare the exact null distribution of one variance with published simulations (6 groups of 5)."""
    law = exact_null(np.ones((6, 1)), np.ones(6), np.arange(6), np.full(6, 5.0), n_obs=30, reml=True)
    test = "tests/inference/test_exact_null.py::test_balanced_six_by_five_matches_published_values"
    by = "published, 10,000 simulations"
    at_zero = Line("exact null of one variance, 6 groups of 5: P(0)", f"0.5605, {by}", "", test)
    above = Line("the same: P(statistic > 2.35)", f"0.05, {by}", "", test)
    zero = law.probability_of_zero()
    at_zero.add((np.nan if zero is None else zero) - 0.5605)
    above.add(law.pvalue(2.35, 10_000, np.random.default_rng(0))[0] - 0.05)
    return [at_zero, above]


def priorband_lines() -> list[Line]:
    """Compare with the published log-likelihoods on the PriorBand table, if it is here."""
    test = "tests/test_priorband.py::test_published_log_likelihoods_are_reproduced"
    line = Line("log-likelihood, PriorBand table (86,400 rows)", "lme4 and a second implementation", "", test)
    folder = os.environ.get("LMEMTEST_DATA")
    if folder:
        data = pd.read_parquet(Path(folder) / "priorband.parquet")
        for model in load("priorband_table")["models"]:
            if not model["at_least"]:
                line.add(lt.fit_lmm(model["formula"], data, reml=False).llf - model["llf"])
    return [line]


SECTIONS: tuple[Callable[[], list[Line]], ...] = (
    fit_lines,
    generated_lines,
    priorband_lines,
    emmeans_lines,
    glrt_lines,
    tukey_lines,
    exact_lines,
)


def main() -> None:
    """Print the table."""
    print("| quantity | reference | values | largest difference | test |")
    print("|---|---|---|---|---|")
    for section in SECTIONS:
        for line in section():
            print(line)


if __name__ == "__main__":
    main()
