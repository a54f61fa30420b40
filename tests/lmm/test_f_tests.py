"""F-tests of terms: against lmerTest, pbkrtest, emmeans and car, by their definition; Kenward-Roger means."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from pytest import approx
from references import values
from refusals import refusal, refuses

import lmemtest as lt
from lmemtest.errors import ArgumentError, UnknownColumnError
from lmemtest.lmm.means.f_tests import anova, combined_df, f_test, joint_tests

EMM = values("emm")["models"]
JOINT = values("kenward_roger")["joint_tests"]
DDF = [("satterthwaite", "satterthwaite"), ("kenward-roger", "kenward_roger")]
WEIGHTED = 3  # pbkrtest ignores weights; see tests/lmm/engine/test_kenward_roger.py
ONE_TERM = 10  # see test_one_unbalanced_term...
MODELS = values("anova")["models"]
CASES = [
    pytest.param(i, kind, ddf, id=f"{model['data']}-{i}-type{kind}-{ddf}")
    for i, model in enumerate(MODELS)
    for kind in (1, 2)
    for ddf in model[f"type_{kind}"]
]


NOT_SEEN = (4, 2, "prior")  # see test_a_term_inside_a_nested_one...


# ----------------------------------------------------------------------------------------- marginal means and type III


@pytest.fixture
def bench(reference_input):
    return lt.fit_lmm(EMM[13]["formula"], reference_input("bench_prior_unbalanced"))


def agree(got, rows, *, rel, least=1e-12):
    """With the tests of lmerTest, whose coefficients have 7 digits and whose derivatives are numerical."""
    for row in rows:
        ours = got.loc[row["term"]]
        assert ours["df_num"] == row["num_df"]
        assert ours["f_ratio"] == approx(row["f"], rel=1e-6, abs=least)
        assert ours["df_den"] == approx(row["den_df"], rel=rel)  # pbkrtest has closed forms
        assert ours["p_value"] == approx(row["p_value"], rel=1e-3, abs=1e-6)


@pytest.mark.parametrize(("ddf", "key"), DDF)
@pytest.mark.parametrize("i", range(len(EMM)))
def test_anova_agrees_with_lmertest(fitted, i, ddf, key):
    model = EMM[i]
    if i == WEIGHTED and ddf == "kenward-roger":
        pytest.skip("pbkrtest ignores weights, so its numbers are those of another model")
    fit = fitted(model["data"], model["formula"], True, model["weights"])
    got = fit.anova(ddf=ddf).to_frame().set_index("term")
    assert set(got.index) == {row["term"] for row in model["anova"][key]}
    agree(got, model["anova"][key], rel=1e-6 if ddf == "kenward-roger" else 5e-4 if i == ONE_TERM else 1e-4)


def test_one_unbalanced_term_differs_from_lmertest_by_the_basis_it_chooses(fitted):
    """For a model of one term lmerTest takes other rows (type I, by Doolittle) that span the same hypothesis."""
    model = EMM[ONE_TERM]
    fit = fitted(model["data"], model["formula"], True, None)
    rows = np.repeat(np.arange(len(fit.cells.n)), fit.cells.n.astype(int))
    X = fit.design.X[rows]
    upper = np.linalg.cholesky(X.T @ X).T
    test = f_test(fit, (upper / upper.diagonal()[:, None])[1:])
    want = model["anova"]["satterthwaite"][0]
    assert test.df_den == approx(want["den_df"], rel=1e-6)
    assert test.f_ratio == approx(want["f"], rel=1e-6)


@pytest.mark.parametrize(("ddf", "key"), DDF)
@pytest.mark.parametrize("model", JOINT, ids=lambda m: f"{m['data']}-by-{m['by']}")
def test_joint_tests_agree_with_emmeans(fitted, model, ddf, key):
    fit = fitted(model["data"], model["formula"])
    by = [model["by"]] if model["by"] else []
    got = joint_tests(fit, by=model["by"], ddf=ddf).to_frame().set_index([*by, "term"])
    assert len(got) == len(model[key])
    for row in model[key]:
        ours = got.loc[tuple(row[name] for name in [*by, "term"]) if by else row["term"]]
        assert ours["df_num"] == row["num_df"]
        assert ours["f_ratio"] / ours["f_scale"] == approx(row["f"], abs=6e-4)  # rounded to three decimals
        assert ours["df_den"] >= row["den_df"] - 0.01  # emmeans takes the smallest of the rows
        if row["num_df"] == 1:
            assert ours["df_den"] == approx(row["den_df"], abs=0.006)


@pytest.mark.parametrize("ddf", ["satterthwaite", "kenward-roger"])
def test_one_hypothesis_has_one_p_value(bench, ddf):
    """Satterthwaite's df depend on the rows that span a hypothesis: every door takes those of lmerTest."""
    one, two = (f.to_frame().set_index("term") for f in (anova(bench, ddf=ddf), joint_tests(bench, ddf=ddf)))
    for column in ("f_ratio", "df_den", "p_value"):
        assert two.loc[one.index, column].to_numpy() == approx(one[column].to_numpy(), rel=1e-8)
    of_means = bench.emmeans("prior", ddf=ddf, vcov="model").joint().to_frame()
    assert of_means.loc[0, ["df_den", "p_value"]].tolist() == approx(one.loc["prior", ["df_den", "p_value"]].tolist())


