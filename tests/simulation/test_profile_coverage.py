"""How often profile intervals of a variance hold the truth: the simulated share is the exact one."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from harness import about, covers, rate_of
from pytest import approx
from scipy.optimize import brentq, minimize_scalar
from scipy.special import chdtr, chdtri
from study import table_of_scores

import lmemtest as lt
from lmemtest.lmm.intervals.profile import profile

CUT2 = 1.959963984540054**2
A, N = 6, 5  # groups, and rows in each


def rise(within: float, between: float, *, v: float, reml: bool) -> float:
    """Deviance at the group variance `v` above its minimum, from the two sums of squares of a balanced layout."""
    b = A - 1 if reml else A
    m = A * (N - 1)

    def deviance(s2: float, v: float) -> float:
        total = s2 + N * v
        return m * np.log(s2) + b * np.log(total) + within / s2 + between / total

    s2 = within / m
    v_hat = (between / b - s2) / N
    best = deviance(s2, v_hat) if v_hat > 0 else deviance((within + between) / (m + b), 0.0)
    held = minimize_scalar(lambda log_s2: deviance(np.exp(log_s2), v), bounds=(-12, 12), options={"xatol": 1e-11})
    return float(held.fun) - best


def exact_coverage(v: float, *, reml: bool, nodes: int = 60) -> float:
    """P(the interval holds v) with residual variance 1.

    Given the sum of squares within, the interval holds the truth for a range of that between; its probability is a
    difference of chi-squared distribution functions, integrated over the quantiles of the sum within.
    """
    x, weights = np.polynomial.legendre.leggauss(nodes)
    total = 1.0 + N * v
    out = 0.0
    for share, weight in zip(0.5 * (x + 1), 0.5 * weights, strict=True):
        within = float(chdtri(A * (N - 1), 1 - share))
        f = partial(_excess, within=within, v=v, reml=reml)
        lowest = minimize_scalar(f, bounds=(-15, 15)).x
        low = brentq(f, -25, lowest) if f(-25) > 0 else -np.inf
        high = brentq(f, lowest, 25)
        out += weight * (chdtr(A - 1, np.exp(high) / total) - chdtr(A - 1, np.exp(low) / total))
    return float(out)


def _excess(log_between: float, *, within: float, v: float, reml: bool) -> float:
    return rise(within, float(np.exp(log_between)), v=v, reml=reml) - CUT2


def drawn(rng: np.random.Generator, sd: float, *, reml: bool) -> tuple[np.ndarray, bool]:
    """Scores (groups, rows), and whether the interval of the standard deviation of groups holds it."""
    y = sd * rng.normal(size=A)[:, None] + rng.normal(size=(A, N))
    fit = lt.fit_lmm("y ~ 1 + (1 | g)", table_of_scores(y, "g row", "y"), reml=reml, restarts=0)
    return y, bool(covers(profile(fit, "sd", reml=reml).table.iloc[0], sd))


def test_the_closed_form_decides_as_the_interval_does():
    """The same tables, one by one: the truth is inside exactly if its deviance is within the cut."""
    rng = np.random.default_rng(1)
    for reml in [False, True] * 15:
        y, held = drawn(rng, 0.7, reml=reml)
        within = float(((y - y.mean(axis=1, keepdims=True)) ** 2).sum())
        between = float(N * ((y.mean(axis=1) - y.mean()) ** 2).sum())
        assert held == (rise(within, between, v=0.49, reml=reml) <= CUT2)


@pytest.mark.parametrize("reml", [False, True])
@pytest.mark.parametrize("sd", [0.3, 1.0, 3.0])
def test_the_coverage_of_a_variance_is_the_exact_one(sd, reml):
    n = 1500
    want = exact_coverage(sd**2, reml=reml)
    assert want == approx(exact_coverage(sd**2, reml=reml, nodes=40), abs=1e-3)
    assert about(rate_of(lambda rng: drawn(rng, sd, reml=reml)[1], n, 11), n, want)


@pytest.mark.parametrize(("groups", "ml", "restricted"), [(4, 0.879, 0.947), (6, 0.906, 0.943), (20, 0.939, 0.948)])
def test_the_restricted_likelihood_covers_better_with_few_groups(monkeypatch, groups, ml, restricted):
    """The numbers that docs/developers/intervals.md quotes."""
    monkeypatch.setitem(globals(), "A", groups)
    got = (exact_coverage(1.0, reml=False), exact_coverage(1.0, reml=True))
    assert got == approx((ml, restricted), abs=5e-4)
