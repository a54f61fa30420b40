"""Fits against lme4, from tests/reference/fits.R."""

from __future__ import annotations

import numpy as np
import pytest
from pytest import approx

import lmemtest as lt


@pytest.fixture(scope="session")
def fits(reference, reference_input):
    """Our fits of every formula of fits.json, by ML and REML, beside lme4's."""
    cache = {}

    def get(i: int, method: str):
        if (i, method) not in cache:
            want = reference("fits")["fits"][i]
            got = lt.fit_lmm(
                want["formula"], reference_input(want["data"]), reml=method == "REML", weights=want["weights"]
            )
            cache[i, method] = got, want[method]
        return cache[i, method]

    return get


CASES = [pytest.param(i, m, id=f"{i}-{m}") for i in range(41) for m in ("ML", "REML")]


@pytest.mark.parametrize(("i", "method"), CASES)
def test_log_likelihood_is_lme4s_best(fits, i, method):
    fit, want = fits(i, method)
    assert fit.llf == approx(want["llf"], abs=1e-6)
    assert fit.converged
    assert (fit.nobs, fit.n_params) == (want["nobs"], want["n_params"])
    assert (fit.aic, fit.bic) == approx((want["aic"], want["bic"]), rel=1e-9)


@pytest.mark.parametrize(("i", "method"), CASES)
def test_fixed_effects_and_their_errors_agree_with_lme4(fits, i, method):
    fit, want = fits(i, method)
    for row in want["fixef"]:
        if row["estimate"] is None:
            assert np.isnan(fit.params[row["name"]])
        else:
            assert fit.params[row["name"]] == approx(row["estimate"], rel=1e-5, abs=1e-5 * row["se"])
            assert fit.bse[row["name"]] == approx(row["se"], rel=1e-5)


@pytest.mark.parametrize(("i", "method"), CASES)
def test_variance_components_agree_with_lme4(fits, i, method):
    fit, want = fits(i, method)
    assert np.sqrt(fit.scale) == approx(want["sigma"], rel=1e-5)
    if want["flat_directions"]:
        pytest.skip("the terms of this model are not identified apart from each other; their sum is what was tested")
    for row in want["varcorr"]:
        S, a, b = _covariance(fit, row)
        size = np.sqrt(S[a, a] * S[b, b])
        assert S[a, b] == approx(row["vcov"], rel=1e-5, abs=1e-5 * size + 1e-9 * fit.scale)


@pytest.mark.parametrize(("i", "method"), CASES)
def test_conditional_modes_agree_with_lme4(fits, i, method):
    fit, want = fits(i, method)
    if want["flat_directions"]:
        pytest.skip("effects that are not identified apart from each other have no modes of their own")
    for group in want.get("ranef") or []:
        ours = fit.random_effects(_same_group(fit, group["group"]))
        theirs = np.array(group["values"], dtype=float)
        rows = [_same_level(ours.index, level) for level in group["levels"]]
        got = ours.loc[rows, group["names"]].to_numpy()
        assert got == approx(theirs, rel=1e-4, abs=1e-5 * np.sqrt(fit.scale))


def _covariance(fit, row):
    for term, S in zip(fit.design.random, fit.covariances, strict=True):
        if set(term.group.split(":")) == set(row["group"].split(":")) and {row["name1"], row["name2"]} <= set(
            term.names
        ):
            return S, term.names.index(row["name1"]), term.names.index(row["name2"])
    raise AssertionError(row)


def _same_group(fit, group):
    return next(t.group for t in fit.design.random if set(t.group.split(":")) == set(group.split(":")))


def _same_level(index, level):
    return next(x for x in (level, ":".join(reversed(level.split(":")))) if x in index)
