"""Likelihood ratios, the studentized range and joint t distributions, resampling, planning."""

from __future__ import annotations

import numpy as np
import pandas as pd

import lmemtest as lt
from lmemtest.bench.power.draw import StudyDesign, operating
from lmemtest.core.resampling import acceleration, bca_shares
from lmemtest.lmm.distributions.largest_t import largest_t
from lmemtest.lmm.distributions.student import two_sided_p
from lmemtest.lmm.distributions.studentized_range import ptukey, qtukey
from lmemtest.lmm.hypotheses.null_distributions import exact_null
from lmemtest.lmm.means.estimates import Estimates

from .common import Line, fitted, load, number, relative, suite_module


def glrt_lines() -> list[Line]:
    """Compare likelihood-ratio tests with lme4's."""
    statistic = Line("likelihood-ratio statistics", "lme4", "")
    chi2 = Line("their chi-squared p-values", "R", "")
    mixture = Line("their mixture p-values", "R", "")
    for row in load("lrt")["tests"]:
        for method in ("ML", "REML"):
            if not row.get(method):
                continue
            null, alternative = (
                fitted(row["data"], row[x], method == "REML", row["weights"]) for x in ("null", "alternative")
            )
            got, want = lt.glrt(null, alternative, reference="chi2"), row[method]
            statistic.add(got.statistic - want["statistic"])
            chi2.add(got.p_value - want["p_value"])
            if want["p_value_mixture"] is not None:
                got = lt.glrt(null, alternative, reference="mixture")
                mixture.add(got.p_value - want["p_value_mixture"])
    return [statistic, chi2, mixture]


def tukey_lines() -> list[Line]:
    """Compare the studentized range with an independent quadrature, and with R."""
    p = pd.DataFrame(load("ptukey")["probabilities"]).replace({"Inf": np.inf}).astype(float)
    q = pd.DataFrame(load("ptukey")["quantiles"]).replace({"Inf": np.inf}).astype(float)
    by = "independent quadrature"
    tail = Line("studentized range, probabilities", by, "")
    in_r = Line("the same, from 10 df", "R's ptukey", "")
    quantile = Line("studentized range, quantiles", by, " rel.")
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
    by = "published, 10,000 simulations"
    at_zero = Line("exact null of one variance, 6 groups of 5: P(0)", f"0.5605, {by}", "")
    above = Line("the same: P(statistic > 2.35)", f"0.05, {by}", "")
    zero = law.probability_of_zero()
    at_zero.add((np.nan if zero is None else zero) - 0.5605)
    above.add(law.p_value(2.35, 10_000, np.random.default_rng(0))[0] - 0.05)
    return [at_zero, above]


# ------------------------------------------------------------------------------------ the largest of several t


def largest_t_lines() -> list[Line]:
    """Compare the multivariate t with closed forms, Tukey, mvtnorm and Dunnett's tables; Hsu's intervals with R."""
    brute = suite_module("lmm/test_joint_t.py")
    sidak = Line(
        "largest absolute t, independent, infinite df",
        "closed form",
        " rel.",
    )
    for m in (2, 3, 7):
        want = -np.expm1(m * np.log1p(-two_sided_p(brute.C, np.inf)))
        for got, value in zip(largest_t(np.eye(m)).sf(brute.C, np.inf), want, strict=True):
            sidak.add(relative(got, value))
    three = Line(
        "three equally precise means",
        "studentized range",
        " rel.",
    )
    joint = largest_t(brute.pair_correlation(np.ones(3)))
    for df in (3.3, 20.0, np.inf):
        want = ptukey(np.sqrt(2) * brute.C, 3, df, upper=True)
        for got, value in zip(joint.sf(brute.C, df), want, strict=True):
            three.add(relative(got, value))
    by_error = Line(
        "sampled directions, 4 to 24 means",
        "studentized range",
        " of the reported error",
    )
    c = np.array([1.5, 2.0, 3.0, 4.0, 6.0])
    for k in (4, 8, 24):
        joint = largest_t(brute.pair_correlation(np.ones(k)), method="quasi-monte-carlo", rng=11)
        for df in (5.0, 40.0, np.inf):
            want = ptukey(np.sqrt(2) * c, k, df, upper=True)
            for got, value, error in zip(joint.sf(c, df), want, joint.error(c, df), strict=True):
                by_error.add((got - value) / (error + 1e-9 * value))
    mvtnorm = Line(
        "largest t, one- and two-sided, any correlations",
        "mvtnorm",
        " of both reported errors",
    )
    for family in load("simultaneous")["families"]:
        for alternative in ("two-sided", "greater"):
            joint = largest_t(np.array(family["correlation"]), alternative=alternative, rng=5)
            for row in family["probabilities"]:
                if row["alternative"] == alternative:
                    c, df = row["c"], number(row["df"])
                    error = row["error"] + float(joint.error(c, df)) + 4e-6  # mvtnorm's far tail is off by that
                    mvtnorm.add((float(joint.sf(c, df)) - row["p_upper"]) / error)
    dunnett = Line(
        "Dunnett's critical values, two decimals",
        "Dunnett (1955, 1964)",
        "",
    )
    for published, alternative in ((brute.TWO_SIDED, "two-sided"), (brute.ONE_SIDED, "greater")):
        for df, row in published.items():
            for m, want in enumerate(row, start=1):
                joint = largest_t(0.5 + 0.5 * np.eye(m), alternative=alternative)
                dunnett.add(float(joint.isf(0.05, df)) - want)
    return [sidak, three, by_error, mvtnorm, dunnett, *control_lines(), hsu_line()]


