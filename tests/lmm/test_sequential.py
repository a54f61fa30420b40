"""Type I and II F-tests against lmerTest and car (tests/reference/anova.R), and by their definition."""

import numpy as np
import pytest
from pytest import approx
from references import values

import lmemtest as lt
from lmemtest.errors import ArgumentError
from lmemtest.lmm.means.joint import anova

MODELS = values("anova")["models"]
CASES = [
    pytest.param(i, kind, ddf, id=f"{model['data']}-{i}-type{kind}-{ddf}")
    for i, model in enumerate(MODELS)
    for kind in (1, 2)
    for ddf in model[f"type_{kind}"]
]


NOT_SEEN = (4, 2, "prior")  # see test_a_term_inside_a_nested_one...


@pytest.mark.parametrize(("i", "kind", "ddf"), CASES)
def test_types_one_and_two_agree_with_lmertest(fitted, i, kind, ddf):
    model = MODELS[i]
    fit = fitted(model["data"], model["formula"], True, model["weights"])
    got = fit.anova(ddf=ddf.replace("_", "-"), type=kind).to_frame().set_index("term")
    assert set(got.index) == {row["term"] for row in model[f"type_{kind}"][ddf]}
    for row in model[f"type_{kind}"][ddf]:
        if (i, kind, row["term"]) == NOT_SEEN:
            continue
        ours = got.loc[row["term"]]
        assert ours["df_num"] == row["num_df"]
        assert ours["f_ratio"] == approx(row["f"], rel=1e-6, abs=1e-9)
        # lmerTest differentiates numerically
        assert ours["df_den"] == approx(row["den_df"], rel=1e-6 if ddf == "kenward_roger" else 1e-4)
        assert ours["p_value"] == approx(row["p_value"], rel=1e-3, abs=1e-6)


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
    with pytest.raises(ArgumentError, match="type must be 1, 2 or 3"):
        fit.anova(type=bad)
