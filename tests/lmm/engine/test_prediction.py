"""Errors of predictions against the mixed-model equations, solved densely on rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from mixed_model_equations import henderson

import lmemtest as lt
from lmemtest.lmm.engine import prediction
from lmemtest.lmm.model.predictions import shapes

FORMULAS = [
    "y ~ a + x + (1 | g)",
    "y ~ a + (1 + x | g) + (1 | h)",
    "y ~ a + (1 | g) + (1 | g:h) + (0 + x | g)",
    "y ~ x + (1 | h) + (1 | g) + (1 | g:a)",
]


def table() -> pd.DataFrame:
    rng = np.random.default_rng(8)
    n = 150
    frame = pd.DataFrame(
        {"a": rng.choice(list("pqr"), n), "g": rng.choice(list("uvwxyz"), n), "h": rng.choice(list("klmn"), n)}
    )
    frame["x"] = rng.normal(size=n).round(1)
    effects = {g: rng.normal(size=2) for g in "uvwxyz"}
    frame["y"] = [effects[g] @ [1, x] for g, x in zip(frame["g"], frame["x"], strict=True)] + rng.normal(size=n)
    frame["y"] += frame["h"].map(dict(zip("klmn", rng.normal(size=4), strict=True)))
    own = {pair: rng.normal() for pair in sorted({*zip(frame["g"], frame["a"], strict=True)})}
    frame["y"] += [own[pair] for pair in zip(frame["g"], frame["a"], strict=True)]
    frame["w"] = rng.choice([0.5, 1.0, 3.0], n)
    return frame


@pytest.mark.daily(4)
@pytest.mark.parametrize("formula", FORMULAS)
@pytest.mark.parametrize("options", [{}, {"weights": "w"}, {"dispersion": "h"}], ids=str)
def test_errors_are_those_of_the_mixed_model_equations(formula: str, options: dict[str, str]) -> None:
    fit = lt.fit_lmm(formula, table(), **options)
    p, width = fit.rank, sum(q * k for q, k in shapes(fit))
    rng = np.random.default_rng(1)
    L, K = rng.normal(size=(4, p)), rng.normal(size=(width, 4))
    parts, start = [], 0
    for q, k in shapes(fit):
        parts.append(K[start : start + q * k].reshape(q, k, 4))
        start += q * k
    got = prediction.covariance(fit.problem, fit.optim.theta, fit.optim.criterion, L, parts)
    C = henderson(fit)
    both = np.hstack([L, K.T])
    np.testing.assert_allclose(got, both @ C @ both.T, rtol=1e-7, atol=1e-9 * np.abs(got).max())
    given = prediction.covariance(fit.problem, fit.optim.theta, fit.optim.criterion, L, parts, conditional=True)
    inner = henderson(fit, conditional=True)
    np.testing.assert_allclose(given, K.T @ inner @ K, rtol=1e-7, atol=1e-9 * np.abs(given).max())


def degrees_of_freedom(fit: lt.LmmFit, L: np.ndarray, K: list[np.ndarray]) -> np.ndarray:
    where = (fit.problem, fit.optim.theta, fit.optim.criterion, L, K)
    return fit.curvature.error_df(prediction.covariance(*where).diagonal(), prediction.slopes(*where))


def test_degrees_of_freedom_of_fixed_effects_are_satterthwaites() -> None:
    fit = lt.fit_lmm("y ~ a + (1 + x | g) + (1 | h)", table())
    L = np.random.default_rng(2).normal(size=(3, fit.rank))
    nothing = [np.zeros((q, k, 3)) for q, k in shapes(fit)]
    np.testing.assert_allclose(degrees_of_freedom(fit, L, nothing), fit.df(L), rtol=1e-9)


def test_a_model_without_random_effects_has_the_errors_of_least_squares() -> None:
    fit = lt.fit_lmm("y ~ a + x", table())
    L = np.eye(fit.rank)
    got = prediction.covariance(fit.problem, fit.optim.theta, fit.optim.criterion, L, [])
    np.testing.assert_allclose(got, fit.cov_params(), rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(degrees_of_freedom(fit, L, []), 150 - fit.rank)