@pytest.mark.parametrize(
    "coding", ["C(algorithm, contr.sum)", "C(algorithm, contr.helmert)", "C(algorithm, contr.SAS)"]
)
def test_the_coding_of_a_factor_does_not_matter(bench, reference_input, coding):
    formula = EMM[13]["formula"].replace("algorithm * prior", f"{coding} * C(prior, contr.sum)")
    other = lt.fit_lmm(formula, reference_input("bench_prior_unbalanced"))
    for ddf in ("satterthwaite", "kenward-roger"):
        columns = ["df_num", "df_den", "f_ratio", "p_value", "f_scale"]
        want = anova(bench, ddf=ddf).to_frame()[columns].to_numpy()
        assert anova(other, ddf=ddf).to_frame()[columns].to_numpy() == approx(want, rel=1e-5)


def test_a_covariate_in_another_unit_changes_only_what_is_tested_at_zero(reference_input):
    table = reference_input("nested_slopes")
    formula = EMM[17]["formula"]
    one = anova(lt.fit_lmm(formula, table), ddf="kenward-roger").to_frame()
    far = lt.fit_lmm(formula, table.assign(x=1e5 * table["x"]))
    assert anova(far, ddf="kenward-roger").to_frame()["f_ratio"].to_numpy() == approx(one["f_ratio"], rel=1e-4)
    shifted = lt.fit_lmm(formula, table.assign(x=table["x"] + 3))
    again = anova(shifted, ddf="kenward-roger").to_frame()["f_ratio"].to_numpy()
    assert again[1:] == approx(one["f_ratio"].to_numpy()[1:], rel=1e-4)
    assert abs(again[0] / one["f_ratio"][0] - 1) > 0.01
    means = [joint_tests(f, ddf="kenward-roger").to_frame()["f_ratio"].to_numpy() for f in (shifted, far)]
    assert means[0] == approx(means[1], rel=1e-4)


@pytest.mark.parametrize("ddf", ["satterthwaite", "kenward-roger", "residual", "asymptotic"])
def test_one_degree_of_freedom_is_the_square_of_the_t_test(bench, ddf):
    row = bench.to_frame(ddf=ddf).iloc[-1]
    test = f_test(bench, np.eye(8)[-1:], ddf=ddf)
    assert test.f_ratio == approx(row["t_ratio"] ** 2, rel=1e-9)
    assert test.df_den == approx(row["df"], rel=1e-9)
    assert test.p_value == approx(row["p_value"], rel=1e-7)


def test_repeated_rows_count_once(bench):
    L = np.eye(8)[1:4]
    for ddf in ("satterthwaite", "kenward-roger"):
        one = f_test(bench, L, ddf=ddf)
        again = f_test(bench, np.vstack([L, L[:1] - L[1:2]]), ddf=ddf)
        assert (one.df_num, again.df_num) == (3, 3)
        assert again.f_ratio == approx(one.f_ratio, rel=1e-8)
    nothing = f_test(bench, np.zeros((2, 8)))
    assert nothing.df_num == 0
    assert np.isnan(nothing.p_value)


