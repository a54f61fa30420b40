"""Pairs and contrasts: algebra, families (against emmeans and contr.helmert), sentences, degenerate cases."""

from __future__ import annotations

import dataclasses
import itertools

import numpy as np
import pandas as pd
import pytest
from pytest import approx
from refusals import refusal, refuses
from study import make_runs

from lmemtest.errors import ArgumentError, UnknownColumnError
from lmemtest.lmm.means.contrasts import NAMED_CONTRASTS, helmert, named_contrasts
from lmemtest.lmm.means.emmeans import emmeans
from lmemtest.lmm.model import fit_lmm

COLUMNS = ["left", "right", "estimate", "se", "df", "t_ratio", "p_value", "ci_low", "ci_high"]
LETTERS = "abcdefghijkl"


# ------------------------------------------------------------------------------------- all pairs, and own coefficients


@pytest.fixture
def em(fitted):
    return emmeans(fitted("bench_prior_unbalanced", "y ~ algorithm * prior + (1|benchmark)"), "algorithm", by="prior")


@pytest.fixture
def runs():
    shift = {"PB": 0.02, "RS": 3.0}
    return make_runs(["HB", "PB", "RS"], "wxyz", 6, sds={}, shift=shift, noise=0.5, benchmark="task")


@pytest.mark.parametrize("direction", ["minimize", "maximize"])
def test_best_first_turns_and_orders_pairs_and_changes_no_number(em, direction):
    pw = dataclasses.replace(em.pairs(), direction=direction)
    frame = pw.best_first().to_frame()
    gain = frame["estimate"] if direction == "maximize" else -frame["estimate"]
    assert (gain >= 0).all()
    means = em.to_frame().set_index(["prior", "algorithm"])["emmean"]
    means = means if direction == "maximize" else -means
    better = [means[prior, left] for prior, left in zip(frame["prior"], frame["left"], strict=True)]
    for prior in frame["prior"].unique():  # pairs of better means first
        of_group = [mean for mean, one in zip(better, frame["prior"], strict=True) if one == prior]
        assert of_group == sorted(of_group, reverse=True)
    same = pw.to_frame().set_index(["prior", "left", "right"])
    for row in frame.to_dict("records"):
        key = (row["prior"], row["left"], row["right"])
        sign = 1.0 if key in same.index else -1.0
        want = same.loc[key if sign > 0 else (row["prior"], row["right"], row["left"])]
        ends = (want["ci_low"], want["ci_high"]) if sign > 0 else (-want["ci_high"], -want["ci_low"])
        assert (row["estimate"], row["t_ratio"]) == (sign * want["estimate"], sign * want["t_ratio"])
        assert (row["ci_low"], row["ci_high"]) == ends
        assert [row[name] for name in ("se", "df", "p_value")] == [want[name] for name in ("se", "df", "p_value")]
    unordered = dataclasses.replace(pw, direction=None)
    assert unordered.best_first() is unordered


def test_pairs_are_left_minus_right_in_level_order_within_groups(em):
    pw = em.pairs()
    frame = pw.to_frame()
    assert list(frame.columns) == ["prior", *COLUMNS]
    means = em.to_frame().set_index(["prior", "algorithm"])["emmean"]
    for row in frame.to_dict("records"):
        want = means[row["prior"], row["left"]] - means[row["prior"], row["right"]]
        assert row["estimate"] == pytest.approx(want, rel=1e-12)
    order = {level: i for i, level in enumerate(pw.levels)}
    assert (frame["left"].map(order) < frame["right"].map(order)).all()
    assert pw.family_size == len(pw.levels)


def test_select_keeps_the_p_values_of_a_group(em):
    pw = em.pairs()
    value = em.frame["prior"].iloc[0]
    one = pw.select(prior=value)
    frame = pw.to_frame()
    want = frame[frame["prior"] == value].drop(columns="prior").reset_index(drop=True)
    pd.testing.assert_frame_equal(one.to_frame(), want)
    assert one.by == ()
    assert len(one.estimates.estimate) == len(one.levels)
    assert f"prior = {value}" in one.summary()
    refuses(UnknownColumnError, r"select names 'pior', not a by factor. By factors: prior.", pw.select, pior="x")
    refuses(ArgumentError, r"No group has prior='x'. Groups: prior=", pw.select, prior="x")


