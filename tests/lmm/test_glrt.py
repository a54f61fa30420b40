"""Likelihood-ratio tests: lme4's numbers, the references, nesting and its errors."""

import numpy as np
import pandas as pd
import pytest
from references import values
from refusals import refuses
from scipy import stats

from lmemtest.errors import ArgumentError, EstimationError, NestingError
from lmemtest.lmm.hypotheses.glrt import check_nesting, glrt
from lmemtest.lmm.model import fit_lmm

TESTS = values("lrt")["tests"]
CASES = [
    pytest.param(test, method, id=f"{test['data']}-{i}-{method}")
    for i, test in enumerate(TESTS)
    for method in ("ML", "REML")
    if method in test
]


@pytest.mark.parametrize(("test", "method"), CASES)
def test_statistic_df_and_p_match_lme4(fitted, test, method):
    reml = method == "REML"
    null, alternative = (fitted(test["data"], test[name], reml, test["weights"]) for name in ("null", "alternative"))
    got, want = glrt(null, alternative, reference="chi2"), test[method]
    assert (got.df, got.method, got.reference) == (want["df"], method, "chi2")
    assert got.llf_null == pytest.approx(want["null_llf"], rel=1e-8)
    assert got.statistic == pytest.approx(want["statistic"], rel=1e-5, abs=1e-5)
    assert got.p_value == pytest.approx(want["p_value"], rel=1e-4)
    if want["p_value_mixture"] is not None:
        mixed = glrt(null, alternative, reference="mixture")
        assert mixed.p_value == pytest.approx(want["p_value_mixture"], rel=1e-4)


def sleep(fitted, fixed, random, reml=False):
    return fitted("sleepstudy", f"Reaction ~ {fixed} + {random}" if random else f"Reaction ~ {fixed}", reml)


@pytest.mark.parametrize(
    ("null", "alternative", "reference", "components", "df"),
    [
        (("1", "(1|Subject)"), ("Days", "(1|Subject)"), "chi2", ((1.0, 1),), 1),
        (("Days", "(1|Subject)"), ("Days", "(Days|Subject)"), "mixture", ((0.5, 1), (0.5, 2)), 2),
        (("Days", "(1|Subject)"), ("Days", "(Days||Subject)"), "mixture", ((0.5, 0), (0.5, 1)), 1),
        (("Days", "(Days||Subject)"), ("Days", "(Days|Subject)"), "chi2", ((1.0, 1),), 1),
        (("1", "(1|Subject)"), ("Days", "(Days|Subject)"), "mixture", ((0.5, 2), (0.5, 3)), 3),
        (("Days", ""), ("Days", "(Days|Subject)"), "chi2", ((1.0, 3),), 3),
        (("Days", ""), ("Days", "(1|Subject)"), "exact", (), 1),
        (("1", ""), ("Days", "(1|Subject)"), "mixture", ((0.5, 1), (0.5, 2)), 2),
    ],
)
def test_auto_picks_the_reference_and_names_it(fitted, null, alternative, reference, components, df):
    got = glrt(sleep(fitted, *null), sleep(fitted, *alternative))
    assert (got.reference, got.components, got.df) == (reference, components, df)


@pytest.mark.parametrize(("null", "alternative", "words"), [
    (("Days", ""), ("Days", "(Days|Subject)"), ("several variances", "conservative", "bootstrap")),
    (("Days", "(Days||Subject)"), ("Days", "(Days|Subject)"), ("not on a boundary",)),
    (("1", "(1|Subject)"), ("Days", "(1|Subject)"), ("18 levels of Subject", "Satterthwaite")),
])  # fmt: skip
def test_notes_say_where_chi2_is_conservative_exact_or_of_few_groups(fitted, null, alternative, words):
    notes = " ".join(glrt(sleep(fitted, *null), sleep(fitted, *alternative)).notes)
    assert [word for word in words if word not in notes] == []


def test_reml_fits_with_different_fixed_parts_are_refitted_by_ml_and_the_result_says_so(fitted):
    reml = [sleep(fitted, fixed, "(1|Subject)", reml=True) for fixed in ("1", "Days")]
    ml = [sleep(fitted, fixed, "(1|Subject)") for fixed in ("1", "Days")]
    got = glrt(*reml)
    assert got.method == "ML"
    assert got.statistic == pytest.approx(glrt(*ml).statistic, rel=1e-6)
    assert got.notes[0] == ("Both models were fitted by REML and refitted by ML, because the fixed parts differ.")
    assert [fit.reml for fit in reml] == [True, True]


def test_reml_is_kept_when_the_fixed_columns_are_equal_and_given_up_when_only_one_fit_has_it(fitted):
    null, alternative = (sleep(fitted, "Days", r, reml=True) for r in ("(1|Subject)", "(Days|Subject)"))
    assert glrt(null, alternative).method == "REML"
    mixed = glrt(null, sleep(fitted, "Days", "(Days|Subject)"))
    assert mixed.method == "ML"
    assert "because the other was fitted by ML" in mixed.notes[0]