def test_combined_degrees_of_freedom():
    assert combined_df(np.array([np.inf, np.inf])) == np.inf
    assert combined_df(np.array([1.5, 30.0])) == 2.0
    assert combined_df(np.array([10.0, np.inf])) == approx(2 * 2.25 / 0.25)


def test_a_fit_by_maximum_likelihood_is_refitted_with_a_note(bench):
    ml = bench.refit(reml=False)
    note = "Kenward-Roger is defined for REML, so the fit by maximum likelihood was refitted by REML."
    for result, want in (
        (ml.anova(ddf="kenward-roger"), bench.anova(ddf="kenward-roger")),
        (joint_tests(ml, ddf="kenward-roger"), joint_tests(bench, ddf="kenward-roger")),
        (ml.emmeans("algorithm", ddf="kenward-roger"), bench.emmeans("algorithm", ddf="kenward-roger")),
    ):
        assert result.notes[0] == note
        numbers = result.to_frame().select_dtypes("number").to_numpy()
        assert numbers == approx(want.to_frame().select_dtypes("number").to_numpy(), rel=1e-6)
    assert ml.anova().notes == ()
    said = refusal(lambda: f_test(ml, np.eye(8)[1:], ddf="kenward-roger"), ArgumentError)
    assert said == "ddf='kenward-roger' needs a REML fit; use fit.refit(reml=True)."


def test_missing_combinations_are_named(fitted):
    fit = fitted("rank_deficient", "y ~ a * b + (1|g)")
    assert joint_tests(fit, by="a").notes == (
        "Combinations without data leave fewer degrees of freedom for b at a = a3.",
    )
    with pytest.raises(ArgumentError, match=r"^L must hold estimable functions only; fit.estimable\(L\) tells which"):
        f_test(fit, np.eye(len(fit.params))[np.isnan(fit.params.to_numpy())])


def test_a_term_without_columns_of_its_own_is_named(reference_input):
    table = reference_input("bench").assign(twice=lambda d: 2 * d["fidelity"])
    result = anova(lt.fit_lmm("y ~ algorithm + fidelity + twice + (1|benchmark)", table))
    assert list(result.to_frame()["term"]) == ["algorithm"]
    assert result.notes == ("The data identify no hypothesis of their own for fidelity, twice.",)


def test_models_without_intercept_and_without_terms(reference_input):
    table = reference_input("bench")
    means = anova(lt.fit_lmm("y ~ 0 + algorithm + (1|benchmark)", table)).to_frame()
    assert list(means["df_num"]) == [4]  # all means are zero
    only = lt.fit_lmm("y ~ 1 + (1|benchmark)", table)
    assert len(anova(only).to_frame()) == 0
    refuses(ArgumentError, r"^joint_tests needs a factor or a number in the fixed part", joint_tests, only)
    one = lt.fit_lmm("y ~ algorithm + (1|benchmark)", table)
    assert refusal(lambda: joint_tests(one, by="algorithm"), ArgumentError) == (
        "by= names algorithm, and the fixed part has nothing else that could be tested within its levels. Leave it "
        "out: joint_tests(fit) tests algorithm."
    )


def test_functions_of_a_number_are_tested_inside_its_range(reference_input):
    table = reference_input("bench")
    fit = lt.fit_lmm("y ~ algorithm + log(fidelity) + (1|benchmark)", table)
    slope = fit.to_frame().set_index("term").loc["log(fidelity)"]
    assert joint_tests(fit).to_frame().set_index("term").loc["fidelity", "f_ratio"] == approx(slope["t_ratio"] ** 2)
    curve = lt.fit_lmm("y ~ algorithm + poly(fidelity, 2) + (1|benchmark)", table)
    assert list(anova(curve).to_frame()["df_num"]) == [3, 2]