def test_level_widens_the_intervals_but_not_the_p_values(em):
    wide, narrow = em.pairs(alpha=0.01).to_frame(), em.pairs(alpha=0.1).to_frame()
    assert ((wide["ci_high"] - wide["ci_low"]) > (narrow["ci_high"] - narrow["ci_low"])).all()
    pd.testing.assert_series_equal(wide["p_value"], narrow["p_value"])


def test_sentences_say_who_is_better_when_the_direction_is_known(runs):
    fit = fit_lmm("loss ~ algorithm + (1|task:seed)", runs)
    hb_pb, hb_rs, _ = emmeans(fit, "algorithm").pairs().sentences()
    assert hb_pb.startswith("HB and PB are not significantly different (difference ")
    assert hb_rs.startswith("HB is better than RS by 3.")
    assert "95 % CI" in hb_rs
    assert hb_rs.endswith("p < 0.001).")
    low, high = (float(v) for v in hb_rs.split("CI ")[1].split(",")[0].split(" to "))
    assert 0 < low < high
    unknown = emmeans(fit_lmm("loss ~ algorithm + (1|task:seed)", runs.to_frame()), "algorithm").pairs().sentences()
    assert unknown[1].startswith("RS is higher than HB by 3.")


def test_contrast_reproduces_pairs_and_weighted_means(em):
    k = len(em.pairs().levels)
    difference = np.zeros(k)
    difference[:2] = 1, -1
    result = em.contrast({"first two": difference, "all": np.full(k, 1 / k)})
    frame = result.to_frame()
    assert list(frame.columns) == ["prior", "contrast", *COLUMNS[2:]]
    plain = em.pairs(adjust="none").to_frame().groupby("prior", sort=False).first()
    got = frame[frame["contrast"] == "first two"].set_index("prior")
    np.testing.assert_allclose(got["p_value"], plain["p_value"], rtol=1e-9)
    assert any("all do not sum to zero" in note for note in result.notes)


def test_contrast_takes_a_frame_with_columns_in_any_order(em):
    levels = em.pairs().levels
    values = {level: [1.0 if i == 0 else -1.0 if i == 1 else 0.0] for i, level in enumerate(levels)}
    frame = pd.DataFrame(values, index=["d"])[list(reversed(levels))]
    by_dict = em.contrast({"d": [values[level][0] for level in levels]})
    pd.testing.assert_frame_equal(em.contrast(frame).to_frame(), by_dict.to_frame())
    with pytest.raises(ArgumentError, match=r"coefficients must have one column per mean \("):
        em.contrast(frame.rename(columns={levels[0]: "other"}))


def test_tukey_does_not_fit_free_contrasts_and_is_replaced_with_a_note(em):
    k = len(em.pairs().levels)
    result = em.contrast({"x": np.r_[1, -1, np.zeros(k - 2)]}, adjust="tukey")
    assert result.adjust == "sidak"
    assert any("Šidák adjustment was used instead" in note for note in result.notes)


@pytest.mark.parametrize(
    ("coefficients", "message"),
    [
        ({"x": [1.0]}, r"coefficients\['x'\] must have one number per mean \("),
        ({}, "coefficients must hold at least one contrast"),
        ({"x": [1 + 2j, -1, 0, 0]}, "coefficients must hold at least one contrast, and finite numbers only"),
        ({"x": np.array([1 + 2j, -1, 0, 0])}, "coefficients must hold at least one contrast, and finite numbers only"),
        ({"x": ["1", -1, 0, 0]}, "coefficients must hold at least one contrast, and finite numbers only"),
        ({"x": [1.0, np.nan, 0, 0]}, "coefficients must hold at least one contrast, and finite numbers only"),
        ({"x": [10**400, -1, 0, 0]}, "coefficients must hold at least one contrast, and finite numbers only"),
    ],
)
def test_bad_coefficients_are_refused(em, coefficients, message):
    refuses(ArgumentError, message, em.contrast, coefficients)


def test_pairs_that_are_not_estimable_are_nan_with_a_note(fitted):
    pw = emmeans(fitted("rank_deficient", "y ~ a * b + (1|g)"), "a", by="b").pairs()
    frame = pw.to_frame()
    missing = frame["p_value"].isna()
    assert missing.any()
    assert frame.loc[missing, ["estimate", "se", "ci_low", "t_ratio"]].isna().all().all()
    assert any("differences are not estimable" in note for note in pw.notes)
    assert any(s.endswith("cannot be compared with these data.") for s in pw.sentences())