def control_lines() -> list[Line]:
    """Compare p-values of all pairs and of comparisons with a control, adjusted jointly."""
    layout = suite_module("lmm/test_control.py")
    pairs = Line('p-values of pairs, adjust="mvt"', "emmeans, mvtnorm", "")
    control = Line(
        "p-values against a control, Dunnett",
        "emmeans, mvtnorm",
        "",
    )
    for em, want in layout.rows_of(load, lambda name, formula: fitted(name, formula, True, None)):
        for line, found, name in (
            (pairs, em.pairs(adjust="mvt", rng=1), "pairs"),
            (control, em.against(em.labels()[0], rng=1), "control"),
        ):
            for got, row in zip(found.to_frame()["p_value"], want[name], strict=True):
                line.add(got - row["p_value"])
    return [pairs, control]


def hsu_line() -> Line:
    """Compare the ends of Hsu's intervals with his formulas in R."""
    line = Line("comparisons with the best, intervals", "Hsu's formulas, mvtnorm", " SE of a difference")
    for case in load("simultaneous")["best"]:
        rows = case["table"]
        mean, variance = (np.array([row[name] for row in rows], dtype=float) for name in ("mean", "variance"))
        k = len(mean)
        em = means_of(mean, np.diag(variance), float(case["df"]))
        frame = em.best(alpha=case["alpha"], rng=1).to_frame()
        size = np.sqrt(2 * variance.sum() / k)
        for i, row in enumerate(rows):
            for end in ("ci_low", "ci_high"):
                line.add((frame[end][i] - number(row[end])) / size)
    return line


def means_of(mean: np.ndarray, covariance: np.ndarray, df: float) -> Estimates:
    """Marginal means from arrays, without a fit."""
    return Estimates.of(
        L=np.eye(len(mean)),
        frame=pd.DataFrame({"algorithm": [f"a{i}" for i in range(len(mean))]}),
        b=mean,
        V=covariance,
        df=df,
        ddf="residual",
        score="score",
        direction="maximize",
    )


# ---------------------------------------------------------------------------------------- resampling, planning


def resampling_lines() -> list[Line]:
    """Compare bootstrap and permutation p-values with exact ones."""
    unit = " Monte-Carlo SE"
    exact = Line(
        "bootstrap p-value of one variance, 999 draws",
        "exact distribution",
        unit,
    )
    rng = np.random.default_rng(4)
    rows = pd.DataFrame({"g": np.repeat(np.arange(6), 5), "y": rng.normal(size=30) + np.repeat(rng.normal(size=6), 5)})
    fits = [lt.fit_lmm(formula, rows) for formula in ("y ~ 1", "y ~ 1 + (1|g)")]
    got = lt.glrt(*fits, "bootstrap", n_draws=999, rng=1, progress=False)
    exact.add((got.p_value - lt.glrt(*fits, "exact").p_value) / got.p_value_error)

    f_test = Line(
        "bootstrap p-value of a fixed effect, 999 draws",
        "F-test, six balanced blocks",
        "",
    )
    rows = suite_module("lmm/test_null_distributions.py").blocks()
    fits = [lt.fit_lmm(f"y ~ {fixed} + (1|block)", rows) for fixed in ("1", "tool")]
    want = fits[1].anova().to_frame()["p_value"][0]  # Satterthwaite's df are those of the F-test in balanced blocks
    got = lt.glrt(*fits, "bootstrap", n_draws=999, rng=1, progress=False)
    f_test.add(got.p_value - want)
    return [exact, f_test, *bootstrap_lines(), permutation_line()]