def test_unknown_names_and_options_are_refused(bench):
    refuses(UnknownColumnError, "by names 'priors', not in the fixed part", joint_tests, bench, by="priors")
    refuses(ArgumentError, r"^ddf must be 'satterthwaite' or 'kenward-roger' or", anova, bench, ddf="kr")


def test_the_result_is_readable(bench):
    result = bench.anova(ddf="kenward-roger")
    assert list(result.to_frame().columns) == ["term", "df_num", "df_den", "f_ratio", "p_value", "f_scale"]
    text = result.summary()
    assert text.startswith("F-tests of the fixed terms (type III hypotheses)")
    assert "Response y, n = 180 rows; Kenward-Roger degrees of freedom." in text


# ---------------------------------------------------------------------- means and pairs with Kenward-Roger

GRIDS = [(i, j) for i, m in enumerate(EMM) for j in range(len(m["grids"])) if i != WEIGHTED]


@pytest.mark.daily(20)
@pytest.mark.parametrize(("i", "j"), GRIDS)
def test_kenward_roger_means_and_pairs_agree_with_emmeans(fitted, i, j):
    model, grid = EMM[i], EMM[i]["grids"][j]
    fit = fitted(model["data"], model["formula"], True, model["weights"])
    at = dict(grid["at"])
    for name in grid["specs"]:  # emmeans takes a numeric column without values to mean its average
        if name in fit.design.numeric and name not in at:
            at[name] = [fit.design.numeric[name]]
    em = fit.emmeans(grid["specs"], by=grid["by"] or None, at=at, weights=grid["weights"], ddf="kenward-roger")
    compare(em.to_frame(), pd.DataFrame(grid["kenward_roger"]["means"]), [*em.by, *em.specs], "emmean")
    if "pairs" in grid["kenward_roger"]:
        got = em.pairs().to_frame()
        for side in ("left", "right"):
            got[side] = got[side].str.replace(", ", " ")
        want = pd.DataFrame(grid["kenward_roger"]["pairs"]["tukey"])
        swapped = ~pd.MultiIndex.from_frame(key(want, [*em.by, "left", "right"])).isin(
            pd.MultiIndex.from_frame(key(got, [*em.by, "left", "right"]))
        )  # combinations of several factors come in another order in R
        want.loc[swapped, ["left", "right"]] = want.loc[swapped, ["right", "left"]].to_numpy()
        want.loc[swapped, "estimate"] *= -1
        compare(got, want, [*em.by, "left", "right"], "estimate")


def key(frame, names):
    return frame[names].map(lambda v: v if isinstance(v, str) else f"{v:g}")


def compare(got, want, names, estimate):
    got, want = (f.set_index(pd.MultiIndex.from_frame(key(f, names))).sort_index() for f in (got, want))
    assert list(got.index) == list(want.index)
    se = want["se"].astype(float).to_numpy()
    assert got["se"].to_numpy() == approx(se, rel=1e-5, nan_ok=True)
    assert got["df"].to_numpy() == approx(want["df"].astype(float).to_numpy(), rel=1e-4, nan_ok=True)
    difference = (got[estimate] - want[estimate].astype(float)).to_numpy() / se
    assert np.nan_to_num(difference) == approx(0.0, abs=1e-5)
    if "p_value" in got:
        assert got["p_value"].to_numpy() == approx(want["p_value"].astype(float).to_numpy(), abs=3e-5, nan_ok=True)


# ------------------------------------------------------------------------------------------------------ types I and II


@pytest.mark.parametrize(("i", "kind", "ddf"), CASES)
def test_types_one_and_two_agree_with_lmertest(fitted, i, kind, ddf):
    model = MODELS[i]
    fit = fitted(model["data"], model["formula"], True, model["weights"])
    got = fit.anova(ddf=ddf.replace("_", "-"), type=kind).to_frame().set_index("term")
    assert set(got.index) == {row["term"] for row in model[f"type_{kind}"][ddf]}
    seen = [row for row in model[f"type_{kind}"][ddf] if (i, kind, row["term"]) != NOT_SEEN]
    agree(got, seen, rel=1e-6 if ddf == "kenward_roger" else 1e-4, least=1e-9)