def test_reml_of_differently_coded_fixed_parts_is_not_compared(fitted):
    null = fitted("cake", "angle ~ recipe + (1|replicate)")
    alternative = fitted("cake", "angle ~ C(recipe, contr.sum) + (1|replicate) + (1|recipe:replicate)")
    got = glrt(null, alternative)
    assert (got.method, got.df) == ("ML", 1)
    assert "coded differently" in got.notes[0]


def test_an_alternative_that_stopped_too_low_is_refitted_from_the_null(fitted):
    null, good = sleep(fitted, "Days", "(1|Subject)"), sleep(fitted, "Days", "(Days|Subject)")

    class Stopped:
        """The alternative with a likelihood as if its search had stopped early."""

        llf = null.llf - 1.0

        def __getattr__(self, name):
            return getattr(good, name)

        def refit(self, *, reml=None, theta_start=None):
            assert theta_start.shape == (3,)
            assert theta_start[0] == pytest.approx(null.theta[0])
            assert theta_start[1:] == pytest.approx([0, 0])
            return good.refit(reml=reml, theta_start=theta_start)

    assert glrt(null, Stopped()).statistic == pytest.approx(glrt(null, good).statistic, rel=1e-6)

    class Stuck(Stopped):
        def refit(self, **_):
            return self

    refuses(EstimationError, r"stopped at log-likelihood .* below the null's", glrt, null, Stuck())


def test_the_start_from_the_null_has_the_likelihood_of_the_null(fitted):
    formulas = (
        "y ~ algorithm + prior + (1|benchmark) + (0 + prior|benchmark:seed)",
        "y ~ algorithm + prior + (prior|benchmark) + (1|algorithm:benchmark) + (prior|benchmark:seed)",
    )
    null, alternative = (fitted("bench_prior_unbalanced", formula, False) for formula in formulas)
    theta = check_nesting(null, alternative).theta_of_null(null, alternative)
    factors = {term.label: term for term in alternative.design.random}
    assert len(theta) == len(alternative.theta)
    assert len(factors) == 3
    value = alternative.problem.evaluate(alternative.problem.to_white(theta))
    got = -0.5 * (value.value + alternative.problem.deviance_shift)
    assert got == pytest.approx(null.llf, abs=1e-8 * abs(null.llf))


def test_statistic_of_a_variance_estimated_as_zero_is_zero_with_p_one(fitted):
    null, alternative = (fitted("Dyestuff2", f"Yield ~ 1{r}") for r in ("", " + (1|Batch)"))
    got = glrt(null, alternative)
    assert got.statistic == pytest.approx(0.0, abs=1e-8)
    assert got.p_value == 1.0
    assert glrt(null, alternative, reference="mixture").p_value == 1.0


def test_exact_test_of_dyestuff_matches_the_f_test_it_is_equivalent_to(fitted, reference_input):
    data = reference_input("Dyestuff")
    groups = [g["Yield"] for _, g in data.groupby("Batch")]
    for reml in (True, False):
        null, alternative = (fitted("Dyestuff", f"Yield ~ 1{r}", reml) for r in ("", " + (1|Batch)"))
        got = glrt(null, alternative)
        assert (got.reference, got.p_value_error) == ("exact", 0.0)
        assert got.p_value == pytest.approx(stats.f_oneway(*groups).pvalue, rel=1e-5)


def test_exact_test_of_unbalanced_data_is_reproducible_and_near_the_mixture_with_many_levels():
    rng = np.random.default_rng(11)
    table = pd.DataFrame({"g": np.repeat(np.arange(200).astype(str), rng.integers(1, 6, 200))})
    table["y"] = rng.normal(size=len(table)) + table["g"].map(
        pd.Series(rng.normal(size=200) * 0.3, index=map(str, range(200)))
    )
    null, alternative = fit_lmm("y ~ 1", table), fit_lmm("y ~ 1 + (1|g)", table)
    got = glrt(null, alternative, rng=1)
    assert got.p_value == glrt(null, alternative, rng=1).p_value
    assert 0 < got.p_value_error < 0.01
    mixture = glrt(null, alternative, reference="mixture")
    assert got.p_value == pytest.approx(mixture.p_value, abs=0.01 + 4 * got.p_value_error)


# ---------------------------------------------------------------------- errors


def test_swapped_models_are_named_as_swapped(fitted):
    small, large = sleep(fitted, "1", "(1|Subject)"), sleep(fitted, "Days", "(1|Subject)")
    refuses(NestingError, r"wrong order: the null \(Reaction ~ Days .* Swap them", glrt, large, small)