def test_differences_without_a_standard_error_have_no_test(em):
    exact = dataclasses.replace(em, V=np.zeros_like(em.V))
    pw = exact.pairs()
    assert pw.to_frame()["p_value"].isna().all()
    assert not pw.to_frame()["estimate"].isna().any()
    assert any("have no standard error" in note for note in pw.notes)


def test_one_mean_cannot_be_compared(fitted):
    fit = fitted("bench_prior_unbalanced", "y ~ algorithm * prior + (1|benchmark)")
    level = fit.design.factors["algorithm"][0]
    with pytest.raises(ArgumentError, match=rf"needs at least two means in each group, got one \({level}\)"):
        emmeans(fit, "algorithm", at={"algorithm": level}).pairs()


def test_estimates_scale_with_the_response(fitted, reference_input):
    data = reference_input("bench_unbalanced")
    formula = "y ~ algorithm + (1|benchmark)"
    one = emmeans(fitted("bench_unbalanced", formula), "algorithm").pairs().to_frame()
    big = emmeans(fit_lmm(formula, data.assign(y=data["y"] * 1e6)), "algorithm").pairs().to_frame()
    np.testing.assert_allclose(big["estimate"], one["estimate"] * 1e6, rtol=1e-6)
    np.testing.assert_allclose(big["p_value"], one["p_value"], rtol=1e-4)


def test_dunnett_is_referred_to_the_function_that_knows_a_control(em):
    message = (
        "adjust='dunnett' is for comparisons with one control, and this function knows none. Use means.against("
        "control). Here adjust may be 'tukey' or 'stepdown' or 'singlestep' or 'mvt' or 'shaffer' or 'holm' or "
        "'sidak' or 'bonferroni' or 'fdr' or 'none'."
    )
    for call in (lambda: em.pairs(adjust="dunnett"), lambda: em.contrast({"a": [1, -1]}, adjust="dunnett")):
        assert refusal(call, ArgumentError) == message


@pytest.mark.parametrize(
    ("adjust", "family", "note"),
    [
        ("mvt", "a family of 1 test, those that exist, ", "The multivariate t adjustment is for the differences that"),
        ("tukey", "a family of 3 means, ", "The Tukey adjustment still counts these, which is conservative; leave"),
        ("holm", "a family of 3 means, ", "The Holm adjustment still counts these, which is conservative; leave"),
        ("none", "a family of 3 means, ", None),
    ],
)
def test_the_footer_counts_the_family_that_was_adjusted_for(adjust, family, note):
    rng = np.random.default_rng(0)
    table = pd.DataFrame(list(itertools.product("abcdef", "ABC", "uv", range(2))), columns=["task", "tool", "x", "rep"])
    table = table[(table["tool"] != "C") | (table["x"] == "u")].assign(y=lambda t: rng.normal(size=len(t)))
    result = emmeans(fit_lmm("y ~ tool * x + (1 | task)", table), "tool").pairs(adjust=adjust, rng=1)
    frame = result.to_frame()
    assert frame["p_value"].notna().tolist() == [True, False, False]
    assert family in result.summary()
    assert not note or any(text.startswith(note) for text in result.notes)
    alone = emmeans(fit_lmm("y ~ tool * x + (1 | task)", table), "tool").pairs(adjust="none")
    p = alone.to_frame()["p_value"][0]
    if adjust == "mvt":  # one test needs no adjustment
        assert frame["p_value"][0] == approx(p, rel=1e-9)
    elif adjust == "holm":  # on the safe side, as the note says
        assert frame["p_value"][0] == approx(min(1.0, 3 * p))


# ------------------------------------------------------------------------------------------------ families with a name


def test_coefficients_are_those_of_emmeans(reference):
    for want in reference("contrasts")["coefficients"]:
        (rows, adjust), labels = NAMED_CONTRASTS[want["family"]], LETTERS[: want["k"]]
        got = rows(labels)
        assert (list(got), adjust) == (want["names"], want["adjust"])
        np.testing.assert_allclose(np.array(list(got.values())), want["rows"], rtol=0, atol=1e-14)


