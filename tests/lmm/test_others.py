"""Results of statsmodels: against emmeans of R's lm and glm, statsmodels' own tests of contrasts, and fits of ours."""

import pickle
import re

import numpy as np
import pandas as pd
import pytest
from references import inputs, values

import lmemtest as lt
from lmemtest.errors import ArgumentError, DataError, UnknownColumnError

families = pytest.importorskip("statsmodels.genmod.families")
linear_model = pytest.importorskip("statsmodels.regression.linear_model")
smf = pytest.importorskip("statsmodels.formula.api")

FIELDS = ["estimate", "se", "df", "p_value", "ci_low", "ci_high"]


def table() -> pd.DataFrame:
    data = inputs("bench_prior_unbalanced")
    return data.assign(
        above=(data["y"] > -1).astype(float), count=np.floor(np.exp(data["y"] + 3)), logn=np.log1p(data["fidelity"])
    )


def glm(formula: str, family, **options):
    # both optimisers stop at the same relative change of the deviance, 1e-14
    return smf.glm(formula, table(), family=family, **options).fit(tol=1e-14, maxiter=100)


FITS = {
    "ols": lambda: smf.ols("y ~ algorithm * prior + np.log(fidelity)", table()).fit(),
    "binomial": lambda: glm("above ~ algorithm * prior + fidelity", families.Binomial()),
    "probit": lambda: glm("above ~ algorithm + prior + fidelity", families.Binomial(link=families.links.Probit())),
    "poisson": lambda: glm("count ~ algorithm * prior", families.Poisson(), offset=table()["logn"]),
}


@pytest.fixture(params=FITS)
def case(request):
    return FITS[request.param](), values("others")[request.param]


def agree(got: pd.DataFrame, want: list, fields: dict[str, str]) -> None:
    expected = pd.DataFrame(want).astype(float, errors="ignore")
    for mine, theirs in fields.items():
        np.testing.assert_allclose(
            got[mine].to_numpy(float), expected[theirs].to_numpy(float), rtol=1e-6, atol=1e-7, err_msg=mine
        )


def test_means_and_pairs_are_those_of_emmeans(case):
    fit, want = case
    means = lt.emmeans(fit, "algorithm", by="prior")
    agree(means.to_frame(), want["means"], {"emmean": "estimate"} | {f: f for f in ("se", "df", "ci_low", "ci_high")})
    # R's ptukey is good to 1e-7 or so, its qtukey to 1e-6 relative
    pairs = means.pairs(adjust="tukey").to_frame()
    agree(pairs, want["pairs"], {f: f for f in ("estimate", "se", "df", "p_value")})
    agree(
        lt.emmeans(fit, "algorithm", weights="proportional").to_frame(),
        want["proportional"],
        {"emmean": "estimate", "se": "se"},
    )


@pytest.mark.parametrize("name", ["ols", "binomial", "probit"])
def test_joint_tests_are_those_of_emmeans(name):
    fit, want = FITS[name](), values("others")[name]
    got = lt.joint_tests(fit).to_frame().set_index("term")
    expected = pd.DataFrame(want["joint"]).set_index("term")
    both = [term for term in got.index if term in expected.index]
    assert {"algorithm", "prior"} <= set(both)
    agree(got.loc[both], expected.loc[both].to_dict("records"), {f: f for f in ("df_num", "df_den", "p_value")})


@pytest.mark.parametrize("name", ["binomial", "probit", "poisson"])
def test_means_of_the_response_and_their_differences_are_those_of_emmeans(name):
    fit, want = FITS[name](), values("others")[name]
    means = lt.emmeans(fit, "algorithm", type="response")
    agree(means.to_frame(), want["response"], {"emmean": "mean"} | {f: f for f in ("se", "ci_low", "ci_high")})
    agree(
        means.pairs(adjust="tukey").to_frame(), want["differences"], {f: f for f in ("estimate", "se", "df", "p_value")}
    )
    assert (means.score, means.ddf) == (fit.model.endog_names, "asymptotic")
    ratios, m = lt.emmeans(fit, "algorithm", type="log").pairs().ratios(), means.estimate
    assert ratios["ratio"].tolist()[:2] == pytest.approx([m[0] / m[1], m[0] / m[2]], rel=1e-12)


