"""`model` and what it returns, beside pymer4's numbers; every difference with its reason."""

from __future__ import annotations

import re

import numpy as np
import pandas as pd
import pytest
from pytest import approx
from refusals import refuses
from scipy import stats

import lmemtest as lt
from lmemtest.compat.significance_analysis import Model, cd_diagram, dataframe_validator, model, post_hoc
from lmemtest.errors import ArgumentError, DataWarning, FormulaError, UnknownColumnError

MIXED = ("readme", "slopes", "interaction", "trend", "by_algorithm", "two_budgets", "prior_system", "benchmark_effect")
# lme4 stops this far from the optimum of singular models, relative to a variance or a degree of freedom.
LOOSE = {"slopes": 2e-4, "by_algorithm": 1e-4, "interaction": 1e-4}


@pytest.fixture
def fitted(peer, table):
    """`fitted("readme")` is the stored description of a model, and ours."""

    def fit(name):
        stored = peer["models"][name]
        return stored, model(stored["formula"], table(stored["table"]), **stored["options"])

    return fit


# ---------------------------------------------------------------- the same numbers


@pytest.mark.parametrize("name", MIXED)
def test_a_mixed_model_is_that_of_pymer4(fitted, assert_like, name):
    stored, ours = fitted(name)
    rel = LOOSE.get(name, 1e-5)
    assert isinstance(ours, Model)
    assert ours.formula == stored["kept_formula"]
    assert (ours.logLike, ours.AIC, ours.BIC) == approx((stored["logLike"], stored["AIC"], stored["BIC"]), abs=1e-6)
    assert_like(ours.coefs, stored["coefs"][0], rel=rel, skip=("2.5_ci", "97.5_ci", "P-val"))
    np.testing.assert_allclose(ours.coefs["P-val"], stored["coefs"][0]["data"]["P-val"], rtol=1e-3, atol=1e-12)
    assert [str(dtype) for dtype in ours.coefs.dtypes] == stored["coefs"][0]["dtypes"]
    assert list(ours.coefs.index) == stored["coefs"][0]["index"]
    assert list(ours.design_matrix.columns) == stored["design_columns"]
    assert ours.fits[:10] == approx(stored["fits"], rel=1e-5, abs=1e-5)
    assert ours.residuals[:10] == approx(stored["residuals"], abs=1e-5)
    assert list(ours.data.columns) == stored["data_columns"]
    assert_like(ours.anova(), stored["anova"][0], rel=1e-3)


@pytest.mark.parametrize("name", MIXED)
def test_random_effects_are_those_of_pymer4(fitted, assert_like, name):
    stored, ours = fitted(name)
    rel = LOOSE.get(name, 1e-5)
    assert ours.grps == stored["grps"]
    assert list(ours.grps) == list(stored["grps"])  # lme4's order
    assert_like(ours.ranef_var, stored["ranef_var"][0], rel=rel)
    assert list(ours.ranef_var.index) == stored["ranef_var"][0]["index"]
    assert [str(dtype) for dtype in ours.ranef_var.dtypes] == stored["ranef_var"][0]["dtypes"]
    if stored["ranef_corr"]:
        assert_like(ours.ranef_corr, stored["ranef_corr"][0], rel=rel)
        assert list(ours.ranef_corr.index) == stored["ranef_corr"][0]["index"]
    else:
        assert ours.ranef_corr is None
    for kind in ("ranef", "fixef"):
        tables = getattr(ours, kind)
        assert isinstance(tables, list) == (len(stored[kind]) > 1)
        for mine, theirs in zip(tables if isinstance(tables, list) else [tables], stored[kind], strict=True):
            assert_like(mine, theirs, rel=10 * rel)
            assert list(mine.index) == theirs["index"]


POST_HOC = [
    (name, position)
    for name, count in {
        "readme": 2,
        "slopes": 5,
        "interaction": 1,
        "trend": 2,
        "two_budgets": 1,
        "prior_system": 1,
    }.items()
    for position in range(count)
]


