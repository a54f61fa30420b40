"""Slopes of numeric columns against emmeans' emtrends (tests/reference/contrasts.R) and by their own definition."""

import numpy as np
import pandas as pd
import pytest
from references import values
from refusals import refusal, refuses

import lmemtest as lt
from lmemtest.errors import ArgumentError, DataError, UnknownColumnError
from lmemtest.lmm.means.emmeans import emtrends
from lmemtest.lmm.means.estimates import Estimates

TRENDS = values("contrasts")["trends"]
TERMS = [
    "x",
    "log(x)",
    "log2(x)",
    "log10(x)",
    "log1p(x)",
    "exp(x)",
    "sqrt(x)",
    "abs(x)",
    "square(x)",
    "pow(x, 3)",
    "pow(2, x)",
    "I((x**2 - 3) / x * -x + +z)",
    "I(x**z)",
    "center(x)",
    "scale(x)",
    "scale(log(x))",
    "poly(x, 3)",
    "poly(x, 3, raw=True)",
    "bs(x, df=5)",
    "bs(x, df=4, degree=2)",
    "bs(log(x), knots=[0.1])",
    "ns(x, df=4)",
    "ns(x, df=3, lower_bound=0.5, upper_bound=2)",
    "x:z",
    "f:x",
    "x:poly(x, 2)",
]


@pytest.mark.parametrize("ddf", ["satterthwaite", "kenward-roger"])
@pytest.mark.parametrize("i", range(len(TRENDS)))
def test_slopes_match_emtrends(fitted, i, ddf):
    want = TRENDS[i]
    at = want["at"] or {}
    fit = fitted(want["data"], want["formula"])
    got = emtrends(fit, [want["specs"], *at], var=want["var"], at=at, ddf=ddf).to_frame()
    both = got.merge(pd.DataFrame(want[ddf.replace("-", "_")]), on=[want["specs"], *at], suffixes=("", "_r"))
    assert len(both) == len(got) == len(want[ddf.replace("-", "_")])
    # R takes a forward difference over 1e-7 of the range: curvature of 1e-6, rounding of 1e-9
    np.testing.assert_allclose(both["slope"], both["slope_r"], rtol=1e-5, atol=1e-5 * both["se"].min())
    np.testing.assert_allclose(both["se"], both["se_r"], rtol=1e-5)
    np.testing.assert_allclose(both["df"], both["df_r"], rtol=1e-3)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(8)
    n = 120
    x, z = rng.uniform(0.3, 2.7, n), rng.uniform(0.5, 2.0, n)
    return pd.DataFrame({"x": x, "z": z, "f": np.tile(list("abc"), n // 3), "y": rng.normal(size=n)})


@pytest.mark.parametrize("term", TERMS)
def test_derivatives_of_every_function_are_those_of_a_difference(table, term):
    design = lt.fit_lmm(f"y ~ {term} + f", table).design
    new = table.iloc[:25]
    step = 1e-5
    ahead, back = (design.rows(new.assign(x=new["x"] + s * step)) for s in (1.0, -1.0))
    difference = (ahead - back) / (2 * step)
    np.testing.assert_allclose(design.slopes(new, "x"), difference, rtol=1e-6, atol=1e-8 * np.abs(difference).max())


def test_splines_go_on_beyond_their_bounds(table):
    design = lt.fit_lmm("y ~ bs(x, df=5)", table).design
    outside = pd.DataFrame({"x": [0.0, 3.5]})
    difference = (design.rows(outside + 1e-5) - design.rows(outside - 1e-5)) / 2e-5
    np.testing.assert_allclose(design.slopes(outside, "x"), difference, rtol=1e-6, atol=1e-6)


def test_a_slope_is_the_difference_of_two_means(fitted):
    fit = fitted("bench_unbalanced", "y ~ algorithm * fidelity + (1|benchmark) + (1|benchmark:algorithm)")
    slopes = emtrends(fit, "algorithm", var="fidelity")
    low, high = (fit.emmeans("algorithm", at={"fidelity": v}).estimate for v in (10.0, 30.0))
    np.testing.assert_allclose(slopes.estimate, (high - low) / 20.0, rtol=1e-10)
    assert not any("fidelity" in note for note in slopes.notes)  # a straight line has no place


def test_what_takes_means_takes_slopes(fitted):
    fit = fitted("bench_unbalanced", "y ~ algorithm * fidelity + (1|benchmark) + (1|benchmark:algorithm)")
    slopes = emtrends(fit, "algorithm", var="fidelity")
    assert isinstance(slopes, Estimates)
    assert slopes.column == "slope"
    found = slopes.pairs()
    assert found.to_frame()["estimate"][0] == pytest.approx(slopes.estimate[0] - slopes.estimate[1], rel=1e-12)
    assert found.direction is None
    assert found.sentences()[0].startswith("Slope along fidelity: BO and HB are not significantly different (diff")
    assert slopes.against("RS").sentences()[0].startswith("Slope along fidelity: ")
    assert "Response slope of y along fidelity" in slopes.contrast("eff").summary()
    best = slopes.best(direction="maximize", rng=1)
    assert best.sentences()[0].startswith("Slope along fidelity: ")
    assert "| slope" in slopes.to_table().to_markdown()


def test_slopes_of_a_logarithm_are_no_ratios_of_means(table):
    fit = lt.fit_lmm("log(y) ~ f * x", table.assign(y=np.exp(table["y"])))
    found = emtrends(fit, "f", var="x").pairs()
    assert found.log_base is None
    refuses(ArgumentError, r"these are differences of the slope of log\(y\) along x", found.ratios)


def test_where_a_curve_is_looked_at_is_said(fitted):
    fit = fitted("nested_slopes", "y ~ treatment * (x + I(x**2)) + (1|a)")
    notes = emtrends(fit, "treatment", var="x").notes
    assert "x is held at its mean over the rows, 3.0039." in notes
    assert any(note.startswith("Differences between the levels of treatment depend on x") for note in notes)


def test_robust_covariances_hold_for_slopes(fitted):
    fit = fitted("bench_unbalanced", "y ~ algorithm * fidelity + (1|benchmark)")
    robust = fit.cluster_robust("benchmark")
    slopes = emtrends(fit, "algorithm", var="fidelity", vcov=robust)
    row = list(fit.params.index).index("fidelity")
    assert slopes.se[0] == pytest.approx(np.sqrt(robust.cov_params().iloc[row, row]), rel=1e-12)


@pytest.mark.parametrize(
    ("var", "kind", "message"),
    [
        ("algorithm", ArgumentError, "var names 'algorithm', a factor, which has no slope. Numeric columns: fidelity."),
        ("fidelty", UnknownColumnError, "var names 'fidelty', not in the fixed part of the model."),
        (3, ArgumentError, "var must name a numeric column of the fixed part, got 3."),
    ],
)
def test_what_has_no_slope_is_refused(fitted, var, kind, message):
    fit = fitted("bench_unbalanced", "y ~ algorithm * fidelity + (1|benchmark)")
    assert message in refusal(lambda: emtrends(fit, "algorithm", var=var), kind)


def test_a_kink_has_no_slope(table):
    fit = lt.fit_lmm("y ~ f + abs(x)", table)
    refuses(DataError, r"the slope of abs\(x\) is not a finite number", emtrends, fit, "f", var="x", at={"x": 0})