def test_contrasts_are_those_of_statsmodels_own_test():
    data = table()
    fits = [
        smf.ols("y ~ algorithm", data).fit(cov_type="HC3"),
        smf.gee("above ~ algorithm", "benchmark", data, family=families.Binomial()).fit(),
        smf.mixedlm("y ~ algorithm", data, groups=data["benchmark"]).fit(),
        smf.logit("above ~ algorithm", data).fit(disp=0),
        smf.wls("y ~ algorithm", data, weights=data["fidelity"]).fit(),
    ]
    for fit in fits:
        L = np.zeros((1, len(getattr(fit, "fe_params", fit.params))))
        L[0, 1:3] = 1.0, -1.0  # HB less PB
        want = fit.t_test(L)
        got = (
            lt.emmeans(fit, "algorithm").pairs(adjust="none").to_frame().set_index(["left", "right"]).loc[("HB", "PB")]
        )
        assert got["estimate"] == pytest.approx(float(np.squeeze(want.effect)), rel=1e-10)
        assert got["se"] == pytest.approx(float(np.squeeze(want.sd)), rel=1e-8)
        assert got["p_value"] == pytest.approx(float(np.squeeze(want.pvalue)), rel=1e-7)


def test_a_mixed_model_has_the_means_of_ours_and_says_what_its_degrees_of_freedom_lack():
    data = table()
    other = smf.mixedlm("y ~ algorithm * prior + fidelity", data, groups=data["benchmark"]).fit(gtol=1e-10)
    got = lt.emmeans(other, "algorithm", by="prior")
    ours = lt.fit_lmm("y ~ algorithm * prior + fidelity + (1|benchmark)", data)
    want = ours.emmeans("algorithm", by="prior", ddf="asymptotic")
    # statsmodels stops at a gradient of 1e-10, its variances at about 1e-5
    np.testing.assert_allclose(got.estimate, want.estimate, rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(got.se, want.se, rtol=1e-3)
    assert np.isinf(got.df).all()
    assert any("fit_lmm fits the same model with Satterthwaite's" in note for note in got.notes)


@pytest.mark.parametrize("engine", ["patsy", "formulaic"])
def test_both_libraries_of_formulas_give_the_same_means(engine, monkeypatch):
    formula = pytest.importorskip("statsmodels.formula")
    if not hasattr(formula, "options"):
        pytest.skip("statsmodels before 0.15 has patsy only")
    monkeypatch.setattr(formula.options, "formula_engine", engine)
    name = "share of steps" if engine == "patsy" else "share"
    data = table().rename(columns={"fidelity": name})
    data["half"], data["flag"] = np.arange(len(data)) % 2 + 1, data["y"] > 0
    quoted = 'Q("share of steps")' if engine == "patsy" else name
    fit = smf.ols(f"y ~ algorithm * C(half) + {quoted} + flag", data).fit()
    means = lt.emmeans(fit, ["algorithm", "half"], at={"flag": True})
    assert means.covariates == {name: (pytest.approx(data[name].mean()),)}
    b = fit.params
    flag = next(name for name in b.index if name.startswith("flag"))
    at = b["Intercept"] + b[flag] + b[quoted] * data[name].mean()
    assert means.estimate[0] == pytest.approx(at)
    row = means.to_frame().set_index(["algorithm", "half"]).loc[("HB", 2)]
    assert row["emmean"] == pytest.approx(
        at + b["algorithm[T.HB]"] + b["C(half)[T.2]"] + b["algorithm[T.HB]:C(half)[T.2]"]
    )


def test_rows_that_were_left_out_do_not_count():
    data = table()
    data.loc[data.index[:7], "fidelity"] = np.nan
    data.loc[data.index[8], "algorithm"] = None
    kept = data.dropna()
    want = lt.emmeans(smf.ols("y ~ algorithm + fidelity", kept).fit(), "algorithm")
    got = lt.emmeans(smf.ols("y ~ algorithm + fidelity", data).fit(), "algorithm")
    np.testing.assert_allclose(got.estimate, want.estimate, rtol=1e-10)
    assert (got.n_obs, got.covariates) == (len(kept), want.covariates)
    repeated = data.set_axis([0] * len(data))
    with pytest.raises(DataError, match=re.escape("Number the rows before the fit: data.reset_index(drop=True).")):
        lt.emmeans(smf.ols("y ~ algorithm + fidelity", repeated).fit(), "algorithm")


@pytest.mark.filterwarnings("ignore:The design matrix is rank-deficient")
def test_means_of_empty_cells_are_not_estimable():
    data = table()
    data = data[~((data["algorithm"] == "RS") & (data["prior"] == "bad"))]
    means = lt.emmeans(smf.ols("y ~ algorithm * prior", data).fit(), ["algorithm", "prior"])
    frame = means.to_frame().set_index(["algorithm", "prior"])["emmean"]
    assert np.isnan(frame[("RS", "bad")])
    assert frame.drop(("RS", "bad")).notna().all()
    assert frame[("RS", "good")] == pytest.approx(data[(data["algorithm"] == "RS")]["y"].mean())
    assert any("Not estimable from these data" in note for note in means.notes)
    response = lt.emmeans(
        smf.glm("above ~ algorithm * prior", data, family=families.Binomial()).fit(),
        ["algorithm", "prior"],
        type="response",
    )
    assert np.isnan(response.estimate).sum() == 1


@pytest.mark.filterwarnings("ignore:The design matrix is rank-deficient")
def test_the_levels_of_a_categorical_column_keep_their_order():
    data = table().assign(algorithm=lambda d: pd.Categorical(d["algorithm"], ["RS", "unused", "PB", "HB", "BO"]))
    means = lt.emmeans(smf.ols("y ~ algorithm", data).fit(), "algorithm")
    assert means.labels() == ("RS", "PB", "HB", "BO")
    np.testing.assert_allclose(means.estimate, [data[data["algorithm"] == a]["y"].mean() for a in means.labels()])


@pytest.mark.parametrize("name", FITS)
def test_means_can_be_pickled(name):
    means = lt.emmeans(FITS[name](), "algorithm", **({} if name == "ols" else {"type": "response"}))
    again = pickle.loads(pickle.dumps(means))
    pd.testing.assert_frame_equal(again.pairs().to_frame(), means.pairs().to_frame())


def test_a_diagram_and_decisions_follow():
    means = lt.emmeans(FITS["ols"](), "algorithm")
    decisions = means.decisions(direction="minimize")
    assert lt.plots.cd_diagram(decisions).get_figure() is not None


def test_the_errors_of_few_groups_are_said_to_be_small():
    data = table()
    few = smf.gee("y ~ algorithm", "benchmark", data).fit()
    assert any("sandwich errors from 6 groups" in note for note in lt.emmeans(few, "algorithm").notes)
    corrected = smf.gee("y ~ algorithm", "benchmark", data).fit(cov_type="bias_reduced")
    assert lt.emmeans(corrected, "algorithm").notes == ("Standard errors: bias_reduced, as the result has them.",)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: lt.emmeans(linear_model.OLS(table()["y"], np.ones(180)).fit(), "algorithm"), ArgumentError,
         "fit is a result of OLS without a formula, so nothing says which columns are factors. Fit it with one: "
         "statsmodels.formula.api, or OLS.from_formula('y ~ a', data)."),
        (lambda: lt.emmeans(smf.ols("y ~ algorithm", table()), "algorithm"), ArgumentError,
         "fit must be a fitted model, got OLS of statsmodels. Give what its fit() returns."),
        (lambda: lt.emmeans(smf.mnlogit("count ~ algorithm", table().assign(count=[0, 1, 2] * 60)).fit(disp=0), "a"),
         ArgumentError, "fit is a result of MNLogit, which has more than one coefficient per column of its design."),
        (lambda: lt.emmeans(FITS["ols"](), "algoritm"), UnknownColumnError,
         "specs names 'algoritm', not in the fixed part of the model. Factors: algorithm, prior."),
        (lambda: lt.emmeans(FITS["ols"](), "algorithm", ddf="kenward-roger"), ArgumentError,
         "ddf='kenward-roger' is for fits of fit_lmm, and this is a result of statsmodels. Leave ddf out."),
        (lambda: lt.emmeans(FITS["binomial"](), "algorithm", ddf="residual"), ArgumentError,
         "ddf='residual' needs a result that tests by t, and GLM tests by z."),
        (lambda: lt.emmeans(FITS["ols"](), "algorithm", vcov="moderated"), ArgumentError,
         "vcov must be left out, since standard errors of a result of statsmodels are the result's own."),
        (lambda: lt.emmeans(FITS["ols"](), "algorithm", type="response"), ArgumentError,
         "type='response' is for models with a link, and the means of this one are of its response already."),
        (lambda: lt.emmeans(FITS["ols"](), "algorithm", type="odds"), ArgumentError,
         "type must be 'link' or 'response' or 'log', got 'odds'."),
        (
            lambda: lt.emmeans(
                smf.glm("z ~ algorithm", table().assign(z=lambda t: -t["y"])).fit(), "algorithm", type="log"
            ),
            ArgumentError,
            "type='log' needs positive means, and some of z are not. Take their differences: type='response'.",
        ),
        (lambda: lt.lmm.emtrends(FITS["ols"](), "algorithm", var="fidelity"), ArgumentError,
         "emtrends is for fits of fit_lmm, and this is a result of statsmodels. Compare its means at two values: "
         "emmeans(result, ..., at={'fidelity': [0, 1]})."),
    ],
)  # fmt: skip
def test_what_cannot_be_is_refused_with_the_next_step(call, error, message):
    with pytest.raises(error, match=re.escape(message)):
        call()


def test_a_variable_that_is_no_column_is_refused():
    outside = np.arange(180.0)  # noqa: F841, read by the formula
    fit = smf.ols("y ~ algorithm + outside", table()).fit()
    with pytest.raises(ArgumentError, match="the formula of fit uses 'outside', which is no column of its table"):
        lt.emmeans(fit, "algorithm")