@pytest.mark.daily(5)
@pytest.mark.parametrize(("name", "position"), POST_HOC)
def test_post_hoc_is_that_of_emmeans(fitted, assert_like, capsys, name, position):
    stored, ours = fitted(name)
    call = stored["post_hoc"][position]
    estimates, contrasts = ours.post_hoc(**call["call"])
    rel = LOOSE.get(name, 1e-5)
    assert_like(estimates, call["estimates"], rel=rel)
    assert_like(contrasts, call["contrasts"], rel=rel, skip=("P-val",))
    np.testing.assert_allclose(contrasts["P-val"], call["contrasts"]["data"]["P-val"], rtol=1e-3, atol=1e-9)
    assert [str(dtype) for dtype in estimates.dtypes] == call["estimates"]["dtypes"]
    assert [str(dtype) for dtype in contrasts.dtypes] == call["contrasts"]["dtypes"]
    said = re.sub(r"for a family", "for family", capsys.readouterr().out)
    assert said == call["printed"]
    pd.testing.assert_frame_equal(ours.marginal_estimates, estimates)
    pd.testing.assert_frame_equal(ours.marginal_contrasts, contrasts)


def test_post_hoc_without_summarize_only_stores(fitted, capsys):
    _, ours = fitted("readme")
    assert ours.post_hoc("algorithm", summarize=False) is None
    assert len(ours.marginal_contrasts) == 3
    assert capsys.readouterr().out == ""


def test_rows_are_numbered_from_zero(fitted):
    """Peer: strings "1", "2", ...; `contrasts.P-val[0]` is the first row with both."""
    stored, ours = fitted("readme")
    assert stored["post_hoc"][0]["contrasts"]["index"] == ["1", "2", "3"]
    assert list(ours.post_hoc("algorithm")[1].index) == [0, 1, 2]


# ---------------------------------------------------------------- differences that are on the page


def test_results_are_not_rounded(fitted):
    """Peer: three decimals, so p = 0.0503 becomes 0.05, which its diagram then takes for significant."""
    stored, ours = fitted("readme")
    returned = stored["post_hoc"][0]["returned"][1]["data"]
    assert returned["SE"] == [round(v, 3) for v in stored["post_hoc"][0]["contrasts"]["data"]["SE"]]
    contrasts = ours.post_hoc("algorithm")[1]
    assert contrasts["SE"].tolist() == approx(stored["post_hoc"][0]["contrasts"]["data"]["SE"], rel=1e-6)
    small = 1e-4 * contrasts[["Estimate", "SE"]]
    assert (small["SE"].round(3) == 0).all()  # what the peer returns for losses near 1e-4


def test_intervals_of_coefficients_belong_to_their_tests(fitted):
    """Peer: normal quantiles whatever the degrees of freedom; 4 benchmarks give the intercept 4."""
    stored, ours = fitted("readme")
    theirs = stored["coefs"][0]["data"]
    estimate, se, df = theirs["Estimate"][0], theirs["SE"][0], theirs["DF"][0]
    assert theirs["2.5_ci"][0] == approx(estimate - stats.norm.ppf(0.975) * se)
    assert ours.coefs["2.5_ci"].iloc[0] == approx(estimate - stats.t.ppf(0.975, df) * se, rel=1e-6)
    assert df == approx(4.0, abs=0.5)
    for _, row in ours.coefs.iterrows():  # inside the interval means p > 0.05
        assert (row["2.5_ci"] < 0 < row["97.5_ci"]) == (row["P-val"] > 0.05)


def test_many_rows_do_not_change_the_method(fitted):
    """Peer: above `dof_asymptotic_at` rows emmeans turns to other degrees of freedom and standard errors."""
    stored, ours = fitted("slopes")
    call = stored["post_hoc"][5]
    assert call["call"]["dof_asymptotic_at"] == 100
    always = stored["post_hoc"][0]["contrasts"]["data"]
    assert call["contrasts"]["data"]["SE"][0] != approx(always["SE"][0], rel=1e-3)
    contrasts = ours.post_hoc(**call["call"])[1]
    assert contrasts["SE"].tolist() == approx(always["SE"], rel=1e-5)
    assert "T-stat" in contrasts