@pytest.mark.parametrize(
    ("null", "alternative", "reason"),
    [
        ("y ~ algorithm + (1|benchmark)", "y ~ prior + (1|benchmark) + (1|seed)", "fixed part of the alternative"),
        ("y ~ algorithm + (1|seed)", "y ~ algorithm + prior + (1|benchmark)",
         r"no random term .* contains \(1 \| seed\)"),
        ("y ~ algorithm + (1|benchmark)", "y ~ algorithm + prior + (1|benchmark:seed)", r"contains \(1 \| benchmark\)"),
    ],
)  # fmt: skip
def test_models_that_are_not_nested_are_refused_with_the_reason(fitted, null, alternative, reason):
    fits = [fitted("bench_prior", formula, False) for formula in (null, alternative)]
    refuses(NestingError, rf"not nested in the alternative .*{reason}", glrt, *fits)


def test_uncorrelated_terms_do_not_contain_correlated_ones(fitted):
    null = sleep(fitted, "1", "(Days|Subject)")
    alternative = sleep(fitted, "Days", "(Days||Subject)")
    refuses(NestingError, "no random term of the alternative contains", glrt, null, alternative)


def test_models_that_differ_in_their_residual_variances_are_named_apart():
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"a": list("xy") * 20, "b": np.repeat(list("pqrs"), 10), "y": rng.normal(size=40)})
    formula = "y ~ a + (1 | b)"
    one, by_b, by_a = (fit_lmm(formula, table, dispersion=name) for name in (None, "b", "a"))
    test = glrt(one, by_b)
    assert (test.null, test.alternative) == (formula, f"{formula}, residual variance by b")
    with pytest.raises(NestingError) as raised:
        glrt(by_b, one)
    assert str(raised.value).startswith(
        f"The models are in the wrong order: the null ({formula}, residual variance by b) contains the alternative "
        f"({formula}). Swap them"
    )
    with pytest.raises(NestingError) as raised:
        glrt(by_a, by_b)
    assert str(raised.value).startswith(
        f"The null model ({formula}, residual variance by a) is not nested in the alternative ({formula}, residual "
        "variance by b): the alternative has no residual variances by 'a'."
    )


def test_the_same_model_is_refused_even_if_written_differently(fitted):
    a = fitted("bench_prior", "y ~ algorithm * prior + (1|benchmark)", False)
    b = fitted("bench_prior", "y ~ prior + algorithm + algorithm:prior + (1|benchmark)", False)
    refuses(NestingError, "They are the same model", glrt, a, b)


@pytest.mark.parametrize(("data", "null", "alternative", "df"), [
    ("bench_prior", "y ~ algorithm + (1|benchmark:seed)", "y ~ algorithm + (1|seed:benchmark) + (1|benchmark)", 1),
    ("cake", "angle ~ temp + (1|recipe:replicate)", "angle ~ temperature + (1|recipe:replicate)", 4),
], ids=["groups by what they split", "a number in its factor"])  # fmt: skip
def test_nesting_is_by_columns_not_by_names(fitted, data, null, alternative, df):
    assert glrt(fitted(data, null, False), fitted(data, alternative, False)).df == df


def test_different_data_or_responses_are_refused(reference_input):
    data = reference_input("bench_prior")
    null = fit_lmm("y ~ 1 + (1|benchmark)", data, reml=False)
    with pytest.raises(NestingError, match=r"different data: \d+ rows in the null, \d+ in the alternative"):
        glrt(null, fit_lmm("y ~ algorithm + (1|benchmark)", data.iloc[:-5], reml=False))
    with pytest.raises(NestingError, match="different data: the sum of squares of the response"):
        glrt(null, fit_lmm("y ~ algorithm + (1|benchmark)", data.assign(y=data["y"] + 1), reml=False))
    with pytest.raises(NestingError, match=r"different responses: y in the null, exp\(y\)"):
        glrt(null, fit_lmm("exp(y) ~ algorithm + (1|benchmark)", data, reml=False))
    weighted = data.assign(w=np.linspace(1, 2, len(data)))
    with pytest.raises(NestingError, match="different data: the sum of the weights"):
        glrt(null, fit_lmm("y ~ algorithm + (1|benchmark)", weighted, reml=False, weights="w"))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ({"reference": "mixture"}, "reference='mixture' does not apply: no variance is on its boundary"),
        ({"reference": "exact"}, "reference='exact' does not apply: it is for one scalar variance"),
        ({"reference": "boot"}, "reference must be 'auto' or 'chi2'"),
        ({"n_draws": 10}, "n_draws must be a whole number of at least 1000, got 10"),
    ],
)
def test_options_that_do_not_apply_are_refused(fitted, call, message):
    with pytest.raises(ArgumentError, match=message):
        glrt(sleep(fitted, "1", "(1|Subject)"), sleep(fitted, "Days", "(1|Subject)"), **call)


def test_result_to_frame_and_text(fitted):
    got = glrt(sleep(fitted, "Days", "(1|Subject)"), sleep(fitted, "Days", "(Days|Subject)"))
    frame = got.to_frame()
    want = "statistic df p_value reference method llf_null llf_alternative n_obs null alternative"
    assert list(frame.columns) == want.split()
    assert frame.loc[0, "statistic"] == got.statistic
    assert "Reference: 0.5 chi2(1) + 0.5 chi2(2); ML log-likelihoods." in got.summary()
