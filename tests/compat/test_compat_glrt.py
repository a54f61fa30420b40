"""Likelihood-ratio tests: the peer counts fixed effects only, and compares what is not nested."""

from __future__ import annotations

import re

import pytest
from pytest import approx
from refusals import refuses
from scipy import stats

import lmemtest as lt
from lmemtest.compat.significance_analysis import glrt, model
from lmemtest.errors import ArgumentError, NestingError


@pytest.fixture
def pair(peer, table):
    """Models and the stored result of a test."""

    def make(first, second):
        stored = next(entry for entry in peer["glrt"] if entry["models"] == [first, second])
        found = [peer["models"][name] for name in (first, second)]
        return [model(m["formula"], table(m["table"]), **m["options"]) for m in found], stored

    return make


@pytest.mark.parametrize("names", [("dummy", "mean"), ("mean", "dummy"), ("benchmark_effect", "readme")])
def test_tests_of_fixed_effects_are_the_same_in_either_order(pair, names):
    models, stored = pair(*names)
    result = glrt(*models)
    assert list(result) == ["p", "chi_square", "df"]
    assert result["chi_square"] == approx(stored["result"]["chi_square"], abs=1e-7)
    assert result["df"] == stored["result"]["df"]
    assert result["p"] == approx(stored["result"]["p"], rel=1e-4, abs=1e-14)


def test_a_random_effect_is_a_parameter(pair):
    """Peer: no degree of freedom, so p is NaN and never below 0.05."""
    models, stored = pair("dummy", "benchmark_effect")
    assert (stored["result"]["df"], stored["result"]["p"]) == (0, None)
    result = glrt(*models)
    assert result["df"] == 1
    assert result["chi_square"] == approx(stored["result"]["chi_square"], abs=1e-6)
    assert result["p"] < 1e-50


def test_both_kinds_of_models_compare(table):
    """Least squares with patsy's reference level, and a mixed model with the first algorithm as reference."""
    frame = table("real")
    least_squares, mixed = (model(f"value ~ algorithm{part}", frame, dummy=False) for part in ("", " + (1|benchmark)"))
    assert glrt(least_squares, mixed) == glrt(mixed, least_squares)
    assert glrt(least_squares, mixed)["df"] == 1


def test_a_variance_cannot_be_negative(table):
    """Its p-value is at most about half of that with a chi-squared reference."""
    frame = table("seeded")
    result = glrt(
        model("value ~ algorithm + benchmark", frame), model("value ~ algorithm + benchmark + (1|seed)", frame)
    )
    assert result["df"] == 1
    assert result["p"] < 0.6 * stats.chi2.sf(result["chi_square"], 1)


def test_models_that_are_not_nested_are_refused(pair):
    """Peer: a statistic all the same."""
    models, stored = pair("readme", "interaction")
    assert stored["result"]["chi_square"] > 100
    text = (
        "The null model (value ~ algorithm + (1|benchmark) + prior) is not nested in the alternative (value ~ "
        "algorithm + (1|benchmark) + (1|benchmark:algorithm) + used_fidelity): the fixed part of the alternative does "
        "not contain that of the null. A likelihood-ratio test needs nested models; compare others by aic or bic."
    )
    with pytest.raises(NestingError, match=f"^{re.escape(text)}$") as caught:
        glrt(*models)
    assert isinstance(caught.value, ValueError)


def test_the_larger_model_never_fits_worse(table):
    """Peer: |difference|, so that a search that stopped too early counts as evidence."""
    frame = table("null")
    smaller = model("value ~ algorithm + (1|benchmark)", frame)
    larger = model("value ~ algorithm + (1|benchmark) + (0+algorithm|seed)", frame)
    result = glrt(smaller, larger)
    native = lt.glrt(smaller.likelihood_fit, larger.likelihood_fit, rng=0)
    assert result == {"p": native.p_value, "chi_square": native.statistic, "df": native.df}
    assert larger.logLike >= smaller.logLike - 1e-9
    assert result["chi_square"] == approx(2 * (larger.logLike - smaller.logLike), abs=1e-6)


def test_verbose_prints_both_models(pair, capsys):
    models, stored = pair("dummy", "mean")
    glrt(*models, verbose=True)
    first, second, _ = capsys.readouterr().out.split("\n")
    assert first == stored["printed"].split("\n")[0].replace("+(1|dummy)", "")
    assert second.startswith("Chi-Square: 69.626821668")
    glrt(*reversed(models), verbose=True)
    assert " << " in capsys.readouterr().out


def test_verbose_says_equal_where_nothing_is_found(table, capsys):
    frame = table("null")
    glrt(model("value ~ 1 + (1|benchmark)", frame), model("value ~ prior + (1|benchmark)", frame), verbose=True)
    assert " == " in capsys.readouterr().out


def test_other_things_are_refused(table):
    fit = model("value ~ algorithm", table("real"))
    refuses(ArgumentError, re.escape("mod2 must be the result of model(), got float."), glrt, fit, 3.0)
    refuses(NestingError, "They are the same model, so there is nothing to test", glrt, fit, fit)