def test_a_model_without_random_effects_is_least_squares(fitted, table):
    """Peer: a random effect of the first row, variances divided by n, and n degrees of freedom."""
    stored, ours = fitted("dummy")
    frame = table("real")
    n = len(frame)
    assert stored["coefs"][0]["data"]["DF"] == approx([n] * 3)
    assert ours.coefs["DF"].tolist() == approx([n - 3] * 3)
    groups = [frame.loc[frame["algorithm"] == name, "value"] for name in ("PB", "HB")]
    within = sum(((v - v.mean()) ** 2).sum() for _, v in frame.groupby("algorithm")["value"]) / (n - 3)
    se = np.sqrt(within * sum(1 / len(g) for g in groups))
    contrasts = ours.post_hoc("algorithm")[1]
    assert contrasts["SE"].iloc[0] == approx(se)
    assert contrasts["Estimate"].iloc[0] == approx(groups[0].mean() - groups[1].mean())
    assert stored["post_hoc"][0]["contrasts"]["data"]["SE"][0] == approx(se * np.sqrt((n - 3) / n), rel=1e-6)
    assert ours.formula == "value~algorithm"
    assert stored["kept_formula"] == "value~algorithm+(1|dummy)"
    assert ours.logLike == approx(stored["logLike"], abs=1e-8)
    assert stored["AIC"] == approx(ours.AIC + 2)  # the variance of the first row counts as a parameter
    assert (ours.grps, ours.ranef, ours.fixef) == ({}, None, None)
    assert list(ours.ranef_var.index) == ["Residual"]


def test_an_outlier_in_the_first_row_is_no_group(table):
    """The peer's dummy group would take it for a random effect and shrink it away."""
    frame = table("real")
    frame.loc[0, "value"] = 50.0
    ours = model("value ~ algorithm", frame)
    first = frame.loc[frame["algorithm"] == "PB", "value"]
    assert ours.post_hoc("algorithm")[0]["Estimate"].iloc[0] == approx(first.mean())
    one_row = lt.fit_lmm("value ~ algorithm + (1|d)", frame.assign(d=(frame.index == 0).astype(str)), reml=False)
    assert one_row.llf > ours.logLike + 100


def test_least_squares_has_tests(fitted):
    """Peer: rows minus columns of clusters that are the algorithms themselves, so no degrees of freedom are left."""
    stored, ours = fitted("no_dummy")
    theirs = stored["coefs"][0]["data"]
    assert theirs["DF"] == [0, 0, 0]
    assert theirs["P-val"] == [None] * 3
    assert list(ours.coefs.index) == stored["coefs"][0]["index"]  # patsy's names and reference level
    assert ours.coefs["Estimate"].tolist() == approx(theirs["Estimate"])
    assert ours.coefs["SE"].tolist() == approx(theirs["SE"])
    t = ours.coefs["T-stat"].to_numpy()
    assert t == approx(theirs["T-stat"])
    assert ours.coefs["DF"].tolist() == approx([477.0] * 3)
    assert ours.coefs["P-val"].tolist() == approx(2 * stats.t.sf(np.abs(t), 477), rel=1e-6)
    assert ours.logLike == approx(stored["logLike"])
    assert ours.AIC - stored["AIC"] == approx(2)  # the peer leaves out the residual variance
    assert len(ours.post_hoc("algorithm")[1]) == 3  # which pymer4's Lm lacks
    # pymer4 0.8.2, for this model and table
    assert (ours.rsquared, ours.rsquared_adj) == approx((0.1350260416656, 0.1313993164735))


def test_a_mixed_model_has_no_single_r_squared(table):
    assert not hasattr(model("value ~ algorithm + (1|benchmark)", table("real")), "rsquared")


def test_the_table_of_the_caller_is_not_changed(peer, table):
    frame = table("real")
    before = frame.copy()
    model("value ~ algorithm", frame)
    assert peer["models"]["dummy"]["columns_after"][-1] == "dummy"
    pd.testing.assert_frame_equal(frame, before)


def test_a_family_is_counted_in_means(table, capsys):
    frame = table("real").assign(algorithm=lambda t: t["algorithm"] + t["used_fidelity"].astype(int).astype(str))
    model("value ~ algorithm + (1|benchmark)", frame).post_hoc("algorithm")
    assert capsys.readouterr().out == "P-values adjusted by tukey method for a family of 12 estimates\n"


# ---------------------------------------------------------------- what else a script may do


def test_the_tuple_of_the_validator_is_taken(table, peer):
    given = dataframe_validator(table("real"), verbose=False)
    ours = model("value ~ algorithm + (1|benchmark) + prior", given)
    assert ours.logLike == approx(peer["models"]["readme"]["logLike"], abs=1e-8)