def test_helmert_is_that_of_r_as_differences_of_means(reference):
    for want in reference("contrasts")["helmert"]:
        got = np.array(list(helmert(LETTERS[: want["k"]]).values()))
        np.testing.assert_allclose(got, want["rows"], rtol=0, atol=1e-15)


@pytest.mark.parametrize("i", [0, 1])
def test_estimates_and_tests_match_emmeans(reference, fitted, i):
    grid = reference("contrasts")["grids"][i]
    em = emmeans(fitted(grid["data"], grid["formula"]), grid["specs"], by=grid["by"])
    for family, by_adjust in grid["families"].items():
        for adjust, rows in by_adjust.items():
            got, want = em.contrast(family, adjust=adjust).to_frame(), pd.DataFrame(rows)
            # numbers as levels: emmeans writes temperature175
            want["contrast"] = want["contrast"].str.replace(grid["specs"], "", regex=False)
            names = ["contrast", *([grid["by"]] if grid["by"] else [])]
            both = got.merge(want, on=names, suffixes=("", "_r"))
            assert len(both) == len(got) == len(want)
            for name, rel in [("estimate", 1e-5), ("se", 1e-6), ("df", 1e-3), ("p_value", 1e-4)]:
                slack = 1e-5 * both["se"].min() if name == "estimate" else 1e-9
                np.testing.assert_allclose(both[name], both[f"{name}_r"], rtol=rel, atol=slack, err_msg=name)


def test_a_family_brings_its_adjustment_and_own_coefficients_none(means_of):
    em = means_of([1.0, 2.0, 4.0], np.eye(3))
    assert [em.contrast(name, rng=1).adjust for name in ("poly", "helmert", "consec", "eff", "del.eff")] == [
        "none",
        "none",
        "mvt",
        "fdr",
        "fdr",
    ]
    assert em.contrast({"a": [1, -1, 0]}).adjust == "none"
    assert em.contrast("consec", adjust="holm").adjust == "holm"


def test_polynomials_of_unequal_steps_say_that_they_take_the_order():
    runs = pd.DataFrame({"budget": [1, 3, 9] * 4, "task": list("wwwxxxyyyzzz"), "score": np.arange(12.0) ** 1.5})
    note = "The levels of budget are not equally spaced"
    for budgets, said in [([1, 3, 9], True), ([1, 2, 3], False)]:
        em = emmeans(fit_lmm("score ~ C(budget) + (1|task)", runs.assign(budget=budgets * 4)), "budget")
        assert any(text.startswith(note) for text in em.contrast("poly").notes) == said
        assert not any(text.startswith(note) for text in em.contrast("helmert").notes)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("polly",
         "coefficients must name a family of contrasts (poly, helmert, consec, eff, del.eff, pairwise, trt.vs.ctrl, "
         "trt.vs.ctrlk) or give the numbers of each, got 'polly'. Did you mean 'poly'?"),
        ("revpairwise",
         "coefficients='revpairwise' is not known: means.pairs() has the same tests, with the other sign."),
    ],
)  # fmt: skip
def test_names_that_are_no_family_are_refused(means_of, name, message):
    with pytest.raises(ArgumentError) as error:
        named_contrasts(name)
    assert str(error.value) == message
    with pytest.raises(ArgumentError):
        means_of([1.0, 2.0], np.eye(2)).contrast(name)


@pytest.mark.parametrize(
    ("name", "same"),
    [
        ("pairwise", lambda em, **how: em.pairs(**how)),
        ("trt.vs.ctrl", lambda em, **how: em.against(em.labels()[0], **how)),
        ("trt.vs.ctrlk", lambda em, **how: em.against(em.labels()[-1], **how)),
    ],
)
def test_pairs_and_a_control_are_asked_by_the_names_of_emmeans(fitted, name, same):
    em = emmeans(fitted("bench_prior_unbalanced", "y ~ algorithm * prior + (1|benchmark)"), "algorithm", by="prior")
    for how in ({}, {"adjust": "holm", "alpha": 0.1}):
        got, want = em.contrast(name, **how), same(em, **how)
        assert (got.kind, got.adjust, got.control) == (want.kind, want.adjust, want.control)
        pd.testing.assert_frame_equal(got.to_frame(), want.to_frame())


def test_one_mean_has_no_contrasts(means_of):
    with pytest.raises(ArgumentError, match="coefficients='eff' needs at least two means in each group, got one"):
        means_of([1.0], np.eye(1)).contrast("eff")