def bootstrap_lines() -> list[Line]:
    """Compare the bootstrap's standard error with the model's, and its BCa intervals with SciPy's."""
    from scipy import stats

    layout = suite_module("lmm/test_resampling.py")
    se = Line(
        "bootstrap SE of a difference, 999 draws",
        "the model's SE",
        " rel. (Monte-Carlo SE 2e-02)",
    )
    fit = lt.fit_lmm(layout.FORMULA, layout.make_table())
    se.add(relative(fit.bootstrap(layout.effect, 999, rng=1, progress=False).se[0], fit.bse.iloc[1]))

    bca = Line("ends of BCa intervals, the same draws", "SciPy", " rel.")
    x = np.random.default_rng(1).exponential(size=25)
    want = stats.bootstrap((x,), np.mean, method="BCa", n_resamples=1999, rng=np.random.default_rng(2))
    draws = want.bootstrap_distribution
    jackknife = np.array([[np.delete(x, i).mean()] for i in range(len(x))])
    shares = bca_shares(draws[:, None], np.array([x.mean()]), acceleration(jackknife), 0.95)
    ends = (want.confidence_interval.low, want.confidence_interval.high)
    for got, value in zip(np.quantile(draws, shares[:, 0]), ends, strict=True):
        bca.add(relative(got, value))
    return [se, bca]


def permutation_line() -> Line:
    """Compare with all 256 sign flips of eight benchmarks."""
    layout = suite_module("bench/test_permutation.py")
    line = Line(
        "permutation p-value, 999 exchanges",
        "all 256 sign flips",
        " Monte-Carlo SE",
    )
    rows = layout.table_of(seeds=1)
    y = rows.pivot(index="task", columns="tool", values="loss")
    d = (y["A"] - y["B"]).to_numpy()
    flips = np.array(np.meshgrid(*[[-1, 1]] * 8)).reshape(8, -1).T
    exact = np.mean(np.abs(flips @ d) >= abs(d.sum()) - 1e-12)
    runs = layout.as_runs(rows)
    got = lt.permutation_test(runs, layout.NAIVE, n_draws=999, rng=1, progress=False)
    line.add((got.p_value - exact) / got.p_value_error)
    return line


def power_lines() -> list[Line]:
    """Compare the closed form of power, its errors and its inverses with R."""
    power = Line("power of a paired comparison", "R, power.t.test", " rel.")
    type_s = Line("type-S error", "R, integrate", "")
    type_m = Line("type-M error", "R, integrate", " rel.")
    for want in load("power")["designs"]:
        n = want["n"]
        critical = StudyDesign(n_algorithms=2, n_benchmarks=n, n_seeds=1).critical(want["alpha"], "tukey")
        chance, wrong, size = operating(want["delta"], want["sd"] / np.sqrt(n), n - 1, critical)
        power.add(relative(chance, want["power"]))
        type_s.add(wrong - want["type_s"])
        type_m.add(relative(size, want["type_m"]))
    options = {"method": "closed_form", "progress": False}
    needed = Line("benchmarks that are needed", "R, power.t.test", "")
    plan = lt.VarianceComponents(interaction_sd=0, residual_sd=np.sqrt(0.5))
    for want in load("power")["needed"]:
        found = lt.power(plan, effect=want["delta"], n_benchmarks=5, n_seeds=1, **options).needed(want["power"])
        needed.add(found.to_frame()["n_benchmarks"][0] - np.ceil(want["n"]))
    effects = Line("detectable effects", "R, power.t.test", " rel.")
    plan = lt.VarianceComponents(interaction_sd=0.5, residual_sd=np.sqrt(0.5))
    for want in load("power")["detectable"]:
        found = lt.power(plan, effect=0.01, n_benchmarks=want["n"], n_seeds=2, **options).detectable(want["power"])
        effects.add(relative(found.to_frame()["effect"][0], want["delta"]))
    return [power, type_s, type_m, needed, effects]


TESTS_OF_MODELS = (glrt_lines, exact_lines, resampling_lines)
SIMULTANEOUS = (tukey_lines, largest_t_lines)
PLANNING = (power_lines,)