def test_factors_of_r_and_other_dataframes(table):
    polars = pytest.importorskip("polars")
    frame = table("real")
    ours = model("value ~ algorithm + factor(used_fidelity) + (1|benchmark)", polars.from_pandas(frame))
    native = lt.fit_lmm("value ~ algorithm + C(used_fidelity) + (1|benchmark)", frame, reml=False)
    assert ours.logLike == approx(native.llf)
    assert len(ours.coefs) == 6


def test_missing_rows_are_left_out_with_a_warning(table):
    frame = table("real")
    frame.loc[[3, 7], "value"] = np.nan
    text = (
        "2 of 480 rows have missing values in the columns of the model and were left out. "
        "A run that failed is a worst score, not a missing one."
    )
    with pytest.warns(DataWarning, match=re.escape(text)):
        ours = model("value ~ algorithm + (1|benchmark)", frame)
    assert len(ours.fits) == len(ours.data) == 478
    assert ours.warnings == [text]


def test_warnings_are_printed_on_demand(table, capsys):
    formula = "value ~ benchmark + (0+algorithm|seed)"
    quiet = model(formula, table("seeded"))
    assert capsys.readouterr().out == ""
    model(formula, table("seeded"), no_warnings=False)
    assert capsys.readouterr().out == "".join(f"{note}\n\n" for note in quiet.warnings)
    assert quiet.warnings[0].startswith("Singular fit: (0 + algorithm | seed)")


def test_predictions_and_what_leads_further(table):
    frame = table("real")
    ours = model("value ~ algorithm + (1|benchmark) + prior", frame)
    assert ours.predict(frame) == approx(ours.fits)
    assert ours.predict(frame, use_rfx=False) == approx(ours.design_matrix.to_numpy() @ ours.coefs["Estimate"])
    assert ours.model_obj is ours.likelihood_fit
    assert repr(ours).endswith("Model(fitted = True, formula = value~algorithm+(1|benchmark)+prior, family = gaussian)")
    text = (
        "the model has no attribute 'confint', though pymer4's may have. Everything about the fit is in "
        ".likelihood_fit, an lmemtest.LmmFit."
    )
    with pytest.raises(AttributeError, match=re.escape(text)):
        ours.confint  # noqa: B018
    assert not hasattr(ours, "_private")


def test_a_transformed_response(table):
    frame = table("real").assign(value=lambda t: t["value"] - t["value"].min() + 1)
    ours = model("log(value) ~ algorithm + (1|benchmark)", frame)
    assert ours.residuals == approx(np.log(frame["value"]) - ours.fits)


def test_the_summary_returns_rounded_coefficients(fitted, assert_like, capsys):
    stored, ours = fitted("slopes")
    shown = ours.summary()
    assert_like(shown, stored["summary"][0], rel=1e-2, skip=("2.5_ci", "97.5_ci"))
    out = capsys.readouterr().out
    assert "Formula: value~algorithm*prior+(1+prior|benchmark)+(1|benchmark:seed)" in out
    assert "Log-likelihood: 22.452" in out


def test_diagrams_take_names_with_signs(fitted):
    stored, ours = fitted("two_budgets")
    names = stored["post_hoc"][0]["contrasts"]["data"]["Contrast"]
    assert names == ["(HB+prior) - HB", "(HB+prior) - random search", "HB - random search"]
    result = ours.post_hoc("algorithm")
    assert result[1]["Contrast"].tolist() == names
    assert cd_diagram(result) is not None


# ---------------------------------------------------------------- names of R


def test_names_of_columns_are_those_of_make_names():
    """R 4.2: make.names(...)."""
    given = ["(Intercept)", "algorithmHB+prior", "a b", "1x", "x-y", "if", "TRUE", "_a", ".1a", "ä-b", ".a", ""]
    r = ["X.Intercept.", "algorithmHB.prior", "a.b", "X1x", "x.y", "if.", "TRUE.", "X_a", "X.1a", "ä.b", ".a", "X"]
    assert [post_hoc.column(name) for name in given] == r


def test_names_in_brackets_are_those_of_emmeans():
    """emmeans 1.8.4: levels of a factor in pairs()."""
    given = ["HB+prior", "HB", "R S", "x-y", "m/n", "p*q", "a.b", "a:b"]
    assert [post_hoc.bracketed(name) for name in given] == [
        "(HB+prior)", "HB", "R S", "(x-y)", "(m/n)", "(p*q)", "a.b", "a:b",
    ]  # fmt: skip


