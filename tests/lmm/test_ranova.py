"""Tests of every random term against lmerTest's ranova (tests/reference/anova.R) and against glrt."""

import pytest
from pytest import approx
from references import values

import lmemtest as lt
from lmemtest.errors import ArgumentError
from lmemtest.lmm.formula import parse_formula
from lmemtest.lmm.hypotheses.ranova import _changes, ranova

MODELS = values("anova")["random"]


@pytest.mark.parametrize("method", ["ML", "REML"])
@pytest.mark.parametrize("model", MODELS, ids=lambda m: f"{m['data']}: {m['formula']}")
def test_statistics_match_lmertest(fitted, model, method):
    got = ranova(fitted(model["data"], model["formula"], method == "REML"), reference="chi2").to_frame()
    whole = got[got["simplified_to"].isna()]
    less = got[got["simplified_to"].notna()]
    wanted = [(whole, row) for row in model[method]["dropped"]]
    # lmerTest's default shows the simpler term only, and (0 + x | g) as "x in"
    wanted += [
        (less, row) for row in model[method]["reduced"] if " in (" in row["term"] and " in (0" not in row["term"]
    ]
    assert len(wanted) == len(got)
    for table, row in wanted:
        term = row["term"].split(" in ")[-1].replace("(x |", "(1 + x |").replace("(Days |", "(1 + Days |")
        ours = table[table["term"] == term].iloc[0]
        assert ours["df"] == row["df"]
        assert ours["llf"] == approx(row["llf"], abs=1e-6)
        assert ours["statistic"] == approx(row["statistic"], abs=2e-6)
        assert ours["p_value"] == approx(row["p_value"], rel=1e-5, abs=1e-9)


def test_each_row_is_a_glrt_at_its_own_reference(reference_input):
    table = reference_input("nested_slopes")
    base = "y ~ treatment * x + (x|a) + (1|a:b)"
    found = ranova(lt.fit_lmm(base, table))
    by_hand = lt.glrt(lt.fit_lmm("y ~ treatment * x + (1|a) + (1|a:b)", table), lt.fit_lmm(base, table))
    row = found.to_frame().set_index("simplified_to").loc["(1 | a)"]
    assert (row["reference"], row["df"]) == ("mixture", 2)
    assert row["p_value"] == approx(by_hand.p_value, rel=1e-6)
    assert found.to_frame()["reference"].tolist() == ["chi2", "mixture", "mixture"]
    assert any(note.startswith("(1 + x | a): no simple mixture applies") for note in found.notes)
    assert "leaves one term out or simplifies it" in found.summary()


def test_a_single_variance_has_its_exact_reference(fitted):
    found = ranova(fitted("Dyestuff", "Yield ~ 1 + (1|Batch)"))
    assert found.to_frame()["reference"].tolist() == ["exact"]
    assert found.tests[0].null == "Yield ~ 1"


@pytest.mark.parametrize(
    ("formula", "changes"),
    [
        ("log(y) ~ a * x + (1|g)", ["log(y) ~ a * x"]),
        ("y ~ 0 + a + (x|g)", ["y ~ 0 + a", "y ~ 0 + a + (1 | g)"]),
        ("y ~ 1 + (0 + x | g)", ["y ~ 1"]),
        ("y ~ x + (0 + x + z | g)", ["y ~ x", "y ~ x + (0 + z | g)", "y ~ x + (0 + x | g)"]),
        ("y ~ x + (x * z | `a b`)", ["y ~ x", "y ~ x + (1 + x + z | `a b`)"]),
        ("y ~ x + diag(a | g) + (1 | g)", ["y ~ x + (1 | g)", "y ~ x + diag(0 + a | g)"]),
        ("y ~ x + (a || g)", ["y ~ x + (0 + a | g)", "y ~ x + (1 | g)"]),
    ],
)
def test_which_changes_are_made(formula, changes):
    assert [str(parsed) for _, _, parsed in _changes(parse_formula(formula))] == [
        str(parse_formula(text)) for text in changes
    ]


def test_weights_and_residual_variances_stay(reference_input):
    table = reference_input("sleepstudy_weights")
    fit = lt.fit_lmm("Reaction ~ Days + (1|Subject) + (0+Days|Subject)", table, weights="w")
    smaller = lt.fit_lmm("Reaction ~ Days + (1|Subject)", table, weights="w")
    assert ranova(fit).to_frame()["llf"][1] == approx(smaller.llf, abs=1e-6)
    several = lt.fit_lmm("Reaction ~ Days + (1|Subject)", table, dispersion="Subject")
    assert ranova(several).tests[0].null == "Reaction ~ Days, residual variance by Subject"


def test_a_model_without_random_terms_is_refused(fitted):
    with pytest.raises(ArgumentError, match=r"ranova tests random terms, and 'Yield ~ 1' has none"):
        ranova(fitted("Dyestuff", "Yield ~ 1"))
