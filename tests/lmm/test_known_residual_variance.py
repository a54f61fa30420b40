"""Fits whose residual variance is known, against closed forms and dense matrices."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from pytest import approx
from refusals import refuses
from scipy.optimize import brentq, minimize_scalar

import lmemtest as lt
from lmemtest.errors import ArgumentError, NestingError
from lmemtest.lmm.engine.hessian import hessian
from lmemtest.lmm.hypotheses.glrt import glrt

SE = np.array([0.12, 0.31, 0.22, 0.45, 0.18, 0.27, 0.39, 0.15])
Y = np.array([0.42, -0.35, 0.81, 1.21, 0.05, 0.64, -0.52, 0.33])
STUDIES = pd.DataFrame({"effect": Y, "weight": 1.0 / SE**2, "study": list("abcdefgh")})


def meta(**options: object) -> lt.lmm.LmmFit:
    return lt.fit_lmm("effect ~ 1 + (1 | study)", STUDIES, weights="weight", residual_variance=1.0, **options)


def deviance(variance: float, *, reml: bool, mean: float | None = None) -> float:
    """-2 log L of independent effects with known errors and one variance between studies."""
    total = SE**2 + variance
    precision = (1.0 / total).sum()
    mean = (Y / total).sum() / precision if mean is None else mean
    value = np.log(2.0 * np.pi * total).sum() + ((Y - mean) ** 2 / total).sum()
    return float(value + (np.log(precision / (2.0 * np.pi)) if reml else 0.0))


def least(*, reml: bool, mean: float | None = None) -> tuple[float, float]:
    found = minimize_scalar(
        lambda v: deviance(v, reml=reml, mean=mean), bounds=(0, 9), method="bounded", options={"xatol": 1e-13}
    )
    return found.x, found.fun


@pytest.mark.parametrize("reml", [True, False])
def test_a_meta_analysis_is_a_fit_with_known_residual_variance(reml):
    fit, (variance, value) = meta(reml=reml), least(reml=reml)
    assert fit.covariances[0][0, 0] == approx(variance, rel=1e-6)  # where a parabola is flat to rounding
    assert fit.llf == approx(-0.5 * value, abs=1e-10)
    assert fit.bse["Intercept"] == approx((1.0 / (SE**2 + variance)).sum() ** -0.5, rel=1e-6)
    assert (fit.n_params, fit.scale) == (2, approx(1.0, rel=1e-12))


def test_equal_known_errors_have_the_degrees_of_freedom_of_the_mean_of_groups():
    table = pd.DataFrame({"y": Y, "g": list("abcdefgh")})
    fit = lt.fit_lmm("y ~ 1 + (1 | g)", table, residual_variance=0.04)
    assert fit.covariances[0][0, 0] == approx(Y.var(ddof=1) - 0.04, rel=1e-9)
    assert fit.df(np.eye(1)) == approx([7.0], rel=1e-9)
    assert np.isinf(fit.df(np.eye(1), "residual")).all()


def test_without_variance_between_groups_nothing_but_the_known_error_is_left():
    table = pd.DataFrame({"y": Y, "g": list("abcdefgh")})
    fit = lt.fit_lmm("y ~ 1 + (1 | g)", table, residual_variance=4.0)
    assert fit.is_singular
    assert fit.bse["Intercept"] == approx(np.sqrt(4.0 / 8.0), rel=1e-12)
    assert np.isinf(fit.df(np.eye(1))).all()


def test_the_profile_holds_the_known_variance():
    table = meta(reml=False).profile(["fixed", "sd"]).to_frame().set_index("kind")
    best, cut = least(reml=False)[1], 3.841458820694124
    ends = [brentq(lambda m: least(reml=False, mean=m)[1] - best - cut, *side) for side in ((-2.0, 0.3), (0.4, 3.0))]
    assert table.loc["fixed", ["ci_low", "ci_high"]].tolist() == approx(ends, abs=1e-6)
    high = brentq(lambda sd: deviance(sd**2, reml=False) - best - cut, 0.5, 3.0)
    assert table.loc["sd", "ci_high"] == approx(high, abs=1e-6)
    assert list(table.index) == ["sd", "fixed"]  # and no residual standard deviation


def crossed() -> pd.DataFrame:
    rng = np.random.default_rng(4)
    rows = [(a, g, h) for a in "pq" for g in "abcdef" for h in "uvwx"]
    table = pd.DataFrame(rows, columns=["a", "g", "h"])
    effects = {name: rng.normal(0.0, 0.8, table[name].nunique()) for name in "gh"}
    table["y"] = sum(effects[name][pd.factorize(table[name])[0]] for name in "gh") + rng.normal(0.0, 0.5, len(table))
    return table


def test_crossed_effects_and_one_row_per_cell_agree_with_dense_matrices():
    table = crossed()
    formula = "y ~ a + (1 | g) + (1 | h) + (1 | g:h:a)"  # a level of its own for every row
    fit = lt.fit_lmm(formula, table, residual_variance=0.09)
    codes = [
        pd.factorize(table[["g", "h", "a"]].agg("".join, axis=1) if n == "g:h:a" else table[n])[0]
        for n in ("g", "h", "g:h:a")
    ]
    V = 0.09 * np.eye(len(table))
    for S, code in zip(fit.covariances, codes, strict=True):
        V += S[0, 0] * (code[:, None] == code[None, :])
    X = np.column_stack([np.ones(len(table)), table["a"] == "q"]).astype(float)
    inverse = np.linalg.inv(V)
    information = X.T @ inverse @ X
    b = np.linalg.solve(information, X.T @ inverse @ table["y"])
    r = table["y"] - X @ b
    value = (
        np.linalg.slogdet(V)[1] + np.linalg.slogdet(information)[1] + r @ inverse @ r + (len(r) - 2) * np.log(2 * np.pi)
    )
    assert fit.llf == approx(-0.5 * value, abs=1e-9)
    assert fit.params.tolist() == approx(b.tolist(), rel=1e-9, abs=1e-12)
    assert fit.cov_params().to_numpy() == approx(np.linalg.inv(information), rel=1e-9)


def test_gradient_and_hessian_at_a_known_variance_are_those_of_differences():
    gaps = crossed().iloc[:-7]  # of a balanced table the mixed derivative is 0, and that of differences their rounding
    problem = lt.fit_lmm("y ~ a + (1 | g) + (1 | h)", gaps, residual_variance=0.3).problem
    x, step = np.array([0.7, 1.3]), 1e-5
    at = problem.evaluate(x)
    g = problem.derivatives(x, at)[1]
    ends = [[problem.evaluate(x + s * step * e) for s in (1, -1)] for e in np.eye(2)]
    assert g == approx([(up.value - down.value) / (2 * step) for up, down in ends], rel=1e-7)
    sides = [
        [problem.derivatives(x + s * step * e, problem.evaluate(x + s * step * e))[1] for s in (1, -1)]
        for e in np.eye(2)
    ]
    assert hessian(problem, x, at) == approx(np.array([(up - down) / (2 * step) for up, down in sides]), rel=1e-6)


def test_a_likelihood_ratio_needs_the_same_known_variance():
    null = lt.fit_lmm("y ~ a + (1 | g)", crossed(), residual_variance=0.3)
    other = lt.fit_lmm("y ~ a + (1 | g) + (1 | h)", crossed())
    refuses(NestingError, r"held at 0.3 and estimated .*same residual_variance", glrt, null, other)
    found = glrt(null, lt.fit_lmm("y ~ a + (1 | g) + (1 | h)", crossed(), residual_variance=0.3))
    assert (found.df, found.reference) == (1, "mixture")
    alone = lt.fit_lmm("y ~ a", crossed(), residual_variance=0.3)
    refuses(ArgumentError, "needs a residual variance that is estimated", glrt, alone, null, "exact")


@pytest.mark.parametrize(
    ("value", "words"), [(0.0, "above 0"), (-1.0, "above 0"), ("1", "above 0"), (np.inf, "above 0")]
)
def test_a_variance_that_is_none_is_refused(value, words):
    with pytest.raises(ArgumentError, match=f"residual_variance must be a finite number {words}"):
        lt.fit_lmm("effect ~ 1 + (1 | study)", STUDIES, residual_variance=value)


def test_what_does_not_go_with_a_known_variance_is_refused():
    with pytest.raises(ArgumentError, match="dispersion='study' asks"):
        lt.fit_lmm("effect ~ 1 + (1 | study)", STUDIES, residual_variance=1.0, dispersion="study")
    refuses(ArgumentError, r"holds it at 1\. Use ddf='satterthwaite'", meta().to_frame, ddf="kenward-roger")
    with pytest.raises(lt.errors.DesignError, match="8 levels x 1 effects = 8 columns for 8 rows"):
        lt.fit_lmm("effect ~ 1 + (1 | study)", STUDIES)  # the same design with a variance to estimate


def test_a_bootstrap_draws_and_refits_at_the_known_variance():
    fit = meta()
    found = fit.bootstrap(lambda f: np.array([f.scale, f.params.iloc[0]]), 40, rng=1)
    assert found.draws[:, 0] == approx(np.ones(40), rel=1e-12)
    assert 0.5 < found.se[1] / fit.bse["Intercept"] < 1.5
    assert fit.label.endswith("(1 | study), residual variance 1, weights weight")