def test_names_of_coefficients():
    numbered = {"algorithm": ["PB", "a:b", "c[d]"]}
    given = ["Intercept", "algorithm[T.a:b]", "algorithm[T.c[d]]", "prior[T.bad]:algorithm[T.a:b]", "x", "prior[good]"]
    ours = ["(Intercept)", "algorithm1", "algorithm2", "priorbad:algorithm1", "x", "priorgood"]
    assert [post_hoc.coefficient(name, numbered) for name in given] == ours


def test_stars():
    for p, text in [(0.0005, "***"), (0.001, "**"), (0.049, "*"), (0.05, "."), (0.2, "")]:
        assert post_hoc.stars(p) == text


# ---------------------------------------------------------------- bad input

BAD_POST_HOC = [
    (
        {"marginal_vars": "nothing"},
        "marginal_vars names 'nothing', which is not in the fixed part of the model (value ~ algorithm*used_fidelity + "
        "(1|benchmark)). Columns there: algorithm, used_fidelity.",
    ),
    ({"marginal_vars": []}, "marginal_vars must name one or more factors of the model, such as 'algorithm'."),
    (
        {"marginal_vars": "used_fidelity"},
        "'used_fidelity' holds numbers, so its slopes are compared, and grouping_vars must say between which levels: "
        "post_hoc(..., grouping_vars='algorithm').",
    ),
    (
        {"marginal_vars": ["algorithm", "used_fidelity"], "grouping_vars": "algorithm"},
        "marginal_vars must be factors only or one column of numbers, got algorithm, used_fidelity. Pass the factors "
        "as grouping_vars to compare the slopes between their levels.",
    ),
    (
        {"marginal_vars": "algorithm", "grouping_vars": "used_fidelity"},
        "grouping_vars must be factors, and 'used_fidelity' holds numbers. Name a factor.",
    ),
    (
        {"marginal_vars": "algorithm", "p_adjust": "hochberg"},
        "p_adjust must be 'tukey' or 'bonf' or 'bonferroni' or 'holm' or 'fdr' or 'BH' or 'sidak' or 'mvt' or 'none', "
        "got 'hochberg'.",
    ),
]


def test_post_hoc_refuses_what_it_cannot_do(fitted):
    for call, message in BAD_POST_HOC:
        _, ours = fitted("trend")
        with pytest.raises(ArgumentError, match=f"^{re.escape(message)}$") as caught:
            ours.post_hoc(**call)
        assert isinstance(caught.value, ValueError)  # as pymer4's


def test_model_refuses_what_it_cannot_read(table):
    frame = table("real")
    text = "system_id names the column 'tool', which is not in the data. Columns: benchmark, prior, algorithm, seed, "
    refuses(UnknownColumnError, re.escape(text), model, "value ~ algorithm", frame, system_id="tool")
    with pytest.raises(UnknownColumnError, match=r"factor names the column 'piror', .* Did you mean 'prior'?"):
        model("value ~ algorithm", frame, factor="piror")
    with pytest.raises(FormulaError):
        model("value algorithm", frame)
    refuses(ArgumentError, "data must be a dataframe", model, "value ~ algorithm", [1, 2])


def test_slopes_within_groups_are_those_of_the_coefficients(table):
    ours = model("value ~ algorithm*used_fidelity*prior + (1|benchmark)", table("real"), factor="prior")
    estimates, contrasts = ours.post_hoc("used_fidelity", ["algorithm", "prior"])
    assert list(estimates.columns[:2]) == ["algorithm", "prior"]
    assert estimates["prior"].tolist() == ["good"] * 3 + ["bad"] * 3
    b = ours.coefs["Estimate"]
    assert estimates["Estimate"].iloc[0] == approx(b["used_fidelity"])
    assert estimates["Estimate"].iloc[1] == approx(b["used_fidelity"] + b["algorithm1:used_fidelity"])
    assert contrasts["Contrast"].tolist() == ["PB - HB", "PB - RS", "HB - RS"] * 2
    assert contrasts["SE"].iloc[0] == approx(ours.coefs["SE"]["algorithm1:used_fidelity"], rel=1e-6)