def test_a_term_inside_a_nested_one_is_tested_without_it(fitted):
    """lmerTest does not see that prior:algorithm contains prior where algorithm has no effect of its own, and tests the
    coefficient, which is the difference at the first algorithm."""
    i, kind, term = NOT_SEEN
    fit = fitted(MODELS[i]["data"], MODELS[i]["formula"])
    one, two = (fit.anova(type=k).to_frame().set_index("term").loc[term] for k in (1, kind))
    assert two["f_ratio"] == approx(one["f_ratio"], rel=1e-10)  # what stands before it is what does not contain it
    theirs = next(row["f"] for row in MODELS[i]["type_2"]["satterthwaite"] if row["term"] == term)
    coefficient = fit.to_frame().set_index("term").loc["prior[T.good]", "t_ratio"]
    assert theirs == approx(coefficient**2, rel=1e-6)


@pytest.mark.parametrize("model", [m for m in MODELS if "car" in m], ids=lambda m: m["data"])
def test_type_two_agrees_with_car_where_the_table_is_balanced(fitted, model):
    got = anova(fitted(model["data"], model["formula"]), ddf="kenward-roger", type=2).to_frame().set_index("term")
    for row in model["car"]:
        assert got.loc[row["term"], "f_ratio"] == approx(row["f"], rel=1e-6)
        assert got.loc[row["term"], "df_den"] == approx(row["den_df"], rel=1e-6)


def test_balanced_tables_have_one_type(fitted):
    fit = fitted("bench_prior", "y ~ algorithm * prior + (1|benchmark) + (1|benchmark:algorithm)")
    one, two, three = (anova(fit, type=kind).to_frame()["f_ratio"].to_numpy() for kind in (1, 2, 3))
    assert one == approx(three, rel=1e-8)
    assert two == approx(three, rel=1e-8)


@pytest.mark.parametrize("kind", [1, 2])
def test_the_coding_of_a_factor_does_not_matter_to_types_one_and_two(reference_input, kind):
    table = reference_input("bench_prior_unbalanced")
    plain, other = (
        anova(lt.fit_lmm(f"y ~ {a} * {p} + fidelity + (1|benchmark)", table), type=kind, ddf="kenward-roger").to_frame()
        for a, p in [("algorithm", "prior"), ("C(algorithm, contr.helmert)", "C(prior, contr.sum)")]
    )
    columns = ["df_num", "df_den", "f_ratio", "p_value"]
    assert other[columns].to_numpy() == approx(plain[columns].to_numpy(), rel=1e-6)


def test_a_copy_adds_nothing_and_the_first_keeps_its_test(reference_input):
    table = reference_input("sleepstudy")
    twice = lt.fit_lmm("Reaction ~ Days + twice + (1|Subject)", table.assign(twice=2 * table["Days"]))
    found = anova(twice, type=1)
    alone = anova(lt.fit_lmm("Reaction ~ Days + (1|Subject)", table), type=1).to_frame()
    assert found.to_frame()["term"].tolist() == ["Days"]
    assert found.to_frame()["f_ratio"].to_numpy() == approx(alone["f_ratio"].to_numpy(), rel=1e-8)
    assert found.notes[1] == "The data identify no hypothesis of its own for twice."
    assert anova(twice, type=2).to_frame().empty


def test_the_table_says_which_type_it_is(fitted):
    fit = fitted("bench_prior", "y ~ algorithm * prior + (1|benchmark) + (1|benchmark:algorithm)")
    assert fit.anova(type=1).hypotheses == "type I"
    assert "Each term is tested beyond those above it" in fit.anova(type=1).summary()
    assert "(type II hypotheses)" in fit.anova(type=2).summary()
    assert np.isfinite(fit.anova(type=2, vcov=fit.cluster_robust("benchmark")).to_frame()["f_ratio"]).all()


@pytest.mark.parametrize("bad", ["II", 4, True, None, 2.5])
def test_other_types_are_refused(fitted, bad):
    fit = fitted("bench_prior", "y ~ algorithm * prior + (1|benchmark) + (1|benchmark:algorithm)")
    refuses(ArgumentError, "type must be 1, 2 or 3", fit.anova, type=bad)
